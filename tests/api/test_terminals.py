# SPDX-License-Identifier: MIT
"""Terminals inside a sandbox, over WebSockets."""
import json
import os
import random
import re
import stat
import urllib.parse

import pytest

import harness
import sockets
from sockets import Closed, Refused, WebSocket
from test_processes import Process, Sandbox, sandbox  # noqa: F401 a fixture

SHELL = "exec env PS1='$ ' bash --norc --noprofile -i"


def terminal(sandbox, headers=None, **query):
    query = {"command": SHELL, **query}
    return WebSocket(sandbox.daemon, sandbox.path + "/terminals?" + urllib.parse.urlencode(query), headers)


def begun(ws):
    start = ws.receive()
    assert start["type"] == "start", start
    return start["process"]


def ended(ws):
    """What is still said, and the process."""
    got = b""
    while isinstance(message := ws.receive(), bytes):
        got += message
    assert message["type"] == "end", message
    with pytest.raises(Closed) as closed:
        ws.receive()
    assert closed.value.code == 1000
    return got, message["process"]


def line(ws, text, mark):
    """Types a line; what the terminal says until the mark, which the line must not contain."""
    ws.send(text.encode() + b"\r")
    return ws.read_until(mark)


# ---- it is one ----


def test_it_is_a_terminal_of_the_sandbox(sandbox):  # noqa: F811
    with terminal(sandbox, columns=100, rows=30, command="tty; stty size; echo $TERM; test -t 0 -a -t 1 -a -t 2 && echo all; "
                                                        "ps -o tty= -p $$; : > /dev/tty && echo controlling") as ws:
        process = begun(ws)
        assert process["terminal"] == {"columns": 100, "rows": 30}
        got, process = ended(ws)
    assert re.fullmatch(rb"/dev/pts/\d+\r\n30 100\r\nxterm-256color\r\nall\r\npts/\d+ *\r\ncontrolling\r\n", got), got
    assert process["exit_code"] == 0


def test_its_size_can_change(sandbox):  # noqa: F811
    with terminal(sandbox, command="trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done") as ws:
        pid = begun(ws)["pid"]
        ws.read_until(b"ready\r\n")
        ws.send({"type": "resize", "columns": 132, "rows": 43})
        ws.read_until(b"43 132\r\n")
        assert sandbox.request("POST", f"/processes/{pid}/size", json={"columns": 7, "rows": 65535}).status == 204
        ws.read_until(b"65535 7\r\n")
        assert sandbox.request("GET", f"/processes/{pid}").json()["terminal"] == {"columns": 7, "rows": 65535}


def test_keys_make_signals(sandbox):  # noqa: F811
    with terminal(sandbox) as ws:
        begun(ws)
        ws.read_until(b"$ ")
        ws.send(b"sleep 1000\r")
        harness.wait_until(lambda: running(sandbox, "sleep 1000"), "the program")
        ws.send(b"\x03")
        ws.read_until(b"$ ")
        assert b"130" in line(ws, "echo st''atus $?", b"status 130\r\n")
        ws.send(b"\x04")
        got, process = ended(ws)
        assert b"exit" in got and process["exit_code"] == 0


def test_jobs_are_controlled(sandbox):  # noqa: F811
    with terminal(sandbox) as ws:
        begun(ws)
        ws.read_until(b"$ ")
        ws.send(b"sleep 1000\r")
        ws.read_until(b"sleep 1000\r\n")
        pid = harness.wait_until(lambda: running(sandbox, "sleep 1000"), "the job")
        ws.send(b"\x1a")
        ws.read_until(b"Stopped")
        assert b"Running" in line(ws, "bg; jobs", b"Running")
        line(ws, "kill %1; wait; echo go''ne", b"gone\r\n")
        assert running(sandbox, "sleep 1000") is None and pid


def running(sandbox, command):  # noqa: F811
    got = sandbox.request("POST", "/run", json={"cmd": f"pgrep -fx '{command}'"}).json()
    return got["stdout"].strip() or None


def test_bytes_go_through_as_they_are(sandbox):  # noqa: F811
    with terminal(sandbox, command="stty raw -echo; echo ready; exec cat") as ws:
        begun(ws)
        ws.read_until(b"ready")
        every = random.Random(3).randbytes(10240)
        for at in range(0, len(every), 512):
            ws.send(every[at:at + 512])
        assert ws.read_until(every[-700:]).endswith(every)


def test_it_ends_with_its_program_whatever_stays_behind(sandbox):  # noqa: F811
    with terminal(sandbox, command="trap '' HUP; sleep 1000 & seq 1 5000; exit 4") as ws:
        begun(ws)
        got, process = ended(ws)
    assert got == b"".join(b"%d\r\n" % i for i in range(1, 5001)) and process["exit_code"] == 4
    assert running(sandbox, "sleep 1000")


def test_leaving_and_coming_back(sandbox):  # noqa: F811
    with terminal(sandbox, tag="mine") as ws:
        process = begun(ws)
        ws.read_until(b"$ ")
        line(ws, "x=remembered", b"$ ")
    for _ in range(3):
        with WebSocket(sandbox.daemon, f"{sandbox.path}/terminals/mine?from=now") as ws:
            assert begun(ws)["pid"] == process["pid"]
            line(ws, "echo $x'!'", b"remembered!\r\n")
    with WebSocket(sandbox.daemon, f"{sandbox.path}/terminals/{process['pid']}") as ws:
        begun(ws)
        assert b"$ x=remembered\r\n" in ws.read_until(b"remembered!")


def test_one_that_is_not_kept_ends_with_its_client(sandbox):  # noqa: F811
    with terminal(sandbox, keep="false") as ws:
        pid = begun(ws)["pid"]
        ws.read_until(b"$ ")
        assert sandbox.request("GET", f"/processes/{pid}").json()["status"] == "running"
    harness.wait_until(lambda: sandbox.request("GET", f"/processes/{pid}").json()["status"] == "killed", "its end")


def test_two_clients_share_one(sandbox):  # noqa: F811
    with terminal(sandbox) as one:
        pid = begun(one)["pid"]
        with WebSocket(sandbox.daemon, f"{sandbox.path}/terminals/{pid}") as two:
            begun(two)
            line(two, "echo sh''ared", b"shared\r\n")
            one.read_until(b"shared\r\n")


def test_it_is_found_by_the_tag_and_begins_in_the_directory_of_its_query(sandbox):  # noqa: F811
    tag = "T" * 100
    with terminal(sandbox, tag=tag, cwd="/tmp") as ws:
        pid = begun(ws)["pid"]
        listed = [p for p in sandbox.request("GET", "/processes").json()["processes"] if p["pid"] == pid]
        assert listed[0]["tag"] == tag
        assert sandbox.request("GET", f"/processes/{tag}").json()["pid"] == pid
        line(ws, "pwd", b"/tmp\r\n")


def test_a_process_with_a_terminal_is_read_as_events_too(sandbox):  # noqa: F811
    process = sandbox.start("tty; cat", terminal={"columns": 80, "rows": 24})
    with process.events() as events:
        assert re.fullmatch(rb"/dev/pts/\d+\r\n", events.until(b"\n")[0])
        assert process.write(b"line\n").status == 204
        events.until(b"line\r\nline\r\n")
    assert process.request("DELETE", "/stdin").status == 409
    assert process.write(b"\x04").status == 204
    assert process.output()["exit_code"] == 0


# ---- what a client can do wrong ----


@pytest.mark.parametrize("query", [{"columns": 0}, {"columns": "x"}, {"rows": 65536}, {"rows": -1}, {"rows": ""},
                                   {"tag": "a b"}, {"cwd": "/nowhere"}])
def test_a_wrong_query_is_refused_before_the_socket_opens(sandbox, query):  # noqa: F811
    with pytest.raises(Refused) as refused:
        terminal(sandbox, **query)
    assert refused.value.status == 400, refused.value
    assert sandbox.request("GET", "/processes").json() == {"processes": []}


@pytest.mark.parametrize("headers, status", [
    ({"Upgrade": None}, 426),
    ({"Connection": "keep-alive"}, 426),
    ({"Upgrade": "h2c"}, 426),
    ({"Sec-WebSocket-Version": "8"}, 426),
    ({"Sec-WebSocket-Version": None}, 426),
    ({"Sec-WebSocket-Key": None}, 400),
    ({"Sec-WebSocket-Key": "short"}, 400),
    ({"Sec-WebSocket-Key": "x" * 24}, 400),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Authorization": None}, 401),
    ({"Authorization": "Bearer wrong"}, 401),
])
def test_a_handshake_that_is_none(sandbox, headers, status):  # noqa: F811
    with pytest.raises(Refused) as refused:
        terminal(sandbox, headers)
    assert refused.value.status == status, refused.value
    assert sandbox.request("GET", "/processes").json() == {"processes": []}


def test_the_own_origin_is_welcome(sandbox):  # noqa: F811
    with terminal(sandbox, {"Origin": f"http://{sandbox.daemon.host}:{sandbox.daemon.port}"}) as ws:
        begun(ws)


def test_only_a_terminal_is_a_terminal(sandbox):  # noqa: F811
    process = sandbox.start("sleep 1000")
    with pytest.raises(Refused) as refused:
        WebSocket(sandbox.daemon, f"{sandbox.path}/terminals/{process.pid}")
    assert refused.value.status == 409
    assert process.request("POST", "/size", json={"columns": 1, "rows": 1}).status == 409
    with pytest.raises(Refused) as refused:
        WebSocket(sandbox.daemon, f"{sandbox.path}/terminals/77777")
    assert refused.value.status == 404


@pytest.mark.parametrize("text", ["", "{", "[]", "1", '{"type": 1}', '{"type": "nothing"}', '{"type": "resize"}',
                                  '{"type": "input_end", "column": 1}',
                                  '{"type": "resize", "columns": 0, "rows": 1}', '{"type": "signal", "signal": "NO"}'])
def test_a_text_message_that_is_no_order_closes(sandbox, text):  # noqa: F811
    with terminal(sandbox) as ws:
        begun(ws)
        ws.frame(sockets.TEXT, text.encode())
        with pytest.raises(Closed) as closed:
            while True:
                ws.receive()
        assert closed.value.code == 1008, closed.value
        assert "column\"" not in text or "did you mean 'columns'?" in str(closed.value), closed.value


@pytest.mark.parametrize("frame, code", [
    ((sockets.BINARY, b"x", True, False), 1002),       # not masked
    ((3, b"x"), 1002),                                 # an opcode that is none
    ((sockets.TEXT, b"\xff"), 1007),                   # text that is none
    ((sockets.BINARY, b"x" * ((1 << 20) + 1)), 1009),  # too long
    ((sockets.PING, b"x" * 126), 1005),                # a control frame that is too long: closed without a code
    ((0, b"x"), 1002),                                 # a fragment of nothing
])
def test_frames_that_are_forbidden_close(sandbox, frame, code):  # noqa: F811
    with terminal(sandbox) as ws:
        pid = begun(ws)["pid"]
        ws.frame(*frame)
        with pytest.raises(Closed) as closed:
            while True:
                ws.receive()
        assert closed.value.code == code, closed.value
        assert sandbox.request("GET", f"/processes/{pid}").json()["status"] == "running"


def test_pings_and_closing(sandbox):  # noqa: F811
    with terminal(sandbox, command="sleep 1000") as ws:
        begun(ws)
        ws.frame(sockets.PING, b"hello")
        assert ws.receive_frame() == (sockets.PONG, True, b"hello")
        ws.frame(sockets.BINARY, b"a", final=False)
        ws.frame(sockets.PING, b"between")
        assert ws.receive_frame() == (sockets.PONG, True, b"between")
        ws.frame(0, b"b")
        assert ws.read_until(b"ab")
        ws.frame(sockets.CLOSE, (1000).to_bytes(2, "big") + b"bye")
        with pytest.raises(Closed) as closed:
            ws.receive()
        assert closed.value.code == 1000
        assert ws.socket.recv(1) == b""


def test_a_client_that_does_not_read_bounds_memory_and_holds_up_nobody(sandbox):  # noqa: F811
    before = resident(sandbox.daemon)
    with WebSocket(sandbox.daemon, sandbox.path + "/terminals?command=yes", receive_buffer=4096) as ws:
        pid = begun(ws)["pid"]

        def written():
            return sandbox.request("GET", f"/processes/{pid}").json()["output"]["bytes"]

        harness.wait_until(lambda: written() > 32 << 20, "output after it is not waited for any more")
        assert resident(sandbox.daemon) - before < 24 << 20
    assert sandbox.request("DELETE", f"/processes/{pid}").status == 204


def resident(daemon):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{daemon.pid}/status").read()).group(1)) << 10


# ---- whose terminal ----


def test_a_sandbox_has_a_limit_of_terminals(sandbox):  # noqa: F811
    program = ("import os\nn = 0\ntry:\n  while True: os.openpty(); n += 1\nexcept OSError as e: print(n, e.errno, flush=True)\n"
               "input()")
    taker = sandbox.start(argv=["python3", "-c", program], stdin=True)
    with taker.events() as events:
        assert b"64 28" in events.until(b"\n")[0]
    refused = sandbox.request("POST", "/processes", json={"command": "true", "terminal": {"columns": 80, "rows": 24}})
    assert refused.status == 400 and "terminal" in refused.text, refused
    taker.write(b"\n")
    taker.output()
    harness.wait_until(lambda: sandbox.request("POST", "/processes", json={"command": "true", "terminal": {"columns": 80, "rows": 24}})
                       .status == 201, "a terminal once the others are gone")


@pytest.mark.skipif(not os.path.exists("/dev/ptmx"), reason="the host has no terminals")
def test_a_terminal_of_the_host_is_not_seen(sandbox):  # noqa: F811
    master, slave = os.openpty()
    try:
        name, number = os.ttyname(slave), os.fstat(slave)
        code = f"""
import fcntl, os, stat, termios
def attempt(what, fn):
    try: print(what, fn(), flush=True)
    except OSError as e: print(what, 'E' + str(e.errno), flush=True)
print('device', os.fstat(0).st_dev)
attempt('sti', lambda: fcntl.ioctl(0, termios.TIOCSTI, b'x'))
attempt('own', lambda: os.ttyname(0) and os.stat('/dev/tty').st_rdev)
attempt('names', lambda: sorted(os.listdir('/dev/pts')))
attempt('there', lambda: os.stat({name!r}).st_dev)
"""
        with terminal(sandbox, command="exec python3 -c " + "'" + code.replace("'", '"') + "'") as ws:
            begun(ws)
            said = dict(row.split(" ", 1) for row in ended(ws)[0].decode().strip().split("\r\n"))
        assert said["sti"] == "E1", said
        assert said["names"] in ("['0', 'ptmx']", '["0", "ptmx"]'), said
        assert said["device"] != str(number.st_dev), "its devpts is the host's"
        assert said["there"] == "E2" or said["there"] != str(number.st_dev), said
        assert stat.S_ISCHR(number.st_mode)
    finally:
        os.close(master)
        os.close(slave)


def test_the_answer_of_the_documentation(daemon):
    paths = json.loads(daemon.request("GET", "/openapi.json").body)["paths"]
    assert "101" in paths["/v1/sandboxes/{id}/terminals"]["get"]["responses"]
    assert Process and any(re.fullmatch(r"/v1/sandboxes/{id}/processes/{\w+}/output", path) for path in paths)
