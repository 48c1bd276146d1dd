# SPDX-License-Identifier: MIT
"""The wire of the sandbox family, as its SDKs speak it."""
import http.client
import json

import harness

DEADLINE = harness.DEADLINE


class Sandbox:
    """One persistent sandbox behind a daemon; `at` is what stands before the verbs."""

    def __init__(self, daemon, at=""):
        self.daemon, self.at = daemon, at

    def post(self, verb, body=None, **kw):
        return self.daemon.request("POST", f"{self.at}/{verb}", json=body, **kw)

    def get(self, verb, **kw):
        return self.daemon.request("GET", f"{self.at}/{verb}", **kw)

    def run(self, cmd, **fields):
        response = self.post("run", {"cmd": cmd, **fields})
        assert response.status == 200, response
        return response.json()

    def sh(self, cmd, **fields):
        """stdout of a command that must succeed."""
        result = self.run(cmd, **fields)
        assert result["code"] == 0, result
        return result["stdout"]

    def call(self, verb, **body):
        response = self.post(verb, body)
        assert response.status == 200, response
        assert response.headers["Content-Type"] == "application/json"
        return response.json()

    def start(self, cmd, **fields):
        response = self.post("start_process", {"cmd": cmd, **fields})
        assert response.status == 201, response
        return response.json()

    def processes(self):
        return self.get("list_processes").json()["processes"]

    def process(self, ident):
        return next(p for p in self.processes() if p["id"] == ident)

    def stream(self, verb, body):
        return Events(self.daemon, "POST", f"{self.at}/{verb}", body)

    def logs(self, ident, **headers):
        return Events(self.daemon, "GET", f"{self.at}/process_logs_streaming?id={ident}", None, headers)


class Events:
    """A stream of server-sent events; iterates over (event, data, id)."""

    def __init__(self, daemon, method, path, body, headers=None):
        self.http = http.client.HTTPConnection(daemon.host, daemon.port, timeout=DEADLINE)
        data = None if body is None else json.dumps(body).encode()
        head = {"Authorization": "Bearer " + daemon.secret, **(headers or {})}
        self.http.request(method, path, body=data, headers=head)
        self.response = self.http.getresponse()
        self.stream = self.cut()  # one, which goes on where the last reader left it

    def blocks(self):
        """The raw text of each event."""
        return self.stream

    def text(self):
        """What arrives, as it arrives. http.client takes longer over a chunk than the daemon."""
        if not self.response.chunked:
            yield from iter(lambda: self.response.read1(65536), b"")
            return
        raw = b""
        while True:
            more = self.response.fp.read1(262144)
            assert more, "the stream ended within"
            raw += more
            whole, at = [], 0
            while (head := raw.find(b"\r\n", at)) >= 0:
                size = int(raw[at:head], 16)
                if len(raw) < head + 2 + size + 2:
                    break
                whole.append(raw[head + 2:head + 2 + size])
                at = head + 2 + size + 2
                if size == 0:
                    yield b"".join(whole)
                    return
            raw = raw[at:]
            yield b"".join(whole)

    def cut(self):
        rest = b""
        for text in self.text():
            *whole, rest = (rest + text).split(b"\n\n")
            for block in whole:
                yield block + b"\n\n"
        self.close()
        assert rest == b"", rest

    def __iter__(self):
        for block in self.stream:
            fields = dict(line.split(b": ", 1) for line in block.strip(b"\n").split(b"\n"))
            yield (fields[b"event"].decode(), json.loads(fields[b"data"]),
                   fields.get(b"id", b"").decode() or None)

    def close(self):
        self.http.close()
        self.response.close()
