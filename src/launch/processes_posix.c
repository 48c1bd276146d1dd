/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/processes.h"

enum { PROCESSES_MAX = 65536, FIRST_ROOM = 256, LINE_ROOM = 256 };

static const char program[] = "/bin/ps";

/* A session of its own: it is not of the tree that is asked about. */
__attribute__((noreturn)) static void become_ps(int out)
{
    static const char *const argv[] = {"ps", "-A",   "-o", "pid=", "-o", "ppid=", "-o", "pgid=",
                                       "-o", "uid=", "-o", "rss=", "-o", "stat=", NULL};
    static const char *const envp[] = {"LC_ALL=C", NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    (void)dprintf(out, "%ld\n", (long)getpid());
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0)
        _exit(127);
    (void)execve(program, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp);
    _exit(127);
}

/* Nobody's child: what it uses must not count as the sandbox's. Its words come to an end with it.
 */
static int start_ps(int *ret_from, pid_t *ret_between)
{
    cleanup_close int from = -1, to = -1;
    int pair[2], r = fd_pipe(pair);
    pid_t pid;

    if (r < 0)
        return r;
    from = pair[0], to = pair[1];
    pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        pid_t ps = fork();

        if (ps == 0)
            become_ps(to);
        _exit(ps < 0);
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *ret_from = take_fd(&from);
    *ret_between = pid;
    return 0;
}

static int add(struct processes *all, const struct process *p)
{
    if (all->n == all->room) {
        size_t room = all->room ? all->room * 2 : FIRST_ROOM;
        struct process *more = room <= PROCESSES_MAX ? realloc(all->v, room * sizeof *more) : NULL;

        if (!more)
            return -ENOMEM;
        all->v = more;
        all->room = room;
    }
    all->v[all->n++] = *p;
    return 0;
}

/* "pid ppid pgid uid rss stat" */
static bool parse(const char *line, struct process *ret)
{
    long pid, parent, group;
    unsigned long user, kib;
    char state[8];

    if (sscanf(line, "%ld %ld %ld %lu %lu %7s", &pid, &parent, &group, &user, &kib, state) != 6)
        return false;
    *ret = (struct process){.pid = (pid_t)pid,
                            .parent = (pid_t)parent,
                            .group = (pid_t)group,
                            .session = getsid((pid_t)pid),
                            .user = (uid_t)user,
                            .resident = (uint64_t)kib * 1024,
                            .dead = state[0] == 'Z'};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The first line is the number of the ps itself. */
static int read_lines(FILE *in, pid_t between, struct processes *all)
{
    char line[LINE_ROOM];
    struct process p;
    pid_t own = 0;
    int r = 0;

    if (fgets(line, sizeof line, in))
        own = (pid_t)strtol(line, NULL, 10);
    while (r == 0 && fgets(line, sizeof line, in))
        if (parse(line, &p) && p.pid != own && p.pid != between)
            r = add(all, &p);
    return r ? r : all->n == 0 ? -ENOEXEC : 0; /* we ourselves are there at least */
}

int processes_read(struct processes *ret)
{
    struct processes all = {0};
    int from = -1;
    pid_t between = 0;
    FILE *in;
    int r = start_ps(&from, &between);

    if (r < 0)
        return r;
    in = fdopen(from, "r");
    if (!in) {
        (void)close(from);
        return -ENOMEM;
    }
    r = read_lines(in, between, &all);
    (void)fclose(in);
    if (r < 0) {
        processes_free(&all);
        return r;
    }
    qsort(all.v, all.n, sizeof *all.v, by_pid);
    *ret = all;
    return 0;
}

void processes_free(struct processes *p)
{
    free(p->v);
    *p = (struct processes){0};
}
