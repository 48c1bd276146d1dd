/* SPDX-License-Identifier: MIT */
/*
 * Which sandbox a tool works in. One that was made because none was named is an orphan, and does
 * not live long unless a later request names it.
 */
#include <string.h>

#include "app/daemon/app.h"
#include "app/mcp/sessions.h"
#include "http/api/mcp/tool.h"

enum { MS_PER_S = 1000, MIB = 20 /* bits */, FULL_PERCENT = 90, SOME = 64 };

static const char gone_hint[] =
    "leave out sandbox to get a new one, and write the files you need again; list_sandboxes shows "
    "what is there";

static bool is_of(const struct persistent *p, const char *what)
{
    const char *owner = persistent_pair(p, MCP_OWNER);

    return owner && strcmp(owner, what) == 0;
}

/* A request has named it: it is kept as others are. */
static void keep(const struct app *a, struct persistent *p)
{
    if (is_of(p, MCP_OWNER_ORPHAN))
        persistent_set_idle(p, a->config.mcp_sandbox_idle_s * MS_PER_S);
    else if (is_of(p, MCP_OWNER_LEFT))
        persistent_set_end(p, a->config.mcp_sandbox_max_s * MS_PER_S);
    else
        return;
    persistent_set_pair(p, MCP_OWNER, MCP_OWNER_NAMED);
}

/* Most places are taken: the oldest sandbox that was never named again gives way. */
static void make_room(struct app *a)
{
    const struct exec_var pair = {
        .name = {MCP_OWNER,        sizeof MCP_OWNER - 1       },
        .value = {MCP_OWNER_ORPHAN, sizeof MCP_OWNER_ORPHAN - 1}
    };
    const struct sandboxes_query q = {.pairs = &pair, .pairs_n = 1, .oldest_first = true};
    const struct persistent *some[SOME];
    bool more;
    size_t n;

    if (a->sandboxes->n * 100 < a->config.sandboxes_max * FULL_PERCENT)
        return;
    n = sandboxes_select(a->sandboxes, &q, SOME, some, &more);
    for (size_t i = 0; i < n; i++)
        if (TAILQ_EMPTY(&some[i]->activities)) {
            sandboxes_delete(sandboxes_get(a->sandboxes, some[i]->id), NULL, NULL);
            return;
        }
}

static struct persistent *make(struct tool_call *t, const struct tool_sandbox_spec *own,
                               const char *owner, uint64_t idle_s)
{
    struct app *a = t->x->app;
    const struct exec_var pair = {
        .name = {MCP_OWNER, sizeof MCP_OWNER - 1},
          .value = {owner,     strlen(owner)       }
    };
    struct persistent_spec spec = {
        .name = own->name,
        .pairs = &pair,
        .pairs_n = 1,
        .limits = sandboxes_limits(a),
        .idle_ms = idle_s * MS_PER_S,
        .span_ms = a->config.mcp_sandbox_max_s * MS_PER_S,
        .env = own->env,
        .env_n = own->env_n,
    };
    struct persistent *p;
    struct err e;

    if (own->memory_mb > 0 && own->memory_mb << MIB < spec.limits.memory_max)
        spec.limits.memory_max = own->memory_mb << MIB;
    make_room(a);
    if (sandboxes_create(a->sandboxes, &spec, &p, &e) == 0)
        return p;
    tool_refuse_err(t,
                    e.kind == ERR_CALLER
                        ? "take another name, or use that sandbox by its name"
                        : "delete a sandbox that is no longer needed (list_sandboxes, "
                          "delete_sandbox), or try again in 10 s",
                    &e);
    return NULL;
}

struct persistent *tool_sandbox_make(struct tool_call *t, const struct tool_sandbox_spec *spec)
{
    uint64_t idle_s = spec->idle_s > 0 ? spec->idle_s : t->x->app->config.mcp_sandbox_idle_s;

    return make(t, spec, MCP_OWNER_NAMED, idle_s);
}

struct persistent *mcp_sandbox_find(struct app *a, const char *name, size_t n)
{
    char id[PERSISTENT_NAME_MAX + 1];
    struct persistent *p;
    struct err e;

    if (n == 0 || n > PERSISTENT_NAME_MAX || memchr(name, '\0', n))
        return NULL;
    memcpy(id, name, n);
    id[n] = '\0';
    if (sandboxes_find(a->sandboxes, id, &p, &e) < 0)
        return NULL;
    keep(a, p);
    return p;
}

static struct persistent *of_address(struct tool_call *t)
{
    struct persistent *p = mcp_sandbox_find(t->x->app, t->place, strlen(t->place));

    return p ? p : tool_sandbox_make(t, &(struct tool_sandbox_spec){.name = t->place});
}

static struct persistent *of_session(struct tool_call *t)
{
    struct mcp_session *m = t->session;
    struct persistent *p = m->sandbox[0] ? sandboxes_get(t->x->app->sandboxes, m->sandbox) : NULL;

    if (p)
        return p;
    t->lost = t->lost || m->sandbox[0];
    p = tool_sandbox_make(t, &(struct tool_sandbox_spec){.name = ""});
    if (p)
        (void)snprintf(m->sandbox, sizeof m->sandbox, "%s", p->id);
    return p;
}

struct persistent *tool_sandbox(struct tool_call *t, struct bytes handle, enum tool_need need)
{
    struct persistent *p;

    if (handle.p) {
        p = mcp_sandbox_find(t->x->app, handle.p, handle.n);
        if (!p)
            tool_refuse(t, gone_hint,
                        "there is no sandbox '%.128s': it was deleted, or was idle for too long",
                        handle.p);
        return p;
    }
    if (t->place[0])
        return of_address(t);
    if (t->session)
        return of_session(t);
    if (need == TOOL_MAKES)
        return make(t, &(struct tool_sandbox_spec){.name = ""}, MCP_OWNER_ORPHAN,
                    t->x->app->config.mcp_orphan_s);
    tool_refuse(t,
                "pass the handle that an earlier result named; list_sandboxes shows what is there",
                "sandbox is missing: there is nothing to look at in a new one");
    return NULL;
}
