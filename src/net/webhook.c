/* SPDX-License-Identifier: MIT */
/*
 * Theory of operation
 *
 *   HELD ─send─▶ SAVING ─▶ DUE ─▶ READING ─▶ SIGNING ─▶ POSTING ──2xx──▶ gone from the disk
 *                           ▲                              │  └─410, not allowed any more: given up
 *                           └─────── WAITING ◀─────────────┘
 *
 * Only the file is kept between attempts; a small body stays in memory for the first one, and what
 * could not be saved until the end. DUE ones are begun in the order they came as long as there are
 * connections, memory, and no more than a part of the connections is used by one host: one that
 * does not answer must not hold up the others. The body is read and signed on a worker.
 *
 * While a request is under way its webhook may promise: a file says what is to be sent if this
 * process is killed before there is a result. The result takes its place.
 *
 * When an attempt ends without an answer, whether the other side has the message is unknown: it is
 * sent again, with the same Webhook-Id.
 */
#include "net/webhook.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/jw.h"
#include "base/random.h"
#include "base/sha256.h"
#include "net/callback.h"
#include "net/http_client.h"
#include "net/spool.h"

enum {
    ID_RANDOM = 24,
    HELD_MAX = 64 << 20,   /* bytes of bodies in memory */
    FIRST_MAX = 256 << 10, /* of one that stays there for its first attempt */
    HOST_SHARE = 4,        /* one host has a quarter of the connections, at least one */
    LINE_MAX = 128,        /* a header line of ours */
    HEAD_MAX = 64 * 1024,  /* of a file, in front of the body */
    MEMBERS_MAX = 6 * (HTTP_URL_MAX + WEBHOOK_SECRET_MAX + SPOOL_ID_MAX) + 128,
    GONE = 410,
    MS_PER_S = 1000,
    US_PER_MS = 1000,
};

enum hook_state {
    HOOK_HELD,    /* there is no result yet */
    HOOK_SAVING,  /* on its way to the disk */
    HOOK_DUE,     /* wants to be sent */
    HOOK_READING, /* from here on it has a connection */
    HOOK_SIGNING,
    HOOK_POSTING,
    HOOK_WAITING, /* for the next attempt */
};

/* What is sent if there never is a result. */
struct promise {
    struct webhook *of; /* NULL: it is not wanted any more */
    struct webhooks *all;
    struct buf body; /* owned, until it is saved */
    struct spool_entry *entry;
    bool saved;
};

struct webhook {
    struct work work;     /* first: signing */
    struct webhooks *all; /* borrowed */
    enum hook_state state;
    char id[WEBHOOK_ID_MAX];
    char execution_id[SPOOL_ID_MAX + 1];
    struct http_url to; /* url "": not read yet */
    char secret[WEBHOOK_SECRET_MAX + 1];
    enum webhook_reach reach;
    struct promise *promise;   /* owned; NULL: none */
    bool promised;             /* there was one: its file may have the name */
    struct spool_entry *entry; /* the spool's; NULL: in memory only */
    struct buf text;           /* owned: the body, or the file around it */
    struct bytes body;         /* view into text, or of the caller's text */
    int64_t born_s;
    uint32_t attempts;
    struct event again;
    struct http_post *post; /* under way */
    char lines[3][LINE_MAX];
    int unsigned_;   /* -1: it could not be signed */
    report_fn *kept; /* NULL: told */
    void *user;
    TAILQ_ENTRY(webhook) link;
};

struct webhooks {
    struct event_base *base;   /* borrowed */
    struct work_pool *pool;    /* borrowed */
    const struct log *log;     /* borrowed */
    struct webhooks_conf conf; /* its strings are not kept */
    char secret[WEBHOOK_SECRET_MAX + 1];
    struct webhook_rules rules;
    struct http_client *client; /* owned */
    struct spool *spool;        /* owned */
    TAILQ_HEAD(webhook_list, webhook) hooks;
    size_t hooks_n, busy_n;
    uint64_t held; /* bytes of bodies in memory */
    struct webhook_counts counts;
    bool ending; /* no attempt but the first of each */
    report_fn *quiet;
    void *quiet_user;
};

/* ---- the signature ---- */

int webhook_sign(const char *secret, const char *id, int64_t timestamp, struct bytes body,
                 char out[WEBHOOK_SIGNATURE_MAX])
{
    static const char prefix[] = "whsec_";
    struct buf key = BUF_INIT(WEBHOOK_SECRET_MAX), text = BUF_INIT(WEBHOOK_SIGNATURE_MAX);
    unsigned char mac[SHA256_BYTES];
    char head[LINE_MAX];
    int n = snprintf(head, sizeof head, "%s.%lld.", id, (long long)timestamp), r;
    bool coded = strncmp(secret, prefix, sizeof prefix - 1) == 0;
    const struct sha256_piece pieces[] = {
        {head,   (size_t)n},
        {body.p, body.n   }
    };

    r = coded ? base64_decode(secret + sizeof prefix - 1, strlen(secret) - sizeof prefix + 1, &key)
              : buf_puts(&key, secret);
    if (r == 0 && key.n > 0)
        r = sha256_mac(key.p, key.n, pieces, ARRAY_LEN(pieces), mac);
    else
        r = -1;
    if (r == 0 && (r = base64_encode(mac, sizeof mac, &text)) == 0)
        (void)snprintf(out, WEBHOOK_SIGNATURE_MAX, "v1,%.*s", (int)text.n, text.p);
    if (key.p)
        explicit_bzero(key.p, key.n);
    buf_done(&key);
    buf_done(&text);
    return r;
}

/* ---- one message ---- */

static const char *secret_of(const struct webhook *h)
{
    return h->secret[0] ? h->secret : h->all->secret;
}

static void log_hook(const struct webhook *h, enum log_level level, const char *event,
                     const struct http_answer *a)
{
    log_event(h->all->log, level, event, LOG_STR("webhook_id", h->id),
              LOG_STR("execution_id", h->execution_id), LOG_STR("host", h->to.host),
              LOG_INT("attempt", h->attempts), LOG_INT("status_code", a->status),
              LOG_STR("error", a->error));
}

static bool is_busy(const struct webhook *h)
{
    return h->state == HOOK_READING || h->state == HOOK_SIGNING || h->state == HOOK_POSTING;
}

static void hook_move(struct webhook *h, enum hook_state to)
{
    h->all->busy_n -= is_busy(h);
    h->state = to;
    h->all->busy_n += is_busy(h);
}

static void text_drop(struct webhook *h)
{
    h->all->held -= h->text.n;
    buf_done(&h->text);
    h->body = (struct bytes){0};
}

/* Its file goes, unless another one has its name by now. */
static void promise_drop(struct webhook *h)
{
    struct promise *p = take_ptr(&h->promise);

    if (!p)
        return;
    p->of = NULL;
    if (!p->saved)
        return; /* on_promised() follows */
    spool_drop(p->all->spool, p->entry);
    free(p);
}

static void hook_free(struct webhook *h)
{
    struct webhooks *w = h->all;

    promise_drop(h);
    hook_move(h, HOOK_WAITING);
    TAILQ_REMOVE(&w->hooks, h, link);
    w->hooks_n--;
    http_post_cancel(h->post);
    (void)event_del(&h->again);
    if (h->entry)
        h->entry->user = NULL;
    text_drop(h);
    explicit_bzero(h->secret, sizeof h->secret);
    free(h);
}

/* Its file goes, too. */
static void hook_end(struct webhook *h)
{
    if (h->entry)
        spool_drop(h->all->spool, take_ptr(&h->entry));
    hook_free(h);
}

static void hook_lose(struct webhook *h, const char *why)
{
    h->all->counts.lost++;
    log_event(h->all->log, LOG_ERROR, "webhook_lost", LOG_STR("webhook_id", h->id),
              LOG_STR("execution_id", h->execution_id), LOG_STR("error", why));
    hook_end(h);
}

static void tell_kept(struct webhook *h)
{
    report_fn *kept = h->kept;

    h->kept = NULL;
    if (kept)
        kept(h->user);
}

static void on_again(evutil_socket_t fd, short what, void *user);

static struct webhook *hook_new(struct webhooks *w, const char *id)
{
    struct webhook *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->all = w;
    h->state = HOOK_WAITING;
    h->text = BUF_INIT(0);
    (void)snprintf(h->id, sizeof h->id, "%s", id);
    (void)evtimer_assign(&h->again, w->base, on_again, h);
    TAILQ_INSERT_TAIL(&w->hooks, h, link);
    w->hooks_n++;
    return h;
}

/* ---- the end ---- */

static void quiet_check(struct webhooks *w)
{
    const struct webhook *h;
    report_fn *quiet = w->quiet;

    if (!quiet)
        return;
    TAILQ_FOREACH(h, &w->hooks, link)
    if (h->state != HOOK_WAITING && h->state != HOOK_HELD)
        return;
    w->quiet = NULL;
    quiet(w->quiet_user);
}

/* ---- attempts ---- */

static void dispatch(struct webhooks *w);

static void arm(struct webhook *h, uint64_t ms)
{
    struct timeval tv = {.tv_sec = (time_t)(ms / MS_PER_S),
                         .tv_usec = (suseconds_t)(ms % MS_PER_S * US_PER_MS)};

    if (!h->all->ending)
        (void)event_add(&h->again, &tv);
}

static void on_delivered(struct webhook *h, const struct http_answer *a)
{
    h->all->counts.delivered++;
    log_hook(h, LOG_INFO, "webhook_delivered", a);
    hook_end(h);
}

static void give_up(struct webhook *h, const struct http_answer *a)
{
    h->all->counts.given_up++;
    log_hook(h, LOG_ERROR, "webhook_given_up", a);
    hook_end(h);
}

static void on_failed(struct webhook *h, const struct http_answer *a)
{
    struct webhooks *w = h->all;
    uint64_t age = (uint64_t)(spool_now_s() - h->born_s), ms;
    bool unknown = a->status == 0 && a->sent;
    uint16_t chance;

    random_bytes(&chance, sizeof chance);
    ms = callback_delay_ms(h->attempts, w->conf.base_ms, w->conf.cap_ms, a->retry_after_s, chance);
    w->counts.failed++;
    w->counts.unknown += unknown;
    log_hook(h, LOG_WARN, unknown ? "webhook_unknown" : "webhook_failed", a);
    if (age >= w->conf.age_max_s) {
        give_up(h, &(struct http_answer){.status = a->status, .error = "it is too old"});
        return;
    }
    if (h->entry)
        text_drop(h);
    hook_move(h, HOOK_WAITING);
    arm(h, ms);
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct webhook *h = user;
    struct webhooks *w = h->all;

    h->post = NULL;
    if (a->status >= 200 && a->status < 300)
        on_delivered(h, a);
    else if (a->status == GONE)
        give_up(h, a);
    else
        on_failed(h, a);
    dispatch(w);
    quiet_check(w);
}

static bool may_connect(void *user, const struct sockaddr *to)
{
    const struct webhook *h = user;

    return webhook_rules_address(&h->all->rules, h->reach, to);
}

static void post(struct webhook *h)
{
    struct http_ask ask = {
        .url = h->to.url,
        .idempotency_key = h->id,
        .lines = {h->lines[0], h->lines[1], h->lines[2]},
        .body = h->body,
        .done = on_answer,
        .user = h
    };
    struct err e;

    hook_move(h, HOOK_POSTING);
    if (http_client_post(h->all->client, &ask, &h->post, &e) < 0)
        on_answer(h, &(struct http_answer){.error = e.text});
}

static void sign_run(struct work *work)
{
    struct webhook *h = (struct webhook *)work;
    char signature[WEBHOOK_SIGNATURE_MAX] = "";
    int64_t now = (int64_t)time(NULL);

    h->unsigned_ = webhook_sign(secret_of(h), h->id, now, h->body, signature);
    (void)snprintf(h->lines[0], LINE_MAX, "Webhook-Id: %s", h->id);
    (void)snprintf(h->lines[1], LINE_MAX, "Webhook-Timestamp: %lld", (long long)now);
    (void)snprintf(h->lines[2], LINE_MAX, "Webhook-Signature: %s", signature);
}

static void sign_done(struct work *work)
{
    struct webhook *h = (struct webhook *)work;

    if (h->unsigned_ == 0)
        post(h);
    else
        on_answer(h, &(struct http_answer){.error = "it could not be signed"});
}

static void sign(struct webhook *h)
{
    hook_move(h, HOOK_SIGNING);
    h->attempts++;
    h->work = (struct work){.run = sign_run, .done = sign_done, .lane = work_lane_of(h->body.n)};
    work_submit(h->all->pool, &h->work);
}

/* ---- from the disk ---- */

static bool take_text(struct json_value object, const char *name, char *out, size_t room)
{
    struct json_value v;
    struct buf text = BUF_INIT(room);
    bool good = json_get(object, name, &v) && v.type == JSON_STRING &&
                json_decode_string(v, 0, &text) == 0 && text.n < room;

    if (good && text.n > 0)
        memcpy(out, text.p, text.n);
    if (good)
        out[text.n] = '\0';
    buf_done(&text);
    return good;
}

/* What is in front of the body, made whole: {"webhook":{...},"result":null} */
static bool head_take(struct webhook *h, const struct buf *file, struct bytes body)
{
    size_t n = (size_t)(body.p - file->p);
    struct buf head = BUF_INIT(n + 8);
    struct json_value v, hook;
    char url[HTTP_URL_MAX];
    struct err ignored;
    bool good = n < HEAD_MAX && buf_put(&head, file->p, n) == 0 && buf_puts(&head, "null}") == 0 &&
                json_parse(head.p, head.n, 0, &v, &ignored) == 0 && json_get(v, "webhook", &hook) &&
                hook.type == JSON_OBJECT && take_text(hook, "url", url, sizeof url) &&
                take_text(hook, "secret", h->secret, sizeof h->secret) &&
                take_text(hook, "execution_id", h->execution_id, sizeof h->execution_id) &&
                http_url_parse(url, &h->to, &ignored) == 0;

    buf_done(&head);
    return good;
}

static void on_read(void *user, struct buf *file, struct bytes body)
{
    struct webhook *h = user;
    struct webhooks *w = h->all;
    struct err e;

    if (!body.p || !head_take(h, file, body)) {
        hook_lose(h, "its file is gone, or is not what was written");
    } else if (webhooks_check(w, &(struct webhook_target){h->to.url, secret_of(h)}, &e) < 0) {
        give_up(h, &(struct http_answer){.error = e.text}); /* the options have changed */
    } else {
        h->reach = webhook_rules_host(&w->rules, h->to.host, h->to.port);
        h->text = *file;
        *file = BUF_INIT(0);
        h->body = body;
        w->held += h->text.n;
        sign(h);
        return;
    }
    dispatch(w);
    quiet_check(w);
}

static void begin(struct webhook *h)
{
    if (h->body.p) {
        sign(h);
        return;
    }
    hook_move(h, HOOK_READING);
    if (spool_read(h->all->spool, h->entry, on_read, h) == 0)
        return;
    hook_move(h, HOOK_WAITING);
    arm(h, h->all->conf.base_ms);
}

/* ---- which one is next ---- */

static bool has_room(const struct webhooks *w, const struct webhook *h)
{
    size_t most = w->conf.connections_max, share = most / HOST_SHARE, n = 0;
    const struct webhook *other;

    if (w->busy_n >= most || (w->busy_n > 0 && w->held > HELD_MAX))
        return false;
    TAILQ_FOREACH(other, &w->hooks, link)
    n += h->to.host[0] && is_busy(other) && strcmp(other->to.host, h->to.host) == 0;
    return n < (share ? share : 1);
}

static struct webhook *next_due(const struct webhooks *w)
{
    struct webhook *h;

    if (w->busy_n < w->conf.connections_max)
        TAILQ_FOREACH(h, &w->hooks, link)
    if (h->state == HOOK_DUE && has_room(w, h))
        return h;
    return NULL;
}

static void dispatch(struct webhooks *w)
{
    struct webhook *h;

    while ((h = next_due(w)))
        begin(h);
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    struct webhook *h = user;
    struct webhooks *w = h->all;

    (void)fd, (void)what;
    hook_move(h, HOOK_DUE);
    dispatch(w);
}

/* ---- a new one ---- */

int webhooks_check(const struct webhooks *w, const struct webhook_target *to, struct err *e)
{
    const char *secret = to->secret ? to->secret : w ? w->secret : "";
    char signature[WEBHOOK_SIGNATURE_MAX];
    enum webhook_reach reach;
    struct http_url url;

    if (!w)
        return err_set(e, ERR_CALLER,
                       "webhook: this server sends none; its operator lists the hosts that may be "
                       "sent to in WEBHOOK_HOSTS");
    if (strlen(to->url) >= HTTP_URL_MAX)
        return err_set(e, ERR_CALLER, "webhook: the url is longer than %d bytes", HTTP_URL_MAX - 1);
    if (http_url_parse(to->url, &url, e) < 0)
        return err_wrap(e, "webhook: the url");
    reach = webhook_rules_host(&w->rules, url.host, url.port);
    if (reach == WEBHOOK_NOWHERE)
        return err_set(e, ERR_CALLER,
                       "webhook: '%.200s' with port %u is not among the hosts of this server's "
                       "WEBHOOK_HOSTS",
                       url.host, url.port);
    if (!webhook_rules_literal(&w->rules, reach, url.host, url.port))
        return err_set(e, ERR_CALLER,
                       "webhook: '%.200s' is not a public address; WEBHOOK_HOSTS has to list the "
                       "address itself",
                       url.host);
    if (!secret[0])
        return err_set(e, ERR_CALLER,
                       "webhook: there is nothing to sign with: give webhook.secret, or have the "
                       "operator set WEBHOOK_SECRET");
    if (strlen(secret) > WEBHOOK_SECRET_MAX ||
        webhook_sign(secret, "x", 0, (struct bytes){"", 0}, signature) < 0)
        return err_set(e, ERR_CALLER,
                       "webhook.secret: at most %d bytes, and base64 behind 'whsec_'",
                       WEBHOOK_SECRET_MAX);
    return 0;
}

/* The body is the sender's. */
static bool copy_body(struct webhook *h)
{
    struct webhooks *w = h->all;
    struct bytes body = h->body;

    h->body = (struct bytes){0};
    h->text = BUF_INIT(body.n + 1);
    if (w->held + body.n > HELD_MAX || buf_put(&h->text, body.p, body.n) < 0) {
        buf_done(&h->text);
        return false;
    }
    w->held += h->text.n;
    h->body = (struct bytes){h->text.p, h->text.n};
    return true;
}

/* There was no room on the disk: what memory holds is tried all the same. */
static bool keep_in_memory(struct webhook *h, const char *why)
{
    log_event(h->all->log, LOG_ERROR, "webhook_not_saved", LOG_STR("webhook_id", h->id),
              LOG_STR("execution_id", h->execution_id), LOG_STR("error", why));
    return copy_body(h);
}

static void on_saved(void *user, struct spool_entry *entry, const char *why)
{
    struct webhook *h = user;
    struct webhooks *w = h->all;
    bool kept = entry->on_disk;

    if (!kept) {
        h->entry = NULL;
        entry->on_disk = h->promised; /* that file goes, then */
        spool_drop(w->spool, entry);
        kept = keep_in_memory(h, why);
    } else if (h->body.n > FIRST_MAX || !copy_body(h)) {
        h->body = (struct bytes){0}; /* read back for the first attempt, too */
    }
    tell_kept(h);
    if (kept)
        hook_move(h, HOOK_DUE);
    else
        hook_lose(h, "neither the disk nor memory has room for it");
    dispatch(w);
    quiet_check(w);
}

static int members_write(const struct webhook *h, struct buf *out)
{
    struct jw j = JW(out);

    *out = BUF_INIT(MEMBERS_MAX);
    jw_key(&j, "webhook");
    jw_object(&j);
    jw_kv_string(&j, "url", h->to.url);
    jw_kv_string(&j, "secret", h->secret);
    jw_kv_string(&j, "execution_id", h->execution_id);
    jw_object_end(&j);
    (void)buf_putc(out, ',');
    return buf_putc(out, '\0');
}

int webhooks_hold(struct webhooks *w, const struct webhook_target *to, struct webhook **ret,
                  struct err *e)
{
    char id[WEBHOOK_ID_MAX] = "msg_";
    struct webhook *h;

    if (webhooks_check(w, to, e) < 0)
        return -1;
    if (w->hooks_n >= w->conf.count_max)
        return err_set(e, ERR_BUSY, "%zu webhooks wait already (WEBHOOK_MAX)", w->hooks_n);
    random_base36(id + strlen(id), ID_RANDOM);
    h = hook_new(w, id);
    if (!h)
        return err_set(e, ERR_HOST, "no memory for a webhook");
    if (http_url_parse(to->url, &h->to, e) < 0) {
        hook_free(h);
        return -1;
    }
    (void)snprintf(h->secret, sizeof h->secret, "%s", to->secret ? to->secret : "");
    h->reach = webhook_rules_host(&w->rules, h->to.host, h->to.port);
    hook_move(h, HOOK_HELD);
    *ret = h;
    return 0;
}

void webhook_drop(struct webhook *h)
{
    if (h)
        hook_free(h);
}

static struct spool_entry *put(struct webhook *h, struct spool_order order)
{
    cleanup_with(buf_done) struct buf members = BUF_INIT(0);
    struct spool_entry *entry = NULL;

    order.id = h->id;
    if (members_write(h, &members) == 0) {
        order.members = members.p;
        entry = spool_put(h->all->spool, &order);
    }
    if (members.p)
        explicit_bzero(members.p, members.n);
    return entry;
}

/* ---- promises ---- */

static void on_promised(void *user, struct spool_entry *entry, const char *why)
{
    struct promise *p = user;

    (void)why;
    buf_done(&p->body);
    p->saved = true;
    if (p->of && entry->on_disk)
        return;
    if (p->of)
        p->of->promise = NULL;
    spool_drop(p->all->spool, entry);
    free(p);
}

void webhook_promise(struct webhook *h, const char *execution_id, struct buf *body)
{
    struct promise *p = body->failed || body->n == 0 ? NULL : calloc(1, sizeof *p);

    (void)snprintf(h->execution_id, sizeof h->execution_id, "%s", execution_id);
    if (!p) {
        buf_done(body);
        return;
    }
    *p = (struct promise){.of = h, .all = h->all, .body = *body};
    *body = BUF_INIT(0);
    p->entry =
        put(h, (struct spool_order){
                   .body = {p->body.p, p->body.n},
                     .hasty = true, .done = on_promised, .user = p
    });
    if (!p->entry) {
        buf_done(&p->body);
        free(p);
        return;
    }
    p->entry->user = h; /* not one of those that are left */
    h->promise = p;
    h->promised = true;
}

void webhook_send(struct webhook *h, const char *execution_id, struct bytes body, report_fn *kept,
                  void *user)
{
    struct webhooks *w = h->all;

    (void)snprintf(h->execution_id, sizeof h->execution_id, "%s", execution_id);
    h->born_s = spool_now_s();
    h->body = body;
    h->kept = kept;
    h->user = user;
    hook_move(h, HOOK_SAVING);
    if (body.n > 0)
        h->entry = put(h, (struct spool_order){.body = body, .done = on_saved, .user = h});
    promise_drop(h);
    if (h->entry) {
        h->entry->user = h;
        return;
    }
    if (body.n > 0 && keep_in_memory(h, "more bytes than WEBHOOK_BYTES_MAX are waiting")) {
        hook_move(h, HOOK_DUE);
        tell_kept(h);
    } else {
        tell_kept(h);
        hook_lose(h, "neither the disk nor memory has room for it");
    }
    dispatch(w);
}

/* ---- ending ---- */

void webhooks_settle(struct webhooks *w, report_fn *quiet, void *user)
{
    struct webhook *h;

    w->ending = true;
    w->quiet = quiet;
    w->quiet_user = user;
    TAILQ_FOREACH(h, &w->hooks, link)
    (void)event_del(&h->again);
    quiet_check(w);
}

void webhooks_hurry(struct webhooks *w)
{
    struct webhook *h;
    report_fn *quiet = w->quiet;

    TAILQ_FOREACH(h, &w->hooks, link)
    http_post_cancel(take_ptr(&h->post));
    w->quiet = NULL;
    if (quiet)
        quiet(w->quiet_user);
}

void webhooks_count(const struct webhooks *w, struct webhook_counts *ret)
{
    struct spool_counts s;

    spool_counts(w->spool, &s);
    *ret = w->counts;
    ret->waiting = w->hooks_n;
    ret->bytes = s.bytes;
}

/* ---- opening ---- */

/* Oldest first. */
static int find_left(struct webhooks *w)
{
    struct spool_entry *entry;

    while ((entry = spool_next(w->spool))) {
        struct webhook *h = hook_new(w, entry->id);

        if (!h)
            return -1;
        h->entry = entry;
        entry->user = h;
        h->born_s = entry->born_s;
        hook_move(h, HOOK_DUE);
    }
    return 0;
}

int webhooks_open(struct event_base *base, const struct webhooks_conf *conf, struct work_pool *pool,
                  const struct log *log, struct webhooks **ret, struct err *e)
{
    struct webhooks *w = calloc(1, sizeof *w);
    const struct spool_conf spool = {.path = conf->path,
                                     .option = "STATE_DIR",
                                     .told = "",
                                     .bytes_max = conf->bytes_max,
                                     .age_max_s = conf->age_max_s};
    const struct http_client_conf client = {.connections_max = conf->connections_max,
                                            .connect_ms = conf->answer_ms / 2,
                                            .answer_ms = conf->answer_ms / 2,
                                            .allow = may_connect};

    if (!w)
        return err_set(e, ERR_HOST, "no memory for webhooks");
    TAILQ_INIT(&w->hooks);
    w->base = base;
    w->pool = pool;
    w->log = log;
    w->conf = *conf;
    w->conf.path = w->conf.hosts = w->conf.secret = NULL;
    (void)snprintf(w->secret, sizeof w->secret, "%s", conf->secret);
    if (webhook_rules_parse(conf->hosts, &w->rules, e) < 0 ||
        http_client_open(base, &client, &w->client, e) < 0 ||
        spool_open(&spool, pool, &w->spool, e) < 0) {
        webhooks_close(w);
        return -1;
    }
    if (find_left(w) < 0) {
        webhooks_close(w);
        return err_set(e, ERR_HOST, "no memory for webhooks");
    }
    dispatch(w);
    *ret = w;
    return 0;
}

void webhooks_close(struct webhooks *w)
{
    struct webhook *h;

    if (!w)
        return;
    while ((h = TAILQ_FIRST(&w->hooks))) {
        if (!h->entry && h->state != HOOK_HELD)
            log_hook(h, LOG_ERROR, "webhook_lost",
                     &(struct http_answer){.error = "not delivered, and not on disk"});
        hook_free(h);
    }
    spool_close(w->spool);
    http_client_close(w->client);
    explicit_bzero(w->secret, sizeof w->secret);
    free(w);
}
