# SPDX-License-Identifier: MIT
"""Runs code nobody has read, in sandboxes of a sandbox-executor daemon.

    from sandbox_executor import Sandbox

    with Sandbox() as s:
        print(s.run_code("1 + 1").results[0].data["text/plain"])

Client and Sandbox wait; AsyncClient and AsyncSandbox are the same for asyncio.
"""
from . import types
from ._async import (VERSION, AsyncClient, AsyncEvents, AsyncFunction, AsyncProcess, AsyncSandbox, AsyncSession,
                     AsyncTerminal)
from ._record import Event, Record
from ._sync import Client, Events, Function, Process, Sandbox, Session, Terminal
from .errors import (Busy, Conflict, ConnectionFailed, Forbidden, FunctionFailed, InvalidRequest, NotFound, SandboxError,
                     ServerFailed, Unauthorized)

__version__ = VERSION
__all__ = [
    "AsyncClient", "AsyncEvents", "AsyncFunction", "AsyncProcess", "AsyncSandbox", "AsyncSession", "AsyncTerminal", "Busy",
    "Client", "Conflict", "ConnectionFailed", "Event", "Events", "Forbidden", "Function", "FunctionFailed", "InvalidRequest",
    "NotFound", "Process", "Record", "Sandbox", "SandboxError", "ServerFailed", "Session", "Terminal", "Unauthorized", "types",
]
