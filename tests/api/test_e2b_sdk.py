# SPDX-License-Identifier: MIT
"""E2B's own SDKs, unchanged and of two generations, drive the daemon: the programs of tests/e2b."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = sorted(p.stem for p in (TOP / "tests/e2b").glob("*.mjs") if p.stem != "sdk")
GENERATIONS = ["new", "old"]
SECONDS = 240


def api_key(secret):
    return "e2b_" + hashlib.sha256(b"e2b key of " + secret.encode()).hexdigest()[:40]


@pytest.fixture(scope="module")
def secured():
    daemon = harness.start_daemon(SANDBOX_AUTH_MODE="static", SANDBOX_SECRET="of e2b's tests")
    yield daemon
    daemon.stop()


def run(daemon, generation, program):
    sdk = TOP / "build-deps" / f"e2b-{generation}"
    harness.need(shutil.which("node") and sdk.is_dir(), "node, and the SDKs of E2B (tools/fetch-npm e2b-new, e2b-old)")
    url = f"http://127.0.0.1:{daemon.port}"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "SDK": str(sdk),
        "GENERATION": generation,
        "E2B_API_URL": url,
        "E2B_SANDBOX_URL": url,
        "E2B_API_KEY": api_key("of e2b's tests"),
    }
    ended = subprocess.run(["node", f"tests/e2b/{program}.mjs"], cwd=TOP, env=env, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_sdk(secured, program, generation):
    told = run(secured, generation, program)
    assert told, "no check was made"
    wrong = [f"{row['name']}: {row['error']}" for row in told if not row["ok"]]
    assert not wrong, "\n".join(wrong)
