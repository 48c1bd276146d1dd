/* SPDX-License-Identifier: MIT */
/*
 * bench-sandbox [-n runs] [-c at-once] [-i interval-us] [-w warm-up] -- /path/to/program
 * argument...
 *
 * Fresh sandboxes without the HTTP service: each is made, runs the program, and
 * everything in it is dead and reported before the time is taken. Options of
 * the daemon apply through the environment (POOL_EXEC=0: none is made ahead).
 * With -s it says "ready" before the measurement and waits for a line, and for
 * the end of standard input after it.
 */
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "core/config.h"
#include "core/port_run.h"
#include "jail/jails.h"
#include "sample.h"

extern char **environ;

enum { AT_ONCE_MAX = 1024, RUNS_MAX = 1000000, MIB = 1024 * 1024, WALL_MS = 60000 };

struct bench;

struct place {
    struct bench *bench;
    struct run *run; /* owned */
    struct run_result result;
    struct event *again; /* owned: starts the next run outside of the callback */
    uint64_t began;
};

struct bench {
    struct event_base *loop;
    struct run_engine *engine;
    struct plan plan;
    struct place place[AT_ONCE_MAX];
    struct sample *sample;
    size_t started, finished, goal;
    uint64_t interval_ns;
};

_Noreturn static void die(const struct err *e)
{
    (void)fprintf(stderr, "bench-sandbox: %s\n", e->text);
    exit(1);
}

/* ---- one run after the other in each place ---- */

static void on_done(void *user)
{
    struct place *p = user;
    struct bench *b = p->bench;

    if (p->result.reason == END_EXIT && p->result.exit_code == 0)
        sample_add(b->sample, now_ns() - p->began);
    else if (b->sample->failed++ == 0)
        (void)fprintf(stderr, "bench-sandbox: %s %d %s\n", end_reason_name(p->result.reason),
                      p->result.exit_code, p->result.fault);
    if (++b->finished == b->goal)
        (void)event_base_loopbreak(b->loop);
    event_active(p->again, 0, 0);
}

static void start(struct place *p)
{
    struct run_events events = {.done = on_done, .user = p};
    struct err e;

    p->bench->started++;
    p->began = now_ns();
    run_result_init(&p->result, &p->bench->plan.limits);
    if (run_start(p->bench->engine, &p->bench->plan, &p->result, &events, &p->run, &e) < 0)
        die(&e);
}

static void on_again(evutil_socket_t fd, short what, void *user)
{
    struct place *p = user;
    struct bench *b = p->bench;
    uint64_t due = b->sample->began + b->started * b->interval_ns, now = now_ns();

    (void)fd, (void)what;
    if (p->run) {
        run_free(p->run);
        p->run = NULL;
        run_result_done(&p->result);
    }
    if (b->started == b->goal)
        return;
    if (b->interval_ns && due > now) {
        struct timeval wait = {.tv_usec = (suseconds_t)((due - now) / 1000)};

        (void)event_add(p->again, &wait);
        return;
    }
    start(p);
}

static void run_all(struct bench *b, size_t at_once, size_t goal, struct sample *s)
{
    b->sample = s;
    b->started = b->finished = 0;
    b->goal = goal;
    s->began = now_ns();
    for (size_t i = 0; i < at_once && i < goal; i++)
        event_active(b->place[i].again, 0, 0);
    if (goal > 0)
        (void)event_base_dispatch(b->loop);
    s->ended = now_ns();
    for (size_t i = 0; i < at_once; i++)
        on_again(-1, 0, &b->place[i]);
}

/* ---- set-up ---- */

static struct limits limits_from(const struct config *c)
{
    return (struct limits){.wall_ms = WALL_MS,
                           .memory_max = c->memory_mb * MIB,
                           .workspace_max = c->workspace_mb * MIB,
                           .workspace_files = c->workspace_files,
                           .tmp_max = c->tmp_mb * MIB,
                           .output_max = c->output_max,
                           .result_max = c->result_max,
                           .pids_max = (uint32_t)c->pids_max,
                           .files_max = (uint32_t)c->files_max};
}

static size_t number(const char *text, size_t max)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*end != '\0' || v > max) {
        (void)fprintf(stderr, "bench-sandbox: bad number '%s'\n", text);
        exit(2);
    }
    return v;
}

struct setup {
    size_t runs, at_once, warm_up;
    uint64_t interval_ns;
    bool stops; /* for whoever reads the CPU time */
    char **argv;
};

static int parse(struct setup *s, int argc, char **argv)
{
    for (int opt; (opt = getopt(argc, argv, "+sn:c:i:w:")) != -1;) {
        switch (opt) {
        case 's':
            s->stops = true;
            break;
        case 'n':
            s->runs = number(optarg, RUNS_MAX);
            break;
        case 'c':
            s->at_once = number(optarg, AT_ONCE_MAX);
            break;
        case 'i':
            s->interval_ns = (uint64_t)number(optarg, 900000) * 1000;
            break;
        case 'w':
            s->warm_up = number(optarg, RUNS_MAX);
            break;
        default:
            return -1;
        }
    }
    s->argv = argv + optind;
    return s->argv[0] && s->at_once > 0 ? 0 : -1;
}

static void bench_open(struct bench *b, const struct config *c, struct jail *jail)
{
    struct err e;

    if (run_engine_open(b->loop, jail, &b->engine, &e) < 0)
        die(&e);
    for (size_t i = 0; i < AT_ONCE_MAX; i++) {
        b->place[i].bench = b;
        b->place[i].again = event_new(b->loop, -1, 0, on_again, &b->place[i]);
        if (!b->place[i].again)
            abort();
    }
    b->plan.limits = limits_from(c);
}

static void bench_close(struct bench *b)
{
    for (size_t i = 0; i < AT_ONCE_MAX; i++)
        event_free(b->place[i].again);
    run_engine_close(b->engine);
}

/* Waits for a line, or the end, on standard input. */
static void stop(const struct setup *s, const char *word)
{
    if (!s->stops)
        return;
    (void)fputs(word, stdout);
    (void)fflush(stdout);
    for (int c = 0; c != EOF && c != '\n';)
        c = getchar();
}

int main(int argc, char **argv)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", "HOME=/workspace", NULL};
    static struct bench b;
    static struct config config;
    struct setup s = {.runs = 200, .at_once = 1, .warm_up = 10};
    struct log log = {.fd = 2, .level = LOG_ERROR};
    struct sample warm, measured;
    struct jail_option jails[JAILS_MAX] = {0};
    struct jail_conf conf = {.config = &config, .log = &log, .user = geteuid(), .group = getegid()};
    size_t first;
    struct err e;
    char *no_flags[] = {argv[0], NULL};

    if (parse(&s, argc, argv) < 0)
        return 2;
    (void)signal(SIGPIPE, SIG_IGN);
    b.loop = event_base_new();
    conf.loop = b.loop;
    if (config_load(&config, 1, no_flags, environ, &e) < 0 ||
        jails_open(&conf, jails, &first, &e) < 0)
        die(&e);
    b.plan = (struct plan){.argv = (const char *const *)s.argv, .envp = envp, .cwd = "/workspace"};
    b.interval_ns = s.interval_ns;
    bench_open(&b, &config, jails[first].jail);
    sample_init(&warm, s.warm_up);
    sample_init(&measured, s.runs);
    run_all(&b, s.at_once, s.warm_up, &warm);
    stop(&s, "ready\n");
    run_all(&b, s.at_once, s.runs, &measured);
    sample_print(&measured, -1);
    stop(&s, "");
    sample_done(&warm);
    sample_done(&measured);
    bench_close(&b);
    jails_close(jails);
    event_base_free(b.loop);
    return 0;
}
