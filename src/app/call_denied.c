/* SPDX-License-Identifier: MIT */
/*
 * What was not allowed, as an error of the call. The kernel refuses most of it when it is tried:
 * then the program's own error names the path, which is believed only where the rules agree. The
 * rest is found among the changes.
 */
#include <stdio.h>
#include <string.h>

#include "app/call_inner.h"

static void say(struct call *c, const struct change *one)
{
    c->outcome.status = CALL_ERROR;
    c->outcome.type = "PermissionDeniedError";
    c->outcome.exit_code = 1;
    c->outcome.framed = false;
    (void)snprintf(c->outcome.message, sizeof c->outcome.message, "Permission denied: %s on %.500s",
                   change_operation(one->type), one->path);
}

/* Which operation the rules refuse on a path; -1: none. */
static int refused_operation(const struct call *c, const char *path, ssize_t *ret_before)
{
    unsigned allowed = mount_allows(&c->tree.mount, path, c->request.workdir);

    *ret_before = -1;
    for (size_t i = 0; i < c->changes.before_n; i++)
        if (strcmp(c->changes.before[i].path, path) == 0)
            *ret_before = (ssize_t)i;
    if (*ret_before < 0)
        return allowed & PERM_CREATE ? -1 : CHANGE_CREATED;
    if (!(allowed & PERM_MODIFY))
        return CHANGE_MODIFIED;
    return allowed & PERM_DELETE ? -1 : CHANGE_DELETED;
}

static const struct change *denied_on(const struct call *c, const char *path)
{
    for (size_t i = 0; i < c->changes.n; i++)
        if (c->changes.v[i].denied && strcmp(c->changes.v[i].path, path) == 0)
            return &c->changes.v[i];
    return NULL;
}

static void take_refused(struct call *c, const char *path, struct json_value error)
{
    const struct change *known = denied_on(c, path);
    ssize_t before;
    int type = refused_operation(c, path, &before);
    struct change *one;

    if (!known && type >= 0) {
        one = changes_add(&c->changes, (enum change_type)type, path, before);
        if (one)
            one->denied = true;
        known = one;
    }
    if (!known)
        return;
    say(c, known);
    if (!json_get(error, "stack", &c->outcome.stack) || c->outcome.stack.type != JSON_STRING)
        c->outcome.stack = (struct json_value){0};
}

static void take_error(struct call *c)
{
    struct json_value error, path;
    struct buf text = BUF_INIT(CALL_PATH_MAX);
    struct err ignored;

    if (json_parse(c->result.error.p, c->result.error.n, 0, &error, &ignored) == 0 &&
        json_get(error, "path", &path) && path.type == JSON_STRING &&
        json_decode_string(path, 0, &text) == 0 && text.n > 0 && text.p[0] == '/' &&
        strlen(text.p) == text.n)
        take_refused(c, text.p, error);
    buf_done(&text);
}

void call_take_denied(struct call *c)
{
    if (c->fenced && c->ran && c->outcome.framed)
        take_error(c);
    if (!c->thrown || c->outcome.status != CALL_SUCCESS)
        return;
    for (size_t i = 0; i < c->changes.n; i++)
        if (c->changes.v[i].denied) {
            say(c, &c->changes.v[i]);
            return;
        }
}
