/* SPDX-License-Identifier: MIT */
#include "init/dir_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "init/entries.h"
#include "init/entry.h"
#include "init/helper.h"

#define NAMES_MAX ((size_t)256 << 20) /* bytes of the names in one directory */

/* A directory that is being told. */
struct level {
    int fd;           /* owned */
    struct buf names; /* each with its NUL */
    const char **name;
    size_t n, at;
    size_t path_n; /* of the directory's own path, its slash included */
    const char
        *after; /* path in here that the list begins behind; NULL: it begins with the first */
};

struct walk {
    struct entry_list *list;
    struct level level[WALK_DEPTH_MAX];
    size_t depth, depth_max;
    uint64_t told, max;
    char path[ENTRY_PATH_MAX + 1]; /* relative, of what is told */
};

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void level_done(struct level *l)
{
    closep(&l->fd);
    free(l->name);
    buf_done(&l->names);
}

static int read_names(struct level *l)
{
    struct entries all = {.fd = l->fd};
    const char *name;
    size_t at = 0;
    int error;

    while ((name = entries_next(&all, &error))) {
        if (buf_put(&l->names, name, strlen(name) + 1) < 0)
            return -ENOMEM;
        l->n++;
    }
    if (error)
        return -error;
    l->name = calloc(l->n + 1, sizeof *l->name);
    if (!l->name)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        l->name[i] = l->names.p + at;
        at += strlen(l->name[i]) + 1;
    }
    qsort(l->name, l->n, sizeof *l->name, by_bytes);
    return 0;
}

/* The descriptor is taken. */
static int enter(struct walk *w, int fd, size_t path_n, const char *after)
{
    struct level *l = &w->level[w->depth++];

    *l = (struct level){.fd = fd, .names = BUF_INIT(NAMES_MAX), .path_n = path_n, .after = after};
    return read_names(l);
}

/* The directory that w->path names, unless it is too deep or is none. */
static int enter_below(struct walk *w, const struct level *l, const char *name, const char *after)
{
    size_t n = strlen(w->path);
    int fd;

    if (w->depth == w->depth_max || n + 1 >= sizeof w->path)
        return 0;
    fd = openat(l->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
    w->path[n] = '/';
    w->path[n + 1] = '\0';
    return enter(w, fd, n + 1, after);
}

/* How a name stands to the first part of the path that the list begins behind. */
static int compare(const char *name, const char *after)
{
    size_t part = strcspn(after, "/");
    int c = strncmp(name, after, part);

    return c ? c : name[part] ? 1 : 0;
}

/* What is behind that part; NULL: nothing. */
static const char *rest_of(const char *after)
{
    after += strcspn(after, "/");
    return *after && after[1] ? after + 1 : NULL;
}

/* The next name of the innermost directory. 0, 1: there is no room for it, or -errno. */
static int step(struct walk *w, struct level *l)
{
    const char *name = l->name[l->at++], *after = l->after;
    int c = after ? compare(name, after) : 1, r;

    if (c < 0 || l->path_n + strlen(name) >= sizeof w->path)
        return 0;
    l->after = NULL;
    memcpy(w->path + l->path_n, name, strlen(name) + 1);
    if (c == 0) /* it was told before; what is in it may not have been */
        return enter_below(w, l, name, rest_of(after));
    if (w->told == w->max)
        return 1;
    r = entry_add(w->list, l->fd, name, w->path);
    if (r < 0)
        return r == -ENOENT || r == -EACCES ? 0 : r;
    w->told++;
    return S_ISDIR(w->list->mode) ? enter_below(w, l, name, NULL) : 0;
}

static int walk(struct walk *w, int fd, const char *after)
{
    int r = enter(w, fd, 0, after);

    while (r == 0 && w->depth > 0) {
        struct level *l = &w->level[w->depth - 1];

        if (l->at < l->n)
            r = step(w, l);
        else
            level_done(&w->level[--w->depth]);
        entry_tick(w->list);
    }
    while (w->depth > 0)
        level_done(&w->level[--w->depth]);
    return r;
}

void walk_tell(int sock, const struct init_msg *m, const char *path, const char *after)
{
    struct init_msg done = {.verb = HELP_DONE};
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC), r;
    struct walk *w = fd >= 0 ? calloc(1, sizeof *w) : NULL;

    if (fd < 0) {
        helper_done(sock, errno, HELP_OP_OPEN, path);
        return;
    }
    if (w)
        w->list = malloc(sizeof *w->list);
    if (!w || !w->list) {
        (void)close(fd);
        free(w);
        helper_done(sock, ENOMEM, HELP_OP_READ, path);
        return;
    }
    entry_list_init(w->list, sock, HELP_ENTRIES);
    w->depth_max = m->token < 1 ? 1 : m->token < WALK_DEPTH_MAX ? m->token : WALK_DEPTH_MAX;
    w->max = m->arg > 0 ? (uint64_t)m->arg : UINT64_MAX;
    r = walk(w, fd, *after ? after : NULL);
    if (r >= 0)
        entry_flush(w->list);
    done.token = (uint32_t)w->told;
    done.size = r == 1;
    free(w->list);
    free(w);
    if (r < 0)
        helper_done(sock, -r, HELP_OP_READ, path);
    else
        helper_say(sock, &done, NULL, 0, -1);
}
