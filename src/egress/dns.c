/* SPDX-License-Identifier: MIT */
#include "egress/dns.h"

#include <string.h>

enum {
    HEAD = 12,
    LABEL_MAX = 63,
    QUESTION_TAIL = 4,
    RECORD = 16,
    RESPONSE = 0x80,
    OPCODE = 0x78,
    TRUNCATED = 0x02,
    WANTS_RECURSION = 0x01,
    RECURSION = 0x80,
    TTL = 30,
};

static uint16_t u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Labels with dots between them; 0: malformed, else bytes. */
static size_t read_name(const uint8_t *p, size_t n, char *out, size_t room, size_t *ret_n)
{
    size_t at = 0, out_n = 0;

    while (at < n && p[at] != 0) {
        size_t label = p[at];

        if (label > LABEL_MAX || at + 1 + label >= n || out_n + label + 1 > room)
            return 0;
        if (out_n > 0)
            out[out_n++] = '.';
        memcpy(out + out_n, p + at + 1, label);
        out_n += label;
        at += label + 1;
    }
    *ret_n = out_n;
    return at < n ? at + 1 : 0;
}

bool dns_read(const uint8_t *p, size_t n, struct dns_question *ret)
{
    struct dns_question q = {0};
    char text[EGRESS_NAME_MAX + 2];
    size_t name, text_n;

    if (n < HEAD || n > DNS_MAX || p[2] & (RESPONSE | OPCODE | TRUNCATED) || u16(p + 4) != 1)
        return false;
    name = read_name(p + HEAD, n - HEAD, text, sizeof text, &text_n);
    if (name == 0 || n - HEAD - name < QUESTION_TAIL)
        return false;
    q.id = u16(p);
    q.recursion = p[2] & WANTS_RECURSION;
    q.type = u16(p + HEAD + name);
    q.class = u16(p + HEAD + name + 2);
    q.n = HEAD + name + QUESTION_TAIL;
    q.good = memchr(text, '\0', text_n) == NULL &&
             egress_host_read(text, text_n, q.name) == EGRESS_HOST_NAME;
    *ret = q;
    return true;
}

size_t dns_answer(const uint8_t *question, const struct dns_question *q, enum dns_code code,
                  uint32_t address, uint8_t out[DNS_MAX])
{
    uint8_t *record = out + q->n;

    if (q->n + RECORD > DNS_MAX)
        address = 0;
    memcpy(out, question, q->n);
    out[2] = (uint8_t)(RESPONSE | (q->recursion ? WANTS_RECURSION : 0));
    out[3] = (uint8_t)(RECURSION | code);
    put16(out + 4, 1);
    put16(out + 6, address ? 1 : 0);
    memset(out + 8, 0, 4);
    if (!address)
        return q->n;
    put16(record, 0xc000 | HEAD); /* the name of the question */
    put16(record + 2, DNS_TYPE_A);
    put16(record + 4, DNS_CLASS_IN);
    put16(record + 6, 0);
    put16(record + 8, TTL);
    put16(record + 10, sizeof address);
    memcpy(record + 12, &address, sizeof address);
    return q->n + RECORD;
}
