# SPDX-License-Identifier: MIT
"""/v1/sandboxes/{id}/files/stat, exists, list, move, copy: what is known about files, and trees that change."""
import base64
import os
import secrets

import pytest

import files_of
import harness

COUNT = 100_000


@pytest.fixture(scope="module")
def box(daemon):
    with files_of.sandbox(daemon) as files:
        yield files


@pytest.fixture
def here(box):
    path = "/workspace/entries-" + secrets.token_hex(6)
    box.sh(f"mkdir -p '{path}'")
    yield path
    box.sh(f"chmod -R u+rwx '{path}'; rm -rf '{path}'")


def names(entries, top):
    return [e["path"].removeprefix(top + "/") for e in entries]


# ---- one entry ----

def test_an_entry_says_what_stat_says(box, here):
    box.sh(f"printf hello >{here}/f; chmod 2750 {here}/f; touch -d @1000000000.5 {here}/f")
    told = box.told("stat", path=f"{here}/f")
    assert {k: told[k] for k in ("name", "path", "type", "size", "mode", "permissions")} == {
        "name": "f", "path": f"{here}/f", "type": "file", "size": 5, "mode": "2750", "permissions": "-rwxr-s---"}
    assert told["modified_at"] == "2001-09-09T01:46:40.500000Z"
    assert [told["owner"], told["group"]] == box.sh("id -un; id -gn").split()
    assert [told["uid"], told["gid"]] == [int(n) for n in box.sh("id -u; id -g").split()]
    assert "link" not in told and "metadata" not in told


def test_a_relative_path_begins_where_commands_do(box, here):
    box.sh(f"touch {here}/f")
    relative = os.path.relpath(f"{here}/f", box.sh("pwd").strip())
    assert box.told("stat", path=relative)["path"] == f"{here}/f"
    assert box.told("stat", path=f"./{relative}")["path"] == f"{here}/f"
    assert box.told("stat", path=f"{here}//.///f")["path"] == f"{here}/f"


@pytest.mark.parametrize("make, kind, letter", [
    ("mkdir x", "directory", "d"), ("mkfifo x", "fifo", "p"), ("ln -s f x", "symlink", "l"), ("touch x", "file", "-"),
    ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"x\")'", "socket", "s")])
def test_each_type_has_its_name(box, here, make, kind, letter):
    box.sh(make, cwd=here)
    told = box.told("stat", path=f"{here}/x")
    assert (told["type"], told["permissions"][0]) == (kind, letter)


def test_a_link_is_told_with_where_it_leads(box, here):
    box.sh("mkdir d; touch d/f; ln -s d/../d/f good; ln -s nowhere bad; ln -s loop loop; ln -s d dir", cwd=here)
    good = box.told("stat", path=f"{here}/good")
    assert (good["link"], good["target"], good["target_type"]) == ("d/../d/f", f"{here}/d/f", "file")
    assert box.told("stat", path=f"{here}/dir")["target_type"] == "directory"
    for name in ("bad", "loop"):
        told = box.told("stat", path=f"{here}/{name}")
        assert (told["type"], told["target"], told["target_type"]) == ("symlink", None, None)
        assert box.told("exists", path=f"{here}/{name}") == {"exists": True}
    assert box.told("exists", path=f"{here}/bad/below") == {"exists": False}


def test_exists(box, here):
    box.sh("touch f", cwd=here)
    assert box.told("exists", path=f"{here}/f") == {"exists": True}
    assert box.told("exists", path=f"{here}/f/g") == {"exists": False}
    assert box.told("exists", path=f"{here}/g") == {"exists": False}


@pytest.mark.parametrize("accounts", ["rm -f passwd group; mkfifo passwd group", "rm -f passwd group; mkdir passwd group",
                                      "head -c 3000000 /dev/zero | tr '\\0' : | tee passwd >group", "echo : >passwd; >group",
                                      "echo ':x:1000:' | tee passwd >group", "echo $(head -c 9000 /dev/zero | "
                                      "tr '\\0' a):x:1000:1000::: | tee passwd >group"])
def test_hostile_accounts_are_numbers_or_cut_names(daemon, accounts):
    with files_of.sandbox(daemon) as own:
        result = own.run(accounts, cwd="/etc")
        harness.need(result["code"] == 0, "/etc that can be written")
        own.write("/workspace/f", b"x")
        told = own.told("stat", path="f")
        assert told["size"] == 1 and len(told["owner"]) < 33 and len(told["group"]) < 33


@pytest.mark.parametrize("verb, body", [
    ("stat", {}), ("stat", {"path": ""}), ("stat", {"path": "a\0b"}), ("stat", {"path": "a" * 5000}), ("stat", {"path": 1}),
    ("stat", {"path": "x", "depth": 1}), ("list", {"path": ".", "depth": 0}), ("list", {"path": ".", "depth": 257}),
    ("list", {"path": ".", "limit": 0}), ("list", {"path": ".", "limit": 100_001}), ("list", {"path": ".", "after": "?"}),
    ("list", {"path": ".", "after": base64.b64encode(b"a\0").decode()}), ("move", {"from": "a"}), ("copy", {"to": "a"}),
    ("move", {"from": "", "to": "b"}), ("watch", {}), ("sign", {"path": "x", "method": "POST"}),
    ("sign", {"path": "x", "expires_in": 0}), ("sign", {"path": "x", "expires_in": 604_801})])
def test_what_is_wrong_is_a_400(box, verb, body):
    assert box.ask(verb, **body).status == 400


@pytest.mark.parametrize("verb, body, status", [
    ("stat", {"path": "nothing"}, 404), ("list", {"path": "nothing"}, 404), ("watch", {"path": "nothing"}, 404),
    ("move", {"from": "nothing", "to": "x"}, 404), ("copy", {"from": "nothing", "to": "x"}, 404),
    ("list", {"path": "/etc/passwd"}, 404), ("copy", {"from": "/etc/passwd", "to": "/proc/x/y"}, 404)])
def test_what_cannot_be_done_says_why(box, verb, body, status):
    response = box.ask(verb, **body)
    assert response.status == status, response
    assert response.json()["error_code"].startswith("Executor.")


def test_an_unknown_sandbox_is_a_404(daemon):
    assert files_of.Files(daemon, "sbnothing").ask("stat", path="x").status == 404


# ---- lists ----

def test_a_list_is_sorted_and_each_directory_comes_before_what_is_in_it(box, here):
    box.sh("mkdir -p b/y/z a-1 a; touch b/y/f b/x a/f a-1/g c; ln -s b l", cwd=here)
    assert names(box.list(here), here) == ["a", "a-1", "b", "c", "l"]
    assert names(box.list(here, depth=2), here) == ["a", "a/f", "a-1", "a-1/g", "b", "b/x", "b/y", "c", "l"]
    whole = ["a", "a/f", "a-1", "a-1/g", "b", "b/x", "b/y", "b/y/f", "b/y/z", "c", "l"]
    assert names(box.list(here, depth=256), here) == whole
    assert names(box.list(f"{here}/l", depth=9), f"{here}/l") == ["x", "y", "y/f", "y/z"]
    for limit in (1, 2, 3, 10, 11, 12):
        assert names(box.list(here, depth=9, limit=limit), here) == whole


def test_a_list_goes_on_behind_what_has_been_removed(box, here):
    box.sh("mkdir -p d/e; touch a d/e/1 d/e/2 d/e/3 f", cwd=here)
    part = box.told("list", path=here, depth=9, limit=4)
    assert names(part["entries"], here) == ["a", "d", "d/e", "d/e/1"]
    box.sh("rm d/e/1", cwd=here)
    rest = box.told("list", path=here, depth=9, after=part["next"])
    assert names(rest["entries"], here) == ["d/e/2", "d/e/3", "f"] and rest["next"] is None
    box.sh("rm -r d", cwd=here)
    assert names(box.told("list", path=here, depth=9, after=part["next"])["entries"], here) == ["f"]


def test_names_of_any_bytes_can_be_listed_and_asked_for(box, here):
    box.sh("""python3 -c 'import os
for name in [b"\\xff\\xfe", b"new\\nline", b"q\\"uote\\\\", b"\\x01\\x7f", "ü€🐎".encode(), b"-rf", b" "]:
    open(os.path.join(os.fsencode(os.getcwd()), name), "wb").write(name)'""", cwd=here)
    entries = box.list(here)
    assert len(entries) == 7
    for entry in entries:
        path = base64.b64decode(entry["path_base64"]) if "path_base64" in entry else entry["path"].encode()
        assert box.read(path).body == os.path.basename(path)


def test_a_hostile_tree_is_listed(box, here):
    box.sh("ln -s . self; ln -s .. up; ln -s loop loop; mkfifo pipe; mkdir closed open; touch closed/f open/f; "
           "chmod 000 closed", cwd=here)
    found = names(box.list(here, depth=256), here)
    assert [n for n in found if n != "closed/f"] == ["closed", "loop", "open", "open/f", "pipe", "self", "up"]


def test_a_deep_tree_is_listed_to_its_limit(box, here):
    # deeper than PATH_MAX: made and seen by descriptors only
    box.sh("""python3 -c 'import os
for i in range(600):
    os.mkdir("d" * 20); os.chdir("d" * 20)'""", cwd=here)
    assert len(box.list(here, depth=10)) == 10
    assert len(box.list(here, depth=256)) == 256
    assert box.daemon.request("DELETE", box.url(here) + "/" + "d" * 20 + "?recursive=true").status == 204


def test_a_large_directory_is_listed_in_parts_and_whole(box, here):
    box.sh(f"""python3 -c 'import os
for i in range({COUNT}):
    os.close(os.open(str(i), os.O_CREAT))'""", cwd=here, timeout=120)
    expected = sorted(str(i) for i in range(COUNT))
    assert [e["name"] for e in box.list(here)] == expected
    assert [e["name"] for e in box.told("list", path=here, limit=COUNT)["entries"]] == expected


# ---- moving and copying ----

def test_moving_makes_parents_and_tells_what_is_there(box, here):
    box.sh("printf 1 >a", cwd=here)
    told = box.told("move", **{"from": f"{here}/a", "to": f"{here}/x/y/b"})
    assert told["path"] == f"{here}/x/y/b" and told["size"] == 1
    assert box.told("exists", path=f"{here}/a") == {"exists": False}


def test_what_is_there_is_replaced_only_if_asked_for(box, here):
    box.sh("printf 1 >a; printf 22 >b; mkdir d; touch d/in", cwd=here)
    for verb in ("move", "copy"):
        assert box.ask(verb, **{"from": f"{here}/a", "to": f"{here}/b"}).status == 409
        assert box.ask(verb, **{"from": f"{here}/a", "to": f"{here}/d"}).status == 409
        assert box.ask(verb, **{"from": f"{here}/a", "to": f"{here}/d", "replace": True}).status == 409
    assert box.sh("cat a b; ls -A d", cwd=here) == "122in\n"
    assert box.told("copy", **{"from": f"{here}/a", "to": f"{here}/b", "replace": True})["size"] == 1
    assert box.told("move", **{"from": f"{here}/a", "to": f"{here}/b", "replace": True})["size"] == 1
    assert box.sh("ls -A; cat b", cwd=here) == "b\nd\n1"


def test_moving_to_another_file_system_is_a_copy_and_a_removal(box, here):
    box.sh("mkdir -p t/s; printf x >t/s/f; chmod 640 t/s/f; ln -s f t/s/l; touch -d @1000000000 t/s/f", cwd=here)
    there = "/tmp/moved-" + os.path.basename(here)
    assert box.sh(f"stat -c %d {here}") != box.sh("stat -c %d /tmp"), "one file system"
    box.told("move", **{"from": f"{here}/t", "to": there})
    assert box.sh(f"ls -A {here}; readlink {there}/s/l; stat -c '%a %Y' {there}/s/f; rm -r {there}") == \
        "f\n640 1000000000\n"


def test_a_copy_is_the_same_tree(box, here):
    box.sh("mkdir -p t/u/v; printf x >t/f; chmod 4751 t/f; ln -s ../f t/u/l; ln -s nowhere t/u/bad; mkfifo t/p; "
           "chmod 500 t/u; head -c 3000000 /dev/urandom >t/large; touch -d @1000000000 t/f", cwd=here)
    box.told("copy", **{"from": f"{here}/t", "to": f"{here}/c"})
    listing = "find . -printf '%P %y %l %m %T@\\n' | grep -v '^ ' | grep -v ' [dlp] ' | sort"
    original = box.sh(listing, cwd=f"{here}/t").replace("4751", "751")  # no copy is set-uid
    assert box.sh(listing, cwd=f"{here}/c") == original
    assert box.sh("find . -printf '%P %y %l\\n' | sort", cwd=f"{here}/c") == \
        box.sh("find . -printf '%P %y %l\\n' | sort", cwd=f"{here}/t")
    box.sh("cmp t/large c/large; stat -c %a c/u | grep -x 500", cwd=here)


def test_a_copy_into_itself_is_refused_and_leaves_nothing(box, here):
    box.sh("mkdir -p t/u; ln -s t/u via", cwd=here)
    for to in ("t/u/c", "t/c", "via/c"):
        assert box.ask("copy", **{"from": f"{here}/t", "to": f"{here}/{to}"}).status == 400
    assert box.ask("move", **{"from": f"{here}/t", "to": f"{here}/t/u/c"}).status == 400
    assert box.sh("find . | sort", cwd=here) == ".\n./t\n./t/u\n./via\n"


def test_a_copy_that_fails_leaves_nothing(daemon):
    with files_of.sandbox(daemon, limits={"disk_mb": 8}) as small:
        small.sh("mkdir t; head -c 3000000 /dev/zero >t/a; head -c 3000000 /dev/zero >t/b")
        response = small.ask("copy", **{"from": "t", "to": "c"})
        assert response.status == 507, response
        assert small.sh("ls -A") == "t\n"
