/* SPDX-License-Identifier: MIT */
#include "app/execution/kept_disk.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/daemon/app.h"
#include "app/execution/kept_file.h"
#include "base/fd.h"

enum {
    FILES_READ_MAX = 1 << 20, /* at the start */
    BATCH_MS = 100,
    BATCH_NAME_MAX = 24,
    FILE_MAX = 1 << 30, /* bytes read of one */
};

/* One file. */
struct kept_batch {
    uint64_t number;
    size_t live; /* executions of it that are kept */
};

enum disk_verb { DISK_PUT, DISK_ERASE, DISK_REMOVE };

/* One thing to do. */
struct disk_op {
    enum disk_verb verb;
    struct execution *x; /* PUT: held */
    uint64_t number;     /* ERASE, REMOVE: of the file */
    uint64_t at;         /* in the file */
    int64_t finished_us; /* of the calendar */
    int error;           /* errno */
    TAILQ_ENTRY(disk_op) link;
};
TAILQ_HEAD(disk_ops, disk_op);

struct kept_disk {
    struct app *app;         /* borrowed */
    int dir;                 /* owned */
    uint64_t last;           /* number given to a file */
    struct disk_ops waiting; /* for their turn */
    struct disk_ops batch;   /* the worker's, while it is busy */
    uint64_t number;         /* of the file that the batch becomes */
    struct work work;
    struct event *soon; /* owned */
    bool busy;
    bool stopped; /* there are no workers any more */
};

static void number_name(uint64_t number, char out[BATCH_NAME_MAX])
{
    (void)snprintf(out, BATCH_NAME_MAX, "%" PRIu64, number);
}

/* ---- doing it; on a worker ---- */

static int put(int fd, struct disk_op *op, uint64_t *at)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(0);
    int r;

    kept_file_write(op->x, op->finished_us, &text);
    if (text.failed)
        return ENOMEM;
    r = fd_write_all(fd, text.p, text.n);
    if (r < 0)
        return -r;
    op->at = *at;
    *at += text.n;
    return 0;
}

static void erase(int dir, const struct disk_op *op)
{
    cleanup_close int fd = -1;
    char name[BATCH_NAME_MAX];

    number_name(op->number, name);
    fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)!pwrite(fd, KEPT_FILE_ERASED, 1, (off_t)op->at);
}

/* What follows a record that was not written whole could not be found. */
static void batch_run(struct work *w)
{
    struct kept_disk *d = container_of(w, struct kept_disk, work);
    cleanup_close int fd = -1;
    char name[BATCH_NAME_MAX];
    struct disk_op *op;
    uint64_t at = 0;
    int error = 0;

    TAILQ_FOREACH(op, &d->batch, link)
    {
        number_name(op->verb == DISK_PUT ? d->number : op->number, name);
        if (op->verb == DISK_PUT && fd < 0 && !error) {
            fd = openat(d->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
            error = fd < 0 ? errno : 0;
        }
        if (op->verb == DISK_PUT)
            op->error = error = error ? error : put(fd, op, &at);
        else if (op->verb == DISK_ERASE)
            erase(d->dir, op);
        else
            (void)unlinkat(d->dir, name, 0);
    }
    if (fd >= 0 && at == 0) {
        number_name(d->number, name);
        (void)unlinkat(d->dir, name, 0);
    }
}

static void go_on(struct kept_disk *d);

static void put_done(struct kept_disk *d, struct disk_op *op, struct kept_batch **file)
{
    if (!op->error && !*file)
        *file = calloc(1, sizeof **file);
    if (op->error || !*file) {
        log_event(&d->app->log, LOG_WARN, "execution_not_saved", LOG_STR("execution_id", op->x->id),
                  LOG_STR("reason", strerror(op->error ? op->error : ENOMEM)));
        op->x->in.saved = false;
    } else {
        (*file)->number = d->number;
        (*file)->live++;
        op->x->in.batch = *file;
        op->x->in.at = op->at;
    }
    execution_drop(op->x);
}

static void batch_done(struct work *w)
{
    struct kept_disk *d = container_of(w, struct kept_disk, work);
    struct kept_batch *file = NULL;
    struct disk_ops done;
    struct disk_op *op;

    TAILQ_INIT(&done);
    TAILQ_CONCAT(&done, &d->batch, link);
    d->busy = false;
    TAILQ_FOREACH(op, &done, link)
    {
        if (op->verb == DISK_PUT) /* all of them count before one is dropped */
            execution_hold(op->x);
    }
    TAILQ_FOREACH(op, &done, link)
    {
        if (op->verb == DISK_PUT)
            put_done(d, op, &file);
    }
    while ((op = TAILQ_FIRST(&done))) {
        TAILQ_REMOVE(&done, op, link);
        if (op->verb == DISK_PUT)
            execution_drop(op->x);
        free(op);
    }
    go_on(d);
}

static void on_soon(evutil_socket_t fd, short what, void *user)
{
    struct kept_disk *d = user;

    (void)fd, (void)what;
    if (d->busy || d->stopped || TAILQ_EMPTY(&d->waiting))
        return;
    d->busy = true;
    d->number = ++d->last;
    TAILQ_CONCAT(&d->batch, &d->waiting, link);
    d->work = (struct work){.run = batch_run, .done = batch_done};
    work_submit(d->app->work, &d->work);
}

static void go_on(struct kept_disk *d)
{
    const struct timeval tv = {.tv_usec = BATCH_MS * 1000};

    if (!d->busy && !d->stopped && !TAILQ_EMPTY(&d->waiting) &&
        !event_pending(d->soon, EV_TIMEOUT, NULL))
        (void)event_add(d->soon, &tv);
}

/* ---- asking for it ---- */

/* Microseconds of the calendar: those of the monotonic clock mean nothing to another boot. */
static int64_t wall_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static struct disk_op *op_new(struct kept_disk *d, enum disk_verb verb)
{
    struct disk_op *op = calloc(1, sizeof *op);

    if (!op)
        return NULL;
    op->verb = verb;
    TAILQ_INSERT_TAIL(&d->waiting, op, link);
    return op;
}

void kept_disk_put(struct kept_disk *d, struct execution *x)
{
    struct disk_op *op = d ? op_new(d, DISK_PUT) : NULL;

    if (!op)
        return;
    op->finished_us = wall_us();
    op->x = x;
    x->in.saved = true;
    execution_hold(x);
    go_on(d);
}

void kept_disk_remove(struct kept_disk *d, struct execution *x)
{
    struct kept_batch *file = take_ptr(&x->in.batch);
    struct disk_op *op;
    bool last;

    if (!file)
        return;
    last = --file->live == 0;
    op = d && (last || x->in.erased) ? op_new(d, last ? DISK_REMOVE : DISK_ERASE) : NULL;
    if (op) {
        op->number = file->number;
        op->at = x->in.at;
        go_on(d);
    }
    if (last)
        free(file);
}

/* ---- the start ---- */

struct found {
    struct execution *x;
    int64_t finished_us;
};

struct founds {
    struct found *v; /* owned */
    size_t n, room;
};

static void found_add(struct founds *all, struct execution *x, int64_t finished_us)
{
    if (all->n == all->room) {
        size_t room = all->room ? all->room * 2 : 64;
        struct found *v = reallocarray(all->v, room, sizeof *v);

        if (!v) {
            execution_free(x);
            return;
        }
        all->v = v;
        all->room = room;
    }
    all->v[all->n++] = (struct found){x, finished_us};
}

static char *file_text(const struct kept_disk *d, const char *name, size_t *ret_n)
{
    cleanup_close int fd = openat(d->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_free char *text = NULL;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return NULL;
    text = malloc((size_t)st.st_size + 1);
    if (!text || fd_read_full(fd, text, (size_t)st.st_size) != st.st_size)
        return NULL;
    *ret_n = (size_t)st.st_size;
    return take_ptr(&text);
}

/* False: there is nothing in it. */
static bool read_file(struct kept_disk *d, const char *name, struct founds *all)
{
    struct kept_batch *file = calloc(1, sizeof *file);
    size_t n = 0, size;
    cleanup_free char *text = file ? file_text(d, name, &n) : NULL;

    if (file)
        file->live = 1; /* until all of it is read */
    for (size_t at = 0; text && (size = kept_file_next(text + at, n - at)) > 0; at += size) {
        int64_t finished_us;
        struct execution *x = kept_file_read(d->app, text + at, size, &finished_us);

        if (!x)
            continue;
        x->in.saved = true;
        x->in.batch = file;
        x->in.at = at;
        file->live++;
        found_add(all, x, finished_us);
    }
    if (file && --file->live > 0) {
        file->number = strtoull(name, NULL, 10);
        return true;
    }
    free(file);
    return false;
}

static int by_end(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->finished_us < y->finished_us ? -1 : x->finished_us > y->finished_us;
}

/* What holds no execution is removed: nothing else is ever put there. */
static void read_all(struct kept_disk *d, DIR *list, struct founds *all)
{
    const struct dirent *entry;

    while ((entry = readdir(list)) && all->n < FILES_READ_MAX) {
        uint64_t number = strtoull(entry->d_name, NULL, 10);
        char name[BATCH_NAME_MAX];

        if (entry->d_name[0] == '.')
            continue;
        number_name(number, name);
        if (number == 0 || strcmp(name, entry->d_name) != 0 || !read_file(d, name, all))
            (void)unlinkat(d->dir, entry->d_name, 0);
        else if (number > d->last)
            d->last = number;
    }
}

/* The oldest first: it is the first to go where there is too much. */
static void restore(struct kept_disk *d, struct found *all, size_t n)
{
    struct registry *r = &d->app->registry;
    int64_t now = (int64_t)clock_us(), now_wall = wall_us();

    if (n > 1)
        qsort(all, n, sizeof *all, by_end);
    for (size_t i = 0; i < n; i++) {
        int64_t age = now_wall > all[i].finished_us ? now_wall - all[i].finished_us : 0;

        registry_restore(r, all[i].x, now - age);
    }
    app_expiry_arm(d->app);
}

/* Copies of artifacts are kept by number. */
static void sweep_store(struct app *a)
{
    const struct execution *x;
    uint64_t *numbers = NULL;
    size_t n = 0;

    TAILQ_FOREACH(x, &a->registry.all, in.all)
    n += x->artifacts.n;
    numbers = calloc(n + 1, sizeof *numbers);
    if (!numbers)
        return;
    n = 0;
    TAILQ_FOREACH(x, &a->registry.all, in.all)
    for (size_t i = 0; i < x->artifacts.n; i++)
        numbers[n++] = x->artifacts.v[i]->stored.number;
    store_sweep(a->store, numbers, n);
    free(numbers);
}

static int dir_open(const struct app *a, struct kept_disk *d, struct err *e)
{
    cleanup_close int top = open(a->config.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (top < 0 || (mkdirat(top, "executions", 0700) < 0 && errno != EEXIST))
        return err_sys(e, -errno, "make '%.300s/executions'", a->config.state_dir);
    d->dir = openat(top, "executions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return d->dir < 0 ? err_sys(e, -errno, "open '%.300s/executions'", a->config.state_dir) : 0;
}

int kept_disk_open(struct app *a, struct kept_disk **ret, struct err *e)
{
    struct kept_disk *d = calloc(1, sizeof *d);
    struct founds all = {0};
    DIR *list;
    int again;

    if (!d)
        return err_set(e, ERR_HOST, "no memory for kept executions");
    d->app = a;
    TAILQ_INIT(&d->waiting);
    TAILQ_INIT(&d->batch);
    d->soon = evtimer_new(a->base, on_soon, d);
    if (!d->soon || dir_open(a, d, e) < 0) {
        if (!d->soon)
            (void)err_set(e, ERR_HOST, "no memory for kept executions");
        else
            event_free(d->soon);
        free(d);
        return -1;
    }
    *ret = d; /* what is too old is removed at once */
    again = fd_dup(d->dir);
    list = again >= 0 ? fdopendir(again) : NULL;
    if (list) {
        read_all(d, list, &all);
        (void)closedir(list);
    } else {
        closep(&again);
    }
    restore(d, all.v, all.n);
    free(all.v);
    sweep_store(a);
    if (all.n > 0)
        log_event(&a->log, LOG_INFO, "executions_restored",
                  LOG_INT("executions", (int64_t)a->registry.finished_n));
    return 0;
}

void kept_disk_stop(struct kept_disk *d)
{
    if (d)
        d->stopped = true;
}

void kept_disk_close(struct kept_disk *d)
{
    if (!d)
        return;
    d->stopped = true;
    while (!TAILQ_EMPTY(&d->waiting)) { /* what is forgotten by that is removed */
        TAILQ_CONCAT(&d->batch, &d->waiting, link);
        d->number = ++d->last;
        batch_run(&d->work);
        batch_done(&d->work);
    }
    event_free(d->soon);
    closep(&d->dir);
    free(d);
}
