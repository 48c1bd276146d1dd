# SPDX-License-Identifier: MIT
"""What it costs to find the functions of 10,000 lines of Python: the program alone, and as a request."""
import http.client
import json
import pathlib
import statistics
import subprocess
import sysconfig
import time

import harness

LINES = 10_000
BAR_MS = 50.0
DENSE = '''def function_{i}(a: int, b: str = "x", *args, key=None, **more) -> dict:
    """Does thing {i}.

    :param a: a number
    """
    total = a + len(b)
    for item in args:
        total += item * 2
    return {{"total": total, "key": key}}

'''

TINY = '''def function_{i}(a: int, b: str = "x", c=None) -> int:
    """Adds {i}."""
    return a + {i}

'''
TEXTS = {  # the program alone
    "program": f"{LINES} lines of the standard library, the program alone",
    "dense": f"{LINES} lines with a function in every ten",
    "functions": f"{LINES} lines that are {LINES // 4} functions",
}


def library():
    """Lines that people wrote: whole modules of the standard library, as many as fit; then comments."""
    lines = []
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        module = path.read_text(errors="replace").splitlines()
        if len(lines) + len(module) < LINES:
            lines += module
    return lines + ["#"] * (LINES - 1 - len(lines))


def repeated(piece):
    each = piece.count("\n")
    return "".join(piece.format(i=i) for i in range(LINES // each)).splitlines()[:LINES - 1]


def salted(lines, salt):
    return "\n".join([*lines, f"# {salt}"]) + "\n"  # another text: nothing is remembered


def program_ms(text):
    begin = time.monotonic()
    done = subprocess.run([harness.BUILD / "sandbox-inspect", "python", "-"], input=text.encode(),
                          stdout=subprocess.PIPE, check=True)
    spent = (time.monotonic() - begin) * 1000
    assert len(json.loads(done.stdout)["functions"]) > 100
    return spent


def request_ms(daemon, connection, text):
    body = json.dumps({"language": "python", "code": text})
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + daemon.secret}
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
    turns = range(10 if options.quick else 40)
    people = library()
    texts = {"program": people, "dense": repeated(DENSE), "functions": repeated(TINY)}
    # alone: no daemon yet, whose interpreters warm themselves beside it
    found = {name: [program_ms(salted(lines, i)) for i in turns] for name, lines in texts.items()}
    daemon = harness.start_daemon(to_file=True, LOG_LEVEL="info")
    connection = http.client.HTTPConnection(daemon.host, daemon.port)
    try:
        found |= {
            "request": [request_ms(daemon, connection, salted(people, i)) for i in turns],
            "known": [request_ms(daemon, connection, salted(people, 0)) for _ in turns],
            "tiny": [request_ms(daemon, connection, f"def f{i}(a): pass") for i in turns],
        }
    finally:
        connection.close()
        daemon.stop()
    return {name: {"min_ms": min(v), "p50_ms": statistics.median(v)} for name, v in found.items()}


def show(found, verdict):
    if not found:
        print("## Inspection\n\nBuilt without grammars: tools/fetch-grammars.\n")
        return
    names = TEXTS | {"request": "the library as a request", "known": "the same again, from memory",
                     "tiny": "one function as a request"}
    print("## Inspection\n\n| | least ms | p50 ms |\n|---|---|---|")
    for name, words in names.items():
        print(f"| {words} | {found[name]['min_ms']:.1f} | {found[name]['p50_ms']:.1f} |")
    slowest = max(found[name]["p50_ms"] for name in TEXTS)
    print(f"\nBar: {LINES} lines in under {BAR_MS:.0f} ms, the slowest text: p50 {slowest:.1f} ms, "
          f"{verdict(slowest < BAR_MS)}.\n")
