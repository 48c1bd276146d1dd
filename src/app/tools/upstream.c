/* SPDX-License-Identifier: MIT */
#include "app/tools/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/jw.h"
#include "base/utf8.h"
#include "core/shape.h"
#include "function/portable.h"
#include "net/http_client.h"
#include "net/webhook_rules.h"

enum {
    ARGUMENT_MAX = 2048, /* bytes of one that goes into the address */
    ROOM = 4096,
    ESCAPE_FACTOR = 6,
    MS_PER_S = 1000,
    US_PER_S = 1000000,
    CONNECT_MS = 5000,
    SHOWN_MAX = 300, /* bytes of a refusal that the code is told */
    RATE_MAX = 1000000,
};

struct upstream {
    struct upstreams *all; /* borrowed */
    char name[UPSTREAM_NAME_MAX + 1];
    char base[HTTP_URL_MAX];
    char *lines[UPSTREAM_LINES_MAX + 1]; /* owned: header lines, with secrets */
    bool private;                        /* loopback and private addresses are meant */
    int64_t timeout_s;
    int64_t rate; /* calls in a minute; 0: any number */
    int64_t called;
    uint64_t minute_us; /* when it began */
};

struct upstream_tool {
    struct upstream *at; /* borrowed */
    char name[2 * UPSTREAM_NAME_MAX + 2];
    struct bytes method, path;
    struct shape_strings query; /* names of arguments that go there */
    struct json_value schema;
    struct buf description; /* owned: JSON */
};

struct upstreams {
    struct app *app;      /* borrowed */
    struct buf text;      /* owned: the file */
    struct shaping *kept; /* owned: what the tools point to, one of each */
    size_t kept_n;
    struct upstream *v; /* owned */
    size_t n;
    struct upstream_tool *tools; /* owned */
    size_t tools_n;
    struct webhook_rules rules; /* none: only the kind of an address counts */
    struct http_client *client; /* owned */
};

struct upstream_call {
    struct upstream_tool *tool; /* borrowed */
    struct http_post *post;     /* under way */
    struct buf url, body;       /* owned */
    upstream_done_fn *done;
    void *user;
};

/* ---- the file ---- */

struct upstream_body {
    struct bytes name, type, base, rate;
    struct shape_strings headers;
    int64_t timeout_s;
    bool private;
    struct json_value tools;
};
struct tool_body {
    struct bytes name, description, method, path;
    struct shape_strings query;
    struct json_value schema;
};

/* clang-format off */
#define AT(member) offsetof(struct upstream_body, member)
static const struct shape_field upstream_fields[] = {
    {"name", SHAPE_STRING, SHAPE_REQUIRED, AT(name)},
    {"type", SHAPE_STRING, SHAPE_REQUIRED, AT(type)},
    {"base", SHAPE_STRING, SHAPE_REQUIRED, AT(base)},
    {"headers", SHAPE_STRINGS, 0, AT(headers), .max = UPSTREAM_LINES_MAX},
    {"timeout", SHAPE_INT, 0, AT(timeout_s), 1, UPSTREAM_TIMEOUT_MAX_S},
    {"rate", SHAPE_STRING, 0, AT(rate)},
    {"private", SHAPE_BOOL, 0, AT(private)},
    {"tools", SHAPE_RAW, SHAPE_REQUIRED, AT(tools), .accepts = BIT(JSON_ARRAY)},
};
#undef AT
#define AT(member) offsetof(struct tool_body, member)
static const struct shape_field tool_fields[] = {
    {"name", SHAPE_STRING, SHAPE_REQUIRED, AT(name)},
    {"description", SHAPE_STRING, 0, AT(description)},
    {"method", SHAPE_STRING, 0, AT(method)},
    {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path)},
    {"query", SHAPE_LIST, 0, AT(query)},
    {"inputSchema", SHAPE_RAW, SHAPE_REQUIRED, AT(schema), .accepts = BIT(JSON_OBJECT)},
};
#undef AT
/* clang-format on */
static const struct shape upstream_shape = {upstream_fields, ARRAY_LEN(upstream_fields), 0, NULL};
static const struct shape tool_shape = {tool_fields, ARRAY_LEN(tool_fields), 0, NULL};

/* Its strings stay until the end. */
static int keep_shape(struct upstreams *u, const struct shape *shape, struct json_value v,
                      void *target, struct err *e)
{
    struct shaping *more = reallocarray(u->kept, u->kept_n + 1, sizeof *more);

    if (!more)
        return err_set(e, ERR_HOST, "out of memory");
    u->kept = more;
    more += u->kept_n++;
    shaping_init(more, NULL);
    if (shaping_reserve(more, v.n) < 0 || shape_value(shape, v, NULL, target, more) < 0)
        return shape_err(more, e);
    return 0;
}

static int secret_of_file(const char *path, struct buf *out, struct err *e)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[UPSTREAM_SECRET_MAX];
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, sizeof text);

    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    if (n <= 0)
        return err_set(e, ERR_CALLER, "'%.200s' holds no secret", path);
    (void)buf_put(out, text, (size_t)n);
    explicit_bzero(text, sizeof text);
    return 0;
}

/* ${env:NAME} and ${file:PATH} become what they name. */
static int put_value(struct bytes value, struct buf *out, struct err *e)
{
    for (size_t i = 0; i < value.n;) {
        const char *end = memchr(value.p + i, '}', value.n - i);
        char name[UPSTREAM_SECRET_MAX];
        const char *text;

        if (value.n - i < 3 || strncmp(value.p + i, "${", 2) != 0 || !end) {
            (void)buf_putc(out, value.p[i++]);
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - value.p - (ssize_t)i - 2),
                       value.p + i + 2);
        i = (size_t)(end - value.p) + 1;
        if (strncmp(name, "file:", 5) == 0) {
            if (secret_of_file(name + 5, out, e) < 0)
                return -1;
        } else {
            text = strncmp(name, "env:", 4) == 0 ? getenv(name + 4) : NULL;
            if (!text || !*text)
                return err_set(e, ERR_CALLER, "'${%.100s}' names no secret", name);
            (void)buf_puts(out, text);
        }
    }
    return 0;
}

static int take_lines(struct upstream *at, const struct shape_strings *headers, struct err *e)
{
    for (size_t i = 0; i < headers->n; i++) {
        cleanup_with(buf_done) struct buf line = BUF_INIT(UPSTREAM_SECRET_MAX);

        (void)buf_printf(&line, "%s: ", headers->v[i].name.p);
        if (put_value(headers->v[i].value, &line, e) < 0)
            return -1;
        if (line.failed || strlen(line.p) != line.n || strpbrk(line.p, "\r\n"))
            return err_set(e, ERR_CALLER, "header '%.64s' is malformed", headers->v[i].name.p);
        at->lines[i] = strdup(line.p);
        explicit_bzero(line.p, line.n);
        if (!at->lines[i])
            return err_set(e, ERR_HOST, "out of memory");
    }
    return 0;
}

/* "60/min" */
static int take_rate(struct upstream *at, struct bytes rate, struct err *e)
{
    char *end;

    if (!rate.p)
        return 0;
    at->rate = strtoll(rate.p, &end, 10);
    if (end == rate.p || strcmp(end, "/min") != 0 || at->rate < 1 || at->rate > RATE_MAX)
        return err_set(e, ERR_CALLER, "rate: should be like \"60/min\"");
    return 0;
}

static bool method_is_good(struct bytes m)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(m.p, methods[i]) == 0)
            return true;
    return false;
}

/* Whose words these are is said. */
static void write_description(struct upstream_tool *t, struct bytes words)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(words.n + ROOM);
    struct jw w = JW(&t->description);

    (void)buf_put(&text, words.p ? words.p : "", words.n);
    if (text.n > UPSTREAM_WORDS_MAX)
        text.n = utf8_truncate(text.p, text.n, UPSTREAM_WORDS_MAX);
    (void)buf_printf(&text, "%s(upstream %s)", text.n > 0 ? " " : "", t->at->name);
    t->description = BUF_INIT(ESCAPE_FACTOR * text.n + ROOM);
    jw_bytes(&w, text.p ? text.p : "", text.n);
}

static int take_tool(struct upstream *at, struct json_value v, struct err *e)
{
    struct upstreams *u = at->all;
    struct tool_body b = {0};
    struct upstream_tool *t, *more;

    if (keep_shape(u, &tool_shape, v, &b, e) < 0)
        return -1;
    if (!portable_name_is_good(b.name.p, b.name.n))
        return err_set(e, ERR_CALLER, "tools: name: 1 to 64 letters, digits, _ and -");
    if (!b.method.p)
        b.method = (struct bytes){"GET", 3};
    if (!method_is_good(b.method) || b.path.p[0] != '/')
        return err_set(e, ERR_CALLER,
                       "tools: '%.64s': method should be GET, POST, PUT, PATCH or DELETE, path "
                       "should begin with a slash",
                       b.name.p);
    more = reallocarray(u->tools, u->tools_n + 1, sizeof *more);
    if (!more)
        return err_set(e, ERR_HOST, "out of memory");
    u->tools = more;
    t = &more[u->tools_n++];
    *t = (struct upstream_tool){
        .at = at, .method = b.method, .path = b.path, .query = b.query, .schema = b.schema};
    (void)snprintf(t->name, sizeof t->name, "%s.%s", at->name, b.name.p);
    write_description(t, b.description);
    return 0;
}

static int take_upstream(struct upstreams *u, struct json_value v, struct err *e)
{
    struct upstream *at = &u->v[u->n];
    struct upstream_body b = {.timeout_s = UPSTREAM_TIMEOUT_S};
    struct json_value tool;
    struct http_url url;
    size_t i = 0, n = 0;

    if (keep_shape(u, &upstream_shape, v, &b, e) < 0)
        return -1;
    if (!portable_name_is_good(b.name.p, b.name.n))
        return err_set(e, ERR_CALLER, "name: 1 to 64 letters, digits, _ and -");
    u->n++;
    at->all = u;
    at->timeout_s = b.timeout_s;
    at->private = b.private;
    (void)snprintf(at->name, sizeof at->name, "%s", b.name.p);
    if (strcmp(b.type.p, "http") != 0)
        return err_set(e, ERR_CALLER, "type: should be http");
    if (http_url_check(b.base.p, e) < 0 || http_url_parse(b.base.p, &url, e) < 0)
        return err_wrap(e, "base");
    (void)snprintf(at->base, sizeof at->base, "%s", url.url);
    for (size_t end = strlen(at->base); end > 0 && at->base[end - 1] == '/';)
        at->base[--end] = '\0';
    if (take_lines(at, &b.headers, e) < 0 || take_rate(at, b.rate, e) < 0)
        return -1;
    while (json_array_next(b.tools, &i, &tool))
        if (++n > UPSTREAM_TOOLS_MAX)
            return err_set(e, ERR_CALLER, "tools: more than %d", UPSTREAM_TOOLS_MAX);
        else if (take_tool(at, tool, e) < 0)
            return -1;
    return 0;
}

static int read_text(struct upstreams *u, const char *path, struct err *e)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, -errno, "MCP_UPSTREAMS: open '%.300s'", path);
    u->text = BUF_INIT(UPSTREAM_FILE_MAX);
    if (st.st_size >= UPSTREAM_FILE_MAX || buf_reserve(&u->text, (size_t)st.st_size + 1) < 0 ||
        fd_read_full(fd, u->text.p, (size_t)st.st_size) != st.st_size)
        return err_set(e, ERR_HOST, "MCP_UPSTREAMS: '%.300s' cannot be read", path);
    u->text.n = (size_t)st.st_size;
    return 0;
}

static int read_file(struct upstreams *u, const char *path, struct err *e)
{
    struct json_value all, list, one;
    size_t at = 0, n = 0;

    if (read_text(u, path, e) < 0)
        return -1;
    if (json_parse(u->text.p, u->text.n, 0, &all, e) < 0)
        return err_wrap(e, "MCP_UPSTREAMS: '%.200s'", path);
    list = json_member(all, "upstreams");
    if (!list.p || list.type != JSON_ARRAY)
        return err_set(e, ERR_CALLER, "MCP_UPSTREAMS: '%.200s' has no array 'upstreams'", path);
    while (json_array_next(list, &at, &one))
        n++;
    if (n > UPSTREAMS_MAX)
        return err_set(e, ERR_CALLER, "MCP_UPSTREAMS: more than %d", UPSTREAMS_MAX);
    u->v = calloc(n + 1, sizeof *u->v);
    if (!u->v)
        return err_set(e, ERR_HOST, "out of memory");
    for (at = 0; json_array_next(list, &at, &one);)
        if (take_upstream(u, one, e) < 0)
            return err_wrap(e, "MCP_UPSTREAMS: upstream %zu", u->n);
    return 0;
}

/* ---- opening ---- */

/* A name may stand for an address of this host or of its neighbours. */
static bool is_allowed(void *user, const struct sockaddr *to)
{
    const struct upstream_call *c = user;
    const struct upstream *at = c->tool->at;

    return webhook_rules_address(&at->all->rules, at->private ? WEBHOOK_PRIVATE : WEBHOOK_PUBLIC,
                                 to);
}

int upstreams_open(struct app *a, struct upstreams **ret, struct err *e)
{
    const struct http_client_conf conf = {.connections_max = UPSTREAM_CONNECTIONS_MAX,
                                          .connect_ms = CONNECT_MS,
                                          .answer_ms = UPSTREAM_TIMEOUT_MAX_S * MS_PER_S,
                                          .allow = is_allowed};
    struct upstreams *u;

    *ret = NULL;
    if (!a->config.mcp_upstreams[0])
        return 0;
    u = calloc(1, sizeof *u);
    if (!u)
        return err_set(e, ERR_HOST, "out of memory");
    u->app = a;
    if (read_file(u, a->config.mcp_upstreams, e) < 0 ||
        http_client_open(a->base, &conf, &u->client, e) < 0) {
        upstreams_close(u);
        return -1;
    }
    *ret = u;
    return 0;
}

void upstreams_close(struct upstreams *u)
{
    if (!u)
        return;
    http_client_close(u->client);
    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < UPSTREAM_LINES_MAX; k++) {
            if (u->v[i].lines[k])
                explicit_bzero(u->v[i].lines[k], strlen(u->v[i].lines[k]));
            free(u->v[i].lines[k]);
        }
    for (size_t i = 0; i < u->tools_n; i++)
        buf_done(&u->tools[i].description);
    for (size_t i = 0; i < u->kept_n; i++)
        shaping_done(&u->kept[i]);
    free(u->kept);
    free(u->tools);
    free(u->v);
    buf_done(&u->text);
    free(u);
}

/* ---- finding ---- */

struct upstream_tool *upstreams_at(struct upstreams *u, size_t i)
{
    return u && i < u->tools_n ? &u->tools[i] : NULL;
}

struct upstream_tool *upstreams_tool(struct upstreams *u, const char *name, size_t n)
{
    for (size_t i = 0; u && i < u->tools_n; i++)
        if (strlen(u->tools[i].name) == n && memcmp(u->tools[i].name, name, n) == 0)
            return &u->tools[i];
    return NULL;
}

const char *upstream_tool_name(const struct upstream_tool *t)
{
    return t->name;
}

struct json_value upstream_tool_schema(const struct upstream_tool *t)
{
    return t->schema;
}

struct json_value upstream_tool_description(const struct upstream_tool *t)
{
    return (struct json_value){JSON_STRING, t->description.p, t->description.n};
}

/* ---- the request ---- */

/* A text, a number or a truth value as it stands in an address. */
static int put_argument(struct upstream_call *c, struct json_value v, struct buf *out,
                        struct err *e)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~";
    cleanup_with(buf_done) struct buf text = BUF_INIT(ARGUMENT_MAX);

    if (v.type == JSON_STRING ? json_decode_string(v, 0, &text) < 0
                              : v.type != JSON_NUMBER && v.type != JSON_BOOL)
        return err_set(e, ERR_CALLER,
                       "%s: an argument in the address should be a text of at most %d bytes, or a "
                       "number",
                       c->tool->name, ARGUMENT_MAX);
    if (v.type != JSON_STRING)
        (void)buf_put(&text, v.p, v.n);
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] && strchr(plain, text.p[i]))
            (void)buf_putc(out, text.p[i]);
        else
            (void)buf_printf(out, "%%%02X", (unsigned char)text.p[i]);
    return 0;
}

/* {name} in the path. */
static int put_path(struct upstream_call *c, struct json_value arguments, struct err *e)
{
    const char *p = c->tool->path.p;
    char name[PORTABLE_NAME_MAX + 1];

    while (*p) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        struct json_value v;

        if (!end || (size_t)(end - p) > sizeof name) {
            (void)buf_putc(&c->url, *p++);
            continue;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)(end - p - 1), p + 1);
        v = json_member(arguments, name);
        if (!v.p)
            return err_set(e, ERR_CALLER, "%s: '%s' is missing", c->tool->name, name);
        if (put_argument(c, v, &c->url, e) < 0)
            return -1;
        p = end + 1;
    }
    return 0;
}

static bool is_in_path(const struct upstream_tool *t, struct json_value key)
{
    char place[PORTABLE_NAME_MAX + 3];

    if (key.n > PORTABLE_NAME_MAX)
        return false;
    (void)snprintf(place, sizeof place, "{%.*s}", (int)key.n - 2, key.p + 1);
    return strstr(t->path.p, place) != NULL;
}

static bool is_in_query(const struct upstream_tool *t, struct json_value key)
{
    bool all = strcmp(t->method.p, "GET") == 0 || strcmp(t->method.p, "DELETE") == 0;

    for (size_t i = 0; i < t->query.n; i++)
        if (json_key_is(key, t->query.v[i].value.p))
            return true;
    return all; /* they have no body */
}

/* Where each argument goes: the path has its own already. */
static int put_others(struct upstream_call *c, struct json_value arguments, struct err *e)
{
    const struct upstream_tool *t = c->tool;
    struct json_value key, v, known = json_member(t->schema, "properties");
    struct jw w = JW(&c->body);
    char mark = '?';
    size_t at = 0;

    jw_object(&w);
    while (arguments.p && json_object_next(arguments, &at, &key, &v)) {
        char name[PORTABLE_NAME_MAX + 1] = "";

        if (key.n - 2 < sizeof name)
            (void)snprintf(name, sizeof name, "%.*s", (int)key.n - 2, key.p + 1);
        if (!portable_name_is_good(name, strlen(name)) || !known.p ||
            !json_get(known, name, &(struct json_value){0}))
            return err_set(e, ERR_CALLER, "%s: there is no argument %.*s", t->name,
                           key.n < 80 ? (int)key.n : 80, key.p);
        if (is_in_path(t, key))
            continue;
        if (is_in_query(t, key)) {
            (void)buf_printf(&c->url, "%c%s=", mark, name);
            mark = '&';
            if (put_argument(c, v, &c->url, e) < 0)
                return -1;
            continue;
        }
        jw_key(&w, name);
        jw_raw(&w, v.p, v.n);
    }
    jw_object_end(&w);
    if (strcmp(t->method.p, "GET") == 0 || strcmp(t->method.p, "DELETE") == 0)
        buf_clear(&c->body);
    return 0;
}

static int check_required(const struct upstream_tool *t, struct json_value arguments, struct err *e)
{
    struct json_value list = json_member(t->schema, "required"), name, key, v;
    size_t at = 0;

    while (list.p && list.type == JSON_ARRAY && json_array_next(list, &at, &name)) {
        bool found = false;

        for (size_t in = 0; arguments.p && json_object_next(arguments, &in, &key, &v);)
            found = found || (key.n == name.n && memcmp(key.p, name.p, key.n) == 0);
        if (!found)
            return err_set(e, ERR_CALLER, "%s: %.*s is missing", t->name,
                           name.n < 80 ? (int)name.n : 80, name.p);
    }
    return 0;
}

/* ---- calls ---- */

static void call_free(struct upstream_call *c)
{
    buf_done(&c->url);
    buf_done(&c->body);
    free(c);
}

static void write_error(struct buf *out, const char *type, const char *words)
{
    struct jw w = JW(out);

    jw_kv_bool(&w, "ok", false);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kv_string(&w, "type", type);
    jw_kv_string(&w, "message", words);
    jw_object_end(&w);
}

/* JSON as it is, anything else as text. */
static size_t write_value(struct buf *out, struct bytes body)
{
    struct json_value v;
    struct jw w = JW(out);
    size_t before;
    struct err e;

    jw_kv_bool(&w, "ok", true);
    jw_key(&w, "value");
    before = out->n;
    if (body.n > 0 && json_parse(body.p, body.n, 0, &v, &e) == 0)
        jw_raw(&w, v.p, v.n);
    else
        jw_bytes(&w, body.p ? body.p : "", body.n);
    return out->n - before;
}

static void on_answer(void *user, const struct http_answer *a)
{
    struct upstream_call *c = user;
    bool ok = a->status >= 200 && a->status < 300 && !a->too_long;
    struct buf members = BUF_INIT(ok ? ESCAPE_FACTOR * a->body.n + ROOM : ROOM);
    char words[SHOWN_MAX + ROOM / 2];
    size_t value_n = 0;

    if (ok) {
        value_n = write_value(&members, a->body);
    } else {
        (void)snprintf(words, sizeof words, "%s: %.*s", c->tool->name, SHOWN_MAX,
                       a->too_long ? "its answer is larger than 1 MiB" : a->error);
        if (a->status > 0 && !a->too_long)
            (void)snprintf(words, sizeof words, "%s: status %d: %.*s", c->tool->name, a->status,
                           SHOWN_MAX, a->words ? a->words : "");
        write_error(&members, a->too_long ? "Budget" : "UpstreamError", words);
    }
    c->done(c->user, &members, ok, value_n);
    buf_done(&members);
    call_free(c);
}

/* One more in this minute. */
static int count(struct upstream *at, struct err *e)
{
    uint64_t now = clock_us();

    if (now - at->minute_us > 60 * (uint64_t)US_PER_S) {
        at->minute_us = now;
        at->called = 0;
    }
    if (at->rate > 0 && at->called >= at->rate)
        return err_set(e, ERR_BUSY, "upstream %s: more than %lld calls in a minute", at->name,
                       (long long)at->rate);
    at->called++;
    return 0;
}

static int call_send(struct upstream_call *c, struct json_value arguments, struct err *e)
{
    struct upstream *at = c->tool->at;
    struct http_ask ask = {.method = c->tool->method.p,
                           .body_max = UPSTREAM_VALUE_MAX,
                           .answer_ms = (uint32_t)(at->timeout_s * MS_PER_S),
                           .done = on_answer,
                           .user = c};

    if (check_required(c->tool, arguments, e) < 0)
        return -1;
    (void)buf_puts(&c->url, at->base);
    if (put_path(c, arguments, e) < 0 || put_others(c, arguments, e) < 0)
        return -1;
    if (c->url.failed || c->body.failed)
        return err_set(e, ERR_CALLER, "%s: the address would be too long", c->tool->name);
    ask.url = c->url.p;
    ask.body = (struct bytes){c->body.p, c->body.n};
    for (size_t i = 0; i < UPSTREAM_LINES_MAX; i++)
        ask.lines[i] = at->lines[i];
    if (count(at, e) < 0)
        return -1;
    return http_client_post(at->all->client, &ask, &c->post, e);
}

int upstream_call(struct upstream_tool *t, struct json_value arguments, upstream_done_fn *done,
                  void *user, struct upstream_call **ret, struct err *e)
{
    struct upstream_call *c;

    if (arguments.p && arguments.type != JSON_OBJECT)
        return err_set(e, ERR_CALLER, "%s: its arguments should be an object", t->name);
    c = calloc(1, sizeof *c);
    if (!c)
        return err_set(e, ERR_HOST, "out of memory");
    c->tool = t;
    c->done = done;
    c->user = user;
    c->url = BUF_INIT(HTTP_URL_MAX);
    c->body = BUF_INIT(arguments.n + ROOM);
    if (call_send(c, arguments, e) == 0) {
        *ret = c;
        return 0;
    }
    call_free(c);
    return -1;
}

void upstream_cancel(struct upstream_call *c)
{
    http_post_cancel(c->post);
    call_free(c);
}
