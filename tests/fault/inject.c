/* SPDX-License-Identifier: MIT */
/*
 * fault-inject SOCKET LINE PROGRAM ARG...: runs PROGRAM, and lets chosen system calls of it and of
 * all its descendants fail.
 *
 * Theory of operation
 *
 *   program ──system call──▶ kernel ──notification──▶ supervisor ──errno or "go on"──▶ kernel
 *                                                         ▲ SOCKET: what is to fail
 *
 * A filter with a listener is installed before the program is executed, so it is the unchanged
 * program, in all its roles, that is tested: no special build, no preloaded library. The supervisor
 * is an orphan beside it. It tells roles apart by what /proc says of the caller (roles.h) and lets
 * everything pass until it is told otherwise. Notified are only calls that can fail at all.
 *
 * SOCKET is SEQPACKET; each message is a line and has an answer. LINE is the first of them:
 *
 *   arm ROLE CALL N ERRNO HOW   the N-th such call from now fails; HOW: "once", or "on": and all
 *                               that follow
 *   disarm                      nothing fails any more; answers how often it did
 *   count                       forgets what was counted, and counts
 *   counts                      stops; answers "ROLE CALL TIMES" lines
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "roles.h"

enum { CALLS_MAX = 128, ANSWER_MAX = 64 * 1024, LINE_MAX_ = 256 };

/* Calls that can fail and that somebody in the launcher, its children or the daemon makes. Those
 * that cannot (getpid, close, munmap, …) would only take time. */
static const char *const watched[] = {
    "accept4",
    "bind",
    "brk",
    "capset",
    "chdir",
    "chmod",
    "clone",
    "clone3",
    "close_range",
    "connect",
    "dup",
    "dup2",
    "dup3",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd2",
    "execve",
    "execveat",
    "faccessat",
    "faccessat2",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "flock",
    "fork",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "getdents64",
    "getrandom",
    "getrusage",
    "getsockname",
    "getsockopt",
    "ioctl",
    "kill",
    "linkat",
    "listen",
    "lseek",
    "madvise",
    "memfd_create",
    "mkdir",
    "mkdirat",
    "mmap",
    "mount",
    "mount_setattr",
    "move_mount",
    "mprotect",
    "mremap",
    "newfstatat",
    "open",
    "open_tree",
    "openat",
    "openat2",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe2",
    "pivot_root",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "prlimit64",
    "pwrite64",
    "read",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmsg",
    "renameat",
    "renameat2",
    "sched_getaffinity",
    "sched_setaffinity",
    "seccomp",
    "sendmsg",
    "sendto",
    "sethostname",
    "setdomainname",
    "setgroups",
    "setns",
    "setresgid",
    "setresuid",
    "setsid",
    "setsockopt",
    "shutdown",
    "signalfd4",
    "socket",
    "socketpair",
    "statfs",
    "statx",
    "symlinkat",
    "timerfd_create",
    "timerfd_settime",
    "tgkill",
    "umount2",
    "uname",
    "unlinkat",
    "unshare",
    "utimensat",
    "vfork",
    "wait4",
    "waitid",
    "write",
    "writev",
};
_Static_assert(ARRAY_LEN(watched) <= CALLS_MAX, "there is room for all of them");

struct supervisor {
    int listener, control, client;
    int number[CALLS_MAX]; /* of each watched call; -1: this machine has none */
    struct seccomp_notif *ask;
    struct seccomp_notif_resp *answer;

    bool armed, stays;
    enum role role;
    int call, error;
    unsigned left; /* so many more pass */
    unsigned fired;

    bool counting;
    unsigned counts[ROLE_COUNT][CALLS_MAX];
};

/* Before the supervisor has the listener, no watched call may be made: they meet here. */
struct meeting {
    int listener; /* its number in the program; -1: not yet */
    int taken;
};

static int find_call(const struct supervisor *s, int number)
{
    for (size_t i = 0; i < ARRAY_LEN(watched); i++)
        if (s->number[i] == number)
            return (int)i;
    return -1;
}

static void resolve_calls(int number[CALLS_MAX])
{
    for (size_t i = 0; i < ARRAY_LEN(watched); i++)
        number[i] = seccomp_syscall_resolve_name(watched[i]);
}

/* ---- what the kernel asks ---- */

/* The errno this call is to fail with, or 0. */
static int judge(struct supervisor *s, int call, pid_t pid)
{
    enum role r;

    if (!s->counting && (!s->armed || call != s->call))
        return 0;
    r = role_of(pid);
    if (s->counting)
        s->counts[r][call]++;
    if (!s->armed || call != s->call || r != s->role)
        return 0;
    if (s->left > 0) {
        s->left--;
        return 0;
    }
    s->fired++;
    s->armed = s->stays;
    return s->error;
}

static void on_ask(struct supervisor *s)
{
    int call, error;

    memset(s->ask, 0, sizeof *s->ask);
    if (seccomp_notify_receive(s->listener, s->ask) != 0)
        return; /* it was killed meanwhile */
    call = find_call(s, s->ask->data.nr);
    error = call < 0 ? 0 : judge(s, call, (pid_t)s->ask->pid);
    memset(s->answer, 0, sizeof *s->answer);
    s->answer->id = s->ask->id;
    s->answer->error = -error;
    s->answer->flags = error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)seccomp_notify_respond(s->listener, s->answer);
}

/* ---- what the test asks ---- */

static void answer(const struct supervisor *s, const char *text, size_t n)
{
    (void)!fd_send(s->client, text, n, NULL, 0);
}

static void arm(struct supervisor *s, const char *line)
{
    char role[32], name[32], how[8] = "";
    unsigned nth;
    int error, number;

    if (sscanf(line, "arm %31s %31s %u %d %7s", role, name, &nth, &error, how) != 5 || nth == 0) {
        answer(s, "bad", 3);
        return;
    }
    number = seccomp_syscall_resolve_name(name);
    s->call = find_call(s, number);
    s->role = role_parse(role);
    s->error = error;
    s->left = nth - 1;
    s->fired = 0;
    s->stays = strcmp(how, "on") == 0;
    s->armed = s->call >= 0 && s->role < ROLE_COUNT;
    answer(s, s->armed ? "ok" : "bad", s->armed ? 2 : 3);
}

static void tell_counts(struct supervisor *s)
{
    cleanup_free char *text = calloc(1, ANSWER_MAX);
    size_t n = 0;

    s->counting = false;
    for (size_t r = 0; text && r < ROLE_COUNT; r++)
        for (size_t c = 0; c < ARRAY_LEN(watched) && n < ANSWER_MAX - LINE_MAX_; c++)
            if (s->counts[r][c] > 0)
                n += (size_t)snprintf(text + n, ANSWER_MAX - n, "%s %s %u\n",
                                      role_name((enum role)r), watched[c], s->counts[r][c]);
    answer(s, n > 0 ? text : "\n", n > 0 ? n : 1);
}

static void obey(struct supervisor *s, const char *line)
{
    char text[32];

    if (strncmp(line, "arm ", 4) == 0) {
        arm(s, line);
    } else if (strcmp(line, "counts") == 0) {
        tell_counts(s);
    } else if (strcmp(line, "count") == 0) {
        memset(s->counts, 0, sizeof s->counts);
        s->counting = true;
        answer(s, "ok", 2);
    } else {
        s->armed = false;
        answer(s, text, (size_t)snprintf(text, sizeof text, "%u", s->fired));
    }
}

static void on_client(struct supervisor *s)
{
    char line[LINE_MAX_] = "";

    if (fd_recv(s->client, line, sizeof line - 1, NULL, NULL) > 0) {
        obey(s, line);
        return;
    }
    fd_close_all(&s->client, 1);
    s->armed = s->counting = false;
}

static void on_connect(struct supervisor *s)
{
    fd_close_all(&s->client, 1);
    s->client = accept4(s->control, NULL, NULL, SOCK_CLOEXEC);
}

/* Until nobody with the filter is left. */
static void supervise(struct supervisor *s)
{
    for (;;) {
        struct pollfd p[] = {
            {.fd = s->listener, .events = POLLIN},
            {.fd = s->control,  .events = POLLIN},
            {.fd = s->client,   .events = POLLIN},
        };

        if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
            return;
        if (p[0].revents & POLLIN)
            on_ask(s);
        else if (p[0].revents)
            return;
        if (p[2].revents)
            on_client(s);
        if (p[1].revents)
            on_connect(s);
    }
}

/* ---- starting ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || (size_t)snprintf(a.sun_path, sizeof a.sun_path, "%s", path) >= sizeof a.sun_path)
        return -1;
    return bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4) < 0 ? -1 : fd;
}

__attribute__((noreturn)) static void become_supervisor(struct meeting *m, int program, int control,
                                                        const char *line)
{
    struct supervisor *s = calloc(1, sizeof *s);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (!s || null < 0 || seccomp_notify_alloc(&s->ask, &s->answer) != 0)
        _exit(1);
    for (int i = 0; i < 3;
         i++) /* whoever reads the program's log waits for its end, not for ours */
        (void)dup2(null, i);
    (void)setsid();
    s->control = control;
    s->client = -1;
    resolve_calls(s->number);
    obey(s, line);
    while (__atomic_load_n(&m->listener, __ATOMIC_SEQ_CST) < 0)
        (void)usleep(500);
    s->listener = (int)syscall(SYS_pidfd_getfd, program, m->listener, 0);
    (void)close(program);
    __atomic_store_n(&m->taken, s->listener < 0 ? -1 : 1, __ATOMIC_SEQ_CST);
    if (s->listener >= 0)
        supervise(s);
    _exit(0);
}

/* An orphan: the program must not find a child that it did not make. */
static void start_supervisor(struct meeting *m, int control, const char *line)
{
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    pid_t pid = self < 0 ? -1 : fork();
    int status;

    if (pid < 0)
        exit(EXIT_FAILURE);
    if (pid == 0) {
        if (fork() == 0)
            become_supervisor(m, self, control, line);
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    (void)close(self);
}

static int install(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r = ctx ? seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, geteuid() != 0) : -ENOMEM;
    int fd;

    for (size_t i = 0; i < ARRAY_LEN(watched) && r == 0; i++)
        if (seccomp_syscall_resolve_name(watched[i]) >= 0)
            r = seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, seccomp_syscall_resolve_name(watched[i]), 0);
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r == 0)
        r = seccomp_load(ctx);
    fd = r == 0 ? seccomp_notify_fd(ctx) : r; /* the memory of ctx goes with exec */
    return fd;
}

int main(int argc, char **argv)
{
    struct meeting *m =
        mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int control, fd;

    if (argc < 4 || m == MAP_FAILED)
        return EXIT_FAILURE;
    m->listener = -1;
    control = listen_at(argv[1]);
    if (control < 0) {
        (void)fprintf(stderr, "fault-inject: %s: %s\n", argv[1], strerror(errno));
        return EXIT_FAILURE;
    }
    start_supervisor(m, control, argv[2]);
    (void)close(control);
    fd = install();
    if (fd < 0) {
        (void)fprintf(stderr, "fault-inject: filter: %s\n", strerror(-fd));
        return EXIT_FAILURE;
    }
    __atomic_store_n(&m->listener, fd, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&m->taken, __ATOMIC_SEQ_CST))
        ; /* any call might wait for the supervisor */
    (void)close(fd);
    (void)execv(argv[3], argv + 3);
    (void)fprintf(stderr, "fault-inject: %s: %s\n", argv[3], strerror(errno));
    return EXIT_FAILURE;
}
