/* SPDX-License-Identifier: MIT */
/* One change of a session's dependencies: what its two files share. */
#pragma once

#include "app/daemon/app.h"
#include "core/port_net.h"
#include "net/egress_doors.h"
#include "store/shelf.h"

struct dependency_sync {
    TAILQ_ENTRY(dependency_sync) link;
    struct app *app; /* borrowed */
    struct task task;
    struct session *session;     /* shared; NULL: of a set */
    char owner[SHELF_OWNER_MAX]; /* under whose name it is kept */
    char request_id[REQUEST_ID_MAX + 1];
    struct package_index index, registry;
    char **specs, **npm; /* owned, each */
    size_t specs_n, npm_n;
    uint64_t started_us;
    struct {
        struct package_host *hosts; /* owned: what may be reached */
        size_t hosts_n;
        struct egress_door *door;              /* owned */
        uint64_t transferred;                  /* bytes */
        size_t refused;                        /* other hosts that were asked for */
        bool full;                             /* too much was loaded */
        char unresolved[PACKAGE_HOST_MAX + 1]; /* the name of a host that leads nowhere */
    } out;
    struct {
        struct shelf_build *build; /* owned */
        size_t adding;             /* files on their way */
        uint64_t bytes, files;
        bool too_large, bad_file;
    } copy; /* of what was installed */
    struct {
        struct package_dist *dists; /* owned */
        size_t n, max;
    } found;
    struct dependency_answer answer;
    struct buf error;
    dependency_done_fn *done;
    void *user;
};

static inline struct dependency_sync *dependency_of(struct task *t)
{
    return container_of(t, struct dependency_sync, task);
}

/* Nothing is to be installed: a session is given an empty directory. */
static inline bool dependency_is_empty(const struct dependency_sync *s)
{
    return s->specs_n + s->npm_n == 0;
}

static inline const char *dependency_session(const struct dependency_sync *s)
{
    return s->session ? s->session->id : "";
}

/* ---- dependencies.c ---- */

/* The answer, in words for a failure. */
void dependency_answer(struct dependency_sync *s, enum dependency_status status, const char *words);

/* ---- dependencies_run.c ---- */

enum { DEPENDENCY_STEPS = 7 };
extern const struct task_step dependency_steps[DEPENDENCY_STEPS];
struct limits dependency_limits(const struct app *a);
