/* SPDX-License-Identifier: MIT */
/* Errors of our own endpoints: one JSON object, with what may help. */
#pragma once

#include "http/server/dialect.h"

struct shaping;

/*
 * The error object of our own families:
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

/* What a dialect of ours says (dialect.h). */
void problem_refuse(struct http_call *c, int status, const char *words);
void problem_error(struct http_call *c, const struct err *e);
void problem_issues(struct http_call *c, const struct shaping *s);
/* The same, with other words for the first issue. */
void problem_issues_as(struct http_call *c, const struct shaping *s, const char *words);

/* The members that the dialects of ours have in common. */
#define API_OURS(rows)                                                                             \
    .routes = {rows, ARRAY_LEN(rows)}, .traits = DIALECT_REQUEST_ID | DIALECT_ALLOW,               \
    .refuse = problem_refuse, .error = problem_error, .issues = problem_issues
