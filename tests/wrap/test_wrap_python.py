# SPDX-License-Identifier: MIT
"""src/lang/wrap/python.py as `python3 -c`, and as a module of a warmed interpreter."""
import json
import os
import random
import subprocess
import sys
import textwrap

import pytest
import wrapper

sys.set_int_max_str_digits(0)


def run(code, event=None, **fields):
    return wrapper.run("python", textwrap.dedent(code), event, **fields)


def returned(code, event=None, **fields):
    return run(code, event, **fields).value


def failed(code, *words, event=None, **fields):
    """Ends with 1, says the words on stderr, returns nothing."""
    got = run(code, event, **fields)
    assert got.code == 1 and not got.all("R"), (got.code, got.frames)
    for word in words:
        assert word in got.err
    return got


# ---- compiled code ----

ONE, TWO = "def handler(event): return 1", "def handler(event): return 2"


def compiled(code, **fields):
    got = run(code, compiled_max=65536, **fields)
    assert len(got.compiled) == 1, got.frames
    return got.compiled[0]


def test_compiled_code_is_told_only_if_it_is_asked_for():
    assert run(ONE).compiled == [] and len(compiled(ONE)) > 16
    assert run("def handler(", compiled_max=65536).compiled == []


def test_compiled_code_that_is_known_is_what_runs():
    assert returned(TWO, known=compiled(ONE)) == 1  # that it is of the same text is the daemon's business
    assert returned(TWO, known=b"") == 2


def test_compiled_code_of_another_interpreter_or_place_is_not_used(tmp_path):
    known = compiled(ONE)
    assert returned(TWO, known=b"\0\0\r\n" + known[4:]) == 2
    assert returned(TWO, known=known, cwd=tmp_path) == 2


def test_compiled_code_that_is_too_large_keeps_its_place():
    assert run(ONE, compiled_max=16).compiled == [b""]


def test_an_error_in_compiled_code_shows_its_line():
    code = "def handler(event):\n    return 1 / event['a']  # a line\n"
    first, again = run(code, {"a": 0}), run(code, {"a": 0}, known=compiled(code, event={"a": 1}))
    assert "return 1 / event['a']  # a line" in again.err and again.err == first.err
    assert again.error == first.error


# ---- handlers ----


@pytest.mark.parametrize("code, value", [
    ("def handler(event): return event['a']", 41),
    ("def handler(event, context): return context.execution_id", "x-1"),
    ("def handler(event, context=None): return context.execution_id", "x-1"),
    ("def handler(event, ctx=None): return ctx is not None", True),
    ("def handler(event, verbose=False): return verbose", False),
    ("def handler(event, /, context): return context.function_name", "handler"),
    ("def handler(*args): return len(args)", 2),
    ("def handler(event, *more): return len(more)", 1),
    ("def handler(event, **kw): return kw", {}),
    ("def handler(event, *, k=3): return k", 3),
    ("handler = lambda event: event['a']", 41),
    ("handler = lambda event, context: context.aws_request_id", "x-1"),
    ("class H:\n def __call__(self, event): return 'object'\nhandler = H()", "object"),
    ("class H:\n def __call__(self, e, c): return c.execution_id\nhandler = H()", "x-1"),
    ("class H:\n def m(self, event): return 'method'\nhandler = H().m", "method"),
    ("class H:\n def m(self, e, c): return c.execution_id\nhandler = H().m", "x-1"),
    ("class H:\n @classmethod\n def m(cls, e, c): return c.execution_id\nhandler = H.m", "x-1"),
    ("class H:\n @staticmethod\n def m(e): return 's'\nhandler = H.m", "s"),
    ("import functools\ndef f(x, event): return x\nhandler = functools.partial(f, 5)", 5),
    ("import functools\ndef f(x, e, c): return c.execution_id\nhandler = functools.partial(f, 5)",
     "x-1"),
    ("import functools\ndef deco(f):\n @functools.wraps(f)\n def w(*a, **k): return f(*a, **k)\n"
     " return w\n@deco\ndef handler(event): return 'wrapped'", "wrapped"),
    ("import functools\ndef deco(f):\n @functools.wraps(f)\n def w(*a, **k): return f(*a, **k)\n"
     " return w\n@deco\ndef handler(event, context): return context.execution_id", "x-1"),
    ("handler = dict", {"a": 41}),
    ("handler = len", 1),
    ("async def handler(event): return event['a']", 41),
    ("import asyncio\nasync def handler(e, c):\n await asyncio.sleep(0)\n return c.execution_id",
     "x-1"),
    ("class A:\n def __await__(self):\n  yield from ()\n  return 7\ndef handler(e): return A()", 7),
    ("from __future__ import annotations\ndef handler(event: Unknown): return 'future'", "future"),
    ("\ufeffdef handler(e): return 'bom'", "bom"),
    ("def handler(e):\r\n    return 'crlf'\r\n", "crlf"),
    ("# -*- coding: latin-1 -*-\ndef handler(e): return 'é'", "é"),
    ("ran = 0\nif __name__ == '__main__':\n ran = 1\ndef handler(e): return ran", 1),
])
def test_handler_forms(code, value):
    assert returned(code, {"a": 41}) == value


@pytest.mark.parametrize("code", ["", "x = 1", "handler = 3"])
def test_a_program_without_a_handler_is_a_script(code):
    assert returned(code) is None
    assert returned(code + "\ndef handler(event): return 1", mode="script") is None


@pytest.mark.parametrize("code, words", [
    ("", "handler(event) is not defined"),
    ("x = 1", "handler(event) is not defined"),
    ("handler = 3", "handler(event) is not a function but int"),
])
def test_a_handler_that_is_demanded_must_be_there(code, words):
    assert words in failed(code, words, mode="handler").error["message"]


@pytest.mark.parametrize("code, words", [
    ("def handler(): return 1", "handler() takes 0 positional arguments"),
    ("def handler(a, b, c): return 1", "missing 1 required positional argument: 'c'"),
    ("def handler(event, *, k): return 1", "missing 1 required keyword-only argument: 'k'"),
])
def test_what_is_no_handler_fails_with_the_reason(code, words):
    assert words in failed(code, words).error["message"]


def test_the_event_is_an_empty_object_when_there_is_none():
    assert returned("def handler(e): return e") == {}


def test_context():
    got = run("""
        import time
        def handler(event, context):
            first = context.get_remaining_time_in_millis()
            time.sleep(0.01)
            return [context.execution_id, context.function_name, context.memory_limit_in_mb,
                    0 < first <= 5000, context.get_remaining_time_in_millis() < first]
        """, execution_id="id é", function_name="f", memory_limit_in_mb=64, remaining_ms=5000)
    assert got.value == ["id é", "f", 64, True, True]


def test_progress_frames_come_in_order_and_before_the_result():
    got = run("""
        def handler(event, context):
            for i in range(100):
                context.progress({'done': i, 'nan': float('nan')})
            return 'end'
        """)
    assert got.all("P") == [{"done": i, "nan": None} for i in range(100)]
    assert got.frames[-1][:2] == ("R", "end")


@pytest.mark.parametrize("value, words", [
    ("[1]", "progress() takes a dict, not list"), ("{'a': {1}}", "type set"),
    ("{'a': 'x' * 70000}", "at most 65536"),
])
def test_bad_progress_is_the_programs_error(value, words):
    got = failed(f"def handler(e, c):\n    c.progress({value})", words)
    assert got.err.count('File "') == 1, "our own frames are not shown"


def test_progress_of_threads_does_not_mix():
    got = run("""
        import threading
        def handler(event, context):
            def report(n):
                for _ in range(50):
                    context.progress({'n': n, 'pad': 'x' * 60000})
            threads = [threading.Thread(target=report, args=(n,)) for n in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
        """)
    assert len(got.all("P")) == 200 and got.value is None


# ---- values ----

VALUES = [
    None, True, False, 0, -1, "", [], {}, [[]], 0.0, -0.5, 1e300, 5e-324, "\u0000", "é漢🎉",
    "\u2028", "\"\\/\b\f\n\r\t", "\ud800", "a\udfffb", 2**53 + 1, 2**64, -10**40, 10**5000,
    {"z": 1, "a": {"y": 2}}, [None, False, 0, "", [], {}],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: ascii(v)[:24])
def test_any_json_value_survives(value):
    got = returned("def handler(e): return e['v']", {"v": value})
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize("expression, text", [
    ("(1, (2,))", "[1,[2]]"),
    ("{1: 'a', True: 'b', None: 'c', 1.5: 'd'}", '{"1":"b","null":"c","1.5":"d"}'),
    ("__import__('enum').IntEnum('E', 'A')(1)", "1"),
    ("__import__('collections').OrderedDict(b=1, a=2)", '{"b":1,"a":2}'),
    ("__import__('collections').namedtuple('P', 'x y')(1, 2)", "[1,2]"),
    ("'é'", '"é"'),
])
def test_text_of_values(expression, text):
    assert run(f"def handler(e): return {expression}").text == text


@pytest.mark.parametrize("expression, words", [
    ("object()", "Object of type object is not JSON serializable at result\n"),
    ("{'a': [1, {2}]}", "type set is not JSON serializable at result['a'][1]"),
    ("(i for i in range(3))", "type generator is not JSON serializable"),
    ("b'x'", "type bytes"),
    ("[{(1, 2): 3}]", "not tuple at result[0]"),
    ("__import__('datetime').datetime.now()", "type datetime"),
    ("__import__('decimal').Decimal('1')", "type Decimal"),
])
def test_unserialisable_values_fail_with_type_and_place(expression, words):
    got = failed(f"def handler(e): return {expression}", "TypeError: ", words)
    assert got.error["type"] == "TypeError"
    assert "Traceback" not in got.err


@pytest.mark.parametrize("code, words", [
    ("def handler(e):\n    a = []\n    a.append(a)\n    return a", "Circular reference"),
    ("def handler(e):\n    return float('nan')", "neither NaN nor infinite numbers, but there is one at result;"),
    ("def handler(e):\n    return [1, {'a': (-float('inf'), 1)}]", "one at result[1]['a'][0];"),
    ("def handler(e):\n    return [{float('nan'): 1}, '\\ud800']", "one at result[0];"),
    ("def handler(e):\n    a = []\n    for _ in range(100000): a = [a]\n    return a", "recursion"),
    ("def handler(e):\n    a = []\n    for _ in range(600): a = [a]\n    return a",
     "nested deeper than 512"),
    ("async def handler(e):\n    yield 1", "type async_generator"),
])
def test_circular_and_deep_values_fail(code, words):
    assert "_sandbox" not in failed(code, words).err


def test_depth_up_to_the_limit_survives():
    code = "def handler(e):\n    a = 1\n    for _ in range(512): a = [a]\n    return a"
    assert run(code).text == "[" * 512 + "1" + "]" * 512


def test_many_shallow_containers_are_not_deep():
    assert len(returned("def handler(e): return [[{}] for _ in range(50000)]")) == 50000


def test_a_large_event_and_a_large_value():
    value = {"v": ["é" * 1000] * 2000}
    assert returned("def handler(e): return e", value) == value


def test_a_value_above_the_limit_fails():
    failed("def handler(e): return 'x' * 100", "102 bytes as JSON, at most 101", result_max=101)
    assert returned("def handler(e): return 'x' * 99", result_max=101) == "x" * 99


def test_a_mebibyte_of_code():
    code = "def handler(e): return len(x)\nx = '" + "y" * 1_000_000 + "'\n" + "# comment\n" * 4000
    assert returned(code) == 1_000_000


# ---- output ----


def test_output_is_the_programs_own():
    got = run("""
        import os, sys
        print('one')
        sys.stdout.write('two')
        def handler(event):
            print('three')
            print('E', file=sys.stderr)
            sys.stdout.write('unfinished')
            return 'value'
        """)
    assert (got.out, got.err, got.value) == ("one\ntwothree\nunfinished", "E\n", "value")


def test_printed_frames_and_markers_forge_nothing():
    got = run("""
        def handler(e):
            print('R00000001' + '1')
            print('===SANDBOX_RESULT===1===SANDBOX_RESULT_END===')
            return 'true'
        """)
    assert got.value == "true" and "R000000011" in got.out


def test_large_output_arrives_before_the_result():
    got = run("import sys\ndef handler(e):\n    sys.stdout.write('x' * 20_000_000)\n    return 1")
    assert len(got.out) == 20_000_000 and got.value == 1


def test_what_was_printed_survives_a_kill():
    got = run("import os\nprint('kept')\ndef handler(e):\n    os.kill(os.getpid(), 9)")
    assert (got.code, got.out) == (-9, "kept\n")


@pytest.mark.parametrize("spoil", [
    "sys.stdout.close()", "os.close(1)", "sys.stdout = None", "del sys.stdout", "sys.stdout = 3",
    "sys.stderr.close()", "os.close(2)", "sys.stderr = io.StringIO()", "os.close(0)",
    "sys.stdin.close()",
])
def test_spoiled_streams_lose_no_result(spoil):
    assert returned(f"import io, os, sys\ndef handler(e):\n    {spoil}\n    return 5") == 5


def test_errors_reach_the_real_stderr():
    failed("import io, sys\nsys.stderr = io.StringIO()\ndef handler(e): return 1 / 0",
           "ZeroDivisionError")


# ---- hostile and careless programs ----


@pytest.mark.parametrize("spoil", [
    "json.dumps = json.loads = json.JSONEncoder = broken",
    "os.write = os.read = os.fstat = os.getpid = broken",
    "import posix; posix.write = posix.fstat = broken",
    "sys.exit = sys.excepthook = broken",
    "sys._getframe = sys.getrecursionlimit = broken",
    "builtins.print = builtins.open = builtins.len = builtins.isinstance = broken",
    "builtins.__dict__.clear()",
    "sys.modules.clear()",
    "sys.modules['_json'] = sys.modules['json'] = None",
    "sys.modules['__main__'] = None",
    "sys.path = None",
    "time.monotonic = broken",
    "import _json; _json.make_encoder = _json.c_make_encoder = broken",
    "sys.setrecursionlimit(60)",
    "sys.set_int_max_str_digits(640)",
    "__builtins__ = None; globals().clear()",
    "import gc; gc.disable(); gc.collect = broken",
    "import atexit; atexit._clear = atexit._run_exitfuncs = broken",
])
def test_replaced_functions_do_not_lose_the_result(spoil):
    got = run(f"""
        import builtins, json, os, sys, time
        def broken(*a, **k): raise RuntimeError('replaced')
        def handler(event):
            {spoil}
            return {{'big': 10 ** 1000, 'nan': [1.5], 's': 'é'}}
        """)
    assert got.all("R") == [{"big": 10 ** 1000, "nan": [1.5], "s": "é"}], got.err


@pytest.mark.parametrize("spoil", [
    "traceback.format_exception = traceback.TracebackException = broken",
    "sys.modules['traceback'] = None",
    "sys.modules['linecache'] = None",
    "linecache.cache = None",
    "builtins.__dict__.clear()",
    "sys.modules.clear()",
])
def test_replaced_functions_do_not_hide_an_error(spoil):
    got = run(f"""
        import builtins, linecache, os, sys, traceback
        def broken(*a, **k): raise RuntimeError('replaced')
        class Mine(Exception): pass
        def handler(event):
            mine = Mine('the reason')
            {spoil}
            raise mine
        """)
    assert got.code == 1 and "the reason" in got.err
    assert (got.error["type"], got.error["message"]) == ("Mine", "the reason")


def test_a_hook_of_the_program_speaks_instead():
    got = failed("import sys\nsys.excepthook = lambda t, v, tb: sys.stderr.write(f'mine: {v}\\n')\n"
                 "def handler(e): raise ValueError('x')")
    assert got.err == "mine: x\n" and got.error["type"] == "ValueError"


def test_the_channel_is_not_inherited():
    mine, child = returned("""
        import os, subprocess
        def handler(event):
            child = subprocess.run(['/bin/ls', '-l', '/proc/self/fd'], close_fds=False,
                                   capture_output=True, text=True).stdout
            return [os.readlink('/proc/self/fd/3'), child]
        """)
    assert mine.startswith("socket:") and mine not in child


def test_a_closed_channel_is_an_error_and_never_somebody_elses_file(tmp_path):
    got = run("""
        import os
        def handler(event):
            os.closerange(3, 100)
            for _ in range(8):
                os.open('mine', os.O_RDWR | os.O_CREAT)
            return 'secret'
        """, cwd=tmp_path)
    assert got.code == 1 and "closed the descriptor" in got.err
    assert got.frames == [] and (tmp_path / "mine").read_bytes() == b""


def test_a_forked_copy_returns_nothing():
    got = run("""
        import os
        def handler(event):
            pid = os.fork()
            if pid:
                return ['parent', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]
            return 'child'
        """)
    assert got.value == ["parent", 0]


# ---- failing ----


def test_traceback_has_only_the_programs_frames():
    got = failed("def inner(x):\n    return 1 / x\n\ndef handler(event):\n    return inner(0)\n")
    marks = [line for line in got.err.splitlines() if set(line) <= set(" ~^")]
    assert [line for line in got.err.splitlines() if line not in marks] == [
        'Traceback (most recent call last):',
        '  File "/tmp/handler.py", line 5, in handler', '    return inner(0)',
        '  File "/tmp/handler.py", line 2, in inner', '    return 1 / x',
        'ZeroDivisionError: division by zero']
    assert got.error == {"type": "ZeroDivisionError", "message": "division by zero",
                         "stack": got.err}


@pytest.mark.parametrize("code", [
    "import asyncio\nasync def handler(e):\n    await asyncio.sleep(0)\n    raise KeyError('k')",
    "def handler(e):\n\n\n    raise KeyError('k')",
    "\n\n\nraise KeyError('k')",
])
def test_lines_are_the_programs_own(code):
    got = failed(code, "line 4", "raise KeyError('k')", "KeyError: 'k'")
    assert got.err.count('File "') == 1


def test_carets_stand_below_what_failed_without_a_last_line_break():
    failed("def handler(e):\n    1/0", "\n    1/0\n    ~^~\n")


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\f", "\x1c"])
def test_lines_end_where_the_compiler_ends_them(odd):
    failed(f"s = '{odd}'\r\ndef handler(e):\r    raise KeyError(s)\n# last", "line 3", "\n    raise KeyError(s)\n")


def test_a_file_of_that_name_is_not_mistaken_for_the_source(tmp_path):
    (tmp_path / "handler.py").write_text("wrong\n" * 10)
    failed("def handler(e):\n    raise KeyError('k')", "    raise KeyError", cwd=tmp_path)


def test_syntax_error_is_pythons_own():
    got = failed("x = 1\ndef handler(event)\n    return 1\n")
    assert got.err == ('  File "/tmp/handler.py", line 2\n    def handler(event)\n'
                       "                      ^\nSyntaxError: expected ':'\n")


def test_chained_and_grouped_exceptions_are_shown():
    failed("def handler(e):\n try:\n  {}['a']\n except KeyError as k:\n"
           "  raise ValueError('second') from k", "KeyError: 'a'", "direct cause", "second")
    failed("def handler(e): raise ExceptionGroup('g', [ValueError('v'), TypeError('t')])",
           "ValueError: v", "TypeError: t")


@pytest.mark.parametrize("code, kind", [
    ("class E(Exception):\n def __str__(self): raise RuntimeError\ndef handler(e): raise E()", "E"),
    ("class E(BaseException): pass\ndef handler(e): raise E('b')", "E"),
    ("def handler(e): return handler(e)", "RecursionError"),
    ("import json\ndef handler(e): json.loads('{')", "json.decoder.JSONDecodeError"),
    ("def handler(e): raise MemoryError", "MemoryError"),
    ("def handler(e): raise GeneratorExit", "GeneratorExit"),
    ("import nothere\ndef handler(e): pass", "ModuleNotFoundError"),
])
def test_errors_have_a_type(code, kind):
    got = failed(code)
    assert got.error["type"] == kind
    assert kind.split(".")[-1] in got.err


def test_a_nul_in_the_code_is_an_error():
    failed("a\0b", "null bytes")


def test_long_messages_are_cut_in_the_frame_only():
    got = failed("def handler(e): raise ValueError('x' * 1_000_000)")
    assert len(got.err) > 1_000_000
    assert len(got.error["message"]) == 16384 and len(json.dumps(got.error)) < 200_000


@pytest.mark.parametrize("code, status, err", [
    ("import sys\ndef handler(e): sys.exit(3)", 3, ""),
    ("import sys\ndef handler(e): sys.exit()", 0, ""),
    ("import sys\ndef handler(e): sys.exit(None)", 0, ""),
    ("import sys\ndef handler(e): sys.exit('words')", 1, "words\n"),
    ("import sys\ndef handler(e): sys.exit(256 + 7)", 7, ""),
    ("import sys\ndef handler(e): sys.exit(-1)", 255, ""),
    ("import sys\ndef handler(e): sys.exit(2 ** 100)", 255, ""),
    ("import sys\nsys.exit(4)", 4, ""),
    ("import sys\nprint('out')\nsys.exit(0)", 0, ""),
    ("import sys\nasync def handler(e): sys.exit(5)", 5, ""),
    ("import os\ndef handler(e): os._exit(9)", 9, ""),
    ("raise SystemExit", 0, ""),
])
def test_exit_codes(code, status, err):
    got = run(code)
    assert (got.code, got.err, got.frames) == (status, err, [])


def test_keyboard_interrupt_is_130():
    got = run("def handler(e): raise KeyboardInterrupt")
    assert got.code == 130 and "KeyboardInterrupt" in got.err


def test_nobody_has_a_job():
    process = subprocess.run(["/bin/sh", "-c", 'exec "$@" 3</dev/null', "sh",
                              *wrapper.command("python")], capture_output=True, text=True,
                             check=False, timeout=60)
    assert process.returncode == 1 and "no job" in process.stderr


# ---- the interpreter around it ----


def test_threads_exit_functions_and_files_are_honoured(tmp_path):
    got = run("""
        import atexit, threading, time
        f = open('left-open', 'w')
        f.write('content')
        atexit.register(print, 'bye')
        def late():
            time.sleep(0.05)
            print('thread')
        def handler(event):
            threading.Thread(target=late).start()
            return 1
        """, cwd=tmp_path)
    assert (got.value, got.out) == (1, "thread\nbye\n")
    assert (tmp_path / "left-open").read_text() == "content"


def test_main_module_looks_ordinary(tmp_path):
    got = returned("""
        import os, pickle, sys
        class A: pass
        def handler(event):
            main = sys.modules['__main__']
            return [__name__, __file__, sys.argv, main.handler is handler, sys.path[0],
                    type(pickle.loads(pickle.dumps(A()))).__name__, __package__,
                    sorted(k for k in globals() if not k.startswith('__')),
                    __import__('__main__') is main]
        """, cwd=tmp_path)
    path = f"{tmp_path}/handler.py"
    assert got == ["__main__", path, [path], True, str(tmp_path), "A", None,
                   ["A", "handler", "os", "pickle", "sys"], True]


def test_source_can_be_inspected():
    assert returned("import inspect\ndef handler(e):\n    return inspect.getsource(handler)\n") == \
        "def handler(e):\n    return inspect.getsource(handler)\n"


def test_modules_beside_the_program_can_be_imported(tmp_path):
    (tmp_path / "mine.py").write_text("A = 5\n")
    assert returned("import mine\ndef handler(e): return mine.A", cwd=tmp_path) == 5
    assert sorted(os.listdir(tmp_path)) == ["mine.py"], "no __pycache__"


def test_nothing_is_left_behind(tmp_path):
    assert returned("def handler(e): return 1", cwd=tmp_path, env={"TMPDIR": str(tmp_path)}) == 1
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method, tmp_path):
    got = run(f"""
        import multiprocessing
        def square(x): return x * x
        def handler(event):
            with multiprocessing.get_context('{method}').Pool(2) as pool:
                return pool.map(square, [1, 2, 3])
        """, env={"TMPDIR": str(tmp_path)})
    assert got.value == [1, 4, 9], got.err
    assert not [n for n in os.listdir(tmp_path) if n.startswith("handler-")]


def test_stdin_is_the_programs():
    assert returned("import sys\ndef handler(e): return [e, sys.stdin.read()]", {"a": 1},
                    stdin="in é\n".encode()) == [{"a": 1}, "in é\n"]


def test_the_start_imports_little():
    got = returned("""
        import sys
        heavy = {'json', 're', 'inspect', 'traceback', 'linecache', 'typing', 'asyncio', 'enum',
                 'types', 'functools', 'collections', 'threading', 'socket', 'select'}
        plain = set(map(str, heavy & set(sys.modules)))
        def handler(event):
            return sorted(plain)
        """)
    bare = subprocess.run([wrapper.PYTHON, "-B", "-c", "import sys; print(sorted(sys.modules))"],
                          capture_output=True, text=True, check=True).stdout
    assert [name for name in got if repr(name) not in bare] == []


# ---- a warmed interpreter ----

ZYGOTE = """
import importlib.util, os, random, sys
spec = importlib.util.spec_from_loader('_sandbox', None)
module = importlib.util.module_from_spec(spec)
sys.modules['_sandbox'] = module
exec(compile(open(sys.argv[1]).read(), '<sandbox>', 'exec'), module.__dict__)
sys.path[0:1] = []
random.seed(1)
before = set(sys.modules)
pid = os.fork()
if pid == 0:
    code = module.run(3, [b'A=1', b'HOME=/h', b'TZ=UTC+3', b'PYTHONPATH=/p1:/p2', 'U=é'.encode()])
    module.finish(before)
    os._exit(code)
os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def warm(code, event=None, **fields):
    argv = [wrapper.PYTHON, "-B", "-c", ZYGOTE, str(wrapper.WRAP / "python.py")]
    return wrapper.run("python", textwrap.dedent(code), event, argv=argv, **fields)


def test_warmed_run_has_its_own_environment():
    got = warm("""
        import os, random, subprocess, sys, time
        def handler(event, context):
            child = subprocess.run(['/usr/bin/env'], capture_output=True, text=True).stdout
            return [event, dict(os.environ), sorted(child.split()), time.timezone, sys.path[:3],
                    '_sandbox' in sys.modules, random.random()]
        """, {"e": 1}, cwd="/tmp")
    event, env, child, zone, path, seen, number = got.value
    assert event == {"e": 1}
    assert env == {"A": "1", "HOME": "/h", "TZ": "UTC+3", "PYTHONPATH": "/p1:/p2", "U": "é"}
    assert child == sorted(f"{k}={v}" for k, v in env.items())
    assert (zone, path, seen) == (3 * 3600, ["/tmp", "/p1", "/p2"], False)
    assert number != random.Random(1).random(), "the generator was seeded again"


def test_warmed_run_ends_like_an_interpreter(tmp_path):
    got = warm("""
        import atexit, threading, time
        f = open('left-open', 'w')
        f.write('content')
        class Last:
            def __del__(self): print('del', handler.__name__)
        last = Last()
        atexit.register(print, 'bye')
        def late():
            time.sleep(0.05)
            print('thread')
        def handler(event):
            threading.Thread(target=late).start()
            print('unfinished', end=' ')
            return 1
        """, cwd=tmp_path)
    assert (got.value, got.out, got.err) == (1, "unfinished thread\nbye\ndel handler\n", "")
    assert (tmp_path / "left-open").read_text() == "content"


@pytest.mark.parametrize("code, status", [
    ("import sys\ndef handler(e): sys.exit(3)", 3), ("def handler(e): 1 / 0", 1), ("", 0),
    ("import sys\ndef handler(e): sys.modules.clear()", 0),
])
def test_warmed_run_has_the_same_exit_codes(code, status):
    got = warm(code)
    assert got.code == status
    assert '"<sandbox>"' not in got.err
