# SPDX-License-Identifier: MIT
"""Every system call of launcher, keeper, init, helper and daemon fails once.

Each time: the answer is right, behind the same walls, or it is an error in words; the next request
works; in the end nothing is left over. Normally the first call of each kind fails, with SBX_LONG=1
every one of them, and with more than one error.
"""
import errno
import importlib.util
import itertools
import os
import pathlib
import platform
import signal
import subprocess
import tempfile
import threading

import pytest

import faults
import harness
import inventory
from fake_control_plane import ControlPlane
from faults import ERRORS, HTTP_ERRORS, Faulty, Finding

LONG = os.environ.get("SBX_LONG") == "1"
EACH_MAX = 40       # of one kind in the long sweep; the rest is sampled
RESTARTS_MAX = 5    # of the launcher; then another daemon, before the guard gives up
QUIET = {"RETAIN_COUNT": 2, "POOL_MEMORY": 0, "POOL_PYTHON": 0, "POOL_NODE": 0, "NODE_ZYGOTE": "false"}
# A second error for calls that fail in more than one way.
OTHERS = {"openat": "ENOENT", "mount": "EPERM", "write": "EINVAL", "clone3": "ENOMEM", "clone": "ENOMEM",
          "unshare": "EPERM", "mmap": "EAGAIN", "socketpair": "ENFILE", "read": "EINTR", "sendmsg": "EINTR",
          "recvmsg": "EINTR", "poll": "EINTR", "mkdirat": "EROFS", "execve": "EACCES"}

pytestmark = pytest.mark.skipif(not harness.ROOT, reason="a filter without no_new_privs takes root")


@pytest.fixture
def make_faulty():
    made = []

    def make(**kw):
        made.append(Faulty(**kw))
        return made[-1]
    yield make
    for one in made:
        if not one.daemon.stopped:
            one.disarm()
            one.stop()


def chosen(times):
    """Which of so many calls of one kind are to fail."""
    if not LONG:
        return [1]
    if times <= EACH_MAX:
        return range(1, times + 1)
    return sorted({1 + i * (times - 1) // (EACH_MAX - 1) for i in range(EACH_MAX)})


def points(counts, roles):
    for (role, call), times in sorted(counts.items()):
        if role in roles:
            for nth in chosen(times):
                yield role, call, nth, ERRORS.get(call, "EMFILE")
                if LONG and call in OTHERS:
                    yield role, call, nth, OTHERS[call]


def born_of_zygote(daemon):
    """Inits of sandboxes whose keeper a zygote has forked; the scenario may have one of its own."""
    def name(pid):
        return harness.read_proc(pid, "comm").strip()

    def parent(pid):
        return int((harness.stat_fields(pid) or (0, 0))[1])
    return [p for p in daemon.tree() if name(p) == b"sandbox-init"
            and name(parent(parent(p))).startswith(b"sandbox-zygote")]


def is_ready_for_cells(daemon):
    """The persistent sandbox that is prepared once one was asked for: its interpreter loads for seconds."""
    return any(harness.read_proc(p, "comm").strip() == b"sandbox-warm" for p in daemon.tree())


def prepares_cells(scenario):
    return isinstance(scenario, faults.Sandboxes) and harness.JAIL == "native" and importlib.util.find_spec("IPython")


class Sweep:
    """One scenario, point by point."""

    def __init__(self, make_faulty, name):
        self.make_faulty = make_faulty
        self.settings, make, self.before = faults.SCENARIOS[name]
        self.scenario = make()
        self.faulty = self.start()
        self.findings = []

    def start(self):
        faulty = self.make_faulty(**{**QUIET, **self.settings})
        self.scenario.warm(faulty.daemon)
        if harness.JAIL == "native":  # one Python sandbox is prepared to see whether that works, however slowly
            harness.wait_until(lambda: born_of_zygote(faulty.daemon), "it is there")
        if prepares_cells(self.scenario):
            harness.wait_until(lambda: is_ready_for_cells(faulty.daemon), "it is there", timeout=120)
        self.stock = inventory.settle(faulty.daemon)
        return faulty

    def counts(self):
        if self.before:
            self.before(self.faulty.daemon)
        self.faulty.count()
        assert self.scenario.answer(self.faulty.daemon)[0] == "right"
        inventory.settle(self.faulty.daemon)  # what follows an answer counts, too
        return self.faulty.counts()

    def run(self, roles, tolerated=()):
        """How many faults happened."""
        fired = 0
        for role, call, nth, error in points(self.counts(), roles):
            if self.before:
                self.before(self.faulty.daemon)
            self.faulty.arm(role, call, nth, error)
            where = f"{role}: {call} {nth} {error}"
            told = True
            try:
                told = self.scenario.answer(self.faulty.daemon)[0] != "right"
            except tolerated:
                pass
            except (Finding, *HTTP_ERRORS) as finding:
                self.findings.append(f"{where}: {finding!r}")
            now = self.faulty.disarm() > 0
            fired += now
            self.check_next(where, untold=now and not told)
        assert not self.findings, "\n".join(self.findings)
        self.check_stock()
        return fired

    def check_next(self, where, untold):
        """The very next request works, unless the launcher died: then the next after its return. An `untold` fault
        hit what is prepared for later, maybe for the next request: then the one after it works."""
        before = self.faulty.restarts()
        try:
            kind, words = self.scenario.answer(self.faulty.daemon)
            if kind != "right" and (untold or self.faulty.restarts() > before):
                kind, words = self.scenario.answer(self.faulty.daemon)
        except (Finding, *HTTP_ERRORS) as finding:
            kind, words = "", repr(finding)
        if kind != "right":
            self.findings.append(f"{where}: the next request: {words}")
        if self.faulty.restarts() > RESTARTS_MAX or self.faulty.daemon.process.poll() is not None:
            self.check_stock()
            self.faulty = self.start()

    def check_stock(self):
        inventory.check_nothing_grew(self.faulty.daemon, self.stock)
        self.faulty.stop()


ALL = ("launcher", "keeper", "confine", "init", "process", "helper", "zygote")
SWEEPS = [
    # scenario, whose calls, how many faults it brings at least
    ("shell", ("launcher", "keeper", "confine", "init", "process"), 40),
    ("birth", ("launcher", "keeper"), 15),
    ("python", ALL if LONG else ("keeper", "init", "process"), 15),
    ("commands", ("init", "helper"), 12),
] + [("sandbox", ALL, 40), ("session", ALL, 20), ("javascript", ALL, 20)] * LONG


@pytest.mark.parametrize("name, roles, least", SWEEPS, ids=[row[0] for row in SWEEPS])
def test_a_failing_call_is_told_and_leaves_nothing(make_faulty, name, roles, least):
    assert Sweep(make_faulty, name).run(roles) >= least


def test_a_failing_call_of_the_daemon_costs_at_most_one_connection(make_faulty):
    assert Sweep(make_faulty, "shell").run(("daemon",), tolerated=HTTP_ERRORS) >= 10


# ---- before the first request ----


def start_with(first):
    """A daemon that started in spite of it, or the words it refused with."""
    try:
        return Faulty(first=first, POOL_EXEC=0, **QUIET), ""
    except harness.StartFailed as refusal:
        return None, refusal.stderr


def boot_counts():
    """What is called before the first request, and the traits that are declared where nothing fails."""
    faulty = Faulty(first="count", POOL_EXEC=0, **QUIET)
    found, traits = faulty.counts(), faulty.daemon.execute("true", "shell")["isolation"]["traits"]
    faulty.stop()
    return found, traits


def test_a_host_that_fails_at_the_start_is_named(make_faulty):
    counts, traits = boot_counts()
    todo = [p for p in points(counts, ("guard", "launcher", "keeper", "confine"))]
    chosen_ones = todo if LONG else [p for i, p in enumerate(todo) if i % 10 == 0 or p[1] == "mount"]
    for role, call, nth, error in chosen_ones:
        where = f"{role}: {call} {nth} {error}"
        groups = inventory.Groups()
        faulty, words = start_with(f"arm {role} {call} {nth} {getattr(errno, error)} once")
        if faulty:
            result = faulty.daemon.execute("echo works", "shell")
            assert result["stdout"] == "works\n", f"{where}: {result}"
            assert result["isolation"]["traits"] == traits, f"{where}: weaker without a word"
            faulty.stop()
        else:
            assert "sandbox-executor: " in words, f"{where}: {words}"
        harness.wait_until(lambda: not left_behind(), lambda: f"{where}: {left_behind()}")
        harness.wait_until(lambda: not groups.orphaned(), f"{where}: control groups are gone")


def left_behind():
    return [s for s in harness.strays() if "fault-inject" not in s[1]]


# ---- lasting shortage, and what no single call tells ----


# Init is a program of its own, whose C library forks by another call than glibc.
FORK = "fork" if platform.machine() == "x86_64" else "clone"
SHORTAGES = [
    ("daemon", "pipe2", "EMFILE"), ("daemon", "socketpair", "EMFILE"), ("launcher", "socketpair", "ENFILE"),
    ("keeper", "clone", "EAGAIN"), ("keeper", "clone", "ENOMEM"), ("keeper", "clone", "ENOSPC"),
    ("init", FORK, "EAGAIN"), ("process", "execve", "ENOMEM"),
] + [("confine", "mount", "ENOSPC")] * (harness.JAIL == "native")  # elsewhere another program mounts, or none


def test_a_lasting_shortage_refuses_and_passes(make_faulty):
    """As long as it lasts every request is told, afterwards every one works."""
    faulty = make_faulty(POOL_EXEC=0, **QUIET)
    daemon = faulty.daemon
    for role, call, error in SHORTAGES:
        faults.kill_keepers(daemon)
        faulty.arm(role, call, 1, error, "on")
        for _ in range(3):
            response = daemon.request("POST", "/execute", json={"code": "echo x", "language": "shell"})
            if response.status == 200:
                result = response.json()
                assert result["status"] in ("error", "failed"), (role, call, result)
                assert result["stderr"], (role, call, result)
            else:
                assert response.status in (500, 503), (role, call, response)
        assert faulty.disarm() >= 3, (role, call)
        assert daemon.printed("echo again") == "again\n", (role, call)


def test_output_of_a_command_whose_start_was_not_told(make_faulty):
    """Its helper could not say READY: the output is sent, and the stream says that something went wrong."""
    faulty = make_faulty(POOL_EXEC=0, HELPER_ANSWER_MS=5000)
    daemon = faulty.daemon
    assert daemon.request("POST", "/run", json={"cmd": "true"}).status == 200
    faulty.arm("helper", "sendmsg", 1, "ENOBUFS")
    response = daemon.request("POST", "/run_streaming", json={"cmd": "echo begun; sleep 600"})
    assert faulty.disarm() == 1
    assert response.status == 200, response
    events = response.body.decode()
    assert '"data":"begun"' in events and events.count("event: ") == 2 and "event: error" in events, events
    assert daemon.request("POST", "/run", json={"cmd": "echo again"}).json()["stdout"] == "again\n"


def zygote_below(daemon, crowd):
    """Its pid. A dead one is replaced when more of its copies are needed than there are: a crowd needs them."""
    found = daemon.find("sandbox-zygote-")
    if not found:
        runs = [daemon.start("import time\ndef handler(event): time.sleep(0.2)") for _ in range(crowd)]
        assert {run.receive().json()["status"] for run in runs} == {"success"}
    return found


def test_a_dead_zygote_is_replaced(make_faulty):
    faulty = make_faulty(POOL_EXEC=1, POOL_NODE=0, POOL_MEMORY=0, NODE_ZYGOTE="false", POOL_PYTHON=1)
    daemon = faulty.daemon
    code = "def handler(event): return event['n']"
    harness.wait_until(lambda: daemon.execute(code, event={"n": 1})["isolation"]["warm"], "the zygote is there")
    for n in range(3):
        zygote = harness.wait_until(lambda: zygote_below(daemon, 4 * (n + 1)), "a zygote, when it is needed")
        os.kill(zygote, signal.SIGKILL)
        harness.wait_until(lambda: not harness.is_alive(zygote), "it is dead")
        assert daemon.returned(code, event={"n": n}) == n
    harness.wait_until(lambda: daemon.execute(code, event={"n": 1})["isolation"]["warm"], "another one is there")


def test_a_stuck_sandbox_is_killed_and_others_do_not_wait(make_faulty):
    """Its init is stopped: it can neither report nor obey."""
    daemon = make_faulty(POOL_EXEC=0, **QUIET).daemon
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell", timeout=2)
    pid = harness.wait_until(lambda: harness.processes_with(mark), "it runs")[0]
    init = harness.wait_until(lambda: init_above(pid), "its init")
    os.kill(init, signal.SIGSTOP)
    assert daemon.printed("echo others") == "others\n"
    result = run.receive().json()
    assert result["status"] == "timeout", result
    harness.wait_until(lambda: not harness.is_alive(init), "the stopped init is gone")
    assert daemon.printed("echo next") == "next\n"


def init_above(pid):
    """The pid 1 of the sandbox a process is in."""
    while pid > 1:
        if harness.read_proc(pid, "comm").strip() == b"sandbox-init":
            return pid
        pid = int(harness.stat_fields(pid)[1])
    return None


def above(pid, name):
    while pid > 1:
        if harness.read_proc(pid, "comm").strip() == name:
            return pid
        pid = int(harness.stat_fields(pid)[1])
    return None


def test_a_sandbox_dies_with_its_keeper(make_daemon):
    """Otherwise nobody could end it any more: DELETE waited for its end for ever."""
    daemon = make_daemon()
    mark = harness.marker()
    r = daemon.request("POST", "/start_process", json={"cmd": f"bash -c '{harness.spawn_marked(mark)}'"})
    assert r.status == 201, r
    pid = harness.wait_until(lambda: harness.processes_with(mark), "it runs")[0]
    os.kill(above(pid, b"sandbox-keeper"), signal.SIGKILL)
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204
    harness.wait_until(lambda: not harness.processes_with(mark), "it is gone")
    assert daemon.request("POST", "/run", json={"cmd": "echo again"}).json()["stdout"] == "again\n"


def test_keepers_that_die_while_the_launcher_is_busy(make_daemon):
    """It then hears of a request and of their deaths at once, and the request's new keeper may have the place and the
    descriptor of a dead one, whose death must not be looked for there: the launcher waited for ever."""
    daemon = make_daemon(POOL_EXEC=0, POOL_PYTHON=0, POOL_NODE=0)
    for n in range(5):
        assert daemon.printed("echo one") == "one\n"
        os.kill(daemon.launcher(), signal.SIGSTOP)
        try:
            assert daemon.request("POST", "/v1/sandboxes", json={"name": f"s{n}"}).status == 201
            old = faults.keepers(daemon)
            for pid in old:
                os.kill(pid, signal.SIGKILL)
            harness.wait_until(lambda: not any(harness.is_alive(pid) for pid in old), "they are dead")
        finally:
            os.kill(daemon.launcher(), signal.SIGCONT)
        assert daemon.printed("echo next") == "next\n"
        assert daemon.request("DELETE", f"/v1/sandboxes/s{n}").status == 204


def kill_while_it_makes(daemon, request):
    """Kills a keeper that waits for a sandbox it has just cloned. The request's answer, and whether one was caught."""
    answers, caught = [], False
    asking = threading.Thread(target=lambda: answers.append(request()))
    files = {pid: os.open(f"/proc/{pid}/stat", os.O_RDONLY) for pid in faults.keepers(daemon)}
    asking.start()
    try:
        while asking.is_alive() and not caught:
            for pid, fd in files.items():
                try:
                    if b") D " in os.pread(fd, 200, 0):  # vfork()
                        os.kill(pid, signal.SIGKILL)
                        caught = True
                        break
                except ProcessLookupError:
                    pass
    finally:
        for fd in files.values():
            os.close(fd)
        asking.join()
    return answers[0], caught


def test_a_sandbox_whose_keeper_dies_while_making_it_can_be_deleted(make_daemon):
    """The launcher has not been told of it yet, and must end it all the same."""
    daemon = make_daemon(POOL_EXEC=0, POOL_PYTHON=0, POOL_NODE=0)

    def attempt():
        daemon.execute("true", "shell")  # there is an idle keeper
        made, caught = kill_while_it_makes(daemon, lambda: daemon.request("POST", "/v1/sandboxes", json={"name": "a"}))
        assert made.status == 201
        assert daemon.request("DELETE", "/v1/sandboxes/a").status in (204, 404)
        return caught
    assert sum(itertools.islice(filter(None, (attempt() for _ in range(150))), 3)) > 0


@pytest.fixture
def small_disk():
    """A directory on a file system of 256 KiB that everybody can reach."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="sbx-small-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0755", "small", path], check=True)
    yield path
    subprocess.run(["umount", "-l", path], check=True)
    path.rmdir()


def test_a_full_state_directory_loses_artifacts_not_results(make_daemon, small_disk):
    """Every artifact that is listed can be had; what cannot is told in the result, the log, a metric and /health."""
    daemon = make_daemon(STATE_DIR=str(small_disk / "state"))
    assert "state_directory" not in daemon.health().json()
    result = daemon.execute("echo out; head -c 600000 /dev/zero >large; echo small >small", "shell")
    assert result["status"] == "success" and result["stdout"] == "out\n", result
    assert result["artifacts"] == ["small"] and [a["path"] for a in result["artifact_metadata"]] == ["small"], result
    assert result["left_out"] == [{"path": "large", "size": 600000, "reason": "storage"}]
    assert result["artifacts_left_out"] == 1
    refused = daemon.request("GET", f"/v1/executions/{result['execution_id']}/artifacts/large")
    assert refused.status == 404 and refused.json(), refused
    assert daemon.wait_record(event_type="artifact_lost", execution_id=result["execution_id"], path="large")
    assert daemon.metric("sandbox_artifacts_lost_total") == 1
    (small_disk / "fill").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
    lost = daemon.execute("echo next; echo x >file", "shell")
    assert lost["stdout"] == "next\n" and lost["artifacts"] == [] and lost["left_out"][0]["path"] == "file"
    health = daemon.health()
    assert health.status == 200 and "full" in health.json()["state_directory"]
    (small_disk / "fill").unlink()
    assert "state_directory" not in daemon.health().json()
    again = daemon.execute("echo text >file", "shell")
    assert "left_out" not in again
    got = daemon.request("GET", f"/v1/executions/{again['execution_id']}/artifacts/file")
    assert (got.status, got.body) == (200, b"text\n"), got


def test_a_full_state_directory_delivers_webhooks_from_memory(make_daemon, small_disk):
    with ControlPlane() as receiver:
        receiver.script("other", 500)
        daemon = make_daemon(STATE_DIR=str(small_disk / "state"), WEBHOOK_HOSTS="127.0.0.1:*", WEBHOOK_SECRET="x",
                             WEBHOOK_BASE_MS=20)
        (small_disk / "fill").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
        result = daemon.execute("echo out", "shell", webhook=receiver.url + "/")
        assert result["status"] == "success"
        daemon.wait_record(event_type="webhook_not_saved", execution_id=result["execution_id"])
        assert [s.json["stdout"] for s in receiver.wait("other", count=2)] == ["out\n"] * 2
        harness.wait_until(lambda: daemon.metric("sandbox_webhooks_waiting") == 0, "it was taken")
        (small_disk / "fill").unlink()
