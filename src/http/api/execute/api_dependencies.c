/* SPDX-License-Identifier: MIT */
/*
 * POST /internal/session-config/sync: the Python packages of a session. The caller always sends the
 * complete list, so "replace" and "merge" do the same. Answers look like those a control plane
 * knows: a problem is the member `detail`, and, as everywhere here, the body itself.
 */
#include <stdio.h>
#include <string.h>

#include "app/packages/dependencies.h"
#include "base/jw.h"
#include "http/api/api.h"
#include "http/server/reply.h"

/* Of the answer beside its texts: what one byte of a text and one package may become. */
enum { ANSWER_MAX = 64 * 1024, ESCAPE_FACTOR = 6, PACKAGE_JSON_MAX = 2048 };

struct sync_body {
    struct bytes session_id, runtime, index, mode;
    struct shape_strings specs;
};

#define AT(member) offsetof(struct sync_body, member)

/* clang-format off */
static const struct shape_field fields[] = {
    {"session_id", SHAPE_STRING, SHAPE_REQUIRED, AT(session_id), 0, 0, NULL,
     "whose packages they are; the same as in POST /execute"},
    {"language_runtime", SHAPE_STRING, SHAPE_REQUIRED, AT(runtime), 0, 0, NULL,
     "begins with 'python'"},
    {"python_package_index_url", SHAPE_STRING, SHAPE_REQUIRED, AT(index), 0, 0, NULL,
     "http or https; its host and DEPENDENCY_HOSTS are all that an installation can reach"},
    {"sync_mode", SHAPE_STRING, SHAPE_REQUIRED, AT(mode), 0, 0, NULL,
     "replace or merge: the same, since the list is complete"},
    {"dependencies", SHAPE_LIST, 0, AT(specs), 0, 0, NULL,
     "requirements (PEP 508); never options, paths or addresses that are not http(s)"},
};
/* clang-format on */
/* Open: the control planes that call it may be newer than this table. */
const struct shape dependencies_shape = {fields, ARRAY_LEN(fields), .flags = SHAPE_OPEN,
                                         .name = "DependencySyncRequest"};

/* ---- answers ---- */

struct problem {
    int status;
    const char *code, *description;
};

static const struct problem invalid = {400, "Executor.ValidationError", "Invalid value provided"};
static const struct problem denied = {403, "Executor.Forbidden", "The index is not allowed"};
static const struct problem busy = {503, "Executor.QueueFull",
                                    "The server cannot take more work now"};
static const struct problem not_installed = {422, "Executor.DependencyInstallError",
                                             "The dependencies could not be installed"};
static const struct problem failed = {500, "Executor.SessionConfigSyncError",
                                      "The session could not be changed"};
static const struct problem impossible = {501, "Executor.NotAvailable",
                                          "Dependencies cannot be installed here"};

static void put_problem(struct jw *w, const struct problem *p, struct bytes words)
{
    jw_kv_string(w, "error_code", p->code);
    jw_kv_string(w, "description", p->description);
    jw_kv_bytes(w, "error_detail", words.p ? words.p : "", words.n);
}

static void reply(struct http_call *c, const struct problem *p, struct bytes words)
{
    struct buf body = BUF_INIT(ANSWER_MAX + 2 * ESCAPE_FACTOR * words.n);
    struct jw w = JW(&body);

    jw_object(&w);
    put_problem(&w, p, words);
    jw_kv_string(&w, "solution", NULL);
    jw_kv_string(&w, "request_id", http_request(c)->id);
    jw_key(&w, "detail");
    jw_object(&w);
    put_problem(&w, p, words);
    jw_object_end(&w);
    jw_object_end(&w);
    http_reply_json(c, p->status, &body);
}

static void reply_words(struct http_call *c, const struct problem *p, const char *words)
{
    reply(c, p, (struct bytes){words, strlen(words)});
}

static void reply_synced(struct http_call *c, const struct dependency_answer *a)
{
    struct buf body = BUF_INIT(ANSWER_MAX + a->dists_n * PACKAGE_JSON_MAX);
    struct jw w = JW(&body);

    jw_object(&w);
    jw_kv_string(&w, "status", "completed");
    jw_key(&w, "installed_dependencies");
    jw_array(&w);
    for (size_t i = 0; i < a->dists_n; i++) {
        jw_object(&w);
        jw_kv_string(&w, "name", a->dists[i].name);
        jw_kv_string(&w, "version", a->dists[i].version);
        jw_kv_string(&w, "install_location", PLAN_DEPENDENCIES);
        jw_kv_string(&w, "install_time", a->completed_at);
        jw_kv_bool(&w, "is_from_template", false);
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_kv_string(&w, "error", "");
    jw_kv_string(&w, "started_at", a->started_at);
    jw_kv_string(&w, "completed_at", a->completed_at);
    jw_object_end(&w);
    http_reply_json(c, 200, &body);
}

static void on_done(void *user, const struct dependency_answer *a)
{
    if (a->status == DEPENDENCY_OK)
        reply_synced(user, a);
    else
        reply(user, a->status == DEPENDENCY_FAILED ? &failed : &not_installed, a->error);
}

static void reply_refused(struct http_call *c, const struct err *e)
{
    if (e->kind == ERR_BUSY)
        api_retry_after(c);
    reply_words(c,
                e->kind == ERR_CALLER          ? &invalid
                : e->kind == ERR_DENIED        ? &denied
                : e->kind == ERR_BUSY          ? &busy
                : !http_app(c)->packages.shelf ? &impossible
                                               : &failed,
                e->text);
}

/* As FastAPI says it: other endpoints here answer 400, but this one is only called by machines that
 * know it. */
static void reply_issues(struct http_call *c, const struct shaping *s)
{
    struct buf body = BUF_INIT(2 * ANSWER_MAX), issues = BUF_INIT(ANSWER_MAX);
    struct jw w = JW(&body);
    char words[SHAPE_WORDS_MAX];

    shape_issues_json(s, &issues);
    jw_object(&w);
    shape_words(s, words);
    put_problem(&w, &invalid, (struct bytes){words, strlen(words)});
    jw_kv_string(&w, "solution", NULL);
    jw_kv_string(&w, "request_id", http_request(c)->id);
    jw_key(&w, "detail");
    jw_raw(&w, issues.p, issues.n);
    jw_object_end(&w);
    buf_done(&issues);
    http_reply_json(c, 422, &body);
}

static void on_gone(void *user)
{
    dependencies_leave(user);
}

/* ---- the request ---- */

/* Words for what the schema lets through, or NULL. */
static const char *find_fault(const struct sync_body *b)
{
    if (b->session_id.n == 0)
        return "session_id is empty";
    if (b->session_id.n > SESSION_ID_MAX || strlen(b->session_id.p) != b->session_id.n)
        return "session_id is too long or contains NUL";
    if (b->runtime.n < 6 || strncmp(b->runtime.p, "python", 6) != 0)
        return "language_runtime is not a Python";
    if (b->index.n == 0)
        return "python_package_index_url is empty";
    if (strcmp(b->mode.p, "replace") != 0 && strcmp(b->mode.p, "merge") != 0)
        return "sync_mode is neither 'replace' nor 'merge'";
    if (b->specs.n > DEPENDENCIES_MAX)
        return "there are too many dependencies";
    return NULL;
}

static void submit(struct http_call *c, const struct sync_body *b)
{
    struct bytes specs[DEPENDENCIES_MAX];
    struct dependency_order order = {
        .session_id = b->session_id.p,
        .request_id = http_request(c)->id,
        .index = b->index,
        .specs = specs,
        .specs_n = b->specs.n,
        .done = on_done,
        .user = c,
    };
    struct dependency_sync *s;
    struct err e;

    for (size_t i = 0; i < b->specs.n; i++)
        specs[i] = b->specs.v[i].value;
    if (dependencies_sync(http_app(c), &order, &s, &e) < 0)
        reply_refused(c, &e);
    else
        http_on_gone(c, on_gone, s);
}

void api_dependencies_sync(struct http_call *c)
{
    const struct http_request *r = http_request(c);
    cleanup_with(shaping_done) struct shaping s;
    struct sync_body body = {0};
    const char *fault;

    shaping_init(&s, http_app(c));
    if (shape_parse(&dependencies_shape, r->body, r->body_n, &body, &s) < 0) {
        reply_issues(c, &s);
        return;
    }
    fault = find_fault(&body);
    if (fault)
        reply_words(c, &invalid, fault);
    else
        submit(c, &body);
}
