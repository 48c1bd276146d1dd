# SPDX-License-Identifier: MIT
# Files of the host, by every way to name them. The canaries are in event["dir"].


@attack("host-read")
def _(event):
    return read(event["dir"] + "/secret")


@attack("host-write")
def _(event):
    with open(event["dir"] + "/writable", "a") as f:
        f.write("written")
    return "written"


@attack("host-create")
def _(event):
    open(event["dir"] + "/created", "w").close()
    return "created"


@attack("host-remove")
def _(event):
    os.unlink(event["dir"] + "/removable")
    return "removed"


@attack("host-list")
def _(event):
    return below(event["dir"])


@attack("host-link")
def _(event):
    os.link(event["dir"] + "/secret", event["dir"] + "/linked")
    return "a second name"


@attack("proc-root")
def _(event):
    ways = [f"/proc/{p}/{d}" for p in ("1", "self", "thread-self", "2", str(os.getppid())) for d in ("root", "cwd")]
    return reached([w + event["dir"] + "/secret" for w in ways], read)


@attack("dot-dot")
def _(event):
    return reached(["../" * n + event["dir"][1:] + "/secret" for n in (2, 8, 40)], read)


@attack("symlink-read")
def _(event):
    os.symlink(event["dir"] + "/secret", "link-" + event["mark"])
    return read("link-" + event["mark"])


@attack("symlink-slash")
def _(event):
    os.symlink(event["dir"], "dir-" + event["mark"])
    return reached(["dir-" + event["mark"] + "/", "dir-" + event["mark"] + "/."], below)


@attack("symlink-write")
def _(event):
    os.symlink(event["dir"] + "/through", "out-" + event["mark"])
    with open("out-" + event["mark"], "w") as f:
        f.write("through a link")
    return "written"


@attack("fd-climb")
def _(event):
    names = os.listdir("/proc/self/fd")
    paths = [f"/proc/self/fd/{n}/{up}{event['dir']}/secret" for n in names for up in ("..", "../../..")]
    return reached(paths, read)


@attack("magic-cwd")
def _(event):
    for n in range(3, 64):
        try:
            os.chdir(f"/proc/self/fd/{n}")
        except OSError:
            continue
        return reached(["../" * 40 + event["dir"][1:] + "/secret"], read)
    return reached(["/proc/self/cwd" + event["dir"] + "/secret"], read)


@attack("plant")
def _(event):
    # Wherever this may be written, the host must not have it afterwards: the witness looks there.
    for place in ("/usr/lib", "/etc", "/bin", "/var/tmp", "/tmp", "/dev/shm", "/dev", "/"):
        try:
            open(f"{place}/{event['mark']}", "w").close()
        except OSError:
            pass


@attack("system-change")
def _(event):
    done = []
    for path in ("/usr/bin/env", "/etc/passwd", "/bin/sh", event["dir"] + "/writable"):
        for action in (lambda p: os.close(os.open(p, os.O_WRONLY)), lambda p: os.chmod(p, 0o4777), os.utime):
            try:
                action(path)
                done.append(path)
            except OSError:
                pass
    return ", ".join(sorted(set(done)))


@attack("dev-nodes")
def _(event):
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout",
                "stderr", "core", "mqueue", "console"}
    return ", ".join(sorted(set(os.listdir("/dev")) - harmless)[:8])


@attack("host-terminal")
def _(event):
    import glob
    name = event["terminal"]
    if not name:
        raise FileNotFoundError(errno.ENOENT, "the host has no terminals")
    ways = [name, "/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0",
            *glob.glob("/dev/pts/[0-9]*"), *glob.glob("/proc/[0-9]*/fd/[0-2]")]

    def write(path):
        fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        if not os.isatty(fd):
            raise OSError("no terminal")
        os.write(fd, b"written to a terminal of the host")
        return path

    return reached(ways, write)


@attack("proc-sys-write")
def _(event):
    done = []
    for path in ("kernel/hostname", "kernel/core_pattern", "kernel/sysrq", "vm/overcommit_memory", "vm/drop_caches",
                 "net/ipv4/ip_forward", "net/ipv4/ip_local_port_range", "user/max_user_namespaces"):
        try:
            os.open("/proc/sys/" + path, os.O_WRONLY)  # stays open, to be seen
            done.append(path)
        except OSError:
            pass
    return ", ".join(done)


@attack("proc-write")
def _(event):
    done = []
    for path in ("/proc/sysrq-trigger", "/proc/irq/0/smp_affinity", "/proc/mtrr", "/proc/bus/pci/00/00.0",
                 "/proc/scsi/scsi", f"/proc/{event['victim']}/oom_score_adj"):
        try:
            fd = os.open(path, os.O_WRONLY)
            if path.endswith("oom_score_adj"):
                os.write(fd, b"321")
            done.append(path)
        except OSError:
            pass
    return ", ".join(done)


@attack("oom-shield")
def _(event):
    # Raising it is everybody's right and his own loss. Below the daemon's own others would die first.
    done = []
    for pid in ("self", "1"):
        try:
            with open(f"/proc/{pid}/oom_score_adj", "w") as f:
                f.write(str(event.get("score", 0) - 1))
            done.append(pid)
        except OSError:
            pass
    return done and f"others would die before {', '.join(done)}"


@attack("proc-secrets")
def _(event):
    for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/vmallocinfo", "/proc/slabinfo",
                 "/proc/timer_list", "/proc/sched_debug", "/proc/1/environ", "/proc/1/maps", "/proc/1/stack"):
        try:
            fd = os.open(path, os.O_RDONLY)
            if os.read(fd, 16):
                event["fd"] = fd
                return path
        except OSError:
            pass
    with open("/proc/kallsyms") as f:
        lines = [f.readline() for _ in range(1000)]
    shown = [line for line in lines if line.split() and int(line.split()[0], 16)]
    return shown and f"addresses of the kernel: {shown[0]}"


@attack("sys-tree")
def _(event):
    return reached(["/sys/kernel", "/sys/class", "/sys/devices", "/sys/firmware"], below)


@attack("cgroup-tree")
def _(event):
    found = [line for line in read("/proc/self/mountinfo").splitlines() if " - cgroup" in line]
    return found[0] if found else reached(["/sys/fs/cgroup"], below)


@attack("cgroup-escape")
def _(event):
    ways = [f"/sys/fs/cgroup/{d}{n}" for d in ("", "memory/", "pids/", "unified/") for n in
            ("cgroup.procs", "release_agent", "cgroup.subtree_control", "tasks")]
    ways += ["/proc/1/root" + f"/sys/fs/cgroup/{n}" for n in ("cgroup.procs", "release_agent")]

    def take(path):
        event["fd"] = os.open(path, os.O_PATH)
        return "reached"
    return reached(ways, take)


@attack("host-secrets")
def _(event):
    return reached(["/etc/shadow", "/etc/gshadow", "/etc/sudoers", os.path.join("/root", ".ssh"), "/etc/ssh/ssh_host_rsa_key",
                    "/var/run/docker.sock", "/run/containerd/containerd.sock", event["dir"] + "/secret"], read)


@attack("identity")
def _(event):
    # What is printed is compared outside with the real ones.
    texts = [os.uname().nodename]
    for path in ("/etc/hostname", "/etc/machine-id", "/etc/hosts", "/proc/sys/kernel/hostname"):
        try:
            texts.append(read(path))
        except OSError:
            pass
    say("SEEN", *texts)


@attack("environment")
def _(event):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "auxv"):
            try:
                say("SEEN", read(f"/proc/{pid}/{name}").replace("\0", " "))
            except OSError:
                pass


@attack("descriptors")
def _(event):
    found = []
    for n in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{n}")
        except OSError:
            continue
        harmless = target.startswith(("/dev/", "/proc/", "/workspace", "/tmp", "/usr/"))
        if target.startswith("/") and (not harmless or target.startswith(event["dir"])):
            found.append(target)
    return ", ".join(f"{path}: {below(path) if os.path.isdir(path) else 'a file'}" for path in found)


# ---- what is left in the workspace for the daemon to find ----


@attack("exe-own")
def _(event):
    """Nothing is really changed: without a jail the program is one of the host's."""
    if event.get("fake"):  # started again from a copy that is its own
        import shutil
        shutil.copy(sys.executable, "interpreter")
        os.environ.update(SELFTEST_EVENT=json.dumps({**event, "fake": False}), PYTHONHOME="/usr")
        os.execv("./interpreter", sys.orig_argv)
    path, done = "/proc/self/exe", []
    now = os.stat(path)
    for name, change in (("chmod", lambda: os.chmod(path, now.st_mode & 0o7777)),
                         ("utime", lambda: os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))),
                         ("setxattr", lambda: (os.setxattr(path, "user.selftest", b""), os.removexattr(path, "user.selftest")))):
        try:
            change()
            done.append(name)
        except OSError:
            pass
    return " ".join(done)


@attack("host-paths")
def _(event):
    if event.get("fake"):  # as if it had been started from there
        import mmap
        with open(event["programs"] + "/sandbox-init", "rb") as f:
            event["mapped"] = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    text = os.readlink("/proc/self/exe") + "\n"
    for name in ("maps", "mountinfo"):
        with open("/proc/self/" + name) as f:
            text += f.read()
    return "\n".join(line for line in text.splitlines() if event["programs"] in line)[:200]


@attack("artifact-symlink")
def _(event):
    os.symlink(event["dir"] + "/secret", "result.txt")


@attack("artifact-directory")
def _(event):
    os.symlink(event["dir"], "results")


@attack("artifact-fifo")
def _(event):
    os.mkfifo("result.txt")


@attack("artifact-socket")
def _(event):
    s = socket.socket(socket.AF_UNIX)
    s.bind("result.sock")


@attack("artifact-proc")
def _(event):
    os.symlink("/proc/self/environ", "result.txt")


@attack("artifact-names")
def _(event):
    for name in (b"-rf", b"new\nline", b"\xff\xfe", b"a" * 255, b"..hidden", b"\x1b[2J", b"quote'\"`$(id)"):
        open(name, "w").close()
    os.symlink("loop", "loop")
    with open("sparse", "w") as f:
        try:
            f.truncate(1 << 40)
        except OSError:
            pass


@attack("artifact-deep")
def _(event):
    for _ in range(400):
        os.mkdir("d")
        os.chdir("d")
    open("bottom", "w").close()
