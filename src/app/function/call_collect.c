/* SPDX-License-Identifier: MIT */
/* What a call did to the files: read while the dead sandbox is still there. */
#include "app/daemon/app.h"
#include "app/function/call_inner.h"

static void settle(struct call *c)
{
    struct collect *k = &c->collect;

    if (!c->run_ended || k->beside)
        return;
    if (c->result.scanned && !k->complete &&
        !collect_complete(k, c->result.files_left_out, &c->result.error))
        return;
    call_finish(c, true);
}

static void on_collected(void *user)
{
    settle(user);
}

int call_collect_init(struct call *c, struct err *e)
{
    const struct collect_order order = {
        .work = c->app->work,
        .run = &c->run,
        .tree = c->tree,
        .request = &c->request,
        .lang = (enum call_lang_id)c->lang,
        .wasm = c->wasm,
        .fenced = c->fenced,
        .dirs = c->dirs.n > 0,
        .contents = c->request.include_contents,
        .before = c->request.files,
        .before_n = c->request.files_n,
        .next = on_collected,
        .user = c,
    };

    if (collect_begin(&c->collect, &order) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    return 0;
}

void call_on_file(void *user, struct run_file *f)
{
    struct call *c = user;

    collect_file(&c->collect, f);
}

void call_on_run_done(void *user)
{
    struct call *c = user;

    c->run_ended = true;
    c->state = CALL_COLLECTING;
    settle(c);
}
