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

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/jw.h"
#include "net/spool_inner.h"

enum {
    HEAD_MAX = 512,
    TAIL_MAX = 8192,
    US_PER_S = 1000000,
    REJECTED_SHARE = 4, /* refused files may fill this part of the whole: one in four */
};

bool spool_id_is_safe(const char *id)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(id);

    return n >= 1 && n <= SPOOL_ID_MAX && id[0] != '.' && strspn(id, allowed) == n;
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
    s->work = (struct work){.run = spool_batch_run, .done = batch_done, .lane = WORK_SHORT};
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
    return &s->buckets[h % SPOOL_BUCKETS];
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

struct spool_entry *spool_entry_add(struct spool *s, const char *id, uint64_t bytes, int64_t born_s)
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

int64_t spool_now_s(void)
{
    return (int64_t)(clock_us() / US_PER_S);
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

static bool put_frame(const struct spool *s, struct op *o, const char *members)
{
    char now[CLOCK_ISO_MAX];
    struct jw w;

    o->head = BUF_INIT(HEAD_MAX + strlen(members));
    o->tail = BUF_INIT(TAIL_MAX);
    (void)buf_printf(&o->head, "{\"execution_id\":\"%s\",%s\"result\":", o->id, members);
    w = JW(&o->tail);
    w.comma = true; /* it goes on behind the body */
    jw_kv_string(&w, "persisted_at", clock_iso(now));
    if (s->told[0])
        jw_kv_string(&w, "control_plane_url", s->told);
    (void)buf_puts(&o->tail, "}\n");
    return !o->head.failed && !o->tail.failed;
}

struct spool_entry *spool_put(struct spool *s, const struct spool_order *order)
{
    uint64_t used = s->bytes + s->rejected_bytes, bytes;
    struct op *o = spool_id_is_safe(order->id) ? op_new(OP_PUT, order->id) : NULL;

    if (!o)
        return NULL;
    o->body = order->body;
    o->hasty = order->hasty;
    o->done.put = order->done;
    o->user = order->user;
    o->number = ++s->last;
    if (put_frame(s, o, order->members)) {
        bytes = o->head.n + o->body.n + o->tail.n;
        if (used <= s->bytes_max && bytes <= s->bytes_max - used)
            o->entry = spool_entry_add(s, o->id, bytes, spool_now_s());
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
    if (spool_find(s, conf, e) < 0) {
        spool_close(s);
        return -1;
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
