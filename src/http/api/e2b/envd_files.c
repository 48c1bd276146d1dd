/* SPDX-License-Identifier: MIT */
/*
 * GET and POST /files: contents of a sandbox's files, as they are or as parts of a form. A request
 * is admitted, by token or by signature, before its body is read (target.h).
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/api/e2b/e2b.h"
#include "http/api/e2b/envd_entry.h"
#include "http/api/koyeb/koyeb.h"
#include "http/api/sandboxes/download.h"
#include "http/api/sandboxes/upload.h"
#include "http/server/reply.h"

enum {
    METADATA_MAX = 4096, /* bytes of keys and values */
    METADATA_KEY_MAX = 246,
    ANSWER_MAX = 64 << 20,
};

/* clang-format off */
static const struct {
    int sys, status;
} statuses[] = {
    {ENOENT,       404},
    {EISDIR,       400},
    {ENOTDIR,      400},
    {ELOOP,        400},
    {EINVAL,       400},
    {ENXIO,        400},
    {ENAMETOOLONG, 400},
    {EBADMSG,      400}, /* it should be gzip, and is not */
    {EACCES,       403},
    {EPERM,        403},
    {EROFS,        403},
    {ENOSPC,       507},
    {EDQUOT,       507},
    {FILE_BUSY,    503},
};
/* clang-format on */

static void reply_failure(struct http_call *c, const struct persistent *p,
                          const struct file_result *r)
{
    char words[128] = "the sandbox has no place for another request";
    int status = 500;

    if (r->sys == FILE_ENDED) {
        e2b_reply_gone(c, p->id);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (statuses[i].sys == r->sys)
            status = statuses[i].status;
    if (r->sys > 0)
        koyeb_sys_words(r->sys, words);
    e2b_reply_status(c, status, "%s %.400s: %s", r->op, r->path, words);
}

static int status_of(const struct err *e)
{
    return e->kind == ERR_CALLER ? 400 : e->kind == ERR_BUSY ? 503 : 500;
}

/* The user and the path of a request. The path is NULL when the query has none. False: answered. */
static bool read_place(struct http_call *c, const struct persistent *p, char user[ENVD_USER_MAX],
                       char **ret)
{
    char path[PATH_MAX];
    struct err e;

    *ret = NULL;
    if (!envd_user(c, user)) {
        e2b_reply_status(c, 401, "there is no user '%.64s'", user);
        return false;
    }
    if (!http_query(c, "path", path, sizeof path)) {
        if (!strstr(http_request(c)->query, "path="))
            return true;
        e2b_reply_status(c, 400, "a path has at most 4095 bytes, none of them NUL");
        return false;
    }
    if (envd_path(p, user, path, strlen(path), ret, &e) == 0)
        return true;
    e2b_reply_status(c, status_of(&e), "%s", e.text);
    return false;
}

/* ---- reading ---- */

struct reading {
    struct activity activity;
    struct http_call *call;
    struct persistent *home; /* borrowed: the activity holds it */
    struct filework *filework;
    char *path; /* owned */
};

static void reading_free(struct reading *r)
{
    activity_end(&r->activity);
    filework_free(r->filework);
    free(r->path);
    free(r);
}

static void reading_drop(struct activity *a)
{
    reading_free((struct reading *)((char *)a - offsetof(struct reading, activity)));
}

static void reading_gone(void *user)
{
    reading_free(user);
}

static void on_opened(void *user, struct file_result *f)
{
    struct reading *r = user;

    r->filework = NULL;
    http_on_gone(r->call, NULL, NULL);
    if (f->sys == ENOTDIR)
        f->sys = ENOENT; /* there is nothing below a file */
    http_set_header(r->call, "Vary", "Accept-Encoding");
    if (f->sys)
        reply_failure(r->call, r->home, f);
    else if (!download_reply(r->call, r->path, f, true))
        e2b_reply_status(r->call, 416, "the range is outside the file");
    reading_free(r);
}

/* Answers are never compressed. */
static bool refuses_identity(const struct http_call *c)
{
    const char *accepted = http_header(c, "accept-encoding");

    return accepted && (strcasestr(accepted, "identity;q=0,") ||
                        (strlen(accepted) >= 12 &&
                         strcasecmp(accepted + strlen(accepted) - 12, "identity;q=0") == 0));
}

void e2b_files_get(struct http_call *c)
{
    struct file_order o = {.verb = FILE_READ, .bytes_max = DOWNLOAD_BYTES_MAX};
    struct persistent *p = e2b_sandbox(c);
    struct reading *r = p ? calloc(1, sizeof *r) : NULL;
    char user[ENVD_USER_MAX];
    struct err e;

    if (!p)
        return;
    if (!r) {
        reply_status(c, 503);
        return;
    }
    r->call = c;
    r->home = p;
    if (refuses_identity(c)) {
        e2b_reply_status(c, 406, "the file can be sent as it is only");
    } else if (read_place(c, p, user, &r->path)) {
        if (!r->path && !(r->path = strdup(persistent_home(p)))) {
            reply_status(c, 503);
        } else {
            o.path = (struct bytes){r->path, strlen(r->path)};
            if (filework_start(&p->inside.files, &o, on_opened, r, &r->filework, &e) == 0) {
                activity_begin(p, &r->activity, reading_drop);
                http_on_gone(c, reading_gone, r);
                return;
            }
            e2b_reply_status(c, status_of(&e), "%s", e.text);
        }
    }
    reading_free(r);
}

/* ---- writing ---- */

struct writing {
    struct http_call *call;
    struct persistent *home; /* borrowed: the upload holds it */
    char user[ENVD_USER_MAX];
    char *path; /* owned: of the query; NULL: the parts say theirs */
    char metadata[METADATA_MAX + 1];
    size_t metadata_n;
    struct buf answer;
    struct jw w;
    size_t n; /* files in their place */
};

static void writing_free(void *user)
{
    struct writing *x = user;

    free(x->path);
    buf_done(&x->answer);
    free(x);
}

/* The path that the URL says, or else the file name, which is a whole path. Other fields of a form
 * are ignored. */
static int path_of(void *user, const struct multipart_part *part, char **ret, struct err *e)
{
    const struct writing *x = user;

    if (strcmp(part->name, "file") != 0)
        return 0;
    if (x->path) {
        *ret = strdup(x->path);
        return *ret ? 0 : err_set(e, ERR_HOST, "no memory for a path");
    }
    if (!part->has_filename || !*part->filename)
        return err_set(e, ERR_CALLER, "a part has no file name, and the URL no path");
    return envd_path(x->home, x->user, part->filename, strlen(part->filename), ret, e);
}

static void on_entry(void *user, const struct file_entry *entry)
{
    const struct entry_path path = {NULL, entry->path};
    struct bytes name = entry_name(&path);
    struct writing *x = user;

    x->n++;
    jw_object(&x->w);
    jw_key(&x->w, "path");
    entry_write_path(&x->w, &path);
    jw_kv_bytes(&x->w, "name", name.p, name.n);
    jw_kv_string(&x->w, "type", "file");
    envd_write_metadata(&x->w, entry);
    jw_object_end(&x->w);
}

static void on_ended(void *user, const struct upload_end *end)
{
    struct writing *x = user;

    if (end->failure) {
        reply_failure(x->call, x->home, end->failure);
    } else if (end->wrong) {
        e2b_reply_status(x->call, status_of(end->wrong), "%s", end->wrong->text);
    } else if (x->n == 0) {
        e2b_reply_status(x->call, 400, "the form has no field 'file'");
    } else {
        jw_array_end(&x->w);
        http_reply(x->call, 200, API_JSON, &x->answer);
    }
}

/* X-Metadata-KEY: VALUE. False: answered. */
static bool read_metadata(struct http_call *c, struct writing *x)
{
    static const char prefix[] = "x-metadata-";
    const char *name, *value;

    for (size_t i = 0; http_header_at(c, i, &name, &value); i++) {
        size_t key_n, value_n = strlen(value);

        if (strncasecmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        name += sizeof prefix - 1;
        key_n = strlen(name);
        if (key_n == 0 || key_n > METADATA_KEY_MAX ||
            x->metadata_n + key_n + value_n + 2 > METADATA_MAX) {
            e2b_reply_status(c, 400, "metadata: a key has 1 to %d bytes, all together at most %d",
                             METADATA_KEY_MAX, METADATA_MAX);
            return false;
        }
        for (const char *p = value; *p; p++)
            if (!isprint((unsigned char)*p)) {
                e2b_reply_status(c, 400, "metadata: '%.64s' is not printable ASCII", name);
                return false;
            }
        for (size_t k = 0; k <= key_n; k++)
            x->metadata[x->metadata_n++] = (char)tolower((unsigned char)name[k]);
        memcpy(x->metadata + x->metadata_n, value, value_n + 1);
        x->metadata_n += value_n + 1;
    }
    return true;
}

static bool is_type(const char *type, const char *wanted)
{
    size_t n = strlen(wanted);

    return strncasecmp(type, wanted, n) == 0 && (type[n] == '\0' || strchr("; \t", type[n]));
}

/* Answers what is wrong, or begins. False: the writing is to be freed. */
static bool begin(struct writing *x)
{
    const char *type = http_header(x->call, "content-type");
    const char *coding = http_header(x->call, "content-encoding");
    bool raw = type && is_type(type, "application/octet-stream");
    struct upload_conf conf = {
        .home = x->home,
        .call = x->call,
        .path = path_of,
        .entry = on_entry,
        .ended = on_ended,
        .freed = writing_free,
        .user = x,
        .gzip = coding && strcasecmp(coding, "gzip") == 0,
        .metadata = {x->metadata, x->metadata_n},
    };
    struct err e;
    int r;

    if (!type || !(raw || is_type(type, "multipart/form-data")))
        r = err_set(&e, ERR_CALLER,
                    "the content type is neither multipart/form-data nor application/octet-stream");
    else if (coding && strcasecmp(coding, "identity") != 0 && !(conf.gzip && raw))
        r = err_set(&e, ERR_CALLER, "content coding '%.64s': gzip is for application/octet-stream",
                    coding);
    else if (raw && !x->path)
        r = err_set(&e, ERR_CALLER, "application/octet-stream needs a path in the URL");
    else if (raw)
        r = upload_one(&conf, take_ptr(&x->path), &e);
    else
        r = upload_parts(&conf, type, &e);
    if (r < 0)
        e2b_reply_status(x->call, status_of(&e), "%s", e.text);
    return r == 0;
}

void e2b_files_post(struct http_call *c)
{
    struct persistent *p = e2b_sandbox(c);
    struct writing *x = p ? calloc(1, sizeof *x) : NULL;

    if (!p)
        return;
    if (!x) {
        reply_status(c, 503);
        return;
    }
    x->call = c;
    x->home = p;
    x->answer = BUF_INIT(ANSWER_MAX);
    x->w = JW(&x->answer);
    jw_array(&x->w);
    if (!read_place(c, p, x->user, &x->path) || !read_metadata(c, x) || !begin(x))
        writing_free(x);
}
