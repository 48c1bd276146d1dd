/* SPDX-License-Identifier: MIT */
/* A directory of this host as a tar stream, in pieces as they are asked for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"

struct pack_tree;

/* Files, directories and symbolic links below a directory; what else there is is left out. */
must_check int pack_open(const char *directory, struct pack_tree **ret, struct err *e);
void pack_close(struct pack_tree *p); /* NULL is fine */
/* Bytes; 0 at the end, -1: pack_error() says why. */
must_check ssize_t pack_read(struct pack_tree *p, char *out, size_t room);
const struct err *pack_error(const struct pack_tree *p);
