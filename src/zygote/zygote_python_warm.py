# SPDX-License-Identifier: MIT
"""What a Python zygote does before its first fork: import what programs import, then hold still."""
import _random
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

MODULES_MAX = 1000

gc.disable()  # nothing of what comes is garbage, and looking at all of it again and again takes long
import _sandbox

science = sys.modules.pop("_sandbox_science", None)  # of that template only

# What every program does, and no more: what only some do they pay themselves. One that the daemon has seen
# before, and one that it has not.
PROGRAM = b"def handler(event):\n    return event\n"
KNOWN = {
    "C": PROGRAM,
    "V": b'{"a": 1}',
    "X": b'{"execution_id": "x", "function_name": "handler", "remaining_ms": 1}',
    "K": _sandbox.MAGIC_NUMBER + _sandbox.marshal_dumps(
        compile(PROGRAM, os.getcwd() + "/handler.py", "exec", dont_inherit=True)),
    "G": b"",
}
UNKNOWN = {
    "C": PROGRAM,
    "V": b'{"a": 1}',
    "X": b'{"execution_id": "x", "function_name": "handler", "remaining_ms": 1, "compiled_max": 65536}',
    "G": b"",
}
seed, generator, thread = _random.Random.seed, random._inst, threading.main_thread()
environ = os.environ._data  # a dictionary of bytes
environ[b"EVENT_JSON"] = b"{}"  # nearly every run has one
# The table of modules is written to by every run. Made large enough now, it lies with the rest of what is
# (heap.c): otherwise it would be made anew behind everything that is imported, and a huge page be taken
# apart for it alone.
for name in (many := list(map(str, range(MODULES_MAX)))):
    sys.modules[name] = None
for name in many:
    del sys.modules[name]
main = sys.modules["__main__"]
before = _sandbox.before
before.update(sys.modules)


def rehearsed():
    """Ends a small program that was run as every program is. Leaves no trace that a program could
    see."""
    if science:
        science.rehearse()
    _sandbox.end()
    sys.modules["__main__"] = main


# What a run makes once and for all then lies with the rest of what is written to (heap.c). Without its
# end: that of threads and exit functions comes only once.
_sandbox.serve(UNKNOWN)
_sandbox.serve(KNOWN)
_sandbox.let_go(before)
sys.modules["__main__"] = main
_sandbox.prepare(_sandbox.calls)
del _sandbox.calls
for name in MODULES:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # not installed on this host: a program's own import will say so

for name in "LD_BIND_NOW", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS":
    os.environ.pop(name, None)  # nobody else is to see them; those that matter were read
del sys.modules["_sandbox"]
before.update(sys.modules)
# As long as these are as long as now there is nothing to be done at the end of a program.
_sandbox.is_settled(threading._active, threading._shutdown_locks, threading._threading_atexits,
                    sys.modules["logging"]._handlerList)
gc.collect()
gc.freeze()  # a rehearsal looks at all that is not frozen
gc.enable()
for frames in (UNKNOWN, KNOWN) * 20:
    _sandbox.serve(frames)
    rehearsed()
gc.collect()
gc.freeze()
