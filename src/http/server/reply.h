/* SPDX-License-Identifier: MIT */
/* Answers the server and the handlers have in common. */
#pragma once

#include "http/server/http_call.h"

/* "Not Found"; never NULL. */
const char *reply_reason(int status);

/* A standard answer for a status, in the words of the call's dialect. */
void reply_status(struct http_call *c, int status);
/* The same with words of the caller's that say what is wrong with this request. */
void reply_refusal(struct http_call *c, int status, const char *words);

/* The status that goes with an error. */
int reply_status_of(const struct err *e);
