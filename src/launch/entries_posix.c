/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/entries.h"

int entries_open(struct entries *e, int fd)
{
    cleanup_close int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    e->dir = own >= 0 ? fdopendir(own) : NULL;
    if (!e->dir)
        return -errno;
    (void)take_fd(&own);
    return 0;
}

const char *entries_next(struct entries *e, int *ret_error)
{
    const struct dirent *at;

    do {
        errno = 0;
        at = readdir(e->dir);
    } while (at && (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0));
    *ret_error = at ? 0 : errno;
    return at ? at->d_name : NULL;
}

void entries_close(struct entries *e)
{
    if (e->dir)
        (void)closedir(e->dir);
    e->dir = NULL;
}

int64_t entries_count(int dir)
{
    cleanup_with(entries_close) struct entries e = {.dir = NULL};
    int64_t n = 0;
    int error;

    if (entries_open(&e, dir) < 0)
        return -1;
    while (entries_next(&e, &error))
        n++;
    return error ? -1 : n;
}
