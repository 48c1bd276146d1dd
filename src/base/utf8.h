/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
 *
 * A "bad part" is what one U+FFFD stands for: the longest prefix of the rest that could have begun
 * a character, or else one byte (Unicode 3.9, "maximal subpart"; Python's errors="replace").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Is all of it well formed? The empty string is. */
bool utf8_is_valid(const char *p, size_t n);

/* Length of the well-formed prefix; n when all of it is. */
size_t utf8_valid_prefix(const char *p, size_t n);

/* Length of the character at p (n > 0), or of the bad part; *ret_ok tells which. */
size_t utf8_next(const char *p, size_t n, bool *ret_ok);

/* How many bytes at the end of p[0..n) begin a character that is not complete yet: 0 to 3. For
 * streams that are cut anywhere. */
size_t utf8_incomplete_tail(const char *p, size_t n);

/* The greatest length <= max at which p[0..n) can be cut without splitting a character. */
size_t utf8_truncate(const char *p, size_t n, size_t max);

/* The code point of a well-formed sequence of the given length (1 to 4). */
uint32_t utf8_decode(const char *p, size_t length);
/* Writes 1 to 4 bytes; surrogates and values beyond U+10FFFF become U+FFFD. Returns the count. */
size_t utf8_encode(uint32_t c, char out[4]);
