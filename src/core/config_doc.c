/* SPDX-License-Identifier: MIT */
/* Everything that is said about the options is said from the table. */
#include <inttypes.h>
#include <string.h>

#include "core/config.h"

static const char *const origin_names[] = {
    [CONFIG_DEFAULT] = "default",
    [CONFIG_FILE] = "file",
    [CONFIG_ENV] = "environment",
    [CONFIG_FLAG] = "flag",
};
_Static_assert(ARRAY_LEN(origin_names) == CONFIG_ORIGIN_COUNT, "every origin has a name");

static const char *const type_names[] = {
    [CONFIG_NUM] = "number",
    [CONFIG_STR] = "string",
    [CONFIG_BOOL] = "boolean",
};

enum { FLAG_NAME_MAX = 64 };

/* max_concurrent becomes --max-concurrent. */
static const char *flag_name(const struct config_option *o, char out[FLAG_NAME_MAX])
{
    (void)snprintf(out, FLAG_NAME_MAX, "--%s", o->name);
    for (char *p = out; *p; p++)
        if (*p == '_')
            *p = '-';
    return out;
}

static const void *slot(const struct config *c, const struct config_option *o)
{
    return (const char *)c + o->at;
}

/* ---- --help ---- */

static void help_option(const struct config_option *o, FILE *out)
{
    char flag[FLAG_NAME_MAX];

    fprintf(out, "  %s%s\n      %s\n      ", flag_name(o, flag),
            o->type == CONFIG_NUM   ? "=N"
            : o->type == CONFIG_STR ? "=TEXT"
                                    : "[=true|false]",
            o->help);
    if (o->type == CONFIG_NUM)
        fprintf(out, "%" PRIu64 " to %" PRIu64 "%s%s, default %" PRIu64 "; ", o->min, o->max,
                *o->unit ? " " : "", o->unit, o->def);
    else if (o->type == CONFIG_BOOL)
        fprintf(out, "default %s; ", o->def ? "true" : "false");
    else if (*o->text_def)
        fprintf(out, "default %s; ", o->text_def);
    fprintf(out, "%s\n", o->env);
}

void config_help(FILE *out)
{
    fputs("usage: sandbox-executor [option ...] [-- command argument ...]\n\n"
          "Runs untrusted code in fresh sandboxes and serves it over HTTP.\n"
          "With a command after \"--\", that program is run beside it, and with --inside in the\n"
          "default sandbox.\n\n"
          "  --config=FILE\n"
          "      options as a JSON object; SANDBOX_CONFIG\n",
          out);
    for (size_t i = 0; i < CONFIG_MODE_FLAGS; i++)
        fprintf(out, "  %s\n      %s\n", config_mode_flags[i].flag, config_mode_flags[i].help);
    fputs("\nEach option can be given as a flag, in the environment, or in the file, in this "
          "order of\nprecedence:\n\n",
          out);
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        help_option(&config_options[i], out);
}

/* ---- --print-config ---- */

static void print_value(const struct config *c, const struct config_option *o, FILE *out)
{
    char room[CONFIG_TEXT_MAX];
    const char *text;

    switch (o->type) {
    case CONFIG_NUM:
        fprintf(out, "%" PRIu64, *(const uint64_t *)slot(c, o));
        return;
    case CONFIG_BOOL:
        fputs(*(const bool *)slot(c, o) ? "true" : "false", out);
        return;
    case CONFIG_STR:
        text = config_shown(o, slot(c, o), room);
        fputs(*text ? text : "\"\"", out);
        return;
    }
}

void config_print(const struct config *c, FILE *out)
{
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        fprintf(out, "%-24s ", config_options[i].name);
        print_value(c, &config_options[i], out);
        fprintf(out, "  (%s)\n", origin_names[c->origin[i]]);
    }
}

/* ---- Markdown ---- */

static void docs_default(const struct config_option *o, FILE *out)
{
    if (o->type == CONFIG_NUM)
        fprintf(out, "%" PRIu64 "%s%s", o->def, *o->unit ? " " : "", o->unit);
    else if (o->type == CONFIG_BOOL)
        fputs(o->def ? "true" : "false", out);
    else if (*o->text_def)
        fprintf(out, "`%s`", o->text_def);
}

static void docs_help(const char *help, FILE *out)
{
    for (const char *p = help; *p; p++) {
        if (*p == '|' || *p == '<')
            fputc('\\', out);
        fputc(*p, out);
    }
}

static void docs_option(const struct config_option *o, FILE *out)
{
    char flag[FLAG_NAME_MAX];

    fprintf(out, "| `%s` | `%s` | `%s` | ", o->env, flag_name(o, flag), o->name);
    docs_default(o, out);
    fputs(" | ", out);
    if (o->type == CONFIG_NUM)
        fprintf(out, "%" PRIu64 "–%" PRIu64, o->min, o->max);
    else
        fputs(type_names[o->type], out);
    fputs(" | ", out);
    docs_help(o->help, out);
    if (o->secret)
        fputs(" (secret: never printed or logged)", out);
    fputs(" |\n", out);
}

void config_print_docs(FILE *out)
{
    fputs(
        "# Configuration\n\n"
        "<!-- Written by `sandbox-executor --print-config-docs`; change src/core/config.def. "
        "-->\n\n"
        "Every option can be given as a flag (`--port=8080` or `--port 8080`), in the environment, "
        "or\nin a JSON file (`{\"port\": 8080}`) named by `--config FILE` or `SANDBOX_CONFIG`. "
        "Flags win over\nthe environment, the environment over the file, the file over the "
        "default. An empty variable\ncounts as not set. Unknown flags and unknown keys in the file "
        "are errors. "
        "`sandbox-executor\n--print-config` shows every value and where it comes from.\n\n"
        "- `PORT` is accepted, too; `EXECUTOR_PORT` is stronger.\n"
        "- `DISABLE_BWRAP=true` means `ISOLATION=native,subprocess` and `ISOLATION_LEVEL=basic`, "
        "unless\n  the same source or a stronger one names an "
        "isolation.\n"
        "- A `WORKSPACE_PATH` that begins with `s3:` means `/workspace`.\n"
        "- Without `CONTAINER_ID` the name is `HOSTNAME`, or else `unknown`.\n"
        "- An unknown `LOG_LEVEL` means `info`.\n"
        "- Default timeouts above `MAX_EXECUTION_TIME` are lowered to it.\n"
        "- Everything after `--` is a command of yours that runs beside the daemon, or with "
        "`--inside` in the\n  default sandbox "
        "([operators.md](operators.md#a-command-of-your-own)).\n\n"
        "| environment | flag | key | default | values | meaning |\n"
        "|---|---|---|---|---|---|\n",
        out);
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        docs_option(&config_options[i], out);
    fputs("\n## Other flags\n\n| flag | meaning |\n|---|---|\n", out);
    for (size_t i = 0; i < CONFIG_MODE_FLAGS; i++)
        fprintf(out, "| `%s` | %s |\n", config_mode_flags[i].flag, config_mode_flags[i].help);
}

/* ---- JSON ---- */

static void json_option(struct jw *w, const struct config_option *o)
{
    char flag[FLAG_NAME_MAX];

    jw_object(w);
    jw_kv_string(w, "name", o->name);
    jw_kv_string(w, "flag", flag_name(o, flag));
    jw_kv_string(w, "env", o->env);
    jw_kv_string(w, "type", type_names[o->type]);
    if (o->type == CONFIG_NUM) {
        jw_kv_int(w, "default", (int64_t)o->def);
        jw_kv_int(w, "minimum", (int64_t)o->min);
        jw_kv_int(w, "maximum", (int64_t)o->max);
        jw_kv_string(w, "unit", o->unit);
    } else if (o->type == CONFIG_BOOL) {
        jw_kv_bool(w, "default", o->def);
    } else {
        jw_kv_string(w, "default", o->text_def);
        jw_kv_bool(w, "secret", o->secret);
    }
    jw_kv_string(w, "help", o->help);
    jw_object_end(w);
}

void config_table_json(struct jw *w)
{
    jw_array(w);
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        json_option(w, &config_options[i]);
    jw_array_end(w);
}

void config_values_json(const struct config *c, struct jw *w)
{
    jw_object(w);
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const struct config_option *o = &config_options[i];
        char room[CONFIG_TEXT_MAX];

        if (o->type == CONFIG_NUM)
            jw_kv_int(w, o->name, (int64_t) * (const uint64_t *)slot(c, o));
        else if (o->type == CONFIG_BOOL)
            jw_kv_bool(w, o->name, *(const bool *)slot(c, o));
        else
            jw_kv_string(w, o->name, config_shown(o, slot(c, o), room));
    }
    jw_object_end(w);
}
