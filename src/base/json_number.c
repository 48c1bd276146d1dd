/* SPDX-License-Identifier: MIT */
/* Numbers and booleans out of validated text. Integers never pass through floating point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* value = (digits) * 10^exponent */
struct decimal {
    const char *p;  /* the first digit that is not zero; a point may come in between */
    int64_t digits; /* without trailing zeros; 0: the number is zero */
    int64_t exponent;
    bool negative;
};

static int64_t exponent_of(const char *p, const char *end)
{
    enum { CLAMP = 1000000000 }; /* more digits than that fit in no text we accept */
    bool negative = p < end && *p == '-';
    int64_t v = 0;

    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end; p++)
        if (v < CLAMP)
            v = v * 10 + (*p - '0');
    return negative ? -v : v;
}

static struct decimal decimal_of(struct json_value v)
{
    const char *p = v.p, *end = v.p + v.n;
    struct decimal d = {.negative = *p == '-'};
    int64_t seen = 0; /* digits since the first that is not zero */
    bool fraction = false;

    p += d.negative;
    for (; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            fraction = true;
            continue;
        }
        d.exponent -= fraction;
        if (*p == '0' && seen == 0)
            continue;
        if (seen++ == 0)
            d.p = p;
        if (*p != '0')
            d.digits = seen;
    }
    d.exponent += seen - d.digits;
    if (p < end)
        d.exponent += exponent_of(p + 1, end);
    return d;
}

/* At most 19 digits, which always fit. */
static uint64_t decimal_magnitude(struct decimal d)
{
    uint64_t magnitude = 0;

    for (int64_t i = 0; i < d.digits; d.p++) {
        if (*d.p == '.')
            continue;
        magnitude = magnitude * 10 + (uint64_t)(*d.p - '0');
        i++;
    }
    for (int64_t i = 0; i < d.exponent; i++)
        magnitude *= 10;
    return magnitude;
}

bool json_to_int(struct json_value v, int64_t *ret)
{
    uint64_t magnitude;
    struct decimal d;

    if (v.type != JSON_NUMBER)
        return false;
    d = decimal_of(v);
    if (d.digits == 0) {
        *ret = 0;
        return true;
    }
    if (d.exponent < 0 || d.digits + d.exponent > 19)
        return false;
    magnitude = decimal_magnitude(d);
    if (magnitude > (uint64_t)INT64_MAX + d.negative)
        return false;
    *ret = d.negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool json_to_double(struct json_value v, double *ret)
{
    /* strtod wants a terminator */
    cleanup_free char *copy = v.type == JSON_NUMBER ? strndup(v.p, v.n) : NULL;
    double d;

    if (!copy)
        return false;
    d = strtod(copy, NULL);
    if (!isfinite(d))
        return false;
    *ret = d;
    return true;
}

bool json_to_bool(struct json_value v, bool *ret)
{
    if (v.type != JSON_BOOL)
        return false;
    *ret = *v.p == 't';
    return true;
}
