# SPDX-License-Identifier: MIT
"""Start, stop, and what happens when one of the processes dies."""
import json
import os
import pathlib
import signal
import socket
import subprocess

import pytest

import harness


def started(daemon, code="{mark}", language="shell", seconds=600, **fields):
    """A run whose program the host has seen: (connection, marker)."""
    mark = harness.marker()
    run = daemon.start(code.format(mark=harness.spawn_marked(mark, seconds)), language, **fields)
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    return run, mark


def refuses_connections(daemon):
    try:
        daemon.socket(1).close()
    except OSError:
        return True
    return False


# ---- signals ----


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_exit_status_tells_the_signal(make_daemon, number, status):
    daemon = make_daemon()
    daemon.execute("true", "shell")
    daemon.signal(number)
    assert daemon.wait() == status


def test_requests_in_flight_may_finish(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=20)
    run, _ = started(daemon, "{mark}; echo finished", seconds=2)
    daemon.signal(signal.SIGTERM)
    body = run.receive().json()
    assert (body["status"], body["stdout"]) == ("success", "finished\n")
    assert daemon.wait() == 143


def test_nobody_new_is_accepted_while_it_stops(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=20)
    run, mark = started(daemon)
    idle = daemon.connect()
    assert idle.request("GET", "/health").status == 200
    daemon.signal(signal.SIGTERM)
    harness.wait_until(lambda: refuses_connections(daemon), "the listener is closed")
    try:
        assert idle.request("POST", "/execute", json={"code": "true", "language": "shell"}).status == 503
    except OSError:
        pass  # a connection without a request may be closed at once
    except Exception as problem:  # noqa: BLE001 - http.client has its own classes for a closed connection
        assert "Remote" in type(problem).__name__ or "BadStatus" in type(problem).__name__
    assert harness.processes_with(mark), "the run in flight goes on"
    run.close()
    assert daemon.wait() == 143


def test_runs_that_outlast_the_grace_are_ended(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=0)
    run, mark = started(daemon, "echo partial; {mark}")
    daemon.signal(signal.SIGTERM)
    try:
        body = run.receive().json()
    except OSError:
        body = None
    except Exception as problem:  # noqa: BLE001
        assert "Remote" in type(problem).__name__
        body = None
    if body is not None:
        assert body["termination"]["reason"] == "shutdown"
        assert body["stdout"] == "partial\n"
    assert daemon.wait() == 143
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")


@pytest.mark.parametrize("path, sent", [("/run", b""), ("/run_streaming", b'"data":"begun"')])
def test_a_command_that_outlasts_the_grace_is_broken_off(make_daemon, path, sent):
    """It has begun: an answer that asks to try again, or that looks whole, would be a lie."""
    daemon, mark = make_daemon(SHUTDOWN_GRACE=0), harness.marker()
    body = json.dumps({"cmd": f"echo begun; bash -c 'exec -a {mark} sleep 600'"}).encode()
    with daemon.socket() as s:
        s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                  % (path.encode(), daemon.secret.encode(), len(body)) + body)
        data = b""
        while sent and sent not in data:
            data += s.recv(65536)
        harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
        daemon.signal(signal.SIGTERM)
        try:
            while part := s.recv(65536):
                data += part
        except ConnectionResetError:
            pass
    assert sent in data and not data.startswith(b"HTTP/1.1 503") and not data.endswith(b"0\r\n\r\n")
    assert bool(data) == bool(sent)
    assert daemon.wait() == 143


def test_a_second_signal_ends_it_at_once(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=600)
    _, mark = started(daemon)
    daemon.signal(signal.SIGTERM)
    harness.wait_until(lambda: refuses_connections(daemon), "the first signal was taken")
    assert daemon.process.poll() is None
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")


def test_harmless_signals_do_not_end_it(make_daemon):
    daemon = make_daemon()
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH):
        daemon.signal(number)
    assert daemon.printed("echo ok") == "ok\n"
    assert daemon.process.poll() is None


# ---- sudden death ----


def witnesses(daemon):
    """What must be gone when the daemon is: its processes and the control groups they are in."""
    tree = daemon.tree()
    own = set(harness.cgroup_dirs("self").values()) | set(harness.cgroup_dirs(daemon.pid).values())
    groups = {path for pid in tree for path in harness.cgroup_dirs(pid).values()} - own
    groups -= {pathlib.Path(point) for _, point in harness.cgroup_points()}  # where the kernel puts the dead
    groups |= {parent for path in groups for parent in path.parents
               if parent.name and not any(o == parent or parent in o.parents for o in own)}
    return tree, groups


def mount_lines():
    return sorted(line.split(" - ")[1] + " " + line.split()[4] for line in harness.mounts("self"))


def test_nothing_survives_a_killed_daemon(make_daemon):
    mounts_before = mount_lines()
    daemon = make_daemon()
    for language, code in (("python", "def handler(e): return 1"), ("shell", "true")):
        daemon.execute(code, language)
    _, mark = started(daemon, "({mark} &) ; {mark}")
    tree, groups = witnesses(daemon)
    if harness.ROOT:
        assert groups, "the sandbox is in control groups of its own"
    daemon.signal(signal.SIGKILL)
    assert daemon.wait() == -signal.SIGKILL
    harness.wait_until(lambda: not harness.traces_of(mark), "the programs are dead")
    harness.wait_until(lambda: not [p for p in tree if harness.is_alive(p)], "launcher and inits are dead")
    harness.wait_until(lambda: not [g for g in groups if g.exists()],
                       lambda: f"control groups are gone: {[str(g) for g in groups if g.exists()]}")
    assert mount_lines() == mounts_before
    daemon.check_nothing_left()


def test_control_groups_are_swept_by_the_next_start(make_daemon):
    """When all of them are killed nobody is left to clean up; the successor does it."""
    harness.need(harness.ROOT, "control groups need privilege here")
    first = make_daemon()
    first.execute("true", "shell")
    _, mark = started(first)
    _, groups = witnesses(first)
    assert groups and all(g.exists() for g in groups), "there is something to sweep"
    guard, launcher = first.guard(), first.launcher()
    for pid in (guard, launcher, first.pid):
        os.kill(pid, signal.SIGKILL)
    first.wait()
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")
    harness.wait_until(lambda: not harness.strays(), "all processes are gone")
    second = make_daemon()
    assert second.printed("echo ok") == "ok\n"
    harness.wait_until(lambda: not [g for g in groups if g.exists()],
                       lambda: f"control groups are gone: {[str(g) for g in groups if g.exists()]}")


def test_a_killed_launcher_is_replaced(make_daemon):
    daemon = make_daemon()
    daemon.execute("true", "shell")
    run, mark = started(daemon)
    launcher = daemon.launcher()
    os.kill(daemon.helper("sandbox-launch"), signal.SIGKILL)
    body = run.receive().json()
    assert body["status"] == "error" and body["exit_code"] == -1
    harness.wait_until(lambda: not harness.traces_of(mark), "its sandboxes died with it")
    daemon.wait_record(event_type="launcher_restarted")  # until then one that it had prepared may be taken
    harness.wait_until(lambda: daemon.health().status == 200, "healthy again")
    assert daemon.printed("echo ok", timeout=20) == "ok\n"
    assert daemon.launcher() != launcher


def test_without_its_guard_the_daemon_answers_and_ends(make_daemon):
    """Only root could start another one; whoever supervises the daemon starts it again."""
    daemon = make_daemon()
    run, mark = started(daemon)
    os.kill(daemon.helper("sandbox-guard"), signal.SIGKILL)
    body = run.receive().json()
    assert body["status"] == "error" and body["exit_code"] == -1
    assert daemon.wait() == 1
    harness.wait_until(lambda: not harness.traces_of(mark), "its sandboxes died with it")


def test_without_its_guard_the_daemon_ends(make_daemon):
    """Only the guard could start a launcher again; whoever supervises the daemon starts it anew."""
    daemon = make_daemon()
    run, mark = started(daemon)
    tree = daemon.tree()
    os.kill(daemon.guard(), signal.SIGKILL)
    body = run.receive().json()
    assert body["status"] == "error" and body["exit_code"] == -1
    assert daemon.wait() == 1
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")
    harness.wait_until(lambda: not [p for p in tree if harness.is_alive(p)], "all helpers are dead")


def test_a_killed_init_is_an_error_of_its_run_only(daemon):
    mark = harness.marker()
    run = daemon.start("echo partial; " + harness.spawn_marked(mark), "shell")
    pid = harness.wait_until(lambda: harness.processes_with(mark), "the program runs")[0]
    init = init_of(pid)
    harness.need(init, "init of the sandbox cannot be found from here")
    os.kill(init, signal.SIGKILL)
    body = run.receive().json()
    assert body["status"] == "error" and body["exit_code"] == -1
    assert not harness.traces_of(mark)
    run.close()
    assert daemon.printed("echo ok") == "ok\n"


def init_of(pid):
    """The host's pid of pid 1 in the namespace of a process: NSpid ends with 1."""
    space = harness.namespace(pid, "pid")
    for other in harness.pids():
        if harness.namespace(other, "pid") == space:
            for line in harness.read_proc(other, "status").decode().splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == "1":
                    return other
    return None


# ---- start ----


def test_a_port_in_use_stops_the_start():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refusal = harness.start_refused(EXECUTOR_PORT=taken.getsockname()[1])
    assert refusal.status == 1
    assert "in use" in refusal.stderr.lower()


@pytest.mark.parametrize("env, word", [
    ({"MAX_MEMORY_MB": "lots"}, "MAX_MEMORY_MB"),
    ({"MAX_MEMORY_MB": "1"}, "MAX_MEMORY_MB"),
    ({"PIDS_MAX": "99999999999999999999"}, "PIDS_MAX"),
    ({"LOG_FORMAT": "xml"}, "LOG_FORMAT"),
    ({"ISOLATION": "wishful"}, "ISOLATION"),
    ({"ISOLATION_LEVEL": "some"}, "ISOLATION_LEVEL"),
    ({"NETNS": "host"}, "NETNS"),
    ({"EXECUTOR_HOST": "not an address"}, "not an address"),
    ({"RUN_AS": "no-such-user-here"}, "RUN_AS"),
])
def test_a_bad_setting_stops_the_start_and_is_named(env, word):
    if word == "RUN_AS":
        harness.need(harness.ROOT, "only root becomes somebody else")
    refusal = harness.start_refused(**env)
    assert refusal.status in (1, 2)
    assert word in refusal.stderr


def test_port_is_understood_under_both_names(make_daemon):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert make_daemon(EXECUTOR_PORT=None, PORT=port).port == port
    assert make_daemon(EXECUTOR_PORT=0, PORT=port).port != port, "EXECUTOR_PORT goes first"


def test_help_and_version_need_no_privilege():
    program = harness.BUILD / "sandbox-executor"
    text = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=harness.DEADLINE)
    assert text.returncode == 0 and "EXECUTOR_PORT" in text.stdout
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=harness.DEADLINE)
    assert version.returncode == 0 and any(c.isdigit() for c in version.stdout)


@pytest.mark.parametrize("env, words", [
    ({"SANDBOX_AUTH_MODE": "pool", "SANDBOX_SECRET": "x"}, "SANDBOX_SECRET"),
    ({"ISOLATION": "foo"}, "unknown jail 'foo'"),
    ({"ISOLATION": "subprocess,foo"}, "unknown jail 'foo'"),
    ({"CONTROL_PLANE_URL": "ftp://x"}, "CONTROL_PLANE_URL"),
    ({"CONTROL_PLANE_URL": "http://"}, "CONTROL_PLANE_URL"),
    ({"CONTROL_PLANE_URL": "http://a:99999"}, "CONTROL_PLANE_URL"),
    ({"CONTROL_PLANE_URL": "http://a", "RESULTS_PATH": "relative"}, "RESULTS_PATH"),
    ({"STATE_DIR": "relative"}, "STATE_DIR"),
    ({"WORKSPACE_PATH": "relative"}, "WORKSPACE_PATH"),
    ({"DEPENDENCIES_PATH": "relative"}, "DEPENDENCIES_PATH"),
])
def test_check_config_says_what_a_start_says(tmp_path, env, words):
    run = subprocess.run([harness.BUILD / "sandbox-executor", "--check-config"], capture_output=True, text=True,
                         timeout=harness.DEADLINE, cwd=tmp_path, env=env)
    assert (run.returncode, run.stdout) == (1, "")
    assert words in run.stderr
    assert run.stderr.strip() in harness.start_refused(**env).stderr
    assert not list(tmp_path.iterdir()), "the host is left alone"


def test_check_config_leaves_the_host_alone(tmp_path):
    env = {"STATE_DIR": str(tmp_path / "state"), "SANDBOX_AUTH_MODE": "pool", "CONTROL_PLANE_URL": "http://127.0.0.1:1",
           "SANDBOX_SECRET_PATH": str(tmp_path / "pool" / "secret"), "RESULTS_PATH": str(tmp_path / "results")}
    run = subprocess.run([harness.BUILD / "sandbox-executor", "--check-config"], capture_output=True, text=True,
                         timeout=harness.DEADLINE, env=env)
    assert (run.returncode, run.stdout) == (0, "configuration is valid\n")
    assert not list(tmp_path.iterdir())


def test_check_host_explains_what_can_be_isolated():
    run = subprocess.run([harness.BUILD / "sandbox-executor", "--check-host"], capture_output=True, text=True,
                         timeout=harness.DEADLINE)
    for word in ("filesystem", "pid", "network", "seccomp", "memory"):
        assert word in run.stdout, run.stdout + run.stderr
    if harness.ROOT:
        assert run.returncode == 0


def test_unknown_flags_are_refused():
    run = subprocess.run([harness.BUILD / "sandbox-executor", "--no-such-flag"], capture_output=True, text=True,
                         timeout=harness.DEADLINE)
    assert run.returncode != 0 and "--no-such-flag" in run.stderr


def test_the_daemon_gives_up_root(daemon):
    harness.need(harness.ROOT, "only root can give it up")
    text = harness.read_proc(daemon.pid, "status").decode()
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    for name in ("CapPrm", "CapEff"):
        assert int(fields[name], 16) == 0


def test_the_launcher_has_no_socket_of_the_network(daemon):
    """It was started before any listener existed and has no use for one."""
    inodes = {line.split()[9] for name in ("tcp", "tcp6", "udp", "udp6")
              for line in pathlib.Path(f"/proc/{daemon.pid}/net/{name}").read_text().splitlines()[1:]}
    launcher = daemon.launcher()
    held = [os.readlink(f"/proc/{launcher}/fd/{n}") for n in harness.open_files(launcher)]
    assert not [h for h in held if h.startswith("socket:[") and h[8:-1] in inodes]


def test_state_directory_is_private(daemon):
    mode = daemon.state_dir.stat().st_mode
    assert mode & 0o077 == 0
