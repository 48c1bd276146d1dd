# SPDX-License-Identifier: MIT
"""Arguments of 64 MiB, and what inline does with more than it takes."""
import os

import pytest

LONG = os.environ.get("SBX_LONG") == "1"
SIZE = 64 << 20
CODES = {
    "python": "def f(s): return [len(s), s[-1]]",
    "javascript": "function f(s) { return [s.length, s.at(-1)] }",
    "ruby": "def f(s)\n  [s.size, s[-1]]\nend",
    "php": "function f($s) { return [strlen($s), $s[-1]]; }",
    "c": "#include <string.h>\nlong f(const char *s) { return strlen(s); }",
    "cpp": "#include <string>\nlong f(const std::string &s) { return s.size(); }",
    "perl": "sub f { return [length $_[0], substr($_[0], -1)] }",
}


def ask(daemon, language, mode, size):
    """The body is made by hand: encoding it would take longer than the call."""
    text = b"x" * (size - 1) + b"y"
    head = (f'{{"language": "{language}", "functionName": "f", "argsMode": "{mode}", "timeout": 120, "code": '
            + '"' + CODES[language].replace("\n", "\\n").replace('"', '\\"') + '", "args": ["').encode()
    response = daemon.request("POST", "/v1/functions/call", body=head + text + b'"]}', timeout=180,
                              headers={"Content-Type": "application/json"})
    assert response.status == 200, response
    return response.json()


@pytest.mark.parametrize("mode", ["stdin", "file"])
@pytest.mark.parametrize("language", CODES)
def test_64_mib(daemon, language, mode):
    if language != "python" and not LONG:
        pytest.skip("SBX_LONG=1 asks all languages")
    result = ask(daemon, language, mode, SIZE)
    assert result["status"] == "success", result
    assert result["result"] == (SIZE if language in ("c", "cpp") else [SIZE, "y"])
    assert result["meta"]["argsMode"] == mode


@pytest.mark.parametrize("language", CODES)
def test_inline_takes_a_mib(daemon, language):
    assert ask(daemon, language, "inline", 1000000)["status"] == "success"
    refused = ask(daemon, language, "inline", (1 << 20) + 1)
    assert refused["status"] == "error" and refused["error"]["type"] == "ValueError"
    assert "1048576" in refused["error"]["message"] and "stdin or file" in refused["error"]["message"]
