/* SPDX-License-Identifier: MIT */
#include "app/call_compile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "app/app.h"
#include "app/call_inner.h"
#include "app/compile_cache.h"
#include "call/dispatch.h"
#include "lang/lang_call.h"

enum {
    COMPILE_MS = 60000,
    COMPILE_OUTPUT = 256 * 1024, /* of diagnostics */
    CODE_OVERHEAD = 256,
    GENERATION = 1, /* of dispatchers and options: another number makes every key another */
};

void call_build_free(struct call_build *b)
{
    if (!b)
        return;
    buf_done(&b->code);
    buf_done(&b->dispatcher);
    buf_done(&b->program);
    run_result_done(&b->result);
    free(b);
}

/* ---- the key ---- */

static void add_part(struct sha256 *h, const void *p, size_t n)
{
    uint64_t length = n;

    sha256_add(h, &length, sizeof length);
    sha256_add(h, p, n);
}

/* Only code that includes something by name can depend on the request's files. */
static bool may_include(const struct call *c)
{
    return memmem(c->request.code.p, c->request.code.n, "include", 7) != NULL;
}

static int make_key(const struct call *c, struct call_build *b, struct err *e)
{
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    const char *compiler = lang_compiler((enum call_lang_id)c->lang, c->wasm);
    const int generation = GENERATION;
    struct stat st;

    if (!h)
        return err_set(e, ERR_HOST, "out of memory");
    if (stat(compiler, &st) < 0)
        return err_sys(e, -errno, "%s", compiler);
    add_part(h, &generation, sizeof generation);
    add_part(h, compiler, strlen(compiler));
    add_part(h, &c->wasm, sizeof c->wasm);
    add_part(h, &st.st_mtim, sizeof st.st_mtim);
    add_part(h, &st.st_size, sizeof st.st_size);
    add_part(h, c->request.std, strlen(c->request.std));
    add_part(h, b->code.p, b->code.n);
    add_part(h, b->dispatcher.p, b->dispatcher.n);
    for (size_t i = 0; i < c->request.files_n && may_include(c); i++) {
        add_part(h, c->request.files[i].path, strlen(c->request.files[i].path));
        add_part(h, c->request.files[i].content.p, c->request.files[i].content.n);
    }
    sha256_end_hex(h, b->key);
    return 0;
}

/* ---- preparing ---- */

int call_build_prepare(struct call *c, struct err *e)
{
    struct call_build *b = calloc(1, sizeof *b);
    struct json_value output = {0};
    struct dispatch d = {
        .cpp = c->lang == CALL_CPP,
        .body = c->body,
        .function = c->function,
        .signature = c->signature,
    };

    if (!b)
        return err_set(e, ERR_HOST, "out of memory");
    c->build = b;
    if (c->request.schema.p && json_get(c->request.schema, "output", &output))
        d.output = output;
    b->code = BUF_INIT(c->request.code.n + CODE_OVERHEAD);
    b->dispatcher = BUF_INIT(DISPATCH_MAX);
    b->program = BUF_INIT(COMPILE_PROGRAM_MAX + 1);
    dispatch_code(&d, c->request.code, &b->code);
    if (dispatch_write(&d, &b->dispatcher, e) < 0 || make_key(c, b, e) < 0)
        return -1;
    if (compile_cache_get(c->app->programs, b->key, &b->program) < 0)
        buf_clear(&b->program);
    return 0;
}

/* ---- compiling ---- */

static void on_file(void *user, struct run_file *f)
{
    static const char top[] = "workspace/";
    struct call_build *b = ((struct call *)user)->build;
    const char *name = f->name;
    struct stat st;
    size_t got = 0;

    /* With more directories than the workspace the list begins at the top. */
    if (strncmp(name, top, sizeof top - 1) == 0)
        name += sizeof top - 1;
    if (strcmp(name, lang_compiled_name) != 0 || fstat(f->fd, &st) < 0)
        return;
    if (st.st_size > COMPILE_PROGRAM_MAX || buf_reserve(&b->program, (size_t)st.st_size) < 0) {
        b->too_large = true;
        return;
    }
    while (got < (size_t)st.st_size) {
        ssize_t n = pread(f->fd, b->program.p + got, (size_t)st.st_size - got, (off_t)got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* not whole: as if it were not there */
        got += (size_t)n;
    }
    b->program.n = got;
}

static void on_done(void *user)
{
    struct call *c = user;
    struct call_build *b = c->build;

    if (b->result.reason != END_EXIT || b->result.exit_code != 0)
        buf_clear(&b->program);
    if (b->program.n > 0)
        compile_cache_put(c->app->programs, b->key, b->program.p, b->program.n);
    run_free(take_ptr(&c->run));
    call_built(c);
}

int call_build_start(struct call *c, struct err *e)
{
    struct call_build *b = c->build;
    struct run_events events = {.file = on_file, .done = on_done, .user = c};
    struct lang_compile spec = {
        .id = c->id,
        .lang = (enum call_lang_id)c->lang,
        .std = c->request.std,
        .files = c->request.files,
        .files_n = may_include(c) ? c->request.files_n : 0,
        .workdir = c->request.workdir,
        .code = {b->code.p,       b->code.n      },
        .dispatcher = {b->dispatcher.p, b->dispatcher.n},
        .wasm = c->wasm,
    };
    struct plan *plan = NULL;
    int r;

    if (call_dirs_find(c, e) < 0)
        return -1;
    if (c->dirs.n > 0 && spec.files_n > 0)
        spec.dirs = c->dirs.p;
    b->limits = app_limits(c->app, COMPILE_MS);
    b->limits.output_max = COMPILE_OUTPUT;
    spec.limits = b->limits;
    run_result_init(&b->result, &b->limits);
    if (lang_compile_plan(&spec, &plan, e) < 0)
        return -1;
    r = run_start(c->app->engine, plan, &b->result, &events, &c->run, e);
    lang_compile_free(plan);
    return r;
}
