/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "app/admission.h"

enum { MANY = 20000 };

struct guest {
    struct ticket ticket;
    struct admission *admission;
    int granted_at; /* 0: never */
    int *clock;
    bool leaves_at_once;
};

static void on_grant(void *user)
{
    struct guest *g = user;

    g->granted_at = ++*g->clock;
    if (g->leaves_at_once)
        admission_leave(g->admission, &g->ticket);
}

static void guest_init(struct guest *g, struct admission *a, int *clock)
{
    *g = (struct guest){.admission = a, .clock = clock};
    g->ticket.grant = on_grant;
    g->ticket.user = g;
}

static void places_then_queue_then_busy(void **state)
{
    struct admission a;
    struct guest g[4];
    struct err e = {0};
    int clock = 0;

    (void)state;
    admission_init(&a, 2, 1);
    for (size_t i = 0; i < 4; i++)
        guest_init(&g[i], &a, &clock);
    assert_int_equal(admission_ask(&a, &g[0].ticket, &e), 0);
    assert_int_equal(admission_ask(&a, &g[1].ticket, &e), 0);
    assert_int_equal(g[1].ticket.state, TICKET_GRANTED);
    assert_int_equal(admission_ask(&a, &g[2].ticket, &e), 0);
    assert_int_equal(g[2].ticket.state, TICKET_QUEUED);
    assert_int_equal(admission_ask(&a, &g[3].ticket, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_int_equal(g[3].ticket.state, TICKET_NONE);
    assert_int_equal(admission_retry_s(&a), 1);
    admission_leave(&a, &g[0].ticket);
    assert_int_equal(g[2].granted_at, 1);
    assert_int_equal(a.granted, 2);
    assert_int_equal(a.queued, 0);
}

static void the_queue_is_served_in_order_of_arrival(void **state)
{
    struct admission a;
    struct guest g[4];
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, 10);
    for (size_t i = 0; i < 4; i++) {
        guest_init(&g[i], &a, &clock);
        assert_int_equal(admission_ask(&a, &g[i].ticket, &e), 0);
    }
    admission_leave(&a, &g[2].ticket); /* gives up waiting */
    admission_leave(&a, &g[0].ticket);
    admission_leave(&a, &g[1].ticket);
    assert_int_equal(g[1].granted_at, 1);
    assert_int_equal(g[2].granted_at, 0);
    assert_int_equal(g[3].granted_at, 2);
}

static void leaving_twice_changes_nothing(void **state)
{
    struct admission a;
    struct guest g;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, 0);
    guest_init(&g, &a, &clock);
    assert_int_equal(admission_ask(&a, &g.ticket, &e), 0);
    admission_leave(&a, &g.ticket);
    admission_leave(&a, &g.ticket);
    assert_int_equal(a.granted, 0);
}

static void a_queue_of_failures_does_not_eat_the_stack(void **state)
{
    static struct guest g[MANY];
    struct admission a;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, MANY);
    for (size_t i = 0; i < MANY; i++) {
        guest_init(&g[i], &a, &clock);
        g[i].leaves_at_once = true;
        assert_int_equal(admission_ask(&a, &g[i].ticket, &e), 0);
    }
    admission_leave(&a, &g[0].ticket);
    assert_int_equal(clock, MANY - 1);
    assert_int_equal(a.granted, 0);
    assert_int_equal(a.queued, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_then_queue_then_busy),
        cmocka_unit_test(the_queue_is_served_in_order_of_arrival),
        cmocka_unit_test(leaving_twice_changes_nothing),
        cmocka_unit_test(a_queue_of_failures_does_not_eat_the_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
