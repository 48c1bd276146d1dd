/* SPDX-License-Identifier: MIT */
#include "http/api/mcp/function_result.h"

#include <stdio.h>
#include <string.h>

#include "base/jw.h"
#include "base/utf8.h"
#include "core/denial.h"
#include "http/api/mcp/shown_text.h"

enum {
    ESCAPE_FACTOR = 6,
    ROOM = 16 << 10, /* beside texts */
    BLOCKS_MAX = 64, /* of a function's own content */
};

/* ---- content of its own ---- */

static bool has_string(struct json_value block, const char *name)
{
    struct json_value v = json_member(block, name);

    return v.p && v.type == JSON_STRING;
}

static bool is_resource(struct json_value block)
{
    struct json_value r = json_member(block, "resource");

    return r.p && r.type == JSON_OBJECT && has_string(r, "uri") &&
           (has_string(r, "text") || has_string(r, "blob"));
}

/* Is it a block of content? Tells whether it is more than text. */
static bool is_block(struct json_value block, bool *rich)
{
    struct json_value type = json_member(block, "type");

    if (block.type != JSON_OBJECT || !type.p || type.type != JSON_STRING)
        return false;
    if (json_key_is(type, "text"))
        return has_string(block, "text");
    *rich = true;
    if (json_key_is(type, "image") || json_key_is(type, "audio"))
        return has_string(block, "data") && has_string(block, "mimeType");
    if (json_key_is(type, "resource_link"))
        return has_string(block, "uri") && has_string(block, "name");
    return json_key_is(type, "resource") && is_resource(block);
}

static bool are_blocks(struct json_value content, bool *rich)
{
    struct json_value block;
    size_t at = 0, n = 0;

    if (!content.p || content.type != JSON_ARRAY)
        return false;
    while (json_array_next(content, &at, &block))
        if (++n > BLOCKS_MAX || !is_block(block, rich))
            return false;
    return n > 0;
}

/* False: it is a value like any other. */
static bool write_own(struct json_value value, struct jw *w)
{
    struct json_value key, own = {0}, content, data, wrong;
    size_t at = 0, n = 0;
    bool rich = false, is_error = false;

    while (value.type == JSON_OBJECT && n < 2 && json_object_next(value, &at, &key, &own))
        n++;
    if (n != 1 || !json_key_is(key, "$mcp") || own.type != JSON_OBJECT)
        return false;
    content = json_member(own, "content");
    data = json_member(own, "structuredContent");
    wrong = json_member(own, "isError");
    if (!are_blocks(content, &rich) || (wrong.p && !json_to_bool(wrong, &is_error)))
        return false;
    jw_key(w, "content");
    jw_raw(w, content.p, content.n);
    if (data.p && data.type == JSON_OBJECT && !rich) {
        jw_key(w, "structuredContent");
        jw_raw(w, data.p, data.n);
    }
    jw_kv_bool(w, "isError", is_error);
    return true;
}

/* ---- text and data ---- */

static void put_stream(struct buf *text, const char *label, const struct buf *stream, size_t most)
{
    cleanup_with(buf_done) struct buf plain = BUF_INIT(stream->n + 1),
                                      shown = BUF_INIT(stream->n + ROOM);
    struct shown_cut cut;

    shown_plain(&plain, stream->p ? stream->p : "", stream->n);
    if (shown_cut(plain.p, plain.n, most, &cut)) {
        (void)buf_put(&shown, plain.p, cut.head);
        (void)buf_printf(&shown, "\n… [%zu characters cut] …\n", cut.tail - cut.head);
        (void)buf_put(&shown, plain.p + cut.tail, plain.n - cut.tail);
        shown_part(text, label, shown.p, shown.n);
    } else {
        shown_part(text, label, plain.p ? plain.p : "", plain.n);
    }
}

static void decode(struct json_value v, struct buf *out)
{
    if (v.p && v.type == JSON_STRING)
        (void)!json_decode_string(v, JSON_LENIENT_UTF8, out);
}

static void put_error(struct buf *text, const struct call_result *r)
{
    const struct call_outcome *o = &r->outcome;
    struct json_value error = {JSON_OBJECT, "{}", 2}, stack;
    struct buf type = BUF_INIT(ROOM), words = BUF_INIT(r->run->error.n + ROOM),
               lines = BUF_INIT(r->run->error.n + ROOM);
    struct err e;

    if (o->framed && json_parse(r->run->error.p, r->run->error.n, 0, &error, &e) == 0) {
        stack = json_member(error, "stack");
        decode(json_member(error, "type"), &type);
        decode(json_member(error, "message"), &words);
    } else {
        stack = o->stack;
        (void)buf_puts(&type, o->type ? o->type : "Error");
        (void)buf_puts(&words, o->message);
    }
    decode(stack, &lines);
    (void)buf_printf(text, "[error] %s: %s", type.p ? type.p : "Error", words.p ? words.p : "");
    shown_part(text, "", lines.p ? lines.p : "",
               lines.n > 0 ? utf8_truncate(lines.p, lines.n, r->shown_max) : 0);
    buf_done(&type);
    buf_done(&words);
    buf_done(&lines);
}

static void put_hint(struct buf *text, const struct call_result *r)
{
    const struct denial_facts facts = {
        .said = {&r->run->err, &r->run->error},
          .usage = &r->run->usage, .signal = r->run->signal
    };
    const char *hint = denials_hint(denials_find(&facts), DENIAL_EPHEMERAL);

    if (r->outcome.status == CALL_TIMEOUT)
        hint = "raise timeout_seconds, or run it as a script with run_command and background: true";
    if (hint)
        shown_part(text, "[hint] ", hint, strlen(hint));
}

static void write_text(struct jw *w, const struct call_result *r, bool good)
{
    const struct run_result *run = r->run;
    cleanup_with(buf_done) struct buf text =
        BUF_INIT(run->result.n + run->out.n + run->err.n + 2 * run->error.n + 4 * ROOM);
    struct jw block = JW(w->out);
    size_t n = run->result.n;

    if (good && n > r->shown_max) {
        n = utf8_truncate(run->result.p, n, r->shown_max);
        (void)buf_put(&text, run->result.p, n);
        (void)buf_printf(&text, "… [%zu characters cut]", run->result.n - n);
    } else if (good) {
        (void)buf_put(&text, run->result.p, n);
    } else {
        put_error(&text, r);
        put_hint(&text, r);
    }
    put_stream(&text, "[stdout]\n", &run->out, r->shown_max);
    put_stream(&text, "[stderr]\n", &run->err, r->shown_max);
    jw_key(w, "content");
    (void)buf_putc(w->out, '[');
    jw_object(&block);
    jw_kv_string(&block, "type", "text");
    jw_kv_bytes(&block, "text", text.p ? text.p : "", text.n);
    jw_object_end(&block);
    (void)buf_putc(w->out, ']');
    w->comma = true;
}

/* An object as it is; anything else as a member of one. */
static void write_data(struct jw *w, const struct call_result *r, struct json_value value)
{
    bool whole = value.p && value.n <= r->shown_max;

    jw_key(w, "structuredContent");
    if (whole && value.type == JSON_OBJECT) {
        jw_raw(w, value.p, value.n);
        return;
    }
    jw_object(w);
    jw_key(w, "result");
    if (whole)
        jw_raw(w, value.p, value.n);
    else
        jw_null(w);
    jw_object_end(w);
}

void mcp_function_result(const struct call_result *r, struct buf *out)
{
    const struct run_result *run = r->run;
    bool good = r->outcome.status == CALL_SUCCESS;
    struct json_value value = {0};
    struct jw w = JW(out);
    struct err e;

    *out = BUF_INIT(ROOM + run->result.n +
                    ESCAPE_FACTOR * (run->result.n + run->out.n + run->err.n + 2 * run->error.n));
    if (good && json_parse(run->result.p, run->result.n, 0, &value, &e) == 0 &&
        write_own(value, &w))
        return;
    write_text(&w, r, good);
    if (good)
        write_data(&w, r, value);
    jw_kv_bool(&w, "isError", !good);
}
