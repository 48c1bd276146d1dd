# SPDX-License-Identifier: MIT
"""Contents of files: uploads of one and of many, broken ones, slow ones, ranges, signed URLs."""
import email.utils
import hashlib
import http.client
import os
import random
import secrets
import socket
import time
import urllib.parse

import pytest

import files_of
import harness

LARGE = 256 << 20
MEMORY_GROWTH = 24 << 20  # of the daemon, whatever the size of a file


@pytest.fixture(scope="module")
def box(daemon):
    with files_of.sandbox(daemon) as files:
        yield files


@pytest.fixture
def here(box):
    path = "/workspace/transfer-" + secrets.token_hex(6)
    box.sh(f"mkdir -p '{path}'")
    yield path
    box.sh(f"rm -rf '{path}'")


def part(name, data, field="file"):
    return (f'Content-Disposition: form-data; name="{field}"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n").encode() + data


def form(*parts, mark=b"the-boundary"):
    return b"".join(b"--" + mark + b"\r\n" + p + b"\r\n" for p in parts) + b"--" + mark + b"--\r\n"


def upload(box, here, body, mark="the-boundary", **kw):
    return box.daemon.request("POST", f"{box.at}/files?path={urllib.parse.quote(here)}", body=body, timeout=120,
                              headers={"Content-Type": f"multipart/form-data; boundary={mark}", **kw})


def anonymous(daemon, method, url, body=None, headers=None):
    return daemon.request(method, url, body=body, headers={"Authorization": None, **(headers or {})})


def head_of(box, method, path, *headers):
    return (f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {box.daemon.secret}\r\n"
            + "".join(h + "\r\n" for h in headers) + "\r\n").encode()


# ---- forms ----

def test_many_files_in_one_form(box, here):
    data = {f"d{i % 7}/f{i}": os.urandom(i * 37) for i in range(200)}
    response = upload(box, here, form(*(part(n, d) for n, d in data.items())))
    assert response.status == 200, response
    files = response.json()["files"]
    assert [(f["path"], f["size"]) for f in files] == [(f"{here}/{n}", len(d)) for n, d in data.items()]
    for name in random.sample(sorted(data), 20):
        assert box.read(f"{here}/{name}").body == data[name]


def test_a_form_may_come_in_any_pieces(box, here):
    body = form(part("a", b"\r\n--the-boundar\r\r\n--"), b'Content-Disposition: form-data; name="other"\r\n\r\nno', part("b", b""))
    for step in (1, 2, 3, 7, 64):
        with socket.create_connection((box.daemon.host, box.daemon.port), harness.HTTP_TIMEOUT) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(head_of(box, "POST", f"{box.at}/files?path={here}", "Transfer-Encoding: chunked",
                                 "Content-Type: multipart/form-data; boundary=\"the-boundary\"", "Connection: close"))
            for at in range(0, len(body), step):
                piece = body[at:at + step]
                sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            sock.sendall(b"0\r\n\r\n")
            answer = b"".join(iter(lambda: sock.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert box.read(f"{here}/a").body == b"\r\n--the-boundar\r\r\n--"
        assert box.read(f"{here}/b").body == b""


@pytest.mark.parametrize("body, status", [
    (b"", 400), (b"nothing", 400), (form(), 400), (form(part("a", b"x"))[:-6], 400),
    (form(b'Content-Disposition: form-data; name="f"\r\n\r\nx'), 400), (form(part("", b"x")), 400),
    (form(part("/etc/passwd", b"x")), 400), (form(part("../x", b"x")), 400), (form(part("a/../../x", b"x")), 400),
    (form(part("a/..", b"x")), 400), (form(part("a/", b"x")), 400), (form(part("a", b"1"), part("a", b"2")), 400),
    (form(part("n" * 300, b"x")), 400), (form(b"No-Colon\r\n\r\nx"), 400), (form(b"A: b\r\n" * 9000 + b"\r\nx"), 400),
    (form(part("a", b"1"), part("a/b", b"2")), 404)])
def test_a_bad_form_is_refused(box, here, body, status):
    response = upload(box, here, body)
    assert response.status == status, response
    assert box.sh("ls -A", cwd=here) in ("", "a\n")  # a part that was whole stays


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=", "text/plain", "",
                                  "multipart/form-data; boundary=" + "x" * 71, "multipart/mixed; boundary=x"])
def test_a_form_needs_a_boundary(box, here, kind):
    response = box.daemon.request("POST", f"{box.at}/files?path={here}", body=form(part("a", b"1")),
                                  headers={"Content-Type": kind})
    assert response.status == 400, response
    assert box.sh("ls -A", cwd=here) == ""


def test_a_link_out_of_the_directory_leads_no_further_than_the_tenant_may(box, here):
    box.sh("ln -s /proc/1 out; ln -s / root", cwd=here)
    assert upload(box, here, form(part("out/comm", b"x"))).status in (400, 403, 404, 500)
    assert upload(box, here, form(part("root/tmp/by-link", b"x"))).status == 200  # it is the tenant's own link
    assert box.sh("cat /tmp/by-link; rm /tmp/by-link") == "x"


# ---- breaking off ----

def free_inodes(box):
    return int(box.sh("stat -f -c %d /workspace"))


@pytest.mark.parametrize("old", [b"old content", None])
def test_a_broken_upload_leaves_the_old_file_or_none(box, here, old):
    if old is not None:
        box.write(f"{here}/f", old)
    before, free = box.sh("ls -A", cwd=here), free_inodes(box)
    mark = b"--the-boundary\r\n" + part("f", b"")
    for start in (head_of(box, "PUT", box.url(f"{here}/f"), "Content-Length: 3000000"),
                  head_of(box, "PUT", box.url(f"{here}/f"), "Transfer-Encoding: chunked") + b"10000\r\n",
                  head_of(box, "POST", f"{box.at}/files?path={here}", "Content-Length: 3000000",
                          "Content-Type: multipart/form-data; boundary=the-boundary") + mark):
        with socket.create_connection((box.daemon.host, box.daemon.port), harness.HTTP_TIMEOUT) as sock:
            sock.sendall(start + b"n" * 60000)
            harness.wait_until(lambda: free_inodes(box) < free, "a file without a name")
        harness.wait_until(lambda: free_inodes(box) == free, "the end of that file")
    assert box.sh("ls -A", cwd=here) == before
    assert box.read(f"{here}/f").status == (404 if old is None else 200)
    if old is not None:
        assert box.read(f"{here}/f").body == old


def test_a_full_disk_leaves_the_old_files(daemon):
    with files_of.sandbox(daemon, limits={"disk_mb": 4}) as small:
        small.write("/workspace/f", b"old")
        response = upload(small, "/workspace", form(part("first", b"1"), part("f", b"x" * (8 << 20)), part("last", b"2")))
        assert response.status == 507, response
        assert small.read("/workspace/f").body == b"old"
        assert small.sh("ls -A /workspace") == "f\nfirst\n"


# ---- size and speed ----

def peak(pid):
    return int(harness.read_proc(pid, "status").split(b"VmHWM:")[1].split()[0]) * 1024


def test_size_costs_the_daemon_no_memory(box, here):
    piece = os.urandom(1 << 20)
    digest = hashlib.sha256(piece * (LARGE >> 20)).hexdigest()
    before = peak(box.daemon.pid)
    for method, path, prefix, suffix, kind in [
            ("PUT", box.url(f"{here}/put"), b"", b"", "application/octet-stream"),
            ("POST", f"{box.at}/files?path={here}", b"--the-boundary\r\n" + part("form", b""), b"\r\n--the-boundary--\r\n",
             "multipart/form-data; boundary=the-boundary")]:
        connection = http.client.HTTPConnection(box.daemon.host, box.daemon.port, timeout=120)
        connection.putrequest(method, path)
        connection.putheader("Authorization", "Bearer " + box.daemon.secret)
        connection.putheader("Content-Type", kind)
        connection.putheader("Content-Length", str(len(prefix) + LARGE + len(suffix)))
        connection.endheaders()
        connection.send(prefix)
        for _ in range(LARGE >> 20):
            connection.send(piece)
        connection.send(suffix)
        assert connection.getresponse().status == 200
        connection.close()
    assert box.sh("sha256sum put form | cut -d' ' -f1", cwd=here, timeout=120).split() == [digest] * 2
    connection = http.client.HTTPConnection(box.daemon.host, box.daemon.port, timeout=120)
    connection.request("GET", box.url(f"{here}/put"), headers={"Authorization": "Bearer " + box.daemon.secret})
    response, found = connection.getresponse(), hashlib.sha256()
    while data := response.read(1 << 20):
        found.update(data)
    connection.close()
    assert found.hexdigest() == digest
    assert peak(box.daemon.pid) - before < MEMORY_GROWTH


def test_slow_clients_hold_up_nobody(box, here):
    """Many uploads and lists that stand still: other requests of the sandbox are answered."""
    box.sh("python3 -c 'for i in range(20000): open(\"%0100d\" % i, \"w\")'", cwd=here, timeout=120)
    socks = []
    try:
        for i in range(40):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect((box.daemon.host, box.daemon.port))
            socks.append(sock)
            if i % 2:
                body = ('{"path": "%s", "limit": 20000}' % here).encode()
                sock.sendall(head_of(box, "POST", f"{box.at}/files/list", "Content-Type: application/json",
                                     f"Content-Length: {len(body)}") + body)
            else:
                sock.sendall(head_of(box, "PUT", box.url(f"{here}/slow{i}"), "Content-Length: 100") + b"x")
        for i in range(10):
            box.write(f"{here}/fast", b"%d" % i)
            assert box.read(f"{here}/fast").body == b"%d" % i
            assert box.sh("echo fast") == "fast\n"
    finally:
        for sock in socks:
            sock.close()
    harness.wait_until(lambda: box.sh("ls -A | grep -c slow || true", cwd=here) == "0\n", "no part of a slow upload")


# ---- reading ----

@pytest.mark.parametrize("value, status, content", [
    ("bytes=0-3", 206, b"0123"), ("bytes=4-", 206, b"456789"), ("bytes=-2", 206, b"89"), ("bytes=9-99", 206, b"9"),
    ("bytes=10-", 416, None), ("bytes=-0", 416, None), ("bytes=3-1", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"),
    ("bytes=99999999999999999999-", 416, None)])
def test_ranges(box, here, value, status, content):
    box.write(f"{here}/f", b"0123456789")
    response = box.read(f"{here}/f", headers={"Range": value})
    assert response.status == status
    if content is not None:
        assert response.body == content
    else:
        assert response.headers["Content-Range"] == "bytes */10"


def test_a_file_is_sent_again_only_if_it_changed(box, here):
    box.write(f"{here}/f", b"0123456789")
    box.sh("touch -d @1000000000 f", cwd=here)
    first = box.read(f"{here}/f")
    stamp = first.headers["Last-Modified"]
    assert stamp == "Sun, 09 Sep 2001 01:46:40 GMT"
    assert box.read(f"{here}/f", headers={"If-Modified-Since": stamp}).status == 304
    assert box.read(f"{here}/f", headers={"If-None-Match": first.headers["ETag"]}).status == 304
    assert box.read(f"{here}/f", headers={"If-Modified-Since": email.utils.formatdate(999999999, usegmt=True)}).status == 200
    assert box.read(f"{here}/f", headers={"If-None-Match": '"other"', "If-Modified-Since": stamp}).status == 200
    assert box.read(f"{here}/f", headers={"If-Modified-Since": "soon"}).status == 200
    ranged = {"Range": "bytes=1-2"}
    assert box.read(f"{here}/f", headers={**ranged, "If-Range": stamp}).status == 206
    box.sh("touch f", cwd=here)
    assert box.read(f"{here}/f", headers={"If-Modified-Since": stamp}).status == 200
    assert box.read(f"{here}/f", headers={**ranged, "If-Range": stamp}).status == 200


# ---- signed URLs ----

def signed(box, path, **fields):
    response = box.ask("sign", path=path, **fields)
    assert response.status == 200, response
    return response.json()["url"]


def test_a_signed_url_reads_one_file_without_the_secret(daemon, box, here):
    name = f"{here}/a b+ü%?#.txt"
    box.write(name, b"content")
    url = signed(box, name)
    assert anonymous(daemon, "GET", url).body == b"content"
    assert anonymous(daemon, "HEAD", url).status == 200
    assert anonymous(daemon, "GET", url, headers={"Range": "bytes=1-2"}).body == b"on"
    box.sh(f"rm '{name}'")
    assert anonymous(daemon, "GET", url).status == 404


def test_a_signed_url_writes_one_file_without_the_secret(daemon, box, here):
    url = signed(box, f"{here}/f", method="PUT")
    assert anonymous(daemon, "PUT", url, b"content").status == 200
    assert box.read(f"{here}/f").body == b"content"
    assert anonymous(daemon, "GET", url).status == 401
    assert anonymous(daemon, "DELETE", url).status == 401


def test_a_signed_url_opens_nothing_else(daemon, box, here):
    for name in ("f", "other", "f2"):
        box.write(f"{here}/{name}", name.encode())
    with files_of.sandbox(daemon, name="another" + secrets.token_hex(4)) as another:
        another.sh(f"mkdir -p {here}")
        another.write(f"{here}/f", b"of another")
        url = signed(box, f"{here}/f")
        path, query = url.split("?")
        values = dict(urllib.parse.parse_qsl(query))
        later = {**values, "expires": str(int(values["expires"]) + 1)}

        def opened(path=path, method="GET", body=None, **fields):
            return anonymous(daemon, method, path + "?" + urllib.parse.urlencode(fields or values), body).status

        assert opened() == 200
        for other in (path.replace("/f", "/other"), path + "2", path[:-1], path + "/", path + "/../other",
                      path.replace(here, here + "/."), path.replace(box.id, another.id), path.replace(box.id, "default"),
                      path.rsplit("/", 2)[0], f"{box.at}", f"{box.at}/files/stat"):
            assert opened(other) in (401, 404), other
        assert opened(method="PUT", body=b"x") == 401
        assert opened(method="DELETE") == 401
        assert opened(**later) == 401
        assert opened(expires=values["expires"]) == 401
        assert opened(signature=values["signature"]) == 401
        assert opened(**{**values, "signature": values["signature"][:-1]}) == 401
        assert opened(**{**values, "signature": values["signature"] + "A"}) == 401
        assert opened(**{**values, "signature": "v1_" + "A" * 43}) == 401
        assert opened(**{**values, "archive": "tar"}) == 401
        for expires in ("0", "-1", " " + values["expires"], values["expires"] + " ", "+" + values["expires"],
                        "0x" + values["expires"], values["expires"] + ".5", "9" * 30, ""):
            assert opened(**{**values, "expires": expires}) == 401, expires
        # the first of two counts for both the check and the use
        assert anonymous(daemon, "GET", f"{path}?{urllib.parse.urlencode(later)}&{query}").status == 401
        # by a name that could be another sandbox's tomorrow
        named = another.told("sign", path=f"{here}/f")["url"]
        assert anonymous(daemon, "GET", named).body == b"of another"
        assert another.id in named
        # and what the secret opens, it still does
        assert daemon.request("GET", path + "?signature=wrong&expires=1").status == 200
        assert box.read(f"{here}/f").body == b"f"


def test_a_signed_url_ends_at_its_time(daemon, box, here):
    box.write(f"{here}/f", b"x")
    url = signed(box, f"{here}/f", expires_in=1)
    ends = int(urllib.parse.parse_qs(url.split("?")[1])["expires"][0])
    harness.wait_until(lambda: anonymous(daemon, "GET", url).status == 401, "its end")
    assert time.time() >= ends


def test_a_signed_url_ends_with_its_sandbox(daemon):
    with files_of.sandbox(daemon) as own:
        own.write("/workspace/f", b"x")
        url = signed(own, "/workspace/f")
        assert anonymous(daemon, "GET", url).status == 200
        assert daemon.request("DELETE", own.at).status == 204
        assert anonymous(daemon, "GET", url).status == 401
