# SPDX-License-Identifier: MIT
# Ways out. The listeners outside see what gets through.


def connect(family, address, kind=None):
    s = socket.socket(family, kind or socket.SOCK_STREAM)
    s.settimeout(2)
    s.connect(address)
    s.send(b"through")
    return f"connected to {address}"


@attack("tcp-loopback")
def _(event):
    return connect(socket.AF_INET, ("127.0.0.1", event["tcp"]))


@attack("tcp-any")
def _(event):
    return connect(socket.AF_INET, ("0.0.0.0", event["tcp"]))


@attack("tcp-loopback-net")
def _(event):
    return connect(socket.AF_INET, ("127.1.2.3", event["tcp"]))


@attack("tcp-decimal")
def _(event):
    address = socket.getaddrinfo("2130706433", event["tcp"], socket.AF_INET, socket.SOCK_STREAM)[0][4]
    return connect(socket.AF_INET, address)


@attack("tcp-octal")
def _(event):
    address = socket.getaddrinfo("0177.0.0.1", event["tcp"], socket.AF_INET, socket.SOCK_STREAM)[0][4]
    return connect(socket.AF_INET, address)


@attack("tcp-mapped")
def _(event):
    return connect(socket.AF_INET6, ("::ffff:127.0.0.1", event["tcp"], 0, 0))


@attack("tcp-ipv6")
def _(event):
    return connect(socket.AF_INET6, ("::1", event["tcp6"], 0, 0))


@attack("tcp-metadata")
def _(event):
    return connect(socket.AF_INET, ("169.254.169.254", event["tcp"]))


@attack("tcp-private")
def _(event):
    return connect(socket.AF_INET, ("10.0.0.1", event["tcp"]))


@attack("tcp-public")
def _(event):
    return connect(socket.AF_INET, ("192.0.2.1", event["tcp"]))


@attack("udp-loopback")
def _(event):
    # Loopback inside answers nobody: only the witness knows where the packet went.
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"through", ("127.0.0.1", event["udp"]))


@attack("udp-public")
def _(event):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"through", ("192.0.2.1", event["udp"]))
    return "sent"


@attack("udp-broadcast")
def _(event):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(b"through", ("127.255.255.255", event["udp"]))


@attack("unix-abstract")
def _(event):
    return connect(socket.AF_UNIX, "\0" + event["abstract"])


@attack("unix-path")
def _(event):
    return connect(socket.AF_UNIX, event["dir"] + "/door")


@attack("unix-datagram")
def _(event):
    return connect(socket.AF_UNIX, event["dir"] + "/letterbox", socket.SOCK_DGRAM)


@attack("listeners-seen")
def _(event):
    port = f":{event['tcp']:04X} "
    for name in ("tcp", "tcp6", "udp"):
        for line in read("/proc/net/" + name).splitlines():
            if port in line:
                return "the listener is in the table: " + line


@attack("unix-seen")
def _(event):
    with open("/proc/net/unix") as f:
        lines = [line for line in f if event["abstract"] in line]
    return lines and "the listener is in the table: " + lines[0]


@attack("shm-key")
def _(event):
    ctypes.set_errno(0)
    segment = libc.shmget(event["shm"], 0, 0)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "")
    libc.shmat.restype = ctypes.c_void_p
    return ctypes.string_at(libc.shmat(segment, None, 0o10000), 64).decode()


@attack("shm-list")
def _(event):
    lines = read("/proc/sysvipc/shm").splitlines()[1:]
    lines = [line for line in lines if int(line.split()[0]) == event["shm"]]
    return lines and "the segment is in the table: " + lines[0]


@attack("shm-file")
def _(event):
    return read("/dev/shm/" + event["mark"] + "-canary")


@attack("message-queue")
def _(event):
    name = ("/" + event["mark"]).encode()
    librt = ctypes.CDLL("librt.so.1", use_errno=True)
    ctypes.set_errno(0)
    queue = librt.mq_open(name, os.O_RDONLY)
    if queue < 0:
        raise OSError(ctypes.get_errno(), "")
    letter = ctypes.create_string_buffer(64)
    librt.mq_receive(queue, letter, 64, None)
    return "opened: " + letter.value.decode("utf-8", "replace")
