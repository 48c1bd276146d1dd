/* SPDX-License-Identifier: MIT */
/*
 * Names under which sandboxes are asked for: `base` and `code-interpreter-v1`, and those of
 * SANDBOX_TEMPLATES. All have what the host has installed; one of the operator's may have a set of
 * packages, too.
 */
#pragma once

#include <stdbool.h>

#include "app/sandbox/sandboxes.h"

/* Is there a template of that name? *ret_set: the name of its set of packages, "" if it has none.
 */
bool template_find(const struct app *a, const char *name, char ret_set[PERSISTENT_NAME_MAX + 1]);
