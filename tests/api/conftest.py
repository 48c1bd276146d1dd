# SPDX-License-Identifier: MIT
"""Fixtures of the black-box tests: one daemon for the session, others by request.

Nothing is built here. Programs come from $SBX_BUILD (default: build/ in the source tree).
"""
import os
import signal
import tempfile

import pytest

import harness
import heavy
import jail_differences

# Files that take long, and in how many parts they run side by side; these begin first, in this order.
# A part is a stretch of neighbours, which share what the file's fixtures hold; the rest run by file.
PARTS = {
    "test_leaks.py": 6, "test_faults.py": 10, "test_dependencies.py": 6, "test_control_plane.py": 6,
    "test_node_zygote.py": 2, "test_functions_call.py": 3, "test_sessions.py": 3,
    "test_koyeb_processes.py": 3, "test_limits.py": 3, "test_koyeb_streaming.py": 2, "test_koyeb_files.py": 2,
    "test_attacks.py": 2, "test_templates.py": 3, "test_koyeb_ports.py": 2, "test_sandboxes.py": 2,
}


def file_of(nodeid):
    return nodeid.partition("::")[0].rpartition("/")[2]


def is_wasm(nodeid):
    """Needs a runtime that takes many seconds to compile: all of these share one daemon, which has it."""
    return file_of(nodeid) in ("test_wasm.py", "test_sessions_wasm.py") or "[wasm-" in nodeid or "-wasm]" in nodeid


def part_of_each(nodeids):
    """{test: name of the part that it runs in}, for the tests in their order."""
    tests = {}
    for nodeid in nodeids:
        tests.setdefault("wasm" if is_wasm(nodeid) else nodeid.partition("::")[0], []).append(nodeid)
    return {nodeid: f"{path} {at * PARTS.get(file_of(path), 1) // len(inside)}"
            for path, inside in tests.items() for at, nodeid in enumerate(inside)}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Parts(LoadScopeScheduling):
        """By file, as loadfile does, but long files in parts."""
        parts = None

        def _split_scope(self, nodeid):
            if self.parts is None:
                self.parts = part_of_each(next(iter(self.registered_collections.values())))
            return self.parts[nodeid]

    return Parts(config, log)


def pytest_configure(config):
    if harness.JAIL == "subprocess" and "SBX_CONTAINED" not in harness.os.environ:
        pytest.exit("SBX_ISOLATION=subprocess: tests meant for a sandbox would be run on this host; "
                    "use tests/api/in-container", returncode=2)
    harness.become_subreaper()
    # Ignored by what a script starts in the background, and inherited: daemons would not hear of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Under another jail (SBX_ISOLATION) everything runs but what it is known not to give.

    What is heavy says so in the report, too: tools/run-suite may remember it.
    """
    first = list(PARTS)

    def turn(item):
        if is_wasm(item.nodeid):  # those that wait for a runtime's first start are in the file of that name
            return -2 if item.path.name == "test_wasm.py" else -1
        return first.index(item.path.name) if item.path.name in first else len(first)
    items.sort(key=turn)
    for item in items:
        reason = jail_differences.reason(harness.JAIL, item.nodeid)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
        reason = heavy.reason(item.nodeid)
        if reason:
            item.add_marker("heavy")
            item.user_properties.append(("heavy", reason))


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


@pytest.fixture
def tmp_path(tmp_path):
    """Open to the daemon, which is another user."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 == 0o005:
            break
        folder.chmod(0o755)
    return tmp_path


@pytest.fixture(scope="session")
def daemon():
    """The daemon with default settings that most tests share."""
    instance = harness.start_daemon()
    yield instance
    instance.stop()


@pytest.fixture(scope="session")
def wasm_daemon():
    """The one with the engine wasm; its attribute root may be mounted."""
    with tempfile.TemporaryDirectory(prefix="sbx-mounts-") as root:
        os.chmod(root, 0o777)
        instance = harness.start_daemon(MOUNT_ROOTS=root, WASM="true", WASM_PATH=str(harness.WASM_RUNTIMES))
        instance.root = root
        yield instance
        instance.stop()


def daemon_factory(defaults=None):
    started = []

    def make(args=(), user=None, binary=None, **env):
        if not env.keys() & {"POOL_NODE", "WASM"}:
            env = {**(defaults or {}), **env}
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
    """make_daemon(**env) starts one with other settings; None takes a default away.

    There are hundreds of them: a warmed Node.js, which takes longer than most tests, is there only for
    those that name it or its pool. Daemons that many tests share are as they are by default.
    """
    yield from daemon_factory({"NODE_ZYGOTE": "false"})


@pytest.fixture(scope="module")
def make_daemon_module():
    """The same, for daemons that a whole module shares."""
    yield from daemon_factory()
