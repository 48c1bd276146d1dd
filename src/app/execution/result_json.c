/* SPDX-License-Identifier: MIT */
/* The ExecutionResult as JSON: the contract's fields first and in its order, then ours. */
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/daemon/reporting.h"
#include "app/execution/execution.h"
#include "base/jw.h"
#include "base/mime.h"

enum { US_PER_MS = 1000, US_PER_S = 1000000, MIB = 1024 * 1024, SIGNAL_NAME_MAX = 24 };

static double ms(uint64_t us)
{
    return (double)us / US_PER_MS;
}

struct spans {
    uint64_t queue, start, run, collect, total; /* microseconds */
};

/* An execution that never ran spent all its time waiting. */
static struct spans spans_of(const struct execution *x)
{
    const struct stamps *at = &x->task.result.at;
    bool ran = at->running != 0 && at->ended != 0;

    return (struct spans){
        .queue = timing_span(at->asked, at->started != 0 ? at->started : at->collected),
        .start = timing_span(at->started, ran ? at->running : at->collected),
        .run = ran ? timing_span(at->running, at->ended) : 0,
        .collect = ran ? timing_span(at->ended, at->collected) : 0,
        .total = timing_span(at->asked, at->collected),
    };
}

static void kv_known(struct jw *w, const char *key, int64_t v)
{
    jw_key(w, key);
    if (v < 0)
        jw_null(w);
    else
        jw_int(w, v);
}

static void write_metrics(struct jw *w, const struct execution *x, const struct spans *s)
{
    const struct usage *u = &x->task.result.usage;

    jw_key(w, "metrics");
    jw_object(w);
    jw_kv_double(w, "duration_ms", ms(s->run), 3);
    jw_kv_double(w, "cpu_time_ms", u->cpu_us < 0 ? 0 : ms((uint64_t)u->cpu_us), 3);
    jw_key(w, "peak_memory_mb");
    if (u->memory_peak < 0)
        jw_null(w);
    else
        jw_double(w, (double)u->memory_peak / MIB, 3);
    kv_known(w, "io_read_bytes", u->io_read);
    kv_known(w, "io_write_bytes", u->io_write);
    jw_object_end(w);
}

static void write_artifact(struct jw *w, const struct artifact *a)
{
    char at[CLOCK_ISO_MAX];

    jw_object(w);
    jw_kv_string(w, "path", a->path);
    jw_kv_int(w, "size", (int64_t)a->stored.size);
    jw_kv_string(w, "mime_type", mime_of(a->path));
    jw_kv_string(w, "type", artifact_type(a->path));
    jw_kv_string(w, "created_at", clock_iso_at(a->mtime_s, a->mtime_ns, at));
    jw_kv_string(w, "checksum", a->stored.sha256[0] ? a->stored.sha256 : NULL);
    jw_object_end(w);
}

static void write_artifact_paths(struct jw *w, const struct artifacts *a)
{
    jw_key(w, "artifacts");
    jw_array(w);
    for (size_t i = 0; i < a->n; i++)
        if (!artifact_is_lost(a->v[i]))
            jw_string(w, a->v[i]->path);
    jw_array_end(w);
}

/* Files that nobody can ask for: there is no copy of them. */
static void write_lost(struct jw *w, const struct artifacts *a)
{
    jw_key(w, "left_out");
    jw_array(w);
    for (size_t i = 0; i < a->n; i++) {
        if (!artifact_is_lost(a->v[i]))
            continue;
        jw_object(w);
        jw_kv_string(w, "path", a->v[i]->path);
        jw_kv_int(w, "size", (int64_t)a->v[i]->stored.size);
        jw_kv_string(w, "reason", artifact_reason(a->v[i]));
        jw_object_end(w);
    }
    jw_array_end(w);
}

static void write_artifacts(struct jw *w, const struct execution *x)
{
    const struct artifacts *a = &x->artifacts;
    int64_t left_out = a->left_out + x->task.result.files_left_out, lost = 0;

    write_artifact_paths(w, a);
    jw_key(w, "artifact_metadata");
    jw_array(w);
    for (size_t i = 0; i < a->n; i++) {
        if (artifact_is_lost(a->v[i]))
            lost++;
        else
            write_artifact(w, a->v[i]);
    }
    jw_array_end(w);
    if (lost > 0)
        write_lost(w, a);
    if (left_out + lost > 0)
        jw_kv_int(w, "artifacts_left_out", left_out + lost);
}

static void write_termination(struct jw *w, const struct execution *x)
{
    const struct verdict *v = &x->verdict;
    const char *abbreviation = x->task.result.signal ? sigabbrev_np(x->task.result.signal) : NULL;
    char name[SIGNAL_NAME_MAX];

    jw_key(w, "termination");
    jw_object(w);
    jw_kv_string(w, "reason", end_reason_name(x->task.result.reason));
    if (x->task.result.signal) {
        if (abbreviation)
            (void)snprintf(name, sizeof name, "SIG%s", abbreviation);
        else
            (void)snprintf(name, sizeof name, "%d", x->task.result.signal);
        jw_kv_string(w, "signal", name);
    }
    if (v->limit) {
        jw_kv_string(w, "limit", v->limit);
        jw_kv_int(w, "limit_value", v->limit_value);
    }
    if (v->limit && v->observed >= 0)
        jw_kv_int(w, "observed", v->observed);
    if (v->hint)
        jw_kv_string(w, "hint", v->hint);
    jw_object_end(w);
}

static void write_isolation(struct jw *w, const struct execution *x)
{
    const struct jail *j = x->jail;

    jw_key(w, "isolation");
    jw_object(w);
    jw_kv_string(w, "jail", j->ops->name);
    jw_kv_string(w, "template", jail_template_name(x->task.result.template));
    jw_kv_bool(w, "warm", x->task.result.warm);
    jw_key(w, "traits");
    jw_array(w);
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++) {
        if (j->traits & BIT(i))
            jw_string(w, jail_trait_name(i));
    }
    jw_array_end(w);
    jw_object_end(w);
}

static void write_timings(struct jw *w, const struct spans *s)
{
    jw_key(w, "timings");
    jw_object(w);
    jw_kv_double(w, "queue_ms", ms(s->queue), 3);
    jw_kv_double(w, "start_ms", ms(s->start), 3);
    jw_kv_double(w, "run_ms", ms(s->run), 3);
    jw_kv_double(w, "collect_ms", ms(s->collect), 3);
    jw_kv_double(w, "total_ms", ms(s->total), 3);
    jw_object_end(w);
}

static void write_output(struct jw *w, const struct execution *x, const struct spans *s)
{
    const struct run_result *r = &x->task.result;
    bool returned = x->verdict.status == STATUS_SUCCESS && r->result.n > 0;

    jw_kv_bytes(w, "stdout", r->out.p ? r->out.p : "", r->out.n);
    jw_kv_bytes(w, "stderr", r->err.p ? r->err.p : "", r->err.n);
    jw_kv_int(w, "exit_code", r->exit_code);
    jw_kv_double(w, "execution_time", (double)s->run / US_PER_S, 6);
    jw_key(w, "return_value");
    if (returned)
        jw_raw(w, r->result.p, r->result.n);
    else
        jw_null(w);
}

void execution_result_json(const struct execution *x, struct buf *out)
{
    const struct run_result *r = &x->task.result;
    const struct spans s = spans_of(x);
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "execution_id", x->id);
    jw_kv_string(&w, "status", exec_status_name(x->verdict.status));
    write_output(&w, x, &s);
    write_metrics(&w, x, &s);
    write_artifacts(&w, x);
    if (r->out_truncated)
        jw_kv_bool(&w, "stdout_truncated", true);
    if (r->err_truncated)
        jw_kv_bool(&w, "stderr_truncated", true);
    if (r->error.n > 0) {
        jw_key(&w, "error");
        jw_raw(&w, r->error.p, r->error.n);
    }
    write_termination(&w, x);
    denials_json(&w, x->verdict.denied, DENIAL_EPHEMERAL);
    write_isolation(&w, x);
    write_timings(&w, &s);
    jw_object_end(&w);
}

void execution_told_json(const struct execution *x, struct buf *out)
{
    const struct spans s = spans_of(x);
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "status", report_status(x));
    write_output(&w, x, &s);
    write_metrics(&w, x, &s);
    write_artifact_paths(&w, &x->artifacts);
    jw_object_end(&w);
}

void execution_server_timing(const struct execution *x, char out[SERVER_TIMING_MAX])
{
    const struct spans s = spans_of(x);
    const struct timing rows[] = {
        {"queue",   s.queue  },
        {"start",   s.start  },
        {"run",     s.run    },
        {"collect", s.collect},
        {"total",   s.total  },
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
