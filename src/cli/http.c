/* SPDX-License-Identifier: MIT */
#include "cli/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "base/json.h"
#include "cli/http_inner.h"

enum { WAIT_FDS_MAX = 8, REFUSAL_MAX = 64 * 1024, BEARER_MAX = DAEMON_SECRET_MAX + 32 };

struct http_exchange {
    struct http *http;               /* borrowed */
    const struct http_request *asks; /* borrowed */
    CURL *curl;                      /* owned */
    struct curl_slist *lines;        /* owned */
    struct http_head head;
    struct http_answer *keep; /* borrowed; NULL: nothing is kept */
    bool begun;               /* the head of the answer is complete */
    bool enough;              /* the caller wants no more */
    bool full;                /* more came than is kept */
    char why[CURL_ERROR_SIZE];
    LIST_ENTRY(http_exchange) link;
};

struct http {
    struct daemon_at at;
    CURLM *multi; /* owned */
    size_t under_way;
    LIST_HEAD(exchange_list, http_exchange) all;
};

int http_open(const struct daemon_at *at, struct http **ret, struct err *e)
{
    struct http *h = calloc(1, sizeof *h);

    if (h)
        h->multi = curl_multi_init();
    if (!h || !h->multi) {
        free(h);
        return err_set(e, ERR_HOST, "no memory");
    }
    h->at = *at;
    LIST_INIT(&h->all);
    *ret = h;
    return 0;
}

static void exchange_free(struct http_exchange *x)
{
    struct http *h = x->http;

    if (x->curl) {
        (void)curl_multi_remove_handle(h->multi, x->curl);
        curl_easy_cleanup(x->curl);
    }
    curl_slist_free_all(x->lines);
    LIST_REMOVE(x, link);
    h->under_way--;
    free(x);
}

void http_cancel(struct http_exchange *x)
{
    if (x)
        exchange_free(x);
}

void http_close(struct http *h)
{
    struct http_exchange *x;

    if (!h)
        return;
    while ((x = LIST_FIRST(&h->all)))
        exchange_free(x);
    (void)curl_multi_cleanup(h->multi);
    explicit_bzero(&h->at, sizeof h->at);
    free(h);
}

size_t http_under_way(const struct http *h)
{
    return h->under_way;
}

/* ---- the answer, as it comes ---- */

static void keep_type(struct http_exchange *x, const char *value)
{
    size_t n = 0;

    for (; value[n] && value[n] != ';' && value[n] != ' ' && n < HTTP_TYPE_MAX - 1; n++)
        x->head.type[n] = value[n] >= 'A' && value[n] <= 'Z' ? (char)(value[n] | 0x20) : value[n];
    x->head.type[n] = '\0';
}

static void on_field(struct http_exchange *x, const char *p, size_t n)
{
    char line[4096];
    char *colon, *value, *end;

    if (n == 0 || n >= sizeof line)
        return;
    memcpy(line, p, n);
    line[n] = '\0';
    colon = strchr(line, ':');
    if (!colon)
        return;
    *colon = '\0';
    for (char *c = line; c < colon; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
    value = colon + 1 + strspn(colon + 1, " \t");
    end = line + n;
    while (end > value && strchr(" \t\r\n", end[-1]))
        *--end = '\0';
    if (strcmp(line, "content-type") == 0)
        keep_type(x, value);
    if (x->asks->line)
        x->asks->line(x->asks->user, line, value);
}

/* The head may come several times: "100 Continue" is in front of the one that counts. */
static size_t on_header(char *p, size_t size, size_t n, void *user)
{
    struct http_exchange *x = user;
    long status = 0;
    curl_off_t length = -1;

    n *= size;
    if (n > 5 && memcmp(p, "HTTP/", 5) == 0) {
        x->head = (struct http_head){0};
        return n;
    }
    if (n > 2) {
        on_field(x, p, n);
        return n;
    }
    (void)curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return n;
    (void)curl_easy_getinfo(x->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    x->head.status = (int)status;
    x->head.length = length;
    x->begun = true;
    if (x->asks->head && x->asks->head(x->asks->user, &x->head) < 0) {
        x->enough = true;
        return 0;
    }
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *user)
{
    struct http_exchange *x = user;
    bool good = x->head.status >= 200 && x->head.status < 300;

    n *= size;
    if (x->asks->part && (good || !x->keep)) {
        x->enough = x->asks->part(x->asks->user, p, n) < 0;
        return x->enough ? 0 : n;
    }
    if (x->keep && buf_put(&x->keep->body, p, n) < 0) {
        x->full = true;
        return 0;
    }
    return n;
}

static size_t on_read(char *p, size_t size, size_t n, void *user)
{
    struct http_exchange *x = user;
    ssize_t got = x->asks->read(x->asks->user, p, size * n);

    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

/* ---- the request ---- */

static bool line_add(struct curl_slist **all, const char *line)
{
    struct curl_slist *more = curl_slist_append(*all, line);

    *all = more ? more : *all;
    return more != NULL;
}

static bool lines_make(const struct http *h, const struct http_request *r, struct curl_slist **ret)
{
    char text[BEARER_MAX];
    /* "Expect:" leaves that header out: the body follows at once */
    bool good = line_add(ret, "Expect:");

    if (r->body || r->read || r->type) {
        (void)snprintf(text, sizeof text, "Content-Type: %s",
                       r->type ? r->type : "application/json");
        good = good && line_add(ret, text);
    }
    if (h->at.secret[0]) {
        (void)snprintf(text, sizeof text, "Authorization: Bearer %s", h->at.secret);
        good = good && line_add(ret, text);
        explicit_bzero(text, sizeof text);
    }
    for (size_t i = 0; i < HTTP_LINES_MAX && r->lines[i]; i++)
        good = good && line_add(ret, r->lines[i]);
    return good;
}

static void set_body(CURL *c, struct http_exchange *x, const struct http_request *r)
{
    const char *method = r->method ? r->method : r->body || r->read ? "POST" : "GET";

    if (r->read) {
        (void)curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(c, CURLOPT_READDATA, x);
        (void)curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->read_n);
    } else if (r->body || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, r->body ? r->body : "");
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_n);
    }
    if (strcmp(method, "HEAD") == 0)
        (void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    else
        (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
}

static void set_times(CURL *c, const struct http_request *r)
{
    (void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)(r->connect_ms ? r->connect_ms : HTTP_CONNECT_MS));
    if (r->whole_ms)
        (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)r->whole_ms);
    if (r->silent_ms) {
        (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
        (void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)(r->silent_ms + 999) / 1000);
    }
}

void http_set_common(CURL *c)
{
    (void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
}

static bool set_request(struct http_exchange *x, const struct http_request *r)
{
    const struct http *h = x->http;
    char url[DAEMON_URL_MAX * 8];
    int n = snprintf(url, sizeof url, "%s%s", h->at.url, r->path);
    CURL *c = x->curl;

    if (n < 0 || (size_t)n >= sizeof url || !lines_make(h, r, &x->lines))
        return false;
    http_set_common(c);
    (void)curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(c, CURLOPT_PRIVATE, x);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->why);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
    set_body(c, x, r);
    set_times(c, r);
    return curl_easy_setopt(c, CURLOPT_HTTPHEADER, x->lines) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_URL, url) == CURLE_OK;
}

static int start(struct http *h, const struct http_request *r, struct http_answer *keep,
                 struct http_exchange **ret, struct err *e)
{
    struct http_exchange *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(e, ERR_HOST, "no memory");
    *x = (struct http_exchange){.http = h, .asks = r, .keep = keep, .curl = curl_easy_init()};
    LIST_INSERT_HEAD(&h->all, x, link);
    h->under_way++;
    if (!x->curl || !set_request(x, r) || curl_multi_add_handle(h->multi, x->curl) != CURLM_OK) {
        exchange_free(x);
        return err_set(e, ERR_HOST,
                       "the request cannot be made: its address is too long, or there "
                       "is no memory");
    }
    *ret = x;
    return 0;
}

int http_start(struct http *h, const struct http_request *r, struct http_exchange **ret,
               struct err *e)
{
    return start(h, r, NULL, ret, e);
}

/* ---- its end ---- */

int http_why_not(const char *url, CURLcode code, long sys, const char *why, struct err *e)
{
    if (code == CURLE_COULDNT_CONNECT && (sys == 0 || sys == ECONNREFUSED))
        return err_set(e, ERR_ABSENT,
                       "nobody listens at %s: is the daemon running? ($SANDBOX_URL and --url say "
                       "where)",
                       url);
    if (code == CURLE_COULDNT_CONNECT)
        return err_sys(e, -(int)sys, "%s", url);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, ERR_BUSY, "%s: no answer in time", url);
    if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING)
        return err_set(e, ERR_HOST, "%s: the daemon has closed the connection", url);
    return err_set(e, ERR_HOST, "%s: %s", url, why[0] ? why : curl_easy_strerror(code));
}

static void why_not(const struct http_exchange *x, CURLcode code, struct err *e)
{
    long sys = 0;

    (void)curl_easy_getinfo(x->curl, CURLINFO_OS_ERRNO, &sys);
    if (x->enough)
        (void)err_set(e, ERR_CALLER, "ended on request");
    else if (x->full)
        (void)err_set(e, ERR_HOST, "%s: the answer is longer than %d MiB", x->http->at.url,
                      HTTP_KEPT_MAX >> 20);
    else
        (void)http_why_not(x->http->at.url, code, sys, x->why, e);
}

static void exchange_end(struct http_exchange *x, CURLcode code)
{
    struct err e = {0};
    struct http_end end = {.status = x->begun ? x->head.status : 0, .whole = code == CURLE_OK};
    http_done_fn *done = x->asks->done;
    void *user = x->asks->user;

    if (x->keep) {
        x->keep->status = end.status;
        memcpy(x->keep->type, x->head.type, sizeof x->keep->type);
    }
    if (!end.whole) {
        why_not(x, code, &e);
        end.e = &e;
    }
    exchange_free(x);
    if (done)
        done(user, &end);
}

static void end_all(struct http *h)
{
    struct CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(h->multi, &left))) {
        char *x = NULL;
        CURLcode code = m->data.result;

        if (m->msg == CURLMSG_DONE &&
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x) == CURLE_OK)
            exchange_end((struct http_exchange *)(void *)x, code);
    }
}

static int multi_result(CURLMcode r, struct err *e)
{
    return r == CURLM_OK ? 0 : err_set(e, ERR_HOST, "%s", curl_multi_strerror(r));
}

int http_wait(struct http *h, struct pollfd *fds, size_t fds_n, int timeout_ms, struct err *e)
{
    struct curl_waitfd wait[WAIT_FDS_MAX] = {0};
    size_t before = h->under_way;
    int running = 0;
    CURLMcode r = curl_multi_perform(h->multi, &running);

    end_all(h);
    if (r != CURLM_OK || fds_n > WAIT_FDS_MAX)
        return multi_result(r != CURLM_OK ? r : CURLM_BAD_FUNCTION_ARGUMENT, e);
    for (size_t i = 0; i < fds_n; i++)
        wait[i] = (struct curl_waitfd){
            .fd = fds[i].fd,
            .events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
                              (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0))};
    r = curl_multi_poll(h->multi, wait, (unsigned)fds_n,
                        before != h->under_way ? 0
                        : timeout_ms < 0       ? 3600 * 1000
                                               : timeout_ms,
                        NULL);
    for (size_t i = 0; i < fds_n; i++)
        fds[i].revents = (short)((wait[i].revents & CURL_WAIT_POLLIN ? POLLIN : 0) |
                                 (wait[i].revents & CURL_WAIT_POLLOUT ? POLLOUT : 0));
    if (r == CURLM_OK)
        r = curl_multi_perform(h->multi, &running);
    end_all(h);
    return multi_result(r, e);
}

/* ---- one after the other ---- */

struct asking {
    const struct http_request *asks;
    bool over, whole;
    struct err e;
};

static void asking_line(void *user, const char *name, const char *value)
{
    const struct asking *a = user;

    if (a->asks->line)
        a->asks->line(a->asks->user, name, value);
}

static int asking_head(void *user, const struct http_head *head)
{
    const struct asking *a = user;

    return a->asks->head ? a->asks->head(a->asks->user, head) : 0;
}

static int asking_part(void *user, const char *p, size_t n)
{
    const struct asking *a = user;

    return a->asks->part(a->asks->user, p, n);
}

static ssize_t asking_read(void *user, char *p, size_t room)
{
    const struct asking *a = user;

    return a->asks->read(a->asks->user, p, room);
}

static void asking_done(void *user, const struct http_end *end)
{
    struct asking *a = user;

    a->over = true;
    a->whole = end->whole;
    if (end->e)
        a->e = *end->e;
    if (a->asks->done)
        a->asks->done(a->asks->user, end);
}

void http_answer_done(struct http_answer *a)
{
    buf_done(&a->body);
}

int http_ask(struct http *h, const struct http_request *r, struct http_answer *ret, struct err *e)
{
    struct asking a = {.asks = r};
    struct http_request mine = *r;
    struct http_exchange *x = NULL;

    *ret = (struct http_answer){.body = BUF_INIT(HTTP_KEPT_MAX)};
    mine.line = asking_line;
    mine.head = asking_head;
    mine.part = r->part ? asking_part : NULL;
    mine.read = r->read ? asking_read : NULL;
    mine.done = asking_done;
    mine.user = &a;
    if (start(h, &mine, ret, &x, e) < 0)
        return -1;
    while (!a.over) {
        if (http_wait(h, NULL, 0, -1, e) < 0) {
            if (!a.over)
                http_cancel(x);
            return -1;
        }
    }
    if (a.whole)
        return 0;
    *e = a.e;
    return -1;
}

/* ---- what a refusal says ---- */

static void put_first(const struct buf *body, const char *const names[], struct buf *out)
{
    struct json_value all, v;
    struct err e;

    if (!body->n || json_parse(body->p, body->n, 0, &all, &e) < 0)
        return;
    if (json_get(all, "error", &v) && v.type == JSON_OBJECT)
        all = v;
    for (size_t i = 0; names[i] && out->n == 0; i++) {
        v = json_member(all, names[i]);
        if (v.p && v.type == JSON_STRING && json_decode_string(v, JSON_LENIENT_UTF8, out) < 0)
            buf_clear(out);
    }
}

/* One line: what a terminal could take for an order is left out. */
static const char *as_line(struct buf *text)
{
    for (size_t i = 0; i < text->n; i++)
        if ((unsigned char)text->p[i] < ' ' || text->p[i] == 0x7f)
            text->p[i] = ' ';
    return text->n ? text->p : "";
}

void http_answer_words(const struct http_answer *a, struct err *e)
{
    static const char *const said[] = {"error_detail", "message", "error",
                                       "description",  "detail",  NULL};
    static const char *const help[] = {"hint", "solution", NULL};
    enum err_kind kind = a->status == 404                       ? ERR_ABSENT
                         : a->status == 401 || a->status == 403 ? ERR_DENIED
                         : a->status == 429 || a->status == 503 ? ERR_BUSY
                         : a->status >= 500                     ? ERR_HOST
                                                                : ERR_CALLER;
    cleanup_with(buf_done) struct buf words = BUF_INIT(REFUSAL_MAX);
    cleanup_with(buf_done) struct buf hint = BUF_INIT(REFUSAL_MAX);

    put_first(&a->body, said, &words);
    put_first(&a->body, help, &hint);
    if (words.n == 0)
        (void)err_set(e, kind, "the daemon answers with status %d", a->status);
    else
        (void)err_set(e, kind, "%s (%d)%s%s", as_line(&words), a->status, hint.n ? "; " : "",
                      as_line(&hint));
}
