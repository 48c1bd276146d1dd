/* SPDX-License-Identifier: MIT */
/* Files of a session: mounts before its process, those that a call brings, what a call changed. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/session/fsession.h"

enum {
    LOOK_MS = 10000,       /* for looking at all files of a workspace */
    CHECK_STEPS = 1000000, /* to ask the rules about files that a call brings, in the loop */
};

static const char workspace[] = "/workspace/";

bool fsession_is_beside(const struct fsession *s)
{
    return s->files.loading || s->files.collect.beside ||
           (s->current && turn_is_syncing(s->current));
}

void fsession_files_done(struct fsession *s)
{
    collect_done(&s->files.collect);
    known_done(&s->files.known);
    free(take_ptr(&s->files.given));
}

/* ---- mounts ---- */

static int tree_renew(struct fsession *s, struct err *e)
{
    struct call_tree *t = call_tree_new();

    if (!t)
        return err_set(e, ERR_HOST, "out of memory");
    known_done(&s->files.known); /* it points into the old one */
    call_tree_drop(s->program.tree);
    s->program.tree = t;
    return mount_parse(&t->mount, s->program.request.mount, s->program.request.permissions, e);
}

/* The files as they were given; mounts are added to them again and again. */
static int given_restore(struct fsession *s, struct err *e)
{
    struct call_request *r = &s->program.request;
    struct call_file *files = calloc(s->files.given_n + 1, sizeof *files);

    if (!files)
        return err_set(e, ERR_HOST, "out of memory");
    if (s->files.given_n > 0)
        memcpy(files, s->files.given, s->files.given_n * sizeof *files);
    free(r->attached.files);
    r->attached.files = files;
    r->attached.n = s->files.given_n;
    return 0;
}

int fsession_mounts_parse(struct fsession *s, struct err *e)
{
    struct call_request *r = &s->program.request;

    if (tree_renew(s, e) < 0)
        return -1;
    s->files.given = r->attached.files;
    s->files.given_n = r->attached.n;
    r->attached.files = NULL;
    r->attached.n = 0;
    return given_restore(s, e);
}

static struct fsession *of_work(struct work *w)
{
    return container_of(w, struct fsession, files.work);
}

static void load_run(struct work *w)
{
    struct fsession *s = of_work(w);
    struct err e;

    if (program_load(&s->program, &e) < 0)
        s->files.error = e;
}

static void load_done(struct work *w)
{
    struct fsession *s = of_work(w);

    s->files.loading = false;
    if (s->ending)
        fsession_end(s, s->stop_reason);
    else
        fsession_loaded(s, s->files.error.kind != ERR_NONE ? &s->files.error : NULL);
}

void fsession_mounts_load(struct fsession *s)
{
    s->files.error = (struct err){0};
    if (tree_renew(s, &s->files.error) < 0 || given_restore(s, &s->files.error) < 0) {
        fsession_loaded(s, &s->files.error);
        return;
    }
    s->files.loading = true;
    s->files.work = (struct work){.run = load_run, .done = load_done};
    work_submit(s->app->work, &s->files.work);
}

/* ---- before a process ---- */

int fsession_files_begin(struct fsession *s, struct err *e)
{
    if (known_begin(&s->files.known, s->program.request.attached.files,
                    s->program.request.attached.n) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    return 0;
}

/* ---- files that a call brings ---- */

/* How init names it; NULL: it is nowhere that init could put it. */
static const char *name_inside(const struct fsession *s, const char *path)
{
    size_t n = strcspn(path + 1, "/");

    if (s->program.dirs.n == 0 && !s->program.tree->lent)
        return strncmp(path, workspace, sizeof workspace - 1) == 0 ? path + sizeof workspace - 1
                                                                   : NULL;
    if (strncmp(path, workspace, sizeof workspace - 1) == 0)
        return path + 1;
    for (const char *at = s->program.dirs.p; at && path[1 + n]; at = strchr(at, '/')) {
        at += *at == '/';
        if (strcspn(at, "/") == n && strncmp(at, path + 1, n) == 0)
            return path + 1;
    }
    return NULL;
}

int fsession_files_check(struct fsession *s, struct turn *t, struct err *e)
{
    const unsigned seen = PERM_READ | PERM_LIST;
    uint64_t steps = CHECK_STEPS;
    unsigned allowed;
    struct call_request *r = &t->request;

    for (size_t i = 0; i < r->attached.n; i++) {
        if (!name_inside(s, r->attached.files[i].path))
            return err_set(e, ERR_CALLER,
                           "options.files: '%.200s' is below no directory that this session had "
                           "when it was created",
                           r->attached.files[i].path);
        allowed =
            mount_allows(&s->program.tree->mount, r->attached.files[i].path, r->workdir, &steps);
        if (allowed & PERM_UNKNOWN)
            return perms_too_slow(e);
        if ((allowed & seen) != seen)
            return err_set(e, ERR_CALLER, "options.files: '%.200s' may not be seen in this session",
                           r->attached.files[i].path);
    }
    return 0;
}

void fsession_files_put(struct fsession *s)
{
    struct turn *t = s->current;
    const struct call_file *f = &t->request.attached.files[t->files.put];

    if (run_put(s->process.run, name_inside(s, f->path), t->files.fd, t->files.at,
                (int64_t)f->content.n) < 0)
        fsession_stop(s, END_FAILED);
}

/* The call is not made. */
static void put_failed(struct fsession *s, int error)
{
    struct turn *t = s->current;
    struct err e;

    (void)err_set(&e, ERR_CALLER, "options.files: %.400s: %s",
                  t->request.attached.files[t->files.put].path, strerror(error));
    s->process.token[0] = '\0';
    turn_end(t, &(struct turn_ending){.error = &e, .wall_ms = t->wall_ms});
}

void fsession_on_put(void *user, int error)
{
    struct fsession *s = user;
    struct turn *t = s->current;
    const struct call_file *f;

    if (s->state != FSESSION_BUSY || !t || t->files.put >= t->request.attached.n)
        return;
    f = &t->request.attached.files[t->files.put];
    if (error == 0 && known_add(&s->files.known, f->path, f->content) < 0)
        error = ENOMEM;
    if (error != 0) {
        put_failed(s, error);
        return;
    }
    t->files.at += (int64_t)f->content.n;
    if (++t->files.put < t->request.attached.n)
        fsession_files_put(s);
    else
        fsession_packet(s);
}

/* ---- what a call changed ---- */

/* The turn gets what it changed, the session knows its files as they are now. */
static void take_changes(struct fsession *s, struct turn *t)
{
    struct call_file *old = NULL;

    if (t && s->program.tree->mount.denied == PERM_THROW) {
        turn_judge(t);
        collect_judge(&s->files.collect, &t->on.result.outcome);
    }
    if (known_update(&s->files.known, &s->files.collect.changes, &old) < 0 || !t) {
        known_old_free(old, s->files.collect.changes.n);
        collect_done(&s->files.collect);
        return;
    }
    t->old = old;
    t->changes = s->files.collect.changes;
    t->tree = call_tree_hold(s->program.tree);
    s->files.collect.changes = (struct changes){0};
}

static void settle(struct fsession *s)
{
    static const struct buf nothing = {0};
    struct turn *t = s->current;

    if (s->files.looking || s->files.collect.beside)
        return;
    if (!s->process.run) {
        fsession_gone(s);
        return;
    }
    if (s->state != FSESSION_COLLECTING)
        return; /* it is being stopped; its end goes on */
    (void)event_del(s->timer);
    if (!s->files.collect.complete && !collect_complete(&s->files.collect, s->files.left_out,
                                                        t ? &t->on.task.result.error : &nothing))
        return;
    take_changes(s, t);
    fsession_answered(s);
}

static void on_collected(void *user)
{
    settle(user);
}

void fsession_on_file(void *user, struct run_file *f)
{
    struct fsession *s = user;

    if (s->files.looking)
        collect_file(&s->files.collect, f);
}

void fsession_on_scanned(void *user, int64_t left_out)
{
    struct fsession *s = user;

    if (!s->files.looking)
        return;
    s->files.looking = false;
    s->files.left_out = left_out;
    if (s->current)
        s->current->on.result.left_out = left_out;
    settle(s);
}

/* A turn that does not want to know leaves its changes to the next one that does. */
static bool is_wanted(const struct fsession *s)
{
    const struct turn *t = s->current;

    if (s->state == FSESSION_LOADING || s->program.tree->mount.sync || s->program.fenced)
        return true;
    return t && t->request.reporting.changes;
}

bool fsession_files_look(struct fsession *s)
{
    const struct collect_order order = {
        .work = s->app->work,
        .run = &s->process.run,
        .tree = s->program.tree,
        .request = &s->program.request,
        .lang = (enum call_lang_id)s->program.lang,
        .wasm = s->program.wasm,
        .fenced = s->program.fenced,
        .dirs = s->program.dirs.n > 0,
        .contents = s->current && s->current->request.reporting.contents,
        .before = s->files.known.files,
        .before_n = s->files.known.n,
        .next = on_collected,
        .user = s,
    };

    if (!is_wanted(s) || collect_begin(&s->files.collect, &order) < 0)
        return false;
    s->files.collect.changes.stamps = s->files.known.stamps;
    if (run_scan(s->process.run) < 0) {
        collect_done(&s->files.collect);
        return false;
    }
    s->files.looking = true;
    fsession_move(s, FSESSION_COLLECTING);
    fsession_deadline(s, LOOK_MS);
    return true;
}
