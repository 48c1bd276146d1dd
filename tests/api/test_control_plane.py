# SPDX-License-Identifier: MIT
"""Results, heartbeats and life-cycle events, told to a control plane that misbehaves in every way."""
import json
import os
import pathlib
import random
import re
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time

import pytest

import harness
from fake_control_plane import ControlPlane, answer

HELLO = "def handler(event): print('hi'); return {'n': 0}"
MEMBERS = {"status", "stdout", "stderr", "exit_code", "execution_time", "return_value", "metrics", "artifacts"}
TOKEN = "token-" + secrets.token_hex(16)
FAST = {"CALLBACK_BASE_MS": 20, "CALLBACK_CAP_MS": 160, "SPOOL_RETRY_MS": 50, "CALLBACK_ANSWER_MS": 1000,
        "CALLBACK_CONNECT_MS": 1000}


@pytest.fixture
def plane():
    with ControlPlane() as instance:
        yield instance


@pytest.fixture
def results():
    """A directory for results that the daemon may traverse to."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="sbx-results-"))
    top.chmod(0o755)
    yield top / "results"
    shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def talk(make_daemon, plane, results):
    """talk(**env): a daemon that reports to `plane`, with short pauses."""
    def make(**env):
        return make_daemon(**{"CONTROL_PLANE_URL": plane.url, "INTERNAL_API_TOKEN": TOKEN,
                              "RESULTS_PATH": results, **FAST, **env})
    return make


def run_async(daemon, code="true", language="shell", **fields):
    fields.setdefault("execution_id", "exec-" + secrets.token_hex(6))
    answered = daemon.request("POST", "/execute", json={"code": code, "language": language, **fields},
                              headers={"Prefer": "respond-async"})
    assert answered.status == 200, answered
    assert answered.json() == {"execution_id": fields["execution_id"], "status": "PENDING",
                               "message": "Execution submitted"}
    return fields["execution_id"]


def spooled(results):
    return sorted(p.name for p in results.glob("*.json"))


def wait_empty(results):
    harness.wait_until(lambda: not spooled(results), lambda: f"the spool is empty: {spooled(results)}")


# ---- the result ----


def test_the_result_is_told_in_the_words_of_the_control_plane(talk, plane, results):
    daemon = talk()
    key = run_async(daemon, HELLO, "python", session_id="s")
    seen = plane.wait("result", key)[0]
    assert (seen.method, seen.path) == ("POST", f"/api/v1/internal/executions/{key}/result")
    assert seen.headers["Authorization"] == f"Bearer {TOKEN}"
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["Idempotency-Key"] == key
    body = seen.json
    assert set(body) == MEMBERS
    assert (body["status"], body["stdout"], body["exit_code"]) == ("success", "hi\n", 0)
    assert body["return_value"] == {"n": 0} and body["artifacts"] == []
    assert isinstance(body["execution_time"], float) and body["metrics"]["duration_ms"] > 0
    wait_empty(results)
    assert len(plane.of("result", key)) == 1


def test_a_waiting_caller_and_the_control_plane_hear_the_same(talk, plane):
    daemon = talk()
    result = daemon.execute(HELLO, execution_id="both")
    told = plane.wait("result", "both")[0].json
    assert {k: result[k] for k in MEMBERS} == told


@pytest.mark.parametrize("code, fields, status", [
    ("exit 3", {}, "failed"),
    ("kill -9 $$", {}, "failed"),
    ("sleep 60", {"timeout": 1}, "timeout"),
    ("head -c 200M /dev/zero | tail -c 200M >/tmp/x; cat /tmp/x | sort", {"timeout": 20}, "failed"),
])
def test_only_four_statuses_travel(talk, plane, code, fields, status):
    daemon = talk(MAX_MEMORY_MB=64)
    key = run_async(daemon, code, **fields)
    assert plane.wait("result", key)[0].json["status"] == status


def test_an_error_of_ours_is_a_failure_there(talk, plane):
    daemon = talk(MAX_MEMORY_MB=64)
    if "memory" not in daemon.request("GET", "/v1/capabilities").json()["traits"]:
        pytest.skip("no memory limit here")
    result = daemon.execute("def handler(e): return len(bytearray(10**9))", execution_id="oom")
    assert result["status"] == "error"
    assert plane.wait("result", "oom")[0].json["status"] == "failed"


def test_artifacts_are_paths(talk, plane):
    daemon = talk()
    key = run_async(daemon, "mkdir -p output; echo 1 >output/a; echo 2 >b.log")
    assert plane.wait("result", key)[0].json["artifacts"] == ["b.log", "output/a"]


def test_prefix_and_slashes_are_normalised(talk, plane):
    daemon = talk(CONTROL_PLANE_URL=plane.url + "/base//", CALLBACK_PREFIX="internal/")
    key = run_async(daemon)
    assert plane.wait("result", key)[0].path == f"/base/internal/executions/{key}/result"
    assert plane.wait("ready")[0].path == "/base/internal/containers/ready"


def test_without_a_control_plane_nothing_is_kept(make_daemon, results):
    daemon = make_daemon(RESULTS_PATH=results)
    assert daemon.printed("echo ok") == "ok\n"
    assert not results.exists()


# ---- misfortunes ----


@pytest.mark.parametrize("acts", [
    [500] * 4, [503, 502, 504], ["close"] * 3, ["partial"] * 2, [401, 401], [302, 302], ["hang"],
    [answer(429, Retry_After=1)], ["close", 500, "partial", 401],
], ids=str)
def test_it_tries_again_until_it_is_taken(talk, plane, results, acts):
    plane.script("result", *acts)
    daemon = talk()
    key = run_async(daemon, "echo out")
    seen = plane.wait("result", key, len(acts) + 1)
    plane.released.set()
    assert len({s.raw for s in seen}) == 1, "every attempt says the same"
    assert {s.headers["Idempotency-Key"] for s in seen} == {key}
    wait_empty(results)
    assert len(plane.of("result", key)) == len(acts) + 1
    if "close" not in acts:  # on a connection that was used before, libcurl itself tries again
        assert daemon.metric("sandbox_callbacks_failed_total") == len(acts)


def test_pauses_double_up_to_the_cap(talk, plane):
    plane.script("result", 500, 500, 500, 500)
    daemon = talk(CALLBACK_BASE_MS=100, CALLBACK_CAP_MS=300)
    key = run_async(daemon)
    at = [s.at for s in plane.wait("result", key, 5)]
    pauses = [b - a for a, b in zip(at, at[1:])]
    # Seen from here: an attempt that was read late shortens the pause behind it.
    for pause, least in zip(pauses, (0.1, 0.2, 0.3, 0.3)):
        assert pause >= least * 0.7, pauses


def test_retry_after_is_honoured(talk, plane):
    plane.script("result", answer(503, Retry_After=1))
    daemon = talk()
    key = run_async(daemon)
    first, second = plane.wait("result", key, 2)
    assert second.at - first.at >= 0.9  # seen from here; the first may have been read late


@pytest.mark.parametrize("status", [409, 404])
def test_conflict_and_unknown_are_final(talk, plane, results, status):
    plane.script("result", status)
    daemon = talk()
    key = run_async(daemon)
    plane.wait("result", key)
    wait_empty(results)
    marker = run_async(daemon)
    daemon.wait_record(event_type="callback_delivered", execution_id=marker)
    assert len(plane.of("result", key)) == 1
    assert not list((results / "rejected").iterdir())
    assert daemon.metric("sandbox_callbacks_delivered_total") == (2 if status == 409 else 1)


@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_what_is_refused_for_good_is_kept_for_people(talk, plane, results, status):
    plane.script("result", status)
    daemon = talk()
    key = run_async(daemon, "echo precious")
    plane.wait("result", key)
    kept = results / "rejected" / f"{key}.json"
    harness.wait_until(kept.exists, "the refused result is kept")
    assert not spooled(results)
    assert json.loads(kept.read_text())["result"]["stdout"] == "precious\n"
    record = daemon.wait_record(event_type="callback_refused", execution_id=key)
    assert record["status_code"] == status and record["level"] == "error"
    assert len(plane.of("result", key)) == 1


def test_a_flood_is_not_read(talk, plane, results):
    plane.script("result", "flood")
    daemon = talk(CALLBACK_ANSWER_MS=20000)
    key = run_async(daemon)
    plane.wait("result", key)
    wait_empty(results)
    assert len(plane.of("result", key)) == 1


def test_redirects_are_not_followed(talk, plane, results):
    with ControlPlane() as elsewhere:
        plane.always("result", answer(307, Location=elsewhere.url + "/elsewhere"))
        daemon = talk()
        key = run_async(daemon)
        plane.wait("result", key, 3)
        assert spooled(results) == [f"{key}.json"]
        assert not elsewhere.requests


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1/", "127.0.0.1:1",
                                 "http://user:pw@127.0.0.1:1", "http://127.0.0.1:1/?x=y", "http://"])
def test_addresses_that_are_none_stop_the_start(results, url):
    refusal = harness.start_refused(CONTROL_PLANE_URL=url, RESULTS_PATH=results)
    assert refusal.status == 1 and "CONTROL_PLANE_URL" in refusal.stderr
    assert "pw" not in refusal.stderr


def test_connections_are_kept(talk, plane):
    daemon = talk()
    daemon.wait_record(event_type="lifecycle_delivered", attempt=3)  # "ready" shares the connection
    for _ in range(5):
        daemon.wait_record(event_type="callback_delivered", execution_id=run_async(daemon))
    assert len({s.connection for s in plane.of("result")}) == 1


def test_large_results_travel_whole(talk, plane):
    daemon = talk(CALLBACK_ANSWER_MS=20000)
    key = run_async(daemon, "def handler(e): print('\\x01' * 3_000_000); return 'y' * 1_000_000", "python")
    body = plane.wait("result", key)[0].json
    assert body["stdout"] == "\x01" * 3_000_000 + "\n" and body["return_value"] == "y" * 1_000_000


# ---- the spool ----


def test_an_undelivered_result_waits_on_disk(talk, plane, results):
    daemon = talk()
    plane.wait("ready")
    plane.down()
    key = run_async(daemon, "echo later")
    daemon.wait_record(event_type="callback_left_in_spool", execution_id=key)
    file = results / f"{key}.json"
    assert file.stat().st_mode & 0o777 == 0o600 and results.stat().st_mode & 0o777 == 0o700
    text = json.loads(file.read_text())
    assert text["execution_id"] == key and set(text["result"]) == MEMBERS
    assert text["persisted_at"].endswith("Z")
    assert daemon.metric("sandbox_spool_files") == 1
    plane.up()
    plane.wait("result", key)
    wait_empty(results)
    assert daemon.metric("sandbox_spool_bytes") == 0


def test_results_of_an_outage_all_arrive(talk, plane, results):
    daemon = talk()
    plane.wait("ready")
    keys = set()
    for _ in range(3):
        plane.down()
        keys |= {run_async(daemon) for _ in range(10)}
        plane.up()
        keys |= {run_async(daemon) for _ in range(5)}
    harness.wait_until(lambda: plane.taken() == keys, lambda: f"missing: {keys - plane.taken()}")
    wait_empty(results)


@pytest.mark.skipif(os.environ.get("SBX_LONG") != "1", reason="takes minutes: SBX_LONG=1")
def test_a_minute_of_silence_loses_nothing(make_daemon, plane, results):
    """With the pauses that operators have, not those of the other tests."""
    daemon = make_daemon(CONTROL_PLANE_URL=plane.url, INTERNAL_API_TOKEN=TOKEN, RESULTS_PATH=results)
    plane.wait("ready")
    before = run_async(daemon)
    plane.wait("result", before)
    plane.down()
    keys, end = {before}, time.monotonic() + 60
    while time.monotonic() < end:
        keys.add(run_async(daemon))
        threading.Event().wait(2)
    plane.up()
    keys.add(run_async(daemon))
    harness.wait_until(lambda: plane.taken() == keys, lambda: f"missing: {keys - plane.taken()}", timeout=400)
    harness.wait_until(lambda: not spooled(results), "the disk is empty again")


def test_a_poisonous_result_does_not_block_the_others(talk, plane, results):
    daemon = talk(CALLBACK_ATTEMPTS=1)
    plane.wait("ready")
    plane.always("result", 500)
    keys = [run_async(daemon) for _ in range(5)]
    harness.wait_until(lambda: len(spooled(results)) == 5, "all are on disk")
    plane.always("result", lambda h: h.reply(500 if h.seen.id == keys[0] else 201))
    harness.wait_until(lambda: spooled(results) == [f"{keys[0]}.json"], "the others are delivered")
    assert plane.taken() == set(keys[1:])


def test_the_next_life_delivers_what_the_last_one_left(talk, plane, results):
    plane.down()
    daemon = talk()
    keys = {run_async(daemon, "echo kept") for _ in range(3)}
    harness.wait_until(lambda: len(spooled(results)) == 3, "all are on disk")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    plane.up()
    talk()
    harness.wait_until(lambda: plane.taken() == keys, "all are delivered")
    wait_empty(results)


def test_a_full_spool_is_said_and_survived(talk, plane, results):
    daemon = talk(SPOOL_BYTES_MAX=4096)
    plane.wait("ready")
    plane.down()
    key = run_async(daemon, "head -c 10000 /dev/zero | tr '\\0' x")
    record = daemon.wait_record(event_type="spool_failed", execution_id=key)
    assert record["level"] == "error"
    assert daemon.metric("sandbox_spool_failed_total") == 1
    small = run_async(daemon)
    harness.wait_until(lambda: spooled(results) == [f"{small}.json"], "a small one still fits")
    plane.up()
    harness.wait_until(lambda: plane.taken() == {key, small}, "the large one was tried from memory")


def test_old_results_are_dropped(talk, plane, results):
    plane.down()
    daemon = talk(CALLBACK_ATTEMPTS=1)
    key = run_async(daemon)
    harness.wait_until(lambda: spooled(results), "it is on disk")
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    day_ago = time.time() - 86500
    os.utime(results / f"{key}.json", (day_ago, day_ago))
    plane.up()
    again = talk()
    assert again.wait_record(event_type="results_expired")["results"] == 1
    wait_empty(results)
    plane.wait("ready", count=1)
    assert not plane.of("result", key)


def test_rubbish_in_the_spool_harms_nobody(talk, plane, results):
    results.mkdir()
    results.chmod(0o700)
    (results / "broken.json").write_text('{"execution_id":"broken","result":')
    (results / "other.json").write_text('{"execution_id":"somebody","result":{}}')
    (results / "notes.txt").write_text("hello")
    (results / ".new-7").write_text("half")
    (results / "link.json").symlink_to("/etc/passwd")
    (results / "dir.json").mkdir()
    os.mkfifo(results / "fifo.json")
    for path in results.iterdir():
        if harness.ROOT:
            os.chown(path, 65534, 65534, follow_symlinks=False)
    daemon = talk()
    key = run_async(daemon)
    plane.wait("result", key)
    harness.wait_until(lambda: sorted(p.name for p in (results / "rejected").iterdir()) ==
                       ["broken.json", "other.json"], "what is no result is put aside")
    assert [r.id for r in plane.of("result")] == [key]
    assert (results / "notes.txt").exists() and not (results / ".new-7").exists()


def test_a_directory_of_others_is_refused(results):
    results.mkdir()
    results.chmod(0o777)
    refusal = harness.start_refused(CONTROL_PLANE_URL="http://127.0.0.1:1", RESULTS_PATH=results)
    assert "RESULTS_PATH" in refusal.stderr
    results.chmod(0o700)
    if harness.ROOT:
        os.chown(results, 12345, 12345)
        refusal = harness.start_refused(CONTROL_PLANE_URL="http://127.0.0.1:1", RESULTS_PATH=results)
        assert "RESULTS_PATH" in refusal.stderr


def test_two_daemons_do_not_share_a_spool(talk, plane, results):
    talk()
    refusal = harness.start_refused(CONTROL_PLANE_URL=plane.url, RESULTS_PATH=results)
    assert "in use" in refusal.stderr


def done_ids(daemon):
    return {r["execution_id"] for r in daemon.records() if r.get("event_type") == "execution_done"}


def test_sigkill_at_any_moment_loses_no_finished_result(talk, plane, results):
    """What anybody could know of when the daemon was killed arrives, whatever stage it was in."""
    kills = 200 if os.environ.get("SBX_LONG") == "1" else 12
    chance = random.Random(7)
    finished, submitted, daemon = set(), set(), None
    plane.always("result", lambda h: time.sleep(0.005) or h.reply(201))
    for _ in range(kills):
        daemon = talk(POOL_PYTHON=0, POOL_NODE=0, POOL_EXEC=1)
        if chance.random() < 0.3:
            plane.down()
        submitted |= {run_async(daemon, f"sleep 0.0{chance.randrange(10)}; echo $$") for _ in range(8)}
        threading.Event().wait(chance.random() * 0.25)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        daemon.check_nothing_left()
        finished |= done_ids(daemon)
        if not plane.server:
            plane.up()
    talk(POOL_PYTHON=0, POOL_NODE=0, POOL_EXEC=1)
    harness.wait_until(lambda: not finished - plane.taken(), lambda: f"lost: {finished - plane.taken()}")
    wait_empty(results)
    assert finished, "some had finished"
    for key in plane.taken():
        seen = plane.of("result", key)
        assert key in submitted
        assert len({s.raw for s in seen}) == 1 and {s.headers["Idempotency-Key"] for s in seen} == {key}


# ---- heartbeats ----


def test_heartbeats_come_at_once_then_regularly_then_never_again(talk, plane):
    daemon = talk(HEARTBEAT_INTERVAL=1)
    key = run_async(daemon, "sleep 2.5")
    result = plane.wait("result", key)[0]
    beats = plane.of("heartbeat", key)
    assert len(beats) == 3
    assert all(b.at < result.at for b in beats)
    for beat in beats:
        assert set(beat.json) == {"timestamp", "progress"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", beat.json["timestamp"])
        assert beat.json["progress"] == {"status": "running"}
        assert "Idempotency-Key" not in beat.headers and beat.headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("language, code", [
    ("python", "import time\ndef handler(e, context):\n    context.progress({'done': 0.5})\n    time.sleep(1.5)"),
    ("javascript", "exports.handler = async (e, context) => { context.progress({done: 0.5}); "
                   "await new Promise(r => setTimeout(r, 1500)); }"),
])
def test_progress_travels_in_the_next_heartbeat(talk, plane, language, code):
    daemon = talk(HEARTBEAT_INTERVAL=1)
    key = run_async(daemon, code, language)
    plane.wait("result", key)
    assert {"done": 0.5} in [b.json["progress"] for b in plane.of("heartbeat", key)]


def test_hanging_heartbeats_do_not_delay_the_result(talk, plane):
    plane.always("heartbeat", "hang")
    daemon = talk()
    keys = [run_async(daemon, "sleep 0.1") for _ in range(20)]
    for key in keys:
        plane.wait("result", key)
    assert not daemon.metric("sandbox_callbacks_failed_total")


def test_those_who_wait_in_the_queue_are_heard_of(talk, plane):
    daemon = talk(MAX_CONCURRENT_EXECUTIONS=1, HEARTBEAT_INTERVAL=60)
    first = run_async(daemon, "sleep 60")
    key = run_async(daemon, "sleep 1")
    assert plane.wait("heartbeat", key)[0].json["progress"] == {"status": "queued"}
    daemon.request("DELETE", f"/v1/executions/{first}")
    beats = plane.wait("heartbeat", key, count=2)
    assert beats[1].json["progress"] == {"status": "running"}, "it is told when it begins to run"
    plane.wait("result", key)


# ---- life cycle ----


def test_ready_is_told_once_work_is_accepted(talk, plane):
    plane.always("ready", lambda h: h.reply(200 if daemon_answers() else 500))

    def daemon_answers():
        try:
            socket.create_connection(("127.0.0.1", plane.of("ready")[0].json["executor_port"]), 1).close()
        except OSError:
            return False
        return True
    daemon = talk(CONTAINER_ID="c-1", POD_NAME="p-1")
    ready = plane.wait("ready")[0]
    assert ready.path == "/api/v1/internal/containers/ready"
    assert {k: v for k, v in ready.json.items() if k != "ready_at"} == {
        "event_type": "ready", "container_id": "c-1", "pod_name": "p-1", "executor_port": daemon.port,
        "exit_code": None, "exit_reason": None, "exited_at": None}
    assert ready.json["ready_at"].endswith("Z")
    assert daemon.wait_record(event_type="lifecycle_delivered", lifecycle="ready")["attempt"] == 1


@pytest.mark.parametrize("env, container, pod", [
    ({"CONTAINER_ID": "c", "HOSTNAME": "h"}, "c", "c"),
    ({"HOSTNAME": "h"}, "h", "h"),
    ({"HOSTNAME": "h", "POD_NAME": "p"}, "h", "p"),
    ({}, "unknown", "unknown"),
])
def test_names_of_container_and_pod(talk, plane, env, container, pod):
    talk(**env)
    ready = plane.wait("ready")[0].json
    assert (ready["container_id"], ready["pod_name"]) == (container, pod)


@pytest.mark.parametrize("acts", [[500] * 7, [404, 404], ["close", "partial", 401], [503, answer(429, Retry_After=1)]], ids=str)
def test_ready_is_tried_until_it_is_delivered(talk, plane, acts):
    plane.script("ready", *acts)
    daemon = talk()
    plane.wait("ready", count=len(acts) + 1)
    assert daemon.wait_record(event_type="lifecycle_delivered", lifecycle="ready")["attempt"] == len(acts) + 1


def test_ready_is_repeated_while_there_is_no_session_for_it(talk, plane):
    """A control plane that writes its session down only after it has started the container."""
    unheard = answer(200, {"message": "Container ready acknowledged (no session found)"})
    plane.script("ready", *[unheard] * 6)
    daemon = talk()
    record = daemon.wait_record(event_type="lifecycle_delivered", lifecycle="ready")
    assert record["attempt"] == 7
    assert sum(r.get("event_type") == "lifecycle_unheard" for r in daemon.records()) == 6


def test_ready_is_told_three_times_in_all(talk, plane):
    """Whatever words another control plane has for one that it has not heard of."""
    daemon = talk()
    ready = plane.wait("ready", count=3)
    assert len({json.dumps(r.json) for r in ready}) == 1
    key = run_async(daemon, "true")
    plane.wait("result", key)
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    assert len(plane.of("ready")) == 3


def test_health_has_the_word_of_the_control_plane(talk, daemon):
    assert talk().health().json()["status"] == "healthy"
    assert daemon.health().json()["status"] == "ok"


def test_ready_reaches_a_control_plane_that_comes_up_late(talk, plane):
    plane.down()
    daemon = talk()
    daemon.wait_record(event_type="lifecycle_failed")
    plane.up()
    plane.wait("ready")


@pytest.mark.parametrize("number, status, reason", [
    (signal.SIGTERM, 143, "sigterm"), (signal.SIGINT, 130, "error")])
def test_exited_is_told_once_with_code_and_reason(talk, plane, number, status, reason):
    daemon = talk()
    plane.wait("ready")
    daemon.signal(number)
    assert daemon.wait() == status
    told = plane.of("exited")
    assert len(told) == 1
    assert {k: v for k, v in told[0].json.items() if k not in ("exited_at", "container_id", "pod_name")} == {
        "event_type": "exited", "executor_port": daemon.port, "ready_at": None, "exit_code": status,
        "exit_reason": reason}
    assert told[0].json["exited_at"].endswith("Z")


def test_running_executions_are_reported_as_crashed(talk, plane):
    daemon = talk()
    mark = harness.marker()
    keys = [run_async(daemon, f"echo begun; {harness.spawn_marked(mark)}") for _ in range(3)]
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 3, "they run")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143
    for key in keys:
        seen = plane.of("result", key)
        assert [s.json["status"] for s in seen] == ["crashed"]
        assert seen[0].json["stdout"] == "begun\n"
    exited = plane.of("exited")
    assert len(exited) == 1 and exited[0].at > max(s.at for s in plane.of("result"))
    assert not harness.processes_with(mark)


def test_queued_executions_are_reported_as_crashed_too(talk, plane):
    daemon = talk(MAX_CONCURRENT_EXECUTIONS=1)
    keys = [run_async(daemon, "sleep 60") for _ in range(4)]
    plane.wait("heartbeat", keys[0])
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143
    assert {s.id: s.json["status"] for s in plane.of("result")} == dict.fromkeys(keys, "crashed")


def test_shutdown_with_a_dead_control_plane_loses_nothing(talk, plane, results):
    daemon = talk()
    plane.wait("ready")
    plane.down()
    keys = {run_async(daemon, "sleep 60") for _ in range(2)}
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143
    assert spooled(results) == sorted(f"{k}.json" for k in keys)
    plane.up()
    talk()
    harness.wait_until(lambda: plane.taken() == keys, "the next life delivers them")


def test_a_hanging_control_plane_cannot_keep_it_alive(talk, plane):
    plane.always("result", "hang")
    plane.always("exited", "hang")
    daemon = talk(SHUTDOWN_GRACE=1, CALLBACK_ANSWER_MS=60000)
    key = run_async(daemon)
    plane.wait("result", key)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait(timeout=20) == 143
    assert len(plane.of("exited")) == 1


def test_a_second_signal_ends_it_at_once(talk, plane):
    plane.always("result", "hang")
    daemon = talk(SHUTDOWN_GRACE=600, CALLBACK_ANSWER_MS=60000)
    key = run_async(daemon)
    plane.wait("result", key)
    daemon.signal(signal.SIGTERM)
    daemon.wait_record(event_type="stopping")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait() == 143
    assert not plane.of("exited")


# ---- secrets ----


def test_the_token_is_nowhere_to_be_seen(talk, plane):
    plane.script("result", 401, 400)
    daemon = talk(LOG_LEVEL="trace")
    key = run_async(daemon)
    plane.wait("result", key, 2)
    needle = TOKEN.encode()
    for pid in [daemon.pid, *daemon.tree()]:
        assert needle not in harness.read_proc(pid, "environ")
        assert needle not in harness.read_proc(pid, "cmdline")
    for path in ("/v1/capabilities", "/info", "/metrics"):
        assert TOKEN not in daemon.request("GET", path).text
    inside = daemon.printed("cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env")
    assert TOKEN not in inside
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    assert TOKEN not in daemon.log_text() and TOKEN not in daemon.stdout_text()


def test_a_token_given_as_a_flag_is_hidden_as_well(make_daemon, plane, results):
    for args in ([f"--internal-token={TOKEN}"], ["--internal-token", TOKEN]):
        daemon = make_daemon(args=args, CONTROL_PLANE_URL=plane.url, RESULTS_PATH=results, **FAST)
        assert plane.wait("ready")[-1].headers["Authorization"] == f"Bearer {TOKEN}"
        assert TOKEN.encode() not in harness.read_proc(daemon.pid, "cmdline")
        daemon.signal(signal.SIGTERM)
        daemon.wait()


def test_the_proxy_of_the_environment_is_not_told(talk, plane):
    with ControlPlane() as proxy:
        daemon = talk(http_proxy=proxy.url, HTTP_PROXY=proxy.url, ALL_PROXY=proxy.url)
        plane.wait("result", run_async(daemon))
        assert not proxy.requests
