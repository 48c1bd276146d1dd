# SPDX-License-Identifier: MIT
"""What the programs say, and whether they notice that nobody could hear it."""
import os
import re
import subprocess

import pytest

import harness


def ask(program, *args, daemon=None, stdin="", stdout=subprocess.PIPE):
    env = dict(os.environ)
    if daemon:
        env.update(EXECUTOR_PORT=str(daemon.port), SANDBOX_SECRET=daemon.secret)
    return subprocess.run([harness.BUILD / program, *args], env=env, input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, timeout=harness.DEADLINE)


def ask_in_vain(*args, **more):
    with open("/dev/full", "w") as full:
        return ask(*args, stdout=full, **more)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_run_says_that_its_output_was_lost(daemon, form):
    run = ["sbx", "run", *form, "--language=shell", "-"]
    good = ask(*run, daemon=daemon, stdin="echo said")
    assert (good.returncode, good.stderr) == (0, "") and "said" in good.stdout
    lost = ask_in_vain(*run, daemon=daemon, stdin="echo said")
    assert lost.returncode == 1
    assert "sbx: standard output: " in lost.stderr


def test_run_keeps_the_status_of_a_program_that_failed(daemon):
    lost = ask_in_vain("sbx", "run", "--language=shell", "-", daemon=daemon, stdin="echo said; exit 3")
    assert lost.returncode == 3
    assert "sbx: standard output: " in lost.stderr


@pytest.mark.parametrize("command", [
    ["sbx", "--help"], ["sbx", "--version"], ["sbx", "run", "--help"], ["sbx", "mcp", "--help"], ["sbx", "doctor"], ["sbx", "selftest", "--list"],
    ["sandbox-executor", "--print-config"], ["sandbox-executor", "--print-openapi"], ["sandbox-executor", "--help"], ["sandbox-executor", "--check-config"],
])
def test_whatever_is_said_must_be_heard(command):
    lost = ask_in_vain(*command)
    assert lost.returncode == 1
    assert re.search("standard output: (No space left on device|not everything could be written)$", lost.stderr, re.M)


@pytest.mark.parametrize("command", ["run", "mcp", "doctor", "selftest"])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_a_help_of_its_own(command, flag):
    said = ask("sbx", command, flag)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith(f"usage: sbx {command} ")
