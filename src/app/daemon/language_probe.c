/* SPDX-License-Identifier: MIT */
#include "app/daemon/language_probe.h"

#include <stdio.h>
#include <string.h>

/* A name of the language table, a space, the version. What is not installed says nothing. */
static const char script[] = "echo python $(python3 -V 2>/dev/null | cut -d' ' -f2)\n"
                             "echo javascript $(node -v 2>/dev/null | tr -d v)\n"
                             "echo shell $BASH_VERSION\n";

enum { SURVEY_MS = 20000, SURVEY_OUTPUT = 4096 };

struct survey {
    struct app *app; /* borrowed */
    struct run *run; /* owned */
    struct run_result result;
};

static void survey_free(struct survey *s)
{
    run_free(s->run);
    run_result_done(&s->result);
    free(s);
}

static void take_line(struct app *a, const char *line, size_t n)
{
    for (size_t i = 0; i < METRICS_LANGS_MAX && a->languages.names[i]; i++) {
        size_t len = strlen(a->languages.names[i]);

        if (n > len + 1 && memcmp(line, a->languages.names[i], len) == 0 && line[len] == ' ')
            (void)snprintf(a->languages.versions[i], sizeof a->languages.versions[i], "%.*s",
                           (int)(n - len - 1), line + len + 1);
    }
}

static void on_done(void *user)
{
    struct survey *s = user;
    struct app *a = s->app;
    const char *p = s->result.out.p, *end = p ? p + s->result.out.n : p;

    while (p && p < end) {
        size_t n = strcspn(p, "\n");

        take_line(a, p, n);
        p += n + 1;
    }
    a->languages.survey = NULL;
    survey_free(s);
}

void survey_start(struct app *a)
{
    struct survey *s = calloc(1, sizeof *s);
    struct run_events events = {.done = on_done, .user = s};
    struct exec_spec spec = {
        .execution_id = "survey",
        .language = "shell",
        .code = {script, sizeof script - 1},
        .limits = app_limits(a, SURVEY_MS),
        .cold = true
    };
    struct plan *plan = NULL;
    struct err e;

    if (!s)
        return;
    spec.limits.output_max = SURVEY_OUTPUT;
    s->app = a;
    run_result_init(&s->result, &spec.limits);
    if (a->languages.ops->plan(&spec, &plan, &e) < 0 ||
        run_start(a->engine, plan, &s->result, &events, &s->run, &e) < 0) {
        log_event(&a->log, LOG_WARN, "survey_failed", LOG_STR("error", e.text));
        survey_free(s);
    } else {
        a->languages.survey = s;
    }
    a->languages.ops->plan_free(plan);
}

void survey_stop(struct app *a)
{
    if (a->languages.survey)
        survey_free(take_ptr(&a->languages.survey));
}
