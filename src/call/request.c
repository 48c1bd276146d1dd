/* SPDX-License-Identifier: MIT */
#include "call/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

enum { MS_PER_S = 1000, TIMEOUT_MAX_S = 86400, THRESHOLD_MAX = 1 << 30 };

const char *call_mode_name(enum call_mode m)
{
    static const char *const names[] = {"auto", "inline", "stdin", "file"};

    _Static_assert(ARRAY_LEN(names) == CALL_MODES, "every mode has a name");
    return names[m];
}

/* ---- reading one field ---- */

/* Every field, once; an object is gone through only once, for a body can be large. */
#define BODY_FIELDS                                                                                \
    F(language)                                                                                    \
    F(code)                                                                                        \
    F(functionName)                                                                                \
    F(args)                                                                                        \
    F(kwargs)                                                                                      \
    F(schema)                                                                                      \
    F(argsMode)                                                                                    \
    F(autoModeThreshold) F(timeout) F(engine) F(isolation) F(stdin) F(options) F(resultOptions)
#define OPTION_FIELDS                                                                              \
    F(files)                                                                                       \
    F(mount)                                                                                       \
    F(workdir) F(permissions) F(reporting) F(env) F(std) F(argsMode) F(autoModeThreshold) F(timeout)
#define F(name) struct json_value name;
struct body_fields {
    BODY_FIELDS
};
struct option_fields {
    OPTION_FIELDS
};
#undef F
#define F(name) #name,
static const char *const body_names[] = {BODY_FIELDS};
static const char *const option_names[] = {OPTION_FIELDS};
#undef F

static int wrong(struct err *e, const char *field, const char *what)
{
    return err_set(e, ERR_CALLER, "%s: should be %s", field, what);
}

/* Fills a struct of values in the order of names. null counts as absent. */
static void collect(struct json_value object, const char *const *names, size_t names_n, void *to)
{
    struct json_value *v = to, key, value;
    const struct json_value absent = {0};

    for (size_t at = 0; object.p && json_object_next(object, &at, &key, &value);)
        for (size_t i = 0; i < names_n; i++)
            if (json_key_is(key, names[i]))
                v[i] = value.type == JSON_NULL ? absent : value;
}

/* Decodes into the arena with a NUL behind. The arena was made large enough for the whole body, so
 * it never moves and views into it stay good. */
static int decode(struct call_request *r, struct json_value v, struct bytes *ret)
{
    size_t at = r->arena.n;

    if (json_decode_string(v, 0, &r->arena) < 0)
        return -1;
    *ret = (struct bytes){.p = r->arena.p + at, .n = r->arena.n - at};
    return buf_putc(&r->arena, '\0');
}

static int get_string(struct call_request *r, struct json_value v, const char *name,
                      struct bytes *ret, struct err *e)
{
    if (!v.p)
        return 0;
    if (v.type != JSON_STRING)
        return wrong(e, name, "a string");
    if (decode(r, v, ret) < 0)
        return err_set(e, ERR_CALLER, "%s: contains half of a surrogate pair", name);
    return 0;
}

static int get_object(struct json_value v, const char *name, struct json_value *ret, struct err *e)
{
    if (v.p && v.type != JSON_OBJECT)
        return wrong(e, name, "an object");
    *ret = v;
    return 0;
}

static int get_bool(struct json_value object, const char *name, bool *ret, struct err *e)
{
    struct json_value v;

    if (!json_get(object, name, &v) || v.type == JSON_NULL)
        return 0;
    return json_to_bool(v, ret) ? 0 : wrong(e, name, "true or false");
}

/* ---- paths ---- */

int call_path(const char *base, const char *p, size_t n, struct buf *out)
{
    size_t start = out->n;

    if (n == 0 || n > CALL_PATH_MAX || memchr(p, '\0', n))
        return -1;
    if (p[0] != '/' && strcmp(base, "/") != 0)
        (void)buf_puts(out, base);
    for (size_t at = 0; at < n;) {
        const char *slash = memchr(p + at, '/', n - at);
        size_t len = slash ? (size_t)(slash - p) - at : n - at;

        if (len == 2 && memcmp(p + at, "..", 2) == 0)
            return -1;
        if (len > 0 && !(len == 1 && p[at] == '.')) {
            (void)buf_putc(out, '/');
            (void)buf_put(out, p + at, len);
        }
        at += len + 1;
    }
    if (out->n == start)
        (void)buf_putc(out, '/');
    return buf_putc(out, '\0');
}

static int get_workdir(struct call_request *r, struct json_value v, struct err *e)
{
    struct bytes given = {0};
    size_t at;

    r->workdir = "/workspace";
    if (get_string(r, v, "options.workdir", &given, e) < 0)
        return -1;
    if (!given.p)
        return 0;
    at = r->arena.n;
    if (call_path("/workspace", given.p, given.n, &r->arena) < 0)
        return wrong(e, "options.workdir", "a path without '..'");
    r->workdir = r->arena.p + at;
    return 0;
}

/* ---- files ---- */

static int file_content(struct call_request *r, struct json_value v, struct bytes *ret)
{
    struct json_value coded;
    struct bytes text;
    size_t at;

    if (v.type == JSON_STRING)
        return decode(r, v, ret);
    if (v.type != JSON_OBJECT || !json_get(v, "base64", &coded) || coded.type != JSON_STRING ||
        decode(r, coded, &text) < 0)
        return -1;
    at = r->arena.n;
    if (base64_decode(text.p, text.n, &r->arena) < 0)
        return -1;
    *ret = (struct bytes){.p = r->arena.p + at, .n = r->arena.n - at};
    return 0;
}

static int get_file(struct call_request *r, struct json_value key, struct json_value v,
                    struct err *e)
{
    struct call_file *f = &r->files[r->files_n];
    struct bytes name;
    size_t at;

    if (decode(r, key, &name) < 0)
        return wrong(e, "options.files", "an object of paths");
    at = r->arena.n;
    if (call_path(r->workdir, name.p, name.n, &r->arena) < 0)
        return err_set(e, ERR_CALLER, "options.files: '%.200s' is not a path without '..'", name.p);
    f->path = r->arena.p + at;
    if (strcmp(f->path, r->workdir) == 0 || strcmp(f->path, "/workspace") == 0)
        return err_set(e, ERR_CALLER, "options.files: '%.200s' is a directory", name.p);
    if (file_content(r, v, &f->content) < 0)
        return err_set(e, ERR_CALLER,
                       "options.files: '%.200s' should be a text or {\"base64\": \"...\"}", name.p);
    r->files_n++;
    return 0;
}

static int get_files(struct call_request *r, struct json_value files, struct err *e)
{
    struct json_value key, v;
    size_t at = 0, n = 0;

    if (!files.p)
        return 0;
    if (files.type != JSON_OBJECT)
        return wrong(e, "options.files", "an object");
    while (json_object_next(files, &at, &key, &v))
        n++;
    if (n > CALL_FILES_MAX)
        return err_set(e, ERR_CALLER, "options.files: more than %d files", CALL_FILES_MAX);
    r->files = calloc(n + 1, sizeof *r->files);
    if (!r->files)
        return err_set(e, ERR_HOST, "out of memory");
    for (at = 0; json_object_next(files, &at, &key, &v);)
        if (get_file(r, key, v, e) < 0)
            return -1;
    return 0;
}

/* ---- environment ---- */

static int get_vars(struct call_request *r, struct json_value env, struct err *e)
{
    struct json_value key, v;
    size_t at = 0, n = 0;

    if (!env.p)
        return 0;
    if (env.type != JSON_OBJECT)
        return wrong(e, "options.env", "an object of strings");
    while (json_object_next(env, &at, &key, &v))
        n++;
    if (n > CALL_VARS_MAX)
        return err_set(e, ERR_CALLER, "options.env: more than %d variables", CALL_VARS_MAX);
    r->vars = calloc(n + 1, sizeof *r->vars);
    if (!r->vars)
        return err_set(e, ERR_HOST, "out of memory");
    for (at = 0; json_object_next(env, &at, &key, &v); r->vars_n++)
        if (v.type != JSON_STRING || decode(r, key, &r->vars[r->vars_n].name) < 0 ||
            decode(r, v, &r->vars[r->vars_n].value) < 0)
            return wrong(e, "options.env", "an object of strings");
    return 0;
}

/* ---- the rest ---- */

static int get_mode(struct json_value v, struct call_request *r, struct err *e)
{
    if (!v.p)
        return 0;
    for (int m = 0; m < CALL_MODES; m++)
        if (v.type == JSON_STRING && json_key_is(v, call_mode_name((enum call_mode)m))) {
            r->mode = (enum call_mode)m;
            return 0;
        }
    return wrong(e, "argsMode", "inline, stdin, file or auto");
}

static int get_threshold(struct json_value v, struct call_request *r, struct err *e)
{
    int64_t n;

    if (!v.p)
        return 0;
    if (!json_to_int(v, &n) || n < 0 || n > THRESHOLD_MAX)
        return wrong(e, "autoModeThreshold", "a number of bytes");
    r->auto_threshold = (uint64_t)n;
    return 0;
}

static int get_timeout(struct json_value v, struct call_request *r, struct err *e)
{
    double s;

    if (!v.p)
        return 0;
    if (!json_to_double(v, &s) || !(s >= 0) || s > TIMEOUT_MAX_S)
        return wrong(e, "timeout", "a number of seconds, at most 86400");
    r->wall_ms = s > 0 && s * MS_PER_S < 1 ? 1 : (uint64_t)(s * MS_PER_S);
    return 0;
}

static int get_reporting(struct json_value from, struct call_request *r, struct err *e)
{
    if (!from.p)
        return 0;
    return get_bool(from, "includeChanges", &r->include_changes, e) < 0 ||
                   get_bool(from, "includeContents", &r->include_contents, e) < 0 ||
                   get_bool(from, "includeDenied", &r->include_denied, e) < 0
               ? -1
               : 0;
}

static int get_options(struct call_request *r, const struct body_fields *b, struct err *e)
{
    struct json_value options, old, reporting;
    struct option_fields o = {0};
    struct bytes std = {0};

    if (get_object(b->options, "options", &options, e) < 0 ||
        get_object(b->resultOptions, "resultOptions", &old, e) < 0)
        return -1;
    collect(options, option_names, ARRAY_LEN(option_names), &o);
    if (get_object(o.reporting, "options.reporting", &reporting, e) < 0 ||
        get_object(o.permissions, "options.permissions", &r->permissions, e) < 0 ||
        get_object(o.mount, "options.mount", &r->mount, e) < 0 ||
        get_string(r, o.std, "options.std", &std, e) < 0)
        return -1;
    r->std = std.p ? std.p : "";
    if (get_mode(o.argsMode, r, e) < 0 || get_mode(b->argsMode, r, e) < 0 ||
        get_threshold(o.autoModeThreshold, r, e) < 0 ||
        get_threshold(b->autoModeThreshold, r, e) < 0 || get_timeout(o.timeout, r, e) < 0 ||
        get_timeout(b->timeout, r, e) < 0)
        return -1;
    if (get_reporting(old, r, e) < 0 || get_reporting(reporting, r, e) < 0)
        return -1;
    return get_workdir(r, o.workdir, e) < 0 || get_files(r, o.files, e) < 0 ||
                   get_vars(r, o.env, e) < 0
               ? -1
               : 0;
}

static int get_engine(struct call_request *r, struct json_value v, struct err *e)
{
    if (!v.p)
        return 0;
    if (v.type != JSON_STRING || (!json_key_is(v, "native") && !json_key_is(v, "wasm")))
        return wrong(e, "engine", "native or wasm");
    r->wasm = json_key_is(v, "wasm");
    return 0;
}

static int get_call(struct call_request *r, const struct body_fields *b, struct err *e)
{
    if (b->args.p && b->args.type != JSON_ARRAY && b->args.type != JSON_OBJECT)
        return wrong(e, "args", "an array or an object");
    r->args = b->args;
    if (get_object(b->kwargs, "kwargs", &r->kwargs, e) < 0 ||
        get_object(b->schema, "schema", &r->schema, e) < 0 ||
        get_string(r, b->functionName, "functionName", &r->function, e) < 0 ||
        get_string(r, b->stdin, "stdin", &r->input, e) < 0)
        return -1;
    if (!r->function.p)
        return 0;
    if (r->function.n == 0 || r->function.n > CALL_NAME_MAX ||
        memchr(r->function.p, '\0', r->function.n))
        return wrong(e, "functionName", "a name of at most 256 bytes");
    return 0;
}

/* Decoded text is never longer than its JSON; beside it there are paths made of names, and NULs. */
static int begin(struct call_request *r, struct json_value body, struct body_fields *ret,
                 struct err *e)
{
    if (body.type != JSON_OBJECT)
        return wrong(e, "body", "an object");
    collect(body, body_names, ARRAY_LEN(body_names), ret);
    r->arena = BUF_INIT(2 * body.n + CALL_NAME_MAX +
                        (ret->options.p ? (CALL_FILES_MAX + 4) * (size_t)CALL_PATH_MAX : 0));
    if (buf_reserve(&r->arena, r->arena.max) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    return 0;
}

int call_request_parse(struct call_request *r, const char *text, size_t n, struct err *e)
{
    struct body_fields b = {0};
    struct json_value body;

    *r = (struct call_request){.auto_threshold = CALL_AUTO_DEFAULT,
                               .include_changes = true,
                               .include_contents = true,
                               .include_denied = true};
    if (json_parse(text, n, 0, &body, e) < 0 || begin(r, body, &b, e) < 0)
        return -1;
    if (get_string(r, b.language, "language", &r->language, e) < 0 ||
        get_string(r, b.code, "code", &r->code, e) < 0)
        return -1;
    if (!r->language.p)
        return wrong(e, "language", "given: the name of a language");
    if (!r->code.p)
        return wrong(e, "code", "given: source text");
    if (get_call(r, &b, e) < 0 || get_engine(r, b.engine, e) < 0 ||
        get_string(r, b.isolation, "isolation", &r->isolation, e) < 0)
        return -1;
    return get_options(r, &b, e);
}

/* Options of one call of a session. */
static int get_turn_options(struct call_request *r, const struct body_fields *b, struct err *e)
{
    struct json_value options, old, reporting;
    struct option_fields o = {0};

    if (get_object(b->options, "options", &options, e) < 0 ||
        get_object(b->resultOptions, "resultOptions", &old, e) < 0)
        return -1;
    collect(options, option_names, ARRAY_LEN(option_names), &o);
    const struct {
        const char *name;
        struct json_value v;
    } fixed[] = {
        {"mount",       o.mount      },
        {"permissions", o.permissions},
        {"workdir",     o.workdir    },
        {"env",         o.env        },
        {"std",         o.std        },
    };
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (fixed[i].v.p)
            return err_set(e, ERR_CALLER,
                           "options.%s: is the session's; give it when the session is created",
                           fixed[i].name);
    if (get_object(o.reporting, "options.reporting", &reporting, e) < 0 ||
        get_timeout(o.timeout, r, e) < 0 || get_reporting(old, r, e) < 0 ||
        get_reporting(reporting, r, e) < 0)
        return -1;
    return get_files(r, o.files, e);
}

int call_request_parse_turn(struct call_request *r, const char *text, size_t n, const char *workdir,
                            const struct call_reporting *usual, struct err *e)
{
    struct body_fields b = {0};
    struct json_value body;

    *r = (struct call_request){.workdir = workdir,
                               .include_changes = usual->changes,
                               .include_contents = usual->contents,
                               .include_denied = usual->denied};
    if (json_parse(text, n, 0, &body, e) < 0 || begin(r, body, &b, e) < 0 || get_call(r, &b, e) < 0)
        return -1;
    if (!r->function.p)
        return wrong(e, "functionName", "given: the name of a function");
    if (get_turn_options(r, &b, e) < 0)
        return -1;
    return get_timeout(b.timeout, r, e);
}

void call_request_done(struct call_request *r)
{
    buf_done(&r->arena);
    free(r->files);
    free(r->vars);
    r->files = NULL;
    r->vars = NULL;
    r->files_n = r->vars_n = 0;
}
