/* SPDX-License-Identifier: MIT */
#include "http/api/execute/execution_reply.h"

#include <stdlib.h>

#include "http/api/api.h"
#include "http/api/execute/execution_json.h"
#include "http/server/reply.h"

enum {
    INLINE_MAX = 256 * 1024, /* bytes of texts; with more, the loop does not wait */
    FIRST = 1024,            /* bytes of most answers beside their texts */
};

/* One that is written on a worker. */
struct writing {
    struct work work;
    struct http_call *c; /* NULL: gone */
    struct execution *x; /* held */
    struct buf out;
    void (*write)(const struct execution *x, struct buf *out);
};

static void writing_gone(void *user)
{
    struct writing *w = user;

    w->c = NULL;
    work_forget(&w->work);
}

static void writing_run(struct work *work)
{
    struct writing *w = container_of(work, struct writing, work);

    w->write(w->x, &w->out);
}

static void writing_done(struct work *work)
{
    struct writing *w = container_of(work, struct writing, work);

    if (w->c) {
        http_on_gone(w->c, NULL, NULL);
        http_reply_json(w->c, 200, &w->out);
    }
    buf_done(&w->out);
    execution_drop(w->x);
    free(w);
}

void api_reply_execution(struct http_call *c, struct execution *x,
                         void (*write)(const struct execution *x, struct buf *out))
{
    const struct run_result *r = &x->task.result;
    size_t texts = r->out.n + r->err.n + r->result.n + r->error.n;
    struct buf out = BUF_INIT(execution_json_room(x));
    struct writing *w;

    if (!execution_is_done(x) || texts <= INLINE_MAX) {
        (void)buf_reserve(&out, FIRST + (execution_is_done(x) ? texts : 0));
        write(x, &out);
        http_reply_json(c, 200, &out);
        return;
    }
    w = calloc(1, sizeof *w);
    if (!w) {
        reply_status(c, 503);
        return;
    }
    *w = (struct writing){.c = c, .x = x, .out = out, .write = write};
    w->work = (struct work){.run = writing_run, .done = writing_done};
    execution_hold(x);
    http_on_gone(c, writing_gone, w);
    work_submit(http_app(c)->work, &w->work);
}
