/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <string.h>

#include "core/package.h"

static bool is_spec(const char *text)
{
    struct err e;

    return package_spec_check(text, strlen(text), &e) == 0;
}

static void requirements_are_let_through(void **state)
{
    static const char *const good[] = {
        "requests",
        "a",
        "Zope.Interface",
        "x_y-z",
        " requests ",
        "requests==2.31.0",
        "requests>=2,<3",
        "requests >= 2 , < 3",
        "requests (>=2)",
        "x~=1.4.2",
        "x===1.0+local.1",
        "x!=1.5.*",
        "x==1!2.0",
        "x[a]",
        "x[a, b_c]>=1",
        "x []",
        "x; python_version < '3.9'",
        "x[a]==1 ; sys_platform == \"linux\" and extra == 'x'",
        "x @ https://h/x-1.0-py3-none-any.whl",
        "x[a]@http://h:8080/x.tar.gz ; python_version > '3'",
        "https://h/x.whl#sha256=00",
        "http://127.0.0.1:1/x.whl",
        "httpx==0.28",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!is_spec(good[i]))
            fail_msg("'%s' was refused", good[i]);
}

static void everything_else_is_not(void **state)
{
    static const char *const bad[] = {
        "",           " ",           "-r/etc/x",
        "--help",     " -e .",       "\t--pre",
        "/x",         "./x",         "..",
        "~/x",        "a/b",         "x.",
        "-x",         "_x",          "x-",
        "x y",        "x==",         "x=1",
        "x>>1",       "x==1,",       "x==1 2",
        "x==1 --pre", "x[",          "x[a",
        "x[,]",       "x[a b]",      "x(>=1",
        "x;",         "x ; ",        "x @ file:///etc/passwd",
        "x @ /etc",   "x @",         "x @ git+https://h/x",
        "x@ ssh://h", "file:///x",   "git+https://h/x",
        "ftp://h/x",  "https://",    "http:///x",
        "https:// h", "https://h x", "x\n-r y",
        "x\r",        "\xc3\xa9",    "${HOME}",
        "x $HOME",    "x{a}",        "x`id`",
        "C:\\x",
    };
    char longest[PACKAGE_SPEC_MAX + 2];
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (is_spec(bad[i]))
            fail_msg("'%s' was let through", bad[i]);
    memset(longest, 'x', sizeof longest);
    assert_int_equal(package_spec_check(longest, PACKAGE_SPEC_MAX + 1, &e), -1);
    assert_int_equal(package_spec_check("x\0y", 3, &e), -1);
}

static void no_error_tells_a_password(void **state)
{
    static const char *const specs[] = {"x @ ftp://u:hush@h/", "https://u:hush@h /",
                                        "ftp://u:hush@h"};
    static const char *const urls[] = {"ftp://u:hush@h/", "http://u:hush@/", "https://u:hush@h/?x"};
    struct package_index index;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
        assert_int_equal(package_spec_check(specs[i], strlen(specs[i]), &e), -1);
        assert_null(strstr(e.text, "hush"));
        assert_int_equal(package_index_parse(urls[i], strlen(urls[i]), &index, &e), -1);
        assert_null(strstr(e.text, "hush"));
    }
}

static void indexes(void **state)
{
    static const struct {
        const char *url, *host, *user;
        unsigned port;
        bool tls;
    } good[] = {
        {"https://pypi.org/simple",       "pypi.org", "",      443,  true },
        {"http://PyPI.org",               "pypi.org", "",      80,   false},
        {"HTTPS://h:8443/",               "h",        "",      8443, true },
        {"http://u:p@h/x",                "h",        "u:p",   80,   false},
        {"http://u:a@b@h:81/x@y",         "h",        "u:a@b", 81,   false},
        {"https://token@[::1]:99/simple", "::1",      "token", 99,   true },
    };
    static const char *const bad[] = {
        "",
        "h/x",
        "file:///x",
        "http:/h",
        "http://",
        "http:///x",
        "http://h:",
        "http://h:0",
        "http://h:x",
        "http://[::1",
        "http://h:65536",
        "http://a b",
        "http://h\n",
        "http://h?x=y",
        "http://h#x",
        "http://h\\@e",
        "http://a%2eb/",
        "javascript://h",
    };
    struct package_index i;
    struct err e;

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(good); k++) {
        assert_int_equal(package_index_parse(good[k].url, strlen(good[k].url), &i, &e), 0);
        assert_string_equal(i.url, good[k].url);
        assert_string_equal(i.host.name, good[k].host);
        assert_string_equal(i.user_info, good[k].user);
        assert_int_equal(i.host.port, good[k].port);
        assert_int_equal(i.tls, good[k].tls);
    }
    for (size_t k = 0; k < ARRAY_LEN(bad); k++)
        if (package_index_parse(bad[k], strlen(bad[k]), &i, &e) == 0)
            fail_msg("'%s' was taken for an index", bad[k]);
}

static void hosts(void **state)
{
    struct package_host h[3];
    struct err e;

    (void)state;
    assert_int_equal(package_hosts_parse("", h, 3, &e), 0);
    assert_int_equal(package_hosts_parse(" A.example,b:81 [::1]:5,", h, 3, &e), 3);
    assert_string_equal(h[0].name, "a.example");
    assert_int_equal(h[0].port, 0);
    assert_int_equal(h[1].port, 81);
    assert_string_equal(h[2].name, "::1");
    assert_int_equal(h[2].port, 5);
    assert_int_equal(package_hosts_parse("a,b,c,d", h, 3, &e), -1);
    assert_int_equal(package_hosts_parse("a,http://b", h, 3, &e), -1);
    assert_non_null(strstr(e.text, "http://b"));
}

static bool describes(const char *text, const char *name, const char *version)
{
    struct package_dist d = {0};

    return package_metadata_parse(text, strlen(text), &d) && strcmp(d.name, name) == 0 &&
           strcmp(d.version, version) == 0;
}

static void descriptions(void **state)
{
    struct package_dist d;

    (void)state;
    assert_true(
        describes("Metadata-Version: 2.1\nName: a-b\nVersion: 1.0\n\nName: no\n", "a-b", "1.0"));
    assert_true(describes("version:  2 \r\nname:\tx\r\n\r\n", "x", "2"));
    assert_true(describes("Name: x\nName: y\nVersion: 1", "x", "1"));
    assert_false(describes("Name: x\n\nVersion: 1\n", "x", "1"));
    assert_false(package_metadata_parse("", 0, &d));
    assert_false(package_metadata_parse("Name: x y\nVersion: 1\n", 21, &d));
    assert_false(describes("Name: x\ty\nVersion: 1\n", "x\ty", "1"));
    assert_false(package_metadata_parse("Name: x\nVersion: \x1b[1m\n", 22, &d));
}

static void secrets_are_replaced(void **state)
{
    static const char url[] = "https://joe:p%40ss@h/",
                      text[] = "at https://joe:p%40ss@h/ p@ss p%40ss Basic am9lOnBAc3M= pass";
    struct buf out = BUF_INIT(4096);
    struct package_index i;
    struct err e;

    (void)state;
    assert_int_equal(package_index_parse(url, strlen(url), &i, &e), 0);
    package_scrub(&i, text, strlen(text), &out);
    assert_string_equal(out.p, "at https://****@h/ **** **** Basic **** pass");
    buf_clear(&out);
    i.user_info[0] = '\0';
    package_scrub(&i, text, strlen(text), &out);
    assert_string_equal(out.p, text);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requirements_are_let_through),
        cmocka_unit_test(everything_else_is_not),
        cmocka_unit_test(no_error_tells_a_password),
        cmocka_unit_test(indexes),
        cmocka_unit_test(hosts),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(secrets_are_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
