/* SPDX-License-Identifier: MIT */
#include "app/execution/session.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

enum { READABLE_MAX = 100 };

void session_workspace(const char *id, char out[SESSION_WORKSPACE_MAX])
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(id);
    char hex[SHA256_HEX];

    if (n >= 1 && n <= READABLE_MAX && strspn(id, allowed) == n) {
        (void)snprintf(out, SESSION_WORKSPACE_MAX, "s-%s", id);
        return;
    }
    sha256_hex(id, n, hex);
    (void)snprintf(out, SESSION_WORKSPACE_MAX, "h-%s", hex);
}

static struct session_bucket *bucket_of(struct sessions *all, const char *id)
{
    uint32_t h = 2166136261u;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    return &all->buckets[h % SESSION_BUCKETS];
}

void sessions_init(struct sessions *all, const char *own, size_t concurrency)
{
    all->own = own;
    all->concurrency = concurrency;
}

static struct session *find(struct sessions *all, const char *id)
{
    struct session *s;

    SLIST_FOREACH(s, bucket_of(all, id), chain)
    {
        if (strcmp(s->id, id) == 0)
            break;
    }
    return s;
}

struct session *session_enter(struct sessions *all, const char *id)
{
    struct session *s = find(all, id);

    if (!s) {
        s = calloc(1, sizeof *s);
        if (!s)
            return NULL;
        (void)snprintf(s->id, sizeof s->id, "%s", id);
        session_workspace(id, s->name);
        (void)snprintf(s->workspace, sizeof s->workspace, "%s",
                       strcmp(id, all->own) == 0 ? PLAN_WORKSPACE_OWN : s->name);
        lane_init(&s->lane, all->concurrency);
        lane_init(&s->dependencies, 1);
        SLIST_INSERT_HEAD(bucket_of(all, id), s, chain);
    }
    s->users++;
    return s;
}

bool session_is_busy(struct sessions *all, const char *id)
{
    const struct session *s = find(all, id);

    return s && s->lane.ahead + s->lane.behind_n > 0;
}

void session_leave(struct sessions *all, struct session *s)
{
    if (!s || --s->users > 0 || s->remembered)
        return;
    SLIST_REMOVE(bucket_of(all, s->id), s, session, chain);
    free(s);
}

void session_remember(struct sessions *all, struct session *s, bool on)
{
    if (s->remembered == on || (on && all->remembered_n >= SESSION_REMEMBERED_MAX))
        return;
    s->remembered = on;
    all->remembered_n += on ? 1 : (size_t)-1;
}

void sessions_done(struct sessions *all)
{
    for (size_t i = 0; i < SESSION_BUCKETS; i++) {
        struct session *s, *next;

        for (s = SLIST_FIRST(&all->buckets[i]); s; s = next) {
            next = SLIST_NEXT(s, chain);
            if (s->users > 0)
                continue;
            SLIST_REMOVE(&all->buckets[i], s, session, chain);
            free(s);
        }
    }
}
