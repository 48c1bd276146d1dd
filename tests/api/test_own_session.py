# SPDX-License-Identifier: MIT
"""A daemon that serves one session (SESSION_ID), and sessions whose executions run side by side."""
import ctypes
import errno
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

import faults
import harness
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)

WAIT = {"Prefer": "wait"}
READS = "def handler(event): print(open('input.txt').read(), end='')"
STRANGER = 4321  # an ordinary user of the host, whose directory the platform has mounted


def run(daemon, code, session=None, language="shell", **fields):
    body = {"code": code, "language": language, **fields, **({"session_id": session} if session else {})}
    answered = daemon.request("POST", "/execute", json=body, headers=WAIT)
    assert answered.status == 200, answered
    return answered.json()


def printed(daemon, code, session=None, **fields):
    result = run(daemon, code, session, **fields)
    assert result["status"] == "success", result
    return result["stdout"]


@pytest.fixture
def place():
    """A directory that a platform has filled, which every user may reach."""
    with tempfile.TemporaryDirectory(prefix="sbx-platform-", ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o711)
        mounted = pathlib.Path(top) / "mounted"
        mounted.mkdir(mode=0o755)
        (mounted / "input.txt").write_text("from the platform\n")
        yield mounted


def test_its_workspace_is_the_directory_itself(make_daemon, place):
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place)
    assert printed(daemon, "pwd; cat input.txt; echo answer >output.txt", "mine") == "/workspace\nfrom the platform\n"
    assert (place / "output.txt").read_text() == "answer\n"
    (place / "later.txt").write_text("later\n")
    assert printed(daemon, "cat later.txt output.txt", "mine") == "later\nanswer\n"
    assert set(p.name for p in place.iterdir()) == {"input.txt", "output.txt", "later.txt"}


def test_other_sessions_have_a_directory_each(make_daemon, place):
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place)
    assert printed(daemon, "ls -A; touch theirs", "other") == ""
    assert printed(daemon, "ls -A", "own") == ""
    assert printed(daemon, "ls -A; touch nobodys") == ""
    assert printed(daemon, "ls -A", "other") == "theirs\n"
    assert printed(daemon, "ls -A", "mine") == "input.txt\n"
    assert {p.name for p in (daemon.state_dir / "workspaces").iterdir()} == {"s-other", "s-own"}


def test_without_a_directory_of_its_own_it_is_a_session_like_any_other(make_daemon):
    daemon = make_daemon(SESSION_ID="mine")
    assert printed(daemon, "touch here", "mine") == ""
    assert (daemon.state_dir / "workspaces" / "s-mine" / "here").exists()


def test_it_outlives_the_daemon(make_daemon, place):
    first = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place)
    printed(first, "umask 077; mkdir d; echo kept >d/note", "mine")
    first.stop()
    assert printed(make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place), "cat d/note; echo more >>d/note", "mine") == "kept\n"


def test_an_ordinary_owner_stays_the_owner(make_daemon, place):
    harness.need(harness.ROOT and harness.JAIL == "native", "only root gives directories away")
    os.chown(place, STRANGER, STRANGER)
    place.chmod(0o700)
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place)
    assert printed(daemon, "id -u; cat input.txt; touch output", "mine") == "1000\nfrom the platform\n"
    assert printed(daemon, READS, "mine", language="python") == "from the platform\n"
    assert (place / "output").stat().st_uid == STRANGER and place.stat().st_uid == STRANGER
    printed(daemon, "touch theirs", "other")
    assert (daemon.state_dir / "workspaces" / "s-other").stat().st_uid != STRANGER


def test_its_executions_run_side_by_side(make_daemon, place):
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=place)
    meet(daemon, "mine")


def meet(daemon, session):
    """Each of two programs ends only when the other one has begun."""
    code = "touch {0}; until [ -e {1} ]; do sleep 0.02; done"
    results = []

    def one(a, b):
        results.append(run(daemon, code.format(a, b), session, timeout=30))
    threads = [threading.Thread(target=one, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r["status"] for r in results] == ["success"] * 2, results


def test_executions_of_any_session_run_side_by_side(daemon):
    meet(daemon, harness.marker())


def test_no_more_of_a_session_run_than_allowed(make_daemon):
    daemon = make_daemon(SESSION_CONCURRENCY=2)
    meet(daemon, "two")
    mark = harness.marker()
    keys = []
    for _ in range(3):
        answered = daemon.request("POST", "/execute", json={
            "code": harness.spawn_marked(mark), "language": "shell", "session_id": "three"})
        keys.append(answered.json()["execution_id"])
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 2, "two of three run")
    states = [daemon.request("GET", f"/v1/executions/{key}").json()["state"] for key in keys]
    assert sorted(states) == ["queued", "running", "running"]
    for key in keys:
        daemon.request("DELETE", f"/v1/executions/{key}")


@pytest.fixture(params=["here", "rootless"])
def fuse(request, place):
    """A directory on a FUSE file system without exclusive renames, and what a daemon is to be started with."""
    harness.need(os.path.exists("/dev/fuse"), "this host has no /dev/fuse")
    harness.need(harness.ROOT, "mounting for other users needs root")
    more = {}
    if request.param == "rootless":
        harness.need(harness.JAIL == "native", "the suite of the other jails covers it")
        os.chown(place, NOBODY, NOBODY)
        programs = request.getfixturevalue("programs")
        more = {"binary": programs / "sandbox-executor", "user": NOBODY, "ISOLATION_LEVEL": "basic"}
    there = place.parent / "fuse"
    there.mkdir()
    before = os.stat(there).st_dev
    with subprocess.Popen(["bindfs", "-f", place, there]) as server:
        harness.live.add(server.pid)
        try:
            harness.wait_until(lambda: os.stat(there).st_dev != before, "the file system is mounted")
            yield there, more
        finally:
            subprocess.run(["umount", "-l", there], check=True)
            server.terminate()  # a mount namespace that is not gone yet may hold it
            harness.live.discard(server.pid)


def test_what_it_is_tested_with_has_no_exclusive_rename(fuse):
    there, _ = fuse
    (there / "a").mkdir()
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    assert renameat2(-100, bytes(there / "a"), -100, bytes(there / "b"), 1) == -1  # RENAME_NOREPLACE
    assert ctypes.get_errno() == errno.EINVAL


def test_sessions_on_a_fuse_file_system(fuse, make_daemon):
    there, more = fuse
    daemon = make_daemon(WORKSPACE_PATH=there, **more)
    for session in ("one", "two"):
        assert printed(daemon, "ls -A; mkdir d; echo kept >d/note", session) == ""
        assert run(daemon, "cat d/note; mv d/note d/other; echo more >>d/other", session)["artifacts"] == ["d/other"]
        assert printed(daemon, "cat d/other", session) == "kept\nmore\n"
    assert sorted(p.name for p in there.iterdir() if p.name.startswith("s-")) == ["s-one", "s-two"]
    seen = daemon.request("GET", "/v1/workspaces/one")
    assert seen.status == 200 and seen.json()["files"] == 2, seen
    assert daemon.request("DELETE", "/v1/workspaces/one").status == 204
    assert printed(daemon, "ls -A", "one") == "" and printed(daemon, "ls d", "two") == "other\n"


def test_the_own_workspace_on_a_fuse_file_system(fuse, make_daemon):
    there, more = fuse
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=there, **more)
    assert printed(daemon, "cat input.txt; echo answer >output.txt", "mine") == "from the platform\n"
    assert (there / "output.txt").read_text() == "answer\n"
    assert printed(daemon, "ls -A", "other") == ""
    daemon.stop()
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=there, **more)
    assert printed(daemon, "cat output.txt", "mine") == "answer\n"


def test_a_file_system_that_cannot_rename_exclusively_will_do():
    """As FUSE file systems such as s3fs: renameat2 with RENAME_NOREPLACE is EINVAL there."""
    harness.need(harness.ROOT and harness.JAIL == "native", "the injector's roles are those of the native jail as root")
    faulty = faults.Faulty()
    try:
        faulty.arm("launcher", "renameat2", 1, "EINVAL", "always")
        assert printed(faulty.daemon, "echo kept >note", "s") == ""
        assert faulty.disarm() > 0
        assert printed(faulty.daemon, "cat note", "s") == "kept\n"
    finally:
        faulty.stop()
