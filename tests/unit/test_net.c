/* SPDX-License-Identifier: MIT */
/* Which network a request may ask for, and what a jail makes of it. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "core/port_net.h"

/* 0 or the kind of the refusal. */
static enum err_kind decode(const struct config *c, const char *text, struct net_wish *ret)
{
    struct json_value v;
    struct err e;

    assert_int_equal(json_parse(text, strlen(text), 0, &v, &e), 0);
    return net_decode(c, v, ret, &e) == 0 ? ERR_NONE : e.kind;
}

static const struct config *options(const char *egress, bool host)
{
    static struct config c; /* large */

    c = (struct config){.host_network = host, .egress_mb = 1024, .egress_connections = 8};
    (void)snprintf(c.egress, sizeof c.egress, "%s", egress);
    return &c;
}

static void the_operator_permits(void **state)
{
    static const struct {
        const char *egress, *text;
        enum err_kind kind;
    } rows[] = {
        {"off",    "\"none\"",                                       ERR_NONE  },
        {"off",    "{}",                                             ERR_NONE  },
        {"off",    "null",                                           ERR_NONE  },
        {"off",    "\"host\"",                                       ERR_DENIED},
        {"off",    "{\"mode\":\"allow\",\"allow\":[\"a.example\"]}", ERR_DENIED},
        {"allow",  "{\"mode\":\"allow\",\"allow\":[\"a.example\"]}", ERR_NONE  },
        {"allow",  "\"public\"",                                     ERR_DENIED},
        {"public", "\"public\"",                                     ERR_NONE  },
        {"public", "{\"mode\":\"allow\"}",                           ERR_NONE  },
    };
    struct net_wish w;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (decode(options(rows[i].egress, false), rows[i].text, &w) != rows[i].kind)
            fail_msg("EGRESS=%s: %s", rows[i].egress, rows[i].text);
        if (rows[i].kind == ERR_NONE)
            net_wish_done(&w);
    }
    assert_int_equal(decode(options("off", true), "{\"mode\":\"host\"}", &w), ERR_NONE);
    assert_int_equal(w.mode, NET_HOST);
}

static void what_is_malformed_is_refused(void **state)
{
    static const char *const bad[] = {
        "\"\"",
        "\"gate\"",
        "\"HOST\"",
        "{\"mode\":\"bridge\"}",
        "{\"allow\":[\"a.example\"]}",
        "{\"mode\":\"allow\",\"allow\":[1]}",
        "{\"mode\":\"allow\",\"allow\":[\"a b\"]}",
        "{\"mode\":\"allow\",\"allow\":[{\"paths\":[\"/\"]}]}",
        "{\"mode\":\"allow\",\"allow\":[{\"host\":\"a\",\"methods\":[\"get\"]}]}",
        "{\"mode\":\"allow\",\"allow\":[{\"host\":\"a\",\"path\":[\"/\"]}]}",
        "{\"mode\":\"allow\",\"allow\":[{\"host\":\"a\",\"paths\":\"/\"}]}",
        "{\"mode\":\"allow\",\"deny\":[\"a\"]}",
        "{\"mode\":\"public\",\"allow\":[\"a\"]}",
        "{\"mode\":\"public\",\"ports\":[0]}",
        "{\"mode\":\"public\",\"prots\":[1]}",
        "{\"mode\":\"allow\",\"allow\":[\"0x7f000001\"]}",
        "{\"mode\":\"allow\",\"allow\":[\"*\"]}",
    };
    struct net_wish w;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (decode(options("public", true), bad[i], &w) != ERR_CALLER)
            fail_msg("%s", bad[i]);
}

static void a_policy_is_bounded(void **state)
{
    struct config c = *options("public", false);
    struct net_wish w;

    (void)state;
    (void)snprintf(c.egress_hosts, sizeof c.egress_hosts, "*.example.com, db.example:5432");
    (void)snprintf(c.egress_private, sizeof c.egress_private, "10.1.0.0/16");
    assert_int_equal(
        decode(&c, "{\"mode\":\"allow\",\"allow\":[\"a.example.com\"],\"bytes_max\":5}", &w),
        ERR_NONE);
    assert_int_equal(w.policy->bytes_max, 5);
    assert_int_equal(w.policy->connections_max, 8);
    assert_int_equal(w.policy->private_n, 1);
    assert_true(w.policy->transparent);
    net_wish_done(&w);
    assert_int_equal(decode(&c, "{\"mode\":\"allow\",\"allow\":[\"other.example\"]}", &w),
                     ERR_DENIED);
    assert_int_equal(decode(&c, "\"public\"", &w), ERR_NONE);
    assert_int_equal(w.policy->private_n, 0); /* never with public */
    assert_int_equal(w.policy->bytes_max, 1024u << 20);
    net_wish_done(&w);
}

static void listeners_of_a_policy(void **state)
{
    struct net_wish w;
    uint32_t ports[NET_PORTS_MAX];

    (void)state;
    assert_int_equal(
        decode(options("allow", false), "{\"mode\":\"allow\",\"allow\":[\"a.example:22\"]}", &w),
        ERR_NONE);
    assert_int_equal(net_ports(w.policy, ports), 5);
    assert_int_equal(ports[0], NET_PROXY_PORT);
    assert_int_equal(ports[4], 22 | NET_PORT_EVERY);
    w.policy->transparent = false;
    assert_int_equal(net_ports(w.policy, ports), 1);
    net_wish_done(&w);
}

static void variables_of_the_request_win(void **state)
{
    const struct exec_var given[] = {
        {{"http_proxy", 10}, {"", 0}}
    };
    struct exec_var out[NET_VARS_MAX];
    size_t n = net_vars(given, 1, out);

    (void)state;
    assert_int_equal(net_vars(NULL, 0, out), n + 1);
}

static void a_jail_without_a_network_of_its_own(void **state)
{
    const struct jail none = {.traits = 0}, own = {.traits = JAIL_NET};

    (void)state;
    assert_int_equal(net_effective(&none, NET_NONE), NET_HOST);
    assert_int_equal(net_effective(&own, NET_NONE), NET_NONE);
    assert_int_equal(net_effective(&own, NET_HOST), NET_HOST);
    assert_false(net_possible(&none, NET_GATE));
    assert_true(net_possible(&own, NET_GATE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_operator_permits),
        cmocka_unit_test(what_is_malformed_is_refused),
        cmocka_unit_test(a_policy_is_bounded),
        cmocka_unit_test(listeners_of_a_policy),
        cmocka_unit_test(variables_of_the_request_win),
        cmocka_unit_test(a_jail_without_a_network_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
