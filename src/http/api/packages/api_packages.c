/* SPDX-License-Identifier: MIT */
/* /v1/packages: sets of packages made, listed, looked at and removed; and their use by others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/packages/asked.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/packages/packages.h"
#include "http/api/problem.h"
#include "http/server/reply.h"

enum { LIST_OVERHEAD = 1024 };

struct create_body {
    struct bytes name;
    struct package_lists lists;
};

static void check_name(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (!api_id_is_valid(b->p, b->n))
        shape_complain(s, f->name, NULL, "value_error",
                       "letters, digits and ._- only, at most 128, not starting with a dot");
}

/* clang-format off */
static const struct shape_field create_fields[] = {
    {"name", SHAPE_STRING, 0, offsetof(struct create_body, name), 0, 0, check_name,
     "to ask for it by; a set without one is found by its lists"},
    PACKAGE_LISTS_FIELDS(offsetof(struct create_body, lists)),
};
/* clang-format on */
const struct shape packages_shape = {create_fields, ARRAY_LEN(create_fields), SHAPE_NULLS,
                                     "PackageSetCreate"};

/* ---- answers ---- */

static void reply_set(struct http_call *c, int status, struct package_set *s)
{
    struct buf body = BUF_INIT(package_set_json_max(s));
    struct jw w = JW(&body);

    package_set_json(s, &w);
    http_reply_json(c, status, &body);
}

static void reply_failed(struct http_call *c, const struct package_set *s)
{
    cleanup_free char *words = strndup(s->error.p ? s->error.p : "", s->error.n);

    reply_problem(
        c, &(struct reply_problem){
               .status = s->failed_here ? 500 : 422,
               .code = s->failed_here ? "Executor.InternalError" : "Executor.PackageInstallError",
               .description = "The packages could not be installed",
               .error_detail = words,
               .solution = "The detail ends with the last lines of the installer.",
           });
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_HOST && !http_app(c)->packages.shelf)
        reply_problem(c, &(struct reply_problem){.status = 501,
                                                 .code = "Executor.NotAvailable",
                                                 .description = "Packages cannot be installed here",
                                                 .error_detail = e->text});
    else
        http_reply_error(c, e);
}

/* ---- waiting ---- */

struct waiting {
    struct package_waiter waiter;
    struct http_call *call;
    api_fn *again; /* NULL: the set itself is the answer */
    int status;    /* of that answer */
};

static void on_ready(void *user, struct package_set *s)
{
    struct waiting *w = user;
    struct waiting now = *w;

    free(w);
    http_on_gone(now.call, NULL, NULL);
    if (s->state != PACKAGE_SET_READY)
        reply_failed(now.call, s);
    else if (now.again)
        now.again(now.call);
    else
        reply_set(now.call, now.status, s);
}

/* It is installed all the same. */
static void on_gone(void *user)
{
    struct waiting *w = user;

    package_set_leave(&w->waiter);
    free(w);
}

static void wait_for(struct http_call *c, struct package_set *s, api_fn *again, int status)
{
    struct waiting *w = calloc(1, sizeof *w);

    if (!w) {
        reply_status(c, 503);
        return;
    }
    *w = (struct waiting){
        .waiter = {.done = on_ready, .user = w},
          .call = c, .again = again, .status = status
    };
    package_set_wait(s, &w->waiter);
    http_on_gone(c, on_gone, w);
}

/* ---- use by others ---- */

enum packages_go packages_take(struct http_call *c, struct json_value asked, api_fn *again,
                               struct shelf_item **ret)
{
    struct package_set *s;
    struct err e;

    *ret = NULL;
    if (!asked.p || asked.type == JSON_NULL)
        return PACKAGES_GO;
    if (package_set_asked(http_app(c), asked, http_request(c)->id, &s, &e) < 0) {
        reply_refused(c, &e);
        return PACKAGES_REFUSED;
    }
    if (s->state == PACKAGE_SET_INSTALLING) {
        wait_for(c, s, again, 0);
        return PACKAGES_LATER;
    }
    *ret = package_set_hold(s);
    if (*ret)
        return PACKAGES_GO;
    reply_status(c, 503);
    return PACKAGES_REFUSED;
}

/* ---- the endpoints ---- */

static bool wants_wait(const struct http_call *c)
{
    const char *p = http_header(c, "Prefer");

    return !p || !strcasestr(p, "respond-async");
}

void api_packages_create(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s = {0};
    struct create_body b = {0};
    struct package_want want;
    struct package_set *set;
    struct err e;

    if (!dialect_decode(c, &packages_shape, &b, &s))
        return;
    want = (struct package_want){.name = b.name.p ? b.name.p : "",
                                 .python = b.lists.python.v,
                                 .python_n = b.lists.python.n,
                                 .npm = b.lists.npm.v,
                                 .npm_n = b.lists.npm.n,
                                 .request_id = http_request(c)->id};
    if (package_sets_want(http_app(c), &want, &set, &e) < 0)
        reply_refused(c, &e);
    else if (set->state == PACKAGE_SET_READY)
        reply_set(c, 200, set);
    else if (wants_wait(c))
        wait_for(c, set, NULL, 201);
    else
        reply_set(c, 202, set);
}

void api_packages_list(struct http_call *c)
{
    struct package_sets *all = &http_app(c)->packages.sets;
    struct buf body = BUF_INIT(LIST_OVERHEAD);
    struct jw w = JW(&body);
    struct package_set *s;

    TAILQ_FOREACH(s, &all->list, link)
    body.max += package_set_json_max(s);
    jw_object(&w);
    jw_key(&w, "packages");
    jw_array(&w);
    TAILQ_FOREACH(s, &all->list, link)
    package_set_json(s, &w);
    jw_array_end(&w);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

static struct package_set *find(struct http_call *c)
{
    struct package_set *s;
    struct err e;

    if (package_sets_find(http_app(c), http_request(c)->param[0], &s, &e) == 0)
        return s;
    http_reply_error(c, &e);
    return NULL;
}

void api_packages_get(struct http_call *c)
{
    struct package_set *s = find(c);

    if (s)
        reply_set(c, 200, s);
}

void api_packages_delete(struct http_call *c)
{
    struct package_set *s = find(c);
    struct err e;

    if (!s)
        return;
    if (package_sets_remove(s, &e) == 0)
        http_reply(c, 204, NULL, NULL);
    else
        reply_problem(c, &(struct reply_problem){.status = 409,
                                                 .code = "Executor.Conflict",
                                                 .description = "It cannot be removed now",
                                                 .error_detail = e.text});
}
