# SPDX-License-Identifier: MIT
"""/v1/sessions with the engine 'wasm': the same sessions, with V8 as a second wall."""
import time

import pytest

import harness
from test_sessions import Session
from test_wasm import RUNTIMES, needs_compiler, needs_runtimes

PY, JS, RB, PHP = "python", "javascript", "ruby", "php"
SCRIPTS = [PY, JS, RB, PHP]

# The same program in each language: a counter, and ways to go wrong.
CODE = {
    PY: """
import os, sys, time
n = 0
def add(k=1):
    global n
    n += k
    print("n is", n)
    return n
def fail(text):
    raise ValueError(text)
def spin():
    while True:
        pass
def leave(code):
    sys.exit(code)
def echo(x):
    return x
def warn(text):
    print(text, file=sys.stderr)
def write(name, text):
    with open(name, "w") as f:
        f.write(text)
def read(name):
    with open(name) as f:
        return f.read()
""",
    JS: """
let n = 0;
function add(k = 1) {
    n += k;
    console.log("n is", n);
    return n;
}
function fail(text) {
    throw new RangeError(text);
}
function spin() {
    for (;;) {}
}
function leave(code) {
    require("std").exit(code);
}
function echo(x) { return x }
function warn(text) { console.error(text) }
function write(name, text) {
    const f = require("std").open(name, "w");
    f.puts(text);
    f.close();
}
function read(name) { return require("std").loadFile(name) }
""",
    RB: """
$n = 0
def add(k = 1)
  $n += k
  puts "n is #{$n}"
  $n
end
def fail(text)
  raise ArgumentError, text
end
def spin
  loop {}
end
def leave(code)
  exit code
end
def echo(x) = x
def warn(text)
  $stderr.puts text
end
def write(name, text)
  File.write(name, text)
  nil
end
def read(name) = File.read(name)
""",
    PHP: """<?php
function add($k = 1) {
    static $n = 0;
    $n += $k;
    echo "n is $n\\n";
    return $n;
}
function fail($text) {
    throw new RangeException($text);
}
function spin() {
    while (true) {}
}
function leave($code) {
    exit($code);
}
function echo_($x) { return $x; }
function warn($text) { fwrite(STDERR, "$text\\n"); }
function write($name, $text) { file_put_contents($name, $text); }
function read($name) { return file_get_contents($name); }
""",
    "c": """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int n;
int add(int k) { n += k; printf("n is %d\\n", n); return n; }
static int inner(int k) { volatile char room[4096]; memset((void *)room, k, sizeof room); return room[k]; }
int deep(int k) { return k == 0 ? inner(0) : deep(k - 1) + inner(0); }
void spin(void) { for (volatile int i = 0;; i++) {} }
void leave(int code) { exit(code); }
int crash(int k) { return *(volatile int *)(k * -1); }
const char *echo(const char *x) { return x; }
int count(int *list, int list_len) { return list_len; }
char *big(int k) { char *p = malloc(k + 1); memset(p, 'x', k); p[k] = 0; return p; }
""",
    "cpp": """
#include <map>
#include <stdexcept>
#include <string>
static std::map<std::string, int> seen;
struct Counter { int n; Counter() : n(40) {} };
static Counter counter;
int add(int k) { counter.n += k; return counter.n; }
int see(std::string name) { return ++seen[name]; }
int fail(std::string text) { throw std::invalid_argument(text); }
""",
}
ERRORS = {PY: "ValueError", JS: "RangeError", RB: "ArgumentError", PHP: "RangeException"}
VALUE = {"é": ["\U0001f600", -1.5, None, True, {"a": 0}], "x": 'a"\\\n\u2028$& #{1}'}


@pytest.fixture(scope="module")
def daemon(wasm_daemon):
    return wasm_daemon


@pytest.fixture
def session(daemon):
    made = []

    def make(language, code=None, **fields):
        made.append(Session(daemon, language, CODE[language] if code is None else code, engine="wasm", **fields))
        return made[-1]

    yield make
    for one in made:
        assert one.delete() in (204, 404)


# ---- languages that are interpreted ----


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_state_output_and_errors(session, language):
    s = session(language)
    assert s.made["meta"]["engine"] == "wasm" and s.look()["engine"] == "wasm"
    for k, want in ((1, 1), (5, 6), (-2, 4)):
        result = s.call("add", k)
        assert (result["result"], result["stdout"]) == (want, f"n is {want}\n"), result
        assert result["meta"]["engine"] == "wasm" and result["session"]["restarted"] is False
    failed = s.call("fail", "ünfit")
    assert failed["status"] == "error" and failed["error"]["type"] == ERRORS[language], failed
    assert failed["error"]["message"] == "ünfit"
    assert s.call("warn", "careful")["stderr"] == "careful\n"
    assert s.value("echo", VALUE) == VALUE
    missing = s.call("nobody")
    assert missing["status"] == "error" and "nobody" in missing["error"]["message"], missing
    assert s.value("add") == 5
    assert s.look()["generation"] == 1


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_files_live_as_long_as_the_process(session, language):
    s = session(language, options={"files": {"d/t": "text"}, "env": {"A": "b"}, "workdir": "/app"})
    assert s.value("read", "d/t") == "text"
    s.value("write", "new", "more")
    assert s.value("read", "new") == s.value("read", "/app/new") == "more"
    s.reset("hard")
    assert s.call("read", "new").get("result") in (None, False)
    assert s.value("read", "d/t") == "text"


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_a_call_that_takes_too_long_costs_the_process(session, language):
    s = session(language)
    assert s.value("add") == 1
    late = s.call("spin", timeout=1)
    assert late["status"] == "timeout" and late["termination"]["reason"] == "timeout", late
    assert late["session"]["restarted"] is True and late["session"]["reason"] == "timeout"
    after = s.call("add")
    assert after["result"] == 1 and after["session"]["generation"] == 2, after


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_one_that_ends_itself_is_started_again(session, language):
    s = session(language)
    assert s.value("add") == 1
    left = s.call("leave", 3)
    assert left["status"] == "error" and left["session"]["restarted"] is True, left
    assert left["exitCode"] == 3 and left["session"]["reason"] == "exit"
    assert s.value("add") == 1


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_resets(session, language):
    s = session(language)
    assert s.value("add") == 1
    soft = s.reset("soft")
    reloads = language in (PY, JS)
    assert soft["session"]["reset"] == ("soft" if reloads else "hard"), soft
    assert s.value("add") == 1
    assert s.look()["generation"] == (1 if reloads else 2)
    assert s.reset("hard")["session"]["reset"] == "hard"
    assert s.value("add") == 1
    assert s.look()["generation"] == (2 if reloads else 3)


@needs_runtimes
@pytest.mark.parametrize("language, code", [
    (PY, "def f(:"), (JS, "function f( {"), (RB, "def f("), (PHP, "<?php function f( {"),
    (PY, "raise KeyError('no')"), (JS, "throw new TypeError('no')")])
def test_code_that_cannot_be_loaded_makes_no_session(daemon, language, code):
    response = daemon.request("POST", "/v1/sessions", json={"language": language, "code": code, "engine": "wasm"})
    assert response.status == 422 and response.json()["status"] == "error", response
    assert response.json()["error"]["message"], response


@needs_runtimes
@pytest.mark.parametrize("language", SCRIPTS)
def test_large_values(session, language):
    s = session(language)
    text = "ä" * 200_000
    assert s.value("echo", text) == text
    assert s.value("echo", "x") == "x"


# ---- Python and JavaScript ----

STREAMS = {
    PY: "def f(n):\n    for i in range(n):\n        yield {'i': i}\n    return 'end'\n"
        "def g():\n    yield 1\n    raise ValueError('mid')",
    JS: "function* f(n) {\n  for (let i = 0; i < n; i++) yield { i };\n  return 'end';\n}\n"
        "async function* g() {\n  yield 1;\n  throw new TypeError('mid');\n}",
}


@needs_runtimes
@pytest.mark.parametrize("language", STREAMS)
def test_items_are_streamed(session, language):
    s = session(language, STREAMS[language])
    *items, (kind, last, _) = s.stream("f", 3)
    assert items == [("item", {"i": i}, str(i)) for i in range(3)] and kind == "result", items
    assert last["result"] == "end" and last["items"] == 3, last
    first, (_, last, _) = s.stream("g")
    assert first[:2] == ("item", 1) and last["error"]["message"] == "mid", last
    assert s.value("f", 2) == [{"i": 0}, {"i": 1}]


@needs_runtimes
@pytest.mark.parametrize("code", [
    "export let n = 0;\nexport function f() { return ++n }",
    "module.exports = { n: 0, f() { return ++this.n } };\nmodule.exports.f = module.exports.f.bind(module.exports)",
    "let n = 0;\nconst f = async () => { await null; return ++n }",
    "let n = await Promise.resolve(0);\nfunction f() { return ++n }"])
def test_forms_of_javascript(session, code):
    s = session(JS, code)
    assert [s.value("f"), s.value("f")] == [1, 2]
    s.reset("soft")
    assert s.value("f") == 1


@needs_runtimes
def test_promises_and_timers_of_javascript(session):
    s = session(JS, "const wait = (ms) => new Promise((r) => setTimeout(r, ms));\n"
                    "let done = 0;\nasync function f() { await wait(20); return ++done }")
    assert [s.value("f"), s.value("f")] == [1, 2]


@needs_runtimes
def test_python_keeps_one_event_loop(session):
    s = session(PY, "import asyncio\nq = None\nasync def put(x):\n    global q\n    q = q or asyncio.Queue()\n"
                    "    await q.put(x)\nasync def get():\n    await asyncio.sleep(0.01)\n    return await q.get()")
    s.value("put", 5)
    assert s.value("get") == 5


# ---- compiled ----


@needs_compiler
def test_c_keeps_its_state(session):
    s = session("c")
    assert [s.value("add", k) for k in (1, 5)] == [1, 6]
    assert s.call("add", 1)["stdout"] == "n is 7\n"
    assert s.value("echo", "ä\n\"") == "ä\n\""
    assert s.value("deep", 100) == 0
    wrong = s.call("add", "x")
    assert wrong["status"] == "error" and wrong["error"]["type"] == "TypeError", wrong
    unknown = s.call("nobody")
    assert unknown["error"]["type"] == "NameError", unknown
    assert s.value("add", 1) == 8 and s.look()["generation"] == 1


@needs_compiler
def test_c_goes_on_after_a_call_that_was_left(make_daemon):
    """A result that is too large leaves the call in the middle, which C cannot do here by itself."""
    daemon = make_daemon(WASM="true", WASM_PATH=str(RUNTIMES), RESULT_MAX="65536")
    s = Session(daemon, "c", CODE["c"], engine="wasm")
    assert s.value("add", 1) == 1
    for _ in range(300):  # a stack that was not put back would be used up
        refused = s.call("big", 100_000)
        assert refused["error"]["type"] == "ResultTooLarge", refused
    assert s.value("deep", 200) == 0
    assert s.value("add", 1) == 2 and s.look()["generation"] == 1
    assert len(s.value("big", 1000)) == 1000


@needs_compiler
def test_c_that_ends_is_started_again(session):
    s = session("c")
    s.value("add", 1)
    late = s.call("spin", timeout=1)
    assert late["status"] == "timeout" and late["session"]["restarted"] is True, late
    assert s.value("add", 1) == 1
    left = s.call("leave", 3)
    assert left["exitCode"] == 3 and left["session"]["restarted"] is True, left
    crashed = s.call("crash", 16)
    assert crashed["status"] == "crash" and crashed["termination"]["signal"] == "SIGSEGV", crashed
    assert s.value("add", 1) == 1
    assert s.reset("soft")["session"]["reset"] == "hard"


@needs_compiler
def test_cpp_keeps_its_state_beyond_what_is_thrown(session):
    s = session("cpp")
    assert s.value("add", 2) == 42
    assert [s.value("see", x) for x in "aba"] == [1, 1, 2]
    for text in ("one", "two"):
        thrown = s.call("fail", text)
        assert thrown["error"]["type"] == "std::invalid_argument" and thrown["error"]["message"] == text, thrown
    assert s.value("add", 1) == 43 and s.value("see", "a") == 3
    assert s.look()["generation"] == 1


@needs_compiler
@pytest.mark.parametrize("language, code, kind", [
    ("c", "int f(void) { return }", "CompileError"),
    ("cpp", "#include <stdexcept>\nstatic int f0() { throw std::runtime_error(\"early\"); }\n"
            "static int n = f0();\nint f() { return n; }", "std::runtime_error")])
def test_compiled_code_that_makes_no_session(daemon, language, code, kind):
    response = daemon.request("POST", "/v1/sessions", json={"language": language, "code": code, "engine": "wasm"})
    assert response.status == 422 and response.json()["error"]["type"] == kind, response


# ---- around them ----


@needs_runtimes
def test_an_idle_one_does_nothing(session):
    """It waits without looking again and again."""
    harness.need(harness.FULL, "control groups count what it uses")
    s = session(PY)
    s.value("add")
    before = s.look()["usage"]["cpuMs"]
    time.sleep(1)  # what is measured is the time in which nothing happens
    assert s.look()["usage"]["cpuMs"] - before < 500


@needs_runtimes
def test_sessions_do_not_share_anything(session):
    a, b = session(PY), session(PY)
    assert [a.value("add"), a.value("add"), b.value("add")] == [1, 2, 1]
    a.value("write", "/tmp/x", "a")
    assert b.call("read", "/tmp/x")["error"]["type"] == "FileNotFoundError"


def test_what_cannot_be_a_session(daemon):
    for language in ("wasm", "perl"):
        response = daemon.request("POST", "/v1/sessions", json={"language": language, "code": "x", "engine": "wasm"})
        assert response.status == 422, response


@needs_runtimes
def test_the_first_one_may_be_in_a_hurry(make_daemon):
    """The time that a runtime takes to start for the first time is not the program's."""
    daemon = make_daemon(WASM="true", WASM_PATH=str(RUNTIMES))
    s = Session(daemon, RB, "def f = 1", engine="wasm", timeout=1)
    assert s.value("f") == 1
