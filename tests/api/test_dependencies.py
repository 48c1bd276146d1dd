# SPDX-License-Identifier: MIT
"""POST /internal/session-config/sync: packages of a session, from an index that may be hostile."""
import base64
import json
import os
import pathlib
import re
import signal
import socket
import tempfile
import threading

import pytest

import harness
from package_index import Index, sdist, send, wheel

PATH = "/internal/session-config/sync"
HOME = "/opt/sandbox-venv"
WAIT = {"Prefer": "wait"}
ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"


@pytest.fixture(scope="module")
def files_host():
    """A second host: the operator lets packages come from it."""
    instance = Index()
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def daemon(make_daemon_module, files_host):
    return make_daemon_module(DEPENDENCY_HOSTS=files_host.host, NODE_ZYGOTE="false")


@pytest.fixture
def index():
    instance = Index()
    yield instance
    instance.close()


@pytest.fixture
def session():
    return f"deps-{harness.marker()}"


def body_of(index, session, *specs, **fields):
    return {"session_id": session, "language_runtime": "python3.11", "sync_mode": "replace",
            "python_package_index_url": index if isinstance(index, str) else index.url,
            "dependencies": list(specs), **fields}


def sync(daemon, index, session, *specs, **fields):
    return daemon.request("POST", PATH, json=body_of(index, session, *specs, **fields), timeout=120)


def synced(daemon, index, session, *specs, **fields):
    response = sync(daemon, index, session, *specs, **fields)
    assert response.status == 200, response
    return response.json()


def problem(response, status, code):
    """The words of a problem; both shapes of it must agree."""
    assert response.status == status, response
    body = response.json()
    assert body["error_code"] == body["detail"]["error_code"] == code
    assert body["description"] == body["detail"]["description"]
    assert body["error_detail"] == body["detail"]["error_detail"]
    return body["error_detail"]


def run(daemon, session, code, language="python", **fields):
    response = daemon.request("POST", "/execute", headers=WAIT,
                              json={"code": code, "language": language, "session_id": session, **fields})
    assert response.status == 200, response
    return response.json()


def returned(daemon, session, expression, *imports, **fields):
    lines = "".join(f"import {name}\n" for name in imports)
    result = run(daemon, session, f"{lines}def handler(event):\n    return {expression}\n", **fields)
    assert result["status"] == "success", result
    return result["return_value"]


def versions(daemon, session, name):
    return returned(daemon, session, f"{name}.VERSION", name)


# ---- what it is for ----


def test_installs_and_answers_as_promised(daemon, index, session):
    index.add(wheel("Zebra", requires=["apple>=1"]))
    index.add(wheel("apple", "1.5"))
    index.add(wheel("apple", "0.9"))
    body = synced(daemon, index, session, "Zebra==1.0")
    assert set(body) == {"status", "installed_dependencies", "error", "started_at", "completed_at"}
    assert (body["status"], body["error"]) == ("completed", "")
    assert re.fullmatch(ISO, body["started_at"]) and re.fullmatch(ISO, body["completed_at"])
    assert body["started_at"] <= body["completed_at"]
    assert [(d["name"], d["version"]) for d in body["installed_dependencies"]] == [("apple", "1.5"), ("Zebra", "1.0")]
    for one in body["installed_dependencies"]:
        assert set(one) == {"name", "version", "install_location", "install_time", "is_from_template"}
        assert one["install_location"] == HOME and one["is_from_template"] is False
        assert re.fullmatch(ISO, one["install_time"])
    assert versions(daemon, session, "apple") == "1.5"


def test_is_first_on_the_module_path_and_read_only(daemon, index, session):
    index.add(wheel("first_one"))
    synced(daemon, index, session, "first_one")
    value = returned(daemon, session, "[sys.path[:2], os.environ['PYTHONPATH'], first_one.__file__]",
                     "sys", "os", "first_one")
    assert value == [["/workspace", HOME], HOME, f"{HOME}/first_one.py"]
    result = run(daemon, session, f"touch {HOME}/new; echo x >{HOME}/first_one.py; rm {HOME}/first_one.py; ls {HOME}",
                 "shell")
    assert "first_one.py" in result["stdout"] and result["stderr"].count("Read-only file system") == 3
    assert returned(daemon, session, "os.environ['PYTHONPATH']", "os", env_vars={"PYTHONPATH": "/a:/b"}) \
        == f"{HOME}:/a:/b"


def test_warmed_and_cold_runs_see_the_same(daemon, index, session):
    """A package may stand in for a module that a warmed interpreter has loaded already."""
    index.add(wheel("dataclasses", files={"dataclasses.py": "VERSION = 'mine'\n"}))
    index.add(wheel("ordinary"))
    synced(daemon, index, session, "ordinary")
    warm = run(daemon, session, "import ordinary, dataclasses\ndef handler(e): return dataclasses.__file__")
    assert warm["return_value"].startswith("/usr/lib/")
    synced(daemon, index, session, "ordinary", "dataclasses")
    assert versions(daemon, session, "dataclasses") == "mine"
    cold = returned(daemon, session, "dataclasses.VERSION", "dataclasses", env_vars={"PYTHONHASHSEED": "1"})
    assert cold == "mine"


def test_other_sessions_and_plain_runs_have_none(daemon, index, session):
    index.add(wheel("private"))
    synced(daemon, index, session, "private")
    code = "import importlib.util as u\ndef handler(e): return u.find_spec('private') is None"
    assert run(daemon, session, code)["return_value"] is False
    assert run(daemon, session + "x", code)["return_value"] is True
    assert daemon.returned(code) is True


def test_the_list_is_complete_in_both_modes(daemon, index, session):
    for name in ("one", "two"):
        index.add(wheel(name))
    synced(daemon, index, session, "one")
    body = synced(daemon, index, session, "two", sync_mode="merge")
    assert [d["name"] for d in body["installed_dependencies"]] == ["two"]
    assert returned(daemon, session, "sorted(n for n in os.listdir(p) if n.endswith('.py'))".replace("p)", f"'{HOME}')"),
                    "os") == ["two.py"]
    body = synced(daemon, index, session)
    assert body["installed_dependencies"] == []
    assert returned(daemon, session, f"os.listdir('{HOME}')", "os") == []


def test_files_keep_modes_times_and_hidden_names(daemon, index, session):
    """A compiled module is used only if it knows the time of its source."""
    index.add(wheel("tree", files={"tree/__init__.py": "X = 1\n", "tree/.libs/data.bin": b"\0\1\2", "tree/sub/m.py": ""}))
    synced(daemon, index, session, "tree")
    value = returned(daemon, session, "[tree.__cached__, os.path.exists(tree.__cached__), "
                     f"os.path.getsize('{HOME}/tree/.libs/data.bin')]", "tree", "os")
    assert value[1:] == [True, 3]
    result = run(daemon, session, "python3 -v -c 'import tree' 2>&1 | grep 'code object from.*tree/__pycache__'", "shell")
    assert "__init__" in result["stdout"], result


@pytest.fixture
def shared():
    """A directory that the daemon's user can reach."""
    with tempfile.TemporaryDirectory(prefix="sbx-test-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def test_survives_a_restart(make_daemon, index, session, shared):
    index.add(wheel("lasting"))
    state = shared / "state"
    first = make_daemon(STATE_DIR=state)
    synced(first, index, session, "lasting")
    first.stop()
    (state / "dependencies" / ".new-left").mkdir()
    second = make_daemon(STATE_DIR=state)
    assert versions(second, session, "lasting") == "1.0"
    harness.wait_until(lambda: not (state / "dependencies" / ".new-left").exists(), "what was half made is gone")


# ---- while something runs ----


def hold_open(daemon, session, key, name):
    """Starts a run that looks at the package, says so, and waits for the file `go`."""
    connection = daemon.connect(120)
    connection.send("POST", "/execute", headers=WAIT, json={
        "language": "python", "session_id": session, "execution_id": key, "timeout": 120,
        "code": f"import {name}, os, time\n"
                "def handler(event, context):\n"
                "    context.progress({'seen': 1})\n"
                "    while not os.path.exists('/workspace/go'): time.sleep(0.01)\n"
                f"    from {name}_more import VALUE\n"
                f"    return [{name}.VERSION, VALUE, os.path.exists({name}.__file__)]\n"})
    harness.wait_until(lambda: daemon.request("GET", f"/v1/executions/{key}").json().get("progress"),
                       "it has seen its package")
    return connection


def test_a_running_execution_keeps_what_it_had(daemon, index, session):
    for version in ("1.0", "2.0"):
        index.add(wheel("steady", version, files={"steady.py": f"VERSION = '{version}'\n",
                                                   "steady_more.py": f"VALUE = 'more {version}'\n"}))
    root = daemon.state_dir / "dependencies" / f"s-{session}"
    synced(daemon, index, session, "steady==1.0")
    with hold_open(daemon, session, session, "steady") as running:
        synced(daemon, index, session, "steady==2.0")
        synced(daemon, index, session)
        synced(daemon, index, session, "steady==2.0")
        assert (root / "1").exists()
        (daemon.state_dir / "workspaces" / f"s-{session}" / "go").touch()
        result = running.receive().json()
    assert result["return_value"] == ["1.0", "more 1.0", True], result
    assert versions(daemon, session, "steady") == "2.0"
    harness.wait_until(lambda: [p.name for p in root.iterdir()] == ["4"], "the old ones are removed")


def test_one_at_a_time_for_each_session(daemon, index, session):
    """Two at the same index: never for one session, but for two sessions."""
    lock, now, most, both = threading.Lock(), {}, {}, threading.Barrier(2)

    def slow(h):
        key = h.path.rsplit("/", 1)[1].split("_")[0]
        with lock:
            now[key] = now.get(key, 0) + 1
            most[key] = max(most.get(key, 0), now[key])
        if key == "b":
            both.wait(60)  # passes only if both sessions are served at the same time
        with lock:
            now[key] -= 1
        send(h, 200, index.files[h.path.rsplit("/", 1)[1]][0])

    packages = {"a_one": session, "a_two": session, "b_one": session + "1", "b_two": session + "2"}
    for name in packages:
        index.add(wheel(name))
        index.answers[f"/files/{name}-1.0-py3-none-any.whl"] = slow
    found = {}

    def one(name):
        found[name] = sync(daemon, index, packages[name], name)

    threads = [threading.Thread(target=one, args=(name,)) for name in packages]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [r.status for r in found.values()] == [200] * 4, found
    assert most["a"] == 1
    present = [name for name in ("a_one", "a_two") if returned(
        daemon, session, f"os.path.exists('{HOME}/{name}.py')", "os")]
    assert len(present) == 1


def test_goes_on_when_nobody_waits(daemon, index, session):
    index.add(wheel("orphan"))
    gate, asked = threading.Event(), threading.Event()

    def wait(h):
        asked.set()
        gate.wait(60)
        send(h, 200, index.files["orphan-1.0-py3-none-any.whl"][0])

    index.answers["/files/orphan-1.0-py3-none-any.whl"] = wait
    with daemon.connect() as connection:
        connection.send("POST", PATH, json=body_of(index, session, "orphan"))
        assert asked.wait(60)
    gate.set()
    assert daemon.wait_record(event_type="dependencies_synced", session_id=session)
    assert versions(daemon, session, "orphan") == "1.0"


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_the_end_of_the_daemon_is_its_end(make_daemon, index, session, shared, number, status):
    """Whoever waits is told, if there is still somebody to tell; nothing is half installed."""
    daemon = make_daemon(STATE_DIR=shared / "state", SHUTDOWN_GRACE=1)
    gate, asked = threading.Event(), threading.Event()
    index.add(wheel("late"))
    index.answers["/files/late-1.0-py3-none-any.whl"] = lambda h: (asked.set(), gate.wait(120))
    with daemon.connect(120) as running, daemon.connect(120) as behind:
        for connection in (running, behind):
            connection.send("POST", PATH, json=body_of(index, session, "late"))
        assert asked.wait(60)
        harness.wait_until(lambda: len([r for r in daemon.records() if r.get("event_type") == "dependencies_asked"]) == 2,
                           "both are known")
        daemon.signal(number)
        if number == signal.SIGTERM:
            for connection in (running, behind):
                words = problem(connection.receive(), 500, "Executor.SessionConfigSyncError")
                assert "shutting down" in words
    assert daemon.wait() == status
    gate.set()
    daemon.check_nothing_left()
    again = make_daemon(STATE_DIR=shared / "state")
    assert returned(again, session, f"os.listdir('{HOME}')", "os") == []
    harness.wait_until(lambda: not list((shared / "state" / "dependencies").glob(".new-*")), "nothing half made is left")


# ---- what is refused ----


@pytest.mark.parametrize("spec", [
    "--help", "-r/etc/passwd", "-e .", " -v", "--index-url=http://127.0.0.1/", "/etc/passwd", "./x", "../x", "~/x",
    "x @ file:///etc/passwd", "file:///etc/passwd", "git+https://h/x", "x @ git+ssh://h/x", "ftp://h/x.whl",
    "x; ", "x==", "x[", "x y", "x==1 --no-deps", "x\n-r/etc/passwd", "x\u0000", "\u00e9", "", "x" * 2000,
])
def test_specs_that_are_no_requirements(daemon, index, session, spec):
    words = problem(sync(daemon, index, session, "good", spec), 400, "Executor.ValidationError")
    assert "dependency" in words
    assert index.asked == []


@pytest.mark.parametrize("url", [
    "file:///etc", "ftp://127.0.0.1/simple", "127.0.0.1/simple", "--help", "http://", "http://a b/", "http://[::1/",
    "http://h:99999/", "http://h:0/", "https://h/?token=x", "https://h/#x", "http://user@/x", "http:///x",
    "http://h/\n--extra-index-url", "http://h\\@evil/",
])
def test_indexes_that_are_none(daemon, session, url):
    problem(sync(daemon, url, session, "x"), 400, "Executor.ValidationError")


@pytest.mark.parametrize("fields, word", [
    ({"session_id": ""}, "session_id"), ({"session_id": "x" * 300}, "session_id"),
    ({"language_runtime": "node20"}, "language_runtime"), ({"language_runtime": ""}, "language_runtime"),
    ({"python_package_index_url": ""}, "python_package_index_url"), ({"sync_mode": "other"}, "sync_mode"),
    ({"dependencies": ["x"] * 201}, "too many"),
])
def test_values_that_make_no_sense(daemon, index, session, fields, word):
    assert word in problem(sync(daemon, index, session, **fields), 400, "Executor.ValidationError")


@pytest.mark.parametrize("change, loc, kind", [
    ({"session_id": None}, ["body", "session_id"], "string_type"),
    ({"dependencies": "x"}, ["body", "dependencies"], "list_type"),
    ({"dependencies": ["x", 1]}, ["body", "dependencies", "1"], "string_type"),
    ({"sync_mode": 5}, ["body", "sync_mode"], "string_type"),
    ("session_id", ["body", "session_id"], "missing"),
    ("python_package_index_url", ["body", "python_package_index_url"], "missing"),
])
def test_bodies_of_the_wrong_shape(daemon, index, session, change, loc, kind):
    body = body_of(index, session)
    if isinstance(change, str):
        del body[change]
    else:
        body.update(change)
    response = daemon.request("POST", PATH, json=body)
    assert response.status == 422, response
    assert [(d["loc"], d["type"]) for d in response.json()["detail"]] == [(loc, kind)]


def test_bodies_that_are_not_json(daemon):
    assert daemon.request("POST", PATH, body="{", headers={"Content-Type": "application/json"}).status == 422
    assert daemon.request("POST", PATH, body="[]", headers={"Content-Type": "application/json"}).status == 422
    assert daemon.request("GET", PATH).status == 405
    assert daemon.request("POST", PATH, json={}, headers={"Authorization": "Bearer x"}).status == 401


def test_only_indexes_of_the_operator(make_daemon, index, session):
    daemon = make_daemon(DEPENDENCY_INDEXES=f"pypi.example, {index.host}")
    index.add(wheel("known"))
    synced(daemon, index, session, "known")
    words = problem(sync(daemon, "http://127.0.0.1:9/simple", session, "known"), 403, "Executor.Forbidden")
    assert "127.0.0.1:9" in words


def test_hosts_that_are_none_are_a_start_error():
    for option in ("DEPENDENCY_HOSTS", "DEPENDENCY_INDEXES"):
        refusal = harness.start_refused(**{option: "good.example, http://bad/"})
        assert option in refusal.stderr and "http://bad/" in refusal.stderr


# ---- failing ----


def install_error(daemon, index, session, *specs):
    return problem(sync(daemon, index, session, *specs), 422, "Executor.DependencyInstallError")


def test_a_failure_leaves_what_was_there(daemon, index, session):
    index.add(wheel("kept"))
    synced(daemon, index, session, "kept")
    words = install_error(daemon, index, session, "absent")
    assert "No matching distribution found for absent" in words
    assert versions(daemon, session, "kept") == "1.0"
    assert daemon.wait_record(event_type="dependencies_failed", session_id=session)["reason"] == "exit"


def test_an_index_that_is_not_there(daemon, session):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        install_error(daemon, f"http://127.0.0.1:{taken.getsockname()[1]}/simple", session, "x")


def test_wrong_hash(daemon, index, session):
    index.add(wheel("forged"), hashed="#sha256=" + "0" * 64)
    assert "hash" in install_error(daemon, index, session, "forged").lower()


def test_redirect_to_another_host(daemon, index, session):
    other = Index()
    other.add(wheel("moved"))
    index.add(wheel("moved"))
    index.answers["/files/moved-1.0-py3-none-any.whl"] = lambda h: send(
        h, 302, b"", Location=f"http://{other.host}/files/moved-1.0-py3-none-any.whl")
    assert "403" in install_error(daemon, index, session, "moved")
    record = daemon.wait_record(event_type="dependency_host_refused", session_id=session)
    assert record["target"] == other.host and other.asked == []
    other.close()


def test_files_from_a_host_that_is_allowed(daemon, index, files_host, session):
    index.add(wheel("elsewhere"))
    files_host.add(wheel("elsewhere"))
    index.file_base = f"http://{files_host.host}"
    synced(daemon, index, session, "elsewhere")
    assert versions(daemon, session, "elsewhere") == "1.0"
    assert "/files/elsewhere-1.0-py3-none-any.whl" in files_host.paths()


def test_endless_file(make_daemon, index, session):
    daemon = make_daemon(DEPENDENCY_DOWNLOAD_MB=2)
    index.add(wheel("endless"), hashed=False)

    def flood(h):
        h.send_response(200)
        h.end_headers()
        while True:
            h.wfile.write(b"x" * 65536)

    index.answers["/files/endless-1.0-py3-none-any.whl"] = flood
    assert "DEPENDENCY_DOWNLOAD_MB" in install_error(daemon, index, session, "endless")
    record = daemon.wait_record(event_type="dependencies_failed", session_id=session)
    assert 2 << 20 <= record["transferred"] < 16 << 20


def test_slow_index(make_daemon, index, session):
    daemon = make_daemon(DEPENDENCY_TIMEOUT=3)
    gate = threading.Event()
    index.answers["/simple/slow/"] = lambda h: gate.wait(120)
    assert "DEPENDENCY_TIMEOUT" in install_error(daemon, index, session, "slow")
    gate.set()


@pytest.mark.parametrize("content", ["zeros", "many"])
def test_packages_that_are_too_large(make_daemon, index, session, content):
    daemon = make_daemon(DEPENDENCY_MB=8, DEPENDENCY_FILES=500)
    files = {"big.bin": bytes(64 << 20)} if content == "zeros" else {f"many/f{i}.py": "" for i in range(2000)}
    index.add(wheel("large", files=files))
    assert "No space left on device" in install_error(daemon, index, session, "large")
    assert daemon.returned("def handler(e): return 1") == 1


# ---- code of a package ----

PROBE = r"""
import json, os, socket, sys
def attempt(name, fn):
    try:
        found[name] = fn()
    except BaseException as e:
        found[name] = type(e).__name__ + ": " + str(e)
found = {}
def connect(host, port):
    socket.create_connection((host, port), 5).close()
    return "connected"
def through(line):
    with socket.create_connection(("127.0.0.1", 3128), 30) as s:
        s.sendall(line.encode() + b"\r\nHost: proxy\r\n\r\n")
        return s.makefile("rb").readline().decode().strip()
@BODY@
raise SystemExit("PROBE" + json.dumps(found))
"""


def probe(daemon, index, session, body):
    index.add(sdist("probe", PROBE.replace("@BODY@", body)))
    words = install_error(daemon, index, session, "probe")
    return json.loads(re.search(r"PROBE(\{.*\})", words)[1])


def test_code_of_a_package_reaches_nothing_else(daemon, index, files_host, session):
    other = Index()
    found = probe(daemon, index, session, f"""
port = {other.server.server_port}
attempt("direct", lambda: connect("127.0.0.1", port))
attempt("index direct", lambda: connect("127.0.0.1", {index.server.server_port}))
attempt("daemon", lambda: connect("127.0.0.1", {daemon.port}))
attempt("outside", lambda: connect("192.0.2.1", 80))
attempt("names", lambda: socket.getaddrinfo("localhost.example", 80))
attempt("tunnel", lambda: through("CONNECT 127.0.0.1:%d HTTP/1.1" % port))
attempt("other name", lambda: through("CONNECT localhost:{index.server.server_port} HTTP/1.1"))
attempt("get", lambda: through("GET http://127.0.0.1:%d/ HTTP/1.1" % port))
attempt("trace", lambda: through("TRACE http://{index.host}/simple/ HTTP/1.1"))
attempt("rubbish", lambda: through("hello"))
attempt("https", lambda: through("GET https://{index.host}/ HTTP/1.1"))
attempt("allowed", lambda: through("GET http://{index.host}/simple/probe/ HTTP/1.1"))
attempt("allowed tunnel", lambda: through("CONNECT {files_host.host} HTTP/1.1"))
""")
    assert other.asked == []
    other.close()
    for name in ("direct", "index direct", "daemon", "outside", "names"):
        assert "rror" in found[name], (name, found)
    for name in ("tunnel", "other name", "get"):
        assert found[name].startswith("HTTP/1.1 403"), (name, found)
    for name in ("trace", "rubbish", "https"):
        assert found[name].startswith("HTTP/1.1 400"), (name, found)
    assert found["allowed"].split()[1] == "200" and found["allowed tunnel"].split()[1] == "200"


def test_code_of_a_package_sees_nothing_of_the_host(daemon, index, session):
    index.add(wheel("before"))
    synced(daemon, index, session, "before")
    run(daemon, session, "echo mine >/workspace/file", "shell")
    found = probe(daemon, index, session, f"""
attempt("state", lambda: os.listdir({str(daemon.state_dir)!r}))
attempt("passwd", lambda: open("/etc/shadow").read())
attempt("session", lambda: os.path.exists("/workspace/file"))
attempt("dependencies", lambda: os.listdir("/opt/sandbox-venv"))
attempt("environment", lambda: {harness.CANARY!r} in open("/proc/1/environ").read() or {harness.CANARY!r} in str(os.environ))
attempt("write", lambda: open("/usr/x", "w").write("x"))
attempt("user", os.getuid)
attempt("sysctl", lambda: os.sethostname("x") if hasattr(os, "sethostname") else socket.sethostname("x"))
""")
    assert "FileNotFoundError" in found["state"] and "rror" in found["passwd"]
    assert found["session"] is False and found["dependencies"] == []
    assert found["environment"] is not True
    assert "rror" in found["write"] and "rror" in found["sysctl"] and found["user"] == 1000


def test_what_a_package_leaves_elsewhere_is_not_kept(daemon, index, session):
    """Links, pipes and files beside the packages stay behind; sizes are not believed."""
    setup = """
import os
if not os.path.exists("/workspace/beside"):
    os.makedirs("/workspace/site/sneaky", exist_ok=True)
    os.symlink("/etc/passwd", "/workspace/site/sneaky/link")
    os.symlink("/opt", "/workspace/site/opt")
    os.mkfifo("/workspace/site/sneaky/pipe")
    open("/workspace/beside", "w").write("x")
from setuptools import setup
setup(name="sneaky", version="1.0", py_modules=[])
"""
    index.add(sdist("sneaky", setup))
    synced(daemon, index, session, "sneaky")
    found = run(daemon, session, f"cd {HOME}; find . ! -type f ! -type d; find . -name link; ls -d opt beside", "shell")
    assert found["stdout"] == "", found


# ---- secrets ----


def test_the_secret_of_an_index_shows_nowhere(daemon, index, session):
    secret = "s3cr3t-" + harness.marker()
    url = index.url.replace("http://", f"http://joe:{secret}%21@")
    decoded = secret + "!"
    basic = base64.b64encode(f"joe:{decoded}".encode()).decode()
    index.add(wheel("open_one"))
    synced(daemon, url, session, "open_one")
    assert any(headers.get("Authorization") == f"Basic {basic}" for _, headers in index.asked)
    index.add(sdist("teller", "import os, sys\nwords = open('/proc/%d/cmdline' % os.getppid()).read()\n"
                    f"sys.exit('told ' + words + ' {decoded} ' + {basic!r})"))
    words = install_error(daemon, url, session, "teller")
    assert "told" in words and "****" in words
    for text in (words, daemon.log_text(), daemon.stdout_text()):
        for spelling in (secret, decoded, basic):
            assert spelling not in text
    problem(sync(daemon, f"http://joe:{secret}@/simple", session), 400, "Executor.ValidationError")
    assert secret not in sync(daemon, f"ftp://joe:{secret}@h/", session).text
    assert secret not in sync(daemon, index, session, f"x @ ftp://joe:{secret}@h/").text
    assert secret not in daemon.log_text()


def test_log_and_metrics(daemon, index, session):
    index.add(wheel("counted"))
    response = sync(daemon, index, session, "counted")
    request_id = response.headers["X-Request-Id"]
    asked = daemon.wait_record(event_type="dependencies_asked", session_id=session)
    done = daemon.wait_record(event_type="dependencies_synced", session_id=session)
    assert asked["request_id"] == done["request_id"] == request_id
    assert (done["installed"], done["requirements"], done["hosts_refused"]) == (1, 1, 0)
    assert done["bytes"] > 0 and done["files"] >= 5 and done["transferred"] > 0
    text = daemon.request("GET", "/metrics").text
    assert re.search(r"^sandbox_dependency_syncs_total [1-9]", text, re.M)


# ---- where a platform says that there is no bubblewrap ----


def test_disable_bwrap_leaves_packages(make_daemon, index, session):
    daemon = make_daemon(DISABLE_BWRAP="true", ISOLATION=None, ISOLATION_LEVEL=None)
    index.add(wheel("plain"))
    synced(daemon, index, session, "plain")
    assert versions(daemon, session, "plain") == "1.0"


# ---- without root ----


def test_rootless(make_daemon, index, session):
    harness.need(harness.ROOT, "needs root to become somebody else")
    daemon = make_daemon(user=65534, ISOLATION_LEVEL="basic")
    index.add(wheel("humble"))
    synced(daemon, index, session, "humble")
    assert versions(daemon, session, "humble") == "1.0"
    result = run(daemon, session, f"rm {HOME}/humble.py", "shell")
    assert "Read-only file system" in result["stderr"]
    found = probe(daemon, index, session, f"""
attempt("direct", lambda: connect("127.0.0.1", {index.server.server_port}))
attempt("tunnel", lambda: through("CONNECT 127.0.0.1:{daemon.port} HTTP/1.1"))
""")
    assert "rror" in found["direct"] and found["tunnel"].startswith("HTTP/1.1 403")
