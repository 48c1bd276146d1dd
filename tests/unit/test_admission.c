/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "core/admission.h"

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

static void lane_guests(struct guest *g, size_t n, struct admission *a, struct lane *l, int *clock)
{
    struct err e;

    for (size_t i = 0; i < n; i++) {
        guest_init(&g[i], a, clock);
        g[i].ticket.lane = l;
        assert_int_equal(admission_ask(a, &g[i].ticket, &e), 0);
    }
}

static void a_lane_is_served_one_at_a_time_in_order(void **state)
{
    struct admission a;
    struct guest g[3];
    struct lane l;
    int clock = 0;

    (void)state;
    admission_init(&a, 10, 10);
    lane_init(&l, 1);
    lane_guests(g, 3, &a, &l, &clock);
    assert_int_equal(g[0].ticket.state, TICKET_GRANTED);
    assert_int_equal(g[1].ticket.state, TICKET_BEHIND);
    assert_int_equal(a.queued, 2);
    admission_leave(&a, &g[0].ticket);
    assert_int_equal(g[1].granted_at, 1);
    assert_int_equal(g[2].ticket.state, TICKET_BEHIND);
    admission_leave(&a, &g[2].ticket); /* gives up in the middle */
    admission_leave(&a, &g[1].ticket);
    assert_int_equal(l.ahead, 0);
    assert_int_equal(l.behind_n + a.queued + a.granted, 0);
}

static void a_long_lane_delays_nobody_else(void **state)
{
    struct admission a;
    struct guest mine[4], other;
    struct lane l;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, 10);
    lane_init(&l, 1);
    lane_guests(mine, 4, &a, &l, &clock);
    guest_init(&other, &a, &clock);
    assert_int_equal(admission_ask(&a, &other.ticket, &e), 0);
    admission_leave(&a, &mine[0].ticket);
    assert_int_equal(other.granted_at, 1);
    admission_leave(&a, &other.ticket);
    assert_int_equal(mine[1].granted_at, 2);
    for (size_t i = 1; i < 4; i++)
        admission_leave(&a, &mine[i].ticket);
    assert_int_equal(a.granted + a.queued, 0);
}

static void the_first_of_a_lane_may_give_up_in_the_queue(void **state)
{
    struct admission a;
    struct guest holder, g[2];
    struct lane l;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, 10);
    lane_init(&l, 1);
    guest_init(&holder, &a, &clock);
    assert_int_equal(admission_ask(&a, &holder.ticket, &e), 0);
    lane_guests(g, 2, &a, &l, &clock);
    assert_int_equal(g[0].ticket.state, TICKET_QUEUED);
    admission_leave(&a, &g[0].ticket);
    assert_int_equal(g[1].ticket.state, TICKET_QUEUED);
    admission_leave(&a, &holder.ticket);
    assert_int_equal(g[1].granted_at, 1);
}

static void lanes_are_bounded(void **state)
{
    struct admission a;
    struct guest g[3], one_more;
    struct lane l;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 10, 10);
    a.lane_max = 2;
    lane_init(&l, 1);
    lane_guests(g, 3, &a, &l, &clock);
    guest_init(&one_more, &a, &clock);
    one_more.ticket.lane = &l;
    assert_int_equal(admission_ask(&a, &one_more.ticket, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    admission_leave(&a, &one_more.ticket); /* has nothing to give back */
    assert_int_equal(l.behind_n, 2);
}

static void a_refused_ticket_does_not_hold_its_lane(void **state)
{
    struct admission a;
    struct guest g[2];
    struct lane l;
    struct err e;
    int clock = 0;

    (void)state;
    admission_init(&a, 1, 0);
    lane_init(&l, 1);
    guest_init(&g[0], &a, &clock);
    guest_init(&g[1], &a, &clock);
    g[1].ticket.lane = &l;
    assert_int_equal(admission_ask(&a, &g[0].ticket, &e), 0);
    assert_int_equal(admission_ask(&a, &g[1].ticket, &e), -1);
    assert_int_equal(l.ahead, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_then_queue_then_busy),
        cmocka_unit_test(the_queue_is_served_in_order_of_arrival),
        cmocka_unit_test(leaving_twice_changes_nothing),
        cmocka_unit_test(a_queue_of_failures_does_not_eat_the_stack),
        cmocka_unit_test(a_lane_is_served_one_at_a_time_in_order),
        cmocka_unit_test(a_long_lane_delays_nobody_else),
        cmocka_unit_test(the_first_of_a_lane_may_give_up_in_the_queue),
        cmocka_unit_test(lanes_are_bounded),
        cmocka_unit_test(a_refused_ticket_does_not_hold_its_lane),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
