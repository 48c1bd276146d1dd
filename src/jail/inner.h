/* SPDX-License-Identifier: MIT */
/*
 * A persistent sandbox as a jail. It is made once, in another jail, and lives until it is closed.
 * What take() hands out is a helper process in it (init/helper.h): the same descriptors as those of
 * a sandbox of its own, so that a plan is run in either by the same engine. The differences are
 * declared in struct sandbox (`lives_on`).
 *
 *   idle ──take──▶ taken ──release──▶ lingering ──end of its control socket──▶ freed
 *     ◀──────────DONE───────────┴──────────┘
 *
 * One helper is kept idle ahead of need: waking a process is faster than forking one. A helper
 * lingers while something that its program started lives on; a sandbox with one that is not idle is
 * busy. What a helper sends was written inside the sandbox: it is checked, and believed only as far
 * as it concerns that sandbox.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/port_jail.h"

struct event_base;

struct inner_conf {
    struct event_base *base; /* borrowed */
    struct jail *jail;       /* borrowed: makes the sandbox */
    struct sandbox_spec spec;
    unsigned start_ms; /* a program must have been started by then: a tenant can stop helpers */
    /* Something is to be done in it while it is frozen. False: that is refused; true: it has been
     * thawed. */
    bool (*wake)(void *user);
    void (*dead)(void *user); /* the sandbox is gone; once, from the loop */
    /* What inner_listen() asked for; taken. fd below 0: -errno, something inside has the port */
    void (*listening)(void *user, uint32_t port, int fd);
    void *user;
};

/* Usable at once. If the sandbox cannot be made, dead() tells later. Closed by ops->close(). */
must_check int inner_open(const struct inner_conf *conf, struct jail **ret, struct err *e);
/* All its processes stop, or go on. */
must_check int inner_freeze(struct jail *j, bool frozen, struct err *e);
/* Ask pid 1 for a listener (core/net_ports.h); conf.listening() follows. */
must_check int inner_listen(struct jail *j, uint32_t port, struct err *e);
void inner_kill(struct jail *j); /* everything inside dies; the ends of helpers follow */
bool inner_is_dead(const struct jail *j);
const char *inner_failure(const struct jail *j); /* why it died by itself, or "" */
unsigned inner_writable(const struct jail *j);   /* set of OVERLAY_*, once it is ready */
size_t inner_helpers(const struct jail *j);      /* a helper is not idle */
/* Of all that ever ran in it. False: not known yet, because the launcher has not told of it. */
bool inner_usage(struct jail *j, struct usage *ret);
