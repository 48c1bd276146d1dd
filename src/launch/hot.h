/* SPDX-License-Identifier: MIT */
/*
 * The memory of a process that is copied a lot, by what its copies do with it.
 *
 * A fork shares memory until somebody writes, and each first write to a page is a
 * trap into the kernel that costs three times what copying the page does. Pages
 * that are pinned, as for a device that might write to them, are never shared: a
 * fork copies them at once. And of files it copies no page tables, so that every
 * copy faults the code of its libraries in again, unless something in such a
 * mapping is private already.
 *
 * So a trial copy shows what is written to and what is read; the one is pinned by
 * whoever makes copies, the other made part of what is copied. Where the kernel
 * refuses, copies work as always, only slower.
 */
#pragma once

#include <stddef.h>
#include <sys/uio.h>

enum { HOT_RUNS_MAX = 512 };

struct hot_runs {
    struct iovec of[HOT_RUNS_MAX]; /* whole pages, in the order of addresses */
    size_t n;
};

struct hot {
    struct hot_runs written, read; /* the latter of files only */
};

/* Runs `trial` in a copy of this process, learns what it did, and takes what it read of files into
 * its own page tables. */
void hot_settle(struct hot *h, void (*trial)(void *user), void *user);
/* From now on copies of this process get their own of what they write to. */
void hot_pin(const struct hot *h);
