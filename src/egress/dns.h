/* SPDX-License-Identifier: MIT */
/* Questions for names, and their answers. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/egress_policy.h"

enum { DNS_MAX = 512 };

struct dns_question {
    uint16_t id, type, class;
    bool recursion;
    size_t n; /* bytes of the head and the question */
    char name[EGRESS_NAME_MAX + 1];
    bool good; /* the name is one of a host; else it has no address */
};

enum { DNS_TYPE_A = 1, DNS_CLASS_IN = 1 };
enum dns_code { DNS_OK = 0, DNS_FORMAT = 1, DNS_NO_NAME = 3, DNS_REFUSED = 5 };

/* One question, standard, uncompressed. False: nothing to answer. */
bool dns_read(const uint8_t *p, size_t n, struct dns_question *ret);
/* The answer: with an address of IPv4 in network order, or without (0). Returns its bytes. */
size_t dns_answer(const uint8_t *question, const struct dns_question *q, enum dns_code code,
                  uint32_t address, uint8_t out[DNS_MAX]);
