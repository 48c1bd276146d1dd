# SPDX-License-Identifier: MIT
"""What /health takes beside sixteen bombs of all kinds, against what it takes without them."""
import bombing

P99_MAX_MS, TURN_MAX_MS = 50, 50


def measure(options, _tools):
    got = bombing.measure(10 if options.quick else 60, quiet_seconds=3 if options.quick else 10)
    return {"thrown": len(got["counts"]), "kinds": len(bombing.BOMBS), "unanswered": sum(s != 200 for _, s in got["counts"]),
            "programs": got["done"], "wrong": len(got["wrong"]), "longest_turn_ms": got["longest_turn_ms"],
            "quiet_ms": [bombing.percentile(got["quiet"], share) for share in (.5, .99)],
            "beside_ms": [bombing.percentile(got["took"], share) for share in (.5, .99)]}


def show(found, verdict):
    (quiet, quiet_99), (beside, beside_99) = found["quiet_ms"], found["beside_ms"]
    print(f"## Beside {found['kinds']} bombs of all kinds\n\n| `/health` | median | 99 of 100 |\n|---|---|---|")
    print(f"| without | {quiet:.2f} ms | {quiet_99:.2f} ms |")
    print(f"| beside them | {beside:.2f} ms | {beside_99:.2f} ms |")
    print(f"| ratio | {beside / quiet:.1f} | {beside_99 / quiet_99:.1f} |\n")
    print(f"{found['thrown']} bombs were thrown; the longest turn of the event loop took {found['longest_turn_ms']:.1f} ms of its "
          f"processor.\n")
    print(f"Bars: 99 of 100 in {P99_MAX_MS} ms: {verdict(beside_99 <= P99_MAX_MS)}; the longest turn {TURN_MAX_MS} ms: "
          f"{verdict(found['longest_turn_ms'] <= TURN_MAX_MS)}; every bomb answered, every one of {found['programs']} programs of another "
          f"tenant right: {verdict(found['unanswered'] == found['wrong'] == 0)}.\n")
