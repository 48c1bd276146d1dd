# SPDX-License-Identifier: MIT
"""/v1/packages: sets of packages, from indexes on the loopback, and their use by everything else."""
import signal

import pytest

import harness
from npm_registry import Registry
from package_index import Index, wheel

PATH = "/v1/packages"


@pytest.fixture(scope="module")
def index():
    instance = Index()
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def registry():
    instance = Registry()
    yield instance
    instance.close()


def settings(index, registry, **more):
    return {"PACKAGE_INDEX": index.url, "PACKAGE_REGISTRY": registry.url, "NODE_ZYGOTE": "false", **more}


@pytest.fixture(scope="module")
def daemon(make_daemon_module, index, registry):
    index.add(wheel("colours", "2.1", {"colours.py": "BEST = 'green'\n"}, requires=["shades"]))
    index.add(wheel("shades", "0.3"))
    registry.add("left", "1.4.0", "module.exports = (s) => '>' + s;", dependencies={"@deep/right": "^1.0.0"})
    registry.add("@deep/right", "1.2.0", "module.exports = (s) => s + '<';")
    daemon = make_daemon_module(**settings(index, registry))
    if not daemon.request("GET", "/v1/capabilities").json()["dependency_sync"]:
        pytest.skip("this jail cannot install packages")
    return daemon


def ask(daemon, method, path="", **fields):
    return daemon.request(method, PATH + path, timeout=120, **({"json": fields} if fields else {}))


def made(daemon, **fields):
    answered = ask(daemon, "POST", **fields)
    assert answered.status in (200, 201), answered
    return answered.json()


def test_a_set_tells_what_is_installed(daemon):
    answered = ask(daemon, "POST", name="tools", python=["colours"], npm=["left@^1.0"])
    assert answered.status == 201, answered
    body = answered.json()
    assert (body["name"], body["state"]) == ("tools", "ready") and body["files"] > 4 and body["bytes"] > 100
    assert body["python"] == ["colours"] and body["npm"] == ["left@^1.0"]
    assert sorted((d["kind"], d["name"], d["version"]) for d in body["installed"]) == [
        ("npm", "@deep/right", "1.2.0"), ("npm", "left", "1.4.0"),
        ("python", "colours", "2.1"), ("python", "shades", "0.3")]
    assert ask(daemon, "GET", "/tools").json() == body == ask(daemon, "GET", "/" + body["id"]).json()
    assert body in ask(daemon, "GET").json()["packages"]


def test_the_same_lists_are_installed_once(daemon, index):
    first = made(daemon, python=["shades"])
    before = len(index.asked)
    again = ask(daemon, "POST", python=["shades"], name="again")
    assert again.status == 200 and again.json()["id"] == first["id"] and again.json()["name"] == "again"
    assert len(index.asked) == before


def test_a_name_goes_over_to_other_lists(daemon):
    first = made(daemon, name="moving", python=["shades==0.3"])
    other = made(daemon, name="moving", python=["shades>=0.3"])
    assert first["id"] != other["id"] == ask(daemon, "GET", "/moving").json()["id"]
    assert ask(daemon, "GET", "/" + first["id"]).json()["name"] is None


def test_a_sandbox_has_them(daemon):
    made(daemon, name="box", python=["colours"], npm=["left"])
    box = daemon.request("POST", "/v1/sandboxes", json={"packages": "box"})
    assert box.status == 201, box
    run = f"/v1/sandboxes/{box.json()['id']}/run"
    python = daemon.request("POST", run, json={"cmd": "python3 -c 'import colours; print(colours.BEST)'"}).json()
    assert python["stdout"] == "green\n", python
    code = "console.log(require(\"left\")(require(\"@deep/right\")(\"x\")))"
    node = daemon.request("POST", run, json={"cmd": f"node -e '{code}'"}).json()
    assert node["stdout"] == ">x<\n", node
    cells = f"/v1/sandboxes/{box.json()['id']}/cells"
    for language, code, wanted in (("python", "import colours; print(colours.BEST)", "green\n"),
                                   ("javascript", "console.log(require('left')('x'))", ">x\n"),
                                   ("bash", "python3 -c 'import colours; print(colours.BEST)'", "green\n")):
        cell = daemon.request("POST", cells, json={"language": language, "code": code}, timeout=120)
        assert cell.status == 200 and cell.json()["stdout"] == wanted, cell
    write = daemon.request("POST", run, json={"cmd": "touch /opt/sandbox-venv/x"}).json()
    assert write["code"] != 0, "they are read-only"
    refused = ask(daemon, "DELETE", "/box")
    assert refused.status == 409 and "in use" in refused.json()["error_detail"]
    assert daemon.request("DELETE", f"/v1/sandboxes/{box.json()['id']}").status == 204
    assert ask(daemon, "DELETE", "/box").status == 204
    assert ask(daemon, "GET", "/box").status == 404


def run(daemon, code, language="python", **fields):
    answered = daemon.request("POST", "/execute", headers={"Prefer": "wait"}, timeout=120,
                              json={"code": code, "language": language, **fields})
    assert answered.status == 200, answered
    return answered.json()


def test_executions_have_them(daemon):
    lists = {"python": ["colours"], "npm": ["left"]}
    made(daemon, name="runs", **lists)
    code = "import colours, sys\ndef handler(e): return [colours.BEST, colours.__file__]"
    for packages in ("runs", lists):
        result = run(daemon, code, packages=packages)
        assert result["return_value"] == ["green", "/opt/sandbox-venv/colours.py"], result
    node = "const left = require('left'); exports.handler = () => left(require('@deep/right')('y'));"
    assert run(daemon, node, "javascript", packages="runs")["return_value"] == ">y<"
    assert run(daemon, "python3 -c 'import colours; print(colours.BEST)'", "shell", packages="runs")["stdout"] == "green\n"
    assert "ModuleNotFoundError" in run(daemon, code)["stderr"], "only those that ask for them"
    assert ask(daemon, "DELETE", "/runs").status == 204, "no run holds it any more"


def call(daemon, code, language="python", path="/v1/functions/call", **fields):
    return daemon.request("POST", path, timeout=120, json={"language": language, "code": code, **fields})


PYTHON = "import colours\ndef f(): return [colours.BEST, colours.__file__]"
NODE = "const left = require('left'); function f() { return left(require('@deep/right')('y')); }"


def test_function_calls_have_them(daemon):
    lists = {"python": ["colours"], "npm": ["left"]}
    made(daemon, name="calls", **lists)
    for packages in ("calls", lists):
        result = call(daemon, PYTHON, functionName="f", packages=packages).json()
        assert result.get("result") == ["green", "/opt/sandbox-venv/colours.py"], result
    assert call(daemon, NODE, "javascript", functionName="f", packages="calls").json().get("result") == ">y<"
    ruby = "def f = `python3 -c 'import colours; print(colours.BEST)'`"
    assert call(daemon, ruby, "ruby", functionName="f", packages="calls").json().get("result") == "green\n"
    without = call(daemon, PYTHON, functionName="f").json()
    assert without["error"]["type"] == "ModuleNotFoundError", "only those that ask for them"
    assert "POST /v1/packages" in without["termination"]["hint"], without
    assert ask(daemon, "DELETE", "/calls").status == 204, "no call holds it any more"


def test_function_sessions_have_them_in_every_process(daemon):
    made(daemon, name="kept", python=["colours"], npm=["left"])
    created = call(daemon, PYTHON, path="/v1/sessions", packages="kept")
    assert created.status == 201, created
    path = f"/v1/sessions/{created.json()['id']}"
    assert ask(daemon, "DELETE", "/kept").status == 409, "the session holds it"
    for _ in range(2):
        answered = daemon.request("POST", path + "/call", json={"functionName": "f"}).json()
        assert answered.get("result") == ["green", "/opt/sandbox-venv/colours.py"], answered
        assert daemon.request("POST", path + "/reset", json={"level": "hard"}).status == 200
    late = daemon.request("POST", path + "/call", json={"functionName": "f", "packages": "kept"})
    assert late.status == 400 and "give it when the session is created" in late.json()["error_detail"]
    assert daemon.request("DELETE", path).status == 204
    node = call(daemon, NODE, "javascript", path="/v1/sessions", packages={"npm": ["left"]}).json()
    answered = daemon.request("POST", f"/v1/sessions/{node['id']}/call", json={"functionName": "f"}).json()
    assert answered.get("result") == ">y<", answered
    assert daemon.request("DELETE", f"/v1/sessions/{node['id']}").status == 204
    without = call(daemon, PYTHON, path="/v1/sessions")
    assert without.status == 422 and without.json()["error"]["type"] == "ModuleNotFoundError"
    harness.wait_until(lambda: ask(daemon, "DELETE", "/kept").status == 204, "no session holds it any more")


def test_a_call_waits_for_its_packages_without_a_place(make_daemon, index, registry):
    registry.add("awaited", "1.0.0")
    daemon = make_daemon(**settings(index, registry, MAX_CONCURRENT_EXECUTIONS=2))
    registry.gate.clear()
    body = {"language": "javascript", "code": "function f() { return require('awaited') }", "functionName": "f",
            "packages": {"npm": ["awaited"]}, "timeout": 5}
    try:
        with daemon.connect(timeout=120) as first, daemon.connect(timeout=120) as second, daemon.connect() as left:
            for connection in (first, second, left):
                connection.send("POST", "/v1/functions/call", json=body)
            harness.wait_until(lambda: "/awaited" in registry.asked, "the installer asks the registry")
            left.close()
            other = call(daemon, "def f(): return 7", functionName="f", timeout=20)
            assert other.json().get("result") == 7, "calls that wait for packages hold no place"
            registry.gate.set()
            for connection in (first, second):
                assert connection.receive().json().get("result") == 1
    finally:
        registry.gate.set()


@pytest.mark.parametrize("path", ["/v1/functions/call", "/v1/sessions"])
def test_calls_that_cannot_have_packages(daemon, path):
    def refused(**fields):
        return call(daemon, "def f(): pass", path=path, **fields)

    failed = 200 if path.endswith("call") else 422
    for packages, words in (({"pyhton": ["x"]}, "did you mean 'python'"), ({"python": ["-r x"]}, "option"), ({}, "packages")):
        answered = refused(packages=packages)
        assert answered.status == 400 and words in answered.json()["error_detail"], answered
    absent = refused(packages="nobody")
    assert absent.status == failed and absent.json()["error"]["type"] == "PackagesNotAvailable", absent
    broken = refused(packages={"python": ["no-such-thing"]})
    assert broken.status == failed and broken.json()["error"]["type"] == "PackageInstallError", broken
    assert "no-such-thing" in broken.json()["error"]["message"]
    wasm = refused(packages={"python": ["shades"]}, engine="wasm")
    assert wasm.status == failed and wasm.json()["status"] == "error", wasm


def test_a_request_outweighs_its_session(daemon, index):
    index.add(wheel("of_session", "1.0"))
    session = harness.marker()
    synced = daemon.request("POST", "/internal/session-config/sync", timeout=120, json={
        "session_id": session, "language_runtime": "python3.11", "sync_mode": "replace",
        "python_package_index_url": index.url, "dependencies": ["of_session"]})
    assert synced.status == 200, synced
    code = "import importlib.util as u\ndef handler(e): return [bool(u.find_spec(n)) for n in ('of_session', 'shades')]"
    assert run(daemon, code, session_id=session)["return_value"] == [True, False]
    assert run(daemon, code, session_id=session, packages={"python": ["shades"]})["return_value"] == [False, True]
    assert run(daemon, code)["return_value"] == [False, False]


def test_large_bodies_wait_as_well(daemon, registry):
    registry.add("for-large", "1.0.0")
    code = "exports.handler = () => require('for-large');\n//" + "x" * (1 << 20)
    result = daemon.request("POST", "/execute", timeout=120, json={
        "code": code[:1000000], "stdin": "y" * 200000, "language": "javascript", "packages": {"npm": ["for-large"]}})
    assert result.json()["return_value"] == 1, result


def test_a_client_that_leaves_while_it_is_installed(daemon, registry):
    registry.add("left-alone", "1.0.0")
    registry.gate.clear()
    try:
        with daemon.connect() as connection:
            connection.send("POST", "/execute", json={
                "code": "1", "language": "javascript", "packages": {"npm": ["left-alone"]}})
            harness.wait_until(lambda: "/left-alone" in registry.asked, "the installer asks the registry")
    finally:
        registry.gate.set()
    ready = lambda: any(s["npm"] == ["left-alone"] and s["state"] == "ready"
                        for s in ask(daemon, "GET").json()["packages"])
    harness.wait_until(ready, "it is installed all the same")


def test_lists_in_a_request_are_installed_first(daemon, registry):
    registry.add("inline", "1.0.0", "module.exports = 'inside';")
    box = daemon.request("POST", "/v1/sandboxes", json={"packages": {"npm": ["inline"]}}, timeout=120)
    assert box.status == 201, box
    run = daemon.request("POST", f"/v1/sandboxes/{box.json()['id']}/run",
                         json={"cmd": "node -p 'require(\"inline\")'"}).json()
    assert run["stdout"] == "inside\n", run
    daemon.request("DELETE", f"/v1/sandboxes/{box.json()['id']}")


@pytest.mark.parametrize("fields, words", [
    ({"python": ["no-such-thing"]}, "no-such-thing"), ({"npm": ["no-such-thing"]}, "404")])
def test_a_failure_ends_with_the_words_of_the_installer(daemon, fields, words):
    answered = ask(daemon, "POST", name="broken", **fields)
    assert answered.status == 422, answered
    assert answered.json()["error_code"] == "Executor.PackageInstallError" and words in answered.json()["error_detail"]
    kept = ask(daemon, "GET", "/broken").json()
    assert kept["state"] == "failed" and words in kept["error"]
    box = daemon.request("POST", "/v1/sandboxes", json={"packages": "broken"}, timeout=120)
    assert box.status == 422, "it is tried again, and fails again"
    assert ask(daemon, "DELETE", "/broken").status == 204


def test_a_caller_need_not_wait_and_sees_how_far_it_is(daemon, registry):
    registry.add("slow", "1.0.0")
    registry.gate.clear()
    try:
        answered = daemon.request("POST", PATH, json={"name": "slow", "npm": ["slow"]},
                                  headers={"Prefer": "respond-async"})
        assert answered.status == 202 and answered.json()["state"] == "installing"
        harness.wait_until(lambda: "/slow" in registry.asked, "the installer asks the registry")
        harness.wait_until(lambda: ask(daemon, "GET", "/slow").json()["progress"]["downloaded_bytes"] > 0, "bytes have passed")
        assert ask(daemon, "GET", "/slow").json()["state"] == "installing"
        assert ask(daemon, "DELETE", "/slow").status == 409
    finally:
        registry.gate.set()
    harness.wait_until(lambda: ask(daemon, "GET", "/slow").json()["state"] == "ready", "it is installed")


@pytest.mark.parametrize("fields", [
    {}, {"python": []}, {"npm": ["../up"]}, {"npm": ["--registry=x"]}, {"npm": ["git+ssh://x/y"]}, {"npm": ["file:x"]},
    {"npm": ["a@npm:b"]}, {"npm": ["a@http://x/y.tgz"]}, {"npm": ["a/b"]}, {"npm": ["@a"]}, {"npm": [""]},
    {"python": ["-r x"]}, {"python": ["../x"]}, {"python": "colours"}, {"pyhton": ["colours"]},
    {"name": ".hidden", "python": ["colours"]}, {"name": "a/b", "python": ["colours"]},
    {"python": ["shades"] * 201}], ids=lambda f: str(f)[:40])
def test_what_is_no_package_is_refused(daemon, fields):
    before = len(ask(daemon, "GET").json()["packages"])
    answered = daemon.request("POST", PATH, json=fields)
    assert answered.status == 400, answered
    assert len(ask(daemon, "GET").json()["packages"]) == before


def test_a_name_that_no_set_has(daemon):
    for path, body in (("/v1/sandboxes", {"packages": "nobody"}),
                       ("/execute", {"code": "1", "language": "shell", "packages": "nobody"})):
        answered = daemon.request("POST", path, json=body)
        assert answered.status == 404 and "nobody" in answered.json()["error_detail"]
    assert ask(daemon, "GET", "/nobody").status == 404 and ask(daemon, "DELETE", "/nobody").status == 404


def test_the_number_of_sets_is_limited(make_daemon, index, registry):
    index.add(wheel("shades", "0.3"))
    index.add(wheel("tints", "1.0"))
    index.add(wheel("hues", "1.0"))
    daemon = make_daemon(**settings(index, registry, PACKAGE_SETS_MAX=2))
    first = made(daemon, python=["shades"])
    made(daemon, python=["tints"], name="kept")
    made(daemon, python=["hues"], name="too")
    assert ask(daemon, "GET", "/" + first["id"]).status == 404, "it had no name and gave way"
    full = ask(daemon, "POST", python=["shades"])
    assert full.status == 503 and "PACKAGE_SETS_MAX" in full.json()["error_detail"]


def test_a_set_with_a_name_survives_a_restart(make_daemon, index, registry):
    index.add(wheel("tints", "1.0"))
    index.add(wheel("hues", "1.0"))
    first = make_daemon(**settings(index, registry))
    kept, unnamed = made(first, python=["tints"], name="kept"), made(first, python=["hues"])
    state = first.directory.parent / f"{first.directory.name}-state"
    first.signal(signal.SIGTERM)
    first.wait()
    first.state_dir.rename(state)
    try:
        before = len(index.asked)
        second = make_daemon(**settings(index, registry, STATE_DIR=state))
        assert ask(second, "GET").json()["packages"] == [ask(second, "GET", "/kept").json()]
        again = ask(second, "GET", "/kept").json()
        assert (again["id"], again["state"], again["installed"]) == (kept["id"], "ready", kept["installed"])
        box = second.request("POST", "/v1/sandboxes", json={"packages": "kept"}).json()
        run = second.request("POST", f"/v1/sandboxes/{box['id']}/run", json={"cmd": "python3 -c 'import tints'"}).json()
        assert run["code"] == 0 and len(index.asked) == before
        assert {p.name for p in (state / "dependencies").iterdir() if p.name[0] == "p"} == {kept["id"]}
        assert unnamed["id"] != kept["id"]
        second.stop()
    finally:
        import shutil
        shutil.rmtree(state, ignore_errors=True)
