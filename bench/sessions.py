# SPDX-License-Identifier: MIT
"""What one call of a function session costs, in each language that is here."""
import json
import subprocess
import tempfile

import harness

BAR_MS = 1.0
CODE = {
    "python": "n = 0\ndef add(k):\n    global n\n    n += k\n    return n",
    "javascript": "let n = 0; function add(k) { n += k; return n }",
    "ruby": "$n = 0\ndef add(k)\n  $n += k\nend",
    "c": "static int n; int add(int k) { return n += k; }",
    "php": "<?php function add($k) { static $n = 0; return $n += $k; }",
}


def calls(daemon, ident, options):
    """Least and median of calls one after the other over one connection."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as body:
        json.dump({"functionName": "add", "args": [1]}, body)
        body.flush()
        said = subprocess.run(
            [harness.BUILD / "bench" / "bench-load", "-p", str(daemon.port), "-t", daemon.secret,
             "-u", f"/v1/sessions/{ident}/call", "-b", body.name, "-e", '"success":true',
             "-n", str(options.runs * 10), "-c", "1", "-w", "50"],
            stdout=subprocess.PIPE, check=True).stdout
    return json.loads(said)


def measure(options):
    found = {}
    daemon = harness.start_daemon(to_file=True, LOG_LEVEL="info")
    try:
        for language, code in CODE.items():
            made = daemon.request("POST", "/v1/sessions", json={"language": language, "code": code})
            if made.status != 201:
                continue  # not installed here
            ident = made.json()["id"]
            found[language] = calls(daemon, ident, options)
            daemon.request("DELETE", f"/v1/sessions/{ident}")
    finally:
        daemon.stop()
    return found


def show(found, verdict):
    print("## Calls of a function session\n\n| | least ms | p50 ms | p99 ms | bar |\n|---|---|---|---|---|")
    for language, r in found.items():
        print(f"| {language} | {r['min_us'] / 1000:.3f} | {r['p50_us'] / 1000:.3f} | {r['p99_us'] / 1000:.3f} "
              f"| {verdict(r['p50_us'] / 1000 <= BAR_MS)} |")
    print(f"\nBar: p50 of at most {BAR_MS:.0f} ms.\n")
