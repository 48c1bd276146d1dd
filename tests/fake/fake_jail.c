/* SPDX-License-Identifier: MIT */
#include "fake/fake_jail.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "wire/wire.h"

static struct fake_jail *fake_of(struct jail *j)
{
    return (struct fake_jail *)j; /* first member */
}

static int probe(struct jail *j, unsigned *ret_traits, struct err *e)
{
    if (fake_of(j)->refuse)
        return err_set(e, ERR_HOST, "the launcher is gone");
    *ret_traits = j->traits;
    return 0;
}

static void pair(int type, int *ours, int *theirs)
{
    int fds[2];
    int r = type ? fd_socketpair(type, fds) : fd_pipe(fds);

    assert(r == 0);
    *ours = fds[0];
    *theirs = fds[1];
    r = fd_nonblock(*ours, true);
    assert(r == 0);
}

static int take(struct jail *j, const struct sandbox_spec *s, struct sandbox *ret, struct err *e)
{
    struct fake_jail *f = fake_of(j);
    struct fake_peer *p = &f->peer[f->taken];
    int in[2], r;

    if (f->refuse || f->taken == FAKE_JAIL_MAX)
        return err_set(e, ERR_HOST, "no sandbox today");
    *ret = SANDBOX_NONE;
    f->limits = *s->limits;
    ret->id = ++f->taken;
    ret->warm = f->warm;
    ret->template = f->template;
    pair(SOCK_SEQPACKET, &ret->ctl, &p->ctl);
    pair(SOCK_STREAM, &ret->job, &p->job);
    pair(0, &ret->out, &p->out);
    pair(0, &ret->err, &p->err);
    r = fd_pipe(in);
    assert(r == 0);
    p->in = in[0];
    ret->in = in[1];
    r = fd_nonblock(ret->in, true);
    assert(r == 0);
    return 0;
}

static bool alone(struct jail *j, const struct sandbox *s)
{
    (void)s;
    return fake_of(j)->threads == 1;
}

static bool usage(struct jail *j, const struct sandbox *s, bool denied, struct usage *ret)
{
    struct fake_jail *f = fake_of(j);

    (void)s;
    *ret = f->usage;
    if (!denied)
        ret->pids_denied = -1;
    if (f->usage_late == 0)
        return true;
    f->usage_late--;
    *ret = USAGE_UNKNOWN;
    return false;
}

static void kill_all(struct jail *j, const struct sandbox *s)
{
    struct fake_jail *f = fake_of(j);

    f->killed++;
    fake_program_gone(f, s->id - 1);
    fake_init_gone(f, s->id - 1);
}

static void release(struct jail *j, struct sandbox *s)
{
    int *fds[] = {&s->ctl, &s->job, &s->in, &s->out, &s->err};

    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close_all(fds[i], 1);
    fake_of(j)->released++;
}

static const char *failure(struct jail *j, const struct sandbox *s)
{
    (void)s;
    return fake_of(j)->failure;
}

static void state(const struct jail *j, struct jail_pool_state *ret)
{
    const struct fake_jail *f = (const struct fake_jail *)j;

    *ret = (struct jail_pool_state){.sandboxes = (unsigned)(f->taken - f->released)};
}

static void close_jail(struct jail *j)
{
    fake_jail_done(fake_of(j));
}

static const struct jail_ops ops = {
    .name = "fake",
    .probe = probe,
    .take = take,
    .usage = usage,
    .alone = alone,
    .kill = kill_all,
    .release = release,
    .failure = failure,
    .state = state,
    .close = close_jail,
};

void fake_jail_init(struct fake_jail *f)
{
    *f = (struct fake_jail){.jail = {.ops = &ops}, .usage = USAGE_UNKNOWN, .failure = ""};
    for (size_t i = 0; i < FAKE_JAIL_MAX; i++)
        f->peer[i] = (struct fake_peer){-1, -1, -1, -1, -1};
}

void fake_jail_done(struct fake_jail *f)
{
    for (size_t i = 0; i < f->taken; i++) {
        fake_program_gone(f, i);
        fake_init_gone(f, i);
    }
}

void fake_init_says(struct fake_jail *f, size_t i, uint32_t verb, int32_t status, int64_t arg)
{
    struct init_msg m = {.verb = verb,
                         .status = status,
                         .arg = arg,
                         .cpu_us = 1500,
                         .maxrss = 4096,
                         .io_read = -1,
                         .io_write = -1};
    int r = fd_send(f->peer[i].ctl, &m, sizeof m, NULL, 0);

    assert(r >= 0);
}

void fake_init_entry(struct fake_jail *f, size_t i, const char *name, int fd)
{
    struct {
        struct init_msg m;
        char name[256];
    } msg = {
        .m = {.verb = INIT_ENTRY, .name_n = (uint32_t)strlen(name), .mtime_s = 1}
    };
    int r;

    memcpy(msg.name, name, msg.m.name_n);
    r = fd_send(f->peer[i].ctl, &msg, sizeof msg.m + msg.m.name_n, &fd, 1);
    assert(r >= 0);
}

int fake_init_hears(struct fake_jail *f, size_t i)
{
    struct init_msg m;
    ssize_t n = recv(f->peer[i].ctl, &m, sizeof m, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN ? 0 : -1;
    return n == sizeof m ? (int)m.verb : -1;
}

void fake_program_gone(struct fake_jail *f, size_t i)
{
    struct fake_peer *p = &f->peer[i];
    int *fds[] = {&p->job, &p->in, &p->out, &p->err};

    for (size_t k = 0; k < ARRAY_LEN(fds); k++)
        fd_close_all(fds[k], 1);
}

void fake_init_gone(struct fake_jail *f, size_t i)
{
    fd_close_all(&f->peer[i].ctl, 1);
}
