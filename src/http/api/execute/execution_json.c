/* SPDX-License-Identifier: MIT */
/* The ExecutionResult as JSON: the contract's fields first and in its order, then ours. */
#include "http/api/execute/execution_json.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/network/network.h"
#include "base/jw.h"
#include "base/mime.h"
#include "core/result_write.h"

enum {
    US_PER_MS = 1000,
    SIGNAL_NAME_MAX = 24,
    OVERHEAD = 64 * 1024, /* an answer beside its texts and artifacts */
    ARTIFACT_OVERHEAD = 1024,
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    STATE_MAX = 4096,  /* an Execution beside its result */
};

static double ms(uint64_t us)
{
    return (double)us / US_PER_MS;
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

/* Files that cannot be downloaded: there is no copy of them. */
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
    jw_key(w, "isolation");
    jw_object(w);
    jw_kv_string(w, "jail", x->ran_in.jail);
    jw_kv_string(w, "template", jail_template_name(x->task.result.template));
    jw_kv_bool(w, "warm", x->task.result.warm);
    jw_key(w, "traits");
    jw_array(w);
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++) {
        if (x->ran_in.traits & BIT(i))
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

static void write_result(struct jw *w, const struct execution *x)
{
    const struct run_result *r = &x->task.result;
    const struct spans s = spans_of(&r->at);

    jw_object(w);
    jw_kv_string(w, "execution_id", x->id);
    jw_kv_string(w, "status", exec_status_name(x->verdict.status));
    result_write_output(w, r, x->verdict.status == STATUS_SUCCESS);
    result_write_metrics(w, r);
    write_artifacts(w, x);
    if (r->out_truncated)
        jw_kv_bool(w, "stdout_truncated", true);
    if (r->err_truncated)
        jw_kv_bool(w, "stderr_truncated", true);
    if (r->error.n > 0) {
        jw_key(w, "error");
        jw_raw(w, r->error.p, r->error.n);
    }
    write_termination(w, x);
    denials_json(w, x->verdict.denied & ~(x->network.of ? BIT(DENIAL_NETWORK) : 0),
                 DENIAL_EPHEMERAL);
    if (x->network.of)
        network_json(w, x->network.of);
    write_isolation(w, x);
    write_timings(w, &s);
    jw_object_end(w);
}

void execution_result_json(const struct execution *x, struct buf *out)
{
    struct jw w = JW(out);

    write_result(&w, x);
}

/* Written by a tenant: shown only when it is JSON. */
static void write_progress(struct jw *w, const struct buf *b)
{
    struct json_value v;
    struct err e;

    jw_key(w, "progress");
    if (b->n > 0 && json_parse(b->p, b->n, 0, &v, &e) == 0)
        jw_raw(w, v.p, v.n);
    else
        jw_null(w);
}

void execution_json(const struct execution *x, struct buf *out)
{
    bool done = execution_is_done(x);
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "execution_id", x->id);
    jw_kv_string(&w, "session_id", x->session_id[0] ? x->session_id : NULL);
    jw_kv_string(&w, "state", execution_state_name(x));
    jw_kv_string(&w, "status", done ? exec_status_name(x->verdict.status) : NULL);
    jw_kv_string(&w, "language", x->app->languages.names[x->lang]);
    jw_kv_string(&w, "created_at", x->created_at);
    write_progress(&w, &x->task.result.progress);
    jw_key(&w, "result");
    if (done)
        write_result(&w, x);
    else
        jw_null(&w);
    jw_object_end(&w);
}

void execution_row_json(const struct execution *x, struct jw *w)
{
    const struct run_result *r = &x->task.result;
    bool done = execution_is_done(x);

    jw_object(w);
    jw_kv_string(w, "execution_id", x->id);
    jw_kv_string(w, "session_id", x->session_id[0] ? x->session_id : NULL);
    jw_kv_string(w, "state", execution_state_name(x));
    jw_kv_string(w, "status", done ? exec_status_name(x->verdict.status) : NULL);
    jw_kv_string(w, "reason", done ? end_reason_name(r->reason) : NULL);
    jw_kv_string(w, "language", x->app->languages.names[x->lang]);
    jw_kv_string(w, "created_at", x->created_at);
    if (done) {
        jw_kv_int(w, "exit_code", r->exit_code);
        jw_kv_double(w, "total_ms", ms(spans_of(&r->at).total), 3);
        jw_kv_int(w, "stdout_bytes", (int64_t)r->out.n);
        jw_kv_int(w, "stderr_bytes", (int64_t)r->err.n);
        jw_kv_int(w, "artifacts", (int64_t)x->artifacts.n);
    }
    jw_object_end(w);
}

static size_t result_room(const struct execution *x)
{
    const struct run_result *r = &x->task.result;
    size_t room = (r->out.n + r->err.n) * ESCAPE_FACTOR + r->result.n + r->error.n +
                  (x->network.of ? NETWORK_JSON_MAX : 0);

    for (size_t i = 0; i < x->artifacts.n; i++)
        room += 2 * ESCAPE_FACTOR * strlen(x->artifacts.v[i]->path) + ARTIFACT_OVERHEAD;
    return room;
}

size_t execution_json_room(const struct execution *x)
{
    const struct run_result *r = &x->task.result;
    size_t room = OVERHEAD + STATE_MAX + r->progress.n + ESCAPE_FACTOR * strlen(x->session_id);

    return execution_is_done(x) ? room + result_room(x) : room;
}

void execution_result_body(const struct execution *x, struct buf *out)
{
    *out = BUF_INIT(OVERHEAD + result_room(x));
    execution_result_json(x, out);
}

void execution_server_timing(const struct execution *x, char out[SERVER_TIMING_MAX])
{
    const struct spans s = spans_of(&x->task.result.at);
    const struct timing rows[] = {
        {"queue",   s.queue  },
        {"start",   s.start  },
        {"run",     s.run    },
        {"collect", s.collect},
        {"total",   s.total  },
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
