/* SPDX-License-Identifier: MIT */
/* Sessions as JSON, and what the answers of their turns say of them (result_json.c has the rest).
 */
#pragma once

#include "app/session/fsession.h"
#include "base/clock.h"
#include "base/jw.h"

void fsession_json(const struct fsession *s, struct buf *out);
void session_about_json(struct jw *w, const struct turn_facts *t); /* pure */
void turn_server_timing(const struct stamps *at, char out[SERVER_TIMING_MAX]);
