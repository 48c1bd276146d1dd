# SPDX-License-Identifier: MIT
"""What opens one sandbox opens no other: tokens, ids, handles and URLs at every door, with what is inside as witness."""
import base64
import json

import pytest

import harness
from files_of import Files
from sockets import Refused, WebSocket
from test_e2b_process import envelope

ENVD, INTERPRETER = 49983, 49999
STREAM = "application/connect+json"


class Box:
    """A sandbox with an E2B token, a file and a process that nobody else may touch."""

    def __init__(self, daemon):
        made = daemon.request("POST", "/v2/sandboxes", json={"templateID": "base", "timeout": 900, "secure": True},
                              headers={"X-API-Key": daemon.secret})
        assert made.status == 201, made
        self.daemon, self.id = daemon, made.json()["sandboxID"]
        self.path = f"/v1/sandboxes/{self.id}"
        self.token = made.json()["envdAccessToken"]
        access = daemon.request("GET", self.path).json().get("access") or {}
        self.traffic = made.json().get("trafficAccessToken") or access.get("traffic_token")
        self.files = Files(daemon, self.id)
        self.files.write("/tmp/kept", b"kept")
        started = daemon.request("POST", f"{self.path}/processes", json={"command": "exec sleep 6000", "tag": "kept", "stdin": True})
        assert started.status == 201, started
        self.process = started.json()

    def envd(self, method, path, body=b"", port=ENVD, token=None, kind="application/json", **headers):
        """With the token of another: only what is given here."""
        body = json.dumps(body).encode() if isinstance(body, dict) else body
        return self.daemon.request(method, path, body=body, headers={
            "E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": str(port), "Authorization": None, "Content-Type": kind,
            **({"X-Access-Token": token} if token else {}), **headers})

    def check_untouched(self):
        listed = self.daemon.request("GET", f"{self.path}/processes").json()["processes"]
        assert [(p["id"], p["status"]) for p in listed] == [(self.process["id"], "running")], listed
        assert self.files.read("/tmp/kept").body == b"kept"
        assert [e["name"] for e in self.files.list("/tmp")] == ["kept"]
        assert self.daemon.request("GET", f"{self.path}/contexts").json()["contexts"] == []

    def delete(self):
        assert self.daemon.request("DELETE", self.path).status == 204


@pytest.fixture
def pair(daemon):
    one, other = Box(daemon), Box(daemon)
    yield one, other
    one.delete()
    other.delete()


# Every request of E2B's services that does something, and with which Content-Type.
SHELL = {"process": {"cmd": "/bin/sh", "args": ["-c", "rm /tmp/kept; touch /tmp/was-here"]}}
KEPT = {"process": {"tag": "kept"}}
DOORS = [
    ("POST", "/process.Process/Start", envelope(SHELL), STREAM), ("POST", "/process.Process/Connect", envelope(KEPT), STREAM),
    ("POST", "/process.Process/List", {}, None), ("POST", "/process.Process/SendSignal", {**KEPT, "signal": 9}, None),
    ("POST", "/process.Process/SendInput", {**KEPT, "input": {"stdin": base64.b64encode(b"x").decode()}}, None),
    ("POST", "/process.Process/CloseStdin", KEPT, None), ("POST", "/process.Process/Update", KEPT, None),
    ("POST", "/process.Process/StreamInput", envelope({"start": KEPT}), STREAM),
    ("POST", "/filesystem.Filesystem/Stat", {"path": "/tmp/kept"}, None), ("POST", "/filesystem.Filesystem/ListDir", {"path": "/tmp"}, None),
    ("POST", "/filesystem.Filesystem/MakeDir", {"path": "/tmp/was-here"}, None),
    ("POST", "/filesystem.Filesystem/Move", {"source": "/tmp/kept", "destination": "/tmp/was-here"}, None),
    ("POST", "/filesystem.Filesystem/Remove", {"path": "/tmp/kept"}, None),
    ("POST", "/filesystem.Filesystem/WatchDir", envelope({"path": "/tmp"}), STREAM),
    ("POST", "/filesystem.Filesystem/CreateWatcher", {"path": "/tmp"}, None),
    ("GET", "/files?path=/tmp/kept", b"", None), ("GET", "/envs", b"", None),
    ("POST", "/files?path=/tmp/kept", b"x", "application/octet-stream"),
]
CODE = [("POST", "/execute", {"code": "open('/tmp/was-here', 'w')"}), ("POST", "/contexts", {"language": "python"}), ("GET", "/contexts", b""),
        ("DELETE", "/contexts/x", b""), ("POST", "/contexts/x/restart", {})]


@pytest.mark.parametrize("method, path, body, kind", DOORS, ids=[d[1].split("?")[0].rsplit("/", 1)[1] for d in DOORS])
def test_a_token_opens_its_own_sandbox_only(pair, method, path, body, kind):
    one, other = pair
    for token in (one.token, one.traffic, other.traffic, one.daemon.secret, "", other.token[:-1], other.token + "a"):
        got = other.envd(method, path, body, token=token, kind=kind or "application/json")
        assert got.status == 401 or (got.status == 200 and b"unauthenticated" in got.body), (token, got)
    by_host = other.envd(method, path, body, token=one.token, kind=kind or "application/json",
                         **{"Host": f"{ENVD}-{other.id}.x.test", "E2b-Sandbox-Id": one.id})
    assert by_host.status == 401 or b"unauthenticated" in by_host.body, "the host names it, whatever the headers say"
    other.check_untouched()


@pytest.mark.parametrize("method, path, body", CODE, ids=["execute", "create", "list", "delete", "restart"])
def test_a_token_runs_code_in_its_own_sandbox_only(pair, method, path, body):
    one, other = pair
    for token in (one.token, one.traffic, "", one.daemon.secret):
        for header in ("X-Access-Token", "E2b-Traffic-Access-Token"):
            assert other.envd(method, path, body, INTERPRETER, **{header: token or None}).status == 401, (header, token)
    other.check_untouched()


def test_ids_of_one_sandbox_mean_nothing_in_another(pair):
    one, other = pair
    daemon = one.daemon
    ident, number = one.process["id"], one.process["pid"]
    one.daemon.request("POST", f"{one.path}/contexts", json={"language": "bash"})
    context = daemon.request("GET", f"{one.path}/contexts").json()["contexts"][0]["id"]
    before = daemon.request("GET", f"{other.path}/processes/{other.process['pid']}").json()
    assert number == other.process["pid"] or daemon.request("GET", f"{other.path}/processes/{number}").status == 404
    for method, path, body in (("GET", f"/processes/{ident}", None), ("DELETE", f"/processes/{ident}", None), ("GET", f"/processes/{ident}/output", None),
                               ("POST", f"/processes/{ident}/signal", {"signal": "SIGKILL"}), ("DELETE", f"/processes/{ident}/stdin", None),
                               ("GET", f"/contexts/{context}", None), ("DELETE", f"/contexts/{context}", None), ("POST", f"/contexts/{context}/restart", {}),
                               ("POST", f"/contexts/{context}/interrupt", {}), ("POST", "/cells", {"code": "touch /tmp/was-here", "context": context})):
        assert daemon.request(method, other.path + path, json=body).status == 404, (method, path)
    for path in (f"/terminals/{ident}", f"/processes/{ident}/output"):
        with pytest.raises(Refused) as refused:
            WebSocket(daemon, other.path + path)
        assert refused.value.status == 404
    other.check_untouched()
    assert daemon.request("GET", f"{other.path}/processes/{other.process['pid']}").json()["status"] == before["status"] == "running"
    assert daemon.request("GET", f"{one.path}/processes/{ident}").json()["status"] == "running"


def test_a_watcher_is_of_one_sandbox(pair):
    one, other = pair
    made = one.envd("POST", "/filesystem.Filesystem/CreateWatcher", {"path": "/tmp"}, token=one.token)
    assert made.status == 200, made
    for method in ("GetWatcherEvents", "RemoveWatcher"):
        assert other.envd("POST", f"/filesystem.Filesystem/{method}", made.json(), token=other.token).status == 404
    one.files.write("/tmp/new", b"")

    def seen():
        return one.envd("POST", "/filesystem.Filesystem/GetWatcherEvents", made.json(), token=one.token).json().get("events")

    assert harness.wait_until(seen, "its own events")[0]["name"] == "new"


def test_watchers_that_have_ended_have_a_limit(daemon):
    """Each keeps up to a mebibyte of events, and a program inside can end all of them."""
    box, made = Box(daemon), []

    def watch():
        got = box.envd("POST", "/filesystem.Filesystem/CreateWatcher", {"path": "/tmp"}, token=box.token)
        assert got.status == 200, got
        made.append(got.json()["watcherId"])

    def known():
        return sum(box.envd("POST", "/filesystem.Filesystem/GetWatcherEvents", {"watcherId": w}, token=box.token).status != 404 for w in made)

    for _ in range(5):
        for _ in range(8):
            watch()
        daemon.request("POST", f"{box.path}/run", json={"cmd": "kill -9 -1"})
        assert daemon.request("POST", f"{box.path}/run", json={"cmd": "true"}).status == 200
    watch()
    harness.wait_until(lambda: watch() or known() <= 16 + len(made) - 40, "those that have ended are sixteen")
    box.delete()


# ---- pages ----

def test_a_web_socket_is_not_for_pages_of_others(daemon):
    """A browser sends no header of ours with a WebSocket's handshake; where that is enough, the origin must be right."""
    box = Box(daemon)
    for origin in ("http://evil.example", "null", f"http://{daemon.host}.evil.example:{daemon.port}", f"https://x@evil.example/{daemon.host}:{daemon.port}", ""):
        for path in ("/terminals", f"/terminals/{box.process['pid']}", f"/processes/{box.process['pid']}/output"):
            with pytest.raises(Refused) as refused:
                WebSocket(daemon, box.path + path, {"Origin": origin})
            assert refused.value.status == 403, (origin, path)
    box.check_untouched()
    box.delete()
