/* SPDX-License-Identifier: MIT */
/*
 * How a browser gets what it may call the API with. The address that the daemon prints has a ticket
 * in its fragment, which a browser sends to nobody. The page posts it once and gets a key, which it
 * keeps for its own session. The secret itself never reaches the page, unless a person types it.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/console/console.h"
#include "http/api/problem.h"
#include "http/server/auth.h"
#include "http/server/reply.h"

enum { SMALL_JSON_MAX = 1024, US_PER_S = 1000000 };

struct login_body {
    struct bytes ticket;
};

/* clang-format off */
static const struct shape_field login_fields[] = {
    {"ticket", SHAPE_STRING, SHAPE_REQUIRED, offsetof(struct login_body, ticket),
     .help = "what follows '#ticket=' in the address"},
};
const struct shape console_login_shape = {login_fields, ARRAY_LEN(login_fields), .name = "ConsoleLogin"};
/* clang-format on */

static void reply_key(struct http_call *c, int status)
{
    int64_t until = (int64_t)time(NULL) + (int64_t)http_app(c)->config.console_session_s;
    struct buf body = BUF_INIT(SMALL_JSON_MAX);
    char key[SESSION_KEY_MAX], when[CLOCK_ISO_MAX];
    struct jw w = JW(&body);

    if (auth_session_key(http_auth(c), until, key) < 0) {
        reply_status(c, 500);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "key", key);
    jw_kv_string(&w, "expires_at", clock_iso_at(until, 0, when));
    jw_object_end(&w);
    explicit_bzero(key, sizeof key);
    http_set_header(c, "Cache-Control", "no-store");
    http_reply_json(c, status, &body);
}

/* A key must not prolong itself: then its end would mean nothing. */
static bool refuse(struct http_call *c)
{
    const char *given = auth_bearer(http_header(c, "authorization"));
    const struct auth *a = http_auth(c);

    if (!a || !auth_has_tickets(a))
        reply_problem(c, &(struct reply_problem){.status = 409,
                                                 .code = "Executor.Conflict",
                                                 .description = "There is no secret",
                                                 .error_detail = "every request is served",
                                                 .solution = "Open /console as it is."});
    else if (given && session_key_looks(given))
        reply_refusal(c, 403, "The key of a session makes no other: this takes the secret");
    else
        return false;
    return true;
}

void console_session(struct http_call *c)
{
    if (!refuse(c))
        reply_key(c, 201);
}

void console_login(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct login_body b = {0};
    struct auth *a = http_auth(c);

    if (!dialect_decode(c, &console_login_shape, &b, &s))
        return;
    if (a && auth_has_tickets(a) && strlen(b.ticket.p) == b.ticket.n &&
        auth_take_ticket(a, b.ticket.p))
        reply_key(c, 200);
    else
        reply_problem(c, &(struct reply_problem){
                             .status = 403,
                             .code = "Executor.TicketRefused",
                             .description = "This address does not open the console",
                             .error_detail = "its ticket was used already, is too old, or is none",
                             .solution = "Give the secret instead, or ask for a new address with "
                                         "POST /console/tickets.",
                         });
}

void console_ticket(struct http_call *c)
{
    const struct app *app = http_app(c);
    struct buf body = BUF_INIT(SMALL_JSON_MAX);
    char ticket[TICKET_MAX], path[TICKET_MAX + 32];
    struct jw w = JW(&body);

    if (refuse(c))
        return;
    if (auth_ticket(http_auth(c), app->config.console_ticket_s * US_PER_S, ticket) < 0) {
        reply_status(c, 500);
        return;
    }
    (void)snprintf(path, sizeof path, "/console#ticket=%s", ticket);
    jw_object(&w);
    jw_kv_string(&w, "ticket", ticket);
    jw_kv_string(&w, "path", path);
    jw_kv_int(&w, "expires_in", (int64_t)app->config.console_ticket_s);
    jw_object_end(&w);
    http_set_header(c, "Cache-Control", "no-store");
    http_reply_json(c, 201, &body);
}
