/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "http/api/api.h"
#include "http/api/problem.h"

void api_retry_after(struct http_call *c)
{
    char seconds[16];

    (void)snprintf(seconds, sizeof seconds, "%u", admission_retry_s(&http_app(c)->admission));
    http_set_header(c, "Retry-After", seconds);
}

void api_reply_full(struct http_call *c, const struct err *e, const char *solution)
{
    reply_problem(c, &(struct reply_problem){
                         .status = 503,
                         .code = "Executor.QueueFull",
                         .description = "The server cannot take more work now",
                         .error_detail = e->text,
                         .solution = solution,
                     });
}

void api_reply_wrong(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_CALLER)
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
