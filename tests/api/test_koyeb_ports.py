# SPDX-License-Identifier: MIT
"""bind_port, unbind_port and the TCP proxy into the sandbox."""
import hashlib
import signal
import socket
import threading
import time

import harness
import pytest
from koyeb import Sandbox

ECHO = """
import socket, sys, threading
family = socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET
s = socket.socket(family)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[2], int(sys.argv[1])))
s.listen(512)
print('up', flush=True)
def serve(c):
    data = b''
    if sys.argv[3] == 'all':  # answers only after the end of the question
        while part := c.recv(65536):
            data += part
        c.sendall(b'got ' + str(len(data)).encode() + b' ' + data[-20:])
    else:
        while part := c.recv(1 << 20):
            c.sendall(part)
    c.close()
while True:
    c, _ = s.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"""


class Ports(Sandbox):
    """A daemon of its own: there is one bound port."""

    def __init__(self, daemon):
        super().__init__(daemon)
        record = daemon.wait_record(event_type="listening")
        self.proxy = int(record["proxy_port"])
        self.call("write_file", path="/workspace/echo.py", content=ECHO)

    def serve(self, port, how="each", address="127.0.0.1"):
        ident = self.start(f"exec python3 /workspace/echo.py {port} {address} {how}")["id"]
        assert next(iter(self.logs(ident)))[1]["data"] == "up"
        return ident

    def bind(self, port):
        return self.post("bind_port", {"port": str(port)})

    def connect(self):
        s = socket.create_connection((self.daemon.host, self.proxy), harness.DEADLINE)
        return s


@pytest.fixture(scope="module")
def ports(make_daemon_module):
    return Ports(make_daemon_module(NODE_ZYGOTE="false"))


@pytest.fixture
def box(ports):
    ports.post("unbind_port")
    yield ports
    ports.post("unbind_port")


def read_all(s):
    data = b""
    while part := s.recv(1 << 20):
        data += part
    return data


def test_bodies_are_exact_to_the_byte(box):
    assert box.bind("8080").body == b'{"message":"Port binding configured","port":"8080","success":true}\n'
    r = box.bind("9090")
    assert r.status == 409
    assert r.body == b'{"current_port":"8080","error":"Port already bound","success":false}\n'
    assert box.bind("8080").status == 409, "even the same port"
    for body in (None, {}, {"port": "1"}):
        r = box.post("unbind_port", body)
        assert (r.status, r.body) == (200, b'{"message":"Port binding removed","success":true}\n')
    assert box.get("unbind_port").status == 200


def test_refusals(box):
    for body in ({}, {"port": ""}, {"port": None}):
        r = box.post("bind_port", body)
        assert (r.status, r.text) == (400, "Port is required\n")
    for body in ('{"port":8080}', "", "[]"):
        r = box.daemon.request("POST", "/bind_port", body=body)
        assert (r.status, r.text) == (400, "Invalid request\n")


def test_bytes_go_both_ways(box):
    box.serve(8001)
    box.bind(8001)
    with box.connect() as s:
        for i in range(50):
            s.sendall(b"ping %d" % i)
            assert s.recv(100) == b"ping %d" % i


def test_half_close_keeps_the_answer(box):
    box.serve(8002, "all")
    box.bind(8002)
    with box.connect() as s:
        s.sendall(b"x" * 300_000 + b"the end")
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b"got 300007 " + (b"x" * 13 + b"the end")


def test_ipv6_inside(box):
    if "::1" not in box.sh("cat /proc/net/if_inet6; echo ::1"):
        pytest.skip("no IPv6")
    box.serve(8003, "each", "::1")
    box.bind(8003)
    with box.connect() as s:
        s.sendall(b"six")
        assert s.recv(10) == b"six"


def test_unbound_accepts_and_closes_without_a_word(box):
    with box.connect() as s:
        assert s.recv(10) == b""
    with box.connect() as s:
        try:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert s.recv(10) == b""
        except ConnectionResetError:
            pass  # unread data was pending


@pytest.mark.parametrize("port", ["8999", "abc", "99999", "0", "-1", "80 "])
def test_a_target_that_is_not_there_closes_at_once(box, port):
    assert box.bind(port).status == 200
    with box.connect() as s:
        try:
            assert s.recv(10) == b""
        except ConnectionResetError:
            pass


def test_the_target_may_come_up_later_and_rebinding_spares_the_living(box):
    box.bind(8004)
    with box.connect() as s:
        assert s.recv(10) == b""
    box.serve(8004)
    with box.connect() as old:
        old.sendall(b"1")
        assert old.recv(10) == b"1"
        box.post("unbind_port")
        with box.connect() as s:
            assert s.recv(10) == b""
        old.sendall(b"2")
        assert old.recv(10) == b"2"


def test_the_host_s_own_ports_are_not_reached(box):
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))
        mine.listen()
        mine.settimeout(0.5)
        box.bind(mine.getsockname()[1])
        with box.connect() as s:
            assert s.recv(10) == b""
        with pytest.raises(TimeoutError):
            mine.accept()


def test_large_transfers_are_exact(box):
    box.serve(8005)
    box.bind(8005)
    block = bytes(range(256)) * 4096
    total = 200
    sent, got = hashlib.sha256(), hashlib.sha256()
    with box.connect() as s:
        def send():
            for _ in range(total):
                s.sendall(block)
                sent.update(block)
            s.shutdown(socket.SHUT_WR)
        t = threading.Thread(target=send)
        t.start()
        while part := s.recv(1 << 20):
            got.update(part)
        t.join()
    assert got.digest() == sent.digest()


def test_a_slow_reader_holds_its_writer_back(box):
    """What the server inside writes waits there, not in the daemon."""
    flood = "import socket\ns=socket.socket()\ns.bind(('127.0.0.1',8006))\ns.listen()\nprint('up',flush=True)\n" \
            "c,_=s.accept()\nn=0\nc.settimeout(1)\ntry:\n while True: n+=c.send(bytes(1<<16))\nexcept TimeoutError: pass\nprint(n,flush=True)\n"
    box.call("write_file", path="/workspace/flood.py", content=flood)
    ident = box.start("exec python3 /workspace/flood.py")["id"]
    stream = iter(box.logs(ident))
    assert next(stream)[1]["data"] == "up"
    box.bind(8006)
    s = box.connect()
    written = int(next(stream)[1]["data"])
    assert 0 < written < 40_000_000
    s.close()


def test_hundreds_at_the_same_time(box):
    box.serve(8007)
    box.bind(8007)
    connections = [box.connect() for _ in range(300)]
    for i, s in enumerate(connections):
        s.sendall(b"%d" % i)
    for i, s in enumerate(connections):
        assert s.recv(20) == b"%d" % i
        s.close()


def test_ten_thousand_opened_and_closed_leave_nothing_behind(box):
    box.serve(8008)
    box.bind(8008)
    with box.connect() as s:
        s.sendall(b"warm")
        s.recv(10)
    harness.wait_until(lambda: box.sh("true") == "", "ready")
    before = len(harness.open_files(box.daemon.pid))
    for i in range(10_000):
        s = box.connect()
        if i % 3:
            s.sendall(b"x")
        if i % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    harness.wait_until(lambda: len(harness.open_files(box.daemon.pid)) <= before + 130,
                       "descriptors are back, but for spare pipes")
    with box.connect() as s:
        s.sendall(b"fine")
        assert s.recv(10) == b"fine"


def test_an_idle_connection_does_not_delay_the_end(make_daemon):
    box = Ports(make_daemon())
    box.serve(8009)
    box.bind(8009)
    with box.connect() as s:
        s.sendall(b"x")
        s.recv(10)
        begun = time.monotonic()
        box.daemon.signal(signal.SIGTERM)
        assert box.daemon.wait() == 143
        assert time.monotonic() - begun < harness.DEADLINE / 2
        try:
            assert s.recv(10) == b""
        except ConnectionResetError:
            pass


def test_a_taken_proxy_port_is_a_failure_to_start():
    with socket.socket() as mine:
        mine.bind(("127.0.0.1", 0))
        mine.listen()
        refusal = harness.start_refused(PROXY_PORT=mine.getsockname()[1])
    assert refusal.status == 1 and "proxy port" in refusal.stderr
