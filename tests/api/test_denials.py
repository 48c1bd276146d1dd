# SPDX-License-Identifier: MIT
"""A program that failed because it was refused something is told what, and which setting allows it."""
import textwrap

import pytest

from koyeb import Sandbox

# what -> the setting that bounds it in a fresh sandbox, a Python handler, a shell command
REFUSED = {
    "network": (None, """
        import socket
        def handler(e): socket.create_connection(("192.0.2.1", 80), 5)
        """, "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 5)'"),
    "write": (None, """
        def handler(e): open("/usr/bin/new", "w")
        """, None),
    "system call": (None, """
        import ctypes, os
        def handler(e):
            ctypes.CDLL(None, use_errno=True).chroot(b"/tmp")
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        """, "python3 -c 'import os; os.chroot(\"/tmp\")'"),
    "disk": ("WORKSPACE_FILES", """
        def handler(e):
            for i in range(100000): open(f"f{i}", "w").close()
        """, None),
    "open files": ("OPEN_FILES_MAX", """
        def handler(e): kept = [open("/dev/null") for _ in range(100000)]
        """, "python3 -c 'kept = [open(\"/dev/null\") for _ in range(1000000)]'"),
}


def kinds(result):
    return [one["what"] for one in result.get("denied", [])]


@pytest.mark.parametrize("what", REFUSED)
def test_a_handler_is_told(daemon, what):
    setting, code, _ = REFUSED[what]
    result = daemon.execute(textwrap.dedent(code), timeout=30)
    assert result["status"] == "failed", result
    assert what in kinds(result), result
    assert result["termination"]["hint"]
    one = next(d for d in result["denied"] if d["what"] == what)
    assert one["advice"] and (setting is None or setting in one["advice"])


@pytest.mark.parametrize("what", REFUSED)
def test_a_function_is_told(daemon, what):
    _, code, _ = REFUSED[what]
    body = {"language": "python", "code": textwrap.dedent(code), "functionName": "handler", "args": [None]}
    result = daemon.request("POST", "/v1/functions/call", json=body).json()
    assert result["success"] is False and what in kinds(result), result
    assert result["termination"]["hint"]


@pytest.mark.parametrize("what", REFUSED)
def test_a_session_is_told(daemon, what):
    made = daemon.request("POST", "/v1/sessions", json={"language": "python", "code": textwrap.dedent(REFUSED[what][1])})
    at = f"/v1/sessions/{made.json()['id']}"
    result = daemon.request("POST", f"{at}/call", json={"functionName": "handler", "args": [None]}).json()
    assert daemon.request("DELETE", at).status == 204
    assert result["success"] is False and what in kinds(result), result
    assert result["termination"]["hint"]


@pytest.mark.parametrize("what", [w for w in REFUSED if REFUSED[w][2]])
def test_a_command_is_told(daemon, what):
    result = Sandbox(daemon).run(REFUSED[what][2])
    assert result["code"] != 0 and what in kinds(result), result


@pytest.mark.parametrize("reason, what, code", [
    ("oom", "memory", "def handler(e): return len(bytearray(1 << 30))"),
    ("pids", "processes", "import os, time\ndef handler(e):\n    for _ in range(200):\n"
                          "        if os.fork() == 0: time.sleep(30); os._exit(0)"),
])
def test_limits_are_told_by_the_kernels_counters(daemon, reason, what, code):
    result = daemon.execute(code, timeout=30)
    if "memory" not in result["isolation"]["traits"]:
        pytest.skip("no control groups here")
    assert result["termination"]["reason"] == reason, result
    assert what in kinds(result) and result["termination"]["hint"]


def test_javascript_is_told(daemon):
    result = daemon.execute("exports.handler = () => require('fs').writeFileSync('/usr/x', '1')", "javascript")
    assert kinds(result) == ["write"], result
    result = daemon.execute("exports.handler = () => require('dns').promises.lookup('example.com')", "javascript")
    assert "network" in kinds(result), result


def test_success_says_nothing_of_denials(daemon):
    result = daemon.execute("import sys\ndef handler(e):\n    print('Network is unreachable', file=sys.stderr)")
    assert result["status"] == "success" and "denied" not in result and "hint" not in result["termination"]
    assert "denied" not in Sandbox(daemon).run("echo EROFS >&2")


def test_an_ordinary_failure_says_nothing_of_denials(daemon):
    result = daemon.execute("def handler(e): return 1 / 0")
    assert result["status"] == "failed" and "denied" not in result and "hint" not in result["termination"]
    assert "denied" not in Sandbox(daemon).run("exit 3")
