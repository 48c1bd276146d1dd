/* SPDX-License-Identifier: MIT */
/* What a call did to the files: read while the dead sandbox is still there. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "app/call_inner.h"
#include "lang/lang_call.h"

enum { READ_INLINE = 64 * 1024 }; /* larger files are read beside the loop */

/* One file that may have changed. */
struct change_work {
    struct work work; /* first */
    struct call *call;
    int fd; /* owned */
    uint64_t size;
    size_t keep; /* bytes to read; 0: only that it is there counts */
    ssize_t before;
    struct buf content; /* owned */
    int64_t mtime_s, mtime_ns;
    char *path; /* owned */
};

static void change_read(struct change_work *w)
{
    size_t got = 0;

    if (w->keep == 0 || buf_reserve(&w->content, w->keep) < 0)
        return;
    while (got < w->keep) {
        ssize_t n = pread(w->fd, w->content.p + got, w->keep - got, (off_t)got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    w->content.n = got;
    if (w->content.p)
        w->content.p[got] = '\0';
}

static bool is_unchanged(const struct change_work *w, const struct bytes *old)
{
    return w->size == old->n &&
           (old->n == 0 || (w->content.n == old->n && memcmp(w->content.p, old->p, old->n) == 0));
}

static void change_settle(struct change_work *w)
{
    struct changes *all = &w->call->changes;
    struct change *one;
    bool known = w->before >= 0;

    if (!known || !is_unchanged(w, &all->before[w->before].content)) {
        one = changes_add(all, known ? CHANGE_MODIFIED : CHANGE_CREATED, w->path, w->before);
        if (one) {
            one->size = w->size;
            one->mtime_s = w->mtime_s;
            one->mtime_ns = w->mtime_ns;
            if (w->content.n == w->size && w->size <= all->content_left) {
                one->has_content = true;
                one->content = w->content;
                w->content = BUF_INIT(0);
                all->content_left -= w->size;
            }
        }
    }
    closep(&w->fd);
    buf_done(&w->content);
    free(w->path);
    free(w);
}

static void call_settle(struct call *c)
{
    if (!c->run_ended || c->reading)
        return;
    if (c->result.scanned) {
        changes_complete(&c->changes);
        if (call_tree_judge(&c->tree, &c->changes, c->request.workdir) > 0)
            c->thrown = c->tree.mount.denied == PERM_THROW;
    }
    call_finish(c, true);
}

static void change_work_run(struct work *w)
{
    change_read((struct change_work *)w);
}

static void change_work_done(struct work *w)
{
    struct change_work *one = (struct change_work *)w;
    struct call *c = one->call;

    change_settle(one);
    c->reading = NULL;
    if (c->run)
        run_files_resume(c->run);
    call_settle(c);
}

/* What we put there ourselves is nobody's change. */
static bool is_ours(const struct call *c, const char *path)
{
    const char *place = c->fenced ? lang_call_place((enum call_lang_id)c->lang, c->wasm) : NULL;
    size_t n = strlen(c->request.workdir);

    if (strncmp(path, c->request.workdir, n) != 0 || path[n] != '/')
        return false;
    return strcmp(path + n + 1, ".sandbox_request.json") == 0 ||
           (place && strcmp(path + n + 1, place) == 0);
}

static void file_look(struct call *c, struct run_file *f, const char *path)
{
    ssize_t before = changes_saw(&c->changes, path);
    struct change_work *w;
    struct stat st;

    if ((before < 0 && is_ours(c, path)) || fstat(f->fd, &st) < 0)
        return;
    w = calloc(1, sizeof *w);
    if (!w)
        return;
    *w = (struct change_work){
        .work = {.run = change_work_run, .done = change_work_done},
        .call = c,
        .size = (uint64_t)st.st_size,
        .before = before,
        .mtime_s = f->mtime_s,
        .mtime_ns = f->mtime_ns
    };
    w->path = strdup(path);
    w->fd = take_fd(&f->fd);
    if (((c->request.include_contents || c->tree.mount.n > 0) &&
         w->size <= c->changes.content_left) ||
        (before >= 0 && w->size == c->changes.before[before].content.n))
        w->keep = (size_t)w->size;
    w->content = BUF_INIT(w->keep + 1);
    if (!w->path || w->keep <= READ_INLINE) {
        if (w->path)
            change_read(w);
        change_settle(w);
        return;
    }
    c->reading = w;
    run_files_pause(c->run);
    work_submit(c->app->work, &w->work);
}

void call_on_file(void *user, struct run_file *f)
{
    struct call *c = user;
    struct buf path = BUF_INIT(16 + f->name_n);

    (void)buf_puts(&path, c->dirs.n > 0 ? "/" : "/workspace/");
    (void)buf_put(&path, f->name, f->name_n);
    if (!path.failed && strlen(path.p) == path.n)
        file_look(c, f, path.p);
    buf_done(&path);
}

void call_on_run_done(void *user)
{
    struct call *c = user;

    c->run_ended = true;
    c->state = CALL_COLLECTING;
    call_settle(c);
}
