# SPDX-License-Identifier: MIT
"""A daemon whose system calls fail on demand, and requests that notice when that weakens a wall.

tests/fault/inject.c does the failing; it lets the unchanged programs run and answers chosen system
calls with an error. A scenario here is one request: its answer is right, with the same walls around
the program as without the fault, or it is an error in words. Everything else is a finding.
"""
import errno
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import tempfile

import harness
import koyeb

INJECTOR = harness.BUILD / "tests" / "fault" / "fault-inject"
TIMEOUT_S = int(5 * harness.SLOW)    # of a program; one that runs into it was forgotten by somebody
PATIENCE_S = int(20 * harness.SLOW)  # for an answer
ROLES = ("launcher", "zygote", "keeper", "confine", "init", "helper", "process")

# What each call usually fails with. EMFILE for the rest: most of them make a descriptor.
ERRORS = {
    "capset": "EPERM", "chdir": "EACCES", "clone": "EAGAIN", "clone3": "EAGAIN", "close_range": "ENOMEM",
    "brk": "ENOMEM", "connect": "EAGAIN", "epoll_ctl": "ENOMEM", "epoll_wait": "EINTR", "execve": "ENOMEM", "execveat": "ENOMEM",
    "fchmod": "EPERM", "fchown": "EPERM", "fchownat": "EPERM", "fsconfig": "ENOMEM", "fsmount": "ENOMEM",
    "fsopen": "ENOMEM", "fstat": "EIO", "fstatfs": "EIO", "ftruncate": "ENOSPC", "getdents64": "EIO",
    "getrandom": "EINTR", "getrusage": "EFAULT", "ioctl": "ENOMEM", "kill": "EPERM", "lseek": "EINVAL",
    "madvise": "ENOMEM", "mkdir": "ENOSPC", "mkdirat": "ENOSPC", "mmap": "ENOMEM", "mount": "ENOMEM",
    "mount_setattr": "ENOMEM", "move_mount": "ENOMEM", "mprotect": "ENOMEM", "mremap": "ENOMEM", "newfstatat": "EIO",
    "pidfd_send_signal": "EPERM", "pivot_root": "EBUSY", "poll": "ENOMEM", "ppoll": "ENOMEM", "prctl": "EPERM",
    "pread64": "EIO", "prlimit64": "EPERM", "pwrite64": "ENOSPC", "read": "EIO", "readlink": "EIO",
    "recvfrom": "ECONNRESET", "recvmsg": "ENOMEM", "renameat2": "ENOSPC", "sched_getaffinity": "EINVAL",
    "sched_setaffinity": "EINVAL", "seccomp": "ENOMEM", "sendmsg": "ENOBUFS", "sendto": "ENOBUFS",
    "setdomainname": "EPERM", "setgroups": "EPERM", "sethostname": "EPERM", "setns": "EPERM", "setresgid": "EPERM",
    "setresuid": "EAGAIN", "setsid": "EPERM", "setsockopt": "ENOBUFS", "statfs": "EIO", "statx": "EIO",
    "symlinkat": "ENOSPC", "umount2": "EBUSY", "unlinkat": "EBUSY", "unshare": "ENOSPC", "wait4": "EINTR",
    "write": "ENOSPC", "writev": "ENOBUFS",
}


class Faulty:
    """A daemon below the injector."""

    def __init__(self, first="disarm", **env):
        self.folder = tempfile.TemporaryDirectory(prefix="sbx-fault-")
        path = str(pathlib.Path(self.folder.name) / "control")
        before = set(supervisors())
        self.daemon = harness.start_daemon(
            args=[path, first, str(harness.BUILD / "sandbox-executor")], binary=INJECTOR,
            **{"LOG_LEVEL": "info", "DEFAULT_TIMEOUT": TIMEOUT_S, **env})
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
            self.daemon.stop()
        finally:
            self.control.close()
            harness.wait_until(lambda: not harness.is_alive(self.supervisor), "the supervisor has ended")
            harness.live.discard(self.supervisor)
            self.folder.cleanup()


def supervisors():
    return [p for p in harness.pids() if harness.read_proc(p, "comm").strip() == b"fault-inject"]


# ---- requests ----


class Finding(Exception):
    """An answer that is neither right nor an error in words."""


def error_words(response):
    """The words of a refusal."""
    try:
        words = response.json().get("error") or response.json().get("message") or response.json().get("detail")
    except (ValueError, AttributeError):
        words = None
    if response.status < 500 or not words:
        raise Finding(f"neither an answer nor an error: {response}")
    return json.dumps(words)


# What a program sees of its walls. Pids, users and mount ids differ from run to run.
SEEN = ("Groups", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
        "SigBlk", "SigIgn", "Umask")

SHELL = r'''
mapfile -t status </proc/$$/status; mapfile -t limits </proc/$$/limits; mapfile -t mounts </proc/$$/mountinfo
read -r oom </proc/$$/oom_score_adj; read -r -a stat </proc/$$/stat
printf 'status %s\n' "${status[@]}"; printf 'limit %s\n' "${limits[@]}"
echo "oom $oom"; echo "host $HOSTNAME"; echo "session ${stat[5]}"; echo "at $PWD"
printf 'fd %s\n' /proc/$$/fd/* /proc/1/fd/*
for m in "${mounts[@]}"; do set -- $m; echo "mount $4 $5 $6"; done
echo made >file; echo end
'''

PYTHON = r'''
import os
def lines(path):
    with open(path) as f:
        return f.read().splitlines()
def is_open(n):
    try:
        return os.get_inheritable(n) or True
    except OSError:
        return False
def handler(event):
    fds = [n for n in range(64) if is_open(n) or is_open(n)]
    out = ["status " + l for l in lines("/proc/self/status")] + ["limit " + l for l in lines("/proc/self/limits")]
    out += ["oom " + lines("/proc/self/oom_score_adj")[0], "host " + os.uname().nodename, f"session {os.getsid(0)}",
            "at " + os.getcwd(), f"fds {fds}", f"init {os.access('/proc/1/fd', os.R_OK)}"]
    out += ["mount " + " ".join(l.split()[3:6]) for l in lines("/proc/self/mountinfo")]
    with open("file", "w") as f:
        f.write("made")
    return out + ["end"]
'''


JAVASCRIPT = r'''
const fs = require('fs');
const lines = (path) => fs.readFileSync(path, 'utf8').split('\n').filter(Boolean);
exports.handler = () => {
    const out = lines('/proc/self/status').map((l) => 'status ' + l);
    out.push(...lines('/proc/self/limits').map((l) => 'limit ' + l));
    out.push('oom ' + lines('/proc/self/oom_score_adj')[0], 'host ' + require('os').hostname(), 'at ' + process.cwd());
    out.push(...lines('/proc/self/mountinfo').map((l) => 'mount ' + l.split(' ').slice(3, 6).join(' ')));
    fs.writeFileSync('file', 'made');
    return [...out, 'end'];
}
'''


def walls(lines):
    """Sorted, and without what differs anyway."""
    if not lines or lines[-1] != "end":
        raise Finding(f"the program did not come to its end: {lines}")
    kept = [re.sub(r"/proc/\d+/", "/proc/PID/", l) for l in lines
            if not l.startswith("status ") or l.split()[1].rstrip(":") in SEEN]
    if harness.JAIL == "subprocess":  # places and numbers of the host, others each time
        kept = [re.sub(r"/tmp/sandbox-executor-\w+/[\d-]+", "RUN", l) for l in kept if not l.startswith("session ")]
    # Less may be writable than usual; what is, is said in `writable`.
    return sorted(l for l in kept if not re.match("mount / /usr(/local)? rw", l))


TINY = {"python": "def handler(e): return 1", "javascript": "exports.handler = () => 1"}


class Walled:
    """A way in whose walls are seen from inside."""

    def __init__(self):
        self.right = None  # the walls without a fault

    def warm(self, daemon):
        for _ in range(3):
            assert self.answer(daemon)[0] == "right"

    def compare(self, seen):
        self.right = self.right or seen
        if seen != self.right:
            more, less = sorted(set(seen) - set(self.right)), sorted(set(self.right) - set(seen))
            raise Finding(f"other walls: {more} instead of {less}")

    @staticmethod
    def delete(daemon, at):
        gone = daemon.request("DELETE", at, timeout=PATIENCE_S)
        if gone.status not in (200, 204, 404):
            raise Finding(f"cannot be deleted: {gone}")


class Handler(Walled):
    """POST /execute."""

    def __init__(self, language, code, lines):
        super().__init__()
        self.language, self.code, self.lines = language, code, lines

    def warm(self, daemon):
        """What is made once is made, and a warmed interpreter is used where there is one."""
        def is_warm():  # that first: whoever comes right after another finds none that is prepared
            warm = self.language not in TINY or daemon.execute(TINY[self.language], self.language)["isolation"]["warm"]
            assert self.answer(daemon)[0] == "right"
            self.right = None
            return warm
        harness.wait_until(is_warm, "a warmed interpreter")
        assert self.answer(daemon)[0] == "right" and self.answer(daemon)[0] == "right"

    def answer(self, daemon):
        """("right", "") or ("error", words)."""
        body = {"code": self.code, "language": self.language}
        response = daemon.request("POST", "/execute", json=body, timeout=PATIENCE_S)
        if response.status != 200:
            return "error", error_words(response)
        result = response.json()
        if result.get("stdout_truncated") or result.get("stderr_truncated"):
            return "error", "truncated"
        if result["status"] == "success":
            return self.check(result)
        words = result["stderr"] or result.get("error")
        if result["status"] == "timeout" or not words:
            raise Finding(f"an end without a reason: {result}")
        return "error", words

    def check(self, result):
        seen = walls(self.lines(result))
        self.compare(seen)
        if result["artifacts"] != ["file"] and not result.get("artifacts_left_out"):
            raise Finding(f"artifacts are missing without a word: {result}")
        return "right", ""


class Sandboxes(Walled):
    """A persistent sandbox: made, used, deleted."""

    def answer(self, daemon):
        made = daemon.request("POST", "/v1/sandboxes", json={}, timeout=PATIENCE_S)
        if made.status != 201:
            return "error", error_words(made)
        at = f"/v1/sandboxes/{made.json()['id']}"
        try:
            return self.use(koyeb.Sandbox(daemon, at))
        finally:
            self.delete(daemon, at)

    def use(self, box):
        path = "/workspace/file"
        for verb, body, right in (("make_dir", {"path": "/workspace/a/b"}, {"success": True}),
                                  ("write_file", {"path": path, "content": "text"}, {"success": True}),
                                  ("read_file", {"path": path}, {"content": "text"}),
                                  ("write_file", {"path": "/workspace/program", "content": SHELL}, {"success": True}),
                                  ("delete_dir", {"path": "/workspace/a"}, {"success": True})):
            response = box.post(verb, body, timeout=PATIENCE_S)
            if response.status != 200 or b'"error"' in response.body:
                return "error", self.words(response)
            if response.json() != right:
                raise Finding(f"{verb}: {response}")
        ran = box.post("run", {"cmd": "bash program"}, timeout=PATIENCE_S)
        return self.check(ran.json()) if ran.status == 200 else ("error", self.words(ran))

    @staticmethod
    def words(response):
        """This family also fails with 200 and with 4xx."""
        text = response.text
        said = json.loads(text) if text.startswith("{") else {"error": text}
        words = said.get("error") or said.get("error_detail")
        if not words:
            raise Finding(f"neither an answer nor an error: {response}")
        return words

    def check(self, result):
        if result["code"] != 0:
            if not result["stderr"] and not result.get("error"):
                raise Finding(f"an end without a reason: {result}")
            return "error", result["stderr"] or result["error"]
        seen = [l for l in walls(result["stdout"].splitlines()) if not l.startswith("session ")]
        self.compare(seen)
        return "right", ""


class Commands(Sandboxes):
    """The same in one sandbox, for as long as it lives."""

    def __init__(self):
        super().__init__()
        self.at = None

    def answer(self, daemon):
        if self.at is None or daemon.request("GET", self.at).status != 200:
            made = daemon.request("POST", "/v1/sandboxes", json={}, timeout=PATIENCE_S)
            if made.status != 201:
                return "error", error_words(made)
            self.at = f"/v1/sandboxes/{made.json()['id']}"
        return self.use(koyeb.Sandbox(daemon, self.at))


class Sessions(Walled):
    """A function session: its code is loaded, called twice with a file in between, and it is deleted."""

    def answer(self, daemon):
        body = {"language": "python", "code": PYTHON, "timeout": TIMEOUT_S}
        made = daemon.request("POST", "/v1/sessions", json=body, timeout=PATIENCE_S)
        if made.status != 201:
            return "error", self.refusal(made)
        at = f"/v1/sessions/{made.json()['id']}"
        try:
            return self.use(daemon, at)
        finally:
            self.delete(daemon, at)

    def use(self, daemon, at):
        kinds = []
        for files in ({}, {"given": "text"}):
            body = {"functionName": "handler", "args": [None], "options": {"files": files}}
            called = daemon.request("POST", f"{at}/call", json=body, timeout=PATIENCE_S)
            if called.status != 200:
                return "error", self.refusal(called)
            kinds.append(self.check(called.json()))
        return max(kinds, key=lambda kind: kind[0] == "error")

    def check(self, result):
        if not result["success"]:
            if result["status"] == "timeout" or not result["error"]["message"]:
                raise Finding(f"an end without a reason: {result}")
            return "error", result["error"]["message"]
        seen = walls(result["result"])
        self.compare(seen)
        return "right", ""

    @staticmethod
    def refusal(response):
        """Code that could not be loaded is 422 with the result of the attempt."""
        if response.status != 422:
            return error_words(response)
        error = response.json()["error"]
        if not error["message"]:
            raise Finding(f"neither an answer nor an error: {response}")
        return error["message"]


def keepers(daemon):
    return [p for p in daemon.tree() if harness.read_proc(p, "comm").strip() == b"sandbox-keeper"
            and harness.is_alive(p)]


def kill_keepers(daemon):
    """So that the next request needs a slot that does not exist yet."""
    old = keepers(daemon)
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    # A dead one has closed its socket, which the launcher looks at before it looks at the next request.
    harness.wait_until(lambda: not any(harness.is_alive(p) for p in old), "they are dead")


SCENARIOS = {
    # name: (settings, request, before each)
    "shell": ({"POOL_EXEC": 0}, lambda: Handler("shell", SHELL, lambda r: r["stdout"].splitlines()), None),
    "birth": ({"POOL_EXEC": 0}, lambda: Handler("shell", SHELL, lambda r: r["stdout"].splitlines()), kill_keepers),
    "python": ({"POOL_EXEC": 0, "POOL_PYTHON": 1}, lambda: Handler("python", PYTHON, lambda r: r["return_value"]), None),
    "javascript": ({"POOL_EXEC": 0, "POOL_NODE": 1, "NODE_ZYGOTE": "true"},
                   lambda: Handler("javascript", JAVASCRIPT, lambda r: r["return_value"]), None),
    "commands": ({"POOL_EXEC": 0}, Commands, None),
    "sandbox": ({"POOL_EXEC": 0}, Sandboxes, None),
    "session": ({"POOL_EXEC": 0, "POOL_PYTHON": 1}, Sessions, None),
}
HTTP_ERRORS = (http.client.HTTPException, OSError)
