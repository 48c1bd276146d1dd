# SPDX-License-Identifier: MIT
"""Background processes and their logs."""
import re
import threading
import uuid

import harness
import pytest
from koyeb import Sandbox


@pytest.fixture
def box(daemon):
    return Sandbox(daemon)


def finished(box, ident):
    return harness.wait_until(
        lambda: (p := box.process(ident))["status"] != "running" and p, "the process has ended")


def marked(mark):
    return f'bash -c "exec -a {mark} sleep 600"'


def log_lines(stream):
    return [data["data"] for event, data, _ in stream if event == "log"]


def test_start_answers_with_id_pid_and_status(box):
    r = box.post("start_process", {"cmd": "echo $$; cat /proc/self/status | grep NSpid"})
    body = r.json()
    assert r.status == 201 and list(body) == ["id", "pid", "status"]
    assert uuid.UUID(body["id"]).version == 4 and body["status"] == "running"
    assert log_lines(box.logs(body["id"]))[0] == str(body["pid"]), "the pid is the one seen inside"


def test_statuses(box):
    for cmd, status, code in (("true", "completed", 0), ("exit 7", "failed", 7), ("kill -TERM $$", "killed", -1)):
        p = finished(box, box.start(cmd)["id"])
        assert (p["command"], p["status"], p["exit_code"]) == (cmd, status, code)
        assert p["started_at"] <= p["completed_at"]


def test_list_is_in_the_order_of_starting_and_has_no_other_keys(box):
    ids = [box.start(f"sleep 0; : {i}")["id"] for i in range(5)]
    listed = box.get("list_processes")
    assert listed.status == 200 and [p["id"] for p in listed.json()["processes"]][-5:] == ids
    for p in listed.json()["processes"]:
        assert list(p) == ["command", "id", "pid", "status", "exit_code", "started_at", "completed_at"]


def test_an_empty_list(make_daemon):
    r = make_daemon().request("GET", "/list_processes")
    assert r.body == b'{"processes":[]}\n'


def test_running_has_neither_code_nor_end(box):
    p = box.process(box.start("sleep 600")["id"])
    assert (p["status"], p["exit_code"], p["completed_at"]) == ("running", None, None)
    assert box.post("kill_process", {"id": p["id"]}).body == (
        b'{"success":true,"message":"Process killed successfully"}\n')
    assert finished(box, p["id"])["status"] == "killed"


def test_the_log_ends_with_the_shell_also_when_a_child_holds_the_pipe(box):
    box.sh("rm -f gate said; mkfifo gate")
    child = "(read line < gate; head -c 1000000 /dev/zero; touch said)"
    ident = box.start(f"echo before; {child} & printf after; exit 3")["id"]
    assert [(event, data.get("data")) for event, data, _ in box.logs(ident)] == [
        ("log", "before"), ("log", "after"), ("complete", None)]
    assert finished(box, ident)["exit_code"] == 3
    box.sh("echo go > gate; until test -e said; do sleep 0.01; done")  # the child lives, and does not wait for a reader
    assert log_lines(box.logs(ident)) == ["before", "after"]


def test_kill_ends_the_whole_tree(box):
    mark = harness.marker()
    nap = marked(mark)
    ident = box.start(f"trap '' TERM; {nap} & setsid {nap} & (setsid {nap} &); {nap}; echo never")["id"]
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 4, "all four sleep")
    assert box.post("kill_process", {"id": ident}).status == 200
    harness.wait_until(lambda: not harness.processes_with(mark), "the tree is gone")
    assert finished(box, ident)["status"] == "killed"


def test_kill_beats_a_process_that_forks_all_the_time(box):
    ident = box.start("f() { while :; do (exec true) & (setsid sh -c 'sleep 0.01 & sleep 0.01' &) ; done; }; f & f")["id"]
    harness.wait_until(lambda: int(box.sh("ps ax | wc -l")) > 12, "it forks")
    box.post("kill_process", {"id": ident})
    finished(box, ident)
    harness.wait_until(lambda: "setsid" not in box.sh("ps ax -o args"), "nothing is left")


def test_kill_refuses_politely(box):
    r = box.post("kill_process", {"id": "nobody"})
    assert (r.status, r.body) == (400, b'{"success":false,"error":"process not found: nobody"}\n')
    ident = box.start("true")["id"]
    finished(box, ident)
    r = box.post("kill_process", {"id": ident})
    assert r.json() == {"success": False, "error": "process is not running (status: completed)"}
    r = box.post("kill_process", {})
    assert (r.status, r.text) == (400, "Process ID is required\n")
    assert box.daemon.request("POST", "/kill_process", body="[]").text == "Invalid request\n"


def test_start_refuses_politely(box):
    r = box.post("start_process", {"cmd": ""})
    assert (r.status, r.text) == (400, "Command is required\n")
    assert box.post("start_process", {}).text == "Command is required\n"
    r = box.post("start_process", {"cmd": "x" * 200_000})
    assert r.status == 500 and list(r.json()) == ["id", "pid", "status", "error"]
    assert r.json() == {"id": "", "pid": 0, "status": "",
                        "error": "failed to start command: argument list too long"}


@pytest.mark.parametrize("method,path", [("GET", "start_process"), ("GET", "kill_process"),
                                         ("POST", "list_processes"), ("HEAD", "list_processes"),
                                         ("POST", "process_logs_streaming?id=x")])
def test_these_insist_on_their_method(box, method, path):
    r = box.daemon.request(method, "/" + path)
    assert r.status == 405 and r.headers["Allow"] is None
    assert r.text == ("" if method == "HEAD" else "Method not allowed\n")


def test_environment_and_directory(box):
    ident = box.start("echo $A; pwd", env={"A": "b"}, cwd="/usr")["id"]
    assert log_lines(box.logs(ident)) == ["b", "/usr"]


# ---- logs ----


def test_log_framing(box):
    ident = box.start(r"printf 'one\r\n'; printf '\n'; printf 'last<\303\274'")["id"]
    finished(box, ident)
    stream = box.logs(ident)
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    blocks = list(stream.blocks())
    stamp = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z"
    for number, text in ((1, rb"one"), (2, rb""), (3, rb"last\\u003c\\u00fc")):
        assert re.fullmatch(rb'event: log\nid: %d\ndata: \{"timestamp":"%s","stream":"stdout","data":"%s"\}\n\n'
                            % (number, stamp, text), blocks[number - 1]), blocks
    assert blocks[3:] == [b'event: complete\ndata: {"message": "stream ended"}\n\n']


def test_history_is_merged_in_order_of_arrival(box):
    box.sh("rm -f gate; mkfifo gate")
    ident = box.start("exec 3<>gate; for i in 1 2 3 4; do echo o$i; read x <&3; echo e$i >&2; read x <&3; done")["id"]
    live = iter(box.logs(ident))
    for _ in range(8):  # the next line is written when this one has arrived
        next(live)
        box.sh("echo > gate")
    finished(box, ident)
    found = [(d["stream"], d["data"], d["timestamp"]) for e, d, _ in box.logs(ident) if e == "log"]
    assert [f[:2] for f in found] == [(f"std{s}", f"{s[0]}{i}") for i in range(1, 5) for s in ("out", "err")]
    assert [f[2] for f in found] == sorted(f[2] for f in found)
    box.sh("rm gate")


def test_unknown_and_missing_ids(box):
    stream = box.logs('no"body%0Aevent:%20x')
    assert stream.response.status == 200
    assert list(stream.blocks()) == [
        b'event: error\ndata: {"error": "process not found: no\\"body\\nevent: x"}\n\n']
    for path in ("/process_logs_streaming", "/process_logs_streaming?id=", "/process_logs_streaming?id=%zz"):
        r = box.daemon.request("GET", path)
        assert (r.status, r.text) == (400, "Process ID is required\n")


def test_live_after_history_without_gap_or_duplicate(box):
    box.sh("rm -f gate; mkfifo gate")
    ident = box.start("seq 1 100; read x < gate; seq 101 200")["id"]
    stream = iter(box.logs(ident))
    seen = [next(stream)[1]["data"] for _ in range(100)]
    box.sh("echo > gate")
    seen += [data["data"] for event, data, _ in stream if event == "log"]
    assert seen == [str(i) for i in range(1, 201)]
    box.sh("rm gate")


def test_only_the_newest_ten_thousand_lines_are_kept(box):
    ident = box.start("seq 25000")["id"]
    finished(box, ident)
    found = [(data["data"], number) for event, data, number in box.logs(ident) if event == "log"]
    assert found == [(str(i), str(i)) for i in range(15001, 25001)]


def test_fifty_thousand_lines_reach_five_readers(box):
    box.sh("rm -f gate; mkfifo gate")
    ident = box.start("read x < gate; seq 50000")["id"]
    results, threads = [None] * 5, []
    streams = [box.logs(ident) for _ in range(5)]

    def read(i):
        results[i] = [data["data"] if event == "log" else event for event, data, _ in streams[i]]
    for i in range(5):
        threads.append(threading.Thread(target=read, args=(i,)))
        threads[-1].start()
    box.sh("echo > gate")
    for t in threads:
        t.join()
    expected = [str(i) for i in range(1, 50001)] + ["complete"]
    assert all(r == expected for r in results)
    box.sh("rm gate")


def test_a_slow_reader_is_waited_for_up_to_the_budget_and_slows_nobody(box):
    box.sh("rm -f gate; mkfifo gate")
    ident = box.start("echo first; read x < gate; seq 150000")["id"]
    slow = box.logs(ident)
    assert next(iter(slow))[1]["data"] == "first"
    box.sh("echo > gate")
    finished(box, ident)
    assert log_lines(slow) == [str(i) for i in range(1, 150001)]
    assert len(log_lines(box.logs(ident))) == 10000, "without a reader the rest is dropped"
    box.sh("rm gate")


def test_lines_dropped_for_want_of_room_are_counted(box):
    box.sh("rm -f gate; mkfifo gate")
    big = "head -c 900000 /dev/zero | tr '\\0' x; echo"
    ident = box.start(f"echo first; read x < gate; for i in $(seq 120); do {big}; done; echo last")["id"]
    slow = box.logs(ident)
    found = iter(slow)
    assert next(found)[1]["data"] == "first"
    box.sh("echo > gate")
    finished(box, ident)
    rest = list(found)
    gaps = [data["dropped"] for event, data, _ in rest if event == "gap"]
    lines = [int(number) for event, _, number in rest if event == "log"]
    assert gaps and sum(gaps) + len(lines) == 121 and lines[-1] == 122
    assert lines == sorted(set(lines)) and rest[-1][0] == "complete"
    box.sh("rm gate")


def test_resume_with_last_event_id(box):
    ident = box.start("seq 100")["id"]
    finished(box, ident)
    assert log_lines(box.logs(ident, **{"Last-Event-ID": "60"})) == [str(i) for i in range(61, 101)]
    assert log_lines(box.logs(ident, **{"Last-Event-ID": "100"})) == []
    assert len(log_lines(box.logs(ident, **{"Last-Event-ID": "nonsense"}))) == 100


def test_resume_after_what_was_dropped_is_told(box):
    ident = box.start("seq 12000")["id"]
    finished(box, ident)
    found = list(box.logs(ident, **{"Last-Event-ID": "500"}))
    assert found[0][:2] == ("gap", {"dropped": 1500})
    assert found[1][1]["data"] == "2001" and len(found) == 10002


def test_a_line_of_three_megabytes_comes_in_pieces(box):
    ident = box.start("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")["id"]
    lines = log_lines(box.logs(ident))
    assert "".join(lines[:-1]) == "x" * 3_000_000 and lines[-1] == "end"
    assert max(len(line) for line in lines) <= 1 << 20


def test_no_line_of_a_short_process_is_lost(box):
    for _ in range(5):
        assert log_lines(box.logs(box.start("seq 9000")["id"])) == [str(i) for i in range(1, 9001)]


def test_readers_that_leave_leave_nothing_behind(box):
    ident = box.start("while sleep 0.05; do echo tick; done")["id"]
    box.sh("true")
    before = len(harness.open_files(box.daemon.pid))
    streams = [box.logs(ident) for _ in range(30)]
    for s in streams:
        next(iter(s))
        s.close()
    harness.wait_until(lambda: len(harness.open_files(box.daemon.pid)) <= before + 2,  # helpers that are about to end
                       "descriptors are back")
    assert box.process(ident)["status"] == "running", "a reader's end is not the process's"
    box.post("kill_process", {"id": ident})


def test_two_thousand_idle_readers_are_cheap(make_daemon):
    box = Sandbox(make_daemon(LOG_LEVEL="info"))
    if box.daemon.is_sanitized():
        pytest.skip("a sanitizer's memory is not ours")
    ident = box.start("sleep 600")["id"]

    def resident():
        for line in harness.read_proc(box.daemon.pid, "status").decode().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    warm = [box.logs(ident) for _ in range(50)]
    before = resident()
    streams = [box.logs(ident) for _ in range(2000)]
    cost = (resident() - before) / len(streams)
    assert cost < 4096, f"{cost} bytes each"
    box.post("kill_process", {"id": ident})
    assert all(log_lines(s) == [] for s in warm + streams)


def test_a_flood_of_output_without_readers_is_bounded(box):
    ident = box.start("yes 0123456789012345678901234567890123456789 | head -c 300000000")["id"]
    finished(box, ident)
    for line in harness.read_proc(box.daemon.pid, "status").decode().splitlines():
        if line.startswith("RssAnon") and not box.daemon.is_sanitized():
            assert int(line.split()[1]) < 400_000
    assert len(log_lines(box.logs(ident))) == 10000


def test_the_json_of_a_command_survives(box):
    cmd = 'echo "<&>" \'é\' \\"'
    ident = box.start(cmd)["id"]
    assert box.process(ident)["command"] == cmd
    assert b"\\u003c" in box.get("list_processes").body
