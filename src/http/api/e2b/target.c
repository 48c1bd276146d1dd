/* SPDX-License-Identifier: MIT */
#include "http/api/e2b/target.h"

#include <string.h>

#include "app/daemon/app.h"
#include "app/sandbox/file_signature.h"
#include "base/secret.h"
#include "http/api/e2b/browser.h"
#include "http/api/e2b/connect.h"
#include "http/api/e2b/e2b.h"

static const char id_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

/* Decimal, 1 to 65535; n digits. 0: none. */
static uint16_t port_of(const char *text, size_t n)
{
    unsigned port = 0;

    if (n == 0 || n > 5 || strspn(text, "0123456789") < n)
        return 0;
    for (size_t i = 0; i < n; i++)
        port = port * 10 + (unsigned)(text[i] - '0');
    return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* n bytes of an id; what follows a dash in it was the client's id in old SDKs. */
static bool take_id(const char *text, size_t n, struct target *ret)
{
    size_t id_n = strspn(text, id_letters);

    if (id_n > n)
        id_n = n;
    if (id_n == 0 || id_n > PERSISTENT_ID_MAX || (id_n < n && text[id_n] != '-'))
        return false;
    memcpy(ret->id, text, id_n);
    ret->id[id_n] = '\0';
    return true;
}

static void set_port(struct target *ret, uint16_t port)
{
    ret->port = port;
    ret->kind = port == 0                  ? TARGET_BROKEN
                : port == PORT_ENVD        ? TARGET_ENVD
                : port == PORT_INTERPRETER ? TARGET_INTERPRETER
                                           : TARGET_PORT;
}

/* PORT-ID.anything, PORT-ID-CLIENT.anything */
static bool parse_host(const char *host, struct target *ret)
{
    size_t digits = strspn(host, "0123456789");
    size_t label = strcspn(host, ".");

    if (digits == 0 || host[digits] != '-' || host[label] != '.' || digits + 1 >= label)
        return false;
    if (!take_id(host + digits + 1, label - digits - 1, ret))
        return false;
    set_port(ret, port_of(host, digits));
    return true;
}

/* /files?…signature=… */
static bool is_signed_file(const char *path_query)
{
    static const char path[] = "/files?";

    return strncmp(path_query, path, sizeof path - 1) == 0 &&
           (strstr(path_query, "?signature=") || strstr(path_query, "&signature="));
}

void target_parse(const char *host, const char *id, const char *port, const char *path_query,
                  struct target *ret)
{
    *ret = (struct target){.kind = TARGET_NONE};
    if (host && parse_host(host, ret))
        return;
    if (id && port) {
        if (!take_id(id, strlen(id), ret))
            ret->kind = TARGET_BROKEN;
        else
            set_port(ret, port_of(port, strlen(port)));
    } else if (id || port) {
        ret->kind = TARGET_BROKEN;
    } else if (path_query && is_signed_file(path_query)) {
        set_port(ret, PORT_ENVD);
    }
}

static enum target_kind kind_of(const struct h1_head *h)
{
    struct target t;

    target_parse(h1_field(h, "host"), h1_field(h, "e2b-sandbox-id"),
                 h1_field(h, "e2b-sandbox-port"), h->target, &t);
    return t.kind;
}

bool e2b_claims_envd(const struct app *a, const struct h1_head *h)
{
    (void)a;
    return kind_of(h) == TARGET_ENVD;
}

bool e2b_claims_interpreter(const struct app *a, const struct h1_head *h)
{
    (void)a;
    return kind_of(h) == TARGET_INTERPRETER;
}

bool e2b_claims_port(const struct app *a, const struct h1_head *h)
{
    enum target_kind kind = kind_of(h);

    (void)a;
    return kind == TARGET_PORT || kind == TARGET_BROKEN;
}

/* ---- admission ---- */

enum {
    EXPIRES_MAX = 24,
    USER_MAX = 64,
};

static void target_of(const struct http_call *c, struct target *ret)
{
    char signature[SIGNATURE_MAX];

    target_parse(http_header(c, "host"), http_header(c, "e2b-sandbox-id"),
                 http_header(c, "e2b-sandbox-port"), NULL, ret);
    if (ret->kind == TARGET_NONE && http_query(c, "signature", signature, sizeof signature))
        set_port(ret, PORT_ENVD);
}

static bool is_files(const struct http_call *c)
{
    return strcmp(http_request(c)->path, "/files") == 0;
}

/* What a signed URL says of itself. False: it is none. */
struct signed_url {
    char path[FILE_PATH_MAX], user[USER_MAX], expires[EXPIRES_MAX], signature[SIGNATURE_MAX];
    struct signed_access access;
};

static bool read_signed_url(const struct http_call *c, struct signed_url *ret)
{
    const char *method = http_request(c)->method;

    if (!is_files(c) || !http_query(c, "signature", ret->signature, sizeof ret->signature) ||
        !http_query(c, "path", ret->path, sizeof ret->path))
        return false;
    if (!http_query(c, "username", ret->user, sizeof ret->user))
        ret->user[0] = '\0';
    ret->access = (struct signed_access){
        .path = ret->path,
        .verb = strcmp(method, "POST") == 0 ? "write" : "read",
        .user = ret->user,
    };
    if (http_query(c, "signature_expiration", ret->expires, sizeof ret->expires))
        ret->access.expires = ret->expires;
    return true;
}

/* The sandbox whose token makes this signature; with SDKs that know one base URL for all sandboxes
 * the URL does not name it. NULL: none. */
static struct persistent *find_signed(const struct http_call *c)
{
    const struct sandboxes *all = http_app(c)->sandboxes;
    cleanup_free const char **tokens = calloc(all->n + 1, sizeof *tokens);
    struct signed_url u;
    struct persistent *p;
    size_t n = 0, which;

    if (!tokens || !read_signed_url(c, &u))
        return NULL;
    TAILQ_FOREACH(p, &all->list, link)
    if (n < all->n)
        tokens[n++] = p->access.token;
    which = signature_which(u.signature, &u.access, tokens, n);
    if (which == n)
        return NULL;
    p = TAILQ_FIRST(&all->list);
    while (which-- > 0)
        p = TAILQ_NEXT(p, link);
    return p;
}

static struct persistent *find(const struct http_call *c, const struct target *t)
{
    return t->id[0] ? sandboxes_get(http_app(c)->sandboxes, t->id) : find_signed(c);
}

/* Behind the check of its token, so that no stranger wakes it: is it there for a request? A paused
 * one that is not to be woken is as good as gone. */
static bool is_awake(struct http_call *c, struct persistent *p)
{
    if (persistent_wake(p))
        return true;
    e2b_reply_gone(c, p->id);
    return false;
}

/* What asks only whether it runs does not wake it. */
static bool refuse_paused(struct http_call *c, const struct persistent *p)
{
    e2b_reply_gone(c, p->id);
    return false;
}

static bool is_signed_for(const struct http_call *c, const struct persistent *p)
{
    struct signed_url u;

    return read_signed_url(c, &u) && signature_opens(u.signature, &u.access, p->access.token);
}

static bool is_rpc(const struct http_call *c)
{
    const char *path = http_request(c)->path;

    return strncmp(path, "/process.", 9) == 0 || strncmp(path, "/filesystem.", 12) == 0;
}

static bool refuse_stranger(struct http_call *c)
{
    static const char words[] = "the token does not open this sandbox";

    if (is_rpc(c))
        connect_refuse(c, CONNECT_UNAUTHENTICATED, words);
    else
        e2b_reply_status(c, 401, words);
    return false;
}

bool e2b_admit_envd(struct http_call *c)
{
    const char *token = http_header(c, "x-access-token");
    struct persistent *p;
    struct target t;

    (void)e2b_admit_browser(c);
    target_of(c, &t);
    p = find(c, &t);
    if (!p && !t.id[0])
        return refuse_stranger(c);
    if (!p) {
        e2b_reply_gone(c, t.id);
        return false;
    }
    if (strcmp(http_request(c)->path, "/health") == 0)
        return p->state == PERSISTENT_RUNNING || refuse_paused(c, p);
    if (token ? !secret_text_is(token, p->access.token) : !is_signed_for(c, p))
        return refuse_stranger(c);
    http_trust(c);
    return is_awake(c, p);
}

bool e2b_admit_interpreter(struct http_call *c)
{
    struct persistent *p;
    struct target t;

    (void)e2b_admit_browser(c);
    target_of(c, &t);
    p = find(c, &t);
    if (!p) {
        e2b_reply_gone(c, t.id);
        return false;
    }
    if (strcmp(http_request(c)->path, "/health") == 0)
        return p->state == PERSISTENT_RUNNING || refuse_paused(c, p);
    if (!secret_text_is(http_header(c, "e2b-traffic-access-token"), p->access.traffic) &&
        !secret_text_is(http_header(c, "x-access-token"), p->access.token)) {
        e2b_reply_text(c, 401, "the token does not open this sandbox");
        return false;
    }
    http_trust(c);
    return is_awake(c, p);
}

bool e2b_admit_port(struct http_call *c)
{
    struct persistent *p;
    struct target t;

    target_of(c, &t);
    if (t.kind == TARGET_BROKEN) {
        e2b_reply_status(c, 400,
                         "E2b-Sandbox-Id and E2b-Sandbox-Port name a sandbox and a port of "
                         "it, both or none");
        return false;
    }
    p = find(c, &t);
    if (!p) {
        e2b_reply_gone(c, t.id);
        return false;
    }
    if (persistent_ports_are_private(p) &&
        !secret_text_is(http_header(c, "e2b-traffic-access-token"), p->access.traffic)) {
        e2b_reply_status(c, 403, "this port needs the header E2b-Traffic-Access-Token");
        return false;
    }
    return is_awake(c, p);
}

struct persistent *e2b_sandbox(struct http_call *c)
{
    struct persistent *p;
    struct target t;

    target_of(c, &t);
    p = find(c, &t);
    if (!p)
        e2b_reply_gone(c, t.id);
    return p;
}

uint16_t e2b_port_of(const struct http_call *c)
{
    struct target t;

    target_of(c, &t);
    return t.port;
}
