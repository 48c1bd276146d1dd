# SPDX-License-Identifier: MIT
"""What a Python zygote for cells does before its first fork: load what cells use, run some, hold still.

Functions that a copy calls are below. A context that is a copy must not be told from one that started as
a file but by its speed; what cannot be made alike wants an interpreter that starts anew (is_unlike)."""
import atexit
import contextlib
import gc
import io
import os
import site
import sys
import threading
import time

gc.disable()  # nothing of what comes is garbage
sys.path.insert(0, "/opt/sandbox-executor/bin")  # as in an interpreter that is given the file
import cells_python
import IPython  # noqa: F401

science = sys.modules.pop("_sandbox_science")

VARIABLES = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
# Read by what is loaded here when it is loaded.
READ = {*VARIABLES, "MPLBACKEND", "MPLCONFIGDIR", "MATPLOTLIBRC", "IPYTHONDIR", "NUMEXPR_NUM_THREADS"}
HARMLESS = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8"}
LOCALES = "LC_ALL", "LC_CTYPE", "LANG"

environ = os.environ._data  # a dictionary of bytes
BORN = time.time()

CELLS = """
import math
1 + 1
'text'
[1, {'a': 2}]
print('out')
import sys; print('err', file=sys.stderr)
1 / 0
%pwd
undefined
""".strip().split("\n")
TABLES = """
import pandas as pd; frame = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', 'x']})
int(frame['a'].sum())
frame
frame.groupby('b').sum().describe()
import numpy as np; np.random.rand(3).mean()
""".strip().split("\n")
PICTURES = """
import matplotlib.pyplot as plt; plt.plot([1, 2, 3]); plt.title('a'); plt.xlabel('x (s)'); plt.show()
plt.bar(['a', 'b'], [1, 2]); plt.legend(['c']); plt.show()
""".strip().split("\n")


def rehearse(kernel, cells):
    for code in cells:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            kernel.run({"id": "rehearsal", "code": code, "env": {}})
        if kernel.shell.failed and cells is not CELLS:
            print("python-cells: rehearsal:", *kernel.shell.failed[2], sep="\n", file=sys.__stderr__)


def tops():
    """Names of modules that are loaded from where packages are installed, and their places."""
    found = {}
    for name, module in list(sys.modules.items()):
        place = getattr(module, "__file__", None) or ""
        if "." not in name and "dist-packages" in place:
            found[name] = place.partition("dist-packages")[0] + "dist-packages"
    return found


def user_site():
    """Where `pip install --user` puts packages, in this environment."""
    return os.path.expanduser(f"~/.local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")


def changed(folder):
    """Has something been put there since this was loaded?"""
    try:
        return os.stat(folder).st_mtime > BORN
    except OSError:
        return False


def stands_in(folder):
    """Is something in a folder that would be loaded instead of what is loaded already?"""
    try:
        names = {name.partition(".")[0]: name for name in os.listdir(folder)}
    except OSError:
        return False
    for name in loaded.keys() & names.keys():
        if loaded[name] != folder or changed(os.path.join(folder, names[name])):
            return True
    return False


def is_unlike():
    """Does this environment want an interpreter that starts anew?"""
    if any(name.startswith("PYTHON") and name not in HARMLESS or name in READ for name in os.environ):
        return True
    if any("utf" not in os.environ.get(name, "UTF-8").lower() for name in LOCALES):
        return True
    if os.path.exists("matplotlibrc") or os.path.exists(os.path.expanduser("~/.config/matplotlib")):
        return True
    if any(changed(folder) and stands_in(folder) for folder in folders):
        return True
    return stands_in(os.getcwd()) or stands_in(user_site())


def add_user_site():
    """Before other packages, as in an interpreter that starts."""
    place = user_site()
    if not os.path.isdir(place):
        return
    before = list(sys.path)
    site.addsitedir(place)
    new = [path for path in sys.path if path not in before]
    at = next((i for i, path in enumerate(before) if path.endswith("dist-packages")), len(before))
    sys.path[:] = before[:at] + new + before[at:]


def become_own():
    """What copies must not share: random numbers, secrets, and what depends on the environment."""
    random.seed()
    if numpy_random:
        numpy_random.seed()
    if ssl:
        ssl.RAND_add(os.urandom(48), 48)
    if multiprocessing:
        multiprocessing.current_process()._config["authkey"] = \
            multiprocessing.AuthenticationString(os.urandom(32))
    if "TZ" in os.environ:
        time.tzset()
    add_user_site()


def run():
    status = 0
    try:
        become_own()
        kernel.start()
        kernel.serve()
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
        status = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    finally:
        os._exit(status & 255)


for name in VARIABLES:
    os.environ.pop(name, None)  # they were read
os.environ.pop("LD_BIND_NOW", None)
os.environ.pop("MPLBACKEND", None)
kernel = cells_python.Kernel(os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC))
with science.without_files():
    rehearse(kernel, CELLS)
    if "pandas" in sys.modules:
        rehearse(kernel, TABLES)
    if "matplotlib" in sys.modules:
        rehearse(kernel, PICTURES)
kernel.forget()
fonts = sys.modules.get("matplotlib.font_manager")
if hasattr(fonts, "_get_font"):
    fonts._get_font.cache_clear()  # they hold open files, which no copy has
os.close(kernel.channel.fd)
kernel.channel.fd = cells_python.CHANNEL
os.environ.pop("MPLBACKEND", None)

import random

numpy_random = sys.modules.get("numpy.random")
ssl = sys.modules.get("ssl")
multiprocessing = sys.modules.get("multiprocessing.process")
loaded = tops()
folders = set(loaded.values())
gc.collect()
gc.freeze()
gc.enable()
