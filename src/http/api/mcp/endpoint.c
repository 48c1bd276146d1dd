/* SPDX-License-Identifier: MIT */
/*
 * POST, GET and DELETE /mcp: what is checked before a method is called. Each message tells which
 * era it belongs to (app/mcp/version.h).
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/mcp/version.h"
#include "base/clock.h"
#include "http/api/mcp/mcp.h"
#include "http/api/mcp/methods.h"
#include "http/api/problem.h"
#include "http/server/origin.h"
#include "http/server/reply.h"

enum {
    NAME_MAX_BYTES = 8192, /* of a header that mirrors a member */
    FRAME_MAX = 2048,
    MS_PER_S = 1000,
};

/* The hosts of a daemon that listens on the loopback only. */
#define LOOPBACK "localhost,127.0.0.1,::1"

/* ---- the transport ---- */

void mcp_refuse(struct http_call *c, int status, const char *words)
{
    struct buf json = BUF_INIT(FRAME_MAX);

    rpc_write_error(&json, (struct json_value){0}, RPC_INVALID_REQUEST, words, NULL);
    http_reply(c, status, API_JSON, &json);
}

static bool is_on_loopback(const struct app *a)
{
    const char *host = a->config.host;

    return !*host || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

/* A page that had its own name resolve to this machine says that name in Host. */
static bool host_is_ours(const struct app *a, const char *host)
{
    if (!host || !is_on_loopback(a))
        return true;
    return origin_host_is_listed(host, LOOPBACK) ||
           origin_host_is_listed(host, a->config.mcp_hosts);
}

static bool origin_is_admitted(const struct app *a, const char *origin, const char *host)
{
    const char *at = origin ? strstr(origin, "://") : NULL;

    if (!origin || mcp_list_has(a->config.mcp_origins, origin, strlen(origin)))
        return true;
    if (!at || (strncasecmp(origin, "http://", 7) != 0 && strncasecmp(origin, "https://", 8) != 0))
        return false;
    at += 3;
    if (!is_on_loopback(a) && host && strcasecmp(at, host) == 0)
        return true;
    return origin_host_is_listed(at, LOOPBACK) || origin_host_is_listed(at, a->config.mcp_hosts);
}

bool mcp_admit(struct http_call *c)
{
    const struct app *a = http_app(c);
    const char *host = http_header(c, "host"), *origin = http_header(c, "origin");
    const char *why = NULL;

    if (!a->config.mcp)
        why = "the Model Context Protocol is switched off here (MCP=false)";
    else if (!host_is_ours(a, host))
        why = "Forbidden Host: it must be localhost, 127.0.0.1, [::1] or one of MCP_HOSTS";
    else if (!origin_is_admitted(a, origin, host))
        why = "Forbidden Origin: it must be one of this host or of MCP_ORIGINS";
    if (why)
        mcp_refuse(c, a->config.mcp ? 403 : 404, why);
    else if (origin) {
        http_set_header(c, "Access-Control-Allow-Origin", origin);
        http_set_header(c, "Access-Control-Expose-Headers", "Mcp-Session-Id");
        http_set_header(c, "Vary", "Origin");
    }
    return why == NULL;
}

void mcp_options(struct http_call *c)
{
    http_set_header(c, "Access-Control-Allow-Methods", "POST, GET, DELETE");
    http_set_header(c, "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, "
                    "MCP-Protocol-Version, Mcp-Method, Mcp-Name");
    http_set_header(c, "Access-Control-Max-Age", "600");
    http_reply(c, 204, NULL, NULL);
}

void mcp_well_known(struct http_call *c)
{
    problem_refuse(c, 404, "there is no authorization server: clients bring the bearer secret");
}

/* ---- the eras ---- */

static bool is_modern(const struct mcp_exchange *x)
{
    const char *header = http_header(x->call, "mcp-protocol-version");

    if (x->message.has_version)
        return true;
    return header && !mcp_handshake_version(header) && strcmp(header, MCP_MODERN) >= 0 &&
           strspn(header, "0123456789-") == strlen(header);
}

/* Does the header say what the member of params says? */
static bool mirrors(const struct mcp_exchange *x, const char *header, const char *member)
{
    const char *value = http_header(x->call, header);
    cleanup_with(buf_done) struct buf said = BUF_INIT(NAME_MAX_BYTES),
                                      meant = BUF_INIT(NAME_MAX_BYTES);
    struct json_value v = json_member(x->message.params, member);

    if (!value || !v.p || v.type != JSON_STRING)
        return false;
    return rpc_header_decode(value, &said) == 0 && json_decode_string(v, 0, &meant) == 0 &&
           said.n == meant.n && (said.n == 0 || memcmp(said.p, meant.p, said.n) == 0);
}

static void fail_unsupported(struct mcp_exchange *x, enum rpc_code code, const char *requested)
{
    cleanup_with(buf_done) struct buf data = BUF_INIT(FRAME_MAX);

    mcp_write_supported(&data, requested);
    mcp_fail_with(x, 400, code, data.p, "Unsupported protocol version");
}

/* What a request of the modern era must carry. False: answered. */
static bool check_modern(struct mcp_exchange *x)
{
    const struct rpc_message *m = &x->message;
    const char *version = http_header(x->call, "mcp-protocol-version");
    const char *method = http_header(x->call, "mcp-method");
    const char *named = strcmp(m->method, "tools/call") == 0       ? "name"
                        : strcmp(m->method, "resources/read") == 0 ? "uri"
                                                                   : NULL;
    struct json_value abilities =
        json_member(m->meta, "io.modelcontextprotocol/clientCapabilities");

    if (!m->has_version)
        mcp_fail_with(x, 400, RPC_INVALID_PARAMS, NULL,
                      "_meta lacks io.modelcontextprotocol/protocolVersion");
    else if (!version || strcmp(version, m->version) != 0)
        mcp_fail_with(x, 400, RPC_HEADERS, NULL,
                      "Header mismatch: MCP-Protocol-Version is not what the body says");
    else if (strcmp(m->version, MCP_MODERN) != 0)
        fail_unsupported(x, RPC_VERSION, m->version);
    else if (!abilities.p || abilities.type != JSON_OBJECT)
        mcp_fail_with(x, 400, RPC_INVALID_PARAMS, NULL,
                      "_meta lacks io.modelcontextprotocol/clientCapabilities");
    else if (!method || strcmp(method, m->method) != 0)
        mcp_fail_with(x, 400, RPC_HEADERS, NULL, "Header mismatch: Mcp-Method");
    else if (named && !mirrors(x, "mcp-name", named))
        mcp_fail_with(x, 400, RPC_HEADERS, NULL, "Header mismatch: Mcp-Name");
    else
        return true;
    return false;
}

/* Without an answer: 202. */
static void reply_accepted(struct mcp_exchange *x)
{
    struct http_call *c = x->call;

    x->call = NULL;
    mcp_drop(x);
    http_reply(c, 202, NULL, NULL);
}

static void initialize(struct mcp_exchange *x)
{
    struct json_value wanted = json_member(x->message.params, "protocolVersion");
    char name[RPC_VERSION_MAX + 1] = "";
    const char *version;
    struct mcp_session *m;
    struct buf out = BUF_INIT(FRAME_MAX * 4);
    struct jw w = JW(&out);

    if (wanted.p && wanted.type == JSON_STRING && wanted.n - 2 < sizeof name)
        (void)snprintf(name, sizeof name, "%.*s", (int)wanted.n - 2, wanted.p + 1);
    version = mcp_handshake_version(name);
    if (!version)
        version = mcp_versions[1];
    m = mcp_session_open(x->app->mcp_side.sessions, version, mcp_token(x->call));
    if (!m) {
        mcp_fail(x, RPC_INTERNAL, NULL, "out of memory");
        return;
    }
    http_set_header(x->call, "Mcp-Session-Id", m->id);
    mcp_write_initialized(&w, x->app, version);
    mcp_answer(x, &out);
}

/* The session that a message names. NULL: answered. */
static struct mcp_session *session_of(struct mcp_exchange *x)
{
    const char *id = http_header(x->call, "mcp-session-id");
    const char *version = http_header(x->call, "mcp-protocol-version");
    struct mcp_session *m;

    if (version && !mcp_handshake_version(version)) {
        fail_unsupported(x, RPC_INVALID_REQUEST, version);
        return NULL;
    }
    if (!id) {
        mcp_fail_with(x, 400, RPC_INVALID_REQUEST, NULL,
                      "Mcp-Session-Id is missing; send initialize first");
        return NULL;
    }
    m = mcp_session_find(x->app->mcp_side.sessions, id, mcp_token(x->call));
    if (!m)
        mcp_fail_with(x, 404, RPC_INVALID_REQUEST, NULL,
                      "Session not found; send initialize again");
    return m;
}

/* Of the handshake era; in the other one a client cancels by leaving. */
static void notified(struct mcp_exchange *x)
{
    const char *id = http_header(x->call, "mcp-session-id");
    struct json_value which = json_member(x->message.params, "requestId");
    struct mcp_session *m;
    struct mcp_request *r;

    if (x->message.has_version || !id) {
        reply_accepted(x);
        return;
    }
    m = session_of(x);
    if (!m)
        return;
    r = which.p && strcmp(x->message.method, "notifications/cancelled") == 0
            ? mcp_request_find(m, which.p, which.n)
            : NULL;
    if (r)
        r->cancel(r);
    reply_accepted(x);
}

static void listen_modern(struct mcp_exchange *x);

static void request_modern(struct mcp_exchange *x)
{
    x->modern = true;
    if (!check_modern(x))
        return;
    if (strcmp(x->message.method, "subscriptions/listen") == 0)
        listen_modern(x);
    else
        mcp_method(x, NULL);
}

static void request_handshake(struct mcp_exchange *x)
{
    struct mcp_session *m;

    if (strcmp(x->message.method, "initialize") == 0) {
        initialize(x);
        return;
    }
    m = session_of(x);
    if (!m)
        return;
    if (mcp_request_begin(m, &x->request) < 0)
        mcp_fail(x, RPC_INVALID_REQUEST, NULL, "more than %d requests at once in one session",
                 MCP_REQUESTS_MAX);
    else
        mcp_method(x, m);
}

static bool check_head(struct http_call *c)
{
    static const char json[] = "application/json";
    const char *type = http_header(c, "content-type");
    size_t n = type ? strcspn(type, "; ") : 0;

    if (n == sizeof json - 1 && strncasecmp(type, json, n) == 0)
        return true;
    mcp_refuse(c, 415, "The body must be application/json");
    return false;
}

void mcp_post(struct http_call *c)
{
    struct mcp_exchange *x;
    struct rpc_fault fault;

    if (!check_head(c))
        return;
    x = mcp_exchange_new(c);
    if (!x)
        return;
    if (!x->takes_json && !x->takes_events) {
        mcp_fail_with(x, 406, RPC_INVALID_REQUEST, NULL,
                      "Accept must name application/json or text/event-stream");
        return;
    }
    if (rpc_parse(x->body.p ? x->body.p : "", x->body.n, &x->message, &fault) < 0) {
        mcp_fail_with(x, 400, fault.code, NULL, fault.words);
        return;
    }
    x->request.id = x->message.id.p;
    x->request.id_n = x->message.id.n;
    x->token = json_member(x->message.meta, "progressToken");
    if (x->message.kind == RPC_RESPONSE)
        reply_accepted(x);
    else if (x->message.kind == RPC_NOTIFICATION)
        notified(x);
    else if (is_modern(x))
        request_modern(x);
    else
        request_handshake(x);
}

/* ---- streams of notifications ---- */

struct stream {
    struct mcp_listener listener;
    struct mcp_metrics *metrics; /* borrowed */
    struct http_call *call;
    struct sse sse;
    struct event *timer; /* owned */
    char *id;            /* owned: of the request, JSON; NULL: of the handshake era */
    bool wants_tools;
};

static void stream_free(struct stream *s)
{
    s->metrics->streams--;
    mcp_listen_end(&s->listener);
    if (s->timer)
        event_free(s->timer);
    free(s->id);
    free(s);
}

static void stream_send(struct stream *s, const char *method, const char *params)
{
    struct buf json = BUF_INIT(FRAME_MAX);
    struct jw w = JW(&json);

    jw_object(&w);
    jw_kv_string(&w, "jsonrpc", "2.0");
    jw_kv_string(&w, "method", method);
    if (s->id || params) {
        jw_key(&w, "params");
        jw_object(&w);
        if (s->id) {
            jw_key(&w, "_meta");
            jw_object(&w);
            jw_key(&w, "io.modelcontextprotocol/subscriptionId");
            jw_raw(&w, s->id, strlen(s->id));
            jw_object_end(&w);
        }
        if (params)
            jw_raw(&w, params, strlen(params));
        jw_object_end(&w);
    }
    jw_object_end(&w);
    if (!json.failed && !s->sse.full)
        (void)sse_send(&s->sse, "message", NULL, json.p, json.n);
    buf_done(&json);
}

static void on_tools_changed(struct mcp_listener *l)
{
    struct stream *s = (struct stream *)l;

    if (s->wants_tools)
        stream_send(s, "notifications/tools/list_changed", NULL);
}

static void on_stream_end(struct mcp_listener *l)
{
    struct stream *s = (struct stream *)l;

    http_on_gone(s->call, NULL, NULL);
    http_on_drain(s->call, NULL, NULL);
    sse_end(&s->sse);
    stream_free(s);
}

static void on_stream_gone(void *user)
{
    stream_free(user);
}

static void on_stream_drained(void *user)
{
    struct stream *s = user;

    sse_drained(&s->sse);
}

static void on_beat(evutil_socket_t fd, short what, void *user)
{
    struct stream *s = user;

    (void)fd;
    (void)what;
    (void)http_stream_write(s->call, ":\n\n", 3);
}

/* NULL: out of memory, and answered. */
static struct stream *stream_begin(struct http_call *c, struct mcp_session *m)
{
    const struct timeval beat = {.tv_sec = MCP_QUIET_S};
    struct app *a = http_app(c);
    struct stream *s = calloc(1, sizeof *s);

    if (s)
        s->timer = event_new(a->base, -1, EV_PERSIST, on_beat, s);
    if (!s || !s->timer) {
        free(s);
        reply_status(c, 503);
        return NULL;
    }
    (void)event_add(s->timer, &beat);
    s->call = c;
    s->metrics = &a->mcp_side.sessions->metrics;
    s->metrics->streams++;
    s->wants_tools = true;
    s->listener.tools_changed = on_tools_changed;
    s->listener.end = on_stream_end;
    http_on_gone(c, on_stream_gone, s);
    http_on_drain(c, on_stream_drained, s);
    sse_begin_unchanged(&s->sse, c);
    (void)http_stream_write(c, ":\n\n", 3);
    mcp_listen(a->mcp_side.sessions, m, &s->listener);
    return s;
}

/* The answer of subscriptions/listen is the stream of what it asked for. */
static void listen_modern(struct mcp_exchange *x)
{
    struct json_value wanted = json_member(x->message.params, "notifications");
    struct json_value tools = json_member(wanted, "toolsListChanged");
    struct http_call *c = x->call;
    char *id = strndup(x->message.id.p, x->message.id.n);
    bool wants_tools = tools.p && tools.type == JSON_BOOL && *tools.p == 't';
    struct stream *s;

    if (!x->takes_events) {
        free(id);
        mcp_fail_with(x, 406, RPC_INVALID_REQUEST, NULL, "Accept must name text/event-stream");
        return;
    }
    x->call = NULL;
    x->outcome = MCP_OK;
    mcp_drop(x);
    s = id ? stream_begin(c, NULL) : NULL;
    if (!s) {
        free(id);
        return;
    }
    s->id = id;
    s->wants_tools = wants_tools;
    stream_send(s, "notifications/subscriptions/acknowledged",
                wants_tools ? "\"notifications\":{\"toolsListChanged\":true}"
                            : "\"notifications\":{}");
}

/* The session that a request without a message names. NULL: answered. */
static struct mcp_session *session_named(struct http_call *c, int missing)
{
    const char *id = http_header(c, "mcp-session-id");
    struct mcp_session *m;

    if (!id) {
        if (missing == 405)
            http_set_header(c, "Allow", "POST");
        mcp_refuse(c, missing, "Mcp-Session-Id is missing");
        return NULL;
    }
    m = mcp_session_find(http_app(c)->mcp_side.sessions, id, mcp_token(c));
    if (!m)
        mcp_refuse(c, 404, "Session not found; send initialize again");
    return m;
}

void mcp_get(struct http_call *c)
{
    const char *accept = http_header(c, "accept"), *last = http_header(c, "last-event-id");
    struct mcp_session *m = session_named(c, 405);
    unsigned stream = 0, after = 0;

    if (!m)
        return;
    if (accept && !strcasestr(accept, "text/event-stream") && !strstr(accept, "*/*"))
        mcp_refuse(c, 406, "Accept must name text/event-stream");
    else if (last && sscanf(last, "%9u-%9u", &stream, &after) != 2)
        mcp_resume(c, m, 0, 0); /* none of ours: there is nothing to tell */
    else if (last)
        mcp_resume(c, m, stream, after);
    else
        (void)stream_begin(c, m);
}

void mcp_delete(struct http_call *c)
{
    uint64_t linger_ms = http_app(c)->config.mcp_linger_s * MS_PER_S;
    struct mcp_session *m = session_named(c, 400);
    char wanted[8];

    if (!m)
        return;
    if (http_query(c, "linger", wanted, sizeof wanted) && strcmp(wanted, "0") == 0)
        linger_ms = 0;
    mcp_session_delete(m, linger_ms);
    http_reply(c, 204, NULL, NULL);
}
