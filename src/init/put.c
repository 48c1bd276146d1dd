/* SPDX-License-Identifier: MIT */
#include "init/put.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/beside.h"
#include "wire/wire.h"

enum { DIRECTORY_MODE = 0755, FILE_MODE = 0644, PART = 32 * 1024 };

static int open_directory(int root, const char *path)
{
    return fd_open_beneath(root, *path ? path : ".", FD_LOOK | O_DIRECTORY, 0, FD_LINKS_INSIDE);
}

/* The directory that `path` is to be in, made if it is not there; path is cut behind it. */
static int make_parents(int root, char *path, char **ret_name)
{
    cleanup_close int at = open_directory(root, "");
    char *from = path;

    for (char *slash; at >= 0 && (slash = strchr(from, '/')); from = slash + 1) {
        int next;

        *slash = '\0';
        if (mkdirat(at, from, DIRECTORY_MODE) < 0 && errno != EEXIST)
            return -errno;
        next = open_directory(root, path);
        *slash = '/';
        closep(&at);
        at = next;
    }
    *ret_name = from;
    return take_fd(&at);
}

static int copy(int to, int from, int64_t at, int64_t size)
{
    char part[PART];

    while (size > 0) {
        ssize_t n = pread(from, part, size < PART ? (size_t)size : PART, at);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        r = fd_write_all(to, part, (size_t)n);
        if (r < 0)
            return r;
        at += n;
        size -= n;
    }
    return 0;
}

int put_file(int root, const char *name, int from, int64_t at, int64_t size)
{
    struct beside b = BESIDE_NONE;
    cleanup_close int dir = -1;
    char path[INIT_NAME_MAX + 1], *last = path;
    size_t n = strlen(name);
    int r;

    if (n == 0 || n > INIT_NAME_MAX || name[0] == '/')
        return -EINVAL;
    memcpy(path, name, n + 1);
    dir = make_parents(root, path, &last);
    if (dir < 0)
        return dir;
    r = beside_open(&b, dir, FILE_MODE);
    if (r == 0)
        r = copy(b.fd, from, at, size);
    if (r == 0)
        r = beside_commit(&b, last);
    beside_drop(&b);
    return r;
}
