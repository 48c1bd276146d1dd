# SPDX-License-Identifier: MIT
"""A thousand runs later everything is as it was."""
import concurrent.futures
import os
import pathlib

import pytest

import harness


def inventory(daemon):
    """Counts of everything that could pile up, for the daemon and all below it."""
    launcher = daemon.launcher()
    tree = daemon.tree()
    groups = {path for pid in tree for path in harness.cgroup_dirs(pid).values()}
    tops = {path.parent for path in groups if path.parent.name and path not in harness.cgroup_dirs("self").values()}
    return {
        "processes": len(tree),
        "zombies": sum((harness.stat_fields(p) or ["?"])[0] == "Z" for p in tree),
        "descriptors of the daemon": len(harness.open_files(daemon.pid)),
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


def namespace_descriptors(pids):
    """Network namespaces that somebody merely holds open."""
    found = set()
    for pid in pids:
        for number in harness.open_files(pid):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{number}")
            except OSError:
                continue
            if target.startswith("net:["):
                found.add(target)
    return found


def fill_spares(daemon):
    """Some slots are kept for the next rush, up to a limit; a rush brings them to that limit."""
    def one(i):
        if i % 2:
            return daemon.execute("def handler(e): return 1", timeout=50)
        return daemon.execute("sleep 0.3", "shell", timeout=50)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert {r["status"] for r in pool.map(one, range(100))} == {"success"}


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
    fill_spares(daemon)
    with daemon.connect() as connection:
        mixed_runs(connection, 60)
        before = settle(daemon)
        mixed_runs(connection, 1000)
        after = settle(daemon)
    assert {k: (before[k], after[k]) for k in before if after[k] > before[k]} == {}
    assert after["zombies"] == 0


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
    fill_spares(daemon)
    hurried_clients(daemon, 10)
    before = settle(daemon)
    hurried_clients(daemon, 60)
    after = settle(daemon)
    assert {k: (before[k], after[k]) for k in before if after[k] > before[k]} == {}


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
