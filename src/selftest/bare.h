/* SPDX-License-Identifier: MIT */
/* The carrier without a jail: see bare.c. */
#pragma once

#include "selftest/carry.h"

/* Before the witness is opened. */
void bare_prepare(void);
void carrier_bare(struct carrier *c);
/* Ends every process but ourselves and the victim, and empties the workspace. */
void bare_sweep(const struct witness *w);
