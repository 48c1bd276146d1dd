# SPDX-License-Identifier: MIT
"""The Python client against a real daemon: both ways of waiting, streams, errors, its README, its package."""
import ast
import asyncio
import inspect
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

import pytest

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]
CLIENT = TOP / "clients" / "python"
sys.path.insert(0, str(CLIENT))
import sandbox_executor as sbx  # noqa: E402 it is in the tree, not installed


@pytest.fixture(scope="module")
def client(daemon):
    with sbx.Client(f"http://127.0.0.1:{daemon.port}", daemon.secret, timeout=harness.HTTP_TIMEOUT) as made:
        yield made


@pytest.fixture(scope="module")
def sandbox(client):
    with sbx.Sandbox(client=client) as made:
        yield made


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)


def environment(daemon):
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "SANDBOX_URL": f"http://127.0.0.1:{daemon.port}",
            "SANDBOX_SECRET": daemon.secret, "PYTHONPATH": str(CLIENT), "PYTHONDONTWRITEBYTECODE": "1"}


# ---- what it promises in prose ----


@pytest.mark.parametrize("number", range(len(blocks(CLIENT / "README.md"))))
def test_an_example_of_the_readme_does_what_it_shows(daemon, number):
    ran = subprocess.run([sys.executable, "-W", "error", "-c", blocks(CLIENT / "README.md")[number]], env=environment(daemon),
                         capture_output=True, text=True, timeout=2 * harness.HTTP_TIMEOUT, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


# ---- what is made ----


def test_what_is_made_is_what_would_be_made(daemon, tmp_path):
    document = tmp_path / "openapi.json"
    document.write_text(daemon.request("GET", "/openapi.json").text)
    checked = subprocess.run([sys.executable, TOP / "tools" / "make-clients", "--check", document], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("method, schema", [
    (sbx.Client.execute, "ExecuteRequest"), (sbx.Client.call, "FunctionCall"), (sbx.Client.session, "SessionCreate"),
    (sbx.Session.result, "SessionCall"), (sbx.Sandbox.__init__, "SandboxCreate"), (sbx.Sandbox.run, "Command"),
    (sbx.Sandbox.run_code, "Cell"), (sbx.Sandbox.create_context, "ContextCreate"), (sbx.Client.install, "PackageSetCreate"),
    (sbx.Sandbox(client=sbx.Client("http://x", "")).processes.start, "ProcessStart"),
])
def test_every_member_of_a_request_can_be_said(daemon, method, schema):
    wanted = daemon.request("GET", "/openapi.json").json()["components"]["schemas"][schema]["properties"]
    said = {name.replace("_", "").lower() for name in inspect.signature(method).parameters}
    said |= {"functionname"} if "function" in said else set()
    missing = [name for name in wanted if name.replace("_", "").lower() not in said]
    assert not missing


def test_both_clients_have_the_same_methods():
    for waiting, other in ((sbx.Client, sbx.AsyncClient), (sbx.Sandbox, sbx.AsyncSandbox), (sbx.Process, sbx.AsyncProcess)):
        def names(kind):
            return {n for n in dir(kind) if not n.startswith("_")} - {"close", "aclose"}
        assert names(waiting) == names(other)


@pytest.mark.parametrize("path", sorted(p.name for p in (CLIENT / "sandbox_executor").glob("*.py")))
def test_it_is_python_3_9(path):
    ast.parse((CLIENT / "sandbox_executor" / path).read_text(), feature_version=(3, 9))


# ---- streams and files ----


def test_output_comes_while_the_program_runs_and_leaving_ends_it(client):
    mark = harness.marker()
    with client.execute_stream("shell", f"echo first; exec -a {mark} sleep 600") as events:
        assert next(events).data.data == "first\n"
        harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    harness.wait_until(lambda: not harness.processes_with(mark), "it has ended")


def test_a_submitted_execution_is_watched_and_cancelled(client):
    ident = client.submit("shell", "echo begun; sleep 600")
    with client.watch_execution(ident) as events:
        assert next(events).data.data == "begun\n"
        client.cancel(ident)
        assert [e for e in events][-1].data.termination.reason == "cancelled"
    assert any(row["execution_id"] == ident for row in client.executions(limit=1000)["executions"])


def test_files_go_both_ways_in_pieces(sandbox):
    pieces = [bytes([i]) * 100_000 for i in range(20)]
    assert sandbox.files.write("pieces/all.bin", iter(pieces)).size == 2_000_000
    assert b"".join(sandbox.files.open("pieces/all.bin").chunks()) == b"".join(pieces)
    assert [e.name for e in sandbox.files.list("pieces")] == ["all.bin"]
    sandbox.files.copy("pieces/all.bin", "pieces/copy.bin")
    archive = sandbox.files.read_tar("/workspace/pieces").read()
    assert sandbox.files.write_tar("/workspace/again", archive).entries >= 2
    assert sandbox.files.stat("again/copy.bin").size == 2_000_000
    sandbox.files.remove("pieces", recursive=True)
    assert not sandbox.files.exists("pieces")


def test_what_happens_in_a_directory_is_told(sandbox):
    with sandbox.files.watch(".") as events:
        assert next(events).name == "ready"
        sandbox.files.write("watched.txt", "x")
        assert next(events).data.name == "watched.txt"


def test_a_cell_streams_and_keeps_its_state(sandbox):
    names = [e.name for e in sandbox.run_code_stream("y = 1\nprint('seen')\ny")]
    assert names[0] == "started" and names[-1] == "end" and "stdout" in names and "display" in names
    assert sandbox.run_code("y + 1").results[0].data["text/plain"] == "2"
    failed = sandbox.run_code("1 / 0")
    assert failed.status == "error" and failed.error.name == "ZeroDivisionError"


def test_a_terminal_is_typed_into(sandbox):
    with sandbox.terminal("exec env PS1='> ' bash --norc --noprofile -i", columns=77, rows=11) as terminal:
        terminal.send("stty size; exit 3\r")
        shown = b"".join(terminal)
    assert b"11 77" in shown and terminal.process["exit_code"] == 3


def test_what_a_sandbox_may_reach_is_told_and_replaced(sandbox):
    assert sandbox.network().mode == "none"
    assert sandbox.set_network({"mode": "none"}).mode == "none"


# ---- errors and retries ----


def test_errors_are_classes_with_a_hint(client, daemon):
    with pytest.raises(sbx.NotFound) as caught:
        client.execution("no-such")
    assert caught.value.status == 404 and caught.value.request_id
    with pytest.raises(sbx.InvalidRequest) as caught:
        client.execute("python", "1", mode="nonsense")
    assert "mode" in str(caught.value) and caught.value.code == "Executor.ValidationError"
    with pytest.raises(sbx.Unauthorized):
        sbx.Client(client.url, "wrong").capabilities()
    with pytest.raises(sbx.ConnectionFailed) as caught:
        sbx.Client("http://127.0.0.1:9", "").health()
    assert "SANDBOX_URL" in caught.value.hint


class Scripted(threading.Thread):
    """A server that gives one connection after the other one answer each, and keeps what it was asked."""

    def __init__(self, *answers):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url, self.answers, self.asked = f"http://127.0.0.1:{self.listener.getsockname()[1]}", answers, []
        self.start()

    def run(self):
        for answer in self.answers:
            connection, _ = self.listener.accept()
            with connection:
                self.asked.append(connection.recv(1 << 16))
                connection.sendall(answer)
        self.listener.close()


BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0.01\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"status\":\"ok\"}"


def test_what_was_refused_before_it_began_is_asked_again():
    server = Scripted(BUSY, BUSY, GOOD)
    assert sbx.Client(server.url, "").execute("python", "1").status == "ok"
    assert len(server.asked) == 3 and len(set(server.asked)) == 1


def test_what_may_have_begun_is_not_sent_twice():
    server = Scripted(b"", GOOD)
    with pytest.raises(sbx.ConnectionFailed):
        sbx.Client(server.url, "").execute("python", "1")
    assert len(server.asked) == 1


def test_what_only_reads_is_asked_once_more():
    server = Scripted(b"", GOOD)
    assert sbx.Client(server.url, "").health().status == "ok"


def test_the_other_client_does_the_same(daemon):
    async def all_of_it():
        async with sbx.AsyncClient(f"http://127.0.0.1:{daemon.port}", daemon.secret) as client:
            results = await asyncio.gather(*(client.execute("shell", f"echo {i}") for i in range(8)))
            assert [r.stdout for r in results] == [f"{i}\n" for i in range(8)]
            async with await client.execute_stream("shell", "echo first; sleep 600") as events:
                async for event in events:
                    assert event.data.data == "first\n"
                    break
            with pytest.raises(sbx.NotFound):
                await client.execution("no-such")
            async with sbx.AsyncSandbox(client=client) as sandbox:
                process = await sandbox.processes.start("echo out; echo err >&2")
                assert {p async for p in process.output()} == {("stdout", b"out\n"), ("stderr", b"err\n")}
                async with await sandbox.terminal("echo shown") as terminal:
                    assert b"shown" in b"".join([data async for data in terminal])

                async def parts():
                    yield b"a"
                    yield b"b"
                await sandbox.files.write("ab", parts())
                assert await sandbox.files.read_text("ab") == "ab"
    asyncio.run(all_of_it())


# ---- the package ----


def test_it_can_be_installed_without_network(tmp_path):
    source = tmp_path / "source"
    subprocess.run(["cp", "-r", CLIENT, source], check=True)
    done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--quiet",
                           "--root-user-action=ignore", "--target", tmp_path / "into", source],
                          env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    harness.need("No module named pip" not in done.stderr and "setuptools" not in done.stderr, "pip and setuptools")
    assert done.returncode == 0, done.stderr
    said = subprocess.run(["/usr/bin/python3", "-c", "import sandbox_executor as s; print(s.__version__, s.__file__)"], cwd="/",
                          env={"PYTHONPATH": str(tmp_path / "into")}, capture_output=True, text=True, check=True)
    assert said.stdout.startswith((TOP / "VERSION").read_text().strip() if (TOP / "VERSION").exists() else "0.1.0")
    assert str(tmp_path / "into") in said.stdout and (tmp_path / "into/sandbox_executor/py.typed").exists()
