/* SPDX-License-Identifier: MIT */
/*
 * JSON-RPC as the Model Context Protocol has it: one message in, one answer out. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"

enum {
    RPC_DEPTH_MAX = 64,   /* objects and arrays inside each other */
    RPC_METHOD_MAX = 64,  /* bytes of a method's name */
    RPC_VERSION_MAX = 32, /* bytes of a protocol version */
    RPC_WORDS_MAX = 300,
};

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID_REQUEST = -32600, /* the shape, the session, a limit of the transport */
    RPC_NO_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NO_RESOURCE = -32002, /* of the handshake era */
    RPC_HEADERS = -32020,     /* a header and the body do not agree */
    RPC_VERSION = -32022,
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* Views into the text. */
struct rpc_message {
    enum rpc_kind kind;
    struct json_value id; /* a string or an integer; p == NULL: none */
    char method[RPC_METHOD_MAX + 1];
    struct json_value params;          /* an object; p == NULL: none */
    struct json_value meta;            /* its `_meta`: an object; p == NULL: none */
    bool has_version;                  /* _meta names a protocol version, */
    char version[RPC_VERSION_MAX + 1]; /* which is this; "": no text, or too long */
};

struct rpc_fault {
    enum rpc_code code;
    char words[RPC_WORDS_MAX];
};

/* -1: it is none. ret->id is there all the same if it could be read. */
must_check int rpc_parse(const char *text, size_t n, struct rpc_message *ret,
                         struct rpc_fault *ret_fault);

/* Appends {"jsonrpc":"2.0","id":ID,"error":{...}}. id.p == NULL: without an id; data: JSON, or
 * NULL. */
void rpc_write_error(struct buf *out, struct json_value id, enum rpc_code code, const char *words,
                     const char *data);
/* Appends {"jsonrpc":"2.0","id":ID,"result":RESULT}. */
void rpc_write_result(struct buf *out, struct json_value id, const char *result, size_t n);

/* The value of an Mcp-Name header: as it is, or in "=?base64?...?=". -1: malformed. */
must_check int rpc_header_decode(const char *value, struct buf *out);
