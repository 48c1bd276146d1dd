/* SPDX-License-Identifier: MIT */
/*
 * Contexts: live interpreters of a persistent sandbox that run cells and keep their state.
 *
 *   STARTING ──READY──▶ IDLE ──cell──▶ BUSY ──its end──▶ IDLE
 *       ▲                                └──exit, crash, limit──▶ DOWN ──next cell──▶ STARTING
 *
 * A context is a command of its sandbox (command.h) that runs a program of src/lang/cells and talks
 * over descriptor 3 in frames. Cells of one context run one at a time in the order they came. The
 * program runs the tenant's code in its own process, so nothing that it sends is believed but for
 * the cell that runs: it is JSON that is validated here, or else the process is ended.
 *
 * A cell that takes too long is interrupted; if that does not end it within CELL_GRACE_MS, the
 * interpreter is ended and its state is lost, which the next cell is told.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/sandbox/cell_message.h"
#include "app/sandbox/command.h"
#include "app/sandbox/sandboxes.h"
#include "base/json.h"
#include "core/frame.h"

enum {
    CONTEXTS_MAX = 32,      /* of one sandbox */
    CONTEXT_QUEUE_MAX = 64, /* cells that wait in one context */
    CONTEXT_FAILURE_MAX = 256,
    CONTEXT_ID_MAX = 20,          /* characters of an id */
    CELL_EVENT_MAX = 4 << 20,     /* bytes of one frame: a picture in base64, say */
    CELL_CODE_MAX = 1 << 20,      /* bytes of code */
    CELL_TIMEOUT_MS = 300 * 1000, /* of a cell that says nothing */
    CELL_GRACE_MS = 2000,         /* from an interrupt to the end of the interpreter */
    CELL_INTERRUPTS = 4,          /* SIGINTs within it */
    CONTEXT_START_MS = 60 * 1000,
};

struct cells_language;

enum context_state { CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_BUSY, CONTEXT_DOWN, CONTEXT_STATES };
const char *context_state_name(enum context_state s);

enum cell_status {
    CELL_OK,
    CELL_ERROR,       /* it raised; an error event came before */
    CELL_TIMEOUT,     /* it was interrupted because its time was up */
    CELL_INTERRUPTED, /* somebody asked for that */
    CELL_CRASH,       /* its interpreter ended under it */
    CELL_STATUSES,
};
const char *cell_status_name(enum cell_status s);

struct cell_end {
    enum cell_status status;
    uint64_t count;                 /* of this context; 0: it never began */
    bool restarted;                 /* the state was lost before it began */
    const struct run_result *crash; /* CELL_CRASH: how the interpreter ended; NULL: not started */
    const char *failure;            /* CELL_CRASH: its own words about that, or "" */
    uint64_t queue_us, start_us, run_us;
};

/* What a cell does, from the loop, never from inside cell_start(). A cell must not be freed in one
 * of them but done(). */
struct cell_events {
    void (*begun)(void *user, uint64_t count); /* may be NULL */
    /* Text of the program, well-formed or not. */
    void (*output)(void *user, enum run_stream s, const char *p, size_t n);
    /* Validated; type: "display", "clear" or "error". */
    void (*event)(void *user, const char *type, const struct cell_message *m);
    /* It calls a tool, looks for some, gives a call up, or tells its progress. The first two are to
     * be answered by cell_answer(). NULL: it may call none, and is told so. */
    void (*asks)(void *user, enum cell_ask what, const struct cell_message *m);
    void (*done)(void *user, const struct cell_end *end); /* the cell is gone when it returns */
    void *user;
};

struct cell;

struct context {
    TAILQ_ENTRY(context) link;
    struct persistent *home;               /* borrowed */
    const struct cells_language *language; /* static */
    char id[CONTEXT_ID_MAX + 1];
    char *cwd; /* owned; NULL: the sandbox's */
    char created_at[CLOCK_ISO_MAX];
    enum context_state state;
    bool standard;            /* made on first use for cells that name only a language */
    bool lost;                /* its state was lost since the last cell */
    struct command *program;  /* owned; NULL: DOWN */
    uint64_t count;           /* cells that began */
    TAILQ_HEAD(, cell) cells; /* the first one runs if BUSY */
    size_t cells_n;
    struct event *timer;       /* owned: of the start, of the cell, and of its grace */
    char tail[RUN_STREAMS][4]; /* bytes of a character that is not complete yet */
    size_t tail_n[RUN_STREAMS];
    char failure[CONTEXT_FAILURE_MAX]; /* why the interpreter did not start; "": not known */
};

struct context_spec {
    struct bytes language, cwd; /* cwd.n == 0: the sandbox's */
};

/* ERR_CALLER: no such language. ERR_BUSY: there are too many. The interpreter starts at once. */
must_check int context_create(struct persistent *p, const struct context_spec *spec,
                              struct context **ret, struct err *e);
/* By id; ERR_ABSENT. */
must_check int context_find(const struct persistent *p, const char *id, size_t n,
                            struct context **ret, struct err *e);
/* The one that cells of a language run in when they name none; made on first use. */
must_check int context_standard(struct persistent *p, struct bytes language, struct context **ret,
                                struct err *e);
/* Its interpreter ends, cells that wait are told CELL_CRASH. */
void context_delete(struct context *x);
void context_restart(struct context *x);   /* the same, and a new interpreter begins */
void context_interrupt(struct context *x); /* the cell that runs, if one does */
const char *context_language(const struct context *x);

struct cell_order {
    struct bytes code;
    const struct exec_var *env; /* variables of this cell */
    size_t env_n;
    uint64_t timeout_ms; /* from its beginning; 0: none */
};

/* Nothing of the order is needed afterwards. ERR_BUSY: too many wait. */
must_check int cell_start(struct context *x, const struct cell_order *o,
                          const struct cell_events *events, struct cell **ret, struct err *e);
/* Nothing of it is told any more. One that waits is forgotten, one that runs is interrupted. */
void cell_leave(struct cell *c);
void cell_interrupt(struct cell *c); /* done() comes */
/* An answer to what the cell that runs asked for: a JSON object. -1: its interpreter is gone. */
must_check int cell_answer(struct cell *c, const char *json, size_t n);
/* Back-pressure: the interpreter waits once its buffers are full. */
void cell_pause(struct cell *c);
void cell_resume(struct cell *c);

/* For sandboxes.c. */
void contexts_end(struct persistent *p);          /* the sandbox is dead: nothing starts any more */
void contexts_done(struct persistent *p);         /* frees all of them; nothing is told */
size_t contexts_idle(const struct persistent *p); /* helpers that only wait for a cell */
