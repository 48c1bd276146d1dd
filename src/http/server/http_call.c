/* SPDX-License-Identifier: MIT */
#include "http/server/http_call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/random.h"
#include "http/server/conn.h"

/*
 * A call is one block of memory: the struct, the field offsets, a copy of the
 * head, the decoded path, the decoded parameters, the request id. Idle streams
 * keep it, so it is no larger than the request that made it.
 */
struct layout {
    size_t fields, text, path, params, total;
};

enum { ID_ROOM = CALL_ID_MAX + 1 };

static struct layout layout_of(size_t fields_n, size_t text_n, size_t path_n)
{
    struct layout l = {.fields = sizeof(struct http_call)};

    l.text = l.fields + fields_n * sizeof(struct call_field);
    l.path = l.text + text_n;
    l.params = l.path + path_n + 1;
    l.total = l.params + path_n + HTTP_PARAMS_MAX + ID_ROOM;
    return l;
}

/* Letters, digits and "._-" only: it is echoed in headers and written to logs. */
static bool id_is_good(const char *id)
{
    size_t n = id ? strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789._-")
                  : 0;

    return n > 0 && n <= CALL_ID_MAX && id[n] == '\0';
}

static void call_init(struct http_call *call, struct conn *c)
{
    call->srv = c->srv;
    call->conn = c;
    call->dialect = c->srv->conf.dialects[0];
    call->minor = 1;
    call->started_us = clock_us();
    call->extra = BUF_INIT(CALL_EXTRA_MAX);
    call->req.method = call->req.path = call->req.query = "";
    call->req.body = "";
    for (size_t i = 0; i < HTTP_PARAMS_MAX; i++)
        call->req.param[i] = "";
}

static void set_id(struct http_call *call, const char *wanted, char *room)
{
    if (id_is_good(wanted))
        memcpy(room, wanted, strlen(wanted) + 1); /* id_is_good() bounds it to the room */
    else
        random_uuid4(room);
    call->req.id = room;
}

struct http_call *call_new_bare(struct conn *c)
{
    struct http_call *call = calloc(1, sizeof *call + ID_ROOM);

    if (!call)
        return NULL;
    call_init(call, c);
    set_id(call, NULL, (char *)(call + 1));
    return call;
}

/* The head was cut up in place, so its views become offsets into the copy. */
static void copy_head(struct http_call *call, const struct h1_head *h, size_t text_n,
                      const struct layout *l)
{
    char *base = (char *)call;
    struct call_field *field = (struct call_field *)(base + l->fields);
    char *text = base + l->text;

    memcpy(text, h->method, text_n);
    for (size_t i = 0; i < h->fields_n; i++) {
        field[i].name = (uint16_t)(h->field[i].name - h->method);
        field[i].value = (uint16_t)(h->field[i].value - h->method);
    }
    call->fields_n = (uint16_t)h->fields_n;
    call->field = field;
    call->text = text;
    call->req.method = text;
    call->req.head = strcmp(text, "HEAD") == 0;
    call->minor = h->minor;
}

/* From the method to the last value: everything later is the final empty line. */
static size_t head_text_n(const struct h1_head *h)
{
    const char *last = h->fields_n > 0 ? h->field[h->fields_n - 1].value : h->target;

    return (size_t)(last - h->method) + strlen(last) + 1;
}

struct http_call *call_new(struct conn *c, const struct h1_head *h, const struct call_target *t,
                           const struct route_hit *hit)
{
    size_t text_n = head_text_n(h);
    struct layout l = layout_of(h->fields_n, text_n, t->path_n);
    char *base = calloc(1, l.total);
    struct http_call *call = (struct http_call *)base;
    char *at;

    if (!call)
        return NULL;
    call_init(call, c);
    copy_head(call, h, text_n, &l);
    /* Decoding was tried before and succeeded; it never makes text longer. */
    (void)route_decode(t->path, t->path_n, base + l.path);
    call->req.path = base + l.path;
    call->req.query = call->text + (t->query - h->method);
    at = base + l.params;
    if (hit) {
        call->route = hit->route;
        for (size_t i = 0; i < hit->match.n; i++) {
            (void)route_decode(hit->match.p[i], hit->match.len[i], at);
            call->req.param[i] = at;
            at += strlen(at) + 1;
        }
    }
    set_id(call, h1_field(h, "x-request-id"), at);
    return call;
}

void call_move(struct http_call *call, enum call_state to)
{
    struct http_counters *count = &call->srv->count;

    if (call->state == to)
        return;
    assert(call->state < to);
    if (call->state == CALL_STREAMING)
        count->streams--;
    if (to == CALL_STREAMING)
        count->streams++;
    call->state = to;
}

void call_free(struct http_call *call)
{
    if (!call)
        return;
    call_move(call, CALL_ANSWERED);
    call->srv->count.buffered -= call->body.n;
    buf_done(&call->body);
    buf_done(&call->extra);
    free(call);
}

void call_leave(struct http_call *call)
{
    http_gone_fn *gone = call->on_gone.fn;

    call->conn = NULL;
    if (call->state == CALL_ANSWERED) {
        call_free(call);
        return;
    }
    call->srv->count.gone++;
    if (!gone && call->state != CALL_READING) {
        LIST_INSERT_HEAD(&call->srv->orphans, call, orphan_link);
        return;
    }
    call_move(call, CALL_ANSWERED);
    if (gone)
        gone(call->on_gone.user);
    call_free(call);
}

void call_orphan_free(struct http_call *call)
{
    LIST_REMOVE(call, orphan_link);
    call_free(call);
}

const struct http_request *http_request(const struct http_call *c)
{
    return &c->req;
}

struct buf http_take_body(struct http_call *c)
{
    struct buf body = c->body;

    c->body = BUF_INIT(0);
    c->req.body = "";
    c->req.body_n = 0;
    return body;
}

const char *http_header(const struct http_call *c, const char *name)
{
    for (size_t i = 0; i < c->fields_n; i++)
        if (strcasecmp(c->text + c->field[i].name, name) == 0)
            return c->text + c->field[i].value;
    return NULL;
}

bool http_header_at(const struct http_call *c, size_t i, const char **ret_name,
                    const char **ret_value)
{
    if (i >= c->fields_n)
        return false;
    *ret_name = c->text + c->field[i].name;
    *ret_value = c->text + c->field[i].value;
    return true;
}

const char *http_target(const struct http_call *c)
{
    const char *target = c->text + strlen(c->text) + 1;

    if (strncasecmp(target, "http://", 7) != 0)
        return target;
    target += 7;
    target += strcspn(target, "/?#");
    return *target == '/' ? target : "/";
}

int64_t http_body_length(const struct http_call *c)
{
    const char *length = http_header(c, "content-length");

    if (http_header(c, "transfer-encoding"))
        return -1;
    return length ? strtoll(length, NULL, 10) : 0;
}

/* Is a word among those of a list that commas separate? */
static bool list_has(const char *list, const char *word)
{
    size_t word_n = strlen(word);

    while (list && *list) {
        size_t n = strcspn(list += strspn(list, " \t,"), ",");
        size_t bare = n;

        while (bare > 0 && (list[bare - 1] == ' ' || list[bare - 1] == '\t'))
            bare--;
        if (bare == word_n && strncasecmp(list, word, word_n) == 0)
            return true;
        list += n;
    }
    return false;
}

bool http_wants_upgrade(const struct http_call *c, const char *protocol)
{
    return c->minor > 0 && list_has(http_header(c, "connection"), "upgrade") &&
           list_has(http_header(c, "upgrade"), protocol);
}

const struct dialect *http_dialect(const struct http_call *c)
{
    return c->dialect;
}

void http_trust(struct http_call *c)
{
    if (c->conn)
        places_trust(c->conn);
}

struct auth *http_auth(const struct http_call *c)
{
    return c->srv->conf.auth;
}

struct app *http_app(const struct http_call *c)
{
    return c->srv->app;
}

/* Decodes a query part ('+' is a space); false when malformed or larger than the room. */
static bool query_decode(const char *p, size_t n, char *out, size_t out_max)
{
    char text[H1_TARGET_MAX + 1];

    if (n > H1_TARGET_MAX)
        return false;
    for (size_t i = 0; i < n; i++)
        text[i] = p[i] == '+' ? ' ' : p[i];
    if (!route_decode(text, n, text) || strlen(text) >= out_max)
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

bool http_query(const struct http_call *c, const char *name, char *out, size_t out_max)
{
    char key[256];

    for (const char *p = c->req.query; *p;) {
        size_t n = strcspn(p, "&");
        const char *eq = memchr(p, '=', n);
        size_t key_n = eq ? (size_t)(eq - p) : n;

        if (query_decode(p, key_n, key, sizeof key) && strcmp(key, name) == 0)
            return query_decode(p + key_n + (eq ? 1 : 0), n - key_n - (eq ? 1 : 0), out, out_max);
        p += n;
        p += *p == '&';
    }
    return false;
}

/* Framing and identity are the server's business. */
static bool header_is_ours(const char *name)
{
    static const char *const ours[] = {"content-length", "transfer-encoding", "connection",
                                       "date",           "x-request-id",      "content-type"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    return false;
}

void http_set_header(struct http_call *c, const char *name, const char *value)
{
    const char *parts[] = {name, ": ", value, "\r\n"};
    size_t before = c->extra.n;

    if (!h1_is_token(name, strlen(name)) || header_is_ours(name))
        return;
    for (const char *p = value; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f)
            return;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        (void)buf_puts(&c->extra, parts[i]);
    if (c->extra.failed)
        c->extra.n = before;
    c->extra.failed = false; /* one that does not fit is dropped, the next may fit */
}

void http_on_gone(struct http_call *c, http_gone_fn *fn, void *user)
{
    c->on_gone.fn = fn;
    c->on_gone.user = user;
}

bool http_is_left(const struct http_call *c)
{
    return !c->conn;
}

void http_on_drain(struct http_call *c, http_drain_fn *fn, void *user)
{
    c->on_drain.fn = fn;
    c->on_drain.user = user;
}

void http_on_body(struct http_call *c, http_data_fn *data, http_end_fn *end, void *user)
{
    c->input.data = data;
    c->input.end = end;
    c->input.user = user;
}

void http_body_pause(struct http_call *c)
{
    c->paused = true;
}

void http_body_resume(struct http_call *c)
{
    if (!c->paused)
        return;
    c->paused = false;
    if (c->conn)
        conn_kick(c->conn);
}
