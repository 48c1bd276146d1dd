/* SPDX-License-Identifier: MIT */
/* The end of a call: the outcome, changes that go back to their mounts, the answer. */
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_inner.h"
#include "app/function/kept_calls.h"

enum {
    RENDER_INLINE = 256 * 1024,  /* larger answers do not block the loop */
    RENDER_OVERHEAD = 64 * 1024, /* an answer beside its texts */
    ESCAPE_FACTOR = 6,           /* one byte becomes at most \u00XX */
};

/* ---- delivering ---- */

static void log_done(const struct call *c)
{
    const struct stamps *at = &c->result.at;

    log_event(&c->app->log, LOG_INFO, "call_done", LOG_STR("execution_id", c->id),
              LOG_STR("request_id", c->request_id),
              LOG_STR("language", c->lang >= 0 ? call_lang((size_t)c->lang)->name : ""),
              LOG_STR("status", call_status_name(c->outcome.status)),
              LOG_STR("reason", c->ran ? end_reason_name(c->result.reason) : ""),
              LOG_INT("duration_us", (int64_t)(at->collected - at->asked)));
    if (c->ran && c->result.reason == END_FAILED)
        log_event(&c->app->log, LOG_ERROR, "sandbox_failed", LOG_STR("execution_id", c->id),
                  LOG_STR("error", c->result.fault));
}

/* Changes that may still go back to their mounts. */
static void keep(struct call *c)
{
    struct kept_given given = {.id = c->id,
                               .tree = c->tree,
                               .changes = &c->collect.changes,
                               .request = &c->request,
                               .text = &c->text,
                               .bytes = c->text.n + c->request.shaping.arena.n};

    if (!c->ran || !c->result.scanned || !kept_calls_want(&given))
        return;
    for (size_t i = 0; i < c->request.files_n; i++)
        given.bytes += c->request.files[i].content.n;
    if (!kept_calls_add(c->app->kept, &given))
        return;
    c->tree = NULL;
    c->text = BUF_INIT(0);
    c->request = (struct call_request){0};
}

static void deliver(struct call *c)
{
    struct app *a = c->app;
    call_done_fn *done = c->done;

    c->state = CALL_DONE;
    if (c->refused.kind == ERR_NONE)
        log_done(c);
    if (done) {
        done(c->user, c);
        keep(c);
    }
    admission_leave(&a->admission, &c->ticket);
    call_destroy(c);
}

/* ---- rendering ---- */

static size_t room_for(const struct call *c)
{
    const struct run_result *r = &c->result;
    size_t room = RENDER_OVERHEAD + ESCAPE_FACTOR * (r->out.n + r->err.n + c->function.n) +
                  r->result.n + r->error.n;

    return room + call_files_room(&c->collect.changes);
}

static void judge(struct call *c)
{
    if (c->judged)
        return;
    c->judged = true;
    if (c->ran)
        call_outcome_reach(&c->result, &c->limits, &c->outcome);
    if (call_outcome_unfound(&c->outcome, &c->result.error, c->function))
        c->source = SIGNATURE_CONVENTION;
    collect_judge(&c->collect, &c->outcome);
    if (c->tree->lent && c->request.include_contents)
        call_tree_recall(c->tree, &c->request, &c->collect.changes);
}

static void render(struct call *c)
{
    if (c->refused.kind != ERR_NONE)
        return;
    judge(c);
    c->json = BUF_INIT(room_for(c));
    call_result_json(c, &c->json);
}

static void render_run(struct work *w)
{
    render(call_of_work(w));
}

static void render_done(struct work *w)
{
    deliver(call_of_work(w));
}

static void render_beside(struct call *c)
{
    c->work = (struct work){.run = render_run, .done = render_done};
    work_submit(c->app->work, &c->work);
}

/* ---- writing changes back ---- */

static void on_sync_event(void *user, const char *event, const char *json, size_t n)
{
    struct call *c = user;

    if (c->done && c->event)
        c->event(c->user, event, json, n);
}

static void on_synced(void *user, struct sync *s)
{
    struct call *c = user;

    sync_report(s, &c->synced);
    sync_free(take_ptr(&c->sync));
    c->result.at.collected = clock_us();
    render_beside(c);
}

static void judge_run(struct work *w)
{
    judge(call_of_work(w));
}

static void judge_done(struct work *w)
{
    struct call *c = call_of_work(w);
    struct sync_order order = {
        .tree = c->tree,
        .changes = &c->collect.changes,
        .rules = &c->tree->mount,
        .work = c->app->work,
        .event = on_sync_event,
        .done = on_synced,
        .user = c,
    };
    struct err e;

    if (sync_start(&order, &c->sync, &e) < 0)
        render_beside(c);
}

void call_finish(struct call *c, bool may_deliver)
{
    size_t bytes = room_for(c);

    c->state = CALL_COLLECTING;
    run_free(take_ptr(&c->run));
    c->result.at.collected = clock_us();
    if (c->tree->mount.sync && c->ran && c->result.scanned) {
        c->work = (struct work){.run = judge_run, .done = judge_done};
        work_submit(c->app->work, &c->work);
        return;
    }
    if (may_deliver && bytes <= (size_t)RENDER_INLINE * ESCAPE_FACTOR && c->tree->mount.n == 0) {
        render(c);
        deliver(c);
        return;
    }
    render_beside(c);
}

/* It never ran: the call itself is wrong. */
void call_fail(struct call *c, const char *type, const char *words)
{
    c->outcome = (struct call_outcome){.status = CALL_ERROR, .exit_code = 1, .type = type};
    (void)snprintf(c->outcome.message, sizeof c->outcome.message, "%s", words);
    call_finish(c, false);
}

/* It never ran: somebody or something ended it. */
void call_unstarted(struct call *c, enum end_reason why, const char *words)
{
    c->ran = true;
    c->result.reason = why;
    (void)snprintf(c->result.fault, sizeof c->result.fault, "%s", words);
    call_finish(c, false);
}
