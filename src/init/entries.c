/* SPDX-License-Identifier: MIT */
#include "init/entries.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *entries_next(struct entries *e, int *ret_error)
{
    *ret_error = 0;
    for (;;) {
        const char *entry = e->raw + e->at, *name = entry + offsetof(struct dirent64, d_name);
        unsigned short len;

        if (e->at >= e->n) {
            e->at = 0;
            e->n = syscall(SYS_getdents64, e->fd, e->raw, sizeof e->raw);
            if (e->n <= 0) {
                *ret_error = e->n < 0 ? errno : 0;
                return NULL;
            }
            continue;
        }
        memcpy(&len, entry + offsetof(struct dirent64, d_reclen), sizeof len);
        e->at += len;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            return name;
    }
}

int64_t entries_count(int dir)
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
