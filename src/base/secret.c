/* SPDX-License-Identifier: MIT */
#include "base/secret.h"

#include <string.h>

bool secret_is(const char *given, size_t given_n, const char *secret, size_t secret_n)
{
    volatile unsigned char diff = 0;

    if (!given || given_n != secret_n)
        return false;
    for (size_t i = 0; i < secret_n; i++)
        diff = (unsigned char)(diff | (given[i] ^ secret[i]));
    return diff == 0;
}

bool secret_text_is(const char *given, const char *secret)
{
    return given && *secret && secret_is(given, strlen(given), secret, strlen(secret));
}
