/* SPDX-License-Identifier: MIT */
#include "init/prestart.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "core/languages.h"
#include "init/runner.h"

enum {
    NOT_STARTED = 126,
    ROOM = 4096, /* for a shell's arguments, and its environment, where /proc shows them */
};

/* How an interpreter hears of its job. Not a descriptor that it inherits: PHP could not close it.
 */
#define HOLD "/tmp/.sandbox-hold"

/* The text of lang/wrap/call_<name>.*, embedded. */
const char *wrap_call_find(const char *name, size_t *ret_n);

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
    static const int all[] = {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_CPU};
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

/* The same arguments as those of a language that is started for its job (lang/lang_call.c). */
__attribute__((noreturn)) static void become(const struct call_lang *l)
{
    char *argv[LANGUAGE_ARGS_MAX + 5];
    size_t n = 0;

    argv[n++] = (char *)(uintptr_t)l->interpreter;
    for (size_t i = 0; l->args[i]; i++)
        argv[n++] = (char *)(uintptr_t)l->args[i];
    argv[n++] = (char *)(uintptr_t)wrap_call_find(l->name, NULL);
    argv[n++] = (char *)(uintptr_t) "hold"; /* tells the wrapper that it was started ahead */
    argv[n++] = (char *)(uintptr_t)HOLD;
    argv[n] = NULL;
    (void)execve(argv[0], argv, environment);
    _exit(NOT_STARTED);
}

static void run(void *user)
{
    const enum plan_template *of = user;
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
    become(language_of_template(*of));
}

/* ---- a shell ---- */

/* As many arguments as its job will have (lang_shell.c). They are never looked at, but for the case
 * that nobody was there to put others in their place. */
static void run_shell(void *user)
{
    const enum plan_template *of = user;
    char text[ROOM] = "exit 126 #", room[ROOM] = "ROOM=";
    char *argv[] = {(char *)(uintptr_t)language_of_template(*of)->interpreter,
                    (char *)"-c",
                    (char *)"--",
                    text,
                    (char *)"bash",
                    NULL};
    char *envp[] = {(char *)"LD_PRELOAD=/opt/sandbox-executor/bin/" PRESTART_SHELL, room, NULL};

    memset(text + strlen(text), ' ', sizeof text - 1 - strlen(text));
    memset(room + strlen(room), ' ', sizeof room - 1 - strlen(room));
    (void)execve(argv[0], argv, envp);
    runner_fail("start", -errno);
}

/* ---- which ---- */

/* One for each that there could be: which language it is, the table of languages says. */
#define FIRST TEMPLATE_PRESTARTED_FIRST
static const enum plan_template known[] = {FIRST,     FIRST + 1, FIRST + 2, FIRST + 3,
                                           FIRST + 4, FIRST + 5, FIRST + 6, FIRST + 7};
#define HOST(i)                                                                                    \
    {                                                                                              \
        run, (void *)(uintptr_t)&known[i]                                                          \
    }
static const struct init_host hosts[] = {
    {run_shell, (void *)(uintptr_t)&known[0]},
    HOST(1),
    HOST(2),
    HOST(3),
    HOST(4),
    HOST(5),
    HOST(6),
    HOST(7),
};
_Static_assert(TEMPLATE_SHELL == FIRST, "the shell is the first");
_Static_assert(TEMPLATE_WASM_FIRST - FIRST <= ARRAY_LEN(hosts), "room for all");

const struct init_host *prestart_host(enum plan_template t)
{
    return template_is_prestarted(t) ? &hosts[t - FIRST] : NULL;
}
