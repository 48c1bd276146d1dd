/* SPDX-License-Identifier: MIT */
#include "app/sandbox/expose.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "net/proxy.h"

enum { DIALS_MAX = 16 }; /* at the same time; others wait their turn */

/* Where a proxy leads. */
struct expose {
    struct app *app;         /* borrowed */
    struct persistent *home; /* borrowed; NULL: the default one, if there is one */
    struct proxy *proxy;     /* owned */
    unsigned dials;          /* under way */
    TAILQ_HEAD(dials, dial) waiting;
};

/* One dial, under way (an activity of the sandbox) or waiting. */
struct dial {
    struct activity activity;
    TAILQ_ENTRY(dial) link;
    struct expose *expose;   /* borrowed */
    struct proxy_conn *conn; /* borrowed */
    struct filework *filework;
};

static void dial_free(struct dial *d)
{
    d->expose->dials--;
    activity_end(&d->activity);
    filework_free(d->filework);
    free(d);
}

static void dial_drop(struct activity *a)
{
    dial_free((struct dial *)((char *)a - offsetof(struct dial, activity)));
}

static bool dial_start(struct dial *d);

/* Their turn has come; one that cannot be started makes room for the next. */
static void start_waiting(struct expose *x)
{
    struct dial *d;

    while (x->dials < DIALS_MAX && (d = TAILQ_FIRST(&x->waiting))) {
        struct proxy_conn *conn = d->conn;

        TAILQ_REMOVE(&x->waiting, d, link);
        if (!dial_start(d))
            proxy_joined(conn, -1);
    }
}

static void on_dialled(void *user, struct file_result *r)
{
    struct dial *d = user;
    struct expose *x = d->expose;

    d->filework = NULL;
    proxy_joined(d->conn, r->sys == 0 ? take_fd(&r->fd) : -1);
    dial_free(d);
    start_waiting(x);
}

static bool parse_port(const char *text, uint16_t *ret)
{
    char *end;
    long n;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    n = strtol(text, &end, 10);
    if (*end || errno || n < 1 || n > UINT16_MAX)
        return false;
    *ret = (uint16_t)n;
    return true;
}

static struct persistent *home_of(const struct expose *x)
{
    return x->home ? x->home : x->app->sandboxes->standard;
}

/* False: it is freed. What is bound may have changed while it waited. */
static bool dial_start(struct dial *d)
{
    struct persistent *p = home_of(d->expose);
    struct file_order o = {.verb = FILE_CONNECT};
    struct err e;

    d->expose->dials++;
    if (!p || !parse_port(p->port, &o.port) ||
        filework_start(&p->inside.files, &o, on_dialled, d, &d->filework, &e) < 0) {
        dial_free(d);
        return false;
    }
    activity_begin(p, &d->activity, dial_drop);
    return true;
}

static enum proxy_dial on_dial(void *user, struct proxy_conn *c)
{
    struct expose *x = user;
    const struct persistent *p = home_of(x);
    struct dial *d;

    if (!p || !p->port[0])
        return PROXY_UNBOUND;
    d = calloc(1, sizeof *d);
    if (!d)
        return PROXY_REFUSED;
    d->expose = x;
    d->conn = c;
    if (x->dials >= DIALS_MAX)
        TAILQ_INSERT_TAIL(&x->waiting, d, link);
    else if (!dial_start(d))
        return PROXY_REFUSED;
    return PROXY_DIALLING;
}

static int start(struct expose *x, uint16_t port, struct err *e)
{
    const struct config *c = &x->app->config;
    const struct proxy_conf conf = {
        .base = x->app->base,
        .host = c->host,
        .port = port,
        .connections_max = (uint32_t)c->connections_max,
        .dial = on_dial,
        .user = x,
    };

    return proxy_open(&conf, &x->proxy, e);
}

static int expose_new(struct app *a, struct persistent *home, uint16_t port, struct expose **ret,
                      struct err *e)
{
    struct expose *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(e, ERR_HOST, "no memory for the proxy");
    x->app = a;
    x->home = home;
    TAILQ_INIT(&x->waiting);
    if (start(x, port, e) < 0) {
        free(x);
        return -1;
    }
    *ret = x;
    return 0;
}

int expose_open(struct app *a, struct expose **ret, struct err *e)
{
    return expose_new(a, NULL, (uint16_t)a->config.proxy_port, ret, e);
}

void expose_close(struct expose *x)
{
    struct dial *d;

    if (!x)
        return;
    while ((d = TAILQ_FIRST(&x->waiting))) {
        TAILQ_REMOVE(&x->waiting, d, link);
        free(d);
    }
    proxy_close(x->proxy);
    free(x);
}

uint16_t expose_port(const struct expose *x)
{
    return proxy_port(x->proxy);
}

/* ---- binding ---- */

int expose_bind(struct persistent *p, const char *port, struct err *e)
{
    struct sandboxes *all = p->all;

    if (p->port[0])
        return err_set(e, ERR_CALLER, "Port already bound");
    if (p != all->standard && !p->expose && expose_new(all->app, p, 0, &p->expose, e) < 0)
        return -1;
    (void)snprintf(p->port, sizeof p->port, "%s", port);
    return 0;
}

void expose_unbind(struct persistent *p)
{
    p->port[0] = '\0';
}

uint16_t expose_own_port(const struct persistent *p)
{
    return p->expose && p->port[0] ? proxy_port(p->expose->proxy) : 0;
}

void expose_done(struct persistent *p)
{
    expose_close(take_ptr(&p->expose));
}
