# SPDX-License-Identifier: MIT
"""Sandboxes with a network: what a policy allows, what it refuses, and the account of both.

The far side is on addresses of the loopback that are this run's own. They are known by names through
EGRESS_HOSTS_FILE and may be reached although they are not public through EGRESS_PRIVATE; the witness, on
another address, may not.
"""
import json
import os
import random
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import harness

CODE_HEAD = r"""
import json, os, socket, ssl, urllib.request
for name in [n for n in os.environ if n.lower().endswith("_proxy")] if TRANSPARENT else []:
    del os.environ[name]
def attempt(fn):
    try:
        return fn()
    except urllib.error.HTTPError as e:
        return f"{e.code} {e.read().decode()}"
    except BaseException as e:
        return f"{type(e).__name__}: {e}"
def get(url, **headers):
    return attempt(lambda: urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30).read().decode())
def tls(host, port=443, sni=None, address=None):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((address or host, port), 30) as s:
        with context.wrap_socket(s, server_hostname=sni or host) as t:
            t.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return t.makefile("rb").read().decode().split("\r\n\r\n")[-1]
def raw(port, *said, host="127.0.0.1"):
    with socket.create_connection((host, port), 30) as s:
        got = b""
        for text in said:
            s.sendall(text)
            got += s.recv(4096)
        head, end, body = got.rpartition(b"\r\n\r\n")
        length = int((head.lower().split(b"content-length: ")[1:] or [b"0"])[0].split()[0])
        while end and len(body) < length and (more := s.recv(4096)):
            got, body = got + more, body + more
        return got.decode("latin-1")
"""


class Far:
    """Servers at two addresses of the loopback: one that may be reached, one that may not."""

    def __init__(self, directory):
        net = f"127.{random.randint(1, 250)}.{random.randint(0, 250)}"
        self.good, self.bad = f"{net}.2", f"{net}.3"
        self.asked, self.witness = [], []
        self.hosts = directory / "hosts"
        self.hosts.write_text(f"{self.good} site.test other.test deep.sub.test plain.test\n{self.bad} bad.test\n")
        self.hosts.chmod(0o644)
        directory.chmod(0o755)
        key, cert = directory / "key", directory / "cert"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=site.test", "-keyout", key, "-out", cert], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.servers = []
        for address, port, tls, seen in ((self.good, 80, False, self.asked), (self.good, 443, True, self.asked),
                                         (self.good, 8080, False, self.asked), (self.bad, 80, False, self.witness),
                                         (self.bad, 443, False, self.witness)):
            self.serve(address, port, context if tls else None, seen)

    def serve(self, address, port, context, seen):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append((self.command, self.path, self.headers.get("Host"), body.decode()))
                text = b"x" * 4000000 if self.path == "/large" else f"far {self.command} {self.path}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass
        server = Server((address, port), Handler)
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    harness.need(harness.ROOT, "the far side listens on ports 80 and 443 of the loopback")
    directory = tmp_path_factory.mktemp("far")
    for ours in (directory, tmp_path_factory.getbasetemp()):
        ours.chmod(0o755)
    far = Far(directory)
    yield far
    far.close()


@pytest.fixture(scope="module")
def hosts_file(far):
    path = f"/tmp/sbx-hosts-{os.getpid()}"
    with open(path, "w") as f:
        f.write(far.hosts.read_text())
    os.chmod(path, 0o644)
    yield path
    os.unlink(path)


@pytest.fixture(scope="module")
def daemon(make_daemon_module, far, hosts_file):
    return make_daemon_module(EGRESS="public", EGRESS_PRIVATE=f"{far.good}/32", EGRESS_HOSTS_FILE=hosts_file)


def allow(*hosts, **more):
    return {"mode": "allow", "allow": list(hosts), **more}


def run(daemon, code, network, transparent=False, **more):
    """(what the code printed as JSON, the result)"""
    code = CODE_HEAD.replace("TRANSPARENT", str(transparent)) + "print(json.dumps(" + code + "))"
    body = {"code": code, "language": "python", "network": network, "timeout": 60, **more}
    result = daemon.request("POST", "/execute", json=body, headers={"Prefer": "wait"}).json()
    assert result.get("status") == "success", result
    return json.loads(result["stdout"]), result


def rows(result):
    return {(row["host"], row["port"], row.get("reason", "allowed")): row for row in result["network"]}


WAYS = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])


@WAYS
def test_what_is_allowed_is_reached(daemon, far, transparent):
    printed, result = run(daemon, '[get("http://site.test/a?b=c"), attempt(lambda: tls("site.test"))]', allow("site.test"), transparent)
    assert printed == ["far GET /a?b=c", "far GET /"]
    assert ("GET", "/a?b=c", "site.test", "") in far.asked
    seen = rows(result)
    assert seen["site.test", 80, "allowed"]["bytes_down"] > 0 and seen["site.test", 80, "allowed"]["requests"] == 1
    # without a proxy's variables TLS goes to the address that the name was given inside
    assert seen["site.test", 443, "allowed"]["connections"] == 1


@WAYS
def test_what_is_not_allowed_is_refused_with_words(daemon, far, transparent):
    printed, result = run(daemon, '[get("http://other.test/"), attempt(lambda: tls("other.test")), get("http://site.test:8080/")]',
                          allow("site.test"), transparent)
    assert printed[0].startswith("403 ") and json.loads(printed[0][4:])["reason"] == "not_allowed"
    assert "alert access denied" in printed[1].lower() or "ACCESS_DENIED" in printed[1], printed
    assert not printed[2].startswith("far")
    row = rows(result)["other.test", 80, "not_allowed"]
    assert row["verdict"] == "denied" and "site.test" in row["advice"]
    assert not any(asked[2] == "other.test" for asked in far.asked)


def test_wildcards_ports_methods_and_paths(daemon, far):
    network = allow("*.sub.test", "site.test:8080", {"host": "plain.test", "methods": ["GET"], "paths": ["/v1/**"]})
    printed, result = run(daemon, """[get("http://deep.sub.test/"), get("http://site.test:8080/x"), get("http://plain.test/v1/y"),
        get("http://plain.test/v2"), get("http://plain.test/v1/../v2"), get("http://plain.test/v1/%2e%2e/v2"),
        attempt(lambda: urllib.request.urlopen("http://plain.test/v1/y", data=b"z").read().decode()),
        attempt(lambda: tls("plain.test"))]""", network, True)
    assert printed[:3] == ["far GET /", "far GET /x", "far GET /v1/y"]
    reasons = [json.loads(words[4:])["reason"] for words in printed[3:7] if words.startswith("403")]
    assert reasons[:3] == ["path"] * 3 and ("method" in reasons or "403" in printed[6])
    assert not printed[7].startswith("far")
    assert rows(result)["plain.test", 443, "method"]["connections"] == 1


def test_bodies_go_along(daemon, far):
    printed, _ = run(daemon, """[attempt(lambda: urllib.request.urlopen("http://site.test/post", data=b"q" * 100000).read().decode()),
        raw(80, b"POST /chunks HTTP/1.1\\r\\nHost: site.test\\r\\nContent-Length: 3\\r\\n\\r\\nabcGET /second HTTP/1.1\\r\\nHost: site.test\\r\\n\\r\\n",
            host="site.test")]""", allow("site.test"), True)
    assert printed[0] == "far POST /post" and "far POST /chunks" in printed[1]
    bodies = {path: body for _, path, _, body in far.asked}
    assert bodies["/post"] == "q" * 100000 and bodies["/chunks"] == "abc" and "/second" not in bodies


def test_names_that_do_not_agree(daemon, far):
    printed, result = run(daemon, """[attempt(lambda: tls("site.test", sni="other.test")),
        get("http://site.test/", Host="other.test"), raw(443, b"hello\\r\\n\\r\\n", host="site.test"),
        raw(3128, b"CONNECT site.test:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\nHost: site.test\\r\\n\\r\\n")]""",
                          allow("site.test", "other.test"), True)
    assert not printed[0].startswith("far") and "host_mismatch" in printed[1]
    assert "far" not in printed[2] and "200" in printed[3] and "far" not in printed[3]
    found = {(host, reason) for host, _, reason in rows(result)}
    assert {("site.test", "sni_mismatch"), ("site.test", "host_mismatch"), ("site.test", "no_sni")} <= found


def test_socks(daemon, far):
    printed, _ = run(daemon, r"""[raw(3128, b"\5\1\0", b"\5\1\0\3\x09site.test\0P", b"GET /s HTTP/1.1\r\nHost: site.test\r\n\r\n"),
        raw(3128, b"\5\1\0", b"\5\1\0\3\x08bad.test\0P"), raw(3128, b"\5\1\0", b"\5\3\0\3\x09site.test\0P")]""",
                     allow("site.test"))
    assert "far GET /s" in printed[0] and printed[1][2:4] == "\5\2" and printed[2][2:4] == "\5\1"


SPELLINGS = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "[::1]", "[::ffff:127.0.0.1]", "localhost",
             "169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "192.168.0.1", "bad.test", "{own}"]


@pytest.mark.parametrize("mode", ["public", "allow"])
def test_no_address_that_is_not_public(daemon, far, mode):
    spellings = [s.replace("{own}", socket.gethostname()) for s in SPELLINGS] + [far.bad]
    network = "public" if mode == "public" else allow("bad.test", "localhost", far.bad, "127.0.0.1", "[::1]", "0.0.0.0/0")
    code = f"""[[raw(3128, f"CONNECT {{h}}:{{p}} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode()),
                 raw(3128, f"GET http://{{h}}:{{p}}/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())]
                for h in {spellings!r} for p in (80, 443)]"""
    printed, result = run(daemon, code, network)
    for pair in printed:
        for answer in pair:
            assert answer[:12] in ("HTTP/1.1 403", "HTTP/1.1 400", "HTTP/1.1 502"), printed
    assert far.witness == []
    assert all(row["verdict"] == "denied" for row in result["network"])


def test_private_addresses_that_the_operator_vouches_for_are_not_public(daemon, far):
    printed, result = run(daemon, '[get("http://site.test/private")]', "public", True)
    assert "private_address" in printed[0] and "/private" not in [asked[1] for asked in far.asked]


def test_without_a_policy_there_is_nothing(daemon):
    printed, result = run(daemon, '[attempt(lambda: raw(3128, b"x")), attempt(lambda: socket.getaddrinfo("site.test", 80)), '
                                  'attempt(lambda: socket.create_connection(("198.18.0.2", 443), 5)), '
                                  'attempt(lambda: socket.create_connection(("192.0.2.1", 443), 5)), len(os.environ.get("http_proxy", ""))]', "none")
    assert "refused" in printed[0] and "rror" in printed[1] and "refused" in printed[2] and "unreachable" in printed[3]
    assert printed[4] == 0 and "network" not in result


def test_bytes_are_bounded(daemon, far):
    printed, result = run(daemon, '[len(get("http://site.test/large")), get("http://site.test/")]', allow("site.test", bytes_max=1000000))
    assert printed[0] < 4000000 and not printed[1].startswith("far")
    assert rows(result)["site.test", 80, "quota"]["verdict"] == "denied"


@pytest.mark.parametrize("network,status", [
    ({"mode": "allow", "allow": ["a b"]}, 400), ({"mode": "bridge"}, 400), ({"mode": "allow", "allowed": []}, 422),
    ({"mode": "public", "allow": ["a.test"]}, 400), ("host", 403)])
def test_what_is_asked_for_wrongly(daemon, network, status):
    answered = daemon.request("POST", "/execute", json={"code": "1", "language": "python", "network": network})
    assert answered.status in (status, 400 if status == 422 else status), answered


def test_operators_bound_it(make_daemon, far, hosts_file):
    off = make_daemon()
    body = {"code": "1", "language": "python", "network": allow("site.test")}
    refused = off.request("POST", "/execute", json=body)
    assert refused.status == 403 and "EGRESS" in refused.text
    some = make_daemon(EGRESS="allow", EGRESS_HOSTS="*.sub.test, site.test:8080", EGRESS_PRIVATE=f"{far.good}/32", EGRESS_HOSTS_FILE=hosts_file)
    refused = some.request("POST", "/execute", json=body)
    assert refused.status == 403 and "EGRESS_HOSTS" in refused.text
    assert some.request("POST", "/execute", json={**body, "network": "public"}).status == 403
    printed, _ = run(some, '[get("http://deep.sub.test/")]', allow("deep.sub.test"), True)
    assert printed == ["far GET /"]


# ---- persistent sandboxes ----

def made(daemon, network):
    answered = daemon.request("POST", "/v1/sandboxes", json={"network": network})
    assert answered.status == 201, answered
    return answered.json()


def in_sandbox(daemon, box, command):
    answered = daemon.request("POST", f"/v1/sandboxes/{box['id']}/run", json={"cmd": command})
    assert answered.status == 200, answered
    return answered.json()["stdout"]


def test_a_sandbox_keeps_its_network_and_it_can_be_replaced(daemon, far):
    box = made(daemon, allow("site.test"))
    assert box["network"]["mode"] == "allow" and box["network"]["allow"] == ["site.test"]
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('http://%s/', timeout=30).read().decode())\" 2>&1 | tail -1"
    path = f"/v1/sandboxes/{box['id']}/network"
    assert in_sandbox(daemon, box, fetch % "site.test").strip() == "far GET /"
    assert "403" in in_sandbox(daemon, box, fetch % "other.test")
    changed = daemon.request("PUT", path, json=allow("other.test"))
    assert changed.status == 200 and changed.json()["allow"] == ["other.test"]
    assert in_sandbox(daemon, box, fetch % "other.test").strip() == "far GET /"
    assert "403" in in_sandbox(daemon, box, fetch % "site.test")
    assert daemon.request("PUT", path, json={"mode": "none"}).json()["mode"] == "none"
    assert "403" in in_sandbox(daemon, box, fetch % "other.test")
    found = {(row["host"], row["verdict"]) for row in daemon.request("GET", path).json()["network"]}
    assert {("site.test", "allowed"), ("site.test", "denied"), ("other.test", "allowed"), ("other.test", "denied")} <= found
    daemon.request("DELETE", f"/v1/sandboxes/{box['id']}")


def test_a_sandbox_gets_a_network_later(daemon, far):
    box = made(daemon, "none")
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('http://site.test/', timeout=30).read().decode())\" 2>&1 | tail -1"
    assert "far" not in in_sandbox(daemon, box, fetch)
    assert daemon.request("PUT", f"/v1/sandboxes/{box['id']}/network", json=allow("site.test")).status == 200
    assert in_sandbox(daemon, box, fetch).strip() == "far GET /"
    daemon.request("DELETE", f"/v1/sandboxes/{box['id']}")


@pytest.mark.parametrize("victim", ["egress-door", "egress-dialler", "egress-master"])
def test_what_dies_is_replaced(make_daemon, far, hosts_file, victim):
    daemon = make_daemon(EGRESS="allow", EGRESS_PRIVATE=f"{far.good}/32", EGRESS_HOSTS_FILE=hosts_file)
    box = made(daemon, allow("site.test"))
    fetch = "python3 -c \"import urllib.request as u; print(u.urlopen('http://site.test/', timeout=30).read().decode())\" 2>&1 | tail -1"
    assert in_sandbox(daemon, box, fetch).strip() == "far GET /"
    pids = [pid for pid in daemon.tree() if harness.read_proc(pid, "comm").decode().strip() == victim]
    assert pids
    for pid in pids:
        os.kill(pid, 9)
    harness.wait_until(lambda: in_sandbox(daemon, box, fetch).strip() == "far GET /", "the network is there again", timeout=60)
    printed, _ = run(daemon, '[get("http://site.test/")]', allow("site.test"))
    assert printed == ["far GET /"]
