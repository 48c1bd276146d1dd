# SPDX-License-Identifier: MIT
"""What /openapi.json says of function calls and sessions is what they take and give; and their metrics."""
import harness
import pytest
from test_sessions import Session

BODIES = {("post", "/v1/functions/call"): "FunctionCall", ("post", "/v1/sessions"): "SessionCreate",
          ("post", "/v1/sessions/{id}/call"): "SessionCall", ("post", "/v1/sessions/{id}/reset"): "SessionReset"}
ANSWERS = {("post", "/v1/functions/call"): "FunctionResult", ("post", "/v1/sessions/{id}/call"): "FunctionResult",
           ("get", "/v1/sessions"): "Sessions", ("get", "/v1/sessions/{id}"): "Session"}


@pytest.fixture(scope="module")
def document(daemon):
    return daemon.request("GET", "/openapi.json").json()


def schema(document, name):
    return document["components"]["schemas"][name]


def resolve(document, node):
    return schema(document, node["$ref"].rpartition("/")[2]) if "$ref" in node else node


def test_bodies_have_schemas(document):
    for (method, path), name in BODIES.items():
        body = document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        assert body == {"$ref": f"#/components/schemas/{name}"}
        assert schema(document, name)["properties"]
    for (method, path), name in ANSWERS.items():
        answer = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        assert answer == {"$ref": f"#/components/schemas/{name}"}
    assert "201" in document["paths"]["/v1/sessions"]["post"]["responses"]


def test_every_reference_leads_somewhere(document):
    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                kind, name = node["$ref"].split("/")[2:]
                assert document["components"][kind][name].get("type", "object") == "object"
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)
    walk(document)


def test_what_is_required_is_required(document, daemon):
    whole = {"language": "python", "code": "def f():\n    return 1", "functionName": "f"}
    for name, path in (("FunctionCall", "/v1/functions/call"), ("SessionCreate", "/v1/sessions")):
        for missing in schema(document, name)["required"]:
            body = {k: v for k, v in whole.items() if k != missing}
            assert daemon.request("POST", path, json=body).status == 400, (name, missing)


def test_fields_of_the_wrong_type_are_refused(document, daemon):
    """So every documented field is one that is read."""
    whole = {"language": "python", "code": "def f():\n    return 1", "functionName": "f"}
    wrong = {"string": 7, "number": "x", "integer": "x", "object": 7, "boolean": 7}

    def tries(name, depth=0):
        for field, node in schema(document, name)["properties"].items():
            node = resolve(document, node)
            kind = node["type"] if isinstance(node.get("type"), str) else "object"  # one of several: a number is none
            yield field, wrong[kind]
            if "properties" in node and depth == 0:
                for inner, value in tries([k for k, v in document["components"]["schemas"].items() if v == node][0], 1):
                    yield field, {inner: value}
    s = Session(daemon, "python", whole["code"])
    for name, path in (("FunctionCall", "/v1/functions/call"), ("SessionCreate", "/v1/sessions"),
                       ("SessionCall", f"/v1/sessions/{s.id}/call"), ("SessionReset", f"/v1/sessions/{s.id}/reset")):
        for field, value in tries(name):
            got = daemon.request("POST", path, json={**whole, field: value})
            assert got.status == 400, (name, field, value, got)
    s.delete()


def test_answers_have_no_other_members(document, daemon):
    known = set(schema(document, "FunctionResult")["properties"])
    body = {"language": "python", "code": "def f(x):\n    open('a', 'w').close()\n    return x", "functionName": "f"}
    call = daemon.request("POST", "/v1/functions/call", json={**body, "args": [1]}).json()
    s = Session(daemon, "python", body["code"])
    turn, failed = s.call("f", 1), s.call("f")
    for answer in (call, s.made, turn, failed, s.reset("soft")):
        assert set(answer) <= known | {"denied"}, set(answer) - known
    assert set(turn["files"]) <= set(schema(document, "FunctionFiles")["properties"])
    assert set(s.look()) <= set(schema(document, "Session")["properties"])
    assert s.look()["state"] in schema(document, "Session")["properties"]["state"]["enum"]
    s.delete()


def test_sessions_are_counted(make_daemon):
    daemon = make_daemon()
    assert daemon.metric("sandbox_function_sessions") == 0
    s = Session(daemon, "python")
    assert daemon.metric("sandbox_function_sessions") == 1
    assert daemon.metric("sandbox_function_sessions_busy") == 0
    spinning = s.send("spin", timeout=30)
    waiting = s.send("add")
    s.wait_state("busy")
    harness.wait_until(lambda: daemon.metric("sandbox_function_session_turns_waiting") == 1, s.look)
    assert daemon.metric("sandbox_function_sessions_busy") == 1
    spinning.close()  # whoever leaves interrupts
    assert waiting.receive().status == 200
    waiting.close()
    assert daemon.metric("sandbox_function_session_calls_total") == 2
    assert daemon.metric("sandbox_function_session_restarts_total") == 0
    s.call("crash")
    assert daemon.metric("sandbox_function_session_restarts_total") == 1
    s.delete()
    assert daemon.metric("sandbox_function_sessions") == 0
