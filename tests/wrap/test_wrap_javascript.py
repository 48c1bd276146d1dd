# SPDX-License-Identifier: MIT
"""src/lang/wrap/javascript.js as `node -e`, and as a module of a warmed process."""
import json
import os
import subprocess
import textwrap

import pytest
import wrapper


def run(code, event=None, **fields):
    return wrapper.run("javascript", textwrap.dedent(code), event, **fields)


def returned(code, event=None, **fields):
    return run(code, event, **fields).value


def failed(code, *words, event=None, **fields):
    """Ends with 1, says the words on stderr, returns nothing."""
    got = run(code, event, **fields)
    assert got.code == 1 and not got.all("R"), (got.code, got.frames, got.err)
    for word in words:
        assert word in got.err
    assert "sandbox" not in got.err, "nothing of ours is shown"
    return got


# ---- forms of a program ----


@pytest.mark.parametrize("code", [
    "function handler(event) { return event.a + 1 }",
    "async function handler(event) { return event.a + 1 }",
    "const handler = (event) => event.a + 1",
    "let handler = (event) => event.a + 1 // comment at the end",
    "var handler = function (event) { return event.a + 1 }",
    "class handler { static a = 1 }; exports.handler = (e) => e.a + handler.a",
    "globalThis.handler = (event) => event.a + 1",
    "handler = (event) => event.a + 1",
    "exports.handler = async (event) => event.a + 1",
    "module.exports.handler = (event) => event.a + 1",
    "module.exports = { handler(event) { return event.a + this.n }, n: 1 }",
    "module.exports = (event) => event.a + 1",
    "exports.default = (event) => event.a + 1",
    "exports.default = { handler: (event) => event.a + 1 }",
    "module.exports = () => 0; function handler(event) { return event.a + 1 }",
    "function handler(event) { return event.a + 1 }\nreturn",
    "'use strict'; function handler(event) { return event.a + (this === undefined ? 0 : 1) }",
    "#!/usr/bin/env node\nexports.handler = (event) => event.a + 1",
    "\ufeffexports.handler = (event) => event.a + 1",
    "exports.handler = (event) => ({ then(ok) { ok(event.a + 1) } })",
    "function handler(event) { return new Promise(ok => setTimeout(() => ok(event.a + 1), 1)) }",
    # with await at the top level
    "const n = await Promise.resolve(1); exports.handler = (event) => event.a + n",
    "const fs = require('fs'); await fs.promises.stat('/'); function handler(e) { return e.a + 1 }",
    "for await (const n of [1]) exports.handler = (event) => event.a + n",
    # ECMAScript modules
    "export const handler = (event) => event.a + 1",
    "export async function handler(event) { return event.a + 1 }",
    "export default (event) => event.a + 1",
    "export default function (event) { return event.a + 1 }",
    "export default { handler: (event) => event.a + 1 }",
    "const f = (event) => event.a + 1; export { f as handler }",
    "import fs from 'fs'; function handler(event) { return event.a + (fs.statSync ? 1 : 0) }",
    "import { sep } from 'node:path'; export const handler = (e) => e.a + sep.length",
    "import * as p from 'path'; const handler = async (e) => e.a + p.basename('/1').length",
    "const n = await Promise.resolve(1); export const handler = (event) => event.a + n",
    "const d = import.meta.url; export const handler = (e) => e.a + d.startsWith('file:')",
    "import { createRequire } from 'module'; const require = createRequire(import.meta.url);"
    "const os = require('os'); export const handler = (e) => e.a + (os.cpus ? 1 : 0)",
    "import path from 'path'; const __dirname = path.dirname('/a/b'), module = 1;"
    "export const handler = (e) => e.a + module",
])
def test_handler_forms(code):
    got = run(code, {"a": 41})
    assert got.value == 42 and (got.out, got.err) == ("", "")


@pytest.mark.parametrize("code, out", [
    ("", ""),
    ("console.log('a')", "a\n"),
    ("setTimeout(() => console.log('two'), 5); Promise.resolve().then(() => console.log('one'))",
     "one\ntwo\n"),
    ("console.log(await Promise.resolve('tla'))", "tla\n"),
    ("import { sep } from 'path'; console.log(sep)", "/\n"),
    ("console.log('x'); return; console.log('y')", "x\n"),
    ("if (require.main === module) console.log('main')", "main\n"),
    ("process.on('exit', (c) => console.log('exit', c))", "exit 0\n"),
    ("let n = 0; process.on('beforeExit', () => n++ || setTimeout(() => console.log('more')))",
     "more\n"),
    ("process.on('uncaughtException', (e) => console.log('caught', e.message)); throw Error('x')",
     "caught x\n"),
])
def test_plain_scripts_simply_run(code, out):
    got = run(code)
    assert (got.code, got.out, got.err, got.frames) == (0, out, "", [])


def test_a_handler_that_is_demanded_must_be_a_function():
    failed("exports.handler = 3", "handler(event) is not a function but number", mode="handler")
    failed("const handler = { a: 1 }", "handler(event) is not a function but object", mode="handler")
    failed("1", "handler(event) is not defined", mode="handler")
    assert run("exports.handler = 3").code == 0


def test_the_event_is_an_empty_object_when_there_is_none():
    assert returned("exports.handler = (e) => e") == {}


def test_context_in_both_spellings():
    got = returned("""
        exports.handler = (event, c) => {
            const left = c.get_remaining_time_in_millis();
            return [c.execution_id, c.executionId, c.aws_request_id, c.awsRequestId,
                    c.function_name, c.functionName, c.memory_limit_in_mb, c.memoryLimitInMB,
                    0 < left && left <= 5000, c.getRemainingTimeInMillis() <= left];
        }""", execution_id="id", function_name="f", memory_limit_in_mb=64, remaining_ms=5000)
    assert got == ["id", "id", "id", "id", "f", "f", 64, 64, True, True]


def test_progress_frames_come_in_order_and_before_the_result():
    got = run("""exports.handler = async (e, c) => {
        for (let i = 0; i < 100; i++) { c.progress({ done: i, pad: 'é'.repeat(300) }); await null }
        return 'end' }""")
    assert [p["done"] for p in got.all("P")] == list(range(100))
    assert got.frames[-1][:2] == ("R", "end")


@pytest.mark.parametrize("value, words", [
    ("[1]", "progress() takes an object"), ("undefined", "progress() takes an object"),
    ("{ a: 'x'.repeat(70000) }", "more than 65536"), ("{ a: 1n }", "BigInt"),
])
def test_bad_progress_is_the_programs_error(value, words):
    failed(f"exports.handler = (e, c) => c.progress({value})", words, "handler.js:1:")


# ---- values ----

VALUES = [None, True, False, 0, -1, 1.5, 1e21, "", "text", [], {}, [[]], {"b": 1, "a": 2}, "\u0000",
          "\u2028", "é漢🎉", "\ud800", "a\udfffb", 2**53 - 1, [None, False, 0, ""]]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: ascii(v)[:24])
def test_json_values_survive(value):
    assert returned("exports.handler = (e) => e.v", {"v": value}) == value


@pytest.mark.parametrize("expression, text", [
    ("[null, 'null', { a: null }]", '[null,"null",{"a":null}]'), ("undefined", "null"),
    ("() => 1", "null"), ("Symbol('x')", "null"), ("{ a: undefined, b: 1 }", '{"b":1}'),
    ("new Date(0)", '"1970-01-01T00:00:00.000Z"'), ("new Map([[1, 2]])", "{}"),
    ("Promise.resolve([1])", "[1]"), ("{ toJSON() { return 5 } }", "5"),
    ("(BigInt.prototype.toJSON = function () { return `${this}` }, 10n ** 20n)",
     '"100000000000000000000"'),
    ("Buffer.from('a')", '{"type":"Buffer","data":[97]}'),
])
def test_text_of_values(expression, text):
    assert run(f"exports.handler = () => ({expression})").text == text


@pytest.mark.parametrize("code, words", [
    ("exports.handler = () => 1n", "serialize a BigInt"),
    ("exports.handler = () => NaN", "neither NaN nor infinite numbers, but there is one;"),
    ("exports.handler = () => ({ a: [1, -Infinity] })", "there is one at '1';"),
    ("globalThis.isFinite = Number.isFinite = () => true; exports.handler = () => Infinity", "but there is one;"),
    ("exports.handler = () => { const a = {}; a.a = [a]; return a }", "circular structure"),
    ("exports.handler = () => ({ toJSON() { throw new Error('refuses') } })", "refuses"),
    ("exports.handler = () => { let a = []; for (let i = 0; i < 600; i++) a = [a]; return a }",
     "nested deeper than 512"),
    ("exports.handler = () => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a }",
     "RangeError"),
])
def test_unserialisable_values_fail(code, words):
    assert failed(code, words).error["message"]


def test_depth_up_to_the_limit_survives():
    code = ("exports.handler = () => { let a = '[{';"
            "for (let i = 0; i < 512; i++) a = [a]; return a }")
    assert run(code).text == "[" * 512 + '"[{"' + "]" * 512


def test_many_shallow_containers_are_not_deep():
    code = "exports.handler = () => Array.from({ length: 5e4 }, () => [{ '\"[': '\\\\' }])"
    assert len(returned(code)) == 50000


def test_a_large_event_and_a_large_value():
    value = {"v": ["é" * 1000] * 2000}
    assert returned("exports.handler = (e) => e", value) == value


def test_a_value_above_the_limit_fails():
    failed("exports.handler = () => 'é'.repeat(50)", "102 bytes as JSON, at most 101",
           result_max=101)
    assert returned("exports.handler = () => 'x'.repeat(99)", result_max=101) == "x" * 99


def test_a_mebibyte_of_code():
    for start in ("", "'use strict'\n", "/* c */\n// d\n" * 1000, "import 'fs';\n"):
        code = start + "const x = '" + "y" * 1_000_000 + "'\n" + "// comment\n" * 3000
        end = "function handler() { return x.length }"
        assert returned(code + end) == 1_000_000


# ---- output ----


def test_large_output_is_complete():
    code = "exports.handler = () => { process.stdout.write('x'.repeat(5e6)); return 1 }"
    got = run(code)
    assert len(got.out) == 5_000_000 and got.value == 1
    got = run("console.log('x'.repeat(5e6)); console.error('y'.repeat(5e6)); process.exit(3)")
    assert (got.code, len(got.out), len(got.err)) == (3, 5_000_001, 5_000_001)


def test_printed_frames_forge_nothing():
    got = run("exports.handler = () => { console.log('R00000001' + '1'); return 'true' }")
    assert got.value == "true" and got.out == "R000000011\n"


# ---- hostile and careless programs ----


@pytest.mark.parametrize("spoil", [
    "JSON.stringify = () => '\"forged\"'; JSON.parse = broken",
    "fs.writeSync = fs.fstatSync = fs.writeFileSync = broken",
    "process.exit = process.reallyExit = () => {}; process.emit = () => false",
    "process.getActiveResourcesInfo = broken; globalThis.setTimeout = broken",
    "Buffer.from = Buffer.byteLength = Buffer.alloc = broken; globalThis.Buffer = undefined",
    "TextEncoder.prototype.encode = broken; globalThis.TextEncoder = undefined",
    "Promise.prototype.then = () => {}",
    "Array.prototype[Symbol.iterator] = broken",
    "Array.prototype.push = Array.prototype.join = Array.prototype.map = broken",
    "String.prototype.split = String.prototype.slice = String.prototype.includes = broken",
    "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = broken",
    "Reflect.apply = Math.floor = broken",
    "Number.prototype.toString = String.prototype.padStart = broken",
    "Object.defineProperty = Object.keys = Object.getOwnPropertyDescriptor = broken",
    "Object.defineProperty(process, 'stdout', { get: broken })",
    "Error.prepareStackTrace = broken",
    "process.removeAllListeners()",
    "performance.now = broken; Date.now = broken",
    "const g = globalThis; for (const k of Object.getOwnPropertyNames(g)) delete g[k]",
    "Object.prototype.then = undefined; Object.prototype.code = 'EAGAIN'",
])
def test_replaced_functions_do_not_lose_the_result(spoil):
    got = run(f"""
        const fs = require('fs');
        const broken = () => {{ throw new Error('replaced') }};
        exports.handler = async () => {{
            {spoil};
            return ['true value', {{ a: 'é' }}];
        }}""")
    assert got.all("R") == [["true value", {"a": "é"}]], got.err
    assert got.code == 0


@pytest.mark.parametrize("spoil", [
    "Error.prepareStackTrace = () => { throw 1 }",
    "Error.prepareStackTrace = () => 'x'",
    "require('util').inspect = broken",
    "String.prototype.split = Array.prototype.join = broken",
    "JSON.stringify = broken",
    "Object.prototype.toJSON = () => 'polluted'",
    "console.error = process.stderr.write = broken",
    "process.exit = () => {}",
])
def test_replaced_functions_do_not_hide_an_error(spoil):
    got = run(f"""
        const broken = () => {{ throw new Error('replaced') }};
        exports.handler = () => {{
            {spoil};
            throw new TypeError('the reason');
        }}""")
    assert got.code == 1 and got.err
    assert (got.error["type"], got.error["message"]) == ("TypeError", "the reason")


def test_globals_are_those_of_a_program_in_a_file(tmp_path):
    code = "const g = Object.getOwnPropertyNames(globalThis).sort(); console.log(g.join())"
    (tmp_path / "plain.js").write_text(code)
    plain = subprocess.run([wrapper.NODE, str(tmp_path / "plain.js")], capture_output=True,
                           text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout
    assert run(code).out == plain


def test_names_of_the_wrapper_are_free():
    assert returned("exports.handler = () => [typeof HEAD, typeof run, typeof job, typeof fs,"
                    " typeof apply]") == ["undefined"] * 5


def test_the_channel_is_not_inherited():
    mine, child = returned("""
        exports.handler = () => [require('fs').readlinkSync('/proc/self/fd/3'),
            require('child_process').execFileSync('/bin/ls', ['-l', '/proc/self/fd']).toString()]
        """)
    assert mine.startswith("socket:") and mine not in child


def test_a_closed_channel_is_an_error_and_never_somebody_elses_file(tmp_path):
    got = run("""
        const fs = require('fs');
        exports.handler = () => {
            fs.closeSync(3);
            for (let i = 0; i < 8; i++) fs.openSync('mine', 'a');
            return 'secret';
        }""", cwd=tmp_path)
    assert got.code == 1 and "closed the descriptor" in got.err
    assert got.frames == [] and (tmp_path / "mine").read_bytes() == b""


# ---- failing ----


def test_stack_has_only_the_programs_frames():
    got = failed("function inner() {\n  throw new TypeError('bad')\n}\n\n"
                 "exports.handler = () => {\n  inner()\n}\n")
    assert got.err == ("TypeError: bad\n    at inner (/tmp/handler.js:2:9)\n"
                       "    at exports.handler (/tmp/handler.js:6:3)\n")
    assert got.error == {"type": "TypeError", "message": "bad", "stack": got.err[:-1]}


@pytest.mark.parametrize("code, words", [
    ("throw new Error('at load')", ("Error: at load", "handler.js:1:7")),
    ("exports.handler = async () => { throw new RangeError('r') }", ("RangeError: r", ":1:39")),
    ("await null\nthrow new Error('after')", ("Error: after", "handler.js:2:7")),
    ("import 'fs'\nthrow new Error('in esm')", ("Error: in esm", "handler.js:2:7")),
    ("import 'fs'\nexport const handler = () => {\n  nope() }", ("nope is not", "handler.js:3:3")),
    ("import { no } from 'fs'", ("SyntaxError", "'no'")),
    ("import './missing.mjs'", ("Cannot find module", "missing.mjs")),
    ("exports.handler = () => Promise.reject('a string')", ("Uncaught 'a string'",)),
    ("exports.handler = () => { throw undefined }", ("Uncaught undefined",)),
    ("exports.handler = () => { throw null }", ("Uncaught null",)),
    ("exports.handler = () => { throw Object.freeze(new Error('ice')) }", ("Error: ice",)),
    ("exports.handler = () => { throw new Error('a', { cause: new Error('b') }) }",
     ("Error: a", "[cause]: Error: b")),
    ("class Mine extends Error {}; exports.handler = () => { throw new Mine('m') }", ("m",)),
    ("exports.handler = () => require('./missing')", ("Cannot find module",)),
    ("JSON.parse('{')", ("SyntaxError", "JSON", "handler.js:1:6")),
    ("setTimeout(() => { throw new Error('in a timer') }, 1)", ("Error: in a timer", ":1:26")),
    ("Promise.reject(new Error('unhandled'))", ("Error: unhandled", "handler.js:1:16")),
    ("new Promise((_, no) => no('text'))", ("text",)),
    ("exports.handler = () => new Promise(() => {})", ("a promise that was never settled",)),
    ("await new Promise(() => {})", ("await was never settled",)),
    ("import 'fs'; await new Promise(() => {})", ("await was never settled",)),
    ("function handler() { return handler() }", ("RangeError: Maximum call stack",)),
    ("process.on('exit', () => { throw new Error('in exit') }); throw new Error('first')",
     ("first",)),
])
def test_failures_end_with_1_and_a_reason(code, words):
    got = failed(code, *words)
    assert ".handler-" not in got.err
    assert got.error["type"]


def test_types_of_errors():
    assert failed("class Mine extends Error {}; throw new Mine('m')").error["type"] == "Mine"
    assert failed("throw 'text'").error == {"type": "string", "message": "text",
                                            "stack": "Uncaught 'text'"}


@pytest.mark.parametrize("code, shown", [
    ("let a = 1\nlet b = ;\n", "/tmp/handler.js:2\nlet b = ;\n        ^\n"),
    ("let b = ;", "/tmp/handler.js:1\nlet b = ;\n        ^\n"),
    ("await null; let b = ;", "/tmp/handler.js:1\nawait null; let b = ;\n                    ^\n"),
    ("import 'fs'\nlet b = ;", "/tmp/handler.js:2\nlet b = ;\n        ^\n"),
    ("export const handler = ;", "/tmp/handler.js:1\nexport const handler = ;\n"),
    ("const a = {\n", "/tmp/handler.js:"),
])
def test_syntax_errors_show_the_place(code, shown):
    got = failed(code, "SyntaxError: ")
    assert got.err.startswith(shown), got.err
    assert got.error["type"] == "SyntaxError"


@pytest.mark.parametrize("code, status", [
    ("process.exit(3)", 3), ("exports.handler = () => process.exit(5)", 5),
    ("exports.handler = async () => { await null; process.exit(0) }", 0),
    ("exports.handler = () => new Promise(() => setTimeout(() => process.exit(4), 5))", 4),
    ("process.exitCode = 6", 6), ("process.kill(process.pid, 'SIGKILL')", -9),
    ("process.abort()", -6),
])
def test_exit_codes(code, status):
    got = run(code)
    assert (got.code, got.frames) == (status, [])


def test_an_exit_code_beside_a_value():
    got = run("exports.handler = () => { process.exitCode = 7; return 'v' }")
    assert (got.code, got.all("R")) == (7, ["v"])


def test_long_messages_are_cut_in_the_frame():
    got = failed("throw new Error('x'.repeat(1e6))")
    assert len(got.err) > 1_000_000
    assert len(got.error["message"]) == 16384 and len(json.dumps(got.error)) < 200_000


def test_nobody_has_a_job():
    process = subprocess.run(["/bin/sh", "-c", 'exec "$@" 3</dev/null', "sh",
                              *wrapper.command("javascript")], capture_output=True, text=True,
                             check=False, timeout=60)
    assert process.returncode == 1 and "no job" in process.stderr


# ---- the process around it ----


def test_timers_and_servers_do_not_hold_back_a_result():
    assert returned("exports.handler = () => { setInterval(() => {}, 1e6); return 'now' }") == "now"
    assert returned("""exports.handler = () => new Promise((ok) =>
        require('http').createServer().listen(0, '127.0.0.1', () => ok('now')))""") == "now"


def test_files_being_written_are_finished(tmp_path):
    got = run("""
        const fs = require('fs');
        process.on('exit', () => console.log('bye'));
        exports.handler = () => {
            fs.writeFile('callback', 'x'.repeat(3e6), () => fs.writeFile('second', 'y', () => {}));
            fs.createWriteStream('stream').end('z');
            return 1;
        }""", cwd=tmp_path)
    assert (got.value, got.out) == (1, "bye\n")
    assert {n: (tmp_path / n).stat().st_size for n in os.listdir(tmp_path)} == \
        {"callback": 3_000_000, "second": 1, "stream": 1}


def test_modules_beside_the_program(tmp_path):
    (tmp_path / "mine.js").write_text("exports.a = 5")
    (tmp_path / "live.mjs").write_text("export let n = 1; export function inc() { n++ }")
    (tmp_path / "node_modules/pack").mkdir(parents=True)
    (tmp_path / "node_modules/pack/index.js").write_text("module.exports = 7")
    assert returned("exports.handler = () => [require('./mine').a, require('pack')]",
                    cwd=tmp_path) == [5, 7]
    assert returned("""exports.handler = async () => [(await import('./mine.js')).default.a,
        (await import('pack')).default, typeof (await import('node:fs')).statSync]""",
                    cwd=tmp_path) == [5, 7, "function"]
    assert returned("""import m from './mine.js'; import p from 'pack'
        import { n, inc } from './live.mjs'
        export const handler = async () => {
            inc();
            return [m.a, p, n, (await import('./mine.js')).a] }""", cwd=tmp_path) == [5, 7, 2, 5]
    assert sorted(os.listdir(tmp_path)) == ["live.mjs", "mine.js", "node_modules"]


@pytest.mark.parametrize("code", [
    "import 'fs'; while (true) console.log(1)", "import 'fs'; process.kill(process.pid, 'SIGKILL')",
    "import 'fs'; process.exit(1)", "import 'fs'; let b = ;", "import './missing.mjs'",
    "import 'fs'; throw 1",
])
def test_no_file_is_left_behind(code, tmp_path):
    code = code.replace("while (true) console.log(1)", "process.abort()")
    assert run(code, cwd=tmp_path, env={"TMPDIR": str(tmp_path)}).code != 0
    assert os.listdir(tmp_path) == []


def test_modules_run_where_nothing_can_be_written():
    assert returned("export const handler = () => 1", cwd="/proc") == 1


def test_the_process_looks_ordinary(tmp_path):
    path = f"{tmp_path}/handler.js"
    got = returned("""exports.handler = () => [process.argv, process.execArgv, __filename,
        __dirname, require.main === module, module.id, module.filename, typeof process._eval]""",
                   cwd=tmp_path)
    assert got == [[os.path.realpath(wrapper.NODE), path], [], path, str(tmp_path), True, ".", path,
                   "undefined"]


def test_children_and_workers(tmp_path):
    (tmp_path / "child.js").write_text("process.send(process.argv.concat(process.execArgv))")
    assert returned("""
        const { fork } = require('child_process'), { Worker } = require('worker_threads');
        exports.handler = async () => [
            await new Promise((ok) => fork('./child.js').on('message', (m) => ok(m.length))),
            await new Promise((ok) => new Worker(
                "require('worker_threads').parentPort.postMessage(6)", { eval: true })
                .on('message', ok))];
        """, cwd=tmp_path) == [2, 6]


def test_stdin_is_the_programs():
    assert returned("exports.handler = (e) => [e, require('fs').readFileSync(0, 'utf8')]", {"a": 1},
                    stdin="in é\n".encode()) == [{"a": 1}, "in é\n"]
    assert returned("""exports.handler = async () => {
        let s = ''; for await (const c of process.stdin) s += c; return s }""",
                    stdin=b"streamed") == "streamed"


# ---- a warmed process ----


def test_warmed_run_has_its_own_environment(tmp_path):
    load = (f"const {{ run }} = require({json.dumps(str(wrapper.WRAP / 'javascript.js'))});"
            "run(3, ['A=1', 'E=a=b', 'TZ=UTC+3', 'U=é'])")
    (tmp_path / "zygote.js").write_text(load)
    argv = [wrapper.NODE, str(tmp_path / "zygote.js")]
    for code in ("exports.handler = (e) => [e, process.env, new Date(0).getTimezoneOffset()]",
                 "export const handler = (e) => [e, process.env, new Date(0).getTimezoneOffset()]"):
        got = wrapper.run("javascript", code, {"e": 1}, argv=argv)
        assert got.value == [{"e": 1}, {"A": "1", "E": "a=b", "TZ": "UTC+3", "U": "é"}, 180]
    got = wrapper.run("javascript", "\n\nthrow new Error('x')", argv=argv)
    assert got.err == "Error: x\n    at Object.<anonymous> (/tmp/handler.js:3:7)\n"
