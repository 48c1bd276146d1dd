# SPDX-License-Identifier: MIT
"""The engine 'wasm': the call vectors once more, modules of the caller's own, and the second wall."""
import base64
import os
import pathlib
import random
import subprocess
import tempfile

import pytest

import harness
import vector_runner as vectors

TOP = pathlib.Path(__file__).resolve().parents[2]
RUNTIMES = harness.WASM_RUNTIMES
LONG = os.environ.get("SBX_LONG") == "1"
VECTORS = vectors.load("functions_examples.json")["vectors"]
COMPILED = ("c", "cpp", "clang", "clangpp", "c++")

HAS_RUNTIMES = subprocess.run([TOP / "tools" / "fetch-wasm", "--check"], check=False).returncode == 0
HAS_COMPILER = all(map(os.path.exists, (
    "/usr/bin/clang", "/usr/bin/wasm-ld", "/usr/lib/wasm32-wasi/libc.a", "/usr/lib/wasm32-wasi/libc++.a")))
needs_runtimes = pytest.mark.skipif(not HAS_RUNTIMES, reason="no runtimes: tools/fetch-wasm")
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="no compiler: tools/install-deps wasm")
is_long = pytest.mark.skipif(not LONG, reason="SBX_LONG=1")

# Always run; the others with SBX_LONG. Chosen for what they touch: files, mounts, permissions, modes.
QUICK = {
    "py-workdir-file", "py-nonserialisable", "mount-sync-truncate", "js-export-named", "js-body-mode",
    "js-throw-custom",
}


@pytest.fixture(scope="module")
def daemon(wasm_daemon):
    return wasm_daemon


def call(daemon, **body):
    response = daemon.request("POST", "/v1/functions/call", json=body)
    assert response.status == 200, response
    return response.json()


def wasm(daemon, language, code, function="f", args=(), **more):
    return call(daemon, language=language, code=code, functionName=function, args=list(args), engine="wasm",
                **more)


# ---- the vectors ----


def quick_vectors():
    """Those named above, and the first two of every language."""
    seen = {}
    for vector in VECTORS:
        language = vector["language"]
        seen[language] = seen.get(language, 0) + 1
        if seen[language] <= 2 or vector["id"] in QUICK:
            yield vector


def is_runnable(vector):
    if vector["language"] in COMPILED:
        return HAS_COMPILER
    return HAS_RUNTIMES


def run_vector(daemon, vector, mode=None):
    if not is_runnable(vector):
        pytest.skip("neither runtimes nor compiler: tools/fetch-wasm, tools/install-deps wasm")
    host = None
    if "mount" in vector:
        host = tempfile.mkdtemp(dir=daemon.root)
        os.chmod(host, 0o777)
        vectors.seed_host(vector, host)
    result = call(daemon, **{**vectors.request_of(vector, mode, host), "engine": "wasm"})
    problems = vectors.check(result, vector["expect"], host)
    assert not problems, (problems, result)


CHOSEN = VECTORS if LONG else list(quick_vectors())


@pytest.mark.parametrize("vector", CHOSEN, ids=[v["id"] for v in CHOSEN])
def test_vector(daemon, vector):
    run_vector(daemon, vector)


@is_long
@pytest.mark.parametrize("mode", ["inline", "stdin", "file"])
@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector_in_every_mode(daemon, vector, mode):
    if "mount" in vector or vector["language"] == "cobol" or (mode == "inline" and "-5m" in vector["id"]):
        pytest.skip("the mode makes no difference, or is not for that much")
    run_vector(daemon, vector, mode)


# ---- languages ----

ECHO = {
    "python": "def f(a, b=2):\n    return [a, b]",
    "ruby": "def f(a, b = 2)\n  [a, b]\nend",
    "php": "function f($a, $b = 2) { return [$a, $b]; }",
    "javascript": "function f(a, b = 2) { return [a, b] }",
}
VALUE = {"é": ["\U0001f600", -1.5, None, True, {"": 0}], "x": 'a"\\\n\u2028$& #{1}'}


@needs_runtimes
@pytest.mark.parametrize("mode", ["inline", "stdin", "file"])
@pytest.mark.parametrize("language", ECHO)
def test_values_survive_in_every_mode(daemon, language, mode):
    result = wasm(daemon, language, ECHO[language], args=[VALUE], argsMode=mode)
    assert result["result"] == [VALUE, 2], result
    assert result["meta"]["engine"] == "wasm"
    assert result["files"]["created"] == []


DRAWS = {
    "python": "import random, uuid\ndef f():\n    return [random.random(), str(uuid.uuid4())]",
    "ruby": "require 'securerandom'\ndef f\n  [rand, SecureRandom.hex]\nend",
    "php": "function f() { return [mt_rand(), random_int(0, 1 << 30)]; }",
    "javascript": "function f() { return [Math.random(), Math.random()] }",
}


@needs_runtimes
@pytest.mark.parametrize("language", DRAWS)
def test_copies_draw_their_own_random_numbers(daemon, language):
    drawn = [wasm(daemon, language, DRAWS[language])["result"] for _ in range(4)]
    assert all(len(set(column)) == len(drawn) for column in zip(*drawn)), drawn


ENVIRONMENT = {
    "python": "import os\ndef f():\n    return [os.environ['A'], os.getcwd(), open('in.txt').read()]",
    "ruby": "def f\n  [ENV['A'], Dir.pwd, File.read('in.txt')]\nend",
    "php": "function f() { return [getenv('A'), getcwd(), file_get_contents('in.txt')]; }",
    "javascript": "import * as std from 'std';\n"
                  "export function f() { return [std.getenv('A'), '/app', std.loadFile('in.txt')] }",
}


@needs_runtimes
@pytest.mark.parametrize("language", ENVIRONMENT)
def test_environment_and_directory(daemon, language):
    options = {"env": {"A": "b=ü"}, "workdir": "/app", "files": {"in.txt": "hello"}}
    result = wasm(daemon, language, ENVIRONMENT[language], options=options)
    assert result["result"] == ["b=ü", "/app", "hello"], result


@needs_runtimes
def test_python_waits_and_awaits(daemon):
    code = """
import asyncio, time
async def f(x):
    begin = time.monotonic()
    time.sleep(0.02)
    values = await asyncio.gather(asyncio.sleep(0.02, x), asyncio.sleep(0.01, 1))
    return [values, time.monotonic() - begin >= 0.04]
"""
    assert wasm(daemon, "python", code, args=[7])["result"] == [[7, 1], True]


@needs_runtimes
def test_javascript_timers(daemon):
    code = "function f() { return new Promise((r) => setTimeout(() => r(5), 10)) }"
    assert wasm(daemon, "javascript", code)["result"] == 5


@needs_runtimes
def test_changes_of_files(daemon):
    code = """
import os
def f():
    os.makedirs("d/e")
    with open("d/e/new.bin", "wb") as out:
        out.write(bytes(range(256)))
    with open("old.txt", "a") as out:
        out.write("+")
    os.rename("moved.txt", "d/moved.txt")
    return sorted(os.listdir("."))
"""
    result = wasm(daemon, "python", code, options={"files": {"old.txt": "1", "moved.txt": "2"}})
    assert result["result"] == ["d", "old.txt"], result
    changed = {kind: sorted(c["path"] for c in result["files"][kind]) for kind in ("created", "modified", "deleted")}
    assert changed == {"created": ["/workspace/d/e/new.bin", "/workspace/d/moved.txt"],
                       "modified": ["/workspace/old.txt"], "deleted": ["/workspace/moved.txt"]}


FENCED = {"files": {"a.txt": "1"}, "permissions": {"default": {"read": True}},
          "mount": {"dirs": {}, "onPermissionDenied": "throw"}}


@needs_runtimes
@pytest.mark.parametrize("language, code", [
    ("python", "def f():\n    open('/workspace/a.txt', 'w').write('x')"),
    ("ruby", "def f\n  File.write('a.txt', 'x')\nend"),
])
def test_forbidden_changes_fail_inside(daemon, language, code):
    result = wasm(daemon, language, code, options=FENCED)
    assert (result["status"], result["error"]["type"]) == ("error", "PermissionDeniedError"), result
    assert [d["path"] for d in result["files"]["denied"]] == ["/workspace/a.txt"]


@needs_runtimes
@pytest.mark.parametrize("mode", ["inline", "file"])
def test_modules_load_behind_the_fence(daemon, mode):
    code = ("import * as std from 'std';\n"
            "export function f() { return [std.loadFile('a.txt'), std.open('a.txt', 'w') === null] }")
    result = wasm(daemon, "javascript", code, options=FENCED, argsMode=mode)
    assert result["result"] == ["1", True] and result["files"]["created"] == [], result


def test_the_engine_needs_the_native_jail(make_daemon):
    instance = make_daemon(WASM="true", WASM_PATH=str(RUNTIMES), ISOLATION="native,subprocess")
    result = foreign(instance, ARITHMETIC, "add", [1, 2], isolation="subprocess")
    assert result["error"]["type"] == "EngineNotAvailable" and "native" in result["error"]["message"], result
    assert foreign(instance, ARITHMETIC, "add", [1, 2], isolation="native")["result"] == 3


# ---- the second wall ----

TRESPASSES = ["/etc/passwd", "/proc/self/maps", "/usr/bin/node", "../etc/passwd", "/workspace/../etc/passwd",
              "/workspace/out", "/workspace/deep/passwd", "/dev/mem", "//etc//passwd", "/tmp/../proc/1/environ"]


@needs_runtimes
def test_nothing_else_is_there(daemon):
    code = """
import os
os.symlink("/etc/passwd", "/workspace/out")
os.symlink("../../../etc", "/workspace/deep")
def f(paths):
    found = []
    for path in paths:
        for attempt in (open, os.stat, os.listdir):
            try:
                attempt(path)
                found.append([path, attempt.__name__])
            except OSError:
                pass
    return found
"""
    assert wasm(daemon, "python", code, args=[TRESPASSES])["result"] == []


@needs_runtimes
def test_nothing_else_is_written(daemon):
    code = """
import os
def f(paths):
    done = []
    for path in paths:
        try:
            open(path, "w").close()
            done.append(path)
        except OSError:
            pass
    return done
"""
    paths = ["/evil", "/usr/evil", "/sandbox/evil", "/dev/evil", "/etc/evil"]
    assert wasm(daemon, "python", code, args=[paths])["result"] == []


@needs_runtimes
@pytest.mark.parametrize("code", [
    "import socket\ndef f():\n    socket.create_connection(('127.0.0.1', 80), 1)",
    "import subprocess\ndef f():\n    subprocess.run(['/bin/true'])",
    "import os\ndef f():\n    os.fork()",
])
def test_no_network_and_no_processes(daemon, code):
    assert wasm(daemon, "python", code)["status"] == "error"


# ---- ending ----

SPINS = {
    "python": "def f():\n    while True: pass",
    "ruby": "def f\n  loop {}\nend",
    "php": "function f() { while (true); }",
    "javascript": "function f() { for (;;); }",
}


@needs_runtimes
@pytest.mark.parametrize("language", SPINS)
def test_a_timeout_kills(daemon, language):
    result = wasm(daemon, language, SPINS[language], timeout=0.3)
    assert (result["status"], result["exitCode"], result["error"]["type"]) == ("timeout", 124, "TimeoutError")


RECURSES = {
    "python": ("def f(n=0):\n    return f(n + 1)", "RecursionError"),
    "ruby": ("def f(n = 0)\n  f(n + 1)\nend", "SystemStackError"),
}


@needs_runtimes
@pytest.mark.parametrize("language", RECURSES)
def test_endless_recursion_is_an_error_of_the_language(daemon, language):
    code, kind = RECURSES[language]
    result = wasm(daemon, language, code)
    assert (result["status"], result["error"]["type"]) == ("error", kind), result


@needs_runtimes
def test_memory_ends(daemon):
    code = "def f():\n    kept = []\n    while True: kept.append(bytearray(1 << 20))"
    result = wasm(daemon, "python", code)
    assert result["status"] == "error"
    assert result["error"]["type"] in ("MemoryError", "MemoryLimitError"), result


@needs_runtimes
def test_exit_is_no_result(daemon):
    result = wasm(daemon, "python", "import os\ndef f():\n    os._exit(3)")
    assert (result["status"], result["error"]["type"], result["exitCode"]) == ("error", "NoResult", 3)


@needs_compiler
@pytest.mark.parametrize("code, signal", [
    ("#include <stdlib.h>\nint f(int n) { abort(); }", "SIGABRT"),
    ("int f(int n) { return *(volatile int *)(n - 5); }", "SIGSEGV"),
    ("int f(int n) { volatile char x[500]; x[0] = n; return f(n + 1) + x[0]; }", "SIGSEGV"),
    ("int f(int n) { volatile int zero = 0; return n / zero; }", "SIGFPE"),
])
def test_traps_are_crashes(daemon, code, signal):
    result = wasm(daemon, "c", code, args=[1])
    assert (result["status"], result["error"]["type"]) == ("crash", "CrashError"), result
    assert result["termination"]["signal"] == signal and "wasm: " in result["stderr"]


@needs_compiler
def test_what_cpp_throws_is_its_error(daemon):
    code = "#include <stdexcept>\nint f(int n) { if (n > 0) throw std::out_of_range(\"far\"); return n; }"
    result = wasm(daemon, "cpp", code, args=[1])
    assert (result["error"]["type"], result["error"]["message"]) == ("std::out_of_range", "far"), result
    assert wasm(daemon, "cpp", code, args=[0])["result"] == 0


C_FILES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
char *f(char *text)
{
    static char out[1000];
    struct stat st;
    char part[100] = "", *cwd;
    FILE *w = fopen("a.txt", "w");

    fputs(text, w);
    fclose(w);
    mkdir("sub", 0755);
    rename("a.txt", "sub/b.txt");
    chdir("sub");
    cwd = getcwd(NULL, 0);
    w = fopen("b.txt", "r");
    fgets(part, sizeof part, w);
    snprintf(out, sizeof out, "%s %s %d %d %s", part, cwd, stat("../sub/b.txt", &st), stat("/b.txt", &st),
             getenv("MINE"));
    free(text);
    free(cwd);
    return out;
}
"""


@needs_compiler
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_paths_and_memory_of_the_c_library(daemon, language):
    code = C_FILES if language == "c" else C_FILES.replace("char *f(", 'extern "C" char *f(')
    result = wasm(daemon, language, code, args=["kept"], options={"env": {"MINE": "yes", "PWD": "/nowhere"}})
    assert result["status"] == "success", result
    assert result["result"] == "kept /workspace/sub 0 -1 yes", result
    assert [entry["path"] for entry in result["files"]["created"]] == ["/workspace/sub/b.txt"], result


@needs_compiler
@pytest.mark.parametrize("n", [1, 100, 10000, 100000])
def test_arguments_of_any_size(daemon, n):
    """Small ones are kept in a room of the wrapper's own, large ones where malloc() puts them."""
    code = """
#include <string.h>
int f(const char *a, const int *list, int n, const char *b)
{
    int sum = strlen(a) + strlen(b);
    for (int i = 0; i < n; i++)
        sum += list[i];
    return sum;
}"""
    result = wasm(daemon, "c", code, args=["a" * n, [7] * n, n, "ü" * n])
    assert result["status"] == "success" and result["result"] == 10 * n, result


def threads_of_node(daemon):
    """Of the zygote and of its copies."""
    counts = []
    for pid in daemon.tree():
        fields = dict(line.split(b":", 1) for line in harness.read_proc(pid, "status").splitlines() if b":" in line)
        if fields.get(b"Name", b"").strip() == b"node":
            counts.append(int(fields[b"Threads"]))
    return sorted(counts)


@needs_compiler
def test_threads_are_for_programs_that_go_on(make_daemon):
    """A copy waits with one thread; V8's helpers come to who computes for longer."""
    daemon = make_daemon(WASM="true", WASM_PATH=RUNTIMES, POOL_WASM=2, NODE_ZYGOTE="false")
    assert wasm(daemon, "c", "int f(int x) { return x; }", args=[1])["result"] == 1
    harness.wait_until(lambda: threads_of_node(daemon)[:-1] == [1, 1],
                       lambda: f"a zygote and two that are ready: {threads_of_node(daemon)}")
    body = {"language": "c", "engine": "wasm", "functionName": "f", "args": [],
            "code": "int f(void) { for (volatile int i = 0;;) i++; }"}
    with daemon.connect() as connection:
        connection.send("POST", "/v1/functions/call", json=body)
        harness.wait_until(lambda: sum(n > 1 for n in threads_of_node(daemon)) == 2, "helper threads")


@needs_compiler
def test_diagnostics_of_the_compiler(daemon):
    result = wasm(daemon, "c", "int f(int a) { return b; }", args=[1])
    assert result["error"]["type"] == "CompileError" and "undeclared" in result["stderr"]


# ---- modules ----


def number(n):
    """Unsigned LEB128."""
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if n == 0:
            return bytes(out)


def vector_of(items):
    return number(len(items)) + b"".join(items)


def section(kind, items):
    content = vector_of(items)
    return bytes([kind]) + number(len(content)) + content


def named(text):
    return number(len(text)) + text.encode()


KIND = {"i32": 0x7f, "i64": 0x7e, "f32": 0x7d, "f64": 0x7c, "v128": 0x7b}


def module(functions, imports=(), memory=None):
    """functions: {name: (parameters, results, code)}; imports: (module, name, parameters, results)."""
    def signature(given, returned):
        kinds = [vector_of([bytes([KIND[k]]) for k in side.split()]) for side in (given, returned)]
        return b"\x60" + kinds[0] + kinds[1]

    types = [signature(i[2], i[3]) for i in imports] + [signature(f[0], f[1]) for f in functions.values()]
    n = len(imports)
    parts = [b"\0asm\1\0\0\0", section(1, types)]
    if imports:
        parts.append(section(2, [named(i[0]) + named(i[1]) + b"\0" + number(at) for at, i in enumerate(imports)]))
    parts.append(section(3, [number(n + i) for i in range(len(functions))]))
    if memory is not None:
        parts.append(section(5, [b"\0" + number(memory)]))
    exports = [named(name) + b"\0" + number(n + i) for i, name in enumerate(functions)]
    if memory is not None:
        exports.append(named("memory") + b"\2\0")
    parts.append(section(7, exports))
    bodies = [b"\0" + bytes.fromhex(f[2].replace(" ", "")) + b"\x0b" for f in functions.values()]
    parts.append(section(10, [number(len(body)) + body for body in bodies]))
    return base64.b64encode(b"".join(parts)).decode()


ARITHMETIC = module({
    "add": ("i32 i32", "i32", "2000 2001 6a"),
    "next": ("i64", "i64", "2000 4201 7c"),
    "half": ("f64", "f64", "2000 44000000000000e03f a2"),
    "pair": ("i32 f32", "i32 f32", "2000 2001"),
    "nothing": ("", "", ""),
    "trap": ("", "", "00"),
    "forever": ("", "", "0340 0c00 0b"),
    "divide": ("i32 i32", "i32", "2000 2001 6d"),
    "deep": ("", "", "1006"),
    "wide": ("v128", "", ""),
}, memory=1)
ARITHMETIC_DEEP = module({"deep": ("", "", "1000")})


def foreign(daemon, code, function=None, args=(), **more):
    body = {"language": "wasm", "code": code, "args": list(args), **more}
    if function:
        body["functionName"] = function
    return call(daemon, **body)


@pytest.mark.parametrize("function, args, value", [
    ("add", [2, 3], 5), ("add", [2147483647, 1], -2147483648), ("add", [True, 4294967295], 0),
    ("next", [9007199254740993], 9007199254740994), ("next", ["-9223372036854775808"], -9223372036854775807),
    ("half", [0.5], 0.25), ("half", [3], 1.5), ("pair", [1, 0.5], [1, 0.5]), ("nothing", [], None),
])
def test_exported_functions(daemon, function, args, value):
    result = foreign(daemon, ARITHMETIC, function, args)
    assert (result["status"], result["result"]) == ("success", value), result


@pytest.mark.parametrize("function, args, kind", [
    ("add", [1], "TypeError"), ("add", [1, 2, 3], "TypeError"), ("add", ["1", 2], "TypeError"),
    ("add", [1.5, 2], "TypeError"), ("add", [2 ** 32, 2], "RangeError"), ("next", [1.5], "TypeError"),
    ("next", ["99999999999999999999"], "RangeError"), ("nope", [], "NameError"), ("memory", [], "NameError"),
    ("wide", [1], "SignatureError"), ("constructor", [], "NameError"),
])
def test_wrong_arguments_are_named(daemon, function, args, kind):
    result = foreign(daemon, ARITHMETIC, function, args)
    assert (result["status"], result["error"]["type"]) == ("error", kind), result
    assert result["error"]["message"]


@pytest.mark.parametrize("code, function, args, signal", [
    (ARITHMETIC, "trap", [], "SIGABRT"), (ARITHMETIC, "divide", [1, 0], "SIGFPE"),
    (ARITHMETIC_DEEP, "deep", [], "SIGSEGV"),
])
def test_traps_of_modules(daemon, code, function, args, signal):
    result = foreign(daemon, code, function, args)
    assert result["status"] == "crash" and result["termination"]["signal"] == signal, result


def test_a_module_that_does_not_end(daemon):
    assert foreign(daemon, ARITHMETIC, "forever", timeout=0.3)["status"] == "timeout"


def raw(content):
    return base64.b64encode(content).decode()


@pytest.mark.parametrize("code, kind, words", [
    ("?", "ValueError", "base64"),
    ("", "ValueError", "module"),
    (raw(b"MZ not a module"), "ValueError", "\\0asm"),
    (raw(b"\0asm\2\0\0\0"), "ValueError", "version 1"),
    (raw(b"\0asm\1\0\0\0\x01\xff\xff\xff\xff\x0f"), "CompileError", ""),
    (raw(b"\0asm\1\0\0\0" + b"\x63" * 64), "CompileError", "section"),
    (module({"f": ("i32", "i32", "6a")}), "CompileError", ""),
    (module({"f": ("", "", "")}, [("env", "system", "i32", "i32")]), "LinkError", "env.system"),
    (module({"f": ("", "", "")}, [("wasi_snapshot_preview1", "fd_conjure", "", "")]), "LinkError", "fd_conjure"),
    (module({"f": ("", "", "")}, memory=70000), "CompileError", "memory"),
    (module({"f": ("", "", "")}, memory=65000), "MemoryLimitError", "memory"),
])
def test_hostile_modules_are_refused(daemon, code, kind, words):
    result = foreign(daemon, code, "f")
    assert (result["status"], result["error"]["type"]) == ("error", kind), result
    assert words in result["error"]["message"]


def test_a_module_without_a_command(daemon):
    assert foreign(daemon, ARITHMETIC)["error"]["type"] == "NameError"


def test_names_and_stdin_are_for_whom_they_are(daemon):
    assert "names" in foreign(daemon, ARITHMETIC, "add", kwargs={"a": 1})["error"]["message"]
    result = call(daemon, language="python", code=ECHO["python"], functionName="f", args=[1], stdin="x")
    assert result["error"]["type"] == "ValueError"


COMMAND = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv)
{
    char line[100] = "";
    FILE *in = fopen("in.txt", "r"), *out = fopen("out.txt", "w");
    for (int i = 1; i < argc; i++)
        printf("[%s]", argv[i]);
    printf("%s ", getenv("NAME"));
    if (fgets(line, sizeof line, stdin))
        printf("%s ", line);
    if (in && fgets(line, sizeof line, in))
        printf("%s", line);
    fprintf(out, "made");
    fclose(out);
    if (fopen("/etc/passwd", "r") || fopen("../etc/passwd", "r"))
        printf("LEAK");
    return argc > 3 ? 7 : 0;
}
"""


@pytest.fixture(scope="module")
def command():
    with tempfile.TemporaryDirectory() as place:
        source, made = pathlib.Path(place, "a.c"), pathlib.Path(place, "a.wasm")
        source.write_text(COMMAND)
        subprocess.run(["clang", "--target=wasm32-wasi", "-O1", "-o", made, source], check=True)
        return raw(made.read_bytes())


@needs_compiler
def test_a_command(daemon, command):
    result = foreign(daemon, command, args=["a", "b c"], stdin="line", options={
        "env": {"NAME": "v"}, "files": {"in.txt": "hello"}})
    assert (result["status"], result["exitCode"]) == ("success", 0), result
    assert result["stdout"] == "[a][b c]v line hello"
    assert [(c["path"], c["content"]) for c in result["files"]["created"]] == [("/workspace/out.txt", "made")]


@needs_compiler
def test_a_command_that_fails(daemon, command):
    result = foreign(daemon, command, args=["1", "2", "3"])
    assert (result["status"], result["error"]["type"], result["exitCode"]) == ("error", "ExitError", 7), result


@is_long
def test_broken_modules_never_harm(daemon):
    """Bytes of a good module are changed at random: whatever comes, it is an answer of ours."""
    good = base64.b64decode(ARITHMETIC)
    dice = random.Random(1)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(dice.randint(1, 4)):
            bad[dice.randrange(8, len(bad))] = dice.randrange(256)
        result = foreign(daemon, raw(bytes(bad)), "add", [1, 2], timeout=2)
        assert result["status"] in ("success", "error", "crash", "timeout")
        assert result["status"] == "success" or result["error"]["type"] != "SandboxError", result
    assert foreign(daemon, ARITHMETIC, "add", [1, 2])["result"] == 3


# ---- handlers ----


def execute(daemon, **body):
    return daemon.request("POST", "/execute", json=body)


@needs_runtimes
@pytest.mark.parametrize("language, code", [
    ("python", "import sys\ndef handler(event, context):\n    print('out')\n"
               "    open('/workspace/made', 'w').close()\n    return [event, context.memory_limit_in_mb > 0]"),
    ("javascript", "import * as std from 'std';\nexport function handler(event, context) {\n"
                   "    console.log('out'); std.open('/workspace/made', 'w').close();\n"
                   "    return [event, context.memory_limit_in_mb > 0] }"),
])
def test_execute_with_isolation_wasm(daemon, language, code):
    result = execute(daemon, language=language, code=code, event={"a": "ü"}, isolation="wasm").json()
    assert (result["status"], result["return_value"]) == ("success", [{"a": "ü"}, True]), result
    assert result["stdout"] == "out\n" and result["artifacts"] == ["made"]
    assert result["isolation"]["template"] == f"wasm-{language}"


@needs_runtimes
@pytest.mark.parametrize("language, code", [("python", "print('out')"), ("javascript", "console.log('out')")])
def test_a_script_in_wasm(daemon, language, code):
    result = execute(daemon, language=language, code=code, isolation="wasm").json()
    assert (result["status"], result["stdout"], result["return_value"]) == ("success", "out\n", None), result
    demanded = execute(daemon, language=language, code=code, isolation="wasm", mode="handler").json()
    assert (demanded["status"], demanded["error"]["type"]) == ("failed", "HandlerNotFound"), demanded


@needs_runtimes
def test_execute_errors_in_wasm(daemon):
    result = execute(daemon, language="python", code="def handler(event):\n    return 1 / 0", isolation="wasm").json()
    assert (result["status"], result["error"]["type"]) == ("failed", "ZeroDivisionError")
    assert execute(daemon, language="shell", code="echo", isolation="wasm").status == 400
    assert execute(daemon, language="python", code="x = 1", isolation="paper").status == 400


# ---- offering it ----


def capabilities(daemon):
    return daemon.request("GET", "/v1/capabilities").json()["wasm"]


def prepared(daemon, template):
    text = daemon.request("GET", "/metrics").text
    return [int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if f'"wasm-{template}"' in line]


def test_nothing_is_prepared_before_it_is_asked_for(make_daemon):
    instance = make_daemon(WASM="true", WASM_PATH=str(RUNTIMES))
    assert prepared(instance, "module") == [0, 0]
    assert foreign(instance, ARITHMETIC, "add", [1, 2])["result"] == 3
    harness.wait_until(lambda: prepared(instance, "module")[0] >= 1, "a prepared sandbox")
    assert sum(prepared(instance, "ruby")) == 0


def test_switched_off(make_daemon):
    instance = make_daemon()
    assert "WASM=true" in capabilities(instance)["python"]["reason"]
    result = wasm(instance, "python", ECHO["python"], args=[1])
    assert result["error"]["type"] == "EngineNotAvailable" and "WASM=true" in result["error"]["message"]
    assert foreign(instance, ARITHMETIC, "add", [1, 2])["error"]["type"] == "EngineNotAvailable"
    assert execute(instance, language="python", code="x = 1", isolation="wasm").status == 400


def test_without_runtimes_modules_still_run(make_daemon, tmp_path):
    instance = make_daemon(WASM="true", WASM_PATH=str(tmp_path))
    told = capabilities(instance)
    assert told["wasm"]["available"] and not told["python"]["available"]
    assert "fetch-wasm" in told["python"]["reason"]
    assert wasm(instance, "python", ECHO["python"], args=[1])["error"]["type"] == "EngineNotAvailable"
    assert foreign(instance, ARITHMETIC, "add", [1, 2])["result"] == 3
