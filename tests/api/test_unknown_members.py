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
    ("/v1/sandboxes", {}, {"network": {"allow": ["example.org"]}}, "network.allow", "mode"),
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
