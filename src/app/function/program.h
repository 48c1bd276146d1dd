/* SPDX-License-Identifier: MIT */
/*
 * A piece of code whose functions are called: what was asked for, where it runs, the files that are
 * there before it runs, and what was made of it. A function call has one for itself, a function
 * session one for all its calls.
 */
#pragma once

#include <stdbool.h>

#include "app/daemon/place.h"
#include "app/function/call_mount.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/limits.h"
#include "function/request.h"
#include "function/rights.h"

struct app;
struct build;
struct shelf_item;

struct program {
    struct app *app; /* borrowed */
    const char *id;  /* borrowed: of the call or of the session */
    struct buf text; /* owned: the body of the request, which points into it */
    struct call_request request;
    int lang;  /* row of core/languages.h; -1: unknown */
    bool wasm; /* the engine */
    struct place where;
    struct limits limits;
    struct call_tree *tree;    /* held: mounts and rules */
    struct call_rights rights; /* what the kernel lets it write; only where fenced */
    bool fenced;
    struct buf dirs;      /* beside /workspace, as in a plan; empty: not known yet, or none */
    struct buf inspected; /* owned: JSON of the inspector; empty: nothing is known */
    struct shelf_item *packages; /* held: those that it asked for; NULL: none */
    struct build *build;         /* owned: of compiled languages and modules; else NULL */
};

/* text: the body, taken. -1: no memory. */
must_check int program_init(struct program *p, struct app *a, const char *id, struct buf *text);
void program_done(struct program *p);

/* Flags of its language. */
unsigned program_flags(const struct program *p);
/* Are language, engine and jail there, and does the code fit? Sets them. */
must_check int program_check(struct program *p, struct err *e);
/* The directories at the top that the plans of it need. */
must_check int program_dirs(struct program *p, struct err *e);
/* As plans have them: NULL for none. */
const char *program_dirs_text(const struct program *p);
const char *program_packages(const struct program *p);

/* Loads what is in the mounts and finds what may be written. Takes long: on a worker. */
must_check int program_load(struct program *p, struct err *e);
/* Is there anything to load or to judge? */
bool program_has_files(const struct program *p);
