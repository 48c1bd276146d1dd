/* SPDX-License-Identifier: MIT */
#include "app/call_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

enum { DEPTH_MAX = 64 };

struct call_tree *call_tree_new(void)
{
    struct call_tree *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->holders = 1;
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
    list_free(&t->made, &t->made_n);
    list_free(&t->owned, &t->owned_n);
    free(t);
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

/* Takes the text, also when it fails. */
static int push(char ***list, size_t *n, char *text, struct err *e)
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

struct walk {
    struct call_tree *tree;
    struct call_request *request;
    const struct mount_dir *dir;
    int root;
    uint64_t room, total;
    struct buf path; /* inside */
    size_t base;     /* bytes of the mount's own path and a slash */
    size_t files_cap;
    struct err *e;
};

static int add_file(struct walk *w, char *content, size_t n)
{
    struct call_request *r = w->request;
    struct call_file *files;
    char *path = strdup(w->path.p);

    if (push(&w->tree->owned, &w->tree->owned_n, content, w->e) < 0) {
        free(path);
        return -1;
    }
    if (push(&w->tree->owned, &w->tree->owned_n, path, w->e) < 0)
        return -1;
    if (r->files_n >= CALL_FILES_MAX)
        return err_set(w->e, ERR_CALLER, "options.mount: more than %d files", CALL_FILES_MAX);
    files = reallocarray(r->files, r->files_n + 1, sizeof *files);
    if (!files)
        return no_memory(w->e);
    r->files = files;
    r->files[r->files_n++] = (struct call_file){
        path, {content, n}
    };
    return 0;
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

static bool may_be_seen(const struct walk *w)
{
    unsigned allowed = mount_allows(&w->tree->mount, w->path.p, "");

    return (allowed & (PERM_READ | PERM_LIST)) == (PERM_READ | PERM_LIST);
}

static int visit_file(struct walk *w)
{
    const struct mount *m = &w->tree->mount;
    enum fd_links links = m->links == LINKS_INSIDE ? FD_LINKS_INSIDE : FD_LINKS_NEVER;
    cleanup_close int fd = -1;
    struct stat st;

    if (!may_be_seen(w) || !mount_wants(m, w->dir, w->path.p + w->base))
        return 0;
    fd = fd_open_beneath(w->root, w->path.p + w->base, O_RDONLY | O_NONBLOCK, 0, links);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if ((uint64_t)st.st_size > m->file_max || w->total + (uint64_t)st.st_size > m->total_max)
        return 0; /* left out, as the request says */
    if (w->total + (uint64_t)st.st_size > w->room)
        return err_set(w->e, ERR_CALLER,
                       "options.mount: '%.200s' has more bytes than a workspace; limit what is "
                       "loaded with include, exclude, maxFileSize or maxTotalSize",
                       w->dir->host);
    return load_file(w, fd, (uint64_t)st.st_size);
}

static int walk(struct walk *w, int fd, int depth);

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
        int sub = openat(fd, at->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        (void)buf_putc(&w->path, '/');
        if (sub >= 0 && may_be_seen(w))
            r = walk(w, sub, depth + 1);
        closep(&sub);
    } else if (at->d_type == DT_REG ||
               (at->d_type == DT_LNK && w->tree->mount.links == LINKS_INSIDE)) {
        r = visit_file(w);
    }
    w->path.n = before;
    w->path.p[before] = '\0';
    return r;
}

static int walk(struct walk *w, int fd, int depth)
{
    int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
    DIR *d = own < 0 ? NULL : fdopendir(own);

    r = push(&w->tree->made, &w->tree->made_n, strdup(w->path.p), w->e);
    if (!d) {
        closep(&own);
        return r;
    }
    for (struct dirent *at; r == 0 && (at = readdir(d));)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            r = visit(w, fd, at, depth);
    (void)closedir(d);
    return r;
}

static int load_dir(struct call_tree *t, struct call_request *r, size_t i, struct walk *w)
{
    w->dir = &t->mount.dir[i];
    w->root = t->fd[i];
    w->path = BUF_INIT(CALL_PATH_MAX);
    (void)buf_puts(&w->path, w->dir->inside);
    (void)buf_putc(&w->path, '/');
    w->base = w->path.n;
    (void)r;
    return walk(w, t->fd[i], 0);
}

/* What may not be read or listed is not there. */
static void hide_files(const struct call_tree *t, struct call_request *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->files_n; i++)
        if ((mount_allows(&t->mount, r->files[i].path, r->workdir) & (PERM_READ | PERM_LIST)) ==
            (PERM_READ | PERM_LIST))
            r->files[n++] = r->files[i];
    r->files_n = n;
}

int call_tree_load(struct call_tree *t, struct call_request *r, const char *roots, uint64_t room,
                   struct err *e)
{
    struct walk w = {.tree = t, .request = r, .room = room, .e = e};
    int result = 0;

    hide_files(t, r);
    for (size_t i = 0; i < t->mount.n && result == 0; i++) {
        t->fd[i] = open_host(roots, t->mount.dir[i].host, e);
        if (t->fd[i] < 0)
            return -1;
        result = load_dir(t, r, i, &w);
        buf_done(&w.path);
    }
    return result;
}

/* ---- judging ---- */

size_t call_tree_judge(const struct call_tree *t, struct changes *all, const char *workdir)
{
    static const unsigned bits[CHANGE_TYPES] = {
        [CHANGE_CREATED] = PERM_CREATE,
        [CHANGE_MODIFIED] = PERM_MODIFY,
        [CHANGE_DELETED] = PERM_DELETE,
    };
    size_t denied = 0;

    for (size_t i = 0; i < all->n; i++) {
        struct change *one = &all->v[i];

        if (mount_allows(&t->mount, one->path, workdir) & bits[one->type])
            continue;
        one->denied = true;
        one->ignored = t->mount.denied == PERM_IGNORE;
        denied++;
    }
    return denied;
}
