# SPDX-License-Identifier: MIT
"""POST /v1/functions/inspect: what the parser finds, from inside a real sandbox."""
import shutil

import pytest

import harness

PATH = "/v1/functions/inspect"
BUILT = (harness.BUILD / "sandbox-inspect").exists()
needs_grammars = pytest.mark.skipif(not BUILT, reason="built without grammars (tools/fetch-grammars)")


def inspect(daemon, language, code):
    response = daemon.request("POST", PATH, json={"language": language, "code": code})
    assert response.status == 200, response
    return response.json()


@needs_grammars
@pytest.mark.parametrize("language, code", [
    ("python", "def add(a: int, b: int = 2) -> int:\n    '''Adds.'''\n    return a + b\n"),
    ("javascript", "/** Adds. */\nexport function add(a, b = 2) { return a + b }\n"),
    ("js", "const add = (a, b = 2) => a + b\n"),
    ("ruby", "# Adds.\ndef add(a, b = 2)\n  a + b\nend\n"),
    ("php", "/** Adds. */\nfunction add(int $a, int $b = 2): int { return $a + $b; }\n"),
    ("cpp", "/** Adds. */\nint add(int a, int b = 2) { return a + b; }\n"),
    ("c++", "int add(int a, int b = 2) { return a + b; }\n"),
])
def test_each_language_becomes_a_tool(daemon, language, code):
    found = inspect(daemon, language, code)
    assert found["detected"] == {"name": "add", "candidates": ["add"]} and found["syntaxError"] is None
    function, = found["functions"]
    assert function["refused"] is None
    schema = function["tool"]["parameters"]
    assert function["tool"]["name"] == "add" and schema["required"] == ["a"]
    assert list(schema["properties"]) == ["a", "b"] and schema["properties"]["b"]["default"] == 2


@needs_grammars
def test_code_is_parsed_and_never_run(daemon):
    found = inspect(daemon, "python", "import os\nos.abort()\nraise SystemExit(9)\ndef f(): pass\n")
    assert [f["name"] for f in found["functions"]] == ["f"]


@needs_grammars
def test_broken_code_is_an_answer(daemon):
    found = inspect(daemon, "python", "def f(a): pass\ndef g(:\n")
    assert found["syntaxError"]["line"] == 2 and found["functions"][0]["name"] == "f"


@needs_grammars
def test_empty_code_has_no_functions(daemon):
    assert inspect(daemon, "php", "")["functions"] == []


@needs_grammars
def test_nul_and_lone_surrogates_do_no_harm(daemon):
    assert inspect(daemon, "python", "def f(a='\0'): pass")["functions"]
    response = daemon.request("POST", PATH, body='{"language":"python","code":"\\ud800"}', headers={"Content-Type": "application/json"})
    assert response.status == 400


@needs_grammars
@pytest.mark.parametrize("code", ["(" * 200_000, "{" * 300_000, "x" * (1 << 20), "[" * 500_000 + "]" * 500_000], ids=len)
def test_hostile_code_is_answered_or_refused(daemon, code):
    response = daemon.request("POST", PATH, json={"language": "javascript", "code": code})
    assert response.status in (200, 422), response
    assert inspect(daemon, "python", "def still(): pass")["functions"][0]["name"] == "still"


@needs_grammars
def test_the_same_code_is_parsed_once(make_daemon):
    daemon = make_daemon()
    code = "def f(a): return a\n"
    first = inspect(daemon, "python", code)
    assert all(inspect(daemon, "python", code) == first for _ in range(5))
    assert inspect(daemon, "ruby", code)["language"] == "ruby"
    assert daemon.metric("sandbox_inspections_total") == 2
    assert daemon.metric("sandbox_inspections_known_total") == 5


@needs_grammars
def test_a_client_that_leaves_ends_it(daemon):
    with harness.Connection(daemon) as connection:
        connection.send("POST", PATH, json={"language": "php", "code": "class A{" * 100_000})
    assert inspect(daemon, "python", "def f(): pass")["detected"]["name"] == "f"


@needs_grammars
def test_answers_larger_than_is_handled_on_the_loop(daemon):
    code = "".join(f"def f{i}(a, b=1, *c, d=None, **e): pass\n" for i in range(2000))
    assert len(inspect(daemon, "python", code)["functions"]) == 2000


@pytest.mark.parametrize("body, field", [
    ({"code": "x"}, "language"), ({"language": "python"}, "code"), ({"language": "cobol", "code": ""}, "language"),
    ({"language": "python", "code": 1}, "code"), ({"language": "python\0", "code": ""}, "language"),
])
def test_wrong_bodies_are_refused_by_name(daemon, body, field):
    response = daemon.request("POST", PATH, json=body)
    assert response.status == 400
    assert any(field in issue["loc"] for issue in response.json()["detail"]), response


def test_it_wants_the_secret(daemon):
    response = daemon.request("POST", PATH, json={"language": "python", "code": ""}, headers={"Authorization": "Bearer no"})
    assert response.status == 401


def test_it_is_documented(daemon):
    document = daemon.request("GET", "/openapi.json").json()
    operation = document["paths"][PATH]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    fields = schema["properties"]
    assert set(fields) == {"language", "code"}


def test_without_the_program_it_says_so(make_daemon, tmp_path):
    """Built without grammars, everything else works. Programs look for one another beside themselves."""
    tmp_path.chmod(0o755)
    for program in harness.BUILD.glob("sandbox-*"):
        if program.is_file() and program.name != "sandbox-inspect":
            shutil.copy(program, tmp_path)
    daemon = make_daemon(binary=tmp_path / "sandbox-executor")
    response = daemon.request("POST", PATH, json={"language": "python", "code": "def f(): pass"})
    assert response.status == 501 and response.json()["error_code"] == "Executor.NotAvailable", response
    assert daemon.execute("def handler(e): return 1")["return_value"] == 1


@needs_grammars
@pytest.mark.parametrize("language,expected", [
    ("python", {"variadic": True, "acceptsKwargs": True, "hasOptionsParam": False}),
    ("ruby", {"variadic": True, "acceptsKwargs": True, "hasOptionsParam": False}),
    ("php", {"variadic": True, "acceptsKwargs": True, "hasOptionsParam": False}),
    ("javascript", {"variadic": False, "acceptsKwargs": False, "hasOptionsParam": True}),
    ("c", {"variadic": False, "acceptsKwargs": False, "hasOptionsParam": False, "returnType": "int"}),
    ("cpp", {"variadic": False, "acceptsKwargs": False, "hasOptionsParam": False, "returnType": "int"}),
])
def test_what_is_assumed_of_a_function_that_is_not_there(daemon, language, expected):
    found = inspect(daemon, language, "")
    assert found["functions"] == [] and found["convention"] == {"input": {}, **expected, "source": "convention"}
