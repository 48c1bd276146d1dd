/* SPDX-License-Identifier: MIT */
/* The launcher proper: pid 1 of the namespace in which all sandboxes live. Started by the guard. */
#pragma once

#include "launch/kept.h"
#include "launch/slots.h"

enum { PENDING_MAX = 4096 };

/* A request waiting for a slot. */
struct pending {
    struct launch_msg msg;
    int fds[LAUNCH_FDS_MAX]; /* owned: launch_fds() of them */
};

struct launcher {
    int daemon;        /* owned */
    int children;      /* owned: readable when one of ours has died */
    int programs;      /* owned: directory of ours on the host; -1 once the template is built */
    struct kept kept;  /* workspaces */
    struct kept shelf; /* dependencies: only ever read */
    struct slots slots;
    struct pending pending[PENDING_MAX]; /* a ring */
    size_t pending_at, pending_n;
};
