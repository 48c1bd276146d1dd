/* SPDX-License-Identifier: MIT */
/* /v1/workspaces: the kept workspaces of sessions, listed, measured and removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/execution/workspaces.h"
#include "base/clock.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/problem.h"
#include "http/server/reply.h"

enum {
    LIMIT_USUAL = 100,
    LIMIT_MAX = 1000,
    ROW_MAX = 2048,
    PAGE_OVERHEAD = 64,
    NUMBER_MAX = 24,
    US_PER_S = 1000000,
};

/* ---- JSON ---- */

static void time_json(struct jw *w, const char *key, int64_t us)
{
    char text[CLOCK_ISO_MAX];

    jw_kv_string(w, key, us > 0 ? clock_iso_at(us / US_PER_S, us % US_PER_S * 1000, text) : NULL);
}

static void workspace_json(struct workspaces *all, const struct workspace *s, struct jw *w)
{
    bool measured = s->measured_us > 0;

    jw_object(w);
    jw_kv_string(w, "session_id", s->id[0] ? s->id : NULL);
    jw_key(w, "bytes");
    measured ? jw_int(w, (int64_t)s->bytes) : jw_null(w);
    jw_key(w, "files");
    measured ? jw_int(w, (int64_t)s->files) : jw_null(w);
    time_json(w, "measured_at", s->measured_us);
    time_json(w, "created_at", s->created_us);
    time_json(w, "last_used_at", s->used_us);
    jw_kv_bool(w, "in_use", workspace_in_use(all, s));
    jw_object_end(w);
}

/* ---- the list ---- */

static bool take_number(struct http_call *c, struct shaping *s, const char *name, uint64_t most,
                        uint64_t *ret)
{
    char text[NUMBER_MAX], *end;
    unsigned long long n;

    if (!http_query(c, name, text, sizeof text))
        return true;
    n = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && n >= 1 && n <= most) {
        *ret = n;
        return true;
    }
    shape_complain(s, name, NULL, "int_parsing", "Input should be a number from 1 to %llu",
                   (unsigned long long)most);
    return false;
}

void api_workspaces_list(struct http_call *c)
{
    struct workspaces *all = http_app(c)->workspace.all;
    cleanup_with(shaping_done) struct shaping s;
    uint64_t limit = LIMIT_USUAL, before = UINT64_MAX;
    struct workspace *at;
    char cursor[NUMBER_MAX] = "";
    struct buf body;
    struct jw w;

    shaping_init(&s, NULL);
    if (!take_number(c, &s, "limit", LIMIT_MAX, &limit) ||
        !take_number(c, &s, "cursor", INT64_MAX, &before)) {
        problem_issues(c, &s);
        return;
    }
    body = BUF_INIT(limit * ROW_MAX + PAGE_OVERHEAD);
    w = (struct jw)JW(&body);
    jw_object(&w);
    jw_key(&w, "workspaces");
    jw_array(&w);
    at = workspaces_before(all, before);
    for (uint64_t n = 0; at && n < limit; n++) {
        before = at->number;
        workspace_json(all, at, &w);
        at = workspace_older(at);
    }
    jw_array_end(&w);
    if (at)
        (void)snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)before);
    jw_kv_string(&w, "next", at ? cursor : NULL);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

/* ---- one of them ---- */

/* A client that waits for the launcher. */
struct waiting {
    struct workspace_order *order;
    struct http_call *call;
    bool discard;
};

static void reply_absent(struct http_call *c)
{
    struct err e;

    (void)err_set(&e, ERR_ABSENT, "session '%.128s' has no kept workspace",
                  http_request(c)->param[0]);
    http_reply_error(c, &e);
}

static void reply_failed(struct http_call *c, const char *what, const char *why)
{
    struct err e;

    (void)err_set(&e, ERR_HOST, "%s: %s", what, why);
    http_reply_error(c, &e);
}

static void reply_one(struct http_call *c, const struct workspace *s)
{
    struct buf body = BUF_INIT(ROW_MAX);
    struct jw w = JW(&body);

    workspace_json(http_app(c)->workspace.all, s, &w);
    http_reply_json(c, 200, &body);
}

static void on_answer(void *user, struct workspace *s, const char *failed)
{
    struct waiting *waiting = user;
    struct http_call *c = waiting->call;
    bool discard = waiting->discard;

    free(waiting);
    http_on_gone(c, NULL, NULL);
    if (failed)
        reply_failed(c, discard ? "it could not be removed" : "it could not be measured", failed);
    else if (discard)
        http_reply(c, 204, NULL, NULL);
    else if (s)
        reply_one(c, s);
    else
        reply_absent(c);
}

static void on_gone(void *user)
{
    struct waiting *w = user;

    workspace_leave(w->order);
    free(w);
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY || e->kind == ERR_DENIED)
        reply_problem(c, &(struct reply_problem){.status = 409,
                                                 .code = "Executor.Conflict",
                                                 .description = "It cannot be removed now",
                                                 .error_detail = e->text});
    else
        http_reply_error(c, e);
}

static void order(struct http_call *c, bool discard)
{
    struct workspaces *all = http_app(c)->workspace.all;
    struct workspace *s = workspaces_find(all, http_request(c)->param[0]);
    struct waiting *w = s ? calloc(1, sizeof *w) : NULL;
    struct err e;
    int r;

    if (!w) {
        s ? reply_status(c, 503) : reply_absent(c);
        return;
    }
    *w = (struct waiting){.call = c, .discard = discard};
    r = discard ? workspace_discard(all, s, on_answer, w, &w->order, &e)
                : workspace_measure(all, s, on_answer, w, &w->order, &e);
    if (r == 0) {
        http_on_gone(c, on_gone, w);
        return;
    }
    free(w);
    reply_refused(c, &e);
}

void api_workspace_get(struct http_call *c)
{
    order(c, false);
}

void api_workspace_delete(struct http_call *c)
{
    order(c, true);
}
