# SPDX-License-Identifier: MIT
"""The clock is set while requests are under way, by a year and to either side: nobody may notice.

Only where the clock is the test's own (SBX_SET_CLOCK=1): tests/vm/run has such a machine.
"""
import os
import signal
import tempfile
import threading
import time

import pytest

import harness
from koyeb import Sandbox
from test_functions_call import PY, WRITE, call, host_dir

YEAR = 366 * 24 * 3600
HOUR_MS = 3600 * 1000

pytestmark = pytest.mark.skipif(os.environ.get("SBX_SET_CLOCK") != "1", reason="sets the clock of the machine")


@pytest.fixture
def jump():
    """jump(seconds), taken back in the end."""
    jumped = 0

    def set_by(seconds):
        nonlocal jumped
        jumped += seconds
        time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)
    yield set_by
    set_by(-jumped)


@pytest.mark.parametrize("by", [YEAR, -YEAR])
def test_a_run_grows_neither_older_nor_younger(daemon, jump, by):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark) + "; echo over", "shell", timeout=300)
    pid = harness.wait_until(lambda: harness.processes_with(mark), "it runs")[0]
    jump(by)
    os.kill(pid, signal.SIGTERM)
    result = run.receive().json()
    assert (result["status"], result["stdout"]) == ("success", "over\n"), result
    assert 0 < result["metrics"]["duration_ms"] < HOUR_MS
    assert daemon.printed("echo next") == "next\n"


@pytest.mark.parametrize("by", [YEAR, -YEAR])
def test_a_deadline_comes_all_the_same(daemon, jump, by):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell", timeout=5)
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    jump(by)
    assert run.receive().json()["status"] == "timeout"
    harness.wait_until(lambda: not harness.processes_with(mark), "it is dead")
    assert daemon.printed("echo next") == "next\n"


@pytest.mark.parametrize("by", [YEAR, -YEAR])
def test_what_lives_on_lives_on(daemon, jump, by):
    box = Sandbox(daemon)
    assert box.sh("echo kept >file") == ""
    made = daemon.request("POST", "/v1/sessions", json={"language": PY, "code": "n = 0\ndef f():\n global n; n += 1; return n"})
    session = f"/v1/sessions/{made.json()['id']}/call"
    assert daemon.request("POST", session, json={"functionName": "f"}).json()["result"] == 1
    jump(by)
    assert box.sh("cat file") == "kept\n"
    assert daemon.request("POST", session, json={"functionName": "f"}).json()["result"] == 2


# ---- lent files, of which the times tell what has changed ----


@pytest.fixture(scope="module")
def mounts(make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-clock-")
    os.chmod(root, 0o777)
    instance = make_daemon_module(MOUNT_ROOTS=root)
    instance.root = root
    result = call(instance, PY, "def f(): return 1", options=lent(host_dir(instance)))
    harness.need(result["meta"]["loading"] == "lazy", result["meta"].get("loadingReason"))
    return instance


def lent(path):
    return {"mount": {"dirs": {"/data": path}, "loading": {"mode": "lazy"}, "permissions": WRITE, "sync": {"mode": "batch"}}}


CHANGE_LATER = """
import subprocess, time
def f():
    began = time.time()
    subprocess.Popen(["MARK", "600"], executable="/bin/sleep")
    while abs(time.time() - began) < 100000:
        time.sleep(0.01)
    with open("/data/changed", "w") as f:
        f.write("after")
"""


@pytest.mark.parametrize("by", [YEAR, -YEAR])
def test_a_change_is_seen_whatever_its_time(mounts, jump, by):
    path, mark, results = host_dir(mounts, changed="before", same="as it was"), harness.marker(), []
    caller = threading.Thread(target=lambda: results.append(
        call(mounts, PY, CHANGE_LATER.replace("MARK", mark), options=lent(path), timeout=120)))
    caller.start()
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    jump(by)
    caller.join()
    assert [one["path"] for one in results[0]["files"]["modified"]] == ["/data/changed"], results
    assert results[0]["files"]["created"] == results[0]["files"]["deleted"] == []
    with open(f"{path}/changed", encoding="utf-8") as changed, open(f"{path}/same", encoding="utf-8") as same:
        assert (changed.read(), same.read()) == ("after", "as it was")


def test_a_clock_that_never_rests_holds_nobody_up(mounts, jump):
    """Files get a later time than others by waiting for the clock, which here only goes back."""
    path, rest = host_dir(mounts, file="text"), threading.Event()

    def go_back():
        while not rest.wait(0.003):
            jump(-10)
    restless = threading.Thread(target=go_back)
    restless.start()
    try:
        results = [call(mounts, PY, "def f():\n  with open('/data/file') as f: return f.read()", options=lent(path), timeout=120)
                   for _ in range(5)]
    finally:
        rest.set()
        restless.join()
    assert [r["result"] for r in results] == ["text"] * 5, results
    assert all(r["files"]["modified"] == [] for r in results), results
