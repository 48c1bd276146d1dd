/* SPDX-License-Identifier: MIT */
/*
 * The dependencies of a session, or of a set (sets.h): packages of Python, and of npm in a set,
 * installed as a whole and replaced as a whole.
 *
 *   dependencies_sync ─▶ ticket ─▶ install ─▶ copy ─▶ publish ─▶ done
 *                     (one at a time    │  in a sandbox of its own, in memory; the only way
 *                      for each session) │  out is a door (net/egress_doors.h) to a few hosts
 *                                       └─ failed: what the session had stays
 *
 * Building a package runs its code. So pip runs where tenants run, sees nothing of the host, and
 * writes into a tmpfs that bounds it. What it leaves is copied file by file to the shelf
 * (store/shelf.h), from which later runs of the session mount it read-only. Runs under way keep
 * what they had.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/package.h"
#include "core/plan.h"
#include "core/result.h"

struct app;
struct dependency_sync; /* one change under way */

enum {
    DEPENDENCY_DISTS_MAX = 5000,            /* installed, and told of */
    DEPENDENCIES_MAX = 200,                 /* requirements in one request */
    DEPENDENCY_ERROR_MAX = 16 * 1024,       /* words about a failure */
    DEPENDENCY_ISO_MAX = CLOCK_ISO_MAX + 8, /* with an offset instead of Z */
};

enum dependency_status {
    DEPENDENCY_OK,
    DEPENDENCY_NOT_INSTALLED, /* the installer, the index or a limit said no */
    DEPENDENCY_FAILED,        /* we did */
};

struct dependency_answer {
    enum dependency_status status;
    const struct package_dist *dists; /* everything that is installed, by lower-case name */
    size_t dists_n;
    uint64_t files, bytes;
    char started_at[DEPENDENCY_ISO_MAX], completed_at[DEPENDENCY_ISO_MAX];
    struct bytes error; /* "" when it worked; no secret of the index is in it */
};

/* Once, from the loop, never from inside dependencies_sync(). Valid until it returns. */
typedef void dependency_done_fn(void *user, const struct dependency_answer *answer);

/* Nothing of it is needed after the call. */
struct dependency_order {
    const char *session_id; /* NULL: for a set, */
    const char *set;        /* which is kept under that name */
    const char *request_id;
    struct bytes index;    /* of Python */
    struct bytes registry; /* of npm */
    const struct bytes *specs, *npm;
    size_t specs_n, npm_n;
    dependency_done_fn *done;
    void *user;
};

/* May all of these be handed to an installer? ERR_CALLER names the first that may not. */
must_check int dependencies_check(const struct bytes *specs, size_t specs_n,
                                  const struct bytes *npm, size_t npm_n, struct err *e);
/* Why nothing can be installed where there is no shelf. Returns -1. */
int dependencies_refuse(const struct app *a, struct err *e);
/* Queues or starts it: 0, or -1 when something is refused (ERR_CALLER, ERR_DENIED), nothing more
 * can be queued (ERR_BUSY), or this host cannot do it (ERR_HOST). */
must_check int dependencies_sync(struct app *a, const struct dependency_order *o,
                                 struct dependency_sync **ret, struct err *e);
/* How far it is: bytes loaded, files kept, and the end of what the installer has said. */
struct dependency_progress {
    uint64_t loaded, files;
    struct bytes said;
};
void dependencies_progress(const struct dependency_sync *s, struct dependency_progress *ret);
/* Nobody wants to know any more: done() does not come, but it goes on. Not from inside done(). */
void dependencies_leave(struct dependency_sync *s);

/* ---- for the app ---- */

enum { DEPENDENCY_HOSTS_MAX = 32 };

TAILQ_HEAD(dependency_syncs, dependency_sync);
struct dependencies {
    struct dependency_syncs active;
    struct package_host indexes[DEPENDENCY_HOSTS_MAX]; /* none: any */
    struct package_host hosts[DEPENDENCY_HOSTS_MAX];
    size_t indexes_n, hosts_n;
};
void dependencies_init(struct dependencies *d);
/* Reads the configuration and opens the shelf, where the jail can mount it. */
must_check int dependencies_open(struct app *a, struct err *e);
void dependencies_stop_all(struct dependencies *d, enum end_reason why);
void dependencies_done(struct dependencies *d);
