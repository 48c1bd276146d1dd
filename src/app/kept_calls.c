/* SPDX-License-Identifier: MIT */
#include "app/kept_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "app/app.h"
#include "base/clock.h"

enum { US_PER_S = 1000000 };

/* What a call leaves behind: its changes and everything they point to. */
struct kept_sync {
    char id[EXECUTION_ID_MAX + 1];
    struct buf text; /* owned */
    struct call_request request;
    struct call_tree *tree; /* held */
    struct changes changes;
    size_t bytes;
    uint64_t until_us;
    struct sync *sync;  /* owned: under way; else NULL */
    struct mount rules; /* of the sync under way */
    struct kept_calls *all;
    sync_event_fn *event;
    kept_done_fn *done; /* NULL: nobody waits */
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
    changes_done(&s->changes);
    call_tree_drop(s->tree);
    call_request_done(&s->request);
    buf_done(&s->text);
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

static size_t bytes_of(const struct call *c)
{
    size_t n = c->text.n + c->request.arena.n;

    for (size_t i = 0; i < c->request.files_n; i++)
        n += c->request.files[i].content.n;
    for (size_t i = 0; i < c->collect.changes.n; i++)
        n += c->collect.changes.v[i].content.n;
    return n;
}

/* Is there anything that could go back? */
static bool is_worth_it(const struct call *c)
{
    if (!c->ran || !c->result.scanned || c->tree->mount.n == 0 || c->tree->mount.sync)
        return false;
    for (size_t i = 0; i < c->collect.changes.n; i++)
        if (!c->collect.changes.v[i].denied && mount_of(&c->tree->mount, c->collect.changes.v[i].path))
            return true;
    return false;
}

void kept_calls_add(struct kept_calls *k, struct call *c)
{
    size_t bytes = is_worth_it(c) ? bytes_of(c) : SIZE_MAX;
    struct kept_sync *s = bytes <= KEPT_BYTES_MAX ? calloc(1, sizeof *s) : NULL;

    if (!s)
        return;
    make_room(k, KEPT_CALLS_MAX - 1, KEPT_BYTES_MAX - bytes);
    memcpy(s->id, c->id, sizeof s->id);
    s->all = k;
    s->bytes = bytes;
    s->until_us = clock_us() + k->age_us;
    s->text = c->text;
    s->request = c->request;
    s->tree = take_ptr(&c->tree);
    s->changes = c->collect.changes;
    c->text = BUF_INIT(0);
    c->request = (struct call_request){0};
    c->collect.changes = (struct changes){0};
    TAILQ_INSERT_TAIL(&k->list, s, link);
    k->n++;
    k->bytes += bytes;
}

/* ---- writing back ---- */

static void on_event(void *user, const char *event, const char *json, size_t n)
{
    struct kept_sync *s = user;

    if (s->done && s->event)
        s->event(s->user, event, json, n);
}

/* What got there completely is over; the rest may be tried again. */
static void on_done(void *user, struct sync *sync)
{
    struct kept_sync *s = user;
    cleanup_with(buf_done) struct buf json = BUF_INIT(0);
    kept_done_fn *done = s->done;
    void *whose = s->user;

    sync_report(sync, &json);
    if (sync_is_complete(sync)) {
        drop(s);
    } else {
        sync_free(take_ptr(&s->sync));
        mount_done(&s->rules);
        s->rules = (struct mount){0};
    }
    if (done)
        done(whose, &json);
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
    struct kept_sync *s = find(a->kept, o->call_id);
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
    if (rules.answers_n == 0) { /* those of the call stay good */
        memcpy(s->rules.answer, s->tree->mount.answer, sizeof rules.answer);
        s->rules.answers_n = s->tree->mount.answers_n;
    }
    s->event = o->event;
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
