/* SPDX-License-Identifier: MIT */
#include "net/webhook_rules.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS_V4 = 32, BITS_V6 = 128, MAPPED = 96, ROW_MAX = 300, HTTP = 80, HTTPS = 443 };

enum kind { KIND_PUBLIC, KIND_PRIVATE, KIND_SPECIAL };

/* The first row that has an address decides; "::ffff:a.b.c.d/96+n" is a network of IPv4. */
static const struct {
    const char *network;
    unsigned bits;
    enum kind kind;
} networks[] = {
    {"::ffff:100.100.100.200", 128, KIND_SPECIAL}, /* metadata */
    {"::ffff:168.63.129.16",   128, KIND_SPECIAL}, /* metadata */
    {"fd00:ec2::254",          128, KIND_SPECIAL}, /* metadata */
    {"fd20:ce::254",           128, KIND_SPECIAL}, /* metadata */
    {"::ffff:169.254.0.0",     112, KIND_SPECIAL}, /* link-local, metadata */
    {"::ffff:0.0.0.0",         104, KIND_SPECIAL}, /* this host */
    {"::ffff:192.0.0.0",       120, KIND_SPECIAL}, /* of protocols, metadata */
    {"::ffff:224.0.0.0",       99,  KIND_SPECIAL}, /* multicast, reserved, broadcast */
    {"::ffff:10.0.0.0",        104, KIND_PRIVATE},
    {"::ffff:100.64.0.0",      106, KIND_PRIVATE}, /* of carriers */
    {"::ffff:127.0.0.0",       104, KIND_PRIVATE}, /* loopback */
    {"::ffff:172.16.0.0",      108, KIND_PRIVATE},
    {"::ffff:192.168.0.0",     112, KIND_PRIVATE},
    {"::ffff:198.18.0.0",      111, KIND_PRIVATE}, /* of measurements */
    {"::ffff:0.0.0.0",         96,  KIND_PUBLIC }, /* the rest of IPv4 */
    {"::1",                    128, KIND_PRIVATE}, /* loopback */
    {"::",                     96,  KIND_SPECIAL}, /* unspecified, IPv4-compatible */
    {"fc00::",                 7,   KIND_PRIVATE},
    {"fe80::",                 10,  KIND_SPECIAL}, /* link-local */
    {"fec0::",                 10,  KIND_SPECIAL}, /* site-local */
    {"64:ff9b:1::",            48,  KIND_SPECIAL}, /* translated by a gateway */
    {"2001::",                 32,  KIND_SPECIAL}, /* Teredo */
    {"ff00::",                 8,   KIND_SPECIAL}, /* multicast */
};

/* ---- addresses ---- */

static bool is_within(const struct in6_addr *a, const struct in6_addr *network, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    unsigned mask = rest ? 0xffu << (8 - rest) & 0xffu : 0;

    return memcmp(a->s6_addr, network->s6_addr, whole) == 0 &&
           (!rest || (a->s6_addr[whole] & mask) == (network->s6_addr[whole] & mask));
}

static void map_v4(const void *v4, struct in6_addr *out)
{
    memset(out, 0, sizeof *out);
    out->s6_addr[10] = out->s6_addr[11] = 0xff;
    memcpy(out->s6_addr + 12, v4, 4);
}

/* Those that a gateway turns into addresses of IPv4 count as these. */
static void unwrap(struct in6_addr *a)
{
    static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b}, six_to_four[2] = {0x20, 0x02};
    unsigned char v4[4];

    if (memcmp(a->s6_addr, nat64, sizeof nat64) == 0)
        memcpy(v4, a->s6_addr + 12, sizeof v4);
    else if (memcmp(a->s6_addr, six_to_four, sizeof six_to_four) == 0)
        memcpy(v4, a->s6_addr + 2, sizeof v4);
    else
        return;
    map_v4(v4, a);
}

static enum kind kind_of(const struct in6_addr *a)
{
    struct in6_addr network;

    for (size_t i = 0; i < ARRAY_LEN(networks); i++)
        if (inet_pton(AF_INET6, networks[i].network, &network) == 1 &&
            is_within(a, &network, networks[i].bits))
            return networks[i].kind;
    return KIND_PUBLIC;
}

static bool parse_address(const char *text, struct in6_addr *out)
{
    struct in_addr v4;

    if (inet_pton(AF_INET6, text, out) == 1)
        return true;
    if (inet_pton(AF_INET, text, &v4) != 1)
        return false;
    map_v4(&v4, out);
    return true;
}

static bool is_port(const struct webhook_rule *r, uint16_t port)
{
    return r->any_port || (r->port ? r->port == port : port == HTTP || port == HTTPS);
}

static bool has_address(const struct webhook_rules *r, const struct in6_addr *a, uint16_t port)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct webhook_rule *row = &r->v[i];

        if (!row->name[0] && !row->below && is_port(row, port) &&
            is_within(a, &row->network, row->bits))
            return true;
    }
    return false;
}

static bool may_be_at(const struct webhook_rules *r, enum webhook_reach reach, struct in6_addr a,
                      uint16_t port)
{
    enum kind kind;

    if (has_address(r, &a, port))
        return true;
    unwrap(&a);
    kind = kind_of(&a);
    return (kind == KIND_PUBLIC && reach != WEBHOOK_NOWHERE) ||
           (kind == KIND_PRIVATE && reach == WEBHOOK_PRIVATE);
}

bool webhook_rules_address(const struct webhook_rules *r, enum webhook_reach reach,
                           const struct sockaddr *to)
{
    struct in6_addr a;

    if (to->sa_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)to;

        return may_be_at(r, reach, six->sin6_addr, ntohs(six->sin6_port));
    }
    if (to->sa_family != AF_INET)
        return false;
    map_v4(&((const struct sockaddr_in *)(const void *)to)->sin_addr, &a);
    return may_be_at(r, reach, a, ntohs(((const struct sockaddr_in *)(const void *)to)->sin_port));
}

bool webhook_rules_literal(const struct webhook_rules *r, enum webhook_reach reach,
                           const char *host, uint16_t port)
{
    struct in6_addr a;

    return !parse_address(host, &a) || may_be_at(r, reach, a, port);
}

/* ---- names ---- */

static bool is_below(const char *host, const char *domain)
{
    size_t n = strlen(host), m = strlen(domain);

    return m == 0 || (n > m + 1 && host[n - m - 1] == '.' && strcmp(host + n - m, domain) == 0);
}

enum webhook_reach webhook_rules_host(const struct webhook_rules *r, const char *host,
                                      uint16_t port)
{
    enum webhook_reach reach = WEBHOOK_NOWHERE;
    struct in6_addr a;

    if (parse_address(host, &a) && has_address(r, &a, port))
        return WEBHOOK_PRIVATE;
    for (size_t i = 0; i < r->n; i++) {
        const struct webhook_rule *row = &r->v[i];

        if (!is_port(row, port))
            continue;
        if (row->below && is_below(host, row->name) && reach == WEBHOOK_NOWHERE)
            reach = WEBHOOK_PUBLIC;
        else if (!row->below && row->name[0] && strcmp(host, row->name) == 0)
            reach = WEBHOOK_PRIVATE;
    }
    return reach;
}

/* ---- the option ---- */

static bool take_port(char *text, struct webhook_rule *row)
{
    char *colon = strrchr(text, ':'), *end;
    unsigned long port;

    if (!colon || strchr(colon, ']') || (text[0] != '[' && strchr(text, ':') != colon))
        return true; /* none, or a part of an IPv6 address */
    *colon = '\0';
    if (strcmp(colon + 1, "*") == 0) {
        row->any_port = true;
        return true;
    }
    port = strtoul(colon + 1, &end, 10);
    row->port = (uint16_t)port;
    return colon[1] >= '0' && colon[1] <= '9' && !*end && port > 0 && port <= UINT16_MAX;
}

/* "address" or "address/bits". */
static bool take_network(char *text, struct webhook_rule *row)
{
    char *slash = strchr(text, '/'), *end = NULL;
    size_t n = strlen(text);
    bool four;

    if (text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        text++;
    }
    if (slash)
        *slash = '\0';
    four = !strchr(text, ':');
    if (!parse_address(text, &row->network))
        return false;
    row->bits = slash ? (unsigned)strtoul(slash + 1, &end, 10) : four ? BITS_V4 : BITS_V6;
    if (slash &&
        (slash[1] < '0' || slash[1] > '9' || *end || row->bits > (four ? BITS_V4 : BITS_V6)))
        return false;
    row->bits += four ? MAPPED : 0;
    return true;
}

static bool take_name(const char *text, struct webhook_rule *row)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n;

    row->below = text[0] == '*';
    if (row->below && !text[1])
        return true;
    if (row->below && text[1] != '.')
        return false;
    text += row->below ? 2 : 0;
    n = strlen(text);
    if (n == 0 || n >= sizeof row->name || text[strspn(text, allowed)] || text[0] == '.')
        return false;
    memcpy(row->name, text, n + 1);
    return true;
}

static bool take_row(const char *p, size_t n, struct webhook_rule *row)
{
    char text[ROW_MAX];

    *row = (struct webhook_rule){0};
    if (n >= sizeof text)
        return false;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(p[i] >= 'A' && p[i] <= 'Z' ? p[i] - 'A' + 'a' : p[i]);
    text[n] = '\0';
    if (!take_port(text, row))
        return false;
    return take_network(text, row) || (!memchr(p, '/', n) && take_name(text, row));
}

int webhook_rules_parse(const char *text, struct webhook_rules *ret, struct err *e)
{
    ret->n = 0;
    for (const char *p = text; *p; p += *p == ',') {
        size_t n = strcspn(p, ","), skip = strspn(p, " \t"), end = n;

        while (end > skip && (p[end - 1] == ' ' || p[end - 1] == '\t'))
            end--;
        if (end > skip && ret->n == WEBHOOK_RULES_MAX)
            return err_set(e, ERR_CALLER, "WEBHOOK_HOSTS: more than %d hosts", WEBHOOK_RULES_MAX);
        if (end > skip && !take_row(p + skip, end - skip, &ret->v[ret->n++]))
            return err_set(e, ERR_CALLER,
                           "WEBHOOK_HOSTS: '%.*s' is no host, *.domain, address or network, with "
                           "or without a :port",
                           end - skip < 100 ? (int)(end - skip) : 100, p + skip);
        p += n;
    }
    return 0;
}
