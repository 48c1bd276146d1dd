# SPDX-License-Identifier: MIT
"""Hostile and unlucky HTTP clients, with raw sockets: framing, limits, deadlines, disconnects."""
import contextlib
import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import struct
import time

import pytest

from harness import BUILD, DEADLINE, marker, need, open_files, processes_with, wait_until

HOST = b"Host: localhost\r\n"
GET = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
CLOSE = b"Connection: close\r\n"


def receive_all(sock):
    """Everything until the server closes; a reset counts as the end."""
    data = b""
    while True:
        try:
            piece = sock.recv(65536)
        except ConnectionResetError:
            return data
        if not piece:
            return data
        data += piece


def receive_until(sock, test):
    data = b""
    while not test(data):
        piece = sock.recv(65536)
        assert piece, f"closed after {data!r}"
        data += piece
    return data


def statuses(data):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", data)]


def exchange(daemon, *pieces):
    """Sends the pieces on one connection and returns all that comes back."""
    with daemon.socket(DEADLINE) as sock:
        try:
            for piece in pieces:
                sock.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before we were done
        return receive_all(sock)


def post(daemon, body, extra=b"", path=b"/execute"):
    auth = b"Authorization: Bearer " + daemon.secret.encode() + b"\r\n"
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + auth + extra + b"\r\n" + body


def drop_with_reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def program(code):
    return json.dumps({"code": code, "language": "shell"}).encode()


# ---- framing ----

FRAMING = {
    "length and chunked": (400, b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
    "chunked and length": (400, b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"),
    "two lengths": (400, b"Content-Length: 2\r\nContent-Length: 3\r\n"),
    "equal lengths": (400, b"Content-Length: 2\r\nContent-Length: 2\r\n"),
    "length list": (400, b"Content-Length: 2, 2\r\n"),
    "signed length": (400, b"Content-Length: +2\r\n"),
    "negative length": (400, b"Content-Length: -1\r\n"),
    "length with tail": (400, b"Content-Length: 2x\r\n"),
    "space before colon": (400, b"Content-Length : 2\r\n"),
    "absurd length": (413, b"Content-Length: 99999999999999999999\r\n"),
    "unknown coding": (501, b"Transfer-Encoding: xchunked\r\n"),
    "coding list": (501, b"Transfer-Encoding: gzip, chunked\r\n"),
    "coding twice": (400, b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    "folded line": (400, b"X-A: a\r\n b\r\n"),
    "nul in a value": (400, b"X-A: a\0b\r\n"),
    "bare lf": (400, b"X-A: a\nX-B: b\r\n"),
    "bare cr": (400, b"X-A: a\rb\r\n"),
    "second host": (400, HOST),
    "unknown expectation": (417, b"Expect: magic\r\n"),
    "empty name": (400, b": a\r\n"),
}


@pytest.mark.parametrize("case", FRAMING)
def test_doubtful_framing_is_refused_and_nothing_is_smuggled(daemon, case):
    status, fields = FRAMING[case]
    data = exchange(daemon, b"POST /execute HTTP/1.1\r\n" + HOST + fields + b"\r\n" + b"{}" + GET)
    assert statuses(data) == [status], data
    assert b"\r\nConnection: close\r\n" in data


REQUEST_LINES = {
    "no version": (400, b"GET /health\r\n"),
    "version 9.9": (505, b"GET /health HTTP/9.9\r\n"),
    "version 2": (505, b"PRI * HTTP/2.0\r\n"),
    "lower case": (400, b"GET /health http/1.1\r\n"),
    "bad method": (400, b"G@T /health HTTP/1.1\r\n"),
    "two blanks": (400, b"GET  /health HTTP/1.1\r\n"),
    "raw bytes": (400, b"GET /h\xc3\xa9 HTTP/1.1\r\n"),
    "relative target": (400, b"GET health HTTP/1.1\r\n"),
    "connect": (400, b"CONNECT localhost:80 HTTP/1.1\r\n"),
    "fragment": (400, b"GET /health#x HTTP/1.1\r\n"),
    "encoded nul": (400, b"GET /health%00 HTTP/1.1\r\n"),
    "broken escape": (400, b"GET /%zz HTTP/1.1\r\n"),
}


@pytest.mark.parametrize("case", REQUEST_LINES)
def test_bad_request_lines_are_refused(daemon, case):
    status, line = REQUEST_LINES[case]
    data = exchange(daemon, line + HOST + b"\r\n" + GET)
    assert statuses(data) == [status], data


def test_http_1_1_needs_a_host(daemon):
    assert statuses(exchange(daemon, b"GET /health HTTP/1.1\r\n\r\n" + GET)) == [400]


CHUNKS = {
    "no crlf after data": b"2\r\n{}0\r\n\r\n",
    "data too long": b"1\r\n{}\r\n0\r\n\r\n",
    "size 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
    "size blank": b"2 \r\n{}\r\n0\r\n\r\n",
    "size overflow": b"fffffffffffffffff2\r\n{}\r\n0\r\n\r\n",
    "bare lf": b"2\n{}\n0\n\n",
    "empty size": b"\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("case", CHUNKS)
def test_malformed_chunks_are_refused(daemon, case):
    data = exchange(daemon, post(daemon, CHUNKS[case], b"Transfer-Encoding: chunked\r\n") + GET)
    assert statuses(data) == [400], data
    assert b"\r\nConnection: close\r\n" in data


def test_chunk_extensions_and_trailers_are_bounded(daemon):
    for endless in (b"2;" + b"x" * 20000, b"0\r\n" + b"T: x\r\n" * 4000):
        data = exchange(daemon, post(daemon, endless, b"Transfer-Encoding: chunked\r\n"))
        assert statuses(data) == [400], data


# ---- what must work ----


def test_requests_in_a_row_are_answered_in_order(daemon):
    body = program("echo one")
    length = b"Content-Length: %d\r\n" % len(body)
    chunked = b"%x;a=b\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (len(body), body)
    last = b"GET /nothing HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"
    data = exchange(daemon, GET + post(daemon, body, length) + GET +
                    post(daemon, chunked, b"Transfer-Encoding: chunked\r\n") + last)
    assert statuses(data) == [200, 200, 200, 200, 404], data
    parts = data.split(b"HTTP/1.1 ")[1:]
    assert [b'"stdout":"one\\n"' in part for part in parts] == [False, True, False, True, False]


def test_a_request_may_come_byte_by_byte(daemon):
    with daemon.socket(DEADLINE) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(GET)):
            sock.sendall(GET[i:i + 1])
        data = receive_until(sock, lambda d: b"\r\n\r\n" in d)
    assert statuses(data) == [200]


def test_http_1_0_closes_unless_asked_to_keep(daemon):
    assert statuses(exchange(daemon, b"GET /health HTTP/1.0\r\n\r\n" + GET)) == [200]
    kept = b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    data = exchange(daemon, kept + b"GET /health HTTP/1.0\r\n\r\n")
    assert statuses(data) == [200, 200]
    assert data.count(b"\r\nConnection: keep-alive\r\n") == 1


def test_head_answers_like_get_without_the_body(daemon):
    data = exchange(daemon, b"HEAD /health HTTP/1.1\r\n" + HOST + b"\r\n" +
                    b"GET /health HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n")
    assert statuses(data) == [200, 200]
    head, second = data.split(b"HTTP/1.1 ")[1:]
    assert head.endswith(b"\r\n\r\n") and not second.endswith(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    assert length and int(length.group(1)) > 0


def test_every_answer_has_a_date_and_none_a_server(daemon):
    for response in (daemon.health(), daemon.request("GET", "/nothing"),
                     daemon.request("PATCH", "/health"), daemon.request("GET", "/info", headers={"Authorization": "x"})):
        assert re.fullmatch(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT", response.headers["Date"])
        assert "Server" not in response.headers
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Request-Id"]


def test_a_well_formed_request_id_comes_back(daemon):
    good = daemon.request("GET", "/nothing", headers={"X-Request-Id": "abc.DEF_1-2"})
    assert good.headers["X-Request-Id"] == "abc.DEF_1-2"
    assert good.json()["request_id"] == "abc.DEF_1-2"
    for bad in ("a b", "a\"b", "x" * 129, ""):
        made = daemon.request("GET", "/nothing", headers={"X-Request-Id": bad}).headers["X-Request-Id"]
        assert made and made != bad


def test_the_absolute_form_of_a_target_is_accepted(daemon):
    data = exchange(daemon, b"GET http://localhost/health?x=y HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n")
    assert statuses(data) == [200]


def test_paths_are_decoded_once_and_compared_exactly(daemon):
    assert daemon.request("GET", "/h%65alth").status == 200
    for path in ("/health/", "//health", "/./health", "/Health", "/%2568ealth", "/%2Fhealth", "/v1%2Fcapabilities"):
        assert daemon.request("GET", path).status == 404, path


def test_unknown_paths_and_methods(daemon):
    missing = daemon.request("GET", "/nothing")
    assert missing.status == 404 and missing.json()["detail"] == "Not Found"
    wrong = daemon.request("DELETE", "/health")
    assert wrong.status == 405 and wrong.headers["Allow"] == "GET, HEAD"
    assert daemon.request("BREW", "/execute").status == 405


def test_path_comes_before_auth_before_method_before_body(daemon):
    stranger = {"Authorization": "Bearer nobody"}
    big = b"x" * (5 << 20)
    assert daemon.request("POST", "/nothing", headers=stranger).status == 404
    assert daemon.request("DELETE", "/execute", headers=stranger).status == 401
    assert daemon.request("DELETE", "/execute").status == 405
    head = b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(big)
    assert statuses(exchange(daemon, head, big)) == [401]


# ---- permission to send ----


def test_permission_is_given_only_when_the_request_is_welcome(daemon):
    body = program("echo hi")
    expect = b"Expect: 100-continue\r\nContent-Length: %d\r\n"
    with daemon.socket(DEADLINE) as sock:
        sock.sendall(post(daemon, b"", CLOSE + expect % len(body)))
        first = receive_until(sock, lambda d: b"\r\n\r\n" in d)
        assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert statuses(receive_all(sock)) == [200]
    assert statuses(exchange(daemon, post(daemon, b"", expect % (64 << 20)))) == [413]
    assert statuses(exchange(daemon, b"POST /execute HTTP/1.1\r\n" + HOST + expect % 2 + b"\r\n")) == [401]
    assert statuses(exchange(daemon, b"POST /nothing HTTP/1.1\r\n" + HOST + expect % 2 + b"\r\n")) == [404]


# ---- sizes ----


def test_heads_are_bounded(daemon):
    start = b"GET /health HTTP/1.1\r\n" + HOST
    assert statuses(exchange(daemon, start + b"X-Big: " + b"a" * (1 << 20))) == [431]
    assert statuses(exchange(daemon, start + b"X: y\r\n" * 10000 + b"\r\n")) == [431]
    assert statuses(exchange(daemon, start + b"X: y\r\n" * 64 + b"\r\n")) == [431]
    assert statuses(exchange(daemon, start + CLOSE + b"X: y\r\n" * 62 + b"\r\n")) == [200]
    assert statuses(exchange(daemon, start + CLOSE + b"X: " + b"y" * 15000 + b"\r\n\r\n")) == [200]
    assert statuses(exchange(daemon, b"GET /" + b"a" * (1 << 20))) == [414]
    assert statuses(exchange(daemon, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")) == [414]


def test_a_body_beyond_the_limit_is_refused_and_the_client_hears_it(daemon):
    length = 5 << 20
    block = b"x" * length
    assert statuses(exchange(daemon, post(daemon, b"", b"Content-Length: %d\r\n" % length))) == [413]
    data = exchange(daemon, post(daemon, b"%x\r\n" % length, b"Transfer-Encoding: chunked\r\n"), block)
    assert statuses(data) == [413]
    # A client that sends a little more before it reads must still get the answer.
    with daemon.socket(DEADLINE) as sock:
        sock.sendall(post(daemon, b"", b"Content-Length: %d\r\n" % length) + b"x" * 100000)
        assert statuses(receive_until(sock, lambda d: b"\r\n\r\n" in d)) == [413]


def answered_while_sending(sock, first):
    """Sends the first part and returns once the answer is there, of which nothing is read."""
    sock.sendall(first)
    assert select.select([sock], [], [], DEADLINE)[0], "an answer before the body has ended"


def test_a_client_that_reads_only_after_its_whole_refused_body_hears_why(daemon):
    """None of its sends may fail, although it was refused long before."""
    length, block = 24 << 20, b"x" * (1 << 20)
    with daemon.socket(DEADLINE) as sock:
        answered_while_sending(sock, post(daemon, block, b"Content-Length: %d\r\n" % length))
        for _ in range(length // len(block) - 1):
            sock.sendall(block)
        data = b""
        while piece := sock.recv(65536):  # to the end: there is no reset
            data += piece
        assert statuses(data) == [413]


@pytest.mark.skipif(os.environ.get("SBX_LONG") != "1", reason="takes as long as a silent client is waited for")
def test_a_refused_client_that_goes_on_sending_slowly_hears_why(daemon):
    with daemon.socket(DEADLINE) as sock:
        answered_while_sending(sock, post(daemon, b"x" * 1000, b"Content-Length: %d\r\n" % (24 << 20)))
        for _ in range(8):  # longer than that in all, with shorter pauses
            time.sleep(1)
            sock.sendall(b"x" * 1000)
        assert statuses(receive_until(sock, lambda d: b"\r\n\r\n" in d)) == [413]


def test_the_rest_of_a_small_refused_body_does_not_become_a_request(daemon):
    smuggled = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
    head = b"POST /execute HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(smuggled)
    last = b"GET /nothing HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n"
    assert statuses(exchange(daemon, head + smuggled + last)) == [401, 404]


def test_requests_without_reading_do_not_fill_the_memory(daemon):
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"

    def resident():
        with open(f"/proc/{daemon.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    with daemon.socket(DEADLINE) as sock:
        sock.settimeout(2)
        sent = 0
        with pytest.raises(TimeoutError):  # the server stops reading
            while sent < 256 << 20:
                sent += sock.send(ask * 1000)
        assert daemon.health().status == 200
        assert resident() - before < 32 << 20
        sock.settimeout(DEADLINE)
        assert statuses(receive_until(sock, lambda d: len(d) > 1 << 20))[0] == 200


# ---- time ----


@pytest.fixture(scope="module")
def hasty(make_daemon_module):
    """A daemon with short deadlines."""
    return make_daemon_module(HEADER_DEADLINE_MS=300, IDLE_MS=300, BODY_WINDOW_MS=300, BODY_MIN_BYTES=64,
                              NODE_ZYGOTE="false")


def test_a_head_that_never_ends_is_cut_off(hasty):
    with hasty.socket(DEADLINE) as sock:
        sock.sendall(b"GET /health HTTP/1.1\r\n" + HOST)
        sock.settimeout(0.05)
        data, closed = b"", False
        for _ in range(int(DEADLINE / 0.05)):  # a byte now and then must not help
            try:
                sock.sendall(b"X")
                piece = sock.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                closed = True
                break
            data += piece
            closed = closed or not piece
            if closed:
                break
        assert closed
        assert statuses(data) in ([408], [])


def test_bare_line_feeds_and_tls_are_never_a_head(hasty):
    for garbage in (b"GET /health HTTP/1.1\nHost: a\n\n", bytes.fromhex("16030100c8010000c40303") + bytes(190)):
        assert 200 not in statuses(exchange(hasty, garbage))


def test_a_silent_connection_is_closed_without_a_word(hasty):
    with hasty.socket(DEADLINE) as sock:
        assert receive_all(sock) == b""
    with hasty.socket(DEADLINE) as sock:
        sock.sendall(GET)
        assert statuses(receive_all(sock)) == [200]


def test_a_body_that_trickles_is_cut_off(hasty):
    for framing in (b"Content-Length: 1000\r\n", b"Transfer-Encoding: chunked\r\n"):
        assert statuses(exchange(hasty, post(hasty, b"8\r\n{", framing))) == [408]


def test_a_slow_answer_is_not_idle_time(hasty):
    result = hasty.execute("sleep 1; echo done", "shell")
    assert result["stdout"] == "done\n"


# ---- clients that leave ----


@pytest.mark.parametrize("how", ["close", "half-close", "reset", "close behind unread input", "reset behind unread input"])
def test_a_run_ends_when_its_client_leaves(daemon, how):
    mark = marker()
    body = program(f"bash -c 'exec -a {mark} sleep 600'")
    sock = daemon.socket(DEADLINE)
    sock.sendall(post(daemon, body, b"Content-Length: %d\r\n" % len(body)))
    wait_until(lambda: processes_with(mark), "the run has started")
    if "unread" in how:
        sock.sendall(b"G" * 60000)
    if "reset" in how:
        drop_with_reset(sock)
    elif how == "half-close":
        sock.shutdown(socket.SHUT_WR)
    else:
        sock.close()
    wait_until(lambda: not processes_with(mark), "the run has been ended")
    sock.close()


@pytest.mark.parametrize("path, body, answer", [
    ("/run", b'{"cmd":"sleep 0.3; echo answered"}', b'"stdout":"answered\\n"'),
    ("/write_file", b'{"path":"/tmp/half","content":"x"}', b'"success":true'),
    ("/list_dir", b'{"path":"/workspace"}', b'"entries":'),
])
def test_what_goes_on_anyway_is_answered_to_a_client_that_has_closed_its_side(daemon, path, body, answer):
    with daemon.socket(DEADLINE) as sock:
        sock.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                     % (path.encode(), daemon.secret.encode(), len(body)) + body)
        sock.shutdown(socket.SHUT_WR)
        data = receive_until(sock, lambda d: answer in d.replace(b": ", b":"))
    assert statuses(data) == [200]


def connections_held(daemon):
    """Descriptors of the daemon that are sockets at its port. Others come and go with prepared sandboxes."""
    ours = set()
    for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = row.split()
        if int(fields[1].split(":")[1], 16) == daemon.port:
            ours.add(f"socket:[{fields[9]}]")
    held = 0
    for fd in open_files(daemon.pid):
        with contextlib.suppress(OSError):  # closed meanwhile
            held += os.readlink(f"/proc/{daemon.pid}/fd/{fd}") in ours
    return held


def test_many_clients_that_leave_leave_nothing_behind(daemon):
    before = connections_held(daemon)
    assert before > 0  # it listens
    for i in range(200):
        sock = daemon.socket(DEADLINE)
        sock.sendall((GET, GET[:20], post(daemon, b"{", b"Content-Length: 100\r\n"), b"")[i % 4])
        if i % 2:
            drop_with_reset(sock)
        else:
            sock.close()
    wait_until(lambda: connections_held(daemon) <= before, "their descriptors are closed")
    assert daemon.health().status == 200


# ---- limits of the daemon ----


def test_connections_beyond_the_limit_get_503(make_daemon):
    """When all places are taken by requests under way, a new connection hears 503."""
    daemon = make_daemon(CONNECTIONS_MAX=16)
    name = marker()
    body = program(f"exec -a {name} sleep 1000")
    busy = [daemon.socket(DEADLINE) for _ in range(16)]
    for sock in busy:
        sock.sendall(post(daemon, body, b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)))
    wait_until(lambda: len(processes_with(name)) == 16, "all of them run")
    with daemon.socket(DEADLINE) as sock:
        data = receive_all(sock)
    assert statuses(data) == [503] and b"\r\nRetry-After: " in data
    for sock in busy:
        sock.close()
    wait_until(lambda: statuses(exchange(daemon, b"GET /health HTTP/1.0\r\n\r\n")) == [200], "there is room again")


STRANGERS = {
    "idle": GET,
    "half a head": GET[:20],
    "silent": b"",
    "wrong secret": b"POST /execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer no\r\nContent-Length: 100000\r\n\r\n",
    "slow body": b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_connections_without_the_secret_do_not_keep_out_those_with_it(make_daemon, kind):
    """Three times as many as there are places, and each comes back when it was sent away."""
    daemon = make_daemon(CONNECTIONS_MAX=64, HEADER_DEADLINE_MS=600000, IDLE_MS=600000, BODY_WINDOW_MS=600000)
    kept = daemon.connect()
    assert kept.request("GET", "/info").status == 200
    socks = []
    try:
        for i in range(3 * 64):
            socks.append(daemon.socket(DEADLINE))
            with contextlib.suppress(OSError):  # sent away meanwhile
                socks[-1].sendall(STRANGERS[kind])
        for i in range(20):
            assert kept.request("GET", "/info").status == 200
            assert daemon.request("GET", "/info").status == 200, "with a connection of its own"
            socks.append(daemon.socket(DEADLINE))
            with contextlib.suppress(OSError):
                socks[-1].sendall(STRANGERS[kind])
        assert daemon.execute("echo in", "shell")["stdout"] == "in\n"
    finally:
        kept.close()
        for sock in socks:
            sock.close()


@pytest.mark.parametrize("kind", STRANGERS)
def test_a_crowd_that_comes_at_once_does_not_keep_out_the_secret(make_daemon, kind):
    """The daemon is stopped while they come: all of them, and what they have sent, are there in one turn of its loop."""
    daemon = make_daemon(CONNECTIONS_MAX=64, HEADER_DEADLINE_MS=600000, IDLE_MS=600000, BODY_WINDOW_MS=600000)
    trusted = b"GET /info HTTP/1.1\r\n" + HOST + b"Authorization: Bearer " + daemon.secret.encode() + b"\r\n\r\n"
    socks, ours = [], []
    daemon.signal(signal.SIGSTOP)
    try:
        for i in range(300):
            (ours if i % 30 == 15 else socks).append(sock := daemon.socket(DEADLINE))
            sock.sendall(trusted if i % 30 == 15 else STRANGERS[kind])
        daemon.signal(signal.SIGCONT)
        for sock in ours:
            assert statuses(receive_until(sock, lambda d: b"\r\n\r\n" in d)) == [200]
        assert daemon.request("GET", "/info").status == 200, "with a connection of its own"
    finally:
        daemon.signal(signal.SIGCONT)
        for sock in socks + ours:
            sock.close()


def test_clients_cannot_take_the_descriptors_the_daemon_needs(make_daemon, tmp_path):
    files = 1200  # a sandbox wants 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need(hard == resource.RLIM_INFINITY or hard >= 2 * files, "too few descriptors for so many clients")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * files), hard))
    wrapper = tmp_path / "limited"
    wrapper.write_text(f"#!/bin/sh\nulimit -n {files}\nexec {BUILD}/sandbox-executor \"$@\"\n")
    wrapper.chmod(0o755)
    daemon = make_daemon(binary=wrapper, HEADER_DEADLINE_MS=600000)
    first = daemon.connect()
    assert first.request("GET", "/info").status == 200
    socks = [daemon.socket(DEADLINE) for _ in range(files)]
    assert receive_all(socks[0]) == b""  # idle longest: it gave way
    assert connections_held(daemon) < files * 3 / 4 + 10
    assert first.execute("echo still here", "shell")["stdout"] == "still here\n"
    first.close()
    for sock in socks:
        sock.close()
    wait_until(lambda: statuses(exchange(daemon, b"GET /health HTTP/1.0\r\n\r\n")) == [200], "there is room again")


def test_a_kept_connection_is_closed_by_shutdown_and_a_request_finishes(make_daemon):
    daemon = make_daemon()
    mark = marker()
    idle, busy = daemon.socket(DEADLINE), daemon.socket(DEADLINE)
    idle.sendall(GET)
    receive_until(idle, lambda d: b"\r\n\r\n" in d)
    body = program(f"bash -c 'exec -a {mark} sleep 3'; echo finished")
    busy.sendall(post(daemon, body, b"Content-Length: %d\r\n" % len(body)))
    wait_until(lambda: processes_with(mark), "the run has started")
    daemon.signal(signal.SIGTERM)
    assert receive_all(idle) == b""
    data = receive_all(busy)
    assert statuses(data) == [200] and b'"stdout":"finished\\n"' in data
    assert b"\r\nConnection: close\r\n" in data
    idle.close()
    busy.close()
    assert daemon.wait() == 143
