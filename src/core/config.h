/* SPDX-License-Identifier: MIT */
/*
 * Configuration: one struct, made from the list in config.def.
 *
 * Sources, strongest first: flag, environment, JSON file, default. Each value remembers where it
 * came from. A weaker source is not even looked at once a stronger one has spoken.
 *
 *   flag         --port=8080 or --port 8080: the field's name with dashes
 *   environment  EXECUTOR_PORT=8080; an empty value counts as not set
 *   file         {"port": 8080}: --config FILE or SANDBOX_CONFIG; unknown keys are errors
 *
 * Everything after "--" on the command line is the customer command.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/jw.h"

enum {
    CONFIG_TEXT_MAX = 1024,       /* a string option with its NUL */
    CONFIG_FILE_MAX = 1024 * 1024 /* the JSON file */
};

enum config_origin { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENV, CONFIG_FLAG, CONFIG_ORIGIN_COUNT };

/* What the daemon was asked to do. */
enum config_mode {
    CONFIG_RUN,
    CONFIG_HELP,       /* --help, -h */
    CONFIG_VERSION,    /* --version */
    CONFIG_PRINT,      /* --print-config: values and their origins */
    CONFIG_PRINT_DOCS, /* --print-config-docs: docs/configuration.md */
    CONFIG_PRINT_JSON, /* --print-config-json: the table for tools */
    CONFIG_PRINT_API,  /* --print-openapi: what GET /openapi.json answers */
    CONFIG_CHECK,      /* --check-config */
    CONFIG_CHECK_HOST, /* --check-host */
    CONFIG_SELFTEST,   /* --selftest */
    CONFIG_MODE_COUNT,
};

/* OPTION_port, OPTION_host, ... */
enum config_index {
#define OPT_NUM(field, env, def, min, max, unit, help) OPTION_##field,
#define OPT_STR(field, env, def, help)                 OPTION_##field,
#define OPT_SECRET(field, env, def, help)              OPTION_##field,
#define OPT_BOOL(field, env, def, help)                OPTION_##field,
#include "core/config.def"
#undef OPT_NUM
#undef OPT_STR
#undef OPT_SECRET
#undef OPT_BOOL
    CONFIG_COUNT,
};

struct config {
#define OPT_NUM(field, env, def, min, max, unit, help) uint64_t field;
#define OPT_STR(field, env, def, help)                 char field[CONFIG_TEXT_MAX];
#define OPT_SECRET(field, env, def, help)              char field[CONFIG_TEXT_MAX];
#define OPT_BOOL(field, env, def, help)                bool field;
#include "core/config.def"
#undef OPT_NUM
#undef OPT_STR
#undef OPT_SECRET
#undef OPT_BOOL

    enum config_mode mode;
    const char *file;     /* borrowed from argv or environment; NULL: none */
    char *const *command; /* borrowed from argv: what followed "--"; NULL: no "--" */
    int command_n;
    unsigned char origin[CONFIG_COUNT]; /* enum config_origin */
};

/* A row of the table, for help, documents and tools. */
enum config_type { CONFIG_NUM, CONFIG_STR, CONFIG_BOOL };
struct config_option {
    const char *name; /* field name, and key in the file */
    const char *env, *unit, *help;
    enum config_type type;
    bool secret;          /* never printed */
    const char *text_def; /* strings */
    uint64_t def, min, max;
    size_t at; /* offset in struct config */
};
extern const struct config_option config_options[CONFIG_COUNT];

/* A flag that is no option but asks for something else than running. */
struct config_mode_flag {
    const char *flag, *help;
    enum config_mode mode;
};
enum { CONFIG_MODE_FLAGS = CONFIG_MODE_COUNT - 1 };
extern const struct config_mode_flag config_mode_flags[CONFIG_MODE_FLAGS];

/*
 * The whole way: flags, then, unless only help, version or documents are wanted, environment, file
 * and what follows from the values. Errors name the option, the value and what is allowed. *c is
 * complete or unspecified. Pointers into argv and envp are kept.
 */
must_check int config_load(struct config *c, int argc, char *const *argv, char *const *envp,
                           struct err *e);

/* A text as it may be shown: "***" for a secret, and for the user and password of an address. */
const char *config_shown(const struct config_option *o, const char *value,
                         char room[CONFIG_TEXT_MAX]);
/* Overwrite secrets, and addresses with a password, in the arguments, which /proc shows to
 * everybody, and in the environment, which whatever we start would inherit. After loading. */
void config_hide_arguments(int argc, char **argv);
void config_hide_variables(char **envp);

/* The steps of config_load(), in its order. */
void config_defaults(struct config *c);
must_check int config_read_flags(struct config *c, int argc, char *const *argv, struct err *e);
must_check int config_read_env(struct config *c, char *const *envp, struct err *e);
must_check int config_read_json(struct config *c, const char *text, size_t n, struct err *e);
/* SESSION_ID and WORKSPACE_PATH are set: that directory is the workspace of that session itself. */
bool config_has_own_workspace(const struct config *c);
/* The directory in which every other session has a workspace, once STATE_DIR is known. */
const char *config_workspaces(const struct config *c, char out[CONFIG_TEXT_MAX]);

/* Aliases, closed sets and values that depend on others; see config_finish.c. */
must_check int config_finish(struct config *c, char *const *envp, struct err *e);

/* A variable, borrowed; NULL when absent or empty: `PORT= sandbox-executor` gives no port. */
const char *config_env(char *const *envp, const char *name);
/* Tells of variables that look as if they were meant for us and are not: an unknown SANDBOX_… or
 * EXECUTOR_…, or nearly the name of an option. `near`: that option's; NULL: none is near. */
typedef void config_stray_fn(void *user, const char *name, const char *near);
void config_strays(char *const *envp, config_stray_fn *fn, void *user);

/* ---- config_doc.c ---- */

void config_help(FILE *out);
void config_print(const struct config *c, FILE *out); /* values with origins, as config_shown() */
void config_print_docs(FILE *out);                    /* Markdown */
void config_table_json(struct jw *w);                 /* the table as an array of objects */
void config_values_json(const struct config *c, struct jw *w); /* one object, as config_shown() */
