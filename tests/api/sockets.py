# SPDX-License-Identifier: MIT
"""A client of WebSockets (RFC 6455), small and strict: it looks at what the server sends bit by bit."""
import base64
import hashlib
import json
import secrets
import socket
import struct

import harness

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Refused(Exception):
    def __init__(self, status, head, body):
        super().__init__(f"{status} {body!r}")
        self.status, self.head, self.body = status, head, body


class Closed(Exception):
    def __init__(self, code, reason):
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


class WebSocket:
    def __init__(self, daemon, path, headers=None, receive_buffer=None):
        self.socket = socket.socket()
        self.socket.settimeout(harness.HTTP_TIMEOUT)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((daemon.host, daemon.port))
        self.buffer = b""
        key = base64.b64encode(secrets.token_bytes(16))
        fields = {"Host": f"{daemon.host}:{daemon.port}", "Connection": "keep-alive, Upgrade", "Upgrade": "websocket",
                  "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key.decode(), **daemon.prepare(None, None, None)[1],
                  **(headers or {})}
        lines = [f"GET {path} HTTP/1.1"] + [f"{k}: {v}" for k, v in fields.items() if v is not None]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = self.until(b"\r\n\r\n").decode()
        status = int(head.split()[1])
        fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)}
        if status != 101:
            raise Refused(status, fields, self.exactly(int(fields.get("content-length", 0))))
        want = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        assert fields["sec-websocket-accept"] == want and fields["upgrade"] == "websocket", head

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # -- bytes --

    def more(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise Closed(1006, "the connection ended")
        self.buffer += got

    def until(self, mark):
        while mark not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(mark, 1)
        return head

    def exactly(self, n):
        while len(self.buffer) < n:
            self.more()
        got, self.buffer = self.buffer[:n], self.buffer[n:]
        return got

    # -- frames --

    def frame(self, opcode, data=b"", final=True, masked=True):
        """Sends one frame."""
        n = len(data)
        head = bytes([(0x80 if final else 0) | opcode])
        flag = 0x80 if masked else 0
        head += bytes([flag | n]) if n < 126 else struct.pack(">BH", flag | 126, n) if n < 65536 else struct.pack(">BQ", flag | 127, n)
        if masked:
            key = secrets.token_bytes(4)
            whole = int.from_bytes(data, "big") ^ int.from_bytes((key * (n // 4 + 1))[:n], "big")
            head, data = head + key, whole.to_bytes(n, "big")
        self.socket.sendall(head + data)

    def receive_frame(self):
        first, second = self.exactly(2)
        assert first & 0x70 == 0 and not second & 0x80, "a server neither masks nor uses reserved bits"
        n = second & 0x7f
        if n >= 126:
            n = int.from_bytes(self.exactly(2 if n == 126 else 8), "big")
        return first & 0x0f, bool(first & 0x80), self.exactly(n)

    # -- messages --

    def send(self, data):
        if isinstance(data, dict):
            self.frame(TEXT, json.dumps(data).encode())
        else:
            self.frame(BINARY, data)

    def receive(self):
        """A dict for text, bytes for binary; answers pings; raises Closed."""
        opcode, final, data = self.receive_frame()
        assert final, "the server does not fragment"
        if opcode == PING:
            self.frame(PONG, data)
            return self.receive()
        if opcode == CLOSE:
            raise Closed(int.from_bytes(data[:2], "big") if data else 1005, data[2:].decode())
        return json.loads(data) if opcode == TEXT else data

    def read_until(self, mark):
        """Binary messages joined, until these bytes are among them."""
        got = b""
        while mark not in got:
            message = self.receive()
            assert isinstance(message, bytes), (message, got)
            got += message
        return got
