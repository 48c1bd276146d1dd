# SPDX-License-Identifier: MIT
"""File endpoints: everything happens inside the sandbox, failures are answers."""
import json
import secrets
import threading

import harness
import pytest
from koyeb import Sandbox


@pytest.fixture
def box(daemon):
    return Sandbox(daemon)


@pytest.fixture
def here(box):
    """A fresh directory inside."""
    path = "/workspace/t-" + secrets.token_hex(6)
    box.sh(f"mkdir {path}")
    yield path
    box.sh(f"chmod -R u+rwx {path}; rm -rf {path}")


def test_write_and_read(box, here):
    r = box.post("write_file", {"path": f"{here}/a", "content": "text\n"})
    assert (r.status, r.body) == (200, b'{"success":true}\n')
    r = box.post("read_file", {"path": f"{here}/a"})
    assert (r.status, r.body) == (200, b'{"content":"text\\n"}\n')
    assert box.sh(f"stat -c '%a %U' {here}/a") == "644 user\n"
    assert box.call("write_file", path=f"{here}/a", content="x") == {"success": True}
    assert box.call("read_file", path=f"{here}/a") == {"content": "x"}


def test_empty_files_and_directories_say_so(box, here):
    assert box.call("write_file", path=f"{here}/e") == {"success": True}
    assert box.post("read_file", {"path": f"{here}/e"}).body == b'{"content":""}\n'
    box.sh(f"mkdir {here}/d")
    assert box.post("list_dir", {"path": f"{here}/d"}).body == b'{"entries":[]}\n'


def test_mode_and_links_are_kept(box, here):
    box.sh(f"cd {here}; echo old > f; chmod 600 f; ln -s f l")
    assert box.call("write_file", path=f"{here}/l", content="new") == {"success": True}
    assert box.sh(f"cd {here}; cat f; stat -c %a f; readlink l") == "new600\nf\n"
    assert box.call("delete_file", path=f"{here}/l") == {"success": True}
    assert box.sh(f"cat {here}/f") == "new"


def test_relative_paths_begin_in_the_workspace(box, here):
    name = here.rsplit("/", 1)[1] + "/rel"
    assert box.call("write_file", path=name, content="r") == {"success": True}
    assert box.sh(f"cat {here}/rel") == "r"


@pytest.mark.parametrize("size", [1, 60_000, 70_000, 3_000_000])
def test_contents_of_any_size(box, here, size):
    text = secrets.token_hex(size // 2 + 1)[:size]
    assert box.call("write_file", path=f"{here}/big", content=text) == {"success": True}
    assert box.sh(f"wc -c < {here}/big").strip() == str(size)
    assert box.call("read_file", path=f"{here}/big")["content"] == text


def test_a_hundred_megabytes(box, here):
    text = "0123456789abcdef" * (100_000_000 // 16)
    body = json.dumps({"path": f"{here}/huge", "content": text}).encode()
    assert box.daemon.request("POST", "/write_file", body=body, timeout=120).json() == {"success": True}
    assert box.sh(f"wc -c < {here}/huge").strip() == "100000000"
    r = box.daemon.request("POST", "/read_file", json={"path": f"{here}/huge"}, timeout=120)
    assert r.json()["content"] == text


def test_bytes_that_are_no_text_are_repaired_on_reading(box, here):
    box.sh(fr"printf 'a\377\342\202b' > {here}/b")
    assert box.post("read_file", {"path": f"{here}/b"}).body == b'{"content":"a\\ufffd\\ufffd\\ufffdb"}\n'


def test_invalid_text_in_a_request_is_repaired(box, here):
    body = b'{"path":"%s/s","content":"a\\ud800b\xffc"}' % here.encode()
    assert box.daemon.request("POST", "/write_file", body=body).json() == {"success": True}
    assert box.call("read_file", path=f"{here}/s")["content"] == "a\ufffdb\ufffdc"


ERRORS = [
    ("read_file", "{here}/none", "open {here}/none: no such file or directory"),
    ("read_file", "{here}", "read {here}: is a directory"),
    ("read_file", "{here}/file/x", "open {here}/file/x: not a directory"),
    ("read_file", "{here}/loop", "open {here}/loop: too many levels of symbolic links"),
    ("read_file", "{here}/closed", "open {here}/closed: permission denied"),
    ("read_file", "", "open : no such file or directory"),
    ("write_file", "{here}", "open {here}: is a directory"),
    ("write_file", "{here}/no/file", "open {here}/no/file: no such file or directory"),
    ("write_file", "", "open : no such file or directory"),
    ("write_file", "/proc/version", "open /proc/version: permission denied"),
    ("write_file", "/dev/full", "write /dev/full: no space left on device"),
    ("delete_file", "{here}/none", "remove {here}/none: no such file or directory"),
    ("delete_file", "{here}/full", "remove {here}/full: directory not empty"),
    ("delete_file", "", "remove : no such file or directory"),
    ("make_dir", "{here}/file", "mkdir {here}/file: not a directory"),
    ("make_dir", "{here}/file/sub", "mkdir {here}/file: not a directory"),
    ("make_dir", "", "mkdir : no such file or directory"),
    ("make_dir", "/new-at-the-root", "mkdir /new-at-the-root: read-only file system"),
    ("delete_dir", "{here}/.", "RemoveAll {here}/.: invalid argument"),
    ("delete_dir", "{here}/..", "RemoveAll {here}/..: invalid argument"),
    ("list_dir", "{here}/none", "open {here}/none: no such file or directory"),
    ("list_dir", "{here}/file", "open {here}/file: not a directory"),
    ("list_dir", "", "open : no such file or directory"),
    ("read_file", "nul\0", "open nul\0: invalid argument"),
    ("write_file", "nul\0", "open nul\0: invalid argument"),
    ("make_dir", "nul\0", "mkdir nul\0: invalid argument"),
    ("delete_file", "nul\0", "remove nul\0: invalid argument"),
    ("read_file", "/" + "x" * 300, "open /" + "x" * 300 + ": file name too long"),
    ("read_file", "/" + "x/" * 30000, "open /" + "x/" * 30000 + ": file name too long"),
]


@pytest.mark.parametrize("verb,path,expected", ERRORS)
def test_errors_have_the_words_of_the_original(box, here, verb, path, expected):
    box.sh(f"cd {here}; echo x > file; ln -s loop loop; echo x > closed; chmod 0 closed; mkdir full; echo > full/x")
    r = box.post(verb, {"path": path.format(here=here), "content": "x"})
    expected = {"error": expected.format(here=here)}
    if verb not in ("read_file", "list_dir"):
        expected["success"] = False
    assert r.status == 200 and r.json() == expected
    assert r.body.startswith(b'{"error":')


def test_make_dir_makes_parents_and_likes_what_is_there(box, here):
    assert box.call("make_dir", path=f"{here}/a/b/c/", recursive=True) == {"success": True}
    assert box.call("make_dir", path=f"{here}//a/b/c") == {"success": True}
    box.sh(f"ln -s a {here}/link")
    assert box.call("make_dir", path=f"{here}/link/new") == {"success": True}
    assert box.sh(f"stat -c %a {here}/a/b/c; ls {here}/a") == "755\nb\nnew\n"


def test_delete_file_takes_an_empty_directory_too(box, here):
    box.sh(f"mkdir {here}/d; echo > {here}/f")
    assert box.call("delete_file", path=f"{here}/d") == {"success": True}
    assert box.call("delete_file", path=f"{here}/f") == {"success": True}
    assert box.call("list_dir", path=here) == {"entries": []}


def test_delete_dir(box, here):
    box.sh(f"cd {here}; mkdir -p d/e/f keep; echo > d/e/x; echo > keep/x; ln -s ../keep d/link; ln -s keep top; echo > f")
    assert box.call("delete_dir", path=f"{here}/d") == {"success": True}
    assert box.call("delete_dir", path=f"{here}/top") == {"success": True}
    assert box.call("delete_dir", path=f"{here}/f") == {"success": True}
    assert box.call("delete_dir", path=f"{here}/missing/deep") == {"success": True}
    assert box.call("delete_dir", path="") == {"success": True}
    assert box.sh(f"find {here} | sort") == f"{here}\n{here}/keep\n{here}/keep/x\n"


def test_delete_dir_of_a_tree_deeper_than_any_path(box, here):
    box.sh(f"cd {here}; python3 -c \"import os\nfor i in range(3000): os.mkdir('d' * 20); os.chdir('d' * 20)\"")
    assert box.call("delete_dir", path=f"{here}/{'d' * 20}") == {"success": True}
    assert box.call("list_dir", path=here) == {"entries": []}


def test_delete_dir_of_a_wide_tree(box, here):
    box.sh(f"cd {here}; python3 -c \"import os\nfor i in range(60):\n os.mkdir(f'd{{i}}')\n"
           "for j in range(3000): open(f'd{j % 60}/{j}', 'w')\"".replace("{{", "{").replace("}}", "}"))
    assert box.call("delete_dir", path=here) == {"success": True}
    box.sh(f"mkdir {here}")


def test_delete_dir_names_what_stands_in_the_way(box, here):
    box.sh(f"cd {here}; mkdir -p d/e; echo > d/e/x; chmod 500 d/e")
    r = box.call("delete_dir", path=f"{here}/d")
    assert r == {"error": f"unlinkat {here}/d/e/x: permission denied", "success": False}


def test_list_dir_is_sorted_by_bytes(box, here):
    box.sh(f"cd {here}; touch b a .hidden B 'with space' ü; mkdir c; touch \"$(printf 'x\\377')\"")
    assert box.call("list_dir", path=here)["entries"] == [
        ".hidden", "B", "a", "b", "c", "with space", "x\ufffd", "ü"]


def test_list_dir_of_many(box, here):
    box.sh(f"cd {here}; seq 5000 | xargs touch")
    assert box.call("list_dir", path=here)["entries"] == sorted(str(i) for i in range(1, 5001))


def test_files_of_the_kernel_can_be_read(box):
    assert box.call("read_file", path="/proc/version")["content"].startswith("Linux")
    assert "sandbox" in box.call("read_file", path="/proc/sys/kernel/hostname")["content"]
    assert box.call("read_file", path="/dev/null") == {"content": ""}


def test_devices_without_end_do_not_hang(make_daemon):
    box = Sandbox(make_daemon(BODY_MAX_FILE=1_000_000))
    assert box.call("read_file", path="/dev/zero") == {"error": "read /dev/zero: file too large"}
    box.sh("head -c 2000000 /dev/zero > /workspace/big")
    assert box.call("read_file", path="/workspace/big") == {"error": "read /workspace/big: file too large"}


def test_fifos_never_block(box, here):
    box.sh(f"mkfifo {here}/p")
    assert box.call("read_file", path=f"{here}/p") == {"content": ""}
    r = box.call("write_file", path=f"{here}/p", content="x")
    assert r == {"error": f"open {here}/p: no such device or address", "success": False}
    holder = box.start(f"exec sleep 600 <> {here}/p")  # now there is a writer, and nothing written
    harness.wait_until(lambda: "error" in box.call("read_file", path=f"{here}/p"), "the holder has it open")
    assert box.call("read_file", path=f"{here}/p") == {
        "error": f"read {here}/p: resource temporarily unavailable"}
    box.post("kill_process", {"id": holder["id"]})
    assert box.call("list_dir", path=here) == {"entries": ["p"]}


def test_full_disk_is_an_answer(make_daemon):
    box = Sandbox(make_daemon(SANDBOX_DISK_MB=2))
    r = box.call("write_file", path="/workspace/f", content="x" * 5_000_000)
    assert r == {"error": "write /workspace/f: no space left on device", "success": False}
    assert box.call("list_dir", path="/workspace")["entries"] == []  # nothing of the part that fitted
    assert box.call("write_file", path="/workspace/f", content="ok") == {"success": True}


def test_links_lead_nowhere_outside(box, here):
    box.sh(f"ln -s /proc/1/root {here}/root; ln -s /etc/shadow {here}/shadow")
    assert "error" in box.call("read_file", path=f"{here}/shadow")
    assert "error" in box.call("list_dir", path=f"{here}/root")


def test_races_with_a_hostile_tenant(box, here):
    """A directory that becomes a link and back while it is removed and written to."""
    box.sh(f"mkdir -p {here}/safe/d; echo keep > {here}/safe/d/keep")
    mark = harness.marker()
    process = box.start(f"cd {here}; bash -c 'exec -a {mark} sleep 600' & while :; do mkdir -p v/d; echo > v/d/x; mv v w; ln -s safe v; rm v; rm -rf w; done")
    threads = [threading.Thread(target=lambda: [box.call("delete_dir", path=f"{here}/v") for _ in range(50)])
               for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    box.post("kill_process", {"id": process["id"]})
    harness.wait_until(lambda: not harness.processes_with(mark), "the process is gone")
    assert box.sh(f"cat {here}/safe/d/keep") == "keep\n"


def test_requests_that_are_none(box):
    for verb in ("write_file", "read_file", "delete_file", "make_dir", "delete_dir", "list_dir"):
        for body in ("", "{", "[]", '{"path":1}'):
            r = box.daemon.request("POST", f"/{verb}", body=body)
            assert (r.status, r.text) == (400, "Invalid request\n")
    assert box.daemon.request("POST", "/write_file", body='{"path":"x","content":{}}').status == 400


def test_many_at_the_same_time(box, here):
    def work(i):
        for k in range(20):
            assert box.call("write_file", path=f"{here}/{i}", content=f"{i}-{k}") == {"success": True}
            assert box.call("read_file", path=f"{here}/{i}") == {"content": f"{i}-{k}"}
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert box.call("list_dir", path=here)["entries"] == [str(i) for i in range(8)]


def test_a_tenant_that_stops_helpers_does_not_stop_requests(make_daemon):
    """Each request has a helper of its own; one that is stopped is killed when its time is up."""
    box = Sandbox(make_daemon(HELPER_ANSWER_MS=4000))
    box.sh("true")
    box.run("for p in $(ps -e -o pid=,comm= | grep sandbox-helper | cut -c1-8); do kill -STOP $p; done", timeout=1)
    answers = []

    def ask():
        answers.append(box.post("list_dir", {"path": "/"}))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(answers) == 4 and all(r.status == 200 for r in answers)
    assert box.sh("echo alive") == "alive\n"
