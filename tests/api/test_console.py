# SPDX-License-Identifier: MIT
"""The console's files, and how a browser gets the key for them. What the page does is in tests/console."""
import gzip
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import harness

NO_KEY = {"Authorization": None}
BUNDLE_MAX = 600_000  # compressed bytes, all of it
FIRST_MAX = 30_000  # what the first paint waits for
IDLE_MAX = 1 << 20  # resident bytes of the daemon


def fetch(daemon, path, **headers):
    return daemon.request("GET", path, headers={**NO_KEY, "Accept-Encoding": "gzip", **headers})


def text_of(daemon, path):
    return gzip.decompress(fetch(daemon, path).body).decode()


def parts(daemon):
    """{path: compressed bytes} of everything that the page can load."""
    found, todo = {}, ["/console", "/console/frame"]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        seen = fetch(daemon, path)
        assert seen.status == 200, (path, seen)
        found[path] = len(seen.body)
        todo += ["/console/" + name for name in
                 re.findall(r"(?:app|part|style|asset)-[A-Z0-9]{8}\.\w+", gzip.decompress(seen.body).decode())]
    return found


def ticket_of(daemon):
    """The one in the address that the daemon has printed."""
    line = daemon.out.wait(lambda one: "/console#ticket=" in one and one)
    assert line, daemon.stdout_text()
    return line.rpartition("#ticket=")[2]


def log_in(daemon, ticket):
    return daemon.request("POST", "/console/login", json={"ticket": ticket}, headers=NO_KEY)


def bearer(key):
    return {"Authorization": "Bearer " + key}


def test_a_browser_is_led_to_the_console(daemon):
    seen = daemon.request("GET", "/", headers={**NO_KEY, "Accept": "text/html,*/*;q=0.8"})
    assert (seen.status, seen.headers["Location"]) == (307, "console")
    assert daemon.request("GET", "/docs", headers=NO_KEY).status == 200
    seen = daemon.request("GET", "/console/", headers=NO_KEY)
    assert (seen.status, seen.headers["Location"]) == (307, "../console")


def test_the_page_may_load_nothing_from_elsewhere(daemon):
    page = fetch(daemon, "/console")
    policy = dict(part.split(" ", 1) for part in page.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert page.headers["Referrer-Policy"] == "no-referrer"
    frame = fetch(daemon, "/console/frame").headers["Content-Security-Policy"]
    assert frame.startswith("sandbox allow-scripts; default-src 'none'; script-src 'sha256-")
    html = gzip.decompress(page.body).decode()
    assert "http" not in html and "<style" not in html and not re.search(r"<script(?! type=\"module\" src=\"console/app-)", html)


def test_files_are_asked_for_once_and_the_page_every_time(daemon):
    page = fetch(daemon, "/console")
    assert page.headers["Cache-Control"] == "no-cache"
    assert fetch(daemon, "/console", **{"If-None-Match": page.headers["ETag"]}).status == 304
    path = "/" + re.search(r"console/app-\w+\.js", text_of(daemon, "/console")).group()
    script = fetch(daemon, path)
    assert script.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert script.headers["X-Content-Type-Options"] == "nosniff"
    assert int(daemon.request("HEAD", path, headers={**NO_KEY, "Accept-Encoding": "gzip"}).headers["Content-Length"]) == len(script.body)
    assert fetch(daemon, "/console/app-NOTTHERE.js").status == 404


@pytest.mark.parametrize("accepted, status", [("gzip", 200), ("br, gzip;q=0.5", 200), ("*", 200), (None, 406), ("br", 406), ("gzip;q=0", 406)])
def test_only_gzip_is_sent(daemon, accepted, status):
    seen = daemon.request("GET", "/console", headers={**NO_KEY, "Accept-Encoding": accepted or "identity"})
    assert seen.status == status
    assert (seen.headers["Content-Encoding"] == "gzip") == (status == 200)


def test_the_bundle_is_small_and_the_first_paint_does_not_wait_for_the_editor(daemon):
    sizes = parts(daemon)
    assert len(sizes) > 5
    assert sum(sizes.values()) <= BUNDLE_MAX, sizes
    first = re.findall(r"console/[\w-]+\.\w+", text_of(daemon, "/console"))
    todo = ["/" + name for name in first]
    seen = set()
    while todo:  # what is imported at once, not by import()
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += ["/console/" + name for name in re.findall(r'(?:from|import)"\./([\w.-]+)"', text_of(daemon, path))]
    assert sum(sizes[path] for path in seen) <= FIRST_MAX, {path: sizes[path] for path in seen}


def resident(pid):
    return int(re.search(rb"VmRSS:\s+(\d+)", harness.read_proc(pid, "status")).group(1)) * 1024


def test_serving_it_costs_the_idle_daemon_little(make_daemon):
    one = make_daemon()
    for _ in range(20):
        one.request("GET", "/health")
    before = resident(one.pid)
    parts(one)
    if not one.is_sanitized():
        harness.wait_until(lambda: resident(one.pid) - before < IDLE_MAX, lambda: f"grown by {resident(one.pid) - before}")


# ---- tickets and keys ----


def test_a_printed_address_opens_the_console_once(make_daemon):
    one = make_daemon()
    ticket = ticket_of(one)
    seen = log_in(one, ticket)
    assert seen.status == 200, seen
    assert seen.headers["Cache-Control"] == "no-store"
    key = seen.json()["key"]
    assert one.secret not in key
    assert one.request("GET", "/info", headers=bearer(key)).status == 200
    again = log_in(one, ticket)
    assert (again.status, again.json()["error_code"]) == (403, "Executor.TicketRefused")
    assert again.json()["solution"]
    assert one.request("GET", "/info", headers=bearer(ticket)).status == 401
    one.stop()
    assert ticket not in one.log_text() and key not in one.log_text()


@pytest.mark.parametrize("ticket", ["", "0", "0" * 64, "0" * 10_000, "\0" * 64])
def test_what_is_no_ticket_is_refused(daemon, ticket):
    assert log_in(daemon, ticket).status == 403


def test_tickets_and_keys_are_made_with_the_secret_only(daemon):
    made = daemon.request("POST", "/console/tickets")
    assert made.status == 201, made
    assert made.json()["path"] == "/console#ticket=" + made.json()["ticket"]
    assert made.json()["expires_in"] == 3600
    key = log_in(daemon, made.json()["ticket"]).json()["key"]
    for path in ("/console/tickets", "/console/sessions"):
        assert daemon.request("POST", path, headers=NO_KEY).status == 401
        assert daemon.request("POST", path, headers=bearer(key)).status == 403
    assert daemon.request("POST", "/console/sessions").json()["key"] != key


def test_the_oldest_of_too_many_tickets_gives_way(daemon):
    tickets = [daemon.request("POST", "/console/tickets").json()["ticket"] for _ in range(17)]
    assert log_in(daemon, tickets[0]).status == 403
    assert log_in(daemon, tickets[1]).status == 200
    assert log_in(daemon, tickets[16]).status == 200


def test_a_ticket_and_a_key_end_with_their_time(make_daemon):
    one = make_daemon(CONSOLE_TICKET_SECONDS=1, CONSOLE_SESSION_SECONDS=60)
    ticket = ticket_of(one)
    key = one.request("POST", "/console/sessions").json()["key"]
    head, until, nonce, mac = key.split("_")
    assert one.request("GET", "/info", headers=bearer(key)).status == 200
    later = f"{int(until, 16) + 1000:016x}"
    for forged in (f"{head}_{later}_{nonce}_{mac}", f"{head}_{until}_{nonce[::-1]}_{mac}", f"{head}_{until}_{nonce}_{mac[::-1]}", key[:-1], key + "0"):
        assert one.request("GET", "/info", headers=bearer(forged)).status == 401
    asked = time.monotonic()
    harness.wait_until(lambda: time.monotonic() > asked + 1, "the time of the ticket is over")
    assert log_in(one, ticket).status == 403


def test_a_key_survives_a_restart_and_ends_with_the_secret(make_daemon, tmp_path):
    path = tmp_path / "secret"
    tmp_path.chmod(0o755)

    def write(secret):
        path.write_text(secret)
        path.chmod(0o644)

    write("first secret")
    conf = {"SANDBOX_SECRET": None, "SANDBOX_SECRET_FILE": path, "SANDBOX_SECRET_OVERLAP": 0}
    one = make_daemon(**conf)
    key = log_in(one, ticket_of(one)).json()["key"]
    one.stop()
    two = make_daemon(**conf)
    ticket = ticket_of(two)
    assert two.request("GET", "/info", headers=bearer(key)).status == 200
    write("second secret")
    two.signal(signal.SIGHUP)
    assert two.wait_record(event_type="reloaded")
    assert two.request("GET", "/info", headers=bearer(key)).status == 401
    assert log_in(two, ticket).status == 403  # it was given under the first


def test_without_a_secret_there_is_nothing_to_exchange(make_daemon):
    one = make_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None)
    line = one.out.wait(lambda said: "/console" in said and said)
    assert line and "ticket" not in one.stdout_text()
    assert one.request("POST", "/console/sessions").status == 409
    assert log_in(one, "0" * 64).status == 403


def test_a_key_does_not_claim_a_pool(make_daemon, daemon, tmp_path):
    key = daemon.request("POST", "/console/sessions").json()["key"]
    tmp_path.chmod(0o777)
    one = make_daemon(SANDBOX_AUTH_MODE="pool", SANDBOX_SECRET=None, SANDBOX_SECRET_PATH=tmp_path / "claimed")
    assert one.request("GET", "/info", headers=bearer(key)).status == 401
    assert one.request("GET", "/info", headers=bearer("the real one")).status == 200
    assert one.request("GET", "/info", headers=bearer(key)).status == 401


def test_a_journal_gets_no_ticket(make_daemon):
    one = make_daemon(JOURNAL_STREAM="8:1")
    assert one.out.wait(lambda said: said.endswith("/console"))
    assert "ticket" not in one.stdout_text()


def test_it_can_be_switched_off(make_daemon):
    one = make_daemon(CONSOLE="false")
    assert one.request("GET", "/console").status == 404
    assert one.request("GET", "/", headers={"Accept": "text/html"}).headers["Location"] == "docs"
    assert one.request("GET", "/").json()["console"] is None
    assert one.out.wait(lambda said: "/docs" in said)
    assert "/console" not in one.stdout_text()


# ---- WebSockets of a page ----


def open_terminal(daemon, protocols):
    headers = {"Authorization": None, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": protocols}
    with daemon.connect() as connection:
        connection.send("GET", "/v1/sandboxes/default/terminals?keep=false", headers=headers)
        raw = connection.http.sock.recv(65536)
    return raw.decode("latin-1")


@pytest.mark.skipif(harness.JAIL == "subprocess", reason="it has no terminals of its own")
def test_a_page_brings_its_key_as_a_protocol(daemon):
    key = daemon.request("POST", "/console/sessions").json()["key"]
    seen = open_terminal(daemon, f"sandbox-executor, bearer.{key}")
    assert seen.startswith("HTTP/1.1 101 "), seen
    assert "\r\nSec-WebSocket-Protocol: sandbox-executor\r\n" in seen and key not in seen
    for wrong in ("sandbox-executor, bearer.nothing", "sandbox-executor", f"bearer.{key}", f"other, bearer.{key}"):
        assert open_terminal(daemon, wrong).startswith("HTTP/1.1 401 "), wrong


def test_the_key_as_a_protocol_is_for_terminals_only(daemon):
    """A server inside a sandbox would see it."""
    key = daemon.request("POST", "/console/sessions").json()["key"]
    headers = {"Authorization": None, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": f"sandbox-executor, bearer.{key}"}
    assert daemon.request("GET", "/v1/sandboxes/default/ports/8000/", headers=headers).status == 401
    assert daemon.request("GET", "/info", headers=headers).status == 401


def test_the_documentation_of_the_daemon_has_the_console(daemon):
    paths = json.loads(daemon.request("GET", "/openapi.json").body)["paths"]
    assert {"/console", "/console/login", "/console/sessions", "/console/tickets"} <= set(paths)


def test_sbx_prints_another_address(daemon):
    said = subprocess.run([harness.BUILD / "sbx", "console", "-u", f"http://127.0.0.1:{daemon.port}"], check=True, timeout=harness.DEADLINE,
                          env={"SANDBOX_SECRET": daemon.secret, "PATH": "/usr/bin"}, stdout=subprocess.PIPE, text=True).stdout
    address, _, ticket = said.strip().rpartition("#ticket=")
    assert address == f"http://127.0.0.1:{daemon.port}/console"
    assert log_in(daemon, ticket).status == 200


def test_a_build_without_packages_has_no_console(tmp_path):
    top = pathlib.Path(__file__).resolve().parents[2]
    harness.need(shutil.which("node"), "node")
    made = tmp_path / "console.c"
    subprocess.run([top / "tools/build-console", made, top / "src/console", tmp_path / "nothing"], check=True, timeout=harness.DEADLINE)
    assert "console_files_n = 0;" in made.read_text()
