/* SPDX-License-Identifier: MIT */
/* Who was reached through a door, and who was refused: rows that the daemon is told of. */
#pragma once

#include "wire/egress_words.h"

struct account {
    int daemon; /* borrowed: the channel */
    struct egress_row row[EGRESS_ROWS_MAX];
    bool changed[EGRESS_ROWS_MAX];
    size_t n;
    uint32_t left_out, live;
    uint64_t bytes;
};

/* One more connection with that verdict: its row, or NULL when there are too many. A row that is
 * new is told at once. */
struct egress_row *account_add(struct account *a, const char *host, uint16_t port,
                               enum egress_verdict v);
/* Bytes that have passed. */
void account_bytes(struct account *a, struct egress_row *row, uint64_t up, uint64_t down);
/* All rows that have changed, and then that these are all. */
void account_tell(struct account *a);
