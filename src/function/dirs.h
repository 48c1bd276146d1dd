/* SPDX-License-Identifier: MIT */
/* Which directories at the top a call needs beside /workspace and /tmp. Pure. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "function/mount.h"
#include "function/request.h"

enum { CALL_DIRS_MAX = 255 };

/* Adds the first component of an absolute path, unless it is there already or always is. */
must_check int call_dirs_add(struct buf *dirs, const char *path, struct err *e);
/* Those of everything that must be writable: the working directory, files and mounts. */
must_check int call_dirs_find(struct buf *dirs, const struct call_request *r, const struct mount *m,
                              struct err *e);
