# SPDX-License-Identifier: MIT
"""What a tenant cannot see or do, one mechanism at a time, and what it still can.

Where the host can testify, it does. The second half is as important as the first: a sandbox in
which ordinary programs break is no better than one that leaks.
"""
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap

import pytest

import harness
from harness import SYSCALLS

WORK_S = int(50 * harness.SLOW)  # for ordinary work, which is heavy


def python(daemon, body, **fields):
    """Runs the body of a handler (with call() for raw system calls) and returns its value."""
    code = SYSCALLS + "\ndef handler(event):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return daemon.returned(code, **fields)


def status_fields(daemon, path="/proc/self/status"):
    text = python(daemon, f"return open({path!r}).read()")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


# ---- files ----


@pytest.fixture
def host_file():
    """A file on the host that anybody may read."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-host-"))
    directory.chmod(0o755)
    path = directory / "readable"
    path.write_text("host content")
    path.chmod(0o644)
    yield path
    shutil.rmtree(directory)


def test_host_files_are_not_there(daemon, host_file):
    paths = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root", "/home", "/var/lib", "/var/log", "/boot", "/mnt",
             "/media", "/sys/kernel", "/sys/fs/cgroup", "/run/systemd", "/var/run/docker.sock", "/lost+found",
             str(host_file), str(host_file.parent), str(harness.BUILD), str(daemon.state_dir), str(daemon.directory)]
    seen = python(daemon, f"""
        return [p for p in {paths!r} if os.path.exists(p) and (os.path.isfile(p) or os.listdir(p))]
        """)
    assert seen == []


def test_host_files_are_not_reached_through_proc(daemon, host_file):
    tries = [f"/proc/{p}/{d}{host_file}" for p in ("1", "self", "2", "thread-self") for d in ("root", "cwd")]
    tries += ["/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow", "/proc/1/cwd/../etc/shadow"]
    seen = python(daemon, f"""
        found = []
        for p in {tries!r}:
            try: found.append(open(p).read())
            except OSError: pass
        return found
        """)
    assert seen == []


@pytest.fixture(scope="module")
def warm_daemon(make_daemon_module):
    return make_daemon_module(POOL_PYTHON=1, POOL_NODE=1, NODE_ZYGOTE="true", ISOLATION="native")


# A program of each kind of template that prints everything of /proc that names files: its own and its parent's.
SHOW_PROC = "cat /proc/self/maps /proc/self/mountinfo /proc/self/cmdline /proc/self/environ; readlink /proc/self/exe /proc/1/exe"
SHOWS_PATHS = {
    "python": """
import os
out = []
for name in ("maps", "mountinfo", "mounts", "cmdline", "environ", "auxv", "stat"):
    for pid in ("self", "1", str(os.getppid())):
        try: out.append(open(f"/proc/{pid}/{name}", "rb").read().decode("latin-1"))
        except OSError: pass
for pid in ("self", "1"):
    for name in ("exe", "cwd", "root"):
        try: out.append(os.readlink(f"/proc/{pid}/{name}"))
        except OSError: pass
print("".join(out))
""",
    "javascript": """
const fs = require('fs');
for (const n of ['maps', 'mountinfo', 'cmdline', 'environ']) console.log(fs.readFileSync('/proc/self/' + n, 'latin1'));
console.log(fs.readlinkSync('/proc/self/exe'));
""",
    "shell": "while read -r line; do echo \"$line\"; done </proc/$$/maps; readlink /proc/$$/exe; " + SHOW_PROC,
}


@pytest.mark.parametrize("language, program", [("python", "sandbox-zygote-python"), ("javascript", "sandbox-zygote-node.node"),
                                               ("shell", "sandbox-shell.so")])
def test_no_path_of_the_host_is_shown(warm_daemon, language, program):
    """Where the programs of the service lie, and where it keeps its state, is nobody's business inside."""
    def warmed():
        text = warm_daemon.execute(SHOWS_PATHS[language], language)["stdout"]
        return text if program in text else None
    text = harness.wait_until(warmed, "a sandbox with a warmed interpreter")
    for path in (harness.BUILD, warm_daemon.state_dir, warm_daemon.directory):
        assert str(path) not in text, [line for line in text.splitlines() if str(path) in line]


# Files that nothing opens by itself: one of each kind of mount that a sandbox has not for itself alone.
SHARED = ["/usr/share/zoneinfo/Antarctica/Troll", "/etc/host.conf", "/dev/full", "/opt/sandbox-executor/bin/sandbox-inspect"]
SPY = """
import ctypes, fcntl, os, signal, struct, subprocess
libc = ctypes.CDLL(None, use_errno=True)
def handler(event):
    told = []
    signal.signal(signal.SIGIO, lambda *_: told.append("dnotify"))
    spy, held = libc.inotify_init1(os.O_NONBLOCK), []
    for path in event["paths"]:
        assert libc.inotify_add_watch(spy, path.encode(), 0xfff) >= 0
        held.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.append(os.open(os.path.dirname(path), os.O_RDONLY))
    try: own = os.read(spy, 65536)
    except BlockingIOError: own = b""
    subprocess.Popen([event["mark"], "600"], executable="/bin/sleep").wait()
    for fd in held[1::2]:
        fcntl.fcntl(fd, fcntl.F_NOTIFY, 0)
    try: told.append(f"inotify {len(os.read(spy, 65536))}")
    except BlockingIOError: pass
    return told, len(own) > 0
"""
DIRECTORIES = """
import fcntl, os, signal, subprocess
def handler(event):
    told = []
    signal.signal(signal.SIGIO, lambda *_: told.append(1))
    fd = os.open("/usr/share/zoneinfo/Antarctica", os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
    subprocess.Popen([event["mark"], "600"], executable="/bin/sleep").wait()
    others = len(told)
    with open("/usr/share/zoneinfo/Antarctica/Troll", "rb") as f: f.read(1)
    return others, len(told)
"""


def spied(daemon, code, work):
    """What a program tells that watches and locks while `work` is done elsewhere."""
    mark = harness.marker()
    run = daemon.start(code, "python", event={"mark": mark, "paths": SHARED}, timeout=60)
    pid = harness.wait_until(lambda: harness.processes_with(mark), "the spy is ready")[0]
    work()
    os.kill(pid, signal.SIGTERM)
    result = run.receive().json()
    assert result["status"] == "success", result
    return result["return_value"]


def read_shared(daemon):
    paths = " ".join(SHARED)
    assert daemon.printed(f"for f in {paths}; do head -c1 $f | wc -c; flock -n -x $f true || echo locked $f; done") == "1\n" * len(SHARED)
    with open(SHARED[0], "rb") as f:
        f.read(1)


def test_inodes_are_not_shared_with_a_neighbour_or_the_host(daemon):
    """No watch tells what others open, no lock is met."""
    assert spied(daemon, SPY, lambda: read_shared(daemon)) == [[], True], "only its own doings are told"


def test_directories_are_not_shared_with_a_neighbour_or_the_host(daemon):
    assert spied(daemon, DIRECTORIES, lambda: read_shared(daemon)) == [0, 1], "only its own doings are told"


def test_the_root_is_minimal(daemon):
    assert set(daemon.returned("import os\ndef handler(e): return os.listdir('/')")) <= {
        "bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "workspace",
        "opt", "home", "root", "run", "srv", "var", "sys", "mnt", "media"}


def test_etc_is_synthetic(daemon):
    names = daemon.returned("import os\ndef handler(e): return os.listdir('/etc')")
    assert {"passwd", "group", "hosts", "nsswitch.conf"} <= set(names)
    assert not {"shadow", "gshadow", "sudoers", "ssh", "crontab", "fstab"} & set(names)
    inside = daemon.printed("cat /etc/passwd")
    assert inside != pathlib.Path("/etc/passwd").read_text()
    assert {line.split(":")[0] for line in inside.splitlines()} <= {"root", "sandbox", "nobody"}


@pytest.mark.parametrize("path", ["/etc/machine-id", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"])
def test_identity_of_the_host_is_not_told(daemon, path):
    host = pathlib.Path(path)
    inside = daemon.printed(f"cat {path} 2>/dev/null; true").strip()
    if host.exists() and host.read_text().strip():
        assert inside != host.read_text().strip()
    assert socket.gethostname() not in inside


def test_the_system_is_read_only(daemon):
    canary = f"/usr/lib/{harness.marker()}"
    got = python(daemon, f"""
        found = []
        for p in [{canary!r}, '/usr/bin/x', '/etc/x', '/bin/x', '/x', '/dev/x', '/lib/x']:
            try:
                open(p, 'w').close()
                found.append(p)
            except OSError: pass
        for p in ['/usr/bin/env', '/etc/passwd']:
            for action in (lambda: os.open(p, os.O_WRONLY), lambda: os.unlink(p), lambda: os.chmod(p, 0o777),
                           lambda: os.rename(p, p + '2'), lambda: os.utime(p)):
                try:
                    action()
                    found.append(p)
                except OSError: pass
        return found
        """)
    assert got == []
    assert not os.path.exists(canary)


def test_every_mount_of_the_system_is_read_only_and_nosuid(daemon):
    for line in daemon.printed("cat /proc/self/mountinfo").splitlines():
        fields = line.split()
        point, options = fields[4], set(fields[5].split(","))
        assert "nosuid" in options, line
        if point in ("/workspace", "/tmp", "/dev/shm", "/dev/pts", "/proc") or point.startswith("/dev/"):
            continue
        assert "ro" in options, line


def test_mountinfo_names_nothing_of_the_host(daemon):
    text = daemon.printed("cat /proc/self/mountinfo /proc/mounts")
    for word in (str(daemon.state_dir), str(daemon.directory), str(harness.BUILD), "cgroup"):
        assert word not in text


def test_devices_are_the_harmless_ones(daemon):
    names = set(daemon.returned("import os\ndef handler(e): return os.listdir('/dev')"))
    assert {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr"} <= names
    assert names <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout",
                     "stderr", "core"}


def test_devices_work(daemon):
    got = daemon.printed("echo x > /dev/null && head -c 2 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c; "
                         "echo y > /dev/full || echo full")
    assert got.split() == ["00", "00", "8", "full"]


def test_proc_files_of_the_machine_are_closed(daemon):
    got = python(daemon, """
        opened = []
        for p in ['/proc/kcore', '/proc/kallsyms', '/proc/keys', '/proc/timer_list', '/proc/sched_debug', '/proc/kmsg',
                  '/proc/sysrq-trigger', '/proc/scsi/scsi']:
            try:
                with open(p, 'rb') as f:
                    text = f.read(4096)
                    if text.strip(b'\\n') and not (p == '/proc/kallsyms' and b'0000000000000000 ' in text):
                        opened.append(p)
            except OSError: pass
        for p in ['/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger',
                  '/proc/sys/vm/overcommit_memory', '/proc/self/attr/current', '/proc/self/uid_map',
                  '/proc/sys/net/ipv4/ip_forward', '/proc/irq/0/smp_affinity', '/proc/self/setgroups']:
            try:
                with open(p, 'w') as f: f.write('1')
                opened.append('written ' + p)
            except OSError: pass
        return opened
        """)
    assert got == []


# ---- processes ----


def test_own_pid_namespace(daemon):
    me, parent, seen, inode = python(daemon, """
        return [os.getpid(), os.getppid(), [int(n) for n in os.listdir('/proc') if n.isdigit()],
                os.readlink('/proc/self/ns/pid')]
        """)
    assert me != 1 and me < 100 and parent < me
    assert set(seen) <= set(range(1, me + 1)) and 1 in seen, "its own processes and init, nothing else"
    assert inode != harness.namespace("self", "pid")


@pytest.mark.parametrize("kind", ["pid", "net", "mnt", "ipc", "uts", "user", "cgroup"])
def test_namespaces_differ_from_the_hosts(daemon, kind):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    pid = harness.wait_until(lambda: harness.processes_with(mark), "the program runs")[0]
    ours, theirs = harness.namespace("self", kind), harness.namespace(pid, kind)
    run.close()
    if kind == "user" and harness.ROOT:
        assert theirs is not None  # as root a host uid of its own serves as well
    else:
        assert theirs and theirs != ours


def test_two_sandboxes_share_no_namespace_and_no_uid(daemon):
    marks = [harness.marker(), harness.marker()]
    runs = [daemon.start(harness.spawn_marked(m), "shell") for m in marks]
    one, two = [harness.wait_until(lambda m=m: harness.processes_with(m), "it runs")[0] for m in marks]
    for kind in ("pid", "net", "mnt", "ipc", "uts"):
        assert harness.namespace(one, kind) != harness.namespace(two, kind), kind
    if harness.ROOT:
        uids = [os.stat(f"/proc/{p}").st_uid for p in (one, two)]
        assert uids[0] != uids[1] and 0 not in uids
    for run in runs:
        run.close()


def test_host_sees_no_privilege_in_the_tenant(daemon):
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    pid = harness.wait_until(lambda: harness.processes_with(mark), "the program runs")[0]
    text = harness.read_proc(pid, "status").decode()
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    run.close()
    assert "0" not in fields["Uid"].split() and "0" not in fields["Gid"].split()
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    assert fields["Groups"].split() in ([], [fields["Gid"].split()[0]])


def test_no_capability_no_privilege_inside(daemon):
    fields = status_fields(daemon)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    assert "0" not in fields["Uid"].split() and "0" not in fields["Gid"].split()
    assert python(daemon, "return [os.getgroups() in ([], [os.getgid()]), os.getuid() != 0]") == [True, True]


def test_securebits_are_locked_down(daemon):
    bits = python(daemon, "return _libc.prctl(27, 0, 0, 0, 0)")  # PR_GET_SECUREBITS
    assert bits & 0b101 == 0b101 or bits == 0, "NOROOT and NO_SETUID_FIXUP, or nothing to lose"


@pytest.mark.parametrize("program", ["su", "passwd", "mount", "chsh", "newgrp", "sudo"])
def test_setuid_programs_gain_nothing(daemon, program):
    harness.need(shutil.which(program), f"{program} is not installed")
    got = python(daemon, f"""
        import subprocess
        child = subprocess.Popen(['{shutil.which(program)}'], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try: uids = open(f'/proc/{{child.pid}}/status').read().split('Uid:')[1].split()[:4]
        except (OSError, IndexError): uids = []
        child.stdin.close()
        child.kill(); child.wait()
        return ['0' in uids, subprocess.run(['sh', '-c', 'echo id -u | {program} 2>/dev/null'],
                                            capture_output=True, text=True).stdout.strip() == '0']
        """)
    assert got == [False, False]


def test_own_files_cannot_become_setuid_programs(daemon):
    got = daemon.printed("cp /usr/bin/id mine && chmod 6755 mine && ./mine -u; id -u")
    effective, real = got.split()
    assert effective == real != "0"


def test_init_and_its_memory_are_out_of_reach(daemon):
    got = python(daemon, """
        opened = []
        for name in ['mem', 'environ', 'maps', 'auxv', 'stack', 'syscall', 'pagemap', 'io', 'personality']:
            try:
                with open('/proc/1/' + name, 'rb') as f:
                    if f.read(16): opened.append(name)
            except OSError: pass
        for name in ['root', 'cwd', 'exe', 'fd/0', 'fd/1', 'fd/3', 'ns/pid', 'ns/net']:
            try: opened.append(os.readlink('/proc/1/' + name))
            except OSError: pass
        try: numbers = os.listdir('/proc/1/fd')
        except OSError: numbers = []
        for name in numbers:
            for action in (os.readlink, open, os.stat):
                try: opened.append(action('/proc/1/fd/' + name) and name)
                except OSError: pass
        return opened, numbers
        """)
    assert got[0] == []
    # The kernel shows the bare numbers to the root of the namespace in which a warmed interpreter was
    # started. Of an ordinary user that is himself, and the tenant's user is the same one outside.
    assert got[1] == [] or not harness.ROOT


def test_init_survives_signals_of_the_tenant(daemon):
    result = daemon.execute(textwrap.dedent("""
        import os, signal
        def handler(event):
            for name in ('KILL', 'STOP', 'TERM', 'SEGV', 'USR1', 'CHLD'):
                try: os.kill(1, getattr(signal, 'SIG' + name))
                except OSError: pass
            return 'alive'
        """), timeout=10)
    assert (result["status"], result["return_value"]) == ("success", "alive")


def test_kill_of_everything_is_harmless_outside(daemon):
    bystander = subprocess.Popen(["sleep", "600"])
    harness.live.add(bystander.pid)
    before = set(daemon.tree())
    launcher = daemon.launcher()
    result = daemon.execute("import os\ndef handler(e):\n    os.kill(-1, 9)\n    return 'me'", timeout=10)
    assert result["status"] in ("success", "failed", "error")
    for number in (9, 15):
        daemon.execute(f"kill -{number} -1; kill -{number} 0; true", "shell", timeout=5)
    daemon.execute("kill -STOP -1; kill -STOP 0; true", "shell", timeout=1)
    assert bystander.poll() is None
    assert harness.is_alive(launcher) and launcher in before
    assert daemon.printed("echo ok") == "ok\n"
    bystander.kill()
    bystander.wait()


def test_descriptors_are_the_three_and_the_channel(daemon):
    got = python(daemon, """
        d = os.open('/proc/self/fd', os.O_RDONLY)
        numbers = sorted(int(n) for n in os.listdir(d) if int(n) != d)
        links = {n: os.readlink(f'/proc/self/fd/{n}') for n in numbers if os.path.islink(f'/proc/self/fd/{n}')}
        return links
        """)
    assert {int(n) for n in got} <= {0, 1, 2, 3}, got
    for target in got.values():
        assert re.match(r"(pipe|socket|anon_inode):|/dev/null", target), got


def test_descriptors_of_a_shell(daemon):
    got = daemon.printed("ls -l /proc/$$/fd >/tmp/list; sed -n 's/.* \\([0-9]*\\) -> \\(.*\\)/\\1 \\2/p' /tmp/list")
    for line in got.splitlines():
        number, target = line.split(" ", 1)
        assert int(number) in (0, 1, 2, 3, 255), got
        assert not target.startswith("/") or target.startswith(("/dev/", "/workspace", "/tmp", "/proc")), got


def test_descriptors_of_node_show_no_host_file(daemon):
    got = daemon.returned("""
        const fs = require('fs')
        const target = (n) => { try { return fs.readlinkSync('/proc/self/fd/' + n) } catch { return '' } }
        exports.handler = () => fs.readdirSync('/proc/self/fd').map(target)
        """, "javascript")
    for target in got:
        assert not target.startswith("/") or target.startswith(("/dev/", "/workspace", "/proc", "/tmp")), got


def test_descriptors_cannot_be_reopened_as_the_hosts_files(daemon):
    got = python(daemon, """
        found = []
        for n in range(0, 64):
            for mode in (os.O_RDONLY | os.O_DIRECTORY, os.O_PATH | os.O_DIRECTORY):
                try: found.append(os.listdir(os.open(f'/proc/self/fd/{n}', mode)))
                except OSError: pass
            try: found.append(os.listdir(f'/proc/self/fd/{n}/..'))
            except OSError: pass
        return found
        """)
    assert got == []


def test_the_environment_of_the_daemon_is_nowhere(daemon):
    text = daemon.printed("""cd /proc
        cat [0-9]*/environ [0-9]*/cmdline [0-9]*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; env; true""")
    for word in (daemon.secret, harness.CANARY, "SANDBOX_SECRET", "STATE_DIR", str(daemon.directory)):
        assert word not in text


def test_no_process_of_a_sandbox_holds_the_secrets_at_all(daemon):
    """Seen from the host: not even init and the keepers below the launcher have them."""
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    below = harness.descendants(daemon.launcher())
    held = [p for p in below if daemon.secret.encode() in harness.read_proc(p, "environ")
            or harness.CANARY.encode() in harness.read_proc(p, "environ")]
    run.close()
    assert below and held == []


def test_core_dumps_are_off(daemon):
    got = daemon.returned("import resource\ndef handler(e): return list(resource.getrlimit(resource.RLIMIT_CORE))")
    assert got == [1, 1]  # 0 would start a core_pattern that is a pipe (test_core_pattern.py)


def test_session_and_terminal_are_its_own(daemon):
    got = python(daemon, """
        tty = 'yes'
        try: os.close(os.open('/dev/tty', os.O_RDWR))
        except OSError: tty = 'no'
        return [os.getsid(0) != 0, tty]
        """)
    assert got == [True, "no"]


POLICY = 38  # of the fields of /proc/PID/stat behind the name


def policy(text):
    return int(text.rsplit(")", 1)[1].split()[POLICY])


def test_programs_take_their_turn_like_any_other(daemon):
    ordinary = [
        daemon.returned("def handler(e): return open('/proc/self/stat').read()"),
        daemon.returned("exports.handler = () => require('fs').readFileSync('/proc/self/stat', 'utf8')", "javascript"),
        daemon.printed("cat /proc/self/stat"),
        daemon.request("POST", "/run", json={"cmd": "cat /proc/self/stat"}).json()["stdout"],
    ]
    assert [policy(text) for text in ordinary] == [os.SCHED_OTHER] * 4


def test_host_name_is_hidden(daemon):
    inside = daemon.printed("cat /proc/sys/kernel/hostname").strip()
    assert inside != socket.gethostname() and inside


# ---- system calls ----

NUMBERS = {
    "x86_64": dict(
        ptrace=101, syslog=103, personality=135, ustat=136, sysfs=139, vhangup=153, modify_ldt=154, pivot_root=155,
        adjtimex=159, chroot=161, acct=163, settimeofday=164, mount=165, umount2=166, swapon=167, reboot=169,
        sethostname=170, iopl=172, ioperm=173, init_module=175, delete_module=176, quotactl=179, clone=56,
        io_setup=206, lookup_dcookie=212, clock_settime=227, kexec_load=246, add_key=248, request_key=249, keyctl=250,
        mknodat=259, unshare=272, vmsplice=278, move_pages=279, perf_event_open=298, fanotify_init=300,
        name_to_handle_at=303, open_by_handle_at=304, setns=308, process_vm_readv=310, process_vm_writev=311,
        kcmp=312, finit_module=313, seccomp=317, bpf=321, userfaultfd=323, io_uring_setup=425, open_tree=428,
        move_mount=429, fsopen=430, fsmount=432, pidfd_open=434, clone3=435, pidfd_getfd=438, process_madvise=440,
        mount_setattr=442, setuid=105, setgid=106, setgroups=116, capset=126, setresuid=117, sched_setscheduler=144),
    "aarch64": dict(
        ptrace=117, syslog=116, personality=92, vhangup=58, pivot_root=41, adjtimex=171, chroot=51, acct=89,
        settimeofday=170, mount=40, umount2=39, swapon=224, reboot=142, sethostname=161, init_module=105,
        delete_module=106, quotactl=60, clone=220, lookup_dcookie=18, clock_settime=112, kexec_load=104, add_key=217,
        request_key=218, keyctl=219, mknodat=33, unshare=97, vmsplice=75, move_pages=239, perf_event_open=241,
        fanotify_init=262, name_to_handle_at=264, open_by_handle_at=265, setns=268, process_vm_readv=270,
        process_vm_writev=271, kcmp=272, finit_module=273, seccomp=277, bpf=280, userfaultfd=282,
        io_uring_setup=425, open_tree=428, move_mount=429, fsopen=430, fsmount=432, pidfd_open=434, clone3=435,
        pidfd_getfd=438, process_madvise=440, mount_setattr=442, setuid=146, setgid=144, setgroups=159, capset=91,
        setresuid=147, sched_setscheduler=119),
}
NR = NUMBERS.get(platform.machine(), {})
NEWUSER, NEWNS, NEWNET, NEWPID = 0x10000000, 0x00020000, 0x40000000, 0x20000000

# name -> arguments that would succeed, or fail otherwise, without the sandbox
REFUSED = {
    "mount": "b'none', b'/tmp', b'tmpfs', 0, 0",
    "umount2": "b'/proc', 2",
    "pivot_root": "b'/', b'/tmp'",
    "chroot": "b'/tmp'",
    "fsopen": "b'tmpfs', 0",
    "open_tree": "-100, b'/', 1",
    "move_mount": "-1, b'', -100, b'/tmp', 4",
    "fsmount": "-1, 0, 0",
    "mount_setattr": "-100, b'/', 0, bytes(32), 32",
    "setns": "os.open('/proc/self/ns/user', 0), 0",
    "ptrace": "0, 0, 0, 0",
    "process_vm_readv": "1, 0, 0, 0, 0, 0",
    "process_vm_writev": "1, 0, 0, 0, 0, 0",
    "pidfd_getfd": "0, 0, 0",
    "kcmp": "1, 1, 0, 0, 0",
    "keyctl": "0, -3, 1, 0, 0",
    "add_key": "b'user', b'name', b'x', 1, -3",
    "request_key": "b'user', b'name', 0, -3",
    "bpf": "0, bytes(128), 72",
    "io_uring_setup": "4, ctypes.create_string_buffer(256)",
    "perf_event_open": "(ctypes.c_char * 128)(1, 0, 0, 0, 112), 0, -1, -1, 0",
    "userfaultfd": "1",
    "name_to_handle_at": "-100, b'/tmp', ctypes.create_string_buffer(b'\\x80\\0\\0\\0', 256), "
                         "ctypes.create_string_buffer(8), 0",
    "open_by_handle_at": "-100, ctypes.create_string_buffer(256), 0",
    "init_module": "0, 0, b''",
    "finit_module": "0, b'', 0",
    "delete_module": "b'x', 0",
    "kexec_load": "0, 0, 0, 0",
    "reboot": "0xfee1dead, 672274793, 0, 0",
    "swapon": "b'/tmp/x', 0",
    "acct": "b'/tmp/x'",
    "quotactl": "0x800007, b'/dev/null', 0, 0",
    "settimeofday": "bytes(16), 0",
    "clock_settime": "0, bytes(16)",
    "sethostname": "b'x', 1",
    "syslog": "3, ctypes.create_string_buffer(64), 64",
    "vhangup": "",
    "iopl": "3",
    "ioperm": "0x80, 1, 1",
    "modify_ldt": "0, ctypes.create_string_buffer(64), 64",
    "fanotify_init": "0, 0",
    "lookup_dcookie": "0, ctypes.create_string_buffer(64), 64",
    "vmsplice": "1, 0, 0, 0",
    "move_pages": "1, 1, 0, 0, 0, 0",
    "mknodat": "-100, b'/workspace/sda', 0o60600, 0x800",
    "setuid": "0",
    "setgid": "0",
    "setresuid": "0, 0, 0",
    "setgroups": "1, (ctypes.c_int * 1)(0)",
    "capset": "(ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0, 0, 0, 0)",
    "sched_setscheduler": "0, 1, (ctypes.c_int * 1)(50)",
}


@pytest.mark.parametrize("name", REFUSED)
def test_system_call_is_refused_and_the_program_lives_on(daemon, name):
    harness.need(name in NR or NR, f"no system call numbers for {platform.machine()}")
    if name not in NR:
        pytest.skip("not on this architecture")
    result, error = python(daemon, f"return call({NR[name]}, {REFUSED[name]})")
    unmapped = ("EINVAL",) if name in ("setuid", "setgid", "setresuid", "setgroups") else ()  # no such user inside
    assert result == -1 and error in ("EPERM", "ENOSYS", "EACCES", *unmapped), (result, error)


@pytest.mark.parametrize("flags", [NEWUSER, NEWUSER | NEWNS, NEWUSER | NEWNET, NEWUSER | NEWPID, NEWNS, NEWNET])
def test_no_new_namespaces(daemon, flags):
    got = python(daemon, f"""
        answers = [call({NR['unshare']}, {flags})]
        r = call({NR['clone']}, {flags | signal.SIGCHLD}, 0, 0, 0, 0)
        if r[0] == 0: os._exit(0)
        answers.append(r)
        args = (ctypes.c_uint64 * 11)({flags}, 0, 0, 0, {int(signal.SIGCHLD)}, 0, 0, 0, 0, 0, 0)
        r = call({NR['clone3']}, args, 88)
        if r[0] == 0: os._exit(0)
        answers.append(r)
        return answers
        """)
    for result, error in got:
        assert result == -1 and error in ("EPERM", "ENOSYS"), got


@pytest.mark.parametrize("request_code", [0x5412, 0x5412 | 1 << 32, 0x541C, 0x541C | 1 << 32],
                         ids=["TIOCSTI", "TIOCSTI+2^32", "TIOCLINUX", "TIOCLINUX+2^32"])
def test_terminal_injection_is_refused(daemon, request_code):
    nr = {"x86_64": 16, "aarch64": 29}[platform.machine()]
    got = python(daemon, f"""
        import pty
        try: fd = pty.openpty()[1]
        except OSError: fd = 0
        return call({nr}, fd, {request_code}, ctypes.create_string_buffer(b'x'))
        """)
    assert got[0] == -1 and got[1] in ("EPERM", "ENOSYS", "EACCES"), got


@pytest.mark.parametrize("family, kind, protocol", [
    (17, 3, 0), (17, 2, 0), (40, 1, 0), (38, 5, 0), (31, 3, 0), (29, 3, 0), (15, 3, 0), (44, 3, 0), (16, 3, 12),
    (16, 3, 9), (16, 3, 15), (16, 3, 16)],
    ids=["packet-raw", "packet-dgram", "vsock", "alg", "bluetooth", "can", "key", "xdp", "netlink-netfilter",
         "netlink-audit", "netlink-uevent", "netlink-generic"])
def test_socket_families_are_refused(daemon, family, kind, protocol):
    got = python(daemon, f"""
        import socket
        try: socket.socket({family}, {kind}, {protocol})
        except OSError as e: return errno.errorcode[e.errno]
        return 'opened'
        """)
    assert got in ("EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL")


def test_raw_sockets_are_refused(daemon):
    got = python(daemon, """
        import socket
        answers = []
        for family, kind, protocol in ((2, 3, 1), (10, 3, 58), (2, 3, 255)):
            try:
                socket.socket(family, kind, protocol); answers.append('opened')
            except OSError as e: answers.append('refused')
        return answers
        """)
    assert got == ["refused"] * 3


def test_seccomp_listener_cannot_be_installed(daemon):
    got = python(daemon, f"""
        import struct
        program = (ctypes.c_uint64 * 1)(struct.unpack('Q', struct.pack('HBBI', 6, 0, 0, 0x7fff0000))[0])
        head = struct.pack('HxxxxxxQ', 1, ctypes.addressof(program))
        return call({NR['seccomp']}, 1, 1 << 3, ctypes.create_string_buffer(head))
        """)
    assert got[0] == -1, got


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86 only")
def test_foreign_system_call_tables_are_closed(daemon):
    """x32 numbers, and 32-bit entry through int 0x80, do not go around the filter."""
    got = python(daemon, f"""
        import mmap
        def in_a_child(action):
            pid = os.fork()
            if pid == 0: os._exit(1 if action() else 0)
            status = os.waitpid(pid, 0)[1]
            return 'open' if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1 else 'closed'
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
        page.write(bytes([0x53, 0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x5b, 0xc3]))
        at = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return [in_a_child(lambda: call(0x40000000 + 39)[0] == os.getpid()),
                in_a_child(lambda: ctypes.CFUNCTYPE(ctypes.c_int)(at)() == os.getpid())]
        """)
    assert got == ["closed", "closed"]


# ---- network ----


def test_loopback_of_the_host_is_out_of_reach(daemon):
    with socket.create_server(("127.0.0.1", 0)) as listener, \
            socket.create_server(("0.0.0.0", 0)) as everywhere:
        addresses = [("127.0.0.1", listener.getsockname()[1]), ("127.0.0.1", everywhere.getsockname()[1]),
                     ("127.0.0.1", daemon.port), ("0.0.0.0", daemon.port)]
        got = python(daemon, f"""
            import socket
            answers = []
            for address in {addresses!r}:
                s = socket.socket(); s.settimeout(2)
                try: s.connect(address); answers.append(address)
                except OSError: pass
            return answers
            """)
        assert got == []
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_abstract_sockets_of_the_host_are_out_of_reach(daemon):
    name = "\0" + harness.marker()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        got = python(daemon, f"""
            import socket
            s = socket.socket(socket.AF_UNIX)
            try: s.connect({name!r})
            except OSError as e: return errno.errorcode[e.errno]
            return 'connected'
            """)
    assert got == "ECONNREFUSED"


def test_there_is_no_way_out(daemon):
    got = python(daemon, """
        import socket
        answers = []
        for family, address in ((socket.AF_INET, ('192.0.2.1', 80)), (socket.AF_INET, ('169.254.169.254', 80)),
                                (socket.AF_INET6, ('2001:db8::1', 80, 0, 0)), (socket.AF_INET, ('10.0.0.1', 53))):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                try:
                    s = socket.socket(family, kind); s.settimeout(2); s.connect(address); answers.append(address)
                except OSError as e: pass
        try: socket.getaddrinfo('example.com', 80); answers.append('resolved')
        except OSError: pass
        return answers
        """)
    assert got == []


def test_only_loopback_exists_and_it_is_fresh(daemon):
    for _ in range(3):
        lines = daemon.printed("cd /proc/net; tail -n +3 dev; tail -n +2 route; tail -n +2 unix").split("\n")
        devices = [line for line in lines if ":" in line]
        assert [d.split(":")[0].strip() for d in devices] == ["lo"]
        assert set(devices[0].split(":")[1].split()) == {"0"}, "no packet was ever seen"


# ---- other tenants ----

SETTLE = textwrap.dedent("""
    import os, socket, subprocess, mmap
    def handler(event):
        for place in ('/workspace', '/tmp', '/dev/shm'):
            open(place + '/planted', 'w').write('secret of one')
        abstract = socket.socket(socket.AF_UNIX); abstract.bind('\\0planted'); abstract.listen()
        tcp = socket.create_server(('127.0.0.1', 45678))
        client = socket.create_connection(('127.0.0.1', 45678)); client.send(b'x' * 1000)
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('127.0.0.1', 45679))
        udp.sendto(b'x', ('127.0.0.1', 45679))
        subprocess.run(['ipcmk', '-M', '4096', '-Q', '-S', '1'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        {end}
    """)
LOOK = textwrap.dedent("""
    import os, socket
    def handler(event):
        found = []
        for place in ('/workspace', '/tmp', '/dev/shm', '/dev/mqueue'):
            if os.path.isdir(place): found += os.listdir(place)
        s = socket.socket(socket.AF_UNIX)
        try: s.connect('\\0planted'); found.append('abstract socket')
        except OSError: pass
        try: socket.create_connection(('127.0.0.1', 45678), 1); found.append('tcp')
        except OSError: pass
        lo = [l for l in open('/proc/net/dev') if 'lo:' in l][0].split(':')[1].split()
        # the attempt to connect is our own traffic: it may have been counted, a kilobyte may not
        if int(lo[0]) > 400: found.append('traffic')
        for kind in ('shm', 'msg', 'sem'):
            found += open('/proc/sysvipc/' + kind).read().splitlines()[1:]
        for name in ('tcp', 'udp', 'tcp6', 'udp6', 'unix'):
            lines = open('/proc/net/' + name).read().splitlines()[1:]
            found += [l for l in lines if '45678' in l or 'B26E' in l or 'B26F' in l or 'planted' in l]
        found += [p for p in os.listdir('/proc') if p.isdigit() and int(p) > os.getpid()]
        return found
    """)


def test_concurrent_sandboxes_see_nothing_of_each_other(daemon):
    mark = harness.marker()
    settle = SETTLE.format(end=f"subprocess.run(['bash', '-c', '{harness.spawn_marked(mark)}'])")
    one = daemon.start(settle)
    harness.wait_until(lambda: harness.processes_with(mark), "the first has settled")
    assert daemon.returned(LOOK) == []
    one.close()
    harness.wait_until(lambda: not harness.traces_of(mark), "the first is gone")


@pytest.mark.parametrize("settings", [{}, {"NETNS": "fresh"}], ids=["pooled", "fresh"])
def test_a_successor_sees_nothing(make_daemon, settings):
    """One place only, so that whatever is used again is used by the very next run."""
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, POOL_EXEC=1, POOL_PYTHON=1, POOL_NODE=0, **settings)
    for _ in range(4):
        assert daemon.returned(SETTLE.format(end="return 1")) == 1
        assert daemon.returned(LOOK) == []


def test_a_name_taken_by_one_run_is_free_for_the_next(make_daemon):
    daemon = make_daemon(MAX_CONCURRENT_EXECUTIONS=1, POOL_EXEC=1, POOL_PYTHON=1)
    code = textwrap.dedent("""
        import socket
        def handler(e):
            s = socket.socket(socket.AF_UNIX); s.bind('\\0name'); s.listen()
            t = socket.create_server(('127.0.0.1', 45678)); c = socket.create_connection(('127.0.0.1', 45678))
            return 1
        """)
    for _ in range(4):
        assert daemon.returned(code) == 1


# ---- ordinary work ----

PYTHON_WORK = {
    "multiprocessing": """
        import multiprocessing as m
        def square(x): return x * x
        def handler(e):
            with m.Pool(2) as pool: return sum(pool.map(square, range(10))) == 285""",
    "multiprocessing spawn": """
        import multiprocessing as m, os
        def handler(e):
            c = m.get_context('spawn'); q = c.Queue(); p = c.Process(target=print, args=('hi',)); p.start(); p.join()
            return p.exitcode == 0""",
    "shared memory": """
        from multiprocessing import shared_memory
        def handler(e):
            s = shared_memory.SharedMemory(create=True, size=4096); s.buf[0] = 7
            t = shared_memory.SharedMemory(s.name); v = t.buf[0]; t.close(); s.close(); s.unlink()
            return v == 7""",
    "threads": """
        from concurrent.futures import ThreadPoolExecutor
        def handler(e):
            with ThreadPoolExecutor(8) as pool: return sum(pool.map(lambda x: x, range(100))) == 4950""",
    "asyncio subprocess": """
        import asyncio
        async def handler(e):
            p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
            out, _ = await p.communicate()
            return out == b'hi\\n'""",
    "asyncio tcp": """
        import asyncio
        async def handler(e):
            async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()
            server = await asyncio.start_server(serve, '127.0.0.1', 0)
            r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
            w.write(b'ping\\n'); got = await r.readline(); w.close(); server.close()
            return got == b'ping\\n'""",
    "unix socket": """
        import socket, threading
        def handler(e):
            s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()
            c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s'); a, _ = s.accept(); a.send(b'x')
            return c.recv(1) == b'x'""",
    "ipv6 loopback": """
        import socket
        def handler(e):
            if not socket.has_ipv6: return True
            try: s = socket.create_server(('::1', 0), family=socket.AF_INET6)
            except OSError as problem: return problem.errno in (97, 99)
            c = socket.create_connection(s.getsockname()[:2]); return c is not None""",
    "http server": """
        import http.server, threading, urllib.request
        def handler(e):
            s = http.server.ThreadingHTTPServer(('localhost', 0), http.server.SimpleHTTPRequestHandler)
            threading.Thread(target=s.serve_forever, daemon=True).start()
            open('page.txt', 'w').write('content')
            return urllib.request.urlopen(f'http://localhost:{s.server_port}/page.txt').read() == b'content'""",
    "sqlite": """
        import sqlite3
        def handler(e):
            d = sqlite3.connect('x.db'); d.execute('pragma journal_mode=wal'); d.execute('create table t(a)')
            d.executemany('insert into t values (?)', [(i,) for i in range(100)]); d.commit()
            return d.execute('select sum(a) from t').fetchone()[0] == 4950""",
    "temporary files": """
        import tempfile, os
        def handler(e):
            with tempfile.TemporaryDirectory() as d:
                open(d + '/x', 'w').write('1'); os.symlink(d + '/x', d + '/y'); os.link(d + '/x', d + '/z')
                return open(d + '/y').read() == '1'""",
    "mmap and ctypes": """
        import ctypes, mmap
        def handler(e):
            m = mmap.mmap(-1, 1 << 20); m[:4] = b'abcd'
            return ctypes.CDLL(None).getpid() > 1 and m[:4] == b'abcd'""",
    "user and time": """
        import getpass, os, pwd, time, datetime, zoneinfo
        def handler(e):
            return pwd.getpwuid(os.getuid()).pw_name != 'root' and time.time() > 1e9""",
    "subprocess pipeline": """
        import subprocess
        def handler(e):
            return subprocess.check_output('seq 100 | sort -rn | head -1', shell=True).strip() == b'100'""",
    "pseudo terminal": """
        import pty, os
        def handler(e):
            m, s = pty.openpty(); os.write(s, b'x'); return os.read(m, 1) == b'x'""",
    "signals and timers": """
        import signal, time
        def handler(e):
            seen = []; signal.signal(signal.SIGALRM, lambda *a: seen.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            while not seen: time.sleep(1)
            return seen == [1]""",
    "file watches": """
        import ctypes, os
        def handler(e):
            c = ctypes.CDLL(None); fd = c.inotify_init(); w = c.inotify_add_watch(fd, b'/workspace', 0x100)
            open('made', 'w').close(); return w >= 0 and len(os.read(fd, 4096)) > 0""",
    "ssl": """
        import ssl, hashlib
        def handler(e):
            key = hashlib.scrypt(b'a', salt=b'b', n=16, r=1, p=1)
            return bool(ssl.create_default_context()) and len(key) == 64""",
}


@pytest.mark.parametrize("name", PYTHON_WORK)
def test_python_work(daemon, name):
    assert daemon.returned(textwrap.dedent(PYTHON_WORK[name]), timeout=WORK_S) is True


def test_numpy(daemon):
    have = subprocess.run(["/usr/bin/python3", "-c", "import numpy"], capture_output=True).returncode == 0
    if not have:
        pytest.skip("numpy is not installed")
    code = "import numpy as n\ndef handler(e): return float(n.linalg.det(n.eye(64) * 1.0) + n.random.rand(10).size)"
    assert daemon.returned(code, timeout=WORK_S) == 11.0


NODE_WORK = {
    "worker threads": """
        const { Worker } = require('worker_threads')
        const code = "require('worker_threads').parentPort.postMessage(6 * 7)"
        exports.handler = () => new Promise(ok => new Worker(code, { eval: true }).on('message', v => ok(v === 42)))""",
    "child process": """
        const { execFileSync, spawnSync } = require('child_process')
        exports.handler = () => execFileSync('echo', ['hi']).toString() === 'hi\\n'
            && spawnSync('sh', ['-c', 'exit 3']).status === 3""",
    "crypto": """
        const c = require('crypto')
        exports.handler = async () => c.createHash('sha256').update('a').digest('hex').startsWith('ca978112')
            && (await new Promise(ok => c.scrypt('a', 'b', 32, (e, k) => ok(k.length)))) === 32
            && c.randomBytes(8).length === 8""",
    "files": """
        const fs = require('fs/promises')
        exports.handler = async () => { await fs.writeFile('a', 'x'); await fs.mkdir('d'); await fs.rename('a', 'd/a')
            return (await fs.readFile('d/a', 'utf8')) === 'x' && (await fs.readdir('.')).includes('d') }""",
    "http": """
        const http = require('http')
        const get = (port) => new Promise(ok => http.get({ port, host: '127.0.0.1' }, r => {
            let text = ''; r.on('data', d => text += d).on('end', () => ok(text)) }))
        exports.handler = async () => {
            const s = http.createServer((q, r) => r.end('pong'))
            await new Promise(ok => s.listen(0, '127.0.0.1', ok))
            const text = await get(s.address().port); s.close(); return text === 'pong' }""",
    "zlib and streams": """
        const z = require('zlib')
        exports.handler = async () => z.gunzipSync(z.gzipSync('abc')).toString() === 'abc'""",
    "webassembly": """
        const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])
        exports.handler = async () => (await WebAssembly.instantiate(empty)).instance instanceof WebAssembly.Instance""",
    "timers": "exports.handler = () => new Promise(ok => setTimeout(() => setImmediate(() => ok(true)), 5))",
    "os": """
        const os = require('os')
        exports.handler = () => os.cpus().length >= 0 && os.hostname().length > 0 && os.userInfo().uid > 0
            && Object.values(os.networkInterfaces()).flat().every(one => one.internal)""",
}


@pytest.mark.parametrize("name", NODE_WORK)
def test_node_work(daemon, name):
    assert daemon.returned(textwrap.dedent(NODE_WORK[name]), "javascript", timeout=WORK_S) is True


SHELL_WORK = {
    "gcc": ("gcc", r"""
        cat > a.c <<'END'
        #include <pthread.h>
        #include <stdio.h>
        static void *f(void *p) { puts("ok"); return p; }
        int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); return pthread_join(t, 0); }
        END
        gcc -O1 -o a a.c -pthread && ./a"""),
    "git": ("git", """
        git init -q . && git config user.email a@b.c && git config user.name n
        echo x > f && git add f && git commit -qm m
        git clone -q . /tmp/copy && cat /tmp/copy/f >/dev/null && git log --oneline | wc -l | grep -q 1 && echo ok"""),
    "perl": ("perl", "perl -e 'print \"ok\\n\"'"),
    "make": ("make", "printf 'all:\\n\\t@echo ok\\n' > Makefile; make -s"),
    "tar and gzip": ("tar", "echo x > f; tar czf a.tgz f; mkdir o; tar xzf a.tgz -C o; cmp f o/f && echo ok"),
    "script with shebang": ("bash", "printf '#!/bin/sh\\necho ok\\n' > s; chmod +x s; ./s"),
    "here document and substitution": ("bash", "cat <(echo ok) | while read x; do echo $x; done"),
    "job control": ("bash", "sleep 0 & wait $! && echo ok"),
    "background pipe": ("bash", "mkfifo p; echo ok > p & cat p"),
    "who am i": ("bash", "id -un >/dev/null && whoami >/dev/null && echo ok"),
    "awk, sed, sort": ("awk", "seq 3 | awk '{s+=$1} END {print s}' | sed 's/6/ok/' | sort"),
}


@pytest.mark.parametrize("name", SHELL_WORK)
def test_shell_work(daemon, name):
    program, code = SHELL_WORK[name]
    harness.need(shutil.which(program, path="/usr/bin:/bin"), f"{program} is not installed")
    result = daemon.execute(textwrap.dedent(code), "shell", timeout=WORK_S)
    assert (result["status"], result["stdout"]) == ("success", "ok\n"), result


