/* SPDX-License-Identifier: MIT */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>

/* libcrypto fails here only if it was built or configured without SHA-256 or memory ran out in the
 * middle; a wrong digest would be worse than no daemon. */
static void must(int ok)
{
    if (ok != 1)
        abort();
}

/* The handle is libcrypto's own context under our name. */
static EVP_MD_CTX *ctx(struct sha256 *h)
{
    return (EVP_MD_CTX *)(void *)h;
}

struct sha256 *sha256_new(void)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();

    if (c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(c);
        return NULL;
    }
    return (struct sha256 *)(void *)c;
}

void sha256_free(struct sha256 *h)
{
    EVP_MD_CTX_free(ctx(h));
}

void sha256_add(struct sha256 *h, const void *p, size_t n)
{
    must(EVP_DigestUpdate(ctx(h), p, n));
}

void sha256_set(struct sha256 *to, const struct sha256 *from)
{
    must(EVP_MD_CTX_copy_ex(ctx(to), (const EVP_MD_CTX *)(const void *)from));
}

void sha256_end(struct sha256 *h, unsigned char out[SHA256_BYTES])
{
    must(EVP_DigestFinal_ex(ctx(h), out, NULL));
}

static void put_hex(const unsigned char digest[SHA256_BYTES], char out[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[SHA256_HEX - 1] = '\0';
}

void sha256_end_hex(struct sha256 *h, char out[SHA256_HEX])
{
    unsigned char digest[SHA256_BYTES];

    sha256_end(h, digest);
    put_hex(digest, out);
}

void sha256_hex(const void *p, size_t n, char out[SHA256_HEX])
{
    unsigned char digest[SHA256_BYTES];

    must(EVP_Digest(p, n, digest, NULL, EVP_sha256(), NULL));
    put_hex(digest, out);
}

int sha256_mac(const void *key, size_t key_n, const struct sha256_piece *pieces, size_t n,
               unsigned char out[SHA256_BYTES])
{
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key, key_n);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    size_t out_n = SHA256_BYTES;
    bool good = k && c && EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k) == 1;

    for (size_t i = 0; good && i < n; i++)
        good = EVP_DigestSignUpdate(c, pieces[i].p, pieces[i].n) == 1;
    good = good && EVP_DigestSignFinal(c, out, &out_n) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(k);
    return good ? 0 : -1;
}
