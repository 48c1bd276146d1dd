/* SPDX-License-Identifier: MIT */
/*
 * A turn: one thing that is asked of a session, as a task (app/task.h). The tables are at the head
 * of turn.c, that of a creation is in fsession_create.c. While it is a turn's turn, its process
 * (fsession_process.h) does what is asked and tells the turn that it may go on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/function/function_task.h"
#include "function/binding.h"

struct fsession;
struct turn;

enum { FSESSION_ID_MAX = 32 };

enum turn_kind { TURN_CREATE, TURN_CALL, TURN_RELOAD, TURN_RESTART };

/* What an answer says of its session. */
struct turn_facts {
    enum turn_kind kind;
    char id[FSESSION_ID_MAX + 1]; /* "": there never was one */
    unsigned generation;
    uint64_t number; /* of the call */
    bool restarted;
    const char *reason; /* static: why; NULL: none */
    bool interrupted;   /* it was sent a signal */
    bool reloaded;      /* TURN_RELOAD: it is the same process */
};

/* Files that a call brings. */
struct turn_files {
    int fd;     /* owned: contents in a row; -1: none */
    size_t put; /* so many of them are there */
    int64_t at; /* where the next one begins */
};

struct turn {
    struct function_task on;  /* first */
    struct fsession *session; /* borrowed; NULL: it has nothing to do with one any more */
    struct turn_facts facts;
    struct buf text; /* owned: the body */
    struct call_request request;
    struct binding binding;
    char *workdir; /* owned: the session's */
    struct call_reporting usual;
    struct turn_files files;
    uint64_t wall_ms, cpu_from_us;
    bool begun;     /* it can be sent a signal */
    bool timed_out; /* that is why it was */
    bool answered;  /* by the program itself */
    bool judged;    /* the outcome is known */
    struct changes changes;
    struct call_file *old;      /* owned: what they say was there before */
    struct call_tree *tree;     /* held; NULL: the changes are not known */
    TAILQ_ENTRY(turn) link;     /* in the session's queue, or nowhere */
    TAILQ_ENTRY(turn) all_link; /* of all turns */
};
TAILQ_HEAD(turn_list, turn);

static inline struct turn *turn_of(struct task *t)
{
    return (struct turn *)t;
}

/* Fails when it cannot be queued or is no call. The body is taken in any case. */
must_check int fsession_call(struct fsession *s, const struct function_order *o, struct turn **ret,
                             struct err *e);
/* hard: another process in another sandbox; else, where the language can, the code once more. */
must_check int fsession_reset(struct fsession *s, const struct function_order *o, bool hard,
                              struct turn **ret, struct err *e);
/* The client is gone: done() does not come. A call under way is interrupted. */
void turn_abandon(struct turn *t);
/* There is room for items again. */
void turn_resume(struct turn *t);
/* Its body is read. */
bool turn_is_read(const struct turn *t);

/* ---- for the session ---- */

must_check struct turn *turn_new(struct app *a, enum turn_kind kind, const struct task_kind *tasks,
                                 struct program *p, const struct function_order *o);
void turn_free(struct turn *t);
/* It waits for its turn. */
bool turn_is_ready(const struct turn *t);
/* The answer of the process and what it did to the files are known. */
void turn_go_on(struct turn *t);
/* How it ends without an answer: what was asked for cannot be, or the process is like that. */
struct turn_ending {
    const struct err *error;      /* or */
    const struct run_result *run; /* borrowed */
    uint64_t wall_ms;             /* the time that it had */
};
void turn_end(struct turn *t, const struct turn_ending *how);
/* What was written before the answer; taken. */
void turn_output(struct turn *t, const struct run_output *o);
/* Its changes go back. */
bool turn_is_syncing(const struct turn *t);
/* The facts that the answer needs of the session, which is left. */
void turn_detach(struct turn *t);
/* What the program answered, seen for the first time. */
void turn_judge(struct turn *t);
/* The packet of a call. */
must_check int turn_packet(struct turn *t, const char *token, struct buf *out);

/* ---- steps that creations have, too ---- */

task_begin_fn turn_perform; /* the process does it */
task_begin_fn turn_leave;   /* the session */
task_begin_fn turn_outcome; /* judges */
task_fn turn_answer, turn_account;
