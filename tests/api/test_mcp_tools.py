# SPDX-License-Identifier: MIT
"""The tools of the Model Context Protocol, as a language model calls them."""
import base64
import importlib.util
import zlib

import pytest

import harness
from mcp_client import HANDSHAKE, MODERN, Client, events_of, text_of


needs_ipython = pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")


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


# ---- commands ----


def test_a_command_is_told_completely(client):
    got = client.call("run_command", command="echo out; echo err >&2; exit 3", env={"A": "b"})
    data = got["structuredContent"]
    assert not got["isError"] and data["status"] == "failed" and data["exit_code"] == 3
    assert (data["stdout"], data["stderr"]) == ("out\n", "err\n")
    assert text_of(got).startswith("out\n[stderr]\nerr\n[failed, exit code 3 after ")
    assert text_of(got).endswith(f"sandbox: {data['sandbox']}]") and data["duration_ms"] >= 0


def test_a_command_gets_what_it_was_given(client):
    data = client.data("run_command", command="cat; echo $A; pwd", stdin="in\n", env={"A": "b"}, cwd="/tmp")
    assert data["stdout"] == "in\nb\n/tmp\n" and data["status"] == "success"
    refused(client.call("run_command", command="true", cwd="/no/where"), "/no/where")


def test_a_command_that_takes_too_long_is_ended(client):
    got = client.call("run_command", command="echo begun; sleep 600", timeout_seconds=1)
    assert got["isError"] and got["structuredContent"]["status"] == "timeout"
    assert got["structuredContent"]["stdout"] == "begun\n" and "ended after 1 s" in text_of(got)


def test_long_output_is_cut_and_kept(client):
    got = client.call("run_command", command="seq 100000")
    data = got["structuredContent"]
    assert len(data["stdout"]) < 17000 and "characters cut; all of it is in" in data["stdout"]
    assert data["stdout"].startswith("1\n2\n") and data["stdout"].endswith("99999\n100000\n")
    cut = data["truncated"][0]
    assert cut["stream"] == "stdout" and cut["characters"] == 588895
    assert client.data("run_command", command=f"wc -c <{cut['file']}")["stdout"].strip() == "588895"


def test_escape_sequences_are_taken_out(client):
    data = client.data("run_command", command=r"printf '\033[31mred\033[0m \033]0;title\007x\001\ty\r\n'")
    assert data["stdout"] == "red x\ty\n"


def test_new_files_are_told_and_pictures_shown(client):
    client.data("write_file", path="old.txt", content="x")
    client.data("run_command", command="touch -d '1 hour ago' old.txt")
    picture = base64.b64encode(png(2, 2)).decode()
    got = client.call("run_command", command=f"mkdir d; echo {picture} | base64 -d >d/p.png; echo 1 >t.csv")
    kinds = [b["type"] for b in got["content"]]
    assert kinds == ["text", "image", "resource_link"] and "structuredContent" not in got
    assert got["content"][1]["data"] == picture
    assert got["content"][2]["uri"].endswith("/files/workspace/t.csv")
    assert "[files] d/p.png (" in text_of(got) and "old.txt" not in text_of(got)


def test_a_long_command_is_handed_over(make_daemon):
    client = Client(make_daemon(MCP_YIELD="1"))
    data = client.data("run_command", command="echo begun; while ! test -e go; do sleep 0.05; done; echo ended", timeout_seconds=600)
    assert data["status"] == "running" and data["stdout"] == "begun\n" and "manage_process" in data["hint"]
    first = client.data("manage_process", action="output", process_id=data["process_id"], wait_seconds=45)
    assert (first["output"], first["status"]) == ("begun\n", "running")
    client.data("write_file", path="go", content="")
    then = client.data("manage_process", action="output", process_id=data["process_id"], cursor=first["cursor"], wait_seconds=45)
    assert then["output"] == "ended\n"
    end = client.data("manage_process", action="output", process_id=data["process_id"], cursor=then["cursor"], wait_seconds=45)
    assert (end["output"], end["status"], end["exit_code"]) == ("", "completed", 0)


def test_background_processes_are_managed(client):
    data = client.data("run_command", command="echo one; exec sleep 600", background=True)
    listed = client.data("manage_process", action="list", sandbox=data["sandbox"])["processes"]
    assert [(p["process_id"], p["status"], p["exit_code"]) for p in listed] == [(data["process_id"], "running", None)]
    got = client.data("manage_process", action="output", process_id=data["process_id"], wait_seconds=45)
    assert got["output"] == "one\n" and got["cursor"] == 1
    assert client.data("manage_process", action="kill", process_id=data["process_id"])["status"] == "killed"
    ended = client.data("manage_process", action="output", process_id=data["process_id"], cursor=1, wait_seconds=45)
    assert ended["status"] == "killed"
    refused(client.call("manage_process", action="kill"), "process_id is needed")
    refused(client.call("manage_process", action="output", process_id="nothing"), "no process")


def test_a_request_is_cancelled(daemon, client):
    """The command is dead, and its exchange ends without a response."""
    place = client.data("write_file", path="x", content="")["sandbox"]
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", {"name": "run_command", "arguments": {
            "command": "touch begun; exec sleep 600", "timeout_seconds": 600}}, ident="to-cancel"), headers=client.headers("tools/call"))
        other = Client(daemon, MODERN)
        harness.wait_until(lambda: not other.call("read_file", path="begun", sandbox=place)["isError"], "the command has not begun")
        assert client.notify("notifications/cancelled", {"requestId": "to-cancel"}).status == 202
        ended = line.receive()
        assert ended.status in (200, 202) and "result" not in ended.text
    harness.wait_until(lambda: client.data("manage_process", action="list")["processes"][0]["status"] != "running", "the command lives")


def test_a_modern_client_cancels_by_leaving(daemon):
    client = Client(daemon, MODERN)
    place = client.data("create_sandbox")["sandbox"]
    params = {"name": "run_command", "arguments": {"command": "touch begun; exec sleep 600", "sandbox": place, "timeout_seconds": 600}}
    with daemon.connect() as line:
        line.send("POST", "/mcp", json=client.message("tools/call", params), headers=client.headers("tools/call", params))
        harness.wait_until(lambda: not client.call("read_file", path="begun", sandbox=place)["isError"], "the command has not begun")
    harness.wait_until(lambda: client.data("manage_process", action="list", sandbox=place)["processes"][0]["status"] != "running",
                       "the command lives")
    client.data("delete_sandbox", sandbox=place)


def test_progress_is_told(client):
    params = {"name": "run_command", "arguments": {"command": "echo working; sleep 2.5"}, "_meta": {"progressToken": "p"}}
    got = client.post("tools/call", params)
    assert got.headers["content-type"].startswith("text/event-stream")
    events = events_of(got.text)
    told = [e["params"] for e in events if e.get("method") == "notifications/progress"]
    assert told and all(p["progressToken"] == "p" and p["message"] == "working" for p in told)
    assert [p["progress"] for p in told] == sorted({p["progress"] for p in told})
    assert events[-1]["result"]["structuredContent"]["status"] == "success"


# ---- code ----


def test_code_keeps_its_state(client):
    assert client.data("run_code", code="let x = 6", language="javascript")["status"] == "success"
    got = client.call("run_code", code="console.log('out'); ({a: x * 7})", language="javascript")
    data = got["structuredContent"]
    assert data["result"] == {"a": 42} and data["stdout"] == "out\n"
    assert text_of(got).startswith('out\n[result] {"a":42}\n[success after ')


def test_code_that_fails_says_how(client):
    got = client.call("run_code", code="throw new TypeError('no')", language="javascript")
    assert got["isError"] and got["structuredContent"]["status"] == "failed"
    assert got["structuredContent"]["error"]["type"] == "TypeError"
    assert "[error] " in text_of(got) and "no" in text_of(got)


def test_a_reset_forgets(client):
    client.data("run_code", code="var x = 1", language="javascript")
    data = client.data("run_code", code="typeof x", language="javascript", reset=True)
    assert "undefined" in str(data["result"])


def test_code_that_takes_too_long_is_stopped(client):
    got = client.call("run_code", code="for (;;);", language="javascript", timeout_seconds=1)
    assert got["isError"] and got["structuredContent"]["status"] == "timeout" and "stopped after 1 s" in text_of(got)


def test_code_of_the_shell_is_a_command(client):
    assert client.data("run_code", code="echo $((6 * 7))", language="shell")["stdout"] == "42\n"


@needs_ipython
def test_python_values_and_pictures(client):
    assert client.data("run_code", code="x = 6")["status"] == "success"
    assert client.data("run_code", code="x * 7")["result"] == 42
    assert client.data("run_code", code="{'a': [1, None]}")["result"] == {"a": [1, None]}
    assert client.data("run_code", code="True")["result"] is True
    assert "result" not in client.data("run_code", code="None")
    picture = base64.b64encode(png(2, 2)).decode()
    got = client.call("run_code", code=f"from IPython.display import Image, display\nimport base64\ndisplay(Image(base64.b64decode('{picture}')))")
    assert [b["type"] for b in got["content"]] == ["text", "image"] and got["content"][1]["mimeType"] == "image/png"
    got = client.call("run_code", code="import nothing_of_the_kind")
    assert got["isError"] and "ModuleNotFoundError" in text_of(got) and "[hint]" in text_of(got)
