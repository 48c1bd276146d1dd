# SPDX-License-Identifier: MIT
"""The transport of the Model Context Protocol: eras, sessions, checks, errors."""
import json

import pytest

from mcp_client import ACCEPT, HANDSHAKE, KEY, MODERN, Client, Refused, message_of, text_of

TOOLS = ["run_code", "run_command", "manage_process", "read_file", "write_file", "edit_file", "list_files", "create_sandbox",
         "list_sandboxes", "delete_sandbox", "define_tools", "call_function"]


@pytest.fixture(params=[HANDSHAKE[0], MODERN])
def client(daemon, request):
    return Client(daemon, request.param)


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_handshake_echoes_the_version(daemon, version):
    hello = Client(daemon, version).hello
    assert hello["protocolVersion"] == version
    assert hello["capabilities"] == {"tools": {"listChanged": True}, "resources": {}}
    assert hello["serverInfo"]["name"] == "sandbox-executor"
    assert "run_code" in hello["instructions"]


def test_an_unknown_version_is_answered_with_the_newest(daemon):
    got = Client(daemon).ask("initialize", {"protocolVersion": "1999-01-01", "capabilities": {}})
    assert got["protocolVersion"] == HANDSHAKE[0]


def test_discovery_tells_all_versions(daemon):
    got = Client(daemon, MODERN).ask("server/discover")
    assert got["supportedVersions"] == [MODERN, *HANDSHAKE]
    assert got["resultType"] == "complete" and got["ttlMs"] == 60000
    assert got["_meta"][KEY + "serverInfo"]["name"] == "sandbox-executor"


def test_ping_is_of_the_handshake_era_only(daemon):
    assert Client(daemon).ask("ping") == {}
    with pytest.raises(Refused) as why:
        Client(daemon, MODERN).ask("ping")
    assert (why.value.status, why.value.code) == (404, -32601)
    with pytest.raises(Refused) as why:
        Client(daemon).ask("server/discover")
    assert (why.value.status, why.value.code) == (200, -32601)


def test_ids_are_echoed_as_they_came(client):
    for ident in ("x\u00fc", 0, 12345678901234567890, "7"):
        assert message_of(client.post("tools/list", ident=ident))["id"] == ident


def test_a_list_can_be_narrowed(daemon):
    got = Client(daemon, path="/mcp?tools=list_sandboxes,nothing").ask("tools/list")
    assert [t["name"] for t in got["tools"]] == ["list_sandboxes"]


def test_there_is_one_page(client):
    with pytest.raises(Refused) as why:
        client.ask("tools/list", {"cursor": "x"})
    assert why.value.code == -32602


def test_sandboxes_are_made_listed_and_deleted(client):
    made = client.data("create_sandbox", name="mcp-made", idle_minutes=3, env={"A": "b"})
    assert made["name"] == "mcp-made" and made["idle_minutes"] == 3
    listed = {s["sandbox"]: s for s in client.data("list_sandboxes")["sandboxes"]}
    assert listed[made["sandbox"]]["mine"] is False
    taken = client.call("create_sandbox", name="mcp-made")
    assert taken["isError"] and "[hint]" in text_of(taken)
    assert client.data("delete_sandbox", sandbox="mcp-made") == {"sandbox": "mcp-made", "deleted": True}
    gone = client.call("delete_sandbox", sandbox="mcp-made")
    assert gone["isError"] and "list_sandboxes" in text_of(gone)


@pytest.mark.parametrize("arguments, words", [
    ({"memory_mb": "much"}, "memory_mb"),
    ({"memory_mb": 1}, "memory_mb"),
    ({"nmae": "x"}, "nmae"),
    ({"name": "../x"}, "name"),
    ({"env": {"A": [1]}}, "env"),
])
def test_a_wrong_argument_names_itself(client, arguments, words):
    got = client.call("create_sandbox", **arguments)
    assert got["isError"] and words in text_of(got) and "[hint]" in text_of(got)


def test_an_unknown_tool_is_an_error_of_the_protocol(client):
    with pytest.raises(Refused) as why:
        client.call("no_such_tool")
    assert why.value.code == -32602


# ---- what is refused before a method is called ----


def raw(daemon, body, **headers):
    headers = {"Content-Type": "application/json", **ACCEPT, **headers}
    return daemon.request("POST", "/mcp", body=body if isinstance(body, bytes) else json.dumps(body).encode(), headers=headers)


@pytest.mark.parametrize("body, code", [
    (b"{", -32700),
    (b"", -32700),
    (b"\xff\xfe", -32700),
    (b"[" * 100 + b"]" * 100, -32700),
    ([], -32600),
    ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], -32600),
    ("x", -32600),
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
    ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600),
    ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600),
    ({"jsonrpc": "2.0", "id": [], "method": "ping"}, -32600),
    ({"jsonrpc": "2.0", "id": 1}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": 3}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32600),
    ({"jsonrpc": "2.0", "id": 1, "method": "x" * 1000}, -32600),
])
def test_what_is_no_message_is_refused(daemon, body, code):
    got = raw(daemon, body)
    error = json.loads(got.text)
    assert (got.status, error["error"]["code"]) == (400, code), got.text
    assert error.get("id", 1) == 1


def test_heads_are_checked_in_order(daemon):
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert raw(daemon, ping, Host="evil.example").status == 403
    assert raw(daemon, ping, Origin="https://evil.example").status == 403
    assert raw(daemon, ping, Origin="null").status == 403
    assert raw(daemon, ping, Origin="http://localhost:3000").status == 400  # it is admitted, and lacks a session
    assert raw(daemon, ping, Authorization="Bearer wrong").status == 401
    assert raw(daemon, ping, **{"Content-Type": "text/plain"}).status == 415
    assert raw(daemon, ping, **{"Content-Type": "application/json; charset=utf-8"}).status == 400
    assert raw(daemon, ping, Accept="image/png").status == 406
    got = daemon.request("PUT", "/mcp", body=b"{}")
    assert got.status == 405 and "POST" in got.headers["allow"]


def test_clients_that_look_for_an_authorization_server_get_json(daemon):
    for name in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server", "openid-configuration"):
        got = daemon.request("GET", "/.well-known/" + name)
        assert got.status == 404 and got.json()


def test_a_modern_request_must_mirror_its_body(daemon):
    client = Client(daemon, MODERN)
    for header, value in (("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list"), ("Mcp-Name", "other")):
        got = client.post("tools/call", {"name": "list_sandboxes"}, headers={header: value})
        assert got.status == 400 and message_of(got)["error"]["code"] == -32020, header
    encoded = client.post("tools/call", {"name": "list_sandboxes"}, headers={"Mcp-Name": "=?base64?bGlzdF9zYW5kYm94ZXM=?="})
    assert encoded.status == 200


def test_a_modern_request_must_be_whole(daemon):
    client = Client(daemon, MODERN)
    got = client.post("tools/list", {"_meta": {KEY + "protocolVersion": "2099-01-01"}}, headers={"MCP-Protocol-Version": "2099-01-01"})
    error = message_of(got)["error"]
    assert (got.status, error["code"]) == (400, -32022)
    assert error["data"] == {"supported": [MODERN, *HANDSHAKE], "requested": "2099-01-01"}
    got = client.post("tools/list", {"_meta": {KEY + "clientCapabilities": None}})
    assert (got.status, message_of(got)["error"]["code"]) == (400, -32602)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    got = raw(daemon, body, **{"MCP-Protocol-Version": MODERN})
    assert (got.status, message_of(got)["error"]["code"]) == (400, -32602)


# ---- sessions ----


def test_a_session_must_be_named_and_known(daemon):
    client = Client(daemon)
    known = client.session
    for session, status in ((None, 400), ("s1.20251125." + "0" * 32 + "." + "0" * 32, 404), (known[:-1] + ("0" if known[-1] != "0" else "1"), 404), ("x", 404)):
        client.session = session
        assert client.post("ping").status == status
    client.session = known
    assert client.post("ping", headers={"MCP-Protocol-Version": "1999-01-01"}).status == 400


def test_a_deleted_session_is_gone(daemon):
    client = Client(daemon)
    head = {"Mcp-Session-Id": client.session}
    assert daemon.request("DELETE", "/mcp").status == 400
    assert daemon.request("DELETE", "/mcp", headers=head).status == 204
    assert daemon.request("DELETE", "/mcp", headers=head).status == 404
    assert client.post("ping").status == 404


def test_a_session_is_known_after_a_restart(make_daemon, tmp_path):
    state = tmp_path / "state"
    daemon = make_daemon(STATE_DIR=str(state), SANDBOX_SECRET="kept-secret")
    client = Client(daemon)
    daemon.stop()
    client.daemon = make_daemon(STATE_DIR=str(state), SANDBOX_SECRET="kept-secret")
    assert client.ask("ping") == {}
    got = client.call("list_sandboxes")
    assert text_of(got).startswith("[the sandbox of this session was lost")
    assert not text_of(client.call("list_sandboxes")).startswith("[the sandbox")


def test_the_session_that_was_idle_for_the_longest_time_gives_way(make_daemon):
    daemon = make_daemon(MCP_SESSIONS_MAX="2")
    first, second = Client(daemon), Client(daemon)
    assert first.ask("ping") == {}
    Client(daemon)
    assert first.ask("ping") == {}
    assert second.ask("ping") == {}  # revived: its id is good


def test_get_needs_a_session(daemon):
    got = daemon.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
    assert got.status == 405 and got.headers["allow"] == "POST"


def test_it_can_be_switched_off(make_daemon):
    daemon = make_daemon(MCP="false")
    assert raw(daemon, {"jsonrpc": "2.0", "id": 1, "method": "initialize"}).status == 404
