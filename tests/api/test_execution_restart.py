# SPDX-License-Identifier: MIT
"""What is kept survives the daemon, however it ends; bounded as before."""

import os
import pathlib
import signal
import tempfile

import pytest

from harness import wait_until


@pytest.fixture
def again(make_daemon):
    """Starts the daemon, each time on the same state."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o711)
        state = pathlib.Path(top) / "state"

        def start(**env):
            return make_daemon(STATE_DIR=state, **env)

        start.state = state
        yield start


def stop(daemon, how):
    daemon.signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
    daemon.wait()


MAGIC = b"sbx-execution 1"


def files(again):
    return [path for path in sorted((again.state / "executions").iterdir(), key=lambda p: int(p.name))]


def records(again):
    return b"".join(path.read_bytes() for path in files(again)).count(MAGIC)


def saved(again, count):
    wait_until(lambda: records(again) == count, f"{count} executions are on disk")


def join(paths):
    """As if all had ended at about the same time."""
    whole = b"".join(path.read_bytes() for path in paths)
    for path in paths[1:]:
        path.unlink()
    paths[0].write_bytes(whole)


def get(daemon, name):
    return daemon.request("GET", f"/v1/executions/{name}")


def make(daemon):
    code = """
import os, sys
def handler(event):
    print("gr\\u00fcn")
    os.write(1, b"\\xff\\x00")
    print("err", file=sys.stderr)
    open("a.bin", "wb").write(bytes(range(256)))
    os.mkdir("d"); open("d/b.txt", "w").write("b")
    return {"x": [1, 2.5, None]}
"""
    daemon.execute(code, "python", execution_id="full", event={})
    daemon.execute("print(open('/etc/shadow').read())", "python", execution_id="failing")
    daemon.execute("while :; do sleep 0.1; done", "shell", execution_id="slow", timeout=0.1)
    daemon.request("POST", "/execute", headers={"Prefer": "wait"},
                   json={"language": "shell", "code": "echo s", "session_id": "s", "execution_id": "session"})
    return ["full", "failing", "slow", "session"]


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_everything_is_as_it_was(again, how):
    first = again()
    names = make(first)
    before = {name: get(first, name).json() for name in names}
    listed = first.request("GET", "/v1/executions").json()
    if how == "kill":
        saved(again, len(names))
    stop(first, how)
    second = again()
    assert {name: get(second, name).json() for name in names} == before
    assert second.request("GET", "/v1/executions").json() == listed
    assert second.request("GET", "/v1/executions/full/artifacts/a.bin").body == bytes(range(256))
    assert second.request("GET", "/v1/executions/full/artifacts/d/b.txt").text == "b"


def test_it_survives_more_than_once_and_others_join(again):
    daemon = again()
    daemon.execute("echo 1 > f", "shell", execution_id="one")
    for name in ("two", "three"):
        stop(daemon, "terminate")
        daemon = again()
        daemon.execute(f"echo {name} > f", "shell", execution_id=name)
    listed = [x["execution_id"] for x in daemon.request("GET", "/v1/executions").json()["executions"]]
    assert listed == ["three", "two", "one"]
    contents = [daemon.request("GET", f"/v1/executions/{name}/artifacts/f").text for name in ("one", "two", "three")]
    assert contents == ["1\n", "two\n", "three\n"]  # numbers of copies are not given twice


def test_the_same_id_does_not_run_again(again):
    body = {"language": "shell", "code": "date +%N", "execution_id": "once"}
    daemon = again()
    before = daemon.request("POST", "/execute", json=body).json()
    stop(daemon, "terminate")
    daemon = again()
    assert daemon.request("POST", "/execute", json=body).json() == before
    assert daemon.request("POST", "/execute", json={**body, "code": "true"}).status == 409


def test_what_is_forgotten_stays_forgotten(again):
    daemon = again()
    daemon.execute("echo x > f", "shell", execution_id="gone")
    saved(again, 1)
    assert daemon.request("DELETE", "/v1/executions/gone").status == 204
    saved(again, 0)
    stop(daemon, "kill")
    assert files(again) == []
    daemon = again()
    assert get(daemon, "gone").status == 404
    assert os.listdir(again.state / "artifacts") == []


def test_one_of_a_file_is_forgotten(again):
    daemon = again()
    for name in "abcd":
        daemon.execute("true", "shell", execution_id=name)
    stop(daemon, "terminate")
    join(files(again))
    daemon = again()
    assert daemon.request("DELETE", "/v1/executions/b").status == 204
    assert daemon.request("DELETE", "/v1/executions/d").status == 204
    saved(again, 2)
    stop(daemon, "kill")
    daemon = again()
    assert [get(daemon, name).status for name in "abcd"] == [200, 404, 200, 404]
    for name in "ac":
        daemon.request("DELETE", f"/v1/executions/{name}")
    wait_until(lambda: files(again) == [], "the file is removed with its last execution")


def test_the_number_stays_bounded(again):
    daemon = again(RETAIN_COUNT=3)
    for i in range(6):
        daemon.execute("true", "shell", execution_id=f"e{i}")
    stop(daemon, "terminate")
    daemon = again(RETAIN_COUNT=2)
    assert [get(daemon, f"e{i}").status for i in range(6)] == [404] * 4 + [200] * 2


@pytest.mark.parametrize("seconds", [None, 604800])  # longer than this host is up, if it was started lately
def test_age_counts_over_restarts(again, seconds):
    daemon = again()
    daemon.execute("true", "shell", execution_id="old")
    stop(daemon, "terminate")
    [path] = files(again)
    text = bytearray(path.read_bytes())
    head = 32
    assert text[:15] == b"sbx-execution 1"
    at = int.from_bytes(text[head:head + 8], "little")
    text[head:head + 8] = (at - 10**12).to_bytes(8, "little")
    h = 14695981039346656037
    for byte in text[head:]:
        h = (h ^ byte) * 1099511628211 % 2**64
    text[24:32] = h.to_bytes(8, "little")
    path.write_bytes(text)
    daemon = again(RETAIN_SECONDS=seconds)
    assert get(daemon, "old").status == 404
    saved(again, 0)


def test_files_that_are_broken_are_no_executions(again):
    daemon = again()
    daemon.execute("echo x > f", "shell", execution_id="good")
    stop(daemon, "terminate")
    folder = again.state / "executions"
    [path] = files(again)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.replace(b"good", b"torn")[:-1])
    for name, text in {
        "101": whole.replace(b"good", b"dead")[:-1],
        "102": whole.replace(b"shell", b"shelf"),
        "103": whole.replace(MAGIC, b"sbx-execution 2"),
        "104": b"",
        "105": whole[:20],
        "106": os.urandom(5000),
        "107": whole[:16] + b"\xff" * 16 + whole[32:],
        "name": whole,
        "0108": whole,
    }.items():
        (folder / name).write_bytes(text)
    (folder / "109").symlink_to(path)
    (folder / "110").mkdir()
    daemon = again()
    assert [x["execution_id"] for x in daemon.request("GET", "/v1/executions").json()["executions"]] == ["good"]
    assert {p.name for p in folder.iterdir()} == {path.name, "110"}


def test_copies_of_nothing_are_swept(again):
    daemon = again()
    daemon.execute("echo x > f", "shell", execution_id="mine")
    stop(daemon, "terminate")
    folder = again.state / "artifacts"
    (folder / "4711").write_text("left by an execution under way")
    (folder / "nonsense").write_text("")
    daemon = again()
    assert len(os.listdir(folder)) == 1
    assert daemon.request("GET", "/v1/executions/mine/artifacts/f").text == "x\n"


def test_a_copy_that_is_gone_is_404(again):
    daemon = again()
    daemon.execute("echo x > f", "shell", execution_id="mine")
    stop(daemon, "terminate")
    for name in os.listdir(again.state / "artifacts"):
        os.unlink(again.state / "artifacts" / name)
    daemon = again()
    assert get(daemon, "mine").json()["result"]["artifacts"] == ["f"]
    assert daemon.request("GET", "/v1/executions/mine/artifacts/f").status == 404


def test_one_that_was_under_way_is_not_there(again):
    daemon = again()
    connection = daemon.start("while :; do sleep 0.1; done", "shell", execution_id="running")
    wait_until(lambda: get(daemon, "running").status == 200, "it runs")
    stop(daemon, "kill")
    connection.close()
    assert get(again(), "running").status == 404


def test_nothing_is_on_disk_where_that_is_not_wanted(again):
    daemon = again(RETAIN_ON_DISK="false")
    daemon.execute("echo x > f", "shell", execution_id="mine")
    assert get(daemon, "mine").status == 200
    stop(daemon, "terminate")
    assert not (again.state / "executions").exists()
    assert os.listdir(again.state / "artifacts") == []
    assert get(again(RETAIN_ON_DISK="false"), "mine").status == 404
