/* SPDX-License-Identifier: MIT */
/*
 * Trees where nobody can be made the reaper of orphans. Whoever asks leads a session, and what he
 * starts is born into it; so an orphan is known by its session, and one that has left it by its
 * parent, or by the session that somebody of the tree has made. What has left both is not found: a
 * program that makes a session of its own and loses its parent gets away, unless it has a user of
 * its own (tree_kill_user()).
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch/processes.h"
#include "launch/tree.h"

enum { LOST_PASSES = 100, PASS_MS = 5 };

const int tree_look_ms = 100;

static const struct process *find(const struct processes *all, pid_t pid)
{
    size_t from = 0, to = all->n;

    while (from < to) {
        size_t mid = from + (to - from) / 2;

        if (all->v[mid].pid == pid)
            return &all->v[mid];
        if (all->v[mid].pid < pid)
            from = mid + 1;
        else
            to = mid;
    }
    return NULL;
}

static bool is_below(const struct processes *all, pid_t pid)
{
    const struct process *p = find(all, pid);

    return p && p->below;
}

static bool is_spared(pid_t pid, const pid_t *spare, size_t spare_n)
{
    for (size_t i = 0; i < spare_n; i++)
        if (spare[i] == pid)
            return true;
    return false;
}

static void mark_below(struct processes *all, pid_t top, const pid_t *spare, size_t spare_n)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < all->n; i++) {
            struct process *p = &all->v[i];

            if (p->below || p->pid == top || is_spared(p->pid, spare, spare_n) ||
                (p->parent != top && p->session != top && !is_below(all, p->parent) &&
                 !is_below(all, p->session)))
                continue;
            p->below = more = true;
        }
    }
}

void tree_mark(struct processes *all, pid_t top)
{
    mark_below(all, top, NULL, 0);
}

/* Groups first, each at once: what forks in there cannot get ahead of it. */
static size_t kill_below(const struct processes *all, pid_t top)
{
    pid_t own = getpgrp(), tops = getpgid(top);
    size_t n = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct process *p = &all->v[i];

        if (!p->below || p->dead)
            continue;
        if (p->group > 1 && p->group != own && p->group != tops && is_below(all, p->group))
            (void)kill(-p->group, SIGKILL);
        (void)kill(p->pid, SIGKILL);
        n++;
    }
    return n;
}

size_t tree_kill(pid_t top, const pid_t *spare, size_t spare_n)
{
    struct processes all;
    size_t n;

    if (processes_read(&all) < 0)
        return 1; /* who knows: to be asked again */
    mark_below(&all, top, spare, spare_n);
    n = kill_below(&all, top);
    processes_free(&all);
    return n;
}

size_t tree_kill_user(uid_t first, size_t users)
{
    struct processes all;
    size_t n = 0;

    if (processes_read(&all) < 0)
        return 1;
    for (size_t i = 0; i < all.n; i++) {
        const struct process *p = &all.v[i];

        if (p->user < first || p->user - first >= users || p->dead || p->pid == getpid())
            continue;
        (void)kill(p->pid, SIGKILL);
        n++;
    }
    processes_free(&all);
    return n;
}

void tree_lost(pid_t child)
{
    for (int pass = 0; pass < LOST_PASSES && tree_kill(child, NULL, 0) > 0; pass++)
        (void)poll(NULL, 0, PASS_MS);
}

void tree_each(pid_t top, tree_fn *fn, void *user)
{
    struct processes all;

    if (processes_read(&all) < 0)
        return;
    mark_below(&all, top, NULL, 0);
    for (size_t i = 0; i < all.n; i++)
        if ((all.v[i].below || all.v[i].pid == top) && !all.v[i].dead)
            fn(user, all.v[i].pid);
    processes_free(&all);
}

size_t tree_strays(pid_t top)
{
    size_t n = tree_count(top);

    return n > 0 ? n - 1 : 1; /* without `top` itself; 0: nobody could be asked */
}
