# SPDX-License-Identifier: MIT
"""The console in a headless browser: scenarios.mjs has what a person does, browser.mjs what must never happen."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import harness

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
PACKAGES = TOP / "build-deps" / "browser"
SCREENSHOTS = harness.BUILD / "screenshots"  # kept
SCENARIOS = re.findall(r"^export async function (\w+)", (HERE / "scenarios.mjs").read_text(), re.M)
SECONDS = 300 * harness.SLOW


class Console:
    """A daemon that can be ended and started again where it was."""

    def __init__(self):
        self.secret = "of the console's tests"
        self.daemon = harness.start_daemon(SANDBOX_SECRET=self.secret)
        self.port, self.before = self.daemon.port, []

    def address(self):
        line = self.daemon.out.wait(lambda one: "/console#ticket=" in one and one)
        assert line, self.daemon.stdout_text()
        return line.split()[-1]

    def restart(self):
        """While a browser runs: what the first daemon leaves is looked for at the end."""
        self.daemon.signal(signal.SIGTERM)
        self.daemon.wait()
        self.before.append(self.daemon)
        self.daemon = harness.start_daemon(SANDBOX_SECRET=self.secret, EXECUTOR_PORT=self.port)

    def stop(self):
        for one in [*self.before, self.daemon]:
            one.stop()


@pytest.fixture
def console():
    one = Console()
    yield one
    one.stop()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_console(console, scenario, tmp_path):
    harness.need(shutil.which("node") and PACKAGES.is_dir(), "node, and what drives a browser (tools/fetch-npm browser)")
    chromium = shutil.which("chromium")
    harness.need(chromium, "Debian's package chromium (tools/install-deps check)")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "CHROMIUM": chromium, "PACKAGES": str(PACKAGES),
           "SCREENSHOTS": str(SCREENSHOTS), "PATIENCE": str(harness.DEADLINE * 2), "SECRET": console.secret}
    said = tmp_path / "said"
    with said.open("wb") as errors, subprocess.Popen(
            ["node", str(HERE / "browser.mjs"), scenario, console.address()], env=env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True) as process:
        try:
            for line in process.stdout:
                assert line.strip() == "restart", line
                console.restart()
                process.stdin.write("done\n")
                process.stdin.flush()
            status = process.wait(SECONDS)
        finally:
            harness.end_tree(process.pid)
    assert status == 0, said.read_text()
