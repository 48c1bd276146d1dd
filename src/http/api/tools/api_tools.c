/* SPDX-License-Identifier: MIT */
/* /v1/tools: bundles of functions published, listed, looked at, restored, removed and called. */
#include <stdlib.h>
#include <string.h>

#include "app/function/call.h"
#include "app/tools/code_run.h"
#include "app/tools/toolbox.h"
#include "base/clock.h"
#include "base/jw.h"
#include "http/api/functions/function_json.h"
#include "http/api/mcp/tool.h"
#include "http/api/mcp/tool_list.h"
#include "http/api/problem.h"
#include "http/api/tools/tools_api.h"
#include "http/server/reply.h"

enum { MIB = 20 /* bits */, QUERY_MAX = 24, LIST_ROOM = 1 << 20, ESCAPE_FACTOR = 6 };

struct publish_body {
    struct bytes language, code, prefix;
    struct shape_strings include, exclude, env;
    int64_t timeout_s, memory_mb, expected_version;
};
struct restore_body {
    int64_t version;
};
struct call_body {
    struct bytes tool;
    struct json_value arguments;
};

/* clang-format off */
#define AT(member) offsetof(struct publish_body, member)
static const struct shape_field publish_fields[] = {
    {"language", SHAPE_STRING, SHAPE_REQUIRED, AT(language),
     .help = "python, javascript (js), ruby, php, c or cpp (c++)"},
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code),
     .help = "source text; its public functions become tools, with their docstrings and annotations"},
    {"include", SHAPE_LIST, 0, AT(include), .max = BUNDLE_LIST_MAX, .help = "only these functions"},
    {"exclude", SHAPE_LIST, 0, AT(exclude), .max = BUNDLE_LIST_MAX, .help = "not these functions"},
    {"prefix", SHAPE_STRING, 0, AT(prefix), .help = "in front of each tool's name"},
    {"env", SHAPE_STRINGS, 0, AT(env), .help = "environment variables of each call"},
    {"timeout", SHAPE_INT, 0, AT(timeout_s), 1, BUNDLE_TIMEOUT_MAX_S, .help = "seconds of a call; 30"},
    {"memory_mb", SHAPE_INT, 0, AT(memory_mb), 1, INT32_MAX, .help = "memory of a call, at most what is configured"},
    {"expected_version", SHAPE_INT, 0, AT(expected_version), 0, INT32_MAX,
     .help = "the version that it replaces, 0 for none; another one is answered with 409"},
};
#undef AT
static const struct shape_field restore_fields[] = {
    {"version", SHAPE_INT, SHAPE_REQUIRED, offsetof(struct restore_body, version), 1, INT32_MAX,
     .help = "one of those that are kept"},
};
#define AT(member) offsetof(struct call_body, member)
static const struct shape_field call_fields[] = {
    {"tool", SHAPE_STRING, SHAPE_REQUIRED, AT(tool), .help = "its name"},
    {"arguments", SHAPE_RAW, 0, AT(arguments), .accepts = BIT(JSON_OBJECT), .help = "by name"},
};
#undef AT
/* clang-format on */
const struct shape tools_publish_shape = {publish_fields, ARRAY_LEN(publish_fields), SHAPE_NULLS,
                                          "ToolsPublish"};
const struct shape tools_restore_shape = {restore_fields, ARRAY_LEN(restore_fields), SHAPE_NULLS,
                                          "ToolsRestore"};
const struct shape tools_call_shape = {call_fields, ARRAY_LEN(call_fields), SHAPE_NULLS,
                                       "ToolCall"};

/* ---- answers ---- */

static void write_tools(struct jw *w, const struct bundle *b)
{
    jw_key(w, "tools");
    jw_array(w);
    for (size_t i = 0; i < b->tools_n; i++)
        mcp_write_published(w, &b->tools[i]);
    jw_array_end(w);
}

static void write_names(struct jw *w, const struct bundle *b)
{
    jw_key(w, "tools");
    jw_array(w);
    for (size_t i = 0; i < b->tools_n; i++)
        jw_string(w, b->tools[i].name);
    jw_array_end(w);
}

static void write_facts(struct jw *w, const struct bundle *b)
{
    const struct bundle_members *m = &b->is;

    jw_kv_int(w, "version", m->version);
    jw_kv_bytes(w, "language", m->language.p, m->language.n);
    jw_kv_bytes(w, "sha256", m->sha256.p, m->sha256.n);
    jw_kv_bytes(w, "created_at", m->created_at.p, m->created_at.n);
    jw_kv_bytes(w, "by", m->by.p, m->by.n);
}

static void reply_bundle(struct http_call *c, int status, const struct bundle *b, bool source)
{
    struct buf body = BUF_INIT(b->text.n * ESCAPE_FACTOR + LIST_ROOM);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_bytes(&w, "bundle", b->is.name.p, b->is.name.n);
    write_facts(&w, b);
    jw_kv_int(&w, "timeout", b->is.timeout_s);
    write_tools(&w, b);
    jw_key(&w, "warnings");
    jw_raw(&w, b->is.warnings.p, b->is.warnings.n);
    if (source)
        jw_kv_bytes(&w, "code", b->is.code.p, b->is.code.n);
    jw_object_end(&w);
    http_reply_json(c, status, &body);
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->type)
        reply_problem(c, &(struct reply_problem){
                             .status = 409,
                             .code = "Executor.Conflict",
                             .description = "Another bundle or version is there",
                             .error_detail = e->text,
                             .solution = "Rename the function, remove the other bundle, or publish "
                                         "over the version that is there.",
                         });
    else if (e->kind == ERR_BUSY)
        api_reply_full(c, e, API_RETRY_AFTER);
    else
        api_reply_wrong(c, e);
}

/* ---- changes ---- */

/* One that is under way. */
struct changing {
    struct http_call *call;
    struct publication *publication;
};

static void on_gone(void *user)
{
    struct changing *w = user;

    publication_leave(w->publication);
    free(w);
}

static void on_done(void *user, const struct bundle *b, bool made, const struct err *why)
{
    struct changing *w = user;
    struct http_call *c = w->call;

    free(w);
    http_on_gone(c, NULL, NULL);
    if (why)
        reply_refused(c, why);
    else if (b)
        reply_bundle(c, made ? 201 : 200, b, false);
    else
        http_reply(c, 204, NULL, NULL);
}

static struct changing *changing_new(struct http_call *c)
{
    struct changing *w = calloc(1, sizeof *w);

    if (w)
        w->call = c;
    else
        reply_status(c, 503);
    return w;
}

/* It was begun, or *e says why not. */
static void follow(struct changing *w, int begun, const struct err *e)
{
    struct http_call *c = w->call;

    if (begun == 0) {
        http_on_gone(c, on_gone, w);
        return;
    }
    free(w);
    reply_refused(c, e);
}

static struct bytes bundle_of(const struct http_call *c)
{
    const char *name = http_request(c)->param[0];

    return (struct bytes){name, strlen(name)};
}

void api_tools_publish(struct http_call *c)
{
    struct publish_body b = {.expected_version = -1};
    cleanup_with(shaping_done) struct shaping s;
    struct app *a = http_app(c);
    struct publish_order o;
    struct changing *w;
    struct err e;

    if (!dialect_decode(c, &tools_publish_shape, &b, &s))
        return;
    if ((uint64_t)b.memory_mb << MIB > app_limits(a, 0).memory_max) {
        (void)err_set(&e, ERR_CALLER, "memory_mb: at most %llu",
                      (unsigned long long)(app_limits(a, 0).memory_max >> MIB));
        api_reply_wrong(c, &e);
        return;
    }
    w = changing_new(c);
    o = (struct publish_order){
        .bundle = bundle_of(c),
        .language = b.language,
        .code = b.code,
        .prefix = b.prefix,
        .include = b.include,
        .exclude = b.exclude,
        .env = b.env,
        .timeout_s = b.timeout_s,
        .memory_mb = b.memory_mb,
        .expected_version = b.expected_version,
        .by = "rest",
        .reserved = mcp_tool_is_reserved,
        .done = on_done,
        .user = w,
    };
    if (w)
        follow(w, toolbox_publish(a->mcp_side.tools, &o, &w->publication, &e), &e);
}

void api_tools_restore(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s;
    struct restore_body b = {0};
    struct change_order o;
    struct changing *w;
    struct err e;

    if (!dialect_decode(c, &tools_restore_shape, &b, &s))
        return;
    w = changing_new(c);
    o = (struct change_order){.bundle = bundle_of(c),
                              .version = b.version,
                              .by = "rest",
                              .reserved = mcp_tool_is_reserved,
                              .done = on_done,
                              .user = w};
    if (w)
        follow(w, toolbox_restore(http_app(c)->mcp_side.tools, &o, &w->publication, &e), &e);
}

void api_tools_delete(struct http_call *c)
{
    struct changing *w = changing_new(c);
    const struct change_order o = {
        .bundle = bundle_of(c), .by = "rest", .done = on_done, .user = w};
    struct err e;

    if (w)
        follow(w, toolbox_remove(http_app(c)->mcp_side.tools, &o, &w->publication, &e), &e);
}

/* ---- looking ---- */

static bool wants_source(const struct http_call *c)
{
    char text[QUERY_MAX];

    return http_query(c, "source", text, sizeof text) && strcmp(text, "true") == 0;
}

static void on_looked(void *user, const struct bundle *b, const struct err *why)
{
    struct http_call *c = user;

    if (b)
        reply_bundle(c, 200, b, wants_source(c));
    else
        http_reply_error(c, why);
}

void api_tools_get(struct http_call *c)
{
    struct bytes name = bundle_of(c);
    struct toolbox *t = http_app(c)->mcp_side.tools;
    const struct bundle *b = toolbox_bundle(t, name.p, name.n);
    char text[QUERY_MAX];
    int64_t version = 0;
    char *end = NULL;
    struct err e;

    if (http_query(c, "version", text, sizeof text)) {
        version = strtoll(text, &end, 10);
        if (end == text || *end || version < 1) {
            (void)err_set(&e, ERR_CALLER, "version: a number from 1 on");
            api_reply_wrong(c, &e);
            return;
        }
    }
    if (!b) {
        (void)err_set(&e, ERR_ABSENT, "there is no bundle '%.64s'", name.p);
        http_reply_error(c, &e);
    } else if (version == 0 || version == b->is.version) {
        reply_bundle(c, 200, b, wants_source(c));
    } else if (toolbox_look(t, name, version, on_looked, c, &e) < 0) {
        http_reply_error(c, &e);
    }
}

static size_t list_room(const struct toolbox *t)
{
    const struct bundle *b;
    size_t n = LIST_ROOM;

    TAILQ_FOREACH(b, &t->bundles, link)
    n += b->is.tools.n;
    return n;
}

void api_tools_list(struct http_call *c)
{
    const struct toolbox *t = http_app(c)->mcp_side.tools;
    struct published **all = toolbox_sorted(t);
    struct buf body = BUF_INIT(list_room(t));
    struct jw w = JW(&body);
    const struct bundle *b;

    jw_object(&w);
    jw_key(&w, "bundles");
    jw_array(&w);
    TAILQ_FOREACH(b, &t->bundles, link)
    {
        jw_object(&w);
        jw_kv_bytes(&w, "name", b->is.name.p, b->is.name.n);
        write_facts(&w, b);
        write_names(&w, b);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_key(&w, "tools");
    jw_array(&w);
    for (size_t i = 0; all && all[i]; i++)
        mcp_write_published(&w, all[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    free(all);
    http_reply_json(c, 200, &body);
}

/* ---- calling ---- */

struct calling {
    struct http_call *http;
    struct call *call;
};

static void on_call_done(void *user, const struct call_result *r, struct buf *json)
{
    struct calling *w = user;

    (void)r;
    http_on_gone(w->http, NULL, NULL);
    http_reply_json(w->http, 200, json);
    free(w);
}

static void on_call_refused(void *user, const struct err *e)
{
    struct calling *w = user;

    http_on_gone(w->http, NULL, NULL);
    reply_refused(w->http, e);
    free(w);
}

static void on_call_gone(void *user)
{
    struct calling *w = user;

    call_abandon(w->call);
    free(w);
}

static void call(struct http_call *c, const struct published *tool, struct json_value arguments)
{
    struct calling *w = calloc(1, sizeof *w);
    struct function_order o = {.request_id = http_request(c)->id,
                               .asked_us = clock_us(),
                               .render = call_result_json,
                               .done = on_call_done,
                               .refused = on_call_refused,
                               .user = w};
    struct err e;

    if (!w) {
        reply_status(c, 503);
        return;
    }
    w->http = c;
    if (published_call(http_app(c)->mcp_side.tools,
                       &(struct published_order){.tool = tool, .arguments = arguments}, &o,
                       &w->call, &e) == 0) {
        http_on_gone(c, on_call_gone, w);
        return;
    }
    free(w);
    reply_refused(c, &e);
}

/* ---- calls of code ---- */

void api_tool_calls(struct http_call *c)
{
    const char *id = http_request(c)->param[0];
    struct bytes rows = code_journal_find(http_app(c)->mcp_side.tools->journals, id);
    struct buf body = BUF_INIT(rows.n + LIST_ROOM);
    struct jw w = JW(&body);
    struct err e;

    if (!rows.n) {
        (void)err_set(&e, ERR_ABSENT, "run '%.64s' has called no tools, or is not kept", id);
        http_reply_error(c, &e);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "execution_id", id);
    jw_key(&w, "tool_calls");
    jw_raw(&w, rows.p, rows.n);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

void api_tools_call(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s;
    struct call_body b = {0};
    const struct published *tool;
    struct err e;

    if (!dialect_decode(c, &tools_call_shape, &b, &s))
        return;
    tool = toolbox_tool(http_app(c)->mcp_side.tools, b.tool.p, b.tool.n);
    if (tool) {
        call(c, tool, b.arguments);
        return;
    }
    (void)err_set(&e, ERR_ABSENT, "there is no tool '%.64s'", b.tool.p);
    http_reply_error(c, &e);
}
