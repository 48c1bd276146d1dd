/* SPDX-License-Identifier: MIT */
#include "app/network/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "net/egress_doors.h"

enum { OWNER_MAX = 130, ADVICE_MAX = 700, WORDS_MAX = 512 };

struct network {
    struct app *app;          /* borrowed */
    struct egress_door *door; /* owned; NULL: settled */
    char owner[OWNER_MAX];
    uint32_t ports[NET_PORTS_MAX];
    struct net_gate gate;
    struct egress_row *row; /* owned: once it is settled */
    size_t rows_n;
    uint32_t left_out;
    char reach[WORDS_MAX]; /* what may be reached, in words */
    network_fn *fn;
    void *user;
    bool changing;
};

static void on_row(void *user, const struct egress_row *row)
{
    struct network *n = user;

    if (row->verdict == EGRESS_ALLOWED)
        return;
    log_event(&n->app->log, LOG_INFO, "network_refused", LOG_STR("owner", n->owner),
              LOG_STR("host", row->host), LOG_INT("port", row->port),
              LOG_STR("reason", egress_verdict_name(row->verdict)));
}

static void on_listening(void *user, uint32_t port, int fd)
{
    struct network *n = user;

    if (n->door)
        egress_door_serve(n->door, port, fd);
    else
        (void)close(fd);
}

int network_open(struct app *a, const struct jail *j, const struct egress_policy *p,
                 const char *owner, struct network **ret, struct err *e)
{
    struct network *n;

    if (!net_possible(j, NET_GATE))
        return err_set(e, ERR_CALLER, "network: jail '%s' has no network of its own", j->ops->name);
    n = calloc(1, sizeof *n);
    if (!n)
        return err_set(e, ERR_HOST, "no memory for a network");
    n->app = a;
    (void)snprintf(n->owner, sizeof n->owner, "%s", owner);
    egress_words(p, n->reach, sizeof n->reach);
    n->gate = (struct net_gate){n->ports, net_ports(p, n->ports), on_listening, n};
    if (egress_door_open(a->ways.egress, p, on_row, n, &n->door, e) < 0) {
        free(n);
        return -1;
    }
    *ret = n;
    return 0;
}

static const struct egress_row *rows(const struct network *n, size_t *ret_n, uint32_t *ret_left_out)
{
    if (n->door)
        return egress_door_rows(n->door, ret_n, ret_left_out);
    *ret_n = n->rows_n;
    *ret_left_out = n->left_out;
    return n->row;
}

static void count(struct network *n)
{
    struct metrics *m = &n->app->metrics;
    uint32_t left_out;
    size_t rows_n;
    const struct egress_row *row = rows(n, &rows_n, &left_out);

    for (size_t i = 0; i < rows_n; i++) {
        if (row[i].verdict == EGRESS_ALLOWED)
            m->network_connections += row[i].connections;
        else
            m->network_refused += row[i].connections;
        m->network_bytes += row[i].up + row[i].down;
    }
}

void network_free(struct network *n)
{
    if (!n)
        return;
    if (n->door)
        count(n);
    egress_door_close(n->door);
    free(n->row);
    free(n);
}

const struct net_gate *network_gate(const struct network *n)
{
    return &n->gate;
}

const struct egress_policy *network_policy(const struct network *n)
{
    return n->door ? egress_door_policy(n->door) : NULL;
}

static void on_settled(void *user)
{
    struct network *n = user;
    const struct egress_row *row = rows(n, &n->rows_n, &n->left_out);

    count(n);
    n->row = calloc(n->rows_n + 1, sizeof *n->row);
    if (n->row && n->rows_n > 0)
        memcpy(n->row, row, n->rows_n * sizeof *row);
    if (!n->row)
        n->rows_n = 0;
    egress_door_close(take_ptr(&n->door));
    n->fn(n->user);
}

void network_settle(struct network *n, network_fn *fn, void *user)
{
    n->fn = fn;
    n->user = user;
    egress_door_ask(n->door, on_settled, n);
}

static void on_changed(void *user)
{
    struct network *n = user;
    network_fn *fn = n->fn;

    n->changing = false;
    if (fn)
        fn(n->user);
}

void network_change(struct network *n, const struct egress_policy *p, size_t *ret_first,
                    network_fn *fn, void *user)
{
    uint32_t wanted[NET_PORTS_MAX];
    size_t wanted_n = net_ports(p, wanted);

    *ret_first = n->gate.ports_n;
    for (size_t i = 0; i < wanted_n && n->gate.ports_n < NET_PORTS_MAX; i++) {
        size_t k = 0;

        while (k < n->gate.ports_n && n->ports[k] != wanted[i])
            k++;
        if (k == n->gate.ports_n)
            n->ports[n->gate.ports_n++] = wanted[i];
    }
    egress_words(p, n->reach, sizeof n->reach);
    n->fn = fn;
    n->user = user;
    n->changing = true;
    egress_door_change(n->door, p, on_changed, n);
}

bool network_changing(const struct network *n)
{
    return n->changing;
}

void network_leave(struct network *n)
{
    n->fn = NULL;
}

/* ---- JSON ---- */

static void write_advice(struct jw *w, const struct network *n, const struct egress_row *r)
{
    static const char *const words[EGRESS_VERDICT_COUNT] = {
        [EGRESS_METHOD] = "A rule names this host, but not with this method; over TLS nobody sees "
                          "methods and paths",
        [EGRESS_PATH] = "A rule names this host, but not with this path; over TLS nobody sees "
                        "methods and paths",
        [EGRESS_HOST_MISMATCH] = "The request names another host than the one that it was sent to",
        [EGRESS_SNI_MISMATCH] =
            "The first message of TLS names another host than the one that was asked for",
        [EGRESS_NO_SNI] = "On port 443 the connection must be TLS and name its host",
        [EGRESS_ECH] =
            "TLS that hides the name of its host is refused; turn encrypted client hellos off",
        [EGRESS_ADDRESS] = "Name the host, or write its address as four decimal numbers",
        [EGRESS_PRIVATE_ADDRESS] =
            "The name leads to an address that is not public, which sandboxes may not reach",
        [EGRESS_BAD_REQUEST] = "What the program said is no HTTP, SOCKS or TLS that is passed on",
        [EGRESS_QUOTA] =
            "More bytes than network.bytes_max or the operator's EGRESS_MB allow have passed",
        [EGRESS_BUSY] = "A limit of this server was reached; try again",
        [EGRESS_UNRESOLVED] = "The name leads nowhere; check its spelling",
        [EGRESS_UNREACHABLE] = "The host does not answer; the sandbox may reach it",
    };
    char text[ADVICE_MAX];

    if (words[r->verdict]) {
        jw_kv_string(w, "advice", words[r->verdict]);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "The sandbox may reach %s, not this host and port. Add it to network.allow, or "
                   "ask for that",
                   n->reach);
    jw_kv_string(w, "advice", text);
}

static void write_row(struct jw *w, const struct network *n, const struct egress_row *r)
{
    jw_object(w);
    jw_kv_string(w, "host", r->host);
    jw_kv_int(w, "port", r->port);
    jw_kv_string(w, "verdict", r->verdict == EGRESS_ALLOWED ? "allowed" : "denied");
    jw_kv_int(w, "connections", r->connections);
    if (r->requests > 0)
        jw_kv_int(w, "requests", r->requests);
    if (r->verdict == EGRESS_ALLOWED) {
        jw_kv_int(w, "bytes_up", (int64_t)r->up);
        jw_kv_int(w, "bytes_down", (int64_t)r->down);
    } else {
        jw_kv_string(w, "reason", egress_verdict_name(r->verdict));
        write_advice(w, n, r);
    }
    jw_object_end(w);
}

void network_json(struct jw *w, const struct network *n)
{
    uint32_t left_out;
    size_t rows_n;
    const struct egress_row *row = rows(n, &rows_n, &left_out);

    jw_key(w, "network");
    jw_array(w);
    for (size_t i = 0; i < rows_n; i++)
        write_row(w, n, &row[i]);
    jw_array_end(w);
    if (left_out > 0)
        jw_kv_int(w, "network_left_out", left_out);
}

static void write_strings(struct jw *w, const char *key, const char *text, size_t from, size_t to)
{
    jw_key(w, key);
    jw_array(w);
    for (size_t at = from; at < to; at += strlen(text + at) + 1)
        jw_string(w, text + at);
    jw_array_end(w);
}

static void write_rule(struct jw *w, const struct egress_policy *p, const struct egress_rule *r)
{
    char host[EGRESS_HOST_TEXT_MAX + 8];
    uint16_t methods = r->methods;

    egress_rule_words(p, r, host, sizeof host);
    if (!r->methods && r->paths[0] == r->paths[1]) {
        jw_string(w, host);
        return;
    }
    jw_object(w);
    jw_kv_string(w, "host", host);
    if (methods) {
        jw_key(w, "methods");
        jw_array(w);
        for (size_t i = 0; egress_method(i); i++)
            if (methods & BIT(i))
                jw_string(w, egress_method(i));
        jw_array_end(w);
    }
    if (r->paths[0] != r->paths[1])
        write_strings(w, "paths", p->text, r->paths[0], r->paths[1]);
    jw_object_end(w);
}

void network_policy_json(struct jw *w, const struct egress_policy *p)
{
    bool none = p->mode == EGRESS_ALLOW && p->rules_n == 0;

    jw_kv_string(w, "mode", net_mode_name(none ? NET_NONE : NET_GATE, p));
    jw_key(w, p->mode == EGRESS_PUBLIC ? "deny" : "allow");
    jw_array(w);
    for (size_t i = 0; i < p->rules_n; i++)
        write_rule(w, p, &p->rule[i]);
    jw_array_end(w);
    if (p->mode == EGRESS_PUBLIC && p->ports_n > 0) {
        jw_key(w, "ports");
        jw_array(w);
        for (size_t i = 0; i < p->ports_n; i++)
            jw_int(w, p->port[i]);
        jw_array_end(w);
    }
    jw_kv_bool(w, "transparent", p->transparent);
    jw_kv_int(w, "bytes_max", (int64_t)p->bytes_max);
}
