# SPDX-License-Identifier: MIT
"""What somebody meets in the first hour: the default sandbox under any name, its environment, readable logs,
records of a run, and root of a user namespace."""
import os
import pathlib
import pty
import select
import subprocess

import pytest

import harness


def run(daemon, cmd):
    return daemon.request("POST", "/run", json={"cmd": cmd}).json()


# ---- the default sandbox ----


def test_a_sandbox_named_default_is_the_default_one(make_daemon):
    daemon = make_daemon()
    made = daemon.request("POST", "/v1/sandboxes", json={"name": "default", "env": {"GREETING": "hi"}})
    assert made.status == 201
    assert run(daemon, "echo $GREETING; touch /tmp/mark")["stdout"] == "hi\n"
    same = daemon.request("POST", f"/v1/sandboxes/{made.json()['id']}/run", json={"cmd": "ls /tmp/mark"})
    assert same.json()["stdout"] == "/tmp/mark\n"
    again = daemon.request("POST", "/v1/sandboxes", json={"name": "default"})
    assert again.status == 400 and "already" in again.text
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204
    assert run(daemon, "ls /tmp/mark; echo [$GREETING]")["stdout"] == "[]\n", "a new one, without a word"


def test_the_default_sandbox_may_be_given_variables(make_daemon):
    daemon = make_daemon(SANDBOX_ENV="FIRST,,SECOND=a=b,ABSENT", FIRST="one two", OTHER="not passed")
    got = run(daemon, "echo [$FIRST] [$SECOND] [$OTHER] [${ABSENT-unset}]")
    assert got["stdout"] == "[one two] [a=b] [] [unset]\n"
    made = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    other = daemon.request("POST", f"/v1/sandboxes/{made}/run", json={"cmd": "echo [$FIRST]"}).json()
    assert other["stdout"] == "[]\n", "of the default one only"


def test_a_variable_without_a_name_stops_the_start():
    refusal = harness.start_refused(SANDBOX_ENV="=x")
    assert refusal.status == 1 and "SANDBOX_ENV" in refusal.stderr


# ---- records ----


def test_a_run_leaves_a_record_when_it_begins_and_when_it_ends(make_daemon):
    daemon = make_daemon()
    daemon.execute("true", "shell", execution_id="seen")
    daemon.wait_record(event_type="execution_done", execution_id="seen")
    kinds = [r["event_type"] for r in daemon.records() if r.get("execution_id") == "seen"]
    assert kinds == ["execution_started", "execution_done"]


def test_output_that_is_cut_is_a_warning(make_daemon):
    daemon = make_daemon(OUTPUT_MAX=1024)
    daemon.execute("head -c 5000 /dev/zero", "shell", execution_id="long")
    record = daemon.wait_record(event_type="output_truncated")
    assert (record["level"], record["execution_id"]) == ("warn", "long")
    assert (record["stream"], record["limit_bytes"]) == ("stdout", 1024)
    daemon.execute("echo short", "shell", execution_id="short")
    daemon.wait_record(event_type="execution_done", execution_id="short")
    assert len([r for r in daemon.records() if r.get("event_type") == "output_truncated"]) == 1


def first_line(terminal):
    """What a daemon that cannot start says, with its errors on a terminal or in a pipe."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    with subprocess.Popen([harness.BUILD / "sandbox-executor"], stdout=subprocess.DEVNULL, stderr=theirs,
                          env={"RUN_AS": "nobody-of-this-name", "ISOLATION": "native", "STATE_DIR": "/proc/none"}):
        os.close(theirs)
        assert select.select([ours], [], [], 30)[0]
        text = os.read(ours, 4096)
    os.close(ours)
    return text.decode()


def test_logs_are_for_people_on_a_terminal_and_for_programs_elsewhere():
    assert first_line(terminal=False).startswith('{"timestamp"')
    assert "start_failed" in first_line(terminal=True) and not first_line(terminal=True).startswith("{")


# ---- root of a user namespace ----


# One user, as `unshare -Ur` gives, and 65536, as rootless containers have.
@pytest.mark.parametrize("option", ["-Ur", "-U --map-users=100000,0,65536 --map-groups=100000,0,65536 -S 0 -G 0"])
def test_root_of_a_user_namespace_is_served(make_daemon, tmp_path, option):
    harness.need(harness.JAIL == "native", "namespaces")
    probe = subprocess.run(["unshare", *option.split(), "true"], stderr=subprocess.DEVNULL)
    harness.need(probe.returncode == 0, "user namespaces")
    for folder in (tmp_path, *tmp_path.parents):  # one more of them where tests run side by side
        if folder.stat().st_mode & 0o005 == 0o005:
            break
        folder.chmod(0o755)
    script = tmp_path / "sandbox-executor"
    script.write_text(f"#!/bin/sh\nexec unshare {option} {harness.BUILD}/sandbox-executor \"$@\"\n")
    script.chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 0 if option == "-Ur" else 100000, -1)
    daemon = make_daemon(binary=script, ISOLATION_LEVEL="basic", STATE_DIR=state, RESULTS_PATH=state / "results")
    assert daemon.returned("def handler(event):\n    return 42") == 42
    assert daemon.execute("id -u", "shell")["stdout"] == "1000\n"
    assert run(daemon, "echo inside")["stdout"] == "inside\n"


# ---- ./run ----


@pytest.mark.parametrize("env, flags, level", [
    ({}, "", "basic"), ({"ISOLATION_LEVEL": "full"}, "", "full"), ({}, "--isolation-level=full", ""),
])
def test_run_as_an_ordinary_user_says_what_it_lacks(tmp_path, env, flags, level):
    """The script itself, with stand-ins for what it calls."""
    harness.need(os.geteuid() == 0, "to become another user")
    for folder in (tmp_path, *tmp_path.parents):  # one more of them where tests run side by side
        if folder.stat().st_mode & 0o005 == 0o005:
            break
        folder.chmod(0o755)
    source = pathlib.Path(__file__).parents[2] / "run"
    for name, text in {"run": source.read_text(), "tools/install-deps": "#!/bin/sh\n", "build/build.ninja": "",
                       "tools/list-sources": "#!/bin/sh\n", "build/.sources": "",
                       "tools/fetch-grammars": "#!/bin/sh\n",
                       "build/sandbox-executor": "#!/bin/sh\necho level=$ISOLATION_LEVEL\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    os.chmod(tmp_path / "build", 0o777)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tmp_path / "run", *flags.split()],
                          env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **env}, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stdout == f"level={level}\n", done
    assert ("ISOLATION_LEVEL=basic" in done.stderr) is (level == "basic")


# ---- tools/install-deps ----


APT = """#!/bin/sh
echo "$*" >>called
if [ "$(wc -l <called)" -le 2 ]; then
    echo "E: $WORDS" >&2
    exit 100
fi
"""


@pytest.mark.parametrize("words, calls, status", [
    ("Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)", 4, 0),
    ("Unable to fetch some archives", 1, 100),
])
def test_packages_wait_for_another_apt_and_for_nothing_else(tmp_path, words, calls, status):
    """The script itself, with stand-ins for apt-get and dpkg-query: nothing is installed here, says the latter."""
    for name, text in {"apt-get": APT, "dpkg-query": "#!/bin/sh\n", "sudo": "#!/bin/sh\nexec \"$@\"\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = pathlib.Path(__file__).parents[2] / "tools" / "install-deps"
    done = subprocess.run([script, "vm"], cwd=tmp_path, text=True, timeout=60, capture_output=True, check=False,
                          env={"PATH": f"{tmp_path}:/usr/bin:/bin", "WORDS": words, "APT_PAUSE": "0"})
    assert done.returncode == status and words in done.stderr, done
    called = (tmp_path / "called").read_text().splitlines()
    assert len(called) == calls and all("DPkg::Lock::Timeout=" in line for line in called), called
    assert ("waiting for it" in done.stderr) is (status == 0)
