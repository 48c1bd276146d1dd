# SPDX-License-Identifier: MIT
"""The fixtures and the daemon of the black-box tests, for the tests that drive a browser."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))

import harness  # noqa: E402


def pytest_configure():
    harness.become_subreaper()
