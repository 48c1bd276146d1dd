# SPDX-License-Identifier: MIT
import os
import pathlib
import shutil

import pytest

from packages import HERE, TOP, run


@pytest.fixture(scope="session")
def deb():
    """The package, built anew, or the one that SBX_DEB names."""
    if "SBX_DEB" in os.environ:
        return pathlib.Path(os.environ["SBX_DEB"])
    out = HERE / "deb"
    shutil.rmtree(out, ignore_errors=True)
    run(TOP / "tools" / "build-deb", out)
    [found] = out.glob("sandbox-executor_*.deb")
    return found
