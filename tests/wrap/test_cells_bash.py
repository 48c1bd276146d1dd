# SPDX-License-Identifier: MIT
"""src/lang/cells/cells_bash.sh, without a sandbox."""
import cells


def run(tmp_path, *codes):
    """(statuses, output)"""
    kernel = cells.Cells("bash", tmp_path)
    statuses = [kernel.run(code)[-1] for code in codes]
    out, _ = kernel.close()
    return statuses, out


def test_state_stays(tmp_path):
    statuses, out = run(tmp_path, "x=5; cd /; f() { echo in f $1; }", "echo $x; pwd", "f 2", "echo $'a\\nb ü'")
    assert statuses == ["ok"] * 4 and out == "5\n/\nin f 2\na\nb ü\n"


def test_a_failure_is_told_and_the_shell_lives_on(tmp_path):
    kernel = cells.Cells("bash", tmp_path)
    assert kernel.error("false")["value"] == "exit status 1"
    assert kernel.error("if ; then")["name"] == "ExitStatus"
    assert kernel.run("true") == ["ok"]
    _, err = kernel.close()
    assert "syntax error" in err


def test_an_interrupt_ends_the_cell_and_keeps_the_state(tmp_path):
    kernel = cells.Cells("bash", tmp_path)
    kernel.run("x=7")
    kernel.send("while :; do :; done")
    kernel.wait_begun()
    *events, status = kernel.interrupted()
    assert status == "error" and events[-1]["name"] == "KeyboardInterrupt"
    assert kernel.run("[ $x = 7 ]") == ["ok"]
    kernel.close()


def test_exit_ends_the_shell(tmp_path):
    kernel = cells.Cells("bash", tmp_path)
    assert kernel.run("exit 3") == [None]
    kernel.close()
