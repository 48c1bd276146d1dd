/* SPDX-License-Identifier: MIT */
/*
 * The server with fake routes, and clients on the same loop: everything is
 * awaited as an event, nothing sleeps, and a guard ends a test that waits in
 * vain.
 */
/* cmocka.h needs the others before it */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/api/koyeb/koyeb.h"
#include "http/api/problem.h"
#include "http/server/dialect.h"
#include "http/server/reply.h"
#include "http/server/server.h"
#include "http/server/sse.h"

enum { GUARD_S = 20, CLIENTS_MAX = 8, ROOM = 1 << 20 };

struct client {
    int fd;
    struct event *ev;
    char *text; /* what came, NUL-terminated */
    size_t n;
    bool closed, reset, deaf;
};

/* What the handlers see; the tests look into it. */
struct app {
    struct event_base *base;
    struct http_server *srv;
    struct auth *auth;
    struct event *guard;
    struct client client[CLIENTS_MAX];
    struct http_call *held[4]; /* calls that wait for the test */
    size_t held_n;
    unsigned gone, drains, drained, ends;
    size_t got;
    bool pause;
    int refuse;
};

static void on_gone(void *user)
{
    ((struct app *)user)->gone++;
}

static void on_drain(void *user)
{
    ((struct app *)user)->drains++;
}

static void api_hello(struct http_call *c)
{
    struct buf b = BUF_INIT(100);

    http_set_header(c, "Server-Timing", "run;dur=1");
    http_set_header(c, "X-Bad", "a\r\nb");
    http_set_header(c, "Content-Length", "7");
    (void)buf_printf(&b, "hello %s", http_request(c)->param[0]);
    http_reply(c, 200, "text/plain", &b);
}

static void api_echo(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    struct buf b = BUF_INIT(1 << 20);

    (void)buf_put(&b, r->body, r->body_n);
    http_reply(c, 200, "application/octet-stream", &b);
}

static void api_hold(struct http_call *c)
{
    struct app *a = http_app(c);

    a->held[a->held_n++] = c;
    http_on_gone(c, on_gone, a);
}

static void api_hold_blind(struct http_call *c)
{
    struct app *a = http_app(c);

    a->held[a->held_n++] = c;
}

static void api_stream(struct http_call *c)
{
    api_hold(c);
    http_on_drain(c, on_drain, http_app(c));
    http_stream_begin(c, 200, "text/plain");
}

static int on_data(void *user, const char *p, size_t n)
{
    struct app *a = user;

    (void)p;
    a->got += n;
    if (a->pause)
        http_body_pause(a->held[0]);
    return a->refuse;
}

static void on_end(void *user)
{
    struct app *a = user;
    char text[40];

    a->ends++;
    (void)snprintf(text, sizeof text, "got %zu", a->got);
    http_reply_text(a->held[0], 200, text);
}

static void api_upload(struct http_call *c)
{
    api_hold(c);
    http_on_body(c, on_data, on_end, http_app(c));
}

static void api_file(struct http_call *c)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_int_equal(write(fd, "0123456789", 10), 10);
    http_reply_file(c, 200, "text/plain", fd, 2, 5);
}

/* Promises more than the file has. */
static void api_short_file(struct http_call *c)
{
    int fd = memfd_create("file", MFD_CLOEXEC);

    assert_int_equal(write(fd, "0123456789", 10), 10);
    http_reply_file(c, 200, "text/plain", fd, 0, 1000);
}

static void api_big(struct http_call *c)
{
    struct buf b = BUF_INIT(1 << 20);

    for (int i = 0; i < 30000; i++)
        (void)buf_puts(&b, "0123456789");
    http_reply(c, 200, "text/plain", &b);
}

static void api_error(struct http_call *c)
{
    struct err e;

    (void)err_set(&e, ERR_CALLER, "field 'x' is \"missing\"");
    http_reply_error(c, &e);
}

static uint64_t tiny(const struct app *a)
{
    (void)a;
    return 10;
}

static const struct route rows[] = {
    {"GET",  "/hello/*",   api_hello,      ROUTE_HEAD,                  "t", "h", NULL},
    {"POST", "/echo",      api_echo,       ROUTE_BODY,                  "t", "h", NULL},
    {"POST", "/tiny",      api_echo,       ROUTE_BODY,                  "t", "h", tiny},
    {"GET",  "/hold",      api_hold,       0,                           "t", "h", NULL},
    {"GET",  "/blind",     api_hold_blind, 0,                           "t", "h", NULL},
    {"GET",  "/stream",    api_stream,     ROUTE_STREAM | ROUTE_HEAD,   "t", "h", NULL},
    {"GET",  "/follow",    api_stream,     ROUTE_STREAM | ROUTE_FOLLOW, "t", "h", NULL},
    {"PUT",  "/upload",    api_upload,     ROUTE_BODY_STREAM,           "t", "h", NULL},
    {"GET",  "/file",      api_file,       ROUTE_HEAD,                  "t", "h", NULL},
    {"GET",  "/shortfile", api_short_file, 0,                           "t", "h", NULL},
    {"GET",  "/big",       api_big,        0,                           "t", "h", NULL},
    {"GET",  "/error",     api_error,      0,                           "t", "h", NULL},
    {"POST", "/secret",    api_echo,       ROUTE_AUTH | ROUTE_BODY,     "t", "h", NULL},
};
static const struct route plain_rows[] = {
    {"POST", "/koyeb", api_echo, ROUTE_AUTH | ROUTE_BODY, "t", "h", NULL},
};

/* ---- dialects ---- */

static const struct dialect first = {
    .name = "first",
    .routes = {rows, ARRAY_LEN(rows)},
    .traits = DIALECT_REQUEST_ID | DIALECT_ALLOW,
    .refuse = problem_refuse,
    .error = problem_error,
    .issues = problem_issues,
};
static const struct dialect plain = {
    .name = "plain",
    .routes = {plain_rows, ARRAY_LEN(plain_rows)},
    .prefix = "/koyeb-sandbox/",
    .traits = DIALECT_KEEP_ALIVE,
    .lenient = true,
    .refuse = koyeb_refuse,
    .error = koyeb_error,
    .issues = koyeb_issues,
};

/* A dialect that nobody speaks: all of it is here, and one row of dialects[]. */

static const char *key_of(const struct http_call *c)
{
    return http_header(c, "x-api-key");
}

/* "49999-<id>.strange.test", or a header that names it. */
static bool strange_claims(const struct app *a, const struct h1_head *h)
{
    const char *host = h1_field(h, "host");

    (void)a;
    return h1_field(h, "strange-id") || (host && strstr(host, ".strange.test"));
}

static void strange_reply(struct http_call *c, int status, struct buf *json)
{
    (void)buf_puts(json, "<!-- strange -->");
    http_reply(c, status, "application/json", json);
}

static void api_which(struct http_call *c)
{
    struct buf b = BUF_INIT(100);
    const char *id = http_header(c, "strange-id");

    (void)buf_printf(&b, "{\"at\":\"%s\"}", id ? id : http_header(c, "host"));
    http_reply_json(c, 200, &b);
}

static void strange_refuse(struct http_call *c, int status, const char *words)
{
    char text[32];

    (void)words;
    (void)snprintf(text, sizeof text, "<no why='%d'/>", status);
    http_reply_text(c, status, text);
}

static void strange_error(struct http_call *c, const struct err *e)
{
    (void)e;
    strange_refuse(c, 418, NULL);
}

struct strange_body {
    int64_t n;
};

static void strange_issues(struct http_call *c, const struct shaping *s)
{
    http_reply_text(c, 422, s->issues[0].msg);
}

static void api_strange(struct http_call *c)
{
    static const struct shape_field fields[] = {
        {"number", SHAPE_INT, SHAPE_REQUIRED, offsetof(struct strange_body, n), .help = "a number"},
    };
    static const struct shape shape = {fields, ARRAY_LEN(fields), 0, NULL};
    cleanup_with(shaping_done) struct shaping s;
    struct strange_body b;
    char text[64];

    if (!dialect_decode(c, &shape, &b, &s))
        return;
    (void)snprintf(text, sizeof text, "<n>%d</n>", (int)b.n);
    http_reply_text(c, 200, text);
}

static const struct route strange_rows[] = {
    {"POST", "/strange/n", api_strange, ROUTE_AUTH | ROUTE_BODY, "t", "h", NULL},
    {"GET",  "/which",     api_which,   ROUTE_AUTH,              "t", "h", NULL},
    {"GET",  "/echo",      api_which,   ROUTE_AUTH,              "t", "h", NULL},
};
static const struct dialect strange = {
    .name = "strange",
    .routes = {strange_rows, ARRAY_LEN(strange_rows)},
    .claims = strange_claims,
    .prefix = "/strange/",
    .secret = key_of,
    .reply = strange_reply,
    .refuse = strange_refuse,
    .error = strange_error,
    .issues = strange_issues,
};
static const struct dialect *const dialects[] = {&first, &plain, &strange, NULL};

static void on_guard(evutil_socket_t fd, short what, void *user)
{
    (void)fd;
    (void)what;
    (void)user;
    (void)fprintf(stderr, "a test waits for something that does not happen\n");
    abort();
}

static struct app *open_with(struct http_server_conf conf)
{
    struct app *a = calloc(1, sizeof *a);
    struct auth_conf ac = {.mode = AUTH_STATIC, .secret = "s3cret"};
    struct err e;

    assert_non_null(a);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        a->client[i].fd = -1;
    a->base = event_base_new();
    assert_int_equal(auth_open(&ac, &a->auth, &e), 0);
    conf.host = "127.0.0.1";
    conf.dialects = dialects;
    conf.auth = a->auth;
    if (http_server_open(a->base, &conf, a, &a->srv, &e) < 0)
        fail_msg("%s", e.text);
    a->guard = event_new(a->base, -1, 0, on_guard, a);
    (void)event_add(a->guard, &(struct timeval){GUARD_S, 0});
    return a;
}

static struct app *open_plain(void)
{
    return open_with((struct http_server_conf){.port = 0});
}

static void client_drop(struct client *k)
{
    if (k->fd < 0)
        return;
    event_free(k->ev);
    (void)close(k->fd);
    free(k->text);
    *k = (struct client){.fd = -1};
}

static void app_close(struct app *a)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        client_drop(&a->client[i]);
    http_server_free(a->srv);
    auth_free(a->auth);
    event_free(a->guard);
    event_base_free(a->base);
    free(a);
}

static void on_client(evutil_socket_t fd, short what, void *user)
{
    struct client *k = user;
    ssize_t n = recv(fd, k->text + k->n, ROOM - 1 - k->n, MSG_DONTWAIT);

    (void)what;
    if (n > 0) {
        k->n += (size_t)n;
        k->text[k->n] = '\0';
        return;
    }
    k->closed = true;
    k->reset = n < 0;
    (void)event_del(k->ev);
}

static struct client *client_open(struct app *a)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(http_server_port(a->srv))};
    struct client *k = a->client;

    while (k->fd >= 0)
        k++;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    k->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(k->fd, (struct sockaddr *)&at, sizeof at), 0);
    k->text = calloc(1, ROOM);
    assert_non_null(k->text);
    k->ev = event_new(a->base, k->fd, EV_READ | EV_PERSIST, on_client, k);
    (void)event_add(k->ev, NULL);
    return k;
}

static void put(struct client *k, const char *text)
{
    size_t n = strlen(text);

    assert_int_equal(send(k->fd, text, n, MSG_NOSIGNAL), n);
}

#define await(a, condition)                                                                        \
    while (!(condition))                                                                           \
    assert_int_not_equal(event_base_loop((a)->base, EVLOOP_ONCE), -1)

static size_t count(const char *text, const char *needle)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, needle)) != NULL; p += strlen(needle))
        n++;
    return n;
}

/* Sends a request on a new connection and waits until the server has closed it. */
static struct client *ask(struct app *a, const char *text)
{
    struct client *k = client_open(a);

    put(k, text);
    await(a, k->closed);
    assert_false(k->reset);
    return k;
}

static void expect_head(struct client *k, const char *line)
{
    if (strncmp(k->text, line, strlen(line)) != 0)
        fail_msg("'%s' instead of '%s'", k->text, line);
}

static void drop_rst(struct client *k)
{
    struct linger l = {1, 0};

    (void)setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    client_drop(k);
}

static void a_connection_is_kept_and_requests_answered_in_order(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "GET /hello/a%2Fb HTTP/1.1\r\nHost: x\r\nX-Request-Id: my-id\r\n\r\n");
    await(a, strstr(k->text, "hello a/b"));
    expect_head(k, "HTTP/1.1 200 OK\r\nDate: ");
    assert_non_null(strstr(k->text, "\r\nContent-Length: 9\r\n"));
    assert_non_null(strstr(k->text, "\r\nX-Request-Id: my-id\r\n"));
    assert_non_null(strstr(k->text, "\r\nServer-Timing: run;dur=1\r\n"));
    assert_null(strstr(k->text, "X-Bad"));
    assert_null(strstr(k->text, "\r\nServer:"));
    assert_null(strstr(k->text, "\r\nConnection:"));
    put(k, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none"
           "GET /hello/two HTTP/1.1\r\nHost: x\r\n\r\n"
           "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
           "2\r\nth\r\n3;x=y\r\nree\r\n0\r\nT: t\r\n\r\n"
           "GET /hello/four HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    await(a, k->closed);
    assert_int_equal(count(k->text, "HTTP/1.1 200 OK"), 5);
    assert_true(strstr(k->text, "\r\n\r\none") < strstr(k->text, "hello two"));
    assert_true(strstr(k->text, "hello two") < strstr(k->text, "\r\n\r\nthree"));
    assert_true(strstr(k->text, "\r\n\r\nthree") < strstr(k->text, "hello four"));
    assert_int_equal(http_server_counters(a->srv)->requests[2], 5);
    app_close(a);
}

static void a_slow_answer_holds_back_the_next(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /hello/b HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    assert_int_equal(k->n, 0);
    http_reply_text(a->held[0], 200, "first");
    await(a, strstr(k->text, "hello b"));
    assert_true(strstr(k->text, "first\n") < strstr(k->text, "hello b"));
    assert_int_equal(a->gone, 0);
    app_close(a);
}

static void heads_arrive_byte_by_byte(void **state)
{
    static const char text[] = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                               "Connection: close\r\n\r\nhello";
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        char one[2] = {text[i], '\0'};
        uint64_t before = http_server_counters(a->srv)->bytes_in;

        put(k, one);
        await(a, http_server_counters(a->srv)->bytes_in > before);
    }
    await(a, k->closed);
    assert_non_null(strstr(k->text, "\r\n\r\nhello"));
    app_close(a);
}

static void head_sends_no_body(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "HEAD /hello/abc HTTP/1.1\r\nHost: x\r\n\r\nHEAD /file HTTP/1.1\r\nHost: x\r\n\r\n"
           "GET /hello/end HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k->text, "hello end"));
    assert_non_null(strstr(k->text, "Content-Length: 9"));
    assert_non_null(strstr(k->text, "Content-Length: 5"));
    assert_null(strstr(k->text, "hello abc"));
    assert_null(strstr(k->text, "23456"));
    app_close(a);
}

static void the_table_answers_404_405_and_401(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = ask(a, "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 404 Not Found\r\n");
    assert_non_null(strstr(k->text, "\"detail\":\"Not Found\""));
    assert_non_null(strstr(k->text, "\"request_id\":\""));
    k = ask(a, "DELETE /hello/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 405 Method Not Allowed\r\n");
    assert_non_null(strstr(k->text, "\r\nAllow: GET, HEAD\r\n"));
    k = ask(a, "GET /secret HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 401 Unauthorized\r\n");
    assert_non_null(strstr(k->text, "\r\nWWW-Authenticate: Bearer realm=\"sandbox-executor\""));
    k = ask(a, "GET /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cret\r\n"
               "Connection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 405 ");
    app_close(a);
}

#define KEY                 "X-Api-Key: s3cret\r\n"
#define BODY(length)        "Content-Length: " length "\r\n\r\n"
#define STRANGE(line, rest) line " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" rest

#define HOST(line, rest) line " HTTP/1.1\r\nHost: 7-a.strange.test\r\nConnection: close\r\n" rest

static void a_dialect_speaks_for_itself(void **state)
{
    static const struct {
        const char *request, *answer;
    } rows_of[] = {
        {STRANGE("POST /strange/n", KEY BODY("12") "{\"number\":7}"),        "<n>7</n>\n"                         },
        {STRANGE("POST /strange/n", KEY BODY("12") "{\"numbre\":7}"),        "did you mean 'number'?"             },
        {STRANGE("POST /strange/n", "Authorization: Bearer s3cret\r\n\r\n"), "<no why='401'/>"                    },
        {STRANGE("GET /strange/n",  KEY "\r\n"),                             "<no why='405'/>"                    },
        {STRANGE("GET /strange/m",  "\r\n"),                                 "<no why='404'/>"                    },
        {HOST("GET /which",         KEY "\r\n"),                             "7-a.strange.test\"}<!-- strange -->"},
        {HOST("GET /which",         "\r\n"),                                 "<no why='401'/>"                    },
        {HOST("GET /hello/x",       KEY "\r\n"),                             "<no why='404'/>"                    },
        {HOST("POST /echo",         KEY "\r\n"),                             "<no why='405'/>"                    },
        {STRANGE("GET /echo",       KEY "Strange-Id: b\r\n\r\n"),            "{\"at\":\"b\"}"                     },
    };
    struct app *a = open_plain();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows_of); i++) {
        struct client *k = ask(a, rows_of[i].request);

        assert_non_null(strstr(k->text, rows_of[i].answer));
        assert_null(strstr(k->text, "X-Request-Id"));
        assert_null(strstr(k->text, "\r\nAllow:"));
        client_drop(k);
    }
    app_close(a);
}

static void the_koyeb_family_speaks_plain_text(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = ask(a, "POST /koyeb HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 401 Unauthorized\r\n");
    assert_non_null(strstr(k->text, "\r\n\r\nUnauthorized\n"));
    assert_non_null(strstr(k->text, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    assert_non_null(strstr(k->text, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_null(strstr(k->text, "WWW-Authenticate"));
    assert_null(strstr(k->text, "X-Request-Id"));
    k = ask(a, "GET /koyeb HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cret\r\n"
               "Connection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 405 ");
    assert_non_null(strstr(k->text, "\r\n\r\nMethod not allowed\n"));
    assert_null(strstr(k->text, "\r\nAllow:"));
    app_close(a);
}

static void an_error_is_an_object(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = ask(a, "GET /error HTTP/1.1\r\nHost: x\r\nX-Request-Id: r1\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 400 Bad Request\r\n");
    assert_non_null(strstr(k->text, "{\"error_code\":\"Executor.ValidationError\","
                                    "\"description\":\"Invalid value provided\","
                                    "\"error_detail\":\"field 'x' is \\\"missing\\\"\","));
    assert_non_null(strstr(k->text, "\"request_id\":\"r1\",\"detail\":[{"));
    app_close(a);
}

static void http_1_0_is_spoken(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = ask(a, "GET /hello/old HTTP/1.0\r\n\r\n");
    assert_non_null(strstr(k->text, "hello old"));
    k = client_open(a);
    put(k, "GET /hello/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    await(a, strstr(k->text, "hello 1"));
    assert_non_null(strstr(k->text, "\r\nConnection: keep-alive\r\n"));
    put(k, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    await(a, a->held_n == 1);
    (void)http_stream_write(a->held[0], "plain", 5);
    http_stream_end(a->held[0]);
    await(a, k->closed);
    assert_non_null(strstr(k->text, "\r\n\r\nplain"));
    assert_null(strstr(k->text, "chunked"));
    app_close(a);
}

/* Everything was sent before it ended, and HTTP/1.0 has no last chunk: there is nothing to wait for
 * but the closing. */
static void a_stream_of_http_1_0_ends_with_its_connection(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "GET /stream HTTP/1.0\r\n\r\n");
    await(a, a->held_n == 1);
    (void)http_stream_write(a->held[0], "all", 3);
    await(a, strstr(k->text, "\r\n\r\nall"));
    http_stream_end(a->held[0]);
    errno = EAGAIN; /* as somebody before may have left it */
    await(a, k->closed);
    app_close(a);
}

#define POST_CHUNKED(path) "POST " path " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static void framing_errors_are_answered_and_end_the_connection(void **state)
{
    /* clang-format off */
    static const struct {
        int status;
        const char *text;
    } bad[] = {
        {400, "G@T / HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {505, "GET / HTTP/3.0\r\nHost: x\r\n\r\n"},
        {400, "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET host:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n"},
        {501, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: x\r\n\r\n"},
        {400, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
        {400, POST_CHUNKED("/echo") "0x1\r\na\r\n"},
        {400, POST_CHUNKED("/echo") "1\r\nab\r\n"},
        {404, POST_CHUNKED("/nothing") "0x1\r\na\r\n"},
        {417, "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n"},
    };
    /* clang-format on */
    struct app *a = open_plain();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[512];
        struct client *k = client_open(a);

        /* A smuggled second request must not be answered. */
        (void)snprintf(text, sizeof text, "%sGET /hello/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
                       bad[i].text);
        put(k, text);
        (void)shutdown(k->fd, SHUT_WR);
        await(a, k->closed);
        (void)snprintf(text, sizeof text, "HTTP/1.1 %d ", bad[i].status);
        expect_head(k, text);
        assert_int_equal(count(k->text, "\r\nDate: "), 1);
        assert_non_null(strstr(k->text, "\r\nConnection: close\r\n"));
        client_drop(k);
    }
    app_close(a);
}

static void absolute_targets_are_understood(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = ask(a, "GET http://h:1/hello/abs?q HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(k->text, "hello abs"));
    k = ask(a, "GET http://h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    expect_head(k, "HTTP/1.1 404 ");
    app_close(a);
}

static void a_client_may_wait_for_permission(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    await(a, strstr(k->text, "HTTP/1.1 100 Continue\r\n\r\n"));
    put(k, "ok");
    await(a, strstr(k->text, "\r\n\r\nok"));
    client_drop(k);
    k = ask(a, "POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
               "Expect: 100-continue\r\n\r\n");
    expect_head(k, "HTTP/1.1 401 ");
    k = ask(a, "POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n"
               "Expect: 100-continue\r\n\r\n");
    expect_head(k, "HTTP/1.1 413 ");
    app_close(a);
}

static void bodies_beyond_the_limit_are_refused(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n0123456789"
           "POST /tiny HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
           "6\r\n012345\r\n5\r\n67890\r\n0\r\n\r\n");
    await(a, k->closed);
    assert_false(k->reset);
    expect_head(k, "HTTP/1.1 200 ");
    assert_non_null(strstr(k->text, "0123456789HTTP/1.1 413 Content Too Large\r\n"));
    assert_int_equal(http_server_counters(a->srv)->buffered, 0);
    app_close(a);
}

static void an_early_answer_survives_a_client_that_keeps_sending(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);
    char piece[4096];

    (void)state;
    memset(piece, 'x', sizeof piece);
    put(k, "POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 16; i++)
        assert_int_equal(send(k->fd, piece, sizeof piece, MSG_NOSIGNAL), sizeof piece);
    await(a, k->closed);
    assert_false(k->reset);
    expect_head(k, "HTTP/1.1 413 ");
    app_close(a);
}

static void the_rest_of_a_small_refused_body_is_skipped(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n");
    await(a, strstr(k->text, "HTTP/1.1 401"));
    assert_null(strstr(k->text, "Connection: close"));
    put(k, "GET /hello/smuggled GET /hello/next HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k->text, "hello next"));
    assert_null(strstr(k->text, "smuggled"));
    app_close(a);
}

static void a_stream_arrives_in_chunks_and_the_connection_lives_on(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);
    struct sse s;

    (void)state;
    put(k, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    sse_begin(&s, a->held[0]);
    await(a, strstr(k->text, "\r\n\r\n"));
    assert_non_null(strstr(k->text, "\r\nContent-Type: text/event-stream\r\n"));
    assert_non_null(strstr(k->text, "\r\nTransfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(k->text, "\r\nCache-Control: no-cache\r\n"));
    assert_int_equal(http_server_counters(a->srv)->streams, 1);
    assert_true(sse_send(&s, "output", NULL, "{\"a\":1}", 7));
    assert_true(sse_send(&s, "x\ny", "7", "{\n}", 3));
    await(a, strstr(k->text, "data: }\n\n"));
    assert_non_null(strstr(k->text, "1d\r\nevent: output\ndata: {\"a\":1}\n\n\r\n"));
    assert_non_null(strstr(k->text, "event: x\nid: 7\ndata: {\ndata: }\n\n\r\n"));
    sse_end(&s);
    put(k, "GET /hello/after HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k->text, "hello after"));
    assert_non_null(strstr(k->text, "\r\n0\r\n\r\nHTTP/1.1 200"));
    assert_int_equal(http_server_counters(a->srv)->streams, 0);
    assert_int_equal(a->gone, 0);
    app_close(a);
}

static void a_writer_is_told_to_stop_and_to_go_on(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);
    static char block[16 * 1024];
    size_t written = 0;

    (void)state;
    put(k, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1 && strstr(k->text, "\r\n\r\n"));
    (void)event_del(k->ev); /* the client stops reading */
    for (unsigned stopped = 0; stopped < 100;) {
        unsigned drains = a->drains;

        if (http_stream_write(a->held[0], block, sizeof block) < HTTP_STREAM_HIGH)
            written += sizeof block;
        else
            stopped++;
        (void)event_base_loop(a->base, EVLOOP_NONBLOCK);
        if (a->drains == drains && stopped > 0)
            break;
    }
    assert_true(written > 0);
    a->drains = 0;
    k->n = 0;
    (void)event_add(k->ev, NULL);
    while (a->drains == 0) {
        k->n = 0;
        (void)event_base_loop(a->base, EVLOOP_ONCE);
    }
    app_close(a);
}

static void gone_clients_are_noticed(void **state)
{
    struct app *a = open_plain();
    struct client *k;

    (void)state;
    k = client_open(a);
    put(k, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    (void)shutdown(k->fd, SHUT_WR); /* half-closed counts */
    await(a, a->gone == 1);
    k = client_open(a);
    put(k, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 2);
    client_drop(k);
    await(a, a->gone == 2);
    k = client_open(a);
    put(k, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 3);
    drop_rst(k);
    await(a, a->gone == 3);
    assert_int_equal(http_server_counters(a->srv)->gone, 3);
    assert_int_equal(http_server_counters(a->srv)->streams, 0);
    app_close(a);
}

/* More input than is read ahead: nothing is read any more, the watch must see the end. */
static void gone_clients_are_noticed_behind_unread_input(bool reset)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);
    static char junk[40 * 1024];

    put(k, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    memset(junk, 'G', sizeof junk);
    assert_int_equal(send(k->fd, junk, sizeof junk, MSG_NOSIGNAL), sizeof junk);
    await(a, http_server_counters(a->srv)->bytes_in > 16 * 1024);
    (void)event_base_loop(a->base, EVLOOP_NONBLOCK);
    if (reset)
        drop_rst(k);
    else
        (void)shutdown(k->fd, SHUT_WR);
    await(a, a->gone == 1);
    app_close(a);
}

static void half_close_is_noticed_behind_unread_input(void **state)
{
    (void)state;
    gone_clients_are_noticed_behind_unread_input(false);
}

static void reset_is_noticed_behind_unread_input(void **state)
{
    (void)state;
    gone_clients_are_noticed_behind_unread_input(true);
}

static void a_call_nobody_watches_stays_valid(void **state)
{
    struct app *a = open_plain();

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct client *k = client_open(a);

        put(k, "GET /blind HTTP/1.1\r\nHost: x\r\n\r\n");
        await(a, a->held_n == i + 1);
        drop_rst(k);
    }
    await(a, http_server_counters(a->srv)->gone == 2);
    assert_string_equal(http_request(a->held[0])->path, "/blind");
    http_reply_text(a->held[0], 200, "to nobody");
    app_close(a); /* one orphan was answered, the other is not: neither may leak */
}

static void what_goes_on_anyway_is_answered_to_who_only_closed_its_side(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "GET /blind HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    (void)shutdown(k->fd, SHUT_WR);
    for (int i = 0; i < 3; i++)
        (void)event_base_loop(a->base, EVLOOP_NONBLOCK); /* its end is heard */
    http_reply_text(a->held[0], 200, "all the same");
    await(a, k->closed);
    assert_non_null(strstr(k->text, "all the same\n"));
    app_close(a);
}

static void uploads_stream_and_pause(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);
    static char block[100 * 1024];

    (void)state;
    a->pause = true;
    put(k, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 102401\r\n\r\nx");
    await(a, a->got == 1);
    assert_int_equal(send(k->fd, block, sizeof block, MSG_NOSIGNAL), sizeof block);
    (void)event_base_loop(a->base, EVLOOP_NONBLOCK);
    assert_int_equal(a->got, 1);
    a->pause = false;
    http_body_resume(a->held[0]);
    await(a, strstr(k->text, "got 102401\n"));
    assert_int_equal(a->ends, 1);
    put(k, "GET /hello/again HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k->text, "hello again"));
    app_close(a);
}

static void a_pause_at_the_last_byte_delays_the_end(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    a->pause = true;
    put(k, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    await(a, a->got == 3);
    (void)event_base_loop(a->base, EVLOOP_NONBLOCK);
    assert_int_equal(a->ends, 0);
    http_body_resume(a->held[0]);
    await(a, strstr(k->text, "got 3\n"));
    app_close(a);
}

static void a_paused_upload_notices_the_end_of_its_client(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    a->pause = true;
    put(k, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    await(a, a->got == 3);
    drop_rst(k);
    await(a, a->gone == 1);
    assert_int_equal(a->ends, 0);
    app_close(a);
}

static void a_handler_may_refuse_in_the_middle(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    a->refuse = 507;
    put(k, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
    await(a, k->closed);
    expect_head(k, "HTTP/1.1 507 ");
    assert_int_equal(a->gone, 0);
    assert_int_equal(a->ends, 0);
    app_close(a);
}

static void files_are_sent_and_a_shrunken_one_ends_the_connection(void **state)
{
    struct app *a = open_plain();
    struct client *k = client_open(a);

    (void)state;
    put(k, "GET /file HTTP/1.1\r\nHost: x\r\n\r\nGET /hello/f HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k->text, "hello f"));
    assert_non_null(strstr(k->text, "\r\n\r\n23456HTTP/1.1 200 OK"));
    put(k, "GET /shortfile HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, k->closed);
    assert_non_null(strstr(k->text, "0123456789"));
    app_close(a);
}

static void a_head_has_a_deadline(void **state)
{
    struct app *a = open_with((struct http_server_conf){.head_ms = 100, .idle_ms = 100});
    struct client *slow = client_open(a), *mute = client_open(a), *idle = client_open(a);

    (void)state;
    put(slow, "GET / HTTP/1.1\r\nHost");
    put(idle, "GET /hello/i HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, slow->closed && mute->closed && idle->closed);
    expect_head(slow, "HTTP/1.1 408 ");
    assert_int_equal(mute->n, 0);
    expect_head(idle, "HTTP/1.1 200 ");
    assert_int_equal(count(idle->text, "HTTP/1.1"), 1);
    app_close(a);
}

static void a_body_has_a_least_rate(void **state)
{
    struct app *a = open_with((struct http_server_conf){.body_window_ms = 100, .body_rate = 10});
    struct client *slow = client_open(a), *upload = client_open(a);

    (void)state;
    put(slow, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    put(upload, "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    await(a, slow->closed && upload->closed);
    expect_head(slow, "HTTP/1.1 408 ");
    expect_head(upload, "HTTP/1.1 408 ");
    assert_int_equal(a->gone, 1);
    app_close(a);
}

static void a_client_that_takes_nothing_is_dropped(void **state)
{
    struct app *a = open_with((struct http_server_conf){.stall_ms = 100});
    struct client *k = client_open(a);
    static char block[1 << 20];

    (void)state;
    put(k, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    (void)event_del(k->ev);
    for (int i = 0; i < 20; i++)
        (void)http_stream_write(a->held[0], block, sizeof block);
    await(a, a->gone == 1);
    app_close(a);
}

static void connections_beyond_the_limit_hear_why(void **state)
{
    struct app *a = open_with((struct http_server_conf){.connections_max = 2});
    struct client *one = client_open(a), *two = client_open(a), *three;

    (void)state;
    put(one, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    put(two, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 2);
    three = client_open(a);
    await(a, three->closed);
    expect_head(three, "HTTP/1.1 503 ");
    assert_non_null(strstr(three->text, "\r\nRetry-After: 1\r\n"));
    assert_false(one->closed);
    client_drop(two);
    await(a, http_server_counters(a->srv)->open == 1);
    two = client_open(a);
    put(two, "GET /hello/2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(two->text, "hello 2"));
    app_close(a);
}

static void the_longest_idle_connection_gives_way(void **state)
{
    struct app *a = open_with((struct http_server_conf){.connections_max = 3});
    struct client *k[4];

    (void)state;
    for (int i = 0; i < 3; i++) {
        k[i] = client_open(a);
        put(k[i], "GET /hello/1 HTTP/1.1\r\nHost: x\r\n\r\n");
        await(a, strstr(k[i]->text, "hello 1"));
    }
    put(k[0], "GET /hello/2 HTTP/1.1\r\nHost: x\r\n\r\n"); /* the second is the oldest now */
    await(a, strstr(k[0]->text, "hello 2"));
    k[3] = client_open(a);
    put(k[3], "GET /hello/3 HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(k[3]->text, "hello 3"));
    await(a, k[1]->closed);
    assert_false(k[0]->closed || k[2]->closed);
    assert_int_equal(http_server_counters(a->srv)->gave_way, 1);
    app_close(a);
}

/* Half a head is no request: who sends it byte by byte has been idle since it connected. */
static void bytes_that_trickle_in_keep_no_place(void **state)
{
    struct app *a = open_with((struct http_server_conf){.connections_max = 2});
    struct client *slow = client_open(a), *two, *three;
    uint64_t before;

    (void)state;
    put(slow, "GET /hello/1 HT");
    await(a, http_server_counters(a->srv)->bytes_in == 15);
    two = client_open(a);
    put(two, "GET /hello/2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(two->text, "hello 2"));
    before = http_server_counters(a->srv)->bytes_in;
    put(slow, "TP/1.1\r\n");
    await(a, http_server_counters(a->srv)->bytes_in == before + 8);
    three = client_open(a);
    put(three, "GET /hello/3 HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(three->text, "hello 3"));
    await(a, slow->closed);
    assert_false(two->closed);
    app_close(a);
}

static const char secret_post[] =
    "POST /secret HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cret\r\n"
    "Content-Length: 2\r\n\r\nhi";

/* Four places, one of them for those who have shown the secret. */
static void a_share_is_for_those_with_the_secret(void **state)
{
    struct app *a = open_with((struct http_server_conf){.connections_max = 4});
    struct client *k[5], *trusted = client_open(a);

    (void)state;
    put(trusted, secret_post);
    await(a, strstr(trusted->text, "hi"));
    for (int i = 0; i < 3; i++) {
        k[i] = client_open(a);
        put(k[i], "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    await(a, a->held_n == 3);
    k[3] = client_open(a); /* nobody is idle but the one with the secret, who stays */
    await(a, k[3]->closed);
    expect_head(k[3], "HTTP/1.1 503 ");
    assert_false(trusted->closed);
    client_drop(trusted);
    await(a, http_server_counters(a->srv)->open == 3);
    k[3] = client_open(a); /* its place is free: it may be taken by the secret only */
    put(k[3], "GET /hello/1 HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, k[3]->closed);
    expect_head(k[3], "HTTP/1.1 503 ");
    trusted = client_open(a);
    put(trusted, secret_post);
    await(a, strstr(trusted->text, "hi"));
    app_close(a);
}

/* Without a pause the loop would turn as fast as it can while connections wait in the backlog. */
static void running_out_of_descriptors_pauses_and_recovers(void **state)
{
    int fds[2];
    struct log log = {.level = LOG_WARN, .json = true};
    struct rlimit old, low;
    struct app *a;
    struct client *k;
    char text[4096];
    unsigned turns = 0;

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    log.fd = fds[1];
    a = open_with((struct http_server_conf){.log = &log});
    k = client_open(a);
    put(k, "GET /hello/late HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){(rlim_t)k->fd + 1, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (size_t n = 0; n < 3;) {
        ssize_t got;

        assert_int_not_equal(event_base_loop(a->base, EVLOOP_ONCE), -1);
        turns++;
        while ((got = read(fds[0], text, sizeof text - 1)) > 0) {
            text[got] = '\0';
            n += count(text, "accept_paused");
        }
    }
    assert_true(turns < 20);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    await(a, strstr(k->text, "hello late"));
    app_close(a);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void bodies_in_memory_are_bounded_together(void **state)
{
    struct app *a = open_with((struct http_server_conf){.buffered_max = 100});
    struct client *one = client_open(a), *two;

    (void)state;
    put(one, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n"
             "0123456789012345678901234567890123456789012345678901234567890123456789");
    await(a, http_server_counters(a->srv)->buffered == 70);
    two = client_open(a);
    put(two, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\n\r\n"
             "0123456789012345678901234567890");
    await(a, strstr(two->text, "\r\n\r\n"));
    expect_head(two, "HTTP/1.1 503 ");
    put(one, "01234567890123456789");
    await(a, strstr(one->text, "HTTP/1.1 200 "));
    app_close(a);
}

/* A client that sends requests for large answers and never reads: nothing piles up here. */
static void pipelining_without_reading_fills_no_memory(void **state)
{
    static const char ask_big[] = "GET /big HTTP/1.1\r\nHost: x\r\n\r\n";
    struct app *a = open_plain();
    struct client *k = client_open(a);
    size_t sent = 0;

    (void)state;
    (void)event_del(k->ev);
    for (int quiet = 0; quiet < 50 && sent < (64u << 20);) {
        ssize_t n = send(k->fd, ask_big, sizeof ask_big - 1, MSG_NOSIGNAL | MSG_DONTWAIT);

        assert_true(n > 0 || errno == EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        quiet = n > 0 ? 0 : quiet + 1;
        (void)event_base_loop(a->base, EVLOOP_NONBLOCK);
    }
    assert_true(sent < (64u << 20));
    assert_true(http_server_counters(a->srv)->requests[2] < 100);
    app_close(a);
}

static void on_drained(void *user)
{
    ((struct app *)user)->drained++;
}

static void shutdown_is_graceful(void **state)
{
    struct app *a = open_plain();
    struct client *idle = client_open(a), *busy = client_open(a), *stream = client_open(a);
    struct client *follow = client_open(a), *stuck = client_open(a), *part = client_open(a);
    struct client *late = client_open(a);

    (void)state;
    put(idle, "GET /hello/i HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, strstr(idle->text, "hello i"));
    put(busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 1);
    put(stream, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 2);
    put(follow, "GET /follow HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 3);
    put(stuck, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    await(a, a->held_n == 4);
    put(part, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
    put(late, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na");
    await(a, http_server_counters(a->srv)->buffered == 3);
    http_server_drain(a->srv, 300, on_drained, a);
    await(a, idle->closed && follow->closed);
    expect_head(follow, "HTTP/1.1 200 ");
    assert_null(strstr(follow->text, "\r\n0\r\n\r\n")); /* it is not whole */
    assert_int_equal(a->gone, 1);
    http_reply_text(a->held[0], 200, "done");
    put(part, "cd");
    await(a, busy->closed && part->closed);
    assert_non_null(strstr(busy->text, "done\n"));
    assert_non_null(strstr(busy->text, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(part->text, "\r\n\r\nabcd"));
    (void)http_stream_write(a->held[1], "tail", 4);
    await(a, a->drained == 1);
    assert_int_equal(a->gone, 3);
    await(a, stream->closed && stuck->closed && late->closed);
    assert_non_null(strstr(stream->text, "4\r\ntail\r\n"));
    assert_null(strstr(stream->text, "\r\n0\r\n\r\n"));
    assert_int_equal(stuck->n, 0); /* it had begun: nobody may be told to ask again */
    expect_head(late, "HTTP/1.1 503 ");
    assert_int_equal(http_server_counters(a->srv)->open, 0);
    app_close(a);
}

static void shutdown_without_connections_is_reported_too(void **state)
{
    struct app *a = open_plain();

    (void)state;
    http_server_drain(a->srv, 10000, on_drained, a);
    await(a, a->drained == 1);
    app_close(a);
}

static void every_address_means_both_families(void **state)
{
    struct http_server_conf conf = {.host = "", .dialects = dialects};
    struct event_base *base = event_base_new();
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct http_server *s = NULL, *second = NULL;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct err e;

    (void)state;
    assert_int_equal(http_server_open(base, &conf, NULL, &s, &e), 0);
    assert_int_not_equal(http_server_port(s), 0);
    at.sin_port = htons(http_server_port(s));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    conf.port = http_server_port(s);
    assert_int_equal(http_server_open(base, &conf, NULL, &second, &e), -1);
    assert_int_equal(e.sys, EADDRINUSE);
    assert_null(second);
    conf.host = "not an address";
    assert_int_equal(http_server_open(base, &conf, NULL, &second, &e), -1);
    (void)close(fd);
    http_server_free(s);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_kept_and_requests_answered_in_order),
        cmocka_unit_test(a_slow_answer_holds_back_the_next),
        cmocka_unit_test(heads_arrive_byte_by_byte),
        cmocka_unit_test(head_sends_no_body),
        cmocka_unit_test(the_table_answers_404_405_and_401),
        cmocka_unit_test(a_dialect_speaks_for_itself),
        cmocka_unit_test(the_koyeb_family_speaks_plain_text),
        cmocka_unit_test(an_error_is_an_object),
        cmocka_unit_test(http_1_0_is_spoken),
        cmocka_unit_test(a_stream_of_http_1_0_ends_with_its_connection),
        cmocka_unit_test(framing_errors_are_answered_and_end_the_connection),
        cmocka_unit_test(absolute_targets_are_understood),
        cmocka_unit_test(a_client_may_wait_for_permission),
        cmocka_unit_test(bodies_beyond_the_limit_are_refused),
        cmocka_unit_test(an_early_answer_survives_a_client_that_keeps_sending),
        cmocka_unit_test(the_rest_of_a_small_refused_body_is_skipped),
        cmocka_unit_test(a_stream_arrives_in_chunks_and_the_connection_lives_on),
        cmocka_unit_test(a_writer_is_told_to_stop_and_to_go_on),
        cmocka_unit_test(gone_clients_are_noticed),
        cmocka_unit_test(half_close_is_noticed_behind_unread_input),
        cmocka_unit_test(reset_is_noticed_behind_unread_input),
        cmocka_unit_test(a_call_nobody_watches_stays_valid),
        cmocka_unit_test(what_goes_on_anyway_is_answered_to_who_only_closed_its_side),
        cmocka_unit_test(uploads_stream_and_pause),
        cmocka_unit_test(a_pause_at_the_last_byte_delays_the_end),
        cmocka_unit_test(a_paused_upload_notices_the_end_of_its_client),
        cmocka_unit_test(a_handler_may_refuse_in_the_middle),
        cmocka_unit_test(files_are_sent_and_a_shrunken_one_ends_the_connection),
        cmocka_unit_test(a_head_has_a_deadline),
        cmocka_unit_test(a_body_has_a_least_rate),
        cmocka_unit_test(a_client_that_takes_nothing_is_dropped),
        cmocka_unit_test(connections_beyond_the_limit_hear_why),
        cmocka_unit_test(the_longest_idle_connection_gives_way),
        cmocka_unit_test(bytes_that_trickle_in_keep_no_place),
        cmocka_unit_test(a_share_is_for_those_with_the_secret),
        cmocka_unit_test(running_out_of_descriptors_pauses_and_recovers),
        cmocka_unit_test(bodies_in_memory_are_bounded_together),
        cmocka_unit_test(pipelining_without_reading_fills_no_memory),
        cmocka_unit_test(shutdown_is_graceful),
        cmocka_unit_test(shutdown_without_connections_is_reported_too),
        cmocka_unit_test(every_address_means_both_families),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
