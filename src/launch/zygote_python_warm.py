# SPDX-License-Identifier: MIT
"""What a Python zygote does before its first fork: import what programs import, then hold still."""
import gc
import importlib
import os
import random
import sys
import threading

# Often wanted and cheap to carry. Every shared object loaded here is mapped again for each sandbox,
# so modules that bring their own (sqlite3, ctypes, decimal, lzma, ...) wait until a program asks.
MODULES = """
abc asyncio base64 bisect collections concurrent.futures contextlib copy csv dataclasses datetime
enum functools glob hashlib heapq hmac inspect io itertools json linecache logging math numbers
operator os pathlib pickle pprint queue random re secrets select shlex signal socket string struct
subprocess sys textwrap threading time traceback types typing urllib.parse warnings weakref
""".split()

for name in MODULES:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # not installed on this host: a program's own import will say so

import socket

import _sandbox

FRAMES = {
    b"C": b'''
import json, os, sys
def handler(event, context):
    return {"n": sum(range(9)), "s": "x" + str(event.get("a")), "b": [event["b"]]}
''',
    b"V": b'{"a": [1, 2.5, "x", null, true], "b": {"c": "\\u00e9"}}',
    b"X": b'{"execution_id": "x", "function_name": "handler", "remaining_ms": 1}',
    b"G": b"",
}
JOB = b"".join(b"%s%08x%s" % (kind, len(text), text) for kind, text in FRAMES.items())
ENVIRONMENT = [b"PATH=/usr/local/bin:/usr/bin:/bin", b"HOME=/workspace", b"LANG=C.UTF-8"]


def wake():
    """What changes in a fork of a process that has one thread and holds no lock. Of the functions
    that the modules above leave with os.register_at_fork(), the others only make locks anew; running
    all of them would cost a copy of a hundred pages."""
    random.seed()
    threading.main_thread()._set_native_id()


def rehearse():
    """Runs a small program as every program is run, into the void: what it touches is then private
    before the job comes. Leaves no trace that a program could see."""
    main, argv, orig_argv, path = sys.modules["__main__"], sys.argv, sys.orig_argv, sys.path[:]
    there, here = socket.socketpair()
    with there, here:
        there.sendall(JOB)
        _sandbox.run(here.fileno(), ENVIRONMENT)
        sys.modules[_sandbox.__name__] = _sandbox
        _sandbox.let_go(before)
    sys.modules["__main__"], sys.argv, sys.orig_argv, sys.path[:] = main, argv, orig_argv, path


before = frozenset(sys.modules) - {"_sandbox", __name__}
for _ in range(20):
    rehearse()
gc.collect()
gc.freeze()
