/* SPDX-License-Identifier: MIT */
/*
 * Sets of packages: lists of Python and npm packages, installed once and mounted by whatever asks
 * for the same lists again.
 *
 *   package_sets_want ─▶ INSTALLING ─▶ READY ─── mounted by runs and sandboxes
 *                            └───────▶ FAILED ─── asked for again: INSTALLING
 *
 * A set is found by its content, the two lists. It may have a name, and then it is kept across a
 * restart; one without a name gives way when PACKAGE_SETS_MAX is reached, and is forgotten at a
 * restart. What is mounted is held (store/shelf.h): a set that is held is not removed.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#include "app/packages/dependencies.h"
#include "base/sha256.h"

struct app;
struct package_set;
struct shelf_item;

enum { PACKAGE_SET_NAME_MAX = 128, PACKAGE_SET_OWNER_MAX = SHA256_HEX + 2 };

enum package_set_state {
    PACKAGE_SET_INSTALLING,
    PACKAGE_SET_READY,
    PACKAGE_SET_FAILED,
    PACKAGE_SET_STATE_COUNT,
};
const char *package_set_state_name(enum package_set_state s);

/* Waits for the end of an installation. Owned by whatever waits. */
struct package_waiter {
    void (*done)(void *user, struct package_set *s); /* once, from the loop */
    void *user;
    LIST_ENTRY(package_waiter) link;
};

struct package_set {
    TAILQ_ENTRY(package_set) link;
    struct app *app;                     /* borrowed */
    char name[PACKAGE_SET_NAME_MAX + 1]; /* "": none */
    char owner[PACKAGE_SET_OWNER_MAX];   /* its name on the shelf, made from its content */
    char created_at[CLOCK_ISO_MAX];
    struct exec_var *python, *npm; /* owned, with their texts: `value` is used */
    size_t python_n, npm_n;
    enum package_set_state state;
    bool failed_here;             /* the failure was ours, not that of the lists */
    struct dependency_sync *sync; /* while it is installed */
    uint64_t began_us, used_us;
    uint64_t files, bytes;
    struct buf installed; /* JSON: a list of {name, version, kind} */
    struct buf error;     /* of a failure: words, and the installer's last ones */
    LIST_HEAD(package_waiters, package_waiter) waiters;
};

struct package_record; /* what is to be written to disk */
TAILQ_HEAD(package_set_list, package_set);
TAILQ_HEAD(package_records, package_record);

struct package_sets {
    struct package_set_list list;
    struct package_records records; /* the first is being written */
};
void package_sets_init(struct package_sets *all);

struct package_want {
    const char *name; /* "" : none */
    const struct exec_var *python, *npm;
    size_t python_n, npm_n;
    const char *request_id;
};

/* Reads the sets that have a name. */
must_check int package_sets_open(struct app *a, struct err *e);
void package_sets_done(struct package_sets *all);

/* The set of these lists, begun if it is not there or has failed. A name that another set has goes
 * over to this one. ERR_CALLER, ERR_DENIED, ERR_BUSY, ERR_HOST. */
must_check int package_sets_want(struct app *a, const struct package_want *w,
                                 struct package_set **ret, struct err *e);
/* By name; ERR_ABSENT. */
must_check int package_sets_find(struct app *a, const char *name, struct package_set **ret,
                                 struct err *e);
/* ERR_BUSY: it is in use, or being installed. */
must_check int package_sets_remove(struct package_set *s, struct err *e);
void package_set_wait(struct package_set *s, struct package_waiter *w);
void package_set_leave(struct package_waiter *w);
/* One that is READY, to be mounted: held until released; NULL: no memory. */
struct shelf_item *package_set_hold(struct package_set *s);
void package_set_release(struct shelf_item *i); /* NULL is fine */
size_t package_set_json_max(const struct package_set *s);
struct jw;
void package_set_json(struct package_set *s, struct jw *w);
