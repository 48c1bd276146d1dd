# SPDX-License-Identifier: MIT
"""What the template python-datascience loads beforehand, as far as it is installed."""
import atexit
import builtins
import contextlib
import importlib
import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile

PLACE = "/tmp/matplotlib"  # there is no such directory
MODULES = "numpy numpy.random pandas matplotlib.figure".split()


def warm(name):
    try:
        importlib.import_module(name)
    except Exception as e:  # a program's own import will say so
        if not isinstance(e, ModuleNotFoundError):
            print(f"python-datascience: {name} is not loaded beforehand: {type(e).__name__}: {e}", file=sys.stderr)


@contextlib.contextmanager
def without_files():
    """Nothing can be written here, and matplotlib wants a directory for its settings and its cache: it is
    told of one that is not there, writes what it knows of fonts to nowhere, and asks again in the sandbox. fc-list,
    which it runs, complains on standard error that it can keep no cache: that is for nobody's log."""
    before = tempfile.mkdtemp, builtins.open, subprocess.check_output
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    tempfile.mkdtemp = lambda *a, **k: PLACE
    builtins.open = lambda path, *a, **k: io.StringIO() if str(path).startswith(PLACE) else before[1](path, *a, **k)
    subprocess.check_output = lambda *a, **k: before[2](*a, **{"stderr": subprocess.DEVNULL, **k})
    try:
        yield
    finally:
        tempfile.mkdtemp, builtins.open, subprocess.check_output = before
        logging.getLogger("matplotlib").setLevel(logging.NOTSET)
        forget_directories()


@contextlib.contextmanager
def without_locks(cbook):
    """matplotlib locks that file before it opens it."""
    lock = getattr(cbook, "_lock_path", None)
    if lock:
        cbook._lock_path = lambda path: contextlib.nullcontext()
    try:
        yield
    finally:
        if lock:
            cbook._lock_path = lock


def forget_directories():
    os.environ.pop("MPLCONFIGDIR", None)
    atexit.unregister(shutil.rmtree)
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir"):
        forget(getattr(matplotlib, name, None))


def forget(function):
    """What a function that remembers its value has found out here."""
    if hasattr(function, "cache_clear"):
        function.cache_clear()
    elif getattr(function, "__closure__", None):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__):
            if name == "called":
                cell.cell_contents = False


with without_files():
    warm("matplotlib")
    with without_locks(sys.modules.get("matplotlib.cbook")):
        for name in MODULES:
            warm(name)
pandas = sys.modules.get("pandas")


def small():
    return pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"]})


def rehearse():
    """What most programs do with it; what that touches is then the copy's own."""
    if pandas:
        frame = small()
        int(frame["a"].sum()), frame["a"].mean()


if pandas:  # what is loaded at first use
    frame = small()
    frame.groupby("b").sum()
    str(frame), frame.to_dict("records")
    del frame
