# SPDX-License-Identifier: MIT
"""src/lang/cells/cells_javascript.js: cells of JavaScript and TypeScript, without a sandbox."""
import pytest

import cells


@pytest.fixture
def javascript(tmp_path):
    kernel = cells.Cells("javascript", tmp_path)
    yield kernel
    kernel.close()


@pytest.fixture
def typescript(tmp_path):
    if not (cells.CELLS / "cells_amaro.js").exists():
        pytest.skip("tools/fetch-npm cells has not been run")
    kernel = cells.Cells("typescript", tmp_path)
    yield kernel
    kernel.close()


def test_declarations_stay_and_may_be_repeated(javascript):
    javascript.run("const x = 1; class A { y = 2 }; function f() { return 3 }")
    assert javascript.value("x + new A().y + f()") == "6"
    assert javascript.value("const x = 'again'; x") == "'again'"
    assert javascript.value("undefined") is None and javascript.value("null") == "null"


def test_await_stands_at_the_top_and_a_promise_is_shown_as_one(javascript):
    assert javascript.value("await new Promise((done) => setTimeout(() => done('späß'), 5))") == "'späß'"
    assert javascript.value("Promise.resolve(3)") == "Promise { 3 }"


def test_imports_become_variables(javascript, tmp_path):
    if not (cells.CELLS / "cells_acorn.js").exists():
        pytest.skip("tools/fetch-npm cells has not been run")
    (tmp_path / "m.mjs").write_text("export default 1; export const two = 2;")
    assert javascript.value("import one, {two as b} from './m.mjs'; import * as all from './m.mjs'; [one, b, all.two]") == "[ 1, 2, 2 ]"
    assert javascript.value("one + (await import('./m.mjs')).two") == "3"
    assert javascript.value("import fs, {readFileSync} from 'fs'; fs.readFileSync === readFileSync") == "true"
    assert javascript.value("export const q = 4; q") == "4"
    assert "Cannot find" in javascript.error("import nope from 'nope'")["value"]


def test_output_is_told_in_order(javascript):
    *events, status = javascript.run("console.log('a', {b: 1}); console.error('e'); process.stdout.write('no line')")
    assert status == "ok" and [(e["type"], e.get("text")) for e in events[:3]] == [
        ("stdout", "a { b: 1 }\n"), ("stderr", "e\n"), ("stdout", "no line")]


def test_errors_have_a_name_and_a_place(javascript):
    error = javascript.error("const f = () => { throw new TypeError('no') };\nf()")
    assert (error["name"], error["value"]) == ("TypeError", "no") and "cell-1:1" in error["traceback"]
    assert "cells_javascript" not in error["traceback"]
    assert javascript.error("syntax error here")["name"] == "SyntaxError"
    assert javascript.error("throw {a: 1}")["value"] == "{ a: 1 }"


def test_display_shows_bundles(javascript):
    events = javascript.run("display.html('<b>'); display({'image/png': Buffer.from('x')}); display([1]); [1, {a: 2}]")[:-1]
    assert [e["data"] for e in events] == [
        {"text/html": "<b>"}, {"image/png": "eA=="}, {"text/plain": "[ 1 ]", "application/json": [1]},
        {"text/plain": "[ 1, { a: 2 } ]", "application/json": [1, {"a": 2}]}]
    assert [e["main"] for e in events] == [False, False, False, True]


def test_variables_of_a_cell_do_not_stay(javascript):
    assert javascript.value("process.env.Q", Q="v") == "'v'" and javascript.value("process.env.Q") is None


@pytest.mark.parametrize("code", ["while (true);", "await new Promise(() => {})"])
def test_an_interrupt_ends_the_cell_and_keeps_the_state(javascript, code):
    javascript.run("const x = 4")
    javascript.send(code)
    javascript.wait_begun()
    *events, status = javascript.interrupted()
    assert status == "error" and events[-1]["name"] == "KeyboardInterrupt"
    assert javascript.value("x") == "4"


def test_what_fails_between_cells_is_told_and_does_no_harm(javascript):
    javascript.run("setTimeout(() => { throw new Error('later') }, 1); await new Promise((done) => setTimeout(done, 50))")
    assert javascript.value("1") == "1"


def test_types_are_taken_away(typescript):
    assert typescript.value("enum E { A, B }; interface Q { a: number }; const v: Q = {a: 1} as Q; E.B + v.a") == "2"
    assert typescript.value("v.a satisfies number") == "1"
    assert typescript.error("let z: = 1")["name"] == "SyntaxError"
