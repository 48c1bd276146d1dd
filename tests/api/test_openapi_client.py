# SPDX-License-Identifier: MIT
"""/openapi.json describes every operation, truly; a client is generated from it and calls of every family compile."""
import pathlib
import re
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def document(daemon):
    return daemon.request("GET", "/openapi.json").json()


def operations(document):
    return [(method, path, op) for path, row in document["paths"].items() for method, op in row.items()]


def test_every_operation_is_complete(document):
    names = [op["operationId"] for _, _, op in operations(document)]
    assert len(names) == len(set(names)) > 70
    assert document["servers"] == [{"url": "/"}]
    for method, path, op in operations(document):
        good = {s: r for s, r in op["responses"].items() if s.startswith("2") or s == "101"}
        assert good, (method, path)
        for status, response in good.items():
            empty = status in ("101", "204") or (path, status) == ("/mcp", "202")
            assert ("content" in response) == (not empty), (method, path, status)
        assert "default" in op["responses"] and ("401" in op["responses"]) == (op["security"] != []), (method, path)
        bare = path.endswith(("/unbind_port", "/restart", "/interrupt", "/pause", "/resume", "/console/sessions", "/console/tickets"))
        assert ("requestBody" in op) == (method in ("post", "put") and not bare), (method, path)
        assert [p["name"] for p in op.get("parameters", []) if p["in"] == "path"] == re.findall(r"\{(\w+)\}", path)
        assert "processe}" not in path


def test_answers_have_the_documented_status_and_members(document, daemon):
    def check(method, path, body=None, at=None):
        answer = daemon.request(method.upper(), at or path, json=body)
        responses = document["paths"][path][method]["responses"]
        assert str(answer.status) in responses, (path, answer)
        response = responses[str(answer.status)]
        if "content" not in response:
            assert answer.status == 204 and not answer.text
            return None
        schema = response["content"]["application/json"]["schema"]
        known, required = set(), set()
        for one in schema.get("oneOf", [schema]):
            named = document["components"]["schemas"][one["$ref"].rpartition("/")[2]]
            known |= set(named["properties"])
            required = required or set(named.get("required", []))
        assert set(answer.json()) <= known, (path, set(answer.json()) - known)
        assert required <= set(answer.json()), (path, required)
        return answer.json()

    for path in ("/", "/health", "/info", "/v1/capabilities", "/v1/sessions", "/v1/sandboxes"):
        check("get", path)
    done = check("post", "/execute", {"language": "shell", "code": "echo hi"})
    ident = done["execution_id"]
    check("get", "/v1/executions/{id}", at="/v1/executions/" + ident)
    check("delete", "/v1/executions/{id}", at="/v1/executions/" + ident)
    code = {"language": "python", "code": "def f():\n    return 1"}
    check("post", "/v1/functions/call", {**code, "functionName": "f"})
    session = check("post", "/v1/sessions", code)["id"]
    check("get", "/v1/sessions/{id}", at="/v1/sessions/" + session)
    check("post", "/v1/sessions/{id}/call", {"functionName": "f"}, at=f"/v1/sessions/{session}/call")
    check("post", "/v1/sessions/{id}/reset", {}, at=f"/v1/sessions/{session}/reset")
    check("delete", "/v1/sessions/{id}", at="/v1/sessions/" + session)
    sandbox = check("post", "/v1/sandboxes", {})["id"]
    try:
        check("get", "/v1/sandboxes/{id}", at="/v1/sandboxes/" + sandbox)
        for verb, body in (("run", {"cmd": "echo hi; false"}), ("write_file", {"path": "a", "content": "x"}),
                           ("read_file", {"path": "a"}), ("list_dir", {"path": "."}), ("make_dir", {"path": "d"}),
                           ("delete_dir", {"path": "d"}), ("delete_file", {"path": "a"}),
                           ("start_process", {"cmd": "sleep 600"}), ("bind_port", {"port": "80"}), ("unbind_port", {})):
            known = check("post", "/v1/sandboxes/{id}/" + verb, body, at=f"/v1/sandboxes/{sandbox}/{verb}")
            if verb == "start_process":
                process = known["id"]
        check("get", "/v1/sandboxes/{id}/list_processes", at=f"/v1/sandboxes/{sandbox}/list_processes")
        check("post", "/v1/sandboxes/{id}/kill_process", {"id": process}, at=f"/v1/sandboxes/{sandbox}/kill_process")
    finally:
        check("delete", "/v1/sandboxes/{id}", at="/v1/sandboxes/" + sandbox)
    assert check("post", "/run", {"cmd": "true"})["code"] == 0


def test_a_client_is_generated_and_compiles(daemon, tmp_path):
    fetch = TOP / "tools" / "fetch-npm"
    got = subprocess.run([fetch, "--path", "client"], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        pytest.skip("the generator is not here: " + got.stderr.strip())
    modules = pathlib.Path(got.stdout.strip()) / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "openapi.json").write_text(daemon.request("GET", "/openapi.json").text)
    shutil.copy(TOP / "tests" / "client" / "calls.ts", tmp_path)
    for command in (["openapi-typescript", "openapi.json", "-o", "api.d.ts"],
                    ["tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2022,dom",
                     "--module", "esnext", "--moduleResolution", "bundler", "calls.ts"]):
        made = subprocess.run([modules / ".bin" / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True,
                              check=False, timeout=300)
        assert made.returncode == 0, made.stdout + made.stderr
