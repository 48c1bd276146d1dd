/* SPDX-License-Identifier: MIT */
/*
 * A run whose program stays: the part of core/port_run.h that sends frames while it lasts.
 *
 * Nothing here waits. Sending writes at once and leaves the rest to the loop; output is read when
 * its reader wants to know, because a program writes it before the frame that ends its turn.
 */
#include <signal.h>
#include <string.h>

#include "base/fd.h"
#include "proc/run_inner.h"

enum { SEND_MAX = 256 << 20 }; /* bytes waiting for a program that does not read */

int run_send(struct run *r, const void *p, size_t n)
{
    if (!run_is(r, RUN_LIVE))
        return -1;
    return feed_more(&r->job_feed, r->engine->base, p, n, SEND_MAX);
}

int run_interrupt(struct run *r)
{
    struct init_msg m = {.verb = INIT_SIGNAL, .arg = SIGINT};

    if (!run_is(r, RUN_LIVE))
        return -1;
    return fd_send(r->sandbox.ctl, &m, sizeof m, NULL, 0) < 0 ? -1 : 0;
}

int run_signal(struct run *r, int number, bool group)
{
    struct init_msg m = {.verb = INIT_SIGNAL, .arg = number, .status = !group};

    if (!run_is(r, RUN_LIVE))
        return -1;
    return fd_send(r->sandbox.ctl, &m, sizeof m, NULL, 0) < 0 ? -1 : 0;
}

int run_resize(struct run *r, uint32_t terminal)
{
    struct init_msg m = {.verb = HELP_RESIZE, .size = terminal};

    if (!run_is(r, RUN_LIVE))
        return -1;
    return fd_send(r->sandbox.ctl, &m, sizeof m, NULL, 0) < 0 ? -1 : 0;
}

/* What the program started may read what it did not. */
enum run_input run_input(struct run *r, const void *p, size_t n)
{
    struct feed *f = &r->in_feed;

    if (!run_is(r, RUN_LIVE | BIT(RUN_LINGERING)) || r->sandbox.in < 0 || f->broken ||
        f->close_at_end)
        return RUN_INPUT_CLOSED;
    if (n > 0 && feed_more(f, r->engine->base, p, n, RUN_INPUT_MAX) < 0)
        return RUN_INPUT_FULL;
    return f->broken ? RUN_INPUT_CLOSED : RUN_INPUT_TAKEN;
}

size_t run_input_waiting(const struct run *r)
{
    return feed_waiting(&r->in_feed);
}

void run_input_end(struct run *r)
{
    feed_close(&r->in_feed);
}

int run_scan(struct run *r)
{
    struct init_msg m = {.verb = INIT_SCAN, .arg = 1};

    if (!run_is(r, RUN_LIVE) || r->files.live)
        return -1;
    r->files.live = fd_send(r->sandbox.ctl, &m, sizeof m, NULL, 0) == 0;
    return r->files.live ? 0 : -1;
}

int run_put(struct run *r, const char *name, int fd, int64_t at, int64_t size)
{
    struct {
        struct init_msg m;
        char name[INIT_NAME_MAX];
    } out = {
        .m = {.verb = INIT_PUT, .arg = at, .size = size}
    };
    size_t n = strlen(name);

    if (!run_is(r, RUN_LIVE) || n > sizeof out.name)
        return -1;
    out.m.name_n = (uint32_t)n;
    memcpy(out.name, name, n);
    return fd_send(r->sandbox.ctl, &out, sizeof out.m + n, &fd, 1) < 0 ? -1 : 0;
}

void run_frames_pause(struct run *r)
{
    if (r->frames.paused || !run_is(r, RUN_LIVE))
        return;
    r->frames.paused = true;
    (void)event_del(&r->ev.job);
}

void run_frames_resume(struct run *r)
{
    if (!r->frames.paused)
        return;
    r->frames.paused = false;
    if (r->sandbox.job >= 0)
        (void)event_add(&r->ev.job, NULL);
}

void run_output_read(struct run *r)
{
    if (capture_is_open(&r->out))
        (void)capture_read(&r->out, &r->engine->room->aside);
    if (capture_is_open(&r->err))
        (void)capture_read(&r->err, &r->engine->room->aside);
}

static void output_begin(struct buf *b)
{
    *b = BUF_INIT(b->max);
}

void run_output_take(struct run *r, struct run_output *ret)
{
    struct run_result *res = r->result;

    *ret = (struct run_output){.out = res->out,
                               .err = res->err,
                               .out_truncated = res->out_truncated,
                               .err_truncated = res->err_truncated};
    output_begin(&res->out);
    output_begin(&res->err);
    res->out_truncated = res->err_truncated = false;
}

void run_usage(const struct run *r, struct usage *ret)
{
    struct jail *j = r->engine->jail;

    (void)j->ops->usage(j, &r->sandbox, true, ret);
}
