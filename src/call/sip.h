/* SPDX-License-Identifier: MIT */
/*
 * SIP, the Sandbox Input Protocol: one byte of mode, eight lower-case hexadecimal digits (bytes of
 * the payload), the payload. Mode A: one packet, one answer, the end. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "call/args.h"
#include "core/plan.h"

enum { SIP_HEAD = 9, SIP_ATOMIC = 'A' };

/* The payload of a call: functionName, args, kwargs, holes where there are some, filePath. */
struct sip_call {
    struct bytes function;
    const char *file; /* NULL: none */
    const struct call_args *args;
};
void sip_payload(const struct sip_call *c, struct buf *out);
/* A whole packet. */
must_check int sip_packet(char mode, const char *payload, size_t n, struct buf *out);
