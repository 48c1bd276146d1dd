/* SPDX-License-Identifier: MIT */
/*
 * The process of a session: how it begins, what it says, how much time it has, how it ends. Its
 * frames and its end move the session and let the current turn go on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/frame.h"
#include "core/port_run.h"

struct fsession;

struct fsession_process {
    struct run *run; /* owned; NULL: there is none */
    struct run_result result;
    unsigned generation;         /* processes so far */
    char token[FRAME_TOKEN + 1]; /* of the answer that is awaited; "": none is */
    bool loaded;                 /* it has the code */
    bool restarting;             /* it ends because another one is wanted */
    bool forged;                 /* something else was written into the channel */
    bool farewell;               /* the program said why it ends */
    bool signalling;             /* a signal is on its way */
    bool lost;                   /* since the last answer: the next one says so */
    const char *lost_reason;     /* static */
};

/* A process for the code; turns fail if there cannot be one. */
void fsession_start(struct fsession *s);
/* It is told of the current turn, a call or a reload: files that a call brings, then a packet. */
void fsession_send(struct fsession *s);
void fsession_packet(struct fsession *s);
/* It ends. */
void fsession_stop(struct fsession *s, enum end_reason why);
/* The answer and what it did to the files are known. */
void fsession_answered(struct fsession *s);
/* There is no process any more, and nothing of it is beside the loop. */
void fsession_gone(struct fsession *s);

/* ---- time ---- */

/* From now on the session does nothing. */
void fsession_rest(struct fsession *s);
void fsession_deadline(struct fsession *s, uint64_t ms);
/* How much of the CPU was used when the current turn began; 0: there is no limit. */
uint64_t fsession_cpu_us(const struct fsession *s);
/* First a word, then force. */
void fsession_interrupt(struct fsession *s);
/* An event callback; user is the session. */
void fsession_on_timer(int fd, short what, void *user);
