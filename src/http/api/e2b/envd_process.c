/* SPDX-License-Identifier: MIT */
/* process.Process: commands and terminals of a sandbox. */
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"

#define NOT_YET(name)                                                                              \
    void name(struct http_call *c)                                                                 \
    {                                                                                              \
        connect_refuse(c, CONNECT_UNIMPLEMENTED, "this method is not there yet");                  \
    }

NOT_YET(e2b_process_start)
NOT_YET(e2b_process_connect)
NOT_YET(e2b_process_list)
NOT_YET(e2b_process_send_input)
NOT_YET(e2b_process_close_stdin)
NOT_YET(e2b_process_send_signal)
NOT_YET(e2b_process_update)
NOT_YET(e2b_process_stream_input)
