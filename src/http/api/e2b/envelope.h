/* SPDX-License-Identifier: MIT */
/*
 * Envelopes of the Connect protocol: a byte of flags, the length in four bytes (big-endian), the
 * message. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
    ENVELOPE_HEAD = 5,              /* bytes in front of the message */
    ENVELOPE_COMPRESSED = BIT(0),   /* flags; this one is never spoken here */
    ENVELOPE_END = BIT(1),          /* the last of a stream */
    ENVELOPE_MAX = 64 * 1024 * 1024 /* of a message that is sent */
};

struct envelope {
    unsigned flags;
    const char *p; /* borrowed: the message */
    size_t n;
};

/* Why p[0..n) begins with no envelope. */
enum envelope_fault {
    ENVELOPE_OK,
    ENVELOPE_SHORT, /* more bytes are needed */
    ENVELOPE_FLAGS, /* compressed, or flags that no one knows */
    ENVELOPE_LONG,  /* the message is longer than max */
};

/* The envelope at the beginning of p[0..n). It takes ENVELOPE_HEAD + ret->n bytes. */
enum envelope_fault envelope_take(const char *p, size_t n, size_t max, struct envelope *ret);
/* The bytes in front of a message of n bytes. */
void envelope_head(unsigned flags, size_t n, unsigned char out[ENVELOPE_HEAD]);
