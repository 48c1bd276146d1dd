/* SPDX-License-Identifier: MIT */
/* The result of a function call as JSON: the contract's fields first, then those of all results. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/call_inner.h"
#include "base/base64.h"
#include "base/jw.h"
#include "base/utf8.h"
#include "core/denial.h"

enum {
    SIGNAL_NAME_MAX = 24,
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    CHANGE_ROOM = 512, /* a change beside its texts */
};

/* ---- files ---- */

static void write_content(struct jw *w, const char *key, const char *p, size_t n)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(BASE64_LENGTH(n) + 1);

    jw_key(w, key);
    if (utf8_is_valid(p, n)) {
        jw_bytes(w, p, n);
        return;
    }
    if (base64_encode(p, n, &text) < 0)
        w->out->failed = true;
    jw_object(w);
    jw_kv_bytes(w, "base64", text.p ? text.p : "", text.n);
    jw_object_end(w);
}

static void write_old(struct jw *w, const struct call_file *old)
{
    if (old->unread)
        jw_kv_bool(w, "oldContentOmitted", true);
    else
        write_content(w, "oldContent", old->content.p ? old->content.p : "", old->content.n);
}

static void write_change(struct jw *w, const struct change *one, bool contents)
{
    char at[CLOCK_ISO_MAX];

    jw_object(w);
    jw_kv_string(w, "type", change_operation(one->type));
    jw_kv_bytes(w, "path", one->path, strlen(one->path));
    if (contents && one->has_content)
        write_content(w, "content", one->content.p ? one->content.p : "", one->content.n);
    else if (contents && one->type != CHANGE_DELETED)
        jw_kv_bool(w, "contentOmitted", true);
    if (contents && one->before)
        write_old(w, one->before);
    jw_kv_int(w, "size", (int64_t)one->size);
    if (one->mtime_s > 0)
        jw_kv_string(w, "timestamp", clock_iso_at(one->mtime_s, one->mtime_ns, at));
    jw_object_end(w);
}

static void write_changes(struct jw *w, const struct changes *all, enum change_type t,
                          bool contents)
{
    static const char *const keys[CHANGE_TYPES] = {"created", "modified", "deleted"};

    jw_key(w, keys[t]);
    jw_array(w);
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].type == t && !all->v[i].denied)
            write_change(w, &all->v[i], contents);
    jw_array_end(w);
}

static void write_denied(struct jw *w, const struct changes *all, bool wanted)
{
    jw_key(w, "denied");
    jw_array(w);
    for (size_t i = 0; i < all->n && wanted; i++) {
        const struct change *one = &all->v[i];

        if (!one->denied || one->ignored)
            continue;
        jw_object(w);
        jw_kv_bytes(w, "path", one->path, strlen(one->path));
        jw_kv_string(w, "operation", change_operation(one->type));
        if (one->unjudged)
            jw_kv_string(w, "reason", "the rules took too many steps");
        jw_object_end(w);
    }
    jw_array_end(w);
}

void call_files_json(struct jw *w, const struct changes *all, const struct call_request *r,
                     int64_t left_out)
{
    left_out += all->left_out;
    if (!r->include_changes)
        return;
    jw_key(w, "files");
    jw_object(w);
    for (int t = 0; t < CHANGE_TYPES; t++)
        write_changes(w, all, (enum change_type)t, r->include_contents);
    write_denied(w, all, r->include_denied);
    if (left_out > 0)
        jw_kv_int(w, "leftOut", left_out);
    jw_object_end(w);
}

size_t call_files_room(const struct changes *all)
{
    size_t room = 0;

    for (size_t i = 0; i < all->n; i++) {
        const struct change *one = &all->v[i];
        size_t old = one->before && !one->before->unread ? one->before->content.n : 0;

        room += ESCAPE_FACTOR * (strlen(one->path) + one->content.n + old) + CHANGE_ROOM;
    }
    return room;
}

/* ---- the rest ---- */

static void write_error(struct jw *w, const struct call *c)
{
    const struct call_outcome *o = &c->outcome;

    if (o->status == CALL_SUCCESS)
        return;
    jw_key(w, "error");
    if (o->framed) {
        jw_raw(w, c->result.error.p, c->result.error.n);
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

void call_loading_json(struct jw *w, const struct call_tree *t)
{
    const char *loading = mount_loaded(&t->mount, t->lent);

    if (loading)
        jw_kv_string(w, "loading", loading);
    if (t->refused[0])
        jw_kv_string(w, "loadingReason", t->refused);
}

static void write_meta(struct jw *w, const struct call *c)
{
    const struct stamps *at = &c->result.at;

    jw_key(w, "meta");
    jw_object(w);
    jw_kv_double(w, "duration", timing_ms(at->asked, at->collected), 3);
    jw_kv_string(w, "signatureSource", signature_source_name(c->source));
    jw_kv_string(w, "callId", c->id);
    jw_kv_string(w, "engine", c->wasm ? "wasm" : "native");
    jw_kv_string(w, "language", c->lang >= 0 ? call_lang((size_t)c->lang)->name : NULL);
    if (c->function.p)
        jw_kv_bytes(w, "functionName", c->function.p, c->function.n);
    if (c->ran)
        jw_kv_string(w, "argsMode", call_mode_name(c->mode));
    call_loading_json(w, c->tree);
    jw_object_end(w);
}

/* Only of a call that failed: one that succeeded was refused nothing that it needed. */
static unsigned denied_to(const struct call *c)
{
    const struct run_result *r = &c->result;

    if (c->outcome.status == CALL_SUCCESS)
        return 0;
    return denials_find(&(struct denial_facts){
        .said = {&r->err, &r->error},
          .usage = &r->usage, .signal = r->signal
    });
}

void call_termination_json(struct jw *w, enum end_reason reason, int signal,
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

void call_isolation_json(struct jw *w, const struct jail *j, bool warm)
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

void call_timings_json(struct jw *w, const struct stamps *at)
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

void call_result_json(struct call *c, struct buf *out)
{
    const struct run_result *r = &c->result;
    const unsigned denied = denied_to(c);
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "status", call_status_name(c->outcome.status));
    jw_kv_bool(&w, "success", c->outcome.status == CALL_SUCCESS);
    if (c->outcome.status == CALL_SUCCESS) {
        jw_key(&w, "result");
        jw_raw(&w, r->result.p, r->result.n);
    }
    if (c->item)
        jw_kv_int(&w, "items", (int64_t)c->items);
    write_error(&w, c);
    jw_kv_bytes(&w, "stdout", r->out.p ? r->out.p : "", r->out.n);
    jw_kv_bytes(&w, "stderr", r->err.p ? r->err.p : "", r->err.n);
    jw_kv_int(&w, "exitCode", c->outcome.exit_code);
    if (c->ran && r->scanned)
        call_files_json(&w, &c->collect.changes, &c->request, r->files_left_out);
    if (c->synced.n > 0) {
        jw_key(&w, "sync");
        jw_raw(&w, c->synced.p, c->synced.n);
    }
    write_meta(&w, c);
    if (r->out_truncated)
        jw_kv_bool(&w, "stdoutTruncated", true);
    if (r->err_truncated)
        jw_kv_bool(&w, "stderrTruncated", true);
    if (c->ran) {
        call_termination_json(&w, c->result.reason, c->result.signal, &c->outcome,
                              denials_hint(denied, DENIAL_EPHEMERAL));
        denials_json(&w, denied, DENIAL_EPHEMERAL);
        call_isolation_json(&w, c->where.jail, c->result.warm);
    }
    call_timings_json(&w, &r->at);
    jw_object_end(&w);
}

void call_server_timing(const struct call *c, char out[SERVER_TIMING_MAX])
{
    const struct stamps *at = &c->result.at;
    const struct timing rows[] = {
        {"start", timing_span(at->started, at->running)  },
        {"run",   timing_span(at->running, at->ended)    },
        {"total", timing_span(at->asked,   at->collected)},
    };

    timing_print(rows, ARRAY_LEN(rows), out);
}
