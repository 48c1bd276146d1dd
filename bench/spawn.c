/* SPDX-License-Identifier: MIT */
/*
 * bench-spawn [-n runs] [-c at-once] [-i interval-us] [-w warm-up] -- program argument...
 *
 * Starts a program over and over with a clean environment, keeps `at-once` of
 * them running, and prints how long each took from before the start until it
 * was reaped. This is the floor that bench/run compares the service with.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

enum { AT_ONCE_MAX = 1024, RUNS_MAX = 1000000 };

struct plan {
    char **argv;
    size_t runs, at_once, warm_up;
    uint64_t interval_ns;
};

struct child {
    pid_t pid; /* 0: free */
    uint64_t began;
};

static int spawn(const struct plan *p, struct child *c)
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", home[] = "HOME=/tmp",
                lang[] = "LANG=C.UTF-8";
    char *envp[] = {path, home, lang, NULL};
    posix_spawn_file_actions_t actions;
    int r;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    c->began = now_ns();
    r = posix_spawn(&c->pid, p->argv[0], &actions, NULL, p->argv, envp);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (r == 0)
        return 0;
    c->pid = 0;
    (void)fprintf(stderr, "bench-spawn: %s: %s\n", p->argv[0], strerror(r));
    return -1;
}

static struct child *child_find(struct child *c, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].pid == pid)
            return &c[i];
    return NULL;
}

static void reap_one(struct child *c, size_t n, struct sample *s)
{
    int status;
    pid_t pid = wait(&status);
    struct child *found = pid > 0 ? child_find(c, n, pid) : NULL;

    if (!found)
        return;
    found->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        sample_add(s, now_ns() - found->began);
    else
        s->failed++;
}

static void wait_until(uint64_t at)
{
    struct timespec t = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static int run_all(const struct plan *p, size_t runs, struct sample *s)
{
    struct child children[AT_ONCE_MAX] = {0};
    size_t busy = 0;

    s->began = now_ns();
    for (size_t i = 0; i < runs; i++) {
        if (busy == p->at_once) {
            reap_one(children, p->at_once, s);
            busy--;
        }
        if (p->interval_ns)
            wait_until(s->began + i * p->interval_ns);
        if (spawn(p, child_find(children, p->at_once, 0)) < 0)
            return -1;
        busy++;
    }
    for (; busy > 0; busy--)
        reap_one(children, p->at_once, s);
    s->ended = now_ns();
    return 0;
}

static int64_t children_cpu_ns(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_CHILDREN, &u);
    return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static size_t number(const char *text, size_t max)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (*end != '\0' || v > max) {
        (void)fprintf(stderr, "bench-spawn: bad number '%s'\n", text);
        exit(2);
    }
    return v;
}

int main(int argc, char **argv)
{
    struct plan p = {.runs = 100, .at_once = 1, .warm_up = 3};
    struct sample warm, measured;
    int64_t before;

    for (int opt; (opt = getopt(argc, argv, "+n:c:i:w:")) != -1;) {
        switch (opt) {
        case 'n':
            p.runs = number(optarg, RUNS_MAX);
            break;
        case 'c':
            p.at_once = number(optarg, AT_ONCE_MAX);
            break;
        case 'i':
            p.interval_ns = (uint64_t)number(optarg, 10000000) * 1000;
            break;
        case 'w':
            p.warm_up = number(optarg, RUNS_MAX);
            break;
        default:
            return 2;
        }
    }
    p.argv = argv + optind;
    if (!p.argv[0] || p.at_once == 0)
        return 2;
    sample_init(&warm, p.warm_up);
    sample_init(&measured, p.runs);
    if (run_all(&p, p.warm_up, &warm) < 0)
        return 1;
    before = children_cpu_ns();
    if (run_all(&p, p.runs, &measured) < 0)
        return 1;
    sample_print(&measured, children_cpu_ns() - before);
    sample_done(&warm);
    sample_done(&measured);
    return 0;
}
