/* SPDX-License-Identifier: MIT */
/* The worker threads: which work comes before which. Blockers hold threads until they are let go.
 */
#include <cmocka.h>
#include <event2/event.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "store/work_threads.h"

enum { JOBS = 64 };

struct stage {
    struct event_base *base;
    struct work_pool *pool;
    sem_t gate, inside;
    pthread_mutex_t lock;
    int order[JOBS], ran, done;
};

struct job {
    struct work work; /* first */
    struct stage *stage;
    int name;
};

static void block_run(struct work *w)
{
    struct stage *s = ((struct job *)w)->stage;

    (void)sem_post(&s->inside);
    (void)sem_wait(&s->gate);
}

static void note_run(struct work *w)
{
    struct job *j = (struct job *)w;

    (void)pthread_mutex_lock(&j->stage->lock);
    j->stage->order[j->stage->ran++] = j->name;
    (void)pthread_mutex_unlock(&j->stage->lock);
}

static void on_done(struct work *w)
{
    ((struct job *)w)->stage->done++;
}

static struct job *submit(struct stage *s, work_fn *run, enum work_lane lane, const void *owner,
                          int name)
{
    struct job *j = calloc(1, sizeof *j);

    assert_non_null(j);
    j->work = (struct work){.run = run, .done = on_done, .lane = lane, .owner = owner};
    j->stage = s;
    j->name = name;
    work_submit(s->pool, &j->work);
    return j;
}

/* Until so many have been delivered. */
static void await(struct stage *s, int done)
{
    while (s->done < done)
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
}

static void stage_open(struct stage *s)
{
    struct err e;

    *s = (struct stage){.base = event_base_new()};
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)sem_init(&s->gate, 0, 0);
    (void)sem_init(&s->inside, 0, 0);
    assert_int_equal(work_pool_open(s->base, &s->pool, &e), 0);
    assert_true(work_pool_threads(s->pool) >= WORK_THREADS_MIN);
}

static void stage_close(struct stage *s)
{
    work_pool_close(s->pool);
    event_base_free(s->base);
}

/* Fills every thread that long work may have; their number. */
static int fill(struct stage *s, struct job *jobs[JOBS])
{
    int n = (int)work_pool_threads(s->pool) - 1;

    for (int i = 0; i < n; i++)
        jobs[i] = submit(s, block_run, WORK_LONG, NULL, -1);
    for (int i = 0; i < n; i++)
        (void)sem_wait(&s->inside);
    return n;
}

static void free_all(struct job *jobs[], int n)
{
    for (int i = 0; i < n; i++)
        free(jobs[i]);
}

static void short_work_never_waits_for_long_work(void **state)
{
    struct job *jobs[2 * JOBS];
    struct work_counts counts;
    struct stage s;
    int n;

    (void)state;
    stage_open(&s);
    n = fill(&s, jobs);
    jobs[n] = submit(&s, note_run, WORK_LONG, NULL, 1);
    jobs[n + 1] = submit(&s, note_run, WORK_SHORT, NULL, 2);
    await(&s, 1);
    assert_int_equal(s.ran, 1);
    assert_int_equal(s.order[0], 2);
    work_count(s.pool, &counts);
    assert_int_equal(counts.waiting, 1);
    for (int i = 0; i < n; i++)
        (void)sem_post(&s.gate);
    await(&s, n + 2);
    assert_int_equal(s.order[1], 1);
    stage_close(&s);
    free_all(jobs, n + 2);
}

static void owners_take_turns(void **state)
{
    static const int want[] = {10, 20, 30, 11, 21, 12};
    struct job *jobs[2 * JOBS];
    struct stage s;
    int a, b, n;

    (void)state;
    stage_open(&s);
    n = fill(&s, jobs);
    jobs[n] = submit(&s, note_run, WORK_LONG, &a, 10);
    jobs[n + 1] = submit(&s, note_run, WORK_LONG, &a, 11);
    jobs[n + 2] = submit(&s, note_run, WORK_LONG, &a, 12);
    jobs[n + 3] = submit(&s, note_run, WORK_LONG, &b, 20);
    jobs[n + 4] = submit(&s, note_run, WORK_LONG, &b, 21);
    jobs[n + 5] = submit(&s, note_run, WORK_LONG, NULL, 30);
    (void)sem_post(&s.gate); /* one thread for all of them */
    await(&s, 7);
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(s.order[i], want[i]);
    for (int i = 1; i < n; i++)
        (void)sem_post(&s.gate);
    await(&s, n + 6);
    stage_close(&s);
    free_all(jobs, n + 6);
}

static void unwanted_work_is_not_begun(void **state)
{
    struct job *jobs[2 * JOBS];
    struct work_counts counts;
    struct stage s;
    int n;

    (void)state;
    stage_open(&s);
    n = fill(&s, jobs);
    for (int i = 0; i < 12; i++)
        jobs[n + i] = submit(&s, note_run, WORK_LONG, NULL, i);
    for (int i = 0; i < 11; i++)
        work_forget(&jobs[n + i]->work);
    (void)sem_post(&s.gate);
    await(&s, 13);
    assert_int_equal(s.ran, 1);
    assert_int_equal(s.order[0], 11);
    work_count(s.pool, &counts);
    assert_int_equal(counts.dropped, 11);
    assert_int_equal(counts.waiting, 0);
    for (int i = 1; i < n; i++)
        (void)sem_post(&s.gate);
    stage_close(&s); /* delivers the rest */
    assert_int_equal(s.done, n + 12);
    free_all(jobs, n + 12);
}

static void names_have_a_thread_of_their_own(void **state)
{
    struct job *jobs[4];
    struct stage s;

    (void)state;
    stage_open(&s);
    jobs[0] = submit(&s, block_run, WORK_NAMES, NULL, 0);
    jobs[1] = submit(&s, note_run, WORK_NAMES, NULL, 1);
    (void)sem_wait(&s.inside);
    jobs[2] = submit(&s, note_run, WORK_LONG, NULL, 2);
    jobs[3] = submit(&s, note_run, WORK_SHORT, NULL, 3);
    await(&s, 2);
    assert_int_equal(s.order[0] + s.order[1], 5);
    (void)sem_post(&s.gate);
    await(&s, 4);
    assert_int_equal(s.order[2], 1);
    stage_close(&s);
    free_all(jobs, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_work_never_waits_for_long_work),
        cmocka_unit_test(owners_take_turns),
        cmocka_unit_test(unwanted_work_is_not_begun),
        cmocka_unit_test(names_have_a_thread_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
