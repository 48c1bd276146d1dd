# SPDX-License-Identifier: MIT
"""Call vectors: request in, result out; each in the mode it names and in all the others."""
import os
import tempfile

import pytest

import harness
import vector_runner as vectors

VECTORS = vectors.load("functions_examples.json")["vectors"]
MODES = ("inline", "stdin", "file")


@pytest.fixture(scope="module")
def mount_daemon(make_daemon_module):
    """A daemon that may mount what is below one directory."""
    root = tempfile.mkdtemp(prefix="sbx-mounts-")
    os.chmod(root, 0o777)
    instance = make_daemon_module(MOUNT_ROOTS=root)
    instance.root = root
    return instance


def call(daemon, body):
    response = daemon.request("POST", "/v1/functions/call", json=body)
    assert response.status == 200, response
    return response.json()


def run(daemon, vector, mode):
    host = None
    if "mount" in vector:
        host = tempfile.mkdtemp(dir=daemon.root)
        os.chmod(host, 0o777)
        vectors.seed_host(vector, host)
    result = call(daemon, vectors.request_of(vector, mode, host))
    problems = vectors.check(result, vector["expect"], host)
    assert not problems, (problems, result)


@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector(mount_daemon, vector):
    run(mount_daemon, vector, None)


def too_large_for(vector, mode):
    return mode == "inline" and "-5m" in vector["id"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector_in_every_mode(mount_daemon, vector, mode):
    if "mount" in vector or vector["language"] == "cobol" or too_large_for(vector, mode):
        pytest.skip("the mode makes no difference, or is not for that much")
    run(mount_daemon, vector, mode)
