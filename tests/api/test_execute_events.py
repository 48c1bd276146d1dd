# SPDX-License-Identifier: MIT
"""Live output of an execution as server-sent events."""

import pytest

import harness
from koyeb import Events

EVENTS = {"Accept": "text/event-stream"}


def execute(daemon, code, language="shell", headers=EVENTS, **fields):
    return Events(daemon, "POST", "/execute", {"language": language, "code": code, **fields}, headers)


def attach(daemon, name, **headers):
    return Events(daemon, "GET", f"/v1/executions/{name}", None, {**EVENTS, **headers})


def texts(events, kind):
    return "".join(data["data"] for event, data, _ in events if event == kind)


def test_output_comes_while_the_program_runs(daemon):
    events = execute(daemon, "echo first; echo wrong >&2; while :; do sleep 0.05; done", timeout=600)
    seen = []
    for event in events:
        seen.append(event)
        if texts(seen, "stdout") == "first\n" and texts(seen, "stderr") == "wrong\n":
            break
    name = events.response.headers["Location"].rsplit("/", 1)[1]
    assert daemon.request("GET", f"/v1/executions/{name}").json()["state"] == "running"
    daemon.request("DELETE", f"/v1/executions/{name}")
    rest = list(events)
    assert rest[-1][0] == "result"
    assert rest[-1][1]["termination"]["reason"] == "cancelled"
    assert texts(seen + rest, "stderr") == rest[-1][1]["stderr"]


@pytest.mark.parametrize("language, code", [
    ("shell", "printf 'a\\nb'; printf 'c' >&2"),
    ("python", "import sys\nprint('a\\nb', end='')\nprint('c', end='', file=sys.stderr)"),
    ("javascript", "process.stdout.write('a\\nb'); process.stderr.write('c')"),
])
def test_the_events_are_the_result(daemon, language, code):
    events = list(execute(daemon, code, language))
    assert events[-1][0] == "result"
    assert texts(events, "stdout") == events[-1][1]["stdout"] == "a\nb"
    assert texts(events, "stderr") == events[-1][1]["stderr"] == "c"


def test_the_result_is_the_same_as_without_events(daemon):
    result = list(execute(daemon, "def handler(event): return event", "python", event={"a": 1}))[-1][1]
    assert result["return_value"] == {"a": 1}
    kept = daemon.request("GET", f"/v1/executions/{result['execution_id']}").json()
    assert kept["result"] == result


def test_a_program_without_output_has_one_event(daemon):
    assert [event for event, _, _ in execute(daemon, "true")] == ["result"]


def test_characters_are_never_cut(daemon):
    code = "for i in $(seq 20); do printf '\\xe2'; sleep 0.02; printf '\\x82\\xac'; sleep 0.02; done"
    events = list(execute(daemon, code))
    assert texts(events, "stdout") == "€" * 20
    assert all("\ufffd" not in data["data"] for event, data, _ in events if event == "stdout")


def test_bytes_that_are_no_text_are_replaced(daemon):
    events = list(execute(daemon, "printf 'a\\xff\\xe2'"))
    assert texts(events, "stdout") == events[-1][1]["stdout"]


def test_large_output_comes_whole(daemon):
    events = list(execute(daemon, "seq 1 400000"))
    assert texts(events, "stdout") == events[-1][1]["stdout"]
    assert len(events[-1][1]["stdout"]) > 2_000_000


def test_a_request_that_is_refused_is_no_stream(daemon):
    response = daemon.request("POST", "/execute", headers=EVENTS, json={"language": "cobol", "code": ""})
    assert response.status == 400 and response.json()["detail"]


def test_progress(daemon):
    code = """
import os, time
def report(text):
    data = text.encode()
    os.write(3, b"P%08x" % len(data) + data)
def handler(event):
    report('{"done": 1}')
    time.sleep(0.3)
    report('not json')
    time.sleep(0.3)
    report('{"done": 2}')
    time.sleep(0.3)
"""
    events = list(execute(daemon, code, "python", mode="handler"))
    assert [data for event, data, _ in events if event == "progress"] == [{"done": 1}, {"done": 2}]


# ---- attaching ----


def test_who_attaches_sees_what_was_printed_and_what_follows(daemon):
    with daemon.connect() as first:
        first.send("POST", "/execute", json={"language": "shell", "execution_id": "attached",
                                             "code": "echo before; while [ ! -e go ]; do sleep 0.02; done"})
        harness.wait_until(lambda: daemon.request("GET", "/v1/executions/attached").status == 200, "it is there")
        one, two = attach(daemon, "attached"), attach(daemon, "attached")
        assert next(iter(one))[1] == {"data": "before\n"}
        assert next(iter(two))[1] == {"data": "before\n"}
        two.close()  # who only looks on ends nothing
        assert daemon.request("GET", "/v1/executions/attached").json()["state"] == "running"
        daemon.request("DELETE", "/v1/executions/attached")
        assert list(one)[-1][0] == "result"
        assert first.receive().json()["termination"]["reason"] == "cancelled"


def test_who_attaches_late_gets_everything(daemon):
    result = daemon.execute("echo a; echo b >&2", "shell")
    events = list(attach(daemon, result["execution_id"]))
    assert [event for event, _, _ in events] == ["stdout", "stderr", "result"]
    assert events[-1][1] == result


def test_who_comes_back_goes_on_where_he_was(daemon):
    result = daemon.execute("printf 0123456789; printf abc >&2", "shell")
    name = result["execution_id"]
    events = list(attach(daemon, name, **{"Last-Event-ID": "4-1"}))
    assert (texts(events, "stdout"), texts(events, "stderr")) == ("456789", "bc")
    for nonsense in ("", "x", "4", "11-0", "0-4", "-1-0", "4-1x", "99999999999999999999-0"):
        events = list(attach(daemon, name, **{"Last-Event-ID": nonsense}))
        assert texts(events, "stdout") == "0123456789", nonsense


def test_nothing_to_attach_to(daemon):
    assert daemon.request("GET", "/v1/executions/nobody", headers=EVENTS).status == 404


# ---- clients that vanish or are slow ----


def test_a_client_that_vanishes_ends_its_execution(daemon):
    events = execute(daemon, "echo here; while :; do sleep 0.05; done", execution_id="vanishing", timeout=600)
    next(iter(events))
    events.close()
    daemon.wait_record(event_type="execution_done", execution_id="vanishing", reason="cancelled")


def test_a_slow_client_slows_nobody_and_loses_nothing(daemon):
    events = execute(daemon, "seq 1 1000000; echo done >&2", execution_id="slowly", timeout=600)
    daemon.wait_record(event_type="execution_done", execution_id="slowly", reason="exit")
    events = list(events)
    assert texts(events, "stdout") == events[-1][1]["stdout"]
    assert texts(events, "stderr") == "done\n"


def test_a_slow_client_keeps_what_is_forgotten_meanwhile(daemon):
    events = execute(daemon, "seq 1 1000000", execution_id="forgotten")
    daemon.wait_record(event_type="execution_done", execution_id="forgotten")
    assert daemon.request("DELETE", "/v1/executions/forgotten").status == 204
    assert daemon.request("GET", "/v1/executions/forgotten").status == 404
    events = list(events)
    assert texts(events, "stdout") == events[-1][1]["stdout"] and len(events[-1][1]["stdout"]) > 5_000_000


def test_the_end_of_the_server_ends_a_stream(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=1)
    events = execute(daemon, "echo here; while :; do sleep 0.05; done", timeout=600)
    first = next(iter(events))
    assert first[1] == {"data": "here\n"}
    daemon.process.terminate()
    rest = list(events)
    assert rest and rest[-1][0] == "result" and rest[-1][1]["termination"]["reason"] == "shutdown"
