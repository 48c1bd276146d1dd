# SPDX-License-Identifier: MIT
# In front of every group of attacks and of the control group. A program is a handler: what it is
# told comes as the event, or in SELFTEST_EVENT where nobody calls handlers.
#
#   HELD ...    refused; the words say how
#   BREACH ...  it went through
#   HOLD        look now, then kill this process; asked for by event["hold"], whatever came of it.
#               An attack that got a descriptor leaves its number in event["fd"].
#   OK / ABSENT of the control group: it works, or it is not installed here
#
# In WebAssembly whole modules of Python are missing, which is a wall like any other.
import errno
import json
import os
import sys
import time

WASM = sys.platform in ("wasi", "emscripten")
try:
    import ctypes
    import signal
    import socket
    import subprocess
    libc = ctypes.CDLL(None, use_errno=True)
except ImportError:
    if not WASM:
        raise

attacks = {}
MISSING = (NameError, ImportError, AttributeError) if WASM else ()


def attack(name):
    def add(function):
        attacks[name] = function
        return function
    return add


def say(*words):
    os.write(1, (" ".join(str(w) for w in words).replace("\n", " ")[:2000] + "\n").encode())


def name_of(problem):
    return errno.errorcode.get(problem.errno, str(problem)) if isinstance(problem, OSError) else repr(problem)


def hold(words):
    say("BREACH" if words else "HELD", words or "waiting")
    say("HOLD process", os.getpid())
    time.sleep(20)


def reached(paths, how):
    """The first of several ways that works; the last refusal when none does."""
    problem = FileNotFoundError(errno.ENOENT, "nothing")
    for path in paths:
        try:
            return f"{path}: {how(path)}"
        except OSError as e:
            problem = e
    raise problem


def read(path):
    with open(path, "rb") as f:
        return f.read(4096).decode("utf-8", "replace")


def below(path):
    return os.listdir(path)[:5]


def leave_behind(event, seconds=30):
    """A process that goes by the name of the mark and has cut every tie."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.execv("/bin/sleep", [event["mark"], str(seconds)])


def handler(event):
    if not WASM:
        libc.prctl(15, event["mark"].encode(), 0, 0, 0)  # the name by which it is found outside
    try:
        words = attacks[event["attack"]](event)
    except MemoryError:
        words = None
        say("HELD MemoryError")
    except OSError as problem:
        words = None
        say("HELD", name_of(problem))
    except MISSING as problem:
        words = None
        say("HELD", problem)
    else:
        say(*(("BREACH", words) if words else ("HELD", "nothing found")))
    sys.stdout.flush()
    if event.get("hold"):
        say("HOLD fd" if "fd" in event else "HOLD look", event.get("fd", 0), "")
        time.sleep(20)
    return None

