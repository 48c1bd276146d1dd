/* SPDX-License-Identifier: MIT */
/*
 * Programs that were compiled before, by a hash of everything they were made from: the second call
 * of the same code only runs. Files in the state directory, bounded in number and bytes; the least
 * recently used go first.
 *
 * The key covers the source, the dispatcher, what may be included, the compiler and its options. A
 * tenant can therefore only decide what is kept under the key of the very text it sent, and another
 * tenant that sends the same text gets what that text says.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/sha256.h"

enum {
    COMPILE_PROGRAM_MAX = 16 << 20, /* bytes of one program */
    COMPILE_CACHE_FILES = 512,
    COMPILE_CACHE_BYTES = 128 << 20,
};

struct compile_cache; /* one directory */

must_check int compile_cache_open(const char *state_dir, struct compile_cache **ret, struct err *e);
void compile_cache_close(struct compile_cache *c); /* NULL is fine */

/* 0 and the program in out, or -1 when it is not there. */
must_check int compile_cache_get(struct compile_cache *c, const char key[SHA256_HEX],
                                 struct buf *out);
/* What cannot be kept is made again the next time. */
void compile_cache_put(struct compile_cache *c, const char key[SHA256_HEX], const void *p,
                       size_t n);
