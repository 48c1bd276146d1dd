/* SPDX-License-Identifier: MIT */
/* GET and POST /files: contents of a sandbox's files. */
#include "http/api/e2b/e2b.h"

void e2b_files_get(struct http_call *c)
{
    e2b_reply_status(c, 501, "reading files is not there yet");
}

void e2b_files_post(struct http_call *c)
{
    e2b_reply_status(c, 501, "writing files is not there yet");
}
