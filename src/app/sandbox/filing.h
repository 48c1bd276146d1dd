/* SPDX-License-Identifier: MIT */
/* Files of a persistent sandbox, its ports and what it uses (proc/filework.h). */
#pragma once

#include "app/sandbox/sandboxes.h"
#include "proc/filework.h"

enum { FILING_PATH_MAX = 32 * 1024 }; /* longer ones no kernel takes */

must_check int filing_start(struct persistent *p, const struct file_order *o, filework_fn *done,
                            void *user, struct filework **ret, struct err *e);
