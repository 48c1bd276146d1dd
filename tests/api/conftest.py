# SPDX-License-Identifier: MIT
"""Fixtures of the black-box tests: one daemon for the session, others by request.

Nothing is built here. Programs come from $SBX_BUILD (default: build/ in the source tree).
"""
import pytest

import harness


def pytest_configure(config):
    harness.become_subreaper()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows what its daemons logged."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, harness.Daemon):
                lines = value.log_text().splitlines()[-80:]
                report.sections.append((f"log of {name} (pid {value.pid})", "\n".join(lines)))


@pytest.fixture(scope="session")
def daemon():
    """The daemon with default settings that most tests share."""
    instance = harness.start_daemon()
    yield instance
    instance.stop()


def daemon_factory():
    started = []

    def make(args=(), user=None, binary=None, **env):
        instance = harness.start_daemon(args, user, binary, **env)
        started.append(instance)
        return instance

    yield make
    problems = []
    for instance in started:
        try:
            instance.stop()
        except AssertionError as problem:
            problems.append(f"{problem}\n{instance.log_text()}")
    assert not problems, "\n".join(problems)


@pytest.fixture
def make_daemon():
    """make_daemon(**env) starts one with other settings; None takes a default away."""
    yield from daemon_factory()


@pytest.fixture(scope="module")
def make_daemon_module():
    """The same, for daemons that a whole module shares."""
    yield from daemon_factory()
