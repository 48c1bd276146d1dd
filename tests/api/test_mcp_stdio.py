# SPDX-License-Identifier: MIT
"""sbx mcp: the Model Context Protocol on standard input and output."""
import contextlib
import json
import os
import queue
import signal
import subprocess
import threading

import pytest

import harness
from mcp_client import HANDSHAKE, KEY, MODERN

META = {KEY + "protocolVersion": MODERN, KEY + "clientCapabilities": {}}


class Pipes:
    """sbx mcp in pipes, and the messages that it sends."""

    def __init__(self, *args, daemon=None, below=(), **env):
        self.env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent",
                    **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}, **env}
        if daemon:
            self.env.update(SANDBOX_URL=f"http://127.0.0.1:{daemon.port}", SANDBOX_SECRET=daemon.secret)
        if not harness.FULL:
            self.env.setdefault("ISOLATION_LEVEL", "basic")
        if harness.JAIL != "native":
            self.env.setdefault("ISOLATION", harness.JAIL)
        self.process = subprocess.Popen([*below, str(harness.BUILD / "sbx"), "mcp", *args], env=self.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.messages, self.seen, self.ids = queue.Queue(), [], iter(range(1, 10000))
        self.log = harness.Stream(self.process.stderr)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))  # anything else than a message ends the thread, and the test
        self.messages.put(None)

    def write(self, text):
        self.process.stdin.write(text if isinstance(text, bytes) else text.encode())
        self.process.stdin.flush()

    def send(self, method, params=None, ident=None, **more):
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params}), **more}
        if ident is not None:
            message["id"] = ident
        self.write(json.dumps(message) + "\n")
        return ident

    def next(self):
        message = self.messages.get(timeout=2 * harness.DEADLINE)
        self.seen.append(message)
        return message

    def until(self, ident):
        """The answer to that request; what came before it is in `seen`."""
        while True:
            message = self.next()
            assert message is not None, self.log.text()
            if message.get("id") == ident and "method" not in message:
                return message

    def ask(self, method, params=None):
        return self.until(self.send(method, params or {}, next(self.ids)))

    def open(self, version=HANDSHAKE[0]):
        hello = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
        self.send("notifications/initialized")
        return hello["result"]

    def call(self, tool, meta=None, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **({"_meta": meta} if meta else {})})["result"]

    def end(self):
        """Its exit status, after the end of its input."""
        self.process.stdin.close()
        return self.process.wait(harness.DEADLINE)


@contextlib.contextmanager
def pipes(*args, **more):
    made = Pipes(*args, **more)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                made.process.wait(harness.DEADLINE)
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()
        made.reader.join(harness.DEADLINE)
        made.process.stdout.close()


def private_of(made):
    """The pids of the guardian and of everything below it."""
    line = made.log.wait(lambda line: "daemon of its own at" in line)
    assert line, made.log.text()
    return harness.descendants(made.process.pid)


def state_dirs(pids):
    found = set()
    for pid in pids:
        for entry in harness.read_proc(pid, "environ").split(b"\0"):
            if entry.startswith(b"STATE_DIR="):
                found.add(entry[len("STATE_DIR="):].decode())
    return {d for d in found if "sbx-private-" in d}


# ---- a running daemon ----


@pytest.mark.parametrize("version", HANDSHAKE)
def test_a_handshake_opens_a_session(daemon, version):
    with pipes(daemon=daemon) as client:
        assert client.open(version)["protocolVersion"] == version
        assert client.ask("ping")["result"] == {}
        made = client.call("write_file", path="x", content="kept")
        got = client.call("read_file", path="x")
        assert got["content"][0]["text"] == "kept" and not made["isError"]
        assert client.end() == 0


def test_eras_are_told_by_each_message(daemon):
    with pipes(daemon=daemon) as client:
        told = client.ask("server/discover", {"_meta": META})["result"]
        assert told["supportedVersions"][0] == MODERN
        assert client.open()["protocolVersion"] == HANDSHAKE[0]
        assert client.ask("initialize", {"_meta": META})["error"]["code"] == -32601
        made = client.call("write_file", meta=META, path="x", content="modern")["structuredContent"]
        assert client.call("read_file", path="x")["isError"]  # another sandbox
        assert client.call("read_file", meta=META, path="x", sandbox=made["sandbox"])["content"][0]["text"] == "modern"
        client.call("delete_sandbox", sandbox=made["sandbox"])


def test_names_that_no_header_can_have_are_encoded(daemon):
    with pipes(daemon=daemon) as client:
        got = client.ask("tools/call", {"name": "gr\u00fc\u00dfe", "arguments": {}, "_meta": META})
        assert got["error"]["code"] == -32602  # not -32020: the header says what the body says


def test_requests_run_side_by_side(daemon):
    with pipes(daemon=daemon) as client:
        client.open()
        client.call("write_file", path="x", content="")
        slow = client.send("tools/call", {"name": "run_command", "arguments": {"command": "while ! test -e go; do sleep 0.05; done"}}, "slow")
        assert client.ask("ping")["result"] == {}
        client.call("write_file", path="go", content="")
        assert client.until(slow)["result"]["structuredContent"]["status"] == "success"


def test_what_is_no_message_is_answered_and_reading_goes_on(daemon):
    with pipes(daemon=daemon, BODY_MAX_MCP="4096") as client:
        for line, code in (("{", -32700), ("[]", -32600), ('"x"', -32600), ('{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
                           ("x" * 5000, -32600), ("[" * 200 + "]" * 200, -32700)):
            client.write(line + "\n")
            error = client.next()
            assert error["error"]["code"] == code, (line, error)
        client.write(b"\xff\xfe\n\r\n\n  \n")
        assert client.next()["error"]["code"] == -32700
        no_session = client.ask("ping")
        assert no_session["error"]["code"] == -32600
        assert client.open()
        client.write('{"jsonrpc":"2.0","id":7,"result":{}}\n')  # an answer to nothing
        assert client.ask("ping")["result"] == {}


def test_a_message_may_come_in_pieces(daemon):
    with pipes(daemon=daemon) as client:
        client.open()
        client.write(b'{"jsonrpc": "2.0", "id"')
        client.write(b': "p", "method"')
        client.write(b': "ping"}\r\n')
        assert client.until("p")["result"] == {}


def test_a_request_is_cancelled_in_both_eras(daemon):
    with pipes(daemon=daemon) as client:
        client.open()
        place = client.call("write_file", path="x", content="")["structuredContent"]["sandbox"]
        for ident, meta in (("old", None), ("new", META)):
            params = {"name": "run_command", "arguments": {"command": f"touch {ident}; exec sleep 600", "timeout_seconds": 600,
                                                           "sandbox": place}, **({"_meta": meta} if meta else {})}
            client.send("tools/call", params, ident)
            harness.wait_until(lambda name=ident: not client.call("read_file", path=name)["isError"], "the command has not begun")
            client.send("notifications/cancelled", {"requestId": ident})
            harness.wait_until(lambda: all(p["status"] != "running" for p in client.call("manage_process", action="list")
                                           ["structuredContent"]["processes"]), "the command lives")
        assert client.ask("ping")["result"] == {}
        assert not [m for m in client.seen if m.get("id") in ("old", "new")]


def test_a_request_is_cancelled_before_it_has_begun(daemon):
    """Both go out at once, on two connections; the daemon may see the cancellation first."""
    with pipes(daemon=daemon) as client:
        client.open()
        client.call("write_file", path="x", content="")
        for n in range(5):
            client.send("tools/call", {"name": "run_command", "arguments": {"command": "exec sleep 600", "timeout_seconds": 600}}, f"c{n}")
            client.send("notifications/cancelled", {"requestId": f"c{n}"})
        harness.wait_until(lambda: all(p["status"] != "running" for p in client.call("manage_process", action="list")
                                       ["structuredContent"]["processes"]), "a command lives")
        assert not [m for m in client.seen if str(m.get("id")).startswith("c")]


def test_progress_comes_through(daemon):
    with pipes(daemon=daemon) as client:
        client.open()
        client.call("run_command", meta={"progressToken": "p"}, command="echo working; sleep 2.5")
        told = [m["params"] for m in client.seen if m.get("method") == "notifications/progress"]
        assert told and all(p["progressToken"] == "p" for p in told)


def test_the_end_of_input_ends_runs_and_the_workspace(daemon):
    with pipes(daemon=daemon) as client:
        client.open()
        place = client.call("write_file", path="x", content="")["structuredContent"]["sandbox"]
        client.send("tools/call", {"name": "run_command", "arguments": {"command": "exec sleep 600", "timeout_seconds": 600}}, "run")
        assert client.end() == 0
    harness.wait_until(lambda: daemon.request("GET", f"/v1/sandboxes/{place}").status == 404, "the workspace is there")


def test_quick_answers_come_after_the_end_of_input(daemon):
    with pipes(daemon=daemon) as client:
        ident = client.send("tools/list", {"_meta": META}, "last")
        client.process.stdin.close()
        assert client.until(ident)["result"]["tools"]
        assert client.process.wait(harness.DEADLINE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_end_it_in_order(daemon, number):
    with pipes(daemon=daemon) as client:
        client.open()
        client.process.send_signal(number)
        assert client.process.wait(harness.DEADLINE) == 0


def test_a_client_that_does_not_read_does_not_stop_it(daemon):
    """Everything is written before anything is read: a megabyte of answers waits in it."""
    process = None
    try:
        env = {"PATH": os.environ["PATH"], "SANDBOX_URL": f"http://127.0.0.1:{daemon.port}", "SANDBOX_SECRET": daemon.secret}
        process = subprocess.Popen([str(harness.BUILD / "sbx"), "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        many = 100
        for n in range(many):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list", "params": {"_meta": META}}).encode() + b"\n")
        process.stdin.flush()
        process.stdin.close()
        answers = [json.loads(line) for line in process.stdout]
        assert process.wait(harness.DEADLINE) == 0
        assert sorted(a["id"] for a in answers) == list(range(many))
    finally:
        if process and process.poll() is None:
            process.kill()
            process.wait()
        if process:
            process.stdout.close()


def test_a_daemon_that_is_not_there_is_an_answer():
    with pipes("--url", "http://127.0.0.1:9") as client:
        error = client.ask("tools/list", {"_meta": META})["error"]
        assert error["code"] == -32603 and "nobody listens" in error["message"]


def test_a_wrong_secret_is_an_answer(daemon):
    with pipes("--url", f"http://127.0.0.1:{daemon.port}", SANDBOX_SECRET="wrong") as client:
        error = client.ask("tools/list", {"_meta": META})["error"]
        assert error["code"] == -32603 and "401" in error["message"]


# ---- a daemon of its own ----


def test_it_starts_a_daemon_and_ends_it():
    with pipes("--private") as client:
        client.open()
        assert client.call("run_command", command="echo $((6 * 7))")["structuredContent"]["stdout"] == "42\n"
        below = private_of(client)
        states = state_dirs(below)
        assert len(below) > 2 and len(states) == 1
        assert client.end() == 0
        assert not [p for p in below if harness.is_alive(p)]
        assert not os.path.exists(states.pop())


def test_its_daemon_ends_when_it_is_killed():
    with pipes("--private") as client:
        client.open()
        below = private_of(client)
        states = state_dirs(below)
        client.process.kill()
        client.process.wait()
        harness.wait_until(lambda: not [p for p in below if harness.is_alive(p)], "the daemon lives")
        assert states and not os.path.exists(states.pop())


def test_it_ends_with_the_process_that_started_it():
    """Somebody else holds its input: only the end of its parent tells it."""
    read, write = os.pipe()
    with open(write, "wb") as held, open(read, "rb") as given:
        parent = subprocess.Popen(["/bin/sh", "-c", f"exec 3<&0; '{harness.BUILD}/sbx' mcp --private <&3 & wait"],
                                  env={"PATH": os.environ["PATH"], **({} if harness.FULL else {"ISOLATION_LEVEL": "basic"})},
                                  stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        log = harness.Stream(parent.stderr)
        try:
            assert log.wait(lambda line: "daemon of its own at" in line), log.text()
            below = harness.descendants(parent.pid)
            assert len(below) > 3
        finally:
            parent.kill()
            parent.wait()
        harness.wait_until(lambda: not [p for p in below if harness.is_alive(p)], "something of it lives")
        assert not held.closed


def test_it_ends_when_its_daemon_does():
    with pipes("--private") as client:
        client.open()
        below = private_of(client)
        os.kill(next(p for p in below if harness.read_proc(p, "comm").strip() == b"sandbox-executo"), signal.SIGKILL)
        assert client.process.wait(harness.DEADLINE) == 125
        assert "has ended" in client.log.text()
        harness.wait_until(lambda: not [p for p in below if harness.is_alive(p)], "something of it lives")


def test_nothing_but_messages_is_on_standard_output():
    """With a daemon of its own, which prints how to use it."""
    with pipes("--private") as client:
        client.open()
        client.call("list_sandboxes")
        client.ask("no/such/method")
        client.end()
        while client.next() is not None:
            pass
        assert all(m is None or m["jsonrpc"] == "2.0" for m in client.seen)
