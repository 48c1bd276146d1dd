# SPDX-License-Identifier: MIT
# Ordinary work that must go on under the same walls. Returns True, or the name of what is absent.


def work(name):
    def add(function):
        def run(event):
            outcome = function(event)
            say("ABSENT " + outcome if isinstance(outcome, str) else "OK" if outcome else "FAILED")
        attacks[name] = run
        return function
    return add


def square(x):
    return x * x


@work("py-multiprocessing")
def _(event):
    import multiprocessing
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(square, range(10))) == 285


@work("py-shared-memory")
def _(event):
    from multiprocessing import shared_memory
    one = shared_memory.SharedMemory(create=True, size=4096)
    one.buf[0] = 7
    two = shared_memory.SharedMemory(one.name)
    value = two.buf[0]
    two.close()
    one.close()
    one.unlink()
    return value == 7


@work("py-threads")
def _(event):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(square, range(10))) == 285


@work("py-asyncio")
def _(event):
    import asyncio

    async def talk():
        async def serve(reader, writer):
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"ping\n")
        answer = await reader.readline()
        writer.close()
        server.close()
        child = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
        return answer == b"ping\n" and (await child.communicate())[0] == b"hi\n"
    return asyncio.run(talk())


@work("py-sqlite")
def _(event):
    import sqlite3
    base = sqlite3.connect("x.db")
    base.execute("pragma journal_mode=wal")
    base.execute("create table t(a)")
    base.executemany("insert into t values (?)", [(i,) for i in range(100)])
    base.commit()
    return base.execute("select sum(a) from t").fetchone()[0] == 4950


@work("py-numpy")
def _(event):
    try:
        import numpy
    except ImportError:
        return "numpy"
    return float(numpy.linalg.det(numpy.eye(64))) == 1.0 and numpy.random.rand(10).size == 10


@work("py-subprocess")
def _(event):
    return subprocess.check_output("seq 100 | sort -rn | head -1", shell=True).strip() == b"100"


@work("py-http-server")
def _(event):
    import http.server
    import threading
    import urllib.request
    server = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open("page.txt", "w") as f:
        f.write("content")
    return urllib.request.urlopen(f"http://localhost:{server.server_port}/page.txt").read() == b"content"


@work("py-temporary-files")
def _(event):
    import tempfile
    with tempfile.TemporaryDirectory() as place:
        with open(place + "/x", "w") as f:
            f.write("1")
        os.symlink(place + "/x", place + "/y")
        os.link(place + "/x", place + "/z")
        return read(place + "/y") == "1"


@work("py-terminal")
def _(event):
    import pty
    master, slave = pty.openpty()
    os.write(slave, b"x")
    return os.read(master, 1) == b"x"


@work("py-interfaces")
def _(event):
    return [name for _, name in socket.if_nameindex()] == ["lo"]


@work("py-memory-file")
def _(event):
    # Running a program from memory is allowed: it gains nothing that /workspace does not give.
    fd = os.memfd_create("program")
    with open("/bin/true", "rb") as f:
        os.write(fd, f.read())
    pid = os.fork()
    if pid == 0:
        os.execve(fd, ["true"], {})
    return os.waitpid(pid, 0)[1] == 0


@work("py-compression")
def _(event):
    import gzip
    import hashlib
    import ssl
    data = os.urandom(1 << 20)
    return gzip.decompress(gzip.compress(data, 1)) == data and len(hashlib.scrypt(
        b"a", salt=b"b", n=16, r=1, p=1)) == 64 and bool(ssl.create_default_context())


@work("py-large-file")
def _(event):
    with open("large", "wb") as f:
        for _ in range(64):
            f.write(b"x" * (1 << 20))
    return os.path.getsize("large") == 64 << 20
