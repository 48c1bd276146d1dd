# SPDX-License-Identifier: MIT
"""The client that waits; made by tools/make-clients: change that, or the table it reads, instead."""
from __future__ import annotations

import base64
import json
import os
import random
import struct
import time
from types import TracebackType
from typing import Any, Iterable, Iterator, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union
from urllib.parse import quote, urlencode

from . import types as t
from ._record import Event, Record, wrap
from ._streams import SyncStream
from ._where import find_secret, find_url
from .errors import ConnectionFailed, FunctionFailed, InvalidRequest, refusal

Contents = Union[bytes, str, Iterable[bytes]]
R = TypeVar("R")

BUSY_RETRIES = 5
BUSY_SECONDS = 5.0  # as long as one wait may be
IDLE_MAX = 16
CHUNK = 1 << 16
BROKEN = (OSError, EOFError, TimeoutError, ValueError)
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


class Answer:
    """An answer whose body is read as it comes."""

    def __init__(self, client: "Client", stream: SyncStream, status: int, headers: Dict[str, str], bodiless: bool):
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

    def _chunk(self) -> bytes:
        if self._over:
            return b""
        if self._chunked:
            n = int((self._stream.readline()).split(b";")[0], 16)
            data = self._stream.readexactly(n)
            self._stream.readexactly(2)
            if n == 0:
                self._end()
            return data
        data = self._stream.read(CHUNK if self._left is None else min(CHUNK, self._left))
        if self._left is None:
            self._over = not data
        elif not data:
            raise EOFError("the connection ended")
        else:
            self._left -= len(data)
            if self._left == 0:
                self._end()
        return data

    def chunks(self) -> Iterator[bytes]:
        """The body in pieces."""
        while True:
            try:
                data = self._chunk()
            except BROKEN as broken:
                self.close()
                raise ConnectionFailed(f"the answer broke off: {broken or 'no byte in time'}") from broken
            if not data:
                return
            yield data

    def read(self) -> bytes:
        """The whole body."""
        parts = []
        for data in self.chunks():
            parts.append(data)
        return b"".join(parts)

    def close(self) -> None:
        """Wants no more; the connection goes with it if the body is not over."""
        if not self._over:
            self._over = True
            self._stream.close()


class Events:
    """Events as they come. Leaving early closes the connection, which ends what was asked for."""

    def __init__(self, answer: Answer):
        self._answer = answer
        self._lines = self._read_lines()

    def _read_lines(self) -> Iterator[str]:
        rest = b""
        for chunk in self._answer.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r").decode("utf-8", "replace")

    def __iter__(self) -> "Events":
        return self

    def __next__(self) -> Event:
        name, id, data = "message", "", []
        for line in self._lines:
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
        raise StopIteration

    def close(self) -> None:
        self._answer.close()

    def __enter__(self) -> "Events":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Client:
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
        self._idle: List[SyncStream] = []

    # -- requests --

    def _keep(self, stream: SyncStream) -> None:
        if len(self._idle) < IDLE_MAX:
            self._idle.append(stream)

    def _connect(self) -> SyncStream:
        while self._idle:
            stream = self._idle.pop()
            if not stream.is_stale():
                return stream
            stream.close()
        try:
            return SyncStream.open(self._host, self._port, self._tls, self._timeout)
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
    def _read_head(stream: SyncStream) -> Tuple[int, Dict[str, str]]:
        while True:
            line = stream.readline()
            if not line:
                raise EOFError("the connection ended")
            status = int(line.split(b" ", 2)[1])
            headers: Dict[str, str] = {}
            while True:
                line = stream.readline()
                if line in (b"\r\n", b"\n", b""):
                    break
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            if status >= 200 or status == 101:
                return status, headers

    def _once(self, method: str, target: str, headers: Mapping[str, str], body: Optional[Contents]) -> Answer:
        stream = self._connect()
        try:
            if body is None or isinstance(body, (bytes, str)):
                data = body.encode() if isinstance(body, str) else body or b""
                length = {"Content-Length": str(len(data))} if body is not None or method in ("POST", "PUT") else {}
                stream.write(self._head(method, target, {**headers, **length}) + data)
            else:
                stream.write(self._head(method, target, {**headers, "Transfer-Encoding": "chunked"}))
                for part in body:
                    if part:
                        stream.write(b"%x\r\n%b\r\n" % (len(part), part))
                stream.write(b"0\r\n\r\n")
            status, answered = self._read_head(stream)
        except BaseException as broken:
            stream.close()
            if isinstance(broken, BROKEN):
                raise ConnectionFailed(f"{self.url}: {broken or 'no byte in time'}") from broken
            raise
        return Answer(self, stream, status, answered, method == "HEAD" or status in (204, 304))

    def request(self, method: str, target: str, *, body: Optional[Contents] = None,
                      headers: Optional[Mapping[str, str]] = None) -> Answer:
        """Any request; the answer is 2xx, or an error is raised."""
        again = body is None or isinstance(body, (bytes, str))
        broke = False
        for attempt in range(BUSY_RETRIES + 1):
            try:
                answer = self._once(method, target, headers or {}, body)
            except ConnectionFailed as failure:
                if broke or method not in ("GET", "HEAD") or isinstance(failure.__cause__, ConnectionRefusedError):
                    raise
                broke = True
                continue
            if answer.status < 300:
                return answer
            error = refusal(answer.status, answer.headers, answer.read())
            wait = getattr(error, "retry_after", 0)
            if answer.status != 503 or not again or not wait or attempt == BUSY_RETRIES:
                raise error
            time.sleep(min(wait, BUSY_SECONDS) * (0.5 + random.random() / 2))
        raise AssertionError("unreachable")

    def json(self, method: str, target: str, body: Any = None, kind: Callable[[Any], R] = Record) -> R:
        """The same with JSON both ways."""
        sent = None if body is None else json.dumps(body)
        answer = self.request(method, target, body=sent, headers={"Content-Type": "application/json"} if sent else {})
        said = answer.read()
        return kind(json.loads(said) if said else {})

    def events(self, method: str, target: str, body: Any = None,
                     headers: Optional[Mapping[str, str]] = None) -> Events:
        """The same with an answer that comes as events."""
        lines = {"Accept": "text/event-stream", "Content-Type": "application/json", **(headers or {})}
        return Events(self.request(method, target, body=None if body is None else json.dumps(body), headers=lines))

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- code in fresh sandboxes --

    @staticmethod
    def _execution(language: str, code: str, files: Optional[Mapping[str, Union[str, bytes]]], more: Dict[str, Any]) -> Dict[str, Any]:
        return _given(language=language, code=code, files=_files(files), **more)

    def execute(self, language: str, code: str, *, event: Optional[Mapping[str, Any]] = None, stdin: Optional[str] = None,
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
        answer = self.request("POST", "/execute", body=json.dumps(body),
                                    headers={"Content-Type": "application/json", "Prefer": "wait"})
        return t.ExecutionResult(json.loads(answer.read()))

    def execute_stream(self, language: str, code: str, **more: Any) -> Events:
        """The same as events: stdout, stderr and progress as they come, then result. Closing it cancels the run."""
        body = self._execution(language, code, more.pop("files", None), more)
        return self.events("POST", "/execute", body)

    def submit(self, language: str, code: str, **more: Any) -> str:
        """Runs code without waiting: the id of the execution."""
        body = self._execution(language, code, more.pop("files", None), more)
        answer = self.request("POST", "/execute", body=json.dumps(body),
                                    headers={"Content-Type": "application/json", "Prefer": "respond-async"})
        return str(json.loads(answer.read())["execution_id"])

    def execution(self, id: str) -> t.Execution:
        return self.json("GET", f"/v1/executions/{_part(id)}", kind=t.Execution)

    def executions(self, **query: Any) -> t.Executions:
        return self.json("GET", "/v1/executions" + ("?" + urlencode(query) if query else ""), kind=t.Executions)

    def watch_execution(self, id: str, after: str = "") -> Events:
        """What it has printed and prints, then its result; `after` is the id of the last event that was seen."""
        return self.events("GET", f"/v1/executions/{_part(id)}", headers={"Last-Event-ID": after} if after else {})

    def cancel(self, id: str) -> None:
        """Ends an execution, or forgets one that has ended."""
        (self.request("DELETE", f"/v1/executions/{_part(id)}")).read()

    def artifact(self, id: str, path: str) -> bytes:
        return (self.request("GET", f"/v1/executions/{_part(id)}/artifacts/{quote(path)}")).read()

    # -- functions --

    def call(self, language: str, code: str, function: Optional[str] = None, args: Any = None, kwargs: Optional[Mapping[str, Any]] = None,
                   *, schema: Any = None, timeout: Optional[float] = None, engine: Optional[str] = None,
                   isolation: Optional[str] = None, packages: Any = None, options: Optional[Mapping[str, Any]] = None,
                   args_mode: Optional[str] = None, auto_mode_threshold: Optional[int] = None, stdin: Optional[str] = None,
                   webhook: Any = None) -> t.FunctionResult:
        """Calls one function of a piece of code, once. A function that fails is a result, too."""
        return self.json("POST", "/v1/functions/call", _given(
            language=language, code=code, functionName=function, args=args, kwargs=kwargs, schema=schema, timeout=timeout,
            engine=engine, isolation=isolation, packages=packages, options=options, argsMode=args_mode,
            autoModeThreshold=auto_mode_threshold, stdin=stdin, webhook=webhook), t.FunctionResult)

    def function(self, language: str, code: str, name: Optional[str] = None, **more: Any) -> "Function":
        """A function of a piece of code as one of Python: it returns, or raises FunctionFailed."""
        return Function(self, language, code, name, more)

    def inspect(self, language: str, code: str) -> t.Inspection:
        """The functions of a piece of code, which is not run."""
        return self.json("POST", "/v1/functions/inspect", {"language": language, "code": code}, t.Inspection)

    def session(self, language: str, code: str, *, timeout: Optional[float] = None, idle_timeout: Optional[float] = None,
                      engine: Optional[str] = None, isolation: Optional[str] = None, packages: Any = None,
                      options: Optional[Mapping[str, Any]] = None) -> "Session":
        """Loads code once, to call its functions often."""
        made = self.json("POST", "/v1/sessions", _given(
            language=language, code=code, timeout=timeout, idleTimeout=idle_timeout, engine=engine, isolation=isolation,
            packages=packages, options=options), t.FunctionResult)
        return Session(self, str(made["id"]))

    def sessions(self) -> List[t.Session]:
        return [t.Session(s) for s in (self.json("GET", "/v1/sessions"))["sessions"]]

    # -- sandboxes --

    def sandbox(self, **wishes: Any) -> "Sandbox":
        """Makes a persistent sandbox; see Sandbox for what can be wished."""
        return Sandbox(client=self, **wishes).start()

    def sandboxes(self, **query: Any) -> List[t.Sandbox]:
        """Those there are, of all pages; state= and metadata= choose."""
        found: List[t.Sandbox] = []
        while True:
            page = self.json("GET", "/v1/sandboxes" + ("?" + urlencode(query) if query else ""))
            found += [t.Sandbox(s) for s in page["sandboxes"]]
            if not page.get("next"):
                return found
            query["after"] = page["next"]

    # -- packages, and the daemon itself --

    def install(self, name: Optional[str] = None, *, python: Optional[List[str]] = None,
                      npm: Optional[List[str]] = None) -> t.PackageSet:
        return self.json("POST", "/v1/packages", _given(name=name, python=python, npm=npm), t.PackageSet)

    def packages(self) -> List[t.PackageSet]:
        return [t.PackageSet(p) for p in (self.json("GET", "/v1/packages"))["packages"]]

    def uninstall(self, name: str) -> None:
        (self.request("DELETE", f"/v1/packages/{_part(name)}")).read()

    def health(self) -> t.Health:
        return self.json("GET", "/health", kind=t.Health)

    def capabilities(self) -> t.Capabilities:
        return self.json("GET", "/v1/capabilities", kind=t.Capabilities)


def _value_of(result: t.FunctionResult) -> Any:
    if result.get("success"):
        return wrap(result.get("result"))
    error = result.get("error") or {}
    raise FunctionFailed(error.get("type") or str(result.get("status")), error.get("message") or "", error.get("stack") or "", result)


class Function:
    """See Client.function()."""

    def __init__(self, client: Client, language: str, code: str, name: Optional[str], more: Dict[str, Any]):
        self._client, self._language, self._code, self._name, self._more = client, language, code, name, more

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _value_of(self._client.call(self._language, self._code, self._name, list(args), kwargs or None, **self._more))


class Session:
    """Code that was loaded once; its variables stay between calls."""

    def __init__(self, client: Client, id: str):
        self._client, self.id, self._path = client, id, f"/v1/sessions/{_part(id)}"

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """What the function returns; FunctionFailed if it fails."""
        return _value_of(self.result(function, list(args), kwargs or None))

    def result(self, function: str, args: Any = None, kwargs: Optional[Mapping[str, Any]] = None, *, schema: Any = None,
                     timeout: Optional[float] = None, options: Optional[Mapping[str, Any]] = None) -> t.FunctionResult:
        """The whole result of a call, also of one that failed."""
        return self._client.json("POST", self._path + "/call", _given(
            functionName=function, args=args, kwargs=kwargs, schema=schema, timeout=timeout, options=options), t.FunctionResult)

    def stream(self, function: str, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """The items of a generator, as they are made."""
        events = self._client.events("POST", self._path + "/call", _given(
            functionName=function, args=list(args), kwargs=kwargs or None))
        try:
            for event in events:
                if event.name == "item":
                    yield event.data
                elif event.name == "result":
                    _value_of(t.FunctionResult(event.data))
        finally:
            events.close()

    def describe(self) -> t.Session:
        return self._client.json("GET", self._path, kind=t.Session)

    def reset(self, level: str = "soft") -> t.FunctionResult:
        return self._client.json("POST", self._path + "/reset", {"level": level}, t.FunctionResult)

    def close(self) -> None:
        """Ends it."""
        (self._client.request("DELETE", self._path)).read()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Sandbox:
    """A persistent sandbox: commands, files, processes, terminals, live interpreters.

    `with Sandbox() as s` makes one and removes it at the end; Sandbox.connect(name) is one that exists.
    """

    def __init__(self, name: Optional[str] = None, *, client: Optional[Client] = None, env: Optional[Mapping[str, str]] = None,
                 limits: Optional[Mapping[str, int]] = None, network: Union[None, str, Mapping[str, Any]] = None, packages: Any = None,
                 isolation: Optional[str] = None, timeout: Optional[int] = None, lifetime: Optional[int] = None,
                 on_end: Optional[str] = None, auto_resume: Optional[bool] = None,
                 metadata: Optional[Mapping[str, str]] = None, template: Optional[str] = None, home: Optional[str] = None,
                 private_ports: Optional[bool] = None):
        self._client, self._owns_client = client or Client(), client is None
        self._wishes = _given(name=name, env=env, limits=limits, network=network, packages=packages, isolation=isolation,
                              timeout=timeout, lifetime=lifetime, on_end=on_end, auto_resume=auto_resume, metadata=metadata,
                              template=template, home=home, private_ports=private_ports)
        self.id, self._made = "", False
        self.name = name or ""
        self.files = Files(self)
        self.processes = Processes(self)

    @classmethod
    def connect(cls, name: str = "default", client: Optional[Client] = None) -> "Sandbox":
        """One that exists, by id or name; leaving `with` does not remove it."""
        found = cls(name, client=client)
        found.id = name
        return found

    def start(self) -> "Sandbox":
        """Makes it, unless it was made."""
        if not self.id:
            made = self._client.json("POST", "/v1/sandboxes", self._wishes, t.Sandbox)
            self.id, self.name, self._made = str(made["id"]), str(made["name"]), True
        return self

    @property
    def path(self) -> str:
        if not self.id:
            raise InvalidRequest("the sandbox was not made yet", "use it in a with statement, or call start()")
        return f"/v1/sandboxes/{_part(self.id)}"

    def describe(self) -> t.Sandbox:
        return self._client.json("GET", self.path, kind=t.Sandbox)

    def pause(self) -> t.Sandbox:
        return self._client.json("POST", self.path + "/pause", kind=t.Sandbox)

    def resume(self) -> t.Sandbox:
        return self._client.json("POST", self.path + "/resume", kind=t.Sandbox)

    def set_lifetime(self, seconds: int) -> t.Sandbox:
        return self._client.json("POST", self.path + "/lifetime", {"lifetime": seconds}, t.Sandbox)

    def network(self) -> t.SandboxNetwork:
        """What it may reach, and what it has reached."""
        return self._client.json("GET", self.path + "/network", kind=t.SandboxNetwork)

    def set_network(self, rules: Union[str, Mapping[str, Any]]) -> t.SandboxNetwork:
        """Replaces what it may reach."""
        return self._client.json("PUT", self.path + "/network", rules, t.SandboxNetwork)

    def remove(self) -> None:
        """Ends everything in it."""
        (self._client.request("DELETE", self.path)).read()
        self.id = ""

    def close(self) -> None:
        """Removes it if this object made it."""
        try:
            if self.id and self._made:
                self.remove()
        finally:
            if self._owns_client:
                self._client.close()

    def __enter__(self) -> "Sandbox":
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.close()

    # -- commands --

    def run(self, cmd: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None,
                  timeout: Optional[float] = None, stdin: Optional[str] = None) -> t.CommandResult:
        """A command of the shell, until it has ended."""
        return self._client.json("POST", self.path + "/run", _given(cmd=cmd, cwd=cwd, env=env, timeout=timeout, stdin=stdin),
                                       t.CommandResult)

    # -- live interpreters --

    def run_code(self, code: str, language: Optional[str] = None, *, context: Optional[str] = None,
                       env: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None) -> t.CellResult:
        """Runs a cell; variables stay for the next one."""
        return self._client.json("POST", self.path + "/cells", _given(
            code=code, language=language, context=context, env=env, timeout=timeout), t.CellResult)

    def run_code_stream(self, code: str, language: Optional[str] = None, **more: Any) -> Events:
        """The same as events: started, stdout, stderr, display, clear, error, end. Closing it interrupts the cell."""
        return self._client.events("POST", self.path + "/cells", _given(code=code, language=language, **more))

    def create_context(self, language: Optional[str] = None, *, cwd: Optional[str] = None) -> t.Context:
        return self._client.json("POST", self.path + "/contexts", _given(language=language, cwd=cwd), t.Context)

    def contexts(self) -> List[t.Context]:
        return [t.Context(c) for c in (self._client.json("GET", self.path + "/contexts"))["contexts"]]

    def restart_context(self, id: str) -> t.Context:
        return self._client.json("POST", f"{self.path}/contexts/{_part(id)}/restart", kind=t.Context)

    def interrupt_context(self, id: str) -> t.Context:
        return self._client.json("POST", f"{self.path}/contexts/{_part(id)}/interrupt", kind=t.Context)

    def remove_context(self, id: str) -> None:
        (self._client.request("DELETE", f"{self.path}/contexts/{_part(id)}")).read()

    # -- terminals and ports --

    def terminal(self, command: Optional[str] = None, *, columns: int = 80, rows: int = 24, cwd: Optional[str] = None,
                       keep: bool = False) -> "Terminal":
        """A shell, or a command, in a terminal."""
        query = _given(command=command, columns=columns, rows=rows, cwd=cwd, keep="true" if keep else "false")
        return Terminal.open(self._client, f"{self.path}/terminals?{urlencode(query)}")

    def port_url(self, port: int, path: str = "/") -> str:
        """Where a server that listens inside is reached, with the secret."""
        return f"{self._client.url}{self.path}/ports/{port}{path}"


class Files:
    """Files of a sandbox. Paths are absolute, or begin where commands do."""

    def __init__(self, sandbox: Sandbox):
        self._sandbox = sandbox

    def _url(self, path: str) -> str:
        if not path.startswith("/"):
            path = "/workspace/" + path
        return f"{self._sandbox.path}/files{quote(path)}"

    def _post(self, verb: str, kind: Callable[[Any], R] = Record, **body: Any) -> R:
        return self._sandbox._client.json("POST", f"{self._sandbox.path}/files/{verb}", _given(**body), kind)

    def read(self, path: str) -> bytes:
        return (self._sandbox._client.request("GET", self._url(path))).read()

    def read_text(self, path: str) -> str:
        return (self.read(path)).decode()

    def open(self, path: str) -> Answer:
        """Its bytes as they come: `chunks()`."""
        return self._sandbox._client.request("GET", self._url(path))

    def write(self, path: str, data: Contents) -> t.FileWritten:
        """A text, bytes, or pieces as they come."""
        answer = self._sandbox._client.request("PUT", self._url(path), body=data,
                                                     headers={"Content-Type": "application/octet-stream"})
        return t.FileWritten(json.loads(answer.read()))

    def write_tar(self, path: str, tar: Contents) -> t.FileWritten:
        """Unpacks a tar archive into a directory."""
        answer = self._sandbox._client.request("PUT", self._url(path) + "?archive=tar", body=tar,
                                                     headers={"Content-Type": "application/x-tar"})
        return t.FileWritten(json.loads(answer.read()))

    def read_tar(self, path: str) -> Answer:
        """A directory as a tar archive: `chunks()` or `read()`."""
        return self._sandbox._client.request("GET", self._url(path) + "?archive=tar")

    def stat(self, path: str) -> t.FileEntry:
        return self._post("stat", t.FileEntry, path=path)

    def exists(self, path: str) -> bool:
        return bool((self._post("exists", path=path))["exists"])

    def list(self, path: str = ".", depth: int = 1) -> List[t.FileEntry]:
        """What is in a directory and so many levels below."""
        found: List[t.FileEntry] = []
        after: Optional[str] = None
        while True:
            page = self._post("list", path=path, depth=depth, after=after)
            found += [t.FileEntry(e) for e in page["entries"]]
            after = page["next"]
            if after is None:
                return found

    def move(self, source: str, to: str, replace: bool = False) -> t.FileEntry:
        return self._post("move", t.FileEntry, **{"from": source, "to": to, "replace": replace})

    def copy(self, source: str, to: str, replace: bool = False) -> t.FileEntry:
        return self._post("copy", t.FileEntry, **{"from": source, "to": to, "replace": replace})

    def remove(self, path: str, recursive: bool = False) -> None:
        url = self._url(path) + ("?recursive=true" if recursive else "")
        (self._sandbox._client.request("DELETE", url)).read()

    def watch(self, path: str = ".", recursive: bool = False, entries: bool = False) -> Events:
        """What happens in a directory, from the event `ready` on."""
        return self._sandbox._client.events("POST", self._sandbox.path + "/files/watch",
                                                  {"path": path, "recursive": recursive, "entries": entries})

    def sign(self, path: str, method: str = "GET", expires_in: Optional[int] = None) -> t.FileUrl:
        """A URL that opens this file without the secret."""
        return self._post("sign", t.FileUrl, path=path, method=method, expires_in=expires_in)


class Processes:
    """Processes of a sandbox that outlive their request."""

    def __init__(self, sandbox: Sandbox):
        self._sandbox = sandbox

    def start(self, command: Optional[str] = None, *, argv: Optional[List[str]] = None, cwd: Optional[str] = None,
                    env: Optional[Mapping[str, str]] = None, tag: Optional[str] = None, stdin: Optional[bool] = None,
                    terminal: Optional[Mapping[str, int]] = None, timeout: Optional[float] = None) -> "Process":
        made = self._sandbox._client.json("POST", self._sandbox.path + "/processes", _given(
            command=command, argv=argv, cwd=cwd, env=env, tag=tag, stdin=stdin, terminal=terminal, timeout=timeout))
        return Process(self._sandbox, str(made["id"]), int(made["pid"]))

    def list(self) -> List[t.SandboxProcess]:
        found = self._sandbox._client.json("GET", self._sandbox.path + "/processes")
        return [t.SandboxProcess(p) for p in found["processes"]]

    def get(self, process: Union[str, int]) -> "Process":
        """By its number, id or tag."""
        found = self._sandbox._client.json("GET", f"{self._sandbox.path}/processes/{_part(str(process))}")
        return Process(self._sandbox, str(found["id"]), int(found["pid"]))


class Process:
    def __init__(self, sandbox: Sandbox, id: str, pid: int):
        self._sandbox, self.id, self.pid = sandbox, id, pid
        self._path = f"{sandbox.path}/processes/{_part(id)}"

    def describe(self) -> t.SandboxProcess:
        return self._sandbox._client.json("GET", self._path, kind=t.SandboxProcess)

    def output(self, start: Union[int, str] = 0) -> Iterator[Tuple[str, bytes]]:
        """("stdout" or "stderr" or "terminal", bytes) from a byte on, or from "now", until it has ended."""
        events = self._sandbox._client.events("GET", f"{self._path}/output?from={start}")
        try:
            for event in events:
                if event.name == "end":
                    return
                if event.name in ("stdout", "stderr", "terminal"):
                    yield event.name, base64.b64decode(event.data["data"])
        finally:
            events.close()

    def wait(self) -> t.SandboxProcess:
        """Until it and its streams have ended: how it did."""
        for _ in self.output("now"):
            pass
        return self.describe()

    def write(self, data: Union[bytes, str]) -> None:
        """To its standard input, which was kept open by stdin=True."""
        (self._sandbox._client.request("POST", self._path + "/stdin", body=data)).read()

    def close_stdin(self) -> None:
        (self._sandbox._client.request("DELETE", self._path + "/stdin")).read()

    def signal(self, name: str, to: str = "group") -> None:
        self._sandbox._client.json("POST", self._path + "/signal", {"signal": name, "to": to})

    def resize(self, columns: int, rows: int) -> None:
        self._sandbox._client.json("POST", self._path + "/size", {"columns": columns, "rows": rows})

    def kill(self) -> None:
        (self._sandbox._client.request("DELETE", self._path)).read()

    def terminal(self) -> "Terminal":
        """The terminal of a process that has one."""
        path = f"{self._sandbox.path}/terminals/{_part(self.id)}"
        return Terminal.open(self._sandbox._client, path)


class Terminal:
    """Keys in, bytes out: `for data in terminal`. `process` tells how it ended."""

    def __init__(self, stream: SyncStream):
        self._stream = stream
        self.process: Optional[Record] = None

    @classmethod
    def open(cls, client: Client, target: str) -> "Terminal":
        stream = SyncStream.open(client._host, client._port, client._tls, None)
        key = base64.b64encode(os.urandom(16)).decode()
        stream.write(client._head("GET", target, {
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}))
        status, headers = client._read_head(stream)
        if status != 101:
            error = refusal(status, headers, Answer(client, stream, status, {**headers, "connection": "close"}, False).read())
            stream.close()
            raise error
        return cls(stream)

    def _frame(self, opcode: int, data: bytes) -> None:
        n, key = len(data), os.urandom(4)
        head = bytes([0x80 | opcode])
        if n < 126:
            head += bytes([0x80 | n])
        elif n < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, n)
        else:
            head += struct.pack(">BQ", 0x80 | 127, n)
        whole = int.from_bytes(data, "big") ^ int.from_bytes((key * (n // 4 + 1))[:n], "big")
        self._stream.write(head + key + whole.to_bytes(n, "big"))

    def send(self, data: Union[bytes, str]) -> None:
        """Keys."""
        self._frame(2, data.encode() if isinstance(data, str) else data)

    def resize(self, columns: int, rows: int) -> None:
        self._frame(1, json.dumps({"type": "resize", "columns": columns, "rows": rows}).encode())

    def signal(self, name: str) -> None:
        self._frame(1, json.dumps({"type": "signal", "signal": name}).encode())

    def receive(self) -> bytes:
        """What it shows next; b"" at its end."""
        while True:
            try:
                first, second = self._stream.readexactly(2)
                n = second & 0x7f
                if n >= 126:
                    n = int.from_bytes(self._stream.readexactly(2 if n == 126 else 8), "big")
                data = self._stream.readexactly(n)
            except BROKEN as broken:
                if self.process is not None:
                    return b""
                raise ConnectionFailed("the terminal's connection broke") from broken
            opcode = first & 0x0f
            if opcode == 2 and data:
                return data
            if opcode == 9:
                self._frame(10, data)
            elif opcode == 8:
                return b""
            elif opcode == 1:
                said = json.loads(data)
                if said.get("type") == "end":
                    self.process = Record(said["process"])
                    return b""

    def __iter__(self) -> "Terminal":
        return self

    def __next__(self) -> bytes:
        data = self.receive()
        if not data:
            raise StopIteration
        return data

    def close(self) -> None:
        """Ends the program, unless it was started with keep=True."""
        self._stream.close()

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


__all__ = ["Client", "Sandbox", "Session", "Function", "Process", "Terminal", "Events",
           "Answer", "Files", "Processes"]
