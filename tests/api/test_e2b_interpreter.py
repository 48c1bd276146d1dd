# SPDX-License-Identifier: MIT
"""E2B's code interpreter, byte by byte: what its SDKs read, and what they would hide."""
import importlib.util
import json
import re
import shutil

import pytest

import harness

pytestmark = pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")

needs_r = pytest.mark.skipif(not shutil.which("Rscript"), reason="R is not installed (tools/install-deps r)")


class Interpreter:
    def __init__(self, daemon):
        self.daemon = daemon
        made = daemon.request("POST", "/v2/sandboxes", json={"templateID": "code-interpreter-v1", "secure": True,
                                                             "envVars": {"OWN": "of the sandbox"}},
                              headers={"X-API-Key": daemon.secret, "Authorization": None})
        assert made.status == 201, made.text
        self.made = made.json()
        self.id = self.made["sandboxID"]

    def headers(self, **more):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "Authorization": None,
                "X-Access-Token": self.made.get("envdAccessToken"),
                "E2B-Traffic-Access-Token": self.made.get("trafficAccessToken"), **more}

    def request(self, method, path, json=None, **headers):
        return self.daemon.request(method, path, json=json, headers=self.headers(**headers))

    def lines(self, code, **fields):
        got = self.request("POST", "/execute", {"code": code, **fields})
        assert got.status == 200, got.text
        return [json.loads(line) for line in got.text.splitlines()]

    def result(self, code, **fields):
        return next(line for line in self.lines(code, **fields) if line["type"] == "result")

    def delete(self):
        self.daemon.request("DELETE", f"/sandboxes/{self.id}", headers={"X-API-Key": self.daemon.secret})


@pytest.fixture
def interpreter(daemon):
    made = Interpreter(daemon)
    yield made
    made.delete()


def test_the_lines_of_a_cell(interpreter):
    got = interpreter.request("POST", "/execute", {"code": "print('hi')\nx = 'hello'\nx", "context_id": None, "language": None,
                                                   "env_vars": None})
    assert got.status == 200 and got.text.endswith("\n") and "\n\n" not in got.text
    first, out, result, end = map(json.loads, got.text.splitlines())
    assert first == {"type": "number_of_executions", "execution_count": 1}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", out.pop("timestamp"))
    assert out == {"type": "stdout", "text": "hi\n"}
    assert result == {"type": "result", "text": "hello", "extra": {}, "is_main_result": True}
    assert end == {"type": "end_of_execution"}


@pytest.mark.parametrize("value, text", [("'a'", "a"), ("'it\\'s'", "it's"), ("'\"'", '"'), ("''", ""), ("[1]", "[1]"),
                                         ("'a' + chr(10)", "a\\n"), ("repr", "<function repr(obj, /)>")])
def test_a_pair_of_quotes_is_taken_off(interpreter, value, text):
    assert interpreter.result(value)["text"] == text


def test_lines_are_ascii_and_whole(interpreter):
    code = "print('€🐎漢\\x00' * 5000, end='')\n{'€🐎': '漢'}"
    got = interpreter.request("POST", "/execute", {"code": code})
    assert got.text.isascii()
    lines = [json.loads(line) for line in got.text.splitlines()]
    assert "".join(line["text"] for line in lines if line["type"] == "stdout") == "€🐎漢\0" * 5000
    assert lines[-2]["json"] == {"€🐎": "漢"}
    node = interpreter.request("POST", "/execute", {"code": "display({'text/html': '€🐎'})", "language": "js"})
    assert node.text.isascii() and json.loads(node.text.splitlines()[1])["html"] == "€🐎"


def test_a_bundle_has_its_rest_in_extra(interpreter):
    result = interpreter.result("class Bundle:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
                                "        return {'text/plain': 'own', 'application/vnd.own+json': {'b': [2, None]}}\nBundle()")
    assert (result["text"], result["extra"]) == ("own", {"application/vnd.own+json": {"b": [2, None]}})


def test_an_error_is_one_line_of_strings(interpreter):
    error = next(line for line in interpreter.lines("1 / 0") if line["type"] == "error")
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "\n" in error["traceback"] and "\x1b" not in error["traceback"]


def test_an_interpreter_that_dies_is_told_and_replaced(interpreter):
    *_, error, end = interpreter.lines("import os; os._exit(1)")
    assert (error["type"], error["name"], end["type"]) == ("error", "UnexpectedEndOfExecution", "end_of_execution")
    assert interpreter.result("'os' in globals()")["text"] == "False"


def test_a_silent_cell_is_kept_alive(interpreter):
    assert "keepalive" in [line["type"] for line in interpreter.lines("import time; time.sleep(6)")]


def test_the_head_comes_before_the_cell_ends(interpreter):
    with interpreter.daemon.connect() as connection:
        connection.send("POST", "/execute", json={"code": "import time; time.sleep(30)"}, headers=interpreter.headers())
        answer = connection.http.getresponse()
        assert answer.status == 200
        assert json.loads(answer.readline())["type"] == "number_of_executions"
    assert interpreter.result("2")["text"] == "2"  # the client that left has interrupted its cell


def test_contexts(interpreter):
    made = interpreter.request("POST", "/contexts", {"language": " JS ", "cwd": "/tmp"}).json()
    assert made == {"id": made["id"], "language": "javascript", "cwd": "/tmp"}
    interpreter.lines("1")
    listed = interpreter.request("GET", "/contexts").json()
    assert sorted(x["language"] for x in listed) == ["javascript", "python"]
    assert interpreter.result("process.cwd()", context_id=made["id"])["text"] == "/tmp"
    for method, path in (("POST", f"/contexts/{made['id']}/restart"), ("DELETE", f"/contexts/{made['id']}")):
        got = interpreter.request(method, path)
        assert (got.status, got.json()) == (200, None)
    got = interpreter.request("DELETE", f"/contexts/{made['id']}")
    assert (got.status, got.text) == (404, f"Context {made['id']} not found")


def test_refusals_are_plain_text(interpreter):
    for body, status, words in [
            ({"code": "1", "context_id": "x"}, 404, "Context x not found"),
            ({"code": "1", "context_id": "x", "language": "python"}, 400, "Only one of context_id or language can be provided"),
            ({"code": "1", "language": "java"}, 400, "language: must be")]:
        got = interpreter.request("POST", "/execute", body)
        assert got.status == status and got.text.startswith(words), got.text
        assert got.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("language, code", [("python", "import os; [os.environ.get('OWN'), os.environ.get('CELL')]"),
                                            ("javascript", "[process.env.OWN, process.env.CELL]"),
                                            ("bash", "echo \"['$OWN', '$CELL']\""),
                                            pytest.param("r", "cat(sprintf(\"['%s', '%s']\", Sys.getenv('OWN'), Sys.getenv('CELL')))",
                                                         marks=needs_r)])
def test_variables_of_a_cell_are_taken_back(interpreter, language, code):
    def seen(**fields):
        return next(line["text"] for line in interpreter.lines(code, language=language, **fields)
                    if line["type"] in ("result", "stdout")).replace(" ", "").strip()

    before = seen()
    assert seen(env_vars={"OWN": "o", "CELL": "c"}) == "['o','c']"
    assert seen() == before and "ofthesandbox" in before


def test_a_sandbox_that_has_ended_is_gone(interpreter):
    interpreter.delete()
    assert interpreter.request("POST", "/execute", {"code": "1"}).status == 502
