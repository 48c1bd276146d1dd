/* SPDX-License-Identifier: MIT */
/*
 * /v1/sandboxes/{id}/files/{path}: files of a sandbox as they are, of any size.
 *
 * What is uploaded goes through a pipe to a worker inside, no faster than that
 * writes; what is downloaded is sent from the file itself. An upload that breaks off
 * leaves the old file, or none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/api/problem.h"
#include "http/api/sandboxes/download.h"
#include "http/api/sandboxes/raw.h"
#include "http/server/reply.h"

enum {
    REPLY_MAX = 1024,
    KIND_MAX = 64, /* name of a kind of archive */
};

void raw_free(struct raw_call *r)
{
    activity_end(&r->activity);
    filework_free(r->filework);
    free(r->path);
    free(r);
}

static void raw_drop(struct activity *a)
{
    raw_free((struct raw_call *)((char *)a - offsetof(struct raw_call, activity)));
}

/* clang-format off */
static const struct {
    int sys, status;
    const char *code;
} statuses[] = {
    {ENOENT,       404, "Executor.NotFound"},
    {ENOTDIR,      404, "Executor.NotFound"},
    {EACCES,       403, "Executor.Forbidden"},
    {EPERM,        403, "Executor.Forbidden"},
    {EROFS,        403, "Executor.Forbidden"},
    {EISDIR,       409, "Executor.IsDirectory"},
    {ENOTEMPTY,    409, "Executor.NotEmpty"},
    {EBUSY,        409, "Executor.Conflict"},
    {EEXIST,       409, "Executor.Conflict"},
    {EXDEV,        400, "Executor.ValidationError"},
    {ELOOP,        400, "Executor.ValidationError"},
    {EINVAL,       400, "Executor.ValidationError"},
    {ENAMETOOLONG, 400, "Executor.ValidationError"},
    {ENXIO,        400, "Executor.ValidationError"},
    {EFBIG,        413, "Executor.PayloadTooLarge"},
    {ENOSPC,       507, "Executor.Storage"},
    {EDQUOT,       507, "Executor.Storage"},
    {FILE_ENDED,   410, "Executor.Gone"},
    {FILE_BUSY,    503, "Executor.Busy"},
};
/* clang-format on */

void raw_reply_failure(struct http_call *c, const struct file_result *r)
{
    struct reply_problem p = {.status = 500,
                              .code = "Executor.InternalError",
                              .description = "The file operation failed"};
    char words[128] = "the sandbox has ended", text[512];

    if (r->sys > 0)
        koyeb_sys_words(r->sys, words);
    else if (r->sys == FILE_BUSY)
        (void)snprintf(words, sizeof words, "the sandbox has no place for another request");
    (void)snprintf(text, sizeof text, "%s %.300s: %s", r->op, r->path, words);
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].sys == r->sys) {
            p.status = statuses[i].status;
            p.code = statuses[i].code;
        }
    p.error_detail = text;
    if (p.status == 503)
        http_set_header(c, "Retry-After", "1");
    reply_problem(c, &p);
}

struct raw_call *raw_begin(struct http_call *c, struct file_order *o, filework_fn *done)
{
    const char *path = http_request(c)->param[1];
    struct raw_call *r = calloc(1, sizeof *r);
    struct persistent *p = koyeb_sandbox(c);
    struct err e;

    if (!p) {
        free(r);
        return NULL;
    }
    if (!r || asprintf(&r->path, "/%s", path) < 0) {
        free(r);
        reply_status(c, 503);
        return NULL;
    }
    r->call = c;
    o->path = (struct bytes){r->path, strlen(r->path)};
    if (filework_start(&p->inside.files, o, done, r, &r->filework, &e) < 0) {
        http_reply_error(c, &e);
        raw_free(r);
        return NULL;
    }
    activity_begin(p, &r->activity, raw_drop);
    return r;
}

/* ---- download ---- */

static void on_opened(void *user, struct file_result *f)
{
    struct raw_call *r = user;

    r->filework = NULL;
    if (f->sys) {
        raw_reply_failure(r->call, f);
    } else if (!download_reply(r->call, r->path, f, false)) {
        reply_problem(r->call,
                      &(struct reply_problem){.status = 416,
                                              .code = "Executor.Range",
                                              .description = "The range is outside the file"});
    }
    raw_free(r);
}

void api_raw_get(struct http_call *c)
{
    struct file_order o = {.verb = FILE_READ, .bytes_max = DOWNLOAD_BYTES_MAX};
    char kind[KIND_MAX];

    if (http_query(c, "archive", kind, sizeof kind))
        archive_get(c, kind);
    else
        (void)raw_begin(c, &o, on_opened);
}

/* ---- conditions ---- */

/*
 * A client that sends one of these headers relies on it. They cannot be checked in one step with
 * the change of the file, so such a request is refused. True: it was, and the call is answered.
 */
static bool refuse_conditions(struct http_call *c)
{
    static const char *const names[] = {"If-Match", "If-None-Match", "If-Modified-Since",
                                        "If-Unmodified-Since", "Content-Range"};
    char text[64];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!http_header(c, names[i]))
            continue;
        (void)snprintf(text, sizeof text, "%s is for reading only", names[i]);
        reply_problem(c, &(struct reply_problem){
                             .status = 400,
                             .code = "Executor.ValidationError",
                             .description = "A change of a file takes no conditions and no parts",
                             .error_detail = text,
                             .solution = "Send the whole file, without that header"});
        return true;
    }
    return false;
}

/* ---- upload ---- */

static int on_data(void *user, const char *p, size_t n)
{
    struct raw_call *r = user;

    if (!filework_feed(r->filework, p, n))
        http_body_pause(r->call);
    return 0;
}

static void on_end(void *user)
{
    struct raw_call *r = user;

    filework_feed_end(r->filework);
}

static void on_drain(void *user)
{
    struct raw_call *r = user;

    http_body_resume(r->call);
}

static void on_gone(void *user)
{
    raw_free(user);
}

void raw_take_body(struct raw_call *r)
{
    filework_on_drain(r->filework, on_drain);
    http_on_body(r->call, on_data, on_end, r);
    http_on_gone(r->call, on_gone, r);
}

void raw_body_over(struct raw_call *r)
{
    http_on_gone(r->call, NULL, NULL);
    http_on_body(r->call, NULL, NULL, NULL);
}

static void on_written(void *user, struct file_result *f)
{
    struct raw_call *r = user;
    struct buf body = BUF_INIT(REPLY_MAX + strlen(r->path) * 6);
    struct jw w = JW(&body);
    char etag[DOWNLOAD_ETAG_MAX];

    r->filework = NULL;
    raw_body_over(r);
    if (f->sys) {
        raw_reply_failure(r->call, f);
        raw_free(r);
        return;
    }
    download_etag(f, etag);
    http_set_header(r->call, "ETag", etag);
    jw_object(&w);
    jw_kv_string(&w, "path", r->path);
    jw_kv_int(&w, "size", (int64_t)f->size);
    jw_object_end(&w);
    http_reply_json(r->call, 200, &body);
    raw_free(r);
}

void api_raw_put(struct http_call *c)
{
    struct file_order o = {.verb = FILE_WRITE, .parents = true};
    struct raw_call *r;
    char kind[KIND_MAX];

    if (refuse_conditions(c))
        return;
    if (http_query(c, "archive", kind, sizeof kind)) {
        archive_put(c, kind);
        return;
    }
    r = raw_begin(c, &o, on_written);
    if (r)
        raw_take_body(r);
}

/* ---- removal ---- */

static void on_removed(void *user, struct file_result *f)
{
    struct raw_call *r = user;

    r->filework = NULL;
    if (f->sys)
        raw_reply_failure(r->call, f);
    else
        http_reply(r->call, 204, NULL, NULL);
    raw_free(r);
}

void api_raw_delete(struct http_call *c)
{
    char recursive[8] = "";
    struct file_order o = {.verb = FILE_REMOVE};

    if (refuse_conditions(c))
        return;
    if (http_query(c, "recursive", recursive, sizeof recursive) && strcmp(recursive, "true") == 0)
        o.verb = FILE_REMOVE_ALL;
    (void)raw_begin(c, &o, on_removed);
}
