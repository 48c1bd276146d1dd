/* SPDX-License-Identifier: MIT */
#include "http/api/e2b/envelope.h"

enum envelope_fault envelope_take(const char *p, size_t n, size_t max, struct envelope *ret)
{
    const unsigned char *b = (const unsigned char *)p;
    size_t length;

    if (n > 0 && (b[0] & ~(unsigned)ENVELOPE_END) != 0)
        return ENVELOPE_FLAGS;
    if (n < ENVELOPE_HEAD)
        return ENVELOPE_SHORT;
    length = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (length > max)
        return ENVELOPE_LONG;
    if (n - ENVELOPE_HEAD < length)
        return ENVELOPE_SHORT;
    *ret = (struct envelope){b[0], p + ENVELOPE_HEAD, length};
    return ENVELOPE_OK;
}

void envelope_head(unsigned flags, size_t n, unsigned char out[ENVELOPE_HEAD])
{
    out[0] = (unsigned char)flags;
    for (int i = 1; i < ENVELOPE_HEAD; i++)
        out[i] = (unsigned char)(n >> 8 * (ENVELOPE_HEAD - 1 - i));
}
