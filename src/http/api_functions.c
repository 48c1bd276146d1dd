/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/functions/call: the body goes to the app as it is; the answer is the result of the call,
 * whatever became of it. Only a body that is no call is refused, with 400.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/api.h"
#include "http/reply.h"

static void reply_busy(struct http_call *c, const struct err *e)
{
    char seconds[16];

    (void)snprintf(seconds, sizeof seconds, "%u", admission_retry_s(&http_app(c)->admission));
    http_set_header(c, "Retry-After", seconds);
    reply_problem(c, &(struct reply_problem){
                         .status = 503,
                         .code = "Executor.QueueFull",
                         .description = "The server cannot take more work now",
                         .error_detail = e->text,
                         .solution = "Try again after the time that Retry-After names.",
                     });
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY)
        reply_busy(c, e);
    else if (e->kind == ERR_CALLER)
        reply_problem(c, &(struct reply_problem){
                             .status = 400,
                             .code = "Executor.ValidationError",
                             .description = "Invalid value provided",
                             .error_detail = e->text,
                             .solution = "Correct the field that is named and send it again.",
                         });
    else
        http_reply_error(c, e);
}

static void on_done(void *user, struct call *call)
{
    struct http_call *c = user;
    char timing[SERVER_TIMING_MAX];

    if (call->refused.kind != ERR_NONE) {
        reply_refused(c, &call->refused);
        return;
    }
    call_server_timing(call, timing);
    http_set_header(c, "Server-Timing", timing);
    http_reply(c, 200, API_JSON, &call->json);
}

static void on_gone(void *user)
{
    call_abandon(user);
}

void api_function_call(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    struct buf text = BUF_INIT(r->body_n + 1);
    struct call_order order = {
        .text = &text, .request_id = r->id, .asked_us = clock_us(), .done = on_done, .user = c};
    struct call *call = NULL;
    struct err e;

    if (buf_put(&text, r->body, r->body_n) < 0) {
        reply_status(c, 503);
        return;
    }
    if (app_call(http_app(c), &order, &call, &e) < 0) {
        buf_done(&text);
        reply_refused(c, &e);
        return;
    }
    http_on_gone(c, on_gone, call);
}
