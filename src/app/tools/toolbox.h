/* SPDX-License-Identifier: MIT */
/*
 * Published tools: functions of source texts, kept until they are removed.
 *
 *   <state>/tools/<bundle>/<version>.json     records (function/bundle.h), the newest ones
 *
 * A bundle is defined again by a new version of it. Nothing of it changes until its record is on
 * disk. Calls that are under way go on with the version that they began with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "core/port_work.h"
#include "function/bundle.h"

struct app;
struct call;
struct code_journals;
struct function_order;
struct publication;
struct upstreams;

enum {
    TOOLBOX_BUNDLES_MAX = 32,
    TOOLBOX_VERSIONS = 20, /* of a bundle that are kept on disk */
    TOOLBOX_WAITING = 16,  /* publications under way; more are refused */
    TOOLBOX_PATH = 1200,   /* characters of the path of a record */
};

TAILQ_HEAD(bundle_list, bundle);
TAILQ_HEAD(publication_list, publication);

struct toolbox {
    struct app *app;            /* borrowed */
    struct bundle_list bundles; /* by name */
    size_t bundles_n, tools_n;
    struct publication_list active;
    size_t active_n;
    struct upstreams *upstreams;    /* owned: tools of others; NULL: none */
    struct code_journals *journals; /* owned: of runs of code that called tools */
    struct publication *storing;    /* one at a time: it decides its version before it writes */
};

/* Reads what there is; a record that cannot be read is left out, with a line in the log. */
must_check int toolbox_open(struct app *a, struct toolbox **ret, struct err *e);
void toolbox_close(struct toolbox *t); /* NULL is fine */

struct bundle *toolbox_bundle(const struct toolbox *t, const char *name, size_t n);
struct published *toolbox_tool(const struct toolbox *t, const char *name, size_t n);
/* All of them by name; ends with NULL. To be freed; NULL: out of memory. */
struct published **toolbox_sorted(const struct toolbox *t);

/* ---- changing ---- */

/* Is there a tool of ours with that name? Such a name cannot be published. */
typedef bool toolbox_reserved_fn(const struct app *a, const char *name);

/* Exactly once, later, from the loop. `made`: there was none before. why: NULL, or why not. b: what
 * there is now; NULL after a failure and a removal. */
typedef void toolbox_done_fn(void *user, const struct bundle *b, bool made, const struct err *why);

/* What is asked for; nothing is needed after the call. */
struct publish_order {
    struct bytes bundle, language, code, prefix;
    struct shape_strings include, exclude; /* names of functions, in `value` */
    struct shape_strings env;
    int64_t timeout_s, memory_mb; /* 0: the default */
    int64_t expected_version;     /* below 0: whatever there is; 0: there must be none */
    const char *by;               /* static: the face it came by */
    toolbox_reserved_fn *reserved;
    toolbox_done_fn *done;
    void *user;
};
must_check int toolbox_publish(struct toolbox *t, const struct publish_order *o,
                               struct publication **ret, struct err *e);

struct change_order {
    struct bytes bundle;
    int64_t version; /* of a restoration */
    const char *by;
    toolbox_reserved_fn *reserved;
    toolbox_done_fn *done;
    void *user;
};
/* An earlier version becomes the newest one. */
must_check int toolbox_restore(struct toolbox *t, const struct change_order *o,
                               struct publication **ret, struct err *e);
/* All versions, with what is on disk. */
must_check int toolbox_remove(struct toolbox *t, const struct change_order *o,
                              struct publication **ret, struct err *e);
/* Nobody wants to hear of it any more; it goes on. */
void publication_leave(struct publication *p);

/* Reads an earlier version, off the loop. */
typedef void toolbox_look_fn(void *user, const struct bundle *b, const struct err *why);
must_check int toolbox_look(struct toolbox *t, struct bytes bundle, int64_t version,
                            toolbox_look_fn *done, void *user, struct err *e);

/* ---- calling ---- */

/* As app_call(), with the text of the order made here. It ends after most_s; 0: after the time of
 * its bundle. */
must_check int published_call(struct toolbox *t, const struct published_order *p,
                              const struct function_order *o, struct call **ret, struct err *e);
