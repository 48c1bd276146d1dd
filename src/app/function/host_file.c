/* SPDX-License-Identifier: MIT */
#include "app/function/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"

enum { TEMP_RANDOM = 12, TEMP_MAX = 40, COPY_PART = 16 * 1024 };

struct place {
    int dir; /* owned: the directory the file is in */
    const char *name;
};

/* Opens the directory of a file, made on the way if need be; no link is followed. */
static int place_open(int root, const char *path, bool make, struct place *ret)
{
    const char *slash = strrchr(path, '/');
    cleanup_free char *parent = strndup(path, slash ? (size_t)(slash - path) : 0);
    int fd;

    if (!parent)
        return -ENOMEM;
    for (char *at = parent; make && at && *at; at = at ? at + 1 : NULL) {
        at = strchr(at, '/');
        if (at)
            *at = '\0';
        fd = fd_open_beneath(root, parent, O_RDONLY | O_DIRECTORY, 0, FD_LINKS_NEVER);
        if (fd == -ENOENT) {
            struct place up = {-1, NULL};
            int r = place_open(root, parent, false, &up);

            if (r == 0 && mkdirat(up.dir, up.name, 0755) < 0)
                r = -errno;
            closep(&up.dir);
            if (r < 0)
                return r;
        } else if (fd < 0) {
            return fd;
        } else {
            (void)close(fd);
        }
        if (at)
            *at = '/';
    }
    fd = *parent ? fd_open_beneath(root, parent, O_RDONLY | O_DIRECTORY, 0, FD_LINKS_NEVER)
                 : fd_dup(root);
    if (fd < 0)
        return fd;
    ret->dir = fd;
    ret->name = slash ? slash + 1 : path;
    return 0;
}

int host_file_write(int root, const char *path, struct bytes content)
{
    struct place p = {-1, NULL};
    char temp[TEMP_MAX] = ".sandbox-sync-";
    int r = place_open(root, path, true, &p), fd;
    struct stat st;

    if (r < 0)
        return r;
    random_base36(temp + strlen(temp), TEMP_RANDOM);
    fd = openat(p.dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    r = fd < 0 ? -errno : fd_write_all(fd, content.p, content.n);
    if (r == 0 && fstatat(p.dir, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        (void)fchmod(fd, st.st_mode & 0777);
    if (r == 0 && renameat(p.dir, temp, p.dir, p.name) < 0)
        r = -errno;
    if (r < 0 && fd >= 0)
        (void)unlinkat(p.dir, temp, 0);
    closep(&fd);
    closep(&p.dir);
    return r;
}

int host_file_remove(int root, const char *path)
{
    struct place p = {-1, NULL};
    int r = place_open(root, path, false, &p);

    if (r == 0 && unlinkat(p.dir, p.name, 0) < 0)
        r = -errno;
    closep(&p.dir);
    return r == -ENOENT ? 0 : r;
}

bool host_file_is_walled(int root, const char *path)
{
    cleanup_free char *parent = strdup(path);
    struct place p = {-1, NULL};
    char *slash;
    bool walled;
    int r;

    if (!parent)
        return false;
    /* the nearest directory that is there: others would have been made in it */
    while ((r = place_open(root, parent, false, &p)) == -ENOENT && (slash = strrchr(parent, '/')))
        *slash = '\0';
    walled = r == 0 && faccessat(p.dir, ".", W_OK | X_OK, 0) == 0 &&
             (faccessat(p.dir, p.name, R_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno == ENOENT);
    closep(&p.dir);
    return walled;
}

void host_dirs_remove(int root, const char *path, size_t shortest)
{
    cleanup_free char *dir = strdup(path);
    char *slash;
    int r = 0;

    while (dir && r == 0 && (slash = strrchr(dir, '/')) && (size_t)(slash - dir) >= shortest) {
        struct place p = {-1, NULL};

        *slash = '\0';
        r = place_open(root, dir, false, &p);
        if (r == 0)
            r = unlinkat(p.dir, p.name, AT_REMOVEDIR);
        closep(&p.dir);
    }
}

/* ---- undoing ---- */

/* Where a hard link is refused: with fs.protected_hardlinks only the owner of a file may make one.
 */
static int copy_aside(const struct place *p, const char *to_name)
{
    cleanup_close int to = -1, from = openat(p->dir, p->name,
                                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char part[COPY_PART];
    struct stat st;
    ssize_t n = 0;
    int r = 0;

    if (from < 0 || fstat(from, &st) < 0)
        return -errno;
    to = openat(p->dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    if (to < 0)
        return -errno;
    while (r == 0 && (n = read(from, part, sizeof part)) > 0)
        r = fd_write_all(to, part, (size_t)n);
    if (r == 0 && n < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(p->dir, to_name, 0);
    return r;
}

int host_file_keep(int root, const char *path, char **ret)
{
    struct place p = {-1, NULL};
    char temp[TEMP_MAX] = ".sandbox-kept-";
    int r = place_open(root, path, false, &p);

    random_base36(temp + strlen(temp), TEMP_RANDOM);
    *ret = NULL;
    if (r == 0 && linkat(p.dir, p.name, p.dir, temp, 0) < 0)
        r = errno == ENOENT ? -ENOENT : copy_aside(&p, temp);
    closep(&p.dir);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    *ret = strdup(temp);
    return *ret ? 0 : -ENOMEM;
}

int host_file_restore(int root, const char *path, const char *kept)
{
    struct place p = {-1, NULL};
    int r = place_open(root, path, true, &p);

    if (r == 0 && renameat(p.dir, kept, p.dir, p.name) < 0)
        r = -errno;
    closep(&p.dir);
    return r;
}

int host_file_forget(int root, const char *path, const char *kept)
{
    struct place p = {-1, NULL};
    int r = place_open(root, path, false, &p);

    if (r == 0 && unlinkat(p.dir, kept, 0) < 0)
        r = -errno;
    closep(&p.dir);
    return r;
}
