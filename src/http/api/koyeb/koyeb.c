/* SPDX-License-Identifier: MIT */
#include "http/api/koyeb/koyeb.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "http/server/dialect.h"
#include "http/server/reply.h"

enum {
    ENV_MAX = 4096, /* variables of one request */
    TIMEOUT_MAX_S = 365 * 86400,
    MS_PER_S = 1000,
};

/* ---- in ---- */

/* clang-format off */
#define AT(member) offsetof(struct koyeb_body, member)
#define PATH {"path", SHAPE_STRING, SHAPE_REQUIRED, AT(path), .help = "in the sandbox; relative to its workspace"}

static const struct shape_field command_fields[] = {
    {"cmd", SHAPE_STRING, SHAPE_REQUIRED, AT(cmd), .help = "for sh -c"},
    {"cwd", SHAPE_STRING, 0, AT(cwd), .help = "working directory"},
    {"env", SHAPE_STRINGS, 0, AT(env), .max = ENV_MAX, .help = "environment variables"},
    {"timeout", SHAPE_NUMBER, 0, AT(timeout_s), .max = TIMEOUT_MAX_S,
     .help = "seconds after which it is killed; 0: never"},
    {"stdin", SHAPE_STRING, 0, AT(input), .help = "standard input"},
};
static const struct shape_field path_fields[] = {PATH};
static const struct shape_field file_fields[] = {
    PATH,
    {"content", SHAPE_TEXT, 0, AT(content), .help = "the whole of it, as text"},
};
static const struct shape_field port_fields[] = {
    {"port", SHAPE_STRING, SHAPE_REQUIRED, AT(port), .help = "inside; a number as text"},
};
static const struct shape_field id_fields[] = {
    {"id", SHAPE_STRING, SHAPE_REQUIRED, AT(id), .help = "of a process"},
};
/* clang-format on */

const struct shape koyeb_command = {command_fields, ARRAY_LEN(command_fields), SHAPE_NULLS,
                                    "Command"};
const struct shape koyeb_path = {path_fields, ARRAY_LEN(path_fields), SHAPE_NULLS, "PathRequest"};
const struct shape koyeb_file = {file_fields, ARRAY_LEN(file_fields), SHAPE_NULLS, "FileWrite"};
const struct shape koyeb_port = {port_fields, ARRAY_LEN(port_fields), SHAPE_NULLS, "PortRequest"};
const struct shape koyeb_id = {id_fields, ARRAY_LEN(id_fields), SHAPE_NULLS, "ProcessRequest"};

uint64_t koyeb_file_max(const struct app *a)
{
    return a->config.body_max_file;
}

bool koyeb_parse(const struct shape *shape, const char *text, size_t n, bool lenient,
                 struct koyeb_body *ret)
{
    *ret = (struct koyeb_body){.content = BUF_INIT(0)};
    ret->shaping.lenient = lenient;
    return shape_parse(shape, text, n, ret, &ret->shaping) == 0;
}

bool koyeb_body(struct http_call *c, const struct shape *shape, struct koyeb_body *ret)
{
    const struct http_request *r = http_request(c);

    if (koyeb_parse(shape, r->body, r->body_n, http_dialect(c)->lenient, ret))
        return true;
    http_dialect(c)->issues(c, &ret->shaping);
    return false;
}

void koyeb_body_done(struct koyeb_body *b)
{
    shaping_done(&b->shaping);
    buf_done(&b->content);
}

struct persistent *koyeb_sandbox(struct http_call *c)
{
    const char *id = http_request(c)->param[0];
    struct persistent *p;
    struct err e;

    if (sandboxes_find_awake(http_app(c)->sandboxes, *id ? id : "default", &p, &e) == 0)
        return p;
    http_reply_error(c, &e);
    return NULL;
}

/* ---- errors ---- */

void koyeb_refuse(struct http_call *c, int status, const char *words)
{
    http_reply_text(c, status,
                    words           ? words
                    : status == 404 ? "404 page not found"
                    : status == 405 ? "Method not allowed"
                    : status == 413 ? "Request body too large"
                                    : reply_reason(status));
}

void koyeb_error(struct http_call *c, const struct err *e)
{
    http_reply_text(c, reply_status_of(e), e->text);
}

void koyeb_issues(struct http_call *c, const struct shaping *s)
{
    (void)s;
    http_reply_text(c, 400, "Invalid request");
}

static void say(struct http_call *c, enum err_kind kind, const char *words)
{
    struct err e;

    (void)err_set(&e, kind, "%s", words);
    http_reply_error(c, &e);
}

void koyeb_wrong(struct http_call *c, const char *words)
{
    say(c, ERR_CALLER, words);
}

void koyeb_no_memory(struct http_call *c)
{
    say(c, ERR_BUSY, "Out of memory");
}

void koyeb_failed(struct http_call *c, const char *words)
{
    say(c, ERR_HOST, words);
}

/* ---- out ---- */

struct jw koyeb_writer(struct buf *out, bool ascii)
{
    return (struct jw){.out = out, .html = true, .ascii = ascii};
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
    http_reply_json(c, 200, &body);
}

void koyeb_sys_words(int sys, char out[128])
{
    char room[128];

    (void)snprintf(out, 128, "%s", strerror_r(sys, room, sizeof room));
    out[0] = (char)tolower((unsigned char)out[0]);
}

struct command_order koyeb_order(const struct koyeb_body *b)
{
    return (struct command_order){
        .cmd = {b->cmd.p ? b->cmd.p : "", b->cmd.n},
        .cwd = b->cwd,
        .env = b->env.v,
        .env_n = b->env.n,
        .input = b->input,
        .timeout_ms = (uint64_t)(b->timeout_s * MS_PER_S),
    };
}

void koyeb_reply_fault(struct http_call *c, enum run_fault at, const struct koyeb_body *b)
{
    struct buf text = BUF_INIT(b->cwd.n + 64);
    struct err e;

    if (at == RUN_BUSY) {
        (void)err_set(&e, ERR_BUSY, "The sandbox has no place for another command");
        http_reply_error(c, &e);
        return;
    }
    if (at != RUN_NO_DIRECTORY) {
        koyeb_failed(c, "Failed to start command");
        return;
    }
    if (!http_dialect(c)->lenient) {
        (void)err_set(&e, ERR_CALLER, "cwd: Invalid working directory: %.*s",
                      (int)(b->cwd.n < 300 ? b->cwd.n : 300), b->cwd.n ? b->cwd.p : "");
        http_reply_error(c, &e);
        return;
    }
    (void)buf_puts(&text, "Invalid working directory: ");
    (void)buf_put(&text, b->cwd.p, b->cwd.n);
    (void)buf_putc(&text, '\n');
    http_reply(c, 400, "text/plain; charset=utf-8", &text);
}
