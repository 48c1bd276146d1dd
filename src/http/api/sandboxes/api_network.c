/* SPDX-License-Identifier: MIT */
/* /v1/sandboxes/{id}/network: what a persistent sandbox may reach, and what it has reached. */
#include <stdlib.h>
#include <string.h>

#include "app/network/network.h"
#include "app/sandbox/sandboxes.h"
#include "http/api/api.h"
#include "http/server/reply.h"

/* A change that dialler and door have not confirmed yet. */
struct changing {
    struct activity activity;
    struct http_call *call;
};

static void reply_network(struct http_call *c, const struct persistent *p)
{
    struct buf body = BUF_INIT(NETWORK_JSON_MAX + sizeof(struct egress_policy));
    struct jw w = JW(&body);

    jw_object(&w);
    if (p->network.of) {
        network_policy_json(&w, network_policy(p->network.of));
        network_json(&w, p->network.of);
    } else {
        jw_kv_string(&w, "mode", net_mode_name(net_effective(p->jail, p->network.mode), NULL));
        jw_key(&w, "network");
        jw_array(&w);
        jw_array_end(&w);
    }
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

void api_network_get(struct http_call *c)
{
    const struct persistent *p = api_sandbox(c);

    if (p)
        reply_network(c, p);
}

static void changing_free(struct changing *g)
{
    if (g->activity.home && g->activity.home->network.of)
        network_leave(g->activity.home->network.of);
    activity_end(&g->activity);
    free(g);
}

static void on_gone(void *user)
{
    changing_free(user);
}

static void on_drop(struct activity *a)
{
    changing_free((struct changing *)((char *)a - offsetof(struct changing, activity)));
}

static void on_changed(void *user)
{
    struct changing *g = user;

    http_on_gone(g->call, NULL, NULL);
    reply_network(g->call, g->activity.home);
    changing_free(g);
}

static void change(struct http_call *c, struct persistent *p, const struct net_wish *wish)
{
    struct changing *g = calloc(1, sizeof *g);
    struct err e;
    int r = g ? persistent_set_network(p, wish->policy, on_changed, g, &e)
              : err_set(&e, ERR_HOST, "no memory");

    if (r == 1) {
        g->call = c;
        activity_begin(p, &g->activity, on_drop);
        http_on_gone(c, on_gone, g);
        return;
    }
    free(g);
    if (r < 0)
        http_reply_error(c, &e);
    else
        reply_network(c, p);
}

/* Here the body is what elsewhere is the member `network`. */
static void reply_wrong(struct http_call *c, struct err *e)
{
    static const char within[] = "network.";
    size_t skip = strncmp(e->text, within, sizeof within - 1) == 0 ? sizeof within - 1 : 0;

    memmove(e->text, e->text + skip, strlen(e->text + skip) + 1);
    http_reply_error(c, e);
}

void api_network_put(struct http_call *c)
{
    cleanup_with(net_wish_done) struct net_wish wish = {.mode = NET_NONE};
    const struct http_request *r = http_request(c);
    struct persistent *p = api_sandbox(c);
    struct json_value v;
    struct err e;

    if (!p)
        return;
    if (json_parse(r->body, r->body_n, 0, &v, &e) < 0 ||
        net_decode(&http_app(c)->config, v, &wish, &e) < 0)
        reply_wrong(c, &e);
    else if (wish.mode == NET_HOST)
        http_reply_error(c, (err_set(&e, ERR_CALLER,
                                     "network.mode: 'host' is decided when a "
                                     "sandbox is made"),
                             &e));
    else
        change(c, p, &wish);
}
