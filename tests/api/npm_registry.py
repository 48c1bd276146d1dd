# SPDX-License-Identifier: MIT
"""A small npm registry on the loopback, and the packages on it."""
import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse


def tarball(name, version="1.0.0", code="module.exports = 1;", **fields):
    """What `npm pack` makes: bytes."""
    out = io.BytesIO()
    manifest = json.dumps({"name": name, "version": version, "main": "index.js", **fields})
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in {"package.json": manifest, "index.js": code}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text.encode())
            t.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    """Serves the document of a package at /NAME and its tarball below /files."""

    def __init__(self):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                registry.asked.append(self.path)
                registry.answer(self)

            def log_message(self, *_):
                pass

        self.packages, self.files, self.asked = {}, {}, []
        self.gate = threading.Event()
        self.gate.set()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, name, version="1.0.0", code="module.exports = 1;", **fields):
        data = tarball(name, version, code, **fields)
        file = f"files/{len(self.files)}.tgz"
        self.files["/" + file] = data
        document = self.packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        document["dist-tags"]["latest"] = version
        document["versions"][version] = {
            "name": name, "version": version, **fields,
            "dist": {"tarball": self.url + file, "shasum": hashlib.sha1(data).hexdigest(),
                     "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}

    def answer(self, handler):
        self.gate.wait(60)
        path = urllib.parse.unquote(handler.path)
        document = self.packages.get(path[1:])
        data = json.dumps(document).encode() if document else self.files.get(path)
        handler.send_response(200 if data else 404)
        handler.send_header("Content-Type", "application/json" if document else "application/octet-stream")
        handler.send_header("Content-Length", str(len(data or b"")))
        handler.end_headers()
        try:
            handler.wfile.write(data or b"")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()
