# SPDX-License-Identifier: MIT
"""Who may call."""
import concurrent.futures
import json
import pathlib
import re
import shutil
import stat
import tempfile

import pytest

import harness

CALL = {"code": "echo in", "language": "shell"}
GUARDED = [("POST", "/execute"), ("GET", "/v1/executions/x"), ("GET", "/v1/executions/x/artifacts/y"),
           ("DELETE", "/v1/executions/x"), ("GET", "/info"), ("GET", "/metrics"), ("GET", "/v1/capabilities")]


def call(daemon, authorization):
    return daemon.request("POST", "/execute", json=CALL, headers={"Authorization": authorization}).status


@pytest.mark.parametrize("method, path", GUARDED)
def test_guarded_routes_need_the_secret(daemon, method, path):
    response = daemon.request(method, path, headers={"Authorization": None}, body=b"" if method == "POST" else None)
    assert response.status == 401
    assert daemon.secret not in response.text


def test_refusals_are_made(daemon):
    good = daemon.secret
    for bad in (None, "", "Bearer", "Bearer ", good, "bearer " + good, "Basic " + good, "Bearer  " + good,
                "Bearer " + good + "x", "Bearer " + good[:-1], "Bearer x" + good, "Bearer " + good.swapcase(),
                "Bearer " + "x" * 8000, "Bearer \xff\xfe"):
        assert call(daemon, bad) == 401, bad
    assert call(daemon, "Bearer " + good) == 200


def test_the_secret_counts_in_no_other_place(daemon):
    response = daemon.request("POST", f"/execute?token={daemon.secret}&access_token={daemon.secret}", json=CALL,
                              headers={"Authorization": None, "X-Api-Key": daemon.secret})
    assert response.status == 401


def test_a_second_authorization_header_does_not_help(daemon):
    with daemon.socket() as s:
        s.sendall((f"GET /v1/executions/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n"
                   f"Authorization: Bearer {daemon.secret}\r\nConnection: close\r\n\r\n").encode())
        assert s.recv(4096).split(b" ")[1] in (b"400", b"401")


def test_order_is_path_then_secret_then_method_then_body(daemon):
    anonymous = {"Authorization": None}
    assert daemon.request("GET", "/nothing", headers=anonymous).status == 404
    assert daemon.request("GET", "/execute", headers=anonymous).status == 401
    assert daemon.request("GET", "/execute").status == 405
    assert daemon.request("POST", "/execute", headers=anonymous, body=b"{").status == 401


def test_health_is_open(daemon):
    assert daemon.request("GET", "/health", headers={"Authorization": None}).status == 200
    assert daemon.request("GET", "/health", headers={"Authorization": "Bearer wrong"}).status == 200


def test_an_unauthorised_body_is_not_waited_for(daemon):
    """The answer comes although the body never does."""
    with daemon.socket() as s:
        s.sendall(b"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
        assert s.recv(4096).split(b" ")[1] == b"401"


# ---- modes ----


def test_none_asks_nobody(make_daemon):
    daemon = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None)
    assert call(daemon, None) == 200
    assert call(daemon, "Bearer anything") == 200


@pytest.mark.parametrize("env, words", [
    ({"SANDBOX_AUTH_MODE": "static", "SANDBOX_SECRET": None}, "SANDBOX_SECRET"),
    ({"SANDBOX_AUTH_MODE": "static", "SANDBOX_SECRET": ""}, "SANDBOX_SECRET"),
    ({"SANDBOX_AUTH_MODE": "pool", "SANDBOX_SECRET": "x"}, "SANDBOX_SECRET"),
    ({"SANDBOX_AUTH_MODE": "open"}, "SANDBOX_AUTH_MODE"),
])
def test_contradictions_stop_the_start(env, words):
    refusal = harness.start_refused(**env)
    assert refusal.status == 1
    assert words in refusal.stderr


def test_without_any_setting_a_secret_is_made_kept_and_shown_once(make_daemon):
    daemon = make_daemon(SANDBOX_AUTH_MODE=None, SANDBOX_SECRET=None)
    text = harness.wait_until(lambda: "curl" in daemon.stdout_text() + daemon.log_text()
                              and daemon.stdout_text() + daemon.log_text(), "a curl to try")
    secret = re.search(r"SANDBOX_SECRET=([A-Za-z0-9_\-]{16,})", text).group(1)
    assert text.count(secret) == 1
    assert str(daemon.port) in text
    assert call(daemon, None) == 401
    assert call(daemon, "Bearer " + secret) == 200
    kept = [p for p in daemon.state_dir.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
    assert len(kept) == 1
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600


# ---- web pages, while there is no secret ----

PAGE = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}
PLAIN = {"Content-Type": "application/json"}
FOREIGN = [
    PAGE, {**PLAIN, "Origin": "http://evil.example"}, {**PLAIN, "Origin": "null"},
    {**PLAIN, "Sec-Fetch-Site": "cross-site"}, {**PLAIN, "Sec-Fetch-Site": "same-site"},
    {**PLAIN, "Host": "evil.example"}, {**PLAIN, "Host": "evil.example:8080", "Origin": "http://evil.example:8080"},
]
OURS = [
    {**PLAIN, "Host": "localhost:1"}, {**PLAIN, "Host": "[::1]"}, {**PLAIN, "Host": "executor:8080"},
    {**PLAIN, "Host": "localhost", "Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
]


def text_call(daemon, headers, path="/execute"):
    body = json.dumps(CALL if path == "/execute" else {"code": "f = lambda: 1", "language": "python", "functionName": "f"})
    return daemon.request("POST", path, body=body, headers={"Authorization": None, **headers})


@pytest.mark.parametrize("path", ["/execute", "/v1/functions/call"])
def test_none_takes_no_requests_of_web_pages(make_daemon, path):
    daemon = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None, ALLOWED_HOSTS="box.example")
    for headers in FOREIGN:
        response = text_call(daemon, headers, path)
        assert response.status == 403 and "secret" in response.json()["error_detail"], headers
    for headers in [*OURS, {**PLAIN, "Host": "box.example"}]:
        assert text_call(daemon, headers, path).status == 200, headers
    assert text_call(daemon, {"Host": "localhost", "Origin": "http://localhost"}, path).status == 403, "no type"
    assert daemon.request("GET", "/health", headers={"Host": "evil.example"}).status == 200


def test_none_refuses_web_pages_in_the_words_of_the_sandbox_family(make_daemon):
    daemon = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None)
    response = daemon.request("POST", "/run", body=b'{"cmd":"true"}', headers=PAGE)
    assert response.status == 403 and response.text.startswith("Without a secret")
    assert daemon.request("POST", "/run", body=b'{"cmd":"true"}').status == 200


def test_a_web_page_cannot_claim_a_pool(pool, place):
    daemon = pool(place)
    for headers in FOREIGN:
        assert text_call(daemon, {"Authorization": "Bearer theirs", **headers}).status == 403
    assert not place.exists()
    assert call(daemon, "Bearer mine") == 200
    assert text_call(daemon, {"Authorization": "Bearer mine", **FOREIGN[1]}).status == 200, "claimed: the secret decides"


def test_with_a_secret_only_the_secret_decides(daemon):
    for headers in FOREIGN[1:]:
        assert text_call(daemon, {"Authorization": "Bearer " + daemon.secret, **headers}).status == 200


def test_none_on_an_address_of_others_is_warned_about(make_daemon):
    quiet = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None)
    loud = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None, EXECUTOR_HOST="0.0.0.0")
    assert loud.wait_record(event_type="no_authentication", level="warn")
    assert not [r for r in quiet.records() if r.get("event_type") == "no_authentication"]


# ---- pool mode ----


@pytest.fixture
def pool(make_daemon):
    def make(path):
        return make_daemon(SANDBOX_AUTH_MODE="pool", SANDBOX_SECRET=None, SANDBOX_SECRET_PATH=path)
    return make


@pytest.fixture
def place():
    top = pathlib.Path(tempfile.mkdtemp(prefix="sbx-pool-"))
    top.chmod(0o755)
    yield top / "made" / "sandbox-secret"
    shutil.rmtree(top)


def test_pool_the_first_caller_claims(pool, place):
    daemon = pool(place)
    assert call(daemon, None) == 401
    assert call(daemon, "Bearer ") == 401
    assert daemon.request("GET", "/health", headers={"Authorization": "Bearer nobody"}).status == 200
    assert not place.exists()
    assert call(daemon, "Bearer first-token") == 200
    assert call(daemon, "Bearer other-token") == 401
    assert call(daemon, "Bearer first-token") == 200
    assert place.read_bytes() == b"first-token"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert [p.name for p in place.parent.iterdir()] == ["sandbox-secret"], "no temporary file is left"


def test_pool_a_claim_survives_a_restart(pool, place):
    assert call(pool(place), "Bearer first-token") == 200
    second = pool(place)
    assert call(second, "Bearer other-token") == 401
    assert call(second, "Bearer first-token") == 200


def test_pool_exactly_one_of_many_wins(pool, place):
    daemon = pool(place)
    with concurrent.futures.ThreadPoolExecutor(16) as many:
        states = list(many.map(lambda i: call(daemon, f"Bearer token-{i}"), range(16)))
    assert sorted(states) == [200] + [401] * 15


def test_pool_a_bad_request_still_claims(pool, place):
    daemon = pool(place)
    assert daemon.request("GET", "/execute", headers={"Authorization": "Bearer mine"}).status == 405
    assert call(daemon, "Bearer other") == 401
    assert call(daemon, "Bearer mine") == 200


def test_pool_an_empty_secret_file_stops_the_start(place):
    place.parent.mkdir(mode=0o700)
    place.write_text(" \n")
    refusal = harness.start_refused(SANDBOX_AUTH_MODE="pool", SANDBOX_SECRET=None, SANDBOX_SECRET_PATH=place)
    assert refusal.status == 1


def test_pool_a_claim_that_cannot_be_kept_is_none(pool, place):
    daemon = pool(place)
    place.parent.chmod(0o500 if harness.ROOT else 0o000)
    r = daemon.request("POST", "/run", json={"cmd": "true"}, headers={"Authorization": "Bearer first"})
    assert (r.status, r.text) == (500, "Internal Server Error\n")
    place.parent.chmod(0o700)
    r = daemon.request("POST", "/run", json={"cmd": "true"}, headers={"Authorization": "Bearer second"})
    assert r.status == 200, "nothing was claimed before"
    assert call(daemon, "Bearer first") == 401


def test_pool_every_missing_directory_is_made_and_the_last_is_the_daemons(pool, place):
    deep = place.parent / "a" / "b" / "sandbox-secret"
    assert call(pool(deep), "Bearer first-token") == 200
    assert deep.read_bytes() == b"first-token"
    assert [stat.S_IMODE(p.stat().st_mode) for p in (place.parent, deep.parent.parent, deep.parent)] \
        == [0o755, 0o755, 0o700]


@pytest.mark.parametrize("mode", [0o755, 0o700])
@pytest.mark.parametrize("below", ["", "inner"])
def test_pool_a_directory_where_no_claim_can_be_kept_stops_the_start(place, mode, below):
    """Otherwise the daemon is healthy, and every request a 500."""
    harness.need(harness.ROOT, "needs root, who becomes somebody else")
    place.parent.mkdir()
    place.parent.chmod(mode)
    secret = place.parent / below / "sandbox-secret"
    if below:
        secret.parent.mkdir(mode=0o755)
    refusal = harness.start_refused(SANDBOX_AUTH_MODE="pool", SANDBOX_SECRET=None, SANDBOX_SECRET_PATH=secret)
    assert refusal.status == 1
    blocked = place.parent if mode == 0o700 else secret.parent
    assert f"'{blocked}'" in refusal.stderr
    for word in ("'nobody'", "chown", "RUN_AS"):
        assert word in refusal.stderr


def test_pool_a_bare_name_is_kept_where_the_daemon_was_started(make_daemon):
    daemon = make_daemon(SANDBOX_AUTH_MODE="pool", SANDBOX_SECRET=None, SANDBOX_SECRET_PATH="bare", RUN_AS="root")
    assert call(daemon, "Bearer first-token") == 200
    assert (daemon.directory / "bare").read_bytes() == b"first-token"


def test_pool_a_claim_that_is_there_needs_no_directory_to_write_to(pool, place):
    place.parent.mkdir(mode=0o755)
    place.write_text("kept\n")
    assert call(pool(place), "Bearer kept") == 200


@pytest.mark.parametrize("env", [{"SANDBOX_AUTH_MODE": "Static"}, {"LOG_LEVEL": "Info"}, {"LOG_LEVEL": "no such level"}])
def test_words_come_in_any_case_and_an_unknown_level_is_info(make_daemon, env):
    daemon = make_daemon(**env)
    assert call(daemon, "Bearer " + daemon.secret) == 200
