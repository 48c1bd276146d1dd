# SPDX-License-Identifier: MIT
"""The event loop behind the doors of persistent sandboxes: MCP, E2B, processes, terminals, forms, watches, ports.

As in test_loop.py: one hostile input each, then the longest turn of the loop since.
"""
import base64
import json
import os
import socket
import struct
import threading

import pytest

import files_of
import harness
import mcp_client
import sockets
from loop_watch import set_bar, watch
from test_e2b_process import envelope
from test_files_transfer import form, part, upload
from test_processes import Sandbox as Box

BAD = {"control": r"\x01", "bad": r"\xff", "escape": r"\x1b[31m\x1b]0;", "quote": r"\x22", "wide": r"\xc3\xbc"}


@pytest.fixture(scope="module")
def hostile(make_daemon_module):
    return set_bar(make_daemon_module(MCP_OUTPUT_CHARS="1000000", SANDBOX_MEMORY_MB="2048"))


@pytest.fixture(scope="module")
def files(hostile):
    with files_of.sandbox(hostile) as made:
        yield made


@pytest.fixture(scope="module")
def many(files):
    """A directory of 20,000 entries whose names are hard for patterns, deep below."""
    at = "/workspace/" + "/".join(["d" * 200] * 4)
    files.sh(f"mkdir -p {at}; cd {at}; python3 -c \"\nfor i in range(20000): open('a' * 200 + '%05d' % i, 'w').close()\"")
    return at


# ---- MCP ----

@pytest.fixture(scope="module")
def client(hostile):
    made = mcp_client.Client(hostile)
    made.id = made.data("create_sandbox")["sandbox"]
    return made


def tool(client, name, **arguments):
    answer = client.daemon.request("POST", "/mcp", json=client.message("tools/call", {"name": name, "arguments": {"sandbox": client.id, **arguments}}),
                                   headers=client.headers("tools/call"), timeout=300)
    return client.result(answer)


def write(text, n):
    """A command that writes so many bytes of this Python literal."""
    return f"python3 -c \"import os; p = b'''{text}''' * 4096\nfor i in range({n} // len(p)): os.write(1, p), os.write(2, p)\""


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_output_of_a_tool(hostile, client, text):
    with watch(hostile):
        result = tool(client, "run_command", command=write(text, 12_000_000) + "; exit 3")
    assert result["structuredContent"]["exit_code"] == 3


def test_a_value_of_a_tool(hostile, client):
    for code in ("'\\x01' * 600000", "['\\x01'] * 300000", "raise ValueError('\\x01' * 600000)",
                 "for i in range(400): display({'text/plain': '\\x01' * 5000}, raw=True)",
                 "import os\nfor i in range(9): display({'image/png': 'A' * 3000000}, raw=True)"):
        with watch(hostile):
            tool(client, "run_code", code=code)


PICTURES = r"""for i in 1 2 3 4; do
    { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\4\0\0\0\4\0\10\2\0\0\0'; head -c 3000000 /dev/urandom; } >p$i.png
done"""


def test_pictures_of_a_tool(hostile, client):
    with watch(hostile):
        result = tool(client, "run_command", command=PICTURES)
    assert [block["type"] for block in result["content"]].count("image") == 4
    with watch(hostile):
        assert tool(client, "read_file", path="p1.png")["content"][1]["type"] == "image"
    tool(client, "run_command", command="rm -f *.png")


def test_patterns_of_a_tool(hostile, client):
    tool(client, "run_command", command="mkdir -p many; cd many; python3 -c \"\nfor i in range(20000): open('a' * 200 + '%05d' % i, 'w').close()\"")
    for pattern in ("*a" * 12 + "*b", "*[!b]" * 12 + "c", "?" * 255, "*a" * 120 + "b"):
        with watch(hostile):
            assert tool(client, "list_files", path="many", pattern=pattern)["structuredContent"]["entries"] == []
    with watch(hostile):
        result = tool(client, "list_files", path=".", depth=10)["structuredContent"]
    assert len(result["entries"]) == 500 and result["left_out"] > 19000
    tool(client, "run_command", command="rm -r many")


def test_texts_of_a_tool(hostile, client):
    with watch(hostile):
        tool(client, "write_file", path="text", content="\x01" * 600000)
    with watch(hostile):
        tool(client, "write_file", path="text", content="A" * 4000000, encoding="base64")
    tool(client, "run_command", command="yes a | head -c 16000000 >lines; head -c 16000000 /dev/zero >zeros")
    for path in ("lines", "zeros"):
        with watch(hostile):
            tool(client, "read_file", path=path, limit=5000)
    with watch(hostile):
        assert "replaced" in tool(client, "edit_file", path="lines", old_text="a", new_text="b", replace_all=True)["structuredContent"]
    with watch(hostile):
        assert tool(client, "edit_file", path="lines", old_text="a" * 3000000, new_text="")["isError"]


def test_messages_of_mcp(hostile, client):
    for text in (json.dumps(client.message("tools/call", {"name": "run_command", "arguments": {"env": {f"A{i}": "" for i in range(250000)}}})),
                 '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + "[" * 60 + ",".join(["[]"] * 1200000) + "]" * 60 + "}}",
                 '{"jsonrpc":"2.0","id":1,"method":"ping","params":{' + ",".join(f'"{i}":1' for i in range(350000)) + "}}",
                 '{"jsonrpc":"2.0","id":1,"method":"' + "\\u0001" * 600000 + '"}'):
        with watch(hostile):
            answer = hostile.request("POST", "/mcp", body=text.encode(), headers={**client.headers(), "Content-Type": "application/json"}, timeout=300)
        assert answer.status in (200, 400), answer.status


def test_lines_of_a_process(hostile, client):
    ident = tool(client, "run_command", command="python3 -c \"print('\\x01\\n' * 4000000)\"; sleep 600", background=True)["structuredContent"]["process_id"]
    cursor = 0
    for _ in range(6):
        with watch(hostile):
            cursor = tool(client, "manage_process", action="output", process_id=ident, cursor=cursor, wait_seconds=1)["structuredContent"]["cursor"]
    with watch(hostile):
        tool(client, "manage_process", action="list")
    tool(client, "manage_process", action="kill", process_id=ident)


# ---- E2B ----

class Envd:
    def __init__(self, daemon):
        made = daemon.request("POST", "/v2/sandboxes", json={"templateID": "base", "timeout": 3000, "metadata": {f"k{i}": "\x01" * 500 for i in range(20)}},
                              headers={"X-API-Key": daemon.secret})
        assert made.status == 201, made
        self.daemon, self.made = daemon, made.json()

    def ask(self, path, body, port=49983, kind="application/json", **headers):
        token = self.made["envdAccessToken"]
        return self.daemon.request("POST", path, body=body if isinstance(body, bytes) else json.dumps(body).encode(), timeout=300,
                                   headers={"E2b-Sandbox-Id": self.made["sandboxID"], "E2b-Sandbox-Port": str(port), "Authorization": None,
                                            "X-Access-Token": token, "Content-Type": kind, **headers})

    def unary(self, method, body):
        return self.ask(method, body)

    def stream(self, method, *messages):
        return self.ask(method, b"".join(envelope(m) for m in messages), kind="application/connect+json")

    def start(self, command, **fields):
        """A process that goes on after its client has left; its number."""
        with socket.create_connection((self.daemon.host, self.daemon.port), 60) as sock:
            body = envelope({"process": {"cmd": "/bin/sh", "args": ["-c", command]}, "stdin": True, **fields})
            sock.sendall((f"POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {self.made['sandboxID']}\r\nE2b-Sandbox-Port: 49983\r\n"
                          f"X-Access-Token: {self.made['envdAccessToken']}\r\nContent-Type: application/connect+json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body)
            got = b""
            while b'"pid":' not in got or b"}" not in got.split(b'"pid":')[1]:
                piece = sock.recv(4096)
                assert piece, got
                got += piece
        return int(got.split(b'"pid":')[1].split(b"}")[0])


@pytest.fixture(scope="module")
def envd(hostile):
    return Envd(hostile)


def test_input_of_a_process(hostile, envd):
    pid = envd.start("exec cat >/dev/null")
    chosen, data = {"pid": pid}, base64.b64encode(bytes(9_000_000)).decode()
    with watch(hostile):
        assert envd.unary("/process.Process/SendInput", {"process": chosen, "input": {"stdin": data}}).status in (200, 429)
    small = {"data": {"process": chosen, "input": {"stdin": "AA=="}}}
    for messages, taken in (([small] * 19000, True), ([small] * 120000, False), ([{"keepalive": {}}] * 400000, False)):
        with watch(hostile):
            answer = envd.stream("/process.Process/StreamInput", {"start": {"process": chosen}}, *messages)
        assert (b"resource_exhausted" not in answer.body) == taken, answer
    with watch(hostile):
        envd.unary("/process.Process/SendSignal", {"process": chosen, "signal": 9})


def test_a_list_of_processes_with_large_arguments(hostile, envd):
    pids = [envd.start("sleep 600", process={"cmd": "/bin/sh", "args": ["-c", "sleep 600"], "envs": {f"A{k}": "\x01" * 30000 for k in range(5)}})
            for _ in range(60)]
    with watch(hostile):
        listed = envd.unary("/process.Process/List", {})
    assert listed.status == 200 and len(listed.json()["processes"]) >= 60
    with watch(hostile):
        assert hostile.request("GET", f"/v1/sandboxes/{envd.made['sandboxID']}/processes", timeout=300).status == 200
    for pid in pids:
        envd.unary("/process.Process/SendSignal", {"process": {"pid": pid}, "signal": 9})


def test_output_of_a_stream(hostile, envd):
    with watch(hostile):
        got = envd.stream("/process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", "head -c 60000000 /dev/zero; head -c 9000000 /dev/zero >&2"]},
                                                     "stdin": False})
    assert len(got.body) > 80_000_000
    flood = "python3 -c \"import os\nfor i in range(60000): os.write(1, b'o'), os.write(2, b'e')\""
    with watch(hostile):
        assert envd.stream("/process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", flood]}, "stdin": False}).status == 200


CELLS = {
    "wide": "'\\u00fc' * 1900000",
    "control": "import sys\nfor i in range(9): sys.stdout.write('\\x01' * 1000000)\n'\\x01' * 600000",
    "displays": "for i in range(20000): display({'text/plain': 'x' * 100}, raw=True)",
    "kinds": "display({f'x/{i}': '' for i in range(120000)}, raw=True)",
    "trace": "raise ValueError('\\u00fc' * 1900000)",
}


@pytest.mark.parametrize("what", CELLS)
def test_a_cell_in_lines(hostile, envd, what):
    with watch(hostile):
        answer = envd.ask("/execute", {"code": CELLS[what]}, port=49999)
    assert answer.status == 200 and b"end_of_execution" in answer.body[-200:], answer.body[-500:]


def test_a_list_of_a_directory(hostile, envd):
    assert envd.stream("/process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", "mkdir -p /tmp/many; cd /tmp/many; seq -f '%0200g' 30000 | xargs touch"]},
                                                  "stdin": False}).status == 200
    with watch(hostile):
        assert len(envd.unary("/filesystem.Filesystem/ListDir", {"path": "/tmp/many"}).json()["entries"]) == 30000
    with watch(hostile):
        envd.unary("/filesystem.Filesystem/ListDir", {"path": "/", "depth": 100})


def test_a_watcher_that_is_asked(hostile, envd):
    ident = envd.unary("/filesystem.Filesystem/CreateWatcher", {"path": "/tmp", "recursive": True, "includeEntry": True}).json()["watcherId"]
    with watch(hostile):
        envd.stream("/process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", "mkdir /tmp/w; cd /tmp/w; for i in 1 2 3; do seq -f '%0200g' 5000 | xargs touch; done"]},
                                               "stdin": False})
    for _ in range(5):
        with watch(hostile):
            assert envd.unary("/filesystem.Filesystem/GetWatcherEvents", {"watcherId": ident}).status in (200, 500)


def test_bodies_of_envd(hostile, envd):
    for body in (b"[" * 1000000, b'{"process":' + b'{"process":' * 90000, b"{" + b",".join(b'"%d":1' % i for i in range(90000)) + b"}",
                 b'{"path":"' + b"\\u0001" * 170000 + b'"}'):
        for path in ("/process.Process/Start", "/filesystem.Filesystem/Stat", "/process.Process/SendInput"):
            with watch(hostile):
                envd.ask(path, body)


def test_signed_urls_of_many_sandboxes(make_daemon_module):
    """A URL of E2B's does not say of which sandbox it is: the signature is tried with the token of each."""
    daemon = set_bar(make_daemon_module(SANDBOXES_MAX="40", SANDBOX_MEMORY_MB="64"))
    for _ in range(40):
        assert daemon.request("POST", "/v1/sandboxes", json={}).status == 201
    request = (f"GET /files?path=/{'x' * 4000}&username=user&signature=v1_{'A' * 43} HTTP/1.1\r\nHost: x\r\n\r\n").encode()
    with watch(daemon), socket.create_connection((daemon.host, daemon.port), 60) as sock:
        for _ in range(20):
            sock.sendall(request * 20)
            got = b""
            while got.count(b"HTTP/1.1 401") < 20:
                piece = sock.recv(1 << 16)
                assert piece, got[:500]
                got += piece


# ---- forms, watches, ports, terminals ----

def test_forms(hostile, files):
    body = form(*(part(f"f/{i}", b"") for i in range(2000)))
    with watch(hostile):
        assert upload(files, "/workspace", body).status == 200
    body = form(*(b'Content-Disposition: form-data; name="n"\r\n\r\nx' for _ in range(9999)), part("one", b""))
    with watch(hostile):
        assert upload(files, "/workspace", body).status == 200
    for content in (b"\r\n--the-boundar" * 2_000_000, b"\r\n-" * 9_000_000, b"\r" * 30_000_000, os.urandom(30_000_000)):
        with watch(hostile):
            assert upload(files, "/workspace", form(part("hard", content))).status == 200
    with watch(hostile):
        upload(files, "/workspace", b"--the-boundary\r\n" + b"x: y\r\n" * 4_000_000)


def test_a_watch(hostile, files, many):
    with watch(hostile):
        events = files.watch("/workspace", recursive=True, entries=True)
        files.sh("mkdir -p flood; cd flood; for i in 1 2 3 4; do seq -f '%0200g' 5000 | xargs touch; done; touch end; sync")
        seen = 0
        for kind, _ in events:
            seen += 1
            if seen > 5000 or kind == "overflow":
                break


def test_lists_in_parts(hostile, files, many):
    with watch(hostile):
        assert len(files.list(many)) == 20000
    with watch(hostile):
        assert len(files.list("/workspace", depth=20)) > 20000


# Answers every connection with what stands in the path: a piece, how often, and in writes of which size.
RAW = r'''
import os, socket, sys, threading
ANSWERS = {
    "hundreds": (b"HTTP/1.1 100 Continue\r\n\r\n" * 400, 300, b"HTTP/1.1 204 No\r\n\r\n"),
    "chunks": (b"1\r\nx\r\n" * 5000, 300, b"0\r\n\r\n"),
    "fields": (b"a: b\r\n" * 10, 500, b"\r\n"),
    "plain": (b"x" * 65536, 1500, b""),
}
HEADS = {"chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "fields": b"HTTP/1.1 200 OK\r\n",
         "plain": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"}
def serve(c):
    try:
        what = c.recv(65536).split()[1].decode().strip("/")
        piece, n, last = ANSWERS.get(what, (b"", 0, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
        c.sendall(HEADS.get(what, b""))
        for _ in range(n): c.sendall(piece)
        c.sendall(last)
        c.shutdown(socket.SHUT_WR)
        while c.recv(65536): pass
    except OSError: pass
    c.close()
s = socket.create_server(("127.0.0.1", 4001), backlog=64)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
'''


def test_servers_inside(hostile, files):
    files.write("/tmp/raw.py", RAW.encode())
    files.start("exec python3 /tmp/raw.py")
    at = f"{files.at}/ports/4001"
    harness.wait_until(lambda: hostile.request("GET", f"{at}/").status == 200, "the server inside listens")
    for what in ("hundreds", "chunks", "fields", "plain"):
        with watch(hostile):
            hostile.request("GET", f"{at}/{what}", timeout=300)
    with watch(hostile):
        assert hostile.request("POST", f"{at}/", body=bytes(60_000_000), timeout=300).status == 200
    pieces = b"1;" + b"x" * 20 + b"\r\nx\r\n"
    with watch(hostile), socket.create_connection((hostile.host, hostile.port), 120) as sock:
        sock.sendall(f"POST {at}/ HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {hostile.secret}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(60):
                sock.sendall(pieces * 3000)
            sock.sendall(b"0\r\n\r\n")
        except OSError:
            pass  # the server has answered, and reads no more


def frames(opcode, data, n):
    """n small frames of a client, one after the other."""
    key = b"\1\2\3\4"
    masked = bytes(b ^ key[i % 4] for i, b in enumerate(data))
    return (bytes([opcode, 0x80 | len(data)]) + key + masked) * n


def test_a_web_socket(hostile):
    box = Box(hostile)
    process = box.start("exec cat >/dev/null", stdin=True)
    with sockets.WebSocket(hostile, f"{box.path}{process.path}/output") as ws:
        def swallow():
            try:
                while ws.socket.recv(1 << 16):
                    pass
            except OSError:
                pass
        reader = threading.Thread(target=swallow, daemon=True)
        reader.start()
        for burst in (frames(0x89, b"x" * 125, 200000),              # pings
                      frames(0x82, b"x", 400000),                    # messages of a byte
                      frames(2, b"", 1) + frames(0, b"", 400000) + frames(0x80, b"", 1),   # one of empty frames
                      frames(2, b"x", 1) + frames(0, b"x", 400000) + frames(0x80, b"x", 1),  # one in single bytes
                      b"".join(bytes([0x82, 0x80 | 127]) + struct.pack(">Q", 1 << 20) + bytes(4) + bytes(1 << 20) for _ in range(20))):
            with watch(hostile):
                ws.socket.sendall(burst)
        ws.socket.shutdown(socket.SHUT_RDWR)
        reader.join()
    box.request("DELETE", "")


def test_a_terminal(hostile):
    box = Box(hostile)
    with watch(hostile), sockets.WebSocket(hostile, f"{box.path}/terminals?keep=false") as ws:
        ws.receive()
        ws.send(b"stty -echo; head -c 30000000 /dev/zero; yes | head -c 9000000; echo the''-end\n")
        got, tail = None, b""
        while got is None or b"the-end" not in tail:
            got = ws.receive()  # a terminal that runs ahead tells a gap
            tail = (tail + got)[-100:] if isinstance(got, bytes) else b""
    box.request("DELETE", "")


# ---- lists of sandboxes, webhooks, sets of packages ----

def test_lists_of_sandboxes_with_much_metadata(make_daemon_module):
    daemon = set_bar(make_daemon_module(SANDBOXES_MAX="100", SANDBOX_MEMORY_MB="64"))
    assert daemon.request("POST", "/v1/sandboxes", json={"metadata": {f"k{i:03}": "\x01" * 61 for i in range(256)}}).status == 400
    for _ in range(100):
        with watch(daemon):
            made = daemon.request("POST", "/v1/sandboxes", json={"metadata": {f"k{i:03}": "\x01" * 60 for i in range(256)}})
        assert made.status == 201, made
    for path, headers in (("/v1/sandboxes", {}), ("/v1/sandboxes?metadata=k001%3Dx", {}), ("/v2/sandboxes", {"X-API-Key": daemon.secret}),
                          ("/v2/sandboxes?metadata=" + "&".join(f"k{i}%3Dx" for i in range(200)), {"X-API-Key": daemon.secret})):
        with watch(daemon):
            assert daemon.request("GET", path, headers=headers, timeout=300).status == 200, path
    with watch(daemon):
        client = mcp_client.Client(daemon)
        client.call("list_sandboxes")


def test_webhooks(make_daemon_module):
    """Many at a time, large ones, to hosts that hang, refuse and answer without end."""
    hang, endless = socket.create_server(("127.0.0.1", 0), backlog=64), socket.create_server(("127.0.0.1", 0), backlog=64)
    stop = threading.Event()

    def answer():
        while not stop.is_set():
            try:
                connection = endless.accept()[0]
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(200):
                    connection.sendall(b"x" * 65536)
            except OSError:
                pass
    threading.Thread(target=answer, daemon=True).start()
    daemon = set_bar(make_daemon_module(WEBHOOK_HOSTS="127.0.0.1:*", WEBHOOK_SECRET="x", WEBHOOK_BASE_MS=20, WEBHOOK_ANSWER_MS=2000, OUTPUT_MAX="20000000"))
    urls = [f"http://127.0.0.1:{hang.getsockname()[1]}/", f"http://127.0.0.1:{endless.getsockname()[1]}/", "http://127.0.0.1:9/"]
    try:
        with watch(daemon):
            for i in range(60):
                assert daemon.execute("echo x", "shell", webhook=urls[i % 3])["status"] == "success"
        for url in urls:
            with watch(daemon):
                assert daemon.execute("head -c 9000000 /dev/zero", "shell", webhook=url)["status"] == "success"
        with watch(daemon):
            body = {"code": "true", "language": "shell", "webhook": {"url": urls[2] + "\x01" * 100000, "secret": "s" * 100000}}
            assert daemon.request("POST", "/execute", json=body).status == 400
    finally:
        stop.set()
        hang.close()
        endless.close()


def test_lists_of_packages(make_daemon_module):
    daemon = set_bar(make_daemon_module(PACKAGE_INDEX="http://127.0.0.1:9/simple/", PACKAGE_REGISTRY="http://127.0.0.1:9/", DEPENDENCY_TIMEOUT="20"))
    names = [f"p{i}" + "x" * 100 for i in range(9000)]
    for lists in ({"python": names}, {"npm": names}, {"python": ["a" + "[" + "b," * 400 + "b]"] * 2000}, {"python": ["\x01" * 1000] * 900}, {"python": ["a>=1," * 150 + ">1"] * 1000}):
        for path, body in (("/v1/packages", lists), ("/execute", {"code": "true", "language": "shell", "packages": lists}), ("/v1/sandboxes", {"packages": lists})):
            with watch(daemon):
                answer = daemon.request("POST", path, json=body, timeout=300, headers={"Prefer": "respond-async"})
            assert answer.status in (202, 400, 413, 422, 501, 503), answer
    for _ in range(5):
        with watch(daemon):
            assert daemon.request("GET", "/v1/packages", timeout=300).status == 200
