/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/tar_inner.h"

static const char *const words[] = {
    [TAR_FINE] = "nothing is wrong",
    [TAR_CHECKSUM] = "this is no tar header: its checksum is wrong",
    [TAR_NUMBER] = "a number in the header is malformed",
    [TAR_EXTENDED] = "an extended header is malformed",
    [TAR_TYPE] = "entries of this type are not supported",
    [TAR_SPECIAL] = "devices, FIFOs and sockets are not taken",
    [TAR_CONTENT] = "a directory or link with content is ambiguous",
    [TAR_NAME_EMPTY] = "an entry without a name",
    [TAR_NAME_LONG] = "a name is too long",
    [TAR_NAME_ABSOLUTE] = "absolute names are not taken",
    [TAR_NAME_PARENT] = "names with '..' are not taken",
    [TAR_CUT] = "the archive ends in the middle of an entry",
    [TAR_NO_END] = "the archive ends without its end mark",
    [TAR_MANY] = "more entries than allowed",
    [TAR_DEEP] = "directories are nested deeper than allowed",
    [TAR_LARGE] = "more bytes than allowed",
    [TAR_MEMORY] = "no memory",
};
_Static_assert(ARRAY_LEN(words) == TAR_FAULT_COUNT, "every fault has its words");

const char *tar_fault_words(unsigned fault)
{
    return fault < TAR_FAULT_COUNT ? words[fault] : "unknown fault";
}

bool tar_fault_is_limit(unsigned fault)
{
    return fault == TAR_MANY || fault == TAR_DEEP || fault == TAR_LARGE;
}

/* ---- names ---- */

enum tar_fault tar_clean_name(const char *raw, char out[TAR_NAME_MAX], unsigned *ret_depth)
{
    size_t at = 0;
    unsigned parts = 0;

    if (*raw == '\0')
        return TAR_NAME_EMPTY;
    if (*raw == '/')
        return TAR_NAME_ABSOLUTE;
    for (const char *p = raw; *p;) {
        size_t n = strcspn(p, "/");

        if (n == 2 && memcmp(p, "..", 2) == 0)
            return TAR_NAME_PARENT;
        if (n > 0 && !(n == 1 && *p == '.')) {
            if (at + n + 2 > TAR_NAME_MAX)
                return TAR_NAME_LONG;
            if (parts++ > 0)
                out[at++] = '/';
            memcpy(out + at, p, n);
            at += n;
        }
        p += n;
        p += *p == '/';
    }
    if (parts == 0)
        out[at++] = '.';
    out[at] = '\0';
    *ret_depth = parts;
    return TAR_FINE;
}

/* ---- numbers ---- */

/* Octal, as long as its field, with spaces and NULs around it. */
static bool read_octal(const char *p, size_t n, int64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v * 8 + (uint64_t)(p[i] - '0'); /* 12 digits at most: no overflow */
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    *ret = (int64_t)v;
    return true;
}

/* GNU's way for what does not fit: the first bit set, then two's complement. */
static bool read_binary(const char *p, size_t n, int64_t *ret)
{
    bool negative = (unsigned char)p[0] == 0xff;
    uint64_t v = negative ? UINT64_MAX : 0;

    if (!negative && (unsigned char)p[0] != 0x80)
        return false;
    for (size_t i = 1; i < n; i++) {
        if (i + 8 < n && (unsigned char)p[i] != (negative ? 0xff : 0))
            return false;
        v = v << 8 | (unsigned char)p[i];
    }
    if ((v >> 63) != (uint64_t)negative)
        return false;
    *ret = (int64_t)v;
    return true;
}

bool tar_read_number(const char *p, size_t n, int64_t *ret)
{
    return (unsigned char)p[0] & 0x80 ? read_binary(p, n, ret) : read_octal(p, n, ret);
}

void tar_sums(const struct tar_head *h, unsigned *ret_plain, int *ret_signed)
{
    const char *p = (const char *)h;

    *ret_plain = 0;
    *ret_signed = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        bool own = i >= offsetof(struct tar_head, checksum) &&
                   i < offsetof(struct tar_head, checksum) + sizeof h->checksum;

        *ret_plain += own ? ' ' : (unsigned char)p[i];
        *ret_signed += own ? ' ' : (signed char)p[i];
    }
}

/* Old programs summed signed bytes. */
bool tar_sum_is_right(const struct tar_head *h)
{
    unsigned plain;
    int with_sign;
    int64_t said;

    tar_sums(h, &plain, &with_sign);
    return read_octal(h->checksum, sizeof h->checksum, &said) &&
           (said == (int64_t)plain || said == (int64_t)with_sign);
}
