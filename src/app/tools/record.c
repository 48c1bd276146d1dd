/* SPDX-License-Identifier: MIT */
#include "app/tools/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

enum { VERSIONS_SEEN = 1024, RECORD_MAX = 512 << 20 };

void record_path(char out[TOOLBOX_PATH], const char *dir, const char *bundle, int64_t version)
{
    (void)snprintf(out, TOOLBOX_PATH, "%.1000s/%s/%" PRId64 ".json", dir, bundle, version);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

size_t record_versions(const char *dir, const char *bundle, int64_t *out, size_t max)
{
    char path[TOOLBOX_PATH];
    int64_t all[VERSIONS_SEEN];
    size_t n = 0;
    DIR *d;

    (void)snprintf(path, sizeof path, "%.1000s/%s", dir, bundle);
    d = opendir(path);
    if (!d)
        return 0;
    for (const struct dirent *at; n < VERSIONS_SEEN && (at = readdir(d));) {
        long version;
        int end = 0;

        if (sscanf(at->d_name, "%9ld.json%n", &version, &end) == 1 && end > 0 && !at->d_name[end] &&
            version > 0)
            all[n++] = version;
    }
    (void)closedir(d);
    qsort(all, n, sizeof all[0], newest_first);
    n = n < max ? n : max;
    memcpy(out, all, n * sizeof all[0]);
    return n;
}

int record_load(const char *path, struct bundle **ret, struct err *e)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_with(buf_done) struct buf text = BUF_INIT(RECORD_MAX);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "open '%.300s'", path);
    if (st.st_size >= RECORD_MAX || buf_reserve(&text, (size_t)st.st_size) < 0)
        return err_set(e, ERR_HOST, "'%.300s' is too large", path);
    if (fd_read_full(fd, text.p, (size_t)st.st_size) != st.st_size)
        return err_set(e, ERR_HOST, "'%.300s' cannot be read", path);
    text.n = (size_t)st.st_size;
    text.p[text.n] = '\0';
    return bundle_read(&text, ret, e) < 0 ? err_wrap(e, "'%.300s'", path) : 0;
}

static int write_file(const char *path, const struct buf *text, struct err *e)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return err_sys(e, -errno, "create '%.300s'", path);
    if (fd_write_all(fd, text->p, text->n) < 0 || fsync(fd) < 0)
        return err_sys(e, -errno, "write '%.300s'", path);
    return 0;
}

static void sync_dir(const char *path)
{
    cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)fsync(fd);
}

int record_save(const char *dir, const struct bundle *b, struct err *e)
{
    char path[TOOLBOX_PATH], half[TOOLBOX_PATH + 8], folder[TOOLBOX_PATH];

    (void)snprintf(folder, sizeof folder, "%.1000s/%s", dir, b->is.name.p);
    record_path(path, dir, b->is.name.p, b->is.version);
    (void)snprintf(half, sizeof half, "%s.new", path);
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "make '%.300s'", folder);
    if (write_file(half, &b->text, e) < 0) {
        (void)unlink(half);
        return -1;
    }
    if (rename(half, path) < 0)
        return err_sys(e, -errno, "rename '%.300s'", half);
    sync_dir(folder);
    return 0;
}

void record_prune(const char *dir, const char *bundle, size_t keep)
{
    char path[TOOLBOX_PATH];
    int64_t versions[VERSIONS_SEEN];
    size_t n = record_versions(dir, bundle, versions, ARRAY_LEN(versions));

    for (size_t i = keep; i < n; i++) {
        record_path(path, dir, bundle, versions[i]);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%.1000s/%s", dir, bundle);
    if (keep == 0)
        (void)rmdir(path);
}
