/* SPDX-License-Identifier: MIT */
#include "cli/talk.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20 };

void talk_say(const struct err *e)
{
    (void)fprintf(stderr, "sbx: %s\n", e->text);
}

int talk_open(const struct args *a, struct talk *ret)
{
    const char *named = args_option(a, "sandbox"), *usual = getenv("SBX_SANDBOX");
    struct err e = {0};

    *ret = (struct talk){.args = a, .json = args_option(a, "json") != NULL};
    ret->sandbox = named && *named ? named : usual && *usual ? usual : "default";
    if (daemon_at_find(args_option(a, "url"), &ret->at, &e) < 0 ||
        http_open(&ret->at, &ret->http, &e) < 0) {
        talk_say(&e);
        return -1;
    }
    return 0;
}

void talk_close(struct talk *t)
{
    http_close(t->http);
    t->http = NULL;
    explicit_bzero(&t->at, sizeof t->at);
}

/* ---- paths ---- */

static void put_encoded(struct buf *out, const char *text, const char *also)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789-._~";

    for (; *text; text++) {
        if (strchr(plain, *text) || strchr(also, *text))
            (void)buf_putc(out, *text);
        else
            (void)buf_printf(out, "%%%02X", (unsigned char)*text);
    }
}

void path_add_parts(struct buf *path, const char *const parts[])
{
    for (; *parts; parts++) {
        (void)buf_putc(path, '/');
        put_encoded(path, *parts, "");
    }
}

void path_add_file(struct buf *path, const char *file)
{
    if (*file != '/')
        (void)buf_putc(path, '/');
    put_encoded(path, file, "/");
}

void path_query(struct buf *path, const char *name, const char *value)
{
    (void)buf_printf(path, "%c%s=", path->p && strchr(path->p, '?') ? '&' : '?', name);
    put_encoded(path, value, "");
}

void path_sandbox(const struct talk *t, struct buf *path)
{
    path_add(path, "v1", "sandboxes", t->sandbox);
}

/* ---- asking ---- */

int talk_ask(struct talk *t, const char *method, const char *path, const struct buf *body,
             struct http_answer *ret)
{
    struct http_request r = {.method = method, .path = path};
    struct err e = {0};

    if (body) {
        r.body = body->p ? body->p : "";
        r.body_n = body->n;
    }
    if (body && body->failed)
        (void)err_set(&e, ERR_CALLER, "the request is too large");
    else if (http_ask(t->http, &r, ret, &e) == 0) {
        if (ret->status >= 200 && ret->status < 300)
            return 0;
        http_answer_words(ret, &e);
    }
    talk_say(&e);
    return -1;
}

int talk_json(struct talk *t, const char *method, const char *path, const struct buf *body,
              struct http_answer *ret, struct json_value *v)
{
    struct err e = {0};

    if (talk_ask(t, method, path, body, ret) < 0)
        return -1;
    if (json_parse(ret->body.p ? ret->body.p : "", ret->body.n, 0, v, &e) == 0)
        return 0;
    (void)fprintf(stderr, "sbx: the answer is not JSON: %s\n", e.text);
    return -1;
}

void talk_print(struct json_value v)
{
    (void)fwrite(v.p, 1, v.n, stdout);
    (void)putchar('\n');
}

/* ---- members ---- */

char *member_text(struct json_value object, const char *name)
{
    struct buf text = BUF_INIT(TEXT_MAX);
    struct json_value v = json_member(object, name);

    if (!v.p)
        return NULL;
    if (v.type != JSON_STRING)
        (void)buf_put(&text, v.p, v.n);
    else if (json_decode_string(v, JSON_LENIENT_UTF8, &text) < 0)
        buf_clear(&text);
    if (text.n == 0)
        (void)buf_puts(&text, "");
    return buf_take(&text, NULL);
}

int64_t member_int(struct json_value object, const char *name)
{
    struct json_value v = json_member(object, name);
    int64_t n = 0;

    return v.p && v.type == JSON_NUMBER && json_to_int(v, &n) ? n : 0;
}

double member_double(struct json_value object, const char *name)
{
    struct json_value v = json_member(object, name);
    double n = 0;

    return v.p && v.type == JSON_NUMBER && json_to_double(v, &n) ? n : 0;
}

bool member_is(struct json_value object, const char *name, const char *text)
{
    struct json_value v = json_member(object, name);

    return v.p && json_key_is(v, text);
}

void put_value(struct jw *w, const char *text)
{
    struct json_value v;
    struct err e;

    if (json_parse(text, strlen(text), 0, &v, &e) == 0)
        jw_raw(w, v.p, v.n);
    else
        jw_string(w, text);
}

int put_pairs(struct jw *w, const struct args *a, const char *option, const char *name)
{
    const char *pair;
    bool any = false;

    for (size_t at = 0; (pair = args_next(a, option, &at));) {
        const char *sign = strchr(pair, '=');
        char *key = sign && sign != pair ? strndup(pair, (size_t)(sign - pair)) : NULL;

        if (!key) {
            (void)fprintf(stderr, "sbx: --%s: '%s' is not NAME=VALUE\n", option, pair);
            return -1;
        }
        if (!any) {
            jw_key(w, name);
            jw_object(w);
            any = true;
        }
        jw_kv_string(w, key, sign + 1);
        free(key);
    }
    if (any)
        jw_object_end(w);
    return 0;
}
