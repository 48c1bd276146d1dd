/* SPDX-License-Identifier: MIT */
/* The table, for people and for machines. */
#pragma once

#include "selftest/attack.h"

struct report {
    bool json, comma;
    unsigned counts[VERDICT_COUNT];
    unsigned attacks, works;
    uint64_t began_us;
    bool rows_begun;
    enum attack_group last;
};

void report_begin(struct report *r, bool json);
/* One jail, or one round. `why`: it cannot be attacked here; NULL: rows follow. */
void report_round(struct report *r, const char *name, unsigned traits, const char *why);
void report_row(struct report *r, const struct attack *a, const struct sight *s,
                enum verdict_kind v);
/* The same for --witness-check: `shown` says how, "": not at all. */
void report_shown(struct report *r, const struct attack *a, const struct sight *s,
                  const char *shown);
void report_round_end(struct report *r);
void report_end(struct report *r, bool good);
