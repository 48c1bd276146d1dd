/* SPDX-License-Identifier: MIT */
/*
 * sbx run: one file to POST /execute, and its result as if the program had run here: output on the
 * same streams as it comes, the same exit status, a returned value on a last line.
 *
 * Ctrl-C ends the execution by DELETE and still shows its result; the second one does not wait.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/event_lines.h"
#include "cli/read_file.h"
#include "cli/stops.h"
#include "cli/talk.h"
#include "core/languages.h"

enum { CODE_MAX = 64 << 20, RESULT_MAX = 256 << 20, LOCATION_MAX = 512 };

struct running {
    struct talk *talk;
    struct http_exchange *cancelling; /* under way */
    struct event_lines events;
    struct buf result;
    struct http_answer refusal; /* what an answer that is no stream says */
    struct err e;
    char location[LOCATION_MAX]; /* of the execution; "": not known yet */
    bool stream, over, whole;
    int interrupts;
};

/* ---- what is sent ---- */

static int write_request(const struct args *a, const char *language, const struct buf *code,
                         struct buf *out)
{
    const char *event = args_option(a, "event"), *timeout = args_option(a, "timeout");
    struct json_value v;
    struct err e;
    struct jw w = JW(out);

    jw_object(&w);
    jw_kv_string(&w, "language", language);
    jw_kv_bytes(&w, "code", code->p ? code->p : "", code->n);
    if (timeout)
        jw_kv_string(&w, "timeout", timeout);
    if (put_pairs(&w, a, "env", "env_vars") < 0)
        return -1;
    if (args_option(a, "network")) {
        jw_key(&w, "network");
        put_value(&w, args_option(a, "network"));
    }
    if (event) {
        if (json_parse(event, strlen(event), 0, &v, &e) < 0) {
            (void)fprintf(stderr, "sbx: --event: %s\n", e.text);
            return -1;
        }
        jw_key(&w, "event");
        jw_raw(&w, v.p, v.n);
    }
    jw_object_end(&w);
    return out->failed ? -1 : 0;
}

/* ---- what comes back ---- */

static void print_member(struct json_value answer, const char *name, FILE *to)
{
    struct buf text = BUF_INIT(RESULT_MAX);
    struct json_value v;

    if (json_get(answer, name, &v) && v.type == JSON_STRING &&
        json_decode_string(v, JSON_LENIENT_UTF8, &text) == 0)
        (void)fwrite(text.p ? text.p : "", 1, text.n, to);
    buf_done(&text);
}

static int on_event(void *user, const struct event_seen *ev)
{
    struct running *r = user;
    bool err = strcmp(ev->name, "stderr") == 0;
    struct json_value v;
    struct err e;

    if (strcmp(ev->name, "result") == 0)
        return buf_put(&r->result, ev->data, ev->n);
    if (r->talk->json || (!err && strcmp(ev->name, "stdout") != 0) ||
        json_parse(ev->data, ev->n, 0, &v, &e) < 0)
        return 0;
    print_member(v, "data", err ? stderr : stdout);
    (void)fflush(stdout);
    return 0;
}

static int on_head(void *user, const struct http_head *head)
{
    struct running *r = user;

    r->refusal.status = head->status;
    r->stream = head->status == 200;
    return 0;
}

static void on_line(void *user, const char *name, const char *value)
{
    struct running *r = user;

    if (strcmp(name, "location") == 0 && strlen(value) < sizeof r->location)
        (void)snprintf(r->location, sizeof r->location, "%s", value);
}

static int on_part(void *user, const char *p, size_t n)
{
    struct running *r = user;

    return r->stream ? event_lines_feed(&r->events, p, n, on_event, r)
                     : buf_put(&r->refusal.body, p, n);
}

static void on_done(void *user, const struct http_end *end)
{
    struct running *r = user;

    r->over = true;
    r->whole = end->whole;
    if (end->e)
        r->e = *end->e;
}

static void on_cancelled(void *user, const struct http_end *end)
{
    struct running *r = user;

    (void)end;
    r->cancelling = NULL;
}

/* 0; -1: it is not waited for any longer. */
static int interrupt(struct running *r, struct http_request *cancel)
{
    struct err e;

    if (++r->interrupts > 1 || !r->location[0])
        return -1;
    *cancel = (struct http_request){
        .method = "DELETE", .path = r->location, .done = on_cancelled, .user = r};
    return http_start(r->talk->http, cancel, &r->cancelling, &e);
}

/* -1 after saying why; 0: there is a result. */
static int exchange(struct running *r, const struct buf *body)
{
    struct http_request cancel, ask = {.path = "/execute",
                                       .lines = {"Accept: text/event-stream"},
                                       .body = body->p,
                                       .body_n = body->n,
                                       .line = on_line,
                                       .head = on_head,
                                       .part = on_part,
                                       .done = on_done,
                                       .user = r};
    struct http_exchange *x = NULL;
    cleanup_close int stops = stops_open();
    int sig, got = http_start(r->talk->http, &ask, &x, &r->e);

    while (got == 0 && !r->over) {
        struct pollfd fd = {.fd = stops, .events = POLLIN};

        got = http_wait(r->talk->http, &fd, 1, -1, &r->e);
        sig = stops_take(stops);
        if (got == 0 && !r->over && sig && sig != SIGWINCH && interrupt(r, &cancel) < 0)
            got = err_set(&r->e, ERR_CALLER, "interrupted; the run is cancelled");
    }
    http_cancel(r->cancelling);
    if (r->over && r->whole && !r->stream)
        http_answer_words(&r->refusal, &r->e);
    else if (got == 0 && r->result.n > 0)
        return 0;
    else if (r->over && r->whole)
        (void)err_set(&r->e, ERR_HOST, "the daemon has sent no result");
    talk_say(&r->e);
    return -1;
}

/* In a word why it ended, if it was not by itself. */
static void print_end(struct json_value result)
{
    struct json_value why = json_member(result, "termination");
    cleanup_free char *reason = NULL, *hint = NULL;

    if (!why.p || member_is(why, "reason", "exit") || member_is(why, "reason", "signal"))
        return;
    reason = member_text(why, "reason");
    hint = member_text(why, "hint");
    (void)fprintf(stderr, "sbx: ended by: %s%s%s\n", reason ? reason : "", hint ? "; " : "",
                  hint ? hint : "");
}

static int print_result(const struct running *r)
{
    struct json_value body, v;
    struct err e;
    int64_t code = -1;

    if (json_parse(r->result.p, r->result.n, 0, &body, &e) < 0) {
        (void)fprintf(stderr, "sbx: the answer is not JSON: %s\n", e.text);
        return CMD_FAILED;
    }
    if (r->talk->json) {
        talk_print(body);
    } else {
        if (json_get(body, "return_value", &v) && v.type != JSON_NULL)
            talk_print(v);
        (void)fflush(stdout);
        print_end(body);
    }
    if (r->interrupts)
        return CMD_INTERRUPTED;
    if (json_get(body, "exit_code", &v) && json_to_int(v, &code) && code >= 0)
        return (int)code;
    return member_is(body, "status", "timeout") ? CMD_TIMEOUT : CMD_FAILED;
}

int cmd_run(const struct args *a)
{
    cleanup_with(talk_close) struct talk t = {0};
    cleanup_with(buf_done) struct buf code = BUF_INIT(CODE_MAX), body = BUF_INIT(TALK_BODY_MAX);
    struct running r = {
        .talk = &t, .result = BUF_INIT(RESULT_MAX), .refusal = {.body = BUF_INIT(RESULT_MAX)}};
    const char *language = args_option(a, "language");
    int status = CMD_FAILED;

    if (a->n != 1)
        return args_wrong(a, "which file?");
    language = language ? language : language_of(a->operand[0], LANGUAGE_EXECUTE);
    if (!language) {
        (void)fprintf(stderr, "sbx: which language is %s? Say it with --language\n", a->operand[0]);
        return CMD_USAGE;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (read_whole(a->operand[0], &code) < 0 || write_request(a, language, &code, &body) < 0 ||
        talk_open(a, &t) < 0)
        return CMD_FAILED;
    event_lines_init(&r.events, RESULT_MAX);
    if (exchange(&r, &body) == 0)
        status = print_result(&r);
    else if (r.interrupts)
        status = CMD_INTERRUPTED;
    event_lines_done(&r.events);
    buf_done(&r.result);
    http_answer_done(&r.refusal);
    return status;
}
