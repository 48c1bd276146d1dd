/* SPDX-License-Identifier: MIT */
/*
 * What the handlers of the sandbox family share. At the root and below
 * /koyeb-sandbox its wire is older than this program and kept to the byte: lenient
 * JSON in, plain texts for errors, one compact object and a newline out. Below
 * /v1/sandboxes/{id} the same verbs decode strictly and explain their errors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sandbox/command.h"
#include "app/sandbox/sandboxes.h"
#include "base/buf.h"
#include "base/jw.h"
#include "core/exec_spec.h"
#include "core/shape.h"
#include "http/server/http_call.h"

/* Everything a body of this family may say. Strings are decoded, with a NUL behind them; p == NULL:
 * not said. */
struct koyeb_body {
    struct bytes cmd, cwd, path, port, id, input;
    struct buf content; /* owned; p == NULL: not said */
    struct shape_strings env;
    double timeout_s;       /* 0: not said */
    struct shaping shaping; /* owned: what the rest points into */
};

/* What the endpoints know of it. */
extern const struct shape koyeb_command, koyeb_path, koyeb_file, koyeb_port, koyeb_id;

/* The largest body that carries the content of a file. */
uint64_t koyeb_file_max(const struct app *a);

/* The body of a call, decoded as its dialect does. False: answered. The body is to be done with in
 * both cases. */
bool koyeb_body(struct http_call *c, const struct shape *shape, struct koyeb_body *ret);
/* The same without a call, so that a worker can do it. False: the issues are in the shaping. */
bool koyeb_parse(const struct shape *shape, const char *text, size_t n, bool lenient,
                 struct koyeb_body *ret);
void koyeb_body_done(struct koyeb_body *b);

/* What a dialect says that is kept to the byte (http/server/dialect.h). */
void koyeb_refuse(struct http_call *c, int status, const char *words);
void koyeb_error(struct http_call *c, const struct err *e);
void koyeb_issues(struct http_call *c, const struct shaping *s);
/* 400, 503 and 500 in the words of the call's dialect. */
void koyeb_wrong(struct http_call *c, const char *words);
void koyeb_no_memory(struct http_call *c);
void koyeb_failed(struct http_call *c, const char *words);

/* The sandbox a call is about: named in its path, or the default one. NULL: answered. */
struct persistent *koyeb_sandbox(struct http_call *c);

/* A writer that escapes as this family does; `ascii` for events. */
struct jw koyeb_writer(struct buf *out, bool ascii);
/* {"success":true}, or {"error":…,"success":false} */
void koyeb_reply_success(struct http_call *c, const char *error, size_t error_n);

/* "no such file or directory": the words of the C library, without their capital. */
void koyeb_sys_words(int sys, char out[128]);

struct command_order koyeb_order(const struct koyeb_body *b);
void koyeb_reply_fault(struct http_call *c, enum run_fault at, const struct koyeb_body *b);
