/* SPDX-License-Identifier: MIT */
#pragma once

#include "app/execution/execution.h"
#include "http/server/http_call.h"

/* Answers 200 with what `write` makes of an execution; a large one is written on a worker. */
void api_reply_execution(struct http_call *c, struct execution *x,
                         void (*write)(const struct execution *x, struct buf *out));
