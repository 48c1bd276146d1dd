/* SPDX-License-Identifier: MIT */
#include "function/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "core/package.h"
#include "core/webhook_help.h"
#include "function/mount.h"

enum { MS_PER_S = 1000, TIMEOUT_MAX_S = 86400, IDLE_MAX_S = 365 * 86400, THRESHOLD_MAX = 1 << 30 };

static const char *const modes[] = {"auto", "inline", "stdin", "file", NULL};
static const char *const engines[] = {"native", "wasm", NULL};

_Static_assert(ARRAY_LEN(modes) == CALL_MODES + 1, "every mode has a name");

const char *call_mode_name(enum call_mode m)
{
    return modes[m];
}

/* ---- tables ---- */

/* Not given: p == NULL, or below 0. */
struct reporting_body {
    struct json_value changes, contents, denied;
};

struct options_body {
    struct json_value files, mount, permissions;
    struct bytes workdir, std;
    struct reporting_body reporting;
    struct shape_strings env;
    int mode;
    int64_t threshold;
    double timeout;
    struct json_value fixed; /* what belongs to the session */
};

struct request_body {
    struct bytes language, code, function, input, isolation;
    struct json_value args, kwargs, schema, packages, webhook, fixed;
    int mode, engine;
    int64_t threshold;
    double timeout, idle;
    struct options_body options;
    struct reporting_body old_reporting;
};

static void check_function(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (b->n == 0 || b->n > CALL_NAME_MAX || memchr(b->p, '\0', b->n))
        shape_complain(s, f->name, NULL, "value_error",
                       "Input should be a name of at most %d bytes", CALL_NAME_MAX);
}

static void check_fixed(struct shaping *s, const struct shape_field *f, const void *value)
{
    (void)value;
    shape_complain(s, f->name, NULL, "value_error",
                   "is the session's; give it when the session is created");
}

/* clang-format off */
#define BOOL_SCHEMA  "{\"type\":\"boolean\"}"
#define FILES_SCHEMA \
    "{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[{\"type\":\"string\"}," \
    "{\"type\":\"object\",\"required\":[\"base64\"],\"properties\":{\"base64\":{\"type\":\"string\"}}}]}}"
#define ARGS_SCHEMA  "{\"type\":[\"array\",\"object\"]}"
#define OBJECT       BIT(JSON_OBJECT)

#define AT(member) offsetof(struct reporting_body, member)
static const struct shape_field reporting_fields[] = {
    {"includeChanges", SHAPE_RAW, 0, AT(changes), .accepts = BIT(JSON_BOOL), .schema = BOOL_SCHEMA,
     .help = "files; true"},
    {"includeContents", SHAPE_RAW, 0, AT(contents), .accepts = BIT(JSON_BOOL), .schema = BOOL_SCHEMA,
     .help = "content and oldContent of changes; true"},
    {"includeDenied", SHAPE_RAW, 0, AT(denied), .accepts = BIT(JSON_BOOL), .schema = BOOL_SCHEMA,
     .help = "what was not allowed; true"},
};
#undef AT
static const struct shape reporting_shape = {
    reporting_fields, ARRAY_LEN(reporting_fields), SHAPE_NULLS, "FunctionReporting"};

#define AT(member) offsetof(struct options_body, member)
#define FILES \
    {"files", SHAPE_RAW, 0, AT(files), .accepts = OBJECT, .schema = FILES_SCHEMA, \
     .help = "path to text, or to {base64}; there before the call"}
#define REPORTING \
    {"reporting", SHAPE_NESTED, 0, AT(reporting), .inner = &reporting_shape, .help = "what is told of files"}
#define OLD_TIMEOUT \
    {"timeout", SHAPE_NUMBER, SHAPE_OLD, AT(timeout), .max = TIMEOUT_MAX_S, .help = ""}
static const struct shape_field option_fields[] = {
    FILES,
    {"mount", SHAPE_RAW, 0, AT(mount), .accepts = OBJECT, .inner = &mount_shape,
     .help = "directories of the host, if MOUNT_ROOTS allows them"},
    {"workdir", SHAPE_STRING, 0, AT(workdir), .help = "working directory; /workspace"},
    {"permissions", SHAPE_RAW, 0, AT(permissions), .accepts = OBJECT, .inner = &perms_shape,
     .help = "what may be done to files"},
    REPORTING,
    {"env", SHAPE_STRINGS, 0, AT(env), .max = CALL_VARS_MAX, .help = "environment variables"},
    {"std", SHAPE_STRING, 0, AT(std), .help = "of C and C++: the standard, such as c17"},
    {"argsMode", SHAPE_CHOICE, SHAPE_OLD, AT(mode), .words = modes, .help = ""},
    {"autoModeThreshold", SHAPE_INT, SHAPE_OLD, AT(threshold), .max = THRESHOLD_MAX, .help = ""},
    OLD_TIMEOUT,
};
static const struct shape options_shape = {
    option_fields, ARRAY_LEN(option_fields), SHAPE_NULLS, "FunctionOptions"};

#define FIXED(name) {name, SHAPE_RAW, SHAPE_OLD, AT(fixed), .check = check_fixed, .help = ""}
static const struct shape_field turn_option_fields[] = {
    FILES, REPORTING, OLD_TIMEOUT,
    FIXED("mount"), FIXED("permissions"), FIXED("workdir"), FIXED("env"), FIXED("std"),
};
static const struct shape turn_options_shape = {
    turn_option_fields, ARRAY_LEN(turn_option_fields), SHAPE_NULLS, "SessionCallOptions"};
#undef AT

#define AT(member) offsetof(struct request_body, member)
#define LANGUAGE \
    {"language", SHAPE_STRING, SHAPE_REQUIRED, AT(language), \
     .help = "python, javascript, ruby, php, c, cpp, perl; or an alias"}
#define CODE      {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code), .help = "source text"}
#define ENGINE    {"engine", SHAPE_CHOICE, 0, AT(engine), .words = engines, .help = "what runs it; native"}
#define ISOLATION {"isolation", SHAPE_STRING, 0, AT(isolation), .help = "name of another jail that is allowed"}
#define PACKAGES \
    {"packages", SHAPE_RAW, 0, AT(packages), .accepts = OBJECT | BIT(JSON_STRING), .schema = PACKAGES_SCHEMA, \
     .help = "name of a set of packages, or its lists; installed first"}
#define FUNCTION(flags) \
    {"functionName", SHAPE_STRING, flags, AT(function), .check = check_function, .help = "which function"}
#define ARGS \
    {"args", SHAPE_RAW, 0, AT(args), .accepts = BIT(JSON_ARRAY) | OBJECT, .schema = ARGS_SCHEMA, \
     .help = "by position, by name, or {index, value}"}
#define KWARGS  {"kwargs", SHAPE_RAW, 0, AT(kwargs), .accepts = OBJECT, .help = "by name"}
#define SCHEMA \
    {"schema", SHAPE_RAW, 0, AT(schema), .accepts = OBJECT, \
     .help = "input, output, strict, variadic, acceptsKwargs"}
#define TIMEOUT(text) {"timeout", SHAPE_NUMBER, 0, AT(timeout), .max = TIMEOUT_MAX_S, .help = text}
#define MODE(flags) \
    {"argsMode", SHAPE_CHOICE, flags, AT(mode), .words = modes, .help = "how arguments travel"}
#define THRESHOLD(flags) \
    {"autoModeThreshold", SHAPE_INT, flags, AT(threshold), .max = THRESHOLD_MAX, \
     .help = "bytes of arguments from which auto means file"}
#define OPTIONS(shape) \
    {"options", SHAPE_NESTED, 0, AT(options), .inner = &(shape), .help = "files, mounts, environment"}
#define OLD_REPORTING \
    {"resultOptions", SHAPE_NESTED, SHAPE_OLD, AT(old_reporting), .inner = &reporting_shape, .help = ""}
static const struct shape_field call_fields[] = {
    LANGUAGE, CODE, ENGINE, ISOLATION, PACKAGES, FUNCTION(0), ARGS, KWARGS, SCHEMA, TIMEOUT("seconds of wall time"),
    MODE(0), THRESHOLD(0),
    {"stdin", SHAPE_STRING, 0, AT(input), .help = "standard input of a module"},
    {"webhook", SHAPE_RAW, 0, AT(webhook), .accepts = OBJECT | BIT(JSON_STRING), .schema = WEBHOOK_SCHEMA,
     .help = WEBHOOK_HELP},
    OPTIONS(options_shape), OLD_REPORTING,
};

static const struct shape_field session_fields[] = {
    LANGUAGE, CODE, ENGINE, ISOLATION, PACKAGES,
    TIMEOUT("seconds for loading the code, and for each call that names none"),
    {"idleTimeout", SHAPE_NUMBER, 0, AT(idle), .max = IDLE_MAX_S,
     .help = "seconds without a call after which it is deleted; 0: never"},
    MODE(SHAPE_OLD), THRESHOLD(SHAPE_OLD), OPTIONS(options_shape), OLD_REPORTING,
};

static const struct shape_field turn_fields[] = {
    FUNCTION(SHAPE_REQUIRED), ARGS, KWARGS, SCHEMA, TIMEOUT("seconds of wall time"),
    MODE(SHAPE_OLD), THRESHOLD(SHAPE_OLD), OPTIONS(turn_options_shape), OLD_REPORTING,
    FIXED("language"), FIXED("code"), FIXED("engine"), FIXED("isolation"), FIXED("packages"),
};
#undef AT
/* clang-format on */
const struct shape call_shape = {call_fields, ARRAY_LEN(call_fields), SHAPE_NULLS, "FunctionCall"};
const struct shape session_shape = {session_fields, ARRAY_LEN(session_fields), SHAPE_NULLS,
                                    "SessionCreate"};
const struct shape turn_shape = {turn_fields, ARRAY_LEN(turn_fields), SHAPE_NULLS, "SessionCall"};

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

static int get_workdir(struct call_request *r, struct bytes given, struct err *e)
{
    struct buf *arena = &r->shaping.arena;
    size_t at = arena->n;

    r->workdir = "/workspace";
    if (!given.p)
        return 0;
    if (call_path("/workspace", given.p, given.n, arena) < 0)
        return err_set(e, ERR_CALLER, "options.workdir: should be a path without '..'");
    r->workdir = arena->p + at;
    return 0;
}

/* ---- files ---- */

/* Decodes into the arena, which has room for the whole body and for what base64 stands for. */
static int decode(struct call_request *r, struct json_value v, struct bytes *ret)
{
    struct buf *arena = &r->shaping.arena;
    size_t at = arena->n;

    if (json_decode_string(v, 0, arena) < 0)
        return -1;
    *ret = (struct bytes){.p = arena->p + at, .n = arena->n - at};
    return buf_putc(arena, '\0');
}

static int file_content(struct call_request *r, struct json_value v, struct bytes *ret)
{
    struct buf *arena = &r->shaping.arena;
    struct json_value coded;
    struct bytes text;
    size_t at;

    if (v.type == JSON_STRING)
        return decode(r, v, ret);
    if (v.type != JSON_OBJECT || !json_get(v, "base64", &coded) || coded.type != JSON_STRING ||
        decode(r, coded, &text) < 0)
        return -1;
    at = arena->n;
    if (base64_decode(text.p, text.n, arena) < 0)
        return -1;
    *ret = (struct bytes){.p = arena->p + at, .n = arena->n - at};
    return 0;
}

static int get_file(struct call_request *r, struct json_value key, struct json_value v,
                    struct err *e)
{
    struct call_file *f = &r->attached.files[r->attached.n];
    struct bytes name;
    size_t at;

    if (decode(r, key, &name) < 0)
        return err_set(e, ERR_CALLER, "options.files: should be an object of paths");
    at = r->paths.n;
    if (call_path(r->workdir, name.p, name.n, &r->paths) < 0)
        return err_set(e, ERR_CALLER, "options.files: '%.200s' is not a path without '..'", name.p);
    f->path = r->paths.p + at;
    if (strcmp(f->path, r->workdir) == 0 || strcmp(f->path, "/workspace") == 0)
        return err_set(e, ERR_CALLER, "options.files: '%.200s' is a directory", name.p);
    if (file_content(r, v, &f->content) < 0)
        return err_set(e, ERR_CALLER,
                       "options.files: '%.200s' should be a text or {\"base64\": \"...\"}", name.p);
    r->attached.n++;
    return 0;
}

static int get_files(struct call_request *r, struct json_value files, struct err *e)
{
    struct json_value key, v;
    size_t at = 0, n = 0;

    if (!files.p)
        return 0;
    while (json_object_next(files, &at, &key, &v))
        n++;
    if (n > CALL_FILES_MAX)
        return err_set(e, ERR_CALLER, "options.files: more than %d files", CALL_FILES_MAX);
    r->attached.files = calloc(n + 1, sizeof *r->attached.files);
    r->paths = BUF_INIT(n * (strlen(r->workdir) + 2) + files.n + 1);
    if (!r->attached.files || buf_reserve(&r->paths, r->paths.max - 1) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    for (at = 0; json_object_next(files, &at, &key, &v);)
        if (get_file(r, key, v, e) < 0)
            return -1;
    return 0;
}

/* ---- the rest ---- */

static uint64_t milliseconds(double s)
{
    return s > 0 && s * MS_PER_S < 1 ? 1 : (uint64_t)(s * MS_PER_S);
}

/* What is said at the new place wins. */
static void take_timeout(struct call_request *r, const struct request_body *b)
{
    double s = b->timeout >= 0 ? b->timeout : b->options.timeout;

    if (s >= 0)
        r->wall_ms = milliseconds(s);
}

static void take_reporting(struct call_request *r, const struct reporting_body *b)
{
    if (b->changes.p)
        (void)json_to_bool(b->changes, &r->reporting.changes);
    if (b->contents.p)
        (void)json_to_bool(b->contents, &r->reporting.contents);
    if (b->denied.p)
        (void)json_to_bool(b->denied, &r->reporting.denied);
}

static void take_mode(struct call_request *r, const struct request_body *b)
{
    int mode = b->mode >= 0 ? b->mode : b->options.mode;
    int64_t threshold = b->threshold >= 0 ? b->threshold : b->options.threshold;

    if (mode >= 0)
        r->mode = (enum call_mode)mode;
    if (threshold >= 0)
        r->auto_threshold = (uint64_t)threshold;
}

/* Decodes the body and takes what every kind of it has. */
static int decode_body(struct call_request *r, const struct shape *shape, const char *text,
                       size_t n, struct request_body *b, struct err *e)
{
    *b = (struct request_body){
        .mode = -1,
        .threshold = -1,
        .timeout = -1,
        .idle = -1,
        .options = {.mode = -1, .threshold = -1, .timeout = -1},
    };
    shaping_init(&r->shaping, NULL);
    r->shaping.room = n + 2 * CALL_PATH_MAX;
    if (shape_parse(shape, text, n, b, &r->shaping) < 0)
        return shape_err(&r->shaping, e);
    r->language = b->language;
    r->code = b->code;
    r->function = b->function;
    r->input = b->input;
    r->isolation = b->isolation;
    r->args = b->args;
    r->kwargs = b->kwargs;
    r->schema = b->schema;
    r->packages = b->packages;
    r->webhook = b->webhook;
    r->wasm = b->engine == 1;
    r->idle_s = b->idle;
    take_timeout(r, b);
    take_mode(r, b);
    take_reporting(r, &b->old_reporting);
    take_reporting(r, &b->options.reporting);
    return 0;
}

static int parse_whole(struct call_request *r, const struct shape *shape, const char *text,
                       size_t n, struct err *e)
{
    struct request_body b;

    *r = (struct call_request){
        .auto_threshold = CALL_AUTO_DEFAULT, .reporting = {true, true, true}
    };
    if (decode_body(r, shape, text, n, &b, e) < 0)
        return -1;
    r->mount = b.options.mount;
    r->permissions = b.options.permissions;
    r->std = b.options.std.p ? b.options.std.p : "";
    r->vars = b.options.env.v;
    r->vars_n = b.options.env.n;
    if (get_workdir(r, b.options.workdir, e) < 0)
        return -1;
    return get_files(r, b.options.files, e);
}

int call_request_parse(struct call_request *r, const char *text, size_t n, struct err *e)
{
    return parse_whole(r, &call_shape, text, n, e);
}

int call_request_parse_session(struct call_request *r, const char *text, size_t n, struct err *e)
{
    return parse_whole(r, &session_shape, text, n, e);
}

int call_request_parse_turn(struct call_request *r, const char *text, size_t n, const char *workdir,
                            const struct call_reporting *usual, struct err *e)
{
    struct request_body b;

    *r = (struct call_request){.workdir = workdir, .reporting = *usual};
    if (decode_body(r, &turn_shape, text, n, &b, e) < 0)
        return -1;
    return get_files(r, b.options.files, e);
}

void call_request_done(struct call_request *r)
{
    shaping_done(&r->shaping);
    buf_done(&r->paths);
    free(r->attached.files);
    r->attached.files = NULL;
    r->vars = NULL;
    r->attached.n = r->vars_n = 0;
}
