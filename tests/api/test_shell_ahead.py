# SPDX-License-Identifier: MIT
"""A shell that was started ahead: nobody can tell it from one that starts for its program, but by the clock."""
import harness
import pytest

COLD = {"LD_BIND_NOT": ""}  # only a loader that starts now could heed it

# name -> (program, fields of the request)
PROGRAMS = {
    "nothing": ("true", {}),
    "its-name": ('echo "$0" "$#" "$*" "$-" "$$" "$PPID" "${BASH_SOURCE[@]}" "$BASH" "$SHLVL" "$_"', {}),
    "options": ("shopt; set -o; echo $SHELLOPTS", {}),
    "variables": ("compgen -v | grep -v LD_BIND_NOT | sort; declare -p | grep -vE 'RANDOM|SECONDS|EPOCH|BASHPID|LD_BIND|PIPESTATUS|BASH_'",
                  {}),
    "environment": ("env | grep -v LD_BIND_NOT | sort", {"env_vars": {"A": "1 2", "B": "ü\n", "EMPTY": ""}}),
    "environment-of-proc": ("tr '\\0' '\\n' < /proc/$$/environ | grep -vE 'LD_BIND|^$' | sort", {"env_vars": {"A": "1"}}),
    "arguments-of-proc": ("tr '\\0' '\\n' < /proc/$$/cmdline | sed '/^$/d'; cat /proc/$$/comm; readlink /proc/$$/exe", {}),
    "long-arguments-of-proc": (": " + "x" * 9000 + "; wc -c < /proc/self/cmdline", {}),
    "descriptors": ("ls -l /proc/$$/fd > /tmp/list; sed 's/.* \\([0-9]* ->\\)/\\1/; s/[0-9]*]/]/' /tmp/list", {}),
    "limits": ("ulimit -a; ulimit -Ha; umask", {}),
    "signals": ("trap; grep -E 'Sig(Ign|Cgt)' /proc/$$/status; grep SigBlk /proc/self/status; kill -l | head -2", {}),
    "directory": ("pwd; echo $PWD $OLDPWD; cd /tmp; pwd; dirs", {}),
    "input": ("cat; read x; echo $?", {"stdin": "one\ntwo\n"}),
    "input-of-the-event": ("cat", {"event": {"a": [1, 2.50]}}),
    "event": ('echo "$EVENT_JSON"', {"event": {"a": "ü"}}),
    "here": ("cat <<X\n$HOME\nX\ncat <<< hi; cat < <(echo sub)", {}),
    "letters": ("x=zwölf; echo ${#x} ${x^^}; printf '%5s|\\n' ü; [[ ü =~ ^.$ ]]; echo $?", {}),
    "letters-as-bytes": ("x=zwölf; echo ${#x}", {"env_vars": {"LC_ALL": "C"}}),
    "letters-of-a-language": ("x=zwölf; echo ${#x}; locale 2>&1 | head -3", {"env_vars": {"LANG": "C.UTF-8"}}),
    "letters-of-an-unknown-language": ("x=zwölf; echo ${#x}", {"env_vars": {"LC_ALL": "xx_YY.UTF-8"}}),
    "time": ("date -d @0; printf '%(%H)T\\n' 0", {"env_vars": {"TZ": "Asia/Tokyo"}}),
    "posix": ("set -o | grep posix", {"env_vars": {"POSIXLY_CORRECT": "1"}}),
    "options-of-the-environment": ("echo $x; echo on", {"env_vars": {"SHELLOPTS": "xtrace", "PS4": "> "}}),
    "start-file": ("echo $x", {"env_vars": {"BASH_ENV": "/dev/null", "x": "1"}}),
    "functions-of-the-environment": ("f", {"env_vars": {"BASH_FUNC_f": "() { echo no; }"}}),
    "exported-functions": ("f; declare -F", {"env_vars": {"BASH_FUNC_f%%": "() { echo yes; }"}}),
    "names-that-are-none": ("env | grep -v LD_BIND_NOT | sort", {"env_vars": {"a.b": "1", "É": "2", "1": "3", "a b": "4"}}),
    "path": ("type ls cat; hash; PATH=/nowhere; ls", {}),
    "background": ("(exit 3) & wait $!; echo $?; jobs; sleep 0 & wait; echo $?", {}),
    "pipes": ("printf '%s\\n' c a b | sort | head -1; echo ${PIPESTATUS[@]}; set -o pipefail; false | true; echo $?", {}),
    "both-streams": ("echo out; echo err >&2", {}),
    "files": ("echo a > made; mkdir d; cat made; ls", {}),
    "replaced": ("exec printf '%s' replaced", {}),
    "replaced-by-a-shell": ("exec /bin/bash -c 'echo $0 $1' inner outer", {}),
    "exit": ("exit 7", {}),
    "exit-trap": ("trap 'echo bye' EXIT; exit 3", {}),
    "stops-at-an-error": ("set -e; false; echo never", {}),
    "killed": ("kill -KILL $$", {}),
    "terminated": ("kill -TERM $$; echo never", {}),
    "aborted": ("kill -ABRT $$", {}),
    "unknown-command": ("no-such-command", {}),
    "syntax": ("if true; then", {}),
    "syntax-line": ("echo a\necho b\n)\n", {}),
    "undefined": ("set -u; echo $nope", {}),
    "lines": ("echo $LINENO\n\necho $LINENO; caller; return 2>&1", {}),
    "dash": ("-c", {}),
    "dashes": ("--help", {}),
    "empty": (" ", {}),
    "comment": ("# nothing", {}),
    "arithmetic": ("echo $((2**62)) $((7/2)); ((0)); echo $?; echo $((1/0))", {}),
    "arrays": ("declare -A m=([a]=1 [b]=2); a=(x y); echo ${m[b]} ${a[-1]} ${!a[@]}", {}),
    "globs": ("touch 1 2; echo *; echo /etc/host*; shopt -s nullglob; echo q*", {}),
    "history": ("set -o history; history; fc -l; echo $?", {}),
    "terminal": ("tty; test -t 0; echo $?; stty 2>&1 | head -1", {}),
    "large-output": ("head -c 300000 /dev/zero | tr '\\0' x", {}),
    "other-shells": ("sh -c 'echo $0'; bash -c 'echo $SHLVL'; env -i /bin/bash -c 'echo ${LC_CTYPE-none}'", {}),
}
COMPARED = ("status", "stdout", "stderr", "exit_code", "return_value", "termination", "artifacts")


@pytest.fixture(scope="module")
def daemon(make_daemon_module):
    return make_daemon_module()


def template_of(result):
    return result["isolation"]["template"]


def ahead(daemon, code, **fields):
    """What came of it in a shell that was waiting; the first one asks for such shells, and some are in use."""
    got = {}

    def is_ahead():
        got.update(daemon.execute(code, "shell", **fields))
        return template_of(got) == "shell"

    harness.wait_until(is_ahead, "a shell that was started ahead")
    return got


def seen(result):
    return {key: result.get(key) for key in COMPARED}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_of_a_program(daemon, name):
    code, fields = PROGRAMS[name]
    variables = fields.get("env_vars", {})
    usual = daemon.execute(code, "shell", **{**fields, "env_vars": {**variables, **COLD}})
    assert template_of(usual) == "exec"
    assert seen(ahead(daemon, code, **fields)) == seen(usual)


@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "MALLOC_PERTURB_", "LOCPATH"])
def test_what_a_loader_heeds_is_there_when_it_starts(daemon, name):
    ahead(daemon, "true")
    got = daemon.execute("env", "shell", env_vars={name: ""})
    assert template_of(got) == "exec" and f"{name}=\n" in got["stdout"]


def test_a_long_program_is_a_file(daemon):
    got = daemon.execute(":" + " " * 130000 + "\necho $0", "shell")
    assert template_of(got) == "exec" and got["stdout"].startswith("/tmp/program-")


def test_nothing_of_the_waiting_is_left(daemon):
    """Not in its own environment, nor what it hands on; and its memory has no room of ours that it could write to."""
    got = ahead(daemon, "env; tr '\\0' '\\n' < /proc/$$/environ; grep -A1 sandbox-shell /proc/$$/maps | grep -E ' rwx|rwxp'")
    assert "LD_PRELOAD" not in got["stdout"] and "ROOM=" not in got["stdout"] and "rwx" not in got["stdout"]


def test_no_two_programs_share_one(daemon):
    code = "echo $SRANDOM; cat /proc/sys/kernel/random/uuid; ls /tmp; touch /tmp/mine /workspace/mine"
    assert len({ahead(daemon, code)["stdout"] for _ in range(6)}) == 6
    assert "mine" not in ahead(daemon, code)["stdout"]


def test_limits_are_those_of_the_request(daemon):
    got = ahead(daemon, "while :; do :; done", timeout=1)
    assert (got["status"], got["termination"]["reason"]) == ("timeout", "timeout")


def test_what_it_used_is_not_what_waiting_did(daemon):
    """The loader had been through before anybody asked."""
    harness.need(harness.FULL, "control groups, which tell what was used since")
    cost = min(ahead(daemon, "true")["metrics"]["cpu_time_ms"] for _ in range(20))
    usual = min(daemon.execute("true", "shell", env_vars=COLD)["metrics"]["cpu_time_ms"] for _ in range(20))
    assert 0 < cost < usual


def test_without_the_library_shells_start_as_ever(make_daemon, tmp_path):
    daemon = make_daemon(binary=harness.build_without("sandbox-shell.so", tmp_path))
    assert {template_of(daemon.execute("true", "shell")) for _ in range(4)} == {"exec"}
    names = [row.split('"')[1] for row in daemon.request("GET", "/metrics").text.splitlines()
             if row.startswith("sandbox_pool{") and row.endswith(" 0")]
    assert "shell" in names


def test_a_pool_that_was_switched_off_starts_none(make_daemon):
    daemon = make_daemon(POOL_EXEC="0")
    assert {template_of(daemon.execute("true", "shell")) for _ in range(4)} == {"exec"}
