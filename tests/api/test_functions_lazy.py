# SPDX-License-Identifier: MIT
"""Mounts that are lent: files are there at once and read when they are opened; all else is as with eager."""
import json
import os
import socket
import stat
import tempfile

import harness
import pytest

from test_functions_call import C, JS, PHP, PY, RB, WRITE, call, host_dir
from test_functions_files import TRIED
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)
from test_wasm import needs_runtimes

GIB = 1 << 30


@pytest.fixture(scope="module")
def mounts(make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-lazy-")
    os.chmod(root, 0o777)
    harness.need(harness.ROOT, "only a service that was started as root can lend files")
    instance = make_daemon_module(MOUNT_ROOTS=root)
    instance.root = root
    result = call(instance, PY, "def f(): return 1", options=lazy(host_dir(instance)))
    harness.need(result["meta"]["loading"] == "lazy", result["meta"].get("loadingReason"))
    return instance


def lazy(path, inside="/data", mode="lazy", **more):
    loading = {"mode": mode, **more.pop("loading", {})}
    return {"mount": {"dirs": {inside: path}, "loading": loading, **more}}


def got(daemon, language, code, options, **fields):
    """The result of a call whose files were lent."""
    result = call(daemon, language, code, options=options, **fields)
    assert result["meta"]["loading"] == "lazy" and "loadingReason" not in result["meta"], result
    return result


# ---- reading ----

READ = {
    PY: "def f():\n    with open('/data/a.txt') as f:\n        return f.read()",
    JS: "function f() { return require('fs').readFileSync('/data/a.txt', 'utf8') }",
    RB: "def f\n  File.read('/data/a.txt')\nend",
    PHP: "function f() { return file_get_contents('/data/a.txt'); }",
}


@pytest.mark.parametrize("language", READ)
def test_a_file_is_read_when_it_is_opened(mounts, language):
    path = host_dir(mounts, **{"a.txt": "hello ünïcode\n"})
    result = got(mounts, language, READ[language], lazy(path))
    assert result["result"] == "hello ünïcode\n", result
    assert result["files"]["created"] == [] == result["files"]["modified"]


def test_a_file_larger_than_everything_is_there_at_once(mounts):
    """Nobody could copy it: 100 GiB of holes, in a workspace of some megabytes."""
    path = host_dir(mounts, small="1")
    with open(path + "/big", "wb") as f:
        f.write(b"begin")
        f.truncate(100 * GIB)
        f.seek(100 * GIB - 3)
        f.write(b"end")
    code = """
import os
def f():
    with open('/data/big', 'rb') as f:
        first = f.read(5).decode()
        f.seek(-3, 2)
        return [first, f.read().decode(), os.stat('/data/big').st_size]
"""
    result = got(mounts, PY, code, lazy(path))
    assert result["result"] == ["begin", "end", 100 * GIB], result
    assert result["files"] == {"created": [], "modified": [], "deleted": [], "denied": []}
    eager = call(mounts, PY, code, options=lazy(path, mode="eager"))
    assert eager["error"]["type"] == "MountError" and "more bytes than a workspace" in eager["error"]["message"]
    os.unlink(path + "/big")


def test_a_file_that_is_not_opened_is_not_read(mounts):
    """What is read is in the page cache afterwards, what is not is not."""
    path = host_dir(mounts, read="", other="")
    for name in ("read", "other"):
        with open(f"{path}/{name}", "wb") as f:
            f.write(os.urandom(1 << 20))
            f.flush()
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(path + "/other"):
        pytest.skip("this file system does not forget what it was written")
    result = got(mounts, PY, "def f():\n    return len(open('/data/read', 'rb').read())", lazy(path))
    assert result["result"] == 1 << 20, result
    assert resident(path + "/read") and not resident(path + "/other")


def resident(path):
    """Is any page of the file in memory?"""
    import ctypes
    import mmap
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        mapped = mmap.mmap(f.fileno(), size, mmap.MAP_PRIVATE)
    pages = (ctypes.c_ubyte * ((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    assert libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages) == 0, ctypes.get_errno()
    return any(page & 1 for page in pages)


def test_thousands_of_files(mounts):
    """More than can be copied, and more than a workspace may have of its own."""
    path = host_dir(mounts)
    for d in range(30):
        os.mkdir(f"{path}/{d}")
        for i in range(400):
            with open(f"{path}/{d}/{i}", "w", encoding="ascii") as f:
                f.write(f"{d}.{i}")
    code = """
import os
def f():
    names = sum(len(files) for _, _, files in os.walk('/data'))
    os.unlink('/data/3/7')
    open('/data/new', 'w').write('x')
    return [names, open('/data/29/399').read()]
"""
    result = got(mounts, PY, code, lazy(path, permissions=WRITE))
    assert result["result"] == [12000, "29.399"], result
    assert changes(result) == {"created": ["/data/new"], "deleted": ["/data/3/7"]}


# ---- what is seen ----

LIST = """
import os
def f():
    return sorted(os.path.join(d, n) for d, _, files in os.walk('/data') for n in files)
"""


def tree(daemon):
    path = host_dir(daemon, a="1", **{"b.log": "2", "c.csv": "3", ".hidden": "4", "empty": ""})
    os.makedirs(path + "/sub/deep")
    os.makedirs(path + "/bare/one")
    for name in ("sub/x.csv", "sub/deep/y.log", "sub/deep/z"):
        with open(f"{path}/{name}", "w", encoding="ascii") as f:
            f.write(name * 10)
    return path


SEEN = [
    {},
    {"loading": {"include": ["**/*.csv"]}},
    {"loading": {"maxFileSize": 50}},
    {"loading": {"maxTotalSize": 100}},
    {"permissions": {"exclude": ["*.log"]}},
    {"permissions": {"rules": [{"pattern": "sub/**", "deny": ["list"]}]}},
    {"permissions": {"rules": [{"pattern": "**/*.csv", "deny": ["read"]}]}},
    {"permissions": {"default": {"read": False}, "rules": [{"pattern": "sub/**", "allow": ["read"]}]}},
]


@pytest.mark.parametrize("more", SEEN, ids=range(len(SEEN)))
def test_the_same_is_seen_as_with_eager(mounts, more):
    path = tree(mounts)
    eager = call(mounts, PY, LIST, options=lazy(path, mode="eager", **json.loads(json.dumps(more))))
    result = got(mounts, PY, LIST, lazy(path, **json.loads(json.dumps(more))))
    if "maxTotalSize" not in str(more):  # which of them fit depends on the order of a directory
        assert result["result"] == eager["result"]
    assert len(result["result"]) == len(eager["result"]), (result, eager)
    assert result["files"] == eager["files"]


def test_links_special_files_and_what_we_may_not_read(mounts):
    """None of them is ever opened: a FIFO would wait, a link would lead out."""
    path = host_dir(mounts, a="1")
    outside = host_dir(mounts, secret="s")
    os.symlink("a", path + "/in")
    os.symlink(outside + "/secret", path + "/out")
    os.symlink("../" + os.path.basename(outside) + "/secret", path + "/out2")
    os.symlink(outside, path + "/dir")
    os.symlink("nowhere", path + "/dangling")
    os.mkfifo(path + "/fifo")
    os.mknod(path + "/device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path + "/socket")
    with open(path + "/private", "w", encoding="ascii") as f:
        f.write("root's")
    os.chmod(path + "/private", 0o600)
    code = """
import os
def f():
    return sorted([n, open('/data/' + n).read(), os.path.islink('/data/' + n)] for n in os.listdir('/data'))
"""
    for follow in (False, True):
        options = {"security": {"followSymlinks": follow}}
        eager = call(mounts, PY, code, options=lazy(path, mode="eager", **options))
        result = got(mounts, PY, code, lazy(path, **options))
        assert result.get("result") == eager.get("result") == [["a", "1", False], ["in", "1", False]][: 1 + follow], (result, eager)
    listening.close()


def test_one_file_with_two_names(mounts):
    code = """
def f():
    first = open('/data/b').read()
    open('/data/a', 'a').write('x')
    return [first, open('/data/a').read(), open('/data/b').read()]
"""
    both = []
    for mode in ("eager", "lazy"):
        path = host_dir(mounts, a="1")
        os.link(path + "/a", path + "/b")
        result = call(mounts, PY, code, options=lazy(path, mode=mode, permissions=WRITE))
        assert result["meta"]["loading"] == mode, result
        both.append((result["result"], picture(result)))
    assert both[0] == both[1] and both[0][0] == ["1", "1x", "1"]


def test_what_appears_later_is_not_seen_and_what_is_exchanged_is_not_followed(mounts):
    """The list was made before; a name on it that has become something else is no way to that."""
    path = host_dir(mounts, a="1", link="2", fifo="3", mine="4", gone="5", other="6")
    os.mkdir(path + "/d")
    with open(path + "/d/secret", "w", encoding="ascii") as f:
        f.write("7")
    secret = host_dir(mounts, secret="top secret")
    code = """
import os
def read(name):
    try:
        return open('/data/' + name).read()
    except OSError as e:
        return type(e).__name__
def look():
    return [sorted(os.listdir('/data')), {n: read(n) for n in ('a', 'link', 'fifo', 'mine', 'gone', 'other', 'd/secret')}]
"""
    made = session(mounts, code, lazy(path))
    for name in ("link", "fifo", "mine", "gone", "other", "d/secret"):
        os.unlink(f"{path}/{name}")
    os.rmdir(path + "/d")
    os.symlink(secret, path + "/d")
    os.symlink(secret + "/secret", path + "/link")
    os.mkfifo(path + "/fifo")
    for name, mode in (("mine", 0o600), ("other", 0o644), ("appeared", 0o644)):
        with open(f"{path}/{name}", "w", encoding="ascii") as f:
            os.fchmod(f.fileno(), mode)
            f.write("s")
    got = mounts.request("POST", f"/v1/sessions/{made}/call", json={"functionName": "look"}).json()
    names, read = got["result"]
    assert names == ["a", "d", "fifo", "gone", "link", "mine", "other"], got
    before = {"a": "1", "link": "2", "fifo": "3", "mine": "4", "gone": "5", "other": "6", "d/secret": "7"}
    for name, said in read.items():  # as it was while the kernel remembers that; no link, FIFO or file of root's
        assert said == before[name] or said.endswith("Error") or (name, said) == ("other", "s"), read
    assert read["a"] == "1"
    assert changes(got) == {}, got
    mounts.request("DELETE", f"/v1/sessions/{made}")


# ---- changing ----

def changes(result):
    return {kind: sorted(row["path"] for row in rows) for kind, rows in result["files"].items() if rows}


def picture(result):
    """What can be compared: times are the run's own."""
    rows = {}
    for kind, entries in result["files"].items():
        rows[kind] = sorted(json.dumps({k: v for k, v in row.items() if k != "timestamp"}, sort_keys=True)
                            for row in entries)
    return rows


PROGRAMS = {
    "nothing": "pass",
    "write": "w('a', 'new')",
    "the same again": "w('a', '1')",
    "opened for writing": "open('/data/a', 'r+').close()",
    "append": "open('/data/a', 'a').write('more')",
    "truncate": "os.truncate('/data/sub/x.csv', 3)",
    "emptied": "open('/data/a', 'w').close()",
    "filled": "w('empty', 'full')",
    "touched": "os.utime('/data/a', (1, 1)); os.chmod('/data/c.csv', 0o600)",
    "unlink": "os.unlink('/data/a'); os.unlink('/data/empty')",
    "unlink and again": "os.unlink('/data/a'); w('a', 'new')",
    "unlink and the same": "os.unlink('/data/a'); w('a', '1')",
    "create": "w('new', 'x'); os.mkdir('/data/d'); w('d/y', 'z')",
    "rename": "os.rename('/data/a', '/data/z')",
    "rename over": "os.rename('/data/a', '/data/c.csv')",
    "rename of a directory": "os.rename('/data/sub', '/data/moved')",
    "there and back": "os.rename('/data/sub', '/data/moved'); os.rename('/data/moved', '/data/sub')",
    "directories exchanged": "os.rename('/data/sub', '/data/t'); os.rename('/data/bare', '/data/sub');"
                             " os.rename('/data/t', '/data/bare')",
    "removed tree": "shutil.rmtree('/data/sub')",
    "removed and made again": "shutil.rmtree('/data/sub'); os.mkdir('/data/sub'); w('sub/x.csv', 'new')",
    "a directory for a file": "os.unlink('/data/a'); os.mkdir('/data/a'); w('a/b', 'x')",
    "a file for a directory": "shutil.rmtree('/data/bare'); w('bare', 'x')",
    "links": "os.link('/data/a', '/data/hard'); os.symlink('a', '/data/soft')",
    "copied": "shutil.copytree('/data/sub', '/data/copy')",
    "memory": "m = mmap.mmap(os.open('/data/sub/deep/z', os.O_RDWR), 0); m[0:3] = b'new'; m.flush()",
    "temporary": "w('t', 'x'); os.unlink('/data/t')",
    "in a hidden file": "w('.hidden', 'x'); w('.new', 'y')",
    "by a child": "subprocess.run(['sh', '-c', 'echo x >> /data/a; rm /data/sub/x.csv'], check=True)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_changes_as_with_eager(mounts, name):
    code = f"""
import mmap, os, shutil, subprocess
def w(name, text):
    with open('/data/' + name, 'w') as f:
        f.write(text)
def f():
    {PROGRAMS[name]}
"""
    both = []
    for mode in ("eager", "lazy"):
        path = tree(mounts)
        options = lazy(path, mode=mode, permissions=WRITE, sync={"mode": "batch"})
        options["reporting"] = {"includeContents": True}
        result = call(mounts, PY, code, options=options)
        assert result["status"] == "success" and result["meta"]["loading"] == mode, result
        both.append((picture(result), on_disk(path), result["sync"]["failed"]))
    assert both[0] == both[1]


def on_disk(path):
    rows = {}
    for at, _, files in os.walk(path):
        for name in files:
            with open(os.path.join(at, name), "rb") as f:
                rows[os.path.relpath(os.path.join(at, name), path)] = f.read()
    return rows


@pytest.mark.parametrize("denied", ["virtual", "ignore", "throw"])
@pytest.mark.parametrize("rules", [
    {},
    {"default": {"create": True}},
    {"default": {"modify": True}},
    {"default": {"delete": True}},
    {"rules": [{"pattern": "sub/**", "allow": "*"}]},
    {"rules": [{"pattern": "a", "allow": ["modify"]}, {"pattern": "sub/x.csv", "allow": ["delete"]}]},
], ids=range(6))
def test_the_same_is_allowed_as_with_eager(mounts, denied, rules):
    code = TRIED + """
def f():
    return [tried(write, '/data/a'), tried(write, '/data/c.csv', 'a'), tried(write, '/data/new'),
            tried(os.unlink, '/data/b.log'), tried(os.unlink, '/data/sub/x.csv'), tried(os.mkdir, '/data/d'),
            tried(write, '/data/sub/new'), tried(os.truncate, '/data/sub/deep/z', 1),
            tried(os.rename, '/data/sub/deep/y.log', '/data/sub/deep/w'), tried(open, '/data/c.csv')]
"""
    both = []
    for mode in ("eager", "lazy"):
        options = lazy(tree(mounts), mode=mode, permissions=rules, onPermissionDenied=denied)
        result = call(mounts, PY, code, options=options)
        assert result["meta"]["loading"] == mode, result
        error = {**result.get("error", {}), "stack": ""}
        both.append((result["status"], result.get("result"), error, picture(result)))
    assert both[0] == both[1]


def test_what_is_not_caught_is_the_error_of_the_call(mounts):
    options = lazy(tree(mounts), onPermissionDenied="throw")
    result = got(mounts, PY, "def f():\n    open('/data/a', 'w')", options)
    assert result["error"]["type"] == "PermissionDeniedError", result
    assert result["error"]["message"] == "Permission denied: modify on /data/a"


# ---- writing back ----

CHANGE = """
import os
def f():
    open('/data/a', 'w').write('changed')
    open('/data/new', 'w').write('new')
    os.unlink('/data/c.csv')
    os.unlink('/data/sub/x.csv')
"""


def test_a_rollback_restores_files_that_were_never_read(mounts):
    path = tree(mounts)
    os.chmod(path + "/sub", 0o555)  # the last deletion fails
    before = on_disk(path)
    result = got(mounts, PY, CHANGE, lazy(path, permissions=WRITE, sync={"mode": "batch", "onError": "rollback"}))
    assert result["sync"]["rolledBack"] is True and len(result["sync"]["failed"]) == 1, result
    assert on_disk(path) == before


def test_nothing_is_left_beside_after_a_sync(mounts):
    path = tree(mounts)
    result = got(mounts, PY, CHANGE, lazy(path, permissions=WRITE, sync={"mode": "batch", "onError": "rollback"}))
    os.chmod(path + "/sub", 0o777)
    after = on_disk(path)
    expected = {"/data/a", "/data/new", "/data/c.csv"}
    assert expected <= set(result["sync"]["synced"]) or result["sync"]["rolledBack"], result
    assert not [name for name in after if ".sandbox-" in name]


def test_changes_can_be_written_back_later(mounts):
    path = tree(mounts)
    os.chmod(path + "/sub", 0o777)
    result = got(mounts, PY, CHANGE, lazy(path, permissions=WRITE))
    before = on_disk(path)
    assert before["a"] == b"1"
    answer = mounts.request("POST", "/v1/functions/sync",
                            json={"callId": result["meta"]["callId"], "onError": "rollback"}).json()
    assert sorted(answer["synced"]) == ["/data/a", "/data/c.csv", "/data/new", "/data/sub/x.csv"], answer
    after = on_disk(path)
    assert after["a"] == b"changed" and after["new"] == b"new" and "c.csv" not in after
    assert set(after) == set(before) - {"c.csv", "sub/x.csv"} | {"new"}


def test_a_file_that_the_host_changes_meanwhile_is_nobodys_change(mounts):
    """Untouched inside: it is not reported, and never written back."""
    path = host_dir(mounts, a="1", b="2")
    code = "def f():\n    open('/data/b', 'w').write('mine')"
    options = lazy(path, permissions=WRITE)
    result = got(mounts, PY, code, options)
    with open(path + "/a", "w", encoding="ascii") as f:
        f.write("the host's")
    mounts.request("POST", "/v1/functions/sync", json={"callId": result["meta"]["callId"]})
    assert on_disk(path) == {"a": b"the host's", "b": b"mine"}


# ---- where ----

@pytest.mark.parametrize("inside", ["/workspace/in", "/workspace", "/data/far/below", "/srv/x"])
def test_it_can_be_anywhere(mounts, inside):
    path = host_dir(mounts, a="1")
    code = f"def f():\n    open('{inside}/new', 'w').write('x')\n    return open('{inside}/a').read()"
    result = got(mounts, PY, code, lazy(path, inside=inside, permissions=WRITE))
    assert result["result"] == "1", result
    assert changes(result) == {"created": [inside + "/new"]}


def test_several_of_them_and_given_files(mounts):
    one, two = host_dir(mounts, a="1"), host_dir(mounts, a="2")
    options = {"mount": {"dirs": {"/one": one, "/workspace/two": two}, "loading": {"mode": "lazy"}},
               "files": {"/one/given": "g", "/workspace/own": "o", "/one/a": "hidden by the mount's"}}
    code = """
def f():
    return [open(p).read() for p in ('/one/a', '/workspace/two/a', '/one/given', '/workspace/own')]
"""
    eager = json.loads(json.dumps(options))
    eager["mount"]["loading"]["mode"] = "eager"
    assert got(mounts, PY, code, options)["result"] == ["1", "2", "g", "o"]
    assert call(mounts, PY, code, options=eager)["result"] == ["1", "2", "g", "o"]


def test_nobody_inside_can_reach_what_is_behind(mounts):
    path = host_dir(mounts, a="1", secret="s")
    code = """
import os
def f():
    shown = [line.split()[:3] for line in open('/proc/mounts') if ' /data ' in line]
    found = []
    for top in ('/mnt', '/data', '/workspace', '/tmp', '/run', '/var', '/opt', '/srv'):
        for d, dirs, files in os.walk(top):
            found += [os.path.join(d, n) for n in files + dirs if n in ('secret', '.lazy', 'upper', 'u', 'w')]
    names = []
    try:
        names = os.listxattr('/data/a')
        os.setxattr('/data/a', 'trusted.overlay.redirect', b'/secret')
    except OSError as e:
        return [found, names, type(e).__name__, len(shown)]
"""
    result = got(mounts, PY, code, lazy(path, permissions={"exclude": ["secret"]}))
    assert result["result"] == [[], [], "PermissionError", 1], result


def test_what_is_written_counts(mounts):
    """A lent file takes no room until it is written to; then all of it does."""
    path = host_dir(mounts)
    with open(path + "/big", "wb") as f:
        for _ in range(300):
            f.write(os.urandom(1 << 20))
    code = """
def f():
    n = len(open('/data/big', 'rb').read(1000))
    try:
        open('/data/big', 'r+b').write(b'x')
    except OSError as e:
        return [n, e.strerror]
"""
    result = got(mounts, PY, code, lazy(path, permissions=WRITE))
    os.unlink(path + "/big")
    assert result["result"] == [1000, "No space left on device"], result


# ---- sessions ----

def session(daemon, code, options):
    made = daemon.request("POST", "/v1/sessions", json={"language": PY, "code": code, "options": options})
    assert made.status in (200, 201), made
    return made.json()["id"]


def test_a_session_reads_and_changes(mounts):
    path = tree(mounts)
    os.chmod(path + "/sub", 0o777)
    code = """
import os
def read(name):
    return open('/data/' + name).read()
def write(name, text):
    open('/data/' + name, 'w').write(text)
def remove(name):
    os.unlink('/data/' + name)
def rename(a, b):
    os.rename('/data/' + a, '/data/' + b)
"""
    for mode in ("eager", "lazy"):
        options = {**lazy(path, mode=mode, permissions=WRITE)}
        at = f"/v1/sessions/{session(mounts, code, options)}"

        def turn(name, *args, at=at):
            got = mounts.request("POST", at + "/call", json={"functionName": name, "args": args}).json()
            assert got["status"] == "success", got
            return got

        first = turn("read", "a")
        assert first["result"] == "1" and changes(first) == {}, first
        assert first["meta"]["loading"] == mode, first
        assert changes(turn("write", "a", "2")) == {"modified": ["/data/a"]}
        assert changes(turn("write", "a", "2")) == {}
        assert changes(turn("read", "c.csv")) == {}
        assert changes(turn("remove", "c.csv")) == {"deleted": ["/data/c.csv"]}
        assert changes(turn("rename", "sub", "moved")) == {
            "created": ["/data/moved/deep/y.log", "/data/moved/deep/z", "/data/moved/x.csv"],
            "deleted": ["/data/sub/deep/y.log", "/data/sub/deep/z", "/data/sub/x.csv"]}
        brought = mounts.request("POST", at + "/call", json={
            "functionName": "read", "args": ["given"], "options": {"files": {"/data/given": "g"}}}).json()
        assert brought["result"] == "g" and changes(brought) == {}, brought
        mounts.request("DELETE", at)


@needs_runtimes
@pytest.mark.parametrize("language", [PY, RB, PHP], ids="{}-wasm".format)
def test_a_runtime_in_webassembly(wasm_daemon, language):
    harness.need(harness.ROOT, "only a service that was started as root can lend files")
    path = host_dir(wasm_daemon, **{"a.txt": "hello"})
    result = got(wasm_daemon, language, READ[language], lazy(path), engine="wasm")
    assert result["result"] == "hello", result


def test_a_session_rolls_back_what_it_never_read(mounts):
    path = tree(mounts)
    os.chmod(path + "/sub", 0o555)  # the last deletion fails
    before = on_disk(path)
    at = "/v1/sessions/" + session(mounts, CHANGE, lazy(path, permissions=WRITE,
                                                        sync={"mode": "batch", "onError": "rollback"}))
    result = mounts.request("POST", at + "/call", json={"functionName": "f"}).json()
    mounts.request("DELETE", at)
    assert result["sync"]["rolledBack"] is True and len(result["sync"]["failed"]) == 1, result
    assert on_disk(path) == before


# ---- where it cannot be ----

def test_a_compiler_gets_all_files(mounts):
    path = host_dir(mounts, **{"m.h": "#define M 7\n"})
    result = call(mounts, C, '#include "/data/m.h"\nint f(void) { return M; }', options=lazy(path))
    assert result["result"] == 7 and result["meta"]["loading"] == "eager", result
    assert "compiler" in result["meta"]["loadingReason"]


@pytest.mark.parametrize("owner, group, mode", [(65534, 0, 0o600), (0, 65534, 0o640), (65534, 65534, 0o600)])
def test_what_only_the_service_may_read(mounts, owner, group, mode):
    """The service runs as nobody and could have copied it."""
    path = host_dir(mounts, a="1")
    os.mkdir(path + "/d")
    for name in (path + "/d", path + "/a"):
        os.chown(name, owner, group)
    with open(path + "/d/b", "w", encoding="ascii") as f:
        f.write("2")
    os.chmod(path + "/a", mode)
    os.chmod(path + "/d", mode | 0o110)
    code = "def f():\n    return open('/data/a').read() + open('/data/d/b').read()"
    assert got(mounts, PY, code, lazy(path))["result"] == "12"


def test_a_mount_below_tmp_is_copied(mounts):
    path = host_dir(mounts, a="1")
    result = call(mounts, PY, "def f():\n    return open('/tmp/x/a').read()", options=lazy(path, inside="/tmp/x"))
    assert result["result"] == "1" and result["meta"]["loading"] == "eager", result
    assert "/tmp" in result["meta"]["loadingReason"]


def test_mounts_in_each_other_are_copied(mounts):
    one, two = host_dir(mounts, a="1"), host_dir(mounts, b="2")
    mount = {"dirs": {"/data": one, "/data/two": two}, "loading": {"mode": "lazy"}}
    code = "import os\ndef f():\n    return sorted(os.listdir('/data')) + os.listdir('/data/two')"
    result = call(mounts, PY, code, options={"mount": mount})
    assert result["result"] == ["a", "two", "b"] and result["meta"]["loading"] == "eager", result
    assert "inside another" in result["meta"]["loadingReason"]


def test_without_privilege_files_are_copied(make_daemon, programs):  # noqa: F811
    root = tempfile.mkdtemp(prefix="sbx-lazy-")
    os.chmod(root, 0o777)
    instance = make_daemon(binary=programs / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic",
                           MOUNT_ROOTS=root)
    instance.root = root
    path = host_dir(instance, a="1")
    result = call(instance, PY, "def f():\n    return open('/data/a').read()", options=lazy(path))
    assert result["result"] == "1" and result["meta"]["loading"] == "eager", result
    assert "root" in result["meta"]["loadingReason"]
