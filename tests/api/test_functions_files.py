# SPDX-License-Identifier: MIT
"""Files of function calls: what rules forbid fails inside, mounts as root and as an ordinary user."""
import os
import tempfile

import pytest

from test_functions_call import JS, PHP, PY, RB, WRITE, call, error, host_dir, value
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)

C = "c"


@pytest.fixture(scope="module", params=["root", "rootless"])
def mounts(request, make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    if request.param == "root":
        instance = make_daemon_module(MOUNT_ROOTS=root)
    else:
        place = request.getfixturevalue("programs")
        instance = make_daemon_module(binary=place / "sandbox-executor", user=NOBODY, ISOLATION_LEVEL="basic",
                                      MOUNT_ROOTS=root)
    instance.root = root
    return instance


# Tells what the kernel said of something that was tried.
TRIED = """
import errno, os
def tried(act, *a):
    try:
        act(*a)
        return 'ok'
    except OSError as e:
        return errno.errorcode[e.errno]
def write(path, mode='w'):
    with open(path, mode) as f:
        f.write('new')
"""

# Tries every way to change something, by path.
TRIES = TRIED + """
def f(acts):
    table = {'write': write, 'append': lambda p: write(p, 'a'), 'unlink': os.unlink, 'mkdir': os.mkdir,
             'truncate': lambda p: os.truncate(p, 0), 'link': lambda p: os.link(p, p + '.l'),
             'symlink': lambda p: os.symlink('x', p), 'mkfifo': os.mkfifo, 'rmdir': os.rmdir,
             'rename': lambda p: os.rename(p, p + '.r'), 'chmod': lambda p: os.chmod(p, 0o777)}
    return [tried(table[a], p) for a, p in acts]
"""


def tries(daemon, options, acts):
    result = call(daemon, PY, TRIES, args=[acts], options=options)
    return result, [(*act, said) for act, said in zip(acts, result.get("result") or [])]


def refused(rows):
    return [row for row in rows if row[2] != "ok"]


def test_a_mount_that_may_only_be_read(mounts):
    path = host_dir(mounts, a="1")
    os.mkdir(path + "/d")
    acts = [["write", "/data/a"], ["append", "/data/a"], ["truncate", "/data/a"], ["unlink", "/data/a"],
            ["rename", "/data/a"], ["link", "/data/a"], ["write", "/data/new"], ["mkdir", "/data/e"],
            ["symlink", "/data/l"], ["mkfifo", "/data/p"], ["rmdir", "/data/d"], ["write", "/data/d/x"],
            ["chmod", "/data/a"], ["chmod", "/data"], ["write", "/data/a"], ["write", "/data/new"], ["unlink", "/data/a"]]
    mount = {"dirs": {"/data": path}, "onPermissionDenied": "throw"}
    result, rows = tries(mounts, {"mount": mount}, acts)
    assert result["status"] == "success", result
    assert [row for row in rows if row[2] not in ("EACCES", "EPERM", "EROFS")] == [
        ("chmod", "/data/a", "ok"), ("chmod", "/data", "ok")]
    assert result["files"] == {"created": [], "modified": [], "deleted": [], "denied": []}


def test_what_is_allowed_works_beside_it(mounts):
    path = host_dir(mounts, a="1", b="2", c="3")
    os.mkdir(path + "/out")
    rules = [{"pattern": "out/**", "allow": "*"}, {"pattern": "b", "allow": ["modify"]}]
    mount = {"dirs": {"/data": path}, "permissions": {"rules": rules}, "onPermissionDenied": "throw"}
    acts = [["write", "/data/out/x"], ["append", "/data/out/x"], ["mkdir", "/data/out/d"], ["write", "/data/out/d/y"],
            ["unlink", "/data/out/d/y"], ["rmdir", "/data/out/d"], ["write", "/data/b"], ["truncate", "/data/b"],
            ["write", "/tmp/t"], ["unlink", "/tmp/t"], ["write", "/dev/null"],
            ["write", "/data/a"], ["unlink", "/data/b"], ["write", "/data/z"]]
    result, rows = tries(mounts, {"mount": mount}, acts)
    assert refused(rows) == [("write", "/data/a", "EACCES"), ("unlink", "/data/b", "EACCES"),
                             ("write", "/data/z", "EACCES")]
    assert [c["path"] for c in result["files"]["created"]] == ["/data/out/x"]
    assert [c["path"] for c in result["files"]["modified"]] == ["/data/b"]


def test_names_the_kernel_cannot_tell_apart_are_found_afterwards(mounts):
    path = host_dir(mounts)
    rules = [{"pattern": "*.txt", "allow": ["create"]}]
    mount = {"dirs": {"/data": path}, "permissions": {"rules": rules}, "onPermissionDenied": "throw"}
    got, _ = tries(mounts, {"mount": mount}, [["write", "/data/a.txt"], ["write", "/data/a.bin"]])
    assert got["status"] == "error" and got["error"]["type"] == "PermissionDeniedError"
    assert got["files"]["denied"] == [{"path": "/data/a.bin", "operation": "create"}]
    assert [c["path"] for c in got["files"]["created"]] == ["/data/a.txt"]


def test_create_without_modify(mounts):
    path = host_dir(mounts, old="1")
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True}}, "onPermissionDenied": "throw"}
    _, rows = tries(mounts, {"mount": mount}, [["write", "/data/old"], ["write", "/data/new"], ["append", "/data/new"]])
    assert refused(rows) == [("write", "/data/old", "EACCES")]


def test_permissions_without_a_mount(mounts):
    options = {"files": {"a": "1"}, "permissions": {"default": {"modify": True}},
               "mount": {"onPermissionDenied": "throw"}}
    _, rows = tries(mounts, options, [["write", "a"], ["write", "b"], ["unlink", "a"], ["write", "/tmp/t"]])
    assert refused(rows) == [("write", "b", "EACCES"), ("unlink", "a", "EACCES")]


def test_virtual_and_ignore_let_a_run_see_its_own_writes(mounts):
    path = host_dir(mounts, a="1")
    acts = [["write", "/data/a"], ["write", "/data/b"]]
    for how, denied in (("virtual", [("/data/a", "modify"), ("/data/b", "create")]), ("ignore", [])):
        mount = {"dirs": {"/data": path}, "onPermissionDenied": how, "sync": {"mode": "batch"}}
        result, rows = tries(mounts, {"mount": mount}, acts)
        assert result["status"] == "success" and refused(rows) == []
        assert [(d["path"], d["operation"]) for d in result["files"]["denied"]] == denied
    assert os.listdir(path) == ["a"] and open(path + "/a", encoding="utf-8").read() == "1"


THROWN = [
    (PY, "def f():\n    open('/data/a', 'w')", "modify", "/data/a", "line 2"),
    (PY, "import os\ndef f():\n    os.mkdir('/data/x')", "create", "/data/x", "line 3"),
    (PY, "import os\ndef f():\n    os.chdir('/data')\n    open('rel', 'x')", "create", "/data/rel", "line 4"),
    (JS, "const fs = require('fs');\nfunction f() { fs.unlinkSync('/data/a') }", "modify", "/data/a", "user_code.js:2"),
    (JS, "function f() { require('fs').writeFileSync('/data/b', '') }", "create", "/data/b", "user_code.js:1"),
    (RB, "def f\n  File.write('/data/a', 'x')\nend", "modify", "/data/a", "user_code.rb:2"),
    (RB, "def f\n  File.rename('/data/a', '/data/b')\nend", "create", "/data/b", "user_code.rb:2"),
]


@pytest.mark.parametrize("language,code,operation,at,line", THROWN, ids=[f"{t[0]}-{i}" for i, t in enumerate(THROWN)])
@pytest.mark.parametrize("mode", ["inline", "stdin", "file"])
def test_an_uncaught_refusal_is_the_calls_error(mounts, language, code, operation, at, line, mode):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "onPermissionDenied": "throw"}
    result = call(mounts, language, code, argsMode=mode, options={"mount": mount})
    assert result["status"] == "error" and result["error"]["type"] == "PermissionDeniedError", result
    assert result["error"]["message"] == f"Permission denied: {operation} on {at}"
    assert line in result["error"]["stack"]
    assert result["files"]["denied"] == [{"path": at, "operation": operation}]


def test_programs_cannot_blame_the_rules(mounts):
    """A path in a forged error counts only where the rules agree."""
    path = host_dir(mounts, a="1")
    code = "def f():\n    raise PermissionError(13, 'no', '/data/out/x')"
    rules = {"rules": [{"pattern": "out/**", "allow": "*"}]}
    mount = {"dirs": {"/data": path}, "permissions": rules, "onPermissionDenied": "throw"}
    result = call(mounts, PY, code, options={"mount": mount})
    assert result["error"]["type"] == "PermissionError" and result["files"]["denied"] == []


def test_the_fence_is_for_every_language(mounts):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "onPermissionDenied": "throw"}
    c = "#include <stdio.h>\nint f(void) { return fopen(\"/data/a\", \"w\") != NULL; }"
    assert value(mounts, C, c, options={"mount": mount}) == 0
    php = "function f() { return [@file_put_contents('/data/a', 'x'), file_put_contents('/tmp/a', 'x')]; }"
    result = call(mounts, PHP, php, options={"mount": mount})
    assert result["result"] == [False, 1] and result["files"]["created"] == [], result
    js = "import fs from 'fs';\nexport async function f() { try { fs.writeFileSync('/data/a', '') } catch (e) { return e.code } }"
    result = call(mounts, JS, js, options={"mount": mount})
    assert result["result"] == "EACCES" and result["files"]["created"] == [], result


def test_what_a_program_starts_is_inside_the_fence(mounts):
    path = host_dir(mounts, a="1")
    mount = {"dirs": {"/data": path}, "onPermissionDenied": "throw"}
    code = "import subprocess\ndef f():\n    return subprocess.run(['sh', '-c', 'chmod 777 /data; >/data/a || >/data/b']).returncode"
    assert value(mounts, PY, code, options={"mount": mount}) != 0


def test_mounts_go_in_and_come_back(mounts):
    path = host_dir(mounts, a="1", gone="2")
    code = ("import os\ndef f():\n    got = open('/data/a').read()\n    open('/data/a', 'w').write('3')\n"
            "    open('/data/n/m', 'w').write('4')\n    os.remove('/data/gone')\n    return got")
    os.mkdir(path + "/n")
    os.chmod(path + "/n", 0o777)
    mount = {"dirs": {"/data": path}, "permissions": WRITE, "sync": {"mode": "batch"}}
    result = call(mounts, PY, code, options={"mount": mount})
    assert result["result"] == "1" and result["sync"]["failed"] == [], result
    assert result["sync"]["synced"] == ["/data/n/m", "/data/a", "/data/gone"]
    assert sorted(os.listdir(path)) == ["a", "n"] and os.listdir(path + "/n") == ["m"]


def test_two_mounts_and_a_working_directory(mounts):
    one, two = host_dir(mounts, a="1"), host_dir(mounts, b="2")
    code = "import os\ndef f():\n    return [os.getcwd(), os.listdir('/one'), os.listdir('/srv/two')]"
    options = {"workdir": "/app/here", "mount": {"dirs": {"/one": one, "/srv/two": two}}}
    assert value(mounts, PY, code, options=options) == ["/app/here", ["a"], ["b"]]


def test_mounts_of_others_are_refused(mounts):
    got = error(mounts, PY, "def f(): pass", options={"mount": {"dirs": {"/data": "/etc"}}})
    assert "MOUNT_ROOTS" in got["message"]


def test_c_includes_files_from_anywhere(mounts):
    path = host_dir(mounts, **{"m.h": "#define M 1\n"})
    code = '#include "/data/m.h"\n#include "own.h"\nint f(void) { return M + OWN; }'
    options = {"workdir": "/app", "files": {"own.h": "#define OWN 2\n"}, "mount": {"dirs": {"/data": path}}}
    for own in (2, 5):
        options["files"]["own.h"] = f"#define OWN {own}\n"
        assert value(mounts, C, code, options=options) == 1 + own


FROM_A_FILE = {
    "include": '#include "own.h"\nint f(void) { return OWN; }',
    "import": '#import "own.h"\nint f(void) { return OWN; }',
}


@pytest.mark.parametrize("how", FROM_A_FILE)
def test_what_is_compiled_depends_on_every_file_that_the_compiler_reads(mounts, how):
    """Compiled code is kept by what it was made of; a file that is not counted would give the result of another call."""
    for own in (2, 5):
        files = {"own.h": f"#define OWN {own}\n"}
        assert value(mounts, C, FROM_A_FILE[how], options={"files": files}) == own


def test_a_file_that_the_code_does_not_name_is_not_there_for_the_compiler(mounts):
    """So it need not be counted: this spelling of .incbin finds nothing, also when another caller compiled it before."""
    code = 'asm(".globl blob\\nblob: .in" "cbin \\"own.bin\\"");\nextern const char blob[];\nint f(void) { return blob[0]; }'
    for own in (2, 5):
        assert error(mounts, C, code, options={"files": {"own.bin": chr(own)}})["type"] == "CompileError"


def test_what_is_compiled_depends_on_the_working_directory(mounts):
    files = {"/app/d1/n.h": "#define N 1\n", "/app/d2/n.h": "#define N 2\n"}
    for number in (1, 2):
        options = {"workdir": f"/app/d{number}", "files": files}
        assert value(mounts, C, '#include <n.h>\nint f(void) { return N; }', options=options) == number


def test_the_result_says_how_a_mount_was_loaded(mounts):
    path = host_dir(mounts, a="1", b="2")
    code = "import os\ndef f():\n    return sorted(os.listdir('/data'))"
    lent = call(mounts, PY, code, options={"mount": {"dirs": {"/data": path}, "loading": {"mode": "lazy"}}})["meta"]
    lazy = "eager" if "loadingReason" in lent else "lazy"
    for mode, really, names in (("eager", "eager", ["a", "b"]), ("lazy", lazy, ["a", "b"]),
                                ("explicit", "explicit", ["a"])):
        loading = {"mode": mode, "include": ["a"]} if mode == "explicit" else {"mode": mode}
        got = call(mounts, PY, code, options={"mount": {"dirs": {"/data": path}, "loading": loading}})
        assert got["result"] == names and got["meta"]["loading"] == really
    assert "loading" not in call(mounts, PY, "def f():\n    return 1")["meta"]


@pytest.mark.parametrize("begin", [
    "require('fs').writeFile('left', 'hello', () => {})",
    "const s = require('fs').createWriteStream('left'); s.write('hel'); s.end('lo')",
])
def test_files_that_javascript_does_not_wait_for_are_written(daemon, begin):
    result = call(daemon, JS, f"function f() {{ {begin}; return 1 }}")
    assert (result["status"], result["result"]) == ("success", 1)
    assert [(f["path"], f["content"]) for f in result["files"]["created"]] == [("/workspace/left", "hello")]


def test_a_rejection_that_nobody_hears_fails_the_call(daemon):
    result = call(daemon, JS, "function f() { Promise.reject(new Error('unheard')); return 1 }")
    assert (result["status"], result["error"]["message"]) == ("error", "unheard")


# ---- directories on the way to what a rule shows ----

WALK = "import os\ndef f():\n    return sorted(os.path.join(d, x) for d, ds, fs in os.walk('/m') for x in ds + fs)"


def tree(mounts, *paths):
    root = host_dir(mounts)
    for path in paths:
        os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
        if not path.endswith("/"):
            with open(f"{root}/{path}", "w", encoding="ascii") as f:
                f.write("x")
    for here, _, _ in os.walk(root):
        os.chmod(here, 0o777)
    return root


NOTHING = {"read": False, "list": False}
SHOWN = [
    ({"default": NOTHING, "rules": [{"pattern": "logs/**/*.log", "allow": ["read", "list"]}]},
     ["logs", "logs/app.log", "logs/deep", "logs/deep/er", "logs/deep/er/b.log"]),
    ({"default": NOTHING, "rules": [{"pattern": "**/*.log", "allow": "*"}]},
     ["empty.log", "logs", "logs/app.log", "logs/deep", "logs/deep/er", "logs/deep/er/b.log"]),
    ({"default": NOTHING, "rules": [{"pattern": "/m/logs/deep/er/b.log", "allow": ["read", "list"]}]},
     ["logs", "logs/deep", "logs/deep/er", "logs/deep/er/b.log"]),
    ({"default": NOTHING, "rules": [{"pattern": "logs/deep", "allow": ["read", "list"]}]}, ["logs", "logs/deep"]),
    # What the defaults allow in a directory that may not be seen stays hidden.
    ({"rules": [{"pattern": "logs", "deny": "*"}, {"pattern": "**/b.log", "allow": ["read", "list"]}]},
     ["empty.log", "logs", "logs/deep", "logs/deep/er", "logs/deep/er/b.log", "other", "other/x.txt"]),
    ({"rules": [{"pattern": "logs", "deny": "*"}, {"pattern": "**/b.log", "allow": ["modify"]}]},
     ["empty.log", "other", "other/x.txt"]),
    ({"rules": [{"pattern": "**/*.log", "allow": ["read", "list"]}], "exclude": ["logs"]},
     ["empty.log", "other", "other/x.txt"]),
]


@pytest.mark.parametrize("mode", ["eager", "lazy"])
@pytest.mark.parametrize("rules,shown", SHOWN, ids=range(len(SHOWN)))
def test_a_rule_opens_the_directories_on_the_way(mounts, rules, shown, mode):
    root = tree(mounts, "logs/app.log", "logs/app.txt", "logs/deep/er/b.log", "logs/deep/none/c.txt",
                "other/x.txt", "empty.log")
    got = value(mounts, PY, WALK, options={"mount": {"dirs": {"/m": root}, "loading": {"mode": mode},
                                                     "permissions": rules}})
    assert got == [f"/m/{name}" for name in shown]
