/* SPDX-License-Identifier: MIT */
/* Asking the daemon as most commands do it: what goes wrong is said on standard error. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/jw.h"
#include "cli/cmds.h"
#include "cli/http.h"

enum { TALK_PATH_MAX = 16 << 10, TALK_BODY_MAX = 512 << 20 };

struct talk {
    const struct args *args; /* borrowed */
    struct daemon_at at;
    struct http *http;   /* owned */
    const char *sandbox; /* the one that the command is about */
    bool json;
};
/* -1 after saying why. */
must_check int talk_open(const struct args *a, struct talk *ret);
void talk_close(struct talk *t);

/* Appends "/" and each part, percent-encoded; a part that is NULL is the end of them. */
#define path_add(path, ...) path_add_parts(path, (const char *const[]){__VA_ARGS__, NULL})
void path_add_parts(struct buf *path, const char *const parts[]);
/* The same of a path of a file, whose slashes stay. */
void path_add_file(struct buf *path, const char *file);
/* Appends a "name=value" of a query, with what stands in front of it. */
void path_query(struct buf *path, const char *name, const char *value);
/* "/v1/sandboxes/SANDBOX" of the command. */
void path_sandbox(const struct talk *t, struct buf *path);

/* body may be NULL. -1 after saying why, also when the status is not 2xx. */
must_check int talk_ask(struct talk *t, const char *method, const char *path,
                        const struct buf *body, struct http_answer *ret);
/* The same; a value that lies in the answer. */
must_check int talk_json(struct talk *t, const char *method, const char *path,
                         const struct buf *body, struct http_answer *ret, struct json_value *v);
/* An answer, as it came, on a line of its own. */
void talk_print(struct json_value v);
/* "sbx: ..." */
void talk_say(const struct err *e);

/* ---- what answers hold ---- */

/* The text of a member, or its JSON if it is no text; NULL: absent, null or no memory. */
char *member_text(struct json_value object, const char *name);
/* 0 if there is none. */
int64_t member_int(struct json_value object, const char *name);
double member_double(struct json_value object, const char *name);
bool member_is(struct json_value object, const char *name, const char *text);
/* JSON is what it says, anything else is a text. */
void put_value(struct jw *w, const char *text);
/* Appends a member "name": {"K": "V", ...} from options NAME=VALUE. -1 after saying why. */
must_check int put_pairs(struct jw *w, const struct args *a, const char *option, const char *name);
