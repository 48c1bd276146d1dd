/* SPDX-License-Identifier: MIT */
#include "egress/account.h"

#include <string.h>

#include "base/fd.h"

static void tell(const struct account *a, enum egress_verb verb, size_t i)
{
    struct egress_word w = {
        .verb = verb, .left_out = a->left_out, .live = a->live, .bytes = a->bytes};

    if (verb == EGRESS_ROW) {
        w.index = (uint32_t)i;
        w.row = a->row[i];
    }
    (void)!fd_send(a->daemon, &w, sizeof w, NULL, 0); /* full: the next time */
}

struct egress_row *account_add(struct account *a, const char *host, uint16_t port,
                               enum egress_verdict v)
{
    size_t i = 0;
    bool fresh;

    while (i < a->n &&
           (a->row[i].port != port || a->row[i].verdict != v || strcmp(a->row[i].host, host) != 0))
        i++;
    if (i == EGRESS_ROWS_MAX) {
        a->left_out++;
        return NULL;
    }
    fresh = i == a->n;
    if (fresh) {
        a->n++;
        a->row[i] = (struct egress_row){.port = port, .verdict = (uint16_t)v};
        (void)memccpy(a->row[i].host, host, '\0', EGRESS_NAME_MAX);
    }
    a->row[i].connections++;
    a->changed[i] = !fresh;
    if (fresh)
        tell(a, EGRESS_ROW, i);
    return &a->row[i];
}

void account_bytes(struct account *a, struct egress_row *row, uint64_t up, uint64_t down)
{
    a->bytes += up + down;
    if (!row || up + down == 0)
        return;
    row->up += up;
    row->down += down;
    a->changed[row - a->row] = true;
}

void account_tell(struct account *a)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->changed[i])
            tell(a, EGRESS_ROW, i);
        a->changed[i] = false;
    }
    tell(a, EGRESS_TOLD, 0);
}
