# SPDX-License-Identifier: MIT
"""What clients of the Model Context Protocol may use up, what they may see of each other, and what is told of them."""
import contextlib
import json
import re

import pytest

import harness
from mcp_client import ACCEPT, HANDSHAKE, MODERN, Client, Refused, events_of, message_of, text_of

WAIT = "while ! test -e go; do sleep 0.05; done; echo went"


def end(client):
    return client.daemon.request("DELETE", "/mcp?linger=0", headers={"Mcp-Session-Id": client.session}).status


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    yield made
    assert end(made) in (204, 404)


def samples(daemon, name):
    """Labels as text to value."""
    found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", daemon.request("GET", "/metrics").text, re.M)
    return {labels: float(value) for labels, value in found}


def follow(line, client, **headers):
    """A GET for notifications, whose head has come."""
    line.send("GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": client.session, **headers})
    answer = line.http.getresponse()
    assert answer.status == 200, answer.read()
    return answer


# ---- limits ----


def test_a_session_has_at_most_64_requests_at_once(daemon, client):
    place = client.data("write_file", path="x", content="")["sandbox"]
    with contextlib.ExitStack() as all_lines:
        lines = []
        for n in range(64):
            line = all_lines.enter_context(daemon.connect())
            line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_command", "arguments": {"command": WAIT}}, ident=n),
                      headers=client.headers("tools/call"))
            lines.append(line)
        refusal = harness.wait_until(lambda: message_of(client.post("ping")).get("error"), "the 65th is not refused")
        assert refusal["code"] == -32600 and "64" in refusal["message"]
        Client(daemon, MODERN).data("write_file", path="go", content="", sandbox=place)
        for line in lines:
            assert message_of(line.receive())["result"]["structuredContent"]["stdout"] == "went\n"
    assert client.ask("ping") == {}


def test_an_idle_session_ends_and_its_workspace_with_it(make_daemon):
    daemon = make_daemon(MCP_SESSION_IDLE="1", MCP_LINGER="1")
    client = Client(daemon)
    place = client.data("write_file", path="x", content="")["sandbox"]
    assert samples(daemon, "mcp_sessions")[""] == 1
    harness.wait_until(lambda: samples(daemon, "mcp_sessions")[""] == 0, "the session is there")
    harness.wait_until(lambda: daemon.request("GET", f"/v1/sandboxes/{place}").status == 404, "its workspace is there")


def test_a_session_with_a_stream_is_not_idle(make_daemon):
    daemon = make_daemon(MCP_SESSION_IDLE="1")
    client, other = Client(daemon), Client(daemon)
    with daemon.connect() as line:
        follow(line, client)
        assert samples(daemon, "mcp_streams")[""] == 1
        harness.wait_until(lambda: samples(daemon, "mcp_sessions")[""] == 1, "two sessions are there")
    assert other.session != client.session
    harness.wait_until(lambda: samples(daemon, "mcp_sessions")[""] == 0, "it is there after its stream")


def test_a_session_has_at_most_four_streams(daemon, client):
    with contextlib.ExitStack() as all_lines:
        answers = [follow(all_lines.enter_context(daemon.connect()), client) for _ in range(5)]
        assert answers[0].read().endswith(b":\n\n")  # ended: the oldest gave way


def test_the_workspace_of_a_session_lingers_for_who_names_it(make_daemon):
    daemon = make_daemon(MCP_LINGER="1")
    ended, named = Client(daemon), Client(daemon)
    gone = ended.data("write_file", path="x", content="")["sandbox"]
    kept = named.data("write_file", path="x", content="kept")["sandbox"]
    modern = Client(daemon, MODERN)
    for one in (ended, named):
        assert daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": one.session}).status == 204
    assert text_of(modern.call("read_file", path="x", sandbox=kept)) == "kept"
    harness.wait_until(lambda: daemon.request("GET", f"/v1/sandboxes/{gone}").status == 404, "it is there")
    assert text_of(modern.call("read_file", path="x", sandbox=kept)) == "kept"


def test_an_orphan_goes_sooner_than_a_sandbox_that_was_named(make_daemon):
    daemon = make_daemon(MCP_ORPHAN="1")
    client = Client(daemon, MODERN)
    orphan = client.data("run_command", command="true")["sandbox"]
    named = client.data("run_command", command="true")["sandbox"]
    client.data("run_command", command="true", sandbox=named)
    there = lambda: [s["id"] for s in daemon.request("GET", "/v1/sandboxes").json()["sandboxes"]]  # noqa: E731
    harness.wait_until(lambda: orphan not in there(), "the orphan is there")
    assert named in there()


def test_a_large_body_is_refused_in_the_words_of_the_protocol(make_daemon):
    daemon = make_daemon(BODY_MAX_MCP="4096")
    got = daemon.request("POST", "/mcp", body=b"x" * 100000, headers={"Content-Type": "application/json", **ACCEPT})
    assert got.status == 413
    error = got.json()
    assert error["error"]["code"] == -32600 and "id" not in error


# ---- hostile clients ----


def test_a_client_that_is_slow_holds_up_nobody(daemon, client):
    """Bodies that never come, heads that never end, and one that leaves in the middle."""
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {daemon.secret}\r\nContent-Type: application/json\r\n"
    with contextlib.ExitStack() as open_ones:
        for text in (head, head + "Content-Length: 1000\r\n\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":"):
            for _ in range(8):
                open_ones.enter_context(daemon.socket()).sendall(text.encode())
        assert client.ask("ping") == {}
    with daemon.socket() as gone:
        gone.sendall((head + "Content-Length: 100000\r\n\r\n{").encode())
    assert client.ask("ping") == {}


def test_a_reader_that_is_slow_gets_its_answer(daemon, client):
    """Progress may be lost on the way, the response never."""
    params = {"name": "run_command", "arguments": {"command": "head -c 3000000 /dev/zero | tr '\\0' x; sleep 1.2"}, "_meta": {"progressToken": 1}}
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", params), headers=client.headers("tools/call"))
        harness.wait_until(lambda: samples(daemon, 'mcp_requests_total').get('method="tools/call",era="handshake",outcome="ok"'), "it has ended")
        assert events_of(line.receive().text)[-1]["result"]["structuredContent"]["truncated"][0]["characters"] == 3000000


@pytest.mark.parametrize("era", [HANDSHAKE[0], MODERN])
def test_numbers_and_depths_of_all_kinds_are_answered(daemon, era):
    client = Client(daemon, era)
    for arguments in ({"code": "1", "timeout_seconds": 10 ** 30}, {"code": "1", "timeout_seconds": -1}, {"code": "1", "timeout_seconds": 0.5},
                      {"code": None}, {"code": 1}, {"code": "1", "language": "cobol"}, {"code": "1", "sandbox": "../../etc"},
                      {"code": "1", "sandbox": "x" * 100000}, {"code": "1", "x\0": 1}, {"path": []}):
        got = client.call("run_code", **arguments)
        assert got["isError"] and "[hint]" in text_of(got), arguments
    deep = json.loads("[" * 40 + "]" * 40)
    assert client.call("run_code", code="1", allow_tools=deep)["isError"]


def test_a_flood_of_sessions_is_bounded(make_daemon):
    daemon = make_daemon(MCP_SESSIONS_MAX="10")
    for _ in range(50):
        Client(daemon)
    assert samples(daemon, "mcp_sessions")[""] == 10


# ---- two clients ----


def test_sessions_do_not_cancel_each_other(daemon, client):
    other = Client(daemon)
    with daemon.connect() as line:
        client.data("write_file", path="x", content="")
        line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_command", "arguments": {"command": "touch begun; " + WAIT}},
                                                      ident="same"), headers=client.headers("tools/call"))
        harness.wait_until(lambda: not client.call("read_file", path="begun")["isError"], "it has not begun")
        assert other.notify("notifications/cancelled", {"requestId": "same"}).status == 202
        assert end(other) == 204
        client.data("write_file", path="go", content="")
        assert message_of(line.receive())["result"]["structuredContent"]["stdout"] == "went\n"


def test_a_handshake_client_that_leaves_cancels_nothing(daemon, client):
    client.data("write_file", path="x", content="")
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_command", "arguments": {"command": "touch begun; " + WAIT + " >out"}}),
                  headers=client.headers("tools/call"))
        harness.wait_until(lambda: not client.call("read_file", path="begun")["isError"], "it has not begun")
    client.data("write_file", path="go", content="")
    harness.wait_until(lambda: text_of(client.call("read_file", path="out")) == "went", "it was ended")


def test_a_session_is_of_one_secret(make_daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("first-secret")
    secret.chmod(0o644)
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=str(secret))
    daemon.secret = "first-secret"
    client = Client(daemon)
    secret.write_text("second-secret")
    daemon.process.send_signal(1)
    assert daemon.wait_record(event_type="reloaded")
    assert client.ask("ping") == {}  # the first one is good for SANDBOX_SECRET_OVERLAP
    daemon.secret = "second-secret"
    assert client.post("ping").status == 404


def test_a_session_alone_opens_nothing(daemon, client):
    for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("POST", f"/mcp?token={daemon.secret}")):
        got = daemon.request(method, path, json=client.message("ping") if method == "POST" else None,
                             headers={**client.headers(), "Authorization": None})
        assert got.status == 401, (method, path)
        assert got.headers["www-authenticate"] == 'Bearer realm="sandbox-executor"'
        got = daemon.request(method, path, headers={**client.headers(), "Authorization": "Bearer wrong"})
        assert got.status == 401 and got.headers["www-authenticate"].endswith(', error="invalid_token"')


# ---- web pages ----


def test_pages_of_allowed_origins_may_call_it(make_daemon):
    daemon = make_daemon(MCP_ORIGINS="https://app.example", MCP_HOSTS="inside.example")
    for origin, good in (("https://app.example", True), ("http://localhost:3000", True), ("https://inside.example", True),
                         ("https://evil.example", False), ("https://app.example.evil.example", False), ("null", False), ("file://", False)):
        got = daemon.request("OPTIONS", "/mcp", headers={"Origin": origin, "Authorization": None})
        assert got.status == (204 if good else 403), origin
        assert got.headers["access-control-allow-origin"] == (origin if good else None)
        if good:
            assert "Mcp-Session-Id" in got.headers["access-control-expose-headers"]
    for host, status in (("inside.example", 400), ("inside.example:81", 400), ("127.0.0.1:1", 400), ("[::1]", 400), ("evil.example", 403)):
        got = daemon.request("POST", "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"Host": host})
        assert got.status == status, host


# ---- what is told ----


def test_requests_and_tools_are_counted(make_daemon):
    daemon = make_daemon()
    client, modern = Client(daemon), Client(daemon, MODERN)
    client.data("run_command", command="true")
    client.call("read_file", path="nothing")
    with pytest.raises(Refused):
        modern.ask("no/such/method")
    modern.ask("tools/list")
    counted = samples(daemon, "mcp_requests_total")
    assert counted['method="initialize",era="handshake",outcome="ok"'] == 1
    assert counted['method="tools/call",era="handshake",outcome="ok"'] == 1
    assert counted['method="tools/call",era="handshake",outcome="tool_error"'] == 1
    assert counted['method="other",era="modern",outcome="error"'] == 1
    assert counted['method="tools/list",era="modern",outcome="ok"'] == 1
    assert samples(daemon, "mcp_sessions")[""] == 1
    assert samples(daemon, "mcp_tool_seconds_count") == {'tool="run_command"': 1, 'tool="read_file"': 1}


def test_a_call_is_logged_without_its_arguments(make_daemon):
    daemon = make_daemon(LOG_LEVEL="debug")
    client = Client(daemon)
    mark = harness.marker()
    client.data("run_command", command=f"echo {mark}", env={"A": mark})
    client.call("write_file", path=mark, content=mark)
    record = daemon.wait_record(event_type="tool_called", tool="run_command")
    assert record["era"] == "handshake" and record["outcome"] == "ok" and record["ms"] >= 0 and record["run"].startswith("run_")
    assert daemon.wait_record(event_type="tool_called", tool="write_file")
    assert mark not in daemon.log_text()
