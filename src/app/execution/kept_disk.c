/* SPDX-License-Identifier: MIT */
#include "app/execution/kept_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "app/daemon/app.h"
#include "app/execution/kept_file.h"
#include "base/fd.h"

enum { FILES_READ_MAX = 1 << 20 }; /* at the start */

/* One thing to do. */
struct disk_op {
    struct execution *x; /* held: to be written; NULL: to be removed */
    char id[EXECUTION_ID_MAX + 1];
    int64_t finished_us; /* of the calendar */
    int error;           /* errno */
    TAILQ_ENTRY(disk_op) link;
};
TAILQ_HEAD(disk_ops, disk_op);

struct kept_disk {
    struct app *app;         /* borrowed */
    int dir;                 /* owned */
    struct disk_ops waiting; /* for their turn */
    struct disk_ops batch;   /* the worker's, while it is busy */
    struct work work;
    bool busy;
    bool stopped; /* there are no workers any more */
};

/* ---- doing it; on a worker ---- */

static int write_file(int dir, const struct disk_op *op)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(0);
    cleanup_close int fd = -1;
    int r;

    kept_file_write(op->x, op->finished_us, &text);
    if (text.failed)
        return ENOMEM;
    fd = openat(dir, op->id, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    r = fd_write_all(fd, text.p, text.n);
    if (r < 0)
        (void)unlinkat(dir, op->id, 0);
    return r < 0 ? -r : 0;
}

static void batch_run(struct work *w)
{
    struct kept_disk *d = container_of(w, struct kept_disk, work);
    struct disk_op *op;

    TAILQ_FOREACH(op, &d->batch, link)
    {
        if (op->x)
            op->error = write_file(d->dir, op);
        else
            (void)unlinkat(d->dir, op->id, 0);
    }
}

static void go_on(struct kept_disk *d);

static void batch_done(struct work *w)
{
    struct kept_disk *d = container_of(w, struct kept_disk, work);
    struct disk_op *op;

    d->busy = false;
    while ((op = TAILQ_FIRST(&d->batch))) {
        TAILQ_REMOVE(&d->batch, op, link);
        if (op->error)
            log_event(&d->app->log, LOG_WARN, "execution_not_saved",
                      LOG_STR("execution_id", op->id), LOG_STR("reason", strerror(op->error)));
        if (op->x)
            execution_drop(op->x);
        free(op);
    }
    go_on(d);
}

static void go_on(struct kept_disk *d)
{
    if (d->busy || d->stopped || TAILQ_EMPTY(&d->waiting))
        return;
    d->busy = true;
    TAILQ_CONCAT(&d->batch, &d->waiting, link);
    d->work = (struct work){.run = batch_run, .done = batch_done};
    work_submit(d->app->work, &d->work);
}

/* ---- asking for it ---- */

/* Microseconds of the calendar: those of the monotonic clock mean nothing to another boot. */
static int64_t wall_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static struct disk_op *op_new(struct kept_disk *d, const char *id)
{
    struct disk_op *op = calloc(1, sizeof *op);

    if (!op)
        return NULL;
    memcpy(op->id, id, strlen(id) + 1);
    TAILQ_INSERT_TAIL(&d->waiting, op, link);
    return op;
}

void kept_disk_put(struct kept_disk *d, struct execution *x)
{
    struct disk_op *op = d ? op_new(d, x->id) : NULL;

    if (!op)
        return;
    op->finished_us = wall_us();
    op->x = x;
    x->in.saved = true;
    execution_hold(x);
    go_on(d);
}

void kept_disk_remove(struct kept_disk *d, const char *id)
{
    if (d && op_new(d, id))
        go_on(d);
}

/* ---- the start ---- */

struct found {
    struct execution *x;
    int64_t finished_us;
};

static struct execution *read_file(struct kept_disk *d, const char *name, int64_t *ret_finished_us)
{
    cleanup_close int fd = openat(d->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_free char *text = NULL;
    struct execution *x;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size > d->app->registry.bytes_max)
        return NULL;
    text = malloc((size_t)st.st_size + 1);
    if (!text || fd_read_full(fd, text, (size_t)st.st_size) != st.st_size)
        return NULL;
    x = kept_file_read(d->app, text, (size_t)st.st_size, ret_finished_us);
    if (!x || strcmp(x->id, name) == 0)
        return x;
    execution_free(x);
    return NULL;
}

static int by_end(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->finished_us < y->finished_us ? -1 : x->finished_us > y->finished_us;
}

/* What is not an execution is removed: nothing else is ever put there. */
static size_t read_all(struct kept_disk *d, DIR *list, struct found **ret)
{
    const struct dirent *entry;
    struct found *all = NULL;
    size_t n = 0, room = 0;

    while ((entry = readdir(list)) && n < FILES_READ_MAX) {
        struct found f = {0};

        if (entry->d_name[0] == '.')
            continue;
        if (n == room) {
            struct found *more = reallocarray(all, room ? room * 2 : 64, sizeof *all);

            if (!more)
                break;
            all = more;
            room = room ? room * 2 : 64;
        }
        f.x = read_file(d, entry->d_name, &f.finished_us);
        if (f.x)
            all[n++] = f;
        else
            (void)unlinkat(d->dir, entry->d_name, 0);
    }
    *ret = all;
    return n;
}

/* The oldest first: it is the first to go where there is too much. */
static void restore(struct kept_disk *d, struct found *all, size_t n)
{
    struct registry *r = &d->app->registry;
    uint64_t now = clock_us();
    int64_t now_wall = wall_us();

    if (n > 1)
        qsort(all, n, sizeof *all, by_end);
    for (size_t i = 0; i < n; i++) {
        uint64_t age =
            now_wall > all[i].finished_us ? (uint64_t)(now_wall - all[i].finished_us) : 0;

        all[i].x->in.saved = true;
        registry_restore(r, all[i].x, age < now ? now - age : 1);
    }
    (void)registry_expire(r, now);
    if (r->finished_n > 0)
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
    struct found *all = NULL;
    size_t n = 0;
    DIR *list;
    int again;

    if (!d)
        return err_set(e, ERR_HOST, "no memory for kept executions");
    d->app = a;
    TAILQ_INIT(&d->waiting);
    TAILQ_INIT(&d->batch);
    if (dir_open(a, d, e) < 0) {
        free(d);
        return -1;
    }
    *ret = d; /* what is too old is removed at once */
    again = fd_dup(d->dir);
    list = again >= 0 ? fdopendir(again) : NULL;
    if (list) {
        n = read_all(d, list, &all);
        (void)closedir(list);
    } else {
        closep(&again);
    }
    restore(d, all, n);
    free(all);
    sweep_store(a);
    if (n > 0)
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
    TAILQ_CONCAT(&d->batch, &d->waiting, link); /* behind what no worker has begun */
    batch_run(&d->work);
    batch_done(&d->work);
    closep(&d->dir);
    free(d);
}
