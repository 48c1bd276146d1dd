/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/sandboxes/{id}/files?path=DIRECTORY: many files in one body, multipart/form-data. Each
 * part with a file name becomes a file of that name below the directory.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jw.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/api/sandboxes/entry_json.h"
#include "http/api/sandboxes/raw.h"
#include "http/api/sandboxes/upload.h"
#include "http/server/reply.h"

enum { ANSWER_MAX = 64 << 20 };

struct files_upload {
    struct http_call *call;
    char directory[PATH_MAX];
    struct buf answer;
    struct jw w;
    size_t n;
};

static void on_freed(void *user)
{
    struct files_upload *u = user;

    buf_done(&u->answer);
    free(u);
}

/* Does one of its parts say "the directory above"? */
static bool leaves(const char *name)
{
    for (const char *p = name; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
            return true;
    }
    return false;
}

static int path_of(void *user, const struct multipart_part *part, char **ret, struct err *e)
{
    const struct files_upload *u = user;
    const char *name = part->filename;
    size_t n = strlen(name);

    if (!part->has_filename)
        return 0;
    if (n == 0 || name[0] == '/' || name[n - 1] == '/' || leaves(name))
        return err_set(e, ERR_CALLER, "the file name '%.300s' is none below the directory", name);
    if (strlen(u->directory) + 1 + n >= PATH_MAX)
        return err_set(e, ERR_CALLER, "a path of more than 4095 bytes");
    if (asprintf(ret, "%s/%s", strcmp(u->directory, "/") == 0 ? "" : u->directory, name) < 0)
        return err_set(e, ERR_HOST, "no memory for a path");
    return 0;
}

static void on_entry(void *user, const struct file_entry *entry)
{
    struct files_upload *u = user;
    const struct entry_path path = {NULL, entry->path};

    u->n++;
    entry_write(&u->w, &path, entry);
}

static void on_ended(void *user, const struct upload_end *end)
{
    struct files_upload *u = user;
    struct file_result failure;
    struct err e;

    if (end->failure) {
        failure = *end->failure;
        raw_reply_failure(u->call, &failure);
        return;
    }
    if (!end->wrong && u->n == 0) {
        (void)err_set(&e, ERR_CALLER, "no part of the body is a file");
        http_reply_error(u->call, &e);
        return;
    }
    if (end->wrong) {
        http_reply_error(u->call, end->wrong);
        return;
    }
    jw_array_end(&u->w);
    jw_object_end(&u->w);
    http_reply_json(u->call, 200, &u->answer);
}

static int set_directory(struct files_upload *u, const struct persistent *p, const char *path,
                         struct err *e)
{
    int n = path[0] == '/' ? snprintf(u->directory, PATH_MAX, "%s", path)
                           : snprintf(u->directory, PATH_MAX, "%s%s%s", persistent_cwd(p),
                                      *path ? "/" : "", path);

    return n < PATH_MAX ? 0 : err_set(e, ERR_CALLER, "path: more than 4095 bytes");
}

void api_files_upload(struct http_call *c)
{
    const char *type = http_header(c, "Content-Type");
    struct persistent *p = koyeb_sandbox(c);
    struct files_upload *u = p ? calloc(1, sizeof *u) : NULL;
    struct upload_conf conf = {
        .home = p,
        .call = c,
        .path = path_of,
        .entry = on_entry,
        .ended = on_ended,
        .freed = on_freed,
        .user = u,
    };
    char path[PATH_MAX];
    struct err e;

    if (!p)
        return;
    if (!u) {
        reply_status(c, 503);
        return;
    }
    u->call = c;
    u->answer = BUF_INIT(ANSWER_MAX);
    u->w = JW(&u->answer);
    jw_object(&u->w);
    jw_key(&u->w, "files");
    jw_array(&u->w);
    if (!http_query(c, "path", path, sizeof path))
        path[0] = '\0';
    if (set_directory(u, p, path, &e) == 0 && upload_parts(&conf, type ? type : "", &e) == 0)
        return;
    http_reply_error(c, &e);
    on_freed(u);
}
