/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/port_net.h"

enum { MB = 20, MS_PER_S = 1000 };

const char *net_mode_name(enum net_mode m, const struct egress_policy *p)
{
    if (m == NET_GATE)
        return p && p->mode == EGRESS_PUBLIC ? "public" : "allow";
    return m == NET_HOST ? "host" : "none";
}

bool net_possible(const struct jail *j, enum net_mode m)
{
    return m != NET_GATE || j->traits & JAIL_NET;
}

enum net_mode net_effective(const struct jail *j, enum net_mode m)
{
    return j->traits & JAIL_NET ? m : NET_HOST;
}

void net_wish_done(struct net_wish *w)
{
    free(w->policy);
    *w = (struct net_wish){.mode = NET_NONE};
}

/* ---- what the operator permits ---- */

/* EGRESS_HOSTS as a policy; NULL: any host. */
static int read_bound(const struct config *c, struct egress_policy **ret, struct err *e)
{
    cleanup_free struct egress_policy *p = NULL;

    *ret = NULL;
    if (!c->egress_hosts[0])
        return 0;
    p = malloc(sizeof *p);
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a policy");
    egress_policy_init(p, EGRESS_ALLOW);
    for (const char *at = c->egress_hosts; *at;) {
        size_t n;

        at += strspn(at, ", ");
        n = strcspn(at, ", ");
        if (n > 0 && egress_rule_add(p, at, n, e) < 0)
            return err_wrap(e, "EGRESS_HOSTS");
        at += n;
    }
    *ret = take_ptr(&p);
    return 0;
}

static int check_bound(const struct config *c, const struct egress_policy *p, struct err *e)
{
    cleanup_free struct egress_policy *bound = NULL;

    if (read_bound(c, &bound, e) < 0)
        return -1;
    for (size_t i = 0; bound && i < p->rules_n; i++)
        if (!egress_covers(bound, p, i))
            return err_set(e, ERR_DENIED, "network.allow[%zu]: '%s' is not among EGRESS_HOSTS", i,
                           p->text + p->rule[i].host);
    return 0;
}

static int permit(const struct config *c, enum egress_mode mode, struct err *e)
{
    if (strcmp(c->egress, "public") == 0 ||
        (mode == EGRESS_ALLOW && strcmp(c->egress, "allow") == 0))
        return 0;
    return err_set(e, ERR_DENIED, "network.mode: '%s' needs EGRESS=%s",
                   mode == EGRESS_PUBLIC ? "public" : "allow",
                   mode == EGRESS_PUBLIC ? "public" : "allow or EGRESS=public");
}

/* What is not the request's to say. */
static int bound(const struct config *c, struct egress_policy *p, struct err *e)
{
    p->connections_max = (uint32_t)c->egress_connections;
    p->dial_ms = (uint32_t)c->egress_dial_ms;
    p->idle_ms = (uint32_t)(c->egress_idle_s * MS_PER_S);
    p->pin_s = (uint32_t)c->egress_pin_s;
    if (p->bytes_max == 0 || p->bytes_max > c->egress_mb << MB)
        p->bytes_max = c->egress_mb << MB;
    if (egress_nets_read(c->egress_deny, p->deny, &p->deny_n, e) < 0)
        return err_wrap(e, "EGRESS_DENY");
    if (p->mode == EGRESS_PUBLIC)
        return 0;
    if (egress_nets_read(c->egress_private, p->private, &p->private_n, e) < 0)
        return err_wrap(e, "EGRESS_PRIVATE");
    return check_bound(c, p, e);
}

int net_check_config(const struct config *c, struct err *e)
{
    cleanup_free struct egress_policy *p = NULL;
    struct egress_net nets[EGRESS_NETS_MAX];
    size_t n;

    if (strcmp(c->egress, "off") != 0 && strcmp(c->egress, "allow") != 0 &&
        strcmp(c->egress, "public") != 0)
        return err_set(e, ERR_CALLER, "EGRESS: must be off, allow or public");
    if (egress_nets_read(c->egress_private, nets, &n, e) < 0)
        return err_wrap(e, "EGRESS_PRIVATE");
    if (egress_nets_read(c->egress_deny, nets, &n, e) < 0)
        return err_wrap(e, "EGRESS_DENY");
    return read_bound(c, &p, e);
}

/* ---- what a request says ---- */

struct network_body {
    struct bytes mode;
    struct json_value allow, ports;
    struct shape_strings deny;
    int64_t bytes_max;
    bool transparent;
};

#define AT(member) offsetof(struct network_body, member)
/* clang-format off */
static const struct shape_field fields[] = {
    {"mode", SHAPE_STRING, 0, AT(mode),
     .help = "none, allow: what `allow` names; public: everything at a public address but what `deny` names; host"},
    {"allow", SHAPE_RAW, 0, AT(allow), .accepts = BIT(JSON_ARRAY),
     .schema = "{\"type\":\"array\",\"maxItems\":64,\"items\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\","
               "\"properties\":{\"host\":{\"type\":\"string\"},\"methods\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
               "\"paths\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"host\"],"
               "\"additionalProperties\":false}]}}",
     .help = "hosts: example.com, *.example.com, example.com:5432, 10.1.0.0/16; or objects that name methods and "
             "paths of plain HTTP, too. Ports 80 and 443 unless one is named"},
    {"deny", SHAPE_LIST, 0, AT(deny), 0, EGRESS_RULES_MAX, NULL, "hosts that are not public after all"},
    {"ports", SHAPE_RAW, 0, AT(ports), .accepts = BIT(JSON_ARRAY),
     .schema = "{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"integer\"}}",
     .help = "of public: ports beside 80 and 443"},
    {"bytes_max", SHAPE_INT, 0, AT(bytes_max), 1, 0, NULL, "both directions together; at most EGRESS_MB"},
    {"transparent", SHAPE_BOOL, 0, AT(transparent),
     .help = "programs that know no proxy arrive, too; default true. Else ports 80 and 443 are theirs to listen at"},
};
/* clang-format on */
#undef AT
const struct shape network_shape = {fields, ARRAY_LEN(fields), SHAPE_NULLS, "Network"};

/* The text of a JSON string that needs no decoding: no host and no path has an escape. */
static struct bytes plain(struct json_value v)
{
    return v.type == JSON_STRING && !memchr(v.p, '\\', v.n) ? (struct bytes){v.p + 1, v.n - 2}
                                                            : (struct bytes){"", 0};
}

typedef int add_fn(struct egress_policy *p, const char *text, size_t n, struct err *e);

static int read_list(struct egress_policy *p, struct json_value list, const char *name, add_fn *add,
                     struct err *e)
{
    struct json_value item;
    size_t at = 0;

    if (list.type != JSON_ARRAY)
        return err_set(e, ERR_CALLER, "%s: must be a list of strings", name);
    for (size_t i = 0; json_array_next(list, &at, &item); i++)
        if (add(p, plain(item).p, plain(item).n, e) < 0)
            return err_wrap(e, "%s[%zu]", name, i);
    return 0;
}

static int read_object(struct egress_policy *p, struct json_value rule, struct err *e)
{
    struct json_value host = json_member(rule, "host"), key, value;
    size_t at = 0;

    if (egress_rule_add(p, plain(host).p, plain(host).n, e) < 0)
        return err_wrap(e, "host");
    while (json_object_next(rule, &at, &key, &value)) {
        int r = json_key_is(key, "methods") ? read_list(p, value, "methods", egress_rule_method, e)
                : json_key_is(key, "paths") ? read_list(p, value, "paths", egress_rule_path, e)
                : json_key_is(key, "host")
                    ? 0
                    : err_set(e, ERR_CALLER, "%.*s: a rule has host, methods and paths",
                              value.n > 40 ? 40 : (int)key.n, key.p);

        if (r < 0)
            return -1;
    }
    return 0;
}

static int read_allow(struct egress_policy *p, struct json_value list, struct err *e)
{
    struct json_value item;
    size_t at = 0;

    for (size_t i = 0; list.p && json_array_next(list, &at, &item); i++)
        if (item.type == JSON_OBJECT ? read_object(p, item, e) < 0
                                     : egress_rule_add(p, plain(item).p, plain(item).n, e) < 0)
            return err_wrap(e, "network.allow[%zu]", i);
    return 0;
}

static int read_deny(struct egress_policy *p, const struct shape_strings *list, struct err *e)
{
    for (size_t i = 0; i < list->n; i++)
        if (egress_rule_add(p, list->v[i].value.p, list->v[i].value.n, e) < 0)
            return err_wrap(e, "network.deny[%zu]", i);
    return 0;
}

static int read_ports(struct egress_policy *p, struct json_value list, struct err *e)
{
    struct json_value item;
    size_t at = 0;
    int64_t port;

    for (size_t i = 0; list.p && json_array_next(list, &at, &item); i++)
        if (egress_port_add(p, json_to_int(item, &port) ? port : 0, e) < 0)
            return err_wrap(e, "network.ports[%zu]", i);
    return 0;
}

static int read_policy(const struct network_body *b, struct egress_policy *p, struct err *e)
{
    if (p->mode == EGRESS_PUBLIC ? b->allow.p != NULL : b->deny.n > 0 || b->ports.p)
        return err_set(e, ERR_CALLER, "network.%s: not with mode '%s'",
                       p->mode == EGRESS_PUBLIC ? "allow"
                       : b->ports.p             ? "ports"
                                                : "deny",
                       p->mode == EGRESS_PUBLIC ? "public" : "allow");
    p->transparent = b->transparent;
    p->bytes_max = (uint64_t)b->bytes_max;
    return read_allow(p, b->allow, e) < 0 || read_deny(p, &b->deny, e) < 0
               ? -1
               : read_ports(p, b->ports, e);
}

static bool is(struct bytes b, const char *word)
{
    return b.n == strlen(word) && memcmp(b.p, word, b.n) == 0;
}

static int decode_mode(const struct config *c, const struct network_body *b, struct net_wish *ret,
                       struct err *e)
{
    cleanup_free struct egress_policy *p = NULL;

    if (is(b->mode, "none"))
        return 0;
    if (is(b->mode, "host") && !c->host_network)
        return err_set(e, ERR_DENIED, "network.mode: 'host' needs ALLOW_HOST_NETWORK=true");
    if (is(b->mode, "host")) {
        ret->mode = NET_HOST;
        return 0;
    }
    if (!is(b->mode, "allow") && !is(b->mode, "public"))
        return err_set(e, ERR_CALLER, "network.mode: must be none, allow, public or host");
    p = malloc(sizeof *p);
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a policy");
    egress_policy_init(p, is(b->mode, "public") ? EGRESS_PUBLIC : EGRESS_ALLOW);
    if (read_policy(b, p, e) < 0 || permit(c, p->mode, e) < 0 || bound(c, p, e) < 0)
        return -1;
    ret->mode = NET_GATE;
    ret->policy = take_ptr(&p);
    return 0;
}

int net_decode(const struct config *c, struct json_value v, struct net_wish *ret, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct network_body b = {
        .mode = {"none", 4},
          .transparent = true
    };

    *ret = (struct net_wish){.mode = NET_NONE};
    if (!v.p || v.type == JSON_NULL)
        return 0;
    shaping_init(&s, c);
    if (v.type == JSON_STRING)
        b.mode = plain(v);
    else if (shaping_reserve(&s, v.n) < 0 || shape_value(&network_shape, v, "network", &b, &s) < 0)
        return shape_err(&s, e);
    else if (is(b.mode, "none") && (b.allow.p || b.deny.n > 0) && !json_member(v, "mode").p)
        return err_set(e, ERR_CALLER, "network.mode: must be none, allow, public or host");
    return decode_mode(c, &b, ret, e);
}

int net_wish_hosts(const struct config *c, enum egress_mode mode, const struct exec_var *hosts,
                   size_t n, struct net_wish *ret, struct err *e)
{
    cleanup_free struct egress_policy *p = malloc(sizeof *p);

    *ret = (struct net_wish){.mode = NET_NONE};
    if (!p)
        return err_set(e, ERR_HOST, "no memory for a policy");
    egress_policy_init(p, mode);
    p->transparent = true;
    for (size_t i = 0; i < n; i++)
        if (egress_rule_add(p, hosts[i].value.p, hosts[i].value.n, e) < 0)
            return -1;
    if (permit(c, mode, e) < 0 || bound(c, p, e) < 0)
        return -1;
    ret->mode = NET_GATE;
    ret->policy = take_ptr(&p);
    return 0;
}

/* ---- inside ---- */

size_t net_vars(const struct exec_var *given, size_t given_n, struct exec_var out[NET_VARS_MAX])
{
    static const struct {
        const char *name, *value;
    } vars[] = {
        {"http_proxy",         NET_PROXY_URL            },
        {"https_proxy",        NET_PROXY_URL            },
        {"all_proxy",          NET_PROXY_URL            },
        {"HTTP_PROXY",         NET_PROXY_URL            },
        {"HTTPS_PROXY",        NET_PROXY_URL            },
        {"ALL_PROXY",          NET_PROXY_URL            },
        {"no_proxy",           "localhost,127.0.0.1,::1"},
        {"NO_PROXY",           "localhost,127.0.0.1,::1"},
        {"NODE_USE_ENV_PROXY", "1"                      },
    };
    size_t n = 0;

    _Static_assert(ARRAY_LEN(vars) <= NET_VARS_MAX, "room for all of them");
    for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
        const struct bytes name = {vars[i].name, strlen(vars[i].name)};
        size_t k = 0;

        while (k < given_n && !is(given[k].name, vars[i].name))
            k++;
        if (k == given_n)
            out[n++] = (struct exec_var){
                name, {vars[i].value, strlen(vars[i].value)}
            };
    }
    return n;
}

size_t net_ports(const struct egress_policy *p, uint32_t out[NET_PORTS_MAX])
{
    enum { NAMES = 53 };
    size_t n = 0;

    out[n++] = NET_PROXY_PORT;
    if (!p->transparent)
        return n;
    out[n++] = NAMES | NET_PORT_DATAGRAM;
    out[n++] = EGRESS_HTTP | NET_PORT_EVERY;
    out[n++] = EGRESS_TLS | NET_PORT_EVERY;
    for (size_t i = 0; i < p->ports_n; i++)
        if (p->port[i] != NET_PROXY_PORT)
            out[n++] = p->port[i] | NET_PORT_EVERY;
    return n;
}
