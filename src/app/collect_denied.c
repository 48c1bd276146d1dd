/* SPDX-License-Identifier: MIT */
/*
 * What was not allowed, as an error of the call. The kernel refuses most of it when it is tried:
 * then the program's own error names the path, which is believed only where the rules agree. The
 * rest is found among the changes.
 */
#include <stdio.h>
#include <string.h>

#include "app/collect.h"
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
static int refused_operation(const struct collect *k, const char *path, ssize_t before)
{
    unsigned allowed = mount_allows(&k->tree->mount, path, k->workdir);

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
    ssize_t before = changes_find(&k->changes, path);
    int type = refused_operation(k, path, before);
    struct change *one;

    if (!known && type >= 0) {
        one = changes_add(&k->changes, (enum change_type)type, path, before);
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

static void take_error(struct collect *k, const struct buf *said, struct call_outcome *o)
{
    struct json_value error, path;
    struct buf text = BUF_INIT(CALL_PATH_MAX);
    struct err ignored;

    if (json_parse(said->p, said->n, 0, &error, &ignored) == 0 && json_get(error, "path", &path) &&
        path.type == JSON_STRING && json_decode_string(path, 0, &text) == 0 && text.n > 0 &&
        text.p[0] == '/' && strlen(text.p) == text.n)
        take_refused(k, text.p, error, o);
    buf_done(&text);
}

void collect_judge(struct collect *k, const struct buf *error, struct call_outcome *o)
{
    if (k->fenced && o->framed)
        take_error(k, error, o);
    if (!k->thrown || o->status != CALL_SUCCESS)
        return;
    for (size_t i = 0; i < k->changes.n; i++)
        if (k->changes.v[i].denied) {
            say(o, &k->changes.v[i]);
            return;
        }
}
