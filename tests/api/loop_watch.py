# SPDX-License-Identifier: MIT
"""How long the turns of a daemon's event loop are, measured by the daemon itself.

sandbox_loop_turn_seconds counts the processor time of every turn. The bar is a multiple of the processor time
that a fixed piece of work takes on this machine, measured in the same run, so a slow or busy machine moves both;
on a fast one it is QUIET.
"""
import json
import time

WORK = 10  # times the fixed work below
QUIET = 0.05  # processor seconds: what docs/testing.md promises of a quiet machine


def fixed_work():
    """Processor seconds of a fixed piece of work, undisturbed at least once."""
    def once():
        begin = time.process_time()
        json.loads(json.dumps(list(range(50000))))
        return time.process_time() - begin
    return min(once() for _ in range(9))


def set_bar(daemon):
    daemon.bar = max(QUIET, WORK * fixed_work()) * (8 if daemon.is_sanitized() else 1)
    return daemon


def turns(daemon):
    """{upper bound in seconds: how many turns took longer}."""
    found, total = {}, 0
    for line in daemon.request("GET", "/metrics", timeout=300).text.splitlines():
        if line.startswith("sandbox_loop_turn_seconds_bucket"):
            bound = line.split('le="')[1].split('"')[0]
            total = int(line.split()[1])
            if bound != "+Inf":
                found[float(bound)] = total
    return {bound: total - count for bound, count in found.items()}


class Watch:
    """No turn of the loop is longer than the bar in here."""

    def __init__(self, daemon):
        self.daemon = daemon

    def __enter__(self):
        self.before = turns(self.daemon)

    def __exit__(self, kind, *_):
        after = turns(self.daemon)
        over = [bound for bound in after if after[bound] > self.before[bound]]
        longest = max(over, default=0)
        print(f"longest turn: more than {longest} s; bar {self.daemon.bar:.3f} s; "
              f"since the start {self.daemon.metric('sandbox_loop_turn_longest_seconds')}")
        if kind is None:
            assert longest < self.daemon.bar, f"a turn of the event loop took more than {longest} s"


def watch(daemon):
    return Watch(daemon)
