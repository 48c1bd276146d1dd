# SPDX-License-Identifier: MIT
"""Processes of a sandbox: E2B's commands.run("true") against a bare spawn, and a terminal at full speed against a local one."""
import json
import os
import pty
import socket
import statistics
import struct
import time

import sockets

LOGIN = ["/bin/bash", "-l", "-c", "true"]
BARE = ["/bin/bash", "-c", "true"]  # without the host's /etc/profile, which a sandbox does not have
FLOOD = "stty -echo; yes | head -c {}"
MIB = 1 << 20


# ---- commands ----


class Commands:
    """Starts commands as E2B's SDKs do, on one kept connection."""

    def __init__(self, daemon):
        made = daemon.request("POST", "/v2/sandboxes", json={"templateID": "base", "timeout": 3600},
                              headers={"X-API-Key": daemon.secret}).json()
        message = json.dumps({"process": {"cmd": LOGIN[0], "args": LOGIN[1:]}, "stdin": False}).encode()
        body = b"\0" + struct.pack(">I", len(message)) + message
        head = (f"POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {made['sandboxID']}\r\n"
                f"E2b-Sandbox-Port: 49983\r\nX-Access-Token: {made['envdAccessToken']}\r\n"
                f"Content-Type: application/connect+json\r\nContent-Length: {len(body)}\r\n\r\n")
        self.request = head.encode() + body
        self.socket = socket.create_connection((daemon.host, daemon.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self):
        self.socket.sendall(self.request)
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += self.socket.recv(65536)
        assert b'"exitCode":0' in got, got


def p50_us(commands, runs):
    took = []
    for _ in range(runs):
        begin = time.perf_counter()
        commands.run()
        took.append(time.perf_counter() - begin)
    return statistics.median(took) * 1e6


def commands(options, tools, daemon):
    runs, rows, ours = max(options.runs // 4, 50), [], Commands(daemon)
    p50_us(ours, 10)
    for _ in range(options.rounds):
        bare = tools["measure"]([tools["spawn"], "-n", str(runs), "-w", "5", "--", *BARE])["p50_us"]
        rows.append((bare, p50_us(ours, runs)))
    return {"bare_p50_us": statistics.median(r[0] for r in rows), "run_p50_us": statistics.median(r[1] for r in rows)}


# ---- terminals ----


def local_terminal(size):
    """Bytes per second of the same program in a terminal of this host, read in large pieces."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv("/bin/sh", ["sh", "-c", FLOOD.format(size)])
    begin, got = time.monotonic(), 0
    try:
        while piece := os.read(master, 65536):
            got += len(piece)
    except OSError:
        pass  # the other end is closed
    took = time.monotonic() - begin
    os.close(master)
    os.waitpid(pid, 0)
    assert got >= size, got
    return got / took


def our_terminal(daemon, path, size):
    with sockets.WebSocket(daemon, f"{path}/terminals?command=" + FLOOD.format(size).replace(" ", "%20")) as ws:
        begin, got = time.monotonic(), 0
        while piece := ws.socket.recv(MIB):
            got += len(piece)
            if b"\"end\"" in piece[-4096:]:
                break
        took = time.monotonic() - begin
    assert got >= size, got
    return got / took


def terminals(options, daemon):
    size, rows = (20 if options.quick else 100) * MIB, []
    path = "/v1/sandboxes/default"
    for _ in range(min(options.rounds, 3)):
        rows.append((local_terminal(size), our_terminal(daemon, path, size)))
    return {"local": statistics.median(r[0] for r in rows), "ours": statistics.median(r[1] for r in rows)}


# ---- all of it ----


def measure(options, tools):
    with tools["started"]() as daemon:
        return {"commands": commands(options, tools, daemon), "terminals": terminals(options, daemon)}


def show(found, verdict):
    c, t = found["commands"], found["terminals"]
    ratio, share = c["run_p50_us"] / c["bare_p50_us"], t["ours"] / t["local"]
    print("## Processes\n")
    print("| | p50 ms |\n|---|---|")
    print(f"| posix_spawn of `bash -c true` and wait | {c['bare_p50_us'] / 1000:.2f} |")
    print(f"| E2B's `commands.run('true')` (`bash -l -c true`), over HTTP | {c['run_p50_us'] / 1000:.2f} |")
    print(f"\nBar: at most 3 times a bare spawn: {ratio:.2f}, {verdict(ratio <= 3)}.\n")
    print("| `yes` in a terminal | MB/s |\n|---|---|")
    print(f"| of this host | {t['local'] / 1e6:.0f} |")
    print(f"| of a sandbox, over a WebSocket | {t['ours'] / 1e6:.0f} |")
    print(f"\nBar: at least half of a local one: {share * 100:.0f} %, {verdict(share >= 0.5)}.\n")
