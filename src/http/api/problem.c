/* SPDX-License-Identifier: MIT */
#include "http/api/problem.h"

#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "core/shape.h"
#include "http/server/auth.h"
#include "http/server/reply.h"

enum {
    PROBLEM_MAX = 16 * 1024, /* an error object beside its details */
    ISSUES_JSON_MAX = 128 * 1024,
    SOLUTION_MAX = 512,
};

/* clang-format off */
/* The statuses the server itself refuses with. The last row speaks for every status that is not here. */
static const struct refusal {
    int status;
    const char *code, *words;
} refusals[] = {
    {400, "Executor.BadRequest",       "The request is not valid HTTP"},
    {401, "Executor.Unauthorized",     "A valid bearer token is required"},
    {403, "Executor.Forbidden",        "This request is not allowed"},
    {404, "Executor.NotFound",         "There is nothing at this path"},
    {405, "Executor.MethodNotAllowed", "The method is not allowed here"},
    {408, "Executor.RequestTimeout",   "The request came too slowly"},
    {409, "Executor.Conflict",         "This is not possible in its present state"},
    {413, "Executor.PayloadTooLarge",  "The request body is too large"},
    {414, "Executor.UriTooLong",       "The request target is too long"},
    {417, "Executor.Expectation",      "The expectation cannot be met"},
    {426, "Executor.UpgradeRequired",  "This is a WebSocket"},
    {431, "Executor.HeadersTooLarge",  "The request head is too large"},
    {501, "Executor.NotImplemented",   "The transfer coding is not known here"},
    {503, "Executor.Unavailable",      "The server cannot take more work now"},
    {505, "Executor.HttpVersion",      "Only HTTP/1.1 and HTTP/1.0 are spoken"},
    {507, "Executor.Storage",          "There is no room left"},
    {500, "Executor.InternalError",    "An internal error occurred"},
};
/* clang-format on */

static const struct refusal *refusal_of(int status)
{
    size_t i = 0;

    while (i < ARRAY_LEN(refusals) - 1 && refusals[i].status != status)
        i++;
    return &refusals[i];
}

void reply_problem(struct http_call *c, const struct reply_problem *p)
{
    struct buf body = BUF_INIT(PROBLEM_MAX + (p->detail_json ? strlen(p->detail_json) : 0));
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_string(&w, "error_code", p->code);
    jw_kv_string(&w, "description", p->description);
    jw_kv_string(&w, "error_detail", p->error_detail);
    jw_kv_string(&w, "solution", p->solution);
    jw_kv_string(&w, "request_id", http_request(c)->id);
    jw_key(&w, "detail");
    if (p->detail_json)
        jw_raw(&w, p->detail_json, strlen(p->detail_json));
    else
        jw_string(&w, p->error_detail ? p->error_detail : p->description);
    jw_object_end(&w);
    http_reply_json(c, p->status, &body);
}

/* What may help against a status that the server refuses with; NULL: nothing is known. */
static const char *solution_of(struct http_call *c, int status, char room[SOLUTION_MAX])
{
    char near[DIALECT_NEAREST_MAX];

    switch (status) {
    case 401:
        return "Send the header 'Authorization: Bearer SECRET'. The secret is what the daemon was "
               "started with (SANDBOX_SECRET, SANDBOX_SECRET_FILE), else in the file 'secret' of "
               "its "
               "state directory, which it names at its start.";
    case 404:
        if (dialect_nearest(c, near))
            (void)snprintf(room, SOLUTION_MAX, "Did you mean %s? GET /docs shows every endpoint.",
                           near);
        else
            (void)snprintf(room, SOLUTION_MAX, "GET /docs shows every endpoint.");
        return room;
    case 405:
        dialect_allow(c, near);
        (void)snprintf(room, SOLUTION_MAX, "Use %s here. GET /docs shows every endpoint.", near);
        return room;
    case 413:
        return "Send less, or have the operator raise BODY_MAX, BODY_MAX_EXECUTE, "
               "BODY_MAX_FUNCTIONS or BODY_MAX_FILE.";
    case 503:
        return "Try again after the time that Retry-After names.";
    default:
        return NULL;
    }
}

void problem_refuse(struct http_call *c, int status, const char *words)
{
    const struct refusal *r = refusal_of(status);
    char room[SOLUTION_MAX];

    if (status == 401)
        http_set_header(c, "WWW-Authenticate",
                        auth_bearer(http_header(c, "authorization"))
                            ? "Bearer realm=\"sandbox-executor\", error=\"invalid_token\""
                            : "Bearer realm=\"sandbox-executor\"");
    reply_problem(c, &(struct reply_problem){.status = status,
                                             .code = r->code,
                                             .description = r->words,
                                             .error_detail = words ? words : reply_reason(status),
                                             .solution = solution_of(c, status, room)});
}

/* clang-format off */
static const struct kind {
    const char *code, *words, *solution;
} kinds[] = {
    [ERR_NONE]   = {"Executor.InternalError",   "An internal error occurred", NULL},
    [ERR_CALLER] = {"Executor.ValidationError", "Invalid value provided",
                    "Correct the request and send it again."},
    [ERR_DENIED] = {"Executor.PolicyDenied",    "The policy of this server does not allow it",
                    "Ask for less, or have the policy changed."},
    [ERR_ABSENT] = {"Executor.NotFound",        "There is no such thing", NULL},
    [ERR_BUSY]   = {"Executor.Busy",            "A limit of this server is reached",
                    "Try again later."},
    [ERR_HOST]   = {"Executor.InternalError",   "The host of this server failed",
                    "Try again; if it persists, look into the server's log."},
    [ERR_BUG]    = {"Executor.InternalError",   "An internal error occurred",
                    "Please report it with the request id."},
};
/* clang-format on */
_Static_assert(ARRAY_LEN(kinds) == ERR_KIND_COUNT, "every kind has a status");

static void put_detail(struct buf *b, const char *text)
{
    struct jw w = JW(b);

    jw_array(&w);
    jw_object(&w);
    jw_kv_string(&w, "type", "value_error");
    jw_key(&w, "loc");
    jw_raw(&w, "[\"body\"]", 8);
    jw_kv_string(&w, "msg", text);
    jw_object_end(&w);
    jw_array_end(&w);
}

void problem_error(struct http_call *c, const struct err *e)
{
    const struct kind *k = &kinds[e->kind];
    struct buf detail = BUF_INIT(PROBLEM_MAX);
    struct reply_problem p = {reply_status_of(e), k->code, k->words, e->text, k->solution, NULL};

    if (e->kind == ERR_CALLER) {
        put_detail(&detail, e->text);
        p.detail_json = detail.failed ? NULL : detail.p;
    }
    reply_problem(c, &p);
    buf_done(&detail);
}

void problem_issues_as(struct http_call *c, const struct shaping *s, const char *words)
{
    struct buf detail = BUF_INIT(ISSUES_JSON_MAX);

    shape_issues_json(s, &detail);
    reply_problem(c, &(struct reply_problem){
                         .status = 400,
                         .code = "Executor.ValidationError",
                         .description = "Invalid value provided",
                         .error_detail = words,
                         .solution = "Correct the fields named in 'detail' and send it again.",
                         .detail_json = detail.failed ? NULL : detail.p,
                     });
    buf_done(&detail);
}

void problem_issues(struct http_call *c, const struct shaping *s)
{
    char words[SHAPE_WORDS_MAX];

    shape_words(s, words);
    problem_issues_as(c, s, words);
}
