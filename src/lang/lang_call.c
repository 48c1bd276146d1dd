/* SPDX-License-Identifier: MIT */
#include "lang/lang_call.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/jw.h"
#include "core/exec_spec.h"
#include "function/literal.h"
#include "function/sip.h"
#include "lang/lang_job.h"
#include "lang/lang_wasm.h"
#include "lang/wrap.h"

#define REQUEST_NAME ".sandbox_request.json"

enum {
    EVENT_OVERHEAD = 64 * 1024, /* an event beside its texts */
    ESCAPE_FACTOR = 6,          /* one byte becomes at most \u00XX */
    LITERAL_FACTOR = 12,        /* "\u0000" becomes at most as long, then escaped once more */
    PROGRAM_PATH_MAX = 192,
};

/* A plan that owns what it adds to the job's own. */
struct call_plan {
    struct plan plan; /* first member: its address is handed out */
    struct lang_job *job;
    struct plan_file *files; /* owned array */
    struct buf event, input, request;
    char request_path[CALL_PATH_MAX + 32];
    char file_path[CALL_PATH_MAX + 32];
    char place_path[CALL_PATH_MAX + 32]; /* "": none */
    char program_path[PROGRAM_PATH_MAX];
};

bool lang_call_available(enum call_lang_id lang)
{
    return access(call_lang(lang)->interpreter, X_OK) == 0;
}

const char *lang_call_place(enum call_lang_id lang, bool wasm)
{
    if (wasm && lang == CALL_JAVASCRIPT)
        return ".sandbox-code.js"; /* the only suffix that QuickJS loads */
    return call_lang(lang)->place;
}

enum call_mode lang_call_mode(const struct call_request *r, size_t bytes)
{
    if (r->mode != CALL_MODE_AUTO)
        return r->mode;
    if (bytes >= r->auto_threshold)
        return CALL_MODE_FILE;
    if (bytes < CALL_AUTO_INLINE)
        return CALL_MODE_INLINE;
    return bytes < CALL_AUTO_STDIN ? CALL_MODE_STDIN : CALL_MODE_FILE;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

/* ---- jobs ---- */

/* Python and JavaScript: the handler's own plan, warmed or not, with our wrapper as the program. */
static int handler_job(const struct exec_spec *s, struct call_plan *c, struct err *e)
{
    return strcmp(s->language, "python") == 0 ? lang_python_plan(s, &c->job, e)
                                              : lang_javascript_plan(s, &c->job, e);
}

static int plain_job(const struct exec_spec *s, struct call_plan *c, struct err *e)
{
    if (lang_job_new(s, &c->job, e) < 0)
        return -1;
    return lang_job_frames(c->job, s, EXEC_EITHER, e);
}

static int interpreter_job(const struct exec_spec *s, enum call_lang_id lang, struct call_plan *c,
                           struct err *e)
{
    /* read when any interpreter starts */
    static const char *const start_vars[] = {"LD_",      "LC_",    "LANG",    "TZ",
                                             "USE_ZEND", "GLIBC_", "MALLOC_", NULL};
    const struct call_lang *l = call_lang(lang);
    const char *const own[] = {l->reads, NULL};

    if (plain_job(s, c, e) < 0)
        return -1;
    if (!lang_needs_cold(s, start_vars, NULL) && !lang_needs_cold(s, own, NULL))
        c->job->plan.template = l->template;
    lang_job_arg(c->job, l->interpreter);
    for (size_t i = 0; l->args[i]; i++)
        lang_job_arg(c->job, l->args[i]);
    lang_job_wrapper(c->job, wrap_call_find(l->name, NULL));
    return 0;
}

static int program_job(const struct exec_spec *s, struct call_plan *c, struct err *e)
{
    if (plain_job(s, c, e) < 0)
        return -1;
    (void)snprintf(c->program_path, sizeof c->program_path, "/tmp/call-%s", s->execution_id);
    lang_job_arg(c->job, c->program_path);
    return 0;
}

/* In WebAssembly: what runs it is there already, so only the frames and the module differ. */
static int wasm_job(const struct exec_spec *s, const struct lang_call *c, struct call_plan *p,
                    struct err *e)
{
    enum lang_wasm_kind kind = c->lang == CALL_WASM ? LANG_WASM_FOREIGN
                               : c->program.p       ? LANG_WASM_PROGRAM
                                                    : LANG_WASM_RUNTIME;

    if (plain_job(s, p, e) < 0)
        return -1;
    (void)snprintf(p->program_path, sizeof p->program_path, "/tmp/call-%s", s->execution_id);
    lang_wasm_job(p->job, lang_wasm_template(c->lang), kind, c->dirs,
                  c->program.p ? p->program_path : NULL);
    return 0;
}

static int job_build(const struct exec_spec *s, const struct lang_call *c, struct call_plan *p,
                     struct err *e)
{
    unsigned flags = call_lang(c->lang)->flags;

    if (c->wasm)
        return wasm_job(s, c, p, e);
    if (flags & CALL_HANDLED)
        return handler_job(s, p, e);
    return flags & (CALL_COMPILED | CALL_MODULE) ? program_job(s, p, e)
                                                 : interpreter_job(s, c->lang, p, e);
}

/* ---- the event ---- */

/* [args, kwargs] as the language writes it; false: hand it over as JSON. */
static bool put_literal(const struct lang_call *c, struct buf *out)
{
    cleanup_with(buf_done) struct buf names = BUF_INIT(CALL_INLINE_MAX + 64);
    struct json_value v;
    struct err ignored;

    (void)buf_putc(&names, '[');
    call_args_json(c->args, &names);
    (void)buf_putc(&names, ',');
    call_names_json(c->args, &names);
    (void)buf_putc(&names, ']');
    if (names.failed || json_parse(names.p, names.n, 0, &v, &ignored) < 0)
        return false;
    return literal_put(c->lang, v, out) == 0;
}

static void put_given(const struct lang_call *c, struct jw *w)
{
    jw_key(w, "given");
    sip_payload(&(struct sip_call){.function = c->function, .args = c->args}, w->out);
    w->comma = true;
}

static void put_inline(const struct lang_call *c, struct jw *w)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT((size_t)LITERAL_FACTOR * CALL_INLINE_MAX);

    if (call_lang(c->lang)->flags & (CALL_COMPILED | CALL_MODULE) || !put_literal(c, &text)) {
        put_given(c, w);
        return;
    }
    jw_kv_bytes(w, "literal", text.p, text.n);
    if (call_args_has_holes(c->args)) {
        jw_key(w, "holes");
        call_holes_json(c->args, w->out);
        w->comma = true;
    }
}

/* Seen from the working directory. */
static void put_request(struct jw *w, const struct lang_call *c)
{
    const char *dir = c->request->workdir;
    char name[3 * CALL_PATH_MAX + sizeof "tmp/" REQUEST_NAME] = "";
    size_t n = 0;

    if (c->rights) {
        for (const char *at = dir; *at && dir[1]; at++)
            if (*at == '/' && n + 3 < sizeof name) {
                memcpy(name + n, "../", 4);
                n += 3;
            }
        (void)snprintf(name + n, sizeof name - n, "tmp/");
    }
    (void)snprintf(name + strlen(name), sizeof name - strlen(name), REQUEST_NAME);
    jw_kv_string(w, "request", name);
}

static int event_build(struct call_plan *p, const struct lang_call *c, size_t args_n, struct err *e)
{
    const struct call_request *r = c->request;
    struct jw w = JW(&p->event);
    bool compiled = call_lang(c->lang)->flags & (CALL_COMPILED | CALL_MODULE);

    p->event =
        BUF_INIT(EVENT_OVERHEAD + ESCAPE_FACTOR * (compiled ? 0 : r->code.n) +
                 (size_t)2 * LITERAL_FACTOR * (args_n < CALL_INLINE_MAX ? args_n : 64) + args_n);
    jw_object(&w);
    jw_kv_string(&w, "mode", c->stays ? "session" : call_mode_name(c->mode));
    if (!c->stays)
        jw_kv_bytes(&w, "function", c->function.p ? c->function.p : "", c->function.n);
    if (c->lang == CALL_WASM && !c->function.p)
        jw_kv_bool(&w, "command", true);
    jw_kv_int(&w, "resultMax", (int64_t)c->limits.result_max);
    if (!compiled) {
        /* in the working directory, wherever a jail puts that; wrappers make it whole */
        jw_kv_string(&w, "file", call_lang(c->lang)->file);
        if (p->place_path[0])
            jw_kv_string(&w, "place", lang_call_place(c->lang, c->wasm));
        jw_kv_bytes(&w, "code", r->code.p, r->code.n);
    }
    if (c->stays) {
        jw_kv_string(&w, "token", c->token);
        jw_object_end(&w);
        return p->event.failed ? no_memory(e) : 0;
    }
    if (c->body)
        jw_kv_bool(&w, "body", true);
    if (c->stream)
        jw_kv_bool(&w, "stream", true);
    if (!c->function.p)
        jw_kv_bool(&w, "detect", true);
    if (c->options_at >= 0)
        jw_kv_int(&w, "optionsAt", c->options_at);
    if (c->mode == CALL_MODE_FILE)
        put_request(&w, c);
    else if (c->mode == CALL_MODE_INLINE)
        put_inline(c, &w);
    jw_object_end(&w);
    return p->event.failed ? no_memory(e) : 0;
}

/* The payload for stdin and file. */
static int payload_build(struct call_plan *p, const struct lang_call *c, size_t args_n,
                         struct err *e)
{
    struct sip_call call = {.function = c->function, .file = p->file_path, .args = c->args};

    p->request =
        BUF_INIT(args_n + EVENT_OVERHEAD + ESCAPE_FACTOR * c->function.n + 12 * c->args->n);
    (void)buf_reserve(&p->request, args_n + 1024);
    sip_payload(&call, &p->request);
    if (c->mode == CALL_MODE_STDIN) {
        p->input = BUF_INIT(p->request.n + SIP_HEAD);
        if (sip_packet(SIP_ATOMIC, p->request.p, p->request.n, &p->input) < 0)
            return no_memory(e);
        buf_done(&p->request);
    }
    return p->request.failed ? no_memory(e) : 0;
}

/* ---- files ---- */

static int files_build(struct call_plan *p, const struct lang_call *c, struct err *e)
{
    const struct call_request *r = c->request;
    size_t n = 0;

    p->files = calloc(r->attached.n + p->job->plan.files_n + c->made_n +
                          (c->rights ? c->rights->dirs_n : 0) + 3,
                      sizeof *p->files);
    if (!p->files)
        return no_memory(e);
    for (size_t i = 0; i < p->job->plan.files_n; i++)
        p->files[n++] = p->job->plan.files[i];
    for (size_t i = 0; i < c->made_n && !c->lazy; i++)
        p->files[n++] = (struct plan_file){.path = c->made[i], .mode = 0755};
    for (size_t i = 0; i < r->attached.n; i++) {
        unsigned rights = c->rights ? c->rights->files[i] : 0;

        if (!r->attached.files[i].host)
            p->files[n++] =
                (struct plan_file){r->attached.files[i].path, r->attached.files[i].content,
                                   c->rights && !rights ? 0444 : 0644, rights};
        else if (rights) /* lent: it is there, with its mode */
            p->files[n++] = (struct plan_file){.path = r->attached.files[i].path,
                                               .rights = rights | PLAN_THERE};
    }
    if (c->mode == CALL_MODE_FILE)
        p->files[n++] = (struct plan_file){
            .path = p->request_path, .content = {p->request.p, p->request.n},
                 .mode = 0600
        };
    if (c->program.p)
        p->files[n++] = (struct plan_file){p->program_path, c->program, 0700, 0};
    if (p->place_path[0])
        p->files[n++] =
            (struct plan_file){.path = p->place_path, .mode = 0644, .rights = PLAN_MODIFY};
    for (size_t i = 0; c->rights && i < c->rights->dirs_n; i++)
        p->files[n++] = rights_dir(c->rights, i);
    p->plan.fenced = c->rights != NULL;
    p->plan.files = p->files;
    p->plan.files_n = n;
    return 0;
}

/* ---- all together ---- */

static size_t args_bytes(const struct call_args *a)
{
    size_t n = 4;

    for (size_t i = 0; i < a->n; i++)
        n += a->at[i].n + 5;
    for (size_t i = 0; i < a->names_n; i++)
        n += a->names[i].key.n + a->names[i].value.n + 2;
    return n;
}

static int build(struct call_plan *p, const struct lang_call *c, struct err *e)
{
    const struct call_request *r = c->request;
    const struct call_lang *l = call_lang(c->lang);
    size_t args_n = args_bytes(c->args);
    struct exec_spec s = {
        .execution_id = c->id,
        .language = l->flags & CALL_HANDLED ? l->name : "shell",
        .vars = r->vars,
        .vars_n = r->vars_n,
        .limits = c->limits,
        .dependencies = c->packages ? PLAN_DEPENDENCIES : NULL,
        .node_modules = c->packages ? PLAN_DEPENDENCIES "/node_modules" : NULL,
        .no_event_vars = true,
        .cold = c->rights != NULL, /* threads of a warmed interpreter would be outside the fence */
    };

    (void)snprintf(p->file_path, sizeof p->file_path, "%s/%s",
                   strcmp(r->workdir, "/") == 0 ? "" : r->workdir, l->file);
    if (c->rights && lang_call_place(c->lang, c->wasm))
        (void)snprintf(p->place_path, sizeof p->place_path, "%s/%s", r->workdir,
                       lang_call_place(c->lang, c->wasm));
    /* The wrapper removes it, which a fenced working directory may not allow. */
    (void)snprintf(p->request_path, sizeof p->request_path, "%s/" REQUEST_NAME,
                   c->rights                      ? "/tmp"
                   : strcmp(r->workdir, "/") == 0 ? ""
                                                  : r->workdir);
    if (c->mode != CALL_MODE_INLINE && payload_build(p, c, args_n, e) < 0)
        return -1;
    if (event_build(p, c, args_n, e) < 0)
        return -1;
    s.event = (struct bytes){p->event.p, p->event.n};
    if (l->flags & CALL_HANDLED && !(c->wasm && c->lang == CALL_JAVASCRIPT))
        s.code.p = wrap_call_find(l->name, &s.code.n);
    if (job_build(&s, c, p, e) < 0)
        return -1;
    buf_done(&p->event); /* the frames have it */
    p->plan = p->job->plan;
    p->plan.cwd = r->workdir;
    p->plan.input = (struct bytes){p->input.p, p->input.n};
    if (r->input.p)
        p->plan.input = r->input;
    p->plan.scan_all = !c->stays;
    p->plan.dirs = c->dirs;
    p->plan.lazy = c->lazy;
    p->plan.dependencies = c->packages;
    return files_build(p, c, e);
}

void lang_call_free(struct plan *plan)
{
    struct call_plan *p = (struct call_plan *)plan;

    if (!p)
        return;
    lang_job_free(p->job);
    free(p->files);
    buf_done(&p->event);
    buf_done(&p->input);
    buf_done(&p->request);
    free(p);
}

int lang_call_plan(const struct lang_call *c, struct plan **ret, struct err *e)
{
    struct call_plan *p;

    if (c->mode == CALL_MODE_INLINE && args_bytes(c->args) > CALL_INLINE_MAX)
        return err_set(e, ERR_CALLER,
                       "argsMode inline takes at most %d bytes of arguments: use stdin or file",
                       CALL_INLINE_MAX);
    p = calloc(1, sizeof *p);
    if (!p)
        return no_memory(e);
    if (build(p, c, e) < 0) {
        lang_call_free(&p->plan);
        return -1;
    }
    *ret = &p->plan;
    return 0;
}
