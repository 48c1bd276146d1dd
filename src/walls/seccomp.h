/* SPDX-License-Identifier: MIT */
/*
 * The system call filter, compiled once and installed many times.
 *
 * Two programs: `base` goes into each slot's keeper and is inherited; `last` is
 * small and goes into every sandbox as the final step before it reads its first
 * command. The kernel runs both, the stricter answer wins. Splitting saves
 * about 20 us per sandbox, because installing costs in proportion to depth.
 */
#pragma once

#include <linux/filter.h>

#include "base/cleanup.h"
#include "base/err.h"

struct filters {
    struct sock_fprog base, last; /* owned */
};

must_check int filters_build(struct filters *ret, struct err *e);
void filters_done(struct filters *f);

/* 0 or -errno; needs no_new_privs or CAP_SYS_ADMIN. Safe between clone and exec. */
must_check int filter_install(const struct sock_fprog *p);

/* ENOSYS for every call this release does not know; once per keeper. */
must_check int filter_install_ceiling(void);
