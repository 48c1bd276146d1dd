/* SPDX-License-Identifier: MIT */
/*
 * The use case behind POST /execute: a task (app/task.h) with the steps at the end of this file.
 *
 * A plan is made at once, so that nothing of the request has to be kept while it waits. Files of
 * the workspace are hashed and copied while the run ends. Large answers are rendered on a worker.
 * Where a control plane or a webhook is told, nobody else hears of a result before it is safe on
 * disk.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "app/execution/code_cache.h"
#include "app/execution/kept_disk.h"
#include "app/execution/session_disk.h"
#include "app/execution/webhook_member.h"
#include "app/execution/workspaces.h"
#include "app/function/call_module.h"
#include "app/network/network.h"
#include "base/random.h"
#include "store/shelf.h"

enum {
    ID_RANDOM = 8,             /* characters behind the date */
    FILES_AHEAD = 16,          /* copies under way before the scan has to wait */
    JUDGE_INLINE = 256 * 1024, /* larger results are looked at on a worker */
    MS_PER_S = 1000,
    LOOK_FIRST_MS = 300, /* until a session's workspace is first measured in an execution */
    LOOK_MS = 1000,      /* and between two looks, */
    LOOK_SHARE = 20,     /* or so many times as long as the last one took */
};

const char *execution_state_name(const struct execution *x)
{
    /* A look at the workspace of its session is waiting, too. */
    return task_state_name(x->task.state < TASK_RUNNING ? TASK_QUEUED : x->task.state);
}

static struct execution *of(struct task *t)
{
    return container_of(t, struct execution, task);
}

/* ---- the end ---- */

static void log_done(const struct execution *x)
{
    const struct stamps *at = &x->task.result.at;
    const struct app *a = x->app;

    log_event(&a->log, LOG_INFO, "execution_done", LOG_STR("execution_id", x->id),
              LOG_STR("request_id", x->request_id), LOG_STR("session_id", x->session_id),
              LOG_STR("language", a->languages.names[x->lang]),
              LOG_STR("status", exec_status_name(x->verdict.status)),
              LOG_STR("reason", end_reason_name(x->task.result.reason)),
              LOG_INT("exit_code", x->task.result.exit_code),
              LOG_INT("duration_us", (int64_t)(at->collected - at->asked)),
              LOG_INT("stdout_bytes", (int64_t)x->task.result.out.n),
              LOG_INT("stderr_bytes", (int64_t)x->task.result.err.n));
    if (x->task.result.out_truncated || x->task.result.err_truncated)
        log_event(&a->log, LOG_WARN, "output_truncated", LOG_STR("execution_id", x->id),
                  LOG_STR("stream", !x->task.result.err_truncated   ? "stdout"
                                    : !x->task.result.out_truncated ? "stderr"
                                                                    : "stdout, stderr"),
                  LOG_INT("limit_bytes", (int64_t)a->config.output_max));
    if (x->task.result.reason == END_FAILED)
        log_event(&a->log, LOG_ERROR, "sandbox_failed", LOG_STR("execution_id", x->id),
                  LOG_STR("error", x->task.result.fault));
}

static void keep_code(struct execution *x)
{
    const struct buf *to = &x->task.result.compiled;

    if (x->code.n > 0)
        code_cache_add(x->app->functions.codes, (struct bytes){x->code.p, x->code.n},
                       (struct bytes){to->p, to->n});
    buf_done(&x->code);
    buf_done(&x->task.result.compiled);
}

static void place_leave(struct execution *x)
{
    if (x->session && task_ran(&x->task)) {
        workspaces_used(x->app->workspace.all, x->session);
        disk_look_after(x->app, x->jail, x->session);
    }
    session_leave(&x->app->workspace.sessions, take_ptr(&x->session));
}

static void spread(struct execution *x, enum execution_news what)
{
    struct execution_follower *f, *next;

    for (f = LIST_FIRST(&x->audience.followers); f; f = next) {
        next = LIST_NEXT(f, link);
        f->news(f->user, what);
    }
}

static void tell(struct task *t)
{
    struct execution *x = of(t);
    struct execution_waiter *w;

    while ((w = LIST_FIRST(&x->audience.waiters))) {
        LIST_REMOVE(w, link);
        w->done(w->user, x);
    }
    spread(x, EXECUTION_ENDED);
}

static void account(struct task *t)
{
    struct execution *x = of(t);
    struct app *a = x->app;

    place_leave(x);
    metrics_count(&a->metrics, x->lang, x->verdict.status, &t->result);
    a->metrics.artifacts += x->artifacts.n;
    log_done(x);
    keep_code(x);
    if (registry_finish(&a->registry, x, (int64_t)clock_us())) {
        kept_disk_put(a->retained.disk, x);
        app_expiry_arm(a);
    }
    app_idle_check(a);
}

/* ---- the result ---- */

/* What a control plane is told. */
static void write_report(struct execution *x)
{
    struct report *r = x->app->report;
    const char **names = calloc(x->artifacts.n + 1, sizeof *names);
    struct report_result told = {.run = &x->task.result,
                                 .succeeded = x->verdict.status == STATUS_SUCCESS,
                                 .artifacts = names};

    for (size_t i = 0; names && i < x->artifacts.n; i++)
        if (!artifact_is_lost(x->artifacts.v[i]))
            names[told.artifacts_n++] = x->artifacts.v[i]->path;
    r->ops->write(&told, &x->out.report);
    free(names);
}

static void judge(struct task *t)
{
    struct execution *x = of(t);

    verdict_reach(&t->result, &t->limits, &x->verdict);
    if (x->app->report)
        write_report(x);
    if (x->out.webhook)
        x->out.write(x, &x->out.body);
}

static enum task_go step_judge(struct task *t, struct err *e)
{
    const struct run_result *r = &t->result;

    (void)e;
    if (r->out.n + r->err.n + r->result.n + r->error.n > JUDGE_INLINE)
        return task_beside(t, judge, WORK_LONG);
    judge(t);
    return TASK_NEXT;
}

static void on_safe(void *user)
{
    task_continue(user, TASK_NEXT);
}

/* The next execution gets the place before this one is written to disk. */
static enum task_go step_report(struct task *t, struct err *e)
{
    struct execution *x = of(t);
    struct report *r = x->app->report;

    (void)e;
    if (!r)
        return TASK_NEXT;
    task_release(t);
    r->ops->result(r, x->id, &x->out.report, on_safe, t);
    return TASK_WAIT;
}

static void on_webhook_safe(void *user)
{
    buf_done(&of(user)->out.body);
    task_continue(user, TASK_NEXT);
}

static enum task_go step_webhook(struct task *t, struct err *e)
{
    struct execution *x = of(t);

    (void)e;
    if (!x->out.webhook)
        return TASK_NEXT;
    task_release(t);
    webhook_send(take_ptr(&x->out.webhook), x->id, buf_whole(&x->out.body), on_webhook_safe, t);
    return TASK_WAIT;
}

/* ---- collecting ---- */

static void looks_stop(struct execution *x)
{
    disk_cancel(take_ptr(&x->watch.look));
    if (x->watch.next)
        event_free(take_ptr(&x->watch.next));
}

static enum task_go step_collect(struct task *t, struct err *e)
{
    struct execution *x = of(t);

    (void)e;
    heart_stop(x);
    looks_stop(x);
    return x->collecting.n > 0 ? TASK_WAIT : TASK_NEXT;
}

/* Those that came with the request and are as they were. */
static void artifacts_forget_given(struct execution *x)
{
    struct artifacts *all = &x->artifacts;

    for (size_t i = 0; i < x->collecting.given_n; i++) {
        const struct given_file *g = &x->collecting.given[i];
        size_t k = 0;

        while (k < all->n && (strcmp(all->v[k]->path, g->path) != 0 ||
                              strcmp(all->v[k]->stored.sha256, g->sha256) != 0))
            k++;
        if (k == all->n)
            continue;
        if (all->v[k]->fate == ARTIFACT_KEPT)
            registry_refund(&x->app->registry, x, all->v[k]->stored.size);
        store_drop(x->app->store, all->v[k]->stored.number);
        artifacts_remove(all, k);
    }
}

static enum task_go step_collected(struct task *t, struct err *e)
{
    struct execution *x = of(t);

    (void)e;
    artifacts_forget_given(x);
    artifacts_sort(&x->artifacts);
    shelf_release(take_ptr(&x->dependencies));
    t->result.at.collected = clock_us();
    return TASK_NEXT;
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
    if (x->collecting.lost)
        return;
    x->collecting.lost = true;
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
    x->collecting.n--;
    if (x->collecting.n < FILES_AHEAD)
        run_files_resume(x->task.run);
    if (x->collecting.n == 0 && task_waits_in(&x->task, step_collect))
        task_continue(&x->task, TASK_NEXT);
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
    if (a->stored.size > x->collecting.hash_left) {
        a->fate = ARTIFACT_TOO_LARGE;
        return false;
    }
    k = malloc(sizeof *k);
    if (!k)
        return false;
    *k = (struct kept){.x = x, .a = a};
    x->collecting.hash_left -= a->stored.size;
    copy = registry_charge(&x->app->registry, x, a->stored.size);
    a->fate = copy                              ? ARTIFACT_KEPT
              : x->app->registry.count_max == 0 ? ARTIFACT_UNWANTED
                                                : ARTIFACT_TOO_LARGE;
    if (store_keep(x->app->store, take_fd(&f->fd), a->stored.size, copy, x, on_kept, k) < 0) {
        free(k);
        return false;
    }
    x->collecting.n++;
    return true;
}

static void on_file(void *user, struct run_file *f)
{
    struct execution *x = of(user);
    struct artifact *a = artifacts_add(&x->artifacts, f->name, f->name_n);

    if (!a)
        return;
    a->mtime_s = f->mtime_s;
    a->mtime_ns = f->mtime_ns;
    if (file_keep(x, f, a) && x->collecting.n >= FILES_AHEAD)
        run_files_pause(x->task.run);
}

/* ---- starting ---- */

/* What was asked for; else what the session has now, whatever it had when this was asked for. */
static void hold_dependencies(struct execution *x)
{
    if (!x->dependencies && x->session && x->app->packages.shelf)
        x->dependencies = shelf_hold(x->app->packages.shelf, x->session->name);
    if (x->dependencies)
        x->task.plan->dependencies = shelf_item_name(x->dependencies);
}

/* ---- the workspace of a session, while it is written ---- */

static void look_later(struct execution *x, uint64_t ms)
{
    const struct timeval tv = {(time_t)(ms / MS_PER_S), (suseconds_t)(ms % MS_PER_S * 1000)};

    if (x->watch.next)
        (void)event_add(x->watch.next, &tv);
}

/* A large tree is not walked again and again: the pause is a multiple of what the walk took. */
static void on_looked(void *user, const char *why)
{
    struct execution *x = user;
    uint64_t took_ms = (clock_us() - x->watch.began_us) / 1000;

    x->watch.look = NULL;
    if (x->task.state != TASK_RUNNING)
        return;
    if (why) {
        (void)snprintf(x->task.result.fault, sizeof x->task.result.fault, "%s", why);
        run_stop(x->task.run, END_DISK);
        return;
    }
    look_later(x, took_ms * LOOK_SHARE > LOOK_MS ? took_ms * LOOK_SHARE : LOOK_MS);
}

static void on_look_next(evutil_socket_t fd, short what, void *user)
{
    struct execution *x = user;

    (void)fd, (void)what;
    x->watch.began_us = clock_us();
    x->watch.look = disk_look(x->app, x->jail, x->session, on_looked, x);
    if (!x->watch.look)
        look_later(x, LOOK_MS);
}

static void looks_start(struct execution *x)
{
    if (!x->session)
        return;
    x->watch.next = evtimer_new(x->app->base, on_look_next, x);
    look_later(x, LOOK_FIRST_MS);
}

static void on_output(void *user)
{
    spread(of(user), EXECUTION_OUTPUT);
}

static void on_progress(void *user, const char *json, size_t n)
{
    (void)json, (void)n;
    spread(of(user), EXECUTION_PROGRESS);
}

/* The program finds its listeners: they are there before it has its job. */
static int give_network(struct execution *x, struct err *e)
{
    if (!x->network.policy)
        return 0;
    if (network_open(x->app, x->jail, x->network.policy, x->id, &x->network.of, e) < 0)
        return -1;
    free(take_ptr(&x->network.policy));
    x->task.plan->gate = network_gate(x->network.of);
    return 0;
}

static void on_settled(void *user)
{
    task_continue(user, TASK_NEXT);
}

static enum task_go step_network(struct task *t, struct err *e)
{
    struct execution *x = of(t);

    (void)e;
    if (!x->network.of)
        return TASK_NEXT;
    network_settle(x->network.of, on_settled, t);
    return TASK_WAIT;
}

static enum task_go step_run(struct task *t, struct err *e)
{
    static const struct run_events events = {
        .file = on_file, .output = on_output, .progress = on_progress};
    struct execution *x = of(t);
    enum task_go go;

    hold_dependencies(x);
    if (give_network(x, e) < 0)
        return task_fail(t, END_FAILED, e->text);
    go = task_run_plan(t, &events);
    if (go != TASK_WAIT)
        return go;
    if (x->session)
        workspaces_used(x->app->workspace.all, x->session);
    heart_now(x);
    log_event(&x->app->log, LOG_INFO, "execution_started", LOG_STR("execution_id", x->id),
              LOG_STR("request_id", x->request_id), LOG_STR("session_id", x->session_id),
              LOG_STR("language", x->app->languages.names[x->lang]));
    looks_start(x);
    return TASK_WAIT;
}

/* ---- the workspace of a session, before anything runs ---- */

static void on_looked_before(void *user, const char *why)
{
    struct execution *x = user;

    x->watch.look = NULL;
    task_continue(&x->task, why ? task_fail(&x->task, END_DISK, why) : TASK_NEXT);
}

/* Only if it was near its limits the last time. */
static enum task_go step_look(struct task *t, struct err *e)
{
    struct execution *x = of(t);

    (void)e;
    if (x->session && x->session->remembered)
        x->watch.look = disk_look(x->app, x->jail, x->session, on_looked_before, x);
    return x->watch.look ? TASK_WAIT : TASK_NEXT;
}

static void look_give_up(struct task *t)
{
    looks_stop(of(t));
}

/* clang-format off */
static const struct task_step steps[] = {
    {"admit",     TASK_QUEUED,     task_admit},
    {"look",      TASK_STARTING,   step_look, .stop = look_give_up},
    {"run",       TASK_STARTING,   step_run},
    {"network",   TASK_COLLECTING, step_network,   .always = true},
    {"collect",   TASK_COLLECTING, step_collect,   .always = true},
    {"collected", TASK_COLLECTING, step_collected, .always = true},
    {"judge",     TASK_COLLECTING, step_judge,     .always = true},
    {"report",    TASK_COLLECTING, step_report,    .always = true},
    {"webhook",   TASK_COLLECTING, step_webhook,   .always = true},
};
/* clang-format on */

static const struct task_kind kind = {
    .name = "execution",
    .steps = steps,
    .steps_n = ARRAY_LEN(steps),
    .answer = tell,
    .account = account,
};

/* ---- life ---- */

void execution_free(struct execution *x)
{
    struct app *a = x->app;

    if (x->hold.n > 0) {
        x->hold.forgotten = true;
        return;
    }
    heart_stop(x);
    looks_stop(x);
    task_done(&x->task);
    network_free(x->network.of);
    free(x->network.policy);
    session_leave(&a->workspace.sessions, take_ptr(&x->session));
    if (x->in.saved)
        kept_disk_remove(a->retained.disk, x);
    for (size_t i = 0; i < x->artifacts.n && !(x->in.saved && a->life.ending); i++)
        store_drop(a->store, x->artifacts.v[i]->stored.number);
    free(x->restored.limit);
    free(x->restored.hint);
    artifacts_done(&x->artifacts);
    for (size_t i = 0; i < x->collecting.given_n; i++)
        free(x->collecting.given[i].path);
    free(x->collecting.given);
    shelf_release(x->dependencies);
    buf_done(&x->out.report);
    buf_done(&x->out.body);
    webhook_drop(x->out.webhook);
    buf_done(&x->code);
    free(x);
}

struct execution *execution_restored(struct app *a)
{
    struct execution *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->app = a;
    task_init_done(&x->task, &kind, &a->tasks, a->engine);
    x->jail = a->jail;
    return x;
}

void execution_hold(struct execution *x)
{
    x->hold.n++;
}

void execution_drop(struct execution *x)
{
    if (--x->hold.n == 0 && x->hold.forgotten)
        execution_free(x);
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
    x->task.limits = o->spec->limits;
    task_init(&x->task, &kind, &a->tasks, a->engine);
    x->task.plan_free = a->languages.ops->plan_free;
    x->artifacts.max = a->config.artifacts_max;
    x->collecting.hash_left = o->spec->limits.workspace_max;
    x->audience.unattended = !o->waiter || o->webhook;
    if (o->waiter)
        LIST_INSERT_HEAD(&x->audience.waiters, o->waiter, link);
    if (o->digest)
        memcpy(x->digest, o->digest, sizeof x->digest);
    keep(x->session_id, sizeof x->session_id, o->session_id);
    keep(x->request_id, sizeof x->request_id, o->request_id);
    keep(x->id, sizeof x->id, o->spec->execution_id);
    if (!x->id[0])
        make_id(x->id);
    (void)clock_iso(x->created_at);
    x->task.result.at.asked = o->asked_us;
    return x;
}

/* Which languages make use of it, they know. */
static void know_code(struct app *a, struct exec_spec *spec)
{
    if (!code_cache_find(a->functions.codes, spec->code, &spec->compiled))
        spec->asks_compiled = code_cache_wants(a->functions.codes, spec->code);
}

static int remember_files(struct execution *x, const struct exec_spec *spec, struct err *e)
{
    struct given_file *given = calloc(spec->files_n + 1, sizeof *given);

    x->collecting.given = given;
    for (size_t i = 0; given && i < spec->files_n; i++) {
        given[i].path = strdup(spec->files[i].path.p);
        if (!given[i].path)
            return err_set(e, ERR_HOST, "no memory for files");
        memcpy(given[i].sha256, spec->files[i].sha256, SHA256_HEX);
        x->collecting.given_n++;
    }
    return given ? 0 : err_set(e, ERR_HOST, "no memory for files");
}

/* The variables of the request, and those of the proxy. */
static int add_vars(struct exec_spec *spec, struct exec_var **ret, struct err *e)
{
    struct exec_var *vars = calloc(spec->vars_n + NET_VARS_MAX, sizeof *vars);

    if (!vars)
        return err_set(e, ERR_HOST, "no memory for variables");
    if (spec->vars_n > 0)
        memcpy(vars, spec->vars, spec->vars_n * sizeof *vars);
    spec->vars_n += net_vars(spec->vars, spec->vars_n, vars + spec->vars_n);
    spec->vars = *ret = vars;
    return 0;
}

static int check_network(const struct execution *x, const struct exec_order *o, struct err *e)
{
    if (!net_possible(x->jail, NET_GATE))
        return err_set(e, ERR_CALLER, "network: jail '%s' has no network of its own",
                       x->jail->ops->name);
    if (o->spec->wasm)
        return err_set(e, ERR_CALLER, "network: WebAssembly cannot use one");
    return 0;
}

static int prepare(struct execution *x, const struct exec_order *o, struct err *e)
{
    cleanup_free struct exec_var *vars = NULL;
    struct app *a = x->app;
    struct exec_spec spec = *o->spec;
    struct place where;

    if (place_find(a, o->isolation ? o->isolation : "", &where, e) < 0)
        return -1;
    x->jail = where.jail;
    x->ran_in.traits = where.jail->traits;
    keep(x->ran_in.jail, sizeof x->ran_in.jail, where.jail->ops->name);
    x->task.engine = where.engine;
    spec.execution_id = x->id;
    if (spec.files_n > 0 && remember_files(x, &spec, e) < 0)
        return -1;
    if (x->session_id[0]) {
        x->session = session_enter(&a->workspace.sessions, x->session_id);
        if (!x->session)
            return err_set(e, ERR_HOST, "no memory for a session");
        x->task.ticket.lane = &x->session->lane;
        spec.workspace = x->session->workspace;
        spec.dependencies = a->packages.shelf ? PLAN_DEPENDENCIES : NULL;
    }
    if (o->packages) {
        if (spec.wasm)
            return err_set(e, ERR_CALLER, "packages: WebAssembly cannot use them");
        spec.dependencies = PLAN_DEPENDENCIES;
        spec.node_modules = PLAN_DEPENDENCIES "/node_modules";
    }
    if (o->network && (check_network(x, o, e) < 0 || add_vars(&spec, &vars, e) < 0))
        return -1;
    x->lang = a->languages.ops->find(spec.language);
    know_code(a, &spec);
    if (a->languages.ops->plan(&spec, &x->task.plan, e) < 0)
        return -1;
    a->metrics.codes_known += x->task.plan->compiled;
    if (x->task.plan->compiles) {
        x->code = BUF_INIT(spec.code.n);
        (void)buf_put(&x->code, spec.code.p, spec.code.n);
    }
    if (template_is_wasm(x->task.plan->template) &&
        wasm_check(a, x->jail, x->task.plan->template, e) < 0)
        return -1;
    return 0;
}

/* What is sent if we are killed before there is a result: that of a sandbox that failed. */
static void promise(struct execution *x)
{
    struct run_result *r = &x->task.result;
    uint64_t asked = r->at.asked;
    struct buf body = BUF_INIT(0);

    r->at.collected = asked;
    (void)snprintf(r->fault, sizeof r->fault, WEBHOOK_KILLED);
    verdict_reach(r, &x->task.limits, &x->verdict);
    x->out.write(x, &body);
    webhook_promise(x->out.webhook, x->id, &body);
    run_result_done(r);
    run_result_init(r, &x->task.limits);
    r->at.asked = asked;
    x->verdict = (struct verdict){0};
}

int app_execute(struct app *a, const struct exec_order *o, struct execution **ret, struct err *e)
{
    struct execution *x;
    int prepared;

    if (a->life.stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    x = execution_new(a, o);
    if (!x)
        return err_set(e, ERR_HOST, "no memory for an execution");
    x->dependencies = o->packages;
    x->network.policy = o->network;
    x->out.webhook = o->webhook;
    x->out.write = o->write;
    prepared = prepare(x, o, e);
    if (prepared == 0 && x->out.webhook)
        promise(x);
    if (prepared < 0 || task_begin(&x->task, e) < 0) {
        x->dependencies = NULL; /* the caller's again */
        x->network.policy = NULL;
        x->out.webhook = NULL;
        execution_free(x);
        return -1;
    }
    registry_add(&a->registry, x);
    *ret = x;
    if (x->task.state < TASK_COLLECTING)
        heart_start(x);
    return 0;
}

/* ---- the rest ---- */

struct execution *app_find(const struct app *a, const char *id)
{
    return registry_find(&a->registry, id);
}

/* One that was answered a moment ago is not accounted for yet, and may not outlive that. */
void execution_forget(struct execution *x)
{
    struct app *a = x->app;
    char id[EXECUTION_ID_MAX + 1];

    memcpy(id, x->id, sizeof id);
    run_after_all(x->task.engine);
    x = registry_find(&a->registry, id);
    if (!x)
        return;
    x->in.erased = true;
    registry_forget(&a->registry, x);
}

bool execution_is_same(const struct execution *x, const unsigned char *digest)
{
    return memcmp(x->digest, digest, sizeof x->digest) == 0;
}

void execution_join(struct execution *x, struct execution_waiter *w)
{
    if (w)
        LIST_INSERT_HEAD(&x->audience.waiters, w, link);
    else
        x->audience.unattended = true;
}

void execution_follow(struct execution *x, struct execution_follower *f)
{
    LIST_INSERT_HEAD(&x->audience.followers, f, link);
}

void execution_unfollow(struct execution_follower *f)
{
    LIST_REMOVE(f, link);
}

void execution_leave(struct execution *x, struct execution_waiter *w)
{
    LIST_REMOVE(w, link);
    if (LIST_EMPTY(&x->audience.waiters) && !x->audience.unattended)
        execution_stop(x, END_CANCELLED);
}

void execution_stop(struct execution *x, enum end_reason why)
{
    task_stop(&x->task, why);
}
