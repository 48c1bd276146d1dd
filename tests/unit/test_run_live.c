/* SPDX-License-Identifier: MIT */
/* A run whose program stays, against a jail whose init and program are played by the test. */
#include <cmocka.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/frame.h"
#include "core/port_run.h"
#include "fake/fake_jail.h"
#include "wire/wire.h"

struct stage {
    struct event_base *base;
    struct fake_jail jail;
    struct run_engine *engine;
    struct run *run;
    struct run_result result;
    struct limits limits;
    int done, frames, interrupted;
    char kinds[16], last[64];
    bool answer, pause; /* what the next frame makes its reader do */
};

static void on_frame(void *user, char kind, const char *p, size_t n)
{
    struct stage *s = user;

    assert_true((size_t)s->frames < sizeof s->kinds && n < sizeof s->last);
    s->kinds[s->frames++] = kind;
    if (s->answer) { /* reading output must not touch the frame */
        run_output_read(s->run);
        assert_int_equal(run_send(s->run, "next", 4), 0);
    }
    memcpy(s->last, p, n);
    s->last[n] = '\0';
    if (s->pause)
        run_frames_pause(s->run);
}

static void on_interrupted(void *user)
{
    ((struct stage *)user)->interrupted++;
}

static void on_done(void *user)
{
    ((struct stage *)user)->done++;
}

static int setup(void **state)
{
    static const char *const argv[] = {"/bin/prog", NULL}, *const envp[] = {NULL};
    struct stage *s = calloc(1, sizeof *s);
    struct run_events events = {
        .frame = on_frame, .interrupted = on_interrupted, .done = on_done, .user = s};
    struct plan p = {
        .argv = argv, .envp = envp, .cwd = "/workspace", .frames = {"F", 1}
    };
    struct err e;

    assert_non_null(s);
    (void)signal(SIGPIPE, SIG_IGN);
    s->base = event_base_new();
    fake_jail_init(&s->jail);
    s->limits = (struct limits){.output_max = 64,
                                .result_max = 100000,
                                .pids_max = 10,
                                .files_max = 20,
                                .memory_max = 1 << 20};
    p.limits = s->limits;
    run_result_init(&s->result, &s->limits);
    assert_int_equal(run_engine_open(s->base, &s->jail.jail, &s->engine, &e), 0);
    assert_int_equal(run_start(s->engine, &p, &s->result, &events, &s->run, &e), 0);
    fake_init_says(&s->jail, 0, INIT_READY, 0, 0);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;

    run_free(s->run);
    run_engine_close(s->engine);
    assert_int_equal(s->jail.released, s->jail.taken);
    run_result_done(&s->result);
    fake_jail_done(&s->jail);
    event_base_free(s->base);
    free(s);
    return 0;
}

static void turn(struct stage *s)
{
    for (int i = 0; i < 5; i++)
        assert_true(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
}

static void until_done(struct stage *s)
{
    while (!s->done)
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
}

static void say(struct stage *s, char kind, const char *text)
{
    struct buf b = BUF_INIT(1 << 20);

    assert_int_equal(frame_put(&b, kind, text, strlen(text)), 0);
    assert_int_equal(write(s->jail.peer[0].job, b.p, b.n), (ssize_t)b.n);
    buf_done(&b);
}

static void hear(struct stage *s, const char *text)
{
    char bytes[512];
    ssize_t n = read(s->jail.peer[0].job, bytes, sizeof bytes);

    assert_true(n >= (ssize_t)strlen(text));
    assert_memory_equal(bytes + n - strlen(text), text, strlen(text));
}

static void frames_go_both_ways(void **state)
{
    struct stage *s = *state;

    hear(s, "F");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(run_send(s->run, "ping", 4), 0);
        hear(s, "ping");
        say(s, FRAME_RESULT, "pong");
        turn(s);
    }
    say(s, FRAME_ITEM, "1");
    say(s, FRAME_READY, "");
    turn(s);
    assert_string_equal(s->kinds, "RRRIY");
    assert_int_equal(s->done, 0);
    assert_int_equal(s->result.result.n, 0);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, 3 << 8, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_EXIT);
    assert_int_equal(s->result.exit_code, 3);
    assert_int_equal(run_send(s->run, "x", 1), -1);
}

static void output_is_there_before_the_frame_behind_it(void **state)
{
    struct stage *s = *state;
    struct run_output o;

    hear(s, "F");
    s->answer = true;
    assert_int_equal(write(s->jail.peer[0].out, "printed", 7), 7);
    assert_int_equal(write(s->jail.peer[0].err, "warned", 6), 6);
    say(s, FRAME_RESULT, "whole and unharmed");
    say(s, FRAME_RESULT, "the second one too");
    turn(s);
    assert_int_equal(s->frames, 2);
    assert_string_equal(s->last, "the second one too");
    hear(s, "next");
    run_output_take(s->run, &o);
    assert_string_equal(o.out.p, "printed");
    assert_string_equal(o.err.p, "warned");
    assert_false(o.out_truncated);
    buf_done(&o.out);
    buf_done(&o.err);
    /* The next turn has a limit of its own. */
    for (int i = 0; i < 20; i++)
        assert_int_equal(write(s->jail.peer[0].out, "123456789\n", 10), 10);
    turn(s);
    run_output_take(s->run, &o);
    assert_int_equal(o.out.n, 64);
    assert_true(o.out_truncated);
    assert_int_equal(o.err.n, 0);
    buf_done(&o.out);
    buf_done(&o.err);
    assert_false(s->result.out_truncated);
}

static void an_interruption_is_acknowledged(void **state)
{
    struct stage *s = *state;

    turn(s);
    assert_int_equal(run_interrupt(s->run), 0);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_SIGNAL);
    assert_int_equal(s->interrupted, 0);
    fake_init_says(&s->jail, 0, INIT_SIGNALLED, 0, 0);
    turn(s);
    assert_int_equal(s->interrupted, 1);
}

static void paused_frames_wait(void **state)
{
    struct stage *s = *state;

    s->pause = true;
    say(s, FRAME_ITEM, "1");
    turn(s);
    say(s, FRAME_ITEM, "2");
    turn(s);
    assert_int_equal(s->frames, 1);
    s->pause = false;
    run_frames_resume(s->run);
    turn(s);
    assert_int_equal(s->frames, 2);
}

static void junk_ends_it(void **state)
{
    struct stage *s = *state;

    turn(s);
    assert_int_equal(write(s->jail.peer[0].job, "junk that is no frame", 21), 21);
    turn(s);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_STOP);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, SIGKILL, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_POLICY);
    assert_true(s->result.frames_broken);
    assert_int_equal(s->frames, 0);
}

static void a_closed_channel_ends_it(void **state)
{
    struct stage *s = *state;

    turn(s);
    (void)close(s->jail.peer[0].job);
    s->jail.peer[0].job = -1;
    while (fake_init_hears(&s->jail, 0) == 0)
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
    assert_int_equal(run_send(s->run, "x", 1), -1);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, SIGKILL, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_POLICY);
}

static void much_is_sent_as_it_is_read(void **state)
{
    enum { MUCH = 4 << 20 };
    struct stage *s = *state;
    char *big = calloc(1, MUCH), part[65536];
    size_t got = 0;

    assert_non_null(big);
    hear(s, "F");
    assert_int_equal(run_send(s->run, big, MUCH), 0);
    assert_int_equal(run_send(s->run, "end", 3), 0);
    free(big);
    while (got < MUCH + 3) {
        ssize_t n = read(s->jail.peer[0].job, part, sizeof part);

        if (n > 0)
            got += (size_t)n;
        turn(s);
    }
    assert_int_equal(got, MUCH + 3);
    assert_int_equal(run_send(s->run, "more", 4), 0);
    hear(s, "more");
}

#define STAGED(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(frames_go_both_ways),
        STAGED(output_is_there_before_the_frame_behind_it),
        STAGED(an_interruption_is_acknowledged),
        STAGED(paused_frames_wait),
        STAGED(junk_ends_it),
        STAGED(a_closed_channel_ends_it),
        STAGED(much_is_sent_as_it_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
