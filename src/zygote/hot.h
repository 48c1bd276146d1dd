/* SPDX-License-Identifier: MIT */
/*
 * The memory that every copy of a process writes to, copied with it.
 *
 * A fork shares memory until somebody writes, and each first write to a page is a
 * trap into the kernel that costs three times what copying the page does. Pages
 * that are pinned, as for a device that might write to them, are never shared: a
 * fork copies them at once. So a trial copy shows which ones these are, and the keeper pins them
 * before it forks. Where the kernel refuses, copies work as always, only slower.
 *
 * Speedup `pinned-pages` of -Dspeedups. Without it a trivial run of JavaScript takes 12 % more
 * CPU, one of Python 2 %.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/cleanup.h"

enum { HOT_RUNS_MAX = 512 };

struct hot {
    struct iovec runs[HOT_RUNS_MAX]; /* whole pages, in the order of addresses */
    size_t n;
    struct hot *seen; /* what a trial tells; memory that it shares with us */
};

/* 0: a child ended, with that status, and is reaped. -ETIMEDOUT: it lives. */
must_check int hot_await(pid_t pid, int ms, int *ret_status);

/* Makes a copy of this process, with `copy` or fork(), in which it returns true: that is to do what
 * every copy does, and to end with hot_tell(). Returns false when it has, or could not. */
must_check bool hot_try(struct hot *h, pid_t (*copy)(void));
__attribute__((noreturn)) void hot_tell(const struct hot *h);

/* A huge page of which some is pinned is taken apart, and each copy then has an entry for every
 * page of it. Those that hold nothing are given back, and need none. */
void hot_thin(const struct hot *h);

/* From now on copies of this process get their own of what they write to. */
void hot_pin(const struct hot *h);
