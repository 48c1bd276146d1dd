/* SPDX-License-Identifier: MIT */
/*
 * Background processes of a persistent sandbox: started, listed, killed as a whole
 * tree, their output kept line by line (proc/logring.h). Finished ones stay, the
 * newest PROCESSES_KEPT of them.
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
#include "proc/logring.h"

enum { PROCESSES_KEPT = 1000, PROCESS_ID_MAX = 36 };

enum process_status {
    PROCESS_RUNNING,
    PROCESS_COMPLETED,
    PROCESS_FAILED,
    PROCESS_KILLED,
    PROCESS_STATUS_COUNT,
};
const char *process_status_name(enum process_status s);

struct process {
    TAILQ_ENTRY(process) link;
    struct activity activity; /* while it writes */
    struct persistent *home;  /* borrowed */
    char id[PROCESS_ID_MAX + 1];
    char *command; /* owned */
    size_t command_n;
    int pid; /* as seen inside */
    enum process_status status;
    int exit_code; /* -1: by a signal, or it still runs */
    char started_at[CLOCK_ISO_MAX], completed_at[CLOCK_ISO_MAX];
    struct command *run; /* owned; NULL: it has ended, and its streams have */
    struct lines lines[RUN_STREAMS];
    struct logring log;
    enum run_stream feeding; /* the stream whose lines come now */
    struct logtime now;
    void (*started)(void *user, struct process *p, const struct run_result *why);
    void *user;
};

/* p == NULL in the callback: it could not be started, `why` says why. Exactly once, later. */
typedef void process_started_fn(void *user, struct process *p, const struct run_result *why);

must_check int process_start(struct persistent *home, const struct command_order *o,
                             process_started_fn *started, void *user, enum run_fault *ret_at,
                             struct err *e);
struct process *process_find(const struct persistent *home, const char *id, size_t n);
/* ERR_CALLER when it does not run. */
must_check int process_kill(struct process *p, struct err *e);

/* For sandboxes.c: no more output will come; free all of them. */
void processes_end(struct persistent *home);
void processes_done(struct persistent *home);
