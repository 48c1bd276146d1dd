/* SPDX-License-Identifier: MIT */
/* Any other port of a sandbox. */
#include "http/api/e2b/e2b.h"

void e2b_port(struct http_call *c)
{
    e2b_reply_status(c, 501, "ports are not there yet");
}
