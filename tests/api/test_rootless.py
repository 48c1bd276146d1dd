# SPDX-License-Identifier: MIT
"""The daemon as an ordinary user, without control groups of its own."""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile
import textwrap

import pytest

import harness

NOBODY = 65534


@pytest.fixture(scope="module")
def programs():
    """A place from which the ordinary user may run the programs."""
    harness.need(harness.ROOT, "becoming an ordinary user needs root; the rest of the suite covers it then")
    test = subprocess.run(["test", "-x", harness.BUILD / "sandbox-executor"],
                          user=NOBODY, group=NOBODY, extra_groups=[])
    if test.returncode == 0:
        yield harness.BUILD
        return
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-programs-"))
    directory.chmod(0o755)
    for path in harness.BUILD.iterdir():
        if path.is_file() and path.stat().st_mode & stat.S_IXUSR:
            shutil.copy2(path, directory)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def rootless(make_daemon_module, programs):
    return make_daemon_module(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic")


def test_sessions_keep_their_files(rootless):
    for expected in ("x\n", "x\nx\n"):
        body = {"code": "echo x >>f; cat f", "language": "shell", "session_id": "kept"}
        result = rootless.request("POST", "/execute", json=body, headers={"Prefer": "wait"}).json()
        assert (result["status"], result["stdout"]) == ("success", expected)
    assert rootless.printed("ls -A") == ""


# What an owner may do to a file that he cannot open for writing.
CHANGE_EXE = """
import fcntl, os
done = []
def attempt(name, change, *args):
    try:
        change(*args)
        done.append(name)
    except OSError:
        pass
attempt("chmod", os.chmod, "/proc/self/exe", 0o4777)
attempt("chown", os.chown, "/proc/self/exe", os.getuid(), os.getgid())
attempt("utime", os.utime, "/proc/self/exe", (0, 0))
attempt("setxattr", os.setxattr, "/proc/self/exe", "user.owned", b"1")
attempt("write", open, "/proc/self/exe", "r+b")
fd = os.open("/proc/self/exe", os.O_RDONLY)
attempt("fchmod", os.fchmod, fd, 0o4777)
attempt("futime", os.utime, fd, (0, 0))
attempt("truncate", os.truncate, "/proc/self/exe", 1)
attempt("link", os.link, "/proc/self/exe", "/workspace/linked")
print(os.readlink("/proc/self/exe").rpartition("/")[2], done)
"""
CHANGE_MAPS = """
const fs = require('fs');
const attempt = (name) => { try { fs.chmodSync(name, 0o4777); return [name]; } catch { return []; } };
const mapped = fs.readFileSync('/proc/self/maps', 'latin1').split('\\n').map((line) => line.split(' ').pop()).filter((n) => n[0] === '/');
console.log(mapped.some((n) => n.includes('zygote-node')) ? 'zygote-node' : 'node', ['/proc/self/exe', ...mapped].flatMap(attempt));
"""


@pytest.mark.parametrize("jail", ["native", "bwrap"])
def test_programs_of_the_host_cannot_be_changed(make_daemon, jail):
    """The user of the service owns its programs, and is the host user of every tenant."""
    harness.need(harness.ROOT, "becoming an ordinary user needs root")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-owned-"))
    try:
        for path in harness.BUILD.iterdir():
            if path.is_file() and path.name.startswith("sandbox-"):
                shutil.copy2(path, directory)
        for path in (directory, *directory.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        directory.chmod(0o755)

        def seen():
            return {p.name: (p.stat()[:7], p.stat().st_mtime_ns, os.listxattr(p)) for p in directory.iterdir()}
        before = seen()
        daemon = make_daemon(binary=directory / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic", ISOLATION=jail,
                             POOL_PYTHON=1, POOL_NODE=1, NODE_ZYGOTE="true")
        for code, language, warm in ((CHANGE_EXE, "python", "sandbox-zygote-python []\n"), (CHANGE_MAPS, "javascript", "zygote-node []\n")):
            if jail == "native":
                harness.wait_until(lambda: daemon.execute(code, language)["stdout"] == warm, f"nothing is changed: {language}")
            else:
                assert daemon.execute(code, language)["stdout"].endswith(" []\n")
        assert daemon.printed("for f in /proc/$$/exe /opt/sandbox-executor/bin/*; do chmod 4777 $f && echo $f; done 2>&-; true") == ""
        assert seen() == before
    finally:
        shutil.rmtree(directory)


def delegated():
    """Could an ordinary user make control groups here?"""
    return any(os.stat(path).st_uid == NOBODY for path in harness.cgroup_dirs("self").values() if path.exists())


def test_full_isolation_is_refused_with_advice(programs):
    if delegated():
        pytest.skip("control groups are delegated to the ordinary user here")
    refusal = harness.start_refused(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="full")
    assert refusal.status == 1
    text = refusal.stderr
    assert "cgroup" in text.lower(), "says which"
    assert "delegat" in text.lower() and "ISOLATION_LEVEL=basic" in text, "says what to do"


def test_it_declares_what_it_is(rootless):
    text = rootless.request("GET", "/v1/capabilities").text
    assert "basic" in text
    isolation = rootless.execute("true", "shell")["isolation"]
    traits = isolation["traits"] if isinstance(isolation, dict) and "traits" in isolation else isolation
    assert "filesystem" in str(traits) and "seccomp" in str(traits)


@pytest.mark.parametrize("language, code, value", [
    ("python", "def handler(e): return e['a'] * 2", 42),
    ("python", "async def handler(e, c): return e['a'] * 2", 42),
    ("javascript", "exports.handler = (e) => e.a * 2", 42),
    ("javascript", "export const handler = async (e) => e.a * 2", 42),
])
def test_handlers(rootless, language, code, value):
    assert rootless.returned(code, language, event={"a": 21}) == value


def test_shell_output_artifacts_and_exit_code(rootless):
    result = rootless.execute("echo out; echo err >&2; echo x > file.txt; exit 3", "shell")
    assert (result["status"], result["exit_code"]) == ("failed", 3)
    assert (result["stdout"], result["stderr"], result["artifacts"]) == ("out\n", "err\n", ["file.txt"])


def test_timeout_kills_everything(rootless):
    mark = harness.marker()
    code = f"echo partial; ({harness.spawn_marked(mark)} &); {harness.spawn_marked(mark)}"
    result = rootless.execute(code, "shell", timeout=1)
    assert (result["status"], result["stdout"]) == ("timeout", "partial\n")
    assert harness.traces_of(mark) == []


def test_privileges_inside(rootless):
    text = rootless.printed("cat /proc/self/status")
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert "0" not in fields["Uid"].split()


@pytest.mark.skipif(harness.JAIL != "native", reason="SECURITY.md: bubblewrap makes the user namespace, without this limit")
def test_a_run_takes_few_of_the_instances_of_inotify_that_all_share(rootless):
    code = textwrap.dedent("""
        import ctypes
        def handler(e):
            n, c = 0, ctypes.CDLL(None)
            while c.inotify_init() >= 0: n += 1
            try: open('/proc/sys/user/max_inotify_instances', 'w').write('128')
            except OSError: return n
        """)
    assert rootless.returned(code) == 16
    assert rootless.printed(f"python3 - <<'END'\n{code}print(handler(0))\nEND\n") == "16\n"


def test_files_processes_and_network_are_its_own(rootless):
    code = textwrap.dedent("""
        import os, socket
        def handler(e):
            found = [p for p in ('/etc/shadow', '/home', '/root', e['state'], e['build']) if os.path.exists(p) and
                     (os.path.isfile(p) or os.listdir(p))]
            s = socket.socket(); s.settimeout(2)
            try: s.connect(('127.0.0.1', e['port'])); found.append('network')
            except OSError: pass
            found += [p for p in os.listdir('/proc') if p.isdigit() and int(p) > 50]
            try: open('/usr/x', 'w'); found.append('/usr')
            except OSError: pass
            return found
        """)
    event = {"state": str(rootless.state_dir), "build": str(harness.BUILD), "port": rootless.port}
    assert rootless.returned(code, event=event) == []


def test_no_nested_user_namespace(rootless):
    result = rootless.execute("unshare -U true", "shell")
    assert result["status"] == "failed" and "not permitted" in result["stderr"]


def test_ordinary_work(rootless):
    code = textwrap.dedent("""
        import multiprocessing as m, sqlite3, subprocess
        def square(x): return x * x
        def handler(e):
            with m.Pool(2) as pool: total = sum(pool.map(square, range(10)))
            sqlite3.connect('x.db').execute('create table t(a)')
            return [total, subprocess.check_output(['echo', 'hi']).decode()]
        """)
    assert rootless.returned(code, timeout=50) == [285, "hi\n"]


def test_memory_is_bounded_all_the_same(make_daemon, programs):
    daemon = make_daemon(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic", MAX_MEMORY_MB=64)
    code = ("def handler(e):\n    a = []\n    while len(a) < 600: a.append(bytearray(b'x') * (1 << 20))\n"
            "    return len(a)")
    result = daemon.execute(code, timeout=harness.PATIENCE)
    assert result["status"] in ("failed", "error") and result["return_value"] is None
    assert daemon.printed("echo ok") == "ok\n"


def test_processes_are_bounded_all_the_same(rootless):
    code = textwrap.dedent("""
        import os, time
        def handler(e):
            n = 0
            try:
                while n < 2000:
                    if os.fork() == 0:
                        time.sleep(600)
                    n += 1
            except OSError: pass
            print(n)
            return n
        """)
    assert int(rootless.execute(code, timeout=harness.PATIENCE)["stdout"]) <= 128


def test_it_cleans_up_after_sudden_death(make_daemon, programs):
    daemon = make_daemon(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic")
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    tree = daemon.tree()
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")
    harness.wait_until(lambda: not [p for p in tree if harness.is_alive(p)], "launcher and inits are dead")
    run.close()


def test_secrets_are_out_of_reach(rootless):
    text = rootless.printed("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env; true")
    assert rootless.secret not in text and harness.CANARY not in text
