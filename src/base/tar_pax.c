/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/tar_inner.h"

static int keep_text(struct tar_reader *r, char out[TAR_NAME_MAX], const char *p, size_t n)
{
    if (n >= TAR_NAME_MAX)
        return tar_refuse(r, TAR_NAME_LONG);
    if (memchr(p, '\0', n))
        return tar_refuse(r, TAR_EXTENDED);
    memcpy(out, p, n);
    out[n] = '\0';
    return 0;
}

/* Decimal digits; how many, 0: none, or too many to be true. */
static size_t read_decimal(const char *p, size_t n, uint64_t *ret)
{
    size_t i = 0;

    for (*ret = 0; i < n && p[i] >= '0' && p[i] <= '9'; i++)
        if (__builtin_mul_overflow(*ret, (uint64_t)10, ret) ||
            __builtin_add_overflow(*ret, (uint64_t)(p[i] - '0'), ret))
            return 0;
    return i;
}

/* Seconds, maybe negative, maybe with a fraction. */
static int read_time(struct tar_reader *r, const char *p, size_t n)
{
    bool negative = n > 0 && *p == '-';
    size_t at = negative, digits;
    uint64_t s, scale = 100000000;

    digits = read_decimal(p + at, n - at, &s);
    at += digits;
    if (digits == 0 || s > TAR_TIME_MAX || (at < n && p[at] != '.'))
        return tar_refuse(r, TAR_EXTENDED);
    r->mtime_ns = 0;
    for (at++; at < n; at++, scale /= 10) {
        if (p[at] < '0' || p[at] > '9')
            return tar_refuse(r, TAR_EXTENDED);
        r->mtime_ns += (uint32_t)((uint64_t)(p[at] - '0') * scale);
    }
    r->mtime_s = negative ? -(int64_t)s : (int64_t)s;
    if (negative && r->mtime_ns > 0) { /* nanoseconds count forwards */
        r->mtime_s--;
        r->mtime_ns = 1000000000 - r->mtime_ns;
    }
    if (r->mtime_s < -TAR_TIME_MAX)
        return tar_refuse(r, TAR_EXTENDED);
    r->has_mtime = true;
    return 0;
}

int tar_pax_path(struct tar_reader *r, const char *p, size_t n)
{
    r->has_name = n > 0; /* empty: what was said before is taken back */
    return keep_text(r, r->raw, p, n);
}

int tar_pax_link(struct tar_reader *r, const char *p, size_t n)
{
    r->has_link = n > 0;
    return keep_text(r, r->raw_link, p, n);
}

static int pax_size(struct tar_reader *r, const char *p, size_t n)
{
    r->has_size = true;
    if (n == 0 || read_decimal(p, n, &r->size) != n || r->size > INT64_MAX)
        return tar_refuse(r, TAR_EXTENDED);
    return 0;
}

static int pax_sparse(struct tar_reader *r, const char *p, size_t n)
{
    (void)p, (void)n;
    return tar_refuse(r, TAR_TYPE);
}

static const struct {
    const char *key;
    size_t n; /* bytes compared */
    int (*take)(struct tar_reader *r, const char *p, size_t n);
} pax_keys[] = {
    {"path=",       5,  tar_pax_path},
    {"linkpath=",   9,  tar_pax_link},
    {"size=",       5,  pax_size    },
    {"mtime=",      6,  read_time   },
    {"GNU.sparse.", 11, pax_sparse  },
};

static int pax_record(struct tar_reader *r, const char *p, size_t n)
{
    if (!memchr(p, '=', n))
        return tar_refuse(r, TAR_EXTENDED);
    for (size_t i = 0; i < ARRAY_LEN(pax_keys); i++)
        if (n >= pax_keys[i].n && memcmp(p, pax_keys[i].key, pax_keys[i].n) == 0)
            return pax_keys[i].take(r, p + pax_keys[i].n, n - pax_keys[i].n);
    return 0;
}

/* "LENGTH KEY=VALUE\n", one after the other; the length counts itself. */
int tar_pax_records(struct tar_reader *r, const char *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint64_t len;
        size_t digits = read_decimal(p + at, n - at, &len);

        if (digits == 0 || len > n - at || len < digits + 3 || p[at + digits] != ' ' ||
            p[at + len - 1] != '\n')
            return tar_refuse(r, TAR_EXTENDED);
        if (pax_record(r, p + at + digits + 1, (size_t)len - digits - 2) < 0)
            return -1;
        at += len;
    }
    return 0;
}
