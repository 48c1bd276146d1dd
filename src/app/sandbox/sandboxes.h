/* SPDX-License-Identifier: MIT */
/*
 * Persistent sandboxes: a default one, made on first use, and any number of others
 * by name. Files, processes, environment and the bound port live until the sandbox
 * is deleted, has been idle for too long, or dies.
 *
 *   running ◀──pause, resume──▶ paused
 *      └──────deleted, idle, end of life, died──▶ ending ──no activity──▶ freed
 *
 * Its life ends when it has been idle for too long, or at a fixed time, whichever is first; at that
 * time it may be paused instead. A paused sandbox keeps its memory and its processes, which use no
 * processor time; its life does not run out.
 *
 * Each request and each background process is an activity: the sandbox stays in memory
 * until the last is gone, and one with an activity is not idle. An ending sandbox
 * cannot be found any more; its activities fail by themselves, because everything
 * inside is dead.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "core/admission.h"
#include "core/exec_spec.h"
#include "core/limits.h"
#include "core/port_files.h"
#include "core/port_net.h"
#include "core/result.h"

struct app;
struct event;
struct expose;
struct jail;
struct context;
struct network;
struct process;
struct run_engine;
struct shelf_item;
struct sandboxes;

enum {
    PERSISTENT_ID_MAX = 40,
    PERSISTENT_NAME_MAX = 128,
    PERSISTENT_PORT_MAX = 256,
    ACCESS_TOKEN = 40,                     /* characters of each token */
    PERSISTENT_TEMPLATE_MAX = 64,          /* of a template's name */
    PERSISTENT_PAIRS_MAX = 256,            /* of metadata */
    PERSISTENT_PAIRS_BYTES_MAX = 16 << 10, /* of their names and values: lists write them all */
    SANDBOXES_PATH_MAX = 4096,
};

/* Something that goes on in a sandbox; embedded in its struct. */
struct activity {
    struct persistent *home; /* borrowed; NULL: not registered */
    TAILQ_ENTRY(activity) link;
    /* The daemon ends: frees everything, without an answer. */
    void (*drop)(struct activity *a);
};
TAILQ_HEAD(activities, activity);
TAILQ_HEAD(process_list, process);
TAILQ_HEAD(context_list, context);
TAILQ_HEAD(watcher_list, watcher);

/*
 * Where its requests run. Commands and file requests wait apart: a command takes two processes of
 * the sandbox's limit, its helper and its program, a file request one; a share of them is for file
 * requests alone, so that files can be read while every place for commands is taken. Watches have
 * a share of their own and never wait.
 */
struct inside {
    struct jail *jail;         /* owned: the sandbox (jail/inner.h) */
    struct run_engine *engine; /* owned */
    struct admission commands, requests, watches;
    struct file_home files;
    struct file_home watched; /* for what is watched: a helper each, for as long as it lasts */
    struct watcher_list watchers;
    size_t watchers_n; /* those that have a helper */
};

/* What opens one sandbox and nothing else. */
struct access {
    char token[ACCESS_TOKEN + 1];   /* files, commands, code */
    char traffic[ACCESS_TOKEN + 1]; /* its ports, where they are not public */
    bool private_ports;
};

enum persistent_state {
    PERSISTENT_RUNNING,
    PERSISTENT_PAUSED,
    PERSISTENT_ENDING, /* not found any more */
    PERSISTENT_STATE_COUNT,
};
const char *persistent_state_name(enum persistent_state s); /* "running", ... */

/* When it began and when it ends. *_us are monotonic. */
struct life {
    char created_at[CLOCK_ISO_MAX];
    int64_t created_ms; /* since 1970, for people */
    uint64_t serial;    /* in the order they were made; never used again */
    uint64_t used_us;
    uint64_t idle_ms;  /* 0: it may be idle for ever */
    uint64_t ends_us;  /* whatever happens in it; 0: at no fixed time */
    int64_t ends_ms;   /* since 1970, for people */
    uint64_t span_ms;  /* of the fixed time as asked for at first: again after being woken up */
    bool pause_at_end; /* paused then, instead of ended */
    bool wakes;        /* a request resumes it */
};

/* What its owner said about it. */
struct label {
    char name[PERSISTENT_NAME_MAX + 1];
    char template[PERSISTENT_TEMPLATE_MAX + 1];
    struct pair {
        char *key, *value; /* owned */
    } * pairs;             /* owned: metadata */
    size_t pairs_n;
    bool own_home; /* commands begin in /home/user, not in /workspace */
};

struct persistent {
    struct sandboxes *all; /* borrowed */
    TAILQ_ENTRY(persistent) link;
    char id[PERSISTENT_ID_MAX + 1];
    struct label label;
    struct life life;
    enum persistent_state state; /* only move() writes it */
    struct access access;
    struct limits limits;
    char **env; /* owned: NAME=value, NULL-terminated */
    size_t env_n;
    struct inside inside;
    struct jail *jail;           /* borrowed: where it was made */
    struct shelf_item *packages; /* held; NULL: none */
    struct {
        enum net_mode mode;
        struct network *of; /* owned; NULL: it has none */
    } network;
    char port[PERSISTENT_PORT_MAX + 1]; /* bound; "": none */
    struct activities activities;
    struct {
        struct process_list list; /* in the order they were started */
        size_t n;
        uint64_t log_bytes, ring_bytes; /* of all of them: lines, rings (proc/bytering.h) */
    } processes;
    struct context_list contexts;
    size_t contexts_n;
    struct {
        uint64_t at_us;
        int64_t cpu_us;
    } sampled;             /* when its use of the processor was asked for last */
    struct expose *expose; /* owned: its own proxy, if it ever had a port bound */
    struct event *timer;   /* owned */
    struct {
        void (*fn)(void *user); /* NULL: nothing */
        void *user;
    } dead; /* called once everything inside is */
};
TAILQ_HEAD(persistent_list, persistent);

struct sandboxes {
    struct app *app; /* borrowed */
    struct persistent_list list, ending;
    size_t n;
    uint64_t serial;               /* of the last one that was made */
    struct persistent *standard;   /* the default one; NULL: not made yet */
    char cwd[SANDBOXES_PATH_MAX];  /* of the daemon, */
    char home[SANDBOXES_PATH_MAX]; /* and its user's */
};

must_check int sandboxes_open(struct app *a, struct sandboxes **ret, struct err *e);
void sandboxes_close(struct sandboxes *s); /* NULL is fine */

struct persistent_spec {
    const char *name;             /* "": its id */
    const char *template;         /* NULL or "": none */
    const struct exec_var *pairs; /* metadata */
    size_t pairs_n;
    uint64_t span_ms; /* until its end; 0: at no fixed time */
    bool pause_at_end, wakes;
    bool own_home, private_ports;
    const char *isolation; /* name of a jail; NULL or "": the default */
    struct limits limits;
    uint64_t idle_ms; /* 0: never too long */
    enum net_mode network;
    const struct egress_policy *policy; /* of NET_GATE */
    struct shelf_item *packages;        /* taken if it succeeds; NULL: none */
    const struct exec_var *env;
    size_t env_n;
};

/* Limits of a persistent sandbox as configured. */
struct limits sandboxes_limits(const struct app *a);
must_check int sandboxes_create(struct sandboxes *s, const struct persistent_spec *spec,
                                struct persistent **ret, struct err *e);
/* By id or name; "default" is made when it is not there. ERR_ABSENT. */
must_check int sandboxes_find(struct sandboxes *s, const char *id, struct persistent **ret,
                              struct err *e);
/* The same for something that is to be done in it: one that is paused is woken, or refused. */
must_check int sandboxes_find_awake(struct sandboxes *s, const char *id, struct persistent **ret,
                                    struct err *e);

/* Which sandboxes, and how many of them. */
struct sandboxes_query {
    const struct exec_var *pairs; /* every one of them in the metadata */
    size_t pairs_n;
    unsigned states;      /* BIT(enum persistent_state), 0: all */
    int64_t since_ms;     /* made then or later */
    const char *template; /* NULL: any */
    bool oldest_first;
    uint64_t after; /* the serial of the last one of the page before; 0: there was none */
};
/* Up to `max` of them, in order. *ret_more: there are more behind the last. */
size_t sandboxes_select(const struct sandboxes *s, const struct sandboxes_query *q, size_t max,
                        const struct persistent **ret, bool *ret_more);
/* By its id alone; NULL: there is none. */
struct persistent *sandboxes_get(struct sandboxes *s, const char *id);
/* Everything inside dies; it is not found any more. dead() comes when everything is. */
typedef void persistent_dead_fn(void *user);
void sandboxes_delete(struct persistent *p, persistent_dead_fn *dead, void *user);

/* Its life ends span_ms from now, or at no fixed time (0). */
void persistent_set_end(struct persistent *p, uint64_t span_ms);
/* The same, if that is later than it would end anyhow. */
void persistent_lengthen(struct persistent *p, uint64_t span_ms);
/* Stops all its processes, which keep their memory; those who wait for them are not answered until
 * it is resumed. */
must_check int persistent_pause(struct persistent *p, struct err *e);
must_check int persistent_resume(struct persistent *p, struct err *e);
/* A request wants something done in it: resumes it if it is paused and may be woken. False: it is
 * paused, or ends. */
bool persistent_wake(struct persistent *p);
/* Another policy, or none (NULL). 1: fn comes when nothing is allowed by the older one any more; 0:
 * it is so now; -1: ERR_CALLER, ERR_BUSY (another change is under way, or no more doors). */
must_check int persistent_set_network(struct persistent *p, const struct egress_policy *policy,
                                      void (*fn)(void *user), void *user, struct err *e);
/* Do its ports need the traffic token? Where its loopback is the host's they always do: else all
 * that listens on the host would be open to strangers. */
bool persistent_ports_are_private(const struct persistent *p);
/* How long it may be idle from now on; 0: for ever. */
void persistent_set_idle(struct persistent *p, uint64_t idle_ms);
/* The value of a pair of its metadata, or NULL. */
const char *persistent_pair(const struct persistent *p, const char *key);
/* Another value for a pair that there is; out of memory: the old one stays. */
void persistent_set_pair(struct persistent *p, const char *key, const char *value);

/* What its control groups say. False: not known yet, shortly after it was made. */
bool persistent_usage(const struct persistent *p, struct usage *ret);
/* Which system directories can be changed inside: bit 0 /usr, 1 /usr/local, 2 /etc. */
unsigned persistent_writable(const struct persistent *p);

/* Where commands and relative paths begin, and HOME: /workspace or /home/user, or the daemon's own
 * if the sandbox's files are the host's. */
const char *persistent_cwd(const struct persistent *p);
const char *persistent_home(const struct persistent *p);

void activity_begin(struct persistent *p, struct activity *a, void (*drop)(struct activity *a));
void activity_end(
    struct activity *a); /* fine when it was never begun; the sandbox may be gone then */
