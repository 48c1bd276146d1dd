# SPDX-License-Identifier: MIT
"""/v1/sandboxes: more than the default sandbox, and their files as they are."""
import hashlib
import http.client
import os
import re
import secrets
import signal
import socket
import threading
import time
import urllib.parse

import harness
import pytest
from koyeb import Sandbox


def create(daemon, **body):
    r = daemon.request("POST", "/v1/sandboxes", json=body)
    assert r.status == 201, r
    return r.json()


@pytest.fixture
def made(daemon):
    """A sandbox of its own, as (description, verbs)."""
    info = create(daemon)
    yield info, Sandbox(daemon, "/v1/sandboxes/" + info["id"])
    daemon.request("DELETE", "/v1/sandboxes/" + info["id"])


def marked(mark):
    return f'bash -c "exec -a {mark} sleep 600"'


def test_create_list_inspect_delete(daemon):
    name = "n-" + secrets.token_hex(4)
    info = create(daemon, name=name, env={"A": "1", "SECRET": "x"}, limits={"memory_mb": 300, "pids": 64, "disk_mb": 20},
                  network={"mode": "none"}, timeout=3600)
    assert info["name"] == name and info["state"] == "running" and info["timeout"] == 3600
    assert info["limits"]["memory_mb"] == 300 and info["limits"]["pids"] == 64 and info["limits"]["disk_mb"] == 20
    assert info["env"] == ["A", "SECRET"] and info["network"] == {"mode": "none"}
    listed = daemon.request("GET", "/v1/sandboxes").json()["sandboxes"]
    assert info["id"] in [s["id"] for s in listed]
    box = Sandbox(daemon, f"/v1/sandboxes/{name}")
    assert box.sh("echo $A") == "1\n" and box.sh("echo $A", env={"A": "2"}) == "2\n"
    box.start("sleep 600")
    box.sh("head -c 3000000 /dev/zero > /workspace/f")
    seen = daemon.request("GET", f"/v1/sandboxes/{info['id']}").json()
    assert seen["processes"] == {"running": 1, "kept": 1}
    assert seen["usage"]["disk_bytes"] >= 3_000_000 and seen["usage"]["pids"] >= 3
    assert seen["usage"]["memory_bytes"] >= 3_000_000
    assert "/workspace" in seen["writable"] and "/etc" in seen["writable"]
    if harness.ROOT:
        assert seen["usage"]["cpu_ms"] >= 0 and "/usr" in seen["writable"]
    assert daemon.request("DELETE", f"/v1/sandboxes/{info['id']}").status == 204
    assert daemon.request("GET", f"/v1/sandboxes/{info['id']}").status == 404
    assert daemon.request("DELETE", f"/v1/sandboxes/{name}").status == 404


def test_two_sandboxes_see_nothing_of_each_other(daemon, made):
    info, box = made
    other = Sandbox(daemon, "/v1/sandboxes/" + create(daemon)["id"])
    mark = harness.marker()
    box.start(marked(mark))
    harness.wait_until(lambda: harness.processes_with(mark), "it runs")
    box.sh("echo mine > /workspace/mine; echo mine > /tmp/mine; echo mine > /usr/local/mine || true")
    assert other.sh("ls /workspace /tmp /dev/shm; cat /usr/local/mine || true; ps ax | grep -c [m]ark- || true"
                    ).splitlines()[-1] == "0"
    assert "mine" not in other.sh("ls /workspace /tmp /usr/local")
    assert daemon.request("DELETE", other.at).status == 204


def test_delete_ends_everything_and_leaves_the_host_clean(daemon):
    info = create(daemon)
    box = Sandbox(daemon, "/v1/sandboxes/" + info["id"])
    mark = harness.marker()
    box.start(marked(mark))
    box.sh(f"setsid {marked(mark)} >/dev/null 2>&1 &")
    harness.wait_until(lambda: len(harness.processes_with(mark)) == 2, "both run")
    waiting = box.stream("run_streaming", {"cmd": "echo up; sleep 600"})
    found = iter(waiting)
    assert next(found)[1]["data"] == "up"
    logs = box.logs(box.processes()[0]["id"])
    assert daemon.request("DELETE", box.at).status == 204
    harness.wait_until(lambda: not harness.processes_with(mark), "nothing is left")
    assert [e[0] for e in found] == ["complete"]
    assert [e[0] for e in logs] == ["complete"]
    assert daemon.request("POST", box.at + "/run", json={"cmd": "true"}).status == 404


def test_a_client_that_reads_slowly_does_not_hold_up_the_end(daemon):
    """What it has not read yet is kept for it; everything inside is dead, and the client that deletes it is told so."""
    info = create(daemon)
    box = Sandbox(daemon, "/v1/sandboxes/" + info["id"])
    pid = daemon.request("POST", box.at + "/processes", json={"command": "yes"}).json()["pid"]
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((daemon.host, daemon.port))
        slow.sendall(f"GET {box.at}/processes/{pid}/output HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.secret}\r\n\r\n".encode())

        def written():
            return daemon.request("GET", f"{box.at}/processes/{pid}").json()["output"]["bytes"]

        harness.wait_until(lambda: written() > 8 << 20, "it has been overtaken")
        stop = threading.Event()
        reading = threading.Thread(target=read_slowly, args=(slow, stop))
        reading.start()
        try:
            assert daemon.request("DELETE", box.at, timeout=40).status == 204
            assert reading.is_alive(), "it has not come to its end before"
        finally:
            stop.set()
            reading.join()
    assert daemon.printed("echo next") == "next\n"


def read_slowly(sock, stop):
    while not stop.wait(0.2) and sock.recv(16):
        pass


def test_the_default_sandbox_can_be_deleted_and_comes_back_fresh(make_daemon):
    daemon = make_daemon()
    assert daemon.request("GET", "/v1/sandboxes").json()["sandboxes"] == []
    box = Sandbox(daemon)
    box.sh("echo x > /workspace/x")
    assert [s["name"] for s in daemon.request("GET", "/v1/sandboxes").json()["sandboxes"]] == ["default"]
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204
    assert daemon.request("DELETE", "/v1/sandboxes/default").status == 204
    assert box.sh("ls /workspace") == ""


def test_one_that_is_still_being_made_can_be_deleted(make_daemon):
    """Whoever makes it is held until the launcher was told to kill what it does not know of yet."""
    daemon = make_daemon(POOL_EXEC="0", POOL_PYTHON="0", POOL_NODE="0")
    keepers = [p for p in daemon.tree() if harness.read_proc(p, "comm") == b"sandbox-keeper\n"]
    harness.need(keepers, "keepers")
    with daemon.connect() as running, daemon.connect() as deleting:
        for keeper in keepers:
            os.kill(keeper, signal.SIGSTOP)
        try:
            running.send("POST", "/run", json={"cmd": "sleep 600"})
            harness.wait_until(lambda: daemon.request("GET", "/v1/sandboxes").json()["sandboxes"], "it is known")
            deleting.send("DELETE", "/v1/sandboxes/default")
            harness.wait_until(lambda: not daemon.request("GET", "/v1/sandboxes").json()["sandboxes"], "it is being deleted")
        finally:
            for keeper in keepers:
                os.kill(keeper, signal.SIGCONT)
        assert deleting.receive().status == 204
        running.receive()  # whatever became of it


def test_the_usage_of_one_that_was_just_made_is_known(make_daemon):
    """Its helper answers before the launcher has told the daemon which control groups it is in."""
    daemon = make_daemon(POOL_EXEC="0", POOL_PYTHON="0", POOL_NODE="0")
    keepers = [p for p in daemon.tree() if harness.read_proc(p, "comm") == b"sandbox-keeper\n"]
    harness.need(keepers and harness.FULL, "keepers and control groups")
    answers = []
    waits = lambda: int(re.search(rb"\nvoluntary_ctxt_switches:\s*(\d+)", harness.read_proc(daemon.launcher(), "status")).group(1))
    for keeper in keepers:
        os.kill(keeper, signal.SIGSTOP)
    try:
        before = waits()
        create(daemon, name="young")
        harness.wait_until(lambda: waits() > before, "the launcher has handed it over and waits again")
        os.kill(daemon.launcher(), signal.SIGSTOP)
        asking = threading.Thread(target=lambda: answers.append(daemon.request("GET", "/v1/sandboxes/young").json()))
        asking.start()
        for keeper in keepers:
            os.kill(keeper, signal.SIGCONT)
        harness.wait_until(lambda: any(harness.read_proc(p, "comm") == b"sandbox-helper\n" for p in daemon.tree()), "a helper")
        asking.join(0.3)
    finally:
        for pid in (daemon.launcher(), *keepers):
            os.kill(pid, signal.SIGCONT)
    asking.join()
    assert None not in answers[0]["usage"].values(), answers


def test_a_sandbox_that_dies_is_made_anew(make_daemon):
    daemon = make_daemon()
    box = Sandbox(daemon)
    box.start("sleep 600")
    inits = [p for p in daemon.tree() if harness.read_proc(p, "comm") == b"sandbox-init\n"
             and b"sandbox-helper\n" in [harness.read_proc(c, "comm") for c in harness.descendants(p)]]
    assert len(inits) == 1
    os.kill(inits[0], signal.SIGKILL)
    daemon.wait_record(event_type="sandbox_ended")
    assert box.sh("echo again") == "again\n"


def test_idle_ones_are_deleted_busy_ones_are_not(daemon):
    busy = create(daemon, timeout=2)
    Sandbox(daemon, "/v1/sandboxes/" + busy["id"]).start("sleep 600")
    idle = create(daemon, timeout=2)  # its time is up after that of the busy one

    def ids():
        return [s["id"] for s in daemon.request("GET", "/v1/sandboxes").json()["sandboxes"]]
    harness.wait_until(lambda: idle["id"] not in ids(), "the idle one is gone")
    assert busy["id"] in ids()
    daemon.request("DELETE", "/v1/sandboxes/" + busy["id"])


@pytest.mark.parametrize("body,words", [
    ({"name": "a/b"}, "name"), ({"name": ".x"}, "name"), ({"name": 1}, "name"), ({"name": "default2" * 40}, "name"),
    ({"env": []}, "env"), ({"env": {"A": 1}}, "env"), ({"env": {"A=B": "c"}}, "env"), ({"env": {"A": "x\0"}}, "NUL"),
    ({"limits": {"memory_mb": 10 ** 9}}, "limits.memory_mb"), ({"limits": {"pids": 0}}, "limits.pids"),
    ({"limits": []}, "limits"), ({"timeout": "x"}, "timeout"), ({"timeout": -1}, "timeout"),
    ([], "object"),
])
def test_bad_requests_say_what_is_wrong(daemon, body, words):
    r = daemon.request("POST", "/v1/sandboxes", json=body)
    assert r.status == 400 and words in r.json()["error_detail"], r


def test_a_network_that_is_not_offered_is_refused(daemon):
    assert daemon.request("POST", "/v1/sandboxes", json={"network": {"mode": "bridge"}}).status == 400
    assert daemon.request("POST", "/v1/sandboxes", json={"network": {"mode": "host"}}).status == 403


def test_the_network_of_the_host_only_where_the_operator_allows_it(make_daemon):
    if not harness.ROOT:
        pytest.skip("entering the host's network needs root")
    daemon = make_daemon(ALLOW_HOST_NETWORK="true")
    info = create(daemon, network={"mode": "host"})
    assert info["network"] == {"mode": "host"}
    box, plain = Sandbox(daemon, "/v1/sandboxes/" + info["id"]), Sandbox(daemon)
    probe = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {daemon.port}))'"
    assert box.run(probe)["code"] == 0
    assert plain.run(probe)["code"] != 0, "others stay alone"
    assert box.sh("readlink /proc/self/ns/net").strip() == harness.namespace("self", "net")
    assert box.sh("grep CapEff /proc/self/status").split()[1] == "0" * 16
    with open("/etc/resolv.conf") as f:
        expected = f.read()
    harness.wait_until(lambda: box.sh("cat /etc/resolv.conf") == expected, "names can be resolved")


def test_names_are_unique_and_the_number_is_limited(make_daemon):
    daemon = make_daemon(SANDBOXES_MAX=2)
    create(daemon, name="one")
    assert "already" in daemon.request("POST", "/v1/sandboxes", json={"name": "one"}).json()["error_detail"]
    create(daemon, name="two")
    r = daemon.request("POST", "/v1/sandboxes", json={})
    assert r.status == 503 and r.headers["Retry-After"]


def test_limits_hold(daemon):
    info = create(daemon, limits={"pids": 24, "disk_mb": 4})
    box = Sandbox(daemon, "/v1/sandboxes/" + info["id"])
    assert "No space left" in box.run("head -c 9000000 /dev/zero > /workspace/f")["stderr"]
    result = box.run("for i in $(seq 60); do sleep 5 & done; wait", timeout=5)
    assert "fork" in result["stderr"].lower() or result["code"] != 0
    assert daemon.request("DELETE", box.at).status == 204


def test_the_smallest_disk_is_one_that_works(daemon):
    r = daemon.request("POST", "/v1/sandboxes", json={"limits": {"disk_mb": 1}})
    assert r.status == 400 and "limits.disk_mb: must be from 2 to" in r.json()["error_detail"]
    box = Sandbox(daemon, "/v1/sandboxes/" + create(daemon, limits={"disk_mb": 2})["id"])
    assert box.sh("echo in | tee /workspace/f /var/tmp/f") == "in\n"
    assert daemon.request("DELETE", box.at).status == 204
    assert "SANDBOX_DISK_MB" in harness.start_refused(SANDBOX_DISK_MB=1).stderr


def test_memory_is_limited_and_the_sandbox_survives(daemon):
    if not harness.ROOT:
        pytest.skip("needs a memory controller")
    info = create(daemon, limits={"memory_mb": 64})
    box = Sandbox(daemon, "/v1/sandboxes/" + info["id"])
    result = box.run("python3 -c 'x = bytearray(300 << 20)'")
    assert result["code"] != 0
    assert box.sh("echo alive") == "alive\n"
    assert daemon.request("DELETE", box.at).status == 204


def test_ports_of_a_named_sandbox_have_a_proxy_of_their_own(daemon, made):
    info, box = made
    box.start("python3 -m http.server 8000 --bind 127.0.0.1")
    r = box.post("bind_port", {"port": "8000"}).json()
    assert r["success"] and r["proxy_port"] > 0
    seen = daemon.request("GET", box.at).json()
    assert (seen["bound_port"], seen["proxy_port"]) == ("8000", r["proxy_port"])

    def answers():
        c = http.client.HTTPConnection(daemon.host, r["proxy_port"], timeout=10)
        try:
            c.request("GET", "/")
            return c.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            c.close()
    harness.wait_until(answers, "the server inside answers")
    assert box.post("unbind_port").status == 200
    assert daemon.request("GET", box.at).json()["bound_port"] is None


def test_many_sandboxes(daemon):
    made = [create(daemon) for _ in range(12)]
    boxes = [Sandbox(daemon, "/v1/sandboxes/" + m["id"]) for m in made]
    for i, box in enumerate(boxes):
        box.sh(f"echo {i} > /workspace/n")
    assert [box.sh("cat /workspace/n") for box in boxes] == [f"{i}\n" for i in range(12)]
    for box in boxes:
        assert daemon.request("DELETE", box.at).status == 204


# ---- files as they are ----


@pytest.fixture
def files(daemon):
    def ask(method, path, body=None, **headers):
        return daemon.request(method, "/v1/sandboxes/default/files" + urllib.parse.quote(path), body=body,
                              headers={k.replace("_", "-"): v for k, v in headers.items()}, timeout=120)
    yield ask
    ask("DELETE", "/workspace/raw")
    daemon.request("DELETE", "/v1/sandboxes/default/files/workspace/raw?recursive=true")


def test_bytes_survive_both_ways(daemon, files):
    data = secrets.token_bytes(3_000_000)
    r = files("PUT", "/workspace/raw/deep/x.bin", data)
    assert r.status == 200 and r.json() == {"path": "/workspace/raw/deep/x.bin", "size": len(data)}
    assert Sandbox(daemon).sh("sha256sum < /workspace/raw/deep/x.bin").split()[0] == hashlib.sha256(data).hexdigest()
    got = files("GET", "/workspace/raw/deep/x.bin")
    assert got.status == 200 and got.body == data and got.headers["ETag"] == r.headers["ETag"]
    assert got.headers["X-File-Mode"] == "0644"


def test_types_and_names(files):
    assert files("PUT", "/workspace/raw/ä b%?.json", b"{}").status == 200
    r = files("GET", "/workspace/raw/ä b%?.json")
    assert r.body == b"{}" and r.headers["Content-Type"].startswith("application/json")
    assert files("GET", "/etc/hostname").body == b"sandbox\n"
    assert files("GET", "/proc/sys/kernel/ostype").body == b"Linux\n"


def test_empty_file_and_head(files):
    assert files("PUT", "/workspace/raw/empty", b"").json()["size"] == 0
    assert files("GET", "/workspace/raw/empty").body == b""
    files("PUT", "/workspace/raw/t", b"12345")
    r = files("HEAD", "/workspace/raw/t")
    assert (r.status, r.body, r.headers["Content-Length"]) == (200, b"", "5")


@pytest.mark.parametrize("asked,status,body,content_range", [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"), ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=2-100", 206, b"23456789", "bytes 2-9/10"),
    ("bytes=10-", 416, None, "bytes */10"), ("bytes=-0", 416, None, "bytes */10"),
    ("bytes=0-1,3-4", 200, b"0123456789", None), ("items=0-1", 200, b"0123456789", None),
    ("bytes=5-2", 200, b"0123456789", None), ("bytes=x", 200, b"0123456789", None),
    (f"bytes={10 ** 20}-", 416, None, "bytes */10"), (f"bytes=8-{10 ** 20}", 206, b"89", "bytes 8-9/10"),
])
def test_ranges(files, asked, status, body, content_range):
    files("PUT", "/workspace/raw/r", b"0123456789")
    r = files("GET", "/workspace/raw/r", Range=asked)
    assert r.status == status and r.headers["Content-Range"] == content_range
    assert body is None or r.body == body


def test_etags(files):
    etag = files("PUT", "/workspace/raw/e", b"one").headers["ETag"]
    assert files("GET", "/workspace/raw/e", If_None_Match=etag).status == 304
    assert files("GET", "/workspace/raw/e", If_Range=etag, Range="bytes=0-0").status == 206
    assert files("PUT", "/workspace/raw/e", b"two2").headers["ETag"] != etag
    assert files("GET", "/workspace/raw/e", If_None_Match=etag).status == 200
    assert files("GET", "/workspace/raw/e", If_Range=etag, Range="bytes=0-0").status == 200
    assert files("HEAD", "/workspace/raw/e", Range="bytes=0-0").status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("condition", [{"If_Match": '"zz"'}, {"If_None_Match": "*"}, {"Content_Range": "bytes 4-5/10"}])
def test_conditions_of_a_change_are_not_passed_over(files, method, condition):
    files("PUT", "/workspace/raw/c", b"0123456789")
    r = files(method, "/workspace/raw/c", *([b"AB"] if method == "PUT" else []), **condition)
    assert r.status == 400 and next(iter(condition)).replace("_", "-") in r.json()["error_detail"]
    assert files("GET", "/workspace/raw/c").body == b"0123456789"


@pytest.mark.parametrize("method,path,status", [
    ("GET", "/workspace/nothing", 404), ("GET", "/workspace", 409), ("GET", "/etc/passwd/x", 404),
    ("PUT", "/workspace", 409), ("PUT", "/new-root", 403), ("DELETE", "/workspace/nothing", 404),
    ("PUT", "/proc/version", 403), ("DELETE", "/workspace", 403),
])
def test_errors(daemon, method, path, status):
    Sandbox(daemon).sh("touch /workspace/.keep")
    r = daemon.request(method, "/v1/sandboxes/default/files" + path, body=b"x" if method == "PUT" else None)
    assert r.status == status and r.json()["error_code"].startswith("Executor."), r


def test_delete(daemon, files):
    files("PUT", "/workspace/raw/a/b/c", b"x")
    assert files("DELETE", "/workspace/raw/a").status == 409
    assert files("DELETE", "/workspace/raw/a/b/c").status == 204
    r = daemon.request("DELETE", "/v1/sandboxes/default/files/workspace/raw/a?recursive=true")
    assert r.status == 204 and files("GET", "/workspace/raw/a/b").status == 404


def test_upload_in_chunks_and_slowly(daemon):
    with daemon.socket() as s:
        s.sendall(b"PUT /v1/sandboxes/default/files/workspace/raw/c HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n" % daemon.secret.encode())
        for i in range(5):
            s.sendall(b"5\r\npart%d\r\n" % i)
        s.sendall(b"0\r\n\r\n")
        r = http.client.HTTPResponse(s)
        r.begin()
        assert r.status == 200 and b'"size":25' in r.read()


def test_a_large_upload_is_not_held_in_memory(daemon):
    size, block = 300 << 20, bytes(1 << 20)

    def resident():
        for line in harness.read_proc(daemon.pid, "status").decode().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    Sandbox(daemon).sh("true")
    before, peak, stop = resident(), [0], threading.Event()

    def watch():
        while not stop.wait(0.02):
            peak[0] = max(peak[0], resident())
    t = threading.Thread(target=watch)
    t.start()
    with daemon.socket() as s:
        s.sendall(b"PUT /v1/sandboxes/default/files/workspace/raw/large HTTP/1.1\r\nHost: x\r\n"
                  b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (daemon.secret.encode(), size))
        for _ in range(size >> 20):
            s.sendall(block)
        r = http.client.HTTPResponse(s)
        r.begin()
        assert r.status == 200, r.read()
    stop.set()
    t.join()
    assert peak[0] - before < 60 << 20
    daemon.request("DELETE", "/v1/sandboxes/default/files/workspace/raw/large")


def test_a_full_disk_ends_an_upload_early(daemon):
    info = create(daemon, limits={"disk_mb": 2})
    at = f"/v1/sandboxes/{info['id']}"
    r = daemon.request("PUT", at + "/files/workspace/f", body=bytes(8 << 20))
    assert r.status == 507
    daemon.request("DELETE", at)


FRAMES = {
    "length": (b"Content-Length: 1000000\r\n", b"new"),
    "chunks": (b"Transfer-Encoding: chunked\r\n", b"3\r\nnew\r\n"),
    "large": (b"Content-Length: 4000000\r\n", b"n" * 3_000_000),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_an_upload_that_breaks_off_leaves_the_old_content(daemon, frame):
    """The new content is there when the upload is whole, and not before."""
    box = Sandbox(daemon)
    box.sh("mkdir -p up && cd up && rm -rf * && echo old >f && chmod 640 f && echo old >target && ln -s target link")
    framing, body = FRAMES[frame]
    for name in ("f", "link", "fresh"):
        with daemon.socket() as s:
            s.sendall(b"PUT /v1/sandboxes/default/files/workspace/up/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                      b"%s\r\n%s" % (name.encode(), daemon.secret.encode(), framing, body))
            # Its worker has the file open by now, or will soon: either way nothing may be seen of it.
            assert box.sh(f"cat up/{name} 2>/dev/null || echo old") == "old\n"
        harness.wait_until(lambda: not uploads(daemon), "the worker has given up")
    assert box.sh("cd up && cat f target && ls -A && stat -c %a f") == "old\nold\nf\nlink\ntarget\n640\n"
    for name in ("f", "link", "fresh"):
        r = daemon.request("PUT", f"/v1/sandboxes/default/files/workspace/up/{name}", body=b"new\n")
        assert r.status == 200 and r.json()["size"] == 4
    assert box.sh("cd up && cat f target fresh && ls -A && stat -c %a f && readlink link") == \
        "new\nnew\nnew\nf\nfresh\nlink\ntarget\n640\ntarget\n"


def uploads(daemon):
    """Helpers that hold a file below /workspace, or one without a name there, open."""
    return [pid for pid in daemon.tree() if harness.read_proc(pid, "comm").strip() == b"sandbox-helper"
            and any("/workspace/" in link_of(pid, fd) for fd in harness.open_files(pid))]


def link_of(pid, number):
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return ""


def test_clients_that_leave_near_the_end_of_an_upload_leave_no_other_name(daemon):
    """A helper is not killed while it gives new content its place, where that needs a hidden name."""
    box = Sandbox(daemon)
    box.sh("mkdir -p end && cd end && rm -rf * && echo old >f")
    body = b"x" * 20_000

    def leave():
        for n in range(60):
            with daemon.socket() as s:
                s.sendall(b"PUT /v1/sandboxes/default/files/workspace/end/f HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (daemon.secret.encode(), len(body), body))
                time.sleep(n % 20 / 8000)  # anywhere between the first byte and the answer
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    threads = [threading.Thread(target=leave) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    harness.wait_until(lambda: not uploads(daemon), "the helpers have given up")
    assert box.sh("cd end && ls -A && wc -c <f") in ("f\n20000\n", "f\n4\n")


def test_a_stopped_helper_whose_client_has_left_is_killed(make_daemon):
    """It is to end by itself, which one that the tenant has stopped does not."""
    daemon = make_daemon(HELPER_ANSWER_MS=1000)
    box = Sandbox(daemon)
    box.sh("true")
    with daemon.socket() as s:
        s.sendall(b"PUT /v1/sandboxes/default/files/workspace/g HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
                  b"Content-Length: 1000\r\n\r\nabc" % daemon.secret.encode())
        harness.wait_until(lambda: uploads(daemon), "a helper has the file open")
        stopped = uploads(daemon)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
    harness.wait_until(lambda: not any(harness.is_alive(pid) for pid in stopped), "the stopped helper is gone")
    assert box.sh("ls -A | grep -c sandbox-upload; cat g 2>/dev/null || true") == "0\n"
    assert box.sh("echo alive") == "alive\n"


def test_what_cannot_be_replaced_is_written_in_place(daemon):
    box = Sandbox(daemon)
    box.sh("rm -rf in && mkdir in && cd in && echo old >a && ln a b && ln -s nothing c && mkdir d && echo old >d/e && chmod 555 d"
           " && echo old >r && chmod 444 r && mkfifo p")
    put = lambda name: daemon.request("PUT", f"/v1/sandboxes/default/files/workspace/in/{name}", body=b"new\n").status
    assert [put(name) for name in ("a", "c", "d/e", "r", "d", "p")] == [200, 200, 200, 403, 409, 400]
    assert box.sh("cd in && cat b nothing d/e r") == "new\nnew\nnew\nold\n"
    assert box.sh("cd in && stat -c %h a && ls -A d") == "2\ne\n"
    assert box.call("write_file", path="in/a", content="again") == {"success": True}
    assert box.sh("cat in/b; chmod -R u+w in; rm -rf in") == "again"


def test_a_full_disk_leaves_the_old_content(daemon):
    info = create(daemon, limits={"disk_mb": 4})
    at = f"/v1/sandboxes/{info['id']}"
    box = Sandbox(daemon, at)
    assert daemon.request("PUT", at + "/files/workspace/f", body=b"old\n").status == 200
    assert daemon.request("PUT", at + "/files/workspace/f", body=bytes(8 << 20)).status == 507
    assert not box.call("write_file", path="f", content="x" * (8 << 20))["success"]
    assert box.sh("cat f; ls -A") == "old\nf\n"
    daemon.request("DELETE", at)


def test_a_client_that_leaves_during_an_upload(daemon):
    box = Sandbox(daemon)

    def leave(times):
        for _ in range(times):
            s = daemon.socket()
            s.sendall(b"PUT /v1/sandboxes/default/files/workspace/raw/g HTTP/1.1\r\nHost: x\r\n"
                      b"Authorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\nabc" % daemon.secret.encode())
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
    box.sh("true")
    before = len(harness.open_files(daemon.pid)) + 17  # workers that are kept idle
    leave(40)
    harness.wait_until(lambda: len(harness.open_files(daemon.pid)) <= before, "descriptors are back")
    assert box.sh("echo alive") == "alive\n"


def run_native(daemon, cmd, **more):
    return daemon.request("POST", "/v1/sandboxes/default/run", json={"cmd": cmd, **more}).json()


def test_a_command_says_how_it_ended_and_how_long_it_took(daemon):
    got = run_native(daemon, "echo hi; exit 3")
    assert (got["stdout"], got["code"], got["termination"]) == ("hi\n", 3, {"reason": "exit"})
    timings = got["timings"]
    assert set(timings) == {"queue_ms", "start_ms", "run_ms", "total_ms"} and min(timings.values()) >= 0
    assert timings["total_ms"] >= timings["start_ms"] + timings["run_ms"] > 0
    got = run_native(daemon, "kill -SEGV $$")
    assert (got["code"], got["termination"]) == (-1, {"reason": "signal", "signal": 11})
    got = run_native(daemon, "sleep 600", timeout=0.2)
    assert (got["code"], got["termination"]["reason"]) == (-1, "timeout")
    assert got["timings"]["run_ms"] >= 200


def test_the_older_family_has_no_more_than_its_contract(daemon):
    got = daemon.request("POST", "/run", json={"cmd": "echo hi"}).json()
    assert set(got) == {"stdout", "stderr", "code"}


def test_a_command_that_met_the_memory_limit_says_so(make_daemon):
    daemon = make_daemon(SANDBOX_MEMORY_MB="64")
    if "memory" not in daemon.request("GET", "/v1/capabilities").json()["traits"]:
        pytest.skip("needs a memory controller")
    got = run_native(daemon, "exec python3 -c 'x = b\"x\" * (256 << 20)'")
    assert (got["code"], got["termination"]["reason"]) == (-1, "oom")
    assert run_native(daemon, "echo on")["termination"] == {"reason": "exit"}


def test_commands_are_measured_by_stage(daemon):
    run_native(daemon, "true")
    for stage in ("queue", "start", "run"):
        assert f'sandbox_command_stage_seconds_count{{stage="{stage}"}}' in daemon.request("GET", "/metrics").text
