# SPDX-License-Identifier: MIT
"""Live interpreters: a fresh sandbox's first cell against starting python3 with pandas, and what many of them cost."""
import re
import statistics
import subprocess
import time

import harness

BARE = ["/usr/bin/python3", "-c", "import pandas; pandas.DataFrame({'a': [1, 2, 3]})['a'].sum()"]
FIRST = "import pandas; int(pandas.DataFrame({'a': [1, 2, 3]})['a'].sum())"
CELLS = 20  # of one context, one after the other
MANY = 1000
NOISE = 20  # sandboxes whose creation is compared, at both ends
PEER = ["/usr/bin/python3", "-I", "-S", "-c", "pass"]  # started beside them: how busy the machine is then
PSS_MAX_MIB, RATIO_MAX, SECOND_MAX_MS, GROWTH_MAX = 12, 10, 3, 2


class Sandbox:
    def __init__(self, connection):
        self.connection = connection
        self.path = "/v1/sandboxes/" + self.ask("POST", "/v1/sandboxes", {})["id"]

    def ask(self, method, path, value=None):
        answer = self.connection.request(method, path, json=value)
        assert answer.status < 300, answer.text
        return answer.json() if answer.text else None

    def cell(self, code):
        cell = self.ask("POST", self.path + "/cells", {"code": code})
        assert cell["status"] == "ok", cell
        return cell

    def is_copy(self):
        return "zygote" in self.cell("import os; os.readlink('/proc/self/exe')")["results"][0]["data"]["text/plain"]

    def delete(self):
        self.connection.request("DELETE", self.path)


def timed(action):
    begun = time.perf_counter()
    value = action()
    return (time.perf_counter() - begun) * 1000, value


def first_cell(connection):
    """Milliseconds from asking for a sandbox to the result of its first cell, and of a second one."""
    def first():
        made = Sandbox(connection)
        made.cell(FIRST)
        return made

    whole, made = timed(first)
    second = statistics.median(timed(lambda: made.cell("1 + 1"))[0] for _ in range(CELLS))
    made.delete()
    return whole, second


def is_warm(connection):
    made = Sandbox(connection)
    try:
        return made.is_copy()
    finally:
        made.delete()


def pss_kib(pids):
    """Proportional memory of processes together; those that ended meanwhile have none."""
    total = 0
    for pid in pids:
        text = harness.read_proc(pid, "smaps_rollup") or b""
        found = re.search(rb"^Pss:\s+(\d+)", text, re.M)
        total += int(found.group(1)) if found else 0
    return total


def many(daemon, connection, count):
    """So many sandboxes with one idle context each: memory of one, and how the creation times grow."""
    before = pss_kib([daemon.pid, *harness.descendants(daemon.pid)])
    created, peer, made = [], [], []
    for i in range(count):
        took, one = timed(lambda: Sandbox(connection))
        took += timed(lambda: one.cell("1"))[0]  # until its context is idle
        created.append(took)
        made.append(one)
        if not NOISE <= i < count - NOISE:
            peer.append(timed(lambda: subprocess.run(PEER, check=True))[0])
    after = pss_kib([daemon.pid, *harness.descendants(daemon.pid)])
    return {"count": count, "pss_mib": (after - before) / 1024 / count,
            "first_ms": statistics.median(created[:NOISE]), "last_ms": statistics.median(created[-NOISE:]),
            "peer_first_ms": statistics.median(peer[:NOISE]), "peer_last_ms": statistics.median(peer[-NOISE:])}


def measure(options, tools):
    bare, whole, second = [], [], []
    with tools["started"](POOL_CELLS=1, SANDBOXES_MAX=MANY + 16) as daemon, daemon.connect() as connection:
        harness.wait_until(lambda: is_warm(connection), "a context that is a copy", 120, 0.2)
        for _ in range(max(options.runs // 20, 10)):
            bare.append(timed(lambda: subprocess.run(BARE, check=True))[0])
            took = first_cell(connection)
            whole.append(took[0])
            second.append(took[1])
        found = {"bare_ms": statistics.median(bare), "first_ms": statistics.median(whole),
                 "second_ms": statistics.median(second)}
        found["many"] = many(daemon, connection, 100 if options.quick else MANY)
    return found


def show(found, verdict):
    m = found["many"]
    ratio = found["bare_ms"] / found["first_ms"]
    growth = m["last_ms"] / m["peer_last_ms"] / (m["first_ms"] / m["peer_first_ms"])
    print("## Contexts\n\n| | |\n|---|---|")
    print(f"| `python3 -c 'import pandas; …'`, bare | {found['bare_ms']:.1f} ms |")
    print(f"| a fresh sandbox and its first cell, the same | {found['first_ms']:.1f} ms |")
    print(f"| a second cell over HTTP | {found['second_ms']:.2f} ms |")
    print(f"| each of {m['count']} sandboxes with an idle context (PSS) | {m['pss_mib']:.1f} MiB |")
    print(f"| creating the first, the last {NOISE} of them | {m['first_ms']:.1f} ms, {m['last_ms']:.1f} ms |")
    print(f"| a bare interpreter beside the first, the last | {m['peer_first_ms']:.1f} ms, {m['peer_last_ms']:.1f} ms |\n")
    print(f"Bars: first cell {RATIO_MAX} times as fast as bare: {ratio:.1f}, {verdict(ratio >= RATIO_MAX)}; second cell "
          f"{SECOND_MAX_MS} ms: {verdict(found['second_ms'] <= SECOND_MAX_MS)}; {PSS_MAX_MIB} MiB each: "
          f"{verdict(m['pss_mib'] <= PSS_MAX_MIB)}; the last created in {GROWTH_MAX} times the first, in bare interpreters: {growth:.2f}, "
          f"{verdict(growth <= GROWTH_MAX)}.\n")
