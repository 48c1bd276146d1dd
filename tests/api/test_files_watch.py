# SPDX-License-Identifier: MIT
"""/v1/sandboxes/{id}/files/watch: what happens in a directory, as events."""
import secrets
import socket

import pytest

import files_of
import harness
from files_of import until


@pytest.fixture(scope="module")
def box(daemon):
    with files_of.sandbox(daemon) as files:
        yield files


@pytest.fixture
def here(box):
    path = "/workspace/watch-" + secrets.token_hex(6)
    box.sh(f"mkdir -p '{path}'")
    yield path
    box.sh(f"rm -rf '{path}'")


def test_each_change_is_an_event(box, here):
    events = box.watch(here)
    box.sh("printf 1 >f; chmod 600 f; mv f g; rm g; mkdir d; rmdir d; touch end", cwd=here)
    seen = until(events, "create", "end")
    order = [("create", "f"), ("write", "f"), ("chmod", "f"), ("rename", "f"), ("create", "g"), ("remove", "g"),
             ("create", "d"), ("remove", "d"), ("create", "end")]
    assert [e for e in seen if e in order] == order


def test_what_was_there_and_what_is_below_is_no_event(box, here):
    box.sh("mkdir d; touch old", cwd=here)
    events = box.watch(here)
    box.sh("touch d/f; touch end", cwd=here)
    assert until(events, "create", "end") == [("create", "end")]


def test_below_a_directory_everything_is_seen(box, here):
    box.sh("mkdir -p a/b; ln -s /tmp link", cwd=here)
    events = box.watch(here, recursive=True)
    box.sh("touch a/b/1; mkdir -p x/y/z; touch x/y/z/2; mv x a/w; touch a/w/y/z/3; rm -r a/w; touch /tmp/not-seen; "
           "touch end", cwd=here)
    seen = until(events, "create", "end")
    for event in [("create", "a/b/1"), ("create", "x"), ("create", "x/y/z/2"), ("rename", "x"), ("create", "a/w"),
                  ("create", "a/w/y/z/3"), ("remove", "a/w/y/z/3"), ("remove", "a/w/y/z"), ("remove", "a/w")]:
        assert event in seen
    assert not any(name.startswith("link") for _, name in seen)


def test_nothing_is_told_twice_as_created(box, here):
    events = box.watch(here, recursive=True)
    made = []
    for i in range(40):
        box.sh(f"mkdir -p {i}/a/b; touch {i}/f {i}/a/f {i}/a/b/f", cwd=here)
        made += [f"{i}{rest}" for rest in ("", "/a", "/a/b", "/f", "/a/f", "/a/b/f")]
    box.sh("touch end", cwd=here)
    created = [name for kind, name in until(events, "create", "end") if kind == "create"]
    assert sorted(created) == sorted(made + ["end"])


def test_a_moved_tree_is_watched_where_it_is(box, here):
    box.sh("mkdir -p in/d out; touch in/d/old", cwd=here)
    events = box.watch(f"{here}/in", recursive=True)
    box.sh("mv in/d in/e; touch in/e/1; mv in/e out/e; touch out/e/2; mv out/e in/back; touch in/back/3 in/end", cwd=here)
    seen = until(events, "create", "end")
    assert [e for e in seen if e[0] in ("create", "rename")] == [
        ("rename", "d"), ("create", "e"), ("create", "e/1"), ("rename", "e"), ("create", "back"), ("create", "back/3"),
        ("create", "end")]


def test_entries_come_with_events(box, here):
    events = box.watch(here, entries=True)
    box.sh("printf four >f; touch end", cwd=here)
    for kind, data in events:
        if data["name"] == "end":
            break
        assert data["path"] == f"{here}/f" and data["entry"]["path"] == f"{here}/f"
        assert data["entry"]["type"] == "file"


def test_the_end_of_the_directory_is_told(box, here):
    box.sh("mkdir d", cwd=here)
    events = box.watch(f"{here}/d", recursive=True)
    box.sh("rmdir d; mkdir d; touch d/f", cwd=here)
    assert until(events, "remove", ".")[-1] == ("remove", ".")


def test_lost_events_are_told(box, here):
    """A client that does not read: the queue inside fills, and what is lost is told when it reads again."""
    response = stalled(box, here)
    try:
        box.sh("""python3 -c 'import os
for i in range(60000):
    name = "%0200d" % i
    os.close(os.open(name, os.O_CREAT)); os.unlink(name)'""", cwd=here, timeout=120)
        box.sh("touch end", cwd=here)
        text, mark = b"", b"event: overflow"
        response.settimeout(harness.DEADLINE)
        while mark not in text:
            more = response.recv(1 << 20)
            assert more, "the stream ended"
            text = text[-len(mark):] + more
    finally:
        response.close()


def stalled(box, path):
    """The socket of a watch whose client reads nothing; its receive buffer is small."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect((box.daemon.host, box.daemon.port))
    body = ('{"path": "%s"}' % path).encode()
    sock.sendall(f"POST {box.at}/files/watch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {box.daemon.secret}\r\n"
                 f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    text = b""
    while b"event: ready" not in text:
        text += sock.recv(1)
    return sock


def test_watches_have_a_limit_that_ends_with_their_clients(daemon):
    with files_of.sandbox(daemon, limits={"pids": 64}) as small:
        watches = []
        with pytest.raises(AssertionError, match="503"):
            for _ in range(65):
                watches.append(small.watch("/workspace"))
        assert len(watches) >= 2
        assert small.told("exists", path="/workspace") == {"exists": True}  # other requests have places
        small.sh("true")
        for watch in watches:
            watch.close()
        harness.wait_until(lambda: attempt(small), "a place for another watch")


def attempt(box):
    try:
        box.watch("/workspace").close()
    except AssertionError:
        return False
    return True


def test_a_watch_sees_its_own_sandbox_only(daemon, box, here):
    """Two sandboxes share the template's directories: what happens to them in one is not seen in the other."""
    with files_of.sandbox(daemon) as other:
        watched = [(box.watch(at), at) for at in ("/tmp", "/workspace", "/usr/bin", "/etc", "/dev/shm")]
        other.sh("touch /tmp/o /workspace/o /dev/shm/o; touch /usr/bin/o /etc/o 2>/dev/null; "
                 "cat /etc/passwd >/dev/null; chmod u+s /tmp/o; true")
        for events, at in watched:
            mark = "mark-" + secrets.token_hex(4)
            if box.run(f"touch {at}/{mark}")["code"] == 0:
                seen = until(events, "create", mark)
                assert not any(name == "o" for _, name in seen), at
                box.sh(f"rm {at}/{mark}")


def test_a_watch_ends_with_its_sandbox(daemon):
    with files_of.sandbox(daemon) as own:
        events = own.watch("/workspace", recursive=True)
        assert daemon.request("DELETE", own.at).status == 204
        assert not [kind for kind, _ in events if kind == "create"]


def test_a_forgotten_watch_leaves_no_helper(box, here):
    def helpers():
        return int(box.sh("grep -l '^Name:.sandbox-helper' /proc/[0-9]*/status 2>/dev/null | wc -l"))
    before = helpers()
    watches = [box.watch(here) for _ in range(8)]
    assert helpers() >= before + 6
    for watch in watches:
        watch.close()
    harness.wait_until(lambda: helpers() <= before + 2, "the helpers of watches whose clients left have ended")
