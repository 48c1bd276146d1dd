# SPDX-License-Identifier: MIT
"""The walls a daemon builds around itself once it has started."""
import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import harness

PROBE = pathlib.Path(harness.BUILD) / "tests" / "fault" / "lockdown-probe"
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2


def threads(daemon):
    return [int(name) for name in os.listdir(f"/proc/{daemon.pid}/task")]


def status(daemon, thread):
    lines = pathlib.Path(f"/proc/{daemon.pid}/task/{thread}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def test_every_thread_of_the_daemon_is_confined(daemon):
    """Also those that looking up names or copying artifacts may have made."""
    daemon.execute("echo text >file", "shell")
    assert len(threads(daemon)) > 1
    for thread in threads(daemon):
        seen = status(daemon, thread)
        assert seen["NoNewPrivs"] == "1" and seen["Seccomp"] == "2", seen
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(seen[name], 16) == 0, (name, seen)
        if harness.ROOT:
            assert "0" not in seen["Uid"].split() and seen["Groups"] == "", seen


def test_nothing_behind_the_guard_may_dump_core(daemon):
    """1 is what the kernel takes as a no, also where core_pattern is a pipe (test_core_pattern.py); 0 is not."""
    daemon.execute("pass", "python")
    daemon.execute("1", "javascript")
    pids = [daemon.guard(), *harness.descendants(daemon.guard())]
    limits = [(harness.read_proc(pid, "comm"), harness.read_proc(pid, "limits").decode()) for pid in pids]
    assert len(limits) > 3
    for name, text in limits:
        for line in text.splitlines():
            assert not line.startswith("Max core file size") or line.split()[4:6] == ["1", "1"], (name, line)


def test_it_says_what_it_has(daemon):
    record = daemon.wait_record(event_type="confined")
    assert record["system_calls"] == "filtered"
    assert record["files"] == ("landlock" if LANDLOCK else "no")


@pytest.fixture(scope="module")
def probed():
    """What the walls refuse to a program that is inside them, and what it could do before."""
    with tempfile.TemporaryDirectory(prefix="sbx-lockdown-") as folder:
        os.chmod(folder, 0o777)
        (pathlib.Path(folder) / "mine").mkdir(mode=0o777)
        done = subprocess.run([PROBE, str(pathlib.Path(folder) / "mine"), folder], stdout=subprocess.PIPE, text=True,
                              timeout=60, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


REFUSED = ("execve fork ptrace setresuid unshare setns mount chroot bpf io_uring_setup perf_event_open keyctl "
           "open_by_handle_at process_vm_readv mknodat capset").split()


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_outside_the_filter_is_refused(probed, call):
    assert probed[call] == "EPERM", probed


def test_clone3_is_unknown_and_foreign_sockets_are(probed):
    assert probed["clone3"] == "ENOSYS"
    assert probed["socket-packet"] == probed["socket-vsock"] == probed["socket-alg"] == "EAFNOSUPPORT"


@pytest.mark.parametrize("what", ["thread", "socket-inet", "socket-inet6", "socket-unix", "socket-route", "read", "write-mine"])
def test_what_a_server_needs_is_there(probed, what):
    assert probed[what] == "ok", probed


def test_files_are_written_only_where_they_belong(probed):
    harness.need(LANDLOCK, "this kernel has no Landlock")
    assert probed["write-other"] == probed["mkdir-other"] == probed["unlink-other"] == "EACCES", probed


def test_foreign_system_calls_end_the_process():
    """32-bit numbers mean other calls: whoever makes them is not us."""
    with tempfile.TemporaryDirectory(prefix="sbx-lockdown-") as folder:
        done = subprocess.run([PROBE, folder, folder, "foreign"], stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == -signal.SIGSYS
