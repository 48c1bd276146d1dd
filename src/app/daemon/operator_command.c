/* SPDX-License-Identifier: MIT */
#include "app/daemon/operator_command.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/select.h>

#include "app/daemon/app.h"
#include "app/daemon/inside_command.h"
#include "base/fd.h"

enum { DUP_BASE = 64 };

struct customer {
    pid_t pid;            /* of its keeper; 0: it has ended */
    int go, failed;       /* owned: lets it run and carries signals; its errno, or the end */
    int alive;            /* owned: its end is the keeper's */
    char *const *command; /* borrowed; NULL: it runs beside us */
    struct inside_command *inside; /* owned; NULL: not begun */
    struct event exited, late;
    customer_ended_fn *ended;
    void *user;
};

/* The command itself. */
__attribute__((noreturn)) static void become(char *const *command, int failed)
{
    static const int changed[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    sigset_t none;
    int error;

    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        (void)signal(changed[i], SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvp(command[0], command);
    error = errno;
    (void)!write(failed, &error, sizeof error);
    _exit(127);
}

static void on_child(int number)
{
    (void)number; /* it only has to end the wait */
}

/* Passes signals on until it has ended, or the daemon has: then it is asked to end as well. SIGCHLD
 * is blocked everywhere but in the wait. */
__attribute__((noreturn)) static void keep(pid_t pid, int go)
{
    unsigned char number;
    sigset_t none;
    int status;

    (void)sigemptyset(&none);
    for (;;) {
        fd_set wanted;
        int ready;

        FD_ZERO(&wanted);
        FD_SET(go, &wanted);
        if (waitpid(pid, &status, WNOHANG) == pid)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : CUSTOMER_BY_SIGNAL);
        ready = pselect(go + 1, &wanted, NULL, NULL, NULL, &none);
        if (ready < 0 && errno != EINTR)
            _exit(CUSTOMER_BY_SIGNAL);
        if (ready <= 0)
            continue;
        if (read(go, &number, 1) != 1) {
            (void)kill(pid, SIGTERM);
            _exit(CUSTOMER_BY_SIGNAL);
        }
        (void)kill(pid, number);
    }
}

/* The keeper: the daemon that becomes somebody else could not signal the command itself. Nothing of
 * ours but the standard streams goes along. */
__attribute__((noreturn)) static void hold(char *const *command, int go, int failed, int alive)
{
    static const int ignored[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    sigset_t mask;
    char byte;
    pid_t pid;

    go = fcntl(go, F_DUPFD_CLOEXEC, DUP_BASE);
    failed = fcntl(failed, F_DUPFD_CLOEXEC, DUP_BASE);
    alive = fcntl(alive, F_DUPFD_CLOEXEC, DUP_BASE);
    for (int fd = STDERR_FILENO + 1; fd < DUP_BASE; fd++)
        (void)close(fd);
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child}, NULL);
    if (go < 0 || failed < 0 || alive < 0 || read(go, &byte, 1) != 1)
        _exit(0); /* the daemon did not come up */
    pid = fork();
    if (pid == 0)
        become(command, failed);
    (void)close(failed);
    if (pid < 0)
        _exit(CUSTOMER_BY_SIGNAL);
    keep(pid, go);
}

static int prepare_inside(char *const *command, struct customer **ret, struct err *e)
{
    struct customer *c = calloc(1, sizeof *c);

    if (!c)
        return err_set(e, ERR_HOST, "no memory for the command");
    *c = (struct customer){.command = command, .go = -1, .failed = -1, .alive = -1};
    *ret = c;
    return 0;
}

int customer_prepare(char *const *command, bool inside, struct customer **ret, struct err *e)
{
    struct customer *c;
    int go[2] = {-1, -1}, failed[2] = {-1, -1}, alive[2] = {-1, -1}, r;

    if (inside)
        return prepare_inside(command, ret, e);
    c = calloc(1, sizeof *c);
    r = c ? fd_pipe(go) : -ENOMEM;
    if (c)
        *c = (struct customer){.go = -1, .failed = -1, .alive = -1};
    if (r == 0)
        r = fd_pipe(failed);
    if (r == 0)
        r = fd_pipe(alive);
    if (r == 0) {
        *c = (struct customer){.go = go[1], .failed = failed[0], .alive = alive[0], .pid = fork()};
        if (c->pid == 0)
            hold(command, go[0], failed[1], alive[1]);
        r = c->pid < 0 ? -errno : 0;
    }
    fd_close_all(&go[0], 1);
    fd_close_all(&failed[1], 1);
    fd_close_all(&alive[1], 1);
    if (r < 0) {
        customer_free(c);
        return err_sys(e, r, "prepare '%.200s'", command[0]);
    }
    *ret = c;
    return 0;
}

static void on_exited(evutil_socket_t fd, short what, void *user)
{
    struct customer *c = user;
    int status = 0;

    (void)fd, (void)what;
    if (waitpid(c->pid, &status, WNOHANG) != c->pid) {
        (void)event_add(&c->exited, NULL);
        return;
    }
    c->pid = 0;
    (void)event_del(&c->late);
    c->ended(c->user, WIFEXITED(status) ? WEXITSTATUS(status) : CUSTOMER_BY_SIGNAL);
}

static void on_late(evutil_socket_t fd, short what, void *user)
{
    (void)fd, (void)what;
    customer_kill(user);
}

static void on_inside_ended(void *user, int status)
{
    struct customer *c = user;

    (void)event_del(&c->late);
    c->ended(c->user, status);
}

int customer_start(struct customer *c, struct app *a, customer_ended_fn *ended, void *user,
                   struct err *e)
{
    int error = 0;
    ssize_t n;

    c->ended = ended;
    c->user = user;
    (void)evtimer_assign(&c->late, a->base, on_late, c);
    if (c->command)
        return inside_command_start(a, c->command, on_inside_ended, c, &c->inside, e);
    if (write(c->go, "g", 1) != 1)
        return err_sys(e, -errno, "start the command");
    n = read(c->failed, &error, sizeof error); /* the end comes with its exec */
    if (n != 0)
        return err_sys(e, n == sizeof error ? -error : -EIO, "start the command");
    fd_close_all(&c->failed, 1);
    (void)event_assign(&c->exited, a->base, c->alive, EV_READ, on_exited, c);
    (void)event_add(&c->exited, NULL);
    return 0;
}

static void pass_on(struct customer *c, int number)
{
    unsigned char byte = (unsigned char)number;

    if (c->inside && number == SIGKILL)
        inside_command_kill(c->inside);
    else if (c->inside)
        inside_command_signal(c->inside, number);
    else if (c->pid > 0)
        (void)!write(c->go, &byte, 1);
}

void customer_signal(struct customer *c, int number)
{
    const struct timeval grace = {.tv_sec = CUSTOMER_GRACE_S};

    if (!customer_is_running(c))
        return;
    pass_on(c, number);
    (void)event_add(&c->late, &grace);
}

void customer_kill(struct customer *c)
{
    pass_on(c, SIGKILL);
}

bool customer_is_running(const struct customer *c)
{
    return c && (c->inside ? inside_command_is_running(c->inside) : c->pid > 0);
}

void customer_free(struct customer *c)
{
    if (!c)
        return;
    if (event_initialized(&c->late))
        (void)event_del(&c->late);
    if (event_initialized(&c->exited)) {
        (void)event_del(&c->exited);
        customer_kill(c);
    }
    inside_command_free(c->inside);
    closep(&c->go);
    if (c->pid > 0)
        (void)waitpid(c->pid, NULL, 0);
    closep(&c->failed);
    closep(&c->alive);
    free(c);
}
