# SPDX-License-Identifier: MIT
"""HTTP endpoints of others as tools of code: requests, secrets, addresses, and endpoints that are slow or too large."""
import http.server
import importlib.util
import json
import os
import pathlib
import tempfile
import threading

import pytest

import harness
from mcp_client import Client, text_of

pytestmark = pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")

SECRET, OTHER = "upstream-secret-71c2", "file-secret-93ab"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        if self.path.startswith("/slow"):
            self.server.stopping.wait(120)
        elif self.path.startswith("/large"):
            self.answer(200, b'"' + b"x" * (2 << 20) + b'"')
        elif self.path.startswith("/moved"):
            self.answer(302, b"", Location=f"http://127.0.0.1:{self.server.server_port}/inside")
        elif self.path.startswith("/broken"):
            self.answer(500, b"it broke")
        elif self.path.startswith("/text"):
            self.answer(200, "plain \u00fc\n".encode(), "text/plain")
        else:
            self.answer(200, json.dumps({"path": self.path, "method": self.command, "body": body}).encode())

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = serve


@pytest.fixture(scope="module")
def server():
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    made.seen, made.stopping = [], threading.Event()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.stopping.set()
    made.shutdown()
    thread.join()
    made.server_close()


def tool(name, path, properties=None, required=(), **more):
    return {"name": name, "path": path, "description": f"Does {name}.", **more,
            "inputSchema": {"type": "object", "properties": properties or {}, "required": list(required)}}


TEXT = {"type": "string"}
TOOLS = [
    tool("forecast", "/v1/{city}/days", {"city": TEXT, "days": {"type": "integer"}}, ["city"], query=["days"]),
    tool("create", "/v1/items/{id}", {"id": {"type": "integer"}, "name": TEXT, "dry": {"type": "boolean"}}, ["id"], method="POST", query=["dry"]),
    tool("slow", "/slow"), tool("large", "/large"), tool("moved", "/moved"), tool("broken", "/broken"), tool("text", "/text"),
]


@pytest.fixture(scope="module")
def directories():
    """Of files that the daemon can read, whatever user it becomes."""
    with tempfile.TemporaryDirectory(prefix="sbx-test-") as top:
        def make():
            made = pathlib.Path(tempfile.mkdtemp(dir=top))
            for path in (top, made):
                os.chmod(path, 0o755)
            return made
        yield make


def configure(directory, server, **more):
    secret = directory / "secret"
    secret.write_text(OTHER + "\n")
    path = directory / "upstreams.json"
    one = {"name": "weather", "type": "http", "base": f"http://127.0.0.1:{server.server_port}", "private": True, "timeout": 2,
           "headers": {"X-Key": "key ${env:UPSTREAM_SECRET}", "X-Other": f"${{file:{secret}}}"}, "tools": TOOLS, **more}
    path.write_text(json.dumps({"upstreams": [one]}))
    return str(path)


@pytest.fixture(scope="module")
def daemon(make_daemon_module, server, directories):
    return make_daemon_module(MCP_UPSTREAMS=configure(directories(), server), UPSTREAM_SECRET=SECRET)


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    yield made
    assert daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": made.session}).status == 204


def value(client, code, allow=("weather.*",), **more):
    got = client.call("run_code", code="from sbx import tools, ToolError\n" + code, allow_tools=list(allow), **more)
    assert not got["isError"], text_of(got)
    return got["structuredContent"].get("result")


def failure(client, call):
    return value(client, f"try: said = {call}\nexcept ToolError as e: said = [e.type, e.message]\nsaid", timeout_seconds=60)


def test_code_calls_an_endpoint(client, server):
    assert value(client, "tools.weather.forecast(city='K\u00f6ln/../x?', days=3)") == {
        "path": "/v1/K%C3%B6ln%2F%2E%2E%2Fx%3F/days?days=3", "method": "GET", "body": ""}
    got = value(client, "tools.call('weather.create', {'id': 7, 'name': 'a\"b', 'dry': True})")
    assert got["path"] == "/v1/items/7?dry=true" and got["method"] == "POST" and json.loads(got["body"]) == {"name": 'a"b'}
    assert value(client, "[tools.weather.text()]") == ["plain \u00fc\n"]
    seen = server.seen[-1][2]
    assert seen["X-Key"] == f"key {SECRET}" and seen["X-Other"] == OTHER and "Authorization" not in seen


def test_credentials_stay_in_the_daemon(daemon, client):
    value(client, "tools.weather.forecast(city='x')")
    found = value(client, '''
import os, glob
text = str(dict(os.environ)) + str(tools.search())
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + glob.glob("/workspace/*"):
    try: text += open(path, "rb").read().decode("latin-1")
    except OSError: pass
[word in text for word in ("upstream-" + "secret", "file-" + "secret")]
''')
    assert found == [False, False]
    for path in ("/info", "/v1/capabilities", "/v1/tools", "/openapi.json", "/metrics"):
        assert SECRET not in daemon.request("GET", path).text and OTHER not in daemon.request("GET", path).text
    assert SECRET not in daemon.log_text() and OTHER not in daemon.log_text()


def test_endpoints_are_found_and_allowed_by_name(client):
    found = value(client, "tools.search('forecast')")
    assert found == [{"name": "weather.forecast", "description": "Does forecast. (upstream weather)",
                      "signature": "weather.forecast(city: string, days?: integer)"}]
    got = client.call("run_code", code="1", allow_tools=["weather.nothing"])
    assert got["isError"] and "there is no tool 'weather.nothing'" in text_of(got)
    assert value(client, "try: tools.weather.create(id=1)\nexcept ToolError as e: said = [e.type]\nsaid",
                 allow=["weather.forecast"]) == ["NotAllowed"]


def test_code_is_said_to_reach_others(client):
    hints = {tool["name"]: tool["annotations"]["openWorldHint"] for tool in client.ask("tools/list")["tools"]}
    assert [name for name, hint in hints.items() if hint] == ["run_code"]


@pytest.mark.parametrize("call, kind, words", [
    ("tools.weather.broken()", "UpstreamError", "status 500: it broke"),
    ("tools.weather.moved()", "UpstreamError", "status 302"),
    ("tools.weather.large()", "Budget", "larger than 1 MiB"),
    ("tools.weather.slow()", "UpstreamError", "imeout"),
    ("tools.weather.forecast()", "TypeError", "\"city\" is missing"),
    ("tools.weather.forecast(city=['x'])", "TypeError", "in the address"),
    ("tools.weather.forecast(city='x' * 5000)", "TypeError", "in the address"),
    ("tools.weather.forecast(city='x', host='evil')", "TypeError", "no argument"),
    ("tools.weather.forecast(city='\\0')", None, "%00"),
])
def test_what_an_endpoint_may_not_do(client, server, call, kind, words):
    before = len(server.seen)
    said = failure(client, call)
    assert words in str(said) and (kind is None or said[0] == kind), said
    assert not any(path == "/inside" for _, path, _, _ in server.seen[before:])


def test_a_cancelled_run_leaves_its_endpoint(client):
    got = client.call("run_code", code="from sbx import tools\ntools.weather.slow()", allow_tools=["weather.slow"], timeout_seconds=1)
    assert got["structuredContent"]["status"] == "timeout" and got["structuredContent"]["tool_calls"][0]["ok"] is False


def test_call_function_calls_it(client):
    got = client.ask("tools/call", {"name": "call_function", "arguments": {"tool": "weather.forecast", "arguments": {"city": "x"}}})
    assert got["structuredContent"]["result"]["path"] == "/v1/x/days" and json.loads(text_of(got)) == got["structuredContent"]["result"]
    got = client.ask("tools/call", {"name": "call_function", "arguments": {"tool": "weather.broken", "arguments": {}}})
    assert got["isError"] and "it broke" in text_of(got)


def test_private_addresses_are_refused_unless_they_are_meant(make_daemon, server, directories):
    daemon = make_daemon(MCP_UPSTREAMS=configure(directories(), server, private=False), UPSTREAM_SECRET=SECRET)
    before = len(server.seen)
    said = failure(Client(daemon), "tools.weather.forecast(city='x')")
    assert said == ["UpstreamError", "weather.forecast: its address is not allowed"]
    assert len(server.seen) == before


def test_a_rate_is_kept(make_daemon, server, directories):
    daemon = make_daemon(MCP_UPSTREAMS=configure(directories(), server, rate="2/min"), UPSTREAM_SECRET=SECRET)
    client = Client(daemon)
    assert value(client, '''
said = []
for _ in range(4):
    try: said.append(tools.weather.text())
    except ToolError as e: said.append(e.type)
said
''') == ["plain \u00fc\n"] * 2 + ["Busy"] * 2


@pytest.mark.parametrize("change, words", [
    ({"type": "mcp"}, "type"), ({"base": "ftp://x"}, "base"), ({"base": "http://user:pw@x"}, "base"), ({"name": "a b"}, "name"),
    ({"headers": {"X": "${env:NOT_THERE_AT_ALL}"}}, "NOT_THERE_AT_ALL"), ({"headers": {"X": "a\nb"}}, "header 'X'"),
    ({"rate": "many"}, "rate"), ({"tools": [tool("x", "y")]}, "slash"), ({"tools": [tool("x", "/", method="TRACE")]}, "method"),
    ({"unknown": 1}, "unknown"),
])
def test_a_wrong_file_is_refused_at_the_start(server, directories, change, words):
    path = configure(directories(), server, **change)
    with pytest.raises(harness.StartFailed) as failed:
        harness.start_daemon(MCP_UPSTREAMS=path, UPSTREAM_SECRET=SECRET)
    assert "MCP_UPSTREAMS" in failed.value.stderr and words in failed.value.stderr
    assert SECRET not in failed.value.stderr
