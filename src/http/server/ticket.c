/* SPDX-License-Identifier: MIT */
#include "http/server/ticket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/secret.h"

enum { TICKET_BYTES = 32, NONCE_BYTES = 8, UNTIL_DIGITS = 16, HEAD_MAX = 64 };

/* "console_", when it ends in hexadecimal digits, "_", a nonce, "_", the MAC of what is before. */
#define KEY_BEGINS "console_"

/* ---- tickets ---- */

static int digest_of(const char *text, unsigned char out[SHA256_BYTES])
{
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();

    if (!h)
        return -1;
    sha256_add(h, text, strlen(text));
    sha256_end(h, out);
    return 0;
}

int ticket_make(struct tickets *t, uint64_t valid_us, char out[TICKET_MAX])
{
    struct door_ticket *place = t->row;

    for (size_t i = 1; i < TICKETS_MAX; i++)
        if (t->row[i].until_us < place->until_us)
            place = &t->row[i];
    random_hex(out, TICKET_BYTES);
    if (digest_of(out, place->digest) < 0)
        return -1;
    place->until_us = clock_us() + valid_us;
    return 0;
}

bool ticket_take(struct tickets *t, const char *text)
{
    unsigned char digest[SHA256_BYTES];
    uint64_t now = clock_us();

    if (strlen(text) != TICKET_MAX - 1 || digest_of(text, digest) < 0)
        return false;
    for (size_t i = 0; i < TICKETS_MAX; i++) {
        struct door_ticket *row = &t->row[i];

        if (row->until_us > now && secret_is((const char *)digest, sizeof digest,
                                             (const char *)row->digest, sizeof row->digest)) {
            *row = (struct door_ticket){0};
            return true;
        }
    }
    return false;
}

void tickets_forget(struct tickets *t)
{
    *t = (struct tickets){0};
}

/* ---- keys ---- */

/* The MAC of the head, in hexadecimal digits. The label keeps it apart from other MACs. */
static int sign(const char *secret, const char *head, size_t n, char out[SHA256_HEX])
{
    static const char label[] = "console session";
    const struct sha256_piece pieces[] = {
        {label, sizeof label},
        {head,  n           }
    };
    unsigned char mac[SHA256_BYTES];

    if (sha256_mac(secret, strlen(secret), pieces, ARRAY_LEN(pieces), mac) < 0)
        return -1;
    for (size_t i = 0; i < sizeof mac; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", mac[i]);
    return 0;
}

int session_key_make(const char *secret, int64_t until_s, char out[SESSION_KEY_MAX])
{
    char nonce[2 * NONCE_BYTES + 1], mac[SHA256_HEX];
    int n;

    random_hex(nonce, NONCE_BYTES);
    n = snprintf(out, SESSION_KEY_MAX, KEY_BEGINS "%0*llx_%s_", UNTIL_DIGITS,
                 (unsigned long long)until_s, nonce);
    if (sign(secret, out, (size_t)n, mac) < 0)
        return -1;
    memcpy(out + n, mac, sizeof mac);
    return 0;
}

bool session_key_looks(const char *text)
{
    return strncmp(text, KEY_BEGINS, sizeof KEY_BEGINS - 1) == 0;
}

bool session_key_is(const char *text, const char *secret, int64_t now_s)
{
    size_t head = sizeof KEY_BEGINS - 1 + UNTIL_DIGITS + 1 + (size_t)2 * NONCE_BYTES + 1;
    char mac[SHA256_HEX], *end;
    long long until;

    if (!session_key_looks(text) || strlen(text) != head + SHA256_HEX - 1 ||
        sign(secret, text, head, mac) < 0 || !secret_text_is(text + head, mac))
        return false;
    until = (long long)strtoull(text + sizeof KEY_BEGINS - 1, &end, 16);
    return *end == '_' && until > now_s;
}
