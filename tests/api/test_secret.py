# SPDX-License-Identifier: MIT
"""The secret over the life of a daemon: kept between starts, read from a file, replaced at SIGHUP; and one
daemon per state directory."""
import os
import signal
import subprocess

import pytest

import harness

NO_SECRET = {"SANDBOX_AUTH_MODE": None, "SANDBOX_SECRET": None}


def status(daemon, secret):
    headers = {"Authorization": f"Bearer {secret}"}
    return daemon.request("GET", "/v1/executions/none", headers=headers).status


def knows(daemon, secret):
    return status(daemon, secret) == 404


def shown(daemon):
    """The first screen, to its end."""
    return harness.wait_until(lambda: "  Stop " in daemon.stdout_text() and daemon.stdout_text(), "the first screen")


@pytest.fixture
def place(tmp_path):
    """Where the daemon's user can read."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    return tmp_path


def write(path, text):
    path.write_text(text)
    path.chmod(0o644)


def test_the_secret_that_the_first_start_made_stays(make_daemon, place):
    first = make_daemon(STATE_DIR=place / "state", **NO_SECRET)
    secret = (place / "state/secret").read_text().strip()
    assert len(secret) >= 32 and knows(first, secret)
    assert secret in shown(first)
    first.stop()
    again = make_daemon(STATE_DIR=place / "state", **NO_SECRET)
    assert knows(again, secret) and (place / "state/secret").read_text().strip() == secret
    assert f"$(cat {place}/state/secret)" in shown(again)
    assert secret not in shown(again) + again.log_text(), "shown once"


def test_a_second_daemon_on_a_state_directory_is_refused(make_daemon, place):
    first = make_daemon(STATE_DIR=place / "state", **NO_SECRET)
    secret = (place / "state/secret").read_text().strip()
    refusal = harness.start_refused(STATE_DIR=place / "state", **NO_SECRET)
    assert refusal.status == 1
    for words in (f"pid {first.pid}", str(place / "state"), "STATE_DIR"):
        assert words in refusal.stderr
    assert knows(first, secret) and first.health()
    first.stop()
    assert knows(make_daemon(STATE_DIR=place / "state", **NO_SECRET), secret)


def test_the_lock_of_a_daemon_that_was_killed_is_gone(make_daemon, place):
    first = make_daemon(STATE_DIR=place / "state", **NO_SECRET)
    first.signal(signal.SIGKILL)
    first.wait()
    assert make_daemon(STATE_DIR=place / "state", **NO_SECRET).health()


def test_the_secret_may_be_in_a_file(make_daemon, place):
    write(place / "key", "  from a file\n\n")
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=place / "key")
    assert knows(daemon, "from a file") and status(daemon, "other") == 401
    assert "from a file" not in daemon.stdout_text() + daemon.log_text()
    run = subprocess.run([harness.BUILD / "sbx", "run", "-l", "shell", "-u", f"http://127.0.0.1:{daemon.port}", "-"],
                         input=b"echo inside", stdout=subprocess.PIPE, timeout=60,
                         env={"SANDBOX_SECRET_FILE": str(place / "key"), "PATH": os.environ["PATH"]})
    assert run.stdout == b"inside\n"


def test_root_alone_may_be_able_to_read_the_file(make_daemon, place):
    write(place / "key", "for root")
    (place / "key").chmod(0o600)
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=place / "key")
    assert knows(daemon, "for root")
    write(place / "key", "another")
    (place / "key").chmod(0o600)
    daemon.signal(signal.SIGHUP)
    if harness.JAIL != "subprocess" and os.geteuid() == 0:
        assert "key" in daemon.wait_record(event_type="reload_failed")["error"]
        assert knows(daemon, "for root") and status(daemon, "another") == 401


@pytest.mark.parametrize("content", [None, "", " \n", "a\0b", "x" * 5000])
def test_a_file_without_a_secret_stops_the_start(place, content):
    if content is not None:
        write(place / "key", content)
    refusal = harness.start_refused(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=place / "key")
    assert refusal.status == 1 and str(place / "key") in refusal.stderr


def test_a_secret_and_a_file_with_one_exclude_each_other(place):
    refusal = harness.start_refused(SANDBOX_SECRET="x", SANDBOX_SECRET_FILE=place / "key")
    assert refusal.status == 1 and "exclude each other" in refusal.stderr


@pytest.mark.parametrize("overlap", [None, 0])
def test_a_hangup_brings_another_secret(make_daemon, place, overlap):
    write(place / "key", "one")
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=place / "key", SANDBOX_SECRET_OVERLAP=overlap)
    write(place / "key", "two")
    assert status(daemon, "two") == 401
    daemon.signal(signal.SIGHUP)
    record = daemon.wait_record(event_type="reloaded")
    assert record["secret"] == "replaced" and record["overlap_s"] == (300 if overlap is None else 0)
    assert knows(daemon, "two")
    assert knows(daemon, "one") is (overlap is None)
    write(place / "key", "three")
    daemon.signal(signal.SIGHUP)
    harness.wait_until(lambda: knows(daemon, "three"), "the third secret")
    assert status(daemon, "one") == 401, "only the one before"
    assert knows(daemon, "two") is (overlap is None)


def test_the_secret_before_is_accepted_no_longer_than_promised(make_daemon, place):
    write(place / "key", "one")
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=place / "key", SANDBOX_SECRET_OVERLAP=1)
    write(place / "key", "two")
    daemon.signal(signal.SIGHUP)
    harness.wait_until(lambda: knows(daemon, "two"), "the new secret")
    harness.wait_until(lambda: status(daemon, "one") == 401, "the end of the old one")
    assert knows(daemon, "two")


def test_a_hangup_never_stops_the_daemon(make_daemon, place):
    daemon = make_daemon()
    daemon.signal(signal.SIGHUP)
    assert daemon.wait_record(event_type="reloaded")["secret"] == "as before"
    assert daemon.execute("true", "shell")["status"] == "success"
    kept = make_daemon(STATE_DIR=place / "state", **NO_SECRET)
    secret = (place / "state/secret").read_text().strip()
    (place / "state/secret").write_text("chosen\n")
    kept.signal(signal.SIGHUP)
    assert kept.wait_record(event_type="reloaded")["secret"] == "replaced"
    assert knows(kept, "chosen") and knows(kept, secret)
    (place / "state/secret").write_text("")
    kept.signal(signal.SIGHUP)
    kept.wait_record(event_type="reload_failed")
    assert knows(kept, "chosen")
