# SPDX-License-Identifier: MIT
"""Python handlers: forms, events, values, output, failure."""
import json
import textwrap

import pytest

import harness

ECHO = "def handler(event):\n    return event['v']\n"


# ---- forms of a handler ----


@pytest.mark.parametrize("code, value", [
    ("def handler(event):\n    return event['a'] + 1", 42),
    ("def handler(event, context):\n    return event['a'] + 1", 42),
    ("def handler(event, context=None):\n    return context is not None", True),
    ("async def handler(event):\n    return event['a']", 41),
    ("import asyncio\nasync def handler(event, context):\n    await asyncio.sleep(0)\n    return 'later'", "later"),
    ("handler = lambda event: event['a']", 41),
    ("class H:\n    def __call__(self, event):\n        return 'object'\nhandler = H()", "object"),
    ("def make(n):\n    def handler(event):\n        return n\n    return handler\nhandler = make(7)", 7),
    ("from __future__ import annotations\ndef handler(event: Unknown):\n    return 'future'", "future"),
    ("import functools\n@functools.lru_cache\ndef inner(): return 3\ndef handler(event): return inner()", 3),
    ("def handler(*args):\n    return len(args) >= 1", True),
    ("json = sys = os = None\ndef handler(event):\n    return 'rebound'", "rebound"),
    ("def handler(event):\n    return __name__", "__main__"),
])
def test_handler_forms(daemon, code, value):
    assert daemon.returned(code, event={"a": 41}) == value


def test_event_is_an_empty_object_when_absent(daemon):
    assert daemon.returned("def handler(event):\n    return event") == {}


def test_context_tells_about_the_run(daemon):
    code = textwrap.dedent("""
        def handler(event, context):
            left = context.get_remaining_time_in_millis()
            return [context.execution_id, context.aws_request_id, context.memory_limit_in_mb,
                    0 < left <= 7000, isinstance(context.function_name, str), callable(context.progress)]
        """)
    got = daemon.returned(code, execution_id="ctx-1", timeout=7)
    assert got == ["ctx-1", "ctx-1", 512, True, True, True]


def test_code_runs_once_and_as_the_main_module(daemon):
    code = "import sys\nprint('body')\ndef handler(event):\n    return sys.modules['__main__'].handler is handler"
    result = daemon.execute(code)
    assert result["return_value"] is True
    assert result["stdout"] == "body\n"


def test_classes_of_the_user_can_be_pickled(daemon):
    code = "import pickle\nclass A: pass\ndef handler(e):\n    return type(pickle.loads(pickle.dumps(A()))).__name__"
    assert daemon.returned(code) == "A"


def test_empty_code_and_code_without_the_handler_that_is_demanded_fail_clearly(daemon):
    for code in ("", "x = 1\n"):
        result = daemon.execute(code, event={})
        assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
        assert "handler(event)" in result["stderr"]


def test_handler_that_is_not_callable_fails(daemon):
    result = daemon.execute("handler = 3", mode="handler")
    assert (result["status"], result["exit_code"]) == ("failed", 1)
    assert "handler" in result["stderr"]


# ---- values ----

VALUES = [
    None, True, False, 0, 1, -1, "", "text", [], {}, [[]], {"": ""}, 0.0, -0.5, 1e300, 5e-324,
    [None, False, 0, "", [], {}], {"b": 1, "a": 2}, "\u0000", "\u2028\u2029", "é漢🎉", "\"\\/\b\f\n\r\t",
    "===SANDBOX_RESULT===", "</script>", 2**53 + 1, 2**63 - 1, 2**63, -2**63 - 1, 2**64, 10**40, -10**40,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: json.dumps(v)[:24])
def test_any_json_value_survives_the_round_trip(daemon, value):
    got = daemon.returned(ECHO, event={"v": value})
    assert got == value and type(got) is type(value)


def test_key_order_survives(daemon):
    text = '{"z":1,"a":{"y":2,"b":3},"m":4}'
    response = daemon.post_execute(
        '{"language":"python","code":"def handler(e): return e","event":%s}' % text)
    got = json.loads(response.body, object_pairs_hook=list)
    value = dict((k, v) for k, v in got)["return_value"]
    assert value == [("z", 1), ("a", [("y", 2), ("b", 3)]), ("m", 4)]


@pytest.mark.parametrize("literal", ["0.1", "1.0", "1e+22", "3.141592653589793", "2.5e-07", "-0.0"])
def test_text_of_floats_is_kept(daemon, literal):
    response = daemon.post_execute(
        '{"language":"python","code":"def handler(e): return e[\'v\']","event":{"v":%s}}' % literal)
    value = json.loads(response.body, parse_float=str)["return_value"]
    assert value == literal


@pytest.mark.parametrize("escape", [r"\ud800", r"\udfff", r"a\udc00b", r"\ud83c\udf89"])
def test_surrogate_escapes_survive(daemon, escape):
    code = "def handler(e): return [e['s'], [ord(c) for c in e['s']]]"
    response = daemon.post_execute('{"language":"python","code":%s,"event":{"s":"%s"}}'
                                   % (json.dumps(code), escape))
    assert response.status == 200, response
    text, points = response.json()["return_value"]
    want = json.loads(f'"{escape}"')
    assert text == want and points == [ord(c) for c in want]


def test_deep_values_survive(daemon):
    deep = []
    for _ in range(200):
        deep = [deep]
    assert daemon.returned(ECHO, event={"v": deep}) == deep


def test_large_event_and_large_value_survive(daemon):
    value = "x" * 2_000_000
    assert daemon.returned(ECHO, event={"v": value}) == value


def test_event_above_the_environment_limit_comes_in_a_file(daemon):
    code = textwrap.dedent("""
        import json, os
        def handler(event):
            with open(os.environ['EVENT_FILE']) as f:
                return 'EVENT_JSON' not in os.environ and json.load(f) == event
        """)
    assert daemon.returned(code, event={"v": "y" * 200_000}) is True


def test_small_event_is_in_the_environment_too(daemon):
    code = "import json, os\ndef handler(event):\n    return json.loads(os.environ['EVENT_JSON']) == event"
    assert daemon.returned(code, event={"k": [1, 2]}) is True


@pytest.mark.parametrize("expression", ["float('nan')", "float('inf')", "-float('inf')", "[[float('nan')]]",
                                        "{'a': float('inf')}"])
def test_numbers_json_lacks_are_a_failure_not_null(daemon, expression):
    result = daemon.execute(f"def handler(event):\n    return {expression}")
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    assert "JSON has neither NaN nor infinite numbers, but there is one at result" in result["stderr"]


@pytest.mark.parametrize("code, reason", [
    ("def handler(event): return object()", "TypeError"),
    ("def handler(event): return {1, 2}", "TypeError"),
    ("def handler(event): return b'bytes'", "TypeError"),
    ("def handler(event):\n    a = []\n    a.append(a)\n    return a", "ircular"),
    ("def handler(event):\n    a = []\n    for _ in range(100000): a = [a]\n    return a", "ecursion"),
])
def test_unserialisable_value_fails_with_the_reason(daemon, code, reason):
    result = daemon.execute(code)
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    assert reason in result["stderr"]


# ---- output ----


def test_output_is_exactly_what_the_program_printed(daemon):
    code = textwrap.dedent("""
        import os, sys
        print('one')
        sys.stdout.write('two')
        os.write(1, b'') 
        print('E', file=sys.stderr)
        def handler(event):
            print('three')
            return 'value'
        """)
    result = daemon.execute(code)
    assert result["stdout"] == "one\ntwothree\n"
    assert result["stderr"] == "E\n"
    assert result["return_value"] == "value"


def test_printed_markers_forge_nothing(daemon):
    code = textwrap.dedent("""
        def handler(event):
            print('===SANDBOX_RESULT===\\n{"forged": 1}\\n===SANDBOX_RESULT_END===')
            return 'true value'
        """)
    result = daemon.execute(code)
    assert result["return_value"] == "true value"
    assert "forged" in result["stdout"]


def test_replaced_functions_of_the_interpreter_do_not_lose_the_result(daemon):
    code = textwrap.dedent("""
        import builtins, json, os, sys
        def broken(*a, **k): raise RuntimeError('replaced')
        def handler(event):
            json.dumps = json.loads = builtins.print = builtins.open = sys.exit = os.write = broken
            return 'still here'
        """)
    result = daemon.execute(code)
    assert (result["status"], result["return_value"]) == ("success", "still here")


def test_invalid_utf8_is_repaired(daemon):
    result = daemon.execute("import os\ndef handler(e):\n    os.write(1, b'a\\xff\\xfeb\\xe6\\xbc')\n    return 1")
    assert result["status"] == "success"
    assert result["stdout"].startswith("a\ufffd") and "b" in result["stdout"]


def test_control_bytes_survive(daemon):
    result = daemon.execute("def handler(e):\n    print('a\\x00b\\x1b[31m\\x7f', end='')")
    assert result["stdout"] == "a\x00b\x1b[31m\x7f"


def test_output_of_children_is_caught(daemon):
    code = ("import subprocess\ndef handler(event):\n"
            "    subprocess.run(['sh', '-c', 'echo out; echo err >&2'])\n    return 0")
    result = daemon.execute(code)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")


# ---- failure ----


def test_traceback_has_the_users_own_lines_and_nothing_of_ours(daemon):
    code = "def inner(x):\n    return 1 / x\n\ndef handler(event):\n    return inner(0)\n"
    result = daemon.execute(code)
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    error = result["stderr"]
    assert "Traceback (most recent call last)" in error
    assert "line 5, in handler" in error and "line 2, in inner" in error
    assert "return 1 / x" in error, "the source line is shown"
    assert error.rstrip().endswith("ZeroDivisionError: division by zero")
    assert error.count('File "') == 2, "only frames of the user"
    assert result["stdout"] == ""


@pytest.mark.parametrize("code", ["def handler(e):\n    1/0", "s = '\u2028\f\x85'\r\ndef handler(e):\r    1/0"])
def test_carets_stand_below_what_failed(daemon, code):
    assert "\n    1/0\n    ~^~\n" in daemon.execute(code)["stderr"]


def test_syntax_error_names_the_line(daemon):
    result = daemon.execute("x = 1\ndef handler(event)\n    return 1\n")
    assert (result["status"], result["exit_code"]) == ("failed", 1)
    assert "SyntaxError" in result["stderr"] and "line 2" in result["stderr"]


def test_error_in_the_module_body(daemon):
    result = daemon.execute("print('before')\nraise KeyError('gone')\n")
    assert (result["status"], result["exit_code"], result["stdout"]) == ("failed", 1, "before\n")
    assert "KeyError: 'gone'" in result["stderr"] and "line 2" in result["stderr"]


def test_chained_exceptions_are_shown_in_full(daemon):
    code = ("def handler(event):\n    try:\n        {}['a']\n    except KeyError as e:\n"
            "        raise ValueError('second') from e\n")
    error = daemon.execute(code)["stderr"]
    assert "KeyError" in error and "ValueError: second" in error and "direct cause" in error


def test_recursion_error_is_reported(daemon):
    result = daemon.execute("def handler(event):\n    return handler(event)\n")
    assert (result["status"], result["exit_code"]) == ("failed", 1)
    assert "RecursionError" in result["stderr"]


def test_exception_whose_text_fails_is_still_reported(daemon):
    code = ("class E(Exception):\n    def __str__(self): raise RuntimeError('no text')\n"
            "def handler(event):\n    raise E()\n")
    result = daemon.execute(code)
    assert (result["status"], result["exit_code"]) == ("failed", 1)
    assert "E" in result["stderr"]


@pytest.mark.parametrize("code, exit_code, status", [
    ("import sys\ndef handler(e): sys.exit(3)", 3, "failed"),
    ("import sys\ndef handler(e): sys.exit('words')", 1, "failed"),
    ("import sys\ndef handler(e): sys.exit()", 0, "success"),
    ("import os\ndef handler(e): os._exit(9)", 9, "failed"),
    ("import os\nos._exit(0)", 0, "success"),
    ("import sys\nsys.exit(4)", 4, "failed"),
    ("def handler(e): raise KeyboardInterrupt", 130, "failed"),
])
def test_exit_codes(daemon, code, exit_code, status):
    result = daemon.execute(code)
    assert (result["status"], result["exit_code"], result["return_value"]) == (status, exit_code, None)


@pytest.mark.parametrize("name, number", [("SIGKILL", 9), ("SIGSEGV", 11), ("SIGABRT", 6), ("SIGTERM", 15)])
def test_death_by_signal_is_128_plus_its_number(daemon, name, number):
    result = daemon.execute(f"import os, signal\ndef handler(e): os.kill(os.getpid(), signal.{name})")
    assert (result["status"], result["exit_code"]) == ("failed", 128 + number)
    assert result["termination"]["reason"] == "signal"
    assert result["termination"]["signal"] in (number, name)


def test_abort_of_the_interpreter(daemon):
    result = daemon.execute("import os\ndef handler(e): os.abort()")
    assert result["exit_code"] == 134


def test_atexit_and_buffers_are_honoured(daemon):
    code = "import atexit\natexit.register(print, 'bye')\ndef handler(e):\n    print('hi', end=' ')\n    return 1"
    result = daemon.execute(code)
    assert (result["stdout"], result["return_value"]) == ("hi bye\n", 1)


# ---- surroundings ----


def test_random_numbers_differ_between_runs(daemon):
    code = ("import os, random, secrets, uuid\n"
            "def handler(e): return [random.random(), secrets.token_hex(8), str(uuid.uuid4()), os.urandom(8).hex()]")
    runs = [daemon.returned(code) for _ in range(4)]
    for column in zip(*runs):
        assert len(set(column)) == len(runs)


def test_state_of_one_run_is_not_seen_by_the_next(daemon):
    spoil = textwrap.dedent("""
        import builtins, json, os, sys
        sys.modules['planted'] = json
        builtins.planted = 1
        os.environ['PLANTED'] = '1'
        open('/workspace/planted', 'w').close()
        open('/tmp/planted', 'w').close()
        def handler(event): return 1
        """)
    look = textwrap.dedent("""
        import builtins, os, sys
        def handler(event):
            return ['planted' in sys.modules, hasattr(builtins, 'planted'), 'PLANTED' in os.environ,
                    os.listdir('/workspace'), os.listdir('/tmp')]
        """)
    for _ in range(3):
        assert daemon.returned(spoil) == 1
        assert daemon.returned(look) == [False, False, False, [], []]


def test_cwd_home_path_and_locale(daemon):
    code = ("import locale, os, sys\ndef handler(e):\n"
            "    return [os.getcwd(), os.environ['HOME'], os.environ['TMPDIR'], os.environ['LC_CTYPE'],"
            " sys.getfilesystemencoding(), sys.stdout.encoding]")
    assert daemon.returned(code) == ["/workspace", "/workspace", "/tmp", "C.UTF-8", "utf-8", "utf-8"]


def test_modules_in_the_workspace_can_be_imported(daemon):
    code = "open('mine.py', 'w').write('A = 5')\nimport mine\ndef handler(e): return mine.A"
    assert daemon.returned(code) == 5


def test_python_is_at_least_3_11(daemon):
    assert daemon.returned("import sys\ndef handler(e): return list(sys.version_info[:2])") >= [3, 11]




# ---- the end ----


def test_everything_printed_before_the_end_arrives(daemon):
    """The answer does not wait for the process to be gone, but for all it wrote."""
    result = daemon.execute("""
import fcntl, os
def handler(event):
    fcntl.fcntl(1, 1031, 1 << 20)  # F_SETPIPE_SZ
    n = 0
    while n < 900_000:
        n += os.write(1, b"x" * (900_000 - n))
    return "y" * 300_000
""")
    assert result["status"] == "success" and len(result["stdout"]) == 900_000
    assert len(result["return_value"]) == 300_000


SAY_DONE = """
import ctypes, os, signal, struct, sys, time
def say_done(code, threads=1):
    info = struct.pack("=iiiiiiq", signal.SIGUSR1, 0, -1, 0, os.getpid(), os.getuid(), threads << 8 | code) + bytes(96)
    return ctypes.CDLL(None).syscall(129, 1, signal.SIGUSR1, info[:128])
"""


def test_a_program_that_says_it_is_done_is_taken_at_its_word(daemon):
    harness.need(harness.FULL, "without control groups its exit is waited for, which tells what it used")
    result = daemon.execute(SAY_DONE + """
open("left", "w").close()
print("before", flush=True)
def handler(event):
    assert say_done(7) == 0
    while True:
        pass
""", timeout=60)
    assert result["exit_code"] == 7 and result["status"] == "failed", result
    assert result["stdout"] == "before\n" and result["artifacts"] == ["left"]


def test_a_program_that_says_it_has_left_is_gone(daemon):
    harness.need(harness.FULL, "without control groups its exit is waited for, which tells what it used")
    result = daemon.execute("""
import os, time
def handler(event):
    print("before", flush=True)
    with open("left", "w") as f:  # its own word is not to be trusted in this, and is lost
        f.write("x")
    os.write(3, b"Q00000001\\x07")
    while True:
        time.sleep(0.1)
""", timeout=60)
    assert result["exit_code"] == 7 and result["status"] == "failed", result
    assert result["stdout"] == "before\n" and result["artifacts"] == []
    assert daemon.returned("def handler(event):\n    return 1") == 1


def test_who_is_not_alone_has_not_left(daemon):
    """Its children are of the program, too: what it says of itself alone does not end it, and how many there are is
    counted outside, not believed. Nobody of them is there any more when the answer is."""
    mark = harness.marker()
    result = daemon.execute(f"""
import fcntl, os, subprocess, termios, time
def handler(event):
    children = [subprocess.Popen(["/bin/bash", "-c", "{harness.spawn_marked(mark)}"]) for _ in range(6)]
    os.write(3, b"Q00000001\\x07")
    for count in range(1, 256):
        os.write(3, b"Q00000002\\x07" + bytes([count]))
    while any(fcntl.ioctl(3, termios.TIOCOUTQ, bytes(4))):  # until it was heard, while the children are there
        time.sleep(0.001)
    return len(children)
""")
    left = harness.traces_of(mark)
    assert result["status"] == "success" and result["return_value"] == 6, result
    assert not left


@pytest.mark.parametrize("words, end", [
    ("Q00000000", ("success", "the end")),  # means nothing
    ("Q00000003abc", ("success", "the end")), ("Q00000002ab", ("success", "the end")),  # nor does this
    ("q00000001a", ("failed", None)), ("Q0000001Ga", ("failed", None)),  # is no frame
])
def test_who_says_it_wrong_has_not_left(daemon, words, end):
    result = daemon.execute(f"""
import os
def handler(event):
    os.write(3, b"{words}")
    return "the end"
""")
    assert (result["status"], result["return_value"]) == end, result


def test_who_keeps_files_cannot_say_that_it_has_left(make_daemon):
    """Changes of its files are asked of pid 1."""
    daemon = make_daemon()
    answer = daemon.request("POST", "/v1/functions/call", json={
        "language": "python", "functionName": "f", "args": [], "options": {"files": {"a.txt": "1"}}, "code": """
import os
def f():
    with open("b.txt", "w") as file:
        file.write("2")
    os.write(3, b"Q00000001\\x07")
    return 5
"""})
    assert answer.status == 200, answer
    body = answer.json()
    assert body["result"] == 5 and "b.txt" in json.dumps(body["files"]), body


def test_only_the_first_process_may_say_that_it_is_done(daemon):
    result = daemon.execute(SAY_DONE + """
def handler(event):
    pid = os.fork()
    if pid == 0:
        say_done(7)
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.05)
    say_done(9)  # not alone any more: it is waited for
    return "the end"
""")
    assert result["status"] == "success" and result["return_value"] == "the end", result


def test_what_a_program_says_of_its_threads_is_not_believed(daemon):
    """Children that are called threads would write on while files are collected."""
    mark = harness.marker()
    result = daemon.execute(SAY_DONE + f"""
import subprocess
def handler(event):
    children = [subprocess.Popen(["/bin/bash", "-c", "{harness.spawn_marked(mark)}"]) for _ in range(2)]
    with open("/proc/loadavg") as f:
        newest = int(f.read().split()[-1])
    for threads in range(1, newest - os.getpid() + 8):
        say_done(7, threads)
        time.sleep(0.01)
    open("left", "w").close()
    return len(children)
""")
    left = harness.traces_of(mark)
    assert result["status"] == "success" and result["return_value"] == 2, result
    assert result["artifacts"] == ["left"] and not left


def test_a_file_beyond_its_own_limit_is_an_exception(daemon):
    """As in every Python, which ignores the signal; also in a copy of a warmed one."""
    code = """
import errno, resource
def handler(event):
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        with open("large", "wb", buffering=0) as f:
            return [f.write(bytes(8192)), f.write(b"x")]
    except OSError as error:
        return errno.errorcode[error.errno]
"""
    assert daemon.returned(code) == "EFBIG"
