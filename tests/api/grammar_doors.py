# SPDX-License-Identifier: MIT
"""What tests/fuzz-requests sends to families that a document of bodies does not describe.

E2B's services, the Model Context Protocol, WebSockets, servers inside sandboxes, forms and signed URLs: each case needs
headers, tokens or bytes behind the request that belong together. Cases are made as all others are (Grammar.make): what is
sent depends on the seed and the number, but for ids and tokens, which the daemon chose.
"""
import base64
import collections
import gzip
import http.server
import socketserver
import struct
import threading
import urllib.parse

LEARNED = 4  # of each kind

# Answers a connection in one of many ways; a path may say which.
SERVER = r'''
import os, random, socket, threading
A = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 70000, b"junk\r\n\r\n", b"",
     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\nabc",
     b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"HTTP/1.1 100 Continue\r\n\r\n" * 50 + b"HTTP/1.1 204 x\r\n\r\n", b"HTTP/1.1 101 Up\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello",
     b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n", b"HTTP/1.1 999 \xff\r\nSet-Cookie: a\r\n\r\n",
     b"HTTP/1.0 304 Not\r\nContent-Length: 5\r\n\r\nabcde", b"HTTP/1.1 200 OK\r\nX: \r\n y\r\n\r\n", b"H" * 20000, b"HTTP/1.1 101 Up\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + b"\x81\x7f" + b"\xff" * 9]
def serve(c):
    try:
        c.settimeout(5)
        c.recv(65536)
        answer = random.choice(A)
        if random.random() < 0.2:
            for i in range(0, len(answer), 1 + len(answer) // 5): c.sendall(answer[i:i + 1 + len(answer) // 5])
        else: c.sendall(answer)
        if random.random() < 0.5: c.recv(65536)
        if random.random() < 0.2: c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError: pass
    c.close()
s = socket.create_server(("127.0.0.1", 4001))
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
'''


class Learned:
    """What the daemon chose: no seed decides it."""

    def __init__(self):
        self.boxes = collections.deque(maxlen=LEARNED)      # (id, token, traffic token)
        self.sessions = collections.deque(maxlen=LEARNED)   # of MCP
        self.urls = collections.deque(maxlen=LEARNED)       # signed
        self.watchers = collections.deque(maxlen=LEARNED)
        self.tools = []                                     # (name, schema of its arguments)

    def answer(self, case, status, fields, body):
        """body: decoded JSON, or bytes."""
        if "mcp-session-id" in fields:
            self.sessions.append(fields["mcp-session-id"])
        if not isinstance(body, dict) or status not in (200, 201):
            return
        if isinstance(body.get("access"), dict):
            self.boxes.append((body["id"], body["access"]["token"], body["access"]["traffic_token"]))
        if "envdAccessToken" in body:
            self.boxes.append((body["sandboxID"], body["envdAccessToken"], body.get("trafficAccessToken") or "x"))
        if case["pattern"].endswith("/files/sign") and "url" in body:
            self.urls.append(body["url"])
        if "watcherId" in body:
            self.watchers.append(body["watcherId"])


class Receiver:
    """Takes webhooks, and answers them in any way."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            count = 0

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                Handler.count += 1
                if Handler.count % 7 == 0:
                    self.wfile.write(b"what?\r\n\r\n")
                    return
                self.send_response((200, 204, 500, 302, 410, 429)[Handler.count % 6])
                self.send_header("Location", "/elsewhere")
                self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def envelope(data, flags=0, n=None):
    return bytes([flags]) + struct.pack(">I", len(data) if n is None else n) + data


def frame(opcode, data, masked=True, n=None):
    """A frame of a WebSocket; n: a length that it claims."""
    n = len(data) if n is None else n
    flag = 0x80 if masked else 0
    head = bytes([flag | n]) if n < 126 else struct.pack(">BH", flag | 126, n) if n < 65536 else struct.pack(">BQ", flag | 127, n)
    key = b"\1\2\3\4" if masked else b""
    return bytes([opcode]) + head + key + (bytes(b ^ key[i % 4] for i, b in enumerate(data)) if masked else data)


class Doors:
    """Of Grammar: cases for these families. `learned` and `secret` are its attributes."""

    def door(self):
        return self.pick(self.case_envd, self.case_envd, self.case_envd, self.case_envd_files, self.case_interpreter, self.case_control, self.case_mcp,
                         self.case_mcp, self.case_mcp, self.case_socket, self.case_socket, self.case_port, self.case_port, self.case_form, self.case_signed)()

    def case(self, pattern, method, target, fields, body=b"", **more):
        fields = [("Host", "localhost")] * (not any(n == "Host" for n, _ in fields)) + list(fields)
        if self.maybe(0.1):
            fields.append((self.pick("Content-Type", "Origin", "Last-Event-ID", "Content-Encoding", "Accept"), self.pick("x", "null", "-1", "gzip", "text/event-stream")))
        return {"pattern": pattern, "method": method, "target": target, "fields": fields, "body": body, "framing": "length", "client": "good", **more}

    def box(self):
        """(id, token, traffic token), sometimes of two."""
        if not self.learned.boxes:
            return "sbzz", "x", "x"
        one, other = self.r.choice(list(self.learned.boxes)), self.r.choice(list(self.learned.boxes))
        return (one[0], other[1], other[2]) if self.maybe(0.05) else one

    def name(self):
        return self.pick("default", "default", "default", "a", "b", self.box()[0])

    def bearer(self):
        return ("Authorization", f"Bearer {self.secret}" if self.maybe(0.97) else "Bearer x")

    # -- E2B --

    def to(self, ident, port):
        if self.maybe(0.2):
            return [("Host", self.pick(f"{port}-{ident}.x.test", f"{port}-{ident}-abc.x", f"{port}-.x", f"99999-{ident}.x"))]
        fields = [("E2b-Sandbox-Id", ident), ("E2b-Sandbox-Port", str(port))]
        return fields[:1] if self.maybe(0.02) else fields

    def selector(self):
        return self.pick({"pid": self.r.randrange(1, 30)}, {"tag": self.pick("t1", "t2", self.text())}, {}, {"pid": -1})

    def envd_message(self, method):
        command = self.code("shell")
        return {
            "Start": lambda: {"process": {"cmd": self.pick("/bin/sh", "sh", "/bin/bash", "nothing", ""), "args": ["-c", command] if self.maybe(0.9) else self.value(),
                                          "envs": {"A": self.text()} if self.maybe(0.3) else {}, **({"cwd": self.path()} if self.maybe(0.2) else {})},
                              **({"pty": {"size": {"cols": self.pick(80, 0, 65536, -1), "rows": 24}}} if self.maybe(0.3) else {}),
                              "stdin": self.maybe(0.5), **({"tag": self.pick("t1", "t2")} if self.maybe(0.4) else {})},
            "Connect": lambda: {"process": self.selector()},
            "List": dict,
            "SendInput": lambda: {"process": self.selector(), "input": {self.pick("stdin", "pty", "x"): self.pick("AAAA", "!", base64.b64encode(bytes(70000)).decode())}},
            "StreamInput": lambda: self.pick({"start": {"process": self.selector()}}, {"data": {"input": {"stdin": "QQ=="}}}, {"keepalive": {}}),
            "CloseStdin": lambda: {"process": self.selector()},
            "SendSignal": lambda: {"process": self.selector(), "signal": self.pick("SIGNAL_SIGKILL", "SIGNAL_SIGTERM", 9, 15, -1, "x")},
            "Update": lambda: {"process": self.selector(), "pty": {"size": {"cols": self.pick(1, 500, 99999), "rows": 3}}},
            "Stat": lambda: {"path": self.path()}, "MakeDir": lambda: {"path": self.path()}, "Remove": lambda: {"path": self.pick("/workspace/a", "/tmp/x", self.path())},
            "Move": lambda: {"source": self.path(), "destination": self.path()},
            "ListDir": lambda: {"path": self.path(), "depth": self.pick(0, 1, 5, 2 ** 31, -1)},
            "WatchDir": lambda: {"path": self.path(), "recursive": self.maybe(0.5), "includeEntry": self.maybe(0.5)},
            "CreateWatcher": lambda: {"path": self.pick("/workspace", "/tmp", self.path()), "recursive": self.maybe(0.5)},
            "GetWatcherEvents": lambda: {"watcherId": self.r.choice(list(self.learned.watchers) or ["x"])},
            "RemoveWatcher": lambda: {"watcherId": self.r.choice(list(self.learned.watchers) or ["x"])},
        }[method]()

    def case_envd(self):
        process = ("Start", "Start", "Start", "Connect", "List", "SendInput", "StreamInput", "CloseStdin", "SendSignal", "Update")
        files = ("Stat", "MakeDir", "Move", "ListDir", "Remove", "WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher")
        method = self.r.choice(process + files)
        path = ("/process.Process/" if method in process else "/filesystem.Filesystem/") + method
        streams = method in ("Start", "Connect", "StreamInput", "WatchDir")
        ident, token, _ = self.box()
        fields = [*self.to(ident, 49983), ("X-Access-Token", token)]
        message = self.envd_message(method)
        data = self.encode(self.bend(message) if self.maybe(0.2) else message)
        if streams and self.maybe(0.95):
            kind = "application/connect+json"
            packed = self.maybe(0.1)
            body = envelope(gzip.compress(data) if packed else data, int(packed), None if self.maybe(0.95) else self.pick(0, 3, 2 ** 32 - 1))
            for _ in range(self.r.randrange(4) if method == "StreamInput" else 0):
                body += envelope(self.encode(self.envd_message(method)))
            fields += [("Connect-Content-Encoding", "gzip")] * packed
        else:
            kind, body = self.pick("application/json", "application/json", "application/json; charset=utf-8", "application/proto", "text/plain"), data
        fields += [("Content-Type", kind), ("Connect-Protocol-Version", "1")]
        if self.maybe(0.2):
            fields.append((self.pick("Connect-Timeout-Ms", "Keepalive-Ping-Interval", "Authorization"), self.pick("1000", "0", "x", "99999999999999", "Basic dXNlcjo=", "Basic cm9vdDo=")))
        return self.case(path, "POST", path, fields, self.spoil(body) if self.maybe(0.08) else body, endless=streams)

    def form(self):
        mark = self.pick("b", "x" * 70, "a-b", "")
        pieces = [(f'Content-Disposition: form-data; name="{self.pick("file", "n")}"; filename="{self.pick("f1", "d/f2", "../x", "", "/tmp/y", chr(8364))}"'
                   + self.pick("", "\r\nContent-Type: text/plain", "\r\nX: " + "y" * 9000)).encode()
                  + b"\r\n\r\n" + self.pick(b"", b"data", b"\r\n--" + mark.encode() + b"x", b"\xff" * 70000) for _ in range(self.r.randrange(5))]
        body = b"".join(b"--" + mark.encode() + b"\r\n" + p + b"\r\n" for p in pieces) + b"--" + mark.encode() + b"--\r\n"
        return f"multipart/form-data; boundary={mark}", self.spoil(body) if self.maybe(0.3) else body

    def case_envd_files(self):
        ident, token, _ = self.box()
        path = self.pick("/workspace/a", "/tmp/x", self.path())
        query = {"path": path, **({"username": self.pick("user", "root", "zz")} if self.maybe(0.4) else {})}
        fields = [*self.to(ident, 49983)]
        if self.maybe(0.3):
            query.update(signature="v1_" + self.pick("A" * 43, "x", ""), **({"signature_expiration": self.pick("0", "99999999999", "x")} if self.maybe(0.5) else {}))
        else:
            fields.append(("X-Access-Token", token))
        target = "/files?" + urllib.parse.urlencode(query, errors="replace")
        if self.maybe(0.4):
            return self.case("/files", self.pick("GET", "GET", "HEAD", "DELETE"), target, fields)
        kind, body = self.form()
        if self.maybe(0.4):
            kind, body = "application/octet-stream", self.pick(b"x" * 5000, gzip.compress(b"y" * 50000), b"")
            fields += [("Content-Encoding", "gzip")] * self.maybe(0.5)
        fields += [("Content-Type", kind), *([("X-Metadata-A", self.pick("b", "c" * 5000))] if self.maybe(0.2) else [])]
        return self.case("/files", "POST", target, fields, body)

    def case_interpreter(self):
        ident, token, traffic = self.box()
        fields = [*self.to(ident, 49999), self.pick(("X-Access-Token", token), ("E2b-Traffic-Access-Token", traffic)), ("Content-Type", "application/json")]
        method, path, body = self.pick(("POST", "/execute", {"code": self.code(self.pick("python", "javascript")), **({"language": self.pick("python", "javascript", "bash", "x")} if self.maybe(0.4) else {}),
                                                             **({"env_vars": {"A": self.text()}} if self.maybe(0.2) else {})}),
                                       ("POST", "/execute", {"code": "import time; time.sleep(1)"}), ("POST", "/contexts", {"language": self.pick("python", "bash", "x"), "cwd": self.path()}),
                                       ("GET", "/contexts", None), ("DELETE", "/contexts/x", None), ("POST", "/contexts/x/restart", {}), ("GET", "/health", None))
        if body is not None and self.maybe(0.2):
            body = self.bend(body)
        return self.case("interpreter " + path, method, path, fields, b"" if body is None else self.encode(body), endless=path == "/execute")

    def case_control(self):
        ident = self.box()[0]
        old = self.pick("", "/v2")
        method, path, body = self.pick(("POST", "/v2/sandboxes", {"templateID": self.pick("base", "x"), "timeout": self.pick(20, 1, 0, -1), "metadata": {"a": self.text()}, "secure": self.maybe(0.5)}),
                                       ("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 30, "autoPause": self.maybe(0.5), "envVars": {"A": "b"}}),
                                       ("GET", old + "/sandboxes?limit=" + self.pick("1", "0", "x") + "&metadata=" + self.pick("a%3Db", "%zz"), None),
                                       ("GET", f"{old}/sandboxes/{ident}", None), ("POST", f"/sandboxes/{ident}/timeout", {"timeout": self.pick(1, 20, -5)}),
                                       ("POST", f"/sandboxes/{ident}/refreshes", {"duration": 5}), ("POST", f"/sandboxes/{ident}/pause", {}), ("POST", f"/sandboxes/{ident}/resume", {"timeout": 9}),
                                       ("POST", f"{old}/sandboxes/{ident}/connect", {"timeout": 9}), ("DELETE", f"{old}/sandboxes/{ident}", None), ("GET", f"/sandboxes/{ident}/metrics", None))
        if body is not None and self.maybe(0.2):
            body = self.bend(body)
        return self.case("control " + path.split("?")[0].replace(ident, "*"), method, path, [("X-API-Key", self.secret if self.maybe(0.97) else "x"), ("Content-Type", "application/json")],
                         b"" if body is None else self.encode(body))

    # -- the Model Context Protocol --

    def mcp_message(self):
        name, schema = self.r.choice(self.learned.tools or [("run_command", {"type": "object"})])
        arguments = self.of_schema(schema, "arguments")
        if isinstance(arguments, dict) and self.maybe(0.6):
            arguments["sandbox"] = self.pick("a", "b", "default", "")
        if isinstance(arguments, dict):
            arguments.update({k: self.pick(1, 2) for k in arguments if k.startswith(("timeout", "wait"))})
            arguments.update({k: self.code("shell") for k in arguments if k == "command"})
        call = {"name": name if self.maybe(0.95) else self.text(), "arguments": self.bend(arguments) if self.maybe(0.15) else arguments}
        method, params = self.pick(("tools/call", call), ("tools/call", call), ("tools/call", call), ("tools/list", {}), ("initialize", {"protocolVersion": self.pick("2025-11-25", "2024-11-05", "1"), "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}),
                                   ("ping", {}), ("resources/list", {}), ("resources/read", {"uri": self.text()}), ("prompts/list", {}), ("notifications/initialized", {}),
                                   ("notifications/cancelled", {"requestId": self.r.randrange(9)}), ("logging/setLevel", {"level": "x"}), (self.text(), self.value()), ("server/discover", {}))
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/"):
            message["id"] = self.pick(self.r.randrange(9), "a", None, 1.5)
        if isinstance(params, dict) and self.maybe(0.3):
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": self.pick(1, "x", [])}
        return message, method, params

    def case_mcp(self):
        if self.maybe(0.12):
            method = self.pick("GET", "DELETE", "OPTIONS")
            fields = [self.bearer(), ("Accept", "text/event-stream"), ("Mcp-Session-Id", self.r.choice(list(self.learned.sessions) or ["x"]))]
            return self.case("/mcp", method, self.pick("/mcp", "/mcp", "/mcp/a"), fields, endless=method == "GET")
        message, method, params = self.mcp_message()
        body = [message, self.mcp_message()[0]] if self.maybe(0.05) else self.bend(message) if self.maybe(0.1) else message
        fields = [self.bearer(), ("Content-Type", "application/json"), ("Accept", self.pick("application/json, text/event-stream", "application/json, text/event-stream", "application/json", "*/*"))]
        if isinstance(params, dict) and "_meta" in params:
            fields += [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method.encode("ascii", "replace").decode().replace("\r", "").replace("\n", ""))]
            if isinstance(params.get("name"), str) and params["name"].isidentifier():
                fields.append(("Mcp-Name", params["name"]))
        elif method != "initialize":
            fields += [("Mcp-Session-Id", self.r.choice(list(self.learned.sessions) or ["x"])), ("MCP-Protocol-Version", self.pick("2025-11-25", "2025-06-18", "x"))]
        if self.maybe(0.05):
            fields.append(("Origin", self.pick("http://localhost:1", "http://evil.example", "null")))
        return self.case("/mcp", "POST", self.pick("/mcp", "/mcp", "/mcp", "/mcp/a"), fields, self.encode(body), endless=True)

    # -- WebSockets, servers inside --

    def upgrade(self):
        fields = [("Connection", "Upgrade"), ("Upgrade", self.pick("websocket", "websocket", "websocket", "echo")), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")]
        return fields if self.maybe(0.95) else fields[:self.r.randrange(4)]

    def frames(self):
        orders = [{"type": "resize", "columns": self.pick(1, 80, 0, 99999), "rows": 5}, {"type": "signal", "signal": self.pick("SIGINT", "SIGKILL", "x")}, {"type": "input_end"}, self.value()]
        out = b""
        for _ in range(self.r.randrange(6)):
            out += self.pick(frame(0x82, b"echo hi\n"), frame(0x82, bytes(self.r.randrange(70000))), frame(0x81, self.encode(self.r.choice(orders))), frame(0x89, b"p" * self.pick(0, 125, 126)),
                             frame(0x02, b"a") + frame(0x00, b"b") + frame(0x80, b"c"), frame(0x88, self.pick(b"", b"\x03\xe8", b"\x03", b"\x00\x00x")), frame(0x82, b"x", masked=False),
                             frame(0x82, b"x", n=2 ** 62), frame(0xf2, b"x"), frame(0x80, b"x"), frame(0x82, b"exit\n"))
        return self.spoil(out) if out and self.maybe(0.1) else out

    def case_socket(self):
        box = self.name()
        process = self.pick("1", "2", "t1", str(self.r.randrange(30)))
        query = self.pick("", "", f"?columns={self.pick('80', '0', 'x')}&rows=24", f"?keep=false&command={urllib.parse.quote(self.code('shell'))}", "?tag=t1", "?from=" + self.pick("0", "now", "99999999999999999999", "x"))
        path = self.pick(f"/v1/sandboxes/{box}/terminals", f"/v1/sandboxes/{box}/terminals/{process}", f"/v1/sandboxes/{box}/processes/{process}/output")
        return self.case("socket " + path.rsplit("/", 1)[0], "GET", path + query, [self.bearer(), *self.upgrade()], behind=self.frames(), endless=True)

    def case_port(self):
        if self.maybe(0.1):
            return self.case("/v1/sandboxes/*/processes", "POST", f"/v1/sandboxes/{self.name()}/processes", [self.bearer(), ("Content-Type", "application/json")],
                             self.encode({"argv": ["python3", "-c", SERVER], "tag": "t2"}))
        port = self.pick(4001, 4001, 4001, 4001, 1, 0, 65535, 70000)
        method = self.pick("GET", "GET", "POST", "HEAD", "PUT", "OPTIONS")
        body = self.pick(b"", b"x", b"x" * 300000) if method in ("POST", "PUT") else b""
        upgrade = self.upgrade() if self.maybe(0.3) else []
        behind = self.frames() if upgrade else b""
        if self.maybe(0.5):
            return self.case("port", method, f"/v1/sandboxes/{self.name()}/ports/{port}/{self.pick('', 'x?y=z', '%2f')}", [self.bearer(), *upgrade], body, behind=behind, endless=True)
        ident, _, traffic = self.box()
        return self.case("port", method, self.pick("/", "/x", "/files"), [*self.to(ident, port), ("E2b-Traffic-Access-Token", traffic), *upgrade], body, behind=behind, endless=True)

    # -- forms, signed URLs --

    def case_form(self):
        kind, body = self.form()
        at = f"/v1/sandboxes/{self.name()}/files"
        return self.case("/v1/sandboxes/*/files", "POST", at + self.pick("", "?path=/workspace", "?path=" + urllib.parse.quote(self.path(), errors="replace"), "?path="), [self.bearer(), ("Content-Type", kind)], body)

    def case_signed(self):
        url = urllib.parse.urlsplit(self.r.choice(list(self.learned.urls) or ["/v1/sandboxes/a/files/x?signature=v1_x&expires=1"]))
        query = url.query if self.maybe(0.6) else self.pick(url.query + "&signature=x", url.query[:-1], url.query.replace("expires", "expired"), "signature=")
        method = self.pick("GET", "PUT", "HEAD", "DELETE")
        return self.case("signed", method, url.path + "?" + query, [], b"x" * self.pick(0, 100, 70000) if method == "PUT" else b"")

    # -- for the others --

    def webhook(self):
        return self.pick(self.receiver, self.receiver + "a", {"url": self.receiver, "secret": self.text()}, "http://127.0.0.1:9/", "http://10.0.0.1/", "x", self.value())

    def packages(self):
        return self.pick("set", {"python": ["nothing==1"]}, {"npm": ["left-pad@1"]}, {"python": ["../x", self.text()]}, self.value())
