/* SPDX-License-Identifier: MIT */
/*
 * sbx run: one file to POST /execute, and its result as if the program had run here: output on the
 * same streams, the same exit status, a returned value on a last line.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/jw.h"
#include "cli/cmds.h"
#include "cli/http.h"
#include "core/languages.h"

enum {
    CODE_MAX = 64 << 20,
    ANSWER_MAX = 256 << 20,
    REQUEST_MAX = 512 << 20,
};

struct run_options {
    const char *language, *event, *timeout, *url, *file;
    bool json;
};

static const char usage_text[] =
    "usage: sbx run [OPTION...] FILE|-\n\n"
    "  -l, --language NAME   python, javascript or shell; default: by the ending of FILE\n"
    "  -e, --event JSON      object for the handler\n"
    "  -t, --timeout SECONDS wall time\n"
    "  -u, --url URL         of the daemon; default $SANDBOX_URL, or\n"
    "                        http://127.0.0.1:$EXECUTOR_PORT (8080)\n"
    "  -j, --json            print the complete result\n\n"
    "The secret is $SANDBOX_SECRET, what is in the file $SANDBOX_SECRET_FILE, or what the daemon\n"
    "keeps in its state directory.\n";

/* ---- what is sent ---- */

static const char *language_of(const char *file)
{
    const char *dot = strrchr(file, '.');
    const struct call_lang *l;

    for (size_t i = 0; dot && (l = language(i)); i++)
        for (size_t k = 0; k < LANGUAGE_ENDINGS_MAX && l->ending[k]; k++)
            if (l->flags & LANGUAGE_EXECUTE && strcmp(dot, l->ending[k]) == 0)
                return l->name;
    return NULL;
}

static int read_all(FILE *f, struct buf *out)
{
    char part[16384];
    size_t n;

    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        if (buf_put(out, part, n) < 0)
            return -EFBIG;
    }
    return ferror(f) ? -EIO : 0;
}

static int read_code(const char *file, struct buf *out)
{
    FILE *f = strcmp(file, "-") == 0 ? stdin : fopen(file, "re");
    int r = f ? read_all(f, out) : -errno;

    if (f && f != stdin)
        (void)fclose(f);
    if (r < 0)
        (void)fprintf(stderr, "sbx: %s: %s\n", file, strerror(-r));
    return r;
}

static int write_request(const struct run_options *o, const struct buf *code, struct buf *out)
{
    struct json_value v;
    struct err e;
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "language", o->language);
    jw_kv_bytes(&w, "code", code->p ? code->p : "", code->n);
    if (o->timeout)
        jw_kv_string(&w, "timeout", o->timeout);
    if (o->event) {
        if (json_parse(o->event, strlen(o->event), 0, &v, &e) < 0) {
            (void)fprintf(stderr, "sbx: --event: %s\n", e.text);
            return -1;
        }
        jw_key(&w, "event");
        jw_raw(&w, v.p, v.n);
    }
    jw_object_end(&w);
    return out->failed ? -1 : 0;
}

/* ---- the exchange ---- */

/* -1 after saying why. */
static int exchange(const struct run_options *o, const struct buf *request,
                    struct http_answer *answer)
{
    struct daemon_at at;
    struct http *h = NULL;
    struct err e = {0};
    struct http_request r = {.path = "/execute", .body = request->p, .body_n = request->n};
    int n = daemon_at_find(o->url, &at, &e);

    if (n == 0)
        n = http_open(&at, &h, &e);
    if (n == 0)
        n = http_ask(h, &r, answer, &e);
    if (n == 0 && answer->status != 200) {
        http_answer_words(answer, &e);
        n = -1;
    }
    if (n < 0)
        (void)fprintf(stderr, "sbx: %s\n", e.text);
    http_close(h);
    return n;
}

/* ---- what comes back ---- */

static void print_member(struct json_value answer, const char *name, FILE *to)
{
    struct buf text = BUF_INIT(ANSWER_MAX);
    struct json_value v;

    if (json_get(answer, name, &v) && v.type == JSON_STRING &&
        json_decode_string(v, JSON_LENIENT_UTF8, &text) == 0)
        (void)fwrite(text.p ? text.p : "", 1, text.n, to);
    buf_done(&text);
}

static int print_result(const struct buf *answer, bool whole)
{
    struct json_value body, v;
    struct err e;
    int64_t code = -1;

    if (json_parse(answer->p ? answer->p : "", answer->n, 0, &body, &e) < 0) {
        (void)fprintf(stderr, "sbx: the answer is not JSON: %s\n", e.text);
        return CMD_FAILED;
    }
    if (whole) {
        (void)printf("%.*s\n", (int)body.n, body.p);
    } else {
        print_member(body, "stdout", stdout);
        (void)fflush(stdout);
        print_member(body, "stderr", stderr);
        if (json_get(body, "return_value", &v) && v.type != JSON_NULL)
            (void)printf("%.*s\n", (int)v.n, v.p);
    }
    if (json_get(body, "exit_code", &v) && json_to_int(v, &code) && code >= 0)
        return (int)code;
    return json_get(body, "status", &v) && v.n == 9 && memcmp(v.p, "\"timeout\"", 9) == 0
               ? CMD_TIMEOUT
               : CMD_FAILED;
}

static int run(const struct run_options *o)
{
    cleanup_with(buf_done) struct buf code = BUF_INIT(CODE_MAX);
    cleanup_with(buf_done) struct buf request = BUF_INIT(REQUEST_MAX);
    cleanup_with(http_answer_done) struct http_answer answer = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    if (read_code(o->file, &code) < 0 || write_request(o, &code, &request) < 0)
        return CMD_FAILED;
    if (exchange(o, &request, &answer) < 0)
        return CMD_FAILED;
    return print_result(&answer.body, o->json);
}

static int usage(FILE *out)
{
    (void)fputs(usage_text, out);
    return out == stdout ? EXIT_SUCCESS : CMD_USAGE;
}

int cmd_run(int argc, char **argv)
{
    static const struct option longs[] = {
        {"language",         required_argument, NULL, 'l'},
        {"event",              required_argument, NULL, 'e'},
        {"timeout",                  required_argument, NULL, 't'},
        {"url",required_argument, NULL, 'u'},
        {"json",               no_argument, NULL, 'j'},
        {"help",          no_argument, NULL, 'h'},
        {0             },
    };
    struct run_options o = {0};
    int c;

    while ((c = getopt_long(argc, argv, "l:e:t:u:jh", longs, NULL)) != -1) {
        const char **text = c == 'l'   ? &o.language
                            : c == 'e' ? &o.event
                            : c == 't' ? &o.timeout
                            : c == 'u' ? &o.url
                                       : NULL;

        if (text)
            *text = optarg;
        else if (c == 'j')
            o.json = true;
        else
            return usage(c == 'h' ? stdout : stderr);
    }
    if (optind != argc - 1)
        return usage(stderr);
    o.file = argv[optind];
    o.language = o.language ? o.language : language_of(o.file);
    if (!o.language) {
        (void)fprintf(stderr, "sbx: which language is %s? Say it with --language\n", o.file);
        return CMD_USAGE;
    }
    return run(&o);
}
