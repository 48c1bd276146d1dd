/* SPDX-License-Identifier: MIT */
/* The stage of tests about descriptors: every one starts with a pair and must leave nothing open.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"

struct pair_stage {
    int pair[2];
    int open_before;
};

/* Open descriptors of this process: a leak shows as a difference. */
static inline int count_open(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A stage of that size, which begins with a struct pair_stage; the pair is the test's to make.
 * NULL: no memory. */
static inline void *pair_stage_new(size_t size)
{
    struct pair_stage *s = calloc(1, size);

    if (s)
        s->open_before = count_open();
    return s;
}

static inline int pair_stage_teardown(void **state)
{
    struct pair_stage *s = *state;
    int before = s->open_before, after;

    fd_close_all(s->pair, 2);
    free(s);
    after = count_open();
    if (after == before)
        return 0;
    (void)fprintf(stderr, "%d descriptors were open before, %d are now\n", before, after);
    return -1; /* which fails the test */
}
