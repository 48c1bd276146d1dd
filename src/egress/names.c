/* SPDX-License-Identifier: MIT */
#include "egress/names.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* 198.18.0.1 is the interface's own. */
enum { FIRST = 2 };
#define RANGE 0xc6120000u

uint32_t names_address(struct names *t, const char *name)
{
    size_t i = 0;

    while (i < t->n && strcmp(t->v[i], name) != 0)
        i++;
    if (i == t->n) {
        size_t room = t->room ? 2 * t->room : 64;
        char **grown = t->n < t->room ? t->v : NULL;

        if (t->n == NAMES_MAX)
            return 0;
        if (!grown && (grown = realloc(t->v, room * sizeof *grown)))
            t->room = room;
        if (!grown)
            return 0;
        t->v = grown;
        t->v[i] = strdup(name);
        if (!t->v[i])
            return 0;
        t->n++;
    }
    return htonl(RANGE + FIRST + (uint32_t)i);
}

const char *names_of(const struct names *t, uint32_t address)
{
    uint32_t i = ntohl(address) - RANGE - FIRST;

    return ntohl(address) >= RANGE + FIRST && i < t->n ? t->v[i] : NULL;
}

void names_done(struct names *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i]);
    free(t->v);
    *t = (struct names){0};
}
