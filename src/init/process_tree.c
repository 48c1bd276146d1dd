/* SPDX-License-Identifier: MIT */
#include "init/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { TREE_MAX = 65536, STAT_MAX = 512, FIRST_ROOM = 256 };

struct node {
    pid_t pid, parent;
    char state;
    bool below; /* of the top */
};

struct tree {
    struct node *node; /* owned; ascending pids */
    size_t n, room;
};

/* "pid (any name) S ppid ...": the name may contain anything, so from its last parenthesis on. */
static bool read_node(int proc, const char *name, struct node *ret)
{
    char path[32], text[STAT_MAX] = "";
    cleanup_close int fd = -1;
    const char *at;
    int parent;

    (void)snprintf(path, sizeof path, "%.10s/stat", name);
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return false;
    at = strrchr(text, ')');
    if (!at || sscanf(at + 1, " %c %d", &ret->state, &parent) != 2)
        return false;
    ret->pid = (pid_t)strtol(name, NULL, 10);
    ret->parent = parent;
    ret->below = false;
    return true;
}

static bool tree_add(struct tree *t, const struct node *n)
{
    if (t->n == t->room) {
        size_t room = t->room ? t->room * 2 : FIRST_ROOM;
        struct node *more = room <= TREE_MAX ? realloc(t->node, room * sizeof *more) : NULL;

        if (!more)
            return false;
        t->node = more;
        t->room = room;
    }
    t->node[t->n++] = *n;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct node *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void tree_read(struct tree *t)
{
    DIR *d = opendir("/proc");
    struct node n;

    *t = (struct tree){0};
    if (!d)
        return;
    for (struct dirent *at; (at = readdir(d));)
        if (isdigit((unsigned char)at->d_name[0]) && read_node(dirfd(d), at->d_name, &n) &&
            !tree_add(t, &n))
            break;
    (void)closedir(d);
    if (t->n > 1)
        qsort(t->node, t->n, sizeof *t->node, by_pid);
}

static bool is_spared(const struct node *n, pid_t top, const pid_t *spare, size_t spare_n)
{
    if (n->parent != top)
        return false;
    for (size_t i = 0; i < spare_n; i++)
        if (spare[i] == n->pid)
            return true;
    return false;
}

static bool parent_is_below(const struct tree *t, const struct node *n)
{
    const struct node key = {.pid = n->parent};
    const struct node *p = bsearch(&key, t->node, t->n, sizeof key, by_pid);

    return p && p->below;
}

static void mark_below(struct tree *t, pid_t top, const pid_t *spare, size_t spare_n)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < t->n; i++) {
            struct node *n = &t->node[i];

            if (n->below || is_spared(n, top, spare, spare_n) ||
                (n->parent != top && !parent_is_below(t, n)))
                continue;
            n->below = more = true;
        }
    }
}

static bool is_living(const struct node *n)
{
    return n->state != 'Z' && n->state != 'X';
}

size_t tree_kill(pid_t top, const pid_t *spare, size_t spare_n)
{
    struct tree t;
    size_t killed = 0;

    tree_read(&t);
    mark_below(&t, top, spare, spare_n);
    for (size_t i = 0; i < t.n; i++)
        if (t.node[i].below && is_living(&t.node[i])) {
            (void)kill(t.node[i].pid, SIGKILL);
            killed++;
        }
    free(t.node);
    return killed;
}

void tree_each(pid_t top, tree_fn *fn, void *user)
{
    struct tree t;

    tree_read(&t);
    if (top != 0)
        mark_below(&t, top, NULL, 0);
    for (size_t i = 0; i < t.n; i++)
        if ((top == 0 || t.node[i].below || t.node[i].pid == top) && is_living(&t.node[i]))
            fn(user, t.node[i].pid);
    free(t.node);
}

static void count_one(void *user, pid_t pid)
{
    size_t *n = user;

    (void)pid;
    (*n)++;
}

size_t tree_count(pid_t top)
{
    size_t n = 0;

    tree_each(top, count_one, &n);
    return n;
}
