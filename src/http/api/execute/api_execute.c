/* SPDX-License-Identifier: MIT */
/*
 * POST /execute: check the body, hand it to the app, answer when it is done, or at once when the
 * caller does not want to wait (a control plane, or Prefer: respond-async).
 *
 * Bodies beyond PARSE_INLINE are parsed on a worker; the call may vanish meanwhile.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "app/execution/webhook_member.h"
#include "base/clock.h"
#include "base/jw.h"
#include "base/sha256.h"
#include "core/languages.h"
#include "core/port_net.h"
#include "http/api/api.h"
#include "http/api/execute/execution_json.h"
#include "http/api/execute/execution_reply.h"
#include "http/api/execute/execution_stream.h"
#include "http/api/packages/packages.h"
#include "http/api/problem.h"
#include "http/server/reply.h"

/* Speaks for itself: the words are those of the original executor. */
#define TOO_LARGE "code_too_large"

enum {
    PARSE_INLINE = 1 << 20, /* larger bodies do not block the loop */
    SMALL_JSON_MAX = 1024,
    LOCATION_MAX = 32 + EXECUTION_ID_MAX,
    CODE_MAX_DEFAULT = 1 << 20,
    MS_PER_S = 1000,
    MEMORY_MIN_MB = 16,
    FILES_MAX = 1000, /* of one request */
    FILE_PATH_MAX = 1024,
    FILE_NAME_MAX = 255, /* the kernel's */
};
#define SECONDS_MIN 0.05

/* ---- the body ---- */

bool api_id_is_valid(const char *id, size_t n)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    return n >= 1 && n <= EXECUTION_ID_MAX && id[0] != '.' && strspn(id, allowed) == n;
}

static void check_id(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (!api_id_is_valid(b->p, b->n))
        shape_complain(s, f->name, NULL, "string_pattern_mismatch",
                       "String should match pattern '^(?!\\.)[A-Za-z0-9._-]{1,%d}$'",
                       EXECUTION_ID_MAX);
}

static void check_session(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (b->n > SESSION_ID_MAX || strlen(b->p) != b->n)
        shape_complain(s, f->name, NULL, "string_too_long",
                       "String should have at most %d characters and no NUL", SESSION_ID_MAX);
}

static void check_language(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;
    const struct bytes *b = value;
    char names[128] = "", others[128] = "";
    size_t n = 0, k = 0;

    if (strlen(b->p) == b->n && a->languages.ops->find(b->p) >= 0)
        return;
    for (size_t i = 0; a->languages.names[i] && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? "|" : "",
                              a->languages.names[i]);
    for (size_t i = 0; call_lang(i) && k < sizeof others; i++)
        k += (size_t)snprintf(others + k, sizeof others - k, "%s%s", i ? ", " : "",
                              call_lang(i)->name);
    shape_complain(s, f->name, NULL, "string_pattern_mismatch",
                   "String should match pattern '^(%s)$'; POST /v1/functions/call takes %s", names,
                   others);
}

static void check_code(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;
    const struct bytes *b = value;

    if (memchr(b->p, '\0', b->n)) /* no program of any language here may hold one as it is */
        shape_complain(s, f->name, NULL, "value_error", "Code should not contain NUL");
    if (b->n <= a->config.code_max)
        return;
    if (a->config.code_max == CODE_MAX_DEFAULT)
        shape_complain(s, f->name, NULL, TOO_LARGE, "Code size exceeds 1MB limit");
    else
        shape_complain(s, f->name, NULL, TOO_LARGE, "Code size exceeds %zu bytes limit",
                       (size_t)a->config.code_max);
}

static bool is_wasm(const struct bytes *b)
{
    return b->n == 4 && memcmp(b->p, "wasm", 4) == 0;
}

/* Refused with the reason; never another jail instead. */
static void check_isolation(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;
    struct place ignored;
    struct err e;

    if (is_wasm(b))
        return; /* whether it is there is asked where it is needed */
    if (strlen(b->p) != b->n || place_find(s->user, b->p, &ignored, &e) < 0)
        shape_complain(s, f->name, NULL, "value_error", "%s",
                       strlen(b->p) != b->n ? "String should not contain NUL" : e.text);
}

static bool is_science(const struct bytes *b)
{
    static const char name[] = "python-datascience";

    return b->n == sizeof name - 1 && memcmp(b->p, name, b->n) == 0;
}

static void check_template(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct bytes *b = value;

    if (!is_science(b) && !(b->n == 6 && memcmp(b->p, "python", 6) == 0))
        shape_complain(s, f->name, NULL, "value_error",
                       "Input should be 'python' or 'python-datascience'");
}

static void check_seconds(struct shaping *s, const char *field, double value, size_t most)
{
    if (value < SECONDS_MIN)
        shape_complain(s, field, NULL, "greater_than_equal",
                       "Input should be greater than or equal to %g", SECONDS_MIN);
    else if (value > (double)most)
        shape_complain(s, field, NULL, "less_than_equal",
                       "Input should be less than or equal to %zu", most);
}

static void check_timeout(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;

    check_seconds(s, f->name, *(const double *)value, a->config.timeout_max_s);
}

/* ---- limits: what the operator allows, or less ---- */

static void check_cpu(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct config *c = &((const struct app *)s->user)->config;

    check_seconds(s, f->name, *(const double *)value, c->cpu_s ? c->cpu_s : c->timeout_max_s);
}

static void check_most(struct shaping *s, const char *field, int64_t value, uint64_t most,
                       const char *option)
{
    if ((uint64_t)value > most)
        shape_complain(s, field, NULL, "less_than_equal",
                       "Input should be less than or equal to %zu, this server's %s", (size_t)most,
                       option);
}

static void check_memory(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;

    check_most(s, f->name, *(const int64_t *)value, a->config.memory_mb, "MAX_MEMORY_MB");
}

static void check_processes(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;

    check_most(s, f->name, *(const int64_t *)value, a->config.pids_max, "PIDS_MAX");
}

static void check_output(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct app *a = s->user;

    check_most(s, f->name, *(const int64_t *)value, a->config.output_max, "OUTPUT_MAX");
}

#define AT(member) offsetof(struct execute_limits, member)
/* clang-format off */
static const struct shape_field limits_fields[] = {
    {"memory_mb", SHAPE_INT, 0, AT(memory_mb), MEMORY_MIN_MB, 0, check_memory,
     "memory in MiB, files of the workspace included"},
    {"cpu_seconds", SHAPE_NUMBER, 0, AT(cpu_s), 0, 0, check_cpu, "CPU time of everything inside, from 0.05"},
    {"processes", SHAPE_INT, 0, AT(processes), 1, 0, check_processes, "processes and threads"},
    {"output_bytes", SHAPE_INT, 0, AT(output_bytes), 1, 0, check_output,
     "bytes kept of each of stdout and stderr"},
};
/* clang-format on */
#undef AT
static const struct shape limits_shape = {limits_fields, ARRAY_LEN(limits_fields),
                                          .name = "ExecuteLimits"};

/* ---- files ---- */

/* "a/b.txt" for itself and for "/workspace/a/b.txt"; NULL when it is not such a path. */
static const char *file_path(struct bytes name)
{
    static const char top[] = "/workspace/";
    const char *p = name.p;

    if (strlen(p) != name.n || name.n > FILE_PATH_MAX)
        return NULL;
    if (strncmp(p, top, sizeof top - 1) == 0)
        p += sizeof top - 1;
    for (const char *at = p;; at++) {
        size_t n = strcspn(at, "/");

        if (n == 0 || n > FILE_NAME_MAX || (n == 1 && at[0] == '.') ||
            (n == 2 && at[0] == '.' && at[1] == '.'))
            return NULL;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
                return NULL;
        at += n;
        if (!*at)
            return p;
    }
}

static int by_path(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;

    return strcmp(*a, *b);
}

static void check_files(struct shaping *s, const struct shape_field *f, const void *value)
{
    const struct shape_strings *all = value;
    cleanup_free const char **paths = calloc(all->n + 1, sizeof *paths);
    size_t n = 0;

    for (size_t i = 0; paths && i < all->n; i++) {
        const char *path = file_path(all->v[i].name);

        if (path)
            paths[n++] = path;
        else
            shape_complain(s, f->name, all->v[i].name.p, "value_error",
                           "Paths should lie below /workspace, without '.', '..', empty names and "
                           "control characters");
    }
    if (n > 1)
        qsort(paths, n, sizeof *paths, by_path);
    for (size_t i = 1; i < n; i++)
        if (strcmp(paths[i - 1], paths[i]) == 0)
            shape_complain(s, f->name, paths[i], "value_error", "Paths should not be repeated");
}

/* What the app is given; NULL with files_n == 0: no memory. */
static struct exec_file *files_take(const struct shape_strings *all)
{
    struct exec_file *files = calloc(all->n + 1, sizeof *files);

    for (size_t i = 0; files && i < all->n; i++) {
        const char *path = file_path(all->v[i].name);

        files[i].path = (struct bytes){path, strlen(path)};
        files[i].content = all->v[i].value;
        sha256_hex(files[i].content.p, files[i].content.n, files[i].sha256);
    }
    return files;
}

/* ---- modes ---- */

/* In the order of enum exec_mode; absent: EXEC_EITHER. */
static const char *const modes[] = {[EXEC_HANDLER] = "handler", [EXEC_SCRIPT] = "script"};

static enum exec_mode mode_named(const struct bytes *b)
{
    for (size_t i = EXEC_HANDLER; i < ARRAY_LEN(modes); i++)
        if (b->p && b->n == strlen(modes[i]) && memcmp(b->p, modes[i], b->n) == 0)
            return (enum exec_mode)i;
    return EXEC_EITHER;
}

static void check_mode(struct shaping *s, const struct shape_field *f, const void *value)
{
    if (mode_named(value) == EXEC_EITHER)
        shape_complain(s, f->name, NULL, "value_error", "Input should be 'handler' or 'script'");
}

static void check_webhook(struct shaping *s, const struct shape_field *f, const void *value)
{
    struct err e;

    if (webhook_check(s->user, *(const struct json_value *)value, &e) < 0)
        shape_complain(s, f->name, NULL, "value_error", "%s", e.text);
}

#define AT(member) offsetof(struct execute_body, member)

/* clang-format off */
static const struct shape_field fields[] = {
    {"execution_id", SHAPE_STRING, SHAPE_NULLABLE, AT(execution_id), 0, 0, check_id,
     "name of the execution; made when absent: [A-Za-z0-9._-]{1,128}, not starting with a dot"},
    {"session_id", SHAPE_STRING, SHAPE_NULLABLE, AT(session_id), 0, 0, check_session,
     "executions of one session share a kept workspace; the answer is PENDING at once"},
    {"code", SHAPE_STRING, SHAPE_REQUIRED, AT(code), 0, 0, check_code,
     "source text, at most CODE_MAX bytes"},
    {"language", SHAPE_STRING, SHAPE_REQUIRED, AT(language), 0, 0, check_language,
     "python, javascript or shell"},
    {"files", SHAPE_FILES, 0, AT(files), 0, FILES_MAX, check_files,
     "files in /workspace when the program starts, by path: a text, or {\"base64\": ...}"},
    {"limits", SHAPE_NESTED, 0, AT(limits), .inner = &limits_shape,
     .help = "less than the operator's limits for this execution"},
    {"timeout", SHAPE_NUMBER, 0, AT(timeout_s), 0, 0, check_timeout,
     "wall time in seconds, from 0.05; default DEFAULT_TIMEOUT, or DEFAULT_TIMEOUT_SESSION with session_id"},
    {"mode", SHAPE_STRING, SHAPE_NULLABLE, AT(mode), 0, 0, check_mode,
     "handler: the program must define handler(event), which is called; script: it is not called. Absent: "
     "it is called if it is defined, and Python with 'event' or 'session_id' must define it"},
    {"event", SHAPE_RAW, 0, AT(event), 0, 0, NULL,
     "handed to the handler as it is", .accepts = BIT(JSON_OBJECT)},
    {"stdin", SHAPE_STRING, SHAPE_NULLABLE, AT(input), 0, 0, NULL,
     "standard input; without 'event', a JSON object in it is also the event"},
    {"env_vars", SHAPE_STRINGS, 0, AT(vars), 0, 0, NULL,
     "environment variables: an object of strings"},
    {"packages", SHAPE_RAW, SHAPE_NULLABLE, AT(packages), .accepts = BIT(JSON_OBJECT) | BIT(JSON_STRING),
     .schema = PACKAGES_SCHEMA, .help = "name of a set of packages, or its lists; in place of those of the session"},
    {"network", SHAPE_RAW, SHAPE_NULLABLE, AT(network), .accepts = BIT(JSON_OBJECT) | BIT(JSON_STRING),
     .inner = &network_shape, .schema = NETWORK_SCHEMA, .help = NETWORK_HELP},
    {"webhook", SHAPE_RAW, SHAPE_NULLABLE, AT(webhook), 0, 0, check_webhook, WEBHOOK_HELP,
     .accepts = BIT(JSON_OBJECT) | BIT(JSON_STRING), .schema = WEBHOOK_SCHEMA},
    {"template", SHAPE_STRING, SHAPE_NULLABLE, AT(template), 0, 0, check_template,
     "which warmed Python: python, or python-datascience with numpy, pandas and matplotlib loaded"},
    {"isolation", SHAPE_STRING, SHAPE_NULLABLE, AT(isolation), 0, 0, check_isolation,
     "name of a jail that ISOLATION allows, default the first of them; or wasm: python and javascript "
     "as WebAssembly inside it"},
};
/* clang-format on */
const struct shape execute_shape = {fields, ARRAY_LEN(fields), .name = "ExecuteRequest"};

/* ---- answers ---- */

static void reply_issues(struct http_call *c, const struct shaping *s)
{
    if (s->issues && strcmp(s->issues->type, TOO_LARGE) == 0)
        problem_issues_as(c, s, s->issues->msg);
    else
        problem_issues(c, s);
}

static void reply_conflict(struct http_call *c, const char *id)
{
    char words[EXECUTION_ID_MAX + 64];

    (void)snprintf(words, sizeof words, "execution '%s' was asked for with another body", id);
    reply_problem(c, &(struct reply_problem){
                         .status = 409,
                         .code = "Executor.Conflict",
                         .description = "An execution of this id is known",
                         .error_detail = words,
                         .solution = "Use another execution_id, or none.",
                     });
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY) {
        api_retry_after(c);
        api_reply_full(c, e, API_RETRY_AFTER);
    } else {
        http_reply_error(c, e);
    }
}

static void reply_pending(struct http_call *c, const struct execution *x)
{
    struct buf body = BUF_INIT(SMALL_JSON_MAX);
    struct jw w = JW(&body);
    char location[LOCATION_MAX];

    (void)snprintf(location, sizeof location, "/v1/executions/%s", x->id);
    http_set_header(c, "Location", location);
    jw_object(&w);
    jw_kv_string(&w, "execution_id", x->id);
    jw_kv_string(&w, "status", "PENDING");
    jw_kv_string(&w, "message", "Execution submitted");
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

/* ---- waiting ---- */

/* A call that waits for an execution, or follows it as a stream of events. */
struct waiting {
    struct execution_waiter waiter;
    struct http_call *c;             /* the server's */
    struct execution *x;             /* the app's */
    struct execution_stream *stream; /* owned until it begins; NULL: one answer at the end */
};

static void reply_result(struct http_call *c, struct execution *x)
{
    char timing[SERVER_TIMING_MAX];

    execution_server_timing(x, timing);
    http_set_header(c, "Server-Timing", timing);
    api_reply_execution(c, x, execution_result_json);
}

static void on_done(void *user, struct execution *x)
{
    struct waiting *w = user;

    reply_result(w->c, x);
    free(w);
}

static void on_gone(void *user)
{
    struct waiting *w = user;

    execution_leave(w->x, &w->waiter);
    free(w);
}

static void waiting_free(struct waiting *w)
{
    if (w)
        execution_stream_free(w->stream);
    free(w);
}

static struct waiting *waiting_new(struct http_call *c)
{
    struct waiting *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    *w = (struct waiting){
        .waiter = {.done = on_done, .user = w},
          .c = c
    };
    if (execution_stream_wanted(c)) {
        w->stream = execution_stream_new(c);
        if (!w->stream) {
            free(w);
            return NULL;
        }
    }
    return w;
}

static struct execution_waiter *waiter_of(struct waiting *w)
{
    if (!w)
        return NULL;
    return w->stream ? execution_stream_waiter(w->stream) : &w->waiter;
}

/* ---- the request ---- */

/* When, and in which words: those matter only if they can be said again. */
struct asked {
    uint64_t at_us;
    unsigned char digest[SHA256_BYTES];
    struct exec_file *files; /* owned; NULL: none */
};

static void asked_done(struct asked *a)
{
    free(a->files);
}

static int details_take(struct asked *a, const struct execute_body *b, const char *text, size_t n)
{
    cleanup_with(sha256_freep) struct sha256 *h = NULL;

    if (b->files.n > 0) {
        a->files = files_take(&b->files);
        if (!a->files)
            return -1;
    }
    if (!b->execution_id.p)
        return 0;
    h = sha256_new();
    if (!h)
        return -1;
    sha256_add(h, text, n);
    sha256_end(h, a->digest);
    return 0;
}

/* Prefer: respond-async or wait decide; else a request with a session does not wait, unless it
 * wants events. */
static bool wants_wait(struct http_call *c, bool has_session)
{
    const char *p = http_header(c, "Prefer");
    bool wait = !has_session || execution_stream_wanted(c);

    while (p && *p) {
        size_t n;

        p += strspn(p, " \t,");
        n = strcspn(p, ", \t;=");
        if (n == 13 && strncasecmp(p, "respond-async", n) == 0)
            return false;
        if (n == 4 && strncasecmp(p, "wait", n) == 0)
            wait = true;
        p += strcspn(p, ",");
    }
    return wait;
}

static uint64_t wall_ms(const struct app *a, const struct execute_body *b)
{
    uint64_t usual = b->session_id.p ? a->config.timeout_session_s : a->config.timeout_s;

    if (b->timeout_s > 0)
        return (uint64_t)(b->timeout_s * MS_PER_S);
    return (usual < a->config.timeout_max_s ? usual : a->config.timeout_max_s) * MS_PER_S;
}

/* A sandbox with less memory or fewer processes than prepared ones have is made for it, from the
 * same warmed interpreter. */
static struct limits limits_of(const struct app *a, const struct execute_body *b)
{
    struct limits l = app_limits(a, wall_ms(a, b));

    if (b->limits.memory_mb > 0)
        l.memory_max = (uint64_t)b->limits.memory_mb << 20;
    if (b->limits.processes > 0)
        l.pids_max = (uint32_t)b->limits.processes;
    if (b->limits.output_bytes > 0)
        l.output_max = (uint64_t)b->limits.output_bytes;
    if (b->limits.cpu_s > 0)
        l.cpu_ms = (uint64_t)(b->limits.cpu_s * MS_PER_S);
    return l;
}

/* The answer to an execution that has been accepted. Takes the waiting one, if there is one. */
static void answer(struct http_call *c, struct execution *x, struct waiting *w)
{
    if (!w) {
        reply_pending(c, x);
        return;
    }
    if (w->stream) {
        execution_stream_begin(take_ptr(&w->stream), x, !execution_is_done(x));
        waiting_free(w);
        return;
    }
    w->x = x;
    http_on_gone(c, on_gone, w);
}

/* Asked for before, in the same words: it does not run twice. */
static void answer_again(struct http_call *c, struct execution *x, struct waiting *w)
{
    if (!execution_is_done(x)) {
        execution_join(x, waiter_of(w));
        answer(c, x, w);
        return;
    }
    if (w && w->stream) {
        answer(c, x, w);
        return;
    }
    if (w)
        reply_result(c, x);
    else
        reply_pending(c, x);
    waiting_free(w);
}

static int take_network(const struct app *a, const struct execute_body *b, struct net_wish *ret,
                        struct err *e)
{
    if (net_decode(&a->config, b->network, ret, e) < 0)
        return -1;
    return ret->mode == NET_HOST
               ? err_set(e, ERR_DENIED, "network.mode: 'host' is for persistent sandboxes")
               : 0;
}

static int execute_in(struct app *a, struct exec_order *o, struct net_wish *network,
                      struct execution **ret, struct err *e)
{
    o->network = network->policy;
    if (app_execute(a, o, ret, e) < 0)
        return -1;
    network->policy = NULL; /* taken */
    return 0;
}

static void submit(struct http_call *c, const struct execute_body *b, const struct asked *asked)
{
    struct app *a = http_app(c);
    bool wait = wants_wait(c, b->session_id.p != NULL);
    struct waiting *w = wait ? waiting_new(c) : NULL;
    struct exec_spec spec = {
        .execution_id = b->execution_id.p ? b->execution_id.p : "",
        .language = b->language.p,
        .mode = mode_named(&b->mode),
        .code = b->code,
        .event = {b->event.p, b->event.n},
        .input = b->input,
        .vars = b->vars.v,
        .vars_n = b->vars.n,
        .files = asked->files,
        .files_n = b->files.n,
        .limits = limits_of(a, b),
        .wasm = is_wasm(&b->isolation),
        .science = is_science(&b->template),
    };
    struct exec_order order = {.spec = &spec,
                               .session_id = b->session_id.p ? b->session_id.p : "",
                               .isolation = is_wasm(&b->isolation) ? "" : b->isolation.p,
                               .request_id = http_request(c)->id,
                               .asked_us = asked->at_us,
                               .digest = b->execution_id.p ? asked->digest : NULL,
                               .waiter = waiter_of(w),
                               .write = execution_result_body};
    struct execution *x = b->execution_id.p ? app_find(a, b->execution_id.p) : NULL;
    cleanup_with(net_wish_done) struct net_wish network = {.mode = NET_NONE};
    struct err e;

    if (wait && !w) {
        reply_status(c, 503);
    } else if (!x && take_network(a, b, &network, &e) < 0) {
        waiting_free(w);
        reply_refused(c, &e);
    } else if (!x && packages_take(c, b->packages, api_execute, &order.packages) != PACKAGES_GO) {
        waiting_free(w); /* answered, or asked again when they are there */
    } else if (x && execution_is_same(x, asked->digest)) {
        answer_again(c, x, w);
    } else if (x) {
        waiting_free(w);
        reply_conflict(c, b->execution_id.p);
    } else if (webhook_take(a, b->webhook, &order.webhook, &e) < 0 ||
               execute_in(a, &order, &network, &x, &e) < 0) {
        waiting_free(w);
        package_set_release(order.packages);
        webhook_drop(order.webhook);
        reply_refused(c, &e);
    } else {
        answer(c, x, w);
    }
}

/* A large body on its way through a worker. */
struct parsing {
    struct work work;    /* first */
    struct http_call *c; /* NULL: gone */
    struct buf text;
    struct asked asked;
    bool digested;
    struct execute_body body;
    struct shaping shaping;
};

static void parsing_gone(void *user)
{
    struct parsing *p = user;

    p->c = NULL;
    work_forget(&p->work);
}

static void parsing_run(struct work *w)
{
    struct parsing *p = (struct parsing *)w;

    if (shape_parse(&execute_shape, p->text.p, p->text.n, &p->body, &p->shaping) < 0)
        return; /* the issues tell */
    p->digested = details_take(&p->asked, &p->body, p->text.p, p->text.n) == 0;
}

static void parsing_done(struct work *w)
{
    struct parsing *p = (struct parsing *)w;

    if (p->c) {
        http_on_gone(p->c, NULL, NULL);
        if (p->shaping.issues_n > 0)
            reply_issues(p->c, &p->shaping);
        else if (!p->digested)
            reply_status(p->c, 503);
        else
            submit(p->c, &p->body, &p->asked);
    }
    shaping_done(&p->shaping);
    asked_done(&p->asked);
    buf_done(&p->text);
    free(p);
}

static void parse_beside(struct http_call *c, uint64_t asked_us)
{
    const struct http_request *r = http_request(c);
    struct parsing *p = calloc(1, sizeof *p);

    if (!p) {
        reply_status(c, 503);
        return;
    }
    p->work = (struct work){.run = parsing_run, .done = parsing_done};
    p->c = c;
    p->asked.at_us = asked_us;
    p->text = BUF_INIT(r->body_n + 1);
    shaping_init(&p->shaping, http_app(c));
    if (buf_put(&p->text, r->body, r->body_n) < 0) {
        free(p);
        reply_status(c, 503);
        return;
    }
    http_on_gone(c, parsing_gone, p);
    work_submit(http_app(c)->work, &p->work);
}

static void parse_here(struct http_call *c, uint64_t asked_us)
{
    const struct http_request *r = http_request(c);
    cleanup_with(shaping_done) struct shaping s;
    cleanup_with(asked_done) struct asked asked = {.at_us = asked_us};
    struct execute_body body = {0};

    shaping_init(&s, http_app(c));
    if (shape_parse(&execute_shape, r->body, r->body_n, &body, &s) < 0)
        reply_issues(c, &s);
    else if (details_take(&asked, &body, r->body, r->body_n) < 0)
        reply_status(c, 503);
    else
        submit(c, &body, &asked);
}

/* Absent, application/json, or application/something+json; parameters do not matter. */
static bool is_json(const char *type)
{
    size_t n = type ? strcspn(type, "; \t") : 0;

    if (!type || n == 0)
        return true;
    if (n == strlen(API_JSON) && strncasecmp(type, API_JSON, n) == 0)
        return true;
    return n > 17 && strncasecmp(type, "application/", 12) == 0 &&
           strncasecmp(type + n - 5, "+json", 5) == 0;
}

void api_execute(struct http_call *c)
{
    uint64_t now = clock_us();
    struct shaping s;

    if (!is_json(http_header(c, "Content-Type"))) {
        shaping_init(&s, NULL);
        shape_complain(&s, NULL, NULL, "model_attributes_type",
                       "Input should be JSON: send Content-Type: application/json");
        reply_issues(c, &s);
        shaping_done(&s);
    } else if (http_request(c)->body_n > PARSE_INLINE) {
        parse_beside(c, now);
    } else {
        parse_here(c, now);
    }
}
