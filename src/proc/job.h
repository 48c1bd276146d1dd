/* SPDX-License-Identifier: MIT */
/* A plan as bytes: the head of the job stream (wire/wire.h). */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"
#include "core/port_jail.h"

/* Where it goes. */
struct job_for {
    unsigned traits; /* of the jail */
    bool warmed;     /* what runs there already needs no carried argument */
    bool leaves;     /* its own word that it has ended is enough */
    bool calm;       /* nobody else is there */
};

/* Appends head, strings and file table; contents and frames follow from where they are. What the
 * jail already limits for the sandbox as a whole (enum jail_trait) need not be met first as a limit
 * of one user, which nobody would tell us of. */
must_check int job_encode(const struct plan *p, const struct job_for *f, struct buf *out,
                          struct err *e);
