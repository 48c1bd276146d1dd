/* SPDX-License-Identifier: MIT */
#include "init/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "init/helper.h"

enum {
    TICK_US = 200 * 1000,
    ACCOUNTS_MAX = 1 << 20, /* bytes of a file of accounts that is read */
    NAMES_MAX = 4096,       /* bytes of names of extended attributes */
    METADATA_MAX = 8192,    /* bytes of metadata with the names */
};

static const char metadata_prefix[] = "user.e2b.";

/* ---- owners ---- */

/* NULL: it cannot be read as a file of accounts. */
static FILE *open_accounts(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    FILE *f;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > ACCOUNTS_MAX) {
        (void)close(fd);
        return NULL;
    }
    f = fdopen(fd, "r");
    if (!f)
        (void)close(fd);
    return f;
}

static void find_user(struct entry_owner *o)
{
    FILE *f = open_accounts("/etc/passwd");
    struct passwd *p;

    while (f && (p = fgetpwent(f)))
        if (p->pw_uid == o->id) {
            (void)snprintf(o->name, sizeof o->name, "%s", p->pw_name);
            break;
        }
    if (f)
        (void)fclose(f);
}

static void find_group(struct entry_owner *o)
{
    FILE *f = open_accounts("/etc/group");
    struct group *g;

    while (f && (g = fgetgrent(f)))
        if (g->gr_gid == o->id) {
            (void)snprintf(o->name, sizeof o->name, "%s", g->gr_name);
            break;
        }
    if (f)
        (void)fclose(f);
}

static const char *owner_name(struct entry_owner *o, uint32_t id,
                              void (*find)(struct entry_owner *o))
{
    if (o->known && o->id == id)
        return o->name;
    o->known = true;
    o->id = id;
    (void)snprintf(o->name, sizeof o->name, "%u", id);
    find(o);
    return o->name;
}

/* ---- metadata ---- */

/* NAME NUL VALUE NUL … Bytes, 0: none. */
static size_t read_metadata(int dir, const char *name, char out[METADATA_MAX])
{
    cleanup_close int fd =
        openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const size_t prefix = sizeof metadata_prefix - 1;
    char names[NAMES_MAX];
    ssize_t names_n = fd >= 0 ? flistxattr(fd, names, sizeof names) : -1;
    size_t n = 0;

    for (ssize_t at = 0; at < names_n; at += (ssize_t)strlen(names + at) + 1) {
        const char *key = names + at + prefix;
        size_t key_n;
        ssize_t k;

        if (strncmp(names + at, metadata_prefix, prefix) != 0)
            continue;
        key_n = strlen(key) + 1;
        if (n + key_n + 1 >= METADATA_MAX)
            break;
        k = fgetxattr(fd, names + at, out + n + key_n, METADATA_MAX - n - key_n - 1);
        if (k < 0 || memchr(out + n + key_n, '\0', (size_t)k))
            continue;
        memcpy(out + n, key, key_n);
        n += key_n + (size_t)k;
        out[n++] = '\0';
    }
    return n;
}

int entry_set_metadata(int fd, const char *p, size_t n)
{
    const char *end = p + n;

    while (p < end) {
        const char *value = p + strlen(p) + 1;
        char name[NAME_MAX + 1];

        if (snprintf(name, sizeof name, "%s%s", metadata_prefix, p) >= (int)sizeof name)
            return -ENAMETOOLONG;
        if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
            return -errno;
        p = value + strlen(value) + 1;
    }
    return 0;
}

/* ---- records ---- */

static void fill(struct help_entry *t, const struct stat *st)
{
    const struct timespec m = st->st_mtim, a = st->st_atim, c = st->st_ctim;

    t->mode = st->st_mode;
    t->uid = st->st_uid;
    t->gid = st->st_gid;
    t->size = st->st_size;
    t->inode = (int64_t)st->st_ino;
    t->mtime_s = m.tv_sec;
    t->mtime_ns = (uint32_t)m.tv_nsec;
    t->atime_s = a.tv_sec;
    t->atime_ns = (uint32_t)a.tv_nsec;
    t->ctime_s = c.tv_sec;
    t->ctime_ns = (uint32_t)c.tv_nsec;
}

/* Where the link leads, absolute; "" when nowhere, or it cannot be told. */
static void resolve(int dir, const char *name, char out[PATH_MAX])
{
    char at[PATH_MAX];
    int n = dir == AT_FDCWD ? snprintf(at, sizeof at, "%s", name)
                            : snprintf(at, sizeof at, "/proc/self/fd/%d/%s", dir, name);

    if (n < 0 || n >= (int)sizeof at || !realpath(at, out))
        *out = '\0';
}

ssize_t entry_record(struct entry_list *l, int dir, const char *name, const char *path, char *out)
{
    struct help_entry t = {.path_n = (uint32_t)strlen(path)};
    char link[PATH_MAX] = "", target[PATH_MAX] = "", metadata[METADATA_MAX];
    struct stat st, to;
    char *at = out + sizeof t;
    ssize_t n;

    _Static_assert(sizeof t + ENTRY_PATH_MAX + 2 * PATH_MAX + METADATA_MAX <= ENTRY_RECORD_MAX,
                   "room");
    if (t.path_n > ENTRY_PATH_MAX)
        return -ENAMETOOLONG;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    fill(&t, &st);
    l->mode = st.st_mode;
    if (S_ISLNK(st.st_mode)) {
        n = readlinkat(dir, name, link, sizeof link);
        t.link_n = n > 0 ? (uint32_t)n : 0;
        if (fstatat(dir, name, &to, 0) == 0)
            t.target_mode = to.st_mode;
        if (t.target_mode)
            resolve(dir, name, target);
        t.target_n = (uint32_t)strlen(target);
    } else if (S_ISREG(st.st_mode)) {
        t.metadata_n = (uint32_t)read_metadata(dir, name, metadata);
    }
    memcpy(t.owner, owner_name(&l->owner, st.st_uid, find_user), sizeof t.owner);
    memcpy(t.group, owner_name(&l->group, st.st_gid, find_group), sizeof t.group);
    t.n = (uint32_t)sizeof t + t.path_n + t.link_n + t.target_n + t.metadata_n;
    memcpy(out, &t, sizeof t);
    at = mempcpy(at, path, t.path_n);
    at = mempcpy(at, link, t.link_n);
    at = mempcpy(at, target, t.target_n);
    (void)mempcpy(at, metadata, t.metadata_n);
    return t.n;
}

void entry_list_init(struct entry_list *l, int sock, enum help_verb verb)
{
    l->sock = sock;
    l->verb = verb;
    l->n = 0;
    l->owner.known = l->group.known = false;
    l->sent_us = clock_us();
}

static void send_all(struct entry_list *l)
{
    struct init_msg m = {.verb = l->verb};

    helper_say(l->sock, &m, l->bytes, l->n, -1);
    l->n = 0;
    l->sent_us = clock_us();
}

void entry_flush(struct entry_list *l)
{
    if (l->n > 0)
        send_all(l);
}

void entry_tick(struct entry_list *l)
{
    if (clock_us() - l->sent_us >= TICK_US)
        send_all(l);
}

void entry_put(struct entry_list *l, const void *p, size_t n)
{
    if (l->n + n > sizeof l->bytes)
        send_all(l);
    memcpy(l->bytes + l->n, p, n);
    l->n += n;
}

int entry_add(struct entry_list *l, int dir, const char *name, const char *path)
{
    ssize_t n;

    if (l->n > 0 && l->n + ENTRY_RECORD_MAX > sizeof l->bytes)
        send_all(l);
    n = entry_record(l, dir, name, path, l->bytes + l->n);
    if (n < 0)
        return (int)n;
    l->n += (size_t)n;
    entry_tick(l);
    return 0;
}

int entry_tell(int sock, const char *path)
{
    struct entry_list *l = malloc(sizeof *l);
    int r;

    if (!l)
        return -ENOMEM;
    entry_list_init(l, sock, HELP_ENTRIES);
    r = entry_add(l, AT_FDCWD, path, path);
    if (r == 0)
        entry_flush(l);
    free(l);
    return r;
}
