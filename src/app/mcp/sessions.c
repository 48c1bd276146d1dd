/* SPDX-License-Identifier: MIT */
#include "app/mcp/sessions.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/mcp/version.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/random.h"
#include "base/secret.h"
#include "base/sha256.h"

enum {
    MAC_CHARACTERS = 32,
    LOOK_S = 5,       /* between two looks for sessions that were idle for too long */
    CHANGED_MS = 200, /* changes of the list of tools within it are told once */
    US_PER_MS = 1000,
    MS_PER_S = 1000,
    US_PER_S = 1000000,
    VERSION_DIGITS = 8,
};

/* ---- ids: s1.VERSION.RANDOM.MAC ---- */

struct id_parts {
    char version[VERSION_DIGITS + 1]; /* without its dashes */
    char random[MCP_RANDOM + 1];
};

static void id_write(const struct mcp_sessions *s, const struct id_parts *parts, const char *token,
                     char out[MCP_SESSION_ID_MAX + 1])
{
    const struct sha256_piece pieces[] = {
        {parts->version, sizeof parts->version},
        {parts->random,  sizeof parts->random },
        {token,          strlen(token)        },
    };
    unsigned char mac[SHA256_BYTES];
    int n = snprintf(out, MCP_SESSION_ID_MAX + 1, "s1.%s.%s.", parts->version, parts->random);

    if (sha256_mac(s->key, sizeof s->key, pieces, ARRAY_LEN(pieces), mac) < 0) {
        out[0] = '\0'; /* out of memory: equal to no id */
        return;
    }
    for (size_t i = 0; i < MAC_CHARACTERS / 2; i++)
        n += snprintf(out + n, 3, "%02x", mac[i]);
}

/* Is it an id that this daemon made for this client? */
static bool id_read(const struct mcp_sessions *s, const char *id, const char *token,
                    struct id_parts *ret)
{
    char again[MCP_SESSION_ID_MAX + 1];

    *ret = (struct id_parts){0};
    if (sscanf(id, "s1.%8[0-9].%32[0-9a-f].", ret->version, ret->random) != 2 ||
        strlen(ret->version) != VERSION_DIGITS || strlen(ret->random) != MCP_RANDOM)
        return false;
    id_write(s, ret, token, again);
    return secret_text_is(id, again);
}

uint64_t mcp_owner(const struct mcp_sessions *s, const char *token)
{
    static const char use[] = "owner";
    const struct sha256_piece pieces[] = {
        {use,   sizeof use   },
        {token, strlen(token)},
    };
    unsigned char mac[SHA256_BYTES];
    uint64_t owner = 0;

    if (sha256_mac(s->key, sizeof s->key, pieces, ARRAY_LEN(pieces), mac) == 0)
        memcpy(&owner, mac, sizeof owner);
    return owner;
}

static void version_digits(const char *version, char out[VERSION_DIGITS + 1])
{
    size_t n = 0;

    for (; *version && n < VERSION_DIGITS; version++)
        if (*version != '-')
            out[n++] = *version;
    out[n] = '\0';
}

static const char *version_of(const char *digits)
{
    char name[sizeof "2025-11-25"];

    (void)snprintf(name, sizeof name, "%.4s-%.2s-%.2s", digits, digits + 4, digits + 6);
    return mcp_handshake_version(name);
}

/* ---- deleted ids ---- */

static bool is_deleted(const struct mcp_sessions *s, const char *random)
{
    size_t n = s->deleted_n < MCP_DELETED ? s->deleted_n : MCP_DELETED;

    for (size_t i = 0; i < n; i++)
        if (strcmp(s->deleted[i], random) == 0)
            return true;
    return false;
}

static void remember_deleted(struct mcp_sessions *s, const char *id)
{
    (void)sscanf(id, "s1.%*8[0-9].%32[0-9a-f].", s->deleted[s->deleted_n++ % MCP_DELETED]);
}

/* ---- one ---- */

/* The last word of its sandbox: it lingers, or is gone already. */
static void release_sandbox(struct mcp_session *m, uint64_t linger_ms)
{
    struct persistent *p = m->sandbox[0] ? sandboxes_get(m->all->app->sandboxes, m->sandbox) : NULL;

    m->sandbox[0] = '\0';
    if (!p)
        return;
    persistent_set_end(p, linger_ms > 0 ? linger_ms : 1);
    persistent_set_pair(p, MCP_OWNER, MCP_OWNER_LEFT);
}

static void session_end_after(struct mcp_session *m, uint64_t linger_ms)
{
    struct mcp_request *r;
    struct mcp_listener *l;

    while ((r = LIST_FIRST(&m->requests))) {
        mcp_request_end(r);
        r->cancel(r);
    }
    while ((l = TAILQ_FIRST(&m->listeners))) {
        mcp_listen_end(l);
        l->end(l);
    }
    release_sandbox(m, linger_ms);
    replay_done(&m->replay);
    TAILQ_REMOVE(&m->all->list, m, link);
    m->all->n--;
    free(m);
}

static void session_end(struct mcp_session *m)
{
    session_end_after(m, m->all->app->config.mcp_linger_s * MS_PER_S);
}

/* The one that was idle for the longest time. */
static void make_room(struct mcp_sessions *s)
{
    if (s->n >= s->app->config.mcp_sessions_max)
        session_end(TAILQ_FIRST(&s->list));
}

static struct mcp_session *session_new(struct mcp_sessions *s, const char *id, const char *version)
{
    struct mcp_session *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    make_room(s);
    m->all = s;
    m->version = version;
    m->used_us = clock_us();
    (void)snprintf(m->id, sizeof m->id, "%s", id);
    LIST_INIT(&m->requests);
    TAILQ_INIT(&m->listeners);
    replay_init(&m->replay);
    TAILQ_INSERT_TAIL(&s->list, m, link);
    s->n++;
    return m;
}

struct mcp_session *mcp_session_open(struct mcp_sessions *s, const char *version, const char *token)
{
    char id[MCP_SESSION_ID_MAX + 1];
    struct id_parts parts;

    version_digits(version, parts.version);
    random_hex(parts.random, MCP_RANDOM / 2);
    id_write(s, &parts, token, id);
    return session_new(s, id, version);
}

struct mcp_session *mcp_session_find(struct mcp_sessions *s, const char *id, const char *token)
{
    struct mcp_session *m;
    struct id_parts parts;
    const char *version;

    if (!id_read(s, id, token, &parts) || is_deleted(s, parts.random))
        return NULL;
    TAILQ_FOREACH_REVERSE(m, &s->list, mcp_session_list, link)
    if (strcmp(m->id, id) == 0) {
        m->used_us = clock_us();
        TAILQ_REMOVE(&s->list, m, link);
        TAILQ_INSERT_TAIL(&s->list, m, link);
        return m;
    }
    version = version_of(parts.version);
    m = version ? session_new(s, id, version) : NULL;
    if (m)
        m->lost = true;
    return m;
}

void mcp_session_delete(struct mcp_session *m, uint64_t linger_ms)
{
    remember_deleted(m->all, m->id);
    session_end_after(m, linger_ms);
}

/* ---- its requests ---- */

int mcp_request_begin(struct mcp_session *m, struct mcp_request *r)
{
    if (m->requests_n >= MCP_REQUESTS_MAX)
        return -1;
    r->session = m;
    LIST_INSERT_HEAD(&m->requests, r, link);
    m->requests_n++;
    return 0;
}

void mcp_request_end(struct mcp_request *r)
{
    if (!r->session)
        return;
    LIST_REMOVE(r, link);
    r->session->requests_n--;
    r->session->used_us = clock_us();
    r->session = NULL;
}

struct mcp_request *mcp_request_find(const struct mcp_session *m, const char *id, size_t n)
{
    struct mcp_request *r;

    LIST_FOREACH(r, &m->requests, link)
    if (r->id_n == n && memcmp(r->id, id, n) == 0)
        return r;
    return NULL;
}

/* ---- who wants notifications ---- */

void mcp_listen(struct mcp_sessions *s, struct mcp_session *m, struct mcp_listener *l)
{
    struct mcp_listener *oldest = m ? TAILQ_FIRST(&m->listeners) : NULL;

    if (m && m->listeners_n >= MCP_STREAMS_MAX) {
        mcp_listen_end(oldest);
        oldest->end(oldest);
    }
    l->session = m;
    l->all = s;
    TAILQ_INSERT_TAIL(m ? &m->listeners : &s->listeners, l, link);
    if (m)
        m->listeners_n++;
}

void mcp_listen_end(struct mcp_listener *l)
{
    if (!l->all)
        return;
    TAILQ_REMOVE(l->session ? &l->session->listeners : &l->all->listeners, l, link);
    if (l->session) {
        l->session->listeners_n--;
        l->session->used_us = clock_us();
    }
    l->all = NULL;
    l->session = NULL;
}

/* Of a session the newest stream alone hears it; of those without one, each. */
static void on_changed(evutil_socket_t fd, short what, void *user)
{
    struct mcp_sessions *s = user;
    struct mcp_listener *l, *next;
    struct mcp_session *m;

    (void)fd;
    (void)what;
    TAILQ_FOREACH(m, &s->list, link)
    if ((l = TAILQ_LAST(&m->listeners, mcp_listener_list)))
        l->tools_changed(l);
    for (l = TAILQ_FIRST(&s->listeners); l; l = next) {
        next = TAILQ_NEXT(l, link);
        l->tools_changed(l);
    }
}

void mcp_tools_changed(struct mcp_sessions *s)
{
    if (!evtimer_pending(s->changed, NULL))
        (void)evtimer_add(s->changed, &(struct timeval){.tv_usec = CHANGED_MS * US_PER_MS});
}

/* ---- all ---- */

static bool is_idle(const struct mcp_session *m, uint64_t now)
{
    uint64_t idle_us = m->all->app->config.mcp_session_idle_s * (uint64_t)US_PER_S;

    return !m->requests_n && !m->listeners_n && now - m->used_us > idle_us;
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
    struct mcp_sessions *s = user;
    struct mcp_session *m, *next;
    uint64_t now = clock_us();

    (void)fd;
    (void)what;
    for (m = TAILQ_FIRST(&s->list); m; m = next) {
        next = TAILQ_NEXT(m, link);
        replay_expire(&m->replay, now);
        if (is_idle(m, now))
            session_end(m);
    }
}

static int key_make(const char *path, unsigned char key[MCP_KEY], struct err *e)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    random_bytes(key, MCP_KEY);
    if (fd < 0)
        return err_sys(e, -errno, "create '%.300s'", path);
    if (fd_write_all(fd, (const char *)key, MCP_KEY) < 0) {
        (void)unlink(path); /* half a key would be refused at the next start */
        return err_sys(e, -errno, "write '%.300s'", path);
    }
    return 0;
}

static int key_open(struct mcp_sessions *s, struct err *e)
{
    char path[CONFIG_TEXT_MAX + 16];
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "%s/mcp.key", s->app->config.state_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return key_make(path, s->key, e);
    if (fd < 0)
        return err_sys(e, -errno, "open '%.300s'", path);
    if (fd_read_full(fd, s->key, sizeof s->key) != sizeof s->key)
        return err_set(e, ERR_HOST, "'%.300s' is no key: remove it", path);
    return 0;
}

int mcp_sessions_open(struct app *a, struct mcp_sessions **ret, struct err *e)
{
    const struct timeval look = {.tv_sec = LOOK_S};
    struct mcp_sessions *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(e, ERR_HOST, "out of memory");
    s->app = a;
    TAILQ_INIT(&s->list);
    TAILQ_INIT(&s->listeners);
    left_files_init(&s->left);
    s->timer = event_new(a->base, -1, EV_PERSIST, on_timer, s);
    s->changed = evtimer_new(a->base, on_changed, s);
    if (!s->timer || !s->changed || event_add(s->timer, &look) < 0) {
        mcp_sessions_close(s);
        return err_set(e, ERR_HOST, "no memory for an event");
    }
    if (key_open(s, e) < 0) {
        mcp_sessions_close(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void mcp_sessions_close(struct mcp_sessions *s)
{
    if (!s)
        return;
    while (!TAILQ_EMPTY(&s->list)) {
        TAILQ_FIRST(&s->list)->sandbox[0] = '\0'; /* it ends with the daemon */
        session_end(TAILQ_FIRST(&s->list));
    }
    if (s->timer)
        event_free(s->timer);
    if (s->changed)
        event_free(s->changed);
    left_files_done(&s->left);
    explicit_bzero(s->key, sizeof s->key);
    free(s);
}
