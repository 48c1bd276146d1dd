/* SPDX-License-Identifier: MIT */
/*
 * Which functions does a piece of code define? sandbox-inspect is run in a sandbox like any other
 * plan, because it parses what tenants wrote; the daemon never does. Answers are remembered by the
 * hash of language and code, so that calling the same code again costs no run.
 * Otherwise it is a task (app/task.h), under a ticket of its own or under the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "core/plan.h"

struct app;
struct inspect; /* one inspection under way */

enum {
    INSPECT_CODE_MAX = 8 << 20,    /* bytes of code */
    INSPECT_ANSWER_MAX = 16 << 20, /* bytes of an answer */
    INSPECT_KEPT = 256,            /* answers remembered */
    INSPECT_KEPT_ONE = 4 << 20,    /* a larger one is not */
    INSPECT_KEPT_BYTES = 32 << 20, /* all of them together */
};

enum inspect_status {
    INSPECT_OK,
    INSPECT_REFUSED,     /* the program said why: too long, too slow, ... */
    INSPECT_UNAVAILABLE, /* built without grammars */
    INSPECT_FAILED,      /* the sandbox or the program broke */
};

struct inspect_answer {
    enum inspect_status status;
    struct bytes json; /* INSPECT_OK: one validated JSON object; what is in it, a sandbox wrote */
    char type[32];     /* otherwise: ParseTimeout, SourceTooLong, NotAvailable, ... */
    char message[500];
};

/* Once, from the loop, never from inside inspect_start(). The answer is valid until it returns. */
typedef void inspect_done_fn(void *user, const struct inspect_answer *answer);

struct inspect_order {
    const char *language; /* a name or alias that inspect_language() knows */
    struct bytes code;    /* not needed after the call */
    bool admitted;        /* the caller holds a ticket already */
    inspect_done_fn *done;
    void *user;
};

/* The canonical name; NULL: there is no grammar for it. */
const char *inspect_language(const char *name);

/* Has the same been asked before? Then its answer, valid until the loop goes on. */
bool inspect_known(struct app *a, const char *language, struct bytes code,
                   struct inspect_answer *ret);
/* Queues or starts it. Fails when it cannot be queued; done() does not come then. */
must_check int inspect_start(struct app *a, const struct inspect_order *o, struct inspect **ret,
                             struct err *e);
/* The caller does not want the answer any more: done() does not come. Not from inside done(). */
void inspect_cancel(struct inspect *i);

/* ---- for the app ---- */

struct inspect_kept;
TAILQ_HEAD(inspect_list, inspect);
TAILQ_HEAD(inspect_kept_list, inspect_kept);
struct inspections {
    struct inspect_list active;
    struct inspect_kept_list kept; /* the most recently used first */
    size_t kept_n, kept_bytes;
};
void inspections_init(struct inspections *s);
void inspections_done(struct app *a); /* ends and forgets all */
