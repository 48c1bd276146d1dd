/* SPDX-License-Identifier: MIT */
/* Where the daemon is and what opens it, as every command finds them out. */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { DAEMON_SECRET_MAX = 4096, DAEMON_URL_MAX = 1024 };

struct daemon_at {
    char url[DAEMON_URL_MAX];       /* without a slash at its end */
    char secret[DAEMON_SECRET_MAX]; /* "": none is known */
    bool said;                      /* somebody named it: it is no default */
};

/* Looks for both: url, or $SANDBOX_URL, or http://127.0.0.1:$EXECUTOR_PORT (8080). The secret is
 * $SANDBOX_SECRET, what is in the file $SANDBOX_SECRET_FILE, or what the daemon keeps in its state
 * directory. url may be NULL. ERR_CALLER: that is no address of a daemon. */
must_check int daemon_at_find(const char *url, struct daemon_at *ret, struct err *e);
