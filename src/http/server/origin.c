/* SPDX-License-Identifier: MIT */
#include "http/server/origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ORIGIN_NAME_MAX = 255 }; /* bytes of a host name, as in DNS */

/* The name in "name", "name:port" or "[v6]:port"; false when it is none, or more. */
static bool host_name(const char *host, char name[ORIGIN_NAME_MAX + 1])
{
    bool literal = *host == '[';
    const char *p = host + literal, *rest;
    size_t n = strcspn(p, literal ? "]" : ":");

    if (n == 0 || n > ORIGIN_NAME_MAX || (literal && p[n] != ']'))
        return false;
    rest = p + n + literal;
    if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
        return false;
    memcpy(name, p, n);
    name[n] = '\0';
    return true;
}

static bool is_address(const char *name)
{
    struct in6_addr room;

    return inet_pton(AF_INET, name, &room) == 1 || inet_pton(AF_INET6, name, &room) == 1;
}

static bool is_listed(const char *name, const char *list)
{
    size_t n = strlen(name);

    for (const char *p = list; *p; p += *p == ',') {
        size_t k;

        p += strspn(p, " ");
        k = strcspn(p, ", ");
        if ((k == 1 && *p == '*') || (k == n && strncasecmp(p, name, n) == 0))
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

/*
 * A page that had its own name resolve to this machine (DNS rebinding) still says that name here.
 * A name without a dot (a container, a service, "localhost") is none that a stranger can have in
 * the public DNS.
 */
static bool host_is_ours(const char *host, const char *allowed)
{
    char name[ORIGIN_NAME_MAX + 1];

    if (!host_name(host, name))
        return false;
    return is_address(name) || !strchr(name, '.') || is_listed(name, allowed);
}

/* "scheme://host:port" against "host:port". */
static bool same_origin(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");

    return at && host && strcasecmp(at + 3, host) == 0;
}

const char *origin_refuse(const struct origin_facts *f, const char *allowed)
{
    static const char json[] = "application/json";
    bool browser = f->origin || f->fetch_site;

    if (f->host && !host_is_ours(f->host, allowed))
        return "Without a secret the Host must be an address, 'localhost', a name without a dot "
               "or one of ALLOWED_HOSTS";
    if (f->origin && !same_origin(f->origin, f->host))
        return "Without a secret no web page of another origin may call this API";
    if (f->fetch_site && strcasecmp(f->fetch_site, "same-origin") != 0 &&
        strcasecmp(f->fetch_site, "none") != 0)
        return "Without a secret no web page of another site may call this API";
    if (browser && f->json &&
        (!f->content_type || strncasecmp(f->content_type, json, sizeof json - 1) != 0))
        return "Without a secret a browser must say 'Content-Type: application/json'";
    return NULL;
}

bool origin_host_is_listed(const char *host, const char *list)
{
    char name[ORIGIN_NAME_MAX + 1];

    return host_name(host, name) && is_listed(name, list);
}

bool origin_is_ours(const char *origin, const char *host, const char *allowed)
{
    const char *at = origin ? strstr(origin, "://") : NULL;
    char name[ORIGIN_NAME_MAX + 1];

    if (!origin || same_origin(origin, host))
        return true;
    return is_listed("*", allowed) || (at && host_name(at + 3, name) && is_listed(name, allowed));
}
