/* SPDX-License-Identifier: MIT */
#include "net/http_url.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int check_parts(CURLU *u, struct err *e)
{
    static const struct {
        CURLUPart part;
        const char *name;
    } refused[] = {
        {CURLUPART_USER,     "a user name"},
        {CURLUPART_PASSWORD, "a password" },
        {CURLUPART_QUERY,    "a query"    },
        {CURLUPART_FRAGMENT, "a fragment" },
    };
    char *text = NULL;
    bool web;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (curl_url_get(u, refused[i].part, &text, 0) == CURLUE_OK) {
            curl_free(text);
            return err_set(e, ERR_CALLER, "must not have %s", refused[i].name);
        }
    }
    if (curl_url_get(u, CURLUPART_SCHEME, &text, 0) != CURLUE_OK)
        return err_set(e, ERR_CALLER, "has no scheme");
    web = strcasecmp(text, "http") == 0 || strcasecmp(text, "https") == 0;
    curl_free(text);
    return web ? 0 : err_set(e, ERR_CALLER, "is neither http nor https");
}

int http_url_check(const char *url, struct err *e)
{
    CURLU *u = curl_url();
    int r;

    if (!u)
        return err_set(e, ERR_HOST, "no memory for an address");
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        r = err_set(e, ERR_CALLER, "is not an http or https address");
    else
        r = check_parts(u, e);
    curl_url_cleanup(u);
    return r;
}

/* ---- the parts of one ---- */

static bool get(CURLU *u, CURLUPart part, unsigned flags, char *out, size_t room)
{
    char *text = NULL;
    bool good = curl_url_get(u, part, &text, flags) == CURLUE_OK && strlen(text) < room;

    if (good)
        memcpy(out, text, strlen(text) + 1);
    curl_free(text);
    return good;
}

/* Lower case; no brackets of an IPv6 address, no dot at the end. */
static void make_plain(char *host)
{
    size_t n = strlen(host);

    if (host[0] == '[' && host[n - 1] == ']') {
        memmove(host, host + 1, n - 2);
        host[n - 2] = '\0';
    } else if (n > 1 && host[n - 1] == '.') {
        host[n - 1] = '\0';
    }
    for (char *p = host; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
}

/* What others make of anything else is theirs to decide, and may not be what was checked. */
static bool is_plain(const char *host)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789._-:";

    return !host[strspn(host, allowed)];
}

static int take_parts(CURLU *u, struct http_url *ret, struct err *e)
{
    char text[16];

    if (get(u, CURLUPART_USER, 0, ret->url, sizeof ret->url) ||
        get(u, CURLUPART_PASSWORD, 0, ret->url, sizeof ret->url))
        return err_set(e, ERR_CALLER, "must not have a user name or a password");
    if (get(u, CURLUPART_FRAGMENT, 0, ret->url, sizeof ret->url))
        return err_set(e, ERR_CALLER, "must not have a fragment");
    if (get(u, CURLUPART_ZONEID, 0, ret->url, sizeof ret->url))
        return err_set(e, ERR_CALLER, "must not name a network interface");
    if (!get(u, CURLUPART_SCHEME, 0, text, sizeof text) ||
        (strcmp(text, "http") != 0 && strcmp(text, "https") != 0))
        return err_set(e, ERR_CALLER, "is neither http nor https");
    ret->tls = strcmp(text, "https") == 0;
    if (!get(u, CURLUPART_HOST, 0, ret->host, sizeof ret->host) || !ret->host[0] ||
        !get(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, text, sizeof text) ||
        !get(u, CURLUPART_URL, 0, ret->url, sizeof ret->url))
        return err_set(e, ERR_CALLER, "is not an http or https address, or is too long");
    make_plain(ret->host);
    if (!is_plain(ret->host))
        return err_set(e, ERR_CALLER, "must have a host in ASCII: write other letters as xn--...");
    ret->port = (uint16_t)strtoul(text, NULL, 10);
    return 0;
}

int http_url_parse(const char *url, struct http_url *ret, struct err *e)
{
    CURLU *u = curl_url();
    int r;

    *ret = (struct http_url){0};
    if (!u)
        return err_set(e, ERR_HOST, "no memory for an address");
    if (curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        r = err_set(e, ERR_CALLER, "is not an http or https address");
    else
        r = take_parts(u, ret, e);
    curl_url_cleanup(u);
    return r;
}
