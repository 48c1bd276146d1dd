# SPDX-License-Identifier: MIT
"""What it costs to find the functions of 10,000 lines of Python: the program alone, and as a request."""
import http.client
import json
import os
import statistics
import subprocess
import time

import harness

LINES = 10_000
CEILING_MS = 50.0
FUNCTION = '''def function_{i}(a: int, b: str = "x", *args, key=None, **more) -> dict:
    """Does thing {i}.

    :param a: a number
    """
    total = a + len(b)
    for item in args:
        total += item * 2
    return {{"total": total, "key": key}}

'''


def source(salt):
    lines = "".join(FUNCTION.format(i=i) for i in range(LINES // 10)).splitlines()
    lines[-1] = f"# {salt}"  # other text, other answer: nothing is remembered
    return "\n".join(lines) + "\n"


def program_ms(text):
    """CPU time of one run: the load of the machine is not its fault."""
    before = os.times()
    child = subprocess.Popen([harness.BUILD / "sandbox-inspect", "python", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said = child.communicate(text.encode())[0]
    after = os.times()
    assert child.returncode == 0 and len(json.loads(said)["functions"]) == LINES // 10
    return (after.children_user + after.children_system - before.children_user - before.children_system) * 1000


def request_ms(connection, headers, text):
    body = json.dumps({"language": "python", "code": text})
    begin = time.monotonic()
    connection.request("POST", "/v1/functions/inspect", body=body, headers=headers)
    response = connection.getresponse()
    said = response.read()
    spent = (time.monotonic() - begin) * 1000
    assert response.status == 200, said[:500]
    return spent


def measure(options):
    if not (harness.BUILD / "sandbox-inspect").exists():
        return None
    count = 10 if options.quick else 40
    daemon = harness.start_daemon()
    connection = http.client.HTTPConnection(daemon.host, daemon.port)
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + daemon.secret}
    try:
        program = [program_ms(source(i)) for i in range(count)]
        fresh = [request_ms(connection, headers, source(i)) for i in range(count)]
        known = [request_ms(connection, headers, source(0)) for _ in range(count)]
        tiny = [request_ms(connection, headers, f"def f{i}(a): pass") for i in range(count)]
    finally:
        connection.close()
        daemon.stop()
    return {name: {"min_ms": min(v), "p50_ms": statistics.median(v)}
            for name, v in (("program", program), ("request", fresh), ("known", known), ("tiny", tiny))}


def show(found, verdict):
    if not found:
        print("## Inspection\n\nBuilt without grammars: tools/fetch-grammars.\n")
        return
    names = {"program": f"{LINES} lines of Python, the program alone (CPU)", "request": "the same as a request",
             "known": "the same again, from memory", "tiny": "one function as a request"}
    print("## Inspection\n\n| | least ms | p50 ms |\n|---|---|---|")
    for name, words in names.items():
        print(f"| {words} | {found[name]['min_ms']:.1f} | {found[name]['p50_ms']:.1f} |")
    least = found["program"]["min_ms"]
    print(f"\nBar: {LINES} lines in under {CEILING_MS:.0f} ms: {least:.1f} ms, {verdict(least < CEILING_MS)}.\n")
