/* SPDX-License-Identifier: MIT */
#include "core/egress_policy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 63, PORT_MAX = 65535, NAMED_MAX = 3 };

static const char *const verdicts[EGRESS_VERDICT_COUNT] = {
    [EGRESS_ALLOWED] = "allowed",
    [EGRESS_NOT_ALLOWED] = "not_allowed",
    [EGRESS_METHOD] = "method",
    [EGRESS_PATH] = "path",
    [EGRESS_HOST_MISMATCH] = "host_mismatch",
    [EGRESS_SNI_MISMATCH] = "sni_mismatch",
    [EGRESS_NO_SNI] = "no_sni",
    [EGRESS_ECH] = "ech",
    [EGRESS_ADDRESS] = "address",
    [EGRESS_PRIVATE_ADDRESS] = "private_address",
    [EGRESS_BAD_REQUEST] = "bad_request",
    [EGRESS_QUOTA] = "quota",
    [EGRESS_BUSY] = "busy",
    [EGRESS_UNRESOLVED] = "unresolved",
    [EGRESS_UNREACHABLE] = "unreachable",
};

const char *egress_verdict_name(enum egress_verdict v)
{
    return verdicts[v];
}

/* ---- hosts ---- */

/* What a resolver may take for a part of an address: digits, or 0x and hexadecimal ones. */
static bool label_is_number(const char *p, size_t n)
{
    bool hex = n >= 2 && p[0] == '0' && tolower((unsigned char)p[1]) == 'x';

    for (size_t i = hex ? 2 : 0; i < n; i++)
        if (hex ? !isxdigit((unsigned char)p[i]) : !isdigit((unsigned char)p[i]))
            return false;
    return n > 0;
}

static bool label_is_good(const char *p, size_t n)
{
    if (n == 0 || n > LABEL_MAX || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)p[i]) && p[i] != '-' && p[i] != '_')
            return false;
    return true;
}

static enum egress_host_kind read_address(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1])
{
    char text[INET6_ADDRSTRLEN];
    uint8_t raw[16];
    int family;

    if (n >= sizeof text || memchr(p, '\0', n))
        return EGRESS_HOST_BAD;
    memcpy(text, p, n);
    text[n] = '\0';
    family = strchr(text, ':') ? AF_INET6 : AF_INET;
    if (inet_pton(family, text, raw) != 1)
        return family == AF_INET ? EGRESS_HOST_ODD : EGRESS_HOST_BAD;
    (void)inet_ntop(family, raw, out, EGRESS_NAME_MAX + 1);
    return EGRESS_HOST_ADDRESS;
}

static void keep_odd(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1])
{
    for (size_t i = 0; i < n; i++)
        out[i] = (char)tolower((unsigned char)p[i]);
    out[n] = '\0';
}

enum egress_host_kind egress_host_read(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1])
{
    size_t label = 0, label_n = 0;
    enum egress_host_kind kind;

    if (n > 0 && p[n - 1] == '.')
        n--;
    if (n == 0 || n > EGRESS_NAME_MAX)
        return EGRESS_HOST_BAD;
    if (memchr(p, ':', n))
        return read_address(p, n, out);
    for (size_t at = 0; at <= n; at++) {
        if (at < n && p[at] != '.')
            continue;
        label_n = at - label;
        if (!label_is_good(p + label, label_n))
            return EGRESS_HOST_BAD;
        if (at < n)
            label = at + 1;
    }
    keep_odd(p, n, out);
    if (!label_is_number(p + label, label_n))
        return EGRESS_HOST_NAME;
    kind = read_address(p, n, out);
    return kind == EGRESS_HOST_ADDRESS ? kind : EGRESS_HOST_ODD;
}

/* 1 to 65535 in at most five digits; 0: no such number. */
static uint16_t port_read(const char *p, size_t n)
{
    uint32_t v = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)p[i]) || i >= 5)
            return 0;
        v = v * 10 + (uint32_t)(p[i] - '0');
    }
    return v <= PORT_MAX ? (uint16_t)v : 0;
}

enum egress_host_kind egress_target_read(const char *p, size_t n, char out[EGRESS_NAME_MAX + 1],
                                         uint16_t *ret_port)
{
    const char *end = n > 0 && p[0] == '[' ? memchr(p, ']', n) : NULL;
    const char *colon = end ? end + 1 : memchr(p, ':', n);
    const char *host = end ? p + 1 : p;
    size_t left = colon ? n - (size_t)(colon - p) : 0;

    if (n > 0 && p[0] == '[' && !end)
        return EGRESS_HOST_BAD;
    if (left > 0) {
        uint16_t port = colon[0] == ':' ? port_read(colon + 1, left - 1) : 0;

        if (port == 0)
            return EGRESS_HOST_BAD;
        *ret_port = port;
    }
    if (end)
        return memchr(host, ':', (size_t)(end - host))
                   ? egress_host_read(host, (size_t)(end - host), out)
                   : EGRESS_HOST_BAD;
    return egress_host_read(host, n - left, out);
}

/* ---- networks ---- */

bool egress_net_read(const char *text, struct egress_net *ret)
{
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    struct egress_net net = {.bytes = memchr(text, ':', n) ? 16 : 4};
    char address[INET6_ADDRSTRLEN];
    uint16_t bits = (uint16_t)(net.bytes * 8);

    if (n >= sizeof address)
        return false;
    memcpy(address, text, n);
    address[n] = '\0';
    if (slash && strcmp(slash, "/0") == 0)
        bits = 0;
    else if (slash && (bits = port_read(slash + 1, strlen(slash + 1))) == 0)
        return false;
    if (bits > net.bytes * 8 ||
        inet_pton(net.bytes == 16 ? AF_INET6 : AF_INET, address, net.address) != 1)
        return false;
    net.bits = (uint8_t)bits;
    *ret = net;
    return true;
}

static bool bits_alike(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, whole) == 0 &&
           (rest == 0 || (uint8_t)((a[whole] ^ b[whole]) >> (8 - rest)) == 0);
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* The address of IPv4 inside one that IPv6 maps counts as itself. */
static const uint8_t *raw_address(const struct sockaddr *a, uint8_t *ret_bytes)
{
    const uint8_t *six = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr;

    *ret_bytes = 4;
    if (a->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
    if (memcmp(six, mapped, sizeof mapped) == 0)
        return six + sizeof mapped;
    *ret_bytes = 16;
    return six;
}

bool egress_net_has(const struct egress_net *n, const struct sockaddr *a)
{
    uint8_t bytes;
    const uint8_t *raw;

    if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
        return false;
    raw = raw_address(a, &bytes);
    return bytes == n->bytes && bits_alike(raw, n->address, n->bits);
}

int egress_nets_read(const char *text, struct egress_net nets[EGRESS_NETS_MAX], size_t *ret_n,
                     struct err *e)
{
    char word[INET6_ADDRSTRLEN + 5];
    size_t n = 0;

    for (const char *p = text; *p;) {
        size_t skip = strspn(p, ", \t"), len;

        p += skip;
        len = strcspn(p, ", \t");
        if (len == 0)
            break;
        if (n == EGRESS_NETS_MAX)
            return err_set(e, ERR_CALLER, "more than %d networks", EGRESS_NETS_MAX);
        (void)snprintf(word, sizeof word, "%.*s", (int)len, p);
        if (len >= sizeof word || !egress_net_read(word, &nets[n]))
            return err_set(e, ERR_CALLER, "'%.40s' is no network such as 10.0.0.0/8", word);
        n++;
        p += len;
    }
    *ret_n = n;
    return 0;
}

/* ---- making ---- */

void egress_policy_init(struct egress_policy *p, enum egress_mode mode)
{
    *p = (struct egress_policy){.mode = mode, .text_n = 1}; /* text[0]: "" */
}

static int text_add(struct egress_policy *p, const char *text, uint16_t *ret, struct err *e)
{
    size_t n = strlen(text) + 1;

    if (n > EGRESS_TEXT_MAX - p->text_n)
        return err_set(e, ERR_CALLER, "names and paths are longer than %d bytes together",
                       EGRESS_TEXT_MAX);
    memcpy(p->text + p->text_n, text, n);
    *ret = (uint16_t)p->text_n;
    p->text_n += n;
    return 0;
}

static bool port_is_usual(uint16_t port)
{
    return port == EGRESS_HTTP || port == EGRESS_TLS;
}

int egress_port_add(struct egress_policy *p, int64_t port, struct err *e)
{
    if (port < 1 || port > PORT_MAX)
        return err_set(e, ERR_CALLER, "a port is from 1 to 65535");
    for (size_t i = 0; i < p->ports_n; i++)
        if (p->port[i] == port)
            return 0;
    if (port_is_usual((uint16_t)port))
        return 0;
    if (p->ports_n == EGRESS_PORTS_MAX)
        return err_set(e, ERR_CALLER, "more than %d ports beside 80 and 443", EGRESS_PORTS_MAX);
    p->port[p->ports_n++] = (uint16_t)port;
    return 0;
}

/* "10.0.0.0/8": only networks have a slash. */
static int read_net(const char *host, size_t n, struct egress_rule *r, struct err *e)
{
    char text[INET6_ADDRSTRLEN + 5];

    (void)snprintf(text, sizeof text, "%.*s", (int)n, host);
    r->is_net = true;
    return n < sizeof text && egress_net_read(text, &r->net)
               ? 0
               : err_set(e, ERR_CALLER, "'%.60s' is no network such as 10.0.0.0/8", text);
}

static int read_host(struct egress_policy *p, const char *host, size_t n, struct egress_rule *r,
                     struct err *e)
{
    bool below = n > 2 && host[0] == '*' && host[1] == '.';
    char name[EGRESS_NAME_MAX + 2] = ".";
    enum egress_host_kind kind;

    kind = egress_target_read(host + 2 * below, n - 2 * below, name + below, &r->port);
    if (below ? kind != EGRESS_HOST_NAME : kind != EGRESS_HOST_NAME && kind != EGRESS_HOST_ADDRESS)
        return err_set(e, ERR_CALLER,
                       "'%.*s' is no host: want example.com, *.example.com or example.com:5432",
                       n > 100 ? 100 : (int)n, host);
    return text_add(p, name, &r->host, e);
}

int egress_rule_add(struct egress_policy *p, const char *host, size_t n, struct err *e)
{
    struct egress_rule r = {0};

    if (p->rules_n == EGRESS_RULES_MAX)
        return err_set(e, ERR_CALLER, "more than %d rules", EGRESS_RULES_MAX);
    if (memchr(host, '/', n) ? read_net(host, n, &r, e) < 0 : read_host(p, host, n, &r, e) < 0)
        return -1;
    if (r.port && p->mode == EGRESS_ALLOW && egress_port_add(p, r.port, e) < 0)
        return -1;
    p->rule[p->rules_n++] = r;
    return 0;
}

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

int egress_rule_method(struct egress_policy *p, const char *name, size_t n, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (n != strlen(methods[i]) || memcmp(name, methods[i], n) != 0)
            continue;
        p->rule[p->rules_n - 1].methods |= (uint16_t)BIT(i);
        return 0;
    }
    return err_set(e, ERR_CALLER, "must be one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS");
}

/* Paths of one rule stand behind each other in the text. */
int egress_rule_path(struct egress_policy *p, const char *path, size_t n, struct err *e)
{
    struct egress_rule *r = &p->rule[p->rules_n - 1];
    char text[1024];
    uint16_t at = 0;

    if (n == 0 || path[0] != '/' || n >= sizeof text || memchr(path, '\0', n) ||
        memchr(path, '%', n) || memchr(path, '?', n))
        return err_set(e, ERR_CALLER,
                       "must begin with '/', be shorter than %zu bytes and have no '%%' and '?'",
                       sizeof text);
    memcpy(text, path, n);
    text[n] = '\0';
    if (text_add(p, text, &at, e) < 0)
        return -1;
    if (r->paths[0] == r->paths[1])
        r->paths[0] = at;
    r->paths[1] = (uint16_t)p->text_n;
    return 0;
}

/* ---- paths ---- */

static int hex_digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

/* One character of a path, decoded where it has but one meaning. 0: it has more than one. */
static size_t path_char(const char *p, size_t n, char out[3], size_t *ret_n)
{
    int high, low;
    char c;

    *ret_n = 1;
    out[0] = *p;
    if ((unsigned char)*p <= ' ' || *p == 0x7f || *p == '\\')
        return 0;
    if (*p != '%')
        return 1;
    if (n < 3 || (high = hex_digit(p[1])) < 0 || (low = hex_digit(p[2])) < 0)
        return 0;
    c = (char)(high * 16 + low);
    if (c == '/' || c == '\\' || c == '\0' || c == '%')
        return 0;
    if (isalnum((unsigned char)c) || (c && strchr("-._~", c))) {
        out[0] = c;
        return 3;
    }
    out[0] = '%';
    out[1] = (char)toupper((unsigned char)p[1]);
    out[2] = (char)toupper((unsigned char)p[2]);
    *ret_n = 3;
    return 3;
}

/* The last segment is complete; "." and ".." go. False: ".." of nothing. */
static bool segment_end(char *out, size_t *n)
{
    size_t from = *n;

    while (from > 0 && out[from - 1] != '/')
        from--;
    if (*n - from == 1 && out[from] == '.') {
        *n = from;
    } else if (*n - from == 2 && memcmp(out + from, "..", 2) == 0) {
        if (from < 2)
            return false;
        for (*n = from - 1; *n > 0 && out[*n - 1] != '/';)
            --*n;
    }
    return true;
}

bool egress_path_clean(const char *p, size_t n, char out[EGRESS_PATH_MAX + 1])
{
    size_t at = 0, out_n = 0, more;

    if (n == 0 || p[0] != '/')
        return false;
    while (at < n && p[at] != '?' && p[at] != '#') {
        char decoded[3];
        size_t took = path_char(p + at, n - at, decoded, &more);

        if (took == 0 || out_n + more > EGRESS_PATH_MAX ||
            (decoded[0] == '/' && out_n > 0 && !segment_end(out, &out_n)))
            return false;
        if (decoded[0] != '/' || out_n == 0 || out[out_n - 1] != '/' || p[at - 1] == '/') {
            memcpy(out + out_n, decoded, more);
            out_n += more;
        }
        at += took;
    }
    if (!segment_end(out, &out_n))
        return false;
    out[out_n] = '\0';
    return true;
}

/* '*' within one segment. */
static bool segment_matches(const char *pattern, size_t pattern_n, const char *text, size_t text_n)
{
    size_t p = 0, t = 0, star = SIZE_MAX, back = 0;

    while (t < text_n) {
        if (p < pattern_n && pattern[p] == '*') {
            star = p++;
            back = t;
        } else if (p < pattern_n && pattern[p] == text[t]) {
            p++, t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern_n && pattern[p] == '*')
        p++;
    return p == pattern_n;
}

static bool is_globstar(const char *segment, size_t n)
{
    return n == 2 && segment[0] == '*' && segment[1] == '*';
}

/* Both begin behind a '/'. After a mismatch the last "**" takes one segment more. */
bool egress_path_matches(const char *pattern, const char *path)
{
    const char *star = NULL, *back = NULL, *p = pattern + 1, *t = path + 1;

    for (;;) {
        size_t pn = p ? strcspn(p, "/") : 0, tn = t ? strcspn(t, "/") : 0;

        if (p && is_globstar(p, pn)) {
            if (!p[pn])
                return true;
            star = p += pn + 1;
            back = t;
            continue;
        }
        if (!p && !t)
            return true;
        if (p && t && segment_matches(p, pn, t, tn)) {
            p = p[pn] ? p + pn + 1 : NULL;
            t = t[tn] ? t + tn + 1 : NULL;
            continue;
        }
        if (!star || !back || !back[strcspn(back, "/")])
            return false;
        t = back += strcspn(back, "/") + 1;
        p = star;
    }
}

/* ---- asking ---- */

static bool host_matches(const struct egress_policy *p, const struct egress_rule *r,
                         const char *host)
{
    const char *name = p->text + r->host;
    size_t n = strlen(host), k = strlen(name);
    struct sockaddr_storage a = {0};

    if (!r->is_net)
        return name[0] == '.' ? n > k && strcmp(host + n - k, name) == 0 : strcmp(host, name) == 0;
    if (inet_pton(AF_INET, host, &((struct sockaddr_in *)&a)->sin_addr) == 1)
        a.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)&a)->sin6_addr) == 1)
        a.ss_family = AF_INET6;
    return a.ss_family && egress_net_has(&r->net, (struct sockaddr *)&a);
}

static bool rule_names(const struct egress_policy *p, const struct egress_rule *r, const char *host,
                       uint16_t port)
{
    bool any = p->mode == EGRESS_PUBLIC && r->port == 0;

    return (any || (r->port ? r->port == port : port_is_usual(port))) && host_matches(p, r, host);
}

static bool is_narrow(const struct egress_rule *r)
{
    return r->methods || r->paths[0] != r->paths[1];
}

/* In public mode rules take away. */
static enum egress_verdict look_public(const struct egress_policy *p, const char *host,
                                       uint16_t port)
{
    bool reachable = port_is_usual(port);

    for (size_t i = 0; i < p->ports_n; i++)
        reachable |= p->port[i] == port;
    for (size_t i = 0; i < p->rules_n; i++)
        reachable &= !rule_names(p, &p->rule[i], host, port);
    return reachable ? EGRESS_ALLOWED : EGRESS_NOT_ALLOWED;
}

enum egress_verdict egress_look(const struct egress_policy *p, const char *host, uint16_t port,
                                bool *ret_any_address)
{
    enum egress_verdict v = EGRESS_NOT_ALLOWED;

    *ret_any_address = false;
    if (p->mode == EGRESS_PUBLIC)
        return look_public(p, host, port);
    for (size_t i = 0; i < p->rules_n; i++) {
        const struct egress_rule *r = &p->rule[i];

        if (!rule_names(p, r, host, port))
            continue;
        if (!is_narrow(r)) {
            *ret_any_address = r->any_address;
            return EGRESS_ALLOWED;
        }
        v = r->methods ? EGRESS_METHOD : EGRESS_PATH;
    }
    return v;
}

enum egress_verdict egress_look_http(const struct egress_policy *p, const char *host, uint16_t port)
{
    if (p->mode == EGRESS_PUBLIC)
        return look_public(p, host, port);
    for (size_t i = 0; i < p->rules_n; i++)
        if (rule_names(p, &p->rule[i], host, port))
            return EGRESS_ALLOWED;
    return EGRESS_NOT_ALLOWED;
}

static bool method_matches(const struct egress_rule *r, const char *method)
{
    for (size_t i = 0; r->methods && i < ARRAY_LEN(methods); i++)
        if (r->methods & BIT(i) && strcmp(methods[i], method) == 0)
            return true;
    return r->methods == 0;
}

static bool rule_has_path(const struct egress_policy *p, const struct egress_rule *r,
                          const char *path)
{
    for (size_t at = r->paths[0]; at < r->paths[1]; at += strlen(p->text + at) + 1)
        if (egress_path_matches(p->text + at, path))
            return true;
    return r->paths[0] == r->paths[1];
}

enum egress_verdict egress_look_request(const struct egress_policy *p, const char *host,
                                        uint16_t port, const char *method, const char *path)
{
    enum egress_verdict v = egress_look_http(p, host, port);

    if (v != EGRESS_ALLOWED || p->mode == EGRESS_PUBLIC)
        return v;
    v = EGRESS_METHOD;
    for (size_t i = 0; i < p->rules_n; i++) {
        const struct egress_rule *r = &p->rule[i];

        if (!rule_names(p, r, host, port) || !method_matches(r, method))
            continue;
        if (rule_has_path(p, r, path))
            return EGRESS_ALLOWED;
        v = EGRESS_PATH;
    }
    return v;
}

/* ---- bounds and words ---- */

static bool net_inside(const struct egress_net *outer, const struct egress_net *inner)
{
    return outer->bytes == inner->bytes && outer->bits <= inner->bits &&
           bits_alike(outer->address, inner->address, outer->bits);
}

bool egress_covers(const struct egress_policy *bound, const struct egress_policy *p, size_t i)
{
    const struct egress_rule *r = &p->rule[i];
    const char *host = p->text + r->host;

    for (size_t k = 0; k < bound->rules_n; k++) {
        const struct egress_rule *b = &bound->rule[k];
        const char *name = bound->text + b->host;

        if (b->port && b->port != r->port)
            continue;
        if (!b->port && r->port && !port_is_usual(r->port))
            continue;
        if (r->is_net ? b->is_net && net_inside(&b->net, &r->net)
                      : host_matches(bound, b, host) ||
                            (!b->is_net && name[0] == '.' && strcmp(name, host) == 0))
            return true;
    }
    return false;
}

const char *egress_method(size_t i)
{
    return i < ARRAY_LEN(methods) ? methods[i] : NULL;
}

void egress_rule_words(const struct egress_policy *p, const struct egress_rule *r, char *out,
                       size_t room)
{
    const char *name = p->text + r->host;
    bool literal = strchr(name, ':') != NULL;
    char address[INET6_ADDRSTRLEN] = "";

    if (r->is_net) {
        (void)inet_ntop(r->net.bytes == 16 ? AF_INET6 : AF_INET, r->net.address, address,
                        sizeof address);
        (void)snprintf(out, room, "%s/%u", address, r->net.bits);
    } else if (r->port) {
        (void)snprintf(out, room, "%s%s%s%s:%u", name[0] == '.' ? "*" : "", literal ? "[" : "",
                       name, literal ? "]" : "", r->port);
    } else {
        (void)snprintf(out, room, "%s%s", name[0] == '.' ? "*" : "", name);
    }
}

void egress_words(const struct egress_policy *p, char *out, size_t room)
{
    size_t n = 0, named = 0;

    out[0] = '\0';
    for (size_t i = 0; i < p->rules_n && named < NAMED_MAX; i++) {
        const struct egress_rule *r = &p->rule[i];
        const char *name = p->text + r->host;
        int put = r->is_net ? 0
                            : snprintf(out + n, room - n, "%s%s%s", named ? ", " : "",
                                       name[0] == '.' ? "*" : "", name);

        if (put <= 0 || (size_t)put >= room - n)
            continue;
        n += (size_t)put;
        named++;
    }
    if (named == 0)
        (void)snprintf(out, room, "%s",
                       p->mode == EGRESS_PUBLIC ? "the public Internet" : "no host");
    else if (p->rules_n > named)
        (void)snprintf(out + n, room - n, " and %zu more", p->rules_n - named);
}
