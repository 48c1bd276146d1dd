/* SPDX-License-Identifier: MIT */
/* What commands are given to read: files, "-", and the language that a name tells. */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"

/* A file, or standard input for "-". -1 after saying why. */
must_check int read_whole(const char *file, struct buf *out);
/* By the ending of its name, of those with all these flags (core/languages.h). NULL: none. */
const char *language_of(const char *file, unsigned flags);
