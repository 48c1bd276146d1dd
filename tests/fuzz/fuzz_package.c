/* SPDX-License-Identifier: MIT */
/*
 * What callers and packages say. The first byte chooses: a requirement that is let through is no
 * option and no path; an index has a host; the secret of an index survives no scrubbing.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_spec(const char *p, size_t n)
{
    struct err e;

    if (package_spec_check(p, n, &e) < 0)
        return;
    while (n > 0 && (*p == ' ' || *p == '\t'))
        p++, n--;
    assert(n > 0 && !memchr("-/.~", *p, 4));
    assert(!memchr(p, '\n', n) && !memchr(p, '\0', n));
}

static void try_index(const char *p, size_t n)
{
    static const char text[] = "a text about nothing";
    struct buf out = BUF_INIT(16 * 1024), again = BUF_INIT(16 * 1024);
    struct package_index i;
    struct err e;

    if (package_index_parse(p, n, &i, &e) < 0)
        return;
    assert(i.host.name[0] && i.host.port != 0 && strlen(i.url) == n);
    package_scrub(&i, i.url, n, &out);
    package_scrub(&i, text, sizeof text - 1, &again);
    if (strlen(i.user_info) > 4) /* a shorter one may be part of what stands for it */
        assert(!out.p || !strstr(out.p, i.user_info));
    buf_done(&out);
    buf_done(&again);
}

static void try_metadata(const char *p, size_t n)
{
    struct package_dist d;

    if (package_metadata_parse(p, n, &d))
        assert(d.name[0] && d.version[0] && !strpbrk(d.name, "\r\n \t"));
}

static void try_hosts(const char *p, size_t n)
{
    struct package_host h[4];
    struct err e;
    char *text = strndup(p, n);

    if (!text)
        abort();
    assert(package_hosts_parse(text, h, 4, &e) <= 4);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const parsers[])(const char *, size_t) = {try_spec, try_index, try_metadata,
                                                            try_hosts};
    char *text;

    if (size == 0)
        return 0;
    text = malloc(size); /* exact, so that a sanitizer sees a step beyond */
    if (!text)
        abort();
    memcpy(text, data + 1, size - 1);
    parsers[data[0] % ARRAY_LEN(parsers)](text, size - 1);
    free(text);
    return 0;
}
