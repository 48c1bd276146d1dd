/* SPDX-License-Identifier: MIT */
/*
 * SIP, the Sandbox Input Protocol: one byte of mode, eight lower-case hexadecimal digits (bytes of
 * the payload), the payload. Mode A: one packet, one answer, the end. Mode P: the program stays and
 * is sent one packet after the other. Mode S: the same, and the items of a generator are answers of
 * their own. Packets of P and S are frames (core/frame.h) of the private channel. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/plan.h"
#include "function/args.h"

enum { SIP_HEAD = 9, SIP_ATOMIC = 'A', SIP_PERSISTENT = 'P', SIP_STREAM = 'S' };

/* The payload of a call: functionName, args, kwargs, holes where there are some, filePath. */
struct sip_call {
    struct bytes function;
    const char *file; /* NULL: none */
    const struct call_args *args;
    const char *token; /* P and S: what the answer begins with; NULL: none */
    uint64_t wall_ms;  /* P and S: after so long it is interrupted */
    int options_at;    /* P and S of javascript: where what is left by name goes; -1: behind */
};
void sip_payload(const struct sip_call *c, struct buf *out);
/* A whole packet. */
must_check int sip_packet(char mode, const char *payload, size_t n, struct buf *out);
