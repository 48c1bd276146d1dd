# SPDX-License-Identifier: MIT
"""A build without the jails of Linux (-Djails=seatbelt,subprocess): what it says of those it left out.

The stage api-portable runs it, with a part of the suite: daemon and launcher are the portable ones
(docs/jails.md). What is said here of ends stands for tests of the suite that know the launcher of Linux
by the names of its processes or its control groups.
"""
import os
import pathlib
import signal

import pytest

import harness
from harness import marker, processes_with, spawn_marked, start_refused, wait_until

pytestmark = pytest.mark.skipif("SBX_PORTABLE" not in os.environ, reason="the stage api-portable runs it")
LEFT_OUT = ("native", "bwrap")
WORDS = "this build does not have it (-Djails)"


def jails(daemon):
    return {row["name"]: row for row in daemon.request("GET", "/v1/capabilities").json()["jails"]}


@pytest.mark.parametrize("isolation, allowed", [("subprocess", []), ("native,bwrap,subprocess", ["native", "bwrap"])])
def test_left_out_jails_are_known_and_say_so(make_daemon, isolation, allowed):
    daemon = make_daemon(ISOLATION=isolation)
    rows = jails(daemon)
    for name in LEFT_OUT:
        row = rows[name]
        assert not row["available"] and row["allowed"] == (name in allowed), row
        assert row["reason"] == WORDS and row.get("traits", []) == [], row
    assert rows["subprocess"]["available"] and rows["subprocess"]["allowed"], rows
    assert not rows["seatbelt"]["available"] and "ISOLATION" in rows["seatbelt"]["reason"], rows
    assert daemon.execute("echo works", "shell")["isolation"]["jail"] == "subprocess"


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_request_for_one_is_refused_with_the_reason(make_daemon, name):
    daemon = make_daemon(ISOLATION=f"{name},subprocess")
    assert daemon.wait_record(event_type="jail_unavailable", jail=name)["error"] == WORDS
    response = daemon.request("POST", "/execute", json={"code": "true", "language": "shell", "isolation": name})
    assert response.status == 400 and WORDS in response.text, response


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_daemon_that_is_to_have_nothing_else_does_not_start(name):
    assert f"{name}: {WORDS}" in start_refused(ISOLATION=name).stderr


# ---- ends ----


def launcher_of(daemon):
    """The process below the outer one, which starts it anew."""
    guards = harness.children_by_parent().get(daemon.pid, [])
    assert len(guards) == 1, guards
    below = harness.children_by_parent().get(guards[0], [])
    assert len(below) == 1, below
    return below[0]


def test_a_run_takes_along_whatever_left_it(daemon):
    """As root it has a user of its own: a session of one's own and the loss of a parent are no way out."""
    mark = marker()
    code = f"(setsid bash -c '{spawn_marked(mark)}' >/dev/null 2>&1 &); sleep 0.2; ps ax | grep -c {mark}"
    got = daemon.execute(code, "shell")
    assert got["status"] == "success" and int(got["stdout"]) >= 1, got
    assert processes_with(mark) == []


def test_a_timeout_takes_along_whatever_left_it(daemon):
    marks = [marker() for _ in range(2)]
    got = daemon.execute(f"(setsid bash -c '{spawn_marked(marks[0])}' &)\n{spawn_marked(marks[1])} & wait", "shell",
                         timeout=2)
    assert got["status"] == "timeout", got
    assert [processes_with(m) for m in marks] == [[], []]


def test_two_daemons_do_not_end_each_other_s_runs(make_daemon):
    """Each has users that the other has not."""
    one, other = make_daemon(), make_daemon()
    users = [{d.printed("id -u") for _ in range(4)} for d in (one, other)]
    assert not users[0] & users[1], users


def test_what_has_the_daemon_s_user_ends_with_its_command(daemon):
    made = daemon.request("POST", "/v1/sandboxes", json={}).json()
    base = f"/v1/sandboxes/{made['id']}"
    marks = [marker() for _ in range(2)]
    started = daemon.request("POST", f"{base}/start_process",
                             json={"cmd": f"bash -c '{spawn_marked(marks[0])}' & "
                                          f"setsid bash -c '{spawn_marked(marks[1])}' & wait"})
    wait_until(lambda: all(processes_with(m) for m in marks), "both run")
    assert daemon.request("POST", f"{base}/kill_process", json={"id": started.json()["id"]}).status == 200
    wait_until(lambda: not any(processes_with(m) for m in marks), "both are dead")
    assert daemon.request("DELETE", base).status in (200, 204)


def test_a_launcher_that_dies_is_replaced_and_takes_its_runs_along(make_daemon):
    daemon = make_daemon()
    mark = marker()
    connection = daemon.start(spawn_marked(mark), "shell", timeout=60)
    wait_until(lambda: processes_with(mark), "the program runs")
    os.kill(launcher_of(daemon), signal.SIGKILL)
    daemon.wait_record(event_type="launcher_restarted")
    wait_until(lambda: not processes_with(mark), "the program is dead")
    connection.close()
    assert daemon.printed("echo again") == "again\n"


def test_a_killed_daemon_leaves_nothing(make_daemon):
    daemon = make_daemon()
    mark = marker()
    connection = daemon.start(f"(setsid bash -c '{spawn_marked(mark)}' &); {spawn_marked(mark)}", "shell", timeout=60)
    wait_until(lambda: len(processes_with(mark)) >= 2, "the program runs")
    rooms = set(pathlib.Path("/tmp").glob("sandbox-executor-*"))
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    wait_until(lambda: not processes_with(mark), "the program is dead")
    wait_until(lambda: not rooms & set(pathlib.Path("/tmp").glob("sandbox-executor-*")) or len(rooms) > 1,
               "its directory is gone")
    connection.close()


def test_memory_is_watched(make_daemon):
    daemon = make_daemon(MAX_MEMORY_MB=64)
    got = daemon.execute("import time\ndef handler(e):\n    a = bytearray(200 << 20)\n    time.sleep(600)",
                         timeout=harness.PATIENCE)
    assert got["termination"]["reason"] == "oom", got


# ---- macOS's sandbox, with something else in its place ----

STAND_IN = """#!/bin/sh
# Takes the place of macOS's program: notes what it was given, checks the form, runs the rest.
[ "$1" = -p ] || exit 64
printf '%s' "$2" > "$(dirname "$HOME")/profile" || exit 65
shift 2
exec "$@"
"""


def test_seatbelt_goes_around_every_program(make_daemon):
    assert "SBX_CONTAINED" in os.environ, "its program is put where the host's would be"
    path = pathlib.Path("/usr/bin/sandbox-exec")
    path.write_text(STAND_IN)
    path.chmod(0o755)
    daemon = make_daemon(ISOLATION="seatbelt,subprocess")
    assert daemon.health().json()["isolation"] == "seatbelt"
    got = daemon.execute("cat ../profile; pwd >&2; cat", "shell", stdin="in")
    assert got["status"] == "success", got
    assert got["stdout"].startswith("(version 1)\n(deny default)\n"), got
    assert f'(subpath "{got["stderr"].strip()}")' in got["stdout"], got
    assert "network" not in got["stdout"] and got["stdout"].endswith("in"), got
    assert got["isolation"]["traits"] == []
    assert daemon.returned("def handler(e):\n    return e", event={"a": 1}) == {"a": 1}
    refused = daemon.request("POST", "/v1/sandboxes", json={})
    assert refused.status == 400 and "seatbelt" in refused.text, refused
    assert daemon.request("POST", "/v1/sandboxes", json={"isolation": "subprocess"}).status == 201
