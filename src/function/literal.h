/* SPDX-License-Identifier: MIT */
/*
 * JSON values as literals of a language, for arguments that become part of the program. Pure.
 *
 * Whatever a string contains, the literal is that string and nothing more: quotes, backslashes,
 * control characters and everything a language would expand are escaped.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "core/languages.h"

enum {
    LITERAL_DEPTH_MAX = 64,   /* parsers of programs give up long before those of JSON */
    LITERAL_DIGITS_MAX = 300, /* so do they with numbers */
};

/* Appends the literal. -1: this value is better handed over as JSON (too deep, too long), or the
 * buffer is full (out->failed). */
must_check int literal_put(enum call_lang_id lang, struct json_value v, struct buf *out);
