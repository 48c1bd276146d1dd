# SPDX-License-Identifier: MIT
"""Webhooks: which hosts they may go to, what is sent, and that nothing is lost on the way."""
import base64
import hashlib
import hmac
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from fake_control_plane import ControlPlane, answer
from harness import wait_until

SECRET = "of the operator"
DOCS = (pathlib.Path(__file__).resolve().parents[2] / "docs/webhooks.md").read_text()
FAST = {"WEBHOOK_BASE_MS": 20, "WEBHOOK_CAP_MS": 50}


def settings(**more):
    return {"WEBHOOK_HOSTS": "127.0.0.1:*", "WEBHOOK_SECRET": SECRET, **FAST, **more}


@pytest.fixture(scope="module")
def daemon(make_daemon_module):
    return make_daemon_module(**settings())


@pytest.fixture
def receiver():
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def again(make_daemon):
    """Starts the daemon, each time on the same state."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o711)
        state = pathlib.Path(top) / "state"

        def start(**env):
            return make_daemon(STATE_DIR=state, **settings(**env))

        start.state = state
        yield start


def hook(plane, path="/done"):
    return plane.url + path


def execute(daemon, webhook, code="print(42)", asynchronous=False, **fields):
    headers = {"Prefer": "respond-async"} if asynchronous else None
    return daemon.request("POST", "/execute", headers=headers,
                          json={"language": "python", "code": code, "webhook": webhook, **fields})


def received(plane, count=1):
    return plane.wait("other", count=count)


def code_of(kind):
    return re.search(rf"^```{kind}\n(.*?)^```", DOCS, re.S | re.M)[1]


def is_genuine(secret, seen):
    names = {"base64": base64, "hmac": hmac, "time": time, "hashlib": hashlib}
    exec(code_of("python"), names)  # noqa: S102: it is what the docs tell people to do
    return names["is_genuine"](secret, seen.headers, seen.raw)


def is_genuine_js(secret, seen):
    code = ("const crypto = require('crypto');\n" + code_of("js") + """
const [secret, headers, body] = JSON.parse(require('fs').readFileSync(0));
console.log(isGenuine(secret, headers, Buffer.from(body, 'base64')));""")
    given = [secret, {k.lower(): v for k, v in seen.headers.items()}, base64.b64encode(seen.raw).decode()]
    done = subprocess.run(["node", "-e", code], input=json.dumps(given), capture_output=True, text=True, timeout=60, check=True)
    return done.stdout == "true\n"


# ---- what is sent ----

def test_the_result_is_sent_and_signed(daemon, receiver):
    answered = execute(daemon, hook(receiver, "/done?job=7"))
    assert answered.status == 200 and answered.json()["stdout"] == "42\n"
    (seen,) = received(receiver)
    assert seen.method == "POST" and seen.path == "/done?job=7"
    assert seen.json == answered.json(), "the same JSON as the answer"
    assert seen.headers["Content-Type"] == "application/json" and "Authorization" not in seen.headers
    assert seen.headers["Webhook-Id"] == seen.headers["Idempotency-Key"] and len(seen.headers["Webhook-Id"]) > 20
    assert is_genuine(SECRET, seen) and is_genuine_js(SECRET, seen)
    assert not is_genuine("another", seen) and not is_genuine_js("another", seen)
    seen.raw += b" "
    assert not is_genuine(SECRET, seen) and not is_genuine_js(SECRET, seen)
    wait_until(lambda: daemon.metric("sandbox_webhooks_waiting") == 0, "it left the spool")


def test_a_secret_of_the_request(daemon, receiver):
    key = os.urandom(32)
    coded = "whsec_" + base64.b64encode(key).decode()
    for secret in ("its own", coded):
        assert execute(daemon, {"url": hook(receiver), "secret": secret}).status == 200
    plain, decoded = received(receiver, 2)
    assert is_genuine("its own", plain) and not is_genuine(SECRET, plain)
    signed = f"{decoded.headers['Webhook-Id']}.{decoded.headers['Webhook-Timestamp']}.".encode() + decoded.raw
    wanted = base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
    assert decoded.headers["Webhook-Signature"] == "v1," + wanted


@pytest.mark.parametrize("code, status", [
    ("raise ValueError('x')", "failed"), ("import time; time.sleep(60)", "timeout"), ("print('é' * 300000)", "success")])
def test_every_end_is_sent(daemon, receiver, code, status):
    pending = execute(daemon, hook(receiver), code, asynchronous=True, timeout=1)
    assert pending.json()["status"] == "PENDING"
    (seen,) = received(receiver)
    assert seen.json["execution_id"] == pending.json()["execution_id"] and seen.json["status"] == status
    kept = daemon.request("GET", f"/v1/executions/{pending.json()['execution_id']}").json()
    assert kept["result"] == seen.json


def test_one_that_is_cancelled_is_sent(daemon, receiver):
    pending = execute(daemon, hook(receiver), "import time; time.sleep(60)", asynchronous=True).json()
    daemon.request("DELETE", f"/v1/executions/{pending['execution_id']}")
    (seen,) = received(receiver)
    assert seen.json["termination"]["reason"] == "cancelled"


def test_it_goes_on_when_the_client_leaves(daemon, receiver):
    with daemon.connect() as connection:
        connection.send("POST", "/execute", json={"language": "python", "webhook": hook(receiver),
                                                  "code": "import time; time.sleep(0.5); print('all the same')"})
        wait_until(lambda: daemon.metric("sandbox_executions_active") >= 1, "it runs")
    (seen,) = received(receiver)
    assert seen.json["stdout"] == "all the same\n"


def test_asked_twice_is_sent_once(daemon, receiver):
    body = {"language": "shell", "code": "echo once", "execution_id": "twice-1", "webhook": hook(receiver)}
    first, second = (daemon.request("POST", "/execute", json=body) for _ in range(2))
    assert first.json() == second.json()
    execute(daemon, hook(receiver, "/after"))
    assert {s.path for s in received(receiver, 2)} == {"/done", "/after"} and len(receiver.of("other")) == 2


# ---- function calls ----

def test_the_result_of_a_call_is_sent(daemon, receiver):
    body = {"language": "python", "code": "def f(a): return a * 2", "functionName": "f", "args": [21], "webhook": hook(receiver)}
    answered = daemon.request("POST", "/v1/functions/call", json=body).json()
    (seen,) = received(receiver)
    assert seen.json == answered and answered["result"] == 42 and is_genuine(SECRET, seen)
    broken = daemon.request("POST", "/v1/functions/call", json={**body, "language": "cobol"}).json()
    assert received(receiver, 2)[1].json == broken and broken["error"]["type"] == "UnsupportedLanguage"


def test_a_call_goes_on_when_the_client_leaves(daemon, receiver):
    code = "import time\ndef f():\n    for i in range(50):\n        time.sleep(0.02)\n        yield i"
    body = {"language": "python", "code": code, "functionName": "f", "webhook": hook(receiver)}
    for accept in ("application/json", "text/event-stream"):
        before = len(receiver.of("other"))
        with daemon.connect() as connection:
            connection.send("POST", "/v1/functions/call", json=body, headers={"Accept": accept})
            wait_until(lambda: daemon.metric("sandbox_executions_active") >= 1, "it runs")
        assert received(receiver, before + 1)[-1].json["status"] == "success"


def test_a_call_that_is_refused_has_none(daemon, receiver):
    before = daemon.metric("sandbox_webhooks_waiting")  # of other tests
    for fields in ({"code": 1}, {"packages": {"python": ["-x"]}}, {"webhook": "http://elsewhere.example/"}):
        body = {"language": "python", "code": "def f(): pass", "functionName": "f", "webhook": hook(receiver), **fields}
        assert daemon.request("POST", "/v1/functions/call", json=body).status == 400
    execute(daemon, hook(receiver, "/after"))
    assert [s.path for s in received(receiver)] == ["/after"]
    wait_until(lambda: daemon.metric("sandbox_webhooks_waiting") <= before, "nothing more waits")


# ---- which hosts ----

def test_no_host_is_allowed_until_the_operator_lists_some(make_daemon):
    daemon = make_daemon()
    for path, body in (("/execute", {"code": "1"}), ("/v1/functions/call", {"code": "def f(): pass", "functionName": "f"})):
        answered = daemon.request("POST", path, json={"language": "python", "webhook": "https://x.example/", **body})
        assert answered.status == 400 and "WEBHOOK_HOSTS" in answered.json()["error_detail"], answered
    assert not (daemon.state_dir / "webhooks").exists()


@pytest.mark.parametrize("url, words", [
    ("http://hooks.example.net/", "hooks.example.net"), ("ftp://127.0.0.1/", "http"), ("not an address", "url"),
    ("http://u:p@127.0.0.1/", "password"), ("http://127.0.0.1/#x", "fragment"), ("", "url"), ("http://x\u0000y/", "NUL"),
    ("file:///etc/passwd", "http"), ("http://127.0.0.2:80/", "127.0.0.2"), ("http://" + "a" * 3000, "longer"), ("http://\uff4cocalhost/", "ASCII"),
    ({"url": "http://127.0.0.1/", "secret": "whsec_!"}, "base64"), ({"url": "http://127.0.0.1/", "secret": ""}, "empty"),
    ({"url": "http://127.0.0.1/", "secrt": "x"}, "did you mean 'secret'"), ({"secret": "x"}, "url"), (7, "webhook"),
], ids=lambda v: str(v)[:30])
def test_other_addresses_are_refused(daemon, url, words):
    answered = execute(daemon, url)
    assert answered.status == 400 and words in answered.json()["error_detail"], answered


@pytest.mark.parametrize("host", [
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
    "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "127.0.0.1", "127.1", "[::1]", "0.0.0.0", "10.0.0.1", "192.168.1.1",
    "[fd12::1]", "255.255.255.255", "224.0.0.1"])
def test_a_pattern_is_no_leave_for_addresses_inside(make_daemon_module, host):
    daemon = make_daemon_module(WEBHOOK_HOSTS="*:*", WEBHOOK_SECRET=SECRET)
    answered = execute(daemon, f"http://{host}/latest/meta-data/")
    assert answered.status == 400 and "not a public address" in answered.json()["error_detail"], answered


def test_what_a_name_stands_for_is_checked_before_a_connection(make_daemon, receiver):
    """localhost, allowed by a pattern only, stands for an address inside."""
    daemon = make_daemon(**settings(WEBHOOK_HOSTS="*:*"))
    assert execute(daemon, f"http://localhost:{receiver.port}/").status == 200
    record = daemon.wait_record(event_type="webhook_failed")
    assert record["error"] == "its address is not allowed" and record["host"] == "localhost"
    assert not receiver.connections
    named = make_daemon(**settings(WEBHOOK_HOSTS="*:*,localhost:*"))
    assert execute(named, f"http://localhost:{receiver.port}/").status == 200
    received(receiver)


def test_a_redirect_is_not_followed(daemon, receiver):
    with ControlPlane() as elsewhere:
        receiver.script("other", answer(302, Location=elsewhere.url + "/stolen"), answer(307, Location=elsewhere.url))
        execute(daemon, hook(receiver))
        assert len(received(receiver, 3)) == 3 and not elsewhere.requests


def test_a_certificate_that_nobody_vouches_for_is_not_taken(daemon, tmp_path):
    key, cert = tmp_path / "key", tmp_path / "cert"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    seen = []

    def serve(server):
        while True:
            try:
                with server.accept()[0] as plain, context.wrap_socket(plain, server_side=True) as secure:
                    seen.append(secure.recv(1))
            except ssl.SSLError:
                pass
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        name = execute(daemon, f"https://127.0.0.1:{server.getsockname()[1]}/").json()["execution_id"]
        record = daemon.wait_record(event_type="webhook_failed", execution_id=name)
        server.shutdown(socket.SHUT_RDWR)
    assert "certificate" in record["error"] and not seen, record


def test_nothing_is_sent_unsigned(make_daemon, receiver):
    daemon = make_daemon(**settings(WEBHOOK_SECRET=""))
    answered = execute(daemon, hook(receiver))
    assert answered.status == 400 and "WEBHOOK_SECRET" in answered.json()["error_detail"]
    assert execute(daemon, {"url": hook(receiver), "secret": "mine"}).status == 200
    assert is_genuine("mine", received(receiver)[0])


# ---- attempts ----

@pytest.mark.parametrize("act, event", [(500, "webhook_failed"), (404, "webhook_failed"), (429, "webhook_failed"),
                                        ("close", "webhook_unknown"), ("partial", "webhook_unknown")])
def test_what_fails_is_sent_again_as_the_same_message(make_daemon, receiver, act, event):
    daemon = make_daemon(**settings())
    receiver.script("other", act, act)
    answered = execute(daemon, hook(receiver)).json()
    seen = received(receiver, 3)
    assert len({s.headers["Webhook-Id"] for s in seen}) == 1 and all(s.json == answered for s in seen)
    assert all(is_genuine(SECRET, s) for s in seen)
    daemon.wait_record(event_type="webhook_delivered", attempt=3)
    assert len([r for r in daemon.records() if r["event_type"] == event]) == 2
    assert daemon.metric("sandbox_webhooks_failed_total") == 2
    assert daemon.metric("sandbox_webhooks_unknown_total") == (2 if event == "webhook_unknown" else 0)
    assert daemon.metric("sandbox_webhooks_delivered_total") == 1
    assert daemon.metric("sandbox_webhooks_waiting") == 0 and daemon.metric("sandbox_webhook_bytes") == 0


def test_one_that_says_nothing_is_unknown(make_daemon, receiver):
    daemon = make_daemon(**settings(WEBHOOK_ANSWER_MS=300))
    receiver.script("other", "hang")
    execute(daemon, hook(receiver))
    daemon.wait_record(event_type="webhook_unknown", attempt=1)
    daemon.wait_record(event_type="webhook_delivered", attempt=2)


def test_410_gives_up(make_daemon, receiver):
    daemon = make_daemon(**settings())
    receiver.always("other", 410)
    execute(daemon, hook(receiver))
    daemon.wait_record(event_type="webhook_given_up", status_code=410)
    assert daemon.metric("sandbox_webhooks_given_up_total") == 1 and daemon.metric("sandbox_webhooks_waiting") == 0


def test_what_is_too_old_is_given_up(make_daemon):
    daemon = make_daemon(**settings(WEBHOOK_SECONDS=1))
    execute(daemon, f"http://127.0.0.1:{ControlPlane.reserve()}/")
    daemon.wait_record(event_type="webhook_given_up", error="it is too old")
    assert daemon.metric("sandbox_webhooks_waiting") == 0


def test_a_host_that_hangs_does_not_hold_up_another(make_daemon, receiver):
    daemon = make_daemon(**settings(WEBHOOK_CONNECTIONS=4, WEBHOOK_ANSWER_MS=60000, WEBHOOK_HOSTS="127.0.0.1:*,127.0.0.2:*"))
    with socket.create_server(("127.0.0.2", 0)) as deaf:
        for _ in range(8):
            assert execute(daemon, f"http://127.0.0.2:{deaf.getsockname()[1]}/").status == 200
        execute(daemon, hook(receiver))
        received(receiver)
        assert daemon.metric("sandbox_webhooks_waiting") >= 8


def test_their_number_and_bytes_are_limited(make_daemon, receiver):
    daemon = make_daemon(**settings(WEBHOOK_MAX=2, WEBHOOK_BYTES_MAX=4096, WEBHOOK_BASE_MS=60000, WEBHOOK_CAP_MS=60000))
    receiver.always("other", 500)
    execute(daemon, hook(receiver))
    assert execute(daemon, hook(receiver), "print('x' * 9000)").status == 200
    daemon.wait_record(event_type="webhook_not_saved")
    received(receiver, 2)
    full = execute(daemon, hook(receiver))
    assert full.status == 503 and "WEBHOOK_MAX" in full.json()["error_detail"], full
    body = {"language": "python", "code": "def f(): pass", "functionName": "f", "webhook": hook(receiver)}
    assert daemon.request("POST", "/v1/functions/call", json=body).status == 503
    assert execute(daemon, None).status == 200
    assert 0 < daemon.metric("sandbox_webhook_bytes") <= 4096


# ---- the end of the daemon ----

@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_what_is_not_delivered_survives_the_daemon(again, receiver, how):
    receiver.always("other", 503)
    daemon = again(WEBHOOK_BASE_MS=60000, WEBHOOK_CAP_MS=60000)
    secret = {"url": hook(receiver), "secret": "mine"}
    answers = [execute(daemon, secret).json() for _ in range(3)]
    ids = {s.headers["Webhook-Id"] for s in received(receiver, 3)}
    daemon.signal(how)
    daemon.wait()
    files = list((again.state / "webhooks").glob("*.json"))
    assert len(files) == 3 and all(f.stat().st_mode & 0o77 == 0 for f in files)
    receiver.always("other", None)
    second = again()
    seen = received(receiver, 6)[3:]
    assert {s.headers["Webhook-Id"] for s in seen} == ids and all(is_genuine("mine", s) for s in seen)
    by_id = {a["execution_id"]: a for a in answers}
    assert all(s.json == by_id.pop(s.json["execution_id"]) for s in seen)
    wait_until(lambda: not list((again.state / "webhooks").glob("*.json")), "nothing is left on disk")
    assert second.metric("sandbox_webhooks_waiting") == 0


def test_killed_before_the_first_attempt(again):
    """The answer came, so the message is on disk."""
    port = ControlPlane.reserve()
    daemon = again(WEBHOOK_BASE_MS=60000, WEBHOOK_CAP_MS=60000)
    answered = execute(daemon, f"http://127.0.0.1:{port}/").json()
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    with ControlPlane(port) as plane:
        again()
        assert received(plane)[0].json == answered


@pytest.mark.parametrize("kind", ["execution", "call"])
def test_what_was_under_way_when_the_daemon_was_killed(again, receiver, kind):
    daemon = again()
    sleep = "import time; time.sleep(600)"
    if kind == "execution":
        name = execute(daemon, hook(receiver), sleep, asynchronous=True, timeout=900).json()["execution_id"]
    else:
        connection = daemon.connect()
        connection.send("POST", "/v1/functions/call", json={
            "language": "python", "code": f"def f():\n    {sleep}", "functionName": "f", "timeout": 900, "webhook": hook(receiver)})
        name = None
    wait_until(lambda: daemon.metric("sandbox_executions_active") == 1, "it runs")
    wait_until(lambda: list((again.state / "webhooks").glob("msg_*.json")), "the promise is on disk")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    assert not receiver.requests
    again()
    told = received(receiver)[0]
    assert is_genuine(SECRET, told) and told.json["status"] == "error"
    if kind == "execution":
        assert told.json["execution_id"] == name and "was killed" in told.json["stderr"]
    else:
        assert "was killed" in told.json["error"]["message"] and told.json["meta"]["callId"]
    wait_until(lambda: not list((again.state / "webhooks").glob("msg_*.json")), "it is told once")


def test_a_promise_that_is_kept_leaves_nothing(again, receiver):
    """Also of requests that are refused after all, or end before the promise is on disk."""
    daemon = again(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=0)
    execute(daemon, hook(receiver), "import time; time.sleep(600)", asynchronous=True, timeout=900, execution_id="first")
    assert [execute(daemon, hook(receiver)).status for _ in range(10)] == [503] * 10
    wait_until(lambda: len(list((again.state / "webhooks").glob("msg_*.json"))) == 1, "only the first one's is there")
    assert daemon.metric("sandbox_webhooks_waiting") == 1
    daemon.request("DELETE", "/v1/executions/first")
    for _ in range(20):
        wait_until(lambda: execute(daemon, hook(receiver), "1").status == 200, "there is a place")
    assert {s.json["status"] for s in received(receiver, 21)[1:]} == {"success"}
    wait_until(lambda: not list((again.state / "webhooks").glob("*.json")), "nothing is left")
    assert daemon.metric("sandbox_webhooks_waiting") == 0 and daemon.metric("sandbox_webhook_bytes") == 0


def test_a_stop_ends_what_runs_and_tells(again, receiver):
    daemon = again()
    execute(daemon, hook(receiver), "import time; time.sleep(600)", asynchronous=True, timeout=900)
    wait_until(lambda: daemon.metric("sandbox_executions_active") == 1, "it runs")
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    assert received(receiver)[0].json["termination"]["reason"] == "shutdown"
    assert not list((again.state / "webhooks").glob("*.json")), "delivered before the end"


def test_a_host_that_is_no_longer_allowed(again, receiver):
    receiver.always("other", 503)
    daemon = again(WEBHOOK_BASE_MS=60000, WEBHOOK_CAP_MS=60000)
    execute(daemon, hook(receiver))
    received(receiver)
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    second = again(WEBHOOK_HOSTS="other.example")
    record = second.wait_record(event_type="webhook_given_up")
    assert "WEBHOOK_HOSTS" in record["error"] and len(receiver.of("other")) == 1


@pytest.mark.parametrize("damage", ["", "{}", '{"execution_id":"msg_x","result":{}}'])
def test_a_damaged_file_is_dropped(again, receiver, damage):
    (again.state / "webhooks").mkdir(parents=True, mode=0o700)
    (again.state / "webhooks" / "msg_x.json").write_text(damage)
    daemon = again()
    daemon.wait_record(event_type="webhook_lost", webhook_id="msg_x")
    assert execute(daemon, hook(receiver)).status == 200
    received(receiver)
