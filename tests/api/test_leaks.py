# SPDX-License-Identifier: MIT
"""A thousand runs later everything is as it was."""
import os
import pathlib

import pytest

import harness

pytestmark = pytest.mark.alone  # some of what is counted belongs to the whole machine

# A language's spare slot may have been taken or not when we look. That is one slot more or less, with
# its process, namespace, groups and descriptors; what leaks grows with the number of runs.
SLACK = {"processes": 3, "network namespaces": 3, "control groups": 12, "descriptors of the launcher": 30}


def inventory(daemon):
    """Counts of everything that could pile up, for the daemon and all below it."""
    launcher = daemon.launcher()
    tree = [pid for pid in daemon.tree() if harness.is_alive(pid)]
    groups = {path for pid in tree for path in harness.cgroup_dirs(pid).values()}
    tops = {path.parent for path in groups if path.parent.name and path not in harness.cgroup_dirs("self").values()}
    return {
        "processes": len(tree),
        "descriptors of the daemon": len([t for t in targets(daemon.pid) if not is_live_group(t)]),
        "descriptors of the launcher": len(harness.open_files(launcher)),
        "mounts of the daemon": len(harness.mounts(daemon.pid)),
        "mounts of the launcher": len(harness.mounts(launcher)),
        "mounts of the host": len(harness.mounts("self")),
        "control groups": sum(1 for top in tops for _, dirs, _ in os.walk(top) for _ in dirs),
        "network namespaces": len({harness.namespace(p, "net") for p in [daemon.pid, *tree]}
                                  | namespace_descriptors([daemon.pid, *tree])),
        "threads": sum(len(os.listdir(f"/proc/{p}/task")) for p in (daemon.pid, launcher)),
        "files in the state directory": sum(1 for _ in daemon.state_dir.rglob("*")),
    }


def targets(pid):
    """What the open descriptors of a process refer to."""
    found = []
    for number in harness.open_files(pid):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except OSError:
            pass  # closed meanwhile
    return found


def is_live_group(target):
    """Usage is read from files of each slot's control groups, opened when the slot is first used."""
    return "/sandbox-executor." in target and os.path.exists(target)


def namespace_descriptors(pids):
    """Network namespaces that somebody merely holds open."""
    return {target for pid in pids for target in targets(pid) if target.startswith("net:[")}


def zombies(daemon):
    return [p for p in daemon.tree() if (harness.stat_fields(p) or "?")[0] == "Z"]


def grown(before, after):
    return {k: (before[k], after[k]) for k in before if after[k] > before[k] + SLACK.get(k, 0)}


def check_nothing_grew(daemon, before):
    """Graves are dug after the answer, so it may take a moment."""
    harness.wait_until(lambda: not grown(before, inventory(daemon)),
                       lambda: f"back to what it was: {grown(before, inventory(daemon))}", interval=0.05)


def rush(daemon):
    """Idle slots are kept for the next rush, up to a limit: a rush brings them there."""
    mark = harness.marker()
    runs = [daemon.start(harness.spawn_marked(mark), "shell") for _ in range(60)]
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 60, "all of them run", interval=0.05)
    for run in runs:
        run.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "all of them are cancelled", interval=0.05)


def settle(daemon):
    """The inventory once it has stopped moving: pools are refilled after the answer."""
    state = {"last": None, "same": 0}

    def quiet():
        now = inventory(daemon)
        state["same"] = state["same"] + 1 if now == state["last"] else 0
        state["last"] = now
        return now if state["same"] >= 10 else None
    return harness.wait_until(quiet, lambda: f"the inventory settles: {state['last']}", interval=0.03)


RUNS = [
    ("shell", "true", "success"),
    ("shell", "sleep 600 & exit 3", "failed"),
    ("shell", "echo x > file; (setsid sleep 600 &); kill -9 $$", "failed"),
    ("shell", "head -c 200000 /dev/zero", "success"),
]


def test_a_thousand_runs_leave_nothing(make_daemon):
    daemon = make_daemon(RETAIN_COUNT=10, LOG_LEVEL="info")
    rush(daemon)
    with daemon.connect() as connection:
        mixed_runs(connection, 60)
        before = settle(daemon)
        mixed_runs(connection, 1000)
    check_nothing_grew(daemon, before)
    harness.wait_until(lambda: not zombies(daemon), "all the dead are reaped")


def mixed_runs(connection, count):
    for i in range(count):
        if i % 50 == 49:
            assert connection.execute("exports.handler = e => e.i", "javascript", event={"i": i})["return_value"] == i
        elif i % 8 == 7:
            assert connection.execute("def handler(e): return e['i']", event={"i": i})["return_value"] == i
        else:
            language, code, status = RUNS[i % len(RUNS)]
            assert connection.execute(code, language)["status"] == status


def test_cancelled_and_refused_requests_leave_nothing(make_daemon):
    daemon = make_daemon(LOG_LEVEL="info")
    rush(daemon)
    hurried_clients(daemon, 30)
    before = settle(daemon)
    hurried_clients(daemon, 150)
    check_nothing_grew(daemon, before)


def hurried_clients(daemon, count):
    """Clients that vanish at every stage of a request."""
    head = f"POST /execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.secret}\r\n"
    for i in range(count):
        if i % 3 == 0:
            daemon.start("sleep 600", "shell").close()
        elif i % 3 == 1:
            with daemon.socket() as s:
                s.sendall((head + "Content-Length: 1000\r\n\r\n{\"code\"").encode())
        else:
            assert daemon.request("POST", "/execute", json={"code": i}).status == 400
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "all are cancelled")


def test_memory_of_the_daemon_does_not_grow_with_runs(make_daemon):
    daemon = make_daemon(RETAIN_COUNT=4, LOG_LEVEL="info")
    if daemon.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")

    def resident():
        return int(pathlib.Path(f"/proc/{daemon.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with daemon.connect() as connection:
        for _ in range(12):
            connection.execute("head -c 3000000 /dev/zero | tr '\\0' x", "shell")
        before = resident()
        for _ in range(30):
            connection.execute("head -c 3000000 /dev/zero | tr '\\0' x", "shell")
    assert resident() < before + (24 << 20)
