# SPDX-License-Identifier: MIT
"""A sandbox that stays: /run against a bare spawn, its proxy against socat, and what an idle log stream costs."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import harness

SHELL = ["/bin/sh", "-c", "true"]
AT_ONCE = 8
STREAMS = 2000
BLOCK = 1 << 20
SOCAT_BUFFERS = {"socat": [], "socat -b 262144": ["-b", "262144"]}

# Sends zeros to whoever connects, for as long as they are taken.
SOURCE = f"""
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", PORT))
s.listen(16)
print(s.getsockname()[1], flush=True)
block = bytes({BLOCK})
while True:
    c, _ = s.accept()
    try:
        while True:
            c.sendall(block)
    except OSError:
        c.close()
"""


# ---- commands ----


def spawn_everywhere(bare, runs):
    """The same spawn loop on every processor at once: how many starts per second they reach together."""
    loops = os.cpu_count()
    command = [bare, "-n", str(runs // loops), "-c", str(max(AT_ONCE // loops, 1)), "-w", "5", "--", *SHELL]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(loops)]
    results = [json.loads(p.communicate()[0]) for p in processes]
    return sum(r["per_second"] for r in results)


def commands(options, tools, daemon, body):
    """Contenders take turns; per number the median of the rounds."""
    rows = []
    load = [tools["load"], "-p", str(daemon.port), "-t", daemon.secret, "-u", "/run", "-b", body, "-e", '"code":0']
    one, many = ["-n", str(options.runs), "-w", "5"], ["-n", str(options.runs * 3), "-w", "16", "-c", str(AT_ONCE)]
    for _ in range(options.rounds):
        bare = tools["measure"]([tools["spawn"], *one, "--", *SHELL])
        ours = tools["measure"]([*load, *one])
        everywhere = spawn_everywhere(tools["spawn"], options.runs * 3)
        together = tools["measure"]([*load, *many])
        rows.append({"bare_min_us": bare["min_us"], "bare_p50_us": bare["p50_us"], "run_min_us": ours["min_us"],
                     "run_p50_us": ours["p50_us"], "bare_per_second": everywhere,
                     "run_per_second": together["per_second"]})
    return {field: statistics.median(r[field] for r in rows) for field in rows[0]}


# ---- the proxy ----


def drain(port, seconds):
    """Bytes per second that one connection brings."""
    room, got = bytearray(BLOCK), 0
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.recv_into(room)  # the way is open
        begin = time.monotonic()
        while (now := time.monotonic()) - begin < seconds:
            got += s.recv_into(room)
    return got / (now - begin)


@contextlib.contextmanager
def running(command, **kw):
    with subprocess.Popen(command, **kw) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def socat(options, target):
    port = free_port()
    listen = f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr"
    with running(["socat", *options, listen, f"TCP:127.0.0.1:{target}"], stderr=subprocess.DEVNULL):
        def is_up():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
        harness.wait_until(is_up, "socat listens")
        yield port


def ask(daemon, verb, **body):
    response = daemon.request("POST", "/" + verb, json=body)
    assert response.status in (200, 201), response
    return response.json()


def proxies(options, daemon):
    """The same source of bytes, inside and outside, each behind what leads to it."""
    seconds, rows = (0.5 if options.quick else 2), []
    ask(daemon, "write_file", path="/workspace/source.py", content=SOURCE.replace("PORT", "9000"))
    ask(daemon, "start_process", cmd="exec python3 /workspace/source.py")
    ask(daemon, "bind_port", port="9000")
    ours = int(daemon.wait_record(event_type="listening")["proxy_port"])

    def inside_is_up():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ours), 5) as s:
            return s.recv(1)
    harness.wait_until(inside_is_up, "the source inside")
    with running([sys.executable, "-c", SOURCE.replace("PORT", "0")], stdout=subprocess.PIPE) as source, \
            contextlib.ExitStack() as stack:
        direct = int(source.stdout.readline())
        ways = {"without a proxy": direct}
        ways.update((name, stack.enter_context(socat(o, direct))) for name, o in SOCAT_BUFFERS.items())
        ways["ours, into the sandbox"] = ours
        for _ in range(max(options.rounds, 3)):
            rows.append({name: drain(port, seconds) for name, port in ways.items()})
    return {name: statistics.median(r[name] for r in rows) for name in rows[0]}


# ---- streams ----


def open_stream(daemon, ident, count):
    """Connections that follow a silent process; each has got its head."""
    request = (f"GET /process_logs_streaming?id={ident} HTTP/1.1\r\nHost: x\r\n"
               f"Authorization: Bearer {daemon.secret}\r\n\r\n").encode()
    streams = []
    for _ in range(count):
        s = socket.create_connection((daemon.host, daemon.port), 30)
        s.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += s.recv(4096)
        assert data.startswith(b"HTTP/1.1 200"), data
        streams.append(s)
    return streams


def idle_stream_kib(daemon, resident_kib):
    """What one more log stream costs the daemon while nothing is written."""
    ident = ask(daemon, "start_process", cmd="sleep 600")["id"]
    warm = open_stream(daemon, ident, 50)
    before = resident_kib(daemon.pid)
    streams = open_stream(daemon, ident, STREAMS)
    cost = (resident_kib(daemon.pid) - before) / STREAMS
    for s in warm + streams:
        s.close()
    return cost


# ---- all of it ----


def measure(options, tools):
    if not shutil.which("socat"):
        sys.exit("bench/run: socat is not installed (tools/install-deps bench)")
    with tempfile.TemporaryDirectory(prefix="sbx-bench-") as directory, tools["started"]() as daemon:
        body = pathlib.Path(directory, "true")
        body.write_text(json.dumps({"cmd": "true"}))
        found = {"commands": commands(options, tools, daemon, str(body))}
        found["proxies"] = proxies(options, daemon)
    return found


def show(found, verdict):
    c, p = found["commands"], found["proxies"]
    ratio, share = c["run_p50_us"] / c["bare_p50_us"], c["run_per_second"] / c["bare_per_second"]
    print("## `POST /run` of `true` in the default sandbox against a bare spawn of `sh -c true`\n")
    print(f"| | min ms | p50 ms | per second, {AT_ONCE} at once |\n|---|---|---|---|")
    for name, key in (("posix_spawn and wait", "bare"), ("`/run`", "run")):
        print(f"| {name} | {c[key + '_min_us'] / 1000:.2f} | {c[key + '_p50_us'] / 1000:.2f} "
              f"| {c[key + '_per_second']:.0f} |")
    print(f"\nBar: p50 at most 1.3 times that of a bare spawn: {ratio:.2f}, {verdict(ratio <= 1.3)}.")
    print(f"Bar: {AT_ONCE} at once, at least 75 % of spawn loops on all processors: {share * 100:.0f} %, "
          f"{verdict(share >= 0.75)}.\n")
    print("## The proxy into a sandbox\n")
    print("| one connection | GB/s |\n|---|---|")
    for name, rate in p.items():
        print(f"| {name} | {rate / 1e9:.2f} |")
    best = max(p[name] for name in SOCAT_BUFFERS)
    rate = p["ours, into the sandbox"]
    print(f"\nBar: at least 1 GB/s, or 70 % of socat: {rate / 1e9:.2f} GB/s, {rate / best * 100:.0f} %, "
          f"{verdict(rate >= 1e9 or rate >= 0.7 * best)}.\n")
