# SPDX-License-Identifier: MIT
"""tests/bars in small; docs/testing.md has the full size and what is good."""
import os
import pathlib
import subprocess

import pytest

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]


def bars(*args):
    done = subprocess.run([TOP / "tests" / "bars", *args], env={**os.environ, "SBX_BUILD": str(harness.BUILD)},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    return done.returncode, done.stdout


def test_a_crowd_is_cheap():
    status, said = bars("--connections=400", "--streams=50", "crowd")
    assert status == 0, said
    assert "| a program meanwhile | 'still here\\n' | ok |" in said


@pytest.mark.alone
def test_no_program_of_another_tenant_fails_beside_bombs():
    """How long /health takes is a matter of a quiet machine; that everybody is served is not."""
    _, said = bars("--seconds=12" if os.environ.get("SBX_LONG") == "1" else "--seconds=3", "bombs")
    assert "| of these wrong or failed | 0 | ok |" in said, said
    assert "| bombs that were answered with 200 |" in said and "| /health asked |" in said, said
    rows = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in said.splitlines() if line.count("|") > 3}
    assert rows["bombs that were answered with 200"] == rows["/health asked"] == "ok", said
