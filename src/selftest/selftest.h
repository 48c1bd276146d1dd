/* SPDX-License-Identifier: MIT */
/*
 * sandbox-selftest: attacks against this host's own configuration, for every jail that
 * can be opened here, and ordinary work under the same walls.
 */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "core/config.h"
#include "core/port_lang.h"

struct event_base;

struct selftest {
    const struct config *config;  /* borrowed; config->command has our own options, after "--" */
    const struct log *log;        /* borrowed */
    const struct lang_ops *langs; /* borrowed */
    struct event_base *base;      /* borrowed */
};

/* Returns an exit status: 0 when everything holds, 1 when something does not, 2 when called
 * wrongly, 77 when this host cannot do what was asked for. */
int selftest_main(const struct selftest *t);
/* How it is called; 0 on standard output, else 2. */
int selftest_usage(FILE *out);
