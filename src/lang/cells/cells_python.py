# SPDX-License-Identifier: MIT
"""Runs cells of Python with IPython: a context of a sandbox.

Talks over descriptor 3 in frames (core/frame.h). The daemon sends one cell at a time; the answer is a
row of events, each a JSON object in ASCII, and an end:

    P  {"id", "code", "env"}                         a cell: its token, its text, variables for this cell
    B  {"id", "count"}                               it begins; SIGINT interrupts it from now on
    I  {"id", "type": "stdout" | "stderr", "text"}   what Python wrote
    I  {"id", "type": "display", "data", "metadata", "main", "display_id", "update"}   a MIME bundle
    I  {"id", "type": "clear", "wait"}
    I  {"id", "type": "error", "name", "value", "traceback"}
    R  {"id", "status": "ok" | "error"}              it has ended

The module `sbx` of cells has more events, and frames that answer them (cells_tools.py).

What other programs and C code write goes to descriptors 1 and 2, which the daemon reads itself.
Between two cells the event loop runs, so that tasks of the program go on.
"""
import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import threading

import cells_tools

CHANNEL = 3
OUTPUT_SIZE = 16 * 1024  # text of one event
EVENT_MAX = (4 << 20) - 4096  # bytes of one event that the daemon takes
JSON_ITEMS_MAX = 100_000  # a larger list or dict is shown as text only
TABLE_CELLS_MAX = 100_000
TABLE = "application/vnd.sandbox-executor.table+json"
CHART = "application/vnd.sandbox-executor.chart+json"


class Channel:
    """Frames over a descriptor."""

    def __init__(self, fd):
        self.fd = fd
        self.cell = None  # token of the cell that runs
        self.pending = {}  # stream -> pieces of text not sent yet
        self.size = 0
        self.sending = threading.RLock()  # threads of the program call tools, too

    def send(self, kind, value):
        text = self.encode(value)
        if len(text) > EVENT_MAX:
            text = self.encode(smaller(value))
        data = memoryview(b"%c%08x" % (ord(kind), len(text)) + text)
        with self.sending:
            while data:
                data = data[os.write(self.fd, data):]

    @staticmethod
    def encode(value):
        return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()

    def event(self, **fields):
        self.flush()
        self.send("I", {"id": self.cell, **fields})

    def write(self, stream, text):
        """What one print() writes in pieces becomes one event."""
        if stream not in self.pending:
            self.flush()  # order between the streams is kept
            self.pending[stream] = []
        self.pending[stream].append(text)
        self.size += len(text)
        if self.size >= OUTPUT_SIZE or text.endswith("\n"):
            self.flush()

    def flush(self):
        pending, self.pending, self.size = self.pending, {}, 0
        for stream, pieces in pending.items():
            text = "".join(pieces)
            for at in range(0, len(text), OUTPUT_SIZE):
                self.send("I", {"id": self.cell, "type": stream, "text": text[at:at + OUTPUT_SIZE]})


def smaller(value):
    """An event that is too large, cut: of a display its beginning as text is left."""
    def cut(text):
        return str(text)[:EVENT_MAX // 16] + " ... (too large to be shown)"

    if value.get("type") == "display":
        return {**value, "data": {"text/plain": cut(value["data"].get("text/plain", ""))}, "metadata": {}}
    return {key: cut(item) if isinstance(item, str) and len(item) > 1024 else item for key, item in value.items()}


class Output:
    """sys.stdout or sys.stderr; also from threads of the program."""

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    closed = False
    mode = "w"

    def __init__(self, channel, name, fd):
        import threading
        self.channel, self.name, self.fd = channel, f"<{name}>", fd
        self.stream = name
        self.lock = threading.RLock()

    @property
    def buffer(self):
        return Binary(self)

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        with self.lock:
            self.channel.write(self.stream, text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        with self.lock:
            self.channel.flush()

    def fileno(self):
        return self.fd

    def isatty(self):
        return False

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def close(self):
        pass


class Binary:
    """sys.stdout.buffer."""

    def __init__(self, output):
        self.output = output

    def write(self, data):
        self.output.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self):
        self.output.flush()

    def fileno(self):
        return self.output.fd


class NoInput:
    """sys.stdin: nothing can be asked of the caller of a cell."""

    encoding = "utf-8"
    closed = False

    def _refuse(self, *_):
        __tracebackhide__ = True
        raise EOFError("a cell has no standard input: give the value in the code")

    read = readline = readlines = __next__ = _refuse

    def __iter__(self):
        return self

    def fileno(self):
        return 0

    def isatty(self):
        return False

    def close(self):
        pass


# ---- what is displayed ----


def plain(value):
    """A value as JSON has it, or TypeError."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(type(value), "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def without_nan(value):
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {k: without_nan(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(v) for v in value]
    return value


def as_json(value):
    """The value if JSON can carry it; None if it cannot, or if it is too large to be shown twice."""
    if len(value) > JSON_ITEMS_MAX:
        return None
    try:
        text = json.dumps(value, default=plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= JSON_ITEMS_MAX * 16 else None


def as_table(frame):
    """A DataFrame as {column: list}."""
    if frame.size > TABLE_CELLS_MAX:
        return None
    table = {}
    for name, column in zip(frame.columns, (frame.iloc[:, i] for i in range(frame.shape[1]))):
        table[str(name)] = [cell.isoformat() if hasattr(cell, "isoformat") else cell for cell in column.tolist()]
    try:
        return json.loads(json.dumps(without_nan(table), default=str))
    except (TypeError, ValueError, RecursionError):
        return None


def make_formatters(shell):
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    class Table(BaseFormatter):
        format_type = Unicode(TABLE)
        print_method = ObjectName("_repr_table_")
        _return_type = dict

    class Chart(BaseFormatter):
        format_type = Unicode(CHART)
        print_method = ObjectName("_repr_chart_")
        _return_type = dict

        def pop(self, kind, default=None):
            """IPython takes figures away from every formatter when it chooses the format of pictures."""
            return default

    formatter = shell.display_formatter
    formatter.formatters["text/plain"].max_seq_length = 0  # lists are shown whole
    table, chart = Table(parent=formatter), Chart(parent=formatter)
    formatter.formatters[TABLE], formatter.formatters[CHART] = table, chart
    table.for_type_by_name("pandas.core.frame", "DataFrame", as_table)
    chart.for_type_by_name("matplotlib.figure", "Figure", as_chart)
    for kind in (list, dict):
        formatter.formatters["application/json"].for_type(kind, as_json)


def bundle(data):
    """A MIME bundle as it is sent: bytes in base64, everything else as JSON."""
    sent = {}
    for kind, value in data.items():
        if isinstance(value, (bytes, bytearray)):
            value = base64.b64encode(value).decode()
        try:
            sent[kind] = json.loads(json.dumps(without_nan(value), default=plain))
        except (TypeError, ValueError, RecursionError):
            sent[kind] = str(value)
    return sent


# ---- charts: what a matplotlib figure shows, as data ----


def as_chart(figure):
    charts = [chart for chart in map(chart_of, figure.axes) if chart is not None]
    if not charts:
        return {}
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle.get_text() if figure._suptitle is not None else None
    return {"type": "superchart", "title": title or None, "elements": charts}


def chart_of(axes):
    """The kind of a chart is the kind of everything that was drawn; None: nothing was."""
    if not axes.has_data():
        return None
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    drawn = [child for child in axes.get_children()
             if child is not axes.patch and child.__class__.__name__ not in
             ("Text", "Annotation", "Legend", "Spine", "XAxis", "YAxis")]
    chart = {"type": "unknown", "title": axes.get_title() or None, "elements": []}
    if drawn and all(isinstance(child, Line2D) for child in drawn):
        return line_chart(axes, chart, [line for line in drawn if not is_ruler(line)] or drawn)
    if drawn and all(isinstance(child, (PathPatch, Line2D)) for child in drawn):
        return box_chart(axes, chart)
    drawn = [child for child in drawn if not (isinstance(child, Line2D) and is_ruler(child))]
    for kind, name, make in ((PathCollection, "scatter", scatter_chart), (Wedge, "pie", pie_chart),
                             (Rectangle, "bar", bar_chart)):
        if drawn and all(isinstance(child, kind) for child in drawn):
            chart["type"] = name
            return make(axes, chart, drawn)
    return chart


def is_ruler(line):
    """Two points, horizontal or vertical: a grid or a mark, no data."""
    x, y = list(line.get_xdata()), list(line.get_ydata())
    return len(x) == len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def unit_of(label):
    import re
    found = re.search(r"\s*[\(\[]([^()\[\]]*)[\)\]]\s*$", label or "")
    return found.group(1) or None if found else None


def labels(axes, chart):
    x, y = axes.get_xlabel() or None, axes.get_ylabel() or None
    chart.update(x_label=x, y_label=y, x_unit=unit_of(x), y_unit=unit_of(y))


def scale_of(axis, ticks, texts):
    import matplotlib.dates
    if isinstance(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter,
                  (matplotlib.dates.DateConverter, matplotlib.dates._SwitchableDateConverter)):
        return "datetime"
    if axis.get_scale() != "linear":
        return axis.get_scale()
    if texts and all(tick == i and text != str(i) for i, (tick, text) in enumerate(zip(ticks, texts))):
        return "categorical"
    return "linear"


def scales(axes, chart):
    import matplotlib.dates
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        ticks = [float(tick) for tick in axis.get_ticklocs()]
        texts = [text.get_text() for text in axis.get_ticklabels()]
        scale = scale_of(axis, ticks, texts)
        if scale == "datetime":
            ticks = [matplotlib.dates.num2date(tick).isoformat() for tick in ticks]
        chart.update({f"{name}_ticks": ticks, f"{name}_tick_labels": texts, f"{name}_scale": scale})


def number(value):
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ == "datetime64":
        return str(value)
    return value.item() if hasattr(value, "item") else value


def label_of(artist, i, word):
    label = str(artist.get_label())
    return f"{word} {label[6:]}" if label.startswith("_child") else label or f"{word} {i}"


def line_chart(axes, chart, lines):
    chart["type"] = "line"
    chart["elements"] = [
        {"label": label_of(line, i, "Line"),
         "points": [[number(x), number(y)] for x, y in zip(line.get_xdata(), line.get_ydata())]}
        for i, line in enumerate(lines)]
    labels(axes, chart)
    scales(axes, chart)
    return chart


def scatter_chart(axes, chart, drawn):
    chart["elements"] = [
        {"label": label_of(points, i, "Scatter"),
         "points": [[number(x), number(y)] for x, y in points.get_offsets().tolist()]}
        for i, points in enumerate(drawn)]
    labels(axes, chart)
    scales(axes, chart)
    return chart


def pie_chart(axes, chart, drawn):
    chart["elements"] = [{"label": wedge.get_label(), "angle": float(wedge.theta2 - wedge.theta1),
                          "radius": float(wedge.r)} for wedge in drawn]
    return chart


def turned(chart):
    """Labels and units of x and y change places: the bars or boxes lie."""
    chart.update(x_label=chart["y_label"], y_label=chart["x_label"], x_unit=chart["y_unit"], y_unit=chart["x_unit"])


def bar_chart(axes, chart, drawn):
    labels(axes, chart)
    heights = {round(float(bar.get_height()), 9) for bar in drawn}
    lies = len(drawn) > 1 and len(heights) == 1 and len({round(float(bar.get_width()), 9) for bar in drawn}) > 1
    axis = axes.yaxis if lies else axes.xaxis
    names = {round(float(tick), 6): text.get_text() for tick, text in zip(axis.get_ticklocs(), axis.get_ticklabels())}
    for i, container in enumerate(axes.containers):
        group = str(container.get_label())
        group = f"Group {group[10:]}" if group.startswith("_container") else group or f"Group {i}"
        for bar in container.patches:
            middle = bar.get_y() + bar.get_height() / 2 if lies else bar.get_x() + bar.get_width() / 2
            label = names.get(round(float(middle), 6), "")
            chart["elements"].append({"label": label, "group": group,
                                      "value": number(bar.get_width() if lies else bar.get_height())})
    if lies:
        turned(chart)
    return chart


def box_chart(axes, chart):
    from matplotlib.patches import PathPatch
    chart["type"] = "box_and_whisker"
    labels(axes, chart)
    boxes = [child for child in axes.get_children() if isinstance(child, PathPatch)]
    extents = [box.get_path().vertices for box in boxes]
    spans = [(v[:, 0].min(), v[:, 0].max(), v[:, 1].min(), v[:, 1].max()) for v in extents]
    lies = len(boxes) > 1 and len({round(float(s[3] - s[2]), 9) for s in spans}) == 1 and \
        len({round(float(s[1] - s[0]), 9) for s in spans}) > 1
    names = [text.get_text() for text in (axes.yaxis if lies else axes.xaxis).get_ticklabels()]
    for i, (x0, x1, y0, y1) in enumerate(spans):
        across, along = ((y0, y1), (x0, x1)) if lies else ((x0, x1), (y0, y1))
        element = {"label": names[i] if i < len(names) else "", "min": None, "first_quartile": near(along[0]),
                   "median": None, "third_quartile": near(along[1]), "max": None, "outliers": []}
        read_whiskers(axes, element, across, along, lies)
        chart["elements"].append(element)
    if lies:
        turned(chart)
    return chart


def near(value):
    return round(float(value), 9)


def read_whiskers(axes, element, across, along, lies):
    """Median, whiskers and outliers from the lines above and below one box."""
    ends = [along[0], along[1]]
    for line in axes.get_lines():
        place, value = (line.get_ydata(), line.get_xdata()) if lies else (line.get_xdata(), line.get_ydata())
        place, value = [float(p) for p in place], [float(v) for v in value]
        if not place or min(place) < across[0] - 1e-9 or max(place) > across[1] + 1e-9:
            continue
        if len(value) == 2 and value[0] == value[1] and along[0] <= value[0] <= along[1] and \
                abs((max(place) - min(place)) - (across[1] - across[0])) < 1e-9:
            element["median"] = near(value[0])
        elif len(value) == 2 and line.get_linestyle() not in ("None", "none", ""):
            ends += value
        elif line.get_linestyle() in ("None", "none", "") or len(value) == 1:
            element["outliers"] += [near(v) for v in value]
    element["min"], element["max"] = near(min(ends)), near(max(ends))


# ---- IPython ----


class Store(dict):
    """Stands for IPython's database on disk: cells keep nothing outside of the sandbox."""

    def __init__(self, root):
        super().__init__()


def print_page(shell, data, start=0, screen_lines=0):
    """Help (`name?`) is printed; there is no pager."""
    print(data.get("text/plain", "") if isinstance(data, dict) else data)


def make_shell(channel):
    from IPython.core import interactiveshell
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.profiledir import ProfileDir
    from traitlets import Type
    from traitlets.config import Config

    class Hook(DisplayHook):
        """The value of the last expression."""

        def write_output_prompt(self):
            pass

        def write_format_data(self, format_dict, md_dict=None):
            channel.event(type="display", data=bundle(format_dict), metadata=bundle(md_dict or {}), main=True)

        def finish_displayhook(self):
            pass

    class Publisher(DisplayPublisher):
        """display() and what libraries show."""

        def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **_):
            fields = {"main": False}
            if transient and transient.get("display_id"):
                fields["display_id"] = str(transient["display_id"])
            if update:
                fields["update"] = True
            channel.event(type="display", data=bundle(data), metadata=bundle(metadata or {}), **fields)

        def clear_output(self, wait=False):
            channel.event(type="clear", wait=bool(wait))

    class Shell(interactiveshell.InteractiveShell):
        displayhook_class = Type(Hook)
        display_pub_class = Type(Publisher)
        failed = None  # how the cell ended

        def init_ipython_dir(self, ipython_dir):
            pass

        def init_profile_dir(self, profile_dir):
            self.profile_dir = ProfileDir()

        def init_hooks(self):
            super().init_hooks()
            self.set_hook("show_in_pager", print_page, 99)

        def enable_gui(self, gui=None):
            pass

        def ask_exit(self):
            raise SystemExit(0)

        def system_piped(self, command):
            """!command: what it writes is shown as it comes."""
            channel.flush()
            process = subprocess.Popen(["/bin/bash", "-c", self.var_expand(command, depth=1)],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                while data := os.read(process.stdout.fileno(), OUTPUT_SIZE):
                    sys.stdout.write(data.decode("utf-8", "replace"))
            except KeyboardInterrupt:
                process.send_signal(signal.SIGINT)
                raise
            finally:
                process.stdout.close()
                self.user_ns["_exit_code"] = process.wait()

        system = system_raw = system_piped

        def showtraceback(self, *args, **kwargs):
            """The daemon interrupts until the cell has ended, and IPython drops an error whose telling is interrupted."""
            if threading.current_thread() is not threading.main_thread():
                return super().showtraceback(*args, **kwargs)
            before = signal.getsignal(signal.SIGINT)
            ignore_interrupts()
            try:
                return super().showtraceback(*args, **kwargs)
            finally:
                signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)

        def _showtraceback(self, kind, value, lines):
            self.failed = (kind, value, lines)

    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.cache_size = 100
    config.InteractiveShell.quiet = False
    config.InteractiveShell.banner1 = ""
    interactiveshell.PickleShareDB = Store
    shell = Shell.instance(config=config)
    make_formatters(shell)
    return shell


def show_saved_pictures():
    """PIL.Image.save(name) also shows the picture, once PIL is there."""
    import importlib.abc
    import importlib.machinery

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name != "PIL.Image":
                return None
            sys.meta_path.remove(self)
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module

                def exec_module(module):
                    execute(module)
                    patch(module.Image)

                spec.loader.exec_module = exec_module
            return spec

    def patch(kind):
        save = kind.save

        def save_and_show(self, fp, *args, **kwargs):
            save(self, fp, *args, **kwargs)
            if isinstance(fp, (str, os.PathLike)):
                from IPython.display import display
                display(self)

        save_and_show.__doc__ = save.__doc__
        kind.save = save_and_show

    if "PIL.Image" in sys.modules:
        patch(sys.modules["PIL.Image"].Image)
    else:
        sys.meta_path.insert(0, Finder())


# ---- cells ----


def ignore_interrupts():
    """One that is pending is raised by signal() itself, which has changed nothing then."""
    while True:
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return
        except KeyboardInterrupt:
            pass


class Kernel:
    def __init__(self, fd=CHANNEL):
        self.channel = Channel(fd)
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        self.shell = make_shell(self.channel)
        self.frames = cells_tools.Frames()
        self.caller = None
        self.loop = None
        self.fresh = dict(self.shell.user_ns)

    def forget(self):
        """What cells that were run ahead of the first fork left."""
        shell = self.shell
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        shell.reset(new_session=True)
        for name, value in self.fresh.items():
            shell.user_ns.setdefault(name, value)
        shell.failed = None

    def start(self):
        """Once the process is its own: behind a fork, inside the sandbox."""
        os.set_inheritable(self.channel.fd, False)
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdin = NoInput()
        sys.stdout = Output(self.channel, "stdout", 1)
        sys.stderr = Output(self.channel, "stderr", 2)
        sys.argv[:] = [""]
        sys.path[0] = os.getcwd()  # instead of the folder of this file
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        self.shell.user_ns["_dh"][:] = [os.getcwd()]
        show_saved_pictures()
        self.caller = cells_tools.Caller(self.channel, self.frames)
        cells_tools.make_module(self.caller)
        self.channel.send("Y", {"language": "python", "version": sys.version.split()[0]})

    def serve(self):
        while True:
            cell = self.loop.run_until_complete(self.next_cell())
            if cell is None:
                return
            self.run(cell)

    async def next_cell(self):
        """Waits for a frame; tasks of the program run meanwhile."""
        while True:
            while (frame := self.frames.take()) is not None:
                kind, text = frame
                if kind == "P":
                    return json.loads(text)
            ready = self.loop.create_future()
            self.loop.add_reader(self.channel.fd, lambda f=ready: f.done() or f.set_result(None))
            try:
                await ready
            finally:
                self.loop.remove_reader(self.channel.fd)
            data = os.read(self.channel.fd, 256 * 1024)
            if not data:
                return None
            self.frames.received += data

    def run(self, cell):
        shell, channel = self.shell, self.channel
        channel.cell = cell["id"]
        before = {name: os.environ.get(name) for name in cell.get("env") or ()}
        os.environ.update(cell.get("env") or {})
        shell.failed = None
        leaving = False
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # before the daemon may interrupt it
            try:
                channel.send("B", {"id": channel.cell, "count": shell.execution_count})
                self.execute(cell["code"])
                shell.events.trigger("post_execute")  # open figures are shown
                shell.events.trigger("post_run_cell", None)
            finally:
                ignore_interrupts()
        except KeyboardInterrupt:
            shell.failed = shell.failed or (KeyboardInterrupt, KeyboardInterrupt(), ["KeyboardInterrupt"])
        except SystemExit:
            leaving = True
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if shell.failed is not None:
            kind, value, lines = shell.failed
            leaving = leaving or issubclass(kind, SystemExit)
            if not leaving:
                channel.event(type="error", name=kind.__name__, value=str(value), traceback="\n".join(lines))
        channel.flush()
        if self.caller is not None:  # there is none in a rehearsal
            self.caller.forget()
        channel.send("R", {"id": channel.cell, "status": "ok" if shell.failed is None else "error"})
        channel.cell = None
        if leaving:
            raise SystemExit(0)

    def execute(self, code):
        """A cell with top-level await runs in the loop; any other as in a script, so asyncio.run() works there."""
        shell = self.shell
        try:
            text = shell.transform_cell(code)
            waits = shell.should_run_async(code, transformed_cell=text)
        except Exception:  # a syntax error: told when the cell is run
            text, waits = None, False
        made = shell.run_cell_async(code, store_history=True, transformed_cell=text)
        if not waits:
            asyncio.set_event_loop(self.loop)
            try:
                made.send(None)
            except StopIteration:
                return
            finally:
                asyncio.set_event_loop(self.loop)
            raise RuntimeError("the cell waits although it has no await")
        task = self.loop.create_task(made)

        self.loop.add_signal_handler(signal.SIGINT, task.cancel)  # also wakes the loop
        try:
            self.loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            self.loop.remove_signal_handler(signal.SIGINT)
        if shell.failed is not None and issubclass(shell.failed[0], asyncio.CancelledError) and task.cancelling():
            shell.failed = (KeyboardInterrupt, KeyboardInterrupt(), ["KeyboardInterrupt"])


def main():
    try:
        import IPython  # noqa: F401
    except ImportError:
        sys.exit("cells of Python need IPython: install Debian's python3-ipython on the host")
    kernel = Kernel()
    kernel.start()
    kernel.serve()


if __name__ == "__main__":
    main()
