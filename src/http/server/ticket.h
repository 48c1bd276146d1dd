/* SPDX-License-Identifier: MIT */
/*
 * Tickets and the keys of console sessions (docs/console.md).
 *
 * A ticket is in the address that a person opens. It is worth one key, once, and for a while; only
 * its digest is kept. A key opens what the secret opens, until its time is up. It is a MAC under
 * the secret, so the daemon keeps nothing of it: keys survive a restart and end with the secret.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/sha256.h"

enum {
    TICKETS_MAX = 16, /* not used yet, at a time; the oldest gives way */
    TICKET_MAX = 65,  /* text of one, with its NUL */
    SESSION_KEY_MAX = 128,
};

struct tickets {
    struct door_ticket {
        unsigned char digest[SHA256_BYTES];
        uint64_t until_us; /* clock_us(); 0: no ticket */
    } row[TICKETS_MAX];
};

/* -1: out of memory. */
must_check int ticket_make(struct tickets *t, uint64_t valid_us, char out[TICKET_MAX]);
/* Is it one that may still be used? It may not afterwards. */
bool ticket_take(struct tickets *t, const char *text);
void tickets_forget(struct tickets *t); /* all of them */

/* A key under that secret, until a time of the clock on the wall. -1: out of memory. */
must_check int session_key_make(const char *secret, int64_t until_s, char out[SESSION_KEY_MAX]);
/* Does a text have the form of a key? Such a text is never taken for a secret. */
bool session_key_looks(const char *text);
/* Was it made under that secret, and is its time not up? */
bool session_key_is(const char *text, const char *secret, int64_t now_s);
