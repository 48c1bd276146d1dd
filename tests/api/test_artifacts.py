# SPDX-License-Identifier: MIT
"""Files that a run leaves in its workspace."""
import hashlib
import os
import re
import textwrap

import pytest

import harness

MAKE = textwrap.dedent("""
    mkdir -p output/deep logs sub .hidden 'with space' empty
    printf '%s' '{"a":1}' > output/data.json
    printf 'a,b\\n' > output/deep/table.csv
    printf 'x' > logs/run.txt
    printf 'x' > sub/server.LOG
    printf 'hello' > note.txt
    printf '<p>' > page.html
    printf '\\211PNG' > pic.PNG
    printf '' > empty.bin
    printf 'x' > noextension
    printf 'x' > 'with space/é漢.txt'
    printf 'x' > .secret
    printf 'x' > .hidden/inside
    printf 'x' > sub/.also
    printf 'x' > a..b
    mkfifo fifo
    ln -s note.txt link-inside
    ln -s /etc/passwd link-outside
    ln -s /etc dir-outside
    ln -s .. up
    ln -s nowhere dangling
    ln -s sub dir-inside
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'
    """)

EXPECTED = {
    "empty.bin": ("application/octet-stream", "artifact"),
    "logs/run.txt": ("text/plain", "log"),
    "noextension": ("application/octet-stream", "artifact"),
    "note.txt": ("text/plain", "artifact"),
    "output/data.json": ("application/json", "output"),
    "output/deep/table.csv": ("text/csv", "output"),
    "page.html": ("text/html", "artifact"),
    "pic.PNG": ("image/png", "artifact"),
    "sub/server.LOG": (None, "log"),
    "with space/é漢.txt": ("text/plain", "artifact"),
}


@pytest.fixture(scope="module")
def made(daemon):
    result = daemon.execute(MAKE, "shell", execution_id="artifacts-1")
    assert result["status"] == "success", result
    return result


def test_regular_files_are_listed_and_nothing_else(made):
    listed = set(made["artifacts"]) - {"link-inside"}  # a link that stays inside may be followed or not
    assert listed == set(EXPECTED)


def test_the_order_is_sorted_and_repeatable(daemon, made):
    assert made["artifacts"] == sorted(made["artifacts"], key=lambda n: n.encode())
    again = daemon.execute(MAKE, "shell")
    assert again["artifacts"] == made["artifacts"]


def test_metadata_matches_the_list(made):
    assert [m["path"] for m in made["artifact_metadata"]] == made["artifacts"]


@pytest.mark.parametrize("path", EXPECTED)
def test_metadata(made, path):
    entry = next(m for m in made["artifact_metadata"] if m["path"] == path)
    mime, kind = EXPECTED[path]
    if mime:
        assert entry["mime_type"].split(";")[0] == mime
    assert "/" in entry["mime_type"]
    assert entry["type"] == kind
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", entry["created_at"])


def test_size_and_checksum_are_those_of_the_content(made):
    entry = next(m for m in made["artifact_metadata"] if m["path"] == "note.txt")
    assert entry["size"] == 5
    assert entry["checksum"] in (hashlib.sha256(b"hello").hexdigest(), "sha256:" + hashlib.sha256(b"hello").hexdigest())


def get(daemon, execution, path, **kw):
    return daemon.request("GET", f"/v1/executions/{execution}/artifacts/{path}", **kw)


@pytest.mark.parametrize("path, content", [
    ("note.txt", b"hello"), ("output/data.json", b'{"a":1}'), ("empty.bin", b""),
    ("with%20space/%C3%A9%E6%BC%A2.txt", b"x"), ("output%2Fdata.json", b'{"a":1}'),
])
def test_download(daemon, made, path, content):
    response = get(daemon, "artifacts-1", path)
    if "%2F" in path and response.status == 404:
        return  # an encoded slash may also be taken as part of a name
    assert (response.status, response.body) == (200, content)
    assert int(response.headers["Content-Length"]) == len(content)


def test_download_has_the_type_and_cannot_be_sniffed(daemon, made):
    response = get(daemon, "artifacts-1", "page.html")
    assert response.headers["Content-Type"].startswith("text/html")
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", [
    ".secret", "sub/.also", ".hidden/inside", "fifo", "sock", "link-outside", "dir-outside/passwd", "up/etc/passwd",
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "nothing", "sub", "sub/",
    "", "note.txt/", "note.txt%00", "a..b", "./note.txt", "output//data.json",
])
def test_what_is_not_an_artifact_is_404(daemon, made, path):
    response = get(daemon, "artifacts-1", path)
    assert response.status in (400, 404), response
    assert b"root:" not in response.body


def test_artifacts_of_unknown_executions_are_404(daemon):
    assert get(daemon, "never-was", "note.txt").status == 404


def test_download_needs_the_secret(daemon, made):
    assert get(daemon, "artifacts-1", "note.txt", headers={"Authorization": None}).status == 401


def test_large_artifacts_are_streamed_whole(daemon):
    code = "import random\nopen('big.bin', 'wb').write(random.randbytes(20_000_000))\ndef handler(e): return 1"
    result = daemon.execute(code, execution_id="artifacts-big")
    entry = result["artifact_metadata"][0]
    assert entry["size"] == 20_000_000
    body = get(daemon, "artifacts-big", "big.bin").body
    assert hashlib.sha256(body).hexdigest() == entry["checksum"].removeprefix("sha256:")


def test_failed_runs_have_artifacts_too(daemon):
    result = daemon.execute("echo x > left.txt; exit 3", "shell")
    assert (result["status"], result["artifacts"]) == ("failed", ["left.txt"])


@pytest.mark.parametrize("language, code", [
    ("python", "def handler(e): return 1"), ("javascript", "exports.handler = () => 1"),
    ("javascript", "export const handler = () => 1"), ("shell", "true"),
])
def test_the_service_itself_leaves_no_files(daemon, language, code):
    result = daemon.execute(code, language, event={"big": "x" * 200_000}, stdin="input")
    assert (result["status"], result["artifacts"]) == ("success", [])


def test_a_name_that_is_not_utf8_is_skipped(daemon):
    result = daemon.execute("touch $'bad\\xff' good; touch $'new\\nline'", "shell")
    assert result["status"] == "success"
    assert "good" in result["artifacts"]
    assert all("bad" not in name for name in result["artifacts"])


def test_the_number_listed_is_bounded(make_daemon):
    daemon = make_daemon(ARTIFACTS_MAX=5)
    result = daemon.execute("for i in $(seq 9); do echo $i > f$i; done", "shell")
    assert result["status"] == "success"
    assert len(result["artifacts"]) == 5


def test_a_sparse_giant_does_not_hold_up_the_service(daemon):
    """Its size is a lie; neither hashing nor keeping it may take the daemon's time or memory."""
    run = daemon.start("truncate -s 200G giant; echo x > small", "shell", timeout=20)
    assert daemon.health().status == 200
    body = run.receive().json()
    assert body["status"] in ("success", "failed", "error")
    assert body["artifacts"] == ["small"]
    assert body["left_out"] == [{"path": "giant", "size": 200 << 30, "reason": "too_large"}]
    run.close()


def test_kept_artifacts_are_bounded_in_bytes(make_daemon):
    daemon = make_daemon(RETAIN_BYTES=1_000_000)
    for name in ("k-1", "k-2", "k-3"):
        daemon.execute("head -c 400000 /dev/zero > file.bin", "shell", execution_id=name)
    states = [get(daemon, n, "file.bin").status for n in ("k-1", "k-2", "k-3")]
    assert states[0] == 404 and states[2] == 200


def test_the_host_is_untouched_by_links(daemon):
    """A link planted by a tenant is never followed on the host's side."""
    mark = harness.marker()
    target = f"/tmp/{mark}"
    daemon.execute(f"ln -s {target} out.txt; ln -s {target} user_code.js; ln -s {target} event.json", "shell")
    daemon.execute("exports.handler = () => 1", "javascript")
    assert not os.path.lexists(target)
