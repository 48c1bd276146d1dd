/* SPDX-License-Identifier: MIT */
/*
 * This terminal, or these streams, become those of a process in a sandbox: keys and standard input
 * go there, its output comes here, and so do the size of the window and the signals that end us.
 */
#pragma once

#include <stdbool.h>

#include "cli/talk.h"

enum { ATTACH_PATH_MAX = 16 << 10 };

struct attach {
    const char *path; /* of the WebSocket */
    bool terminal;    /* the process has one */
    bool input;       /* it reads what we read */
    bool keeps;       /* it goes on when we leave */
};
/* Until the process ends. The exit status: that of the process, or CMD_FAILED after saying why. */
must_check int attach_run(struct talk *t, const struct attach *a);
/* "&columns=…&rows=…" of our terminal; nothing without one. */
void attach_put_size(struct buf *path);
/* The exit status that a process of this description stands for. */
int attach_status(struct json_value process);
