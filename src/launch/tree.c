/* SPDX-License-Identifier: MIT */
#include "launch/tree.h"

static void count_one(void *user, pid_t pid)
{
    size_t *n = user;

    (void)pid;
    (*n)++;
}

size_t tree_count(pid_t top)
{
    size_t n = 0;

    tree_each(top, count_one, &n);
    return n;
}
