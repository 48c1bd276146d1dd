# SPDX-License-Identifier: MIT
"""The calls of the two SDKs of the sandbox family, in the order and with the habits they have, below their prefix."""
import base64
import http.client
import json
import shlex

import harness
import pytest

PREFIX = "/koyeb-sandbox"
PROCESS_KEYS = {"id", "command", "status", "pid", "exit_code", "started_at", "completed_at"}


class PythonClient:
    """Pooled keep-alive connections, a content type on everything, raw UTF-8, events by lines of text."""

    def __init__(self, daemon):
        self.http = http.client.HTTPConnection(daemon.host, daemon.port, timeout=30)
        self.headers = {"Authorization": "Bearer " + daemon.secret, "Content-Type": "application/json",
                        "Accept": "*/*", "Accept-Encoding": "gzip, deflate", "X-Routing-Key": "somewhere"}

    def send(self, method, verb, body=None):
        data = None if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        self.http.request(method, PREFIX + verb, body=data, headers=self.headers)
        return self.http.getresponse()

    def ask(self, method, verb, body=None, status=200):
        response = self.send(method, verb, body)
        text = response.read()
        assert response.status == status, text
        return json.loads(text)

    def post(self, verb, **body):
        return self.ask("POST", verb, body)

    def events(self, verb, **body):
        """What is after "data:", from text that was split as str.splitlines() does."""
        response = self.send("POST", verb, body)
        lines = response.read().decode().splitlines()
        return [json.loads(line[5:].strip()) for line in lines if line.startswith("data:")]


@pytest.fixture
def python(daemon):
    client = PythonClient(daemon)
    client.post("/run", cmd="rm -rf /workspace/sdk; mkdir /workspace/sdk")
    yield client
    client.http.close()


def test_health(daemon, python):
    assert python.ask("GET", "/health")["status"] in ("ok", "healthy", "ready")
    for method in ("GET", "POST", "PUT"):
        r = daemon.request(method, PREFIX + "/health", headers={"Authorization": None}, body=b"" if method != "GET" else None)
        assert (r.status, r.body) == (200, b'{"status":"ok"}')
        assert r.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_what_is_not_there_is_said_in_the_original_s_words(daemon):
    for path in (PREFIX + "/nothing", PREFIX + "/run/", PREFIX + "/"):
        r = daemon.request("GET", path, headers={"Authorization": None})
        assert (r.status, r.text) == (404, "404 page not found\n")
        assert r.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert r.headers["X-Content-Type-Options"] == "nosniff"


def test_commands(python):
    assert python.post("/run", cmd="echo grün; exit 3", cwd="/workspace/sdk", env={"A": "ü"}) == {
        "stdout": "grün\n", "stderr": "", "error": "Non-zero exit code", "code": 3}
    found = python.events("/run_streaming", cmd="printf 'a\\342\\200\\250b\\302\\205c\\n'; echo err >&2")
    assert {"data": "a\u2028b\u0085c", "stream": "stdout"} in found, "no line of the event is broken in two"
    assert found[-1] == {"code": 0, "error": False}


def test_the_streams_head_is_the_original_s(python):
    response = python.send("POST", "/run_streaming", {"cmd": "true"})
    head = {name: response.headers[name] for name in ("Content-Type", "Cache-Control", "Connection")}
    assert head == {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "Connection": "keep-alive"}
    response.read()
    assert python.post("/run", cmd="echo same connection")["stdout"] == "same connection\n"


def test_files_and_directories(python):
    top = "/workspace/sdk"
    assert python.post("/make_dir", path=f"{top}/a/b")["success"]
    assert python.post("/write_file", path=f"{top}/a/t", content="täxt\n")["success"]
    binary = bytes(range(256)) * 20
    assert python.post("/write_file", path=f"{top}/bin", content=base64.b64encode(binary).decode())["success"]
    assert base64.b64decode(python.post("/read_file", path=f"{top}/bin")["content"]) == binary
    assert python.post("/read_file", path=f"{top}/a/t")["content"] == "täxt\n"
    assert python.post("/list_dir", path=top)["entries"] == ["a", "bin"]
    for old, new in (("a/t", "moved"), ("bin", "a/bin")):
        cmd = f"mv {shlex.quote(f'{top}/{old}')} {shlex.quote(f'{top}/{new}')}"
        assert python.post("/run", cmd=cmd)["code"] == 0
    assert python.post("/run", cmd=f"test -f {top}/moved")["code"] == 0
    assert python.post("/run", cmd=f"test -d {top}/moved")["code"] == 1
    assert python.post("/delete_file", path=f"{top}/moved")["success"]
    assert "no such file" in python.post("/read_file", path=f"{top}/moved")["error"]
    assert "not empty" in python.post("/delete_file", path=f"{top}/a")["error"]
    assert python.post("/delete_dir", path=f"{top}/a")["success"]
    assert python.post("/list_dir", path=top)["entries"] == []


def test_processes(python):
    started = python.ask("POST", "/start_process", {"cmd": "sleep 600"}, status=201)
    listed = python.ask("GET", "/list_processes")["processes"]
    assert all(set(item) <= PROCESS_KEYS for item in listed), "any other key is a TypeError there"
    assert next(p for p in listed if p["id"] == started["id"])["status"] == "running"
    assert python.post("/kill_process", id=started["id"])["success"]

    def status():
        return next(p["status"] for p in python.ask("GET", "/list_processes")["processes"] if p["id"] == started["id"])
    harness.wait_until(lambda: status() == "killed", "it is killed")
    refused = python.ask("POST", "/kill_process", {"id": started["id"]}, status=400)
    assert refused == {"success": False, "error": "process is not running (status: killed)"}


def test_expose_port_is_unbind_then_bind(make_daemon):
    python = PythonClient(make_daemon())
    for port in ("8080", "9090"):
        assert python.post("/unbind_port", port=port)["success"], "a port that was not bound is no failure"
        assert python.post("/bind_port", port=port) == {
            "message": "Port binding configured", "port": port, "success": True}
    assert python.ask("POST", "/bind_port", {"port": "1"}, status=409)["current_port"] == "9090"
    assert python.post("/unbind_port", port="1")["success"]


# ---- the other one ----


def fetch(daemon, method, verb, body=None):
    """JSON only when the type says so; anything but 2xx is an error with the text."""
    headers = {"Content-Type": "application/json" if body is not None else None, "Accept-Language": "*"}
    r = daemon.request(method, PREFIX + verb, json=body, headers=headers)
    value = r.json() if r.headers["Content-Type"].startswith("application/json") else r.text
    return r.status, value


def test_javascript_calls(daemon):
    assert fetch(daemon, "POST", "/run", {"cmd": "echo hi"}) == (200, {"stdout": "hi\n", "stderr": "", "code": 0})
    assert fetch(daemon, "POST", "/make_dir", {"path": "/workspace/js/x", "recursive": True}) == (200, {"success": True})
    assert fetch(daemon, "POST", "/list_dir", {"path": "/workspace/js/x"}) == (200, {"entries": []})
    assert fetch(daemon, "POST", "/write_file", {"path": "/workspace/js/e", "content": ""}) == (200, {"success": True})
    assert fetch(daemon, "POST", "/read_file", {"path": "/workspace/js/e"}) == (200, {"content": ""})
    assert fetch(daemon, "POST", "/delete_dir", {"path": "/workspace/js"}) == (200, {"success": True})
    assert fetch(daemon, "POST", "/unbind_port", {}) == (200, {"message": "Port binding removed", "success": True})
    assert fetch(daemon, "POST", "/run", {"cmd": "true", "cwd": "/none"}) == (400, "Invalid working directory: /none\n")


def test_javascript_reads_events_from_pieces_of_any_size(daemon):
    """Every piece is decoded by itself there: no character may take more than one byte."""
    body = json.dumps({"cmd": "for i in $(seq 3000); do printf 'äöü€😀'; done; echo; printf 'no end'"}).encode()
    with daemon.socket() as s:
        s.sendall(b"POST %s/run_streaming HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                  % (PREFIX.encode(), daemon.secret.encode(), len(body)) + body)
        response = http.client.HTTPResponse(s)
        response.begin()
        text = "".join(part.decode("ascii") for part in iter(lambda: response.read(7), b""))
    blocks = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.split("\n\n") if block]
    assert [b["event"] for b in blocks] == ["output", "output", "complete"]
    assert json.loads(blocks[0]["data"])["data"] == "äöü€😀" * 3000
    assert json.loads(blocks[1]["data"])["data"] == "no end"
