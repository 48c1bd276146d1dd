/* SPDX-License-Identifier: MIT */
/*
 * Theory of operation
 *
 *   put, read, drop, reject ─▶ queue ─▶ batch ─▶ worker ─▶ batch_done ─▶ callbacks
 *
 * One batch is on the worker at a time; what is asked for meanwhile makes the next one. In a batch
 * all new files are written and started on their way to the disk first, then synced one by one,
 * then everything gets or loses its name in the order it was asked for, then the directory is
 * synced once. So a hundred results that end together share most of the waiting.
 *
 * The index (entries) lives on the loop; the worker sees only operations and two descriptors.
 */
#include "net/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jw.h"

enum {
    BUCKETS = 1024,
    NAME_MAX_BYTES = SPOOL_ID_MAX + 16,
    HEAD_MAX = 512,
    TAIL_MAX = 8192,
    FILE_OVERHEAD = HEAD_MAX + TAIL_MAX,
    PIECES = 3,
    REJECTED_SHARE = 4, /* refused files may fill this part of the whole: one in four */
};

enum op_kind { OP_PUT, OP_READ, OP_DROP, OP_REJECT, OP_FORGET };

/* One thing to do on disk. While in a batch it belongs to the worker. */
struct op {
    enum op_kind kind;
    char id[SPOOL_ID_MAX + 1];
    uint64_t number;       /* name of the half-written file */
    struct bytes body;     /* PUT: borrowed. READ: what was found */
    struct buf head, tail; /* PUT: owned */
    struct buf file;       /* READ: owned */
    size_t file_max;
    int fd;     /* owned: PUT, between writing and syncing */
    int failed; /* -errno */
    struct spool_entry *entry;
    union {
        spool_put_fn *put;
        spool_read_fn *read;
    } done;
    void *user;
    STAILQ_ENTRY(op) link;
};
STAILQ_HEAD(op_list, op);

struct spool {
    struct work work;       /* first */
    struct work_pool *pool; /* borrowed */
    int dir, rejected_dir;  /* owned */
    char *told;             /* owned */
    uint64_t bytes_max, age_max_s;
    uint64_t bytes, rejected_bytes;
    size_t files_n, rejected_n;
    uint64_t last;        /* number of the last half-written file */
    struct op_list queue; /* the loop's */
    struct op_list batch; /* the worker's while busy */
    bool busy;
    struct spool_list waiting, rejected; /* oldest first */
    SLIST_HEAD(spool_bucket, spool_entry) buckets[BUCKETS];
};

static void final_name(const char *id, char out[NAME_MAX_BYTES])
{
    (void)snprintf(out, NAME_MAX_BYTES, "%s.json", id);
}

/* A dot in front: no id begins with one. */
static void half_name(uint64_t number, char out[NAME_MAX_BYTES])
{
    (void)snprintf(out, NAME_MAX_BYTES, ".new-%" PRIu64, number);
}

static bool id_is_safe(const char *id)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(id);

    return n >= 1 && n <= SPOOL_ID_MAX && id[0] != '.' && strspn(id, allowed) == n;
}

/* ---- on the worker ---- */

static int write_pieces(int fd, const struct op *o)
{
    const struct bytes all[PIECES] = {
        {o->head.p, o->head.n},
        o->body, {o->tail.p, o->tail.n}
    };

    for (size_t i = 0; i < PIECES; i++) {
        int r = fd_write_all(fd, all[i].p, all[i].n);

        if (r < 0)
            return r;
    }
    return 0;
}

static void put_write(const struct spool *s, struct op *o)
{
    char name[NAME_MAX_BYTES];

    half_name(o->number, name);
    o->fd = openat(s->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    o->failed = o->fd < 0 ? -errno : write_pieces(o->fd, o);
    if (o->failed == 0) /* only a hint: the sync that follows has less to wait for */
        (void)sync_file_range(o->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static void put_sync(struct op *o)
{
    if (o->failed == 0 && fsync(o->fd) < 0)
        o->failed = -errno;
    fd_close_all(&o->fd, 1);
}

static void put_name(const struct spool *s, struct op *o)
{
    char half[NAME_MAX_BYTES], name[NAME_MAX_BYTES];

    half_name(o->number, half);
    final_name(o->id, name);
    if (o->failed == 0 && renameat(s->dir, half, s->dir, name) < 0)
        o->failed = -errno;
    if (o->failed < 0)
        (void)unlinkat(s->dir, half, 0);
}

static int read_file(int fd, size_t max, struct buf *out)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max)
        return -EFBIG;
    *out = BUF_INIT((size_t)st.st_size + 1);
    if (buf_reserve(out, (size_t)st.st_size + 1) < 0)
        return -ENOMEM;
    n = fd_read_full(fd, out->p, (size_t)st.st_size);
    if (n < 0)
        return (int)n;
    out->n = (size_t)n;
    return 0;
}

/* What we wrote ourselves is checked all the same: disks and people change files. */
static int find_body(const struct op *o, struct bytes *ret)
{
    struct json_value v, result, id;
    char quoted[SPOOL_ID_MAX + 3];
    struct err ignored;
    int n = snprintf(quoted, sizeof quoted, "\"%s\"", o->id);

    if (json_parse(o->file.p, o->file.n, 0, &v, &ignored) < 0 || v.type != JSON_OBJECT ||
        !json_get(v, "execution_id", &id) || !json_get(v, "result", &result))
        return -EBADMSG;
    if (id.n != (size_t)n || memcmp(id.p, quoted, id.n) != 0 || result.type != JSON_OBJECT)
        return -EBADMSG;
    *ret = (struct bytes){.p = result.p, .n = result.n};
    return 0;
}

static void read_back(const struct spool *s, struct op *o)
{
    cleanup_close int fd = -1;
    char name[NAME_MAX_BYTES];

    final_name(o->id, name);
    fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    o->failed = fd < 0 ? -errno : read_file(fd, o->file_max, &o->file);
    if (o->failed == 0)
        o->failed = find_body(o, &o->body);
}

static void name_change(const struct spool *s, struct op *o)
{
    char name[NAME_MAX_BYTES];

    final_name(o->id, name);
    switch (o->kind) {
    case OP_PUT:
        put_name(s, o);
        break;
    case OP_READ:
        read_back(s, o);
        break;
    case OP_DROP:
        (void)unlinkat(s->dir, name, 0);
        break;
    case OP_REJECT:
        (void)renameat(s->dir, name, s->rejected_dir, name);
        break;
    case OP_FORGET:
        (void)unlinkat(s->rejected_dir, name, 0);
        break;
    }
}

/* A name is there for good only when its directory has been synced. */
static void names_sync(struct spool *s)
{
    struct op *o;
    int r = 0;
    bool needed = false;

    STAILQ_FOREACH(o, &s->batch, link)
    {
        needed |= o->kind == OP_PUT && o->failed == 0;
    }
    if (needed && fsync(s->dir) < 0)
        r = -errno;
    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT && o->failed == 0)
            o->failed = r;
    }
}

static void batch_run(struct work *w)
{
    struct spool *s = (struct spool *)w;
    struct op *o;

    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT)
            put_write(s, o);
    }
    STAILQ_FOREACH(o, &s->batch, link)
    {
        if (o->kind == OP_PUT)
            put_sync(o);
    }
    STAILQ_FOREACH(o, &s->batch, link)
    {
        name_change(s, o);
    }
    names_sync(s);
}

/* ---- the queue ---- */

static void op_free(struct op *o)
{
    buf_done(&o->head);
    buf_done(&o->tail);
    buf_done(&o->file);
    fd_close_all(&o->fd, 1);
    free(o);
}

static void op_tell(struct op *o)
{
    if (o->kind == OP_PUT) {
        o->entry->on_disk = o->failed == 0;
        o->done.put(o->user, o->entry, o->failed < 0 ? strerror(-o->failed) : "");
    } else if (o->kind == OP_READ) {
        if (o->failed < 0)
            o->body = (struct bytes){0};
        o->done.read(o->user, &o->file, o->body);
    }
}

static void batch_start(struct spool *s);

static void batch_done(struct work *w)
{
    struct spool *s = (struct spool *)w;
    struct op_list done = STAILQ_HEAD_INITIALIZER(done);
    struct op *o;

    STAILQ_CONCAT(&done, &s->batch);
    s->busy = false;
    batch_start(s);
    while ((o = STAILQ_FIRST(&done))) {
        STAILQ_REMOVE_HEAD(&done, link);
        op_tell(o);
        op_free(o);
    }
}

static void batch_start(struct spool *s)
{
    if (s->busy || STAILQ_EMPTY(&s->queue))
        return;
    s->busy = true;
    STAILQ_CONCAT(&s->batch, &s->queue);
    s->work = (struct work){.run = batch_run, .done = batch_done};
    work_submit(s->pool, &s->work);
}

static struct op *op_new(enum op_kind kind, const char *id)
{
    struct op *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    o->kind = kind;
    o->fd = -1;
    (void)snprintf(o->id, sizeof o->id, "%s", id);
    return o;
}

static void op_submit(struct spool *s, struct op *o)
{
    STAILQ_INSERT_TAIL(&s->queue, o, link);
    batch_start(s);
}

/* No memory for it: the file stays and is found again at the next start. */
static void op_plain(struct spool *s, enum op_kind kind, const char *id)
{
    struct op *o = op_new(kind, id);

    if (o)
        op_submit(s, o);
}

/* ---- the index ---- */

static struct spool_bucket *bucket_of(struct spool *s, const char *id)
{
    uint32_t h = 2166136261u;

    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 16777619u;
    return &s->buckets[h % BUCKETS];
}

static struct spool_entry *entry_find(struct spool *s, const char *id)
{
    struct spool_entry *e;

    SLIST_FOREACH(e, bucket_of(s, id), chain)
    {
        if (strcmp(e->id, id) == 0)
            return e;
    }
    return NULL;
}

static void entry_unchain(struct spool *s, struct spool_entry *e)
{
    if (!e->replaced)
        SLIST_REMOVE(bucket_of(s, e->id), e, spool_entry, chain);
}

static struct spool_entry *entry_add(struct spool *s, const char *id, uint64_t bytes,
                                     int64_t born_s)
{
    struct spool_entry *e = calloc(1, sizeof *e), *old = entry_find(s, id);

    if (!e)
        return NULL;
    if (old) {
        entry_unchain(s, old);
        old->replaced = true;
    }
    (void)snprintf(e->id, sizeof e->id, "%s", id);
    e->bytes = bytes;
    e->born_s = born_s;
    SLIST_INSERT_HEAD(bucket_of(s, id), e, chain);
    TAILQ_INSERT_TAIL(&s->waiting, e, link);
    s->files_n++;
    s->bytes += bytes;
    return e;
}

static void entry_remove(struct spool *s, struct spool_entry *e)
{
    entry_unchain(s, e);
    TAILQ_REMOVE(&s->waiting, e, link);
    s->files_n--;
    s->bytes -= e->bytes;
}

void spool_drop(struct spool *s, struct spool_entry *e)
{
    entry_remove(s, e);
    if (!e->replaced && e->on_disk)
        op_plain(s, OP_DROP, e->id);
    free(e);
}

static void rejected_forget(struct spool *s, struct spool_entry *e)
{
    TAILQ_REMOVE(&s->rejected, e, link);
    s->rejected_n--;
    s->rejected_bytes -= e->bytes;
    op_plain(s, OP_FORGET, e->id);
    free(e);
}

/* The refused ones are the operator's; when there are too many of them the oldest goes. */
void spool_reject(struct spool *s, struct spool_entry *e)
{
    if (e->replaced || !e->on_disk) {
        spool_drop(s, e);
        return;
    }
    entry_remove(s, e);
    op_plain(s, OP_REJECT, e->id);
    TAILQ_INSERT_TAIL(&s->rejected, e, link);
    s->rejected_n++;
    s->rejected_bytes += e->bytes;
    while (s->rejected_bytes > s->bytes_max / REJECTED_SHARE)
        rejected_forget(s, TAILQ_FIRST(&s->rejected));
}

void spool_postpone(struct spool *s, struct spool_entry *e)
{
    TAILQ_REMOVE(&s->waiting, e, link);
    TAILQ_INSERT_TAIL(&s->waiting, e, link);
}

struct spool_entry *spool_next(const struct spool *s)
{
    struct spool_entry *e;

    TAILQ_FOREACH(e, &s->waiting, link)
    {
        if (e->on_disk && !e->user && !e->replaced)
            return e;
    }
    return NULL;
}

size_t spool_expire(struct spool *s, int64_t now_s)
{
    int64_t oldest = now_s - (int64_t)s->age_max_s;
    struct spool_entry *e, *next;
    size_t lost = 0;

    for (e = TAILQ_FIRST(&s->waiting); e; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->born_s >= oldest || e->user || !e->on_disk)
            continue;
        lost += !e->replaced;
        spool_drop(s, e);
    }
    for (e = TAILQ_FIRST(&s->rejected); e; e = next) {
        next = TAILQ_NEXT(e, link);
        if (e->born_s < oldest)
            rejected_forget(s, e);
    }
    return lost;
}

void spool_counts(const struct spool *s, struct spool_counts *ret)
{
    *ret = (struct spool_counts){
        .files = s->files_n, .bytes = s->bytes + s->rejected_bytes, .rejected = s->rejected_n};
}

/* ---- putting and reading ---- */

static bool put_frame(const struct spool *s, struct op *o)
{
    char now[CLOCK_ISO_MAX];
    struct jw w;

    o->head = BUF_INIT(HEAD_MAX);
    o->tail = BUF_INIT(TAIL_MAX);
    (void)buf_printf(&o->head, "{\"execution_id\":\"%s\",\"result\":", o->id);
    w = JW(&o->tail);
    w.comma = true; /* it goes on behind the body */
    jw_kv_string(&w, "persisted_at", clock_iso(now));
    jw_kv_string(&w, "control_plane_url", s->told);
    (void)buf_puts(&o->tail, "}\n");
    return !o->head.failed && !o->tail.failed;
}

struct spool_entry *spool_put(struct spool *s, const char *id, struct bytes body,
                              spool_put_fn *done, void *user)
{
    uint64_t used = s->bytes + s->rejected_bytes, bytes;
    struct op *o = id_is_safe(id) ? op_new(OP_PUT, id) : NULL;

    if (!o)
        return NULL;
    o->body = body;
    o->done.put = done;
    o->user = user;
    o->number = ++s->last;
    if (put_frame(s, o)) {
        bytes = o->head.n + body.n + o->tail.n;
        if (used <= s->bytes_max && bytes <= s->bytes_max - used)
            o->entry = entry_add(s, id, bytes, (int64_t)time(NULL));
    }
    if (!o->entry) {
        op_free(o);
        return NULL;
    }
    op_submit(s, o);
    return o->entry;
}

int spool_read(struct spool *s, const struct spool_entry *e, spool_read_fn *done, void *user)
{
    struct op *o = op_new(OP_READ, e->id);

    if (!o)
        return -1;
    o->file_max = (size_t)e->bytes;
    o->done.read = done;
    o->user = user;
    op_submit(s, o);
    return 0;
}

/* ---- opening ---- */

static int make_parents(const char *path, struct err *e)
{
    char part[4096];

    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(e, -errno, "make '%.300s'", part);
    }
    return 0;
}

int spool_prepare(const char *path, uid_t uid, gid_t gid, struct err *e)
{
    cleanup_close int dir = -1;
    struct stat st;

    if (path[0] != '/')
        return err_set(e, ERR_CALLER, "RESULTS_PATH: '%.300s' is not an absolute path", path);
    if (make_parents(path, e) < 0)
        return -1;
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "RESULTS_PATH: make '%.300s'", path);
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, -errno, "RESULTS_PATH: '%.300s'", path);
    if ((st.st_uid != uid && st.st_uid != geteuid()) || (st.st_mode & 022) != 0)
        return err_set(e, ERR_CALLER,
                       "RESULTS_PATH: '%.300s' must belong to user %u and be writable by nobody "
                       "else: what lies there is sent as results",
                       path, (unsigned)uid);
    if (st.st_uid != uid && fchown(dir, uid, gid) < 0)
        return err_sys(e, -errno, "RESULTS_PATH: give '%.300s' away", path);
    if (fchmod(dir, 0700) < 0)
        return err_sys(e, -errno, "RESULTS_PATH: close '%.300s'", path);
    return 0;
}

/* An id and ".json". */
static bool name_to_id(const char *name, char out[SPOOL_ID_MAX + 1])
{
    size_t n = strlen(name);

    if (n < 6 || n - 5 > SPOOL_ID_MAX || strcmp(name + n - 5, ".json") != 0)
        return false;
    (void)snprintf(out, SPOOL_ID_MAX + 1, "%.*s", (int)(n - 5), name);
    return id_is_safe(out);
}

struct found {
    char id[SPOOL_ID_MAX + 1];
    uint64_t bytes;
    struct timespec at;
};

struct findings {
    struct found *v; /* owned */
    size_t n, cap;
};

static int by_age(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    if (a->at.tv_sec != b->at.tv_sec)
        return a->at.tv_sec < b->at.tv_sec ? -1 : 1;
    return a->at.tv_nsec < b->at.tv_nsec ? -1 : a->at.tv_nsec > b->at.tv_nsec;
}

static int findings_add(struct findings *f, const char *id, const struct stat *st)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        struct found *v = reallocarray(f->v, cap, sizeof *v);

        if (!v)
            return -1;
        f->v = v;
        f->cap = cap;
    }
    f->v[f->n].bytes = (uint64_t)st->st_size;
    f->v[f->n].at = st->st_mtim;
    memcpy(f->v[f->n++].id, id, SPOOL_ID_MAX + 1);
    return 0;
}

/* Regular files of ours, by age. Half-written ones are removed: nobody was told of them. */
static int list_files(int dir, struct findings *f)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *at;
    char id[SPOOL_ID_MAX + 1] = "";
    struct stat st;
    int r = 0;

    if (!d) {
        fd_close_all(&again, 1);
        return -1;
    }
    for (at = readdir(d); at && r == 0; at = readdir(d)) {
        if (strncmp(at->d_name, ".new-", 5) == 0)
            (void)unlinkat(dir, at->d_name, 0);
        else if (name_to_id(at->d_name, id) &&
                 fstatat(dir, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            r = findings_add(f, id, &st);
    }
    (void)closedir(d);
    if (f->n > 1)
        qsort(f->v, f->n, sizeof *f->v, by_age);
    return r;
}

static int load_waiting(struct spool *s)
{
    struct findings f = {0};
    int r = list_files(s->dir, &f);

    for (size_t i = 0; i < f.n && r == 0; i++) {
        struct spool_entry *e = entry_add(s, f.v[i].id, f.v[i].bytes, f.v[i].at.tv_sec);

        if (e)
            e->on_disk = true;
        else
            r = -1;
    }
    free(f.v);
    return r;
}

static int load_rejected(struct spool *s)
{
    struct findings f = {0};
    int r = list_files(s->rejected_dir, &f);

    for (size_t i = 0; i < f.n && r == 0; i++) {
        struct spool_entry *e = calloc(1, sizeof *e);

        if (!e) {
            r = -1;
            break;
        }
        memcpy(e->id, f.v[i].id, sizeof e->id);
        e->bytes = f.v[i].bytes;
        e->born_s = f.v[i].at.tv_sec;
        TAILQ_INSERT_TAIL(&s->rejected, e, link);
        s->rejected_n++;
        s->rejected_bytes += e->bytes;
    }
    free(f.v);
    return r;
}

static int open_directories(struct spool *s, const char *path, struct err *e)
{
    s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->dir < 0)
        return err_sys(e, -errno, "RESULTS_PATH: '%.300s'", path);
    if (flock(s->dir, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK
                   ? err_set(e, ERR_CALLER, "RESULTS_PATH: '%.300s' is in use by another daemon",
                             path)
                   : err_sys(e, -errno, "RESULTS_PATH: lock '%.300s'", path);
    if (mkdirat(s->dir, "rejected", 0700) < 0 && errno != EEXIST)
        return err_sys(e, -errno, "RESULTS_PATH: make '%.300s/rejected'", path);
    s->rejected_dir = openat(s->dir, "rejected", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->rejected_dir < 0)
        return err_sys(e, -errno, "RESULTS_PATH: '%.300s/rejected'", path);
    return 0;
}

static struct spool *spool_new(const struct spool_conf *conf, struct work_pool *pool)
{
    struct spool *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->pool = pool;
    s->dir = s->rejected_dir = -1;
    s->bytes_max = conf->bytes_max;
    s->age_max_s = conf->age_max_s;
    s->told = strdup(conf->told);
    STAILQ_INIT(&s->queue);
    STAILQ_INIT(&s->batch);
    TAILQ_INIT(&s->waiting);
    TAILQ_INIT(&s->rejected);
    return s;
}

int spool_open(const struct spool_conf *conf, struct work_pool *pool, struct spool **ret,
               struct err *e)
{
    struct spool *s = spool_new(conf, pool);

    if (!s || !s->told) {
        spool_close(s);
        return err_set(e, ERR_HOST, "no memory for the spool");
    }
    if (open_directories(s, conf->path, e) < 0) {
        spool_close(s);
        return -1;
    }
    if (load_waiting(s) < 0 || load_rejected(s) < 0) {
        spool_close(s);
        return err_set(e, ERR_HOST, "RESULTS_PATH: '%.300s' cannot be listed", conf->path);
    }
    *ret = s;
    return 0;
}

static void list_free(struct spool_list *l)
{
    struct spool_entry *e;

    while ((e = TAILQ_FIRST(l))) {
        TAILQ_REMOVE(l, e, link);
        free(e);
    }
}

void spool_close(struct spool *s)
{
    struct op *o;

    if (!s)
        return;
    STAILQ_CONCAT(&s->queue, &s->batch);
    while ((o = STAILQ_FIRST(&s->queue))) {
        STAILQ_REMOVE_HEAD(&s->queue, link);
        op_free(o);
    }
    list_free(&s->waiting);
    list_free(&s->rejected);
    closep(&s->dir);
    closep(&s->rejected_dir);
    free(s->told);
    free(s);
}
