/* SPDX-License-Identifier: MIT */
/* /v1/executions/{id}: what became of an execution, its artifacts, and ending it early. */
#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "base/mime.h"
#include "http/api/api.h"
#include "http/api/execute/execution_json.h"
#include "http/api/execute/execution_reply.h"
#include "http/api/execute/execution_stream.h"
#include "http/server/reply.h"

enum { STATE_JSON_MAX = 4096, ETAG_MAX = STORE_HEX_MAX + 2 };

static struct execution *find(struct http_call *c)
{
    struct app *a = http_app(c);
    const char *id = http_request(c)->param[0];
    struct execution *x = registry_find(&a->registry, id);
    struct err e;

    if (!x) {
        (void)err_set(&e, ERR_ABSENT, "no execution '%.128s', or it is no longer kept", id);
        http_reply_error(c, &e);
    }
    return x;
}

void api_execution_get(struct http_call *c)
{
    struct execution *x = find(c);
    struct execution_stream *s;

    if (!x)
        return;
    if (!execution_stream_wanted(c)) {
        api_reply_execution(c, x, execution_json);
        return;
    }
    s = execution_stream_new(c);
    if (s)
        execution_stream_begin(s, x, false);
    else
        reply_status(c, 503);
}

/* One under way is ended (202: the fact comes later); a finished one is forgotten. */
void api_execution_delete(struct http_call *c)
{
    struct execution *x = find(c);
    struct buf body = BUF_INIT(STATE_JSON_MAX);
    struct jw w = JW(&body);

    if (!x)
        return;
    if (execution_is_done(x)) {
        execution_forget(x);
        http_reply(c, 204, NULL, NULL);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "execution_id", x->id);
    jw_kv_string(&w, "state", "stopping");
    jw_object_end(&w);
    execution_stop(x, END_CANCELLED);
    http_reply_json(c, 202, &body);
}

/* It came out of a sandbox: a browser must neither render it nor guess what it is. */
static void set_headers(struct http_call *c, const struct artifact *a)
{
    char etag[ETAG_MAX];

    (void)snprintf(etag, sizeof etag, "\"%s\"", a->stored.sha256);
    http_set_header(c, "ETag", etag);
    http_set_header(c, "Content-Disposition", "attachment");
    http_set_header(c, "Content-Security-Policy", "sandbox; default-src 'none'");
}

void api_artifact(struct http_call *c)
{
    const struct execution *x = find(c);
    const char *path = http_request(c)->param[1];
    const struct artifact *a;
    struct err e;
    int fd;

    if (!x)
        return;
    a = execution_is_done(x) ? artifacts_find(&x->artifacts, path) : NULL;
    if (!a || a->stored.number == 0) {
        (void)err_set(&e, ERR_ABSENT, "no artifact '%.200s' is kept of this execution", path);
        http_reply_error(c, &e);
        return;
    }
    fd = store_read(http_app(c)->store, a->stored.number, &e);
    if (fd < 0) {
        http_reply_error(c, &e);
        return;
    }
    set_headers(c, a);
    http_reply_file(c, 200, mime_of(a->path), fd, 0, a->stored.size);
}
