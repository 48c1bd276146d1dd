/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port_net.h"

static void the_host_network_needs_permission(void **state)
{
    struct config c = {.host_network = false};
    enum net_mode m = NET_GATE;
    struct err e;

    (void)state;
    assert_int_equal(net_permit(&c, "host", &m, &e), -1);
    assert_int_equal(e.kind, ERR_DENIED);
    assert_int_equal(m, NET_GATE);
    c.host_network = true;
    assert_int_equal(net_permit(&c, "host", &m, &e), 0);
    assert_int_equal(m, NET_HOST);
}

static void only_modes_of_the_table_can_be_asked_for(void **state)
{
    static const char *const wrong[] = {"", "gate", "Host", "none "};
    struct config c = {.host_network = true};
    enum net_mode m = NET_HOST;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(net_permit(&c, wrong[i], &m, &e), -1);
        assert_int_equal(e.kind, ERR_CALLER);
    }
    assert_int_equal(net_permit(&c, "none", &m, &e), 0);
    assert_int_equal(m, NET_NONE);
}

static void a_jail_without_a_network_gives_that_of_the_host(void **state)
{
    struct jail none = {.traits = JAIL_FS}, own = {.traits = JAIL_FS | JAIL_NET};

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
        cmocka_unit_test(the_host_network_needs_permission),
        cmocka_unit_test(only_modes_of_the_table_can_be_asked_for),
        cmocka_unit_test(a_jail_without_a_network_gives_that_of_the_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
