/* SPDX-License-Identifier: MIT */
/*
 * JSON out: a writer straight into a buf. Commas are its business, validity is
 * the caller's. Strings from programs are repaired as UTF-8 on the way (one
 * U+FFFD per bad part, as Python's errors="replace" does).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct jw {
    struct buf *out; /* borrowed; look at out->failed once at the end */
    bool comma;      /* a comma is due before the next value */
    bool ascii;      /* escape everything beyond ASCII as \uXXXX (SSE) */
    bool html;       /* escape < > & U+2028 U+2029 and each bad byte as Go does (Koyeb family) */
};

#define JW(buffer) ((struct jw){.out = (buffer)})

void jw_object(struct jw *w);
void jw_object_end(struct jw *w);
void jw_array(struct jw *w);
void jw_array_end(struct jw *w);
void jw_key(struct jw *w, const char *key);
void jw_string(struct jw *w, const char *s);
void jw_bytes(struct jw *w, const char *p, size_t n);
void jw_int(struct jw *w, int64_t v);
void jw_double(struct jw *w, double v, int decimals); /* NaN and infinities become null */
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, const char *p, size_t n); /* already JSON */

/* key and value in one call */
void jw_kv_string(struct jw *w, const char *key, const char *s); /* NULL becomes null */
void jw_kv_bytes(struct jw *w, const char *key, const char *p, size_t n);
void jw_kv_int(struct jw *w, const char *key, int64_t v);
void jw_kv_double(struct jw *w, const char *key, double v, int decimals);
void jw_kv_bool(struct jw *w, const char *key, bool v);
