# SPDX-License-Identifier: MIT
"""What the daemon may do to the control groups of its sandboxes, and what stays charged to nobody when they go."""
import os
import pathlib
import textwrap

import pytest

import harness

NAMES = 120_000           # each costs some 300 bytes: more than a slot that is used again may keep
LEFT_MAX = 6 << 20        # bytes; without reclaiming it is the 38 MiB of those names
RESETTABLE = {"memory.max_usage_in_bytes", "memory.peak"}

pytestmark = pytest.mark.skipif(not harness.ROOT, reason="an ordinary user has no control groups here")


def group_files(daemon):
    """name -> access mode of every file of a control group that the daemon itself holds."""
    found = {}
    for fd in harness.open_files(daemon.pid):
        try:
            path = os.readlink(f"/proc/{daemon.pid}/fd/{fd}")
            flags = pathlib.Path(f"/proc/{daemon.pid}/fdinfo/{fd}").read_text().split("flags:")[1].split()[0]
        except OSError:
            continue
        name = pathlib.PurePath(path).name
        if name.startswith(("memory.", "pids.", "cpu.", "cpuacct.", "cgroup.")):
            found.setdefault(name, set()).add(int(flags, 8) & os.O_ACCMODE)
    return found


def test_the_daemon_can_only_read_control_groups_but_for_the_peak(daemon):
    daemon.execute("def handler(e): return 1")
    files = group_files(daemon)
    assert {"pids.current", "pids.events"} <= set(files), files
    assert {name for name, modes in files.items() if modes != {os.O_RDONLY}} <= RESETTABLE, files


def memory_group(daemon):
    """The group above all slots."""
    dirs = harness.cgroup_dirs(daemon.guard())
    base = dirs.get("memory") or dirs[""]
    for up in (base, base.parent):
        if (up / f"sandbox-executor.{daemon.guard()}").is_dir():
            return up / f"sandbox-executor.{daemon.guard()}"
    raise AssertionError(f"no group of the guard below {base}")


def kernel_memory(group):
    """Charged to the group and everything below it, dead or alive."""
    one = group / "memory.kmem.usage_in_bytes"
    if one.exists():
        return int(one.read_text())
    rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(rows["slab"])


def test_names_that_a_tenant_looked_up_are_not_left_behind(make_daemon):
    """The kernel remembers every name, also one that does not exist. When the group of a slot goes, what it remembers
    would be charged to nobody."""
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, POOL_PYTHON=1, POOL_EXEC=1, POOL_NODE=0)
    daemon.execute("def handler(e): return 1")
    group = memory_group(daemon)
    before, slots = kernel_memory(group), {path.name for path in group.glob("s*")}
    result = daemon.execute(textwrap.dedent(f"""
        import os
        def handler(e):
            for i in range({NAMES}):
                try: os.stat(f"/usr/{harness.marker()}-{{i:060}}")
                except OSError: pass
            return 1
        """), timeout=60)
    assert result["status"] == "success", result
    harness.wait_until(lambda: slots - {path.name for path in group.glob("s*")}, "the slot was retired")
    harness.wait_until(lambda: kernel_memory(group) < before + LEFT_MAX,
                       lambda: f"names are forgotten: {before} bytes before, {kernel_memory(group)} now")
