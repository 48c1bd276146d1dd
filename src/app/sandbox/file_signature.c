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

/* Everything in front of the token. */
static struct sha256 *begin(const struct signed_access *a)
{
    const char *parts[] = {a->path, a->verb, a->user};
    struct sha256 *h = sha256_new();

    for (size_t i = 0; h && i < ARRAY_LEN(parts); i++) {
        sha256_add(h, parts[i], strlen(parts[i]));
        sha256_add(h, ":", 1);
    }
    return h;
}

static int end(struct sha256 *h, const struct signed_access *a, const char *token,
               char out[SIGNATURE_MAX])
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(SIGNATURE_MAX);
    unsigned char digest[SHA256_BYTES];

    sha256_add(h, token, strlen(token));
    if (a->expires) {
        sha256_add(h, ":", 1);
        sha256_add(h, a->expires, strlen(a->expires));
    }
    sha256_end(h, digest);
    if (base64_encode(digest, sizeof digest, &text) < 0)
        return -1;
    (void)snprintf(out, SIGNATURE_MAX, "v1_%.*s", (int)strcspn(text.p, "="), text.p);
    return 0;
}

int signature_make(const struct signed_access *a, const char *token, char out[SIGNATURE_MAX])
{
    cleanup_with(sha256_freep) struct sha256 *h = begin(a);

    return h ? end(h, a, token, out) : -1;
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
    return signature_which(given, a, &token, 1) == 0;
}

size_t signature_which(const char *given, const struct signed_access *a, const char *const *tokens,
                       size_t n)
{
    cleanup_with(sha256_freep) struct sha256 *head = NULL, *one = NULL;
    char want[SIGNATURE_MAX];

    if (a->expires && has_passed(a->expires))
        return n;
    head = begin(a);
    one = sha256_new();
    for (size_t i = 0; head && one && i < n; i++) {
        sha256_set(one, head);
        if (end(one, a, tokens[i], want) == 0 && secret_text_is(given, want))
            return i;
    }
    return n;
}
