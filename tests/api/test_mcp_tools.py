# SPDX-License-Identifier: MIT
"""The tools of the Model Context Protocol, as a language model calls them."""
import base64
import zlib

import pytest

from mcp_client import HANDSHAKE, MODERN, Client, text_of


@pytest.fixture
def client(daemon):
    made = Client(daemon)
    yield made
    assert daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": made.session}).status == 204


def refused(result, *words):
    assert result["isError"], result
    for word in (*words, "[hint]"):
        assert word in text_of(result), result


def png(width, height):
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    rows = zlib.compress(b"".join(b"\x00" + b"\xff\x00\x00" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


# ---- files ----


def test_a_file_is_written_and_read(client):
    made = client.data("write_file", path="notes/a.txt", content="one\ntwo\n")
    assert made["path"] == "/workspace/notes/a.txt" and made["size"] == 8 and made["created"] is True
    again = client.data("write_file", path="/workspace/notes/a.txt", content="one\ntwo\nthree")
    assert again["created"] is False and again["sandbox"] == made["sandbox"]
    got = client.call("read_file", path="notes/a.txt")
    assert got["content"] == [{"type": "text", "text": "one\ntwo\nthree"}] and "structuredContent" not in got


def test_a_file_is_read_in_parts(client):
    client.data("write_file", path="n", content="".join(f"{i}\n" for i in range(1, 5001)))
    first = client.call("read_file", path="n")
    assert first["content"][0]["text"].splitlines() == [str(i) for i in range(1, 1001)]
    assert "[lines 1 to 1000 of 5000; go on with offset: 1001;" in first["content"][1]["text"]
    last = client.call("read_file", path="n", offset=4999, limit=10)
    assert last["content"][0]["text"] == "4999\n5000"
    assert "[lines 4999 to 5000 of 5000; sandbox:" in last["content"][1]["text"]


def test_a_long_line_is_cut(client):
    client.data("write_file", path="long", content="\u00fc" * 100000 + "\nend\n")
    got = client.call("read_file", path="long")
    assert len(got["content"][0]["text"]) <= 60100 and "cut in this line" in got["content"][0]["text"]
    assert "go on with offset: 2" in got["content"][1]["text"]


def test_bytes_are_written_as_base64_and_described(client):
    client.data("write_file", path="b", content=base64.b64encode(bytes(range(256))).decode(), encoding="base64")
    got = client.call("read_file", path="b")
    assert "binary file of 256 bytes" in text_of(got) and "000102030405" in text_of(got)
    refused(client.call("write_file", path="c", content="!!", encoding="base64"), "Base64")


def test_a_picture_is_shown(client):
    picture = base64.b64encode(png(4, 3)).decode()
    client.data("write_file", path="p.png", content=picture, encoding="base64")
    got = client.call("read_file", path="p.png")
    assert got["content"][1] == {"type": "image", "data": picture, "mimeType": "image/png"}
    assert "structuredContent" not in got


def test_a_file_is_edited(client):
    client.data("write_file", path="e.py", content="a = 1\nb = 1\nc = 2\n")
    got = client.call("edit_file", path="e.py", old_text="b = 1", new_text="b = 10\nbb = 11")
    assert got["structuredContent"]["replaced"] == 1 and got["structuredContent"]["line"] == 2
    assert "b = 10" in text_of(got) and "a = 1" in text_of(got)
    assert client.call("read_file", path="e.py")["content"][0]["text"] == "a = 1\nb = 10\nbb = 11\nc = 2"
    refused(client.call("edit_file", path="e.py", old_text="nothing", new_text=""), "not found", "nothing was changed")
    refused(client.call("edit_file", path="e.py", old_text=" = ", new_text="="), "occurs 4 times")
    assert client.data("edit_file", path="e.py", old_text=" = ", new_text="=", replace_all=True)["replaced"] == 4
    assert client.call("read_file", path="e.py")["content"][0]["text"] == "a=1\nb=10\nbb=11\nc=2"


def test_files_are_listed(client):
    for path in ("b.txt", "a/x.csv", "a/deep/y.csv", ".hidden/z.csv"):
        client.data("write_file", path=path, content="12345")
    got = client.data("list_files", depth=3)
    assert [e["path"] for e in got["entries"]] == ["a", "a/deep", "a/deep/y.csv", "a/x.csv", "b.txt"]
    assert [e["type"] for e in got["entries"]] == ["directory", "directory", "file", "file", "file"]
    assert got["entries"][-1]["size"] == 5 and got["left_out"] == 0
    assert [e["path"] for e in client.data("list_files")["entries"]] == ["a", "b.txt"]
    assert [e["path"] for e in client.data("list_files", path="a", depth=2, pattern="*.csv")["entries"]] == ["deep/y.csv", "x.csv"]


def test_what_is_not_there_is_told(client):
    client.data("write_file", path="f", content="")
    refused(client.call("read_file", path="nothing"), "No such file", "list_files")
    refused(client.call("read_file", path="/workspace"), "directory", "list_files")
    refused(client.call("list_files", path="f"), "read_file")
    refused(client.call("edit_file", path="nothing", old_text="a", new_text="b"), "No such file")
    refused(client.call("read_file", path="f", sandbox="sbnothing"), "no sandbox", "leave out sandbox")
    refused(client.call("read_file", path="a\0b"), "NUL")


def test_a_modern_client_names_its_sandbox(daemon):
    client = Client(daemon, MODERN)
    refused(client.call("read_file", path="x"), "sandbox is missing")
    made = client.data("write_file", path="x", content="kept")
    assert text_of(client.call("read_file", path="x", sandbox=made["sandbox"])) == "kept"
    other = client.data("write_file", path="x", content="other")
    assert other["sandbox"] != made["sandbox"]
    for one in (made, other):
        client.data("delete_sandbox", sandbox=one["sandbox"])


def test_an_address_may_name_the_sandbox(daemon):
    client = Client(daemon, MODERN, path="/mcp?sandbox=of-the-address")
    client.data("write_file", path="x", content="kept")
    assert text_of(client.call("read_file", path="x")) == "kept"
    client.data("delete_sandbox", sandbox="of-the-address")


def test_sessions_have_workspaces_of_their_own(daemon, client):
    other = Client(daemon, HANDSHAKE[1])
    client.data("write_file", path="x", content="1")
    refused(other.call("read_file", path="x"), "No such file")
    mine = [s["sandbox"] for s in client.data("list_sandboxes")["sandboxes"] if s["mine"]]
    assert len(mine) == 1
    assert daemon.request("DELETE", "/mcp", headers={"Mcp-Session-Id": other.session}).status == 204
