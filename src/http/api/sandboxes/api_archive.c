/* SPDX-License-Identifier: MIT */
/*
 * /v1/sandboxes/{id}/files/{path}?archive=tar: a directory as a stream, unpacked and packed inside
 * the sandbox (init/archive.h).
 *
 * Either way bytes move no faster than the slower side takes them. An upload is answered when all
 * of it is in place, or as soon as it fails. A download that fails after it has begun can only be
 * broken off: the connection ends without the last chunk, the archive without its end mark.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "base/jw.h"
#include "base/tar.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/api/problem.h"
#include "http/api/sandboxes/raw.h"

enum {
    REPLY_MAX = 1024,
    ESCAPE_FACTOR = 6, /* one byte becomes at most \u00XX */
    TEXT_MAX = 512,
    FILE_NAME_MAX = 128,
};

#define TAR_TYPE_NAME "application/x-tar"

static struct file_order make_order(struct http_call *c, enum file_verb verb)
{
    const struct config *conf = &http_app(c)->config;

    return (struct file_order){
        .verb = verb,
        .bytes_max = conf->archive_bytes_max,
        .entries_max = conf->archive_entries_max,
        .depth_max = (uint32_t)conf->archive_depth_max,
    };
}

static bool is_known(struct http_call *c, const char *kind)
{
    struct err e;

    if (strcmp(kind, "tar") == 0)
        return true;
    (void)err_set(&e, ERR_CALLER, "archive: 'tar' is the only kind");
    http_reply_error(c, &e);
    return false;
}

/* ---- what went wrong ---- */

static void put_fault(char text[TEXT_MAX], const struct file_result *f)
{
    (void)snprintf(text, TEXT_MAX, "%s %.300s: %s (byte %llu)", f->op, f->path,
                   tar_fault_words(f->fault), (unsigned long long)f->size);
}

static void reply_failure(struct http_call *c, const struct file_result *f)
{
    bool limit = tar_fault_is_limit(f->fault);
    char text[TEXT_MAX];
    struct reply_problem p = {
        .status = limit ? 413 : 400,
        .code = limit ? "Executor.PayloadTooLarge" : "Executor.ValidationError",
        .description = limit ? "The archive exceeds a limit" : "The archive cannot be unpacked",
        .error_detail = text,
    };

    if (f->sys == ENOTDIR) {
        p.status = 409;
        p.code = "Executor.NotDirectory";
        p.description = "An archive is of a directory";
        (void)snprintf(text, sizeof text, "%s %.300s: not a directory", f->op, f->path);
    } else if (f->fault) {
        put_fault(text, f);
    } else {
        raw_reply_failure(c, f);
        return;
    }
    reply_problem(c, &p);
}

/* ---- upload ---- */

static void on_unpacked(void *user, struct file_result *f)
{
    struct raw_call *r = user;
    struct buf body = BUF_INIT(REPLY_MAX + strlen(r->path) * ESCAPE_FACTOR);
    struct jw w = JW(&body);

    r->filework = NULL;
    raw_body_over(r);
    if (f->sys) {
        reply_failure(r->call, f);
        raw_free(r);
        return;
    }
    jw_object(&w);
    jw_kv_string(&w, "path", r->path);
    jw_kv_int(&w, "entries", (int64_t)f->entries);
    jw_kv_int(&w, "size", (int64_t)f->size);
    jw_object_end(&w);
    http_reply_json(r->call, 200, &body);
    raw_free(r);
}

void archive_put(struct http_call *c, const char *kind)
{
    struct file_order o = make_order(c, FILE_UNPACK);
    struct raw_call *r = is_known(c, kind) ? raw_begin(c, &o, on_unpacked) : NULL;

    if (r)
        raw_take_body(r);
}

/* ---- download ---- */

/* The directory's own name, if it can stand in a header as it is. */
static void set_headers(const struct raw_call *r)
{
    const char *name = strrchr(r->path, '/') + 1;
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    char text[FILE_NAME_MAX + 64];

    if (n == 0 || n > FILE_NAME_MAX || name[n])
        name = "archive";
    (void)snprintf(text, sizeof text, "attachment; filename=\"%s.tar\"", name);
    http_set_header(r->call, "Content-Disposition", text);
}

static void begin_answer(struct raw_call *r)
{
    if (r->begun)
        return;
    r->begun = true;
    set_headers(r);
    http_stream_begin(r->call, 200, TAR_TYPE_NAME);
}

static bool on_data(void *user, const char *p, size_t n)
{
    struct raw_call *r = user;

    begin_answer(r);
    return http_stream_write(r->call, p, n) < HTTP_STREAM_HIGH;
}

static void on_drain(void *user)
{
    struct raw_call *r = user;

    if (r->filework)
        filework_resume(r->filework);
}

static void on_gone(void *user)
{
    raw_free(user);
}

static void break_off(struct raw_call *r, const struct file_result *f)
{
    char text[TEXT_MAX];

    if (f->fault)
        put_fault(text, f);
    else
        (void)snprintf(text, sizeof text, "%s %.300s: errno %d", f->op, f->path, f->sys);
    log_event(&http_app(r->call)->log, LOG_WARN, "archive_broken_off", LOG_STR("path", r->path),
              LOG_STR("error", text));
    http_stream_abort(r->call);
}

static void on_packed(void *user, struct file_result *f)
{
    struct raw_call *r = user;

    r->filework = NULL;
    http_on_gone(r->call, NULL, NULL);
    http_on_drain(r->call, NULL, NULL);
    if (f->sys && r->begun) {
        break_off(r, f);
    } else if (f->sys) {
        reply_failure(r->call, f);
    } else {
        begin_answer(r);
        http_stream_end(r->call);
    }
    raw_free(r);
}

/* HEAD: whether there is a directory; how large its archive would be is known when it is made. */
static void on_looked(void *user, struct file_result *f)
{
    struct raw_call *r = user;

    r->filework = NULL;
    if (f->sys == 0 && !S_ISDIR(f->mode)) {
        f->sys = ENOTDIR;
        f->path = r->path;
    }
    if (f->sys) {
        reply_failure(r->call, f);
    } else {
        begin_answer(r);
        http_stream_end(r->call);
    }
    raw_free(r);
}

void archive_get(struct http_call *c, const char *kind)
{
    bool head = http_request(c)->head;
    struct file_order o = make_order(c, head ? FILE_STAT : FILE_PACK);
    struct raw_call *r;

    if (!is_known(c, kind))
        return;
    r = raw_begin(c, &o, head ? on_looked : on_packed);
    if (!r || head)
        return;
    filework_on_data(r->filework, on_data);
    http_on_drain(c, on_drain, r);
    http_on_gone(c, on_gone, r);
}
