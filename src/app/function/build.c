/* SPDX-License-Identifier: MIT */
#include "app/function/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "app/function/compile_cache.h"
#include "app/function/program.h"
#include "base/base64.h"
#include "base/os.h"
#include "function/dispatch.h"
#include "lang/lang_call.h"

enum {
    COMPILE_MS = 60000,
    COMPILE_OUTPUT = 256 * 1024, /* of diagnostics */
    CODE_OVERHEAD = 256,
    GENERATION = 6, /* of dispatchers and of this key: another number makes every key another */
};

static const char magic[] = {'\0', 'a', 's', 'm', 1, 0, 0, 0};

struct build *build_new(struct program *p)
{
    struct build *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->whose = p;
    b->code = BUF_INIT(p->request.code.n + CODE_OVERHEAD);
    b->dispatcher = BUF_INIT(DISPATCH_MAX);
    b->made = BUF_INIT(COMPILE_PROGRAM_MAX + 1);
    return b;
}

void build_free(struct build *b)
{
    if (!b)
        return;
    buf_done(&b->code);
    buf_done(&b->dispatcher);
    buf_done(&b->made);
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

/* Only code that names a file for the compiler (#include, #import, #embed, .incbin) can depend on
 * files. The compiler sees none where this says no: a spelling that is missed here finds none. */
static bool may_include(const struct build *b)
{
    static const char *const words[] = {"inc", "import", "embed", /* and a backslash: */ "?\?/"};
    struct bytes code = b->whose->request.code;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (memmem(code.p, code.n, words[i], strlen(words[i])))
            return true;
    return has_spliced_line(code);
}

static struct lang_compile compile_spec(const struct build *b)
{
    const struct program *p = b->whose;
    const struct call_request *r = &p->request;

    return (struct lang_compile){
        .id = p->id,
        .lang = (enum call_lang_id)p->lang,
        .wasm = p->wasm,
        .std = r->std,
        .files = r->attached.files,
        .files_n = may_include(b) ? r->attached.n : 0,
        .workdir = r->workdir,
        .code = {b->code.p,       b->code.n      },
        .dispatcher = {b->dispatcher.p, b->dispatcher.n},
    };
}

static int make_key(struct build *b, struct err *e)
{
    const struct lang_compile spec = compile_spec(b);
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();
    const char *compiler = lang_compiler(spec.lang, spec.wasm);
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

/* ---- before the compiler ---- */

int build_look_up(struct build *b, struct err *e)
{
    if (make_key(b, e) < 0)
        return -1;
    if (compile_cache_get(b->whose->app->functions.programs, b->key, &b->made) < 0)
        buf_clear(&b->made);
    return 0;
}

/* Only the envelope is looked at; what is in the module is V8's business, inside a sandbox. */
int build_take_module(struct build *b, struct err *e)
{
    const struct bytes code = b->whose->request.code;
    struct buf *out = &b->made;

    if (base64_decode(code.p, code.n, out) < 0)
        return err_set(e, ERR_CALLER,
                       "code: should be a WebAssembly module in base64, at most %d "
                       "bytes of it",
                       COMPILE_PROGRAM_MAX);
    if (out->n < sizeof magic || memcmp(out->p, magic, sizeof magic) != 0)
        return err_set(e, ERR_CALLER,
                       "code: this is no WebAssembly module: it does not begin with \\0asm and "
                       "version 1");
    return 0;
}

/* ---- the compiler ---- */

int build_plan(struct build *b, struct plan **ret, struct err *e)
{
    struct lang_compile spec = compile_spec(b);

    if (spec.files_n > 0)
        spec.dirs = program_dirs_text(b->whose);
    b->limits = app_limits(b->whose->app, COMPILE_MS);
    b->limits.output_max = COMPILE_OUTPUT;
    spec.limits = b->limits;
    run_result_init(&b->result, &b->limits);
    return lang_compile_plan(&spec, ret, e);
}

void build_on_file(struct build *b, struct run_file *f)
{
    static const char top[] = "workspace/";
    const char *name = f->name;
    struct stat st;

    /* With more directories than the workspace the list begins at the top. */
    if (strncmp(name, top, sizeof top - 1) == 0)
        name += sizeof top - 1;
    if (strcmp(name, lang_compiled_name) != 0 || fstat(f->fd, &st) < 0)
        return;
    if (st.st_size > COMPILE_PROGRAM_MAX || buf_reserve(&b->made, (size_t)st.st_size) < 0) {
        b->too_large = true;
        return;
    }
    if (os_read_start(f->fd, b->made.p, (size_t)st.st_size) == st.st_size)
        b->made.n = (size_t)st.st_size; /* else not whole: as if it were not there */
}

int build_end(struct build *b, struct err *e)
{
    const struct run_result *r = &b->result;
    const char *error = r->err.n ? strstr(r->err.p, "error:") : NULL;
    const char *line = error;

    if (r->reason != END_EXIT || r->exit_code != 0)
        buf_clear(&b->made);
    if (b->made.n > 0) {
        compile_cache_put(b->whose->app->functions.programs, b->key, b->made.p, b->made.n);
        return 0;
    }
    while (line && line > r->err.p && line[-1] != '\n')
        line--;
    if (r->reason == END_TIMEOUT)
        (void)err_set(e, ERR_CALLER, "the compiler did not end in time");
    else if (line)
        (void)err_set(e, ERR_CALLER, "%.*s", (int)strcspn(line, "\n"), line);
    else
        (void)err_set(e, ERR_CALLER, "the compiler failed (%s)%s%s", end_reason_name(r->reason),
                      r->fault[0] ? ": " : "", r->fault);
    return err_type(e, ERR_NONE, "CompileError");
}
