/* SPDX-License-Identifier: MIT */
/* Where webhooks may go, and how they are signed. */
#include <arpa/inet.h>
#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "net/webhook.h"

static struct webhook_rules rules_of(const char *text)
{
    struct webhook_rules r;
    struct err e;

    assert_int_equal(webhook_rules_parse(text, &r, &e), 0);
    return r;
}

static void hosts_are_named_in_full_or_by_a_pattern(void **state)
{
    const struct webhook_rules r = rules_of(
        " Hooks.Example.COM, *.example.org ,x.net:8443,y.net:*,10.0.0.0/8,[2001:db8::7]:99,");
    static const struct {
        const char *host;
        uint16_t port;
        enum webhook_reach reach;
    } rows[] = {
        {"hooks.example.com",   443,  WEBHOOK_PRIVATE},
        {"hooks.example.com",   80,   WEBHOOK_PRIVATE},
        {"hooks.example.com",   8080, WEBHOOK_NOWHERE},
        {"x.hooks.example.com", 443,  WEBHOOK_NOWHERE},
        {"a.example.org",       443,  WEBHOOK_PUBLIC },
        {"a.b.example.org",     443,  WEBHOOK_PUBLIC },
        {"example.org",         443,  WEBHOOK_NOWHERE},
        {"badexample.org",      443,  WEBHOOK_NOWHERE},
        {".example.org",        443,  WEBHOOK_NOWHERE},
        {"x.net",               443,  WEBHOOK_NOWHERE},
        {"x.net",               8443, WEBHOOK_PRIVATE},
        {"y.net",               1,    WEBHOOK_PRIVATE},
        {"10.1.2.3",            80,   WEBHOOK_PRIVATE},
        {"10.1.2.3",            81,   WEBHOOK_NOWHERE},
        {"11.1.2.3",            80,   WEBHOOK_NOWHERE},
        {"2001:db8::7",         99,   WEBHOOK_PRIVATE},
        {"2001:db8::8",         99,   WEBHOOK_NOWHERE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(webhook_rules_host(&r, rows[i].host, rows[i].port), rows[i].reach);
}

static bool may(const char *hosts, enum webhook_reach reach, const char *address)
{
    const struct webhook_rules r = rules_of(hosts);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(443)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
    bool is_six = strchr(address, ':') != NULL;
    const void *to = is_six ? (const void *)&six : &four;

    assert_int_equal(inet_pton(is_six ? AF_INET6 : AF_INET, address,
                               is_six ? (void *)&six.sin6_addr : &four.sin_addr),
                     1);
    return webhook_rules_address(&r, reach, to);
}

static void addresses_inside_need_more_than_a_pattern(void **state)
{
    static const char *const open[] = {"93.184.216.34", "2600::1", "::ffff:8.8.8.8",
                                       "64:ff9b::808:808", "223.255.255.255"};
    static const char *const inside[] = {
        "127.0.0.1",        "10.0.0.1",        "172.16.0.1",   "172.31.255.255",
        "192.168.0.1",      "100.64.0.1",      "::1",          "fd00::1",
        "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"};
    static const char *const special[] = {"169.254.169.254",
                                          "169.254.0.1",
                                          "100.100.100.200",
                                          "168.63.129.16",
                                          "0.0.0.0",
                                          "224.0.0.1",
                                          "255.255.255.255",
                                          "240.0.0.1",
                                          "192.0.0.192",
                                          "::",
                                          "::7f00:1",
                                          "fe80::1",
                                          "fd00:ec2::254",
                                          "ff02::1",
                                          "::ffff:169.254.169.254",
                                          "64:ff9b::a9fe:a9fe",
                                          "2002:a9fe:a9fe::"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        assert_true(may("*", WEBHOOK_PUBLIC, open[i]));
        assert_false(may("*", WEBHOOK_NOWHERE, open[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
        assert_false(may("*", WEBHOOK_PUBLIC, inside[i]));
        assert_true(may("a", WEBHOOK_PRIVATE, inside[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(special); i++) {
        assert_false(may("*", WEBHOOK_PUBLIC, special[i]));
        assert_false(may("a", WEBHOOK_PRIVATE, special[i]));
    }
}

static void a_row_with_an_address_opens_it(void **state)
{
    (void)state;
    assert_true(may("*,169.254.169.254", WEBHOOK_PUBLIC, "169.254.169.254"));
    assert_true(may("*,169.254.0.0/16", WEBHOOK_PUBLIC, "169.254.1.1"));
    assert_false(may("*,169.254.169.254:80", WEBHOOK_PUBLIC, "169.254.169.254"));
    assert_true(may("*,[fe80::1]", WEBHOOK_PUBLIC, "fe80::1"));
    assert_true(may("*,10.1.0.0/16", WEBHOOK_PUBLIC, "10.1.9.9"));
    assert_false(may("*,10.1.0.0/16", WEBHOOK_PUBLIC, "10.2.9.9"));
    assert_true(may("*,10.1.0.0/16", WEBHOOK_PUBLIC, "::ffff:10.1.9.9"));
    assert_true(may("*,0.0.0.0/0", WEBHOOK_PUBLIC, "169.254.169.254"));
    assert_false(may("*,0.0.0.0/0", WEBHOOK_PUBLIC, "fe80::1"));
}

static void what_is_no_host_is_refused(void **state)
{
    static const char *const bad[] = {"http://x", "x/y", "a b",         "*x",        "x:0",
                                      "x:70000",  "x:",  "10.0.0.0/33", "10.0.0.0/", "[::1]/129",
                                      "a..b/8",   "**",  "*.",          "-_/",       "[::1"};
    struct webhook_rules r;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(webhook_rules_parse(bad[i], &r, &e), -1);
    assert_int_equal(rules_of(" , ,").n, 0);
}

/* The example of Standard Webhooks. */
static void a_message_is_signed_as_the_standard_says(void **state)
{
    static const char body[] = "{\"test\": 2432232314}";
    char out[WEBHOOK_SIGNATURE_MAX];

    (void)state;
    assert_int_equal(webhook_sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                  "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
                                  (struct bytes){body, sizeof body - 1}, out),
                     0);
    assert_string_equal(out, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_int_equal(webhook_sign("whsec_?", "x", 0, (struct bytes){"", 0}, out), -1);
    assert_int_equal(webhook_sign("whsec_", "x", 0, (struct bytes){"", 0}, out), -1);
    assert_int_equal(webhook_sign("", "x", 0, (struct bytes){"", 0}, out), -1);
    assert_int_equal(webhook_sign("text", "x", 0, (struct bytes){"", 0}, out), 0);
}

static void an_address_is_read_as_libcurl_reads_it(void **state)
{
    struct http_url u;
    struct err e;

    (void)state;
    assert_int_equal(http_url_parse("HTTPS://Hooks.Example.com.:8443/a?b=c", &u, &e), 0);
    assert_true(u.tls);
    assert_string_equal(u.host, "hooks.example.com");
    assert_int_equal(u.port, 8443);
    assert_int_equal(http_url_parse("http://2130706433/", &u, &e), 0);
    assert_string_equal(u.host, "127.0.0.1");
    assert_int_equal(u.port, 80);
    assert_int_equal(http_url_parse("http://[::1]/", &u, &e), 0);
    assert_string_equal(u.host, "::1");
    assert_int_equal(http_url_parse("http://a@b/", &u, &e), -1);
    assert_int_equal(http_url_parse("http://b/#c", &u, &e), -1);
    assert_int_equal(http_url_parse("http://[fe80::1%25lo]/", &u, &e), -1);
    assert_int_equal(http_url_parse("gopher://b/", &u, &e), -1);
    assert_int_equal(http_url_parse("http://h\xc3\xb6\xc3\xb6k.example/", &u, &e), -1);
    assert_int_equal(http_url_parse("http://\xef\xbd\x8cocalhost/", &u, &e), -1);
    assert_int_equal(http_url_parse("//b", &u, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_named_in_full_or_by_a_pattern),
        cmocka_unit_test(addresses_inside_need_more_than_a_pattern),
        cmocka_unit_test(a_row_with_an_address_opens_it),
        cmocka_unit_test(what_is_no_host_is_refused),
        cmocka_unit_test(a_message_is_signed_as_the_standard_says),
        cmocka_unit_test(an_address_is_read_as_libcurl_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
