/* SPDX-License-Identifier: MIT */
#include "cli/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/languages.h"

const char *language_of(const char *file, unsigned flags)
{
    const char *dot = strrchr(file, '.');
    const struct call_lang *l;

    for (size_t i = 0; dot && (l = language(i)); i++)
        for (size_t k = 0; k < LANGUAGE_ENDINGS_MAX && l->ending[k]; k++)
            if ((l->flags & flags) == flags && strcmp(dot, l->ending[k]) == 0)
                return l->name;
    return NULL;
}

static int read_all(FILE *f, struct buf *out)
{
    char part[16384];
    size_t n;

    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        if (buf_put(out, part, n) < 0)
            return -EFBIG;
    }
    return ferror(f) ? -EIO : 0;
}

int read_whole(const char *file, struct buf *out)
{
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
    int r = f ? read_all(f, out) : -errno;

    if (f && f != stdin)
        (void)fclose(f);
    if (r < 0)
        (void)fprintf(stderr, "sbx: %s: %s\n", file, strerror(-r));
    return r < 0 ? -1 : 0;
}
