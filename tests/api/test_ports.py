# SPDX-License-Identifier: MIT
"""Servers inside sandboxes, reached from outside: by host name, by headers, by path; and nothing else is reached."""
import hashlib
import http.client
import json
import socket
import threading

import pytest

import harness
import koyeb

# Answers what it was asked; some paths answer in other ways.
SERVER = r'''
import hashlib, http.server, socketserver, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data)); self.wfile.flush()
    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            while True:
                n = int(self.rfile.readline(), 16)
                piece = self.rfile.read(n); self.rfile.readline()
                if n == 0: return
                yield piece
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            piece = self.rfile.read(min(left, 65536)); left -= len(piece)
            yield piece
    def plain(self, data, status=200, *fields):
        self.send_response(status)
        for name, value in fields: self.send_header(name, value)
        self.send_header("Content-Length", str(len(data))); self.end_headers()
        if self.command != "HEAD": self.wfile.write(data)
    def do(self):
        path = self.path.partition("?")[0]
        if path == "/stream":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.end_headers()
            self.chunk(b"first\n")
            open("/tmp/began", "w").close()
            self.rfile.readline()  # never comes: the end of the connection does
            open("/tmp/left", "w").close()
        elif path == "/large":
            self.send_response(200); self.end_headers(); self.close_connection = True
            piece, total = b"x" * 65536, 0
            try:
                for _ in range(1600):
                    self.wfile.write(piece); total += len(piece)
                    open("/tmp/sent", "w").write(str(total))
            except OSError: pass
        elif path == "/sum":
            digest, n = hashlib.sha256(), 0
            for piece in self.body(): digest.update(piece); n += len(piece)
            self.plain(b"%d %s" % (n, digest.hexdigest().encode()))
        elif path == "/cookies":
            self.plain(b"", 302, ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Location", "/x"), ("X-Mine", "yes"))
        elif path == "/page":
            self.plain(b"<script>fetch('/v1/sandboxes')</script>", 200, ("Content-Type", "text/html"), ("Set-Cookie", "a=1"),
                       ("Service-Worker-Allowed", "/"), ("Clear-Site-Data", '"*"'), ("Content-Security-Policy", "img-src *"))
        elif path == "/short":
            self.send_response(200); self.send_header("Content-Length", "100"); self.end_headers()
            self.wfile.write(b"too little"); self.close_connection = True
        elif path == "/junk":
            self.wfile.write(b"what is this?\r\n\r\n"); self.close_connection = True
        elif path == "/two":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"); self.close_connection = True
        elif path == "/early":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"); self.plain(b"late")
        elif path == "/nothing":
            self.send_response(204); self.end_headers()
        elif self.headers.get("Upgrade") == "echo":
            self.wfile.write(b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Key: 7\r\n\r\nhello "); self.wfile.flush()
            while True:
                data = self.connection.recv(65536)
                if not data: break
                self.connection.sendall(data.upper())
            self.close_connection = True
        else:
            data = b"".join(self.body())
            head = "".join(f"{k}: {v}\n" for k, v in self.headers.items())
            self.plain(f"{self.command} {self.path}\n{head}\n".encode() + data)
    def __getattr__(self, name):
        if name.startswith("do_"): return self.do
        raise AttributeError(name)
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''
PORT = 4000


class Box:
    def __init__(self, daemon, **fields):
        made = daemon.request("POST", "/v1/sandboxes", json=fields)
        assert made.status == 201, made
        self.daemon, self.made = daemon, made.json()
        self.id = self.made["id"]
        self.path = f"/v1/sandboxes/{self.id}"
        self.token = self.made["access"]["token"]
        self.traffic = self.made["access"]["traffic_token"]
        self.inside = koyeb.Sandbox(daemon, self.path)

    def serve(self, port=PORT):
        self.inside.call("write_file", path="/tmp/server.py", content=SERVER)
        self.inside.start(f"exec python3 /tmp/server.py {port}")
        harness.wait_until(lambda: self.ask("/", port=port).status == 200, "the server inside listens")
        return self

    def host(self, port=PORT):
        return f"{port}-{self.id}.sandbox.test"

    def ask(self, path, method="GET", port=PORT, body=None, **headers):
        return raw(self.daemon, method, path, body, {"Host": self.host(port), **headers})

    def end(self):
        self.daemon.request("DELETE", self.path)


def raw(daemon, method, path, body=None, headers=None):
    """A request with these headers and no others: no secret."""
    conn = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=harness.HTTP_TIMEOUT)
    try:
        conn.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        headers = dict(headers or {})
        if isinstance(body, bytes):
            headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            conn.putheader(name.replace("_", "-"), value)
        if body is None or isinstance(body, bytes):
            conn.endheaders(body)
        else:
            conn.putheader("Transfer-Encoding", "chunked")
            conn.endheaders(body, encode_chunked=True)
        return harness.Response(conn.getresponse())
    finally:
        conn.close()


@pytest.fixture(scope="module")
def box(daemon):
    made = Box(daemon).serve()
    yield made
    made.end()


@pytest.fixture
def another(daemon):
    made = Box(daemon)
    yield made
    made.end()


# ---- the three ways ----

def test_by_host(box):
    got = box.ask("/a%2Fb?c=%20d", "POST", body=b"the body", X_Mine="1", Cookie="a=b")
    assert got.status == 200
    assert got.text.startswith("POST /a%2Fb?c=%20d\n") and got.text.endswith("\n\nthe body"), got.text
    assert f"Host: {box.host()}\n" in got.text and "X-Mine: 1\n" in got.text and "Cookie: a=b\n" in got.text


def test_by_headers(box):
    got = raw(box.daemon, "GET", "/x", headers={"Host": "localhost", "E2b-Sandbox-Id": box.id,
                                               "E2b-Sandbox-Port": str(PORT), "X-Access-Token": "t", "X-Api-Key": "k"})
    assert got.status == 200 and got.text.startswith("GET /x\n"), got
    assert not {"e2b", "x-access", "x-api"} & {line.lower()[:len("x-access")].split("-")[0] for line in got.text.splitlines()[1:]
                                             if line.lower().startswith(("e2b", "x-access", "x-api"))}


def test_by_path(box):
    got = box.daemon.request("PATCH", f"{box.path}/ports/{PORT}/a/b%2F?q=1", body=b"xyz")
    assert got.status == 200 and got.text.startswith("PATCH /a/b%2F?q=1\n") and got.text.endswith("xyz"), got
    assert "authorization" not in got.text.lower(), "the secret of the daemon was told to a tenant"
    assert raw(box.daemon, "GET", f"{box.path}/ports/{PORT}/", headers={"Host": "localhost"}).status == 401


BROWSER = {"Sec-Fetch-Site": "none", "Cookie": "of=another service of this host"}


def test_a_page_by_path_is_not_a_page_of_the_daemon(box):
    """Its path is below the API: without an origin of its own it could call the API as the person who looks at it."""
    at = f"{box.path}/ports/{PORT}"
    got = box.daemon.request("GET", f"{at}/page", headers=BROWSER)
    policies = got.headers.get_all("Content-Security-Policy")
    assert any(p.startswith("sandbox") and "allow-same-origin" not in p for p in policies) and "img-src *" in policies, policies
    assert not {"Set-Cookie", "Service-Worker-Allowed", "Clear-Site-Data"} & set(got.headers), got.headers
    assert "cookie" not in box.daemon.request("GET", f"{at}/", headers=BROWSER).text.lower()
    program = box.daemon.request("GET", f"{at}/page", headers={"Cookie": "a=b"})
    assert program.headers["Set-Cookie"] == "a=1" and "Service-Worker-Allowed" not in program.headers
    assert "Cookie: a=b\n" in box.daemon.request("GET", f"{at}/", headers={"Cookie": "a=b"}).text


def test_a_page_by_host_has_an_origin_of_its_own(box):
    got = box.ask("/page", **BROWSER)
    assert got.headers.get_all("Content-Security-Policy") == ["img-src *"] and got.headers["Set-Cookie"] == "a=1"


def test_a_page_of_a_sandbox_calls_nothing_of_a_daemon_without_a_secret(make_daemon):
    """With the origins that browsers give it: by path none, by host the name of the sandbox."""
    daemon = make_daemon(SANDBOX_AUTH_MODE="none")
    made = Box(daemon)
    for origin in ("null", f"http://{PORT}-{made.id}.localhost:{daemon.port}"):
        for path in ("/v1/sandboxes", "/mcp", f"{made.path}/ports/{PORT}/"):
            got = raw(daemon, "GET", path, headers={"Host": f"localhost:{daemon.port}", "Origin": origin, "Sec-Fetch-Site": "cross-site"})
            assert got.status == 403, (origin, path, got)
    made.end()


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "000080"])
def test_a_path_names_a_port(box, port):
    assert box.daemon.request("GET", f"{box.path}/ports/{port}/").status == 400


# ---- HTTP ----

@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
def test_any_method(box, method):
    assert box.ask("/", method).text.startswith(f"{method} /\n")


def test_head_and_no_content(box):
    got = box.ask("/", "HEAD")
    assert got.status == 200 and int(got.headers["Content-Length"]) > 0 and got.text == ""
    assert box.ask("/nothing").status == 204


def test_fields_of_the_answer_are_those_of_the_server(box):
    got = box.ask("/cookies")
    assert got.status == 302 and got.headers["Location"] == "/x" and got.headers["X-Mine"] == "yes"
    assert got.headers.get_all("Set-Cookie") == ["a=1", "b=2"]
    assert "X-Content-Type-Options" not in got.headers and "X-Request-Id" not in got.headers


def test_a_connection_serves_one_request_after_the_other(box):
    with harness.Connection(box.daemon) as conn:
        for i in range(3):
            assert conn.request("GET", f"/{i}", headers={"Host": box.host()}).text.startswith(f"GET /{i}\n")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_body_goes_in_whole(box, chunked):
    piece, times = bytes(range(256)) * 256, 160
    body = (piece for _ in range(times)) if chunked else piece * times
    want = f"{len(piece) * times} {hashlib.sha256(piece * times).hexdigest()}"
    assert box.ask("/sum", "POST", body=body).text == want


def test_an_answer_streams(box):
    box.inside.sh("rm -f /tmp/left /tmp/began")
    with socket.create_connection(("127.0.0.1", box.daemon.port), timeout=harness.HTTP_TIMEOUT) as s:
        s.sendall(f"GET /stream HTTP/1.1\r\nHost: {box.host()}\r\n\r\n".encode())
        seen = b""
        while b"first" not in seen:
            piece = s.recv(4096)
            assert piece, seen
            seen += piece
    # The client has left: so does the connection inside.
    harness.wait_until(lambda: box.inside.run("test -e /tmp/left")["code"] == 0, "the server inside sees it")


def test_a_slow_client_stops_the_server_inside(box):
    with socket.create_connection(("127.0.0.1", box.daemon.port), timeout=harness.HTTP_TIMEOUT) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        box.inside.sh("rm -f /tmp/sent")
        s.sendall(f"GET /large HTTP/1.1\r\nHost: {box.host()}\r\n\r\n".encode())
        sent = []

        def stands_still():
            sent.append(box.inside.run("cat /tmp/sent 2>/dev/null")["stdout"])
            return len(sent) > 20 and sent[-1] and len(set(sent[-20:])) == 1

        harness.wait_until(stands_still, "it stops", interval=0.02)
        assert int(sent[-1]) < 50 << 20
        total = 0
        while piece := s.recv(1 << 20):
            total += len(piece)
            if total > 1600 * 65536:
                break
        assert total > 1600 * 65536


@pytest.mark.parametrize("path", ["/junk", "/two"])
def test_what_is_no_http_is_a_bad_gateway(box, path):
    assert box.ask(path).status == 502


def test_an_answer_that_is_too_short_is_broken_off(box):
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        box.ask("/short")


def test_early_hints_are_left_out(box):
    assert box.ask("/early").text == "late"


def test_upgrade_copies_bytes(box):
    with socket.create_connection(("127.0.0.1", box.daemon.port), timeout=harness.HTTP_TIMEOUT) as s:
        s.sendall(f"GET /ws HTTP/1.1\r\nHost: {box.host()}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
        seen = b""
        while not seen.endswith(b"hello "):
            piece = s.recv(4096)
            assert piece, seen
            seen += piece
        head = seen.lower()
        assert head.startswith(b"http/1.1 101 ") and b"upgrade: echo\r\n" in head and b"x-key: 7\r\n" in head
        data = b"abc" * 100000
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        got = b""
        while len(got) < len(data):
            piece = s.recv(65536)
            assert piece
            got += piece
        assert got == data.upper()


# ---- what is not there ----

def test_nothing_listens(box):
    got = box.ask("/", port=4999)
    assert got.status == 502
    assert got.json() == {"sandboxId": box.id, "message": "The sandbox is running but port is not open", "port": 4999,
                          "code": 502}
    assert box.daemon.request("GET", f"{box.path}/ports/4999/").json()["error_code"] == "Executor.PortClosed"


def test_no_such_sandbox(daemon):
    got = raw(daemon, "GET", "/", headers={"Host": "80-sbnothing.x.test"})
    assert got.status == 502 and got.json() == {"sandboxId": "sbnothing", "message": "The sandbox was not found", "code": 502}


def test_one_header_without_the_other(box):
    for one in ({"E2b-Sandbox-Id": box.id}, {"E2b-Sandbox-Port": "80"}):
        assert raw(box.daemon, "GET", "/", headers={"Host": "localhost", **one}).status == 400


def test_a_sandbox_that_ends_ends_its_connections(daemon):
    made = Box(daemon).serve()
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=harness.HTTP_TIMEOUT) as s:
        s.sendall(f"GET /stream HTTP/1.1\r\nHost: {made.host()}\r\n\r\n".encode())
        while b"first" not in s.recv(4096):
            pass
        made.end()
        while s.recv(4096):
            pass
    assert made.ask("/").status == 502


# ---- attacks ----

def test_a_port_reaches_no_other_sandbox_and_not_the_daemon(box, another):
    """The same port number of another sandbox, and the daemon's own: nothing listens there."""
    assert another.ask("/").status == 502
    assert another.ask("/health", port=box.daemon.port).status == 502
    assert another.ask("/health", port=box.daemon.port, Authorization="Bearer " + box.daemon.secret).status == 502


def test_tokens_open_one_sandbox(box, another):
    def envd(sandbox, token):
        return raw(box.daemon, "POST", "/process.Process/List", b"{}",
                   {"Host": "localhost", "E2b-Sandbox-Id": sandbox.id, "E2b-Sandbox-Port": "49983",
                    "Content-Type": "application/json", **({"X-Access-Token": token} if token else {})}).status

    assert envd(box, box.token) == 200
    assert {envd(another, token) for token in (box.token, box.traffic, another.traffic, "", None, box.daemon.secret)} == {401}


def test_private_ports(daemon):
    made = Box(daemon, private_ports=True)
    try:
        token = {"E2b-Traffic-Access-Token": made.traffic}
        assert made.ask("/").status == 403
        assert made.ask("/", **{"E2b-Traffic-Access-Token": made.token}).status == 403
        assert made.ask("/", **token).status == 502
        made.inside.call("write_file", path="/tmp/server.py", content=SERVER)
        made.inside.start(f"exec python3 /tmp/server.py {PORT}")
        harness.wait_until(lambda: made.ask("/", **token).status == 200, "the server inside listens")
        assert "token" not in made.ask("/", **token).text.lower()
        assert made.ask("/").status == 403
    finally:
        made.end()


def test_a_host_that_names_a_sandbox_is_never_the_daemon(box):
    """Whatever path and secret come with it."""
    auth = {"Authorization": "Bearer " + box.daemon.secret}
    for path in ("/v1/sandboxes", "/health", "/execute"):
        got = box.ask(path, **auth)
        assert got.status == 200 and got.text.startswith(f"GET {path}\n"), got
    got = raw(box.daemon, "GET", "/v1/sandboxes", headers={"Host": f"49983-{box.id}.x.test", **auth})
    assert got.status == 401


@pytest.mark.parametrize("host", ["4000-{id}", "4000-{id}:80", "x4000-{id}.x.test", "4000--{id}.x.test", "4000-{id}_.x.test",
                                  "04000{id}.x.test"])
def test_other_hosts_are_the_daemon(box, host):
    assert raw(box.daemon, "GET", "/v1/sandboxes", headers={"Host": host.format(id=box.id)}).status == 401


def test_bodies_are_not_taken_without_a_token(box):
    """The answer comes before the body: a stranger cannot have it kept in memory."""
    with socket.create_connection(("127.0.0.1", box.daemon.port), timeout=harness.HTTP_TIMEOUT) as s:
        s.sendall(f"POST /process.Process/SendInput HTTP/1.1\r\nHost: 49983-{box.id}.x.test\r\n"
                  "Content-Type: application/json\r\nContent-Length: 10000000\r\n\r\n".encode())
        assert s.recv(4096).startswith(b"HTTP/1.1 401 ")
