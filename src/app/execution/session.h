/* SPDX-License-Identifier: MIT */
/*
 * Sessions: executions that name the same session_id share a kept workspace.
 *
 * At most SESSION_CONCURRENCY of them run at the same time, in the order they were asked for;
 * different sessions never see each other's files. The session SESSION_ID has WORKSPACE_PATH itself
 * as its workspace, every other one a directory of its own. A session exists here only while
 * something of it is queued or running, or while its workspace is near its limits
 * (session_disk.h); its workspace stays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "core/admission.h"
#include "core/plan.h"

enum {
    SESSION_ID_MAX = 256,
    SESSION_WORKSPACE_MAX = 128, /* name of the directory, with its NUL */
    SESSION_BUCKETS = 256,
    SESSION_REMEMBERED_MAX = 10000, /* sessions that nobody uses now */
};

struct session {
    char id[SESSION_ID_MAX + 1];
    char name[SESSION_WORKSPACE_MAX];      /* of what is kept for it, but for its workspace */
    char workspace[SESSION_WORKSPACE_MAX]; /* the same, or PLAN_WORKSPACE_OWN */
    struct lane lane;                      /* of its executions */
    struct lane dependencies;              /* of those who change its dependencies */
    size_t users;
    bool remembered; /* its workspace was near a limit or beyond: look before something runs */
    SLIST_ENTRY(session) chain;
};

struct sessions {
    SLIST_HEAD(session_bucket, session) buckets[SESSION_BUCKETS];
    size_t remembered_n;
    const char *own; /* borrowed: the session whose workspace is WORKSPACE_PATH; "": none */
    size_t concurrency;
};

void sessions_init(struct sessions *all, const char *own, size_t concurrency);

/* Makes it when there is none. NULL: no memory. */
must_check struct session *session_enter(struct sessions *all, const char *id);
/* Is an execution of that session running or waiting to run? */
bool session_is_busy(struct sessions *all, const char *id);
/* The ticket must have left the lane. The last one out frees it. NULL is fine. */
void session_leave(struct sessions *all, struct session *s);
/* A remembered one outlives its last user. The caller is a user. */
void session_remember(struct sessions *all, struct session *s, bool on);
void sessions_done(struct sessions *all); /* forgets those that nobody uses */

/* The directory of a session: readable where the id allows it, a digest otherwise; never the same
 * for two ids. */
void session_workspace(const char *id, char out[SESSION_WORKSPACE_MAX]);
