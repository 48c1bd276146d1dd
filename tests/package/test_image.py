# SPDX-License-Identifier: MIT
"""The OCI image: built without an engine, started by runc as an ordinary user without any capability."""
import json
import os
import pathlib
import secrets
import shutil
import subprocess

import pytest

from packages import HERE, TOP, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="unpacks the image with its owners")


@pytest.fixture(scope="module")
def image(deb):
    """Built anew, or the layout that SBX_IMAGE names."""
    if "SBX_IMAGE" in os.environ:
        return pathlib.Path(os.environ["SBX_IMAGE"])
    run(TOP / "tools" / "build-image", deb, HERE / "image")
    return HERE / "image"


@pytest.fixture(scope="module")
def bundle(image):
    at = HERE / "bundle"
    shutil.rmtree(at, ignore_errors=True)
    run("umoci", "unpack", "--image", f"{image}:latest", at)
    return at


def start(bundle, script):
    """What docs/install.md asks of a container engine for a user inside, and no more."""
    config = json.loads((bundle / "config.json").read_text())
    process, linux = config["process"], config["linux"]
    program, = process["args"]
    process.update(terminal=False, noNewPrivileges=True, args=["/bin/bash", "-euc", script.replace("DAEMON", program)],
                   capabilities={name: [] for name in ("bounding", "effective", "inheritable", "permitted", "ambient")})
    process["env"].append("ISOLATION_LEVEL=basic")
    linux.update(maskedPaths=[], readonlyPaths=[])
    for name in ("seccomp", "resources", "cgroupsPath"):
        linux.pop(name, None)
    user = process["user"]
    config["mounts"] = [m for m in config["mounts"] if m["destination"] != "/sys/fs/cgroup"]
    for mount in config["mounts"]:
        if mount["destination"] == "/var/lib/sandbox-executor":
            mount["options"] = ["mode=0711", f"uid={user['uid']}", f"gid={user['gid']}"]
    config["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=1777"]})
    own = bundle.with_name("run-" + secrets.token_hex(4))
    own.mkdir()
    try:
        config["root"] = {"path": str(bundle / "rootfs"), "readonly": True}
        (own / "config.json").write_text(json.dumps(config))
        return run("runc", "run", "--bundle", own, own.name, stdin=subprocess.DEVNULL)
    finally:
        shutil.rmtree(own)


SERVED = r"""
exec 2>&1
DAEMON >/dev/null 2>/var/lib/sandbox-executor/log &
until grep -q '"listening"' /var/lib/sandbox-executor/log; do
    kill -0 $! || { cat /var/lib/sandbox-executor/log; exit 1; }
    sleep 0.1
done
"""


def test_it_runs_code_without_privilege_and_on_a_read_only_root(bundle):
    said = start(bundle, SERVED + r"""
echo 'print(6 * 7)' | sbx run -l python -
echo 'console.log(6 * 7)' | sbx run -l javascript -
grep -c . /var/lib/sandbox-executor/secret
id -un
grep CapEff /proc/self/status
kill %1
wait %1 || echo "ended with $?"
""")
    assert said.splitlines() == ["42", "42", "1", "_sandbox-executor", "CapEff:\t0000000000000000", "ended with 143"]


def test_its_walls_hold(bundle):
    report = json.loads(start(bundle, "/usr/lib/sandbox-executor/sandbox-selftest --isolation-level=basic -- --json --jail=native 2>/dev/null || true"))
    rows = [r for round_ in report["rounds"] for r in round_["rows"]]
    assert report["attacks"] >= 120 and not [r for r in rows if r["verdict"] in ("BREACHED", "BROKEN")]


def test_it_has_the_languages(bundle):
    said = start(bundle, "/usr/lib/sandbox-executor/sandbox-executor --check-host --isolation-level=basic 2>/dev/null")
    templates = said.partition("beforehand:")[2].partition("Languages:")[0]
    assert [line.split()[1] for line in templates.splitlines() if line.split()] == ["yes"] * len(templates.strip().splitlines())
