/* SPDX-License-Identifier: MIT */
#include "app/execution/webhook.h"

#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "core/shape.h"
#include "net/webhook.h"

/* One request's, until its result is known. */
struct webhook {
    struct app *app; /* borrowed */
    char *url;       /* owned */
    char *secret;    /* owned; NULL: the operator's */
};

struct body {
    struct bytes url, secret;
};

#define AT(member) offsetof(struct body, member)
static const struct shape_field fields[] = {
    {"url",    SHAPE_STRING, SHAPE_REQUIRED, AT(url),    .help = ""},
    {"secret", SHAPE_STRING, SHAPE_NULLABLE, AT(secret), .help = ""},
};
#undef AT
static const struct shape shape = {fields, ARRAY_LEN(fields), .name = NULL};

static bool has_nul(const struct bytes *b)
{
    return b->p && memchr(b->p, '\0', b->n);
}

static int read_member(struct json_value asked, struct shaping *s, struct body *b, struct err *e)
{
    struct buf *arena = &s->arena;

    if (shaping_reserve(s, asked.n + 1) < 0)
        return shape_err(s, e);
    if (asked.type == JSON_OBJECT) {
        if (shape_value(&shape, asked, "webhook", b, s) < 0)
            return shape_err(s, e);
    } else {
        if (json_decode_string(asked, 0, arena) < 0 || buf_putc(arena, '\0') < 0)
            return err_set(e, ERR_CALLER, "webhook: not an address");
        b->url = (struct bytes){arena->p, arena->n - 1};
    }
    if (has_nul(&b->url) || has_nul(&b->secret))
        return err_set(e, ERR_CALLER, "webhook: contains a NUL character");
    if (b->secret.p && b->secret.n == 0)
        return err_set(e, ERR_CALLER, "webhook.secret: is empty");
    return 0;
}

int webhook_check(const struct app *a, struct json_value asked, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s;
    struct body b = {0};

    shaping_init(&s, a);
    if (read_member(asked, &s, &b, e) < 0)
        return -1;
    return webhooks_check(a->webhooks, &(struct webhook_target){b.url.p, b.secret.p}, e);
}

static struct webhook *webhook_new(struct app *a, const struct body *b)
{
    struct webhook *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->app = a;
    w->url = strdup(b->url.p);
    w->secret = b->secret.p ? strdup(b->secret.p) : NULL;
    if (w->url && (w->secret || !b->secret.p))
        return w;
    free(w->url);
    free(w->secret);
    free(w);
    return NULL;
}

int webhook_take(struct app *a, struct json_value asked, struct webhook **ret, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s;
    struct body b = {0};

    shaping_init(&s, a);
    *ret = NULL;
    if (!asked.p || asked.type == JSON_NULL)
        return 0;
    if (read_member(asked, &s, &b, e) < 0 ||
        webhooks_check(a->webhooks, &(struct webhook_target){b.url.p, b.secret.p}, e) < 0 ||
        webhooks_reserve(a->webhooks, e) < 0)
        return -1;
    *ret = webhook_new(a, &b);
    if (*ret)
        return 0;
    webhooks_unreserve(a->webhooks);
    return err_set(e, ERR_HOST, "no memory for a webhook");
}

static void done(struct webhook *w)
{
    if (w->secret)
        explicit_bzero(w->secret, strlen(w->secret));
    free(w->secret);
    free(w->url);
    free(w);
}

void webhook_free(struct webhook *w)
{
    if (!w)
        return;
    webhooks_unreserve(w->app->webhooks);
    done(w);
}

void webhook_send(struct webhook *w, const char *execution_id, struct bytes body, report_fn *kept,
                  void *user)
{
    const struct webhook_message m = {
        .to = {w->url, w->secret},
          .execution_id = execution_id, .body = body
    };

    webhooks_send(w->app->webhooks, &m, kept, user);
    done(w);
}
