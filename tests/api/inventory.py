# SPDX-License-Identifier: MIT
"""What a daemon and everything below it hold, counted from the host's side."""
import collections
import os
import subprocess

import harness

# A language's spare slot may have been taken or not when we look, and a sandbox more or less wait. That is one slot more
# or less, with its processes, namespace, groups and descriptors; what leaks grows with the number of runs.
SLACK = {"processes": 8, "network namespaces": 3, "control groups": 12, "descriptors of the launcher": 30,
         "idle slots": 3, "descriptors of the daemon": 10}  # one for each sandbox that waits: of ten templates
# What a slot consists of, idle or not: its keeper, and what both hold.
OF_SLOTS = {"processes": 1, "network namespaces": 1, "control groups": 4, "descriptors of the launcher": 11}
IDLE_MAX = 16  # of a template (SPARE_MAX in src/launcher/slots.c)
TEMPLATES_OF_LAUNCHER = 5  # whose keepers the launcher forks itself: programs, shell, Ruby, PHP, Perl


def idle_slots(tree):
    """Those kept for the next rush, of each process that forks keepers: {pid: number}."""
    children, idle = harness.children_by_parent(), collections.Counter()
    for pid in tree:
        if harness.read_proc(pid, "comm").strip() == b"sandbox-keeper" and not children.get(pid):
            idle[int((harness.stat_fields(pid) or "?0")[1])] += 1
    return idle


def is_kept(path):
    """Results that are kept on purpose: as many as RETAIN_COUNT allows."""
    return path.parent.name == "executions"


def inventory(daemon):
    """Counts of everything that could pile up, for the daemon and all below it."""
    launcher = daemon.launcher()
    tree = [pid for pid in daemon.tree() if harness.is_alive(pid)]
    idle = idle_slots(tree)
    points = harness.cgroup_points()
    own = set(harness.cgroup_dirs("self", points).values())
    groups = {path for pid in tree for path in harness.cgroup_dirs(pid, points).values()}
    tops = {path.parent for path in groups if path.parent.name and path not in own}
    return {
        "processes": len(tree),
        "idle slots": idle.total(),
        "idle slots above the limit": sum(n > (TEMPLATES_OF_LAUNCHER if pid == launcher else 1) * IDLE_MAX for pid, n in idle.items()),
        "descriptors of the daemon": len([t for t in targets(daemon.pid) if not is_live_group(t)]),
        "descriptors of the launcher": len(harness.open_files(launcher)),
        "mounts of the daemon": len(harness.mounts(daemon.pid)),
        "mounts of the launcher": len(harness.mounts(launcher)),
        "mounts of the host": len(harness.mounts("self")),
        "control groups": sum(1 for top in tops for _, dirs, _ in os.walk(top) for _ in dirs),
        "network namespaces": len({harness.namespace(p, "net") for p in [daemon.pid, *tree]}
                                  | namespace_descriptors([daemon.pid, *tree])),
        "threads": sum(len(os.listdir(f"/proc/{p}/task")) for p in (daemon.pid, launcher)),
        "files in the state directory": sum(1 for f in daemon.state_dir.rglob("*") if not is_kept(f)),
    }


def targets(pid):
    """What the open descriptors of a process refer to."""
    found = []
    for number in harness.open_files(pid):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
        except OSError:
            pass  # closed meanwhile
    return found


def is_live_group(target):
    """Usage is read from files of each slot's control groups, opened when the slot is first used."""
    return "/sandbox-executor." in target and os.path.exists(target)


def namespace_descriptors(pids):
    """Network namespaces that somebody merely holds open."""
    return {target for pid in pids for target in targets(pid) if target.startswith("net:[")}


def zombies(daemon):
    return [p for p in daemon.tree() if (harness.stat_fields(p) or "?")[0] == "Z"]


def with_idle_slots(before, after):
    """The slack where many run: a machine under load needs more slots at the same time and keeps them, up
    to the limit. What the additional ones hold is theirs."""
    more = max(0, after["idle slots"] - before["idle slots"])
    return {**SLACK, "idle slots": SLACK["idle slots"] + more,
            **{name: SLACK[name] + more * each for name, each in OF_SLOTS.items()}}


def grown(before, after, slack=None):
    slack = SLACK if slack is None else slack
    return {k: (before[k], after[k]) for k in before if after[k] > before[k] + slack.get(k, 0)}


def names(daemon):
    """Who is there: what else grew is theirs."""
    return sorted((int((harness.stat_fields(p) or "?0")[1]), p, (harness.stat_fields(p) or "?")[0],
                   harness.read_proc(p, "comm").decode().strip()) for p in daemon.tree())


def check_nothing_grew(daemon, before, slack=lambda before, after: SLACK):
    """Graves are dug after the answer, so it may take a moment."""
    found = {}

    def same():
        after = inventory(daemon)
        found.update(bad=grown(before, after, slack(before, after)))
        return not found["bad"]
    harness.wait_until(same, lambda: f"back to what it was: {found['bad']}; {names(daemon)}", interval=0.05)


def settle(daemon):
    """The inventory once it has stopped moving: pools are refilled after the answer."""
    state = {"last": None, "same": 0}

    def quiet():
        now = inventory(daemon)
        state["same"] = state["same"] + 1 if now == state["last"] else 0
        state["last"] = now
        return now if state["same"] >= 5 else None
    return harness.wait_until(quiet, lambda: f"the inventory settles: {state['last']}", interval=0.06)


def orphaned_groups():
    """Control groups beside ours whose guard, which gave them its number as name, is dead."""
    return {str(entry) for path in set(harness.cgroup_dirs("self").values())
            for entry in path.glob("sandbox-executor.*") if not harness.is_alive(entry.suffix[1:])}


class Groups:
    """Those that what was started since could have left. Daemons in other containers of the host have
    theirs in the same place, called by numbers that mean nothing here: hardly by one of ours."""

    def __init__(self):
        self.first = self.number()

    @staticmethod
    def number():
        """Of a process that is born now; they ascend, and begin anew when all are used up."""
        with subprocess.Popen(["true"]) as child:
            return child.pid

    def orphaned(self):
        last = self.number()

        def is_since(n):
            return self.first < n < last if self.first < last else n > self.first or n < last
        return {group for group in orphaned_groups() if is_since(int(group.rpartition(".")[2]))}
