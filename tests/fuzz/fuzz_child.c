/* SPDX-License-Identifier: MIT */
/*
 * A sandbox that lies: init and the program say what the input tells them, in its order. The run
 * must end exactly once, or be given up, within the limits, and must keep no descriptor.
 *
 * Records: one byte says what, one how long, then so many bytes.
 */
#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/port_run.h"
#include "fake/fake_jail.h"
#include "wire/wire.h"

enum { OUTPUT_MAX = 64, RESULT_MAX = 200, RECORDS_MAX = 64 };

enum what { SAY, SAY_WITH_FILE, SAY_WITH_PIPE, CHANNEL, OUT, ERR, PROGRAM_GONE, STOP, WHAT_COUNT };

struct stage {
    struct event_base *base;
    struct fake_jail jail;
    struct run_engine *engine;
    struct run_result result;
    struct run *run;
    int done, files;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void on_progress(void *user, const char *json, size_t n)
{
    (void)user, (void)json;
    assert(n <= RESULT_MAX + 1024 * 1024);
}

static void on_file(void *user, struct run_file *f)
{
    struct stage *s = user;

    assert(f->fd >= 0 && f->name_n <= INIT_NAME_MAX && f->name[f->name_n] == '\0');
    s->files++;
}

static void on_done(void *user)
{
    struct stage *s = user;

    s->done++;
}

static void turn(struct stage *s)
{
    for (int i = 0; i < 3; i++)
        assert(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
}

/* A message of init: its head comes from the bytes as far as they reach. */
static void say(struct stage *s, const uint8_t *p, size_t n, int fd)
{
    char bytes[sizeof(struct init_msg) + 256] = "";
    struct init_msg m = {.verb = n > 0 ? p[0] : 0};
    size_t rest = n > 4 ? n - 4 : 0;

    if (n > 1)
        m.status = (int32_t)(p[1] * 257);
    if (n > 2)
        m.arg = (int8_t)p[2];
    m.name_n = n > 3 && p[3] != 255 ? (uint32_t)rest : 0x7fffffff;
    memcpy(bytes, &m, sizeof m);
    memcpy(bytes + sizeof m, p + (n - rest), rest);
    if (s->jail.peer[0].ctl >= 0)
        (void)!fd_send(s->jail.peer[0].ctl, bytes, sizeof m + rest, &fd, fd >= 0 ? 1 : 0);
}

static void say_with(struct stage *s, enum what what, const uint8_t *p, size_t n)
{
    int pipe_ends[2] = {-1, -1};
    cleanup_close int fd = what == SAY_WITH_FILE ? memfd_create("f", MFD_CLOEXEC) : -1;

    if (what == SAY_WITH_PIPE && fd_pipe(pipe_ends) == 0)
        fd = pipe_ends[0];
    say(s, p, n, fd);
    closep(&pipe_ends[1]);
}

static void send_to(int fd, const uint8_t *p, size_t n)
{
    if (fd >= 0 && n > 0)
        (void)!write(fd, p, n);
}

static void perform(struct stage *s, enum what what, const uint8_t *p, size_t n)
{
    const struct fake_peer *peer = &s->jail.peer[0];

    switch (what) {
    case SAY:
    case SAY_WITH_FILE:
    case SAY_WITH_PIPE:
        say_with(s, what, p, n);
        break;
    case CHANNEL:
        send_to(peer->job, p, n);
        break;
    case OUT:
        send_to(peer->out, p, n);
        break;
    case ERR:
        send_to(peer->err, p, n);
        break;
    case PROGRAM_GONE:
        fake_program_gone(&s->jail, 0);
        break;
    case STOP:
    case WHAT_COUNT:
        if (!s->done)
            run_stop(s->run, END_CANCELLED);
        break;
    }
    turn(s);
}

static void play(struct stage *s, const uint8_t *data, size_t n)
{
    for (int records = 0; n >= 2 && records < RECORDS_MAX && !s->done; records++) {
        size_t len = data[1] < n - 2 ? data[1] : n - 2;

        perform(s, (enum what)(data[0] % WHAT_COUNT), data + 2, len);
        data += 2 + len;
        n -= 2 + len;
    }
}

static void start(struct stage *s)
{
    static const char *const argv[] = {"/bin/prog", NULL}, *const envp[] = {NULL};
    struct plan p = {.argv = argv, .envp = envp, .cwd = "/workspace"};
    const struct run_events events = {
        .progress = on_progress, .file = on_file, .done = on_done, .user = s};
    struct err e;

    p.limits = (struct limits){.wall_ms = 60000,
                               .output_max = OUTPUT_MAX,
                               .result_max = RESULT_MAX,
                               .pids_max = 4,
                               .files_max = 8,
                               .memory_max = 1 << 20};
    s->base = event_base_new();
    fake_jail_init(&s->jail);
    run_result_init(&s->result, &p.limits);
    if (!s->base || run_engine_open(s->base, &s->jail.jail, &s->engine, &e) < 0 ||
        run_start(s->engine, &p, &s->result, &events, &s->run, &e) < 0)
        abort();
}

static void finish(struct stage *s)
{
    fake_program_gone(&s->jail, 0);
    fake_init_gone(&s->jail, 0);
    turn(s);
    assert(s->done <= 1);
    assert(s->result.out.n <= OUTPUT_MAX && s->result.result.n <= RESULT_MAX);
    run_free(s->run);
    run_engine_close(s->engine);
    assert(s->jail.released == s->jail.taken);
    run_result_done(&s->result);
    fake_jail_done(&s->jail);
    event_base_free(s->base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct stage *s = calloc(1, sizeof *s);
    int before = fcntl(0, F_DUPFD_CLOEXEC, 3), after;

    assert(s && before >= 0);
    (void)close(before);
    (void)signal(SIGPIPE, SIG_IGN);
    start(s);
    play(s, data, n);
    finish(s);
    free(s);
    after = fcntl(0, F_DUPFD_CLOEXEC, 3);
    assert(after == before); /* the lowest free number is what it was: nothing was kept */
    (void)close(after);
    return 0;
}
