/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/tool_list.h"

#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/tools/toolbox.h"
#include "base/base64.h"
#include "http/api/mcp/methods.h"
#include "http/api/mcp/tools.h"

/* tools.json: what clients are told about our own tools. */
extern const char mcp_tools_text[];
extern const size_t mcp_tools_text_n;

enum { FILTER_MAX = 1024 /* of ?tools= */ };

/* The page that is being written. */
struct page {
    const struct mcp_exchange *x;
    struct jw *w;
    char only[FILTER_MAX];      /* names between commas; "": all */
    char after[MCP_CURSOR_MAX]; /* the last one of the page before; "": this is the first */
    char last[MCP_CURSOR_MAX];  /* that was written */
    size_t n;
    bool begun; /* what comes is behind `after` */
    bool more;
};

void mcp_write_published(struct jw *w, const struct published *t)
{
    jw_object(w);
    jw_kv_string(w, "name", t->name);
    jw_kv_string(w, "title", t->name);
    jw_key(w, "description");
    jw_raw(w, t->description.p, t->description.n);
    jw_key(w, "inputSchema");
    jw_raw(w, t->schema.p, t->schema.n);
    jw_key(w, "annotations");
    jw_object(w);
    jw_kv_bool(w, "readOnlyHint", true);
    jw_kv_bool(w, "destructiveHint", false);
    jw_kv_bool(w, "idempotentHint", false);
    jw_kv_bool(w, "openWorldHint", false);
    jw_object_end(w);
    jw_object_end(w);
}

/* Does the next tool belong to this page? */
static bool takes(struct page *p, const char *name, size_t n)
{
    if (!p->begun || (*p->only && !mcp_list_has(p->only, name, n)) || n >= sizeof p->last)
        return false;
    if (p->n >= MCP_TOOLS_PAGE) {
        p->more = true;
        return false;
    }
    p->n++;
    memcpy(p->last, name, n);
    p->last[n] = '\0';
    return true;
}

/* With upstreams, code that runs reaches others. */
static void write_open(struct jw *w, struct json_value tool)
{
    static const char closed[] = "\"openWorldHint\":false", open[] = "\"openWorldHint\":true";
    const char *at = memmem(tool.p, tool.n, closed, sizeof closed - 1);
    size_t before = at ? (size_t)(at - tool.p) : tool.n;

    jw_raw(w, tool.p, before);
    if (!at)
        return;
    (void)buf_puts(w->out, open);
    (void)buf_put(w->out, at + sizeof closed - 1, tool.n - before - (sizeof closed - 1));
}

static void write_one(struct page *p, const struct mcp_tool *t, struct json_value one)
{
    if (t->call == tool_run_code && p->x->app->mcp_side.tools->upstreams)
        write_open(p->w, one);
    else
        jw_raw(p->w, one.p, one.n);
}

static void write_ours(struct page *p)
{
    struct json_value all, one, name;
    const struct mcp_tool *t;
    size_t at = 0;
    struct err e;

    if (json_parse(mcp_tools_text, mcp_tools_text_n, 0, &all, &e) < 0)
        return;
    while (json_array_next(all, &at, &one)) {
        name = json_member(one, "name");
        t = mcp_tool_find((struct bytes){name.p + 1, name.n - 2});
        if (t && mcp_tool_is_offered(p->x->app, t->name) && takes(p, name.p + 1, name.n - 2))
            write_one(p, t, one);
        if (json_key_is(name, p->after))
            p->begun = true;
    }
}

static void write_published(struct page *p)
{
    struct published **all = toolbox_sorted(p->x->app->mcp_side.tools);

    for (size_t i = 0; all && all[i]; i++) {
        const char *name = all[i]->name;

        p->begun = p->begun || strcmp(name, p->after) > 0;
        if (takes(p, name, strlen(name)))
            mcp_write_published(p->w, all[i]);
    }
    free(all);
}

/* The cursor is the name of the last tool, in Base64. */
static bool read_cursor(struct page *p)
{
    struct json_value cursor = json_member(p->x->message.params, "cursor");
    cleanup_with(buf_done) struct buf name = BUF_INIT(sizeof p->after - 1);

    p->begun = !cursor.p;
    if (!cursor.p)
        return true;
    if (cursor.type != JSON_STRING || base64_decode(cursor.p + 1, cursor.n - 2, &name) < 0 ||
        !name.p || strlen(name.p) != name.n)
        return false;
    memcpy(p->after, name.p, name.n);
    return true;
}

bool mcp_write_tools(const struct mcp_exchange *x, struct jw *w)
{
    struct page p = {.x = x, .w = w};
    cleanup_with(buf_done) struct buf cursor = BUF_INIT(2 * MCP_CURSOR_MAX);

    if (!read_cursor(&p))
        return false;
    (void)http_query(x->call, "tools", p.only, sizeof p.only);
    jw_key(w, "tools");
    jw_array(w);
    write_ours(&p);
    write_published(&p);
    jw_array_end(w);
    if (p.more && base64_encode(p.last, strlen(p.last), &cursor) == 0)
        jw_kv_string(w, "nextCursor", cursor.p);
    return true;
}
