/* SPDX-License-Identifier: MIT */
#include "cli/ws_client.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "base/random.h"
#include "cli/connected.h"

enum {
    HEAD_MAX = 64 << 10,
    REFUSAL_MAX = 64 << 10,
    KEY_BYTES = 16,
    SWITCHING = 101,
};

struct ws_client {
    struct connected *conn;        /* owned */
    wslay_event_context_ptr wslay; /* owned */
    struct buf early;              /* owned; came behind the head of the answer */
    ws_message_fn *fn;             /* while ws_move() runs */
    void *user;
    bool ended, broken, enough;
};

/* ---- the handshake ---- */

static int read_more(struct connected *c, struct buf *in)
{
    char part[4096];
    ssize_t n;

    while ((n = connected_read(c, part, sizeof part)) == -EAGAIN) {
        struct pollfd ready = {.fd = connected_fd(c), .events = POLLIN};

        (void)poll(&ready, 1, -1);
    }
    return n > 0 ? buf_put(in, part, (size_t)n) : -1;
}

/* The value of a line of a head that ends with a NUL; its length in *ret_n. NULL: there is none. */
static const char *head_line(const char *head, const char *name, size_t *ret_n)
{
    size_t name_n = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, name_n) == 0 && line[name_n] == ':') {
            const char *value = line + name_n + 1 + strspn(line + name_n + 1, " ");

            *ret_n = strcspn(value, "\r\n");
            return value;
        }
    }
    return NULL;
}

static bool is_accepted(const char *head, const char *key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    cleanup_with(buf_done) struct buf text = BUF_INIT(128), want = BUF_INIT(128);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_n = 0;
    size_t n = 0;
    const char *got = head_line(head, "Sec-WebSocket-Accept", &n);

    return got && buf_puts(&text, key) == 0 && buf_puts(&text, guid) == 0 &&
           EVP_Digest(text.p, text.n, digest, &digest_n, EVP_sha1(), NULL) &&
           base64_encode(digest, digest_n, &want) == 0 && n == want.n &&
           memcmp(got, want.p, n) == 0;
}

/* Any other answer is a refusal, whose body says why. */
static int refused(struct connected *c, int status, const char *head, struct buf *rest,
                   struct err *e)
{
    struct http_answer answer = {.status = status, .body = BUF_INIT(REFUSAL_MAX)};
    size_t n = 0, length = 0;
    const char *said = head_line(head, "Content-Length", &n);

    length = said ? strtoul(said, NULL, 10) : 0;
    while (rest->n < length && rest->n < REFUSAL_MAX && read_more(c, rest) == 0)
        ;
    (void)buf_put(&answer.body, rest->p ? rest->p : "", rest->n < length ? rest->n : length);
    http_answer_words(&answer, e);
    http_answer_done(&answer);
    return -1;
}

static int shake(struct ws_client *w, const struct daemon_at *at, const char *path, struct err *e)
{
    cleanup_with(buf_done) struct buf out = BUF_INIT(HEAD_MAX), in = BUF_INIT(HEAD_MAX + 4096);
    cleanup_with(buf_done) struct buf key = BUF_INIT(64);
    unsigned char bytes[KEY_BYTES];
    char *end = NULL;
    int status = 0;

    random_bytes(bytes, sizeof bytes);
    (void)!base64_encode(bytes, sizeof bytes, &key);
    (void)buf_printf(&out, "GET %s%s HTTP/1.1\r\n", connected_prefix(at), path);
    connected_lines(at, &out);
    (void)buf_printf(&out,
                     "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: %s\r\n\r\n",
                     key.p);
    if (out.failed)
        return err_set(e, ERR_CALLER, "the address is too long");
    if (connected_write_all(w->conn, out.p, out.n) < 0)
        return err_set(e, ERR_HOST, "%s: the daemon has closed the connection", at->url);
    while (!end && in.n < HEAD_MAX && read_more(w->conn, &in) == 0)
        end = strstr(in.p, "\r\n\r\n");
    if (!end || sscanf(in.p, "HTTP/1.%*1[01] %3d", &status) != 1)
        return err_set(e, ERR_HOST, "%s: that is no answer in HTTP", at->url);
    end[2] = '\0';
    (void)buf_put(&w->early, end + 4, in.n - (size_t)(end + 4 - in.p));
    if (status != SWITCHING)
        return refused(w->conn, status, in.p, &w->early, e);
    if (!is_accepted(in.p, key.p))
        return err_set(e, ERR_HOST, "%s: that is no WebSocket", at->url);
    return 0;
}

/* ---- what libwslay asks for ---- */

static ssize_t on_recv(wslay_event_context_ptr c, uint8_t *p, size_t room, int flags, void *user)
{
    struct ws_client *w = user;
    ssize_t n = (ssize_t)(w->early.n < room ? w->early.n : room);

    (void)flags;
    if (n > 0) {
        memcpy(p, w->early.p, (size_t)n);
        buf_consume(&w->early, (size_t)n);
        return n;
    }
    n = connected_read(w->conn, p, room);
    if (n > 0)
        return n;
    if (n == -EAGAIN) {
        wslay_event_set_error(c, WSLAY_ERR_WOULDBLOCK);
    } else {
        w->ended = true;
        w->broken = !wslay_event_get_close_received(c);
        wslay_event_set_error(c, WSLAY_ERR_CALLBACK_FAILURE);
    }
    return -1;
}

static ssize_t on_send(wslay_event_context_ptr c, const uint8_t *p, size_t n, int flags, void *user)
{
    struct ws_client *w = user;
    ssize_t sent = connected_write(w->conn, p, n);

    (void)flags;
    if (sent >= 0)
        return sent;
    if (sent != -EAGAIN)
        w->ended = w->broken = true;
    wslay_event_set_error(c, sent == -EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
    return -1;
}

static int on_mask(wslay_event_context_ptr c, uint8_t *p, size_t n, void *user)
{
    (void)c, (void)user;
    random_bytes(p, n);
    return 0;
}

static void on_message(wslay_event_context_ptr c, const struct wslay_event_on_msg_recv_arg *m,
                       void *user)
{
    struct ws_client *w = user;

    (void)c;
    if (!w->enough && w->fn && !wslay_is_ctrl_frame(m->opcode))
        w->enough =
            w->fn(w->user, m->opcode == WSLAY_TEXT_FRAME, (const char *)m->msg, m->msg_length) < 0;
}

/* ---- life ---- */

int ws_open(const struct daemon_at *at, const char *path, struct ws_client **ret, struct err *e)
{
    const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .genmask_callback = on_mask,
        .on_msg_recv_callback = on_message,
    };
    struct ws_client *w = calloc(1, sizeof *w);
    int r = -1;

    if (!w)
        return err_set(e, ERR_HOST, "no memory");
    w->early = BUF_INIT(HEAD_MAX + 4096);
    if (connected_open(at, &w->conn, e) == 0 && shake(w, at, path, e) == 0) {
        if (wslay_event_context_client_init(&w->wslay, &callbacks, w) < 0)
            (void)err_set(e, ERR_HOST, "no memory");
        else
            r = 0;
    }
    if (r < 0) {
        ws_close(w);
        return -1;
    }
    wslay_event_config_set_max_recv_msg_length(w->wslay, WS_MESSAGE_MAX);
    *ret = w;
    return 0;
}

void ws_close(struct ws_client *w)
{
    if (!w)
        return;
    if (w->wslay)
        wslay_event_context_free(w->wslay);
    connected_close(w->conn);
    buf_done(&w->early);
    free(w);
}

int ws_fd(const struct ws_client *w)
{
    return connected_fd(w->conn);
}

short ws_wants(const struct ws_client *w)
{
    return (short)(POLLIN | (wslay_event_want_write(w->wslay) ? POLLOUT : 0));
}

int ws_move(struct ws_client *w, ws_message_fn *fn, void *user)
{
    int r = 0;

    w->fn = fn;
    w->user = user;
    if (wslay_event_want_write(w->wslay))
        r = wslay_event_send(w->wslay);
    if (r == 0)
        r = wslay_event_recv(w->wslay);
    if (r == 0 && wslay_event_want_write(w->wslay)) /* pongs, and the answer to a close */
        r = wslay_event_send(w->wslay);
    w->fn = NULL;
    if (w->enough || wslay_event_get_close_received(w->wslay))
        return 0;
    return r == 0 ? 1 : w->ended && !w->broken ? 0 : -1;
}

int ws_send(struct ws_client *w, bool text, const char *p, size_t n)
{
    const struct wslay_event_msg m = {.opcode = text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
                                      .msg = (const uint8_t *)p,
                                      .msg_length = n};

    return wslay_event_queue_msg(w->wslay, &m) == 0 ? 0 : -1;
}

size_t ws_waiting(const struct ws_client *w)
{
    return wslay_event_get_queued_msg_length(w->wslay);
}
