# SPDX-License-Identifier: MIT
"""How fast warmed interpreters answer, against starting them: latency, throughput, scaling, memory, stages."""
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import chart
import harness

AT_ONCE = (1, 2, 4, 8, 16, 32, 64, 128, 256)
RUSH = 64  # at once, where throughput is compared
EACH = 16  # requests of each connection: what a rush costs at its beginning is not what it does per second
PREPARED = 16  # sandboxes whose memory is measured together

# A variable that only a freshly started interpreter can heed keeps the run from the zygote.
PROGRAMS = {
    "python": {"language": "python", "code": "def handler(event):\n    return event\n", "event": {"a": 1}},
    "javascript": {"language": "javascript", "code": "exports.handler = (event) => event\n", "event": {"a": 1}},
    "shell": {"language": "shell", "code": "true\n"},
    "pandas": {"language": "python", "template": "python-datascience", "code":
               "import pandas\ndef handler(event):\n    return int(pandas.DataFrame({'a': [1, 2, 3]})['a'].sum())\n"},
}
COLD = {"python": {"PYTHONHASHSEED": "0"}, "javascript": {"NODE_OPTIONS": "--no-warnings"}}
BARE = {"python": ["/usr/bin/python3", "-I", "-S", "-c", "pass"], "javascript": ["/usr/bin/node", "-e", "0"],
        "shell": ["/bin/bash", "-c", "true"]}


class Speed:
    def __init__(self, options, tools, directory):
        self.options, self.tools, self.directory = options, tools, directory

    def body(self, name, cold=False):
        program = dict(PROGRAMS[name], **({"env_vars": COLD[name]} if cold else {}))
        path = pathlib.Path(self.directory, f"{name}-{cold}")
        path.write_text(json.dumps(program))
        return str(path)

    def load(self, daemon, name, at_once=1, interval=0, count=None, cold=False):
        count = count or max(self.options.runs, at_once * EACH)
        return self.tools["measure"]([
            self.tools["load"], "-p", str(daemon.port), "-t", daemon.secret, "-b", self.body(name, cold),
            "-e", '"status":"success"', "-c", str(at_once), "-i", str(interval), "-n", str(count),
            "-w", str(max(8, at_once))])

    def bare(self, name, interval=0):
        return self.tools["measure"]([self.tools["spawn"], "-c", "1", "-i", str(interval), "-n",
                                      str(max(self.options.runs // 2, 30)), "-w", "3", "--", *BARE[name]])

    def rounds(self, contenders):
        return self.tools["rounds"](contenders, self.options.rounds)

    def warm(self, daemon, name):
        program = PROGRAMS[name]
        harness.wait_until(lambda: daemon.execute(**program)["isolation"]["template"] != "exec"
                           or program["language"] == "shell", f"a warmed {name}")


def latencies(speed):
    found = {}
    runs = speed.options.runs
    with speed.tools["started"]() as daemon, \
            speed.tools["started"](POOL_PYTHON=0, POOL_NODE=0, POOL_EXEC=0) as unprepared:
        for name in ("python", "javascript", "shell"):
            speed.warm(daemon, name)
            speed.warm(unprepared, name)
            found[name] = speed.rounds({
                "bare": lambda: speed.bare(name), "bare, every 20 ms": lambda: speed.bare(name, 20000),
                "every 20 ms": lambda: speed.load(daemon, name, interval=20000, count=max(runs // 2, 30)),
                "back to back": lambda: speed.load(daemon, name),
                "every 50 ms": lambda: speed.load(daemon, name, interval=50000, count=max(runs // 6, 20)),
                "nothing prepared": lambda: speed.load(unprepared, name),
            })
    return found


def throughput(speed):
    """Warmed ones, and each started for its run, in the same sandboxes of the same daemon."""
    with speed.tools["started"]() as daemon:
        for name in COLD:
            speed.warm(daemon, name)
        return speed.rounds({
            f"{name}, started" if cold else name: lambda name=name, cold=cold: speed.load(
                daemon, name, at_once=RUSH, cold=cold, count=RUSH * 2 if cold else None)
            for name in COLD for cold in (False, True)})


def pandas(speed):
    if subprocess.run(["/usr/bin/python3", "-c", "import pandas"], stderr=subprocess.DEVNULL).returncode != 0:
        return None
    with speed.tools["started"]() as daemon:
        speed.warm(daemon, "pandas")
        return speed.load(daemon, "pandas", interval=20000)


def scaling(speed):
    found = {}
    with speed.tools["started"]() as daemon:
        for name in ("python", "javascript", "shell"):
            speed.warm(daemon, name)
            found[name] = {n: speed.load(daemon, name, at_once=n) for n in AT_ONCE}
        for name in COLD:
            found[f"{name}, started"] = {
                n: speed.load(daemon, name, at_once=n, cold=True, count=max(n * 2, 40)) for n in (1, 8, 64)}
    return found


def stages(speed):
    """Medians of what the answers themselves say."""
    found = {}
    with speed.tools["started"]() as daemon:
        for name in ("python", "javascript", "shell"):
            speed.warm(daemon, name)
            rows = [daemon.execute(**PROGRAMS[name])["timings"] for _ in range(40)]
            found[name] = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    return found


def proportional_kib(daemon):
    total = 0
    for pid in [daemon.pid, *daemon.tree()]:
        for line in harness.read_proc(pid, "smaps_rollup").decode().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


def settled_kib(daemon):
    """Once nothing is being made or taken down any more: half a second later it is the same."""
    seen = []

    def is_settled():
        seen.append(proportional_kib(daemon))
        time.sleep(0.5)
        return len(seen) > 1 and abs(seen[-1] - seen[-2]) * 1000 < seen[-1]

    harness.wait_until(is_settled, "memory to settle")
    return seen[-1]


def memory(speed):
    sizes = {}
    for count in (1, 1 + PREPARED):
        with speed.tools["started"](POOL_PYTHON=count, POOL_NODE=1) as daemon:
            speed.warm(daemon, "python")
            speed.warm(daemon, "javascript")
            ready = f'sandbox_pool{{template="python",state="ready"}} {count}\n'
            harness.wait_until(lambda: ready in daemon.request("GET", "/metrics").text, "prepared sandboxes")
            sizes[count] = settled_kib(daemon)
    return {"idle_kib": sizes[1], "prepared_kib": (sizes[1 + PREPARED] - sizes[1]) / PREPARED}


def measure(options, tools):
    with tempfile.TemporaryDirectory(prefix="sbx-bench-") as directory:
        speed = Speed(options, tools, directory)
        return {"latencies": latencies(speed), "pandas": pandas(speed), "throughput": throughput(speed),
                "scaling": scaling(speed), "stages": stages(speed), "memory": memory(speed)}


# ---- telling ----


def bars(found):
    lat, rush, mem = found["latencies"], found["throughput"], found["memory"]

    def share(name, load, field="p50_us", bare="bare"):
        return lat[name][load][field] / lat[name][bare]["p50_us"]

    rows = [
        ("Python every 20 ms, p50 of the bare interpreter's every 20 ms",
         share("python", "every 20 ms", bare="bare, every 20 ms"), 1 / 20),
        ("Python every 20 ms, p50 of the bare interpreter's back to back", share("python", "every 20 ms"), 1 / 20),
        ("Python every 20 ms, p99", share("python", "every 20 ms", "p99_us"), 1 / 4),
        ("Python back to back, p50", share("python", "back to back"), 1 / 10),
        ("Python, nothing prepared, p50", share("python", "nothing prepared"), 1 / 5),
        ("JavaScript every 20 ms, p50", share("javascript", "every 20 ms"), 1 / 15),
        ("shell every 20 ms, p50 of bare bash every 20 ms", share("shell", "every 20 ms", bare="bare, every 20 ms"),
         1.2),
        ("Python after 50 ms of idleness, p50 of busy p50", lat["python"]["every 50 ms"]["p50_us"]
         / lat["python"]["back to back"]["p50_us"], 2),
        ("Python, 64 at once, p99 of p50", rush["python"]["p99_us"] / rush["python"]["p50_us"], 6),
        ("idle, with Python and Node.js warmed, MiB", mem["idle_kib"] / 1024, 100),
        ("one more prepared Python sandbox, MiB", mem["prepared_kib"] / 1024, 2),
    ]
    if found["pandas"]:
        rows.append(("import pandas and a small sum, every 20 ms, p50 in ms", found["pandas"]["p50_us"] / 1000, 5))
    times = [(f"{name}, 64 at once, times as many as started for each run",
              rush[name]["per_second"] / rush[f"{name}, started"]["per_second"], least)
             for name, least in (("python", 15), ("javascript", 7))]
    return rows, times


def show(found, verdict):
    print("## Warmed interpreters\n")
    print("| what | min ms | p50 ms | p95 ms | p99 ms | per second |\n|---|---|---|---|---|---|")
    for name, rows in found["latencies"].items():
        for load, r in rows.items():
            cells = " | ".join(f"{r[f] / 1000:.2f}" for f in ("min_us", "p50_us", "p95_us", "p99_us"))
            print(f"| {name}, {load} | {cells} | {r['per_second']:.0f} |")
    print("\n| at once, per second | " + " | ".join(map(str, AT_ONCE)) + " |\n|---|" + "---|" * len(AT_ONCE))
    for name, points in found["scaling"].items():
        print(f"| {name} | " + " | ".join(f"{points[n]['per_second']:.0f}" if n in points else "" for n in AT_ONCE) + " |")
    print("\n| where the time goes, ms | " + " | ".join(next(iter(found["stages"].values()))) + " |")
    print("|---|" + "---|" * len(next(iter(found["stages"].values()))))
    for name, row in found["stages"].items():
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")
    print()
    most, least = bars(found)
    for what, value, bar in most:
        print(f"- Bar: {what}: {value:.3g}, at most {bar:.3g}, {verdict(value <= bar)}.")
    for what, value, bar in least:
        print(f"- Bar: {what}: {value:.3g}, at least {bar:.3g}, {verdict(value >= bar)}.")
    print()


def picture(found):
    series = {name: {n: r["per_second"] for n, r in points.items()} for name, points in found["scaling"].items()}
    return chart.lines(f"Runs per second by requests at once, {os.cpu_count()} processors, every run in its own sandbox",
                       "requests at once", "runs per second", series)
