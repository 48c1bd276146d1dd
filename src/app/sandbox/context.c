/* SPDX-License-Identifier: MIT */
#include "app/sandbox/context.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "base/jw.h"
#include "base/random.h"
#include "base/utf8.h"

#define CELLS "/opt/sandbox-executor/bin/"

enum { ESCAPE_FACTOR = 6, CELL_SLACK = 512, TYPE_MAX = 16, TOKEN_N = 16, ARGV_MAX = 8 };

/* An interpreter and how it is told a cell. */
struct cells_language {
    const char *name, *alias[3];
    const char *package;         /* of Debian, that a host may be without; NULL: hosts have it */
    const char *argv[ARGV_MAX];  /* the file, then the program's own */
    enum plan_template template; /* that it is a copy of, where there is one */
    bool plain; /* lines: token, number of variables, each, then code; else an object with id, code
                   and env */
};

/* clang-format off */
static const struct cells_language languages[] = {
    {.name = "python", .alias = {"python3", "py"},
     .argv = {"/usr/bin/python3", "python3", CELLS "cells_python.py"},
     .template = TEMPLATE_PYTHON_CELLS},
    {.name = "javascript", .alias = {"js", "node"},
     .argv = {"/usr/bin/node", "node", CELLS "cells_javascript.js"}},
    {.name = "typescript", .alias = {"ts"},
     .argv = {"/usr/bin/node", "node", CELLS "cells_javascript.js", "--typescript"}},
    {.name = "bash", .alias = {"sh", "shell"}, .plain = true,
     .argv = {"/bin/bash", "bash", "--noprofile", "--rcfile", CELLS "cells_bash.sh", "-i"}},
    {.name = "r", .alias = {"R", "rscript"}, .plain = true, .package = "r-base-core",
     .argv = {"/usr/bin/Rscript", "Rscript", "--vanilla", CELLS "cells_r.R"}},
};
/* clang-format on */

struct cell {
    TAILQ_ENTRY(cell) link;
    struct context *context; /* borrowed */
    struct buf frame;        /* owned: what the interpreter is sent; empty: it has begun */
    char token[TOKEN_N + 1];
    struct cell_events events; /* done == NULL: nobody is told any more */
    uint64_t timeout_ms, count;
    uint64_t asked_us, sent_us, begun_us;
    enum cell_status why; /* CELL_TIMEOUT or CELL_INTERRUPTED: it was interrupted */
    unsigned interrupts;  /* sent without an end */
    bool restarted, sent;
    bool unsent; /* its interpreter took no more when it was to be sent */
    bool again;  /* its interpreter ended before it began: it was sent to another one */
};

const char *context_state_name(enum context_state s)
{
    static const char *const names[] = {"starting", "idle", "busy", "down"};

    _Static_assert(ARRAY_LEN(names) == CONTEXT_STATES, "every state has a name");
    return names[s];
}

const char *cell_status_name(enum cell_status s)
{
    static const char *const names[] = {"ok", "error", "timeout", "interrupted", "crashed"};

    _Static_assert(ARRAY_LEN(names) == CELL_STATUSES, "every status has a name");
    return names[s];
}

const char *context_language(const struct context *x)
{
    return x->language->name;
}

static bool is_named(const struct cells_language *l, struct bytes name)
{
    const char *const names[] = {l->name, l->alias[0], l->alias[1], l->alias[2]};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i] && strlen(names[i]) == name.n && memcmp(names[i], name.p, name.n) == 0)
            return true;
    return false;
}

static const struct cells_language *cells_language_find(struct bytes name, struct err *e)
{
    const struct cells_language *l = NULL;

    for (size_t i = 0; i < ARRAY_LEN(languages) && !l; i++)
        if (is_named(&languages[i], name))
            l = &languages[i];
    if (l && (!l->package || access(l->argv[0], X_OK) == 0))
        return l;
    if (l)
        (void)err_set(e, ERR_CALLER, "language: %s is not installed on this host (package %s)",
                      l->name, l->package);
    else
        (void)err_set(e, ERR_CALLER, "language: must be python, javascript, typescript, bash or r");
    return NULL;
}

static void arm(struct context *x, uint64_t ms)
{
    const struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
                               .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

    (void)event_add(x->timer, &tv);
}

static struct cell *running(const struct context *x)
{
    return x->state == CONTEXT_BUSY ? TAILQ_FIRST(&x->cells) : NULL;
}

static int context_up(struct context *x, struct err *e);

/* ---- the end of a cell ---- */

static void cell_free(struct cell *c)
{
    TAILQ_REMOVE(&c->context->cells, c, link);
    c->context->cells_n--;
    buf_done(&c->frame);
    free(c);
}

static void cell_end(struct cell *c, enum cell_status status, const struct run_result *crash)
{
    const struct cell_end end = {
        .status = status,
        .failure = c->begun_us == 0 ? c->context->failure : "",
        .count = c->count,
        .restarted = c->restarted,
        .crash = crash,
        .queue_us = c->sent_us > c->asked_us ? c->sent_us - c->asked_us : 0,
        .start_us = c->begun_us > c->sent_us ? c->begun_us - c->sent_us : 0,
        .run_us = c->begun_us > 0 ? clock_us() - c->begun_us : 0,
    };
    const struct cell_events events = c->events;

    cell_free(c);
    if (events.done)
        events.done(events.user, &end);
}

static void fail_all(struct context *x, const struct run_result *crash)
{
    struct cell *c;

    while ((c = TAILQ_FIRST(&x->cells)))
        cell_end(c, c->why == CELL_TIMEOUT ? CELL_TIMEOUT : CELL_CRASH, crash);
}

/* ---- the next one ---- */

/* The interpreter is idle. */
static void next_cell(struct context *x)
{
    struct cell *c = TAILQ_FIRST(&x->cells);

    (void)event_del(x->timer);
    x->state = c ? CONTEXT_BUSY : CONTEXT_IDLE;
    if (!c) {
        x->home->life.used_us = clock_us();
        return;
    }
    c->sent = true;
    c->sent_us = clock_us();
    c->restarted = x->lost;
    x->lost = false;
    c->unsent = command_send(x->program, c->frame.p, c->frame.n) < 0;
    if (c->unsent)
        command_kill(x->program, END_CANCELLED);
}

/* SIGINT, and again until the cell has ended or its grace has: Node.js loses one that comes just as
 * the synchronous part of a cell ends. */
static void interrupt_again(struct cell *c)
{
    struct context *x = c->context;

    if (command_interrupt(x->program) < 0)
        command_kill(x->program, END_CANCELLED);
    arm(x, CELL_GRACE_MS / CELL_INTERRUPTS);
}

static void interrupt(struct cell *c, enum cell_status why)
{
    if (c->why == CELL_OK)
        c->why = why;
    interrupt_again(c);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct context *x = user;
    struct cell *c = running(x);

    (void)fd, (void)what;
    if (c && c->why == CELL_OK)
        interrupt(c, CELL_TIMEOUT);
    else if (c && ++c->interrupts < CELL_INTERRUPTS)
        interrupt_again(c);
    else if (x->program)
        command_kill(x->program, END_TIMEOUT);
}

/* ---- what the interpreter says ---- */

static void broken(struct context *x)
{
    command_kill(x->program, END_CANCELLED);
}

/* The last line that an interpreter writes before it is ready says why it ended. */
static void keep_failure(struct context *x, const char *p, size_t n)
{
    size_t keep;

    while (n > 0 && p[n - 1] == '\n')
        n--;
    for (keep = 0; keep < n && keep < sizeof x->failure - 1 && p[n - 1 - keep] != '\n';)
        keep++;
    memcpy(x->failure, p + n - keep, keep);
    x->failure[keep] = '\0';
}

/* Bytes of a stream: a character that is cut waits for its rest. */
static void on_output(void *user, enum run_stream s, const char *p, size_t n)
{
    struct context *x = user;
    struct cell *c = running(x);
    char whole[4];
    size_t have = x->tail_n[s], cut;

    if (x->state == CONTEXT_STARTING && s == RUN_ERR)
        keep_failure(x, p, n);
    if (!c || !c->events.done)
        return;
    while (have > 0 && n > 0 && have < sizeof whole) { /* the rest of it, byte by byte */
        memcpy(whole, x->tail[s], have);
        whole[have++] = *p++;
        n--;
        if (utf8_incomplete_tail(whole, have) == 0) {
            x->tail_n[s] = 0;
            c->events.output(c->events.user, s, whole, have);
            have = 0;
        } else {
            memcpy(x->tail[s], whole, have);
            x->tail_n[s] = have;
        }
    }
    cut = utf8_incomplete_tail(p, n);
    memcpy(x->tail[s], p + n - cut, cut);
    x->tail_n[s] = n > 0 ? cut : x->tail_n[s];
    if (n > cut)
        c->events.output(c->events.user, s, p, n - cut);
}

static void flush_tails(struct context *x, struct cell *c)
{
    command_output_read(x->program);
    for (int s = 0; s < RUN_STREAMS; s++) {
        if (x->tail_n[s] > 0 && c->events.done)
            c->events.output(c->events.user, (enum run_stream)s, x->tail[s], x->tail_n[s]);
        x->tail_n[s] = 0;
    }
}

static bool is_of(const struct cell *c, const struct cell_message *m)
{
    return m->id.p && json_key_is(m->id, c->token);
}

static void on_begun(struct cell *c)
{
    struct context *x = c->context;

    buf_done(&c->frame);
    c->begun_us = clock_us();
    c->count = ++x->count;
    if (c->timeout_ms > 0)
        arm(x, c->timeout_ms);
    if (!c->events.done)
        interrupt(c, CELL_INTERRUPTED); /* its caller left while it waited for its beginning */
    else if (c->events.begun)
        c->events.begun(c->events.user, c->count);
}

/* Without anybody who has tools for it. */
static void refuse_call(struct cell *c, const struct cell_message *m)
{
    static const char words[] =
        "\"ok\":false,\"error\":{\"type\":\"NotAllowed\",\"message\":\"this "
        "code may call no tools\",\"hint\":\"name them in allow_tools of "
        "run_code\"}}";
    cleanup_with(buf_done) struct buf json = BUF_INIT(CELL_SLACK);

    (void)buf_printf(&json, "{\"call\":%.*s,%s", (int)m->call.n, m->call.p, words);
    if (!json.failed && cell_answer(c, json.p, json.n) < 0)
        broken(c->context);
}

/* False: it asks for nothing. */
static bool on_ask(struct cell *c, const struct cell_message *m)
{
    int64_t number;
    enum cell_ask what = cell_message_ask(m, &number);

    if (what == CELL_ASKS_BROKEN)
        broken(c->context);
    else if (what != CELL_ASKS_NOTHING && c->events.asks)
        c->events.asks(c->events.user, what, m);
    else if (what == CELL_ASKS_CALL || what == CELL_ASKS_SEARCH)
        refuse_call(c, m);
    return what != CELL_ASKS_NOTHING;
}

static void on_event(struct cell *c, const struct cell_message *m)
{
    static const char *const types[] = {"display", "clear", "error"};
    struct buf text = BUF_INIT(CELL_EVENT_MAX);
    bool out, err;

    if (!c->events.done || !m->type.p)
        return;
    command_output_read(c->context->program); /* what other programs wrote before */
    if (on_ask(c, m))
        return;
    out = json_key_is(m->type, "stdout");
    err = json_key_is(m->type, "stderr");
    if (out || err) {
        if (m->text.p && m->text.type == JSON_STRING &&
            json_decode_string(m->text, JSON_LENIENT_UTF8, &text) == 0 && text.n > 0)
            c->events.output(c->events.user, err ? RUN_ERR : RUN_OUT, text.p, text.n);
        buf_done(&text);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (json_key_is(m->type, types[i]))
            c->events.event(c->events.user, types[i], m);
}

static void on_result(struct cell *c, const struct cell_message *m)
{
    struct context *x = c->context;
    bool ok = m->status.p && json_key_is(m->status, "ok");

    flush_tails(x, c);
    cell_end(c, c->why != CELL_OK ? c->why : ok ? CELL_OK : CELL_ERROR, NULL);
    command_resume(x->program); /* a client that reads slowly may have paused it at the very end */
    next_cell(x);
}

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct context *x = user;
    struct cell *c = running(x);
    struct cell_message m;

    if (cell_message_read(p, n, &m) < 0) {
        broken(x);
        return;
    }
    if (kind == FRAME_READY && x->state == CONTEXT_STARTING) {
        next_cell(x);
        return;
    }
    if (!c || !is_of(c, &m))
        return; /* of a thread that goes on after its cell */
    if (kind == FRAME_BEGUN && c->begun_us == 0)
        on_begun(c);
    else if (kind == FRAME_ITEM && c->begun_us > 0)
        on_event(c, &m);
    else if (kind == FRAME_RESULT && c->begun_us > 0)
        on_result(c, &m);
    else
        broken(x);
}

/* ---- the interpreter ---- */

/* The cell before it ended the interpreter, which had not gone yet when this one was sent. */
static bool may_send_again(struct cell *c, const struct run_result *r)
{
    bool may = c->begun_us == 0 && c->why == CELL_OK && !c->again &&
               (c->unsent || r->reason == END_EXIT) && c->context->home->state != PERSISTENT_ENDING;

    c->again = true;
    return may;
}

static void on_done(void *user)
{
    struct context *x = user;
    struct command *was = take_ptr(&x->program);
    struct cell *c = running(x);
    bool started = x->state != CONTEXT_STARTING;

    (void)event_del(x->timer);
    x->lost = x->lost || x->count > 0;
    x->state = CONTEXT_DOWN;
    memset(x->tail_n, 0, sizeof x->tail_n);
    if (c && may_send_again(c, &was->result))
        c->sent = false;
    else if (c)
        cell_end(c, c->why == CELL_TIMEOUT ? CELL_TIMEOUT : CELL_CRASH, &was->result);
    if (!started)
        fail_all(x, &was->result); /* another one would end in the same way */
    command_free(was);
    if (!TAILQ_EMPTY(&x->cells) && context_up(x, &(struct err){0}) < 0)
        fail_all(x, NULL);
}

static int context_up(struct context *x, struct err *e)
{
    static const char go[] = {FRAME_GO, '0', '0', '0', '0', '0', '0', '0', '0'};
    const struct command_order order = {
        .argv = x->language->argv,
        .template = x->language->template,
        .cwd = {x->cwd ? x->cwd : "", x->cwd ? strlen(x->cwd) : 0},
        .frames = {go,                   sizeof go                  },
        .frame_max = CELL_EVENT_MAX,
    };
    const struct command_events events = {
        .output = on_output, .frame = on_frame, .done = on_done, .user = x};
    enum run_fault at;

    if (x->program)
        return 0;
    if (x->home->state == PERSISTENT_ENDING)
        return err_set(e, ERR_ABSENT, "the sandbox has ended");
    x->state = CONTEXT_STARTING;
    x->failure[0] = '\0';
    if (command_start(x->home, &order, &events, &x->program, &at, e) < 0) {
        x->state = CONTEXT_DOWN;
        return -1;
    }
    arm(x, CONTEXT_START_MS);
    return 0;
}

/* ---- use cases ---- */

static void context_free(struct context *x)
{
    TAILQ_REMOVE(&x->home->contexts, x, link);
    x->home->contexts_n--;
    command_free(x->program);
    if (x->timer)
        event_free(x->timer);
    free(x->cwd);
    free(x);
}

int context_create(struct persistent *p, const struct context_spec *spec, struct context **ret,
                   struct err *e)
{
    const struct cells_language *l = cells_language_find(spec->language, e);
    struct context *x;

    if (!l)
        return -1;
    if (p->contexts_n >= CONTEXTS_MAX)
        return err_set(e, ERR_BUSY, "a sandbox has at most %d contexts", CONTEXTS_MAX);
    x = calloc(1, sizeof *x);
    if (!x)
        return err_set(e, ERR_HOST, "no memory for a context");
    *x = (struct context){.home = p, .language = l, .state = CONTEXT_DOWN};
    TAILQ_INIT(&x->cells);
    TAILQ_INSERT_TAIL(&p->contexts, x, link);
    p->contexts_n++;
    random_base36(x->id, CONTEXT_ID_MAX);
    (void)clock_iso(x->created_at);
    x->timer = evtimer_new(p->all->app->base, on_timer, x);
    x->cwd = spec->cwd.n ? strndup(spec->cwd.p, spec->cwd.n) : NULL;
    if (!x->timer || (spec->cwd.n && !x->cwd))
        (void)err_set(e, ERR_HOST, "no memory for a context");
    else if (context_up(x, e) == 0) {
        *ret = x;
        return 0;
    }
    context_free(x);
    return -1;
}

int context_find(const struct persistent *p, const char *id, size_t n, struct context **ret,
                 struct err *e)
{
    TAILQ_FOREACH(*ret, &p->contexts, link)
    if (strlen((*ret)->id) == n && memcmp((*ret)->id, id, n) == 0)
        return 0;
    return err_set(e, ERR_ABSENT, "there is no such context in this sandbox");
}

int context_standard(struct persistent *p, struct bytes language, struct context **ret,
                     struct err *e)
{
    const struct context_spec spec = {.language = language};
    const struct cells_language *l = cells_language_find(language, e);

    if (!l)
        return -1;
    TAILQ_FOREACH(*ret, &p->contexts, link)
    if ((*ret)->standard && (*ret)->language == l)
        return 0;
    if (context_create(p, &spec, ret, e) < 0)
        return -1;
    (*ret)->standard = true;
    return 0;
}

void context_delete(struct context *x)
{
    struct command *program = take_ptr(&x->program);

    x->state = CONTEXT_DOWN;
    fail_all(x, NULL);
    command_free(program);
    context_free(x);
}

void context_restart(struct context *x)
{
    struct err e;

    (void)event_del(x->timer);
    command_free(take_ptr(&x->program));
    x->state = CONTEXT_DOWN;
    fail_all(x, NULL);
    x->count = 0;
    x->lost = false;
    if (context_up(x, &e) < 0)
        x->state = CONTEXT_DOWN; /* the next cell is told why */
}

void context_interrupt(struct context *x)
{
    struct cell *c = running(x);

    if (c)
        cell_interrupt(c);
}

/* As bash reads it, and R behind the dollar: $'…' on one line. */
static void put_quoted(struct buf *out, struct bytes v)
{
    (void)buf_puts(out, "$'");
    for (size_t i = 0; i < v.n; i++) {
        unsigned char byte = (unsigned char)v.p[i];

        if (byte < ' ' || byte == '\'' || byte == '\\')
            (void)buf_printf(out, "\\%03o", byte);
        else
            (void)buf_putc(out, (char)byte);
    }
    (void)buf_putc(out, '\'');
}

static void write_plain(struct buf *out, const char *token, const struct cell_order *o)
{
    (void)buf_printf(out, "%s\n%zu\n", token, o->env_n);
    for (size_t i = 0; i < o->env_n; i++) {
        (void)buf_put(out, o->env[i].name.p, o->env[i].name.n);
        (void)buf_putc(out, '=');
        put_quoted(out, o->env[i].value);
        (void)buf_putc(out, '\n');
    }
    (void)buf_put(out, o->code.p, o->code.n);
}

static int write_frame(struct cell *c, const struct cells_language *l, const struct cell_order *o)
{
    size_t max = o->code.n * ESCAPE_FACTOR + CELL_SLACK;
    char head[FRAME_HEAD];
    struct jw w;

    for (size_t i = 0; i < o->env_n; i++)
        max += (o->env[i].name.n + o->env[i].value.n) * ESCAPE_FACTOR + CELL_SLACK;
    c->frame = BUF_INIT(max);
    if (buf_reserve(&c->frame, FRAME_HEAD) < 0)
        return -1;
    c->frame.n = FRAME_HEAD;
    if (l->plain) {
        write_plain(&c->frame, c->token, o);
    } else {
        w = JW(&c->frame);
        jw_object(&w);
        jw_kv_string(&w, "id", c->token);
        jw_kv_bytes(&w, "code", o->code.p, o->code.n);
        jw_key(&w, "env");
        jw_object(&w);
        for (size_t i = 0; i < o->env_n; i++)
            jw_kv_bytes(&w, o->env[i].name.p, o->env[i].value.p, o->env[i].value.n);
        jw_object_end(&w);
        jw_object_end(&w);
    }
    if (c->frame.failed)
        return -1;
    frame_head(head, FRAME_CALL, (uint32_t)(c->frame.n - FRAME_HEAD));
    memcpy(c->frame.p, head, FRAME_HEAD);
    return 0;
}

/* In plain text it goes into a program. */
static bool may_be_set(const struct cells_language *l, struct bytes name)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    if (!exec_var_is_name(name) || (l->plain && name.p[0] >= '0' && name.p[0] <= '9'))
        return false;
    for (size_t i = 0; l->plain && i < name.n; i++)
        if (!memchr(word, name.p[i], sizeof word - 1))
            return false;
    return true;
}

static int check_env(const struct cells_language *l, const struct cell_order *o, struct err *e)
{
    for (size_t i = 0; i < o->env_n; i++) {
        if (!may_be_set(l, o->env[i].name))
            return err_set(e, ERR_CALLER, "env: '%.*s' is not a name",
                           (int)(o->env[i].name.n < 64 ? o->env[i].name.n : 64), o->env[i].name.p);
        if (o->env[i].value.n > 0 && memchr(o->env[i].value.p, '\0', o->env[i].value.n))
            return err_set(e, ERR_CALLER, "env: a value contains a NUL byte");
    }
    return 0;
}

int cell_start(struct context *x, const struct cell_order *o, const struct cell_events *events,
               struct cell **ret, struct err *e)
{
    struct cell *c;

    if (x->cells_n >= CONTEXT_QUEUE_MAX)
        return err_set(e, ERR_BUSY, "%d cells wait in this context already", CONTEXT_QUEUE_MAX);
    if (x->language->plain && o->code.n > 0 && memchr(o->code.p, '\0', o->code.n))
        return err_set(e, ERR_CALLER, "code: %s takes no NUL byte", x->language->name);
    if (check_env(x->language, o, e) < 0)
        return -1;
    if (context_up(x, e) < 0)
        return -1;
    c = calloc(1, sizeof *c);
    if (!c)
        return err_set(e, ERR_HOST, "no memory for a cell");
    *c = (struct cell){
        .context = x, .events = *events, .timeout_ms = o->timeout_ms, .asked_us = clock_us()};
    random_hex(c->token, TOKEN_N / 2);
    TAILQ_INSERT_TAIL(&x->cells, c, link);
    x->cells_n++;
    if (write_frame(c, x->language, o) < 0) {
        cell_free(c);
        return err_set(e, ERR_HOST, "no memory for a cell");
    }
    *ret = c;
    if (x->state == CONTEXT_IDLE)
        next_cell(x);
    return 0;
}

void cell_leave(struct cell *c)
{
    c->events.done = NULL;
    if (!c->sent) {
        cell_free(c);
        return;
    }
    cell_resume(c);
    if (c->begun_us > 0)
        interrupt(c, CELL_INTERRUPTED);
}

void cell_interrupt(struct cell *c)
{
    if (c->begun_us > 0)
        interrupt(c, CELL_INTERRUPTED);
}

int cell_answer(struct cell *c, const char *json, size_t n)
{
    struct command *program = c->context->program;
    char head[FRAME_HEAD];

    if (!program || running(c->context) != c)
        return -1;
    frame_head(head, FRAME_ANSWER, (uint32_t)n);
    return command_send(program, head, sizeof head) < 0 ? -1 : command_send(program, json, n);
}

void cell_pause(struct cell *c)
{
    if (c->sent && c->context->program)
        command_pause(c->context->program);
}

void cell_resume(struct cell *c)
{
    if (c->sent && c->context->program)
        command_resume(c->context->program);
}

void contexts_end(struct persistent *p)
{
    struct context *x;

    TAILQ_FOREACH(x, &p->contexts, link)
    if (!x->program)
        fail_all(x, NULL);
}

void contexts_done(struct persistent *p)
{
    struct context *x;

    while ((x = TAILQ_FIRST(&p->contexts))) {
        while (!TAILQ_EMPTY(&x->cells))
            cell_free(TAILQ_FIRST(&x->cells));
        context_free(x);
    }
}

size_t contexts_idle(const struct persistent *p)
{
    const struct context *x;
    size_t n = 0;

    TAILQ_FOREACH(x, &p->contexts, link)
    n += x->state == CONTEXT_IDLE;
    return n;
}
