/* SPDX-License-Identifier: MIT */
/*
 * macOS's own sandbox: a profile in its language, and the arguments of `sandbox-exec` that runs a
 * program under it. Texts only, of no system in particular; plain.c executes them.
 *
 * The profile denies by default. Allowed are: to fork and to execute what lies in the system's
 * directories or in the room; to read those, the few files programs cannot start without, and the
 * room; to write the room and the usual devices; what every process needs of the kernel; and a
 * network only where it was asked for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

#define SEATBELT_PATH "/usr/bin/sandbox-exec"

enum { SEATBELT_PROFILE_MAX = 16 * 1024, SEATBELT_ARGS = 3 };

struct seatbelt {
    const char *room;      /* the only place that can be written */
    const char *workspace; /* another one, beside it; NULL: it is in the room */
    bool network;
};

/* Appends the profile. -1: a path cannot be written in it (a control character), or is not
 * absolute. */
must_check int seatbelt_profile(const struct seatbelt *s, struct buf *out, struct err *e);

/* argv of sandbox-exec around argv, in new memory; the strings are borrowed. NULL: no memory. */
const char **seatbelt_argv(const char *profile, char *const *argv);
