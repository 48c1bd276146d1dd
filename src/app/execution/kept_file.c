/* SPDX-License-Identifier: MIT */
#include "app/execution/kept_file.h"

#include <string.h>

#include "app/daemon/app.h"

enum { FIELDS_MAX = 4096, ARTIFACT_MAX = 256 };

static const char magic[16] = "sbx-execution 1";

struct head {
    char magic[16];  /* with the version */
    uint64_t n, sum; /* of what follows */
};

/* FNV-1a: tells a file that was not finished, not one that somebody forged. */
static uint64_t sum_of(const char *p, size_t n)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 1099511628211u;
    return h;
}

/* ---- writing ---- */

static void put_int(struct buf *out, int64_t v)
{
    (void)buf_put(out, &v, sizeof v);
}

static void put_bytes(struct buf *out, const char *p, size_t n)
{
    put_int(out, (int64_t)n);
    (void)buf_put(out, n > 0 ? p : "", n);
}

static void put_text(struct buf *out, const char *s)
{
    put_bytes(out, s ? s : "", s ? strlen(s) : 0);
}

static void put_run(struct buf *out, const struct run_result *r)
{
    const struct buf *texts[] = {&r->out, &r->err, &r->result, &r->error, &r->progress};
    const int64_t numbers[] = {r->reason,
                               r->exit_code,
                               r->signal,
                               r->out_truncated,
                               r->err_truncated,
                               r->usage.cpu_us,
                               r->usage.memory_peak,
                               r->usage.io_read,
                               r->usage.io_write,
                               (int64_t)r->at.asked,
                               (int64_t)r->at.started,
                               (int64_t)r->at.running,
                               (int64_t)r->at.ended,
                               (int64_t)r->at.collected,
                               r->files_left_out,
                               r->template,
                               r->warm};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        put_bytes(out, texts[i]->p, texts[i]->n);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        put_int(out, numbers[i]);
}

static void put_artifacts(struct buf *out, const struct artifacts *all)
{
    put_int(out, all->left_out);
    put_int(out, (int64_t)all->n);
    for (size_t i = 0; i < all->n; i++) {
        const struct artifact *a = all->v[i];

        put_text(out, a->path);
        put_text(out, a->stored.sha256);
        put_int(out, a->fate);
        put_int(out, a->mtime_s);
        put_int(out, a->mtime_ns);
        put_int(out, (int64_t)a->stored.number);
        put_int(out, (int64_t)a->stored.size);
    }
}

void kept_file_write(const struct execution *x, int64_t finished_us, struct buf *out)
{
    const struct run_result *r = &x->task.result;
    size_t room = FIELDS_MAX + r->out.n + r->err.n + r->result.n + r->error.n + r->progress.n;
    struct head h = {0};

    for (size_t i = 0; i < x->artifacts.n; i++)
        room += strlen(x->artifacts.v[i]->path) + ARTIFACT_MAX;
    *out = BUF_INIT(room);
    (void)buf_reserve(out, room < FIELDS_MAX * 2 ? room : FIELDS_MAX * 2);
    (void)buf_put(out, &h, sizeof h);
    put_int(out, finished_us);
    put_text(out, x->id);
    put_text(out, x->session_id);
    put_text(out, x->request_id);
    put_text(out, x->created_at);
    put_text(out, x->app->languages.names[x->lang]);
    put_bytes(out, (const char *)x->digest, sizeof x->digest);
    put_text(out, x->ran_in.jail);
    put_int(out, x->ran_in.traits);
    put_run(out, r);
    put_int(out, x->verdict.status);
    put_text(out, x->verdict.limit);
    put_text(out, x->verdict.hint);
    put_int(out, x->verdict.limit_value);
    put_int(out, x->verdict.observed);
    put_int(out, x->verdict.denied);
    put_artifacts(out, &x->artifacts);
    if (out->failed)
        return;
    memcpy(h.magic, magic, sizeof magic);
    h.n = out->n - sizeof h;
    h.sum = sum_of(out->p + sizeof h, h.n);
    memcpy(out->p, &h, sizeof h);
}

/* ---- reading ---- */

struct reader {
    const char *p;
    size_t n;
    bool bad;
};

static int64_t get_int(struct reader *r)
{
    int64_t v = 0;

    if (r->n < sizeof v) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->p, sizeof v);
    r->p += sizeof v;
    r->n -= sizeof v;
    return v;
}

/* A number of an enum with so many values. */
static int get_choice(struct reader *r, int64_t count)
{
    int64_t v = get_int(r);

    r->bad |= v < 0 || v >= count;
    return r->bad ? 0 : (int)v;
}

static struct bytes get_bytes(struct reader *r)
{
    int64_t n = get_int(r);
    struct bytes b = {r->p, (size_t)n};

    if (r->bad || n < 0 || (uint64_t)n > r->n) {
        r->bad = true;
        return (struct bytes){"", 0};
    }
    r->p += n;
    r->n -= (size_t)n;
    return b;
}

static void get_text(struct reader *r, char *out, size_t room)
{
    struct bytes b = get_bytes(r);

    r->bad |= b.n >= room || memchr(b.p, '\0', b.n);
    if (r->bad)
        return;
    memcpy(out, b.p, b.n);
    out[b.n] = '\0';
}

/* NULL: it was. */
static char *get_words(struct reader *r)
{
    struct bytes b = get_bytes(r);
    char *words = b.n > 0 ? strndup(b.p, b.n) : NULL;

    r->bad |= b.n > 0 && !words;
    return words;
}

static void get_buf(struct reader *r, struct buf *out)
{
    struct bytes b = get_bytes(r);

    *out = BUF_INIT(b.n);
    if (b.n > 0 && (buf_reserve(out, b.n) < 0 || buf_put(out, b.p, b.n) < 0))
        r->bad = true;
}

static void get_run(struct reader *r, struct run_result *out)
{
    struct buf *texts[] = {&out->out, &out->err, &out->result, &out->error, &out->progress};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        get_buf(r, texts[i]);
    out->reason = (enum end_reason)get_choice(r, END_REASON_COUNT);
    out->exit_code = (int)get_int(r);
    out->signal = get_choice(r, 128);
    out->out_truncated = get_choice(r, 2);
    out->err_truncated = get_choice(r, 2);
    out->usage = (struct usage){.cpu_us = get_int(r)};
    out->usage.memory_peak = get_int(r);
    out->usage.io_read = get_int(r);
    out->usage.io_write = get_int(r);
    out->at.asked = (uint64_t)get_int(r);
    out->at.started = (uint64_t)get_int(r);
    out->at.running = (uint64_t)get_int(r);
    out->at.ended = (uint64_t)get_int(r);
    out->at.collected = (uint64_t)get_int(r);
    out->files_left_out = get_int(r);
    out->template = (enum plan_template)get_choice(r, TEMPLATE_COUNT);
    out->warm = get_choice(r, 2);
}

/* One whose copy is gone is listed, and cannot be had. */
static void get_artifact(struct reader *r, struct store *s, struct artifacts *all)
{
    struct bytes path = get_bytes(r);
    struct artifact one = {0}, *a;

    get_text(r, one.stored.sha256, sizeof one.stored.sha256);
    one.fate = (enum artifact_fate)get_choice(r, ARTIFACT_FATE_COUNT);
    one.mtime_s = get_int(r);
    one.mtime_ns = get_int(r);
    one.stored.number = (uint64_t)get_int(r);
    one.stored.size = (uint64_t)get_int(r);
    a = r->bad ? NULL : artifacts_add(all, path.p, path.n);
    if (!a) {
        r->bad = true;
        return;
    }
    one.path = a->path;
    if (one.stored.number != 0 && !store_has(s, one.stored.number))
        one.stored.number = 0;
    *a = one;
}

static void get_all(struct reader *r, struct execution *x, int64_t *ret_finished_us)
{
    char language[64] = "";
    struct bytes digest;
    int64_t left_out, n;

    *ret_finished_us = get_int(r);
    get_text(r, x->id, sizeof x->id);
    get_text(r, x->session_id, sizeof x->session_id);
    get_text(r, x->request_id, sizeof x->request_id);
    get_text(r, x->created_at, sizeof x->created_at);
    get_text(r, language, sizeof language);
    x->lang = x->app->languages.ops->find(language);
    digest = get_bytes(r);
    r->bad |= x->lang < 0 || digest.n != sizeof x->digest;
    if (!r->bad)
        memcpy(x->digest, digest.p, sizeof x->digest);
    get_text(r, x->ran_in.jail, sizeof x->ran_in.jail);
    x->ran_in.traits = (unsigned)get_int(r);
    get_run(r, &x->task.result);
    x->verdict.status = (enum exec_status)get_choice(r, STATUS_COUNT);
    x->verdict.limit = x->restored.limit = get_words(r);
    x->verdict.hint = x->restored.hint = get_words(r);
    x->verdict.limit_value = get_int(r);
    x->verdict.observed = get_int(r);
    x->verdict.denied = (unsigned)get_choice(r, BIT(DENIAL_COUNT));
    left_out = get_int(r);
    n = get_int(r);
    x->artifacts.max = n > 0 ? (size_t)n : 0;
    for (int64_t i = 0; i < n && !r->bad; i++)
        get_artifact(r, x->app->store, &x->artifacts);
    x->artifacts.left_out = left_out;
}

size_t kept_file_next(const char *p, size_t n)
{
    struct head h;

    if (n < sizeof h)
        return 0;
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic + 1, magic + 1, 12) != 0 ||
        h.n > n - sizeof h) /* any version, erased or not */
        return 0;
    return sizeof h + h.n;
}

struct execution *kept_file_read(struct app *a, const char *p, size_t n, int64_t *ret_finished_us)
{
    struct reader r = {.p = p + sizeof(struct head)};
    struct execution *x;
    struct head h;

    if (n < sizeof h)
        return NULL;
    memcpy(&h, p, sizeof h);
    r.n = n - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.n != r.n || h.sum != sum_of(r.p, r.n))
        return NULL;
    x = execution_restored(a);
    if (!x)
        return NULL;
    get_all(&r, x, ret_finished_us);
    if (r.bad || r.n > 0 || !x->id[0]) {
        execution_free(x);
        return NULL;
    }
    return x;
}
