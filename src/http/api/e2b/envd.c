/* SPDX-License-Identifier: MIT */
/* What envd and the interpreter say of themselves. */
#include <string.h>

#include "base/jw.h"
#include "http/api/e2b/e2b.h"

enum { JSON_MAX = 4096 };

void e2b_health(struct http_call *c)
{
    if (e2b_sandbox(c))
        http_reply(c, 204, NULL, NULL);
}

void e2b_interpreter_health(struct http_call *c)
{
    if (e2b_sandbox(c))
        e2b_reply_text(c, 200, "OK");
}

void e2b_envs(struct http_call *c)
{
    struct persistent *p = e2b_sandbox(c);
    struct buf body = BUF_INIT(JSON_MAX);
    struct jw w = JW(&body);

    if (!p)
        return;
    for (size_t i = 0; i < p->env_n; i++)
        body.max += strlen(p->env[i]) * 6 + 8;
    jw_object(&w);
    for (size_t i = 0; i < p->env_n; i++) {
        size_t n = strcspn(p->env[i], "=");
        char name[256];

        if (n >= sizeof name)
            continue;
        memcpy(name, p->env[i], n);
        name[n] = '\0';
        jw_kv_string(&w, name, p->env[i] + n + 1);
    }
    jw_object_end(&w);
    http_reply(c, 200, API_JSON, &body);
}
