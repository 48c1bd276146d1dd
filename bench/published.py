# SPDX-License-Identifier: MIT
"""Tools: publishing functions, calling one against calling the same function directly, and calls from code."""
import statistics
import time

import harness
from mcp_client import MODERN, Client

PUBLISH_MAX_MS, CALL_MAX, CALLS = 50.0, 1.2, 1000
FUNCTION = '''def tool_{i}(width: int, height: int = {i}, unit: str = "m", *more: float, **rest) -> dict:
    """Does thing {i}.

    Args:
        width: how wide it is
        height: how high it is
        unit: m or cm
        more: what is added
    """
    total = width * height
    for one in more:
        total += one
    for name, one in rest.items():
        if isinstance(one, (int, float)):
            total += one
    if unit == "cm":
        total /= 100
    return {{"total": total, "unit": unit}}


'''
TEXT = "".join(FUNCTION.format(i=i) for i in range(10))  # 200 lines
SQUARE = 'def square(n: int) -> int:\n    "The square of a number."\n    return n * n\n'
CODE = f"""
from sbx import tools
got = tools.gather(*(tools.later.square(n=n) for n in range({CALLS})))
[got == [n * n for n in range({CALLS})]]
"""


def timed(action):
    begin = time.monotonic()
    done = action()
    return (time.monotonic() - begin) * 1000, done


def publish_ms(client, salt):
    """From the request until the tools are in the list."""
    def publish():
        made = client.daemon.request("PUT", f"/v1/tools/bundle{salt % 4}", json={"language": "python", "code": TEXT + f"# {salt}\n", "prefix": f"b{salt % 4}_"})
        assert made.status in (200, 201), made
        names = {tool["name"] for tool in client.ask("tools/list")["tools"]}
        assert {f"b{salt % 4}_tool_{i}" for i in range(10)} <= names
    return timed(publish)[0]


def request_ms(connection, path, body):
    def ask():
        answer = connection.request("POST", path, json=body)
        assert answer.status == 200 and answer.json()["result"] == 49, answer
    return timed(ask)[0]


def measure(options):
    if not (harness.BUILD / "sandbox-inspect").exists():
        return None
    daemon = harness.start_daemon(to_file=True, LOG_LEVEL="info", MCP_CALLS_MAX=str(CALLS))
    try:
        client = Client(daemon)
        assert TEXT.count("\n") == 200
        runs = max(options.runs // 10, 20)
        published = [publish_ms(client, salt) for salt in range(runs)]
        assert daemon.request("PUT", "/v1/tools/square", json={"language": "python", "code": SQUARE}).status == 201
        direct = {"language": "python", "code": SQUARE, "functionName": "square", "kwargs": {"n": 7}, "timeout": 30}
        ways = {"direct": ("/v1/functions/call", direct), "tool": ("/v1/tools/call", {"tool": "square", "arguments": {"n": 7}})}
        took = {way: [] for way in ways}
        with harness.Connection(daemon) as connection:
            for _ in range(max(options.runs // 2, 100)):
                for way, (path, body) in ways.items():
                    took[way].append(request_ms(connection, path, body))
        spent, got = timed(lambda: client.call("run_code", code=CODE, allow_tools=["square"], timeout_seconds=300))
        rows = daemon.request("GET", f"/v1/executions/{got['_meta']['io.sandbox-executor/run']}/tool_calls").json()["tool_calls"]
        return {"publish_ms": statistics.median(published), "direct_ms": statistics.median(took["direct"]),
                "tool_ms": statistics.median(took["tool"]), "calls_ms": spent,
                "whole": got["structuredContent"]["result"] == [True],
                "journal": len(rows) == CALLS and sorted(row["arguments"]["n"] for row in rows) == list(range(CALLS))}
    finally:
        daemon.stop()


def show(found, verdict):
    print("## Tools\n")
    if found is None:
        print("Not measured: built without grammars.\n")
        return
    ratio = found["tool_ms"] / found["direct_ms"]
    print("| | |\n|---|---|")
    print(f"| publishing 200 lines of Python with 10 functions, until they are listed | {found['publish_ms']:.1f} ms |")
    print(f"| `POST /v1/functions/call` of a trivial function | {found['direct_ms']:.2f} ms |")
    print(f"| the same function as a published tool | {found['tool_ms']:.2f} ms |")
    print(f"| {CALLS:,} calls from code of one run, 8 at once | {found['calls_ms']:.0f} ms, {CALLS * 1000 / found['calls_ms']:.0f} per second |\n")
    print(f"Bars: publishing under {PUBLISH_MAX_MS:.0f} ms: {verdict(found['publish_ms'] < PUBLISH_MAX_MS)}; a tool {CALL_MAX} times as "
          f"long as the call: {ratio:.2f}, {verdict(ratio <= CALL_MAX)}; no call of code lost: {verdict(found['whole'])}; its journal is exact: "
          f"{verdict(found['journal'])}.\n")
