# SPDX-License-Identifier: MIT
"""Sessions with a workspace of their own, executions nobody waits for, and ids that are sent again."""
import json
import os
import signal
import threading

import pytest

import harness

ASYNC = {"Prefer": "respond-async"}
WAIT = {"Prefer": "wait"}


def post(daemon, code, language="shell", headers=None, **fields):
    return daemon.request("POST", "/execute", json={"code": code, "language": language, **fields}, headers=headers)


def run(daemon, code, **fields):
    """Waits, whatever the session says."""
    response = post(daemon, code, headers=WAIT, **fields)
    assert response.status == 200, response
    return response.json()


def printed(daemon, code, **fields):
    result = run(daemon, code, **fields)
    assert result["status"] == "success", result
    return result["stdout"]


def finished(daemon, key):
    def look():
        body = daemon.request("GET", f"/v1/executions/{key}").json()
        return body if body.get("state") == "done" else None
    return harness.wait_until(look, f"{key} is done")


def unique(name):
    return f"{name}-{harness.marker()}"


# ---- not waiting ----


@pytest.mark.parametrize("headers, fields, waits", [
    ({}, {}, True),
    ({}, {"session_id": "async"}, False),
    (ASYNC, {}, False),
    ({"Prefer": "Respond-Async, wait=10"}, {}, False),
    (WAIT, {"session_id": "async"}, True),
    ({"Prefer": "handling=lenient"}, {"session_id": "async"}, False),
])
def test_who_waits(daemon, headers, fields, waits):
    body = post(daemon, "echo hi", headers=headers, **fields).json()
    if waits:
        assert (body["status"], body["stdout"]) == ("success", "hi\n")
        return
    assert set(body) == {"execution_id", "status", "message"}
    assert (body["status"], body["message"]) == ("PENDING", "Execution submitted")
    assert finished(daemon, body["execution_id"])["result"]["stdout"] == "hi\n"


def test_where_to_ask_is_said(daemon):
    response = post(daemon, "true", headers=ASYNC)
    key = response.json()["execution_id"]
    assert response.headers["Location"] == f"/v1/executions/{key}"
    assert finished(daemon, key)["status"] == "success"


def test_it_goes_on_when_the_caller_leaves(daemon):
    with daemon.connect() as connection:
        body = {"code": "sleep 0.3; echo stayed", "language": "shell"}
        key = connection.request("POST", "/execute", json=body, headers=ASYNC).json()["execution_id"]
    assert finished(daemon, key)["result"]["stdout"] == "stayed\n"


def test_it_can_be_cancelled(daemon):
    mark = harness.marker()
    key = post(daemon, harness.spawn_marked(mark), headers=ASYNC).json()["execution_id"]
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    assert daemon.request("GET", f"/v1/executions/{key}").json()["state"] == "running"
    assert daemon.request("DELETE", f"/v1/executions/{key}").status == 202
    assert finished(daemon, key)["result"]["termination"]["reason"] == "cancelled"
    assert not harness.processes_with(mark)
    assert daemon.request("DELETE", f"/v1/executions/{key}").status == 204
    assert daemon.request("GET", f"/v1/executions/{key}").status == 404


def test_one_that_waits_can_be_cancelled(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1)
    first = post(daemon, "sleep 60", headers=ASYNC).json()["execution_id"]
    second = post(daemon, "echo never", headers=ASYNC).json()["execution_id"]
    assert daemon.request("GET", f"/v1/executions/{second}").json()["state"] == "queued"
    daemon.request("DELETE", f"/v1/executions/{second}")
    assert finished(daemon, second)["result"]["termination"]["reason"] == "cancelled"
    daemon.request("DELETE", f"/v1/executions/{first}")
    assert finished(daemon, first)


def test_progress_can_be_asked_for(daemon):
    code = ("import time\ndef handler(e, c):\n    c.progress({'step': 1})\n    time.sleep(60)")
    key = post(daemon, code, "python", headers=ASYNC).json()["execution_id"]
    harness.wait_until(lambda: daemon.request("GET", f"/v1/executions/{key}").json()["progress"] == {"step": 1},
                       "progress is shown")
    daemon.request("DELETE", f"/v1/executions/{key}")
    finished(daemon, key)


# ---- admission ----


def test_places_then_a_queue_then_a_refusal(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=1)
    held = post(daemon, "sleep 60", headers=ASYNC).json()["execution_id"]
    queued = post(daemon, "true", headers=ASYNC).json()["execution_id"]
    refused = post(daemon, "true", headers=ASYNC)
    assert refused.status == 503 and int(refused.headers["Retry-After"]) >= 1
    assert refused.json()["error_code"] == "Executor.QueueFull"
    daemon.request("DELETE", f"/v1/executions/{held}")
    assert finished(daemon, queued)["result"]["timings"]["queue_ms"] > 0


def test_a_session_may_not_fill_the_queue(make_daemon):
    daemon = make_daemon(SESSION_QUEUE_MAX=2, SESSION_CONCURRENCY=1)
    keys = [post(daemon, "sleep 60", session_id="greedy").json()["execution_id"] for _ in range(3)]
    assert post(daemon, "true", session_id="greedy").status == 503
    assert printed(daemon, "echo ok", session_id="modest") == "ok\n"
    assert printed(daemon, "echo ok") == "ok\n"
    for key in reversed(keys):
        daemon.request("DELETE", f"/v1/executions/{key}")
    for key in keys:
        finished(daemon, key)


# ---- sessions ----


def test_a_session_keeps_its_files(daemon):
    session = unique("files")
    assert printed(daemon, "echo one >note; mkdir d; echo two >d/e", session_id=session) == ""
    assert printed(daemon, "cat note d/e", session_id=session) == "one\ntwo\n"
    result = run(daemon, "def handler(e): return open('note').read()", language="python", session_id=session)
    assert result["return_value"] == "one\n" and result["artifacts"] == ["d/e", "note"]
    code = "exports.handler = () => require('fs').readFileSync('d/e', 'utf8')"
    assert run(daemon, code, language="javascript", session_id=session)["return_value"] == "two\n"


def test_others_do_not_see_them(daemon):
    session = unique("mine")
    printed(daemon, "echo secret >secret", session_id=session)
    for other in (unique("other"), session + ".", session.upper(), session[:-1]):
        assert printed(daemon, "ls -A", session_id=other) == ""
    assert printed(daemon, "ls -A") == ""


@pytest.mark.parametrize("session", ["..", ".", "../../etc", "a/b", "a\nb", "ü", "x" * 256, " ", ".hidden", "-rf", "*"])
def test_any_name_is_a_session_of_its_own(daemon, session):
    name = session if len(session) > 200 else session + unique("")[:-8]
    for key in {session, name}:
        printed(daemon, "rm -rf ./* && echo here >mine", session_id=key)
        assert printed(daemon, "ls -A; cat mine", session_id=key) == "mine\nhere\n"


def test_one_after_the_other_in_order(make_daemon):
    daemon = make_daemon(SESSION_CONCURRENCY=1)
    session = unique("order")
    keys = [post(daemon, f"test ! -e busy && touch busy && sleep 0.05 && rm busy && echo {i} >>log",
                 session_id=session).json()["execution_id"] for i in range(8)]
    for key in keys:
        assert finished(daemon, key)["status"] == "success"
    assert printed(daemon, "cat log", session_id=session).split() == [str(i) for i in range(8)]


def test_sessions_run_side_by_side(daemon):
    mark = harness.marker()
    keys = [post(daemon, harness.spawn_marked(mark), session_id=unique("side")).json()["execution_id"]
            for _ in range(4)]
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 4, "four sessions run at the same time")
    for key in keys:
        daemon.request("DELETE", f"/v1/executions/{key}")
    for key in keys:
        finished(daemon, key)


def test_a_cancelled_one_lets_the_next_one_run(make_daemon):
    daemon = make_daemon(SESSION_CONCURRENCY=1)
    session = unique("next")
    keys = [post(daemon, code, session_id=session).json()["execution_id"]
            for code in ("sleep 60", "sleep 60", "echo last")]
    daemon.request("DELETE", f"/v1/executions/{keys[1]}")
    daemon.request("DELETE", f"/v1/executions/{keys[0]}")
    assert finished(daemon, keys[2])["result"]["stdout"] == "last\n"


def test_processes_do_not_outlive_their_turn(daemon):
    session = unique("turn")
    mark = harness.marker()
    printed(daemon, f"({harness.spawn_marked(mark)} >/dev/null 2>&1 &) ; true", session_id=session)
    assert not harness.processes_with(mark)


def test_a_workspace_survives_the_daemon(make_daemon):
    first = make_daemon()
    place = first.directory / "kept"
    first.signal(signal.SIGTERM)
    first.wait()
    daemon = make_daemon(WORKSPACE_PATH=place)
    printed(daemon, "echo still >here", session_id="long")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    daemon.check_nothing_left()
    assert printed(make_daemon(WORKSPACE_PATH=place), "cat here", session_id="long") == "still\n"


def test_each_workspace_has_a_host_user_of_its_own(make_daemon):
    harness.need(harness.ROOT, "without root there is one user")
    daemon = make_daemon()
    mark = harness.marker()
    keys = [post(daemon, "touch f; " + harness.spawn_marked(mark), session_id=name).json()["execution_id"]
            for name in ("a", "b")]
    running = harness.wait_until(lambda: len(p := harness.processes_with(mark)) == 2 and p, "both run")
    users = {os.stat(f"/proc/{p}").st_uid for p in running}
    workspaces = daemon.state_dir / "workspaces"
    owners = {p.name: p.stat().st_uid for p in workspaces.iterdir()}
    assert set(owners) == {"s-a", "s-b"} and set(owners.values()) == users and len(users) == 2
    assert all(p.stat().st_mode & 0o777 == 0o700 for p in workspaces.iterdir())
    assert not users & {0, 65534, 1000}
    for key in keys:
        daemon.request("DELETE", f"/v1/executions/{key}")
    for key in keys:
        finished(daemon, key)
    again = post(daemon, "touch g", session_id="a", headers=WAIT).json()
    assert again["status"] == "success"
    assert {p.stat().st_uid for p in (workspaces / "s-a").iterdir()} == {owners["s-a"]}


def test_nothing_special_can_be_made_in_a_workspace(daemon):
    session = unique("special")
    code = "cp /bin/sh ./sh && chmod 4755 sh; mknod n c 1 3; grep ' /workspace ' /proc/self/mounts"
    options = run(daemon, code, session_id=session)["stdout"]
    assert "nosuid" in options and "nodev" in options


def test_a_link_out_of_the_workspace_leads_nowhere(daemon):
    session = unique("link")
    printed(daemon, "ln -s / root; ln -s /etc/passwd pw; ln -s ../../../../etc/shadow sh", session_id=session)
    result = run(daemon, "cat root/etc/hostname; cat sh 2>/dev/null; true", session_id=session)
    assert result["stdout"] == "sandbox\n" and result["artifacts"] == []


def test_a_foreign_directory_is_not_taken_over(make_daemon):
    harness.need(harness.ROOT, "only root gives directories away")
    daemon = make_daemon()
    place = daemon.state_dir / "workspaces" / "s-planted"
    place.mkdir(mode=0o755)
    result = run(daemon, "true", session_id="planted")
    assert result["status"] == "error" and "planted" in result["stderr"]
    assert place.stat().st_uid == 0


# ---- the same id again ----


def test_the_same_words_give_the_same_answer(daemon):
    key = unique("same")
    body = {"code": "echo $$ $RANDOM $RANDOM", "language": "shell", "execution_id": key}
    first = daemon.request("POST", "/execute", json=body)
    again = daemon.request("POST", "/execute", json=body)
    assert (first.status, again.status) == (200, 200)
    assert first.json() == again.json()


def test_it_does_not_run_twice_at_the_same_time(daemon):
    session, key = unique("twice"), unique("twice")
    body = {"code": "echo run >>log; sleep 0.5; cat log", "language": "shell", "execution_id": key,
            "session_id": session}
    answers = []

    def ask():
        answers.append(daemon.request("POST", "/execute", json=body, headers=WAIT).json())
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a["stdout"] for a in answers] == ["run\n"] * 4
    pending = daemon.request("POST", "/execute", json=body).json()
    assert pending["status"] == "PENDING" and finished(daemon, key)["result"] == answers[0]
    assert printed(daemon, "cat log", session_id=session) == "run\n"


def test_other_words_are_a_conflict(daemon):
    key = unique("conflict")
    assert post(daemon, "echo a", execution_id=key).status == 200
    refused = post(daemon, "echo b", execution_id=key)
    assert refused.status == 409 and refused.json()["error_code"] == "Executor.Conflict"
    assert daemon.request("GET", f"/v1/executions/{key}").json()["result"]["stdout"] == "a\n"
    assert daemon.request("DELETE", f"/v1/executions/{key}").status == 204
    assert post(daemon, "echo b", execution_id=key).json()["stdout"] == "b\n", "forgotten: free again"


def test_one_of_two_who_wait_may_leave(daemon):
    key = unique("leave")
    body = {"code": "sleep 1; echo done", "language": "shell", "execution_id": key}
    leaving = daemon.connect()
    leaving.send("POST", "/execute", json=body)
    harness.wait_until(lambda: daemon.request("GET", f"/v1/executions/{key}").status == 200, "it is known")
    staying = daemon.connect()
    staying.send("POST", "/execute", json=body)
    assert daemon.health().status == 200  # asked later, answered: the other one has been read, too
    leaving.close()
    assert staying.receive().json()["stdout"] == "done\n"


def test_when_all_who_wait_have_left_it_is_cancelled(daemon):
    key, mark = unique("left"), harness.marker()
    body = {"code": harness.spawn_marked(mark), "language": "shell", "execution_id": key}
    both = [daemon.connect(), daemon.connect()]
    for connection in both:
        connection.send("POST", "/execute", json=body)
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    for connection in both:
        connection.close()
    assert finished(daemon, key)["result"]["termination"]["reason"] == "cancelled"


def test_large_bodies_are_compared_as_well(daemon):
    key = unique("large")
    body = {"code": "wc -c", "language": "shell", "stdin": "x" * 1_500_000, "execution_id": key}
    first = daemon.request("POST", "/execute", json=body).json()
    assert first["stdout"] == "1500000\n"
    assert daemon.request("POST", "/execute", json=body).json() == first
    body["stdin"] = "y" * 1_500_000
    assert daemon.request("POST", "/execute", body=json.dumps(body),
                          headers={"Content-Type": "application/json"}).status == 409
