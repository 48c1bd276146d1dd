/* SPDX-License-Identifier: MIT */
#include "app/tools/code_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "app/daemon/app.h"
#include "app/function/call.h"
#include "app/tools/code_journal.h"
#include "app/tools/toolbox.h"
#include "app/tools/upstream.h"
#include "base/clock.h"
#include "base/jw.h"

enum { ANSWER_ROOM = 4096, US_PER_MS = 1000, MS_PER_S = 1000, ESCAPE_FACTOR = 6, WORDS_MAX = 400 };

/* One call. */
struct code_call {
    TAILQ_ENTRY(code_call) link;
    struct code_run *run; /* borrowed */
    int64_t number;       /* by which the code knows it */
    char tool[CODE_NAME_MAX + 1];
    struct buf arguments;         /* owned: JSON; empty: none */
    struct call *call;            /* under way, or */
    struct upstream_call *remote; /* this; both NULL: it waits */
    uint64_t began_us;
};
TAILQ_HEAD(code_call_list, code_call);

struct code_run {
    struct app *app; /* borrowed */
    char **allowed;  /* owned: names, or beginnings of names with a '*' behind */
    size_t allowed_n;
    struct code_run_events events;
    struct code_call_list active, waiting;
    size_t active_n;
    uint64_t calls, bytes; /* of its budget, that are used */
    bool held, ended;
    struct code_journal journal;
};

/* ---- what is allowed ---- */

static bool fits(const char *pattern, const char *name)
{
    size_t n = strlen(pattern);

    if (n > 0 && pattern[n - 1] == '*')
        return strncmp(pattern, name, n - 1) == 0;
    return strcmp(pattern, name) == 0;
}

static bool is_allowed(const struct code_run *r, const char *name)
{
    for (size_t i = 0; i < r->allowed_n; i++)
        if (fits(r->allowed[i], name))
            return true;
    return false;
}

static int allow(struct code_run *r, struct bytes name, struct err *e)
{
    const char *star = memchr(name.p, '*', name.n);

    if (name.n == 0 || name.n > CODE_NAME_MAX || memchr(name.p, '\0', name.n) ||
        (star && star != name.p + name.n - 1))
        return err_set(e, ERR_CALLER,
                       "allow_tools: '%.64s' is neither a name nor the beginning of one with * "
                       "behind it",
                       name.p);
    if (!star && !toolbox_tool(r->app->mcp_side.tools, name.p, name.n) &&
        !upstreams_tool(r->app->mcp_side.tools->upstreams, name.p, name.n))
        return err_set(e, ERR_CALLER, "allow_tools: there is no tool '%.64s'", name.p);
    r->allowed[r->allowed_n] = strndup(name.p, name.n);
    if (!r->allowed[r->allowed_n])
        return err_set(e, ERR_HOST, "out of memory");
    r->allowed_n++;
    return 0;
}

int code_run_new(struct app *a, const struct exec_var *allowed, size_t n,
                 const struct code_run_events *events, struct code_run **ret, struct err *e)
{
    struct code_run *r = calloc(1, sizeof *r);

    if (r)
        r->allowed = calloc(n + 1, sizeof *r->allowed);
    if (!r || !r->allowed) {
        free(r);
        return err_set(e, ERR_HOST, "out of memory");
    }
    r->app = a;
    r->events = *events;
    TAILQ_INIT(&r->active);
    TAILQ_INIT(&r->waiting);
    code_journal_init(&r->journal);
    for (size_t i = 0; i < n; i++)
        if (allow(r, allowed[i].value, e) < 0) {
            code_run_free(r);
            return -1;
        }
    *ret = r;
    return 0;
}

/* ---- answers ---- */

static void answer(struct code_run *r, int64_t number, const char *members, size_t n)
{
    struct buf json = BUF_INIT(n + ANSWER_ROOM);

    (void)buf_printf(&json, "{\"call\":%lld,", (long long)number);
    (void)buf_put(&json, members, n);
    (void)buf_putc(&json, '}');
    if (!r->ended && !json.failed)
        (void)!r->events.answer(r->events.user, json.p, json.n);
    buf_done(&json);
}

static void write_error(struct buf *out, const char *type, const char *words, const char *hint)
{
    struct jw w = JW(out);

    jw_kv_bool(&w, "ok", false);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kv_string(&w, "type", type);
    jw_kv_string(&w, "message", words);
    if (hint)
        jw_kv_string(&w, "hint", hint);
    jw_object_end(&w);
}

static void refuse(struct code_run *r, int64_t number, const char *type, const char *hint,
                   const char *words)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(ANSWER_ROOM);

    write_error(&json, type, words, hint);
    answer(r, number, json.p ? json.p : "", json.n);
}

/* The members of an answer, from the result of a function call. Pure. */
static void render(const struct call_result *c, struct buf *out)
{
    const struct run_result *run = c->run;
    const struct call_outcome *o = &c->outcome;
    struct jw w = JW(out);

    *out = BUF_INIT(run->result.n + run->error.n + ANSWER_ROOM);
    if (o->status == CALL_SUCCESS) {
        jw_kv_bool(&w, "ok", true);
        jw_key(&w, "value");
        jw_raw(&w, run->result.p, run->result.n);
    } else if (o->framed) {
        jw_kv_bool(&w, "ok", false);
        jw_key(&w, "error");
        jw_raw(&w, run->error.p, run->error.n);
    } else {
        write_error(out, o->type ? o->type : "Error", o->message, NULL);
    }
}

/* ---- calls ---- */

static void next(struct code_run *r);

static void call_free(struct code_call *c)
{
    buf_done(&c->arguments);
    free(c);
}

/* It has ended: noted, answered, and the next one begins. members: of the answer. */
static void call_end(struct code_call *c, struct bytes members, size_t bytes_out, bool ok)
{
    struct code_run *r = c->run;
    const struct code_note note = {
        .tool = c->tool,
        .us = clock_us() - c->began_us,
        .ok = ok,
        .arguments = {c->arguments.p, c->arguments.n},
        .answer = members,
        .bytes_out = bytes_out,
    };

    TAILQ_REMOVE(&r->active, c, link);
    r->active_n--;
    r->bytes += bytes_out;
    code_journal_note(&r->journal, &note);
    log_event(&r->app->log, LOG_INFO, "code_call", LOG_STR("tool", c->tool),
              LOG_STR("outcome", ok ? "ok" : "error"), LOG_INT("duration_us", (int64_t)note.us));
    r->app->metrics.code_calls++;
    r->app->metrics.code_calls_failed += !ok;
    answer(r, c->number, members.p, members.n);
    call_free(c);
    next(r);
}

static void call_fail(struct code_call *c, const char *type, const char *hint, const char *words)
{
    cleanup_with(buf_done) struct buf json = BUF_INIT(ANSWER_ROOM);

    write_error(&json, type, words, hint);
    call_end(c, (struct bytes){json.p ? json.p : "", json.n}, 0, false);
}

static void on_done(void *user, const struct call_result *result, struct buf *members)
{
    bool ok = result->outcome.status == CALL_SUCCESS;
    struct code_call *c = user;

    c->call = NULL;
    if (members->failed || result->run->result.n > CODE_VALUE_MAX)
        call_fail(c, "Budget", "return less", "budget of 1 MiB for the value of a call exceeded");
    else
        call_end(c, (struct bytes){members->p, members->n}, ok ? result->run->result.n : 0, ok);
    buf_done(members);
}

static void on_refused(void *user, const struct err *e)
{
    struct code_call *c = user;

    c->call = NULL;
    call_fail(c, e->kind == ERR_BUSY ? "Busy" : "TypeError",
              e->kind == ERR_BUSY ? "try again in a few seconds" : NULL, e->text);
}

static void on_remote(void *user, const struct buf *members, bool ok, size_t value_n)
{
    struct code_call *c = user;

    c->remote = NULL;
    if (members->failed || value_n > CODE_VALUE_MAX)
        call_fail(c, "Budget", "ask for less", "budget of 1 MiB for the value of a call exceeded");
    else
        call_end(c, (struct bytes){members->p, members->n}, value_n, ok);
}

/* Nothing is heard of it any more. */
static void call_drop(struct code_call *c)
{
    if (c->call)
        call_abandon(c->call);
    if (c->remote)
        upstream_cancel(c->remote);
    c->call = NULL;
    c->remote = NULL;
}

static void begin(struct code_call *c)
{
    struct app *a = c->run->app;
    const struct published *tool = toolbox_tool(a->mcp_side.tools, c->tool, strlen(c->tool));
    struct upstream_tool *remote =
        tool ? NULL : upstreams_tool(a->mcp_side.tools->upstreams, c->tool, strlen(c->tool));
    struct function_order order = {.request_id = "",
                                   .asked_us = clock_us(),
                                   .render = render,
                                   .done = on_done,
                                   .refused = on_refused,
                                   .user = c};
    struct json_value arguments = {0};
    struct err e;

    c->began_us = clock_us();
    TAILQ_INSERT_TAIL(&c->run->active, c, link);
    c->run->active_n++;
    if (c->arguments.n > 0 &&
        json_parse(c->arguments.p, c->arguments.n, JSON_LENIENT_DUPES, &arguments, &e) < 0)
        call_fail(c, "TypeError", NULL, e.text);
    else if (!tool && !remote)
        call_fail(c, "NotFound", "tools.search() finds what there is", "the tool is gone");
    else if (remote && upstream_call(remote, arguments, on_remote, c, &c->remote, &e) < 0)
        on_refused(c, &e);
    else if (tool &&
             published_call(a->mcp_side.tools,
                            &(struct published_order){tool, arguments, CODE_CALL_MS / MS_PER_S},
                            &order, &c->call, &e) < 0)
        on_refused(c, &e);
}

/* Those that wait begin; the code waits while there are any. */
static void next(struct code_run *r)
{
    struct code_call *c;
    bool hold;

    while (!r->ended && r->active_n < CODE_CALLS_AT_ONCE && (c = TAILQ_FIRST(&r->waiting))) {
        TAILQ_REMOVE(&r->waiting, c, link);
        begin(c);
    }
    hold = !TAILQ_EMPTY(&r->waiting);
    if (hold == r->held || r->ended)
        return;
    r->held = hold;
    r->events.hold(r->events.user, hold);
}

/* What the budget says against one more call; NULL: nothing. */
static const char *over_budget(struct code_run *r, struct json_value arguments,
                               char words[WORDS_MAX])
{
    if (r->calls >= r->app->config.mcp_calls_max) {
        (void)snprintf(words, WORDS_MAX, "budget of %zu calls exceeded (MCP_CALLS_MAX)",
                       (size_t)r->app->config.mcp_calls_max);
        return words;
    }
    if (arguments.n > CODE_VALUE_MAX)
        return "budget of 1 MiB for the arguments of a call exceeded";
    if (r->bytes + arguments.n > CODE_BYTES_MAX)
        return "budget of 16 MiB for arguments and values of a run exceeded";
    return NULL;
}

static void call(struct code_run *r, int64_t number, const struct cell_message *m)
{
    cleanup_with(buf_done) struct buf name = BUF_INIT(CODE_NAME_MAX);
    char words[WORDS_MAX];
    const char *over;
    struct code_call *c;

    if (!m->tool.p || m->tool.type != JSON_STRING || json_decode_string(m->tool, 0, &name) < 0 ||
        !name.p || strlen(name.p) != name.n || !is_allowed(r, name.p)) {
        (void)snprintf(words, sizeof words, "tool '%s' is not allowed in this run",
                       name.p && !name.failed ? name.p : "");
        refuse(r, number, "NotAllowed",
               "name it in allow_tools; tools.search() finds those that are", words);
        return;
    }
    over = over_budget(r, m->arguments, words);
    c = over ? NULL : calloc(1, sizeof *c);
    if (!c) {
        refuse(r, number, over ? "Budget" : "Busy", NULL, over ? over : "out of memory");
        return;
    }
    c->run = r;
    c->number = number;
    (void)snprintf(c->tool, sizeof c->tool, "%s", name.p);
    c->arguments = BUF_INIT(CODE_VALUE_MAX + 1);
    if (m->arguments.p)
        (void)buf_put(&c->arguments, m->arguments.p, m->arguments.n);
    r->calls++;
    r->bytes += c->arguments.n;
    TAILQ_INSERT_TAIL(&r->waiting, c, link);
    next(r);
}

static void give_up(struct code_run *r, int64_t number)
{
    struct code_call *c;

    TAILQ_FOREACH(c, &r->active, link)
    if (c->number == number) {
        call_drop(c);
        call_fail(c, "Cancelled", NULL, "the code gave it up");
        return;
    }
    TAILQ_FOREACH(c, &r->waiting, link)
    if (c->number == number) {
        TAILQ_REMOVE(&r->waiting, c, link);
        call_free(c);
        next(r);
        return;
    }
}

/* ---- searching ---- */

/* A tool as a search tells it. */
struct found {
    const char *name;
    struct json_value description, schema;
};

/* "area(width: integer, height?: integer)" */
static void write_signature(struct jw *w, const struct found *f)
{
    struct json_value properties = json_member(f->schema, "properties"),
                      required = json_member(f->schema, "required"), key, v, one;
    cleanup_with(buf_done) struct buf text = BUF_INIT(CODE_NOTED_MAX);
    const char *gap = "";
    size_t at = 0;

    (void)buf_printf(&text, "%s(", f->name);
    while (properties.p && json_object_next(properties, &at, &key, &v)) {
        struct json_value type = json_member(v, "type");
        bool needed = false, named = type.p && type.type == JSON_STRING;

        for (size_t in = 0; required.p && json_array_next(required, &in, &one);)
            needed = needed || (one.n == key.n && memcmp(one.p, key.p, key.n) == 0);
        (void)buf_printf(&text, "%s%.*s%s: %.*s", gap, (int)key.n - 2, key.p + 1, needed ? "" : "?",
                         named ? (int)type.n - 2 : 3, named ? type.p + 1 : "any");
        gap = ", ";
    }
    (void)buf_putc(&text, ')');
    jw_kv_bytes(w, "signature", text.p ? text.p : "", text.n);
}

/* Does each of the words stand in the name or in the description? */
static bool is_meant(const struct found *f, const char *words)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(f->description.n + 3 * CODE_NAME_MAX);
    char word[CODE_NAME_MAX + 1];

    (void)buf_printf(&text, "%s ", f->name);
    (void)!json_decode_string(f->description, JSON_LENIENT_UTF8, &text);
    while (*words) {
        size_t n;

        words += strspn(words, " ");
        n = strcspn(words, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, words);
        if (n > 0 && (!text.p || !strcasestr(text.p, word)))
            return false;
        words += n;
    }
    return true;
}

/* Those that may be called and are meant, at most CODE_FOUND_MAX. */
struct searching {
    const struct code_run *run;
    const char *words;
    struct jw w;
    size_t n;
};

static void look_at(struct searching *s, const struct found *f)
{
    if (s->n >= CODE_FOUND_MAX || !is_allowed(s->run, f->name) || !is_meant(f, s->words))
        return;
    s->n++;
    jw_object(&s->w);
    jw_kv_string(&s->w, "name", f->name);
    jw_key(&s->w, "description");
    jw_raw(&s->w, f->description.p, f->description.n);
    write_signature(&s->w, f);
    jw_object_end(&s->w);
}

static void look_at_all(struct searching *s)
{
    struct toolbox *t = s->run->app->mcp_side.tools;
    struct published **all = toolbox_sorted(t);
    const struct upstream_tool *remote;

    for (size_t i = 0; all && all[i]; i++)
        look_at(s, &(struct found){all[i]->name, all[i]->description, all[i]->schema});
    for (size_t i = 0; (remote = upstreams_at(t->upstreams, i)); i++)
        look_at(s, &(struct found){upstream_tool_name(remote), upstream_tool_description(remote),
                                   upstream_tool_schema(remote)});
    free(all);
}

static void search(struct code_run *r, int64_t number, const struct cell_message *m)
{
    cleanup_with(buf_done) struct buf words = BUF_INIT(WORDS_MAX), json = BUF_INIT(CODE_VALUE_MAX);
    struct searching s = {.run = r, .w = JW(&json)};

    if (m->text.p && m->text.type == JSON_STRING)
        (void)!json_decode_string(m->text, JSON_LENIENT_UTF8, &words);
    s.words = words.p ? words.p : "";
    jw_kv_bool(&s.w, "ok", true);
    jw_key(&s.w, "value");
    jw_array(&s.w);
    look_at_all(&s);
    jw_array_end(&s.w);
    if (json.failed)
        refuse(r, number, "Budget", "search for other words", "too much was found");
    else
        answer(r, number, json.p, json.n);
}

void code_run_asks(struct code_run *r, enum cell_ask what, const struct cell_message *m)
{
    int64_t number = 0;

    if (r->ended || cell_message_ask(m, &number) != what)
        return;
    if (what == CELL_ASKS_CALL)
        call(r, number, m);
    else if (what == CELL_ASKS_SEARCH)
        search(r, number, m);
    else if (what == CELL_GIVES_UP)
        give_up(r, number);
}

/* ---- the end ---- */

void code_run_end(struct code_run *r)
{
    struct code_call *c;

    r->ended = true;
    while ((c = TAILQ_FIRST(&r->active))) {
        call_drop(c);
        call_fail(c, "Cancelled", NULL, "the code has ended");
    }
    while ((c = TAILQ_FIRST(&r->waiting))) {
        TAILQ_REMOVE(&r->waiting, c, link);
        call_free(c);
    }
}

void code_run_write(const struct code_run *r, struct buf *out)
{
    code_journal_write(&r->journal, out);
}

void code_run_keep(struct code_run *r, const char *id)
{
    code_journal_keep(r->app->mcp_side.tools->journals, &r->journal, id);
}

void code_run_free(struct code_run *r)
{
    if (!r)
        return;
    code_run_end(r);
    code_journal_done(&r->journal);
    for (size_t i = 0; i < r->allowed_n; i++)
        free(r->allowed[i]);
    free(r->allowed);
    free(r);
}
