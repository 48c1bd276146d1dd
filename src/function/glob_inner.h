/* SPDX-License-Identifier: MIT */
/* What glob_compile.c makes of a pattern and glob.c matches. */
#pragma once

#include "base/buf.h"
#include "function/glob.h"

struct span {
    const char *p, *end;
};

enum item_kind {
    ITEM_TEXT,  /* exactly these bytes */
    ITEM_ANY,   /* one character */
    ITEM_STAR,  /* any number of characters */
    ITEM_CLASS, /* one character of "[...]" */
    ITEM_GROUP, /* "x(...)": `inner` is its first alternative */
    ITEM_ALTERNATIVE,
};

enum { ITEM_NONE = -1 };

struct glob_item {
    uint8_t kind;
    char group;    /* what is before the parenthesis: ? * + @ ! */
    uint16_t n;    /* bytes of its text */
    uint32_t text; /* offset into the texts */
    int32_t inner; /* of a group: the first alternative. Of an alternative: its first item */
    int32_t next;  /* of an alternative: the next one of the group */
};

/* One segment of a pattern. */
struct glob_part {
    int32_t first;
    bool deep; /* "**" */
    bool wild; /* begins with something that does not match "." and ".." */
    bool lone; /* "*": does not match an empty segment */
};

struct glob_expansion {
    uint32_t first, n; /* parts */
};

struct glob {
    struct buf texts;
    struct glob_item *item;
    size_t items, items_cap;
    struct glob_part *part;
    size_t parts, parts_cap;
    struct glob_expansion *expansion;
    size_t expansions, expansions_cap;
    bool negate; /* an odd number of leading "!" */
    bool never;  /* a comment */
};

/* p is at '['. Returns what is behind the class, or NULL when it is not closed. */
const char *glob_class(struct span p, uint32_t c, bool *ret_match);
