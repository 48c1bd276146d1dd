# SPDX-License-Identifier: MIT
# Other processes, and outliving one's own time.


@attack("victim-seen")
def _(event):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if "victim-" + event["mark"] in read(f"/proc/{pid}/cmdline"):
                return f"pid {pid}: {read(f'/proc/{pid}/cmdline')}"
        except OSError:
            pass


@attack("victim-memory")
def _(event):
    return reached([f"/proc/{event['victim']}/{n}" for n in ("environ", "maps", "mem", "auxv")], read)


@attack("victim-files")
def _(event):
    return reached([f"/proc/{event['victim']}/{n}{event['dir']}/secret" for n in ("root", "cwd")], read)


def run_by_mark(event, program, n):
    """A program that goes by the name of the mark, so that it is found outside."""
    os.mkdir(f"suid-{n}")
    path = f"suid-{n}/{event['mark']}"
    os.symlink(program, path)
    return subprocess.Popen([path, "20"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def root_among(event, children):
    """The first that has become root. They are left to be looked at, dead or alive, unless nobody will."""
    found = None
    for program, child in children:
        try:
            uids = read(f"/proc/{child.pid}/status").split("Uid:")[1].split()[:4]
        except (OSError, IndexError):
            uids = []
        if "0" in uids:
            found = found or program
        if not event.get("hold"):
            child.stdin.close()
            child.kill()
            child.wait()
    return found


@attack("suid-own")
def _(event):
    with open("/usr/bin/sleep", "rb") as f, open("mine", "wb") as to:
        to.write(f.read())
    os.chmod("mine", 0o6755)
    return root_among(event, [("its own", run_by_mark(event, os.path.abspath("mine"), 0))])


@attack("suid-system")
def _(event):
    programs = ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newgrp", "/usr/bin/chsh")
    there = [p for p in programs if os.path.exists(p)]
    event["kept"] = [(p, run_by_mark(event, p, n)) for n, p in enumerate(there)]
    return root_among(event, event["kept"])


@attack("daemonize")
def _(event):
    leave_behind(event)
    time.sleep(0.2)


@attack("orphan-output")
def _(event):
    # The program ends; its output stays open in a child that does not.
    if os.fork() == 0:
        os.execv("/bin/sleep", [event["mark"], "30"])
    time.sleep(0.1)
    os.write(1, b"HELD left\n")
    os._exit(0)


@attack("orphan-stopped")
def _(event):
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    leave_behind(event)
    time.sleep(0.2)


@attack("stubborn")
def _(event):
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    end = time.monotonic() + event["patience"]
    while time.monotonic() < end:
        time.sleep(0.05)
    return "outlived its time"


@attack("starve-init")
def _(event):
    libc.sched_setscheduler(1, 5, ctypes.byref(ctypes.c_int(0)))  # SCHED_IDLE
    libc.setpriority(0, 1, 19)
    libc.sched_setaffinity(1, 8, ctypes.byref(ctypes.c_uint64(1)))
    for _ in range(4):
        if os.fork() == 0:
            end = time.monotonic() + event["patience"]
            while time.monotonic() < end:
                pass
            os._exit(0)
    time.sleep(event["patience"])
    return "outlived its time"


@attack("slow-init")
def _(event):
    zero, one = ctypes.byref(ctypes.c_int(0)), ctypes.byref(ctypes.c_uint64(1))
    ways = {"nice": lambda: libc.setpriority(0, 1, 19), "nice of its group": lambda: libc.setpriority(1, 1, 19),
            "nice of its user": lambda: libc.setpriority(2, 0, 19), "policy": lambda: libc.sched_setscheduler(1, 5, zero),
            "parameters": lambda: libc.sched_setparam(1, zero), "processors": lambda: libc.sched_setaffinity(1, 8, one)}
    return ", ".join(name for name, way in ways.items() if way() == 0)


@attack("stuck-in-fifo")
def _(event):
    os.mkfifo("fifo")
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    signal.signal(signal.SIGALRM, lambda *_: None)
    if os.fork() == 0:
        time.sleep(event["patience"])
        os.write(1, b"BREACH outlived its time\nHOLD look 0\n")
        time.sleep(2)
        os._exit(0)
    open("fifo").close()


@attack("ptrace-sibling")
def _(event):
    child = subprocess.Popen(["/bin/sleep", "5"])
    ctypes.set_errno(0)
    r = libc.ptrace(16, child.pid, 0, 0)  # PTRACE_ATTACH
    problem = ctypes.get_errno()
    if r == 0:
        return "attached"
    child.kill()
    raise OSError(problem, "")
