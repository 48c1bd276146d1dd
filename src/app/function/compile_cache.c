/* SPDX-License-Identifier: MIT */
#include "app/function/compile_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/os.h"

struct entry {
    char key[SHA256_HEX];
    uint64_t size;
    struct timespec used;
};

struct compile_cache {
    int dir; /* owned */
    struct entry of[COMPILE_CACHE_FILES];
    size_t n;
    uint64_t bytes;
};

static struct entry *find(struct compile_cache *c, const char *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->of[i].key, key) == 0)
            return &c->of[i];
    return NULL;
}

static bool is_key(const char *name)
{
    return strlen(name) == SHA256_HEX - 1 && strspn(name, "0123456789abcdef") == SHA256_HEX - 1;
}

static void drop(struct compile_cache *c, struct entry *one)
{
    (void)unlinkat(c->dir, one->key, 0);
    c->bytes -= one->size;
    *one = c->of[--c->n];
}

static bool is_older(const struct entry *a, const struct entry *b)
{
    return a->used.tv_sec != b->used.tv_sec ? a->used.tv_sec < b->used.tv_sec
                                            : a->used.tv_nsec < b->used.tv_nsec;
}

static void make_room(struct compile_cache *c, uint64_t bytes)
{
    while (c->n > 0 && (c->n == COMPILE_CACHE_FILES || c->bytes + bytes > COMPILE_CACHE_BYTES)) {
        struct entry *oldest = &c->of[0];

        for (size_t i = 1; i < c->n; i++)
            if (is_older(&c->of[i], oldest))
                oldest = &c->of[i];
        drop(c, oldest);
    }
}

static void add(struct compile_cache *c, const char *key, uint64_t size, struct timespec used)
{
    struct entry *one = &c->of[c->n++];

    (void)snprintf(one->key, sizeof one->key, "%.64s", key);
    one->size = size;
    one->used = used;
    c->bytes += size;
}

/* ---- the directory ---- */

/* What is no whole program of ours is left over from a crash, and goes. */
static void load(struct compile_cache *c)
{
    int own = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    struct stat st;

    if (!d) {
        closep(&own);
        return;
    }
    for (struct dirent *at; (at = readdir(d));) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
            continue;
        if (!is_key(at->d_name) || fstatat(c->dir, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode) || st.st_size > COMPILE_PROGRAM_MAX) {
            (void)unlinkat(c->dir, at->d_name, 0);
            continue;
        }
        make_room(c, (uint64_t)st.st_size);
        add(c, at->d_name, (uint64_t)st.st_size, st.st_mtim);
    }
    (void)closedir(d);
}

int compile_cache_open(const char *state_dir, struct compile_cache **ret, struct err *e)
{
    cleanup_close int state = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct compile_cache *c;

    if (state < 0)
        return err_sys(e, -errno, "open %s", state_dir);
    if (mkdirat(state, "programs", 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make %s/programs", state_dir);
    c = calloc(1, sizeof *c);
    if (!c)
        return err_set(e, ERR_HOST, "no memory for the cache of programs");
    c->dir = openat(state, "programs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (c->dir < 0) {
        int sys = -errno;

        free(c);
        return err_sys(e, sys, "open %s/programs", state_dir);
    }
    load(c);
    *ret = c;
    return 0;
}

void compile_cache_close(struct compile_cache *c)
{
    if (!c)
        return;
    (void)close(c->dir);
    free(c);
}

/* ---- programs ---- */

int compile_cache_get(struct compile_cache *c, const char key[SHA256_HEX], struct buf *out)
{
    struct entry *one = find(c, key);
    cleanup_close int fd = -1;
    ssize_t got;

    if (!one)
        return -1;
    fd = openat(c->dir, key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || buf_reserve(out, one->size) < 0) {
        drop(c, one);
        return -1;
    }
    got = fd_read_full(fd, out->p, one->size);
    if (got < 0 || (uint64_t)got != one->size) {
        drop(c, one);
        return -1;
    }
    out->n = (size_t)got;
    (void)clock_gettime(CLOCK_REALTIME, &one->used);
    (void)futimens(fd, NULL);
    return 0;
}

void compile_cache_put(struct compile_cache *c, const char key[SHA256_HEX], const void *p, size_t n)
{
    cleanup_close int fd = -1;
    struct timespec now;

    if (n > COMPILE_PROGRAM_MAX || find(c, key))
        return;
    make_room(c, n);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    fd = openat(c->dir, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (fd_write_all(fd, p, n) < 0 || renameat(c->dir, ".new", c->dir, key) < 0) {
        (void)unlinkat(c->dir, ".new", 0);
        return;
    }
    add(c, key, n, now);
}
