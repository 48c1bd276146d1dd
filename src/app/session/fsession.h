/* SPDX-License-Identifier: MIT */
/*
 * Function sessions: code that is loaded once and called often, with its state kept in between.
 *
 *   PREPARING ─▶ LOADING ─READY─▶ COLLECTING ◀──answer── BUSY ◀─┐
 *                   ▲               │   └─▶ IDLE ──next turn────┘
 *                   └──next turn── DOWN ◀── STOPPING ◀─ exit, crash, limit
 *
 * A session is one run (core/port_run.h) of its language's wrapper, which reads packets from its
 * private channel and answers each of them (fsession_process.h). Everything that is asked of a
 * session is a turn (turn.h): a call, a reset, its creation. Turns are taken one at a time in the
 * order they came; so many may wait, then the session is busy. A turn's answer begins with a token
 * that only the wrapper was told, so nothing that other code writes into the channel counts as one:
 * it ends the process.
 *
 * A turn that takes too long is interrupted, where the language can be: the session lives on. If
 * that does not help, or anything else ends the process, its state is lost: a new process loads
 * the code, at once when a call was under way, else when the next turn comes, and the answers of
 * both the turn that lost it and the one after it say so.
 *
 * Files (fsession_files.h): before a call those that it brings are put into the sandbox, after its
 * answer the workspace is looked at, and what differs from the last time is what the call changed.
 * Changes of mounts that are to go back are written before the next turn. A new process begins with
 * the files of the session anew, mounts as they are on the host by then.
 *
 * A turn whose answer is known has nothing to do with its session any more, which may go while a
 * large answer is still being written down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/function/program.h"
#include "app/session/fsession_files.h"
#include "app/session/fsession_process.h"
#include "app/session/turn.h"
#include "base/clock.h"

struct app;
struct event;

enum { FSESSION_ID_RANDOM = 20 };

enum fsession_state {
    FSESSION_PREPARING, /* a new one: its body is read, its code inspected and compiled */
    FSESSION_LOADING,
    FSESSION_IDLE,
    FSESSION_BUSY,
    FSESSION_COLLECTING, /* the answer is known; the files are looked at, changes written back */
    FSESSION_STOPPING,   /* its process ends, or was told to */
    FSESSION_DOWN,       /* there is no process */
    FSESSION_STATES,
};
const char *fsession_state_name(enum fsession_state s);

struct fsession {
    struct app *app; /* borrowed */
    TAILQ_ENTRY(fsession) link;
    char id[FSESSION_ID_MAX + 1];
    char created_at[CLOCK_ISO_MAX];
    enum fsession_state state;   /* written by fsession_move() alone */
    bool ending;                 /* it is freed once its process is gone */
    bool hidden;                 /* and cannot be found any more */
    enum end_reason stop_reason; /* why it is ending, where a worker has it */
    struct program program;      /* all its calls are of */
    struct fsession_files files;
    struct fsession_process process;
    uint64_t wall_ms, idle_ms; /* of a call; of the session, 0: for ever */
    uint64_t used_us;          /* the last turn ended */
    uint64_t calls;            /* begun so far */
    struct turn *current;      /* whose turn it is; NULL: no turn is under way */
    struct turn_list queue;
    size_t queued_n;
    uint64_t deadline_us;
    struct event *timer; /* owned */
};
TAILQ_HEAD(fsession_list, fsession);

struct fsessions {
    struct fsession_list list, ending;
    struct turn_list turns;
    size_t n;
};

void fsessions_init(struct fsessions *s);
/* Ends and frees all; done() does not come. Nothing may be on a worker. */
void fsessions_done(struct fsessions *all);
void fsessions_stop_all(struct fsessions *all, enum end_reason why);

struct metrics;
/* How many there are, and what they do. */
void fsessions_count(const struct fsessions *all, struct metrics *m);

/* A new session; the answer of the turn tells what became of it. The body is taken in any case. */
must_check int fsession_create(struct app *a, const struct function_order *o, struct turn **ret,
                               struct err *e);
/* ERR_ABSENT. */
must_check int fsession_find(struct app *a, const char *id, struct fsession **ret, struct err *e);
/* Everything inside dies; turns end as terminated. */
void fsession_delete(struct fsession *s);

/* ---- for turns and the process ---- */

void fsession_move(struct fsession *s, enum fsession_state to);
/* Its process ends without a word; so do the turns that wait. Nothing of it is beside the loop. */
void fsession_free(struct fsession *s);
/* The same, and its current turn, which ends like this. */
void fsession_end(struct fsession *s, enum end_reason why);
/* Goes on with the first turn that waits, if it can. */
void fsession_next(struct fsession *s);
/* One more turn waits, or (drop) does not. */
void fsession_queue_add(struct fsession *s, struct turn *t);
void fsession_queue_drop(struct fsession *s, struct turn *t);
/* The code could not be loaded: all that wait for it hear why, see turn_end(). */
void fsession_queue_fail(struct fsession *s, const struct turn_ending *how);
/* Something of it is on a worker: it must not be freed. */
bool fsession_is_beside(const struct fsession *s);
