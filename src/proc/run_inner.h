/* SPDX-License-Identifier: MIT */
/* A run from inside: what run.c and run_live.c share; nobody else's business. */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/frame.h"
#include "core/port_run.h"
#include "proc/pump.h"
#include "wire/wire.h"

enum run_state { RUN_RUNNING, RUN_STOPPING, RUN_DRAINING, RUN_SCANNING, RUN_DONE };

struct run_engine {
    struct event_base *base; /* borrowed */
    struct jail *jail;       /* borrowed */
    struct event sweep;
    unsigned runs;         /* that there are */
    LIST_HEAD(, run) gone; /* owned: nobody else knows them any more */
    struct pump_scratch scratch;
    struct pump_scratch aside; /* of output that is read while a frame is in the other one */
    struct {
        struct init_msg msg;
        char name[INIT_NAME_MAX + 1];
    } ctl; /* the message being looked at */
};

struct run {
    struct run_engine *engine; /* borrowed */
    LIST_ENTRY(run) gone;
    struct run_events events;
    struct run_result *result; /* borrowed */
    struct limits limits;
    enum run_state state;
    enum end_reason stop_reason; /* END_EXIT: nobody asked for an end */
    int kills;                   /* how far the escalation went */
    bool ready;                  /* init is known to be there */
    uint64_t start_ms;           /* beside the wall time, until it is */
    bool scan;                   /* there is something to look at */
    bool early;                  /* the ends of the pipes are not waited for */
    bool scan_wanted;            /* there was something to look at */
    bool lazy;                   /* files were lent */
    bool scan_all;               /* of the plan */
    bool compiles;               /* and may tell what to */
    bool heard;                  /* a frame of it */
    bool placed;                 /* its files are known to have come: what lacks was removed */
    bool leaves;                 /* its own word that it has ended is enough */
    bool left;                   /* it gave it */
    bool paused;
    bool frames_paused;
    bool looking; /* the workspace is scanned while the program lives */
    bool words_awaited;
    unsigned usage_asked;   /* in vain, since it has exited */
    struct init_msg exited; /* how, meanwhile */
    struct sandbox sandbox; /* owned */
    struct feed job_feed, in_feed;
    struct capture out, err;
    struct frame_reader frames;
    struct event ctl, job, wall, listen, timer, cpu;
};
