# SPDX-License-Identifier: MIT
"""One trivial function call per language against the bare start of what runs it, taking turns."""
import json
import pathlib
import tempfile

BAR_MS = 3.0
# name -> (trivial program, what starts without us)
LANGUAGES = {
    "python": ("def f(x):\n    return x\n", ["/usr/bin/python3", "-I", "-S", "-c", "pass"]),
    "javascript": ("function f(x) { return x }\n", ["/usr/bin/node", "-e", "0"]),
    "ruby": ("def f(x)\n  x\nend\n", ["/usr/bin/ruby", "--disable=gems", "-e", "0"]),
    "php": ("function f($x) { return $x; }\n", ["/usr/bin/php", "-n", "-r", "0;"]),
    "perl": ("sub f { return $_[0] }\n", ["/usr/bin/perl", "-e", "0"]),
    "c": ("int f(int x) { return x; }\n", ["/bin/sh", "-c", "true"]),
    "cpp": ("int f(int x) { return x; }\n", ["/bin/sh", "-c", "true"]),
}


def call_load(run, daemon, generator, turn, body):
    return run([generator, "-p", str(daemon.port), "-t", daemon.secret, "-u", "/v1/functions/call", "-b", body,
                "-e", '"status":"success"', *turn])


def measure(options, run, program, rounds, started):
    generator, floor, found = program("bench-load"), program("bench-spawn"), {}
    with tempfile.TemporaryDirectory(prefix="sbx-bench-") as directory, started() as daemon:
        for language, (code, bare) in LANGUAGES.items():
            body = pathlib.Path(directory, language)
            body.write_text(json.dumps({"language": language, "code": code, "functionName": "f", "args": [1]}))
            turn = ["-c", "1", "-i", "0", "-n", str(max(options.runs // 2, 20)), "-w", "5"]
            found[language] = rounds({
                "bare": lambda: run([floor, *turn, "--", *bare]),
                "call": lambda: call_load(run, daemon, generator, turn, str(body)),
            }, options.rounds)
    return found


def show(found, verdict):
    print("## `POST /v1/functions/call` of a trivial function, warm, against the bare start\n")
    print("| language | bare start | its p50 ms | call least ms | call p50 ms | p50 over bare, ms | bar: 3 ms |")
    print("|---|---|---|---|---|---|---|")
    for language, rows in found.items():
        bare, call = rows["bare"], rows["call"]
        over = (call["p50_us"] - bare["p50_us"]) / 1000
        start = " ".join(pathlib.Path(word).name for word in LANGUAGES[language][1])
        judged = "–" if language == "javascript" else verdict(over <= BAR_MS)
        print(f"| {language} | `{start}` | {bare['p50_us'] / 1000:.2f} | {call['min_us'] / 1000:.2f} "
              f"| {call['p50_us'] / 1000:.2f} | {over:+.2f} | {judged} |")
    print()
