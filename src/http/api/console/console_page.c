/* SPDX-License-Identifier: MIT */
/* GET /console and what it is made of: bytes that were compressed when the daemon was built. */
#include <string.h>
#include <strings.h>

#include "http/api/api.h"
#include "http/api/console/console.h"
#include "http/server/reply.h"

#define MISSING                                                                                    \
    "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>No console</title>\n"           \
    "<h1>This daemon was built without its console</h1>\n"                                         \
    "<p>The console is made of npm packages, which were not there when it was built. "             \
    "<code>tools/fetch-npm console</code> installs them and says what is in the way; "             \
    "<code>./run</code> then builds the daemon with it.\n"                                         \
    "<p>Everything else works: <a href=docs>the API</a>.\n"

bool console_is_there(const struct app *a)
{
    return console_files_n > 0 && a->config.console;
}

static const struct console_file *find(const char *name)
{
    for (size_t i = 0; i < console_files_n; i++)
        if (strcmp(console_files[i].name, name) == 0)
            return &console_files[i];
    return NULL;
}

/* Every browser takes gzip. Named with q=0 it is refused. */
static bool takes_gzip(const struct http_call *c)
{
    const char *p = http_header(c, "accept-encoding");

    for (p = p ? p : ""; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n;

        p += strspn(p, " \t");
        n = strcspn(p, ",; \t");
        if ((n == 4 && strncasecmp(p, "gzip", n) == 0) || (n == 1 && *p == '*')) {
            const char *q = p + n + strspn(p + n, "; \t");

            return strncasecmp(q, "q=0", 3) != 0 || q[3] == '.';
        }
    }
    return false;
}

static void set_headers(struct http_call *c, const struct console_file *f)
{
    http_set_header(c, "ETag", f->etag);
    http_set_header(c, "Vary", "Accept-Encoding");
    http_set_header(c, "Cache-Control",
                    f->hashed ? "public, max-age=31536000, immutable" : "no-cache");
    http_set_header(c, "Referrer-Policy", "no-referrer");
    http_set_header(c, "Cross-Origin-Resource-Policy", "same-origin");
    if (f->policy)
        http_set_header(c, "Content-Security-Policy", f->policy);
    if (f->policy)
        http_set_header(c, "Cross-Origin-Opener-Policy", "same-origin");
}

static void serve(struct http_call *c, const char *name)
{
    const struct console_file *f = console_is_there(http_app(c)) ? find(name) : NULL;
    const char *known = http_header(c, "if-none-match");

    if (!f) {
        reply_status(c, 404);
        return;
    }
    set_headers(c, f);
    if (known && strstr(known, f->etag)) {
        http_reply(c, 304, NULL, NULL);
    } else if (!takes_gzip(c)) {
        http_reply_text(c, 406, "This is sent with gzip only: ask with 'Accept-Encoding: gzip'");
    } else {
        http_set_header(c, "Content-Encoding", "gzip");
        http_reply_static(c, 200, f->type, f->p, f->n);
    }
}

void console_page(struct http_call *c)
{
    if (console_files_n > 0 || !http_app(c)->config.console) {
        serve(c, "");
        return;
    }
    http_set_header(c, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    http_reply_static(c, 404, "text/html; charset=utf-8", MISSING, sizeof MISSING - 1);
}

/* The page asks for its parts as "console/NAME": what is below "/console/" would be another page.
 */
void console_file(struct http_call *c)
{
    const char *name = http_request(c)->param[0];

    if (*name) {
        serve(c, name);
        return;
    }
    http_set_header(c, "Location", "../console");
    http_reply(c, 307, NULL, NULL);
}
