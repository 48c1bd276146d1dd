/* SPDX-License-Identifier: MIT */
/*
 * The daemon as one object: what main puts together and every use case is handed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "app/daemon/metrics.h"
#include "app/daemon/place.h"
#include "app/execution/execution.h"
#include "app/execution/registry.h"
#include "app/execution/session_disk.h"
#include "app/function/call.h"
#include "app/function/inspection.h"
#include "app/packages/dependencies.h"
#include "app/packages/sets.h"
#include "app/session/fsession.h"
#include "app/task.h"
#include "base/log.h"
#include "core/admission.h"
#include "core/config.h"
#include "core/port_jail.h"
#include "core/port_lang.h"
#include "core/port_report.h"
#include "core/port_run.h"
#include "core/port_store.h"
#include "core/port_work.h"

struct event;
struct event_base;
struct egress;
struct expose;
struct http_server;
struct sandboxes;
struct compile_cache;
struct kept_calls;
struct mcp_sessions;
struct shelf;
struct shelf_item;
struct survey;
struct toolbox;
struct webhooks;

enum { APP_VERSION_MAX = 32 }; /* a language's version */

/* Called when the last execution under way has ended. */
typedef void app_idle_fn(void *user);

struct app {
    struct config config;
    struct log log;
    struct event_base *base;               /* owned */
    struct jail_option jails[JAILS_MAX];   /* owned: every one there is */
    struct run_engine *engines[JAILS_MAX]; /* owned: of those that can be used */
    struct jail *jail;                     /* the default, one of these */
    struct run_engine *engine;             /* its */
    struct work_pool *work;                /* owned */
    struct store *store;                   /* owned */
    struct {
        const struct lang_ops *ops;
        const char *names[METRICS_LANGS_MAX]; /* by row; borrowed from the port */
        char versions[METRICS_LANGS_MAX][APP_VERSION_MAX];
        struct survey *survey; /* owned; NULL: not under way */
    } languages;
    struct report *report;     /* owned; NULL: nobody listens */
    struct webhooks *webhooks; /* owned; NULL: no host is allowed */
    struct http_server *http;  /* owned by main; for its counters only */
    struct admission admission;
    struct task_host tasks;
    struct registry registry;
    struct {
        struct kept_disk *disk; /* owned: finished executions; NULL: they are in memory only */
        struct event *expiry;   /* owned: forgets old ones */
    } retained;
    struct {
        struct calls calls;
        struct fsessions sessions;
        struct inspections inspections;
        struct code_cache *codes;       /* owned: what handlers were compiled to */
        struct compile_cache *programs; /* owned: what was compiled for calls */
        struct kept_calls *changes;     /* owned: of calls, that may still be written back */
    } functions;
    struct {
        struct sessions sessions;
        struct disk_looks looks; /* at them */
        int dir;                 /* until app_init() has listed it; -1: none */
        struct workspaces *all;  /* owned */
    } workspace;                 /* of sessions */
    struct {
        struct shelf *shelf; /* owned by main: of sessions; NULL: the jail mounts none */
        struct dependencies dependencies;
        struct package_sets sets;
    } packages;
    struct {
        struct egress *egress; /* owned by main: the way out; NULL: there is none */
        struct expose *expose; /* owned by main: the proxy into the default sandbox, or NULL */
    } ways;
    struct sandboxes *sandboxes; /* owned by main: persistent ones */
    struct {
        struct mcp_sessions *sessions; /* owned; NULL: not offered */
        struct toolbox *tools;         /* owned: published ones */
    } mcp_side;
    struct metrics metrics;
    struct {
        uint64_t started_us;
        unsigned in_the_way; /* of isolation, at the start (host_check.h) */
        bool stopping;       /* no new executions */
        bool ending;         /* what is on disk stays */
        app_idle_fn *idle;
        void *user;
    } life;
};

/* Needs config, log, base, jail, langs and the ports to be there. */
must_check int app_init(struct app *a, struct err *e);
/* Ends whatever still runs and frees everything that app_init() and the executions made. */
void app_done(struct app *a);

/* ---- use cases ---- */

struct exec_order {
    const struct exec_spec *spec;    /* execution_id "": made here. Not needed after the call */
    const char *session_id;          /* "": none */
    const char *isolation;           /* name of a jail; NULL or "": the default */
    const char *request_id;          /* for the log; "": none */
    uint64_t asked_us;               /* when the request was complete */
    const unsigned char *digest;     /* SHA-256 of what was asked for; NULL: never compared */
    struct execution_waiter *waiter; /* borrowed until done() or left; NULL: nobody waits */
    struct shelf_item *packages;     /* taken if it succeeds; NULL: those of the session */
    struct egress_policy *network;   /* taken if it succeeds; NULL: none */
    struct webhook *webhook;         /* taken if it succeeds; NULL: none */
    execution_write_fn *write;       /* its body */
};

/* Limits of an execution as configured; wall_ms from the request. */
struct limits app_limits(const struct app *a, uint64_t wall_ms);

/* An execution of that id, under way or kept; NULL: none. */
struct execution *app_find(const struct app *a, const char *id);
/* Was it asked for in exactly these words? */
bool execution_is_same(const struct execution *x, const unsigned char *digest);
/* Queues or starts it. *ret lives at least until the waiter is told or has left. */
must_check int app_execute(struct app *a, const struct exec_order *o, struct execution **ret,
                           struct err *e);
/* One more who waits, or (NULL) one who does not; it must not be done. */
void execution_join(struct execution *x, struct execution_waiter *w);
/* No longer waits. When nobody is left for whom it runs, it is cancelled. */
void execution_leave(struct execution *x, struct execution_waiter *w);
/* From now on, for one that is not done. */
void execution_follow(struct execution *x, struct execution_follower *f);
void execution_unfollow(struct execution_follower *f);
/* Ends it early; done() still comes, later. Nothing happens to a finished one. */
void execution_stop(struct execution *x, enum end_reason why);
/* Forgets one that is done. */
void execution_forget(struct execution *x);
/* Refuses new ones from now on. */
void app_refuse_new(struct app *a);
/* Ends those nobody waits for. */
void app_stop_unattended(struct app *a, enum end_reason why);
/* Ends all of them; idle() is called when the last one is gone, at once when there is none. */
void app_stop_all(struct app *a, enum end_reason why);
void app_on_idle(struct app *a, app_idle_fn *fn, void *user);
/* An execution has ended: was it the last one? */
void app_idle_check(struct app *a);
/* Something is kept from now on, and will be too old one day. */
void app_expiry_arm(struct app *a);
