# SPDX-License-Identifier: MIT
"""A client of the handshake era that has lost its connection goes on where it was."""
import contextlib
import json

import pytest

import harness
from mcp_client import HANDSHAKE, Client, message_of

WAIT = "echo begun; while ! test -e go; do sleep 0.05; done; echo went"


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    made.data("write_file", path="x", content="")
    yield made
    assert daemon.request("DELETE", "/mcp?linger=0", headers={"Mcp-Session-Id": made.session}).status == 204


class Events:
    """Events of an answer as they come: pairs of id and message (None: an empty one)."""

    def __init__(self, answer):
        assert answer.status == 200 and answer.headers["content-type"].startswith("text/event-stream"), answer.status
        assert answer.headers["cache-control"] == "no-cache, no-transform" and answer.headers["x-accel-buffering"] == "no"
        self.answer = answer

    def next(self):
        """None: the stream has ended."""
        ident, data = None, None
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "id":
                ident = value
            elif name.startswith("data"):
                data = value
            elif not line.rstrip("\n") and data is not None:
                return ident, json.loads(data) if data else None
        return None

    def all(self):
        return list(iter(self.next, None))


@contextlib.contextmanager
def started(client, command=WAIT, ident="long", token="p"):
    """The events of a command that tells progress; leaving loses the connection."""
    params = {"name": "run_command", "arguments": {"command": command}, "_meta": {"progressToken": token}}
    with client.daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", params, ident=ident), headers=client.headers("tools/call"))
        yield Events(line.http.getresponse())


@contextlib.contextmanager
def resumed(client, last):
    with client.daemon.connect() as line:
        line.send("GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": client.session, "Last-Event-ID": last})
        yield Events(line.http.getresponse())


def go(client):
    client.data("write_file", path="go", content="")


def test_it_goes_on_with_what_was_missed(client):
    with started(client) as events:
        first = events.next()
        seen = events.next()
    assert first[1] is None and first[0].endswith("-0") and seen[1]["method"] == "notifications/progress"
    with resumed(client, seen[0]) as events:
        go(client)
        rest = events.all()
    stream, number = seen[0].split("-")
    assert [ident for ident, _ in rest] == [f"{stream}-{int(number) + 1 + i}" for i in range(len(rest))]
    assert rest[-1][1]["id"] == "long" and rest[-1][1]["result"]["structuredContent"]["stdout"] == "begun\nwent\n"


def test_an_answer_that_was_missed_is_kept(client):
    with started(client) as events:
        first = events.next()
    go(client)
    harness.wait_until(lambda: client.data("manage_process", action="list")["processes"][0]["status"] != "running", "it runs")
    for _ in range(2):  # as often as it is asked for
        with resumed(client, first[0]) as events:
            assert events.all()[-1][1]["result"]["structuredContent"]["status"] == "success"


def test_the_connection_that_is_lost_need_not_have_ended(client):
    """The daemon has not noticed yet: the older stream ends."""
    with started(client) as events:
        first = events.next()
        with resumed(client, first[0]) as again:
            assert again.next()[1]["method"] == "notifications/progress"
            go(client)
            assert again.all()[-1][1]["id"] == "long"
        assert not [message for _, message in events.all() if "result" in message]


def test_only_that_stream_is_told(client):
    with started(client, ident="one", token="1") as events, started(client, ident="two", token="2") as others:
        mine, theirs = events.next()[0], others.next()[0]
    assert mine != theirs
    go(client)
    with resumed(client, mine) as events:
        told = [message for _, message in events.all()]
    assert told[-1]["id"] == "one"
    assert {m["params"]["progressToken"] for m in told[:-1]} <= {"1"}


@pytest.mark.parametrize("last", ["99-1", "0-0", "1-999999999", "4294967295-1", "x", "-1--1"])
def test_what_is_not_known_is_an_empty_stream(client, last):
    with resumed(client, last) as events:
        assert events.all() == []


def test_another_session_is_told_nothing(daemon, client):
    with started(client) as events:
        first = events.next()[0]
    go(client)
    with resumed(Client(daemon), first) as events:
        assert events.all() == []


def test_older_versions_get_no_empty_event(daemon):
    client = Client(daemon, HANDSHAKE[1])
    client.data("write_file", path="x", content="")
    with started(client) as events:
        ident, message = events.next()
        assert ident.endswith("-1") and message["method"] == "notifications/progress"
        go(client)
        assert events.all()[-1][1]["id"] == "long"
    assert daemon.request("DELETE", "/mcp?linger=0", headers={"Mcp-Session-Id": client.session}).status == 204


def test_a_cancelled_request_leaves_no_answer(client):
    with started(client) as events:
        first = events.next()
        assert client.notify("notifications/cancelled", {"requestId": "long"}).status == 202
        assert not [message for _, message in events.all() if message and "result" in message]
    with resumed(client, first[0]) as events:
        assert not [message for _, message in events.all() if message and "result" in message]
    assert message_of(client.post("ping"))["result"] == {}
