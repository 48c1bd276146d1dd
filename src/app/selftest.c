/* SPDX-License-Identifier: MIT */
#include "app/selftest.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

enum { SELFTEST_MS = 20000, US_PER_MS = 1000 };

/* Each gives its event back: handlers as their value, programs on stdout. */
static const struct {
    const char *language, *code;
} programs[] = {
    {"python",     "def handler(event): return event"  },
    {"javascript", "exports.handler = (event) => event"},
    {"shell",      "printf '%s' \"$EVENT_JSON\" | cat" },
};

static const char event[] = "{\"answer\":42}";

static void on_done(void *user)
{
    struct app *a = user;

    (void)event_base_loopbreak(a->base);
}

static bool came_back(const struct run_result *r)
{
    const struct buf *b = r->result.n > 0 ? &r->result : &r->out;

    return r->reason == END_EXIT && r->exit_code == 0 && b->n > 0 && strstr(b->p, "42");
}

static bool test_one(struct app *a, const char *language, const char *code)
{
    struct exec_spec spec = {
        .execution_id = "selftest",
        .language = language,
        .code = {code,  strlen(code)    },
        .event = {event, sizeof event - 1},
        .limits = app_limits(a, SELFTEST_MS)
    };
    struct run_events events = {.done = on_done, .user = a};
    struct run_result result;
    struct run *run = NULL;
    struct plan *plan = NULL;
    struct err e = {0};
    bool good = false;

    run_result_init(&result, &spec.limits);
    if (a->langs->plan(&spec, &plan, &e) == 0 &&
        run_start(a->engine, plan, &result, &events, &run, &e) == 0) {
        (void)event_base_dispatch(a->base);
        good = came_back(&result);
    }
    (void)printf("  %-18s %s  (%.1f ms) %s%s\n", language, good ? "ok" : "failed",
                 (double)(result.at.ended - result.at.started) / US_PER_MS, e.text,
                 good || !result.err.p ? result.fault : result.err.p);
    run_free(run);
    a->langs->plan_free(plan);
    run_result_done(&result);
    return good;
}

int selftest_run(struct app *a)
{
    int failed = 0;

    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        failed += !test_one(a, programs[i].language, programs[i].code);
    return failed;
}
