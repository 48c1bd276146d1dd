/* SPDX-License-Identifier: MIT */
/* One turn of a session: what was asked, what is sent, and the answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "app/daemon/app.h"
#include "app/function/kept_calls.h"
#include "app/session/fsession_inner.h"
#include "base/fd.h"
#include "base/os.h"
#include "base/random.h"
#include "function/sip.h"

enum {
    RENDER_INLINE = 256 * 1024, /* larger answers do not block the loop */
    PACKET_OVERHEAD = 4096,
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    HOLE_MAX = 12,     /* bytes of a hole and its number */
    ID_RANDOM = 16,
    MS_PER_S = 1000,
};

/* ---- life ---- */

struct turn *turn_new(struct app *a, enum turn_kind kind, const struct turn_order *o)
{
    struct turn *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->app = a;
    t->kind = kind;
    t->state = TURN_PARSING;
    t->lang = -1;
    t->render = o->render;
    t->files_fd = -1;
    t->stream = o->stream;
    t->done = o->done;
    t->item = o->item;
    t->event = o->event;
    t->user = o->user;
    t->at.asked = o->asked_us;
    (void)snprintf(t->request_id, sizeof t->request_id, "%s", o->request_id);
    if (o->text) {
        t->text = *o->text;
        *o->text = BUF_INIT(0);
    }
    t->result = BUF_INIT(a->config.result_max);
    t->error = BUF_INIT(RUN_ERROR_MAX);
    (void)snprintf(t->call_id, sizeof t->call_id, "call_");
    random_base36(t->call_id + strlen(t->call_id), ID_RANDOM);
    TAILQ_INSERT_TAIL(&a->fsessions.turns, t, all_link);
    return t;
}

void turn_free(struct turn *t)
{
    TAILQ_REMOVE(&t->app->fsessions.turns, t, all_link);
    binding_done(&t->binding);
    call_request_done(&t->request);
    sync_free(t->sync);
    buf_done(&t->output.out);
    buf_done(&t->output.err);
    buf_done(&t->result);
    buf_done(&t->error);
    buf_done(&t->text);
    buf_done(&t->json);
    known_old_free(t->old, t->changes.n);
    changes_done(&t->changes);
    call_tree_drop(t->tree);
    closep(&t->files_fd);
    free(t->workdir);
    free(t);
}

/* ---- the body ---- */

/* Contents in a row, for whoever puts them into the sandbox. */
static int files_join(struct turn *t, struct err *e)
{
    const struct call_request *r = &t->request;

    if (r->files_n == 0)
        return 0;
    t->files_fd = os_memory_file("files");
    if (t->files_fd < 0)
        return err_sys(e, -errno, "options.files");
    for (size_t i = 0; i < r->files_n; i++) {
        int done = fd_write_all(t->files_fd, r->files[i].content.p, r->files[i].content.n);

        if (done < 0)
            return err_sys(e, done, "options.files");
    }
    return 0;
}

int turn_parse(struct turn *t, struct err *e)
{
    uint64_t most = t->app->config.timeout_max_s * MS_PER_S;

    if (call_request_parse_turn(&t->request, t->text.p ? t->text.p : "", t->text.n, t->workdir,
                                &t->usual, e) < 0)
        return -1;
    if (t->request.wall_ms > most)
        return err_set(e, ERR_CALLER, "timeout: at most %llu seconds",
                       (unsigned long long)(most / MS_PER_S));
    if (t->request.wall_ms > 0)
        t->wall_ms = t->request.wall_ms;
    return files_join(t, e);
}

/* ---- arguments ---- */

/* What the inspector knows of the function; nothing is not an error. */
static int function_read(struct turn *t, struct json_value *ret_function, struct err *e)
{
    const struct buf *known = &t->session->program.inspected;
    struct call_found found;
    struct json_value v;

    if (known->n == 0)
        return 0;
    if (json_parse(known->p, known->n, 0, &v, e) < 0 ||
        signature_find(v, t->request.function.p, t->request.function.n, &found, e) < 0)
        return -1;
    *ret_function = found.function;
    return 0;
}

/* A function of a compiled language must be known, and everything it is given must fit. Wrappers
 * that know their functions bind by themselves. */
int turn_bind(struct turn *t, struct err *e)
{
    struct program *p = &t->session->program;
    unsigned flags = program_flags(p);
    struct json_value function = {0};
    struct binding *b = &t->binding;

    if (binding_begin(b, &t->request, e) < 0)
        return err_type(e, ERR_CALLER, "TypeError");
    if ((flags & CALL_COMPILED || binding_needs_inspector(b, flags, &t->request)) &&
        function_read(t, &function, e) < 0)
        return err_type(e, ERR_CALLER, "TypeError");
    if (flags & CALL_COMPILED && binding_check(b, function, e) < 0)
        return -1;
    if (b->source == SIGNATURE_CONVENTION && !(flags & CALL_COMPILED)) {
        if (!binding_needs_inspector(b, flags, &t->request))
            b->source = SIGNATURE_INFERRED; /* by the wrapper, from the function itself */
        else if (function.p && binding_infer(b, function, e) < 0)
            return -1;
    }
    if (binding_args(b, (enum call_lang_id)p->lang, &t->request, e) < 0 ||
        (flags & CALL_COMPILED && binding_declared(b, flags, &t->request, function, e) < 0))
        return -1;
    free(take_ptr(&b->signature));
    return 0;
}

int turn_packet(struct turn *t, const char *token, struct buf *out)
{
    struct sip_call call = {.function = t->request.function,
                            .args = &t->binding.args,
                            .token = token,
                            .wall_ms = t->wall_ms,
                            .options_at = t->binding.options_at};
    char head[FRAME_HEAD] = {0};

    *out = BUF_INIT(2 * t->text.n + ESCAPE_FACTOR * t->request.function.n +
                    HOLE_MAX * t->binding.args.n + PACKET_OVERHEAD);
    (void)buf_put(out, head, sizeof head);
    sip_payload(&call, out);
    if (out->failed || out->n > UINT32_MAX)
        return -1;
    frame_head(out->p, t->stream ? FRAME_STREAM : FRAME_CALL, (uint32_t)(out->n - FRAME_HEAD));
    return 0;
}

/* ---- the answer ---- */

void turn_detach(struct turn *t)
{
    struct fsession *s = take_ptr(&t->session);

    if (!s)
        return;
    memcpy(t->id, s->id, sizeof t->id);
    t->lang = s->program.lang;
    t->wasm = s->program.wasm;
    t->jail = s->program.where.jail;
    t->warm = s->result.warm;
    t->generation = s->generation;
    t->number = s->calls;
    t->restarted = s->lost;
    t->restart_reason = s->lost_reason;
}

void turn_end_as(struct turn *t, const struct run_result *r)
{
    struct limits l = app_limits(t->app, t->wall_ms);

    call_outcome_reach(r, &l, &t->outcome);
    t->reason = r->reason;
    t->signal = r->signal;
}

void turn_fail(struct turn *t, const struct err *e)
{
    call_outcome_fail(&t->outcome, e);
    t->reason = END_EXIT;
}

void turn_unstarted(struct turn *t, enum end_reason why)
{
    struct run_result r = {.reason = why};

    turn_end_as(t, &r);
    turn_finish(t, false);
}

void turn_take(struct turn *t, const struct turn *like)
{
    t->outcome = like->outcome;
    t->reason = like->reason;
    t->signal = like->signal;
    if (like->error.n > 0)
        (void)buf_put(&t->error, like->error.p, like->error.n);
}

void turn_judge(struct turn *t)
{
    struct run_result r = {.reason = END_EXIT, .result = t->result, .error = t->error};

    if (!t->answered || t->judged)
        return;
    t->judged = true;
    if (t->timed_out) {
        r.reason = END_TIMEOUT;
    } else if (t->kind != TURN_CALL && t->error.n == 0) {
        t->outcome = (struct call_outcome){.status = CALL_SUCCESS};
        return;
    }
    turn_end_as(t, &r);
    if (call_outcome_unfound(&t->outcome, &t->error, t->request.function))
        t->binding.source = SIGNATURE_CONVENTION;
}

static size_t bytes_of(const struct turn *t)
{
    return t->output.out.n + t->output.err.n + t->result.n + t->error.n +
           changes_bytes(&t->changes);
}

static void render(struct turn *t)
{
    if (t->refused.kind != ERR_NONE)
        return;
    turn_judge(t);
    t->render(t, &t->json);
}

static void log_done(const struct turn *t)
{
    static const char *const kinds[] = {"create", "call", "reload", "restart"};

    log_event(&t->app->log, LOG_INFO, "session_turn", LOG_STR("session_id", t->id),
              LOG_STR("request_id", t->request_id), LOG_STR("kind", kinds[t->kind]),
              LOG_STR("language", t->lang >= 0 ? call_lang((size_t)t->lang)->name : ""),
              LOG_STR("status", call_status_name(t->outcome.status)),
              LOG_STR("reason", end_reason_name(t->reason)),
              LOG_INT("duration_us", (int64_t)(t->at.collected - t->at.asked)));
}

/* Changes that may still go back to their mounts. */
static void keep(struct turn *t)
{
    struct kept_given given = {.id = t->call_id, .tree = t->tree, .changes = &t->changes};
    size_t n = t->changes.n;

    if (!t->scanned || !kept_calls_want(&given))
        return;
    for (size_t i = 0; i < n; i++)
        given.bytes += t->old[i].content.n;
    given.old = t->old;
    if (kept_calls_add(t->app->kept, &given)) {
        t->tree = NULL;
        t->old = NULL;
    }
}

static void deliver(struct turn *t)
{
    if (t->refused.kind == ERR_NONE)
        log_done(t);
    if (t->done) {
        t->done(t->user, t);
        keep(t);
    }
    turn_free(t);
}

static void render_run(struct work *w)
{
    render(turn_of_work(w));
}

static void render_done(struct work *w)
{
    deliver(turn_of_work(w));
}

void turn_finish(struct turn *t, bool may_deliver)
{
    turn_detach(t);
    t->state = TURN_ENDING;
    t->at.collected = clock_us();
    if (may_deliver && bytes_of(t) <= RENDER_INLINE) {
        render(t);
        deliver(t);
        return;
    }
    t->work = (struct work){.run = render_run, .done = render_done};
    work_submit(t->app->work, &t->work);
}
