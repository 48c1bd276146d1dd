# SPDX-License-Identifier: MIT
"""Every command that README.md and docs/*.md show is executed, and every example of the page /docs.

A block says what it is behind its fence: `sh` is run by a shell in a directory of its own against a daemon (the address
of the documents, 127.0.0.1:8080, becomes that daemon's, and build/ the build under test); `usage` lists ways to call a
program, whose --help must know each option; `json` must be JSON; `python` and `js` are run by
test_webhooks.py; `text` and `c` are not commands. A block that cannot be
run says why in a comment above it, <!-- not run: … -->, and is counted in NOT_RUN.
"""
import html
import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import BUILD, DEADLINE, wait_until

TOP = pathlib.Path(__file__).resolve().parents[2]
FILES = [TOP / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(TOP.glob("docs/*.md"))
FENCE = re.compile(r"^(?:<!-- not run: (?P<why>[^\n]+) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.S | re.M)
KINDS = {"sh", "usage", "json", "text", "c", "python", "js"}
NOT_RUN = {"README.md": 1, "CONTRIBUTING.md": 1, "docs/development.md": 2, "docs/functions.md": 1, "docs/jails.md": 1,
           "docs/install.md": 2, "docs/wasm.md": 1}


def blocks():
    for path in FILES:
        name, text = str(path.relative_to(TOP)), path.read_text()
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start("kind")) + 1
            yield pytest.param(name, found["kind"], found["text"], found["why"], id=f"{name}:{line}")


BLOCKS = list(blocks())


def of_kind(kind):
    return [b for b in BLOCKS if b.values[1] == kind and not b.values[3]]


def run(daemon, script, where, **more):
    address = f"127.0.0.1:{daemon.port}"
    script = script.replace("127.0.0.1:8080", address).replace("build/sbx", f"{BUILD}/sbx")
    env = {"PATH": os.environ["PATH"], "HOME": str(where), "SANDBOX_SECRET": daemon.secret, "EXECUTOR_PORT": str(daemon.port),
           **more}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=where, env=env, capture_output=True, text=True,
                          timeout=4 * DEADLINE, check=False)


def answers(text):
    """The JSON objects at the beginning of what was said."""
    while text.startswith("{"):
        answer, end = json.JSONDecoder().raw_decode(text)
        yield answer
        text = text[end:].lstrip()


def test_every_block_says_what_it_is():
    for block in BLOCKS:
        assert block.values[1] in KINDS, block.id
    for path in FILES:
        text = path.read_text()
        assert text.count("\n```") == 2 * len(FENCE.findall(text)), f"{path}: a fence that this test does not see"
        assert len(re.findall("^<!-- not run:", text, re.M)) == NOT_RUN.get(str(path.relative_to(TOP)), 0), path


@pytest.mark.parametrize("name, kind, text, why", of_kind("sh"))
def test_commands_do_what_they_show(daemon, tmp_path, name, kind, text, why):
    said = run(daemon, text, tmp_path)
    assert said.returncode == 0 and not said.stderr, (text, said)
    for answer in answers(said.stdout):
        assert "error_code" not in answer and answer.get("status", "success") in GOOD, answer


@pytest.mark.parametrize("name, kind, text, why", of_kind("json"))
def test_json_is_json(name, kind, text, why):
    json.loads(text)


@pytest.mark.parametrize("name, kind, text, why", of_kind("usage"))
def test_usage_names_programs_and_their_options(name, kind, text, why):
    for line in text.splitlines():
        command = re.split(r"\s{3,}", line)[0].split()
        words = [w for w in command if re.match(r"[\w./-]+$", w) and not w.startswith("-")]
        program = TOP / words[0] if not words[0].startswith("build/") else BUILD / words[0][6:]
        sub = words[1:2] if words[0] == "build/sbx" else []
        if words[0] == "./run":
            program = BUILD / "sandbox-executor"  # which it becomes
        said = subprocess.run([program, *sub, "--help"], capture_output=True, text=True, timeout=4 * DEADLINE, check=False)
        assert said.returncode == 0, (line, said)
        for option in re.findall(r"--[a-z-]+", " ".join(command)):
            assert option in said.stdout, (line, option)


# ---- the page of the daemon ----

SECTION = re.compile(r'<h3 id=(\w+)>.*?(?=<h3|<h2|</main>)', re.S)
# Examples with a value that only a longer story could have, and the status they get.
GOOD = ("success", "ok", "running")  # status of an execution, of a cell, of a process or sandbox
PLACEHOLDER = {"postInternalSessionConfigSync": {200, 501}, "postFunctionsSync": {404}, "postKillProcess": {400},
               "postPackages": {422, 501}, "getPackagesId": {404}, "deletePackagesId": {404},
               "postSandboxesIdKillProcess": {400}, "postConsoleLogin": {403}, "getExecutionsIdToolCalls": {404}}
ENDLESS = {"postSandboxesIdFilesWatch", "getMcp"}  # streams that end with their client alone


@pytest.fixture(scope="module")
def page(daemon):
    text = daemon.request("GET", "/docs").text
    return {found[1]: html.unescape(found[0]) for found in SECTION.finditer(text)}


def a_server(daemon, at):
    """A port of a sandbox at which files are served."""
    daemon.request("POST", at + "/start_process", json={"cmd": "echo hello >index.html; exec python3 -m http.server 8000"})
    wait_until(lambda: daemon.request("GET", at + "/ports/8000/index.html").status == 200, "the server inside answers")
    return "8000"


def of_a_sandbox(daemon, name, command):
    """A sandbox, and what else an example in it names."""
    home = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    at, ids = "/v1/sandboxes/" + home, {"ID": home}
    daemon.request("PUT", at + "/files/workspace/notes.txt", body=b"hello\n")
    started = {"command": "cat", "stdin": True}  # it runs until its input ends
    if name.endswith("Size") or "$TERMINAL" in command:
        started = {"command": "cat", "terminal": {"columns": 80, "rows": 24}}
    elif "process_logs" in command:
        ids["PROCESS"] = daemon.request("POST", at + "/start_process", json={"cmd": "echo hi"}).json()["id"]
    elif name.endswith("Output"):
        started = {"command": "echo hi"}
    if "PROCESS" not in ids and ("$PROCESS" in command or "$TERMINAL" in command):
        ids["PROCESS"] = ids["TERMINAL"] = daemon.request("POST", at + "/processes", json=started).json()["id"]
    if "$CONTEXT" in command:
        ids["CONTEXT"] = daemon.request("POST", at + "/contexts", json={"language": "bash"}).json()["id"]
    if "$PORT" in command:
        ids["PORT"] = a_server(daemon, at)
    return ids


def make_ids(daemon, name, command):
    """What earlier answers would have named; some examples remove it."""
    if "/v1/sandboxes/" in command:
        return of_a_sandbox(daemon, name, command)
    if "$PROCESS" in command:
        return {"PROCESS": daemon.request("POST", "/start_process", json={"cmd": "echo hi"}).json()["id"]}
    if "/v1/sessions/" in command:
        code = {"language": "python", "code": "def count(): return 1"}
        return {"ID": daemon.request("POST", "/v1/sessions", json=code).json()["id"]}
    if "/v1/executions/" in command:
        return {"ID": daemon.execute("echo hello >notes.txt", "shell")["execution_id"]}
    if "/v1/tools/" in command:
        code = "def add(a: int, b: int = 2) -> int:\n    return a + b"
        daemon.request("PUT", "/v1/tools/documented", json={"language": "python", "code": code})
        return {"ID": "documented"}
    if "/v1/workspaces/" in command:
        body = {"language": "shell", "code": "true", "session_id": "documented"}
        daemon.request("POST", "/execute", headers={"Prefer": "wait"}, json=body)
        return {"ID": "documented"}
    if "$SESSION" in command:
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        return {"SESSION": daemon.request("POST", "/mcp", json=body).headers["Mcp-Session-Id"]}
    return {"ID": "none"} if "$ID" in command else {}


def test_every_example_of_the_page_gets_an_answer_that_it_lists(daemon, page, tmp_path):
    (tmp_path / "notes.txt").write_text("hello\n")
    for name, section in page.items():
        command = re.search(r"<pre>(curl .*?)</pre>", section, re.S)[1]
        ids = make_ids(daemon, name, command)
        listed = PLACEHOLDER.get(name) or {int(n) for n in re.findall(r"<h4>Answer (\d+)", section)}
        command = command.replace("curl -sS ", "curl -sS -o out -w '%{http_code}' ", 1)
        if name in ENDLESS or listed == {101}:
            command = command.replace("curl -sS ", "curl -s -m 5 ", 1) + " || test $? = 28"
        try:
            said = run(daemon, command, tmp_path, **ids)
            assert said.returncode == 0, (name, said)
            assert int(said.stdout) in listed, (name, said.stdout, (tmp_path / "out").read_text())
        finally:
            if "/v1/sandboxes/$ID" in command or "/v1/sessions/$ID" in command:
                kind = "sandboxes" if "/v1/sandboxes/" in command else "sessions"
                daemon.request("DELETE", f"/v1/{kind}/{ids['ID']}")
    assert len(page) > 40


def test_what_cannot_be_run_is_a_short_list():
    assert sum(NOT_RUN.values()) <= 10
