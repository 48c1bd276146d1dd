/* SPDX-License-Identifier: MIT */
/* Helper threads come back in copies of a process. One architecture only. */
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "zygote/threads.h"

#if defined(__x86_64__)

enum { HELPERS = 3, ROUNDS = 6, LATER_NS = 5000000 };

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int question, answer;
    bool there;
};

static void *help(void *user)
{
    struct helper *h = user;

    (void)pthread_mutex_lock(&h->lock);
    h->there = true;
    while (h->question == 0)
        (void)pthread_cond_wait(&h->changed, &h->lock);
    h->answer = h->question * 2;
    (void)pthread_mutex_unlock(&h->lock);
    return h;
}

static bool ask(struct helper *h, int question)
{
    void *result = NULL;

    (void)pthread_mutex_lock(&h->lock);
    h->question = question;
    (void)pthread_cond_signal(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
    return pthread_join(h->thread, &result) == 0 && result == h && h->answer == question * 2;
}

/* A thread that is still being born blocks all signals: it would be taken for one that wants none.
 */
static void wait_until_it_waits(struct helper *h)
{
    for (bool there = false; !there; (void)sched_yield()) {
        (void)pthread_mutex_lock(&h->lock);
        there = h->there;
        (void)pthread_mutex_unlock(&h->lock);
    }
}

static void on_timer(int sig, siginfo_t *si, void *context)
{
    (void)sig, (void)context;
    if (threads_revive(si->si_value.sival_ptr) < 0)
        _exit(6);
}

/* What is asked meanwhile must not be lost. */
static int revive_later(struct threads *t)
{
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 2};
    struct itimerspec when = {.it_value.tv_nsec = LATER_NS};
    timer_t timer;

    event.sigev_value.sival_ptr = t;
    if (sigaction(event.sigev_signo, &action, NULL) < 0)
        return -1;
    return timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ? -1
                                                             : timer_settime(timer, 0, &when, NULL);
}

/* Old threads answer and end as threads do, and new ones do not get in their way. */
static int in_a_copy(struct threads *t, struct helper *helpers, bool later)
{
    struct helper fresh = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

    threads_begin(t);
    if ((later ? revive_later(t) : threads_revive(t)) < 0)
        return 2;
    if (pthread_create(&fresh.thread, NULL, help, &fresh) != 0)
        return 3;
    for (int i = 0; i < HELPERS; i++)
        if (!ask(&helpers[i], i + 1))
            return 4;
    return ask(&fresh, 9) ? 0 : 5;
}

static void test_threads_answer_in_every_copy(void **state)
{
    /* parked threads look at both for ever */
    struct threads *t = calloc(1, sizeof *t);
    struct helper *helpers = calloc(HELPERS, sizeof *helpers);
    struct err e = {0};

    (void)state;
    assert_true(t && helpers);
    for (int i = 0; i < HELPERS; i++) {
        helpers[i].lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        helpers[i].changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        assert_int_equal(pthread_create(&helpers[i].thread, NULL, help, &helpers[i]), 0);
        wait_until_it_waits(&helpers[i]);
    }
    assert_int_equal(threads_park(t, &e), 0);
    assert_int_equal(t->n, HELPERS);
    for (int i = 0; i < ROUNDS; i++) {
        int status = 0;
        pid_t pid = threads_fork();

        if (pid == 0)
            _exit(in_a_copy(t, helpers, i % 2 == 1));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

#else

static void test_threads_answer_in_every_copy(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_answer_in_every_copy)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
