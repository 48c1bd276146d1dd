/* SPDX-License-Identifier: MIT */
/* Files of a session: mounts before its process, those that a call brings, what a call changed. */
#pragma once

#include <stdbool.h>

#include "app/function/collect.h"
#include "core/port_run.h"
#include "function/known.h"
#include "function/request.h"

struct fsession;
struct turn;

struct fsession_files {
    struct call_file *given; /* owned array: those of the request, without those of mounts */
    size_t given_n;
    struct known known;     /* as they were when they were last looked at */
    struct collect collect; /* while they are looked at */
    bool looking;           /* they are still coming */
    int64_t left_out;       /* of those that came last: how many were not shown */
    struct work work;       /* loads mounts */
    bool loading;           /* a worker has it */
    struct err error;       /* of that; kind ERR_NONE: none */
};

/* The mounts of a new session. */
must_check int fsession_mounts_parse(struct fsession *s, struct err *e);
/* Mounts as they are on the host now, beside the loop; then comes fsession_loaded(). */
void fsession_mounts_load(struct fsession *s);
void fsession_loaded(struct fsession *s,
                     const struct err *error); /* fsession_process.c; NULL: all well */
/* What may be written, and what is there, before a process begins. */
must_check int fsession_files_begin(struct fsession *s, struct err *e);
/* Are the files that a call brings ones that it may? */
must_check int fsession_files_check(struct fsession *s, struct turn *t, struct err *e);
/* Puts the next of them there; then comes fsession_packet(). */
void fsession_files_put(struct fsession *s);
/* Looks at the files; false: there is no need to. Then comes fsession_answered(). */
bool fsession_files_look(struct fsession *s);
void fsession_files_done(struct fsession *s);
/* Callbacks of the run. */
run_file_fn fsession_on_file;
run_scanned_fn fsession_on_scanned;
run_put_fn fsession_on_put;
