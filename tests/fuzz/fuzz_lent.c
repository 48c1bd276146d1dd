/* SPDX-License-Identifier: MIT */
/* A list of lent files: every text ends inside of it, and rows that were read are there again when
 * they are written. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/lent_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n ? n : 1); /* exactly: one byte too far is seen */
    struct lent_list l = {copy, copy, copy + n};
    struct lent_entry e;
    size_t read = 0;

    assert(copy);
    if (n > 0)
        memcpy(copy, data, n);
    while (lent_next(&l, &e) > 0) {
        assert(strlen(e.path) == e.row.path_n && strlen(e.host) == e.row.host_n);
        assert(e.path[0] && e.path[0] != '/' && e.row.path_n <= LAZY_TEXT_MAX);
        assert(memcmp(copy + read, &e.row, sizeof e.row) == 0);
        read += sizeof e.row + e.row.path_n + e.row.host_n + 2;
        assert(l.at == copy + read && l.at <= l.end);
    }
    free(copy);
    return 0;
}
