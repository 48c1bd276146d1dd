/* SPDX-License-Identifier: MIT */
/* What the files of sessions share among themselves; nobody else's business. */
#pragma once

#include "app/session/fsession.h"

/* ---- fsession.c ---- */

/* A zeroed session becomes one of the app's. */
must_check int fsession_init(struct fsession *s, struct app *a);
/* Its process ends without a word; so do the turns that wait. Nothing of it is beside the loop. */
void fsession_free(struct fsession *s);

/* ---- fsession_clock.c: time, and ends that it brings ---- */

/* From now on the session does nothing. */
void fsession_rest(struct fsession *s);
void fsession_deadline(struct fsession *s, uint64_t ms);
/* Its process ends. */
void fsession_stop(struct fsession *s, enum end_reason why);
/* How much of the CPU was used when the current turn began; 0: nobody wants to know. */
uint64_t fsession_cpu_us(const struct fsession *s);
/* First a word, then force. */
void fsession_interrupt(struct fsession *s);
/* The current turn can be sent a signal from now on. */
void fsession_begun(struct fsession *s);
/* An event callback; user is the session. */
void fsession_on_timer(int fd, short what, void *user);

/* ---- fsession_queue.c: whose turn it is ---- */

/* Goes on with whoever is first, if it can. */
void fsession_next(struct fsession *s);
/* Nobody waits any more. */
void fsession_queue_end(struct fsession *s, enum end_reason why);
/* The same, without a word to anybody. */
void fsession_queue_forget(struct fsession *s);
/* The code could not be loaded: whoever waited for it hears why. */
void fsession_queue_fail(struct fsession *s, const struct turn *like);
/* The current turn has all its files: the packet. */
void fsession_call_send(struct fsession *s);

/* ---- fsession_process.c ---- */

/* A process for the code; turns fail if there cannot be one. */
void fsession_start(struct fsession *s);
/* The answer and what it did to the files are known: on to the next turn. */
void fsession_answered(struct fsession *s);
/* There is no process any more, and nothing of it is beside the loop. */
void fsession_gone(struct fsession *s);

/* ---- fsession_files.c ---- */

/* Mounts from the host, beside the loop; then(), or whoever waits hears why not. */
must_check int fsession_mounts_parse(struct fsession *s, struct err *e);
void fsession_mounts_load(struct fsession *s, void (*then)(struct fsession *s));
bool fsession_has_mounts(const struct fsession *s);
/* What may be written, and what is there, before a process begins. */
must_check int fsession_files_begin(struct fsession *s, struct err *e);
/* Are the files that a call brings ones that it may? */
must_check int fsession_files_check(struct fsession *s, struct turn *t, struct err *e);
/* Puts the next of them there; then comes fsession_call_send(). */
void fsession_files_put(struct fsession *s);
/* Looks at the files; false: there is no need to. Then comes fsession_answered(). */
bool fsession_files_look(struct fsession *s);
/* Something of it is on a worker: it must not be freed. */
bool fsession_is_beside(const struct fsession *s);
void fsession_files_done(struct fsession *s);
/* Callbacks of the run. */
run_file_fn fsession_on_file;
run_scanned_fn fsession_on_scanned;
run_put_fn fsession_on_put;

/* ---- fsession_make.c ---- */

/* Cancels what is under way before the first process. */
void fsession_make_stop(struct fsession *s);

/* ---- turn.c ---- */

must_check struct turn *turn_new(struct app *a, enum turn_kind kind, const struct turn_order *o);
void turn_free(struct turn *t);
/* Reads the body of a call. May run on a worker. */
must_check int turn_parse(struct turn *t, struct err *e);
/* The packet of a call. */
must_check int turn_packet(struct turn *t, const char *token, struct buf *out);
/* Arguments to parameters. */
must_check int turn_bind(struct turn *t, struct err *e);
/* The facts that the answer needs of the session, which is left. */
void turn_detach(struct turn *t);
/* It ended like this run, or before there was one. */
void turn_end_as(struct turn *t, const struct run_result *r);
/* It never began. */
void turn_unstarted(struct turn *t, enum end_reason why);
/* It ended like this; `like` is no turn but has the outcome of one. */
void turn_take(struct turn *t, const struct turn *like);
void turn_fail(struct turn *t, const struct err *e);
/* What the program answered, seen for the first time. */
void turn_judge(struct turn *t);
/* Renders and delivers; not at once if it may not. */
void turn_finish(struct turn *t, bool may_deliver);

static inline struct turn *turn_of_work(struct work *w)
{
    return (struct turn *)((char *)w - offsetof(struct turn, work));
}
