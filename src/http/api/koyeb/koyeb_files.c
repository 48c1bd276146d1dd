/* SPDX-License-Identifier: MIT */
/*
 * /write_file /read_file /delete_file /make_dir /delete_dir /list_dir. Everything is
 * done inside the sandbox (app/sandbox/command.h for commands, core/port_files.h for files); here
 * are the words. A failed file operation is an answer like any other: 200 and `error`.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/sandboxes.h"
#include "base/os.h"
#include "base/utf8.h"
#include "http/api/api.h"
#include "http/api/koyeb/koyeb.h"
#include "http/server/reply.h"

enum {
    WORK_INLINE = 512 * 1024, /* larger texts are made and parsed on a worker */
    ESCAPE_FACTOR = 6,        /* one byte becomes at most \u00XX */
    LIST_MAX = 64 << 20,      /* bytes of all names of a directory */
    REPLY_SLACK = 64,
};

/* One request under way. */
struct file_call {
    struct work work; /* first */
    struct activity activity;
    struct http_call *call; /* NULL: the client is gone */
    struct filework *filework;
    struct koyeb_body body;
    struct buf text; /* of the request, while it is parsed on a worker */
    bool parsed, lenient;
    bool working; /* on a worker thread */
    int fd;       /* owned: what is read */
    uint64_t size;
    struct buf bytes; /* what was read */
    struct buf reply;
    int sys; /* of reading */
};

static void file_call_free(struct file_call *f)
{
    activity_end(&f->activity);
    filework_free(f->filework);
    koyeb_body_done(&f->body);
    buf_done(&f->text);
    buf_done(&f->bytes);
    buf_done(&f->reply);
    closep(&f->fd);
    free(f);
}

/* Its client has left, or the daemon stops and all calls are gone already. */
static void file_call_drop(struct activity *a)
{
    struct file_call *f = (struct file_call *)((char *)a - offsetof(struct file_call, activity));

    f->call = NULL;
    work_forget(&f->work);
    if (f->working)
        activity_end(a);
    else
        file_call_free(f);
}

static struct file_call *file_call_new(struct http_call *c)
{
    struct file_call *f = calloc(1, sizeof *f);

    if (!f) {
        koyeb_no_memory(c);
        return NULL;
    }
    f->call = c;
    f->fd = -1;
    f->lenient = http_dialect(c)->lenient;
    return f;
}

/* ---- words ---- */

static void put_error(struct buf *out, const char *op, const char *path, size_t path_n,
                      const char *words)
{
    *out = BUF_INIT(path_n + 256);
    (void)buf_printf(out, "%s ", op);
    (void)buf_put(out, path, path_n);
    (void)buf_printf(out, ": %s", words);
}

/* `with_success`: as the endpoints that change something answer. */
static void reply_error(struct file_call *f, const char *op, const char *path, size_t path_n,
                        int sys, bool with_success)
{
    struct buf text, body;
    struct jw w;
    char words[128] = "the sandbox has ended";

    if (sys == FILE_BUSY) {
        reply_status(f->call, 503);
        return;
    }
    if (sys > 0)
        koyeb_sys_words(sys, words);
    put_error(&text, op, path, path_n, words);
    if (with_success) {
        koyeb_reply_success(f->call, text.p, text.n);
        buf_done(&text);
        return;
    }
    body = BUF_INIT(text.n * ESCAPE_FACTOR + REPLY_SLACK);
    w = koyeb_writer(&body, false);
    jw_object(&w);
    jw_kv_bytes(&w, "error", text.p, text.n);
    jw_object_end(&w);
    http_reply_json(f->call, 200, &body);
    buf_done(&text);
}

static bool path_has_nul(const struct koyeb_body *b)
{
    return b->path.p && memchr(b->path.p, '\0', b->path.n);
}

/* What a path fails with before anything is asked of the sandbox. */
static const struct {
    const char *op;
    bool with_success;
} refusals[] = {
    [FILE_READ] = {"open",     false},
      [FILE_WRITE] = {"open",     true },
    [FILE_MKDIR] = {"mkdir",    true },
      [FILE_REMOVE] = {"remove",   true },
    [FILE_REMOVE_ALL] = {"unlinkat", true },
      [FILE_LIST] = {"open",     false},
};

/* Sends the order, or answers and frees. */
static bool begin(struct file_call *f, enum file_verb verb, size_t bytes_max, filework_fn *done)
{
    const struct file_order o = {
        .verb = verb,
        .path = {f->body.path.p ? f->body.path.p : "", f->body.path.n},
        .bytes_max = bytes_max
    };
    int bad = path_has_nul(&f->body) ? EINVAL : f->body.path.n > FILE_PATH_MAX ? ENAMETOOLONG : 0;
    struct persistent *p;
    struct err e;

    if (bad) {
        reply_error(f, refusals[verb].op, f->body.path.p, f->body.path.n, bad,
                    refusals[verb].with_success);
        file_call_free(f);
        return false;
    }
    p = koyeb_sandbox(f->call);
    if (p && filework_start(&p->inside.files, &o, done, f, &f->filework, &e) == 0) {
        activity_begin(p, &f->activity, file_call_drop);
        return true;
    }
    if (p)
        http_reply_error(f->call, &e);
    file_call_free(f);
    return false;
}

static const char *where(const struct file_call *f, const struct file_result *r, size_t *ret_n)
{
    if (r->path[0]) {
        *ret_n = strlen(r->path);
        return r->path;
    }
    *ret_n = f->body.path.n;
    return f->body.path.p ? f->body.path.p : "";
}

/* The endpoints that change something. */
static void on_changed(void *user, struct file_result *r)
{
    struct file_call *f = user;
    size_t n;
    const char *path = where(f, r, &n);

    f->filework = NULL;
    if (r->sys)
        reply_error(f, r->op, path, n, r->sys, true);
    else
        koyeb_reply_success(f->call, NULL, 0);
    file_call_free(f);
}

/* ---- /write_file ---- */

static void write_content(struct file_call *f)
{
    if (!begin(f, FILE_WRITE, 0, on_changed))
        return;
    if (f->body.content.p)
        (void)filework_feed_take(f->filework, &f->body.content);
    filework_feed_end(f->filework);
}

static void parse_run(struct work *w)
{
    struct file_call *f = (struct file_call *)w;

    f->parsed = koyeb_parse(&koyeb_file, f->text.p, f->text.n, f->lenient, &f->body);
}

static void parse_done(struct work *w)
{
    struct file_call *f = (struct file_call *)w;

    f->working = false;
    buf_done(&f->text);
    if (!f->call) {
        file_call_free(f);
        return;
    }
    http_on_gone(f->call, NULL, NULL);
    if (f->parsed) {
        write_content(f);
        return;
    }
    http_dialect(f->call)->issues(f->call, &f->body.shaping);
    file_call_free(f);
}

static void parse_gone(void *user)
{
    struct file_call *f = user;

    f->call = NULL;
    work_forget(&f->work);
}

void api_write_file(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    struct file_call *f = file_call_new(c);

    if (!f)
        return;
    if (r->body_n <= WORK_INLINE) {
        if (koyeb_body(c, &koyeb_file, &f->body))
            write_content(f);
        else
            file_call_free(f);
        return;
    }
    f->text = BUF_INIT(r->body_n);
    if (buf_put(&f->text, r->body, r->body_n) < 0) {
        koyeb_no_memory(c);
        file_call_free(f);
        return;
    }
    f->working = true;
    f->work = (struct work){.run = parse_run, .done = parse_done};
    http_on_gone(c, parse_gone, f);
    work_submit(http_app(c)->work, &f->work);
}

/* ---- /read_file ---- */

/* Also on a worker thread. */
static int read_all(struct file_call *f)
{
    ssize_t n;

    f->bytes = BUF_INIT(f->size + 1);
    if (buf_reserve(&f->bytes, f->size + 1) < 0)
        return ENOMEM;
    n = os_read_start(f->fd, f->bytes.p, f->size);
    if (n < 0)
        return (int)-n;
    f->bytes.n = (size_t)n;
    return 0;
}

static void read_run(struct work *work)
{
    struct file_call *f = (struct file_call *)work;
    struct jw w;

    f->sys = f->fd >= 0 ? read_all(f) : 0;
    if (f->sys)
        return;
    f->reply = BUF_INIT(f->bytes.n * ESCAPE_FACTOR + REPLY_SLACK);
    w = koyeb_writer(&f->reply, false);
    jw_object(&w);
    jw_kv_bytes(&w, "content", f->bytes.p ? f->bytes.p : "", f->bytes.n);
    jw_object_end(&w);
}

static void read_done(struct work *work)
{
    struct file_call *f = (struct file_call *)work;

    f->working = false;
    if (f->call)
        http_on_gone(f->call, NULL, NULL);
    if (f->call && f->sys)
        reply_error(f, "read", f->body.path.p, f->body.path.n, f->sys, false);
    else if (f->call)
        http_reply_json(f->call, 200, &f->reply);
    file_call_free(f);
}

/* From so many bytes, on a worker thread if that may take long. */
static void write_reply(struct file_call *f, void (*run)(struct work *w), uint64_t n)
{
    f->work = (struct work){.run = run, .done = read_done, .lane = work_lane_of(n)};
    if (n > WORK_INLINE) {
        f->working = true;
        work_submit(http_app(f->call)->work, &f->work);
        return;
    }
    run(&f->work);
    read_done(&f->work);
}

static void on_opened(void *user, struct file_result *r)
{
    struct file_call *f = user;
    struct app *a = http_app(f->call);
    size_t n;
    const char *path = where(f, r, &n);

    f->filework = NULL;
    if (r->sys == 0 && r->size > a->config.body_max_file) {
        r->sys = EFBIG;
        r->op = "read";
    }
    if (r->sys) {
        http_on_gone(f->call, NULL, NULL);
        reply_error(f, r->op, path, n, r->sys, false);
        file_call_free(f);
        return;
    }
    f->fd = take_fd(&r->fd);
    f->size = r->size;
    f->bytes = *r->bytes;
    *r->bytes = BUF_INIT(0);
    write_reply(f, read_run, f->fd >= 0 ? f->size : f->bytes.n);
}

/* Reading changes nothing: what has not begun is not done. */
static void read_gone(void *user)
{
    file_call_drop(&((struct file_call *)user)->activity);
}

void api_read_file(struct http_call *c)
{
    struct file_call *f = file_call_new(c);

    if (!f)
        return;
    if (!koyeb_body(c, &koyeb_path, &f->body)) {
        file_call_free(f);
        return;
    }
    if (begin(f, FILE_READ, http_app(c)->config.body_max_file, on_opened))
        http_on_gone(c, read_gone, f);
}

/* ---- the others ---- */

static void change(struct http_call *c, enum file_verb verb)
{
    struct file_call *f = file_call_new(c);

    if (!f)
        return;
    if (koyeb_body(c, &koyeb_path, &f->body))
        (void)begin(f, verb, 0, on_changed);
    else
        file_call_free(f);
}

void api_delete_file(struct http_call *c)
{
    change(c, FILE_REMOVE);
}

void api_make_dir(struct http_call *c)
{
    change(c, FILE_MKDIR);
}

void api_delete_dir(struct http_call *c)
{
    change(c, FILE_REMOVE_ALL);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_run(struct work *work)
{
    struct file_call *f = (struct file_call *)work;
    const struct buf *names = &f->bytes;
    cleanup_free const char **list = NULL;
    size_t n = 0, at = 0;
    struct jw w;

    for (size_t i = 0; i < names->n; i++)
        n += names->p[i] == '\0';
    list = calloc(n + 1, sizeof *list);
    f->reply = BUF_INIT(list ? names->n * ESCAPE_FACTOR + REPLY_SLACK : 0);
    for (size_t i = 0; list && i < n; i++) {
        list[i] = names->p + at;
        at += strlen(list[i]) + 1;
    }
    if (list)
        qsort(list, n, sizeof *list, by_bytes);
    w = koyeb_writer(&f->reply, false);
    jw_object(&w);
    jw_key(&w, "entries");
    jw_array(&w);
    for (size_t i = 0; list && i < n; i++)
        jw_string(&w, list[i]);
    jw_array_end(&w);
    jw_object_end(&w);
}

static void on_listed(void *user, struct file_result *r)
{
    struct file_call *f = user;
    size_t n;
    const char *path = where(f, r, &n);

    f->filework = NULL;
    if (r->sys) {
        reply_error(f, r->op, path, n, r->sys, false);
        file_call_free(f);
        return;
    }
    f->bytes = *r->bytes;
    *r->bytes = BUF_INIT(0);
    write_reply(f, list_run, f->bytes.n);
}

void api_list_dir(struct http_call *c)
{
    struct file_call *f = file_call_new(c);

    if (!f)
        return;
    if (koyeb_body(c, &koyeb_path, &f->body))
        (void)begin(f, FILE_LIST, LIST_MAX, on_listed);
    else
        file_call_free(f);
}
