/* SPDX-License-Identifier: MIT */
/*
 * Function sessions: code that is loaded once and called often, with its state kept in between.
 *
 *   create ─▶ (inspect, compile) ─▶ LOADING ─READY─▶ COLLECTING ◀──answer── BUSY ◀─┐
 *                                      ▲               │   └─▶ IDLE ──next turn──────┘
 *                                      └──next turn── DOWN ◀── STOPPING ◀─ exit, crash, limit
 *
 * A session is one run (core/port_run.h) of its language's wrapper, which reads packets from its
 * private channel and answers each of them. Everything that is asked of a session is a turn: a
 * call, a reset, its creation. Turns are taken one at a time in the order they came; so many may
 * wait, then the session is busy. A turn's answer begins with a token that only the wrapper was
 * told, so nothing that other code writes into the channel counts as one: it ends the process.
 *
 * A turn that takes too long is interrupted, where the language can be: the session lives on. If
 * that does not help, or anything else ends the process, its state is lost: a new process loads
 * the code, at once when a call was under way, else when the next turn comes, and the answers of
 * both the turn that lost it and the one after it say so.
 *
 * Files: before a call those that it brings are put into the sandbox, after its answer the
 * workspace is looked at, and what differs from the last time is what the call changed. Changes of
 * mounts that are to go back are written before the next turn. A new process begins with the files
 * of the session anew, mounts as they are on the host by then.
 *
 * A turn whose answer is known has nothing to do with its session any more, which may go while a
 * large answer is still being written down.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/daemon/place.h"
#include "app/execution/execution.h"
#include "app/function/call_sync.h"
#include "app/function/collect.h"
#include "app/function/program.h"
#include "base/buf.h"
#include "base/clock.h"
#include "core/frame.h"
#include "core/languages.h"
#include "core/port_run.h"
#include "core/port_work.h"
#include "function/binding.h"
#include "function/known.h"
#include "function/outcome.h"
#include "function/request.h"
#include "function/rights.h"
#include "function/signature.h"

struct app;
struct event;
struct fsession;
struct inspect;
struct turn;

enum { FSESSION_ID_MAX = 32, FSESSION_ID_RANDOM = 20 };

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

enum turn_kind { TURN_CREATE, TURN_CALL, TURN_RELOAD, TURN_RESTART };
enum turn_state { TURN_PARSING, TURN_QUEUED, TURN_RUNNING, TURN_ENDING };

/* Writes the answer down. Pure; may run on a worker. */
typedef void turn_render_fn(struct turn *t, struct buf *out);
/* Exactly once, from the loop, never from inside the function that was given it. The turn is gone
 * when it returns. */
typedef void turn_done_fn(void *user, struct turn *t);
/* One item of a generator, as JSON. False: no more before turn_resume(). */
typedef bool turn_item_fn(void *user, size_t index, const char *json, size_t n);

struct turn {
    struct app *app;          /* borrowed */
    struct fsession *session; /* borrowed; NULL: it has nothing to do with one any more */
    enum turn_kind kind;
    enum turn_state state;
    char request_id[REQUEST_ID_MAX + 1];
    struct buf text; /* owned: the body */
    struct call_request request;
    struct binding binding;
    uint64_t wall_ms, cpu_from_us;
    struct err refused; /* kind ERR_NONE: it was one */
    bool stream;        /* items one by one */
    size_t items;       /* that came */
    bool begun;         /* it can be sent a signal */
    bool interrupted;   /* it was sent a signal */
    bool timed_out;     /* that is why */
    bool stopped;       /* before it began */
    enum end_reason stop_reason;
    char *workdir; /* owned: the session's */
    struct call_reporting usual;
    int files_fd;     /* owned: contents of the files it brings, in a row; -1: none */
    size_t files_put; /* so many of them are there */
    int64_t files_at; /* where the next one begins */

    /* the answer */
    char id[FSESSION_ID_MAX + 1]; /* of the session */
    int lang;
    bool wasm;               /* the engine */
    const struct jail *jail; /* borrowed; NULL: it never got so far */
    bool warm, restarted;
    const char *restart_reason; /* static; NULL: none */
    unsigned generation;
    uint64_t number; /* of the call */
    struct run_output output;
    struct buf result, error; /* raw, not validated before it is rendered */
    bool answered;            /* by the program itself */
    bool reloaded;            /* TURN_RELOAD: it is the same process */
    bool judged;              /* the outcome is known */
    struct call_outcome outcome;
    enum end_reason reason;
    int signal;
    struct stamps at;
    struct buf json;
    char call_id[EXECUTION_ID_MAX + 1];
    bool scanned; /* the changes are known */
    int64_t left_out;
    struct changes changes;
    struct call_file *old;            /* owned: what they say was there before */
    struct call_tree *tree;           /* held; NULL: the changes are not known */
    struct sync *sync;                /* owned: what went back; NULL: nothing was to */
    const struct sync_report *synced; /* of it, when it is over; else NULL */

    struct work work; /* parsing, rendering */
    turn_render_fn *render;
    turn_done_fn *done;
    turn_item_fn *item;
    sync_event_fn *event; /* or NULL */
    void *user;
    TAILQ_ENTRY(turn) link;     /* in the session's queue, or nowhere */
    TAILQ_ENTRY(turn) all_link; /* of all turns */
};
TAILQ_HEAD(turn_list, turn);

struct fsession {
    struct app *app; /* borrowed */
    TAILQ_ENTRY(fsession) link;
    char id[FSESSION_ID_MAX + 1];
    char created_at[CLOCK_ISO_MAX];
    enum fsession_state state;
    bool ending;             /* it is freed once its process is gone */
    bool hidden;             /* and cannot be found any more */
    struct program program;  /* all its calls are of */
    struct call_file *given; /* owned array: the files of the request without those of mounts */
    size_t given_n;
    struct err load_error; /* of the mounts; kind ERR_NONE: none */
    struct work work;      /* loads them */
    bool is_beside;        /* a worker has it */
    void (*loaded_then)(struct fsession *s);
    enum end_reason stop_reason; /* why it is ending, where a worker has it */
    struct known known;          /* its files when they were last looked at */
    struct collect collect;      /* while they are looked at */
    bool looking;                /* files are still coming */
    int64_t left_out;            /* of those that came last: how many were not shown */
    bool syncing;                /* changes are being written back */
    struct inspect *inspect;     /* owned: under way; else NULL */
    struct run *compiler;        /* owned: under way; else NULL */
    uint64_t wall_ms, idle_ms;   /* of a call; of the session, 0: for ever */
    uint64_t used_us;            /* the last turn ended */
    unsigned generation;         /* processes so far */
    uint64_t calls;              /* begun so far */
    struct run *run;             /* owned; NULL: no process */
    struct run_result result;
    char token[FRAME_TOKEN + 1]; /* of the answer that is awaited; "": none is */
    bool loaded;                 /* the process has the code */
    bool restarting;             /* it ends because another one is wanted */
    bool forged;                 /* something else was written into the channel */
    bool farewell;               /* the program said why it ends */
    bool lost;                   /* since the last answer: the next one says so */
    const char *lost_reason;     /* static */
    bool signalling;             /* a signal is on its way */
    struct turn *current;        /* its turn; NULL: nobody's */
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

struct turn_order {
    struct buf *text;       /* the body; taken */
    const char *request_id; /* for the log; "": none */
    uint64_t asked_us;
    bool stream;
    turn_render_fn *render;
    turn_done_fn *done;
    turn_item_fn *item;   /* streams only */
    sync_event_fn *event; /* of a sync, while it goes on; NULL: nobody listens */
    void *user;
};

/* A new session; the answer of the turn tells what became of it. */
must_check int fsession_create(struct app *a, const struct turn_order *o, struct turn **ret,
                               struct err *e);
/* ERR_ABSENT. */
must_check int fsession_find(struct app *a, const char *id, struct fsession **ret, struct err *e);
/* Fails when it cannot be queued or is no call. */
must_check int fsession_call(struct fsession *s, const struct turn_order *o, struct turn **ret,
                             struct err *e);
/* hard: another process in another sandbox; else, where the language can, the code once more. */
must_check int fsession_reset(struct fsession *s, const struct turn_order *o, bool hard,
                              struct turn **ret, struct err *e);
/* Everything inside dies; turns end as terminated. */
void fsession_delete(struct fsession *s);

/* Whoever asked is gone: done() does not come. A call under way is interrupted. */
void turn_abandon(struct turn *t);
/* There is room for items again. */
void turn_resume(struct turn *t);
