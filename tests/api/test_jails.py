# SPDX-License-Identifier: MIT
"""The choice of a jail, and a short look at each that this host can run.

The whole suite runs on another jail with SBX_ISOLATION (./check --long); here every jail shows that
it runs handlers, functions and persistent sandboxes, that it ends what it started, and that it says
truly what it is. Nothing here would hurt a host without walls.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import harness
from harness import marker, need, processes_with, spawn_marked, start_refused, wait_until
from test_rootless import programs  # noqa: F401 (a fixture)

CALLS = {
    "python": "def add(a, b):\n    return a + b",
    "javascript": "function add(a, b) { return a + b }",
    "ruby": "def add(a, b)\n  a + b\nend",
    "php": "<?php function add($a, $b) { return $a + $b; }",
    "c": "int add(int a, int b) { return a + b; }",
}


def have_bwrap():
    return shutil.which("bwrap", path="/usr/bin") is not None


@pytest.fixture(scope="module", params=["bwrap", "subprocess"])
def other(request, make_daemon_module):
    """A daemon with that jail alone."""
    need(request.param != "bwrap" or have_bwrap(), "bubblewrap is not installed")
    daemon = make_daemon_module(ISOLATION=request.param, RUN_AS=None)
    daemon.jail = request.param
    return daemon


def jails(daemon):
    return {row["name"]: row for row in daemon.request("GET", "/v1/capabilities").json()["jails"]}


# ---- each jail ----


def test_it_says_what_it_is(other):
    row = jails(other)[other.jail]
    health = other.health().json()
    assert row["available"] and row["allowed"] and row["default"] and row["version"]
    assert row["reason"] is None
    assert health["isolation"] == other.jail
    assert ("warning" in health) == (other.jail == "subprocess")
    walls = {"filesystem", "pid", "network", "user", "seccomp", "no_capabilities"}
    assert walls & set(row["traits"]) == (set() if other.jail == "subprocess" else walls)
    result = other.execute("true", "shell")
    assert result["isolation"]["jail"] == other.jail
    assert result["isolation"]["traits"] == row["traits"]


def test_a_jail_without_walls_is_announced_in_the_log(other):
    announced = [r for r in other.records() if r.get("event_type") == "no_isolation"]
    assert len(announced) == (other.jail == "subprocess")


def test_handlers(other):
    got = other.execute("def handler(event):\n    print('out')\n    open('made', 'w').write('x')\n"
                        "    return event", event={"a": [1, 2.5, None]})
    assert got["status"] == "success", got
    assert got["return_value"] == {"a": [1, 2.5, None]}
    assert got["stdout"] == "out\n"
    assert got["artifacts"] == ["made"]
    assert other.returned("exports.handler = async (e) => e.n + 1", "javascript", event={"n": 1}) == 2


def test_the_environment_is_clean(other):
    text = other.printed("env; tr '\\0' '\\n' < /proc/$PPID/environ 2>/dev/null || true")
    assert harness.CANARY not in text
    assert "PATH=/usr/local/bin:/usr/bin:/bin" in text.splitlines()


@pytest.mark.parametrize("language", CALLS)
def test_functions(other, language):
    body = {"language": language, "code": CALLS[language], "functionName": "add", "args": [1, 2]}
    for mode in ("inline", "stdin", "file"):
        got = other.request("POST", "/v1/functions/call", json={**body, "argsMode": mode}).json()
        assert got["status"] == "success" and got["result"] == 3, got
        assert got["isolation"]["jail"] == other.jail


def test_functions_with_files_and_a_directory(other):
    code = "import helper, os\ndef f():\n    open('out', 'w').write(helper.WORD)\n    return os.listdir('.')"
    got = other.request("POST", "/v1/functions/call", json={
        "language": "python", "code": code, "functionName": "f", "args": [],
        "options": {"workdir": "/app", "files": {"/app/helper.py": "WORD = 'w'"}}}).json()
    assert got["status"] == "success", got
    assert [f["path"] for f in got["files"]["created"]] == ["/app/out"]


def test_a_timeout_ends_everything(other):
    marks = [marker() for _ in range(3)]
    code = (f"{spawn_marked(marks[0])} &\n({spawn_marked(marks[1])} &)\n"
            f"setsid bash -c '{spawn_marked(marks[2])}' >/dev/null 2>&1 &\nwait; sleep 600")
    got = other.execute(code, "shell", timeout=2)
    assert got["status"] == "timeout", got
    assert [processes_with(m) for m in marks] == [[], [], []]


def test_the_end_of_a_program_is_the_end_of_all_it_started(other):
    mark = marker()
    code = ("import os, subprocess\ndef handler(event):\n"
            f"    subprocess.Popen(['{mark}', '600'], executable='/bin/sleep', start_new_session=True,\n"
            "                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n    return 1")
    assert other.returned(code) == 1
    assert processes_with(mark) == []


def test_a_killed_init_takes_its_tree_along(other):
    """Init shares its user with the program, which may kill it; nothing may outlive that."""
    need(other.jail == "subprocess", "elsewhere init is pid 1 and the kernel sees to it")
    mark = marker()
    got = other.execute(f"{spawn_marked(mark)} & kill -KILL $PPID; sleep 600", "shell", timeout=20)
    assert got["status"] in ("error", "failed"), got
    wait_until(lambda: not processes_with(mark), "the tree of a killed init is gone")
    assert other.printed("echo still here") == "still here\n"


def test_limits(other):
    got = other.execute("import resource\ndef handler(e):\n    return ["
                        "resource.getrlimit(resource.RLIMIT_NOFILE)[0],"
                        "resource.getrlimit(resource.RLIMIT_CORE)[0]]")
    assert got["return_value"] == [1024, 1], got  # 1: no dump to a file, and none to a pipe


def test_a_session_keeps_its_workspace(other):
    name = marker()
    wait = {"Prefer": "wait"}

    def run(code):
        response = other.request("POST", "/execute", headers=wait,
                                 json={"code": code, "language": "shell", "session_id": name})
        assert response.status == 200, response
        return response.json()

    assert run("echo kept > file")["status"] == "success"
    assert run("cat file")["stdout"] == "kept\n"


def test_persistent_sandboxes(other):
    made = other.request("POST", "/v1/sandboxes", json={"env": {"WORD": "w"}}).json()
    assert made["isolation"] == other.jail, made
    assert made["network"]["mode"] == ("host" if other.jail == "subprocess" else "none")
    base = f"/v1/sandboxes/{made['id']}"
    got = other.request("POST", f"{base}/run", json={"cmd": "echo $WORD; pwd"}).json()
    where = str(other.directory) if other.jail == "subprocess" else "/workspace"
    assert (got["stdout"], got["stderr"], got["code"]) == (f"w\n{where}\n", "", 0)
    path = f"/tmp/{marker()}"
    assert other.request("POST", f"{base}/write_file", json={"path": path, "content": "x"}).json() == {
        "success": True}
    assert other.request("POST", f"{base}/run", json={"cmd": f"cat {path}"}).json()["stdout"] == "x"
    assert pathlib.Path(path).exists() == (other.jail == "subprocess")
    other.request("POST", f"{base}/run", json={"cmd": f"rm {path}"})
    mark = marker()
    other.request("POST", f"{base}/start_process", json={"cmd": f"bash -c '{spawn_marked(mark)}'"})
    wait_until(lambda: processes_with(mark), "the process runs")
    assert other.request("DELETE", base).status in (200, 204)
    wait_until(lambda: not processes_with(mark), "it is gone with its sandbox")


def test_rooms_are_removed(other):
    """Directories of the host that stood for /workspace go with their run."""
    need(other.jail == "subprocess", "elsewhere a workspace is a mount")
    room = other.printed("mkdir -p a/b && touch a/b/c && ln -s / link && pwd").strip()
    assert room.startswith("/tmp/sandbox-executor-")
    wait_until(lambda: not os.path.exists(os.path.dirname(room)), "the room is gone")


# ---- the choice ----


def test_the_order_is_the_preference_and_requests_may_choose(make_daemon):
    daemon = make_daemon(ISOLATION="subprocess,native", RUN_AS=None)
    assert daemon.health().json()["isolation"] == "subprocess"
    rows = jails(daemon)
    assert rows["native"]["available"] and not rows["native"]["default"]
    assert not rows["bwrap"]["allowed"] and "ISOLATION" in rows["bwrap"]["reason"]
    for name, inside in (("native", "/workspace\n"), ("subprocess", None), (None, None)):
        got = daemon.execute("pwd", "shell", isolation=name)
        assert got["isolation"]["jail"] == (name or "subprocess")
        assert inside is None or got["stdout"] == inside
    call = {"language": "python", "code": "def f():\n    return 1", "functionName": "f"}
    got = daemon.request("POST", "/v1/functions/call", json={**call, "isolation": "native"}).json()
    assert got["isolation"]["jail"] == "native"
    made = daemon.request("POST", "/v1/sandboxes", json={"isolation": "native"}).json()
    assert made["isolation"] == "native"


def test_sessions_run_in_the_jail_they_name(make_daemon):
    need(have_bwrap(), "bubblewrap is not installed")
    daemon = make_daemon(ISOLATION="native,bwrap", RUN_AS=None)
    counter = {"python": "n = 0\ndef add(k):\n    global n\n    n += k\n    return n",
               "c": "static int n;\nint add(int k) { return n += k; }"}
    for name in ("bwrap", "native"):
        for language, code in counter.items():
            made = daemon.request("POST", "/v1/sessions", json={
                "language": language, "code": code, "isolation": name})
            assert made.status == 201 and made.json()["isolation"]["jail"] == name, made
            path = f"/v1/sessions/{made.json()['id']}"
            assert daemon.request("GET", path).json()["isolation"] == name
            for want in (2, 4):
                got = daemon.request("POST", f"{path}/call", json={"functionName": "add", "args": [2]}).json()
                assert got["result"] == want and got["isolation"]["jail"] == name, got
    refused = daemon.request("POST", "/v1/sessions", json={
        "language": "python", "code": "", "isolation": "subprocess"})
    assert refused.status == 422 and "isolation" in refused.json()["error"]["message"], refused


@pytest.mark.parametrize("name", ["bwrap", "subprocess", "seatbelt", "no-such-jail", "nul\0inside"])
def test_what_is_not_configured_is_refused(daemon, name):
    need(name != harness.JAIL, "this is the jail of the suite")
    response = daemon.request("POST", "/execute", json={"code": "true", "language": "shell", "isolation": name})
    assert response.status == 400, response
    assert "isolation" in response.text
    response = daemon.request("POST", "/v1/sandboxes", json={"isolation": name})
    assert response.status == 400, response
    got = daemon.request("POST", "/v1/functions/call", json={
        "language": "python", "code": "def f():\n    pass", "functionName": "f", "isolation": name})
    assert got.status == 400 or got.json()["status"] == "error", got
    assert "isolation" in got.text


@pytest.mark.parametrize("value", ["nonsense", "native,nonsense", "NATIVE"])
def test_an_unknown_jail_is_a_start_up_error(value):
    refusal = start_refused(ISOLATION=value)
    assert "unknown jail" in refusal.stderr
    assert "native, bwrap, subprocess" in refusal.stderr and "seatbelt" not in refusal.stderr


@pytest.mark.parametrize("value", ["seatbelt", "seatbelt,native"])
def test_the_jail_of_macos_is_refused_in_words(value):
    refusal = start_refused(ISOLATION=value)
    assert "seatbelt" in refusal.stderr and "Linux only" in refusal.stderr, refusal.stderr


def test_disable_bwrap_keeps_what_isolation_there_is(make_daemon):
    """Platforms set it by default: native serves, without limits where there are no control groups."""
    daemon = make_daemon(DISABLE_BWRAP="true", ISOLATION=None, ISOLATION_LEVEL=None)
    assert daemon.health().json()["isolation"] == "native"
    assert daemon.execute("ls /etc/shadow", "shell")["exit_code"] == 2


def test_an_isolation_that_is_named_outweighs_disable_bwrap(make_daemon):
    daemon = make_daemon(DISABLE_BWRAP="true", ISOLATION="native")
    assert jails(daemon)["native"]["allowed"] and not jails(daemon)["subprocess"]["allowed"]


NO_NAMESPACES = """#!/bin/sh
exec setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Ur \
    sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" "$@"' {program} "$@"
"""


@pytest.fixture
def reachable():
    """A directory that every user may reach."""
    with tempfile.TemporaryDirectory(prefix="sbx-jails-", ignore_cleanup_errors=True) as top:
        os.chmod(top, 0o711)
        yield pathlib.Path(top)


def test_disable_bwrap_where_nothing_isolates(make_daemon, reachable, programs):  # noqa: F811
    """As in most containers: programs run all the same, packages are refused with the reason."""
    need(harness.ROOT and harness.JAIL == "native", "root makes the place where user namespaces are forbidden")
    started = reachable / "started"
    started.write_text(NO_NAMESPACES.format(program=programs / "sandbox-executor"))
    started.chmod(0o755)
    state = reachable / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    daemon = make_daemon(binary=started, DISABLE_BWRAP="true", ISOLATION=None, ISOLATION_LEVEL=None, STATE_DIR=state)
    health = daemon.health().json()
    assert health["isolation"] == "subprocess" and "without isolation" in health["warning"]
    assert daemon.printed("echo ran") == "ran\n"
    body = {"session_id": "a", "language_runtime": "python3.11", "sync_mode": "replace", "dependencies": ["six"],
            "python_package_index_url": "https://index.example/simple/"}
    refused = daemon.request("POST", "/internal/session-config/sync", json=body)
    assert refused.status == 501 and "user namespace" in refused.json()["error_detail"], refused
    refused = daemon.request("POST", "/v1/packages", json={"python": ["six"]})
    assert refused.status == 501 and "user namespace" in refused.json()["error_detail"], refused


def test_an_unusable_jail_is_told_with_its_reason(make_daemon, tmp_path):
    """A bwrap that fails: the next in the order serves, and a request that insists is told why not."""
    need(have_bwrap() and harness.ROOT, "needs bubblewrap, and root to put another program in its place")
    broken, started = tmp_path / "bwrap", tmp_path / "started"
    broken.write_text('#!/bin/sh\n[ "$1" != --version ] || exec echo bubblewrap 0.8.0\n'
                      "echo 'bwrap: broken on purpose' >&2\nexit 1\n")
    started.write_text(f"#!/bin/sh\nexec unshare -m sh -c 'mount --bind {broken} /usr/bin/bwrap && exec \"$@\"' sh "
                       f"{harness.BUILD}/sandbox-executor \"$@\"\n")
    for path in (tmp_path, broken, started):
        path.chmod(0o755)
    daemon = make_daemon(binary=started, ISOLATION="bwrap,native", RUN_AS=None)
    assert daemon.health().json()["isolation"] == "native"
    row = jails(daemon)["bwrap"]
    assert row["allowed"] and not row["available"] and "broken on purpose" in row["reason"], row
    response = daemon.request("POST", "/execute",
                              json={"code": "true", "language": "shell", "isolation": "bwrap"})
    assert response.status == 400 and "broken on purpose" in response.text, response
    refusal = start_refused(binary=started, ISOLATION="bwrap")
    assert "bwrap" in refusal.stderr and "broken on purpose" in refusal.stderr


def test_a_daemon_that_is_killed_leaves_nothing(make_daemon):
    for jail in ("bwrap", "subprocess"):
        if jail == "bwrap" and not have_bwrap():
            continue
        daemon = make_daemon(ISOLATION=jail, RUN_AS=None)
        mark = marker()
        connection = daemon.start(spawn_marked(mark), "shell", timeout=60)
        wait_until(lambda m=mark: processes_with(m), "the program runs")
        daemon.signal(9)
        daemon.wait()
        wait_until(lambda m=mark: not processes_with(m), "the program is dead")
        connection.close()
