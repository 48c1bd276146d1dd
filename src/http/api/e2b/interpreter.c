/* SPDX-License-Identifier: MIT */
/*
 * The code interpreter: cells and contexts of a sandbox, over the same contexts as /v1/sandboxes
 * (app/sandbox/context.h).
 *
 * A cell is answered by lines, each a JSON object in ASCII: E2B's JavaScript SDK decodes every
 * piece of the network on its own, so a character of several bytes would be broken on a border. The
 * head goes out at once. A client that leaves interrupts its cell, which is how the SDKs end one
 * whose time is up.
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/context.h"
#include "base/clock.h"
#include "base/jw.h"
#include "base/utf8.h"
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"
#include "http/server/reply.h"

enum {
    CONTEXT_JSON_MAX = 4096 + SANDBOXES_PATH_MAX * 6,
    LINE_SLACK = 512,
    ESCAPE_FACTOR = 6,
    KEEPALIVE_S = 5, /* without a line */
    ENV_MAX = 1000,
    LANGUAGE_MAX = 32,
};

#define LINES_TYPE "application/x-ndjson"

/* ---- contexts ---- */

struct context_body {
    struct bytes language, cwd;
};

/* clang-format off */
#define AT(member) offsetof(struct context_body, member)
static const struct shape_field context_fields[] = {
    {"language", SHAPE_STRING, 0, AT(language), .help = "python (default), javascript, typescript, bash or r"},
    {"cwd", SHAPE_STRING, 0, AT(cwd), .help = "where it begins"},
};
#undef AT
static const struct shape context_shape = {context_fields, ARRAY_LEN(context_fields), SHAPE_NULLS,
                                           "InterpreterContext"};
/* clang-format on */

static void write_context(struct jw *w, const struct context *x)
{
    jw_object(w);
    jw_kv_string(w, "id", x->id);
    jw_kv_string(w, "language", context_language(x));
    jw_kv_string(w, "cwd", x->cwd ? x->cwd : persistent_cwd(x->home));
    jw_object_end(w);
}

static void reply_null(struct http_call *c)
{
    struct buf body = BUF_INIT(LINE_SLACK);

    (void)buf_puts(&body, "null");
    http_reply_json(c, 200, &body);
}

static int status_of(const struct err *e)
{
    static const int statuses[] = {
        [ERR_CALLER] = 400,
        [ERR_DENIED] = 403,
        [ERR_ABSENT] = 404,
        [ERR_BUSY] = 429,
    };

    return (size_t)e->kind < ARRAY_LEN(statuses) && statuses[e->kind] ? statuses[e->kind] : 500;
}

/* Lower case, without space around it. n == 0: Python. */
static struct bytes language_of(struct bytes given, char out[LANGUAGE_MAX])
{
    size_t n = 0;

    while (given.n > 0 && strchr(" \t\r\n", given.p[0]))
        given.p++, given.n--;
    while (given.n > 0 && strchr(" \t\r\n", given.p[given.n - 1]))
        given.n--;
    if (given.n == 0)
        return (struct bytes){"python", 6};
    for (; n < given.n && n < LANGUAGE_MAX; n++)
        out[n] = given.p[n] >= 'A' && given.p[n] <= 'Z' ? (char)(given.p[n] + 32) : given.p[n];
    return (struct bytes){out, n};
}

void e2b_contexts_create(struct http_call *c)
{
    struct persistent *p = e2b_sandbox(c);
    cleanup_with(shaping_done) struct shaping s = {0};
    struct context_body b = {0};
    struct buf body = BUF_INIT(CONTEXT_JSON_MAX);
    struct jw w = JW(&body);
    char language[LANGUAGE_MAX];
    struct context *x;
    struct err e;

    if (!p || !dialect_decode(c, &context_shape, &b, &s))
        return;
    if (context_create(p, &(struct context_spec){language_of(b.language, language), b.cwd}, &x,
                       &e) < 0) {
        e2b_reply_text(c, status_of(&e), "%s", e.text);
        return;
    }
    write_context(&w, x);
    http_reply_json(c, 200, &body);
}

void e2b_contexts_list(struct http_call *c)
{
    const struct persistent *p = e2b_sandbox(c);
    struct buf body = BUF_INIT(CONTEXT_JSON_MAX);
    struct jw w = JW(&body);
    const struct context *x;

    if (!p)
        return;
    body.max += p->contexts_n * CONTEXT_JSON_MAX;
    jw_array(&w);
    TAILQ_FOREACH(x, &p->contexts, link)
    write_context(&w, x);
    jw_array_end(&w);
    http_reply_json(c, 200, &body);
}

/* NULL: the call is answered. */
static struct context *context_named(struct http_call *c)
{
    const char *id = http_request(c)->param[0];
    struct persistent *p = e2b_sandbox(c);
    struct context *x;
    struct err ignored;

    if (!p)
        return NULL;
    if (context_find(p, id, strlen(id), &x, &ignored) == 0)
        return x;
    e2b_reply_text(c, 404, "Context %s not found", id);
    return NULL;
}

void e2b_context_delete(struct http_call *c)
{
    struct context *x = context_named(c);

    if (!x)
        return;
    context_delete(x);
    reply_null(c);
}

void e2b_context_restart(struct http_call *c)
{
    struct context *x = context_named(c);

    if (!x)
        return;
    context_restart(x);
    reply_null(c);
}

/* ---- cells ---- */

struct cell_body {
    struct bytes code, context, language;
    struct shape_strings env;
};

/* clang-format off */
#define AT(member) offsetof(struct cell_body, member)
static const struct shape_field cell_fields[] = {
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code), .max = CELL_CODE_MAX, .help = "what is run"},
    {"context_id", SHAPE_STRING, 0, AT(context), .help = "default: the context of the language"},
    {"language", SHAPE_STRING, 0, AT(language), .help = "python (default), javascript, typescript, bash or r"},
    {"env_vars", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX, .help = "variables of this cell only"},
};
#undef AT
static const struct shape cell_shape = {cell_fields, ARRAY_LEN(cell_fields), SHAPE_NULLS,
                                        "InterpreterCell"};

/* What the members of a result are called; the rest of a bundle goes to `extra`. */
static const struct {
    const char *mime, *name;
} kinds[] = {
    {"text/plain",             "text"      },
    {"text/html",              "html"      },
    {"text/markdown",          "markdown"  },
    {"image/svg+xml",          "svg"       },
    {"image/png",              "png"       },
    {"image/jpeg",             "jpeg"      },
    {"application/pdf",        "pdf"       },
    {"text/latex",             "latex"     },
    {"application/json",       "json"      },
    {"application/javascript", "javascript"},
    {"application/vnd.sandbox-executor.table+json", "data" },
    {"application/vnd.sandbox-executor.chart+json", "chart"},
};
/* clang-format on */

struct answer {
    struct activity activity;
    struct http_call *call;
    struct cell *cell; /* NULL: it has ended */
    struct event keepalive;
};

static void answer_free(struct answer *x)
{
    activity_end(&x->activity);
    (void)event_del(&x->keepalive);
    if (x->cell)
        cell_leave(x->cell);
    free(x);
}

static void on_drop(struct activity *a)
{
    answer_free((struct answer *)((char *)a - offsetof(struct answer, activity)));
}

static void on_gone(void *user)
{
    answer_free(user);
}

static void on_drained(void *user)
{
    struct answer *x = user;

    if (x->cell)
        cell_resume(x->cell);
}

/* Takes what the line holds. */
static void send_line(struct answer *x, struct buf *line)
{
    static const struct timeval quiet = {.tv_sec = KEEPALIVE_S};

    (void)buf_putc(line, '\n');
    if (!line->failed && http_stream_write(x->call, line->p, line->n) >= HTTP_STREAM_HIGH &&
        x->cell)
        cell_pause(x->cell);
    buf_done(line);
    (void)event_add(&x->keepalive, &quiet);
}

static void on_quiet(evutil_socket_t fd, short what, void *user)
{
    struct buf line = BUF_INIT(LINE_SLACK);

    (void)fd, (void)what;
    (void)buf_puts(&line, "{\"type\":\"keepalive\"}");
    send_line(user, &line);
}

static struct jw line_begin(struct buf *line, const char *type)
{
    struct jw w = {.out = line, .ascii = true};

    jw_object(&w);
    jw_kv_string(&w, "type", type);
    return w;
}

static void on_begun(void *user, uint64_t count)
{
    struct buf line = BUF_INIT(LINE_SLACK);
    struct jw w = line_begin(&line, "number_of_executions");

    jw_kv_int(&w, "execution_count", (int64_t)count);
    jw_object_end(&w);
    send_line(user, &line);
}

/* As Python's datetime writes it. */
static void put_timestamp(struct jw *w)
{
    char text[CLOCK_ISO_MAX + 6];

    (void)clock_iso(text);
    (void)snprintf(text + strcspn(text, "Z"), 7, "+00:00");
    jw_kv_string(w, "timestamp", text);
}

static void on_output(void *user, enum run_stream s, const char *p, size_t n)
{
    struct buf line = BUF_INIT(n * ESCAPE_FACTOR + LINE_SLACK);
    struct jw w = line_begin(&line, s == RUN_OUT ? "stdout" : "stderr");

    jw_kv_bytes(&w, "text", p, n);
    put_timestamp(&w);
    jw_object_end(&w);
    send_line(user, &line);
}

static void put_escape(struct buf *out, uint32_t unit)
{
    (void)buf_printf(out, "\\u%04x", (unsigned)unit);
}

/* A value of the interpreter, which has been validated, on one line and in ASCII: beyond it there
 * is something only in strings, and line breaks are only between tokens. */
static void put_ascii(struct buf *out, const char *p, size_t n)
{
    for (size_t at = 0, size; at < n; at += size) {
        uint32_t character;
        bool ok;

        for (size = 0; at + size < n && (unsigned char)p[at + size] >= ' ' &&
                       (unsigned char)p[at + size] < 0x80;
             size++)
            ;
        if (size > 0) {
            (void)buf_put(out, p + at, size);
            continue;
        }
        if ((unsigned char)p[at] < ' ') {
            (void)buf_putc(out, ' ');
            size = 1;
            continue;
        }
        size = utf8_next(p + at, n - at, &ok);
        character = ok ? utf8_decode(p + at, size) : 0xfffd;
        if (character >= 0x10000) {
            put_escape(out, 0xd800 + ((character - 0x10000) >> 10));
            character = 0xdc00 + ((character - 0x10000) & 0x3ff);
        }
        put_escape(out, character);
    }
}

static void put_value(struct jw *w, const char *p, size_t n)
{
    jw_raw(w, "", 0); /* with its comma */
    put_ascii(w->out, p, n);
}

/* Of text that is a quoted string, as Python shows one, the string. */
static void put_text(struct jw *w, struct json_value v)
{
    bool one = v.n >= 4 && v.p[1] == '\'' && v.p[v.n - 2] == '\'';
    bool two = v.n >= 6 && memcmp(v.p, "\"\\\"", 3) == 0 && memcmp(v.p + v.n - 3, "\\\"\"", 3) == 0;
    size_t cut = two ? 3 : one ? 2 : 0;

    if (cut == 0 || v.type != JSON_STRING) {
        put_value(w, v.p, v.n);
        return;
    }
    put_value(w, "\"", 1);
    put_ascii(w->out, v.p + cut, v.n - 2 * cut);
    (void)buf_putc(w->out, '"');
}

static const char *kind_of(struct json_value key)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (json_key_is(key, kinds[i].mime))
            return kinds[i].name;
    return NULL;
}

/* What the SDKs do not know by name. */
static void write_extra(struct jw *w, struct json_value bundle)
{
    struct json_value key, v;
    bool first = true;

    jw_key(w, "extra");
    jw_raw(w, "{", 1);
    for (size_t at = 0; json_object_next(bundle, &at, &key, &v);) {
        if (kind_of(key))
            continue;
        if (!first)
            (void)buf_putc(w->out, ',');
        first = false;
        put_ascii(w->out, key.p, key.n);
        (void)buf_putc(w->out, ':');
        put_ascii(w->out, v.p, v.n);
    }
    (void)buf_putc(w->out, '}');
}

static void send_result(struct answer *x, const struct cell_message *m)
{
    struct buf line = BUF_INIT(m->data.n * ESCAPE_FACTOR + LINE_SLACK);
    struct jw w = line_begin(&line, "result");
    struct json_value key, v;
    bool main = false;

    for (size_t at = 0; json_object_next(m->data, &at, &key, &v);) {
        const char *name = kind_of(key);

        if (!name)
            continue;
        jw_key(&w, name);
        if (strcmp(name, "text") == 0)
            put_text(&w, v);
        else
            put_value(&w, v.p, v.n);
    }
    write_extra(&w, m->data);
    (void)json_to_bool(m->main, &main);
    jw_kv_bool(&w, "is_main_result", main);
    jw_object_end(&w);
    send_line(x, &line);
}

static void put_string(struct jw *w, const char *name, struct json_value v)
{
    jw_key(w, name);
    if (v.p && v.type == JSON_STRING)
        put_value(w, v.p, v.n);
    else
        jw_string(w, "");
}

static void send_error(struct answer *x, const struct cell_message *m)
{
    struct buf line =
        BUF_INIT((m->name.n + m->value.n + m->traceback.n) * ESCAPE_FACTOR + LINE_SLACK);
    struct jw w = line_begin(&line, "error");

    put_string(&w, "name", m->name);
    put_string(&w, "value", m->value);
    put_string(&w, "traceback", m->traceback);
    jw_object_end(&w);
    send_line(x, &line);
}

/* A bundle that clears others has no line. */
static void on_event(void *user, const char *type, const struct cell_message *m)
{
    if (strcmp(type, "display") == 0 && m->data.p && m->data.type == JSON_OBJECT)
        send_result(user, m);
    else if (strcmp(type, "error") == 0)
        send_error(user, m);
}

static void send_crash(struct answer *x, const struct cell_end *end)
{
    struct buf line = BUF_INIT(ESCAPE_FACTOR * CONTEXT_FAILURE_MAX + LINE_SLACK);
    struct jw w = line_begin(&line, "error");
    char value[CONTEXT_FAILURE_MAX + 128];

    (void)snprintf(value, sizeof value, "%s%s%s%s", "the interpreter ended", end->crash ? ": " : "",
                   end->crash ? end_reason_name(end->crash->reason) : "",
                   "; the next cell runs in a new one");
    jw_kv_string(&w, "name",
                 end->count == 0 && !end->crash ? "ContextRestarting" : "UnexpectedEndOfExecution");
    jw_kv_string(&w, "value", *end->failure ? end->failure : value);
    jw_kv_string(&w, "traceback", "");
    jw_object_end(&w);
    send_line(x, &line);
}

static void on_done(void *user, const struct cell_end *end)
{
    struct answer *x = user;
    struct buf line = BUF_INIT(LINE_SLACK);
    struct jw w;

    x->cell = NULL;
    http_on_gone(x->call, NULL, NULL);
    http_on_drain(x->call, NULL, NULL);
    if (end->status == CELL_CRASH)
        send_crash(x, end);
    w = line_begin(&line, "end_of_execution");
    jw_object_end(&w);
    send_line(x, &line);
    http_stream_end(x->call);
    answer_free(x);
}

static int start(struct answer *x, struct context *context, const struct cell_body *b,
                 struct err *e)
{
    const struct cell_order order = {.code = b->code, .env = b->env.v, .env_n = b->env.n};
    const struct cell_events events = {
        .begun = on_begun, .output = on_output, .event = on_event, .done = on_done, .user = x};

    return cell_start(context, &order, &events, &x->cell, e);
}

static void execute(struct http_call *c, struct persistent *p, struct context *context,
                    const struct cell_body *b)
{
    struct answer *x = calloc(1, sizeof *x);
    static const struct timeval quiet = {.tv_sec = KEEPALIVE_S};
    struct err e;

    if (!x) {
        reply_status(c, 503);
        return;
    }
    x->call = c;
    (void)evtimer_assign(&x->keepalive, http_app(c)->base, on_quiet, x);
    if (start(x, context, b, &e) < 0) {
        e2b_reply_text(c, status_of(&e), "%s", e.text);
        answer_free(x);
        return;
    }
    activity_begin(p, &x->activity, on_drop);
    http_on_gone(c, on_gone, x);
    http_on_drain(c, on_drained, x);
    http_set_header(c, "Cache-Control", "no-cache");
    http_set_header(c, "X-Accel-Buffering", "no");
    http_stream_begin(c, 200, LINES_TYPE);
    (void)event_add(&x->keepalive, &quiet);
}

void e2b_execute(struct http_call *c)
{
    struct persistent *p = e2b_sandbox(c);
    cleanup_with(shaping_done) struct shaping s = {0};
    struct cell_body b = {0};
    char language[LANGUAGE_MAX];
    struct context *x;
    struct err e;

    if (!p || !dialect_decode(c, &cell_shape, &b, &s))
        return;
    if (b.context.n > 0 && b.language.n > 0) {
        e2b_reply_text(c, 400, "Only one of context_id or language can be provided");
    } else if (b.context.n > 0) {
        if (context_find(p, b.context.p, b.context.n, &x, &e) == 0)
            execute(c, p, x, &b);
        else
            e2b_reply_text(c, 404, "Context %.*s not found",
                           (int)(b.context.n < 64 ? b.context.n : 64), b.context.p);
    } else if (context_standard(p, language_of(b.language, language), &x, &e) == 0) {
        execute(c, p, x, &b);
    } else {
        e2b_reply_text(c, status_of(&e), "%s", e.text);
    }
}
