/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/functions/inspect: which functions does this code define, and how are they called? The
 * code is parsed in a sandbox and never run; the answer is passed on as it came.
 */
#include <stdio.h>
#include <string.h>

#include "app/function/inspection.h"
#include "http/api/api.h"
#include "http/api/problem.h"

/* ---- the body ---- */

struct inspect_body {
    struct bytes language, code;
};

static void check_language(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (strlen(b->p) != b->n || !inspect_language(b->p))
        shape_complain(s, f->name, NULL, "string_pattern_mismatch",
                       "String should match pattern '^(python|javascript|ruby|php|c|cpp)$'");
}

static void check_code(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (b->n > INSPECT_CODE_MAX)
        shape_complain(s, f->name, NULL, "code_too_large", "Code size exceeds %d bytes limit",
                       INSPECT_CODE_MAX);
}

#define AT(member) offsetof(struct inspect_body, member)

/* clang-format off */
static const struct shape_field fields[] = {
    {"language", SHAPE_STRING, SHAPE_REQUIRED, AT(language), 0, 0, check_language,
     "python, javascript (js), ruby, php, c or cpp (c++)"},
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code), 0, 0, check_code,
     "source text, at most 8 MiB; parsed, never run"},
};
/* clang-format on */
const struct shape inspect_shape = {fields, ARRAY_LEN(fields), .name = "InspectRequest"};

/* ---- answers ---- */

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY)
        api_retry_after(c);
    http_reply_error(c, e);
}

static void reply_answer(struct http_call *c, const struct inspect_answer *answer)
{
    static const struct {
        int status;
        const char *code, *description, *solution;
    } problems[] = {
        [INSPECT_REFUSED] = {422, "Executor.InspectionRefused", "The code cannot be inspected",
                             "Send less code, or code that is not built to be hard to parse."},
        [INSPECT_UNAVAILABLE] = {501, "Executor.NotAvailable",      "Nothing here can parse code",
                             "Build with the grammars: tools/fetch-grammars."                },
        [INSPECT_FAILED] = {500, "Executor.InternalError",     "The inspection failed",
                             "Try again; if it stays, the log of the server says more."      },
    };
    struct buf body = BUF_INIT(answer->json.n + 1);
    char words[sizeof answer->type + sizeof answer->message + 2];

    if (answer->status == INSPECT_OK) {
        (void)buf_put(&body, answer->json.p, answer->json.n);
        http_reply_json(c, 200, &body);
        return;
    }
    (void)snprintf(words, sizeof words, "%s: %s", answer->type, answer->message);
    reply_problem(c, &(struct reply_problem){
                         .status = problems[answer->status].status,
                         .code = problems[answer->status].code,
                         .description = problems[answer->status].description,
                         .error_detail = words,
                         .solution = problems[answer->status].solution,
                     });
}

static void on_done(void *user, const struct inspect_answer *answer)
{
    reply_answer(user, answer);
}

static void on_gone(void *user)
{
    inspect_cancel(user);
}

/* ---- the request ---- */

static void submit(struct http_call *c, const struct inspect_body *b)
{
    struct inspect_order order = {
        .language = b->language.p, .code = b->code, .done = on_done, .user = c};
    struct inspect_answer known;
    struct inspect *i = NULL;
    struct err e;

    if (inspect_known(http_app(c), b->language.p, b->code, &known))
        reply_answer(c, &known);
    else if (inspect_start(http_app(c), &order, &i, &e) < 0)
        reply_refused(c, &e);
    else
        http_on_gone(c, on_gone, i);
}

void api_inspect(struct http_call *c)
{
    cleanup_with(shaping_done) struct shaping s;
    struct inspect_body body = {0};

    if (dialect_decode(c, &inspect_shape, &body, &s))
        submit(c, &body);
}
