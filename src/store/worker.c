/* SPDX-License-Identifier: MIT */
/*
 * The only threads of the daemon. Two lists under one lock: what is to be done and what has been
 * done; a descriptor wakes the loop for the second. Workers never touch the loop or the app.
 */
#include "store/worker.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/os.h"

struct work_list {
    struct work *first, **last;
};

struct work_pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct work_list todo, finished;
    bool closing;
    int wake, wakes; /* owned: what the loop waits for, and what is written; may be one */
    struct event *woken;
    pthread_t threads[WORK_THREADS];
    size_t threads_n;
};

static void list_init(struct work_list *l)
{
    l->first = NULL;
    l->last = &l->first;
}

static void list_add(struct work_list *l, struct work *w)
{
    w->next = NULL;
    *l->last = w;
    l->last = &w->next;
}

static struct work *list_take(struct work_list *l)
{
    struct work *w = l->first;

    if (!w)
        return NULL;
    l->first = w->next;
    if (!l->first)
        l->last = &l->first;
    return w;
}

static void *worker(void *user)
{
    struct work_pool *p = user;

    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        struct work *w = list_take(&p->todo);

        if (!w && p->closing)
            break;
        if (!w) {
            (void)pthread_cond_wait(&p->more, &p->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&p->lock);
        w->run(w);
        (void)pthread_mutex_lock(&p->lock);
        list_add(&p->finished, w);
        os_wake(p->wakes);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void deliver(struct work_pool *p)
{
    for (;;) {
        struct work *w;

        (void)pthread_mutex_lock(&p->lock);
        w = list_take(&p->finished);
        (void)pthread_mutex_unlock(&p->lock);
        if (!w)
            return;
        w->done(w);
    }
}

static void on_woken(evutil_socket_t fd, short what, void *user)
{
    (void)what;
    os_wake_take(fd);
    deliver(user);
}

void work_submit(struct work_pool *p, struct work *w)
{
    (void)pthread_mutex_lock(&p->lock);
    list_add(&p->todo, w);
    (void)pthread_cond_signal(&p->more);
    (void)pthread_mutex_unlock(&p->lock);
}

static int pool_start(struct work_pool *p, struct event_base *base, struct err *e)
{
    if (os_wake_open(&p->wake, &p->wakes) < 0)
        return err_sys(e, -errno, "a way to wake the loop");
    p->woken = event_new(base, p->wake, EV_READ | EV_PERSIST, on_woken, p);
    if (!p->woken || event_add(p->woken, NULL) < 0)
        return err_set(e, ERR_HOST, "no memory for an event");
    for (; p->threads_n < WORK_THREADS; p->threads_n++) {
        int r = pthread_create(&p->threads[p->threads_n], NULL, worker, p);

        if (r != 0)
            return err_sys(e, -r, "start a worker thread");
    }
    return 0;
}

int work_pool_open(struct event_base *base, struct work_pool **ret, struct err *e)
{
    struct work_pool *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory for workers");
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    list_init(&p->todo);
    list_init(&p->finished);
    p->wake = p->wakes = -1;
    if (pool_start(p, base, e) < 0) {
        work_pool_close(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void work_pool_close(struct work_pool *p)
{
    struct work *w;

    if (!p)
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->closing = true;
    (void)pthread_cond_broadcast(&p->more);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->threads_n; i++)
        (void)pthread_join(p->threads[i], NULL);
    do { /* what is delivered may want more to be done */
        deliver(p);
        w = list_take(&p->todo);
        if (w) {
            w->run(w);
            w->done(w);
        }
    } while (w || p->finished.first);
    if (p->woken)
        event_free(p->woken);
    if (p->wakes != p->wake)
        closep(&p->wakes);
    closep(&p->wake);
    (void)pthread_cond_destroy(&p->more);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
