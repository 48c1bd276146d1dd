/* SPDX-License-Identifier: MIT */
#include "app/session/turn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/function/kept_calls.h"
#include "base/fd.h"
#include "base/os.h"
#include "core/languages.h"
#include "function/sip.h"

enum {
    PARSE_INLINE = 1 << 20,    /* larger bodies do not block the loop */
    JUDGE_INLINE = 256 * 1024, /* larger results are not looked at in the loop */
    PACKET_OVERHEAD = 4096,
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    HOLE_MAX = 12,     /* bytes of a hole and its number */
    MS_PER_S = 1000,
};

static task_begin_fn turn_parse, turn_bind, turn_queue, turn_sync;
static void give_up(struct task *t);

/* clang-format off */
static const struct task_step call_steps[] = {
    {"parse",  TASK_PREPARING,  turn_parse},
    {"bind",   TASK_PREPARING,  turn_bind},
    {"queue",  TASK_QUEUED,     turn_queue, .stop = give_up},
    {"call",   TASK_STARTING,   turn_perform},
    {"sync",   TASK_COLLECTING, turn_sync},
    {"leave",  TASK_COLLECTING, turn_leave,      .always = true},
    {"judge",  TASK_COLLECTING, turn_outcome,    .always = true},
    {"render", TASK_COLLECTING, function_render, .always = true},
};
static const struct task_step reset_steps[] = {
    {"queue",  TASK_QUEUED,     turn_queue, .stop = give_up},
    {"reset",  TASK_STARTING,   turn_perform},
    {"leave",  TASK_COLLECTING, turn_leave,      .always = true},
    {"judge",  TASK_COLLECTING, turn_outcome,    .always = true},
    {"render", TASK_COLLECTING, function_render, .always = true},
};
/* clang-format on */
static const struct task_kind call_kind = {"turn", call_steps, ARRAY_LEN(call_steps), turn_answer,
                                           turn_account};
static const struct task_kind reset_kind = {"reset", reset_steps, ARRAY_LEN(reset_steps),
                                            turn_answer, turn_account};

/* ---- life ---- */

struct turn *turn_new(struct app *a, enum turn_kind kind, const struct task_kind *tasks,
                      struct program *p, const struct function_order *o)
{
    struct turn *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->on.task.limits = app_limits(a, 0);
    function_init(&t->on, a, tasks, p, o);
    t->on.result.request = &t->request;
    t->on.result.session = &t->facts;
    t->facts.kind = kind;
    t->files.fd = -1;
    if (o->text) {
        t->text = *o->text;
        *o->text = BUF_INIT(0);
    }
    TAILQ_INSERT_TAIL(&a->functions.sessions.turns, t, all_link);
    return t;
}

void turn_free(struct turn *t)
{
    TAILQ_REMOVE(&t->on.app->functions.sessions.turns, t, all_link);
    function_done(&t->on);
    binding_done(&t->binding);
    call_request_done(&t->request);
    buf_done(&t->text);
    known_old_free(t->old, t->changes.n);
    changes_done(&t->changes);
    call_tree_drop(t->tree);
    closep(&t->files.fd);
    free(t->workdir);
    free(t);
}

/* ---- the body ---- */

/* Contents in a row, to be put into the sandbox. */
static int files_join(struct turn *t, struct err *e)
{
    const struct call_request *r = &t->request;

    if (r->attached.n == 0)
        return 0;
    t->files.fd = os_memory_file("files");
    if (t->files.fd < 0)
        return err_sys(e, -errno, "options.files");
    for (size_t i = 0; i < r->attached.n; i++) {
        int done = fd_write_all(t->files.fd, r->attached.files[i].content.p,
                                r->attached.files[i].content.n);

        if (done < 0)
            return err_sys(e, done, "options.files");
    }
    return 0;
}

static int parse(struct turn *t, struct err *e)
{
    uint64_t most = t->on.app->config.timeout_max_s * MS_PER_S;

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

static void parse_body(struct task *k)
{
    struct err e;

    if (parse(turn_of(k), &e) < 0)
        k->refused = e;
}

static enum task_go turn_parse(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);

    (void)e;
    return function_do(&t->on, parse_body, t->text.n > PARSE_INLINE);
}

bool turn_is_read(const struct turn *t)
{
    return t->on.task.state != TASK_PREPARING;
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
        return err_type(e, ERR_CALLER, "TypeError");
    *ret_function = found.function;
    return 0;
}

/* A function of a compiled language must be known, and everything it is given must fit. Wrappers
 * that know their functions bind by themselves. */
static int bind_call(struct turn *t, struct err *e)
{
    struct program *p = &t->session->program;
    unsigned flags = program_flags(p);
    bool compiled = flags & CALL_COMPILED, asked;
    struct json_value function = {0};
    struct binding *b = &t->binding;

    if (binding_begin(b, &t->request, e) < 0)
        return err_type(e, ERR_CALLER, "TypeError");
    asked = binding_needs_inspector(b, flags, &t->request);
    if (asked && function_read(t, &function, e) < 0)
        return -1;
    if (compiled && binding_check(b, function, e) < 0)
        return -1;
    if (!asked && b->source == SIGNATURE_CONVENTION)
        b->source = SIGNATURE_INFERRED; /* by the wrapper, from the function itself */
    if (!compiled && function.p && binding_infer(b, function, e) < 0)
        return -1;
    if (binding_args(b, (enum call_lang_id)p->lang, &t->request, e) < 0 ||
        (compiled && binding_declared(b, flags, &t->request, function, e) < 0))
        return -1;
    free(take_ptr(&b->signature));
    return 0;
}

static enum task_go turn_bind(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);
    struct err why;

    (void)e;
    if (bind_call(t, &why) < 0 || fsession_files_check(t->session, t, &why) < 0)
        return function_fail(&t->on, &why);
    return TASK_NEXT;
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
    frame_head(out->p, t->on.result.streamed ? FRAME_STREAM : FRAME_CALL,
               (uint32_t)(out->n - FRAME_HEAD));
    return 0;
}

/* ---- its turn ---- */

static void give_up(struct task *k)
{
    (void)k;
}

static enum task_go turn_queue(struct task *k, struct err *e)
{
    (void)e;
    fsession_next(turn_of(k)->session);
    return TASK_WAIT;
}

bool turn_is_ready(const struct turn *t)
{
    return task_waits_in(&t->on.task, turn_queue);
}

/* A new session, or one without a process, begins with loading the code. */
enum task_go turn_perform(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);
    struct fsession *s = t->session;

    (void)e;
    if (s->state == FSESSION_DOWN || s->state == FSESSION_PREPARING) {
        fsession_start(s);
    } else if (t->facts.kind == TURN_RESTART) {
        s->process.restarting = true;
        fsession_stop(s, END_CANCELLED);
    } else {
        fsession_send(s);
    }
    return TASK_WAIT;
}

void turn_go_on(struct turn *t)
{
    task_continue(&t->on.task, TASK_NEXT);
}

void turn_end(struct turn *t, const struct turn_ending *how)
{
    struct run_result *r = &t->on.task.result;

    t->wall_ms = how->wall_ms;
    if (how->error) {
        (void)function_fail(&t->on, how->error);
    } else {
        r->reason = how->run->reason;
        r->exit_code = how->run->exit_code;
        r->signal = how->run->signal;
        r->result_too_long = how->run->result_too_long;
        r->frames_broken = how->run->frames_broken;
        (void)memcpy(r->fault, how->run->fault, sizeof r->fault);
        if (r->reason == END_EXIT && how->run->error.n > 0) {
            buf_clear(&r->error);
            (void)buf_put(&r->error, how->run->error.p, how->run->error.n);
        }
    }
    task_continue(&t->on.task, TASK_END);
}

void turn_output(struct turn *t, const struct run_output *o)
{
    struct run_result *r = &t->on.task.result;

    buf_done(&r->out);
    buf_done(&r->err);
    r->out = o->out;
    r->err = o->err;
    r->out_truncated = o->out_truncated;
    r->err_truncated = o->err_truncated;
}

/* ---- afterwards ---- */

static enum task_go turn_sync(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);

    (void)e;
    return t->tree ? function_sync(&t->on, t->tree, &t->changes) : TASK_NEXT;
}

bool turn_is_syncing(const struct turn *t)
{
    return task_waits_in(&t->on.task, turn_sync);
}

void turn_detach(struct turn *t)
{
    struct fsession *s = take_ptr(&t->session);

    memcpy(t->facts.id, s->id, sizeof t->facts.id);
    t->facts.generation = s->process.generation;
    t->facts.number = s->calls;
    t->facts.restarted = s->process.lost;
    t->facts.reason = s->process.lost_reason;
    t->on.result.lang = s->program.lang;
    t->on.result.wasm = s->program.wasm;
    t->on.task.result.warm = s->process.result.warm;
    if (s->program.where.jail)
        t->on.result.jail = s->program.where.jail;
    t->on.program = NULL;
}

/* The session has forgotten that anything was lost: the answer says so. */
static void current_leave(struct fsession *s)
{
    s->current = NULL;
    if (s->state == FSESSION_PREPARING) {
        fsession_free(s); /* there never was one */
        return;
    }
    s->process.lost = false;
    s->process.lost_reason = NULL;
    if (s->state != FSESSION_STOPPING) {
        fsession_move(s, FSESSION_IDLE);
        fsession_rest(s);
    } else if (!s->process.run && !fsession_is_beside(s)) {
        fsession_gone(s);
    } /* else its end goes on */
}

/* The next one's turn comes after the answer, unless that takes long to write down. */
static void go_on_without(const struct turn *t)
{
    struct fsession *s;
    struct err ignored;

    if (fsession_find(t->on.app, t->facts.id, &s, &ignored) == 0)
        fsession_next(s);
}

enum task_go turn_leave(struct task *k, struct err *e)
{
    struct turn *t = turn_of(k);
    struct fsession *s = t->session;

    (void)e;
    if (!s)
        return TASK_NEXT;
    turn_detach(t);
    if (s->current == t)
        current_leave(s);
    else
        fsession_queue_drop(s, t);
    if (function_is_large(&t->on))
        go_on_without(t);
    return TASK_NEXT;
}

/* Where it was when it was interrupted. */
static void find_stack(struct call_outcome *o, const struct buf *error)
{
    struct json_value v, stack;
    struct err ignored;

    if (error->n > 0 && json_parse(error->p, error->n, 0, &v, &ignored) == 0 &&
        v.type == JSON_OBJECT && json_get(v, "stack", &stack) && stack.type == JSON_STRING)
        o->stack = stack;
}

void turn_judge(struct turn *t)
{
    struct call_outcome *o = &t->on.result.outcome;
    struct run_result *r = &t->on.task.result;
    struct limits l = app_limits(t->on.app, t->wall_ms);

    if (t->on.result.failed || t->answered) { /* nothing ended: a program said so, or we */
        r->reason = t->timed_out && t->answered ? END_TIMEOUT : END_EXIT;
        r->exit_code = 0;
    }
    if (t->on.result.failed || t->judged)
        return;
    t->judged = true;
    if (t->answered && !t->timed_out && t->facts.kind != TURN_CALL && r->error.n == 0) {
        *o = (struct call_outcome){.status = CALL_SUCCESS};
        return;
    }
    call_outcome_reach(r, &l, o);
    if (t->timed_out)
        find_stack(o, &r->error);
    if (call_outcome_unfound(o, &r->error, t->request.function))
        t->binding.source = SIGNATURE_CONVENTION;
}

static void judge(struct task *k)
{
    struct turn *t = turn_of(k);
    struct call_result *to = &t->on.result;

    turn_judge(t);
    to->ran = k->result.at.started > 0 || k->result.reason != END_EXIT;
    to->source = t->binding.source;
    to->function = t->request.function;
    to->tree = t->tree;
    to->changes = t->tree ? &t->changes : NULL;
}

enum task_go turn_outcome(struct task *k, struct err *e)
{
    (void)e;
    if (k->result.result.n + k->result.error.n > JUDGE_INLINE)
        return task_beside(k, judge, WORK_LONG);
    judge(k);
    return TASK_NEXT;
}

/* ---- the answer ---- */

static void log_done(const struct turn *t)
{
    static const char *const kinds[] = {"create", "call", "reload", "restart"};
    const struct call_result *r = &t->on.result;

    log_event(&t->on.app->log, LOG_INFO, "session_turn", LOG_STR("session_id", t->facts.id),
              LOG_STR("request_id", t->on.request_id), LOG_STR("kind", kinds[t->facts.kind]),
              LOG_STR("language", r->lang >= 0 ? call_lang((size_t)r->lang)->name : ""),
              LOG_STR("status", call_status_name(r->outcome.status)),
              LOG_STR("reason", end_reason_name(r->run->reason)),
              LOG_INT("duration_us", (int64_t)(r->run->at.collected - r->run->at.asked)));
}

/* Changes that may still go back to their mounts. */
static void keep(struct turn *t)
{
    struct kept_given given = {.id = t->on.id, .tree = t->tree, .changes = &t->changes};
    size_t n = t->changes.n;

    if (!t->tree || !kept_calls_want(&given))
        return;
    for (size_t i = 0; i < n; i++)
        given.bytes += t->old[i].content.n;
    given.old = t->old;
    if (kept_calls_add(t->on.app->functions.changes, &given)) {
        t->tree = NULL;
        t->old = NULL;
    }
}

void turn_answer(struct task *k)
{
    struct turn *t = turn_of(k);
    bool heard = t->on.order.done;

    if (k->refused.kind == ERR_NONE)
        log_done(t);
    function_answer(&t->on);
    if (heard)
        keep(t);
    go_on_without(t);
}

void turn_account(struct task *k)
{
    turn_free(turn_of(k));
}

/* ---- asking for one ---- */

static int turn_begin(struct fsession *s, enum turn_kind kind, const struct function_order *o,
                      struct turn **ret, struct err *e)
{
    const struct call_request *of = &s->program.request;
    struct app *a = s->app;
    struct turn *t;

    if (a->life.stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if ((s->current || s->queued_n > 0) && s->queued_n >= a->config.fsession_queue_max)
        return err_set(e, ERR_BUSY, "%zu calls are waiting for session '%s' already", s->queued_n,
                       s->id);
    t = turn_new(a, kind, kind == TURN_CALL ? &call_kind : &reset_kind, &s->program, o);
    if (!t)
        return err_set(e, ERR_HOST, "no memory for a call");
    t->workdir = strdup(of->workdir);
    if (!t->workdir) {
        turn_free(t);
        return err_set(e, ERR_HOST, "no memory for a call");
    }
    t->session = s;
    t->wall_ms = s->wall_ms;
    t->usual = t->request.reporting = of->reporting; /* unless a call says so itself */
    fsession_queue_add(s, t);
    *ret = t;
    if (task_begin(&t->on.task, e) == 0)
        return 0;
    fsession_queue_drop(s, t);
    turn_free(t);
    return -1;
}

int fsession_call(struct fsession *s, const struct function_order *o, struct turn **ret,
                  struct err *e)
{
    int r = turn_begin(s, TURN_CALL, o, ret, e);

    buf_done(o->text); /* taken by the turn, if there is one */
    return r;
}

int fsession_reset(struct fsession *s, const struct function_order *o, bool hard, struct turn **ret,
                   struct err *e)
{
    bool soft = !hard && program_flags(&s->program) & CALL_RELOADS;

    return turn_begin(s, soft ? TURN_RELOAD : TURN_RESTART, o, ret, e);
}

/* ---- leaving ---- */

void turn_resume(struct turn *t)
{
    if (t->session && t->session->current == t && t->session->process.run)
        run_frames_resume(t->session->process.run);
}

void turn_abandon(struct turn *t)
{
    struct fsession *s = t->session;

    function_forget(&t->on);
    if (!s)
        return;
    if (t->facts.kind == TURN_CREATE)
        fsession_delete(s);
    else if (s->current == t)
        fsession_interrupt(s);
    else
        task_stop(&t->on.task, END_CANCELLED);
}
