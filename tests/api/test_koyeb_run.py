# SPDX-License-Identifier: MIT
"""POST /run: a command in the default sandbox."""
import http.client
import json
import socket
import threading

import harness
import pytest
from koyeb import Sandbox


@pytest.fixture
def box(daemon):
    return Sandbox(daemon)


def marked(mark):
    """A sleeping process that the host can find by its name."""
    return f'bash -c "exec -a {mark} sleep 600"'


def test_body_is_exact_to_the_byte(box):
    r = box.post("run", {"cmd": "echo hi"})
    assert (r.status, r.body) == (200, b'{"stdout":"hi\\n","stderr":"","code":0}\n')
    assert r.headers["Content-Type"] == "application/json"
    r = box.post("run", {"cmd": "echo oops >&2; exit 3"})
    assert r.body == b'{"stdout":"","stderr":"oops\\n","error":"Non-zero exit code","code":3}\n'


def test_the_same_verbs_under_the_prefix_of_the_sdks(daemon):
    assert Sandbox(daemon, "/koyeb-sandbox").sh("echo hi") == "hi\n"
    assert Sandbox(daemon, "/v1/sandboxes/default").sh("echo hi") == "hi\n"


def test_the_shell_is_sh_and_a_missing_command_is_127(box):
    assert box.sh("echo $0") == "sh\n"
    result = box.run("no-such-command-anywhere")
    assert result["code"] == 127 and "not found" in result["stderr"]


def test_an_empty_command_is_valid(box):
    assert box.post("run", {}).json() == {"stdout": "", "stderr": "", "code": 0}
    assert box.post("run", {"cmd": ""}).json()["code"] == 0
    assert box.daemon.request("POST", "/run", body="null").json()["code"] == 0


def test_death_by_signal_is_minus_one(box):
    result = box.run("kill -KILL $$")
    assert result["code"] == -1 and result["error"] == "Non-zero exit code"


def test_standard_input_is_empty_unless_given(box):
    assert box.sh("cat; echo end") == "end\n"
    assert box.sh("cat", stdin="first\nsecond") == "first\nsecond"
    large = "x" * 400_000
    assert box.sh("wc -c", stdin=large).strip() == "400000"


def test_a_request_has_at_most_4096_variables(box):
    def status(n):
        return box.post("run", {"cmd": "true", "env": {f"V{i}": "" for i in range(n)}}).status
    assert (status(4096), status(4097)) == (200, 400)


def test_environment_is_small_and_the_request_adds_to_it(box):
    env = dict(line.split("=", 1) for line in box.sh("env", env={"A": "1", "HOME": "/tmp"}).splitlines())
    assert env["A"] == "1" and env["HOME"] == "/tmp"
    assert env["PATH"].split(":")[-1] == "/bin"
    assert not any(harness.CANARY in value for value in env.values())
    assert "SANDBOX_SECRET" not in env and "PORT" not in env
    assert box.sh("echo [$B]", env={"B": None}) == "[]\n"


def test_working_directory(box):
    assert box.sh("pwd") == "/workspace\n"
    assert box.sh("pwd", cwd="/usr/bin") == "/usr/bin\n"
    box.sh("mkdir -p real && ln -sfn real link")
    assert box.sh("pwd", cwd="/workspace/link") == "/workspace/link\n"
    assert box.sh("pwd", cwd="link") == "/workspace/link\n"
    assert box.sh("pwd", cwd="") == "/workspace\n"
    for cwd, pwd in ((".", "/workspace"), ("./", "/workspace"), ("/workspace/./link/", "/workspace/link"),
                     ("/", "/"), ("//usr//bin/.", "/usr/bin")):
        assert box.sh("printenv PWD", cwd=cwd) == pwd + "\n", cwd


@pytest.mark.parametrize("cwd", ["/nonexistent", "/etc/passwd", "no/where", "nul\0inside"])
def test_a_bad_working_directory_is_told_verbatim(box, cwd):
    for verb in ("run", "run_streaming", "start_process"):
        r = box.post(verb, {"cmd": "true", "cwd": cwd})
        assert (r.status, r.text) == (400, f"Invalid working directory: {cwd}\n")
        assert r.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("body", [
    {"cmd": "a\0b"}, {"cmd": "true", "env": {"A": "x\0y"}}, {"cmd": "x" * 200_000},
])
def test_what_cannot_be_executed_fails_to_start(box, body):
    r = box.post("run", body)
    assert (r.status, r.text) == (500, "Failed to start command\n")


def test_a_command_just_below_the_kernels_limit_runs(box):
    assert box.sh("true " + "y" * 131_000) == ""
    assert box.sh("echo $A | wc -c", env={"A": "z" * 120_000}).strip() == "120001"


@pytest.mark.parametrize("body", ["", "x", "[]", '"text"', "3", '{"cmd":1}', '{"cmd":"a"', '{"env":[]}',
                                  '{"env":{"A":1}}', '{"cwd":{}}', '{"timeout":"1"}', '{"timeout":-1}'])
def test_what_is_no_request_is_refused(box, body):
    r = box.daemon.request("POST", "/run", body=body)
    assert (r.status, r.text) == (400, "Invalid request\n")


def test_json_is_read_leniently(box):
    def run(text):
        r = box.daemon.request("POST", "/run", body=text)
        assert r.status == 200, r
        return r.json()["stdout"]
    assert run('{"CMD":"echo a"}') == "a\n"
    assert run('{"cmd":"echo a","cmd":"echo b"}') == "b\n"
    assert run('{"cmd":"echo a","unknown":[{}]} trailing') == "a\n"
    assert run('{"cmd":"echo a","cwd":null,"env":null,"timeout":null,"stdin":null}') == "a\n"
    assert run('{"cmd":"echo a"}\n') == "a\n"


def test_any_method_will_do_but_a_body_is_needed(box):
    assert box.daemon.request("PUT", "/run", json={"cmd": "echo a"}).json()["stdout"] == "a\n"
    assert box.daemon.request("GET", "/run").text == "Invalid request\n"


def test_output_is_repaired_byte_by_byte_as_the_original_does(box):
    r = box.post("run", {"cmd": r"printf 'a\377b\342\202c'"})
    assert r.body.startswith(b'{"stdout":"a\\ufffdb\\ufffd\\ufffdc"')
    assert box.sh(r"printf 'gr\303\274n \360\237\230\200'") == "grün 😀"
    r = box.post("run", {"cmd": r"printf '<&>\342\200\250'"})
    assert r.body.startswith(rb'{"stdout":"\u003c\u0026\u003e\u2028"')


def test_both_streams_are_read_at_once(box):
    cmd = "head -c 500000 /dev/zero | tr '\\0' e >&2; head -c 500000 /dev/zero | tr '\\0' o"
    result = box.run(cmd)
    assert len(result["stdout"]) == len(result["stderr"]) == 500_000


def test_large_output(box):
    result = box.run("head -c 20000000 /dev/zero | tr '\\0' x")
    assert len(result["stdout"]) == 20_000_000


def test_output_beyond_the_limit_is_cut_and_said_so(make_daemon):
    box = Sandbox(make_daemon(RUN_OUTPUT_MAX=100_000))
    result = box.run("head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert len(result["stdout"]) == 100_000 and result["stdout_truncated"] is True
    assert result["stderr"] == "end\n" and "stderr_truncated" not in result and result["code"] == 0


def test_a_background_child_holds_the_answer_back_only_with_the_streams(box):
    mark = harness.marker()
    assert box.sh(f"({marked(mark)} >/dev/null 2>&1 &) ; echo now") == "now\n"
    harness.wait_until(lambda: harness.processes_with(mark), "it lives on")
    assert box.sh("(read x <$0; echo late) & echo soon; exit 0".replace("$0", "/dev/null")) in (
        "soon\nlate\n", "late\nsoon\n")
    box.run(f"pkill -KILL -f {mark}")  # hits its own shell as well
    harness.wait_until(lambda: not harness.processes_with(mark), "the child is gone")


def test_timeout_ends_the_whole_tree(box):
    mark = harness.marker()
    result = box.run(f"echo before; setsid sh -c '{marked(mark)}' & wait", timeout=2.5)
    assert result["code"] == -1 and result["stdout"] == "before\n"
    assert result["error"] == "Command timed out after 2.5 seconds"
    assert not harness.processes_with(mark)


def test_a_client_that_leaves_does_not_stop_a_command(box):
    box.sh("rm -f left && mkfifo -m 600 gate")
    connection = box.daemon.connect()
    connection.send("POST", "/run", json={"cmd": "read x < gate; echo done > left"})
    harness.wait_until(lambda: "read x" in box.sh("ps ax -o args | grep '^sh -c read' || true"),
                       "the command waits")
    connection.close()
    box.sh("echo go > gate", timeout=10)
    harness.wait_until(lambda: box.run("cat left")["stdout"] == "done\n", "the command went on")
    box.sh("rm -f gate left")


def test_files_processes_and_the_network_outlive_a_command(box):
    box.sh("echo kept > /workspace/kept; echo etc > /etc/mine; mkdir /opt/x")
    assert box.sh("cat /workspace/kept /etc/mine; ls /opt") == "kept\netc\nsandbox-executor\nx\n"
    box.sh("rm /workspace/kept /etc/mine; rmdir /opt/x")


def test_the_host_is_untouched_and_out_of_sight(box):
    import pathlib
    mark = harness.marker()
    assert box.sh(f"for d in /workspace /etc /home /var /opt /srv /run /mnt /tmp; do echo {mark} >$d/{mark}; done;"
                  f" cat /etc/{mark} /mnt/{mark}") == f"{mark}\n{mark}\n"
    for d in "workspace etc home var opt srv run mnt tmp".split():
        assert not pathlib.Path("/", d, mark).exists()
    assert box.sh("cat /etc/shadow; id -u; cat /proc/self/status | grep CapEff").endswith(
        "1000\nCapEff:\t0000000000000000\n")
    assert box.sh("cat /proc/1/comm") == "sandbox-init\n"


def test_the_system_can_be_changed_in_private(box):
    import pathlib
    if not harness.ROOT:
        pytest.skip("needs idmapped layers")
    before = pathlib.Path("/usr/bin/env").read_bytes()
    assert box.sh("cp /bin/echo /usr/bin/my-echo && my-echo works") == "works\n"
    assert box.sh("cp /usr/bin/env /tmp/env && echo broken > /usr/bin/env && cat /usr/bin/env") == "broken\n"
    assert pathlib.Path("/usr/bin/env").read_bytes() == before
    assert not pathlib.Path("/usr/bin/my-echo").exists()
    box.sh("cp /tmp/env /usr/bin/env; rm /usr/bin/my-echo")


def test_many_commands_at_the_same_time(box):
    results, threads = [None] * 24, []

    def work(i):
        results[i] = box.sh(f"echo {i}; sleep 0.05; echo {i}")
    for i in range(24):
        threads.append(threading.Thread(target=work, args=(i,)))
        threads[-1].start()
    for t in threads:
        t.join()
    assert results == [f"{i}\n{i}\n" for i in range(24)]


def test_a_command_can_use_every_signal_and_terminal_trick(box):
    assert box.sh("trap 'echo caught' PIPE TERM; kill -PIPE $$; kill -TERM $$; echo on") == "caught\ncaught\non\n"
    assert box.sh("sleep 100 & kill $!; wait $!; echo $?") == "143\n"


def test_a_command_that_kills_everything_ends_only_itself(box):
    result = box.run("kill -KILL -1; echo not reached")
    assert result["code"] == -1
    assert box.sh("echo alive") == "alive\n"


def test_orphans_of_a_killed_helper_are_killed(box):
    mark = harness.marker()
    box.run(f"setsid sh -c '{marked(mark)}' >/dev/null 2>&1 & "
            f"until grep -qs ^{mark} /proc/*/cmdline; do sleep 0.01; done; kill -KILL $PPID; sleep 600")
    harness.wait_until(lambda: not harness.processes_with(mark), "nothing lives without a helper")
    assert box.sh("echo alive") == "alive\n"


def test_authentication_comes_before_everything_but_the_path(box):
    r = box.daemon.request("POST", "/run", body="x", headers={"Authorization": "Bearer wrong"})
    assert (r.status, r.text) == (401, "Unauthorized\n")
    assert r.headers["WWW-Authenticate"] is None
    r = box.daemon.request("PUT", "/start_process", body="x", headers={"Authorization": None})
    assert r.status == 401
    r = box.daemon.request("PUT", "/start_process", body="x")
    assert (r.status, r.text) == (405, "Method not allowed\n")


def test_an_unknown_sandbox_is_not_made(daemon):
    assert daemon.request("POST", "/v1/sandboxes/nobody/run", json={"cmd": "true"}).status == 404


def test_requests_on_one_connection_come_in_order(box):
    body = [json.dumps({"cmd": f"echo {i}"}).encode() for i in range(5)]
    head = "POST /run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n"
    with box.daemon.socket() as s:
        s.sendall(b"".join(head.format(box.daemon.secret, len(b)).encode() + b for b in body))
        answers = s.makefile("rb")  # one for all: two of them may come in one piece
        for i in range(5):
            assert answers.readline().startswith(b"HTTP/1.1 200 ")
            head = http.client.parse_headers(answers)
            assert json.loads(answers.read(int(head["Content-Length"])))["stdout"] == f"{i}\n"
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
