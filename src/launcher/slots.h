/* SPDX-License-Identifier: MIT */
/*
 * The launcher's slots: places where one sandbox at a time can live.
 *
 *      CLOSED ──open──▶ IDLE ──PREPARE──▶ MAKING ──STARTED──▶ LIVE ──DEAD, clean──▶ IDLE
 *                                                               └─DEAD, anything odd─▶ CLOSED
 *
 * A slot that saw an out-of-memory kill, kept memory charged, or whose keeper
 * failed is closed and never used again; the next one gets a fresh index.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/plan_parts.h"
#include "walls/cgroup.h"
#include "walls/plain.h"
#include "wire/launch.h"
#include "zygote/zygote.h"

enum { SLOTS_MAX = 2048, UIDS_PER_SLOT = 64 };

enum slot_state { SLOT_CLOSED, SLOT_IDLE, SLOT_MAKING, SLOT_LIVE };

struct slot {
    enum slot_state state; /* changed by slot_become() alone */
    bool told;             /* the daemon has its usage descriptors */
    bool lost;             /* its keeper did not take a sandbox: it is gone */
    bool frozen;           /* its sandbox is to get no processor time */
    bool doomed;           /* its sandbox was to be killed before the keeper had made it */
    unsigned index;        /* unique for the life of the launcher */
    enum plan_template template;
    bool space; /* its keeper has a user namespace of its own, without the host's root */
    pid_t pid;  /* of the keeper; 0: a zygote's child */
    int keeper; /* owned: socket; -1 when closed */
    int pidfd;  /* owned: pid 1 of the sandbox in it, or -1 */
    uint64_t id;
    uint64_t idle_since; /* microseconds */
    unsigned generation; /* of the zygote behind it */
    unsigned maps;       /* that its user namespace was mapped with (zygote.h) */
    unsigned made;       /* sandboxes */
    int64_t oom_before;
    struct cgroup_slot cgroup;
};

/* What all slots are made from. */
struct slots {
    int mntns;                      /* owned: template root */
    const struct keeper_kind *kind; /* how sandboxes are made */
    struct keeper_host host;
    uid_t uid_base;
    char rooms[ROOMS_MAX]; /* "": sandboxes have roots of their own */
    struct cgroups cgroups;
    struct filters filters;
    int program; /* owned: sandbox-init, where there is no template that has it; or -1 */
    struct zygotes zygotes;

    int events; /* owned: epoll, tells which keeper has said something (slot_of()) */
    unsigned next_index;
    struct slot slot[SLOTS_MAX];
    size_t n;                   /* highest used + 1 */
    size_t cpus_n;              /* that keepers are spread over */
    size_t births_max;          /* slots_births() of each template at most */
    unsigned graves[SLOTS_MAX]; /* closed slots whose groups are still there */
    size_t graves_n;
    pid_t remover; /* process that removes these groups; 0: none */
};

/* Is it in use by a sandbox, or about to be? */
static inline bool slot_is_busy(const struct slot *s)
{
    return s->state == SLOT_MAKING || s->state == SLOT_LIVE;
}

/* The one writer of a slot's state. */
void slot_become(struct slot *s, enum slot_state to);

/* A new one with its keeper; NULL with ERR_BUSY when all are in use. */
struct slot *slot_open(struct slots *all, enum plan_template t, bool space, struct err *e);
struct slot *slot_find_idle(struct slots *all, enum plan_template t, bool space);
/* Can a keeper without the host's root make this sandbox? A writable /usr with other owners
 * (overlay.h) and the host's network need that root; where the launcher itself has a user namespace
 * there is none to take away, and a zygote has entered its own. */
bool slots_space(const struct slots *all, const struct launch_msg *m);
/* The keeper, and whatever lives in it, ends. */
void slot_close(struct slots *all, struct slot *s);

/* The host user of the next sandbox in it. A slot's users are used in turn. */
uid_t slot_user(const struct slots *all, struct slot *s);
/* Can its keeper become any of the users that are mapped now? One with the host's root can. */
bool slot_reaches(const struct slots *all, const struct slot *s);
size_t slots_idle(const struct slots *all, enum plan_template t, bool space);
/* In which a sandbox is being made. The first one of a keeper may wait for its zygote, so each
 * template counts for itself. */
size_t slots_births(const struct slots *all, enum plan_template t);
/* Of what all->events told; NULL: it has been closed since. */
struct slot *slot_of(struct slots *all, uint64_t told);
/* An idle one that no rush has needed for a while, or NULL. ret_later: there will be. */
struct slot *slot_surplus(struct slots *all, uint64_t now, bool *ret_later);
/* Without a pid namespace: ends whatever lost its keeper. */
void slots_purge(const struct slots *all);
/* With one: ends sandboxes whose keeper has died. They are children of ours then. */
void slots_kill_orphans(void);
/* Has the groups of closed slots removed; true while some are left. */
bool slots_bury(struct slots *all);
/* A child of ours has ended: was it the remover? */
void slots_reaped(struct slots *all, pid_t pid);
