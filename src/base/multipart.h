/* SPDX-License-Identifier: MIT */
/*
 * Decoder of multipart/form-data (RFC 7578), fed piece by piece: nothing of a part's content is
 * kept here.
 *
 *   PREAMBLE ──delimiter──▶ DELIMITED ──CRLF──▶ HEAD ──empty line──▶ CONTENT ─┐
 *                              ▲   └──"--"──▶ EPILOGUE                         │
 *                              └───────────────────delimiter──────────────────┘
 *
 * A delimiter is CRLF "--" boundary. No boundary has a CR in it, so after a mismatch only the byte
 * at hand can begin a delimiter, and a count of matched bytes is all the memory that a search
 * needs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
    MULTIPART_BOUNDARY_MAX = 70,     /* RFC 2046 */
    MULTIPART_HEAD_MAX = 16 * 1024,  /* bytes of one part's header */
    MULTIPART_NAME_MAX = 256,        /* of a field */
    MULTIPART_FILENAME_MAX = 8192,   /* a whole path */
    MULTIPART_PARTS_MAX = 10 * 1000, /* of one body */
};

struct multipart_part {
    char name[MULTIPART_NAME_MAX + 1];
    char filename[MULTIPART_FILENAME_MAX + 1]; /* as it came: nothing is decoded */
    bool has_filename;
};

/* All return 0, or -1 with the error filled: then nothing more is decoded. end() may set `held`. */
struct multipart_events {
    int (*begin)(void *user, const struct multipart_part *part, struct err *e);
    int (*content)(void *user, const char *p, size_t n, struct err *e);
    int (*end)(void *user, struct err *e);
    void *user;
};

enum multipart_state {
    MULTIPART_PREAMBLE,
    MULTIPART_DELIMITED,
    MULTIPART_HEAD,
    MULTIPART_CONTENT,
    MULTIPART_EPILOGUE,
    MULTIPART_BROKEN,
};

struct multipart {
    enum multipart_state state;
    char delimiter[MULTIPART_BOUNDARY_MAX + 5];
    size_t delimiter_n, matched;
    size_t parts;
    char head[MULTIPART_HEAD_MAX]; /* lines of a part's header; behind a delimiter: what follows it
                                    */
    size_t head_n;
    struct multipart_part part;
    struct multipart_events events;
    bool held; /* nothing more is decoded for now: the user clears it and feeds the rest */
};

/* ERR_CALLER: the content type is no multipart/form-data with a boundary. */
must_check int multipart_begin(struct multipart *m, const char *content_type,
                               const struct multipart_events *events, struct err *e);
/* *ret_used: so many bytes were decoded; fewer than n only when it is held. */
must_check int multipart_feed(struct multipart *m, const char *p, size_t n, size_t *ret_used,
                              struct err *e);
/* The body is over. ERR_CALLER: it broke off before its last delimiter. */
must_check int multipart_end(struct multipart *m, struct err *e);
