/* SPDX-License-Identifier: MIT */
/*
 * Port: carry out one plan in one sandbox and tell what happened.
 *
 * Everything is called on the loop. Facts are collected here; what they mean for the caller
 * (status, words on stderr) is decided in app/execution/verdict.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"
#include "core/port_jail.h"
#include "core/result.h"

struct event_base;

enum {
    RUN_PROGRESS_MAX = 64 * 1024,        /* bytes of one progress report */
    RUN_ERROR_MAX = 1024 * 1024,         /* bytes of an error frame */
    RUN_COMPILED_MAX = RUN_PROGRESS_MAX, /* of compiled code: no frame that long is too long */
    RUN_NOTE_MAX = 1024,                 /* room behind a stream for our own last words */
};

enum run_stream { RUN_OUT, RUN_ERR, RUN_STREAMS };

/* Of END_FAILED: what failed before the program ran, in a persistent sandbox. */
enum run_fault {
    RUN_NO_START,     /* anything but the following */
    RUN_NO_DIRECTORY, /* the working directory; fault_sys says why */
    RUN_BUSY,         /* the sandbox has no process left for it */
    RUN_LOST,         /* the sandbox ended first */
};

/* What came out of a run. Owns its buffers. */
struct run_result {
    enum end_reason reason;
    int exit_code; /* 128 + signal; -1 when the program never ended by itself */
    int signal;    /* 0: none */
    struct buf out, err;
    bool out_truncated, err_truncated;
    struct buf result;   /* raw text of the returned value, not validated yet; empty: none */
    struct buf error;    /* raw text of the error frame; empty: none */
    struct buf progress; /* raw text of the latest progress report */
    struct buf compiled; /* of a plan that compiles; empty: not told */
    bool result_too_long, frames_broken;
    struct usage usage;
    struct stamps at;
    int64_t files_left_out;      /* files that the scan did not report */
    bool scanned;                /* the workspace was looked at: what it lacks is not there */
    enum plan_template template; /* what the sandbox really was */
    bool warm;
    int pid;         /* as seen inside, of a program in a persistent sandbox */
    char fault[500]; /* END_FAILED: words */
    enum run_fault fault_at;
    int fault_sys; /* errno; 0: not known */
};

void run_result_init(struct run_result *r, const struct limits *l);
void run_result_done(struct run_result *r);

/* One regular file found in the workspace afterwards. */
struct run_file {
    const char *name; /* relative to the workspace; borrowed; may hold any byte but NUL */
    size_t name_n;
    int64_t mtime_s, mtime_ns;
    uint32_t mode;  /* permissions */
    int fd;         /* open for reading; closed after the callback unless taken */
    bool untouched; /* of a plan that lends files: one of them, as it was. There is no fd */
};

struct run; /* one plan being carried out */

typedef void run_progress_fn(void *user, const char *json, size_t n);
/* One item of a generator, as JSON that nobody has looked at. */
typedef void run_item_fn(void *user, const char *json, size_t n);
/* There is more in the result's streams. The run must not be freed from inside. */
typedef void run_output_fn(void *user);
typedef void run_file_fn(void *user, struct run_file *f);
/* Exactly once. Nothing inside is heard any more; the sandbox itself is held until run_free(). */
typedef void run_done_fn(void *user);
/* A frame of a program that stays. The run must not be freed from inside. */
typedef void run_frame_fn(void *user, char kind, const char *p, size_t n);
/* A sandbox that was not there yet has been built, or the program was started in a persistent one:
 * from now on it is the program's time. */
typedef void run_ready_fn(void *user);
/* Bytes that the program wrote, as they come. The run must not be freed from inside. */
typedef void run_bytes_fn(void *user, enum run_stream s, const char *p, size_t n);
/* Nothing of run_input() waits any more: it was written, or nobody reads it. The run must not be
 * freed from inside. */
typedef void run_input_fn(void *user);
/* In a persistent sandbox: the program has ended, its result is known. Processes that it started
 * may live on; done() comes once none of them has one of its streams open. */
typedef void run_exited_fn(void *user);
/* The signal asked for by run_interrupt() has been sent. */
typedef void run_interrupted_fn(void *user);

/* The scan asked for by run_scan() is over; so many files were not shown. */
typedef void run_scanned_fn(void *user, int64_t left_out);
/* The file of run_put() is there; or why not: an errno. */
typedef void run_put_fn(void *user, int error);

struct run_events {
    run_progress_fn *progress;       /* may be NULL */
    run_item_fn *item;               /* may be NULL */
    run_output_fn *output;           /* may be NULL */
    run_ready_fn *ready;             /* may be NULL */
    run_file_fn *file;               /* NULL: the workspace is not looked at. Of a program that
                                        stays: only when it is asked for */
    run_frame_fn *frame;             /* not NULL: gets all frames; the result keeps none of them */
    run_interrupted_fn *interrupted; /* may be NULL */
    run_scanned_fn *scanned;         /* may be NULL: then nobody scans */
    run_put_fn *put;                 /* the same */
    run_bytes_fn *bytes;             /* not NULL: gets both streams; the result keeps none */
    run_exited_fn *exited;           /* may be NULL */
    run_input_fn *input;             /* may be NULL */
    run_done_fn *done;
    void *user;
};

struct run_engine; /* what all runs share: loop, jail, scratch space */

/* What is done once the answers that were given in this turn of the loop have been sent, in the
 * order of asking. Embedded in what it is about. */
struct run_after {
    void (*fn)(struct run_after *a);
    bool waits;
    TAILQ_ENTRY(run_after) link;
};

must_check int run_engine_open(struct event_base *base, struct jail *jail, struct run_engine **ret,
                               struct err *e);
/* The same loop and scratch space for another jail; to be closed before the first one. */
must_check int run_engine_beside(const struct run_engine *g, struct jail *jail,
                                 struct run_engine **ret, struct err *e);
void run_engine_close(struct run_engine *g); /* NULL is fine; no run may be left */

/* Once, even if it is asked for twice before it is done. */
void run_after(struct run_engine *g, struct run_after *a, void (*fn)(struct run_after *a));
/* All of that at once. NULL is fine. */
void run_after_all(struct run_engine *g);

/*
 * Takes a sandbox and hands it the plan. Nothing of the plan is needed afterwards. On failure
 * nothing runs. No callback comes before the return. The result's buffers are filled while the run
 * lasts and may be read in done().
 */
must_check int run_start(struct run_engine *g, const struct plan *p, struct run_result *result,
                         const struct run_events *events, struct run **ret, struct err *e);
/* Asks for an early end. Only the first reason counts; done() still comes. */
void run_stop(struct run *r, enum end_reason why);
/* Back-pressure on bytes(): nothing is read until resumed, and the program waits for room. */
void run_output_pause(struct run *r);
void run_output_resume(struct run *r);
/* Back-pressure on files: no more of them until resumed. */
void run_files_pause(struct run *r);
void run_files_resume(struct run *r);

/* ---- a program that stays: frames go both ways while it lives ---- */

/* Sends bytes to its descriptor 3 behind what was sent before; -1: too many are waiting. */
must_check int run_send(struct run *r, const void *p, size_t n);
/* SIGINT to the program and its process group; interrupted() comes once it has been sent. */
must_check int run_interrupt(struct run *r);
/* Any signal, in a persistent sandbox: to the program alone, or to its process group. */
must_check int run_signal(struct run *r, int number, bool group);
/* The size of its terminal; the program gets SIGWINCH. */
must_check int run_resize(struct run *r, uint32_t terminal);
/* Standard input that stays open: bytes behind those sent before. At most RUN_INPUT_MAX may wait.
 * RUN_INPUT_FULL: they would be more; RUN_INPUT_CLOSED: nobody reads it. */
enum { RUN_INPUT_MAX = 64 << 20 };
enum run_input { RUN_INPUT_TAKEN, RUN_INPUT_FULL, RUN_INPUT_CLOSED };
enum run_input run_input(struct run *r, const void *p, size_t n);
/* Bytes that were not written yet. */
size_t run_input_waiting(const struct run *r);
/* End of file, behind what waits. */
void run_input_end(struct run *r);
/* Looks at the workspace while the program lives: file() for each one, then scanned(). */
must_check int run_scan(struct run *r);
/* A file, named as scans name them, gets `size` bytes of the descriptor, beginning at `at`; put()
 * tells when. One at a time. */
must_check int run_put(struct run *r, const char *name, int fd, int64_t at, int64_t size);
/* Back-pressure on frames, of other programs too: none are read until resumed, and the program
 * waits for room. */
void run_frames_pause(struct run *r);
void run_frames_resume(struct run *r);
/* Reads what is in the pipes now: what the program wrote before a frame is there when it comes. */
void run_output_read(struct run *r);
/* What was written since the last time; the result begins anew. The buffers are the caller's. */
struct run_output {
    struct buf out, err;
    bool out_truncated, err_truncated;
};
void run_output_take(struct run *r, struct run_output *ret);
/* What was used so far. */
void run_usage(const struct run *r, struct usage *ret);

/* At any time; no callback comes any more. The sandbox goes after the answer, see run_after(). NULL
 * is fine. */
void run_free(struct run *r);
DEFINE_FREEP(struct run, run_free)
