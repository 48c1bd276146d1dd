# SPDX-License-Identifier: MIT
"""A run on warmed interpreters leaves nothing for its successor, its siblings or its zygote, and nothing
of a tenant is read before the walls stand. (Files, sockets and IPC of a predecessor: test_isolation.py.)
"""
import textwrap

import pytest

import harness

ONE_PLACE = {"MAX_CONCURRENT_EXECUTIONS": 1, "POOL_EXEC": 1, "POOL_PYTHON": 1, "POOL_NODE": 1}
BIG = 96 << 20


def template_is(daemon, name, code, language):
    return daemon.execute(code, language)["isolation"]["template"] == name


@pytest.fixture(scope="module")
def one_place(make_daemon_module):
    """Whatever is used again is used by the very next run, and all of them are copies of a zygote."""
    daemon = make_daemon_module(**ONE_PLACE)
    harness.wait_until(lambda: template_is(daemon, "python", "def handler(e): return 1", "python"), "Python is warm", 60)
    harness.wait_until(lambda: template_is(daemon, "node", "exports.handler = () => 1", "javascript"), "Node is warm", 60)
    return daemon


# ---- what a process inherits ----

PYTHON_STATE = textwrap.dedent("""
    import builtins, gc, json, locale, os, random, resource, signal, sys, threading, time, decimal
    def handler(event):
        return {
            "descriptors": sorted(os.listdir("/proc/self/fd"))[:8],
            "signals": {n: str(signal.getsignal(n)) for n in (1, 2, 10, 13, 15, 17)},
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            "pending": sorted(signal.sigpending()),
            "timer": signal.getitimer(signal.ITIMER_REAL)[0],
            "umask": os.umask(0o22), "nice": os.nice(0), "cwd": os.getcwd(),
            "limits": [resource.getrlimit(n) for n in range(16)],
            "processors": sorted(os.sched_getaffinity(0)),
            "environment": {k: v for k, v in os.environ.items() if k != "EVENT_JSON"},
            "path": sys.path[:], "argv": sys.argv[:], "recursion": sys.getrecursionlimit(),
            "builtins": sorted(vars(builtins)), "modules": "planted" in sys.modules,
            "dumps": json.dumps.__module__, "print": print.__name__,
            "gc": [gc.isenabled(), gc.get_threshold()], "threads": threading.active_count(),
            "precision": decimal.getcontext().prec, "zone": time.tzname, "locale": locale.setlocale(locale.LC_ALL),
            "pid": os.getpid(), "session": os.getsid(0) == os.getpid(), "comm": open("/proc/self/comm").read(),
        }
    """)
PYTHON_SPOIL = textwrap.dedent("""
    import builtins, gc, json, locale, os, random, resource, signal, sys, threading, time, decimal
    def handler(event):
        kept = [os.dup(1) for _ in range(20)]
        for n in (1, 2, 10, 15, 17): signal.signal(n, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [10, 12]); signal.raise_signal(12)
        signal.setitimer(signal.ITIMER_REAL, 1000)
        os.umask(0o777); os.nice(5); os.chdir("/tmp")
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)); resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.environ["PLANTED"] = "1"; os.environ["TZ"] = "Asia/Tokyo"; time.tzset()
        sys.path.insert(0, "/tmp"); sys.argv.append("planted"); sys.setrecursionlimit(100)
        builtins.planted = 1; sys.modules["planted"] = sys; builtins.print = len
        json.dumps = lambda *a: "planted"; gc.disable(); gc.set_threshold(7); random.seed(1)
        decimal.getcontext().prec = 3; locale.setlocale(locale.LC_ALL, "C")
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        open("/proc/self/comm", "w").write("planted")
        return len(kept)
    """)
NODE_STATE = textwrap.dedent("""
    const fs = require('fs'), os = require('os');
    exports.handler = () => ({
        descriptors: fs.readdirSync('/proc/self/fd').length,
        cwd: process.cwd(), umask: process.umask(), argv: [...process.argv], title: process.title,
        environment: Object.fromEntries(Object.entries(process.env).filter(([k]) => k !== 'EVENT_JSON')),
        listeners: process.eventNames().filter((n) => typeof n === 'string').map((n) => [n, process.listenerCount(n)]).sort(),
        globals: Object.getOwnPropertyNames(globalThis).sort(), flags: process.execArgv,
        stringify: JSON.stringify.name, prototype: Object.keys(Object.prototype), priority: os.getPriority(),
        cached: Object.keys(require.cache).length, pid: process.pid, hook: typeof process.planted,
    });
    """)
NODE_SPOIL = textwrap.dedent("""
    const fs = require('fs'), os = require('os');
    exports.handler = () => {
        for (let i = 0; i < 20; i++) fs.openSync('/dev/null');
        process.chdir('/tmp'); process.argv.push('planted'); process.title = 'planted';
        process.env.PLANTED = '1'; process.env.TZ = 'Asia/Tokyo';
        process.on('SIGTERM', () => {}); process.on('exit', () => {}); process.planted = 1;
        globalThis.planted = 1; Object.prototype.planted = 1; os.setPriority(os.getPriority() + 5);
        const { stringify } = JSON; JSON.stringify = function planted(...a) { return stringify(...a); };
        fs.writeFileSync('/tmp/planted.js', 'module.exports = 1'); require('/tmp/planted.js'); process.umask(0o777);
        setTimeout(() => {}, 100000).unref();
        return 1;
    };
    """)
KINDS = {"python": (PYTHON_STATE, PYTHON_SPOIL), "javascript": (NODE_STATE, NODE_SPOIL)}


@pytest.mark.parametrize("language", KINDS)
def test_a_successor_begins_as_the_first_did(one_place, language):
    state, spoil = KINDS[language]
    first = one_place.returned(state, language)
    for _ in range(3):
        assert one_place.execute(spoil, language)["status"] == "success"
        assert one_place.returned(state, language) == first


@pytest.mark.parametrize("language", KINDS)
def test_spoiling_is_seen_by_the_spoiler(one_place, language):
    """Else the test above could not fail."""
    state, spoil = KINDS[language]
    both = {"python": state.replace("handler", "state") + spoil.replace("handler", "spoil")
            + "def handler(e):\n    a = state(e); spoil(e); return [a, state(e)]\n",
            "javascript": state.replace("exports.handler", "const state").replace("const fs = require('fs'), os = require('os');", "", 1)
            + spoil.replace("exports.handler", "const spoil")
            + "exports.handler = () => { const a = state(); spoil(); return [a, state()]; };"}[language]
    before, after = one_place.returned(both, language)
    same = {key for key in before if before[key] == after[key]}
    assert same <= {"pid", "session", "dumps", "pending", "locale", "zone", "flags", "cached"}, same


# ---- memory ----

FIND = textwrap.dedent("""
    def handler(event):
        wanted, found = bytes(event["mark"])[::-1], 0
        for line in open("/proc/self/maps"):
            begin, end = (int(n, 16) for n in line.split()[0].split("-"))
            if "r" not in line.split()[1] or "[v" in line: continue
            with open("/proc/self/mem", "rb", 0) as memory:
                memory.seek(begin)
                try: found += memory.read(end - begin).count(wanted)
                except OSError: pass
        return found
    """)
KEEP = textwrap.dedent("""
    def handler(event):
        global kept
        kept = [bytes(event["mark"])[::-1] * 4 for _ in range(20000)]
        return len(kept)
    """)


def test_memory_of_a_run_is_in_no_other(one_place):
    """The mark travels backwards, so that what is searched for is in no request."""
    event = {"mark": list(harness.marker().encode()[::-1])}
    assert one_place.returned(KEEP + FIND.replace("handler", "find")
                              + "keep = handler\ndef handler(e): return keep(e) and find(e)\n", event=event) > 1000
    assert one_place.returned(KEEP, event=event) == 20000
    for _ in range(2):
        assert one_place.returned(FIND, event=event) <= 2  # what it has just turned round itself


# ---- accounts ----


def test_a_run_pays_for_itself_alone(one_place):
    small = "def handler(e): return 1"
    greedy = f"def handler(e):\n    x = bytearray({BIG})\n    x[::4096] = b'x' * len(x[::4096])\n    return sum(i for i in range(10**6)) > 0"
    before = one_place.execute(small)["metrics"]
    spent = one_place.execute(greedy)["metrics"]
    after = one_place.execute(small)["metrics"]
    assert spent["peak_memory_mb"] > BIG >> 20
    assert after["peak_memory_mb"] < before["peak_memory_mb"] + 16
    assert after["cpu_time_ms"] < spent["cpu_time_ms"]


# ---- order ----


def status_of(pid):
    return dict(line.split(":\t", 1) for line in harness.read_proc(pid, "status").decode().splitlines() if ":\t" in line)


def waiting(daemon):
    """Processes that wait for a job: what init has below it."""
    inits = {p for p in daemon.tree() if harness.read_proc(p, "comm").strip() == b"sandbox-init"}
    found = [status_of(p) for p in daemon.tree()]
    return [s for s in found if s and int(s["PPid"]) in inits]


def test_a_prepared_sandbox_is_locked_before_there_is_a_job(one_place):
    """It waits for the first byte of its tenant with all of its walls up: Python, Node and commands."""
    names = {"python3", "node", "sandbox-init"}
    prepared = harness.wait_until(lambda: (lambda w: w if {s["Name"] for s in w} >= names else None)(waiting(one_place)),
                                  "one of each waits", 60)
    for s in prepared:
        assert s["Seccomp"] == "2" and int(s["Seccomp_filters"]) >= 2, s
        assert s["NoNewPrivs"] == "1", s
        assert {int(s[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}, s
        assert len(set(s["Uid"].split())) == 1 and s["Uid"].split()[0] != "0" and not s["Groups"].strip(), s
        assert len(s["NSpid"].split()) >= 3, s


@pytest.mark.parametrize("workdir", ["/opt/x", "/opt/sandbox-executor/bin", "/workspace/sub"])
def test_directories_of_its_own_hide_nothing_that_is_needed(one_place, workdir):
    """Pid 1 becomes a program that lives below /opt."""
    body = {"language": "python", "code": "import os\ndef f(): return os.getcwd()", "options": {"workdir": workdir}}
    for _ in range(2):
        result = one_place.request("POST", "/v1/functions/call", json=body).json()
        assert result.get("result") == workdir, result
