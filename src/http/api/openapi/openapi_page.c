/* SPDX-License-Identifier: MIT */
/*
 * GET /docs: the API as a page for people, from the tables that /openapi.json is made of: contents,
 * then each endpoint with its request, its answers and a curl command. One document without a
 * script; it asks no other host for anything, and its policy says so to the browser.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "http/api/api.h"
#include "http/api/openapi/openapi.h"
#include "http/server/reply.h"
#include "http/server/server.h"

enum {
    DEPTH_MAX = 3,  /* objects inside objects in a table of fields */
    TYPE_MAX = 128, /* "options.files.include", "string, required: native | wasm" */
    POLICY_MAX = 256,
    SWITCHING = 101, /* the status of a WebSocket that is opened */
};

extern const char docs_style[]; /* page.css */
extern const size_t docs_style_n;

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

/* Within single quotes of a shell. */
static void put_quoted(struct buf *out, const char *s)
{
    char one[2] = "";

    for (; *s; s++) {
        one[0] = *s;
        put_html(out, *s == '\'' ? "'\\''" : one);
    }
}

/* ---- tables of members ---- */

static void put_row(struct buf *out, const char *name, const char *type, const char *help)
{
    (void)buf_puts(out, "<tr><td><code>");
    put_html(out, name);
    (void)buf_puts(out, "</code> <small>");
    put_html(out, type);
    (void)buf_puts(out, "</small><td>");
    put_html(out, help ? help : "");
    (void)buf_putc(out, '\n');
}

static void field_type(const struct shape_field *f, char out[TYPE_MAX])
{
    static const char *const types[] = {
        [SHAPE_STRING] = "string",  [SHAPE_INT] = "integer",          [SHAPE_NUMBER] = "number",
        [SHAPE_BOOL] = "boolean",   [SHAPE_CHOICE] = "string",        [SHAPE_RAW] = "any value",
        [SHAPE_STRINGS] = "object", [SHAPE_LIST] = "list of strings", [SHAPE_FILES] = "object",
        [SHAPE_NESTED] = "object",  [SHAPE_TEXT] = "string",
    };
    _Static_assert(ARRAY_LEN(types) == SHAPE_TYPE_COUNT, "every type has a word");
    const char *type = f->accepts == BIT(JSON_OBJECT)  ? "object"
                       : f->accepts == BIT(JSON_ARRAY) ? "list"
                                                       : types[f->type];
    int n = snprintf(out, TYPE_MAX, "%s%s", type, f->flags & SHAPE_REQUIRED ? ", required" : "");

    for (size_t i = 0; f->words && f->words[i] && n < TYPE_MAX; i++)
        n += snprintf(out + n, TYPE_MAX - (size_t)n, "%s%s", i ? " | " : ": ", f->words[i]);
}

/* With the fields of the objects inside, below their names: "limits.memory". */
static void put_fields(struct buf *out, const struct shape *s, const char *within, int depth)
{
    char name[TYPE_MAX], type[TYPE_MAX];

    for (size_t i = 0; i < s->n; i++) {
        const struct shape_field *f = &s->fields[i];

        if (f->flags & SHAPE_OLD)
            continue;
        (void)snprintf(name, sizeof name, "%.60s%s%.60s", within, *within ? "." : "", f->name);
        field_type(f, type);
        put_row(out, name, type, f->help);
        if (f->inner && depth < DEPTH_MAX)
            put_fields(out, f->inner, name, depth + 1);
    }
}

/* The text behind `key` in a schema, up to its quote; "" when there is none. */
static void schema_word(const char *schema, const char *key, char out[TYPE_MAX])
{
    const char *at = strstr(schema, key);

    out[0] = '\0';
    if (at)
        (void)snprintf(out, TYPE_MAX, "%.*s", (int)strcspn(at + strlen(key), "\""),
                       at + strlen(key));
}

/* What a JSON schema of openapi_answers.c says, in a word or three. */
static void member_type(const char *schema, char out[TYPE_MAX])
{
    char type[TYPE_MAX], name[TYPE_MAX];
    bool null = strstr(schema, "\"null\"") != NULL;

    schema_word(schema, "\"type\":[\"", type);
    if (!*type)
        schema_word(schema, "\"type\":\"", type);
    schema_word(schema, "schemas/", name);
    if (*name && strcmp(type, "array") == 0)
        (void)snprintf(out, TYPE_MAX, "list of %.100s", name);
    else if (*name)
        (void)snprintf(out, TYPE_MAX, "%.100s%s", name, null ? " or null" : "");
    else
        (void)snprintf(out, TYPE_MAX, "%.100s%s",
                       !*type                       ? "any value"
                       : strcmp(type, "array") == 0 ? "list"
                                                    : type,
                       null ? " or null" : "");
}

static void put_members(struct buf *out, const struct openapi_schema *s)
{
    char type[TYPE_MAX];

    (void)buf_puts(out, "<table>\n");
    for (size_t i = 0; i < s->n; i++) {
        member_type(s->members[i].schema, type);
        put_row(out, s->members[i].name, type, s->members[i].help);
    }
    (void)buf_puts(out, "</table>\n");
}

/* ---- an endpoint ---- */

static void put_method(struct buf *out, const char *method)
{
    char lower[16] = "";

    for (size_t i = 0; i < sizeof lower - 1 && method[i]; i++)
        lower[i] = (char)tolower((unsigned char)method[i]);
    (void)buf_printf(out, "<span class=%s>%s</span> ", lower, method);
}

/* Serves the same as an earlier row of its family, at another path. */
static bool is_repeated(const struct route_table *t, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (t->row[k].handler == t->row[i].handler &&
            strcmp(t->row[k].method, t->row[i].method) == 0)
            return true;
    return false;
}

static void put_other_paths(struct buf *out, const struct route_table *t, size_t i)
{
    char path[OPENAPI_PATH_MAX];

    for (size_t k = i + 1; k < t->n; k++) {
        if (t->row[k].handler != t->row[i].handler ||
            strcmp(t->row[k].method, t->row[i].method) != 0)
            continue;
        openapi_path(t->row[k].path, path);
        (void)buf_puts(out, "<p>The same at <code>");
        put_html(out, path);
        (void)buf_puts(out, "</code>.\n");
    }
}

static void put_request(struct buf *out, const struct route *r)
{
    if (r->query) {
        (void)buf_puts(out, "<h4>Query</h4>\n<p>");
        for (const char *q = r->query; *q;) {
            size_t n = strcspn(q, "! ");

            (void)buf_printf(out, "<code>%.*s</code>%s ", (int)n, q,
                             q[n] == '!' ? " (required)" : "");
            q += n + (q[n] != '\0');
            q += *q == ' ';
        }
    }
    if (r->header)
        (void)buf_printf(out, "<h4>Header</h4>\n<p><code>%.*s</code> (required)\n",
                         (int)strcspn(r->header, ":"), r->header);
    if (openapi_takes_bytes(r))
        (void)buf_printf(out, "<h4>Request</h4>\n<p>%s.\n",
                         r->flags & ROUTE_FORM ? "Files, as multipart/form-data"
                                               : "The bytes themselves");
    if (r->request) {
        (void)buf_puts(out, "<h4>Request</h4>\n");
        put_members(out, openapi_answer(r->request, strlen(r->request)));
    }
    if (!r->body)
        return;
    (void)buf_puts(out, "<h4>Request</h4>\n<table>\n");
    put_fields(out, r->body, "", 0);
    (void)buf_puts(out, "</table>\n");
}

static void put_answer(struct buf *out, const struct route_answer *a)
{
    const struct openapi_schema *s;

    (void)buf_printf(out, "<h4>Answer %d %s</h4>\n", a->status, reply_reason(a->status));
    for (const char *p = a->schema ? a->schema : ""; *p; p += strcspn(p, "|"), p += *p == '|') {
        s = openapi_answer(p, strcspn(p, "|"));
        (void)buf_printf(out, "<p><code>%s</code>", API_JSON);
        if (s) {
            (void)buf_printf(out, ", %s\n", s->name);
            put_members(out, s);
        }
    }
    if (a->type)
        (void)buf_printf(out, "<p><code>%s</code>\n", a->type);
    else if (!a->schema)
        (void)buf_puts(out, "<p>No body.\n");
}

/* A path that can be called: ids come from the environment, files have a name. */
static void put_example_path(struct buf *out, const struct route *r)
{
    const char *name;
    size_t n;

    for (const char *p = r->path; *p; p++) {
        if (*p != '*') {
            (void)buf_putc(out, *p);
        } else if (p[1] == '*') {
            (void)buf_puts(out, r->example_path ? r->example_path : "notes.txt");
            p++;
        } else {
            n = openapi_parameter(r->path, p, &name);
            (void)buf_putc(out, '$');
            for (size_t i = 0; i < n; i++)
                (void)buf_putc(out, (char)toupper((unsigned char)name[i]));
        }
    }
    if (r->query && strchr(r->query, '!'))
        (void)buf_printf(out, "?%.*s=$PROCESS", (int)strcspn(r->query, "!"), r->query);
}

static void put_example(struct buf *out, const struct route *r, uint16_t port)
{
    static const char more[] = " \\\n  ",
                      upgrade[] = "-H 'Connection: Upgrade' -H 'Upgrade: websocket'",
                      key[] = "-H 'Sec-WebSocket-Version: 13' "
                              "-H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='";

    (void)buf_puts(out, "<h4>Example</h4>\n<pre>curl -sS ");
    if (strcmp(r->method, r->example ? "POST" : "GET") != 0)
        (void)buf_printf(out, "-X %s ", r->method);
    (void)buf_printf(out, "\"http://127.0.0.1:%u", port);
    put_example_path(out, r);
    (void)buf_putc(out, '"');
    if (r->flags & ROUTE_AUTH)
        (void)buf_printf(out, "%s-H \"Authorization: Bearer $SANDBOX_SECRET\"", more);
    if (r->header)
        (void)buf_printf(out, "%s-H \"%s\"", more, r->header);
    if (r->answer[0].status == SWITCHING)
        (void)buf_printf(out, "%s%s%s%s", more, upgrade, more, key);
    if (openapi_takes_bytes(r))
        (void)buf_printf(out, "%s%s@notes.txt", more,
                         r->flags & ROUTE_FORM ? "-F file=" : "--data-binary ");
    if (r->example) {
        (void)buf_printf(out, "%s-H 'Content-Type: application/json'%s-d '", more, more);
        put_quoted(out, r->example);
        (void)buf_putc(out, '\'');
    }
    (void)buf_puts(out, "</pre>\n");
}

static void put_endpoint(struct buf *out, const struct route_table *t, size_t i, uint16_t port)
{
    const struct route *r = &t->row[i];
    char path[OPENAPI_PATH_MAX], name[OPENAPI_PATH_MAX];

    openapi_path(r->path, path);
    openapi_operation(r, name);
    (void)buf_printf(out, "<h3 id=%s><a href=\"#%s\">", name, name);
    put_method(out, r->method);
    put_html(out, path);
    (void)buf_puts(out, "</a></h3>\n<p>");
    (void)buf_putc(out, (char)toupper((unsigned char)r->help[0]));
    put_html(out, r->help + 1);
    (void)buf_puts(out, r->flags & ROUTE_AUTH ? ".\n" : ". <i>Needs no secret.</i>\n");
    put_other_paths(out, t, i);
    put_request(out, r);
    for (size_t k = 0; k < ROUTE_ANSWERS_MAX && r->answer[k].status; k++)
        put_answer(out, &r->answer[k]);
    put_example(out, r, port);
}

/* ---- the page ---- */

/* The family that answers for all others describes the daemon: it comes last. */
static const struct dialect *nth_dialect(size_t i)
{
    if (!openapi_dialect(i))
        return NULL;
    return openapi_dialect(i + 1) ? openapi_dialect(i + 1) : openapi_dialect(0);
}

static void put_contents(struct buf *out)
{
    const struct dialect *d;
    char path[OPENAPI_PATH_MAX], name[OPENAPI_PATH_MAX];

    (void)buf_puts(out, "<nav aria-label=Contents><input type=checkbox id=toc><label for=toc>"
                        "Contents</label><div>\n");
    for (size_t i = 0; (d = nth_dialect(i)); i++) {
        (void)buf_printf(out, "<b><a href=\"#%s\">%s</a></b>\n<ul>\n", d->name, d->title);
        for (size_t k = 0; k < d->routes.n; k++) {
            if (is_repeated(&d->routes, k))
                continue;
            openapi_path(d->routes.row[k].path, path);
            openapi_operation(&d->routes.row[k], name);
            (void)buf_printf(out, "<li><a href=\"#%s\">", name);
            put_method(out, d->routes.row[k].method);
            put_html(out, path);
            (void)buf_puts(out, "</a>\n");
        }
        (void)buf_puts(out, "</ul>\n");
    }
    (void)buf_puts(out, "<b><a href=\"#errors\">Errors</a></b>\n</div></nav>\n");
}

static void put_beginning(struct buf *out)
{
    (void)buf_puts(out, "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n"
                        "<title>Sandbox Executor: API</title>\n"
                        "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
                        "<link rel=icon href=\"data:,\">\n<style>");
    (void)buf_put(out, docs_style, docs_style_n);
    (void)buf_puts(out, "</style>\n");
    put_contents(out);
    (void)buf_puts(
        out, "<main>\n<h1>Sandbox Executor</h1>\n<p>Runs untrusted code in fresh, strongly "
             "isolated sandboxes. The same as a document for programs: <a href=\"openapi.json\">"
             "openapi.json</a>.\n<p>Requests carry the secret of the daemon as a bearer token. "
             "Examples take it from <code>SANDBOX_SECRET</code>, and what an earlier answer named "
             "from <code>ID</code>, <code>PROCESS</code> and so on. The daemon says at its start "
             "where it keeps the secret.\n");
}

static void put_errors(struct buf *out)
{
    (void)buf_puts(out, "<h2 id=errors>Errors</h2>\n<p>A request that cannot be served gets a "
                        "status of 400 or more and one JSON object; the Koyeb family answers "
                        "with plain text.\n");
    put_members(out, openapi_answer("Problem", 7));
}

/* Nothing but the style in the page itself, named by its digest. */
static void set_policy(struct http_call *c)
{
    unsigned char digest[SHA256_BYTES];
    char policy[POLICY_MAX];
    struct buf text = BUF_INIT(BASE64_LENGTH(SHA256_BYTES) + 1);
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();

    if (h) {
        sha256_add(h, docs_style, docs_style_n);
        sha256_end(h, digest);
    }
    if (h && base64_encode(digest, sizeof digest, &text) == 0)
        (void)snprintf(policy, sizeof policy,
                       "default-src 'none'; style-src 'sha256-%.*s'; img-src data:; "
                       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                       (int)text.n, text.p);
    else
        (void)snprintf(policy, sizeof policy, "default-src 'none'; frame-ancestors 'none'");
    buf_done(&text);
    http_set_header(c, "Content-Security-Policy", policy);
}

void api_docs(struct http_call *c)
{
    const struct app *a = http_app(c);
    uint16_t port = a->http ? http_server_port(a->http) : 0;
    struct buf body = BUF_INIT(API_JSON_MAX);
    const struct dialect *d;

    put_beginning(&body);
    for (size_t i = 0; (d = nth_dialect(i)); i++) {
        (void)buf_printf(&body, "<h2 id=%s>%s</h2>\n<p>%s\n", d->name, d->title, d->about);
        for (size_t k = 0; k < d->routes.n; k++)
            if (!is_repeated(&d->routes, k))
                put_endpoint(&body, &d->routes, k, port);
    }
    put_errors(&body);
    (void)buf_puts(&body, "</main>\n</html>\n");
    set_policy(c);
    http_set_header(c, "Referrer-Policy", "no-referrer");
    http_reply(c, 200, "text/html; charset=utf-8", &body);
}
