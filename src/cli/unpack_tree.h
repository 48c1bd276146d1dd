/* SPDX-License-Identifier: MIT */
/*
 * A tar stream becomes files below a directory of this host. The archive comes from a sandbox, so
 * it may be meant to hurt: nothing of it leads out of the directory. No link is followed, also none
 * that it made itself, modes have no set-id bits, and owners are not taken.
 */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

struct unpack_tree;

/* The directory is made. */
must_check int unpack_open(const char *directory, struct unpack_tree **ret, struct err *e);
void unpack_close(struct unpack_tree *u); /* NULL is fine */
must_check int unpack_feed(struct unpack_tree *u, const char *p, size_t n);
/* Nothing more comes. */
must_check int unpack_finish(struct unpack_tree *u);
const struct err *unpack_error(const struct unpack_tree *u);
