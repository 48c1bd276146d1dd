/* SPDX-License-Identifier: MIT */
#include "launch/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/wire.h"

struct scan {
    int root, ctl;
    bool all; /* hidden files, too */
    int64_t left_out;
    uint32_t sent;
    size_t n; /* bytes of the path so far */
    struct {
        struct init_msg m;
        char path[INIT_NAME_MAX];
    } out;
};

static int reopen(int dir)
{
    return openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int64_t scan_entries(int dir)
{
    char names[2048];
    int64_t count = -2; /* "." and ".." */
    long n;

    if (lseek(dir, 0, SEEK_SET) < 0)
        return -1;
    while ((n = syscall(SYS_getdents64, dir, names, sizeof names)) > 0)
        for (long at = 0; at < n; count++) {
            unsigned short len;

            memcpy(&len, names + at + offsetof(struct dirent, d_reclen), sizeof len);
            at += len;
        }
    return n < 0 || count < 0 ? -1 : count;
}

/* Is it there, and we could not read it? A link that leads nowhere, or out, is not a file. */
static bool is_lost(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

/* Opened beneath the root, so that a link counts only if it stays inside. Never blocks: a FIFO
 * opens at once with O_NONBLOCK and is then refused. */
static void send_file(struct scan *s)
{
    cleanup_close int fd = -1;
    struct stat st;

    s->out.path[s->n] = '\0';
    fd = fd_open_beneath(s->root, s->out.path, O_RDONLY | O_NONBLOCK, 0, FD_LINKS_INSIDE);
    if (fd < 0 || fstat(fd, &st) < 0) {
        s->left_out += is_lost(fd < 0 ? -fd : EIO);
        return;
    }
    if (!S_ISREG(st.st_mode))
        return;
    if (s->sent++ >= SCAN_FILES_MAX) {
        s->left_out++;
        return;
    }
    s->out.m = (struct init_msg){
        .verb = INIT_ENTRY,
        .size = st.st_size,
        .mtime_s = st.st_mtim.tv_sec,
        .mtime_ns = st.st_mtim.tv_nsec,
        .mode = st.st_mode & 07777,
        .name_n = (uint32_t)s->n,
    };
    if (fd_send(s->ctl, &s->out, sizeof s->out.m + s->n, &fd, 1) < 0)
        _exit(0);
}

static void walk(struct scan *s, int dir, int depth);

static void visit(struct scan *s, int dir, const struct dirent *at, int depth)
{
    size_t before = s->n, len = strlen(at->d_name);

    if (before + len + 2 > sizeof s->out.path) {
        s->left_out++;
        return;
    }
    memcpy(s->out.path + before, at->d_name, len);
    s->n = before + len;
    if (at->d_type == DT_DIR) {
        int sub = openat(dir, at->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        s->out.path[s->n++] = '/';
        if (sub < 0 || depth == SCAN_DEPTH_MAX)
            s->left_out++;
        else
            walk(s, sub, depth + 1);
        closep(&sub);
    } else if (at->d_type == DT_REG || at->d_type == DT_LNK) {
        send_file(s);
    }
    s->n = before;
}

static void walk(struct scan *s, int dir, int depth)
{
    int own = reopen(dir);
    DIR *d = own >= 0 ? fdopendir(own) : NULL;

    if (!d) {
        closep(&own);
        s->left_out++;
        return;
    }
    errno = 0;
    for (struct dirent *at; (at = readdir(d)); errno = 0)
        if (at->d_name[0] != '.' ||
            (s->all && strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0))
            visit(s, dir, at, depth);
    s->left_out += errno != 0; /* at least one */
    (void)closedir(d);
}

void scan_workspace(int dir, int ctl, bool all)
{
    struct scan s = {.root = dir, .ctl = ctl, .all = all};
    struct init_msg end = {.verb = INIT_SCANNED};

    walk(&s, dir, 0);
    end.arg = s.left_out;
    if (fd_send(ctl, &end, sizeof end, NULL, 0) < 0)
        _exit(0);
}
