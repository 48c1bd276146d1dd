/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "app/daemon/lifecycle.h"
#include "app/execution/session.h"

static void readable_ids_give_readable_directories(void **state)
{
    char out[SESSION_WORKSPACE_MAX];

    (void)state;
    session_workspace("sess_01", out);
    assert_string_equal(out, "s-sess_01");
    session_workspace("..", out);
    assert_string_equal(out, "s-..");
}

static void every_other_id_gives_a_digest(void **state)
{
    static const char *const ids[] = {"a/b", "../x", "a b", "\xc3\xbc", "h-00", ""};
    char out[SESSION_WORKSPACE_MAX], again[SESSION_WORKSPACE_MAX], longest[SESSION_ID_MAX + 1];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        session_workspace(ids[i], out);
        assert_int_equal(strncmp(out, "h-", 2), 0);
        assert_int_equal(strlen(out), 2 + 64);
        assert_null(strchr(out, '/'));
    }
    memset(longest, 'x', SESSION_ID_MAX);
    longest[SESSION_ID_MAX] = '\0';
    session_workspace(longest, out);
    longest[SESSION_ID_MAX - 1] = 'y';
    session_workspace(longest, again);
    assert_string_not_equal(out, again);
}

static void a_session_is_shared_and_freed_by_the_last(void **state)
{
    struct sessions *all = calloc(1, sizeof *all);
    struct session *a, *b, *c;

    (void)state;
    assert_non_null(all);
    sessions_init(all, "", 1);
    a = session_enter(all, "one");
    b = session_enter(all, "one");
    c = session_enter(all, "two");
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    session_leave(all, a);
    assert_ptr_equal(session_enter(all, "one"), b);
    session_leave(all, b);
    session_leave(all, b);
    session_leave(all, c);
    session_leave(all, NULL);
    for (size_t i = 0; i < SESSION_BUCKETS; i++)
        assert_true(SLIST_EMPTY(&all->buckets[i]));
    free(all);
}

static void a_remembered_session_outlives_its_last_user(void **state)
{
    struct sessions *all = calloc(1, sizeof *all);
    struct session *a;

    (void)state;
    assert_non_null(all);
    sessions_init(all, "", 1);
    a = session_enter(all, "one");
    session_remember(all, a, true);
    session_leave(all, a);
    assert_ptr_equal(session_enter(all, "one"), a);
    assert_true(a->remembered);
    session_remember(all, a, false);
    session_leave(all, a);
    assert_int_equal(all->remembered_n, 0);
    a = session_enter(all, "two");
    session_remember(all, a, true);
    session_leave(all, a);
    sessions_done(all);
    for (size_t i = 0; i < SESSION_BUCKETS; i++)
        assert_true(SLIST_EMPTY(&all->buckets[i]));
    free(all);
}

static void exit_codes_have_reasons(void **state)
{
    (void)state;
    assert_string_equal(lifecycle_reason(0), "normal");
    assert_string_equal(lifecycle_reason(143), "sigterm");
    assert_string_equal(lifecycle_reason(137), "sigkill");
    assert_string_equal(lifecycle_reason(134), "oom_killed");
    assert_string_equal(lifecycle_reason(130), "error");
    assert_string_equal(lifecycle_reason(1), "error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_ids_give_readable_directories),
        cmocka_unit_test(every_other_id_gives_a_digest),
        cmocka_unit_test(a_session_is_shared_and_freed_by_the_last),
        cmocka_unit_test(a_remembered_session_outlives_its_last_user),
        cmocka_unit_test(exit_codes_have_reasons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
