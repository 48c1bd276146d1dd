# SPDX-License-Identifier: MIT
"""The Debian package: built, installed in a system of its own, started as its unit says, upgraded, removed, purged.

The system is a Debian made by mmdebstrap below build-check/package, kept for the next time; each test has a copy of
it in a tmpfs, in namespaces of its own. Nothing of the host's is changed."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from packages import HERE, run

UNIT = "/lib/systemd/system/sandbox-executor.service"

@pytest.fixture(scope="module")
def newer(deb):
    """The same with another version."""
    tree, out = HERE / "newer", HERE / "newer.deb"
    shutil.rmtree(tree, ignore_errors=True)
    run("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: .*", "Version: 999.0", control.read_text()))
    run("dpkg-deb", "--root-owner-group", "-b", tree, out)
    return out


@pytest.fixture(scope="module")
def base(deb):
    """A small Debian with everything that the package depends on."""
    depends = re.search(r"(?m)^ Depends: (.*)", run("dpkg-deb", "-I", deb))[1]
    names = sorted({re.match(r"[a-z0-9.+-]+", part.strip())[0] for part in depends.split(",")})
    tar, said = HERE / "base.tar", HERE / "base.depends"
    if not tar.exists() or said.read_text() != " ".join(names):
        run("mmdebstrap", "--variant=minbase", "--include=" + ",".join([*names, "procps", "init-system-helpers"]),
            "bookworm", tar)
        said.write_text(" ".join(names))
    return tar


SCRIPT = r"""
set -eu
root=$1 tar=$2 packages=$3
mount -t tmpfs -o size=2g,mode=0755 root "$root"
tar -xf "$tar" -C "$root" --exclude=./dev/*
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=0755 dev "$root/dev"
for name in null zero full random urandom tty; do
    : >"$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/packages" "$root/dev/shm"
mount --bind "$packages" "$root/packages"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
ip link set lo up
mkdir "$root/before"
cd "$root" # not chroot: who is in one makes no user namespaces
pivot_root . before
exec /bin/bash -eu -c "cd /; umount -l /before; rmdir /before; $4"
"""

START = r"""
export HOME=/root
start() { # as the unit says; waits for what it tells its manager
    command=$(sed -n 's/^ExecStart=//p' UNIT)
    mkdir -p -m 0711 /var/lib/sandbox-executor
    rm -f /run/notify
    python3 - $command <<'PY' &
import os, signal, socket, subprocess, sys
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.bind("/run/notify")
os.chmod("/run/notify", 0o777)
with open("/run/log", "ab") as log:
    daemon = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "NOTIFY_SOCKET": "/run/notify"})
signal.signal(signal.SIGTERM, lambda *_: daemon.terminate())
sock.settimeout(120)
assert sock.recv(100) == b"READY=1\n"
open("/run/ready", "w").close()
sys.exit(daemon.wait())
PY
    manager=$!
    until [ -e /run/ready ]; do
        kill -0 "$manager" 2>/dev/null || { cat /run/log; exit 1; }
        sleep 0.1
    done
    rm /run/ready
}
stop() {
    kill -TERM "$manager"
    wait "$manager" || [ $? = 143 ]
}
install() { dpkg -i "/packages/$1" >/run/dpkg 2>&1 || { cat /run/dpkg; exit 1; }; }
""".replace("UNIT", UNIT)


@pytest.fixture
def system(base, deb, newer, tmp_path):
    """Runs a script in a new system; the packages are in /packages."""
    packages = tmp_path / "packages"
    packages.mkdir()
    shutil.copy(deb, packages / "old.deb")
    shutil.copy(newer, packages / "new.deb")
    root = tmp_path / "root"
    root.mkdir()

    def script(text):
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts", "bash", "-c", SCRIPT, "bash",
                   root, base, packages, START + text, env=env)

    return script


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes a system of its own as root")


def test_it_is_installed_started_upgraded_removed_and_purged(system):
    said = system(r"""
install old.deb
getent passwd _sandbox-executor >/dev/null
test "$(readlink -f /usr/bin/sbx)" = /usr/lib/sandbox-executor/sbx
sandbox-executor --config=/etc/sandbox-executor/config.json --check-config
start
echo "print(6 * 7)" | sbx run -l python -
test "$(ps -o user:32= -C sandbox-executor | sort -u)" = _sandbox-executor
cp /var/lib/sandbox-executor/secret /run/secret
stop
echo '{"port": 8099, "state_dir": "/var/lib/sandbox-executor", "run_as": "_sandbox-executor"}' >/etc/sandbox-executor/config.json
install new.deb
cmp /run/secret /var/lib/sandbox-executor/secret
start
EXECUTOR_PORT=8099 sbx run -l shell - <<<'echo upgraded'
stop
dpkg -r sandbox-executor >/dev/null 2>&1
test ! -e /usr/bin/sbx && cmp /run/secret /var/lib/sandbox-executor/secret
dpkg -P sandbox-executor >/dev/null 2>&1
test ! -e /var/lib/sandbox-executor && test ! -e /etc/sandbox-executor && ! getent passwd _sandbox-executor
test -z "$(ps -C sandbox-executor,sandbox-launcher,sandbox-guard -o pid=)"
echo through
""")
    assert said.splitlines() == ["configuration is valid", "42", "upgraded", "through"]


def test_its_walls_hold(system):
    """Nothing of the host's or of the build tree is needed for what it promises."""
    said = system(r"""
install old.deb
sbx selftest --json --jail=native
""")
    report = json.loads(said)
    rows = [r for round_ in report["rounds"] for r in round_["rows"]]
    assert not [r for r in rows if r["verdict"] in ("BREACHED", "BROKEN")]
    assert report["good"] and report["attacks"] >= 120 and report["works"] >= 20


def test_its_files_are_where_debian_wants_them(deb):
    names = run("dpkg-deb", "-c", deb)
    paths = [line.split()[5] for line in names.splitlines()]
    outside = [p for p in paths if not re.match(r"\./($|usr/|lib/|etc/)", p)]
    assert not outside and "./usr/local/" not in paths
    assert not [line for line in names.splitlines() if line[3] == "s"], "no program runs as somebody else"
    conffiles = run("dpkg-deb", "-I", deb, "conffiles").split()
    assert conffiles == ["/etc/apparmor.d/sandbox-launcher", "/etc/sandbox-executor/config.json"]


def test_the_unit_names_what_the_package_brings(deb, tmp_path):
    run("dpkg-deb", "-x", deb, tmp_path)
    text = (tmp_path / UNIT[1:]).read_text()
    program, *arguments = shlex.split(re.search(r"(?m)^ExecStart=(.*)", text)[1])
    assert os.access(tmp_path / program[1:], os.X_OK)
    for argument in arguments:
        assert (tmp_path / argument.partition("=")[2][1:]).is_file()
