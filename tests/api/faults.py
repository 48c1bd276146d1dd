# SPDX-License-Identifier: MIT
"""A daemon whose system calls fail on demand: what tests/fault/inject.c understands, in Python."""
import errno
import pathlib
import socket
import tempfile

import harness

INJECTOR = harness.BUILD / "tests" / "fault" / "fault-inject"


class Faulty:
    """A daemon below the injector."""

    def __init__(self, **env):
        self.folder = tempfile.TemporaryDirectory(prefix="sbx-fault-")
        path = str(pathlib.Path(self.folder.name) / "control")
        before = set(supervisors())
        self.daemon = harness.start_daemon(
            args=[path, str(harness.BUILD / "sandbox-executor")], binary=INJECTOR, LOG_LEVEL="info", **env)
        self.supervisor = next(p for p in supervisors() if p not in before)
        harness.live.add(self.supervisor)
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(harness.DEADLINE)
        self.control.connect(path)

    def say(self, line):
        self.control.sendall(line.encode())
        return self.control.recv(65536).decode()

    def arm(self, role, call, nth, error, how="once"):
        number = getattr(errno, error)
        assert self.say(f"arm {role} {call} {nth} {number} {how}") == "ok", (role, call)

    def disarm(self):
        """How often it failed."""
        return int(self.say("disarm"))

    def count(self):
        assert self.say("count") == "ok"

    def counts(self):
        """{(role, call): times} since count()."""
        rows = (line.split() for line in self.say("counts").splitlines())
        return {(row[0], row[1]): int(row[2]) for row in rows if row}

    def restarts(self):
        return sum(r.get("event_type") == "launcher_restarted" for r in self.daemon.records())

    def stop(self):
        """The daemon as every other one; then the supervisor ends by itself."""
        try:
            if self.daemon.process.poll() is not None:
                self.daemon.stopped = True
            self.daemon.stop()
        finally:
            self.control.close()
            harness.wait_until(lambda: not harness.is_alive(self.supervisor), "the supervisor has ended")
            harness.live.discard(self.supervisor)
            self.folder.cleanup()


def supervisors():
    return [p for p in harness.pids() if harness.read_proc(p, "comm").strip() == b"fault-inject"]
