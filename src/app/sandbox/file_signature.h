/* SPDX-License-Identifier: MIT */
/*
 * Signed access to one file of a sandbox: a URL that carries the signature opens that file and
 * nothing else, for whom its maker gave it to. Pure.
 */
#pragma once

#include <stdbool.h>

#include "base/cleanup.h"
#include "core/exec_spec.h"

enum { SIGNATURE_MAX = 48 };

struct signed_access {
    const char *path;    /* exactly as in the URL, decoded */
    const char *verb;    /* "read" or "write" */
    const char *user;    /* "": none named */
    const char *expires; /* Unix seconds in decimal; NULL: never */
};

/* "v1_" and the digest of it with the token of a sandbox. -1: out of memory. */
must_check int signature_make(const struct signed_access *a, const char *token,
                              char out[SIGNATURE_MAX]);
/* Is it that, and has its time not passed? */
bool signature_opens(const char *given, const struct signed_access *a, const char *token);
/* With which of the tokens? n: with none. However long the path is, it is read once. */
size_t signature_which(const char *given, const struct signed_access *a, const char *const *tokens,
                       size_t n);
