# SPDX-License-Identifier: MIT
"""Shell programs, standard input and the environment (in all languages)."""
import json
import re

import pytest

import harness


def test_shell_is_bash_and_succeeds(daemon):
    result = daemon.execute('echo "$BASH_VERSION"; echo err >&2', "shell")
    assert (result["status"], result["exit_code"], result["return_value"]) == ("success", 0, None)
    assert result["stdout"].strip() and result["stderr"] == "err\n"


def test_a_failing_command_does_not_end_the_program(daemon):
    assert daemon.printed("false; echo on") == "on\n"


@pytest.mark.parametrize("code, exit_code", [
    ("exit 0", 0), ("exit 1", 1), ("exit 255", 255), ("false", 1), ("kill -9 $$", 137), ("kill -SEGV $$", 139),
    ("nosuchcommand", 127), ("/etc/passwd", 126), ("set -e; false; echo no", 1), ("if", 2),
])
def test_exit_codes(daemon, code, exit_code):
    result = daemon.execute(code, "shell")
    assert result["exit_code"] == exit_code
    assert result["status"] == ("success" if exit_code == 0 else "failed")


def test_errors_of_the_shell_name_the_users_line(daemon):
    result = daemon.execute("true\ntrue\nnosuchcommand\n", "shell")
    assert "line 3" in result["stderr"] and "nosuchcommand: command not found" in result["stderr"]


def test_empty_program_succeeds(daemon):
    assert daemon.execute("", "shell")["status"] == "success"


def test_program_beginning_with_a_dash_is_a_program(daemon):
    assert daemon.execute("-c", "shell")["exit_code"] == 127


def test_large_program_runs(daemon):
    code = ":" + " " * 1_000_000 + "\necho end\n"
    assert daemon.printed(code) == "end\n"


def test_event_text_is_carried_byte_for_byte(daemon):
    text = '{ "z": 1.10,\t"a": 1E5, "n": 123456789012345678901234567890.50, "u": "\\u00e9\\ud800", "e": {} }'
    body = '{"language":"shell","code":"printf %%s \\"$EVENT_JSON\\"","event":%s}' % text
    response = daemon.post_execute(body)
    assert response.json()["stdout"] == text


def test_large_event_is_in_a_file_byte_for_byte(daemon):
    text = '{"v":"' + "x" * 300_000 + '", "n": 1.10}'
    body = '{"language":"shell","code":"printf %%s \\"${EVENT_JSON-unset}\\"; cat \\"$EVENT_FILE\\"","event":%s}' % text
    assert daemon.post_execute(body).json()["stdout"] == "unset" + text


# ---- standard input ----


def test_stdin_is_the_programs_input(daemon):
    assert daemon.printed("cat", stdin="a\nb\0c é") == "a\nb\0c é"


def test_without_stdin_input_is_at_its_end(daemon):
    assert daemon.printed("cat; echo done") == "done\n"


def test_large_stdin_arrives_complete(daemon):
    assert daemon.printed("wc -c", stdin="x" * 3_000_000).strip() == "3000000"


def test_stdin_nobody_reads_harms_nobody(daemon):
    assert daemon.printed("echo ok", stdin="x" * 1_000_000) == "ok\n"


@pytest.mark.parametrize("language, code", [
    ("python", "import sys\ndef handler(event): return [event, sys.stdin.read()]"),
    ("javascript", "exports.handler = (e) => [e, require('fs').readFileSync(0, 'utf8')]"),
])
def test_an_object_in_stdin_is_the_event_too(daemon, language, code):
    text = '{"a": 1}'
    assert daemon.returned(code, language, stdin=text) == [{"a": 1}, text]


@pytest.mark.parametrize("language, code", [
    ("python", "import sys\ndef handler(event): return [event, sys.stdin.read()]"),
    ("javascript", "exports.handler = (e) => [e, require('fs').readFileSync(0, 'utf8')]"),
])
def test_a_given_event_wins_over_stdin(daemon, language, code):
    assert daemon.returned(code, language, stdin='{"a": 1}', event={"b": 2}) == [{"b": 2}, '{"a": 1}']


@pytest.mark.parametrize("text", ["plain words", "[1, 2]", "3", ""])
def test_other_stdin_is_only_input(daemon, text):
    code = "import sys\ndef handler(event): return [event, sys.stdin.read()]"
    assert daemon.returned(code, stdin=text) == [{}, text]


# ---- environment ----


def environment(daemon, **fields):
    text = daemon.printed("env -0", **fields)
    return dict(item.split("=", 1) for item in text.split("\0") if item)


def test_environment_is_made_from_nothing(daemon):
    got = environment(daemon)
    assert got["HOME"] == "/workspace" and got["TMPDIR"] == "/tmp" and got["LC_CTYPE"] == "C.UTF-8"
    assert got["PATH"].split(":")[-2:] == ["/usr/bin", "/bin"] or "/usr/bin" in got["PATH"].split(":")
    allowed = {"HOME", "TMPDIR", "LC_CTYPE", "PATH", "PYTHONPATH", "EVENT_JSON", "PWD", "SHLVL", "_", "OLDPWD",
               "USER", "LOGNAME", "SHELL", "TERM", "EXECUTION_ID", "NODE_PATH", "LC_ALL"}
    assert set(got) <= allowed, set(got) - allowed


def test_text_is_utf8_and_a_locale_of_the_request_is_whole(daemon):
    code = "locale; echo ${#E}"
    assert daemon.printed(code, env_vars={"E": "é漢"}).splitlines()[-1] == "2"
    mine = daemon.printed(code, env_vars={"E": "é漢", "LANG": "C"}).splitlines()
    assert mine[0] == "LANG=C" and 'LC_CTYPE="C"' in mine and mine[-1] == "5"


def test_variables_of_the_request_come_last(daemon):
    given = {"A": "1", "HOME": "/tmp", "EMPTY": "", "UNI": "é漢", "LINE": "a\nb", "EQ": "a=b"}
    got = environment(daemon, env_vars=given)
    assert (got["A"], got["HOME"], got["EMPTY"]) == ("1", "/tmp", "")
    assert (got["UNI"], got["LINE"], got["EQ"]) == ("é漢", "a\nb", "a=b")


@pytest.mark.parametrize("language, code", [
    ("python", "import os\ndef handler(event): return os.environ['K']"),
    ("javascript", "exports.handler = () => process.env.K"),
])
def test_variables_reach_handlers(daemon, language, code):
    assert daemon.returned(code, language, env_vars={"K": "v é"}) == "v é"


UNUSUAL = {"a.b": "1", "É": "2", "1a": "3", "a b": "4", "x-y%%": "5", "$(id)": "6", "a'\"`;": "7", "漢": "8", "[0]": "9"}


@pytest.mark.parametrize("language, code", [
    ("python", "import os\ndef handler(event): return dict(os.environ)"),
    ("javascript", "exports.handler = () => ({...process.env})"),
])
@pytest.mark.parametrize("more", [{}, {"LD_BIND_NOT": "1"}], ids=["warm", "cold"])
def test_names_of_variables_are_anything(daemon, language, code, more):
    given = {**UNUSUAL, **more}
    assert given.items() <= daemon.returned(code, language, env_vars=given).items()
    got = daemon.request("POST", "/v1/functions/call", json={
        "language": language, "code": code, "functionName": "handler", "args": [{}], "options": {"env": given}}).json()
    assert given.items() <= got["result"].items()


def test_names_that_are_none_for_a_shell_pass_through_it(daemon):
    assert UNUSUAL.items() <= environment(daemon, env_vars=UNUSUAL).items()
    assert daemon.printed("printenv a.b; echo $1-$HOME", env_vars=UNUSUAL) == "1\n-/workspace\n"


def test_hostile_variables_stay_inside(daemon):
    """Whatever a loader, shell or interpreter does with them, the service itself is untouched."""
    hostile = {"LD_PRELOAD": "/workspace/x.so", "PYTHONPATH": "/nowhere", "NODE_OPTIONS": "--no-warnings",
               "BASH_ENV": "/dev/null", "PATH": "/nowhere", "IFS": "x", "PYTHONHOME": ""}
    for language, code in (("python", "def handler(e): return 1"), ("javascript", "exports.handler = () => 1"),
                           ("shell", "true")):
        assert daemon.execute(code, language, env_vars=hostile)["status"] in ("success", "failed")
    assert daemon.printed("echo ok") == "ok\n"


# ---- the shape of every result ----


@pytest.fixture(scope="module")
def sample(daemon):
    return daemon.request("POST", "/execute", json={
        "language": "python", "execution_id": "shape-1",
        "code": "s = sum(i * i for i in range(300000))\ndef handler(e): return len(bytearray(32 << 20))"})


def test_result_has_the_fields_of_the_contract(sample):
    body = sample.json()
    assert body["execution_id"] == "shape-1"
    assert body["status"] == "success" and body["exit_code"] == 0
    assert body["return_value"] == 32 << 20
    assert body["execution_time"] > 0
    assert body["artifacts"] == [] and body["artifact_metadata"] == []
    assert (body["stdout"], body["stderr"]) == ("", "")


def test_metrics_come_from_the_kernel(sample):
    body = sample.json()
    metrics = body["metrics"]
    assert abs(metrics["duration_ms"] - body["execution_time"] * 1000) < 2
    assert metrics["cpu_time_ms"] > 5, "the program computed for a while"
    assert metrics["cpu_time_ms"] < metrics["duration_ms"] * 4 + 100
    assert metrics["peak_memory_mb"] > 32, "it held 32 MiB"
    for name in ("io_read_bytes", "io_write_bytes"):
        assert metrics[name] is None or metrics[name] >= 0


def test_an_idle_program_used_no_cpu_time(daemon):
    seconds = 0.3 * harness.SLOW  # to start a program takes longer on a slow machine, too
    result = daemon.execute(f"sleep {seconds}", "shell")
    assert result["metrics"]["duration_ms"] >= seconds * 1000
    assert result["metrics"]["cpu_time_ms"] < seconds * 1000 * 5 / 6


def test_termination_isolation_and_timings_are_told(sample):
    body = sample.json()
    assert body["termination"]["reason"] == "exit"
    assert body["isolation"]["jail"] == harness.JAIL
    for trait in ("filesystem", "network", "seccomp"):
        assert trait in json.dumps(body["isolation"]), trait
    stages = body["timings"]
    assert all(v >= 0 for v in stages.values())
    assert {"queue", "start", "run", "collect"} <= {k.removesuffix("_ms") for k in stages}


def test_timings_are_a_server_timing_header_too(sample):
    header = sample.headers["Server-Timing"]
    names = [part.strip().split(";")[0] for part in header.split(",")]
    assert {"queue", "start", "run", "collect"} <= set(names)
    assert "dur=" in header


def test_result_is_json_with_a_request_id(sample):
    assert sample.headers["Content-Type"].startswith("application/json")
    assert sample.headers["X-Request-Id"]


# ---- kept results ----


def test_a_finished_execution_can_be_read_again(daemon):
    first = daemon.execute("echo kept", "shell", execution_id="kept-1")
    response = daemon.request("GET", "/v1/executions/kept-1")
    assert response.status == 200
    again = response.json()
    assert (again["execution_id"], again["state"], again["status"]) == ("kept-1", "done", "success")
    assert again["language"] == "shell" and again["created_at"]
    assert again["result"] == first


def test_a_running_execution_says_so(daemon):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell", execution_id="running-1")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    body = daemon.request("GET", "/v1/executions/running-1").json()
    assert (body["state"], body["status"], body["result"]) == ("running", None, None)
    again = daemon.request("POST", "/execute", json={"code": "true", "language": "shell", "execution_id": "running-1"})
    assert again.status == 409, "one id, one execution under way"
    assert again.json()["error_code"] == "Executor.Conflict"
    run.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "it was cancelled")


def test_deleting_a_running_execution_cancels_it(daemon):
    mark = harness.marker()
    run = daemon.start("echo partial; " + harness.spawn_marked(mark), "shell", execution_id="deleted-1")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    assert daemon.request("DELETE", "/v1/executions/deleted-1").status in (200, 202, 204)
    body = run.receive().json()
    assert body["termination"]["reason"] == "cancelled"
    assert body["stdout"] == "partial\n"
    assert not harness.traces_of(mark)
    run.close()


@pytest.mark.parametrize("identifier", ["unknown-1", "..%2f..%2fetc", "a%00b", "x" * 200])
def test_unknown_executions_are_404(daemon, identifier):
    assert daemon.request("GET", "/v1/executions/" + identifier).status in (400, 404)


def test_generated_ids_are_unique_and_well_formed(daemon):
    ids = [daemon.execute("true", "shell")["execution_id"] for _ in range(5)]
    assert len(set(ids)) == 5
    assert all(re.fullmatch(r"exec_\d{8}(\d{6})?_[a-z0-9]{8}", i) for i in ids), ids


def test_retention_is_bounded_by_count(make_daemon):
    daemon = make_daemon(RETAIN_COUNT=2)
    for name in ("r-1", "r-2", "r-3"):
        daemon.execute("true", "shell", execution_id=name)
    assert [daemon.request("GET", "/v1/executions/" + n).status for n in ("r-1", "r-2", "r-3")] == [404, 200, 200]


def test_retention_of_nothing(make_daemon):
    daemon = make_daemon(RETAIN_COUNT=0)
    daemon.execute("true", "shell", execution_id="r-1")
    assert daemon.request("GET", "/v1/executions/r-1").status == 404


def test_a_finished_execution_can_be_forgotten(daemon):
    daemon.execute("true", "shell", execution_id="forgotten-1")
    assert daemon.request("DELETE", "/v1/executions/forgotten-1").status in (200, 204)
    assert daemon.request("GET", "/v1/executions/forgotten-1").status == 404
    assert daemon.request("DELETE", "/v1/executions/forgotten-1").status == 404


@pytest.mark.parametrize("language, code", [
    ("python", "import subprocess\ndef handler(e, context):\n    context.progress({{'step': 1}})\n"
               "    subprocess.run(['bash', '-c', '{mark}'])"),
    ("javascript", "exports.handler = (e, context) => {{ context.progress({{ step: 1 }}); "
                   "require('child_process').spawnSync('bash', ['-c', '{mark}']) }}"),
])
def test_progress_can_be_watched(daemon, language, code):
    mark, name = harness.marker(), "progress-" + language
    run = daemon.start(code.format(mark=harness.spawn_marked(mark)), language, execution_id=name)
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    seen = harness.wait_until(lambda: daemon.request("GET", "/v1/executions/" + name).json()["progress"], "a report")
    run.close()
    assert seen == {"step": 1}


@pytest.mark.parametrize("language, code", [
    ("python", "def handler(e, context):\n    context.progress({'step': 1})\n    context.progress({'step': 2})\n"),
    ("javascript", "exports.handler = (e, context) => { context.progress({ step: 1 }); context.progress({ step: 2 }) }"),
])
def test_the_last_report_outlives_its_execution(daemon, language, code):
    name = "reported-" + language
    daemon.execute(code, language, execution_id=name)
    body = daemon.request("GET", "/v1/executions/" + name).json()
    assert (body["state"], body["progress"]) == ("done", {"step": 2})


def test_reports_count_among_what_is_kept(make_daemon):
    daemon = make_daemon(RETAIN_BYTES=100_000)
    code = "def handler(e, context):\n    context.progress({'x': 'x' * 60_000})\n"
    for name in ("r-1", "r-2"):
        daemon.execute(code, "python", execution_id=name)
    assert [daemon.request("GET", "/v1/executions/" + n).status for n in ("r-1", "r-2")] == [404, 200]
