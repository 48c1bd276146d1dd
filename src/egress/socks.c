/* SPDX-License-Identifier: MIT */
#include "egress/socks.h"

#include <arpa/inet.h>
#include <string.h>

enum { CONNECT = 1, TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4, HEAD = 4 };

int socks_greeting(const uint8_t *p, size_t n)
{
    if (n > 0 && p[0] != SOCKS_VERSION)
        return -1;
    if (n < 2 || n < 2 + (size_t)p[1])
        return 0;
    return memchr(p + 2, 0, p[1]) ? 2 + p[1] : -1;
}

static void read_host(const uint8_t *p, size_t n, uint8_t type, struct socks_request *r)
{
    char text[INET6_ADDRSTRLEN];

    if (type == TYPE_NAME) {
        r->kind = egress_host_read((const char *)p, n, r->host);
        return;
    }
    if (type == TYPE_V4)
        memcpy(&r->v4, p, sizeof r->v4);
    (void)inet_ntop(type == TYPE_V4 ? AF_INET : AF_INET6, p, text, sizeof text);
    r->kind = egress_host_read(text, strlen(text), r->host);
}

int socks_request(const uint8_t *p, size_t n, struct socks_request *ret)
{
    size_t at = HEAD, length;

    *ret = (struct socks_request){0};
    if (n < HEAD + 1)
        return n > 0 && p[0] != SOCKS_VERSION ? -1 : 0;
    if (p[0] != SOCKS_VERSION || p[2] != 0)
        return -1;
    if (p[3] != TYPE_V4 && p[3] != TYPE_NAME && p[3] != TYPE_V6)
        return -1;
    length = p[3] == TYPE_V4 ? 4 : p[3] == TYPE_V6 ? 16 : p[at++];
    if (n < at + length + 2)
        return 0;
    read_host(p + at, length, p[3], ret);
    at += length;
    ret->port = (uint16_t)(p[at] << 8 | p[at + 1]);
    ret->connect = p[1] == CONNECT;
    return (int)at + 2;
}

void socks_reply(enum socks_reply code, uint8_t out[SOCKS_REPLY])
{
    static const uint8_t reply[SOCKS_REPLY] = {SOCKS_VERSION, 0, 0, TYPE_V4};

    memcpy(out, reply, SOCKS_REPLY);
    out[1] = (uint8_t)code;
}
