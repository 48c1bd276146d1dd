# SPDX-License-Identifier: MIT
"""?archive=tar: directories as streams, unpacked and packed inside the sandbox. The other side is the tar program."""
import http.client
import io
import os
import pathlib
import re
import secrets
import select
import socket
import subprocess
import tarfile
import threading
import urllib.parse

import harness
import pytest
from koyeb import Sandbox

FORMATS = ["v7", "oldgnu", "gnu", "ustar", "posix"]


class Files(Sandbox):
    """The archives of one sandbox."""

    def __init__(self, daemon, at="/v1/sandboxes/default"):
        super().__init__(daemon, at)

    def url(self, path):
        return f"{self.at}/files{urllib.parse.quote(path)}?archive=tar"

    def put(self, path, data, **kw):
        return self.daemon.request("PUT", self.url(path), body=data, timeout=120, **kw)

    def fetch(self, path, method="GET"):
        return self.daemon.request(method, self.url(path), timeout=120)


@pytest.fixture
def box(daemon):
    return Files(daemon)


@pytest.fixture
def here(box):
    path = "/workspace/a-" + secrets.token_hex(6)
    yield path
    box.sh(f"chmod -R u+rwx {path} 2>/dev/null; rm -rf {path}")


@pytest.fixture
def outside(tmp_path):
    """A tree with one of everything."""
    top = tmp_path / "tree"
    (top / "dir/sub").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "file").write_bytes(b"content\n")
    (top / "dir/sub/large").write_bytes(secrets.token_bytes(300_001))
    (top / "dir/exactly").write_bytes(b"x" * 512)
    (top / "none").write_bytes(b"")
    (top / "script").write_text("#!/bin/sh\n")
    (top / "script").chmod(0o755)
    (top / "secret").write_text("s")
    (top / "secret").chmod(0o400)
    (top / "ünï \n odd").write_text("odd")
    (top / "link").symlink_to("dir/sub/large")
    (top / "dangling").symlink_to("/nowhere/at/all")
    os.link(top / "file", top / "dir/same")
    deep = top / ("d" * 90) / ("e" * 90) / ("f" * 90)
    deep.mkdir(parents=True)
    (deep / ("g" * 200)).write_text("long name")
    (top / "long-link").symlink_to("t" * 300)
    os.utime(top / "file", (1_000_000_000, 1_000_000_000))
    os.utime(top / "dir", (1_100_000_000, 1_100_000_000))
    (top / "closed").mkdir()
    (top / "closed/in").write_text("in")
    (top / "closed").chmod(0o500)
    yield top
    (top / "closed").chmod(0o700)


def pack(top, *options):
    """What the tar program makes of a directory."""
    return subprocess.run(["tar", "-C", str(top), *options, "-c", "."], check=True, stdout=subprocess.PIPE).stdout


def unpack(data, top):
    top.mkdir()
    subprocess.run(["tar", "-C", str(top), "-xp", "--no-same-owner"], input=data, check=True)
    return top


def everything(top):
    """Without following a link: some lead nowhere, one is longer than a name may be."""
    return sorted(pathlib.Path(folder, name) for folder, dirs, files in os.walk(top) for name in dirs + files)


def describe(top):
    """Everything that should survive, by name."""
    found = {}
    inodes = {}
    for path in everything(top):
        st, name = path.lstat(), str(path.relative_to(top))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("dir", st.st_mode & 0o777)
        else:
            same = inodes.setdefault(st.st_ino, name)
            found[name] = ("file", st.st_mode & 0o777, path.read_bytes(), int(st.st_mtime), same)
    return found


# ---- both ways, with the tar program ----


@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back_again(box, here, outside, tmp_path, kind):
    if kind in ("v7", "ustar"):  # what these formats cannot say
        (outside / "long-link").unlink()
    if kind == "v7":
        subprocess.run(["rm", "-rf", str(outside / ("d" * 90))], check=True)
    if kind == "ustar":
        deep = outside / ("d" * 90) / ("e" * 90) / ("f" * 90)
        (deep / ("g" * 200)).unlink()
        deep.rmdir()
    r = box.put(here, pack(outside, f"--format={kind}"))
    assert r.status == 200, r
    files = [p for p in everything(outside) if not p.is_symlink() and p.is_file() and p.name != "same"]
    assert list(r.json()) == ["path", "entries", "size"] and r.json()["path"] == here
    assert r.json()["size"] == sum(p.stat().st_size for p in files)
    assert r.json()["entries"] == len(everything(outside)) + 1
    got = box.fetch(here)
    assert got.status == 200 and got.headers["Content-Type"] == "application/x-tar"
    assert got.headers["Content-Disposition"] == f'attachment; filename="{here[11:]}.tar"'
    assert describe(unpack(got.body, tmp_path / "back")) == describe(outside)


def test_what_is_inside_looks_as_it_did_outside(box, here, outside):
    assert box.put(here, pack(outside)).status == 200
    assert box.sh(f"cd {here}; stat -c '%a %U %Y' file dir script secret closed; readlink link dangling; "
                  "stat -c %h file; cat closed/in") == (
        "644 user 1000000000\n755 user 1100000000\n"
        + "".join(f"{m} user {int((outside / n).stat().st_mtime)}\n"
                  for n, m in (("script", 755), ("secret", 400), ("closed", 500)))
        + "dir/sub/large\n/nowhere/at/all\n2\nin")


def test_names_are_sorted_and_the_archive_is_always_the_same(box, here):
    box.sh(f"mkdir -p {here}/b {here}/a; cd {here}; touch b/2 b/1 a/z c B; mkfifo p; ln b/1 a/same")
    first = box.fetch(here).body
    names = tarfile.open(fileobj=io.BytesIO(first)).getnames()
    assert names == ["B", "a", "a/same", "a/z", "b", "b/1", "b/2", "c"], "FIFOs are left out"
    assert box.fetch(here).body == first


def test_an_empty_directory(box, here, tmp_path):
    box.sh(f"mkdir {here}")
    got = box.fetch(here)
    assert got.body == bytes(1024)
    assert box.put(here + "/x", got.body).json() == {"path": here + "/x", "entries": 0, "size": 0}
    assert box.sh(f"ls -A {here}") == "x\n"


def test_numbers_that_do_not_fit_the_old_fields(box, here, tmp_path):
    box.sh(f"mkdir {here}; cd {here}; touch -d '1950-01-02 03:04:05Z' old; touch -d '2400-01-01Z' new")
    back = unpack(box.fetch(here).body, tmp_path / "back")
    assert int((back / "old").stat().st_mtime) == -631054555
    assert int((back / "new").stat().st_mtime) == 13569465600
    assert box.put(here + "/2", pack(back, "--format=posix")).status == 200
    assert box.put(here + "/3", pack(back, "--format=gnu")).status == 200
    for copy in "23":
        assert box.sh(f"stat -c %Y {here}/{copy}/old {here}/{copy}/new") == "-631054555\n13569465600\n"


def test_fractions_of_seconds_are_taken(box, here, outside):
    os.utime(outside / "file", ns=(0, 1_234_567_890_123_456_789))
    assert box.put(here, pack(outside, "--format=posix")).status == 200
    assert box.sh(f"stat -c %.9Y {here}/file") == "1234567890.123456789\n"


def test_archives_of_another_program(box, here):
    """Python's own writer, in its three formats."""
    for number, kind in enumerate((tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w", format=kind) as t:
            info = tarfile.TarInfo("p/q/" + "n" * 90)
            info.size = 5
            t.addfile(info, io.BytesIO(b"hello"))
        assert box.put(f"{here}/{number}", data.getvalue()).json()["entries"] == 1
        assert box.sh(f"cat {here}/{number}/p/q/n*") == "hello"


# ---- onto what is there ----


def member(name, data=b"", kind=tarfile.REGTYPE, link="", mode=0o644):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(data)
    return info, data


def archive(*members, kind=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as t:
        for info, data in members:
            t.addfile(info, io.BytesIO(data) if info.size else None)
    return out.getvalue()


def test_what_is_there_is_replaced_or_joined(box, here):
    box.sh(f"mkdir -p {here}/d {here}/real; cd {here}; echo old > f; echo keep > d/keep; echo target > target;"
           "ln -s target l; ln -s real inside; echo x > was-file")
    r = box.put(here, archive(
        member("f", b"new"), member("d", kind=tarfile.DIRTYPE, mode=0o750), member("d/more", b"more"),
        member("l", b"no link now"), member("inside/through", b"t"), member("was-file", kind=tarfile.DIRTYPE)))
    assert r.status == 200, r
    assert box.sh(f"cd {here}; cat f d/keep d/more l target real/through; readlink inside; stat -c '%F %a' l was-file d"
                  ) == "newkeep\nmoreno link nowtarget\ntreal\nregular file 644\ndirectory 644\ndirectory 750\n"
    box.sh(f"chmod 755 {here}/was-file")


def test_a_directory_is_not_replaced_by_a_file(box, here):
    box.sh(f"mkdir -p {here}/d/full")
    r = box.put(here, archive(member("d/full", b"x")))
    assert r.status == 409 and r.json()["error_detail"] == "open d/full: is a directory"


def test_hard_links_lead_to_what_was_unpacked(box, here):
    r = box.put(here, archive(member("a/f", b"one"), member("b/g", kind=tarfile.LNKTYPE, link="a/f"),
                              member("b/g", kind=tarfile.LNKTYPE, link="./a//f")))
    assert r.status == 200, r
    assert box.sh(f"cd {here}; stat -c %h a/f; cat b/g") == "2\none"
    r = box.put(here, archive(member("x", kind=tarfile.LNKTYPE, link="nothing")))
    assert r.status == 404 and "link x" in r.json()["error_detail"]


def test_set_id_bits_and_owners_are_not_taken(box, here):
    info, data = member("f", b"x", mode=0o6755)
    info.uid = info.gid = 4711
    assert box.put(here, archive((info, data))).status == 200
    assert box.sh(f"stat -c '%a %U' {here}/f") == "755 user\n"


# ---- what is refused ----


REFUSED = [
    (member("/etc/x", b"x"), "unpack /etc/x: absolute names are not taken"),
    (member("../x", b"x"), "unpack ../x: names with '..' are not taken"),
    (member("a/../../x", b"x"), "unpack a/../../x: names with '..' are not taken"),
    (member("a/..", kind=tarfile.DIRTYPE), "unpack a/../: names with '..' are not taken"),
    (member("h", kind=tarfile.LNKTYPE, link="/etc/passwd"), "unpack h: absolute names are not taken"),
    (member("h", kind=tarfile.LNKTYPE, link="../../etc/passwd"), "unpack h: names with '..' are not taken"),
    (member("fifo", kind=tarfile.FIFOTYPE), "unpack fifo: devices, FIFOs and sockets are not taken"),
    (member("null", kind=tarfile.CHRTYPE), "unpack null: devices, FIFOs and sockets are not taken"),
    (member("sda", kind=tarfile.BLKTYPE), "unpack sda: devices, FIFOs and sockets are not taken"),
    (member("?", kind=b"Q"), "unpack ?: entries of this type are not supported"),
    (member("x" * 5000, b"x"), "a name is too long"),
]


@pytest.mark.parametrize("bad,words", REFUSED, ids=[w.split(":")[0][:24] for _, w in REFUSED])
def test_names_and_types_that_are_not_taken(box, here, bad, words):
    r = box.put(here, archive(member("before", b"b"), bad, member("after", b"a")))
    assert r.status == 400 and r.json()["error_code"] == "Executor.ValidationError", r
    assert words in r.json()["error_detail"]
    assert box.sh(f"ls -A {here}") == "before\n", "what came before stays"


def test_a_link_out_of_the_directory_is_not_followed(box, here):
    box.sh("rm -rf /workspace/elsewhere; mkdir /workspace/elsewhere")
    for target in ("/workspace/elsewhere", "../elsewhere"):
        r = box.put(here, archive(member("out", kind=tarfile.SYMTYPE, link=target), member("out/x", b"x")))
        assert r.status == 400 and "out/x" in r.json()["error_detail"], r
    r = box.put(here, archive(member("h", kind=tarfile.LNKTYPE, link="out/x")))
    assert r.status == 400, r
    assert box.sh("ls -A /workspace/elsewhere") == ""


GOOD = archive(member("first", b"1" * 600), member("second", b"2" * 600), kind=tarfile.USTAR_FORMAT)
MALFORMED = [
    (b"", "the archive ends without its end mark (byte 0)"),
    (b"x", "the archive ends in the middle of an entry (byte 1)"),
    (b"x" * 512, "this is no tar header: its checksum is wrong (byte 0)"),
    (b"\x1f\x8b" + bytes(600), "this is no tar header: its checksum is wrong (byte 0)"),
    (GOOD[:1000], "unpack first: the archive ends in the middle of an entry (byte 1000)"),
    (GOOD[:1536], "the archive ends without its end mark (byte 1536)"),
    (GOOD[:1600], "the archive ends in the middle of an entry (byte 1600)"),
    (GOOD[:1536] + b"X" + GOOD[1537:], "this is no tar header: its checksum is wrong (byte 1536)"),
]


@pytest.mark.parametrize("data,words", MALFORMED)
def test_what_is_no_archive_is_told(box, here, data, words):
    r = box.put(here, data)
    assert r.status == 400 and words in r.json()["error_detail"], r
    assert box.sh(f"cat {here}/second 2>/dev/null || echo none") == "none\n"


def test_a_file_cut_off_is_not_left_behind(box, here):
    assert box.put(here, GOOD[:2100]).status == 400
    assert box.sh(f"ls -A {here}") == "first\n"


@pytest.mark.parametrize("method,path,status", [
    ("GET", "/workspace/nothing", 404), ("GET", "/etc/passwd", 409), ("HEAD", "/etc/passwd", 409),
    ("HEAD", "/workspace/nothing", 404), ("HEAD", "/workspace", 200), ("PUT", "/etc/passwd", 409),
    ("PUT", "/new-at-the-root", 403), ("PUT", "/proc", 404),
])
def test_directories_that_cannot_be(box, method, path, status):
    body = archive(member("x", b"x")) if method == "PUT" else None
    r = box.daemon.request(method, box.url(path), body=body)
    assert r.status == status, r


def test_other_kinds_are_refused(daemon):
    for method in ("GET", "PUT"):
        r = daemon.request(method, "/v1/sandboxes/default/files/workspace?archive=zip", body=b"" if method == "PUT" else None)
        assert r.status == 400 and "archive" in r.json()["error_detail"]


def test_limits_have_names(make_daemon):
    box = Files(make_daemon(ARCHIVE_ENTRIES_MAX=5, ARCHIVE_DEPTH_MAX=3, ARCHIVE_BYTES_MAX=100_000))
    for data, words in (
            (archive(*(member(str(i)) for i in range(6))), "more entries than allowed"),
            (archive(member("a/b/c/d", b"x")), "directories are nested deeper than allowed"),
            (archive(member("a", bytes(200_000))), "more bytes than allowed"),
            (archive(*(member(str(i), bytes(40_000)) for i in range(3))), "more bytes than allowed")):
        r = box.put("/workspace/up", data)
        assert (r.status, r.json()["error_code"]) == (413, "Executor.PayloadTooLarge") and words in r.json()["error_detail"]
    for setup, words in (("touch 1 2 3 4 5 6", "more entries than allowed"),
                         ("mkdir -p a/b/c/d", "directories are nested deeper than allowed"),
                         ("truncate -s 1G sparse", "more bytes than allowed")):
        box.sh(f"rm -rf /workspace/down; mkdir /workspace/down; cd /workspace/down; {setup}")
        r = box.fetch("/workspace/down")
        assert r.status == 413 and words in r.json()["error_detail"]


def test_an_upload_that_is_refused_near_its_end_keeps_its_connection(make_daemon):
    """The rest is short enough to be skipped, however much came before it. What is sent first goes beyond the
    limit, by little, and no header before it does."""
    box = Files(make_daemon(ARCHIVE_BYTES_MAX=202_000))
    data, rest = archive(member("most", bytes(200_000)), member("more", bytes(40_000))), 40_000
    head = (f"PUT {box.url('/workspace/up')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {box.daemon.secret}\r\n"
            f"Content-Length: {len(data)}\r\n\r\n").encode()
    with box.daemon.socket() as s:
        s.sendall(head + data[:-rest])
        assert select.select([s], [], [], harness.DEADLINE)[0], "refused before it has ended"
        for at in range(len(data) - rest, len(data), 8000):
            s.sendall(data[at:at + 8000])
        s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answers = b""
        while piece := s.recv(65536):
            answers += piece
    assert re.findall(rb"HTTP/1\.1 (\d+) ", answers) == [b"413", b"200"], answers


def test_a_full_disk_ends_an_upload_early(daemon):
    made = daemon.request("POST", "/v1/sandboxes", json={"limits": {"disk_mb": 2}}).json()
    box = Files(daemon, "/v1/sandboxes/" + made["id"])
    r = box.put("/workspace/d", archive(member("small", b"s"), member("big", bytes(8 << 20))))
    assert r.status == 507 and "write big" in r.json()["error_detail"]
    assert box.sh("ls -A d") == "small\n", "nothing half written stays"
    daemon.request("DELETE", box.at)


# ---- streams ----


def resident(daemon):
    for line in harness.read_proc(daemon.pid, "status").decode().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024


def test_large_directories_are_streamed_both_ways(daemon, box, here):
    """Hundreds of megabytes, and the daemon holds none of them."""
    size, block = 200 << 20, secrets.token_bytes(1 << 20)
    head = tarfile.TarInfo("large")
    head.size = size
    box.sh("true")
    before = resident(daemon)
    with daemon.socket() as s:
        s.sendall(b"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n"
                  % (box.url(here).encode(), daemon.secret.encode(), size + 512 + 1024))
        s.sendall(head.tobuf(tarfile.USTAR_FORMAT))
        for _ in range(size >> 20):
            s.sendall(block)
        peak = resident(daemon)
        s.sendall(bytes(1024))
        r = http.client.HTTPResponse(s)
        r.begin()
        assert r.status == 200, r.read()
    with daemon.connect() as c:
        c.send("GET", box.url(here))
        response = c.http.getresponse()
        assert response.read(512)[:5] == b"large"
        for i in range(size >> 20):
            assert response.read(1 << 20) == block
            peak = max(peak, resident(daemon)) if i % 20 == 0 else peak
        assert response.read() == bytes(1024)
    if not daemon.is_sanitized():
        assert peak - before < 60 << 20


def test_many_small_files(box, here):
    box.sh(f"mkdir {here}; cd {here}; seq 3000 | split -l 1 -a 4 - f")
    data = box.fetch(here).body
    r = box.put(here + "/copy", data)
    assert r.status == 200 and r.json()["entries"] == 3000
    assert box.sh(f"cat {here}/copy/* | wc -l").strip() == "3000"


def test_an_upload_in_chunks_as_tar_and_curl_make_it(box, here, outside):
    data = pack(outside)
    with box.daemon.socket() as s:
        s.sendall(b"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n"
                  % (box.url(here).encode(), box.daemon.secret.encode()))
        for at in range(0, len(data), 4099):
            part = data[at:at + 4099]
            s.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        s.sendall(b"0\r\n\r\n")
        r = http.client.HTTPResponse(s)
        r.begin()
        assert r.status == 200, r.read()


def packers(daemon):
    """Helpers that have the pipe of an archive open."""
    return [p for p in daemon.tree() if harness.read_proc(p, "comm") == b"sandbox-helper\n"
            and any(os.path.basename(f) not in "012" and "pipe:" in link(p, f) for f in harness.open_files(p))]


def link(pid, number):
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return ""


def test_a_client_that_leaves_an_upload_leaves_nothing_half(daemon, box, here):
    box.sh("true")
    before = len(harness.open_files(daemon.pid)) + 17  # helpers that are kept idle
    head = tarfile.TarInfo("big")
    head.size = 50 << 20
    for _ in range(20):
        s = daemon.socket()
        s.sendall(b"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 99999999\r\n\r\n"
                  % (box.url(here).encode(), daemon.secret.encode()))
        s.sendall(archive(member("whole", b"w"))[:1024] + head.tobuf() + bytes(100_000))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    harness.wait_until(lambda: len(harness.open_files(daemon.pid)) <= before, "descriptors are back")
    harness.wait_until(lambda: not packers(daemon), "no helper is left")
    # One that was not yet being unpacked when we looked for packers comes to the same.
    harness.wait_until(lambda: box.sh(f"ls -A {here} 2>/dev/null || true") in ("whole\n", ""),
                       lambda: "nothing half is there: " + box.sh(f"ls -lA {here}"))


def test_an_archive_that_ends_in_a_file_leaves_the_old_content_of_it(box, here):
    assert box.put(here, archive(member("first", b"old"), member("second", b"old"))).status == 200
    new = archive(member("first", b"new"), member("second", b"new" * 500), kind=tarfile.USTAR_FORMAT)
    assert box.put(here, new[:512 + 512 + 512 + 700]).status == 400
    assert box.sh(f"cd {here} && cat first second && ls -A") == "newoldfirst\nsecond\n"


def test_a_client_that_leaves_a_download_leaves_nothing_behind(daemon, box, here):
    box.sh(f"mkdir {here}; cd {here}; truncate -s 1G sparse")
    before = len(harness.open_files(daemon.pid)) + 17
    for _ in range(20):
        with daemon.connect() as c:
            c.send("GET", box.url(here))
            response = c.http.getresponse()
            assert response.read(512)[:6] == b"sparse"
            response.close()
    harness.wait_until(lambda: len(harness.open_files(daemon.pid)) <= before, "descriptors are back")
    harness.wait_until(lambda: not packers(daemon), "no helper is left")
    assert box.sh("echo alive") == "alive\n"


def test_a_slow_client_holds_the_packer_back(daemon, box, here):
    box.sh(f"mkdir {here}; cd {here}; truncate -s 300M sparse; echo end > z")
    before = resident(daemon)
    with daemon.connect() as c:
        c.send("GET", box.url(here))
        response = c.http.getresponse()
        if harness.ROOT:  # who can see what a helper has open
            harness.wait_until(lambda: packers(daemon), "it packs")
        assert box.sh("echo others") == "others\n"
        if not daemon.is_sanitized():
            assert resident(daemon) - before < 30 << 20
        data = response.read()
    names = tarfile.open(fileobj=io.BytesIO(data)).getnames()
    assert names == ["sparse", "z"]


def test_a_download_that_fails_half_way_is_not_taken_for_complete(box, here):
    box.sh(f"mkdir {here}; cd {here}; truncate -s 5M a; echo x > b; chmod 0 b")
    with box.daemon.connect() as c:
        c.send("GET", box.url(here))
        response = c.http.getresponse()
        assert response.status == 200
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            response.read()
    assert box.daemon.wait_record(event_type="archive_broken_off")
    box.sh(f"rm {here}/a")
    r = box.fetch(here)
    assert r.status == 403 and r.json()["error_detail"] == "open b: permission denied"


def test_packing_what_changes_meanwhile(box, here):
    """A hostile tenant swaps, cuts and grows files; every archive that comes is whole, and nothing leaks in."""
    box.sh(f"mkdir -p {here}/safe; cd {here}; echo keep > safe/keep")
    ident = box.start(f"cd {here}; while :; do mkdir -p v/d; head -c 90000 /dev/zero > v/d/x; : > v/d/x; mv v w; "
                      "ln -s /etc v; rm v; rm -rf w; done")["id"]
    for _ in range(20):
        r = box.fetch(here)
        if r.status == 200:
            for info in tarfile.open(fileobj=io.BytesIO(r.body)):
                assert info.name.split("/")[0] in ("safe", "v", "w") and "passwd" not in info.name
    box.post("kill_process", {"id": ident})
    harness.wait_until(lambda: box.process(ident)["status"] != "running", "it has ended")


def test_unpacking_into_what_changes_meanwhile(box, here):
    box.sh(f"rm -rf /workspace/elsewhere; mkdir -p {here} /workspace/elsewhere")
    ident = box.start(f"cd {here}; while :; do mkdir -p d; mv d w; ln -s ../elsewhere d; rm d; rm -rf w; done")["id"]
    for _ in range(20):
        box.put(here, archive(*(member(f"d/{i}", b"x") for i in range(20))))
    box.post("kill_process", {"id": ident})
    harness.wait_until(lambda: box.process(ident)["status"] != "running", "it has ended")
    assert box.sh("ls -A /workspace/elsewhere") == "", "nothing went through the link"


def test_several_at_the_same_time(box, here, outside):
    data, results = pack(outside), []

    def work(i):
        results.append(box.put(f"{here}/{i}", data).status)
        results.append(box.fetch(f"{here}/{i}").status)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [200] * 12
    box.sh(f"chmod -R u+w {here}")


def test_without_a_secret_nothing(daemon):
    r = daemon.request("GET", "/v1/sandboxes/default/files/workspace?archive=tar", headers={"Authorization": None})
    assert r.status == 401
