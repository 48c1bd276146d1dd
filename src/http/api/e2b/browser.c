/* SPDX-License-Identifier: MIT */
/*
 * Web pages that use E2B's SDKs. Every request of theirs carries a key, a token or a signature, so
 * the page of any origin may send it and read what it answers; nothing is done for a page that a
 * program could not do. Without a secret the server refuses pages of other origins before this.
 */
#include "http/api/e2b/browser.h"

#include <string.h>
#include <strings.h>

#include "http/api/e2b/e2b.h"
#include "http/api/e2b/target.h"

/* Headers by which the question of a browser shows that its request is for E2B's services: it does
 * not carry them itself. */
static const char *const marks[] = {"x-api-key", "x-access-token", "e2b-sandbox-id",
                                    "e2b-traffic-access-token"};

/* Is this one of the names in a list with commas? */
static bool is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = list; *p; p += *p == ',') {
        size_t have;

        p += strspn(p, " \t");
        have = strcspn(p, ", \t");
        if (have == n && strncasecmp(p, name, n) == 0)
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

bool e2b_claims_preflight(const struct app *a, const struct h1_head *h)
{
    const char *asked = h1_field(h, "access-control-request-headers");

    if (strcmp(h->method, "OPTIONS") != 0 || !h1_field(h, "access-control-request-method"))
        return false;
    if (e2b_claims_envd(a, h) || e2b_claims_interpreter(a, h))
        return true;
    for (size_t i = 0; asked && i < ARRAY_LEN(marks); i++)
        if (is_listed(asked, marks[i]))
            return true;
    return false;
}

bool e2b_admit_browser(struct http_call *c)
{
    if (!http_header(c, "origin"))
        return true;
    http_set_header(c, "Access-Control-Allow-Origin", "*");
    http_set_header(c, "Access-Control-Expose-Headers", "*");
    return true;
}

void e2b_preflight(struct http_call *c)
{
    const char *asked = http_header(c, "access-control-request-headers");

    http_set_header(c, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    if (asked)
        http_set_header(c, "Access-Control-Allow-Headers", asked);
    http_set_header(c, "Access-Control-Max-Age", "7200");
    http_reply(c, 204, NULL, NULL);
}
