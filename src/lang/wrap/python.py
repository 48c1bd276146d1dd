# SPDX-License-Identifier: MIT
"""Runs one Python program inside a sandbox and, if it has a handler, calls it.

The job comes as frames over one descriptor and the returned value leaves the same way, so stdout
belongs to the program alone. Two ways lead here: `python3 -c <this text>`, and an interpreter that
was warmed before: it imports this text as a module and forks. After a fork, every object that is
touched for the first time costs the copy of a page; so that one goes the way of every program, which
is execute() here, on its own (zygote/python_program.h) and calls what is here only where it ends.

From exec() on, the interpreter is in the hands of the program, which may replace whatever it can
reach. Therefore everything needed later is bound now, functions below see a private copy of the
builtins, and only the parts that make an error readable are imported late, with a plain substitute.
"""
import atexit
import builtins
import gc
import marshal
import os
import posix
import sys
import time
from _frozen_importlib_external import MAGIC_NUMBER
from _io import BufferedRandom, BufferedWriter, StringIO, TextIOWrapper
from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner
from _thread import allocate_lock

__builtins__ = dict(vars(builtins))

HEAD = 9
DEPTH_MAX = 512
DIGITS_SURE = 4096  # no number in a text of this length has too many digits
PROGRESS_MAX = 64 * 1024
MESSAGE_MAX = 16 * 1024
STACK_MAX = 64 * 1024
READ_SIZE = 16 * 1024  # more at once only when more was announced: memory never touched is cheaper
VARARGS = 0x04
FILES = (TextIOWrapper, BufferedWriter, BufferedRandom)
PLAIN = (dict, list, str, int, float, bool, type(None), tuple)
MISSING = "\u5fc5\u987b\u5b9a\u4e49 handler(event) \u51fd\u6570"  # the original executor says it so
CONTEXT_NAMES = ("context", "ctx", "_context", "_ctx", "_")

read, write, fstat, getpid = posix.read, posix.write, posix.fstat, posix.getpid
getcwd, set_inheritable = posix.getcwd, posix.set_inheritable
monotonic = time.monotonic
frame_at = sys._getframe
digits_get, digits_set = sys.get_int_max_str_digits, sys.set_int_max_str_digits
excepthook = sys.excepthook
named_streams = (("stdout", sys.stdout), ("stderr", sys.stderr))
if sys.stdout is not None:
    sys.stdout.reconfigure(line_buffering=True)  # what was printed survives being killed
here = [None]  # the program's folder, as the first of sys.path
marshal_loads, marshal_dumps = marshal.loads, marshal.dumps
run_exitfuncs, collect, get_objects = atexit._run_exitfuncs, gc.collect, gc.get_objects
callbacks = gc.callbacks

prepared = {}  # programs of our own that were compiled before: text to code

Module = type(sys)
Function = type(lambda: None)


# ---- the channel ----


class Channel:
    """Frames to the daemon: one byte of kind, eight hexadecimal digits of length, the payload."""

    def __init__(self, fd):
        at = fstat(fd)
        self.fd, self.place = fd, (at.st_dev, at.st_ino)
        self.pid, self.lock, self.ended = getpid(), allocate_lock(), False

    def send(self, kind, payload):
        # A copy of the program made by fork() has nothing to tell.
        if self.ended or getpid() != self.pid:
            return
        with self.lock:
            self.check()
            data = memoryview(b"%c%08x" % (kind, len(payload)) + payload)
            while data:
                try:
                    data = data[write(self.fd, data):]
                except BlockingIOError:
                    wait_for(self.fd, writing=True)

    def check(self):
        """A program that closed our descriptor may have a file of its own under that number now."""
        try:
            at = fstat(self.fd)
        except OSError:
            at = None
        if at is None or (at.st_dev, at.st_ino) != self.place:
            self.ended = True
            raise OSError("the program closed the descriptor its result is returned through")


    def end(self):
        self.ended = True


class Given:
    """A channel whose functions are not of this text (see given())."""

    def __init__(self, send, end):
        self.send, self.end = send, end


def wait_for(fd, writing):
    import select
    poll = select.poll()
    poll.register(fd, select.POLLOUT if writing else select.POLLIN)
    poll.poll()


def receive(fd):
    """All frames up to G, by kind. None when the daemon went away before it had said everything."""
    data, at, frames = bytearray(), 0, {}
    while True:
        end = at + HEAD
        if len(data) >= end:
            end += int(data[at + 1:end], 16)
            if len(data) >= end:
                kind = chr(data[at])
                frames[kind] = bytes(memoryview(data)[at + HEAD:end])
                if kind == "G":
                    return frames
                at = end
                continue
        try:
            chunk = read(fd, max(READ_SIZE, end - len(data)))
        except BlockingIOError:
            wait_for(fd, writing=False)
            continue
        if not chunk:
            return None
        data += chunk


# ---- JSON ----


class Decoding:
    strict = True
    object_hook = object_pairs_hook = parse_constant = None
    parse_float, parse_int = float, int


class Unserialisable(Exception):
    pass


scan = make_scanner(Decoding)


def decode(text):
    text = text.decode().strip(" \t\r\n")
    if len(text) <= DIGITS_SURE:
        return scan(text, 0)[0]
    # The limit on the digits of an integer protects servers; here it would only lose values.
    limit = digits_get()
    digits_set(0)
    try:
        return scan(text, 0)[0]
    finally:
        digits_set(limit)


def encode(value, is_lenient=False):
    """Strict JSON in UTF-8. A number that JSON lacks is an error, or null where a report is wanted at any rate."""
    limit = digits_get()
    digits_set(0)
    try:
        try:
            text = encode_text(value, encode_basestring)
        except ValueError:
            place = "" if is_lenient else where(value, lacks_number)
            if place:
                raise ValueError("JSON has neither NaN nor infinite numbers, but there is one"
                                 f"{place}; return None or a string instead") from None
            value = finite(value, set())  # a value within itself is refused here
            text = encode_text(value, encode_basestring)
        check_depth(value, text)
        try:
            return text.encode()
        except UnicodeEncodeError:  # lone surrogates travel as escapes
            return encode_text(value, encode_basestring_ascii).encode()
    finally:
        digits_set(limit)


def refuse(thing):
    raise Unserialisable(thing)


def make_encode(strings, above):
    return make_encoder(above, refuse, strings, None, ":", ",", False, False, False)


encode_plain = make_encode(encode_basestring, None)  # a value within itself is too deep for this one


def encode_text(value, strings):
    try:
        return "".join(make_encode(strings, {})(value, 0))
    except Unserialisable as e:
        thing = e.args[0]
    except TypeError as e:
        raise TypeError(f"{e}{where(value, bad_keys)}") from None
    except RecursionError:
        raise RecursionError("the returned value is nested too deeply for JSON "
                             "(maximum recursion depth exceeded)") from None
    raise TypeError(f"Object of type {type(thing).__name__} is not JSON serializable"
                    f"{where(value, lambda v: v is thing)}")


def bad_keys(value):
    return isinstance(value, dict) and any(
        key is not None and not isinstance(key, (str, int, float)) for key in value)


def where(value, is_it):
    """' at result["a"][0]': the first place where is_it() holds."""
    stack, seen = [(value, "result")], set()
    while stack:
        v, path = stack.pop()
        if is_it(v):
            return f" at {path}" if len(path) < 200 else f" at {path[:100]}...{path[-90:]}"
        if id(v) in seen:
            continue
        seen.add(id(v))
        if isinstance(v, dict):
            inner = [(item, f"{path}[{key!r}]") for key, item in v.items()]
        elif isinstance(v, (list, tuple)):
            inner = [(item, f"{path}[{i}]") for i, item in enumerate(v)]
        else:
            continue
        stack += reversed(inner)
    return ""


def finite(value, above):
    """A copy without the numbers that JSON lacks."""
    if isinstance(value, float):
        return value if is_finite(value) else None
    if not isinstance(value, (dict, list, tuple)):
        return value
    if id(value) in above:
        raise ValueError("Circular reference detected in the returned value") from None
    above.add(id(value))
    if isinstance(value, dict):
        copy = {key if not isinstance(key, float) or is_finite(key) else non_finite_name(key):
                finite(item, above) for key, item in value.items()}
    else:
        copy = [finite(item, above) for item in value]
    above.discard(id(value))
    return copy


def is_finite(number):
    return float.__sub__(number, number) == 0.0


def non_finite_name(number):
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[float.__repr__(number)]


def lacks_number(value):
    return not is_finite(value) if isinstance(value, float) else (
        isinstance(value, dict) and any(isinstance(key, float) and not is_finite(key) for key in value))


def check_depth(value, text):
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    level, depth = [value], 0
    while level:
        depth += 1
        level = [item for v in level for item in (v.values() if isinstance(v, dict) else v)
                 if isinstance(item, (dict, list, tuple))]
        if depth > DEPTH_MAX:
            raise RecursionError(f"the returned value is nested deeper than {DEPTH_MAX} levels "
                                 "(maximum recursion depth exceeded)")


# ---- what the program sees ----


class Context:
    """The second argument of a handler."""

    def __init__(self, channel, told, deadline):
        self.execution_id = self.aws_request_id = told.get("execution_id")
        self.function_name = told.get("function_name", "handler")
        self.memory_limit_in_mb = told.get("memory_limit_in_mb")

        def remaining():
            """Milliseconds until the execution is stopped."""
            return max(0, int((deadline - monotonic()) * 1000))

        def progress(value):
            """Tells the caller how far the execution is; value is a JSON object."""
            if not isinstance(value, dict):
                raise TypeError(f"progress() takes a dict, not {type(value).__name__}")
            payload = encode(value, True)
            if len(payload) > PROGRESS_MAX:
                raise ValueError(f"progress of {len(payload)} bytes, at most {PROGRESS_MAX}")
            channel.send(ord("P"), payload)

        self.get_remaining_time_in_millis, self.progress = remaining, progress


class Loader:
    """Lets linecache and inspect find the source, which is in no file."""

    def __init__(self, source):
        self.source = source

    def get_source(self, name):
        return self.source


Method = type(Loader("").get_source)


class Main(Module):
    """The program's __main__. multiprocessing's "spawn" wants it in a file: made when asked for."""

    @property
    def __spec__(self):
        names = vars(self)
        loader = names.get("__loader__")
        if (frame_at(1).f_globals.get("__name__") == "multiprocessing.spawn"
                and type(loader) is Loader and not os.path.exists(names["__file__"])):
            names["__file__"] = spill(loader.source)
        return None

    @__spec__.setter
    def __spec__(self, value):
        pass


def spill(source):
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(prefix="handler-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with open(f"{folder}/handler.py", "w", encoding="utf-8", newline="") as f:
        f.write(source)
    return f.name


def make_main(source, path):
    main = Main("__main__")
    vars(main).update(__file__=path, __builtins__=builtins, __loader__=Loader(source))
    sys.modules["__main__"] = main
    return main


def take_place(path):
    """What a program sees of where it is. In a warmed interpreter nearly always the same."""
    if sys.argv == [path]:
        return
    folder = path.rpartition("/")[0] or "/"
    sys.argv = [path]
    sys.orig_argv = [sys.executable, path]
    if sys.path[:1] in ([""], here):
        sys.path[0] = folder
    elif sys.path[:1] != [folder]:
        sys.path.insert(0, folder)
    here[0] = folder


def adopt(env):
    """The environment is another one than the interpreter started with."""
    os.environ.clear()
    for pair in env:
        name, _, value = pair.partition(b"=")
        os.environb[name] = value
    adopted()


def adopted():
    """What follows from another environment, and from a fork."""
    if "TZ" in os.environ and hasattr(time, "tzset"):
        time.tzset()
    at = sys.path[:1] == here
    sys.path[at:at] = [p for p in os.environ.get("PYTHONPATH", "").split(":") if p]
    if "numpy.random" in sys.modules:  # `random` and others see to it themselves at a fork
        sys.modules["numpy.random"].seed()
    if "random" in sys.modules and not hasattr(posix, "register_at_fork"):
        sys.modules["random"].seed()
    # OpenSSL seeds itself at its first use, and nothing has used it before the fork.


def shadowed(path):
    """Has this module path something in place of what is loaded already? Then only an interpreter
    that starts anew runs the program as it should be run."""
    for folder in path.split(b":"):
        try:
            names = posix.listdir(folder) if folder else ()
        except OSError:
            continue
        for name in names:
            if os.fsdecode(name).partition(".")[0] in sys.modules:
                return True
    return False


# ---- calling ----


def wants_context(handler):
    """Does it take a second argument? inspect would know, but costs more than most handlers."""
    skip = 0
    while True:
        if type(handler) is Method:
            handler, skip = handler.__func__, skip + 1
        elif type(handler) is not Function:
            call = getattr(type(handler), "__call__", None)
            if type(call) is not Function:
                return wants_context_slow(handler)
            handler, skip = call, skip + 1
        elif handler.__code__.co_flags & VARARGS and "__wrapped__" in vars(handler):
            handler = handler.__wrapped__
        else:
            break
    code = handler.__code__
    names = code.co_varnames[skip:code.co_argcount]
    if len(names) < 2:
        return bool(code.co_flags & VARARGS)
    optional = len(names) - len(handler.__defaults__ or ()) < 2
    return not optional or names[1] in CONTEXT_NAMES


def wants_context_slow(handler):
    import inspect
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return False
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (positional[1].default is positional[1].empty
                                    or positional[1].name in CONTEXT_NAMES)


def awaited(value):
    if not hasattr(type(value), "__await__"):
        return value
    import asyncio

    async def wait():
        return await value

    return asyncio.run(wait())


# ---- failing ----


def flush():
    """What cannot be flushed is put back, or the interpreter would stumble over it at its end."""
    for name, original in named_streams:
        now = getattr(sys, name, None)
        if now is not original:
            try:
                now.flush()
            except BaseException:
                setattr(sys, name, original)
        try:
            original.flush()
        except BaseException:
            pass  # closed by the program: nothing to save


def flush_files():
    """Collecting garbage closes files in any order; text may then find its file closed."""
    for thing in get_objects():
        try:
            if issubclass(type(thing), FILES):
                thing.flush()
        except BaseException:
            pass  # closed, or its disk is full: what every program risks that does not close


def say(text):
    """On the real stderr, whatever the program made of sys.stderr."""
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    try:
        while data:
            data = data[write(2, data):]
    except OSError:
        pass  # closed by the program


def report(channel, kind, message, stack):
    if len(stack) > STACK_MAX:
        stack = stack[:STACK_MAX // 2] + "\n...\n" + stack[-STACK_MAX // 2:]
    error = {"type": kind, "message": message[:MESSAGE_MAX], "stack": stack}
    try:
        channel.send(ord("E"), encode(error))
    except OSError:
        pass  # the exit code tells


def fail(channel, kind, message):
    flush()
    say(f"{message}\n")
    report(channel, kind, message, "")
    return 1


def user_frames(trace):
    """The traceback without our own frames, and without the event loop's in front."""
    first = last = None
    while trace is not None:
        names = trace.tb_frame.f_globals
        ours = names is globals() or (
            first is None and str(names.get("__name__")).startswith("asyncio."))
        following, trace.tb_next = trace.tb_next, None
        if not ours:
            if first is None:
                first = trace
            else:
                last.tb_next = trace
            last = trace
        trace = following
    return first


def lines_of(source):
    """As the compiler counts them, which ends no line at a form feed or U+2028 as splitlines() does, and
    as linecache keeps them: carets are placed by the line break at the end."""
    lines = list(StringIO(source, None))
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def describe(e, path, source):
    try:
        import linecache
        import traceback
        linecache.cache[path] = (len(source), None, lines_of(source), path)
        return "".join(traceback.format_exception(type(e), e, e.__traceback__))
    except BaseException:
        return f"{type(e).__name__}: {text_of(e)}\n"


def text_of(e):
    try:
        return str(e)
    except BaseException:
        return "<exception str() failed>"


def hooked(e):
    """A hook of the program for uncaught exceptions speaks instead of us, if it can."""
    hook = sys.excepthook
    if hook is excepthook:
        return False
    try:
        hook(type(e), e, e.__traceback__)
        flush()
        return True
    except BaseException:
        return False


def crash(channel, e, path, source):
    """Like the interpreter on an uncaught exception; returns the exit code."""
    try:
        e.__traceback__ = user_frames(e.__traceback__)
    except BaseException:
        pass
    stack = describe(e, path, source)
    flush()
    if not hooked(e):
        say(stack)
    name = type(e).__qualname__
    if type(e).__module__ not in ("builtins", "__main__"):
        name = f"{type(e).__module__}.{name}"
    report(channel, name, text_of(e), stack)
    return 130 if isinstance(e, KeyboardInterrupt) else 1


def exit_code(e):
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        return e.code & 255 if -2**63 <= e.code < 2**63 else 255
    flush()
    say(f"{text_of(e.code)}\n")
    return 1


# ---- the job ----


def prepare(source):
    """Compiles a program that will be run often, before the fork."""
    prepared[source] = compile(source, "handler.py", "exec", dont_inherit=True)


def compiled_before(known, path):
    """The code that the daemon kept of this very text, if it is this interpreter's and of this place."""
    if not known or not known.startswith(MAGIC_NUMBER):
        return None
    code = marshal_loads(memoryview(known)[len(MAGIC_NUMBER):])
    return code if code.co_filename == path else None


def compiled(channel, frames, told, source, path):
    """The program's code. If it is to be kept, that must be said now: nothing of the program has run,
    and nobody believes it later."""
    code = (prepared.get(source) or compiled_before(frames.get("K"), path)
            or compile(source, path, "exec", dont_inherit=True))
    most = told.get("compiled_max")
    if most:
        data = MAGIC_NUMBER + marshal_dumps(code)
        channel.send(ord("K"), data if len(data) <= most else b"")
    return code


def execute(channel, frames, path):
    """Loads the program and calls its handler, if it has one or must have one; the exit code."""
    source = ""
    try:
        source = frames["C"].decode().removeprefix("\ufeff")
        told = decode(frames.get("X") or b"{}")
        event = decode(frames.get("V") or b"{}")
        deadline = monotonic() + told.get("remaining_ms", 0) / 1000
        take_place(path)
        main = make_main(source, path)
        exec(compiled(channel, frames, told, source, path), vars(main))
        handler = vars(main).get("handler")
        mode = told.get("mode")  # absent: a program without a handler is a script
        if mode == "script" or not callable(handler):
            if mode == "handler":
                return missing(channel, handler)
            value = None
        elif wants_context(handler):
            value = handler(event, Context(channel, told, deadline))
        else:
            value = handler(event)
        return answer(channel, told, value)
    except BaseException as e:
        return failed(channel, e, path, source)
    finally:
        channel.end()


def missing(channel, handler):
    what = "defined" if handler is None else f"a function but {type(handler).__name__}"
    return fail(channel, "HandlerNotFound", f"handler(event) is not {what} ({MISSING})")


def answer(channel, told, value):
    """What a handler returned goes to the daemon; the exit code."""
    payload = encode(value if type(value) in PLAIN else awaited(value))
    most = told.get("result_max") or len(payload)
    if len(payload) > most:
        return fail(channel, "ResultTooLarge", f"the returned value has {len(payload)} bytes "
                    f"as JSON, at most {most} are allowed")
    flush()
    channel.send(ord("R"), payload)
    return 0


def failed(channel, e, path, source):
    return exit_code(e) if isinstance(e, SystemExit) else crash(channel, e, path, source)


def place():
    return getcwd().rstrip("/") + "/handler.py"


def run(fd, env=None):
    """One job from descriptor fd; returns the exit code. env: the environment if it is another one,
    as a list of b"NAME=value"."""
    set_inheritable(fd, False)
    channel = Channel(fd)
    frames = receive(fd)
    if frames is None:
        say("the sandbox was given no job\n")
        return 1
    if "N" in frames:  # in WebAssembly they come along, because nothing is executed
        setting = decode(frames["N"])
        env = [pair.encode("utf-8", "surrogateescape") for pair in setting["env"]]
        os.chdir(setting["cwd"])
    if env is not None:
        sys.modules.pop(__name__, None)
        adopt(env)
    return execute(channel, frames, place())


def given(send, end, settled):
    """Before the fork: how frames are sent after it, and what tells at the end that a program has
    left nothing to be done."""
    global channel, is_settled
    channel, is_settled = Given(send, end), settled


def is_settled():
    return False


def finish(before):
    """What the interpreter does at its end, without taking the warmed modules apart: waits for
    threads, runs exit functions, writes files, lets go of the program's objects. before: names in
    sys.modules when nothing of the program was there. With gc.freeze() before the fork this is
    cheap. The caller flushes stdio of C and leaves with _exit()."""
    if not is_settled():
        try:
            threading = sys.modules.get("threading")
            if threading is not None:
                threading._shutdown()
        except BaseException as e:
            say(describe(e, "", ""))
        try:
            run_exitfuncs()
        except BaseException:
            pass
    let_go(before)


def let_go(before):
    """The end of finish(); may be done more than once."""
    try:
        flush_files()
        # New ones are at the end. Looking at all would copy a page for nearly every name.
        names = ["__main__"]
        for name in reversed(sys.modules):
            if name in before:
                break
            names.append(name)
        for name in names:
            sys.modules.pop(name, None)
        collect()
    except BaseException:
        pass
    flush()


def start():
    raise SystemExit(run(3))


if __name__ == "__main__":
    start()
