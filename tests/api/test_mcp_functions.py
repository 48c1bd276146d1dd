# SPDX-License-Identifier: MIT
"""Functions as tools of the Model Context Protocol: called once from source text, or published."""
import pytest

from mcp_client import MODERN, Client, text_of

PYTHON = '''
def area(width: int, height: int = 2) -> int:
    """Area of a rectangle."""
    print("measuring")
    return width * height

def fail(x): raise ValueError(f"bad {x}")

def shown(n): return {"$mcp": {"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}, {"type": "text", "text": "x" * n}]}}

def wrong(): return {"$mcp": {"content": [{"type": "image", "data": 1}]}}

def told(): return {"$mcp": {"content": [{"type": "text", "text": "no"}], "isError": True}}
'''


@pytest.fixture
def client(daemon):
    return Client(daemon, MODERN)


def call(client, function, **arguments):
    return client.call("call_function", code=PYTHON, function=function, arguments=arguments)


def test_a_function_of_a_text_is_called(client):
    got = call(client, "area", width=3)
    assert got["isError"] is False and got["structuredContent"] == {"result": 6}
    assert text_of(got) == "6\n[stdout]\nmeasuring"
    assert got["_meta"]["io.sandbox-executor/run"].startswith("call_")
    assert call(client, "area", width=3, height=5)["structuredContent"] == {"result": 15}


@pytest.mark.parametrize("language, code", [
    ("javascript", "function f(o) { return { sum: o.a + o.b } }"),
    ("ruby", "def f(a:, b:)\n  { sum: a + b }\nend"),
    ("php", "function f($a, $b) { return ['sum' => $a + $b]; }"),
    ("perl", "use v5.36; sub f($a, $b) { return { sum => $a + $b } }"),
])
def test_an_object_is_the_data_in_every_language(client, language, code):
    got = client.call("call_function", code=code, language=language, function="f", arguments={"a": 1, "b": 2})
    assert got["structuredContent"] == {"sum": 3}, got


def test_an_exception_is_an_error_of_the_tool(client):
    got = call(client, "fail", x=1)
    assert got["isError"] is True and "structuredContent" not in got
    assert text_of(got).startswith("[error] ValueError: bad 1") and "def fail" in text_of(got)


def test_a_function_may_bring_its_own_content(client):
    got = call(client, "shown", n=3)
    assert [block["type"] for block in got["content"]] == ["image", "text"] and "structuredContent" not in got
    assert call(client, "told")["isError"] is True
    wrong = call(client, "wrong")
    assert wrong["structuredContent"] == {"$mcp": {"content": [{"type": "image", "data": 1}]}}, "a value like any other"


def test_a_long_result_is_cut(client):
    got = client.call("call_function", code="def f(): return 'y' * 50000")
    assert len(text_of(got)) < 17000 and "characters cut]" in text_of(got) and got["structuredContent"] == {"result": None}


def test_a_call_ends_with_its_time(client):
    got = client.call("call_function", code="def f():\n    while True: pass", timeout_seconds=1)
    assert got["isError"] is True and "timed out after 1 seconds" in text_of(got) and "[hint]" in text_of(got)


@pytest.mark.parametrize("arguments, words", [
    ({}, "tool or code is needed"),
    ({"code": "x = 1", "language": "cobol"}, "language"),
    ({"code": "def f(): pass", "arguments": []}, "arguments"),
    ({"code": "def f(): pass", "function": "g"}, "not found"),
    ({"code": "def f(): pass", "timeout": 3}, "timeout_seconds"),
])
def test_what_is_wrong_is_told(client, arguments, words):
    got = client.call("call_function", **arguments)
    assert got["isError"] is True and words in text_of(got), got
