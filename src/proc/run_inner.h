/* SPDX-License-Identifier: MIT */
/* A run from inside: what run.c and run_live.c share. */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "core/frame.h"
#include "core/port_net.h"
#include "core/port_run.h"
#include "proc/pump.h"
#include "wire/wire.h"

enum run_state {
    RUN_STARTING,   /* the sandbox is being built: init has not said that it is ready */
    RUN_RUNNING,    /* the program runs */
    RUN_STOPPING,   /* init was asked to kill everything */
    RUN_KILLING,    /* the jail was */
    RUN_LINGERING,  /* in a persistent sandbox: the program has exited, a process that it started
                       has one of its streams open */
    RUN_COUNTING,   /* the program has exited; what it used is not known yet */
    RUN_DRAINING,   /* everything inside is dead; the pipes are read to their ends */
    RUN_SCANNING,   /* init lists the files of the workspace */
    RUN_EXPLAINING, /* the text of a failure is on its way from the launcher */
    RUN_DONE,
    RUN_STATE_COUNT,
};
/* The program lives, and no stop was asked for. */
#define RUN_LIVE (BIT(RUN_STARTING) | BIT(RUN_RUNNING))

/* What is being looked at; nothing of it outlives a callback. */
struct run_room {
    struct pump_scratch scratch;
    struct pump_scratch aside; /* of output that is read while a frame is in the other one */
    struct {
        struct init_msg msg;
        char name[INIT_NAME_MAX + 1];
    } ctl;
};

struct run_engine {
    struct event_base *base; /* borrowed */
    struct jail *jail;       /* borrowed */
    struct event after;
    bool answered; /* run_after_all() is at work */
    TAILQ_HEAD(, run_after) waiting;
    unsigned runs;         /* that there are */
    struct run_room *room; /* owned, or borrowed from the engine that this one is beside */
    bool beside;
};

struct run {
    struct run_engine *engine; /* borrowed */
    struct run_after after;
    struct run_events events;
    struct run_result *result; /* borrowed */
    struct limits limits;
    enum run_state state;        /* written by run_move() alone */
    enum end_reason stop_reason; /* END_EXIT: no stop was asked for */
    uint64_t start_ms;           /* beside the wall time, while it is STARTING */
    struct {
        bool lazy;     /* files are lent */
        bool scan_all; /* the workspace is listed whatever the reason of the end */
        bool compiles; /* a compiled form of its code is wanted */
        bool own_exit; /* its own frame that it has exited is enough, init need not be heard */
    } plan;            /* never changed */
    struct {
        bool scan;   /* there are some to list */
        bool placed; /* its files are known to have come: what lacks was removed */
        bool live;   /* they are listed while the program lives */
        bool paused;
    } files; /* of the workspace */
    struct {
        struct frame_reader reader;
        bool any; /* the program has sent one */
        bool paused;
    } frames;
    struct {
        bool self;            /* the program's own frame said so */
        bool told;            /* exited() was called */
        bool pipes_final;     /* what is in the pipes now is all: their ends are not waited for */
        unsigned usage_asked; /* times, while COUNTING */
        struct init_msg msg;  /* how, while COUNTING */
    } exit;
    bool output_paused;
    struct sandbox sandbox; /* owned */
    struct {
        struct net_gate gate;
        size_t awaited; /* of its listeners */
    } net;
    struct feed job_feed, in_feed;
    struct capture out, err;
    struct {
        struct event ctl, job, wall, output, timer, cpu;
    } ev;
};

static inline bool run_is(const struct run *r, unsigned states)
{
    return states & BIT(r->state);
}
