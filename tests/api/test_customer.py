# SPDX-License-Identifier: MIT
"""The operator's own command after "--"."""
import os
import pathlib
import signal
import time

import harness
import pytest


def start(make_daemon, *command, **env):
    return make_daemon(args=("--", *command), **env)


def end(daemon, status):
    assert daemon.wait() == status
    daemon.check_nothing_left()


def test_its_status_is_ours(make_daemon):
    end(start(make_daemon, "sh", "-c", "sleep 0.3; exit 7"), 7)


def test_death_by_a_signal_is_255(make_daemon):
    end(start(make_daemon, "sh", "-c", "sleep 0.3; kill -KILL $$"), 255)


def test_it_runs_once_everything_listens_with_our_streams_and_environment(make_daemon):
    daemon = start(make_daemon, "sh", "-c", "echo out $MINE; echo err >&2; pwd; cat; id -u; exec sleep 600", MINE="yes")
    assert daemon.out.wait(lambda line: line == "out yes")
    assert daemon.log.wait(lambda line: line == "err")
    assert daemon.out.wait(lambda line: line == str(daemon.directory))
    assert daemon.health().status == 200
    assert daemon.out.wait(lambda line: line == str(os.geteuid())), "as whoever started the daemon"
    daemon.signal(signal.SIGTERM)
    end(daemon, 0)


def test_it_alone_inherits_the_secrets(make_daemon):
    token = "token-" + harness.marker()
    daemon = start(make_daemon, "sh", "-c", "echo has $SANDBOX_SECRET $INTERNAL_API_TOKEN; exec sleep 600",
                   INTERNAL_API_TOKEN=token)
    assert daemon.out.wait(lambda line: line == f"has {daemon.secret} {token}")
    for name in ("environ", "cmdline"):
        shown = pathlib.Path(f"/proc/{daemon.pid}/{name}").read_bytes()
        assert daemon.secret.encode() not in shown and token.encode() not in shown
    inside = daemon.request("POST", "/execute", json={"language": "shell", "code": "env"}).json()["stdout"]
    assert daemon.secret not in inside and token not in inside
    daemon.signal(signal.SIGTERM)
    end(daemon, 0)


def test_a_secret_among_the_arguments_is_shown_by_no_process_of_ours(make_daemon):
    word = "secret-" + harness.marker()
    daemon = make_daemon(args=(f"--internal-token={word}", "--", "sh", "-c", "echo up; exec sleep 600"))
    assert daemon.out.wait(lambda line: line == "up")
    assert not harness.traces_of(word), "nor by the keeper of the command"
    daemon.signal(signal.SIGTERM)
    end(daemon, 0)


def test_a_signal_is_passed_on_and_the_status_is_0(make_daemon):
    daemon = start(make_daemon, "sh", "-c", "trap 'echo got it; exit 9' TERM; echo up; while :; do sleep 0.05; done")
    assert daemon.out.wait(lambda line: line == "up")
    daemon.signal(signal.SIGTERM)
    end(daemon, 0)
    assert "got it" in daemon.stdout_text()


def test_one_that_does_not_listen_is_killed(make_daemon):
    mark = harness.marker()
    daemon = start(make_daemon, "bash", "-c", f"trap '' TERM; echo up; exec -a {mark} sleep 600")
    assert daemon.out.wait(lambda line: line == "up")
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    begun = time.monotonic()
    daemon.signal(signal.SIGTERM)
    end(daemon, 0)
    assert time.monotonic() - begun > 4, "it had its time"
    assert not harness.processes_with(mark)


def test_one_that_cannot_be_executed_fails_the_start():
    with pytest.raises(harness.StartFailed) as refusal:
        harness.start_daemon(("--", "/no/such/program"))
    assert refusal.value.status == 1 and "start the command" in refusal.value.stderr


def test_nothing_after_the_dashes_is_nothing(make_daemon):
    daemon = make_daemon(args=("--",))
    assert daemon.health().status == 200


# ---- inside the default sandbox ----


def inside(make_daemon, *command, **env):
    return make_daemon(args=("--inside", "--", *command), **env)


def call(daemon, verb, **body):
    answer = daemon.request("POST", f"/{verb}", json=body)
    assert answer.status in (200, 201), answer
    return answer.json()


def test_inside_what_it_leaves_is_there(make_daemon):
    daemon = inside(make_daemon, "sh", "-c", 'echo "$1" >note; echo out; echo err >&2', "name", "two  words")
    assert daemon.wait_record(event_type="command_ended", status=0)
    assert daemon.out.wait(lambda line: line == "out") and daemon.log.wait(lambda line: line == "err")
    assert call(daemon, "run", cmd="cat note")["stdout"] == "two  words\n"
    assert daemon.health().status == 200


def test_inside_it_is_a_process_like_any_other(make_daemon):
    daemon = inside(make_daemon, "sh", "-c", "echo up; sleep 600")
    assert daemon.out.wait(lambda line: line == "up")
    listed, = daemon.request("GET", "/list_processes").json()["processes"]
    assert listed["status"] == "running" and listed["command"] == "sh -c echo up; sleep 600"
    assert call(daemon, "kill_process", id=listed["id"])["success"]
    end(daemon, 255)


def test_inside_it_is_in_a_sandbox(make_daemon):
    code = "import os; print('sees', os.getuid(), 'DAEMON_CANARY' in os.environ, os.environ.get('MINE'), os.path.exists('/etc/shadow'))"
    daemon = inside(make_daemon, "python3", "-c", code, MINE="yes", SANDBOX_ENV="MINE")
    assert daemon.out.wait(lambda line: line.startswith("sees"))
    assert "sees 1000 False yes False" in daemon.stdout_text()


def test_inside_a_failure_is_ours(make_daemon):
    end(inside(make_daemon, "sh", "-c", "sleep 0.3; exit 7"), 7)


def test_inside_a_program_that_is_not_there_is_127(make_daemon):
    daemon = inside(make_daemon, "no-such-program-here")
    assert daemon.log.wait(lambda line: "no-such-program-here" in line and "not found" in line)
    end(daemon, 127)


def test_inside_a_signal_is_passed_on(make_daemon):
    daemon = inside(make_daemon, "sh", "-c", "trap 'echo got it; exit 9' TERM; echo up; while :; do sleep 0.05; done")
    assert daemon.out.wait(lambda line: line == "up")
    daemon.signal(signal.SIGTERM)
    end(daemon, 143)
    assert "got it" in daemon.stdout_text()


def test_inside_one_that_does_not_listen_is_killed(make_daemon):
    mark = harness.marker()
    daemon = inside(make_daemon, "bash", "-c", f"trap '' TERM; echo up; exec -a {mark} sleep 600")
    assert daemon.out.wait(lambda line: line == "up")
    daemon.signal(signal.SIGTERM)
    end(daemon, 143)
    assert not harness.processes_with(mark)


def test_inside_much_output_arrives_whole_while_others_are_served(make_daemon):
    lines = 200_000
    daemon = inside(make_daemon, "sh", "-c", f"seq {lines}; echo the end")
    assert call(daemon, "run", cmd="echo served")["stdout"] == "served\n"
    assert daemon.out.wait(lambda line: line == "the end")
    numbers = [line for line in daemon.stdout_text().splitlines() if line.isdigit()]
    assert numbers == [str(n) for n in range(1, lines + 1)]


def test_inside_nobody_reads_its_output(make_daemon, tmp_path):
    """Our standard output is a pipe that is full: the command waits, the daemon does not."""
    daemon = make_daemon(args=("--inside", "--", "sh", "-c", "yes | head -c 1000000; touch /workspace/done"),
                         binary=silent(tmp_path))
    for _ in range(20):
        assert call(daemon, "run", cmd="echo served")["stdout"] == "served\n"


def silent(directory):
    """Starts the daemon with a standard output that nobody reads."""
    program = directory / "silent"
    program.write_text(f"#!/bin/sh\nexec 8<>'{directory}/pipe'\nexec {harness.BUILD}/sandbox-executor \"$@\" >&8\n")
    program.chmod(0o755)
    os.mkfifo(directory / "pipe")
    return program
