/* SPDX-License-Identifier: MIT */
/*
 * A machine to be thrown away: namespaces in which attacks may succeed without doing harm.
 *
 * Two user namespaces, one in the other. In the outer one every mount of the host is made
 * read-only; in the inner one, where everything else happens, the kernel keeps those flags locked,
 * whatever capabilities an attack has. Root becomes somebody who owns nothing first. The inner one
 * has its own processes (we are pid 1, and nothing outlives us), its own network with a few
 * addresses of the wide world on its loopback, its own names, and file systems in memory for all
 * that is written.
 */
#include "selftest/throwaway.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

enum { NOBODY = 65534, PATH_ROOM = 300 };

static const char stage[] = "/tmp";

/* By a descriptor of the host's /proc: ours will be read-only when the inner maps are written. */
static int write_text(int proc, const char *path, const char *text)
{
    cleanup_close int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);

    return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int enter_user_namespace(int proc, int more, struct err *e)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();
    char map[48];
    int r;

    if (unshare(CLONE_NEWUSER | more) < 0)
        return err_sys(e, -errno, "namespaces to be thrown away");
    r = write_text(proc, "self/setgroups", "deny");
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    if (r == 0 || r == -EPERM) /* denied by the outer one already */
        r = write_text(proc, "self/uid_map", map);
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)gid);
    if (r == 0)
        r = write_text(proc, "self/gid_map", map);
    return r < 0 ? err_sys(e, r, "map of a user namespace") : 0;
}

/* Root owns the host's files even in a user namespace. */
static int become_nobody(struct err *e)
{
    if (geteuid() != 0)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become nobody");
    return 0;
}

/* Every top-level directory of the host appears under the same name. */
static int bind_entry(const char *name)
{
    char from[PATH_ROOM], to[PATH_ROOM], target[PATH_ROOM];
    struct stat st;
    ssize_t n;

    (void)snprintf(from, sizeof from, "/%s", name);
    (void)snprintf(to, sizeof to, "%s/%s", stage, name);
    if (lstat(from, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        n = readlink(from, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = '\0';
        return n < 0 || symlink(target, to) < 0 ? -errno : 0;
    }
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (mkdir(to, 0755) < 0)
        return -errno;
    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return errno == EACCES ? 0 : -errno; /* what nobody may enter is not needed */
    return 0;
}

static int bind_host(void)
{
    static const char *const own[] = {"tmp", "workspace", "lost+found"};
    DIR *d = opendir("/");
    int r = 0;

    for (struct dirent *at; d && r == 0 && (at = readdir(d));) {
        bool skip = at->d_name[0] == '.';

        for (size_t i = 0; i < ARRAY_LEN(own); i++)
            skip |= strcmp(at->d_name, own[i]) == 0;
        if (!skip)
            r = bind_entry(at->d_name);
    }
    if (d)
        (void)closedir(d);
    return d ? r : -errno;
}

static int build_root(struct err *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    struct mount_attr undo = {.attr_clr = MOUNT_ATTR_RDONLY};
    int r;

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("root", stage, "tmpfs", 0, "size=1m,mode=0755") < 0)
        return err_sys(e, -errno, "a root to be thrown away");
    r = bind_host();
    if (r < 0)
        return err_sys(e, r, "the host's directories, read-only");
    (void)mkdir("/tmp/tmp", 01777);
    (void)mkdir("/tmp/workspace", 0755);
    if (syscall(SYS_mount_setattr, AT_FDCWD, stage, AT_RECURSIVE, &attr, sizeof attr) < 0)
        return err_sys(e, -errno, "the host's directories, read-only");
    /* The kernel gives nobody a new one that may do more than the ones in sight. */
    (void)syscall(SYS_mount_setattr, AT_FDCWD, "/tmp/proc", 0, &undo, sizeof undo);
    (void)syscall(SYS_mount_setattr, AT_FDCWD, "/tmp/sys", 0, &undo, sizeof undo);
    if (chdir(stage) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return err_sys(e, -errno, "enter the root to be thrown away");
    return 0;
}

static void add_address(int fd, const char *interface, const char *text)
{
    struct ifreq q = {0};
    struct sockaddr_in at = {.sin_family = AF_INET};

    (void)inet_pton(AF_INET, text, &at.sin_addr);
    (void)snprintf(q.ifr_name, sizeof q.ifr_name, "%s", interface);
    memcpy(&q.ifr_addr, &at, sizeof at);
    (void)ioctl(fd, SIOCSIFADDR, &q);
}

/* The wide world, as far as the attacks know it. */
static int build_network(struct err *e)
{
    cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING};

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &q) < 0)
        return err_sys(e, -errno, "loopback");
    add_address(fd, "lo:1", "169.254.169.254");
    add_address(fd, "lo:2", "10.0.0.1");
    add_address(fd, "lo:3", "192.0.2.1");
    return 0;
}

static int build_inside(struct err *e)
{
    static const char *const places[] = {"/tmp", "/workspace", "/dev/shm"};

    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, -errno,
                       "a /proc to be thrown away (is the one of this container masked?)");
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (mount("scratch", places[i], "tmpfs", 0, "size=512m,nr_inodes=20000,mode=1777") < 0)
            return err_sys(e, -errno, "%s to be thrown away", places[i]);
    /* Some terminals cannot be had here; the attacks that need one say so. */
    (void)mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620");
    (void)mount("/dev/pts/ptmx", "/dev/ptmx", NULL, MS_BIND, NULL);
    (void)!sethostname("throw-away-host", 15);
    return build_network(e);
}

static int build_outer(struct err *e)
{
    static const int inner =
        CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP;

    cleanup_close int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (become_nobody(e) < 0 || enter_user_namespace(proc, CLONE_NEWNS, e) < 0 || build_root(e) < 0)
        return -1;
    return enter_user_namespace(proc, inner, e);
}

/* In the process that will be pid 1's parent. */
static int live(throwaway_fn *fn, void *user)
{
    struct err e = {0};
    int status = EXIT_FAILURE;
    pid_t pid;

    if (build_outer(&e) < 0) {
        (void)fprintf(stderr, "selftest: %s\n", e.text);
        return THROWAWAY_IMPOSSIBLE;
    }
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (build_inside(&e) < 0) {
            (void)fprintf(stderr, "selftest: %s\n", e.text);
            _exit(THROWAWAY_IMPOSSIBLE);
        }
        status = fn(user);
        (void)fflush(NULL);
        _exit(status);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

int throwaway_run(throwaway_fn *fn, void *user)
{
    int status = 0;
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        status = live(fn, user);
        (void)fflush(NULL);
        _exit(status);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
