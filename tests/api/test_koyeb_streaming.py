# SPDX-License-Identifier: MIT
"""POST /run_streaming: output line by line as server-sent events."""
import json
import socket

import harness
import pytest
from koyeb import Sandbox


@pytest.fixture
def box(daemon):
    return Sandbox(daemon)


def events(box, cmd, **fields):
    stream = box.stream("run_streaming", {"cmd": cmd, **fields})
    assert stream.response.status == 200
    return [(event, data) for event, data, _ in stream]


def lines(found, stream="stdout"):
    return [data["data"] for event, data in found if event == "output" and data["stream"] == stream]


def test_framing_is_exact_to_the_byte(box):
    stream = box.stream("run_streaming", {"cmd": "echo one; echo; printf two; exit 3"})
    assert stream.response.headers["Content-Type"] == "text/event-stream"
    assert stream.response.headers["Cache-Control"] == "no-cache"
    assert list(stream.blocks()) == [
        b'event: output\ndata: {"data":"one","stream":"stdout"}\n\n',
        b'event: output\ndata: {"data":"","stream":"stdout"}\n\n',
        b'event: output\ndata: {"data":"two","stream":"stdout"}\n\n',
        b'event: complete\ndata: {"code":3,"error":true}\n\n',
    ]


def test_success_signal_and_empty_command(box):
    assert events(box, "true") == [("complete", {"code": 0, "error": False})]
    assert events(box, "kill -KILL $$") == [("complete", {"code": -1, "error": True})]
    assert events(box, "") == [("complete", {"code": 0, "error": False})]


def test_the_head_comes_before_any_output(box):
    box.sh("rm -f gate; mkfifo gate")
    stream = box.stream("run_streaming", {"cmd": "read x < gate; echo $x"})
    assert stream.response.status == 200
    box.sh("echo open > gate")
    assert lines([(e, d) for e, d, _ in stream]) == ["open"]
    box.sh("rm gate")


def test_a_line_is_sent_when_it_is_complete_not_before(box):
    box.sh("rm -f gate; mkfifo gate")
    stream = box.stream("run_streaming", {"cmd": "echo whole; printf par; read x < gate; echo tial"})
    found = iter(stream)
    assert next(found)[1]["data"] == "whole"
    box.sh("echo > gate")
    assert next(found)[1]["data"] == "partial"
    assert next(found)[0] == "complete"
    box.sh("rm gate")


def test_ends_of_lines(box):
    found = events(box, r"printf 'a\r\n\r\r\nin\rner\n\n last'")
    assert lines(found) == ["a", "", "in\rner", "", " last"]


def test_everything_beyond_ascii_is_escaped(box):
    stream = box.stream("run_streaming", {"cmd": r"printf 'gr\303\274n\302\205\342\200\250<\377\n'"})
    raw = list(stream.blocks())[0]
    assert raw == b'event: output\ndata: {"data":"gr\\u00fcn\\u0085\\u2028\\u003c\\ufffd","stream":"stdout"}\n\n'


def test_a_character_split_over_writes_survives(box):
    assert lines(events(box, r"printf '\342'; sleep 0.05; printf '\202'; sleep 0.05; printf '\254\n'")) == ["€"]


def test_both_streams_keep_their_order(box):
    found = events(box, "for i in $(seq 500); do echo o$i; echo e$i >&2; done")
    assert lines(found) == [f"o{i}" for i in range(1, 501)]
    assert lines(found, "stderr") == [f"e{i}" for i in range(1, 501)]


def test_a_long_line_is_one_event_up_to_a_mebibyte(box):
    found = lines(events(box, "head -c 1048576 /dev/zero | tr '\\0' x; echo; head -c 3000000 /dev/zero; echo; echo next"))
    assert [len(line) for line in found] == [1048576, 1048576, 1048576, 902848, 4]


def test_fifty_thousand_lines(box):
    assert lines(events(box, "seq 50000")) == [str(i) for i in range(1, 50001)]


def test_a_slow_client_slows_the_command_and_loses_nothing(box):
    mark = harness.marker()
    stream = box.stream("run_streaming", {"cmd": f'bash -c "exec -a {mark} seq -f %0600.f 50000"'})
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    assert lines([(e, d) for e, d, _ in stream]) == [f"{i:0600}" for i in range(1, 50001)]


def test_what_cannot_start_is_an_event(box):
    stream = box.stream("run_streaming", {"cmd": "a\0b"})
    assert list(stream.blocks()) == [b'event: error\ndata: {"error": "Failed to start command"}\n\n']
    r = box.daemon.request("POST", "/run_streaming", body="{")
    assert (r.status, r.text) == (400, "Invalid request\n")


def test_a_background_child_with_the_stream_is_waited_for(box):
    found = events(box, "echo soon; (sleep 0.2; echo late) &")
    assert lines(found) == ["soon", "late"] and found[-1] == ("complete", {"code": 0, "error": False})


@pytest.mark.parametrize("leave", ["close", "reset", "half"])
def test_the_client_s_end_is_the_end_of_the_whole_tree(box, leave):
    mark = harness.marker()
    nap = f'bash -c "exec -a {mark} sleep 600"'
    body = json.dumps({"cmd": f"{nap} & setsid {nap} & (setsid {nap} &) ; echo ready; {nap}"}).encode()
    s = box.daemon.socket()
    s.sendall(b"POST /run_streaming HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
              b"Content-Length: %d\r\n\r\n" % (box.daemon.secret.encode(), len(body)) + body)
    data = b""
    while b"ready" not in data:
        data += s.recv(65536)
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 4, "all four sleep")
    if leave == "half":
        s.shutdown(socket.SHUT_WR)
    elif leave == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    else:
        s.close()
    harness.wait_until(lambda: not harness.processes_with(mark), "the tree is gone")
    s.close()
    assert box.sh("echo alive") == "alive\n"


def test_timeout(box):
    mark = harness.marker()
    found = events(box, f'echo a; bash -c "exec -a {mark} sleep 600"', timeout=2.5)
    assert lines(found) == ["a"] and found[-1] == ("complete", {"code": -1, "error": True})
    assert not harness.processes_with(mark)


def test_http_1_0_reads_until_the_end(box):
    body = b'{"cmd":"echo hi"}'
    with box.daemon.socket() as s:
        s.sendall(b"POST /run_streaming HTTP/1.0\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                  % (box.daemon.secret.encode(), len(body)) + body)
        data = b""
        while part := s.recv(65536):
            data += part
    assert data.endswith(b'event: output\ndata: {"data":"hi","stream":"stdout"}\n\n'
                         b'event: complete\ndata: {"code":0,"error":false}\n\n')


def test_the_connection_can_be_used_again(box):
    with box.daemon.connect() as connection:
        for _ in range(3):
            assert connection.request("POST", "/run_streaming", json={"cmd": "true"}).status == 200
