# SPDX-License-Identifier: MIT
"""A real daemon under test, and a witness on the host's side.

Tests talk to the daemon over HTTP only. What they want to know about processes, mounts and
control groups they ask the host's kernel, never the daemon. Waiting is always for a condition,
with a deadline that is generous because it only matters when something is broken.
"""
import atexit
import contextlib
import ctypes
import functools
import http.client
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

DEADLINE = float(os.environ.get("SBX_DEADLINE") or 30)  # seconds; reached only by a failure
HTTP_TIMEOUT = max(60, 2 * DEADLINE)
SLOW = max(1, DEADLINE / 30)  # how many times slower than usual the machine may be
PATIENCE = int(20 * SLOW)  # seconds for a program that has no reason to hurry
ROOT = os.geteuid() == 0
BUILD = pathlib.Path(os.environ.get("SBX_BUILD") or pathlib.Path(__file__).parents[2] / "build").resolve()
WASM_RUNTIMES = pathlib.Path(__file__).resolve().parents[2] / "build-deps" / "wasm"
# Where an ordinary user may make control groups, one for each daemon; unset: nowhere.
CGROUPS = os.environ.get("SBX_CGROUPS")
FULL = ROOT or bool(CGROUPS)  # may control groups be used?
JAIL = os.environ.get("SBX_ISOLATION") or "native"  # the jail of every daemon that does not ask for another
CANARY = "canary-" + secrets.token_hex(16)  # in the daemon's environment; must never be seen inside
POLL_MAX = 0.05  # seconds
SANITIZER_MARKS = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "UndefinedBehaviorSanitizer")


def wait_until(condition, what, timeout=DEADLINE, interval=0.005):
    """Polls until condition() is true and returns its value; fails with `what` otherwise.

    Looks often at first, then less: a look may cost a walk through all processes.
    """
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {timeout} s: {what() if callable(what) else what}"
        time.sleep(interval)
        interval = max(interval, min(interval * 1.25, POLL_MAX))


# ---- what the host's kernel says ----


def become_subreaper():
    """Whatever a dead daemon leaves behind becomes our child, so it cannot hide."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_proc(pid, name):
    """A file of /proc/PID, empty when it is gone. All processes of the host are looked at this way, often."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    parts = []
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(parts)


def stat_fields(pid):
    """The fields of /proc/PID/stat after the name, or None when it is gone."""
    text = read_proc(pid, "stat").decode()
    return text[text.rindex(")") + 2:].split() if text else None


def is_alive(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


def children_by_parent():
    table = {}
    for pid in pids():
        fields = stat_fields(pid)
        if fields:
            table.setdefault(int(fields[1]), []).append(pid)
    return table


def descendants(pid):
    table, found, todo = children_by_parent(), [], [pid]
    while todo:
        below = table.get(todo.pop(), [])
        found += below
        todo += below
    return found


def processes_with(marker):
    """Live processes that go by the name of the marker, seen from the host."""
    name = marker.encode() + b"\0"
    return [p for p in pids() if read_proc(p, "cmdline").startswith(name) and is_alive(p)]


def traces_of(marker):
    """Live processes that carry the marker anywhere among their arguments."""
    needle = marker.encode()
    return [p for p in pids() if needle in read_proc(p, "cmdline") and is_alive(p)]


def marker():
    return "mark-" + secrets.token_hex(8)


def open_files(pid):
    try:
        return sorted(os.listdir(f"/proc/{pid}/fd"), key=int)
    except OSError:
        return []


def mounts(pid):
    return read_proc(pid, "mountinfo").decode().splitlines()


def cgroup_points():
    """Where the host has mounted its control groups: pairs of controller ("" for v2) and directory."""
    points = {}
    for line in mounts("self"):
        head, _, tail = line.partition(" - ")
        kind, _, options = tail.split(" ", 2)
        if kind == "cgroup2":
            points[""] = head.split()[4]
        elif kind == "cgroup":
            for option in options.split()[-1].split(","):
                points[option] = head.split()[4]
    return tuple(points.items())


@functools.lru_cache(maxsize=4096)
def parse_cgroups(text, points):
    points, found = dict(points), {}
    for line in text.decode().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in points:
                found[controller] = pathlib.Path(points[controller] + path)
    return found


def cgroup_dirs(pid, points=None):
    """Directories of the control groups a process is in (v1 and v2); points: cgroup_points(), if known."""
    return parse_cgroups(read_proc(pid, "cgroup"), cgroup_points() if points is None else points)


def namespace(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


# ---- HTTP ----


class Response:
    def __init__(self, raw):
        self.status = raw.status
        self.headers = raw.headers
        self.body = raw.read()

    @property
    def text(self):
        return self.body.decode("utf-8")

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:2000]!r}>"


class Connection:
    """One kept connection."""

    def __init__(self, daemon, timeout=HTTP_TIMEOUT):
        self.daemon = daemon
        self.http = http.client.HTTPConnection(daemon.host, daemon.port, timeout=timeout)

    def send(self, method, path, json=None, headers=None, body=None):
        body, headers = self.daemon.prepare(json, headers, body)
        try:
            self.http.request(method, path, body=body, headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the body was complete: the answer is there all the same

    def receive(self):
        return Response(self.http.getresponse())

    def request(self, method, path, **kw):
        self.send(method, path, **kw)
        return self.receive()

    def execute(self, code, language="python", **fields):
        response = self.request("POST", "/execute", json={"code": code, "language": language, **fields})
        assert response.status == 200, response
        return response.json()

    def close(self):
        self.http.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# ---- the daemon ----


class StartFailed(Exception):
    def __init__(self, daemon):
        self.status = daemon.process.returncode
        self.stdout, self.stderr = daemon.stdout_text(), daemon.log_text()
        super().__init__(f"exit status {self.status}\n{self.stdout}\n{self.stderr}")


class Stream(threading.Thread):
    """Keeps every line of a pipe and lets others wait for one."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.lines, self.ended = pipe, [], False
        self.changed = threading.Condition()
        self.start()

    def run(self):
        for raw in self.pipe:
            with self.changed:
                self.lines.append(raw.decode("utf-8", "backslashreplace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.pipe.close()

    def wait(self, test, timeout=DEADLINE):
        """The first truthy test(line), or None when the stream ended or the time is up."""
        end, seen = time.monotonic() + timeout, 0
        with self.changed:
            while True:
                for line in self.lines[seen:]:
                    value = test(line)
                    if value:
                        return value
                seen = len(self.lines)
                left = end - time.monotonic()
                if self.ended or left <= 0:
                    return None
                self.changed.wait(left)

    def text(self):
        with self.changed:
            return "\n".join(self.lines)


class Written:
    """The same of a file, looked at only when somebody asks: no line wakes us while something is measured."""

    def __init__(self, path, process):
        self.path, self.process = path, process

    @property
    def ended(self):
        return self.process.poll() is not None

    def text(self):
        return self.path.read_text("utf-8", "backslashreplace").rstrip("\n")

    def wait(self, test, timeout=DEADLINE):
        end = time.monotonic() + timeout
        while True:
            last = self.ended or time.monotonic() > end
            value = next(filter(None, map(test, self.text().splitlines())), None)
            if value or last:
                return value
            time.sleep(POLL_MAX / 10)


def as_record(line):
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def in_own_group():
    """What starts a daemon in a delegated control group of its own: it divides it, so nobody else may be there."""
    if ROOT or not CGROUPS:
        return []
    return ["/bin/sh", "-ec", 'mkdir "$0/daemon.$$"; echo $$ >"$0/daemon.$$/cgroup.procs"; exec "$@"', CGROUPS]


class Daemon:
    """A running sandbox-executor."""

    def __init__(self, env, args=(), user=None, binary=None, to_file=False):
        self.host, self.port = "127.0.0.1", None
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-test-"))
        self.directory.chmod(0o755)
        self.state_dir = self.directory / "state"
        self.env = self.environment(env)
        if user is not None:
            os.chown(self.directory, user, user)
        self.secret = self.env.get("SANDBOX_SECRET")
        self.stopped = False
        log = self.directory / "log"
        self.process = subprocess.Popen(
            [*in_own_group(), str(binary or BUILD / "sandbox-executor"), *args], env=self.env, cwd=self.directory,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log.open("ab") if to_file else subprocess.PIPE,
            user=user, group=user, extra_groups=None if user is None else [])
        self.pid = self.process.pid
        self.out = Stream(self.process.stdout)
        self.log = Written(log, self.process) if to_file else Stream(self.process.stderr)
        live.add(self.pid)
        try:
            self.wait_ready()
        except BaseException:
            end_tree(self.pid)
            live.discard(self.pid)
            raise

    def environment(self, env):
        base = {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.directory),
            "EXECUTOR_HOST": self.host, "EXECUTOR_PORT": "0", "PROXY_PORT": "0",
            "STATE_DIR": str(self.state_dir), "LOG_FORMAT": "json", "LOG_LEVEL": "debug",
            "SANDBOX_AUTH_MODE": "static", "SANDBOX_SECRET": secrets.token_urlsafe(24),
            "DAEMON_CANARY": CANARY,
            # no test asks another host for packages; the port of "discard" is closed
            "PACKAGE_INDEX": "http://127.0.0.1:9/simple", "PACKAGE_REGISTRY": "http://127.0.0.1:9/",
        }
        if SLOW > 1:  # of programs that name no time, which is also how long one of them may hang
            base["DEFAULT_TIMEOUT"] = str(int(30 * SLOW))
        if JAIL != "native":
            base["ISOLATION"] = JAIL
        if JAIL == "subprocess":
            base["RUN_AS"] = "root"  # its persistent sandboxes are the host, for whoever the daemon is
        if not FULL:
            base["ISOLATION_LEVEL"] = "basic"
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                base[name] = os.environ[name]
        base.update({name: str(value) for name, value in env.items() if value is not None})
        return {name: value for name, value in base.items() if env.get(name, "") is not None}

    def wait_ready(self):
        record = self.log.wait(
            lambda line: as_record(line) if as_record(line).get("event_type") == "listening" else None)
        if record is None:
            if self.process.poll() is None:
                try:
                    self.process.wait(1 if self.log.ended else 0.1)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait()
            self.stopped = True
            self.clean_up()
            raise StartFailed(self)
        self.port = int(record["port"])

    # -- what it says --

    def log_text(self):
        return self.log.text()

    def stdout_text(self):
        return self.out.text()

    def records(self):
        return [as_record(line) for line in self.log_text().splitlines()]

    def wait_record(self, timeout=DEADLINE, **fields):
        def matches(line):
            record = as_record(line)
            return record if all(record.get(k) == v for k, v in fields.items()) else None
        return self.log.wait(matches, timeout)

    # -- talking to it --

    def prepare(self, value, headers, body):
        headers = dict(headers or {})
        if value is not None:
            body = json.dumps(value)
            headers.setdefault("Content-Type", "application/json")
        if isinstance(body, str):
            body = body.encode()
        if self.secret and "Authorization" not in headers:
            headers["Authorization"] = "Bearer " + self.secret
        return body, {k: v for k, v in headers.items() if v is not None}

    def connect(self, timeout=HTTP_TIMEOUT):
        return Connection(self, timeout)

    def socket(self, timeout=HTTP_TIMEOUT):
        return socket.create_connection((self.host, self.port), timeout)

    def request(self, method, path, json=None, headers=None, body=None, timeout=HTTP_TIMEOUT):
        with self.connect(timeout) as connection:
            return connection.request(method, path, json=json, headers=headers, body=body)

    def post_execute(self, body, headers=None, timeout=HTTP_TIMEOUT):
        """POST /execute with a body taken literally."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self.request("POST", "/execute", headers=headers, body=body, timeout=timeout)

    def execute(self, code, language="python", timeout_http=HTTP_TIMEOUT, **fields):
        body = {"code": code, "language": language, **fields}
        response = self.request("POST", "/execute", json=body, timeout=timeout_http)
        assert response.status == 200, response
        return response.json()

    def start(self, code, language="python", **fields):
        """Sends a run and returns the connection; close() makes the client vanish."""
        connection = self.connect()
        connection.send("POST", "/execute", json={"code": code, "language": language, **fields})
        return connection

    def metric(self, name):
        """One that has no labels."""
        lines = self.request("GET", "/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith(name + " ")).split()[1])

    def returned(self, code, language="python", **fields):
        """The value a run returned; fails unless the run succeeded."""
        result = self.execute(code, language, **fields)
        assert result["status"] == "success", result
        return result["return_value"]

    def printed(self, code, **fields):
        """What a shell program printed; fails unless it succeeded."""
        result = self.execute(code, "shell", **fields)
        assert result["status"] == "success", result
        return result["stdout"]

    def health(self):
        return self.request("GET", "/health")

    # -- processes --

    def tree(self):
        return descendants(self.pid)

    def find(self, name):
        """The pid of the process of that name nearest below the daemon, or None."""
        return next((p for p in sorted(self.tree()) if is_alive(p)
                     and read_proc(p, "comm").strip() == name.encode()), None)

    def helper(self, name):
        """The same of one that will be there."""
        return wait_until(lambda: self.find(name), f"{name} below the daemon")

    def guard(self):
        return self.helper("sandbox-guard")

    def launcher(self):
        return self.helper("sandbox-launch")

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, timeout=DEADLINE):
        status = self.process.wait(timeout)
        self.stopped = True
        return status

    def stop(self):
        """Ends it as an operator would and checks what every daemon owes on its way out."""
        if not self.stopped:
            self.signal(signal.SIGTERM)
            status = self.wait()
            assert status == 143, f"exit status {status} after SIGTERM"
        self.check_nothing_left()
        self.check_sanitizers()
        self.clean_up()

    def check_nothing_left(self):
        wait_until(lambda: self.log.ended, "every process that could write to the log is gone")
        try:
            wait_until(lambda: not strays(), lambda: f"no process left behind: {strays()}")
        finally:
            for pid, _ in strays():  # one orphan fails one test, not all that follow
                end_tree(pid)

    def is_sanitized(self):
        """Built with a sanitizer, which keeps freed memory for a while?"""
        return b"libasan" in read_proc(self.pid, "maps")

    def check_sanitizers(self):
        text = self.log_text()
        found = [mark for mark in SANITIZER_MARKS if mark in text]
        assert not found, text

    def clean_up(self):
        live.discard(self.pid)
        if in_own_group():
            for group in (f"{CGROUPS}/daemon.{self.pid}/main", f"{CGROUPS}/daemon.{self.pid}"):
                with contextlib.suppress(OSError):
                    os.rmdir(group)
        shutil.rmtree(self.directory, ignore_errors=True)


live = set()  # pids of daemons and helpers that a test runs on purpose


def strays():
    """Our children that nobody here started: orphans of a dead daemon. Zombies are reaped."""
    found = []
    for pid in children_by_parent().get(os.getpid(), []):
        if pid in live:
            continue
        fields = stat_fields(pid)
        if fields and fields[0] == "Z":
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
            continue
        found.append((pid, read_proc(pid, "cmdline").decode(errors="replace")))
    return found


def end_tree(pid):
    for one in [pid, *descendants(pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


@atexit.register
def end_live():
    """Daemons that a failure left running end with this process."""
    for pid in list(live):
        if is_alive(pid):
            end_tree(pid)


def start_daemon(args=(), user=None, binary=None, to_file=False, **env):
    """to_file: its log goes to a file, not to a thread of ours."""
    return Daemon(env, args, user, binary, to_file)


def build_without(name, directory):
    """All programs in another directory, but for one; the daemon there. No links: it is seen from inside, too."""
    for built in BUILD.glob("sandbox-*"):
        if built.is_file() and built.name != name:
            shutil.copy(built, directory)
    directory.chmod(0o755)
    return directory / "sandbox-executor"


def start_refused(user=None, binary=None, **env):
    """How a daemon that must not start refused to."""
    try:
        daemon = start_daemon((), user, binary, **env)
    except StartFailed as refusal:
        return refusal
    daemon.stop()
    raise AssertionError(f"started with {env}")


def need(condition, reason):
    """Skips with a reason; where everything must run (SBX_MUST_RUN=1), a skip is a failure."""
    import pytest
    if condition:
        return
    if os.environ.get("SBX_MUST_RUN") == "1":
        pytest.fail("must run, but: " + reason)
    pytest.skip(reason)


# ---- what runs inside ----

# ctypes without errno surprises: call(nr, ...) -> (result, errno name or "")
SYSCALLS = r'''
import ctypes, errno, os
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
def call(nr, *args):
    ctypes.set_errno(0)
    cooked = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    r = _libc.syscall(ctypes.c_long(nr), *cooked)
    return r, errno.errorcode.get(ctypes.get_errno(), "") if r < 0 else ""
'''


def spawn_marked(mark, seconds=600):
    """A shell command, without quotes of any kind, that sleeps under the name of the marker."""
    return f"(exec -a {mark} sleep {seconds})"
