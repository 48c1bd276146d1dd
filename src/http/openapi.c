/* SPDX-License-Identifier: MIT */
/*
 * GET /openapi.json, made from the route table and the field tables that the handlers use: what is
 * not there cannot be documented, and what is there cannot be forgotten.
 */
#include "http/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "http/api.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

#define T_STATUS "{\"type\":\"string\",\"enum\":[\"success\",\"failed\",\"timeout\",\"error\"]}"

static const struct openapi_member result_members[] = {
    {"execution_id",      T_STRING,  "as asked for, or made"                                          },
    {"status",            T_STATUS,  "error: the sandbox failed or a resource limit was met"          },
    {"stdout",            T_STRING,  "exactly what the program wrote"                                 },
    {"stderr",            T_STRING,  "the same, and at the end why it was stopped, if it was"         },
    {"exit_code",         T_INT,     "128 + signal; -1 when it did not end by itself"                 },
    {"execution_time",    T_NUMBER,  "seconds of wall time"                                           },
    {"return_value",      T_ANY,     "what the handler returned, any JSON value"                      },
    {"metrics",           T_OBJECT,  "duration_ms, cpu_time_ms, peak_memory_mb, io_*_bytes"           },
    {"artifacts",         T_STRINGS, "files left in the workspace, relative, sorted"                  },
    {"artifact_metadata", T_OBJECTS, "path, size, mime_type, type, created_at, checksum (SHA-256)"    },
    {"stdout_truncated",  T_BOOL,    "only when stdout was cut"                                       },
    {"stderr_truncated",  T_BOOL,    "only when stderr was cut"                                       },
    {"error",             T_OBJECT,  "type, message and stack of an exception, if there was one"      },
    {"termination",       T_OBJECT,  "reason, and signal, limit, limit_value, observed, hint if known"},
    {"denied",            T_OBJECTS, "only after a failure: what was refused, setting, advice"        },
    {"isolation",         T_OBJECT,  "jail, template, warm, traits"                                   },
    {"timings",           T_OBJECT,  "queue_ms, start_ms, run_ms, collect_ms, total_ms"               },
};

static const struct openapi_member pending_members[] = {
    {"execution_id", T_STRING, "ask for it at /v1/executions/{id}"},
    {"status",       T_STRING, "PENDING"                          },
    {"message",      T_STRING, "Execution submitted"              },
};

static const struct openapi_member synced_members[] = {
    {"status",                 T_STRING,  "completed"},
    {"installed_dependencies", T_OBJECTS,
     "name, version, install_location, install_time, "
     "is_from_template; transitive ones, too"        },
    {"error",                  T_STRING,  "empty"    },
    {"started_at",             T_STRING,  "UTC"      },
    {"completed_at",           T_STRING,  "UTC"      },
};

static const struct openapi_member problem_members[] = {
    {"error_code",   T_STRING, "a stable name, such as Executor.ValidationError" },
    {"description",  T_STRING, "what kind of problem it is"                      },
    {"error_detail", T_STRING, "what it is about"                                },
    {"solution",     T_STRING, "what may help; may be null"                      },
    {"request_id",   T_STRING, "as in the X-Request-Id header"                   },
    {"detail",       T_ANY,    "for validation errors a list of {type, loc, msg}"},
};

static const struct openapi_schema schemas[] = {
    {"ExecutionResult",  result_members,  ARRAY_LEN(result_members),  NULL},
    {"ExecutionPending", pending_members, ARRAY_LEN(pending_members), NULL},
    {"DependencySync",   synced_members,  ARRAY_LEN(synced_members),  NULL},
    {"Problem",          problem_members, ARRAY_LEN(problem_members), NULL},
};

const struct openapi_schema *openapi_execution_result(void)
{
    return &schemas[0];
}

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

static void write_field(struct jw *w, const struct shape_field *f)
{
    static const char *const types[] = {"string", "integer", "number", "boolean", "string",
                                        "object", "object",  "array",  "object",  "string"};

    jw_key(w, f->name);
    jw_object(w);
    jw_kv_string(w, "type", types[f->type]);
    if (f->type == SHAPE_STRINGS)
        kv_raw(w, "additionalProperties", T_STRING);
    if (f->type == SHAPE_LIST)
        kv_raw(w, "items", T_STRING);
    if (f->type == SHAPE_INT)
        jw_kv_int(w, "minimum", f->min);
    if (f->type == SHAPE_INT && f->max != 0)
        jw_kv_int(w, "maximum", f->max);
    jw_kv_string(w, "description", f->help);
    jw_object_end(w);
}

static void write_shape(struct jw *w, const struct shape *s)
{
    jw_object(w);
    jw_kv_string(w, "type", "object");
    jw_key(w, "required");
    jw_array(w);
    for (size_t i = 0; i < s->n; i++) {
        if (s->fields[i].flags & SHAPE_REQUIRED)
            jw_string(w, s->fields[i].name);
    }
    jw_array_end(w);
    jw_key(w, "properties");
    jw_object(w);
    for (size_t i = 0; i < s->n; i++)
        write_field(w, &s->fields[i]);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_components(struct jw *w)
{
    jw_key(w, "components");
    jw_object(w);
    kv_raw(w, "securitySchemes", "{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"}}");
    jw_key(w, "schemas");
    jw_object(w);
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++)
        write_schema(w, &schemas[i]);
    for (size_t i = 0; i < openapi_functions_n; i++)
        write_schema(w, &openapi_functions[i]);
    jw_object_end(w);
    jw_object_end(w);
}

/* ---- paths ---- */

void openapi_path(const char *pattern, char out[OPENAPI_PATH_MAX])
{
    size_t n = 0;

    for (const char *p = pattern; *p && n < OPENAPI_PATH_MAX - 8; p++) {
        const char *name = p[0] != '*' ? NULL : p[1] == '*' ? "{path}" : "{id}";

        if (name)
            n += (size_t)snprintf(out + n, OPENAPI_PATH_MAX - n, "%s", name);
        else
            out[n++] = *p;
        p += p[0] == '*' && p[1] == '*';
    }
    out[n] = '\0';
}

static void write_parameter(struct jw *w, const char *name)
{
    jw_object(w);
    jw_kv_string(w, "name", name);
    jw_kv_string(w, "in", "path");
    jw_kv_bool(w, "required", true);
    kv_raw(w, "schema", T_STRING);
    jw_object_end(w);
}

static void write_parameters(struct jw *w, const struct route *r)
{
    const char *star = strchr(r->path, '*');

    if (!star)
        return;
    jw_key(w, "parameters");
    jw_array(w);
    if (star[1] != '*')
        write_parameter(w, "id");
    if (strstr(r->path, "**"))
        write_parameter(w, "path");
    jw_array_end(w);
}

static void write_ref(struct jw *w, const char *schema)
{
    char ref[OPENAPI_PATH_MAX];

    (void)snprintf(ref, sizeof ref, "#/components/schemas/%s", schema);
    jw_key(w, "content");
    jw_object(w);
    jw_key(w, API_JSON);
    jw_object(w);
    jw_key(w, "schema");
    jw_object(w);
    jw_kv_string(w, "$ref", ref);
    jw_object_end(w);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_answer(struct jw *w, const char *status, const char *schema)
{
    jw_key(w, status);
    jw_object(w);
    jw_kv_string(w, "description", "as asked for");
    write_ref(w, schema);
    jw_object_end(w);
}

static void write_responses(struct jw *w, const struct route *r)
{
    static const char problem[] =
        "{\"description\":\"what went wrong\",\"content\":{\"application/json\":{\"schema\":"
        "{\"$ref\":\"#/components/schemas/Problem\"}}}}";
    static const char executed[] =
        "{\"description\":\"the result, or PENDING when the caller does not wait\",\"content\":"
        "{\"application/json\":{\"schema\":{\"oneOf\":["
        "{\"$ref\":\"#/components/schemas/ExecutionResult\"},"
        "{\"$ref\":\"#/components/schemas/ExecutionPending\"}]}}}}";

    static const char synced[] =
        "{\"description\":\"what is installed now\",\"content\":{\"application/json\":{\"schema\":"
        "{\"$ref\":\"#/components/schemas/DependencySync\"}}}}";

    const char *answer = openapi_function_answer(r);

    jw_key(w, "responses");
    jw_object(w);
    if (answer)
        write_answer(w, r->handler == api_session_create ? "201" : "200", answer);
    else
        kv_raw(w, "200",
               r->handler == api_execute             ? executed
               : r->handler == api_dependencies_sync ? synced
                                                     : "{\"description\":\"as asked for\"}");
    kv_raw(w, "default", problem);
    jw_object_end(w);
}

static void write_body(struct jw *w, const struct route *r)
{
    const struct shape *body = r->body;
    const char *schema = openapi_function_body(r);

    if (!body && !schema)
        return;
    jw_key(w, "requestBody");
    jw_object(w);
    jw_kv_bool(w, "required", r->handler != api_session_reset);
    if (schema) {
        write_ref(w, schema);
    } else {
        jw_key(w, "content");
        jw_object(w);
        jw_key(w, API_JSON);
        jw_object(w);
        jw_key(w, "schema");
        write_shape(w, body);
        jw_object_end(w);
        jw_object_end(w);
    }
    jw_object_end(w);
}

static void write_operation(struct jw *w, const struct route *r)
{
    char method[16];
    size_t n = 0;

    for (; n < sizeof method - 1 && r->method[n]; n++)
        method[n] = (char)tolower((unsigned char)r->method[n]);
    method[n] = '\0';
    jw_key(w, method);
    jw_object(w);
    jw_kv_string(w, "summary", r->help);
    jw_key(w, "tags");
    jw_array(w);
    jw_string(w, r->tag);
    jw_array_end(w);
    if (r->flags & ROUTE_AUTH)
        kv_raw(w, "security", "[{\"bearer\":[]}]");
    write_parameters(w, r);
    write_body(w, r);
    write_responses(w, r);
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

static void write_table(struct jw *w, const struct route_table *t)
{
    char path[OPENAPI_PATH_MAX];

    for (size_t i = 0; i < t->n; i++) {
        if (!is_first_of_path(t, i))
            continue;
        openapi_path(t->row[i].path, path);
        jw_key(w, path);
        jw_object(w);
        for (size_t k = i; k < t->n; k++) {
            if (strcmp(t->row[k].path, t->row[i].path) == 0)
                write_operation(w, &t->row[k]);
        }
        jw_object_end(w);
    }
}

static void write_paths(struct jw *w)
{
    jw_key(w, "paths");
    jw_object(w);
    for (size_t i = 0; api_dialects[i]; i++)
        write_table(w, &api_dialects[i]->routes);
    jw_object_end(w);
}

void api_openapi(struct http_call *c)
{
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_string(&w, "openapi", "3.1.0");
    jw_key(&w, "info");
    jw_object(&w);
    jw_kv_string(&w, "title", "Sandbox Executor");
    jw_kv_string(&w, "version", SBX_VERSION);
    jw_kv_string(&w, "description", "Runs untrusted code in fresh, strongly isolated sandboxes.");
    jw_object_end(&w);
    write_paths(&w);
    write_components(&w);
    jw_object_end(&w);
    http_reply(c, 200, API_JSON, &body);
}
