/* SPDX-License-Identifier: MIT */
/* Answers the server and the handlers have in common. */
#pragma once

#include "http/call.h"

/* "Not Found"; never NULL. */
const char *reply_reason(int status);

/*
 * The error object of the /v1 and /execute families:
 * {"error_code","description","error_detail","solution","request_id","detail"}.
 * NULL members become null; `detail_json` is raw JSON, NULL: the error_detail
 * (or the description) as a string.
 */
struct reply_problem {
    int status;
    const char *code;
    const char *description;
    const char *error_detail;
    const char *solution;
    const char *detail_json;
};
void reply_problem(struct http_call *c, const struct reply_problem *p);

/* A standard answer for a status, in the words of the route's family. */
void reply_status(struct http_call *c, int status);
/* The same with words of the caller's that say what is wrong with this request. */
void reply_refusal(struct http_call *c, int status, const char *words);
