/* SPDX-License-Identifier: MIT */
/* Errors as E2B's services word them. */
#include "http/api/e2b/replies.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"
#include "http/server/reply.h"

enum {
    WORDS_MAX = 1024,
    JSON_MAX = 8 * 1024,
};

static void reply_words(struct http_call *c, int status, const char *words)
{
    struct buf body = BUF_INIT(JSON_MAX);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_int(&w, "code", status);
    jw_kv_string(&w, "message", words);
    jw_object_end(&w);
    http_reply(c, status, API_JSON, &body);
}

void e2b_reply_status(struct http_call *c, int status, const char *fmt, ...)
{
    char words[WORDS_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    reply_words(c, status, words);
}

static void reply_unreachable(struct http_call *c, const char *id, const char *words, uint16_t port)
{
    struct buf body = BUF_INIT(JSON_MAX);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_string(&w, "sandboxId", id);
    jw_kv_string(&w, "message", words);
    if (port)
        jw_kv_int(&w, "port", port);
    jw_kv_int(&w, "code", 502);
    jw_object_end(&w);
    http_reply(c, 502, API_JSON, &body);
}

void e2b_reply_gone(struct http_call *c, const char *id)
{
    reply_unreachable(c, id, "The sandbox was not found", 0);
}

void e2b_reply_closed_port(struct http_call *c, const char *id, uint16_t port)
{
    reply_unreachable(c, id, "The sandbox is running but port is not open", port);
}

static void reply_text(struct http_call *c, int status, const char *words)
{
    struct buf body = BUF_INIT(WORDS_MAX);

    (void)buf_puts(&body, words);
    http_reply(c, status, "text/plain; charset=utf-8", &body);
}

void e2b_reply_text(struct http_call *c, int status, const char *fmt, ...)
{
    char words[WORDS_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof words, fmt, ap);
    va_end(ap);
    reply_text(c, status, words);
}

/* ---- what the dialects say ---- */

static const char *words_of(int status, const char *words)
{
    return words           ? words
           : status == 401 ? "the API key is missing or wrong: send the header X-API-KEY"
                           : reply_reason(status);
}

void e2b_refuse(struct http_call *c, int status, const char *words)
{
    reply_words(c, status, words_of(status, words));
}

void e2b_error(struct http_call *c, const struct err *e)
{
    reply_words(c, e->kind == ERR_BUSY ? 429 : reply_status_of(e), e->text);
}

void e2b_issues(struct http_call *c, const struct shaping *s)
{
    char words[SHAPE_WORDS_MAX];

    shape_words(s, words);
    reply_words(c, 400, words);
}

void e2b_text_refuse(struct http_call *c, int status, const char *words)
{
    reply_text(c, status, words_of(status, words));
}

void e2b_text_error(struct http_call *c, const struct err *e)
{
    reply_text(c, reply_status_of(e), e->text);
}

void e2b_text_issues(struct http_call *c, const struct shaping *s)
{
    char words[SHAPE_WORDS_MAX];

    shape_words(s, words);
    reply_text(c, 400, words);
}
