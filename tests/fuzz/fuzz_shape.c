/* SPDX-License-Identifier: MIT */
/* The body of POST /execute: whatever comes, it is refused with words or leads to a sane spec. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "http/api/api.h"
#include "lang/runners.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct app *app_new(void)
{
    struct app *a = calloc(1, sizeof *a);
    const struct lang_fact *f;

    assert(a);
    a->languages.ops = &lang_ops;
    for (size_t i = 0; (f = lang_ops.fact(i)); i++)
        a->languages.names[i] = f->name;
    config_defaults(&a->config);
    return a;
}

/* What the rest of the daemon relies on. */
static void check_body(const struct app *a, const struct execute_body *b)
{
    assert(b->code.p && b->code.n <= a->config.code_max && b->code.p[b->code.n] == '\0');
    assert(b->language.p && lang_ops.find(b->language.p) >= 0);
    assert(b->timeout_s >= 0 && (uint64_t)b->timeout_s <= a->config.timeout_max_s);
    assert(!b->execution_id.p || api_id_is_valid(b->execution_id.p, b->execution_id.n));
    assert(!b->event.p || (b->event.n >= 2 && b->event.p[0] == '{'));
    for (size_t i = 0; i < b->vars.n; i++) {
        assert(b->vars.v[i].name.n > 0 && !strchr(b->vars.v[i].name.p, '='));
        assert(strlen(b->vars.v[i].value.p) == b->vars.v[i].value.n);
    }
}

static void plan_body(const struct app *a, const struct execute_body *b)
{
    struct exec_spec spec = {
        .execution_id = b->execution_id.p ? b->execution_id.p : "x",
        .language = b->language.p,
        .code = b->code,
        .event = {b->event.p, b->event.n},
        .input = b->input,
        .vars = b->vars.v,
        .vars_n = b->vars.n,
        .limits = {.wall_ms = 1000         }
    };
    struct plan *p = NULL;
    struct err e;

    (void)a;
    if (lang_ops.plan(&spec, &p, &e) == 0)
        lang_ops.plan_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct app *a = app_new();
    char *text = malloc(n + 1);
    struct execute_body body = {0};
    struct shaping s;
    struct buf json = BUF_INIT(1 << 20);

    assert(text);
    memcpy(text, data, n);
    text[n] = '\0';
    shaping_init(&s, a);
    if (shape_parse(&execute_shape, text, n, &body, &s) == 0) {
        check_body(a, &body);
        plan_body(a, &body);
    } else {
        assert(s.issues_n > 0);
        shape_issues_json(&s, &json);
        assert(!json.failed);
    }
    buf_done(&json);
    shaping_done(&s);
    free(text);
    free(a);
    return 0;
}
