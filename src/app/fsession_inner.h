/* SPDX-License-Identifier: MIT */
/* What the files of sessions share among themselves; nobody else's business. */
#pragma once

#include "app/fsession.h"

/* ---- fsession.c ---- */

/* A zeroed session becomes one of the app's. */
must_check int fsession_init(struct fsession *s, struct app *a);
/* Goes on with whoever is first, if it can. */
void fsession_next(struct fsession *s);
/* A process for the code; turns fail if there cannot be one. */
void fsession_start(struct fsession *s);
/* Its process ends without a word; so do the turns that wait. */
void fsession_free(struct fsession *s);

/* ---- fsession_make.c ---- */

/* Cancels what is under way before the first process. */
void fsession_make_stop(struct fsession *s);

/* ---- turn.c ---- */

must_check struct turn *turn_new(struct app *a, enum turn_kind kind, const struct turn_order *o);
void turn_free(struct turn *t);
/* The packet of a call. */
must_check int turn_packet(struct turn *t, const char *token, struct buf *out);
/* Arguments to parameters; t->unbound tells. */
void turn_bind(struct turn *t);
/* The facts that the answer needs of the session, which is left. */
void turn_detach(struct turn *t);
/* It ended like this run, or before there was one. */
void turn_end_as(struct turn *t, const struct run_result *r);
void turn_fail(struct turn *t, const char *type, const char *words);
/* Renders and delivers; not at once if it may not. */
void turn_finish(struct turn *t, bool may_deliver);
