/* SPDX-License-Identifier: MIT */
#include "walls/bwrap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/traits.h"
#include "walls/confine.h"

enum { ARGS_MAX = 64, SAID_MAX = 300 };

/* ---- before bwrap ---- */

/* Changing ids makes a process undumpable, and bwrap could not write its own maps. */
static int step_user(const struct confine *c)
{
    if (!c->rootless &&
        (sys_setgroups_none() < 0 || sys_setresgid(c->uid) < 0 || sys_setresuid(c->uid) < 0))
        return -errno;
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ? -errno : 0;
}

/* Opens sandbox-init. Before the mounts: directories that a sandbox
 * has of its own may hide where it is. */
static int step_program(const struct confine *c)
{
    cleanup_close int fd = open(INIT_PROGRAM, O_RDONLY | O_CLOEXEC);

    (void)c;
    if (fd < 0)
        return -errno;
    return steps_place(&fd, INIT_FD_PROGRAM);
}

static const struct confine_step steps[] = {
    {"descriptors",         step_descriptors},
    {"sandbox-init",        step_program    },
    {"private mounts",      confine_mounts  },
    {"out-of-memory score", step_oom_score  },
    {"user",                step_user       },
};
enum { STEP_DESCRIPTORS = 0 };

/* Something to read under a number that the next program knows. */
static int put_bytes(int number, const void *p, size_t n)
{
    cleanup_close int fd = memfd_create("order", MFD_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = fd_write_all(fd, p, n);
    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return steps_place(&fd, number);
}

static int put_filter(int number, const struct sock_fprog *p)
{
    return put_bytes(number, p->filter, p->len * sizeof *p->filter);
}

/* The daemon's descriptors go through bwrap, which keeps none of them for itself. */
static int pass_descriptors(const struct keeper *k, const struct launch_msg *m)
{
    struct init_order o = {.msg = *m, .cpus = k->cpus, .tree = launch_has_tree(m)};
    int last = launch_has_tree(m) ? INIT_FD_END : INIT_FD_END - 1;
    int r = 0;

    for (int fd = INIT_FD_CTL; fd <= last && r == 0; fd++)
        r = fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
    if (r == 0)
        r = put_bytes(INIT_FD_ORDER, &o, sizeof o);
    if (r == 0)
        r = put_filter(BWRAP_FD_FILTERS, &k->filters->base);
    return r ? r : put_filter(BWRAP_FD_FILTERS + 1, &k->filters->last);
}

/* ---- bwrap ---- */

static const char *const always[] = {
    BWRAP_PATH,
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--clearenv",
    "--cap-drop",
    "ALL",
    "--uid",
    "1000",
    "--gid",
    "1000",
    "--hostname",
    "sandbox",
    /* the root as we built it: what is read-only there stays so */
    "--bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--bind",
    "/dev/shm",
    "/dev/shm",
    "--remount-ro",
    "/dev",
    "--chdir",
    "/workspace",
};

static const char *const program[] = {"--", "/proc/self/fd/12", NULL};
_Static_assert(INIT_FD_PROGRAM == 12, "the number in its name");

__attribute__((noreturn)) static void exec_bwrap(const struct launch_msg *m)
{
    const char *args[ARGS_MAX];
    char filters[2][8];
    char *const empty[] = {NULL};
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        args[n++] = always[i];
    if (m->flags & LAUNCH_HOST_NET)
        args[n++] = "--share-net";
    for (int i = 0; i < 2; i++) {
        (void)snprintf(filters[i], sizeof filters[i], "%d", BWRAP_FD_FILTERS + i);
        args[n++] = "--add-seccomp-fd";
        args[n++] = filters[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(program); i++)
        args[n++] = program[i];
    _Static_assert(ARRAY_LEN(always) + ARRAY_LEN(program) + 5 <= ARGS_MAX, "room for all");
    (void)execve(BWRAP_PATH, (char *const *)(uintptr_t)args, empty);
    (void)dprintf(STDERR_FILENO, "%s: %s\n", BWRAP_PATH, strerror(errno));
    _exit(127);
}

/* ---- the kind ---- */

static int bwrap_enter(struct keeper *k, struct err *e)
{
    int r = fd_pipe(k->said);

    if (r == 0)
        r = fd_nonblock(k->said[0], true);
    if (r < 0)
        return err_sys(e, r, "pipe for bwrap's words");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return err_sys(e, -errno, "become a reaper");
    return 0;
}

__attribute__((noreturn)) static void bwrap_become(struct keeper *k, const struct launch_msg *m,
                                                   const int *fds, size_t fds_n)
{
    struct confine c = keeper_confine(k, m, fds, fds_n);
    int r;

    c.said = k->said[1];
    steps_run(steps, ARRAY_LEN(steps), STEP_DESCRIPTORS, &c);
    r = pass_descriptors(k, m);
    if (r < 0) {
        (void)dprintf(STDERR_FILENO, "descriptors: %s\n", strerror(-r));
        _exit(127);
    }
    exec_bwrap(m);
}

/* It speaks only when it fails. */
static void take_words(const struct keeper *k, struct launch_msg *m)
{
    char words[SAID_MAX];
    ssize_t n = read(k->said[0], words, sizeof words - 1);

    if (n <= 0)
        return;
    words[n] = '\0';
    words[strcspn(words, "\n")] = '\0';
    (void)err_set(&m->err, ERR_HOST, "%s", words);
}

static int bwrap_renew(struct keeper *k, struct launch_msg *m, int status)
{
    keeper_purge();
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        take_words(k, m);
    return m->err.kind == ERR_NONE ? 0 : -1;
}

const struct keeper_kind keeper_bwrap = {
    .name = "bwrap",
    .traits = JAIL_FS | JAIL_PID | JAIL_IPC | JAIL_UTS | JAIL_NET | JAIL_USER | JAIL_NNP |
              JAIL_NOCAPS | JAIL_SECCOMP,
    .namespaces = CLONE_NEWNS,
    .rootless = true,
    .rooted = true,
    .enter = bwrap_enter,
    .become = bwrap_become,
    .renew = bwrap_renew,
};
