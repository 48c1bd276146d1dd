/* SPDX-License-Identifier: MIT */
/*
 * Globs as users of permissions and mounts write them. Pure.
 *
 *   *  within a segment, hidden names included    ?  one character
 *   **  as a whole segment: any number of segments, none included, but not at the very end
 *   [abc] [a-z] [!x] [^x] [[:alpha:]]    {a,b} {1..12} {a..e}    \x
 *   ?(a|b) *(a|b) +(a|b) @(a|b) !(a|b)    a leading ! turns the answer around, # never matches
 *
 * "." and ".." are matched by no wildcard. The work is bounded: a pattern that needs too many steps
 * matches nothing.
 */
#pragma once

#include <stdbool.h>

enum {
    GLOB_PATTERN_MAX = 4096,
    GLOB_EXPANSIONS_MAX = 1024,
    GLOB_STEPS_MAX = 200000,
    GLOB_DEPTH_MAX = 1000,
};

bool glob_match(const char *pattern, const char *path);
