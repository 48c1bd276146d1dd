/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "core/config.h"

enum { WORDS_MAX = 16 };

/* Words as argv or envp wants them. */
struct words {
    char *v[WORDS_MAX];
    int n;
};

static struct words words_of(const char *const *list)
{
    struct words w = {.n = 0};

    for (; list && *list; list++)
        w.v[w.n++] = (char *)(uintptr_t)*list;
    return w;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static int load(struct config *c, const char *const *args, const char *const *env, struct err *e)
{
    struct words argv = words_of(LIST("sandbox-executor")), rest = words_of(args);
    struct words envp = words_of(env);

    memcpy(argv.v + 1, rest.v, sizeof argv.v - sizeof argv.v[0]);
    return config_load(c, rest.n + 1, argv.v, envp.v, e);
}

static void assert_loads(struct config *c, const char *const *args, const char *const *env)
{
    struct err e;

    if (load(c, args, env, &e) < 0)
        fail_msg("%s", e.text);
}

static void assert_refused(const char *const *args, const char *const *env, const char *want)
{
    struct config c;
    struct err e;

    assert_int_equal(load(&c, args, env, &e), -1);
    assert_string_equal(e.text, want);
    assert_int_equal(e.kind, ERR_CALLER);
}

static void assert_json_refused(const char *text, const char *want)
{
    struct config c;
    struct err e;

    config_defaults(&c);
    assert_int_equal(config_read_json(&c, text, strlen(text), &e), -1);
    assert_string_equal(e.text, want);
}

static void defaults_are_those_of_the_table(void **state)
{
    struct config c;

    (void)state;
    assert_loads(&c, NULL, NULL);
    assert_int_equal(c.port, 8080);
    assert_int_equal(c.retain_bytes, 268435456);
    assert_string_equal(c.isolation, "native");
    assert_string_equal(c.secret, "");
    assert_false(c.disable_bwrap);
    assert_int_equal(c.mode, CONFIG_RUN);
    assert_null(c.command);
    assert_null(c.file);
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        assert_int_equal(c.origin[i], CONFIG_DEFAULT);
}

/* A default that no setting could express would be a mistake in the table. */
static void the_table_is_sane(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        const struct config_option *o = &config_options[i];

        assert_true(o->name && o->env && o->help && o->unit && *o->help);
        assert_int_equal(strspn(o->name, "abcdefghijklmnopqrstuvwxyz0123456789_"), strlen(o->name));
        assert_true(strlen(o->name) < 48);
        if (o->type == CONFIG_NUM)
            assert_true(o->min <= o->def && o->def <= o->max && o->max <= INT64_MAX / 20);
        if (o->type == CONFIG_STR)
            assert_true(strlen(o->text_def) < CONFIG_TEXT_MAX);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(o->name, config_options[j].name);
            assert_string_not_equal(o->env, config_options[j].env);
        }
    }
}

static void flags_in_both_spellings(void **state)
{
    struct config c;

    (void)state;
    assert_loads(&c, LIST("--port=1", "--max-concurrent", "7", "--run-as", "x", "--secret="), NULL);
    assert_int_equal(c.port, 1);
    assert_int_equal(c.max_concurrent, 7);
    assert_string_equal(c.run_as, "x");
    assert_string_equal(c.secret, "");
    assert_int_equal(c.origin[OPTION_port], CONFIG_FLAG);
    assert_int_equal(c.origin[OPTION_secret], CONFIG_FLAG);
    assert_loads(&c, LIST("--port=1", "--port=2"), NULL);
    assert_int_equal(c.port, 2);
    assert_loads(&c, LIST("--log-format=TEXT"), NULL);
    assert_string_equal(c.log_format, "text");
}

static void booleans(void **state)
{
    static const struct {
        const char *const args[4];
        bool want;
    } cases[] = {
        {{"--disable-bwrap"},             true },
        {{"--disable-bwrap=FALSE"},       false},
        {{"--disable-bwrap", "0"},        false},
        {{"--disable-bwrap", "True"},     true },
        {{"--disable-bwrap=1"},           true },
        {{"--disable-bwrap", "--port=1"}, true },
        {{"--disable-bwrap", "--"},       true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c;

        assert_loads(&c, cases[i].args, NULL);
        assert_int_equal(c.disable_bwrap, cases[i].want);
        assert_string_equal(c.isolation, cases[i].want ? "native,subprocess" : "native");
    }
    assert_refused(LIST("--disable-bwrap=yes"), NULL,
                   "--disable-bwrap: 'yes' is not true, false, 1 or 0");
    assert_refused(NULL, LIST("DISABLE_BWRAP=on"),
                   "DISABLE_BWRAP: 'on' is not true, false, 1 or 0");
}

static void precedence_of_the_port(void **state)
{
    struct config c;
    struct err e;

    (void)state;
    assert_loads(&c, LIST("--port=1"), LIST("PORT=3", "EXECUTOR_PORT=2"));
    assert_int_equal(c.port, 1);
    assert_loads(&c, NULL, LIST("PORT=3", "EXECUTOR_PORT=2"));
    assert_int_equal(c.port, 2);
    assert_int_equal(c.origin[OPTION_port], CONFIG_ENV);
    assert_loads(&c, NULL, LIST("PORT=3", "EXECUTOR_PORT="));
    assert_int_equal(c.port, 3);
    assert_int_equal(config_read_json(&c, "{\"port\":4,\"queue_max\":5}", 24, &e), 0);
    assert_int_equal(c.port, 3);
    assert_int_equal(c.queue_max, 5);
    assert_int_equal(c.origin[OPTION_queue_max], CONFIG_FILE);
    /* What a stronger source has decided is not even looked at. */
    assert_loads(&c, LIST("--port=1"), LIST("EXECUTOR_PORT=tcp://10.0.0.1:80"));
    assert_int_equal(c.port, 1);
}

static void errors_name_option_value_and_range(void **state)
{
    static const char range[] = "is not a whole number from 0 to 65535";
    char want[200];

    (void)state;
    (void)snprintf(want, sizeof want, "EXECUTOR_PORT: '65536' %s", range);
    assert_refused(NULL, LIST("EXECUTOR_PORT=65536"), want);
    (void)snprintf(want, sizeof want, "PORT: 'x' %s", range);
    assert_refused(NULL, LIST("PORT=x"), want);
    (void)snprintf(want, sizeof want, "--port: '-1' %s", range);
    assert_refused(LIST("--port=-1"), NULL, want);
    (void)snprintf(want, sizeof want, "--port: '' %s", range);
    assert_refused(LIST("--port="), NULL, want);
    (void)snprintf(want, sizeof want, "--port: '99999999999999999999999' %s", range);
    assert_refused(LIST("--port", "99999999999999999999999"), NULL, want);
    (void)snprintf(want, sizeof want, "--port: '0x10' %s", range);
    assert_refused(LIST("--port=0x10"), NULL, want);
    assert_refused(NULL, LIST("MAX_MEMORY_MB=15"),
                   "MAX_MEMORY_MB: '15' is not a whole number from 16 to 1048576 MiB");
    assert_refused(LIST("--netns=none"), NULL, "netns (NETNS): 'none' is none of: pool, fresh");
    assert_refused(LIST("--prot=1"), NULL, "unknown option '--prot'; see --help");
    assert_refused(LIST("--port"), NULL, "--port needs a value");
    assert_refused(LIST("port=1"), NULL, "unexpected argument 'port=1'");
    assert_refused(LIST("-x"), NULL, "unexpected argument '-x'");
    assert_refused(LIST("--help=1"), NULL, "unknown option '--help'; see --help");
}

static void secrets_are_never_repeated(void **state)
{
    char flag[CONFIG_TEXT_MAX + 32] = "--secret=";
    struct config c;
    struct err e;

    (void)state;
    memset(flag + 9, 's', CONFIG_TEXT_MAX);
    assert_int_equal(load(&c, LIST(flag), NULL, &e), -1);
    assert_string_equal(e.text, "--secret: longer than 1023 bytes");
    flag[9 + CONFIG_TEXT_MAX - 1] = '\0';
    assert_loads(&c, LIST(flag), NULL);
    assert_int_equal(strlen(c.secret), CONFIG_TEXT_MAX - 1);
}

static void the_file_is_strict(void **state)
{
    (void)state;
    assert_json_refused("{\"prot\":1}", "unknown option \"prot\"");
    assert_json_refused("{\"port\":\"1\"}", "port: must be a number, not string");
    assert_json_refused("{\"port\":null}", "port: must be a number, not null");
    assert_json_refused("{\"host\":1}", "host: must be a string, not number");
    assert_json_refused("{\"disable_bwrap\":1}", "disable_bwrap: must be a boolean, not number");
    assert_json_refused("{\"port\":1.5}", "port: '1.5' is not a whole number from 0 to 65535");
    assert_json_refused("{\"port\":-1}", "port: '-1' is not a whole number from 0 to 65535");
    assert_json_refused("{\"host\":\"a\\u0000b\"}", "host: contains a NUL");
    assert_json_refused("{\"host\":\"\\ud800\"}", "host: a lone surrogate is not text");
    assert_json_refused("{\"port\":1,\"port\":2}",
                        "invalid JSON at line 1, column 11: duplicate key \"port\"");
    assert_json_refused("[]", "must be a JSON object, not array");
    assert_json_refused("{", "invalid JSON at line 1, column 2: unexpected end");
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0, 1);
    assert_int_equal(fclose(f), 0);
}

static void files_are_read_from_either_place(void **state)
{
    char path[] = "/tmp/test_config.XXXXXX", env[64], want[200];
    int fd = mkstemp(path);
    struct config c;
    struct err e;

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(env, sizeof env, "SANDBOX_CONFIG=%s", path);
    write_file(path, "{\"port\": 5, \"disable_bwrap\": true, \"host\": \"\\u0068\"}");
    assert_loads(&c, LIST("--config", path), LIST("SANDBOX_CONFIG=/nowhere"));
    assert_int_equal(c.port, 5);
    assert_string_equal(c.host, "h");
    assert_string_equal(c.isolation, "native,subprocess");
    assert_loads(&c, LIST("--port=6"), LIST(env));
    assert_int_equal(c.port, 6);
    assert_int_equal(c.origin[OPTION_host], CONFIG_FILE);
    write_file(path, "{]");
    (void)snprintf(want, sizeof want,
                   "configuration file '%s': invalid JSON at line 1, column 2: "
                   "expected a key in double quotes",
                   path);
    assert_refused(NULL, LIST(env), want);
    (void)unlink(path);
    assert_int_equal(load(&c, NULL, LIST(env), &e), -1);
    assert_int_equal(e.kind, ERR_ABSENT);
    assert_non_null(strstr(e.text, path));
}

static void large_files_are_refused(void **state)
{
    char path[] = "/tmp/test_config.XXXXXX", want[200];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, CONFIG_FILE_MAX + 1), 0);
    (void)close(fd);
    (void)snprintf(want, sizeof want, "configuration file '%s': larger than 1048576 bytes", path);
    assert_refused(LIST("--config", path), NULL, want);
    (void)unlink(path);
}

static void aliases_and_dependent_values(void **state)
{
    struct config c;

    (void)state;
    assert_loads(&c, NULL, LIST("DISABLE_BWRAP=TRUE"));
    assert_string_equal(c.isolation, "native,subprocess");
    assert_string_equal(c.isolation_level, "basic");
    assert_int_equal(c.origin[OPTION_isolation], CONFIG_ENV);
    assert_loads(&c, NULL, LIST("DISABLE_BWRAP=true", "ISOLATION_LEVEL=full"));
    assert_string_equal(c.isolation, "native,subprocess");
    assert_string_equal(c.isolation_level, "full");
    assert_loads(&c, NULL, LIST("DISABLE_BWRAP=true", "ISOLATION=native"));
    assert_string_equal(c.isolation, "native");
    assert_string_equal(c.isolation_level, "full");
    assert_loads(&c, LIST("--isolation=bwrap"), LIST("DISABLE_BWRAP=true"));
    assert_string_equal(c.isolation, "bwrap");
    assert_loads(&c, LIST("--disable-bwrap"), LIST("ISOLATION=bwrap"));
    assert_string_equal(c.isolation, "native,subprocess");
    assert_loads(&c, NULL, LIST("WORKSPACE_PATH=s3://bucket/x"));
    assert_string_equal(c.workspace_path, "/workspace");
    assert_loads(&c, NULL, LIST("WORKSPACE_PATH=/srv/s3:"));
    assert_string_equal(c.workspace_path, "/srv/s3:");
    assert_loads(&c, NULL, LIST("HOSTNAME=pod-1"));
    assert_string_equal(c.container_id, "pod-1");
    assert_loads(&c, NULL, LIST("HOSTNAME=pod-1", "CONTAINER_ID=c7"));
    assert_string_equal(c.container_id, "c7");
    assert_loads(&c, NULL, LIST("HOSTNAME="));
    assert_string_equal(c.container_id, "unknown");
    assert_loads(&c, NULL, LIST("LOG_LEVEL=loud"));
    assert_string_equal(c.log_level, "info");
    assert_loads(&c, NULL, LIST("MAX_EXECUTION_TIME=10"));
    assert_int_equal(c.timeout_s, 10);
    assert_int_equal(c.timeout_session_s, 10);
}

static void static_authentication_needs_a_secret(void **state)
{
    struct config c;

    (void)state;
    assert_refused(NULL, LIST("SANDBOX_AUTH_MODE=static"),
                   "SANDBOX_AUTH_MODE=static needs SANDBOX_SECRET or SANDBOX_SECRET_FILE");
    assert_loads(&c, NULL, LIST("SANDBOX_AUTH_MODE=Static", "SANDBOX_SECRET=x"));
    assert_string_equal(c.auth_mode, "static");
    assert_loads(&c, NULL, LIST("SANDBOX_AUTH_MODE=pool"));
    assert_refused(NULL, LIST("SANDBOX_AUTH_MODE=pool", "SANDBOX_SECRET=x"),
                   "SANDBOX_AUTH_MODE=pool and SANDBOX_SECRET exclude each other");
}

static void the_command_is_left_alone(void **state)
{
    static char a0[] = "x", a1[] = "--port=1", dashes[] = "--", cmd[] = "srv", help[] = "--help";
    char *argv[] = {a0, a1, dashes, cmd, help, dashes, NULL};
    char *envp[] = {NULL};
    struct config c;
    struct err e;

    (void)state;
    assert_int_equal(config_load(&c, 6, argv, envp, &e), 0);
    assert_int_equal(c.mode, CONFIG_RUN);
    assert_int_equal(c.command_n, 3);
    assert_ptr_equal(c.command, argv + 3);
    assert_int_equal(config_load(&c, 3, argv, envp, &e), 0);
    assert_int_equal(c.command_n, 0);
    assert_non_null(c.command);
}

static void modes_are_recognised(void **state)
{
    static const struct {
        const char *flag;
        enum config_mode mode;
    } cases[] = {
        {"--help",              CONFIG_HELP      },
        {"-h",                  CONFIG_HELP      },
        {"--version",           CONFIG_VERSION   },
        {"--print-config",      CONFIG_PRINT     },
        {"--check-config",      CONFIG_CHECK     },
        {"--print-config-docs", CONFIG_PRINT_DOCS},
        {"--check-host",        CONFIG_CHECK_HOST},
        {"--print-config-json", CONFIG_PRINT_JSON},
        {"--print-openapi",     CONFIG_PRINT_API },
        {"--selftest",          CONFIG_SELFTEST  },
    };
    struct config c;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_loads(&c, LIST(cases[i].flag), NULL);
        assert_int_equal(c.mode, cases[i].mode);
    }
    assert_loads(&c, LIST("--help"), LIST("EXECUTOR_PORT=nonsense")); /* help helps always */
    assert_refused(LIST("--check-config"), LIST("EXECUTOR_PORT=nonsense"),
                   "EXECUTOR_PORT: 'nonsense' is not a whole number from 0 to 65535");
}

/* ---- what is said about it ---- */

typedef void printer_fn(const struct config *c, FILE *out);

static void print_help(const struct config *c, FILE *out)
{
    (void)c;
    config_help(out);
}

static void print_docs(const struct config *c, FILE *out)
{
    (void)c;
    config_print_docs(out);
}

static char *printed(printer_fn *print, const struct config *c)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(f);
    print(c, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void values_are_printed_with_origin_and_without_secrets(void **state)
{
    cleanup_free char *text = NULL;
    struct config c;

    (void)state;
    assert_loads(&c, LIST("--secret=hush-hush"), LIST("PORT=81"));
    text = printed(config_print, &c);
    assert_null(strstr(text, "hush"));
    assert_non_null(strstr(text, "secret                   ***  (flag)\n"));
    assert_non_null(strstr(text, "port                     81  (environment)\n"));
    assert_non_null(strstr(text, "netns                    pool  (default)\n"));
}

static void help_and_docs_name_every_option(void **state)
{
    cleanup_free char *help = printed(print_help, NULL), *docs = printed(print_docs, NULL);

    (void)state;
    for (size_t i = 0; i < CONFIG_COUNT; i++) {
        char row[100], line[100];

        (void)snprintf(row, sizeof row, "| `%s` | `--", config_options[i].env);
        assert_non_null(strstr(docs, row));
        (void)snprintf(line, sizeof line, "%s\n", config_options[i].env);
        assert_non_null(strstr(help, line));
        assert_non_null(strstr(help, config_options[i].help));
    }
    for (size_t i = 0; i < CONFIG_MODE_FLAGS; i++) {
        assert_non_null(strstr(help, config_mode_flags[i].flag));
        assert_non_null(strstr(docs, config_mode_flags[i].flag));
    }
    assert_non_null(strstr(help, "  --max-concurrent=N\n"));
}

static void tables_are_json(void **state)
{
    cleanup_with(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct jw w = JW(&b);
    struct json_value v, item;
    struct config c;
    struct err e;
    size_t n = 0;

    (void)state;
    config_table_json(&w);
    assert_int_equal(json_parse(b.p, b.n, 0, &v, &e), 0);
    for (size_t at = 0; json_array_next(v, &at, &item); n++)
        assert_true(json_get(item, "name", &(struct json_value){0}));
    assert_int_equal(n, CONFIG_COUNT);
    assert_loads(&c, LIST("--secret=hush-hush"), NULL);
    buf_clear(&b);
    w = JW(&b);
    config_values_json(&c, &w);
    assert_null(strstr(b.p, "hush"));
    assert_int_equal(json_parse(b.p, b.n, 0, &v, &e), 0);
    assert_true(json_get(v, "retain_bytes", &item));
    assert_int_equal(item.n, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(the_table_is_sane),
        cmocka_unit_test(flags_in_both_spellings),
        cmocka_unit_test(booleans),
        cmocka_unit_test(precedence_of_the_port),
        cmocka_unit_test(errors_name_option_value_and_range),
        cmocka_unit_test(secrets_are_never_repeated),
        cmocka_unit_test(the_file_is_strict),
        cmocka_unit_test(files_are_read_from_either_place),
        cmocka_unit_test(large_files_are_refused),
        cmocka_unit_test(aliases_and_dependent_values),
        cmocka_unit_test(static_authentication_needs_a_secret),
        cmocka_unit_test(the_command_is_left_alone),
        cmocka_unit_test(modes_are_recognised),
        cmocka_unit_test(values_are_printed_with_origin_and_without_secrets),
        cmocka_unit_test(help_and_docs_name_every_option),
        cmocka_unit_test(tables_are_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
