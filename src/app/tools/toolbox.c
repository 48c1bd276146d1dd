/* SPDX-License-Identifier: MIT */
#include "app/tools/toolbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "app/function/call.h"
#include "app/tools/code_run.h"
#include "app/tools/record.h"
#include "app/tools/upstream.h"

enum { MIB = 20 /* bits */ };

/* ---- finding ---- */

static bool is_named(const struct bundle *b, const char *name, size_t n)
{
    return b->is.name.n == n && memcmp(b->is.name.p, name, n) == 0;
}

struct bundle *toolbox_bundle(const struct toolbox *t, const char *name, size_t n)
{
    struct bundle *b;

    TAILQ_FOREACH(b, &t->bundles, link)
    if (is_named(b, name, n))
        return b;
    return NULL;
}

struct published *toolbox_tool(const struct toolbox *t, const char *name, size_t n)
{
    struct published *found;
    struct bundle *b;

    TAILQ_FOREACH(b, &t->bundles, link)
    if ((found = bundle_tool(b, name, n)))
        return found;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct published *const *)a)->name, (*(struct published *const *)b)->name);
}

struct published **toolbox_sorted(const struct toolbox *t)
{
    struct published **all = calloc(t->tools_n + 1, sizeof(struct published *));
    struct bundle *b;
    size_t n = 0;

    if (!all)
        return NULL;
    TAILQ_FOREACH(b, &t->bundles, link)
    for (size_t i = 0; i < b->tools_n; i++)
        all[n++] = &b->tools[i];
    qsort(all, n, sizeof(struct published *), by_name);
    return all;
}

/* ---- the list ---- */

void toolbox_take_out(struct toolbox *t, struct bundle *b)
{
    TAILQ_REMOVE(&t->bundles, b, link);
    t->bundles_n--;
    t->tools_n -= b->tools_n;
    bundle_free(b);
}

void toolbox_put_in(struct toolbox *t, struct bundle *b)
{
    struct bundle *at, *old = toolbox_bundle(t, b->is.name.p, b->is.name.n);

    if (old)
        toolbox_take_out(t, old);
    TAILQ_FOREACH(at, &t->bundles, link)
    if (strcmp(at->is.name.p, b->is.name.p) > 0)
        break;
    if (at)
        TAILQ_INSERT_BEFORE(at, b, link);
    else
        TAILQ_INSERT_TAIL(&t->bundles, b, link);
    t->bundles_n++;
    t->tools_n += b->tools_n;
}

int toolbox_admits(const struct toolbox *t, const struct bundle *b, toolbox_reserved_fn *reserved,
                   struct err *e)
{
    const struct bundle *old = toolbox_bundle(t, b->is.name.p, b->is.name.n);
    size_t tools = t->tools_n - (old ? old->tools_n : 0) + b->tools_n;

    for (size_t i = 0; i < b->tools_n; i++) {
        const char *name = b->tools[i].name;
        const struct published *other = toolbox_tool(t, name, strlen(name));

        if (reserved && reserved(t->app, name)) {
            (void)err_set(e, ERR_BUSY, "'%s' is a tool of this server and cannot be replaced",
                          name);
            return err_type(e, ERR_NONE, TOOLBOX_CONFLICT);
        }
        if (other && other->bundle != old) {
            (void)err_set(e, ERR_BUSY, "'%s' is defined by the bundle '%s'", name,
                          other->bundle->is.name.p);
            return err_type(e, ERR_NONE, TOOLBOX_CONFLICT);
        }
    }
    if (!old && t->bundles_n >= TOOLBOX_BUNDLES_MAX)
        return err_set(e, ERR_CALLER, "bundle: there are %d bundles already; remove one",
                       TOOLBOX_BUNDLES_MAX);
    if (tools > t->app->config.mcp_published_max)
        return err_set(e, ERR_CALLER,
                       "code: there would be %zu tools, at most %zu (MCP_PUBLISHED_MAX)", tools,
                       (size_t)t->app->config.mcp_published_max);
    return 0;
}

/* ---- opening ---- */

static void load_bundle(struct toolbox *t, const char *dir, const char *name)
{
    char path[TOOLBOX_PATH];
    int64_t versions[TOOLBOX_VERSIONS * 2];
    size_t n = record_versions(dir, name, versions, ARRAY_LEN(versions));
    struct bundle *b;
    struct err e;

    if (n == 0)
        return;
    record_path(path, dir, name, versions[0]);
    if (record_load(path, &b, &e) < 0) {
        log_event(&t->app->log, LOG_WARN, "tools_unreadable", LOG_STR("bundle", name),
                  LOG_STR("error", e.text));
        return;
    }
    if (!is_named(b, name, strlen(name)) || toolbox_admits(t, b, NULL, &e) < 0)
        bundle_free(b);
    else
        toolbox_put_in(t, b);
}

int toolbox_open(struct app *a, struct toolbox **ret, struct err *e)
{
    struct toolbox *t = calloc(1, sizeof *t);
    char path[TOOLBOX_PATH];
    DIR *d;

    if (!t)
        return err_set(e, ERR_HOST, "no memory for tools");
    t->app = a;
    TAILQ_INIT(&t->bundles);
    TAILQ_INIT(&t->active);
    if (code_journals_new(&t->journals, e) < 0) {
        free(t);
        return -1;
    }
    if (upstreams_open(a, &t->upstreams, e) < 0) {
        toolbox_close(t);
        return -1;
    }
    toolbox_dir(t, path);
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || !(d = opendir(path))) {
        (void)err_sys(e, -errno, "directory of tools '%.300s'", path);
        toolbox_close(t);
        return -1;
    }
    for (const struct dirent *at; (at = readdir(d));)
        if (bundle_name_is_good(at->d_name, strlen(at->d_name)))
            load_bundle(t, path, at->d_name);
    (void)closedir(d);
    *ret = t;
    return 0;
}

void toolbox_dir(const struct toolbox *t, char out[TOOLBOX_PATH])
{
    (void)snprintf(out, TOOLBOX_PATH, "%.1000s/tools", t->app->config.state_dir);
}

void toolbox_close(struct toolbox *t)
{
    struct bundle *b;

    if (!t)
        return;
    publications_done(t);
    while ((b = TAILQ_FIRST(&t->bundles)))
        toolbox_take_out(t, b);
    upstreams_close(t->upstreams);
    code_journals_free(t->journals);
    free(t);
}

/* ---- calling ---- */

int published_call(struct toolbox *t, const struct published_order *p,
                   const struct function_order *o, struct call **ret, struct err *e)
{
    struct buf body = BUF_INIT(0);
    struct function_order whole = *o;

    if (published_write_call(p, &body, e) < 0) {
        buf_done(&body);
        return -1;
    }
    whole.text = &body;
    whole.memory_max = (uint64_t)p->tool->bundle->is.memory_mb << MIB;
    return app_call(t->app, &whole, ret, e);
}
