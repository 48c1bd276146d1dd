/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/rpc.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/jw.h"

static int fault(struct rpc_fault *f, enum rpc_code code, const char *words)
{
    f->code = code;
    (void)snprintf(f->words, sizeof f->words, "%.280s", words);
    return -1;
}

/* The text is valid JSON. */
static size_t depth_of(const char *p, size_t n)
{
    size_t depth = 0, most = 0;
    bool quoted = false;

    for (size_t i = 0; i < n; i++) {
        if (quoted && p[i] == '\\')
            i++;
        else if (p[i] == '"')
            quoted = !quoted;
        else if (!quoted && (p[i] == '{' || p[i] == '['))
            most = ++depth > most ? depth : most;
        else if (!quoted && (p[i] == '}' || p[i] == ']'))
            depth--;
    }
    return most;
}

/* A short string without NUL. false: it is none. */
static bool short_text(struct json_value v, char *out, size_t out_max)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(out_max);

    if (!v.p || v.type != JSON_STRING || json_decode_string(v, 0, &text) < 0 || text.n >= out_max ||
        (text.n > 0 && memchr(text.p, '\0', text.n)))
        return false;
    (void)snprintf(out, out_max, "%s", text.n > 0 ? text.p : "");
    return true;
}

static bool is_id(struct json_value v)
{
    if (v.type == JSON_STRING)
        return true;
    return v.type == JSON_NUMBER && !memchr(v.p, '.', v.n) && !memchr(v.p, 'e', v.n) &&
           !memchr(v.p, 'E', v.n);
}

static int take_id(struct json_value all, struct rpc_message *ret, struct rpc_fault *f)
{
    struct json_value id;

    if (!json_get(all, "id", &id))
        return 0;
    if (!is_id(id))
        return fault(f, RPC_INVALID_REQUEST, "id must be a string or an integer");
    ret->id = id;
    return 0;
}

static int take_params(struct json_value all, struct rpc_message *ret, struct rpc_fault *f)
{
    struct json_value version;

    ret->params = json_member(all, "params");
    if (!ret->params.p)
        return 0;
    if (ret->params.type != JSON_OBJECT)
        return fault(f, RPC_INVALID_REQUEST, "params must be an object");
    ret->meta = json_member(ret->params, "_meta");
    if (ret->meta.p && ret->meta.type != JSON_OBJECT)
        return fault(f, RPC_INVALID_PARAMS, "_meta must be an object");
    ret->has_version =
        ret->meta.p && json_get(ret->meta, "io.modelcontextprotocol/protocolVersion", &version);
    if (ret->has_version)
        (void)short_text(version, ret->version, sizeof ret->version);
    return 0;
}

int rpc_parse(const char *text, size_t n, struct rpc_message *ret, struct rpc_fault *f)
{
    struct json_value all, method, jsonrpc;
    char dialect[8] = "";
    struct err e;

    *ret = (struct rpc_message){.kind = RPC_REQUEST};
    if (json_parse(text, n, 0, &all, &e) < 0)
        return fault(f, RPC_PARSE, e.text);
    if (depth_of(all.p, all.n) > RPC_DEPTH_MAX)
        return fault(f, RPC_PARSE, "the message is nested too deeply");
    if (all.type != JSON_OBJECT)
        return fault(f, RPC_INVALID_REQUEST,
                     all.type == JSON_ARRAY ? "batches are not taken: send one message"
                                            : "a message must be an object");
    if (take_id(all, ret, f) < 0)
        return -1;
    if (!json_get(all, "jsonrpc", &jsonrpc) || !short_text(jsonrpc, dialect, sizeof dialect) ||
        strcmp(dialect, "2.0") != 0)
        return fault(f, RPC_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    if (!json_get(all, "method", &method)) {
        ret->kind = RPC_RESPONSE;
        if (json_member(all, "result").p || json_member(all, "error").p)
            return 0;
        return fault(f, RPC_INVALID_REQUEST, "method is missing");
    }
    if (!short_text(method, ret->method, sizeof ret->method))
        return fault(f, RPC_INVALID_REQUEST, "method must be a short string");
    if (!ret->id.p)
        ret->kind = RPC_NOTIFICATION;
    return take_params(all, ret, f);
}

static void begin(struct jw *w, struct json_value id)
{
    jw_object(w);
    jw_kv_string(w, "jsonrpc", "2.0");
    if (!id.p)
        return;
    jw_key(w, "id");
    jw_raw(w, id.p, id.n);
}

void rpc_write_error(struct buf *out, struct json_value id, enum rpc_code code, const char *words,
                     const char *data)
{
    struct jw w = JW(out);

    begin(&w, id);
    jw_key(&w, "error");
    jw_object(&w);
    jw_kv_int(&w, "code", code);
    jw_kv_string(&w, "message", words);
    if (data) {
        jw_key(&w, "data");
        jw_raw(&w, data, strlen(data));
    }
    jw_object_end(&w);
    jw_object_end(&w);
}

void rpc_write_result(struct buf *out, struct json_value id, const char *result, size_t n)
{
    struct jw w = JW(out);

    begin(&w, id);
    jw_key(&w, "result");
    jw_raw(&w, result, n);
    jw_object_end(&w);
}

int rpc_header_decode(const char *value, struct buf *out)
{
    static const char head[] = "=?base64?", tail[] = "?=";
    size_t n = strlen(value), framing = sizeof head - 1 + sizeof tail - 1;

    if (n < framing || strncmp(value, head, sizeof head - 1) != 0 ||
        strcmp(value + n - (sizeof tail - 1), tail) != 0)
        return buf_put(out, value, n);
    return base64_decode(value + sizeof head - 1, n - framing, out);
}
