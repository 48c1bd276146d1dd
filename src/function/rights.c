/* SPDX-License-Identifier: MIT */
#include "function/rights.h"

#include <stdlib.h>
#include <string.h>

enum { DIR_WRITABLE = 0755, DIR_FIXED = 0555 };

/* Writable for every program; what is written there is not reported as a change. */
static const char *const open_dirs[] = {"/dev/", "/proc/", "/tmp/"};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

/* ---- the directories ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_dir(const struct call_rights *r, const char *path)
{
    return r->dirs_n > 0 && bsearch(&path, r->dirs, r->dirs_n, sizeof *r->dirs, by_name);
}

/* The first n bytes of a path, which end in a slash. */
static int add_dir(struct call_rights *r, const char *path, size_t n, struct err *e)
{
    if (r->dirs_n > 0 && strncmp(r->dirs[r->dirs_n - 1], path, n) == 0 &&
        !r->dirs[r->dirs_n - 1][n])
        return 0; /* neighbours in a list have the same parents */
    if (r->dirs_n == r->dirs_cap) {
        size_t cap = r->dirs_cap ? 2 * r->dirs_cap : 64;
        char **more = reallocarray(r->dirs, cap, sizeof *more);

        if (!more)
            return no_memory(e);
        r->dirs = more;
        r->dirs_cap = cap;
    }
    r->dirs[r->dirs_n] = strndup(path, n);
    if (!r->dirs[r->dirs_n])
        return no_memory(e);
    r->dirs_n++;
    return 0;
}

/* Every directory on the way, the root not counted. */
static int add_parents(struct call_rights *r, const char *path, struct err *e)
{
    const char *slash = strchr(path + 1, '/');

    for (; slash; slash = strchr(slash + 1, '/'))
        if (add_dir(r, path, (size_t)(slash - path) + 1, e) < 0)
            return -1;
    return 0;
}

static void sort_dirs(struct call_rights *r)
{
    size_t n = 0;

    if (r->dirs_n == 0)
        return;
    qsort(r->dirs, r->dirs_n, sizeof *r->dirs, by_name);
    for (size_t i = 0; i < r->dirs_n; i++) {
        if (n > 0 && strcmp(r->dirs[n - 1], r->dirs[i]) == 0)
            free(r->dirs[i]);
        else
            r->dirs[n++] = r->dirs[i];
    }
    r->dirs_n = n;
}

static int find_dirs(const struct rights_ask *ask, struct call_rights *r, struct err *e)
{
    char workdir[CALL_PATH_MAX + 2];
    size_t n = strlen(ask->workdir);

    if (n + 2 > sizeof workdir)
        return err_set(e, ERR_CALLER, "options.workdir: too long");
    memcpy(workdir, ask->workdir, n);
    memcpy(workdir + n, "/", 2);
    if (add_dir(r, "/workspace/", 11, e) < 0 || add_parents(r, workdir, e) < 0)
        return -1;
    for (size_t i = 0; i < ask->made_n; i++)
        if (add_parents(r, ask->made[i], e) < 0)
            return -1;
    for (size_t i = 0; i < ask->files_n; i++)
        if (add_parents(r, ask->files[i].path, e) < 0)
            return -1;
    for (size_t i = 0; i < ARRAY_LEN(open_dirs); i++)
        if (add_parents(r, open_dirs[i], e) < 0)
            return -1;
    sort_dirs(r);
    if (r->dirs_n > RIGHTS_DIRS_MAX)
        return err_set(e, ERR_CALLER, "permissions: more than %d directories", RIGHTS_DIRS_MAX);
    return 0;
}

/* ---- what a rule can reach ---- */

/* Is everything below a prefix meant? */
static bool is_everything(const char *rest)
{
    return strcmp(rest, "**") == 0 || strcmp(rest, "**/*") == 0;
}

enum reach { REACH_NOTHING, REACH_SOME, REACH_ALL };

/* dir: the directory as the pattern sees it, "" or ending in a slash; whole: as it is. */
static enum reach reach_from(const struct call_rights *r, const char *pattern, const char *dir,
                             const char *whole)
{
    size_t n = perm_literal_dirs(pattern), d = strlen(dir), w = strlen(whole), next;
    char child[2 * CALL_PATH_MAX];

    if (d >= n)
        return strncmp(dir, pattern, n) != 0 ? REACH_NOTHING
               : is_everything(pattern + n)  ? REACH_ALL
                                             : REACH_SOME;
    if (strncmp(dir, pattern, d) != 0)
        return REACH_NOTHING;
    /* Its names are further down: a directory that is there will have the right itself. */
    next = strcspn(pattern + d, "/") + 1;
    if (w + next >= sizeof child)
        return REACH_SOME;
    memcpy(child, whole, w);
    memcpy(child + w, pattern + d, next);
    child[w + next] = '\0';
    return has_dir(r, child) ? REACH_NOTHING : REACH_SOME;
}

/* Does a pattern name a mount or the working directory? Then it is a path as a whole and does not
 * begin there once more. */
static bool is_whole(const struct rights_ask *ask, const char *pattern)
{
    char path[CALL_PATH_MAX + 2] = "/";
    size_t n = perm_literal_dirs(pattern), w = strlen(ask->workdir);

    if (n < 2 || n > CALL_PATH_MAX)
        return false;
    memcpy(path + 1, pattern, n - 1); /* without its slash */
    path[n] = '\0';
    return mount_of(ask->mount, path) ||
           (strncmp(path, ask->workdir, w) == 0 && (!path[w] || path[w] == '/'));
}

static enum reach rule_reach(const struct rights_ask *ask, const struct call_rights *r,
                             const char *pattern, const char *dir)
{
    const struct mount_dir *d = mount_of(ask->mount, dir);
    const char *base = d ? d->inside : ask->workdir;
    enum reach whole = reach_from(r, pattern, dir + 1, dir), seen = REACH_NOTHING;
    size_t n = strlen(base);

    if (n > 1 && strncmp(dir, base, n) == 0 && dir[n] == '/' && !is_whole(ask, pattern))
        seen = reach_from(r, pattern, dir + n + 1, dir);
    return whole > seen ? whole : seen;
}

/* Might something that is not there yet be created below? */
static bool may_create(const struct rights_ask *ask, const struct call_rights *r, const char *dir)
{
    const struct perms *p = &ask->mount->perms;

    for (size_t i = 0; i < p->n; i++) {
        bool gives = ((p->usual & ~p->rule[i].deny) | p->rule[i].allow) & PERM_CREATE;
        enum reach reach = rule_reach(ask, r, p->rule[i].pattern, dir);

        if (reach != REACH_NOTHING && gives)
            return true;
        if (reach == REACH_ALL)
            return false; /* it decides about every name, before all that follow */
    }
    return p->usual & PERM_CREATE;
}

/* ---- rights ---- */

static int find_file_rights(const struct rights_ask *ask, struct call_rights *r, struct err *e)
{
    for (size_t i = 0; i < ask->files_n; i++) {
        const char *path = ask->files[i].path;
        unsigned allowed = mount_allows(ask->mount, path, ask->workdir, ask->steps);
        char *parent = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
        char **at = parent ? bsearch(&parent, r->dirs, r->dirs_n, sizeof *r->dirs, by_name) : NULL;

        if (allowed & PERM_MODIFY)
            r->files[i] = PLAN_MODIFY;
        if (at && allowed & PERM_DELETE)
            r->dir_rights[at - r->dirs] |= PLAN_DELETE;
        free(parent);
        if (allowed & PERM_UNKNOWN)
            return perms_too_slow(e);
    }
    return 0;
}

static bool is_open(const char *dir)
{
    for (size_t i = 0; i < ARRAY_LEN(open_dirs); i++)
        if (strcmp(dir, open_dirs[i]) == 0)
            return true;
    return false;
}

/* What a run makes itself it may change and remove again. */
static void find_dir_rights(const struct rights_ask *ask, struct call_rights *r)
{
    for (size_t i = 0; i < r->dirs_n; i++)
        if (is_open(r->dirs[i]) || may_create(ask, r, r->dirs[i]))
            r->dir_rights[i] = PLAN_EVERYTHING;
}

int rights_find(const struct rights_ask *ask, struct call_rights *ret, struct err *e)
{
    struct call_rights r = {0};
    int result = find_dirs(ask, &r, e);

    if (result == 0) {
        r.dir_rights = calloc(r.dirs_n + 1, sizeof *r.dir_rights);
        r.files = calloc(ask->files_n + 1, sizeof *r.files);
        if (!r.dir_rights || !r.files)
            result = no_memory(e);
    }
    if (result == 0) {
        find_dir_rights(ask, &r);
        result = find_file_rights(ask, &r, e);
    }
    if (result < 0)
        rights_done(&r);
    else
        *ret = r;
    return result;
}

void rights_done(struct call_rights *r)
{
    for (size_t i = 0; i < r->dirs_n; i++)
        free(r->dirs[i]);
    free(r->dirs);
    free(r->dir_rights);
    free(r->files);
    *r = (struct call_rights){0};
}

struct plan_file rights_dir(const struct call_rights *r, size_t i)
{
    unsigned rights = r->dir_rights[i];

    return (struct plan_file){
        .path = r->dirs[i],
        .mode = rights & (PLAN_CREATE | PLAN_DELETE) ? DIR_WRITABLE : DIR_FIXED,
        .rights = rights,
    };
}
