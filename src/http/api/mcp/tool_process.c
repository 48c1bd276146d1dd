/* SPDX-License-Identifier: MIT */
/* manage_process: background processes of a sandbox listed, followed line by line, ended. */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/process.h"
#include "base/utf8.h"
#include "http/api/mcp/tools.h"

enum { WAIT_MAX_S = 45, OUTPUT_MAX = 60000, COMMAND_SHOWN = 200 };

enum process_action { PROCESS_LIST, PROCESS_OUTPUT, PROCESS_KILL };
static const char *const actions[] = {"list", "output", "kill", NULL};

/* clang-format off */
#define AT(member) offsetof(struct tool_manage_process, member)
static const struct shape_field fields[] = {
    {"action", SHAPE_CHOICE, SHAPE_REQUIRED, AT(action), .words = actions},
    {"process_id", SHAPE_STRING, 0, AT(process)},
    {"sandbox", SHAPE_STRING, 0, AT(sandbox)},
    {"cursor", SHAPE_INT, 0, AT(cursor), 0, INT64_MAX},
    {"wait_seconds", SHAPE_INT, 0, AT(wait_s), 0, WAIT_MAX_S},
};
#undef AT
const struct shape tool_manage_process_shape = {fields, ARRAY_LEN(fields), 0, NULL};
/* clang-format on */

static const char show_hint[] = "manage_process with action list shows them";

static void write_exit(struct jw *w, const struct process *p)
{
    jw_key(w, "exit_code");
    if (process_runs(p))
        jw_null(w);
    else
        jw_int(w, p->end.exit_code);
}

/* ---- list ---- */

static void list(struct tool_call *t, const struct persistent *home)
{
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);
    const struct process *p;

    jw_object(&w);
    jw_key(&w, "processes");
    jw_array(&w);
    TAILQ_FOREACH(p, &home->processes.list, link)
    {
        size_t n = utf8_truncate(p->command, p->command_n, COMMAND_SHOWN);

        if (!p->lines)
            continue;
        jw_object(&w);
        jw_kv_string(&w, "process_id", p->id);
        jw_kv_bytes(&w, "command", p->command, n);
        jw_kv_string(&w, "status", process_status_name(p->status));
        write_exit(&w, p);
        jw_kv_string(&w, "started_at", p->started_at);
        jw_object_end(&w);
        (void)buf_printf(&r.text, "%s  %s  ", p->id, process_status_name(p->status));
        (void)buf_put(&r.text, p->command, n);
        (void)buf_putc(&r.text, '\n');
    }
    jw_array_end(&w);
    jw_kv_string(&w, "sandbox", home->id);
    jw_object_end(&w);
    if (r.text.n == 0)
        (void)buf_puts(&r.text, "no processes\n");
    (void)buf_printf(&r.text, "[sandbox: %s]", home->id);
    tool_answer(t, &r);
}

/* ---- kill ---- */

static void end(struct tool_call *t, struct process *p)
{
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);
    bool ran = process_runs(p);
    struct err e;

    if (ran && process_kill(p, &e) < 0) {
        tool_refuse_err(t, show_hint, &e);
        return;
    }
    (void)buf_printf(&r.text, "process %s %s [sandbox: %s]", p->id,
                     ran ? "killed, with everything it had started" : "had ended", p->home->id);
    jw_object(&w);
    jw_kv_string(&w, "process_id", p->id);
    jw_kv_string(&w, "status", ran ? "killed" : process_status_name(p->status));
    jw_kv_string(&w, "sandbox", p->home->id);
    jw_object_end(&w);
    tool_answer(t, &r);
}

/* ---- output ---- */

struct following {
    struct tool_call *t;
    struct process *process; /* borrowed */
    struct logreader reader;
    struct event *timer; /* owned */
    struct buf text;
    uint64_t cursor; /* the number of the last line that was taken */
    uint64_t gone;   /* lines that were dropped before they were read */
    bool full;       /* the rest is for the next call */
};

static void following_free(struct following *f)
{
    logreader_detach(&f->reader);
    if (f->timer)
        event_free(f->timer);
    buf_done(&f->text);
    free(f);
}

static void on_stop(void *user)
{
    struct following *f = user;
    struct tool_call *t = f->t;

    following_free(f);
    tool_free(t);
}

static void answer(struct following *f)
{
    const struct process *p = f->process;
    struct tool_call *t = f->t;
    struct tool_result r = TOOL_RESULT;
    struct jw w = JW(&r.data);

    jw_object(&w);
    jw_kv_string(&w, "process_id", p->id);
    jw_kv_string(&w, "status", process_status_name(p->status));
    write_exit(&w, p);
    jw_kv_bytes(&w, "output", f->text.p ? f->text.p : "", f->text.n);
    jw_kv_int(&w, "cursor", (int64_t)f->cursor);
    if (f->gone > 0)
        jw_kv_int(&w, "lines_lost", (int64_t)f->gone);
    jw_kv_bool(&w, "more", f->full);
    jw_kv_string(&w, "sandbox", p->home->id);
    jw_object_end(&w);
    if (f->gone > 0)
        (void)buf_printf(&r.text, "[%llu older lines are lost]\n", (unsigned long long)f->gone);
    (void)buf_put(&r.text, f->text.p ? f->text.p : "", f->text.n);
    (void)buf_printf(&r.text, "[%s", process_status_name(p->status));
    if (!process_runs(p))
        (void)buf_printf(&r.text, ", exit code %d", p->end.exit_code);
    (void)buf_printf(&r.text, "; process_id: %s; cursor: %llu; sandbox: %s]", p->id,
                     (unsigned long long)f->cursor, p->home->id);
    following_free(f);
    tool_answer(t, &r);
}

static void take(struct following *f)
{
    const struct logline *l;
    uint64_t number, gap;

    while (!f->full) {
        if (f->text.n > 0 && f->text.n >= OUTPUT_MAX) {
            f->full = true;
            break;
        }
        gap = 0;
        l = logreader_next(&f->reader, &number, &gap);
        f->gone += gap;
        if (!l && gap == 0)
            break;
        if (!l)
            continue;
        (void)buf_put(&f->text, l->text, l->n);
        (void)buf_putc(&f->text, '\n');
        f->cursor = number;
    }
}

static bool is_enough(const struct following *f)
{
    return f->text.n > 0 || f->full || logreader_at_end(&f->reader);
}

/* Never from inside the ring: the answer may free it. */
static void on_timer(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    take(user);
    answer(user);
}

static void on_wake(void *user)
{
    struct following *f = user;
    const struct timeval now = {0};

    (void)evtimer_add(f->timer, &now);
}

static void follow(struct tool_call *t, const struct tool_manage_process *a, struct process *p)
{
    struct following *f = calloc(1, sizeof *f);
    const struct timeval wait = {.tv_sec = (time_t)a->wait_s};

    if (f)
        f->timer = evtimer_new(t->x->app->base, on_timer, f);
    if (!f || !f->timer) {
        free(f);
        tool_refuse(t, "try again in a second", "out of memory");
        return;
    }
    f->t = t;
    f->process = p;
    f->cursor = (uint64_t)a->cursor;
    f->text = BUF_INIT(2 * (size_t)LOGRING_LINE_MAX + OUTPUT_MAX);
    logreader_attach(&f->reader, &p->lines->log, (uint64_t)a->cursor + 1, on_wake, f);
    take(f);
    if (is_enough(f) || a->wait_s == 0) {
        answer(f);
        return;
    }
    (void)evtimer_add(f->timer, &wait);
    tool_wait_in(t, p->home, &(struct mcp_worker){.stop = on_stop, .user = f});
}

/* ---- all ---- */

/* The sandbox may be left out where the id says which. */
static struct process *find(struct tool_call *t, const struct tool_manage_process *a,
                            struct persistent *home)
{
    struct process *p;

    if (home)
        return process_of_lines(home, a->process.p, a->process.n);
    TAILQ_FOREACH(home, &t->x->app->sandboxes->list, link)
    if ((p = process_of_lines(home, a->process.p, a->process.n)))
        return p;
    return NULL;
}

void tool_manage_process(struct tool_call *t)
{
    const struct tool_manage_process *a = t->arguments;
    struct persistent *home = NULL;
    struct process *p;

    if (a->action != PROCESS_LIST && !a->process.p) {
        tool_refuse(t, show_hint, "process_id is needed for action %s", actions[a->action]);
        return;
    }
    if (a->action == PROCESS_LIST || a->sandbox.p) {
        home = tool_sandbox(t, a->sandbox, TOOL_READS);
        if (!home)
            return;
    }
    if (a->action == PROCESS_LIST) {
        list(t, home);
        return;
    }
    p = find(t, a, home);
    if (!p)
        tool_refuse(t, show_hint, "there is no process '%.64s'", a->process.p);
    else if (a->action == PROCESS_KILL)
        end(t, p);
    else
        follow(t, a, p);
}
