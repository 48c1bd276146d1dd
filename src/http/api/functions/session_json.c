/* SPDX-License-Identifier: MIT */
/* Sessions and the answers of their turns as JSON, in the fields of a function call's result. */
#include "http/api/functions/session_json.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "core/denial.h"
#include "core/languages.h"
#include "core/port_jail.h"
#include "http/api/functions/function_json.h"

enum {
    US_PER_MS = 1000,
    MS_PER_S = 1000,
    MB = 20,
    ESCAPE_FACTOR = 6,       /* one byte becomes at most \u00XX */
    RESULT_ROOM = 64 * 1024, /* an answer beside its texts */
};

/* ---- a session ---- */

static void write_usage(struct jw *w, const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (!s->run)
        return;
    run_usage(s->run, &u);
    jw_key(w, "usage");
    jw_object(w);
    if (u.cpu_us >= 0)
        jw_kv_int(w, "cpuMs", u.cpu_us / US_PER_MS);
    if (u.memory_peak >= 0)
        jw_kv_int(w, "memoryPeakBytes", u.memory_peak);
    jw_object_end(w);
}

static void write_limits(struct jw *w, const struct fsession *s)
{
    const struct limits *l = &s->program.limits;

    jw_key(w, "limits");
    jw_object(w);
    jw_kv_int(w, "memoryMb", (int64_t)(l->memory_max >> MB));
    jw_kv_int(w, "workspaceMb", (int64_t)(l->workspace_max >> MB));
    jw_kv_int(w, "pids", l->pids_max);
    jw_kv_int(w, "outputBytes", (int64_t)l->output_max);
    jw_kv_int(w, "resultBytes", (int64_t)l->result_max);
    jw_kv_int(w, "queue", (int64_t)s->app->config.fsession_queue_max);
    jw_object_end(w);
}

static void write_session(struct jw *w, const struct fsession *s)
{
    uint64_t now = clock_us();
    bool resting = s->state == FSESSION_IDLE || s->state == FSESSION_DOWN;

    jw_object(w);
    jw_kv_string(w, "id", s->id);
    jw_kv_string(w, "language",
                 s->program.lang >= 0 ? call_lang((size_t)s->program.lang)->name : NULL);
    jw_kv_string(w, "engine", s->program.wasm ? "wasm" : "native");
    jw_kv_string(w, "isolation", s->program.where.jail ? s->program.where.jail->ops->name : NULL);
    jw_kv_string(w, "state", fsession_state_name(s->state));
    jw_kv_string(w, "createdAt", s->created_at);
    jw_kv_int(w, "generation", s->generation);
    jw_kv_int(w, "calls", (int64_t)s->calls);
    jw_kv_int(w, "queued", (int64_t)s->queued_n);
    jw_kv_double(w, "timeout", (double)s->wall_ms / MS_PER_S, 3);
    jw_kv_double(w, "idleTimeout", (double)s->idle_ms / MS_PER_S, 3);
    if (resting && s->used_us > 0)
        jw_kv_double(w, "idleFor", timing_ms(s->used_us, now) / MS_PER_S, 3);
    if (s->lost)
        jw_kv_string(w, "lost", s->lost_reason);
    write_limits(w, s);
    write_usage(w, s);
    jw_object_end(w);
}

void fsession_json(const struct fsession *s, struct buf *out)
{
    struct jw w = JW(out);

    write_session(&w, s);
}

/* ---- an answer ---- */

/* Where it was when it was interrupted. */
static void write_stack(struct jw *w, const struct turn *t)
{
    struct json_value v, stack;
    struct err e;

    jw_key(w, "stack");
    if (t->outcome.stack.p)
        jw_raw(w, t->outcome.stack.p, t->outcome.stack.n);
    else if (t->timed_out && t->error.n > 0 && json_parse(t->error.p, t->error.n, 0, &v, &e) == 0 &&
             v.type == JSON_OBJECT && json_get(v, "stack", &stack) && stack.type == JSON_STRING)
        jw_raw(w, stack.p, stack.n);
    else
        jw_string(w, "");
}

static void write_error(struct jw *w, const struct turn *t)
{
    const struct call_outcome *o = &t->outcome;

    if (o->status == CALL_SUCCESS)
        return;
    jw_key(w, "error");
    if (o->framed) {
        jw_raw(w, t->error.p, t->error.n);
        return;
    }
    jw_object(w);
    jw_kv_string(w, "type", o->type);
    jw_kv_string(w, "message", o->message);
    write_stack(w, t);
    jw_object_end(w);
}

static void write_about(struct jw *w, const struct turn *t)
{
    jw_key(w, "session");
    jw_object(w);
    jw_kv_string(w, "id", t->id[0] ? t->id : NULL);
    jw_kv_int(w, "generation", t->generation);
    if (t->kind == TURN_CALL)
        jw_kv_int(w, "call", (int64_t)t->number);
    jw_kv_bool(w, "restarted", t->restarted);
    if (t->restarted && t->restart_reason)
        jw_kv_string(w, "reason", t->restart_reason);
    if (t->interrupted)
        jw_kv_bool(w, "interrupted", true);
    if (t->kind == TURN_RELOAD || t->kind == TURN_RESTART)
        jw_kv_string(w, "reset", t->reloaded ? "soft" : "hard");
    jw_object_end(w);
}

static void write_meta(struct jw *w, const struct turn *t)
{
    jw_key(w, "meta");
    jw_object(w);
    jw_kv_double(w, "duration", timing_ms(t->at.asked, t->at.collected), 3);
    if (t->kind == TURN_CALL)
        jw_kv_string(w, "signatureSource", signature_source_name(t->binding.source));
    jw_kv_string(w, "callId", t->call_id);
    jw_kv_string(w, "engine", t->wasm ? "wasm" : "native");
    jw_kv_string(w, "language", t->lang >= 0 ? call_lang((size_t)t->lang)->name : NULL);
    if (t->request.function.p)
        jw_kv_bytes(w, "functionName", t->request.function.p, t->request.function.n);
    if (t->tree)
        loading_json(w, t->tree);
    jw_object_end(w);
}

/* What the sandbox refused, as far as what was said tells. */
static unsigned denied_to(const struct turn *t)
{
    const struct usage unknown = USAGE_UNKNOWN;

    return denials_find(&(struct denial_facts){
        .said = {&t->output.err, &t->error},
          .usage = &unknown, .signal = t->signal
    });
}

static size_t room_for(const struct turn *t)
{
    size_t room = RESULT_ROOM + files_room(&t->changes) +
                  ESCAPE_FACTOR * (t->output.out.n + t->output.err.n + t->request.function.n);

    return room + t->result.n + t->error.n + (t->synced ? sync_report_room(t->synced) : 0);
}

void turn_json(struct turn *t, struct buf *out)
{
    const struct run_output *o = &t->output;
    bool good = t->outcome.status == CALL_SUCCESS;
    const unsigned denied = good ? 0 : denied_to(t);
    struct jw w = JW(out);

    *out = BUF_INIT(room_for(t));
    jw_object(&w);
    if (t->kind == TURN_CREATE && good)
        jw_kv_string(&w, "id", t->id);
    jw_kv_string(&w, "status", call_status_name(t->outcome.status));
    jw_kv_bool(&w, "success", good);
    if (good && t->kind == TURN_CALL) {
        jw_key(&w, "result");
        jw_raw(&w, t->result.p, t->result.n);
    }
    if (t->stream)
        jw_kv_int(&w, "items", (int64_t)t->items);
    write_error(&w, t);
    jw_kv_bytes(&w, "stdout", o->out.p ? o->out.p : "", o->out.n);
    jw_kv_bytes(&w, "stderr", o->err.p ? o->err.p : "", o->err.n);
    jw_kv_int(&w, "exitCode", t->outcome.exit_code);
    if (t->scanned)
        files_json(&w, &t->changes, &t->request, t->left_out);
    if (t->synced) {
        jw_key(&w, "sync");
        sync_report_json(t->synced, out);
        w.comma = true;
    }
    write_about(&w, t);
    write_meta(&w, t);
    if (o->out_truncated)
        jw_kv_bool(&w, "stdoutTruncated", true);
    if (o->err_truncated)
        jw_kv_bool(&w, "stderrTruncated", true);
    if (t->at.started > 0 || t->reason != END_EXIT) {
        termination_json(&w, t->reason, t->signal, &t->outcome,
                         denials_hint(denied, DENIAL_EPHEMERAL));
        denials_json(&w, denied, DENIAL_EPHEMERAL);
        isolation_json(&w, t->jail ? t->jail : t->app->jail, t->warm);
    }
    timings_json(&w, &t->at);
    jw_object_end(&w);
}

void turn_server_timing(const struct turn *t, char out[SERVER_TIMING_MAX])
{
    const struct timing rows[] = {
        {"queue", timing_span(t->at.asked,   t->at.started)  },
        {"run",   timing_span(t->at.running, t->at.ended)    },
        {"total", timing_span(t->at.asked,   t->at.collected)},
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
