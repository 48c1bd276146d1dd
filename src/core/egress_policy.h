/* SPDX-License-Identifier: MIT */
/*
 * What one sandbox may reach: names, ports, methods and paths. Pure.
 *
 * A policy is one struct without pointers, so that it travels between processes as it is. The
 * daemon makes it once (egress_read.h); the door of the sandbox asks it for every connection and
 * every plain request, and the dialler asks it again before it connects.
 *
 *   allow    what a rule names, and nothing else
 *   public   everything but what a rule names, at addresses of the public Internet
 *
 * A rule with methods or paths speaks of plain HTTP requests; a connection whose content is not
 * looked at needs a rule without.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

enum {
    EGRESS_NAME_MAX = 253,
    EGRESS_HOST_TEXT_MAX = EGRESS_NAME_MAX + 16, /* "*.name:port" */
    EGRESS_RULES_MAX = 64,
    EGRESS_PORTS_MAX = 16, /* named in one policy, beside 80 and 443 */
    EGRESS_NETS_MAX = 32,
    EGRESS_TEXT_MAX = 12 * 1024, /* names and paths of all rules */
    EGRESS_PATH_MAX = 8192,      /* of a request, without its query */
    EGRESS_PATHS_MAX = 32,       /* of one rule */
    EGRESS_HTTP = 80,
    EGRESS_TLS = 443,
};

enum egress_mode { EGRESS_ALLOW, EGRESS_PUBLIC };

/* What became of a connection, or why it was refused. In the order of the words of the API. */
enum egress_verdict {
    EGRESS_ALLOWED,
    EGRESS_NOT_ALLOWED,     /* no rule names it */
    EGRESS_METHOD,          /* a rule does, but not with this method */
    EGRESS_PATH,            /* nor with this path */
    EGRESS_HOST_MISMATCH,   /* the request names another host than the connection */
    EGRESS_SNI_MISMATCH,    /* so does the client hello */
    EGRESS_NO_SNI,          /* it names none, or is none */
    EGRESS_ECH,             /* it hides the name */
    EGRESS_ADDRESS,         /* an address in a spelling that is none of ours */
    EGRESS_PRIVATE_ADDRESS, /* the name leads to no public address */
    EGRESS_BAD_REQUEST,     /* what was said is malformed */
    EGRESS_QUOTA,           /* more bytes than allowed have passed */
    EGRESS_BUSY,            /* a limit of ours */
    EGRESS_UNRESOLVED,      /* the name leads nowhere */
    EGRESS_UNREACHABLE,     /* the host does not answer */
    EGRESS_VERDICT_COUNT,
};
const char *egress_verdict_name(enum egress_verdict v);

enum egress_host_kind {
    EGRESS_HOST_BAD,
    EGRESS_HOST_NAME,
    EGRESS_HOST_ADDRESS, /* as inet_ntop() writes it */
    EGRESS_HOST_ODD,     /* no name, and no usual spelling of an address: 127.1, 0x7f000001 */
};
/* A host as somebody wrote it, in the one spelling that everything here compares: lower case,
 * without a final dot; an IPv6 address without its brackets. */
enum egress_host_kind egress_host_read(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1]);
/* "host", "host:port", "[address]:port"; without a port *ret_port stays. */
enum egress_host_kind egress_target_read(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1],
                                         uint16_t *ret_port);

struct egress_net { /* addresses that begin alike */
    uint8_t address[16];
    uint8_t bytes; /* 4 or 16 */
    uint8_t bits;
};
/* "10.0.0.0/8", "fd00::/8", or one address. */
bool egress_net_read(const char *text, struct egress_net *ret);
bool egress_net_has(const struct egress_net *n, const struct sockaddr *a);

struct egress_rule {
    uint16_t host;     /* in text; ".example.com": everything below it; "": see net */
    uint16_t port;     /* 0: 80 and 443 */
    uint16_t paths[2]; /* first and behind the last, as offsets in text; equal: any */
    uint16_t methods;  /* BIT(enum) of egress_method(); 0: any */
    bool any_address;  /* the operator vouches for it: its addresses are not looked at */
    bool is_net;       /* the host must be an address in net */
    struct egress_net net;
};

struct egress_policy {
    enum egress_mode mode;
    bool transparent;         /* names are answered, and ports 80, 443 and `port` are served */
    uint32_t connections_max; /* at the same time */
    uint32_t dial_ms;         /* a host must answer by then */
    uint32_t idle_ms;         /* a connection that moves nothing for so long is closed */
    uint32_t pin_s;           /* how long a name keeps its addresses */
    uint64_t bytes_max;       /* in both directions together */
    size_t rules_n, ports_n, private_n, deny_n, text_n;
    struct egress_rule rule[EGRESS_RULES_MAX];
    uint16_t port[EGRESS_PORTS_MAX];            /* further ones that may be reached */
    struct egress_net private[EGRESS_NETS_MAX]; /* that may be reached although not public */
    struct egress_net deny[EGRESS_NETS_MAX];    /* that may not, although public */
    char text[EGRESS_TEXT_MAX];
};

/* ---- making ---- */

void egress_policy_init(struct egress_policy *p, enum egress_mode mode);
/* One rule without methods and paths: "host", "*.host", "host:port", an address or a network.
 * ERR_CALLER. */
must_check int egress_rule_add(struct egress_policy *p, const char *host, size_t n, struct err *e);
/* To the last rule that was added. */
must_check int egress_rule_method(struct egress_policy *p, const char *name, size_t n,
                                  struct err *e);
must_check int egress_rule_path(struct egress_policy *p, const char *path, size_t n, struct err *e);
must_check int egress_port_add(struct egress_policy *p, int64_t port, struct err *e);
/* "10.0.0.0/8, fd00::/8" */
must_check int egress_nets_read(const char *text, struct egress_net nets[EGRESS_NETS_MAX],
                                size_t *ret_n, struct err *e);
/* Does `bound` let everything pass that rule `i` of p lets pass? */
bool egress_covers(const struct egress_policy *bound, const struct egress_policy *p, size_t i);

/* ---- asking ---- */

/* The path of a request in the one spelling that rules compare, without its query: dot segments
 * removed, unreserved characters decoded. False: it can be read in two ways. */
bool egress_path_clean(const char *p, size_t n, char out[EGRESS_PATH_MAX + 1]);
/* Segments, "*" within one, "**" for any number of them. */
bool egress_path_matches(const char *pattern, const char *path);

/* A connection whose content is not looked at. *ret_any_address: see the rule. */
enum egress_verdict egress_look(const struct egress_policy *p, const char *host, uint16_t port,
                                bool *ret_any_address);
/* May there be a plain request at all? */
enum egress_verdict egress_look_http(const struct egress_policy *p, const char *host,
                                     uint16_t port);
/* May there be this one? */
enum egress_verdict egress_look_request(const struct egress_policy *p, const char *host,
                                        uint16_t port, const char *method, const char *path);
/* A rule as it was written: "*.example.com:8080". */
void egress_rule_words(const struct egress_policy *p, const struct egress_rule *r, char *out,
                       size_t room);
/* Methods that rules may name, in the order of their bits; NULL behind the last. */
const char *egress_method(size_t i);
/* "pypi.org, files.pythonhosted.org and 3 more": what a policy names, for advice. */
void egress_words(const struct egress_policy *p, char *out, size_t room);
