/* SPDX-License-Identifier: MIT */
/* Where a plan can run: the default jail, or the one a request names. */
#pragma once

#include "base/cleanup.h"
#include "base/err.h"

struct app;
struct jail;
struct run_engine;

struct place {
    struct jail *jail; /* borrowed, as is its engine */
    struct run_engine *engine;
};

/* The jail of that name; "" means the default. ERR_CALLER: it may not or cannot be used, and the
 * words say why. Never another one instead. */
must_check int place_find(const struct app *a, const char *name, struct place *ret, struct err *e);
