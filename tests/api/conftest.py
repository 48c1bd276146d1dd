# SPDX-License-Identifier: MIT
"""Fixtures of the black-box tests: one daemon for the session, others by request.

Nothing is built here. Programs come from $SBX_BUILD (default: build/ in the source tree).
"""
import pytest

import harness
import jail_differences


def pytest_configure(config):
    if harness.JAIL == "subprocess" and "SBX_CONTAINED" not in harness.os.environ:
        pytest.exit("SBX_ISOLATION=subprocess: tests meant for a sandbox would be run on this host; "
                    "use tests/api/in-container", returncode=2)
    harness.become_subreaper()


def pytest_collection_modifyitems(items):
    """Under another jail (SBX_ISOLATION) everything runs but what it is known not to give."""
    for item in items:
        reason = jail_differences.reason(harness.JAIL, item.nodeid)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


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
