/* SPDX-License-Identifier: MIT */
#include "app/sandbox/file_signature.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/secret.h"
#include "base/sha256.h"

int signature_make(const struct signed_access *a, const char *token, char out[SIGNATURE_MAX])
{
    const char *parts[] = {a->path, a->verb, a->user, token, a->expires};
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    cleanup_with(buf_done) struct buf text = BUF_INIT(SIGNATURE_MAX);
    unsigned char digest[SHA256_BYTES];

    if (!h)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(parts) && parts[i]; i++) {
        if (i > 0)
            sha256_add(h, ":", 1);
        sha256_add(h, parts[i], strlen(parts[i]));
    }
    sha256_end(h, digest);
    if (base64_encode(digest, sizeof digest, &text) < 0)
        return -1;
    (void)snprintf(out, SIGNATURE_MAX, "v1_%.*s", (int)strcspn(text.p, "="), text.p);
    return 0;
}

static bool has_passed(const char *expires)
{
    char *end;
    long long at;

    errno = 0;
    at = strtoll(expires, &end, 10);
    return *expires < '0' || *expires > '9' || *end || errno || at < (long long)time(NULL);
}

bool signature_opens(const char *given, const struct signed_access *a, const char *token)
{
    char want[SIGNATURE_MAX];

    if (a->expires && has_passed(a->expires))
        return false;
    return signature_make(a, token, want) == 0 && secret_text_is(given, want);
}
