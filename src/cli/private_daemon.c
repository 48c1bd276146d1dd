/* SPDX-License-Identifier: MIT */
#include "cli/private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/os.h"
#include "base/random.h"
#include "store/tree.h"

enum {
    START_MS = 60000,
    END_MS = 2000, /* the daemon has so long to end in order */
    LINE_MAX_BYTES = 4096,
    SECRET_BYTES = 24,
};

static int pid_watch(pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    return fd < 0 ? -errno : fd;
}

/* ---- in the guardian ---- */

/* What was set for other daemons of this user is none of its business. */
static void set_environment(const char *state, const char *secret)
{
    static const char *const others[] = {
        "PORT",           "SANDBOX_SECRET_FILE", "SANDBOX_SECRET_PATH", "CONTROL_PLANE_URL",
        "WORKSPACE_PATH", "SESSION_ID"};
    const struct {
        const char *name, *value;
        int stronger; /* than what the user has set */
    } own[] = {
        {"EXECUTOR_HOST",     "127.0.0.1", 1},
        {"EXECUTOR_PORT",     "0",         1},
        {"PROXY_PORT",        "0",         1},
        {"STATE_DIR",         state,       1},
        {"SANDBOX_AUTH_MODE", "static",    1},
        {"SANDBOX_SECRET",    secret,      1},
        {"SHUTDOWN_GRACE",    "0",         1},
        {"LOG_LEVEL",         "warn",      0},
    };

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        (void)unsetenv(others[i]);
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        (void)setenv(own[i].name, own[i].value, own[i].stronger);
}

/* `said`: what it prints. Does not return. */
static void become_daemon(const char *path, int said)
{
    char *const argv[] = {(char[]){"sandbox-executor"}, NULL};
    cleanup_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* forgotten where it becomes another user */
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(said, STDOUT_FILENO) >= 0)
        (void)execv(path, argv);
    (void)fprintf(stderr, "sbx: %s: %s\n", path, strerror(errno));
    _exit(EXIT_FAILURE);
}

static void wait_for_end(pid_t daemon, int life)
{
    cleanup_close int watching = pid_watch(daemon);
    struct pollfd fds[] = {
        {.fd = life,     .events = POLLIN},
        {.fd = watching, .events = POLLIN},
    };

    while (poll(fds, watching < 0 ? 1 : 2, -1) < 0 && errno == EINTR)
        ;
    (void)kill(daemon, SIGTERM);
    if (watching < 0 || poll(&fds[1], 1, END_MS) <= 0)
        (void)kill(daemon, SIGKILL);
    (void)waitpid(daemon, NULL, 0);
}

/* Does not return. */
static void guard(const char *state, const char *secret, int life, int said)
{
    char path[PATH_MAX] = "";
    pid_t daemon = -1;

    (void)setsid();
    (void)signal(SIGPIPE, SIG_DFL);
    set_environment(state, secret);
    if (os_beside("sandbox-executor", path, sizeof path) == 0)
        daemon = fork();
    if (daemon == 0)
        become_daemon(path, said);
    (void)close(said);
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    if (daemon > 0)
        wait_for_end(daemon, life);
    (void)!tree_remove(AT_FDCWD, state);
    _exit(EXIT_SUCCESS);
}

/* ---- in this process ---- */

/* "Sandbox Executor 0.1.0 is ready: http://127.0.0.1:40001, jail …" */
static bool take_address(char *line, struct daemon_at *ret)
{
    static const char mark[] = "is ready: ";
    const char *at = strstr(line, mark);

    if (!at)
        return false;
    at += sizeof mark - 1;
    (void)snprintf(ret->url, sizeof ret->url, "%.*s", (int)strcspn(at, ", \n"), at);
    return true;
}

/* -1: it has ended, or said nothing in time. */
static int read_address(int said, struct daemon_at *ret)
{
    uint64_t until = clock_us() + START_MS * 1000ull;
    char text[LINE_MAX_BYTES] = "";
    size_t n = 0;

    while (n < sizeof text - 1 && clock_us() < until) {
        struct pollfd fd = {.fd = said, .events = POLLIN};
        ssize_t got = poll(&fd, 1, 1000) > 0 ? read(said, text + n, sizeof text - 1 - n) : -2;

        if (got == 0 || (got == -1 && errno != EINTR))
            return -1;
        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
        if (strchr(text, '\n') && take_address(text, ret))
            return 0;
    }
    return -1;
}

static int make_state(char out[PATH_MAX], struct err *e)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    const char *below = runtime && *runtime && geteuid() != 0 ? runtime
                        : temporary && *temporary             ? temporary
                                                              : "/tmp";

    if (snprintf(out, PATH_MAX, "%s/sbx-private-XXXXXX", below) >= PATH_MAX || !mkdtemp(out))
        return err_sys(e, -errno, "cannot make a directory below %.200s", below);
    return 0;
}

static int start(struct private_daemon *p, struct daemon_at *ret, struct err *e)
{
    int life[2] = {-1, -1}, said[2] = {-1, -1};
    char state[PATH_MAX];
    int r;

    if (make_state(state, e) < 0)
        return -1;
    *ret = (struct daemon_at){0};
    random_hex(ret->secret, SECRET_BYTES);
    r = fd_pipe(life);
    r = r < 0 ? r : fd_pipe(said);
    p->guardian = r < 0 ? -1 : fork();
    if (p->guardian == 0) {
        (void)close(life[1]);
        (void)close(said[0]);
        guard(state, ret->secret, life[0], said[1]);
    }
    (void)close(life[0]);
    (void)close(said[1]);
    p->life = life[1];
    p->watching = p->guardian > 0 ? pid_watch(p->guardian) : -1;
    if (p->guardian > 0 && read_address(said[0], ret) == 0) {
        (void)close(said[0]);
        return 0;
    }
    (void)close(said[0]);
    private_daemon_end(p);
    return err_set(e, ERR_HOST, "a daemon of our own does not start; sbx doctor says why");
}

int private_daemon_start(struct private_daemon *p, struct daemon_at *ret, struct err *e)
{
    const char *level = getenv("ISOLATION_LEVEL");

    if (start(p, ret, e) == 0)
        return 0;
    if (geteuid() == 0 || (level && *level))
        return -1;
    (void)fprintf(stderr, "sbx: no control groups here, so memory and processes are limited less "
                          "strictly (ISOLATION_LEVEL=basic)\n");
    (void)setenv("ISOLATION_LEVEL", "basic", 1);
    return start(p, ret, e);
}

void private_daemon_end(struct private_daemon *p)
{
    if (p->life >= 0)
        (void)close(p->life);
    if (p->guardian > 0)
        (void)waitpid(p->guardian, NULL, 0);
    if (p->watching >= 0)
        (void)close(p->watching);
    *p = PRIVATE_DAEMON;
}
