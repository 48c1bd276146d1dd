/* SPDX-License-Identifier: MIT */
#include "app/execution/webhook_member.h"

#include <string.h>

#include "app/daemon/app.h"
#include "core/shape.h"

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

int webhook_take(struct app *a, struct json_value asked, struct webhook **ret, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s;
    struct body b = {0};

    shaping_init(&s, a);
    *ret = NULL;
    if (!asked.p || asked.type == JSON_NULL)
        return 0;
    if (read_member(asked, &s, &b, e) < 0)
        return -1;
    return webhooks_hold(a->webhooks, &(struct webhook_target){b.url.p, b.secret.p}, ret, e);
}
