/* SPDX-License-Identifier: MIT */
/*
 * Base64 (RFC 4648, section 4). Decoding is strict: padding required, no white space, no other
 * alphabet, unused bits zero; so every byte string has exactly one spelling.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* Characters for n bytes, without a NUL. */
#define BASE64_LENGTH(n) (((n) + 2) / 3 * 4)

/* Appends; -1 when the buffer is full. */
must_check int base64_encode(const void *p, size_t n, struct buf *out);

/* Appends; -1 when the text is malformed (out is unchanged) or the buffer is full (out->failed). */
must_check int base64_decode(const char *text, size_t n, struct buf *out);
