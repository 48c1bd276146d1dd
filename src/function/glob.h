/* SPDX-License-Identifier: MIT */
/*
 * Globs as users of permissions and mounts write them. Pure.
 *
 *   *  within a segment, hidden names included    ?  one character
 *   **  as a whole segment: any number of segments, none included, but not at the very end
 *   [abc] [a-z] [!x] [^x] [[:alpha:]]    {a,b} {1..12} {a..e}    \x
 *   ?(a|b) *(a|b) +(a|b) @(a|b) !(a|b)    a leading ! turns the answer around, # never matches
 *
 * "." and ".." are matched by no wildcard.
 *
 * A pattern is compiled once: braces are expanded, and each result becomes a list of items per
 * segment. Matching keeps the set of all positions that the items so far can have reached, so it
 * never goes back: the cost is items times length of the path. Only a repeated group inside a
 * repeated group, and !(...), multiply by the length once more. Every step is paid from a budget
 * that the caller gives and shares between calls; once it is used up every answer is "unknown".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
    GLOB_PATTERN_MAX = 4096,    /* bytes of a pattern, and of each of its expansions */
    GLOB_EXPANSIONS_MAX = 1024, /* that the braces of one pattern may make */
    GLOB_DEPTH_MAX = 16,        /* groups in groups */
    GLOB_COMPILE_MAX = 1 << 20, /* bytes looked at to compile all patterns of one request */
    GLOB_PATH_MAX = 4096,
    GLOB_STEPS_MAX = 100000000, /* to judge all files of one request */
};

enum glob_answer { GLOB_NO, GLOB_YES, GLOB_UNKNOWN };

struct glob;

/* *room: how much may still be looked at, shared between the patterns of a request. ERR_CALLER: the
 * pattern is too large. */
must_check int glob_compile(const char *pattern, size_t *room, struct glob **ret, struct err *e);
void glob_free(struct glob *g); /* NULL is fine */

/* A path cut into its segments, once for all patterns. Not small. */
struct glob_path {
    const char *text; /* borrowed */
    size_t n;         /* segments; 0: the path is too long */
    bool ascii;
    struct {
        uint16_t at, n;
    } part[GLOB_PATH_MAX / 2 + 2];
};

void glob_path_set(struct glob_path *p, const char *path);

/* Does the pattern match the path behind its first `skip` segments? */
enum glob_answer glob_match(const struct glob *g, const struct glob_path *p, size_t skip,
                            uint64_t *steps);
