# SPDX-License-Identifier: MIT
"""Processes of a persistent sandbox that outlive the request that started them."""
import base64
import concurrent.futures
import json
import random
import socket

import pytest

import harness
import sockets


class Sandbox:
    def __init__(self, daemon, **fields):
        self.daemon = daemon
        made = daemon.request("POST", "/v1/sandboxes", json=fields)
        assert made.status == 201, made.text
        self.path = "/v1/sandboxes/" + made.json()["id"]

    def request(self, method, path, **fields):
        return self.daemon.request(method, self.path + path, **fields)

    def start(self, command=None, **fields):
        got = self.request("POST", "/processes", json={**({"command": command} if command else {}), **fields})
        assert got.status == 201, got.text
        return Process(self, got.json())


class Process:
    def __init__(self, sandbox, about):
        self.sandbox, self.about, self.pid = sandbox, about, about["pid"]
        self.path = f"/processes/{self.pid}"

    def request(self, method, path="", **fields):
        return self.sandbox.request(method, self.path + path, **fields)

    def write(self, data, close=False):
        return self.request("POST", "/stdin" + ("?close=true" if close else ""), body=data)

    def signal(self, name, **fields):
        return self.request("POST", "/signal", json={"signal": name, **fields})

    def get(self):
        got = self.request("GET")
        assert got.status == 200, got.text
        return got.json()

    def events(self, **fields):
        return Events(self, **fields)

    def output(self, **fields):
        """Everything until the end: stdout, stderr, gap, and the process."""
        out = {"stdout": b"", "stderr": b"", "terminal": b"", "gap": 0}
        with self.events(**fields) as events:
            for event, data, _ in events:
                if event == "end":
                    return {**out, **data["process"]}
                out[event] += data["bytes"] if event == "gap" else data["data"]
        raise AssertionError("the stream ended without an end")


class Events:
    """Server-sent events: (event, data, id), data decoded from base64."""

    def __init__(self, process, start=None, last=None):
        query = "" if start is None else f"?from={start}"
        self.connection = process.sandbox.daemon.connect()
        self.connection.send("GET", f"{process.sandbox.path}{process.path}/output{query}",
                             headers={"Last-Event-ID": None if last is None else str(last)})
        self.answer = self.connection.http.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.answer.close()
        self.connection.close()

    def __iter__(self):
        return self

    def __next__(self):
        fields = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if not line and not fields:
                raise StopIteration
            if not line:
                break
            name, value = line.split(": ", 1)
            fields[name] = value
        data = json.loads(fields["data"])
        if "data" in data:
            data["data"] = base64.b64decode(data["data"], validate=True)
        return fields["event"], data, int(fields["id"])

    def until(self, mark):
        """Joins what comes until these bytes are among it; what came and the number behind it."""
        got = b""
        for event, data, number in self:
            assert event in ("stdout", "stderr", "terminal"), (event, data)
            got += data["data"]
            if mark in got:
                return got, number
        raise AssertionError(f"the stream ended with {got[-200:]!r}")


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    assert made.request("DELETE", "").status == 204


# ---- starting and ending ----


def test_output_is_raw_and_streams_are_apart(sandbox):
    got = sandbox.start(r"printf 'a\000\377\n'; printf 'no newline' >&2; exit 3").output()
    assert got["stdout"] == b"a\0\xff\n" and got["stderr"] == b"no newline"
    assert (got["status"], got["exit_code"], got["reason"], got["signal"]) == ("failed", 3, "exit", None)
    assert got["output"] == {"from": 0, "bytes": 14, "closed": True}


def test_a_program_and_its_arguments_reach_it_as_they_are(sandbox):
    code = "import sys, os; print(sys.argv[1:], os.getcwd(), os.environ['X'])"
    got = sandbox.start(argv=["python3", "-c", code, "a b", "$HOME", "", "*"], cwd="/tmp", env={"X": "ä=1"}).output()
    assert got["stdout"].decode() == "['a b', '$HOME', '', '*'] /tmp ä=1\n", got
    by_path = sandbox.start(argv=["/bin/echo", "-n", "x"]).output()
    assert by_path["stdout"] == b"x" and by_path["command"] == "/bin/echo"
    assert by_path["config"]["args"] == ["-n", "x"]


def test_a_relative_directory_begins_where_commands_do(sandbox):
    assert sandbox.start("mkdir -p sub").output()["exit_code"] == 0
    assert sandbox.start("pwd", cwd="sub").output()["stdout"] == b"/workspace/sub\n"


@pytest.mark.parametrize("body, words", [
    ({}, "argv"),
    ({"command": "x", "argv": ["y"]}, "argv"),
    ({"argv": []}, "argv"),
    ({"command": "true", "cwd": "/nowhere"}, "directory"),
    ({"command": "true", "cwd": "a\0b"}, "NUL"),
    ({"argv": ["/bin/echo", "a\0b"]}, "NUL"),
    ({"command": "true", "env": {"A": "a\0b"}}, "env"),
    ({"command": "true", "env": {"A=B": "c"}}, ""),
    ({"command": "true", "tag": ".x"}, "tag"),
    ({"command": "true", "tag": "x" * 129}, "tag"),
    ({"command": "true", "terminal": {"columns": 0, "rows": 1}}, "columns"),
    ({"command": "true", "terminal": {"columns": 80}}, "rows"),
    ({"command": "true", "terminal": {"columns": 65536, "rows": 1}}, "columns"),
    ({"command": "true", "timeout": -1}, "timeout"),
    ({"command": 1}, "command"),
    ({"command": "true", "stdinn": True}, "stdinn"),
])
def test_what_cannot_be_started_says_why(sandbox, body, words):
    got = sandbox.request("POST", "/processes", json=body)
    assert got.status == 400 and words in got.text, got
    assert sandbox.request("GET", "/processes").json() == {"processes": []}


def test_a_program_that_is_not_there_ends_as_in_a_shell(sandbox):
    got = sandbox.start(argv=["no-such-program"]).output()
    assert got["exit_code"] == 127 and b"not found" in got["stderr"]
    got = sandbox.request("POST", "/processes", json={"argv": ["/no/such/program"]})
    assert got.status == 400 and "No such file" in got.text, got


def test_it_is_found_by_number_id_and_tag(sandbox):
    process = sandbox.start("sleep 1000", tag="server")
    for name in (process.pid, process.about["id"], "server"):
        assert sandbox.request("GET", f"/processes/{name}").json()["id"] == process.about["id"]
    assert [p["pid"] for p in sandbox.request("GET", "/processes").json()["processes"]] == [process.pid]
    for name in ("1", "99999999999999999999", "nobody", "%00", "-1"):
        assert sandbox.request("GET", f"/processes/{name}").status in (400, 404)
    assert process.request("DELETE").status == 204
    assert process.output()["reason"] == "cancelled"
    assert sandbox.start("true", tag="server").output()["exit_code"] == 0
    assert sandbox.request("GET", "/processes/server").json()["status"] == "completed"  # the newest of that name


def test_it_outlives_the_request_and_its_readers(sandbox):
    process = sandbox.start("echo one; read line; echo $line; read line; echo $line", stdin=True)
    with process.events() as events:
        assert events.until(b"one\n") == (b"one\n", 4)
    assert process.write(b"two\n").status == 204
    with process.events(start=4) as events:
        assert events.until(b"two\n") == (b"two\n", 8)
    assert process.get()["status"] == "running"
    assert process.write(b"three\n").status == 204
    assert process.output()["stdout"] == b"one\ntwo\nthree\n"
    assert process.output(start="now")["stdout"] == b""
    assert process.output(last=8)["stdout"] == b"three\n"


def test_a_deadline_kills_all_of_it(sandbox):
    got = sandbox.start("sleep 1001 & sleep 1002", timeout=0.2).output()
    assert (got["status"], got["reason"], got["exit_code"]) == ("killed", "timeout", -1)
    assert sandbox.start("pgrep -f 'sleep 100[12]'").output()["stdout"] == b""


def test_its_streams_end_with_the_last_that_holds_them(sandbox):
    assert sandbox.start("mkfifo /tmp/fifo").output()["exit_code"] == 0
    process = sandbox.start("(read line < /tmp/fifo; echo late) & exit 7")
    harness.wait_until(lambda: process.get()["status"] == "failed", "the end of the program")
    assert process.get()["output"] == {"from": 0, "bytes": 0, "closed": False}
    sandbox.start("echo go > /tmp/fifo")
    got = process.output()
    assert got["stdout"] == b"late\n" and got["exit_code"] == 7


# ---- signals ----


def test_signals_reach_the_group_or_the_process_alone(sandbox):
    child = "python3 -c \"import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: (print('child', flush=True)));" \
            " print('ready', flush=True); [time.sleep(1000) for _ in range(3)]\" & trap 'echo parent' USR1; wait; wait; wait"
    process = sandbox.start(child)
    with process.events() as events:
        events.until(b"ready\n")
        assert process.signal("SIGUSR1", to="process").status == 204
        assert events.until(b"parent\n")[0] == b"parent\n"
        assert process.signal("usr1").status == 204
        got = events.until(b"child\n")[0]
        if b"parent" not in got:
            events.until(b"parent\n")
        assert process.signal("9").status == 204
        last = [e for e in events if e[0] == "end"][0][1]["process"]
    assert (last["status"], last["signal"], last["reason"]) == ("killed", 9, "signal")
    assert process.signal("SIGTERM").status == 409
    assert process.request("DELETE").status == 409


@pytest.mark.parametrize("name", ["", "SIG", "SIGNOPE", "0", "65", "-1", "1e1"])
def test_a_signal_that_there_is_not(sandbox, name):
    process = sandbox.start("sleep 1000")
    assert process.signal(name).status == 400
    assert process.get()["status"] == "running"


# ---- standard input ----


def test_input_is_empty_unless_asked_for(sandbox):
    process = sandbox.start("cat; echo end")
    assert process.output()["stdout"] == b"end\n"
    assert process.write(b"x").status == 409
    closed = sandbox.start("sleep 1000")
    assert closed.write(b"x").status == 409 and closed.request("DELETE", "/stdin").status == 409


def test_input_of_any_size_comes_through_in_order(sandbox):
    data = random.Random(5).randbytes(9 << 20)
    process = sandbox.start("cksum", stdin=True)
    half = len(data) // 2
    assert process.write(data[:half]).status == 204
    assert process.write(data[half:], close=True).status == 204
    want = sandbox.start("cksum", stdin=True)
    assert want.write(data, close=True).status == 204
    assert process.output()["stdout"] == want.output()["stdout"] != b""


def test_the_end_of_input_is_seen(sandbox):
    process = sandbox.start("cat; echo end", stdin=True)
    assert process.write(b"some\n").status == 204
    assert process.request("DELETE", "/stdin").status == 204
    assert process.output()["stdout"] == b"some\nend\n"


def test_input_that_is_not_read_holds_up_its_writer_alone(sandbox):
    process = sandbox.start("read line; echo $line; exec sleep 1000", stdin=True)
    assert process.write(b"first\n").status == 204
    with process.events() as events:
        events.until(b"first\n")
    with sandbox.daemon.socket() as slow:
        slow.sendall((f"POST {sandbox.path}{process.path}/stdin HTTP/1.1\r\nHost: x\r\n"
                      f"Authorization: Bearer {sandbox.daemon.secret}\r\nContent-Length: 100000000\r\n\r\n").encode())
        slow.settimeout(1)
        sent = 0
        with pytest.raises(socket.timeout):
            while True:
                sent += slow.send(b"x" * 65536)
        assert sent < 32 << 20
        assert sandbox.start("echo other").output()["stdout"] == b"other\n"
    assert process.request("DELETE").status == 204
    assert process.output()["reason"] == "cancelled"


def test_a_writer_is_told_when_nobody_reads_any_more(sandbox):
    process = sandbox.start("exec <&-; echo closed; exec sleep 1000", stdin=True)
    with process.events() as events:
        events.until(b"closed\n")
    assert process.write(b"x" * 300000).status == 409


# ---- readers ----


def test_many_readers_see_the_same(sandbox):
    process = sandbox.start("read line; seq 1 20000", stdin=True)
    want = b"".join(b"%d\n" % i for i in range(1, 20001))
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        readers = [pool.submit(process.output) for _ in range(12)]
        assert process.write(b"go\n").status == 204
        for reader in readers:
            got = reader.result()
            assert got["stdout"] == want and got["gap"] == 0


def test_a_reader_that_stalls_holds_up_no_other_and_is_told_what_it_missed(sandbox):
    total = 24 << 20
    process = sandbox.start(f"read line; head -c {total} /dev/zero; echo; read line", stdin=True)
    with sockets.WebSocket(sandbox.daemon, f"{sandbox.path}{process.path}/output", receive_buffer=4096) as stalled:
        assert stalled.receive()["type"] == "start"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            fast = pool.submit(process.output)
            assert process.write(b"go\n").status == 204
            harness.wait_until(lambda: process.get()["output"]["bytes"] == total + 1, "all of the output")
            assert process.write(b"go\n").status == 204
            got = fast.result()
            assert len(got["stdout"]) == total + 1 and got["gap"] == 0
        got, gap = 0, 0
        with pytest.raises(sockets.Closed) as closed:
            while True:
                message = stalled.receive()
                if isinstance(message, bytes):
                    got += len(message) - 1
                elif message["type"] == "gap":
                    gap += message["bytes"]
                else:
                    assert message["type"] == "end"
        assert closed.value.code == 1000
        assert got + gap == total + 1 and gap > 0


def test_a_process_without_a_reader_does_not_wait(sandbox):
    process = sandbox.start("head -c 5000000 /dev/zero; echo done >&2")
    harness.wait_until(lambda: process.get()["status"] == "completed", "the end")
    got = process.output()
    assert got["gap"] + len(got["stdout"]) == 5000000 and got["gap"] > 0 and got["stderr"] == b"done\n"
    assert process.get()["output"]["from"] == got["gap"]


def test_its_only_reader_slows_it_and_loses_nothing(sandbox):
    total = 12 << 20
    process = sandbox.start(f"head -c {total} /dev/zero")
    with process.events() as events:
        seen, gap = 0, 0
        for event, data, _ in events:
            if event == "gap":
                gap += data["bytes"]
            elif event == "stdout":
                seen += len(data["data"])
    assert (seen, gap) == (total, 0)


def reattach(process, times, choice):
    """Leaves after every few events and comes back where it was; what came in all."""
    got, at = [], 0
    for _ in range(times):
        with process.events(start=at) as events:
            for _ in range(choice.randrange(1, 4)):
                event, data, at = next(events)
                assert event in ("stdout", "end"), event
                if event == "end":
                    return b"".join(got)
                got.append(data["data"])
    return b"".join(got) + process.output(start=at)["stdout"]


def check_reattachments(sandbox, readers, times):
    code = f"import sys, time\nfor i in range({times * 4}):\n print(i, flush=True)\n time.sleep(0.001)"
    process = sandbox.start(argv=["python3", "-c", code])
    want = b"".join(b"%d\n" % i for i in range(times * 4))
    with concurrent.futures.ThreadPoolExecutor(readers) as pool:
        for got in pool.map(lambda seed: reattach(process, times, random.Random(seed)), range(readers)):
            assert got == want


def test_reattachments_lose_no_byte(sandbox):
    check_reattachments(sandbox, 4, 60)


def test_ten_thousand_reattachments_lose_no_byte(sandbox):
    check_reattachments(sandbox, 10, 1000)


@pytest.mark.parametrize("query", ["from=x", "from=-1", "from=1x", "from=99999999999999999999999", "from="])
def test_a_place_that_is_none(sandbox, query):
    process = sandbox.start("true")
    assert process.request("GET", "/output?" + query).status == 400


def test_a_socket_carries_both_ways(sandbox):
    process = sandbox.start("read line; echo got $line; echo err >&2; cat", stdin=True)
    with sockets.WebSocket(sandbox.daemon, f"{sandbox.path}{process.path}/output") as ws:
        start = ws.receive()
        assert start["type"] == "start" and start["process"]["pid"] == process.pid and start["from"] == 0
        ws.send(b"it\n")
        got = {1: b"", 2: b""}
        while got != {1: b"got it\n", 2: b"err\n"}:
            message = ws.receive()
            got[message[0]] += message[1:]
        ws.send(b"rest")
        ws.send({"type": "input_end"})
        assert ws.receive() == b"\x01rest"
        assert ws.receive()["process"]["exit_code"] == 0
        with pytest.raises(sockets.Closed) as closed:
            ws.receive()
        assert closed.value.code == 1000


def test_the_end_of_the_sandbox_ends_its_readers(daemon):
    sandbox = Sandbox(daemon)
    process = sandbox.start("echo on; exec sleep 1000")
    with process.events() as events:
        events.until(b"on\n")
        assert sandbox.request("DELETE", "").status == 204
        event, data, _ = next(events)
        assert event == "end" and data["process"]["status"] == "killed"


def test_clients_that_vanish_leave_nothing(sandbox):
    process = sandbox.start("while :; do echo x; done")
    for _ in range(20):
        with process.events() as events:
            next(events)
        with sockets.WebSocket(sandbox.daemon, f"{sandbox.path}{process.path}/output") as ws:
            ws.receive()
    assert process.request("DELETE").status == 204
    assert process.output()["reason"] == "cancelled"


def test_processes_of_lines_can_be_read_as_bytes_and_the_other_way_is_not_shown(sandbox):
    lines = sandbox.request("POST", "/start_process", json={"cmd": "printf 'a\\nb'"}).json()
    raw = sandbox.start("true")
    raw.output()
    assert Process(sandbox, lines).output()["stdout"] == b"a\nb"
    shown = sandbox.request("GET", "/list_processes").json()["processes"]
    assert [p["id"] for p in shown] == [lines["id"]]
    both = sandbox.request("GET", "/processes").json()["processes"]
    assert [p["pid"] for p in both] == [lines["pid"], raw.pid]


def test_one_sandbox_does_not_see_the_processes_of_another(daemon, sandbox):
    process = sandbox.start("sleep 1000", tag="mine")
    other = Sandbox(daemon)
    for name in (process.about["id"], "mine"):
        assert other.request("GET", f"/processes/{name}").status == 404
    assert other.request("DELETE", "").status == 204
