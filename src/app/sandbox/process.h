/* SPDX-License-Identifier: MIT */
/*
 * Processes of a persistent sandbox that outlive the request that started them: listed, written to,
 * signalled, killed as a whole tree. The newest bytes of their output are kept (proc/bytering.h)
 * for readers that come, leave and come back; some families have it line by line as well
 * (proc/logring.h). Finished ones stay, the newest PROCESSES_KEPT of them.
 *
 * A process waits for the fastest of its readers, as it would for a pipe, but for none that has
 * taken nothing for PROCESS_STALL_MS, and never when it has no reader. What a reader was too slow
 * for is a gap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/sandbox/command.h"
#include "app/sandbox/sandboxes.h"
#include "base/clock.h"
#include "base/lines.h"
#include "proc/bytering.h"
#include "proc/logring.h"

enum {
    PROCESSES_KEPT = 1000,
    PROCESS_ID_MAX = 36,
    PROCESS_TAG_MAX = 128,
    PROCESS_BEHIND = 64 << 10, /* bytes that its fastest reader may be behind */
    PROCESS_STALL_MS = 5000,   /* a reader that took nothing for so long is not waited for */
};

enum process_status {
    PROCESS_RUNNING,
    PROCESS_COMPLETED,
    PROCESS_FAILED,
    PROCESS_KILLED,
    PROCESS_STATUS_COUNT,
};
const char *process_status_name(enum process_status s);

struct process;

/* One that reads the bytes; embedded in what it is for. */
struct process_reader {
    TAILQ_ENTRY(process_reader) link;
    struct process *process;  /* borrowed; NULL: detached */
    uint64_t at;              /* the byte it wants next */
    bool lags;                /* it is not waited for */
    void (*wake)(void *user); /* there is more, or the end */
    void *user;
};

/* One that waits until its bytes have been written; embedded in what it is for. */
struct process_writer {
    TAILQ_ENTRY(process_writer) link;
    struct process *process;                 /* borrowed; NULL: it does not wait */
    void (*written)(void *user, bool taken); /* false: nobody reads them */
    void *user;
};

/* What the family with lines has instead. */
struct process_lines {
    struct lines lines[RUN_STREAMS];
    struct logring log;
    enum run_stream feeding; /* the stream whose lines come now */
    struct logtime now;
};

struct process {
    TAILQ_ENTRY(process) link;
    struct activity activity; /* while it writes */
    struct persistent *home;  /* borrowed */
    char id[PROCESS_ID_MAX + 1];
    char tag[PROCESS_TAG_MAX + 1]; /* "": none */
    char *command;                 /* owned */
    size_t command_n;
    char *config;      /* owned: what was asked for, a JSON object; NULL: not told */
    int pid;           /* as seen inside */
    uint32_t terminal; /* its size, plan_terminal(); 0: none */
    enum process_status status;
    struct {
        int exit_code; /* -1: by a signal or a limit, or it still runs */
        int signal;    /* 0: none */
        enum end_reason reason;
        uint64_t at_us; /* 0: it still runs */
    } end;
    char started_at[CLOCK_ISO_MAX], completed_at[CLOCK_ISO_MAX];
    struct command *run;         /* owned; NULL: it has ended, and its streams have */
    struct process_lines *lines; /* owned; NULL: bytes only */
    struct {
        struct bytering ring;
        TAILQ_HEAD(, process_reader) readers;
        struct event *stalled; /* owned */
        bool paused;
        bool ending; /* what is in the pipes is the last: no reader is waited for */
        bool closed; /* nothing more is told */
    } output;
    TAILQ_HEAD(, process_writer) writers;
    bool signalled; /* its output ends with it, whatever else still holds its streams; so does that
                       of one with lines */
    void (*started)(void *user, struct process *p, const struct run_result *why);
    void *user;
};

/* p == NULL in the callback: it could not be started, `why` says why. Exactly once, later. */
typedef void process_started_fn(void *user, struct process *p, const struct run_result *why);

struct process_order {
    struct command_order command;
    struct bytes tag;    /* at most PROCESS_TAG_MAX bytes */
    struct bytes config; /* a JSON object; n == 0: none */
    bool lines;          /* its output is also kept line by line */
};

must_check int process_start(struct persistent *home, const struct process_order *o,
                             process_started_fn *started, void *user, enum run_fault *ret_at,
                             struct err *e);
/* By id, of those with lines. */
struct process *process_of_lines(const struct persistent *home, const char *id, size_t n);
/* Running ones before others, then the newest. */
struct process *process_by_pid(const struct persistent *home, int64_t pid);
struct process *process_by_tag(const struct persistent *home, const char *tag, size_t n);
struct process *process_by_id(const struct persistent *home, const char *id, size_t n);
static inline bool process_runs(const struct process *p)
{
    return p->status == PROCESS_RUNNING;
}

/* It and everything that it started. ERR_CALLER when it does not run. */
must_check int process_kill(struct process *p, struct err *e);
/* -1: it does not run. */
must_check int process_signal(struct process *p, int number, bool group);
/* -1: it does not run, or has no terminal. */
must_check int process_resize(struct process *p, uint32_t terminal);

/* ---- output ---- */

#define PROCESS_FROM_NOW UINT64_MAX
void process_attach(struct process *p, struct process_reader *r, uint64_t from,
                    void (*wake)(void *user), void *user);
void process_detach(struct process_reader *r); /* fine when it is not attached */
/* What comes next, at most so much, good until the next call of anything here; false: nothing now.
 * A gap comes alone. */
bool process_read(struct process_reader *r, size_t most, struct bytering_piece *ret);
/* Everything has been read and nothing more will come: it has ended. */
bool process_is_read(const struct process_reader *r);

/* ---- input ---- */

/* TAKEN with w->process == NULL: it is written; else written() comes. */
enum run_input process_write(struct process *p, const void *bytes, size_t n,
                             struct process_writer *w, void (*written)(void *user, bool taken),
                             void *user);
void process_writer_leave(struct process_writer *w); /* what it gave is written all the same */
/* How much waits to be written. */
size_t process_input_waiting(const struct process *p);
/* End of file behind what waits. -1: it has no input that could end. */
must_check int process_input_end(struct process *p);

/* For sandboxes.c: no more output will come; free all of them. */
void processes_end(struct persistent *home);
void processes_done(struct persistent *home);
