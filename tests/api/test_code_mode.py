# SPDX-License-Identifier: MIT
"""Code in a sandbox that calls published tools: run_code with allow_tools, the module `sbx`, budgets, journals, and
programs that ask for what they must not have."""
import importlib.util
import json

import pytest

import harness
from mcp_client import MODERN, Client, events_of, text_of

pytestmark = [
    pytest.mark.skipif(not (harness.BUILD / "sandbox-inspect").exists(), reason="built without grammars (tools/fetch-grammars)"),
    pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed"),
]

TOOLS = '''
import time
def square(n: int) -> int:
    "The square of a number."
    return n * n
def fail(words: str):
    "Fails."
    raise ValueError(words)
def slow(seconds: float, result: str = "slept"):
    "Sleeps."
    time.sleep(seconds)
    return result
def large(n: int) -> str:
    "A long text."
    return "x" * n
def size(text: str) -> int:
    "How long it is."
    return len(text)
'''
ALL = ["square", "fail", "slow", "large", "size"]


@pytest.fixture(scope="module")
def daemon(make_daemon_module):
    daemon = make_daemon_module(MCP_CALLS_MAX="1000")
    got = daemon.request("PUT", "/v1/tools/tools", json={"language": "python", "code": TOOLS})
    assert got.status == 201, got
    return daemon


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    yield made
    assert daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": made.session}).status == 204


def run(client, code, allow=("*",), **more):
    return client.call("run_code", code=code, allow_tools=list(allow), **more)


def value(client, code, allow=("*",), **more):
    got = run(client, code, allow, **more)
    assert not got["isError"], text_of(got)
    return got["structuredContent"].get("result")


def journal(daemon, result):
    run_id = result["_meta"]["io.sandbox-executor/run"]
    got = daemon.request("GET", f"/v1/executions/{run_id}/tool_calls")
    assert got.status == 200, got
    assert got.json()["execution_id"] == run_id
    return got.json()["tool_calls"]


# ---- what a program writes ----


def test_python_calls_tools(client):
    assert value(client, "from sbx import tools\n[tools.square(n=n) for n in range(5)]") == [0, 1, 4, 9, 16]
    assert value(client, "tools.call('square', {'n': 7})") == 49, "the name is still there"
    assert value(client, "tools.gather(tools.later.square(n=2), tools.later.size(text='abc'))") == [4, 3]
    assert value(client, "await tools.aio.square(n=3)") == 9
    assert value(client, "import asyncio\nawait asyncio.gather(*(tools.aio.square(n=n) for n in range(20)))") == [n * n for n in range(20)]
    assert value(client, "asyncio.run(tools.aio.square(n=4))") == 16


def test_javascript_calls_tools(client):
    def js(code, **more):
        return value(client, code, language="javascript", **more)
    assert js("const { tools } = require('sbx'); await tools.square({ n: 6 })") == 36
    assert js("await Promise.all([1, 2, 3].map((n) => tools.square({ n })))") == [1, 4, 9]
    assert js("await tools.call('size', { text: 'abcd' })") == 4
    assert js("import { tools as again } from 'sbx'; await again.square({ n: 2 })") == 4
    assert js("let said; try { await tools.fail({ words: 'no' }) } catch (e) { said = [e.name, e.type, e.message] } said") \
        == ["ToolError", "ValueError", "ValueError: no"]


def test_tools_are_found(client):
    found = value(client, "from sbx import tools\ntools.search('number square')", allow=["square", "size"])
    assert found == [{"name": "square", "description": "The square of a number. (user-defined, bundle tools)", "signature": "square(n: integer)"}]
    assert [tool["name"] for tool in value(client, "tools.search()", allow=["s*"])] == ["size", "slow", "square"]
    assert [tool["name"] for tool in value(client, "await require('sbx').tools.search('long')", language="javascript")] == ["large", "size"]


def test_failures_are_exceptions(client):
    assert value(client, '''
from sbx import tools, ToolError
said = []
for call in (lambda: tools.fail(words="no"), lambda: tools.square(n="x"), lambda: tools.square(m=1), lambda: tools.nothing()):
    try:
        call()
    except ToolError as e:
        said.append([e.type, e.message])
said[0], said[1][0], "integer" in said[1][1], "there is no argument" in said[2][1], said[3][0]
''', allow=ALL) == '(["ValueError", "no"], "TypeError", True, True, "NotAllowed")'.replace('"', "'")


def test_threads_call_tools(client):
    assert value(client, '''
from concurrent.futures import ThreadPoolExecutor
from sbx import tools
with ThreadPoolExecutor(16) as pool:
    got = list(pool.map(lambda n: tools.square(n=n), range(48)))
got == [n * n for n in range(48)]
''') is True


# ---- what is allowed ----


def test_nothing_is_allowed_by_default(client):
    for language, code in (("python", "from sbx import tools, ToolError\ntry: tools.square(n=1)\nexcept ToolError as e: said = e.type\nsaid"),
                           ("javascript", "let t; try { await require('sbx').tools.square({n: 1}) } catch (e) { t = e.type } t")):
        got = client.call("run_code", code=code, language=language)
        assert "NotAllowed" in text_of(got), got
        assert "tool_calls" not in got["structuredContent"]


def test_only_what_is_named_is_allowed(daemon, client):
    got = run(client, '''
from sbx import tools, ToolError
said = []
for name in ("square", "size", "run_code", "define_tools", "squares", "", "s*", "../square", "square\\0"):
    try:
        said.append(tools.call(name, {"n": 2}))
    except ToolError as e:
        said.append(e.type)
said
''', allow=["square", "sl*"])
    assert got["structuredContent"]["result"] == [4] + ["NotAllowed"] * 8
    assert [row["tool"] for row in journal(daemon, got)] == ["square"], "what is refused is no call"


@pytest.mark.parametrize("allow, words", [
    (["nothing"], "there is no tool 'nothing'"), (["run_code"], "there is no tool 'run_code'"),
    (["a*b"], "neither a name"), ([""], "neither a name"), (["square", "x"], "there is no tool 'x'"),
])
def test_the_list_is_checked_before_the_run(client, allow, words):
    got = run(client, "print('ran')", allow=allow)
    assert got["isError"] and words in text_of(got) and "[hint]" in text_of(got) and "ran" not in text_of(got)


def test_the_shell_calls_no_tools(client):
    got = client.call("run_code", code="true", language="shell", allow_tools=["square"])
    assert got["isError"] and "shell" in text_of(got)


def test_a_cell_over_rest_calls_none(daemon):
    """Cells that run without a list of tools have no tools."""
    made = daemon.request("POST", "/v1/sandboxes", json={}).json()
    got = daemon.request("POST", f"/v1/sandboxes/{made['id']}/cells", json={
        "code": "from sbx import tools, ToolError\ntry: tools.square(n=1)\nexcept ToolError as e: print(e.type)"}).json()
    assert got["status"] == "ok" and got["stdout"] == "NotAllowed\n", got
    assert daemon.request("DELETE", f"/v1/sandboxes/{made['id']}").status == 204


# ---- budget and journal ----


def test_a_thousand_calls_at_eight_at_once(daemon, client):
    """None is lost, budget and journal are exact."""
    got = run(client, '''
from sbx import tools, ToolError
got = tools.gather(*(tools.later.square(n=n) for n in range(1000)))
try:
    over = tools.square(n=1)
except ToolError as e:
    over = [e.type, e.message]
[got == [n * n for n in range(1000)], over]
''', allow=["square"], timeout_seconds=300)
    assert got["structuredContent"]["result"] == [True, ["Budget", "budget of 1000 calls exceeded (MCP_CALLS_MAX)"]], text_of(got)
    shown = got["structuredContent"]["tool_calls"]
    assert len(shown) == 50 and set(shown[0]) == {"tool", "ms", "ok", "bytes_in", "bytes_out"}
    rows = journal(daemon, got)
    assert len(rows) == 1000 and all(row["ok"] and row["tool"] == "square" for row in rows)
    assert sorted(row["arguments"]["n"] for row in rows) == list(range(1000))
    for row in rows:
        n = row["arguments"]["n"]
        assert row["answer"] == {"ok": True, "value": n * n}
        assert row["bytes_out"] == len(str(n * n)) and row["bytes_in"] == len(json.dumps(row["arguments"], separators=(",", ":")))


def test_a_budget_of_calls(make_daemon):
    daemon = make_daemon(MCP_CALLS_MAX="3")
    assert daemon.request("PUT", "/v1/tools/tools", json={"language": "python", "code": TOOLS}).status == 201
    client = Client(daemon)
    got = run(client, '''
from sbx import tools, ToolError
said = []
for n in range(6):
    try: said.append(tools.square(n=n))
    except ToolError as e: said.append(e.type)
said
''')
    assert got["structuredContent"]["result"] == [0, 1, 4, "Budget", "Budget", "Budget"]
    assert len(journal(daemon, got)) == 3
    assert value(client, "tools.square(n=5)") == 25, "each run has its own"


def test_a_budget_of_bytes(daemon, client):
    got = run(client, '''
from sbx import tools, ToolError
said = []
def attempt(call):
    try: said.append(call())
    except ToolError as e: said.append(e.type)
attempt(lambda: tools.size(text="x" * (1 << 20)))
attempt(lambda: len(tools.large(n=(1 << 20) + 1)))
attempt(lambda: tools.size(text="y" * 1000))
for _ in range(20):
    attempt(lambda: len(tools.large(n=1000000)))
said
''', timeout_seconds=120)
    said = got["structuredContent"]["result"]
    assert said[:3] == ["Budget", "Budget", 1000]
    fits = (16 << 20) // 1000002
    assert said[3:] == [1000000] * (fits + 1) + ["Budget"] * (20 - fits - 1) or said[3:] == [1000000] * fits + ["Budget"] * (20 - fits)


def test_an_id_without_a_journal(daemon, client):
    got = client.call("run_code", code="1")
    assert daemon.request("GET", f"/v1/executions/{got['_meta']['io.sandbox-executor/run']}/tool_calls").status == 404


# ---- time ----


def test_a_run_that_ends_takes_its_calls_along(daemon, client):
    got = run(client, "from sbx import tools\ntools.slow(seconds=600)", timeout_seconds=2)
    assert got["structuredContent"]["status"] == "timeout"
    row, = got["structuredContent"]["tool_calls"]
    assert row["tool"] == "slow" and row["ok"] is False
    assert value(client, "['kept' if tools else None]") == ["kept"], "variables are kept"
    assert value(client, "tools.square(n=3)") == 9


def test_a_call_that_is_given_up_ends(daemon, client):
    """A coroutine that is cancelled gives its call up: the slow one is no longer among those under way."""
    assert value(client, '''
import asyncio
from sbx import tools, ToolError
async def brief():
    task = asyncio.ensure_future(tools.aio.slow(seconds=600))
    await asyncio.sleep(0.2)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
[await brief() for _ in range(20)]
''', timeout_seconds=120) == ["cancelled"] * 20


def test_threads_that_outlive_their_cell_do_no_harm(client):
    assert value(client, '''
import threading
from sbx import tools, ToolError
said = []
def late():
    try: said.append(tools.slow(seconds=600))
    except ToolError as e: said.append(e.type)
thread = threading.Thread(target=late); thread.start()
import time; time.sleep(0.3)
["begun"]
''') == ["begun"]
    assert value(client, "thread.join(60); said") == ["NotAllowed"]
    assert value(client, "tools.square(n=2)") == 4


def test_progress_of_a_program(daemon):
    client = Client(daemon)
    answer = client.post("tools/call", {"name": "run_code", "_meta": {"progressToken": "p"}, "arguments": {
        "code": "from sbx import progress\nfor i in range(3): progress(i + 1, 3, f'step {i}')\nprogress(1, 3, 'back')\n'done'"}})
    told = [event["params"] for event in events_of(answer.text) if event.get("method") == "notifications/progress"]
    assert [(one["message"], one["progress"] - told[0]["progress"], one["total"] - told[0]["progress"]) for one in told] == [
        ("step 0", 0, 2), ("step 1", 1, 2), ("step 2", 2, 2)]
    assert "done" in text_of(events_of(answer.text)[-1]["result"])


# ---- hostile programs ----

FRAMES = '''
import json, os, sys
channel = sys.modules["sbx"].tools._caller.channel
def send(kind, text): os.write(3, b"%c%08x" % (ord(kind), len(text)) + text)
def event(**fields): send("I", json.dumps({"id": channel.cell, **fields}).encode())
'''


@pytest.mark.parametrize("attack", [
    'event(type="call", tool="square", arguments={})',
    'event(type="call", call="1", tool="square")',
    'event(type="call", call=1.5, tool="square")',
    'event(type="call", call={}, tool="square")',
    'os.write(3, b"I0000000")',
    'os.write(3, b"Iffffffff")',
    'os.write(3, b"Zzzzzzzzzz")',
    'send("A", b"{}")',
    'send("I", b"[1")',
])
def test_forged_frames_harm_nobody_else(client, attack):
    """The interpreter is ended, or the frame is nobody's; the sandbox and the daemon go on."""
    run(client, FRAMES + attack + "\n'through'", timeout_seconds=5)
    assert value(client, "from sbx import tools\ntools.square(n=2)") == 4


@pytest.mark.parametrize("fields, kind", [
    ('tool="square", arguments={"n": 2}', "ok"),
    ('tool=["square"], arguments={}', "NotAllowed"),
    ('tool="slow", arguments={}', "NotAllowed"),
    ('tool="square", arguments=[1]', "TypeError"),
    ('tool="square", arguments=7', "TypeError"),
    ('arguments={}', "NotAllowed"),
    ('tool="x" * 100000, arguments={}', "NotAllowed"),
    ('tool="square", arguments={"n": 2}, id="0000000000000000"', "silence"),
])
def test_frames_by_hand(client, fields, kind):
    """A program may write frames itself: it gets no more than the module gives it."""
    got = run(client, FRAMES + f'''
import select
fields = dict(type="call", call=77, {fields})
token = fields.pop("id", channel.cell)
send("I", json.dumps({{"id": token, **fields}}).encode())
if select.select([3], [], [], 2 if token != channel.cell else 60)[0]:
    frame = os.read(3, 65536)
    while len(frame) < 9 or len(frame) < 9 + int(frame[1:9], 16):
        frame += os.read(3, 65536)
    answer = json.loads(frame[9:])
    assert answer["call"] == 77
    said = "ok" if answer["ok"] else answer["error"]["type"]
else:
    said = "silence"
said
''', allow=["square"])
    assert kind in text_of(got), text_of(got)


def test_a_program_that_floods_waits(daemon, client):
    """More calls than may be under way, without reading: the daemon holds the program, and answers all of them."""
    got = run(client, FRAMES + '''
for number in range(300):
    event(type="call", call=number, tool="square", arguments={"n": number})
answers, received = set(), b""
while len(answers) < 300:
    received += os.read(3, 65536)
    while len(received) >= 9 and len(received) >= 9 + int(received[1:9], 16):
        end = 9 + int(received[1:9], 16)
        answer = json.loads(received[9:end]); received = received[end:]
        assert answer["value"] == answer["call"] ** 2
        answers.add(answer["call"])
len(answers)
''', timeout_seconds=120)
    assert got["structuredContent"]["result"] == 300, text_of(got)
    assert len(journal(daemon, got)) == 300


def test_a_program_that_reads_nothing_ends_with_its_time(client):
    got = run(client, FRAMES + '''
for number in range(900):
    event(type="call", call=number, tool="large", arguments={"n": 15000})
import time; time.sleep(600)
''', timeout_seconds=5)
    assert got["structuredContent"]["status"] == "timeout", text_of(got)
    assert value(client, "from sbx import tools\ntools.square(n=2)") == 4


def test_one_session_does_not_see_the_calls_of_another(daemon, client):
    """An answer goes to the run that asked: the same numbers, at the same time, in two sandboxes."""
    import threading
    other, got = Client(daemon), {}
    code = "from sbx import tools\n[tools.slow(seconds=0.05, result=f'{who}-{i}') for i in range(20)]"
    threads = [threading.Thread(target=lambda c=c, who=who: got.update({who: value(c, f"who = '{who}'\n" + code, timeout_seconds=120)}))
               for c, who in ((client, "a"), (other, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {who: [f"{who}-{i}" for i in range(20)] for who in "ab"}


def test_children_do_not_have_the_channel(client):
    assert value(client, '''
import subprocess
int(subprocess.run(["/bin/sh", "-c", "ls -l /proc/self/fd | grep -c socket"], capture_output=True, text=True).stdout)
''') == 0
