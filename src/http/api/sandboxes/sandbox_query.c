/* SPDX-License-Identifier: MIT */
#include "http/api/sandboxes/sandbox_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/server/route.h"

bool query_decode(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == '+')
            *p = ' ';
    return route_decode(text, strlen(text), text);
}

bool query_pairs(char *text, struct exec_var *out, size_t *ret_n)
{
    char *rest = text, *one;

    *ret_n = 0;
    while ((one = strsep(&rest, "&"))) {
        char *value = strchr(one, '=');

        if (!*one)
            continue;
        if (!value || *ret_n == PERSISTENT_PAIRS_MAX)
            return false;
        *value++ = '\0';
        if (!query_decode(one) || !query_decode(value))
            return false;
        out[(*ret_n)++] = (struct exec_var){
            {one,   strlen(one)  },
            {value, strlen(value)}
        };
    }
    return true;
}

bool query_states(const char *text, unsigned *ret)
{
    *ret = 0;
    for (const char *p = text; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        unsigned found = 0;

        for (int s = PERSISTENT_RUNNING; s <= PERSISTENT_PAUSED; s++) {
            const char *name = persistent_state_name((enum persistent_state)s);

            if (strlen(name) == n && memcmp(p, name, n) == 0)
                found = BIT(s);
        }
        if (!found)
            return false;
        *ret |= found;
        p += n;
    }
    return true;
}

bool query_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret)
{
    unsigned long long n;
    char *end;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
        return false;
    *ret = n;
    return true;
}
