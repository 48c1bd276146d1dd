# SPDX-License-Identifier: MIT
"""Python from the zygote: what comes of a program is what a fresh interpreter would have made of it.

Every program is run in a fresh one, and then twice in a warmed one: once with a text that the daemon sees for the
first time, and once with the code that was kept of it. These go different ways (src/zygote/python_program.h).
"""
import json
import os
import re
import textwrap

import pytest

import harness

PROGRAMS = {}
COMPARED = ("status", "exit_code", "return_value", "stdout", "stderr", "error")
COLD = {"PYTHONHASHSEED": "0"}


def program(name, code, **fields):
    assert name not in PROGRAMS
    PROGRAMS[name] = (textwrap.dedent(code), fields)


def returning(name, expression):
    program(name, f"def handler(event):\n    return {expression}\n")


# ---- what is returned ----

for name, expression in {
    "none": "None", "true": "True", "zero": "0", "large": "2**70", "float": "0.1", "text": "'\\u00e9\\n'",
    "nan": "[float('nan'), -float('inf')]", "tuple": "(1, (2,))", "keys": "{1: 2, None: 3, True: 4, 1.5: 5}", "surrogate": "'a\\udc00'",
    "nested": "eval('[' * 90 + ']' * 90)", "brackets": "'[' * 600", "bytes": "b'x'", "set": "{'a': {1}}", "object": "[1, object]",
    "bad_key": "{'a': {(1, 2): 3}}", "subclass": "type('D', (dict,), {})(a=1)", "int_subclass": "__import__('signal').SIGTERM",
    "long": "'x' * 3000", "at_the_edge": "'x' * 2036", "over_the_edge": "'x' * 2038",
}.items():
    returning(f"returns_{name}", expression)
program("returns_itself", "def handler(event):\n    a = [1]\n    a.append({'a': a})\n    return a\n")
program("returns_deep", "def handler(event):\n    a = []\n    for _ in range(600):\n        a = [a]\n    return a\n")
program("returns_too_deep", "def handler(event):\n    a = []\n    for _ in range(100000):\n        a = [a]\n    return a\n")
program("returns_much", "def handler(event):\n    return list(range(100000))\n")
program("event", "def handler(event):\n    return event\n", event={"a": [1, 2.5, "\u00e9", None], "b": {"c": True}})
program("event_long", "def handler(event):\n    return len(event['a']), event['n'] % 1000\n", event={"a": "x" * 9000, "n": 10**4200 + 123})

# ---- what is called ----

program("with_context", "def handler(event, context):\n    return context.function_name, context.get_remaining_time_in_millis() > 0\n")
program("with_default", "def handler(event, context=None):\n    return context is None\n")
program("with_other_default", "def handler(event, other=5):\n    return other\n")
program("with_any", "def handler(*a, **k):\n    return len(a)\n")
program("without", "def handler():\n    return 1\n")
program("lambda", "handler = lambda event: 'l'\n")
program("partial", "import functools\ndef f(a, event):\n    return a\nhandler = functools.partial(f, 7)\n")
program("wrapped", """
    import functools
    def twice(f):
        @functools.wraps(f)
        def g(*a):
            return [f(*a), f(*a)]
        return g
    @twice
    def handler(event):
        return 1
    """)
program("method", "class A:\n    def run(self, event, context):\n        return context.function_name\nhandler = A().run\n")
program("callable", "class A:\n    def __call__(self, event):\n        return 'c'\nhandler = A()\n")
program("class", "class handler(dict):\n    pass\n", event={"a": 1})
program("builtin", "handler = len\n", event={"a": 1})
program("async", "import asyncio\nasync def handler(event):\n    await asyncio.sleep(0)\n    return 'a'\n")
program("awaitable", "class A:\n    def __await__(self):\n        yield from ()\n        return 3\ndef handler(event):\n    return A()\n")
program("generator", "def handler(event):\n    yield 1\n")
program("missing", "x = 1\n")
program("nothing", "handler = None\n")
program("not_callable", "handler = 3\n")
program("empty", " ")

# ---- what fails ----

program("raises", "def handler(event):\n    raise ValueError('\\u00e9')\n")
program("raises_at_the_end", "s = '\u2028\f'\ndef handler(event):\n    1/0")
program("raises_chained", "def handler(event):\n    try:\n        1 / 0\n    except ArithmeticError as e:\n        raise KeyError('k') from e\n")
program("raises_in_body", "import json\njson.loads('{')\n")
program("raises_its_own", "class Odd(Exception):\n    def __str__(self):\n        raise ValueError\ndef handler(event):\n    raise Odd\n")
program("raises_group", "def handler(event):\n    raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n")
program("raises_from_len", "def handler(event):\n    return len(5)\n")
program("interrupted", "def handler(event):\n    raise KeyboardInterrupt\n")
program("too_deep", "def f(n):\n    return f(n + 1)\ndef handler(event):\n    return f(0)\n")
program("syntax", "def handler(event:\n    return 1\n")
program("indentation", "def handler(event):\nreturn 1\n")
program("mark", "\ufeffdef handler(event):\n    return 'm'\n")
program("lines", "def handler(event):\r\n    return 'l'\r\n")
program("cookie", "# -*- coding: latin-1 -*-\ndef handler(event):\n    return '\u00e9'\n")
program("future", "from __future__ import annotations\ndef handler(event: nothing):\n    return handler.__annotations__\n")
program("own_hook", "import sys\nsys.excepthook = lambda t, e, tb: print('hook', t.__name__)\ndef handler(event):\n    raise ValueError\n")
for name, value in {"none": "", "number": "7", "large": "2**80", "negative": "-1", "text": "'why'", "true": "True"}.items():
    program(f"exits_{name}", f"import sys\ndef handler(event):\n    sys.exit({value})\n")
program("exits_in_body", "raise SystemExit(4)\n")
program("exits_at_once", "import os\ndef handler(event):\n    print('lost')\n    os._exit(5)\n")
program("closes_the_channel", "import os\ndef handler(event):\n    os.close(3)\n    return 1\n")
program("takes_the_channel", "import os\ndef handler(event):\n    os.close(3)\n    os.open('/dev/null', os.O_WRONLY)\n    return 1\n")

# ---- what is printed ----

program("prints", "import sys\nprint('a')\ndef handler(event):\n    print('b', end='')\n    print('c', file=sys.stderr, end='')\n    return 1\n")
program("replaces_stdout", "import io, sys\nsys.stdout = io.StringIO()\ndef handler(event):\n    print('x')\n    return sys.stdout.getvalue()\n")
program("stdout_cannot_flush", """
    import sys
    class Odd:
        def write(self, text):
            sys.__stdout__.write(text.upper())
        def flush(self):
            raise OSError('no')
    sys.stdout = Odd()
    def handler(event):
        print('odd')
        return 1
    """)
program("closes_stdout", "import sys\ndef handler(event):\n    print('x')\n    sys.stdout.close()\n    return 1\n")
program("no_stdout", "import sys\nsys.stdout = None\ndef handler(event):\n    print('x')\n    return 1\n")
program("prints_much", "def handler(event):\n    for i in range(20000):\n        print('0123456789')\n    return 1\n")

# ---- what the program sees of itself ----

program("names", "def handler(event):\n    return sorted(globals()), __name__, __file__, type(__builtins__).__name__\n")
program("main", "import sys\ndef handler(event):\n    m = sys.modules['__main__']\n    return m.handler is handler, m.__spec__, sys.argv\n")
program("source", "import inspect\ndef handler(event):\n    return inspect.getsource(handler), __loader__.get_source('__main__')[:6]\n")
program("pickle", "import pickle\nclass A:\n    pass\ndef handler(event):\n    return type(pickle.loads(pickle.dumps(A()))).__name__\n")
program("moves", "import os\ndef handler(event):\n    os.chdir('/tmp')\n    return os.getcwd()\n")
program("traces", """
    import sys
    seen = set()
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_name) if frame.f_code.co_filename == __file__ else None)
    def handler(event):
        return sorted(seen)
    """)
program("audits", "import sys\nsys.addaudithook(lambda name, args: None)\ndef handler(event):\n    return 1\n")

# ---- what comes after it ----

program("at_exit", "import atexit\natexit.register(print, 'bye')\ndef handler(event):\n    return 1\n")
program("thread", "import threading, time\ndef f():\n    time.sleep(0.05)\n    print('late')\ndef handler(event):\n    threading.Thread(target=f).start()\n    return 1\n")
program("daemon_thread", "import threading, time\ndef handler(event):\n    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n    return 1\n")
program("last_words", "class A:\n    def __del__(self):\n        print('gone')\na = A()\ndef handler(event):\n    return 1\n")
program("last_words_of_a_cycle", "class A:\n    def __del__(self):\n        print('gone')\na = A()\na.a = a\ndef handler(event):\n    return 1\n")
program("last_words_unseen", "class A:\n    __slots__ = ()\n    def __del__(self):\n        print('gone')\na = A()\ndef handler(event):\n    return 1\n")
program("last_words_end_it", "import os\nclass A:\n    def __del__(self):\n        os._exit(0)\na = A()\ndef handler(event):\n    return 'told'\n")
program("last_words_unseen_end_it", "import os\nclass A:\n    __slots__ = ()\n    def __del__(self):\n        os._exit(0)\na = [A()]\ndef handler(event):\n    return 'told'\n")
program("last_words_fail", "class A:\n    def __del__(self):\n        raise ValueError\na = A()\ndef handler(event):\n    return 1\n")
program("weak_reference", "import builtins, os, weakref\nclass A:\n    pass\na = A()\nbuiltins.r = weakref.ref(a, lambda _: os._exit(0))\ndef handler(event):\n    return 'told'\n")
program("collector_calls", """
    import gc, os
    def handler(event):
        gc.callbacks.append(lambda phase, info: os._exit(0))
        return 'told'
    """)
program("stdout_ends_it", """
    import os, sys
    class Last:
        def write(self, text):
            pass
        def flush(self):
            self.n = getattr(self, "n", 0) + 1
            if self.n > 1:
                os._exit(0)
    def handler(event):
        sys.stdout = Last()
        return 'told'
    """)
program("unfinished", "def f():\n    try:\n        yield\n    finally:\n        print('closed')\ng = f()\nnext(g)\ndef handler(event):\n    return 1\n")
program("open_file", "f = open('/tmp/f', 'w')\nf.write('x')\ndef handler(event):\n    return 1\n")
program("module_of_its_own", "import colorsys, sys\nsys.modules['own'] = colorsys\ndef handler(event):\n    return 1\n")
program("forks", "import os\ndef handler(event):\n    if os.fork() == 0:\n        return 'child'\n    os.wait()\n    return 'parent'\n")


@pytest.fixture(scope="module")
def daemon(make_daemon_module):
    harness.need(os.uname().sysname == "Linux", "a zygote")
    daemon = make_daemon_module(POOL_PYTHON="2")
    wait_warmed(daemon)
    return daemon


def wait_warmed(daemon):
    return harness.wait_until(
        lambda: template_of(daemon.execute("def handler(e): return 1", "python")) == "python", "a warmed Python")


def template_of(result):
    return result["isolation"]["template"]


def seen_by_clients(result):
    """Without what differs from run to run, or with the frames of whoever calls the program."""
    seen = json.dumps({k: result.get(k) for k in COMPARED})
    return json.loads(re.sub(r"0x[0-9a-f]+|repeated \d+ more", "?", seen))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_of_a_program(daemon, name):
    code, fields = PROGRAMS[name]
    expected = daemon.execute(code, "python", env_vars=COLD, **fields)
    assert template_of(expected) == "exec"
    for _ in range(2):
        got = daemon.execute(code, "python", **fields)
        assert template_of(got) == "python"
        assert seen_by_clients(got) == seen_by_clients(expected)
