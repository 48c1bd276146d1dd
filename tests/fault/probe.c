/* SPDX-License-Identifier: MIT */
/*
 * lockdown-probe MINE OTHER [foreign]: puts the daemon's walls around itself, with MINE writable,
 * tries what is and what is not allowed, and prints "NAME ok" or "NAME ERRNO" for each.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lockdown.h"

static void tell(const char *name, long r)
{
    (void)printf("%s %s\n", name, r >= 0 ? "ok" : strerrorname_np(errno));
}

/* The arguments are such that the kernel itself would give other answers than the filter's, or none
 * that matter. */
static void try_calls(void)
{
    const char *no_args[] = {NULL};
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    tell("execve", syscall(SYS_execve, "/bin/true", no_args, no_args));
    tell("fork", syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0));
    tell("clone3", syscall(SYS_clone3, NULL, 0));
    tell("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    tell("setresuid", syscall(SYS_setresuid, geteuid(), geteuid(), geteuid()));
    tell("unshare", unshare(0));
    tell("setns", setns(0, CLONE_NEWNET));
    tell("mount", mount("none", "/nowhere", "tmpfs", 0, NULL));
    tell("chroot", chroot("/nowhere"));
    tell("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, NULL, 0));
    tell("io_uring_setup", syscall(SYS_io_uring_setup, 0, NULL));
    tell("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0));
    tell("keyctl", syscall(SYS_keyctl, 0, 0, 0));
    tell("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
    tell("process_vm_readv", syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0));
    tell("mknodat", mknodat(AT_FDCWD, "/nowhere/x", S_IFIFO, 0));
    tell("capset", syscall(SYS_capset, &head, none));
}

static void try_sockets(void)
{
    static const struct {
        const char *name;
        int family, type;
    } rows[] = {
        {"socket-inet",   AF_INET,    SOCK_STREAM   },
        {"socket-inet6",  AF_INET6,   SOCK_STREAM   },
        {"socket-unix",   AF_UNIX,    SOCK_STREAM   },
        {"socket-route",  AF_NETLINK, SOCK_RAW      },
        {"socket-packet", AF_PACKET,  SOCK_RAW      },
        {"socket-vsock",  AF_VSOCK,   SOCK_STREAM   },
        {"socket-alg",    AF_ALG,     SOCK_SEQPACKET},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_close int fd = socket(rows[i].family, rows[i].type | SOCK_CLOEXEC, 0);

        tell(rows[i].name, fd);
    }
}

static long write_below(const char *dir)
{
    char path[4096];
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "%s/file", dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd;
}

static void try_files(const char *mine, const char *other)
{
    char path[4096];
    cleanup_close int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    tell("read", fd);
    tell("write-mine", write_below(mine));
    tell("write-other", write_below(other));
    (void)snprintf(path, sizeof path, "%s/made", other);
    tell("mkdir-other", mkdir(path, 0700));
    (void)snprintf(path, sizeof path, "%s/before", other);
    tell("unlink-other", unlink(path));
}

static void *nothing(void *user)
{
    return user;
}

static void try_thread(void)
{
    pthread_t t;
    int r = pthread_create(&t, NULL, nothing, NULL);

    errno = r;
    tell("thread", -r);
    if (r == 0)
        (void)pthread_join(t, NULL);
}

static void make_before(const char *other)
{
    char path[4096];
    cleanup_close int fd = -1;

    (void)snprintf(path, sizeof path, "%s/before", other);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

int main(int argc, char **argv)
{
    const char *writable[] = {argc > 1 ? argv[1] : "/nowhere", "/nowhere"};
    unsigned walls;
    struct err e;

    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return EXIT_FAILURE;
    make_before(argv[2]);
    if (lockdown(writable, ARRAY_LEN(writable), &walls, &e) < 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        return EXIT_FAILURE;
    }
    if (argc > 3) /* a number of the x32 calls */
        return (int)syscall(0x40000000 | SYS_getpid);
    try_calls();
    try_sockets();
    try_files(argv[1], argv[2]);
    try_thread();
    return EXIT_SUCCESS;
}
