/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "launch/processes.h"
#include "launch/tree.h"
#include "launch/watch.h"

const int watch_ms = 250;

enum { SHARE = 20 }; /* a look takes at most one part in so many of the time */

uint64_t watch_memory_used(pid_t top, uint64_t max)
{
    struct processes all;
    uint64_t sum = 0;

    (void)max;
    if (processes_read(&all) < 0)
        return 0;
    tree_mark(&all, top);
    for (size_t i = 0; i < all.n; i++)
        sum += all.v[i].below ? all.v[i].resident : 0;
    processes_free(&all);
    return sum;
}

bool watch_exceeded(struct watch *w, pid_t top, uint64_t max)
{
    uint64_t now = clock_us(), pause = (uint64_t)watch_ms * 1000, took, used;

    if (w->next_us == 0)
        w->next_us = now + pause; /* what ends before is not looked at */
    if (now < w->next_us)
        return false;
    used = watch_memory_used(top, max);
    took = clock_us() - now;
    w->next_us = now + took + (SHARE * took > pause ? SHARE * took : pause);
    return used > max;
}
