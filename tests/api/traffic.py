# SPDX-License-Identifier: MIT
"""Mixed traffic with answers that can be told right from wrong.

A kind is a function (daemon, connection, token): one request, or a few that belong together, whose
right answer contains the token. It raises Wrong for any other answer and returns None, or BUSY when
the daemon refused with 503. Used by tests/leaks, bench/soak and test_leaks.py.
"""
import collections
import http.client
import json
import random
import secrets
import threading
import time

import harness

BUSY = "busy"


class Wrong(Exception):
    """An answer, but not to this question."""


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def execute(connection, code, language, **fields):
    response = connection.request("POST", "/execute", json={"code": code, "language": language, **fields},
                                  headers={"Prefer": "wait"})
    if response.status == 503:
        return None
    demand(response.status == 200, response)
    return response.json()


def shell(daemon, connection, token):
    result = execute(connection, f"echo {token}; echo {token} >file", "shell")
    if result is None:
        return BUSY
    demand(result["status"] == "success" and result["stdout"] == token + "\n", result)
    demand(result["artifacts"] == ["file"], result)


def python(daemon, connection, token):
    result = execute(connection, "def handler(event): return event['t']", "python", event={"t": token})
    if result is None:
        return BUSY
    demand(result["status"] == "success" and result["return_value"] == token, result)


def javascript(daemon, connection, token):
    result = execute(connection, "exports.handler = e => e.t", "javascript", event={"t": token})
    if result is None:
        return BUSY
    demand(result["status"] == "success" and result["return_value"] == token, result)


def failing(daemon, connection, token):
    result = execute(connection, f"(setsid sleep 600 &); echo {token} >&2; kill -9 $$", "shell")
    if result is None:
        return BUSY
    demand(result["status"] == "failed" and result["stderr"] == token + "\n", result)


def late(daemon, connection, token):
    result = execute(connection, f"echo {token}; sleep 600 & sleep 600", "shell", timeout=int(harness.SLOW))
    if result is None:
        return BUSY
    demand(result["status"] == "timeout" and result["stdout"] == token + "\n", result)


def session(daemon, connection, token):
    """Two runs that share a workspace, of which there are a few."""
    name = "s-" + token[0]
    for code, right in ((f"echo {token} >{token}", ""), (f"cat {token}; rm {token}", token + "\n")):
        result = execute(connection, code, "shell", session_id=name)
        if result is None:
            return BUSY
        demand(result["status"] == "success" and result["stdout"] == right, result)


def call(daemon, connection, token):
    body = {"language": "python", "code": "def f(x):\n    return x", "functionName": "f", "args": [token]}
    response = connection.request("POST", "/v1/functions/call", json=body)
    if response.status == 503:
        return BUSY
    demand(response.status == 200 and response.json().get("result") == token, response)


def inspect(daemon, connection, token):
    name = "f" + token.replace("-", "_")
    response = connection.request("POST", "/v1/functions/inspect",
                                  json={"language": "python", "code": f"def {name}(a, b=1): pass"})
    if response.status == 503:
        return BUSY
    demand(response.status == 200 and name in response.text, response)


def command(daemon, connection, token):
    """In the default sandbox: a file, a command, and the file is gone."""
    path = f"/workspace/{token}"
    wrote = connection.request("POST", "/write_file", json={"path": path, "content": token})
    if wrote.status == 503:
        return BUSY
    demand(wrote.status == 200 and wrote.json() == {"success": True}, wrote)
    ran = connection.request("POST", "/run", json={"cmd": f"cat {path}; rm {path}"})
    demand(ran.status == 200 and ran.json()["stdout"] == token, ran)


def vanish(daemon, connection, token):
    """A client that asks and goes."""
    daemon.start(f"sleep 600 # {token}", "shell").close()


def half(daemon, connection, token):
    """A client that goes before it has asked."""
    with daemon.socket() as s:
        s.sendall((f"POST /execute HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.secret}\r\n"
                   "Content-Length: 1000\r\n\r\n{\"code\"").encode())


def refused(daemon, connection, token):
    response = connection.request("POST", "/execute", json={"code": 1, "language": token})
    demand(response.status == 400 and "code" in response.text, response)


def health(daemon, connection, token):
    response = connection.request("GET", "/health")
    demand(response.status == 200 and response.json()["status"], response)


# How often, in relation to each other.
KINDS = [(shell, 30), (python, 20), (javascript, 6), (failing, 8), (session, 4), (call, 8), (inspect, 4), (command, 8),
         (vanish, 5), (half, 3), (refused, 3), (health, 4), (late, 1)]
# The last of them: of http.client, when a request could not be sent.
CONNECTION_ERRORS = (http.client.HTTPException, OSError, AttributeError)


class Traffic:
    """Some clients, each of which asks one thing after the other, until stop() or so many were asked."""

    def __init__(self, daemon, clients, count=None, kinds=None, seed=None, lossy=False):
        self.daemon, self.count, self.lossy = daemon, count, lossy
        self.kinds = kinds or KINDS
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.asked, self.answered, self.busy = 0, collections.Counter(), 0
        self.wrong, self.lost, self.times = [], 0, []
        self.stopping = False
        self.threads = [threading.Thread(target=self.client, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def next(self):
        with self.lock:
            if self.stopping or (self.count is not None and self.asked >= self.count):
                return None
            self.asked += 1
            functions, weights = zip(*self.kinds)
            return self.random.choices(functions, weights)[0]

    def client(self):
        connection = self.daemon.connect()
        while True:
            kind = self.next()
            if kind is None:
                break
            began = time.monotonic()
            try:
                outcome = kind(self.daemon, connection, secrets.token_hex(8))
                with self.lock:
                    self.busy += outcome == BUSY
                    self.answered[kind.__name__] += outcome != BUSY
                    self.times.append((began, time.monotonic() - began, outcome or kind.__name__))
            except Wrong as wrong:
                with self.lock:
                    self.wrong.append(f"{kind.__name__}: {str(wrong)[:500]}")
            except CONNECTION_ERRORS as error:  # nobody answered
                connection.close()
                with self.lock:
                    self.lost += 1
                    if not self.lossy:
                        self.wrong.append(f"{kind.__name__}: {error!r}")
                    elif self.daemon.process.poll() is not None:
                        self.stopping = True
            except (ValueError, KeyError) as error:
                with self.lock:
                    self.wrong.append(f"{kind.__name__}: {error!r}")
        connection.close()

    def wait(self):
        for thread in self.threads:
            thread.join()
        return self

    def stop(self):
        self.stopping = True
        return self.wait()


def idle(daemon):
    """Everything that was asked for has ended."""
    def looks_idle():
        return json.loads(daemon.health().body)["active_executions"] == 0
    harness.wait_until(looks_idle, "nothing runs any more", timeout=max(90, harness.DEADLINE))
