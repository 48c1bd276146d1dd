/* SPDX-License-Identifier: MIT */
/* A number for some bytes: to find or to compare them, no secret. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* h: of what came before, or a seed. A word at a time; zeros behind the end count for nothing. */
static inline uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    for (size_t at = 0; at < n; at += sizeof h) {
        uint64_t word = 0;

        memcpy(&word, p + at, n - at < sizeof word ? n - at : sizeof word);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32; /* or the upper half of a word would never reach the lower */
    }
    return h;
}
