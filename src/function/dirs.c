/* SPDX-License-Identifier: MIT */
#include "function/dirs.h"

#include <string.h>

static bool has(const struct buf *dirs, const char *name, size_t n)
{
    for (size_t at = 0; at < dirs->n;) {
        size_t len = strcspn(dirs->p + at, "/");

        if (len == n && memcmp(dirs->p + at, name, n) == 0)
            return true;
        at += len + 1;
    }
    return false;
}

static bool is(const char *word, const char *name, size_t n)
{
    return strlen(word) == n && memcmp(word, name, n) == 0;
}

int call_dirs_add(struct buf *dirs, const char *path, struct err *e)
{
    static const char *const always[] = {"workspace", "tmp"};
    static const char *const fixed[] = {"usr",   "bin",  "sbin", "lib", "lib32",
                                        "lib64", "proc", "dev",  "etc", "libx32"};
    const char *name = path + 1;
    size_t n = strcspn(name, "/");

    if (n == 0)
        return err_set(e, ERR_CALLER, "the root directory itself cannot be written to");
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        if (is(always[i], name, n))
            return 0;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (is(fixed[i], name, n))
            return err_set(e, ERR_CALLER, "'%.200s' is below a system directory", path);
    if (has(dirs, name, n))
        return 0;
    if (dirs->n > 0)
        (void)buf_putc(dirs, '/');
    if (buf_put(dirs, name, n) < 0)
        return err_set(e, ERR_CALLER, "too many directories beside /workspace");
    return 0;
}

int call_dirs_find(struct buf *dirs, const struct call_request *r, const struct mount *m,
                   struct err *e)
{
    *dirs = BUF_INIT(CALL_DIRS_MAX);
    if (call_dirs_add(dirs, r->workdir, e) < 0)
        return -1;
    for (size_t i = 0; i < r->attached.n; i++)
        if (call_dirs_add(dirs, r->attached.files[i].path, e) < 0)
            return -1;
    for (size_t i = 0; i < m->n; i++)
        if (call_dirs_add(dirs, m->dir[i].inside, e) < 0)
            return -1;
    return 0;
}
