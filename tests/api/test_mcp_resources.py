# SPDX-License-Identifier: MIT
"""Resources of the Model Context Protocol: the guide, files of sandboxes, artifacts of executions."""
import base64
import json
import urllib.parse

import pytest

import harness
from mcp_client import HANDSHAKE, MODERN, Client, Refused

MIB = 1 << 20


@pytest.fixture(params=[HANDSHAKE[0], MODERN])
def client(daemon, request):
    return Client(daemon, request.param)


@pytest.fixture
def place(client):
    made = client.data("create_sandbox")["sandbox"]
    yield made
    client.data("delete_sandbox", sandbox=made)


def uri_of(place, path):
    return f"sbx://sandboxes/{place}/files/" + urllib.parse.quote(path.lstrip("/"))


def read(client, uri):
    got = client.ask("resources/read", {"uri": uri})
    if client.era == MODERN:
        assert (got["ttlMs"], got["cacheScope"]) == (0, "private")
    return got["contents"][0]


def refused(client, uri):
    with pytest.raises(Refused) as why:
        client.ask("resources/read", {"uri": uri})
    return why.value


def test_the_guide_tells_what_there_is(client):
    guide = read(client, "sbx://guide")
    assert guide["mimeType"] == "text/markdown" and guide["uri"] == "sbx://guide"
    for word in ("python", "javascript", "/workspace", "no network", "2048 MiB", "16000 characters", "15 idle minutes"):
        assert word in guide["text"], word


def test_the_guide_is_listed_and_files_have_a_template(client):
    listed = client.ask("resources/list")["resources"]
    assert listed[0]["uri"] == "sbx://guide"
    templates = [t["uriTemplate"] for t in client.ask("resources/templates/list")["resourceTemplates"]]
    assert "sbx://sandboxes/{sandbox}/files/{+path}" in templates and "sbx://runs/{run}/artifacts/{+path}" in templates


def test_text_is_text_and_bytes_are_not(client, place):
    client.data("write_file", path="a/gr\u00fc\u00dfe %20.csv", content="1,2\n", sandbox=place)
    got = read(client, uri_of(place, "/workspace/a/gr\u00fc\u00dfe %20.csv"))
    assert (got["text"], got["mimeType"]) == ("1,2\n", "text/csv")
    data = bytes(range(256))
    client.data("write_file", path="b.bin", content=base64.b64encode(data).decode(), encoding="base64", sandbox=place)
    got = read(client, uri_of(place, "/workspace/b.bin"))
    assert base64.b64decode(got["blob"]) == data and "text" not in got
    client.data("write_file", path="noend", content="x", sandbox=place)
    assert read(client, uri_of(place, "/workspace/noend"))["mimeType"] == "text/plain"
    client.data("write_file", path="nul", content="a\0b", sandbox=place)
    assert base64.b64decode(read(client, uri_of(place, "/workspace/nul"))["blob"]) == b"a\0b"


def test_large_files_are_bytes_then_nothing(client, place):
    make = "head -c {} /dev/zero | tr '\\0' x >{}"
    client.data("run_command", command=f"{make.format(MIB, 'text')}; {make.format(MIB + 1, 'blob')}; {make.format(4 * MIB + 1, 'none')}",
                sandbox=place)
    assert len(read(client, uri_of(place, "/workspace/text"))["text"]) == MIB
    assert len(base64.b64decode(read(client, uri_of(place, "/workspace/blob"))["blob"])) == MIB + 1
    error = refused(client, uri_of(place, "/workspace/none"))
    assert error.code == -32602 and error.error["data"]["hint"] == f"GET /v1/sandboxes/{place}/files/workspace/none"


@pytest.mark.parametrize("uri", ["sbx://nothing", "sbx://guide/x", "file:///etc/passwd", "sbx://sandboxes/none/files/x", "sbx://sandboxes/",
                                 "sbx://runs/none/artifacts/x", "sbx://sandboxes/PLACE/files/nothing", "sbx://sandboxes/PLACE/files/%00",
                                 "sbx://sandboxes/PLACE/files/%zz", "sbx://sandboxes/PLACE/other/x"])
def test_what_is_missing_says_its_name(client, place, uri):
    uri = uri.replace("PLACE", place)
    error = refused(client, uri)
    assert error.code == (-32602 if client.era == MODERN else -32002), error.error
    assert error.error["data"] == {"uri": uri}


@pytest.mark.parametrize("uri", ["", "sbx://sandboxes/x/files/" + "x/" * 5000, "sbx://sandboxes/x/files/" + "x" * 100000])
def test_no_address_is_too_long_or_too_short(daemon, uri):
    assert refused(Client(daemon), uri).code == -32002


def test_a_wrong_question_is_refused(client):
    for params in ({}, {"uri": 3}, {"uri": None}, {"uri": ["x"]}):
        with pytest.raises(Refused) as why:
            client.ask("resources/read", params, headers={"Mcp-Name": "x"})
        assert why.value.code in (-32602, -32020)


def test_a_directory_is_none(client, place):
    assert "directory" in refused(client, uri_of(place, "/workspace")).error["message"]


def test_the_path_is_resolved_inside_by_the_user_of_the_sandbox(client, place):
    """Links and dots lead to what the sandbox has, never to the host's files."""
    client.data("run_command", command="ln -s /etc/passwd link; ln -s /proc/1/root/etc/shadow other; ln -s / root", sandbox=place)
    inside = client.data("run_command", command="cat /etc/passwd", sandbox=place)["stdout"]
    for path in ("/workspace/link", "/workspace/root/etc/passwd", "/etc/passwd", "/workspace/../../../etc/passwd"):
        assert read(client, uri_of(place, path))["text"] == inside
    assert refused(client, uri_of(place, "/workspace/other")).code in (-32602, -32002)
    assert harness.CANARY not in json.dumps(client.ask("resources/list"))


def test_files_that_runs_left_are_listed_the_newest_first(client, place):
    client.data("run_command", command="echo 1 >first.csv; sleep 0.05", sandbox=place)
    client.data("run_command", command="echo 22 >second.csv; sleep 0.05", sandbox=place)
    client.data("run_command", command="echo 333 >first.csv", sandbox=place)
    listed = [r for r in client.ask("resources/list")["resources"] if place in r["uri"]]
    assert [(r["name"], r["size"]) for r in listed] == [("/workspace/first.csv", 4), ("/workspace/second.csv", 3)]
    assert read(client, listed[0]["uri"])["text"] == "333\n" and listed[0]["mimeType"] == "text/csv"


def test_at_most_a_hundred_are_listed_and_none_of_what_is_gone(client):
    place = client.data("create_sandbox")["sandbox"]
    for part in range(3):
        client.data("run_command", command=f"for i in $(seq 50); do echo >f{part}.$i; done; sleep 0.05", sandbox=place)
    listed = client.ask("resources/list")["resources"]
    assert len(listed) == 101 and listed[1]["name"].startswith("/workspace/f2.")
    client.data("delete_sandbox", sandbox=place)
    harness.wait_until(lambda: not [r for r in client.ask("resources/list")["resources"] if place in r["uri"]], "they are listed")


def test_an_artifact_is_read(daemon, client):
    run = daemon.execute("echo hello >out.txt", "shell")["execution_id"]
    got = read(client, f"sbx://runs/{run}/artifacts/out.txt")
    assert (got["text"], got["mimeType"]) == ("hello\n", "text/plain")


def test_a_secret_lists_the_files_of_its_own_runs(make_daemon, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("first-secret")
    secret.chmod(0o644)
    daemon = make_daemon(SANDBOX_SECRET=None, SANDBOX_SECRET_FILE=str(secret))
    daemon.secret = "first-secret"
    one = Client(daemon, MODERN)
    place = one.data("run_command", command="echo >mine.csv")["sandbox"]
    assert [r for r in one.ask("resources/list")["resources"] if place in r["uri"]]
    secret.write_text("second-secret")
    daemon.process.send_signal(1)
    assert daemon.wait_record(event_type="reloaded")
    daemon.secret = "second-secret"
    assert not [r for r in Client(daemon, MODERN).ask("resources/list")["resources"] if place in r["uri"]]
