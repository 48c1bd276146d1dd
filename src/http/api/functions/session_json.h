/* SPDX-License-Identifier: MIT */
/* Sessions and the answers of their turns as JSON. Pure, but for the usage of a session. */
#pragma once

#include "app/session/fsession.h"
#include "base/buf.h"
#include "base/clock.h"

void fsession_json(const struct fsession *s, struct buf *out);
turn_render_fn turn_json;
void turn_server_timing(const struct turn *t, char out[SERVER_TIMING_MAX]);
