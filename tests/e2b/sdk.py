# SPDX-License-Identifier: MIT
"""E2B's Python SDK, sync and async, drives the daemon; tests/api/test_e2b_sdk.py runs it. One line of JSON per check, as
the programs of the JavaScript SDK beside this file tell them."""
import asyncio
import contextlib
import json
import time
import traceback

from e2b_code_interpreter import AsyncSandbox, Sandbox
import e2b

METADATA = {"a": "1", "b": "x y/ü&=+%"}
CHECKS = []


def check(fn):
    CHECKS.append(fn)
    return fn


@contextlib.contextmanager
def sandbox(**options):
    made = Sandbox.create(**options)
    try:
        yield made
    finally:
        made.kill()


def fails(kind, fn):
    try:
        fn()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def until(condition):
    end = time.monotonic() + 30
    while not (value := condition()):
        assert time.monotonic() < end, "never happened"
        time.sleep(0.05)
    return value


@check
def control_plane():
    with sandbox(metadata=METADATA, timeout=100, envs={"FOO": "bar"}) as made:
        assert made.is_running()
        info = made.get_info()
        assert info.metadata == METADATA and round((info.end_at - info.started_at).total_seconds()) == 100
        made.set_timeout(500)
        page = Sandbox.list(query=e2b.SandboxQuery(metadata=METADATA))
        assert [one.sandbox_id for one in page.next_items()] == [made.sandbox_id] and not page.has_next
        assert Sandbox.connect(made.sandbox_id).commands.run("echo $FOO").stdout == "bar\n"
        made.get_metrics()
        assert made.get_host(80).startswith(f"80-{made.sandbox_id}.")
    assert not made.is_running() and Sandbox.kill(made.sandbox_id) is False


@check
def commands():
    with sandbox() as made:
        got = made.commands.run("echo out; echo err >&2; pwd")
        assert (got.stdout, got.stderr, got.exit_code) == ("out\n/home/user\n", "err\n", 0)
        error = fails(e2b.CommandExitException, lambda: made.commands.run("exit 7"))
        assert error.exit_code == 7
        fails(e2b.TimeoutException, lambda: made.commands.run("sleep 1021", timeout=1))
        handle = made.commands.run("read a; echo got $a", background=True, stdin=True, timeout=0)
        assert [one.pid for one in made.commands.list()] == [handle.pid]
        made.commands.send_stdin(handle.pid, "one\n")
        assert handle.wait().stdout == "got one\n"
        assert made.commands.kill(99999) is False


@check
def terminals():
    with sandbox() as made:
        said = []
        handle = made.pty.create(e2b.PtySize(rows=31, cols=101), timeout=0)
        made.pty.send_stdin(handle.pid, b"stty size; exit 3\r")
        error = fails(e2b.CommandExitException, lambda: handle.wait(on_pty=said.append))
        assert error.exit_code == 3 and b"31 101" in b"".join(said)


@check
def files():
    with sandbox() as made:
        made.files.write("d/ü.txt", "text")
        assert made.files.read("d/ü.txt") == "text" and bytes(made.files.read("d/ü.txt", format="bytes")) == b"text"
        fails(e2b.NotFoundException, lambda: made.files.read("nothing"))
        assert [one.name for one in made.files.list("d")] == ["ü.txt"]
        assert made.files.make_dir("e") is True and made.files.make_dir("e") is False
        made.files.rename("d/ü.txt", "e/other")
        assert made.files.exists("e/other") and made.files.get_info("e/other").size == 4
        made.files.remove("e")
        assert not made.files.exists("e")


@check
def watches_that_are_asked():
    with sandbox() as made:
        made.files.make_dir("w")
        watch = made.files.watch_dir("w", recursive=True)
        made.files.write("w/sub/new.txt", "x")
        seen = []
        until(lambda: seen.extend(watch.get_new_events()) or any(one.name == "sub/new.txt" for one in seen))
        watch.stop()
        fails(e2b.SandboxException, watch.get_new_events)


@check
def cells():
    with sandbox() as made:
        made.run_code("x = 1")
        assert made.run_code("x += 1; x").text == "2"
        out = []
        execution = made.run_code("print('hi')\n1 / 0", on_stdout=out.append)
        assert [one.line for one in out] == ["hi\n"] and execution.logs.stdout == ["hi\n"]
        assert execution.error.name == "ZeroDivisionError"
        context = made.create_code_context(language="javascript", cwd="/tmp")
        assert made.run_code("process.cwd()", context=context).text == "'/tmp'" or made.run_code("process.cwd()", context=context).text == "/tmp"
        fails(e2b.TimeoutException, lambda: made.run_code("while True: pass", timeout=1))
        assert made.run_code("x").text == "2"


@check
def asynchronous():
    async def all_of_it():
        made = await AsyncSandbox.create()
        try:
            assert (await made.run_code("1 + 1")).text == "2"
            got = await asyncio.gather(*(made.commands.run(f"echo {i}") for i in range(10)))
            assert [one.stdout for one in got] == [f"{i}\n" for i in range(10)]
            events = []
            watch = await made.files.watch_dir("/home/user", on_event=events.append)
            await made.files.write("a", "b")
            for _ in range(600):
                if any(one.name == "a" for one in events):
                    break
                await asyncio.sleep(0.05)
            assert any(one.name == "a" for one in events)
            await watch.stop()
        finally:
            await made.kill()
    asyncio.run(all_of_it())


def main():
    for fn in CHECKS:
        told = {"name": "python: " + fn.__name__, "ok": True}
        try:
            fn()
        except Exception:  # whatever it is, it is told
            told = {**told, "ok": False, "error": traceback.format_exc()}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
