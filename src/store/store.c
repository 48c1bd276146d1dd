/* SPDX-License-Identifier: MIT */
/*
 * Copies are <state>/artifacts/<number>. Only numbers ever become file names. A state directory has
 * one daemon at a time (boot_lock()), and what its executions do not need is swept at its start.
 */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/fd.h"
#include "base/sha256.h"

enum {
    STORE_NAME_MAX = 24,
    STORE_CHUNK = 256 * 1024,
    STORE_STUCK_MAX = 64,
    STORE_ROOM = 64 * 1024, /* bytes: with so much room the disk counts as full no longer */
};

struct store {
    struct work_pool *pool;          /* borrowed */
    int dir;                         /* owned: <state>/artifacts */
    uint64_t last;                   /* the last number given out */
    uint64_t stuck[STORE_STUCK_MAX]; /* what could not be removed, and will be tried again */
    size_t stuck_n;
    bool failed; /* the last copy that was wanted could not be made */
};

/* One file on its way. */
struct keeping {
    struct work work;    /* first */
    struct store *store; /* borrowed */
    int fd;              /* owned */
    bool copy;
    struct stored stored;
    store_kept_fn *fn;
    void *user;
};

static void number_name(uint64_t number, char out[STORE_NAME_MAX])
{
    (void)snprintf(out, STORE_NAME_MAX, "%" PRIu64, number);
}

/* Reads what was announced, no more; 0 or -errno. `to` < 0: only hashes. */
static int copy_bytes(int from, int to, uint64_t size, struct sha256 *h)
{
    cleanup_free char *chunk = malloc(STORE_CHUNK);
    uint64_t at = 0;

    while (chunk && at < size) {
        size_t want = size - at < STORE_CHUNK ? (size_t)(size - at) : STORE_CHUNK;
        ssize_t n = pread(from, chunk, want, (off_t)at);
        int r = 0;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        sha256_add(h, chunk, (size_t)n);
        if (to >= 0)
            r = fd_write_all(to, chunk, (size_t)n);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return chunk ? 0 : -ENOMEM;
}

static void keep_run(struct work *w)
{
    struct keeping *k = (struct keeping *)w;
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    cleanup_close int to = -1;
    char name[STORE_NAME_MAX];
    int r = h ? 0 : -ENOMEM;

    number_name(k->stored.number, name);
    if (r == 0 && k->copy)
        to =
            openat(k->store->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r == 0 && k->copy && to < 0)
        r = -errno;
    if (r == 0)
        r = copy_bytes(k->fd, to, k->stored.size, h);
    if (r == 0)
        sha256_end_hex(h, k->stored.sha256);
    if (r == 0 && k->copy)
        return;
    if (to >= 0)
        (void)unlinkat(k->store->dir, name, 0);
    k->stored.number = 0;
    k->stored.sys = k->copy ? -r : 0;
}

static void keep_done(struct work *w)
{
    struct keeping *k = (struct keeping *)w;

    closep(&k->fd);
    if (k->copy)
        k->store->failed = k->stored.sys != 0;
    k->fn(k->user, &k->stored);
    free(k);
}

int store_keep(struct store *s, int fd, uint64_t size, bool copy, const void *owner,
               store_kept_fn *fn, void *user)
{
    struct keeping *k = malloc(sizeof *k);

    if (!k) {
        closep(&fd);
        return -1;
    }
    *k = (struct keeping){
        .work = {.run = keep_run, .done = keep_done, .lane = work_lane_of(size), .owner = owner},
        .store = s,
        .fd = fd,
        .copy = copy,
        .stored = {.number = ++s->last, .size = size                 },
        .fn = fn,
        .user = user
    };
    work_submit(s->pool, &k->work);
    return 0;
}

int store_read(struct store *s, uint64_t number, struct err *e)
{
    char name[STORE_NAME_MAX];
    int fd;

    number_name(number, name);
    fd = openat(s->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? err_sys(e, -errno, "open the kept copy") : fd;
}

bool store_is_full(struct store *s)
{
    struct statvfs v;

    if (s->failed && fstatvfs(s->dir, &v) == 0 && v.f_favail > 0 &&
        v.f_bavail * v.f_frsize >= STORE_ROOM)
        s->failed = false;
    return s->failed;
}

static bool remove_copy(const struct store *s, uint64_t number)
{
    char name[STORE_NAME_MAX];

    number_name(number, name);
    return unlinkat(s->dir, name, 0) == 0 || errno == ENOENT;
}

/* A disk that fails for a while must not be full of what nobody can ask for any more. */
void store_drop(struct store *s, uint64_t number)
{
    if (number == 0)
        return;
    while (s->stuck_n > 0 && remove_copy(s, s->stuck[s->stuck_n - 1]))
        s->stuck_n--;
    if (!remove_copy(s, number) && s->stuck_n < STORE_STUCK_MAX)
        s->stuck[s->stuck_n++] = number;
}

/* From its beginning; the descriptor stays the caller's. NULL: it cannot be read. */
static DIR *list_dir(int dir)
{
    int again = fd_dup(dir); /* fdopendir() takes its descriptor */
    DIR *d = again >= 0 ? fdopendir(again) : NULL;

    if (d)
        rewinddir(d);
    else
        closep(&again);
    return d;
}

bool store_has(struct store *s, uint64_t number)
{
    char name[STORE_NAME_MAX];

    number_name(number, name);
    return faccessat(s->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Plain files with a number for a name: nothing else is ever made there. */
void store_sweep(struct store *s, uint64_t *numbers, size_t n)
{
    DIR *d = list_dir(s->dir);
    const struct dirent *entry;

    if (!d)
        return;
    if (n > 1)
        qsort(numbers, n, sizeof *numbers, by_number);
    while ((entry = readdir(d))) {
        char name[STORE_NAME_MAX];
        uint64_t number;

        if (entry->d_name[0] == '.')
            continue;
        number = strtoull(entry->d_name, NULL, 10);
        number_name(number, name);
        if (strcmp(name, entry->d_name) != 0 ||
            !bsearch(&number, numbers, n, sizeof *numbers, by_number))
            (void)unlinkat(s->dir, entry->d_name, 0);
        else if (number > s->last)
            s->last = number;
    }
    (void)closedir(d);
}

int store_open(const char *state, struct work_pool *pool, struct store **ret, struct err *e)
{
    cleanup_close int top = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct store *s = NULL;

    if (top < 0)
        return err_sys(e, -errno, "state directory '%s'", state);
    if (mkdirat(top, "artifacts", 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make '%s/artifacts'", state);
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_HOST, "no memory for the store");
    *s = (struct store){.pool = pool, .dir = -1};
    s->dir = openat(top, "artifacts", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (s->dir < 0) {
        (void)err_sys(e, -errno, "open '%s/artifacts'", state);
        store_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    closep(&s->dir);
    free(s);
}
