/* SPDX-License-Identifier: MIT */
/*
 * What the handlers of the sandbox family share. Their wire is older than this
 * program and kept to the byte: lenient JSON in, plain texts for errors, one
 * compact object and a newline out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/sandboxes.h"
#include "app/shell.h"
#include "base/buf.h"
#include "base/jw.h"
#include "core/exec_spec.h"
#include "http/call.h"

/* Everything a body of this family may say. Strings are decoded, with a NUL behind them; p == NULL:
 * not said. Owned by the body. */
struct koyeb_body {
    struct bytes cmd, cwd, path, port, id, input;
    struct buf content;
    bool has_content;
    struct exec_var *env; /* owned */
    size_t env_n;
    double timeout_s; /* 0: not said */
    struct buf text;  /* what the strings point into */
};

/* Which of the fields an endpoint knows: others are ignored, whatever they are. */
enum koyeb_shape { KOYEB_COMMAND, KOYEB_PATH, KOYEB_FILE, KOYEB_PORT, KOYEB_ID };

/* False: the answer is 400 "Invalid request". The body is to be done with in both cases. */
bool koyeb_parse(enum koyeb_shape shape, const char *text, size_t n, struct koyeb_body *ret);
void koyeb_body_done(struct koyeb_body *b);
/* The same for a call, with that answer. */
bool koyeb_body(struct http_call *c, enum koyeb_shape shape, struct koyeb_body *ret);

/* The sandbox a call is about: named in its path, or the default one. NULL: answered. */
struct persistent *koyeb_sandbox(struct http_call *c);

/* A writer that escapes as this family does; `ascii` for events. */
struct jw koyeb_writer(struct buf *out, bool ascii);
/* Sends the object with its newline. */
void koyeb_reply(struct http_call *c, int status, struct buf *body);
/* {"success":true}, or {"error":…,"success":false} */
void koyeb_reply_success(struct http_call *c, const char *error, size_t error_n);

/* "no such file or directory": the words of the C library, without their capital. */
void koyeb_sys_words(int sys, char out[128]);

struct shell_order koyeb_order(const struct koyeb_body *b);
void koyeb_reply_fault(struct http_call *c, enum command_fault why, const struct koyeb_body *b);
