/* SPDX-License-Identifier: MIT */
/* The launcher's part of lending host directories: lazy.h tells how it works. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/wire.h"

struct slots;

/* Those behind descriptors of the daemon's. The mounts are the caller's. */
must_check int lend_all(const int *dirs, size_t n, int *ret, struct err *e);
/* HELLO says whether directories can be lent, or why not. */
void lend_tell(const struct slots *all, struct launch_msg *hello);
