/* SPDX-License-Identifier: MIT */
/*
 * /v1/sandboxes/{id}/contexts and /v1/sandboxes/{id}/cells: live interpreters of a sandbox.
 *
 * A cell is answered when it has ended, as one object, or with `Accept: text/event-stream` as it
 * goes on: started, stdout, stderr, display, clear, error, end. A client that leaves interrupts its
 * cell; a slow one slows it.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/sandbox/context.h"
#include "base/jw.h"
#include "core/port_work.h"
#include "http/api/api.h"
#include "http/api/sandboxes/contexts.h"
#include "http/server/reply.h"
#include "http/server/sse.h"

enum {
    ONE_MAX = 4096 + SANDBOXES_PATH_MAX * 6, /* a context in JSON */
    TEXT_MAX = 10 << 20,                     /* of each stream in one object */
    RESULTS_MAX = 32 << 20,                  /* of everything displayed in one object */
    EVENT_SLACK = 256,
    ESCAPE_FACTOR = 6,
    MS_PER_S = 1000,
    WRITE_INLINE = 1 << 20, /* a larger answer is written on a worker */
    ENV_MAX = 1000,
    TIMEOUT_MAX_S = 86400,
};

#define ROUND_UP 0.999 /* to whole milliseconds: 0 stands for no limit */

static const char *const stream_names[] = {[RUN_OUT] = "stdout", [RUN_ERR] = "stderr"};

/* ---- contexts ---- */

struct context_body {
    struct bytes language, cwd;
};

/* clang-format off */
#define AT(member) offsetof(struct context_body, member)
static const struct shape_field context_fields[] = {
    {"language", SHAPE_STRING, 0, AT(language), .help = "python (default), javascript, typescript, bash or r"},
    {"cwd", SHAPE_STRING, 0, AT(cwd), .help = "where it begins, default /workspace"},
};
#undef AT
/* clang-format on */
const struct shape context_shape = {context_fields, ARRAY_LEN(context_fields), SHAPE_NULLS,
                                    "ContextCreate"};

static void write_context(struct jw *w, const struct context *x)
{
    jw_object(w);
    jw_kv_string(w, "id", x->id);
    jw_kv_string(w, "language", context_language(x));
    jw_kv_string(w, "cwd", x->cwd ? x->cwd : persistent_cwd(x->home));
    jw_kv_string(w, "state", context_state_name(x->state));
    jw_kv_bool(w, "default", x->standard);
    jw_kv_int(w, "execution_count", (int64_t)x->count);
    jw_kv_int(w, "waiting", (int64_t)(x->cells_n - (x->state == CONTEXT_BUSY)));
    jw_kv_string(w, "created_at", x->created_at);
    jw_object_end(w);
}

static void reply_context(struct http_call *c, int status, const struct context *x)
{
    struct buf body = BUF_INIT(ONE_MAX);
    struct jw w = JW(&body);

    write_context(&w, x);
    http_reply_json(c, status, &body);
}

static struct persistent *sandbox_of(struct http_call *c)
{
    struct persistent *p;
    struct err e;

    if (sandboxes_find_awake(http_app(c)->sandboxes, http_request(c)->param[0], &p, &e) == 0)
        return p;
    http_reply_error(c, &e);
    return NULL;
}

static struct context *context_of(struct http_call *c)
{
    const char *id = http_request(c)->param[1];
    struct persistent *p = sandbox_of(c);
    struct context *x;
    struct err e;

    if (!p)
        return NULL;
    if (context_find(p, id, strlen(id), &x, &e) == 0)
        return x;
    http_reply_error(c, &e);
    return NULL;
}

static void reply_failure(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY) {
        api_retry_after(c);
        api_reply_full(c, e, API_RETRY_AFTER);
    } else {
        api_reply_wrong(c, e);
    }
}

void api_context_create(struct http_call *c)
{
    struct context_body body = {0};
    struct persistent *p = sandbox_of(c);
    struct context_spec spec;
    struct context *x;
    struct shaping s;
    struct err e;

    if (!p)
        return;
    body.language = (struct bytes){"python", 6};
    if (dialect_decode(c, &context_shape, &body, &s)) {
        spec = (struct context_spec){.language = body.language, .cwd = body.cwd};
        if (context_create(p, &spec, &x, &e) == 0)
            reply_context(c, 201, x);
        else
            reply_failure(c, &e);
    }
    shaping_done(&s);
}

void api_contexts_list(struct http_call *c)
{
    const struct persistent *p = sandbox_of(c);
    struct buf body = BUF_INIT(ONE_MAX);
    struct jw w = JW(&body);
    const struct context *x;

    if (!p)
        return;
    body.max += p->contexts_n * ONE_MAX;
    jw_object(&w);
    jw_key(&w, "contexts");
    jw_array(&w);
    TAILQ_FOREACH(x, &p->contexts, link)
    write_context(&w, x);
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

void api_context_get(struct http_call *c)
{
    const struct context *x = context_of(c);

    if (x)
        reply_context(c, 200, x);
}

void api_context_delete(struct http_call *c)
{
    struct context *x = context_of(c);

    if (!x)
        return;
    context_delete(x);
    http_reply(c, 204, NULL, NULL);
}

void api_context_restart(struct http_call *c)
{
    struct context *x = context_of(c);

    if (!x)
        return;
    context_restart(x);
    reply_context(c, 200, x);
}

void api_context_interrupt(struct http_call *c)
{
    struct context *x = context_of(c);

    if (!x)
        return;
    context_interrupt(x);
    reply_context(c, 200, x);
}

/* ---- cells ---- */

struct cell_body {
    struct bytes code, language, context;
    struct shape_strings env;
    double timeout_s; /* below 0: not given */
};

/* clang-format off */
#define AT(member) offsetof(struct cell_body, member)
static const struct shape_field cell_fields[] = {
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code), .max = CELL_CODE_MAX, .help = "what is run"},
    {"context", SHAPE_STRING, 0, AT(context), .help = "id of a context; default: the one of the language"},
    {"language", SHAPE_STRING, 0, AT(language),
     .help = "python (default), javascript, typescript, bash or r: the sandbox's default context of it"},
    {"env", SHAPE_STRINGS, 0, AT(env), 0, ENV_MAX, .help = "variables of this cell only"},
    {"timeout", SHAPE_NUMBER, 0, AT(timeout_s), 0, TIMEOUT_MAX_S,
     .help = "seconds after which it is interrupted; default 300; 0: never"},
};
#undef AT
/* clang-format on */
const struct shape cell_shape = {cell_fields, ARRAY_LEN(cell_fields), SHAPE_NULLS, "Cell"};

struct cell_call {
    struct work work; /* first: a large answer is written on a worker */
    struct activity activity;
    struct http_call *call; /* NULL: its client has gone */
    struct cell *cell;      /* NULL: it has ended */
    char context_id[CONTEXT_ID_MAX + 1];
    const char *language;
    bool streams;
    struct sse sse;
    struct buf text[RUN_STREAMS]; /* of the one object */
    bool cut[RUN_STREAMS];
    struct buf results, error; /* JSON: the items of a list, an object */
    bool left_out, writing;
    struct cell_end end;
    char failure[CONTEXT_FAILURE_MAX];
    struct run_result crash; /* of end: only how it ended */
    struct buf body;
};

static void cell_call_free(struct cell_call *k)
{
    activity_end(&k->activity);
    if (k->cell)
        cell_leave(k->cell);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        buf_done(&k->text[i]);
    buf_done(&k->results);
    buf_done(&k->error);
    buf_done(&k->body);
    free(k);
}

static void on_drop(struct activity *a)
{
    struct cell_call *k = (struct cell_call *)((char *)a - offsetof(struct cell_call, activity));

    if (k->writing) {
        k->call = NULL;
        work_forget(&k->work);
        activity_end(a);
    } else {
        cell_call_free(k);
    }
}

static void on_gone(void *user)
{
    cell_call_free(user);
}

static void on_drained(void *user)
{
    struct cell_call *k = user;

    sse_drained(&k->sse);
    if (k->cell)
        cell_resume(k->cell);
}

static void stream(struct cell_call *k, const char *event, struct buf *json)
{
    if (!json->failed && !sse_send(&k->sse, event, NULL, json->p, json->n) && k->cell)
        cell_pause(k->cell);
    buf_done(json);
}

static void on_begun(void *user, uint64_t count)
{
    struct cell_call *k = user;
    struct buf json = BUF_INIT(EVENT_SLACK);
    struct jw w = JW(&json);

    if (!k->streams)
        return;
    jw_object(&w);
    jw_kv_string(&w, "context", k->context_id);
    jw_kv_int(&w, "execution_count", (int64_t)count);
    jw_object_end(&w);
    stream(k, "started", &json);
}

static void on_output(void *user, enum run_stream s, const char *p, size_t n)
{
    struct cell_call *k = user;
    size_t room = k->text[s].max - k->text[s].n;
    struct buf json;
    struct jw w;

    if (!k->streams) {
        k->cut[s] = k->cut[s] || n > room;
        (void)!buf_put(&k->text[s], p, n < room ? n : room);
        return;
    }
    json = BUF_INIT(n * ESCAPE_FACTOR + EVENT_SLACK);
    w = (struct jw){.out = &json, .ascii = true};
    jw_object(&w);
    jw_kv_bytes(&w, "text", p, n);
    jw_object_end(&w);
    stream(k, stream_names[s], &json);
}

/* The members of a message that are the client's, as they came. */
static void write_message(struct jw *w, const struct cell_message *m)
{
    const struct {
        const char *name;
        struct json_value v;
    } members[] = {
        {"data",       m->data      },
        {"metadata",   m->metadata  },
        {"main",       m->main      },
        {"display_id", m->display_id},
        {"update",     m->update    },
        {"wait",       m->wait      },
        {"name",       m->name      },
        {"value",      m->value     },
        {"traceback",  m->traceback },
    };

    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (!members[i].v.p)
            continue;
        jw_key(w, members[i].name);
        jw_raw(w, members[i].v.p, members[i].v.n);
    }
    jw_object_end(w);
}

/* A display of the one object. */
static void keep_result(struct cell_call *k, const struct buf *json)
{
    size_t was = k->results.n;

    if (was > 0)
        (void)!buf_putc(&k->results, ',');
    if (buf_put(&k->results, json->p, json->n) == 0)
        return;
    k->results.n = was;
    k->results.failed = false;
    k->left_out = true;
}

static void on_event(void *user, const char *type, const struct cell_message *m)
{
    struct cell_call *k = user;
    struct buf json = BUF_INIT(2 * (size_t)CELL_EVENT_MAX);
    struct jw w = JW(&json);

    write_message(&w, m);
    if (k->streams) {
        stream(k, type, &json);
        return;
    }
    if (strcmp(type, "error") == 0) {
        buf_done(&k->error);
        k->error = json;
        return;
    }
    if (strcmp(type, "clear") == 0)
        buf_clear(&k->results);
    else
        keep_result(k, &json);
    buf_done(&json);
}

static void write_crash(struct jw *w, const struct cell_end *end)
{
    if (end->status == CELL_CRASH && *end->failure)
        jw_kv_string(w, "failure", end->failure);
    if (!end->crash)
        return;
    jw_key(w, "termination");
    jw_object(w);
    jw_kv_string(w, "reason", end_reason_name(end->crash->reason));
    if (end->crash->signal)
        jw_kv_int(w, "signal", end->crash->signal);
    jw_object_end(w);
}

/* What both forms of an answer say of the end. */
static void write_end(struct jw *w, const struct cell_end *end)
{
    jw_kv_string(w, "status", cell_status_name(end->status));
    if (end->restarted)
        jw_kv_bool(w, "restarted", true);
    write_crash(w, end);
    jw_key(w, "timings");
    jw_object(w);
    jw_kv_double(w, "queue_ms", (double)end->queue_us / MS_PER_S, 3);
    jw_kv_double(w, "start_ms", (double)end->start_us / MS_PER_S, 3);
    jw_kv_double(w, "run_ms", (double)end->run_us / MS_PER_S, 3);
    jw_object_end(w);
}

/* Also on a worker. */
static void write_object(struct work *work)
{
    struct cell_call *k = (struct cell_call *)work;
    struct jw w = JW(&k->body);

    k->body = BUF_INIT((k->text[0].n + k->text[1].n) * ESCAPE_FACTOR + k->results.n + k->error.n +
                       ONE_MAX);
    jw_object(&w);
    jw_kv_string(&w, "context", k->context_id);
    jw_kv_string(&w, "language", k->language);
    jw_kv_int(&w, "execution_count", (int64_t)k->end.count);
    for (size_t i = 0; i < RUN_STREAMS; i++)
        jw_kv_bytes(&w, stream_names[i], k->text[i].p ? k->text[i].p : "", k->text[i].n);
    if (k->cut[RUN_OUT])
        jw_kv_bool(&w, "stdout_truncated", true);
    if (k->cut[RUN_ERR])
        jw_kv_bool(&w, "stderr_truncated", true);
    jw_key(&w, "results");
    jw_array(&w);
    if (k->results.n > 0)
        jw_raw(&w, k->results.p, k->results.n);
    jw_array_end(&w);
    if (k->left_out)
        jw_kv_bool(&w, "results_truncated", true);
    jw_key(&w, "error");
    if (k->error.n > 0)
        jw_raw(&w, k->error.p, k->error.n);
    else
        jw_null(&w);
    write_end(&w, &k->end);
    jw_object_end(&w);
}

static void written(struct work *work)
{
    struct cell_call *k = (struct cell_call *)work;

    k->writing = false;
    if (k->call) {
        http_on_gone(k->call, NULL, NULL);
        http_reply_json(k->call, 200, &k->body);
    }
    cell_call_free(k);
}

static void gone_while_written(void *user)
{
    struct cell_call *k = user;

    k->call = NULL;
    work_forget(&k->work);
}

static void reply_object(struct cell_call *k)
{
    size_t n = k->text[0].n + k->text[1].n + k->results.n;

    k->work.run = write_object;
    k->work.done = written;
    k->work.lane = work_lane_of(n);
    if (n > WRITE_INLINE) {
        k->writing = true;
        http_on_gone(k->call, gone_while_written, k);
        work_submit(http_app(k->call)->work, &k->work);
        return;
    }
    write_object(&k->work);
    written(&k->work);
}

/* The end outlives the cell. */
static void keep_end(struct cell_call *k, const struct cell_end *end)
{
    k->end = *end;
    (void)snprintf(k->failure, sizeof k->failure, "%s", end->failure);
    k->end.failure = k->failure;
    if (end->crash) {
        k->crash.reason = end->crash->reason;
        k->crash.signal = end->crash->signal;
        k->end.crash = &k->crash;
    }
}

static void on_done(void *user, const struct cell_end *end)
{
    struct cell_call *k = user;
    struct buf json = BUF_INIT(ONE_MAX);
    struct jw w = JW(&json);

    k->cell = NULL;
    keep_end(k, end);
    if (!k->streams) {
        reply_object(k);
        return;
    }
    http_on_gone(k->call, NULL, NULL);
    http_on_drain(k->call, NULL, NULL);
    jw_object(&w);
    jw_kv_int(&w, "execution_count", (int64_t)end->count);
    write_end(&w, end);
    jw_object_end(&w);
    stream(k, "end", &json);
    sse_end(&k->sse);
    cell_call_free(k);
}

static bool wants_stream(const struct http_call *c)
{
    const char *accept = http_header(c, "Accept");

    return accept && strcasestr(accept, "text/event-stream");
}

static int find_context(struct persistent *p, const struct cell_body *b, struct context **ret,
                        struct err *e)
{
    if (b->context.p && b->context.n > 0)
        return context_find(p, b->context.p, b->context.n, ret, e);
    return context_standard(p, b->language, ret, e);
}

static void start(struct http_call *c, struct persistent *p, const struct cell_body *b)
{
    const struct cell_order order = {
        .code = b->code,
        .env = b->env.v,
        .env_n = b->env.n,
        .timeout_ms =
            b->timeout_s < 0 ? CELL_TIMEOUT_MS : (uint64_t)(b->timeout_s * MS_PER_S + ROUND_UP),
    };
    struct cell_events events = {
        .begun = on_begun, .output = on_output, .event = on_event, .done = on_done};
    struct cell_call *k = calloc(1, sizeof *k);
    struct context *x;
    struct err e;

    if (!k) {
        reply_status(c, 503);
        return;
    }
    k->call = c;
    k->text[RUN_OUT] = k->text[RUN_ERR] = BUF_INIT(TEXT_MAX);
    k->results = BUF_INIT(RESULTS_MAX);
    events.user = k;
    if (find_context(p, b, &x, &e) < 0 || cell_start(x, &order, &events, &k->cell, &e) < 0) {
        reply_failure(c, &e);
        cell_call_free(k);
        return;
    }
    k->language = context_language(x);
    memcpy(k->context_id, x->id, sizeof k->context_id);
    activity_begin(p, &k->activity, on_drop);
    http_on_gone(c, on_gone, k);
    k->streams = wants_stream(c);
    if (k->streams) {
        http_on_drain(c, on_drained, k);
        sse_begin(&k->sse, c);
    }
}

void api_cell(struct http_call *c)
{
    struct cell_body body = {.timeout_s = -1};
    struct persistent *p = sandbox_of(c);
    struct shaping s;

    if (!p)
        return;
    body.language = (struct bytes){"python", 6};
    if (dialect_decode(c, &cell_shape, &body, &s))
        start(c, p, &body);
    shaping_done(&s);
}
