# SPDX-License-Identifier: MIT
"""What the template python-datascience loads beforehand, as far as it is installed."""
import atexit
import importlib
import os
import shutil
import sys
import tempfile

MODULES = "numpy numpy.random pandas matplotlib matplotlib.figure".split()


def warm(name):
    try:
        importlib.import_module(name)
    except Exception as e:  # a program's own import will say so
        if not isinstance(e, ModuleNotFoundError):
            print(f"python-datascience: {name} is not loaded beforehand: {type(e).__name__}: {e}", file=sys.stderr)


def warm_all():
    """Nothing can be written here, and matplotlib wants a directory for its settings and its cache: it is
    told of one that is not there, and asks again in the sandbox."""
    before, tempfile.mkdtemp = tempfile.mkdtemp, lambda *a, **k: "/tmp/matplotlib"
    try:
        for name in MODULES:
            warm(name)
    finally:
        tempfile.mkdtemp = before
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


warm_all()
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
