# SPDX-License-Identifier: MIT
"""Calls functions of a program, as a handler that wrap/python.py runs: one, or in a session many.

The event says what to call and where the arguments are: in the event as a literal (inline) or as
JSON, on standard input as a SIP packet, or in a file. The value, or what went wrong, is sent over
descriptor 3 from here, because a function may return more than a handler may: sets, generators,
bytes and objects have a JSON form, at any depth. Stacks show the program's own frames and lines.
"""
import os
import sys
from errno import EACCES, EPERM, EROFS
from _io import StringIO
from _json import encode_basestring, encode_basestring_ascii, make_encoder

CHANNEL = 3
HEAD = 9
ANONYMOUS = "__anonymous_wrapper__"
STACK_MAX = 64 * 1024
MESSAGE_MAX = 16 * 1024
REFUSED = (EPERM, EACCES, EROFS)  # the caller is told which path
READ_SIZE = 256 * 1024

Module, Function = type(sys), type(lambda: None)


# ---- the channel ----


def send(kind, payload):
    data = memoryview(b"%c%08x" % (ord(kind), len(payload)) + payload)
    while data:
        data = data[os.write(CHANNEL, data):]


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass  # closed by the program: nothing to save


# ---- JSON ----


def decode(text):
    import json
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(text)
    finally:
        sys.set_int_max_str_digits(limit)


def slots(kind):
    """The public ones, those of the first class first."""
    names = []
    for base in reversed(kind.__mro__):
        own = base.__dict__.get("__slots__", ())
        names += [own] if isinstance(own, str) else own
    return [k for k in names if not k.startswith("_")]


def convert(value):
    """What JSON has no word for becomes what comes closest, or an error."""
    kind = type(value)
    if isinstance(value, (set, frozenset)):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "replace")
    for name in ("to_dict", "tolist"):
        method = getattr(kind, name, None)
        if callable(method):
            return method(value)
    if "enum" in sys.modules and isinstance(value, sys.modules["enum"].Enum):
        return value.value
    if not isinstance(value, (type, BaseException)) and not callable(value):
        if hasattr(kind, "__iter__"):
            return list(value)
        if hasattr(value, "__dict__") and kind is not Module:
            return {k: v for k, v in vars(value).items() if not k.startswith("_")}
        names = slots(kind)
        if names:
            return {k: getattr(value, k) for k in names if hasattr(value, k)}
    raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")


def encode(value):
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        def text(strings):
            return "".join(make_encoder({}, convert, strings, None, ":", ",", False, False, False)(
                value, 0))
        try:
            return text(encode_basestring).encode()
        except UnicodeEncodeError:  # lone surrogates travel as escapes
            return text(encode_basestring_ascii).encode()
    finally:
        sys.set_int_max_str_digits(limit)


# ---- the program ----


def lines_of(source):
    """As the compiler counts them, which ends no line at a form feed or U+2028 as splitlines() does, and
    as linecache keeps them: carets are placed by the line break at the end."""
    lines = list(StringIO(source, None))
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def load(source, path, is_body):
    import linecache
    linecache.cache[path] = (len(source), None, lines_of(source), path)
    module = Module("user_code")
    vars(module).update(__file__=path, __builtins__=__builtins__)
    sys.modules["user_code"] = module
    folder = os.path.dirname(path)
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    sys.argv = [path]
    if not is_body:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        return module
    import ast
    tree = ast.parse(source, path)
    if any(isinstance(node, (ast.Return, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Yield, ast.YieldFrom))
           for node in own_nodes(tree)):
        exec(compile(as_function(tree), path, "exec", dont_inherit=True), vars(module))
    else:
        setattr(module, ANONYMOUS, as_script(compile(tree, path, "exec", dont_inherit=True), module))
    return module


def as_script(code, module):
    """A body that returns nothing is a script: its variables are global, and it is the main program."""
    def run(*args, **kwargs):
        vars(module).update(__name__="__main__", args=args, kwargs=kwargs)
        exec(code, vars(module))

    return run


def as_function(tree):
    """The program as the body of a function: nothing is indented, so lines and strings stay."""
    import ast
    made = ast.parse(f"def {ANONYMOUS}(*args, **kwargs):\n    pass\n")
    function = made.body[0]
    if any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in own_nodes(tree)):
        function = made.body[0] = ast.copy_location(
            ast.AsyncFunctionDef(**{k: v for k, v in ast.iter_fields(function)}), function)
    function.body = tree.body or function.body
    return ast.fix_missing_locations(made)


def own_nodes(tree):
    """Without those of functions and classes inside."""
    import ast
    todo = list(tree.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def find(module, name):
    thing = module
    for part in name.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            raise AttributeError(f"Function '{name}' not found") from None
    if not callable(thing):
        raise TypeError(f"'{name}' is not a function but {type(thing).__name__}")
    return thing


# ---- arguments ----


def read_packet():
    """SIP, mode A: one byte, eight hexadecimal digits, the payload."""
    def exactly(n):
        data = bytearray()
        while len(data) < n:
            chunk = os.read(0, n - len(data))
            if not chunk:
                raise EOFError("the packet with the arguments is not complete")
            data += chunk
        return bytes(data)

    head = exactly(HEAD)
    return decode(exactly(int(head[1:], 16)))


def arguments(event):
    mode = event["mode"]
    if mode == "stdin":
        given = read_packet()
    elif mode == "file":
        with open(event["request"], "rb") as f:
            given = decode(f.read())
        os.unlink(event["request"])  # nothing of ours among the program's files
    elif "literal" in event:
        args, kwargs = eval(event["literal"], {"__builtins__": {}})
        return args, kwargs, event.get("holes", ())
    else:
        given = event["given"]
    return given["args"], given["kwargs"], given.get("holes", ())


def bind(function, args, kwargs, holes):
    """Fills holes and positional-only parameters from the names; a hole that stays keeps its
    default."""
    code = getattr(function, "__code__", None)
    if code is None or type(function) is not Function:
        return args, kwargs
    names = code.co_varnames[:code.co_argcount]
    defaults = function.__defaults__ or ()
    first = len(names) - len(defaults)
    args, kwargs = list(args), dict(kwargs)
    for i in [*holes, *(i for i, name in enumerate(names[:len(args)]) if args[i] is None and name in kwargs
                        and i not in holes)]:
        if i >= len(names):
            continue  # beyond the named ones: None
        if names[i] in kwargs:
            args[i] = kwargs.pop(names[i])
        elif i >= first:
            args[i] = defaults[i - first]
        else:
            raise TypeError(f"{function.__name__}() missing 1 required positional argument: "
                            f"'{names[i]}'")
    for name in names[len(args):code.co_posonlyargcount]:
        if name not in kwargs:
            break
        args.append(kwargs.pop(name))
    return args, kwargs


def run_once(coroutine):
    import asyncio
    return asyncio.run(coroutine)


def settle(value, run=run_once):
    """Waits for what has to be awaited."""
    if hasattr(type(value), "__await__"):
        async def wait():
            return await value

        value = run(wait())
    return value


def drain(value, run=run_once):
    """The items of an asynchronous generator as a list; anything else as it is."""
    if hasattr(type(value), "__anext__"):
        async def collect():
            return [item async for item in value]

        value = run(collect())
    return value


def stream(value, item, run=run_once):
    """Hands the items of a generator to item(); returns what the generator returned."""
    if hasattr(type(value), "__anext__"):
        async def hand_over():
            try:
                async for one in value:
                    item(one)
            finally:
                if hasattr(value, "aclose"):
                    await value.aclose()

        return run(hand_over())
    if not hasattr(type(value), "__next__"):
        return value
    try:
        while True:
            item(next(value))
    except StopIteration as e:
        return e.value
    finally:
        if hasattr(value, "close"):
            value.close()


# ---- failing ----


def user_frames(trace):
    """The traceback without our own frames, and without the event loop's in front."""
    first = last = None
    while trace is not None:
        names = trace.tb_frame.f_globals
        ours = names is globals() or (first is None and
                                      f"{names.get('__name__')}.".startswith(("asyncio.", "importlib.", "ast.")))
        following, trace.tb_next = trace.tb_next, None
        if not ours:
            if first is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = following
    return first


def text_of(e):
    try:
        return str(e)
    except BaseException:
        return "<exception str() failed>"


def describe(e):
    try:
        import traceback
        e.__traceback__ = user_frames(e.__traceback__)
        return "".join(traceback.format_exception(type(e), e, e.__traceback__))
    except BaseException:
        return f"{type(e).__name__}: {text_of(e)}\n"


def as_json(e):
    stack = describe(e)
    if len(stack) > STACK_MAX:
        stack = stack[:STACK_MAX // 2] + "\n...\n" + stack[-STACK_MAX // 2:]
    told = {"type": type(e).__name__, "message": text_of(e)[:MESSAGE_MAX], "stack": stack}
    if isinstance(e, OSError) and e.errno in REFUSED and isinstance(e.filename, str):
        told["path"] = os.path.abspath(e.filename2 or e.filename)
    return encode(told)


def report(e):
    send("E", as_json(e))


def exit_error(e):
    """What is told of a program that called sys.exit()."""
    if e.code is not None and not isinstance(e.code, int):
        return e
    return SystemExit(f"the program called sys.exit({e.code if e.code is not None else ''})")


def exit_code(e):
    if isinstance(e.code, int) and e.code & 255:
        return e.code & 255
    return 1


# ---- a session ----


class Session:
    """Stays: reads packets from the channel (SIP, modes P and S) and answers each of them. An
    answer begins with the packet's token. SIGINT ends a call, and nothing else."""

    def __init__(self, event):
        self.event, self.token, self.pid = event, event["token"].encode(), os.getpid()
        self.file = os.path.abspath(event["file"])  # now: the program may go elsewhere
        self.module = self.loop = None
        self.data = bytearray()
        self.busy = self.guarded = self.pending = False

    # -- the channel --

    def answer(self, kind, payload=b""):
        if os.getpid() != self.pid:
            os._exit(0)  # a copy that the program made has nothing to tell
        flush()
        send(kind, self.token + payload)

    def farewell(self, e, code):
        self.busy = False
        self.answer("F", as_json(e))
        raise SystemExit(code) from None

    def receive(self):
        """The next packet; ends the process when the daemon has let go."""
        data = self.data
        while True:
            if len(data) >= HEAD:
                end = HEAD + int(data[1:HEAD], 16)
                if len(data) >= end:
                    kind, payload = chr(data[0]), bytes(memoryview(data)[HEAD:end])
                    del data[:end]
                    return kind, payload
            try:
                chunk = os.read(CHANNEL, READ_SIZE)
            except BlockingIOError:
                import select
                select.select([CHANNEL], [], [])
                continue
            if not chunk:
                raise SystemExit(0)
            data += chunk

    # -- interruptions --

    def on_signal(self, number, frame):
        if self.guarded:
            self.pending = True  # not in the middle of a frame
        elif self.busy:
            raise KeyboardInterrupt("the call was interrupted")

    def item(self, value):
        payload = check_size(encode(value), self.event["resultMax"], "item")
        self.guarded = True
        try:
            send("I", self.token + payload)
        finally:
            self.guarded = False
        if self.pending:
            self.pending = False
            raise KeyboardInterrupt("the call was interrupted")

    # -- calls --

    def run(self, coroutine):
        """One event loop for all calls, so that what belongs to it lives on."""
        import asyncio
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                try:
                    self.loop.run_until_complete(task)
                except BaseException:
                    pass  # what ended it is on its way already
            raise

    def call(self, kind, packet):
        function = find(self.module, packet["functionName"])
        args, kwargs = bind(function, packet["args"], packet["kwargs"], packet.get("holes", ()))
        value = settle(function(*args, **kwargs), self.run)
        value = stream(value, self.item, self.run) if kind == "S" else drain(value, self.run)
        return check_size(encode(value), self.event["resultMax"])

    def turn(self, kind, packet):
        try:
            self.busy = True
            send("B", self.token)
            payload = self.call(kind, packet)
            self.busy = False
        except SystemExit as e:
            self.farewell(exit_error(e), exit_code(e))
        except BaseException as e:
            self.busy = False
            kind, payload = "E", as_json(e)
        return "R" if kind != "E" else "E", payload

    def load(self):
        try:
            self.module = load(self.event["code"].removeprefix("\ufeff"), self.file, False)
        except SystemExit as e:
            self.farewell(exit_error(e), exit_code(e))
        except BaseException as e:
            self.farewell(e, 1)
        self.answer("Y")

    def reload(self):
        """As if nothing of the program had ever run; what it did elsewhere stays."""
        import importlib
        folder = os.path.dirname(self.file)
        for name, module in list(sys.modules.items()):
            if os.path.dirname(getattr(module, "__file__", None) or "/") == folder:
                del sys.modules[name]
        importlib.invalidate_caches()
        if self.loop is not None and not self.loop.is_closed():
            self.loop.close()
        self.loop = None
        self.load()

    def serve(self):
        import signal
        signal.signal(signal.SIGINT, self.on_signal)
        self.load()
        while True:
            kind, payload = self.receive()
            if kind == "Z":
                self.token = payload
                self.reload()
                continue
            packet = decode(payload)
            self.token, self.pending = packet.pop("token").encode(), False
            try:
                kind, payload = self.turn(kind, packet)
            except KeyboardInterrupt as e:  # when the call had just ended
                self.busy = False
                kind, payload = "E", as_json(e)
            del packet
            self.answer(kind, payload)


# ---- the call ----


def check_size(payload, most, what="returned value"):
    if len(payload) > most:
        raise ValueError(f"the {what} has {len(payload)} bytes as JSON, at most {most} are allowed")
    return payload


def lend_progress():
    """The module `sbx`: a function tells how far it is."""
    def progress(done, total=None, text=None):
        send("P", encode({"done": done, "total": total, "text": text}))

    module = Module("sbx", "Tells the caller of a function how far it is.")
    module.progress = progress
    sys.modules["sbx"] = module


def handler(event):
    if event["mode"] == "session":
        Session(event).serve()
    lend_progress()
    try:
        args, kwargs, holes = arguments(event)
        module = load(event["code"].removeprefix("\ufeff"), os.path.join(os.getcwd(), event["file"]),
                      event.get("body"))
        function = find(module, event["function"])
        args, kwargs = bind(function, args, kwargs, holes)
        value, most = settle(function(*args, **kwargs)), event["resultMax"]
        value = stream(value, lambda one: send("I", check_size(encode(one), most, "item"))) if event.get(
            "stream") else drain(value)
        payload = check_size(encode(value), most)
    except SystemExit as e:
        flush()
        report(exit_error(e))
        raise SystemExit(exit_code(e)) from None
    except BaseException as e:
        flush()
        report(e)
        raise SystemExit(1) from None
    flush()
    send("R", payload)
    raise SystemExit(0)
