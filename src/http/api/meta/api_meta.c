/* SPDX-License-Identifier: MIT */
/* What the daemon tells about itself. */
#include <string.h>
#include <sys/utsname.h>

#include "app/daemon/host_check.h"
#include "app/daemon/reporting.h"
#include "app/function/call_module.h"
#include "app/mcp/mcp_metrics.h"
#include "base/clock.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/console/console.h"
#include "http/server/server.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

enum { US_PER_S = 1000000, METRICS_MAX = 1 << 20, LABEL_MAX = 64 };

static double uptime_s(const struct app *a)
{
    return (double)(clock_us() - a->life.started_us) / US_PER_S;
}

/* A browser is led to the page for people; its address is relative, for a proxy in between. */
void api_root(struct http_call *c)
{
    const char *accept = http_header(c, "accept");
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);

    http_set_header(c, "Vary", "Accept");
    if (accept && strstr(accept, "text/html")) {
        http_set_header(c, "Location", console_is_there(http_app(c)) ? "console" : "docs");
        http_reply(c, 307, NULL, NULL);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "service", "sandbox-executor");
    jw_kv_string(&w, "version", SBX_VERSION);
    jw_kv_string(&w, "console", console_is_there(http_app(c)) ? "/console" : NULL);
    jw_kv_string(&w, "docs", "/docs");
    jw_kv_string(&w, "health", "/health");
    jw_kv_string(&w, "execute", "/execute");
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

/* ---- health ---- */

static void write_unhealthy(struct jw *w, const char *reason)
{
    jw_object(w);
    jw_kv_string(w, "status", "unhealthy");
    jw_kv_string(w, "reason", reason);
    jw_key(w, "detail"); /* where clients of the original look */
    jw_object(w);
    jw_kv_string(w, "status", "unhealthy");
    jw_kv_string(w, "reason", reason);
    jw_object_end(w);
    jw_object_end(w);
}

static void write_running(struct jw *w, const struct app *a)
{
    jw_kv_string(w, "version", SBX_VERSION);
    jw_kv_string(w, "isolation", a->jail->ops->name);
    if (!(a->jail->traits & JAIL_FS))
        jw_kv_string(w, "warning", "programs run without isolation");
    if (store_is_full(a->store))
        jw_kv_string(w, "state_directory", "full: artifacts are not kept");
    jw_kv_string(w, "platform", "linux");
    jw_kv_double(w, "uptime_seconds", uptime_s(a), 3);
    jw_kv_int(w, "active_executions", (int64_t)a->registry.active_n);
}

void api_health(struct http_call *c)
{
    const struct app *a = http_app(c);
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);
    unsigned traits;
    struct err e;
    int status = 503;

    if (a->life.stopping) {
        write_unhealthy(&w, "the service is shutting down");
    } else if (a->jail->ops->probe(a->jail, &traits, &e) < 0) {
        write_unhealthy(&w, e.text);
    } else {
        status = 200;
        jw_object(&w);
        /* two families know this address, each by its own word */
        jw_kv_string(&w, "status", a->config.control_plane_url[0] ? "healthy" : "ok");
        write_running(&w, a);
        jw_object_end(&w);
    }
    http_reply_json(c, status, &body);
}

/* As the SDKs of the sandbox family know it, to the byte. */
void api_koyeb_health(struct http_call *c)
{
    static const char ok[] = "{\"status\":\"ok\"}";
    const struct app *a = http_app(c);
    struct buf body = BUF_INIT(sizeof ok);
    unsigned traits;
    struct err e;

    if (a->life.stopping || a->jail->ops->probe(a->jail, &traits, &e) < 0) {
        api_health(c);
        return;
    }
    (void)buf_puts(&body, ok);
    http_reply(c, 200, "text/plain; charset=utf-8", &body);
}

/* ---- info, capabilities ---- */

static void write_traits(struct jw *w, const char *key, unsigned traits)
{
    jw_key(w, key);
    jw_array(w);
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++) {
        if (traits & BIT(i))
            jw_string(w, jail_trait_name(i));
    }
    jw_array_end(w);
}

static void write_languages(struct jw *w, const struct app *a)
{
    const struct lang_fact *f;

    jw_key(w, "languages");
    jw_array(w);
    for (size_t i = 0; (f = a->languages.ops->fact(i)); i++) {
        jw_object(w);
        jw_kv_string(w, "name", f->name);
        jw_kv_string(w, "version", a->languages.versions[i][0] ? a->languages.versions[i] : NULL);
        jw_kv_bool(w, "available", f->available);
        jw_object_end(w);
    }
    jw_array_end(w);
}

void api_info(struct http_call *c)
{
    const struct app *a = http_app(c);
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);
    struct utsname u;

    jw_object(&w);
    jw_kv_string(&w, "service", "sandbox-executor");
    write_running(&w, a);
    if (uname(&u) == 0) {
        jw_kv_string(&w, "kernel", u.release);
        jw_kv_string(&w, "machine", u.machine);
    }
    jw_kv_string(&w, "workspace_path", "/workspace");
    jw_kv_int(&w, "queued_executions", (int64_t)a->admission.queued);
    jw_kv_int(&w, "retained_executions", (int64_t)a->registry.finished_n);
    write_languages(&w, a);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

static void write_limits(struct jw *w, const struct app *a)
{
    const struct limits l = app_limits(a, a->config.timeout_s * 1000);

    jw_key(w, "limits");
    jw_object(w);
    jw_kv_int(w, "wall_time_ms", (int64_t)l.wall_ms);
    jw_kv_int(w, "wall_time_max_ms", (int64_t)a->config.timeout_max_s * 1000);
    jw_key(w, "cpu_time_ms");
    if (l.cpu_ms > 0)
        jw_int(w, (int64_t)l.cpu_ms);
    else
        jw_null(w);
    jw_kv_int(w, "memory_bytes", (int64_t)l.memory_max);
    jw_kv_int(w, "pids", l.pids_max);
    jw_kv_int(w, "open_files", l.files_max);
    jw_kv_int(w, "workspace_bytes", (int64_t)l.workspace_max);
    jw_kv_int(w, "workspace_files", (int64_t)l.workspace_files);
    jw_kv_int(w, "tmp_bytes", (int64_t)l.tmp_max);
    jw_kv_int(w, "output_bytes", (int64_t)l.output_max);
    jw_kv_int(w, "result_bytes", (int64_t)l.result_max);
    jw_kv_int(w, "code_bytes", (int64_t)a->config.code_max);
    jw_kv_int(w, "body_bytes", (int64_t)a->config.body_max_execute);
    jw_kv_int(w, "concurrent_executions", (int64_t)a->config.max_concurrent);
    jw_kv_int(w, "queued_executions", (int64_t)a->config.queue_max);
    jw_kv_int(w, "artifacts", (int64_t)a->config.artifacts_max);
    jw_object_end(w);
}

/* Which languages functions can be called in with the engine 'wasm', and why not in the others. */
static void write_wasm(struct jw *w, const struct app *a)
{
    const struct call_lang *l;
    struct err e;

    jw_key(w, "wasm");
    jw_object(w);
    for (size_t i = 0; (l = call_lang(i)); i++) {
        bool is_there = call_wasm_check(a, a->jail, (enum call_lang_id)i, &e) == 0;

        jw_key(w, l->name);
        jw_object(w);
        jw_kv_bool(w, "available", is_there);
        jw_kv_string(w, "reason", is_there ? NULL : e.text);
        jw_object_end(w);
    }
    jw_object_end(w);
}

/* What sbx doctor would say, where something is missing. */
static void write_advice(struct jw *w, const struct app *a)
{
    unsigned all = BIT(JAIL_TRAIT_COUNT) - 1;
    const char *words;

    jw_key(w, "advice");
    jw_array(w);
    for (size_t i = 0; all & ~a->jail->traits && (words = advice_words(i)); i++)
        if (a->life.in_the_way & BIT(i))
            jw_string(w, words);
    jw_array_end(w);
}

/* Every jail, whether it can be used, and if not, why. */
static void write_jails(struct jw *w, const struct app *a)
{
    jw_key(w, "jails");
    jw_array(w);
    for (size_t i = 0; i < JAILS_MAX && a->jails[i].name; i++) {
        const struct jail_option *o = &a->jails[i];
        unsigned traits = o->jail ? o->jail->traits : 0;

        jw_object(w);
        jw_kv_string(w, "name", o->name);
        jw_kv_bool(w, "allowed", o->allowed);
        jw_kv_bool(w, "available", o->jail != NULL);
        jw_kv_bool(w, "default", o->jail == a->jail);
        jw_kv_string(w, "version", o->jail ? o->jail->version : NULL);
        write_traits(w, "traits", traits);
        jw_kv_string(w, "reason", o->jail ? NULL : o->why.text);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* Which interpreters are warmed: those that no request has needed yet are cold. */
static void write_templates(struct jw *w, const struct jail *j)
{
    jw_key(w, "templates");
    jw_object(w);
    for (unsigned t = TEMPLATE_EXEC + 1; t < TEMPLATE_COUNT; t++)
        if (j->templates & BIT(t))
            jw_kv_string(w, jail_template_name((enum plan_template)t),
                         j->warm & BIT(t)          ? "warm"
                         : j->cannot_warm & BIT(t) ? "cannot warm"
                                                   : "cold");
    jw_object_end(w);
}

void api_capabilities(struct http_call *c)
{
    const struct app *a = http_app(c);
    struct buf body = BUF_INIT(API_JSON_MAX);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_string(&w, "version", SBX_VERSION);
    jw_kv_string(&w, "jail", a->jail->ops->name);
    jw_kv_string(&w, "isolation_level", a->config.isolation_level);
    jw_kv_bool(&w, "dependency_sync", a->packages.shelf != NULL);
    write_traits(&w, "traits", a->jail->traits);
    write_traits(&w, "traits_missing", ~a->jail->traits);
    write_advice(&w, a);
    write_jails(&w, a);
    write_limits(&w, a);
    write_languages(&w, a);
    write_templates(&w, a->jail);
    write_wasm(&w, a);
    jw_key(&w, "settings");
    config_values_json(&a->config, &w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

/* ---- metrics ---- */

static const char *lang_name(void *user, size_t i)
{
    const struct app *a = user;

    return i < METRICS_LANGS_MAX ? a->languages.names[i] : NULL;
}

static void report_gauges_set(struct app *a)
{
    struct metrics *m = &a->metrics;
    struct report_counts n;

    if (!a->report)
        return;
    a->report->ops->counts(a->report, &n);
    m->callbacks_delivered = n.delivered;
    m->callbacks_failed = n.failed;
    m->callbacks_rejected = n.rejected;
    m->results_lost = n.lost;
    m->results_expired = n.expired;
    m->spool_failed = n.unsaved;
    m->heartbeats = n.beats;
    m->heartbeats_failed = n.beats_failed;
    m->callbacks_waiting = n.waiting;
    m->spool_files = n.spooled;
    m->spool_bytes = n.spooled_bytes;
}

static void gauges_set(struct app *a)
{
    struct work_counts work;
    struct metrics *m = &a->metrics;

    m->active = a->admission.granted;
    m->queued = a->admission.queued;
    m->retained = a->registry.finished_n;
    m->retained_bytes = a->registry.bytes;
    work_count(a->work, &work);
    m->work_waiting = work.waiting;
    m->work_dropped = work.dropped;
    fsessions_count(&a->functions.sessions, m);
    m->uptime = (uint64_t)uptime_s(a);
    if (a->http) {
        m->connections = http_server_counters(a->http)->open;
        m->streams = http_server_counters(a->http)->streams;
    }
}

static void write_pool(const struct app *a, struct buf *out)
{
    char label[LABEL_MAX];
    static const char pool[] = "sandbox_pool", alive[] = "sandbox_sandboxes";
    struct jail_pool_state s = {0};

    a->jail->ops->state(a->jail, &s);
    metric_head(out, pool, "gauge", "prepared sandboxes by template and state");
    for (size_t t = 0; t < TEMPLATE_COUNT; t++) {
        const char *name = jail_template_name((enum plan_template)t);

        (void)snprintf(label, sizeof label, "template=\"%s\",state=\"ready\"", name);
        metric_value(out, pool, label, s.ready[t]);
        (void)snprintf(label, sizeof label, "template=\"%s\",state=\"preparing\"", name);
        metric_value(out, pool, label, s.preparing[t]);
    }
    metric_head(out, alive, "gauge", "sandboxes alive, prepared ones included");
    metric_value(out, alive, "", s.sandboxes);
}

static void write_http(const struct app *a, struct buf *out)
{
    static const char *const classes[] = {
        NULL, "class=\"1xx\"", "class=\"2xx\"", "class=\"3xx\"", "class=\"4xx\"", "class=\"5xx\""};
    static const char name[] = "sandbox_http_requests_total", gone[] = "sandbox_http_gone_total";
    static const char way[] = "sandbox_http_gave_way_total";
    const struct http_counters *h = a->http ? http_server_counters(a->http) : NULL;

    if (!h)
        return;
    metric_head(out, name, "counter", "answers by class of status");
    for (size_t i = 1; i < ARRAY_LEN(classes); i++)
        metric_value(out, name, classes[i], (double)h->requests[i]);
    metric_head(out, gone, "counter", "clients that left before their answer");
    metric_value(out, gone, "", (double)h->gone);
    metric_head(out, way, "counter", "idle connections closed because others needed the place");
    metric_value(out, way, "", (double)h->gave_way);
}

void api_metrics(struct http_call *c)
{
    struct app *a = http_app(c);
    struct buf body = BUF_INIT(METRICS_MAX);

    gauges_set(a);
    report_gauges_set(a);
    report_count_webhooks(a);
    metrics_write(&a->metrics, a->jail->ops->name, lang_name, a, &body);
    if (a->mcp_side.sessions)
        mcp_metrics_write(a->mcp_side.sessions, &body);
    write_pool(a, &body);
    write_http(a, &body);
    http_reply(c, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}
