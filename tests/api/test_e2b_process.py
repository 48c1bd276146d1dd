# SPDX-License-Identifier: MIT
"""process.Process of E2B's envd, byte by byte: what the SDKs do not show or never send."""
import base64
import json
import struct
import threading

import pytest

import harness


def envelope(message, flags=0):
    text = message if isinstance(message, bytes) else json.dumps(message).encode()
    return bytes([flags]) + struct.pack(">I", len(text)) + text


def envelopes(body):
    found = []
    while body:
        n = int.from_bytes(body[1:5], "big")
        assert len(body) >= 5 + n, body
        found.append((body[0], json.loads(body[5:5 + n])))
        body = body[5 + n:]
    return found


class Sandbox:
    def __init__(self, daemon):
        self.daemon = daemon
        got = daemon.request("POST", "/v2/sandboxes", json={"templateID": "base", "timeout": 600},
                             headers={"X-API-Key": daemon.secret})
        assert got.status == 201, got
        self.id = got.json()["sandboxID"]
        self.headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "Authorization": None,
                        "X-Access-Token": got.json()["envdAccessToken"]}

    def end(self):
        assert self.daemon.request("DELETE", "/sandboxes/" + self.id, headers={"X-API-Key": self.daemon.secret}).status == 204

    def unary(self, method, message, **headers):
        return self.daemon.request("POST", "/process.Process/" + method, json=message, headers={**self.headers, **headers})

    def raw(self, method, body, **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.daemon.request("POST", "/process.Process/" + method, body=body,
                                   headers={**self.headers, "Content-Type": "application/connect+json", **headers})

    def stream(self, method, message, **headers):
        got = self.raw(method, envelope(message), **headers)
        assert got.status == 200 and got.headers["Content-Type"] == "application/connect+json", got
        found = envelopes(got.body)
        assert [flags for flags, _ in found] == [0] * (len(found) - 1) + [2], found
        return [m["event"] for _, m in found[:-1]], found[-1][1]

    def run(self, command, **fields):
        return self.stream("Start", {"process": {"cmd": "/bin/bash", "args": ["-c", command]}, **fields})

    def background(self, command, **fields):
        """Starts it, reads its start, and lets the stream go."""
        connection = self.daemon.connect()
        connection.send("POST", "/process.Process/Start", body=envelope({"process": {"cmd": "/bin/bash", "args": ["-c", command]}, **fields}),
                        headers={**self.headers, "Content-Type": "application/connect+json"})
        answer = connection.http.getresponse()
        head = answer.read(5)
        start = json.loads(answer.read(int.from_bytes(head[1:], "big")))
        answer.close()
        connection.close()
        return start["event"]["start"]["pid"]


@pytest.fixture(scope="module")
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    made.end()


def error(end):
    return end["error"]["code"], end["error"]["message"]


def test_the_stream_of_a_command(sandbox):
    events, end = sandbox.run("printf out; printf err >&2; exit 9", stdin=False)
    assert end == {}
    assert list(events[0]) == ["start"] and events[0]["start"]["pid"] > 1
    assert sorted(next(iter(e["data"].items())) for e in events[1:-1]) == [("stderr", "ZXJy"), ("stdout", "b3V0")]
    assert events[-1] == {"end": {"exitCode": 9, "exited": True, "status": "exit status 9", "error": "exit status 9"}}


@pytest.mark.parametrize("body, code", [
    (b"", "invalid_argument"),
    (b"\0\0\0", "invalid_argument"),
    (envelope({})[:-1], "invalid_argument"),
    (envelope({}) + b"x", "invalid_argument"),
    (envelope({}, 1), "invalid_argument"),
    (envelope({}, 2), "invalid_argument"),
    (envelope(b"["), "invalid_argument"),
    (envelope({}), "invalid_argument"),
    (envelope({"process": None}), "invalid_argument"),
    (envelope({"process": {"cmd": "a\0b"}}), "invalid_argument"),
    (envelope({"process": {"cmd": "x", "args": [1]}}), "invalid_argument"),
    (envelope({"process": {"cmd": "x", "args": ["a\0"]}}), "invalid_argument"),
    (envelope({"process": {"cmd": "true", "cwd": "/nowhere"}}), "invalid_argument"),
    (envelope({"process": {"cmd": "true", "cwd": "~other"}}), "invalid_argument"),
    (envelope({"process": {"cmd": "/no/such/program"}}), "invalid_argument"),
    (envelope({"process": {"cmd": "true"}, "tag": "x" * 129}), "invalid_argument"),
    (envelope({"process": {"cmd": "true"}, "pty": {"size": {"cols": 0, "rows": 1}}}), "invalid_argument"),
    (envelope({"process": {"cmd": "true"}, "pty": 1}), "invalid_argument"),
])
def test_errors_of_a_stream_come_in_its_end(sandbox, body, code):
    got = sandbox.raw("Start", body)
    assert got.status == 200, got
    (flags, message), = envelopes(got.body)
    assert flags == 2 and message["error"]["code"] == code and message["error"]["message"], message


@pytest.mark.parametrize("method, message, status, code", [
    ("SendInput", {"process": {"pid": 99999}, "input": {"stdin": ""}}, 404, "not_found"),
    ("SendSignal", {"signal": "SIGNAL_SIGKILL"}, 404, "not_found"),
    ("SendSignal", {"process": {"tag": "nobody"}, "signal": 9}, 404, "not_found"),
    ("CloseStdin", {"process": {"pid": -1}}, 400, "invalid_argument"),
    ("Update", {"process": {"pid": "x"}}, 400, "invalid_argument"),
    ("Update", {"process": {"pid": 4294967296}}, 400, "invalid_argument"),
])
def test_errors_of_a_call_have_the_status_of_their_code(sandbox, method, message, status, code):
    got = sandbox.unary(method, message)
    assert (got.status, got.json()["code"]) == (status, code), got


def test_users(sandbox):
    def by(name):
        return sandbox.stream("Start", {"process": {"cmd": "whoami"}, "stdin": False},
                              Authorization="Basic " + base64.b64encode(name.encode()).decode())
    events, end = by("user:")
    assert end == {} and events[1] == {"data": {"stdout": base64.b64encode(b"user\n").decode()}}
    assert error(by("root:")[1])[0] == "permission_denied"
    assert error(by("daemon:")[1])[0] == "unauthenticated"


def test_keep_alives_follow_the_start(sandbox):
    command = "read line < /tmp/ping"
    assert sandbox.run("mkfifo /tmp/ping")[1] == {}
    found = []
    thread = threading.Thread(target=lambda: found.append(
        sandbox.stream("Start", {"process": {"cmd": "/bin/bash", "args": ["-c", command]}, "tag": "quiet"}, Keepalive_Ping_Interval="1")))
    thread.start()
    harness.wait_until(lambda: any(p.get("tag") == "quiet" for p in sandbox.unary("List", {}).json()["processes"]), "its start")
    threading.Event().wait(1.5)  # the interval is a whole number of seconds
    assert sandbox.run("echo > /tmp/ping")[1] == {}
    thread.join()
    events, end = found[0]
    assert list(events[0]) == ["start"] and {"keepalive": {}} in events and "end" in events[-1] and end == {}


def test_the_deadline_of_a_start_is_that_of_the_process(sandbox):
    events, end = sandbox.stream("Start", {"process": {"cmd": "sleep", "args": ["1017"]}}, Connect_Timeout_Ms="300")
    assert list(events[0]) == ["start"] and error(end)[0] == "deadline_exceeded"
    assert sandbox.run("pgrep -fx 'sleep 1017' || exit 5")[0][-1]["end"]["exitCode"] == 5


def test_a_client_that_leaves_ends_nothing(sandbox):
    pid = sandbox.background("while [ ! -e /tmp/leave ]; do sleep 0.01; done; exit 6")
    listed = sandbox.unary("List", {}).json()["processes"]
    assert [p["config"]["cmd"] for p in listed if p["pid"] == pid] == ["/bin/bash"]
    assert sandbox.run("touch /tmp/leave")[1] == {}
    events, end = sandbox.stream("Connect", {"process": {"pid": pid}})
    assert events[0] == {"start": {"pid": pid}} and events[-1]["end"]["exitCode"] == 6 and end == {}


def test_input_of_every_kind(sandbox):
    pid = sandbox.background("cat > /tmp/taken; touch /tmp/done", stdin=True, tag="taker")
    target = {"process": {"tag": "taker"}}
    assert sandbox.unary("SendInput", {**target, "input": {"stdin": "b25l"}}).json() == {}
    assert sandbox.unary("SendInput", {**target, "input": {"stdin": "dA"}}).json() == {}, "padding may be left out"
    assert sandbox.unary("SendInput", {**target, "input": {"stdin": "wo*"}}).status == 400
    assert sandbox.unary("SendInput", {**target, "input": {"pty": "dA=="}}).json()["code"] == "internal"
    assert sandbox.unary("SendInput", target).status == 400
    data = [{"start": target}, {"data": {"input": {"stdin": "d28="}}}, {"keepalive": {}}, {"data": {"input": {"stdin": "IQ=="}}}]
    got = sandbox.raw("StreamInput", b"".join(envelope(m) for m in data))
    assert envelopes(got.body) == [(0, {}), (2, {})], got
    got = sandbox.raw("StreamInput", envelope({"start": target}) + b"\0\0\0\0\5{}")
    assert error(envelopes(got.body)[0][1])[0] == "invalid_argument"
    assert sandbox.unary("CloseStdin", target).json() == {}
    assert sandbox.unary("CloseStdin", target).json()["code"] in ("failed_precondition", "not_found")
    events, _ = sandbox.run("while [ ! -e /tmp/done ]; do sleep 0.01; done; cat /tmp/taken", stdin=False)
    assert events[1] == {"data": {"stdout": base64.b64encode(b"onetwo!").decode()}}
    assert pid


def test_signals_and_sizes(sandbox):
    pid = sandbox.background("exec sleep 1018")
    target = {"process": {"pid": pid}}
    assert sandbox.unary("SendSignal", {**target, "signal": "SIGNAL_SIGHUP"}).status == 501
    assert sandbox.unary("Update", {**target, "pty": {"size": {"cols": 1, "rows": 1}}}).json()["code"] == "internal"
    assert sandbox.unary("Update", target).json() == {}
    assert sandbox.unary("SendSignal", {**target, "signal": "SIGNAL_SIGTERM"}).json() == {}
    events, _ = sandbox.stream("Connect", target)
    assert events[-1]["end"] == {"exitCode": -1, "exited": False, "status": "signal: terminated", "error": "signal: terminated"}


def test_many_clients_that_vanish(sandbox):
    pids = [sandbox.background("exec sleep 1019") for _ in range(15)]
    assert len(set(pids)) == 15
    for pid in pids:
        assert sandbox.unary("SendSignal", {"process": {"pid": pid}, "signal": 9}).json() == {}
    harness.wait_until(lambda: not {p["pid"] for p in sandbox.unary("List", {}).json()["processes"]} & set(pids), "their end")
