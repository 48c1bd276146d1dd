# SPDX-License-Identifier: MIT
"""Endpoints that tell about the service itself."""
import re
import socket
import subprocess

import pytest

import harness

META = ["/", "/health", "/info", "/metrics", "/openapi.json", "/docs", "/v1/capabilities"]


def test_root_names_the_service_and_its_doors(daemon):
    body = daemon.request("GET", "/").json()
    assert body["service"] == "sandbox-executor"
    assert body["version"]
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
            response = daemon.request(method.upper(), re.sub(r"\{[^}]*\}", "x", path),
                                      body=b"" if method == "post" else None, headers={"Authorization": None})
            assert response.status in (200, 401), (method, path, response)


def test_openapi_names_every_field_of_a_request(daemon):
    text = daemon.request("GET", "/openapi.json").text
    for field in ("code", "language", "timeout", "event", "stdin", "env_vars", "execution_id"):
        assert f'"{field}"' in text, field


def test_docs_is_a_page(daemon):
    response = daemon.request("GET", "/docs")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/html")
    assert "/execute" in response.text


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
