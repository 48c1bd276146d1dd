# SPDX-License-Identifier: MIT
"""The life of a persistent sandbox: its end at a fixed time, pausing with the memory kept, and waking up."""
import os
import signal

import pytest

import harness
import koyeb

COUNT = "exec python3 -c 'import time\nn = 0\nwhile True: n += 1; open(\"/tmp/n\", \"w\").write(str(n)); time.sleep(0.001)'"


class Box:
    def __init__(self, daemon, **fields):
        made = daemon.request("POST", "/v1/sandboxes", json=fields)
        assert made.status == 201, made
        self.daemon, self.id = daemon, made.json()["id"]
        self.path = f"/v1/sandboxes/{self.id}"
        self.token = made.json()["access"]["token"]
        self.inside = koyeb.Sandbox(daemon, self.path)

    def verb(self, verb, **body):
        return self.daemon.request("POST", f"{self.path}/{verb}", json=body or None)

    def get(self):
        got = self.daemon.request("GET", self.path)
        return got.json() if got.status == 200 else None

    def state(self):
        told = self.get()
        return told and told["state"]

    def end(self):
        assert self.daemon.request("DELETE", self.path).status in (204, 404)


@pytest.fixture
def make(daemon):
    made = []

    def one(at=None, **fields):
        made.append(Box(at or daemon, **fields))
        return made[-1]

    yield one
    for box in made:
        if box.daemon is daemon:
            box.end()


def pausable(box):
    box.inside.sh("true")  # it is ready
    got = box.verb("pause")
    harness.need(got.status != 403, "control groups that freeze processes")
    assert got.status == 200 and got.json()["state"] == "paused", got


def used_cpu_ms(box):
    return box.get()["usage"]["cpu_ms"]


def test_a_paused_sandbox_stands_still_and_goes_on(make):
    box = make()
    started = box.inside.start(COUNT)
    harness.wait_until(lambda: box.inside.run("cat /tmp/n")["stdout"], "it counts")
    before = used_cpu_ms(box)
    pausable(box)
    assert box.state() == "paused" and "usage" not in box.get()
    got = box.inside.post("run", {"cmd": "true"})
    assert got.status == 503 and "paused" in got.text
    # All its processes are frozen: for as long as it is looked at, none gets a tick of the processor.
    inside = [pid for pid in harness.pids() if is_inside(pid, box)]
    assert inside
    harness.wait_until(lambda: len({ticks(inside) for _ in range(200)}) == 1, "they stand still")
    assert box.verb("resume").json()["state"] == "running"
    assert [p["pid"] for p in box.inside.processes()] == [started["pid"]]
    at = int(box.inside.sh("cat /tmp/n") or 0)
    harness.wait_until(lambda: int(box.inside.run("cat /tmp/n")["stdout"] or 0) > at, "it counts on")
    assert used_cpu_ms(box) >= before


def is_inside(pid, box):
    text = harness.read_proc(pid, "cmdline")
    return b"/tmp/n" in (text if isinstance(text, bytes) else (text or "").encode())


def ticks(inside):
    fields = [harness.stat_fields(pid) for pid in inside]
    return sum(int(f[11]) + int(f[12]) for f in fields if f)


def test_a_paused_sandbox_can_be_deleted(make):
    box = make()
    box.inside.start(COUNT)
    pausable(box)
    assert box.daemon.request("DELETE", box.path).status == 204
    assert box.get() is None


def test_its_life_ends_at_a_fixed_time(make):
    box = make(lifetime=0.5)
    box.inside.start("sleep 1000")  # idle or not
    assert box.get()["ends_at"]
    harness.wait_until(lambda: box.get() is None, "it ends")


def test_the_fixed_time_can_be_moved(make):
    box = make(lifetime=1000)
    first = box.get()["ends_at"]
    assert box.verb("lifetime", lifetime=2000).json()["ends_at"] > first
    assert box.verb("lifetime", lifetime=0).json()["ends_at"] is None
    assert box.verb("lifetime", lifetime=-1).status == 400
    assert box.verb("lifetime", lifetime=0.3).status == 200
    harness.wait_until(lambda: box.get() is None, "it ends")


def test_it_may_be_paused_at_its_end(make):
    probe = make()
    pausable(probe)
    box = make(lifetime=0.5, on_end="pause")
    box.inside.sh("echo kept > /tmp/f")
    harness.wait_until(lambda: box.state() == "paused", "it is paused")
    assert box.get()["ends_at"] is None
    assert box.verb("resume").json()["ends_at"] is not None  # its life begins anew
    assert box.verb("lifetime", lifetime=0).status == 200
    assert box.inside.sh("cat /tmp/f") == "kept\n"


def test_a_request_wakes_one_that_may_be_woken(make):
    box = make(auto_resume=True)
    pausable(box)
    assert box.state() == "paused"  # asking does not wake it
    assert box.inside.sh("echo awake") == "awake\n"
    assert box.state() == "running"


def test_a_stranger_wakes_nothing(make):
    box = make(auto_resume=True)
    pausable(box)
    with harness.Connection(box.daemon) as conn:
        for token in ({}, {"X-Access-Token": "0" * 40}):
            got = conn.request("POST", "/process.Process/List", body=b"{}", headers={
                "Host": f"49983-{box.id}.x.test", "Content-Type": "application/json", **token})
            assert got.status == 401
        assert box.state() == "paused"
        assert conn.request("GET", "/health", headers={"Host": f"49983-{box.id}.x.test"}).status == 502
        assert box.state() == "paused"
        assert conn.request("POST", "/process.Process/List", body=b"{}", headers={
            "Host": f"49983-{box.id}.x.test", "Content-Type": "application/json", "X-Access-Token": box.token}).status == 200
    assert box.state() == "running"


@pytest.mark.parametrize("how", ["stop", "kill", "launcher"])
def test_what_is_paused_dies_with_the_daemon(make_daemon, make, how):
    """Frozen processes cannot die: somebody has to let them go on."""
    daemon = make_daemon()
    box = make(at=daemon)
    box.inside.start(COUNT)
    pausable(box)
    inside = [pid for pid in harness.pids() if is_inside(pid, box)]
    assert inside
    if how == "stop":
        daemon.stop()
    elif how == "kill":
        daemon.signal(signal.SIGKILL)
        daemon.wait()
    else:
        os.kill(daemon.launcher(), signal.SIGKILL)
    harness.wait_until(lambda: not any(harness.is_alive(pid) for pid in inside), "nothing is left of it")


def test_found_by_metadata(make):
    one, two = make(metadata={"user": "a b/ü", "n": "1"}), make(metadata={"n": "1"})
    assert one.get()["metadata"] == {"user": "a b/ü", "n": "1"}

    def found(query):
        got = one.daemon.request("GET", "/v1/sandboxes?" + query)
        assert got.status == 200, got
        return [s["id"] for s in got.json()["sandboxes"] if s["id"] in (one.id, two.id)]

    assert found("") == [one.id, two.id]
    assert found("metadata=n%3D1%26user%3Da%2520b%252F%25C3%25BC") == [one.id]
    assert found("metadata=n%3D1") == [one.id, two.id]
    assert found("metadata=n%3D2") == []
    assert found("state=paused") == []
    first = one.daemon.request("GET", "/v1/sandboxes?limit=1&metadata=n%3D1").json()
    assert [s["id"] for s in first["sandboxes"]] == [one.id]
    second = one.daemon.request("GET", f"/v1/sandboxes?limit=1&metadata=n%3D1&after={first['next']}").json()
    assert [s["id"] for s in second["sandboxes"]] == [two.id] and second["next"] is None


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "state=asleep", "after=x", "metadata=a"])
def test_what_is_no_filter(daemon, query):
    assert daemon.request("GET", "/v1/sandboxes?" + query).status == 400
