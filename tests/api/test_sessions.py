# SPDX-License-Identifier: MIT
"""/v1/sessions: code that is loaded once and called often, with its state kept in between."""
import json
import signal
import threading
import time

import harness
import pytest
from inventory import is_live_group, targets
from koyeb import Events

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
def stubborn():
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass
def leave(code):
    sys.exit(code)
def crash():
    os.kill(os.getpid(), 11)
def echo(x):
    return x
def warn(text):
    print(text, file=sys.stderr)
def pid():
    return os.getpid()
def touch(name):
    open(name, "w").close()
def files():
    return sorted(os.listdir("."))
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
async function stubborn() {
    await null;
    for (;;) {}
}
function leave(code) {
    process.exit(code);
}
function crash() {
    process.kill(process.pid, "SIGSEGV");
    for (;;) {}
}
function echo(x) { return x }
function warn(text) { console.error(text) }
function pid() { return process.pid }
function touch(name) { require("fs").writeFileSync(name, "") }
function files() { return require("fs").readdirSync(".").sort() }
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
def stubborn
  begin
    sleep 60
  rescue Interrupt
    retry
  end
end
def leave(code)
  exit code
end
def crash
  Process.kill('SEGV', Process.pid)
  sleep 60
end
def echo(x) = x
def warn(text)
  $stderr.puts text
end
def pid = Process.pid
def touch(name)
  File.write(name, '')
end
def files = Dir.children('.').sort
""",
    PHP: """<?php
$n = 0;
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
function stubborn() {
    pcntl_signal(SIGINT, SIG_IGN);
    while (true) {}
}
function leave($code) {
    exit($code);
}
function crash() {
    pcntl_signal(SIGALRM, SIG_DFL);
    pcntl_alarm(1);
    while (true) { usleep(1000); }
}
function echo_($x) { return $x; }
function warn($text) { fwrite(STDERR, "$text\\n"); }
function pid() { return getmypid(); }
function touch_($name) { touch($name); }
function files() { return array_values(array_diff(scandir('.'), ['.', '..'])); }
""",
}
ERRORS = {PY: "ValueError", JS: "RangeError", RB: "ArgumentError", PHP: "RangeException"}
FAIL_LINE = {PY: "user_code.py\", line 10", JS: "user_code.js:9", RB: "user_code.rb:9",
             PHP: "user_code.php:10"}
SPELLED = {(PHP, "echo"): "echo_", (PHP, "touch"): "touch_"}


class Session:
    """One session of a daemon; deleted at the end."""

    def __init__(self, daemon, language, code=None, **fields):
        self.daemon, self.language = daemon, language
        response = daemon.request("POST", "/v1/sessions", json={
            "language": language, "code": CODE[language] if code is None else code, **fields})
        assert response.status == 201, response
        self.made = response.json()
        self.id = self.made["id"]

    def request(self, method, path="", **kw):
        return self.daemon.request(method, f"/v1/sessions/{self.id}{path}", **kw)

    def body(self, function, args, fields):
        return {"functionName": SPELLED.get((self.language, function), function), "args": args, **fields}

    def call(self, function, *args, **fields):
        response = self.request("POST", "/call", json=self.body(function, args, fields))
        assert response.status == 200, response
        return response.json()

    def value(self, function, *args, **fields):
        result = self.call(function, *args, **fields)
        assert result["status"] == "success" and result["success"] is True, result
        return result["result"]

    def send(self, function, *args, **fields):
        connection = self.daemon.connect()
        connection.send("POST", f"/v1/sessions/{self.id}/call", json=self.body(function, args, fields))
        return connection

    def stream(self, function, *args, **fields):
        return Events(self.daemon, "POST", f"/v1/sessions/{self.id}/call",
                      self.body(function, args, fields), {"Accept": "text/event-stream"})

    def reset(self, level):
        response = self.request("POST", "/reset", json={"level": level})
        assert response.status == 200, response
        return response.json()

    def look(self):
        response = self.request("GET")
        assert response.status == 200, response
        return response.json()

    def wait_state(self, state):
        harness.wait_until(lambda: self.look()["state"] == state, lambda: self.look())

    def delete(self):
        return self.request("DELETE").status


@pytest.fixture
def session(daemon):
    made = []

    def make(language, code=None, on=None, **fields):
        made.append(Session(on or daemon, language, code, **fields))
        return made[-1]

    yield make
    for one in made:
        if not one.daemon.stopped:
            assert one.delete() in (204, 404)


# ---- calls ----


@pytest.mark.parametrize("language", SCRIPTS)
def test_state_is_kept_between_calls(session, language):
    s = session(language)
    assert s.made["status"] == "success" and s.made["session"]["generation"] == 1
    first = s.call("add")
    assert first["result"] == 1 and first["stdout"] == "n is 1\n" and first["stderr"] == ""
    assert first["session"] == {"id": s.id, "generation": 1, "call": 1, "restarted": False}
    second = s.call("add", 5)
    assert second["result"] == 6 and second["stdout"] == "n is 6\n"
    assert second["meta"]["language"] == language and second["meta"]["functionName"] == "add"
    assert second["isolation"]["traits"] == first["isolation"]["traits"]
    assert first["isolation"]["traits"]
    assert s.value("pid") == s.value("pid")


@pytest.mark.parametrize("language", SCRIPTS)
def test_an_error_names_the_line_and_keeps_the_state(session, language):
    s = session(language)
    s.value("add", 41)
    result = s.call("fail", "töxt \"quoted\"")
    assert result["status"] == "error" and result["success"] is False and "result" not in result
    assert result["error"]["type"] == ERRORS[language]
    assert result["error"]["message"] == "töxt \"quoted\""
    assert FAIL_LINE[language] in result["error"]["stack"], result["error"]["stack"]
    assert result["exitCode"] == 1 and not result["session"]["restarted"]
    missing = s.call("nope")
    assert "'nope' not found" in missing["error"]["message"]
    assert s.value("add") == 42


@pytest.mark.parametrize("language", SCRIPTS)
def test_output_belongs_to_the_call_that_made_it(session, language):
    s = session(language)
    assert s.call("warn", "first")["stderr"] == "first\n"
    assert s.call("add")["stderr"] == ""
    assert s.call("warn", "x" * 300000)["stderr"] == "x" * 300000 + "\n"


VALUES = [None, True, 0, -1.5, "", "\0\t\"\\ \u00e4\u20ac\U0001f600", [], [[[]]], {"a": {"b": [1, None]}}]


@pytest.mark.parametrize("language", SCRIPTS)
def test_values_survive_both_ways(session, language):
    s = session(language)
    for value in VALUES:
        assert s.value("echo", value) == value
    assert s.value("echo", {"k": [2**53 - 1]}) == {"k": [2**53 - 1]}


@pytest.mark.parametrize("language", SCRIPTS)
def test_big_arguments_and_results(session, language):
    s = session(language)
    text = "aä€" * 400000  # 2.4 MB
    assert s.value("echo", text) == text
    assert s.value("echo", list(range(100000))) == list(range(100000))
    too_large = s.call("echo", "x" * (5 << 20))
    assert too_large["status"] == "error" and "at most 4194304" in too_large["error"]["message"]
    assert not too_large["session"]["restarted"]


@pytest.mark.parametrize("language, code, want", [
    (PY, "def f(a, b=2, *, c=3):\n    return [a, b, c]", [1, 2, 9]),
    (JS, "function f(a, b = 2, { c = 3 } = {}) { return [a, b, c] }", [1, 2, 9]),
    (RB, "def f(a, b = 2, c: 3)\n  [a, b, c]\nend", [1, 2, 9]),
    (PHP, "function f($a, $b = 2, $c = 3) { return [$a, $b, $c]; }", [1, 2, 9]),
])
def test_arguments_by_name(session, language, code, want):
    s = session(language, code)
    assert s.value("f", kwargs={"a": 1, "c": 9}) == want
    response = s.request("POST", "/call", json={"functionName": "f", "args": {"a": 1, "c": 9}})
    assert response.json()["result"] == want


def test_a_schema_is_checked(session):
    s = session(PY)
    schema = {"input": [{"name": "x", "type": "integer"}], "strict": True}
    assert s.value("echo", 1, schema=schema) == 1
    refused = s.call("echo", "one", schema=schema)
    assert refused["error"]["type"] == "TypeError" and "'x'" in refused["error"]["message"]


def test_async_functions_share_one_event_loop(session):
    s = session(PY, """
import asyncio
queue = None
async def put(x):
    global queue
    queue = queue or asyncio.Queue()
    await queue.put(x)
async def get():
    return await queue.get()
async def ticks():
    yield 1
    await asyncio.sleep(0)
    yield 2
""")
    s.value("put", 7)
    assert s.value("get") == 7
    assert s.value("ticks") == [1, 2]


def test_javascript_goes_on_between_calls(session):
    s = session(JS, "let n = 0; setInterval(() => { n++ }, 1); exports.n = () => n;"
                    "exports.later = async (x) => { await null; return x }")
    harness.wait_until(lambda: s.value("n") > 3, "timers run while nobody calls")
    assert s.value("later", 5) == 5


@pytest.mark.parametrize("code", [
    "export function f(x) { return x }", "import fs from 'fs';\nconst f = (x) => x;",
    "await null; const f = (x) => x;", "module.exports = { f: (x) => x }", "'use strict'; let f = (x) => x"])
def test_forms_of_javascript(session, code):
    assert session(JS, code).value("f", 3) == 3


# ---- C and C++ ----

C_CODE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int n;
static char *kept;
int add(int k) { n += k; printf("n is %d\n", n); return n; }
const char *echo(const char *s) { return s; }
void keep(const char *s) { free(kept); kept = strdup(s); }
const char *kept_text(void) { return kept; }
double sum(const double *v, int c) { double t = 0; for (int i = 0; i < c; i++) t += v[i]; return t; }
void leave(int code) { exit(code); }
int crash(void) { abort(); }
int spin(void) { for (;;) ; }
struct s { int x; };
int take(struct s v) { return v.x; }
int declared(int x);
int declared(int x) { return -x; }
int main(void) { return 7; }
"""
CPP_CODE = r"""
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
static int n;
int add(int k = 1) { return n += k; }
std::string echo(std::string s) { return s; }
int fail(std::string s) { throw std::out_of_range(s); }
int odd() { throw 5; }
std::map<std::string, std::vector<int>> group(std::vector<int> v) { return {{"all", v}}; }
namespace a { int f(int x) { return x + 1; } }
"""


def test_c_keeps_its_state(session):
    s = session("c", C_CODE)
    assert s.call("add", 2)["stdout"] == "n is 2\n"
    assert s.value("add", 3) == 5 and s.value("add", kwargs={"k": 1}) == 6
    assert s.value("sum", [1, 2.5], 2) == 3.5 and s.value("declared", 4) == -4
    s.value("keep", "first")
    for text in VALUES[5], "x" * 1000000:
        assert s.value("echo", text.replace("\0", "")) == text.replace("\0", "")
    assert s.value("kept_text") == "first"
    for function, args, kind in [("add", ["x"], "TypeError"), ("add", [], "TypeError"),
                                 ("add", [2**40], "RangeError"), ("nope", [], "NameError"),
                                 ("take", [{}], "SignatureError"), ("main", [], "SignatureError"),
                                 ("echo", ["a\0b"], "ValueError")]:
        result = s.call(function, *args)
        assert result["error"]["type"] == kind and not result["session"]["restarted"], result
    assert s.value("add", 1) == 7


def test_c_that_ends_is_started_again(session):
    s = session("c", C_CODE)
    left = s.call("leave", 3)
    assert left["exitCode"] == 3 and left["session"]["reason"] == "exit", left
    crashed = s.call("crash")
    assert crashed["status"] == "crash" and crashed["termination"]["signal"] == "SIGABRT"
    slow = s.call("spin", timeout=0.2)
    assert slow["status"] == "timeout" and slow["session"]["restarted"]  # there is no softer way
    assert s.reset("soft")["session"]["reset"] == "hard"
    assert s.value("add", 1) == 1


def test_cpp_keeps_its_state(session):
    s = session("cpp", CPP_CODE)
    assert s.value("add") == 1 and s.value("add", 4) == 5 and s.value("a::f", 1) == 2
    assert s.value("echo", VALUES[5]) == VALUES[5]
    assert s.value("group", [1, 2]) == {"all": [1, 2]}
    assert s.call("fail", "no")["error"] == {"type": "std::out_of_range", "message": "no", "stack": ""}
    assert s.call("odd")["error"]["type"] == "int"
    assert s.call("group", "x")["error"]["type"] == "TypeError"
    assert s.value("add") == 6


def test_c_that_does_not_compile(daemon):
    response = daemon.request("POST", "/v1/sessions", json={"language": "c", "code": "int f(void) { return x; }"})
    result = response.json()
    assert response.status == 422 and result["error"]["type"] == "CompileError", response
    assert "user_code.c:1" in result["error"]["message"] and "error:" in result["stderr"]


# ---- the end of a process ----


@pytest.mark.parametrize("language", SCRIPTS)
def test_exit_ends_the_process_and_the_next_call_says_so(session, language):
    s = session(language)
    s.value("add", 5)
    result = s.call("leave", 3)
    assert result["status"] == "error" and result["exitCode"] == 3, result
    assert result["session"]["restarted"] and result["session"]["reason"] == "exit"
    after = s.call("add")
    assert after["result"] == 1 and after["session"]["generation"] == 2
    assert after["session"]["restarted"] and after["session"]["reason"] == "exit"
    assert not s.call("add")["session"]["restarted"]


@pytest.mark.parametrize("language, name", [(PY, "SIGSEGV"), (JS, "SIGSEGV"), (RB, "SIGABRT"),
                                            (PHP, "SIGALRM")])
def test_a_crash_is_named(session, language, name):
    s = session(language)
    result = s.call("crash")
    assert result["status"] == "crash" and result["termination"]["signal"] == name, result
    assert result["session"]["restarted"] and result["session"]["reason"] == "signal"
    assert s.value("add") == 1


def test_memory_beyond_the_limit_ends_the_process_not_the_session(session):
    s = session(PY, "def f(n):\n    return len(bytearray(n << 20))")
    result = s.call("f", 4096)
    assert result["status"] == "error", result
    if result["error"]["type"] != "MemoryError":
        assert result["error"]["type"] == "MemoryLimitError" and result["session"]["restarted"]
    assert s.value("f", 1) == 1 << 20


def test_a_process_that_ends_while_idle_is_started_by_the_next_call(session):
    s = session(PY, "import os, threading\nn = 0\ndef f():\n    global n\n    n += 1\n    return n\n"
                    "def soon():\n    threading.Timer(0.05, os._exit, [4]).start()")
    s.value("f")
    s.value("soon")
    s.wait_state("down")
    result = s.call("f")
    assert result["result"] == 1 and result["session"]["generation"] == 2
    assert result["session"]["restarted"] and result["session"]["reason"] == "exit"


@pytest.mark.parametrize("language, code, kind", [
    (PY, "x = 1 / 0", "ZeroDivisionError"), (PY, "def f(:", "SyntaxError"),
    (PY, "import sys; sys.exit(5)", "SystemExit"),
    (JS, "throw new TypeError('no')", "TypeError"), (JS, "function (", "SyntaxError"),
    (RB, "raise 'no'", "RuntimeError"), (RB, "def f(", "SyntaxError"), (RB, "exit 5", "SystemExit"),
    (PHP, "throw new LogicException('no');", "LogicException"), (PHP, "function (", "ParseError"),
    (PHP, "exit(5);", "ExitError"),
])
def test_code_that_cannot_be_loaded_makes_no_session(daemon, language, code, kind):
    response = daemon.request("POST", "/v1/sessions", json={"language": language, "code": code})
    assert response.status == 422, response
    result = response.json()
    assert result["status"] == "error" and result["error"]["type"] == kind, result
    assert "id" not in result


def test_code_that_cannot_be_loaded_again(session):
    s = session(PY, "import os\nif os.path.exists('/tmp/x'):\n    raise ValueError('twice')\n"
                    "def soil():\n    open('/tmp/x', 'w').close()\ndef f():\n    return 1")
    s.value("soil")
    result = s.reset("soft")
    assert result["status"] == "error" and result["error"]["message"] == "twice"
    # The process is gone, and with it its files: the next one can be loaded.
    assert s.value("f") == 1


# ---- time ----


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_call_that_takes_too_long_is_interrupted(session, language):
    s = session(language)
    s.value("add", 3)
    result = s.call("spin", timeout=0.2)
    assert result["status"] == "timeout" and result["exitCode"] == 124, result
    assert result["error"]["type"] == "TimeoutError" and result["session"]["interrupted"]
    assert not result["session"]["restarted"] and result["termination"]["reason"] == "timeout"
    after = s.call("add")
    assert after["result"] == 4 and not after["session"]["restarted"]


@pytest.mark.parametrize("language", SCRIPTS)
def test_one_that_does_not_listen_is_killed(make_daemon, session, language):
    daemon = make_daemon(FUNCTION_INTERRUPT_MS=100)
    s = session(language, on=daemon)
    s.value("add", 3)
    result = s.call("stubborn", timeout=0.2)
    assert result["status"] == "timeout" and result["exitCode"] == 124, result
    assert result["session"]["restarted"] and result["session"]["reason"] == "timeout"
    after = s.call("add")
    assert after["result"] == 1 and after["session"]["restarted"]


def test_what_waits_is_interrupted_too(session):
    s = session(PY, "import time, asyncio, subprocess\nlog = []\n"
                    "def sleep():\n    try:\n        time.sleep(60)\n    finally:\n        log.append('slept')\n"
                    "async def wait():\n    try:\n        await asyncio.sleep(60)\n    finally:\n"
                    "        log.append('waited')\n"
                    "def child():\n    subprocess.run(['sleep', '60'])\ndef seen():\n    return log")
    for name in ("sleep", "wait", "child"):
        result = s.call(name, timeout=0.2)
        assert result["status"] == "timeout" and not result["session"]["restarted"], result
    assert s.value("seen") == ["slept", "waited"]
    js = session(JS, "let n = 0; exports.wait = () => { n++; return new Promise(() => {}) }; exports.n = () => n")
    assert js.call("wait", timeout=0.2)["status"] == "timeout"
    assert js.value("n") == 1


def test_an_interruption_never_hits_the_next_call(session):
    """Calls that end just when their time is up."""
    s = session(PY, "import time\ndef nap(s):\n    time.sleep(s)\n    return 1\ndef f():\n    return 2")
    for _ in range(20):
        result = s.call("nap", 0.02, timeout=0.02)
        assert result["status"] in ("success", "timeout")
        assert s.value("f") == 2


def test_loading_has_a_limit_too(daemon):
    response = daemon.request("POST", "/v1/sessions", json={
        "language": PY, "code": "while True: pass", "timeout": 0.3})
    assert response.status == 422 and response.json()["status"] == "timeout", response


def test_cpu_time_is_limited_per_call(make_daemon, session):
    harness.need(harness.FULL, "CPU time of a call is counted by control groups")
    s = session(PY, "import time\ndef f(s):\n    end = time.process_time() + s\n"
                    "    while time.process_time() < end: pass\n    return 1",
                on=make_daemon(CPU_TIME_MAX=1))
    for _ in range(3):
        assert s.value("f", 0.5) == 1
    result = s.call("f", 20)
    assert result["termination"]["reason"] == "cpu" and result["session"]["restarted"], result


# ---- turns ----


def test_concurrent_calls_take_turns(session):
    s = session(PY, "import threading, time\ninside = 0\nlog = []\n"
                    "def f(i):\n    global inside\n    assert inside == 0\n    inside += 1\n"
                    "    time.sleep(0.002)\n    inside -= 1\n    log.append(i)\n    return i\n"
                    "def seen():\n    return log")
    connections = [s.send("f", i) for i in range(20)]
    assert [c.receive().json()["result"] for c in connections] == list(range(20))
    assert sorted(s.value("seen")) == list(range(20))
    for c in connections:
        c.close()


GATE = ("import os, time\ndef hold():\n    open('/workspace/held', 'w').close()\n"
        "    while not os.path.exists('/workspace/go'):\n        time.sleep(0.002)\n    return 'held'\n"
        "def f():\n    return 'f'")


def test_so_many_wait_and_no_more(make_daemon, session):
    daemon = make_daemon(FUNCTION_SESSION_QUEUE=2)
    s = session(PY, GATE, on=daemon)
    first = s.send("hold", timeout=20)
    s.wait_state("busy")
    waiting = [s.send("f") for _ in range(2)]
    harness.wait_until(lambda: s.look()["queued"] == 2, "both wait")
    refused = s.request("POST", "/call", json={"functionName": "f"})
    assert refused.status == 503 and refused.headers["Retry-After"], refused
    waiting.pop().close()  # one that leaves makes room
    harness.wait_until(lambda: s.look()["queued"] == 1, "its place is free")
    first.close()  # and the one that holds it is interrupted
    assert waiting[0].receive().json()["result"] == "f"
    waiting[0].close()


def test_none_may_wait(make_daemon, session):
    s = session(PY, GATE, on=make_daemon(FUNCTION_SESSION_QUEUE=0))
    assert s.value("f") == "f"
    held = s.send("hold", timeout=20)
    s.wait_state("busy")
    assert s.request("POST", "/call", json={"functionName": "f"}).status == 503
    held.close()


def test_sessions_are_counted(make_daemon, session):
    daemon = make_daemon(FUNCTION_SESSIONS_MAX=2)
    one, two = session(PY, on=daemon), session(PY, on=daemon)
    refused = daemon.request("POST", "/v1/sessions", json={"language": PY, "code": "x = 1"})
    assert refused.status == 503 and "FUNCTION_SESSIONS_MAX" in refused.json()["error_detail"]
    assert one.delete() == 204
    session(PY, on=daemon)
    listed = daemon.request("GET", "/v1/sessions").json()["sessions"]
    assert len(listed) == 2 and two.id in [s["id"] for s in listed]


def test_a_client_that_leaves_ends_its_call(session):
    s = session(PY, "import time\nlog = []\ndef f():\n    log.append('in')\n    try:\n        time.sleep(60)\n"
                    "    finally:\n        log.append('out')\ndef seen():\n    return log")
    connection = s.send("f", timeout=50)
    s.wait_state("busy")
    connection.close()
    assert s.value("seen")[-1:] in (["out"], [])  # it may not even have begun


# ---- looking, resetting, ending ----


def test_looking_at_sessions(session):
    s = session(PY, timeout=7, idleTimeout=90)
    s.value("add")
    seen = s.look()
    assert seen["id"] == s.id and seen["language"] == PY and seen["state"] == "idle"
    assert seen["calls"] == 1 and seen["queued"] == 0 and seen["generation"] == 1
    assert seen["timeout"] == 7 and seen["idleTimeout"] == 90
    assert seen["limits"]["memoryMb"] == 512
    assert seen["usage"] or not harness.FULL, "control groups count it"


@pytest.mark.parametrize("language", SCRIPTS)
def test_resets(session, language):
    s = session(language)
    s.value("add", 5)
    s.value("touch", "kept")
    pid = s.value("pid")
    soft = s.reset("soft")
    assert soft["status"] == "success" and not soft["session"]["restarted"]
    if soft["session"]["reset"] == "soft":
        assert language in (PY, JS) and s.value("pid") == pid and s.value("files") == ["kept"]
        assert soft["session"]["generation"] == 1
    assert s.value("add") == 1
    s.value("touch", "more")
    hard = s.reset("hard")
    assert hard["session"]["reset"] == "hard" and hard["status"] == "success"
    after = s.call("add")
    assert after["result"] == 1 and not after["session"]["restarted"]
    assert s.value("files") == []


def test_a_soft_reset_loads_what_lies_beside_the_code_anew(session):
    code = "import lib\ndef f():\n    lib.n += 1\n    return [lib.n, __file__]"
    s = session(PY, code, options={"files": {"lib.py": "n = 0"}})
    assert [s.value("f") for _ in range(2)] == [[1, "/workspace/user_code.py"], [2, "/workspace/user_code.py"]]
    assert s.reset("soft")["session"]["reset"] == "soft"
    assert s.value("f")[0] == 1


def test_a_reset_takes_its_turn(session):
    s = session(PY)
    slow = s.send("spin", timeout=0.3)
    s.wait_state("busy")
    assert s.reset("context")["session"]["reset"] == "hard"
    assert slow.receive().json()["status"] == "timeout"
    slow.close()


def test_idle_sessions_go(session):
    s = session(PY, idleTimeout=0.3)
    s.value("add")
    harness.wait_until(lambda: s.request("GET").status == 404, "it is gone")


def test_delete_ends_what_runs(daemon, session):
    s = session(PY)
    mark = harness.marker()
    s2 = session(PY, f"import subprocess\ndef f():\n    subprocess.run(['{mark}', '77'], executable='/bin/sleep')")
    running = s2.send("f", timeout=50)
    s2.wait_state("busy")
    waiting = s2.send("f")
    harness.wait_until(lambda: s2.look()["queued"] == 1, "one waits")
    harness.wait_until(lambda: harness.processes_with(mark), "the child runs")
    assert s2.delete() == 204
    harness.wait_until(lambda: not harness.processes_with(mark), "the child is dead")
    for connection in (running, waiting):
        result = connection.receive().json()
        assert result["status"] == "terminated" and result["exitCode"] == 143, result
        connection.close()
    assert s2.request("GET").status == 404 and s2.delete() == 404
    assert s2.request("POST", "/call", json={"functionName": "f"}).status == 404
    assert s.value("add") == 1


def test_nothing_of_a_session_is_left(make_daemon):
    daemon = make_daemon(POOL_PYTHON=1, POOL_NODE=0, POOL_EXEC=1, POOL_MEMORY=0)
    before, pools = None, ("exec", "python") if harness.JAIL == "native" else ("exec",)

    def descriptors():  # slots stay for the next ones
        return sum(not is_live_group(target) for target in targets(daemon.pid))

    def is_full():
        text = daemon.request("GET", "/metrics").text
        return all(f'sandbox_pool{{template="{name}",state="ready"}} 1\n' in text for name in pools)

    for i in range(4):
        s = Session(daemon, PY)
        s.value("add")
        assert s.delete() == 204
        if i == 0:  # the first one may have warmed something, and what is prepared has descriptors, too
            harness.wait_until(is_full, "pools are full")
            before = descriptors()
    harness.wait_until(lambda: descriptors() <= before + 4, "descriptors are back")


def test_sessions_do_not_see_each_other(session):
    one, two = session(PY), session(PY)
    one.value("add", 5)
    one.value("touch", "mine")
    assert two.value("add") == 1 and two.value("files") == []


# ---- what the program may write ----

FORGE = """
import os
def f(kind):
    frame = {frame}
    for fd in range(3, 256):
        try:
            os.write(fd, frame)
        except OSError:
            pass
    return "real"
def g():
    return "fine"
"""


@pytest.mark.parametrize("frame", [
    'b"R" + b"%08x" % 6 + b\'"fake"\'', 'b"R" + b"%08x" % 22 + b"0" * 16 + b\'"fake"\'',
    'b"E" + b"%08x" % 2 + b"{}"', 'b"I00000001" + b"1"', 'b"Y00000000"', 'b"\\0" * 100',
    'b"R" + b"f" * 8', 'b"hello, world"', 'b"F00000000"'])
def test_forged_frames_are_no_answers(session, frame):
    s = session(PY, FORGE.format(frame=frame))
    for name in ("f", "f"):
        result = s.call(name, "x")
        assert result["status"] == "error" and result.get("result") is None, result
        assert result["error"]["type"] in ("ResultError", "ResultTooLarge"), result
        assert result["session"]["restarted"] and result["session"]["reason"] == "protocol"
        assert s.value("g") == "fine"


def test_markers_on_standard_output_are_only_output(session):
    s = session(PY, "import sys, os\ndef f():\n    for fd in (1, 2):\n"
                    "        os.write(fd, b'R00000006\"fake\"')\n    return 'real'")
    result = s.call("f")
    assert result["result"] == "real" and result["stdout"] == result["stderr"] == 'R00000006"fake"'


def test_a_channel_that_was_closed(session):
    s = session(PY, "import os, time\ndef f():\n    os.close(3)\n    time.sleep(30)\ndef g():\n    return 1")
    result = s.call("f", timeout=25)
    assert result["status"] == "error" and result["session"]["restarted"], result
    assert s.value("g") == 1


def test_a_copy_of_the_process_answers_nothing(session):
    s = session(PY, "import os\nn = 0\ndef f():\n    global n\n    n += 1\n    os.fork()\n    return [n, os.getpid()]")
    first, second = s.value("f"), s.value("f")
    assert first[0] == 1 and second[0] == 2 and first[1] == second[1]


# ---- generators ----

GENERATORS = [
    (PY, "def g(n):\n    for i in range(n):\n        yield {'i': i}\n    return 'end'", "end"),
    (PY, "import asyncio\nasync def g(n):\n    for i in range(n):\n        await asyncio.sleep(0)\n"
         "        yield {'i': i}", None),
    (JS, "function* g(n) { for (let i = 0; i < n; i++) yield { i }; return 'end' }", "end"),
    (JS, "async function* g(n) { for (let i = 0; i < n; i++) { await null; yield { i } } }", None),
]


@pytest.mark.parametrize("language, code, end", GENERATORS)
def test_items_are_streamed(session, language, code, end):
    s = session(language, code)
    found = list(s.stream("g", 5))
    assert [(event, data) for event, data, _ in found[:-1]] == [("item", {"i": i}) for i in range(5)]
    event, result, _ = found[-1]
    assert event == "result" and result["status"] == "success" and result["items"] == 5
    assert result["result"] == end
    assert s.value("g", 3) == [{"i": i} for i in range(3)]  # without a stream: a list


def test_each_item_is_sent_when_it_is_made(session):
    s = session(PY, "import os, time\ndef g():\n    yield 1\n    while not os.path.exists('go'):\n"
                    "        time.sleep(0.002)\n    yield 2")
    js = session(JS, "async function* g() { yield 1; await new Promise((r) => { setTimeout(r, 300) }); yield 2 }")
    for one in (s, js):
        stream = one.stream("g", timeout=0.5 if one is s else 10)
        events = iter(stream)
        assert next(events)[:2] == ("item", 1)
        rest = [event for event, _, _ in events]
        assert rest[-1] == "result"


@pytest.mark.parametrize("language", [PY, JS])
def test_what_is_no_generator_is_one_result(session, language):
    s = session(language)
    found = list(s.stream("echo", [1, 2]))
    assert len(found) == 1 and found[0][0] == "result" and found[0][1]["result"] == [1, 2]
    found = list(s.stream("fail", "no"))
    assert found[0][1]["error"]["type"] == ERRORS[language]


@pytest.mark.parametrize("language, code, kind", [
    (PY, "def g():\n    yield 1\n    raise KeyError('x')", "KeyError"),
    (JS, "function* g() { yield 1; throw new TypeError('x') }", "TypeError"),
    (PY, "def g():\n    yield 1\n    yield object", "TypeError"),
])
def test_a_generator_that_fails(session, language, code, kind):
    found = list(session(language, code).stream("g"))
    assert found[0][:2] == ("item", 1)
    assert found[1][1]["status"] == "error" and found[1][1]["error"]["type"] == kind
    assert found[1][1]["items"] == 1


ENDLESS = {
    PY: "closed = 0\nmade = 0\ndef g(size):\n    global closed, made\n    try:\n        while True:\n"
        "            made += 1\n            yield 'x' * size\n    finally:\n        closed += 1\n"
        "def seen():\n    return closed\ndef count():\n    return made",
    JS: "let closed = 0, made = 0; function* g(size) { try { for (;;) { made++; yield 'x'.repeat(size) } }"
        " finally { closed++ } }\nfunction seen() { return closed }\nfunction count() { return made }",
}


@pytest.mark.parametrize("language", [PY, JS])
def test_a_client_that_leaves_closes_the_generator(session, language):
    s = session(language, ENDLESS[language])
    stream = s.stream("g", 10, timeout=50)
    events = iter(stream)
    for _ in range(3):
        assert next(events)[0] == "item"
    stream.close()
    assert s.value("seen") == 1
    assert s.look()["generation"] == 1


@pytest.mark.parametrize("language", [PY, JS])
def test_a_slow_reader_slows_the_generator(session, language):
    s = session(language, ENDLESS[language])
    stream = s.stream("g", 100000, timeout=1)
    first = next(iter(stream))
    assert first[0] == "item"
    result = None
    time.sleep(1.2)  # not reading is what is tested
    for event, data, _ in stream:
        result = data if event == "result" else result
    assert result["status"] == "timeout" and not result["session"]["restarted"], result
    assert s.value("count") < 1000  # some in every buffer on the way, but not what a second can make
    assert s.value("seen") == 1


# ---- requests that are none ----


def test_bad_requests(daemon, session):
    s = session(PY)
    for body, words in [
        ({}, "functionName"), ({"functionName": 5}, "functionName"), ({"functionName": "f", "args": 1}, "args"),
        ({"functionName": "f", "kwargs": []}, "kwargs"), ({"functionName": "f", "timeout": -1}, "timeout"),
        ({"functionName": "f", "timeout": 7200}, "timeout"), ([], "body"),
    ]:
        refused = s.request("POST", "/call", json=body)
        assert refused.status == 400 and words in refused.json()["error_detail"], refused
        streamed = s.request("POST", "/call", json=body, headers={"Accept": "text/event-stream"})
        assert streamed.status == 400
    assert s.request("POST", "/call", body="{").status == 400
    assert s.request("POST", "/reset", json={"level": "none"}).status == 400
    for body in ({}, {"language": PY}, {"language": PY, "code": "", "idleTimeout": -1}, []):
        assert daemon.request("POST", "/v1/sessions", json=body).status == 400
    assert daemon.request("GET", "/v1/sessions/nope").status == 404
    assert daemon.request("DELETE", "/v1/sessions/nope").status == 404
    assert daemon.request("PUT", f"/v1/sessions/{s.id}").status == 405
    assert daemon.request("GET", "/v1/sessions", headers={"Authorization": "Bearer no"}).status == 401
    assert s.value("add") == 1


@pytest.mark.parametrize("fields, kind", [
    ({"language": "cobol"}, "UnsupportedLanguage"), ({"language": "perl"}, "LanguageNotAvailable"),
    ({"engine": "wasm"}, "EngineNotAvailable"),
    ({"options": {"mount": {"dirs": {"/data": "/tmp"}}}}, "PermissionDeniedError"),
    ({"code": "a\0b"}, "ValueError"), ({"timeout": 7200}, "ValueError")])
def test_what_cannot_be_a_session(daemon, fields, kind):
    response = daemon.request("POST", "/v1/sessions", json={"language": PY, "code": "x = 1", **fields})
    assert response.status == 422 and response.json()["error"]["type"] == kind, response


def test_files_environment_and_directory(session):
    s = session(PY, "import os, helper\ndef f():\n    return [os.getcwd(), os.environ['A'], helper.x, open('d/t').read()]",
                options={"files": {"helper.py": "x = 5", "d/t": "text"}, "env": {"A": "b"}, "workdir": "/app"})
    assert s.value("f") == ["/app", "b", 5, "text"]


# ---- the daemon's end ----


def test_shutdown_with_live_sessions(make_daemon):
    daemon = make_daemon(SHUTDOWN_GRACE=1)
    idle, busy = Session(daemon, PY), Session(daemon, JS)
    idle.value("add")
    running = busy.send("spin", timeout=50)
    busy.wait_state("busy")
    waiting = busy.send("add")
    harness.wait_until(lambda: busy.look()["queued"] == 1, "one waits")
    daemon.signal(signal.SIGTERM)
    for connection in (running, waiting):
        result = connection.receive().json()
        assert result["status"] == "terminated" and result["termination"]["reason"] == "shutdown", result
        connection.close()
    assert daemon.wait() == 143


def test_many_sessions_at_once(daemon, session):
    results = {}

    def work(number, language):
        s = Session(daemon, language)
        results[number] = [s.value("add") for _ in range(5)]
        s.delete()

    threads = [threading.Thread(target=work, args=each) for each in enumerate(SCRIPTS * 2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert list(results.values()) == [[1, 2, 3, 4, 5]] * 8, json.dumps(list(results.values()))


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_null_that_is_given_by_name_is_a_hole(session, language):
    code = {"python": "def f(a, b):\n    return [a, b]", "javascript": "function f(a, b) { return [a, b] }",
            "ruby": "def f(a, b)\n  [a, b]\nend", "php": "function f($a, $b) { return [$a, $b]; }"}[language]
    s = session(language, code)
    assert s.value("f", None, 2, kwargs={"a": 1}) == [1, 2]
    assert s.call("missing")["meta"]["signatureSource"] == "convention"
