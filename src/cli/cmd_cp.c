/* SPDX-License-Identifier: MIT */
/*
 * sbx cp: files and directories into a sandbox and out of it. A directory travels as one tar
 * stream; no file of either side is ever whole in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/pack_tree.h"
#include "cli/progress.h"
#include "cli/talk.h"
#include "cli/unpack_tree.h"

enum { PATH_ROOM = 8192 };

/* One side: here, or in a sandbox. */
struct place {
    char *sandbox; /* owned; NULL: here */
    const char *path;
};

struct copying {
    struct talk *talk;
    struct progress progress;
    struct pack_tree *pack;     /* owned; what is sent, unless it is `fd` */
    struct unpack_tree *unpack; /* owned; where it goes, unless it is `fd` */
    int fd;                     /* owned; -1: none */
    struct err e;               /* what went wrong here */
};

/* "SANDBOX:PATH" and ":PATH" are in a sandbox; "./a:b" is here. */
static int place_read(const struct talk *t, const char *text, struct place *ret)
{
    size_t n = strcspn(text, ":/");

    *ret = (struct place){.path = text};
    if (text[n] != ':')
        return 0;
    ret->sandbox = n ? strndup(text, n) : strdup(t->sandbox);
    ret->path = text + n + 1;
    return ret->sandbox ? 0 : -1;
}

static void place_done(struct place *p)
{
    free(p->sandbox);
}

/* ---- what is there ---- */

enum kind { KIND_NONE, KIND_FILE, KIND_DIRECTORY };

/* A path inside as an absolute one, in *ret; what it leads to. -1 after saying why. */
static int look_inside(struct copying *c, const struct place *p, struct buf *ret, enum kind *kind)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(TALK_PATH_MAX),
                                      body = BUF_INIT(PATH_ROOM * 8);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct http_request r;
    struct json_value v;
    struct jw w = JW(&body);
    char *text;

    jw_object(&w);
    jw_kv_string(&w, "path", p->path[0] ? p->path : ".");
    jw_object_end(&w);
    path_add(&path, "v1", "sandboxes", p->sandbox, "files", "stat");
    r = (struct http_request){.path = path.p, .body = body.p, .body_n = body.n};
    if (http_ask(c->talk->http, &r, &answer, &c->e) < 0)
        return -1;
    *kind = KIND_NONE;
    if (answer.status == 200 && json_parse(answer.body.p, answer.body.n, 0, &v, &c->e) == 0) {
        text = member_text(v, "path");
        (void)buf_puts(ret, text ? text : "");
        free(text);
        *kind = member_is(v, "type", "directory") || member_is(v, "target_type", "directory")
                    ? KIND_DIRECTORY
                    : KIND_FILE;
        return 0;
    }
    http_answer_words(&answer, &c->e);
    if (answer.status != 404 || strstr(c->e.text, "sandbox '"))
        return -1;
    c->e = (struct err){0};
    if (p->path[0] != '/')
        (void)buf_puts(ret, "/workspace/");
    return buf_puts(ret, p->path);
}

static void path_of(struct buf *url, const struct place *p, const char *file, bool archive)
{
    path_add(url, "v1", "sandboxes", p->sandbox, "files");
    path_add_file(url, file);
    if (archive)
        path_query(url, "archive", "tar");
}

/* The transfer; what failed here says more than that it broke off. */
static int ask(struct copying *c, const struct http_request *r, struct http_answer *answer)
{
    struct err e = {0};
    int got = http_ask(c->talk->http, r, answer, &e);

    progress_end(&c->progress);
    if (got == 0 && answer->status >= 300) {
        http_answer_words(answer, &e);
        got = -1;
    }
    if (got < 0 && c->e.kind == ERR_NONE)
        c->e = e;
    return got;
}

/* ---- in ---- */

static ssize_t on_read(void *user, char *p, size_t room)
{
    struct copying *c = user;
    ssize_t n;

    if (c->pack) {
        n = pack_read(c->pack, p, room);
        if (n < 0)
            c->e = *pack_error(c->pack);
    } else {
        n = read(c->fd, p, room);
        if (n < 0)
            (void)err_sys(&c->e, -errno, "%s", c->progress.name);
    }
    if (n > 0)
        progress_add(&c->progress, n);
    return n;
}

/* What is copied under its own name into a directory that is there. */
static int open_here(struct copying *c, const char *from, int64_t *size)
{
    struct stat st;

    *size = -1;
    if (strcmp(from, "-") == 0) {
        c->fd = fd_dup(STDIN_FILENO);
        return c->fd < 0 ? err_sys(&c->e, c->fd, "standard input") : 0;
    }
    c->fd = open(from, O_RDONLY | O_CLOEXEC);
    if (c->fd < 0 || fstat(c->fd, &st) < 0)
        return err_sys(&c->e, -errno, "%s", from);
    if (S_ISDIR(st.st_mode)) {
        closep(&c->fd);
        c->fd = -1;
        return pack_open(from, &c->pack, &c->e);
    }
    *size = S_ISREG(st.st_mode) ? st.st_size : -1;
    return 0;
}

static int copy_in(struct copying *c, const char *from, const struct place *to)
{
    cleanup_with(buf_done) struct buf file = BUF_INIT(PATH_ROOM), url = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    cleanup_free char *copy = strdup(from);
    bool into = to->path[0] == '\0' || to->path[strlen(to->path) - 1] == '/';
    struct http_request r = {.method = "PUT", .read = on_read, .user = c};
    enum kind kind;
    int64_t size;
    int got;

    if (!copy || open_here(c, from, &size) < 0 || look_inside(c, to, &file, &kind) < 0)
        return -1;
    if ((kind == KIND_DIRECTORY || into) && strcmp(from, "-") != 0 &&
        strcmp(basename(copy), ".") != 0)
        (void)buf_printf(&file, "%s%s", file.n && file.p[file.n - 1] == '/' ? "" : "/",
                         basename(copy));
    path_of(&url, to, file.p, c->pack != NULL);
    r.path = url.p;
    r.type = c->pack ? "application/x-tar" : "application/octet-stream";
    r.read_n = size;
    progress_begin(&c->progress, from, size, !c->talk->json);
    got = ask(c, &r, &answer);
    if (got == 0 && c->talk->json)
        (void)fwrite(answer.body.p ? answer.body.p : "", 1, answer.body.n, stdout);
    return got;
}

/* ---- out ---- */

static int on_head(void *user, const struct http_head *head)
{
    struct copying *c = user;

    c->progress.total = head->length;
    return 0;
}

static int on_part(void *user, const char *p, size_t n)
{
    struct copying *c = user;
    int r;

    progress_add(&c->progress, (int64_t)n);
    if (c->unpack) {
        r = unpack_feed(c->unpack, p, n);
        if (r < 0)
            c->e = *unpack_error(c->unpack);
    } else {
        r = fd_write_all(c->fd, p, n);
        if (r < 0)
            (void)err_sys(&c->e, r, "%s", c->progress.name);
    }
    return r < 0 ? -1 : 0;
}

/* The new file has its name when it is whole. */
static int open_new(struct copying *c, const char *to, char temporary[PATH_ROOM])
{
    if (strcmp(to, "-") == 0) {
        temporary[0] = '\0';
        c->fd = fd_dup(STDOUT_FILENO);
        return c->fd < 0 ? err_sys(&c->e, c->fd, "standard output") : 0;
    }
    if (snprintf(temporary, PATH_ROOM, "%s.sbx-XXXXXX", to) >= PATH_ROOM)
        return err_set(&c->e, ERR_CALLER, "the name is too long");
    c->fd = mkostemp(temporary, O_CLOEXEC);
    if (c->fd < 0)
        return err_sys(&c->e, -errno, "%s", to);
    return 0;
}

static int get(struct copying *c, const char *url, const char *name)
{
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct http_request r = {.path = url, .head = on_head, .part = on_part, .user = c};

    progress_begin(&c->progress, name, -1, !c->talk->json);
    if (ask(c, &r, &answer) < 0)
        return -1;
    if (c->unpack && unpack_finish(c->unpack) < 0) {
        c->e = *unpack_error(c->unpack);
        return -1;
    }
    return 0;
}

static int get_file(struct copying *c, const char *url, const char *to)
{
    char temporary[PATH_ROOM];
    mode_t mask = umask(0);
    int got;

    (void)umask(mask);
    if (open_new(c, to, temporary) < 0)
        return -1;
    got = get(c, url, to);
    if (!temporary[0])
        return got;
    if (got == 0 && (fchmod(c->fd, 0666 & ~mask) < 0 || rename(temporary, to) < 0))
        got = err_sys(&c->e, -errno, "%s", to);
    if (got < 0)
        (void)unlink(temporary);
    return got;
}

static int copy_out(struct copying *c, const struct place *from, const char *to)
{
    cleanup_with(buf_done) struct buf file = BUF_INIT(PATH_ROOM), url = BUF_INIT(TALK_PATH_MAX);
    cleanup_with(buf_done) struct buf name = BUF_INIT(PATH_ROOM);
    enum kind kind;
    struct stat st;

    if (look_inside(c, from, &file, &kind) < 0)
        return -1;
    if (kind == KIND_NONE)
        return err_set(&c->e, ERR_ABSENT, "%s: there is no such file in %s", from->path,
                       from->sandbox);
    (void)buf_puts(&name, to);
    if (strcmp(to, "-") != 0 && stat(to, &st) == 0 && S_ISDIR(st.st_mode))
        (void)buf_printf(&name, "/%s", strrchr(file.p, '/') + 1);
    if (name.failed)
        return err_set(&c->e, ERR_CALLER, "the name is too long");
    path_of(&url, from, file.p, kind == KIND_DIRECTORY);
    if (kind != KIND_DIRECTORY)
        return get_file(c, url.p, name.p);
    if (strcmp(to, "-") == 0)
        return err_set(&c->e, ERR_CALLER, "a directory needs a place to go");
    if (unpack_open(name.p, &c->unpack, &c->e) < 0)
        return -1;
    return get(c, url.p, name.p);
}

int cmd_cp(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(place_done) struct place from = {0}, to = {0};
    struct copying c = {.talk = &t, .fd = -1};
    int r;

    if (a->n != 2)
        return args_wrong(a, "from where to where?");
    if (talk_open(a, &t) < 0 || place_read(&t, a->operand[0], &from) < 0 ||
        place_read(&t, a->operand[1], &to) < 0)
        return CMD_FAILED;
    if (!from.sandbox == !to.sandbox)
        return args_wrong(a, "one side is a path in a sandbox: SANDBOX:PATH, or :PATH");
    r = to.sandbox ? copy_in(&c, from.path, &to) : copy_out(&c, &from, to.path);
    pack_close(c.pack);
    unpack_close(c.unpack);
    closep(&c.fd);
    if (r < 0)
        talk_say(&c.e);
    return r < 0 ? CMD_FAILED : 0;
}
