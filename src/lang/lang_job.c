/* SPDX-License-Identifier: MIT */
/*
 * The event. A request may carry `event`, `stdin`, both or neither. Standard
 * input is always given as it is. The event is `event` unless that is absent or
 * an empty object; then an object in standard input is the event as well; else
 * there is none and a handler sees {}.
 *
 * Programs without a handler find it in the environment: EVENT_JSON, or, when
 * it is too long for one variable, in the file that EVENT_FILE names.
 */
#include "lang/lang_job.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/jw.h"
#include "core/frame.h"
#include "core/port_run.h"

enum {
    CONTEXT_MAX = 8192,
    PATH_BYTES_MAX = 192,
    FRAME_COUNT = 5,
};

static const struct {
    const char *name, *value, *unless;
} fixed_vars[] = {
#define VARIABLE(name, value, unless) {name, value, unless},
#include "core/variables.def"
#undef VARIABLE
};

static int no_memory(struct err *e)
{
    return err_set(e, ERR_HOST, "out of memory");
}

static struct bytes view(const struct buf *b)
{
    return (struct bytes){.p = b->p, .n = b->n};
}

static struct bytes view_string(const char *s)
{
    return (struct bytes){.p = s, .n = strlen(s)};
}

/* Copies, NUL-terminated. An empty source gives an empty copy, never NULL. */
static int copy(struct buf *to, struct bytes from, struct err *e)
{
    *to = BUF_INIT(from.n);
    return buf_put(to, from.p, from.n) < 0 ? no_memory(e) : 0;
}

/* Takes the path; NULL when memory ran out. */
static const char *file_put(struct lang_job *j, struct buf *path, uint32_t mode,
                            struct bytes content)
{
    struct buf bytes = BUF_INIT(content.n);
    struct plan_file *f;

    (void)buf_put(&bytes, content.p, content.n);
    if (path->failed || bytes.failed) {
        buf_done(path);
        buf_done(&bytes);
        return NULL;
    }
    f = &j->files[j->plan.files_n++];
    *f = (struct plan_file){.path = buf_take(path, NULL), .mode = mode};
    f->content.p = buf_take(&bytes, &f->content.n);
    return f->path;
}

/* ---- environment ---- */

/* Where a variable of that name is, or the end. */
static size_t env_find(const struct lang_job *j, struct bytes name)
{
    size_t i = 0;

    while (i < j->env_n && (strncmp(j->env[i], name.p, name.n) != 0 || j->env[i][name.n] != '='))
        i++;
    return i;
}

/* Later ones win: a request may override anything. Names are validated before. */
static int env_put(struct lang_job *j, struct bytes name, struct bytes value, struct err *e)
{
    size_t n = name.n + 1 + value.n, at = env_find(j, name);
    char *pair;

    if (name.n > LANG_STRING_MAX || value.n > LANG_STRING_MAX || n > LANG_STRING_MAX)
        return err_set(e, ERR_CALLER, "environment variable '%.*s' is longer than %d bytes",
                       name.n < 64 ? (int)name.n : 64, name.p, LANG_STRING_MAX);
    if (j->env_bytes + n > LANG_ENV_MAX)
        return err_set(e, ERR_CALLER, "environment variables are longer than %d bytes together",
                       LANG_ENV_MAX);
    pair = malloc(n + 1);
    if (!pair)
        return no_memory(e);
    memcpy(pair, name.p, name.n);
    pair[name.n] = '=';
    if (value.n > 0)
        memcpy(pair + name.n + 1, value.p, value.n);
    pair[n] = '\0';
    if (at == j->env_n)
        j->env_n++;
    else
        j->env_bytes -= strlen(j->env[at]);
    j->env_bytes += n;
    free(j->env[at]);
    j->env[at] = pair;
    return 0;
}

static int env_put_string(struct lang_job *j, const char *name, const char *value, struct err *e)
{
    return env_put(j, view_string(name), view_string(value), e);
}

static int env_put_event(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    static const char name[] = "EVENT_JSON";
    struct bytes event = j->event.n > 0 ? j->event : view_string("{}");
    const char *path;

    if (event.n <= LANG_STRING_MAX - sizeof name)
        return env_put(j, view_string(name), event, e);
    path = lang_job_file(j, s, "event", ".json", event);
    return path ? env_put_string(j, "EVENT_FILE", path, e) : no_memory(e);
}

static bool is_module_path(const struct exec_spec *s, struct bytes name)
{
    static const char path[] = "PYTHONPATH";

    return s->dependencies && name.n == sizeof path - 1 && memcmp(name.p, path, name.n) == 0;
}

/* What a request adds to the module path comes behind the dependencies. */
static int env_put_module_path(struct lang_job *j, const struct exec_spec *s, struct bytes value,
                               struct err *e)
{
    cleanup_with(buf_done) struct buf path = BUF_INIT(LANG_STRING_MAX);

    (void)buf_puts(&path, s->dependencies);
    if (value.n > 0) {
        (void)buf_putc(&path, ':');
        (void)buf_put(&path, value.p, value.n);
    }
    if (path.failed)
        return err_set(e, ERR_CALLER, "environment variable 'PYTHONPATH' is longer than %d bytes",
                       LANG_STRING_MAX);
    return env_put(j, view_string("PYTHONPATH"), view(&path), e);
}

static int env_put_request(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    for (size_t i = 0; i < s->vars_n; i++) {
        struct bytes name = s->vars[i].name, value = s->vars[i].value;

        if (!exec_var_is_name(name))
            return err_set(e, ERR_CALLER, "'%.*s' is not a name for an environment variable",
                           name.n < 64 ? (int)name.n : 64, name.n > 0 ? name.p : "");
        if (value.n > 0 && memchr(value.p, '\0', value.n))
            return err_set(e, ERR_CALLER, "environment variable '%.*s' contains a NUL byte",
                           name.n < 64 ? (int)name.n : 64, name.p);
        if (is_module_path(s, name) ? env_put_module_path(j, s, value, e) < 0
                                    : env_put(j, name, value, e) < 0)
            return -1;
    }
    return 0;
}

static bool is_asked_for(const struct exec_spec *s, const char *name)
{
    for (size_t i = 0; name && i < s->vars_n; i++)
        if (s->vars[i].name.n == strlen(name) && memcmp(s->vars[i].name.p, name, strlen(name)) == 0)
            return true;
    return false;
}

static int env_put_fixed(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed_vars); i++)
        if (!is_asked_for(s, fixed_vars[i].unless) &&
            env_put_string(j, fixed_vars[i].name, fixed_vars[i].value, e) < 0)
            return -1;
    return 0;
}

static int env_build(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    if (s->vars_n > LANG_VARS_MAX)
        return err_set(e, ERR_CALLER, "more than %d environment variables", LANG_VARS_MAX);
    j->env = calloc(LANG_FIXED_VARS + s->vars_n + 1, sizeof *j->env);
    if (!j->env)
        return no_memory(e);
    if (env_put_fixed(j, s, e) < 0)
        return -1;
    if (s->dependencies && env_put_string(j, "PYTHONPATH", s->dependencies, e) < 0)
        return -1;
    if (s->node_modules && !is_asked_for(s, "NODE_PATH") &&
        env_put_string(j, "NODE_PATH", s->node_modules, e) < 0)
        return -1;
    if (!s->no_event_vars && env_put_event(j, s, e) < 0)
        return -1;
    return env_put_request(j, s, e);
}

/* ---- event and input ---- */

static bool is_empty_object(struct bytes json)
{
    static const char blank[] = " \t\r\n";

    if (json.n < 2 || json.p[0] != '{' || json.p[json.n - 1] != '}')
        return false;
    for (size_t i = 1; i < json.n - 1; i++)
        if (!memchr(blank, json.p[i], sizeof blank - 1))
            return false;
    return true;
}

static struct bytes choose_event(const struct exec_spec *s)
{
    struct json_value v;
    struct err ignored;

    if (s->event.n > 0 && !is_empty_object(s->event))
        return s->event;
    if (s->input.n > 0 && json_parse(s->input.p, s->input.n, 0, &v, &ignored) == 0 &&
        v.type == JSON_OBJECT)
        return (struct bytes){.p = v.p, .n = v.n};
    return s->event;
}

static int copy_workspace(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    if (!s->workspace)
        return 0;
    j->workspace = strdup(s->workspace);
    j->plan.workspace = j->workspace;
    return j->workspace ? 0 : no_memory(e);
}

/* ---- life ---- */

static int copy_files(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    for (size_t i = 0; i < s->files_n; i++) {
        const struct exec_file *f = &s->files[i];
        struct buf path = BUF_INIT(sizeof "/workspace/" + f->path.n);

        (void)buf_printf(&path, "/workspace/%s", f->path.p);
        if (!file_put(j, &path, 0644, f->content))
            return no_memory(e);
    }
    return 0;
}

static int fill(struct lang_job *j, const struct exec_spec *s, struct err *e)
{
    j->plan.template = TEMPLATE_EXEC;
    j->plan.cwd = "/workspace";
    j->plan.limits = s->limits;
    j->event = choose_event(s);
    j->files = calloc(LANG_FILES_MAX + s->files_n, sizeof *j->files);
    if (!j->files)
        return no_memory(e);
    if (copy_files(j, s, e) < 0 || env_build(j, s, e) < 0 || copy_workspace(j, s, e) < 0 ||
        copy(&j->input, s->input, e) < 0)
        return -1;
    j->plan.argv = j->argv;
    j->plan.envp = (const char *const *)j->env;
    j->plan.files = j->files;
    j->plan.input = view(&j->input);
    return 0;
}

int lang_job_new(const struct exec_spec *s, struct lang_job **ret, struct err *e)
{
    struct lang_job *j = calloc(1, sizeof *j);

    if (!j)
        return no_memory(e);
    if (fill(j, s, e) < 0) {
        lang_job_free(j);
        return -1;
    }
    *ret = j;
    return 0;
}

void lang_job_free(struct lang_job *j)
{
    if (!j)
        return;
    for (size_t i = 0; i < j->env_n; i++)
        free(j->env[i]);
    free(j->env);
    for (size_t i = 0; i < j->plan.files_n; i++) {
        free((char *)j->files[i].path);
        free((char *)j->files[i].content.p);
    }
    free(j->files);
    buf_done(&j->code);
    buf_done(&j->input);
    buf_done(&j->frames);
    free(j->workspace);
    free(j);
}

/* ---- what languages add ---- */

void lang_job_arg(struct lang_job *j, const char *arg)
{
    assert(j->argc < LANG_ARGS_MAX);
    j->argv[j->argc++] = arg;
}

/* Packages of a session may make a warmed interpreter start anew (zygote_python.c). */
void lang_job_wrapper(struct lang_job *j, const char *text)
{
    static const char packages[] = "PYTHONPATH=";
    bool anew = false;

    for (size_t i = 0; i < j->env_n && !anew; i++)
        anew = strncmp(j->env[i], packages, sizeof packages - 1) == 0;
    lang_job_arg(j, text);
    j->plan.carried = anew ? NULL : text;
}

const char *lang_job_file(struct lang_job *j, const struct exec_spec *s, const char *stem,
                          const char *suffix, struct bytes content)
{
    struct buf path = BUF_INIT(PATH_BYTES_MAX);

    (void)buf_printf(&path, "/tmp/%s-%s%s", stem, s->execution_id, suffix);
    return file_put(j, &path, 0600, content);
}

/* Absent: EXEC_EITHER. */
static const char *const modes[] = {[EXEC_HANDLER] = "handler", [EXEC_SCRIPT] = "script"};

static int put_context(struct lang_job *j, const struct exec_spec *s, enum exec_mode mode)
{
    cleanup_with(buf_done) struct buf text = BUF_INIT(CONTEXT_MAX);
    struct jw w = JW(&text);

    jw_object(&w);
    jw_kv_string(&w, "execution_id", s->execution_id);
    jw_kv_string(&w, "function_name", s->function_name ? s->function_name : "handler");
    jw_kv_int(&w, "memory_limit_in_mb", (int64_t)(s->limits.memory_max >> 20));
    jw_kv_int(&w, "remaining_ms", (int64_t)s->limits.wall_ms);
    jw_kv_int(&w, "result_max", (int64_t)s->limits.result_max);
    if (mode != EXEC_EITHER)
        jw_kv_string(&w, "mode", modes[mode]);
    if (j->plan.compiles)
        jw_kv_int(&w, "compiled_max", RUN_COMPILED_MAX);
    jw_object_end(&w);
    return text.failed ? -1 : frame_put(&j->frames, FRAME_CONTEXT, text.p, text.n);
}

enum exec_mode lang_python_mode(const struct exec_spec *s)
{
    return s->mode == EXEC_EITHER && (s->event.p || s->workspace) ? EXEC_HANDLER : s->mode;
}

int lang_job_frames(struct lang_job *j, const struct exec_spec *s, enum exec_mode mode,
                    struct err *e)
{
    const struct bytes given = j->compiled;
    struct buf *b = &j->frames;

    *b = BUF_INIT(s->code.n + given.n + j->event.n + CONTEXT_MAX + FRAME_COUNT * FRAME_HEAD);
    if (buf_reserve(b, s->code.n + given.n + j->event.n + CONTEXT_MAX / 8) < 0 ||
        frame_put(b, FRAME_CODE, s->code.p, s->code.n) < 0 ||
        (given.n > 0 && frame_put(b, FRAME_COMPILED, given.p, given.n) < 0) ||
        (j->event.n > 0 && frame_put(b, FRAME_EVENT, j->event.p, j->event.n) < 0) ||
        put_context(j, s, mode) < 0 || frame_put(b, FRAME_GO, "", 0) < 0)
        return no_memory(e);
    j->plan.frames = view(b);
    return 0;
}

bool lang_needs_cold(const struct exec_spec *s, const char *const prefixes[], const char *except)
{
    for (size_t i = 0; i < s->vars_n; i++) {
        struct bytes name = s->vars[i].name;

        if (except && name.n == strlen(except) && memcmp(name.p, except, name.n) == 0)
            continue;
        for (size_t k = 0; prefixes[k]; k++)
            if (name.n >= strlen(prefixes[k]) &&
                memcmp(name.p, prefixes[k], strlen(prefixes[k])) == 0)
                return true;
    }
    return s->cold;
}
