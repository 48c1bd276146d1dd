# SPDX-License-Identifier: MIT
"""Published tools: /v1/tools, define_tools and tools/list, and what is left of them after a restart."""
import json
import pathlib
import re
import threading

import pytest

import harness
from mcp_client import MODERN, Client, events_of, text_of

pytestmark = pytest.mark.skipif(not (harness.BUILD / "sandbox-inspect").exists(), reason="built without grammars (tools/fetch-grammars)")

SPEC_LISTED = ["run_code", "run_command", "manage_process", "read_file", "write_file", "edit_file", "list_files",
               "create_sandbox", "list_sandboxes", "delete_sandbox", "define_tools", "call_function"]

PYTHON = '''
from typing import Literal, Optional

def area(width: int, height: Optional[int] = None, unit: Literal["m", "cm"] = "m") -> dict:
    """Area of a rectangle.

    Args:
        width: how wide it is
    """
    return {"area": width * (height or 2), "unit": unit}

def total(*values: float, start: int = 0) -> float:
    "Sum of all."
    return start + sum(values)

def anything(x, **more):
    return [x, more]

def _hidden(): pass

class Thing:
    def method(self): pass
'''


@pytest.fixture
def daemon(make_daemon):
    """One of its own: what is published stays."""
    return make_daemon()


@pytest.fixture
def client(daemon):
    return Client(daemon, MODERN)


def put(daemon, bundle, code=PYTHON, status=None, **more):
    got = daemon.request("PUT", f"/v1/tools/{bundle}", json={"language": "python", "code": code, **more})
    assert got.status == status if status else got.status in (200, 201), got
    return got.json()


def refused(result, *words):
    assert result["isError"], result
    for word in (*words, "[hint]"):
        assert word in text_of(result), result


def names(client, **params):
    return [tool["name"] for tool in client.ask("tools/list", params)["tools"]]


# ---- what is listed ----


def test_the_built_in_tools_are_listed_word_for_word(daemon):
    """By both eras, each tool byte for byte as its source file has it."""
    text = (pathlib.Path(__file__).parents[2] / "src/http/api/mcp/tools.json").read_text()
    wanted = json.loads(text)
    assert [tool["name"] for tool in wanted] == SPEC_LISTED
    for client in (Client(daemon, MODERN), Client(daemon)):
        answer = client.post("tools/list")
        assert client.result(answer)["tools"] == wanted
        decoder = json.JSONDecoder()
        at = 1
        for _ in wanted:
            while text[at] in " \n,":
                at += 1
            _, end = decoder.raw_decode(text, at)
            assert text[at:end] in answer.text
            at = end


def test_functions_become_tools(daemon, client):
    made = put(daemon, "shapes", status=201)
    assert made["bundle"] == "shapes" and made["version"] == 1 and len(made["sha256"]) == 64
    assert [tool["name"] for tool in made["tools"]] == ["area", "total", "anything"]
    assert made["warnings"] == ["anything: it has no docstring: nobody will know when to use it"]
    assert names(client) == [*SPEC_LISTED, "anything", "area", "total"]
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["tools"]}
    area = tools["area"]
    assert area["description"].startswith("Area of a rectangle.") and area["description"].endswith("(user-defined, bundle shapes)")
    schema = area["inputSchema"]
    assert schema["required"] == ["width"] and schema["additionalProperties"] is False
    assert schema["properties"]["width"]["type"] == "integer" and "how wide" in schema["properties"]["width"]["description"]
    assert schema["properties"]["height"]["type"] == "integer" and "default" not in schema["properties"]["height"]
    assert schema["properties"]["unit"] == {"type": "string", "enum": ["m", "cm"], "default": "m"}
    assert tools["total"]["inputSchema"]["properties"]["values"] == {"type": "array", "items": {"type": "number"}}
    assert tools["anything"]["inputSchema"]["properties"]["x"] == {"description": "(any JSON value)"}
    assert tools["anything"]["inputSchema"]["additionalProperties"] is True
    assert area["annotations"] == {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}


FORBIDDEN = ("anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs", "patternProperties")


def check_portable(schema):
    assert not set(schema) & set(FORBIDDEN), schema
    assert "type" not in schema or isinstance(schema["type"], str), schema
    for name, inner in schema.get("properties", {}).items():
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)
        check_portable(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            check_portable(schema[key])


@pytest.mark.parametrize("language, code", [
    ("python", '''
from typing import *
from dataclasses import dataclass
class P(TypedDict):
    a: Optional[int]
    b: list[Union[int, str]]
def f(a: Union[int, str, None], b: dict[str, Optional[list[int]]], c: tuple[int, str], d: P, e: Optional[P] = None, *f: Any, **g: int): "x"
'''),
    ("javascript", '''
/** Does it.
 * @param {number|string|null} a one
 * @param {{x: number, y?: string[]}} b two
 * @param {"u"|"v"} [c] three
 */
export function f(a, b, c = "u", ...rest) { return 1 }
function hidden() {}
'''),
    ("php", "<?php\n/** Does it. */\nfunction f(int|string|null $a, ?array $b = null, string ...$c): int { return 1; }"),
    ("ruby", "# Does it.\n# @param a [Integer, String, nil]\ndef f(a, b: nil, **c)\n  1\nend"),
    ("c", "/* Does it. */\nint f(int a, const char *b) { return 1; }"),
    ("cpp", "#include <vector>\n#include <string>\n/** Does it. */\nint f(std::vector<std::string> a, double b = 2) { return 1; }"),
])
def test_every_schema_is_one_that_all_clients_take(daemon, client, language, code):
    made = put(daemon, "b", code, language=language)
    assert [tool["name"] for tool in made["tools"]] == ["f"]
    check_portable(made["tools"][0]["inputSchema"])


# ---- calls ----


def test_a_published_tool_is_called(daemon, client):
    made = put(daemon, "shapes")
    got = client.call("area", width=3)
    assert got["structuredContent"] == {"area": 6, "unit": "m"} and json.loads(text_of(got)) == got["structuredContent"]
    assert got["_meta"]["io.sandbox-executor/tool"] == {"bundle": "shapes", "version": 1, "sha256": made["sha256"]}
    assert client.call("area", width=3, height=None)["structuredContent"]["area"] == 6
    assert client.call("total", values=[1, 2.5], start=1)["structuredContent"] == {"result": 4.5}
    assert client.call("anything", x={"index": 0, "value": 1}, other=2)["structuredContent"] == {"result": [{"index": 0, "value": 1}, {"other": 2}]}
    by_name = client.ask("tools/call", {"name": "call_function", "arguments": {"tool": "area", "arguments": {"width": 1}}})
    assert by_name["structuredContent"] == {"area": 2, "unit": "m"}
    over_rest = daemon.request("POST", "/v1/tools/call", json={"tool": "area", "arguments": {"width": 2}}).json()
    assert over_rest["status"] == "success" and over_rest["result"] == {"area": 4, "unit": "m"}


@pytest.mark.parametrize("arguments, words", [
    ({"width": "3"}, ["width", "integer"]),
    ({}, ["width", "required"]),
    ({"width": 1, "unit": "km"}, ["unit"]),
    ({"width": 1, "depth": 2}, ["depth", "width, height, unit"]),
])
def test_wrong_arguments_name_themselves(daemon, client, arguments, words):
    put(daemon, "shapes")
    got = client.call("area", **arguments)
    assert got["isError"], got
    for word in words:
        assert word in text_of(got), got


def test_a_tool_has_no_network_and_its_own_memory_and_environment(daemon, client):
    put(daemon, "b", '''
import os, socket
def reach():
    "x"
    try: socket.create_connection(("192.0.2.1", 80), 1)
    except OSError as e: return type(e).__name__
def setting(): "x"; return os.environ["SETTING"]
def much(): "x"; return len(bytearray(200 << 20))
''', env={"SETTING": "here"}, memory_mb=100, timeout=20)
    assert client.call("reach")["structuredContent"]["result"] in ("OSError", "ConnectionRefusedError", "PermissionError", "TimeoutError")
    assert client.call("setting")["structuredContent"] == {"result": "here"}
    assert client.call("much")["isError"]


def test_a_function_tells_its_progress(daemon):
    put(daemon, "b", '''
from sbx import progress
def work(steps: int):
    "Works."
    for i in range(steps):
        progress(i + 1, steps, f"step {i}")
    return "done"
''')
    client = Client(daemon)
    answer = client.post("tools/call", {"name": "work", "arguments": {"steps": 3}, "_meta": {"progressToken": "p"}})
    events = events_of(answer.text)
    told = [event["params"] for event in events if event.get("method") == "notifications/progress"]
    assert [(one["message"], one["progress"], one["total"]) for one in told] == [("step 0", 1, 3), ("step 1", 2, 3), ("step 2", 3, 3)]
    assert events[-1]["result"]["structuredContent"] == {"result": "done"}
    assert client.call("work", steps=2)["structuredContent"] == {"result": "done"}, "nobody asked for it"
    over_rest = daemon.request("POST", "/v1/tools/call", json={"tool": "work", "arguments": {"steps": 2}}).json()
    assert over_rest["result"] == "done"


# ---- definitions ----


def test_a_model_defines_lists_and_removes(client):
    assert client.data("define_tools") == {"tools": []}
    made = client.data("define_tools", bundle="text", code="def shout(s: str) -> str:\n    'Upper case.'\n    return s.upper()\n")
    assert made["bundle"] == "text" and made["version"] == 1 and made["warnings"] == []
    tool, = made["tools"]
    assert tool["name"] == "shout" and tool["bundle"] == "text" and tool["inputSchema"]["required"] == ["s"]
    assert client.data("define_tools")["tools"] == [tool]
    assert client.call("shout", s="a")["structuredContent"] == {"result": "A"}
    assert client.data("define_tools", bundle="text", remove=True) == {"bundle": "text", "removed": True, "tools": []}
    assert names(client) == SPEC_LISTED
    refused(client.call("define_tools", bundle="text", remove=True), "no bundle 'text'")


@pytest.mark.parametrize("arguments, words", [
    ({"bundle": "b", "code": "def f(:\n"}, ["line 1", "syntax error", "nothing was changed"]),
    ({"bundle": "b", "code": "x = 1"}, ["no public function"]),
    ({"bundle": "1b", "code": "def f(): pass"}, ["bundle"]),
    ({"bundle": "../b", "code": "def f(): pass"}, ["bundle"]),
    ({"bundle": "b"}, ["code is missing"]),
    ({"code": "def f(): pass"}, ["bundle"]),
    ({"bundle": "b", "code": "def run_code(): pass"}, ["'run_code' is a tool of this server"]),
    ({"bundle": "b", "code": "def f(): pass", "language": "cobol"}, ["language"]),
])
def test_what_cannot_be_defined_is_told(client, arguments, words):
    refused(client.call("define_tools", **arguments), *words)
    assert client.data("define_tools") == {"tools": []}


def test_a_broken_text_leaves_the_old_version(daemon, client):
    put(daemon, "b", "def f(): 'x'; return 1")
    assert put(daemon, "b", "def f(:", status=400)["error_code"] == "Executor.ValidationError"
    assert client.call("f")["structuredContent"] == {"result": 1}


def test_a_name_belongs_to_one_bundle(daemon, client):
    put(daemon, "one", "def f(): 'x'; return 1")
    got = put(daemon, "two", "def f(): 'x'; return 2", status=409)
    assert "defined by the bundle 'one'" in got["error_detail"]
    assert put(daemon, "two", "def f(): 'x'; return 2", prefix="two_")["tools"][0]["name"] == "two_f"
    assert client.call("two_f")["structuredContent"] == {"result": 2}


def test_functions_are_chosen(daemon):
    code = "def a(): 'x'\ndef b(): 'x'\ndef c(): 'x'\n"
    assert [t["name"] for t in put(daemon, "b", code, include=["a", "b"], exclude=["b"])["tools"]] == ["a"]
    assert [t["name"] for t in put(daemon, "b", code, exclude=["b"])["tools"]] == ["a", "c"]
    exports = "exports.a = function a() { return 1 }\nfunction b() {}\n"
    assert [t["name"] for t in put(daemon, "b", exports, language="javascript")["tools"]] == ["a"]


def test_versions_are_kept_and_restored(daemon, client):
    for number in range(1, 4):
        made = put(daemon, "b", f"def f(): 'x'; return {number}", expected_version=number - 1)
        assert made["version"] == number
    assert put(daemon, "b", "def f(): 'x'", status=409, expected_version=1)["error_code"] == "Executor.Conflict"
    first = daemon.request("GET", "/v1/tools/b?version=1&source=true").json()
    assert first["version"] == 1 and first["code"] == "def f(): 'x'; return 1"
    assert "code" not in daemon.request("GET", "/v1/tools/b").json()
    back = daemon.request("POST", "/v1/tools/b/restore", json={"version": 1})
    assert back.status == 200 and back.json()["version"] == 4 and back.json()["sha256"] == first["sha256"]
    assert client.call("f")["structuredContent"] == {"result": 1}
    for path in ("/v1/tools/b?version=99", "/v1/tools/c"):
        assert daemon.request("GET", path).status == 404
    assert daemon.request("POST", "/v1/tools/b/restore", json={"version": 99}).status == 404
    assert daemon.request("GET", "/v1/tools/b?version=x").status == 400


def test_only_so_many_versions_are_kept(daemon):
    for number in range(25):
        put(daemon, "b", f"def f(): 'x'; return {number}")
    kept = sorted(int(path.stem) for path in (daemon.state_dir / "tools" / "b").glob("*.json"))
    assert kept == list(range(6, 26))
    assert daemon.request("DELETE", "/v1/tools/b").status == 204
    assert not (daemon.state_dir / "tools" / "b").exists()
    assert daemon.request("DELETE", "/v1/tools/b").status == 404


def test_there_are_limits(make_daemon):
    daemon = make_daemon(MCP_PUBLISHED_MAX="3")
    put(daemon, "one", "def a(): 'x'\ndef b(): 'x'\n")
    assert "MCP_PUBLISHED_MAX" in put(daemon, "two", "def c(): 'x'\ndef d(): 'x'\n", status=400)["error_detail"]
    put(daemon, "one", "def a(): 'x'\ndef b(): 'x'\ndef c(): 'x'\n")
    got = put(daemon, "many", "".join(f"def f{i}(): 'x'\n" for i in range(100)), status=400)
    assert "MCP_PUBLISHED_MAX" in got["error_detail"]


def test_unknown_members_are_refused(daemon):
    got = put(daemon, "b", "def f(): 'x'", status=400, timeoutt=3)
    assert "timeoutt" in str(got["detail"]) and "timeout" in str(got["detail"])


def test_define_tools_can_be_taken_away(make_daemon):
    client = Client(make_daemon(MCP_DEFINE_TOOLS="false"), MODERN)
    assert "define_tools" not in names(client) and "call_function" in names(client)
    put(client.daemon, "b", "def f(): 'x'; return 1")
    assert client.call("f")["structuredContent"] == {"result": 1}


# ---- lists ----


def test_a_long_list_has_pages(make_daemon):
    daemon = make_daemon(MCP_PUBLISHED_MAX="200")
    client = Client(daemon, MODERN)
    for bundle in range(3):
        put(daemon, f"b{bundle}", "".join(f"def f{bundle}_{i:02}(): 'x'\n" for i in range(60)))
    pages, params = [], {}
    while True:
        got = client.ask("tools/list", params)
        pages.append([tool["name"] for tool in got["tools"]])
        if "nextCursor" not in got:
            break
        params = {"cursor": got["nextCursor"]}
    assert [len(page) for page in pages] == [100, 92]
    assert sum(pages, []) == [*SPEC_LISTED, *(f"f{b}_{i:02}" for b in range(3) for i in range(60))]


def test_a_client_may_ask_for_some_tools(daemon):
    put(daemon, "b", "def f(): 'x'\ndef g(): 'x'\n")
    assert names(Client(daemon, MODERN, path="/mcp?tools=run_code,g")) == ["run_code", "g"]


def test_listeners_hear_of_a_change(daemon):
    client = Client(daemon, MODERN)
    body = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, ident="s")
    with harness.Connection(daemon, timeout=60) as connection:
        connection.send("POST", "/mcp", json=body, headers=client.headers("subscriptions/listen"))
        answer = connection.http.getresponse()
        told = (json.loads(line[len(b"data: "):])["method"] for line in answer if line.startswith(b"data: "))
        assert next(told) == "notifications/subscriptions/acknowledged"
        put(daemon, "b", "def f(): 'x'")
        assert next(told) == "notifications/tools/list_changed"


# ---- restart ----


def test_tools_survive_a_restart(make_daemon, tmp_path):
    state = tmp_path / "state"
    first = make_daemon(STATE_DIR=str(state))
    put(first, "shapes")
    put(first, "shapes")
    put(first, "broken", "def g(): 'x'")
    listed = first.request("GET", "/v1/tools").json()
    first.stop()
    (state / "tools" / "broken" / "1.json").write_text('{"name": "broken"')
    again = make_daemon(STATE_DIR=str(state))
    now = again.request("GET", "/v1/tools").json()
    assert now["bundles"] == [bundle for bundle in listed["bundles"] if bundle["name"] == "shapes"]
    assert Client(again, MODERN).call("area", width=3)["structuredContent"] == {"area": 6, "unit": "m"}
    assert put(again, "shapes")["version"] == 3


def test_many_publish_at_once(daemon, client):
    """Each has a version of its own, and none is lost."""
    got = []
    threads = [threading.Thread(target=lambda i=i: got.append(put(daemon, "b", f"def f(): 'x'; return {i}")["version"])) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(1, 9))
    assert daemon.request("GET", "/v1/tools/b").json()["version"] == 8


def test_it_wants_the_secret(daemon):
    for method, path in (("GET", "/v1/tools"), ("PUT", "/v1/tools/b"), ("DELETE", "/v1/tools/b"), ("POST", "/v1/tools/call")):
        assert daemon.request(method, path, json={}, headers={"Authorization": "Bearer no"}).status == 401
