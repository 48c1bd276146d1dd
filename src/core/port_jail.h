/* SPDX-License-Identifier: MIT */
/*
 * Port: somewhere a plan can run safely.
 *
 * A jail hands out sandboxes whose pid 1 is our init. Whatever the jail, the
 * daemon holds the same descriptors, so everything above this line (pumps,
 * limits, results) is written once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "core/plan.h"
#include "core/result.h"
#include "core/traits.h"

const char *jail_trait_name(unsigned index);          /* "filesystem", "pid", ... */
const char *jail_template_name(enum plan_template t); /* "exec", "wasm-php", ... */

struct jail; /* one opened adapter */

/* The daemon's ends of one sandbox. All owned by the holder of the struct; -1 when closed. */
struct sandbox {
    uint64_t id;
    int ctl; /* SEQPACKET to init: wire/wire.h, struct init_msg */
    int job; /* STREAM to the first process: job, then frames both ways */
    int in, out, err;
    enum plan_template template; /* what it really is */
    bool warm;                   /* came from the pool */
    bool marked;                 /* what it had used when it was taken is known */
    bool lives_on;               /* a helper of a persistent sandbox: what its program started may
                                    outlive it (jail/inner.h) */
    bool given_up;               /* then: its request is not wanted any more, it is to end */
    unsigned writable;           /* persistent and warm: set of OVERLAY_* that READY told */
    unsigned start_ms;           /* then: it must say READY by then */
    void *adapter;               /* the jail's own */
};
#define SANDBOX_NONE ((struct sandbox){.ctl = -1, .job = -1, .in = -1, .out = -1, .err = -1})

/* What is needed to choose or build a sandbox. */
struct sandbox_spec {
    enum plan_template template;
    const struct limits *limits;
    const char *workspace;    /* NULL: a fresh tmpfs; else the name of a kept workspace */
    bool persistent;          /* no first process; helpers on request (wire/wire.h) */
    bool control_only;        /* inside a persistent one: no program, only a control socket */
    bool host_network;        /* persistent only: the host's network instead of one of its own */
    const char *dirs;         /* plan.h; NULL: none */
    const char *dependencies; /* plan.h; NULL: none */
    const struct plan_lazy *lazy; /* plan.h; NULL: none. Only where the jail can do it */
    uint32_t terminal;            /* plan.h; only inside a persistent one */
};

/* Can this host do it, and with which traits? Says why not. Never falls back to something weaker.
 */
typedef int jail_probe_fn(struct jail *j, unsigned *ret_traits, struct err *e);
/* A sandbox, warm or being made; a job may be written to it at once. Fails or succeeds at once. */
typedef int jail_take_fn(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret,
                         struct err *e);
/* What was used since take(); how often processes were denied only if that is asked for. False: it
 * is not known yet, but will be in a moment. */
typedef bool jail_usage_fn(struct jail *j, const struct sandbox *s, bool denied, struct usage *ret);
/* Is there nobody inside but one process, with the threads that its interpreter has? False: not
 * known, too. */
typedef bool jail_alone_fn(struct jail *j, const struct sandbox *s);
/* Kills everything inside. Idempotent; cannot fail; end of file on ctl is the fact. */
typedef void jail_kill_fn(struct jail *j, const struct sandbox *s);
/* Persistent ones: none of its processes gets any processor time, or they go on. */
typedef int jail_freeze_fn(struct jail *j, const struct sandbox *s, bool frozen, struct err *e);
/* Lets go: closes all descriptors; whatever still lives inside dies. */
typedef void jail_release_fn(struct jail *j, struct sandbox *s);
/* Why did a sandbox die on its own? Words for the caller, or "". */
typedef const char *jail_failure_fn(struct jail *j, const struct sandbox *s);

/* What is asked of a kept workspace: how large it is, or to remove it. */
struct workspace_ask {
    const char *name;              /* as in the plan */
    uint64_t bytes_max, files_max; /* beyond that nobody counts on; 0: everything is counted */
    bool discard;
};
struct workspace_size {
    uint64_t bytes, files; /* one that is not there has none */
    uint64_t room, total;  /* bytes of its file system; 0: not known */
    int error;             /* errno: not everything was seen, or removed */
    bool too_deep;         /* the same, because directories are too deep in each other */
    bool gone;             /* there is none of that name, or no longer */
};
struct measuring;
/* Once, from the loop, unless cancelled. */
typedef void jail_measured_fn(void *user, const struct workspace_size *s);
typedef int jail_workspace_fn(struct jail *j, const struct workspace_ask *ask, jail_measured_fn *fn,
                              void *user, struct measuring **ret, struct err *e);
void measuring_cancel(struct measuring *m); /* NULL is fine */

/* How many sandboxes there are, for metrics. */
struct jail_pool_state {
    unsigned ready[TEMPLATE_COUNT], preparing[TEMPLATE_COUNT];
    unsigned sandboxes; /* alive in all */
};
typedef void jail_state_fn(const struct jail *j, struct jail_pool_state *ret);
/* Somebody will want this template: it is to be warmed, though nobody has asked for it yet. */
typedef void jail_ask_fn(struct jail *j, enum plan_template t);
/* Kills every sandbox and frees the adapter. */
typedef void jail_close_fn(struct jail *j);

struct jail_ops {
    const char *name;
    jail_probe_fn *probe;
    jail_take_fn *take;
    jail_usage_fn *usage;
    jail_alone_fn *alone;
    jail_kill_fn *kill;
    jail_freeze_fn *freeze; /* NULL: impossible */
    jail_release_fn *release;
    jail_failure_fn *failure;
    jail_state_fn *state;
    jail_workspace_fn *workspace; /* NULL: there are no kept workspaces */
    jail_ask_fn *ask;
    jail_close_fn *close;
};

enum { JAIL_VERSION_MAX = 32, JAIL_WORDS_MAX = 128 };

/* Adapters put this first in their own struct. */
struct jail {
    const struct jail_ops *ops;
    unsigned traits;
    bool freezes;                      /* sandboxes can be frozen */
    bool mounts_dependencies;          /* sandbox_spec.dependencies is understood */
    char lazy_refused[JAIL_WORDS_MAX]; /* why sandbox_spec.lazy is impossible; "": it is not */
    unsigned templates;                /* BIT of each that it can warm */
    unsigned warm, cannot_warm;        /* BIT of each that is, and that has failed to be */
    char version[JAIL_VERSION_MAX];    /* of whatever puts up the walls */
    /* Set by the owner: no sandbox can be made any more, ever. */
    void (*lost)(void *user);
    void *lost_user;
};

/* Every jail there is: may it be used, can it, and if not, why? */
struct jail_option {
    const char *name;
    bool allowed;      /* the configuration names it */
    struct jail *jail; /* owned; NULL: it cannot be used */
    struct err why;    /* in words, then */
};
enum { JAILS_MAX = 8 };
