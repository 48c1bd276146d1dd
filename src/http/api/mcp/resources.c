/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/resources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/execution/execution.h"
#include "base/base64.h"
#include "base/mime.h"
#include "base/utf8.h"
#include "core/port_store.h"
#include "http/api/mcp/guide.h"
#include "http/api/mcp/tool.h"
#include "http/api/mcp/tool_file.h"
#include "http/server/route.h"

enum {
    LISTED_MAX = 100,
    TEXT_MAX = 1 << 20, /* bytes that are sent as text; more is Base64 */
    BLOB_MAX = 4 << 20, /* a larger file is not sent at all */
    ADDRESS_MAX = 3 * FILE_PATH_MAX + 256,
    DATA_MAX = 2 * ADDRESS_MAX + 256,
    CONTENT_MAX = 3 * BLOB_MAX,
};

#define SANDBOXES "sbx://sandboxes/"
#define RUNS      "sbx://runs/"
#define GUIDE     "sbx://guide"

/* ---- lists ---- */

static void put_encoded(struct buf *out, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

    for (; *text; text++)
        if (strchr(plain, *text))
            (void)buf_putc(out, *text);
        else
            (void)buf_printf(out, "%%%02X", (unsigned char)*text);
}

void mcp_file_uri(struct buf *out, const char *sandbox, const char *path)
{
    (void)buf_printf(out, SANDBOXES "%s/files", sandbox);
    put_encoded(out, path);
}

static void write_one(struct jw *w, const char *uri, const char *name, const char *type)
{
    jw_kv_string(w, "uri", uri);
    jw_kv_string(w, "name", name);
    jw_kv_string(w, "mimeType", type);
}

static void write_file(struct jw *w, const struct left_file *f)
{
    cleanup_with(buf_done) struct buf uri = BUF_INIT(ADDRESS_MAX);

    mcp_file_uri(&uri, f->sandbox, f->path);
    if (uri.failed)
        return;
    jw_object(w);
    write_one(w, uri.p, f->path, mime_of(f->path));
    jw_kv_int(w, "size", (int64_t)f->size);
    jw_object_end(w);
}

void mcp_write_resources(const struct mcp_exchange *x, struct jw *w)
{
    const struct app *a = x->app;
    uint64_t owner = mcp_owner(a->mcp_side.sessions, mcp_token(x->call));
    const struct left_file *f;
    size_t n = 0;

    jw_key(w, "resources");
    jw_array(w);
    jw_object(w);
    write_one(w, GUIDE, "guide", "text/markdown");
    jw_kv_string(w, "title", "Guide to the sandboxes");
    jw_kv_string(w, "description", "Languages with versions, packages, limits and rules");
    jw_object_end(w);
    TAILQ_FOREACH(f, &a->mcp_side.sessions->left.list, link)
    if (f->owner == owner && n < LISTED_MAX && sandboxes_get(a->sandboxes, f->sandbox)) {
        write_file(w, f);
        n++;
    }
    jw_array_end(w);
}

/* clang-format off */
static const struct {
    const char *address, *name, *about;
} patterns[] = {
    {SANDBOXES "{sandbox}/files/{+path}", "file",     "A file of a sandbox; the path is absolute, without its first slash"},
    {RUNS "{run}/artifacts/{+path}",      "artifact", "A file that an execution (/execute) has left in its workspace"},
};
/* clang-format on */

void mcp_write_resource_templates(struct jw *w)
{
    jw_key(w, "resourceTemplates");
    jw_array(w);
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        jw_object(w);
        jw_kv_string(w, "uriTemplate", patterns[i].address);
        jw_kv_string(w, "name", patterns[i].name);
        jw_kv_string(w, "description", patterns[i].about);
        jw_object_end(w);
    }
    jw_array_end(w);
}

/* ---- answers ---- */

static void answer(struct mcp_exchange *x, const struct buf *contents)
{
    struct buf out = BUF_INIT(MCP_ANSWER_MAX);
    struct jw w = JW(&out);

    mcp_result_begin(x, &w, NULL);
    jw_key(&w, "contents");
    jw_array(&w);
    jw_raw(&w, contents->p, contents->n);
    jw_array_end(&w);
    if (x->modern) {
        jw_kv_int(&w, "ttlMs", 0);
        jw_kv_string(&w, "cacheScope", "private");
    }
    jw_object_end(&w);
    mcp_answer(x, &out);
}

/* hint: where else it can be had, or NULL. */
static void refuse(struct mcp_exchange *x, enum rpc_code code, const char *hint, const char *words)
{
    struct json_value uri = json_member(x->message.params, "uri");
    cleanup_with(buf_done) struct buf data = BUF_INIT(DATA_MAX + uri.n);
    struct jw w = JW(&data);

    jw_object(&w);
    jw_key(&w, "uri");
    jw_raw(&w, uri.p, uri.n);
    if (hint)
        jw_kv_string(&w, "hint", hint);
    jw_object_end(&w);
    mcp_fail(x, code, data.p, "%s", words);
}

static void refuse_missing(struct mcp_exchange *x)
{
    refuse(x, x->modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE, NULL, "Resource not found");
}

/* ---- files ---- */

/* What a worker thread makes of a file. */
struct content {
    char *uri; /* owned */
    const char *type;
    struct buf json;
};

struct reading {
    struct mcp_exchange *x;
    struct activity activity; /* in the sandbox, if it is a file of one */
    struct tool_file *file;   /* NULL: it has ended */
    char *path;               /* owned */
    char elsewhere[ADDRESS_MAX];
};

static void content_free(void *plan)
{
    struct content *c = plan;

    buf_done(&c->json);
    free(c->uri);
    free(c);
}

/* On a worker thread. */
static void write_content(void *plan, struct buf *bytes)
{
    struct content *c = plan;
    struct jw w = JW(&c->json);
    const char *p = bytes->p ? bytes->p : "";
    bool text = bytes->n <= TEXT_MAX && !memchr(p, '\0', bytes->n) && utf8_is_valid(p, bytes->n);
    cleanup_with(buf_done) struct buf coded = BUF_INIT(BASE64_LENGTH(bytes->n) + 1);

    jw_object(&w);
    jw_kv_string(&w, "uri", c->uri);
    jw_kv_string(&w, "mimeType",
                 text && strcmp(c->type, MIME_DEFAULT) == 0 ? "text/plain" : c->type);
    if (text) {
        jw_kv_bytes(&w, "text", p, bytes->n);
    } else {
        c->json.failed = base64_encode(p, bytes->n, &coded) < 0;
        jw_kv_bytes(&w, "blob", coded.p ? coded.p : "", coded.n);
    }
    jw_object_end(&w);
}

static void reading_free(struct reading *r)
{
    tool_file_leave(r->file);
    activity_end(&r->activity);
    free(r->path);
    free(r);
}

static void on_stop(void *user)
{
    reading_free(user);
}

static void on_drop(struct activity *a)
{
    struct reading *r = (struct reading *)((char *)a - offsetof(struct reading, activity));

    r->x->request.cancel(&r->x->request);
}

static void on_read(void *user, struct tool_file_end *end)
{
    struct reading *r = user;
    struct mcp_exchange *x = r->x;
    struct content *c = end->plan;

    r->file = NULL;
    x->worker = (struct mcp_worker){0};
    if (end->sys == 0 && c->json.failed)
        mcp_fail(x, RPC_INTERNAL, NULL, "out of memory");
    else if (end->sys == 0)
        answer(x, &c->json);
    else if (end->sys == EFBIG)
        refuse(x, RPC_INVALID_PARAMS, r->elsewhere, "the file is larger than 4 MiB");
    else if (end->sys == ENOENT || end->sys == ENOTDIR || end->sys == ENAMETOOLONG)
        refuse_missing(x);
    else if (end->sys == EISDIR)
        refuse(x, RPC_INVALID_PARAMS, NULL, "it is a directory: list_files shows what is in it");
    else
        refuse(x, end->sys < 0 ? RPC_INTERNAL : RPC_INVALID_PARAMS, NULL,
               tool_file_words(end->sys));
    reading_free(r);
}

/* Takes the path. NULL: answered. */
static struct reading *reading_new(struct mcp_exchange *x, char *path)
{
    struct reading *r = path ? calloc(1, sizeof *r) : NULL;

    if (r) {
        r->x = x;
        r->path = path;
        return r;
    }
    free(path);
    mcp_fail(x, RPC_INTERNAL, NULL, "out of memory");
    return NULL;
}

/* Without its plan there is no memory. */
static struct tool_file_reader reader_of(struct reading *r, const char *uri)
{
    struct content *c = calloc(1, sizeof *c);

    if (c) {
        c->uri = strdup(uri);
        c->type = mime_of(r->path);
        c->json = BUF_INIT(CONTENT_MAX);
    }
    if (c && !c->uri)
        content_free(take_ptr(&c));
    return (struct tool_file_reader){.max = BLOB_MAX,
                                     .look = write_content,
                                     .plan = c,
                                     .plan_free = content_free,
                                     .done = on_read,
                                     .user = r};
}

/* The reading has begun, or could not. */
static void wait_for(struct reading *r)
{
    struct mcp_exchange *x = r->x;

    if (r->file) {
        mcp_wait(x, &(struct mcp_worker){.stop = on_stop, .user = r});
        return;
    }
    reading_free(r);
    mcp_fail(x, RPC_INTERNAL, NULL, "the sandbox is busy, or memory ran out: try again");
}

/* "SANDBOX/files/PATH" */
static void read_file(struct mcp_exchange *x, const char *uri, const char *rest)
{
    static const char files[] = "/files/";
    const char *at = strstr(rest, files);
    struct persistent *home = at ? mcp_sandbox_find(x->app, rest, (size_t)(at - rest)) : NULL;
    struct tool_file_reader reader;
    char plain[FILE_PATH_MAX + 2] = "/";
    struct reading *r;

    if (!home || strlen(at) > 3 * FILE_PATH_MAX) {
        refuse_missing(x);
        return;
    }
    at += sizeof files - 1;
    if (strlen(at) > FILE_PATH_MAX || !route_decode(at, strlen(at), plain + 1)) {
        refuse_missing(x);
        return;
    }
    r = reading_new(x, tool_path(home, (struct bytes){plain, strlen(plain)}));
    if (!r)
        return;
    (void)snprintf(r->elsewhere, sizeof r->elsewhere, "GET /v1/sandboxes/%s/files/%s", home->id,
                   at);
    activity_begin(home, &r->activity, on_drop);
    reader = reader_of(r, uri);
    r->file = reader.plan ? tool_file_read(home, r->path, &reader) : NULL;
    wait_for(r);
}

/* "RUN/artifacts/PATH" */
static void read_artifact(struct mcp_exchange *x, const char *uri, const char *rest)
{
    static const char artifacts[] = "/artifacts/";
    const char *at = strstr(rest, artifacts);
    const struct execution *run = NULL;
    const struct artifact *a = NULL;
    struct tool_file_reader reader;
    char id[128] = "", plain[FILE_PATH_MAX + 1];
    struct reading *r;
    struct err e;
    int fd;

    if (at && (size_t)(at - rest) < sizeof id) {
        (void)snprintf(id, sizeof id, "%.*s", (int)(at - rest), rest);
        at += sizeof artifacts - 1;
        run = registry_find(&x->app->registry, id);
    }
    if (run && execution_is_done(run) && strlen(at) <= FILE_PATH_MAX &&
        route_decode(at, strlen(at), plain))
        a = artifacts_find(&run->artifacts, plain);
    fd = a && a->stored.number ? store_read(x->app->store, a->stored.number, &e) : -1;
    if (fd < 0) {
        refuse_missing(x);
        return;
    }
    r = reading_new(x, strdup(plain));
    if (!r) {
        (void)close(fd);
        return;
    }
    (void)snprintf(r->elsewhere, sizeof r->elsewhere, "GET /v1/executions/%s/artifacts/%s", id, at);
    reader = reader_of(r, uri);
    if (a->stored.size > BLOB_MAX || !reader.plan) {
        struct content *c = reader.plan;

        (void)close(fd);
        on_read(r, &(struct tool_file_end){.sys = c ? EFBIG : ENOMEM, .plan = c});
        if (c)
            content_free(c);
        return;
    }
    r->file = tool_file_take(x->app, fd, a->stored.size, &reader);
    wait_for(r);
}

static void read_guide(struct mcp_exchange *x, const char *uri, const char *rest)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(GUIDE_MAX), json = BUF_INIT(2 * GUIDE_MAX);
    struct jw w = JW(&json);

    (void)rest;
    mcp_write_guide(x->app, &text);
    jw_object(&w);
    jw_kv_string(&w, "uri", uri);
    jw_kv_string(&w, "mimeType", "text/markdown");
    jw_kv_bytes(&w, "text", text.p, text.n);
    jw_object_end(&w);
    answer(x, &json);
}

/* clang-format off */
static const struct {
    const char *beginning;
    bool whole; /* nothing comes behind it */
    void (*read)(struct mcp_exchange *x, const char *uri, const char *rest);
} kinds[] = {
    {GUIDE,     true,  read_guide},
    {SANDBOXES, false, read_file},
    {RUNS,      false, read_artifact},
};
/* clang-format on */

void mcp_resource_read(struct mcp_exchange *x)
{
    struct json_value v = json_member(x->message.params, "uri");
    cleanup_with(buf_done) struct buf uri = BUF_INIT(ADDRESS_MAX);

    if (!v.p || v.type != JSON_STRING) {
        mcp_fail(x, RPC_INVALID_PARAMS, NULL, "resources/read needs a uri");
        return;
    }
    if (json_decode_string(v, 0, &uri) == 0 && uri.n > 0 && !memchr(uri.p, '\0', uri.n))
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
            size_t n = strlen(kinds[i].beginning);

            if (strncmp(uri.p, kinds[i].beginning, n) != 0 || (kinds[i].whole && uri.p[n]))
                continue;
            kinds[i].read(x, uri.p, uri.p + n);
            return;
        }
    refuse_missing(x);
}
