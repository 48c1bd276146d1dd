/* SPDX-License-Identifier: MIT */
#include "app/function/kept_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "app/daemon/app.h"
#include "base/clock.h"
#include "function/known.h"

enum { US_PER_S = 1000000 };

/* What a call leaves behind: its changes and everything they point to. */
struct kept_sync {
    char id[EXECUTION_ID_MAX + 1];
    struct buf text; /* owned */
    struct call_request request;
    struct call_tree *tree; /* held */
    struct changes changes;
    struct call_file *old; /* owned: what the changes say was there before; or NULL */
    size_t bytes;
    uint64_t until_us;
    struct sync *sync;  /* owned: under way; else NULL */
    struct mount rules; /* of the sync under way */
    struct kept_calls *all;
    const struct sync_report *report; /* of it, when it is over */
    struct work_pool *pool;           /* borrowed */
    struct work work;                 /* renders the report */
    struct buf json;
    kept_render_fn *render;
    sync_event_fn *event;
    kept_done_fn *done; /* NULL: the client is gone */
    void *user;
    TAILQ_ENTRY(kept_sync) link;
};
TAILQ_HEAD(kept_list, kept_sync);

struct kept_calls {
    struct kept_list list; /* oldest first */
    size_t n, bytes;
    uint64_t age_us;
};

int kept_calls_new(uint64_t seconds, struct kept_calls **ret, struct err *e)
{
    struct kept_calls *k = calloc(1, sizeof *k);

    if (!k)
        return err_set(e, ERR_HOST, "out of memory");
    TAILQ_INIT(&k->list);
    k->age_us = seconds * US_PER_S;
    *ret = k;
    return 0;
}

static void drop(struct kept_sync *s)
{
    struct kept_calls *k = s->all;

    TAILQ_REMOVE(&k->list, s, link);
    k->n--;
    k->bytes -= s->bytes;
    sync_free(s->sync);
    mount_done(&s->rules);
    known_old_free(s->old, s->changes.n);
    changes_done(&s->changes);
    call_tree_drop(s->tree);
    call_request_done(&s->request);
    buf_done(&s->text);
    buf_done(&s->json);
    free(s);
}

void kept_calls_free(struct kept_calls *k)
{
    if (!k)
        return;
    for (struct kept_sync *s; (s = TAILQ_FIRST(&k->list));)
        drop(s);
    free(k);
}

/* Until everything is within its limits; what is being written stays. */
static void make_room(struct kept_calls *k, size_t count, size_t bytes)
{
    uint64_t now = clock_us();
    struct kept_sync *s, *next;

    for (s = TAILQ_FIRST(&k->list); s; s = next) {
        next = TAILQ_NEXT(s, link);
        if (!s->sync && (now >= s->until_us || k->n > count || k->bytes > bytes))
            drop(s);
    }
}

bool kept_calls_want(const struct kept_given *g)
{
    const struct mount *m = g->tree ? &g->tree->mount : NULL;

    if (!m || m->n == 0 || m->sync)
        return false;
    for (size_t i = 0; i < g->changes->n; i++)
        if (!g->changes->v[i].denied && mount_of(m, g->changes->v[i].path))
            return true;
    return false;
}

bool kept_calls_add(struct kept_calls *k, const struct kept_given *g)
{
    size_t bytes = g->bytes;
    struct kept_sync *s;

    for (size_t i = 0; i < g->changes->n; i++)
        bytes += g->changes->v[i].content.n;
    s = bytes <= KEPT_BYTES_MAX ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return false;
    make_room(k, KEPT_CALLS_MAX - 1, KEPT_BYTES_MAX - bytes);
    (void)snprintf(s->id, sizeof s->id, "%s", g->id);
    s->all = k;
    s->bytes = bytes;
    s->until_us = clock_us() + k->age_us;
    s->tree = g->tree;
    s->changes = *g->changes;
    s->old = g->old;
    *g->changes = (struct changes){0};
    if (g->text)
        s->text = *g->text;
    if (g->request)
        s->request = *g->request;
    TAILQ_INSERT_TAIL(&k->list, s, link);
    k->n++;
    k->bytes += bytes;
    return true;
}

/* ---- writing back ---- */

static void on_event(void *user, const struct mount *m, const struct sync_event *event)
{
    struct kept_sync *s = user;

    if (s->done && s->event)
        s->event(s->user, m, event);
}

static void render(struct work *w)
{
    struct kept_sync *s = container_of(w, struct kept_sync, work);

    s->render(s->report, &s->json);
}

/* What got there completely is over; the rest may be tried again. */
static void rendered(struct work *w)
{
    struct kept_sync *s = container_of(w, struct kept_sync, work);
    cleanup_with(buf_done) struct buf json = s->json;
    kept_done_fn *done = s->done;
    void *whose = s->user;

    s->json = BUF_INIT(0);
    if (sync_is_complete(s->sync)) {
        drop(s);
    } else {
        sync_free(take_ptr(&s->sync));
        mount_done(&s->rules);
        s->rules = (struct mount){0};
    }
    if (done)
        done(whose, &json);
}

static void on_done(void *user, const struct sync_report *report)
{
    struct kept_sync *s = user;

    s->report = report;
    s->work = (struct work){.run = render, .done = rendered};
    work_submit(s->pool, &s->work);
}

static struct kept_sync *find(struct kept_calls *k, const char *id)
{
    struct kept_sync *s;

    make_room(k, KEPT_CALLS_MAX, KEPT_BYTES_MAX);
    TAILQ_FOREACH(s, &k->list, link)
    if (strcmp(s->id, id) == 0)
        return s;
    return NULL;
}

int app_sync(struct app *a, const struct kept_order *o, struct kept_sync **ret, struct err *e)
{
    struct kept_sync *s = find(a->functions.changes, o->call_id);
    struct sync_order order = {.work = a->work, .event = on_event, .done = on_done, .user = s};
    struct mount rules;

    if (!s)
        return err_set(e, ERR_ABSENT,
                       "no call '%.128s' with changes to write back: it had none, they are written "
                       "back already, or they are no longer kept",
                       o->call_id);
    if (s->sync)
        return err_set(e, ERR_BUSY, "the changes of '%.128s' are being written back", o->call_id);
    if (mount_parse_sync(&rules, o->rules, &s->tree->mount, e) < 0) {
        mount_done(&rules);
        return -1;
    }
    s->rules = rules;
    order.tree = s->tree;
    order.changes = &s->changes;
    order.rules = &s->rules;
    if (rules.answers_n == 0)
        order.answers = &s->tree->mount; /* those of the call stay good */
    s->pool = a->work;
    s->event = o->event;
    s->render = o->render;
    s->done = o->done;
    s->user = o->user;
    if (sync_start(&order, &s->sync, e) < 0) {
        mount_done(&s->rules);
        s->rules = (struct mount){0};
        return -1;
    }
    *ret = s;
    return 0;
}

void kept_sync_abandon(struct kept_sync *s)
{
    s->done = NULL;
}
