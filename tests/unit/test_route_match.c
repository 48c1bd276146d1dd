/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "http/server/route.h"

static void handler(struct http_call *c)
{
    (void)c;
}

static const struct route rows[] = {
    {"GET",    "/",                 handler, 0,                              "t", "h", NULL},
    {"GET",    "/health",           handler, ROUTE_HEAD,                     "t", "h", NULL},
    {"POST",   "/run",              handler, ROUTE_ANY_METHOD,               "t", "h", NULL},
    {"GET",    "/v1/things",        handler, 0,                              "t", "h", NULL},
    {"POST",   "/v1/things",        handler, ROUTE_AUTH,                     "t", "h", NULL},
    {"GET",    "/v1/things/*",      handler, ROUTE_AUTH | ROUTE_HEAD,        "t", "h", NULL},
    {"DELETE", "/v1/things/*",      handler, ROUTE_AUTH,                     "t", "h", NULL},
    {"PUT",    "/v1/*/files/**",    handler, ROUTE_AUTH | ROUTE_BODY_STREAM, "t", "h", NULL},
    {"GET",    "/v1/*/x/*/y/*/z/*", handler, 0,                              "t", "h", NULL},
};
static const struct route_table table = {rows, ARRAY_LEN(rows)};

static enum route_found find(const char *method, const char *path, struct route_hit *ret)
{
    return route_find(&table, method, path, strlen(path), ret);
}

static void literal_paths_match_exactly(void **state)
{
    struct route_hit hit;

    (void)state;
    assert_int_equal(find("GET", "/", &hit), ROUTE_FOUND);
    assert_ptr_equal(hit.route, &rows[0]);
    assert_int_equal(find("GET", "/health", &hit), ROUTE_FOUND);
    assert_int_equal(find("GET", "/h%65alth", &hit), ROUTE_FOUND);
    assert_int_equal(find("GET", "/health/", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "//health", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/Health", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/healthy", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/heal", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("OPTIONS", "*", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/v1%2Fthings", &hit), ROUTE_NO_PATH);
}

static void methods_are_told_from_paths(void **state)
{
    struct route_hit hit;

    (void)state;
    assert_int_equal(find("POST", "/v1/things", &hit), ROUTE_FOUND);
    assert_ptr_equal(hit.route, &rows[4]);
    assert_int_equal(find("PATCH", "/v1/things", &hit), ROUTE_NO_METHOD);
    assert_ptr_equal(hit.route, &rows[3]);
    assert_int_equal(find("HEAD", "/health", &hit), ROUTE_FOUND);
    assert_int_equal(find("HEAD", "/v1/things", &hit), ROUTE_NO_METHOD);
    assert_int_equal(find("BREW", "/run", &hit), ROUTE_FOUND);
    assert_int_equal(find("get", "/health", &hit), ROUTE_NO_METHOD);
}

static void a_star_is_one_segment(void **state)
{
    struct route_hit hit;
    char out[64];

    (void)state;
    assert_int_equal(find("DELETE", "/v1/things/a%2Fb", &hit), ROUTE_FOUND);
    assert_ptr_equal(hit.route, &rows[6]);
    assert_int_equal(hit.match.n, 1);
    assert_true(route_decode(hit.match.p[0], hit.match.len[0], out));
    assert_string_equal(out, "a/b");
    assert_int_equal(find("GET", "/v1/things/", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/v1/things/a/b", &hit), ROUTE_NO_PATH);
    assert_int_equal(find("GET", "/v1/1/x/2/y/3/z/4", &hit), ROUTE_FOUND);
    assert_int_equal(hit.match.n, 4);
    assert_memory_equal(hit.match.p[3], "4", 1);
}

static void two_stars_are_the_rest(void **state)
{
    struct route_hit hit;
    char out[64];

    (void)state;
    assert_int_equal(find("PUT", "/v1/sb/files/a/b%20c/", &hit), ROUTE_FOUND);
    assert_int_equal(hit.match.n, 2);
    assert_true(route_decode(hit.match.p[1], hit.match.len[1], out));
    assert_string_equal(out, "a/b c/");
    assert_int_equal(find("PUT", "/v1/sb/files/", &hit), ROUTE_FOUND);
    assert_int_equal(hit.match.len[1], 0);
    assert_int_equal(find("PUT", "/v1/sb/files", &hit), ROUTE_NO_PATH);
}

static void allow_lists_each_method_once(void **state)
{
    char allow[ROUTE_ALLOW_MAX];

    (void)state;
    route_allow(&table, "/v1/things/x", 12, allow);
    assert_string_equal(allow, "GET, HEAD, DELETE");
    route_allow(&table, "/v1/things", 10, allow);
    assert_string_equal(allow, "GET, POST");
    route_allow(&table, "/nothing", 8, allow);
    assert_string_equal(allow, "");
}

static void decoding_happens_once(void **state)
{
    char out[64];

    (void)state;
    assert_true(route_decode("%2541", 5, out));
    assert_string_equal(out, "%41");
    assert_true(route_decode("a+b%C3%a9", 9, out));
    assert_string_equal(out, "a+b\xc3\xa9");
    assert_true(route_decode("", 0, out));
    assert_string_equal(out, "");
    assert_false(route_decode("%", 1, out));
    assert_false(route_decode("%4", 2, out));
    assert_false(route_decode("%zz", 3, out));
    assert_false(route_decode("%-1", 3, out));
    assert_false(route_decode("a%00b", 5, out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(literal_paths_match_exactly),
        cmocka_unit_test(methods_are_told_from_paths),
        cmocka_unit_test(a_star_is_one_segment),
        cmocka_unit_test(two_stars_are_the_rest),
        cmocka_unit_test(allow_lists_each_method_once),
        cmocka_unit_test(decoding_happens_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
