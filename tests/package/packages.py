# SPDX-License-Identifier: MIT
"""What the tests of packages share."""
import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]
HERE = TOP / "build-check" / "package"
SECONDS = 1800


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, **more)
    assert done.returncode == 0, f"{command}: {done.stdout[-4000:]}"
    return done.stdout
