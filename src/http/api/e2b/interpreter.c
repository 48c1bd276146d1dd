/* SPDX-License-Identifier: MIT */
/* The code interpreter: cells and contexts of a sandbox. */
#include "http/api/e2b/e2b.h"

#define NOT_YET(name)                                                                              \
    void name(struct http_call *c)                                                                 \
    {                                                                                              \
        e2b_reply_text(c, 501, "this is not there yet");                                           \
    }

NOT_YET(e2b_execute)
NOT_YET(e2b_contexts_create)
NOT_YET(e2b_contexts_list)
NOT_YET(e2b_context_delete)
NOT_YET(e2b_context_restart)
