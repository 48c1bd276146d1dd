/* SPDX-License-Identifier: MIT */
#include "init/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "init/archive.h"
#include "init/beside.h"
#include "init/dir_walk.h"
#include "init/entries.h"
#include "init/entry.h"
#include "init/fs.h"
#include "init/helper.h"
#include "init/loopback.h"
#include "init/notify.h"
#include "init/process_tree.h"
#include "init/remove.h"
#include "init/transfer.h"
#include "init/watch.h"

enum {
    FILE_MODE = 0644,
    DIRECTORY_MODE = 0755,
    PART = 32 * 1024, /* read and written at once */
};

/* One request being carried out. */
struct request {
    int sock;
    const struct init_msg *m;
    const char *path;
    const char *bytes; /* behind the path, with a NUL behind them */
    size_t bytes_n;
    int fd; /* that came along, or -1 */
    bool shared;
};

static void fail(const struct request *r, enum help_op op)
{
    helper_done(r->sock, errno, op, r->path);
}

static void fill_stat(struct init_msg *m, const struct stat *st)
{
    const struct timespec changed = st->st_mtim;

    m->size = st->st_size;
    m->mode = st->st_mode;
    m->mtime_s = changed.tv_sec;
    m->mtime_ns = changed.tv_nsec;
    m->cpu_us = (int64_t)st->st_ino; /* makes an ETag together with the times */
}

/* ---- reading ---- */

static bool is_ordinary(int fd, const struct stat *st)
{
    return S_ISREG(st->st_mode) && !fs_is_proc(fd);
}

/* Everything that is no ordinary file is read here and goes as bytes. */
static void send_bytes(const struct request *r, int fd)
{
    struct init_msg m = {.verb = HELP_BYTES};
    int64_t left = r->m->size;
    char part[PART];
    ssize_t n;

    while ((n = read(fd, part, sizeof part)) > 0) {
        if (n > left) {
            errno = EFBIG;
            fail(r, HELP_OP_READ);
            return;
        }
        left -= n;
        helper_say(r->sock, &m, part, (size_t)n, -1);
    }
    if (n < 0)
        fail(r, HELP_OP_READ);
    else
        helper_done(r->sock, 0, HELP_OP_READ, NULL);
}

static void verb_read(const struct request *r)
{
    cleanup_close int fd = open(r->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct init_msg m = {.verb = HELP_DONE};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        fail(r, HELP_OP_OPEN);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        fail(r, HELP_OP_READ);
    } else if (!is_ordinary(fd, &st)) {
        send_bytes(r, fd);
    } else {
        fill_stat(&m, &st);
        helper_say(r->sock, &m, NULL, 0, fd);
    }
}

static void verb_stat(const struct request *r)
{
    struct init_msg m = {.verb = HELP_DONE};
    struct stat st;

    if (stat(r->path, &st) < 0) {
        fail(r, HELP_OP_STAT);
        return;
    }
    fill_stat(&m, &st);
    helper_say(r->sock, &m, NULL, 0, -1);
}

/* ---- writing ---- */

static int make_directories(const char *path, bool last, char failed[PATH_MAX]);

/* All bytes of the descriptor, until its end. 0 or -errno. */
static int copy_rest(int from, int to, int64_t *total)
{
    char part[PART];
    ssize_t n;

    while ((n = read(from, part, sizeof part)) > 0) {
        int e = fd_write_all(to, part, (size_t)n);

        if (e < 0)
            return e;
        *total += n;
    }
    return n < 0 ? -errno : 0;
}

/* Where the content goes until it is whole. */
struct upload {
    struct beside beside; /* none: the file is written in place */
    int dir, fd;          /* owned: the directory; the file written in place */
    const char *base;
    char path[PATH_MAX]; /* without links */
    mode_t mode;         /* of the file that is replaced; 0: there is none */
};

static int upload_fd(const struct upload *u)
{
    return u->beside.fd >= 0 ? u->beside.fd : u->fd;
}

/*
 * Can the file be replaced by another? Not what is no ordinary file, has several names (the others
 * would keep the old content) or is mounted by itself. 1 or 0, or -errno: it must not be written.
 */
static int replaceable(struct upload *u, const char *path)
{
    struct stat st, dir;
    char *slash;

    if (!realpath(path, u->path)) {
        if (errno != ENOENT || lstat(path, &st) == 0) /* a link to nothing makes its target */
            return 0;
        if (snprintf(u->path, sizeof u->path, "%s", path) >= (int)sizeof u->path)
            return 0;
    } else if (stat(u->path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1) {
        return 0;
    } else if (faccessat(AT_FDCWD, u->path, W_OK, AT_EACCESS) < 0) {
        return -errno;
    } else {
        u->mode = st.st_mode & 0777;
    }
    slash = strrchr(u->path, '/');
    u->base = slash ? slash + 1 : u->path;
    if (slash)
        *slash = '\0';
    u->dir = open(!slash ? "." : *u->path ? u->path : "/", FD_LOOK | O_DIRECTORY | O_CLOEXEC);
    if (u->dir < 0 || fstat(u->dir, &dir) < 0)
        return 0;
    return *u->base && (u->mode == 0 || dir.st_dev == st.st_dev);
}

static int upload_open(struct upload *u, const char *path)
{
    int r = replaceable(u, path);

    if (r > 0)
        r = beside_open(&u->beside, u->dir, FILE_MODE);
    else if (r == 0)
        r = -EACCES;
    else
        return r;
    if (r != -EACCES && r != -EPERM && r != -EROFS)
        return r;
    /* Not replaceable, or in a directory that cannot be written. */
    u->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, FILE_MODE);
    return u->fd >= 0 ? 0 : -errno;
}

/*
 * The end of the content looks like the end of its sender. A daemon that has given up shuts the
 * socket down first; otherwise it sends nothing there until it has its answer.
 */
static bool is_given_up(int sock)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};

    return poll(&p, 1, 0) != 0;
}

static int upload_end(struct upload *u)
{
    if (u->beside.fd < 0)
        return 0;
    if (u->mode != 0 && fchmod(u->beside.fd, u->mode) < 0)
        return -errno;
    return beside_commit(&u->beside, u->base);
}

/* All bytes of the descriptor, inflated by the sandbox's own gzip. -EBADMSG: they are no gzip. */
static int inflate_rest(int from, int to)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (dup2(from, 0) >= 0 && dup2(to, 1) >= 0)
            (void)execle("/usr/bin/gzip", "gzip", "-dcq", (char *)NULL, (char *[]){NULL});
        _exit(127);
    }
    if (pid < 0)
        return -errno;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (!WIFEXITED(status))
        return -ECANCELED;
    /* 2 is a warning: bytes behind the end are ignored. */
    return WEXITSTATUS(status) == 127 ? -ENOSYS : WEXITSTATUS(status) == 1 ? -EBADMSG : 0;
}

static int write_content(const struct request *r, const struct upload *u, int64_t *total)
{
    struct stat st;
    int e;

    if (r->fd < 0)
        return 0;
    if (!(r->m->arg & WRITE_GZIP))
        return copy_rest(r->fd, upload_fd(u), total);
    e = inflate_rest(r->fd, upload_fd(u));
    if (e == 0 && fstat(upload_fd(u), &st) == 0)
        *total = st.st_size;
    return e;
}

/* A file system that keeps no metadata loses it: the content is what counts. */
static int write_metadata(const struct request *r, const struct upload *u)
{
    int e = 0;

    if (r->m->token > 0 && r->m->token <= r->bytes_n)
        e = entry_set_metadata(upload_fd(u), r->bytes, r->m->token);
    return e == -ENOTSUP || e == -EPERM ? 0 : e;
}

static int write_file(const struct request *r, struct upload *u, struct init_msg *done,
                      enum help_op *ret_op)
{
    struct stat st;
    int e = upload_open(u, r->path);

    if (e < 0)
        return e;
    *ret_op = HELP_OP_WRITE;
    e = write_content(r, u, &done->size);
    if (e == 0)
        e = write_metadata(r, u);
    if (e == 0 && is_given_up(r->sock))
        e = -ECANCELED;
    if (e == 0 && fstat(upload_fd(u), &st) == 0)
        fill_stat(done, &st);
    return e < 0 ? e : upload_end(u);
}

static void verb_write(const struct request *r)
{
    struct init_msg m = {.verb = HELP_DONE};
    struct upload u = {.beside = BESIDE_NONE, .dir = -1, .fd = -1};
    enum help_op op = HELP_OP_OPEN;
    char failed[PATH_MAX];
    int e;

    if ((r->m->arg & WRITE_PARENTS) && (e = make_directories(r->path, false, failed)) < 0) {
        helper_done(r->sock, -e, HELP_OP_MKDIR, failed);
        return;
    }
    e = write_file(r, &u, &m, &op);
    beside_drop(&u.beside);
    fd_close_all((int[]){u.dir, u.fd}, 2);
    if (e == 0 && (r->m->arg & WRITE_TOLD))
        e = entry_tell(r->sock, r->path);
    if (e == 0) {
        helper_say(r->sock, &m, NULL, 0, -1);
        return;
    }
    errno = -e;
    fail(r, op);
}

/* ---- directories ---- */

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* One directory that may be there already. */
static int make_one(const char *path)
{
    struct stat st;
    int first;

    if (mkdir(path, DIRECTORY_MODE) == 0)
        return 0;
    first = errno;
    if (stat(path, &st) < 0)
        return -first;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* `last`: the last component is wanted, too. On failure the path it failed at. */
static int make_directories(const char *path, bool last, char failed[PATH_MAX])
{
    size_t n = strlen(path);
    int r = 0;

    if (n == 0 || n >= PATH_MAX) {
        (void)snprintf(failed, PATH_MAX, "%s", path);
        return n ? -ENAMETOOLONG : -ENOENT;
    }
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (size_t i = 1; i <= n && r == 0; i++) {
        if ((i < n && path[i] != '/') || path[i - 1] == '/' || (i == n && !last))
            continue;
        (void)snprintf(failed, PATH_MAX, "%.*s", (int)i, path);
        r = make_one(failed);
    }
    return r;
}

int files_make_directories(const char *path, char failed[PATH_MAX])
{
    return is_directory(path) ? 0 : make_directories(path, true, failed);
}

/* It must be new: -EEXIST or -ENOTDIR says what is there. */
static int make_new(const struct request *r, char failed[PATH_MAX])
{
    struct stat st;
    int e;

    (void)snprintf(failed, PATH_MAX, "%s", r->path);
    if (stat(r->path, &st) == 0)
        return S_ISDIR(st.st_mode) ? -EEXIST : -ENOTDIR;
    e = make_directories(r->path, true, failed);
    return e < 0 ? e : entry_tell(r->sock, r->path);
}

static void verb_mkdir(const struct request *r)
{
    char failed[PATH_MAX];
    int e = r->m->arg ? make_new(r, failed) : files_make_directories(r->path, failed);

    helper_done(r->sock, -e, HELP_OP_MKDIR, e ? failed : NULL);
}

/* Several names in each message. */
static int send_names(const struct request *r, struct entries *all)
{
    struct init_msg m = {.verb = HELP_NAMES};
    char names[PART];
    const char *name;
    size_t n = 0;
    int error;

    while ((name = entries_next(all, &error))) {
        size_t len = strlen(name) + 1;

        if (n + len > sizeof names) {
            helper_say(r->sock, &m, names, n, -1);
            n = 0;
        }
        memcpy(names + n, name, len);
        n += len;
    }
    if (n > 0)
        helper_say(r->sock, &m, names, n, -1);
    return error;
}

static void verb_list(const struct request *r)
{
    cleanup_close int fd = open(r->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    struct entries all = {.fd = fd};

    if (fd < 0) {
        fail(r, HELP_OP_OPEN);
        return;
    }
    errno = send_names(r, &all);
    if (errno != 0)
        fail(r, HELP_OP_READ);
    else
        helper_done(r->sock, 0, HELP_OP_OPEN, NULL);
}

/* ---- removing ---- */

static void verb_remove(const struct request *r)
{
    int first;

    if (unlink(r->path) == 0 || (first = errno, rmdir(r->path)) == 0) {
        helper_done(r->sock, 0, HELP_OP_REMOVE, NULL);
        return;
    }
    if (errno == ENOTDIR)
        errno = first; /* it was no directory: the first attempt has the reason */
    fail(r, HELP_OP_REMOVE);
}

/* Then it is known by another name, and what is removed would not be what was named. */
static bool ends_in_dots(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;

    return strcmp(last, ".") == 0 || strcmp(last, "..") == 0;
}

static void verb_remove_all(const struct request *r)
{
    char *failed = NULL;
    int e;

    if (ends_in_dots(r->path)) {
        errno = EINVAL;
        fail(r, HELP_OP_REMOVE_ALL);
        return;
    }
    e = remove_all(r->path, &failed);
    helper_done(r->sock, -e, HELP_OP_UNLINK, failed);
    free(failed);
}

/* ---- network and numbers ---- */

static void verb_connect(const struct request *r)
{
    struct init_msg m = {.verb = HELP_DONE};
    cleanup_close int fd = loopback_connect((uint16_t)r->m->arg);

    if (fd < 0)
        helper_done(r->sock, -fd, HELP_OP_CONNECT, NULL);
    else
        helper_say(r->sock, &m, NULL, 0, fd);
}

static void verb_usage(const struct request *r)
{
    pid_t top = r->shared ? getppid() : 0;
    struct init_msg m = {
        .verb = HELP_DONE,
        .pid = (int32_t)tree_count(top),
        .size = (int64_t)watch_memory_used(top, UINT64_MAX),
        .io_write = r->shared ? 0 : fs_used("/workspace") + fs_used("/home"),
    };

    helper_say(r->sock, &m, NULL, 0, -1);
}

static void verb_unpack(const struct request *r)
{
    archive_unpack(r->sock, r->m, r->path, r->fd);
}

static void verb_pack(const struct request *r)
{
    archive_pack(r->sock, r->m, r->path, r->fd);
}

static void verb_look(const struct request *r)
{
    int e = entry_tell(r->sock, r->path);

    helper_done(r->sock, -e, HELP_OP_STAT, e ? r->path : NULL);
}

static void verb_walk(const struct request *r)
{
    walk_tell(r->sock, r->m, r->path, r->bytes_n > 0 ? r->bytes : "");
}

static void verb_transfer(const struct request *r)
{
    transfer_serve(r->sock, r->m, r->path, r->bytes_n > 0 ? r->bytes : "");
}

static void verb_watch(const struct request *r)
{
    notify_serve(r->sock, r->m, r->path);
}

static const struct {
    uint32_t verb;
    void (*serve)(const struct request *r);
} verbs[] = {
    {HELP_READ,       verb_read      },
    {HELP_WRITE,      verb_write     },
    {HELP_MKDIR,      verb_mkdir     },
    {HELP_REMOVE,     verb_remove    },
    {HELP_REMOVE_ALL, verb_remove_all},
    {HELP_LIST,       verb_list      },
    {HELP_STAT,       verb_stat      },
    {HELP_CONNECT,    verb_connect   },
    {HELP_UNPACK,     verb_unpack    },
    {HELP_PACK,       verb_pack      },
    {HELP_USAGE,      verb_usage     },
    {HELP_LOOK,       verb_look      },
    {HELP_WALK,       verb_walk      },
    {HELP_MOVE,       verb_transfer  },
    {HELP_COPY,       verb_transfer  },
    {HELP_WATCH,      verb_watch     },
};

bool files_serve(int sock, const struct init_msg *m, char *bytes, size_t n, int fd, bool shared)
{
    struct request r = {.sock = sock, .m = m, .path = bytes, .fd = fd, .shared = shared};

    if (m->name_n > n)
        return false;
    if (n > m->name_n) { /* one byte more than the path: its NUL */
        r.bytes = bytes + m->name_n + 1;
        r.bytes_n = n - m->name_n - 1;
    }
    if (strlen(r.path) != m->name_n)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (verbs[i].verb == m->verb) {
            verbs[i].serve(&r);
            return true;
        }
    return false;
}
