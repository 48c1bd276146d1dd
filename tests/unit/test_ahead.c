/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zygote/ahead.h"

enum { FAR = 4 * AHEAD_LINE };

struct stage {
    struct ahead ahead;
    int fd;
    int calls;
};

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->fd = memfd_create("ahead", MFD_CLOEXEC);
    assert_true(s->fd >= 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;

    (void)close(s->fd);
    free(s);
    return 0;
}

__attribute__((noinline)) static void taken(struct stage *s)
{
    s->calls++;
}

/* Where it begins is looked at by who might call it; its middle is its own. */
__attribute__((noinline, aligned(AHEAD_LINE))) static void not_taken(struct stage *s)
{
    __asm__ volatile(".skip 512, 0");
    s->calls += 2;
}

/* The second one is there, and never called. */
static void work(void *user)
{
    struct stage *s = user;
    void (*volatile f)(struct stage *) = s->calls < 100 ? taken : not_taken;

    f(s);
    s->calls += abs(s->calls) > 100;
}

static bool has(const struct ahead *a, const void *p)
{
    uintptr_t at = (uintptr_t)p;

    for (size_t i = 0; i < a->n; i++) {
        uintptr_t from = a->runs[i] & ~(uintptr_t)(AHEAD_LINE - 1);

        if (at >= from && at < from + (a->runs[i] % AHEAD_LINE + 1) * AHEAD_LINE)
            return true;
    }
    return false;
}

static void what_was_executed_is_known(void **state)
{
    struct stage *s = *state;

    assert_int_equal(ahead_learn(work, s, s->fd), 0);
    assert_int_equal(s->calls, 1);
    ahead_load(&s->ahead, s->fd);
#ifdef __x86_64__
    assert_true(has(&s->ahead, (const void *)(uintptr_t)taken));
    assert_true(has(&s->ahead, (const void *)(uintptr_t)work));
    assert_false(has(&s->ahead, (const char *)(uintptr_t)not_taken + FAR));
#else
    assert_int_equal(s->ahead.n, 0);
#endif
    ahead_fetch(&s->ahead);
}

static void it_is_known_whoever_loads_it_and_how_often(void **state)
{
    struct stage *s = *state;
    struct ahead again;

    assert_int_equal(ahead_learn(work, s, s->fd), 0);
    ahead_load(&s->ahead, s->fd);
    ahead_load(&again, s->fd);
    assert_int_equal(again.n, s->ahead.n);
    assert_memory_equal(again.runs, s->ahead.runs, again.n * sizeof *again.runs);
}

static void library_work(void *user)
{
    char *volatile copy = strdup(user);

    free(copy);
}

static void libraries_count(void **state)
{
    struct stage *s = *state;
    char text[] = "text";

    assert_int_equal(ahead_learn(library_work, text, s->fd), 0);
    ahead_load(&s->ahead, s->fd);
#ifdef __x86_64__
    uintptr_t here = (uintptr_t)library_work, far = 0;

    for (size_t i = 0; i < s->ahead.n; i++)
        far += (s->ahead.runs[i] > here ? s->ahead.runs[i] - here : here - s->ahead.runs[i]) >
               UINT32_MAX;
    assert_true(far > 0);
#endif
}

static void nothing_is_left_of_the_steps(void **state)
{
    struct stage *s = *state;
    struct sigaction now;
    stack_t stack;

    assert_int_equal(ahead_learn(work, s, s->fd), 0);
    assert_int_equal(sigaction(SIGTRAP, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
    assert_int_equal(sigaltstack(NULL, &stack), 0);
    assert_true(stack.ss_flags & SS_DISABLE);
}

static void a_file_of_anything_does_no_harm(void **state)
{
    struct stage *s = *state;
    uintptr_t noise[64];

    ahead_load(&s->ahead, s->fd);
    assert_int_equal(s->ahead.n, 0);
    for (size_t i = 0; i < 64; i++)
        noise[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    assert_int_equal(write(s->fd, noise, sizeof noise - 3), sizeof noise - 3);
    ahead_load(&s->ahead, s->fd);
    assert_true(s->ahead.n < 64);
    ahead_fetch(&s->ahead);
    ahead_load(&s->ahead, -1);
    assert_int_equal(s->ahead.n, 0);
}

static void a_file_that_is_full_is_told(void **state)
{
    struct stage *s = *state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    assert_true(full >= 0);
#ifdef __x86_64__
    assert_int_not_equal(ahead_learn(work, s, full), 0);
#endif
    (void)close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_executed_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_known_whoever_loads_it_and_how_often, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(libraries_count, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_the_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_of_anything_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_full_is_told, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
