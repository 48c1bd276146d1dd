/* SPDX-License-Identifier: MIT */
/* The run engine against a jail whose init and program are played by the test. */
#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/frame.h"
#include "core/port_net.h"
#include "core/port_run.h"
#include "fake/fake_jail.h"
#include "proc/job.h"
#include "wire/wire.h"

struct stage {
    struct event_base *base;
    struct fake_jail jail;
    struct run_engine *engine;
    struct run *run;
    struct run_result result;
    struct limits limits;
    int done, files, progress;
    char last_file[64];
    bool pause_after_first;
};

static void on_progress(void *user, const char *json, size_t n)
{
    struct stage *s = user;

    assert_true(n > 0 && json[0] == '{');
    s->progress++;
}

static void on_file(void *user, struct run_file *f)
{
    struct stage *s = user;

    s->files++;
    memcpy(s->last_file, f->name, f->name_n + 1);
    if (s->pause_after_first && s->files == 1)
        run_files_pause(s->run);
}

static void on_done(void *user)
{
    struct stage *s = user;

    s->done++;
}

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    struct err e;

    assert_non_null(s);
    (void)signal(SIGPIPE, SIG_IGN);
    s->base = event_base_new();
    fake_jail_init(&s->jail);
    s->limits = (struct limits){.wall_ms = 60000,
                                .output_max = 64,
                                .result_max = 100000,
                                .pids_max = 10,
                                .files_max = 20,
                                .memory_max = 1 << 20};
    run_result_init(&s->result, &s->limits);
    assert_int_equal(run_engine_open(s->base, &s->jail.jail, &s->engine, &e), 0);
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

static void start_with(struct stage *s, struct plan *p)
{
    static const char *const argv[] = {"/bin/prog", "arg", NULL};
    static const char *const envp[] = {"A=1", NULL};
    struct run_events events = {
        .progress = on_progress, .file = on_file, .done = on_done, .user = s};
    struct err e;

    p->argv = argv;
    p->envp = envp;
    p->cwd = "/workspace";
    p->limits = s->limits;
    assert_int_equal(run_start(s->engine, p, &s->result, &events, &s->run, &e), 0);
}

static void start(struct stage *s)
{
    struct plan p = {0};

    start_with(s, &p);
}

static void write_text(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void write_frame(int fd, char kind, const char *text)
{
    struct buf b = BUF_INIT(1 << 20);

    assert_int_equal(frame_put(&b, kind, text, strlen(text)), 0);
    assert_int_equal(write(fd, b.p, b.n), (ssize_t)b.n);
    buf_done(&b);
}

static void exit_with(struct stage *s, int status, int64_t entries)
{
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, status, entries);
    until_done(s);
}

static void everything_a_program_says_is_collected(void **state)
{
    struct stage *s = *state;

    start(s);
    write_text(s->jail.peer[0].out, "hello\n");
    write_text(s->jail.peer[0].err, "oops\n");
    write_frame(s->jail.peer[0].job, FRAME_PROGRESS, "{\"p\":1}");
    write_frame(s->jail.peer[0].job, FRAME_RESULT, "{\"ok\":true}");
    exit_with(s, 0, 0);
    assert_int_equal(s->result.reason, END_EXIT);
    assert_int_equal(s->result.exit_code, 0);
    assert_string_equal(s->result.out.p, "hello\n");
    assert_string_equal(s->result.err.p, "oops\n");
    assert_string_equal(s->result.result.p, "{\"ok\":true}");
    assert_string_equal(s->result.progress.p, "{\"p\":1}");
    assert_int_equal(s->progress, 1);
    assert_int_equal(s->done, 1);
    assert_int_equal(s->result.usage.cpu_us, 1500);
    assert_true(s->result.at.running >= s->result.at.started);
    assert_true(s->result.at.ended >= s->result.at.running);
}

/* Where there are so many threads. */
static void start_that_may_leave(struct stage *s, struct plan *p, unsigned threads)
{
    s->jail.jail.traits = JAIL_MEMORY | JAIL_PIDS;
    s->jail.threads = threads;
    start_with(s, p);
    fake_init_says(&s->jail, 0, INIT_READY, 0, 0);
}

/* Init would only say the same, later. */
static void the_word_of_a_program_ends_it(void **state)
{
    struct stage *s = *state;
    struct plan p = {
        .frames = {"FRAMES", 6}
    };

    start_that_may_leave(s, &p, 1);
    write_text(s->jail.peer[0].out, "hello");
    write_frame(s->jail.peer[0].job, FRAME_RESULT, "1");
    write_frame(s->jail.peer[0].job, FRAME_LEFT, "\7");
    until_done(s);
    assert_int_equal(s->result.reason, END_EXIT);
    assert_int_equal(s->result.exit_code, 7);
    assert_string_equal(s->result.out.p, "hello");
    assert_string_equal(s->result.result.p, "1");
    assert_int_equal(s->jail.released, 0);
    run_free(take_ptr(&s->run));
    turn(s);
    assert_int_equal(s->jail.released, 1);
}

/* The launcher may be slower to tell where it ran than the program was to end. */
static void what_was_used_is_waited_for(void **state)
{
    struct stage *s = *state;

    s->jail.usage.memory_peak = 4096;
    s->jail.usage_late = 3;
    start(s);
    fake_init_says(&s->jail, 0, INIT_EXITED, 3 << 8, 0);
    until_done(s);
    assert_int_equal(s->result.usage.memory_peak, 4096);
    assert_int_equal(s->result.exit_code, 3);
}

static void but_not_for_ever(void **state)
{
    struct stage *s = *state;

    s->jail.usage_late = 1000;
    start(s);
    fake_init_says(&s->jail, 0, INIT_EXITED, 3 << 8, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_EXIT);
    assert_int_equal(s->result.exit_code, 3);
}

static void nor_after_the_end_of_its_sandbox(void **state)
{
    struct stage *s = *state;

    s->jail.usage_late = 2;
    start(s);
    fake_init_says(&s->jail, 0, INIT_EXITED, 3 << 8, 0);
    fake_init_gone(&s->jail, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_EXIT);
    assert_int_equal(s->result.exit_code, 3);
}

/* One without frames closes its channel in the midst of its start, which nobody has to hear of. */
static void a_channel_that_carries_nothing_wakes_nobody(void **state)
{
    struct stage *s = *state;

    start(s);
    assert_true(s->jail.peer[0].job >= 0);
    (void)close(take_fd(&s->jail.peer[0].job));
    (void)event_base_get_max_events(s->base, EVENT_BASE_COUNT_ACTIVE, 1);
    assert_int_equal(event_base_loop(s->base, EVLOOP_NONBLOCK), 0);
    assert_int_equal(event_base_get_max_events(s->base, EVENT_BASE_COUNT_ACTIVE, 1), 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, 0, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_EXIT);
}

/* A warmed one that may leave: at first nobody listens to init. */
static void start_brief(struct stage *s)
{
    struct plan p = {
        .template = TEMPLATE_PYTHON, .frames = {"FRAMES", 6}
    };

    s->jail.warm = true;
    s->jail.template = TEMPLATE_PYTHON;
    s->jail.jail.traits = JAIL_MEMORY | JAIL_PIDS;
    s->jail.threads = 1;
    start_with(s, &p);
}

static void what_comes_after_the_word_is_not_heard(void **state)
{
    struct stage *s = *state;

    start_brief(s);
    write_frame(s->jail.peer[0].job, FRAME_RESULT, "1");
    write_frame(s->jail.peer[0].job, FRAME_LEFT, "\7");
    fake_init_says(&s->jail, 0, INIT_EXITED, 9 << 8, 0);
    until_done(s);
    assert_int_equal(s->result.exit_code, 7);
    assert_string_equal(s->result.result.p, "1");
}

static void init_is_heard_of_a_program_that_gave_no_word(void **state)
{
    struct stage *s = *state;

    start_brief(s);
    exit_with(s, 9 << 8, 0);
    assert_int_equal(s->result.exit_code, 9);
}

/* Somebody else still holds its channel. */
static void init_is_heard_of_a_channel_that_stays_open(void **state)
{
    struct stage *s = *state;

    start_brief(s);
    fake_init_says(&s->jail, 0, INIT_EXITED, 9 << 8, 0);
    while (s->result.at.ended == 0)
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
    assert_int_equal(s->result.exit_code, 9);
}

static void init_is_heard_of_a_program_that_is_stopped(void **state)
{
    struct stage *s = *state;

    start_brief(s);
    run_stop(s->run, END_CANCELLED);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_STOP);
    exit_with(s, 9, 0);
    assert_int_equal(s->result.reason, END_CANCELLED);
}

static void says_in_vain(struct stage *s, struct plan *p, unsigned threads, const char *word)
{
    p->frames = (struct bytes){"FRAMES", 6}; /* else nobody would listen */
    start_that_may_leave(s, p, threads);
    write_frame(s->jail.peer[0].job, FRAME_LEFT, word);
    turn(s);
    assert_int_equal(s->done, 0);
    exit_with(s, 0, 0);
    assert_int_equal(s->result.exit_code, 0);
}

static void a_word_is_not_enough_where_something_stays(void **state)
{
    struct plan p = {.scan_all = true};

    says_in_vain(*state, &p, 1, "\7");
}

static void a_word_is_not_enough_where_others_are(void **state)
{
    struct plan p = {0};

    says_in_vain(*state, &p, 2, "\7");
}

/* Also when it says how many there are. */
static void a_number_of_threads_is_not_believed(void **state)
{
    struct plan p = {0};

    says_in_vain(*state, &p, 2, "\7\2");
}

/* It waits for its sandbox to go, and would wait in vain. */
static void who_is_not_taken_at_its_word_is_told(void **state)
{
    struct stage *s = *state;
    struct plan p = {
        .frames = {"FRAMES", 6}
    };
    char bytes[512];
    ssize_t n;

    start_that_may_leave(s, &p, 2);
    write_frame(s->jail.peer[0].job, FRAME_LEFT, "\7");
    turn(s);
    while ((n = recv(s->jail.peer[0].job, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    assert_int_equal(n, 0);
    assert_int_equal(s->done, 0);
    exit_with(s, 0, 0);
}

/* What it says of its code, and what of that is believed. */
static void compiled(struct stage *s, bool asked, bool cold, const char *const frames[],
                     const char *kept)
{
    struct plan p = {.template = TEMPLATE_PYTHON, .compiles = asked};

    s->jail.template = cold ? TEMPLATE_EXEC : TEMPLATE_PYTHON;
    start_with(s, &p);
    for (size_t i = 0; frames[i]; i++)
        write_frame(s->jail.peer[0].job, frames[i][0], frames[i] + 1);
    exit_with(s, 0, 0);
    assert_int_equal(s->result.compiled.n, strlen(kept));
    if (*kept)
        assert_memory_equal(s->result.compiled.p, kept, strlen(kept));
}

static void the_first_frame_tells_what_was_compiled(void **state)
{
    static const char *const said[] = {"Kours", "R1", "Ktheirs", NULL};

    compiled(*state, true, false, said, "ours");
}

static void a_later_frame_does_not(void **state)
{
    static const char *const said[] = {"R1", "Ktheirs", NULL};

    compiled(*state, true, false, said, "");
}

static void nor_one_that_nobody_asked_for(void **state)
{
    static const char *const said[] = {"Ktheirs", NULL};

    compiled(*state, false, false, said, "");
}

static void nor_one_of_an_interpreter_that_started_cold(void **state)
{
    static const char *const said[] = {"Ktheirs", NULL};

    compiled(*state, true, true, said, "");
}

static void an_empty_one_keeps_the_place(void **state)
{
    static const char *const said[] = {"K", "Ktheirs", NULL};

    compiled(*state, true, false, said, "");
}

static void the_job_is_what_the_wire_says(void **state)
{
    struct stage *s = *state;
    struct plan_file f = {
        .path = "/workspace/a", .content = {"abc", 3},
             .mode = 0644
    };
    struct plan p = {
        .files = &f, .files_n = 1, .frames = {"FRAMES", 6},
                .input = {"in",     2}
    };
    char bytes[512];
    struct job_head h;
    ssize_t n;

    s->jail.jail.traits = JAIL_USER; /* a user of its own: its processes can be counted */
    start_with(s, &p);
    n = read(s->jail.peer[0].job, bytes, sizeof bytes);
    assert_true(n > (ssize_t)sizeof h);
    memcpy(&h, bytes, sizeof h);
    assert_int_equal(h.magic, JOB_MAGIC);
    assert_int_equal(h.argc, 2);
    assert_int_equal(h.envc, 1);
    assert_int_equal(h.filec, 1);
    assert_int_equal(h.files_n, 3);
    assert_int_equal(h.nofile, 20);
    assert_int_equal(h.nproc, 10);
    assert_int_equal(h.flags, JOB_CHANNEL);
    assert_memory_equal(bytes + sizeof h, "/workspace\0/bin/prog\0arg\0A=1\0/workspace/a", 42);
    assert_int_equal(h.strings_n, 42);
    assert_int_equal(n, sizeof h + 42 + sizeof(struct job_file) + 9);
    assert_memory_equal(bytes + n - 9, "abcFRAMES", 9);
    assert_int_equal(read(s->jail.peer[0].in, bytes, sizeof bytes), 2);
    assert_int_equal(read(s->jail.peer[0].in, bytes, sizeof bytes), 0);
}

static void what_a_warmed_interpreter_has_is_not_sent(void **state)
{
    static const char *const argv[] = {"/bin/prog", "-c", "a long text", NULL};
    static const char *const none[] = {NULL};
    const struct plan p = {.argv = argv, .envp = none, .cwd = "/", .carried = argv[2]};
    static const struct {
        struct job_for to;
        const char *strings;
        size_t n;
    } rows[] = {
        {{.warmed = true},  "/\0/bin/prog\0-c\0",            16},
        {{.warmed = false}, "/\0/bin/prog\0-c\0a long text", 27},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_with(buf_done) struct buf out = BUF_INIT(4096);
        struct job_head h;
        struct err e;

        assert_int_equal(job_encode(&p, &rows[i].to, &out, &e), 0);
        memcpy(&h, out.p, sizeof h);
        assert_int_equal(h.argc, 3);
        assert_int_equal(h.strings_n, rows[i].n);
        assert_memory_equal(out.p + sizeof h, rows[i].strings, rows[i].n);
    }
}

static void a_large_job_is_written_as_it_is_read(void **state)
{
    struct stage *s = *state;
    const size_t size = 8 << 20;
    char *big = calloc(1, size), chunk[65536];
    struct plan p = {
        .frames = {big, size},
          .input = {big, size}
    };
    size_t got = 0, in = 0;

    start_with(s, &p);
    free(big); /* nothing of the plan is needed any more */
    while (got < size || in < size) {
        ssize_t n = recv(s->jail.peer[0].job, chunk, sizeof chunk, MSG_DONTWAIT);

        got += n > 0 ? (size_t)n : 0;
        (void)fcntl(s->jail.peer[0].in, F_SETFL, O_NONBLOCK);
        n = read(s->jail.peer[0].in, chunk, sizeof chunk);
        in += n > 0 ? (size_t)n : 0;
        turn(s);
    }
    assert_int_equal(in, size);
    assert_int_equal(read(s->jail.peer[0].in, chunk, 1), 0); /* closed */
    exit_with(s, 0, 0);
}

static void output_is_cut_between_characters_and_drained_on(void **state)
{
    struct stage *s = *state;
    char flood[4096];

    start(s);
    fake_init_says(&s->jail, 0, INIT_READY, 0, 0);
    write_text(s->jail.peer[0].out, "x");
    for (int i = 0; i < 40; i++)
        write_text(s->jail.peer[0].out, "\xc3\xa4"); /* 81 bytes: the limit splits a character */
    while (!s->result.out_truncated)                 /* it is listened to a moment later */
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
    memset(flood, 'y', sizeof flood);
    for (int i = 0; i < 100; i++) { /* more than a pipe holds */
        assert_int_equal(write(s->jail.peer[0].out, flood, sizeof flood), sizeof flood);
        turn(s);
    }
    exit_with(s, 0, 0);
    assert_int_equal(s->result.out.n, 63);
    assert_false(s->result.err_truncated);
}

static void a_signal_is_128_and_its_number(void **state)
{
    struct stage *s = *state;

    start(s);
    exit_with(s, SIGSEGV, 0);
    assert_int_equal(s->result.reason, END_SIGNAL);
    assert_int_equal(s->result.signal, SIGSEGV);
    assert_int_equal(s->result.exit_code, 128 + SIGSEGV);
}

static void an_oom_kill_is_named(void **state)
{
    struct stage *s = *state;

    start(s);
    s->jail.usage.oom_kills = 1;
    exit_with(s, SIGKILL, 3);
    assert_int_equal(s->result.reason, END_OOM);
    assert_int_equal(s->result.exit_code, 137);
    assert_int_equal(s->files, 0);
}

static void an_oom_kill_of_a_child_is_named(void **state)
{
    struct stage *s = *state;

    start(s);
    s->jail.usage.oom_kills = 1;
    exit_with(s, 0, 0);
    assert_int_equal(s->result.reason, END_OOM);
}

static void denied_processes_matter_only_to_failures(void **state)
{
    struct stage *s = *state;

    start(s);
    s->jail.usage.pids_denied = 4;
    exit_with(s, 0, 0);
    assert_int_equal(s->result.reason, END_EXIT);
}

static void a_failure_with_denied_processes_is_the_pids_limit(void **state)
{
    struct stage *s = *state;

    start(s);
    s->jail.usage.pids_denied = 4;
    exit_with(s, 1 << 8, 0);
    assert_int_equal(s->result.reason, END_PIDS);
    assert_int_equal(s->result.exit_code, 1);
}

static void a_timeout_is_reported_once_and_only_after_the_exit(void **state)
{
    struct stage *s = *state;
    int verb = 0;

    s->limits.wall_ms = 1;
    start(s);
    write_text(s->jail.peer[0].out, "partial");
    while (verb == 0) {
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
        verb = fake_init_hears(&s->jail, 0);
    }
    assert_int_equal(verb, INIT_STOP);
    assert_int_equal(s->done, 0);
    exit_with(s, SIGKILL, 2);
    assert_int_equal(s->result.reason, END_TIMEOUT);
    assert_int_equal(s->result.exit_code, -1);
    assert_string_equal(s->result.out.p, "partial");
    assert_int_equal(s->jail.killed, 0);
    assert_int_equal(s->files, 0);
}

static void an_init_that_does_not_answer_is_killed(void **state)
{
    struct stage *s = *state;

    s->limits.wall_ms = 1;
    start(s);
    until_done(s); /* the fake's kill closes everything */
    assert_int_equal(s->jail.killed, 1);
    assert_int_equal(s->result.reason, END_TIMEOUT);
}

static void cpu_time_is_watched_from_outside(void **state)
{
    struct stage *s = *state;

    s->limits.cpu_ms = 10;
    s->jail.usage.cpu_us = 11000;
    start(s);
    until_done(s);
    assert_int_equal(s->result.reason, END_CPU);
}

static void a_sandbox_that_dies_tells_why(void **state)
{
    struct stage *s = *state;

    s->jail.failure = "mount: no space left";
    start(s);
    fake_program_gone(&s->jail, 0);
    fake_init_gone(&s->jail, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_FAILED);
    assert_string_equal(s->result.fault, "mount: no space left");
}

static void a_cold_sandbox_gets_its_time_from_ready_on(void **state)
{
    struct stage *s = *state;
    uint64_t before;

    start(s);
    before = s->result.at.running;
    fake_init_says(&s->jail, 0, INIT_READY, 0, 0);
    turn(s);
    assert_true(s->result.at.running > before);
    exit_with(s, 0, 0);
}

static int file_with(const char *text)
{
    int fd = memfd_create("artifact", MFD_CLOEXEC);

    write_text(fd, text);
    return fd;
}

static void files_are_listed_after_the_exit(void **state)
{
    struct stage *s = *state;
    int fd = file_with("data"), pipe_fd[2];

    start(s);
    assert_int_equal(pipe(pipe_fd), 0);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, 0, 2);
    turn(s);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_SCAN);
    assert_int_equal(s->done, 0);
    fake_init_entry(&s->jail, 0, "a/b.txt", fd);
    fake_init_entry(&s->jail, 0, "fifo", pipe_fd[0]); /* init would not, but who knows */
    fake_init_says(&s->jail, 0, INIT_SCANNED, 0, 7);
    until_done(s);
    assert_int_equal(s->files, 1);
    assert_string_equal(s->last_file, "a/b.txt");
    assert_int_equal(s->result.files_left_out, 7);
    (void)close(fd), (void)close(pipe_fd[0]), (void)close(pipe_fd[1]);
}

/* Whoever was forked at the wrong moment and waits for a processor holds copies of all pipes. */
static void files_are_listed_though_somebody_holds_a_pipe(void **state)
{
    struct stage *s = *state;
    int held, heard = 0, fd = file_with("data");

    start(s);
    write_text(s->jail.peer[0].out, "hello");
    held = dup(s->jail.peer[0].out);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, 0, 1);
    while (!s->done && (heard = fake_init_hears(&s->jail, 0)) == 0)
        assert_int_equal(event_base_loop(s->base, EVLOOP_ONCE), 0);
    assert_int_equal(heard, INIT_SCAN);
    fake_init_entry(&s->jail, 0, "one", fd);
    fake_init_says(&s->jail, 0, INIT_SCANNED, 0, 0);
    until_done(s);
    assert_int_equal(s->files, 1);
    assert_int_equal(s->result.files_left_out, 0);
    assert_string_equal(s->result.out.p, "hello");
    (void)close(held), (void)close(fd);
}

static void files_wait_for_their_reader(void **state)
{
    struct stage *s = *state;
    int fd = file_with("data");

    s->pause_after_first = true;
    start(s);
    fake_program_gone(&s->jail, 0);
    fake_init_says(&s->jail, 0, INIT_EXITED, 0, 2);
    fake_init_entry(&s->jail, 0, "one", fd); /* before SCAN was heard: too early, not taken */
    turn(s);
    assert_int_equal(s->files, 0);
    fake_init_entry(&s->jail, 0, "one", fd);
    fake_init_entry(&s->jail, 0, "two", fd);
    fake_init_says(&s->jail, 0, INIT_SCANNED, 0, 0);
    turn(s);
    assert_int_equal(s->files, 1);
    assert_int_equal(s->done, 0);
    run_files_resume(s->run);
    until_done(s);
    assert_int_equal(s->files, 2);
    (void)close(fd);
}

static void a_result_beyond_its_limit_is_flagged(void **state)
{
    struct stage *s = *state;

    start(s);
    write_text(s->jail.peer[0].job, "R0fffffff");
    write_text(s->jail.peer[0].job, "junk");
    exit_with(s, 0, 0);
    assert_true(s->result.result_too_long);
    assert_int_equal(s->result.result.n, 0);
}

static void junk_on_the_result_channel_is_flagged(void **state)
{
    struct stage *s = *state;

    start(s);
    write_text(s->jail.peer[0].job, "hello there, this is not a frame");
    exit_with(s, 0, 0);
    assert_true(s->result.frames_broken);
}

static void what_init_cannot_start_has_words(void **state)
{
    struct stage *s = *state;
    struct {
        struct init_msg m;
        char name[16];
    } msg = {
        .m = {.verb = INIT_FAILED, .arg = 12, .name_n = 11},
          .name = "mounts: why"
    };

    start(s);
    assert_int_equal(send(s->jail.peer[0].ctl, &msg, sizeof msg.m + 11, 0), sizeof msg.m + 11);
    turn(s);
    exit_with(s, 127 << 8, 0);
    assert_int_equal(s->result.reason, END_FAILED);
    assert_string_equal(s->result.fault, "mounts: why");
}

static void on_listening(void *user, uint32_t port, int fd)
{
    struct stage *s = user;

    assert_int_equal(port, 80 + s->progress++);
    close(fd);
}

static const uint32_t gate_ports[] = {80, 81};

static void start_with_gate(struct stage *s)
{
    const struct net_gate gate = {gate_ports, ARRAY_LEN(gate_ports), on_listening, s};
    struct plan p = {
        .gate = &gate, .frames = {"FRAMES", 6}
    };

    s->jail.warm = true;
    start_with(s, &p);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_LISTEN);
    assert_int_equal(fake_init_hears(&s->jail, 0), INIT_LISTEN);
    assert_int_equal(fake_init_hears(&s->jail, 0), 0);
}

static void a_job_waits_until_the_gate_has_all_listeners(void **state)
{
    struct stage *s = *state;
    int any = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char bytes[512];

    start_with_gate(s);
    for (int i = 0; i < 2; i++) {
        const struct init_msg m = {.verb = INIT_LISTENING, .arg = gate_ports[i]};

        assert_int_equal(s->progress, i);
        assert_int_equal(recv(s->jail.peer[0].job, bytes, sizeof bytes, MSG_DONTWAIT), -1);
        assert_int_equal(fd_send(s->jail.peer[0].ctl, &m, sizeof m, &any, 1), 0);
        turn(s);
    }
    assert_int_equal(s->progress, 2);
    assert_true(recv(s->jail.peer[0].job, bytes, sizeof bytes, MSG_DONTWAIT) > 6);
    close(any);
}

static void a_gate_without_its_listener_starts_nothing(void **state)
{
    struct stage *s = *state;
    char bytes[512];

    start_with_gate(s);
    fake_init_says(&s->jail, 0, INIT_LISTENING, EADDRINUSE, 81);
    turn(s);
    assert_int_equal(recv(s->jail.peer[0].job, bytes, sizeof bytes, MSG_DONTWAIT), -1);
    fake_program_gone(&s->jail, 0);
    fake_init_gone(&s->jail, 0);
    until_done(s);
    assert_int_equal(s->result.reason, END_FAILED);
    assert_string_equal(s->result.fault,
                        "listener on port 81 of the sandbox: Address already in use");
}

static void a_refused_sandbox_starts_nothing(void **state)
{
    struct stage *s = *state;
    static const char *const none[] = {"/x", NULL};
    struct plan p = {.argv = none, .envp = none + 1, .cwd = "/", .limits = s->limits};
    struct run_events events = {.done = on_done, .user = s};
    struct err e = {0};

    s->jail.refuse = true;
    assert_int_equal(run_start(s->engine, &p, &s->result, &events, &s->run, &e), -1);
    assert_string_equal(e.text, "no sandbox today");
    assert_null(s->run);
}

static void freeing_in_the_middle_leaves_nothing(void **state)
{
    struct stage *s = *state;

    start(s);
    run_free(s->run);
    s->run = NULL;
    turn(s);
    assert_int_equal(s->done, 0);
    assert_int_equal(s->jail.released, 1);
}

#define STAGED(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGED(everything_a_program_says_is_collected),
        STAGED(what_was_used_is_waited_for),
        STAGED(but_not_for_ever),
        STAGED(nor_after_the_end_of_its_sandbox),
        STAGED(a_channel_that_carries_nothing_wakes_nobody),
        STAGED(the_first_frame_tells_what_was_compiled),
        STAGED(a_later_frame_does_not),
        STAGED(nor_one_that_nobody_asked_for),
        STAGED(nor_one_of_an_interpreter_that_started_cold),
        STAGED(an_empty_one_keeps_the_place),
        STAGED(the_job_is_what_the_wire_says),
        cmocka_unit_test(what_a_warmed_interpreter_has_is_not_sent),
        STAGED(the_word_of_a_program_ends_it),
        STAGED(what_comes_after_the_word_is_not_heard),
        STAGED(init_is_heard_of_a_program_that_gave_no_word),
        STAGED(init_is_heard_of_a_channel_that_stays_open),
        STAGED(init_is_heard_of_a_program_that_is_stopped),
        STAGED(a_word_is_not_enough_where_something_stays),
        STAGED(a_word_is_not_enough_where_others_are),
        STAGED(a_number_of_threads_is_not_believed),
        STAGED(who_is_not_taken_at_its_word_is_told),
        STAGED(a_large_job_is_written_as_it_is_read),
        STAGED(output_is_cut_between_characters_and_drained_on),
        STAGED(a_signal_is_128_and_its_number),
        STAGED(an_oom_kill_is_named),
        STAGED(an_oom_kill_of_a_child_is_named),
        STAGED(denied_processes_matter_only_to_failures),
        STAGED(a_failure_with_denied_processes_is_the_pids_limit),
        STAGED(a_timeout_is_reported_once_and_only_after_the_exit),
        STAGED(an_init_that_does_not_answer_is_killed),
        STAGED(cpu_time_is_watched_from_outside),
        STAGED(a_sandbox_that_dies_tells_why),
        STAGED(a_cold_sandbox_gets_its_time_from_ready_on),
        STAGED(files_are_listed_after_the_exit),
        STAGED(files_are_listed_though_somebody_holds_a_pipe),
        STAGED(files_wait_for_their_reader),
        STAGED(a_result_beyond_its_limit_is_flagged),
        STAGED(junk_on_the_result_channel_is_flagged),
        STAGED(what_init_cannot_start_has_words),
        STAGED(a_job_waits_until_the_gate_has_all_listeners),
        STAGED(a_gate_without_its_listener_starts_nothing),
        STAGED(a_refused_sandbox_starts_nothing),
        STAGED(freeing_in_the_middle_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
