# SPDX-License-Identifier: MIT
"""src/lang/cells/cells_python.py: cells with IPython, without a sandbox."""
import base64
import importlib.util
import time

import pytest

import cells

pytestmark = pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
TABLE = "application/vnd.sandbox-executor.table+json"
CHART = "application/vnd.sandbox-executor.chart+json"


@pytest.fixture
def python(tmp_path):
    kernel = cells.Cells("python", tmp_path)
    yield kernel
    kernel.close()


def displays(events):
    return [e["data"] for e in events[:-1] if e["type"] == "display"]


def test_the_last_expression_is_the_value_and_state_stays(python):
    assert python.value("x = 5\nx * 2") == "10" and python.value("_ + x") == "15"
    assert python.value("x;") is None and python.value("None") is None
    assert python.value("__name__") == "'__main__'"


def test_what_one_print_writes_is_one_piece(python):
    assert python.printed("print('a', 1, 'b'); print('c', end='')") == ["a 1 b\n", "c"]
    assert python.printed("import sys; print('e', file=sys.stderr)", "stderr") == ["e\n"]


def test_an_error_has_a_name_a_value_and_a_traceback_without_colours(python):
    error = python.error("def f():\n    1 / 0\nf()")
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "1 / 0" in error["traceback"] and "\x1b" not in error["traceback"]
    assert python.error("def f(:")["name"] == "SyntaxError"
    assert python.value("1 + 1") == "2"


def test_await_stands_at_the_top_and_asyncio_run_works(python):
    assert python.value("import asyncio\nawait asyncio.sleep(0, 7)") == "7"
    assert python.value("asyncio.run(asyncio.sleep(0, 8))") == "8"
    assert python.value("await asyncio.sleep(0, 9)") == "9"


def test_tasks_go_on_between_cells(python):
    python.run("import asyncio\ndone = []\nasync def later():\n    await asyncio.sleep(0.01)\n    done.append(1)\n"
               "task = asyncio.ensure_future(later()); await asyncio.sleep(0)")
    deadline = time.monotonic() + 30
    while python.value("done") != "[1]":
        assert time.monotonic() < deadline


def test_variables_of_a_cell_do_not_stay(python):
    assert python.value("import os; os.environ.get('Q')", Q="v") == "'v'"
    assert python.value("os.environ.get('Q')") is None


@pytest.mark.parametrize("code", ["import time; time.sleep(600)", "while True: pass", "import asyncio; await asyncio.sleep(600)",
                                  "!sleep 600"])
def test_an_interrupt_ends_the_cell_and_keeps_the_state(python, code):
    python.run("x = 4")
    python.send(code)
    python.wait_begun()
    time.sleep(0.2)  # into the program: there is no event for that
    *events, status = python.interrupted()
    assert status == "error" and events[-1]["name"] == "KeyboardInterrupt"
    assert python.value("x") == "4"


def test_an_interrupt_between_cells_does_nothing(python):
    python.interrupt()
    assert python.value("1") == "1"


def test_input_is_refused_at_once(python):
    assert python.error("input('name? ')")["name"] == "EOFError"


def test_lines_of_the_shell_and_magics(python):
    assert python.printed("!echo from a shell") == ["from a shell\n"]
    assert python.value("!exit 3\n_exit_code") == "3"
    assert python.printed("%%bash\necho in bash") == ["in bash\n"]
    assert "Docstring" in "".join(python.printed("len?"))


def test_display_shows_bundles(python):
    [data] = displays(python.run("display({'a': [1, 2]})"))
    assert data == {"text/plain": "{'a': [1, 2]}", "application/json": {"a": [1, 2]}}
    [data] = displays(python.run("from IPython.display import HTML\nHTML('<b>x</b>')"))
    assert data["text/html"] == "<b>x</b>"
    events = python.run("h = display(1, display_id='d'); h.update(2)")
    assert [(e["display_id"], e.get("update", False)) for e in events[:-1]] == [("d", False), ("d", True)]
    assert python.run("from IPython.display import clear_output\nclear_output()")[0]["type"] == "clear"


def test_a_list_is_shown_whole(python):
    assert python.value("list(range(3000))").endswith(" 2999]")


def test_what_json_cannot_carry_is_shown_as_text(python):
    [data] = displays(python.run("[float('nan'), object]"))
    assert "application/json" not in data and data["text/plain"].startswith("[nan,")


def test_exit_ends_the_interpreter(python):
    python.run("exit()")
    assert python.run("1") == [None]


def test_output_of_other_programs_goes_to_the_descriptors(tmp_path):
    kernel = cells.Cells("python", tmp_path)
    kernel.run("import subprocess, os; subprocess.run(['echo', 'raw']); os.write(2, b'err')")
    out, err = kernel.close()
    assert out == "raw\n" and err == "err"


def test_a_table_of_pandas_comes_with_its_data(python):
    pytest.importorskip("pandas")
    [data] = displays(python.run(
        "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', None], 'c': pd.to_datetime(['2020-01-01', '2020-01-02'])})"))
    assert data[TABLE] == {"a": [1, 2], "b": ["x", None], "c": ["2020-01-01T00:00:00", "2020-01-02T00:00:00"]}
    assert "<table" in data["text/html"]


CHARTS = {
    "plt.plot([1, 2], [3, 4], label='l'); plt.title('T'); plt.xlabel('t (s)')":
        {"type": "line", "title": "T", "x_label": "t (s)", "x_unit": "s", "elements": [{"label": "l", "points": [[1, 3], [2, 4]]}]},
    "plt.scatter([1], [2])": {"type": "scatter", "elements": [{"label": "Scatter 0", "points": [[1.0, 2.0]]}]},
    "plt.bar(['a', 'b'], [1, 2])":
        {"type": "bar", "elements": [{"label": "a", "group": "Group 0", "value": 1}, {"label": "b", "group": "Group 0", "value": 2}]},
    "plt.barh(['a', 'b'], [1, 2]); plt.xlabel('n')":
        {"type": "bar", "y_label": "n", "elements": [{"label": "a", "group": "Group 0", "value": 1},
                                                     {"label": "b", "group": "Group 0", "value": 2}]},
    "plt.pie([1, 3], labels=['x', 'y'])":
        {"type": "pie", "elements": [{"label": "x", "angle": 90.0, "radius": 1.0}, {"label": "y", "angle": 270.0, "radius": 1.0}]},
    "plt.boxplot([[1, 2, 3, 4, 50]], patch_artist=True)":
        {"type": "box_and_whisker", "elements": [{"label": "1", "min": 1.0, "first_quartile": 2.0, "median": 3.0,
                                                  "third_quartile": 4.0, "max": 4.0, "outliers": [50.0]}]},
}


@pytest.mark.parametrize("code", CHARTS)
def test_a_figure_comes_as_a_picture_and_as_data(python, code):
    pytest.importorskip("matplotlib")
    [data] = displays(python.run(f"import matplotlib.pyplot as plt\n{code};"))
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert {key: data[CHART][key] for key in CHARTS[code]} == CHARTS[code]


def test_show_displays_once_and_an_empty_figure_has_no_chart(python):
    pytest.importorskip("matplotlib")
    assert len(displays(python.run("import matplotlib.pyplot as plt\nplt.plot([1]); plt.show()"))) == 1
    [data] = displays(python.run("plt.figure();"))
    assert data[CHART] == {}
    [data] = displays(python.run("f, a = plt.subplots(1, 2); a[0].plot([1, 2]); a[1].bar(['q'], [1]); f.suptitle('S');"))
    assert data[CHART]["type"] == "superchart" and [c["type"] for c in data[CHART]["elements"]] == ["line", "bar"]


def test_a_picture_that_is_saved_is_shown(python):
    pytest.importorskip("PIL")
    [data] = displays(python.run("from PIL import Image\nImage.new('RGB', (2, 2)).save('x.png')"))
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
