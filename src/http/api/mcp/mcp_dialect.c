/* SPDX-License-Identifier: MIT */
/* The Model Context Protocol: the rows of the family. */
#include "http/api/mcp/mcp.h"
#include "http/api/problem.h"
#include "http/server/reply.h"

static uint64_t body_max(const struct app *a)
{
    return a->config.body_max_mcp;
}

/* clang-format off */
#define SESSION "Mcp-Session-Id: $SESSION"
#define AT(path) \
    {"POST",    path, mcp_post,    ROUTE_AUTH | ROUTE_BODY, "mcp", "one message of the Model Context Protocol; answered as JSON or as events", body_max, .request = "McpRequest", \
     .example = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"curl\", \"version\": \"1\"}}}", \
     .answer = {{200, "McpMessage"}, {202}}}, \
    {"GET",     path, mcp_get,     ROUTE_AUTH | ROUTE_STREAM | ROUTE_FOLLOW, "mcp", "notifications of a session, as events", \
     .header = SESSION, .answer = {{200, NULL, "text/event-stream"}}}, \
    {"DELETE",  path, mcp_delete,  ROUTE_AUTH, "mcp", "end a session", \
     .header = SESSION, .answer = {{204}}}, \
    {"OPTIONS", path, mcp_options, 0, "mcp", "what a web page may send", .answer = {{204}}}

static const struct route mcp_rows[] = {
    AT("/mcp"),
};

static const struct route mcp_other_rows[] = {
    AT("/mcp/"),
    {"GET", "/.well-known/oauth-protected-resource",       mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
    {"GET", "/.well-known/oauth-protected-resource/mcp",   mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
    {"GET", "/.well-known/oauth-authorization-server",     mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
    {"GET", "/.well-known/oauth-authorization-server/mcp", mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
    {"GET", "/.well-known/openid-configuration",           mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
    {"GET", "/.well-known/openid-configuration/mcp",       mcp_well_known, 0, "mcp", "none: there is no authorization server", .answer = {{404}}},
};
/* clang-format on */

static void refuse(struct http_call *c, int status, const char *words)
{
    if (status != 401) {
        mcp_refuse(c, status, words ? words : reply_reason(status));
        return;
    }
    problem_refuse(c, status, words);
}

static void error(struct http_call *c, const struct err *e)
{
    mcp_refuse(c, reply_status_of(e), e->text);
}

static void issues(struct http_call *c, const struct shaping *s)
{
    char words[SHAPE_WORDS_MAX];

    shape_words(s, words);
    mcp_refuse(c, 400, words);
}

#define MCP_SPEAKS .admit = mcp_admit, .refuse = refuse, .error = error, .issues = issues

const struct dialect mcp_dialect = {
    .name = "mcp",
    .title = "Model Context Protocol",
    .about = "Tools for language models, over Streamable HTTP.",
    .routes = {mcp_rows, ARRAY_LEN(mcp_rows)},
    .traits = DIALECT_ALLOW,
    MCP_SPEAKS,
};

/* The same with a slash behind it, and where clients look for authorization servers. */
const struct dialect mcp_other_dialect = {
    .name = "mcp_other",
    .title = "Model Context Protocol",
    .about = "Other addresses that its clients ask for.",
    .routes = {mcp_other_rows, ARRAY_LEN(mcp_other_rows)},
    .traits = DIALECT_ALLOW | DIALECT_ELSEWHERE,
    MCP_SPEAKS,
};
