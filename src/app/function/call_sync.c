/* SPDX-License-Identifier: MIT */
#include "app/function/call_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/function/host_file.h"

/* Before all types of changes: deletions that make room. */
enum { MAKING_ROOM = -1 };

enum { LOOK_MAX = 256 }; /* changes that one turn of the event loop decides about and tells of */

struct sync {
    struct work work; /* first */
    struct sync_order order;
    struct done {
        const struct change *change; /* borrowed */
        char *kept; /* owned: where the host's own file is until the end; NULL: we have its bytes */
        bool undone, told; /* what it made room for could not be written */
    } * done;              /* owned: what can be undone */
    size_t done_n;
    const struct change **heir; /* owned: heir_of() each change */
    unsigned char *answer;      /* owned: enum mount_answer about each */
    bool prepared;              /* both are known */
    bool later;                 /* there are more to decide about in another turn */
    size_t kept_n;              /* of those that are put aside */
    int type;                   /* which kind of change is looked at, or MAKING_ROOM */
    size_t next;                /* and which one of all */
    const struct change *now;
    int result;                /* of writing it */
    bool walled;               /* refused, and not by the modes of directories */
    struct sync_event *events; /* owned */
    size_t events_n, events_cap;
    const struct change **synced; /* owned: those that are written for good, at the end */
    bool failed;                  /* one could not be written, or there was no memory to say so */
    bool stopped;
    struct sync_report report;
};

/* What a deletion makes room for; NULL: for nothing. */
static const struct change *heir_of(const struct sync *s, const struct change *one)
{
    return s->heir[one - s->order.changes->v];
}

/* ---- one change ---- */

/* Where it belongs on the host: a directory and a path below it; -1: nowhere. */
static int target(const struct call_tree *t, const struct change *one, const char **ret)
{
    const struct mount_dir *d = mount_of(&t->mount, one->path);
    size_t n = d ? strlen(d->inside) : 0;

    if (!d || !one->path[n])
        return -1;
    *ret = one->path + n + 1;
    return t->fd[d - t->mount.dir];
}

static int apply(const struct call_tree *t, const struct change *one)
{
    const char *path = "";
    int root = target(t, one, &path);

    if (one->type == CHANGE_DELETED)
        return host_file_remove(root, path);
    if (!one->has_content)
        return -EFBIG;
    return host_file_write(root, path, (struct bytes){one->content.p, one->content.n});
}

static int undo(const struct call_tree *t, const struct done *d)
{
    const struct change *one = d->change;
    const char *path = "";
    int root = target(t, one, &path);

    if (d->kept)
        return host_file_restore(root, path, d->kept);
    if (one->before)
        return host_file_write(root, path, one->before->content);
    return host_file_remove(root, path);
}

/* Directories that one path leads through and that stand where the other is to be. */
static void make_room(const struct call_tree *t, const struct change *gone,
                      const struct change *comes)
{
    const char *path = "", *place = "";
    int root = target(t, gone, &path);

    if (root >= 0 && target(t, comes, &place) == root)
        host_dirs_remove(root, path, strlen(place));
}

/* What was deleted to make room for one that could not be written, or that is taken back. */
static void undo_room(struct sync *s, const struct change *one)
{
    for (size_t i = 0; i < s->done_n; i++) {
        struct done *d = &s->done[i];

        if (!heir_of(s, d->change) || d->undone || !change_excludes(one->path, d->change->path))
            continue;
        make_room(s->order.tree, one, d->change);
        d->undone = undo(s->order.tree, d) == 0;
        if (d->undone) {
            s->kept_n -= d->kept != NULL;
            free(take_ptr(&d->kept));
        }
    }
}

static void roll_back(struct sync *s)
{
    while (s->done_n > 0) {
        struct done *d = &s->done[s->done_n - 1];

        if (!d->undone)
            (void)!undo(s->order.tree, d);
        free(take_ptr(&d->kept));
        s->done_n--;
        if (d->change->type == CHANGE_CREATED)
            undo_room(s, d->change);
    }
    s->kept_n = 0;
    s->report.rolled_back = true;
}

/* A file whose bytes we never had is put aside instead, where everything may have to be undone. */
static int put_aside(struct sync *s, struct done *d)
{
    const char *path = "";
    int root = target(s->order.tree, d->change, &path);

    if ((s->order.rules->on_error != ERROR_ROLLBACK && !heir_of(s, d->change)) ||
        !d->change->before || !d->change->before->unread)
        return 0;
    return host_file_keep(root, path, &d->kept);
}

/* Nothing will be undone any more. */
static void forget_kept(struct sync *s)
{
    s->kept_n = 0;
    for (size_t i = 0; i < s->done_n; i++) {
        const char *path = "";
        int root = target(s->order.tree, s->done[i].change, &path);

        if (s->done[i].kept)
            (void)!host_file_forget(root, path, s->done[i].kept);
        free(take_ptr(&s->done[i].kept));
    }
}

static void step_apply(struct sync *s)
{
    struct done *d = &s->done[s->done_n];
    const char *path = "";
    int root = target(s->order.tree, s->now, &path);

    *d = (struct done){.change = s->now};
    s->result = put_aside(s, d);
    if (s->result == 0)
        s->result = apply(s->order.tree, s->now);
    if (s->result == 0) {
        if (heir_of(s, s->now))
            make_room(s->order.tree, s->now, heir_of(s, s->now));
        s->done_n++;
        s->kept_n += d->kept != NULL;
        return;
    }
    s->walled = s->result == -EACCES && host_file_is_walled(root, path);
    if (s->now->type == CHANGE_CREATED)
        undo_room(s, s->now);
    if (d->kept)
        (void)!host_file_forget(root, path, d->kept);
    free(take_ptr(&d->kept));
    s->stopped = s->order.rules->on_error != ERROR_CONTINUE;
}

/* ---- the report ---- */

static void note(struct sync *s, const struct sync_event *event)
{
    size_t cap = s->events_cap ? 2 * s->events_cap : 16;
    struct sync_event *more = s->events;

    if (s->events_n == s->events_cap) {
        more = reallocarray(s->events, cap, sizeof *more);
        if (!more)
            return;
        s->events = more;
        s->events_cap = cap;
    }
    s->events[s->events_n++] = *event;
}

static void tell(struct sync *s, enum sync_what what, const struct change *one, const char *error)
{
    const struct sync_event event = {.what = what, .change = one, .error = error};

    s->failed |= what == SYNC_ERROR;
    note(s, &event);
    if (s->order.event)
        s->order.event(s->order.user, &s->order.tree->mount, &event);
}

static const struct sync_report *report(struct sync *s)
{
    struct sync_report *r = &s->report;

    r->mount = &s->order.tree->mount;
    r->events = s->events;
    r->events_n = s->events_n;
    r->synced = s->synced;
    for (size_t i = 0; i < s->done_n; i++)
        if (!s->done[i].undone)
            s->synced[r->synced_n++] = s->done[i].change;
    return r;
}

bool sync_is_complete(const struct sync *s)
{
    return !s->stopped && !s->failed;
}

/* ---- all of them ---- */

static struct sync *of_work(struct work *w)
{
    return (struct sync *)w;
}

/* What the rules say about the next change; true: it is to be written. */
static bool is_wanted(struct sync *s, const struct change *one)
{
    const struct sync_order *o = &s->order;
    enum mount_answer answer = (enum mount_answer)s->answer[one - o->changes->v];
    const char *below;

    if (one->denied) {
        if (!one->ignored)
            tell(s, SYNC_DENIED, one, NULL);
        return false;
    }
    if (target(o->tree, one, &below) < 0) {
        note(s, &(struct sync_event){.what = SYNC_SKIPPED, .untold = true, .change = one});
        return false;
    }
    if (answer == ANSWER_SKIP) {
        tell(s, SYNC_SKIPPED, one, NULL);
        return false;
    }
    if (answer == ANSWER_ABORT && o->rules->allow_abort) {
        tell(s, SYNC_ABORTED, one, NULL);
        s->stopped = true;
        return false;
    }
    return true;
}

/* Is it the turn of such a change? */
static bool is_its_turn(const struct sync *s, const struct change *one)
{
    return heir_of(s, one) ? s->type == MAKING_ROOM : (int)one->type == s->type;
}

/* The next one to be written; false: there is none, or it is to be looked for later. */
static bool find_next(struct sync *s)
{
    const struct changes *all = s->order.changes;
    size_t looked = 0;

    for (; s->type < CHANGE_TYPES; s->type++, s->next = 0)
        while (s->next < all->n && !s->stopped) {
            const struct change *one = &all->v[s->next];

            s->later = is_its_turn(s, one) && looked++ == LOOK_MAX;
            if (s->later)
                return false;
            s->next++;
            if (is_its_turn(s, one) && is_wanted(s, one)) {
                s->now = one;
                return true;
            }
        }
    return false;
}

/* What the rules say of each change, and what each makes room for. */
static void prepare(struct sync *s)
{
    const struct changes *all = s->order.changes;
    const struct mount *rules = s->order.answers ? s->order.answers : s->order.rules;
    uint64_t steps = GLOB_STEPS_MAX;

    for (size_t i = 0; i < all->n; i++) {
        if (all->v[i].type == CHANGE_DELETED)
            s->heir[i] = changes_heir(all, &all->v[i]);
        s->answer[i] =
            (unsigned char)mount_answers(rules, &s->order.tree->mount, all->v[i].path, &steps);
    }
    s->prepared = true;
}

/* On a worker. Undoing is writing, too. */
static void step_run(struct work *w)
{
    struct sync *s = of_work(w);
    enum mount_error how = s->order.rules->on_error;

    if (!s->prepared)
        prepare(s);
    if (s->later)
        return;
    if (s->now)
        step_apply(s);
    if (s->stopped && how == ERROR_ROLLBACK)
        roll_back(s);
    else if (!s->now)
        forget_kept(s);
}

static void tell_undone(struct sync *s)
{
    static const char words[] = "what takes its place could not be written";

    for (size_t i = 0; i < s->done_n; i++) {
        struct done *d = &s->done[i];

        if (!d->undone || d->told)
            continue;
        d->told = true;
        tell(s, SYNC_ERROR, d->change, words);
    }
}

static const char *words_of(const struct sync *s)
{
    return s->walled ? "the daemon may write only below what MOUNT_ROOTS was when it started; if "
                       "that directory was made anew since, restart the daemon"
                     : strerrordesc_np(-s->result);
}

static void settle(struct sync *s)
{
    const char *words = s->result < 0 ? words_of(s) : "";

    if (s->result < 0)
        tell(s, SYNC_ERROR, s->now, words);
    tell(s, SYNC_AFTER, s->now, words);
    s->now = NULL;
    tell_undone(s);
}

static void step_done(struct work *w)
{
    struct sync *s = of_work(w);
    bool was_stopped = s->stopped;

    s->later = false;
    if (s->now)
        settle(s);
    if (!s->stopped && find_next(s))
        tell(s, SYNC_BEFORE, s->now, NULL);
    else if (!s->later && s->kept_n == 0 && (was_stopped || !s->stopped)) {
        s->order.done(s->order.user, report(s));
        return;
    }
    /* one more file, or the end of an aborted one, or of what was put aside */
    work_submit(s->order.work, &s->work);
}

static bool sync_init(struct sync *s)
{
    const struct changes *all = s->order.changes;

    s->done = calloc(all->n + 1, sizeof *s->done);
    s->heir = calloc(all->n + 1, sizeof *s->heir);
    s->answer = calloc(all->n + 1, sizeof *s->answer);
    s->synced = calloc(all->n + 1, sizeof *s->synced);
    return s->done && s->heir && s->answer && s->synced;
}

int sync_start(const struct sync_order *o, struct sync **ret, struct err *e)
{
    struct sync *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(e, ERR_HOST, "out of memory");
    s->order = *o;
    s->type = MAKING_ROOM;
    s->work = (struct work){.run = step_run, .done = step_done};
    if (!sync_init(s)) {
        sync_free(s);
        return err_set(e, ERR_HOST, "out of memory");
    }
    *ret = s;
    work_submit(o->work, &s->work);
    return 0;
}

void sync_free(struct sync *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->done && i < s->done_n; i++)
        free(s->done[i].kept);
    free(s->done);
    free(s->heir);
    free(s->answer);
    free(s->synced);
    free(s->events);
    free(s);
}
