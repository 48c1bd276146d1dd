# SPDX-License-Identifier: MIT
"""What a control plane costs: the same asynchronous executions with and without callbacks, in turns."""
import asyncio
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


def serve(listener):
    """A control plane that says yes as cheaply as Python can."""
    async def answer(reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                start = head.index(b"content-length:") + 15
                await reader.readexactly(int(head[start:head.index(b"\r\n", start)]))
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
    finally:
        for daemon in daemons.values():
            daemon.stop()
        plane.terminate()
        plane.join()
        shutil.rmtree(top, ignore_errors=True)
    return {name: {field: statistics.median(r[field] for r in turns) for field in turns[0]}
            for name, turns in found.items()}


def show(found, verdict):
    without, told = found["without"], found["with"]
    added = told["cpu_ms"] - without["cpu_ms"]
    ratio = told["per_second"] / without["per_second"]
    print(f"## Callbacks: {AT_ONCE} asynchronous executions of {SLEEP_S * 1000:.0f} ms at once\n")
    print("| control plane | executions per second | CPU of the daemon, ms each |\n|---|---|---|")
    for name, numbers in found.items():
        print(f"| {name} | {numbers['per_second']:.1f} | {numbers['cpu_ms']:.3f} |")
    print(f"\nBar: throughput within 10 % of that without: {ratio:.2f}, {verdict(ratio >= 0.9)}.")
    print(f"Bar: at most 0.5 ms of CPU added to each: {added:.3f} ms, {verdict(added <= 0.5)}.\n")
