# SPDX-License-Identifier: MIT
"""Files in function sessions: what a call brings, what it changes, mounts that live as long as the session."""
import os

import harness
import pytest
from test_functions_call import host_dir
from test_functions_files import mounts  # noqa: F401 (a fixture)
from test_rootless import programs  # noqa: F401 (a fixture)
from test_sessions import Session as Plain

PY, JS, RB, PHP = "python", "javascript", "ruby", "php"

# The same in each language: write, remove, read.
CODE = {
    PY: """
import os
def put(path, text):
    with open(path, 'w') as f:
        f.write(text)
def drop(path):
    os.unlink(path)
def get(path):
    with open(path) as f:
        return f.read()
def names(path):
    return sorted(os.listdir(path))
def leave():
    os._exit(3)
""",
    JS: """
const fs = require('fs');
function put(path, text) { fs.writeFileSync(path, text) }
function drop(path) { fs.unlinkSync(path) }
function get(path) { return fs.readFileSync(path, 'utf8') }
function names(path) { return fs.readdirSync(path).sort() }
function leave() { process.exit(3) }
""",
    RB: """
def put(path, text) File.write(path, text); nil end
def drop(path) File.unlink(path); nil end
def get(path) File.read(path) end
def names(path) Dir.children(path).sort end
def leave() exit! 3 end
""",
    PHP: """<?php
function put($path, $text) { file_put_contents($path, $text); }
function drop($path) { unlink($path); }
function get($path) { clearstatcache(); return file_get_contents($path); }
function names($path) { return array_values(array_diff(scandir($path), ['.', '..'])); }
function leave() { exit(3); }
""",
    "c": """
#include <stdio.h>
void put(const char *path, const char *text) { FILE *f = fopen(path, "w"); fputs(text, f); fclose(f); }
void drop(const char *path) { remove(path); }
""",
}
EMPTY = {"created": [], "modified": [], "deleted": [], "denied": []}


class Session(Plain):
    """One that is deleted with its block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()


def paths(changes):
    return [c["path"] for c in changes]


@pytest.mark.parametrize("language", list(CODE))
def test_each_call_tells_what_it_changed(mounts, language):
    with Session(mounts, language, CODE[language], options={"files": {"given": "g"}}) as s:
        assert s.made["files"] == EMPTY
        first = s.call("put", "a", "one")
        assert first["status"] == "success", first
        [made] = first["files"]["created"]
        assert (made["path"], made["content"], made["size"]) == ("/workspace/a", "one", 3)
        assert first["files"]["modified"] == first["files"]["deleted"] == []
        second = s.call("put", "a", "two")  # as long as before, and perhaps in the same instant
        [changed] = second["files"]["modified"]
        assert (changed["path"], changed["content"], changed["oldContent"]) == ("/workspace/a", "two", "one")
        assert second["files"]["created"] == []
        third = s.call("put", "a", "two")
        assert third["files"] == EMPTY
        fourth = s.call("drop", "given")
        [gone] = fourth["files"]["deleted"]
        assert (gone["path"], gone["oldContent"]) == ("/workspace/given", "g")
        fifth = s.call("drop", "a")
        assert paths(fifth["files"]["deleted"]) == ["/workspace/a"] and fifth["files"]["created"] == []


def test_calls_in_a_row_see_every_change(mounts):
    with Session(mounts, PY, CODE[PY]) as s:
        for i in range(30):
            got = s.call("put", "f", f"{i:04}")
            kind = "created" if i == 0 else "modified"
            assert [(c["path"], c["content"]) for c in got["files"][kind]] == [("/workspace/f", f"{i:04}")], i


def test_what_loading_writes_is_the_creations(mounts):
    with Session(mounts, PY, "open('made', 'w').write('x')\n" + CODE[PY]) as s:
        assert paths(s.made["files"]["created"]) == ["/workspace/made"]
        assert s.call("get", "made")["files"] == EMPTY


def test_what_a_call_is_not_to_tell_the_next_one_does(mounts):
    with Session(mounts, PY, CODE[PY]) as s:
        quiet = s.call("put", "a", "1", options={"reporting": {"includeChanges": False}})
        assert "files" not in quiet
        assert paths(s.call("put", "b", "1")["files"]["created"]) == ["/workspace/a", "/workspace/b"]
        bare = s.call("put", "c", "1", options={"reporting": {"includeContents": False}})
        assert "content" not in bare["files"]["created"][0]
    with Session(mounts, PY, CODE[PY], options={"reporting": {"includeChanges": False}}) as s:
        assert "files" not in s.made
        assert "files" not in s.call("put", "a", "1")
        assert "files" in s.call("put", "a", "1", options={"reporting": {"includeChanges": True}})


def test_large_files_are_known_by_their_times(mounts):
    with Session(mounts, PY, CODE[PY] + "def big(c):\n    open('big', 'w').write(c * (20 << 20))\n") as s:
        assert paths(s.call("big", "a")["files"]["created"]) == ["/workspace/big"]
        assert s.call("get", "/etc/hostname", options={"reporting": {"includeContents": False}})["files"] == EMPTY
        [change] = s.call("big", "b")["files"]["modified"]
        assert change["oldContentOmitted"] and change["content"].startswith("bbb")


@pytest.mark.parametrize("language", [PY, JS, RB, PHP])
def test_a_call_brings_files(mounts, language):
    with Session(mounts, language, CODE[language]) as s:
        files = {"in/put.txt": "héllo", "bytes": {"base64": "AAH/"}}
        got = s.call("get", "in/put.txt", options={"files": files})
        assert (got["result"], got["files"]) == ("héllo", EMPTY)
        assert s.call("names", ".")["result"][:2] == ["bytes", "in"]
        again = s.call("put", "in/put.txt", "mine", options={"files": {"in/put.txt": "yours"}})
        [change] = again["files"]["modified"]
        assert (change["oldContent"], change["content"]) == ("yours", "mine")


def test_files_replace_what_is_at_their_place_and_never_follow_it(mounts):
    code = CODE[PY] + "def trap():\n    os.mkfifo('p'); os.symlink('/workspace/target', 'l'); os.mkdir('d')\n"
    with Session(mounts, PY, code) as s:
        s.call("trap")
        got = s.call("names", ".", options={"files": {"p": "1", "l": "2"}})
        assert got["result"] == ["d", "l", "p"]
        assert s.call("get", "l")["result"] == "2"
        refused = s.call("names", ".", options={"files": {"d": "x"}})
        assert refused["status"] == "error" and "/workspace/d: Is a directory" in refused["error"]["message"]
        assert s.call("names", ".")["status"] == "success"


def test_files_beyond_the_workspace_limit(make_daemon):
    daemon = make_daemon(WORKSPACE_MB="4")
    with Session(daemon, PY, CODE[PY]) as s:
        got = s.call("names", ".", options={"files": {"big": "x" * (5 << 20)}})
        words = "File too large" if harness.JAIL == "subprocess" else "No space left"  # of one file, or of all
        assert got["status"] == "error" and words in got["error"]["message"], got
        assert s.call("names", ".")["result"] == []


def test_what_belongs_to_the_session_is_refused_in_a_call(mounts):
    with Session(mounts, PY, CODE[PY]) as s:
        for option in ({"mount": {}}, {"permissions": {}}, {"workdir": "/workspace/x"}, {"env": {}}):
            got = s.request("POST", "/call", json={"functionName": "names", "args": ["."], "options": option})
            assert got.status == 400 and f"options.{next(iter(option))}: is the session's" in got.text
        got = s.call("names", ".", options={"files": {"/data/x": "1"}})
        assert got["status"] == "error" and "when it was created" in got["error"]["message"]
        for bad in ({"files": 7}, {"files": {"../x": ""}}, {"reporting": {"includeChanges": 3}}, 5):
            got = s.request("POST", "/call", json={"functionName": "names", "args": ["."], "options": bad})
            assert got.status == 400, bad


def test_a_directory_of_the_session_takes_files(mounts):
    with Session(mounts, PY, CODE[PY], options={"files": {"/data/a": "1"}}) as s:
        got = s.call("names", "/data", options={"files": {"/data/b/c": "2", "x": "3"}})
        assert got["result"] == ["a", "b"] and got["files"] == EMPTY
        assert paths(s.call("put", "/data/b/c", "4")["files"]["modified"]) == ["/data/b/c"]


@pytest.mark.parametrize("language", [PY, JS, RB, PHP])
def test_a_mount_with_sync(mounts, language):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True, "modify": True, "delete": True}},
             "sync": {"mode": "batch"}}
    with Session(mounts, language, CODE[language], options={"mount": mount}) as s:
        assert s.call("get", "/data/a")["result"] == "1"
        got = s.call("put", "/data/b", "new")
        assert got["sync"]["synced"] == ["/data/b"] and open(path + "/b").read() == "new"
        got = s.call("put", "/data/a", "2")
        assert got["sync"]["synced"] == ["/data/a"] and open(path + "/a").read() == "2"
        got = s.call("drop", "/data/b")
        assert paths(got["files"]["deleted"]) == ["/data/b"] and os.listdir(path) == ["a"]
        assert s.call("get", "/data/a")["sync"]["synced"] == []


def test_a_mount_is_read_anew_when_the_session_restarts(mounts):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"modify": True}}, "sync": {"mode": "batch"}}
    with Session(mounts, PY, CODE[PY], options={"mount": mount, "files": {"mine": "x"}}) as s:
        s.call("put", "/data/a", "2")
        with open(path + "/later", "w") as f:
            f.write("3")
        os.chmod(path + "/later", 0o644)
        assert s.call("names", "/data")["result"] == ["a"]
        gone = s.call("leave")
        assert gone["session"]["restarted"] and "files" not in gone
        got = s.call("names", "/data")
        assert got["result"] == ["a", "later"] and got["files"] == EMPTY
        assert s.call("get", "/data/a")["result"] == "2" and s.call("get", "mine")["result"] == "x"
        s.reset("hard")
        assert s.call("names", "/data")["result"] == ["a", "later"]


def test_a_mount_that_goes_away_fails_the_restart_and_says_so(mounts):
    path = host_dir(mounts, a="1")
    with Session(mounts, PY, CODE[PY], options={"mount": {"dirs": {"/data": path}}}) as s:
        os.rename(path, path + ".gone")
        s.call("leave")
        got = s.call("names", "/data")
        assert got["status"] == "error" and got["error"]["type"] == "MountError"
        os.rename(path + ".gone", path)
        assert s.call("names", "/data")["result"] == ["a"]


def test_permissions_in_a_session(mounts):
    path = host_dir(mounts, a="1", secret="s")
    mount = {"dirs": {"/data": path}, "permissions": {"exclude": ["secret"]}}
    with Session(mounts, PY, CODE[PY], options={"mount": mount}) as s:
        assert s.call("names", "/data")["result"] == ["a"]
        got = s.call("put", "/data/a", "2")
        assert got["status"] == "success" and got["files"]["denied"] == [{"path": "/data/a", "operation": "modify"}]
        assert s.call("get", "/data/a")["result"] == "2"  # its own write, nobody else's
        assert s.call("get", "/data/a")["files"] == EMPTY
    assert open(path + "/a").read() == "1"
    mount["onPermissionDenied"] = "ignore"
    with Session(mounts, PY, CODE[PY], options={"mount": mount}) as s:
        assert s.call("put", "/data/a", "2")["files"] == EMPTY
    mount["onPermissionDenied"] = "throw"
    with Session(mounts, PY, CODE[PY], options={"mount": mount}) as s:
        got = s.call("put", "/data/a", "2")
        assert got["error"]["type"] == "PermissionDeniedError" and got["status"] == "error"
        assert got["files"]["denied"] == [{"path": "/data/a", "operation": "modify"}]
        assert s.call("get", "/data/a")["result"] == "1"
        assert s.call("put", "/tmp/t", "x")["status"] == "success"


def test_manual_sync_of_a_session_call(mounts):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"modify": True}}}
    with Session(mounts, PY, CODE[PY], options={"mount": mount}) as s:
        first = s.call("put", "/data/a", "2")
        second = s.call("put", "/data/a", "3")
        assert open(path + "/a").read() == "1"
        done = mounts.request("POST", "/v1/functions/sync", json={"callId": first["meta"]["callId"]})
        assert done.json()["synced"] == ["/data/a"] and open(path + "/a").read() == "2"
    done = mounts.request("POST", "/v1/functions/sync", json={"callId": second["meta"]["callId"]})  # the session is gone by now
    assert done.json()["synced"] == ["/data/a"] and open(path + "/a").read() == "3"


def test_events_of_a_sync_are_streamed(mounts):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"modify": True}}, "sync": {"mode": "batch"}}
    with Session(mounts, PY, CODE[PY], options={"mount": mount}) as s:
        events = list(s.stream("put", "/data/a", "2"))
    assert [event for event, _, _ in events] == ["beforeSync", "afterSync", "result"]
    assert events[-1][1]["sync"]["synced"] == ["/data/a"]


def test_a_mount_that_is_not_allowed_makes_no_session(mounts):
    for host in ("/etc", mounts.root + "/../etc", mounts.root + "/none"):
        refused = mounts.request("POST", "/v1/sessions", json={
            "language": PY, "code": CODE[PY], "options": {"mount": {"dirs": {"/data": host}}}})
        assert refused.status == 422 and refused.json()["status"] == "error"


def test_deleting_a_session_while_its_files_are_looked_at(mounts):
    code = CODE[PY] + """
def many(n):
    for i in range(n):
        open(f'f{i}', 'w').write('x' * 100000)
"""
    with Session(mounts, PY, code) as s:
        events = s.stream("many", 200)
        s.delete()  # wherever it is by now
        event, last, _ = list(events)[-1]
        assert event == "result" and last["status"] in ("success", "terminated")
