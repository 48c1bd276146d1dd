# SPDX-License-Identifier: MIT
# Two sandboxes: what the first leaves or keeps open ("plant"), the second looks for ("look").
import builtins
import random
import uuid

PLACES = ("/workspace", "/tmp", "/dev/shm", "/var/tmp")


def plant_files(event):
    for place in PLACES:
        try:
            with open(f"{place}/planted-{event['mark']}", "w") as f:
                f.write(event["secret"])
            os.chmod(f"{place}/planted-{event['mark']}", 0o666)
        except OSError:
            pass


def find_files(event):
    for place in PLACES:
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            if name.startswith("planted-"):
                return f"{place}/{name}: {read(place + '/' + name)}"


@attack("successor-files")
def _(event):
    return find_files(event) if event["phase"] == "look" else plant_files(event)


@attack("successor-memory")
def _(event):
    """Pages of the predecessor, if any were handed on unwiped."""
    import mmap
    if event["phase"] == "plant":
        if event.get("fake"):  # for a successor who puts it where a careless kernel would have left it
            with open("left", "w") as f:
                f.write(event["secret"])
        m = mmap.mmap(-1, 16 << 20)
        for at in range(0, len(m), 4096):
            m[at:at + len(event["secret"])] = event["secret"].encode()
        return None
    m = mmap.mmap(-1, 16 << 20)
    if event.get("fake"):
        m.write(read("left").encode())
    pages = (m[at:at + 4096].strip(b"\0") for at in range(0, len(m), 4096))
    page = next(filter(None, pages), None)
    return page and f"a page with something in it: {page[:64]}"


@attack("successor-interpreter")
def _(event):
    """Whatever is found of the predecessor has the secret in it."""
    sys.path.insert(0, os.getcwd())
    if event["phase"] == "plant":
        planted = "planted-" + event["secret"]
        builtins.planted = planted
        sys.modules[planted] = sys
        os.environ["PLANTED"] = planted
        json.dumps = lambda *_, **__: planted
        sys.path.insert(0, "/" + planted)
        with open("planted_module.py", "w") as f:
            f.write(f"text = {planted!r}\n")
        return None
    try:
        from planted_module import text
    except ImportError:
        text = ""
    texts = [text, getattr(builtins, "planted", ""), os.environ.get("PLANTED", ""), json.dumps({}), *sys.modules, *sys.path]
    return ", ".join(t for t in texts if "planted-" in t)


def attach(segment):
    libc.shmat.restype = ctypes.c_void_p
    return libc.shmat(segment, None, 0)


@attack("successor-ipc")
def _(event):
    if event["phase"] == "plant":
        ctypes.memmove(attach(libc.shmget(0x5b5e1f, 4096, 0o1666)), event["secret"].encode(), len(event["secret"]))
        libc.msgget(0x5b5e1f, 0o1666)
        libc.semget(0x5b5e1f, 1, 0o1666)
        return None
    segment = libc.shmget(0x5b5e1f, 0, 0)
    if segment >= 0:
        return "found: " + ctypes.string_at(attach(segment), 64).decode("utf-8", "replace")
    return libc.msgget(0x5b5e1f, 0) >= 0 and "found"


@attack("random-numbers")
def _(event):
    if event.get("fake"):
        random.seed(7)  # as if both had been forked from one that had started to draw
    numbers = [str(random.random()), uuid.uuid4().hex, os.urandom(8).hex()]
    try:
        import numpy
        numbers.append(str(numpy.random.rand()))
    except ImportError:
        pass
    say("NUMBERS", *numbers)  # compared outside
    if event["phase"] == "plant":
        return None
    before = event["previous"].split()
    return any(n in before for n in numbers) and "the same random number twice"


@attack("neighbour-files")
def _(event):
    if event["phase"] == "look":
        return find_files(event)
    plant_files(event)
    hold("")


@attack("neighbour-process")
def _(event):
    if event["phase"] == "look":
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if read(f"/proc/{pid}/cmdline").startswith("planted-"):
                    return f"pid {pid}: {read(f'/proc/{pid}/cmdline')}"
            except OSError:
                pass
        return None
    subprocess.Popen(["/bin/sleep", "20"], executable="/bin/sleep")
    subprocess.Popen(["planted-" + event["secret"], "20"], executable="/bin/sleep")
    hold("")


def tell(server, event):
    """Sends the secret to any process that connects."""
    if os.fork() == 0:
        server.settimeout(20)
        server.accept()[0].sendall(event["secret"].encode())
        os._exit(0)
    hold("")


@attack("neighbour-socket")
def _(event):
    s = socket.socket(socket.AF_UNIX)
    if event["phase"] == "look":
        s.connect("\0planted-" + event["mark"])
        return "connected: " + s.recv(64).decode()
    s.bind("\0planted-" + event["mark"])
    s.listen()
    tell(s, event)


@attack("neighbour-port")
def _(event):
    if event["phase"] == "look":
        return "connected: " + socket.create_connection(("127.0.0.1", 45671), 2).recv(64).decode()
    tell(socket.create_server(("127.0.0.1", 45671)), event)


@attack("neighbour-kill")
def _(event):
    if event["phase"] == "look":
        os.kill(-1, signal.SIGCONT)
        count = len(list(filter(str.isdigit, os.listdir("/proc"))))
        return count > 8 and f"{count} processes in sight"
    # A process that gets the signal prints a word that is read outside.
    signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"TOUCHED\n"))
    for _ in range(10):
        if os.fork() == 0:
            end = time.monotonic() + 20
            while time.monotonic() < end:
                time.sleep(1)
            os._exit(0)
    hold("")


# A directory that nothing else on a host opens files in.
SEEN = "/usr/share/zoneinfo/Antarctica"


def open_seen():
    with open(SEEN + "/Troll", "rb") as f:
        f.read(1)


@attack("neighbour-inotify")
def _(event):
    if event["phase"] == "look":
        return open_seen()  # the neighbour says what it saw
    spy = libc.inotify_init1(0)
    libc.inotify_add_watch(spy, SEEN.encode(), 0xfff)
    if os.fork() == 0:
        os.read(spy, 4096)
        os.write(1, b"TOUCHED\n")
        os._exit(0)
    hold("")


@attack("neighbour-dnotify")
def _(event):
    import fcntl
    if event["phase"] == "look":
        return open_seen()
    signal.signal(signal.SIGIO, lambda *_: os.write(1, b"TOUCHED\n"))
    fcntl.fcntl(os.open(SEEN, os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
    hold("")


def talk_by_locks(event, path):
    """The secret, bit by bit: a byte of the file is locked, or not. The other asks which ones are."""
    import fcntl
    import struct
    get, put = 36, 37  # F_OFD_GETLK, F_OFD_SETLK: locks of the open file
    bits = 8 * len(event.get("secret", "x" * 40))
    f = os.open(path, os.O_RDONLY)

    def ask(command, kind, at, length=1):
        return struct.unpack_from("hhqq", fcntl.fcntl(f, command, struct.pack("hhqqq", kind, os.SEEK_SET, at, length, 0)))[0]
    if event["phase"] == "look":
        if ask(get, fcntl.F_WRLCK, 0, 0) == fcntl.F_UNLCK:
            return None
        said = sum((ask(get, fcntl.F_WRLCK, at) != fcntl.F_UNLCK) << at for at in range(bits))
        return f"{path} says {said.to_bytes(bits // 8, 'little').rstrip(bytes(1)).decode('utf-8', 'replace')}"
    secret = int.from_bytes(event["secret"].encode(), "little")
    for at in range(bits):
        if secret >> at & 1:
            ask(put, fcntl.F_RDLCK, at)
    fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    hold("")


@attack("neighbour-locks")
def _(event):
    return talk_by_locks(event, SEEN + "/Troll")


@attack("neighbour-etc")
def _(event):
    return talk_by_locks(event, "/etc/host.conf")


@attack("neighbour-device")
def _(event):
    return talk_by_locks(event, "/dev/full")  # nothing on a host locks that


@attack("forged-frames")
def _(event):
    for piece in (b"R00000004null", b"E7fffffff", b"\xff" * 4096, b"R0000000g", b"P00000002{}" * 1000):
        try:
            os.write(3, piece)
        except OSError:
            pass


@attack("forged-stdout")
def _(event):
    os.write(1, b'event: complete\ndata: {"code":0}\n\n\0\x1b[2J===SANDBOX_RESULT===\n{"status":"success"}\n')


@attack("flood-control")
def _(event):
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, False)
            for _ in range(64):
                os.write(fd, b"x" * 4096)
        except OSError:
            pass


@attack("scm-rights")
def _(event):
    import array
    for fd in range(3, 32):
        try:
            s = socket.socket(fileno=os.dup(fd))
            s.setblocking(False)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 16))]
            for _ in range(16):
                s.sendmsg([b"x"], rights)
        except (OSError, ValueError):
            pass
