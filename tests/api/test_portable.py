# SPDX-License-Identifier: MIT
"""A build without the jails of Linux (-Djails=seatbelt,subprocess): what it says of those it left out.

The stage api-portable runs it, with a part of the suite: the daemon and what it links are the portable
ones, the launcher is Linux's, because there is no other yet (docs/jails.md).
"""
import os

import pytest

from harness import start_refused

pytestmark = pytest.mark.skipif("SBX_PORTABLE" not in os.environ, reason="the stage api-portable runs it")
LEFT_OUT = ("native", "bwrap")
WORDS = "this build does not have it (-Djails)"


def jails(daemon):
    return {row["name"]: row for row in daemon.request("GET", "/v1/capabilities").json()["jails"]}


@pytest.mark.parametrize("isolation, allowed", [("subprocess", []), ("native,bwrap,subprocess", ["native", "bwrap"])])
def test_left_out_jails_are_known_and_say_so(make_daemon, isolation, allowed):
    daemon = make_daemon(ISOLATION=isolation)
    rows = jails(daemon)
    for name in LEFT_OUT:
        row = rows[name]
        assert not row["available"] and row["allowed"] == (name in allowed), row
        assert row["reason"] == WORDS and row.get("traits", []) == [], row
    assert rows["subprocess"]["available"] and rows["subprocess"]["allowed"], rows
    assert not rows["seatbelt"]["available"] and "ISOLATION" in rows["seatbelt"]["reason"], rows
    assert daemon.execute("echo works", "shell")["isolation"]["jail"] == "subprocess"


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_request_for_one_is_refused_with_the_reason(make_daemon, name):
    daemon = make_daemon(ISOLATION=f"{name},subprocess")
    assert daemon.wait_record(event_type="jail_unavailable", jail=name)["error"] == WORDS
    response = daemon.request("POST", "/execute", json={"code": "true", "language": "shell", "isolation": name})
    assert response.status == 400 and WORDS in response.text, response


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_daemon_that_is_to_have_nothing_else_does_not_start(name):
    assert f"{name}: {WORDS}" in start_refused(ISOLATION=name).stderr
