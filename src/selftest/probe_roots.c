/* SPDX-License-Identifier: MIT */
/* Out of the root, and out of the program. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "selftest/probe.h"

enum { FDS_MAX = 4096, UP = 64 };

/* The old way out: keep a directory open, make a root below it, climb. */
static void chroot_escape(const struct probe *p)
{
    long out = SYS(SYS_openat, AT_FDCWD, ADDRESS("/"), O_RDONLY | O_DIRECTORY), r, canary;

    (void)SYS(SYS_mkdirat, AT_FDCWD, ADDRESS("cell"), 0755);
    r = SYS(SYS_chroot, ADDRESS("cell"));
    if (r < 0)
        was_held(p, r);
    (void)SYS(SYS_fchdir, out);
    for (int i = 0; i < UP; i++)
        (void)SYS(SYS_chdir, ADDRESS(".."));
    (void)SYS(SYS_chroot, ADDRESS("."));
    canary = SYS(SYS_openat, AT_FDCWD, ADDRESS(p->dir), O_RDONLY | O_DIRECTORY);
    if (canary >= 0)
        was_breached_holding(p, "climbed out", "fd", canary);
    was_breached(p, "chroot");
}

static void chroot_plain(const struct probe *p)
{
    long r;

    (void)p;
    r = SYS(SYS_chroot, ADDRESS("/tmp"));
    if (r == 0)
        was_breached_holding(p, "a root of its choice", "root", 0);
    was_held(p, r);
}

/* A descriptor of a directory that somebody forgot leads out, whatever the root is. */
static void leaked_descriptors(const struct probe *p)
{
    for (long fd = 3; fd < FDS_MAX; fd++) {
        long up = SYS(SYS_openat, fd, ADDRESS(".."), O_RDONLY | O_DIRECTORY);

        if (up >= 0)
            was_breached_holding(p, "a directory was left open", "fd", fd);
        if (up != -EBADF && up != -ENOTDIR)
            was_breached_holding(p, "something was left open", "fd", fd);
    }
    (void)p;
    was_held(p, -EBADF);
}

static void write_own_program(const struct probe *p)
{
    long fd;

    if (p->fake)
        fake_success(SYS_openat);
    fd = TRY(p, SYS_openat, AT_FDCWD, ADDRESS("/proc/1/exe"), O_WRONLY);
    if (fd >= 0)
        was_breached_holding(p, "the program of pid 1, for writing", "fd", fd);
    was_held(p, fd);
}

static void read_init_memory(const struct probe *p)
{
    long fd = SYS(SYS_openat, AT_FDCWD, ADDRESS("/proc/1/mem"), O_RDWR);

    (void)p;
    if (fd >= 0)
        was_breached_holding(p, "the memory of pid 1", "fd", fd);
    was_held(p, fd);
}

/* The link follows pid 1 to its root, wherever that is. */
static void root_of_init(const struct probe *p)
{
    long fd = SYS(SYS_openat, AT_FDCWD, ADDRESS("/proc/1/root"), O_RDONLY | O_DIRECTORY);

    (void)p;
    if (fd >= 0)
        was_breached_holding(p, "the root of pid 1", "fd", fd);
    was_held(p, fd);
}

/* Only 1 keeps the kernel from a pipe in core_pattern. Setting it may claim success. */
static void core_limit(const struct probe *p)
{
    static const long wanted[][2] = {
        {0,       1      },
        {0,       0      },
        {1 << 20, 1 << 20},
    };
    long now[2] = {-1, -1}, r = 0;

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        (void)SYS(SYS_setrlimit, RLIMIT_CORE, ADDRESS(wanted[i]));
        r = SYS(SYS_prlimit64, 0, RLIMIT_CORE, ADDRESS(wanted[i]), 0);
        (void)SYS(SYS_prlimit64, 0, RLIMIT_CORE, 0, ADDRESS(now));
        if (now[0] != 1 || now[1] != 1)
            was_breached(p, now[0] ? "core dumps" : "core dumps by a pipe");
    }
    was_held(p, r);
}

/* Bytes from /dev/zero as a program: the mount must not forbid what /workspace allows. */
static void device_open(const struct probe *p)
{
    static const char names[][16] = {"/dev/mem",   "/dev/kmsg",  "/dev/kvm",
                                     "/dev/sda",   "/dev/vda",   "/dev/fuse",
                                     "/dev/loop0", "/dev/nvme0", "/dev/port"};

    if (p->fake)
        fake_success(SYS_openat);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        long fd = TRY(p, SYS_openat, AT_FDCWD, ADDRESS(names[i]), O_RDONLY | O_NONBLOCK);

        if (fd >= 0)
            was_breached_holding(p, names[i], "fd", fd);
    }
    was_held(p, -ENOENT);
}

static const struct {
    char id[20];
    void (*run)(const struct probe *p);
} attacks[] = {
    {"chroot",        chroot_plain      },
    {"chroot-escape", chroot_escape     },
    {"leaked-fds",    leaked_descriptors},
    {"exe-write",     write_own_program },
    {"init-memory",   read_init_memory  },
    {"init-root",     root_of_init      },
    {"core-limit",    core_limit        },
    {"devices",       device_open       },
};

void probe_roots(const struct probe *p)
{
    for (size_t i = 0; i < sizeof attacks / sizeof attacks[0]; i++)
        if (text_same(attacks[i].id, p->id))
            attacks[i].run(p);
}
