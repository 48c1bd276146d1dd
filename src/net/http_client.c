/* SPDX-License-Identifier: MIT */
/*
 * libcurl's multi interface, driven by the loop: it tells which descriptors and which timer it
 * wants watched, we tell it what happened.
 *
 *   http_client_post ─▶ curl_multi_add_handle
 *   socket, timer ─▶ curl_multi_socket_action ─▶ reap ─▶ done()
 *
 * libcurl is never called from inside one of its own callbacks. It resolves names on threads of
 * its own, which share nothing with us.
 */
#include "net/http_client.h"

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/os.h"

enum {
    HEADER_MAX = 2048, /* one header line of ours */
    IDLE_MAX = 32,     /* handles kept for the next requests: to make one is expensive */
    BODY_RATE = 64,    /* bytes per millisecond that a large body is given extra time for */
    US_PER_MS = 1000,
    MS_PER_S = 1000,
};

struct http_client {
    struct event_base *base; /* borrowed */
    struct event *timer;     /* owned */
    CURLM *multi;            /* owned */
    struct curl_slist *head; /* owned: what every request has; also holds the secret */
    uint32_t connect_ms, answer_ms;
    http_allow_fn *allow; /* NULL: any address */
    LIST_HEAD(post_list, http_post) posts;
    CURL *idle[IDLE_MAX]; /* owned: handles that are prepared and unused */
    size_t idle_n;
};

/* A descriptor that libcurl wants watched. */
struct watcher {
    struct event event;
    int what; /* CURL_POLL_* */
};

struct http_post {
    struct http_client *client; /* borrowed */
    CURL *easy;                 /* owned */
    http_post_fn *done;
    void *user;
    size_t answered;        /* bytes of the answer so far */
    bool too_long, refused; /* an address was */
    char key[HEADER_MAX];
    struct curl_slist lines[1 + HTTP_LINES_MAX]; /* in front of the client's head */
    http_allow_fn *allow;
    LIST_ENTRY(http_post) link;
    char words[HTTP_WORDS_MAX];
    size_t words_n;
    struct buf body; /* owned: of the answer, if it is wanted */
};

/* ---- requests ---- */

static size_t on_answer(char *p, size_t size, size_t n, void *user)
{
    struct http_post *post = user;

    (void)p;
    post->answered += size * n;
    post->too_long = post->answered > HTTP_ANSWER_MAX + post->body.max;
    return post->too_long ? 0 : size * n;
}

static size_t on_body(char *p, size_t size, size_t n, void *user)
{
    struct http_post *post = user;
    size_t room = HTTP_WORDS_MAX - post->words_n, take = size * n < room ? size * n : room;

    memcpy(post->words + post->words_n, p, take);
    post->words_n += take;
    if (post->body.max > 0 && buf_put(&post->body, p, size * n) < 0) {
        post->too_long = true;
        return 0;
    }
    return on_answer(p, size, n, user);
}

static void easy_give(struct http_client *c, CURL *easy)
{
    if (easy && c->idle_n < IDLE_MAX)
        c->idle[c->idle_n++] = easy;
    else
        curl_easy_cleanup(easy);
}

void http_post_cancel(struct http_post *p)
{
    if (!p)
        return;
    LIST_REMOVE(p, link);
    (void)curl_multi_remove_handle(p->client->multi, p->easy);
    easy_give(p->client, p->easy);
    buf_done(&p->body);
    free(p);
}

static void post_end(struct http_post *p, CURLcode code)
{
    http_post_fn *done = p->done;
    void *user = p->user;
    curl_off_t after = 0;
    long status = 0, sent = 0;
    /* An answer that is longer than we read is an answer. */
    bool whole = code == CURLE_OK || p->too_long;
    char words[HTTP_WORDS_MAX + 1] = "";
    struct http_answer a = {.error = whole        ? ""
                                     : p->refused ? "its address is not allowed"
                                                  : curl_easy_strerror(code),
                            .words = whole ? words : NULL,
                            .too_long = p->too_long};
    struct buf body = p->body;

    if (whole && curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK)
        a.status = (int)status;
    if (whole && curl_easy_getinfo(p->easy, CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
        a.retry_after_s = after < UINT32_MAX ? (uint32_t)after : UINT32_MAX;
    if (curl_easy_getinfo(p->easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK)
        a.sent = sent > 0;
    memcpy(words, p->words, p->words_n);
    a.body = (struct bytes){body.p, body.n};
    p->body = BUF_INIT(0);
    http_post_cancel(p);
    done(user, &a);
    buf_done(&body);
}

static void reap(struct http_client *c)
{
    int left;

    for (;;) {
        CURLMsg *m = curl_multi_info_read(c->multi, &left);
        char *p = NULL;

        if (!m)
            return;
        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p) == CURLE_OK && p)
            post_end((struct http_post *)(void *)p, m->data.result);
    }
}

/* libcurl is about to connect to that address. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http_post *p = user;

    if (purpose != CURLSOCKTYPE_IPCXN || !p->allow(p->user, &to->addr)) {
        p->refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* What is the same for every request. */
static bool easy_prepare(CURL *h, const struct http_client *c)
{
    return curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_POST, 1L) == CURLE_OK &&
           (!c->allow ||
            curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK) &&
           curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_answer) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK;
}

static CURL *easy_take(struct http_client *c)
{
    CURL *h;

    if (c->idle_n > 0)
        return c->idle[--c->idle_n];
    h = curl_easy_init();
    if (h && easy_prepare(h, c))
        return h;
    curl_easy_cleanup(h);
    return NULL;
}

/* The same handle serves other methods at other times. */
static bool set_method(CURL *h, const struct http_ask *ask)
{
    bool bare = ask->method && ask->body.n == 0;

    return curl_easy_setopt(h, CURLOPT_POSTFIELDS, bare ? NULL : ask->body.p) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->body.n) == CURLE_OK &&
           curl_easy_setopt(h, bare ? CURLOPT_HTTPGET : CURLOPT_POST, 1L) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, ask->method) == CURLE_OK;
}

static bool set_request(struct http_post *p, const struct http_ask *ask)
{
    const struct http_client *c = p->client;
    long answer_ms = ask->answer_ms > 0 ? (long)ask->answer_ms : (long)c->answer_ms;
    long total = (long)c->connect_ms + answer_ms + (long)(ask->body.n / BODY_RATE);
    CURL *h = p->easy;
    struct curl_slist *lines = c->head;
    size_t n = 0;

    for (size_t i = 0; i < HTTP_LINES_MAX && ask->lines[i]; i++) {
        p->lines[n] = (struct curl_slist){.data = (char *)(uintptr_t)ask->lines[i], .next = lines};
        lines = &p->lines[n++];
    }
    if (ask->idempotency_key) {
        int len = snprintf(p->key, sizeof p->key, "Idempotency-Key: %.1000s", ask->idempotency_key);

        p->lines[n] = (struct curl_slist){.data = p->key, .next = lines};
        lines = &p->lines[n];
        if (len < 0 || (size_t)len >= sizeof p->key)
            return false;
    }
    return curl_easy_setopt(h, CURLOPT_URL, ask->url) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_HTTPHEADER, lines) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, total) == CURLE_OK && set_method(h, ask) &&
           curl_easy_setopt(h, CURLOPT_HEADERDATA, p) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_WRITEDATA, p) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_OPENSOCKETDATA, p) == CURLE_OK &&
           curl_easy_setopt(h, CURLOPT_PRIVATE, p) == CURLE_OK;
}

int http_client_post(struct http_client *c, const struct http_ask *ask, struct http_post **ret,
                     struct err *e)
{
    struct http_post *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(e, ERR_HOST, "no memory for a request");
    p->client = c;
    p->done = ask->done;
    p->user = ask->user;
    p->allow = c->allow;
    p->body = BUF_INIT(ask->body_max);
    p->easy = easy_take(c);
    if (!p->easy || !set_request(p, ask) || curl_multi_add_handle(c->multi, p->easy) != CURLM_OK) {
        curl_easy_cleanup(p->easy);
        free(p);
        return err_set(e, ERR_HOST, "no request could be made");
    }
    LIST_INSERT_HEAD(&c->posts, p, link);
    *ret = p;
    return 0;
}

/* ---- the loop ---- */

static void on_socket(evutil_socket_t fd, short what, void *user)
{
    struct http_client *c = user;
    int happened =
        (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
    int running;

    (void)curl_multi_socket_action(c->multi, fd, happened, &running);
    reap(c);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct http_client *c = user;
    int running;

    (void)fd, (void)what;
    (void)curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    reap(c);
}

/* libcurl: watch this descriptor. `watcher` is what we assigned to it before. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *watcher)
{
    struct http_client *c = user;
    struct watcher *w = watcher;
    int events =
        EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0);

    (void)easy;
    if (w && w->what == what)
        return 0;
    if (w)
        (void)event_del(&w->event);
    if (what == CURL_POLL_REMOVE) {
        free(w);
        (void)curl_multi_assign(c->multi, fd, NULL);
        return 0;
    }
    if (!w) {
        w = malloc(sizeof *w);
        if (!w)
            return -1;
        (void)curl_multi_assign(c->multi, fd, w);
    }
    w->what = what;
    (void)event_assign(&w->event, c->base, fd, (short)events, on_socket, c);
    return event_add(&w->event, NULL);
}

static int watch_timer(CURLM *multi, long ms, void *user)
{
    struct http_client *c = user;
    struct timeval tv = {.tv_sec = ms / MS_PER_S, .tv_usec = ms % MS_PER_S * US_PER_MS};

    (void)multi;
    return ms < 0 ? event_del(c->timer) : event_add(c->timer, &tv);
}

/* ---- opening ---- */

static bool add_line(struct http_client *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->head, line);

    if (longer)
        c->head = longer;
    return longer != NULL;
}

/* Without "Expect:" libcurl would wait for permission before it sends a large body. */
static bool make_head(struct http_client *c, const char *bearer)
{
    char line[HEADER_MAX];
    bool good;

    if (!add_line(c, "Content-Type: application/json") || !add_line(c, "Expect:") ||
        !add_line(c, "User-Agent: sandbox-executor"))
        return false;
    if (!bearer || !*bearer)
        return true;
    good = (size_t)snprintf(line, sizeof line, "Authorization: Bearer %s", bearer) < sizeof line &&
           add_line(c, line);
    explicit_bzero(line, sizeof line);
    return good;
}

static bool make_multi(struct http_client *c, const struct http_client_conf *conf)
{
    long most = (long)conf->connections_max;
    CURLM *m = curl_multi_init();

    c->multi = m;
    return m && curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, watch_socket) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_SOCKETDATA, c) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, watch_timer) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_TIMERDATA, c) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_MAX_TOTAL_CONNECTIONS, most) == CURLM_OK &&
           curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, most) == CURLM_OK;
}

int http_client_open(struct event_base *base, const struct http_client_conf *conf,
                     struct http_client **ret, struct err *e)
{
    struct http_client *c = calloc(1, sizeof *c);

    if (!c || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return err_set(e, ERR_HOST, "no HTTP client");
    }
    c->base = base;
    c->connect_ms = conf->connect_ms;
    c->answer_ms = conf->answer_ms;
    c->allow = conf->allow;
    LIST_INIT(&c->posts);
    c->timer = evtimer_new(base, on_timer, c);
    if (!c->timer || !make_head(c, conf->bearer) || !make_multi(c, conf)) {
        http_client_close(c);
        return err_set(e, ERR_HOST, "no memory for an HTTP client");
    }
    *ret = c;
    return 0;
}

void http_client_close(struct http_client *c)
{
    if (!c)
        return;
    while (!LIST_EMPTY(&c->posts))
        http_post_cancel(LIST_FIRST(&c->posts));
    while (c->idle_n > 0)
        curl_easy_cleanup(c->idle[--c->idle_n]);
    if (c->multi)
        (void)curl_multi_cleanup(c->multi);
    for (struct curl_slist *l = c->head; l; l = l->next)
        explicit_bzero(l->data, strlen(l->data));
    curl_slist_free_all(c->head);
    if (c->timer)
        event_free(c->timer);
    curl_global_cleanup();
    free(c);
}
