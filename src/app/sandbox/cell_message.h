/* SPDX-License-Identifier: MIT */
/* What the interpreter of a context says in a frame: a JSON object that a tenant may have written.
 * Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/json.h"

/* The members of a message (src/lang/cells/cells_python.py), as they came; p == NULL: absent. */
struct cell_message {
    struct json_value id, type, text, status;
    struct json_value data, metadata, main, display_id, update; /* of a display */
    struct json_value wait;                                     /* of a clear */
    struct json_value name, value, traceback;                   /* of an error */
    struct json_value call, tool, arguments; /* of what it asks for (cells_tools.py) */
};

/* -1: it is no JSON object. */
must_check int cell_message_read(const char *p, size_t n, struct cell_message *ret);

/* Does it ask for something, and is it well formed then? */
enum cell_ask {
    CELL_ASKS_NOTHING,
    CELL_ASKS_CALL,
    CELL_ASKS_SEARCH,
    CELL_GIVES_UP,
    CELL_TELLS_PROGRESS, /* the one without a number */
    CELL_ASKS_BROKEN,    /* it has no number to be answered by */
};
enum cell_ask cell_message_ask(const struct cell_message *m, int64_t *ret_number);
