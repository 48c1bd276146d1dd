/* SPDX-License-Identifier: MIT */
/*
 * Sessions of clients of the Model Context Protocol that open one with a handshake.
 *
 * The id of a session carries a MAC over itself and over the secret that its client has: an id that
 * this daemon made is known again after a restart, and revives the session without its workspace.
 * Deleted ids are remembered, the newest MCP_DELETED of them, while the daemon runs.
 *
 * A session owns one persistent sandbox, its workspace, made by the first tool that needs one. It
 * lingers after the session, unless another request names it meanwhile.
 */
#pragma once

/* Sandboxes that tools have made have a pair of this name, which says what became of them. */
#define MCP_OWNER        "mcp"
#define MCP_OWNER_ORPHAN "orphan" /* no later request has named it */
#define MCP_OWNER_NAMED  "named"
#define MCP_OWNER_LEFT   "left" /* its session has ended */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "app/mcp/left_files.h"
#include "app/mcp/mcp_metrics.h"
#include "app/mcp/replay.h"
#include "app/sandbox/sandboxes.h"
#include "base/err.h"

struct app;
struct event;

enum {
    MCP_SESSION_ID_MAX = 128,
    MCP_KEY = 32,          /* bytes of the key of the MAC */
    MCP_DELETED = 1024,    /* ids of sessions that were deleted */
    MCP_REQUESTS_MAX = 64, /* of one session at the same time */
    MCP_STREAMS_MAX = 4,   /* streams for notifications of one session */
    MCP_RANDOM = 32,       /* characters of an id that are random */
};

/* A request under way; embedded in what answers it. */
struct mcp_request {
    LIST_ENTRY(mcp_request) link;
    struct mcp_session *session; /* borrowed; NULL: not in one */
    const char *id;              /* as it came: JSON; the owner's */
    size_t id_n;
    void (*cancel)(struct mcp_request *r);
};
LIST_HEAD(mcp_request_list, mcp_request);

/* A stream that wants notifications; embedded likewise. */
struct mcp_listener {
    TAILQ_ENTRY(mcp_listener) link;
    struct mcp_sessions *all;    /* borrowed; NULL: it does not listen */
    struct mcp_session *session; /* borrowed; NULL: of no session */
    void (*tools_changed)(struct mcp_listener *l);
    void (*end)(struct mcp_listener *l); /* its session ends, or another one takes its place */
};
TAILQ_HEAD(mcp_listener_list, mcp_listener);

struct mcp_session {
    TAILQ_ENTRY(mcp_session) link;
    struct mcp_sessions *all; /* borrowed */
    char id[MCP_SESSION_ID_MAX + 1];
    const char *version; /* static */
    uint64_t used_us;
    char sandbox[PERSISTENT_ID_MAX + 1]; /* its workspace; "": none yet */
    bool lost;                           /* it had one that is gone, and its client does not know */
    struct mcp_request_list requests;
    size_t requests_n;
    struct mcp_listener_list listeners;
    size_t listeners_n;
    struct replay replay; /* owned */
};
TAILQ_HEAD(mcp_session_list, mcp_session);

struct mcp_sessions {
    struct app *app; /* borrowed */
    unsigned char key[MCP_KEY];
    struct mcp_session_list list; /* the one that was used last is the last */
    size_t n;
    struct mcp_listener_list listeners; /* of no session */
    char deleted[MCP_DELETED][MCP_RANDOM + 1];
    size_t deleted_n;       /* ever */
    struct left_files left; /* owned */
    struct mcp_metrics metrics;
    struct event *timer, *changed; /* owned */
};

/* Stands for the client that has this secret. */
uint64_t mcp_owner(const struct mcp_sessions *s, const char *token);

/* The key is kept in the state directory. */
must_check int mcp_sessions_open(struct app *a, struct mcp_sessions **ret, struct err *e);
void mcp_sessions_close(struct mcp_sessions *s); /* NULL is fine */

/* A new one. `token`: the secret of its client, "" where none is needed. NULL: out of memory. */
struct mcp_session *mcp_session_open(struct mcp_sessions *s, const char *version,
                                     const char *token);
/* By its id, revived if need be. NULL: none of ours, of another client, or deleted. */
struct mcp_session *mcp_session_find(struct mcp_sessions *s, const char *id, const char *token);
/* Its requests are cancelled; its sandbox lives on for so long, unless a request names it. */
void mcp_session_delete(struct mcp_session *m, uint64_t linger_ms);

/* -1: it has too many. */
must_check int mcp_request_begin(struct mcp_session *m, struct mcp_request *r);
void mcp_request_end(struct mcp_request *r); /* fine when it never began */
/* The one with this id, or NULL. */
struct mcp_request *mcp_request_find(const struct mcp_session *m, const char *id, size_t n);

/* m NULL: of no session. Of too many the oldest is ended. */
void mcp_listen(struct mcp_sessions *s, struct mcp_session *m, struct mcp_listener *l);
void mcp_listen_end(struct mcp_listener *l); /* fine when it never began */
/* The list of tools is another one: told once in 200 ms. */
void mcp_tools_changed(struct mcp_sessions *s);
