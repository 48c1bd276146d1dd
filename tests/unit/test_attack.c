/* SPDX-License-Identifier: MIT */
/* The table of the selftest, and what is made of what was seen. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "selftest/attack.h"

static const struct attack *row(const char *id)
{
    for (size_t i = 0; i < attacks_n; i++)
        if (strcmp(attacks[i].id, id) == 0)
            return &attacks[i];
    fail_msg("no row '%s'", id);
    return NULL;
}

static void test_rows_are_whole(void **state)
{
    size_t real = 0;

    (void)state;
    for (size_t i = 0; i < attacks_n; i++) {
        assert_true(attacks[i].title[0] && attack_expected(&attacks[i])[0]);
        assert_true(attacks[i].traits < BIT(JAIL_TRAIT_COUNT));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(attacks[i].id, attacks[k].id);
        assert_true(attacks[i].eye != EYE_NONE); /* its own word is never all there is */
        real += attacks[i].group != GROUP_WORK && attacks[i].shown != SHOWN_UNSHOWN;
    }
    assert_true(real >= 120);
}

static void test_words_or_witness_are_a_breach(void **state)
{
    const struct attack *a = row("host-read");
    struct sight held = {.held = true}, said = {.breach = true},
                 seen = {.held = true, .noticed = true};

    (void)state;
    assert_int_equal(attack_verdict(a, JAIL_FS, &held), VERDICT_HELD);
    assert_int_equal(attack_verdict(a, JAIL_FS, &said), VERDICT_BREACHED);
    assert_int_equal(attack_verdict(a, JAIL_FS, &seen), VERDICT_BREACHED);
    assert_int_equal(attack_verdict(a, JAIL_NET, &seen), VERDICT_UNPROMISED);
}

static void test_silence_is_not_a_success(void **state)
{
    struct sight nothing = {.reason = END_EXIT}, killed = {.reason = END_OOM},
                 failed = {.held = true, .failed = true};

    (void)state;
    assert_int_equal(attack_verdict(row("host-read"), JAIL_FS, &nothing), VERDICT_BROKEN);
    assert_int_equal(attack_verdict(row("host-read"), JAIL_FS, &killed), VERDICT_BROKEN);
    assert_int_equal(attack_verdict(row("host-read"), JAIL_FS, &failed), VERDICT_BROKEN);
    assert_int_equal(attack_verdict(row("memory"), JAIL_MEMORY, &killed), VERDICT_HELD);
    assert_int_equal(attack_verdict(row("output"), 0, &nothing), VERDICT_HELD);
}

static void test_ordinary_work_must_work(void **state)
{
    struct sight ok = {.ok = true}, silent = {0}, absent = {.absent = true},
                 touching = {.ok = true, .noticed = true};

    (void)state;
    assert_int_equal(attack_verdict(row("py-sqlite"), 0, &ok), VERDICT_WORKS);
    assert_int_equal(attack_verdict(row("py-sqlite"), 0, &silent), VERDICT_BROKEN);
    assert_int_equal(attack_verdict(row("py-sqlite"), 0, &touching), VERDICT_BROKEN);
    assert_int_equal(attack_verdict(row("py-numpy"), 0, &absent), VERDICT_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_whole),
        cmocka_unit_test(test_words_or_witness_are_a_breach),
        cmocka_unit_test(test_silence_is_not_a_success),
        cmocka_unit_test(test_ordinary_work_must_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
