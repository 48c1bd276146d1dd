/* SPDX-License-Identifier: MIT */
/*
 * A change of the published tools, from asked-for to told:
 *
 *   publish ──▶ INSPECTING ──▶ BUILDING ──┐
 *   restore ──▶ LOADING ──────────────────┼──▶ WAITING ──▶ STORING ──▶ told
 *   remove ───────────────────────────────┘
 *
 * One is STORING at a time: what it may be called, and its version, are decided before it writes
 * and are still right afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/inspection.h"
#include "app/mcp/sessions.h"
#include "app/tools/record.h"
#include "base/clock.h"

enum { ESCAPE_FACTOR = 6, DRAFT_ROOM = 64 << 10 };

enum publication_state { INSPECTING, BUILDING, LOADING, WAITING, STORING };

struct publication {
    struct work work; /* first */
    TAILQ_ENTRY(publication) link;
    struct toolbox *box; /* borrowed */
    enum publication_state state;
    bool removes, made;
    char name[BUNDLE_NAME_MAX + 1];
    int64_t version;          /* LOADING: the one that is wanted; STORING: the new one */
    int64_t expected_version; /* below 0: any */
    char dir[TOOLBOX_PATH];
    struct inspect *inspect; /* owned while INSPECTING; else NULL */
    struct buf answer;       /* owned: the inspector's */
    struct bundle *bundle;   /* owned: as far as it is known */
    struct err error;        /* kind ERR_NONE: none */
    const char *by;          /* static */
    toolbox_reserved_fn *reserved;
    toolbox_done_fn *done; /* NULL: nobody wants to hear of it */
    void *user;
};

/* ---- the end ---- */

static void publication_free(struct publication *p)
{
    TAILQ_REMOVE(&p->box->active, p, link);
    p->box->active_n--;
    if (p->inspect)
        inspect_cancel(take_ptr(&p->inspect));
    bundle_free(p->bundle);
    buf_done(&p->answer);
    free(p);
}

static void log_change(const struct publication *p)
{
    const char *what = p->removes ? "tools_removed" : "tools_published";

    log_event(&p->box->app->log, LOG_INFO, what, LOG_STR("bundle", p->name),
              LOG_INT("version", p->version), LOG_STR("by", p->by));
}

static void store_next(struct toolbox *t);

/* b: what there is now; NULL: it failed, or was removed. */
static void finish(struct publication *p, const struct bundle *b)
{
    struct toolbox *t = p->box;

    if (p->done)
        p->done(p->user, b, p->made, p->error.kind == ERR_NONE ? NULL : &p->error);
    publication_free(p);
    store_next(t);
}

/* ---- storing ---- */

static void write_version(struct publication *p)
{
    struct bundle_members m = p->bundle->is;
    char now[CLOCK_ISO_MAX];
    struct bundle *whole;

    (void)clock_iso(now);
    m.version = p->version;
    m.created_at = (struct bytes){now, strlen(now)};
    m.by = (struct bytes){p->by, strlen(p->by)};
    if (bundle_remake(&m, p->bundle->text.n + DRAFT_ROOM, &whole, &p->error) < 0)
        return;
    bundle_free(p->bundle);
    p->bundle = whole;
}

static void store_run(struct work *w)
{
    struct publication *p = (struct publication *)w;

    if (p->removes) {
        record_prune(p->dir, p->name, 0);
        return;
    }
    write_version(p);
    if (p->error.kind == ERR_NONE && record_save(p->dir, p->bundle, &p->error) == 0)
        record_prune(p->dir, p->name, TOOLBOX_VERSIONS);
}

static void store_done(struct work *w)
{
    struct publication *p = (struct publication *)w;
    struct toolbox *t = p->box;
    struct bundle *b = NULL, *old = toolbox_bundle(t, p->name, strlen(p->name));

    t->storing = NULL;
    if (p->error.kind == ERR_NONE) {
        if (!p->removes) {
            b = take_ptr(&p->bundle);
            toolbox_put_in(t, b);
        } else if (old) {
            toolbox_take_out(t, old);
        }
        log_change(p);
        if (t->app->mcp_side.sessions)
            mcp_tools_changed(t->app->mcp_side.sessions);
    }
    finish(p, b);
}

static int may_store(struct publication *p, struct err *e)
{
    const struct bundle *old = toolbox_bundle(p->box, p->name, strlen(p->name));
    int64_t there = old ? old->is.version : 0;

    if (p->removes && !old)
        return err_set(e, ERR_ABSENT, "there is no bundle '%s'", p->name);
    if (p->expected_version >= 0 && p->expected_version != there) {
        (void)err_set(e, ERR_BUSY, "bundle '%s' has version %lld, not %lld", p->name,
                      (long long)there, (long long)p->expected_version);
        return err_type(e, ERR_NONE, TOOLBOX_CONFLICT);
    }
    p->made = !old;
    p->version = p->removes ? there : there + 1;
    return p->removes ? 0 : toolbox_admits(p->box, p->bundle, p->reserved, e);
}

/* The first that waits has the disk. */
static void store_next(struct toolbox *t)
{
    struct publication *p;

    if (t->storing)
        return;
    TAILQ_FOREACH(p, &t->active, link)
    if (p->state == WAITING)
        break;
    if (!p)
        return;
    if (may_store(p, &p->error) < 0) {
        finish(p, NULL); /* and the next one */
        return;
    }
    t->storing = p;
    p->state = STORING;
    p->work = (struct work){.run = store_run, .done = store_done, .lane = WORK_SHORT};
    work_submit(t->app->work, &p->work);
}

/* What it is to be is known, or why it cannot be. */
static void on_built(struct work *w)
{
    struct publication *p = (struct publication *)w;

    if (p->error.kind != ERR_NONE) {
        finish(p, NULL);
        return;
    }
    p->state = WAITING;
    store_next(p->box);
}

/* ---- building: from the answer of the inspector ---- */

static int build(struct publication *p, struct err *e)
{
    struct bundle_members m = p->bundle->is;
    const struct bundle_choice choice = {
        .bundle = m.name,
        .prefix = m.prefix,
        .include = m.include.v,
        .include_n = m.include.n,
        .exclude = m.exclude.v,
        .exclude_n = m.exclude.n,
    };
    cleanup_with(buf_done) struct buf tools = BUF_INIT(BUNDLE_RECORD_ROOM),
                                      warnings = BUF_INIT(BUNDLE_RECORD_ROOM);
    struct json_value answer;
    struct bundle *built;

    if (json_parse(p->answer.p, p->answer.n, 0, &answer, e) < 0 ||
        bundle_write_tools(&choice, answer, &tools, &warnings, e) < 0)
        return -1;
    m.tools = (struct json_value){JSON_ARRAY, tools.p, tools.n};
    m.warnings = (struct json_value){JSON_ARRAY, warnings.p, warnings.n};
    if (bundle_remake(&m, p->bundle->text.n + 2 * (size_t)BUNDLE_RECORD_ROOM, &built, e) < 0)
        return -1;
    bundle_free(p->bundle);
    p->bundle = built;
    return 0;
}

static void build_run(struct work *w)
{
    struct publication *p = (struct publication *)w;

    (void)!build(p, &p->error);
}

static void take_answer(struct publication *p, const struct inspect_answer *a)
{
    p->answer = BUF_INIT(a->json.n + 1);
    if (a->status != INSPECT_OK)
        (void)err_set(&p->error, a->status == INSPECT_REFUSED ? ERR_CALLER : ERR_HOST,
                      "code: %s: %s", a->type, a->message);
    else if (buf_put(&p->answer, a->json.p, a->json.n) < 0)
        (void)err_set(&p->error, ERR_HOST, "out of memory");
    p->state = BUILDING;
    p->work = (struct work){.run = build_run, .done = on_built, .lane = WORK_SHORT};
    if (p->error.kind != ERR_NONE)
        work_forget(&p->work);
    work_submit(p->box->app->work, &p->work);
}

static void on_inspected(void *user, const struct inspect_answer *a)
{
    struct publication *p = user;

    p->inspect = NULL;
    take_answer(p, a);
}

static int inspect_begin(struct publication *p, struct err *e)
{
    struct app *a = p->box->app;
    struct inspect_order order = {.language = p->bundle->is.language.p,
                                  .code = p->bundle->is.code,
                                  .done = on_inspected,
                                  .user = p};
    struct inspect_answer known;

    p->state = INSPECTING;
    if (!inspect_known(a, order.language, order.code, &known))
        return inspect_start(a, &order, &p->inspect, e);
    take_answer(p, &known);
    return 0;
}

/* ---- the beginning ---- */

static struct publication *publication_new(struct toolbox *t, struct bytes name, struct err *e)
{
    struct publication *p;

    if (!name.p || !bundle_name_is_good(name.p, name.n)) {
        (void)err_set(e, ERR_CALLER,
                      "bundle: a name of at most %d letters, digits, _ and -, which begins with a "
                      "letter, is needed",
                      BUNDLE_NAME_MAX);
        return NULL;
    }
    if (t->active_n >= TOOLBOX_WAITING) {
        (void)err_set(e, ERR_BUSY, "%d changes of tools are under way", TOOLBOX_WAITING);
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (!p) {
        (void)err_set(e, ERR_HOST, "no memory for tools");
        return NULL;
    }
    p->box = t;
    p->expected_version = -1;
    (void)snprintf(p->name, sizeof p->name, "%s", name.p);
    toolbox_dir(t, p->dir);
    TAILQ_INSERT_TAIL(&t->active, p, link);
    t->active_n++;
    return p;
}

static struct bytes text_of(const char *text)
{
    return (struct bytes){text, strlen(text)};
}

/* A record without tools: so everything that was asked for is our own. */
static int draft(struct publication *p, const struct publish_order *o, struct err *e)
{
    const char *language = inspect_language(o->language.p);
    const struct json_value none = {JSON_ARRAY, "[]", 2};
    char sha256[SHA256_HEX] = "";
    struct bundle_members m;
    size_t room;

    if (!language)
        return err_set(e, ERR_CALLER, "language: must be python, javascript, ruby, php, c or cpp");
    if (o->code.n > p->box->app->config.code_max)
        return err_set(e, ERR_CALLER, "code: longer than %zu bytes",
                       (size_t)p->box->app->config.code_max);
    sha256_hex(o->code.p, o->code.n, sha256);
    m = (struct bundle_members){
        .name = o->bundle,
        .language = text_of(language),
        .code = o->code,
        .prefix = o->prefix,
        .sha256 = text_of(sha256),
        .created_at = text_of(""),
        .by = text_of(""),
        .version = 1,
        .timeout_s = o->timeout_s > 0 ? o->timeout_s : BUNDLE_TIMEOUT_S,
        .memory_mb = o->memory_mb,
        .env = o->env,
        .include = o->include,
        .exclude = o->exclude,
        .tools = none,
        .warnings = none,
    };
    room = o->code.n * ESCAPE_FACTOR + DRAFT_ROOM + bundle_vars_room(&m) * ESCAPE_FACTOR;
    return bundle_remake(&m, room, &p->bundle, e);
}

int toolbox_publish(struct toolbox *t, const struct publish_order *o, struct publication **ret,
                    struct err *e)
{
    struct publication *p = publication_new(t, o->bundle, e);

    if (!p)
        return -1;
    p->expected_version = o->expected_version;
    p->by = o->by;
    p->reserved = o->reserved;
    p->done = o->done;
    p->user = o->user;
    if (draft(p, o, e) == 0 && inspect_begin(p, e) == 0) {
        *ret = p;
        return 0;
    }
    publication_free(p);
    return -1;
}

static void load_run(struct work *w)
{
    struct publication *p = (struct publication *)w;
    char path[TOOLBOX_PATH];

    record_path(path, p->dir, p->name, p->version);
    if (record_load(path, &p->bundle, &p->error) < 0)
        (void)err_set(&p->error, ERR_ABSENT, "bundle '%s' has no version %lld", p->name,
                      (long long)p->version);
}

int toolbox_restore(struct toolbox *t, const struct change_order *o, struct publication **ret,
                    struct err *e)
{
    struct publication *p = publication_new(t, o->bundle, e);

    if (!p)
        return -1;
    p->version = o->version;
    p->by = o->by;
    p->reserved = o->reserved;
    p->done = o->done;
    p->user = o->user;
    p->state = LOADING;
    p->work = (struct work){.run = load_run, .done = on_built, .lane = WORK_SHORT};
    work_submit(t->app->work, &p->work);
    *ret = p;
    return 0;
}

static void nothing(struct work *w)
{
    (void)w;
}

int toolbox_remove(struct toolbox *t, const struct change_order *o, struct publication **ret,
                   struct err *e)
{
    struct publication *p = publication_new(t, o->bundle, e);

    if (!p)
        return -1;
    p->removes = true;
    p->by = o->by;
    p->done = o->done;
    p->user = o->user;
    p->work = (struct work){.run = nothing, .done = on_built, .lane = WORK_SHORT};
    work_submit(t->app->work, &p->work); /* so that done() comes later */
    *ret = p;
    return 0;
}

void publication_leave(struct publication *p)
{
    p->done = NULL;
}

void publications_done(struct toolbox *t)
{
    struct publication *p;

    while ((p = TAILQ_FIRST(&t->active)))
        publication_free(p);
}

/* ---- looking at an earlier version ---- */

struct look {
    struct work work; /* first */
    char path[TOOLBOX_PATH];
    struct bundle *bundle; /* owned */
    struct err error;
    toolbox_look_fn *done;
    void *user;
};

static void look_run(struct work *w)
{
    struct look *l = (struct look *)w;

    if (record_load(l->path, &l->bundle, &l->error) < 0)
        (void)err_set(&l->error, ERR_ABSENT, "the bundle has no such version");
}

static void look_done(struct work *w)
{
    struct look *l = (struct look *)w;

    l->done(l->user, l->bundle, l->bundle ? NULL : &l->error);
    bundle_free(l->bundle);
    free(l);
}

int toolbox_look(struct toolbox *t, struct bytes bundle, int64_t version, toolbox_look_fn *done,
                 void *user, struct err *e)
{
    struct look *l;
    char dir[TOOLBOX_PATH];

    if (!bundle_name_is_good(bundle.p, bundle.n))
        return err_set(e, ERR_ABSENT, "there is no such bundle");
    l = calloc(1, sizeof *l);
    if (!l)
        return err_set(e, ERR_HOST, "out of memory");
    toolbox_dir(t, dir);
    record_path(l->path, dir, bundle.p, version);
    l->done = done;
    l->user = user;
    l->work = (struct work){.run = look_run, .done = look_done, .lane = WORK_SHORT};
    work_submit(t->app->work, &l->work);
    return 0;
}
