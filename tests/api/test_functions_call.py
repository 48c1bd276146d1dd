# SPDX-License-Identifier: MIT
"""POST /v1/functions/call: what each language does with arguments, results and failures."""
import base64
import os
import tempfile

import pytest

import harness
from test_limits import queued


def call(daemon, language, code, function="f", args=(), **fields):
    body = {"language": language, "code": code, "args": args, **fields}
    if function:
        body["functionName"] = function
    response = daemon.request("POST", "/v1/functions/call", json=body)
    assert response.status == 200, response
    return response.json()


def value(daemon, *a, **k):
    result = call(daemon, *a, **k)
    assert result["status"] == "success" and result["success"] is True, result
    return result["result"]


def error(daemon, *a, **k):
    result = call(daemon, *a, **k)
    assert result["status"] == "error" and "result" not in result, result
    assert result["exitCode"] != 0 and result["success"] is False
    return result["error"]


PY, JS, RB, PHP, C, CPP = "python", "javascript", "ruby", "php", "c", "cpp"

VALUES = [
    # Python
    (PY, "async def f(x):\n    return x", [1], 1),
    (PY, "def f():\n    yield 1\n    yield 2", [], [1, 2]),
    (PY, "async def f():\n    yield 1", [], [1]),
    (PY, "def f():\n    return {'a': {3, 1, 2}, 'b': b'x', 'c': (1,)}", [],
     {"a": [1, 2, 3], "b": "x", "c": [1]}),
    (PY, "class A:\n    def __init__(s):\n        s.x = 1\n        s._y = 2\ndef f():\n    return [A()]",
     [], [{"x": 1}]),
    (PY, "def f(x):\n    return x + 1", [12345678901234567890123], 12345678901234567890124),
    (PY, "def f(x):\n    return type(x).__name__", [1.0], "float"),
    (PY, "def f(a, /, b, *, c=3):\n    return [a, b, c]", {"a": 1, "b": 2}, [1, 2, 3]),
    (PY, "def f(a, b=5, c=7):\n    return [a, b, c]", [1, {"index": 2, "value": 9}], [1, 5, 9]),
    (PY, "def f(x):\n    return x", [{"index": 0, "value": 1, "extra": 2}],
     {"index": 0, "value": 1, "extra": 2}),
    (PY, "import sys\ndef f():\n    return sys.stdin.read()", [], ""),
    # JavaScript
    (JS, "async function f(x) { await null; return x }", [1], 1),
    (JS, "const f = x => x * 2", [4], 8),
    (JS, "export default function f(a) { return a }", [4], 4),
    (JS, "module.exports = { f: (a) => a + 1 }", [4], 5),
    (JS, "import { readFileSync } from 'fs';\nexport const f = () => typeof readFileSync", [],
     "function"),
    (JS, "function f() { return new Promise(r => setTimeout(() => r(5), 5)) }", [], 5),
    (JS, "function f(a, b = 5, c = 7) { return [a, b, c] }", {"a": 1, "c": 3}, [1, 5, 3]),
    (JS, "function f({ x, y = 2 }) { return x + y }", {"x": 1}, 3),
    (JS, "function f(a, ...xs) { return [a, xs] }", [1, 2, 3], [1, [2, 3]]),
    (JS, "function* f() { yield 1; yield 2 }", [], [1, 2]),
    (JS, "function f() {}", [], None),
    (JS, "function größe() { return new Date(0) }\nconst f = größe", [], "1970-01-01T00:00:00.000Z"),
    (JS, "function f(x) { return x }", [9007199254740994], 9007199254740994),
    (JS, "module.exports = { k: 2, f(x) { return this.k + x } }", [1], 3),
    # Ruby
    (RB, "def f(a, b = 10, c = 20)\n  [a, b, c]\nend", {"a": 1, "c": 3}, [1, 10, 3]),
    (RB, "def f(a, b = 10, c = 20)\n  [a, b, c]\nend", [1, {"index": 2, "value": 3}], [1, 10, 3]),
    (RB, "def f(a, k:, m: 5)\n  [a, k, m]\nend", {"a": 1, "k": 2}, [1, 2, 5]),
    (RB, "def f(a, *r, **k)\n  [a, r, k]\nend", [1, 2], [1, [2], {}]),
    (RB, "def f(s)\n  s\nend", ["#{1 + 1} #$0 \" \\"], "#{1 + 1} #$0 \" \\"),
    (RB, "require 'set'\nP = Struct.new(:x)\ndef f\n  [P.new(1), 1..3, :s, Set[4]]\nend", [],
     [{"x": 1}, [1, 2, 3], "s", [4]]),
    (RB, "def f(x)\n  x + 1\nend", [12345678901234567890123], 12345678901234567890124),
    (RB, "def f(a, b = a + 1, *c, d, e: 5)\n  [a, b, c, d, e]\nend", [1, 9], [1, 2, [], 9, 5]),
    (RB, "def f\n  [1r, 1e20, 0.5, {a: 'x\"y'}]\nend", [], ["1/1", 1e20, 0.5, {"a": 'x"y'}]),
    (RB, "def f\n  JSON.parse('[1]')\nend", [], [1]),
    (RB, "class A\n  def to_json(*a) = { q: 1 }.to_json(*a)\nend\nf = ->(x, y = 2) { [x, y, A.new] }", {"x": 1},
     [1, 2, {"q": 1}]),
    # PHP
    (PHP, "function f($x) { return $x; }", [9223372036854775807], 9223372036854775807),
    (PHP, "function f($x) { return $x; }", [-9223372036854775808], -9223372036854775808),
    (PHP, "$base = 5;\nfunction g() { global $base; return $base; }\n$read = g();\n"
     "function f() { return [$GLOBALS['read'], new DateTime('@0')]; }", [],
     [5, {"date": "1970-01-01 00:00:00.000000", "timezone_type": 1, "timezone": "+00:00"}]),
    (PHP, "$f = fn($a, $rest = []) => [$a, $rest];", {"a": 1, "zz": 3}, [1, {"zz": 3}]),
    (PHP, "function f(int $a, int $b = 5, ...$r) { return [$a, $b, $r]; }", {"a": 1, "zz": 3},
     [1, 5, {"zz": 3}]),
    (PHP, "function f($a, $options = []) { return [$a, $options]; }", {"a": 1, "zz": 3},
     [1, {"zz": 3}]),
    (PHP, "class A { public $x = 1; private $y = 2; }\nfunction f() { return [new A, (function () { yield 1; })()]; }",
     [], [{"x": 1}, [1]]),
    (PHP, "<?php\nfunction f() { return [__DIR__, mb_strlen('é'), 0.1 + 0.2]; }", [],
     ["/workspace", 1, 0.30000000000000004]),
    # C
    (C, "#include <stdint.h>\nint64_t f(int64_t x) { return x - 1; }", [9223372036854775807],
     9223372036854775806),
    (C, "unsigned long f(unsigned long x) { return x; }", [18446744073709551615],
     18446744073709551615),
    (C, "int f(int a, int b) { return a - b; }", {"b": 1, "a": 5}, 4),
    (C, "const char *f(const char *s) { return s; }", [None], None),
    (C, "float f(float x) { return x * 1.1f; }", [1], 1.1),
    (C, "#include <stdbool.h>\nbool f(bool b) { return !b; }", [True], False),
    (C, "#include <string.h>\nint f(const char *json) { return (int)strlen(json); }", [{"a": [1]}], 10),
    (C, "int f(char *names[], int n) { return names[n - 1][0]; }", [["a", "b"], 2], 98),
    (C, "int f(void) { return 3; }\nint main(void) { return f(); }", [], 3),
    # C++
    (CPP, "#include <string>\nstd::string f(const std::string &s) { return s + s; }", ["a\0b"],
     "a\0ba\0b"),
    (CPP, "#include <vector>\nstd::vector<double> f(std::vector<int> v) { return {v[0] / 2.0}; }",
     [[1, 2]], [0.5]),
    (CPP, "#include <map>\n#include <string>\nstd::map<std::string, int> f(std::map<std::string, int> m) { m[\"z\"] = 1; return m; }",
     [{"a": 1}], {"a": 1, "z": 1}),
    (C, "#ifdef __GNUC__\nconst char *f(void) { return \"gnu\"; }\n#else\nint f(void) { return 0; }\n#endif", [], "gnu"),
    (C, "#if 1\ndouble f(double a) { return a / 2; }\n#else\nint f(int a) { return -a; }\n#endif", [7], 3.5),
    (CPP, "#if 1\ndouble f(double a) { return a / 2; }\n#else\nint f(int a) { return -a; }\n#endif", [7], 3.5),
    (C, "#if __GNUC__ < 2\nint f(int a) { return -a; }\n#else\nstatic inline const double f(const double a) { return a / 2; }\n#endif",
     [7], 3.5),
    (C, "#if __GNUC__ < 2\nint f(int n) { return n; }\n#else\nconst char *f(const char *s, int a[], unsigned long n) { return s + a[n]; }\n"
     "#endif", ["abc", [0, 2], 1], "c"),
    (CPP, "int f(int a, int b = 10) { return a + b; }", [1], 11),
    (CPP, "int f(int a, int b = 4);\nint f(int a, int b) { return a + b; }", [7], 11),
    (CPP, "#include <string>\n#include <string_view>\n#include <unordered_map>\nenum class E : char { A = 7 };\n"
     "std::unordered_map<std::string, int> f(std::string_view k, E e) { return {{std::string(k), (int)e}}; }",
     ["a", 7], {"a": 7}),
]


@pytest.mark.parametrize("language,code,args,expected", VALUES,
                         ids=[f"{v[0]}-{i}" for i, v in enumerate(VALUES)])
def test_value(daemon, language, code, args, expected):
    got = value(daemon, language, code, args=args)
    assert got == expected and type(got) is type(expected)


ERRORS = [
    (PY, "def f():\n    return float('nan')", [], "ValueError", "JSON"),
    (PY, "def f():\n    x = []\n    x.append(x)\n    return x", [], "ValueError", "Circular"),
    (PY, "def f(a, b):\n    pass", [1], "TypeError", "'b'"),
    (PY, "def f():\n    import os\n    os._exit(0)", [], "NoResult", "exit code 0"),
    (PY, "x = 1", [], "AttributeError", "'f' not found"),
    (PY, "import pathlib\ndef f():\n    return pathlib.Path('/a')", [], "TypeError", "Path is not JSON"),
    (JS, "function f() { return 10n }", [], "TypeError", "BigInt"),
    (JS, "function f(x) { return x }", [9007199254740993], "TypeError", "9007199254740993"),
    (JS, "function f(x) { return x }", [-9223372036854775808], "TypeError", "-9223372036854775808"),
    (JS, "function f() { const a = {}; a.a = a; return a }", [], "TypeError", "circular"),
    (JS, "import 'nowhere'\nexport function f() {}", [], "Error", "imported from /workspace/user_code.js"),
    (JS, "function f() { return f() }", [], "RangeError", "call stack"),
    (JS, "function f() { process.exit(0) }", [], "NoResult", "exit code 0"),
    (JS, "function f() { return new Promise(() => {}) }", [], "Error", "never settled"),
    (JS, "function f() { throw null }", [], "Error", "null"),
    (RB, "def f\n  1 +\nend", [], "SyntaxError", "user_code.rb:3"),
    (RB, "def f\n  raise NotImplementedError, 'x'\nend", [], "NotImplementedError", "x"),
    (RB, "def f\n  f\nend", [], "SystemStackError", "stack"),
    (RB, "def f\n  exit 0\nend", [], "SystemExit", "exit(0)"),
    (RB, "def f\n  Float::NAN\nend", [], "JSON::GeneratorError", "NaN"),
    (RB, "x = 1", [], "NoMethodError", "'f' not found"),
    (PHP, "function f( {", [], "ParseError", "syntax error"),
    (PHP, "function f() { } function f() { }", [], "FatalError", "redeclare"),
    (PHP, "function f() { trigger_error('told', E_USER_ERROR); }", [], "FatalError", "told"),
    (PHP, "function f() { exit(0); }", [], "NoResult", "exit code 0"),
    (PHP, "function f($a) { }", [], "ArgumentCountError", "0 passed and exactly 1 expected"),
    (PHP, "function f() { return NAN; }", [], "JsonException", "NaN"),
    (PHP, "function f($a) { return $a; }", {"a": 1, "zz": 2}, "Error", "zz"),
    (PHP, "function f($x) { return $x; }", [9223372036854775808], "TypeError", "9223372036854775808"),
    (C, "int f(int x) { return x; }", [3000000000], "RangeError", "'x'"),
    (C, "int f(int a, int b) { return a; }", [1], "TypeError", "'b'"),
    (C, "int f(int a) { return a; }", [1, 2], "TypeError", "takes 1"),
    (C, "int f(int a) { return a; }", {"a": 1, "q": 2}, "TypeError", "\"q\""),
    (C, "int f(const char *s) { return 1; }", ["a\0b"], "ValueError", "U+0000"),
    (C, "int f(int a) {\n  return b;\n}", [1], "CompileError", "user_code.c:2"),
    (C, "struct s { int a; };\nint f(struct s x) { return x.a; }", [1], "SignatureError", "'x'"),
    (C, "#include <stdlib.h>\nint f(void) { exit(0); }", [], "NoResult", "exit code 0"),
    (C, "#if __GNUC__ > 2\nconst char *f(void) { return \"x\"; }\n#else\nint f(void) { return 0; }\n#endif", [],
     "CompileError", "defined more than once"),
    (C, "#if __GNUC__ > 2\ndouble f(double a) { return a / 2; }\n#else\nint f(int a) { return -a; }\n#endif", [7],
     "CompileError", "defined more than once"),
    (CPP, "#if __GNUC__ > 2\nint f(int a) { return a; }\n#else\nvoid f(int a) {}\n#endif", [7],
     "CompileError", "defined more than once"),
    (CPP, "#include <stdexcept>\nint f() { throw std::runtime_error(\"bad\"); }", [],
     "std::runtime_error", "bad"),
    (CPP, "int f() { throw \"words\"; }", [], "const char *", "words"),
    (CPP, "int f(int a) { return 1; }\nint f(double a) { return 2; }", [1], "SignatureError", ""),
]


@pytest.mark.parametrize("language,code,args,kind,words", ERRORS,
                         ids=[f"{v[0]}-{i}" for i, v in enumerate(ERRORS)])
def test_error(daemon, language, code, args, kind, words):
    got = error(daemon, language, code, args=args)
    assert got["type"] == kind and words in got["message"], got


STACKS = [
    (PY, "def g():\n    raise KeyError('k')\ndef f():\n    g()", "user_code.py\", line 2, in g"),
    (JS, "function g() {\n  throw new TypeError('bad')\n}\nfunction f() { g() }", "g (/workspace/user_code.js:2:"),
    (RB, "def g\n  raise 'x'\nend\ndef f\n  g\nend", "/workspace/user_code.rb:2:in `g'"),
    (PHP, "function g() {\n  throw new Exception('x');\n}\nfunction f() { g(); }", "/workspace/user_code.php:2"),
]


@pytest.mark.parametrize("language,code,line", STACKS, ids=[s[0] for s in STACKS])
def test_stacks_show_the_programs_own_lines(daemon, language, code, line):
    stack = error(daemon, language, code)["stack"]
    assert line in stack
    assert "sandbox" not in stack and "handler" not in stack, stack


@pytest.mark.parametrize("code", ["def f():\n    1/0", "s = '\u2028\f\x85'\r\ndef f():\r    1/0"])
def test_carets_of_python_stand_below_what_failed(daemon, code):
    assert "\n    1/0\n    ~^~\n" in error(daemon, PY, code)["stack"]


@pytest.mark.parametrize("language,code,function,lines", [
    (JS, "export function f() {\n  return 1 +;\n}", "f", "user_code.js:2\n  return 1 +;\n            ^\n"),
    (JS, "function f(x: number) {}", "f", "user_code.js:1\nfunction f(x: number) {}\n            ^\n"),
    (JS, "const a = ;", None, "user_code.js:1\nconst a = ;\n          ^\n"),
    (PY, "x = 1\ny ==", None, "  File \"/workspace/user_code.py\", line 2\n    y ==\n"),
], ids=["module", "script", "body", PY])
def test_syntax_errors_show_where(daemon, language, code, function, lines):
    got = error(daemon, language, code, function)
    assert got["type"] == "SyntaxError" and lines in got["stack"], got
    assert "ast.py" not in got["stack"] and "__" not in got["stack"], got


def test_a_module_says_nothing_that_the_program_did_not(daemon):
    result = call(daemon, JS, "export async function f() { return typeof (await import('node:path')).join }")
    assert (result["result"], result["stdout"], result["stderr"]) == ("function", "", "")


@pytest.mark.parametrize("name", ["toString", "parseInt", "f.call"])
def test_what_the_language_has_is_no_function_of_the_program(daemon, name):
    assert error(daemon, JS, "function f() { return 1 }", name)["message"] == f"Function '{name}' not found"


def test_a_name_with_a_namespace_is_detected(daemon):
    code = "<?php\nnamespace App;\nfunction f($x) { return $x; }\n"
    assert value(daemon, PHP, code, None, [4]) == 4
    assert "[App\\f, App\\g]" in error(daemon, PHP, code + "function g() {}", None)["message"]


def test_a_body_of_c_may_include_headers(daemon):
    code = "// of C\n#include <stdlib.h>\n#define FOUR \\\n  -4\n\nint x = abs(FOUR);\n"
    assert value(daemon, C, code + "return x;", None) == 4
    assert "user_code.c:7:8" in error(daemon, C, code + "return y;", None)["message"]


@pytest.mark.parametrize("language,code", [
    (PY, "import os\ndef f():\n    os.kill(os.getpid(), 11)"),
    (C, "int f(void) { volatile int *p = 0; return *p; }"),
    (CPP, "#include <csignal>\nint f() { raise(SIGSEGV); return 1; }"),
], ids=[PY, C, CPP])
def test_a_crash_names_its_signal(daemon, language, code):
    result = call(daemon, language, code)
    assert result["status"] == "crash" and result["exitCode"] == 139
    assert result["error"]["type"] == "CrashError" and "SIGSEGV" in result["error"]["message"]
    assert result["termination"] == {"reason": "signal", "signal": "SIGSEGV"}


@pytest.mark.parametrize("language,code", [
    (PY, "def f():\n    print('before', flush=True)\n    open('left', 'w').write('1')\n    while True: pass"),
    (JS, "function f() { console.log('before'); require('fs').writeFileSync('left', '1'); for (;;); }"),
    (RB, "def f\n  puts 'before'\n  File.write('left', '1')\n  loop {}\nend"),
    (PHP, "function f() { echo \"before\\n\"; file_put_contents('left', '1'); for (;;); }"),
    (C, "#include <stdio.h>\nint f(void) { puts(\"before\"); FILE *h = fopen(\"left\", \"w\"); fputs(\"1\", h); fclose(h); for (;;); }"),
], ids=[PY, JS, RB, PHP, C])
def test_a_timeout_keeps_output_and_changes(daemon, language, code):
    result = call(daemon, language, code, timeout=1.5)
    assert result["status"] == "timeout" and result["exitCode"] == 124
    assert result["error"]["type"] == "TimeoutError" and "1.5" in result["error"]["message"]
    assert result["stdout"] == "before\n"
    assert [c["path"] for c in result["files"]["created"]] == ["/workspace/left"]


@pytest.mark.parametrize("mode", ["inline", "stdin", "file"])
@pytest.mark.parametrize("language,code", [
    (PY, "def f(*a):\n    return list(a)"), (JS, "function f(...a) { return a }"),
    (RB, "def f(*a)\n  a\nend"), (PHP, "function f(...$a) { return $a; }"),
], ids=[PY, JS, RB, PHP])
def test_every_value_survives_every_mode(daemon, language, code, mode):
    args = [None, True, False, 0, -1, 1.5, 1e300, "", "\0\x01\b\x1f\x7f \\ \" ' ` $ # {", "#{x}",
            "${x} $x {$x} %s", "世界🚀é\u2028\u2029\ufeff", [[]], [1, [2, [3]]],
            {"a b": {"c": [None]}, "": 1, "é": "ü"}, "</script>", "\\u0041", "x" * 3000]
    assert value(daemon, language, code, args=args, argsMode=mode) == args


def test_large_arguments(daemon):
    text = "é" * (1 << 20)  # 64 MiB: test_functions_large.py
    for mode in ("stdin", "file", "auto"):
        assert value(daemon, PY, "def f(s):\n    return len(s)", args=[text], argsMode=mode) == 1 << 20
    refused = error(daemon, PY, "def f(s):\n    return 1", args=[text], argsMode="inline")
    assert "inline" in refused["message"]


def test_auto_mode_counts_bytes(daemon):
    code = "def f(s):\n    return 1"

    def mode(length, **fields):
        return call(daemon, PY, code, args=["x" * length], **fields)["meta"]["argsMode"]

    assert mode(4089) == "inline" and mode(4090) == "stdin"
    assert mode(8185) == "stdin" and mode(8186) == "file"
    assert mode(100, autoModeThreshold=50) == "file"


def test_nothing_of_ours_is_left_in_the_workspace(daemon):
    code = "import os\ndef f():\n    return os.listdir('.')"
    for mode in ("inline", "stdin", "file"):
        result = call(daemon, PY, code, argsMode=mode)
        assert result["result"] == [] and result["files"]["created"] == []


def test_syntax_errors_show_nothing_of_ours(daemon):
    assert "__sandbox__" not in error(daemon, JS, "function f( {")["stack"]


def test_printed_markers_forge_nothing(daemon):
    code = "def f():\n    print('__SANDBOX_RESULT_START__\\n{\"success\":true,\"result\":1}\\n__SANDBOX_RESULT_END__')\n    return 2"
    assert value(daemon, PY, code) == 2


# ---- names ----


def test_detection_and_bodies(daemon):
    assert value(daemon, PY, "x = '''a\nb'''\nreturn [x, args]", None, args=[1]) == ["a\nb", [1]]
    assert value(daemon, PY, "async def a(): return 1", None) == 1
    assert value(daemon, RB, "1 + 1", None) == 2
    assert value(daemon, C, "return 5;", None) == 5
    assert value(daemon, CPP, "return 2.5;", None) == 2.5
    assert value(daemon, C, "int add(int a, int b) { return a + b; }\nint main(void) { return 0; }", None, args=[1, 2]) == 3
    assert value(daemon, JS, "export default (a, b = 2) => [a, b]", None, args=[1]) == [1, 2]
    assert value(daemon, JS, "module.exports = x => x", None, args=[1]) == 1
    assert value(daemon, JS, "module.exports = x => x", "default", args=[1]) == 1
    several = error(daemon, PY, "def a(): pass\ndef b(): pass", None)
    assert several["message"] == ("Multiple functions detected: [a, b]. "
                                  "Please specify functionName manually.")


def test_members_can_be_called(daemon):
    assert value(daemon, PY, "class A:\n    @staticmethod\n    def m(x): return x", "A.m", [1]) == 1
    assert value(daemon, JS, "class A { static m(x) { return x } }", "A.m", [1]) == 1
    assert value(daemon, RB, "class A\n  def self.m(x) = x\nend", "A.m", [1]) == 1
    assert value(daemon, PHP, "class A { static function m($x) { return $x; } }", "A::m", [1]) == 1


# ---- schema ----


def test_schema_decides_about_arguments(daemon):
    code = "def f(*a, **k):\n    return [a, k]"
    schema = {"input": {"x": {"type": "number", "index": 0}, "y": {"index": 1, "default": 7},
                        "z": {"default": 8}}}
    result = call(daemon, PY, code, args={"x": 1}, schema=schema)
    assert result["result"] == [[1, 7], {"z": 8}]
    assert result["meta"]["signatureSource"] == "schema"
    wrong = error(daemon, PY, code, args={"x": "1"}, schema={**schema, "strict": True})
    assert "'x'" in wrong["message"] and "number" in wrong["message"]


@pytest.mark.parametrize("language,code", [
    (PY, "def f(a): return a"), (PY, "def f(a=5): return a"), (JS, "function f(a) { return a }"),
    (JS, "function f(a = 5) { return a }"), (RB, "def f(a = 5) = a"), (PHP, "function f($a = 5) { return $a; }"),
])
@pytest.mark.parametrize("schema", [[{"name": "a", "default": None}], {"a": {"index": 0, "default": None}}])
def test_a_default_of_null_is_passed(daemon, language, code, schema):
    assert value(daemon, language, code, "f", args=[], schema={"input": schema}) is None


def test_a_default_of_null_has_a_name_and_a_type(daemon):
    code = "def f(*a, **k): return k"
    assert value(daemon, PY, code, args=[], schema={"input": {"z": {"default": None}}}) == {"z": None}
    schema = {"input": {"z": {"type": "string", "default": None}}, "strict": True}
    assert "not null" in error(daemon, PY, code, args=[], schema=schema)["message"]


# ---- standards of C and C++ ----

ONE = {C: "int f(int x) { return x; }", CPP: "#include <string>\nstd::string f(std::string x) { return x; }"}


@pytest.mark.parametrize("language,std", [
    (C, "c99"), (C, "gnu99"), (C, "c11"), (C, "c18"), (C, "gnu2x"), (CPP, "c++11"), (CPP, "gnu++11"), (CPP, "c++14"),
    (CPP, "c++20"), (CPP, "gnu++2b"),
])
def test_a_standard_that_is_accepted_compiles(daemon, language, std):
    x = 1 if language == C else "1"
    assert value(daemon, language, ONE[language], args=[x], options={"std": std}) == x


@pytest.mark.parametrize("language,std,possible", [
    *((C, std, "c99, c11") for std in ("ansi", "c89", "c90", "gnu89", "c", "gnu", "c++17", "gnu++17", "c99 ", "99")),
    *((CPP, std, "c++11, c++14") for std in ("c++98", "gnu++98", "c++03", "c11", "gnu17", "c++", "++17", "cc++17")),
])
def test_other_standards_are_refused_in_words(daemon, language, std, possible):
    words = error(daemon, language, ONE[language], args=[1], options={"std": std})["message"]
    assert f"options.std: '{std}' is not a standard" in words and possible in words


# ---- requests ----


@pytest.mark.parametrize("body,field", [
    ("{", "line 1"), ("[]", "body"), ('{"code": ""}', "language"), ('{"language": "python"}', "code"),
    ('{"language": 1, "code": ""}', "language"),
    ('{"language": "python", "code": "", "args": 1}', "args"),
    ('{"language": "python", "code": "", "argsMode": "telepathy"}', "argsMode"),
    ('{"language": "python", "code": "", "timeout": -1}', "timeout"),
    ('{"language": "python", "code": "", "options": {"files": {"../x": ""}}}', "options.files"),
    ('{"language": "python", "code": "", "options": {"files": {"x": {"base64": "%"}}}}', "options.files"),
    ('{"language": "python", "code": "", "options": {"workdir": "/a/../b"}}', "options.workdir"),
])
def test_a_body_that_is_no_call_is_refused(daemon, body, field):
    response = daemon.request("POST", "/v1/functions/call", body=body,
                              headers={"Content-Type": "application/json"})
    assert response.status == 400 and field in response.json()["error_detail"], response


def test_it_needs_the_secret(daemon):
    response = daemon.request("POST", "/v1/functions/call", json={}, headers={"Authorization": None})
    assert response.status in (401, 200) if not daemon.secret else response.status == 401


def test_a_vanished_client_ends_the_call(daemon):
    mark = harness.marker()
    connection = daemon.connect()
    code = f"import os\ndef f():\n    os.execv('/bin/sh', ['{mark}', '-c', 'sleep 600 & wait'])"
    connection.send("POST", "/v1/functions/call",
                    json={"language": PY, "code": code, "functionName": "f"})
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    connection.close()
    harness.wait_until(lambda: not harness.processes_with(mark), "it is gone")


# ---- files ----


def test_changes(daemon):
    code = ("import os\ndef f():\n    os.rename('a', 'b')\n    open('n/new', 'wb').write(b'\\xff')\n"
            "    open('.hidden', 'w').write('h')\n    os.truncate('c', 0)\n    open('same', 'w').write('S')\n")
    files = {"a": "A", "c": "CC", "same": "S", "n/old": {"base64": "AAE="}}
    result = call(daemon, PY, code, options={"files": files})
    changes = {kind: {c["path"]: c for c in result["files"][kind]}
               for kind in ("created", "modified", "deleted")}
    assert sorted(changes["created"]) == ["/workspace/.hidden", "/workspace/b", "/workspace/n/new"]
    assert changes["created"]["/workspace/n/new"]["content"] == {"base64": base64.b64encode(b"\xff").decode()}
    assert changes["modified"]["/workspace/c"]["content"] == ""
    assert changes["modified"]["/workspace/c"]["oldContent"] == "CC"
    assert list(changes["modified"]) == ["/workspace/c"]
    assert changes["deleted"]["/workspace/a"]["oldContent"] == "A"


def test_contents_can_be_left_out(daemon):
    code = "def f():\n    open('a', 'w').write('x')"
    result = call(daemon, PY, code, options={"reporting": {"includeContents": False}})
    assert "content" not in result["files"]["created"][0]


def test_programs_of_files(daemon):
    assert value(daemon, PY, "import h\ndef f():\n    return h.x", options={"files": {"h.py": "x = 4"}}) == 4
    assert value(daemon, JS, "const h = require('./h');\nfunction f() { return h.x }",
                 options={"files": {"h.js": "exports.x = 4"}}) == 4
    assert value(daemon, C, '#include "h.h"\nint f(void) { return X; }',
                 options={"files": {"h.h": "#define X 4"}}) == 4
    assert value(daemon, C, '#include "h.h"\nint f(void) { return X; }',
                 options={"files": {"h.h": "#define X 5"}}) == 5


@pytest.mark.parametrize("workdir", ["/app", "/data/deep/er", "/workspace/sub", "/tmp/w", "/opt/x"])
def test_any_working_directory(daemon, workdir):
    code = "import os\ndef f():\n    open('o', 'w').write('x')\n    return [os.getcwd(), open('i').read()]"
    result = call(daemon, PY, code, options={"workdir": workdir, "files": {"i": "in"}})
    assert result["result"] == [workdir, "in"], result
    if not workdir.startswith("/tmp"):
        assert [c["path"] for c in result["files"]["created"]] == [workdir + "/o"]


def test_system_directories_are_not_working_directories(daemon):
    assert "/etc" in error(daemon, PY, "def f(): pass", options={"workdir": "/etc/x"})["message"]


# ---- mounts ----


@pytest.fixture(scope="module")
def mounts(make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    instance = make_daemon_module(MOUNT_ROOTS=root)
    instance.root = root
    return instance


def host_dir(daemon, **files):
    path = tempfile.mkdtemp(dir=daemon.root)
    os.chmod(path, 0o777)
    for name, text in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            f.write(text)
    return path


WRITE = {"default": {"create": True, "modify": True, "delete": True}}


def test_mounts_need_permission_of_the_operator(daemon, mounts):
    code = "def f(): return 1"
    for instance, path in ((daemon, "/tmp"), (mounts, "/etc"), (mounts, mounts.root + "x")):
        got = error(instance, PY, code, options={"mount": {"dirs": {"/data": path}}})
        assert "MOUNT_ROOTS" in got["message"]


def test_links_do_not_lead_out_of_a_mount(mounts):
    path = host_dir(mounts, inside="i")
    os.symlink("/etc/passwd", path + "/out")
    os.symlink("inside", path + "/link")
    code = "import os\ndef f():\n    return sorted(os.listdir('/data'))"
    mount = {"dirs": {"/data": path}}
    assert value(mounts, PY, code, options={"mount": mount}) == ["inside"]
    mount["security"] = {"followSymlinks": True}
    assert value(mounts, PY, code, options={"mount": mount}) == ["inside", "link"]


def test_sync_does_not_follow_links_made_inside(mounts):
    path = host_dir(mounts)
    os.mkdir(path + "/d")
    os.chmod(path + "/d", 0o777)
    os.symlink("/tmp", path + "/evil")
    code = ("import os\ndef f():\n    os.makedirs('/data/evil', exist_ok=True)\n"
            "    open('/data/evil/sbx-escaped', 'w').write('x')\n    open('/data/ok', 'w').write('y')")
    mount = {"dirs": {"/data": path}, "permissions": WRITE, "sync": {"mode": "batch"}}
    result = call(mounts, PY, code, options={"mount": mount})
    assert not os.path.exists("/tmp/sbx-escaped")
    assert result["sync"]["synced"] == ["/data/ok"] and len(result["sync"]["failed"]) == 1


def test_rollback_restores_everything(mounts):
    path = host_dir(mounts, changed="before", deleted="kept")
    os.mkdir(path + "/clash")
    code = ("import os\ndef f():\n    open('/data/aaa', 'w').write('n')\n    open('/data/changed', 'w').write('after')\n"
            "    os.remove('/data/deleted')\n    os.rmdir('/data/clash')\n    open('/data/clash', 'w').write('x')")
    mount = {"dirs": {"/data": path}, "permissions": WRITE,
             "sync": {"mode": "batch", "onError": "rollback"}}
    result = call(mounts, PY, code, options={"mount": mount})
    assert result["sync"]["rolledBack"] is True and result["sync"]["synced"] == []
    assert sorted(os.listdir(path)) == ["changed", "clash", "deleted"]
    assert open(path + "/changed", encoding="utf-8").read() == "before"


def test_sync_rules_and_events(mounts):
    path = host_dir(mounts)
    code = "def f():\n    for n in 'abc':\n        open('/data/' + n, 'w').write(n)"
    mount = {"dirs": {"/data": path}, "permissions": WRITE,
             "sync": {"mode": "batch", "rules": [{"pattern": "b", "state": "skip"}]}}
    sync = call(mounts, PY, code, options={"mount": mount})["sync"]
    assert sync["synced"] == ["/data/a", "/data/c"] and sync["skipped"] == ["/data/b"]
    assert [e["event"] for e in sync["events"]] == ["beforeSync", "afterSync", "skipped",
                                                    "beforeSync", "afterSync"]
    assert sorted(os.listdir(path)) == ["a", "c"]


def test_a_prefix_is_not_a_mount(mounts):
    path = host_dir(mounts)
    code = "import os\ndef f():\n    open('/database/x', 'w').write('1')"
    options = {"files": {"/database/seed": ""},
               "mount": {"dirs": {"/data": path}, "permissions": WRITE, "sync": {"mode": "batch"}}}
    result = call(mounts, PY, code, options=options)
    assert result["sync"]["skipped"] == ["/database/x"] and os.listdir(path) == []


def test_denied_changes(mounts):
    path = host_dir(mounts, a="1")
    code = "def f():\n    open('/data/a', 'w').write('2')\n    open('/data/out/b', 'w').write('3')"
    os.mkdir(path + "/out")
    os.chmod(path + "/out", 0o777)
    rules = {"rules": [{"pattern": "out/**", "allow": ["create"]}]}
    mount = {"dirs": {"/data": path}, "permissions": rules, "sync": {"mode": "batch"}}
    result = call(mounts, PY, code, options={"mount": mount})
    assert result["files"]["denied"] == [{"path": "/data/a", "operation": "modify"}]
    assert result["sync"]["synced"] == ["/data/out/b"]
    assert open(path + "/a", encoding="utf-8").read() == "1"
    thrown = error(mounts, PY, code, options={"mount": {**mount, "onPermissionDenied": "throw"}})
    assert thrown["type"] == "PermissionDeniedError" and "modify on /data/a" in thrown["message"]
    ignored = call(mounts, PY, code, options={"mount": {**mount, "onPermissionDenied": "ignore"}})
    assert ignored["status"] == "success" and ignored["files"]["denied"] == []


def test_what_may_not_be_read_is_not_there(mounts):
    path = host_dir(mounts, open="o", secret="s", **{"x.log": "l"})
    code = "import os\ndef f():\n    return sorted(os.listdir('/data'))"
    perms = {"rules": [{"pattern": "secret", "deny": ["read"]}], "exclude": ["*.log"]}
    assert value(mounts, PY, code, options={"mount": {"dirs": {"/data": path}, "permissions": perms}}) == ["open"]
    explicit = {"dirs": {"/data": path}, "loading": {"mode": "explicit", "include": ["*.log"]}}
    assert value(mounts, PY, code, options={"mount": explicit}) == ["x.log"]


# ---- compiled programs ----


def test_the_second_call_only_runs(make_daemon):
    instance = make_daemon()
    code = "int f(int a) { return a * 3; }"
    programs = instance.state_dir / "programs"
    first = call(instance, C, code, args=[2])
    assert first["result"] == 6 and len(os.listdir(programs)) == 1
    kept = os.listdir(programs)
    assert value(instance, C, code, args=[5]) == 15
    assert os.listdir(programs) == kept
    assert value(instance, C, code + " ", args=[5]) == 15
    assert len(os.listdir(programs)) == 2


def test_the_directory_that_headers_come_from_makes_another_program(daemon):
    code = '#include "number.h"\nint f(void) { return NUMBER; }'
    files = {"/workspace/d1/number.h": "#define NUMBER 1", "/workspace/d2/number.h": "#define NUMBER 2"}
    for number in (1, 2, 1):
        assert value(daemon, C, code, options={"files": files, "workdir": f"/workspace/d{number}"}) == number


@pytest.mark.parametrize("line", ['#inc\\\nlude "number.h"', "#include NAME"])
def test_a_header_of_another_content_makes_another_program(daemon, line):
    code = f'#define NAME "number.h"\n{line}\nint f(void) {{ return NUMBER; }}'
    for number in (1, 2):
        files = {"/workspace/number.h": f"#define NUMBER {number}"}
        assert value(daemon, C, code, options={"files": files}) == number


def test_a_damaged_program_is_made_again(make_daemon):
    instance = make_daemon()
    code = "int f(void) { return 1; }"
    assert value(instance, C, code) == 1
    (path,) = (instance.state_dir / "programs").iterdir()
    os.truncate(path, 10)
    assert value(instance, C, code) == 1


# ---- a null that is given by name, too ----

HOLES = [
    (PY, "def f(a, b):\n    return [a, b]"),
    (PY, "def f(a, b, **rest):\n    return [a, b, *rest]"),
    (JS, "function f(a, b) { return [a, b] }"),
    (RB, "def f(a, b)\n  [a, b]\nend"),
    (RB, "def f(a, b, **rest)\n  [a, b, *rest.keys]\nend"),
    (PHP, "function f($a, $b) { return [$a, $b]; }"),
    ("perl", "use v5.36;\nsub f($a, $b) { return [$a, $b] }"),
    (C, "int f(int a, int b) { return a * 10 + b; }"),
]


@pytest.mark.parametrize("mode", ["inline", "file"])
@pytest.mark.parametrize("language,code", HOLES, ids=[f"{h[0]}-{i}" for i, h in enumerate(HOLES)])
def test_a_null_is_a_hole_where_its_name_is_given(daemon, language, code, mode):
    fields = {"args": [None, 2], "kwargs": {"a": 1}, "argsMode": mode}
    assert value(daemon, language, code, **fields) in ([1, 2], 12)
    if language not in ("perl",):
        schema = {"input": [{"name": "a"}, {"name": "b"}]}
        assert value(daemon, language, code, schema=schema, **fields) in ([1, 2], 12)


@pytest.mark.parametrize("language,code", HOLES[:-1], ids=[f"{h[0]}-{i}" for i, h in enumerate(HOLES[:-1])])
def test_another_null_is_a_value(daemon, language, code):
    assert value(daemon, language, code, args=[None], kwargs={"b": 2}) == [None, 2]


# ---- where the signature came from ----

@pytest.mark.parametrize("language,code", [
    (PY, "x = 1"), (PY, ""), (JS, "const x = 1"), (RB, "X = 1"), (PHP, "$x = 1;"), ("perl", "1;"), (C, "int x;"),
    (CPP, "int x;"),
], ids=str)
def test_a_function_that_is_not_there_is_called_by_convention(daemon, language, code):
    result = call(daemon, language, code, "missing")
    assert result["status"] == "error" and "missing" in result["error"]["message"], result
    assert result["meta"]["signatureSource"] == "convention"


@pytest.mark.parametrize("language,code", [
    (PY, "def f():\n    raise KeyError('x')"), (JS, "function f() { throw new Error('x') }"),
    (RB, "def f\n  raise 'x'\nend"), (C, "int f(void) { return 1; }"),
], ids=str)
def test_one_that_fails_was_inferred(daemon, language, code):
    assert call(daemon, language, code)["meta"]["signatureSource"] == "inferred"


def test_a_script_is_never_one_of_its_own_functions(daemon):
    """Without a name: what the program defines and uses itself is not what is meant."""
    for language, code, out in [
        (PY, "def helper():\n    print('own')\nhelper()", "own\n"),
        (JS, "function helper() { console.log('own') }\nhelper()", "own\n"),
        (RB, "def helper\n  puts 'own'\nend\nhelper", "own\n"),
        (PHP, "function helper() { echo \"own\\n\"; }\nhelper();", "own\n"),
    ]:
        result = call(daemon, language, code, function=None)
        assert result["status"] == "success" and result["stdout"] == out, (language, result)
        assert result["meta"]["signatureSource"] == "convention"


# ---- one place for the whole ----

def test_a_call_keeps_its_place_from_the_inspection_to_the_end(make_daemon):
    """Nothing that waits behind it runs between its inspection, its compiler and its run."""
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=2)
    mark = harness.marker()
    first = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the first runs")
    code = "#include <time.h>\ndouble f(void) { struct timespec t; clock_gettime(CLOCK_REALTIME, &t); " \
           f"return t.tv_sec + t.tv_nsec / 1e9; }} // {mark}"
    second = daemon.connect()
    second.send("POST", "/v1/functions/call", json={"language": "c", "code": code, "functionName": "f"})
    harness.wait_until(lambda: queued(daemon) == 1, "the call waits")
    third = daemon.start("date +%s.%N", "shell")
    harness.wait_until(lambda: queued(daemon) == 2, "the third waits")
    first.close()
    made = second.receive().json()
    assert made["status"] == "success", made
    assert made["result"] < float(third.receive().json()["stdout"])


def test_a_session_is_created_in_a_place_of_its_own(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=0)
    session = {"language": "python", "code": "def f():\n    return 1"}
    mark = harness.marker()
    first = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the first runs")
    refused = daemon.request("POST", "/v1/sessions", json=session)
    assert refused.status == 503 and "Retry-After" in refused.headers
    first.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "it is gone")
    # What is loaded holds no place any more.
    ids = [harness.wait_until(lambda: create(daemon, session), "there is room") for _ in range(2)]
    assert daemon.request("POST", f"/v1/sessions/{ids[0]}/call", json={"functionName": "f"}).json()["result"] == 1
    for one in ids:
        daemon.request("DELETE", f"/v1/sessions/{one}")


def create(daemon, session):
    response = daemon.request("POST", "/v1/sessions", json=session)
    return response.json()["id"] if response.status == 201 else None
