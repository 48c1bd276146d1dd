# SPDX-License-Identifier: MIT
"""Contexts of Python that are copies of a warmed interpreter: as fast as they are, as apart as any others."""
import importlib.util
import json
import os

import pytest

import harness
from test_contexts import Sandbox, value

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed"),
    pytest.mark.skipif(harness.JAIL != "native", reason="only the jail native copies interpreters"),
]
HAS_PANDAS = importlib.util.find_spec("pandas") is not None
PROGRAM = "import os; os.path.basename(os.readlink('/proc/self/exe'))"
COPY, FILE = "'sandbox-zygote-python'", "'python3.11'"


class Any(Sandbox):
    def __init__(self, daemon, **fields):
        self.daemon = daemon
        made = daemon.request("POST", "/v1/sandboxes", json=fields)
        assert made.status == 201, made.text
        self.path = "/v1/sandboxes/" + made.json()["id"]

    def delete(self):
        assert self.request("DELETE", "").status == 204

    def data(self, code, **fields):
        return json.loads(eval(value(self.cell(f"{code}", **fields))))

    def program(self, **fields):
        return value(self.cell(PROGRAM, **fields))


@pytest.fixture(scope="module")
def warm():
    """A daemon whose template is warm."""
    daemon = harness.Daemon({"POOL_CELLS": 1})

    def is_warm():
        sandbox = Any(daemon)
        try:
            return sandbox.program() == COPY
        finally:
            sandbox.delete()

    try:
        harness.wait_until(is_warm, "a context that is a copy", 120, 0.1)
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture
def make(warm):
    made = []

    def one(**fields):
        made.append(Any(warm, **fields))
        return made[-1]

    yield one
    for sandbox in made:
        sandbox.delete()


def test_a_copy_begins_as_an_interpreter_that_was_just_started(make):
    sandbox = make(env={"OWN": "1"})
    code = ("import json, os, sys; json.dumps([sorted(globals()), os.getcwd(), _dh, sys.path, sys.argv, In[:-1], dict(Out), "
            "sorted(set(os.environ) - {'OMP_NUM_THREADS'}), __name__, sys.flags.safe_path, _oh])")
    cells = sandbox.cell(code), make(env={"OWN": "1", "OMP_NUM_THREADS": "1"}).cell(code)
    assert [cell["execution_count"] for cell in cells] == [1, 1]
    copy, file = (json.loads(eval(value(cell))) for cell in cells)
    assert copy == file
    assert "OWN" in copy[7] and "DAEMON_CANARY" not in copy[7]


@pytest.mark.skipif(not HAS_PANDAS, reason="pandas is not installed")
def test_pandas_is_loaded_already(make):
    assert value(make().cell("import sys; 'pandas' in sys.modules, 'matplotlib.pyplot' in sys.modules")) == "(True, True)"
    assert value(make().cell("import pandas as pd; int(pd.DataFrame({'a': [1, 2]})['a'].sum())")) == "3"


RANDOM = """
import json, os, random, secrets, ssl, tempfile, uuid, multiprocessing
found = [random.random(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), str(uuid.uuid4()), tempfile.mktemp(),
         os.urandom(8).hex(), multiprocessing.current_process().authkey.hex(), random.SystemRandom().random()]
try:
    import numpy
    found += [numpy.random.rand(), numpy.random.default_rng().random(), numpy.random.RandomState().rand()]
except ImportError:
    pass
json.dumps(found)
"""


def test_copies_share_no_random_number(make):
    one, other = make(), make()
    second = one.context("python")
    lists = [one.data(RANDOM), other.data(RANDOM), one.data(RANDOM, context=second)]
    for values in zip(*lists):
        assert len(set(values)) == len(lists), lists


def test_copies_share_no_state(make):
    one, other = make(env={"SECRET": "of one"}), make()
    assert one.cell("import os, sys; x = 1; sys.marked = 1; os.environ['MARK'] = '1'; open('/tmp/f', 'w').close(); "
                    "pids = os.listdir('/proc')")["status"] == "ok"
    seen = ("import json, os, sys; json.dumps(['x' in globals(), hasattr(sys, 'marked'), 'MARK' in os.environ, "
            "'SECRET' in os.environ, os.path.exists('/tmp/f')])")
    assert other.data(seen) == [False, False, False, False, False]
    assert one.data(seen, context=one.context("python")) == [False, False, False, True, True]


def test_a_copy_sees_no_process_of_another_sandbox(make):
    one, other = make(), make()
    one.cell("import subprocess; subprocess.Popen(['sleep', '4242'])")
    seen = other.data("import glob, json; json.dumps([open(f).read() for f in glob.glob('/proc/[0-9]*/cmdline')])")
    assert not any("4242" in line for line in seen), seen
    assert len(seen) < 10, seen


def test_every_context_and_every_restart_is_a_copy(make):
    sandbox = make()
    ids = [sandbox.context("python") for _ in range(3)]
    assert [sandbox.program(context=i) for i in ids] == [COPY] * 3
    assert sandbox.request("POST", f"/contexts/{ids[0]}/restart").status == 200
    assert sandbox.program(context=ids[0]) == COPY


def test_limits_of_its_own_do_not_keep_a_sandbox_from_being_warm(make):
    sandbox = make(limits={"memory_mb": 260})
    assert sandbox.program() == COPY
    cell = sandbox.cell("x = bytearray(500 << 20)")
    assert (cell["status"], cell["termination"]["reason"]) == ("crashed", "oom"), cell
    assert sandbox.cell("1")["restarted"] is True


@pytest.mark.parametrize("env", [{"PYTHONPATH": "/workspace"}, {"OMP_NUM_THREADS": "2"}, {"LC_ALL": "C"}, {"MPLBACKEND": "agg"}],
                         ids=lambda env: next(iter(env)))
def test_a_variable_that_is_read_at_the_start_wants_a_start(make, env):
    assert make(env=env).program() == FILE


@pytest.mark.skipif(not HAS_PANDAS, reason="pandas is not installed")
@pytest.mark.parametrize("place", ["/workspace/pandas.py", "/workspace/.local/lib/python3.11/site-packages/pandas/__init__.py"])
def test_a_module_in_place_of_a_loaded_one_is_used(make, place):
    sandbox = make()
    assert sandbox.cell(f"mkdir -p $(dirname {place}); echo 'answer = 42' > {place}", language="bash")["status"] == "ok"
    assert value(sandbox.cell("import pandas; pandas.answer")) == "42"


def test_packages_of_the_user_are_found(make):
    sandbox = make()
    folder = "/workspace/.local/lib/python3.11/site-packages"
    assert sandbox.cell(f"mkdir -p {folder}; echo 'answer = 42' > {folder}/quite_new.py", language="bash")["status"] == "ok"
    assert sandbox.program() == COPY
    assert value(sandbox.cell("import quite_new; quite_new.answer")) == "42"


KILL = """
import glob, os
for path in glob.glob('/proc/[0-9]*/comm'):
    if open(path).read().strip() == NAME:
        os.kill(int(path.split('/')[2]), SIGNAL)
"""


def test_contexts_start_as_files_when_the_warm_process_was_killed(make):
    sandbox = make()
    assert sandbox.cell(f"NAME, SIGNAL = 'sandbox-warm', 9\n{KILL}")["status"] == "ok"
    assert sandbox.program() == COPY  # the one that runs
    assert sandbox.program(context=sandbox.context("python")) == FILE


def test_the_warm_process_and_helpers_cannot_be_looked_into(make):
    code = """
import ctypes, glob, json, os
libc = ctypes.CDLL(None, use_errno=True)
found = {}
for path in glob.glob('/proc/[0-9]*/comm'):
    name, pid = open(path).read().strip(), int(path.split('/')[2])
    if name in ('sandbox-warm', 'sandbox-helper', 'sandbox-init'):
        try:
            open(f'/proc/{pid}/mem', 'rb').close()
            found[name] = 'memory'
        except OSError:
            found[name] = 'traced' if libc.ptrace(16, pid, 0, 0) == 0 else 'closed'
json.dumps(found)
"""
    assert make().data(code) == {"sandbox-warm": "closed", "sandbox-helper": "closed", "sandbox-init": "closed"}


def test_contexts_that_are_deleted_leave_no_process(make):
    sandbox = make()
    count = "import json, glob; json.dumps(len(glob.glob('/proc/[0-9]*')))"
    before = sandbox.data(count)
    for _ in range(5):
        made = sandbox.context("python")
        sandbox.cell("import subprocess; p = subprocess.Popen(['sleep', '1000'])", context=made)
        assert sandbox.request("DELETE", f"/contexts/{made}").status == 204
    harness.wait_until(lambda: sandbox.data(count) <= before, "the processes of deleted contexts to be gone")


def test_contexts_deleted_before_they_started_leave_no_process(make):
    sandbox = make()
    count = "import json, glob; json.dumps(len(glob.glob('/proc/[0-9]*')))"
    before = sandbox.data(count)
    for made in [sandbox.context("python") for _ in range(8)]:
        assert sandbox.request("DELETE", f"/contexts/{made}").status == 204
    harness.wait_until(lambda: sandbox.data(count) <= before, "the processes of deleted contexts to be gone")


def test_exit_runs_what_was_registered_and_the_next_cell_has_a_new_copy(make):
    sandbox = make()
    assert sandbox.cell("import atexit; atexit.register(lambda: open('/workspace/left', 'w').close()); x = 1")["status"] == "ok"
    sandbox.cell("exit()")
    assert value(sandbox.cell("import os; os.path.exists('/workspace/left'), 'x' in globals()")) == "(True, False)"
    assert sandbox.program() == COPY


def test_a_pool_of_none_starts_files():
    daemon = harness.Daemon({"POOL_CELLS": 0})
    try:
        for _ in range(2):
            sandbox = Any(daemon)
            assert sandbox.program() == FILE
            sandbox.delete()
    finally:
        daemon.stop()


def test_an_idle_sandbox_takes_no_processor(warm, make):
    """Pid 1 waits for events; a descriptor of its poll that is not open would wake it for ever."""
    sandbox = make()
    assert sandbox.program() == COPY
    children = harness.children_by_parent()
    first = [pid for pid in warm.tree()
             if any(harness.read_proc(child, "comm").strip() == b"sandbox-warm" for child in children.get(pid, []))]
    assert first
    for pid in first:
        assert "anon_inode:[signalfd]" in {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}


# ---- memory ----


@pytest.mark.parametrize("memory_mb", [64, 300])
def test_a_program_that_wants_too_much_memory_ends_alone(make, memory_mb):
    """The kernel counts what a keeper shares with the warmed interpreter as the keeper's own."""
    harness.need(harness.ROOT, "a memory controller")
    for _ in range(4):
        sandbox = make(limits={"memory_mb": memory_mb})
        ran = sandbox.request("POST", "/run", json={"cmd": "python3 -c 'x = bytearray(900 << 20)'"})
        assert ran.status == 200 and ran.json()["code"] != 0, ran
        assert sandbox.request("POST", "/run", json={"cmd": "echo alive"}).json()["stdout"] == "alive\n"
        assert sandbox.program() == (FILE if memory_mb < 256 else COPY)
