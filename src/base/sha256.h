/* SPDX-License-Identifier: MIT */
/* SHA-256, incremental: a thin face over libcrypto. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES + 1 };

struct sha256; /* one running digest */

must_check struct sha256 *sha256_new(void); /* NULL: out of memory */
void sha256_free(struct sha256 *h);         /* NULL is fine */
DEFINE_FREEP(struct sha256, sha256_free)

void sha256_add(struct sha256 *h, const void *p, size_t n);
/* `to` goes on from where `from` is. */
void sha256_set(struct sha256 *to, const struct sha256 *from);
/* Ends the digest; only sha256_free() or sha256_set() may follow. */
void sha256_end(struct sha256 *h, unsigned char out[SHA256_BYTES]);
void sha256_end_hex(struct sha256 *h, char out[SHA256_HEX]); /* lower case, with a NUL */

/* All at once. */
void sha256_hex(const void *p, size_t n, char out[SHA256_HEX]);

/* HMAC-SHA256 of pieces in a row. -1: out of memory. */
struct sha256_piece {
    const void *p;
    size_t n;
};
must_check int sha256_mac(const void *key, size_t key_n, const struct sha256_piece *pieces,
                          size_t n, unsigned char out[SHA256_BYTES]);
