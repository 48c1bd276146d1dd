/* SPDX-License-Identifier: MIT */
/* The body of a result: eight members and nothing else. */
#include <string.h>

#include "core/result_write.h"
#include "net/callback_inner.h"

enum { OVERHEAD = 4096, ESCAPE_FACTOR = 6, PATH_OVERHEAD = 8 };

/* That wire knows no "error", and tells a shutdown from a failure. */
static const char *status_of(const struct report_result *r)
{
    if (r->run->reason == END_SHUTDOWN)
        return "crashed";
    if (r->run->reason == END_TIMEOUT)
        return "timeout";
    return r->succeeded ? "success" : "failed";
}

static size_t room_for(const struct report_result *r)
{
    size_t room = OVERHEAD + ESCAPE_FACTOR * (r->run->out.n + r->run->err.n) + r->run->result.n;

    for (size_t i = 0; i < r->artifacts_n; i++)
        room += ESCAPE_FACTOR * strlen(r->artifacts[i]) + PATH_OVERHEAD;
    return room;
}

void callback_write(const struct report_result *r, struct buf *out)
{
    struct jw w = JW(out);

    *out = BUF_INIT(room_for(r));
    jw_object(&w);
    jw_kv_string(&w, "status", status_of(r));
    result_write_output(&w, r->run, r->succeeded);
    result_write_metrics(&w, r->run);
    jw_key(&w, "artifacts");
    jw_array(&w);
    for (size_t i = 0; i < r->artifacts_n; i++)
        jw_string(&w, r->artifacts[i]);
    jw_array_end(&w);
    jw_object_end(&w);
}
