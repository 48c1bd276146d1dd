/* SPDX-License-Identifier: MIT */
#include "app/packages/dependencies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "app/packages/dependencies_inner.h"
#include "base/os.h"
#include "base/utf8.h"

enum { PORT_HTTPS = 443, SAID_MAX = 2048 };

/* ---- ending ---- */

static void specs_free(char **specs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(specs[i]);
    free(specs);
}

static void dependency_free(struct dependency_sync *s)
{
    struct app *a = s->app;

    TAILQ_REMOVE(&a->packages.dependencies.active, s, link);
    egress_door_close(s->out.door);
    task_done(&s->task);
    session_leave(&a->workspace.sessions, s->session);
    shelf_build_drop(s->copy.build);
    specs_free(s->specs, s->specs_n);
    specs_free(s->npm, s->npm_n);
    free(s->out.hosts);
    free(s->found.dists);
    buf_done(&s->error);
    explicit_bzero(&s->index, sizeof s->index);
    explicit_bzero(&s->registry, sizeof s->registry);
    free(s);
}

/* "2026-01-02T03:04:05.678901+00:00" */
static void iso_now(char out[DEPENDENCY_ISO_MAX])
{
    char z[CLOCK_ISO_MAX];

    (void)clock_iso(z);
    (void)snprintf(out, DEPENDENCY_ISO_MAX, "%.*s+00:00", (int)strcspn(z, "Z"), z);
}

static void log_end(const struct dependency_sync *s)
{
    const struct app *a = s->app;
    bool ok = s->answer.status == DEPENDENCY_OK;

    log_event(&a->log, ok ? LOG_INFO : LOG_WARN, ok ? "dependencies_synced" : "dependencies_failed",
              LOG_STR("session_id", dependency_session(s)), LOG_STR("request_id", s->request_id),
              LOG_STR("owner", s->owner), LOG_STR("index_host", s->index.host.name),
              LOG_INT("requirements", (int64_t)(s->specs_n + s->npm_n)),
              LOG_INT("installed", (int64_t)s->found.n), LOG_INT("files", (int64_t)s->copy.files),
              LOG_INT("bytes", (int64_t)s->copy.bytes),
              LOG_INT("transferred", (int64_t)s->out.transferred),
              LOG_INT("hosts_refused", (int64_t)s->out.refused),
              LOG_STR("reason",
                      !dependency_is_empty(s) ? end_reason_name(s->task.result.reason) : "exit"),
              LOG_INT("duration_us", (int64_t)(clock_us() - s->started_us)));
}

static int by_name(const void *x, const void *y)
{
    const struct package_dist *a = x, *b = y;
    int r = strcasecmp(a->name, b->name);

    return r ? r : strcmp(a->version, b->version);
}

/* The installer's own words follow ours; the end of them says most. */
static void put_error(struct dependency_sync *s, const char *words)
{
    const struct buf *said = s->task.result.err.n > 0 ? &s->task.result.err : &s->task.result.out;
    struct buf once = BUF_INIT(8 * s->task.result.err.max + 8), clean = BUF_INIT(2 * once.max);
    size_t room;

    s->error = BUF_INIT(DEPENDENCY_ERROR_MAX);
    (void)buf_puts(&s->error, words);
    if (said->n > 0)
        package_scrub(&s->index, said->p, said->n, &once);
    if (once.n > 0)
        package_scrub(&s->registry, once.p, once.n, &clean);
    buf_done(&once);
    room = DEPENDENCY_ERROR_MAX - s->error.n - 2;
    if (clean.n > 0 && !clean.failed) {
        size_t skip = clean.n > room ? clean.n - room : 0;

        (void)buf_puts(&s->error, words[0] ? "\n" : "");
        (void)buf_put(&s->error, clean.p + skip, clean.n - skip);
    }
    buf_done(&clean);
    s->answer.error = (struct bytes){s->error.p, s->error.n};
}

void dependency_answer(struct dependency_sync *s, enum dependency_status status, const char *words)
{
    s->answer.status = status;
    iso_now(s->answer.completed_at);
    if (status != DEPENDENCY_OK) {
        put_error(s, words);
        return;
    }
    if (s->found.n > 0)
        qsort(s->found.dists, s->found.n, sizeof *s->found.dists, by_name);
    s->answer.dists = s->found.dists;
    s->answer.dists_n = s->found.n;
    s->answer.files = s->copy.files;
    s->answer.bytes = s->copy.bytes;
}

static void tell(struct task *t)
{
    struct dependency_sync *s = dependency_of(t);

    if (s->done)
        s->done(s->user, &s->answer);
}

static void account(struct task *t)
{
    struct dependency_sync *s = dependency_of(t);
    struct metrics *m = &s->app->metrics;

    if (s->answer.status == DEPENDENCY_OK)
        m->dependency_syncs++;
    else
        m->dependency_syncs_failed++;
    log_end(s);
    dependency_free(s);
}

/* ---- asking ---- */

static bool host_matches(const struct package_host *rule, const struct package_host *h)
{
    return strcmp(rule->name, h->name) == 0 && (rule->port == 0 || rule->port == h->port);
}

static int check_index(const struct app *a, const struct package_index *index, struct err *e)
{
    const struct dependencies *d = &a->packages.dependencies;

    for (size_t i = 0; i < d->indexes_n; i++)
        if (host_matches(&d->indexes[i], &index->host))
            return 0;
    return d->indexes_n == 0
               ? 0
               : err_set(e, ERR_DENIED, "'%s:%u' is not a host that an index may be on",
                         index->host.name, index->host.port);
}

static int copy_specs(const struct bytes *from, size_t n, char ***ret, size_t *ret_n, struct err *e)
{
    *ret = calloc(n + 1, sizeof **ret);
    for (size_t i = 0; *ret && i < n; i++) {
        (*ret)[i] = strndup(from[i].p, from[i].n);
        if (!(*ret)[i])
            return err_set(e, ERR_HOST, "no memory for dependencies");
        ++*ret_n;
    }
    return *ret ? 0 : err_set(e, ERR_HOST, "no memory for dependencies");
}

int dependencies_check(const struct bytes *specs, size_t specs_n, const struct bytes *npm,
                       size_t npm_n, struct err *e)
{
    if (specs_n > DEPENDENCIES_MAX || npm_n > DEPENDENCIES_MAX)
        return err_set(e, ERR_CALLER, "more than %d dependencies", DEPENDENCIES_MAX);
    for (size_t i = 0; i < specs_n; i++)
        if (package_spec_check(specs[i].p, specs[i].n, e) < 0)
            return -1;
    for (size_t i = 0; i < npm_n; i++)
        if (package_npm_check(npm[i].p, npm[i].n, e) < 0)
            return -1;
    return 0;
}

/* The indexes, where they keep their files, and whatever the operator lets packages come from. */
static int copy_hosts(struct dependency_sync *s, struct err *e)
{
    static const struct package_host files = {.name = "files.pythonhosted.org", .port = PORT_HTTPS};
    const struct dependencies *d = &s->app->packages.dependencies;

    s->out.hosts = calloc(3 + d->hosts_n, sizeof *s->out.hosts);
    if (!s->out.hosts)
        return err_set(e, ERR_HOST, "no memory for dependencies");
    if (s->index.host.name[0])
        s->out.hosts[s->out.hosts_n++] = s->index.host;
    if (s->registry.host.name[0])
        s->out.hosts[s->out.hosts_n++] = s->registry.host;
    if (strcmp(s->index.host.name, "pypi.org") == 0)
        s->out.hosts[s->out.hosts_n++] = files;
    for (size_t i = 0; i < d->hosts_n; i++)
        s->out.hosts[s->out.hosts_n++] = d->hosts[i];
    return 0;
}

static int take_owner(struct dependency_sync *s, const struct dependency_order *o, struct err *e)
{
    if (!o->session_id) {
        (void)snprintf(s->owner, sizeof s->owner, "%s", o->set);
        return 0;
    }
    s->session = session_enter(&s->app->workspace.sessions, o->session_id);
    if (!s->session)
        return err_set(e, ERR_HOST, "no memory for a session");
    s->task.ticket.lane = &s->session->dependencies;
    (void)snprintf(s->owner, sizeof s->owner, "%s", s->session->name);
    return 0;
}

static int prepare(struct dependency_sync *s, const struct dependency_order *o, struct err *e)
{
    struct app *a = s->app;

    if ((o->session_id || o->specs_n > 0) &&
        (package_index_parse(o->index.p, o->index.n, &s->index, e) < 0 ||
         check_index(a, &s->index, e) < 0))
        return -1;
    if (o->npm_n > 0 && (package_index_parse(o->registry.p, o->registry.n, &s->registry, e) < 0 ||
                         check_index(a, &s->registry, e) < 0))
        return -1;
    if (dependencies_check(o->specs, o->specs_n, o->npm, o->npm_n, e) < 0 ||
        copy_specs(o->specs, o->specs_n, &s->specs, &s->specs_n, e) < 0 ||
        copy_specs(o->npm, o->npm_n, &s->npm, &s->npm_n, e) < 0 || copy_hosts(s, e) < 0 ||
        take_owner(s, o, e) < 0)
        return -1;
    (void)snprintf(s->request_id, sizeof s->request_id, "%s", o->request_id);
    iso_now(s->answer.started_at);
    s->started_us = clock_us();
    s->done = o->done;
    s->user = o->user;
    return 0;
}

static const struct task_kind kind = {
    .name = "package installation",
    .steps = dependency_steps,
    .steps_n = DEPENDENCY_STEPS,
    .answer = tell,
    .account = account,
};

int dependencies_refuse(const struct app *a, struct err *e)
{
    const struct jail_option *o = a->jails;

    while (o < a->jails + JAILS_MAX && o->name && strcmp(o->name, "native") != 0)
        o++;
    if (o == a->jails + JAILS_MAX || !o->name || o->jail)
        return err_set(e, ERR_HOST, "jail '%s' cannot install packages; 'native' can",
                       a->jail->ops->name);
    return err_set(
        e, ERR_HOST,
        "jail '%s' cannot install packages; 'native' can, but cannot be used here: %.300s",
        a->jail->ops->name, o->why.text);
}

int dependencies_sync(struct app *a, const struct dependency_order *o, struct dependency_sync **ret,
                      struct err *e)
{
    struct dependency_sync *s;

    if (a->life.stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if (!a->packages.shelf)
        return dependencies_refuse(a, e);
    s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_HOST, "no memory for dependencies");
    s->app = a;
    s->task.limits = dependency_limits(a);
    task_init(&s->task, &kind, &a->tasks, a->engine);
    TAILQ_INSERT_TAIL(&a->packages.dependencies.active, s, link);
    if (prepare(s, o, e) < 0 || task_begin(&s->task, e) < 0) {
        log_event(&a->log, LOG_WARN, "dependencies_refused",
                  LOG_STR("session_id", o->session_id ? o->session_id : ""),
                  LOG_STR("request_id", o->request_id), LOG_STR("error", e->text));
        dependency_free(s);
        return -1;
    }
    log_event(&a->log, LOG_INFO, "dependencies_asked", LOG_STR("session_id", dependency_session(s)),
              LOG_STR("request_id", s->request_id), LOG_STR("owner", s->owner),
              LOG_STR("index_host", s->index.host.name),
              LOG_INT("requirements", (int64_t)(s->specs_n + s->npm_n)));
    *ret = s;
    return 0;
}

void dependencies_progress(const struct dependency_sync *s, struct dependency_progress *ret)
{
    const struct buf *said = s->task.result.err.n > 0 ? &s->task.result.err : &s->task.result.out;
    size_t skip = said->n > SAID_MAX ? said->n - SAID_MAX : 0;

    *ret = (struct dependency_progress){.loaded = s->out.door ? egress_door_bytes(s->out.door)
                                                              : s->out.transferred,
                                        .files = s->copy.files};
    if (said->n > 0 && !s->index.user_info[0] && !s->registry.user_info[0])
        ret->said = (struct bytes){said->p + skip, said->n - skip};
}

void dependencies_leave(struct dependency_sync *s)
{
    s->done = NULL;
}

/* ---- life ---- */

void dependencies_init(struct dependencies *d)
{
    TAILQ_INIT(&d->active);
}

static int read_hosts(const char *name, const char *text, struct package_host *ret, size_t *ret_n,
                      struct err *e)
{
    int n = package_hosts_parse(text, ret, DEPENDENCY_HOSTS_MAX, e);

    if (n < 0)
        return err_wrap(e, "%s", name);
    *ret_n = (size_t)n;
    return 0;
}

int dependencies_open(struct app *a, struct err *e)
{
    struct dependencies *d = &a->packages.dependencies;
    const struct config *c = &a->config;

    if (read_hosts("DEPENDENCY_INDEXES", c->dependency_indexes, d->indexes, &d->indexes_n, e) < 0 ||
        read_hosts("DEPENDENCY_HOSTS", c->dependency_hosts, d->hosts, &d->hosts_n, e) < 0)
        return -1;
    for (size_t i = 0; i < d->hosts_n; i++)
        if (d->hosts[i].port == 0)
            d->hosts[i].port = PORT_HTTPS;
    return a->jail->mounts_dependencies && net_possible(a->jail, NET_GATE)
               ? shelf_open(c->dependencies_path, a->work, &a->packages.shelf, e)
               : 0;
}

void dependencies_stop_all(struct dependencies *d, enum end_reason why)
{
    struct dependency_sync *s;

    TAILQ_FOREACH(s, &d->active, link)
    {
        task_stop(&s->task, why);
    }
}

void dependencies_done(struct dependencies *d)
{
    for (struct dependency_sync *s; (s = TAILQ_FIRST(&d->active));)
        dependency_free(s);
}
