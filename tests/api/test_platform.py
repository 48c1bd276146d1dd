# SPDX-License-Identifier: MIT
"""A platform that starts one daemon for each session, with nothing but an environment, and all that it relies on.

The platform here writes its session down only when the container it has started was ready twice already, mounts the
files of the session by FUSE, says DISABLE_BWRAP=true as such platforms do, and takes a session for running once `ready`
came.
"""
import json
import os
import pathlib
import secrets
import subprocess
import tempfile

import pytest

import harness
from fake_control_plane import ControlPlane, answer
from harness import ROOT, need, wait_until
from package_index import Index, wheel
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)

TOO_EARLY = 2
UNHEARD = answer(200, json.dumps({"message": "Container ready acknowledged (no session found)"}))


class Platform:
    """Its database, its object store and its containers."""

    def __init__(self, make_daemon, plane, top, how):
        self.make_daemon, self.plane, self.top, self.how = make_daemon, plane, top, how
        self.sessions, self.early, self.store = {}, {}, None
        plane.always("ready", self.on_ready)

    def on_ready(self, handler):
        session = handler.seen.json["container_id"]
        self.early[session] -= 1
        known = self.early[session] < 0
        (answer(201) if known else UNHEARD)(handler)
        if known:
            self.sessions[session] = "running"

    def start(self, session, **env):
        """As the original: the container first, the row in the table later."""
        self.early[session] = TOO_EARLY
        daemon = self.make_daemon(
            CONTROL_PLANE_URL=self.plane.url, INTERNAL_API_TOKEN="token", RESULTS_PATH=self.top / "results",
            STATE_DIR=self.top / "state", SESSION_ID=session, CONTAINER_ID=session, WORKSPACE_PATH=self.store,
            DISABLE_BWRAP="true", ISOLATION=None, ISOLATION_LEVEL=None, HEARTBEAT_INTERVAL=1, **self.how, **env)
        wait_until(lambda: self.sessions.get(session) == "running", "the session runs")
        return daemon


@pytest.fixture(params=["here", "rootless"])
def platform(request, make_daemon):
    need(ROOT and harness.JAIL == "native", "mounting for other users, and becoming one, needs root")
    how = {}
    if request.param == "rootless":
        how = {"binary": request.getfixturevalue("programs") / "sandbox-executor", "user": NOBODY}
    with tempfile.TemporaryDirectory(prefix="sbx-platform-", ignore_cleanup_errors=True) as name:
        top = pathlib.Path(name)
        for path in (top, top / "objects", top / "mount"):
            path.mkdir(exist_ok=True)
            os.chown(path, NOBODY, NOBODY)
            path.chmod(0o755)
        with ControlPlane() as plane:
            platform = Platform(make_daemon, plane, top, how)
            with mounted(top / "objects", top / "mount") as platform.store:
                yield platform


class mounted:
    """The store of the platform as a directory; without /dev/fuse the directory itself."""

    def __init__(self, objects, there):
        self.objects, self.there, self.server = objects, there, None

    def __enter__(self):
        if not os.path.exists("/dev/fuse"):
            return self.objects
        before = os.stat(self.there).st_dev
        self.server = subprocess.Popen(["bindfs", "-f", self.objects, self.there])
        harness.live.add(self.server.pid)
        wait_until(lambda: os.stat(self.there).st_dev != before, "the file system is mounted")
        return self.there

    def __exit__(self, *_):
        if self.server:
            subprocess.run(["umount", "-l", self.there], check=True)
            self.server.terminate()
            self.server.wait()
            harness.live.discard(self.server.pid)


def submit(daemon, code, session, language="python", **fields):
    key = "exec-" + secrets.token_hex(6)
    said = daemon.request("POST", "/execute", headers={"Prefer": "respond-async"},
                          json={"code": code, "language": language, "session_id": session, "execution_id": key, **fields})
    assert said.status == 200, said
    return key


def outcome(platform, daemon, code, session, **fields):
    key = submit(daemon, code, session, **fields)
    return platform.plane.wait("result", key)[0].json


COPY = "def handler(event):\n    text = open('input.txt').read()\n    open('out.txt', 'w').write(text.upper())\n    return len(text)"


def test_the_life_of_a_session(platform):
    daemon = platform.start("sess-1")
    assert daemon.health().json()["status"] == "healthy"
    (platform.store / "input.txt").write_text("uploaded\n")
    result = outcome(platform, daemon, COPY, "sess-1")
    assert result["status"] == "success" and result["return_value"] == 9 and "out.txt" in result["artifacts"], result
    assert (platform.top / "objects" / "out.txt").read_text() == "UPLOADED\n"
    # another session of the same daemon sees nothing of it
    other = outcome(platform, daemon, "ls -A; touch mine", "sess-2", language="shell")
    assert other["status"] == "success" and other["stdout"] == "", other
    assert outcome(platform, daemon, "ls -A", "sess-2", language="shell")["stdout"] == "mine\n"
    assert sorted(p.name for p in platform.store.iterdir()) == ["input.txt", "out.txt"]
    seen = {w["session_id"] for w in daemon.request("GET", "/v1/workspaces").json()["workspaces"]}
    assert seen == {"sess-1", "sess-2"}
    daemon.stop()
    exited = platform.plane.wait("exited")[0].json
    assert exited["container_id"] == "sess-1" and exited["exit_reason"] == "sigterm"


def test_ready_is_repeated_until_the_session_is_known(platform):
    daemon = platform.start("sess-1")
    ready = platform.plane.of("ready")
    assert len(ready) > TOO_EARLY and len({json.dumps(r.json) for r in ready}) == 1
    assert daemon.wait_record(event_type="lifecycle_unheard") and platform.sessions == {"sess-1": "running"}


def test_executions_run_side_by_side_and_heartbeats_say_so(platform):
    daemon = platform.start("sess-1")
    meet = "touch {0}; until [ -e {1} ]; do sleep 0.05; done; sleep 1.2"
    keys = [submit(daemon, meet.format(*names), "sess-1", "shell") for names in (("a", "b"), ("b", "a"))]
    for key in keys:
        assert platform.plane.wait("result", key)[0].json["status"] == "success"
        assert {beat.json["progress"]["status"] for beat in platform.plane.of("heartbeat", key)} == {"running"}


def test_a_concurrency_of_one_runs_one_after_the_other(platform):
    daemon = platform.start("sess-1", SESSION_CONCURRENCY=1)
    code = "[ ! -e busy ] || echo overlap; touch busy; sleep 0.2; rm busy; echo {0} >>order"
    keys = [submit(daemon, code.format(n), "sess-1", "shell") for n in range(4)]
    assert [platform.plane.wait("result", key)[0].json["stdout"] for key in keys] == [""] * 4
    assert (platform.store / "order").read_text() == "0\n1\n2\n3\n"


USE = "def handler(event):\n    import {0}\n    return {0}.__file__"


def test_packages_are_there_in_exactly_the_runs_of_that_session(platform):
    index = Index()
    try:
        index.add(wheel("synced"))
        daemon = platform.start("sess-1")
        body = {"session_id": "sess-1", "language_runtime": "python3.11", "sync_mode": "replace",
                "python_package_index_url": index.url, "dependencies": ["synced"]}
        said = daemon.request("POST", "/internal/session-config/sync", json=body, timeout=120)
        assert said.status == 200 and said.json()["status"] == "completed", said
        assert outcome(platform, daemon, USE.format("synced"), "sess-1")["status"] == "success"
        for stranger in ({"session": "sess-2"}, {"session": None}):
            failed = outcome(platform, daemon, USE.format("synced"), stranger["session"], event={})
            assert failed["status"] == "failed" and "No module named" in failed["stderr"], failed
    finally:
        index.close()
