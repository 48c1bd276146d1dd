# SPDX-License-Identifier: MIT
"""Files of one persistent sandbox, as the native API has them."""
import contextlib
import urllib.parse

import harness
from koyeb import Events, Sandbox


class Files(Sandbox):
    """A sandbox of its own, or what `at` says."""

    def __init__(self, daemon, sandbox_id):
        super().__init__(daemon, f"/v1/sandboxes/{sandbox_id}")
        self.id = sandbox_id

    def ask(self, verb, **body):
        return self.post(f"files/{verb}", body, timeout=120)

    def told(self, verb, **body):
        response = self.ask(verb, **body)
        assert response.status == 200, response
        return response.json()

    def url(self, path):
        return f"{self.at}/files{urllib.parse.quote(path)}"

    def write(self, path, data=b"", **kw):
        response = self.daemon.request("PUT", self.url(path), body=data, **kw)
        assert response.status == 200, response

    def read(self, path, **kw):
        return self.daemon.request("GET", self.url(path), **kw)

    def list(self, path, **fields):
        """All parts of a list."""
        entries, after = [], None
        while True:
            part = self.told("list", path=path, **fields, **({"after": after} if after else {}))
            entries += part["entries"]
            after = part["next"]
            if after is None:
                return entries

    def watch(self, path, **fields):
        """A watch that stands."""
        watch = Watch(self.daemon, f"{self.at}/files/watch", {"path": path, **fields})
        assert watch.response.status == 200, watch.response.status
        assert next(watch)[0] == "ready"
        return watch


class Watch(Events):
    """An iterator over (event, data)."""

    def __init__(self, daemon, path, body):
        super().__init__(daemon, "POST", path, body, {"Content-Type": "application/json"})
        self.events = super().__iter__()

    def __iter__(self):
        return self

    def __next__(self):
        kind, data, _ = next(self.events)
        return kind, data


def until(events, kind, name):
    """The events up to that one, which must come."""
    seen = []
    for event, data in events:
        seen.append((event, data.get("name")))
        if seen[-1] == (kind, name):
            return seen
    raise AssertionError(seen)


@contextlib.contextmanager
def sandbox(daemon, **fields):
    response = daemon.request("POST", "/v1/sandboxes", json=fields)
    assert response.status == 201, response
    files = Files(daemon, response.json()["id"])
    try:
        yield files
    finally:
        daemon.request("DELETE", files.at, timeout=harness.DEADLINE)
