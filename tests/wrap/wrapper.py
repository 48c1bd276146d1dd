# SPDX-License-Identifier: MIT
"""Runs a language wrapper as the sandbox does, without a sandbox: frames over descriptor 3."""
import json
import os
import pathlib
import select
import socket
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
WRAP = TOP / "src/lang/wrap"
PYTHON = os.environ.get("SBX_TEST_PYTHON", "/usr/bin/python3")
NODE = os.environ.get("SBX_TEST_NODE", "/usr/bin/node")
DEADLINE_S = 60
CHANNEL = 3


def reserve_channel():
    """Nothing of ours may have the number that the program's end of the channel gets."""
    try:
        os.fstat(CHANNEL)
    except OSError:
        null = os.open(os.devnull, os.O_RDONLY)
        if null != CHANNEL:
            os.dup2(null, CHANNEL, inheritable=False)
            os.close(null)


def frame(kind, payload):
    data = payload if isinstance(payload, bytes) else payload.encode()
    return b"%s%08x" % (kind.encode(), len(data)) + data


def command(language):
    if language == "python":
        return [PYTHON, "-B", "-c", (WRAP / "python.py").read_text()]
    return [NODE, "-e", (WRAP / "javascript.js").read_text()]


class Outcome:
    """What a run left behind; frames are (kind, parsed payload, text), but for compiled code."""

    def __init__(self, code, out, err, raw):
        self.code, self.out, self.err = code, out.decode(), err.decode()
        self.frames, self.compiled, at = [], [], 0
        while at < len(raw):
            size = int(raw[at + 1:at + 9], 16)
            payload = raw[at + 9:at + 9 + size]
            if raw[at:at + 1] == b"K":
                assert not self.frames, "nothing is said before"
                self.compiled.append(payload)
            else:
                text = payload.decode()
                self.frames.append((raw[at:at + 1].decode(), json.loads(text), text))
            at += 9 + size
        assert at == len(raw), "the last frame is whole"

    def all(self, kind):
        return [value for k, value, _ in self.frames if k == kind]

    @property
    def value(self):
        assert self.code == 0, self.err
        values = self.all("R")
        assert len(values) == 1, (self.frames, self.err)
        return values[0]

    @property
    def text(self):
        return next(text for kind, _, text in self.frames if kind == "R")

    @property
    def error(self):
        errors = self.all("E")
        assert len(errors) == 1 and not self.all("R"), (self.frames, self.err)
        return errors[0]


def pump(process, channel, job, stdin):
    """Feeds and drains all streams at once, so that no side waits for another for ever."""
    poll = select.poll()
    got = {process.stdout.fileno(): [], process.stderr.fileno(): [], channel.fileno(): []}
    stdin_fd = process.stdin.fileno()
    todo = {channel.fileno(): memoryview(job), stdin_fd: memoryview(stdin)}
    for fd in got:
        poll.register(fd, select.POLLIN | (select.POLLOUT if fd in todo else 0))
    poll.register(stdin_fd, select.POLLOUT)
    os.set_blocking(stdin_fd, False)
    channel.setblocking(False)
    reading, end = set(got), time.monotonic() + DEADLINE_S
    while reading:
        left = end - time.monotonic()
        if left <= 0:
            process.kill()
            raise AssertionError(f"no end: {b''.join(got[process.stderr.fileno()])[-2000:]}")
        for fd, events in poll.poll(left * 1000):
            if events & (select.POLLOUT | select.POLLERR) and fd in todo:
                try:
                    todo[fd] = todo[fd][os.write(fd, todo[fd][:65536]):]
                except (BrokenPipeError, ConnectionResetError):
                    todo[fd] = b""
                if not todo[fd]:
                    del todo[fd]
                    if fd == stdin_fd:
                        poll.unregister(fd)
                        process.stdin.close()
                    else:
                        poll.modify(fd, select.POLLIN)
            if fd in reading and events & (select.POLLIN | select.POLLHUP):
                try:
                    chunk = os.read(fd, 1 << 20)
                except ConnectionResetError:
                    chunk = b""
                got[fd].append(chunk)
                if not chunk:
                    reading.discard(fd)
                    poll.unregister(fd)
    return [b"".join(chunks) for chunks in got.values()]


def run(language, code, event=None, stdin=b"", cwd="/tmp", env=None, argv=None, known=None, **told):
    told = {"execution_id": "x-1", "function_name": "handler", "memory_limit_in_mb": 512,
            "remaining_ms": 30000, "result_max": 1 << 30, **told}
    job = frame("C", code)
    if known is not None:
        job += frame("K", known)
    if event is not None:
        job += frame("V", event if isinstance(event, (str, bytes)) else json.dumps(event))
    job += frame("X", json.dumps(told)) + frame("G", "")
    reserve_channel()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            argv or command(language), cwd=cwd, close_fds=False,
            preexec_fn=lambda: os.dup2(theirs.fileno(), CHANNEL),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd), "TMPDIR": "/tmp",
                 "LANG": "C.UTF-8", **(env or {})})
        theirs.close()
        with process:
            raw_out, raw_err, raw = pump(process, ours, job, stdin)
            return Outcome(process.wait(DEADLINE_S), raw_out, raw_err, raw)
