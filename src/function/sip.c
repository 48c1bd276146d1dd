/* SPDX-License-Identifier: MIT */
#include "function/sip.h"

#include <stdio.h>

#include "base/jw.h"

void sip_payload(const struct sip_call *c, struct buf *out)
{
    struct jw w = JW(out);

    jw_object(&w);
    jw_key(&w, "functionName");
    jw_bytes(&w, c->function.p ? c->function.p : "", c->function.n);
    jw_key(&w, "args");
    call_args_json(c->args, out);
    w.comma = true;
    jw_key(&w, "kwargs");
    call_names_json(c->args, out);
    w.comma = true;
    if (call_args_has_holes(c->args)) {
        jw_key(&w, "holes");
        call_holes_json(c->args, out);
        w.comma = true;
    }
    if (c->file)
        jw_kv_string(&w, "filePath", c->file);
    if (c->token)
        jw_kv_string(&w, "token", c->token);
    if (c->token)
        jw_kv_int(&w, "timeout", (int64_t)c->wall_ms);
    if (c->token && c->options_at >= 0)
        jw_kv_int(&w, "optionsAt", c->options_at);
    jw_object_end(&w);
}

int sip_packet(char mode, const char *payload, size_t n, struct buf *out)
{
    char head[SIP_HEAD + 1];

    if (n > 0xffffffff)
        return -1;
    (void)snprintf(head, sizeof head, "%c%08zx", mode, n);
    return buf_put(out, head, SIP_HEAD) < 0 ? -1 : buf_put(out, payload, n);
}
