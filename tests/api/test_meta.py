# SPDX-License-Identifier: MIT
"""Endpoints that tell about the service itself."""
import base64
import hashlib
import re
import socket
import subprocess

import pytest

import harness
import mcp_client

META = ["/", "/health", "/info", "/metrics", "/openapi.json", "/docs", "/v1/capabilities"]


def test_advice_is_what_doctor_says(make_daemon):
    """Of an ordinary user without control groups, to whom something is missing."""
    user = 65534 if harness.ROOT else None
    one = make_daemon(user=user, ISOLATION_LEVEL="basic")
    body = one.request("GET", "/v1/capabilities").json()
    said = subprocess.run([harness.BUILD / "sbx", "doctor"], env=one.env, user=user, group=user, extra_groups=None if user is None else [], cwd="/",
                          stdout=subprocess.PIPE, text=True, timeout=harness.DEADLINE).stdout
    told = re.findall(r"^  in the way: (.*)$", said, re.M)
    if body["traits_missing"]:
        assert set(told) <= set(body["advice"])
    else:
        assert not body["advice"]


def test_root_names_the_service_and_its_doors(daemon):
    body = daemon.request("GET", "/").json()
    assert body["service"] == "sandbox-executor"
    assert body["version"]
    assert body["console"] == "/console"
    assert (body["docs"], body["health"], body["execute"]) == ("/docs", "/health", "/execute")


def test_health_has_the_promised_members(daemon):
    response = daemon.request("GET", "/health", headers={"Authorization": None})
    assert response.status == 200
    body = response.json()
    assert body["status"] == "ok"
    assert body["version"] == daemon.request("GET", "/").json()["version"]
    assert body["isolation"] == harness.JAIL
    assert body["platform"].lower().startswith("linux")
    assert body["uptime_seconds"] >= 0
    assert body["active_executions"] >= 0


def test_health_counts_running_executions(daemon):
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "earlier runs are over")
    mark = harness.marker()
    run = daemon.start(harness.spawn_marked(mark), "shell")
    harness.wait_until(lambda: harness.processes_with(mark), "the program runs")
    assert daemon.health().json()["active_executions"] == 1
    run.close()
    harness.wait_until(lambda: daemon.health().json()["active_executions"] == 0, "the run is over")


def test_head_of_health_has_the_length_but_no_body(daemon):
    response = daemon.request("HEAD", "/health")
    assert response.status == 200
    assert int(response.headers["Content-Length"]) > 0
    assert response.body == b""


def test_info(daemon):
    body = daemon.request("GET", "/info").json()
    assert body["version"] and body["platform"]
    assert "workspace_path" in body and "isolation" in body
    assert body["active_executions"] >= 0


def test_capabilities_declare_isolation_and_limits(daemon):
    body = daemon.request("GET", "/v1/capabilities").json()
    assert all(isinstance(one, str) for one in body["advice"])
    assert body["traits_missing"] or not body["advice"]
    text = daemon.request("GET", "/v1/capabilities").text
    assert "native" in text
    for trait in ("filesystem", "pid", "ipc", "uts", "network", "user", "seccomp"):
        assert trait in text, trait
    assert {"python", "javascript", "shell"} <= set(find(body, "languages"))
    assert daemon.secret not in text


def find(value, key):
    """The first member of that name, at any depth; names of objects count as their keys."""
    if isinstance(value, dict):
        if key in value:
            inner = value[key]
            return [x["name"] if isinstance(x, dict) else x for x in inner]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            got = find(item, key)
            if got is not None:
                return got
    return None


SAMPLE = re.compile(
    r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\.)*"'
    r'(,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\.)*")*\})? (-?[0-9.]+(e[+-]?[0-9]+)?|NaN|[+-]Inf)$')


def samples(text):
    """Parses Prometheus text; fails on any line that is not well formed."""
    values, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"second TYPE for {name}"
            types[name] = kind
        elif line and not line.startswith("#"):
            assert SAMPLE.match(line), line
            name, _, value = line.rpartition(" ")
            assert name not in values, f"duplicate sample {name}"
            values[name] = float(value)
    return values, types


def test_metrics_are_prometheus_text_and_count_executions(daemon):
    before, _ = samples(daemon.request("GET", "/metrics").text)
    daemon.execute("true", "shell")
    response = daemon.request("GET", "/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    after, types = samples(response.text)
    assert response.text.endswith("\n")
    grown = [n for n in after if "shell" in n and "success" in n and after[n] == before.get(n, 0) + 1]
    assert grown, "a counter of successful shell executions"
    assert "histogram" in types.values() and "gauge" in types.values()


def test_histograms_are_cumulative(daemon):
    daemon.execute("true", "shell")
    mcp_client.Client(daemon).call("list_sandboxes")  # one of a tool has a series from its first call
    values, types = samples(daemon.request("GET", "/metrics").text)
    for name in (n for n, kind in types.items() if kind == "histogram"):
        series = {}
        for key, value in values.items():
            if key.startswith(name + "_bucket{"):
                labels = re.sub(r',?le="([^"]*)"', "", key)
                series.setdefault(labels, []).append(value)
        assert series, name
        for labels, counts in series.items():
            assert counts == sorted(counts), labels


def test_openapi_covers_every_route_that_answers(daemon):
    document = daemon.request("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.")
    paths = document["paths"]
    assert set(META) <= set(paths)
    assert "post" in paths["/execute"]
    assert "get" in paths["/v1/executions/{id}"]
    assert any(p.startswith("/v1/executions/{id}/artifacts/") for p in paths)
    operations = [op for item in paths.values() for op in item.values() if isinstance(op, dict)]
    assert all(op.get("responses") for op in operations)


def test_every_documented_operation_exists(daemon):
    """Asked without the secret, a route answers 200 or 401; only what is not there answers 404 or 405."""
    paths = daemon.request("GET", "/openapi.json").json()["paths"]
    for path, item in paths.items():
        for method in set(item) & {"get", "put", "post", "delete", "head", "patch"}:
            at = "/console/frame" if path.startswith("/console/{") else re.sub(r"\{[^}]*\}", "x", path)
            response = daemon.request(method.upper(), at, body=b"" if method == "post" else None,
                                      headers={"Authorization": None, "Accept-Encoding": "gzip"})
            login = path == "/console/login"  # which wants a body in place of the secret
            assert response.status == 400 if login else response.status in (200, 401), (method, path, response)


def test_openapi_names_every_field_of_a_request(daemon):
    text = daemon.request("GET", "/openapi.json").text
    for field in ("code", "language", "timeout", "event", "stdin", "env_vars", "execution_id"):
        assert f'"{field}"' in text, field


def test_a_browser_is_led_to_the_docs(daemon):
    seen = daemon.request("GET", "/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (seen.status, seen.headers["Location"], seen.headers["Vary"]) == (307, "console", "Accept")
    assert daemon.request("GET", "/", headers={"Accept": "*/*"}).json()["docs"] == "/docs"


def test_docs_show_every_endpoint_with_its_fields_answers_and_an_example(daemon):
    response = daemon.request("GET", "/docs")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    page = response.text
    assert "(null)" not in page
    document = daemon.request("GET", "/openapi.json").json()
    schemas = document["components"]["schemas"]
    sections = {re.match(r"\w+", part)[0]: part for part in page.split("<h3 id=")[1:]}
    shown = 0
    for path, row in document["paths"].items():
        assert f">{path}<" in page or f"</span> {path}</a>" in page, path
        for operation in row.values():
            part = sections.get(operation["operationId"])
            if part is None:  # the same endpoint at another path of its family
                assert f"<p>The same at <code>{path}</code>" in page, path
                continue
            shown += 1
            assert f'<a href="#{operation["operationId"]}">' in page.partition("<main>")[0], "a line of the contents"
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                for name in schemas[body["schema"]["$ref"].rpartition("/")[2]]["properties"]:
                    assert f"<code>{name}</code>" in part, (path, name)
                assert body["example"], path
            for status in operation["responses"]:
                assert status[0] != "2" or f"<h4>Answer {status} " in part, (path, status)
            assert "<h4>Example</h4>\n<pre>curl -sS " in part, path
    assert shown == len(sections) > 40
    anchors = set(re.findall(r" id=(\w+)", page))
    assert set(re.findall(r'href="#(\w+)"', page)) <= anchors, "every link of the contents leads somewhere"


def test_docs_ask_no_other_host_for_anything(daemon):
    response = daemon.request("GET", "/docs")
    page = response.text
    assert len(page) < 200_000
    links = re.findall(r'(?:src|href)=("?[^">]*)', page)
    assert [x for x in links if not re.match(r'"(#\w+|openapi\.json|data:,)$', x)] == []
    assert "<script" not in page and "@import" not in page and "url(" not in page
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1].encode()
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    policy = dict(part.strip().split(" ", 1) for part in response.headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'" and policy["style-src"] == f"'sha256-{digest}'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "prefers-color-scheme: dark" in page and "width=device-width" in page


def test_every_json_answer_ends_with_a_newline(daemon):
    """A shell prompt stands on a line of its own behind it."""
    ident = daemon.request("POST", "/execute", json={"language": "shell", "code": "true"}).json()["execution_id"]
    home = daemon.request("POST", "/v1/sandboxes", json={}).json()["id"]
    calls = [("GET", "/", None), ("GET", "/health", None), ("GET", "/info", None), ("GET", "/v1/capabilities", None),
             ("GET", "/openapi.json", None), ("GET", "/nothing", None), ("GET", "/execute", None),
             ("POST", "/execute", {"language": "shell", "code": "true"}), ("POST", "/execute", {}),
             ("GET", "/v1/executions/" + ident, None),
             ("POST", "/v1/functions/call", {"language": "shell", "code": ""}),
             ("POST", "/v1/functions/call", {"language": "python", "code": "def f():\n return 1", "functionName": "f"}),
             ("GET", "/v1/sessions", None), ("GET", "/v1/sandboxes", None), ("GET", f"/v1/sandboxes/{home}", None),
             ("POST", f"/v1/sandboxes/{home}/run", {"cmd": "true"}), ("POST", "/run", {"cmd": "true"}),
             ("POST", f"/v1/sandboxes/{home}/run", {"command": "true"})]
    for method, path, body in calls:
        answer = daemon.request(method, path, json=body)
        text = answer.text
        assert text.endswith("}\n") and not text.endswith("\n\n"), (path, text[-40:])
        assert int(answer.headers["Content-Length"]) == len(text.encode()), path
    daemon.request("DELETE", f"/v1/sandboxes/{home}")


@pytest.mark.parametrize("path", ["/nothing", "/execute/", "/v1", "/v1/nothing", "/healthz", "/.."])
def test_unknown_path_is_404_with_detail(daemon, path):
    response = daemon.request("GET", path)
    assert response.status == 404
    assert response.json()["detail"] == "Not Found"


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/execute", "POST"),
    ("DELETE", "/execute", "POST"),
    ("POST", "/health", "GET"),
    ("PUT", "/metrics", "GET"),
    ("POST", "/v1/executions/some", "GET"),
])
def test_wrong_method_is_405_with_allow(daemon, method, path, allowed):
    response = daemon.request(method, path, body=b"" if method != "GET" else None)
    assert response.status == 405, response
    assert allowed in [m.strip() for m in response.headers["Allow"].split(",")]
    assert response.json()["detail"] == "Method Not Allowed"


@pytest.mark.parametrize("path", META)
def test_meta_endpoints_answer_on_one_kept_connection(daemon, path):
    with daemon.connect() as connection:
        for _ in range(2):
            assert connection.request("GET", path).status == 200


# ---- logs ----


def test_every_log_line_is_a_json_record_with_the_required_fields(daemon):
    done = daemon.execute("true", "shell")
    record = harness.wait_until(
        lambda: next((r for r in daemon.records() if r.get("execution_id") == done["execution_id"]), None),
        "a record about the execution")
    assert record["request_id"] or record["event_type"]
    for line in daemon.log_text().splitlines():
        fields = harness.as_record(line)
        assert {"timestamp", "level", "event_type", "container_id"} <= set(fields), line
        assert re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$", fields["timestamp"]), line


def test_a_password_in_an_address_is_never_shown(make_daemon):
    """Of an index or registry of packages, or a control plane: not by the API, the log, or /proc."""
    address = "http://somebody:pa55-w0rd@127.0.0.1:9/simple/"
    daemon = make_daemon(["--package-registry", address], PACKAGE_INDEX=address)
    values = daemon.request("GET", "/v1/capabilities").text
    assert values.count("http://***@127.0.0.1:9/simple/") == 2, values
    shown = [values, daemon.log_text(), *(daemon.request("GET", path).text for path in META)]
    shown += [harness.read_proc(pid, name).decode("latin-1") for pid in daemon.tree() for name in ("cmdline", "environ")]
    assert not [text for text in shown if "pa55-w0rd" in text or "somebody" in text]


def test_logs_never_hold_a_secret_nor_what_a_program_said(daemon):
    said = harness.marker()
    code = (f"import sys\nprint('{said}-out')\nprint('{said}-err', file=sys.stderr)\n"
            f"def handler(event): return '{said}-value' + event['k']")
    done = daemon.execute(code, event={"k": said + "-event"}, env_vars={"TOKEN": said + "-env"})
    assert done["status"] == "success"
    daemon.request("GET", "/info", headers={"Authorization": "Bearer " + said + "-token"})
    harness.wait_until(
        lambda: any(r.get("execution_id") == done["execution_id"] for r in daemon.records()),
        "the execution is logged")
    text = daemon.log_text()
    assert said not in text
    assert daemon.secret not in text
    assert harness.CANARY not in text


def test_text_format_writes_one_line_per_record(make_daemon):
    """Readiness is read from JSON, so text mode is watched from outside: by its port."""
    probe = socket.create_server(("127.0.0.1", 0))
    port = probe.getsockname()[1]
    probe.close()
    reference = make_daemon()  # only for its environment
    env = dict(reference.env, LOG_FORMAT="text", EXECUTOR_PORT=str(port),
               STATE_DIR=str(reference.directory / "other"))
    process = subprocess.Popen([harness.BUILD / "sandbox-executor"], env=env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    harness.live.add(process.pid)
    try:
        line = process.stderr.readline().decode()
        while "listening" not in line:
            assert line, "ended before it listened"
            assert not line.startswith("{")
            line = process.stderr.readline().decode()
        assert str(port) in line
    finally:
        process.terminate()
        process.stderr.read()
        assert process.wait(harness.DEADLINE) == 143
