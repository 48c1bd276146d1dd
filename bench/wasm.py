# SPDX-License-Identifier: MIT
"""A trivial function in WebAssembly, warm, against the bare start of the native interpreter."""
import json
import pathlib
import subprocess
import tempfile

import functions

TOP = pathlib.Path(__file__).resolve().parents[1]
PAUSE_US = "150000"  # between calls: a prepared sandbox is to be met, as with a caller who thinks
# name -> (what starts without us, the most that a call may take of that, the most in ms)
BARS = {
    "python": (["/usr/bin/python3", "-c", "import json"], 0.5, None),
    "ruby": (["/usr/bin/ruby", "-e", "0"], 0.5, None),
    "php": (["/usr/bin/php", "-r", "0;"], 1.0, None),
    "javascript": (["/usr/bin/node", "-e", "0"], None, 5.0),
    "c": (["/bin/true"], None, 10.0),
}


def measure(options, run, program, rounds, started):
    if subprocess.run([TOP / "tools" / "fetch-wasm", "--check"], check=False).returncode != 0:
        return {}
    generator, floor, found = program("bench-load"), program("bench-spawn"), {}
    env = {"WASM": "true", "WASM_PATH": str(TOP / "build-deps" / "wasm"), "POOL_WASM": "2"}
    with tempfile.TemporaryDirectory(prefix="sbx-bench-") as directory, started(**env) as daemon:
        for language, (bare, _, _) in BARS.items():
            body = pathlib.Path(directory, language)
            code = functions.LANGUAGES[language][0]
            body.write_text(json.dumps({"language": language, "code": code, "functionName": "f", "args": [1],
                                        "engine": "wasm"}))
            turn = ["-c", "1", "-i", PAUSE_US, "-n", str(max(options.runs // 5, 20)), "-w", "3"]
            found[language] = rounds({
                "bare": lambda: run([floor, *turn, "--", *bare]),
                "call": lambda: functions.call_load(run, daemon, generator, turn, str(body)),
            }, options.rounds)
    return found


def show(found, verdict):
    print("## A trivial function in WebAssembly, warm, against the native interpreter's start\n")
    if not found:
        print("The runtimes are not there: `tools/fetch-wasm`.\n")
        return
    print("| language | bare start | its p50 ms | call least ms | call p50 ms | ratio | bar | |")
    print("|---|---|---|---|---|---|---|---|")
    for language, rows in found.items():
        bare, most, most_ms = BARS[language]
        start, call = rows["bare"]["p50_us"] / 1000, rows["call"]["p50_us"] / 1000
        good = call / start <= most if most else call <= most_ms
        bar = f"{most:g} ×" if most else f"{most_ms:g} ms"
        print(f"| {language} | `{' '.join(pathlib.Path(word).name for word in bare)}` | {start:.2f} "
              f"| {rows['call']['min_us'] / 1000:.2f} | {call:.2f} | {call / start:.2f} | {bar} | {verdict(good)} |")
    print()
