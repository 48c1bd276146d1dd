/* SPDX-License-Identifier: MIT */
/* The result of a function call, and of a turn of a session, as JSON. */
#include <stdio.h>
#include <string.h>

#include "core/denial.h"
#include "core/languages.h"
#include "core/port_jail.h"
#include "http/api/functions/function_json.h"
#include "http/api/functions/session_json.h"

enum {
    SIGNAL_NAME_MAX = 24,
    ESCAPE_FACTOR = 6,       /* one byte becomes at most \u00XX */
    RESULT_ROOM = 64 * 1024, /* an answer beside its texts */
};

static void write_error(struct jw *w, const struct call_result *c)
{
    const struct call_outcome *o = &c->outcome;

    if (o->status == CALL_SUCCESS)
        return;
    jw_key(w, "error");
    if (o->framed) {
        jw_raw(w, c->run->error.p, c->run->error.n);
        return;
    }
    jw_object(w);
    jw_kv_string(w, "type", o->type);
    jw_kv_string(w, "message", o->message);
    if (o->stack.p) {
        jw_key(w, "stack");
        jw_raw(w, o->stack.p, o->stack.n);
    } else {
        jw_kv_string(w, "stack", "");
    }
    jw_object_end(w);
}

static void loading_json(struct jw *w, const struct call_tree *t)
{
    const char *loading = mount_loaded(&t->mount, t->lent);

    if (loading)
        jw_kv_string(w, "loading", loading);
    if (t->refused[0])
        jw_kv_string(w, "loadingReason", t->refused);
}

static void write_meta(struct jw *w, const struct call_result *c)
{
    const struct stamps *at = &c->run->at;

    jw_key(w, "meta");
    jw_object(w);
    jw_kv_double(w, "duration", timing_ms(at->asked, at->collected), 3);
    if (!c->session || c->session->kind == TURN_CALL)
        jw_kv_string(w, "signatureSource", signature_source_name(c->source));
    jw_kv_string(w, "callId", c->id);
    jw_kv_string(w, "engine", c->wasm ? "wasm" : "native");
    jw_kv_string(w, "language", c->lang >= 0 ? call_lang((size_t)c->lang)->name : NULL);
    if (c->function.p)
        jw_kv_bytes(w, "functionName", c->function.p, c->function.n);
    if (c->ran && !c->session)
        jw_kv_string(w, "argsMode", call_mode_name(c->mode));
    if (c->tree)
        loading_json(w, c->tree);
    jw_object_end(w);
}

/* Only of a call that failed: one that succeeded was refused nothing that it needed. */
static unsigned denied_to(const struct call_result *c)
{
    const struct run_result *r = c->run;

    if (c->outcome.status == CALL_SUCCESS)
        return 0;
    return denials_find(&(struct denial_facts){
        .said = {&r->err, &r->error},
          .usage = &r->usage, .signal = r->signal
    });
}

static void termination_json(struct jw *w, enum end_reason reason, int signal,
                             const struct call_outcome *o, const char *hint)
{
    const char *abbreviation = signal ? sigabbrev_np(signal) : NULL;
    char name[SIGNAL_NAME_MAX];

    jw_key(w, "termination");
    jw_object(w);
    jw_kv_string(w, "reason", end_reason_name(reason));
    if (abbreviation) {
        (void)snprintf(name, sizeof name, "SIG%s", abbreviation);
        jw_kv_string(w, "signal", name);
    }
    if (o->limit) {
        jw_kv_string(w, "limit", o->limit);
        jw_kv_int(w, "limit_value", o->limit_value);
    }
    if (hint)
        jw_kv_string(w, "hint", hint);
    jw_object_end(w);
}

static void isolation_json(struct jw *w, const struct jail *j, bool warm)
{
    jw_key(w, "isolation");
    jw_object(w);
    jw_kv_string(w, "jail", j->ops->name);
    jw_kv_bool(w, "warm", warm);
    jw_key(w, "traits");
    jw_array(w);
    for (unsigned i = 0; i < JAIL_TRAIT_COUNT; i++)
        if (j->traits & BIT(i))
            jw_string(w, jail_trait_name(i));
    jw_array_end(w);
    jw_object_end(w);
}

static void timings_json(struct jw *w, const struct stamps *at)
{
    jw_key(w, "timings");
    jw_object(w);
    jw_kv_double(w, "queue_ms", timing_ms(at->asked, at->started), 3);
    jw_kv_double(w, "start_ms", timing_ms(at->started, at->running), 3);
    jw_kv_double(w, "run_ms", timing_ms(at->running, at->ended), 3);
    jw_kv_double(w, "collect_ms", timing_ms(at->ended, at->collected), 3);
    jw_kv_double(w, "total_ms", timing_ms(at->asked, at->collected), 3);
    jw_object_end(w);
}

static size_t room_for(const struct call_result *c)
{
    const struct run_result *r = c->run;
    size_t room = RESULT_ROOM + ESCAPE_FACTOR * (r->out.n + r->err.n + c->function.n) +
                  r->result.n + r->error.n;

    room += c->changes ? files_room(c->changes) : 0;
    return room + (c->synced ? sync_report_room(c->synced) : 0);
}

void call_result_json(const struct call_result *c, struct buf *out)
{
    const struct run_result *r = c->run;
    const struct turn_facts *s = c->session;
    const unsigned denied = denied_to(c);
    struct jw w = JW(out);

    *out = BUF_INIT(room_for(c));
    jw_object(&w);
    if (s && s->kind == TURN_CREATE && c->outcome.status == CALL_SUCCESS)
        jw_kv_string(&w, "id", s->id);
    jw_kv_string(&w, "status", call_status_name(c->outcome.status));
    jw_kv_bool(&w, "success", c->outcome.status == CALL_SUCCESS);
    if (c->outcome.status == CALL_SUCCESS && (!s || s->kind == TURN_CALL)) {
        jw_key(&w, "result");
        jw_raw(&w, r->result.p, r->result.n);
    }
    if (c->streamed)
        jw_kv_int(&w, "items", (int64_t)c->items);
    write_error(&w, c);
    jw_kv_bytes(&w, "stdout", r->out.p ? r->out.p : "", r->out.n);
    jw_kv_bytes(&w, "stderr", r->err.p ? r->err.p : "", r->err.n);
    jw_kv_int(&w, "exitCode", c->outcome.exit_code);
    if (c->changes)
        files_json(&w, c->changes, c->request, c->left_out);
    if (c->synced) {
        jw_key(&w, "sync");
        sync_report_json(c->synced, out);
        w.comma = true;
    }
    if (s)
        session_about_json(&w, s);
    write_meta(&w, c);
    if (r->out_truncated)
        jw_kv_bool(&w, "stdoutTruncated", true);
    if (r->err_truncated)
        jw_kv_bool(&w, "stderrTruncated", true);
    if (c->ran) {
        termination_json(&w, r->reason, r->signal, &c->outcome,
                         denials_hint(denied, DENIAL_EPHEMERAL));
        denials_json(&w, denied, DENIAL_EPHEMERAL);
        isolation_json(&w, c->jail, r->warm);
    }
    timings_json(&w, &r->at);
    jw_object_end(&w);
}

void call_server_timing(const struct stamps *at, char out[SERVER_TIMING_MAX])
{
    const struct timing rows[] = {
        {"start", timing_span(at->started, at->running)  },
        {"run",   timing_span(at->running, at->ended)    },
        {"total", timing_span(at->asked,   at->collected)},
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
