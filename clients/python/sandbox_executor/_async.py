# SPDX-License-Identifier: MIT
"""The client, written once, for asyncio. tools/make-clients makes _sync.py from it.

Requests travel over kept connections. What was refused before it began (503 with Retry-After) is
asked for again, and so is what only reads when its connection breaks; nothing else is ever sent twice.
"""
from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import struct
from types import TracebackType
from typing import Any, AsyncIterable, AsyncIterator, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from . import types as t
from ._record import Event, Record, wrap
from ._streams import AsyncStream
from ._where import find_secret, find_url
from .errors import ConnectionFailed, FunctionFailed, InvalidRequest, refusal

Contents = Union[bytes, str, AsyncIterable[bytes]]
R = TypeVar("R")

BUSY_RETRIES = 5
BUSY_SECONDS = 5.0  # as long as one wait may be
IDLE_MAX = 16
CHUNK = 1 << 16
BROKEN = (OSError, EOFError, asyncio.TimeoutError, ValueError)
VERSION = "0.1.0"


def _given(**members: Any) -> Dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _part(text: str) -> str:
    return quote(text, safe="")


def _files(files: Optional[Mapping[str, Union[str, bytes]]]) -> Optional[Dict[str, Any]]:
    """Texts as they are, bytes in base64."""
    if files is None:
        return None
    return {path: {"base64": base64.b64encode(data).decode()} if isinstance(data, bytes) else data
            for path, data in files.items()}


class AsyncAnswer:
    """An answer whose body is read as it comes."""

    def __init__(self, client: "AsyncClient", stream: AsyncStream, status: int, headers: Dict[str, str], bodiless: bool):
        self.status, self.headers = status, headers
        self._client, self._stream = client, stream
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._left: Optional[int] = int(headers["content-length"]) if "content-length" in headers else None
        self._over = False
        if bodiless or self._left == 0:
            self._end()

    def _end(self) -> None:
        self._over = True
        if self.headers.get("connection", "").lower() != "close" and (self._chunked or self._left is not None or
                                                                      self.status in (204, 304)):
            self._client._keep(self._stream)

    async def _chunk(self) -> bytes:
        if self._over:
            return b""
        if self._chunked:
            n = int((await self._stream.readline()).split(b";")[0], 16)
            data = await self._stream.readexactly(n)
            await self._stream.readexactly(2)
            if n == 0:
                self._end()
            return data
        data = await self._stream.read(CHUNK if self._left is None else min(CHUNK, self._left))
        if self._left is None:
            self._over = not data
        elif not data:
            raise EOFError("the connection ended")
        else:
            self._left -= len(data)
            if self._left == 0:
                self._end()
        return data

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces."""
        while True:
            try:
                data = await self._chunk()
            except BROKEN as broken:
                await self.aclose()
                raise ConnectionFailed(f"the answer broke off: {broken or 'no byte in time'}") from broken
            if not data:
                return
            yield data

    async def read(self) -> bytes:
        """The whole body."""
        parts = []
        async for data in self.chunks():
            parts.append(data)
        return b"".join(parts)

    async def aclose(self) -> None:
        """Wants no more; the connection goes with it if the body is not over."""
        if not self._over:
            self._over = True
            await self._stream.close()


class AsyncEvents:
    """Events as they come. Leaving early closes the connection, which ends what was asked for."""

    def __init__(self, answer: AsyncAnswer):
        self._answer = answer
        self._lines = self._read_lines()

    async def _read_lines(self) -> AsyncIterator[str]:
        rest = b""
        async for chunk in self._answer.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r").decode("utf-8", "replace")

    def __aiter__(self) -> "AsyncEvents":
        return self

    async def __anext__(self) -> Event:
        name, id, data = "message", "", []
        async for line in self._lines:
            if not line and data:
                return Event(name, id, wrap(json.loads("\n".join(data))))
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "id":
                id = value
            elif field == "data":
                data.append(value)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._answer.aclose()

    async def __aenter__(self) -> "AsyncEvents":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


class AsyncClient:
    """One daemon. Without arguments it is found as `sbx` finds it: $SANDBOX_URL, $SANDBOX_SECRET and so on.

    `timeout`: seconds without any byte after which a request is given up; None, the default: however long.
    """

    def __init__(self, url: Optional[str] = None, secret: Optional[str] = None, *, timeout: Optional[float] = None):
        parts = find_url(url)
        self.url = parts.geturl()
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._authority, self._prefix = parts.netloc.rpartition("@")[2], parts.path
        self._secret, self._timeout = find_secret(secret), timeout
        self._idle: List[AsyncStream] = []

    # -- requests --

    def _keep(self, stream: AsyncStream) -> None:
        if len(self._idle) < IDLE_MAX:
            self._idle.append(stream)

    async def _connect(self) -> AsyncStream:
        while self._idle:
            stream = self._idle.pop()
            if not stream.is_stale():
                return stream
            await stream.close()
        try:
            return await AsyncStream.open(self._host, self._port, self._tls, self._timeout)
        except BROKEN as broken:
            raise ConnectionFailed(f"nobody answers at {self.url}: {broken or 'no answer in time'}",
                                   "is the daemon running? SANDBOX_URL says where") from broken

    def _head(self, method: str, target: str, headers: Mapping[str, str]) -> bytes:
        lines = {"Host": self._authority, "User-Agent": f"sandbox-executor-python/{VERSION}", **headers}
        if self._secret:
            lines["Authorization"] = "Bearer " + self._secret
        text = f"{method} {self._prefix}{target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
        return (text + "\r\n").encode()

    @staticmethod
    async def _read_head(stream: AsyncStream) -> Tuple[int, Dict[str, str]]:
        while True:
            line = await stream.readline()
            if not line:
                raise EOFError("the connection ended")
            status = int(line.split(b" ", 2)[1])
            headers: Dict[str, str] = {}
            while True:
                line = await stream.readline()
                if line in (b"\r\n", b"\n", b""):
                    break
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if status >= 200 or status == 101:
                return status, headers

    async def _once(self, method: str, target: str, headers: Mapping[str, str], body: Optional[Contents]) -> AsyncAnswer:
        stream = await self._connect()
        try:
            if body is None or isinstance(body, (bytes, str)):
                data = body.encode() if isinstance(body, str) else body or b""
                length = {"Content-Length": str(len(data))} if body is not None or method in ("POST", "PUT") else {}
                await stream.write(self._head(method, target, {**headers, **length}) + data)
            else:
                await stream.write(self._head(method, target, {**headers, "Transfer-Encoding": "chunked"}))
                async for part in body:
                    if part:
                        await stream.write(b"%x\r\n%b\r\n" % (len(part), part))
                await stream.write(b"0\r\n\r\n")
            status, answered = await self._read_head(stream)
        except BaseException as broken:
            await stream.close()
            if isinstance(broken, BROKEN):
                raise ConnectionFailed(f"{self.url}: {broken or 'no byte in time'}") from broken
            raise
        return AsyncAnswer(self, stream, status, answered, method == "HEAD" or status in (204, 304))

    async def request(self, method: str, target: str, *, body: Optional[Contents] = None,
                      headers: Optional[Mapping[str, str]] = None) -> AsyncAnswer:
        """Any request; the answer is 2xx, or an error is raised."""
        again = body is None or isinstance(body, (bytes, str))
        broke = False
        for attempt in range(BUSY_RETRIES + 1):
            try:
                answer = await self._once(method, target, headers or {}, body)
            except ConnectionFailed as failure:
                if broke or method not in ("GET", "HEAD") or isinstance(failure.__cause__, ConnectionRefusedError):
                    raise
                broke = True
                continue
            if answer.status < 300:
                return answer
            error = refusal(answer.status, answer.headers, await answer.read())
            wait = getattr(error, "retry_after", 0)
            if answer.status != 503 or not again or not wait or attempt == BUSY_RETRIES:
                raise error
            await asyncio.sleep(min(wait, BUSY_SECONDS) * (0.5 + random.random() / 2))
        raise AssertionError("unreachable")

    async def json(self, method: str, target: str, body: Any = None, kind: Callable[[Any], R] = Record) -> R:
        """The same with JSON both ways."""
        sent = None if body is None else json.dumps(body)
        answer = await self.request(method, target, body=sent, headers={"Content-Type": "application/json"} if sent else {})
        said = await answer.read()
        return kind(json.loads(said) if said else {})

    async def events(self, method: str, target: str, body: Any = None,
                     headers: Optional[Mapping[str, str]] = None) -> AsyncEvents:
        """The same with an answer that comes as events."""
        lines = {"Accept": "text/event-stream", "Content-Type": "application/json", **(headers or {})}
        return AsyncEvents(await self.request(method, target, body=None if body is None else json.dumps(body), headers=lines))

    async def aclose(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()

    # -- code in fresh sandboxes --

    @staticmethod
    def _execution(language: str, code: str, files: Optional[Mapping[str, Union[str, bytes]]], more: Dict[str, Any]) -> Dict[str, Any]:
        return _given(language=language, code=code, files=_files(files), **more)

    async def execute(self, language: str, code: str, *, event: Optional[Mapping[str, Any]] = None, stdin: Optional[str] = None,
                      files: Optional[Mapping[str, Union[str, bytes]]] = None, env_vars: Optional[Mapping[str, str]] = None,
                      timeout: Optional[float] = None, limits: Optional[Mapping[str, Any]] = None, mode: Optional[str] = None,
                      template: Optional[str] = None, isolation: Optional[str] = None, packages: Any = None,
                      network: Union[None, str, Mapping[str, Any]] = None, webhook: Any = None, execution_id: Optional[str] = None,
                      session_id: Optional[str] = None) -> t.ExecutionResult:
        """Runs code in a fresh sandbox and waits for its result, with a session_id, too."""
        body = self._execution(language, code, files, _given(
            event=event, stdin=stdin, env_vars=env_vars, timeout=timeout, limits=limits, mode=mode, template=template,
            isolation=isolation, packages=packages, network=network, webhook=webhook, execution_id=execution_id,
            session_id=session_id))
        answer = await self.request("POST", "/execute", body=json.dumps(body),
                                    headers={"Content-Type": "application/json", "Prefer": "wait"})
        return t.ExecutionResult(json.loads(await answer.read()))

    async def execute_stream(self, language: str, code: str, **more: Any) -> AsyncEvents:
        """The same as events: stdout, stderr and progress as they come, then result. Closing it cancels the run."""
        body = self._execution(language, code, more.pop("files", None), more)
        return await self.events("POST", "/execute", body)

    async def submit(self, language: str, code: str, **more: Any) -> str:
        """Runs code without waiting: the id of the execution."""
        body = self._execution(language, code, more.pop("files", None), more)
        answer = await self.request("POST", "/execute", body=json.dumps(body),
                                    headers={"Content-Type": "application/json", "Prefer": "respond-async"})
        return str(json.loads(await answer.read())["execution_id"])

    async def execution(self, id: str) -> t.Execution:
        return await self.json("GET", f"/v1/executions/{_part(id)}", kind=t.Execution)

    async def executions(self, **query: Any) -> t.Executions:
        return await self.json("GET", "/v1/executions" + ("?" + urlencode(query) if query else ""), kind=t.Executions)

    async def watch_execution(self, id: str, after: str = "") -> AsyncEvents:
        """What it has printed and prints, then its result; `after` is the id of the last event that was seen."""
        return await self.events("GET", f"/v1/executions/{_part(id)}", headers={"Last-Event-ID": after} if after else {})

    async def cancel(self, id: str) -> None:
        """Ends an execution, or forgets one that has ended."""
        await (await self.request("DELETE", f"/v1/executions/{_part(id)}")).read()

    async def artifact(self, id: str, path: str) -> bytes:
        return await (await self.request("GET", f"/v1/executions/{_part(id)}/artifacts/{quote(path)}")).read()

    # -- functions --

    async def call(self, language: str, code: str, function: Optional[str] = None, args: Any = None, kwargs: Optional[Mapping[str, Any]] = None,
                   *, schema: Any = None, timeout: Optional[float] = None, engine: Optional[str] = None,
                   isolation: Optional[str] = None, packages: Any = None, options: Optional[Mapping[str, Any]] = None,
                   args_mode: Optional[str] = None, auto_mode_threshold: Optional[int] = None, stdin: Optional[str] = None,
                   webhook: Any = None) -> t.FunctionResult:
        """Calls one function of a piece of code, once. A function that fails is a result, too."""
        return await self.json("POST", "/v1/functions/call", _given(
            language=language, code=code, functionName=function, args=args, kwargs=kwargs, schema=schema, timeout=timeout,
            engine=engine, isolation=isolation, packages=packages, options=options, argsMode=args_mode,
            autoModeThreshold=auto_mode_threshold, stdin=stdin, webhook=webhook), t.FunctionResult)

    def function(self, language: str, code: str, name: Optional[str] = None, **more: Any) -> "AsyncFunction":
        """A function of a piece of code as one of Python: it returns, or raises FunctionFailed."""
        return AsyncFunction(self, language, code, name, more)

    async def inspect(self, language: str, code: str) -> t.Inspection:
        """The functions of a piece of code, which is not run."""
        return await self.json("POST", "/v1/functions/inspect", {"language": language, "code": code}, t.Inspection)

    async def session(self, language: str, code: str, *, timeout: Optional[float] = None, idle_timeout: Optional[float] = None,
                      engine: Optional[str] = None, isolation: Optional[str] = None, packages: Any = None,
                      options: Optional[Mapping[str, Any]] = None) -> "AsyncSession":
        """Loads code once, to call its functions often."""
        made = await self.json("POST", "/v1/sessions", _given(
            language=language, code=code, timeout=timeout, idleTimeout=idle_timeout, engine=engine, isolation=isolation,
            packages=packages, options=options), t.FunctionResult)
        return AsyncSession(self, str(made["id"]))

    async def sessions(self) -> List[t.Session]:
        return [t.Session(s) for s in (await self.json("GET", "/v1/sessions"))["sessions"]]

    # -- sandboxes --

    async def sandbox(self, **wishes: Any) -> "AsyncSandbox":
        """Makes a persistent sandbox; see Sandbox for what can be wished."""
        return await AsyncSandbox(client=self, **wishes).start()

    async def sandboxes(self, **query: Any) -> List[t.Sandbox]:
        """Those there are, of all pages; state= and metadata= choose."""
        found: List[t.Sandbox] = []
        while True:
            page = await self.json("GET", "/v1/sandboxes" + ("?" + urlencode(query) if query else ""))
            found += [t.Sandbox(s) for s in page["sandboxes"]]
            if not page.get("next"):
                return found
            query["after"] = page["next"]

    # -- packages, and the daemon itself --

    async def install(self, name: Optional[str] = None, *, python: Optional[List[str]] = None,
                      npm: Optional[List[str]] = None) -> t.PackageSet:
        return await self.json("POST", "/v1/packages", _given(name=name, python=python, npm=npm), t.PackageSet)

    async def packages(self) -> List[t.PackageSet]:
        return [t.PackageSet(p) for p in (await self.json("GET", "/v1/packages"))["packages"]]

    async def uninstall(self, name: str) -> None:
        await (await self.request("DELETE", f"/v1/packages/{_part(name)}")).read()

    async def health(self) -> t.Health:
        return await self.json("GET", "/health", kind=t.Health)

    async def capabilities(self) -> t.Capabilities:
        return await self.json("GET", "/v1/capabilities", kind=t.Capabilities)


def _value_of(result: t.FunctionResult) -> Any:
    if result.get("success"):
        return wrap(result.get("result"))
    error = result.get("error") or {}
    raise FunctionFailed(error.get("type") or str(result.get("status")), error.get("message") or "", error.get("stack") or "", result)


class AsyncFunction:
    """See Client.function()."""

    def __init__(self, client: AsyncClient, language: str, code: str, name: Optional[str], more: Dict[str, Any]):
        self._client, self._language, self._code, self._name, self._more = client, language, code, name, more

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _value_of(await self._client.call(self._language, self._code, self._name, list(args), kwargs or None, **self._more))


class AsyncSession:
    """Code that was loaded once; its variables stay between calls."""

    def __init__(self, client: AsyncClient, id: str):
        self._client, self.id, self._path = client, id, f"/v1/sessions/{_part(id)}"

    async def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """What the function returns; FunctionFailed if it fails."""
        return _value_of(await self.result(function, list(args), kwargs or None))

    async def result(self, function: str, args: Any = None, kwargs: Optional[Mapping[str, Any]] = None, *, schema: Any = None,
                     timeout: Optional[float] = None, options: Optional[Mapping[str, Any]] = None) -> t.FunctionResult:
        """The whole result of a call, also of one that failed."""
        return await self._client.json("POST", self._path + "/call", _given(
            functionName=function, args=args, kwargs=kwargs, schema=schema, timeout=timeout, options=options), t.FunctionResult)

    async def stream(self, function: str, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """The items of a generator, as they are made."""
        events = await self._client.events("POST", self._path + "/call", _given(
            functionName=function, args=list(args), kwargs=kwargs or None))
        try:
            async for event in events:
                if event.name == "item":
                    yield event.data
                elif event.name == "result":
                    _value_of(t.FunctionResult(event.data))
        finally:
            await events.aclose()

    async def describe(self) -> t.Session:
        return await self._client.json("GET", self._path, kind=t.Session)

    async def reset(self, level: str = "soft") -> t.FunctionResult:
        return await self._client.json("POST", self._path + "/reset", {"level": level}, t.FunctionResult)

    async def aclose(self) -> None:
        """Ends it."""
        await (await self._client.request("DELETE", self._path)).read()

    async def __aenter__(self) -> "AsyncSession":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


class AsyncSandbox:
    """A persistent sandbox: commands, files, processes, terminals, live interpreters.

    `async with AsyncSandbox() as s` makes one and removes it at the end; AsyncSandbox.connect(name) is one that exists.
    """

    def __init__(self, name: Optional[str] = None, *, client: Optional[AsyncClient] = None, env: Optional[Mapping[str, str]] = None,
                 limits: Optional[Mapping[str, int]] = None, network: Union[None, str, Mapping[str, Any]] = None, packages: Any = None,
                 isolation: Optional[str] = None, timeout: Optional[int] = None, lifetime: Optional[int] = None,
                 on_end: Optional[str] = None, auto_resume: Optional[bool] = None,
                 metadata: Optional[Mapping[str, str]] = None, template: Optional[str] = None, home: Optional[str] = None,
                 private_ports: Optional[bool] = None):
        self._client, self._owns_client = client or AsyncClient(), client is None
        self._wishes = _given(name=name, env=env, limits=limits, network=network, packages=packages, isolation=isolation,
                              timeout=timeout, lifetime=lifetime, on_end=on_end, auto_resume=auto_resume, metadata=metadata,
                              template=template, home=home, private_ports=private_ports)
        self.id, self._made = "", False
        self.name = name or ""
        self.files = AsyncFiles(self)
        self.processes = AsyncProcesses(self)

    @classmethod
    def connect(cls, name: str = "default", client: Optional[AsyncClient] = None) -> "AsyncSandbox":
        """One that exists, by id or name; leaving `with` does not remove it."""
        found = cls(name, client=client)
        found.id = name
        return found

    async def start(self) -> "AsyncSandbox":
        """Makes it, unless it was made."""
        if not self.id:
            made = await self._client.json("POST", "/v1/sandboxes", self._wishes, t.Sandbox)
            self.id, self.name, self._made = str(made["id"]), str(made["name"]), True
        return self

    @property
    def path(self) -> str:
        if not self.id:
            raise InvalidRequest("the sandbox was not made yet", "use it in a with statement, or call start()")
        return f"/v1/sandboxes/{_part(self.id)}"

    async def describe(self) -> t.Sandbox:
        return await self._client.json("GET", self.path, kind=t.Sandbox)

    async def pause(self) -> t.Sandbox:
        return await self._client.json("POST", self.path + "/pause", kind=t.Sandbox)

    async def resume(self) -> t.Sandbox:
        return await self._client.json("POST", self.path + "/resume", kind=t.Sandbox)

    async def set_lifetime(self, seconds: int) -> t.Sandbox:
        return await self._client.json("POST", self.path + "/lifetime", {"lifetime": seconds}, t.Sandbox)

    async def network(self) -> t.SandboxNetwork:
        """What it may reach, and what it has reached."""
        return await self._client.json("GET", self.path + "/network", kind=t.SandboxNetwork)

    async def set_network(self, rules: Union[str, Mapping[str, Any]]) -> t.SandboxNetwork:
        """Replaces what it may reach."""
        return await self._client.json("PUT", self.path + "/network", rules, t.SandboxNetwork)

    async def remove(self) -> None:
        """Ends everything in it."""
        await (await self._client.request("DELETE", self.path)).read()
        self.id = ""

    async def aclose(self) -> None:
        """Removes it if this object made it."""
        try:
            if self.id and self._made:
                await self.remove()
        finally:
            if self._owns_client:
                await self._client.aclose()

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.start()

    async def __aexit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.aclose()

    # -- commands --

    async def run(self, cmd: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                  timeout: Optional[float] = None, stdin: Optional[str] = None) -> t.CommandResult:
        """A command of the shell, until it has ended."""
        return await self._client.json("POST", self.path + "/run", _given(cmd=cmd, cwd=cwd, env=env, timeout=timeout, stdin=stdin),
                                       t.CommandResult)

    # -- live interpreters --

    async def run_code(self, code: str, language: Optional[str] = None, *, context: Optional[str] = None,
                       env: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> t.CellResult:
        """Runs a cell; variables stay for the next one."""
        return await self._client.json("POST", self.path + "/cells", _given(
            code=code, language=language, context=context, env=env, timeout=timeout), t.CellResult)

    async def run_code_stream(self, code: str, language: Optional[str] = None, **more: Any) -> AsyncEvents:
        """The same as events: started, stdout, stderr, display, clear, error, end. Closing it interrupts the cell."""
        return await self._client.events("POST", self.path + "/cells", _given(code=code, language=language, **more))

    async def create_context(self, language: Optional[str] = None, *, cwd: Optional[str] = None) -> t.Context:
        return await self._client.json("POST", self.path + "/contexts", _given(language=language, cwd=cwd), t.Context)

    async def contexts(self) -> List[t.Context]:
        return [t.Context(c) for c in (await self._client.json("GET", self.path + "/contexts"))["contexts"]]

    async def restart_context(self, id: str) -> t.Context:
        return await self._client.json("POST", f"{self.path}/contexts/{_part(id)}/restart", kind=t.Context)

    async def interrupt_context(self, id: str) -> t.Context:
        return await self._client.json("POST", f"{self.path}/contexts/{_part(id)}/interrupt", kind=t.Context)

    async def remove_context(self, id: str) -> None:
        await (await self._client.request("DELETE", f"{self.path}/contexts/{_part(id)}")).read()

    # -- terminals and ports --

    async def terminal(self, command: Optional[str] = None, *, columns: int = 80, rows: int = 24, cwd: Optional[str] = None,
                       keep: bool = False) -> "AsyncTerminal":
        """A shell, or a command, in a terminal."""
        query = _given(command=command, columns=columns, rows=rows, cwd=cwd, keep="true" if keep else "false")
        return await AsyncTerminal.open(self._client, f"{self.path}/terminals?{urlencode(query)}")

    def port_url(self, port: int, path: str = "/") -> str:
        """Where a server that listens inside is reached, with the secret."""
        return f"{self._client.url}{self.path}/ports/{port}{path}"


class AsyncFiles:
    """Files of a sandbox. Paths are absolute, or begin where commands do."""

    def __init__(self, sandbox: AsyncSandbox):
        self._sandbox = sandbox

    def _url(self, path: str) -> str:
        if not path.startswith("/"):
            path = "/workspace/" + path
        return f"{self._sandbox.path}/files{quote(path)}"

    async def _post(self, verb: str, kind: Callable[[Any], R] = Record, **body: Any) -> R:
        return await self._sandbox._client.json("POST", f"{self._sandbox.path}/files/{verb}", _given(**body), kind)

    async def read(self, path: str) -> bytes:
        return await (await self._sandbox._client.request("GET", self._url(path))).read()

    async def read_text(self, path: str) -> str:
        return (await self.read(path)).decode()

    async def open(self, path: str) -> AsyncAnswer:
        """Its bytes as they come: `chunks()`."""
        return await self._sandbox._client.request("GET", self._url(path))

    async def write(self, path: str, data: Contents) -> t.FileWritten:
        """A text, bytes, or pieces as they come."""
        answer = await self._sandbox._client.request("PUT", self._url(path), body=data,
                                                     headers={"Content-Type": "application/octet-stream"})
        return t.FileWritten(json.loads(await answer.read()))

    async def write_tar(self, path: str, tar: Contents) -> t.FileWritten:
        """Unpacks a tar archive into a directory."""
        answer = await self._sandbox._client.request("PUT", self._url(path) + "?archive=tar", body=tar,
                                                     headers={"Content-Type": "application/x-tar"})
        return t.FileWritten(json.loads(await answer.read()))

    async def read_tar(self, path: str) -> AsyncAnswer:
        """A directory as a tar archive: `chunks()` or `read()`."""
        return await self._sandbox._client.request("GET", self._url(path) + "?archive=tar")

    async def stat(self, path: str) -> t.FileEntry:
        return await self._post("stat", t.FileEntry, path=path)

    async def exists(self, path: str) -> bool:
        return bool((await self._post("exists", path=path))["exists"])

    async def list(self, path: str = ".", depth: int = 1) -> List[t.FileEntry]:
        """What is in a directory and so many levels below."""
        found: List[t.FileEntry] = []
        after: Optional[str] = None
        while True:
            page = await self._post("list", path=path, depth=depth, after=after)
            found += [t.FileEntry(e) for e in page["entries"]]
            after = page["next"]
            if after is None:
                return found

    async def move(self, source: str, to: str, replace: bool = False) -> t.FileEntry:
        return await self._post("move", t.FileEntry, **{"from": source, "to": to, "replace": replace})

    async def copy(self, source: str, to: str, replace: bool = False) -> t.FileEntry:
        return await self._post("copy", t.FileEntry, **{"from": source, "to": to, "replace": replace})

    async def remove(self, path: str, recursive: bool = False) -> None:
        url = self._url(path) + ("?recursive=true" if recursive else "")
        await (await self._sandbox._client.request("DELETE", url)).read()

    async def watch(self, path: str = ".", recursive: bool = False, entries: bool = False) -> AsyncEvents:
        """What happens in a directory, from the event `ready` on."""
        return await self._sandbox._client.events("POST", self._sandbox.path + "/files/watch",
                                                  {"path": path, "recursive": recursive, "entries": entries})

    async def sign(self, path: str, method: str = "GET", expires_in: Optional[int] = None) -> t.FileUrl:
        """A URL that opens this file without the secret."""
        return await self._post("sign", t.FileUrl, path=path, method=method, expires_in=expires_in)


class AsyncProcesses:
    """Processes of a sandbox that outlive their request."""

    def __init__(self, sandbox: AsyncSandbox):
        self._sandbox = sandbox

    async def start(self, command: Optional[str] = None, *, argv: Optional[List[str]] = None, cwd: Optional[str] = None,
                    env: Optional[Mapping[str, str]] = None, tag: Optional[str] = None, stdin: Optional[bool] = None,
                    terminal: Optional[Mapping[str, int]] = None, timeout: Optional[float] = None) -> "AsyncProcess":
        made = await self._sandbox._client.json("POST", self._sandbox.path + "/processes", _given(
            command=command, argv=argv, cwd=cwd, env=env, tag=tag, stdin=stdin, terminal=terminal, timeout=timeout))
        return AsyncProcess(self._sandbox, str(made["id"]), int(made["pid"]))

    async def list(self) -> List[t.SandboxProcess]:
        found = await self._sandbox._client.json("GET", self._sandbox.path + "/processes")
        return [t.SandboxProcess(p) for p in found["processes"]]

    async def get(self, process: Union[str, int]) -> "AsyncProcess":
        """By its number, id or tag."""
        found = await self._sandbox._client.json("GET", f"{self._sandbox.path}/processes/{_part(str(process))}")
        return AsyncProcess(self._sandbox, str(found["id"]), int(found["pid"]))


class AsyncProcess:
    def __init__(self, sandbox: AsyncSandbox, id: str, pid: int):
        self._sandbox, self.id, self.pid = sandbox, id, pid
        self._path = f"{sandbox.path}/processes/{_part(id)}"

    async def describe(self) -> t.SandboxProcess:
        return await self._sandbox._client.json("GET", self._path, kind=t.SandboxProcess)

    async def output(self, start: Union[int, str] = 0) -> AsyncIterator[Tuple[str, bytes]]:
        """("stdout" or "stderr" or "terminal", bytes) from a byte on, or from "now", until it has ended."""
        events = await self._sandbox._client.events("GET", f"{self._path}/output?from={start}")
        try:
            async for event in events:
                if event.name == "end":
                    return
                if event.name in ("stdout", "stderr", "terminal"):
                    yield event.name, base64.b64decode(event.data["data"])
        finally:
            await events.aclose()

    async def wait(self) -> t.SandboxProcess:
        """Until it and its streams have ended: how it did."""
        async for _ in self.output("now"):
            pass
        return await self.describe()

    async def write(self, data: Union[bytes, str]) -> None:
        """To its standard input, which was kept open by stdin=True."""
        await (await self._sandbox._client.request("POST", self._path + "/stdin", body=data)).read()

    async def close_stdin(self) -> None:
        await (await self._sandbox._client.request("DELETE", self._path + "/stdin")).read()

    async def signal(self, name: str, to: str = "group") -> None:
        await self._sandbox._client.json("POST", self._path + "/signal", {"signal": name, "to": to})

    async def resize(self, columns: int, rows: int) -> None:
        await self._sandbox._client.json("POST", self._path + "/size", {"columns": columns, "rows": rows})

    async def kill(self) -> None:
        await (await self._sandbox._client.request("DELETE", self._path)).read()

    async def terminal(self) -> "AsyncTerminal":
        """The terminal of a process that has one."""
        path = f"{self._sandbox.path}/terminals/{_part(self.id)}"
        return await AsyncTerminal.open(self._sandbox._client, path)


class AsyncTerminal:
    """Keys in, bytes out: `async for data in terminal`. `process` tells how it ended."""

    def __init__(self, stream: AsyncStream):
        self._stream = stream
        self.process: Optional[Record] = None

    @classmethod
    async def open(cls, client: AsyncClient, target: str) -> "AsyncTerminal":
        stream = await AsyncStream.open(client._host, client._port, client._tls, None)
        key = base64.b64encode(os.urandom(16)).decode()
        await stream.write(client._head("GET", target, {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}))
        status, headers = await client._read_head(stream)
        if status != 101:
            error = refusal(status, headers, await AsyncAnswer(client, stream, status, {**headers, "connection": "close"}, False).read())
            await stream.close()
            raise error
        return cls(stream)

    async def _frame(self, opcode: int, data: bytes) -> None:
        n, key = len(data), os.urandom(4)
        head = bytes([0x80 | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, n)
        else:
            head += struct.pack(">BQ", 0x80 | 127, n)
        whole = int.from_bytes(data, "big") ^ int.from_bytes((key * (n // 4 + 1))[:n], "big")
        await self._stream.write(head + key + whole.to_bytes(n, "big"))

    async def send(self, data: Union[bytes, str]) -> None:
        """Keys."""
        await self._frame(2, data.encode() if isinstance(data, str) else data)

    async def resize(self, columns: int, rows: int) -> None:
        await self._frame(1, json.dumps({"type": "resize", "columns": columns, "rows": rows}).encode())

    async def signal(self, name: str) -> None:
        await self._frame(1, json.dumps({"type": "signal", "signal": name}).encode())

    async def receive(self) -> bytes:
        """What it shows next; b"" at its end."""
        while True:
            try:
                first, second = await self._stream.readexactly(2)
                n = second & 0x7f
                if n >= 126:
                    n = int.from_bytes(await self._stream.readexactly(2 if n == 126 else 8), "big")
                data = await self._stream.readexactly(n)
            except BROKEN as broken:
                if self.process is not None:
                    return b""
                raise ConnectionFailed("the terminal's connection broke") from broken
            opcode = first & 0x0f
            if opcode == 2 and data:
                return data
            if opcode == 9:
                await self._frame(10, data)
            elif opcode == 8:
                return b""
            elif opcode == 1:
                said = json.loads(data)
                if said.get("type") == "end":
                    self.process = Record(said["process"])
                    return b""

    def __aiter__(self) -> "AsyncTerminal":
        return self

    async def __anext__(self) -> bytes:
        data = await self.receive()
        if not data:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        """Ends the program, unless it was started with keep=True."""
        await self._stream.close()

    async def __aenter__(self) -> "AsyncTerminal":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.aclose()


__all__ = ["AsyncClient", "AsyncSandbox", "AsyncSession", "AsyncFunction", "AsyncProcess", "AsyncTerminal", "AsyncEvents",
           "AsyncAnswer", "AsyncFiles", "AsyncProcesses"]
