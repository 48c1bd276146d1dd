/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/tool_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "base/os.h"
#include "core/port_files.h"
#include "core/port_work.h"
#include "http/api/sandboxes/entry_json.h"

struct tool_file {
    struct work work; /* first */
    struct app *app;
    struct filework *filework; /* owned */
    tool_file_look_fn *look;
    tool_file_fn *done; /* NULL: it was left */
    void *user, *plan;  /* plan: owned */
    void (*plan_free)(void *plan);
    bool working; /* on a worker thread */
    int fd;       /* owned: what is read */
    int sys;
    uint64_t size;
    struct buf bytes;
};

static void tool_file_free(struct tool_file *f)
{
    filework_free(f->filework);
    buf_done(&f->bytes);
    closep(&f->fd);
    if (f->plan)
        f->plan_free(f->plan);
    free(f);
}

char *tool_path(const struct persistent *home, struct bytes path)
{
    bool below = path.n == 0 || path.p[0] != '/';
    char *text = NULL;

    if (path.n > FILE_PATH_MAX || (path.n > 0 && memchr(path.p, '\0', path.n)))
        return NULL;
    if (asprintf(&text, "%s%s%.*s", below ? persistent_cwd(home) : "", below ? "/" : "",
                 (int)path.n, path.p ? path.p : "") < 0)
        return NULL;
    entry_path_clean(text);
    return text;
}

static void finish(struct tool_file *f)
{
    struct tool_file_end end = {
        .sys = f->sys, .size = f->size, .bytes = &f->bytes, .plan = f->plan};

    if (f->done)
        f->done(f->user, &end);
    tool_file_free(f);
}

static int read_all(struct tool_file *f)
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

static void on_work(struct work *w)
{
    struct tool_file *f = (struct tool_file *)w;

    if (f->fd >= 0)
        f->sys = read_all(f);
    if (f->sys == 0 && f->look)
        f->look(f->plan, &f->bytes);
}

static void on_worked(struct work *w)
{
    struct tool_file *f = (struct tool_file *)w;

    f->working = false;
    finish(f);
}

static void look_at(struct tool_file *f)
{
    f->working = true;
    f->work = (struct work){.run = on_work, .done = on_worked, .lane = work_lane_of(f->size)};
    work_submit(f->app->work, &f->work);
}

static void on_read(void *user, struct file_result *r)
{
    struct tool_file *f = user;

    f->filework = NULL;
    f->sys = r->sys;
    f->size = r->size;
    if (f->sys == 0 && r->size > f->bytes.max)
        f->sys = EFBIG;
    if (f->sys) {
        finish(f);
        return;
    }
    f->fd = r->fd;
    r->fd = -1;
    if (f->fd < 0 && r->bytes) {
        f->bytes = *r->bytes;
        *r->bytes = BUF_INIT(0);
        f->size = f->bytes.n;
    }
    look_at(f);
}

static void on_written(void *user, struct file_result *r)
{
    struct tool_file *f = user;

    f->filework = NULL;
    f->sys = r->sys;
    finish(f);
}

static struct tool_file *begin(struct persistent *home, const struct file_order *o,
                               filework_fn *end, tool_file_fn *done, void *user)
{
    struct tool_file *f = calloc(1, sizeof *f);
    struct err e;

    if (!f)
        return NULL;
    f->app = home->all->app;
    f->fd = -1;
    f->done = done;
    f->user = user;
    if (filework_start(&home->inside.files, o, end, f, &f->filework, &e) == 0)
        return f;
    free(f);
    return NULL;
}

static void take_reader(struct tool_file *f, const struct tool_file_reader *r)
{
    f->done = r->done;
    f->user = r->user;
    f->look = r->look;
    f->plan = r->plan;
    f->plan_free = r->plan_free;
    f->bytes = BUF_INIT(r->max);
}

struct tool_file *tool_file_take(struct app *a, int fd, uint64_t size,
                                 const struct tool_file_reader *r)
{
    struct tool_file *f = calloc(1, sizeof *f);

    if (!f) {
        closep(&fd);
        if (r->plan)
            r->plan_free(r->plan);
        return NULL;
    }
    f->app = a;
    f->fd = fd;
    f->size = size;
    take_reader(f, r);
    look_at(f);
    return f;
}

struct tool_file *tool_file_read(struct persistent *home, const char *path,
                                 const struct tool_file_reader *r)
{
    const struct file_order o = {
        .verb = FILE_READ, .path = {path, strlen(path)},
             .bytes_max = r->max
    };
    struct tool_file *f = begin(home, &o, on_read, r->done, r->user);

    if (!f) {
        if (r->plan)
            r->plan_free(r->plan);
        return NULL;
    }
    take_reader(f, r);
    return f;
}

struct tool_file *tool_file_write(struct persistent *home, const char *path, struct buf *content,
                                  tool_file_fn *done, void *user)
{
    const struct file_order o = {
        .verb = FILE_WRITE, .path = {path, strlen(path)},
             .parents = true
    };
    struct tool_file *f = begin(home, &o, on_written, done, user);

    if (!f)
        return NULL;
    f->size = content->n;
    if (content->n > 0)
        (void)filework_feed_take(f->filework, content);
    filework_feed_end(f->filework);
    return f;
}

void tool_file_leave(struct tool_file *f)
{
    if (!f)
        return;
    f->done = NULL;
    if (f->working)
        work_forget(&f->work); /* freed by on_worked() */
    else
        tool_file_free(f);
}

const char *tool_file_words(int sys)
{
    return sys == FILE_BUSY    ? "the sandbox is busy: try again in a second"
           : sys == FILE_ENDED ? "the sandbox has ended"
                               : strerror(sys);
}
