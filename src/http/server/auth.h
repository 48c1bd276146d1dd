/* SPDX-License-Identifier: MIT */
/*
 * Who may call: one bearer secret, known from the start (static), claimed by
 * the first caller and kept on disk (pool), or none is needed (none).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "http/server/ticket.h"

enum auth_mode { AUTH_STATIC, AUTH_POOL, AUTH_NONE, AUTH_MODE_COUNT };

bool auth_mode_parse(const char *name, enum auth_mode *ret); /* any case */

struct auth_conf {
    enum auth_mode mode;
    const char *secret; /* static: not empty; otherwise empty or NULL */
    const char *path;   /* pool: where the claimed secret is kept */
    /* pool, opened as root for a daemon that becomes another user: the owner of a directory that
     * had to be made; (uid_t)-1 leaves it alone. */
    uid_t uid;
    gid_t gid;
};

struct auth;

/*
 * Pool mode makes the directory (0700; parents 0755) and reads a secret claimed
 * in an earlier life; an empty or unreadable file is an error.
 */
must_check int auth_open(const struct auth_conf *conf, struct auth **ret, struct err *e);
/*
 * Can a claim that is still to come be kept? Asked as the user who will have to
 * keep it, named `user` in the error: otherwise every request would be a 500.
 */
must_check int auth_claimable(const struct auth *a, const char *user, struct err *e);
/*
 * Static mode: another secret from now on; the one before it is accepted for overlap_ms more.
 * 1: replaced; 0: it is the same, or another mode; -1: out of memory, and nothing has changed.
 */
must_check int auth_replace(struct auth *a, const char *secret, uint64_t overlap_ms, struct err *e);
void auth_free(struct auth *a); /* NULL is fine; the secret is wiped */
DEFINE_FREEP(struct auth, auth_free)

enum auth_verdict {
    AUTH_OK,
    AUTH_REFUSED, /* 401 */
    AUTH_BROKEN,  /* 500: the claim could not be kept; nothing is claimed */
};

/*
 * The secret in the form that E2B's SDKs insist on: "e2b_" and digits of its digest. It is accepted
 * wherever the secret is.
 */
enum { AUTH_KEY_MAX = 48 };
void auth_key_of(const char *secret, char out[AUTH_KEY_MAX]);

/* May a person be given a ticket now? Not in mode none, nor before the claim of a pool. */
bool auth_has_tickets(const struct auth *a);
/* A ticket for a key (ticket.h). -1: out of memory, or there is no secret yet. */
must_check int auth_ticket(struct auth *a, uint64_t valid_us, char out[TICKET_MAX]);
bool auth_take_ticket(struct auth *a, const char *text);
/* A key that is accepted wherever the secret is. -1 as above. */
must_check int auth_session_key(const struct auth *a, int64_t until_s, char out[SESSION_KEY_MAX]);

/* The token in the value of an Authorization header; NULL: none. */
const char *auth_bearer(const char *authorization);
/*
 * Judges the secret, or the key of a session, that a request carries (NULL: none). In pool mode a
 * well-formed one claims an unclaimed daemon. `e` is written with AUTH_BROKEN.
 */
enum auth_verdict auth_check(struct auth *a, const char *token, struct err *e);
enum auth_mode auth_mode(const struct auth *a);
/* False: every client that reaches the port may call (mode none, and pool before its claim). */
bool auth_has_secret(const struct auth *a);
