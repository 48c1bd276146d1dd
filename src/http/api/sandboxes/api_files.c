/* SPDX-License-Identifier: MIT */
/*
 * /v1/sandboxes/{id}/files/stat, exists, list, move, copy and sign: what is known about files of a
 * sandbox, and what changes more than one of them.
 *
 * A list is sent as it is made, no faster than its client reads, in parts of up to `limit` entries;
 * `next` of one part is `after` of the following. A list that fails after it has begun is broken
 * off: the connection ends without the last chunk.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/sandbox/file_signature.h"
#include "base/base64.h"
#include "base/clock.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/api/sandboxes/entry_json.h"
#include "http/api/sandboxes/files_body.h"
#include "http/api/sandboxes/raw.h"
#include "http/server/reply.h"

enum {
    LIST_DEFAULT = 10 * 1000, /* entries of one part */
    LIST_MAX = 100 * 1000,
    EXPIRES_DEFAULT_S = 3600,
    EXPIRES_MAX_S = 7 * 86400,
    NUMBER_MAX = 24,
    URL_SLACK = 512,
};

/* clang-format off */
#define AT(member) offsetof(struct files_body, member)
#define PATH_HELP "absolute, or below the directory that commands begin in"
static const struct shape_field path_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path), .help = PATH_HELP},
};
static const struct shape_field list_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path), .help = "a directory; " PATH_HELP},
    {"depth", SHAPE_INT, 0, AT(depth), .min = 1, .max = FILE_DEPTH_MAX, .help = "levels of directories, default 1"},
    {"limit", SHAPE_INT, 0, AT(limit), .min = 1, .max = LIST_MAX, .help = "entries in this part, default 10000"},
    {"after", SHAPE_STRING, 0, AT(after), .help = "`next` of the part before"},
};
static const struct shape_field move_fields[] = {
    {"from", SHAPE_STRING, SHAPE_REQUIRED, AT(from), .help = PATH_HELP},
    {"to", SHAPE_STRING, SHAPE_REQUIRED, AT(to), .help = "the new path; its parents are made"},
    {"replace", SHAPE_BOOL, 0, AT(replace), .help = "what is there, default false"},
};
static const struct shape_field watch_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path), .help = "a directory; " PATH_HELP},
    {"recursive", SHAPE_BOOL, 0, AT(recursive), .help = "directories below it, too, default false"},
    {"entries", SHAPE_BOOL, 0, AT(entries), .help = "each event with what the file is then, default false"},
};
static const struct shape_field sign_fields[] = {
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path), .help = PATH_HELP},
    {"method", SHAPE_STRING, 0, AT(method), .help = "GET (default) or PUT"},
    {"expires_in", SHAPE_INT, 0, AT(expires_in), .min = 1, .max = EXPIRES_MAX_S, .help = "seconds, default 3600"},
};
/* clang-format on */
const struct shape files_path_shape = {path_fields, ARRAY_LEN(path_fields), SHAPE_NULLS,
                                       "FilePath"};
const struct shape files_list_shape = {list_fields, ARRAY_LEN(list_fields), SHAPE_NULLS,
                                       "FileList"};
const struct shape files_move_shape = {move_fields, ARRAY_LEN(move_fields), SHAPE_NULLS,
                                       "FileMove"};
const struct shape files_watch_shape = {watch_fields, ARRAY_LEN(watch_fields), SHAPE_NULLS,
                                        "FileWatch"};
const struct shape files_sign_shape = {sign_fields, ARRAY_LEN(sign_fields), SHAPE_NULLS,
                                       "FileSign"};

/* ---- a request ---- */

void files_free(struct files_call *f)
{
    activity_end(&f->activity);
    filework_free(f->filework);
    shaping_done(&f->shaping);
    free(f->path);
    free(f->second);
    buf_done(&f->out);
    buf_done(&f->last);
    free(f);
}

static void files_drop(struct activity *a)
{
    files_free((struct files_call *)((char *)a - offsetof(struct files_call, activity)));
}

struct files_call *files_begin(struct http_call *c, const struct shape *shape,
                               struct persistent **ret)
{
    struct files_call *f = calloc(1, sizeof *f);

    if (!f) {
        reply_status(c, 503);
        return NULL;
    }
    f->call = c;
    f->body =
        (struct files_body){.depth = 1, .limit = LIST_DEFAULT, .expires_in = EXPIRES_DEFAULT_S};
    *ret = koyeb_sandbox(c);
    if (*ret && dialect_decode(c, shape, &f->body, &f->shaping))
        return f;
    files_free(f);
    return NULL;
}

static bool refuse(struct files_call *f, const char *words)
{
    struct err e;

    (void)err_set(&e, ERR_CALLER, "%s", words);
    http_reply_error(f->call, &e);
    files_free(f);
    return false;
}

bool files_path(struct files_call *f, const struct persistent *p, const struct bytes *path,
                const char *name, char **ret)
{
    char words[96];
    int n;

    (void)snprintf(words, sizeof words, "%s: a path has 1 to 4095 bytes, none of them NUL", name);
    if (path->n == 0 || path->n >= PATH_MAX || memchr(path->p, '\0', path->n))
        return refuse(f, words);
    n = path->p[0] == '/' ? asprintf(ret, "%s", path->p)
                          : asprintf(ret, "%s/%s", persistent_cwd(p), path->p);
    if (n >= 0) {
        entry_path_clean(*ret);
        return true;
    }
    *ret = NULL;
    reply_status(f->call, 503);
    files_free(f);
    return false;
}

bool files_start(struct files_call *f, struct persistent *p, const struct file_home *home,
                 const struct file_order *o, filework_fn *done)
{
    struct err e;

    if (filework_start(home, o, done, f, &f->filework, &e) == 0) {
        activity_begin(p, &f->activity, files_drop);
        return true;
    }
    http_reply_error(f->call, &e);
    files_free(f);
    return false;
}

static struct bytes view(const char *text)
{
    return (struct bytes){text, text ? strlen(text) : 0};
}

void files_gone(void *user)
{
    files_free(user);
}

void files_drained(void *user)
{
    struct files_call *f = user;

    if (f->filework)
        filework_resume(f->filework);
}

/* ---- one entry ---- */

static bool on_entry(void *user, const struct file_entry *e)
{
    struct files_call *f = user;
    const struct entry_path path = {NULL, e->path};
    struct jw w = JW(&f->out);

    buf_done(&f->out);
    f->out = BUF_INIT(entry_json_max(&path, e));
    entry_write(&w, &path, e);
    f->told = 1;
    return true;
}

/* The answer is the entry. */
static void on_told(void *user, struct file_result *r)
{
    struct files_call *f = user;

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    if (r->sys == 0 && f->told == 0) {
        r->sys = ENOENT; /* it is gone already */
        r->op = "stat";
        r->path = f->second ? f->second : f->path;
    }
    if (r->sys)
        raw_reply_failure(f->call, r);
    else
        http_reply_json(f->call, 200, &f->out);
    files_free(f);
}

void api_files_stat(struct http_call *c)
{
    struct file_order o = {.verb = FILE_LOOK};
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_path_shape, &p);

    if (!f || !files_path(f, p, &f->body.path, "path", &f->path))
        return;
    o.path = view(f->path);
    if (!files_start(f, p, &p->inside.files, &o, on_told))
        return;
    filework_on_entry(f->filework, on_entry);
    http_on_gone(c, files_gone, f);
}

static void on_existing(void *user, struct file_result *r)
{
    struct files_call *f = user;
    bool absent = r->sys == ENOENT || r->sys == ENOTDIR;
    struct jw w = JW(&f->out);

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    if (r->sys && !absent) {
        raw_reply_failure(f->call, r);
        files_free(f);
        return;
    }
    buf_done(&f->out);
    f->out = BUF_INIT(64);
    jw_object(&w);
    jw_kv_bool(&w, "exists", !absent);
    jw_object_end(&w);
    http_reply_json(f->call, 200, &f->out);
    files_free(f);
}

void api_files_exists(struct http_call *c)
{
    struct file_order o = {.verb = FILE_LOOK};
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_path_shape, &p);

    if (!f || !files_path(f, p, &f->body.path, "path", &f->path))
        return;
    o.path = view(f->path);
    if (files_start(f, p, &p->inside.files, &o, on_existing))
        http_on_gone(c, files_gone, f);
}

/* ---- moving and copying ---- */

/* A client that leaves does not stop it half-way. */
static void transfer(struct http_call *c, enum file_verb verb)
{
    struct file_order o = {.verb = verb};
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_move_shape, &p);

    if (!f || !files_path(f, p, &f->body.from, "from", &f->path) ||
        !files_path(f, p, &f->body.to, "to", &f->second))
        return;
    o.path = view(f->path);
    o.second = view(f->second);
    o.replace = f->body.replace;
    if (files_start(f, p, &p->inside.files, &o, on_told))
        filework_on_entry(f->filework, on_entry);
}

void api_files_move(struct http_call *c)
{
    transfer(c, FILE_MOVE);
}

void api_files_copy(struct http_call *c)
{
    transfer(c, FILE_COPY);
}

/* ---- lists ---- */

static void begin_list(struct files_call *f)
{
    struct buf head = BUF_INIT(strlen(f->path) * 6 + URL_SLACK);
    struct jw w = JW(&head);

    if (f->begun)
        return;
    f->begun = true;
    jw_object(&w);
    jw_kv_string(&w, "path", f->path);
    jw_key(&w, "entries");
    jw_raw(&w, "[", 1);
    http_stream_begin(f->call, 200, API_JSON);
    (void)http_stream_write(f->call, head.p ? head.p : "", head.n);
    buf_done(&head);
}

static bool on_listed(void *user, const struct file_entry *e)
{
    struct files_call *f = user;
    const struct entry_path path = {f->path, e->path};
    struct buf text = BUF_INIT(entry_json_max(&path, e) + 1);
    struct jw w = JW(&text);
    size_t queued;

    begin_list(f);
    if (f->told++ > 0)
        (void)buf_putc(&text, ',');
    entry_write(&w, &path, e);
    buf_clear(&f->last);
    (void)buf_put(&f->last, e->path.p, e->path.n);
    queued = http_stream_write(f->call, text.p ? text.p : "", text.n);
    buf_done(&text);
    return queued < HTTP_STREAM_HIGH;
}

static void end_list(struct files_call *f, bool more)
{
    struct buf tail = BUF_INIT(BASE64_LENGTH(f->last.n) + URL_SLACK);

    begin_list(f);
    (void)buf_puts(&tail, "],\"next\":");
    if (more) {
        (void)buf_putc(&tail, '"');
        (void)!base64_encode(f->last.p, f->last.n, &tail);
        (void)buf_puts(&tail, "\"}\n");
    } else {
        (void)buf_puts(&tail, "null}\n");
    }
    (void)http_stream_write(f->call, tail.p ? tail.p : "", tail.n);
    buf_done(&tail);
    http_stream_end(f->call);
}

static void on_list_end(void *user, struct file_result *r)
{
    struct files_call *f = user;

    f->filework = NULL;
    http_on_gone(f->call, NULL, NULL);
    http_on_drain(f->call, NULL, NULL);
    if (r->sys && f->begun)
        http_stream_abort(f->call);
    else if (r->sys)
        raw_reply_failure(f->call, r);
    else
        end_list(f, r->more);
    files_free(f);
}

/* False: answered, freed. */
static bool read_after(struct files_call *f)
{
    struct buf text = BUF_INIT(FILE_PATH_MAX);

    if (f->body.after.n == 0)
        return true;
    if (base64_decode(f->body.after.p, f->body.after.n, &text) < 0 || text.n == 0 ||
        memchr(text.p, '\0', text.n)) {
        buf_done(&text);
        return refuse(f, "after: it is no `next` of a list");
    }
    f->second = buf_take(&text, NULL);
    return true;
}

void api_files_list(struct http_call *c)
{
    struct file_order o = {.verb = FILE_WALK};
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_list_shape, &p);

    if (!f || !files_path(f, p, &f->body.path, "path", &f->path) || !read_after(f))
        return;
    f->last = BUF_INIT(FILE_PATH_MAX + 1);
    o.path = view(f->path);
    o.second = view(f->second);
    o.depth_max = (uint32_t)f->body.depth;
    o.entries_max = (uint64_t)f->body.limit;
    if (!files_start(f, p, &p->inside.files, &o, on_list_end))
        return;
    filework_on_entry(f->filework, on_listed);
    http_on_drain(c, files_drained, f);
    http_on_gone(c, files_gone, f);
}

/* ---- signed URLs ---- */

static void put_url_path(struct buf *out, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";

    for (; *path; path++)
        if (strchr(plain, *path))
            (void)buf_putc(out, *path);
        else
            (void)buf_printf(out, "%%%02X", (unsigned char)*path);
}

/* '+' and '/' of the signature would need care in a query. */
static void put_signature(struct buf *out, const char *signature)
{
    for (; *signature; signature++)
        if (*signature == '+' || *signature == '/')
            (void)buf_printf(out, "%%%02X", (unsigned char)*signature);
        else
            (void)buf_putc(out, *signature);
}

static void reply_signed(struct files_call *f, const struct persistent *p,
                         const struct signed_access *a, const char *signature)
{
    struct buf url = BUF_INIT(strlen(f->path) * 3 + URL_SLACK), body = BUF_INIT(0);
    struct jw w = JW(&body);
    char time[CLOCK_ISO_MAX];

    (void)buf_printf(&url, "/v1/sandboxes/%s/files", p->id);
    put_url_path(&url, f->path);
    (void)buf_printf(&url, "?expires=%s&signature=", a->expires);
    put_signature(&url, signature);
    body.max = url.n * 2 + URL_SLACK;
    jw_object(&w);
    jw_kv_string(&w, "method", strcmp(a->verb, "read") == 0 ? "GET" : "PUT");
    jw_kv_string(&w, "url", url.p);
    jw_kv_string(&w, "expires_at", clock_iso_at(strtoll(a->expires, NULL, 10), 0, time));
    jw_object_end(&w);
    http_reply_json(f->call, 200, &body);
    buf_done(&url);
}

void api_files_sign(struct http_call *c)
{
    char expires[NUMBER_MAX], signature[SIGNATURE_MAX];
    struct persistent *p;
    struct files_call *f = files_begin(c, &files_sign_shape, &p);
    struct signed_access a = {.user = "", .verb = "read", .expires = expires};

    if (!f || !files_path(f, p, &f->body.path, "path", &f->path))
        return;
    if (f->body.method.p && strcmp(f->body.method.p, "PUT") == 0)
        a.verb = "write";
    else if (f->body.method.p && strcmp(f->body.method.p, "GET") != 0) {
        (void)refuse(f, "method: GET or PUT");
        return;
    }
    a.path = f->path;
    (void)snprintf(expires, sizeof expires, "%lld",
                   (long long)time(NULL) + (long long)f->body.expires_in);
    if (signature_make(&a, p->access.token, signature) < 0)
        reply_status(c, 503);
    else
        reply_signed(f, p, &a, signature);
    files_free(f);
}

bool files_are_signed(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    const struct persistent *p = sandboxes_get(http_app(c)->sandboxes, r->param[0]);
    char signature[SIGNATURE_MAX], expires[NUMBER_MAX], archive[2];
    cleanup_free char *path = NULL;
    struct signed_access a = {.user = "", .expires = expires};

    /* A name may belong to another sandbox tomorrow; an archive is more than one file. */
    if (!p || strcmp(p->id, r->param[0]) != 0 || strstr(r->query, "archive=") ||
        http_query(c, "archive", archive, sizeof archive) ||
        !http_query(c, "signature", signature, sizeof signature) ||
        !http_query(c, "expires", expires, sizeof expires))
        return false;
    if (asprintf(&path, "/%s", r->param[1]) < 0)
        return false;
    a.path = path;
    a.verb = strcmp(r->method, "PUT") == 0 ? "write" : "read";
    return signature_opens(signature, &a, p->access.token);
}
