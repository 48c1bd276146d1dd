/* SPDX-License-Identifier: MIT */
/*
 * The use case behind POST /execute.
 *
 *   app_execute ─▶ plan ─▶ ticket ──granted──▶ run ──done──▶ collect ──▶ render ──▶ deliver
 *                            └─queued─▶ (grant)     files are hashed     └─report─▶┘
 *                                                   and copied meanwhile
 *
 * Where a control plane listens, nobody hears of a result before it is safe on disk.
 *
 * A plan is made at once, so that nothing of the request has to be kept while it waits. Large
 * answers are rendered on a worker. The sandbox is let go when the answer is on its way.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "app/daemon/language_probe.h"
#include "app/execution/code_cache.h"
#include "app/execution/session_disk.h"
#include "app/function/call_module.h"
#include "app/function/compile_cache.h"
#include "app/function/kept_calls.h"
#include "base/random.h"
#include "store/shelf.h"

enum {
    ID_RANDOM = 8,               /* characters behind the date */
    FILES_AHEAD = 16,            /* copies under way before the scan has to wait */
    RENDER_INLINE = 256 * 1024,  /* larger answers are made on a worker */
    RENDER_OVERHEAD = 64 * 1024, /* an answer beside its texts and artifacts */
    RENDER_FIRST = 1024,         /* what that is in most answers */
    ESCAPE_FACTOR = 6,           /* one byte becomes at most \u00XX */
    MS_PER_S = 1000,
    LOOK_FIRST_MS = 300, /* until a session's workspace is first measured in an execution */
    LOOK_MS = 1000,      /* and between two looks, */
    LOOK_SHARE = 20,     /* or so many times as long as the last one took */
};
#define US_PER_S 1000000u

const char *execution_state_name(enum execution_state s)
{
    static const char *const names[] = {"queued", "running", "collecting", "done"};

    _Static_assert(ARRAY_LEN(names) == EXECUTION_STATE_COUNT, "every state has a name");
    return names[s];
}

/* ---- delivering ---- */

static void log_done(const struct execution *x)
{
    const struct stamps *at = &x->result.at;
    const struct app *a = x->app;

    log_event(&a->log, LOG_INFO, "execution_done", LOG_STR("execution_id", x->id),
              LOG_STR("request_id", x->request_id), LOG_STR("session_id", x->session_id),
              LOG_STR("language", a->lang_names[x->lang]),
              LOG_STR("status", exec_status_name(x->verdict.status)),
              LOG_STR("reason", end_reason_name(x->result.reason)),
              LOG_INT("exit_code", x->result.exit_code),
              LOG_INT("duration_us", (int64_t)(at->collected - at->asked)),
              LOG_INT("stdout_bytes", (int64_t)x->result.out.n),
              LOG_INT("stderr_bytes", (int64_t)x->result.err.n));
    if (x->result.out_truncated || x->result.err_truncated)
        log_event(&a->log, LOG_WARN, "output_truncated", LOG_STR("execution_id", x->id),
                  LOG_STR("stream", !x->result.err_truncated   ? "stdout"
                                    : !x->result.out_truncated ? "stderr"
                                                               : "stdout, stderr"),
                  LOG_INT("limit_bytes", (int64_t)a->config.output_max));
    if (x->result.reason == END_FAILED)
        log_event(&a->log, LOG_ERROR, "sandbox_failed", LOG_STR("execution_id", x->id),
                  LOG_STR("error", x->result.fault));
}

static void expiry_arm(struct app *a)
{
    struct timeval tv = {.tv_sec = (time_t)a->config.retain_s};

    if (!event_pending(a->expiry, EV_TIMEOUT, NULL))
        (void)event_add(a->expiry, &tv);
}

static void on_expiry(evutil_socket_t fd, short what, void *user)
{
    struct app *a = user;
    uint64_t now = clock_us(), next = registry_expire(&a->registry, now);
    struct timeval tv = {.tv_sec = (time_t)((next - now) / US_PER_S) + 1};

    (void)fd, (void)what;
    if (next != 0)
        (void)event_add(a->expiry, &tv);
}

static void idle_check(struct app *a)
{
    if (a->idle && a->registry.active_n == 0)
        a->idle(a->idle_user);
}

static void keep_code(struct execution *x)
{
    const struct buf *to = &x->result.compiled;

    if (x->code.n > 0)
        code_cache_add(x->app->codes, (struct bytes){x->code.p, x->code.n},
                       (struct bytes){to->p, to->n});
    buf_done(&x->code);
}

/* What is asked for later is in the answer, but for the last report. */
static void keep_progress(struct execution *x)
{
    struct buf last = x->result.progress;

    x->result.progress = (struct buf){0};
    run_result_done(&x->result);
    x->result.progress = last;
}

/* The last thing that happens to an execution under way. */
static void conclude(struct execution *x)
{
    struct app *a = x->app;

    log_done(x);
    keep_code(x);
    keep_progress(x);
    expiry_arm(a);
    registry_finish(&a->registry, x, clock_us());
    idle_check(a);
}

static void on_told(evutil_socket_t fd, short what, void *user)
{
    struct app *a = user;
    struct execution *x;

    (void)fd, (void)what;
    while ((x = TAILQ_FIRST(&a->told))) {
        TAILQ_REMOVE(&a->told, x, told);
        conclude(x);
    }
}

/* Answers leave before the next thing that the loop was given to do. What nobody waits for is that
 * next thing. */
static void deliver(struct execution *x)
{
    struct app *a = x->app;
    struct execution_waiter *w;

    x->state = EXECUTION_DONE;
    metrics_count(&a->metrics, x->lang, x->verdict.status, &x->result);
    a->metrics.artifacts += x->artifacts.n;
    while ((w = LIST_FIRST(&x->waiters))) {
        LIST_REMOVE(w, link);
        w->done(w->user, x);
    }
    TAILQ_INSERT_TAIL(&a->told, x, told);
    event_active(a->concluding, EV_TIMEOUT, 0);
}

static void on_safe(void *user)
{
    deliver(user);
}

static void place_leave(struct execution *x)
{
    if (x->session && x->ran)
        disk_look_after(x->app, x->where.jail, x->session);
    admission_leave(&x->app->admission, &x->ticket);
    session_leave(&x->app->sessions, take_ptr(&x->session));
}

/* The answer is there. Whoever waits for the place need not wait for the disk. */
static void hand_over(struct execution *x)
{
    struct report *r = x->app->report;

    place_leave(x);
    if (r)
        r->ops->result(r, x->id, &x->told_json, on_safe, x);
    else
        deliver(x);
}

/* ---- rendering ---- */

static void render(struct execution *x)
{
    const struct run_result *r = &x->result;
    size_t room = RENDER_OVERHEAD;

    verdict_reach(&x->result, &x->limits, &x->verdict);
    room += (r->out.n + r->err.n) * ESCAPE_FACTOR + r->result.n + r->error.n;
    for (size_t i = 0; i < x->artifacts.n; i++)
        room += 2 * ESCAPE_FACTOR * strlen(x->artifacts.v[i]->path) + RENDER_OVERHEAD / 64;
    x->json = BUF_INIT(room);
    (void)buf_reserve(&x->json, RENDER_FIRST + r->out.n + r->err.n + r->result.n);
    execution_result_json(x, &x->json);
    if (!x->app->report)
        return;
    x->told_json = BUF_INIT(room);
    execution_told_json(x, &x->told_json);
}

static void render_run(struct work *w)
{
    render((struct execution *)((char *)w - offsetof(struct execution, render)));
}

static void render_done(struct work *w)
{
    hand_over((struct execution *)((char *)w - offsetof(struct execution, render)));
}

static void looks_stop(struct execution *x)
{
    disk_cancel(take_ptr(&x->look));
    if (x->look_next)
        event_free(take_ptr(&x->look_next));
}

static void finish(struct execution *x, bool may_deliver)
{
    const struct run_result *r = &x->result;
    size_t bytes = r->out.n + r->err.n + r->result.n + r->error.n;

    run_free(take_ptr(&x->run));
    looks_stop(x);
    x->state = EXECUTION_COLLECTING;
    heart_stop(x);
    artifacts_sort(&x->artifacts);
    shelf_release(take_ptr(&x->dependencies));
    x->result.at.collected = clock_us();
    if (may_deliver && bytes <= RENDER_INLINE) {
        render(x);
        hand_over(x);
        return;
    }
    x->render = (struct work){.run = render_run, .done = render_done};
    work_submit(x->app->work, &x->render);
}

/* It never ran: say why. */
static void finish_unstarted(struct execution *x, enum end_reason why, const char *words)
{
    x->result.reason = why;
    (void)snprintf(x->result.fault, sizeof x->result.fault, "%s", words);
    finish(x, false);
}

/* ---- collecting ---- */

static void collect_settle(struct execution *x)
{
    if (x->run_ended && x->keeping == 0)
        finish(x, true);
}

struct kept {
    struct execution *x;
    struct artifact *a;
};

/* It could not be kept. The first one of an execution is logged with its reason. */
static void lose(struct execution *x, struct artifact *a, int sys)
{
    a->fate = ARTIFACT_FAILED;
    x->app->metrics.artifacts_lost++;
    if (x->artifact_lost)
        return;
    x->artifact_lost = true;
    log_event(&x->app->log, LOG_ERROR, "artifact_lost", LOG_STR("execution_id", x->id),
              LOG_STR("path", a->path), LOG_STR("reason", strerror(sys)));
}

static void on_kept(void *user, const struct stored *s)
{
    struct kept *k = user;
    struct execution *x = k->x;

    k->a->stored = *s;
    if (s->number != 0)
        x->app->metrics.artifact_bytes += s->size;
    else if (s->sys != 0)
        lose(x, k->a, s->sys);
    free(k);
    x->keeping--;
    if (x->keeping < FILES_AHEAD)
        run_files_resume(x->run);
    collect_settle(x);
}

/* A sparse file can claim any size: what is hashed for one execution is bounded in all. */
static bool file_keep(struct execution *x, struct run_file *f, struct artifact *a)
{
    struct kept *k;
    struct stat st;
    bool copy;

    a->fate = ARTIFACT_FAILED; /* until there is a copy */
    if (fstat(f->fd, &st) < 0)
        return false;
    a->stored.size = (uint64_t)st.st_size;
    if (a->stored.size > x->hash_left) {
        a->fate = ARTIFACT_TOO_LARGE;
        return false;
    }
    k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = (struct kept){.x = x, .a = a};
    x->hash_left -= a->stored.size;
    copy = registry_charge(&x->app->registry, x, a->stored.size);
    a->fate = copy                              ? ARTIFACT_KEPT
              : x->app->registry.count_max == 0 ? ARTIFACT_UNWANTED
                                                : ARTIFACT_TOO_LARGE;
    if (store_keep(x->app->store, take_fd(&f->fd), a->stored.size, copy, x, on_kept, k) < 0) {
        free(k);
        return false;
    }
    x->keeping++;
    return true;
}

static void on_file(void *user, struct run_file *f)
{
    struct execution *x = user;
    struct artifact *a = artifacts_add(&x->artifacts, f->name, f->name_n);

    if (!a)
        return;
    a->mtime_s = f->mtime_s;
    a->mtime_ns = f->mtime_ns;
    if (file_keep(x, f, a) && x->keeping >= FILES_AHEAD)
        run_files_pause(x->run);
}

static void on_run_done(void *user)
{
    struct execution *x = user;

    x->run_ended = true;
    x->state = EXECUTION_COLLECTING;
    heart_stop(x);
    collect_settle(x);
}

/* ---- starting ---- */

/* Those the session has now, whatever it had when this was asked for. */
static void hold_dependencies(struct execution *x)
{
    if (!x->session || !x->app->shelf)
        return;
    x->dependencies = shelf_hold(x->app->shelf, x->session->workspace);
    if (x->dependencies)
        x->plan->dependencies = shelf_item_name(x->dependencies);
}

/* ---- the workspace of a session, while it is written ---- */

static void look_later(struct execution *x, uint64_t ms)
{
    const struct timeval tv = {(time_t)(ms / MS_PER_S), (suseconds_t)(ms % MS_PER_S * 1000)};

    if (x->look_next)
        (void)event_add(x->look_next, &tv);
}

/* A large tree is not walked again and again: the pause is a multiple of what the walk took. */
static void on_looked(void *user, const char *why)
{
    struct execution *x = user;
    uint64_t took_ms = (clock_us() - x->look_us) / 1000;

    x->look = NULL;
    if (x->state != EXECUTION_RUNNING || x->run_ended)
        return;
    if (why) {
        (void)snprintf(x->result.fault, sizeof x->result.fault, "%s", why);
        run_stop(x->run, END_DISK);
        return;
    }
    look_later(x, took_ms * LOOK_SHARE > LOOK_MS ? took_ms * LOOK_SHARE : LOOK_MS);
}

static void on_look_next(evutil_socket_t fd, short what, void *user)
{
    struct execution *x = user;

    (void)fd, (void)what;
    x->look_us = clock_us();
    x->look = disk_look(x->app, x->where.jail, x->session, on_looked, x);
    if (!x->look)
        look_later(x, LOOK_MS);
}

static void looks_start(struct execution *x)
{
    if (!x->session)
        return;
    x->look_next = evtimer_new(x->app->base, on_look_next, x);
    look_later(x, LOOK_FIRST_MS);
}

static void begin(struct execution *x)
{
    struct app *a = x->app;
    struct run_events events = {.file = on_file, .done = on_run_done, .user = x};
    struct err e;

    hold_dependencies(x);
    if (run_start(x->where.engine, x->plan, &x->result, &events, &x->run, &e) < 0) {
        finish_unstarted(x, END_FAILED, e.text);
        return;
    }
    a->langs->plan_free(take_ptr(&x->plan));
    x->state = EXECUTION_RUNNING;
    x->ran = true;
    log_event(&x->app->log, LOG_INFO, "execution_started", LOG_STR("execution_id", x->id),
              LOG_STR("request_id", x->request_id), LOG_STR("session_id", x->session_id),
              LOG_STR("language", x->app->lang_names[x->lang]));
    looks_start(x);
}

static void on_looked_before(void *user, const char *why)
{
    struct execution *x = user;

    x->look = NULL;
    if (why)
        finish_unstarted(x, END_DISK, why);
    else
        begin(x);
}

static void start(void *user)
{
    struct execution *x = user;

    if (x->session && x->session->remembered)
        x->look = disk_look(x->app, x->where.jail, x->session, on_looked_before, x);
    if (!x->look)
        begin(x);
}

static void execution_free(struct execution *x)
{
    struct app *a = x->app;

    heart_stop(x);
    place_leave(x);
    for (size_t i = 0; i < x->artifacts.n; i++)
        store_drop(a->store, x->artifacts.v[i]->stored.number);
    artifacts_done(&x->artifacts);
    run_free(x->run);
    shelf_release(x->dependencies);
    a->langs->plan_free(x->plan);
    run_result_done(&x->result);
    buf_done(&x->json);
    buf_done(&x->told_json);
    buf_done(&x->code);
    free(x);
}

static void make_id(char out[EXECUTION_ID_MAX + 1])
{
    char date[9];

    clock_date8(date);
    random_base36(stpcpy(stpcpy(stpcpy(out, "exec_"), date), "_"), ID_RANDOM);
}

static void keep(char *out, size_t room, const char *text)
{
    size_t n = strnlen(text, room - 1);

    memcpy(out, text, n);
    out[n] = '\0';
}

static struct execution *execution_new(struct app *a, const struct exec_order *o)
{
    struct execution *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->app = a;
    x->limits = o->spec->limits;
    x->artifacts.max = a->config.artifacts_max;
    x->hash_left = o->spec->limits.workspace_max;
    x->unattended = !o->waiter;
    if (o->waiter)
        LIST_INSERT_HEAD(&x->waiters, o->waiter, link);
    if (o->digest)
        memcpy(x->digest, o->digest, sizeof x->digest);
    x->ticket.grant = start;
    x->ticket.user = x;
    keep(x->session_id, sizeof x->session_id, o->session_id);
    keep(x->request_id, sizeof x->request_id, o->request_id);
    keep(x->id, sizeof x->id, o->spec->execution_id);
    if (!x->id[0])
        make_id(x->id);
    (void)clock_iso(x->created_at);
    run_result_init(&x->result, &x->limits);
    x->result.at.asked = o->asked_us;
    return x;
}

/* Which languages make use of it, they know. */
static void know_code(struct app *a, struct exec_spec *spec)
{
    if (!code_cache_find(a->codes, spec->code, &spec->compiled))
        spec->asks_compiled = code_cache_wants(a->codes, spec->code);
}

static int prepare(struct execution *x, const struct exec_order *o, struct err *e)
{
    struct app *a = x->app;
    struct exec_spec spec = *o->spec;

    if (place_find(a, o->isolation ? o->isolation : "", &x->where, e) < 0)
        return -1;
    spec.execution_id = x->id;
    if (x->session_id[0]) {
        x->session = session_enter(&a->sessions, x->session_id);
        if (!x->session)
            return err_set(e, ERR_HOST, "no memory for a session");
        x->ticket.lane = &x->session->lane;
        spec.workspace = x->session->workspace;
        spec.dependencies = a->shelf ? PLAN_DEPENDENCIES : NULL;
    }
    x->lang = a->langs->find(spec.language);
    know_code(a, &spec);
    if (a->langs->plan(&spec, &x->plan, e) < 0)
        return -1;
    a->metrics.codes_known += x->plan->compiled;
    if (x->plan->compiles) {
        x->code = BUF_INIT(spec.code.n);
        (void)buf_put(&x->code, spec.code.p, spec.code.n);
    }
    if (template_is_wasm(x->plan->template) &&
        wasm_check(a, x->where.jail, x->plan->template, e) < 0)
        return -1;
    if (admission_ask(&a->admission, &x->ticket, e) < 0) {
        a->metrics.refused++;
        return -1;
    }
    return 0;
}

int app_execute(struct app *a, const struct exec_order *o, struct execution **ret, struct err *e)
{
    struct execution *x;

    if (a->stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    x = execution_new(a, o);
    if (!x)
        return err_set(e, ERR_HOST, "no memory for an execution");
    if (prepare(x, o, e) < 0) {
        execution_free(x);
        return -1;
    }
    registry_add(&a->registry, x);
    *ret = x;
    if (x->ticket.state == TICKET_GRANTED)
        start(x);
    if (x->state != EXECUTION_COLLECTING)
        heart_start(x);
    return 0;
}

/* ---- the rest ---- */

struct execution *app_find(const struct app *a, const char *id)
{
    return registry_find(&a->registry, id);
}

bool execution_is_same(const struct execution *x, const unsigned char *digest)
{
    return memcmp(x->digest, digest, sizeof x->digest) == 0;
}

void execution_join(struct execution *x, struct execution_waiter *w)
{
    if (w)
        LIST_INSERT_HEAD(&x->waiters, w, link);
    else
        x->unattended = true;
}

void execution_leave(struct execution *x, struct execution_waiter *w)
{
    LIST_REMOVE(w, link);
    if (LIST_EMPTY(&x->waiters) && !x->unattended)
        execution_stop(x, END_CANCELLED);
}

void execution_stop(struct execution *x, enum end_reason why)
{
    if (x->state == EXECUTION_QUEUED) {
        place_leave(x);
        finish_unstarted(x, why, "");
    } else if (x->state == EXECUTION_RUNNING) {
        run_stop(x->run, why);
    }
}

void app_refuse_new(struct app *a)
{
    a->stopping = true;
}

void app_stop_unattended(struct app *a, enum end_reason why)
{
    struct execution *x;

    TAILQ_FOREACH(x, &a->registry.active, link)
    {
        if (LIST_EMPTY(&x->waiters))
            execution_stop(x, why);
    }
}

void app_stop_all(struct app *a, enum end_reason why)
{
    struct execution *x;

    TAILQ_FOREACH(x, &a->registry.active, link)
    {
        execution_stop(x, why);
    }
    calls_stop_all(&a->calls, why);
    dependencies_stop_all(&a->dependencies, why);
    fsessions_stop_all(&a->fsessions, why);
}

void app_on_idle(struct app *a, app_idle_fn *fn, void *user)
{
    a->idle = fn;
    a->idle_user = user;
    idle_check(a);
}

struct limits app_limits(const struct app *a, uint64_t wall_ms)
{
    const struct config *c = &a->config;

    return (struct limits){
        .wall_ms = wall_ms,
        .cpu_ms = c->cpu_s * MS_PER_S,
        .memory_max = c->memory_mb << 20,
        .workspace_max = c->workspace_mb << 20,
        .workspace_files = c->workspace_files,
        .tmp_max = c->tmp_mb << 20,
        .output_max = c->output_max,
        .result_max = c->result_max,
        .pids_max = (uint32_t)c->pids_max,
        .files_max = (uint32_t)c->files_max,
    };
}

int app_init(struct app *a, struct err *e)
{
    const struct config *c = &a->config;

    const struct lang_fact *f;

    for (size_t i = 0; i < METRICS_LANGS_MAX - 1 && (f = a->langs->fact(i)); i++)
        a->lang_names[i] = f->name;
    a->started_us = clock_us();
    admission_init(&a->admission, c->max_concurrent, c->queue_max);
    a->admission.lane_max = c->session_queue_max;
    registry_init(&a->registry, execution_free);
    calls_init(&a->calls);
    fsessions_init(&a->fsessions);
    inspections_init(&a->inspections);
    dependencies_init(&a->dependencies);
    if (code_cache_new(c->code_cache_mb << 20, &a->codes, e) < 0 ||
        compile_cache_open(c->state_dir, &a->programs, e) < 0 ||
        kept_calls_new(c->retain_s, &a->kept, e) < 0)
        return -1;
    a->registry.count_max = c->retain_count;
    a->registry.bytes_max = c->retain_bytes;
    a->registry.age_max_us = c->retain_s * US_PER_S;
    TAILQ_INIT(&a->told);
    a->expiry = evtimer_new(a->base, on_expiry, a);
    a->concluding = evtimer_new(a->base, on_told, a);
    return a->expiry && a->concluding ? 0 : err_set(e, ERR_HOST, "no memory for an event");
}

void app_done(struct app *a)
{
    if (!a->expiry)
        return; /* never initialised */
    survey_stop(a);
    on_told(-1, 0, a);
    a->admission.granting = true; /* what is freed now makes room for nobody */
    calls_done(&a->calls);
    fsessions_done(&a->fsessions);
    disk_done(&a->looks);
    sessions_done(&a->sessions);
    inspections_done(a);
    kept_calls_free(take_ptr(&a->kept));
    dependencies_done(&a->dependencies);
    compile_cache_close(take_ptr(&a->programs));
    registry_done(&a->registry);
    code_cache_free(take_ptr(&a->codes));
    event_free(a->expiry);
    a->expiry = NULL;
    if (a->concluding)
        event_free(a->concluding);
}
