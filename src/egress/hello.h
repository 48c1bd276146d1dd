/* SPDX-License-Identifier: MIT */
/* The name in the first message of a TLS client. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/egress_policy.h"

enum { HELLO_MAX = 16 * 1024 + 5 };

enum hello {
    HELLO_MORE,    /* it is not complete */
    HELLO_NAME,    /* *name is filled */
    HELLO_NO_NAME, /* it names no host */
    HELLO_ECH,     /* its real name is encrypted */
    HELLO_BAD,     /* this is no client hello in one record */
};

/* The name as it stands there, lower case. */
must_check enum hello hello_read(const uint8_t *p, size_t n, char name[EGRESS_NAME_MAX + 1]);
