/* SPDX-License-Identifier: MIT */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "init/runner.h"
#include "zygote/rehearsal.h"

static char *const environment[] = {(char *)"A=1", (char *)"B=2", NULL};

static void the_job_is_what_the_wire_says(void **state)
{
    static const char strings[] = "/workspace\0/bin/x\0A=1\0B=2";
    struct rehearsal r;
    struct job_head h;

    (void)state;
    assert_int_equal(rehearsal_make(&r, "/workspace", "/bin/x", environment), 0);
    assert_int_equal(rehearsal_frame(&r, 'V', "12345", 5), 0);
    memcpy(&h, r.bytes, sizeof h);
    assert_int_equal(h.magic, JOB_MAGIC);
    assert_int_equal(h.argc, 1);
    assert_int_equal(h.envc, 2);
    assert_int_equal(h.filec, 0);
    assert_int_equal(h.strings_n, sizeof strings);
    assert_memory_equal(r.bytes + sizeof h, strings, sizeof strings);
    assert_int_equal(r.n, sizeof h + sizeof strings + 14);
    assert_memory_equal(r.bytes + sizeof h + sizeof strings, "V0000000512345", 14);
}

static void what_does_not_fit_is_refused(void **state)
{
    char large[REHEARSAL_MAX];
    struct rehearsal r;

    (void)state;
    memset(large, 'x', sizeof large);
    assert_int_equal(rehearsal_make(&r, "/workspace", "/bin/x", environment), 0);
    assert_int_equal(rehearsal_frame(&r, 'V', large, sizeof large), -E2BIG);
    large[sizeof large - 1] = '\0';
    assert_int_equal(rehearsal_make(&r, "/workspace", large, environment), -E2BIG);
}

static void it_comes_from_where_jobs_come_from(void **state)
{
    struct rehearsal_ends ends;
    struct rehearsal r;
    char got[REHEARSAL_MAX + 1];
    int real[2];

    (void)state;
    assert_int_equal(pipe(real), 0);
    if (real[0] != RUNNER_FD)
        assert_int_equal(dup2(real[0], RUNNER_FD), RUNNER_FD);
    assert_int_equal(write(real[1], "real", 4), 4);
    assert_int_equal(rehearsal_make(&r, "/workspace", "/bin/x", environment), 0);
    assert_int_equal(rehearsal_begin(&r, &ends), 0);
    assert_int_equal(read(RUNNER_FD, got, sizeof got), r.n);
    assert_memory_equal(got, r.bytes, r.n);
    assert_int_equal(write(RUNNER_FD, "answer", 6), 6); /* into the void */
    rehearsal_end(&ends);
    assert_int_equal(read(RUNNER_FD, got, sizeof got), 4);
    assert_memory_equal(got, "real", 4);
    assert_int_equal(fcntl(RUNNER_FD, F_GETFD), 0); /* a program may inherit it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_job_is_what_the_wire_says),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(it_comes_from_where_jobs_come_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
