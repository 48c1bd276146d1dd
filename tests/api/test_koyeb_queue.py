# SPDX-License-Identifier: MIT
"""Many requests at once in one persistent sandbox: each is answered, with its result or with 503."""
import collections
import contextlib

import pytest
from koyeb import Sandbox

MANY = 500


@contextlib.contextmanager
def at_once(daemon, n, path, body):
    """n requests that have all been sent before the first answer is read."""
    connections = []
    try:
        for i in range(n):
            connections.append(daemon.connect(timeout=120))
            connections[i].send("POST", path, json=body(i))
        yield connections
    finally:
        for c in connections:
            c.close()


def answers(daemon, n, path, body):
    with at_once(daemon, n, path, body) as connections:
        return [c.receive() for c in connections]


def check(answers, right):
    kinds = collections.Counter(r.status for r in answers)
    assert set(kinds) <= {200, 503} and kinds[200] > 0, kinds
    for i, r in enumerate(answers):
        if r.status == 200:
            assert r.json() == right(i), r
        else:
            assert int(r.headers["Retry-After"]) >= 1, r
    return kinds


@pytest.mark.parametrize("pids", ["1024", "64"])
@pytest.mark.parametrize("command", ["true", "sleep 0.2"])
def test_five_hundred_commands_at_once_are_all_answered(make_daemon, pids, command):
    daemon = make_daemon(SANDBOX_PIDS=pids)
    found = answers(daemon, MANY, "/run", lambda i: {"cmd": f"echo {i}; exec {command}"})
    kinds = check(found, lambda i: {"stdout": f"{i}\n", "stderr": "", "code": 0})
    assert kinds[200] == MANY
    assert Sandbox(daemon).sh("echo after") == "after\n"


def test_commands_beyond_the_queue_are_told_to_come_back(make_daemon):
    daemon = make_daemon(SANDBOX_PIDS="16", SANDBOX_QUEUE_MAX="5")
    box = Sandbox(daemon)
    box.sh("mkfifo gate")
    with at_once(daemon, 40, "/run", lambda i: {"cmd": "read x < gate"}) as connections:
        refused = next(i for i in range(40) if i >= 6 + 5)
        r = connections[refused].receive()
        assert (r.status, r.headers["Retry-After"]) == (503, "1")
        stream = daemon.request("POST", "/run_streaming", json={"cmd": "echo hi"})
        assert (stream.status, stream.headers["Retry-After"]) == (503, "1")
        started = box.post("start_process", {"cmd": "sleep 1"})
        assert (started.status, started.headers["Retry-After"]) == (503, "1")
        assert daemon.metric("sandbox_commands_refused_total") >= 3
        # Requests for files have places of their own.
        assert box.call("write_file", path="/workspace/x", content="y") == {"success": True}
        assert box.call("read_file", path="/workspace/x") == {"content": "y"}
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204


def test_who_waits_too_long_is_told_to_come_back(make_daemon):
    daemon = make_daemon(SANDBOX_PIDS="16", SANDBOX_WAIT_MS="50")
    Sandbox(daemon).sh("mkfifo gate")
    with at_once(daemon, 7, "/run", lambda i: {"cmd": "read x < gate"}) as connections:
        r = connections[6].receive()
        assert (r.status, r.headers["Retry-After"]) == (503, "1")
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204


def test_commands_that_wait_are_told_when_the_sandbox_ends(make_daemon):
    daemon = make_daemon(SANDBOX_PIDS="16")
    Sandbox(daemon).sh("mkfifo gate")
    with at_once(daemon, 20, "/run", lambda i: {"cmd": "read x < gate"}) as connections:
        assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204
        for c in connections:
            assert c.receive().status in (200, 500)


@pytest.mark.parametrize("pids", ["1024", "64"])
def test_many_files_at_once_are_all_read(make_daemon, pids):
    daemon = make_daemon(SANDBOX_PIDS=pids)
    Sandbox(daemon).sh("echo hi > x")
    found = answers(daemon, MANY, "/read_file", lambda i: {"path": "/workspace/x"})
    assert check(found, lambda i: {"content": "hi\n"})[200] == MANY


def test_many_files_at_once_are_all_written(make_daemon):
    daemon = make_daemon(SANDBOX_PIDS="64")
    found = answers(daemon, MANY, "/write_file",
                    lambda i: {"path": f"/workspace/{i}", "content": str(i) * 1000})
    assert check(found, lambda i: {"success": True})[200] == MANY
    assert Sandbox(daemon).sh("ls | wc -l; cat 499").split() == [str(MANY), "499" * 1000]


def test_a_sandbox_whose_processes_are_all_taken_says_503(make_daemon):
    daemon = make_daemon(SANDBOX_PIDS="16")
    box = Sandbox(daemon)
    box.start("for i in $(seq 100); do sleep 1000 & done; wait")
    statuses = set()
    for _ in range(20):
        statuses.add(box.post("run", {"cmd": "true"}).status)
    assert statuses <= {200, 503}


def test_commands_are_counted_and_logged(make_daemon):
    daemon = make_daemon()
    box = Sandbox(daemon)
    box.run("exit 3")
    assert box.run("sleep 60", timeout=0.1)["code"] == -1
    assert daemon.wait_record(event_type="command_done", exit_code=3)["reason"] == "exit"
    assert daemon.wait_record(event_type="command_done", exit_code=-1)["reason"] == "timeout"
    assert daemon.metric("sandbox_commands_total") == 2
    assert daemon.metric("sandbox_commands_timed_out_total") == 1
