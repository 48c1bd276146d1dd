# SPDX-License-Identifier: MIT
"""Live interpreters of persistent sandboxes, and their cells."""
import concurrent.futures
import importlib.util
import shutil

import pytest

import harness
import koyeb

HAS_IPYTHON = importlib.util.find_spec("IPython") is not None
needs_ipython = pytest.mark.skipif(not HAS_IPYTHON, reason="IPython is not installed")
COUNT = {  # sets a variable, adds to it, shows it
    "python": ("x = 1", "x += 1; x", "2"),
    "javascript": ("let x = 1", "x += 1; x", "2"),
    "typescript": ("let x: number = 1", "x += 1; x as number", "2"),
    "bash": ("x=1", "x=$((x + 1)); echo $x", None),
    "r": ("x <- 1", "x <- x + 1; cat(x, '\\n')", None),
}
needs_r = pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed (tools/install-deps r)")
MARKS = {"python": needs_ipython, "r": needs_r}
LANGUAGES = [pytest.param(name, marks=MARKS.get(name, ())) for name in COUNT]
SPIN = {"python": "while True: pass", "javascript": "while (true);", "typescript": "while (true);", "bash": "while :; do :; done",
        "r": "repeat {}"}


class Sandbox:
    def __init__(self, daemon):
        self.daemon = daemon
        made = daemon.request("POST", "/v1/sandboxes", json={})
        assert made.status == 201, made.text
        self.path = "/v1/sandboxes/" + made.json()["id"]

    def request(self, method, path, **fields):
        return self.daemon.request(method, self.path + path, **fields)

    def cell(self, code, **fields):
        got = self.request("POST", "/cells", json={"code": code, **fields})
        assert got.status == 200, got.text
        return got.json()

    def context(self, language, **fields):
        got = self.request("POST", "/contexts", json={"language": language, **fields})
        assert got.status == 201, got.text
        return got.json()["id"]


@pytest.fixture
def sandbox(daemon):
    made = Sandbox(daemon)
    yield made
    assert made.request("DELETE", "").status == 204


def value(cell):
    assert cell["status"] == "ok", cell
    return next((r["data"]["text/plain"] for r in cell["results"] if r["main"]), None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_state_stays_between_cells(sandbox, language):
    first, second, want = COUNT[language]
    assert sandbox.cell(first, language=language)["status"] == "ok"
    cell = sandbox.cell(second, language=language)
    assert (value(cell) or cell["stdout"].strip()) == "2" and want in (None, "2")
    assert cell["execution_count"] == 2 and cell["language"] == language and "restarted" not in cell


@pytest.mark.parametrize("language", LANGUAGES)
def test_contexts_have_states_of_their_own_and_one_file_system(sandbox, language):
    first, second, _ = COUNT[language]
    one, two = sandbox.context(language), sandbox.context(language)
    assert sandbox.cell(first, context=one)["status"] == "ok"
    assert sandbox.cell(second, context=two)["stdout"] != "2\n"
    sandbox.cell("echo shared > f", language="bash")
    assert sandbox.cell("cat f", language="bash")["stdout"] == "shared\n"
    listed = sandbox.request("GET", "/contexts").json()["contexts"]
    assert {c["id"]: c["default"] for c in listed}.items() >= {one: False, two: False}.items()
    assert sandbox.request("DELETE", f"/contexts/{one}").status == 204
    assert sandbox.request("GET", f"/contexts/{one}").status == 404


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cell_that_takes_too_long_is_interrupted_and_the_state_stays(sandbox, language):
    first, second, _ = COUNT[language]
    sandbox.cell(first, language=language)
    assert sandbox.cell(SPIN[language], language=language, timeout=0.3)["status"] == "timeout"
    cell = sandbox.cell(second, language=language)
    assert (value(cell) or cell["stdout"].strip()) == "2" and "restarted" not in cell


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_interpreter_that_dies_is_told_and_another_begins(sandbox, language):
    sandbox.cell(COUNT[language][0], language=language)
    killed = sandbox.cell({"python": "import os; os.kill(os.getpid(), 9)", "bash": "kill -9 $$",
                           "r": "tools::pskill(Sys.getpid(), 9)"}.get(
        language, "process.kill(process.pid, 'SIGKILL')"), language=language)
    assert killed["status"] == "crashed" and killed["termination"] == {"reason": "signal", "signal": 9}
    again = sandbox.cell("1", language=language) if language != "bash" else sandbox.cell("echo $x", language="bash")
    assert again["restarted"] is True and again["stdout"] in ("", "\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cell_is_interrupted_from_elsewhere(sandbox, language):
    context = sandbox.context(language)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        spinning = pool.submit(sandbox.cell, SPIN[language], context=context)
        waiting = pool.submit(sandbox.cell, COUNT[language][0], context=context)
        harness.wait_until(lambda: sandbox.request("GET", f"/contexts/{context}").json()["execution_count"] > 0,
                         "a cell has begun")
        while not spinning.done():
            assert sandbox.request("POST", f"/contexts/{context}/interrupt").status == 200
            concurrent.futures.wait([spinning], timeout=0.2)
        assert spinning.result()["status"] in ("interrupted", "error") and waiting.result()["status"] in ("ok", "interrupted")


def test_a_restart_forgets(sandbox):
    context = sandbox.context("bash")
    sandbox.cell("x=1", context=context)
    assert sandbox.request("POST", f"/contexts/{context}/restart").json()["id"] == context
    assert sandbox.cell("echo [$x]", context=context)["stdout"] == "[]\n"


@needs_r
def test_what_r_shows(sandbox):
    def shown(code):
        cell = sandbox.cell(code, language="r")
        assert cell["status"] == "ok", cell
        return cell["stdout"], [one["data"] for one in cell["results"]], [one["main"] for one in cell["results"]]

    assert shown("1; 'a \u20ac'; invisible(2)") == ("[1] 1\n[1] \"a €\"\n", [], [])
    assert shown("x <- 3\nx * 2") == ("", [{"text/plain": "[1] 6"}], [True])
    _, (table,), _ = shown("data.frame(a = 1:2, b = c('<x>', NA), d = as.Date(c('2020-01-01', NA)))")
    assert table["application/vnd.sandbox-executor.table+json"] == {"a": [1, 2], "b": ["<x>", None], "d": ["2020-01-01", None]}
    assert "<td>&lt;x&gt;</td>" in table["text/html"] and table["text/plain"].startswith("  a ")
    _, (value,), _ = shown("list(a = 1, b = c(TRUE, NA), c = list())")
    assert value["application/json"] == {"a": 1, "b": [True, None], "c": []}
    _, bundles, main = shown("display_html('<b>'); plot(1:3); hist(c(1, 2)); 7")
    assert [sorted(one) for one in bundles] == [["text/html"], ["text/plain"], ["image/png"], ["image/png"]] and main == [False, True, False, False]
    assert all(one["image/png"].startswith("iVBORw0KGgo") for one in bundles[2:])
    assert shown("cat('x'); system('echo y'); cat('z')") == ("xy\nz", [], [])


@needs_r
def test_errors_of_r(sandbox):
    error = sandbox.cell("f <- function(n) stop('bad ', n)\nf(3)", language="r")["error"]
    assert (error["name"], error["value"]) == ("simpleError", "bad 3")
    assert error["traceback"].splitlines()[0] == "Error in f(3): bad 3" and error["traceback"].splitlines()[-1] == "1. f(3)"
    assert sandbox.cell("x +", language="r")["error"]["name"] == "SyntaxError"
    assert "y" in sandbox.cell("warning('why'); 1", language="r")["stderr"]
    assert sandbox.cell("quit()", language="r")["status"] == "crashed"
    assert sandbox.cell("2", language="r")["restarted"] is True


@needs_r
def test_r_keeps_its_state_when_it_waits_and_is_interrupted(sandbox):
    sandbox.cell("x <- 1", language="r")
    for code in ("Sys.sleep(600)", "system('sleep 600')", "readLines(pipe('sleep 600'))"):
        assert sandbox.cell(code, language="r", timeout=0.2)["status"] == "timeout"
    assert value(sandbox.cell("x", language="r")) == "[1] 1"


@pytest.mark.skipif(bool(shutil.which("Rscript")), reason="R is installed")
def test_r_where_it_is_not_installed_is_refused_with_its_package(sandbox):
    got = sandbox.request("POST", "/cells", json={"code": "1", "language": "r"})
    assert got.status == 400 and "r-base-core" in got.text, got


def test_output_of_children_comes_before_what_the_interpreter_writes_after_it(sandbox):
    cell = sandbox.cell("console.log('a'); require('child_process').execSync('echo b', {stdio: 'inherit'}); console.log('c')",
                        language="javascript")
    assert cell["stdout"] in ("a\nb\nc\n", "b\na\nc\n")  # in two channels: the child's may be read first


def test_characters_that_are_cut_are_whole(sandbox):
    cell = sandbox.cell(r"for i in 1 2 3; do printf '\xe2'; sleep 0.01; printf '\x82\xac'; done; printf '\xff'", language="bash")
    assert cell["stdout"] == "€€€�"


def streamed(daemon, sandbox, **body):
    return koyeb.Events(daemon, "POST", sandbox.path + "/cells", body,
                        {"Accept": "text/event-stream", "Content-Type": "application/json"})


def test_a_stream_tells_as_it_goes(sandbox, daemon):
    events = list(streamed(daemon, sandbox, language="javascript",
                           code="console.log(1); display.html('<b>'); throw new TypeError('no')"))
    assert [name for name, _, _ in events] == ["started", "stdout", "display", "error", "end"]
    assert events[1][1] == {"text": "1\n"} and events[2][1]["data"] == {"text/html": "<b>"}
    assert events[3][1]["name"] == "TypeError" and events[4][1]["status"] == "error"


def test_a_client_that_leaves_interrupts_its_cell(sandbox, daemon):
    context = sandbox.context("bash")
    stream = streamed(daemon, sandbox, context=context, code="echo on; sleep 600")
    assert next(data for name, data, _ in stream if name == "stdout") == {"text": "on\n"}
    stream.close()
    assert sandbox.cell("echo next", context=context)["stdout"] == "next\n"


@needs_ipython
def test_a_stream_that_was_slow_at_its_end_does_not_stop_the_next_cell(sandbox):
    """The last event of a cell is larger than what waits for a client: the interpreter was paused for it, and for ever."""
    large = "import sys\nfor i in range(9): sys.stdout.write('\\x01' * 1000000)\n'\\x01' * 5000000"
    events = sandbox.request("POST", "/cells", json={"code": large}, headers={"Accept": "text/event-stream"})
    assert events.status == 200 and events.body.rstrip().count(b"event: end") == 1
    assert sandbox.cell("1 + 1", timeout=20)["status"] == "ok"


def test_variables_of_a_cell_of_bash_do_not_stay(sandbox):
    text = "a'b\\\n$x €\t\"`ls`"
    assert sandbox.cell("export KEPT='1 2'; PLAIN=3", language="bash")["status"] == "ok"
    show = 'printf %s "$Q"; printf "|%s|%s|" "$KEPT" "$PLAIN"; printenv PLAIN'
    assert sandbox.cell(show, language="bash", env={"Q": text, "KEPT": "x", "PLAIN": "y"})["stdout"] == text + "|x|y|y\n"
    assert sandbox.cell(show, language="bash")["stdout"] == "|1 2|3|"
    assert sandbox.cell("exit 3", language="bash", env={"Q": "1"})["status"] != "ok"


def test_variables_of_a_cell_do_not_stay(sandbox):
    assert value(sandbox.cell("process.env.Q", language="javascript", env={"Q": "v"})) == "'v'"
    assert value(sandbox.cell("process.env.Q", language="javascript")) is None


@pytest.mark.parametrize("body, word", [
    ({}, "code"), ({"code": 1}, "code"), ({"code": "1", "language": "cobol"}, "language"), ({"code": "1", "lang": "js"}, "language"),
    ({"code": "1", "language": "bash", "env": {"A b": "c"}}, "env"), ({"code": "1", "env": {"A=B": "c"}}, "env"), ({"code": "1", "timeout": -1}, "timeout")])
def test_what_is_wrong_is_named(sandbox, body, word):
    got = sandbox.request("POST", "/cells", json=body)
    assert got.status == 400 and word in got.text


def test_what_is_not_there_is_404(sandbox, daemon):
    assert sandbox.request("POST", "/cells", json={"code": "1", "context": "nope"}).status == 404
    assert sandbox.request("POST", "/contexts/nope/restart").status == 404
    assert daemon.request("POST", "/v1/sandboxes/nope/cells", json={"code": "1"}).status == 404


def test_contexts_are_limited(sandbox):
    made = [sandbox.request("POST", "/contexts", json={"language": "bash"}) for _ in range(33)]
    assert [m.status for m in made] == [201] * 32 + [503] and made[-1].headers.get("Retry-After")


def test_a_sandbox_that_is_deleted_ends_its_cells(daemon):
    sandbox = Sandbox(daemon)
    context = sandbox.context("bash")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        cell = pool.submit(sandbox.cell, "sleep 600", context=context)
        harness.wait_until(lambda: sandbox.request("GET", f"/contexts/{context}").json()["state"] == "busy", "it runs")
        assert sandbox.request("DELETE", "").status == 204
        assert cell.result()["status"] == "crashed"


def test_rubbish_on_the_channel_ends_only_the_interpreter(sandbox):
    sandbox.cell("echo rubbish >&3; sleep 600", language="bash", timeout=5)  # closed for the cell: nothing happens
    got = sandbox.cell("require('fs').writeSync(3, 'Rffffffff'); await new Promise(() => {})", language="javascript", timeout=5)
    assert got["status"] in ("crashed", "timeout")
    assert value(sandbox.cell("1 + 1", language="javascript")) == "2"


@pytest.mark.parametrize("language, code", [
    pytest.param("python", "print('x' * 3_000_000); display('y' * 9_000_000)", marks=needs_ipython),
    ("javascript", "console.log('x'.repeat(3e6)); display('y'.repeat(9e6))")])
def test_what_is_large_is_answered_or_cut(sandbox, language, code):
    cell = sandbox.cell(code, language=language)
    assert cell["status"] == "ok" and len(cell["stdout"]) == 3_000_001
    [shown] = cell["results"]
    assert shown["data"]["text/plain"].endswith("(too large to be shown)") and len(shown["data"]["text/plain"]) < 1 << 20


def test_output_beyond_the_limit_is_cut_and_said(sandbox):
    cell = sandbox.cell("head -c 12000000 /dev/zero | tr '\\0' a", language="bash")
    assert len(cell["stdout"]) == 10 << 20 and cell["stdout_truncated"] is True


@needs_ipython
def test_a_figure_of_matplotlib_is_displayed(sandbox):
    pytest.importorskip("matplotlib")
    cell = sandbox.cell("import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4]);", timeout=120)
    assert cell["status"] == "ok", cell
    assert cell["results"][0]["data"]["application/vnd.sandbox-executor.chart+json"]["type"] == "line"
