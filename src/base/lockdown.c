/* SPDX-License-Identifier: MIT */
#include "base/lockdown.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define LOCK_UNSANITIZED(name)
#else
#define LOCK_UNSANITIZED(name) LOCK(name)
#endif

enum {
    FOREIGN = 0x40000000, /* x32 calls of x86-64: from here on */
    CODE_MAX = 160,
    LANDLOCK_RENAMES = 2, /* the version that lets files be moved between directories */
};

static const int denied[] = {
#define LOCK(name) SYS_##name,
#include "base/lockdown.def"
#undef LOCK
};

/* ---- system calls ---- */

struct code {
    struct sock_filter at[CODE_MAX];
    unsigned short n;
};

static void put(struct code *c, struct sock_filter f)
{
    if (c->n < CODE_MAX)
        c->at[c->n++] = f;
}

static void load(struct code *c, size_t at)
{
    put(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

static void answer(struct code *c, uint32_t what)
{
    put(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

/* If the loaded number is that: this answer. */
static void answer_if(struct code *c, uint32_t number, uint32_t what)
{
    put(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    answer(c, what);
}

/* All of them lead to one answer behind the last. */
static void add_denied(struct code *c)
{
    enum { N = ARRAY_LEN(denied) };
    _Static_assert(N < UINT8_MAX, "a jump is that long at most");

    for (size_t i = 0; i < N; i++)
        put(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)denied[i],
                                            (uint8_t)(N - i), 0));
    put(c, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 1));
    answer(c, SECCOMP_RET_ERRNO | EPERM);
}

/* Threads are made with clone(), which shows its flags; clone3() hides them behind a pointer, and
 * the C library does without. */
static void add_clone(struct code *c)
{
#if !defined(__SANITIZE_ADDRESS__)
    put(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    load(c, offsetof(struct seccomp_data, args[0]));
    put(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    answer(c, SECCOMP_RET_ALLOW);
    answer(c, SECCOMP_RET_ERRNO | EPERM);
#endif
    answer_if(c, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
}

static void add_socket(struct code *c)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

    put(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0,
                                        2 * ARRAY_LEN(families) + 2));
    load(c, offsetof(struct seccomp_data, args[0]));
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        answer_if(c, (uint32_t)families[i], SECCOMP_RET_ALLOW);
    answer(c, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static int filter_calls(unsigned *walls, struct err *e)
{
#ifdef OUR_ARCH
    struct code c = {.n = 0};
    struct sock_fprog p = {.filter = c.at};

    load(&c, offsetof(struct seccomp_data, arch));
    put(&c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0));
    answer(&c, SECCOMP_RET_KILL_PROCESS);
    load(&c, offsetof(struct seccomp_data, nr));
    put(&c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, 0, 1));
    answer(&c, SECCOMP_RET_KILL_PROCESS);
    add_denied(&c);
    add_clone(&c);
    add_socket(&c);
    answer(&c, SECCOMP_RET_ALLOW);
    if (c.n == CODE_MAX)
        return err_set(e, ERR_BUG, "the system call filter is too long");
    p.len = c.n;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) < 0)
        return err_sys(e, -errno, "system call filter of our own");
    *walls |= LOCKDOWN_CALLS;
#else
    (void)walls, (void)e;
#endif
    return 0;
}

/* ---- files ---- */

/* Everything that changes something, or executes it. Reading is not the point: certificates, name
 * servers and the host's libraries are read from all over the place. */
enum {
    CHANGES = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
              LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
              LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
              LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
              LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
              LANDLOCK_ACCESS_FS_REFER,
};

static int allow_below(int rules, const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct landlock_path_beneath_attr below = {.allowed_access = CHANGES, .parent_fd = fd};

    if (fd < 0)
        return 0; /* nothing can be written there anyway */
    return (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
}

static int confine_files(const char *const *writable, size_t n, unsigned *walls, struct err *e)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = CHANGES | LANDLOCK_ACCESS_FS_EXECUTE};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    cleanup_close int rules = -1;

    if (version < LANDLOCK_RENAMES)
        return 0;
    rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0)
        return err_sys(e, -errno, "file rules of our own");
    for (size_t i = 0; i < n; i++)
        if (allow_below(rules, writable[i]) < 0)
            return err_sys(e, -errno, "file rule for '%.300s'", writable[i]);
    if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        return err_sys(e, -errno, "file rules of our own");
    *walls |= LOCKDOWN_FILES;
    return 0;
}

int lockdown(const char *const *writable, size_t n, unsigned *ret_walls, struct err *e)
{
    unsigned walls = 0;

    if (confine_files(writable, n, &walls, e) < 0 || filter_calls(&walls, e) < 0)
        return -1;
    *ret_walls = walls;
    return 0;
}
