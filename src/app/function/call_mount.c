/* SPDX-License-Identifier: MIT */
#include "app/function/call_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "app/function/call_walk.h"
#include "base/fd.h"
#include "core/languages.h"
#include "core/port_jail.h"

enum { DEPTH_MAX = 64 };

struct call_tree *call_tree_new(void)
{
    struct call_tree *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->holders = 1;
    t->lazy.list = -1;
    for (size_t i = 0; i < MOUNT_DIRS_MAX; i++)
        t->fd[i] = -1;
    return t;
}

struct call_tree *call_tree_hold(struct call_tree *t)
{
    t->holders++;
    return t;
}

static void list_free(char ***list, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        free((*list)[i]);
    free(*list);
    *list = NULL;
    *n = 0;
}

void call_tree_drop(struct call_tree *t)
{
    if (!t || --t->holders > 0)
        return;
    mount_done(&t->mount);
    fd_close_all(t->fd, MOUNT_DIRS_MAX);
    fd_close_all(&t->lazy.list, 1);
    list_free(&t->made, &t->made_n);
    list_free(&t->owned, &t->owned_n);
    free(t);
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

int walk_keep(char ***list, size_t *n, char *text, struct err *e)
{
    char **more = text ? reallocarray(*list, *n + 1, sizeof *more) : NULL;

    if (!more) {
        free(text);
        return no_memory(e);
    }
    *list = more;
    more[(*n)++] = text;
    return 0;
}

/* ---- opening ---- */

/* The root that a host path is below: its length, or 0. */
static size_t root_of(const char *root, size_t n, const char *path)
{
    while (n > 1 && root[n - 1] == '/')
        n--;
    if (n < 2 || root[0] != '/' || strncmp(path, root, n) != 0 || (path[n] && path[n] != '/'))
        return 0;
    return n;
}

static int open_below(const char *root, size_t n, const char *path)
{
    cleanup_free char *name = strndup(root, n);
    cleanup_close int fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const char *below = path + n;

    if (fd < 0)
        return -errno;
    below += strspn(below, "/");
    return fd_open_beneath(fd, *below ? below : ".", O_RDONLY | O_DIRECTORY, 0, FD_LINKS_INSIDE);
}

static int open_host(const char *roots, const char *path, struct err *e)
{
    for (const char *at = roots; *at;) {
        size_t n = strcspn(at, ":"), below = root_of(at, n, path);
        int fd;

        if (below > 0) {
            fd = open_below(at, below, path);
            if (fd >= 0)
                return fd;
            return err_sys(e, fd, "options.mount: %s", path);
        }
        at += n + (at[n] == ':');
    }
    return err_set(e, ERR_DENIED, "options.mount: '%.200s' is not below a directory of MOUNT_ROOTS",
                   path);
}

/* ---- loading ---- */

int walk_add(struct walk *w, const struct call_file *f)
{
    size_t max = w->tree->lent ? TREE_LENT_MAX : CALL_FILES_MAX;
    struct call_request *r = w->request;
    struct call_file *files;

    if (r->attached.n - w->given_n >= max)
        return err_set(w->e, ERR_CALLER, "options.mount: more than %zu files", max);
    files = reallocarray(r->attached.files, r->attached.n + 1, sizeof *files);
    if (!files)
        return no_memory(w->e);
    r->attached.files = files;
    r->attached.files[r->attached.n++] = *f;
    w->added++;
    return 0;
}

static int add_file(struct walk *w, char *content, size_t n)
{
    struct call_tree *t = w->tree;
    char *path = strdup(w->path.p);

    if (walk_keep(&t->owned, &t->owned_n, content, w->e) < 0) {
        free(path);
        return -1;
    }
    if (walk_keep(&t->owned, &t->owned_n, path, w->e) < 0)
        return -1;
    return walk_add(w, &(struct call_file){
                           .path = path, .content = {content, n}
    });
}

static int load_file(struct walk *w, int fd, uint64_t size)
{
    char *content = malloc(size + 1);
    ssize_t got;

    if (!content)
        return no_memory(w->e);
    got = fd_read_full(fd, content, size);
    if (got < 0) {
        free(content);
        return 0; /* unreadable: as if it were not there */
    }
    content[got] = '\0';
    w->total += (uint64_t)got;
    return add_file(w, content, (size_t)got);
}

bool walk_takes(struct walk *w, uint64_t size)
{
    const struct mount *m = &w->tree->mount;

    return size <= m->file_max && w->total + size <= m->total_max;
}

/* -1: the rules took too many steps. */
static int may_be_seen(struct walk *w, bool *ret)
{
    enum glob_answer shown = mount_shows(&w->tree->mount, w->path.p, "", w->on_the_way, &w->steps);

    *ret = shown == GLOB_YES;
    return shown == GLOB_UNKNOWN ? perms_too_slow(w->e) : 0;
}

/* Is this file to be there? -1: the rules took too many steps. */
static int is_to_load(struct walk *w, bool *ret)
{
    enum glob_answer wanted;

    if (may_be_seen(w, ret) < 0)
        return -1;
    if (!*ret)
        return 0;
    wanted = mount_wants(&w->tree->mount, w->path.p + w->base, &w->steps);
    *ret = wanted == GLOB_YES;
    return wanted == GLOB_UNKNOWN ? perms_too_slow(w->e) : 0;
}

/* What a link leads to is copied: a file that is lent can have one name only. */
static int visit_file(struct walk *w, bool link)
{
    const struct mount *m = &w->tree->mount;
    enum fd_links links = m->links == LINKS_INSIDE ? FD_LINKS_INSIDE : FD_LINKS_NEVER;
    cleanup_close int fd = -1;
    struct stat st;
    bool wanted;

    if (is_to_load(w, &wanted) < 0)
        return -1;
    if (!wanted)
        return 0;
    if (w->tree->lent && !link)
        return walk_lend(w);
    fd = fd_open_beneath(w->root, w->path.p + w->base, O_RDONLY | O_NONBLOCK, 0, links);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (!walk_takes(w, (uint64_t)st.st_size))
        return 0; /* left out, as the request says */
    if (w->total + (uint64_t)st.st_size > w->room)
        return err_set(w->e, ERR_CALLER,
                       "options.mount: '%.200s' has more bytes than a workspace; limit what is "
                       "loaded with include, exclude, maxFileSize or maxTotalSize",
                       w->dir->host);
    return load_file(w, fd, (uint64_t)st.st_size);
}

static int walk(struct walk *w, int fd, int depth);

/* Into a directory, whose path ends in a slash now. One that may not be seen itself is there where
 * the walk finds something in it that may. */
static int visit_dir(struct walk *w, int fd, const char *name, int depth)
{
    cleanup_close int sub = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool before = w->on_the_way, seen;
    int r = may_be_seen(w, &seen);

    if (r < 0 || sub < 0 || (!seen && !mount_opens(&w->tree->mount, w->path.p)))
        return r;
    w->on_the_way = !seen;
    r = walk(w, sub, depth);
    w->on_the_way = before;
    return r;
}

static int visit(struct walk *w, int fd, const struct dirent *at, int depth)
{
    size_t before = w->path.n;
    int r = 0;

    (void)buf_puts(&w->path, at->d_name);
    if (w->path.failed) {
        buf_clear(&w->path);
        return err_set(w->e, ERR_CALLER, "options.mount: a path is too long");
    }
    if (at->d_type == DT_DIR && depth < DEPTH_MAX) {
        (void)buf_putc(&w->path, '/');
        r = visit_dir(w, fd, at->d_name, depth + 1);
    } else if (at->d_type == DT_REG ||
               (at->d_type == DT_LNK && w->tree->mount.links == LINKS_INSIDE)) {
        r = visit_file(w, at->d_type == DT_LNK);
    }
    w->path.n = before;
    w->path.p[before] = '\0';
    return r;
}

/* Nothing came of this directory and what is below it: the last ones that were noted are these. */
static void leave_out(struct walk *w, size_t made_n)
{
    while (w->tree->made_n > made_n)
        free(w->tree->made[--w->tree->made_n]);
}

static int walk(struct walk *w, int fd, int depth)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
    DIR *d = own < 0 ? NULL : fdopendir(own);
    size_t made = w->tree->made_n, added = w->added;

    r = walk_keep(&w->tree->made, &w->tree->made_n, strdup(w->path.p), w->e);
    if (!d) {
        closep(&own);
        if (r == 0 && w->on_the_way)
            leave_out(w, made);
        return r;
    }
    if (r == 0 && w->tree->lent)
        r = walk_enter(w, fd);
    for (struct dirent *at; r == 0 && (at = readdir(d));)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            r = visit(w, fd, at, depth);
    (void)closedir(d);
    if (r == 0 && w->on_the_way && w->added == added && w->tree->made_n == made + 1)
        leave_out(w, made);
    return r;
}

static int load_dir(struct walk *w, size_t i)
{
    struct call_tree *t = w->tree;
    int r;

    w->dir = &t->mount.dir[i];
    w->root = t->fd[i];
    w->path = BUF_INIT(CALL_PATH_MAX);
    (void)buf_puts(&w->path, w->dir->inside);
    (void)buf_putc(&w->path, '/');
    w->base = w->path.n;
    r = t->lent ? walk_begin(w) : 0;
    if (r == 0)
        r = walk(w, t->fd[i], 0);
    buf_done(&w->path);
    return r;
}

/* What may not be read or listed is not there. */
static int hide_files(struct walk *w)
{
    struct call_request *r = w->request;
    size_t n = 0;

    for (size_t i = 0; i < r->attached.n; i++) {
        enum glob_answer shown =
            mount_shows(&w->tree->mount, r->attached.files[i].path, r->workdir, false, &w->steps);

        if (shown == GLOB_UNKNOWN)
            return perms_too_slow(w->e);
        if (shown == GLOB_YES)
            r->attached.files[n++] = r->attached.files[i];
    }
    r->attached.n = n;
    return 0;
}

static int open_all(struct call_tree *t, const char *roots, struct err *e)
{
    for (size_t i = 0; i < t->mount.n; i++) {
        t->fd[i] = open_host(roots, t->mount.dir[i].host, e);
        if (t->fd[i] < 0)
            return -1;
    }
    return 0;
}

static int load_all(struct walk *w)
{
    int r = 0;

    w->total = 0;
    for (size_t i = 0; i < w->tree->mount.n && r == 0; i++)
        r = load_dir(w, i);
    return r;
}

/* Another way is tried from the beginning. */
static void unload(struct walk *w)
{
    struct call_tree *t = w->tree;

    t->lent = false;
    list_free(&t->made, &t->made_n);
    list_free(&t->owned, &t->owned_n);
    w->request->attached.n = w->given_n;
}

static void refuse(struct call_tree *t, const char *why)
{
    (void)snprintf(t->refused, sizeof t->refused, "%s", why);
}

/* Why nothing can be lent; "": it can. */
static const char *lending_refused(const struct tree_load *how)
{
    if (call_lang((size_t)how->lang)->flags & CALL_COMPILED)
        return "a compiler is given all files";
    return how->where->jail->lazy_refused;
}

int call_tree_load(struct call_tree *t, struct call_request *r, const struct tree_load *how,
                   struct err *e)
{
    struct walk w = {.tree = t, .request = r, .room = how->limits->workspace_max, .e = e};
    const char *no = t->mount.load == LOAD_LAZY && t->mount.n > 0 ? lending_refused(how) : NULL;
    int result;

    w.steps = GLOB_STEPS_MAX;
    if (hide_files(&w) < 0)
        return -1;
    w.given_n = r->attached.n;
    if (open_all(t, how->app->config.mount_roots, e) < 0)
        return -1;
    if (no)
        refuse(t, no);
    t->lent = no && !*no;
    result = load_all(&w);
    if (!t->lent || !w.unfit)
        return result;
    refuse(t, w.unfit);
    unload(&w);
    return load_all(&w);
}

/* ---- the fence ---- */

int call_tree_fence(const struct call_tree *t, const struct call_request *r,
                    struct call_rights *ret, bool *ret_fenced, struct err *e)
{
    uint64_t steps = GLOB_STEPS_MAX;
    const struct rights_ask ask = {
        .mount = &t->mount,
        .workdir = r->workdir,
        .files = r->attached.files,
        .files_n = r->attached.n,
        .made = (const char *const *)t->made,
        .made_n = t->made_n,
        .steps = &steps,
    };

    *ret_fenced = t->mount.has_perms && t->mount.denied == PERM_THROW;
    return *ret_fenced ? rights_find(&ask, ret, e) : 0;
}

/* ---- judging ---- */

size_t call_tree_judge(const struct call_tree *t, struct changes *all, const char *workdir,
                       uint64_t *steps)
{
    static const unsigned bits[CHANGE_TYPES] = {
        [CHANGE_CREATED] = PERM_CREATE,
        [CHANGE_MODIFIED] = PERM_MODIFY,
        [CHANGE_DELETED] = PERM_DELETE,
    };
    size_t denied = 0;

    for (size_t i = 0; i < all->n; i++) {
        struct change *one = &all->v[i];
        unsigned allowed = mount_allows(&t->mount, one->path, workdir, steps);

        if (allowed & bits[one->type])
            continue;
        one->denied = true;
        one->unjudged = allowed & PERM_UNKNOWN;
        one->ignored = t->mount.denied == PERM_IGNORE;
        denied++;
    }
    return denied;
}
