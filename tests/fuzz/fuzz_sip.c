/* SPDX-License-Identifier: MIT */
/*
 * Arguments of a call become a packet: its head tells its length, and its payload is JSON again,
 * whatever was in it. A name, a newline, {"args": …, "kwargs": …}.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "function/args.h"
#include "function/sip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void packet(const struct sip_call *c)
{
    struct buf payload = BUF_INIT(1 << 24), out = BUF_INIT(1 << 24);
    struct json_value v;
    struct err e;
    char *end;

    sip_payload(c, &payload);
    assert(payload.n > 0 && json_parse(payload.p, payload.n, 0, &v, &e) == 0);
    assert(v.type == JSON_OBJECT);
    assert(sip_packet(SIP_ATOMIC, payload.p, payload.n, &out) == 0);
    assert(out.n == payload.n + SIP_HEAD && out.p[0] == SIP_ATOMIC);
    assert(memcmp(out.p + SIP_HEAD, payload.p, payload.n) == 0);
    out.p[SIP_HEAD] = '\0';
    assert(strtoul(out.p + 1, &end, 16) == payload.n && end == out.p + SIP_HEAD);
    buf_done(&payload);
    buf_done(&out);
}

static void call(char *name, size_t name_n, const char *json, size_t n)
{
    struct json_value v, args = {0}, kwargs = {0};
    struct call_args a = {0};
    struct err e;

    if (json_parse(json, n, 0, &v, &e) < 0 || v.type != JSON_OBJECT)
        return;
    (void)json_get(v, "args", &args);
    (void)json_get(v, "kwargs", &kwargs);
    if (call_args_collect(&a, args, kwargs, &e) == 0)
        packet(&(struct sip_call){
            .function = {name, name_n},
              .file = n % 2 ? "/workspace/x" : NULL, .args = &a
        });
    call_args_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), *json;

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    json = memchr(text, '\n', n);
    if (json)
        call(text, (size_t)(json - text), json + 1, n - (size_t)(json + 1 - text));
    free(text);
    return 0;
}
