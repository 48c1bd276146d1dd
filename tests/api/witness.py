# SPDX-License-Identifier: MIT
"""Things of the host that an attack may touch, and an eye on each of them."""
import base64
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import tty

import harness

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "selftest"
ROW = re.compile(r'^ATTACK\("([^"]+)",\s*(\w+), (\w+), ([^,]+), ([^,]+), (\w+), ([^,]+), (\w+), "(.*)"\)$', re.M)


class Row:
    """One row of src/selftest/attacks.def."""

    def __init__(self, match):
        self.id, self.group, self.program, self.traits, ends, self.shown, flags, self.eye, self.title = match.groups()
        self.ends = re.findall(r"END_(\w+)", ends)
        self.flags = set(flags.split(" | ")) - {"0"}

    def __repr__(self):
        return self.id


ROWS = [Row(m) for m in ROW.finditer((SOURCE / "attacks.def").read_text())]


def program(row):
    """The text of a Python program, as the selftest puts it together."""
    parts = ("common.py", row.program.removeprefix("PY_").lower() + ".py", "tail.py")
    return "".join((SOURCE / "programs" / part).read_text() for part in parts)


def probe():
    return (harness.BUILD / "src" / "sandbox-probe").read_bytes()


def probe_stub(row, event):
    """Python that brings the probe along and becomes it."""
    text = base64.b64encode(probe()).decode()
    args = ["/tmp/probe", row.id, event["mark"], event["dir"], str(event["victim"])]
    return (f"import base64, os\ndef handler(event):\n    with open('/tmp/probe', 'wb') as f:\n"
            f"        f.write(base64.b64decode('{text}'))\n    os.chmod('/tmp/probe', 0o755)\n"
            f"    pid = os.fork()\n    if pid == 0:\n        os.closerange(3, 64)\n        os.execv('/tmp/probe', {args!r})\n"
            f"    status = os.waitpid(pid, 0)[1]\n"
            f"    if os.WIFSIGNALED(status): print('KILLED', os.WTERMSIG(status))\n    return None\n")


class Witness:
    def __init__(self):
        self.mark = "m" + secrets.token_hex(6)
        self.secret = secrets.token_hex(18)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="sbx-witness-"))
        self.dir.chmod(0o1777)
        self.plant()
        self.terminal = os.openpty()
        tty.setraw(self.terminal[1])
        os.fchmod(self.terminal[1], 0o666)
        os.set_blocking(self.terminal[0], False)
        self.listeners = {}
        self.listen("tcp", socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0))
        self.listen("udp", socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", 0))
        self.listen("abstract", socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.mark)
        self.listen("door", socket.AF_UNIX, socket.SOCK_STREAM, str(self.dir / "door"))
        self.listen("letterbox", socket.AF_UNIX, socket.SOCK_DGRAM, str(self.dir / "letterbox"))
        self.victim = subprocess.Popen(["victim-" + self.mark, "100000"], executable="/bin/sleep",
                                       env={"SELFTEST_SECRET": self.secret})
        harness.live.add(self.victim.pid)
        self.places = [pathlib.Path(p) / self.mark for p in
                       ("/usr/lib", "/etc", "/bin", "/var/tmp", "/tmp", "/dev/shm", "/dev", "/")]

    def plant(self):
        for name, mode in (("secret", 0o644), ("writable", 0o666), ("removable", 0o666)):
            (self.dir / name).write_text(self.secret)
            (self.dir / name).chmod(mode)

    def listen(self, name, family, kind, address):
        s = socket.socket(family, kind)
        s.bind(address)
        if kind == socket.SOCK_STREAM:
            s.listen()
        s.setblocking(False)
        if isinstance(address, str) and address[0] == "/":
            os.chmod(address, 0o777)
        self.listeners[name] = s

    def event(self, row, **more):
        ports = {n: self.listeners[n].getsockname()[1] for n in ("tcp", "udp")}
        return {"attack": row.id, "phase": "look", "previous": "", "mark": self.mark, "abstract": self.mark,
                "dir": str(self.dir), "victim": self.victim.pid, "tcp6": ports["tcp"], "shm": 0x5b5e20, "patience": 6,
                "programs": str(harness.BUILD), "terminal": os.ttyname(self.terminal[1]),
                **ports, **more}

    def touched(self, text=""):
        """What has been touched, in words."""
        seen = []
        if self.secret in text:
            seen.append("the secret was read")
        names = {p.name: p.read_text() for p in self.dir.iterdir() if p.is_file()}
        if names != dict.fromkeys(("secret", "writable", "removable"), self.secret):
            seen.append(f"files: {sorted(names)}")
        seen += [f"{p} exists" for p in self.places if p.exists()]
        for name, s in self.listeners.items():
            try:
                s.accept() if s.type == socket.SOCK_STREAM else s.recv(1)
                seen.append(f"{name} was reached")
            except BlockingIOError:
                pass
        try:
            os.read(self.terminal[0], 256)
            seen.append("a terminal of the host was written to")
        except BlockingIOError:
            pass
        state = harness.stat_fields(self.victim.pid)
        if self.victim.poll() is not None or not state or state[0] == "T":
            seen.append("the victim was killed or stopped")
        if harness.processes_with(self.mark):
            seen.append("a process outlived its run")
        return seen

    def close(self):
        for s in self.listeners.values():
            s.close()
        for fd in self.terminal:
            os.close(fd)
        self.victim.send_signal(signal.SIGKILL)
        self.victim.wait()
        harness.live.discard(self.victim.pid)
        shutil.rmtree(self.dir, ignore_errors=True)
