/* SPDX-License-Identifier: MIT */
/* Sessions as JSON, and what the answers of their turns say of them. */
#include "http/api/functions/session_json.h"

#include "app/daemon/app.h"
#include "core/languages.h"
#include "core/port_jail.h"

enum {
    US_PER_MS = 1000,
    MS_PER_S = 1000,
    MB = 20,
};

/* ---- a session ---- */

static void write_usage(struct jw *w, const struct fsession *s)
{
    struct usage u = USAGE_UNKNOWN;

    if (!s->process.run)
        return;
    run_usage(s->process.run, &u);
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
    jw_kv_int(w, "generation", s->process.generation);
    jw_kv_int(w, "calls", (int64_t)s->calls);
    jw_kv_int(w, "queued", (int64_t)s->queued_n);
    jw_kv_double(w, "timeout", (double)s->wall_ms / MS_PER_S, 3);
    jw_kv_double(w, "idleTimeout", (double)s->idle_ms / MS_PER_S, 3);
    if (resting && s->used_us > 0)
        jw_kv_double(w, "idleFor", timing_ms(s->used_us, now) / MS_PER_S, 3);
    if (s->process.lost)
        jw_kv_string(w, "lost", s->process.lost_reason);
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

void session_about_json(struct jw *w, const struct turn_facts *t)
{
    jw_key(w, "session");
    jw_object(w);
    jw_kv_string(w, "id", t->id[0] ? t->id : NULL);
    jw_kv_int(w, "generation", t->generation);
    if (t->kind == TURN_CALL)
        jw_kv_int(w, "call", (int64_t)t->number);
    jw_kv_bool(w, "restarted", t->restarted);
    if (t->restarted && t->reason)
        jw_kv_string(w, "reason", t->reason);
    if (t->interrupted)
        jw_kv_bool(w, "interrupted", true);
    if (t->kind == TURN_RELOAD || t->kind == TURN_RESTART)
        jw_kv_string(w, "reset", t->reloaded ? "soft" : "hard");
    jw_object_end(w);
}

void turn_server_timing(const struct stamps *at, char out[SERVER_TIMING_MAX])
{
    const struct timing rows[] = {
        {"queue", timing_span(at->asked,   at->started)  },
        {"run",   timing_span(at->running, at->ended)    },
        {"total", timing_span(at->asked,   at->collected)},
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
