/* SPDX-License-Identifier: MIT */
#include "egress/hello.h"

#include <stdbool.h>
#include <string.h>

enum {
    RECORD_HEAD = 5,
    RECORD_HANDSHAKE = 22,
    RECORD_MAX = 16 * 1024,
    HANDSHAKE_HEAD = 4,
    CLIENT_HELLO = 1,
    VERSION_AND_RANDOM = 2 + 32,
    EXTENSION_NAME = 0,
    EXTENSION_ECH = 0xfe0d,
    NAME_HOST = 0,
};

/* What is left to read; `bad` sticks. */
struct cursor {
    const uint8_t *p;
    size_t n;
    bool bad;
};

static uint32_t number(struct cursor *c, size_t bytes)
{
    uint32_t v = 0;

    if (c->bad || c->n < bytes) {
        c->bad = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | c->p[i];
    c->p += bytes;
    c->n -= bytes;
    return v;
}

static struct cursor part(struct cursor *c, size_t n)
{
    struct cursor in = {c->p, n, false};

    if (c->bad || c->n < n) {
        c->bad = true;
        return (struct cursor){.bad = true};
    }
    c->p += n;
    c->n -= n;
    return in;
}

/* A list of names with one of a host. */
static enum hello read_name(struct cursor in, char name[EGRESS_NAME_MAX + 1])
{
    struct cursor list = part(&in, number(&in, 2));
    uint32_t kind = number(&list, 1);
    struct cursor host = part(&list, number(&list, 2));

    if (in.bad || list.bad || host.bad || in.n > 0 || list.n > 0 || kind != NAME_HOST)
        return HELLO_BAD;
    return egress_host_read((const char *)host.p, host.n, name) == EGRESS_HOST_NAME ? HELLO_NAME
                                                                                    : HELLO_BAD;
}

static enum hello read_extensions(struct cursor in, char name[EGRESS_NAME_MAX + 1])
{
    enum hello found = HELLO_NO_NAME;
    bool ech = false;

    while (in.n > 0) {
        uint32_t kind = number(&in, 2);
        struct cursor body = part(&in, number(&in, 2));

        if (in.bad)
            return HELLO_BAD;
        ech |= kind == EXTENSION_ECH;
        if (kind != EXTENSION_NAME)
            continue;
        if (found != HELLO_NO_NAME) /* one could be read by us and the other by the host */
            return HELLO_BAD;
        found = read_name(body, name);
        if (found != HELLO_NAME)
            return found;
    }
    return ech ? HELLO_ECH : found;
}

static enum hello read_body(struct cursor in, char name[EGRESS_NAME_MAX + 1])
{
    struct cursor extensions;

    (void)part(&in, VERSION_AND_RANDOM);
    (void)part(&in, number(&in, 1)); /* session */
    (void)part(&in, number(&in, 2)); /* ciphers */
    (void)part(&in, number(&in, 1)); /* compression */
    if (in.bad)
        return HELLO_BAD;
    if (in.n == 0)
        return HELLO_NO_NAME;
    extensions = part(&in, number(&in, 2));
    return in.bad || in.n > 0 ? HELLO_BAD : read_extensions(extensions, name);
}

enum hello hello_read(const uint8_t *p, size_t n, char name[EGRESS_NAME_MAX + 1])
{
    struct cursor record = {p, n, false}, body;
    size_t length;

    if ((n > 0 && p[0] != RECORD_HANDSHAKE) || (n > 1 && p[1] != 3))
        return HELLO_BAD;
    if (n < RECORD_HEAD)
        return HELLO_MORE;
    length = (size_t)p[3] << 8 | p[4];
    if (length < HANDSHAKE_HEAD || length > RECORD_MAX)
        return HELLO_BAD;
    if (n >= RECORD_HEAD + HANDSHAKE_HEAD &&
        (p[5] != CLIENT_HELLO ||
         ((size_t)p[6] << 16 | (size_t)p[7] << 8 | p[8]) + HANDSHAKE_HEAD != length))
        return HELLO_BAD;
    if (n < RECORD_HEAD + length)
        return HELLO_MORE;
    (void)part(&record, RECORD_HEAD + HANDSHAKE_HEAD);
    body = part(&record, length - HANDSHAKE_HEAD);
    return read_body(body, name);
}
