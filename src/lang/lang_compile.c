/* SPDX-License-Identifier: MIT */
/*
 * The compiler as a plan. One translation unit: the program's own text first, so that it sees
 * nothing of ours, then the run-time part (wrap/call_c.inc), then the dispatcher. A main() of the
 * program's own is set aside.
 */
#include <stdio.h>
#include <string.h>

#include "lang/lang_call.h"
#include "lang/lang_job.h"
#include "lang/wrap.h"

const char lang_compiled_name[] = ".sandbox-program";

enum { OWN_FILES = 5, HEAD_MAX = 512 };

struct compile_plan {
    struct plan plan; /* first member: its address is handed out */
    struct lang_job *job;
    struct plan_file *files; /* owned array */
    struct buf main;
    struct lang_compile_args args;
};

/* It is on the include path; by its name alone it is found wherever a jail puts that. */
#define CODE_DIR "/workspace/"

enum { YEARS_MAX = 12 };

/* compiler: native, then for WebAssembly. years: of the standards that our own part of a program
 * can be compiled with, behind "c" or "gnu" and the stem; said: those that every compiler knows. */
static const struct {
    const char *compiler[2], *std, *code, *main, *stem, *years[YEARS_MAX], *said;
} rows[CALL_LANG_COUNT] = {
    [CALL_C] = {{"/usr/bin/gcc", "/usr/bin/clang"},
                "gnu17",   CODE_DIR "user_code.c",
                "/tmp/call/main.c",   "",
                {"99", "9x", "11", "1x", "17", "18", "23", "2x", "2y"},
                "c99, c11, c17, c2x, or gnu instead of c"                   },
    [CALL_CPP] = {{"/usr/bin/g++", "/usr/bin/clang++"},
                "gnu++17", CODE_DIR "user_code.cpp",
                "/tmp/call/main.cpp", "++",
                {"11", "0x", "14", "1y", "17", "1z", "20", "2a", "23", "2b", "26", "2c"},
                "c++11, c++14, c++17, c++20, c++2b, or gnu++ instead of c++"},
};

static const char *const native_options[] = {"-pipe", "-fmax-errors=20", "-pthread", NULL};
/* A module has its stack in its own memory and nothing below it: too deep is then a trap. */
static const char *const wasm_options[] = {
    "--target=wasm32-wasi", "-ferror-limit=20", "-fignore-exceptions", "-mexec-model=command",
    "-Wl,-z,stack-size=1048576,--stack-first,--strip-all",
    /* for the host's functions, wrap/call_wasi.inc */
    "-Wl,--export-table,--growable-table", "-Wl,--export=sandbox_slots", NULL};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

/* The other language's would be ignored by the compiler, which says so only in a warning. */
static bool is_std(enum call_lang_id lang, const char *std)
{
    const char *stem = rows[lang].stem, *at = std;

    at += strncmp(at, "gnu", 3) == 0 ? 3 : *at == 'c';
    if (at == std || strncmp(at, stem, strlen(stem)) != 0)
        return false;
    at += strlen(stem);
    for (size_t i = 0; i < YEARS_MAX && rows[lang].years[i]; i++)
        if (strcmp(at, rows[lang].years[i]) == 0)
            return true;
    return false;
}

static int main_build(struct compile_plan *p, const struct lang_compile *c, struct err *e)
{
    p->main = BUF_INIT(c->dispatcher.n + HEAD_MAX);
    (void)buf_printf(&p->main,
                     "#define main sandbox_user_main\n#include \"%s\"\n#undef main\n"
                     "%s#include \"call_c.h\"\n%s",
                     rows[c->lang].code + sizeof CODE_DIR - 1,
                     c->wasm ? "#include \"call_wasi.h\"\n" : "",
                     c->lang == CALL_CPP ? "#include \"call_cpp.h\"\n" : "");
    (void)buf_put(&p->main, c->dispatcher.p, c->dispatcher.n);
    return p->main.failed ? no_memory(e) : 0;
}

static int files_build(struct compile_plan *p, const struct lang_compile *c, struct err *e)
{
    size_t n = 0;

    p->files = calloc(c->files_n + OWN_FILES, sizeof *p->files);
    if (!p->files)
        return no_memory(e);
    for (size_t i = 0; i < c->files_n; i++)
        p->files[n++] = (struct plan_file){c->files[i].path, c->files[i].content, 0644, 0};
    p->files[n++] = (struct plan_file){rows[c->lang].code, c->code, 0644, 0};
    p->files[n++] = (struct plan_file){
        rows[c->lang].main, {p->main.p, p->main.n},
         0644, 0
    };
    p->files[n++] = (struct plan_file){
        "/tmp/call/call_c.h", {wrap_call_c, wrap_call_c_n},
         0644, 0
    };
    p->files[n++] = (struct plan_file){
        "/tmp/call/call_wasi.h", {wrap_call_wasi, wrap_call_wasi_n},
         0644, 0
    };
    p->files[n++] = (struct plan_file){
        "/tmp/call/call_cpp.h", {wrap_call_cpp, wrap_call_cpp_n},
         0644, 0
    };
    p->plan.files = p->files;
    p->plan.files_n = n;
    return 0;
}

size_t lang_compile_args(const struct lang_compile *c, struct lang_compile_args *out)
{
    const char *const fixed[] = {"-O1",
                                 "-w",
                                 "-fdiagnostics-color=never",
                                 "-iquote",
                                 "/workspace",
                                 "-I",
                                 c->workdir,
                                 "-I",
                                 "/workspace",
                                 "-o",
                                 "/workspace/.sandbox-program",
                                 rows[c->lang].main,
                                 "-lm"};
    size_t n = 0;

    _Static_assert(2 + ARRAY_LEN(wasm_options) + ARRAY_LEN(fixed) <= LANG_COMPILE_ARGS, "room");
    _Static_assert(ARRAY_LEN(native_options) <= ARRAY_LEN(wasm_options), "room");
    (void)snprintf(out->std, sizeof out->std, "-std=%s", c->std[0] ? c->std : rows[c->lang].std);
    out->arg[n++] = lang_compiler(c->lang, c->wasm);
    out->arg[n++] = out->std;
    for (const char *const *at = c->wasm ? wasm_options : native_options; *at; at++)
        out->arg[n++] = *at;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        out->arg[n++] = fixed[i];
    return n;
}

static void arguments(struct compile_plan *p, const struct lang_compile *c)
{
    size_t n = lang_compile_args(c, &p->args);

    for (size_t i = 0; i < n; i++)
        lang_job_arg(p->job, p->args.arg[i]);
}

static int build(struct compile_plan *p, const struct lang_compile *c, struct err *e)
{
    struct exec_spec s = {
        .execution_id = c->id, .language = "shell", .limits = c->limits, .no_event_vars = true};

    if (c->std[0] && !is_std(c->lang, c->std))
        return err_set(e, ERR_CALLER, "options.std: '%.32s' is not a standard; possible are %s",
                       c->std, rows[c->lang].said);
    if (lang_job_new(&s, &p->job, e) < 0 || main_build(p, c, e) < 0)
        return -1;
    arguments(p, c);
    p->plan = p->job->plan;
    p->plan.scan_all = true;
    p->plan.dirs = c->dirs;
    return files_build(p, c, e);
}

void lang_compile_free(struct plan *plan)
{
    struct compile_plan *p = (struct compile_plan *)plan;

    if (!p)
        return;
    lang_job_free(p->job);
    free(p->files);
    buf_done(&p->main);
    free(p);
}

int lang_compile_plan(const struct lang_compile *c, struct plan **ret, struct err *e)
{
    struct compile_plan *p = calloc(1, sizeof *p);

    if (!p)
        return no_memory(e);
    if (build(p, c, e) < 0) {
        lang_compile_free(&p->plan);
        return -1;
    }
    *ret = &p->plan;
    return 0;
}

const char *lang_compiler(enum call_lang_id lang, bool wasm)
{
    return rows[lang].compiler[wasm];
}
