# SPDX-License-Identifier: MIT
"""Generators of plain function calls, streamed: one event per item, then the result."""
import os
import tempfile

import pytest
from koyeb import Events
from test_wasm import needs_runtimes

PY, JS = "python", "javascript"
CODE = {
    (PY, "sync"): """
def f(n):
    for i in range(n):
        yield {"i": i, "text": "zwölf\\n\\u2028"}
    return "end"
""",
    (PY, "async"): """
import asyncio
async def f(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield {"i": i, "text": "zwölf\\n\\u2028"}
""",
    (JS, "sync"): """
function* f(n) {
    for (let i = 0; i < n; i++) yield { i, text: 'zwölf\\n\\u2028' };
    return 'end';
}
""",
    (JS, "async"): """
async function* f(n) {
    for (let i = 0; i < n; i++) {
        await new Promise((r) => setTimeout(r, 0));
        yield { i, text: 'zwölf\\n\\u2028' };
    }
}
""",
}


def stream(daemon, language, code, *args, **fields):
    body = {"language": language, "code": code, "functionName": "f", "args": list(args), **fields}
    return Events(daemon, "POST", "/v1/functions/call", body, {"Accept": "text/event-stream"})


@pytest.mark.parametrize("engine", ["native", pytest.param("wasm", marks=needs_runtimes)])
@pytest.mark.parametrize("language, kind", list(CODE))
def test_each_item_is_an_event(daemon, language, kind, engine, request):
    if engine == "wasm":
        daemon = request.getfixturevalue("wasm_daemon")
    events = list(stream(daemon, language, CODE[language, kind], 5, engine=engine))
    items = [{"i": i, "text": "zwölf\n\u2028"} for i in range(5)]
    assert [(event, data, number) for event, data, number in events[:-1]] == [
        ("item", item, str(i)) for i, item in enumerate(items)]
    event, last, _ = events[-1]
    assert event == "result" and last["status"] == "success" and last["items"] == 5
    assert last["result"] == ("end" if kind == "sync" else None)


@pytest.mark.parametrize("language, kind", list(CODE))
def test_without_the_header_items_are_a_list(daemon, language, kind):
    got = daemon.request("POST", "/v1/functions/call", json={
        "language": language, "code": CODE[language, kind], "functionName": "f", "args": [3]}).json()
    assert [item["i"] for item in got["result"]] == [0, 1, 2] and "items" not in got


@pytest.mark.parametrize("mode", ["inline", "stdin", "file"])
def test_in_all_modes(daemon, mode):
    events = list(stream(daemon, PY, CODE[PY, "sync"], 2, argsMode=mode))
    assert [event for event, _, _ in events] == ["item", "item", "result"]


@pytest.mark.parametrize("language, code", [
    (PY, "def f():\n    yield 1\n    raise ValueError('no more')"),
    (JS, "function* f() { yield 1; throw new RangeError('no more') }")])
def test_an_error_ends_it(daemon, language, code):
    (first, value, _), (event, last, _) = list(stream(daemon, language, code))
    assert (first, value) == ("item", 1)
    assert event == "result" and last["status"] == "error" and last["error"]["message"] == "no more"
    assert last["items"] == 1


@pytest.mark.parametrize("language, code, value", [
    (PY, "def f():\n    return [1]", [1]), (JS, "function f() { return [1] }", [1]),
    ("ruby", "def f = [1]", [1]), ("php", "<?php function f() { return [1]; }", [1])])
def test_what_is_no_generator_gives_one_result(daemon, language, code, value):
    [(event, last, _)] = list(stream(daemon, language, code))
    assert event == "result" and last["result"] == value and last["items"] == 0


def test_items_come_while_it_runs(daemon):
    """The first one is there long before the last; a call that never ends is left."""
    events = stream(daemon, PY, "import time\ndef f():\n    yield 1\n    time.sleep(600)\n    yield 2", timeout=300)
    event, value, _ = next(iter(events))
    assert (event, value) == ("item", 1)
    events.close()
    daemon.wait_record(event_type="call_done", status="terminated")


def test_a_slow_reader_slows_the_generator(daemon):
    code = """
import os
def f():
    for i in range(4000):
        yield "x" * 10000
        print(i, flush=True)
"""
    events = stream(daemon, PY, code, timeout=60)
    seen = iter(events)
    assert next(seen)[0] == "item"
    rest = list(seen)
    assert len(rest) == 4000 and rest[-1][0] == "result" and rest[-1][1]["items"] == 4000


def test_forged_items_are_only_ones_own(daemon):
    code = r"""
import os
def f():
    yield 1
    for bad in (b"{", b"\xff", b"1\n\nevent: result\ndata: 2"):
        os.write(3, b"I%08x" % len(bad) + bad)
    yield 2
"""
    events = list(stream(daemon, PY, code))
    assert [(event, data) for event, data, _ in events[:-1]] == [("item", 1), ("item", 2)]
    assert events[-1][0] == "result" and events[-1][1]["items"] == 2


def test_an_item_that_is_too_large(daemon):
    events = list(stream(daemon, PY, "def f():\n    yield 1\n    yield 'x' * (5 << 20)\n"))
    assert events[0][:2] == ("item", 1)
    assert events[-1][1]["status"] == "error" and "item has" in events[-1][1]["error"]["message"]


def test_sync_events_follow_the_items(make_daemon):
    path = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(path, 0o777)
    daemon = make_daemon(MOUNT_ROOTS=path)
    code = "def f():\n    yield 1\n    open('/data/a', 'w').write('x')\n    yield 2\n"
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True}}, "sync": {"mode": "batch"}}
    events = list(stream(daemon, PY, code, options={"mount": mount}))
    assert [event for event, _, _ in events] == ["item", "item", "beforeSync", "afterSync", "result"]
    assert events[-1][1]["sync"]["synced"] == ["/data/a"]
