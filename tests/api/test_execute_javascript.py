# SPDX-License-Identifier: MIT
"""JavaScript: handlers in every module form, plain scripts, values, failure."""
import json
import textwrap

import pytest


def run(daemon, code, **fields):
    return daemon.execute(code, "javascript", **fields)


def returned(daemon, code, **fields):
    return daemon.returned(code, "javascript", **fields)


# ---- forms of a handler ----


@pytest.mark.parametrize("code", [
    "function handler(event) { return event.a + 1 }",
    "async function handler(event) { return event.a + 1 }",
    "const handler = (event) => event.a + 1",
    "var handler = function (event) { return event.a + 1 }",
    "globalThis.handler = (event) => event.a + 1",
    "handler = (event) => event.a + 1",
    "exports.handler = async (event) => event.a + 1",
    "module.exports.handler = (event) => event.a + 1",
    "module.exports = { handler(event) { return event.a + 1 } }",
    "export const handler = (event) => event.a + 1",
    "export async function handler(event) { return event.a + 1 }",
    "const f = (event) => event.a + 1; export { f as handler }",
    "import { basename } from 'node:path'; export const handler = async (e) => e.a + basename('/x/1').length",
    "const n = await Promise.resolve(1); export const handler = (event) => event.a + n",
    "function handler(event) { return new Promise(ok => setTimeout(() => ok(event.a + 1), 1)) }",
])
def test_handler_forms(daemon, code):
    assert returned(daemon, code, event={"a": 41}) == 42


def test_context_tells_about_the_run(daemon):
    code = textwrap.dedent("""
        exports.handler = (event, context) => {
            const left = context.get_remaining_time_in_millis();
            return [context.execution_id, context.aws_request_id, context.memory_limit_in_mb,
                    left > 0 && left <= 7000, typeof context.function_name, typeof context.progress];
        }
        """)
    got = returned(daemon, code, execution_id="ctx-js", timeout=7)
    assert got == ["ctx-js", "ctx-js", 512, True, "string", "function"]


def test_event_is_an_empty_object_when_absent(daemon):
    assert returned(daemon, "function handler(event) { return event }") == {}


def test_plain_script_simply_runs(daemon):
    result = run(daemon, "console.log('hello'); console.error('oops')")
    assert (result["status"], result["exit_code"], result["return_value"]) == ("success", 0, None)
    assert (result["stdout"], result["stderr"]) == ("hello\n", "oops\n")


def test_plain_script_finishes_its_timers_and_promises(daemon):
    result = run(daemon, "setTimeout(() => console.log('two'), 5); Promise.resolve().then(() => console.log('one'))")
    assert (result["status"], result["stdout"]) == ("success", "one\ntwo\n")


def test_empty_script_succeeds(daemon):
    assert run(daemon, "")["status"] == "success"


def test_script_reads_the_event_from_the_environment(daemon):
    result = run(daemon, "console.log(JSON.parse(process.env.EVENT_JSON).k)", event={"k": "v"})
    assert result["stdout"] == "v\n"


def test_require_and_dynamic_import_work(daemon):
    code = ("const os = require('os'); exports.handler = async () => "
            "[typeof os.cpus, typeof (await import('node:fs')).readFileSync, __filename.length > 0]")
    assert returned(daemon, code) == ["function", "function", True]


def test_files_of_the_workspace_can_be_required(daemon):
    code = "require('fs').writeFileSync('./mine.js', 'exports.a = 5'); exports.handler = () => require('./mine.js').a"
    assert returned(daemon, code) == 5


# ---- values ----

VALUES = [None, True, False, 0, -1, 1.5, 1e21, "", "text", [], {}, [[]], [None, False, 0, ""], {"b": 1, "a": 2},
          "\u0000", "\u2028", "é漢🎉", 2**53 - 1]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: json.dumps(v)[:24])
def test_json_values_survive_the_round_trip(daemon, value):
    assert returned(daemon, "exports.handler = (e) => e.v", event={"v": value}) == value


def test_lone_surrogates_survive(daemon):
    response = daemon.post_execute(
        r'{"language":"javascript","code":"exports.handler = e => [e.s, e.s.charCodeAt(0)]","event":{"s":"\ud800"}}')
    assert response.json()["return_value"] == ["\ud800", 0xd800]


@pytest.mark.parametrize("expression", ["undefined", "null", "[undefined][0]", "() => 1"])
def test_what_json_lacks_becomes_null(daemon, expression):
    assert returned(daemon, f"exports.handler = () => ({expression})") is None


@pytest.mark.parametrize("code, reason", [
    ("exports.handler = () => 1n", "BigInt"),
    ("exports.handler = () => NaN", "neither NaN nor infinite numbers"),
    ("exports.handler = () => ({ a: -Infinity })", "neither NaN nor infinite numbers, but there is one at 'a'"),
    ("exports.handler = () => { const a = {}; a.a = a; return a }", "circular"),
    ("exports.handler = () => ({ toJSON() { throw new Error('refuses') } })", "refuses"),
])
def test_unserialisable_value_fails_with_the_reason(daemon, code, reason):
    result = run(daemon, code)
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    assert reason in result["stderr"]


def test_replaced_functions_do_not_lose_or_forge_the_result(daemon):
    code = textwrap.dedent("""
        exports.handler = () => {
            JSON.stringify = () => '"forged"'; JSON.parse = () => 'forged';
            const fs = require('fs'); fs.writeSync = fs.writeFileSync = () => { throw new Error('no') };
            process.exit = () => {}; Promise.prototype.then = () => {};
            Object.prototype.toJSON = () => 'polluted';
            return ['true value'];
        }
        """)
    result = run(daemon, code, timeout=10)
    assert result["status"] == "success"
    assert result["return_value"] in (["true value"], "polluted")
    assert "forged" not in json.dumps(result["return_value"])


# ---- failure ----


def test_stack_has_the_users_lines(daemon):
    code = "function inner() {\n  throw new TypeError('bad thing')\n}\n\nexports.handler = () => {\n  inner()\n}\n"
    result = run(daemon, code)
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    assert "TypeError: bad thing" in result["stderr"]
    assert ":2:" in result["stderr"] and ":6:" in result["stderr"]


@pytest.mark.parametrize("code, words", [
    ("exports.handler = async () => { throw new RangeError('later') }", "RangeError: later"),
    ("exports.handler = () => Promise.reject(new Error('no'))", "Error: no"),
    ("exports.handler = () => Promise.reject('a string')", "a string"),
    ("throw new Error('at load')", "Error: at load"),
    ("let x = ;", "SyntaxError"),
    ("export const handler = ;", "SyntaxError"),
    ("setTimeout(() => { throw new Error('in a timer') }, 1)", "Error: in a timer"),
    ("Promise.reject(new Error('unhandled'))", "unhandled"),
    ("exports.handler = () => { Promise.reject(new Error('unheard')); return 1 }", "Error: unheard"),
    ("exports.handler = () => { process.nextTick(() => { throw new Error('a tick later') }) }", "Error: a tick later"),
    ("exports.handler = () => { require('fs').createWriteStream('/nowhere/a').write('b'); return 1 }", "ENOENT"),
])
def test_failures_end_with_1_and_a_reason(daemon, code, words):
    result = run(daemon, code)
    assert (result["status"], result["exit_code"], result["return_value"]) == ("failed", 1, None)
    assert words in result["stderr"]


def test_syntax_error_names_the_line(daemon):
    result = run(daemon, "const a = 1\nconst b = {\n")
    assert "SyntaxError" in result["stderr"] and ":2" in result["stderr"] or ":3" in result["stderr"]


@pytest.mark.parametrize("code, exit_code", [
    ("process.exit(3)", 3),
    ("exports.handler = () => process.exit(5)", 5),
    ("process.exitCode = 6", 6),
    ("process.kill(process.pid, 'SIGKILL')", 137),
    ("process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 10000)", 143),
    ("process.abort()", 134),
])
def test_exit_codes(daemon, code, exit_code):
    result = run(daemon, code)
    assert (result["status"], result["exit_code"]) == ("failed", exit_code)


def test_a_promise_that_never_settles_is_a_failure_not_a_hang(daemon):
    result = run(daemon, "exports.handler = () => new Promise(() => {})", timeout=10)
    assert result["status"] == "failed"
    assert result["return_value"] is None


def test_pending_timers_do_not_hold_back_a_result(daemon):
    result = run(daemon, "exports.handler = () => { setInterval(() => {}, 1000); return 'now' }", timeout=10)
    assert (result["status"], result["return_value"]) == ("success", "now")


@pytest.mark.parametrize("begin", [
    "require('fs').writeFile('left', 'hello', () => {})",
    "const s = require('fs').createWriteStream('left'); s.write('hel'); s.end('lo')",
    "require('fs').promises.writeFile('left', 'hello')",
])
def test_files_that_nobody_waits_for_are_written(daemon, begin):
    result = run(daemon, f"exports.handler = () => {{ {begin}; return 1 }}")
    assert (result["status"], result["return_value"], result["artifacts"]) == ("success", 1, ["left"])
    path = f"/v1/executions/{result['execution_id']}/artifacts/left"
    assert daemon.request("GET", path).body == b"hello"


def test_a_rejection_that_somebody_hears_is_no_failure(daemon):
    result = run(daemon, "process.on('unhandledRejection', (e) => console.log('heard', e.message));"
                         "exports.handler = () => { Promise.reject(new Error('it')); return 1 }")
    assert (result["status"], result["return_value"], result["stdout"]) == ("success", 1, "heard it\n")


# ---- output, surroundings ----


def test_output_is_complete_however_large(daemon):
    code = "exports.handler = () => { for (let i = 0; i < 2000; i++) console.log('x'.repeat(99)); return 1 }"
    result = run(daemon, code)
    assert len(result["stdout"]) == 200_000
    assert result["return_value"] == 1


def test_randomness_differs_between_runs(daemon):
    code = ("const c = require('crypto');"
            "exports.handler = () => [Math.random(), c.randomBytes(8).toString('hex'), c.randomUUID()]")
    runs = [returned(daemon, code) for _ in range(3)]
    for column in zip(*runs):
        assert len(set(column)) == len(runs)


def test_state_of_one_run_is_not_seen_by_the_next(daemon):
    assert returned(daemon, "globalThis.planted = 1; process.env.PLANTED = 1; exports.handler = () => 1") == 1
    look = "exports.handler = () => [typeof planted, process.env.PLANTED === undefined]"
    assert returned(daemon, look) == ["undefined", True]


def test_process_looks_ordinary(daemon):
    code = "exports.handler = () => [process.cwd(), process.env.HOME, process.pid > 1, process.ppid >= 1]"
    assert returned(daemon, code) == ["/workspace", "/workspace", True, True]


def test_standard_input_can_be_read(daemon):
    code = "exports.handler = () => require('fs').readFileSync(0, 'utf8')"
    assert returned(daemon, code, stdin="line one\nline two") == "line one\nline two"
