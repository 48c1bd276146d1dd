# SPDX-License-Identifier: MIT
"""GET /v1/executions: which there are, filtered, page by page."""

import pytest


@pytest.fixture(scope="module")
def full(make_daemon_module):
    daemon = make_daemon_module()
    for i in range(7):
        daemon.execute("true" if i % 2 else "exit 3", "shell", execution_id=f"s{i}")
    daemon.execute("print(1)", "python", execution_id="p0")
    daemon.request("POST", "/execute", headers={"Prefer": "wait"},
                   json={"language": "shell", "code": "true", "session_id": "one &=", "execution_id": "in-session"})
    daemon.execute("sleep 60", "shell", execution_id="late", timeout=0.1)
    return daemon


ORDER = ["late", "in-session", "p0", "s6", "s5", "s4", "s3", "s2", "s1", "s0"]


def page(daemon, query=""):
    response = daemon.request("GET", "/v1/executions" + query)
    assert response.status == 200, response
    body = response.json()
    assert set(body) == {"executions", "next"}
    return [x["execution_id"] for x in body["executions"]], body["next"]


def test_the_newest_come_first(full):
    assert page(full) == (ORDER, None)


@pytest.mark.parametrize("query, names", [
    ("?status=failed", ["s6", "s4", "s2", "s0"]),
    ("?status=timeout", ["late"]),
    ("?status=error", []),
    ("?language=python", ["p0"]),
    ("?session_id=one+%26%3D", ["in-session"]),
    ("?session_id=two", []),
    ("?state=done&language=shell&status=success", ["in-session", "s5", "s3", "s1"]),
    ("?state=running", []),
])
def test_filters(full, query, names):
    assert page(full, query) == (names, None)


@pytest.mark.parametrize("query, limit", [("", 1), ("", 3), ("", 10), ("&language=shell", 2), ("&status=failed", 1)])
def test_pages_join_without_gap_or_repetition(full, query, limit):
    whole, _ = page(full, "?limit=1000" + query)
    seen, cursor = [], ""
    for _ in range(20):
        names, after = page(full, f"?limit={limit}{query}{cursor}")
        assert len(names) <= limit
        seen += names
        if after is None:
            break
        cursor = "&cursor=" + after
    assert seen == whole


def test_a_page_stands_still_while_others_come(full):
    first, after = page(full, "?limit=4")
    full.execute("true", "shell", execution_id="new")
    try:
        second, _ = page(full, f"?limit=4&cursor={after}")
        assert first + second == ORDER[:8]
    finally:
        full.request("DELETE", "/v1/executions/new")


def test_what_a_row_says(full):
    row = next(x for x in full.request("GET", "/v1/executions").json()["executions"] if x["execution_id"] == "s0")
    assert {k: row[k] for k in ("session_id", "state", "status", "reason", "language", "exit_code")} == {
        "session_id": None, "state": "done", "status": "failed", "reason": "exit", "language": "shell", "exit_code": 3}
    assert row["total_ms"] > 0 and row["created_at"].endswith("Z")


def test_one_under_way(daemon):
    with daemon.start("while :; do sleep 0.1; done", "shell", execution_id="listed"):
        def rows():
            return daemon.request("GET", "/v1/executions?state=running").json()["executions"]
        from harness import wait_until
        wait_until(lambda: any(x["execution_id"] == "listed" for x in rows()), "it runs")
        row = next(x for x in rows() if x["execution_id"] == "listed")
        assert row["status"] is None and "exit_code" not in row
        daemon.request("DELETE", "/v1/executions/listed")


@pytest.mark.parametrize("query, word", [
    ("?limit=0", "limit"), ("?limit=1001", "limit"), ("?limit=x", "limit"), ("?limit=-1", "limit"), ("?limit=", "limit"),
    ("?cursor=x", "cursor"), ("?cursor=0", "cursor"), ("?cursor=99999999999999999999999", "cursor"), ("?status=done", "status"),
    ("?state=success", "state"), ("?language=cobol", "language"), ("?langauge=python", "langauge"), ("?x", "'x'"),
])
def test_other_parameters_are_refused(daemon, query, word):
    response = daemon.request("GET", "/v1/executions" + query)
    assert response.status == 400 and word in response.text


def test_the_list_needs_the_secret(daemon):
    assert daemon.request("GET", "/v1/executions", headers={"Authorization": "Bearer no"}).status == 401
