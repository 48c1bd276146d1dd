/* SPDX-License-Identifier: MIT */
#include "http/koyeb.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/app.h"
#include "base/json.h"
#include "http/reply.h"

enum {
    LENIENT = JSON_LENIENT_TAIL | JSON_LENIENT_UTF8 | JSON_LENIENT_DUPES,
    KEY_MAX = 64,   /* no field has a longer name */
    GROWTH = 3,     /* one bad byte becomes three */
    ENV_MAX = 4096, /* variables of one request */
    MS_PER_S = 1000,
};
#define TIMEOUT_MAX_S (365.0 * 86400)

enum kind { STRING, CONTENT, ENVIRONMENT, SECONDS };

struct field {
    const char *name;
    enum kind kind;
    unsigned shapes;
    size_t at;
};

#define AT(member) offsetof(struct koyeb_body, member)

static const struct field fields[] = {
    {"cmd",     STRING,      BIT(KOYEB_COMMAND),                AT(cmd)      },
    {"cwd",     STRING,      BIT(KOYEB_COMMAND),                AT(cwd)      },
    {"env",     ENVIRONMENT, BIT(KOYEB_COMMAND),                AT(env)      },
    {"timeout", SECONDS,     BIT(KOYEB_COMMAND),                AT(timeout_s)},
    {"stdin",   STRING,      BIT(KOYEB_COMMAND),                AT(input)    },
    {"path",    STRING,      BIT(KOYEB_PATH) | BIT(KOYEB_FILE), AT(path)     },
    {"content", CONTENT,     BIT(KOYEB_FILE),                   AT(content)  },
    {"port",    STRING,      BIT(KOYEB_PORT),                   AT(port)     },
    {"id",      STRING,      BIT(KOYEB_ID),                     AT(id)       },
};

/* ---- in ---- */

/* Names are matched in any case. */
static const struct field *find_field(enum koyeb_shape shape, struct json_value key)
{
    struct buf name = BUF_INIT(KEY_MAX);
    const struct field *found = NULL;

    if (json_decode_string(key, LENIENT, &name) == 0 && name.p)
        for (size_t i = 0; i < ARRAY_LEN(fields) && !found; i++)
            if (fields[i].shapes & BIT(shape) && strcasecmp(fields[i].name, name.p) == 0)
                found = &fields[i];
    buf_done(&name);
    return found;
}

/* The text has room for everything, so what points into it stays. */
static bool take_string(struct koyeb_body *b, struct json_value v, struct bytes *ret)
{
    size_t at = b->text.n;

    if (v.type != JSON_STRING || json_decode_string(v, LENIENT, &b->text) < 0)
        return false;
    *ret = (struct bytes){b->text.p + at, b->text.n - at};
    return buf_putc(&b->text, '\0') == 0;
}

static void put_var(struct koyeb_body *b, const struct exec_var *v)
{
    for (size_t i = 0; i < b->env_n; i++)
        if (b->env[i].name.n == v->name.n && memcmp(b->env[i].name.p, v->name.p, v->name.n) == 0) {
            b->env[i].value = v->value;
            return;
        }
    b->env[b->env_n++] = *v;
}

static bool take_environment(struct koyeb_body *b, struct json_value v)
{
    struct json_value key, value;
    size_t at = 0;

    if (v.type != JSON_OBJECT)
        return false;
    if (!b->env)
        b->env = calloc(ENV_MAX, sizeof *b->env);
    while (b->env && json_object_next(v, &at, &key, &value)) {
        struct exec_var var = {
            .value = {"", 0}
        };

        if (b->env_n == ENV_MAX || !take_string(b, key, &var.name))
            return false;
        if (value.type != JSON_NULL && !take_string(b, value, &var.value))
            return false;
        put_var(b, &var);
    }
    return b->env != NULL;
}

static bool take_content(struct koyeb_body *b, struct json_value v)
{
    buf_done(&b->content);
    b->content = BUF_INIT(v.n * GROWTH + 1);
    b->has_content = true;
    return v.type == JSON_STRING && json_decode_string(v, LENIENT, &b->content) == 0;
}

static bool take_seconds(struct koyeb_body *b, struct json_value v)
{
    double s;

    if (v.type != JSON_NUMBER || !json_to_double(v, &s) || !isfinite(s) || s < 0)
        return false;
    b->timeout_s = s < TIMEOUT_MAX_S ? s : TIMEOUT_MAX_S;
    return true;
}

static bool take_field(struct koyeb_body *b, const struct field *f, struct json_value v)
{
    if (v.type == JSON_NULL)
        return true; /* as if it had not been said */
    switch (f->kind) {
    case STRING:
        return take_string(b, v, (struct bytes *)((char *)b + f->at));
    case CONTENT:
        return take_content(b, v);
    case ENVIRONMENT:
        return take_environment(b, v);
    case SECONDS:
        return take_seconds(b, v);
    }
    return false;
}

bool koyeb_parse(enum koyeb_shape shape, const char *text, size_t n, struct koyeb_body *ret)
{
    struct json_value v, key, value;
    size_t at = 0, room = 0;
    struct err e;

    *ret = (struct koyeb_body){.content = BUF_INIT(0)};
    if (json_parse(text, n, LENIENT, &v, &e) < 0 || (v.type != JSON_OBJECT && v.type != JSON_NULL))
        return false;
    if (v.type == JSON_NULL)
        return true;
    while (json_object_next(v, &at, &key, &value))
        room += shape == KOYEB_FILE && json_key_is(key, "content") ? 0 : value.n;
    ret->text = BUF_INIT(room * GROWTH + 1);
    if (buf_reserve(&ret->text, ret->text.max) < 0)
        return false;
    for (at = 0; json_object_next(v, &at, &key, &value);) {
        const struct field *f = find_field(shape, key);

        if (f && !take_field(ret, f, value))
            return false;
    }
    return true;
}

void koyeb_body_done(struct koyeb_body *b)
{
    buf_done(&b->text);
    buf_done(&b->content);
    free(b->env);
    b->env = NULL;
}

bool koyeb_body(struct http_call *c, enum koyeb_shape shape, struct koyeb_body *ret)
{
    const struct http_request *r = http_request(c);

    if (koyeb_parse(shape, r->body, r->body_n, ret))
        return true;
    http_reply_text(c, 400, "Invalid request");
    return false;
}

struct persistent *koyeb_sandbox(struct http_call *c)
{
    const char *id = http_request(c)->param[0];
    struct persistent *p;
    struct err e;

    if (sandboxes_find(http_app(c)->sandboxes, *id ? id : "default", &p, &e) == 0)
        return p;
    http_reply_error(c, &e);
    return NULL;
}

/* ---- out ---- */

struct jw koyeb_writer(struct buf *out, bool ascii)
{
    return (struct jw){.out = out, .html = true, .ascii = ascii};
}

void koyeb_reply(struct http_call *c, int status, struct buf *body)
{
    (void)buf_putc(body, '\n');
    http_reply(c, status, "application/json", body);
}

void koyeb_reply_success(struct http_call *c, const char *error, size_t error_n)
{
    struct buf body = BUF_INIT(error_n * 6 + 64);
    struct jw w = koyeb_writer(&body, false);

    jw_object(&w);
    if (error)
        jw_kv_bytes(&w, "error", error, error_n);
    jw_kv_bool(&w, "success", !error);
    jw_object_end(&w);
    koyeb_reply(c, 200, &body);
}

void koyeb_sys_words(int sys, char out[128])
{
    char room[128];

    (void)snprintf(out, 128, "%s", strerror_r(sys, room, sizeof room));
    out[0] = (char)tolower((unsigned char)out[0]);
}

struct shell_order koyeb_order(const struct koyeb_body *b)
{
    return (struct shell_order){
        .cmd = {b->cmd.p ? b->cmd.p : "", b->cmd.n},
        .cwd = b->cwd,
        .env = b->env,
        .env_n = b->env_n,
        .input = b->input,
        .timeout_ms = (uint64_t)(b->timeout_s * MS_PER_S),
    };
}

void koyeb_reply_fault(struct http_call *c, enum command_fault why, const struct koyeb_body *b)
{
    struct buf text = BUF_INIT(b->cwd.n + 64);

    if (why == COMMAND_NO_DIRECTORY) {
        (void)buf_puts(&text, "Invalid working directory: ");
        (void)buf_put(&text, b->cwd.p, b->cwd.n);
        (void)buf_putc(&text, '\n');
        http_reply(c, 400, "text/plain; charset=utf-8", &text);
        return;
    }
    if (why == COMMAND_BUSY) {
        http_set_header(c, "Retry-After", "1");
        http_reply_text(c, 503, "The sandbox has no place for another command");
        return;
    }
    http_reply_text(c, 500, "Failed to start command");
}
