/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Are these the same bytes? Takes the same time wherever the difference is; the length of a secret
 * is none. `given` may be NULL: false. */
bool secret_is(const char *given, size_t given_n, const char *secret, size_t secret_n);
/* The same for texts; an empty secret is never given. */
bool secret_text_is(const char *given, const char *secret);
