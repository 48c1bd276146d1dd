# SPDX-License-Identifier: MIT
"""Sixteen programs at a time that take what they can get, of every kind there is, and what others notice of them."""
import multiprocessing
import threading
import time

import harness

TIMEOUT = 5  # of a bomb
# Names that matchers of patterns take long for: the caller's rules are judged against every file.
NAMES = ("import os\ndef f():\n  d = '/'.join(['.' * 240] * 3)\n  os.makedirs(d)\n  os.chdir(d)\n"
         "  for i in range(9000): open(f'{i}' + '.' * 200, 'w').close()\n")
PATTERNS = {"permissions": {"default": {"create": True}, "rules": [{"pattern": "**/*.@(php|phtml|phar)", "deny": ["create"]}] * 20}}
BOMBS = {
    "forks": ("shell", "bomb() { bomb | bomb & }; bomb; sleep 600"),
    "patterns": ("call", NAMES),
    "threads": ("python", "import threading, time\ndef handler(e):\n  while True:\n    try: threading.Thread("
                "target=time.sleep, args=(600,)).start()\n    except RuntimeError: pass"),
    "children of Node.js": ("javascript", "exports.handler = () => new Promise(() => setInterval(() => { try { "
                            "require('child_process').spawn('sleep', ['600']).on('error', () => {}) } catch {} }, 1))"),
    "memory": ("python", "def handler(e):\n  a = []\n  while True: a.append(bytearray(1 << 20))"),
    "memory of Node.js": ("javascript", "exports.handler = () => { const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1)) }"),
    "shared memory": ("shell", "cat /dev/zero >/dev/shm/x; sleep 600"),
    "disk": ("shell", "while :; do cat /dev/zero >x; done"),
    "files": ("python", "import itertools\ndef handler(e):\n  for i in itertools.count():\n    try: open(f'f{i}', 'w').close()\n"
              "    except OSError: pass"),
    "directories": ("python", "import os\ndef handler(e):\n  while True:\n    try: os.mkdir('d'); os.chdir('d')\n    except OSError: pass"),
    "output": ("shell", "exec yes"),
    "errors": ("shell", "exec yes >&2"),
    "processors": ("shell", "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait"),
    "descriptors": ("python", "import os\ndef handler(e):\n  while True:\n    try: os.pipe()\n    except OSError: pass"),
    "signals": ("shell", "trap '' TERM; while :; do kill -TERM -1 2>/dev/null; done"),
    "sockets": ("python", "import socket\ndef handler(e):\n  a = []\n  while True:\n    try: a.append(socket.socketpair()); "
                "a[-1][0].send(b'x' * 65536, 64)\n    except OSError: pass"),
}


def request_of(name):
    """(path, body) of a bomb."""
    kind, code = BOMBS[name]
    if kind == "call":
        return "/v1/functions/call", {"language": "python", "code": code, "functionName": "f", "timeout": TIMEOUT, "options": PATTERNS}
    return "/execute", {"code": code, "language": kind, "timeout": TIMEOUT}


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def keep_bombing(daemon, name, end, counts):
    path, body = request_of(name)
    while time.monotonic() < end:
        counts.append((name, daemon.request("POST", path, json=body, timeout=120).status))


def bomb_all(daemon, end, queue):
    """In a process of its own: what it costs to throw them is not to be measured."""
    counts = []
    threads = [threading.Thread(target=keep_bombing, args=(daemon, name, end, counts)) for name in BOMBS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.put(counts)


def be_another_tenant(daemon, end, queue):
    done, wrong = 0, []
    while time.monotonic() < end:
        token = f"token-{done}"
        response = daemon.request("POST", "/execute", json={"code": f"echo {token}", "language": "shell", "timeout": 60},
                                  timeout=120)
        if response.status != 200 or response.json()["stdout"] != token + "\n":
            wrong.append(repr(response)[:300])
        done += 1
        time.sleep(0.05)
    queue.put((done, wrong))


def ask_health(daemon, end):
    """Milliseconds of each /health, and how many failed."""
    took, bad = [], 0
    with daemon.connect(120) as connection:
        while time.monotonic() < end:
            before = time.monotonic()
            bad += connection.request("GET", "/health").status != 200
            took.append((time.monotonic() - before) * 1000)
            time.sleep(0.01)
    return took, bad


def measure(seconds, quiet_seconds=3):
    """What /health takes without and with bombs (ms), what was thrown, and how another tenant fared."""
    daemon = harness.start_daemon(MAX_CONCURRENT_EXECUTIONS=24)
    quiet, _ = ask_health(daemon, time.monotonic() + quiet_seconds)
    end = time.monotonic() + seconds
    thrown, answers = multiprocessing.Queue(), multiprocessing.Queue()
    others = [multiprocessing.Process(target=bomb_all, args=(daemon, end, thrown)),
              multiprocessing.Process(target=be_another_tenant, args=(daemon, end, answers))]
    for other in others:
        harness.live.add(other.start() or other.pid)
    took, bad = ask_health(daemon, end)
    counts, (done, wrong) = thrown.get(timeout=300), answers.get(timeout=300)
    for other in others:
        other.join()
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "all bombs are defused", timeout=120)
    turn = daemon.metric("sandbox_loop_turn_longest_seconds")
    daemon.stop()
    return {"quiet": quiet, "took": took, "bad": bad, "counts": counts, "done": done, "wrong": wrong, "longest_turn_ms": turn * 1000}
