/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/cleanup.h"
#include "http/server/origin.h"

static bool host_passes(const char *host, const char *allowed)
{
    return !origin_refuse(&(struct origin_facts){.host = host}, allowed);
}

static void hosts_that_nobody_else_can_have_pass(void **state)
{
    static const char *const good[] = {"localhost",   "LocalHost:8080", "127.0.0.1",
                                       "127.0.0.1:1", "[::1]:8080",     "[fe80::1]",
                                       "executor",    "executor:8080"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(host_passes(good[i], ""));
}

static void other_hosts_need_to_be_allowed(void **state)
{
    static const char *const bad[] = {"evil.example",
                                      "evil.example:8080",
                                      "127.0.0.1.evil.example",
                                      "localhost.evil.example",
                                      "",
                                      ":80",
                                      "[",
                                      "[::1",
                                      "[::1].evil.example",
                                      "[::1]:80.evil.example",
                                      "localhost:80.evil.example",
                                      "localhost:80@evil.example",
                                      "1.2.3.4.5"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(host_passes(bad[i], "good.example"));
    assert_true(host_passes("good.example:80", "a.example, good.example"));
    assert_true(host_passes("GOOD.example", "good.example"));
    assert_true(host_passes("evil.example", "*"));
    assert_false(host_passes("good.example.evil.example", "good.example"));
    assert_true(host_passes(NULL, "")); /* HTTP/1.0 */
}

static const char *from(const char *origin, const char *site, const char *type, bool json)
{
    return origin_refuse(&(struct origin_facts){.host = "localhost:8080",
                                                .origin = origin,
                                                .fetch_site = site,
                                                .content_type = type,
                                                .json = json},
                         "");
}

static void pages_of_others_are_refused(void **state)
{
    (void)state;
    assert_null(from(NULL, NULL, NULL, true));
    assert_null(from("http://localhost:8080", "same-origin", "application/json", true));
    assert_null(from("http://localhost:8080", NULL, "application/json; charset=utf-8", true));
    assert_null(from(NULL, "none", NULL, false));
    assert_non_null(from("http://evil.example", NULL, "application/json", true));
    assert_non_null(from("http://localhost:8081", NULL, "application/json", true));
    assert_non_null(from("null", NULL, "application/json", true));
    assert_non_null(from("", NULL, "application/json", true));
    assert_non_null(from(NULL, "cross-site", "application/json", true));
    assert_non_null(from(NULL, "same-site", "application/json", true));
}

static void a_browser_says_that_it_sends_json(void **state)
{
    (void)state;
    assert_non_null(from("http://localhost:8080", NULL, NULL, true));
    assert_non_null(from(NULL, "same-origin", "text/plain", true));
    assert_null(from(NULL, NULL, "text/plain", true)); /* no browser */
    assert_null(from("http://localhost:8080", NULL, "text/plain", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_that_nobody_else_can_have_pass),
        cmocka_unit_test(other_hosts_need_to_be_allowed),
        cmocka_unit_test(pages_of_others_are_refused),
        cmocka_unit_test(a_browser_says_that_it_sends_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
