# SPDX-License-Identifier: MIT
"""A control plane that does what a test tells it to, and remembers every request.

    plane = ControlPlane()
    plane.script("result", 500, 500, "close", 201)   # one per request, then the default again
    plane.always("ready", 503)

What it can do instead of answering with a number: "hang" (says nothing until released), "close" (closes
without an answer), "partial" (closes in the middle of one), "flood" (an endless answer), or any function that
gets the handler.
"""
import http.server
import json
import re
import socket
import socketserver
import threading
import time

KINDS = [
    ("result", re.compile(r"/executions/([^/]+)/result$")),
    ("heartbeat", re.compile(r"/executions/([^/]+)/heartbeat$")),
    ("ready", re.compile(r"/containers/(ready)$")),
    ("exited", re.compile(r"/containers/(exited)$")),
]


class answer:
    """A behaviour: this status with these headers (names with _ for -), and this body."""

    def __init__(self, status, body=None, **headers):
        self.status, self.body = status, body
        self.headers = {name.replace("_", "-"): str(value) for name, value in headers.items()}

    def __call__(self, handler):
        handler.reply(self.status, self.headers, self.body)

    def __repr__(self):
        return f"{self.status} {self.headers}"  # part of the names of tests: the same in every process


class Seen:
    """One request."""

    def __init__(self, kind, key, handler, body):
        self.kind, self.id, self.at = kind, key, time.monotonic()
        self.method, self.path = handler.command, handler.path
        self.headers, self.connection = dict(handler.headers.items()), handler.client_address
        self.raw = body
        self.json = json.loads(body) if body else None
        self.answered = None  # the status it got, if any

    def __repr__(self):
        return f"<{self.kind} {self.id} {self.answered} {self.raw[:200]!r}>"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind, key = next(((k, m[1]) for k, p in KINDS if (m := p.search(self.path))), ("other", ""))
        self.seen = Seen(kind, key, self, body)
        act = self.server.plane.receive(self.seen)
        if callable(act):
            act(self)
        elif isinstance(act, int):
            self.reply(act)
        else:
            getattr(self, "do_" + act)()

    def do_GET(self):
        self.seen = Seen("other", "", self, b"")
        self.server.plane.receive(self.seen)
        self.reply(200)

    def reply(self, status, headers=None, body=None):
        self.seen.answered = status
        text = b"" if status == 204 else json.dumps(body or {"ok": True}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def do_hang(self):
        self.server.plane.released.wait(60)
        self.close_connection = True

    def do_close(self):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def do_partial(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":")
        self.wfile.flush()
        self.do_close()

    def do_flood(self):
        self.seen.answered = 200
        try:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            while not self.server.plane.released.is_set():
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass
        self.close_connection = True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 512
    block_on_close = False

    def handle_error(self, *_):
        pass

    def process_request(self, request, client_address):
        self.plane.connections.append(request)
        super().process_request(request, client_address)


class ControlPlane:
    def __init__(self, port=0, up=True):
        self.lock = threading.Condition()
        self.requests, self.scripts, self.defaults = [], {}, {}
        self.released = threading.Event()
        self.connections, self.server = [], None
        self.port = port or self.reserve()
        if up:
            self.up()

    @staticmethod
    def reserve():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            return probe.getsockname()[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    # -- being there --

    def up(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.plane = self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        """Refuses connections from now on and drops those it has."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.connections.clear()

    def close(self):
        self.released.set()
        self.down()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- what to do --

    def script(self, kind, *acts):
        with self.lock:
            self.scripts.setdefault(kind, []).extend(acts)

    def always(self, kind, act):
        """Replaces the default; None brings it back."""
        with self.lock:
            self.defaults[kind] = act

    def receive(self, seen):
        with self.lock:
            self.requests.append(seen)
            self.lock.notify_all()
            if self.scripts.get(seen.kind):
                return self.scripts[seen.kind].pop(0)
            if self.defaults.get(seen.kind) is not None:
                return self.defaults[seen.kind]
            repeated = any(r.id == seen.id and r.answered == 201 for r in self.requests[:-1])
            return 200 if repeated or seen.kind != "result" else 201

    # -- what happened --

    def of(self, kind, key=None):
        with self.lock:
            return [r for r in self.requests if r.kind == kind and key in (None, r.id)]

    def taken(self):
        """Ids of the results it said yes to."""
        return {r.id for r in self.of("result") if r.answered in (200, 201)}

    def wait(self, kind, key=None, count=1, timeout=30.0):
        """The requests of a kind, once there are so many."""
        end = time.monotonic() + timeout
        with self.lock:
            while True:
                found = [r for r in self.requests if r.kind == kind and key in (None, r.id)]
                if len(found) >= count:
                    return found
                left = end - time.monotonic()
                assert left > 0, f"{count} x {kind} {key or ''} expected, seen: {self.requests}"
                self.lock.wait(left)
