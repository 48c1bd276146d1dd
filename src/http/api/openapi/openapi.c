/* SPDX-License-Identifier: MIT */
/*
 * GET /openapi.json, made from the route tables and the field tables that the handlers use: what is
 * not there cannot be documented, and what is there cannot be forgotten. Only the schemas of
 * answers are written for the documentation (openapi_answers.c).
 */
#include "http/api/openapi/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "http/api/api.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

enum { SHAPES_MAX = 64 }; /* schemas of bodies */

static void raw(struct jw *w, const char *json)
{
    jw_raw(w, json, strlen(json));
}

static void kv_raw(struct jw *w, const char *key, const char *json)
{
    jw_key(w, key);
    raw(w, json);
}

/* ---- schemas ---- */

/* A schema and its description: the raw object is opened again. */
static void write_member(struct jw *w, const struct openapi_member *m)
{
    size_t n = strlen(m->schema);

    jw_key(w, m->name);
    jw_object(w);
    if (n > 2) {
        jw_raw(w, m->schema + 1, n - 2);
        w->comma = true;
    }
    if (*m->help)
        jw_kv_string(w, "description", m->help);
    jw_object_end(w);
}

static void write_schema(struct jw *w, const struct openapi_schema *s)
{
    jw_key(w, s->name);
    jw_object(w);
    jw_kv_string(w, "type", "object");
    if (s->required)
        kv_raw(w, "required", s->required);
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < s->n; i++)
        write_member(w, &s->members[i]);
    jw_object_end(w);
    jw_object_end(w);
}

/* ---- schemas of bodies ---- */

static void write_ref(struct jw *w, const char *schema, size_t n)
{
    char ref[OPENAPI_PATH_MAX];

    (void)snprintf(ref, sizeof ref, "#/components/schemas/%.*s", (int)n, schema);
    jw_object(w);
    jw_kv_string(w, "$ref", ref);
    jw_object_end(w);
}

static void write_words(struct jw *w, const char *const *words)
{
    jw_key(w, "enum");
    jw_array(w);
    for (; *words; words++)
        jw_string(w, *words);
    jw_array_end(w);
}

static void write_range(struct jw *w, const struct shape_field *f)
{
    if (f->min != INT64_MIN)
        jw_kv_int(w, "minimum", f->min);
    if (f->max != 0)
        jw_kv_int(w, "maximum", f->max);
}

/* The members of a raw value's schema; the object is open. */
static void write_raw(struct jw *w, const struct shape_field *f)
{
    if (f->schema) {
        jw_raw(w, f->schema + 1, strlen(f->schema) - 2);
        w->comma = true;
    } else if (f->inner && f->accepts == BIT(JSON_ARRAY)) {
        jw_kv_string(w, "type", "array");
        jw_key(w, "items");
        write_ref(w, f->inner->name, strlen(f->inner->name));
    } else if (f->accepts == BIT(JSON_OBJECT)) {
        jw_kv_string(w, "type", "object");
        jw_kv_bool(w, "additionalProperties", true);
    }
}

static void write_type(struct jw *w, const struct shape_field *f)
{
    static const char *const types[] = {
        [SHAPE_STRING] = "string", [SHAPE_INT] = "integer",   [SHAPE_NUMBER] = "number",
        [SHAPE_BOOL] = "boolean",  [SHAPE_CHOICE] = "string", [SHAPE_STRINGS] = "object",
        [SHAPE_LIST] = "array",    [SHAPE_TEXT] = "string",   [SHAPE_FILES] = "object",
    };

    if (f->type == SHAPE_RAW) {
        write_raw(w, f);
        return;
    }
    if (f->type == SHAPE_FILES)
        kv_raw(w, "additionalProperties",
               "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"required\":[\"base64\"],"
               "\"properties\":{\"base64\":{\"type\":\"string\"}}}]}");
    jw_kv_string(w, "type", types[f->type]);
    if (f->words)
        write_words(w, f->words);
    if (f->type == SHAPE_STRINGS || f->type == SHAPE_LIST)
        kv_raw(w, f->type == SHAPE_LIST ? "items" : "additionalProperties",
               "{\"type\":\"string\"}");
    if (f->type == SHAPE_INT || f->type == SHAPE_NUMBER)
        write_range(w, f);
}

static void write_field(struct jw *w, const struct shape_field *f)
{
    bool object = f->type == SHAPE_NESTED ||
                  (f->type == SHAPE_RAW && f->inner && f->accepts == BIT(JSON_OBJECT));

    jw_key(w, f->name);
    if (object) {
        write_ref(w, f->inner->name, strlen(f->inner->name));
        return;
    }
    jw_object(w);
    write_type(w, f);
    if (*f->help)
        jw_kv_string(w, "description", f->help);
    jw_object_end(w);
}

static void write_shape(struct jw *w, const struct shape *s)
{
    jw_key(w, s->name);
    jw_object(w);
    jw_kv_string(w, "type", "object");
    jw_kv_bool(w, "additionalProperties", s->flags & SHAPE_OPEN);
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < s->n; i++)
        if (s->fields[i].flags & SHAPE_REQUIRED)
            jw_string(w, s->fields[i].name);
    jw_array_end(w);
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < s->n; i++)
        if (!(s->fields[i].flags & SHAPE_OLD))
            write_field(w, &s->fields[i]);
    jw_object_end(w);
    jw_object_end(w);
}

struct shapes {
    const struct shape *v[SHAPES_MAX];
    size_t n;
};

const struct dialect *openapi_dialect(size_t i)
{
    for (const struct dialect *const *d = api_dialects; *d; d++)
        if (!((*d)->traits & DIALECT_ELSEWHERE) && i-- == 0)
            return *d;
    return NULL;
}

/* With all that are inside it, each once: those found are looked into behind the one they are in.
 */
static void shapes_add(struct shapes *all, const struct shape *s)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i] == s)
            return;
    if (s->name && all->n < SHAPES_MAX)
        all->v[all->n++] = s;
}

static void shapes_find(struct shapes *all)
{
    for (size_t d = 0; openapi_dialect(d); d++)
        for (size_t i = 0; i < openapi_dialect(d)->routes.n; i++)
            if (openapi_dialect(d)->routes.row[i].body)
                shapes_add(all, openapi_dialect(d)->routes.row[i].body);
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->v[i]->n; k++)
            if (all->v[i]->fields[k].inner)
                shapes_add(all, all->v[i]->fields[k].inner);
}

static void write_components(struct jw *w)
{
    struct shapes all = {.n = 0};

    shapes_find(&all);
    jw_key(w, "components");
    jw_object(w);
    kv_raw(w, "securitySchemes", "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    kv_raw(w, "responses",
           "{\"Problem\":{\"description\":\"what went wrong, and what may help\",\"content\":"
           "{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}},"
           "\"PlainProblem\":{\"description\":\"what went wrong, as text\",\"content\":"
           "{\"text/plain\":{\"schema\":{\"type\":\"string\"}}}}}");
    jw_key(w, "schemas");
    jw_object(w);
    for (size_t i = 0; i < all.n; i++)
        write_shape(w, all.v[i]);
    for (size_t i = 0; i < openapi_answers_n; i++)
        write_schema(w, &openapi_answers[i]);
    jw_object_end(w);
    jw_object_end(w);
}

const struct openapi_schema *openapi_answer(const char *name, size_t n)
{
    for (size_t i = 0; i < openapi_answers_n; i++)
        if (strlen(openapi_answers[i].name) == n && memcmp(openapi_answers[i].name, name, n) == 0)
            return &openapi_answers[i];
    return NULL;
}

/* ---- paths ---- */

/* The first star of a route is an id, a second one is called as the segment before it, without its
 * plural: "contexts", "processes". */
size_t openapi_parameter(const char *pattern, const char *star, const char **ret)
{
    const char *end = star - 1, *from = end;

    if (star[1] == '*')
        return *ret = "path", 4;
    if (strchr(pattern, '*') == star)
        return *ret = "id", 2;
    while (from[-1] != '/')
        from--;
    *ret = from;
    end -= end[-3] == 's' && end[-2] == 'e' ? 2 : 1;
    return (size_t)(end - from);
}

void openapi_path(const char *pattern, char out[OPENAPI_PATH_MAX])
{
    size_t n = 0, name_n;
    const char *name;

    for (const char *p = pattern; *p && n < OPENAPI_PATH_MAX - 32; p++) {
        if (*p != '*') {
            out[n++] = *p;
            continue;
        }
        name_n = openapi_parameter(pattern, p, &name);
        n += (size_t)snprintf(out + n, OPENAPI_PATH_MAX - n, "{%.*s}", (int)name_n, name);
        p += p[1] == '*';
    }
    out[n] = '\0';
}

void openapi_operation(const struct route *r, char out[OPENAPI_PATH_MAX])
{
    char path[OPENAPI_PATH_MAX];
    size_t n = 0;
    bool start = true;

    for (const char *p = r->method; *p && n < OPENAPI_PATH_MAX - 1; p++)
        out[n++] = (char)tolower((unsigned char)*p);
    openapi_path(strncmp(r->path, "/v1/", 4) == 0 ? r->path + 3 : r->path, path);
    if (!path[1])
        (void)snprintf(path, sizeof path, "/root");
    for (const char *p = path; *p && n < OPENAPI_PATH_MAX - 1; p++) {
        if (!isalnum((unsigned char)*p)) {
            start = true;
            continue;
        }
        out[n++] = start ? (char)toupper((unsigned char)*p) : *p;
        start = false;
    }
    out[n] = '\0';
}

static void write_parameter(struct jw *w, const char *name, size_t n, const char *in, bool required)
{
    jw_object(w);
    jw_kv_bytes(w, "name", name, n);
    jw_kv_string(w, "in", in);
    jw_kv_bool(w, "required", required);
    kv_raw(w, "schema", "{\"type\":\"string\"}");
    jw_object_end(w);
}

static void write_parameters(struct jw *w, const struct route *r)
{
    const char *star = strchr(r->path, '*'), *name;
    size_t name_n;

    if (!star && !r->query && !r->header)
        return;
    jw_key(w, "parameters");
    jw_array(w);
    for (; star; star = strchr(star + 1 + (star[1] == '*'), '*')) {
        name_n = openapi_parameter(r->path, star, &name);
        write_parameter(w, name, name_n, "path", true);
    }
    if (r->header)
        write_parameter(w, r->header, strcspn(r->header, ":"), "header", true);
    for (const char *q = r->query ? r->query : ""; *q;) {
        size_t n = strcspn(q, "! ");

        write_parameter(w, q, n, "query", q[n] == '!');
        q += n + (q[n] != '\0');
        q += *q == ' ';
    }
    jw_array_end(w);
}

static void write_answer(struct jw *w, const struct route_answer *a)
{
    const char *p = a->schema;

    jw_object(w);
    jw_kv_string(w, "description", "as asked for");
    if (p || a->type) {
        jw_key(w, "content");
        jw_object(w);
        jw_key(w, a->type ? a->type : API_JSON);
        jw_object(w);
        jw_key(w, "schema");
        if (!p) {
            raw(w, "{\"type\":\"string\"}");
        } else if (!strchr(p, '|')) {
            write_ref(w, p, strlen(p));
        } else {
            jw_object(w);
            jw_key(w, "oneOf");
            jw_array(w);
            for (; *p; p += strcspn(p, "|"), p += *p == '|')
                write_ref(w, p, strcspn(p, "|"));
            jw_array_end(w);
            jw_object_end(w);
        }
        jw_object_end(w);
        jw_object_end(w);
    }
    jw_object_end(w);
}

static void write_responses(struct jw *w, const struct dialect *d, const struct route *r)
{
    const char *problem = d->lenient ? "{\"$ref\":\"#/components/responses/PlainProblem\"}"
                                     : "{\"$ref\":\"#/components/responses/Problem\"}";
    char status[16];

    jw_key(w, "responses");
    jw_object(w);
    for (size_t i = 0; i < ROUTE_ANSWERS_MAX && r->answer[i].status; i++) {
        (void)snprintf(status, sizeof status, "%d", r->answer[i].status);
        jw_key(w, status);
        write_answer(w, &r->answer[i]);
    }
    if (r->body)
        kv_raw(w, "400", problem);
    if (r->flags & ROUTE_AUTH)
        kv_raw(w, "401", problem);
    if (strchr(r->path, '*'))
        kv_raw(w, "404", problem);
    kv_raw(w, "default", problem);
    jw_object_end(w);
}

bool openapi_takes_bytes(const struct route *r)
{
    return (r->flags & ROUTE_BODY_STREAM) && strcmp(r->method, "GET") != 0;
}

static void write_body(struct jw *w, const struct route *r)
{
    bool required = false;

    if (!r->body && !r->request && !openapi_takes_bytes(r))
        return;
    for (size_t i = 0; r->body && i < r->body->n; i++)
        required |= r->body->fields[i].flags & SHAPE_REQUIRED;
    jw_key(w, "requestBody");
    jw_object(w);
    jw_kv_bool(w, "required", required || !r->body);
    jw_key(w, "content");
    jw_object(w);
    jw_key(w, r->body || r->request   ? API_JSON
              : r->flags & ROUTE_FORM ? "multipart/form-data"
                                      : "application/octet-stream");
    jw_object(w);
    jw_key(w, "schema");
    if (r->body)
        write_ref(w, r->body->name, strlen(r->body->name));
    else if (r->request)
        write_ref(w, r->request, strlen(r->request));
    else if (r->flags & ROUTE_FORM)
        raw(w, "{\"type\":\"object\",\"properties\":{\"file\":{\"type\":\"array\",\"items\":"
               "{\"type\":\"string\",\"format\":\"binary\"}}}}");
    else
        raw(w, "{\"type\":\"string\",\"format\":\"binary\"}");
    if (r->example)
        kv_raw(w, "example", r->example);
    jw_object_end(w);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_operation(struct jw *w, const struct dialect *d, const struct route *r)
{
    char method[16], name[OPENAPI_PATH_MAX];
    size_t n = 0;

    for (; n < sizeof method - 1 && r->method[n]; n++)
        method[n] = (char)tolower((unsigned char)r->method[n]);
    method[n] = '\0';
    openapi_operation(r, name);
    jw_key(w, method);
    jw_object(w);
    jw_kv_string(w, "operationId", name);
    jw_kv_string(w, "summary", r->help);
    jw_key(w, "tags");
    jw_array(w);
    jw_string(w, r->tag);
    jw_array_end(w);
    kv_raw(w, "security", r->flags & ROUTE_AUTH ? "[{\"bearer\":[]}]" : "[]");
    write_parameters(w, r);
    write_body(w, r);
    write_responses(w, d, r);
    jw_object_end(w);
}

static bool is_first_of_path(const struct route_table *t, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(t->row[k].path, t->row[i].path) == 0)
            return false;
    }
    return true;
}

static void write_table(struct jw *w, const struct dialect *d)
{
    const struct route_table *t = &d->routes;
    char path[OPENAPI_PATH_MAX];

    for (size_t i = 0; i < t->n; i++) {
        if (!is_first_of_path(t, i))
            continue;
        openapi_path(t->row[i].path, path);
        jw_key(w, path);
        jw_object(w);
        for (size_t k = i; k < t->n; k++) {
            if (strcmp(t->row[k].path, t->row[i].path) == 0)
                write_operation(w, d, &t->row[k]);
        }
        jw_object_end(w);
    }
}

static void write_paths(struct jw *w)
{
    jw_key(w, "paths");
    jw_object(w);
    for (size_t i = 0; openapi_dialect(i); i++)
        write_table(w, openapi_dialect(i));
    jw_object_end(w);
}

void openapi_write(struct jw *w)
{
    jw_object(w);
    jw_kv_string(w, "openapi", "3.1.0");
    jw_key(w, "info");
    jw_object(w);
    jw_kv_string(w, "title", "Sandbox Executor");
    jw_kv_string(w, "version", SBX_VERSION);
    jw_kv_string(w, "description", "Runs untrusted code in fresh, strongly isolated sandboxes.");
    jw_object_end(w);
    kv_raw(w, "servers", "[{\"url\":\"/\"}]");
    write_paths(w);
    write_components(w);
    jw_object_end(w);
}

void api_openapi(struct http_call *c)
{
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);

    openapi_write(&w);
    http_reply_json(c, 200, &body);
}
