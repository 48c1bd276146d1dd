/* SPDX-License-Identifier: MIT */
#include "app/function/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/os.h"
#include "lang/lang_call.h"

enum {
    COMPLETE_INLINE = 256,   /* more files are compared beside the loop */
    READ_INLINE = 64 * 1024, /* larger files are read beside the loop */
    SETTLE_MS = 50,          /* times of files are told in steps, of 10 ms at most */
};

/* One file that may have changed. */
struct change_work {
    struct work work; /* first */
    struct collect *whose;
    int fd; /* owned */
    uint64_t size;
    size_t keep;                  /* bytes to read; 0: only that it is there counts */
    const struct call_file *lent; /* to be compared with what the host has; NULL: nothing is */
    bool same;                    /* it is */
    ssize_t before;
    struct buf content; /* owned */
    int64_t mtime_s, mtime_ns;
    struct file_stamp stamp;
    char *path; /* owned */
};

static void change_read(struct change_work *w)
{
    size_t got = 0;

    if (w->lent)
        w->same = call_tree_same(w->whose->tree, w->lent, w->fd, w->size);
    if (w->same || w->keep == 0 || buf_reserve(&w->content, w->keep) < 0)
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

static bool is_unchanged(const struct change_work *w, const struct call_file *old)
{
    const struct bytes *was = &old->content;

    if (w->same)
        return true;
    return !old->unread && w->size == was->n &&
           (was->n == 0 || (w->content.n == was->n && memcmp(w->content.p, was->p, was->n) == 0));
}

static void change_settle(struct change_work *w)
{
    struct changes *all = &w->whose->changes;
    struct change *one;
    bool known = w->before >= 0;

    if (!known || !is_unchanged(w, &all->before[w->before])) {
        one = changes_add(all, known ? CHANGE_MODIFIED : CHANGE_CREATED, w->path, w->before);
        if (one) {
            one->size = w->size;
            one->mtime_s = w->mtime_s;
            one->mtime_ns = w->mtime_ns;
            one->stamp = w->stamp;
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

static void change_work_run(struct work *w)
{
    change_read((struct change_work *)w);
}

static void change_work_done(struct work *w)
{
    struct change_work *one = (struct change_work *)w;
    struct collect *k = one->whose;

    change_settle(one);
    k->beside = false;
    if (*k->run)
        run_files_resume(*k->run);
    k->next(k->user);
}

/* What we put there ourselves is no change of the program's. */
static bool is_ours(const struct collect *k, const char *path)
{
    size_t n = strlen(k->workdir);

    if (strncmp(path, k->workdir, n) != 0 || path[n] != '/')
        return false;
    return strcmp(path + n + 1, ".sandbox_request.json") == 0 ||
           (k->place && strcmp(path + n + 1, k->place) == 0);
}

static struct file_stamp stamp_of(const struct stat *st)
{
    const struct timespec written = st->st_mtim, changed = st->st_ctim;
    struct timespec now = {0};
    int64_t age_ms;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    age_ms = (now.tv_sec - changed.tv_sec) * 1000 + (now.tv_nsec - changed.tv_nsec) / 1000000;
    return (struct file_stamp){
        .inode = st->st_ino,
        .size = (uint64_t)st->st_size,
        .mtime_s = written.tv_sec,
        .mtime_ns = written.tv_nsec,
        .ctime_s = changed.tv_sec,
        .ctime_ns = changed.tv_nsec,
        .settled = age_ms > SETTLE_MS,
    };
}

/* Is it as it was when we last looked? Where that was too soon after a change, another one may have
 * been made in the same instant: then only its content tells, if that is known. */
static bool is_as_before(const struct changes *all, ssize_t before, const struct file_stamp *now)
{
    const struct file_stamp *was = all->stamps ? &all->stamps[before] : NULL;

    return was && was->inode && was->inode == now->inode && was->size == now->size &&
           was->mtime_s == now->mtime_s && was->mtime_ns == now->mtime_ns &&
           was->ctime_s == now->ctime_s && was->ctime_ns == now->ctime_ns &&
           (was->settled || all->before[before].unread);
}

/* Bytes of it that are to be read. */
static size_t wanted(const struct collect *k, const struct change_work *w)
{
    const struct changes *all = &k->changes;
    bool asked = (k->contents || k->tree->mount.n > 0) && w->size <= all->content_left;
    bool same_size = w->before >= 0 && !all->before[w->before].unread &&
                     w->size == all->before[w->before].content.n;

    return asked || same_size ? (size_t)w->size : 0;
}

static void file_look(struct collect *k, struct run_file *f, const char *path)
{
    ssize_t before = changes_saw(&k->changes, path);
    struct file_stamp stamp;
    struct change_work *w;
    struct stat st;

    if (f->untouched || (before < 0 && is_ours(k, path)) || fstat(f->fd, &st) < 0)
        return;
    stamp = stamp_of(&st);
    if (before >= 0) {
        k->changes.now[before] = stamp;
        if (is_as_before(&k->changes, before, &stamp))
            return;
    }
    w = calloc(1, sizeof *w);
    if (!w)
        return;
    *w = (struct change_work){
        .work = {.run = change_work_run,
                 .done = change_work_done,
                 .lane = work_lane_of(st.st_size)},
        .whose = k,
        .size = (uint64_t)st.st_size,
        .before = before,
        .mtime_s = f->mtime_s,
        .mtime_ns = f->mtime_ns,
        .stamp = stamp,
    };
    w->path = strdup(path);
    w->fd = take_fd(&f->fd);
    w->keep = wanted(k, w);
    if (before >= 0 && k->changes.before[before].host && k->changes.before[before].size == w->size)
        w->lent = &k->changes.before[before];
    w->content = BUF_INIT(w->keep + 1);
    if (!w->path || (w->keep <= READ_INLINE && !w->lent)) {
        if (w->path)
            change_read(w);
        change_settle(w);
        return;
    }
    k->beside = true;
    run_files_pause(*k->run);
    work_submit(k->work, &w->work);
}

int collect_begin(struct collect *k, const struct collect_order *o)
{
    *k = (struct collect){
        .work = o->work,
        .run = o->run,
        .tree = o->tree,
        .workdir = o->request->workdir,
        .place = o->fenced ? lang_call_place(o->lang, o->wasm) : NULL,
        .from_top = o->dirs || o->tree->lent,
        .contents = o->contents,
        .fenced = o->fenced,
        .next = o->next,
        .user = o->user,
        .refused = -1,
        .steps = GLOB_STEPS_MAX,
    };
    return changes_init(&k->changes, o->before, o->before_n);
}

void collect_file(struct collect *k, struct run_file *f)
{
    struct buf path = BUF_INIT(16 + f->name_n);

    (void)buf_puts(&path, k->from_top ? "/" : "/workspace/");
    (void)buf_put(&path, f->name, f->name_n);
    if (!path.failed && strlen(path.p) == path.n)
        file_look(k, f, path.p);
    buf_done(&path);
}

/* ---- judging ---- */

static void judge(struct collect *k)
{
    if (call_tree_judge(k->tree, &k->changes, k->workdir, &k->steps) > 0)
        k->thrown = k->tree->mount.denied == PERM_THROW;
    if (k->fenced)
        collect_refusal(k);
    k->complete = true;
}

static void judging_run(struct work *w)
{
    struct collect *k = (struct collect *)w;

    changes_complete(&k->changes);
    judge(k);
}

static void judging_done(struct work *w)
{
    struct collect *k = (struct collect *)w;

    k->beside = false;
    k->next(k->user);
}

/* Is there a rule, and something to ask it about? Otherwise no worker is needed. */
static bool is_ruled(const struct collect *k)
{
    return k->tree->mount.perms.n > 0 && (k->changes.n > 0 || (k->fenced && k->error->n > 0));
}

bool collect_complete(struct collect *k, int64_t left_out, const struct buf *error)
{
    const struct changes *all = &k->changes;

    k->changes.incomplete = left_out > 0;
    k->error = error;
    if (all->n + all->before_n <= COMPLETE_INLINE) {
        changes_complete(&k->changes);
        if (!is_ruled(k)) {
            judge(k);
            return true;
        }
    }
    k->beside = true;
    k->judging = (struct work){.run = judging_run, .done = judging_done};
    work_submit(k->work, &k->judging);
    return false;
}

void collect_done(struct collect *k)
{
    changes_done(&k->changes);
}
