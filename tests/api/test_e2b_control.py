# SPDX-License-Identifier: MIT
"""E2B's control plane, byte by byte: what its SDKs read, what older ones ask, and what browsers ask before."""
import datetime
import json
import time
import urllib.parse

import pytest

import harness

LISTED = {"templateID", "alias", "sandboxID", "clientID", "envdVersion", "startedAt", "endAt", "cpuCount", "memoryMB", "diskSizeMB",
          "state", "metadata", "volumeMounts"}
MADE = {"templateID", "alias", "sandboxID", "clientID", "envdVersion", "envdAccessToken", "trafficAccessToken", "domain"}
UNKNOWN = "sbnothing"


class Plane:
    def __init__(self, daemon):
        self.daemon, self.made = daemon, []

    def ask(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.daemon.request(method, path, json=body, headers={"X-API-Key": self.daemon.secret, "Authorization": None, **headers})

    def make(self, path="/v2/sandboxes", **fields):
        got = self.ask("POST", path, {"templateID": "base", **fields})
        assert got.status == 201, got.text
        self.made.append(got.json()["sandboxID"])
        return got.json()

    def info(self, ident):
        got = self.ask("GET", "/sandboxes/" + ident)
        assert got.status == 200, got.text
        return got.json()

    def list(self, query="", path="/v2/sandboxes"):
        got = self.ask("GET", f"{path}?{query}")
        assert got.status == 200, got.text
        return [one["sandboxID"] for one in got.json()], got.headers.get("X-Next-Token")

    def end(self):
        for ident in self.made:
            self.ask("DELETE", "/sandboxes/" + ident)


@pytest.fixture
def plane(daemon):
    made = Plane(daemon)
    yield made
    made.end()


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def span(info):
    return round(when(info["endAt"]) - when(info["startedAt"]))


def refused(got, status, *words):
    """The body of an error has its status as a number: the SDKs read that one."""
    assert got.status == status and got.headers["Content-Type"].startswith("application/json"), got
    told = got.json()
    assert set(told) == {"code", "message"} and told["code"] == status, told
    assert all(word in told["message"] for word in words), told


def test_every_member_that_an_sdk_needs(plane):
    made = plane.make(timeout=120, metadata={"a": "1"}, envVars={"A": "b"}, something_new={"x": []}, secure=None)
    assert set(made) == MADE and made["sandboxID"].isalnum() and made["sandboxID"].islower(), made
    info = plane.info(made["sandboxID"])
    assert set(info) == LISTED | {"envdAccessToken", "domain", "network", "lifecycle"}, info
    assert (info["state"], info["metadata"], span(info)) == ("running", {"a": "1"}, 120)
    listed = [one for one in plane.ask("GET", "/v2/sandboxes").json() if one["sandboxID"] == made["sandboxID"]]
    assert set(listed[0]) == LISTED, "no list shows a token"


@pytest.mark.parametrize("path, seconds", [("/v2/sandboxes", 300), ("/sandboxes", 15)])
def test_the_time_of_one_that_names_none(plane, path, seconds):
    assert span(plane.info(plane.make(path)["sandboxID"])) == seconds


@pytest.mark.parametrize("body, status, words", [
    ({}, 400, "templateID"),
    ({"templateID": ""}, 400, "templateID"),
    ({"templateID": 1}, 400, "templateID"),
    ({"templateID": "no-such-template"}, 404, "no-such-template"),
    ({"templateID": "base", "timeout": 0}, 400, "timeout"),
    ({"templateID": "base", "timeout": 86401}, 400, "timeout"),
    ({"templateID": "base", "metadata": {"a": 1}}, 400, "metadata"),
    ({"templateID": "base", "envVars": {"a=b": "1"}}, 400, "envVars"),
    ({"templateID": "base", "autoPauseMemory": False}, 400, "autoPause"),
    ({"templateID": "base", "volumeMounts": [{"name": "v", "path": "/v"}]}, 400, "volumes"),
    ({"templateID": "base", "network": {"allowOut": ["1.1.1.1"]}}, 400, "network"),
    ([], 400, ""),
])
def test_what_cannot_be_made_is_refused(plane, body, status, words):
    refused(plane.ask("POST", "/v2/sandboxes", body), status, words)


@pytest.mark.parametrize("method, path", [
    ("GET", ""), ("DELETE", ""), ("POST", "/timeout"), ("POST", "/connect"), ("POST", "/pause"), ("POST", "/resume"), ("GET", "/metrics"),
    ("POST", "/refreshes"), ("GET", "/logs")])
def test_unknown_sandboxes(plane, method, path):
    refused(plane.ask(method, f"/sandboxes/{UNKNOWN}{path}"), 404, UNKNOWN)


def test_keys(plane):
    for headers in ({"X_API_Key": None}, {"X_API_Key": "e2b_" + "0" * 40}, {"X_API_Key": ""}):
        refused(plane.ask("GET", "/v2/sandboxes", **headers), 401, "X-API-KEY")
    bearer = "Bearer " + plane.daemon.secret
    assert plane.ask("GET", "/v2/sandboxes", X_API_Key=None, Authorization=bearer).status == 200
    assert plane.ask("GET", "/v2/sandboxes", Authorization="Bearer of an old SDK").status == 200, "the key counts"


def test_the_id_of_old_sdks_ends_with_that_of_a_client(plane):
    ident = plane.make()["sandboxID"]
    assert plane.ask("GET", f"/sandboxes/{ident}-a1b2").json()["sandboxID"] == ident


def test_times_of_life(plane):
    ident = plane.make(timeout=1000)["sandboxID"]

    def left():
        return when(plane.info(ident)["endAt"]) - time.time()
    for path, body, status, least, most in [
            ("/timeout", {"timeout": 100}, 204, 0, 101), ("/timeout", {"timeout": 2000}, 204, 1000, 2001),
            ("/refreshes", {"duration": 10}, 204, 1000, 2001), ("/refreshes", {"duration": 4000}, 204, 3000, 4001),
            ("/connect", {"timeout": 10}, 200, 3000, 4001), ("/connect", {"timeout": 5000}, 200, 4000, 5001)]:
        got = plane.ask("POST", f"/sandboxes/{ident}{path}", body)
        assert got.status == status and least < left() <= most, (path, body, got, left())
    refused(plane.ask("POST", f"/sandboxes/{ident}/timeout", {"timeout": 86401}), 400, "timeout")
    assert plane.ask("POST", f"/v2/sandboxes/{ident}/connect").status == 200, "its body may be missing"
    assert plane.ask("POST", f"/sandboxes/{ident}/timeout", {"timeout": -1}).status == 204
    harness.wait_until(lambda: plane.ask("GET", "/sandboxes/" + ident).status == 404, "no time at all ends it")


def test_pausing_and_resuming(plane):
    made = plane.make(timeout=1000)
    ident = made["sandboxID"]
    path = f"/sandboxes/{ident}"
    refused(plane.ask("POST", path + "/resume", {"timeout": 10}), 409)
    got = plane.ask("POST", path + "/pause", {"memory": False})
    refused(got, 501, "memory")
    got = plane.ask("POST", path + "/pause")
    harness.need(got.status != 403, "a freezer of control groups")
    assert got.status == 204, got
    assert plane.info(ident)["state"] == "paused"
    refused(plane.ask("POST", path + "/pause", {}), 409)
    refused(plane.ask("POST", path + "/timeout", {"timeout": 10}), 409)
    assert plane.ask("GET", path + "/metrics").json() == []
    assert ident not in plane.list(path="/sandboxes")[0] and ident in plane.list("state=paused")[0]
    assert plane.daemon.request("GET", "/health", headers={"E2b-Sandbox-Id": ident, "E2b-Sandbox-Port": "49983"}).status == 502
    got = plane.ask("POST", path + "/resume", {"timeout": 500})
    assert got.status == 201 and set(got.json()) == MADE and got.json()["envdAccessToken"] == made["envdAccessToken"], got
    assert ident in plane.list(path="/sandboxes")[0]
    assert plane.ask("POST", path + "/pause").status == 204
    got = plane.ask("POST", "/v2" + path + "/connect", {"timeout": 50})
    assert got.status == 201 and when(plane.info(ident)["endAt"]) - time.time() <= 51, got


def test_lists(plane):
    mark = {"a": "1", "b": "x y/ü"}
    ids = [plane.make(metadata=mark)["sandboxID"] for _ in range(3)]
    encoded = {"js": "a%3D1%26b%3Dx%252520y%25252F%2525C3%2525BC", "python": "a%3D1%26b%3Dx%252520y%252F%2525C3%2525BC"}
    for text in encoded.values():
        assert plane.list("metadata=" + text) == (ids[::-1], None), "newest first; it is encoded three times"
    mine = "metadata=" + encoded["js"]
    assert plane.list(mine + "&order=asc")[0] == ids
    assert plane.list(mine + "&state=running")[0] == ids[::-1] and plane.list(mine + "&state=paused")[0] == []
    assert plane.list(mine + "&template=base")[0] == ids[::-1] and plane.list(mine + "&template=other")[0] == []
    page, token = plane.list(mine + "&limit=2")
    assert page == [ids[2], ids[1]] and token
    assert plane.list(f"{mine}&limit=2&nextToken={token}") == ([ids[0]], None)
    began = plane.info(ids[1])["startedAt"]
    assert plane.list(f"{mine}&startedAfter={urllib.parse.quote(began)}")[0][-1] in ids[:2], "the time itself is included"
    for wrong in ("limit=0", "limit=101", "limit=x", "state=ended", "nextToken=x", "startedAfter=yesterday", "metadata=a"):
        refused(plane.ask("GET", "/v2/sandboxes?" + wrong), 400)
    assert plane.list("metadata=no%3Dsuch")[0] == []


def test_metrics_have_every_member(plane):
    one, = plane.ask("GET", f"/sandboxes/{plane.make()['sandboxID']}/metrics?start=1&end=2").json()
    assert set(one) == {"timestamp", "timestampUnix", "cpuCount", "cpuUsedPct", "memUsed", "memTotal", "memCache", "diskUsed", "diskTotal"}


@pytest.mark.parametrize("method, path", [
    ("POST", "/sandboxes/{id}/snapshots"), ("POST", "/sandboxes/{id}/fork"), ("GET", "/snapshots"), ("PUT", "/sandboxes/{id}/network"),
    ("DELETE", "/templates/x%3Adefault"), ("GET", "/templates"), ("POST", "/v3/templates"), ("POST", "/v2/templates/a/builds/b"),
    ("GET", "/templates/a/builds/b/status"), ("GET", "/volumes"), ("GET", "/secrets")])
def test_what_is_not_offered_says_why(plane, method, path):
    got = plane.ask(method, path.replace("{id}", plane.make()["sandboxID"] if "{id}" in path else ""), {} if method != "GET" else None)
    refused(got, 501)
    assert len(got.json()["message"]) > 20


def test_aliases_of_templates(plane):
    assert plane.ask("GET", "/templates/aliases/base").json() == {"templateID": "base", "public": True}
    refused(plane.ask("GET", "/templates/aliases/nothing"), 404, "nothing")


def test_templates_of_the_operator(make_daemon):
    daemon = make_daemon(SANDBOX_TEMPLATES="mine, other")
    plane = Plane(daemon)
    for name in ("mine", "other", "base", "code-interpreter-v1"):
        assert plane.info(plane.make(templateID=name)["sandboxID"])["templateID"] == name
    refused(plane.ask("POST", "/v2/sandboxes", {"templateID": "min"}), 404, "min")


def test_too_many_are_told_when_to_try_again(make_daemon):
    daemon = make_daemon(SANDBOXES_MAX=1, POOL_CELLS=0)
    plane = Plane(daemon)
    plane.make()
    got = plane.ask("POST", "/v2/sandboxes", {"templateID": "base"})
    refused(got, 429)
    assert got.headers["Retry-After"].isdigit()


# ---- the four forms of an error ----


def test_each_service_words_errors_in_its_own_form(plane):
    made = plane.make()
    def to(port, token="X-Access-Token"):
        return {"E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": str(port), token: made["envdAccessToken"], "Authorization": None}
    ask = plane.daemon.request
    refused(plane.ask("GET", "/sandboxes/" + UNKNOWN), 404)
    refused(ask("GET", "/files?path=nothing", headers=to(49983)), 404)
    rpc = ask("POST", "/filesystem.Filesystem/Stat", json={"path": "/nothing"}, headers=to(49983))
    assert (rpc.status, rpc.json()["code"]) == (404, "not_found"), "a name, not a number"
    text = ask("DELETE", "/contexts/nothing", headers=to(49999))
    assert (text.status, text.text) == (404, "Context nothing not found")
    gone = ask("GET", "/", headers={**to(3000), "E2b-Sandbox-Id": UNKNOWN})
    assert gone.status == 502 and gone.json() == {"sandboxId": UNKNOWN, "message": "The sandbox was not found", "code": 502}
    for headers in ({"E2b-Sandbox-Id": made["sandboxID"]}, {"E2b-Sandbox-Port": "49983"}):
        refused(ask("GET", "/health", headers=headers), 400)


def test_hosts_lead_to_each_service(plane):
    made = plane.make()
    def ask(port, path, **headers):
        return plane.daemon.request("GET", path, headers={"Host": f"{port}-{made['sandboxID']}.sandbox.test", "Authorization": None,
                                                          **{name.replace("_", "-"): value for name, value in headers.items()}})
    token = {"X_Access_Token": made["envdAccessToken"]}
    assert ask(49983, "/health").status == 204 and ask(49999, "/health").status == 200
    assert ask(49983, "/files?path=/etc/hostname", **token).body == b"sandbox\n"
    assert ask(49999, "/contexts", **token).json() == []
    assert ask(49983, "/v1/sandboxes", Authorization="Bearer " + plane.daemon.secret).status in (401, 404), "nothing else is there"
    assert ask(3000, "/health").json()["port"] == 3000
    assert ask(3000, "/health", E2b_Sandbox_Port="49983", E2b_Sandbox_Id=made["sandboxID"]).json()["port"] == 3000, "the host counts first"


def test_tokens_of_one_sandbox_open_no_other(plane):
    one, other = plane.make(), plane.make()
    for port, path, header, token in [(49983, "/files?path=/etc/passwd", "X-Access-Token", "envdAccessToken"),
                                      (49999, "/contexts", "X-Access-Token", "envdAccessToken"),
                                      (49999, "/contexts", "E2B-Traffic-Access-Token", "trafficAccessToken")]:
        def ask(bearer, port=port, path=path, header=header, token=token):
            return plane.daemon.request("GET", path, headers={"E2b-Sandbox-Id": one["sandboxID"], "E2b-Sandbox-Port": str(port),
                                                              header: bearer[token], "Authorization": None}).status
        assert ask(one) == 200 and ask(other) == 401, (port, header)
    secret = plane.daemon.request("GET", "/files?path=/etc/passwd", headers={"E2b-Sandbox-Id": one["sandboxID"], "E2b-Sandbox-Port": "49983"})
    assert secret.status == 401, "the daemon's own secret is none of a sandbox's tokens"


# ---- browsers ----


def preflight(daemon, path, asked, method="POST", **headers):
    return daemon.request("OPTIONS", path, headers={"Origin": "https://page.example", "Access-Control-Request-Method": method,
                                                    "Access-Control-Request-Headers": asked, "Authorization": None, **headers})


@pytest.mark.parametrize("path, asked", [("/v2/sandboxes", "content-type,x-api-key"), ("/sandboxes/x/timeout", "X-API-Key"),
                                         ("/process.Process/Start", "connect-protocol-version, e2b-sandbox-id, x-access-token"),
                                         ("/execute", "content-type,e2b-sandbox-id,e2b-sandbox-port"), ("/files", "e2b-sandbox-id")])
def test_a_web_page_may_use_the_sdk(daemon, path, asked):
    got = preflight(daemon, path, asked)
    assert got.status == 204 and got.headers["Access-Control-Allow-Origin"] == "*", got
    assert got.headers["Access-Control-Allow-Headers"] == asked and "POST" in got.headers["Access-Control-Allow-Methods"]


def test_a_web_page_reads_answers_and_refusals(plane):
    made = plane.make()
    origin = {"Origin": "https://page.example"}
    to = {"E2b-Sandbox-Id": made["sandboxID"], "Authorization": None, "X-Access-Token": made["envdAccessToken"], **origin}
    answers = [plane.ask("GET", "/v2/sandboxes", **origin), plane.ask("GET", "/v2/sandboxes", X_API_Key="wrong", **origin),
               plane.daemon.request("GET", "/contexts", headers={**to, "E2b-Sandbox-Port": "49999"}),
               plane.daemon.request("GET", "/files?path=nothing", headers={**to, "E2b-Sandbox-Port": "49983"})]
    assert [a.status for a in answers] == [200, 401, 200, 404]
    assert [a.headers.get("Access-Control-Allow-Origin") for a in answers] == ["*"] * 4


def test_web_pages_get_nothing_else_by_that(plane):
    for path in ("/execute", "/v1/sandboxes", "/run"):
        got = preflight(plane.daemon, path, "authorization,content-type")
        assert got.status in (401, 404, 405) and "Access-Control-Allow-Origin" not in got.headers, got
    got = plane.daemon.request("GET", "/v1/sandboxes", headers={"Origin": "https://page.example"})
    assert got.status == 200 and "Access-Control-Allow-Origin" not in got.headers
    ident = plane.make()["sandboxID"]
    got = preflight(plane.daemon, "/", "x-mine", Host=f"3000-{ident}.localhost")
    assert got.status == 502 and json.loads(got.text)["port"] == 3000, "the ports of a sandbox answer for themselves"


def test_without_a_secret_pages_of_other_origins_are_refused(make_daemon):
    daemon = make_daemon(SANDBOX_AUTH_MODE="none")
    got = daemon.request("GET", "/v2/sandboxes", headers={"Origin": "https://page.example", "Authorization": None})
    refused(got, 403)
