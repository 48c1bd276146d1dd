/* SPDX-License-Identifier: MIT */
/* What a policy says of hosts, ports, methods and paths. */
#include <arpa/inet.h>
#include <cmocka.h>
#include <string.h>

#include "core/egress_policy.h"

static void hosts_have_one_spelling(void **state)
{
    static const struct {
        const char *text, *host;
        enum egress_host_kind kind;
    } rows[] = {
        {"Example.COM.",     "example.com",  EGRESS_HOST_NAME   },
        {"a_b.example",      "a_b.example",  EGRESS_HOST_NAME   },
        {"localhost",        "localhost",    EGRESS_HOST_NAME   },
        {"127.0.0.1",        "127.0.0.1",    EGRESS_HOST_ADDRESS},
        {"::1",              "::1",          EGRESS_HOST_ADDRESS},
        {"0:0::0:1",         "::1",          EGRESS_HOST_ADDRESS},
        {"127.1",            "127.1",        EGRESS_HOST_ODD    },
        {"2130706433",       "2130706433",   EGRESS_HOST_ODD    },
        {"0x7f000001",       "0x7f000001",   EGRESS_HOST_ODD    },
        {"0X7F.1",           "0x7f.1",       EGRESS_HOST_ODD    },
        {"0177.0.0.1",       "0177.0.0.1",   EGRESS_HOST_ODD    },
        {"127.0.0.1.",       "127.0.0.1",    EGRESS_HOST_ADDRESS},
        {"example.0x10",     "example.0x10", EGRESS_HOST_ODD    },
        {"",                 NULL,           EGRESS_HOST_BAD    },
        {".",                NULL,           EGRESS_HOST_BAD    },
        {"a..b",             NULL,           EGRESS_HOST_BAD    },
        {"-a.b",             NULL,           EGRESS_HOST_BAD    },
        {"a b",              NULL,           EGRESS_HOST_BAD    },
        {"a@b",              NULL,           EGRESS_HOST_BAD    },
        {"b\xc3\xbc"
         "cher.de", NULL,           EGRESS_HOST_BAD    },
        {"::1%lo",           NULL,           EGRESS_HOST_BAD    },
    };
    char host[EGRESS_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        enum egress_host_kind kind = egress_host_read(rows[i].text, strlen(rows[i].text), host);

        if (kind != rows[i].kind)
            fail_msg("'%s' is %d", rows[i].text, kind);
        if (rows[i].host)
            assert_string_equal(host, rows[i].host);
    }
}

static void targets_have_ports(void **state)
{
    char host[EGRESS_NAME_MAX + 1];
    uint16_t port = 7;
    static const char *const bad[] = {"a:",   "a:0",    "a:65536", "a:+1",   "a:1x",
                                      "[::1", "[::1]1", "[a]:1",   "::1:80:"};

    (void)state;
    assert_int_equal(egress_target_read("a.b", 3, host, &port), EGRESS_HOST_NAME);
    assert_int_equal(port, 7);
    assert_int_equal(egress_target_read("a.b:443", 7, host, &port), EGRESS_HOST_NAME);
    assert_int_equal(port, 443);
    assert_int_equal(egress_target_read("[::1]:65535", 11, host, &port), EGRESS_HOST_ADDRESS);
    assert_string_equal(host, "::1");
    assert_int_equal(port, 65535);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (egress_target_read(bad[i], strlen(bad[i]), host, &port) != EGRESS_HOST_BAD)
            fail_msg("'%s'", bad[i]);
}

static void add(struct egress_policy *p, const char *rule)
{
    struct err e;

    if (egress_rule_add(p, rule, strlen(rule), &e) < 0)
        fail_msg("%s: %s", rule, e.text);
}

static bool look(const struct egress_policy *p, const char *host, uint16_t port)
{
    bool any;

    return egress_look(p, host, port, &any) == EGRESS_ALLOWED;
}

static struct egress_policy policy; /* NOLINT: large */

static void only_what_is_named_is_allowed(void **state)
{
    (void)state;
    egress_policy_init(&policy, EGRESS_ALLOW);
    add(&policy, "pypi.org");
    add(&policy, "*.Example.com");
    add(&policy, "db.example.net:5432");
    add(&policy, "10.1.0.0/16");
    assert_true(look(&policy, "pypi.org", 443));
    assert_true(look(&policy, "pypi.org", 80));
    assert_false(look(&policy, "pypi.org", 22));
    assert_false(look(&policy, "xpypi.org", 443));
    assert_false(look(&policy, "pypi.org.evil.example", 443));
    assert_true(look(&policy, "a.b.example.com", 443));
    assert_false(look(&policy, "example.com", 443));
    assert_false(look(&policy, "badexample.com", 443));
    assert_true(look(&policy, "db.example.net", 5432));
    assert_false(look(&policy, "db.example.net", 443));
    assert_true(look(&policy, "10.1.2.3", 80));
    assert_false(look(&policy, "10.2.2.3", 80));
    assert_int_equal(policy.ports_n, 1);
}

static void public_is_everything_else(void **state)
{
    struct err e;

    (void)state;
    egress_policy_init(&policy, EGRESS_PUBLIC);
    add(&policy, "*.evil.example");
    add(&policy, "half.example:80");
    assert_int_equal(egress_port_add(&policy, 8443, &e), 0);
    assert_true(look(&policy, "good.example", 443));
    assert_true(look(&policy, "good.example", 8443));
    assert_false(look(&policy, "good.example", 25));
    assert_false(look(&policy, "very.evil.example", 443));
    assert_false(look(&policy, "half.example", 80));
    assert_true(look(&policy, "half.example", 443));
}

static void methods_and_paths(void **state)
{
    struct err e;

    (void)state;
    egress_policy_init(&policy, EGRESS_ALLOW);
    add(&policy, "api.example");
    assert_int_equal(egress_rule_method(&policy, "GET", 3, &e), 0);
    assert_int_equal(egress_rule_method(&policy, "get", 3, &e), -1);
    assert_int_equal(egress_rule_path(&policy, "/v1/**", 6, &e), 0);
    assert_int_equal(egress_rule_path(&policy, "/ping", 5, &e), 0);
    assert_int_equal(egress_rule_path(&policy, "v1", 2, &e), -1);
#define ASK(method, path) egress_look_request(&policy, "api.example", 80, method, path)
    assert_int_equal(ASK("GET", "/v1/a/b"), EGRESS_ALLOWED);
    assert_int_equal(ASK("GET", "/ping"), EGRESS_ALLOWED);
    assert_int_equal(ASK("GET", "/v2"), EGRESS_PATH);
    assert_int_equal(ASK("POST", "/ping"), EGRESS_METHOD);
    assert_false(look(&policy, "api.example", 443)); /* nobody sees a method there */
    assert_int_equal(egress_look_http(&policy, "api.example", 80), EGRESS_ALLOWED);
    add(&policy, "api.example");
    assert_int_equal(ASK("POST", "/ping"), EGRESS_ALLOWED);
}

static void paths_match_by_segments(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
    } rows[] = {
        {"/",          "/",            true },
        {"/a",         "/a",           true },
        {"/a",         "/a/",          false},
        {"/a",         "/a/b",         false},
        {"/a/*",       "/a/b",         true },
        {"/a/*",       "/a/b/c",       false},
        {"/a/*/c",     "/a/b/c",       true },
        {"/a/b*d/c",   "/a/bccd/c",    true },
        {"/**",        "/",            true },
        {"/**",        "/a/b",         true },
        {"/a/**",      "/a",           true },
        {"/a/**",      "/ab",          false},
        {"/a/**/z",    "/a/z",         true },
        {"/a/**/z",    "/a/b/c/z",     true },
        {"/a/**/z",    "/a/b/c/zz",    false},
        {"/**/b/**/d", "/a/b/c/b/e/d", true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (egress_path_matches(rows[i].pattern, rows[i].path) != rows[i].matches)
            fail_msg("%s %s", rows[i].pattern, rows[i].path);
}

static void paths_have_one_spelling(void **state)
{
    static const char *const rows[][2] = {
        {"/a/b?c=/../d", "/a/b"  },
        {"/a/./b/../c",  "/a/c"  },
        {"/%61/%7e",     "/a/~"  },
        {"/a/%2e%2e/b",  "/b"    },
        {"/a/..",        "/"     },
        {"/a/.",         "/a/"   },
        {"/a%20b",       "/a%20b"},
        {"/a%3a",        "/a%3A" },
        {"/..",          NULL    },
        {"/../a",        NULL    },
        {"/a%2fb",       NULL    },
        {"/a%5cb",       NULL    },
        {"/a\\b",        NULL    },
        {"/a%00",        NULL    },
        {"/a%252e",      NULL    },
        {"/a%2",         NULL    },
        {"a",            NULL    },
        {"",             NULL    },
    };
    char out[EGRESS_PATH_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool good = egress_path_clean(rows[i][0], strlen(rows[i][0]), out);

        if (good != (rows[i][1] != NULL) || (good && strcmp(out, rows[i][1]) != 0))
            fail_msg("%s -> %s", rows[i][0], good ? out : "refused");
    }
}

static void networks(void **state)
{
    struct egress_net n;
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};

    (void)state;
    assert_true(egress_net_read("10.16.0.0/12", &n));
    assert_int_equal(inet_pton(AF_INET, "10.31.255.255", &a.sin_addr), 1);
    assert_true(egress_net_has(&n, (struct sockaddr *)&a));
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.31.0.1", &six.sin6_addr), 1);
    assert_true(egress_net_has(&n, (struct sockaddr *)&six));
    assert_int_equal(inet_pton(AF_INET, "10.32.0.0", &a.sin_addr), 1);
    assert_false(egress_net_has(&n, (struct sockaddr *)&a));
    assert_false(egress_net_read("10.0.0.0/33", &n));
    assert_false(egress_net_read("10.0.0/8", &n));
    assert_false(egress_net_read("x", &n));
    assert_true(egress_net_read("0.0.0.0/0", &n));
    assert_true(egress_net_has(&n, (struct sockaddr *)&a));
}

static void operators_bound_what_may_be_named(void **state)
{
    static struct egress_policy bound; /* NOLINT: large */

    (void)state;
    egress_policy_init(&bound, EGRESS_ALLOW);
    add(&bound, "*.example.com");
    add(&bound, "db.example:5432");
    egress_policy_init(&policy, EGRESS_ALLOW);
    add(&policy, "a.example.com");
    add(&policy, "*.example.com");
    add(&policy, "*.b.example.com");
    add(&policy, "example.com");
    add(&policy, "db.example");
    add(&policy, "db.example:5432");
    add(&policy, "a.example.com:22");
    assert_true(egress_covers(&bound, &policy, 0));
    assert_true(egress_covers(&bound, &policy, 1));
    assert_true(egress_covers(&bound, &policy, 2));
    assert_false(egress_covers(&bound, &policy, 3));
    assert_false(egress_covers(&bound, &policy, 4));
    assert_true(egress_covers(&bound, &policy, 5));
    assert_false(egress_covers(&bound, &policy, 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_one_spelling),
        cmocka_unit_test(targets_have_ports),
        cmocka_unit_test(only_what_is_named_is_allowed),
        cmocka_unit_test(public_is_everything_else),
        cmocka_unit_test(methods_and_paths),
        cmocka_unit_test(paths_match_by_segments),
        cmocka_unit_test(paths_have_one_spelling),
        cmocka_unit_test(networks),
        cmocka_unit_test(operators_bound_what_may_be_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
