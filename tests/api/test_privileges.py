# SPDX-License-Identifier: MIT
"""Every live process of a daemon has exactly the privilege that src/launcher/README tells."""
import os
import pathlib

import pytest

import harness
from test_rootless import NOBODY, programs  # noqa: F401 (a fixture)

README = pathlib.Path(harness.__file__).resolve().parents[2] / "src" / "launcher" / "README"
OUTSIDE = {"sandbox-guard": "guard", "sandbox-launch": "launcher", "sandbox-keeper": "keeper"}


def tables():
    """The tables of the page, in their order: lists of {column: word}."""
    found, head = [], None
    for line in README.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            head = None
        elif head is None:
            head = cells
            found.append([])
        elif not cells[0].startswith("-"):
            found[-1].append(dict(zip(head, cells)))
    return found


def status_of(pid):
    lines = harness.read_proc(pid, "status").decode().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Moment:
    """The tree of a daemon, read once: each reading walks through all processes of the machine."""

    def __init__(self, daemon):
        self.daemon, self.guard, self.launcher = daemon.pid, daemon.guard(), daemon.launcher()
        self.tree = daemon.tree()
        self.parents = {child: parent for parent, children in harness.children_by_parent().items() for child in children}
        self.zygote_spaces = {harness.namespace(pid, "user") for pid in self.tree if self.is_zygote(pid)}

    def is_outside(self, pid):
        """In no process namespace of a sandbox."""
        return harness.namespace(pid, "pid") in (harness.namespace("self", "pid"), harness.namespace(self.launcher, "pid"))

    def is_zygote(self, pid):
        """It is the launcher's child and runs something of its own."""
        return self.parents.get(pid) == self.launcher and self.is_outside(pid) and comm(pid) not in OUTSIDE


def comm(pid):
    return harness.read_proc(pid, "comm").decode().strip()


def kind_of(moment, pid):
    """The first column for a process."""
    if pid == moment.daemon:
        return "daemon"
    if not moment.is_outside(pid):
        return "init" if status_of(pid).get("NSpid", "").split()[-1:] == ["1"] else "tenant"
    if comm(pid).startswith("egress-"):
        return comm(pid)
    return OUTSIDE.get(comm(pid)) or ("zygote" if moment.is_zygote(pid) else "?")


OVER_OWN = (1 << int(pathlib.Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1) - 1  # a new user namespace gives all there are


def root_of(pid):
    """The host user that is root in the user namespace of a process; no host user in its map is root of the host."""
    rows = [[int(n) for n in line.split()] for line in harness.read_proc(pid, "uid_map").decode().splitlines()]
    assert all(outside > 0 for _, outside, _ in rows), rows
    return next((outside for inside, outside, _ in rows if inside == 0), None)


def seen_of(moment, pid):
    """What the table has to say of it."""
    status = status_of(pid)
    uid, namespace = int(status["Uid"].split()[1]), harness.namespace(pid, "user")
    everything = int(status_of(moment.guard)["CapEff"], 16)

    spaces = {harness.namespace(moment.guard, "user"): "launcher", harness.namespace("self", "user"): "host"}
    space = spaces.get(namespace) or ("zygote" if namespace in moment.zygote_spaces else "own")

    def amount(field):
        names = {0: "none", everything: "all"} if space in ("host", "launcher") else {0: "none", OVER_OWN: "own"}
        return names.get(int(status[field], 16), status[field])
    users = {0: "root", NOBODY: "service", int(status_of(moment.daemon)["Uid"].split()[1]): "service"}
    if space in ("zygote", "own") and uid not in users and uid == root_of(pid):
        users[uid] = "empty"
    return {"process": kind_of(moment, pid), "runs": os.readlink(f"/proc/{pid}/exe").rpartition("/")[2], "uid": users.get(uid, "slot"),
            "capabilities": amount("CapEff"), "bounding": amount("CapBnd"), "nnp": {"0": "no", "1": "yes"}[status["NoNewPrivs"]],
            "filter": {"0": "no", "2": "yes"}[status["Seccomp"]], "namespace": space}


def fits(row, seen):
    return all(word in ("any", seen[column]) for column, word in row.items())


def look(daemon, rows):
    """(processes that no row tells of, rows that were met)"""
    strange, met = [], set()
    moment = Moment(daemon)
    for pid in [moment.daemon, *moment.tree]:
        try:
            seen = seen_of(moment, pid)
        except (OSError, KeyError, ValueError):
            continue  # gone meanwhile
        matching = [i for i, row in enumerate(rows) if fits(row, seen)]
        met.update(matching)
        if not matching:
            strange.append(seen)
    return strange, met


def templates(daemon):
    return daemon.request("GET", "/v1/capabilities").json()["templates"]


@pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])
def test_processes_are_as_the_page_tells(make_daemon, programs, rootless):  # noqa: F811
    harness.need(harness.ROOT, "both ways need root")
    rows = tables()[int(rootless)]
    more = {"binary": programs / "sandbox-executor", "user": NOBODY, "ISOLATION_LEVEL": "basic"} if rootless else {}
    daemon = make_daemon(ISOLATION="native", POOL_PYTHON=1, POOL_NODE=1, NODE_ZYGOTE="true", **more)
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell", timeout=600)
    assert daemon.request("POST", "/v1/sandboxes", {"name": "kept"}).status == 201
    harness.wait_until(lambda: harness.processes_with(mark), "a tenant lives")
    harness.wait_until(lambda: all(templates(daemon)[name] == "warm" for name in ("python", "node")), "both zygotes are warm")
    state = []

    def settled():  # one that is being made is a keeper's copy for a moment
        state[:] = look(daemon, rows)
        return not state[0] and len(state[1]) == len(rows)
    harness.wait_until(settled, lambda: f"processes as the page tells: strange {state[0]}, "
                                        f"never seen {[row for i, row in enumerate(rows) if i not in state[1]]}")
    run.close()
