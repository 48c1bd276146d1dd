/* SPDX-License-Identifier: MIT */
/* sbx call, sbx inspect: functions of a file. */
#include <stdlib.h>
#include <string.h>

#include "cli/read_file.h"
#include "cli/table.h"
#include "cli/talk.h"
#include "core/languages.h"

enum { CODE_MAX = 64 << 20, LINE_MAX_BYTES = 1 << 20 };

/* The file of the first operand, as members of a request. */
static int put_code(const struct args *a, struct jw *w)
{
    cleanup_with(buf_done) struct buf code = BUF_INIT(CODE_MAX);
    const char *language = args_option(a, "language");

    language = language ? language : language_of(a->operand[0], LANGUAGE_FUNCTION);
    if (!language) {
        (void)fprintf(stderr, "sbx: which language is %s? Say it with --language\n", a->operand[0]);
        return -1;
    }
    if (read_whole(a->operand[0], &code) < 0)
        return -1;
    jw_kv_string(w, "language", language);
    jw_kv_bytes(w, "code", code.p ? code.p : "", code.n);
    return 0;
}

/* Length of the name in front of "=": 0 if this is a value only. */
static size_t name_n(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    return text[n] == '=' ? n : 0;
}

static void put_arguments(struct jw *w, const struct args *a)
{
    bool named = false;

    jw_key(w, "args");
    jw_array(w);
    for (int i = 2; i < a->n; i++)
        if (name_n(a->operand[i]) == 0)
            put_value(w, a->operand[i]);
        else
            named = true;
    jw_array_end(w);
    if (!named)
        return;
    jw_key(w, "kwargs");
    jw_object(w);
    for (int i = 2; i < a->n; i++) {
        size_t n = name_n(a->operand[i]);
        cleanup_free char *name = n ? strndup(a->operand[i], n) : NULL;

        if (!name)
            continue;
        jw_key(w, name);
        put_value(w, a->operand[i] + n + 1);
    }
    jw_object_end(w);
}

static void print_text(struct json_value v, const char *name, FILE *out)
{
    cleanup_free char *text = member_text(v, name);

    if (text)
        (void)fputs(text, out);
}

static int print_call(struct json_value v)
{
    struct json_value result = json_member(v, "result"), error = json_member(v, "error");
    bool good = false;

    print_text(v, "stdout", stdout);
    (void)fflush(stdout);
    print_text(v, "stderr", stderr);
    if (json_get(v, "success", &result) && json_to_bool(result, &good) && good) {
        if (json_get(v, "result", &result))
            talk_print(result);
        return 0;
    }
    if (error.p) {
        cleanup_free char *type = member_text(error, "type"), *why = member_text(error, "message");

        (void)fprintf(stderr, "sbx: %s: %s\n", type ? type : "error", why ? why : "");
    }
    return 1;
}

int cmd_call(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf body = BUF_INIT(TALK_BODY_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    const char *timeout = args_option(a, "timeout"), *engine = args_option(a, "engine");
    struct jw w = JW(&body);
    struct json_value v;
    int status;
    int64_t code;

    if (a->n < 1)
        return args_wrong(a, "which file?");
    jw_object(&w);
    if (put_code(a, &w) < 0)
        return CMD_FAILED;
    if (a->n > 1)
        jw_kv_string(&w, "functionName", a->operand[1]);
    put_arguments(&w, a);
    if (engine)
        jw_kv_string(&w, "engine", engine);
    if (timeout) {
        jw_key(&w, "timeout");
        put_value(&w, timeout);
    }
    jw_object_end(&w);
    if (talk_open(a, &t) < 0 || talk_json(&t, "POST", "/v1/functions/call", &body, &answer, &v) < 0)
        return CMD_FAILED;
    if (t.json)
        talk_print(v);
    status = t.json ? 0 : print_call(v);
    code = member_int(v, "exitCode");
    return code > 0 && code < 256 ? (int)code : status;
}

/* ---- inspect ---- */

/* "name(a: int, b = 2)" */
static void put_signature(struct buf *line, struct json_value f)
{
    struct json_value all = json_member(f, "parameters"), p;
    cleanup_free char *name = member_text(f, "qualifiedName"),
                      *returns = member_text(f, "returnType");
    const char *comma = "";

    (void)buf_printf(line, "%s(", name ? name : "");
    for (size_t at = 0; all.p && json_array_next(all, &at, &p); comma = ", ") {
        cleanup_free char *of = member_text(p, "name"), *type = member_text(p, "type"),
                          *usual = member_text(p, "default");

        (void)buf_printf(line, "%s%s%s%s%s%s", comma, of ? of : "_", type ? ": " : "",
                         type ? type : "", usual ? " = " : "", usual ? usual : "");
    }
    (void)buf_printf(line, ")%s%s", returns ? " -> " : "", returns ? returns : "");
}

static void print_function(struct json_value f)
{
    cleanup_with(buf_done) struct buf line = BUF_INIT(LINE_MAX_BYTES);
    cleanup_free char *refused = member_text(f, "refused"), *doc = member_text(f, "docstring");

    put_signature(&line, f);
    (void)printf("%5lld  ", (long long)member_int(f, "line"));
    print_safe(line.p ? line.p : "", stdout);
    (void)putchar('\n');
    if (doc && *doc) {
        doc[strcspn(doc, "\n")] = '\0';
        (void)fputs("       ", stdout);
        print_safe(doc, stdout);
        (void)putchar('\n');
    }
    if (refused) {
        (void)fputs("       cannot be called: ", stdout);
        print_safe(refused, stdout);
        (void)putchar('\n');
    }
}

int cmd_inspect(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf body = BUF_INIT(TALK_BODY_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};
    struct json_value v, all, f;
    struct jw w = JW(&body);

    if (a->n != 1)
        return args_wrong(a, "which file?");
    jw_object(&w);
    if (put_code(a, &w) < 0)
        return CMD_FAILED;
    jw_object_end(&w);
    if (talk_open(a, &t) < 0 ||
        talk_json(&t, "POST", "/v1/functions/inspect", &body, &answer, &v) < 0)
        return CMD_FAILED;
    if (t.json) {
        talk_print(v);
        return 0;
    }
    all = json_member(v, "functions");
    for (size_t at = 0; all.p && json_array_next(all, &at, &f);)
        print_function(f);
    if (json_member(v, "syntaxError").p)
        (void)fprintf(stderr, "sbx: line %lld cannot be parsed\n",
                      (long long)member_int(json_member(v, "syntaxError"), "line"));
    return json_member(v, "syntaxError").p ? 1 : 0;
}
