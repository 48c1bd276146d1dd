/* SPDX-License-Identifier: MIT */
/* The use case of POST /execute on a fake jail and a fake language, with the real store. */
#include <cmocka.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/daemon/app.h"
#include "fake/fake_jail.h"
#include "fake/fake_lang.h"
#include "http/api/execute/execution_json.h"
#include "store/store.h"
#include "store/work_threads.h"
#include "wire/wire.h"

enum { WAITERS_MAX = 16 };

struct world {
    struct app app;
    struct fake_jail jail;
    char state[64];
    int done, idle;
    char last[512]; /* the beginning of the last answer */
    struct execution_waiter waiters[WAITERS_MAX];
    size_t waiters_n;
};

static void on_done(void *user, struct execution *x)
{
    struct buf json = BUF_INIT(execution_json_room(x));
    struct world *w = user;

    w->done++;
    execution_result_json(x, &json);
    (void)snprintf(w->last, sizeof w->last, "%.500s", json.p);
    buf_done(&json);
}

static void on_idle(void *user)
{
    struct world *w = user;

    w->idle++;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    struct app *a;
    struct err e;

    assert_non_null(w);
    a = &w->app;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(w->state, sizeof w->state, "/tmp/test-execute-XXXXXX");
    assert_non_null(mkdtemp(w->state));
    config_defaults(&a->config);
    (void)snprintf(a->config.state_dir, sizeof a->config.state_dir, "%s", w->state);
    a->config.max_concurrent = 2;
    a->config.queue_max = 2;
    a->config.retain_on_disk = false;
    a->log = (struct log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .json = true};
    a->base = event_base_new();
    a->languages.ops = &fake_lang_ops;
    fake_jail_init(&w->jail);
    a->jail = &w->jail.jail;
    assert_int_equal(run_engine_open(a->base, a->jail, &a->engine, &e), 0);
    assert_int_equal(work_pool_open(a->base, &a->work, &e), 0);
    assert_int_equal(store_open(w->state, a->work, &a->store, &e), 0);
    assert_int_equal(app_init(a, &e), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    struct app *a = &w->app;
    char path[80];

    work_pool_close(a->work);
    app_done(a);
    store_close(a->store);
    run_engine_close(a->engine);
    assert_int_equal(w->jail.taken, w->jail.released);
    fake_jail_done(&w->jail);
    event_base_free(a->base);
    (void)close(a->log.fd);
    (void)snprintf(path, sizeof path, "%s/artifacts", w->state);
    assert_int_equal(rmdir(path), 0); /* nothing is left behind */
    (void)snprintf(path, sizeof path, "%s/programs", w->state);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/tools", w->state);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/sessions", w->state);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof path, "%s/mcp.key", w->state);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(w->state), 0);
    free(w);
    return 0;
}

static int ask(struct world *w, const char *id, const char *code, struct execution **ret,
               struct err *e)
{
    struct exec_spec spec = {
        .execution_id = id,
        .language = "fake",
        .code = {code, strlen(code)},
        .limits = app_limits(&w->app, 60000)
    };
    struct execution_waiter *waiter = &w->waiters[w->waiters_n++];
    struct exec_order order = {.spec = &spec,
                               .session_id = "",
                               .request_id = "r",
                               .asked_us = clock_us(),
                               .waiter = waiter};

    assert_true(w->waiters_n <= WAITERS_MAX);
    *waiter = (struct execution_waiter){.done = on_done, .user = w};
    return app_execute(&w->app, &order, ret, e);
}

static bool is_active(const struct world *w, const char *id)
{
    const struct execution *x = registry_find(&w->app.registry, id);

    return x && !execution_is_done(x);
}

static struct execution *asked(struct world *w, const char *id)
{
    struct execution *x = NULL;
    struct err e;

    assert_int_equal(ask(w, id, "", &x, &e), 0);
    return x;
}

static void until_done(struct world *w, int count)
{
    while (w->done < count)
        assert_int_equal(event_base_loop(w->app.base, EVLOOP_ONCE), 0);
}

static void ends(struct world *w, size_t i, int64_t entries)
{
    fake_program_gone(&w->jail, i);
    fake_init_says(&w->jail, i, INIT_EXITED, 0, entries);
}

static void an_execution_is_answered_and_kept(void **state)
{
    struct world *w = *state;
    const struct execution *x = asked(w, "");

    assert_memory_equal(x->id, "exec_", 5);
    assert_int_equal(strlen(x->id), strlen("exec_20250106_abc12345"));
    assert_true(is_active(w, x->id));
    assert_int_equal(w->done, 0);
    ends(w, 0, 0);
    until_done(w, 1);
    assert_non_null(strstr(w->last, "\"status\":\"success\""));
    assert_false(is_active(w, x->id));
    assert_ptr_equal(registry_find(&w->app.registry, x->id), x);
    assert_true(execution_is_done(x));
    assert_int_equal(event_base_loop(w->app.base, EVLOOP_NONBLOCK), 0);
    assert_int_equal(w->jail.released, 1); /* after the answer */
    assert_int_equal(w->app.metrics.executions[0][STATUS_SUCCESS], 1);
}

static void what_cannot_be_planned_is_refused(void **state)
{
    struct world *w = *state;
    struct execution *x = NULL;
    struct err e;

    assert_int_equal(ask(w, "a", "refuse", &x, &e), -1);
    assert_int_equal(e.kind, ERR_CALLER);
    assert_null(registry_find(&w->app.registry, "a"));
    assert_int_equal(w->app.admission.granted, 0);
}

static void a_jail_that_refuses_is_a_result(void **state)
{
    struct world *w = *state;

    w->jail.refuse = true;
    (void)asked(w, "a");
    assert_int_equal(w->done, 0); /* never from inside app_execute() */
    until_done(w, 1);
    assert_non_null(strstr(w->last, "\"status\":\"error\""));
    assert_non_null(strstr(w->last, "no sandbox today"));
    assert_int_equal(w->app.admission.granted, 0);
}

static void the_queue_is_served_and_bounded(void **state)
{
    struct world *w = *state;
    struct execution *x = NULL;
    struct err e;

    for (int i = 0; i < 4; i++)
        (void)asked(w, "");
    assert_int_equal(w->jail.taken, 2);
    assert_int_equal(ask(w, "", "", &x, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_int_equal(w->app.metrics.refused, 1);
    ends(w, 0, 0);
    until_done(w, 1);
    assert_int_equal(w->jail.taken, 3);
    for (size_t i = 1; i < 4; i++) {
        ends(w, i, 0);
        until_done(w, (int)i + 1);
    }
}

static void a_queued_one_can_be_cancelled(void **state)
{
    struct world *w = *state;
    struct execution *x;

    (void)asked(w, "a");
    (void)asked(w, "b");
    x = asked(w, "c");
    assert_int_equal(x->task.state, TASK_QUEUED);
    execution_stop(x, END_CANCELLED);
    until_done(w, 1);
    assert_non_null(strstr(w->last, "\"execution_id\":\"c\""));
    assert_non_null(strstr(w->last, "Execution cancelled"));
    assert_int_equal(w->jail.taken, 2);
    assert_int_equal(w->app.admission.queued, 0);
}

static void a_running_one_is_killed_when_its_client_leaves(void **state)
{
    struct world *w = *state;
    struct execution *x = asked(w, "a");

    execution_leave(x, &w->waiters[0]);
    assert_int_equal(fake_init_hears(&w->jail, 0), INIT_STOP);
    fake_program_gone(&w->jail, 0);
    fake_init_says(&w->jail, 0, INIT_EXITED, SIGKILL, 0);
    while (!execution_is_done(x))
        assert_int_equal(event_base_loop(w->app.base, EVLOOP_ONCE), 0);
    assert_int_equal(w->done, 0);
    assert_int_equal(x->task.result.reason, END_CANCELLED);
}

static int file_with(const char *text)
{
    int fd = memfd_create("artifact", MFD_CLOEXEC);

    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

/* Runs one that leaves these files behind. */
static const struct execution *leaves(struct world *w, const char *const *names, size_t n)
{
    const struct execution *x = asked(w, "");
    size_t i = w->jail.taken - 1;
    int fd = file_with("abc"), before = w->done;

    ends(w, i, 1);
    while (fake_init_hears(&w->jail, i) != INIT_SCAN)
        assert_int_equal(event_base_loop(w->app.base, EVLOOP_ONCE), 0);
    for (size_t k = 0; k < n; k++) {
        fake_init_entry(&w->jail, i, names[k], fd);
        (void)event_base_loop(w->app.base, EVLOOP_NONBLOCK);
    }
    fake_init_says(&w->jail, i, INIT_SCANNED, 0, 0);
    until_done(w, before + 1);
    (void)close(fd);
    return x;
}

static void artifacts_are_hashed_copied_and_dropped(void **state)
{
    static const char *const names[] = {"b.txt", ".secret", "a/c.log"};
    struct world *w = *state;
    const struct execution *x = leaves(w, names, 3);
    const struct artifact *a = artifacts_find(&x->artifacts, "b.txt");
    char text[8] = "";
    struct err e;
    int fd;

    assert_int_equal(x->artifacts.n, 2);
    assert_string_equal(x->artifacts.v[0]->path, "a/c.log");
    assert_non_null(a);
    assert_string_equal(a->stored.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(a->stored.size, 3);
    fd = store_read(w->app.store, a->stored.number, &e);
    assert_true(fd >= 0);
    registry_forget(&w->app.registry, registry_find(&w->app.registry, x->id));
    assert_int_equal(read(fd, text, sizeof text), 3); /* who reads may finish */
    assert_string_equal(text, "abc");
    (void)close(fd);
}

static void more_files_than_may_be_under_way_are_all_kept(void **state)
{
    struct world *w = *state;
    const char *names[60];
    char text[60][8];

    for (size_t i = 0; i < 60; i++) {
        (void)snprintf(text[i], sizeof text[i], "f%02zu", i);
        names[i] = text[i];
    }
    assert_int_equal(leaves(w, names, 60)->artifacts.n, 60);
}

static void retention_is_bounded_by_bytes_and_count(void **state)
{
    static const char *const names[] = {"f"};
    struct world *w = *state;
    struct registry *r = &w->app.registry;
    char first[EXECUTION_ID_MAX + 1];

    (void)snprintf(first, sizeof first, "%s", leaves(w, names, 1)->id);
    r->count_max = 2;
    (void)leaves(w, names, 1);
    (void)leaves(w, names, 1);
    assert_int_equal(r->finished_n, 2);
    assert_null(registry_find(r, first));
    r->bytes_max = r->bytes + 100; /* no room for a third without losing one */
    r->count_max = 10;
    (void)leaves(w, names, 1);
    assert_int_equal(r->finished_n, 2);
    assert_true(r->bytes <= r->bytes_max);
    assert_true(registry_expire(r, (int64_t)clock_us()) > (int64_t)clock_us());
    assert_int_equal(registry_expire(r, (int64_t)(clock_us() + r->age_max_us) + 1), 0);
    assert_int_equal(r->finished_n, 0);
    assert_int_equal(r->bytes, 0);
}

static void an_id_may_be_used_again(void **state)
{
    struct world *w = *state;

    (void)asked(w, "same");
    ends(w, 0, 0);
    until_done(w, 1);
    (void)asked(w, "same");
    assert_true(is_active(w, "same"));
    assert_int_equal(w->app.registry.finished_n, 0);
    ends(w, 1, 0);
    until_done(w, 2);
    assert_int_equal(w->app.registry.finished_n, 1);
}

static void an_end_in_order_waits_for_the_last(void **state)
{
    struct world *w = *state;
    struct execution *x = NULL;
    struct err e;

    for (int i = 0; i < 3; i++)
        (void)asked(w, "");
    app_refuse_new(&w->app);
    assert_int_equal(ask(w, "", "", &x, &e), -1);
    assert_int_equal(e.kind, ERR_BUSY);
    app_on_idle(&w->app, on_idle, w);
    assert_int_equal(w->idle, 0);
    app_stop_all(&w->app, END_SHUTDOWN);
    for (size_t i = 0; i < 2; i++) {
        fake_program_gone(&w->jail, i);
        fake_init_says(&w->jail, i, INIT_EXITED, SIGKILL, 0);
    }
    until_done(w, 3);
    assert_int_equal(w->idle, 1);
    assert_int_equal(w->jail.taken, 2);
    assert_non_null(strstr(w->last, "shutting down"));
}

#define WORLD(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD(an_execution_is_answered_and_kept),
        WORLD(what_cannot_be_planned_is_refused),
        WORLD(a_jail_that_refuses_is_a_result),
        WORLD(the_queue_is_served_and_bounded),
        WORLD(a_queued_one_can_be_cancelled),
        WORLD(a_running_one_is_killed_when_its_client_leaves),
        WORLD(artifacts_are_hashed_copied_and_dropped),
        WORLD(more_files_than_may_be_under_way_are_all_kept),
        WORLD(retention_is_bounded_by_bytes_and_count),
        WORLD(an_id_may_be_used_again),
        WORLD(an_end_in_order_waits_for_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
