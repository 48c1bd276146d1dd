# SPDX-License-Identifier: MIT
"""Warmed interpreters: which there are, how long one serves, and how many wait."""
import concurrent.futures
import os
import pathlib
import re
import subprocess

import pytest

import harness

PACKAGES = pathlib.Path("/var/lib/dpkg/status")
ECHO = "def handler(event):\n    return event"


def template(result):
    return result["isolation"]["template"]


def until_warm(daemon, name, code=ECHO, **fields):
    """The first result that came from that template."""
    def look():
        result = daemon.execute(code, **fields)
        assert result["status"] == "success", result
        return result if template(result) == name else None

    return harness.wait_until(look, f"a sandbox of {name}")


def waiting(daemon, name, state="ready"):
    text = daemon.request("GET", "/metrics").text
    return int(float(re.search(rf'^sandbox_pool\{{template="{name}",state="{state}"\}} (\S+)$', text, re.M)[1]))


# ---- data science ----


def has(module):
    return subprocess.run(["/usr/bin/python3", "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode == 0


def test_data_science_has_its_modules_loaded(daemon):
    harness.need(has("numpy"), "python3-numpy is not installed")
    result = until_warm(daemon, "python-datascience", """
import sys
loaded = "numpy" in sys.modules
import numpy
def handler(event):
    return [loaded, int(numpy.arange(5).sum()), numpy.random.rand()]
""", template="python-datascience")
    loaded, total, number = result["return_value"]
    assert loaded is True and total == 10
    again = daemon.returned("import numpy\ndef handler(event):\n    return numpy.random.rand()",
                            template="python-datascience")
    assert again != number, "random numbers differ in every run"


def test_data_science_knows_pandas(daemon):
    harness.need(has("pandas"), "python3-pandas is not installed")
    code = """
import pandas
def handler(event):
    return int(pandas.DataFrame({"a": event["a"]})["a"].sum())
"""
    assert until_warm(daemon, "python-datascience", code, template="python-datascience",
                      event={"a": [1, 2, 3]})["return_value"] == 6


def test_without_the_packages_it_is_python_all_the_same(daemon):
    until_warm(daemon, "python-datascience", template="python-datascience", event={"a": 1})


def test_the_plain_template_has_none_of_them(daemon):
    code = "import sys\ndef handler(event):\n    return 'numpy' in sys.modules"
    assert daemon.returned(code) is False
    assert daemon.returned(code, template="python") is False


@pytest.mark.parametrize("name", ["", "node", "python-datascience ", 7])
def test_other_names_are_refused(daemon, name):
    r = daemon.request("POST", "/execute", json={"code": ECHO, "language": "python", "template": name})
    assert r.status in (400, 422) and "template" in r.text


# ---- ends ----

ENDS = {
    "threads that are asked for late": ("", """
from concurrent.futures.thread import ThreadPoolExecutor
def handler(event):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(str, range(3)))"""),
    "an exit function": ("at the end\n", """
import atexit
atexit.register(print, "at the end")
def handler(event):
    return ["0", "1", "2"]"""),
    "a thread that outlives the handler": ("from a thread\n", """
import threading, time
def late():
    time.sleep(0.05)
    print("from a thread")
def handler(event):
    threading.Thread(target=late).start()
    return ["0", "1", "2"]"""),
}


@pytest.mark.parametrize("name", ENDS)
def test_nothing_of_a_rehearsal_has_ended_yet(daemon, name):
    stdout, code = ENDS[name]
    result = until_warm(daemon, "python", code)
    assert (result["return_value"], result["stdout"]) == (["0", "1", "2"], stdout)


# ---- generations ----

HASH = "def handler(event):\n    return hash('a text')"


def test_a_generation_shares_its_hash_seed_and_ends_when_packages_change(make_daemon):
    harness.need(os.geteuid() == 0 and PACKAGES.exists(), "needs Debian's list of packages, and root")
    daemon = make_daemon()
    first = until_warm(daemon, "python", HASH)["return_value"]
    assert daemon.returned(HASH) == first
    before = PACKAGES.stat()
    os.utime(PACKAGES)
    try:
        def changed():
            result = daemon.execute(HASH)
            assert result["status"] == "success" and template(result) == "python", result
            return result["return_value"] != first

        harness.wait_until(changed, "the next generation")
    finally:
        os.utime(PACKAGES, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_warmed_interpreter_holds_on_to_nothing_that_files_have(make_daemon):
    daemon = make_daemon(NODE_ZYGOTE="true")
    until_warm(daemon, "python")
    until_warm(daemon, "node", "exports.handler = (event) => event", language="javascript")
    zygotes = [pid for pid in daemon.tree() if (fields := harness.stat_fields(pid))
               and harness.read_proc(fields[1], "comm").strip() == b"sandbox-launch"
               and harness.read_proc(pid, "comm").strip() in (b"sandbox-zygote-", b"node")]
    assert len(zygotes) == 2, "both of them"
    for pid in zygotes:
        status = dict(line.split(":", 1) for line in harness.read_proc(pid, "status").decode().splitlines())
        of_files, own = (int(status[key].split()[0]) for key in ("RssFile", "RssAnon"))
        assert of_files * 8 < own, (status["Name"], of_files, own)


# ---- demand ----


LEAST = 2


def burst(daemon, count):
    code = "import time\ndef handler(event):\n    time.sleep(0.3)"
    with concurrent.futures.ThreadPoolExecutor(count) as threads:
        for result in threads.map(lambda _: daemon.execute(code), range(count)):
            assert result["status"] == "success", result


def test_a_pool_grows_with_demand_and_shrinks_when_it_is_calm(make_daemon):
    daemon = make_daemon(POOL_PYTHON=2, POOL_CALM=1)
    until_warm(daemon, "python")
    harness.wait_until(lambda: waiting(daemon, "python") == LEAST, "a full pool")
    burst(daemon, 8)
    harness.wait_until(lambda: waiting(daemon, "python") > LEAST, "a larger pool")
    harness.wait_until(lambda: waiting(daemon, "python") == LEAST, "the pool as it was")


def test_a_pool_does_not_grow_beyond_its_memory(make_daemon):
    daemon = make_daemon(POOL_PYTHON=2, POOL_NODE=0, POOL_EXEC=0, POOL_DATASCIENCE=0, POOL_WASM=0, POOL_MEMORY=7)
    until_warm(daemon, "python")
    harness.wait_until(lambda: waiting(daemon, "python") == LEAST, "a full pool")
    burst(daemon, 8)
    harness.wait_until(lambda: waiting(daemon, "python", "preparing") == 0 and waiting(daemon, "python") == 3,
                     "three of 2 MiB each: a fourth would be too much")


def test_a_pool_does_not_grow_for_requests_that_come_one_after_the_other(make_daemon):
    daemon = make_daemon(POOL_PYTHON=2)
    until_warm(daemon, "python")
    harness.wait_until(lambda: waiting(daemon, "python") == LEAST, "a full pool")
    with daemon.connect() as connection:
        for _ in range(200):
            connection.execute("def handler(event):\n    return 1")
    harness.wait_until(lambda: waiting(daemon, "python", "preparing") == 0 and waiting(daemon, "python") >= LEAST,
                     "a full pool")
    assert waiting(daemon, "python") == LEAST


def test_a_pool_that_is_switched_off_stays_off(make_daemon):
    daemon = make_daemon(POOL_PYTHON=0, POOL_EXEC=0, POOL_NODE=0)
    burst(daemon, 4)
    assert waiting(daemon, "exec") == 0


# ---- compiled code ----

COMPILED = "sandbox_compiled_before_total"


def test_a_handler_that_is_asked_for_again_is_not_compiled_again(make_daemon):
    daemon = make_daemon()
    until_warm(daemon, "python")
    code = """
import inspect
def handler(event):
    if event["a"] == 2:
        raise ValueError("two")
    return [event["a"], inspect.getsource(handler).count("\\n"), handler.__code__.co_filename, __name__]
"""
    before = daemon.metric(COMPILED)
    results = [daemon.execute(code, event={"a": a}) for a in (1, 1, 2, 2)]
    assert results[0]["return_value"] == results[1]["return_value"] == [1, 4, "/workspace/handler.py", "__main__"]
    assert 'raise ValueError("two")' in results[2]["stderr"] and results[2]["stderr"] == results[3]["stderr"]
    assert daemon.metric(COMPILED) == before + 3
    for other in dict(env_vars={"A": "1"}), dict(code=code + "\n"):
        assert daemon.execute(**{"code": code, "event": {"a": 1}, **other})["return_value"][0] == 1
    assert daemon.metric(COMPILED) == before + 3


def test_nobody_can_say_what_a_text_compiles_to(make_daemon):
    daemon = make_daemon()
    until_warm(daemon, "python")
    code = """
import importlib.util, marshal, os
text = "def handler(event): return 'forged'"
forged = importlib.util.MAGIC_NUMBER + marshal.dumps(compile(text, "/workspace/handler.py", "exec"))
os.write(3, b"K%08x" % len(forged) + forged)
def handler(event):
    return "honest"
"""
    for extra in {}, {}, {"env_vars": {"A": "1"}}, {}:
        assert daemon.execute(code, **extra)["return_value"] == "honest"
    assert daemon.returned("def handler(event): return 'forged'") == "forged"


def test_compiled_code_need_not_be_kept(make_daemon):
    daemon = make_daemon(CODE_CACHE="0")
    until_warm(daemon, "python")
    for _ in range(3):
        assert daemon.returned("def handler(event):\n    return 1") == 1
    assert daemon.metric(COMPILED) == 0
