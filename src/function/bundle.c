/* SPDX-License-Identifier: MIT */
#include "function/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jw.h"
#include "base/utf8.h"
#include "function/portable.h"

enum {
    ESCAPE_FACTOR = 6,
    CALL_ROOM = 4096,
    KNOWN_MAX = 300,
    VARS_MAX = 1000,
};

bool bundle_name_is_good(const char *p, size_t n)
{
    return n > 0 && n <= BUNDLE_NAME_MAX && portable_name_is_good(p, n) &&
           ((p[0] >= 'A' && p[0] <= 'Z') || (p[0] >= 'a' && p[0] <= 'z'));
}

/* ---- what the inspector says ---- */

static bool flag(struct json_value object, const char *name)
{
    struct json_value v = json_member(object, name);
    bool set = false;

    return v.p && json_to_bool(v, &set) && set;
}

static bool word_is(struct json_value object, const char *name, const char *word)
{
    struct json_value v = json_member(object, name);

    return v.p && v.type == JSON_STRING && json_key_is(v, word);
}

static void decode(struct json_value v, struct buf *out)
{
    if (v.p && v.type == JSON_STRING)
        (void)!json_decode_string(v, JSON_LENIENT_UTF8, out);
}

/* A key as it stood in another object. */
static void put_key(struct jw *w, struct json_value key)
{
    jw_raw(w, key.p, key.n);
    (void)buf_putc(w->out, ':');
    w->comma = false;
}

static bool names_it(const struct exec_var *list, size_t n, struct json_value name)
{
    for (size_t i = 0; i < n; i++)
        if (json_key_is(name, list[i].value.p))
            return true;
    return false;
}

struct making {
    const struct bundle_choice *choice;
    bool only_exports; /* JavaScript */
    struct jw tools, warnings;
    size_t n, warned;
    char names[BUNDLE_TOOLS_MAX][BUNDLE_TOOL_NAME_MAX + 1];
};

static void warn(struct making *m, struct json_value name, const char *words)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CALL_ROOM);

    if (m->warned++ >= BUNDLE_WARNINGS_MAX)
        return;
    decode(name, &text);
    (void)buf_printf(&text, ": %s", words);
    jw_bytes(&m->warnings, text.p ? text.p : "", text.n);
}

/* Private ones and those inside something else are nobody's tools. */
static bool is_public(const struct making *m, struct json_value f, struct json_value name)
{
    if (!name.p || name.type != JSON_STRING || name.n < 3 || name.p[1] == '_')
        return false;
    if (!flag(f, "topLevel") || flag(f, "shadowed") || json_member(f, "scope").p ||
        word_is(f, "kind", "declaration"))
        return false;
    return !m->only_exports || flag(f, "exported");
}

static bool is_chosen(const struct making *m, struct json_value name)
{
    const struct bundle_choice *c = m->choice;

    if (names_it(c->exclude, c->exclude_n, name))
        return false;
    return c->include_n == 0 || names_it(c->include, c->include_n, name);
}

/* ---- one tool ---- */

static void write_description(struct making *m, struct json_value f, struct json_value name)
{
    struct json_value doc = json_member(f, "docstring");
    cleanup_with(buf_done) struct buf text = BUF_INIT(f.n + CALL_ROOM);

    if (!doc.p)
        doc = json_member(json_member(f, "tool"), "description");
    decode(doc, &text);
    if (text.n == 0) {
        warn(m, name, "it has no docstring: nobody will know when to use it");
        (void)buf_puts(&text, "Function ");
        decode(name, &text);
        (void)buf_putc(&text, '.');
    }
    if (text.n > BUNDLE_TEXT_MAX)
        text.n = utf8_truncate(text.p, text.n, BUNDLE_TEXT_MAX);
    (void)buf_printf(&text, " (user-defined, bundle %.*s)", (int)m->choice->bundle.n,
                     m->choice->bundle.p);
    jw_kv_bytes(&m->tools, "description", text.p, text.n);
}

/* The members of a property without those that mean something else in the schema of a call. */
static void write_property(struct jw *w, struct json_value property)
{
    struct json_value key, v;
    size_t at = 0;

    while (property.type == JSON_OBJECT && json_object_next(property, &at, &key, &v)) {
        if (json_key_is(key, "required") || json_key_is(key, "index"))
            continue;
        put_key(w, key);
        jw_raw(w, v.p, v.n);
    }
}

static struct json_value same_key(struct json_value object, struct json_value name)
{
    struct json_value key, v;
    size_t at = 0;

    while (object.p && object.type == JSON_OBJECT && json_object_next(object, &at, &key, &v))
        if (key.n == name.n && memcmp(key.p, name.p, key.n) == 0)
            return v;
    return (struct json_value){0};
}

/* The whole schema of each parameter, and where it goes. One that may be null and is not given is
 * null. */
static void write_call_schema(struct jw *w, struct json_value f)
{
    struct json_value properties =
        json_member(json_member(json_member(f, "tool"), "parameters"), "properties");
    struct json_value input = json_member(json_member(f, "signature"), "input"), key, v, property;
    size_t at = 0;

    jw_key(w, "call");
    jw_object(w);
    jw_key(w, "input");
    jw_object(w);
    while (input.p && input.type == JSON_OBJECT && json_object_next(input, &at, &key, &v)) {
        struct json_value index = json_member(v, "index");
        bool required = flag(v, "required");

        property = same_key(properties, key);
        put_key(w, key);
        jw_object(w);
        if (property.p)
            write_property(w, property);
        if (required && property.p && portable_is_nullable(property)) {
            jw_key(w, "default");
            jw_null(w);
            required = false;
        }
        jw_kv_bool(w, "required", required);
        if (index.p && index.type == JSON_NUMBER) {
            jw_key(w, "index");
            jw_raw(w, index.p, index.n);
        }
        jw_object_end(w);
    }
    jw_object_end(w);
    jw_kv_bool(w, "strict", true);
    jw_object_end(w);
}

/* *args: the array of that name is spread behind the other positions. */
static void write_variadic(struct jw *w, struct json_value f)
{
    struct json_value list = json_member(f, "parameters"), p, name;
    int64_t index, behind = 0;
    size_t at = 0;

    while (list.p && list.type == JSON_ARRAY && json_array_next(list, &at, &p)) {
        if (word_is(p, "kind", "variadic")) {
            name = json_member(p, "name");
            if (name.p && name.type == JSON_STRING) {
                jw_key(w, "variadic");
                jw_raw(w, name.p, name.n);
                jw_kv_int(w, "at", behind);
            }
            return;
        }
        if (json_member(p, "index").p && json_to_int(json_member(p, "index"), &index) &&
            index >= behind && index < PORTABLE_MAX)
            behind = index + 1;
    }
}

/* Is there one of that name already? Notes it otherwise. */
static bool is_taken(struct making *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->names[i], name) == 0)
            return true;
    (void)snprintf(m->names[m->n], sizeof m->names[0], "%s", name);
    return false;
}

static void take(struct making *m, struct json_value f, struct json_value name)
{
    struct json_value tool = json_member(f, "tool"), refused = json_member(f, "refused");
    cleanup_with(buf_done) struct buf made = BUF_INIT(CALL_ROOM), schema = BUF_INIT(PORTABLE_MAX),
                                      why = BUF_INIT(CALL_ROOM);
    struct jw *w = &m->tools;
    struct err e;

    if (refused.p && refused.type == JSON_STRING) {
        decode(refused, &why);
        warn(m, name, why.p && !why.failed ? why.p : "it cannot be called");
        return;
    }
    (void)buf_put(&made, m->choice->prefix.p ? m->choice->prefix.p : "", m->choice->prefix.n);
    decode(json_member(tool, "name"), &made);
    if (made.failed || !portable_name_is_good(made.p ? made.p : "", made.n)) {
        warn(m, name, "its name is not one of 1 to 64 letters, digits, _ and -");
    } else if (m->n >= BUNDLE_TOOLS_MAX) {
        warn(m, name, "left out: a bundle has at most 64 tools");
    } else if (portable_parameters(json_member(tool, "parameters"), &schema, &e) < 0) {
        warn(m, name, e.text);
    } else if (is_taken(m, made.p)) {
        warn(m, name, "left out: another function has this name");
    } else {
        m->n++;
        jw_object(w);
        jw_kv_bytes(w, "name", made.p, made.n);
        jw_key(w, "function");
        jw_raw(w, name.p, name.n);
        write_description(m, f, name);
        jw_key(w, "inputSchema");
        jw_raw(w, schema.p, schema.n);
        write_call_schema(w, f);
        write_variadic(w, f);
        jw_object_end(w);
    }
}

static bool has_exports(struct json_value functions)
{
    struct json_value f;
    size_t at = 0;

    while (json_array_next(functions, &at, &f))
        if (flag(f, "exported") && flag(f, "topLevel"))
            return true;
    return false;
}

static int refuse_syntax(struct json_value wrong, struct err *e)
{
    int64_t line = 0, column = 0;

    (void)!json_to_int(json_member(wrong, "line"), &line);
    (void)!json_to_int(json_member(wrong, "column"), &column);
    return err_set(e, ERR_CALLER, "code: line %lld, column %lld: syntax error; nothing was changed",
                   (long long)line, (long long)column);
}

int bundle_write_tools(const struct bundle_choice *c, struct json_value inspected,
                       struct buf *tools, struct buf *warnings, struct err *e)
{
    struct json_value functions = json_member(inspected, "functions"), f, name,
                      wrong = json_member(inspected, "syntaxError");
    cleanup_free struct making *m = calloc(1, sizeof *m);
    size_t at = 0;

    if (!m)
        return err_set(e, ERR_HOST, "out of memory");
    if (wrong.p)
        return refuse_syntax(wrong, e);
    if (!functions.p || functions.type != JSON_ARRAY)
        return err_set(e, ERR_HOST, "the inspector's answer has no functions");
    *m = (struct making){.choice = c, .tools = JW(tools), .warnings = JW(warnings)};
    m->only_exports = word_is(inspected, "language", "javascript") && has_exports(functions);
    jw_array(&m->tools);
    jw_array(&m->warnings);
    while (json_array_next(functions, &at, &f)) {
        name = json_member(f, "name");
        if (is_public(m, f, name) && is_chosen(m, name))
            take(m, f, name);
    }
    jw_array_end(&m->tools);
    jw_array_end(&m->warnings);
    if (tools->failed || warnings->failed)
        return err_set(e, ERR_CALLER, "code: its tools take more than %d bytes",
                       BUNDLE_RECORD_ROOM);
    if (m->n > 0)
        return 0;
    return err_set(e, ERR_CALLER,
                   "code: there is no public function at its top level that can be a tool%s%.300s",
                   m->warned > 0 ? ": " : "", m->warned > 0 ? warnings->p : "");
}

/* ---- records ---- */

static void check_name(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (!bundle_name_is_good(b->p, b->n))
        shape_complain(s, f->name, NULL, "value_error", "Input should be the name of a bundle");
}

/* clang-format off */
#define AT(member) offsetof(struct bundle_members, member)
static const struct shape_field fields[] = {
    {"name", SHAPE_STRING, SHAPE_REQUIRED, AT(name), .check = check_name},
    {"version", SHAPE_INT, SHAPE_REQUIRED, AT(version), 1, INT32_MAX},
    {"language", SHAPE_STRING, SHAPE_REQUIRED, AT(language)},
    {"sha256", SHAPE_STRING, SHAPE_REQUIRED, AT(sha256)},
    {"created_at", SHAPE_STRING, SHAPE_REQUIRED, AT(created_at)},
    {"by", SHAPE_STRING, SHAPE_REQUIRED, AT(by)},
    {"prefix", SHAPE_STRING, SHAPE_REQUIRED, AT(prefix)},
    {"timeout", SHAPE_INT, SHAPE_REQUIRED, AT(timeout_s), 1, BUNDLE_TIMEOUT_MAX_S},
    {"memory_mb", SHAPE_INT, SHAPE_REQUIRED, AT(memory_mb), 0, INT32_MAX},
    {"env", SHAPE_STRINGS, SHAPE_REQUIRED, AT(env), 0, VARS_MAX},
    {"include", SHAPE_LIST, SHAPE_REQUIRED, AT(include), 0, BUNDLE_LIST_MAX},
    {"exclude", SHAPE_LIST, SHAPE_REQUIRED, AT(exclude), 0, BUNDLE_LIST_MAX},
    {"tools", SHAPE_RAW, SHAPE_REQUIRED, AT(tools), .accepts = BIT(JSON_ARRAY)},
    {"warnings", SHAPE_RAW, SHAPE_REQUIRED, AT(warnings), .accepts = BIT(JSON_ARRAY)},
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code)},
};
#undef AT
/* clang-format on */
static const struct shape record_shape = {fields, ARRAY_LEN(fields), 0, NULL};

static void write_env(struct jw *w, const struct shape_strings *env)
{
    jw_key(w, "env");
    jw_object(w);
    for (size_t i = 0; i < env->n; i++) {
        jw_bytes(w, env->v[i].name.p, env->v[i].name.n);
        (void)buf_putc(w->out, ':');
        w->comma = false;
        jw_bytes(w, env->v[i].value.p, env->v[i].value.n);
    }
    jw_object_end(w);
}

static void write_list(struct jw *w, const char *key, const struct shape_strings *list)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t i = 0; i < list->n; i++)
        jw_bytes(w, list->v[i].value.p, list->v[i].value.n);
    jw_array_end(w);
}

size_t bundle_vars_room(const struct bundle_members *m)
{
    const struct shape_strings *const all[] = {&m->env, &m->include, &m->exclude};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        for (size_t k = 0; k < all[i]->n; k++)
            n += all[i]->v[k].name.n + all[i]->v[k].value.n + 8;
    return n;
}

void bundle_write(const struct bundle_members *m, struct buf *out)
{
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_bytes(&w, "name", m->name.p, m->name.n);
    jw_kv_int(&w, "version", m->version);
    jw_kv_bytes(&w, "language", m->language.p, m->language.n);
    jw_kv_bytes(&w, "sha256", m->sha256.p, m->sha256.n);
    jw_kv_bytes(&w, "created_at", m->created_at.p, m->created_at.n);
    jw_kv_bytes(&w, "by", m->by.p, m->by.n);
    jw_kv_bytes(&w, "prefix", m->prefix.p ? m->prefix.p : "", m->prefix.n);
    jw_kv_int(&w, "timeout", m->timeout_s);
    jw_kv_int(&w, "memory_mb", m->memory_mb);
    write_env(&w, &m->env);
    write_list(&w, "include", &m->include);
    write_list(&w, "exclude", &m->exclude);
    jw_key(&w, "tools");
    jw_raw(&w, m->tools.p, m->tools.n);
    jw_key(&w, "warnings");
    jw_raw(&w, m->warnings.p, m->warnings.n);
    jw_kv_bytes(&w, "code", m->code.p, m->code.n);
    jw_object_end(&w);
}

static int read_tool(struct bundle *b, struct json_value v, struct err *e)
{
    struct published *t = &b->tools[b->tools_n];
    struct json_value name = json_member(v, "name"), at = json_member(v, "at");

    *t = (struct published){
        .bundle = b,
        .function = json_member(v, "function"),
        .description = json_member(v, "description"),
        .schema = json_member(v, "inputSchema"),
        .call = json_member(v, "call"),
        .variadic = json_member(v, "variadic"),
    };
    if (!name.p || name.type != JSON_STRING || !portable_name_is_good(name.p + 1, name.n - 2) ||
        !t->function.p || t->function.type != JSON_STRING || !t->description.p || !t->schema.p ||
        t->schema.type != JSON_OBJECT || !t->call.p || t->call.type != JSON_OBJECT ||
        (at.p && !json_to_int(at, &t->variadic_at)))
        return err_set(e, ERR_HOST, "a tool of the record is malformed");
    memcpy(t->name, name.p + 1, name.n - 2);
    b->tools_n++;
    return 0;
}

static int read_tools(struct bundle *b, struct err *e)
{
    struct json_value v;
    size_t at = 0, n = 0;

    while (json_array_next(b->is.tools, &at, &v))
        n++;
    if (n > BUNDLE_TOOLS_MAX)
        return err_set(e, ERR_HOST, "the record has more than %d tools", BUNDLE_TOOLS_MAX);
    b->tools = calloc(n + 1, sizeof *b->tools);
    if (!b->tools)
        return err_set(e, ERR_HOST, "out of memory");
    for (at = 0; json_array_next(b->is.tools, &at, &v);)
        if (read_tool(b, v, e) < 0)
            return -1;
    return 0;
}

int bundle_read(struct buf *text, struct bundle **ret, struct err *e)
{
    struct bundle *b = calloc(1, sizeof *b);

    if (!b)
        return err_set(e, ERR_HOST, "out of memory");
    shaping_init(&b->shaping, NULL);
    if (shape_parse(&record_shape, text->p ? text->p : "", text->n, &b->is, &b->shaping) < 0)
        (void)shape_err(&b->shaping, e);
    else if (read_tools(b, e) == 0) {
        b->text = *text; /* its memory stays where it is */
        *text = BUF_INIT(0);
        *ret = b;
        return 0;
    }
    bundle_free(b);
    return -1;
}

int bundle_remake(const struct bundle_members *m, size_t room, struct bundle **ret, struct err *e)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(room);

    bundle_write(m, &text);
    if (text.failed)
        return err_set(e, ERR_HOST, "the record of the tools is larger than %zu bytes", room);
    return bundle_read(&text, ret, e);
}

void bundle_free(struct bundle *b)
{
    if (!b)
        return;
    shaping_done(&b->shaping);
    buf_done(&b->text);
    free(b->tools);
    free(b);
}

struct published *bundle_tool(const struct bundle *b, const char *name, size_t n)
{
    for (size_t i = 0; i < b->tools_n; i++)
        if (strlen(b->tools[i].name) == n && memcmp(b->tools[i].name, name, n) == 0)
            return &b->tools[i];
    return NULL;
}

/* ---- calls ---- */

static int refuse_argument(const struct published *t, struct json_value properties,
                           struct json_value key, struct err *e)
{
    char known[KNOWN_MAX] = "";
    struct json_value name, v;
    size_t at = 0, n = 0;

    while (properties.p && json_object_next(properties, &at, &name, &v) &&
           n + name.n + 2 < sizeof known)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%.*s", n > 0 ? ", " : "",
                              (int)name.n - 2, name.p + 1);
    return err_set(e, ERR_CALLER, "%s: there is no argument %.*s; %s%s", t->name,
                   key.n < 80 ? (int)key.n : 80, key.p,
                   n > 0 ? "the arguments are: " : "it takes none", known);
}

static int check_names(const struct published *t, struct json_value arguments, struct err *e)
{
    struct json_value properties = json_member(t->schema, "properties"), key, v,
                      more = json_member(t->schema, "additionalProperties");
    size_t at = 0;
    bool open = false;

    if (more.p && (more.type != JSON_BOOL || (json_to_bool(more, &open) && open)))
        return 0;
    while (arguments.p && json_object_next(arguments, &at, &key, &v))
        if (!same_key(properties, key).p)
            return refuse_argument(t, properties, key, e);
    return 0;
}

static void write_spread(struct jw *w, const struct published *t, struct json_value list)
{
    struct json_value v;
    int64_t place = t->variadic_at;
    size_t at = 0;

    jw_key(w, "args");
    jw_array(w);
    while (list.p && list.type == JSON_ARRAY && json_array_next(list, &at, &v)) {
        jw_object(w);
        jw_kv_int(w, "index", place++);
        jw_key(w, "value");
        jw_raw(w, v.p, v.n);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* By name, so that no value of theirs is taken for a place. */
static void write_arguments(struct jw *w, const struct published *t, struct json_value arguments)
{
    struct json_value key, v;
    size_t at = 0;

    if (t->variadic.p)
        write_spread(w, t, same_key(arguments, t->variadic));
    jw_key(w, "kwargs");
    jw_object(w);
    while (arguments.p && json_object_next(arguments, &at, &key, &v)) {
        if (t->variadic.p && key.n == t->variadic.n && memcmp(key.p, t->variadic.p, key.n) == 0)
            continue;
        put_key(w, key);
        jw_raw(w, v.p, v.n);
    }
    jw_object_end(w);
}

int published_write_call(const struct published_order *p, struct buf *out, struct err *e)
{
    const struct published *t = p->tool;
    const struct bundle_members *m = &t->bundle->is;
    struct json_value arguments = p->arguments;
    bool cut = p->most_s > 0 && p->most_s < m->timeout_s;
    struct jw w = JW(out);

    if (arguments.p && arguments.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "%s: its arguments should be an object", t->name);
    if (check_names(t, arguments, e) < 0)
        return -1;
    *out = BUF_INIT(2 * t->bundle->text.n * ESCAPE_FACTOR + 8 * arguments.n + CALL_ROOM);
    jw_object(&w);
    jw_kv_bytes(&w, "language", m->language.p, m->language.n);
    jw_key(&w, "functionName");
    jw_raw(&w, t->function.p, t->function.n);
    write_arguments(&w, t, arguments);
    jw_key(&w, "schema");
    jw_raw(&w, t->call.p, t->call.n);
    jw_kv_int(&w, "timeout", cut ? p->most_s : m->timeout_s);
    jw_key(&w, "options");
    jw_object(&w);
    write_env(&w, &m->env);
    jw_object_end(&w);
    jw_kv_bytes(&w, "code", m->code.p, m->code.n);
    jw_object_end(&w);
    return out->failed ? err_set(e, ERR_HOST, "out of memory") : 0;
}
