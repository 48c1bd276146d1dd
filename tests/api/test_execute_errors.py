# SPDX-License-Identifier: MIT
"""Requests that are refused, and how the refusal reads."""
import json

import pytest

import harness

GOOD = {"code": "true", "language": "shell"}


def refused(response, status=400):
    """Asserts the error object of this family and returns it."""
    assert response.status == status, response
    assert response.headers["Content-Type"].startswith("application/json")
    body = response.json()
    assert body["error_code"] == "Executor.ValidationError"
    for name in ("description", "error_detail", "solution", "request_id"):
        assert isinstance(body[name], str) and body[name], name
    assert isinstance(body["detail"], list) and body["detail"]
    return body


@pytest.mark.parametrize("change, field", [
    ({"code": None}, "code"),
    ({"code": 5}, "code"),
    ({"code": ["a"]}, "code"),
    ({"code": "echo \0"}, "code"),
    ({"language": None}, "language"),
    ({"language": ""}, "language"),
    ({"language": "ruby"}, "language"),
    ({"language": "Python"}, "language"),
    ({"language": "python "}, "language"),
    ({"language": 1}, "language"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": 3601}, "timeout"),
    ({"timeout": 10**30}, "timeout"),
    ({"timeout": 0.04}, "timeout"),
    ({"timeout": True}, "timeout"),
    ({"timeout": None}, "timeout"),
    ({"timeout": [1]}, "timeout"),
    ({"timeout": "soon"}, "timeout"),
    ({"event": None}, "event"),
    ({"event": "text"}, "event"),
    ({"event": [1]}, "event"),
    ({"event": 3}, "event"),
    ({"stdin": 3}, "stdin"),
    ({"stdin": {}}, "stdin"),
    ({"env_vars": "A=1"}, "env_vars"),
    ({"env_vars": ["A"]}, "env_vars"),
    ({"env_vars": {"A": 1}}, "env_vars"),
    ({"env_vars": {"A": None}}, "env_vars"),
    ({"env_vars": {"A": "x\0y"}}, "env_vars"),
    ({"env_vars": {"A\0": "x"}}, "env_vars"),
    ({"env_vars": {"A=B": "x"}}, "env_vars"),
    ({"env_vars": {"": "x"}}, "env_vars"),
    ({"env_vars": {"A\n": "x"}}, "env_vars"),
    ({"env_vars": {"A\x7f": "x"}}, "env_vars"),
    ({"env_vars": {"LONG": "x" * 131_072}}, "LONG"),
    ({"env_vars": {"x" * 131_072: ""}}, "env_vars"),
    ({"execution_id": ""}, "execution_id"),
    ({"execution_id": 7}, "execution_id"),
    ({"execution_id": ".hidden"}, "execution_id"),
    ({"execution_id": "a/b"}, "execution_id"),
    ({"execution_id": "../x"}, "execution_id"),
    ({"execution_id": "a b"}, "execution_id"),
    ({"execution_id": "é"}, "execution_id"),
    ({"execution_id": "a\n"}, "execution_id"),
    ({"execution_id": "a\0b"}, "execution_id"),
    ({"execution_id": "x" * 129}, "execution_id"),
], ids=lambda v: json.dumps(v)[:40] if isinstance(v, dict) else v)
def test_bad_field_is_named(daemon, change, field):
    body = refused(daemon.request("POST", "/execute", json={**GOOD, **change}))
    assert field in json.dumps(body["detail"])
    assert any(field in item.get("loc", []) for item in body["detail"]), body["detail"]


@pytest.mark.parametrize("missing", ["code", "language"])
def test_missing_field_is_named(daemon, missing):
    request = {k: v for k, v in GOOD.items() if k != missing}
    body = refused(daemon.request("POST", "/execute", json=request))
    assert any(missing in item["loc"] and item["type"] == "missing" for item in body["detail"])


@pytest.mark.parametrize("text", [
    b"", b" ", b"{", b"}", b"{\"code\":\"true\",\"language\":\"shell\"", b"[]", b"null", b"3", b"\"text\"",
    b"{\"code\":\"true\",\"language\":\"shell\",}", b"{\"code\":\"true\" \"language\":\"shell\"}",
    b"{'code':'true','language':'shell'}", b"{\"code\":\"true\",\"language\":\"shell\"} x",
    b"{\"code\":\"true\",\"language\":\"shell\"}{}", b"// c\n{\"code\":\"true\",\"language\":\"shell\"}",
    b"\xef\xbb\xbf{\"code\":\"true\",\"language\":\"shell\"}", b"{\"code\":\"\xff\",\"language\":\"shell\"}",
    b"{\"code\":\"\xc0\xaf\",\"language\":\"shell\"}", b"{\"code\":\"\xed\xa0\x80\",\"language\":\"shell\"}",
    b"{\"code\":\"a\nb\",\"language\":\"shell\"}", b"{\"code\":\"\\x\",\"language\":\"shell\"}",
    b"{\"code\":\"\\u12\",\"language\":\"shell\"}", b"{\"code\":\"\\ud800\",\"language\":\"shell\"}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"event\":{\"a\":NaN}}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"event\":{\"a\":Infinity}}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"event\":{\"a\":01}}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"event\":{\"a\":1.}}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"event\":{\"a\":+1}}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"timeout\":5,\"timeout\":6}",
    b"{\"code\":\"true\",\"code\":\"false\",\"language\":\"shell\"}",
    b"{\"code\":\"true\",\"\\u0063ode\":\"false\",\"language\":\"shell\"}",
    b"{\"code\":\"true\",\"language\":\"shell\",\"env_vars\":{\"A\":\"1\",\"A\":\"2\"}}",
    b"\0", b"{\"code\":\"true\",\"language\":\"shell\"}\0",
], ids=lambda t: repr(t)[2:42])
def test_malformed_json_is_refused(daemon, text):
    refused(daemon.post_execute(text))


def test_absurd_nesting_is_refused(daemon):
    deep = "[" * 200_000 + "]" * 200_000
    refused(daemon.post_execute('{"code":"true","language":"shell","event":{"a":%s}}' % deep))


def test_every_problem_is_listed(daemon):
    body = refused(daemon.request("POST", "/execute", json={"language": "ruby", "timeout": 0}))
    named = {name for item in body["detail"] for name in item["loc"]}
    assert {"code", "language", "timeout"} <= named


def test_details_have_type_place_and_message(daemon):
    body = refused(daemon.request("POST", "/execute", json={**GOOD, "timeout": 0}))
    item = body["detail"][0]
    assert item["loc"] == ["body", "timeout"]
    assert item["type"] == "greater_than_equal" and item["msg"]


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 128, "exec_20250106_abcd1234", "exec_20250106123456_ab12cd34"])
def test_good_execution_ids_are_kept(daemon, name):
    assert daemon.execute("true", "shell", execution_id=name)["execution_id"] == name


@pytest.mark.parametrize("timeout", ["1", "3600", "2.0", "2e1", "0.5", '"7"'])
def test_good_timeouts(daemon, timeout):
    response = daemon.post_execute('{"code":"true","language":"shell","timeout":%s}' % timeout)
    assert response.status == 200


def test_null_is_absent_for_names_and_input(daemon):
    result = daemon.execute("cat; echo ok", "shell", execution_id=None, session_id=None, stdin=None)
    assert result["stdout"] == "ok\n" and result["execution_id"]


# ---- sizes ----


def test_code_of_exactly_one_mebibyte_runs(daemon):
    code = "echo ok\n#" + "x" * (1024 * 1024 - 9)
    assert len(code) == 1 << 20
    assert daemon.printed(code) == "ok\n"


@pytest.mark.parametrize("code", ["#" * ((1 << 20) + 1), "é" * (1 << 19) + "#"], ids=["ascii", "bytes not characters"])
def test_larger_code_is_refused(daemon, code):
    body = refused(daemon.request("POST", "/execute", json={"code": code, "language": "shell"}))
    assert body["error_detail"] == "Code size exceeds 1MB limit"
    assert body["description"] == "Invalid value provided"


def test_body_above_the_limit_is_413(daemon):
    response = daemon.post_execute(b'{"code":"true","language":"shell","stdin":"' + b"x" * (4 << 20) + b'"}')
    assert response.status == 413, response
    assert response.json()["error_code"]


def test_announced_body_above_the_limit_is_413_before_it_is_sent(daemon):
    with daemon.socket() as s:
        s.sendall((f"POST /execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.secret}\r\n"
                   "Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n").encode())
        assert b" 413 " in s.recv(4096).split(b"\r\n")[0]


def test_body_just_below_the_limit_is_accepted(daemon):
    head, tail = b'{"code":"wc -c","language":"shell","stdin":"', b'"}'
    filler = (4 << 20) - len(head) - len(tail)
    response = daemon.post_execute(head + b"x" * filler + tail)
    assert response.status == 200
    assert int(response.json()["stdout"]) == filler


def test_limits_of_bodies_can_be_configured(make_daemon):
    daemon = make_daemon(BODY_MAX_EXECUTE=2048, CODE_MAX=64)
    assert daemon.post_execute(b" " * 4096).status == 413
    refused(daemon.request("POST", "/execute", json={"code": "#" * 65, "language": "shell"}))
    assert daemon.printed("echo ok") == "ok\n"


# ---- content type, request id ----


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/vnd.x+json",
                                  "APPLICATION/JSON", None])
def test_content_types_that_count_as_json(daemon, kind):
    response = daemon.request("POST", "/execute", body=json.dumps(GOOD), headers={"Content-Type": kind})
    assert response.status == 200, response


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_other_content_types_are_refused(daemon, kind):
    """A browser may send these across origins without asking; JSON it may not."""
    response = daemon.request("POST", "/execute", body=json.dumps(GOOD), headers={"Content-Type": kind})
    assert response.status in (400, 415), response


def test_request_id_of_the_caller_is_kept(daemon):
    response = daemon.request("POST", "/execute", json={"code": 1}, headers={"X-Request-Id": "mine-1"})
    assert refused(response)["request_id"] == "mine-1"
    assert response.headers["X-Request-Id"] == "mine-1"


def test_request_id_is_made_when_absent_or_malformed(daemon):
    ids = [refused(daemon.request("POST", "/execute", json={"code": 1}, headers=h))["request_id"]
           for h in ({}, {}, {"X-Request-Id": "a b{}"}, {"X-Request-Id": "x" * 4000})]
    assert len(set(ids)) == 4
    assert "a b{}" not in ids


def test_refusals_never_echo_code_or_secrets(daemon):
    response = daemon.request("POST", "/execute", json={"code": "secret-code", "language": "ruby",
                                                        "env_vars": {"K": "secret-value"}})
    assert "secret" not in response.text.replace("secrets", "")


def test_a_refusal_costs_the_connection_nothing(daemon):
    with daemon.connect() as connection:
        for _ in range(3):
            assert connection.request("POST", "/execute", json={"code": 1}).status == 400
            assert connection.execute("echo ok", "shell")["stdout"] == "ok\n"


# ---- the asynchronous form ----


def test_prefer_respond_async_answers_at_once(daemon):
    response = daemon.request("POST", "/execute", headers={"Prefer": "respond-async"},
                              json={"code": "echo later", "language": "shell", "execution_id": "async-1"})
    assert response.status in (200, 202)
    body = response.json()
    assert (body["execution_id"], body["status"], body["message"]) == ("async-1", "PENDING", "Execution submitted")
    assert response.headers["Location"] == "/v1/executions/async-1"
    done = harness.wait_until(
        lambda: daemon.request("GET", "/v1/executions/async-1").json()["result"], "the result appears")
    assert (done["status"], done["stdout"]) == ("success", "later\n")


def test_session_id_makes_the_answer_asynchronous_and_prefer_wait_undoes_it(daemon):
    request = {"code": "echo hi", "language": "shell", "session_id": "s1"}
    assert daemon.request("POST", "/execute", json=request).json()["status"] == "PENDING"
    waited = daemon.request("POST", "/execute", json=request, headers={"Prefer": "wait"}).json()
    assert (waited["status"], waited["stdout"]) == ("success", "hi\n")
