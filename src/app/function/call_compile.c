/* SPDX-License-Identifier: MIT */
#include "app/function/call_compile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/daemon/app.h"
#include "app/function/call_inner.h"
#include "app/function/compile_cache.h"
#include "base/os.h"
#include "function/dispatch.h"
#include "lang/lang_call.h"

enum {
    COMPILE_MS = 60000,
    COMPILE_OUTPUT = 256 * 1024, /* of diagnostics */
    CODE_OVERHEAD = 256,
    GENERATION = 6, /* of dispatchers and of this key: another number makes every key another */
};

void call_build_free(struct call_build *b)
{
    if (!b)
        return;
    run_free(b->run);
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

/* A line that goes on in the next one may cut any word in two. */
static bool has_spliced_line(struct bytes code)
{
    const char *end = code.p + code.n, *p = code.p;

    for (; p < end && (p = memchr(p, '\\', (size_t)(end - p))); p++) {
        const char *at = p + 1;

        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\f' || *at == '\v'))
            at++;
        if (at < end && *at == '\n')
            return true;
    }
    return false;
}

/* Only code that names a file for the compiler (#include, #embed, .incbin) can depend on files. */
static bool may_include(const struct call_build *b)
{
    static const char *const words[] = {"inc", "embed", "?\?/"}; /* the last is a backslash, too */
    struct bytes code = b->request->code;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (memmem(code.p, code.n, words[i], strlen(words[i])))
            return true;
    return has_spliced_line(code);
}

static struct lang_compile compile_spec(const struct call_build *b)
{
    const struct call_request *r = b->request;

    return (struct lang_compile){
        .id = b->id,
        .lang = b->lang,
        .wasm = b->wasm,
        .std = r->std,
        .files = r->files,
        .files_n = may_include(b) ? r->files_n : 0,
        .workdir = r->workdir,
        .code = {b->code.p,       b->code.n      },
        .dispatcher = {b->dispatcher.p, b->dispatcher.n},
    };
}

static int make_key(struct call_build *b, struct err *e)
{
    const struct lang_compile spec = compile_spec(b);
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    const char *compiler = lang_compiler(b->lang, b->wasm);
    const int generation = GENERATION;
    struct lang_compile_args args;
    size_t args_n = lang_compile_args(&spec, &args);
    struct timespec changed;
    struct stat st;

    if (!h)
        return err_set(e, ERR_HOST, "out of memory");
    if (stat(compiler, &st) < 0)
        return err_sys(e, -errno, "%s", compiler);
    add_part(h, &generation, sizeof generation);
    changed = st.st_mtim;
    add_part(h, &changed, sizeof changed);
    add_part(h, &st.st_size, sizeof st.st_size);
    add_part(h, &args_n, sizeof args_n);
    for (size_t i = 0; i < args_n; i++)
        add_part(h, args.arg[i], strlen(args.arg[i]));
    add_part(h, b->code.p, b->code.n);
    add_part(h, b->dispatcher.p, b->dispatcher.n);
    for (size_t i = 0; i < spec.files_n; i++) {
        add_part(h, spec.files[i].path, strlen(spec.files[i].path));
        add_part(h, spec.files[i].content.p, spec.files[i].content.n);
    }
    sha256_end_hex(h, b->key);
    return 0;
}

/* ---- preparing ---- */

struct call_build *call_build_new(struct app *a, const char *id, int lang,
                                  const struct call_request *request)
{
    struct call_build *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->app = a;
    b->engine = a->engine;
    b->id = id;
    b->lang = (enum call_lang_id)lang;
    b->request = request;
    b->code = BUF_INIT(request->code.n + CODE_OVERHEAD);
    b->dispatcher = BUF_INIT(DISPATCH_MAX);
    b->program = BUF_INIT(COMPILE_PROGRAM_MAX + 1);
    return b;
}

int call_build_seal(struct call_build *b, struct err *e)
{
    if (make_key(b, e) < 0)
        return -1;
    if (compile_cache_get(b->app->programs, b->key, &b->program) < 0)
        buf_clear(&b->program);
    return 0;
}

int call_build_prepare(struct call *c, struct err *e)
{
    struct json_value output = {0};
    struct dispatch d = {
        .cpp = c->lang == CALL_CPP,
        .body = c->body,
        .function = c->function,
        .signature = c->signature,
    };

    c->build = call_build_new(c->app, c->id, c->lang, &c->request);
    if (!c->build)
        return err_set(e, ERR_HOST, "out of memory");
    c->build->wasm = c->wasm;
    c->build->engine = c->where.engine;
    if (c->request.schema.p && json_get(c->request.schema, "output", &output))
        d.output = output;
    dispatch_code(&d, c->request.code, &c->build->code);
    if (dispatch_write(&d, &c->build->dispatcher, e) < 0)
        return -1;
    return call_build_seal(c->build, e);
}

/* ---- compiling ---- */

static void on_file(void *user, struct run_file *f)
{
    static const char top[] = "workspace/";
    struct call_build *b = user;
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
    struct call_build *b = user;

    if (b->result.reason != END_EXIT || b->result.exit_code != 0)
        buf_clear(&b->program);
    if (b->program.n > 0)
        compile_cache_put(b->app->programs, b->key, b->program.p, b->program.n);
    run_free(take_ptr(&b->run));
    b->done(b->user);
}

int call_build_start(struct call_build *b, const char *dirs, struct err *e)
{
    struct run_events events = {.file = on_file, .done = on_done, .user = b};
    struct lang_compile spec = compile_spec(b);
    struct plan *plan = NULL;
    int started;

    if (spec.files_n > 0)
        spec.dirs = dirs;
    b->limits = app_limits(b->app, COMPILE_MS);
    b->limits.output_max = COMPILE_OUTPUT;
    spec.limits = b->limits;
    run_result_init(&b->result, &b->limits);
    if (lang_compile_plan(&spec, &plan, e) < 0)
        return -1;
    started = run_start(b->engine, plan, &b->result, &events, &b->run, e);
    lang_compile_free(plan);
    return started;
}

void call_build_failure(const struct call_build *b, char *out, size_t n)
{
    const struct run_result *r = &b->result;
    const char *error = r->err.n ? strstr(r->err.p, "error:") : NULL;
    const char *line = error;

    while (line && line > r->err.p && line[-1] != '\n')
        line--;
    if (r->reason == END_TIMEOUT)
        (void)snprintf(out, n, "the compiler did not end in time");
    else if (line)
        (void)snprintf(out, n, "%.*s", (int)strcspn(line, "\n"), line);
    else
        (void)snprintf(out, n, "the compiler failed (%s)%s%s", end_reason_name(r->reason),
                       r->fault[0] ? ": " : "", r->fault);
}
