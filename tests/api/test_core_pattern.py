# SPDX-License-Identifier: MIT
"""A crash in a sandbox where kernel.core_pattern is a pipe, whose program the kernel starts as root of the host.

Only where that setting is the test's own (SBX_SET_CORE_PATTERN=1): tests/vm/run has such a machine.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

import harness

PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")

pytestmark = pytest.mark.skipif(os.environ.get("SBX_SET_CORE_PATTERN") != "1", reason="sets kernel.core_pattern")


@pytest.fixture
def handled():
    """The list of crashes that the host's program was started for, each with what the crashed program calls itself."""
    before = PATTERN.read_text()
    with tempfile.TemporaryDirectory(prefix="sbx-core-") as folder:
        seen, program = pathlib.Path(folder) / "seen", pathlib.Path(folder) / "handler"
        program.write_text(f"#!/bin/sh\necho \"$1 as $(id -u)\" >>{seen}\ncat >/dev/null\n")
        program.chmod(0o755)
        seen.touch()
        PATTERN.write_text(f"|{program} %e")
        try:
            yield lambda: seen.read_text().splitlines()
        finally:
            PATTERN.write_text(before)


def crash_outside(name, limit):
    """A process of the host that crashes; when it is reaped the host's program has been waited for."""
    code = (f"import ctypes, os, resource; resource.setrlimit(resource.RLIMIT_CORE, ({limit}, {limit})); "
            f"ctypes.CDLL(None).prctl(15, {name.encode()!r}); os.kill(os.getpid(), 11)")
    assert subprocess.run([sys.executable, "-c", code]).returncode == -11


# What a program may try before it dies. Each sets the limit, or does not.
TRIES = {
    "as it is": "",
    "soft 0": "resource.setrlimit(resource.RLIMIT_CORE, (0, 1))",
    "both 0": "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
    "prlimit": "resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))",
    "unlimited": "resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))",
}


def crash_inside(daemon, how):
    code = f"import os, resource\ntry: {how or 'pass'}\nexcept (OSError, ValueError): pass\nos.kill(os.getpid(), 11)"
    result = daemon.execute(code, "python")
    assert result["termination"]["reason"] == "signal" and result["exit_code"] == 139, result


def test_the_pattern_works_on_this_host(handled):
    """The control: a limit of 0 starts the program, 1 does not."""
    crash_outside("control", 0)
    harness.wait_until(lambda: handled() == ["control as 0"], "the program was started")
    crash_outside("limited", 1)
    crash_outside("last", 0)
    harness.wait_until(lambda: len(handled()) == 2, "the program was started")
    assert handled() == ["control as 0", "last as 0"]


@pytest.mark.parametrize("jail", ["native", "bwrap"])
@pytest.mark.parametrize("how", TRIES)
def test_a_crash_starts_nothing_on_the_host(make_daemon, handled, jail, how):
    daemon = make_daemon(ISOLATION=jail)
    crash_inside(daemon, TRIES[how])
    for name, code in (("javascript", "process.kill(process.pid, 11)"), ("shell", "ulimit -c 0; kill -11 $$")):
        daemon.execute(code, name)
    crash_outside("last", 0)  # the program of an earlier crash was started before this one is
    harness.wait_until(lambda: handled(), "the last one was started for")
    assert handled() == ["last as 0"]


def test_a_limit_that_cannot_be_raised_is_refused(handled):
    harness.need(harness.ROOT, "becoming an ordinary user needs root")
    with tempfile.TemporaryDirectory(prefix="sbx-limited-") as folder:
        limited = pathlib.Path(folder) / "limited"
        limited.write_text(f"#!/bin/sh\nulimit -c 0\nexec {harness.BUILD}/sandbox-executor \"$@\"\n")
        for path in (limited.parent, limited):
            path.chmod(0o755)
        refusal = harness.start_refused(binary=limited, user=65534, ISOLATION_LEVEL="basic")
    assert refusal.status == 1 and "core_pattern" in refusal.stderr, refusal.stderr
