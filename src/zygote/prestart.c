/* SPDX-License-Identifier: MIT */
#include "zygote/prestart.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "init/runner.h"

enum {
    ARGS_MAX = 6,
    NOT_STARTED = 126,
    ROOM = 4096, /* for a shell's arguments, and its environment, where /proc shows them */
};

/* How an interpreter hears of its job. Not a descriptor that it inherits: PHP could not close it.
 */
#define HOLD "/tmp/.sandbox-hold"

/* lang/wrap/, embedded */
extern const char wrap_call_ruby[], wrap_call_php[], wrap_call_perl[];

struct row {
    const char *argv[ARGS_MAX]; /* without the wrapper's text, which is behind them */
    const char *wrapper;
};

static const struct row ruby = {
    {"/usr/bin/ruby", "--disable=gems", "-e"},
    wrap_call_ruby
};
static const struct row php = {
    {"/usr/bin/php", "-n", "-r"},
    wrap_call_php
};
static const struct row perl = {
    {"/usr/bin/perl", "-e"},
    wrap_call_perl
};

/* The job's own comes later; these are what interpreters look at when they start. */
static char *const environment[] = {
#define VARIABLE(name, value, unless) (char *)name "=" value,
#include "core/variables.def"
#undef VARIABLE
    NULL,
};

/* ---- the helper ---- */

/* What the helper was limited to, the interpreter is. */
static int limit(pid_t first)
{
    static const __rlimit_resource_t all[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE,
                                              RLIMIT_CPU};
    struct rlimit l;

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (getrlimit(all[i], &l) < 0 || prlimit(first, all[i], &l, NULL) < 0)
            return -errno;
    return 0;
}

/* Directory and environment, a NUL behind each. */
static int tell(int fd, const struct job *j)
{
    int r = fd_write_all(fd, j->cwd, strlen(j->cwd) + 1);

    for (char **e = j->envp; *e && r == 0; e++)
        r = fd_write_all(fd, *e, strlen(*e) + 1);
    return r;
}

/* Opened when the interpreter does; then the name is free for whatever the job brings. */
static int hold_open(void)
{
    int fd = open(HOLD, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 || unlink(HOLD) < 0 ? -1 : fd;
}

__attribute__((noreturn)) static void help(pid_t first)
{
    const char *what;
    struct job j;
    int hold = hold_open(), r;

    if (hold < 0)
        _exit(NOT_STARTED);
    r = runner_read(NULL, &j, &what);

    if (r == -ENODATA)
        _exit(0); /* never used */
    if (r == 0) {
        what = "limits";
        r = limit(first);
    }
    if (r == 0) {
        what = "start";
        r = tell(hold, &j);
    }
    if (r < 0)
        runner_fail(what, r);
    _exit(0);
}

/* ---- the interpreter ---- */

__attribute__((noreturn)) static void become(const struct row *row)
{
    char *argv[ARGS_MAX + 4];
    size_t n = 0;

    for (; n < ARGS_MAX && row->argv[n]; n++)
        argv[n] = (char *)(uintptr_t)row->argv[n];
    argv[n++] = (char *)(uintptr_t)row->wrapper;
    argv[n++] = (char *)(uintptr_t) "hold"; /* tells the wrapper that it was started ahead */
    argv[n++] = (char *)(uintptr_t)HOLD;
    argv[n] = NULL;
    (void)execve(argv[0], argv, environment);
    _exit(NOT_STARTED);
}

static void run(void *user)
{
    pid_t first = getpid(), pid;
    int r;

    if (mkfifo(HOLD, 0600) < 0)
        runner_fail("start", -errno);
    pid = fork();
    if (pid == 0) {
        pid = fork();
        if (pid != 0)
            _exit(pid < 0);
        help(first);
    }
    if (pid < 0 || waitpid(pid, &r, 0) < 0 || r != 0)
        runner_fail("start", pid < 0 ? -errno : -EAGAIN);
    become(user);
}

/* ---- a shell ---- */

static const struct row shell = {{"/bin/bash"}, NULL};

/* As many arguments as its job will have (lang_shell.c). They are never looked at, but for the case
 * that nobody was there to put others in their place. */
static void run_shell(void *user)
{
    const struct row *row = user;
    char text[ROOM] = "exit 126 #", room[ROOM] = "ROOM=";
    char *argv[] = {
        (char *)(uintptr_t)row->argv[0], (char *)"-c", (char *)"--", text, (char *)"bash", NULL};
    char *envp[] = {(char *)"LD_PRELOAD=/opt/sandbox-executor/bin/" PRESTART_SHELL, room, NULL};

    memset(text + strlen(text), ' ', sizeof text - 1 - strlen(text));
    memset(room + strlen(room), ' ', sizeof room - 1 - strlen(room));
    (void)execve(argv[0], argv, envp);
    runner_fail("start", -errno);
}

/* ---- which ---- */

static const struct init_host hosts[] = {
    {run_shell, (void *)(uintptr_t)&shell, NULL},
    {run,       (void *)(uintptr_t)&ruby,  NULL},
    {run,       (void *)(uintptr_t)&php,   NULL},
    {run,       (void *)(uintptr_t)&perl,  NULL},
};

const struct init_host *prestart_host(enum plan_template t)
{
    return template_is_prestarted(t) ? &hosts[t - TEMPLATE_PRESTARTED_FIRST] : NULL;
}

bool prestart_has(enum plan_template t, int programs)
{
    const struct init_host *host = prestart_host(t);

    if (!host || access(((const struct row *)host->user)->argv[0], X_OK) < 0)
        return false;
    return t != TEMPLATE_SHELL || faccessat(programs, PRESTART_SHELL, R_OK, 0) == 0;
}
