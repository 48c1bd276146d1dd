# SPDX-License-Identifier: MIT
"""Changes that go back to a mount: by request, with rules, undone, and told while it happens."""
import json
import os
import shutil
import tempfile

import pytest

import harness
from test_functions_call import PY, WRITE, call, host_dir

CHANGE = ("import os\ndef f():\n    open('/data/new', 'w').write('n')\n    open('/data/changed', 'w').write('after')\n"
          "    os.remove('/data/deleted')\n    open('/data/z/deep', 'w').write('d')")


@pytest.fixture(scope="module")
def mounts(make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    instance = make_daemon_module(MOUNT_ROOTS=root)
    instance.root = root
    return instance


def prepared(daemon):
    path = host_dir(daemon, changed="before", deleted="kept")
    os.mkdir(path + "/z")
    os.chmod(path + "/z", 0o777)
    return path


def content(path):
    found = {}
    for base, _, names in os.walk(path):
        for name in names:
            full = os.path.join(base, name)
            with open(full, encoding="utf-8") as f:
                found[os.path.relpath(full, path)] = f.read()
    return found


BEFORE = {"changed": "before", "deleted": "kept"}
AFTER = {"changed": "after", "new": "n", "z/deep": "d"}


def changed(daemon, path, **fields):
    mount = {"dirs": {"/data": path}, "permissions": WRITE, **fields}
    result = call(daemon, PY, CHANGE, options={"mount": mount})
    assert result["status"] == "success", result
    assert "sync" not in result
    return result["meta"]["callId"]


def sync(daemon, ident, **fields):
    return daemon.request("POST", "/v1/functions/sync", json={"callId": ident, **fields})


def events_of(response):
    assert response.status == 200 and response.headers["Content-Type"].startswith("text/event-stream"), response
    parts = [dict(line.split(": ", 1) for line in block.split("\n")) for block in response.text.split("\n\n") if block]
    return [(p["event"], json.loads(p["data"])) for p in parts]


@pytest.mark.parametrize("mode", [{}, {"sync": {"mode": "manual"}}])
def test_nothing_is_written_before_it_is_asked_for(mounts, mode):
    path = prepared(mounts)
    ident = changed(mounts, path, **mode)
    assert content(path) == BEFORE
    report = sync(mounts, ident).json()
    assert report["synced"] == ["/data/new", "/data/z/deep", "/data/changed", "/data/deleted"]
    assert (report["failed"], report["skipped"], report["rolledBack"]) == ([], [], False)
    assert content(path) == AFTER
    again = sync(mounts, ident)
    assert again.status == 404 and ident in again.json()["error_detail"]


def test_events_tell_what_happens(mounts):
    path = prepared(mounts)
    report = sync(mounts, changed(mounts, path)).json()
    assert [e["event"] for e in report["events"]] == ["beforeSync", "afterSync"] * 4
    after = report["events"][1]
    assert after == {"event": "afterSync", "path": "/data/new", "type": "create", "size": 1,
                     "realPath": path + "/new", "success": True}


def test_rules_of_the_sync(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path, sync={"mode": "manual", "rules": [{"pattern": "**", "state": "abort"}]})
    report = sync(mounts, ident).json()
    assert report["synced"] == [] and [e["event"] for e in report["events"]] == ["aborted"]
    report = sync(mounts, ident, allowAbort=False, rules=[{"pattern": "z/**", "state": "skip"}]).json()
    assert report["skipped"] == ["/data/z/deep"]
    assert content(path) == {"changed": "after", "new": "n"}


def test_abort_rules_need_to_be_allowed(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path)
    rules = [{"pattern": "changed", "state": "abort"}]
    report = sync(mounts, ident, rules=rules, allowAbort=False).json()
    assert content(path) == AFTER and "aborted" not in [e["event"] for e in report["events"]]


@pytest.mark.parametrize("how,left", [
    ("continue", {"changed": "after", "z/deep": "d"}),
    ("abort", {"changed": "before", "deleted": "kept"}),
    ("rollback", {"changed": "before", "deleted": "kept"}),
])
def test_what_an_error_means(mounts, how, left):
    path = prepared(mounts)
    ident = changed(mounts, path, sync={"onError": "abort"})
    os.mkdir(path + "/new")  # the first one cannot be written
    report = sync(mounts, ident, onError=how).json()
    assert [f["path"] for f in report["failed"]] == ["/data/new"] and report["failed"][0]["error"]
    assert report["rolledBack"] is (how == "rollback")
    names = [e["event"] for e in report["events"]]
    assert names[:3] == ["beforeSync", "syncError", "afterSync"] and report["events"][2]["success"] is False
    assert content(path) == left
    os.rmdir(path + "/new")
    assert sync(mounts, ident, onError=how).json()["failed"] == []  # kept until it succeeded
    assert content(path) == AFTER


def test_rollback_restores_deletions(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path)
    rules = [{"pattern": "deleted", "state": "continue"}]
    os.remove(path + "/deleted")
    os.mkdir(path + "/deleted")  # the last one cannot be removed
    report = sync(mounts, ident, onError="rollback", rules=rules).json()
    assert report["rolledBack"] is True and report["synced"] == []
    assert content(path) == {"changed": "before"}


SWAP = ("import os, shutil\ndef f():\n    os.remove('/data/file')\n    os.makedirs('/data/file/deep')\n"
        "    open('/data/file/deep/x', 'w').write('1')\n    open('/data/file/y', 'w').write('2')\n"
        "    shutil.rmtree('/data/dir')\n    open('/data/dir', 'w').write('3')\n    open('/data/z', 'w').write('4')")
SWAP_BEFORE = {"file": "f", "dir/a": "a", "dir/sub/b": "b"}


def swapped(daemon):
    path = host_dir(daemon, file="f")
    os.makedirs(path + "/dir/sub")
    for name in ("dir", "dir/sub"):
        os.chmod(f"{path}/{name}", 0o777)
    for name in ("dir/a", "dir/sub/b"):
        with open(f"{path}/{name}", "w", encoding="utf-8") as f:
            f.write(name[-1])
    mount = {"dirs": {"/data": path}, "permissions": WRITE}
    result = call(daemon, PY, SWAP, options={"mount": mount})
    assert result["status"] == "success", result
    return path, result["meta"]["callId"]


@pytest.mark.parametrize("how", ["continue", "abort", "rollback"])
def test_a_directory_takes_the_place_of_a_file_and_a_file_of_a_directory(mounts, how):
    path, ident = swapped(mounts)
    report = sync(mounts, ident, onError=how).json()
    assert report["failed"] == [] and report["rolledBack"] is False, report
    assert content(path) == {"file/deep/x": "1", "file/y": "2", "dir": "3", "z": "4"}


def test_what_cannot_be_replaced_stays(mounts):
    path, ident = swapped(mounts)
    with open(path + "/dir/other", "w", encoding="utf-8") as f:
        f.write("not ours")
    report = sync(mounts, ident, onError="continue").json()
    assert sorted(f["path"] for f in report["failed"]) == ["/data/dir", "/data/dir/a", "/data/dir/sub/b"], report
    assert "/data/dir/a" not in report["synced"] and "/data/file" in report["synced"]
    assert content(path) == {"file/deep/x": "1", "file/y": "2", "z": "4",
                             "dir/a": "a", "dir/sub/b": "b", "dir/other": "not ours"}


def test_rollback_puts_back_what_was_replaced(mounts):
    path, ident = swapped(mounts)
    os.mkdir(path + "/z")  # the last one cannot be written
    report = sync(mounts, ident, onError="rollback").json()
    assert report["rolledBack"] is True and report["synced"] == [], report
    assert content(path) == SWAP_BEFORE


def test_an_abort_undoes_what_was_written(mounts):
    path = prepared(mounts)
    report = sync(mounts, changed(mounts, path), onError="rollback",
                  rules=[{"pattern": "deleted", "state": "abort"}]).json()
    assert report["rolledBack"] is True and content(path) == BEFORE


def test_a_sync_can_be_listened_to(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path)
    events = events_of(mounts.request("POST", "/v1/functions/sync", json={"callId": ident},
                                      headers={"Accept": "text/event-stream"}))
    assert [name for name, _ in events] == ["beforeSync", "afterSync"] * 4 + ["result"]
    assert events[0][1]["path"] == "/data/new" and events[-1][1]["synced"][0] == "/data/new"
    assert [e for _, e in events[:-1]] == events[-1][1]["events"]
    assert content(path) == AFTER


def test_a_call_can_be_listened_to(mounts):
    path = prepared(mounts)
    rules = {"default": {"create": True, "delete": True}}
    mount = {"dirs": {"/data": path}, "permissions": rules, "sync": {"mode": "batch"}}
    body = {"language": PY, "code": CHANGE, "functionName": "f", "options": {"mount": mount}}
    events = events_of(mounts.request("POST", "/v1/functions/call", json=body, headers={"Accept": "text/event-stream"}))
    assert [name for name, _ in events] == ["beforeSync", "afterSync"] * 2 + ["permissionDenied", "beforeSync", "afterSync", "result"]
    result = events[-1][1]
    assert result["status"] == "success" and result["sync"]["events"] == [e for _, e in events[:-1]]
    assert [d["path"] for d in result["files"]["denied"]] == ["/data/changed"]


def test_any_call_can_be_a_stream(daemon):
    body = {"language": PY, "code": "def f(): return 1", "functionName": "f"}
    events = events_of(daemon.request("POST", "/v1/functions/call", json=body, headers={"Accept": "text/event-stream"}))
    assert [name for name, _ in events] == ["result"] and events[0][1]["result"] == 1
    refused = daemon.request("POST", "/v1/functions/call", json={"code": 1}, headers={"Accept": "text/event-stream"})
    assert refused.status == 400


def test_denied_changes_never_go_back(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path, permissions={"default": {"create": True}})
    report = sync(mounts, ident).json()
    assert report["synced"] == ["/data/new", "/data/z/deep"]
    assert [e["path"] for e in report["events"] if e["event"] == "permissionDenied"] == ["/data/changed", "/data/deleted"]
    assert content(path) == {**BEFORE, "new": "n", "z/deep": "d"}


@pytest.mark.parametrize("body,status", [
    ({}, 400), ({"callId": 1}, 400), ({"callId": "call_nobody"}, 404), ({"callId": "../etc"}, 404), ([], 400),
])
def test_bad_requests(mounts, body, status):
    response = mounts.request("POST", "/v1/functions/sync", json=body)
    assert response.status == status and response.json()["error_code"], response


def test_bad_rules_change_nothing(mounts):
    path = prepared(mounts)
    ident = changed(mounts, path)
    for fields in ({"onError": "maybe"}, {"rules": [{"state": "skip"}]}, {"rules": [{"pattern": "x", "state": "?"}]},
                   {"allowAbort": "yes"}):
        response = sync(mounts, ident, **fields)
        assert response.status == 400, response
    assert content(path) == BEFORE and sync(mounts, ident).status == 200


def test_only_so_many_are_kept(mounts):
    """64 of them; the oldest go first."""
    path = host_dir(mounts)
    code = "def f(): open('/data/x', 'w').write('1')"
    mount = {"dirs": {"/data": path}, "permissions": WRITE}
    ids = [call(mounts, PY, code, options={"mount": mount})["meta"]["callId"] for _ in range(66)]
    assert sync(mounts, ids[1]).status == 404
    assert sync(mounts, ids[2]).status == 200
    assert sync(mounts, ids[-1]).status == 200


def test_they_are_kept_for_a_while(make_daemon):
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    daemon = make_daemon(MOUNT_ROOTS=root, RETAIN_SECONDS=1)
    daemon.root = root
    path = prepared(daemon)
    ident = changed(daemon, path)
    harness.wait_until(lambda: sync(daemon, ident, onError="no such word").status == 404, "it is forgotten")
    assert content(path) == BEFORE


def has_file_rules():
    """Does the kernel have what the daemon keeps to its directories with?"""
    try:
        with open("/sys/kernel/security/lsm", encoding="ascii") as f:
            return "landlock" in f.read()
    except OSError:
        return None


def test_a_root_that_was_made_anew_is_named(make_daemon):
    """Its rules are about the directory that was there when the daemon started."""
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    daemon = make_daemon(MOUNT_ROOTS=root)
    daemon.root = root
    ident = changed(daemon, prepared(daemon))
    assert sync(daemon, ident).status == 200
    shutil.rmtree(root)
    os.mkdir(root)
    os.chmod(root, 0o777)
    path = prepared(daemon)
    said = sync(daemon, changed(daemon, path)).json()  # reading is no matter
    if content(path) == AFTER:
        assert not has_file_rules() and not said["failed"], said
        return
    assert content(path) == BEFORE
    assert {row["path"] for row in said["failed"]} >= {"/data/new"}, said
    for row in said["failed"]:
        assert "MOUNT_ROOTS" in row["error"] and "restart" in row["error"], row


def test_modes_that_forbid_it_are_no_wall(mounts):
    path = prepared(mounts)
    os.chmod(path, 0o555)
    said = sync(mounts, changed(mounts, path)).json()
    if harness.ROOT and not said["failed"]:
        pytest.skip("nothing is forbidden to this daemon's user")
    assert "Permission denied" in {row["error"] for row in said["failed"]}, said


def test_it_needs_the_secret(mounts):
    assert mounts.request("POST", "/v1/functions/sync", json={"callId": "x"}, headers={"Authorization": None}).status == 401


# ---- what is not there was not always deleted ----


def batch(daemon, path, code, inside="/data", **fields):
    options = {"mount": {"dirs": {inside: path}, "permissions": WRITE, "sync": {"mode": "batch"}}}
    options["files"] = fields.pop("files", {})
    return call(daemon, PY, code, options=options, **fields)


def test_a_call_that_ends_before_its_files_came_deletes_nothing(mounts):
    path = host_dir(mounts, **{f"f{i}": "x" * 200 for i in range(2000)})
    for timeout in (0.001, 0.01):
        result = batch(mounts, path, "def f():\n    while True: pass", timeout=timeout)
        assert result["status"] == "timeout"
        assert not result.get("files", {}).get("deleted"), result["files"]
    result = batch(mounts, path, "def f(): pass", files={"/data/f1/x": "in the way"})
    assert result["error"]["type"] == "StartError" and "files" not in result and "sync" not in result
    assert len(os.listdir(path)) == 2000 and os.path.getsize(path + "/f1999") == 200


def test_a_directory_that_cannot_be_read_is_not_empty(mounts):
    path = host_dir(mounts, a="x")
    os.mkdir(path + "/d")
    with open(path + "/d/kept", "w", encoding="utf-8") as f:
        f.write("k")
    os.chmod(path + "/d", 0o777)
    result = batch(mounts, path, "import os\ndef f():\n    os.chmod('/data/d', 0)")
    assert result["status"] == "success" and result["files"]["deleted"] == []
    assert content(path) == {"a": "x", "d/kept": "k"}


def test_nobody_looks_into_tmp(mounts):
    path = host_dir(mounts, a="x")
    refused = batch(mounts, path, "def f(): pass", inside="/tmp/m")["error"]
    assert refused["type"] == "ValueError" and "below /tmp" in refused["message"]
    result = call(mounts, PY, "def f():\n    return open('/tmp/t').read() + open('/tmp/m/a').read()",
                  options={"files": {"/tmp/t": "t"}, "mount": {"dirs": {"/tmp/m": path}, "permissions": WRITE}})
    assert result["result"] == "tx" and result["files"]["deleted"] == []
    assert sync(mounts, result["meta"]["callId"]).status in (200, 404) and content(path) == {"a": "x"}
