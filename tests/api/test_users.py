# SPDX-License-Identifier: MIT
"""Host users of sandboxes: no two that live at the same time have the same one, whichever daemon made them."""
import ctypes
import os
import pathlib
import signal
import tempfile

import pytest

import harness
import inventory

pytestmark = pytest.mark.skipif(not harness.ROOT, reason="as an ordinary user all sandboxes are that user")

BESIDE = 4


@pytest.fixture
def shared():
    """A directory that the daemon's user can reach."""
    with tempfile.TemporaryDirectory(prefix="sbx-test-") as name:
        os.chmod(name, 0o755)
        yield pathlib.Path(name)


def users_of(mark):
    return {os.stat(f"/proc/{pid}").st_uid for pid in harness.processes_with(mark)}


def hold(daemon, count=BESIDE, **fields):
    """That many sandboxes at the same time; the users of their programs, as the host sees them."""
    mark = harness.marker()
    running = [daemon.start(f"exec -a {mark} sleep 600", "shell", timeout=600, **fields) for _ in range(count)]
    try:
        harness.wait_until(lambda: len(users_of(mark)) == count, lambda: f"{count} users, not {users_of(mark)}")
        return users_of(mark), running
    except AssertionError:
        for connection in running:
            connection.close()
        raise


def test_two_daemons_never_have_the_same_user(make_daemon):
    first, second = make_daemon(), make_daemon()
    users, running = hold(first)
    try:
        others, more = hold(second)
        running += more
        assert not users & others, (users, others)
    finally:
        for connection in running:
            connection.close()


def test_two_jails_of_one_daemon_never_have_the_same_user(make_daemon):
    daemon = make_daemon(ISOLATION="native,bwrap")
    users, running = hold(daemon, isolation="native")
    try:
        others, more = hold(daemon, isolation="bwrap")
        running += more
        assert not users & others, (users, others)
    finally:
        for connection in running:
            connection.close()


def test_subprocess_has_users_of_its_own_beside_another_daemon(make_daemon):
    first, plain = make_daemon(), make_daemon(ISOLATION="subprocess")
    users, running = hold(first)
    try:
        others, more = hold(plain)
        running += more
        assert not users & others, (users, others)
    finally:
        for connection in running:
            connection.close()


def owners(state):
    return {path.stat().st_uid for path in pathlib.Path(state).glob("workspaces/*")}


def run_kept(daemon, name):
    return daemon.request("POST", "/execute", headers={"Prefer": "wait"}, json={
        "code": "import os\ndef handler(e):\n  open(f'kept{len(os.listdir())}', 'w').close()\n  return len(os.listdir())",
        "language": "python", "session_id": name})


def keep(daemon, name):
    answer = run_kept(daemon, name)
    assert answer.status == 200 and answer.json()["status"] == "success", answer
    return answer.json()["return_value"]


def test_kept_workspaces_of_two_daemons_have_other_owners(make_daemon, shared):
    states = [shared / "one", shared / "two"]
    first, second = (make_daemon(STATE_DIR=state) for state in states)
    for daemon in (first, second):
        for name in ("a", "b"):
            assert keep(daemon, name) == 1
    assert len(owners(states[0])) == len(owners(states[1])) == 2
    assert not owners(states[0]) & owners(states[1])


def test_a_kept_workspace_is_found_again_after_a_kill(make_daemon, shared):
    """The lock on the range of its owner went with the processes that held it."""
    daemon = make_daemon(STATE_DIR=shared / "state")
    assert keep(daemon, "a") == 1
    before = owners(shared / "state")
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    again = make_daemon(STATE_DIR=shared / "state")
    assert keep(again, "a") == 2 and keep(again, "b") == 1
    assert before < owners(shared / "state")


RANGE = 1 << 21  # users of a daemon, from FIRST on
FIRST = 0x60000000


def state_that_begins_at(shared, wanted):
    """A state directory without workspaces whose daemon would begin to look for users at that range."""
    for n in range(5000):
        path = shared / f"other{n}" / "workspaces"
        path.mkdir(parents=True)
        found = path.stat()
        if (found.st_ino ^ found.st_dev) % 256 == wanted:
            os.chmod(path.parent, 0o755)
            return path.parent
        path.rmdir()
    pytest.skip("no directory has such an inode")


def test_another_daemon_leaves_the_range_of_a_dead_one_to_its_successor(make_daemon, shared):
    """As long as there are ranges that nobody has had, or had longer ago."""
    daemon = make_daemon(STATE_DIR=shared / "state")
    assert keep(daemon, "a") == 1
    mine = {(uid - FIRST) // RANGE for uid in owners(shared / "state")}
    tree = daemon.tree()
    daemon.signal(signal.SIGKILL)
    daemon.wait()
    harness.wait_until(lambda: not any(harness.is_alive(pid) for pid in tree), "nothing of it holds the lock")
    other = make_daemon(STATE_DIR=state_that_begins_at(shared, *mine))
    users, running = hold(other, 1)
    again = make_daemon(STATE_DIR=shared / "state")
    assert keep(again, "a") == 2
    assert {(uid - FIRST) // RANGE for uid in users} != mine
    for connection in running:
        connection.close()


def test_a_workspace_whose_users_another_daemon_has_is_refused(make_daemon, shared):
    """Two daemons with workspaces in one range, as copies of a state directory are: the second runs, with other users,
    and does not touch the workspaces of that range while the first is there."""
    states = [shared / "one", shared / "two"]
    make_daemon(STATE_DIR=states[1]).stop()
    first = make_daemon(STATE_DIR=states[0])
    assert keep(first, "a") == 1
    for path in (states[0] / "workspaces").iterdir():
        copy = states[1] / "workspaces" / path.name
        copy.mkdir(mode=0o700)
        os.chown(copy, path.stat().st_uid, path.stat().st_gid)
    second = make_daemon(STATE_DIR=states[1])
    answer = run_kept(second, "a")
    assert answer.status >= 500 or answer.json()["status"] != "success", answer
    assert keep(second, "b") == 1
    first.stop()
    assert keep(second, "a") == 1


# ---- what the kernel counts for a user ----

INOTIFY = "import ctypes, time; c = ctypes.CDLL(None); n = 0\nwhile c.inotify_init() >= 0: n += 1\nprint(n, flush=True)\ntime.sleep({})"


def instances():
    """How many instances of inotify root of the host can still have, up to eight."""
    libc, held = ctypes.CDLL(None), []
    try:
        while len(held) < 8 and (fd := libc.inotify_init()) >= 0:
            held.append(fd)
        return len(held)
    finally:
        for fd in held:
            os.close(fd)


@pytest.mark.skipif(harness.JAIL == "subprocess", reason="its programs may be the daemon's user, or one of a session")
@pytest.mark.parametrize("language", ["python", "shell", "javascript"])
def test_a_tenant_takes_no_instances_of_inotify_from_others(make_daemon, language):
    """The kernel counts them for each user, and for the users who made the user namespaces above: root may be none of these."""
    if not instances():
        pytest.skip("the host has none left")
    daemon, other = make_daemon(), make_daemon()
    program = {"python": INOTIFY.format(600),
               "shell": f"exec python3 -c '{INOTIFY.format(600)}'",
               "javascript": f"require('child_process').execFileSync('python3', ['-c', {INOTIFY.format(600)!r}], {{stdio: 'inherit'}})"}[language]
    for _ in range(2):
        daemon.execute("true" if language == "shell" else "0", language)  # it is warm, where it can be
    hungry = daemon.start(program, language, timeout=600)
    try:
        harness.wait_until(lambda: taken_by(daemon) >= 8, lambda: f"it takes what it gets: {taken_by(daemon)}")
        harness.wait_until(settled(daemon), "it has taken what it gets")
        assert instances() == 8, "root of the host has none left"
        for beside in (daemon, other):
            for kind in ("python", "shell"):
                text = INOTIFY.format(0) if kind == "python" else f"python3 -c '{INOTIFY.format(0)}'"
                assert int(beside.execute(text, kind)["stdout"]) >= 8, kind
    finally:
        hungry.close()


def taken_by(daemon):
    return sum("inotify" in target for pid in daemon.tree() for target in inventory.targets(pid))


def settled(daemon):
    """A condition: the number is the same as at the look before."""
    last = []

    def same():
        last.append(taken_by(daemon))
        return len(last) > 1 and last[-1] == last[-2]
    return same
