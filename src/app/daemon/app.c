/* SPDX-License-Identifier: MIT */
/* The daemon as one object: made, told to end, ended. */
#include "app/daemon/app.h"

#include <event2/event.h>

#include "app/daemon/language_probe.h"
#include "app/execution/code_cache.h"
#include "app/execution/kept_disk.h"
#include "app/execution/workspaces.h"
#include "app/function/compile_cache.h"
#include "app/function/kept_calls.h"
#include "app/mcp/sessions.h"
#include "app/tools/toolbox.h"

enum { MS_PER_S = 1000 };
#define US_PER_S 1000000u

/* ---- forgetting ---- */

static void on_expiry(evutil_socket_t fd, short what, void *user)
{
    struct app *a = user;
    int64_t now = (int64_t)clock_us(), next = registry_expire(&a->registry, now);
    struct timeval tv = {.tv_sec = (time_t)((next - now) / US_PER_S) + 1};

    (void)fd, (void)what;
    if (next != 0)
        (void)event_add(a->retained.expiry, &tv);
}

void app_expiry_arm(struct app *a)
{
    if (!event_pending(a->retained.expiry, EV_TIMEOUT, NULL))
        on_expiry(-1, 0, a);
}

/* ---- ending ---- */

void app_idle_check(struct app *a)
{
    if (a->life.idle && a->registry.active_n == 0 && a->functions.calls.telling == 0)
        a->life.idle(a->life.user);
}

void app_refuse_new(struct app *a)
{
    a->life.stopping = true;
}

void app_stop_unattended(struct app *a, enum end_reason why)
{
    struct execution *x;

    TAILQ_FOREACH(x, &a->registry.active, in.link)
    {
        if (LIST_EMPTY(&x->audience.waiters))
            execution_stop(x, why);
    }
    calls_stop_unattended(&a->functions.calls, why);
}

void app_stop_all(struct app *a, enum end_reason why)
{
    struct execution *x;

    TAILQ_FOREACH(x, &a->registry.active, in.link)
    {
        execution_stop(x, why);
    }
    calls_stop_all(&a->functions.calls, why);
    dependencies_stop_all(&a->packages.dependencies, why);
    fsessions_stop_all(&a->functions.sessions, why);
}

void app_on_idle(struct app *a, app_idle_fn *fn, void *user)
{
    a->life.idle = fn;
    a->life.user = user;
    app_idle_check(a);
}

/* ---- life ---- */

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

    for (size_t i = 0; i < METRICS_LANGS_MAX - 1 && (f = a->languages.ops->fact(i)); i++)
        a->languages.names[i] = f->name;
    a->life.started_us = clock_us();
    admission_init(&a->admission, c->max_concurrent, c->queue_max);
    a->admission.lane_max = c->session_queue_max;
    sessions_init(&a->workspace.sessions, config_has_own_workspace(c) ? c->session_id : "",
                  c->session_concurrency ? c->session_concurrency : c->max_concurrent);
    task_host_init(&a->tasks, &a->admission, a->work, &a->metrics.refused);
    registry_init(&a->registry, execution_free);
    calls_init(&a->functions.calls);
    fsessions_init(&a->functions.sessions);
    inspections_init(&a->functions.inspections);
    dependencies_init(&a->packages.dependencies);
    package_sets_init(&a->packages.sets);
    if (code_cache_new(c->code_cache_mb << 20, &a->functions.codes, e) < 0 ||
        compile_cache_open(c->state_dir, &a->functions.programs, e) < 0 ||
        kept_calls_new(c->retain_s, &a->functions.changes, e) < 0)
        return -1;
    a->registry.count_max = c->retain_count;
    a->registry.bytes_max = c->retain_bytes;
    a->registry.age_max_us = c->retain_s * US_PER_S;
    a->retained.expiry = evtimer_new(a->base, on_expiry, a);
    if (!a->retained.expiry)
        return err_set(e, ERR_HOST, "no memory for an event");
    if (workspaces_open(a, a->workspace.dir, &a->workspace.all, e) < 0)
        return -1;
    if (a->config.mcp && mcp_sessions_open(a, &a->mcp_side.sessions, e) < 0)
        return -1;
    if (toolbox_open(a, &a->mcp_side.tools, e) < 0)
        return -1;
    if (a->config.retain_on_disk && a->config.retain_count > 0)
        return kept_disk_open(a, &a->retained.disk, e);
    store_sweep(a->store, NULL, 0);
    return 0;
}

void app_done(struct app *a)
{
    if (!a->retained.expiry)
        return; /* never initialised */
    survey_stop(a);
    kept_disk_stop(a->retained.disk);
    workspaces_stop(a->workspace.all);
    toolbox_close(take_ptr(&a->mcp_side.tools));
    mcp_sessions_close(a->mcp_side.sessions); /* what it ends still counts in it */
    a->mcp_side.sessions = NULL;
    a->admission.granting = true; /* what is freed now makes room for nobody */
    run_after_all(a->engine);
    for (size_t i = 0; i < JAILS_MAX; i++)
        run_after_all(a->engines[i]);
    calls_done(&a->functions.calls);
    fsessions_done(&a->functions.sessions);
    disk_done(&a->workspace.looks);
    workspaces_close(take_ptr(&a->workspace.all));
    sessions_done(&a->workspace.sessions);
    inspections_done(a);
    kept_calls_free(take_ptr(&a->functions.changes));
    dependencies_done(&a->packages.dependencies);
    package_sets_done(&a->packages.sets);
    compile_cache_close(take_ptr(&a->functions.programs));
    kept_disk_close(a->retained.disk);
    a->retained.disk = NULL;
    a->life.ending = true;
    registry_done(&a->registry);
    code_cache_free(take_ptr(&a->functions.codes));
    event_free(a->retained.expiry);
    a->retained.expiry = NULL;
}
