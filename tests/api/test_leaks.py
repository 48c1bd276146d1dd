# SPDX-License-Identifier: MIT
"""A thousand runs later everything is as it was."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import faults
import harness
from inventory import check_nothing_grew, settle, with_idle_slots, zombies


def rush(daemon):
    """Idle slots are kept for the next rush, up to a limit of each template: a rush brings most of them there."""
    mark = harness.marker()
    runs = [daemon.start(harness.spawn_marked(mark), "shell") for _ in range(60)]
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 60, "all of them run", interval=0.05)
    for run in runs:
        run.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "all of them are cancelled", interval=0.05)


RUNS = [
    ("shell", "true", "success"),
    ("shell", "sleep 600 & exit 3", "failed"),
    ("shell", "echo x > file; (setsid sleep 600 &); kill -9 $$", "failed"),
    ("shell", "head -c 200000 /dev/zero", "success"),
]


def test_a_thousand_runs_leave_nothing(make_daemon):
    daemon = make_daemon(POOL_MEMORY=0, RETAIN_COUNT=10, LOG_LEVEL="info", NODE_ZYGOTE="true")
    rush(daemon)
    with daemon.connect() as connection:
        mixed_runs(connection, 60)
        before = settle(daemon)
        mixed_runs(connection, 1000)
    check_nothing_grew(daemon, before, with_idle_slots)
    harness.wait_until(lambda: not zombies(daemon), "all the dead are reaped")


def mixed_runs(connection, count):
    for i in range(count):
        if i % 50 == 49:
            assert connection.execute("exports.handler = e => e.i", "javascript", event={"i": i})["return_value"] == i
        elif i % 8 == 7:
            assert connection.execute("def handler(e): return e['i']", event={"i": i})["return_value"] == i
        else:
            language, code, status = RUNS[i % len(RUNS)]
            result = connection.execute(code, language)
            assert result["status"] == status, result


def test_an_idle_daemon_keeps_no_dead(make_daemon):
    """A keeper's socket closes before it is dead. Nothing happens afterwards that would make anybody look again."""
    daemon = make_daemon(POOL_EXEC=0, POOL_PYTHON=0, POOL_NODE=0, NODE_ZYGOTE="false", LOG_LEVEL="info")
    assert daemon.printed("echo one") == "one\n"
    for _ in range(10):
        for pid in faults.keepers(daemon):
            with contextlib.suppress(ProcessLookupError):  # one too many may be ended by itself
                os.kill(pid, signal.SIGKILL)
            harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the dead keeper is reaped")
        assert daemon.printed("echo next") == "next\n"  # brings others
    harness.wait_until(lambda: not zombies(daemon), "all the dead are reaped")


def test_cancelled_and_refused_requests_leave_nothing(make_daemon):
    daemon = make_daemon(POOL_MEMORY=0, LOG_LEVEL="info")
    rush(daemon)
    hurried_clients(daemon, 30)
    before = settle(daemon)
    hurried_clients(daemon, 150)
    check_nothing_grew(daemon, before, with_idle_slots)


def hurried_clients(daemon, count):
    """Clients that vanish at every stage of a request."""
    head = f"POST /execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.secret}\r\n"
    for i in range(count):
        if i % 3 == 0:
            daemon.start("sleep 600", "shell").close()
        elif i % 3 == 1:
            with daemon.socket() as s:
                s.sendall((head + "Content-Length: 1000\r\n\r\n{\"code\"").encode())
        else:
            assert daemon.request("POST", "/execute", json={"code": i}).status == 400
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "all are cancelled")


def test_memory_of_the_daemon_does_not_grow_with_runs(make_daemon):
    daemon = make_daemon(POOL_MEMORY=0, RETAIN_COUNT=4, LOG_LEVEL="info")
    if daemon.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")

    def resident():
        return int(pathlib.Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with daemon.connect() as connection:
        for _ in range(12):
            connection.execute("head -c 3000000 /dev/zero | tr '\\0' x", "shell")
        before = resident()
        for _ in range(30):
            connection.execute("head -c 3000000 /dev/zero | tr '\\0' x", "shell")
    assert resident() < before + (24 << 20)


LONG = os.environ.get("SBX_LONG") == "1"
TOP = pathlib.Path(__file__).resolve().parents[2]
# Mounts, shared memory and queues belong to the whole machine, where other tests run: not to these.
APART = ["unshare", "--mount", "--ipc", "sh", "-ec", 'mount -t tmpfs none /dev/shm; exec "$@"', "apart"]


def command_line(*words):
    return [*(APART if harness.ROOT else []), sys.executable, *map(str, words)]


def command(*words):
    """A command of ours that judges by itself: its exit status and what it printed."""
    line = command_line(*words)
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600,
                          env={**os.environ, "SBX_BUILD": str(harness.BUILD)})
    return done.returncode, done.stdout


def test_the_leak_checker_finds_nothing():
    runs, kills = (10000, 20) if LONG else (400, 1)
    status, said = command(TOP / "tests" / "leaks", "--runs", runs, "--kills", kills)
    assert status == 0 and "0 leaks, 0 wrong answers" in said, said


def test_the_leak_checker_sees_what_was_left_behind():
    status, said = command(TOP / "tests" / "leaks", "--runs", 0, "--kills", 0, "--plant")
    assert status == 1 and "| processes left behind | 0 | 1 | LEAK |" in said, said


def test_a_leak_checker_that_is_ended_leaves_no_daemon():
    line = command_line(TOP / "tests" / "leaks", "--runs", 100000)
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, env={**os.environ, "SBX_BUILD": str(harness.BUILD)}) as checker:
        harness.live.add(checker.pid)
        try:
            harness.wait_until(lambda: [p for p in harness.descendants(checker.pid)
                                        if harness.read_proc(p, "cmdline").startswith(b"sleep")], "its daemon runs programs")
            checker.send_signal(signal.SIGTERM)
            checker.wait()
            harness.wait_until(lambda: not harness.strays(), lambda: f"nothing is left: {harness.strays()}")
        finally:
            harness.live.discard(checker.pid)
            for pid, _ in harness.strays():
                harness.end_tree(pid)


@pytest.mark.alone  # it compares how long answers take before and after an overload
def test_a_soak_holds_its_invariants():
    status, said = command(TOP / "bench" / "soak", "--seconds", 600 if LONG else 5)
    assert status == 0, said
