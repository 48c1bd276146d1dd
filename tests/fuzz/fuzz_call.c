/* SPDX-License-Identifier: MIT */
/* Function calls: the first byte says which parser gets the rest. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "function/args.h"
#include "function/dispatch.h"
#include "function/mount.h"
#include "function/request.h"
#include "function/rights.h"
#include "function/signature.h"
#include "function/sip.h"
#include "lang/lang_call.h"

enum { STEPS = 1000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void plan_it(const struct call_request *r, const struct call_args *a)
{
    struct lang_call c = {
        .id = "x",
        .lang = CALL_PYTHON,
        .request = r,
        .function = {"f",             1                 },
        .options_at = -1,
        .args = a,
        .limits = {.wall_ms = 1000, .result_max = 1000}
    };

    struct plan *p = NULL;
    struct err e;
    unsigned sum = 0;

    for (size_t i = 0; i < r->code.n; i++) /* the text decides which of all ways it goes */
        sum = sum * 31 + (unsigned char)r->code.p[i];
    c.mode = (enum call_mode)(CALL_MODE_INLINE + sum % (CALL_MODES - CALL_MODE_INLINE));
    c.lang = (enum call_lang_id)(sum / CALL_MODES % CALL_LANG_COUNT);
    if (lang_call_plan(&c, &p, &e) == 0)
        lang_call_free(p);
}

/* What the rules allow on a file that is there, the fence never forbids. */
static void fence(const struct mount *m, const struct call_request *r)
{
    static const char *const made[] = {"/data/", "/data/x/"};
    uint64_t steps = STEPS;
    struct rights_ask ask = {
        m, r->workdir, r->attached.files, r->attached.n, made, ARRAY_LEN(made), &steps};
    struct call_rights rights;
    struct err e;

    if (rights_find(&ask, &rights, &e) < 0)
        return;
    for (size_t i = 0; i < r->attached.n; i++)
        if (mount_allows(m, r->attached.files[i].path, r->workdir, &steps) & PERM_MODIFY)
            assert(rights.files[i] & PLAN_MODIFY);
    for (size_t i = 0; i < rights.dirs_n; i++)
        assert(rights_dir(&rights, i).path[0] == '/');
    rights_done(&rights);
}

/* A body: refused with words, or everything in it is where it should be. */
static void body(const char *text, size_t n)
{
    struct call_signature *s = calloc(1, sizeof *s);
    struct mount *m = calloc(1, sizeof *m);
    struct call_request r;
    struct call_args a = {0};
    struct err e;

    assert(s && m);
    if (call_request_parse(&r, text, n, &e) == 0) {
        for (size_t i = 0; i < r.attached.n; i++)
            assert(r.attached.files[i].path[0] == '/' && !strstr(r.attached.files[i].path, "/../"));
        assert(r.workdir[0] == '/' && r.code.p[r.code.n] == '\0');
        if (call_args_collect(&a, r.args, r.kwargs, &e) == 0 &&
            (!r.schema.p || signature_from_schema(s, r.schema, &e) == 0) &&
            call_args_bind(&a, s, CALL_KEYWORDS, &e) == 0) {
            (void)!call_args_check(&a, s, &e);
            for (size_t i = 0; i < CALL_LANG_COUNT; i++)
                (void)!call_args_representable(&a, call_lang(i), &e);
            plan_it(&r, &a);
        }
        if (mount_parse(m, r.mount, r.permissions, &e) == 0) {
            uint64_t steps = STEPS;

            (void)mount_allows(m, "/data/x/y.log", "/workspace", &steps);
            fence(m, &r);
        }
        mount_done(m);
    }
    call_args_done(&a);
    call_request_done(&r);
    free(m);
    free(s);
}

/* A call of a session, and the packet made of it. */
static void turn(const char *text, size_t n)
{
    static const struct call_reporting usual = {true, true, true};
    struct buf packet = BUF_INIT(16 * n + 4096);
    struct call_request r;
    struct call_args a = {0};
    struct err e;

    if (call_request_parse_turn(&r, text, n, "/workspace", &usual, &e) == 0) {
        struct sip_call c = {
            .function = r.function, .args = &a, .token = "0123456789abcdef", .options_at = -1};
        struct json_value v;

        assert(r.function.n > 0 && r.function.p[r.function.n] == '\0');
        if (call_args_collect(&a, r.args, r.kwargs, &e) == 0) {
            sip_payload(&c, &packet);
            assert(packet.failed || json_parse(packet.p, packet.n, 0, &v, &e) == 0);
        }
    }
    call_args_done(&a);
    call_request_done(&r);
    buf_done(&packet);
}

/* What the inspector wrote, or somebody in its place. */
static void inspected(const char *text, size_t n)
{
    struct call_signature *s = calloc(1, sizeof *s);
    struct buf out = BUF_INIT(DISPATCH_MAX);
    struct json_value v;
    struct call_found found;
    struct err e;

    assert(s);
    if (json_parse(text, n, 0, &v, &e) == 0 && signature_find(v, NULL, 0, &found, &e) == 0 &&
        found.function.p && signature_from_function(s, found.function, &e) == 0)
        for (int cpp = 0; cpp < 2; cpp++) {
            struct dispatch d = {
                .cpp = cpp, .function = {"f", 1},
                     .signature = s
            };

            buf_clear(&out);
            (void)!dispatch_write(&d, &out, &e);
            buf_clear(&out);
            (void)!dispatch_session(cpp, v, &out, &e);
        }
    buf_done(&out);
    free(s);
}

/* The body of a sync. */
static void rules(const char *text, size_t n)
{
    struct mount *m = calloc(2, sizeof *m);
    uint64_t steps = STEPS;
    struct json_value v;
    struct err e;

    assert(m);
    if (json_parse(text, n, 0, &v, &e) == 0) {
        if (mount_parse_sync(&m[0], v, &m[1], &e) == 0)
            (void)mount_answers(&m[0], &m[1], "/data/x/y.log", &steps);
        mount_done(&m[0]);
    }
    free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text;

    if (n == 0)
        return 0;
    text = malloc(n);
    assert(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    if (data[0] == 'b')
        body(text, n - 1);
    else if (data[0] == 't')
        turn(text, n - 1);
    else if (data[0] == 'i')
        inspected(text, n - 1);
    else if (data[0] == 's')
        rules(text, n - 1);
    free(text);
    return 0;
}
