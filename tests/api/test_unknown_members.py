# SPDX-License-Identifier: MIT
"""Members that an endpoint does not know: refused with the nearest name in our own, ignored where the Koyeb SDKs rely
on it."""
import pytest


def refused(response, field, *words):
    assert response.status == 400, response
    body = response.json()
    assert body["error_code"] == "Executor.ValidationError"
    assert body["error_detail"].startswith(field + ":"), body
    for word in words:
        assert word in body["error_detail"], body
    return body


@pytest.mark.parametrize("path, good, bad, field, near", [
    ("/execute", {"language": "shell", "code": "true"}, {"timeoutt": 3}, "timeoutt", "'timeout'"),
    ("/execute", {"language": "shell", "code": "true"}, {"sessionId": "x"}, "sessionId", "'session_id'"),
    ("/execute", {"language": "shell", "code": "true"}, {"zzz": 1}, "zzz", "known are: "),
    ("/v1/functions/call", {"language": "python", "code": "def f(): pass"}, {"functionname": "f"}, "functionname",
     "'functionName'"),
    ("/v1/functions/call", {"language": "python", "code": "def f(): pass"}, {"options": {"file": {}}}, "options.file",
     "'files'"),
    ("/v1/functions/inspect", {"language": "python", "code": ""}, {"lang": "python"}, "lang", "'language'"),
    ("/v1/sessions", {"language": "python", "code": ""}, {"template": "x"}, "template", ""),
    ("/v1/sandboxes", {}, {"image": "debian"}, "image", ""),
    ("/v1/sandboxes", {}, {"network": {"allows": ["example.org"]}}, "network.allows", "allow"),
    ("/v1/sandboxes", {}, {"limits": {"memory": 5}}, "limits.memory", "'memory_mb'"),
])
def test_ours_refuse_them(daemon, path, good, bad, field, near):
    refused(daemon.request("POST", path, json={**good, **bad}), field, "Unknown field", near)


def test_all_of_them_are_named(daemon):
    body = daemon.request("POST", "/execute", json={"language": "shell", "code": "true", "timeoutt": 1, "webhok": "x"}).json()
    assert [d["loc"] for d in body["detail"]] == [["body", "timeoutt"], ["body", "webhok"]]
    assert {d["type"] for d in body["detail"]} == {"extra_forbidden"}


@pytest.mark.parametrize("at", ["", "/koyeb-sandbox"])
def test_koyeb_tolerates_them(daemon, at):
    answer = daemon.request("POST", at + "/run", json={"command": "ls"})
    assert (answer.status, answer.json()["code"]) == (200, 0)
    answer = daemon.request("POST", at + "/run", json={"CMD": "echo hi", "timeoutt": 1, "cwd": None})
    assert answer.json()["stdout"] == "hi\n"
    wrong = daemon.request("POST", at + "/run", json={"cmd": 5})
    assert (wrong.status, wrong.text) == (400, "Invalid request\n")


def test_the_same_verbs_of_a_named_sandbox_are_ours(daemon):
    ident = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    at = "/v1/sandboxes/" + ident
    try:
        body = refused(daemon.request("POST", at + "/run", json={"command": "ls"}), "command", "did you mean 'cmd'?")
        assert ["body", "cmd"] in [d["loc"] for d in body["detail"]]
        refused(daemon.request("POST", at + "/run", json={"cmd": 5}), "cmd", "valid string")
        refused(daemon.request("POST", at + "/run", json={"cmd": "true", "timeout": "soon"}), "timeout", "valid number")
        refused(daemon.request("POST", at + "/run", json={"cmd": "true", "env": {"A": 1}}), "env", "valid string")
        refused(daemon.request("POST", at + "/run", json={"cmd": "true", "cwd": "/nowhere"}), "cwd", "/nowhere")
        refused(daemon.request("POST", at + "/bind_port", json={"port": 8080}), "port", 'write "8080"')
        refused(daemon.request("POST", at + "/write_file", json={"content": "x"}), "path", "Field required")
        assert daemon.request("POST", at + "/run", json={"cmd": "echo hi", "cwd": None}).json()["stdout"] == "hi\n"
        missing = daemon.request("GET", "/v1/sandboxes/none/list_processes")
        assert missing.status == 404 and missing.json()["error_code"] == "Executor.NotFound"
    finally:
        daemon.request("DELETE", at)


# ---- every endpoint of ours ----


def bodies(document):
    """Path, method, example and schema of each operation of ours that takes JSON."""
    schemas = document["components"]["schemas"]
    for path, row in document["paths"].items():
        for method, operation in row.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body and path.startswith(("/execute", "/v1/")):
                yield path, method.upper(), body["example"], schemas[body["schema"]["$ref"].rpartition("/")[2]]


def members_within(schemas, schema):
    """Members that are objects of a known shape, or lists of them, with what they are called inside."""
    for name, member in schema["properties"].items():
        inner = member.get("$ref") or member.get("items", {}).get("$ref")
        if inner:
            known = schemas[inner.rpartition("/")[2]]
            if not known.get("additionalProperties"):
                yield name, known, "$ref" not in member


@pytest.fixture
def places(daemon):
    """Ids for the stars of a path: some bodies are looked at only when there is what they are for."""
    home = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    at = "/v1/sandboxes/" + home
    process = daemon.request("POST", at + "/processes", json={"argv": ["cat"], "stdin": True}).json()["id"]
    session = daemon.request("POST", "/v1/sessions", json={"language": "python", "code": "def f(): pass"}).json()["id"]
    yield lambda path: path.replace("{id}", session if path.startswith("/v1/sessions") else home).replace("{process}", process)
    daemon.request("DELETE", at)
    daemon.request("DELETE", "/v1/sessions/" + session)


def test_every_endpoint_refuses_a_misspelt_member_and_names_the_nearest(daemon, places):
    document = daemon.request("GET", "/openapi.json").json()
    schemas, seen = document["components"]["schemas"], set()
    for path, method, example, schema in bodies(document):
        at = places(path)
        assert "{" not in at, f"{path}: this test needs something that is called so"
        seen.add(path)
        assert schema["additionalProperties"] is False, path
        for name in schema["properties"]:
            wrong = name + name[-1]
            refused(daemon.request(method, at, json={**example, wrong: 1}), wrong, "Unknown field",
                    f"did you mean '{name}'?" if len(name) > 3 else "")
        if path == "/v1/functions/sync":
            continue  # its rules are read once there is a call with changes
        for name, inner, several in members_within(schemas, schema):
            longest = max(inner["properties"], key=len)
            wrong = longest + longest[-1]
            value = {wrong: 1}
            answer = daemon.request(method, at, json={**example, name: [value] if several else value})
            assert answer.status == 400 and f"did you mean '{longest}'?" in answer.text, (path, name, answer)
    assert len(seen) > 30 and {"/execute", "/v1/packages", "/v1/sandboxes/{id}/cells"} <= seen


@pytest.mark.parametrize("path, body, near", [
    ("/execute", {"packages": {"python3": ["six"]}}, "python"),
    ("/execute", {"webhook": {"url": "http://127.0.0.1/", "secrett": "x"}}, "secret"),
    ("/execute", {"limits": {"memory": 64}}, "memory_mb"),
    ("/v1/sandboxes", {"packages": {"nmp": ["six"]}}, "npm"),
])
def test_members_within_members_are_known_too(daemon, path, body, near):
    answer = daemon.request("POST", path, json={"language": "shell", "code": "true", **body} if path == "/execute" else body)
    assert answer.status == 400 and near in answer.json()["error_detail"], answer
