# SPDX-License-Identifier: MIT
"""/v1/workspaces: the kept workspaces of sessions are listed, measured and removed, and grow old."""
import os
import pathlib
import tempfile
import threading
import urllib.parse

import pytest

import harness
from harness import ROOT, need, wait_until
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)

MEMBERS = {"session_id", "bytes", "files", "measured_at", "created_at", "last_used_at", "in_use"}
KIB = 1024


def run(daemon, code, session, **fields):
    body = {"code": code, "language": "shell", "session_id": session, **fields}
    answer = daemon.request("POST", "/execute", headers={"Prefer": "wait"}, json=body)
    assert answer.status == 200, answer
    return answer.json()


def printed(daemon, code, session):
    result = run(daemon, code, session)
    assert result["status"] == "success", result
    return result["stdout"]


def path_of(session):
    return "/v1/workspaces/" + urllib.parse.quote(session, safe="")


def look(daemon, session):
    answer = daemon.request("GET", path_of(session))
    assert answer.status in (200, 404), answer
    return answer.json() if answer.status == 200 else None


def remove(daemon, session):
    return daemon.request("DELETE", path_of(session))


def page(daemon, query=""):
    answer = daemon.request("GET", "/v1/workspaces" + query)
    assert answer.status == 200, answer
    body = answer.json()
    assert set(body) == {"workspaces", "next"} and all(set(w) == MEMBERS for w in body["workspaces"])
    return body["workspaces"], body["next"]


def names(daemon, query=""):
    return [w["session_id"] for w in page(daemon, query)[0]]


def directories(daemon):
    return {p.name for p in (daemon.state_dir / "workspaces").iterdir()}


@pytest.fixture(params=["here", "rootless"])
def place(request, make_daemon):
    """Starts daemons on one state directory; also rootless where the tests are root."""
    rootless = request.param == "rootless"
    need(not rootless or (ROOT and harness.JAIL == "native"), "becoming an ordinary user needs root")
    more = {}
    if rootless:
        programs = request.getfixturevalue("programs")
        more = {"binary": programs / "sandbox-executor", "user": NOBODY, "ISOLATION_LEVEL": "basic"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o711)
        if rootless:
            os.chown(top, NOBODY, NOBODY)

        def start(**env):
            daemon = make_daemon(STATE_DIR=pathlib.Path(top) / "state", **more, **env)
            daemon.state_dir = pathlib.Path(top) / "state"
            return daemon

        yield start


@pytest.fixture
def given():
    """A directory of the operator that every user may reach."""
    with tempfile.TemporaryDirectory(prefix="sbx-given-", ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o711)
        path = pathlib.Path(top) / "given"
        path.mkdir(mode=0o755)
        yield path


HOSTILE = ("mkdir -p closed/below d/e; echo x >closed/below/file; chmod 0 closed/below closed d/e; "
           "ln -s /etc/passwd link; ln -s / root; ln -s ../.. d/up; mkfifo fifo; mkdir -m 555 still; "
           "i=0; while [ $i -lt 300 ]; do mkdir deep; cd deep; i=$((i+1)); done; echo end >end; cd /workspace; chmod 0 .")


def test_a_workspace_is_seen_measured_and_removed(place):
    daemon = place()
    assert page(daemon) == ([], None) and look(daemon, "a") is None and remove(daemon, "a").status == 404
    printed(daemon, "head -c 100k /dev/zero >large; mkdir d; touch d/one d/two", "a")
    seen = look(daemon, "a")
    assert set(seen) == MEMBERS and seen["session_id"] == "a" and seen["in_use"] is False
    assert seen["files"] == 4 and 100 * KIB <= seen["bytes"] <= 200 * KIB
    assert seen["created_at"] <= seen["last_used_at"] <= seen["measured_at"]
    assert names(daemon) == ["a"]
    removed = remove(daemon, "a")
    assert (removed.status, removed.body) == (204, b"")
    assert names(daemon) == [] and look(daemon, "a") is None and remove(daemon, "a").status == 404
    assert directories(daemon) == set()
    assert printed(daemon, "ls -A; touch again", "a") == "" and look(daemon, "a")["files"] == 1


def test_whatever_a_tenant_leaves_is_removed_and_nothing_else(place, tmp_path):
    daemon = place()
    run(daemon, HOSTILE, "hostile")
    printed(daemon, "echo kept >file", "neighbour")
    before = os.stat("/etc/passwd")
    removed = remove(daemon, "hostile")
    assert removed.status == 204, removed
    assert directories(daemon) == {"s-neighbour"}
    after = os.stat("/etc/passwd")
    assert (before.st_ino, before.st_mode, before.st_size) == (after.st_ino, after.st_mode, after.st_size)
    assert printed(daemon, "cat file", "neighbour") == "kept\n"


def test_what_is_known_outlives_the_daemon(place):
    first = place()
    for session in ("one", "two/../&=\u00e4", "three"):
        printed(first, "echo kept >file", session)
    before = page(first)[0]
    first.stop()
    second = place()
    after = page(second)[0]
    assert [w["session_id"] for w in after] == ["three", "two/../&=\u00e4", "one"]
    for old, new in zip(before, after):
        assert (old["created_at"], old["last_used_at"]) == (new["created_at"], new["last_used_at"])
    assert remove(second, "two/../&=\u00e4").status == 204
    assert look(second, "one")["files"] == 1
    second.stop()
    assert names(place()) == ["three", "one"]


def test_the_directories_decide_what_there_is(place):
    first = place()
    for session in ("stays", "goes", "spaced out"):
        printed(first, "true", session)
    first.stop()
    (first.state_dir / "workspaces" / "s-goes").rmdir()
    for record in (first.state_dir / "sessions").iterdir():
        if record.name != "s-goes":
            record.unlink()
    second = place()
    assert sorted(names(second), key=str) == [None, "stays"]
    printed(second, "true", "spaced out")
    assert sorted(names(second)) == ["spaced out", "stays"]


def test_one_that_is_in_use_stays(place):
    daemon = place()
    done = threading.Thread(target=run, args=(daemon, "until [ -e go ]; do sleep 0.05; done; echo x >after", "busy"))
    done.start()
    wait_until(lambda: names(daemon) == ["busy"], "the execution runs")
    assert look(daemon, "busy")["in_use"] is True and page(daemon)[0][0]["in_use"] is True
    refused = remove(daemon, "busy")
    assert refused.status == 409 and refused.json()["error_code"] == "Executor.Conflict", refused
    assert printed(daemon, "touch go", "busy") == ""
    done.join()
    assert remove(daemon, "busy").status == 204


def test_pages_join_without_gap_or_repetition(make_daemon):
    daemon = make_daemon()
    for i in range(7):
        printed(daemon, "true", f"s{i}")
    printed(daemon, "true", "s2")
    whole = [f"s{i}" for i in (6, 5, 4, 3, 2, 1, 0)]
    assert names(daemon) == whole
    seen, cursor = [], ""
    while cursor is not None:
        found, after = page(daemon, f"?limit=3{cursor}")
        seen += [w["session_id"] for w in found]
        cursor = after and f"&cursor={after}"
    assert seen == whole
    assert names(daemon, "?limit=7") == whole and page(daemon, "?limit=7")[1] is None
    for wrong in ("limit=0", "limit=1001", "limit=x", "cursor=-1", "cursor=x", "cursor="):
        assert daemon.request("GET", "/v1/workspaces?" + wrong).status == 400, wrong


def test_the_list_knows_sizes_without_a_look(make_daemon):
    daemon = make_daemon()
    printed(daemon, "head -c 50k /dev/zero >file", "a")
    sized = wait_until(lambda: [w for w in page(daemon)[0] if w["bytes"] is not None], "the workspace was measured")
    assert sized[0]["files"] == 1 and sized[0]["bytes"] >= 50 * KIB


def test_one_that_nobody_uses_is_removed(place):
    daemon = place(SESSION_MAX_AGE=2)
    stop = threading.Event()

    def use():
        while not stop.is_set():
            printed(daemon, "echo kept >>file", "used")

    printed(daemon, "touch file", "forgotten")
    printed(daemon, "touch file", "forgotten too")
    user = threading.Thread(target=use)
    user.start()
    try:
        wait_until(lambda: "forgotten" not in names(daemon) and "forgotten too" not in names(daemon), "both are gone")
        assert names(daemon) == ["used"]
    finally:
        stop.set()
        user.join()
    assert daemon.wait_record(event_type="workspace_expired", session_id="forgotten")
    wait_until(lambda: directories(daemon) <= {"s-used"}, "their directories are gone")


def test_age_counts_while_no_daemon_runs(place):
    first = place()
    printed(first, "touch file", "old")
    first.stop()
    record = first.state_dir / "sessions" / "s-old"
    text = record.read_text()
    used = str(int(text.rpartition(":")[2].rstrip("}\n ")))
    record.write_text(text.replace(used, str(int(used) - 40 * 86400 * 10**6)))
    second = place()
    wait_until(lambda: names(second) == [], "it is gone")
    wait_until(lambda: directories(second) == set(), "its directory is gone")


def test_a_removal_that_was_cut_short_goes_on(place):
    first = place()
    run(first, HOSTILE, "half")
    first.stop()
    top = first.state_dir / "workspaces"
    (top / "s-half").rename(top / ".gone-0")
    second = place()
    wait_until(lambda: directories(second) == set(), "what was left is removed")
    assert names(second) == []


def test_the_own_workspace_is_the_operators(make_daemon, given):
    daemon = make_daemon(SESSION_ID="mine", WORKSPACE_PATH=given, SESSION_MAX_AGE=1)
    printed(daemon, "echo kept >file", "mine")
    printed(daemon, "touch file", "other")
    assert look(daemon, "mine")["files"] == 1
    refused = remove(daemon, "mine")
    assert refused.status == 409 and "WORKSPACE_PATH" in refused.json()["error_detail"], refused
    wait_until(lambda: names(daemon) == ["mine"], "the other one grew too old")
    assert printed(daemon, "cat file", "mine") == "kept\n"


def test_removing_runs_as_nobody_special(make_daemon):
    """The process that removes has the tenant's user and no privilege: what it may not remove stays."""
    need(ROOT and harness.JAIL == "native", "only root has privileges to give up")
    daemon = make_daemon()
    printed(daemon, "mkdir d", "odd")
    inside = daemon.state_dir / "workspaces" / "s-odd" / "d"
    (inside / "roots").write_text("not the tenant's")
    os.chown(inside, 0, 0)
    refused = remove(daemon, "odd")
    assert refused.status == 500 and "ermission" in refused.text, refused
    assert daemon.wait_record(event_type="workspace_not_removed", name="s-odd")
    left = [p for p in directories(daemon) if p.startswith(".gone-")]
    assert len(left) == 1 and (daemon.state_dir / "workspaces" / left[0] / "d" / "roots").exists()
    assert look(daemon, "odd") is None and printed(daemon, "ls -A", "odd") == ""
