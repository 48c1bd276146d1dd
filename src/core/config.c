/* SPDX-License-Identifier: MIT */
/*
 * The strongest source is read first. set_*() drops what comes from a source weaker than the one
 * that already decided, so precedence needs no further code.
 */
#include "core/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/os.h"
#include "core/nearest.h"

enum {
    STRAY_NAME_MIN = 7,  /* shorter names resemble each other by chance */
    STRAY_EDITS_MAX = 2, /* without one of our prefixes */
};

/* clang-format off */
const struct config_option config_options[CONFIG_COUNT] = {
#define OPT_NUM(field, variable, value, lo, hi, measure, text)                                     \
    [OPTION_##field] = {.name = #field, .env = variable, .unit = measure, .help = text,            \
                        .type = CONFIG_NUM, .def = value, .min = lo, .max = hi,                    \
                        .at = offsetof(struct config, field)},
#define OPT_STR(field, variable, value, text)                                                      \
    [OPTION_##field] = {.name = #field, .env = variable, .unit = "", .help = text,                 \
                        .type = CONFIG_STR, .text_def = value,                                     \
                        .at = offsetof(struct config, field)},
#define OPT_SECRET(field, variable, value, text)                                                   \
    [OPTION_##field] = {.name = #field, .env = variable, .unit = "", .help = text,                 \
                        .type = CONFIG_STR, .text_def = value, .secret = true,                     \
                        .at = offsetof(struct config, field)},
#define OPT_BOOL(field, variable, value, text)                                                     \
    [OPTION_##field] = {.name = #field, .env = variable, .unit = "", .help = text,                 \
                        .type = CONFIG_BOOL, .def = value,                                         \
                        .at = offsetof(struct config, field)},
#include "core/config.def"
#undef OPT_NUM
#undef OPT_STR
#undef OPT_SECRET
#undef OPT_BOOL
};
/* clang-format on */

const struct config_mode_flag config_mode_flags[] = {
    {"--help",              "show this text",                           CONFIG_HELP      },
    {"--version",           "show the version",                         CONFIG_VERSION   },
    {"--print-config",      "show every value and where it comes from", CONFIG_PRINT     },
    {"--print-config-docs", "write docs/configuration.md",              CONFIG_PRINT_DOCS},
    {"--print-config-json", "write the list of options for tools",      CONFIG_PRINT_JSON},
    {"--print-openapi",     "write the API as an OpenAPI document",     CONFIG_PRINT_API },
    {"--check-config",      "only check the configuration",             CONFIG_CHECK     },
    {"--check-host",        "say what isolation this host can give",    CONFIG_CHECK_HOST},
    {"--selftest",          "start sandbox-selftest",                   CONFIG_SELFTEST  },
};

/* ---- setting one value ---- */

/* Where a value comes from, for messages: "--port", "EXECUTOR_PORT", "'port'". */
struct source {
    enum config_origin origin;
    const char *name;
};

static void *slot(struct config *c, size_t i)
{
    return (char *)c + config_options[i].at;
}

static int set_number(struct config *c, size_t i, uint64_t v, struct source from)
{
    if (from.origin < c->origin[i])
        return 0;
    *(uint64_t *)slot(c, i) = v;
    c->origin[i] = (unsigned char)from.origin;
    return 0;
}

static int fail_number(size_t i, const char *value, struct source from, struct err *e)
{
    const struct config_option *o = &config_options[i];

    return err_set(e, ERR_CALLER,
                   "%s: '%.64s' is not a whole number from %" PRIu64 " to %" PRIu64 "%s%s",
                   from.name, value, o->min, o->max, *o->unit ? " " : "", o->unit);
}

static int set_number_text(struct config *c, size_t i, const char *value, struct source from,
                           struct err *e)
{
    const struct config_option *o = &config_options[i];
    uint64_t v = 0;

    if (!*value)
        return fail_number(i, value, from, e);
    for (const char *p = value; *p; p++) {
        /* No option's maximum comes near the type's, so the range check doubles as overflow check.
         */
        if (*p < '0' || *p > '9' || v > o->max)
            return fail_number(i, value, from, e);
        v = v * 10 + (uint64_t)(*p - '0');
    }
    if (v < o->min || v > o->max)
        return fail_number(i, value, from, e);
    return set_number(c, i, v, from);
}

static int set_string(struct config *c, size_t i, const char *value, struct source from,
                      struct err *e)
{
    size_t n = strlen(value);

    if (from.origin < c->origin[i])
        return 0;
    if (n >= CONFIG_TEXT_MAX)
        return err_set(e, ERR_CALLER, "%s: longer than %d bytes", from.name, CONFIG_TEXT_MAX - 1);
    memcpy(slot(c, i), value, n + 1);
    c->origin[i] = (unsigned char)from.origin;
    return 0;
}

static bool bool_parse(const char *value, bool *ret)
{
    if (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0)
        *ret = true;
    else if (strcasecmp(value, "false") == 0 || strcmp(value, "0") == 0)
        *ret = false;
    else
        return false;
    return true;
}

static void set_bool(struct config *c, size_t i, bool v, struct source from)
{
    if (from.origin < c->origin[i])
        return;
    *(bool *)slot(c, i) = v;
    c->origin[i] = (unsigned char)from.origin;
}

static int set_text(struct config *c, size_t i, const char *value, struct source from,
                    struct err *e)
{
    bool v;

    switch (config_options[i].type) {
    case CONFIG_NUM:
        return set_number_text(c, i, value, from, e);
    case CONFIG_STR:
        return set_string(c, i, value, from, e);
    case CONFIG_BOOL:
        if (!bool_parse(value, &v))
            return err_set(e, ERR_CALLER, "%s: '%.64s' is not true, false, 1 or 0", from.name,
                           value);
        set_bool(c, i, v, from);
        return 0;
    }
    return err_set(e, ERR_BUG, "%s: option without a type", from.name);
}

void config_defaults(struct config *c)
{
    const struct source from = {CONFIG_DEFAULT, "default"};

    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const struct config_option *o = &config_options[i];

        if (o->type == CONFIG_NUM)
            (void)set_number(c, i, o->def, from);
        else if (o->type == CONFIG_BOOL)
            set_bool(c, i, o->def, from);
        else
            memcpy(slot(c, i), o->text_def, strnlen(o->text_def, CONFIG_TEXT_MAX - 1));
    }
}

/* ---- flags ---- */

/* Does "max-concurrent" (n bytes) name max_concurrent? */
static bool flag_is(const char *flag, size_t n, const char *name)
{
    if (strlen(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (flag[i] != (name[i] == '_' ? '-' : name[i]))
            return false;
    return true;
}

static size_t option_by_flag(const char *flag, size_t n)
{
    size_t i = 0;

    while (i < CONFIG_COUNT && !flag_is(flag, n, config_options[i].name))
        i++;
    return i;
}

static bool mode_by_flag(const char *arg, enum config_mode *ret)
{
    if (strcmp(arg, "-h") == 0) {
        *ret = CONFIG_HELP;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(config_mode_flags); i++) {
        if (strcmp(arg, config_mode_flags[i].flag) != 0)
            continue;
        *ret = config_mode_flags[i].mode;
        return true;
    }
    return false;
}

/* The arguments that are left, from the current one on. */
struct args {
    char *const *argv;
    int at, argc;
};

/* The value of the flag at a->at: after '=', or the next argument. A boolean may stand alone. */
static const char *flag_value(struct args *a, bool boolean)
{
    const char *equals = strchr(a->argv[a->at], '=');
    const char *next = a->at + 1 < a->argc ? a->argv[a->at + 1] : NULL;
    bool ignored;

    if (equals)
        return equals + 1;
    if (boolean && (!next || !bool_parse(next, &ignored)))
        return "true";
    if (next)
        a->at++;
    return next;
}

static int read_flag(struct config *c, struct args *a, struct err *e)
{
    const char *arg = a->argv[a->at];
    int n = (int)strcspn(arg, "=");
    const char *value;
    char name[64];
    size_t i;

    if (strncmp(arg, "--", 2) != 0)
        return err_set(e, ERR_CALLER, "unexpected argument '%.64s'", arg);
    i = option_by_flag(arg + 2, (size_t)n - 2);
    if (i == CONFIG_COUNT && !flag_is(arg + 2, (size_t)n - 2, "config"))
        return err_set(e, ERR_CALLER, "unknown option '%.*s'; see --help", n < 64 ? n : 64, arg);
    value = flag_value(a, i < CONFIG_COUNT && config_options[i].type == CONFIG_BOOL);
    if (!value)
        return err_set(e, ERR_CALLER, "%.64s needs a value", arg);
    if (i == CONFIG_COUNT) {
        c->file = value;
        return 0;
    }
    (void)snprintf(name, sizeof name, "%.*s", n, arg);
    return set_text(c, i, value, (struct source){CONFIG_FLAG, name}, e);
}

int config_read_flags(struct config *c, int argc, char *const *argv, struct err *e)
{
    struct args a = {argv, 1, argc};

    for (; a.at < argc; a.at++) {
        if (strcmp(argv[a.at], "--") == 0) {
            c->command = argv + a.at + 1;
            c->command_n = argc - a.at - 1;
            return 0;
        }
        if (!mode_by_flag(argv[a.at], &c->mode) && read_flag(c, &a, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- environment ---- */

const char *config_env(char *const *envp, const char *name)
{
    size_t n = strlen(name);

    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=' && (*envp)[n + 1])
            return *envp + n + 1;
    return NULL;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        if (strcmp(config_options[i].env, name) == 0)
            return true;
    return strcmp(name, "SANDBOX_CONFIG") == 0;
}

/* What Kubernetes sets for a service of that name: not meant for us. */
static bool is_service_link(const char *name, const char *value)
{
    return strstr(name, "_SERVICE_") || strstr(name, "_PORT_") || begins(value, "tcp://");
}

void config_strays(char *const *envp, config_stray_fn *fn, void *user)
{
    char name[NEAREST_NAME_MAX];
    struct nearest near;

    for (; *envp; envp++) {
        size_t n = strcspn(*envp, "=");
        bool ours;

        if (n < STRAY_NAME_MIN || n >= sizeof name || (*envp)[n] != '=' || !(*envp)[n + 1])
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)n, *envp);
        ours = begins(name, "SANDBOX_") || begins(name, "EXECUTOR_");
        if (is_known(name) || is_service_link(name, *envp + n + 1))
            continue;
        nearest_begin(&near, name);
        for (size_t i = 0; i < CONFIG_COUNT; i++)
            nearest_look(&near, config_options[i].env);
        if (ours || (near.found && *near.found == *name &&
                     nearest_distance(&near, near.found) <= STRAY_EDITS_MAX))
            fn(user, name, near.found);
    }
}

int config_read_env(struct config *c, char *const *envp, struct err *e)
{
    const char *value;

    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const struct source from = {CONFIG_ENV, config_options[i].env};

        value = config_env(envp, from.name);
        if (value && c->origin[i] <= CONFIG_ENV && set_text(c, i, value, from, e) < 0)
            return -1;
    }
    value = config_env(envp, "PORT"); /* what hosting platforms set; ours is stronger */
    if (value && c->origin[OPTION_port] < CONFIG_ENV &&
        set_text(c, OPTION_port, value, (struct source){CONFIG_ENV, "PORT"}, e) < 0)
        return -1;
    if (!c->file)
        c->file = config_env(envp, "SANDBOX_CONFIG");
    return 0;
}

/* ---- file ---- */

static int set_json_string(struct config *c, size_t i, struct json_value v, struct source from,
                           struct err *e)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CONFIG_TEXT_MAX);

    if (json_decode_string(v, 0, &text) < 0 && !text.failed)
        return err_set(e, ERR_CALLER, "%s: a lone surrogate is not text", from.name);
    if (text.failed)
        return err_set(e, ERR_CALLER, "%s: longer than %d bytes", from.name, CONFIG_TEXT_MAX - 1);
    if (memchr(text.p, '\0', text.n))
        return err_set(e, ERR_CALLER, "%s: contains a NUL", from.name);
    return set_string(c, i, text.p, from, e);
}

static int set_json_number(struct config *c, size_t i, struct json_value v, struct source from,
                           struct err *e)
{
    const struct config_option *o = &config_options[i];
    char text[65];
    int64_t number;

    if (!json_to_int(v, &number) || number < 0 || (uint64_t)number < o->min ||
        (uint64_t)number > o->max) {
        (void)snprintf(text, sizeof text, "%.*s", v.n < 64 ? (int)v.n : 64, v.p);
        return fail_number(i, text, from, e);
    }
    return set_number(c, i, (uint64_t)number, from);
}

static int set_json(struct config *c, size_t i, struct json_value v, struct err *e)
{
    static const enum json_type wanted[] = {
        [CONFIG_NUM] = JSON_NUMBER, [CONFIG_STR] = JSON_STRING, [CONFIG_BOOL] = JSON_BOOL};
    const struct config_option *o = &config_options[i];
    const struct source from = {CONFIG_FILE, o->name};
    bool truth;

    if (v.type != wanted[o->type])
        return err_set(e, ERR_CALLER, "%s: must be a %s, not %s", o->name,
                       json_type_name(wanted[o->type]), json_type_name(v.type));
    if (o->type == CONFIG_NUM)
        return set_json_number(c, i, v, from, e);
    if (o->type == CONFIG_STR)
        return set_json_string(c, i, v, from, e);
    (void)json_to_bool(v, &truth);
    set_bool(c, i, truth, from);
    return 0;
}

int config_read_json(struct config *c, const char *text, size_t n, struct err *e)
{
    struct json_value file, key, value;

    if (json_parse(text, n, 0, &file, e) < 0)
        return -1;
    if (file.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "must be a JSON object, not %s", json_type_name(file.type));
    for (size_t at = 0; json_object_next(file, &at, &key, &value);) {
        size_t i = 0;

        while (i < CONFIG_COUNT && !json_key_is(key, config_options[i].name))
            i++;
        if (i == CONFIG_COUNT)
            return err_set(e, ERR_CALLER, "unknown option %.*s", key.n < 64 ? (int)key.n : 64,
                           key.p);
        if (set_json(c, i, value, e) < 0)
            return -1;
    }
    return 0;
}

static int file_read(const char *path, struct buf *out, struct err *e)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n;

    if (fd < 0)
        return err_sys(e, -errno, "open");
    if (buf_reserve(out, CONFIG_FILE_MAX + 1) < 0)
        return err_sys(e, -ENOMEM, "read");
    n = fd_read_full(fd, out->p, CONFIG_FILE_MAX + 1);
    if (n < 0)
        return err_sys(e, (int)n, "read");
    if (n > CONFIG_FILE_MAX)
        return err_set(e, ERR_CALLER, "larger than %d bytes", CONFIG_FILE_MAX);
    out->n = (size_t)n;
    return 0;
}

static int read_file(struct config *c, struct err *e)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX + 1);

    if (file_read(c->file, &text, e) < 0 || config_read_json(c, text.p, text.n, e) < 0)
        return err_wrap(e, "configuration file '%s'", c->file);
    return 0;
}

static bool needs_values(enum config_mode m)
{
    return m != CONFIG_HELP && m != CONFIG_VERSION && m != CONFIG_PRINT_DOCS &&
           m != CONFIG_PRINT_JSON && m != CONFIG_PRINT_API;
}

int config_load(struct config *c, int argc, char *const *argv, char *const *envp, struct err *e)
{
    config_defaults(c);
    if (config_read_flags(c, argc, argv, e) < 0)
        return -1;
    if (!needs_values(c->mode))
        return 0;
    if (config_read_env(c, envp, e) < 0)
        return -1;
    if (c->file && read_file(c, e) < 0)
        return -1;
    return config_finish(c, envp, e);
}

/* ---- secrets ---- */

/* The user and password of an address, without the '@'; NULL: it has none. */
static const char *user_info(const char *value, size_t *ret_n)
{
    const char *host = strstr(value, "://"), *at = NULL;

    host = host ? host + 3 : value;
    for (const char *c = host; host > value && *c && !strchr("/?#", *c); c++)
        if (*c == '@')
            at = c;
    *ret_n = at ? (size_t)(at - host) : 0;
    return at ? host : NULL;
}

const char *config_shown(const struct config_option *o, const char *value,
                         char room[CONFIG_TEXT_MAX])
{
    size_t n;
    const char *user = user_info(value, &n);

    if (o->secret)
        return *value ? "***" : "";
    if (!user)
        return value;
    (void)snprintf(room, CONFIG_TEXT_MAX, "%.*s***%s", (int)(user - value), value, user + n);
    return room;
}

static void hide(const struct config_option *o, char *value)
{
    size_t n;

    if (o->secret || user_info(value, &n))
        explicit_bzero(value, strlen(value));
}

static void hide_variable(char *variable)
{
    size_t n = strcspn(variable, "=");

    for (size_t i = 0; i < CONFIG_COUNT && variable[n]; i++) {
        if (strlen(config_options[i].env) == n && strncmp(variable, config_options[i].env, n) == 0)
            hide(&config_options[i], variable + n + 1);
    }
}

void config_hide_variables(char **envp)
{
    for (; *envp; envp++)
        hide_variable(*envp);
}

void config_hide_arguments(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t n = strcspn(argv[i], "="), option;

        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        option = option_by_flag(argv[i] + 2, n - 2);
        if (option == CONFIG_COUNT)
            continue;
        if (argv[i][n] == '=')
            hide(&config_options[option], argv[i] + n + 1);
        else if (i + 1 < argc)
            hide(&config_options[option], argv[i + 1]);
    }
}
