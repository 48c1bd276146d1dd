/* SPDX-License-Identifier: MIT */
/* Schemas as every client takes them. */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "function/portable.h"

static void becomes(const char *schema, const char *wanted)
{
    struct buf out = BUF_INIT(PORTABLE_MAX + 1);
    struct json_value v;
    struct err e;

    assert_int_equal(json_parse(schema, strlen(schema), 0, &v, &e), 0);
    assert_int_equal(portable_parameters(v, &out, &e), 0);
    assert_string_equal(out.p, wanted);
    buf_done(&out);
}

static void refused(const char *schema, const char *words)
{
    struct buf out = BUF_INIT(PORTABLE_MAX + 1);
    struct json_value v;
    struct err e;

    assert_int_equal(json_parse(schema, strlen(schema), 0, &v, &e), 0);
    assert_int_equal(portable_parameters(v, &out, &e), -1);
    assert_non_null(strstr(e.text, words));
    buf_done(&out);
}

#define OBJECT(properties, required)                                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"

static void the_first_type_that_is_not_null_counts(void **state)
{
    (void)state;
    becomes(OBJECT("\"a\":{\"type\":[\"null\",\"integer\",\"string\"],\"default\":null}", "\"a\""),
            OBJECT("\"a\":{\"type\":\"integer\",\"description\":\"(or: string)\"}", ""));
    becomes(OBJECT("\"a\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"items\":{\"type\":"
                   "\"string\"}},{\"type\":\"number\"}],\"description\":\"some\"}",
                   ""),
            OBJECT("\"a\":{\"type\":\"array\",\"description\":\"some (or: number)\",\"items\":{"
                   "\"type\":\"string\"}}",
                   ""));
}

static void a_list_of_values_has_their_type(void **state)
{
    (void)state;
    becomes(OBJECT("\"a\":{\"enum\":[\"x\",null]},\"b\":{\"enum\":[1,2],\"default\":1}", "\"b\""),
            OBJECT("\"a\":{\"type\":\"string\",\"enum\":[\"x\"]},\"b\":{\"type\":\"number\","
                   "\"enum\":[1,2],\"default\":1}",
                   "\"b\""));
}

static void what_may_be_anything_says_so(void **state)
{
    (void)state;
    becomes(OBJECT("\"a\":{},\"b\":true,\"c\":{\"description\":\"d\"}", ""),
            OBJECT("\"a\":{\"description\":\"(any JSON value)\"},"
                   "\"b\":{\"description\":\"(any JSON value)\"},\"c\":{\"description\":\"d (any "
                   "JSON value)\"}",
                   ""));
}

static void keywords_that_clients_refuse_are_gone(void **state)
{
    (void)state;
    becomes(OBJECT("\"a\":{\"type\":\"object\",\"patternProperties\":{},\"$ref\":\"x\",\"not\":{},"
                   "\"allOf\":[],\"properties\":{\"b\":{\"type\":\"string\",\"pattern\":\"x\"},"
                   "\"b c\":{}},\"required\":[\"b\"]}",
                   ""),
            OBJECT("\"a\":{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"}},"
                   "\"additionalProperties\":true,\"required\":[\"b\"]}",
                   ""));
}

static void names_that_clients_refuse_are_refused(void **state)
{
    (void)state;
    refused(OBJECT("\"\xc3\xa4\":{\"type\":\"string\"}", ""), "has a name that clients refuse");
    refused(OBJECT("\"\":{\"type\":\"string\"}", ""), "has a name that clients refuse");
}

static void a_schema_is_not_too_deep(void **state)
{
    struct buf text = BUF_INIT(4096);
    int depth = PORTABLE_DEPTH_MAX + 2;

    (void)state;
    (void)buf_puts(&text, "{\"properties\":{\"a\":");
    for (int i = 0; i < depth; i++)
        (void)buf_puts(&text, "{\"type\":\"array\",\"items\":");
    (void)buf_puts(&text, "{\"type\":\"string\"}");
    for (int i = 0; i < depth + 2; i++)
        (void)buf_putc(&text, '}');
    refused(text.p, "deeper");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_type_that_is_not_null_counts),
        cmocka_unit_test(a_list_of_values_has_their_type),
        cmocka_unit_test(what_may_be_anything_says_so),
        cmocka_unit_test(keywords_that_clients_refuse_are_gone),
        cmocka_unit_test(names_that_clients_refuse_are_refused),
        cmocka_unit_test(a_schema_is_not_too_deep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
