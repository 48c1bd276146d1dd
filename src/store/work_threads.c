/* SPDX-License-Identifier: MIT */
/*
 * The only threads of the daemon. Lists under one lock: what is to be done in each lane, and what
 * has been done; a descriptor wakes the loop for that. Workers never touch the loop or the app.
 */
#include "store/work_threads.h"

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
    pthread_cond_t more, more_names;
    struct work_list todo[WORK_LANES], finished;
    struct work_counts counts;
    size_t running_long;
    unsigned short_row; /* pieces of short work begun since the last long one */
    bool closing;
    int wake, wakes; /* owned: what the loop waits for, and what is written; may be one */
    struct event *woken;
    pthread_t threads[WORK_THREADS_MAX], names;
    size_t threads_n;
    bool has_names;
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

/* ---- lanes ---- */

/* Long work is a ring of owners; what else an owner has hangs from its first piece. */
static void lane_add(struct work_list *l, struct work *w)
{
    struct work *head = w->owner ? l->first : NULL;

    w->same = w->same_last = NULL;
    while (head && head->owner != w->owner)
        head = head->next;
    if (!head) {
        list_add(l, w);
        return;
    }
    *(head->same_last ? &head->same_last->same : &head->same) = w;
    head->same_last = w;
}

/* The next piece of the same owner goes to the end of the ring. */
static struct work *lane_take(struct work_list *l)
{
    struct work *w = list_take(l), *heir = w ? w->same : NULL;

    if (heir) {
        heir->same_last = w->same_last == heir ? NULL : w->same_last;
        list_add(l, heir);
    }
    return w;
}

/* Long work leaves one thread to short work, and gets its turn in a long row of that. */
static struct work *take(struct work_pool *p)
{
    bool may_long = p->todo[WORK_LONG].first && (p->running_long + 1 < p->threads_n || p->closing);
    struct work *w = NULL;

    if (!may_long || p->short_row < WORK_SHORT_ROW)
        w = lane_take(&p->todo[WORK_SHORT]);
    if (w) {
        p->short_row++;
        return w;
    }
    if (!may_long)
        return NULL;
    p->short_row = 0;
    p->running_long++;
    return lane_take(&p->todo[WORK_LONG]);
}

/* The lock is held before and after. */
static void carry_out(struct work_pool *p, struct work *w)
{
    enum work_lane lane = w->lane;
    bool unwanted = atomic_load(&w->unwanted);

    p->counts.waiting--;
    p->counts.dropped += unwanted;
    if (!unwanted) {
        (void)pthread_mutex_unlock(&p->lock);
        w->run(w);
        (void)pthread_mutex_lock(&p->lock);
    }
    if (lane == WORK_LONG) {
        p->running_long--;
        (void)pthread_cond_signal(&p->more); /* there may be a place for another one */
    }
    list_add(&p->finished, w);
    os_wake(p->wakes);
}

static void *worker(void *user)
{
    struct work_pool *p = user;

    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        struct work *w = take(p);

        if (w)
            carry_out(p, w);
        else if (p->closing)
            break;
        else
            (void)pthread_cond_wait(&p->more, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void *names_worker(void *user)
{
    struct work_pool *p = user;

    (void)pthread_mutex_lock(&p->lock);
    for (;;) {
        struct work *w = lane_take(&p->todo[WORK_NAMES]);

        if (w)
            carry_out(p, w);
        else if (p->closing)
            break;
        else
            (void)pthread_cond_wait(&p->more_names, &p->lock);
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
    lane_add(&p->todo[w->lane], w);
    p->counts.waiting++;
    (void)pthread_cond_signal(w->lane == WORK_NAMES ? &p->more_names : &p->more);
    (void)pthread_mutex_unlock(&p->lock);
}

void work_count(struct work_pool *p, struct work_counts *ret)
{
    (void)pthread_mutex_lock(&p->lock);
    *ret = p->counts;
    (void)pthread_mutex_unlock(&p->lock);
}

size_t work_pool_threads(const struct work_pool *p)
{
    return p->threads_n;
}

static size_t threads_wanted(void)
{
    size_t n = os_processors();

    return n < WORK_THREADS_MIN ? WORK_THREADS_MIN : n > WORK_THREADS_MAX ? WORK_THREADS_MAX : n;
}

static int pool_start(struct work_pool *p, struct event_base *base, struct err *e)
{
    int r;

    if (os_wake_open(&p->wake, &p->wakes) < 0)
        return err_sys(e, -errno, "a way to wake the loop");
    p->woken = event_new(base, p->wake, EV_READ | EV_PERSIST, on_woken, p);
    if (!p->woken || event_add(p->woken, NULL) < 0)
        return err_set(e, ERR_HOST, "no memory for an event");
    r = pthread_create(&p->names, NULL, names_worker, p);
    p->has_names = r == 0;
    (void)pthread_mutex_lock(&p->lock); /* they look at how many they are */
    for (size_t n = threads_wanted(); r == 0 && p->threads_n < n; p->threads_n += r == 0)
        r = pthread_create(&p->threads[p->threads_n], NULL, worker, p);
    (void)pthread_mutex_unlock(&p->lock);
    return r == 0 ? 0 : err_sys(e, -r, "start a worker thread");
}

int work_pool_open(struct event_base *base, struct work_pool **ret, struct err *e)
{
    struct work_pool *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory for workers");
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->more, NULL);
    (void)pthread_cond_init(&p->more_names, NULL);
    for (size_t i = 0; i < WORK_LANES; i++)
        list_init(&p->todo[i]);
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
    (void)pthread_cond_broadcast(&p->more_names);
    (void)pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->threads_n; i++)
        (void)pthread_join(p->threads[i], NULL);
    if (p->has_names)
        (void)pthread_join(p->names, NULL);
    do { /* what is delivered may want more to be done */
        deliver(p);
        w = NULL;
        for (size_t i = 0; i < WORK_LANES && !w; i++)
            w = lane_take(&p->todo[i]);
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
    (void)pthread_cond_destroy(&p->more_names);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}
