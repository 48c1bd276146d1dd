/* SPDX-License-Identifier: MIT */
#include "app/execution/workspaces.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/daemon/app.h"
#include "app/execution/workspace_record.h"

enum {
    BUCKETS = 1024,
    FLUSH_S = 1,       /* until a new record is written */
    SAVE_AGAIN_S = 60, /* and until it is written once more while its workspace is used */
    WAIT_MAX_S = 3600, /* between two looks for workspaces that are too old */
    RETRY_S = 600,     /* after one could not be removed */
    PATH_ROOM = 16,
};
#define US_PER_S 1000000

TAILQ_HEAD(workspace_list, workspace);

/* One that is measured or removed. */
struct workspace_order {
    struct workspaces *all;
    struct measuring *m;
    char name[SESSION_WORKSPACE_MAX];
    bool discard;
    workspace_fn *fn; /* NULL: its caller has left */
    void *user;
    LIST_ENTRY(workspace_order) link;
};

struct workspaces {
    struct app *app;                   /* borrowed */
    struct workspace_records *records; /* owned */
    struct event *flush, *expiry;      /* owned */
    struct workspace_list all;         /* by number */
    struct workspace_list idle;        /* by last use, the oldest first */
    SLIST_HEAD(workspace_bucket, workspace) buckets[BUCKETS];
    LIST_HEAD(, workspace_order) orders;
    uint64_t last; /* number given */
    bool expiring; /* one of the orders is ours */
    bool stopped;
};

static int64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

/* ---- the table ---- */

static struct workspace_bucket *bucket_of(struct workspaces *all, const char *name)
{
    uint32_t h = 2166136261u;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return &all->buckets[h % BUCKETS];
}

static struct workspace *find(struct workspaces *all, const char *name)
{
    struct workspace *w;

    SLIST_FOREACH(w, bucket_of(all, name), chain)
    {
        if (strcmp(w->name, name) == 0)
            break;
    }
    return w;
}

static struct workspace *add(struct workspaces *all, const struct workspace *like)
{
    struct workspace *w = malloc(sizeof *w);

    if (!w)
        return NULL;
    *w = *like;
    w->number = ++all->last;
    TAILQ_INSERT_TAIL(&all->all, w, all);
    TAILQ_INSERT_TAIL(&all->idle, w, idle);
    SLIST_INSERT_HEAD(bucket_of(all, w->name), w, chain);
    return w;
}

static void drop(struct workspaces *all, struct workspace *w)
{
    TAILQ_REMOVE(&all->all, w, all);
    TAILQ_REMOVE(&all->idle, w, idle);
    SLIST_REMOVE(bucket_of(all, w->name), w, workspace, chain);
    free(w);
}

struct workspace *workspaces_find(struct workspaces *all, const char *session_id)
{
    char name[SESSION_WORKSPACE_MAX];
    struct workspace *w;

    if (all->app->workspace.sessions.own[0] &&
        strcmp(session_id, all->app->workspace.sessions.own) == 0)
        (void)snprintf(name, sizeof name, "%s", PLAN_WORKSPACE_OWN);
    else
        session_workspace(session_id, name);
    w = find(all, name);
    return w && !w->discarding ? w : NULL;
}

struct workspace *workspaces_before(struct workspaces *all, uint64_t number)
{
    struct workspace *w;

    TAILQ_FOREACH_REVERSE(w, &all->all, workspace_list, all)
    {
        if (w->number < number && !w->discarding)
            break;
    }
    return w;
}

struct workspace *workspace_older(struct workspace *w)
{
    do
        w = TAILQ_PREV(w, workspace_list, all);
    while (w && w->discarding);
    return w;
}

bool workspace_in_use(struct workspaces *all, const struct workspace *w)
{
    return session_is_busy(&all->app->workspace.sessions, w->id);
}

/* ---- records ---- */

static void flush_all(struct workspaces *all, int64_t older_us)
{
    struct workspace *w;
    int64_t now = now_us();

    TAILQ_FOREACH_REVERSE(w, &all->idle, workspace_list, idle)
    {
        if (now - w->used_us > 2 * (int64_t)SAVE_AGAIN_S * US_PER_S)
            break; /* those before it were used earlier */
        if (w->used_us - w->saved_us >= older_us && workspace_records_put(all->records, w) == 0)
            w->saved_us = w->used_us;
    }
}

static void on_flush(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    flush_all(user, (int64_t)SAVE_AGAIN_S * US_PER_S);
}

static void flush_soon(struct workspaces *all)
{
    const struct timeval tv = {.tv_sec = FLUSH_S};

    if (!all->stopped && !event_pending(all->flush, EV_TIMEOUT, NULL))
        (void)event_add(all->flush, &tv);
}

/* ---- age ---- */

static void expiry_arm(struct workspaces *all, int64_t least_s)
{
    const struct workspace *w = TAILQ_FIRST(&all->idle);
    int64_t max_s = (int64_t)all->app->config.session_max_age_s;
    struct timeval tv = {.tv_sec = WAIT_MAX_S};
    int64_t left;

    if (!w || max_s == 0 || all->expiring || all->stopped)
        return;
    left = max_s - (now_us() - w->used_us) / US_PER_S + 1;
    if (left < least_s)
        left = least_s;
    if (left < WAIT_MAX_S)
        tv.tv_sec = left < 0 ? 0 : (time_t)left;
    (void)event_add(all->expiry, &tv);
}

static void expire_next(struct workspaces *all);

static void on_expired(void *user, struct workspace *w, const char *failed)
{
    struct workspaces *all = user;

    all->expiring = false;
    if (w || failed)
        expiry_arm(all, RETRY_S);
    else
        expire_next(all);
}

static bool is_too_old(const struct workspaces *all, const struct workspace *w)
{
    return now_us() - w->used_us > (int64_t)all->app->config.session_max_age_s * US_PER_S;
}

/* What cannot go is as if it had been used now. */
static void expire_next(struct workspaces *all)
{
    struct workspace *w;
    struct workspace_order *order;
    struct err e;

    while ((w = TAILQ_FIRST(&all->idle)) && is_too_old(all, w)) {
        int64_t used_us = w->used_us;

        if (workspace_discard(all, w, on_expired, all, &order, &e) == 0) {
            all->expiring = true;
            log_event(&all->app->log, LOG_INFO, "workspace_expired", LOG_STR("session_id", w->id),
                      LOG_STR("name", w->name),
                      LOG_INT("unused_seconds", (now_us() - used_us) / US_PER_S));
            return;
        }
        if (e.kind == ERR_HOST) {
            expiry_arm(all, RETRY_S);
            return;
        }
        w->used_us = now_us();
        TAILQ_REMOVE(&all->idle, w, idle);
        TAILQ_INSERT_TAIL(&all->idle, w, idle);
    }
    expiry_arm(all, 0);
}

static void on_expiry(evutil_socket_t fd, short what, void *user)
{
    struct workspaces *all = user;

    (void)fd, (void)what;
    if (!all->expiring)
        expire_next(all);
}

/* ---- use ---- */

void workspaces_used(struct workspaces *all, const struct session *s)
{
    struct workspace *w = find(all, s->workspace);
    int64_t now = now_us();

    if (!w) {
        struct workspace new = {.created_us = now};

        (void)snprintf(new.name, sizeof new.name, "%s", s->workspace);
        w = add(all, &new);
    }
    if (!w)
        return;
    if (w->discarding) { /* what is on its way out has another name already */
        w->discarding = false;
        w->created_us = now;
        w->measured_us = 0;
    }
    (void)snprintf(w->id, sizeof w->id, "%s", s->id);
    w->used_us = now;
    TAILQ_REMOVE(&all->idle, w, idle);
    TAILQ_INSERT_TAIL(&all->idle, w, idle);
    if (now - w->saved_us >= (int64_t)SAVE_AGAIN_S * US_PER_S)
        flush_soon(all);
    if (!event_pending(all->expiry, EV_TIMEOUT, NULL))
        expiry_arm(all, 0);
}

void workspaces_measured(struct workspaces *all, const char *name, const struct workspace_size *s)
{
    struct workspace *w = find(all, name);

    if (!w || s->error || s->gone)
        return;
    w->bytes = s->bytes;
    w->files = s->files;
    w->measured_us = now_us();
}

/* ---- orders ---- */

static void order_free(struct workspace_order *o)
{
    LIST_REMOVE(o, link);
    free(o);
}

static void on_discarded(struct workspaces *all, struct workspace *w, const char *name,
                         const struct workspace_size *s)
{
    if (s->error)
        log_event(&all->app->log, LOG_WARN, "workspace_not_removed", LOG_STR("name", name),
                  LOG_STR("reason", strerror(s->error)));
    if (!w || !w->discarding) /* it is in use again, and new */
        return;
    w->discarding = false;
    if (!s->gone)
        return;
    workspace_records_remove(all->records, name);
    drop(all, w);
}

static void on_answer(void *user, const struct workspace_size *s)
{
    struct workspace_order *o = user;
    struct workspaces *all = o->all;
    struct workspace *w = find(all, o->name);
    workspace_fn *fn = o->fn;
    void *whose = o->user;

    if (o->discard)
        on_discarded(all, w, o->name, s);
    else
        workspaces_measured(all, o->name, s);
    if (!o->discard && s->gone && w && !workspace_in_use(all, w)) {
        workspace_records_remove(all->records, o->name); /* the operator has removed it */
        drop(all, w);
    }
    w = find(all, o->name);
    order_free(o);
    if (fn)
        fn(whose, w, s->error ? strerror(s->error) : NULL);
}

static int order_new(struct workspaces *all, const struct workspace *w, bool discard,
                     workspace_fn *fn, void *user, struct workspace_order **ret, struct err *e)
{
    const struct workspace_ask ask = {.name = w->name, .discard = discard};
    struct jail *j = all->app->jail;
    struct workspace_order *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(e, ERR_HOST, "no memory for a look at a workspace");
    *o = (struct workspace_order){.all = all, .discard = discard, .fn = fn, .user = user};
    memcpy(o->name, w->name, sizeof o->name);
    LIST_INSERT_HEAD(&all->orders, o, link);
    if (j->ops->workspace(j, &ask, on_answer, o, &o->m, e) < 0) {
        order_free(o);
        return -1;
    }
    *ret = o;
    return 0;
}

int workspace_measure(struct workspaces *all, const struct workspace *w, workspace_fn *fn,
                      void *user, struct workspace_order **ret, struct err *e)
{
    return order_new(all, w, false, fn, user, ret, e);
}

int workspace_discard(struct workspaces *all, struct workspace *w, workspace_fn *fn, void *user,
                      struct workspace_order **ret, struct err *e)
{
    if (strcmp(w->name, PLAN_WORKSPACE_OWN) == 0)
        return err_set(e, ERR_DENIED,
                       "the workspace of this session is WORKSPACE_PATH itself, which the operator "
                       "has given");
    if (w->discarding || workspace_in_use(all, w))
        return err_set(e, ERR_BUSY, "an execution of the session is using it");
    if (order_new(all, w, true, fn, user, ret, e) < 0)
        return -1;
    w->discarding = true;
    return 0;
}

void workspace_leave(struct workspace_order *o)
{
    o->fn = NULL;
}

/* ---- opening and closing ---- */

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

static int by_creation(const void *a, const void *b)
{
    const struct workspace *const *x = a, *const *y = b;

    return ((*x)->created_us > (*y)->created_us) - ((*x)->created_us < (*y)->created_us);
}

static int by_use(const void *a, const void *b)
{
    const struct workspace *const *x = a, *const *y = b;

    return ((*x)->used_us > (*y)->used_us) - ((*x)->used_us < (*y)->used_us);
}

/* Those that were read come in the order of the directory. */
static int put_in_order(struct workspaces *all, struct err *e)
{
    cleanup_free struct workspace **list = calloc(all->last + 1, sizeof(struct workspace *));
    struct workspace *w;
    size_t n = 0;

    if (!list)
        return err_set(e, ERR_HOST, "no memory for workspaces");
    TAILQ_FOREACH(w, &all->all, all)
    {
        list[n++] = w;
    }
    TAILQ_INIT(&all->all);
    TAILQ_INIT(&all->idle);
    qsort(list, n, sizeof(struct workspace *), by_creation);
    for (size_t i = 0; i < n; i++) {
        list[i]->number = i + 1;
        TAILQ_INSERT_TAIL(&all->all, list[i], all);
    }
    qsort(list, n, sizeof(struct workspace *), by_use);
    for (size_t i = 0; i < n; i++)
        TAILQ_INSERT_TAIL(&all->idle, list[i], idle);
    all->last = n;
    return 0;
}

static void on_record(void *user, const struct workspace *read)
{
    struct workspaces *all = user;
    bool own = strcmp(read->name, PLAN_WORKSPACE_OWN) == 0;

    if (own && strcmp(read->id, all->app->workspace.sessions.own) != 0)
        return; /* of another session, which this daemon served before */
    if (!find(all, read->name))
        (void)add(all, read);
}

static bool is_workspace(const struct dirent *at)
{
    return strlen(at->d_name) < SESSION_WORKSPACE_MAX &&
           (at->d_type == DT_DIR || at->d_type == DT_UNKNOWN) &&
           (strncmp(at->d_name, "s-", 2) == 0 || strncmp(at->d_name, "h-", 2) == 0);
}

/* A name that is no digest holds the id. */
static void adopt(struct workspaces *all, const char *name)
{
    struct workspace *w = find(all, name), new = {.created_us = now_us(), .used_us = now_us()};

    if (!w) {
        (void)snprintf(new.name, sizeof new.name, "%.*s", SESSION_WORKSPACE_MAX - 1, name);
        if (name[0] == 's')
            (void)snprintf(new.id, sizeof new.id, "%s", name + 2);
        w = add(all, &new);
        if (w && workspace_records_put(all->records, w) == 0)
            w->saved_us = w->used_us;
    }
    if (w)
        w->measured_us = -1; /* seen */
}

/* The directories decide; the records say more about them. */
static void compare(struct workspaces *all, DIR *d)
{
    struct workspace *w, *next;

    for (const struct dirent *at; (at = readdir(d));)
        if (is_workspace(at))
            adopt(all, at->d_name);
    for (w = TAILQ_FIRST(&all->all); w; w = next) {
        next = TAILQ_NEXT(w, all);
        if (w->measured_us < 0 || strcmp(w->name, PLAN_WORKSPACE_OWN) == 0) {
            w->measured_us = 0;
            continue;
        }
        workspace_records_remove(all->records, w->name);
        drop(all, w);
    }
}

static int open_events(struct workspaces *all, struct err *e)
{
    struct event_base *base = all->app->base;

    all->flush = evtimer_new(base, on_flush, all);
    all->expiry = evtimer_new(base, on_expiry, all);
    return all->flush && all->expiry ? 0 : err_set(e, ERR_HOST, "no memory for an event");
}

int workspaces_open(struct app *a, int root, struct workspaces **ret, struct err *e)
{
    char path[CONFIG_TEXT_MAX + PATH_ROOM];
    cleanup_with(closedirp) DIR *d = root >= 0 ? fdopendir(root) : NULL;
    struct workspaces *all = calloc(1, sizeof *all);

    if (!all)
        return err_set(e, ERR_HOST, "no memory for workspaces");
    all->app = a;
    TAILQ_INIT(&all->all);
    TAILQ_INIT(&all->idle);
    *ret = all; /* workspaces_close() ends it, however far this comes */
    (void)snprintf(path, sizeof path, "%s/sessions", a->config.state_dir);
    if (open_events(all, e) < 0 ||
        workspace_records_open(path, a->work, on_record, all, &all->records, e) < 0)
        return -1;
    if (d)
        compare(all, d);
    if (put_in_order(all, e) < 0)
        return -1;
    expiry_arm(all, 0);
    return 0;
}

void workspaces_stop(struct workspaces *all)
{
    if (!all || all->stopped)
        return;
    all->stopped = true;
    if (!all->records)
        return;
    workspace_records_stop(all->records);
    flush_all(all, 1);
}

void workspaces_close(struct workspaces *all)
{
    struct workspace_order *o;
    struct workspace *w;

    if (!all)
        return;
    while ((o = LIST_FIRST(&all->orders))) {
        measuring_cancel(o->m);
        order_free(o);
    }
    while ((w = TAILQ_FIRST(&all->all)))
        drop(all, w);
    workspace_records_close(all->records);
    if (all->flush)
        event_free(all->flush);
    if (all->expiry)
        event_free(all->expiry);
    free(all);
}
