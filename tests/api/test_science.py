# SPDX-License-Identifier: MIT
"""The template python-datascience where its packages want what a zygote does not have, or end it."""
import os
import subprocess

import pytest

import harness

PACKAGES = "lib/python3/dist-packages"

# As the real one: it wants a directory to write to, remembers it, and has nothing without one.
MATPLOTLIB = '''
import os, tempfile, functools

def _logged_cached(func):
    called, ret = False, None
    @functools.wraps(func)
    def wrapper():
        nonlocal called, ret
        if not called:
            ret, called = func(), True
        return ret
    return wrapper

@_logged_cached
def get_configdir():
    path = os.environ.get("MPLCONFIGDIR") or os.path.expanduser("~/.config/matplotlib")
    try:
        os.makedirs(path, exist_ok=True)
    except OSError:
        pass
    if os.access(path, os.W_OK):
        return path
    path = os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="matplotlib-")
    return path

get_configdir()
'''
HANDLER = "import sys\nhad = 'matplotlib' in sys.modules\ndef handler(event):\n    return had"


@pytest.fixture
def started(make_daemon, tmp_path):
    """A daemon on a host with these files in /usr/lib/python3/dist-packages, in a mount namespace of its own."""
    harness.need(os.geteuid() == 0 and harness.JAIL == "native", "mounts, as root")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)

    def start(files):
        for name, text in files.items():
            path = tmp_path / "usr" / PACKAGES / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        script = tmp_path / "sandbox-executor"
        script.write_text("#!/bin/sh\nexec unshare -m sh -c '"
                          f"mount -t overlay -o lowerdir={tmp_path}/usr:/usr none /usr && exec \"$0\" \"$@\"' "
                          f"{harness.BUILD}/sandbox-executor \"$@\"\n")
        script.chmod(0o755)
        probe = subprocess.run(["unshare", "-m", "mount", "-t", "overlay", "-o",
                                f"lowerdir={tmp_path}/usr:/usr", "none", "/usr"], stderr=subprocess.PIPE)
        harness.need(probe.returncode == 0, "an overlay over /usr")
        return make_daemon(binary=script)

    return start


def run(daemon, code=HANDLER):
    return daemon.execute(code, template="python-datascience", event={})


def templates(daemon):
    return daemon.request("GET", "/v1/capabilities").json()["templates"]


def test_a_package_that_wants_a_directory_is_warmed(started):
    daemon = started({"matplotlib/__init__.py": MATPLOTLIB, "matplotlib/figure.py": ""})
    assert templates(daemon)["python-datascience"] == "cold"
    harness.wait_until(lambda: run(daemon)["isolation"]["template"] == "python-datascience", "a warmed interpreter", 60)
    result = run(daemon)
    assert (result["status"], result["return_value"]) == ("success", True)
    assert templates(daemon)["python-datascience"] == "warm"
    code = ("import os, matplotlib\ndef handler(event):\n    path = matplotlib.get_configdir()\n"
            "    open(path + '/x', 'w').close()\n    return path, 'MPLCONFIGDIR' in os.environ")
    result = run(daemon, code)
    assert result["isolation"]["template"] == "python-datascience"
    assert result["return_value"] == ["/workspace/.config/matplotlib", False], "asked again, inside"


def test_a_package_that_raises_costs_only_itself(started):
    daemon = started({"matplotlib/__init__.py": "raise RuntimeError('no fonts')"})
    harness.wait_until(lambda: run(daemon)["isolation"]["template"] == "python-datascience", "a warmed interpreter", 60)
    assert run(daemon)["return_value"] is False
    assert "matplotlib is not loaded beforehand: RuntimeError: no fonts" in daemon.log_text()


def test_a_template_that_cannot_warm_says_so_once(started):
    daemon = started({"matplotlib/__init__.py": "import os\nos._exit(9)"})
    assert run(daemon)["return_value"] is False
    harness.wait_until(lambda: templates(daemon)["python-datascience"] == "cannot warm", "that it is told", 60)
    record = daemon.wait_record(event_type="template_cannot_warm")
    assert (record["level"], record["template"]) == ("warn", "python-datascience")
    for _ in range(3):
        result = run(daemon)
        assert (result["return_value"], result["isolation"]["template"]) == (False, "exec")
    told = [r for r in daemon.records() if r.get("event_type") == "template_cannot_warm"]
    failed = [r for r in daemon.records() if r.get("event_type") == "sandbox_failed" and r["level"] == "error"]
    assert len(told) == 1 and not failed
    assert templates(daemon)["python"] == "warm"
