/* SPDX-License-Identifier: MIT */
/* One change of a session's dependencies: what its two files share. */
#pragma once

#include "app/daemon/app.h"
#include "net/relay.h"
#include "store/shelf.h"

struct dependency_sync {
    TAILQ_ENTRY(dependency_sync) link, name_link;
    struct app *app;         /* borrowed */
    struct session *session; /* shared */
    struct ticket ticket;
    char request_id[REQUEST_ID_MAX + 1];
    struct package_index index;
    char **specs; /* owned, each */
    size_t specs_n;
    struct relay_host *hosts; /* owned */
    size_t hosts_n;
    uint64_t started_us;

    struct work resolving;
    bool is_resolving;   /* or waits for it */
    struct relay *relay; /* owned */
    struct run *run;     /* owned */
    struct run_result result;
    struct shelf_build *build; /* owned */
    size_t adding;             /* files on their way */
    uint64_t bytes, files;     /* copied */
    uint64_t transferred;      /* through the relay */
    size_t refused;            /* hosts that were asked for */
    bool publishing;
    bool run_ended, full;     /* full: too much was loaded */
    bool too_large, bad_file; /* of what was installed */

    struct package_dist *dists; /* owned */
    size_t dists_n, dists_max;
    struct dependency_answer answer;
    struct buf error;
    dependency_done_fn *done;
    void *user;
};

/* ---- dependencies.c ---- */

/* Tells whoever asked, in words for a failure, and frees it. */
void dependency_end(struct dependency_sync *s, enum dependency_status status, const char *words);

/* ---- dependencies_run.c ---- */

/* Its turn has come. */
void dependency_install(struct dependency_sync *s);
/* Is it in the hands of a worker? Then it ends by itself, and soon. */
bool dependency_is_busy(const struct dependency_sync *s);
