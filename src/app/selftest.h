/* SPDX-License-Identifier: MIT */
/* One small program in each language, in real sandboxes: does this installation work? */
#pragma once

#include "app/app.h"

/* Runs them one after the other on the app's loop and prints a line for each. Needs config, base,
 * jail, engine and langs. Returns how many failed. */
must_check int selftest_run(struct app *a);
