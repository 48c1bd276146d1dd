/* SPDX-License-Identifier: MIT */
/*
 * Looking at an attacking process from outside, with the eyes of the host's kernel. It is found by
 * the mark: its name, or one of its arguments.
 */
#pragma once

#include <sys/types.h>

#include "core/limits.h"
#include "selftest/attack.h"
#include "selftest/witness.h"

enum { HOLD_TEXT = 32768 };

struct hold {
    const char *mark; /* borrowed */
    enum attack_eye eye;
    long n;                            /* EYE_FD, EYE_CALL: which; -1: none */
    pid_t victim;                      /* goes by the mark, too, and is no attacker */
    const struct limits *limits;       /* borrowed */
    uint64_t age_ms;                   /* since it was started */
    const struct witness_usual *usual; /* borrowed */
    bool *ret_weak;                    /* borrowed; set: only the second best could be looked at */
};

/* Is something there that must not be? Says what. */
bool hold_look(const struct hold *h, char *out, size_t max);

/* ---- hold_call.c ---- */

/* What the kernel answers to that call of the process. -1: this host lets nobody see it. */
must_check int hold_call(long pid, long nr, long *ret_answer);

/* ---- hold_count.c: what all of them have together ---- */

struct hold_count {
    uint64_t memory, queues, disk, tmp, shm, files, tasks, open, cpu_ms;
    unsigned processes;
};

void hold_count_add(const struct hold *h, long pid, struct hold_count *c);
bool hold_count_is_over(const struct hold *h, const struct hold_count *c, char *out, size_t max);

/* ---- hold_treatment.c: how the kernel treats it ---- */

bool look_at_scheduling(const struct hold *h, long pid, char *out, size_t max);
bool look_at_slowness(const struct hold *h, long pid, char *out, size_t max);
bool look_at_score(const struct hold *h, long pid, char *out, size_t max);
bool look_at_settings(const struct hold *h, long pid, char *out, size_t max);

/* ---- hold.c, for all ---- */

size_t hold_read(long pid, const char *name, char out[HOLD_TEXT]);
/* A number of /proc/PID/stat; 0 is the state, behind the name. */
long hold_stat(long pid, int index);
long hold_parent(long pid);
