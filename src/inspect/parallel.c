/* SPDX-License-Identifier: MIT */
#include "inspect/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"

struct crew {
    crew_fn *work;
    void *user;
    size_t n;
    atomic_size_t next; /* nobody has taken it yet */
};

static void *crew_main(void *user)
{
    struct crew *c = user;

    for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < c->n;)
        c->work(c->user, i);
    return NULL;
}

static size_t crew_size(size_t n)
{
    size_t most = os_processors();

    if (most > CREW_MAX)
        most = CREW_MAX;
    return n < most ? n : most;
}

/* This thread works, too, so no other one has to start. */
void crew_run(size_t n, crew_fn *work, void *user)
{
    struct crew c = {.work = work, .user = user, .n = n};
    pthread_t others[CREW_MAX];
    size_t started = 0, size = crew_size(n);

    while (started + 1 < size && pthread_create(&others[started], NULL, crew_main, &c) == 0)
        started++;
    (void)crew_main(&c);
    while (started > 0)
        (void)pthread_join(others[--started], NULL);
}
