# SPDX-License-Identifier: MIT
"""A small package index on the loopback, and the packages on it; hostile where a test wants it."""
import base64
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile


def wheel(name, version="1.0", files=None, requires=()):
    """A wheel of pure Python: (file name, bytes)."""
    info = f"{name}-{version}.dist-info"
    files = dict(files if files is not None else {f"{name}.py": f"VERSION = '{version}'\n"})
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    head += "".join(f"Requires-Dist: {one}\n" for one in requires)
    files[f"{info}/METADATA"] = head + "\nSome words.\nName: not-this\n"
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for path, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
            z.writestr(path, data)
        z.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


def sdist(name, setup, version="1.0"):
    """A source distribution whose setup.py is `setup`: (file name, bytes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in {"setup.py": setup, "PKG-INFO": f"Name: {name}\nVersion: {version}\n"}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            t.addfile(entry, io.BytesIO(text.encode()))
    return f"{name}-{version}.tar.gz", out.getvalue()


class Index:
    """Serves /simple/NAME/ and /files/FILE. `answers` overrides a path with a function that is given
    the request handler; `asked` is everything that was asked for, with its headers."""

    def __init__(self):
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.asked.append((self.path, dict(self.headers)))
                try:
                    index.serve(self)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the other side has heard enough

            def log_message(self, *_):
                pass

        self.files, self.answers, self.asked = {}, {}, []
        self.file_base = ""
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.host = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://{self.host}/simple"

    def add(self, package, hashed=True):
        name, data = package
        self.files[name] = (data, hashed)

    def paths(self):
        return [path for path, _ in list(self.asked)]

    def links(self, project):
        links = ""
        for name, (data, hashed) in self.files.items():
            if name.split("-")[0].replace("_", "-").lower() == project:
                mark = f"#sha256={hashlib.sha256(data).hexdigest()}" if hashed is True else hashed or ""
                links += f'<a href="{self.file_base}/files/{name}{mark}">{name}</a>\n'
        return links

    def serve(self, h):
        answer = self.answers.get(h.path)
        if answer:
            answer(h)
            return
        _, kind, name, *_ = h.path.split("/") + ["", ""]
        if kind == "simple" and self.links(name):
            send(h, 200, f"<!DOCTYPE html><html><body>{self.links(name)}</body></html>".encode(), "text/html")
        elif kind == "files" and name in self.files:
            send(h, 200, self.files[name][0])
        else:
            send(h, 404, b"no such thing")

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def send(h, status, data, kind="application/octet-stream", **headers):
    h.send_response(status)
    h.send_header("Content-Type", kind)
    h.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        h.send_header(name, value)
    h.end_headers()
    h.wfile.write(data)
