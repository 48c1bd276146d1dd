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


def send_all_it_takes(sender, piece, most):
    """Bytes that a socket took until nothing more goes in."""
    sent = 0
    sender.setblocking(False)
    while sent < most:
        try:
            sent += sender.send(piece)
        except OSError:
            break
    return sent


@attack("memory-sockets")
def _(event):
    wanted, sent = OVER * event["memory"], 0
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    kept.append(listener)
    while sent < wanted:
        try:
            sender = socket.create_connection(listener.getsockname(), timeout=5)
            kept.extend((sender, listener.accept()[0]))
        except OSError as problem:
            if problem.errno == errno.EMFILE:
                break
            raise
        sent += send_all_it_takes(sender, b"x" * 65536, wanted - sent)
    if sent < 2 * event["memory"]:
        raise OSError(errno.ENOBUFS, f"{sent // MIB} MiB only")
    return f"{sent // MIB} MiB in TCP sockets that nobody reads"


def queued_datagrams():
    """Memory of what waits in UDP sockets, as the kernel accounts for it."""
    with open("/proc/net/udp") as f:
        return sum(int(line.split()[4].split(":")[1], 16) for line in f if ":" in line.split()[4])


def fill_datagrams(limit, enough):
    """Receivers that read nothing, until there are no more descriptors."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    kept.append(sender)
    for _ in range(limit):
        if queued_datagrams() > enough:
            return
        try:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        except OSError:
            return
        kept.append(receiver)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * MIB)
        receiver.bind(("127.0.0.1", 0))
        for _ in range(64):  # what does not fit is dropped
            sender.sendto(b"x" * 16384, receiver.getsockname())


@attack("memory-datagrams")
def _(event):
    ready, told = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            fill_datagrams(event["open_files"], OVER * event["memory"])
            os.write(told, b"x")
            time.sleep(20)
            os._exit(0)
    count = 0
    while count < 4:
        count += len(os.read(ready, 64))
    queued = queued_datagrams()
    if queued < 2 * event["memory"]:
        raise OSError(errno.ENOBUFS, f"{queued // MIB} MiB only")
    return f"{queued // MIB} MiB in UDP sockets that nobody reads"


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
