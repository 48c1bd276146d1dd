/* SPDX-License-Identifier: MIT */
#include "store/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "store/tree.h"

enum { RANDOM_BYTES = 8, BUILD_NAME_MAX = 32 };

struct shelf_item {
    LIST_ENTRY(shelf_item) link;
    struct shelf *shelf; /* borrowed */
    char name[SHELF_NAME_MAX];
    size_t users;
    bool old; /* something newer is there: removed with its last user */
};

struct shelf {
    struct work_pool *pool; /* borrowed; NULL: it has ended */
    int dir;                /* owned */
    LIST_HEAD(shelf_items, shelf_item) items;
};

struct shelf_build {
    struct work work; /* of publishing */
    struct shelf *shelf;
    int dir; /* owned */
    char name[BUILD_NAME_MAX];
    char owner[SHELF_OWNER_MAX];
    char published[SHELF_NAME_MAX];
    shelf_published_fn *fn;
    void *user;
    struct err err;
};

/* ---- removing ---- */

struct removal {
    struct work work; /* first */
    int dir;          /* borrowed from the shelf */
    char name[SHELF_NAME_MAX];
};

static void removal_run(struct work *w)
{
    struct removal *r = (struct removal *)w;

    (void)!tree_remove(r->dir, r->name);
}

static void removal_done(struct work *w)
{
    free(w);
}

/* What cannot be removed now is removed at the next start. */
static void remove_later(struct shelf *s, const char *name)
{
    struct removal *r = s->pool ? malloc(sizeof *r) : NULL;

    if (!r)
        return;
    *r = (struct removal){
        .work = {.run = removal_run, .done = removal_done},
          .dir = s->dir
    };
    (void)snprintf(r->name, sizeof r->name, "%.*s", (int)sizeof r->name - 1, name);
    work_submit(s->pool, &r->work);
}

/* ---- looking ---- */

/* 0: not a number of ours. */
static uint64_t number_of(const char *name)
{
    uint64_t n = 0;

    if (name[0] < '1' || name[0] > '9' || strlen(name) > 12)
        return 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9')
            return 0;
        n = n * 10 + (uint64_t)(*name - '0');
    }
    return n;
}

typedef void each_fn(void *user, const char *name);

static void for_each(int at, const char *name, each_fn *fn, void *user)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (!d) {
        closep(&fd);
        return;
    }
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            fn(user, e->d_name);
    (void)closedir(d);
}

static void take_highest(void *user, const char *name)
{
    uint64_t *highest = user, n = number_of(name);

    if (n > *highest)
        *highest = n;
}

static uint64_t current(const struct shelf *s, const char *owner)
{
    uint64_t highest = 0;

    for_each(s->dir, owner, take_highest, &highest);
    return highest;
}

/* ---- holding ---- */

struct shelf_item *shelf_hold(struct shelf *s, const char *owner)
{
    uint64_t number = current(s, owner);
    struct shelf_item *i;
    char name[SHELF_NAME_MAX];

    if (number == 0)
        return NULL;
    (void)snprintf(name, sizeof name, "%s/%" PRIu64, owner, number);
    LIST_FOREACH(i, &s->items, link)
    if (strcmp(i->name, name) == 0)
        break;
    if (!i) {
        i = calloc(1, sizeof *i);
        if (!i)
            return NULL;
        i->shelf = s;
        memcpy(i->name, name, sizeof name);
        LIST_INSERT_HEAD(&s->items, i, link);
    }
    i->users++;
    return i;
}

const char *shelf_item_name(const struct shelf_item *i)
{
    return i->name;
}

void shelf_release(struct shelf_item *i)
{
    if (!i || --i->users > 0)
        return;
    LIST_REMOVE(i, link);
    if (i->old)
        remove_later(i->shelf, i->name);
    free(i);
}

bool shelf_has(const struct shelf *s, const char *owner)
{
    return current(s, owner) != 0;
}

bool shelf_is_held(const struct shelf *s, const char *owner)
{
    const struct shelf_item *i;
    size_t n = strlen(owner);

    LIST_FOREACH(i, &s->items, link)
    if (strncmp(i->name, owner, n) == 0 && i->name[n] == '/')
        return true;
    return false;
}

/* Renamed first: the name may be given again before everything below it is removed. */
void shelf_remove(struct shelf *s, const char *owner)
{
    char random[2 * RANDOM_BYTES + 1], gone[BUILD_NAME_MAX];

    random_hex(random, RANDOM_BYTES);
    (void)snprintf(gone, sizeof gone, ".old-%s", random);
    if (renameat(s->dir, owner, s->dir, gone) == 0)
        remove_later(s, gone);
}

struct keeping {
    struct shelf *shelf;
    bool (*keep)(void *user, const char *owner);
    void *user;
};

static void keep_or_remove(void *user, const char *owner)
{
    const struct keeping *k = user;

    if (owner[0] != '.' && !k->keep(k->user, owner))
        shelf_remove(k->shelf, owner);
}

void shelf_keep_only(struct shelf *s, bool (*keep)(void *user, const char *owner), void *user)
{
    struct keeping k = {.shelf = s, .keep = keep, .user = user};

    for_each(s->dir, ".", keep_or_remove, &k);
}

/* ---- filling ---- */

static void build_free(struct shelf_build *b)
{
    closep(&b->dir);
    free(b);
}

int shelf_build_new(struct shelf *s, struct shelf_build **ret, struct err *e)
{
    struct shelf_build *b = calloc(1, sizeof *b);
    char random[2 * RANDOM_BYTES + 1];

    if (!b)
        return err_set(e, ERR_HOST, "no memory for dependencies");
    random_hex(random, RANDOM_BYTES);
    (void)snprintf(b->name, sizeof b->name, ".new-%s", random);
    b->shelf = s;
    b->dir = mkdirat(s->dir, b->name, 0755) < 0
                 ? -1
                 : openat(s->dir, b->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (b->dir < 0 || fchmod(b->dir, 0755) < 0) {
        (void)err_sys(e, -errno, "make a directory for dependencies");
        build_free(b);
        return -1;
    }
    *ret = b;
    return 0;
}

void shelf_build_drop(struct shelf_build *b)
{
    if (!b)
        return;
    remove_later(b->shelf, b->name);
    build_free(b);
}

struct adding {
    struct work work; /* first */
    int dir;          /* borrowed from the build */
    struct tree_file file;
    char path[SHELF_PATH_MAX];
    char *head; /* owned */
    size_t head_n;
    bool want_head, ok;
    shelf_added_fn *fn;
    void *user;
};

static void adding_run(struct work *w)
{
    struct adding *a = (struct adding *)w;
    ssize_t n;

    a->ok = tree_add(a->dir, a->path, &a->file) == 0;
    if (!a->ok || !a->want_head)
        return;
    a->head = malloc(SHELF_HEAD_MAX);
    n = a->head ? pread(a->file.fd, a->head, SHELF_HEAD_MAX, 0) : -1;
    a->ok = n >= 0;
    a->head_n = n > 0 ? (size_t)n : 0;
}

static void adding_done(struct work *w)
{
    struct adding *a = (struct adding *)w;

    closep(&a->file.fd);
    a->fn(a->user, a->ok, a->path, a->head ? a->head : "", a->head_n);
    free(a->head);
    free(a);
}

int shelf_build_add(struct shelf_build *b, struct shelf_file *f, shelf_added_fn *fn, void *user)
{
    struct adding *a = strlen(f->path) < SHELF_PATH_MAX ? calloc(1, sizeof *a) : NULL;

    if (!a) {
        closep(&f->fd);
        return -1;
    }
    *a = (struct adding){
        .work = {.run = adding_run, .done = adding_done, .owner = b     },
        .dir = b->dir,
        .file = { .fd = take_fd(&f->fd),
                 .size = f->size,
                 .mode = f->mode & 0111 ? 0755 : 0644,
                 .mtime = {.tv_sec = f->mtime_s, .tv_nsec = f->mtime_ns}},
        .want_head = f->head,
        .fn = fn,
        .user = user
    };
    memcpy(a->path, f->path, strlen(f->path) + 1);
    work_submit(b->shelf->pool, &a->work);
    return 0;
}

/* ---- publishing ---- */

/* Nothing that counts may be lost by a power cut once it has its name. */
static void publish_run(struct work *w)
{
    struct shelf_build *b = (struct shelf_build *)w;
    struct shelf *s = b->shelf;
    uint64_t number;

    if (mkdirat(s->dir, b->owner, 0755) < 0 && errno != EEXIST) {
        (void)err_sys(&b->err, -errno, "make a directory for the dependencies of a session");
        return;
    }
    number = current(s, b->owner) + 1;
    (void)snprintf(b->published, sizeof b->published, "%s/%" PRIu64, b->owner, number);
    if (syncfs(b->dir) < 0 || renameat(s->dir, b->name, s->dir, b->published) < 0)
        (void)err_sys(&b->err, -errno, "publish dependencies");
}

struct retiring {
    struct shelf *shelf;
    const char *owner;
    uint64_t before;
};

static void retire(void *user, const char *name)
{
    const struct retiring *r = user;
    char full[SHELF_NAME_MAX];
    struct shelf_item *i;
    uint64_t n = number_of(name);

    if (n == 0 || n >= r->before)
        return;
    (void)snprintf(full, sizeof full, "%s/%" PRIu64, r->owner, n);
    LIST_FOREACH(i, &r->shelf->items, link)
    if (strcmp(i->name, full) == 0) {
        i->old = true;
        return;
    }
    remove_later(r->shelf, full);
}

static void publish_done(struct work *w)
{
    struct shelf_build *b = (struct shelf_build *)w;
    struct retiring r = {.shelf = b->shelf, .owner = b->owner};

    if (b->err.kind == ERR_NONE) {
        r.before = number_of(b->published + strlen(b->owner) + 1);
        for_each(b->shelf->dir, b->owner, retire, &r);
    } else {
        remove_later(b->shelf, b->name);
    }
    b->fn(b->user, &b->err);
    build_free(b);
}

void shelf_build_publish(struct shelf_build *b, const char *owner, shelf_published_fn *fn,
                         void *user)
{
    (void)snprintf(b->owner, sizeof b->owner, "%s", owner);
    b->fn = fn;
    b->user = user;
    b->work.run = publish_run;
    b->work.done = publish_done;
    work_submit(b->shelf->pool, &b->work);
}

/* ---- opening ---- */

/* What nobody can be using yet: listed now, before anything can be made, and removed later. */
static void sweep_owner(void *user, const char *name)
{
    struct shelf *s = user;
    struct retiring r = {.shelf = s, .owner = name};

    if (name[0] == '.') {
        remove_later(s, name);
        return;
    }
    r.before = current(s, name);
    for_each(s->dir, name, retire, &r);
}

int shelf_open(const char *root, struct work_pool *pool, struct shelf **ret, struct err *e)
{
    struct shelf *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(e, ERR_HOST, "no memory for dependencies");
    s->pool = pool;
    LIST_INIT(&s->items);
    s->dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0) {
        (void)err_sys(e, -errno, "directory of dependencies '%.300s'", root);
        free(s);
        return -1;
    }
    for_each(s->dir, ".", sweep_owner, s);
    *ret = s;
    return 0;
}

void shelf_stop(struct shelf *s)
{
    if (s)
        s->pool = NULL;
}

void shelf_close(struct shelf *s)
{
    struct shelf_item *i;

    if (!s)
        return;
    while ((i = LIST_FIRST(&s->items))) {
        LIST_REMOVE(i, link);
        free(i);
    }
    closep(&s->dir);
    free(s);
}
