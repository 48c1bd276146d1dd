/* SPDX-License-Identifier: MIT */
/* What api_raw.c and api_archive.c share: one request about /v1/sandboxes/{id}/files/{path}. */
#pragma once

#include <stdbool.h>

#include "app/sandbox/sandboxes.h"
#include "http/server/http_call.h"

struct raw_call {
    struct activity activity;
    struct http_call *call;
    struct filework *filework;
    char *path; /* owned: absolute */
    bool begun; /* the answer is */
};

/* Makes the call and sends the order; NULL: answered. */
struct raw_call *raw_begin(struct http_call *c, struct file_order *o, filework_fn *done);
void raw_free(struct raw_call *r);
/* What is uploaded goes to the file work, no faster than that takes it. */
void raw_take_body(struct raw_call *r);
/* The client is not listened to any more: the answer follows. */
void raw_body_over(struct raw_call *r);
/* Its words, and the status and code that go with it. */
void raw_reply_failure(struct http_call *c, const struct file_result *r);

/* The same for a directory as an archive of that kind. */
void archive_get(struct http_call *c, const char *kind);
void archive_put(struct http_call *c, const char *kind);
