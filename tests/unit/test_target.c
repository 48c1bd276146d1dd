/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "http/api/e2b/target.h"

static void check(const char *host, const char *id, const char *port, const char *path,
                  enum target_kind kind, const char *want_id, unsigned want_port)
{
    struct target t;

    target_parse(host, id, port, path, &t);
    assert_int_equal(t.kind, kind);
    assert_string_equal(t.id, want_id);
    assert_int_equal(t.port, want_port);
}

static void a_host_names_port_and_sandbox(void **state)
{
    (void)state;
    check("49983-sbabc.localhost", NULL, NULL, "/", TARGET_ENVD, "sbabc", 49983);
    check("49999-sbabc.localhost:8080", NULL, NULL, "/", TARGET_INTERPRETER, "sbabc", 49999);
    check("3000-sbabc.a.b.example", NULL, NULL, "/", TARGET_PORT, "sbabc", 3000);
    check("3000-sbabc-client9.example", NULL, NULL, "/", TARGET_PORT, "sbabc", 3000);
}

static void other_hosts_name_none(void **state)
{
    static const char *const hosts[] = {"localhost",
                                        "127.0.0.1:80",
                                        "3000-sbabc",
                                        "x3000-sb.local",
                                        "3000.example.com",
                                        "3000-.example",
                                        "3000-SB.example",
                                        "3000-a_b.example",
                                        "-sb.example",
                                        "[::1]:8080",
                                        ""};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        check(hosts[i], NULL, NULL, "/", TARGET_NONE, "", 0);
}

static void a_host_wins_over_headers(void **state)
{
    (void)state;
    check("3000-sbone.example", "sbtwo", "49983", "/", TARGET_PORT, "sbone", 3000);
}

static void headers_name_both_or_are_refused(void **state)
{
    (void)state;
    check("localhost", "sbabc", "49983", "/", TARGET_ENVD, "sbabc", 49983);
    check("localhost", "sbabc-client", "80", "/", TARGET_PORT, "sbabc", 80);
    check("localhost", "sbabc", NULL, "/", TARGET_BROKEN, "", 0);
    check("localhost", NULL, "49983", "/", TARGET_BROKEN, "", 0);
    check("localhost", "sb/../x", "49983", "/", TARGET_BROKEN, "", 0);
    check("localhost", "sbabc", "0", "/", TARGET_BROKEN, "sbabc", 0);
    check("localhost", "sbabc", "65536", "/", TARGET_BROKEN, "sbabc", 0);
    check("localhost", "sbabc", "80x", "/", TARGET_BROKEN, "sbabc", 0);
}

static void a_signed_file_needs_no_name(void **state)
{
    (void)state;
    check("localhost", NULL, NULL, "/files?path=a&signature=v1_x", TARGET_ENVD, "", 49983);
    check("localhost", NULL, NULL, "/files?path=a", TARGET_NONE, "", 0);
    check("localhost", NULL, NULL, "/filesystem?signature=v1_x", TARGET_NONE, "", 0);
}

static void an_id_too_long_is_none(void **state)
{
    char host[200], id[120];

    (void)state;
    memset(id, 'a', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    (void)snprintf(host, sizeof host, "3000-%s.example", id);
    check(host, NULL, NULL, "/", TARGET_NONE, "", 0);
    check("localhost", id, "3000", "/", TARGET_BROKEN, "", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_names_port_and_sandbox),
        cmocka_unit_test(other_hosts_name_none),
        cmocka_unit_test(a_host_wins_over_headers),
        cmocka_unit_test(headers_name_both_or_are_refused),
        cmocka_unit_test(a_signed_file_needs_no_name),
        cmocka_unit_test(an_id_too_long_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
