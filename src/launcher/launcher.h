/* SPDX-License-Identifier: MIT */
/* The launcher proper: pid 1 of the namespace in which all sandboxes live. Started by the guard. */
#pragma once

#include "launcher/kept.h"
#include "launcher/measure.h"
#include "launcher/slots.h"
#include "launcher/users.h"

enum { PENDING_MAX = 4096 };

/* A request waiting for a slot. */
struct pending {
    struct pending *next;
    bool doomed; /* killed before it was made */
    struct launch_msg msg;
    int fds[LAUNCH_FDS_MAX]; /* owned: launch_fds() of them */
};

/* The oldest first. */
struct queue {
    struct pending *first, *last;
    size_t n;
};

struct launcher {
    int daemon;        /* owned */
    int children;      /* owned: readable when one of ours has died */
    int programs;      /* owned: directory of ours on the host; -1 once the template is built */
    struct kept kept;  /* workspaces */
    struct kept shelf; /* dependencies: only ever read */
    struct measures measures;
    struct users users; /* of sandboxes, as root */
    struct slots slots;
    uint64_t tidy_at;      /* microseconds: no sooner is what can wait looked at */
    unsigned orphan_looks; /* left, for a sandbox whose keeper died while it was making it */

    struct queue waiting[TEMPLATE_COUNT];
    struct pending pending[PENDING_MAX];
    size_t pending_n;       /* of them were ever used */
    struct pending *unused; /* and are not now */
};
