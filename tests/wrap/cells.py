# SPDX-License-Identifier: MIT
"""A program of src/lang/cells without a sandbox: cells in, events out."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

# The build has the libraries of cells_javascript.js beside it.
CELLS = pathlib.Path(os.environ["SBX_BUILD"]).resolve()
COMMANDS = {
    "python": ["/usr/bin/python3", str(CELLS / "cells_python.py")],
    "javascript": ["node", str(CELLS / "cells_javascript.js")],
    "typescript": ["node", str(CELLS / "cells_javascript.js"), "--typescript"],
    "bash": ["/usr/bin/bash", "--noprofile", "--rcfile", str(CELLS / "cells_bash.sh"), "-i"],
}
HEAD = 9


class Cells:
    """One live interpreter."""

    def __init__(self, language, folder, **env):
        ours, theirs = socket.socketpair()
        ours.settimeout(120)
        self.language, self.sock, self.count, self.begun = language, ours, 0, 0
        # Descriptor 3, whatever number the socket has here.
        become = f"import os; os.dup2({theirs.fileno()}, 3); c = {COMMANDS[language]!r}; os.execvp(c[0], c)"
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", become], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **env})
        theirs.close()
        self.frames = ours.makefile("rb")
        kind, self.ready = self.frame()
        assert kind == "Y"

    def frame(self):
        try:
            head = self.frames.read(HEAD)
        except ConnectionResetError:  # it went with a cell unread
            return None, None
        if len(head) < HEAD:
            return None, None
        text = self.frames.read(int(head[1:], 16))
        assert text.isascii()
        return chr(head[0]), json.loads(text)

    def send(self, code, **env):
        self.count += 1
        token = f"t{self.count}"
        text = (f"{token}\n{code}" if self.language == "bash"
                else json.dumps({"id": token, "code": code, "env": env})).encode()
        self.sock.sendall(b"P%08x" % len(text) + text)

    def answer(self):
        """The events of the next cell, then its status; None: the interpreter is gone."""
        events = []
        while True:
            kind, value = self.frame()
            if kind is None:
                return [*events, None]
            if kind == "B":
                self.begun = value["count"]
            elif kind == "R":
                return [*events, value["status"]]
            else:
                value.pop("id")
                events.append(value)

    def run(self, code, **env):
        self.send(code, **env)
        return self.answer()

    def wait_begun(self):
        kind, _ = self.frame()
        assert kind == "B"

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def interrupted(self):
        """The answer of the cell that runs, which gets SIGINT until it has ended, as from the daemon."""
        done = threading.Event()

        def send():
            while not done.wait(0.5):
                self.interrupt()

        sender = threading.Thread(target=send)
        self.interrupt()
        sender.start()
        try:
            return self.answer()
        finally:
            done.set()
            sender.join()

    def value(self, code, **env):
        """text/plain of the last expression."""
        *events, status = self.run(code, **env)
        assert status == "ok", events
        return next((e["data"]["text/plain"] for e in events if e["type"] == "display" and e["main"]), None)

    def printed(self, code, stream="stdout"):
        *events, status = self.run(code)
        assert status == "ok", events
        return [e["text"] for e in events if e["type"] == stream]

    def error(self, code):
        *events, status = self.run(code)
        assert status == "error", events
        return events[-1]

    def close(self):
        self.frames.close()
        self.sock.close()
        try:
            out, err = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError("the interpreter did not end with its channel") from None
        return out.decode(), err.decode()
