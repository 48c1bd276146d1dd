# SPDX-License-Identifier: MIT
"""Where people get stuck they are told what helps: errors with a solution, failures with a hint."""
import socket

import pytest

from harness import start_refused


def solution(daemon, method, path, **more):
    answer = daemon.request(method, path, **more)
    return answer.status, answer.json()["solution"]


def test_401_says_where_the_secret_is(daemon):
    status, words = solution(daemon, "GET", "/info", headers={"Authorization": "Bearer wrong"})
    assert status == 401
    assert "Authorization: Bearer" in words and "SANDBOX_SECRET" in words and "state directory" in words


@pytest.mark.parametrize("method, path, near", [
    ("POST", "/exekute", "POST /execute?"),
    ("POST", "/v1/execute", "POST /execute?"),
    ("POST", "/v1/function/call", "POST /v1/functions/call?"),
    ("GET", "/v1/sandbox", "/v1/sandboxes?"),
    ("GET", "/v1/execution/abc", "/v1/executions/abc?"),
    ("GET", "/healthz", "GET /health?"),
    ("GET", "/something/else/entirely", "GET /docs"),
])
def test_404_names_the_nearest_endpoint_and_the_docs(daemon, method, path, near):
    status, words = solution(daemon, method, path)
    assert status == 404 and near in words and "/docs" in words
    assert ("Did you mean" in words) == ("?" in near)


def test_405_names_the_methods(daemon):
    assert solution(daemon, "GET", "/execute") == (405, "Use POST here. GET /docs shows every endpoint.")
    status, words = solution(daemon, "PUT", "/v1/sandboxes")
    assert status == 405 and "POST" in words and "GET" in words


def test_413_names_the_settings(make_daemon):
    daemon = make_daemon(BODY_MAX_EXECUTE=2000)
    status, words = solution(daemon, "POST", "/execute", json={"language": "shell", "code": "#" * 3000})
    assert status == 413 and "BODY_MAX_EXECUTE" in words


@pytest.mark.parametrize("language", ["ruby", "rust"])
def test_a_language_of_another_endpoint(daemon, language):
    answer = daemon.request("POST", "/execute", json={"language": language, "code": ""})
    assert answer.status == 400
    assert "POST /v1/functions/call takes " in answer.json()["error_detail"]
    assert "ruby, php" in answer.json()["error_detail"]


def named_packages(hint):
    return "POST /v1/packages" in hint and "'packages'" in hint


MISSING = {
    "python": "import nosuchmodule",
    "javascript": "require('nosuchmodule')",
    "shell": "python3 -c 'import nosuchmodule'",
}


@pytest.mark.parametrize("language", MISSING)
def test_a_missing_module_comes_with_the_way_to_bring_it(daemon, language):
    result = daemon.execute(MISSING[language], language)
    assert result["status"] == "failed" and "denied" not in result
    assert named_packages(result["termination"]["hint"]), result["termination"]
    if language == "shell":
        return
    body = {"language": language, "code": MISSING[language], "functionName": "f"}
    result = daemon.request("POST", "/v1/functions/call", json=body).json()
    assert named_packages(result["termination"]["hint"]), result


def test_pip_install_inside_names_our_way_not_the_distribution(daemon):
    """What pip of Debian says; it need not be installed here."""
    code = "echo 'error: externally-managed-environment' >&2; echo 'try apt install python3-xyz' >&2; exit 1"
    result = daemon.execute(code, "shell")
    assert [d["what"] for d in result["denied"]] == ["package installation"]
    assert named_packages(result["termination"]["hint"])
    home = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    ran = daemon.request("POST", f"/v1/sandboxes/{home}/run", json={"cmd": code}).json()
    assert "archive=tar" in ran["hint"] and named_packages(ran["hint"])
    ran = daemon.request("POST", f"/v1/sandboxes/{home}/run", json={"cmd": "python3 -c 'import nosuchmodule'"}).json()
    assert "archive=tar" in ran["hint"] and "denied" not in ran
    assert "hint" not in daemon.request("POST", f"/v1/sandboxes/{home}/run", json={"cmd": "false"}).json()
    daemon.request("DELETE", f"/v1/sandboxes/{home}")


def test_a_result_that_is_too_large_names_its_limit(make_daemon):
    daemon = make_daemon(RESULT_MAX=5000)
    result = daemon.execute("def handler(e): return 'x' * 6000")
    assert result["status"] == "failed" and result["return_value"] is None
    end = result["termination"]
    assert (end["limit"], end["limit_value"]) == ("result_bytes", 5000) and "a file in the workspace" in end["hint"]


@pytest.mark.parametrize("language, code, words", [
    ("python", "def f():\n    return [float('inf')]", "Out of range float values are not JSON compliant"),
    ("javascript", "function f() { return { a: NaN } }", "JSON has neither NaN nor infinite numbers, but there is one at 'a'"),
])
def test_a_number_that_json_lacks_is_an_error_of_a_function(daemon, language, code, words):
    body = {"language": language, "code": code, "functionName": "f"}
    result = daemon.request("POST", "/v1/functions/call", json=body).json()
    assert (result["status"], result.get("result")) == ("error", None)
    assert words in result["error"]["message"]


@pytest.mark.parametrize("variable, other", [("EXECUTOR_PORT", "PROXY_PORT"), ("PROXY_PORT", "EXECUTOR_PORT")])
def test_a_port_in_use_is_told_with_the_option_that_chooses_another(variable, other):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = start_refused(**{variable: taken.getsockname()[1], other: 0})
    assert f"choose one with {variable}" in str(said), said


def test_misspelt_variables_are_warned_of(make_daemon):
    daemon = make_daemon(SANDBOX_SECRT="x", EXECUTOR_TIMEOUT=5, MAX_MEMORY=100, SANDBOX_EXECUTOR_SERVICE_HOST="10.0.0.1",
                         UNRELATED_NAME="y", PYTHONPATH="/x")
    told = {r["variable"]: r["nearest_option"] for r in daemon.records() if r["event_type"] == "unknown_variable"}
    assert told == {"SANDBOX_SECRT": "SANDBOX_SECRET", "EXECUTOR_TIMEOUT": "", "MAX_MEMORY": "MAX_MEMORY_MB"}, told
