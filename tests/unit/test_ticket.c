/* SPDX-License-Identifier: MIT */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "http/server/ticket.h"

enum { LONG_US = 1000000000 };

static void a_ticket_opens_once(void **state)
{
    struct tickets t = {0};
    char one[TICKET_MAX], two[TICKET_MAX];

    (void)state;
    assert_int_equal(ticket_make(&t, LONG_US, one), 0);
    assert_int_equal(ticket_make(&t, LONG_US, two), 0);
    assert_string_not_equal(one, two);
    assert_true(ticket_take(&t, one));
    assert_false(ticket_take(&t, one));
    assert_true(ticket_take(&t, two));
}

static void a_ticket_that_is_too_old_opens_nothing(void **state)
{
    struct tickets t = {0};
    char text[TICKET_MAX];

    (void)state;
    assert_int_equal(ticket_make(&t, 0, text), 0);
    assert_false(ticket_take(&t, text));
}

static void the_oldest_ticket_gives_way(void **state)
{
    struct tickets t = {0};
    char text[TICKETS_MAX + 1][TICKET_MAX];

    (void)state;
    for (size_t i = 0; i < TICKETS_MAX + 1; i++)
        assert_int_equal(ticket_make(&t, LONG_US + i, text[i]), 0);
    assert_false(ticket_take(&t, text[0]));
    for (size_t i = 1; i < TICKETS_MAX + 1; i++)
        assert_true(ticket_take(&t, text[i]));
}

static void what_is_no_ticket_opens_nothing(void **state)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    struct tickets t = {0};

    (void)state;
    assert_int_equal(sizeof zeros, TICKET_MAX);
    assert_false(ticket_take(&t, ""));
    assert_false(ticket_take(&t, zeros));
    tickets_forget(&t);
    assert_false(ticket_take(&t, zeros));
}

static void a_key_is_good_under_its_secret_until_its_time(void **state)
{
    char key[SESSION_KEY_MAX];

    (void)state;
    assert_int_equal(session_key_make("secret", 1000, key), 0);
    assert_true(session_key_looks(key));
    assert_true(session_key_is(key, "secret", 999));
    assert_false(session_key_is(key, "secret", 1000));
    assert_false(session_key_is(key, "Secret", 999));
    assert_false(session_key_is(key, "", 999));
}

static void no_byte_of_a_key_can_be_another(void **state)
{
    char key[SESSION_KEY_MAX], other[SESSION_KEY_MAX];

    (void)state;
    assert_int_equal(session_key_make("secret", 1000, key), 0);
    for (size_t i = 0; i < strlen(key); i++) {
        (void)snprintf(other, sizeof other, "%s", key);
        other[i] = other[i] == '1' ? '2' : '1';
        assert_false(session_key_is(other, "secret", 999));
        (void)snprintf(other, sizeof other, "%.*s", (int)i, key);
        assert_false(session_key_is(other, "secret", 999));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_opens_once),
        cmocka_unit_test(a_ticket_that_is_too_old_opens_nothing),
        cmocka_unit_test(the_oldest_ticket_gives_way),
        cmocka_unit_test(what_is_no_ticket_opens_nothing),
        cmocka_unit_test(a_key_is_good_under_its_secret_until_its_time),
        cmocka_unit_test(no_byte_of_a_key_can_be_another),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
