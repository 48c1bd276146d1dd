/* SPDX-License-Identifier: MIT */
/*
 * A task: everything that asks for a place, runs plans in sandboxes, can be ended early and becomes
 * a result. Executions, function calls, inspections and installations of packages are kinds of it.
 *
 *   PREPARING ─▶ QUEUED ─▶ STARTING ◀─▶ RUNNING ─▶ COLLECTING ─▶ DONE
 *       └──────────┴───────────┴──── failed, stopped ──▲
 *
 * What a kind does is a table of steps, from top to bottom, under one ticket. For an execution:
 *
 *   static const struct task_step steps[] = {
 *       {"plan",    TASK_PREPARING,  step_plan},
 *       {"admit",   TASK_QUEUED,     task_admit},
 *       {"run",     TASK_STARTING,   step_run},
 *       {"collect", TASK_COLLECTING, step_collect, .always = true},
 *       {"judge",   TASK_COLLECTING, step_judge, .always = true},
 *   };
 *
 * A step is begun once. It is over at once (TASK_NEXT), or begins something (TASK_WAIT) whose
 * callback calls task_continue(). TASK_END is a failure: only the steps marked `always` follow, as
 * they do when somebody stops the task. So a step says what it does and never what comes next.
 *
 * The end has one order, for every kind:
 *
 *   1. answer    the last step is over, nothing of the result changes any more: kind->answer()
 *   2. release   the sandbox of the last run goes
 *   3. admit     the place goes to the next task that waits
 *   4. account   log, metrics, caches, registry: kind->account(), which may free the task
 *
 * 2 to 4 are one deferred job, which runs once the answer has been written to its connection. A
 * task that has to wait before it can answer (for a disk) may do 2 and 3 earlier: task_release().
 *
 * All of it is called on the loop. Embedded in what it is a task of.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/admission.h"
#include "core/plan.h"
#include "core/port_run.h"
#include "core/port_work.h"
#include "core/result.h"

struct task;

enum task_state {
    TASK_PREPARING,  /* what was asked for is read and checked; it has no place */
    TASK_QUEUED,     /* waits for a place */
    TASK_STARTING,   /* has a place; no program of it runs: before the first, or between two */
    TASK_RUNNING,    /* a program of it runs */
    TASK_COLLECTING, /* no program will run any more; the result is being made */
    TASK_DONE,       /* the result is final */
    TASK_STATE_COUNT,
};
const char *task_state_name(enum task_state s);

/* How a step went. */
enum task_go {
    TASK_NEXT,   /* it is over */
    TASK_WAIT,   /* task_continue() follows, or was called already */
    TASK_END,    /* it failed: what comes to a result, see `always` */
    TASK_REFUSE, /* the task must not be: no place, or it asks for the impossible. *e says why */
};

typedef enum task_go task_begin_fn(struct task *t, struct err *e);
typedef void task_stop_fn(struct task *t);
typedef void task_fn(struct task *t);

struct task_step {
    const char *name;
    enum task_state state; /* entered when it begins */
    task_begin_fn *begin;
    /* Gives up what the step waits for: task_continue() does not follow. NULL: that ends by itself
     * and soon, or is a run, which the task ends */
    task_stop_fn *stop;
    bool always; /* also after a failure or a stop */
};

struct task_kind {
    const char *name;
    const struct task_step *steps;
    size_t steps_n;
    task_fn *answer;  /* once, never from inside task_begin() or task_stop() */
    task_fn *account; /* the last thing: may free it */
};

/* What all tasks share. */
TAILQ_HEAD(task_list, task);
struct task_host {
    struct admission *admission; /* borrowed, as is the rest */
    struct work_pool *work;
    uint64_t *refused;       /* counts tasks that found no place */
    struct task_list active; /* begun, and not accounted for */
};

struct task {
    const struct task_kind *kind; /* borrowed */
    struct task_host *host;       /* borrowed */
    struct run_engine *engine;    /* borrowed: its plans run there */
    enum task_state state;        /* written by task_move() alone */
    size_t step;                  /* row of the table */
    bool waiting;                 /* the step has begun and is not over */
    bool beginning;               /* its begin() has not returned */
    enum task_go early; /* what it continued with before it returned; TASK_WAIT: nothing */
    bool ending;        /* only the steps marked `always` are begun */
    bool under_other;   /* runs under the ticket of another task and asks for none */
    bool begun;         /* in the host's list */
    bool stopped;
    enum end_reason stop_reason; /* if it was stopped */
    struct err refused;          /* a step said TASK_REFUSE; kind ERR_NONE: none did */
    struct ticket ticket;
    struct limits limits;
    struct plan *plan; /* owned: of the last program, until it runs */
    void (*plan_free)(struct plan *p);
    struct run *run;          /* owned: the last one */
    struct run_result result; /* of the last program; filled by task_run() and task_fail() */
    struct run_after after;
    struct work work;
    task_fn *beside; /* what the work does */
    TAILQ_ENTRY(task) link;
};

void task_host_init(struct task_host *h, struct admission *a, struct work_pool *w,
                    uint64_t *refused);

/* Everything else is zero already. Limits are set before, a lane of the ticket afterwards. */
void task_init(struct task *t, const struct task_kind *kind, struct task_host *h,
               struct run_engine *engine);
/* Frees what it owns, whatever it does, unless its end is being deferred. */
void task_done(struct task *t);

/* The same for one that was done in an earlier life of the daemon: it is DONE. */
void task_init_done(struct task *t, const struct task_kind *kind, struct task_host *h,
                    struct run_engine *engine);

/* Begins the steps. -1: one of them refused before anything was begun; the task is as it was after
 * task_init(), answer() and account() do not follow. */
must_check int task_begin(struct task *t, struct err *e);
/* The step that waits is over. The task may be answered when this returns. */
void task_continue(struct task *t, enum task_go how);
/* Asks for an early end; the first reason counts. Nothing happens while COLLECTING or DONE. */
void task_stop(struct task *t, enum end_reason why);
/* Does that step wait? For callbacks that may come in another one. */
bool task_waits_in(const struct task *t, task_begin_fn *step);

/* ---- for steps ---- */

/* A whole step: asks for a place, waits in the queue. */
enum task_go task_admit(struct task *t, struct err *e);
/* Runs a plan and waits for its end. `events` without done and user: user is the task. `result`
 * NULL: the task's own; otherwise one that the caller has initialised. */
enum task_go task_run(struct task *t, const struct plan *p, const struct run_events *events,
                      struct run_result *result);
/* The same for task->plan, which is freed. */
enum task_go task_run_plan(struct task *t, const struct run_events *events);
/* Calls fn on a worker and waits for it. fn touches nothing but the task. */
enum task_go task_beside(struct task *t, task_fn *fn, enum work_lane lane);
/* The result is that it never ran. Returns TASK_END. */
enum task_go task_fail(struct task *t, enum end_reason why, const char *words);
/* The last program was run to its end. */
static inline bool task_ran(const struct task *t)
{
    return t->result.at.ended != 0;
}
/* Gives the sandbox and the place back before the answer. */
void task_release(struct task *t);
