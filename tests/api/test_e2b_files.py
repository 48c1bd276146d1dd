# SPDX-License-Identifier: MIT
"""Files of E2B's envd, byte by byte: what the SDKs do not show, and what the Python SDK asks in its own way."""
import base64
import gzip
import json

import pytest

import harness


class Sandbox:
    def __init__(self, daemon):
        self.daemon = daemon
        got = daemon.request("POST", "/v2/sandboxes", json={"templateID": "base", "timeout": 600}, headers={"X-API-Key": daemon.secret})
        assert got.status == 201, got
        self.id = got.json()["sandboxID"]
        self.headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983", "Authorization": None,
                        "X-Access-Token": got.json()["envdAccessToken"]}

    def ask(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.daemon.request(method, path, body=body, headers={**self.headers, **headers})

    def read(self, query, **headers):
        return self.ask("GET", "/files?" + query, **headers)

    def write(self, query, body, **headers):
        return self.ask("POST", "/files?" + query, body, **{"Content_Type": "application/octet-stream", **headers})

    def form(self, query, *parts):
        body = b"".join(b'--edge\r\nContent-Disposition: form-data; name="%s"; filename="%s"\r\n\r\n%s\r\n' % part for part in parts)
        return self.ask("POST", "/files?" + query, body + b"--edge--\r\n", Content_Type="multipart/form-data; boundary=edge")

    def rpc(self, method, message, **headers):
        """As the Python SDK sends it: JSON over many lines."""
        return self.ask("POST", "/filesystem.Filesystem/" + method, json.dumps(message, indent=2).encode(),
                        Content_Type="application/json", Connect_Protocol_Version="1", **headers)

    def end(self):
        assert self.daemon.request("DELETE", "/sandboxes/" + self.id, headers={"X-API-Key": self.daemon.secret}).status == 204


@pytest.fixture(scope="module")
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    made.end()


def refused(got, status):
    assert got.status == status and got.json()["code"] == status and got.json()["message"], got


def test_what_a_written_file_is_told_as(sandbox):
    got = sandbox.write("path=a/b.txt", b"text")
    assert got.status == 200 and got.json() == [{"path": "/home/user/a/b.txt", "name": "b.txt", "type": "file"}]
    got = sandbox.read("path=a/b.txt")
    assert (got.status, got.body, got.headers["Content-Length"]) == (200, b"text", "4") and "Accept-Encoding" in got.headers["Vary"]
    assert sandbox.read("path=a%2Fb.txt", Range="bytes=1-2").body == b"ex"
    stat = sandbox.rpc("Stat", {"path": "a"}).json()["entry"]
    assert (stat["type"], stat["mode"], stat["owner"]) == ("FILE_TYPE_DIRECTORY", 0o755, "user")
    stat = sandbox.rpc("Stat", {"path": "~/a/b.txt"}).json()["entry"]
    assert (stat["size"], stat["mode"], stat["permissions"], stat["path"]) == ("4", 0o644, "-rw-r--r--", "/home/user/a/b.txt")


def test_a_plus_is_a_space(sandbox):
    assert sandbox.write("path=with+space", b"1").json()[0]["name"] == "with space"
    assert sandbox.read("path=with%20space").body == b"1"


@pytest.mark.parametrize("query, headers, status", [
    ("path=/tmp", {}, 400), ("path=~other/x", {}, 400), ("", {}, 400), ("path=nothing", {}, 404),
    ("path=/etc/passwd&username=daemon", {}, 401), ("path=/etc/passwd", {"X_Access_Token": "wrong"}, 401),
    ("path=/etc/passwd", {"X_Access_Token": None}, 401), ("path=/etc/passwd", {"Accept_Encoding": "br, identity;q=0"}, 406),
    ("path=/etc/passwd&signature=v1_x", {"X_Access_Token": "wrong"}, 401)])
def test_what_cannot_be_read(sandbox, query, headers, status):
    refused(sandbox.read(query, **headers), status)


@pytest.mark.parametrize("query, body, headers, status", [
    ("", b"", {}, 400), ("path=/tmp", b"x", {}, 400), ("path=x", b"", {"Content_Type": "text/plain"}, 400),
    ("path=x", b"no gzip", {"Content_Encoding": "gzip"}, 400), ("path=x", b"", {"Content_Encoding": "br"}, 400),
    ("path=x", b"", {"X_Metadata_A": "\u00fc"}, 400), ("path=x", b"", {"X_Metadata_" + "k" * 247: "v"}, 400),
    ("path=x", b"", {"X_Metadata_A": "v" * 4096}, 400), ("path=/etc/passwd/x", b"", {}, 400)])
def test_what_cannot_be_written(sandbox, query, body, headers, status):
    refused(sandbox.write(query, body, **headers), status)


def test_forms(sandbox):
    got = sandbox.form("", (b"file", b"f/one", b"1"), (b"other", b"ignored", b"2"), (b"file", "/tmp/\u00fc %22".encode(), b"\r\n--edg-\r\n"))
    assert [one["path"] for one in got.json()] == ["/home/user/f/one", '/tmp/\u00fc %22'], got
    assert sandbox.read("path=/tmp/%C3%BC%20%2522").body == b"\r\n--edg-\r\n"
    got = sandbox.form("path=f/named", (b"file", b"another name", b"3"))
    assert [one["path"] for one in got.json()] == ["/home/user/f/named"]
    refused(sandbox.form("", (b"file", b"f/twice", b"1"), (b"file", b"f/twice", b"2")), 400)
    refused(sandbox.form("", (b"other", b"x", b"1")), 400)
    refused(sandbox.form("", (b"file", b"/tmp", b"1")), 400)


def test_a_compressed_upload_is_inflated(sandbox):
    text = b"z" * 3_000_000
    assert sandbox.write("path=zipped", gzip.compress(text), Content_Encoding="gzip").status == 200
    assert sandbox.read("path=zipped").body == text
    refused(sandbox.write("path=zipped", gzip.compress(text)[:-20], Content_Encoding="gzip"), 400)
    assert sandbox.read("path=zipped").body == text, "what breaks off leaves the old file"


def test_metadata_is_kept_and_replaced(sandbox):
    got = sandbox.write("path=m", b"", X_Metadata_Author="me", **{"X-Metadata-B-C": "d e"})
    assert got.json()[0]["metadata"] == {"author": "me", "b-c": "d e"}
    assert sandbox.rpc("Stat", {"path": "m"}).json()["entry"]["metadata"] == {"author": "me", "b-c": "d e"}
    assert sandbox.rpc("ListDir", {"path": ""}).json()["entries"][0]["path"].startswith("/home/user/")
    assert "metadata" not in sandbox.write("path=m", b"").json()[0]


def test_users_name_where_a_path_begins(sandbox):
    root = "Basic " + base64.b64encode(b"root:").decode()
    assert sandbox.rpc("Stat", {"path": ""}, Authorization="Basic dXNlcjo=").json()["entry"]["path"] == "/home/user"
    assert sandbox.rpc("Stat", {"path": "x"}, Authorization=root).json()["code"] in ("not_found", "permission_denied")
    got = sandbox.rpc("Stat", {"path": ""}, Authorization="Basic " + base64.b64encode(b"nobody:").decode())
    assert (got.status, got.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("method, message, status, code", [
    ("Stat", {"path": "nothing"}, 404, "not_found"), ("ListDir", {"path": "nothing"}, 404, "not_found"),
    ("ListDir", {"path": "/etc/passwd"}, 400, "invalid_argument"), ("MakeDir", {"path": "/tmp"}, 409, "already_exists"),
    ("MakeDir", {"path": "/etc/passwd"}, 400, "invalid_argument"), ("Move", {"source": "nothing", "destination": "x"}, 404, "not_found"),
    ("Stat", {"path": "~other/x"}, 400, "invalid_argument"), ("CreateWatcher", {"path": "nothing"}, 404, "not_found"),
    ("CreateWatcher", {"path": "/etc/passwd"}, 400, "invalid_argument"), ("GetWatcherEvents", {"watcherId": "w0"}, 404, "not_found"),
    ("RemoveWatcher", {}, 404, "not_found"), ("Stat", [], 400, "invalid_argument")])
def test_errors_of_calls_are_names(sandbox, method, message, status, code):
    got = sandbox.rpc(method, message)
    assert (got.status, got.json()["code"]) == (status, code) and got.json()["message"], got


def test_lists_have_directories_before_what_is_in_them(sandbox):
    for name in ("list/b/z", "list/a", "list/b/y/deep"):
        sandbox.write("path=" + name, b"")
    def names(**fields):
        return [one["path"].removeprefix("/home/user/list/") for one in sandbox.rpc("ListDir", {"path": "list", **fields}).json()["entries"]]
    assert names() == names(depth=0) == names(depth=1) == ["a", "b"]
    assert names(depth=2) == ["a", "b", "b/y", "b/z"] and names(depth=9) == ["a", "b", "b/y", "b/y/deep", "b/z"]
    assert sandbox.rpc("Remove", {"path": "list"}).json() == {} == sandbox.rpc("Remove", {"path": "list"}).json()


def test_watchers_that_are_asked(sandbox):
    sandbox.rpc("MakeDir", {"path": "watched"})
    made = sandbox.rpc("CreateWatcher", {"path": "watched", "recursive": True, "includeEntry": True, "allowNetworkMounts": False}).json()
    sandbox.write("path=watched/sub/file", b"text")
    seen = []

    def has_come():
        seen.extend(sandbox.rpc("GetWatcherEvents", made).json().get("events", []))
        return any(one["name"] == "sub/file" for one in seen)
    harness.wait_until(has_come, "the event of the file")
    assert seen[0]["name"] == "sub" and seen[0]["type"] == "EVENT_TYPE_CREATE"
    assert seen[0]["entry"]["path"] == "/home/user/watched/sub" and seen[0]["entry"]["type"] == "FILE_TYPE_DIRECTORY"
    assert sandbox.rpc("RemoveWatcher", made).json() == {}
    assert sandbox.rpc("GetWatcherEvents", made).json()["code"] == "not_found"
