/* SPDX-License-Identifier: MIT */
/* Which of our programs, in which role, is about to make a system call. */
#pragma once

#include <sys/types.h>

enum role {
    ROLE_DAEMON,
    ROLE_GUARD,
    ROLE_LAUNCHER,
    ROLE_ZYGOTE,
    ROLE_KEEPER,
    ROLE_CONFINE, /* pid 1 of a sandbox while it locks itself */
    ROLE_INIT,    /* afterwards; of a persistent sandbox, too */
    ROLE_HELPER,
    ROLE_PROCESS, /* the first process before it has become its program */
    ROLE_TENANT,  /* everybody else */
    ROLE_COUNT,
};

const char *role_name(enum role r);
enum role role_parse(const char *name); /* ROLE_COUNT: none has that name */

/* As /proc tells now. Somebody who is gone is a tenant. */
enum role role_of(pid_t pid);
