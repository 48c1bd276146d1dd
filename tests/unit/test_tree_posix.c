/* SPDX-License-Identifier: MIT */
/* Who belongs to a tree where nobody is the reaper of orphans. Linked with launch/tree_posix.c. */
#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/processes.h"
#include "launch/tree.h"

enum { TOP = 100, PASSES = 2000 };

/* Ascending pids, as they are read. */
static void belonging_is_by_parent_and_by_session(void **state)
{
    static const struct {
        struct process p;
        bool below;
        const char *what;
    } rows[] = {
        {{.pid = 1, .session = 1},                    false, "somebody else"       },
        {{.pid = 50, .parent = 1, .session = 50},     false, "the one who asks"    },
        {{.pid = TOP, .parent = 50, .session = TOP},  false, "top itself"          },
        {{.pid = 101, .parent = TOP, .session = TOP}, true,  "a child"             },
        {{.pid = 102, .parent = 101, .session = TOP}, true,  "its child"           },
        {{.pid = 103, .parent = 1, .session = TOP},   true,  "an orphan"           },
        {{.pid = 104, .parent = 102, .session = 104}, true,  "a session of its own"},
        {{.pid = 105, .parent = 1, .session = 104},   true,  "an orphan in there"  },
        {{.pid = 106, .parent = 105, .session = 106}, true,  "and below that"      },
        {{.pid = 107, .parent = 1, .session = 107},   false, "one that got away"   },
        {{.pid = 108, .parent = 107, .session = 107}, false, "its child"           },
    };
    struct process v[ARRAY_LEN(rows)];
    struct processes all = {.v = v, .n = ARRAY_LEN(rows)};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        v[i] = rows[i].p;
    tree_mark(&all, TOP);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (v[i].below != rows[i].below)
            fail_msg("%s", rows[i].what);
}

static const struct process *find(const struct processes *all, pid_t pid)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].pid == pid)
            return &all->v[i];
    return NULL;
}

static void the_table_has_us_and_not_who_was_asked(void **state)
{
    struct processes all;
    const struct process *us;

    (void)state;
    assert_int_equal(processes_read(&all), 0);
    us = find(&all, getpid());
    assert_non_null(us);
    assert_int_equal(us->parent, getppid());
    assert_int_equal(us->group, getpgrp());
    assert_int_equal(us->session, getsid(0));
    assert_int_equal(us->user, getuid());
    assert_true(us->resident > 0 && !us->dead);
    for (size_t i = 0; i < all.n; i++) {
        assert_true(i == 0 || all.v[i - 1].pid < all.v[i].pid);
        assert_int_not_equal(all.v[i].parent, getpid());
    }
    processes_free(&all);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* and it left no child */
    assert_int_equal(errno, ECHILD);
}

/* Never returns. Each tells through the pipe that it is there, and keeps it open. */
static void grow(int told)
{
    (void)setsid();
    if (fork() == 0 && fork() == 0) { /* a child's child; the child goes on below */
        (void)!write(told, "x", 1);
        for (;;)
            (void)pause();
    }
    if (fork() == 0) {
        (void)setsid();
        (void)!write(told, "x", 1);
        for (;;)
            (void)pause();
    }
    (void)!write(told, "x", 1);
    for (;;)
        (void)pause();
}

/* All of it dies, and nothing else: the pipe ends when the last one is gone. */
static void a_tree_is_killed_whole(void **state)
{
    int pair[2];
    char x;
    pid_t top;
    size_t passes = 0;

    (void)state;
    assert_int_equal(fd_pipe(pair), 0);
    top = fork();
    assert_true(top >= 0);
    if (top == 0)
        grow(pair[1]);
    (void)close(pair[1]);
    for (int i = 0; i < 5; i++) /* top, two below it with one and two of theirs */
        assert_int_equal(read(pair[0], &x, 1), 1);
    assert_true(tree_count(top) >= 5);
    assert_true(tree_strays(top) >= 4);
    while (tree_kill(top, NULL, 0) > 0 && ++passes < PASSES)
        (void)poll(NULL, 0, 5);
    assert_int_equal(tree_strays(top), 0);
    assert_int_equal(kill(top, 0), 0); /* top itself is spared */
    assert_int_equal(kill(top, SIGKILL), 0);
    assert_int_equal(waitpid(top, NULL, 0), top);
    assert_int_equal(read(pair[0], &x, 1), 0);
    (void)close(pair[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(belonging_is_by_parent_and_by_session),
        cmocka_unit_test(the_table_has_us_and_not_who_was_asked),
        cmocka_unit_test(a_tree_is_killed_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
