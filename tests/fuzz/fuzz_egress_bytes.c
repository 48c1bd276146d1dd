/* SPDX-License-Identifier: MIT */
/* Client hellos, questions for names and SOCKS, as tenants send them to a door; the first byte
 * chooses. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/dns.h"
#include "egress/hello.h"
#include "egress/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
    char again[EGRESS_NAME_MAX + 1];

    assert(egress_host_read(name, strlen(name), again) != EGRESS_HOST_BAD);
    assert(strcmp(name, again) == 0);
}

static void hello(const uint8_t *p, size_t n)
{
    char name[EGRESS_NAME_MAX + 1];

    if (hello_read(p, n, name) == HELLO_NAME)
        check_name(name);
}

static void dns(const uint8_t *p, size_t n)
{
    uint8_t out[DNS_MAX];
    struct dns_question q;

    if (!dns_read(p, n, &q))
        return;
    assert(q.n <= n);
    if (q.good)
        check_name(q.name);
    assert(dns_answer(p, &q, DNS_OK, 0x0100007f, out) <= DNS_MAX);
}

static void socks(const uint8_t *p, size_t n)
{
    struct socks_request r;
    int used = socks_request(p, n, &r);

    assert(used <= (int)n && socks_greeting(p, n) <= (int)n);
    if (used > 0 && r.kind != EGRESS_HOST_BAD)
        check_name(r.host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(const uint8_t *, size_t) = {hello, dns, socks};
    uint8_t *exact;

    if (size == 0)
        return 0;
    exact = malloc(size); /* a sanitizer sees a step beyond */
    if (!exact)
        abort();
    memcpy(exact, data + 1, size - 1);
    targets[data[0] % ARRAY_LEN(targets)](exact, size - 1);
    free(exact);
    return 0;
}
