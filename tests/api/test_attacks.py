# SPDX-License-Identifier: MIT
"""The attacks of the selftest: by the command itself, and through every family of the API.

Always: a sample of each group, and the control group. With SBX_LONG=1: all of it.
"""
import ctypes
import errno
import json
import os
import pathlib
import shutil
import struct
import subprocess
import urllib.parse

import pytest

import harness
import witness as w
from koyeb import Sandbox
from test_wasm import HAS_RUNTIMES

LONG = os.environ.get("SBX_LONG") == "1"
TOP = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534
SAMPLE = 9  # every ninth row when there is little time


def selftest(*args, binary=None, env=None, **kw):
    """The command's exit status and its JSON."""
    command = [str((binary or harness.BUILD) / "sandbox-selftest")]
    done = subprocess.run([*command, *[a for a in args if a.startswith("--isolation")], "--", "--json",
                           *[a for a in args if not a.startswith("--isolation")]],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          env={"PATH": os.environ["PATH"], "HOME": "/tmp", **(env or {})}, **kw)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def bad(report):
    return [(r["attack"], r["observed"], r["witness"], r["verdict"]) for round_ in report["rounds"]
            for r in round_["rows"] if r["verdict"] in ("BREACHED", "BROKEN")]


def level():
    return [] if harness.FULL else ["--isolation-level=basic"]


# ---- the command ----


@pytest.mark.parametrize("only", [None] if LONG else ["host-", "ordinary work"])
def test_everything_holds(only):
    status, report = selftest(*level(), *([f"--only={only}"] if only else []))
    assert bad(report) == []
    assert (status, report["good"]) == (0, True)
    assert report["attacks"] + report["works"] > 0
    if LONG:
        assert report["attacks"] >= 120 and report["works"] >= 20


@pytest.mark.parametrize("only", [None] if LONG else ["artifacts", "kill-", "neighbour-kill", "qdisc", "tioc", "suid-"])
def test_every_attack_can_fail(only):
    """Without a jail they succeed, in namespaces that are thrown away."""
    status, report = selftest("--witness-check", *([f"--only={only}"] if only else []))
    if status == 77:
        pytest.skip("this host lets nobody make such namespaces")
    assert [r["attack"] for r in report["rounds"][0]["rows"] if not r["shown"]] == []
    assert status == 0
    rows = report["rounds"][0]["rows"]
    shown = [r for r in rows if r["shown"].endswith(("witnessed", "noticed"))]
    assert len(shown) >= (240 if LONG else 1)
    assert all(r["shown"].endswith("witnessed") for r in shown if r["witness_kind"] != "filter")


def refuse_ptrace():
    """A filter of this process and all it starts: ptrace() is EPERM. To take CAP_SYS_PTRACE away is not enough: the
    user that made a sandbox's user namespace has it there."""
    call = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
    load, jump, give = 0x20, 0x15, 0x06  # BPF_LD | W | ABS, BPF_JMP | JEQ | K, BPF_RET | K
    rows = [(load, 0, 0, 0), (jump, 0, 1, call), (give, 0, 0, 0x00050000 | errno.EPERM), (give, 0, 0, 0x7FFF0000)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    libc = ctypes.CDLL(None, use_errno=True)
    program = struct.pack("@HP", len(rows), ctypes.addressof(text))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def test_nobody_may_trace():
    """Then only the filter is seen, and the table says so."""
    harness.need(harness.ROOT, "only root has something to lose")
    command = [str(harness.BUILD / "sandbox-selftest"), *level(), "--", "--json", f"--jail={harness.JAIL}", "--only=swap"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=refuse_ptrace)
    report = json.loads(done.stdout)
    kinds = {r["attack"]: r["witness_kind"] for r in report["rounds"][0]["rows"]}
    assert kinds == {"swapon": "filter", "swapoff": "filter"} and report["good"]
    assert {r["witness_kind"] for r in selftest(*level(), f"--jail={harness.JAIL}", "--only=swap")[1]["rounds"][0]["rows"]} == {"answer"}


def test_a_missing_wall_is_reported(tmp_path):
    """The traits decide: without a jail nothing is declared, so nothing is a breach, and all is told."""
    status, report = selftest("--witness-check", "--only=host-")
    if status == 77:
        pytest.skip("this host lets nobody make such namespaces")
    told = {r["attack"]: r["witness"] for r in report["rounds"][0]["rows"]}
    assert told["host-read"] == "the secret was read"
    assert "file" in told["host-create"] and "file" in told["host-write"]


def test_as_an_ordinary_user(tmp_path):
    harness.need(harness.ROOT, "becoming an ordinary user needs root; the others cover it then")
    programs = tmp_path / "programs"
    programs.mkdir()
    for path in harness.BUILD.iterdir():
        if path.is_file() and os.access(path, os.X_OK):
            shutil.copy2(path, programs)
    home = tmp_path / "home"
    home.mkdir()
    for place in (tmp_path, *tmp_path.parents):
        if place.stat().st_uid == 0 and str(place) not in ("/", "/tmp"):
            place.chmod(place.stat().st_mode | 0o755)
    os.chown(home, NOBODY, NOBODY)
    status, report = selftest("--isolation-level=basic", *([] if LONG else ["--only=namespaces"]), binary=programs,
                              env={"HOME": str(home)}, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    assert bad(report) == []
    assert status == 0


@pytest.mark.parametrize("args, status", [(["--only=no-such-row"], 1), (["--bogus"], 2), (["--slow=0"], 2), (["--jail=bogus"], 1)])
def test_nothing_tested_is_not_good(args, status):
    command = [str(harness.BUILD / "sandbox-executor"), "--selftest", *level(), "--", *args]
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == status


def test_neither_attacks_nor_parsers_are_linked_into_the_daemon():
    """What is not linked cannot be exploited: the self-test and the inspector are programs of their own."""
    titles = [row.title.encode() for row in w.ROWS[:5]]
    attacker, daemon = ((harness.BUILD / name).read_bytes() for name in ("sandbox-selftest", "sandbox-executor"))
    assert all(title in attacker for title in titles)
    assert not any(title in daemon for title in titles)
    assert b"ts_parser" not in daemon and b"tree_sitter" not in daemon


def test_the_table_is_for_people():
    command = [str(harness.BUILD / "sbx"), "selftest", "--only=setuid", *level()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "become root with setuid" in done.stdout and "EPERM" in done.stdout or "EINVAL" in done.stdout
    assert done.stdout.strip().endswith("Everything holds.")


def test_rows_are_unique_and_listed():
    done = subprocess.run([str(harness.BUILD / "sbx"), "selftest", "--list"], capture_output=True, text=True, timeout=60)
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert len(names) == len(set(names))
    assert {row.id for row in w.ROWS} <= set(names)
    assert len(w.ROWS) >= 120


# ---- through the API ----


@pytest.fixture(scope="module")
def witness():
    instance = w.Witness()
    yield instance
    instance.close()


# They hit everything inside, the program that made them included.
SELF_MADE = ("kill-all", "stop-all")


def by_handler(daemon, row, event):
    code = w.probe_stub(row, event) if row.program == "PROBE" else w.program(row)
    result = daemon.execute(code, event=event, timeout=5 if row.id in SELF_MADE else 20)
    return result["stdout"] + result["stderr"], result["termination"]["reason"]


def by_function(daemon, row, event):
    code = w.probe_stub(row, event) if row.program == "PROBE" else w.program(row)
    body = {"language": "python", "code": code, "functionName": "handler", "args": [event],
            "timeout": 5 if row.id in SELF_MADE else 20}
    response = daemon.request("POST", "/v1/functions/call", json=body)
    assert response.status == 200, response
    result = response.json()
    return result["stdout"] + result["stderr"], result["termination"]["reason"]


def by_sandbox(daemon, row, event):
    box = Sandbox(daemon)
    if row.program == "PROBE":
        path = "/workspace/probe.py"
        text = w.probe_stub(row, event) + "\nhandler(None)\n"
    else:
        path, text = f"/workspace/{row.program}.py", w.program(row)
    assert box.post("write_file", {"path": path, "content": text}).status == 200
    result = box.run(f"rm -rf work; mkdir work; cd work; exec python3 -B {path}", cwd="/workspace",
                     env={"SELFTEST_EVENT": json.dumps(event)}, timeout=5 if row.id in SELF_MADE else 30)
    assert box.sh("echo fine") == "fine\n"
    return result["stdout"] + result["stderr"], "exit"


def by_session(daemon, row, event):
    """A session that lives until the witness may look."""
    code = w.probe_stub(row, event) if row.program == "PROBE" else w.program(row)
    made = daemon.request("POST", "/v1/sessions", json={"language": "python", "code": code, "timeout": 20})
    assert made.status == 201, made
    path = f"/v1/sessions/{made.json()['id']}"
    try:
        body = {"functionName": "handler", "args": [event], "timeout": 5 if row.id in SELF_MADE else 20}
        response = daemon.request("POST", path + "/call", json=body)
        assert response.status == 200, response
    finally:
        assert daemon.request("DELETE", path).status in (200, 204)
    harness.wait_until(lambda: not harness.processes_with(event["mark"]), "the session's processes are gone")
    result = response.json()
    reason = result["session"].get("reason") or result["termination"]["reason"]
    return result["stdout"] + result["stderr"], reason


def by_wasm(daemon, row, event):
    body = {"language": "python", "code": w.program(row), "functionName": "handler", "args": [event], "timeout": 20,
            "engine": "wasm"}
    response = daemon.request("POST", "/v1/functions/call", json=body)
    assert response.status == 200, response
    result = response.json()
    if "termination" not in result:
        assert result["error"]["type"] == "EngineNotAvailable", result
        pytest.skip(result["error"]["message"])
    return result["stdout"] + result["stderr"], result["termination"]["reason"]


FAMILIES = {"handlers": by_handler, "functions": by_function, "sandbox": by_sandbox, "sessions": by_session,
            "wasm": by_wasm}
# Two runs at a time, and limits with numbers of their own, are the command's business.
SINGLE = [row for row in w.ROWS if not row.flags & {"AFTER", "BESIDE", "TIGHT", "COLLECT"}]
# A persistent sandbox may change its own copy of the system, keeps processes that are left behind, and its
# processes share what it was given.
PRIVATE = {"system-change", "exe-own", "daemonize", "orphan-output", "orphan-stopped"}


# A machine that has no such thing as a process ends nobody else, and runs no program of another machine.
# Its devices are its own.
WASM_HAS = ("PY_FILES", "PY_NETWORK", "PY_PROCESSES")
WASM_OWN = {"dev-nodes"}


def chosen(family):
    rows = [row for row in SINGLE if family != "sandbox" or row.id not in PRIVATE]
    if family == "wasm":
        rows = [row for row in rows if row.program in WASM_HAS and row.id not in WASM_OWN]
    if LONG:
        return rows
    first = sorted(FAMILIES).index(family)
    return rows[first::SAMPLE]


@pytest.mark.parametrize("family, row", [(f, r) for f in sorted(FAMILIES) for r in chosen(f)], ids=str)
def test_attack_through_the_api(daemon, witness, family, row, request):
    event = witness.event(row)
    if family == "wasm":
        harness.need(HAS_RUNTIMES, "no runtimes: tools/fetch-wasm")
        daemon = request.getfixturevalue("wasm_daemon")
    said, reason = FAMILIES[family](daemon, row, event)
    lines = said.splitlines()
    assert not [line for line in lines if line.startswith("BREACH")], said
    assert witness.touched(said) == []
    ended = "SIGNAL" in row.ends or family == "wasm"  # there a call that is not there is a trap
    # Whoever writes anything into the channel of a session has had one.
    garbled = family == "sessions" and reason == "protocol" and row.group == "OTHERS"
    killed = garbled or ended and (reason == "signal" or any(line.startswith("KILLED") for line in lines))
    assert killed or row.id in SELF_MADE or any(line.startswith(("HELD", "ABSENT")) for line in lines), said


@pytest.mark.parametrize("row", [r for r in w.ROWS if "COLLECT" in r.flags], ids=str)
def test_attack_by_artifacts(daemon, witness, row):
    """What was left in the workspace is looked at by the daemon: nothing of the host comes along."""
    result = daemon.execute(w.program(row), event=witness.event(row), timeout=20)
    assert result["status"] == "success", result
    for name in result["artifacts"]:
        path = urllib.parse.quote(name)
        response = daemon.request("GET", f"/v1/executions/{result['execution_id']}/artifacts/{path}")
        assert witness.secret.encode() not in response.body
    assert witness.touched(json.dumps(result)) == []


TIGHT = {"MAX_MEMORY_MB": 96, "WORKSPACE_MB": 16, "WORKSPACE_FILES": 400, "TMP_MB": 8, "PIDS_MAX": 40,
         "OPEN_FILES_MAX": 256, "OUTPUT_MAX": 65536}
NUMBERS = {"memory": 96 << 20, "disk": 16 << 20, "files": 400, "tmp": 8 << 20, "pids": 40, "open_files": 256,
           "output": 65536, "cpu": 100}
HUNGRY = [r for r in w.ROWS if "TIGHT" in r.flags and not r.flags & {"CPU", "SHORT"}]


@pytest.fixture(scope="module")
def tight(make_daemon_module):
    return make_daemon_module(**TIGHT)


@pytest.mark.parametrize("row", HUNGRY if LONG else HUNGRY[::4], ids=str)
def test_attack_on_limits(tight, witness, row):
    if not harness.FULL and "JAIL_MEMORY" in row.traits or not harness.FULL and "JAIL_PIDS" in row.traits:
        pytest.skip("not declared without control groups")
    result = tight.execute(w.program(row), event=witness.event(row, **NUMBERS), timeout=30)
    assert "BREACH" not in result["stdout"]
    assert len(result["stdout"]) <= NUMBERS["output"] + 1024 and len(result["stderr"]) <= NUMBERS["output"] + 1024
    assert "HELD" in result["stdout"] or result["termination"]["reason"].upper() in row.ends or "QUIET" in row.flags
    assert witness.touched() == []
    assert tight.health().status == 200
