/* SPDX-License-Identifier: MIT */
/*
 * sbx run: one file to POST /execute, and its result as if the program had run here: output on the
 * same streams, the same exit status, a returned value on a last line.
 */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jw.h"
#include "base/os.h"
#include "cli/cmds.h"

enum {
    CODE_MAX = 64 << 20,
    ANSWER_MAX = 256 << 20,
    REQUEST_MAX = 512 << 20,
    SECRET_MAX = 4096,
    PATH_ROOM = 1024,
    PORT_ROOM = 16,
    HEAD_MAX = 16384,
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
    "  -u, --url URL         of the daemon; default http://127.0.0.1:$EXECUTOR_PORT (8080)\n"
    "  -j, --json            print the complete result\n\n"
    "The secret is $SANDBOX_SECRET, what is in the file $SANDBOX_SECRET_FILE, or what the daemon\n"
    "keeps in its state directory.\n";

/* ---- what is sent ---- */

static const char *language_of(const char *file)
{
    static const char *const endings[][2] = {
        {".py",  "python"    },
        {".js",  "javascript"},
        {".mjs", "javascript"},
        {".cjs", "javascript"},
        {".sh",  "shell"     },
    };
    const char *dot = strrchr(file, '.');

    for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++) {
        if (strcmp(dot, endings[i][0]) == 0)
            return endings[i][1];
    }
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

/* ---- the secret ---- */

/* As the daemon reads it: without white space around it. */
static void trim(char *text)
{
    static const char blank[] = " \t\r\n\v\f";
    size_t skip = strspn(text, blank), n = strlen(text + skip);

    while (n > 0 && strchr(blank, text[skip + n - 1]))
        n--;
    memmove(text, text + skip, n);
    text[n] = '\0';
}

static bool secret_from(const char *directory, const char *below, char out[SECRET_MAX])
{
    char path[PATH_ROOM];
    FILE *f;
    bool found;

    if (!directory || !*directory)
        return false;
    (void)snprintf(path, sizeof path, "%s%s", directory, below);
    f = fopen(path, "re");
    if (!f)
        return false;
    found = fgets(out, SECRET_MAX, f) != NULL;
    (void)fclose(f);
    if (!found)
        out[0] = '\0';
    trim(out);
    return found;
}

static void secret_find(char out[SECRET_MAX])
{
    const char *given = getenv("SANDBOX_SECRET"), *file = getenv("SANDBOX_SECRET_FILE");

    out[0] = '\0';
    if (given && *given)
        (void)snprintf(out, SECRET_MAX, "%s", given);
    else if (!secret_from(file, "", out) && !secret_from(getenv("STATE_DIR"), "/secret", out) &&
             !secret_from(getenv("XDG_STATE_HOME"), "/sandbox-executor/secret", out) &&
             !secret_from(getenv("HOME"), "/.local/state/sandbox-executor/secret", out))
        (void)secret_from("/var/lib/sandbox-executor", "/secret", out);
}

/* ---- the exchange ---- */

/* host, port: views into the url "http://host:port"; a bracketed IPv6 address is allowed. */
static bool url_split(const char *url, char host[PATH_ROOM], char port[PORT_ROOM])
{
    const char *p = url, *end, *colon;

    if (strncmp(p, "http://", 7) != 0)
        return false;
    p += 7;
    end = p + strcspn(p, "/?#");
    colon = *p == '[' ? memchr(p, ']', (size_t)(end - p)) : p;
    if (!colon)
        return false;
    colon = memchr(colon, ':', (size_t)(end - colon));
    (void)snprintf(port, PORT_ROOM, "%.*s", colon ? (int)(end - colon - 1) : 2,
                   colon ? colon + 1 : "80");
    end = colon ? colon : end;
    if (*p == '[' && end[-1] == ']')
        p++, end--;
    (void)snprintf(host, PATH_ROOM, "%.*s", (int)(end - p), p);
    return host[0] != '\0';
}

/* A connected socket, or -1 after saying why. */
static int dial(const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int r = getaddrinfo(host, port, &hints, &found), fd = -1;

    if (r != 0) {
        (void)fprintf(stderr, "sbx: %s: %s\n", host, gai_strerror(r));
        return -1;
    }
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = os_socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        if (fd >= 0 && (fd_nonblock(fd, false) < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0)) {
            r = errno;
            closep(&fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    if (fd < 0)
        (void)fprintf(stderr, "sbx: no daemon at %s port %s: %s\n", host, port, strerror(r));
    return fd;
}

static int receive_all(int fd, struct buf *out)
{
    char part[65536];

    for (;;) {
        ssize_t n = recv(fd, part, sizeof part, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        if (buf_put(out, part, (size_t)n) < 0)
            return -EFBIG;
    }
}

/* The connection is closed after the answer, so that its end is the end of the body. */
static int head_make(const char *host, size_t body_n, struct buf *out)
{
    char secret[SECRET_MAX];

    secret_find(secret);
    (void)buf_printf(out,
                     "POST /execute HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\nConnection: close\r\n",
                     host, body_n);
    if (secret[0] && strspn(secret, " \t\r\n") == 0)
        (void)buf_printf(out, "Authorization: Bearer %s\r\n", secret);
    return buf_puts(out, "\r\n");
}

/* The status; what is left in `answer` is the body. -1 when it is not HTTP. */
static long answer_split(struct buf *answer)
{
    const char *end = answer->p ? strstr(answer->p, "\r\n\r\n") : NULL;
    long status;

    if (!end || strncmp(answer->p, "HTTP/1.1 ", 9) != 0)
        return -1;
    status = strtol(answer->p + 9, NULL, 10);
    buf_consume(answer, (size_t)(end - answer->p) + 4);
    return status;
}

/* The status of the answer, or -1 after saying why. */
static long exchange(const struct run_options *o, const struct buf *request, struct buf *answer)
{
    char host[PATH_ROOM] = "127.0.0.1", port[PORT_ROOM] = "8080";
    const char *wanted = getenv("EXECUTOR_PORT");
    cleanup_with(buf_done) struct buf head = BUF_INIT(HEAD_MAX);
    cleanup_close int fd = -1;
    long status;
    int r;

    if (wanted && *wanted)
        (void)snprintf(port, sizeof port, "%s", wanted);
    if (o->url && !url_split(o->url, host, port)) {
        (void)fprintf(stderr, "sbx: '%s' is not http://HOST:PORT\n", o->url);
        return -1;
    }
    fd = dial(host, port);
    if (fd < 0 || head_make(host, request->n, &head) < 0)
        return -1;
    r = fd_write_all(fd, head.p, head.n);
    if (r == 0)
        r = fd_write_all(fd, request->p, request->n);
    if (r == 0 || r == -EPIPE) /* an early refusal is an answer, too */
        r = receive_all(fd, answer);
    status = r < 0 ? -1 : answer_split(answer);
    if (status < 0)
        (void)fprintf(stderr, "sbx: %s port %s: %s\n", host, port,
                      r < 0 ? strerror(-r) : "the answer is not HTTP");
    return status;
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
    cleanup_with(buf_done) struct buf answer = BUF_INIT(ANSWER_MAX);
    long status;

    (void)signal(SIGPIPE, SIG_IGN);
    if (read_code(o->file, &code) < 0 || write_request(o, &code, &request) < 0)
        return CMD_FAILED;
    status = exchange(o, &request, &answer);
    if (status < 0)
        return CMD_FAILED;
    if (status != 200) {
        (void)fprintf(stderr, "sbx: status %ld: %s\n", status, answer.p ? answer.p : "");
        return CMD_FAILED;
    }
    return print_result(&answer, o->json);
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
