/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "jail/launched.h"
#include "wire/client.h"

static void on_started(struct launched *n, const struct launch_msg *m, int *fds, size_t fds_n)
{
    struct box *b = box_find(n, m->id);
    struct usage_files *u = &n->slots[m->slot % SLOTS_KNOWN];

    if (fds_n == LAUNCH_FDS_STARTED)
        usage_files_set(u, fds, (m->flags & LAUNCH_CGROUP2) != 0);
    else
        fd_close_all(fds, fds_n);
    if (!b)
        return;
    b->slot = m->slot;
    b->started = true;
    usage_mark(u, &b->base);
}

static void on_over(struct launched *n, const struct launch_msg *m)
{
    struct box *b = box_find(n, m->id);

    if (m->flags & LAUNCH_RETIRED)
        usage_files_close(&n->slots[m->slot % SLOTS_KNOWN]);
    if (!b)
        return;
    if (b->started && !(m->flags & LAUNCH_RETIRED))
        usage_settle(&n->slots[b->slot % SLOTS_KNOWN]);
    if (m->verb == LAUNCH_FAILED) {
        size_t len = strnlen(m->err.text, sizeof b->failure - 1);

        memcpy(b->failure, m->err.text, len);
        b->failure[len] = '\0';
        log_event(n->log, b->trial ? LOG_DEBUG : LOG_ERROR, "sandbox_failed",
                  LOG_STR("error", b->failure));
    }
    b->over = true;
    if (b->pooled && b->ready)
        pool_lost(b); /* its control socket is not watched */
    else
        box_settle(b);
}

/* The launcher died and the guard has started another one. All its sandboxes are dead. */
static void on_restart(struct launched *n)
{
    log_event(n->log, LOG_ERROR, "launcher_restarted", LOG_INT("sandboxes_lost", n->alive));
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct box *b = TAILQ_FIRST(&n->by_id[i]), *next; b; b = next) {
            next = TAILQ_NEXT(b, bucket);
            (void)snprintf(b->failure, sizeof b->failure, "the launcher was restarted");
            b->over = true;
            b->started = false;
            if (b->pooled)
                box_free(b);
            else
                box_settle(b);
        }
    for (size_t i = 0; i < SLOTS_KNOWN; i++)
        usage_files_close(&n->slots[i]);
    pool_refill_later(n, 0);
}

static void on_lost(struct launched *n)
{
    log_event(n->log, LOG_ERROR, "launcher_lost",
              LOG_STR("error", "the launcher closed its socket"));
    (void)event_del(&n->readable);
    outbox_close(&n->outbox);
    fd_close_all(&n->sock, 1);
    if (n->jail.lost)
        n->jail.lost(n->jail.lost_user);
}

void launched_on_readable(evutil_socket_t fd, short what, void *user)
{
    struct launched *n = user;
    int fds[LAUNCH_FDS_STARTED];
    struct launch_msg m;
    size_t fds_n;
    int r;

    (void)what;
    while ((r = launch_receive(fd, &m, fds, &fds_n)) > 0 || r == -EPROTO) {
        if (r == -EPROTO) /* a STARTED without its usage files: only usage is unknown then */
            continue;
        if (m.verb == LAUNCH_STARTED) {
            on_started(n, &m, fds, fds_n);
            continue;
        }
        fd_close_all(fds, fds_n);
        if (m.verb == LAUNCH_HELLO)
            on_restart(n);
        else
            on_over(n, &m);
    }
    /* Without memory for a message it stays in the socket and is read later. */
    if (r != -EAGAIN && r != -EINTR && r != -ENOMEM && r != -ENOBUFS)
        on_lost(n);
}
