# SPDX-License-Identifier: MIT
"""Every limit: it holds, it is named, and what came before it is kept."""
import concurrent.futures
import json
import select
import socket
import statistics
import struct
import textwrap
import time

import pytest

import harness

OUTPUT_MAX = 64 * 1024
RESULT_MAX = 4096
PIDS_MAX = 40
MEMORY_MB = 96


@pytest.fixture(scope="module")
def small(make_daemon_module):
    """A daemon with limits that are quick to reach."""
    return make_daemon_module(OUTPUT_MAX=OUTPUT_MAX, RESULT_MAX=RESULT_MAX, PIDS_MAX=PIDS_MAX,
                              MAX_MEMORY_MB=MEMORY_MB, WORKSPACE_MB=8, WORKSPACE_FILES=64, TMP_MB=4,
                              OPEN_FILES_MAX=64)


# ---- wall time: all of them at once, because each takes its second ----

TIMED = {
    "shell": ("shell", "echo partial; echo err >&2; {mark}; echo never"),
    "background": ("shell", "echo partial; echo err >&2; {mark} & {mark} & wait"),
    "daemonised": ("shell", "echo partial; echo err >&2; (setsid bash -c '{mark}' <&- >&- 2>&- &); {mark}"),
    "deaf": ("shell", "trap '' TERM INT HUP QUIT; echo partial; echo err >&2; {mark}; {mark}"),
    "python": ("python", """
        import subprocess, sys
        print('partial', flush=True)
        print('err', file=sys.stderr, flush=True)
        def handler(event):
            subprocess.run(['bash', '-c', '''{mark}'''])
        """),
    "python-busy": ("python", """
        import signal, subprocess, sys, threading
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        print('partial', flush=True)
        print('err', file=sys.stderr, flush=True)
        subprocess.Popen(['bash', '-c', '''{mark}'''])
        def handler(event):
            while True: pass
        """),
    "javascript": ("javascript", """
        require('child_process').spawn('bash', ['-c', `{mark}`], {{ detached: true }})
        console.log('partial'); console.error('err')
        exports.handler = () => {{ for (;;); }}
        """),
}


@pytest.fixture(scope="module")
def timed(daemon):
    """name -> (marker, result, processes alive when the answer came, limit)."""
    def one(item):
        name, (language, code) = item
        mark = harness.marker()
        code = textwrap.dedent(code).format(mark=harness.spawn_marked(mark))
        for limit in (2 if language == "javascript" else 1, 5, 25):
            result = daemon.execute(code, language, timeout=limit)
            alive = harness.traces_of(mark)
            if result["stdout"]:  # on a busy machine it may have come too late to begin
                break
        return name, (mark, result, alive, limit)
    with concurrent.futures.ThreadPoolExecutor(len(TIMED)) as pool:
        return dict(pool.map(one, TIMED.items()))


@pytest.mark.parametrize("name", TIMED)
def test_timeout_is_reported(timed, name):
    _, result, _, limit = timed[name]
    assert (result["status"], result["exit_code"], result["return_value"]) == ("timeout", -1, None)
    assert f"Execution timeout after {limit} seconds" in result["stderr"].splitlines()
    assert result["termination"]["reason"] == "timeout"
    assert (result["termination"]["limit"], result["termination"]["limit_value"]) == ("wall_time_ms", limit * 1000)
    assert result["execution_time"] > limit - 0.1


@pytest.mark.parametrize("name", TIMED)
def test_timeout_keeps_partial_output(timed, name):
    _, result, _, _ = timed[name]
    assert result["stdout"] == "partial\n"
    assert result["stderr"].startswith("err\n")


@pytest.mark.parametrize("name", TIMED)
def test_timeout_leaves_nothing_alive(timed, name):
    mark, _, alive, _ = timed[name]
    assert alive == [], "alive when the answer came"
    assert harness.traces_of(mark) == []


def test_timeout_message_begins_a_line_of_its_own(daemon):
    result = daemon.execute("printf 'no newline' >&2; sleep 600", "shell", timeout=1)
    assert result["stderr"] == "no newline\nExecution timeout after 1 seconds\n"


def test_timeout_has_metrics(timed):
    for _, result, _, _ in timed.values():
        assert result["metrics"]["duration_ms"] > 900
    assert timed["python-busy"][1]["metrics"]["cpu_time_ms"] > 10


def test_default_timeout_can_be_configured(make_daemon):
    daemon = make_daemon(DEFAULT_TIMEOUT=1, MAX_EXECUTION_TIME=5)
    assert daemon.execute("sleep 600", "shell")["status"] == "timeout"
    assert daemon.request("POST", "/execute", json={"code": "", "language": "shell", "timeout": 6}).status == 400


def test_cpu_time_limit_is_apart_from_wall_time(make_daemon):
    daemon = make_daemon(CPU_TIME_MAX=1)
    busy = "def handler(event):\n    while True: pass\n"
    result = daemon.execute(busy, timeout=60)
    assert (result["status"], result["termination"]["reason"]) == ("error", "cpu")
    assert "CPU" in result["stderr"]
    assert daemon.execute("sleep 1.1", "shell")["status"] == "success"


# ---- everything is dead when the result is delivered ----


@pytest.mark.parametrize("language, code", [
    ("shell", "{mark} & {mark} & disown; echo done"),
    ("shell", "(setsid bash -c '{mark}' >/dev/null 2>&1 < /dev/null &); echo done"),
    ("python", "import subprocess\nprint('done')\ndef handler(e):\n"
               "    subprocess.Popen(['bash', '-c', '''{mark}'''], start_new_session=True)\n    return 1"),
    ("javascript", "const {{ spawn }} = require('child_process'); console.log('done');"
                   "spawn('bash', ['-c', `{mark}`], {{detached: true, stdio: 'ignore'}}).unref()"),
])
def test_what_a_program_leaves_behind_is_dead_with_the_result(daemon, language, code):
    mark = harness.marker()
    result = daemon.execute(code.format(mark=harness.spawn_marked(mark)), language, timeout=harness.PATIENCE)
    assert harness.traces_of(mark) == []
    assert (result["status"], result["stdout"]) == ("success", "done\n")
    assert result["execution_time"] < 15, "a child that holds stdout does not delay the result"


# ---- output ----


def test_output_is_cut_and_flagged_and_the_value_survives(small):
    code = "import sys\nprint('x' * 1000000)\nprint('y' * 1000000, file=sys.stderr)\ndef handler(e): return 'kept'"
    result = small.execute(code)
    assert (result["status"], result["return_value"]) == ("success", "kept")
    assert result["stdout"] == "x" * OUTPUT_MAX
    assert result["stderr"].startswith("y" * OUTPUT_MAX)
    assert result["stdout_truncated"] is True and result["stderr_truncated"] is True


def test_output_is_cut_between_characters(small):
    result = small.execute("print('a' + '漢' * 100000, end='')\ndef handler(e): return 1")
    assert result["stdout"] == "a" + "漢" * ((OUTPUT_MAX - 1) // 3)


def test_output_of_exactly_the_limit_is_not_flagged(small):
    result = small.execute(f"head -c {OUTPUT_MAX} /dev/zero | tr '\\0' x", "shell")
    assert len(result["stdout"]) == OUTPUT_MAX
    assert "stdout_truncated" not in result and "stderr_truncated" not in result


def test_default_output_limit_is_ten_mebibytes(daemon):
    result = daemon.execute("yes | head -c 11000000", "shell")
    assert result["status"] == "success"
    assert len(result["stdout"]) == 10 << 20 and result["stdout_truncated"] is True


def test_endless_output_ends_with_the_time_limit(small):
    result = small.execute("exec yes", "shell", timeout=1)
    assert result["status"] in ("timeout", "error")
    assert len(result["stdout"]) == OUTPUT_MAX


# ---- result ----


def test_value_of_the_limit_passes_and_one_byte_more_does_not(small):
    code = "def handler(e): return 'v' * e['n']"
    assert small.returned(code, event={"n": RESULT_MAX - 2}) == "v" * (RESULT_MAX - 2)
    result = small.execute(code, event={"n": RESULT_MAX - 1})
    assert result["status"] in ("failed", "error") and result["return_value"] is None
    assert "returned value" in result["stderr"] and str(RESULT_MAX) in result["stderr"]


def test_default_result_limit(daemon):
    code = "def handler(e): return 'v' * e['n']"
    assert len(daemon.returned(code, event={"n": (4 << 20) - 2})) == (4 << 20) - 2
    assert daemon.execute(code, event={"n": 4 << 20})["status"] in ("failed", "error")


def test_forged_frames_are_an_error_of_the_run_only(daemon):
    """The descriptor of the result belongs to the program; what it writes there is judged."""
    for junk in ("b'Z' * 5000", "b'Rffffffff'", "b'R00000003NaN'", "b'R00000001{'", "b'R0000000g'", "b''"):
        code = f"import os\ndef handler(e):\n    os.write(3, {junk})\n    os._exit(0)"
        result = daemon.execute(code)
        assert result["status"] in ("success", "failed", "error")
        assert result["return_value"] is None
    assert daemon.printed("echo ok") == "ok\n"


# ---- memory ----


@pytest.mark.parametrize("language, code", [
    ("python", "def handler(e):\n    a = []\n    while True: a.append(bytearray(1 << 20))"),
    ("python", "import subprocess\ndef handler(e):\n"
               "    subprocess.run(['python3', '-c', 'a=[]\\nwhile True: a.append(bytearray(1 << 20))'], check=True)"),
    ("shell", "head -c 400m /dev/zero | tail"),
])
def test_out_of_memory_is_named(small, language, code):
    harness.need(harness.FULL, "memory limits need control groups")
    result = small.execute(code, language, timeout=harness.PATIENCE)
    assert (result["status"], result["return_value"]) == ("error", None)
    assert result["termination"]["reason"] == "oom"
    assert result["termination"]["limit"] == "memory_bytes"
    assert result["termination"]["limit_value"] == MEMORY_MB << 20
    assert "memory" in result["stderr"].lower() and str(MEMORY_MB) in result["stderr"]
    assert result["metrics"]["peak_memory_mb"] > MEMORY_MB / 2


def test_the_loss_of_a_child_is_told_even_if_the_program_copes(small):
    """A result made with a part of the program killed is not to be taken for a good one."""
    harness.need(harness.FULL, "memory limits need control groups")
    code = ("import subprocess\ndef handler(e):\n    hog = 'a=[]\\nwhile True: a.append(bytearray(1 << 20))'\n"
            "    subprocess.run(['python3', '-c', hog])\n    return 'fine'")
    result = small.execute(code, timeout=harness.PATIENCE)
    assert (result["status"], result["termination"]["reason"]) == ("error", "oom")


def test_files_count_as_memory(make_daemon):
    harness.need(harness.FULL, "memory limits need control groups")
    daemon = make_daemon(MAX_MEMORY_MB=32, WORKSPACE_MB=256)
    result = daemon.execute("head -c 200m /dev/zero > big; ls -l big", "shell", timeout=harness.PATIENCE)
    assert result["status"] == "error" and result["termination"]["reason"] == "oom"


def test_the_next_run_after_an_oom_kill_is_clean(small):
    harness.need(harness.FULL, "memory limits need control groups")
    hog = "def handler(e):\n    a = []\n    while True: a.append(bytearray(1 << 20))"
    for _ in range(2):
        assert small.execute(hog, timeout=harness.PATIENCE)["termination"]["reason"] == "oom"
        fine = small.execute("def handler(e): return len(bytearray(30 << 20))")
        assert (fine["status"], fine["termination"]["reason"]) == ("success", "exit")


def test_a_tenant_cannot_shield_itself_from_the_oom_killer(daemon):
    code = textwrap.dedent("""
        import os
        def handler(e):
            fd = os.open('/proc/self/oom_score_adj', os.O_RDWR)
            before = int(os.read(fd, 16))
            try: os.write(fd, b'-1000')
            except OSError: return before > 0
            return 'shielded'
        """)
    assert daemon.returned(code) is True


# ---- processes, descriptors ----


@pytest.mark.parametrize("language, code", [
    ("python", "import os, time\ndef handler(e):\n    for _ in range(500):\n"
               "        if os.fork() == 0: time.sleep(600)"),
    ("python", "import threading, time\ndef handler(e):\n    for _ in range(500):\n"
               "        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"),
])
def test_too_many_processes_are_named(small, language, code):
    harness.need(harness.FULL, "the limit on processes needs control groups")
    result = small.execute(code, language, timeout=harness.PATIENCE)
    assert result["status"] == "error", result
    assert result["termination"]["reason"] == "pids"
    assert (result["termination"]["limit"], result["termination"]["limit_value"]) == ("pids", PIDS_MAX)
    assert str(PIDS_MAX) in result["stderr"] and "process" in result["stderr"].lower()


def test_too_many_processes_are_named_however_early(small):
    """Also when the daemon has not heard yet where the program runs."""
    harness.need(harness.FULL, "the limit on processes needs control groups")
    code = "import os, time\ndef handler(e):\n    while os.fork(): pass\n    time.sleep(600)"
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: small.execute(code, timeout=harness.PATIENCE)["termination"]["reason"], range(80)))
    assert set(ends) == {"pids"}, ends


def test_the_number_of_processes_is_bounded(small):
    code = textwrap.dedent("""
        import os, time
        def handler(e):
            n = 0
            try:
                for _ in range(1000):
                    if os.fork() == 0:
                        time.sleep(600)
                        os._exit(0)
                    n += 1
            except OSError as problem:
                pass
            print(n)
            return n
        """)
    result = small.execute(code)
    assert PIDS_MAX // 2 < int(result["stdout"]) < PIDS_MAX


def test_open_files_are_bounded(small):
    code = ("def handler(e):\n    held = []\n    try:\n        while True: held.append(open('/dev/null'))\n"
            "    except OSError as problem: return [problem.errno, len(held)]")
    number, held = small.returned(code)
    assert number == 24 and 40 < held < 64


# ---- disk ----


@pytest.mark.parametrize("directory, limit_mb", [("/workspace", 8), ("/tmp", 4), ("/dev/shm", 4)])
def test_a_full_disk_is_an_ordinary_error(small, directory, limit_mb):
    code = textwrap.dedent(f"""
        def handler(e):
            written = 0
            try:
                with open('{directory}/big', 'wb', buffering=0) as f:
                    while written < 64 << 20:
                        written += f.write(bytes(65536))
            except OSError as problem:
                return [problem.errno, written >> 20]
            return ['no limit', written >> 20]
        """)
    number, written = small.returned(code)
    assert number == 28, "ENOSPC"
    assert limit_mb - 1 <= written <= limit_mb


def test_a_full_disk_uncaught_fails_the_run(small):
    result = small.execute("def handler(e): open('big', 'wb').write(bytes(32 << 20))")
    assert result["status"] in ("failed", "error") and "No space left" in result["stderr"]


def test_the_number_of_files_is_bounded(small):
    code = textwrap.dedent("""
        def handler(e):
            try:
                for i in range(1000): open(f'f{i}', 'w').close()
            except OSError as problem:
                return [problem.errno, i]
        """)
    number, made = small.returned(code)
    assert number == 28 and 32 < made <= 64


def test_nothing_but_the_workspace_and_tmp_can_be_written(daemon):
    code = textwrap.dedent("""
        import os
        def handler(e):
            found = []
            for top in ('/', '/etc', '/usr', '/usr/bin', '/usr/lib', '/var', '/home', '/opt', '/srv', '/root', '/run',
                        '/proc', '/proc/sys/kernel', '/dev', '/bin', '/lib'):
                try:
                    with open(os.path.join(top, 'probe'), 'w') as f:
                        f.write('x')
                    found.append(top)
                except OSError:
                    pass
            return found
        """)
    assert daemon.returned(code) == []


def test_deep_directories_and_odd_names_are_survived(daemon):
    code = textwrap.dedent("""
        import os
        def handler(e):
            for _ in range(3000):
                os.mkdir('d'); os.chdir('d')
            open('bottom', 'w').close()
            return 1
        """)
    assert daemon.returned(code) == 1
    assert daemon.printed("echo ok") == "ok\n"


# ---- concurrency ----


def test_a_hundred_at_once_are_all_answered_correctly(daemon):
    def one(i):
        if i % 4 == 0:
            return daemon.returned("exports.handler = (e) => e.i * 2", "javascript", event={"i": i}, timeout=50)
        if i % 4 == 1:
            return int(daemon.printed("echo $((N * 2))", env_vars={"N": str(i)}, timeout=50))
        return daemon.returned("def handler(e):\n    open('f', 'x').close()\n    return e['i'] * 2", event={"i": i},
                               timeout=50)
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert list(pool.map(one, range(100))) == [i * 2 for i in range(100)]


def test_a_hundred_really_run_at_the_same_time(daemon):
    """In waves, because the second finds what the first has left."""
    for _ in range(3):
        mark = harness.marker()
        runs = [daemon.start(harness.spawn_marked(mark), "shell", timeout=60) for _ in range(100)]

        def all_run():
            early = select.select([run.http.sock for run in runs], [], [], 0)[0]
            assert not early, [run.receive() for run in runs if run.http.sock in early][0]
            return len(harness.processes_with(mark)) == 100
        harness.wait_until(all_run, "a hundred programs run", interval=0.05)
        assert daemon.health().json()["active_executions"] == 100
        for run in runs:
            run.close()
        harness.wait_until(lambda: not harness.traces_of(mark), "all were cancelled", interval=0.05)


def test_beyond_the_limit_runs_wait_and_beyond_the_queue_503(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=1)
    mark = harness.marker()
    first = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the first runs")
    second = daemon.start("echo second", "shell")
    harness.wait_until(lambda: queued(daemon) == 1, "the second waits")
    refused = daemon.request("POST", "/execute", json={"code": "true", "language": "shell"})
    assert refused.status == 503
    assert int(refused.headers["Retry-After"]) >= 0
    assert refused.json()["error_code"] == "Executor.QueueFull"
    first.close()
    body = second.receive().json()
    assert body["stdout"] == "second\n"
    assert max(body["timings"].values()) > 0
    second.close()


def queued(daemon):
    """How many wait, by the gauge in /metrics."""
    for line in daemon.request("GET", "/metrics").text.splitlines():
        name, _, value = line.rpartition(" ")
        if name == "sandbox_executions_queued":
            return float(value)
    raise AssertionError("no gauge of the queue")


def test_a_waiting_client_that_goes_away_gives_up_its_place(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, QUEUE_MAX=1)
    mark, never = harness.marker(), harness.marker()
    first = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the first runs")
    second = daemon.start(harness.spawn_marked(never), "shell")
    harness.wait_until(lambda: queued(daemon) == 1, "the second waits")
    second.close()
    harness.wait_until(lambda: queued(daemon) == 0, "its place is free")
    third = daemon.start("echo third", "shell")
    first.close()
    assert third.receive().json()["stdout"] == "third\n"
    assert harness.traces_of(never) == []
    third.close()


# ---- clients that vanish ----


@pytest.mark.parametrize("language, code", [
    ("shell", "{mark}"),
    ("python", "import subprocess\ndef handler(e): subprocess.run(['bash', '-c', '''{mark}'''])"),
    ("javascript", "require('child_process').spawnSync('bash', ['-c', `{mark}`])"),
])
def test_a_client_that_goes_away_cancels_its_run(daemon, language, code):
    mark, other = harness.marker(), harness.marker()
    bystander = daemon.start(harness.spawn_marked(other, 0.5) + "; echo fine", "shell")
    run = daemon.start(code.format(mark=harness.spawn_marked(mark)), language)
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    run.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")
    assert bystander.receive().json()["stdout"] == "fine\n", "nobody else is affected"
    bystander.close()


def test_a_client_that_resets_cancels_its_run(daemon):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    run.http.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    run.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "the program is dead")


# ---- a noisy sandbox and the rest of the world ----


def test_health_stays_quick_beside_bombs(daemon):
    mark = harness.marker()
    bombs = [
        ("shell", "bomb() { bomb | bomb & }; bomb; " + harness.spawn_marked(mark)),
        ("python", "def handler(e):\n    a = []\n    while True: a.append(bytearray(1 << 20))"),
        ("shell", "exec yes"),
    ]
    runs = [daemon.start(code, language, timeout=3) for language, code in bombs]
    harness.wait_until(lambda: harness.processes_with(mark), "the bombs run")
    took = []
    with daemon.connect() as connection:
        for _ in range(60):
            before = time.monotonic()
            assert connection.request("GET", "/health").status == 200
            took.append(time.monotonic() - before)
    for run in runs:
        run.close()
    assert statistics.median(took) < 0.05, sorted(took)
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "all bombs are defused")
    assert daemon.printed("echo ok") == "ok\n"


def test_fork_bomb_is_bounded(daemon):
    result = daemon.execute("bomb() { bomb | bomb & }; bomb; sleep 600", "shell", timeout=1)
    assert result["status"] in ("timeout", "error")
    assert result["termination"]["reason"] in ("timeout", "pids")
    assert json.dumps(result)
    assert daemon.printed("echo ok") == "ok\n"
