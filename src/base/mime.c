/* SPDX-License-Identifier: MIT */
#include "base/mime.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct {
    const char *type, *endings;
} rows[] = {
#define MIME(type, endings) {type, endings},
#include "base/mime.def"
#undef MIME
};

static bool is_among(const char *endings, const char *ending, size_t n)
{
    for (const char *at = endings; *at; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");

        if (word == n && strncasecmp(at, ending, n) == 0)
            return true;
        at += word;
    }
    return false;
}

const char *mime_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && dot > name && i < ARRAY_LEN(rows); i++)
        if (is_among(rows[i].endings, dot + 1, strlen(dot + 1)))
            return rows[i].type;
    return MIME_DEFAULT;
}
