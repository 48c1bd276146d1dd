/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/methods.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/mcp/version.h"
#include "http/api/mcp/resources.h"
#include "http/api/mcp/tool.h"
#include "http/api/mcp/tool_list.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

enum {
    LIST_TTL_MS = 60000,
    TEMPLATES_TTL_MS = 3600000,
    PERMANENT_MAX = 64 << 10,
};

static const char instructions[] =
    "Runs code and commands in isolated Linux sandboxes without network. Start with run_code or "
    "run_command; the result names a sandbox handle. Pass it as `sandbox` in later calls to keep "
    "files (/workspace), variables and processes. Sandboxes are deleted after %llu idle minutes; "
    "when a handle is unknown, go on without it and rebuild what you need. Output is cut to %llu "
    "characters per stream; the whole is kept in a file that the result names. Save pictures to "
    "/workspace to see them. Functions can become tools with define_tools.";

void mcp_write_server(struct jw *w)
{
    jw_object(w);
    jw_kv_string(w, "name", "sandbox-executor");
    jw_kv_string(w, "title", "Sandbox Executor");
    jw_kv_string(w, "version", SBX_VERSION);
    jw_object_end(w);
}

static void write_capabilities(struct jw *w, const struct app *a)
{
    char text[sizeof instructions + 64];

    jw_key(w, "capabilities");
    jw_object(w);
    jw_key(w, "tools");
    jw_object(w);
    jw_kv_bool(w, "listChanged", true);
    jw_object_end(w);
    jw_key(w, "resources");
    jw_object(w);
    jw_object_end(w);
    jw_object_end(w);
    (void)snprintf(text, sizeof text, instructions,
                   (unsigned long long)a->config.mcp_sandbox_idle_s / 60,
                   (unsigned long long)a->config.mcp_output_chars);
    jw_kv_string(w, "instructions", text);
}

void mcp_write_initialized(struct jw *w, const struct app *a, const char *version)
{
    jw_object(w);
    jw_kv_string(w, "protocolVersion", version);
    write_capabilities(w, a);
    jw_key(w, "serverInfo");
    mcp_write_server(w);
    jw_object_end(w);
}

static void write_versions(struct jw *w, const char *key)
{
    jw_key(w, key);
    jw_array(w);
    for (const char *const *v = mcp_versions; *v; v++)
        jw_string(w, *v);
    jw_array_end(w);
}

void mcp_write_supported(struct buf *out, const char *requested)
{
    struct jw w = JW(out);

    jw_object(&w);
    write_versions(&w, "supported");
    if (requested)
        jw_kv_string(&w, "requested", requested);
    jw_object_end(&w);
}

/* How long a client of the modern era may keep a list. */
static void write_caching(const struct mcp_exchange *x, struct jw *w, int64_t ttl_ms)
{
    if (!x->modern)
        return;
    jw_kv_int(w, "ttlMs", ttl_ms);
    jw_kv_string(w, "cacheScope", "private");
}

/* There is one page of each list, so no cursor is one of ours. False: answered. */
static bool check_cursor(struct mcp_exchange *x)
{
    if (!json_member(x->message.params, "cursor").p)
        return true;
    mcp_fail(x, RPC_INVALID_PARAMS, NULL, "Invalid cursor");
    return false;
}

/* ---- the protocol itself ---- */

static void ping(struct mcp_exchange *x, struct mcp_session *session)
{
    struct buf out = BUF_INIT(MCP_META_MAX);

    (void)session;
    (void)buf_puts(&out, "{}");
    mcp_answer(x, &out);
}

static void discover(struct mcp_exchange *x, struct mcp_session *session)
{
    struct buf out = BUF_INIT(PERMANENT_MAX);
    struct jw w = JW(&out);

    (void)session;
    mcp_result_begin(x, &w, NULL);
    write_versions(&w, "supportedVersions");
    write_capabilities(&w, x->app);
    write_caching(x, &w, LIST_TTL_MS);
    jw_object_end(&w);
    mcp_answer(x, &out);
}

/* ---- tools ---- */

bool mcp_list_has(const char *list, const char *name, size_t n)
{
    for (const char *p = list; *p; p += *p == ',') {
        size_t k;

        p += strspn(p, " ");
        k = strcspn(p, ", ");
        if (k == n && memcmp(p, name, n) == 0)
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

bool mcp_tool_is_offered(const struct app *a, const char *name)
{
    if (strcmp(name, "define_tools") == 0 && !a->config.mcp_define_tools)
        return false;
    return !a->config.mcp_tools[0] || mcp_list_has(a->config.mcp_tools, name, strlen(name));
}

static void tools_list(struct mcp_exchange *x, struct mcp_session *session)
{
    struct buf out = BUF_INIT(MCP_ANSWER_MAX);
    struct jw w = JW(&out);

    (void)session;
    mcp_result_begin(x, &w, NULL);
    if (!mcp_write_tools(x, &w)) {
        buf_done(&out);
        mcp_fail(x, RPC_INVALID_PARAMS, NULL, "Invalid cursor");
        return;
    }
    write_caching(x, &w, LIST_TTL_MS);
    jw_object_end(&w);
    mcp_answer(x, &out);
}

/* ---- resources ---- */

static void resources_list(struct mcp_exchange *x, struct mcp_session *session)
{
    struct buf out = BUF_INIT(MCP_ANSWER_MAX);
    struct jw w = JW(&out);

    (void)session;
    if (!check_cursor(x))
        return;
    mcp_result_begin(x, &w, NULL);
    mcp_write_resources(x, &w);
    write_caching(x, &w, 0);
    jw_object_end(&w);
    mcp_answer(x, &out);
}

static void templates_list(struct mcp_exchange *x, struct mcp_session *session)
{
    struct buf out = BUF_INIT(PERMANENT_MAX);
    struct jw w = JW(&out);

    (void)session;
    if (!check_cursor(x))
        return;
    mcp_result_begin(x, &w, NULL);
    mcp_write_resource_templates(&w);
    write_caching(x, &w, TEMPLATES_TTL_MS);
    jw_object_end(&w);
    mcp_answer(x, &out);
}

static void resources_read(struct mcp_exchange *x, struct mcp_session *session)
{
    (void)session;
    mcp_resource_read(x);
}

/* ---- the table ---- */

enum { HANDSHAKE = BIT(0), MODERN = BIT(1) };

/* clang-format off */
static const struct method {
    const char *name;
    unsigned eras;
    void (*fn)(struct mcp_exchange *x, struct mcp_session *session);
} methods[] = {
    {"ping",                     HANDSHAKE,          ping},
    {"server/discover",          MODERN,             discover},
    {"tools/list",               HANDSHAKE | MODERN, tools_list},
    {"tools/call",               HANDSHAKE | MODERN, mcp_tool_call},
    {"resources/list",           HANDSHAKE | MODERN, resources_list},
    {"resources/templates/list", HANDSHAKE | MODERN, templates_list},
    {"resources/read",           HANDSHAKE | MODERN, resources_read},
};
/* clang-format on */

void mcp_method(struct mcp_exchange *x, struct mcp_session *session)
{
    unsigned era = x->modern ? MODERN : HANDSHAKE;
    char words[RPC_WORDS_MAX];

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (methods[i].eras & era && strcmp(methods[i].name, x->message.method) == 0) {
            methods[i].fn(x, session);
            return;
        }
    (void)snprintf(words, sizeof words, "Method not found: %s", x->message.method);
    mcp_fail_with(x, x->modern ? 404 : 200, RPC_NO_METHOD, NULL, words);
}
