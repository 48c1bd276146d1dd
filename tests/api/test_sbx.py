# SPDX-License-Identifier: MIT
"""The command line against a real daemon: streams, exit statuses, interruption, terminals."""
import fcntl
import http.client
import io
import json
import os
import pty
import re
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import tarfile
import termios
import threading
import time

import pytest

import harness


def fresh_name(stem):
    return f"{stem}-{secrets.token_hex(4)}"


@pytest.fixture(scope="module")
def home(daemon):
    """A sandbox of this module's own, and how sbx is called with it."""
    name = fresh_name("sbx")
    made = sbx(daemon, "sandbox", "create", name)
    assert (made.returncode, made.stdout) == (0, name + "\n"), made
    yield name
    assert sbx(daemon, "sandbox", "rm", name).returncode == 0


def environment(daemon, **more):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", "LC_ALL": "C.UTF-8",
           "SANDBOX_URL": f"http://127.0.0.1:{daemon.port}", "SANDBOX_SECRET": daemon.secret, **more}
    env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    return {k: v for k, v in env.items() if v is not None}


def sbx(daemon, *args, stdin="", **env):
    return subprocess.run([harness.BUILD / "sbx", *args], env=environment(daemon, **env), input=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=2 * harness.DEADLINE)


class Started:
    """sbx while it runs, with its output as it comes; on a terminal if asked for."""

    def __init__(self, daemon, *args, terminal=None, **env):
        env = environment(daemon, **env)
        if terminal:
            self.out, slave = pty.openpty()
            self.resize(*terminal)
            self.before = termios.tcgetattr(slave)
            self.slave = slave
            self.process = subprocess.Popen([harness.BUILD / "sbx", *args], env=env, stdin=slave, stdout=slave,
                                            stderr=slave, start_new_session=True,
                                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        else:
            self.process = subprocess.Popen([harness.BUILD / "sbx", *args], env=env, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.out = self.process.stdout.fileno()
        self.said = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def resize(self, columns, rows):
        fcntl.ioctl(self.out, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.out, text.encode())

    def until(self, mark):
        """Everything that was said until the mark, which goes, too."""
        end = time.monotonic() + 2 * harness.DEADLINE
        while not (found := re.search(mark, self.said)):
            left = end - time.monotonic()
            assert left > 0 and select.select([self.out], [], [], left)[0], (mark, self.said)
            try:
                part = os.read(self.out, 1 << 16)
            except OSError:
                part = b""
            assert part, (mark, self.said)
            self.said += part
        got, self.said = self.said[:found.end()], self.said[found.end():]
        return got

    def ended(self):
        return self.process.wait(2 * harness.DEADLINE)


# ---- run ----


def test_run_is_as_if_the_program_had_run_here(daemon):
    ran = sbx(daemon, "run", "-l", "shell", "-", stdin="echo out; echo err >&2; exit 7")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "out\n", "err\n")


def test_run_prints_what_a_handler_returns(daemon, tmp_path):
    (tmp_path / "h.py").write_text("import os\ndef handler(event):\n    print('hi')\n    return {'n': event['n'] + 1, 'e': os.environ['E']}")
    ran = sbx(daemon, "run", "--event", '{"n": 41}', "--env", "E=x=y", tmp_path / "h.py")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, 'hi\n{"n":42,"e":"x=y"}\n', "")


def test_run_tells_a_timeout(daemon):
    ran = sbx(daemon, "run", "-t", "0.2", "-l", "shell", "-", stdin="sleep 60")
    assert ran.returncode == 124 and "timeout" in ran.stderr, ran


def test_what_a_run_and_a_sandbox_may_reach_is_passed_on(daemon):
    assert sbx(daemon, "run", "--network", "none", "-l", "shell", "-", stdin="echo ran").stdout == "ran\n"
    ran = sbx(daemon, "run", "--network", '{"mode": "nonsense"}', "-l", "shell", "-")
    assert ran.returncode == 125 and "network" in ran.stderr
    ran = sbx(daemon, "sandbox", "create", "--network", "nonsense")
    assert ran.returncode == 125 and "network" in ran.stderr


def test_run_json_is_the_result(daemon):
    ran = sbx(daemon, "run", "--json", "-l", "shell", "-", stdin="echo out; exit 3")
    assert ran.returncode == 3 and json.loads(ran.stdout)["stdout"] == "out\n"


def test_run_shows_output_as_it_comes_and_an_interrupt_cancels(daemon, tmp_path):
    mark = harness.marker()
    (tmp_path / "p.sh").write_text(f"echo begun; exec -a {mark} sleep 600")
    with Started(daemon, "run", str(tmp_path / "p.sh")) as run:
        run.until(b"begun\n")
        harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
        run.process.send_signal(signal.SIGINT)
        assert run.ended() == 130
        run.until(b"cancelled")
    harness.wait_until(lambda: not harness.processes_with(mark), "the program has ended")


# ---- where the daemon is ----


def test_it_says_when_nobody_listens():
    ran = subprocess.run([harness.BUILD / "sbx", "ps", "-u", "http://127.0.0.1:9"], env={"HOME": "/nonexistent"},
                         capture_output=True, text=True, timeout=harness.DEADLINE)
    assert ran.returncode == 125 and "nobody listens at http://127.0.0.1:9: is the daemon running?" in ran.stderr


def test_it_says_when_the_secret_is_wrong(daemon):
    ran = sbx(daemon, "sandbox", "ls", SANDBOX_SECRET="wrong")
    assert ran.returncode == 125 and "(401)" in ran.stderr


def test_the_secret_is_found_where_the_daemon_keeps_it(make_daemon):
    own = make_daemon(SANDBOX_SECRET=None, SANDBOX_AUTH_MODE=None)
    ran = sbx(own, "sandbox", "ls", SANDBOX_SECRET=None, STATE_DIR=str(own.state_dir))
    assert (ran.returncode, ran.stderr) == (0, "")


# ---- sandboxes ----


def test_sandboxes_are_made_listed_paused_and_removed(daemon):
    name = fresh_name("listed")
    assert sbx(daemon, "sandbox", "create", name, "--metadata", f"of={name}", "-e", "A=1", "--memory", "64").stdout == name + "\n"
    try:
        described = json.loads(sbx(daemon, "sandbox", "ls", "--json", "-M", f"of={name}").stdout)["sandboxes"]
        assert [s["name"] for s in described] == [name] and described[0]["limits"]["memory_mb"] == 64
        assert name in sbx(daemon, "sandbox", "ls", "-q").stdout.split()
        table = sbx(daemon, "sandbox", "ls").stdout.splitlines()
        assert table[0].split() == ["NAME", "ID", "STATE", "TEMPLATE", "PROCESSES", "AGE"]
        assert any(row.split()[:3:2] == [name, "running"] for row in table)
        assert "\033" not in "".join(table)
    finally:
        gone = sbx(daemon, "sandbox", "rm", name)
    assert (gone.returncode, gone.stdout) == (0, name + "\n")
    again = sbx(daemon, "sandbox", "rm", name)
    assert again.returncode == 125 and "(404)" in again.stderr


def test_a_command_group_alone_lists_its_commands(daemon):
    ran = sbx(daemon, "sandbox")
    assert ran.returncode == 2 and "sandbox create" in ran.stderr


# ---- exec and processes ----


def test_exec_has_the_streams_and_the_status_of_the_program(daemon, home):
    ran = sbx(daemon, "exec", "-s", home, "-e", "A=it's", "sh", "-c", 'read line; echo "$line$A"; echo err >&2; exit 9', stdin="typed\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (9, "typedit's\n", "err\n")


def test_exec_carries_much_in_both_directions(daemon, home):
    text = "".join(f"line {i}\n" for i in range(200_000))
    ran = sbx(daemon, "exec", "cat", stdin=text, SBX_SANDBOX=home)
    assert ran.returncode == 0 and ran.stdout == text


def test_exec_passes_an_interrupt_on(daemon, home):
    with Started(daemon, "exec", "-s", home, "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done") as run:
        run.until(b"ready\n")
        run.process.send_signal(signal.SIGINT)
        run.until(b"caught\n")
        assert run.ended() == 5


def test_exec_tells_what_could_not_be_started(daemon, home):
    ran = sbx(daemon, "exec", "-s", home, "no-such-program")
    assert ran.returncode == 127 and "no-such-program" in ran.stderr


def test_processes_are_listed_followed_and_killed(daemon, home):
    started = sbx(daemon, "exec", "-d", "-s", home, "sh", "-c", "echo first; until test -e go; do sleep 0.05; done; echo second; exec sleep 600")
    assert started.returncode == 0
    process = started.stdout.strip()
    try:
        harness.wait_until(lambda: sbx(daemon, "logs", "-s", home, process).stdout == "first\n", "it has written")
        rows = [row for row in sbx(daemon, "ps", "-s", home).stdout.splitlines() if process in row]
        assert len(rows) == 1 and "running" in rows[0] and "echo first" in rows[0]
        with Started(daemon, "logs", "-f", "-s", home, process) as logs:
            logs.until(b"first\n")
            assert sbx(daemon, "exec", "-s", home, "touch", "go").returncode == 0
            logs.until(b"second\n")
            assert sbx(daemon, "kill", "-s", home, "-S", "15", process).returncode == 0
            assert logs.ended() == 0
    finally:
        sbx(daemon, "kill", "-s", home, process)
    assert process not in sbx(daemon, "ps", "-s", home).stdout
    assert process in sbx(daemon, "ps", "--all", "-s", home).stdout


def test_a_list_gives_a_terminal_no_orders(daemon, home):
    started = sbx(daemon, "exec", "-d", "-s", home, "sh", "-c", "exec sleep 600 \033]0;owned\007")
    assert started.returncode == 0
    listed = sbx(daemon, "ps", "-s", home, "--all").stdout
    assert "\033" not in listed and "\007" not in listed and "owned" in listed
    sbx(daemon, "kill", "-s", home, started.stdout.strip())


# ---- copying ----


def tree(folder):
    """{name: what is there}"""
    return {str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file() else None
            for p in folder.rglob("*")}


def test_directories_and_files_are_copied_in_and_out(daemon, home, tmp_path):
    there = tmp_path / "there"
    (there / "sub" / "empty").mkdir(parents=True)
    (there / "big").write_bytes(os.urandom(3_000_001))
    (there / "sub" / "näme with space").write_text("x")
    (there / "sub" / "link").symlink_to("../big")
    (there / "run").write_text("#!/bin/sh\n")
    (there / "run").chmod(0o755)
    assert sbx(daemon, "cp", there, f"{home}:").returncode == 0
    assert sbx(daemon, "exec", "-s", home, "./there/run").returncode == 0
    assert sbx(daemon, "cp", f"{home}:there", tmp_path / "back").returncode == 0
    assert tree(tmp_path / "back") == tree(there)
    assert os.access(tmp_path / "back/run", os.X_OK)
    assert sbx(daemon, "cp", ":there/big", tmp_path / "one", SBX_SANDBOX=home).returncode == 0
    assert (tmp_path / "one").read_bytes() == (there / "big").read_bytes()
    (tmp_path / "into").mkdir()
    assert sbx(daemon, "cp", "-s", home, ":there/sub", tmp_path / "into").returncode == 0
    assert tree(tmp_path / "into/sub") == tree(there / "sub")


def test_copying_takes_and_gives_streams(daemon, home):
    assert sbx(daemon, "cp", "-", f"{home}:made/by/stream", stdin="text").returncode == 0
    assert sbx(daemon, "cp", f"{home}:made/by/stream", "-").stdout == "text"


def test_copying_says_what_is_not_there(daemon, home, tmp_path):
    ran = sbx(daemon, "cp", f"{home}:nothing", tmp_path / "x")
    assert ran.returncode == 125 and "nothing" in ran.stderr and list(tmp_path.iterdir()) == []
    ran = sbx(daemon, "cp", "no-such-sandbox:x", tmp_path / "x")
    assert ran.returncode == 125 and "no-such-sandbox" in ran.stderr
    ran = sbx(daemon, "cp", tmp_path / "absent", f"{home}:")
    assert ran.returncode == 125 and "absent" in ran.stderr
    assert sbx(daemon, "cp", "a", "b").returncode == 2


def test_a_copy_shows_how_far_it_is_on_a_terminal_only(daemon, home, tmp_path):
    (tmp_path / "big").write_bytes(bytes(2 << 20))
    with Started(daemon, "cp", str(tmp_path / "big"), f"{home}:big", terminal=(80, 24)) as copy:
        assert b"[####" in copy.until(rb"100%  2\.0 MiB")
        assert copy.ended() == 0
    quiet = sbx(daemon, "cp", tmp_path / "big", f"{home}:big")
    assert (quiet.stdout, quiet.stderr) == ("", "")


class Answers(threading.Thread):
    """A daemon that lies: one answer for each connection."""

    def __init__(self, *answers):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url, self.answers = f"http://127.0.0.1:{self.listener.getsockname()[1]}", answers
        self.start()

    def run(self):
        for body in self.answers:
            connection, _ = self.listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("evil", ["through-link", "parent", "absolute", "hard-link"])
def test_an_archive_that_leads_out_of_its_directory_does_not(tmp_path, evil):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("kept")
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        def add(name, kind=tarfile.REGTYPE, link="", text=b"owned"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, link, len(text) if kind == tarfile.REGTYPE else 0
            tar.addfile(entry, io.BytesIO(text))
        if evil == "through-link":
            add("way", tarfile.SYMTYPE, str(outside))
            add("way/secret")
        elif evil == "parent":
            add("../outside/secret")
        elif evil == "absolute":
            add(str(outside / "secret"))
        else:
            add("way", tarfile.SYMTYPE, str(outside))
            add("name", tarfile.LNKTYPE, "way/secret")
            add("name")
    server = Answers(json.dumps({"path": "/workspace/d", "type": "directory"}).encode(), data.getvalue())
    ran = subprocess.run([harness.BUILD / "sbx", "cp", "-u", server.url, ":d", tmp_path / "d"], capture_output=True, text=True,
                         timeout=harness.DEADLINE, env={"HOME": "/nonexistent", "SANDBOX_SECRET": "x"}, check=False)
    assert ran.returncode == 125 and ran.stderr, ran
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"secret": "kept"}
    assert (outside / "secret").stat().st_nlink == 1


# ---- functions ----


def test_functions_of_a_file_are_called_and_listed(daemon, tmp_path):
    file = tmp_path / "f.py"
    file.write_text('def area(w: int, height=2):\n    """Of a thing.\n\n    More."""\n    print("seen")\n    return {"a": w * height}\n')
    ran = sbx(daemon, "call", file, "area", "3", "height=5")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, 'seen\n{"a":15}\n', "")
    ran = sbx(daemon, "call", file, "area", "text", "height=[1]")
    assert ran.returncode == 1 and "TypeError" in ran.stderr
    assert json.loads(sbx(daemon, "call", "--json", file, "area", "1").stdout)["result"] == {"a": 2}
    ran = sbx(daemon, "inspect", file)
    harness.need("built without" not in ran.stderr, "the grammars of tools/fetch-grammars")
    assert ran.stdout == "    1  area(w: int, height = 2)\n       Of a thing.\n"


def test_config_says_where_and_how(daemon):
    said = sbx(daemon, "config").stdout
    assert said.startswith(f"daemon   http://127.0.0.1:{daemon.port}\nsecret   known\nsandbox  default\n")
    assert re.search(r"^secret +\"\*\*\*\"$", said, re.M) and daemon.secret not in said
    assert "archive_bytes_max" in json.loads(sbx(daemon, "config", "--json").stdout)


# ---- terminals ----

PLAIN = ["env", "PS1=ready$ ", "bash", "--norc", "--noprofile", "-i"]


def test_sh_is_a_terminal(daemon, home):
    with Started(daemon, "sh", "-s", home, *PLAIN, terminal=(91, 27)) as sh:
        sh.until(rb"ready\$ ")
        sh.type("stty size; test -t 0 && echo a-\"\"terminal\r")
        assert b"27 91" in sh.until(b"a-terminal")
        sh.resize(120, 40)
        os.kill(sh.process.pid, signal.SIGWINCH)
        sh.until(rb"ready\$ ")
        sh.type("until stty size | grep -q '40 120'; do sleep 0.05; done; echo re\"\"sized\r")
        sh.until(b"resized")
        sh.type("sh -c 'echo beg\"\"un; exec sleep 600'\r")
        sh.until(b"begun")
        sh.type("\x03")
        sh.until(rb"ready\$ ")
        sh.type("exit 6\r")
        sh.until(b"exit 6\r\n")
        assert sh.ended() == 6, sh.said
        assert termios.tcgetattr(sh.slave) == sh.before


@pytest.mark.parametrize("how", ["keys", "SIGTERM", "SIGHUP", "rm"])
def test_sh_puts_the_terminal_back_however_it_ends(daemon, home, how):
    name = fresh_name("ended")
    assert sbx(daemon, "sandbox", "create", name).returncode == 0
    try:
        with Started(daemon, "sh", "-s", name, *PLAIN, terminal=(80, 24)) as sh:
            sh.until(rb"ready\$ ")
            assert termios.tcgetattr(sh.slave) != sh.before
            if how == "keys":
                sh.type("\r~.")
                sh.until(b"left; the program ends")
            elif how == "rm":
                assert sbx(daemon, "sandbox", "rm", name).returncode == 0
            else:
                sh.process.send_signal(getattr(signal, how))
            assert sh.ended() > 0
            assert termios.tcgetattr(sh.slave) == sh.before
    finally:
        sbx(daemon, "sandbox", "rm", name)


def test_sh_keeps_a_program_and_goes_back_to_it(daemon, home):
    with Started(daemon, "sh", "-s", home, "--keep", *PLAIN, terminal=(80, 24)) as sh:
        sh.until(rb"ready\$ ")
        sh.type("kept=yes\r")
        sh.until(rb"ready\$ ")
        sh.type("\r~.")
        sh.until(b"left; the program goes on")
        sh.ended()
    described = json.loads(sbx(daemon, "ps", "-s", home, "--json").stdout)["processes"]
    pid = [p["pid"] for p in described if p["status"] == "running" and p["terminal"]][0]
    with Started(daemon, "sh", "-s", home, "--attach", str(pid), terminal=(80, 24)) as sh:
        sh.type("echo $kept-\"\"still; exit 4\r")
        sh.until(b"yes-still")
        assert sh.ended() == 4


def test_sh_wants_a_terminal(daemon, home):
    ran = sbx(daemon, "sh", "-s", home)
    assert ran.returncode == 2 and "sbx exec" in ran.stderr


# ---- live interpreters ----


def test_a_cell_runs_once_and_its_end_is_the_exit_status(daemon, home):
    ran = sbx(daemon, "python", "-s", home, "-c", "print('out'); 6 * 7")
    assert (ran.returncode, ran.stdout) == (0, "out\n42\n")
    ran = sbx(daemon, "python", "-s", home, "-c", "1 / 0")
    assert ran.returncode == 1 and "ZeroDivisionError" in ran.stderr
    ran = sbx(daemon, "node", "-s", home, stdin="const x = 20;\nx * 2 + 2\n")
    assert (ran.returncode, ran.stdout) == (0, "42\n")
    shown = [json.loads(line) for line in sbx(daemon, "python", "-s", home, "--json", "-c", "1").stdout.splitlines()]
    assert shown[0]["event"] == "started" and shown[-1]["data"]["status"] == "ok"


def contexts(daemon, name):
    return daemon.request("GET", f"/v1/sandboxes/{name}/contexts").json()["contexts"]


def test_a_conversation_keeps_its_state_has_a_history_and_is_interrupted(daemon, home):
    before = len(contexts(daemon, home))
    with Started(daemon, "python", "-s", home, terminal=(80, 24)) as repl:
        repl.until(b"python> ")
        repl.type("x = 20\r")
        repl.until(b"python> ")
        repl.type("def f(n):\r")
        repl.until(rb"\.\.\. ")
        repl.type("    return n * 2 +\x1b[D\x1b[C 2\r")
        repl.until(rb"\+ 2\S*\r?\n")
        repl.type("\r")
        repl.until(b"python> ")
        repl.type("f(y)\x1b[D\x7fx\r")
        repl.until(rb"\n42\r\n")
        repl.until(b"python> ")
        repl.type("\x1b[A\x05 + 100\r")
        repl.until(rb"\n142\r\n")
        repl.until(b"python> ")
        repl.type("import time; print('be' + 'gun'); time.sleep(600)\r")
        repl.until(b"begun")
        repl.type("\x03")
        repl.until(b"KeyboardInterrupt")
        repl.until(b"python> ")
        repl.type("x\r")
        repl.until(rb"\n20\r\n")
        repl.until(b"python> ")
        repl.type("\x04")
        assert repl.ended() == 0
        assert termios.tcgetattr(repl.slave) == repl.before
    assert len(contexts(daemon, home)) == before


# ---- ports ----


def test_a_port_leads_to_a_server_inside(daemon, home):
    program = """
import base64, hashlib, http.server
class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("Upgrade"):
            self.send_response(101)
            self.send_header("Upgrade", "echo")
            self.send_header("Connection", "Upgrade")
            self.end_headers()
            self.wfile.write(self.rfile.read(5).upper())
            self.close_connection = True
            return
        text = f"{self.path} {self.headers.get('Authorization')} {self.headers.get('Cookie')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        text = str(len(data)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8123), Page)
print("listening", flush=True)
server.serve_forever()
"""
    started = sbx(daemon, "exec", "-d", "-s", home, "python3", "-c", program).stdout.strip()
    try:
        harness.wait_until(lambda: "listening" in sbx(daemon, "logs", "-s", home, started).stdout, "it listens")
        with Started(daemon, "port", "-s", home, "0:8123") as port:
            url = re.search(rb"127\.0\.0\.1:(\d+) leads to port 8123", port.until(rb"leads to port 8123"))
            number = int(url.group(1))
            for _ in range(2):
                client = http.client.HTTPConnection("127.0.0.1", number, timeout=harness.HTTP_TIMEOUT)
                client.request("GET", "/a%20b?c=d", headers={"Authorization": "Basic own", "Cookie": "kept=1", "Sec-Fetch-Site": "none"})
                answer = client.getresponse()
                assert answer.read() == b"/a%20b?c=d Basic own kept=1" and answer.getheader("Content-Security-Policy") is None
            client = http.client.HTTPConnection("127.0.0.1", number, timeout=harness.HTTP_TIMEOUT)
            client.request("POST", "/", body=b"x" * 3_000_000)
            assert client.getresponse().read() == b"3000000"
            with socket.create_connection(("127.0.0.1", number), harness.HTTP_TIMEOUT) as raw:
                raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello")
                got = b""
                while not got.endswith(b"HELLO"):
                    part = raw.recv(4096)
                    assert part, got
                    got += part
            with socket.create_connection(("127.0.0.1", number), harness.HTTP_TIMEOUT) as raw:
                raw.sendall(b"nonsense\r\n\r\n")
                assert raw.recv(4096).startswith(b"HTTP/1.1 400 ")
            port.process.send_signal(signal.SIGINT)
            assert port.ended() == 130
    finally:
        sbx(daemon, "kill", "-s", home, started)
    ran = sbx(daemon, "port", "-s", "no-such-sandbox", "8123")
    assert ran.returncode == 125 and "no-such-sandbox" in ran.stderr


# ---- looking on ----


def test_top_shows_sandboxes_once_or_live(daemon, home):
    ran = sbx(daemon, "top")
    assert ran.returncode == 0 and re.search(rf"^{home} +running ", ran.stdout, re.M) and "\033" not in ran.stdout
    assert home in {s["name"] for s in json.loads(sbx(daemon, "top", "--json").stdout)["sandboxes"]}
    with Started(daemon, "top", "-n", "1", terminal=(100, 30)) as top:
        top.until(b"\033\\[\\?1049h")
        top.until(home.encode())
        top.until(home.encode() + rb" +running +\d+%")
        top.type("q")
        top.until(b"\033\\[\\?1049l")
        assert top.ended() == 0
        assert termios.tcgetattr(top.slave) == top.before


def test_bench_measures_each_kind(daemon):
    rows = json.loads(sbx(daemon, "bench", "-n", "2", "--json").stdout)
    assert [row["name"] for row in rows] == ["Python handler", "JavaScript handler", "shell script"]
    assert all(0 < row["median_ms"] <= row["p90_ms"] for row in rows)
    assert "FRESH SANDBOX" in sbx(daemon, "bench", "-n", "1").stdout


# ---- what is made from the table ----


def made(kind):
    file = harness.BUILD / {"man": "sbx.1", "bash": "sbx.bash", "zsh": "_sbx", "fish": "sbx.fish"}[kind]
    return file.read_text()


def commands():
    said = subprocess.run([harness.BUILD / "sbx", "--help"], capture_output=True, text=True, check=True).stdout
    return [row[2:17].strip() for row in said.splitlines() if row.startswith("  ")]


@pytest.mark.parametrize("kind", ["man", "bash", "zsh", "fish"])
def test_every_command_and_option_is_in_what_is_made(kind):
    text = made(kind).replace("\\-", "-")
    for name in commands():
        said = subprocess.run([harness.BUILD / "sbx", *name.split(), "--help"], capture_output=True, text=True, check=True)
        assert said.stdout.startswith(f"usage: sbx {name} ")
        for word in name.split():
            assert word in text
        for option in re.findall(r"^  (?:-\w,|   ) --([\w-]+)", said.stdout, re.M):
            if kind != "man" or option != "help":
                assert option in text, (name, option)


def test_the_man_page_has_no_warnings():
    harness.need(os.path.exists("/usr/bin/man"), "man")
    looked = subprocess.run(["man", "--warnings", "-l", harness.BUILD / "sbx.1"], capture_output=True, text=True, check=False,
                            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
    assert (looked.returncode, looked.stderr) == (0, "")
    assert "sbx sandbox create" in looked.stdout


@pytest.mark.parametrize("kind, program", [("man", ["mandoc", "-Tlint", "-Wstyle"]), ("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]),
                                           ("fish", ["fish", "--no-execute"])])
def test_what_is_made_is_well_formed(kind, program, tmp_path):
    harness.need(shutil.which(program[0]), program[0])
    file = tmp_path / "made"
    file.write_text(made(kind))
    looked = subprocess.run([*program, file], capture_output=True, text=True, check=False,
                            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    said = [line for line in (looked.stdout + looked.stderr).splitlines() if "missing date" not in line]  # a build has none
    assert not said and (looked.returncode == 0 or kind == "man")


def complete(daemon, *words):
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sbx; printf "%s\\n" "${COMPREPLY[@]}"')
    path = f"{harness.BUILD}:{os.environ['PATH']}"
    said = subprocess.run(["bash", "-c", script, "-", harness.BUILD / "sbx.bash", *words], capture_output=True, text=True,
                          env=environment(daemon, PATH=path), check=True)
    assert said.stderr == ""
    return said.stdout.split()


def test_bash_completes(daemon, home):
    assert complete(daemon, "sbx", "sa") == ["sandbox"]
    assert complete(daemon, "sbx", "sandbox", "p") == ["pause"]
    assert complete(daemon, "sbx", "sandbox", "create", "--mem") == ["--memory"]
    assert home in complete(daemon, "sbx", "sandbox", "rm", "")
    assert complete(daemon, "sbx", "ps", "--sandbox", home[:-1]) == [home]
