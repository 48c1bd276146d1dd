/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "http/api.h"
#include "http/reply.h"

enum { ISSUES_JSON_MAX = 128 * 1024 };

void api_reply_issues(struct http_call *c, const struct shaping *s, const char *plain_type)
{
    struct buf detail = BUF_INIT(ISSUES_JSON_MAX);
    const struct shape_issue *first = &s->issues[0];
    char words[sizeof first->msg + SHAPE_NAME_MAX];
    bool plain = !first->field || (plain_type && strcmp(first->type, plain_type) == 0);

    (void)snprintf(words, sizeof words, "%s%s%s", plain ? "" : first->field, plain ? "" : ": ",
                   first->msg);
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
