# SPDX-License-Identifier: MIT
"""The module `sbx` of a cell: tools that its run may call, over the channel of the interpreter.

    from sbx import tools, progress, ToolError
    tools.NAME(arg=1)                 dots and tools.call("group.name", {...}) do the same
    tools.search("words")             what may be called: name, description, signature
    tools.gather(tools.later.a(x=1), tools.later.b())
    await tools.aio.NAME(arg=1)

Events beside those of cells_python.py, and the frames that answer them:

    I  {"id", "type": "call", "call", "tool", "arguments"}
    I  {"id", "type": "search", "call", "text"}
    I  {"id", "type": "give_up", "call"}
    I  {"id", "type": "progress", "data": {"done", "total", "text"}}
    A  {"call", "ok", "value" | "error": {"type", "message", "hint"}}

At most AT_ONCE calls are under way; others wait here."""
import asyncio
import itertools
import json
import os
import select
import sys
import threading
import types

AT_ONCE = 8  # as the daemon has it (app/tools/code_run.h)
CALL_MAX = 1 << 20  # bytes of the arguments of a call, likewise
READ_SIZE = 256 * 1024
LOOK_S = 0.5  # between two looks whether the cell has ended
HEAD = 9


class ToolError(Exception):
    """A tool was not called, or failed: `type`, `message` and `hint` say why."""

    def __init__(self, error):
        self.type = str(error.get("type") or "Error")
        self.message = str(error.get("message") or "")
        self.hint = str(error.get("hint") or "")
        super().__init__(f"{self.type}: {self.message}" + (f" ({self.hint})" if self.hint else ""))


class Frames:
    """Frames of the daemon out of the bytes of the channel."""

    def __init__(self):
        self.received = bytearray()

    def take(self):
        """The next one as (kind, payload), or None."""
        if len(self.received) < HEAD:
            return None
        end = HEAD + int(self.received[1:HEAD], 16)
        if len(self.received) < end:
            return None
        kind, payload = chr(self.received[0]), bytes(self.received[HEAD:end])
        del self.received[:end]
        return kind, payload


class Caller:
    """Calls under way. Any thread may call; one of those that wait reads for all.

    Between two cells nobody reads here: the bytes belong to the interpreter. A thread that still waits then
    (`cells` has changed) gives up before it reads."""

    def __init__(self, channel, frames):
        self.channel, self.frames = channel, frames
        self.numbers = itertools.count(1)
        self.changed = threading.Condition()
        self.answers = {}  # number -> answer, or None while it is awaited
        self.reading = False
        self.cells = 0
        self.waiters = {}  # event loop -> futures that want to know of an answer

    def forget(self):
        """The cell has ended: an answer that comes now is nobody's."""
        with self.changed:
            self.answers = {}
            self.cells += 1
            waiters, self.waiters = self.waiters, {}
            for loop, futures in waiters.items():
                if not loop.is_closed():
                    loop.remove_reader(self.channel.fd)
                    loop.call_soon_threadsafe(self.tell, futures[:])
            self.changed.notify_all()

    def under_way(self):
        return sum(answer is None for answer in self.answers.values())

    def is_answered(self, number):
        return self.answers.get(number, True) is not None

    def read(self):
        """Puts answers in their places; with the lock, when there is something to read."""
        data = os.read(self.channel.fd, READ_SIZE)
        if not data:
            raise ToolError({"type": "Closed", "message": "the daemon is gone"})
        self.frames.received += data
        while (frame := self.frames.take()) is not None:
            kind, payload = frame
            if kind == "A":
                answer = json.loads(payload)
                if answer.get("call") in self.answers:
                    self.answers[answer["call"]] = answer
        self.changed.notify_all()
        for loop, futures in self.waiters.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.tell, futures[:])

    def read_for_all(self):
        """Waits for bytes; with the lock, which is free meanwhile."""
        cells, self.reading = self.cells, True
        self.changed.release()
        try:
            while cells == self.cells and not select.select([self.channel.fd], [], [], LOOK_S)[0]:
                pass
        finally:
            self.changed.acquire()
            self.reading = False
            self.changed.notify_all()
        if cells == self.cells:
            self.read()

    def wait_until(self, ready):
        """With the lock."""
        while not ready():
            if self.reading:
                self.changed.wait()
            else:
                self.read_for_all()

    def send(self, **fields):
        if self.channel.cell is None:
            raise ToolError({"type": "NotAllowed", "message": "no cell runs that may call tools"})
        if len(self.channel.encode(fields)) > CALL_MAX:
            raise ToolError({"type": "Budget", "message": f"budget of {CALL_MAX} bytes for the arguments of a call exceeded"})
        number = next(self.numbers)
        self.answers[number] = None
        self.channel.event(call=number, **fields)
        return number

    def give_up(self, number):
        if self.answers.pop(number, number) is None and self.channel.cell is not None:
            self.channel.event(type="give_up", call=number)

    def result(self, number):
        answer = self.answers.pop(number, None)
        if answer is None:
            raise ToolError({"type": "NotAllowed", "message": "the cell that called has ended"})
        if answer.get("ok"):
            return answer.get("value")
        raise ToolError(answer.get("error") or {})

    def ask(self, **fields):
        with self.changed:
            self.wait_until(lambda: self.under_way() < AT_ONCE)
            number = self.send(**fields)
            try:
                self.wait_until(lambda: self.is_answered(number))
            except BaseException:
                self.give_up(number)
                raise
            return self.result(number)

    def ask_all(self, wanted):
        """Results in their order; the first failure is raised when all have ended."""
        numbers, results = [], []
        with self.changed:
            try:
                for fields in wanted:
                    self.wait_until(lambda: self.under_way() < AT_ONCE)
                    numbers.append(self.send(**fields))
                self.wait_until(lambda: all(map(self.is_answered, numbers)))
            except BaseException:
                for number in numbers:
                    self.give_up(number)
                raise
            for number in numbers:
                try:
                    results.append(self.result(number))
                except ToolError as e:
                    results.append(e)
        for result in results:
            if isinstance(result, ToolError):
                raise result
        return results

    async def ask_soon(self, **fields):
        """The same in a coroutine: the loop goes on meanwhile."""
        await self.wait_soon(lambda: self.under_way() < AT_ONCE)
        with self.changed:
            number = self.send(**fields)
        try:
            await self.wait_soon(lambda: self.is_answered(number))
        except BaseException:
            self.give_up(number)
            raise
        return self.result(number)

    async def wait_soon(self, ready):
        loop = asyncio.get_running_loop()
        while not ready():
            told = loop.create_future()
            futures = self.waiters.setdefault(loop, [])
            if not futures:
                loop.add_reader(self.channel.fd, self.on_readable)
            futures.append(told)
            try:
                await told
            finally:
                if told in futures:
                    futures.remove(told)
                if not futures and self.waiters.get(loop) is futures:
                    del self.waiters[loop]
                    loop.remove_reader(self.channel.fd)

    def on_readable(self):
        with self.changed:
            if not self.reading and select.select([self.channel.fd], [], [], 0)[0]:
                self.read()

    @staticmethod
    def tell(futures):
        for told in futures:
            if not told.done():
                told.set_result(None)


class Later(dict):
    """A call that was not made yet: for gather()."""


class Name:
    """tools.a.b: called, it calls "a.b" in one of three ways."""

    def __init__(self, way, name=""):
        self.__dict__.update(_way=way, _name=name)

    def __getattr__(self, part):
        if part.startswith("__"):
            raise AttributeError(part)
        return Name(self._way, f"{self._name}.{part}" if self._name else part)

    def __call__(self, *positional, **arguments):
        if positional:
            raise TypeError(f"{self._name}: arguments of a tool have names")
        return self._way(type="call", tool=self._name, arguments=arguments)

    def __repr__(self):
        return f"<tool {self._name}>"


class Tools(Name):
    """The tools that this run may call."""

    def __init__(self, caller):
        super().__init__(caller.ask)
        self.__dict__.update(_caller=caller, later=Name(lambda **fields: Later(fields)), aio=Name(caller.ask_soon))

    def call(self, name, arguments=None):
        return self._caller.ask(type="call", tool=str(name), arguments=dict(arguments or {}))

    def search(self, words=""):
        return self._caller.ask(type="search", text=str(words))

    def gather(self, *calls):
        return self._caller.ask_all(calls)

    def __repr__(self):
        return "<tools: search(words) finds them>"


def make_module(caller):
    """Puts the module `sbx` where import finds it."""
    def progress(done, total=None, text=None):
        """Tells how far the program is."""
        if caller.channel.cell is not None:
            caller.channel.event(type="progress", data={"done": done, "total": total, "text": text})

    module = types.ModuleType("sbx", "Tools that this code may call.")
    module.__dict__.update(tools=Tools(caller), progress=progress, ToolError=ToolError)
    sys.modules["sbx"] = module
