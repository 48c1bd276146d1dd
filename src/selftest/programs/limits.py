# SPDX-License-Identifier: MIT
# More than one's share. Every attack stops by itself at three times the limit it was told, so that
# it does no harm where nothing stops it.
try:
    import mmap
    import threading
except ImportError:
    if not WASM:
        raise

MIB = 1 << 20
OVER = 3
kept = []  # until it has been looked at


def touch(size, shared=False):
    m = mmap.mmap(-1, size, flags=mmap.MAP_ANONYMOUS | (mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE))
    for at in range(0, size, 4096):
        m[at] = 1
    kept.append(m)
    return m


@attack("memory")
def _(event):
    touch(OVER * event["memory"])
    return f"{OVER * event['memory'] // MIB} MiB touched"


@attack("memory-shared")
def _(event):
    touch(OVER * event["memory"], shared=True)
    return f"{OVER * event['memory'] // MIB} MiB of shared memory touched"


@attack("memory-children")
def _(event):
    ready, told = os.pipe()
    os.set_blocking(ready, False)
    for _ in range(2 * OVER):
        if os.fork() == 0:
            touch(event["memory"] // 2)
            os.write(told, b"x")
            time.sleep(20)
            os._exit(0)
    count = 0
    while count < 2 * OVER:
        if os.waitpid(-1, os.WNOHANG)[0]:
            raise MemoryError
        try:
            count += len(os.read(ready, 64))
        except BlockingIOError:
            time.sleep(0.01)
    return f"{OVER * event['memory'] // MIB} MiB in children"


@attack("memory-memfd")
def _(event):
    fd = os.memfd_create("room")
    kept.append(fd)
    piece = b"x" * MIB
    for _ in range(OVER * event["memory"] // MIB):
        os.write(fd, piece)
    return f"{OVER * event['memory'] // MIB} MiB in a memory file"


def fill(path, limit):
    with open(path, "wb", 0) as f:
        for _ in range(OVER * limit // MIB):
            f.write(b"x" * MIB)
    return f"{OVER * limit // MIB} MiB written"


@attack("disk")
def _(event):
    return fill("large", event["disk"])


@attack("disk-tmp")
def _(event):
    return fill("/tmp/large", event["tmp"])


@attack("disk-shm")
def _(event):
    return fill("/dev/shm/large", event["tmp"])


@attack("disk-files")
def _(event):
    for i in range(OVER * event["files"]):
        open(f"f{i}", "w").close()
    return f"{OVER * event['files']} files"


@attack("disk-directories")
def _(event):
    for _ in range(OVER * event["files"]):
        os.mkdir("d")
        os.chdir("d")
    return f"{OVER * event['files']} directories in each other"


@attack("pids-fork")
def _(event):
    for _ in range(OVER * event["pids"]):
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
    return f"{OVER * event['pids']} processes"


@attack("pids-threads")
def _(event):
    end = threading.Event()
    try:
        for _ in range(OVER * event["pids"]):
            threading.Thread(target=end.wait, daemon=True).start()
    except RuntimeError:
        raise OSError(errno.EAGAIN, "")
    return f"{OVER * event['pids']} threads"


@attack("pids-tree")
def _(event):
    # Each makes two: nobody has many children.
    r, w = os.pipe()
    depth = 0
    for depth in range(7):
        try:
            if os.fork() and os.fork():
                break
        except OSError:
            os._exit(0)
    os.write(w, b"x")
    if depth:
        time.sleep(4)
        os._exit(0)
    time.sleep(1)
    os.set_blocking(r, False)
    count = len(os.read(r, 4096))
    if count > event["pids"]:
        return f"{count} processes"
    raise OSError(errno.EAGAIN, "")


@attack("open-files")
def _(event):
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for _ in range(OVER * event["open_files"]):
        os.open("/dev/null", os.O_RDONLY)
    return f"{OVER * event['open_files']} descriptors"


@attack("cpu")
def _(event):
    import resource

    def burn():
        end = time.monotonic() + 8
        while time.process_time() < event["cpu"] and time.monotonic() < end:
            pass
    signal.signal(signal.SIGXCPU, lambda *_: None)
    children = []
    for _ in range(3):
        children.append(os.fork())
        if children[-1] == 0:
            burn()
            os._exit(0)
    burn()
    for pid in children:
        os.waitpid(pid, 0)
    used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return used > 1.3 * event["cpu"] and f"{used:.1f} s of processor time"


@attack("output")
def _(event):
    for _ in range(OVER * event["output"] // 4096):
        os.write(1, b"x" * 4096)


@attack("output-stderr")
def _(event):
    for _ in range(OVER * event["output"] // 4096):
        os.write(2, b"\n" * 4096)
