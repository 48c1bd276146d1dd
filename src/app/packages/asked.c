/* SPDX-License-Identifier: MIT */
#include "app/packages/asked.h"

#include "app/daemon/app.h"

static const struct shape_field fields[] = {PACKAGE_LISTS_FIELDS(0)};
static const struct shape lists_shape = {fields, ARRAY_LEN(fields), SHAPE_NULLS, NULL};

/* One that could not be installed is tried again. */
static int find_named(struct app *a, struct json_value asked, const char *request_id,
                      struct package_set **ret, struct err *e)
{
    cleanup_with(buf_done) struct buf name = BUF_INIT(PACKAGE_SET_NAME_MAX + 1);
    struct package_set *s;
    struct package_want want;

    if (json_decode_string(asked, 0, &name) < 0 || name.n == 0 || buf_putc(&name, '\0') < 0)
        return err_set(e, ERR_CALLER, "packages: not a name");
    if (package_sets_find(a, name.p, &s, e) < 0)
        return -1;
    if (s->state == PACKAGE_SET_FAILED) {
        want = (struct package_want){.name = s->name,
                                     .python = s->python,
                                     .python_n = s->python_n,
                                     .npm = s->npm,
                                     .npm_n = s->npm_n,
                                     .request_id = request_id};
        return package_sets_want(a, &want, ret, e);
    }
    *ret = s;
    return 0;
}

int package_set_asked(struct app *a, struct json_value asked, const char *request_id,
                      struct package_set **ret, struct err *e)
{
    cleanup_with(shaping_done) struct shaping s;
    struct package_lists b = {0};

    shaping_init(&s, a);
    if (asked.type == JSON_STRING)
        return find_named(a, asked, request_id, ret, e);
    if (shaping_reserve(&s, asked.n) < 0 ||
        shape_value(&lists_shape, asked, "packages", &b, &s) < 0)
        return shape_err(&s, e);
    return package_sets_want(a,
                             &(struct package_want){.name = "",
                                                    .python = b.python.v,
                                                    .python_n = b.python.n,
                                                    .npm = b.npm.v,
                                                    .npm_n = b.npm.n,
                                                    .request_id = request_id},
                             ret, e);
}
