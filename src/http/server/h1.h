/* SPDX-License-Identifier: MIT */
/*
 * A strict HTTP/1.1 request parser (RFC 9112): pure functions, no allocation,
 * no input or output.
 *
 * Whatever two parsers could read differently is refused rather than guessed:
 * that is what request smuggling is made of. A head is parsed once, when it is
 * complete, and cut up in place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    H1_HEAD_MAX = 16 * 1024,      /* the whole head, final empty line included */
    H1_FIELDS_MAX = 64,           /* header fields */
    H1_METHOD_MAX = 32,           /* bytes of the method */
    H1_TARGET_MAX = 8 * 1024,     /* bytes of the request target; more is 414 */
    H1_LENGTH_DIGITS_MAX = 18,    /* digits of Content-Length; more is 413 */
    H1_CHUNK_DIGITS_MAX = 15,     /* hexadecimal digits of a chunk size */
    H1_CHUNK_JUNK_MAX = 8 * 1024, /* chunk extensions and trailers of one body together */
};

/* Both are NUL-terminated views into the head. */
struct h1_field {
    const char *name, *value;
};

struct h1_head {
    const char *method, *target;
    struct h1_field field[H1_FIELDS_MAX];
    size_t fields_n;
    int64_t length; /* Content-Length; -1: none */
    int minor;      /* HTTP/1.<minor> */
    bool chunked;   /* the body comes in chunks */
    bool keep;      /* the connection may stay open */
    bool expect;    /* the client waits for 100 Continue */
};

/*
 * Where does the head in b[0..n) end? Returns its length, 0 when more is
 * needed, or the negative status to refuse with (-431, -414). *scanned
 * remembers what was looked at before; it starts at 0 for every head.
 */
ssize_t h1_head_end(const char *b, size_t n, size_t *scanned);

/* Cuts up the complete head b[0..n). Returns 0, or the status to refuse with. */
int h1_parse_head(char *b, size_t n, struct h1_head *ret);

/* The head of an answer, of a server that is not ours. */
struct h1_answer {
    int status; /* 100 to 599 */
    const char *reason;
    struct h1_head head; /* fields and framing; no method and no target */
};
/* Cuts up the complete head of an answer, b[0..n). False: it is none. */
bool h1_parse_answer(char *b, size_t n, struct h1_answer *ret);

/* The first field of that name, or NULL. */
const char *h1_field(const struct h1_head *h, const char *name);
bool h1_is_token(const char *s, size_t n);

/* Does a request with this head carry a body? */
static inline bool h1_has_body(const struct h1_head *h)
{
    return h->chunked || h->length > 0;
}

enum h1_chunk_state {
    H1_CHUNK_SIZE,
    H1_CHUNK_EXT,
    H1_CHUNK_SIZE_LF,
    H1_CHUNK_DATA,
    H1_CHUNK_DATA_CR,
    H1_CHUNK_DATA_LF,
    H1_CHUNK_TRAILER,
    H1_CHUNK_TRAILER_LF,
    H1_CHUNK_END_LF,
    H1_CHUNK_DONE,
    H1_CHUNK_STATE_COUNT,
};

struct h1_chunks {
    enum h1_chunk_state state;
    uint64_t left; /* of the current chunk */
    unsigned digits, junk, line;
};

/*
 * Decodes in[0..n). *ret_data and *ret_n are the next run of payload, possibly
 * empty, inside `in`. Returns the bytes consumed, or -1 when malformed. The
 * body is over when c->state is H1_CHUNK_DONE; trailers are read and dropped.
 */
ssize_t h1_chunk(struct h1_chunks *c, const char *in, size_t n, const char **ret_data,
                 size_t *ret_n);
