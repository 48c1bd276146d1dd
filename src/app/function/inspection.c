/* SPDX-License-Identifier: MIT */
#include "app/function/inspection.h"

#include <stdio.h>
#include <string.h>

#include "app/daemon/app.h"
#include "base/json.h"
#include "core/frame.h"
#include "core/languages.h"

enum {
    WALL_MS = 15000,          /* the program's own limit is shorter */
    OUTPUT_MAX = 4096,        /* it prints nothing unless it breaks */
    VALIDATE_INLINE = 262144, /* larger answers do not block the loop */
    EXIT_MEMORY = 3,          /* inspect/main.c */
    EXIT_ABSENT = 127,        /* nothing to exec */
    LARGE = 65536,            /* bytes of source */
};

static const char program[] = "/opt/sandbox-executor/bin/sandbox-inspect";
/* The tree of a large source is many megabytes: in large pages, if the kernel has them. */
static const char *const for_large[] = {
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=16777216", NULL};
static const char *const for_small[] = {NULL};

struct inspect {
    struct task task;
    struct app *app;      /* borrowed */
    const char *language; /* static */
    struct buf frames;    /* owned: until it runs */
    struct inspect_answer answer;
    unsigned char key[SHA256_BYTES];
    inspect_done_fn *done; /* NULL: the caller does not want it any more */
    void *user;
    TAILQ_ENTRY(inspect) link;
};

struct inspect_kept {
    unsigned char key[SHA256_BYTES];
    char *json; /* owned */
    size_t n;
    TAILQ_ENTRY(inspect_kept) link;
};

const char *inspect_language(const char *name)
{
    int lang = call_lang_find(name, strlen(name));

    return lang < 0 ? NULL : call_lang((size_t)lang)->inspect;
}

/* ---- what is remembered ---- */

static bool key_of(const char *language, struct bytes code, unsigned char out[SHA256_BYTES])
{
    cleanup_with(sha256_freep) struct sha256 *h = sha256_new();

    if (!h)
        return false;
    sha256_add(h, language, strlen(language) + 1);
    sha256_add(h, code.p ? code.p : "", code.n);
    sha256_end(h, out);
    return true;
}

static void kept_drop(struct inspections *s, struct inspect_kept *k)
{
    TAILQ_REMOVE(&s->kept, k, link);
    s->kept_n--;
    s->kept_bytes -= k->n;
    free(k->json);
    free(k);
}

static struct inspect_kept *kept_find(struct inspections *s, const unsigned char *key)
{
    struct inspect_kept *k;

    TAILQ_FOREACH(k, &s->kept, link)
    {
        if (memcmp(k->key, key, SHA256_BYTES) == 0)
            return k;
    }
    return NULL;
}

/* Only answers, never failures: those may be the host's fault and pass. */
static void kept_add(struct inspections *s, const struct inspect *i)
{
    struct inspect_kept *k;

    if (i->answer.json.n > INSPECT_KEPT_ONE || kept_find(s, i->key))
        return;
    k = calloc(1, sizeof *k);
    if (!k)
        return;
    k->json = malloc(i->answer.json.n + 1);
    if (!k->json) {
        free(k);
        return;
    }
    memcpy(k->json, i->answer.json.p, i->answer.json.n);
    k->json[i->answer.json.n] = '\0';
    k->n = i->answer.json.n;
    memcpy(k->key, i->key, SHA256_BYTES);
    TAILQ_INSERT_HEAD(&s->kept, k, link);
    s->kept_n++;
    s->kept_bytes += k->n;
    while (s->kept_n > INSPECT_KEPT || s->kept_bytes > INSPECT_KEPT_BYTES)
        kept_drop(s, TAILQ_LAST(&s->kept, inspect_kept_list));
}

bool inspect_known(struct app *a, const char *language, struct bytes code,
                   struct inspect_answer *ret)
{
    struct inspections *s = &a->functions.inspections;
    const char *canonical = inspect_language(language);
    unsigned char key[SHA256_BYTES];
    struct inspect_kept *k;

    if (!canonical || TAILQ_EMPTY(&s->kept) || !key_of(canonical, code, key))
        return false;
    k = kept_find(s, key);
    if (!k)
        return false;
    TAILQ_REMOVE(&s->kept, k, link);
    TAILQ_INSERT_HEAD(&s->kept, k, link);
    a->metrics.inspections_known++;
    *ret = (struct inspect_answer){
        .status = INSPECT_OK, .json = {k->json, k->n}
    };
    return true;
}

/* ---- ending ---- */

static struct inspect *of(struct task *t)
{
    return container_of(t, struct inspect, task);
}

static void inspect_free(struct inspect *i)
{
    TAILQ_REMOVE(&i->app->functions.inspections.active, i, link);
    task_done(&i->task);
    buf_done(&i->frames);
    free(i);
}

static void tell(struct task *t)
{
    struct inspect *i = of(t);

    if (i->done)
        i->done(i->user, &i->answer);
}

static void account(struct task *t)
{
    struct inspect *i = of(t);
    struct app *a = i->app;

    if (i->answer.status == INSPECT_OK)
        kept_add(&a->functions.inspections, i);
    else if (i->answer.status == INSPECT_FAILED && !t->stopped)
        log_event(&a->log, LOG_WARN, "inspection_failed", LOG_STR("error", i->answer.message));
    inspect_free(i);
}

/* ---- the answer ---- */

static void answer_set(struct inspect *i, enum inspect_status status, const char *type,
                       const char *words)
{
    i->answer.status = status;
    i->answer.json = (struct bytes){0};
    (void)snprintf(i->answer.type, sizeof i->answer.type, "%s", type);
    (void)snprintf(i->answer.message, sizeof i->answer.message, "%s", words);
}

/* A string member of what the program said, or nothing. */
static void take_word(struct json_value object, const char *name, char *out, size_t max)
{
    struct buf text = BUF_INIT(1024);
    struct json_value v;

    if (json_get(object, name, &v) && v.type == JSON_STRING &&
        json_decode_string(v, JSON_LENIENT_UTF8, &text) == 0)
        (void)snprintf(out, max, "%s", text.p ? text.p : "");
    buf_done(&text);
}

static void read_error(struct inspect *i)
{
    const struct buf *error = &i->task.result.error;
    struct json_value v;
    struct err e;

    answer_set(i, INSPECT_FAILED, "InspectionFailed", "the inspector broke its protocol");
    if (json_parse(error->p, error->n, 0, &v, &e) < 0 || v.type != JSON_OBJECT)
        return;
    take_word(v, "type", i->answer.type, sizeof i->answer.type);
    take_word(v, "message", i->answer.message, sizeof i->answer.message);
    i->answer.status = INSPECT_REFUSED;
}

/* Whatever came out of the sandbox is a tenant's until it is seen to be JSON. */
static void validate(struct task *t)
{
    struct inspect *i = of(t);
    const struct buf *json = &i->task.result.result;
    struct json_value v;
    struct err e;

    if (json_parse(json->p, json->n, 0, &v, &e) < 0 || v.type != JSON_OBJECT) {
        answer_set(i, INSPECT_FAILED, "InspectionFailed", "the inspector's answer is not JSON");
        return;
    }
    i->answer.status = INSPECT_OK;
    i->answer.json = (struct bytes){v.p, v.n};
}

static void judge_failure(struct inspect *i)
{
    const struct run_result *r = &i->task.result;

    if (r->reason == END_EXIT && r->exit_code == EXIT_ABSENT)
        answer_set(i, INSPECT_UNAVAILABLE, "NotAvailable",
                   "this server was built without grammars");
    else if (r->error.n > 0)
        read_error(i);
    else if (r->reason == END_FAILED)
        answer_set(i, INSPECT_FAILED, "InspectionFailed", r->fault);
    else if (r->reason == END_OOM || r->exit_code == EXIT_MEMORY)
        answer_set(i, INSPECT_REFUSED, "OutOfMemory", "the source needs too much memory to parse");
    else if (r->reason == END_TIMEOUT || r->reason == END_CPU)
        answer_set(i, INSPECT_REFUSED, "ParseTimeout", "the source takes too long to parse");
    else if (r->result_too_long)
        answer_set(i, INSPECT_REFUSED, "OutputTooLong", "the answer would be too long");
    else
        answer_set(i, INSPECT_FAILED, "InspectionFailed", "the inspector ended without an answer");
}

static enum task_go step_read(struct task *t, struct err *e)
{
    const struct run_result *r = &t->result;

    (void)e;
    if (r->result.n == 0 || r->error.n > 0)
        judge_failure(of(t));
    else if (r->result.n > VALIDATE_INLINE)
        return task_beside(t, validate, WORK_LONG);
    else
        validate(t);
    return TASK_NEXT;
}

/* ---- running ---- */

static enum task_go step_run(struct task *t, struct err *e)
{
    struct inspect *i = of(t);
    const char *const argv[] = {program, i->language, NULL};
    const struct plan plan = {
        .template = TEMPLATE_EXEC,
        .argv = argv,
        .envp = i->frames.n > LARGE ? for_large : for_small,
        .cwd = "/",
        .frames = {i->frames.p, i->frames.n},
        .limits = t->limits
    };
    const struct run_events events = {0};
    enum task_go go;

    (void)e;
    i->app->metrics.inspections++;
    go = task_run(t, &plan, &events, NULL);
    buf_done(&i->frames);
    return go;
}

/* clang-format off */
static const struct task_step steps[] = {
    {"admit", TASK_QUEUED,     task_admit},
    {"run",   TASK_STARTING,   step_run},
    {"read",  TASK_COLLECTING, step_read, .always = true},
};
/* clang-format on */

static const struct task_kind kind = {
    .name = "inspection",
    .steps = steps,
    .steps_n = ARRAY_LEN(steps),
    .answer = tell,
    .account = account,
};

/* ---- asking ---- */

static int frames_put(struct inspect *i, struct bytes code)
{
    i->frames = BUF_INIT(INSPECT_CODE_MAX + 2 * FRAME_HEAD);
    if (frame_put(&i->frames, FRAME_CODE, code.p ? code.p : "", code.n) < 0)
        return -1;
    return frame_put(&i->frames, FRAME_GO, "", 0);
}

static struct inspect *inspect_new(struct app *a, const struct inspect_order *o)
{
    struct inspect *i = calloc(1, sizeof *i);

    if (!i)
        return NULL;
    i->app = a;
    i->language = inspect_language(o->language);
    i->done = o->done;
    i->user = o->user;
    i->task.limits = app_limits(a, WALL_MS);
    i->task.limits.output_max = OUTPUT_MAX;
    i->task.limits.result_max = INSPECT_ANSWER_MAX;
    task_init(&i->task, &kind, &a->tasks, a->engine);
    i->task.under_other = o->admitted;
    TAILQ_INSERT_TAIL(&a->functions.inspections.active, i, link);
    return i;
}

int inspect_start(struct app *a, const struct inspect_order *o, struct inspect **ret, struct err *e)
{
    struct inspect *i;

    if (a->life.stopping)
        return err_set(e, ERR_BUSY, "the service is shutting down");
    if (!inspect_language(o->language))
        return err_set(e, ERR_CALLER, "there is no grammar for language '%.32s'", o->language);
    if (o->code.n > INSPECT_CODE_MAX)
        return err_set(e, ERR_CALLER, "the code is longer than %d bytes", INSPECT_CODE_MAX);
    i = inspect_new(a, o);
    if (!i)
        return err_set(e, ERR_HOST, "no memory for an inspection");
    if (frames_put(i, o->code) < 0 || !key_of(i->language, o->code, i->key)) {
        inspect_free(i);
        return err_set(e, ERR_HOST, "no memory for an inspection");
    }
    if (task_begin(&i->task, e) < 0) {
        inspect_free(i);
        return -1;
    }
    *ret = i;
    return 0;
}

void inspect_cancel(struct inspect *i)
{
    i->done = NULL;
    task_stop(&i->task, END_CANCELLED);
}

void inspections_init(struct inspections *s)
{
    TAILQ_INIT(&s->active);
    TAILQ_INIT(&s->kept);
}

void inspections_done(struct app *a)
{
    struct inspections *s = &a->functions.inspections;

    for (struct inspect *i; (i = TAILQ_FIRST(&s->active));)
        inspect_free(i);
    while (!TAILQ_EMPTY(&s->kept))
        kept_drop(s, TAILQ_FIRST(&s->kept));
}
