/* SPDX-License-Identifier: MIT */
/* call_function, and published tools: one function of one piece of code, in a fresh sandbox. */
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call.h"
#include "app/tools/toolbox.h"
#include "app/tools/upstream.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "http/api/mcp/function_result.h"
#include "http/api/mcp/tools.h"

enum { TIMEOUT_S = 30, TIMEOUT_MAX_S = 300, ESCAPE_FACTOR = 6, BODY_ROOM = 4096 };

static const char *const languages[] = {"python", "javascript", "ruby", "php",
                                        "perl",   "c",          "cpp",  NULL};

/* clang-format off */
#define AT(member) offsetof(struct tool_call_function, member)
static const struct shape_field fields[] = {
    {"tool", SHAPE_STRING, 0, AT(tool)},
    {"code", SHAPE_STRING, 0, AT(code)},
    {"language", SHAPE_CHOICE, 0, AT(language), .words = languages},
    {"function", SHAPE_STRING, 0, AT(function)},
    {"arguments", SHAPE_RAW, 0, AT(arguments), .accepts = BIT(JSON_OBJECT)},
    {"timeout_seconds", SHAPE_INT, 0, AT(timeout_s), 1, TIMEOUT_MAX_S},
};
#undef AT
const struct shape tool_call_function_shape = {fields, ARRAY_LEN(fields), 0, NULL};
/* clang-format on */

/* A call under way. */
struct function_run {
    struct tool_call *t;
    struct call *call;
    char meta[MCP_META_MAX]; /* members of the _meta of its result, beside its run */
};

static void on_stop(void *user)
{
    struct function_run *f = user;
    struct tool_call *t = f->t;

    call_abandon(f->call);
    free(f);
    tool_free(t);
}

static void on_progress(void *user, const char *json, size_t n)
{
    struct function_run *f = user;
    struct json_value v;
    struct err e;

    if (json_parse(json, n, 0, &v, &e) == 0)
        mcp_own_progress(f->t->x, v);
}

static void on_done(void *user, const struct call_result *r, struct buf *members)
{
    struct function_run *f = user;
    struct tool_call *t = f->t;
    char meta[MCP_META_MAX + sizeof f->meta];

    (void)snprintf(meta, sizeof meta, "\"io.sandbox-executor/run\":\"%s\"%s", r->id, f->meta);
    free(f);
    t->outcome = r->outcome.status == CALL_SUCCESS ? MCP_OK : MCP_TOOL_ERROR;
    (void)snprintf(t->run, sizeof t->run, "%s", r->id);
    tool_answer_members(t, meta, members);
}

static void on_refused(void *user, const struct err *e)
{
    struct function_run *f = user;
    struct tool_call *t = f->t;

    free(f);
    tool_refuse_err(t,
                    e->kind == ERR_BUSY ? "try again in a few seconds"
                                        : "define_tools without arguments lists the tools that "
                                          "were defined, with the schemas of their arguments",
                    e);
}

/* The body of a call, which is taken, or a published tool and its arguments. */
static void run(struct tool_call *t, struct buf *body, const struct published_order *p)
{
    struct function_run *f = calloc(1, sizeof *f);
    struct app *a = t->x->app;
    struct function_order order = {
        .text = body,
        .request_id = t->x->call ? http_request(t->x->call)->id : "",
        .asked_us = clock_us(),
        .render = mcp_function_result,
        .done = on_done,
        .refused = on_refused,
        .progress = on_progress,
        .shown_max = a->config.mcp_output_chars,
        .user = f,
    };
    struct err e;

    if (!f) {
        if (body)
            buf_done(body);
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    f->t = t;
    if (p)
        (void)snprintf(f->meta, sizeof f->meta,
                       ",\"io.sandbox-executor/tool\":{\"bundle\":\"%s\",\"version\":%lld,"
                       "\"sha256\":\"%s\"}",
                       p->tool->bundle->is.name.p, (long long)p->tool->bundle->is.version,
                       p->tool->bundle->is.sha256.p);
    if ((p ? published_call(a->mcp_side.tools, p, &order, &f->call, &e)
           : app_call(a, &order, &f->call, &e)) < 0) {
        on_refused(f, &e);
        return;
    }
    tool_wait(t, &(struct mcp_worker){.stop = on_stop, .user = f});
}

void tool_call_published(struct tool_call *t, const struct published *tool,
                         struct json_value arguments)
{
    run(t, NULL, &(struct published_order){.tool = tool, .arguments = arguments});
}

/* Arguments go by name only: a value of theirs is never taken for a place. */
static void write_body(struct buf *body, const struct tool_call_function *a)
{
    struct jw w = JW(body);

    jw_object(&w);
    jw_kv_string(&w, "language", languages[a->language]);
    jw_kv_bytes(&w, "code", a->code.p, a->code.n);
    if (a->function.p)
        jw_kv_bytes(&w, "functionName", a->function.p, a->function.n);
    if (a->arguments.p) {
        jw_key(&w, "kwargs");
        jw_raw(&w, a->arguments.p, a->arguments.n);
    }
    jw_kv_int(&w, "timeout", a->timeout_s > 0 ? a->timeout_s : TIMEOUT_S);
    jw_object_end(&w);
}

/* ---- upstreams ---- */

struct remote_run {
    struct tool_call *t;
    struct upstream_call *call;
};

static void on_remote_stop(void *user)
{
    struct remote_run *f = user;
    struct tool_call *t = f->t;

    upstream_cancel(f->call);
    free(f);
    tool_free(t);
}

/* The value is the last thing in its members. */
static void on_remote(void *user, const struct buf *members, bool ok, size_t value_n)
{
    struct remote_run *f = user;
    struct tool_call *t = f->t;
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);
    const char *value = members->p + members->n - value_n;
    size_t most = t->x->app->config.mcp_output_chars;

    free(f);
    if (!ok) {
        tool_result_done(&r);
        tool_refuse(t, "correct the arguments, or try again later", "%.*s", (int)members->n,
                    members->p);
        return;
    }
    (void)buf_put(&r.text, value, value_n > most ? utf8_truncate(value, value_n, most) : value_n);
    jw_object(&w);
    jw_key(&w, "result");
    if (value_n > most) {
        (void)buf_printf(&r.text, "… [cut; the whole has %zu bytes]", value_n);
        jw_null(&w);
    } else {
        jw_raw(&w, value, value_n);
    }
    jw_object_end(&w);
    tool_answer(t, &r);
}

static void call_upstream(struct tool_call *t, struct upstream_tool *tool,
                          struct json_value arguments)
{
    struct remote_run *f = calloc(1, sizeof *f);
    struct err e;

    if (!f) {
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    f->t = t;
    if (upstream_call(tool, arguments, on_remote, f, &f->call, &e) == 0) {
        tool_wait(t, &(struct mcp_worker){.stop = on_remote_stop, .user = f});
        return;
    }
    free(f);
    tool_refuse_err(t, e.kind == ERR_BUSY ? "try again in a minute" : "correct the arguments", &e);
}

static void call_by_name(struct tool_call *t, const struct tool_call_function *a)
{
    struct toolbox *all = t->x->app->mcp_side.tools;
    const struct published *tool = toolbox_tool(all, a->tool.p, a->tool.n);
    struct upstream_tool *remote = upstreams_tool(all->upstreams, a->tool.p, a->tool.n);

    if (a->code.p)
        tool_refuse(t, "leave out one of them", "give tool or code, not both");
    else if (!tool && remote)
        call_upstream(t, remote, a->arguments);
    else if (!tool)
        tool_refuse(t, "define_tools without arguments lists them",
                    "there is no defined tool '%.64s'", a->tool.p);
    else
        run(t, NULL,
            &(struct published_order){
                .tool = tool, .arguments = a->arguments, .most_s = a->timeout_s});
}

static void call_code(struct tool_call *t, const struct tool_call_function *a)
{
    struct buf body =
        BUF_INIT(ESCAPE_FACTOR * (a->code.n + a->function.n) + a->arguments.n + BODY_ROOM);

    write_body(&body, a);
    if (body.failed) {
        buf_done(&body);
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    run(t, &body, NULL);
}

void tool_call_function(struct tool_call *t)
{
    const struct tool_call_function *a = t->arguments;

    if (a->tool.p)
        call_by_name(t, a);
    else if (a->code.p)
        call_code(t, a);
    else
        tool_refuse(t, "give tool, or code and a function", "tool or code is needed");
}
