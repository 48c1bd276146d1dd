/* SPDX-License-Identifier: MIT */
/*
 * What was not allowed, as an error of the call. The kernel refuses most of it when it is tried:
 * then the program's own error names the path, which is believed only where the rules agree. The
 * rest is found among the changes.
 */
#include <stdio.h>
#include <string.h>

#include "app/function/collect.h"
#include "base/json.h"

static void say(struct call_outcome *o, const struct change *one)
{
    o->status = CALL_ERROR;
    o->type = "PermissionDeniedError";
    o->exit_code = 1;
    o->framed = false;
    (void)snprintf(o->message, sizeof o->message, "Permission denied: %s on %.500s",
                   change_operation(one->type), one->path);
}

/* Which operation the rules refuse on a path; -1: none. */
static int refused_operation(struct collect *k, const char *path)
{
    unsigned allowed = mount_allows(&k->tree->mount, path, k->workdir, &k->steps);
    ssize_t before = changes_find(&k->changes, path);

    if (before < 0)
        return allowed & PERM_CREATE ? -1 : CHANGE_CREATED;
    if (!(allowed & PERM_MODIFY))
        return CHANGE_MODIFIED;
    return allowed & PERM_DELETE ? -1 : CHANGE_DELETED;
}

static const struct change *denied_on(const struct collect *k, const char *path)
{
    for (size_t i = 0; i < k->changes.n; i++)
        if (k->changes.v[i].denied && strcmp(k->changes.v[i].path, path) == 0)
            return &k->changes.v[i];
    return NULL;
}

static void take_refused(struct collect *k, const char *path, struct json_value error,
                         struct call_outcome *o)
{
    const struct change *known = denied_on(k, path);
    struct change *one;

    if (!known && k->refused >= 0) {
        one = changes_add(&k->changes, (enum change_type)k->refused, path,
                          changes_find(&k->changes, path));
        if (one)
            one->denied = one->attempted = true;
        known = one;
    }
    if (!known)
        return;
    say(o, known);
    if (!json_get(error, "stack", &o->stack) || o->stack.type != JSON_STRING)
        o->stack = (struct json_value){0};
}

/* What the program said, and the absolute path in it. */
static bool error_path(const struct buf *said, struct json_value *ret_error, struct buf *ret_path)
{
    struct json_value path;
    struct err ignored;

    return json_parse(said->p, said->n, 0, ret_error, &ignored) == 0 &&
           json_get(*ret_error, "path", &path) && path.type == JSON_STRING &&
           json_decode_string(path, 0, ret_path) == 0 && ret_path->n > 0 && ret_path->p[0] == '/' &&
           strlen(ret_path->p) == ret_path->n;
}

void collect_refusal(struct collect *k)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(CALL_PATH_MAX);
    struct json_value error;

    if (error_path(k->error, &error, &path))
        k->refused = refused_operation(k, path.p);
}

void collect_judge(struct collect *k, struct call_outcome *o)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(CALL_PATH_MAX);
    struct json_value error;

    if (k->fenced && k->complete && o->framed && error_path(k->error, &error, &path))
        take_refused(k, path.p, error, o);
    if (!k->thrown || o->status != CALL_SUCCESS)
        return;
    for (size_t i = 0; i < k->changes.n; i++)
        if (k->changes.v[i].denied) {
            say(o, &k->changes.v[i]);
            return;
        }
}
