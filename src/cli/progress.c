/* SPDX-License-Identifier: MIT */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/table.h"

enum { BAR = 24, SHOW_EVERY_US = 100 * 1000 };

static void show(const struct progress *p)
{
    uint64_t us = clock_us() - p->begun_us;
    char done[SIZE_TEXT_MAX], speed[SIZE_TEXT_MAX];
    int64_t part = p->total > 0 ? p->done * BAR / p->total : 0;

    (void)fputs("\r\033[K", stderr);
    print_safe(p->name, stderr);
    if (p->total > 0) {
        (void)fprintf(stderr, "  [%.*s%*s] %3d%%", (int)part, "########################",
                      (int)(BAR - part), "", (int)(p->done * 100 / p->total));
    }
    (void)fprintf(stderr, "  %s  %s/s", size_text(p->done, done),
                  size_text(us ? (int64_t)((double)p->done * 1e6 / (double)us) : 0, speed));
    (void)fflush(stderr);
}

void progress_begin(struct progress *p, const char *name, int64_t total, bool wanted)
{
    *p = (struct progress){.name = name,
                           .total = total,
                           .begun_us = clock_us(),
                           .shows = wanted && isatty(STDERR_FILENO)};
}

void progress_add(struct progress *p, int64_t n)
{
    uint64_t now;

    p->done += n;
    if (p->total >= 0 && p->done > p->total)
        p->total = p->done;
    if (!p->shows)
        return;
    now = clock_us();
    if (now - p->shown_us < SHOW_EVERY_US)
        return;
    p->shown_us = now;
    show(p);
}

void progress_end(struct progress *p)
{
    if (!p->shows)
        return;
    show(p);
    (void)fputc('\n', stderr);
}
