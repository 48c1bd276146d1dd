# SPDX-License-Identifier: MIT
"""E2B's own SDKs, unchanged and of two generations, drive the daemon: the programs of tests/e2b."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = sorted(p.stem for p in (TOP / "tests/e2b").glob("*.mjs") if p.stem not in ("sdk", "methods"))
GENERATIONS = ["new", "old"]
SECONDS = 240


def api_key(secret):
    return "e2b_" + hashlib.sha256(b"e2b key of " + secret.encode()).hexdigest()[:40]


@pytest.fixture(scope="module")
def secured():
    daemon = harness.start_daemon(SANDBOX_AUTH_MODE="static", SANDBOX_SECRET="of e2b's tests")
    yield daemon
    daemon.stop()


def drive(daemon, command, **more):
    """What a program tells, one JSON value per line."""
    url = f"http://127.0.0.1:{daemon.port}"
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "E2B_API_URL": url, "E2B_SANDBOX_URL": url,
           "E2B_API_KEY": api_key("of e2b's tests"), **more}
    ended = subprocess.run(command, cwd=TOP, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


def run(daemon, generation, program):
    sdk = TOP / "build-deps" / f"e2b-{generation}"
    harness.need(shutil.which("node") and sdk.is_dir(), "node, and the SDKs of E2B (tools/fetch-npm e2b-new, e2b-old)")
    return drive(daemon, ["node", f"tests/e2b/{program}.mjs"], SDK=str(sdk), GENERATION=generation)


def judge(told):
    assert told, "no check was made"
    wrong = [f"{row['name']}: {row['error']}" for row in told if not row["ok"]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_sdk(secured, program, generation):
    judge(run(secured, generation, program))


def test_python_sdk(secured):
    """SBX_E2B_PYTHON: directories with the packages e2b and e2b_code_interpreter, a colon between them."""
    checkout = os.environ.get("SBX_E2B_PYTHON")
    if not checkout:
        pytest.skip("SBX_E2B_PYTHON does not name a checkout of E2B's Python SDK")
    python = ["/usr/bin/python3"]
    imported = subprocess.run([*python, "-c", "import e2b, e2b_code_interpreter"], env={**os.environ, "PYTHONPATH": checkout},
                              stderr=subprocess.PIPE, text=True, check=False)
    if imported.returncode != 0:
        pytest.skip("the checkout lacks something: " + imported.stderr.splitlines()[-1])
    judge(drive(secured, [*python, "tests/e2b/sdk.py"], PYTHONPATH=checkout))



# ---- docs/e2b.md ----

ROW = re.compile(r"^\| (`[^|]+`) \| (works|differs|refused) \|", re.M)


def rows():
    """What the table of methods says: name -> word. `git.*` stands for all of a family."""
    text = (TOP / "docs/e2b.md").read_text()
    return {name: word for names, word in ROW.findall(text) for name in re.findall(r"`([^`]+)`", names)}


def covers(row, name):
    return row == name or (row.endswith(".*") and name.startswith(row[:-1]))


def checked():
    """The names of the checks of tests/e2b, up to their colon."""
    source = "".join((TOP / f"tests/e2b/{program}.mjs").read_text() for program in PROGRAMS)
    return {name.partition(":")[0] for name in re.findall(r"(?:check|refused)\([`']([\w.]+[^`'$]*)", source)}


def test_each_row_of_the_table_is_checked():
    names = checked()
    for row in rows():
        assert any(covers(row, name) for name in names), f"docs/e2b.md: nothing in tests/e2b checks {row}"
    for name in names:
        assert any(covers(row, name) for row in rows()), f"docs/e2b.md has no row for {name}, which tests/e2b checks"


def test_what_is_refused_is_checked_as_refused():
    source = (TOP / "tests/e2b/refused.mjs").read_text()
    told = {name.partition(":")[0] for name in re.findall(r"refused\('([^']+)'", source)}
    for row, word in rows().items():
        assert word != "refused" or any(covers(row, name) for name in told), f"docs/e2b.md: {row} is not refused in refused.mjs"


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_table_has_every_method_of_the_sdk(secured, generation):
    missing = [name for name in run(secured, generation, "methods") if not any(covers(row, name) for row in rows())]
    assert not missing, f"docs/e2b.md has no row for {missing}"
