# SPDX-License-Identifier: MIT
"""The Model Context Protocol: a cell by tools/call against the same over REST, a first call, and what idle sessions cost."""
import re
import statistics

import contexts
import harness
from mcp_client import Client

RATIO_MAX, FIRST_MAX_MS, IDLE, IDLE_MAX_MIB = 1.5, 10, 1000, 8
CODE = "1"
FIRST_CALLS = 20


class Keeping(Client):
    """Over one kept connection, as the SDKs have it."""

    def __init__(self, daemon, connection):
        self.connection = connection
        super().__init__(daemon)

    def post(self, method, params=None, ident=None, headers=None):
        body = self.message(method, params, ident)
        return self.connection.request("POST", self.path, json=body, headers={**self.headers(method, params), **(headers or {})})

    def run(self):
        answer = self.post("tools/call", {"name": "run_code", "arguments": {"code": CODE}})
        assert '"result":1' in answer.text, answer.text

    def end(self):
        self.connection.request("DELETE", "/mcp?linger=0", headers={"Mcp-Session-Id": self.session})


def prepared(daemon):
    text = daemon.request("GET", "/metrics").text
    return re.search(r'sandbox_pool\{template="python-cells",state="ready"\} 1', text)


def side_by_side(options, connection, client):
    """Milliseconds of a cell over REST and by a tool, which take turns; the median of each."""
    place = contexts.Sandbox(connection)
    rest, tool = [], []
    for _ in range(5):
        place.cell(CODE)
        client.run()
    for _ in range(options.runs):
        rest.append(contexts.timed(lambda: place.cell(CODE))[0])
        tool.append(contexts.timed(client.run)[0])
    place.delete()
    return statistics.median(rest), statistics.median(tool)


def first_rest(connection):
    place = contexts.Sandbox(connection)
    place.cell(CODE)
    return place


def first_calls(daemon, connection):
    """Of new sandboxes over REST and of new sessions, from the request to the result, an interpreter being prepared."""
    rest, tool = [], []
    for _ in range(FIRST_CALLS):
        client = Keeping(daemon, connection)
        harness.wait_until(lambda: prepared(daemon), "a prepared sandbox", 120, 0.02)
        tool.append(contexts.timed(client.run)[0])
        client.end()
        harness.wait_until(lambda: prepared(daemon), "a prepared sandbox", 120, 0.02)
        took, place = contexts.timed(lambda: first_rest(connection))
        rest.append(took)
        place.delete()
    return statistics.median(rest), statistics.median(tool)


def idle_mib(daemon, connection):
    """What so many sessions that only list tools take."""
    def own():
        return contexts.pss_kib([daemon.pid])

    Keeping(daemon, connection).ask("tools/list")
    before = own()
    for _ in range(IDLE):
        Keeping(daemon, connection).ask("tools/list")
    return (own() - before) / 1024


def measure(options, tools):
    with tools["started"](POOL_CELLS=1, MCP_SESSIONS_MAX=2 * IDLE) as daemon, daemon.connect() as connection:
        harness.wait_until(lambda: contexts.is_warm(connection), "a context that is a copy", 120, 0.2)
        client = Keeping(daemon, connection)
        rest, tool = side_by_side(options, connection, client)
        client.end()
        first_rest_ms, first_ms = first_calls(daemon, connection)
        return {"rest_ms": rest, "tool_ms": tool, "first_rest_ms": first_rest_ms, "first_ms": first_ms, "idle": IDLE,
                "idle_mib": idle_mib(daemon, connection)}


def show(found, verdict):
    ratio = found["tool_ms"] / found["rest_ms"]
    print("## Model Context Protocol\n\n| | |\n|---|---|")
    print(f"| a trivial cell over REST | {found['rest_ms']:.2f} ms |")
    print(f"| the same by `tools/call run_code` in a live session | {found['tool_ms']:.2f} ms |")
    print(f"| a new sandbox and its first cell over REST, an interpreter being prepared | {found['first_rest_ms']:.1f} ms |")
    print(f"| the first call of a new session, the same | {found['first_ms']:.1f} ms |")
    print(f"| {found['idle']} idle sessions | {found['idle_mib']:.1f} MiB |\n")
    print(f"Bars: {RATIO_MAX} times REST: {ratio:.2f}, {verdict(ratio <= RATIO_MAX)}; first call {FIRST_MAX_MS} ms: "
          f"{verdict(found['first_ms'] <= FIRST_MAX_MS)}; {found['idle']} idle sessions {IDLE_MAX_MIB} MiB: "
          f"{verdict(found['idle_mib'] <= IDLE_MAX_MIB)}.\n")
