/* SPDX-License-Identifier: MIT */
/* Requests become plans: argv, environment, event, input, frames, refusals. */
/* cmocka.h needs what is included before it. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
/* clang-format on */

#include "core/frame.h"
#include "core/languages.h"
#include "core/templates.h"
#include "lang/lang_job.h"
#include "lang/runners.h"
#include "lang/wrap.h"

#define BYTES(literal) ((struct bytes){.p = (literal), .n = sizeof(literal) - 1})

static void free_plan(struct plan **p)
{
    lang_ops.plan_free(*p);
}

#define cleanup_plan cleanup_with(free_plan)

static struct exec_spec spec_of(const char *language, const char *code)
{
    return (struct exec_spec){
        .execution_id = "exec_1",
        .language = language,
        .code = {.p = code,                 .n = strlen(code) },
        .limits = { .wall_ms = 7000, .memory_max = 512u << 20, .result_max = 4096},
    };
}

static struct plan *planned(const struct exec_spec *s)
{
    struct plan *p = NULL;
    struct err e = {0};

    if (lang_ops.plan(s, &p, &e) < 0)
        fail_msg("%s", e.text);
    return p;
}

/* The request is refused as the caller's fault, with these words. */
static void assert_refused(const struct exec_spec *s, const char *words)
{
    struct plan *p = NULL;
    struct err e = {0};

    assert_int_equal(lang_ops.plan(s, &p, &e), -1);
    assert_null(p);
    assert_int_equal(e.kind, ERR_CALLER);
    if (!strstr(e.text, words))
        fail_msg("'%s' not in '%s'", words, e.text);
}

/* The value, or NULL. Fails when a name is there twice. */
static const char *env_of(const struct plan *p, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);

    for (size_t i = 0; p->envp[i]; i++) {
        if (strncmp(p->envp[i], name, n) != 0 || p->envp[i][n] != '=')
            continue;
        assert_null(found);
        found = p->envp[i] + n + 1;
    }
    return found;
}

static void assert_bytes(struct bytes got, struct bytes want)
{
    assert_int_equal(got.n, want.n);
    if (want.n > 0)
        assert_memory_equal(got.p, want.p, want.n);
}

/* The payload of the frame of that kind; p == NULL when there is none. */
static struct bytes frame_of(const struct plan *p, char kind)
{
    size_t at = 0;

    while (at + FRAME_HEAD <= p->frames.n) {
        char digits[FRAME_HEAD] = {0};
        size_t n;

        memcpy(digits, p->frames.p + at + 1, FRAME_HEAD - 1);
        n = strtoul(digits, NULL, 16);
        if (p->frames.p[at] == kind)
            return (struct bytes){.p = p->frames.p + at + FRAME_HEAD, .n = n};
        at += FRAME_HEAD + n;
    }
    assert_int_equal(at, p->frames.n);
    return (struct bytes){0};
}

/* ---- the table ---- */

static void finds_names_and_aliases(void **state)
{
    (void)state;
    assert_int_equal(lang_ops.find("python"), LANG_PYTHON);
    assert_int_equal(lang_ops.find("python3"), LANG_PYTHON);
    assert_int_equal(lang_ops.find("javascript"), LANG_JAVASCRIPT);
    assert_int_equal(lang_ops.find("nodejs"), LANG_JAVASCRIPT);
    assert_int_equal(lang_ops.find("bash"), LANG_SHELL);
    assert_int_equal(lang_ops.find("Python"), -1);
    assert_int_equal(lang_ops.find("python "), -1);
    assert_int_equal(lang_ops.find(""), -1);
    assert_string_equal(lang_ops.fact(LANG_SHELL)->name, "shell");
    assert_true(lang_ops.fact(LANG_SHELL)->available);
    assert_null(lang_ops.fact(LANG_COUNT));
}

static void refuses_unknown_languages(void **state)
{
    struct exec_spec s = spec_of("ruby", "");

    (void)state;
    assert_refused(&s, "unknown language 'ruby'");
}

/* ---- programs ---- */

static void python_gets_its_wrapper(void **state)
{
    struct exec_spec s = spec_of("python", "def handler(e): pass");
    cleanup_plan struct plan *p = planned(&s);

    (void)state;
    assert_int_equal(p->template, TEMPLATE_PYTHON);
    assert_string_equal(p->argv[0], "/usr/bin/python3");
    assert_string_equal(p->argv[2], "-c");
    assert_ptr_equal(p->argv[3], wrap_python);
    assert_ptr_equal(p->carried, wrap_python);
    assert_null(p->argv[4]);
    assert_int_equal(strlen(wrap_python), wrap_python_n);
    assert_true(wrap_python_n < LANG_STRING_MAX);
    assert_bytes(frame_of(p, FRAME_CODE), s.code);
    assert_null(frame_of(p, FRAME_EVENT).p);
    assert_bytes(frame_of(p, FRAME_CONTEXT),
                 BYTES("{\"execution_id\":\"exec_1\",\"function_name\":\"handler\","
                       "\"memory_limit_in_mb\":512,\"remaining_ms\":7000,\"result_max\":4096}"));
    assert_memory_equal(p->frames.p + p->frames.n - FRAME_HEAD, "G00000000", FRAME_HEAD);
    assert_string_equal(p->cwd, "/workspace");
    assert_int_equal(p->files_n, 0);
    assert_int_equal(p->limits.wall_ms, 7000);
    assert_null(p->workspace);
}

static void what_python_compiled_is_asked_for(void **state)
{
    struct exec_spec s = spec_of("python", "def handler(e): pass");
    cleanup_plan struct plan *p = NULL;

    (void)state;
    s.asks_compiled = true;
    p = planned(&s);
    assert_true(p->compiles);
    assert_false(p->compiled);
    assert_non_null(strstr(frame_of(p, FRAME_CONTEXT).p, "\"compiled_max\":65536"));
    assert_null(frame_of(p, FRAME_COMPILED).p);
}

static void what_python_compiled_before_comes_along(void **state)
{
    struct exec_spec s = spec_of("python", "def handler(e): pass");
    cleanup_plan struct plan *p = NULL;

    (void)state;
    s.compiled = BYTES("bytes");
    p = planned(&s);
    assert_true(p->compiled);
    assert_false(p->compiles);
    assert_bytes(frame_of(p, FRAME_COMPILED), BYTES("bytes"));
    assert_bytes(frame_of(p, FRAME_CODE), s.code);
}

static void assert_no_compiling(struct exec_spec s)
{
    cleanup_plan struct plan *p = NULL;

    s.asks_compiled = true;
    s.compiled = BYTES("bytes");
    p = planned(&s);
    assert_false(p->compiles);
    assert_false(p->compiled);
    assert_null(frame_of(p, FRAME_COMPILED).p);
    if (p->frames.n > 0)
        assert_null(strstr(frame_of(p, FRAME_CONTEXT).p, "compiled_max"));
}

/* A module or a variable of a tenant could have said what comes of somebody else's text. */
static void what_a_tenant_was_near_is_not_believed(void **state)
{
    struct exec_var var = {.name = BYTES("A"), .value = BYTES("1")};
    struct exec_spec s = spec_of("python", "x");

    (void)state;
    s.vars = &var;
    s.vars_n = 1;
    assert_no_compiling(s);
    s = spec_of("python", "x");
    s.workspace = "session-a";
    assert_no_compiling(s);
    s = spec_of("python", "x");
    s.dependencies = PLAN_DEPENDENCIES;
    assert_no_compiling(s);
    s = spec_of("python", "x");
    s.cold = true;
    assert_no_compiling(s);
    assert_no_compiling(spec_of("javascript", "x"));
    assert_no_compiling(spec_of("shell", "x"));
}

static void javascript_gets_its_wrapper_and_a_heap_limit(void **state)
{
    struct exec_spec s = spec_of("javascript", "1");
    cleanup_plan struct plan *p = planned(&s);

    (void)state;
    assert_int_equal(p->template, TEMPLATE_NODE);
    assert_string_equal(p->argv[0], "/usr/bin/node");
    assert_string_equal(p->argv[1], "--max-old-space-size=384");
    assert_string_equal(p->argv[2], "-e");
    assert_ptr_equal(p->argv[3], wrap_javascript);
    assert_null(p->argv[4]);
    assert_int_equal(strlen(wrap_javascript), wrap_javascript_n);
    assert_true(wrap_javascript_n < LANG_STRING_MAX);
    assert_bytes(frame_of(p, FRAME_CODE), s.code);
}

static void shell_is_an_argument(void **state)
{
    struct exec_spec s = spec_of("shell", "-c");
    cleanup_plan struct plan *p = planned(&s);

    (void)state;
    assert_int_equal(p->template, TEMPLATE_SHELL);
    assert_string_equal(p->argv[0], "/bin/bash");
    assert_string_equal(p->argv[1], "-c");
    assert_string_equal(p->argv[2], "--");
    assert_string_equal(p->argv[3], "-c");
    assert_string_equal(p->argv[4], "bash");
    assert_null(p->argv[5]);
    assert_int_equal(p->frames.n, 0);
    assert_int_equal(p->input.n, 0);
}

static void a_long_shell_program_is_a_file(void **state)
{
    enum { SIZE = 1 << 20 };
    cleanup_free char *code = malloc(SIZE);
    struct exec_spec s = spec_of("shell", "");

    (void)state;
    assert_non_null(code);
    memset(code, '#', SIZE);
    s.code = (struct bytes){.p = code, .n = SIZE};
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_string_equal(p->argv[1], "/tmp/program-exec_1.sh");
        assert_null(p->argv[2]);
        assert_int_equal(p->files_n, 1);
        assert_string_equal(p->files[0].path, p->argv[1]);
        assert_bytes(p->files[0].content, s.code);
    }
}

static void shell_code_with_nul_is_refused(void **state)
{
    struct exec_spec s = spec_of("shell", "");

    (void)state;
    s.code = BYTES("echo\0x");
    assert_refused(&s, "NUL");
}

static void a_plan_borrows_nothing(void **state)
{
    char code[] = "code", event[] = "{\"a\":1}", input[] = "in", name[] = "N", value[] = "v";
    char workspace[] = "w";
    struct exec_var var = {
        {name,  1},
        {value, 1}
    };
    struct exec_spec s = spec_of("python", code);

    (void)state;
    s.event = (struct bytes){event, sizeof event - 1};
    s.input = (struct bytes){input, sizeof input - 1};
    s.vars = &var;
    s.vars_n = 1;
    s.workspace = workspace;
    {
        cleanup_plan struct plan *p = planned(&s);

        memset(code, '!', sizeof code);
        memset(event, '!', sizeof event);
        memset(input, '!', sizeof input);
        memset(workspace, '!', sizeof workspace);
        name[0] = value[0] = '!';
        assert_bytes(frame_of(p, FRAME_CODE), BYTES("code"));
        assert_bytes(frame_of(p, FRAME_EVENT), BYTES("{\"a\":1}"));
        assert_bytes(p->input, BYTES("in"));
        assert_string_equal(env_of(p, "N"), "v");
        assert_string_equal(p->workspace, "w");
    }
}

/* ---- event and input ---- */

static const struct {
    const char *event, *input; /* NULL: not given */
    const char *told;          /* the event frame; NULL: none */
    const char *shell_input;
} events[] = {
    {NULL,        NULL,           NULL,        ""            },
    {"{\"a\":1}", NULL,           "{\"a\":1}", "{\"a\":1}"   },
    {"{ }",       NULL,           "{ }",       "{ }"         },
    {"{}",        "{\"b\":2}",    "{\"b\":2}", "{\"b\":2}"   },
    {"{\t\r\n }", "x",            "{\t\r\n }", "x"           },
    {"{\"a\":1}", "{\"b\":2}",    "{\"a\":1}", "{\"b\":2}"   },
    {NULL,        " {\"b\":2}\n", "{\"b\":2}", " {\"b\":2}\n"},
    {NULL,        "[1]",          NULL,        "[1]"         },
    {NULL,        "{\"b\":2} x",  NULL,        "{\"b\":2} x" },
    {NULL,        "words",        NULL,        "words"       },
    {NULL,        "",             NULL,        ""            },
    {"[1]",       "",             "[1]",       ""            },
};

static struct bytes maybe(const char *s)
{
    return (struct bytes){.p = s, .n = s ? strlen(s) : 0};
}

static void the_event_is_chosen(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        struct exec_spec s = spec_of("python", "");

        s.event = maybe(events[i].event);
        s.input = maybe(events[i].input);
        {
            cleanup_plan struct plan *p = planned(&s);

            assert_bytes(frame_of(p, FRAME_EVENT), maybe(events[i].told));
            assert_bytes(p->input, maybe(events[i].input));
            assert_string_equal(env_of(p, "EVENT_JSON"), events[i].told ? events[i].told : "{}");
        }
        s.language = "shell";
        {
            cleanup_plan struct plan *p = planned(&s);

            assert_bytes(p->input, maybe(events[i].shell_input));
            assert_string_equal(env_of(p, "EVENT_JSON"), events[i].told ? events[i].told : "{}");
        }
    }
}

/* The longest event that fits into a variable, and one byte more. */
static void a_long_event_is_a_file(void **state)
{
    static const char head[] = "{\"a\":1";
    const size_t most = LANG_STRING_MAX - strlen("EVENT_JSON=");
    cleanup_free char *event = malloc(most + 1);
    struct exec_spec s = spec_of("javascript", "");

    (void)state;
    assert_non_null(event);
    memset(event, ' ', most + 1);
    memcpy(event, head, sizeof head - 1);
    event[most - 1] = '}';
    s.event = (struct bytes){event, most};
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_int_equal(strlen(env_of(p, "EVENT_JSON")), most);
        assert_null(env_of(p, "EVENT_FILE"));
        assert_int_equal(p->files_n, 0);
    }
    event[most - 1] = ' ';
    event[most] = '}';
    s.event.n++;
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_null(env_of(p, "EVENT_JSON"));
        assert_string_equal(env_of(p, "EVENT_FILE"), "/tmp/event-exec_1.json");
        assert_int_equal(p->files_n, 1);
        assert_string_equal(p->files[0].path, "/tmp/event-exec_1.json");
        assert_bytes(p->files[0].content, s.event);
        assert_bytes(frame_of(p, FRAME_EVENT), s.event);
    }
}

/* ---- environment ---- */

static void the_environment_is_made_from_nothing(void **state)
{
    struct exec_spec s = spec_of("python", "");
    cleanup_plan struct plan *p = planned(&s);
    size_t n = 0;

    (void)state;
    assert_string_equal(env_of(p, "PATH"), "/usr/local/bin:/usr/bin:/bin");
    assert_string_equal(env_of(p, "HOME"), "/workspace");
    assert_string_equal(env_of(p, "TMPDIR"), "/tmp");
    assert_string_equal(env_of(p, "LC_CTYPE"), "C.UTF-8");
    assert_string_equal(env_of(p, "SHELL"), "/bin/bash");
    assert_string_equal(env_of(p, "EVENT_JSON"), "{}");
    while (p->envp[n])
        n++;
    assert_int_equal(n, 6);
}

static void dependencies_are_on_the_module_path(void **state)
{
    struct exec_spec s = spec_of("python", "");

    (void)state;
    s.dependencies = "/opt/deps";
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_string_equal(env_of(p, "PYTHONPATH"), "/opt/deps");
        assert_int_equal(p->template, TEMPLATE_PYTHON);
        assert_null(p->carried); /* they may make it start anew */
    }
}

static void variables_of_the_request_win(void **state)
{
    struct exec_var vars[] = {
        {BYTES("HOME"),         BYTES("/tmp")},
        {BYTES("A"),            BYTES("1")   },
        {BYTES("A"),            BYTES("a=b") },
        {BYTES("EMPTY"),        {NULL, 0}    },
        {BYTES("EVENT_JSON"),   BYTES("mine")},
        {BYTES("_x9"),          BYTES("\n")  },
        {BYTES("1.\xc3\xa9 b"), BYTES("2")   },
    };
    struct exec_spec s = spec_of("shell", "");

    (void)state;
    s.vars = vars;
    s.vars_n = ARRAY_LEN(vars);
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_string_equal(env_of(p, "HOME"), "/tmp");
        assert_string_equal(env_of(p, "A"), "a=b");
        assert_string_equal(env_of(p, "EMPTY"), "");
        assert_string_equal(env_of(p, "EVENT_JSON"), "mine");
        assert_string_equal(env_of(p, "_x9"), "\n");
        assert_string_equal(env_of(p, "1.\xc3\xa9 b"), "2");
    }
}

static void bad_variables_are_refused(void **state)
{
    static const struct {
        struct exec_var var;
        const char *words;
    } bad[] = {
        {{BYTES(""), BYTES("v")},      "not a name"},
        {{BYTES("A=B"), BYTES("v")},   "not a name"},
        {{BYTES("A\n"), BYTES("v")},   "not a name"},
        {{BYTES("A\0B"), BYTES("v")},  "not a name"},
        {{BYTES("A\x7f"), BYTES("v")}, "not a name"},
        {{BYTES("A"), BYTES("v\0w")},  "NUL"       },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct exec_spec s = spec_of("python", "");

        s.vars = &bad[i].var;
        s.vars_n = 1;
        assert_refused(&s, bad[i].words);
    }
}

static void too_much_environment_is_refused(void **state)
{
    cleanup_free char *value = malloc(LANG_STRING_MAX);
    cleanup_free struct exec_var *vars = calloc(LANG_VARS_MAX + 1, sizeof *vars);
    char names[10][2];
    struct exec_spec s = spec_of("python", "");

    (void)state;
    assert_non_null(value);
    assert_non_null(vars);
    memset(value, 'v', LANG_STRING_MAX);
    s.vars = vars;
    for (size_t i = 0; i <= LANG_VARS_MAX; i++)
        vars[i] = (struct exec_var){BYTES("A"), BYTES("1")};
    s.vars_n = LANG_VARS_MAX + 1;
    assert_refused(&s, "more than 1000");
    s.vars_n = 1;
    vars[0].value = (struct bytes){value, LANG_STRING_MAX - 2};
    lang_ops.plan_free(planned(&s));
    vars[0].value.n++;
    assert_refused(&s, "'A' is longer than 131071");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(names[i], sizeof names[i], "%c", (char)('A' + i));
        vars[i] = (struct exec_var){
            {names[i], 1                  },
            {value,    LANG_STRING_MAX - 2}
        };
    }
    s.vars_n = ARRAY_LEN(names);
    assert_refused(&s, "together");
}

static void start_variables_need_a_fresh_interpreter(void **state)
{
    static const struct {
        const char *language, *name;
        enum plan_template template;
    } cases[] = {
        {"python",     "A",                  TEMPLATE_PYTHON},
        {"python",     "PYTHONPATH",         TEMPLATE_PYTHON},
        {"python",     "PYTHONHASHSEED",     TEMPLATE_EXEC  },
        {"python",     "LD_PRELOAD",         TEMPLATE_EXEC  },
        {"python",     "LANG",               TEMPLATE_EXEC  },
        {"python",     "NODE_OPTIONS",       TEMPLATE_PYTHON},
        {"javascript", "TZ",                 TEMPLATE_NODE  },
        {"javascript", "NODE_OPTIONS",       TEMPLATE_EXEC  },
        {"javascript", "UV_THREADPOOL_SIZE", TEMPLATE_EXEC  },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct exec_var var = {
            {cases[i].name, strlen(cases[i].name)},
            BYTES("1")
        };
        struct exec_spec s = spec_of(cases[i].language, "");

        s.vars = &var;
        s.vars_n = 1;
        {
            cleanup_plan struct plan *p = planned(&s);

            assert_int_equal(p->template, cases[i].template);
        }
    }
}

static void cold_is_cold(void **state)
{
    struct exec_spec s = spec_of("javascript", "");

    (void)state;
    s.cold = true;
    {
        cleanup_plan struct plan *p = planned(&s);

        assert_int_equal(p->template, TEMPLATE_EXEC);
    }
    lang_ops.plan_free(NULL);
}

/* What wasm/host.js reads from argv. */
static void webassembly_is_told_what_to_be(void **state)
{
    static const struct {
        const char *language;
        enum plan_template template;
    } rows[] = {
        {"python",     TEMPLATE_WASM_PYTHON    },
        {"js",         TEMPLATE_WASM_JAVASCRIPT},
        {"javascript", TEMPLATE_WASM_JAVASCRIPT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exec_spec s = spec_of(rows[i].language, "x");
        cleanup_plan struct plan *p = NULL;

        s.wasm = true;
        p = planned(&s);
        assert_int_equal(p->template, rows[i].template);
        assert_true(template_is_wasm(p->template));
        assert_string_equal(p->argv[0], "wasm");
        assert_string_equal(p->argv[1], "8192"); /* pages: 512 MiB */
        assert_string_equal(p->argv[2], "");
        assert_string_equal(p->argv[3], "");
        assert_string_equal(p->argv[4], "runtime");
        assert_null(p->argv[5]);
        assert_true(p->frames.n > 0);
    }
}

static void only_some_handlers_run_in_webassembly(void **state)
{
    struct exec_spec s = spec_of("shell", "x");

    (void)state;
    s.wasm = true;
    assert_refused(&s, "WebAssembly");
}

/* ---- the table of languages ---- */

static size_t rows_named(const char *name)
{
    const struct call_lang *l;
    size_t n = 0;

    for (size_t i = 0; (l = language(i)); i++) {
        n += strcmp(l->name, name) == 0;
        for (size_t k = 0; k < CALL_ALIASES_MAX && l->alias[k]; k++)
            n += strcmp(l->alias[k], name) == 0;
    }
    return n;
}

static void every_name_is_of_one_language(void **state)
{
    const struct call_lang *l;

    (void)state;
    for (size_t i = 0; (l = language(i)); i++) {
        assert_int_equal(rows_named(l->name), 1);
        assert_int_equal(language_find(l->name, strlen(l->name), l->flags), i);
        for (size_t k = 0; k < CALL_ALIASES_MAX && l->alias[k]; k++) {
            assert_int_equal(rows_named(l->alias[k]), 1);
            assert_int_equal(language_find(l->alias[k], strlen(l->alias[k]), l->flags), i);
        }
    }
}

static void every_language_can_be_started(void **state)
{
    static const unsigned without = CALL_COMPILED | CALL_MODULE;
    const struct call_lang *l;

    (void)state;
    for (size_t i = 0; (l = language(i)); i++) {
        assert_non_null(l->interpreter);
        if (l->flags & LANGUAGE_FUNCTION && !(l->flags & without))
            assert_non_null(wrap_call_find(l->name, NULL));
        if (template_is_prestarted(l->template))
            assert_ptr_equal(language_of_template(l->template), l);
    }
    assert_null(wrap_call_find("no such language", NULL));
}

static void every_template_has_a_row(void **state)
{
    (void)state;
    for (size_t t = 0; t < TEMPLATE_COUNT; t++)
        assert_true(templates[t].name && templates[t].megabytes > 0 && templates[t].pool > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_names_and_aliases),
        cmocka_unit_test(refuses_unknown_languages),
        cmocka_unit_test(python_gets_its_wrapper),
        cmocka_unit_test(what_python_compiled_is_asked_for),
        cmocka_unit_test(what_python_compiled_before_comes_along),
        cmocka_unit_test(what_a_tenant_was_near_is_not_believed),
        cmocka_unit_test(javascript_gets_its_wrapper_and_a_heap_limit),
        cmocka_unit_test(shell_is_an_argument),
        cmocka_unit_test(a_long_shell_program_is_a_file),
        cmocka_unit_test(shell_code_with_nul_is_refused),
        cmocka_unit_test(a_plan_borrows_nothing),
        cmocka_unit_test(the_event_is_chosen),
        cmocka_unit_test(a_long_event_is_a_file),
        cmocka_unit_test(the_environment_is_made_from_nothing),
        cmocka_unit_test(dependencies_are_on_the_module_path),
        cmocka_unit_test(variables_of_the_request_win),
        cmocka_unit_test(bad_variables_are_refused),
        cmocka_unit_test(too_much_environment_is_refused),
        cmocka_unit_test(start_variables_need_a_fresh_interpreter),
        cmocka_unit_test(cold_is_cold),
        cmocka_unit_test(webassembly_is_told_what_to_be),
        cmocka_unit_test(only_some_handlers_run_in_webassembly),
        cmocka_unit_test(every_name_is_of_one_language),
        cmocka_unit_test(every_language_can_be_started),
        cmocka_unit_test(every_template_has_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
