# SPDX-License-Identifier: MIT
"""What a control plane costs: the same asynchronous executions with and without callbacks, in turns."""
import asyncio
import datetime
import http.client
import json
import multiprocessing
import os
import pathlib
import shutil
import socket
import statistics
import tempfile
import time

import harness

AT_ONCE, SLEEP_S = 100, 0.2
BUSY_S, BEAT_S = 17, 5  # long enough for three beats after the first


def serve(listener, beats=None):
    """A control plane that says yes as cheaply as Python can; heartbeats go to a file, if there is one."""
    async def answer(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                start = head.index(b"content-length:") + 15
                body = await reader.readexactly(int(head[start:head.index(b"\r\n", start)]))
                if beats and b"/heartbeat " in head[:500]:
                    with open(beats, "ab") as f:
                        f.write(head.split(b" ", 2)[1] + b" " + body + b"\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        await (await asyncio.start_server(answer, sock=listener)).serve_forever()
    asyncio.run(run())


def cpu_ms(pid):
    """Of all threads of the daemon, without its sandboxes."""
    return sum(int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
               for task in os.listdir(f"/proc/{pid}/task")) / 1e6


def executions(daemon, count):
    """Submits them all, waits until nothing is under way: per second, and CPU of the daemon for each."""
    body = json.dumps({"code": f"sleep {SLEEP_S}", "language": "shell"})
    headers = {"Content-Type": "application/json", "Prefer": "respond-async", "Authorization": "Bearer " + daemon.secret}
    connection = http.client.HTTPConnection(daemon.host, daemon.port)
    begin, cpu = time.monotonic(), cpu_ms(daemon.pid)

    def ask(method, path, **kw):
        connection.request(method, path, **kw)
        response = connection.getresponse()
        text = response.read()
        assert response.status == 200, text
        return json.loads(text)
    for _ in range(count):
        ask("POST", "/execute", body=body, headers=headers)
    while ask("GET", "/health")["active_executions"]:
        time.sleep(0.005)
    return {"per_second": count / (time.monotonic() - begin), "cpu_ms": (cpu_ms(daemon.pid) - cpu) / count}


def cadence(top):
    """Seconds between two heartbeats of one execution, by the daemon's own clock, while everything is busy."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    plane = multiprocessing.Process(target=serve, args=(listener, top / "beats"), daemon=True)
    plane.start()
    harness.live.add(plane.pid)
    daemon = harness.start_daemon(CONTROL_PLANE_URL=f"http://127.0.0.1:{listener.getsockname()[1]}",
                                  INTERNAL_API_TOKEN="bench", RESULTS_PATH=top / "busy", LOG_LEVEL="info",
                                  MAX_CONCURRENT_EXECUTIONS=AT_ONCE)
    try:
        for _ in range(AT_ONCE):
            daemon.request("POST", "/execute", headers={"Prefer": "respond-async"}, json={
                "language": "shell", "code": f"while ((SECONDS < {BUSY_S})); do :; done", "timeout": 120})
        harness.wait_until(lambda: not daemon.health().json()["active_executions"], "all are done", timeout=300, interval=0.2)
    finally:
        daemon.stop()
        plane.terminate()
        plane.join()
    at = {}
    for line in (top / "beats").read_text().splitlines():
        path, body = line.split(" ", 1)
        beat = json.loads(body)
        if beat["progress"] == {"status": "running"}:
            when = datetime.datetime.fromisoformat(beat["timestamp"].replace("Z", "+00:00")).timestamp()
            at.setdefault(path, []).append(when)
    return sorted(b - a for times in at.values() for a, b in zip(sorted(times), sorted(times)[1:]))


def measure(options):
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    plane = multiprocessing.Process(target=serve, args=(listener,), daemon=True)
    plane.start()
    harness.live.add(plane.pid)
    top = pathlib.Path(tempfile.mkdtemp(prefix="sbx-bench-"))
    top.chmod(0o755)
    common = {"LOG_LEVEL": "info", "QUEUE_MAX": 10000, "MAX_CONCURRENT_EXECUTIONS": AT_ONCE, "POOL_EXEC": 16}
    daemons = {
        "without": harness.start_daemon(**common),
        "with": harness.start_daemon(CONTROL_PLANE_URL=f"http://127.0.0.1:{listener.getsockname()[1]}",
                                     INTERNAL_API_TOKEN="bench", RESULTS_PATH=top / "results", **common),
    }
    found = {name: [] for name in daemons}
    try:
        for turn in range(-1, options.rounds):  # the first one warms up
            for name, daemon in daemons.items():
                numbers = executions(daemon, options.runs)
                if turn >= 0:
                    found[name].append(numbers)
        gaps = [] if options.quick else cadence(top)
    finally:
        for daemon in daemons.values():
            daemon.stop()
        plane.terminate()
        plane.join()
        shutil.rmtree(top, ignore_errors=True)
    told = {name: {field: statistics.median(r[field] for r in turns) for field in turns[0]}
            for name, turns in found.items()}
    if gaps:
        told["heartbeats"] = {"gaps": len(gaps), "least_s": gaps[0], "most_s": gaps[-1]}
    return told


def show(found, verdict):
    without, told = found["without"], found["with"]
    added = told["cpu_ms"] - without["cpu_ms"]
    ratio = told["per_second"] / without["per_second"]
    print(f"## Callbacks: {AT_ONCE} asynchronous executions of {SLEEP_S * 1000:.0f} ms at once\n")
    print("| control plane | executions per second | CPU of the daemon, ms each |\n|---|---|---|")
    for name, numbers in (("without", without), ("with", told)):
        print(f"| {name} | {numbers['per_second']:.1f} | {numbers['cpu_ms']:.3f} |")
    print(f"\nBar: throughput within 10 % of that without: {ratio:.2f}, {verdict(ratio >= 0.9)}.")
    print(f"Bar: at most 0.5 ms of CPU added to each: {added:.3f} ms, {verdict(added <= 0.5)}.")
    if "heartbeats" in found:
        beats = found["heartbeats"]
        good = BEAT_S - 1 <= beats["least_s"] and beats["most_s"] <= BEAT_S + 1
        print(f"Bar: heartbeats every {BEAT_S} s, give or take 1 s, while {AT_ONCE} programs are busy: "
              f"{beats['least_s']:.2f} to {beats['most_s']:.2f} s over {beats['gaps']} pauses, {verdict(good)}.")
    print()
