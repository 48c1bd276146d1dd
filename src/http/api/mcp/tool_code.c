/* SPDX-License-Identifier: MIT */
/* run_code: a cell of the sandbox's interpreter; of the shell a command. */
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/context.h"
#include "app/tools/code_run.h"
#include "http/api/mcp/run_report.h"
#include "http/api/mcp/tools.h"

enum {
    TIMEOUT_S = 30,
    TIMEOUT_MAX_S = 3600,
    MS_PER_S = 1000,
    MIB = 20, /* bits */
};

enum code_language { CODE_PYTHON, CODE_JAVASCRIPT, CODE_SHELL };
static const char *const languages[] = {"python", "javascript", "shell", NULL};

/* clang-format off */
#define AT(member) offsetof(struct tool_run_code, member)
static const struct shape_field fields[] = {
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code)},
    {"language", SHAPE_CHOICE, 0, AT(language), .words = languages},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
    {"timeout_seconds", SHAPE_INT, 0, AT(timeout_s), 1, TIMEOUT_MAX_S},
    {"reset", SHAPE_BOOL, 0, AT(reset)},
    {"allow_tools", SHAPE_LIST, 0, AT(allowed), 0, CODE_ALLOWED_MAX},
};
#undef AT
const struct shape tool_run_code_shape = {fields, ARRAY_LEN(fields), 0, NULL};
/* clang-format on */

struct cell_run {
    struct run_report *report;
    struct cell *cell;     /* owned by its context; NULL: it has ended */
    struct code_run *code; /* owned: the tools that it may call; NULL: none */
    uint64_t timeout_s;
    bool begun;
    bool failed; /* it raised */
};

static void on_stop_report(void *user)
{
    struct run_report *r = user;
    struct tool_call *t = r->t;

    report_free(r);
    tool_free(t);
}

static void on_stop(void *user)
{
    struct cell_run *c = user;
    struct tool_call *t = c->report->t;

    if (c->cell)
        cell_leave(c->cell);
    code_run_free(c->code);
    report_free(c->report);
    free(c);
    tool_free(t);
}

static const char *doing(void *user)
{
    struct cell_run *c = user;
    const char *line = report_line(c->report);

    return line ? line : c->begun ? "running" : "waiting for a place";
}

static void on_begun(void *user, uint64_t count)
{
    struct cell_run *c = user;

    (void)count;
    c->begun = true;
}

static void on_output(void *user, enum run_stream s, const char *p, size_t n)
{
    struct cell_run *c = user;

    report_output(c->report, s, p, n);
}

static void decode(struct json_value v, struct buf *out)
{
    if (v.p && v.type == JSON_STRING)
        (void)!json_decode_string(v, JSON_LENIENT_UTF8, out);
}

/* Text that is JSON as it is: a number, or what Python calls True, False. */
static const char *as_json(const struct buf *text)
{
    struct json_value v;
    struct err e;

    if (text->n == 4 && memcmp(text->p, "True", 4) == 0)
        return "true";
    if (text->n == 5 && memcmp(text->p, "False", 5) == 0)
        return "false";
    if (text->n > 0 && text->n < 64 && json_parse(text->p, text->n, 0, &v, &e) == 0)
        return text->p;
    return NULL;
}

/* The value of the cell. */
static void take_value(struct run_report *r, struct json_value data)
{
    struct json_value json = json_member(data, "application/json");
    const char *plain;

    buf_clear(&r->value);
    buf_clear(&r->text);
    decode(json_member(data, "text/plain"), &r->text);
    plain = as_json(&r->text);
    if (json.p)
        (void)buf_put(&r->value, json.p, json.n);
    else if (plain)
        (void)buf_puts(&r->value, plain);
}

static void take_display(struct run_report *r, struct json_value data)
{
    struct json_value text = json_member(data, "text/markdown");
    struct buf shown = BUF_INIT(REPORT_STREAM_MAX);

    decode(text.p ? text : json_member(data, "text/plain"), &shown);
    if (shown.n > 0) {
        (void)buf_putc(&shown, '\n');
        report_output(r, RUN_OUT, shown.p, shown.n);
    }
    buf_done(&shown);
}

static const char *const image_types[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};

static bool take_image(struct run_report *r, struct json_value data)
{
    for (size_t i = 0; i < ARRAY_LEN(image_types); i++) {
        struct json_value v = json_member(data, image_types[i]);

        if (!v.p || v.type != JSON_STRING)
            continue;
        if (r->found.images_n < REPORT_IMAGES_MAX && v.n / 4 * 3 <= TOOL_IMAGE_MAX) {
            tool_add_image_base64(&r->result, image_types[i], v.p + 1, v.n - 2);
            r->found.images_n++;
        }
        return true;
    }
    return false;
}

static void on_event(void *user, const char *type, const struct cell_message *m)
{
    struct cell_run *c = user;
    struct run_report *r = c->report;
    bool main = m->main.p && m->main.type == JSON_BOOL && *m->main.p == 't';

    if (strcmp(type, "error") == 0) {
        c->failed = true;
        decode(m->name, &r->error.type);
        decode(m->value, &r->error.message);
        decode(m->traceback, &r->error.stack);
    } else if (strcmp(type, "display") == 0 && m->data.p && m->data.type == JSON_OBJECT) {
        bool shown = take_image(r, m->data);

        if (main)
            take_value(r, m->data);
        else if (!shown)
            take_display(r, m->data);
    }
}

static void on_asks(void *user, enum cell_ask what, const struct cell_message *m)
{
    struct cell_run *c = user;

    if (what == CELL_TELLS_PROGRESS)
        mcp_own_progress(c->report->t->x, m->data);
    else
        code_run_asks(c->code, what, m);
}

static int on_answer(void *user, const char *json, size_t n)
{
    struct cell_run *c = user;

    return c->cell ? cell_answer(c->cell, json, n) : -1;
}

static void on_hold(void *user, bool held)
{
    struct cell_run *c = user;

    if (c->cell && held)
        cell_pause(c->cell);
    else if (c->cell)
        cell_resume(c->cell);
}

/* What it called is told, and kept under the name of the run. */
static void end_calls(struct cell_run *c)
{
    c->cell = NULL;
    code_run_end(c->code);
    code_run_write(c->code, &c->report->tool_calls);
    code_run_keep(c->code, c->report->id);
    code_run_free(c->code);
}

static void judge_crash(struct run_report *r, const struct cell_end *end)
{
    bool oom = end->crash && end->crash->reason == END_OOM;

    if (end->crash && end->crash->reason == END_EXIT && end->crash->signal == 0) {
        r->ran.exited = true;
        r->ran.exit_code = end->crash->exit_code;
        r->ran.status = r->ran.exit_code ? REPORT_FAILED : REPORT_SUCCESS;
        report_hint(r, "the program ended the interpreter: variables were lost");
        return;
    }
    r->ran.status = REPORT_ERROR;
    r->is_error = true;
    (void)buf_puts(&r->error.type, oom ? "OutOfMemory" : "InterpreterDied");
    (void)buf_puts(&r->error.message, oom             ? "the interpreter was ended: out of memory"
                                      : *end->failure ? end->failure
                                                      : "the interpreter ended");
    if (oom)
        report_hint(r,
                    "memory limit of the sandbox (%llu MiB): work in smaller parts; variables were "
                    "lost, files are there",
                    (unsigned long long)(r->home->limits.memory_max >> MIB));
    else
        report_hint(r, "variables were lost, files are there");
}

static void judge(struct cell_run *c, const struct cell_end *end)
{
    struct run_report *r = c->report;

    r->is_error = end->status != CELL_OK;
    switch (end->status) {
    case CELL_OK:
        r->ran.status = REPORT_SUCCESS;
        break;
    case CELL_TIMEOUT:
        r->ran.status = REPORT_TIMEOUT;
        buf_clear(&r->error.type);
        buf_clear(&r->error.message);
        buf_clear(&r->error.stack);
        report_hint(r,
                    "stopped after %llu s, variables are kept where possible. Raise "
                    "timeout_seconds, or run it as a script with run_command and background: true",
                    (unsigned long long)c->timeout_s);
        break;
    case CELL_CRASH:
        r->is_error = false;
        judge_crash(r, end);
        break;
    case CELL_ERROR:
    case CELL_INTERRUPTED:
    case CELL_STATUSES:
        r->ran.status = REPORT_FAILED;
        report_advise(r);
    }
}

static void on_done(void *user, const struct cell_end *end)
{
    struct cell_run *c = user;
    struct run_report *r = c->report;

    judge(c, end);
    if (end->restarted && !r->hint[0])
        report_hint(r, "variables of earlier cells were lost before this one");
    end_calls(c);
    free(c);
    r->t->x->worker = (struct mcp_worker){.stop = on_stop_report, .user = r};
    report_answer(r);
}

static int start(struct cell_run *c, const struct tool_run_code *a, struct err *e)
{
    const char *name = languages[a->language];
    const struct cell_order order = {.code = a->code, .timeout_ms = c->timeout_s * MS_PER_S};
    const struct code_run_events answers = {.answer = on_answer, .hold = on_hold, .user = c};
    const struct cell_events events = {.begun = on_begun,
                                       .output = on_output,
                                       .event = on_event,
                                       .asks = on_asks,
                                       .done = on_done,
                                       .user = c};
    struct context *x;

    if (code_run_new(c->report->t->x->app, a->allowed.v, a->allowed.n, &answers, &c->code, e) < 0)
        return -1;
    if (context_standard(c->report->home, (struct bytes){name, strlen(name)}, &x, e) < 0)
        return -1;
    if (a->reset && x->state != CONTEXT_STARTING)
        context_restart(x);
    return cell_start(x, &order, &events, &c->cell, e);
}

static void run_cell(struct tool_call *t, const struct tool_run_code *a, struct persistent *home)
{
    struct run_report *r = report_new(t, home);
    struct cell_run *c = r ? calloc(1, sizeof *c) : NULL;
    struct err e;

    if (!r)
        return;
    if (c) {
        c->report = r;
        c->timeout_s = a->timeout_s > 0 ? (uint64_t)a->timeout_s : TIMEOUT_S;
        if (start(c, a, &e) == 0) {
            tool_wait_in(t, home, &(struct mcp_worker){.stop = on_stop, .doing = doing, .user = c});
            return;
        }
    } else {
        (void)err_set(&e, ERR_HOST, "out of memory");
    }
    if (c)
        code_run_free(c->code);
    free(c);
    report_free(r);
    tool_refuse_err(t,
                    e.kind == ERR_CALLER
                        ? "define_tools without arguments lists the tools that may be allowed"
                        : "try again in a few seconds, or make another sandbox",
                    &e);
}

void tool_run_code(struct tool_call *t)
{
    const struct tool_run_code *a = t->arguments;
    const struct tool_run_command shell = {
        .command = a->code,
        .sandbox = a->sandbox,
        .timeout_s = a->timeout_s > 0 ? a->timeout_s : TIMEOUT_S,
    };
    struct persistent *home;

    if (a->language == CODE_SHELL && a->allowed.n > 0) {
        tool_refuse(t, "leave out allow_tools, or take python or javascript",
                    "shell code cannot call tools");
        return;
    }
    if (a->language == CODE_SHELL) {
        tool_run_shell(t, &shell);
        return;
    }
    home = tool_sandbox(t, a->sandbox, TOOL_MAKES);
    if (home)
        run_cell(t, a, home);
}
