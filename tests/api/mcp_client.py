# SPDX-License-Identifier: MIT
"""A client of the Model Context Protocol, in both eras, that says exactly what a test wants."""
import itertools
import json

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
KEY = "io.modelcontextprotocol/"
ACCEPT = {"Accept": "application/json, text/event-stream"}


def message_of(answer):
    """The response of an answer, JSON or the last of its events."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        return events_of(answer.text)[-1]
    return json.loads(answer.text)


def events_of(text):
    """Without the one that tells a client of the newest handshake version where to go on from the beginning."""
    return [json.loads(line[len("data: "):]) for line in text.splitlines() if line.startswith("data: {")]


class Refused(Exception):
    """An error of the protocol."""

    def __init__(self, status, error):
        super().__init__(f"{status}: {error}")
        self.status = status
        self.code = error["code"]
        self.error = error


class Client:
    """Sends messages; `era` is a version with a handshake, or MODERN."""

    def __init__(self, daemon, era=HANDSHAKE[0], path="/mcp"):
        self.daemon = daemon
        self.era = era
        self.path = path
        self.ids = itertools.count(1)
        self.session = None
        self.hello = None
        if era != MODERN:
            answer = self.post("initialize", {"protocolVersion": era, "capabilities": {},
                                              "clientInfo": {"name": "test", "version": "1"}})
            self.hello = self.result(answer)
            self.session = answer.headers["mcp-session-id"]
            assert self.notify("notifications/initialized").status == 202

    def headers(self, method=None, params=None):
        got = dict(ACCEPT)
        if self.session:
            got["Mcp-Session-Id"] = self.session
            got["MCP-Protocol-Version"] = self.era
        if self.era == MODERN and method:
            got["MCP-Protocol-Version"] = MODERN
            got["Mcp-Method"] = method
            name = (params or {}).get("name") or (params or {}).get("uri")
            if name:
                got["Mcp-Name"] = name
        return got

    def message(self, method, params=None, ident=None):
        params = dict(params or {})
        if self.era == MODERN:
            params["_meta"] = {KEY + "protocolVersion": MODERN, KEY + "clientCapabilities": {}, **params.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": ident if ident is not None else next(self.ids), "method": method, "params": params}

    def post(self, method, params=None, ident=None, headers=None):
        body = self.message(method, params, ident)
        return self.daemon.request("POST", self.path, json=body, headers={**self.headers(method, params), **(headers or {})})

    def notify(self, method, params=None):
        return self.daemon.request("POST", self.path, json={"jsonrpc": "2.0", "method": method, "params": params or {}},
                                   headers=self.headers(method))

    @staticmethod
    def result(answer):
        message = message_of(answer)
        if "error" in message:
            raise Refused(answer.status, message["error"])
        return message["result"]

    def ask(self, method, params=None, **more):
        return self.result(self.post(method, params, **more))

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def data(self, tool, **arguments):
        got = self.call(tool, **arguments)
        assert not got["isError"], got
        return got["structuredContent"]


def text_of(result):
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
