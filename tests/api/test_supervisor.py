# SPDX-License-Identifier: MIT
"""A service manager is told when the daemon serves, and when it ends."""
import os
import pathlib
import signal
import socket
import tempfile

import pytest

import harness


@pytest.fixture
def manager():
    with tempfile.TemporaryDirectory() as top, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        os.chmod(top, 0o711)
        sock.settimeout(harness.DEADLINE)
        yield sock, pathlib.Path(top) / "notify"


@pytest.fixture
def told(manager):
    """A socket that the daemon's user may write to, and its name."""
    sock, path = manager
    sock.bind(str(path))
    path.chmod(0o777)
    return manager


def test_it_says_when_it_serves_and_when_it_ends(make_daemon, told):
    sock, path = told
    daemon = make_daemon(NOTIFY_SOCKET=path)
    assert sock.recv(100) == b"READY=1\n"
    assert daemon.health().status == 200
    daemon.stop()
    assert sock.recv(100) == b"STOPPING=1\n"
    sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        sock.recv(100)


def test_it_speaks_to_abstract_sockets(make_daemon, manager):
    name = f"sbx-notify-{os.getpid()}"
    sock, _ = manager
    sock.bind("\0" + name)
    make_daemon(NOTIFY_SOCKET="@" + name)
    assert sock.recv(100) == b"READY=1\n"


@pytest.mark.parametrize("name", ["/nobody/listens", "relative", "@", "", "/" + "x" * 200])
def test_nobody_who_listens_is_no_obstacle(make_daemon, name):
    assert make_daemon(NOTIFY_SOCKET=name).printed("echo served") == "served\n"


def test_programs_do_not_see_the_socket(make_daemon, told):
    sock, path = told
    daemon = make_daemon(args=["--", "/bin/sh", "-c", "echo socket=$NOTIFY_SOCKET; exec sleep 600"], NOTIFY_SOCKET=path)
    assert sock.recv(100) == b"READY=1\n"
    assert daemon.out.wait(lambda line: line == "socket=")
    assert daemon.printed("echo $NOTIFY_SOCKET") == "\n"
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 0  # with a command of the operator
    daemon.check_nothing_left()
