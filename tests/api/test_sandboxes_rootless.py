# SPDX-License-Identifier: MIT
"""Persistent sandboxes of a daemon that is an ordinary user."""
import harness
import pytest
from koyeb import Sandbox
from test_archive import Files, archive, member
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def box(make_daemon_module, programs):  # noqa: F811
    return Sandbox(make_daemon_module(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic",
                                      NODE_ZYGOTE="false"))


def test_commands_and_files(box):
    assert box.sh("id -u; pwd") == "1000\n/workspace\n"
    assert box.call("write_file", path="/workspace/a/b", content="x")["success"] is False
    assert box.call("make_dir", path="/workspace/a") == {"success": True}
    assert box.call("write_file", path="/workspace/a/b", content="x") == {"success": True}
    assert box.call("read_file", path="/workspace/a/b") == {"content": "x"}
    assert box.call("delete_dir", path="/workspace/a") == {"success": True}


def test_what_can_be_written_is_said(box):
    writable = box.daemon.request("GET", "/v1/sandboxes/default").json()["writable"]
    for directory in writable:
        assert box.run(f"touch {directory}/.probe && rm {directory}/.probe")["code"] == 0, directory
    for directory in {"/usr", "/etc", "/usr/local"} - set(writable):
        assert box.run(f"touch {directory}/.probe")["code"] != 0, directory


def test_the_tree_of_a_process_is_killed(box):
    mark = harness.marker()
    ident = box.start(f'setsid bash -c "exec -a {mark} sleep 600" & sleep 600')["id"]
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    assert box.post("kill_process", {"id": ident}).status == 200
    harness.wait_until(lambda: not harness.processes_with(mark), "the tree is gone")


def test_too_much_memory_ends_what_runs_but_not_the_sandbox(make_daemon, programs):  # noqa: F811
    box = Sandbox(make_daemon(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic",
                              SANDBOX_MEMORY_MB=64))
    box.sh("echo kept > /workspace/kept")
    assert box.run("python3 -c 'x = bytearray(300 << 20); import time; time.sleep(600)'")["code"] == -1
    assert box.sh("cat /workspace/kept") == "kept\n"


def test_directories_as_archives(box):
    files = Files(box.daemon)
    r = files.put("/workspace/up", archive(member("d/f", b"hello"), member("d/g", b"x", mode=0o600)))
    assert r.status == 200 and r.json() == {"path": "/workspace/up", "entries": 2, "size": 6}
    got = files.fetch("/workspace/up")
    assert got.status == 200 and files.put("/workspace/again", got.body).json()["entries"] == 3
    assert box.sh("cat again/d/f; stat -c '%a %u' again/d/g") == "hello600 1000\n"
    assert files.put("/workspace/up", archive(member("../out", b"x"))).status == 400
    box.sh("rm -rf up again")
