/* SPDX-License-Identifier: MIT */
/* GET /docs: the same tables as a page for people. */
#include "http/api/api.h"
#include "http/api/openapi/openapi.h"

static const char page_head[] =
    "<!doctype html><html lang=en><meta charset=utf-8><title>Sandbox Executor</title>"
    "<meta name=viewport content='width=device-width'><style>"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;"
    "border-bottom:1px solid #ccc8;vertical-align:top}code,pre{font:14px/1.4 ui-monospace,"
    "monospace}pre{padding:1rem;overflow:auto;border:1px solid #ccc8}</style>"
    "<h1>Sandbox Executor</h1><p>Runs untrusted code in fresh, strongly isolated sandboxes. "
    "The same as a document: <a href=openapi.json>openapi.json</a>.<pre>"
    "curl -s http://127.0.0.1:8080/execute -H \"Authorization: Bearer $SANDBOX_SECRET\" \\\n"
    "  -H 'Content-Type: application/json' \\\n"
    "  -d '{\"language\":\"python\",\"code\":\"def handler(event): return event\","
    "\"event\":{\"n\":1}}'</pre>";

/* Texts of our own tables: escaped all the same. */
static void put_html(struct buf *out, const char *s)
{
    for (; *s; s++) {
        const char *e = *s == '<' ? "&lt;" : *s == '>' ? "&gt;" : *s == '&' ? "&amp;" : NULL;

        if (e)
            (void)buf_puts(out, e);
        else
            (void)buf_putc(out, *s);
    }
}

static void put_routes(struct buf *out)
{
    char path[OPENAPI_PATH_MAX];

    (void)buf_puts(out, "<h2>Endpoints</h2><table><tr><th>Method<th>Path<th>What it does");
    for (size_t d = 0; api_dialects[d]; d++) {
        for (size_t i = 0; i < api_dialects[d]->routes.n; i++) {
            const struct route *r = &api_dialects[d]->routes.row[i];

            openapi_path(r->path, path);
            (void)buf_printf(out, "<tr><td><code>%s</code><td><code>", r->method);
            put_html(out, path);
            (void)buf_puts(out, "</code><td>");
            put_html(out, r->help);
            (void)buf_puts(out, r->flags & ROUTE_AUTH ? " (bearer)" : "");
        }
    }
    (void)buf_puts(out, "</table>");
}

static void put_rows(struct buf *out, const char *name, const char *help)
{
    (void)buf_puts(out, "<tr><td><code>");
    put_html(out, name);
    (void)buf_puts(out, "</code><td>");
    put_html(out, help);
}

void api_docs(struct http_call *c)
{
    const struct openapi_schema *result = openapi_answer("ExecutionResult", 15);
    struct buf body = BUF_INIT(API_JSON_MAX);

    (void)buf_puts(&body, page_head);
    put_routes(&body);
    (void)buf_puts(&body, "<h2>POST /execute</h2><table><tr><th>Field<th>Meaning");
    for (size_t i = 0; i < execute_shape.n; i++)
        put_rows(&body, execute_shape.fields[i].name, execute_shape.fields[i].help);
    (void)buf_puts(&body, "</table><h2>Its result</h2><table><tr><th>Field<th>Meaning");
    for (size_t i = 0; i < result->n; i++)
        put_rows(&body, result->members[i].name, result->members[i].help);
    (void)buf_puts(&body, "</table></html>\n");
    http_set_header(c, "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    http_reply(c, 200, "text/html; charset=utf-8", &body);
}
