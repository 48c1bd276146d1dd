/* SPDX-License-Identifier: MIT */
/* From the facts of a run to the answer: status, last words, JSON. */
#include <cmocka.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "app/daemon/app.h"
#include "base/json.h"
#include "fake/fake_jail.h"
#include "http/api/execute/execution_json.h"

struct scene {
    struct fake_jail jail;
    struct app *app;
    struct execution x;
    struct buf json;
};

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    fake_jail_init(&s->jail);
    s->jail.jail.traits = JAIL_FS | JAIL_PID;
    s->app = calloc(1, sizeof *s->app);
    assert_non_null(s->app);
    s->app->jail = s->x.jail = &s->jail.jail;
    s->x.ran_in = (struct ran_in){.jail = "fake", .traits = JAIL_FS | JAIL_PID};
    s->x.app = s->app;
    s->x.task.limits = (struct limits){.wall_ms = 2000,
                                       .memory_max = 64 << 20,
                                       .pids_max = 32,
                                       .cpu_ms = 1500,
                                       .output_max = 1000,
                                       .result_max = 1000};
    s->x.artifacts.max = 10;
    memcpy(s->x.id, "exec_1", 7);
    run_result_init(&s->x.task.result, &s->x.task.limits);
    s->x.task.result.at = (struct stamps){1000, 2000, 4000, 1504000, 1505000};
    s->x.task.result.reason = END_EXIT;
    s->x.task.result.exit_code = 0;
    s->json = BUF_INIT(1 << 20);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;

    buf_done(&s->json);
    run_result_done(&s->x.task.result);
    artifacts_done(&s->x.artifacts);
    free(s->app);
    free(s);
    return 0;
}

/* The answer, checked to be JSON. */
static const char *answer(struct scene *s)
{
    struct json_value v;
    struct err e;

    verdict_reach(&s->x.task.result, &s->x.task.limits, &s->x.verdict);
    execution_result_json(&s->x, &s->json);
    assert_false(s->json.failed);
    assert_int_equal(json_parse(s->json.p, s->json.n, 0, &v, &e), 0);
    return s->json.p;
}

static void has(struct scene *s, const char *part)
{
    if (!strstr(s->json.p, part))
        fail_msg("no %s in %s", part, s->json.p);
}

static void a_success_has_every_field_in_order(void **state)
{
    static const char *const order[] = {
        "\"execution_id\":\"exec_1\"",
        "\"status\":\"success\"",
        "\"stdout\":\"out\"",
        "\"stderr\":\"\"",
        "\"exit_code\":0",
        "\"execution_time\":1.5",
        "\"return_value\":{\"b\":1.50,\"a\":[]}",
        "\"metrics\":{\"duration_ms\":1500",
        "\"cpu_time_ms\":12.5",
        "\"peak_memory_mb\":2",
        "\"io_read_bytes\":null",
        "\"io_write_bytes\":3",
        "\"artifacts\":[]",
        "\"artifact_metadata\":[]",
        "\"termination\":{\"reason\":\"exit\"}",
        ("\"isolation\":{\"jail\":\"fake\",\"template\":\"python\",\"warm\":true,\"traits\":"
         "[\"filesystem\",\"pid\"]}"),
        "\"timings\":{\"queue_ms\":1",
        "\"start_ms\":2",
        "\"run_ms\":1500",
        "\"collect_ms\":1",
        "\"total_ms\":1504",
    };
    struct scene *s = *state;
    struct run_result *r = &s->x.task.result;
    const char *at;

    (void)buf_puts(&r->out, "out");
    (void)buf_puts(&r->result, "{\"b\":1.50,\"a\":[]}");
    r->usage = (struct usage){.cpu_us = 12500,
                              .memory_peak = 2 << 20,
                              .io_read = -1,
                              .io_write = 3,
                              .oom_kills = -1,
                              .pids_denied = -1};
    r->template = TEMPLATE_PYTHON;
    r->warm = true;
    at = answer(s);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const char *next = strstr(at, order[i]);

        if (!next)
            fail_msg("no %s, or in the wrong place, in %s", order[i], s->json.p);
        at = next;
    }
    assert_null(strstr(s->json.p, "truncated"));
    assert_null(strstr(s->json.p, "\"error\""));
}

static void a_failure_keeps_its_code_and_loses_its_value(void **state)
{
    struct scene *s = *state;

    s->x.task.result.exit_code = 3;
    (void)buf_puts(&s->x.task.result.result, "1");
    (void)buf_puts(&s->x.task.result.error, "{\"type\":\"E\"}");
    (void)answer(s);
    has(s, "\"status\":\"failed\"");
    has(s, "\"exit_code\":3");
    has(s, "\"return_value\":null");
    has(s, "\"error\":{\"type\":\"E\"}");
}

static void a_timeout_says_so_on_a_line_of_its_own(void **state)
{
    struct scene *s = *state;

    s->x.task.result.reason = END_TIMEOUT;
    s->x.task.result.exit_code = -1;
    (void)buf_puts(&s->x.task.result.err, "half a line");
    (void)answer(s);
    has(s, "\"status\":\"timeout\"");
    has(s, "\"stderr\":\"half a line\\nExecution timeout after 2 seconds\\n\"");
    has(s, "\"exit_code\":-1");
    has(s, "\"limit\":\"wall_time_ms\",\"limit_value\":2000,\"observed\":1500");
}

static void resource_limits_are_errors_with_a_name(void **state)
{
    struct scene *s = *state;

    s->x.task.result.reason = END_OOM;
    s->x.task.result.exit_code = 137;
    s->x.task.result.signal = SIGKILL;
    s->x.task.result.usage.memory_peak = 64 << 20;
    (void)answer(s);
    has(s, "\"status\":\"error\"");
    has(s, "Memory limit exceeded: 64 MiB");
    has(s, "\"reason\":\"oom\",\"signal\":\"SIGKILL\",\"limit\":\"memory_bytes\"");
}

static void the_pids_limit_is_named(void **state)
{
    struct scene *s = *state;

    s->x.task.result.reason = END_PIDS;
    s->x.task.result.exit_code = 1;
    (void)answer(s);
    has(s, "\"status\":\"error\"");
    has(s, "Process limit exceeded: 32 processes and threads");
    has(s, "\"limit\":\"pids\",\"limit_value\":32");
}

static void a_value_that_is_not_json_fails_the_run(void **state)
{
    struct scene *s = *state;

    (void)buf_puts(&s->x.task.result.result, "{\"a\":");
    (void)answer(s);
    has(s, "\"status\":\"failed\"");
    has(s, "\"exit_code\":1");
    has(s, "Result is not valid JSON");
    has(s, "\"return_value\":null");
}

static void a_value_beyond_its_limit_fails_the_run(void **state)
{
    struct scene *s = *state;

    s->x.task.result.result_too_long = true;
    (void)answer(s);
    has(s, "\"status\":\"failed\"");
    has(s, "Result exceeds the limit of 1000 bytes");
    has(s, "\"limit\":\"result_bytes\"");
}

static void an_error_that_is_not_an_object_is_dropped(void **state)
{
    struct scene *s = *state;

    (void)buf_puts(&s->x.task.result.error, "[1");
    (void)answer(s);
    assert_null(strstr(s->json.p, "\"error\""));
}

static void output_is_repaired_and_flagged(void **state)
{
    struct scene *s = *state;

    (void)buf_put(&s->x.task.result.out, "a\xff\0b", 4);
    s->x.task.result.out_truncated = true;
    (void)answer(s);
    has(s, "\"stdout\":\"a\xef\xbf\xbd\\u0000b\"");
    has(s, "\"stdout_truncated\":true");
}

static void what_never_ran_has_no_times_of_running(void **state)
{
    struct scene *s = *state;

    s->x.task.result.reason = END_CANCELLED;
    s->x.task.result.exit_code = -1;
    s->x.task.result.at = (struct stamps){.asked = 1000, .collected = 3000};
    (void)answer(s);
    has(s, "\"execution_time\":0");
    has(s, "\"queue_ms\":2");
    has(s, "\"run_ms\":0");
    has(s, "Execution cancelled");
}

static void artifacts_are_sorted_and_described(void **state)
{
    static const char *const names[] = {"z.LOG", "output/r.csv", "a b.txt"};
    static const char *const never[] = {".hidden", "a/.b/c", "a..b", "/abs", "bad\xff", "dir/", ""};
    struct scene *s = *state;
    struct artifacts *a = &s->x.artifacts;

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_non_null(artifacts_add(a, names[i], strlen(names[i])));
    for (size_t i = 0; i < ARRAY_LEN(never); i++)
        assert_null(artifacts_add(a, never[i], strlen(never[i])));
    assert_int_equal(a->left_out, 0);
    a->v[1]->stored.size = 7;
    memset(a->v[1]->stored.sha256, 'c', 64);
    artifacts_sort(a);
    (void)answer(s);
    has(s, "\"artifacts\":[\"a b.txt\",\"output/r.csv\",\"z.LOG\"]");
    has(s, "{\"path\":\"output/r.csv\",\"size\":7,\"mime_type\":\"text/csv\",\"type\":\"output\","
           "\"created_at\":\"1970-01-01T00:00:00.000000Z\",\"checksum\":\"cccc");
    has(s, "\"path\":\"z.LOG\",\"size\":0,\"mime_type\":\"text/plain\",\"type\":\"log\"");
    has(s, "\"checksum\":null");
    assert_string_equal(artifacts_find(a, "z.LOG")->path, "z.LOG");
    assert_null(artifacts_find(a, "z.log"));
}

static void artifacts_are_bounded(void **state)
{
    struct scene *s = *state;

    s->x.artifacts.max = 1;
    s->x.task.result.files_left_out = 2;
    assert_non_null(artifacts_add(&s->x.artifacts, "a", 1));
    assert_null(artifacts_add(&s->x.artifacts, "b", 1));
    (void)answer(s);
    has(s, "\"artifacts_left_out\":3");
}

static void server_timing_is_a_header_value(void **state)
{
    struct scene *s = *state;
    char out[SERVER_TIMING_MAX];

    execution_server_timing(&s->x, out);
    assert_string_equal(out, "queue;dur=1.000, start;dur=2.000, run;dur=1500.000, "
                             "collect;dur=1.000, total;dur=1504.000");
}

#define SCENE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(a_success_has_every_field_in_order),
        SCENE(a_failure_keeps_its_code_and_loses_its_value),
        SCENE(a_timeout_says_so_on_a_line_of_its_own),
        SCENE(resource_limits_are_errors_with_a_name),
        SCENE(the_pids_limit_is_named),
        SCENE(a_value_that_is_not_json_fails_the_run),
        SCENE(a_value_beyond_its_limit_fails_the_run),
        SCENE(an_error_that_is_not_an_object_is_dropped),
        SCENE(output_is_repaired_and_flagged),
        SCENE(what_never_ran_has_no_times_of_running),
        SCENE(artifacts_are_sorted_and_described),
        SCENE(artifacts_are_bounded),
        SCENE(server_timing_is_a_header_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
