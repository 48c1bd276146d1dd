# SPDX-License-Identifier: MIT
"""Kept workspaces have limits: bytes, files and a reserve of their file system."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import harness
import pytest
from harness import ROOT, need

MIB = 1 << 20


@pytest.fixture(scope="module")
def limited(make_daemon_module):
    return make_daemon_module(SESSION_DISK_MB=16, SESSION_FILES=300)


def workspace(daemon, session):
    return daemon.state_dir / "workspaces" / f"s-{session}"


def run(daemon, code, session, **fields):
    response = daemon.request("POST", "/execute", headers={"Prefer": "wait"},
                              json={"code": code, "language": "shell", "session_id": session, **fields})
    assert response.status == 200, response
    return response.json()


def printed(daemon, code, session):
    result = run(daemon, code, session)
    assert result["status"] == "success", result
    return result["stdout"]


def is_refused(result):
    return result["status"] == "error" and result["termination"]["reason"] == "disk" and result["stdout"] == ""


GREEDY = {
    "bytes": ("head -c 40M /dev/zero >large", "SESSION_DISK_MB"),
    "files": ("mkdir d; cd d; touch $(seq 1000)", "SESSION_FILES"),
    "hidden": ("mkdir .h; head -c 40M /dev/zero >.h/large; chmod 0 .h", "SESSION_DISK_MB"),
    "deep": ("for i in $(seq 250); do mkdir d; cd d; done", "deep"),
}


@pytest.mark.parametrize("kind", GREEDY)
def test_a_run_that_makes_its_workspace_too_large_is_ended_and_the_next_refused(limited, kind):
    code, words = GREEDY[kind]
    need(ROOT or kind != "hidden", "without root a directory that its owner cannot read is not read")
    name = harness.marker()
    result = run(limited, f"echo begun; {code}; sleep 60", name, timeout=60)
    assert result["termination"]["reason"] == "disk" and result["status"] == "error", result
    assert result["stdout"] == "begun\n" and words in result["stderr"], result
    refused = run(limited, "echo ran", name)
    assert is_refused(refused) and words in refused["stderr"], refused
    assert printed(limited, "echo other", harness.marker()) == "other\n"
    shutil.rmtree(workspace(limited, name))
    assert printed(limited, "echo again", name) == "again\n"
    assert limited.wait_record(event_type="workspace_over_limit", session_id=name)


def test_a_run_that_ends_before_anybody_looks_is_the_last(limited):
    name = harness.marker()
    first = run(limited, "head -c 40M /dev/zero >large", name)
    assert first["status"] in ("success", "error")
    assert limited.wait_record(event_type="workspace_over_limit", session_id=name)
    assert is_refused(run(limited, "echo ran", name))
    large = workspace(limited, name) / "large"
    assert large.stat().st_size == 40 * MIB
    large.unlink()
    assert printed(limited, "echo again; ls", name) == "again\n"


def test_names_of_one_file_count_once(limited):
    name = harness.marker()
    code = "head -c 10M /dev/zero >a; for i in $(seq 20); do ln a b$i; done; sleep 2; echo done"
    assert printed(limited, code, name) == "done\n"
    assert printed(limited, "echo again", name) == "again\n"


def test_the_file_system_keeps_a_reserve(make_daemon):
    need(ROOT, "mounting needs root")
    place = pathlib.Path(tempfile.mkdtemp(prefix="sbx-small-"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0755", "small", place], check=True)
    try:
        daemon = make_daemon(WORKSPACE_PATH=str(place))
        name = harness.marker()
        assert printed(daemon, "head -c 20M /dev/zero >a; echo in", name) == "in\n"
        (place / "fill").write_bytes(bytes(os.statvfs(place).f_bavail * 4096 - MIB))
        result = run(daemon, "sleep 60", name, timeout=60)
        assert result["termination"]["reason"] == "disk" and "DISK_RESERVE_MB" in result["stderr"], result
        (place / "fill").unlink()
        assert printed(daemon, "echo again", name) == "again\n"
    finally:
        subprocess.run(["umount", "-l", place], check=True)
        place.rmdir()
