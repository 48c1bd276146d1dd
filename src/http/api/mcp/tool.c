/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/tools/toolbox.h"
#include "base/base64.h"
#include "base/clock.h"
#include "http/api/mcp/methods.h"

enum { WORDS_MAX = 1024, KNOWN_MAX = 512, US_PER_MS = 1000 };

static const char lost_words[] =
    "[the sandbox of this session was lost; files and variables are gone]\n";

/* Its arguments are a function's. */
static const struct shape any_shape = {NULL, 0, 0, NULL};
static const struct mcp_tool published_tool = {"published", &any_shape, 0, NULL};

const struct mcp_tool *mcp_tool_find(struct bytes name)
{
    for (const struct mcp_tool *t = mcp_tools; t->name; t++)
        if (strlen(t->name) == name.n && memcmp(t->name, name.p, name.n) == 0)
            return t;
    return NULL;
}

bool mcp_tool_is_reserved(const struct app *a, const char *name)
{
    (void)a;
    return mcp_tool_find((struct bytes){name, strlen(name)}) != NULL;
}

/* ---- results ---- */

void tool_result_done(struct tool_result *r)
{
    buf_done(&r->text);
    buf_done(&r->blocks);
    buf_done(&r->data);
    buf_done(&r->meta);
}

static struct jw begin_block(struct tool_result *r, const char *type)
{
    struct jw w = JW(&r->blocks);

    (void)buf_putc(&r->blocks, ',');
    jw_object(&w);
    jw_kv_string(&w, "type", type);
    r->rich = r->rich || strcmp(type, "text") != 0;
    return w;
}

void tool_add_text(struct tool_result *r, const char *p, size_t n)
{
    struct jw w = begin_block(r, "text");

    jw_kv_bytes(&w, "text", p, n);
    jw_object_end(&w);
}

void tool_add_image_base64(struct tool_result *r, const char *mime, const char *p, size_t n)
{
    struct jw w = begin_block(r, "image");

    jw_kv_bytes(&w, "data", p, n);
    jw_kv_string(&w, "mimeType", mime);
    jw_object_end(&w);
}

void tool_add_image(struct tool_result *r, const char *mime, const void *p, size_t n)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(BASE64_LENGTH(n) + 1);

    if (base64_encode(p, n, &text) < 0)
        r->blocks.failed = true;
    else
        tool_add_image_base64(r, mime, text.p, text.n);
}

void tool_add_link(struct tool_result *r, const char *uri, const char *name, const char *mime)
{
    struct jw w = begin_block(r, "resource_link");

    jw_kv_string(&w, "uri", uri);
    jw_kv_string(&w, "name", name);
    jw_kv_string(&w, "mimeType", mime);
    jw_object_end(&w);
}

static void write_result(const struct tool_call *t, struct tool_result *r, struct buf *out)
{
    struct jw w = JW(out), block = JW(out);

    mcp_result_begin(t->x, &w, r->meta.n > 0 ? r->meta.p : NULL);
    jw_key(&w, "content");
    (void)buf_putc(out, '[');
    jw_object(&block);
    jw_kv_string(&block, "type", "text");
    if (t->lost && buf_put(&r->text, "", 0) == 0) {
        cleanup_with(buf_done) struct buf text = BUF_INIT(r->text.max + sizeof lost_words);

        (void)buf_puts(&text, lost_words);
        (void)buf_put(&text, r->text.p ? r->text.p : "", r->text.n);
        jw_kv_bytes(&block, "text", text.p, text.n);
    } else {
        jw_kv_bytes(&block, "text", r->text.p ? r->text.p : "", r->text.n);
    }
    jw_object_end(&block);
    (void)buf_put(out, r->blocks.p ? r->blocks.p : "", r->blocks.n);
    (void)buf_putc(out, ']');
    w.comma = true;
    if (r->data.n > 0 && !r->rich) {
        jw_key(&w, "structuredContent");
        jw_raw(&w, r->data.p, r->data.n);
    }
    jw_kv_bool(&w, "isError", r->is_error);
    jw_object_end(&w);
}

void tool_answer(struct tool_call *t, struct tool_result *r)
{
    struct buf out = BUF_INIT(MCP_ANSWER_MAX);
    struct mcp_exchange *x = t->x;

    if (t->lost)
        t->session->lost = false;
    t->outcome = x->outcome = r->is_error ? MCP_TOOL_ERROR : MCP_OK;
    write_result(t, r, &out);
    out.failed = out.failed || r->text.failed || r->blocks.failed || r->data.failed;
    tool_result_done(r);
    tool_free(t);
    mcp_answer(x, &out);
}

void tool_answer_data(struct tool_call *t, struct tool_result *r)
{
    if (r->text.n == 0)
        (void)buf_put(&r->text, r->data.p, r->data.n);
    tool_answer(t, r);
}

void tool_answer_members(struct tool_call *t, const char *meta, struct buf *members)
{
    struct buf out = BUF_INIT(MCP_ANSWER_MAX);
    struct mcp_exchange *x = t->x;
    struct jw w = JW(&out);

    x->outcome = t->outcome;
    (void)buf_reserve(&out, members->n + MCP_META_MAX);
    mcp_result_begin(x, &w, meta);
    jw_raw(&w, members->p ? members->p : "", members->n);
    jw_object_end(&w);
    out.failed = out.failed || members->failed;
    buf_done(members);
    tool_free(t);
    mcp_answer(x, &out);
}

void tool_refuse(struct tool_call *t, const char *hint, const char *fmt, ...)
{
    struct tool_result r = TOOL_RESULT;
    char words[WORDS_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    (void)buf_puts(&r.text, words);
    if (hint)
        (void)buf_printf(&r.text, "\n[hint] %s", hint);
    r.is_error = true;
    tool_answer(t, &r);
}

void tool_refuse_err(struct tool_call *t, const char *hint, const struct err *e)
{
    tool_refuse(t, hint, "%s", e->text);
}

/* ---- calls ---- */

/* Never its arguments. */
static void tell(const struct tool_call *t)
{
    struct app *a = t->x->app;
    uint64_t took_us = clock_us() - t->x->began_us;

    mcp_count_tool(&a->mcp_side.sessions->metrics, t->tool->name, took_us);
    log_event(&a->log, LOG_INFO, "tool_called", LOG_STR("tool", t->tool->name),
              LOG_STR("era", t->x->modern ? "modern" : "handshake"), LOG_STR("run", t->run),
              LOG_STR("outcome", mcp_outcome_name(t->outcome)),
              LOG_INT("ms", (int64_t)(took_us / US_PER_MS)));
}

void tool_free(struct tool_call *t)
{
    tell(t);
    activity_end(&t->activity);
    shaping_done(&t->shaping);
    free(t->arguments);
    free(t);
}

void tool_wait(struct tool_call *t, const struct mcp_worker *w)
{
    mcp_wait(t->x, w);
}

static void on_drop(struct activity *a)
{
    struct tool_call *t = (struct tool_call *)((char *)a - offsetof(struct tool_call, activity));

    t->x->request.cancel(&t->x->request);
}

void tool_wait_in(struct tool_call *t, struct persistent *home, const struct mcp_worker *w)
{
    activity_begin(home, &t->activity, on_drop);
    mcp_wait(t->x, w);
}

/* A wrong argument names itself; then the arguments there are. */
static void refuse_arguments(struct tool_call *t)
{
    const struct shape *s = t->tool->shape;
    char words[SHAPE_WORDS_MAX], known[KNOWN_MAX] = "the arguments are: ";
    size_t n = strlen(known);

    for (size_t i = 0; i < s->n && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "",
                              s->fields[i].name);
    shape_words(&t->shaping, words);
    tool_refuse(t, s->n > 0 ? known : "it takes no arguments", "%s: %s", t->tool->name, words);
}

/* Returns NULL when it has answered. */
static struct tool_call *tool_new(struct mcp_exchange *x, const struct mcp_tool *tool,
                                  struct mcp_session *session)
{
    struct tool_call *t = calloc(1, sizeof *t);

    if (t) {
        t->arguments = calloc(1, tool->size > 0 ? tool->size : 1);
        if (t->arguments) {
            t->x = x;
            t->tool = tool;
            t->session = session;
            t->lost = session && session->lost;
            if (x->call)
                (void)http_query(x->call, "sandbox", t->place, sizeof t->place);
            return t;
        }
        free(t);
    }
    mcp_fail(x, RPC_INTERNAL, NULL, "out of memory");
    return NULL;
}

void mcp_tool_call(struct mcp_exchange *x, struct mcp_session *session)
{
    struct json_value name = json_member(x->message.params, "name"),
                      arguments = json_member(x->message.params, "arguments");
    const struct published *published;
    const struct mcp_tool *tool;
    struct tool_call *t;
    char text[WORDS_MAX];

    if (!name.p || name.type != JSON_STRING || name.n >= sizeof text ||
        (arguments.p && arguments.type != JSON_OBJECT)) {
        mcp_fail(x, RPC_INVALID_PARAMS, NULL, "tools/call needs a name and an object of arguments");
        return;
    }
    tool = mcp_tool_find((struct bytes){name.p + 1, name.n - 2});
    published = tool ? NULL : toolbox_tool(x->app->mcp_side.tools, name.p + 1, name.n - 2);
    if (tool ? !mcp_tool_is_offered(x->app, tool->name) : !published) {
        mcp_fail(x, RPC_INVALID_PARAMS, NULL, "Unknown tool: %.*s", (int)name.n - 2, name.p + 1);
        return;
    }
    t = tool_new(x, tool ? tool : &published_tool, session);
    if (!t)
        return;
    if (!arguments.p)
        arguments = (struct json_value){JSON_OBJECT, "{}", 2};
    shaping_init(&t->shaping, x->app);
    if (published)
        tool_call_published(t, published, arguments);
    else if (shaping_reserve(&t->shaping, arguments.n) < 0 ||
             shape_value(tool->shape, arguments, NULL, t->arguments, &t->shaping) < 0)
        refuse_arguments(t);
    else
        tool->call(t);
}
