/* SPDX-License-Identifier: MIT */
/* What lies in the spool when a life begins. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/os.h"
#include "net/spool_inner.h"

static int make_parents(const char *path, struct err *e)
{
    char part[4096];

    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(e, -errno, "make '%.300s'", part);
    }
    return 0;
}

int spool_prepare(const char *path, const char *option, uid_t uid, gid_t gid, struct err *e)
{
    cleanup_close int dir = -1;
    struct stat st;

    if (path[0] != '/')
        return err_set(e, ERR_CALLER, "%s: '%.300s' is not an absolute path", option, path);
    if (make_parents(path, e) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "%s: make '%.300s'", option, path);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, -errno, "%s: '%.300s'", option, path);
    if ((st.st_uid != uid && st.st_uid != geteuid()) || (st.st_mode & 022) != 0)
        return err_set(e, ERR_CALLER,
                       "%s: '%.300s' must belong to user %u and be writable by nobody "
                       "else: what lies there is sent as results",
                       option, path, (unsigned)uid);
    if (st.st_uid != uid && fchown(dir, uid, gid) < 0)
        return err_sys(e, -errno, "%s: give '%.300s' away", option, path);
    if (fchmod(dir, 0700) < 0)
        return err_sys(e, -errno, "%s: close '%.300s'", option, path);
    return 0;
}

/* An id and ".json". */
static bool name_to_id(const char *name, char out[SPOOL_ID_MAX + 1])
{
    size_t n = strlen(name);

    if (n < 6 || n - 5 > SPOOL_ID_MAX || strcmp(name + n - 5, ".json") != 0)
        return false;
    (void)snprintf(out, SPOOL_ID_MAX + 1, "%.*s", (int)(n - 5), name);
    return spool_id_is_safe(out);
}

struct found {
    char id[SPOOL_ID_MAX + 1];
    uint64_t bytes;
    struct timespec at;
};

struct findings {
    struct found *v; /* owned */
    size_t n, cap;
};

static int by_age(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    if (a->at.tv_sec != b->at.tv_sec)
        return a->at.tv_sec < b->at.tv_sec ? -1 : 1;
    return a->at.tv_nsec < b->at.tv_nsec ? -1 : a->at.tv_nsec > b->at.tv_nsec;
}

static int findings_add(struct findings *f, const char *id, const struct stat *st)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        struct found *v = reallocarray(f->v, cap, sizeof *v);

        if (!v)
            return -1;
        f->v = v;
        f->cap = cap;
    }
    f->v[f->n].bytes = (uint64_t)st->st_size;
    f->v[f->n].at = st->st_mtim;
    memcpy(f->v[f->n++].id, id, SPOOL_ID_MAX + 1);
    return 0;
}

/* Regular files of ours, by age. Half-written ones are removed: nobody was told of them. */
static int list_files(int dir, struct findings *f)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *at;
    char id[SPOOL_ID_MAX + 1] = "";
    struct stat st;
    int r = 0;

    if (!d) {
        fd_close_all(&again, 1);
        return -1;
    }
    for (at = readdir(d); at && r == 0; at = readdir(d)) {
        if (strncmp(at->d_name, ".new-", 5) == 0)
            (void)unlinkat(dir, at->d_name, 0);
        else if (name_to_id(at->d_name, id) &&
                 fstatat(dir, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            r = findings_add(f, id, &st);
    }
    (void)closedir(d);
    if (f->n > 1)
        qsort(f->v, f->n, sizeof *f->v, by_age);
    return r;
}

/* A file says when it was made only by the clock on the wall; one of tomorrow was made today. */
static int64_t born_of(const struct found *f)
{
    int64_t age = (int64_t)time(NULL) - f->at.tv_sec;

    return spool_now_s() - (age > 0 ? age : 0);
}

static int load_waiting(struct spool *s)
{
    struct findings f = {0};
    int r = list_files(s->dir, &f);

    for (size_t i = 0; i < f.n && r == 0; i++) {
        struct spool_entry *e = spool_entry_add(s, f.v[i].id, f.v[i].bytes, born_of(&f.v[i]));

        if (e)
            e->on_disk = true;
        else
            r = -1;
    }
    free(f.v);
    return r;
}

static int load_rejected(struct spool *s)
{
    struct findings f = {0};
    int r = list_files(s->rejected_dir, &f);

    for (size_t i = 0; i < f.n && r == 0; i++) {
        struct spool_entry *e = calloc(1, sizeof *e);

        if (!e) {
            r = -1;
            break;
        }
        memcpy(e->id, f.v[i].id, sizeof e->id);
        e->bytes = f.v[i].bytes;
        e->born_s = born_of(&f.v[i]);
        TAILQ_INSERT_TAIL(&s->rejected, e, link);
        s->rejected_n++;
        s->rejected_bytes += e->bytes;
    }
    free(f.v);
    return r;
}

static int open_directories(struct spool *s, const char *path, const char *option, struct err *e)
{
    s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir < 0)
        return err_sys(e, -errno, "%s: '%.300s'", option, path);
    if (flock(s->dir, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, ERR_CALLER, "%s: '%.300s' is in use by another daemon", option,
                             path)
                   : err_sys(e, -errno, "%s: lock '%.300s'", option, path);
    if (mkdirat(s->dir, "rejected", 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "%s: make '%.300s/rejected'", option, path);
    s->rejected_dir = openat(s->dir, "rejected", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->rejected_dir < 0)
        return err_sys(e, -errno, "%s: '%.300s/rejected'", option, path);
    return 0;
}

int spool_find(struct spool *s, const struct spool_conf *conf, struct err *e)
{
    if (open_directories(s, conf->path, conf->option, e) < 0)
        return -1;
    if (load_waiting(s) < 0 || load_rejected(s) < 0)
        return err_set(e, ERR_HOST, "%s: '%.300s' cannot be listed", conf->option, conf->path);
    return 0;
}
