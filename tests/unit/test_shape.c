/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: what is taken, what is refused, and in which words. */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/api/api.h"
#include "lang/runners.h"

struct desk {
    struct app *app;
    struct shaping shaping;
    struct execute_body body;
};

static int setup(void **state)
{
    struct desk *d = calloc(1, sizeof *d);
    const struct lang_fact *f;

    assert_non_null(d);
    d->app = calloc(1, sizeof *d->app);
    assert_non_null(d->app);
    d->app->languages.ops = &lang_ops;
    for (size_t i = 0; (f = lang_ops.fact(i)); i++)
        d->app->languages.names[i] = f->name;
    config_defaults(&d->app->config);
    shaping_init(&d->shaping, d->app);
    *state = d;
    return 0;
}

static int teardown(void **state)
{
    struct desk *d = *state;

    shaping_done(&d->shaping);
    free(d->app);
    free(d);
    return 0;
}

static int shape_text(struct desk *d, const char *text)
{
    return shape_parse(&execute_shape, text, strlen(text), &d->body, &d->shaping);
}

/* Exactly one issue, of this type, about this field. */
static void refused(struct desk *d, const char *text, const char *field, const char *type)
{
    shaping_done(&d->shaping);
    shaping_init(&d->shaping, d->app);
    assert_int_equal(shape_text(d, text), -1);
    assert_int_equal(d->shaping.issues_n, 1);
    assert_string_equal(d->shaping.issues[0].type, type);
    if (field)
        assert_string_equal(d->shaping.issues[0].field, field);
    else
        assert_null(d->shaping.issues[0].field);
}

#define MINIMAL "\"language\":\"python\",\"code\":\"x\""

static void a_complete_body_is_understood(void **state)
{
    struct desk *d = *state;
    const struct execute_body *b = &d->body;

    assert_int_equal(
        shape_text(d, "{\"execution_id\":\"exec_20250106_abc12345\",\"session_id\":\"s\",\"code\":"
                      "\"a\\n\\u00e4b\",\"language\":\"shell\",\"timeout\":7,\"event\":"
                      "{ \"k\" : [1.50, 2e400] },\"stdin\":\"in\",\"env_vars\":{\"A\":\"1\",\"B\":"
                      "\"\"}}"),
        0);
    assert_string_equal(b->execution_id.p, "exec_20250106_abc12345");
    assert_string_equal(b->session_id.p, "s");
    assert_string_equal(b->code.p, "a\n\xc3\xa4"
                                   "b");
    assert_int_equal(b->code.n, 5);
    assert_int_equal(b->timeout_s, 7);
    assert_int_equal(b->event.n, strlen("{ \"k\" : [1.50, 2e400] }"));
    assert_memory_equal(b->event.p, "{ \"k\" : [1.50, 2e400] }", b->event.n);
    assert_string_equal(b->input.p, "in");
    assert_int_equal(b->vars.n, 2);
    assert_string_equal(b->vars.v[1].name.p, "B");
    assert_int_equal(b->vars.v[1].value.n, 0);
}

static void what_is_absent_stays_absent(void **state)
{
    struct desk *d = *state;

    assert_int_equal(shape_text(d, "{" MINIMAL ",\"stdin\":null,\"session_id\":null}"), 0);
    assert_null(d->body.execution_id.p);
    assert_null(d->body.session_id.p);
    assert_null(d->body.input.p);
    assert_null(d->body.event.p);
    assert_int_equal(d->body.timeout_s, 0);
    assert_int_equal(d->body.vars.n, 0);
}

static void all_errors_are_named_at_once(void **state)
{
    struct desk *d = *state;
    cleanup_with(buf_done) struct buf json = BUF_INIT(1 << 16);

    assert_int_equal(shape_text(d, "{\"language\":\"cobol\",\"timeout\":0,\"env_vars\":{\"A\":1,"
                                   "\"B\":null}}"),
                     -1);
    assert_int_equal(d->shaping.issues_n, 5);
    shape_issues_json(&d->shaping, &json);
    assert_non_null(strstr(json.p, "{\"type\":\"missing\",\"loc\":[\"body\",\"code\"],\"msg\":"
                                   "\"Field required\"}"));
    assert_non_null(strstr(json.p, "\"loc\":[\"body\",\"env_vars\",\"B\"]"));
    assert_non_null(strstr(json.p, "^(python|javascript|shell)$"));
    assert_non_null(strstr(json.p, "greater than or equal to 0.05\""));
}

#define PROCESSES(value) "{" MINIMAL ",\"limits\":{\"processes\":" value "}}"

static void integers_come_in_three_spellings(void **state)
{
    struct desk *d = *state;

    assert_int_equal(shape_text(d, PROCESSES("\"30\"")), 0);
    assert_int_equal(d->body.limits.processes, 30);
    shaping_done(&d->shaping);
    assert_int_equal(shape_text(d, PROCESSES("2.0")), 0);
    assert_int_equal(d->body.limits.processes, 2);
    refused(d, PROCESSES("2.5"), "processes", "int_from_float");
    refused(d, PROCESSES("\"soon\""), "processes", "int_parsing");
    refused(d, PROCESSES("true"), "processes", "int_type");
    refused(d, PROCESSES("1e300"), "processes", "int_parsing_size");
    refused(d, PROCESSES("-1"), "processes", "greater_than_equal");
}

static void seconds_may_be_fractions(void **state)
{
    struct desk *d = *state;

    assert_int_equal(shape_text(d, "{" MINIMAL ",\"timeout\":2.5}"), 0);
    assert_true(d->body.timeout_s == 2.5);
    shaping_done(&d->shaping);
    assert_int_equal(shape_text(d, "{" MINIMAL ",\"timeout\":\"30\"}"), 0);
    assert_true(d->body.timeout_s == 30);
    refused(d, "{" MINIMAL ",\"timeout\":\"soon\"}", "timeout", "float_type");
    refused(d, "{" MINIMAL ",\"timeout\":true}", "timeout", "float_type");
    refused(d, "{" MINIMAL ",\"timeout\":null}", "timeout", "float_type");
    refused(d, "{" MINIMAL ",\"timeout\":3601}", "timeout", "less_than_equal");
    refused(d, "{" MINIMAL ",\"timeout\":-1}", "timeout", "greater_than_equal");
}

static void wrong_types_are_refused(void **state)
{
    struct desk *d = *state;

    refused(d, "{\"language\":\"python\",\"code\":5}", "code", "string_type");
    refused(d, "{\"language\":\"python\",\"code\":null}", "code", "string_type");
    refused(d, "{\"language\":\"Python\",\"code\":\"\"}", "language", "string_pattern_mismatch");
    refused(d, "{\"language\":\"shell\\u0000\",\"code\":\"\"}", "language",
            "string_pattern_mismatch");
    refused(d, "{" MINIMAL ",\"event\":null}", "event", "dict_type");
    refused(d, "{" MINIMAL ",\"event\":[1]}", "event", "dict_type");
    refused(d, "{" MINIMAL ",\"env_vars\":[]}", "env_vars", "dict_type");
    refused(d, "{" MINIMAL ",\"env_vars\":{\"A=B\":\"x\"}}", "env_vars", "value_error");
    refused(d, "{" MINIMAL ",\"env_vars\":{\"\":\"x\"}}", "env_vars", "value_error");
    refused(d, "{" MINIMAL ",\"env_vars\":{\"A\":\"\\u0000\"}}", "env_vars", "value_error");
    refused(d, "{" MINIMAL ",\"env_vars\":{\"A\":\"1\",\"B\":\"2\",\"A\":\"3\"}}", "env_vars",
            "value_error");
    refused(d, "{\"language\":\"shell\",\"code\":\"a\\u0000\"}", "code", "value_error");
    refused(d, "{\"language\":\"shell\",\"code\":\"\\ud800\"}", "code", "string_unicode");
}

static void the_body_must_be_an_object(void **state)
{
    struct desk *d = *state;

    refused(d, "", NULL, "json_invalid");
    refused(d, "{", NULL, "json_invalid");
    refused(d, "[]", NULL, "model_attributes_type");
    refused(d, "null", NULL, "model_attributes_type");
}

static void ids_stay_in_their_directory(void **state)
{
    struct desk *d = *state;
    char text[512];

    assert_true(api_id_is_valid("exec_20250106123456_abcdef01", 28));
    assert_true(api_id_is_valid("a..b", 4));
    assert_false(api_id_is_valid(".a", 2));
    assert_false(api_id_is_valid("a/b", 3));
    assert_false(api_id_is_valid("", 0));
    refused(d, "{" MINIMAL ",\"execution_id\":\"../x\"}", "execution_id",
            "string_pattern_mismatch");
    refused(d, "{" MINIMAL ",\"execution_id\":\"a\\u0000b\"}", "execution_id",
            "string_pattern_mismatch");
    (void)snprintf(text, sizeof text, "{" MINIMAL ",\"execution_id\":\"%0129d\"}", 0);
    refused(d, text, "execution_id", "string_pattern_mismatch");
}

static void code_is_limited_in_bytes(void **state)
{
    struct desk *d = *state;

    d->app->config.code_max = 4;
    assert_int_equal(shape_text(d, "{\"language\":\"shell\",\"code\":\"\\u00e4\\u00e4\"}"), 0);
    shaping_done(&d->shaping);
    refused(d, "{\"language\":\"shell\",\"code\":\"\\u00e4\\u00e4.\"}", "code", "code_too_large");
}

static void issues_are_bounded(void **state)
{
    struct desk *d = *state;
    struct buf text = BUF_INIT(1 << 20);

    (void)buf_puts(&text, "{" MINIMAL ",\"env_vars\":{");
    for (int i = 0; i < 1000; i++)
        (void)buf_printf(&text, "%s\"k%d\":%d", i ? "," : "", i, i);
    (void)buf_puts(&text, "}}");
    assert_int_equal(shape_text(d, text.p), -1);
    assert_int_equal(d->shaping.issues_n, SHAPE_ISSUES_MAX);
    buf_done(&text);
}

#define DESK(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DESK(a_complete_body_is_understood), DESK(what_is_absent_stays_absent),
        DESK(all_errors_are_named_at_once),  DESK(integers_come_in_three_spellings),
        DESK(seconds_may_be_fractions),      DESK(wrong_types_are_refused),
        DESK(the_body_must_be_an_object),    DESK(ids_stay_in_their_directory),
        DESK(code_is_limited_in_bytes),      DESK(issues_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
