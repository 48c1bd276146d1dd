# SPDX-License-Identifier: MIT
"""Rules that all tools of the Model Context Protocol keep: schemas, results, pictures, cancellation."""
import base64
import json
import re

import pytest

import harness
from mcp_client import HANDSHAKE, MODERN, Client, text_of
from test_mcp_tools import needs_ipython, png

FORBIDDEN = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$defs", "patternProperties", "x-mcp-header"}


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    yield made
    assert daemon.request("DELETE", "/mcp?linger=0", headers={"Mcp-Session-Id": made.session}).status == 204


def walk(value):
    yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(below)


def test_schemas_are_understood_everywhere(client):
    """No composition, one type for each property, names that every client takes."""
    tools = client.ask("tools/list")["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        assert schema["type"] == "object", tool["name"]
        for each in walk(schema):
            assert not isinstance(each, dict) or not FORBIDDEN & each.keys(), tool["name"]
        for name, one in schema.get("properties", {}).items():
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), (tool["name"], name)
            assert isinstance(one["type"], str) and one["description"], (tool["name"], name)
        assert len(tool["description"].encode()) <= 600, tool["name"]
    assert len(json.dumps(tools)) <= 24000
    assert len(client.hello["instructions"].encode()) <= 2048


def test_lists_are_the_same_in_both_eras_and_each_time(daemon, client):
    modern = Client(daemon, MODERN)
    assert client.ask("tools/list")["tools"] == modern.ask("tools/list")["tools"] == modern.ask("tools/list")["tools"]


def test_tools_that_may_show_more_than_text_promise_no_data(client):
    shapes = {t["name"]: "outputSchema" in t for t in client.ask("tools/list")["tools"]}
    for name in ("run_code", "run_command", "read_file", "call_function"):
        assert not shapes[name], name
    for name in ("write_file", "list_files", "create_sandbox", "list_sandboxes"):
        assert shapes[name], name


def test_each_channel_of_a_result_is_complete(client):
    got = client.call("run_command", command="echo out; echo err >&2; exit 3")
    text, data = text_of(got), got["structuredContent"]
    for word in ("out", "err", "3", data["sandbox"]):
        assert word in text and word in json.dumps(data)
    assert "structuredContent" not in text and "content" not in data


def test_at_most_four_pictures_are_shown_and_none_that_is_too_large(client):
    small = base64.b64encode(png(2, 2)).decode()
    got = client.call("run_command", command=f"for i in 1 2 3 4 5 6; do echo {small} | base64 -d >$i.png; done; "
                                             f"(echo {small} | base64 -d; head -c 4000000 /dev/zero) >0large.png")
    shown = [b for b in got["content"] if b["type"] == "image"]
    assert len(shown) == 4 and all(b["data"] == small for b in shown) and "structuredContent" not in got
    for name in ("0large.png (", "1.png (", "6.png ("):
        assert name in text_of(got)


def test_what_is_no_picture_or_too_wide_is_listed_only(client):
    wide = base64.b64encode(png(8001, 1)).decode()
    got = client.call("run_command", command=f"echo nothing >text.png; echo {wide} | base64 -d >wide.png; : >empty.gif")
    assert [b["type"] for b in got["content"]] == ["text"]
    assert {f["path"] for f in got["structuredContent"]["files"]} == {"text.png", "wide.png", "empty.gif"}


def test_a_cancelled_command_takes_everything_it_started_with_it(daemon, client):
    """Also what has left its session and its parent."""
    mark = harness.marker()
    place = client.data("write_file", path="x", content="")["sandbox"]
    command = f"setsid sh -c 'exec -a {mark} sleep 600' & (sh -c 'exec -a {mark} sleep 600' &) ; touch begun; wait; sleep 600"
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_command", "arguments": {
            "command": command.replace("sh -c", "bash -c"), "timeout_seconds": 600}}, ident="c"), headers=client.headers("tools/call"))
        harness.wait_until(lambda: not client.call("read_file", path="begun")["isError"], "it has not begun")
        harness.wait_until(lambda: len(harness.processes_with(mark)) == 2, "the two have not begun")
        assert client.notify("notifications/cancelled", {"requestId": "c"}).status == 202
        harness.wait_until(lambda: not harness.processes_with(mark), "something lives")
    assert client.data("list_files", sandbox=place)["entries"]


@pytest.mark.parametrize("language, begin, loop", [
    ("javascript", "require('fs').writeFileSync('begun', '')", "for (;;);"),
    pytest.param("python", "open('begun', 'w').close()", "while True: pass", marks=needs_ipython),
])
def test_a_cancelled_cell_stops_and_the_sandbox_stays(daemon, client, language, begin, loop):
    client.data("run_code", code="x = 6", language=language)
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_code", "arguments": {
            "code": f"{begin}\n{loop}", "language": language, "timeout_seconds": 600}}, ident="c"), headers=client.headers("tools/call"))
        harness.wait_until(lambda: not client.call("read_file", path="begun")["isError"], "it has not begun")
        assert client.notify("notifications/cancelled", {"requestId": "c"}).status == 202
        assert client.data("run_code", code="1 + 1", language=language)["result"] == 2
        assert "result" not in line.receive().text
    assert text_of(client.call("read_file", path="begun")) is not None


@pytest.mark.parametrize("era", [HANDSHAKE[0], MODERN])
def test_data_may_be_left_out_of_runs(make_daemon, era):
    client = Client(make_daemon(MCP_STRUCTURED="never"), era)
    got = client.call("run_command", command="echo out")
    assert "structuredContent" not in got and text_of(got).startswith("out\n[success after ")
    assert client.call("list_sandboxes")["structuredContent"]["sandboxes"]  # its schema promises it
