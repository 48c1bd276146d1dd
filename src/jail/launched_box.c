/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/os.h"
#include "jail/ends.h"
#include "jail/launched.h"

static struct boxes *bucket(struct launched *n, uint64_t id)
{
    return &n->by_id[id % BUCKETS];
}

struct box *box_find(struct launched *n, uint64_t id)
{
    struct box *b;

    TAILQ_FOREACH(b, bucket(n, id), bucket)
    if (b->sandbox.id == id)
        return b;
    return NULL;
}

void box_close(struct box *b)
{
    ends_close(&b->sandbox);
}

void box_leave(struct box *b)
{
    const struct timeval t = {.tv_usec = LEAVE_MS * 1000};
    struct launched *n = b->jail;

    b->leaving = true;
    TAILQ_INSERT_TAIL(&n->leaving, b, pool);
    if (!event_pending(&n->leave, EV_TIMEOUT, NULL))
        (void)event_add(&n->leave, &t);
}

static void box_left(struct box *b)
{
    if (b->leaving)
        TAILQ_REMOVE(&b->jail->leaving, b, pool);
    b->leaving = false;
    box_close(b);
}

void box_on_leave(evutil_socket_t fd, short what, void *user)
{
    struct launched *n = user;

    (void)fd, (void)what;
    while (!TAILQ_EMPTY(&n->leaving)) {
        struct box *b = TAILQ_FIRST(&n->leaving);

        box_left(b);
        box_settle(b);
    }
}

void box_unpool(struct box *b)
{
    struct pool *p = &b->jail->pools[b->sandbox.template];

    if (!b->pooled)
        return;
    TAILQ_REMOVE(&p->waiting, b, pool);
    p->n--;
    p->ready -= b->ready;
    b->pooled = false;
    (void)event_del(&b->ctl);
}

void box_free(struct box *b)
{
    box_unpool(b);
    box_left(b);
    TAILQ_REMOVE(bucket(b->jail, b->sandbox.id), b, bucket);
    b->jail->alive--;
    free(b);
}

void box_settle(struct box *b)
{
    if (b->over && !b->taken && !b->pooled)
        box_free(b);
}

static void fill(const struct launched *n, const struct sandbox_spec *s, struct launch_msg *m)
{
    m->verb = LAUNCH_PREPARE;
    m->template = s->template;
    m->memory_max = s->limits->memory_max;
    m->workspace_max = s->limits->workspace_max;
    m->workspace_files = s->limits->workspace_files;
    m->tmp_max = s->limits->tmp_max;
    m->pids_max = s->limits->pids_max;
    m->flags = n->watch_memory ? LAUNCH_WATCH_MEMORY : 0;
    m->flags |= s->persistent ? LAUNCH_PERSISTENT : 0;
    m->flags |= s->host_network ? LAUNCH_HOST_NET : 0;
    if (s->lazy) {
        m->lazy_n = (uint32_t)s->lazy->n;
        m->workspace_files += s->lazy->rows; /* lent files do not count for the program */
    }
    if (s->dependencies)
        (void)snprintf(m->dependencies, sizeof m->dependencies, "%s", s->dependencies);
    if (s->dirs)
        (void)snprintf(m->dirs, sizeof m->dirs, "%s", s->dirs);
}

/* The lent directories and their list follow the five ends. */
static int lend(const struct plan_lazy *lazy, int *theirs)
{
    for (size_t i = 0; lazy && i <= lazy->n; i++) {
        theirs[i] = fd_dup(i < lazy->n ? lazy->dirs[i] : lazy->list);
        if (theirs[i] < 0)
            return theirs[i];
    }
    return 0;
}

int box_new(struct launched *n, const struct sandbox_spec *s, struct box **ret, struct err *e)
{
    int theirs[LAUNCH_FDS_MAX];
    struct launch_msg m = {0};
    struct box *b = calloc(1, sizeof *b);
    int r;

    if (!b)
        return err_set(e, ERR_HOST, "out of memory");
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        theirs[i] = -1;
    b->jail = n;
    b->sandbox = SANDBOX_NONE;
    b->sandbox.id = m.id = ++n->next_id;
    b->sandbox.template = s->template;
    b->sandbox.adapter = b;
    fill(n, s, &m);
    r = s->workspace && strlen(s->workspace) >= sizeof m.workspace
            ? -ENAMETOOLONG
            : ends_open(&b->sandbox, theirs, 0, LAUNCH_FDS_PREPARE);
    if (r == 0 && s->workspace)
        memcpy(m.workspace, s->workspace, strlen(s->workspace));
    if (r == 0)
        r = lend(s->lazy, theirs + LAUNCH_FDS_PREPARE);
    if (r == 0)
        r = outbox_send(&n->outbox, &m, sizeof m, theirs, launch_fds(&m));
    else
        fd_close_all(theirs, ARRAY_LEN(theirs));
    if (r < 0) {
        box_close(b);
        free(b);
        (void)err_sys(e, r, "ask the launcher for a sandbox");
        e->kind = r == -EMFILE || r == -ENFILE ? ERR_BUSY : ERR_HOST;
        return -1;
    }
    TAILQ_INSERT_TAIL(bucket(n, m.id), b, bucket);
    n->alive++;
    *ret = b;
    return 0;
}
