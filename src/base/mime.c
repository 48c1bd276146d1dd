/* SPDX-License-Identifier: MIT */
#include "base/mime.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

struct row {
    const char *ending, *type;
};

static const struct row rows[] = {
#define MIME(ending, type) {ending, type},
#include "base/mime.def"
#undef MIME
};

static int compare(const void *key, const void *row)
{
    return strcasecmp(key, ((const struct row *)row)->ending);
}

const char *mime_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    const struct row *row;

    if (!dot || dot == name)
        return MIME_DEFAULT;
    row = bsearch(dot + 1, rows, ARRAY_LEN(rows), sizeof rows[0], compare);
    return row ? row->type : MIME_DEFAULT;
}
