# SPDX-License-Identifier: MIT
"""The event loop: no input of a client or a program keeps it busy for long.

Each test throws one hostile input at the daemon and looks at the longest turn since then (loop_watch.py). Those of
live interpreters, processes, ports, E2B and MCP are in test_loop_doors.py.
"""
import io
import os
import tarfile
import tempfile

import pytest

import harness
from koyeb import Sandbox
from loop_watch import set_bar, watch

LONG_NAME = "." * 240
GLOB = "**/*.@(php|phtml|phar)"
EXTENSIONS = "**/*.{" + ",".join(f"ex{i}" for i in range(30)) + ",htaccess}"
USUAL = ["*.log", "node_modules", ".git", "dist", "*.pyc", "__pycache__", "*.tmp", "build"]


@pytest.fixture(scope="module")
def hostile(make_daemon_module):
    root = tempfile.mkdtemp(prefix="sbx-loop-")
    os.chmod(root, 0o777)
    daemon = make_daemon_module(MOUNT_ROOTS=root)
    daemon.root = root
    return set_bar(daemon)


def make_files(n, depth=3):
    """A program that leaves n files with names that matchers of patterns take long for."""
    return ("import os\ndef f():\n    d = '/data/' + '/'.join([" + repr(LONG_NAME) + "] * " + str(depth) + ")\n"
            "    os.makedirs(d)\n    os.chdir(d)\n"
            f"    for i in range({n}):\n        open(f'{{i}}' + '.' * 200, 'w').close()\n"
            "    open('x.phar', 'w').close()\n    open('x.htaccess', 'w').close()\n")


def call(daemon, body, **kw):
    return daemon.request("POST", "/v1/functions/call", json=body, timeout=300, **kw)


def host_dir(daemon):
    path = tempfile.mkdtemp(dir=daemon.root)
    os.chmod(path, 0o777)
    return path


def names_below(path):
    return [name for _, _, names in os.walk(path) for name in names]


@pytest.mark.parametrize("rules", [
    {"rules": [{"pattern": GLOB, "deny": ["create"]}] * 20},
    {"rules": [{"pattern": EXTENSIONS, "deny": ["create"]}] * 20},
    {"rules": [{"pattern": "**/+(*(.|..)|+(.)x)y", "deny": ["create"]}] * 20},
    {"exclude": USUAL},
], ids=["group", "braces", "nested", "exclude"])
def test_permissions_are_judged_beside_the_loop(hostile, rules):
    mount = {"dirs": {"/data": host_dir(hostile)}, "permissions": {"default": {"create": True}, **rules}}
    with watch(hostile):
        response = call(hostile, {"language": "python", "code": make_files(9000), "functionName": "f",
                                  "options": {"mount": mount, "timeout": 60}})
    assert response.json()["status"] == "success", response


def test_sync_decides_beside_the_loop(hostile):
    path = host_dir(hostile)
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True}},
             "sync": {"mode": "batch", "rules": [{"pattern": GLOB, "state": "skip"}] * 20 +
                      [{"pattern": "**", "state": "skip"}]}}
    with watch(hostile):
        response = call(hostile, {"language": "python", "code": make_files(9000), "functionName": "f",
                                  "options": {"mount": mount, "timeout": 60}})
    assert response.json()["status"] == "success"
    assert names_below(path) == []


def forbidden(daemon, path, rules, code, **options):
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True}, "rules": rules},
             "sync": {"mode": "batch"}}
    response = call(daemon, {"language": "python", "code": code, "functionName": "f",
                             "options": {"mount": mount, "timeout": 60, "reporting": {"includeDenied": True}, **options}})
    result = response.json()
    assert result["status"] == "success", result
    return {os.path.basename(row["path"]): row.get("reason") for row in result["files"]["denied"]}


@pytest.mark.parametrize("pattern, name, depth", [(EXTENSIONS, "x.htaccess", 14), (GLOB, "x.phar", 3)],
                         ids=["braces", "group"])
def test_names_do_not_help_a_forbidden_file(hostile, pattern, name, depth):
    path = host_dir(hostile)
    denied = forbidden(hostile, path, [{"pattern": pattern, "deny": ["create"]}], make_files(5, depth))
    assert denied == {name: None}
    assert name not in names_below(path) and len(names_below(path)) == 6


def test_what_takes_too_many_steps_is_denied_and_told(hostile):
    path = host_dir(hostile)
    rules = [{"pattern": "**/*([0-9])+(+(+(.)|..)|...)y", "deny": ["create"]}] * 50
    with watch(hostile):
        denied = forbidden(hostile, path, rules, make_files(9000))
    unjudged = [name for name, reason in denied.items() if reason == "the rules took too many steps"]
    assert unjudged and len(unjudged) == len(denied)
    assert not set(unjudged) & set(names_below(path))
    assert len(unjudged) + len(names_below(path)) == 9002


def test_patterns_that_are_too_large_are_refused(hostile):
    rules = [{"pattern": "{1..9999}", "deny": ["create"]}]
    response = call(hostile, {"language": "python", "code": "def f():\n    pass", "functionName": "f",
                              "options": {"permissions": {"rules": rules}}})
    assert response.json()["error"]["type"] == "ValueError"
    assert "pattern too large" in response.json()["error"]["message"]


OUTPUT = "import os\ndef handler(event):\n    for fd in (1, 2):\n        for i in range(10):\n            os.write(fd, {} * (1 << 20))\n"


@pytest.mark.parametrize("byte", ["b'\\xff'", "b'\\x01'", "b'\"'", "b'a'"], ids=["bad", "control", "quote", "text"])
def test_output(hostile, byte):
    with watch(hostile):
        assert hostile.execute(OUTPUT.format(byte))["status"] == "success"


def test_artifacts(hostile):
    code = ("def handler(event):\n    for i in range(9000):\n"
            "        open(f'{i:05}' + '\\x01' * 200, 'w').write('x')\n")
    with watch(hostile):
        assert hostile.execute(code)["status"] == "success"


@pytest.mark.parametrize("value", ["[[]] * 1000000", "['\\x01' * 1000] * 1500", "{str(i): i for i in range(300000)}"],
                         ids=["lists", "controls", "keys"])
def test_results(hostile, value):
    with watch(hostile):
        answer = hostile.request("POST", "/execute", json={"language": "python",
                                                           "code": f"def handler(event):\n    return {value}\n"})
    assert answer.status == 200, answer
    with watch(hostile):
        answer = call(hostile, {"language": "python", "code": f"def f():\n    return {value}\n", "functionName": "f"})
    assert answer.status == 200, answer


def test_events_and_arguments(hostile):
    code = "def handler(event):\n    return len(event)\n"
    with watch(hostile):
        assert hostile.execute(code, event={f"k{i}": i for i in range(200000)})["return_value"] == 200000
    many = {f"k{i}": i for i in range(1000000)}
    for code, given in (("def f(**k):\n    return len(k)\n", {"kwargs": many}),
                        ("def f(*a):\n    return len(a)\n", {"args": list(many.values())})):
        with watch(hostile):
            answer = call(hostile, {"language": "python", "code": code, "functionName": "f", **given})
        assert answer.json()["error"]["type"] == "TypeError", answer.body[:500]  # more than a call may have


def test_files_of_a_request(hostile):
    files = {f"/workspace/d{i % 100}/{i}": "x" for i in range(4000)}
    body = {"language": "python", "code": "def f():\n    return 1\n", "functionName": "f",
            "options": {"files": files, "permissions": {"exclude": USUAL}}}
    with watch(hostile):
        assert call(hostile, body).json()["status"] == "success"
    del body["options"]["permissions"]
    with watch(hostile):
        assert call(hostile, body).json()["status"] == "success"


def test_deleting_what_was_there(hostile):
    files = {f"/workspace/{i}": "x" * 100 for i in range(4000)}
    body = {"language": "python", "functionName": "f", "options": {"files": files},
            "code": "import os\ndef f():\n    for n in os.listdir('.'):\n        if n.isdigit():\n            os.remove(n)\n"}
    with watch(hostile):
        assert call(hostile, body).json()["status"] == "success"


def test_streamed_items(hostile):
    with watch(hostile):
        answer = call(hostile, {"language": "python", "code": "def f():\n    for i in range(100000):\n        yield '\\x01' * 100\n",
                                "functionName": "f", "timeout": 60}, headers={"Accept": "text/event-stream"})
    assert answer.body.count(b"\nevent: ") > 90000, answer


def test_changes_of_a_mount_are_rendered_and_written_back_beside_the_loop(hostile):
    path = host_dir(hostile)
    for i in range(3000):
        with open(f"{path}/{i}", "w", encoding="ascii") as f:
            f.write("old\n" * 400)
    mount = {"dirs": {"/data": path}, "permissions": {"default": {"create": True, "modify": True}}, "sync": {"mode": "batch"}}
    code = ("import os\ndef f():\n    for n in os.listdir('/data'):\n        open('/data/' + n, 'w').write('new\\x01' * 400)\n"
            "    for i in range(6000):\n        open(f'/data/new{i}', 'w').write('x')\n")
    with watch(hostile):
        response = call(hostile, {"language": "python", "code": code, "functionName": "f", "options": {
            "timeout": 60, "mount": mount, "reporting": {"includeChanges": True, "includeContents": True, "includeDenied": True}}})
    assert response.json()["status"] == "success", response
    assert len(names_below(path)) == 9000 and len(response.body) > 10_000_000


def test_a_session(hostile):
    body = {"language": "python", "code": "def f(n):\n    for i in range(n):\n        open(f'{i}' + '.' * 200, 'w').close()\n"
            "    return ['\\x01' * 100] * n\n", "options": {"permissions": {"default": {"create": True}, "rules": [
                {"pattern": GLOB, "deny": ["create"]}] * 20}, "reporting": {"includeChanges": True}}}
    ident = hostile.request("POST", "/v1/sessions", json=body, timeout=300).json()["id"]
    with watch(hostile):
        response = hostile.request("POST", f"/v1/sessions/{ident}/call", json={"functionName": "f", "args": [9000]},
                                   timeout=300)
    assert response.status == 200, response
    hostile.request("DELETE", f"/v1/sessions/{ident}")


def test_a_persistent_sandbox(hostile):
    box = Sandbox(hostile)
    with watch(hostile):
        box.run("mkdir -p many && cd many && python3 -c \"\nfor i in range(9000): open('%05d' % i + '\\\\1' * 200, 'w').close()\"")
        assert len(box.call("list_dir", path="many")["entries"]) == 9000
    with watch(hostile):
        box.run("head -c 30000000 /dev/zero | tr '\\\\0' '\\\\377' > bad")
        box.post("read_file", {"path": "bad"}, timeout=300)
    with watch(hostile):
        box.run("head -c 9000000 bad; head -c 9000000 bad >&2")
    with watch(hostile):
        box.post("write_file", {"path": "big", "content": "\x01" * 10000000}, timeout=300)
    with watch(hostile):
        ident = box.start("cat bad bad; seq 2000000; sleep 600")["id"]
        harness.wait_until(lambda: box.process(ident)["status"] == "running", "it runs")
        events = box.logs(ident)
        for count, _ in enumerate(events):
            if count > 1000:
                break
        box.call("kill_process", id=ident)


def test_a_directory_of_a_hundred_thousand_names(hostile):
    """144 MB of answer, sorted."""
    box = Sandbox(hostile)
    code = "for i in range(100000): open('%06d' % i + '\\1' * 240, 'w').close()"
    box.sh(f"mkdir crowd && cd crowd && python3 -c \"{code}\"")
    try:
        with watch(hostile):
            assert len(box.post("list_dir", {"path": "crowd"}, timeout=300).json()["entries"]) == 100000
    finally:
        box.post("delete_dir", {"path": "crowd"}, timeout=300)


def test_archives(hostile):
    """Of many entries, and of large files, in both directions."""
    box, data = Sandbox(hostile), io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for i in range(20000):
            entry = tarfile.TarInfo(f"d{i % 100}/{i}")
            entry.size = 10
            archive.addfile(entry, io.BytesIO(b"0123456789"))
    at = "/v1/sandboxes/default/files/workspace/packed?archive=tar"
    with watch(hostile):
        assert hostile.request("PUT", at, body=data.getvalue(), timeout=300).json()["entries"] == 20000
        assert len(hostile.request("GET", at, timeout=300).body) > 20000 * 1024
    box.sh("rm -r packed; mkdir packed; truncate -s 100M packed/sparse; head -c 50M /dev/urandom >packed/full")
    with watch(hostile):
        whole = hostile.request("GET", at, timeout=300)
        assert len(whole.body) > 150 << 20
        assert hostile.request("PUT", at, body=whole.body, timeout=300).json()["size"] == 150 << 20
    box.post("delete_dir", {"path": "packed"}, timeout=300)


def test_a_file_as_it_is(hostile):
    at = "/v1/sandboxes/default/files/workspace/whole"
    with watch(hostile):
        assert hostile.request("PUT", at, body=bytes(100 << 20), timeout=300).status == 200
        assert len(hostile.request("GET", at, timeout=300).body) == 100 << 20
    assert hostile.request("DELETE", at).status == 204


CELLS = {
    "output": "import sys\nfor i in range(9): sys.stdout.write('\\x01' * 1000000)\n'\\x01' * 5000000",
    "displays": "for i in range(20000): display({'text/plain': 'x' * 100}, raw=True)",
    "lines": "for i in range(200000): print(i)",
}


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("what", CELLS)
def test_a_cell(hostile, what, accept):
    with watch(hostile):
        answer = hostile.request("POST", "/v1/sandboxes/default/cells", json={"code": CELLS[what]},
                                 headers={"Accept": accept}, timeout=300)
    assert answer.status == 200 and len(answer.body) > 1_000_000, answer


def test_output_of_a_command(hostile):
    """Six bytes of answer for each of output: 360 MB, whose memory is given back while it is sent."""
    with watch(hostile):
        answer = Sandbox(hostile).post("run", {"cmd": "head -c 60000000 /dev/zero"}, timeout=300)
    assert answer.status == 200 and len(answer.body) > 360000000


def test_a_streamed_line(hostile):
    with watch(hostile):
        events = list(Sandbox(hostile).stream("run_streaming", {"cmd": "head -c 20000000 /dev/zero"}))
    assert sum(len(data["data"]) for event, data, _ in events if event == "output") == 20000000


def test_abandoned_work_does_not_delay_others(hostile):
    """Reading a large file takes seconds on a worker thread. Those whose clients have left are never begun."""
    box = Sandbox(hostile)
    box.sh("head -c 60000000 /dev/zero | tr '\\0' '\\377' > abandoned")
    before = hostile.metric("sandbox_work_dropped_total")
    clients = []
    try:
        for _ in range(24):
            clients.append(hostile.connect())
            clients[-1].send("POST", "/read_file", json={"path": "abandoned"})
        harness.wait_until(lambda: hostile.metric("sandbox_work_waiting") >= 12, "reads wait for a thread")
        # an execution that leaves a file needs a worker thread, too; nobody has left yet
        assert hostile.execute("def handler(event):\n    open('a', 'w').write('x')\n")["status"] == "success"
        assert hostile.metric("sandbox_work_waiting") > 0, "it was answered before the reads were worked off"
    finally:
        for client in clients:
            client.close()
    harness.wait_until(lambda: hostile.metric("sandbox_work_waiting") == 0, "the queue is empty")
    assert hostile.metric("sandbox_work_dropped_total") > before
