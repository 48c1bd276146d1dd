/* SPDX-License-Identifier: MIT */
#include "http/server/ws_frames.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "base/utf8.h"

enum { KEY_TEXT = 24, SHA1_BYTES = 20 };

struct ws_frames {
    wslay_event_context_ptr wslay; /* owned */
    struct ws_frames_events events;
    const char *in; /* borrowed while it is fed */
    size_t in_n;
    bool closing; /* a close frame of ours is queued or sent */
};

/* ---- what libwslay asks for ---- */

static ssize_t on_recv(wslay_event_context_ptr w, uint8_t *buf, size_t len, int flags, void *user)
{
    struct ws_frames *f = user;
    size_t n = f->in_n < len ? f->in_n : len;

    (void)flags;
    if (n == 0) {
        wslay_event_set_error(w, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(buf, f->in, n);
    f->in += n;
    f->in_n -= n;
    return (ssize_t)n;
}

static ssize_t on_send(wslay_event_context_ptr w, const uint8_t *p, size_t n, int flags, void *user)
{
    struct ws_frames *f = user;

    (void)w, (void)flags;
    f->events.write(f->events.user, p, n);
    return (ssize_t)n;
}

static void on_message(wslay_event_context_ptr w, const struct wslay_event_on_msg_recv_arg *m,
                       void *user)
{
    struct ws_frames *f = user;

    (void)w;
    if (!f->closing && !wslay_is_ctrl_frame(m->opcode))
        f->events.message(f->events.user, m->opcode == WSLAY_TEXT_FRAME, (const char *)m->msg,
                          m->msg_length);
}

/* ---- life ---- */

struct ws_frames *ws_frames_new(const struct ws_frames_events *events, size_t message_max)
{
    const struct wslay_event_callbacks callbacks = {
        .recv_callback = on_recv,
        .send_callback = on_send,
        .on_msg_recv_callback = on_message,
    };
    struct ws_frames *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->events = *events;
    if (wslay_event_context_server_init(&f->wslay, &callbacks, f) < 0) {
        free(f);
        return NULL;
    }
    wslay_event_config_set_max_recv_msg_length(f->wslay, message_max);
    return f;
}

void ws_frames_free(struct ws_frames *f)
{
    if (!f)
        return;
    wslay_event_context_free(f->wslay);
    free(f);
}

/* Everything that is queued is written at once. */
static bool flush(struct ws_frames *f)
{
    return wslay_event_send(f->wslay) == 0;
}

/* libwslay stops wanting input after a close frame of the client or an error, and output once its
 * answer is written. */
bool ws_frames_feed(struct ws_frames *f, const char *p, size_t n)
{
    bool good;

    f->in = p;
    f->in_n = n;
    good = wslay_event_recv(f->wslay) == 0;
    f->in = NULL;
    f->in_n = 0;
    good = flush(f) && good;
    return good && wslay_event_want_read(f->wslay);
}

static bool queue(struct ws_frames *f, uint8_t opcode, const void *p, size_t n)
{
    const struct wslay_event_msg m = {opcode, p, n};

    return !f->closing && wslay_event_queue_msg(f->wslay, &m) == 0 && flush(f);
}

bool ws_frames_send(struct ws_frames *f, bool text, const void *p, size_t n)
{
    return queue(f, text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, p, n);
}

bool ws_frames_ping(struct ws_frames *f)
{
    return queue(f, WSLAY_PING, NULL, 0);
}

void ws_frames_close(struct ws_frames *f, uint16_t code, const char *reason)
{
    size_t n = strlen(reason);

    if (f->closing)
        return;
    f->closing = true;
    if (n > WS_CONTROL_MAX - sizeof code) {
        n = WS_CONTROL_MAX - sizeof code;
        n -= utf8_incomplete_tail(reason, n);
    }
    (void)wslay_event_queue_close(f->wslay, code, (const uint8_t *)reason, n);
    (void)flush(f);
}

/* ---- the handshake ---- */

bool ws_accept_key(const char *key, char out[WS_ACCEPT_MAX])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[KEY_TEXT + sizeof guid];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_n = 0;

    /* 16 bytes are 22 digits and two signs that fill up. */
    if (!key || strlen(key) != KEY_TEXT || memcmp(key + KEY_TEXT - 2, "==", 2) != 0 ||
        strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") !=
            KEY_TEXT - 2)
        return false;
    memcpy(text, key, KEY_TEXT);
    memcpy(text + KEY_TEXT, guid, sizeof guid);
    if (!EVP_Digest(text, KEY_TEXT + sizeof guid - 1, digest, &digest_n, EVP_sha1(), NULL) ||
        digest_n != SHA1_BYTES)
        return false;
    return EVP_EncodeBlock((unsigned char *)out, digest, SHA1_BYTES) == WS_ACCEPT_MAX - 1;
}
