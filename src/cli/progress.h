/* SPDX-License-Identifier: MIT */
/* How far a transfer is, in one line on a terminal; nothing anywhere else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *name; /* borrowed */
    int64_t total;    /* -1: nobody knows */
    int64_t done;
    uint64_t begun_us, shown_us;
    bool shows;
};
void progress_begin(struct progress *p, const char *name, int64_t total, bool wanted);
void progress_add(struct progress *p, int64_t n);
/* The last look, which stays. */
void progress_end(struct progress *p);
