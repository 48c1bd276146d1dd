# SPDX-License-Identifier: MIT
"""What a request brings and asks for itself: files, limits, short time limits."""

import base64

import harness
import pytest

LIST = "cd /workspace; find . -type f | sort"


def refused(daemon, member, **more):
    response = daemon.request("POST", "/execute",
                              json={"language": "shell", "code": "true", **more})
    assert response.status == 400, response.text
    issues = response.json()["detail"]
    assert any(member in issue["loc"] for issue in issues), issues
    return issues


# ---- files ----


@pytest.mark.parametrize("language, code", [
    ("shell", "cat /workspace/a/b.txt c.bin | od -An -tx1"),
    ("python", "import sys\nprint((open('a/b.txt','rb').read() + open('/workspace/c.bin','rb').read()).hex(' '))"),
    ("javascript", "const fs = require('fs');\n"
                   "console.log(Buffer.concat([fs.readFileSync('a/b.txt'), fs.readFileSync('c.bin')]).toString('hex'))"),
])
def test_files_are_there_when_the_program_starts(daemon, language, code):
    files = {"a/b.txt": "hé", "/workspace/c.bin": {"base64": base64.b64encode(b"\0\xff").decode()}}
    result = daemon.execute(code, language, files=files)
    assert result["status"] == "success", result
    assert result["stdout"].replace(" ", "").strip() == "68c3a900ff"
    assert result["artifacts"] == []  # unchanged: not something that the program made


def test_a_module_that_came_with_the_request_is_imported(daemon):
    result = daemon.execute("import mine\nprint(mine.x)", files={"mine.py": "x = 7"})
    assert result["stdout"] == "7\n"


def test_a_changed_file_is_an_artifact(daemon):
    result = daemon.execute("echo more >> a; rm b; echo new > d", "shell", files={"a": "1", "b": "2", "c": "3"})
    assert result["artifacts"] == ["a", "d"]
    assert daemon.request("GET", f"/v1/executions/{result['execution_id']}/artifacts/a").text == "1more\n"


def test_a_file_belongs_to_the_program(daemon):
    result = daemon.execute("test -O a && echo x > a && rm a && mv d/e . && rmdir d && stat -c %a e", "shell",
                            files={"a": "", "d/e": ""})
    assert result["stdout"] == "644\n", result


def test_files_of_a_session_stay(daemon):
    session = {"session_id": "with-files"}
    for files in ({"a": "1"}, {"b": "2"}):
        answer = daemon.request("POST", "/execute", headers={"Prefer": "wait"},
                                json={"language": "shell", "code": "cat *", "files": files, **session}).json()
    assert answer["stdout"] == "12"


@pytest.mark.parametrize("path", ["../a", "a/../b", "/etc/passwd", "/workspace/../etc/x", "", "/", "/workspace", "/workspace/",
                                  "a/", "a//b", "./a", "a/.", "a\0b", "a\nb", "x" * 256, "/".join(["x" * 100] * 11)])
def test_other_paths_are_refused(daemon, path):
    refused(daemon, "files", files={path: "x"})


@pytest.mark.parametrize("content", [None, 1, [], {}, {"base64": 1}, {"base64": "a"}, {"base64": "YQ==", "mode": 1},
                                     {"text": "a"}, {"base64": "YQ== "}])
def test_other_contents_are_refused(daemon, content):
    assert "base64" in refused(daemon, "files", files={"a": content})[0]["msg"]


@pytest.mark.parametrize("files", [None, [], "a", {"a": "1", "/workspace/a": "2"}, {f"f{i}": "" for i in range(1001)}])
def test_other_files_are_refused(daemon, files):
    refused(daemon, "files", files=files)


def test_a_file_where_a_directory_must_be_is_a_result(daemon):
    result = daemon.execute("true", "shell", files={"a": "1", "a/b": "2"})
    assert result["status"] == "failed" and "files" in result["stderr"], result


def test_a_large_body_is_decoded_beside_the_loop(daemon):
    text = "x" * (1 << 21)
    assert daemon.execute("wc -c < big", "shell", files={"big": text})["stdout"].strip() == str(1 << 21)


# ---- limits ----


def test_less_memory_for_one_execution(daemon):
    hungry = "x = bytearray(200 << 20)\nprint(len(x))"
    assert daemon.execute(hungry)["status"] == "success"
    result = daemon.execute(hungry, limits={"memory_mb": 100})
    assert result["status"] == "error", result
    assert result["termination"]["reason"] == "oom"
    assert result["termination"]["limit_value"] == 100 << 20
    assert daemon.execute(hungry)["status"] == "success"


@pytest.mark.parametrize("language, code", [("python", "print(1)"), ("javascript", "console.log(1)")])
def test_a_warmed_interpreter_serves_small_limits_too(daemon, language, code):
    template = lambda **fields: daemon.execute(code, language, **fields)["isolation"]["template"]
    if harness.JAIL == "native":
        harness.wait_until(lambda: template() != "exec", "the interpreter is warmed")
    result = daemon.execute(code, language, limits={"memory_mb": 200, "processes": 30})
    assert result["stdout"] == "1\n", result
    assert result["isolation"]["template"] == template()


def test_fewer_processes_for_one_execution(daemon):
    code = "for i in $(seq 20); do sleep 5 & done; wait"
    result = daemon.execute(code, "shell", limits={"processes": 8})
    assert result["termination"]["reason"] in ("pids", "exit"), result
    assert "fork" in result["stderr"]


def test_less_output_for_one_execution(daemon):
    result = daemon.execute("printf 123456789", "shell", limits={"output_bytes": 4})
    assert result["stdout"] == "1234" and result["stdout_truncated"] is True


def test_less_processor_time_for_one_execution(daemon):
    result = daemon.execute("while :; do :; done", "shell", timeout=60, limits={"cpu_seconds": 0.3})
    assert result["termination"]["reason"] == "cpu", result
    assert result["termination"]["limit_value"] == 300


def test_a_short_time_limit(daemon):
    result = daemon.execute("import time\ntime.sleep(60)", timeout=0.25)
    assert result["status"] == "timeout"
    assert result["termination"]["limit_value"] == 250
    assert "timeout after 0.250 seconds" in result["stderr"]


@pytest.mark.parametrize("limits, member", [
    ({"memory_mb": 1 << 20}, "memory_mb"), ({"memory_mb": 15}, "memory_mb"), ({"memory_mb": "much"}, "memory_mb"),
    ({"processes": 0}, "processes"), ({"processes": 1 << 20}, "processes"), ({"processes": 1.5}, "processes"),
    ({"output_bytes": 0}, "output_bytes"), ({"output_bytes": 1 << 40}, "output_bytes"),
    ({"cpu_seconds": 0}, "cpu_seconds"), ({"cpu_seconds": 1e9}, "cpu_seconds"), ({"cpu_seconds": True}, "cpu_seconds"),
    ({"cpu": 1}, "cpu"), (None, "limits"), ([], "limits"), (3, "limits"),
])
def test_limits_have_ceilings_and_names(daemon, limits, member):
    refused(daemon, member, limits=limits)


def test_a_ceiling_is_named(daemon):
    assert "MAX_MEMORY_MB" in refused(daemon, "memory_mb", limits={"memory_mb": 1 << 20})[0]["msg"]
    assert "memory_mb" in refused(daemon, "memory", limits={"memory": 64})[0]["msg"]
