# SPDX-License-Identifier: MIT
"""Programs without a handler are scripts; `mode` and what a request brings decide what is demanded."""
import pytest

import harness

MISSING = "handler(event) is not defined (必须定义 handler(event) 函数)"


def execute(daemon, code, language="python", **fields):
    result = daemon.execute(code, language, **fields)
    return result["status"], result["stdout"], result["return_value"], result["exit_code"]


SCRIPTS = [
    ("python", "print('hello world')"),
    ("python", "def helper(a):\n    return a\nif __name__ == '__main__':\n    print(helper('hello world'))"),
    ("python", "import logging\nhandler = logging.NullHandler()\nprint('hello world')"),
    ("python", "import threading\nthreading.Thread(target=print, args=('hello world',)).start()"),
    ("python", "import atexit\natexit.register(print, 'hello world')"),
    ("javascript", "console.log('hello world')"),
    ("javascript", "const handler = { a: 1 }; console.log('hello world')"),
    ("javascript", "setTimeout(() => console.log('hello world'), 5)"),
    ("shell", "echo hello world"),
]


@pytest.mark.parametrize("language, code", SCRIPTS)
def test_a_program_without_a_handler_is_a_script(daemon, language, code):
    assert execute(daemon, code, language) == ("success", "hello world\n", None, 0)


def test_a_script_in_a_cold_interpreter(daemon):
    got = execute(daemon, SCRIPTS[1][1], env_vars={"PYTHONHASHSEED": "1"})
    assert got == ("success", "hello world\n", None, 0)


@pytest.mark.parametrize("language, code, exit_code", [
    ("python", "import sys\nprint('x')\nsys.exit(3)", 3),
    ("python", "print('x')\nraise ValueError", 1),
    ("javascript", "console.log('x'); process.exit(3)", 3),
])
def test_a_script_that_fails(daemon, language, code, exit_code):
    assert execute(daemon, code, language) == ("failed", "x\n", None, exit_code)


@pytest.mark.parametrize("fields", [{"event": {}}, {"event": {"a": 1}}, {"mode": "handler"},
                                    {"session_id": "demands"}])
def test_python_that_brings_an_event_or_a_session_must_have_a_handler(daemon, fields):
    headers = {"Prefer": "wait"}
    body = {"language": "python", "code": "print('ran')", **fields}
    result = daemon.request("POST", "/execute", json=body, headers=headers).json()
    assert (result["status"], result["stdout"], result["exit_code"]) == ("failed", "ran\n", 1)
    assert result["error"]["type"] == "HandlerNotFound" and result["error"]["message"] == MISSING
    assert MISSING in result["stderr"]
    body["env_vars"] = {"PYTHONHASHSEED": "1"}
    again = daemon.request("POST", "/execute", json=body, headers=headers).json()
    assert (again["status"], again["error"]["message"]) == ("failed", MISSING)


def test_javascript_with_an_event_may_be_a_script(daemon):
    code = "console.log(JSON.parse(process.env.EVENT_JSON).a)"
    assert execute(daemon, code, "javascript", event={"a": 7}) == ("success", "7\n", None, 0)
    result = daemon.execute(code, "javascript", event={"a": 7}, mode="handler")
    assert result["status"] == "failed" and result["error"]["message"] == MISSING


@pytest.mark.parametrize("language, code", [
    ("python", "print('top')\ndef handler(event):\n    print('called')\n    return 1"),
    ("javascript", "console.log('top'); exports.handler = () => { console.log('called'); return 1 }"),
])
def test_mode_script_never_calls_a_handler(daemon, language, code):
    assert execute(daemon, code, language) == ("success", "top\ncalled\n", 1, 0)
    assert execute(daemon, code, language, mode="script") == ("success", "top\n", None, 0)
    assert execute(daemon, code, language, mode="script", event={"a": 1}) == ("success", "top\n", None, 0)
    assert execute(daemon, code, language, mode="handler") == ("success", "top\ncalled\n", 1, 0)


def test_a_mode_that_is_none_and_a_handler_in_shell_are_refused(daemon):
    bad = daemon.request("POST", "/execute", json={"language": "python", "code": "1", "mode": "cell"})
    assert bad.status == 400 and "'handler' or 'script'" in bad.text
    shell = daemon.request("POST", "/execute", json={"language": "shell", "code": "true", "mode": "handler"})
    assert shell.status == 400 and "a shell program has no handler" in shell.text


# ---- functions without a name ----


def call(daemon, language, code, **fields):
    body = {"language": language, "code": code, **fields}
    return daemon.request("POST", "/v1/functions/call", json=body).json()


@pytest.mark.parametrize("language, code", [
    ("python", "def helper(a):\n    return a + 1\nprint(helper(3))"),
    ("python", "def sq(x):\n    return x * x\ndef total(xs):\n    return sum(sq(x) for x in xs)\nprint(total([2]))"),
    ("python", "n = 3\ndef more():\n    global n\n    n += 1\nmore()\nprint(n)"),
    ("python", "def main():\n    print(4)\nif __name__ == '__main__':\n    main()"),
    ("javascript", "function helper(a) { return a + 1 }\nconsole.log(helper(3))"),
    ("javascript", "async function main() { console.log(4) }\n(async () => { await main() })()"),
    ("ruby", "def helper(a)\n  a + 1\nend\nputs helper(3)"),
    ("ruby", "def main\n  puts 4\nend\nmain"),
    ("php", "function helper($a) { return $a + 1; }\necho helper(3), \"\\n\";"),
    ("php", "function helper($a) { return $a + 1; } echo helper(3), \"\\n\";"),
    ("javascript", "function helper(a) { return a + 1 } console.log(helper(3))"),
])
def test_a_script_with_functions_of_its_own_is_a_script(daemon, language, code):
    harness.need(language not in ("ruby", "php") or harness.os.path.exists(f"/usr/bin/{language}"), language)
    result = call(daemon, language, code)
    assert result["status"] == "success", result
    assert (result["stdout"], result["result"]) == ("4\n", None)


@pytest.mark.parametrize("language, code", [
    ("python", "def area(a):\n    return a * 2"),
    ("python", "def table():\n    return 2\nTWO = table()\ndef area(a):\n    return a * TWO"),
    ("javascript", "function two() { return 2 }\nconst TWO = two()\nexports.area = (a) => a * TWO"),
])
def test_a_function_that_a_program_does_not_use_itself_is_meant(daemon, language, code):
    result = call(daemon, language, code, args=[4])
    assert (result["status"], result["result"]) == ("success", 8), result
