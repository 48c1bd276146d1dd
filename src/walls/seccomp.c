/* SPDX-License-Identifier: MIT */
#include "walls/seccomp.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert((CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET) ==
                       0x7c000000 &&
                   CLONE_NEWCGROUP == 0x2000000,
               "namespaces other than that of mounts are the highest bits");

enum { SYSCALL_NEWEST = 462 }; /* mseal; the numbers are the same on all architectures */

enum stage { STAGE_BASE, STAGE_LAST };

/* The syscall is looked up by name at run time: an older libseccomp or another architecture may
 * not know it, and then the kernel below it is not reachable by that name either. */
static const struct deny {
    const char *name;
    int error;
    enum stage stage;
} denied[] = {
#define DENY(name, error, stage) {#name, error, stage},
#include "walls/seccomp.def"
#undef DENY
};

/* Arguments decide. Comparisons of ioctl commands mask the upper half: the kernel looks at 32 bits
 * only, and a filter that looks at 64 has been bypassed before. */
static const struct deny_arg {
    const char *name;
    int error;
    enum stage stage;
    struct scmp_arg_cmp cmp;
} denied_args[] = {
  /* clang-format off */
#define LISTENER SECCOMP_FILTER_FLAG_NEW_LISTENER
    /* a namespace has the lowest of these bits, or one from the next on; there is nothing else but
     * CLONE_IO, which nobody misses: a comparison for each would be twice the filter */
    {"clone", EPERM, STAGE_LAST, {0, SCMP_CMP_MASKED_EQ, CLONE_NEWNS, CLONE_NEWNS}},
    {"clone", EPERM, STAGE_LAST, {0, SCMP_CMP_GE, CLONE_NEWCGROUP, 0}},
    /* typing into the terminal of somebody else */
    {"ioctl", EPERM, STAGE_BASE, {1, SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCSTI}},
    {"ioctl", EPERM, STAGE_BASE, {1, SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCLINUX}},
    {"ioctl", EPERM, STAGE_BASE, {1, SCMP_CMP_MASKED_EQ, 0xffffffff, TIOCCONS}},
    {"prctl", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0xffffffff, PR_SET_MM}},
    /* a listener could answer system calls of other filters' owners */
    {"seccomp", EPERM, STAGE_BASE, {1, SCMP_CMP_MASKED_EQ, LISTENER, LISTENER}},
    /* ADDR_NO_RANDOMIZE; the query 0xffffffff has bit 31 and passes */
    {"personality", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0x80040000, 0x40000}},
    /* limits of init, which shares the user */
    {"prlimit64", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0xffffffff, 1}},
    /* and its share of the processors: slowed down enough, it would not end a sandbox in time */
#define OF_INIT(name, arg) {name, EPERM, STAGE_BASE, {arg, SCMP_CMP_MASKED_EQ, 0xffffffff, 1}}
    OF_INIT("sched_setscheduler", 0), OF_INIT("sched_setparam", 0), OF_INIT("sched_setattr", 0),
    OF_INIT("sched_setaffinity", 0), OF_INIT("setpriority", 1), OF_INIT("ioprio_set", 1),
    {"setpriority", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0xffffffff, PRIO_USER}},
    {"ioprio_set", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0xffffffff, IOPRIO_WHO_USER}},
  /* clang-format on */
};

/* Families a program may open; of netlink only routing, which getifaddrs() reads. Everything else
 * answers EAFNOSUPPORT, as a kernel without it does. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

static int rule(scmp_filter_ctx ctx, const struct deny_arg *d)
{
    int nr = seccomp_syscall_resolve_name(d->name);

    return nr < 0 ? 0 : seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(d->error), nr, 1, &d->cmp);
}

static int add_denied(scmp_filter_ctx ctx, enum stage stage)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(denied) && r == 0; i++) {
        int nr = seccomp_syscall_resolve_name(denied[i].name);

        if (denied[i].stage == stage && nr >= 0)
            r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(denied[i].error), nr, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(denied_args) && r == 0; i++)
        if (denied_args[i].stage == stage)
            r = rule(ctx, &denied_args[i]);
    return r;
}

/* Between two allowed values everything is refused: libseccomp has no "none of these". */
static int add_families(scmp_filter_ctx ctx)
{
    int nr = seccomp_syscall_resolve_name("socket"), r = 0;
    struct scmp_arg_cmp above = {0, SCMP_CMP_GT, AF_NETLINK, 0};
    struct scmp_arg_cmp netlink[] = {
        {0, SCMP_CMP_EQ, AF_NETLINK,            0},
        {2, SCMP_CMP_NE, 0 /* NETLINK_ROUTE */, 0},
    };

    for (uint64_t f = 0; f < AF_NETLINK && r == 0; f++) {
        struct scmp_arg_cmp eq = {0, SCMP_CMP_MASKED_EQ, 0xffffffff, f};
        bool ok = false;

        for (size_t i = 0; i < ARRAY_LEN(families); i++)
            ok |= (uint64_t)families[i] == f;
        if (!ok)
            r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), nr, 1, &eq);
    }
    if (r == 0)
        r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), nr, 1, &above);
    return r ? r : seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), nr, 2, netlink);
}

/* Of the internet families only TCP, UDP and ICMP: any other protocol would have the kernel load
 * its module for whoever asks, and these modules have a history. A pair of sockets can be had in
 * the unix family alone, but merely asking for another loads that family's. */
static int add_protocols(scmp_filter_ctx ctx)
{
    const int socket_nr = seccomp_syscall_resolve_name("socket");
    const int pair_nr = seccomp_syscall_resolve_name("socketpair");
    static const uint64_t internet[] = {AF_INET, AF_INET6};
    struct scmp_arg_cmp not_unix = {0, SCMP_CMP_NE, AF_UNIX, 0};
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT), pair_nr, 1, &not_unix);

    for (size_t i = 0; i < ARRAY_LEN(internet) && r == 0; i++) {
        struct scmp_arg_cmp dccp[] = {
            {0, SCMP_CMP_EQ,        internet[i], 0           },
            {2, SCMP_CMP_MASKED_EQ, 0xffffffff,  IPPROTO_DCCP},
        };
        struct scmp_arg_cmp above[] = {
            {0, SCMP_CMP_EQ, internet[i],    0},
            {2, SCMP_CMP_GT, IPPROTO_ICMPV6, 0},
        };

        r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), socket_nr, 2, dccp);
        if (r == 0)
            r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), socket_nr, 2, above);
    }
    return r;
}

/* The limit on core dumps must stay what it is (steps.h): 0 would start a pipe in core_pattern
 * again. Setting it answers success and changes nothing, because programs that lower it (gpg, a
 * shell's "ulimit -c 0") give up when they cannot; reading it passes. */
static int keep_core_limit(scmp_filter_ctx ctx)
{
    const struct scmp_arg_cmp set = {0, SCMP_CMP_MASKED_EQ, 0xffffffff, RLIMIT_CORE};
    const struct scmp_arg_cmp set_new[] = {
        {1, SCMP_CMP_MASKED_EQ, 0xffffffff, RLIMIT_CORE},
        {2, SCMP_CMP_NE,        0,          0          },
    };
    int nr = seccomp_syscall_resolve_name("setrlimit");
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(0), nr, 1, &set);

    nr = seccomp_syscall_resolve_name("prlimit64");
    return r ? r : seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(0), nr, 2, set_new);
}

/* libseccomp writes to a descriptor only; a memfd turns that into memory. */
static int export(scmp_filter_ctx ctx, struct sock_fprog *ret)
{
    cleanup_close int fd = memfd_create("bpf", MFD_CLOEXEC);
    off_t n;
    int r;

    if (fd < 0)
        return -errno;
    r = seccomp_export_bpf(ctx, fd);
    n = lseek(fd, 0, SEEK_END);
    if (r < 0 || n <= 0)
        return r < 0 ? r : -EIO;
    ret->filter = malloc((size_t)n);
    if (!ret->filter)
        return -ENOMEM;
    ret->len = (unsigned short)((size_t)n / sizeof(struct sock_filter));
    return pread(fd, ret->filter, (size_t)n, 0) == n ? 0 : -EIO;
}

static void ctxp(scmp_filter_ctx *ctx)
{
    if (*ctx)
        seccomp_release(*ctx);
}

static int build(enum stage stage, struct sock_fprog *ret)
{
    cleanup_with(ctxp) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (!ctx)
        return -ENOMEM;
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0)
        r = add_denied(ctx, stage);
    if (r == 0 && stage == STAGE_BASE)
        r = add_families(ctx);
    if (r == 0 && stage == STAGE_BASE)
        r = add_protocols(ctx);
    if (r == 0 && stage == STAGE_BASE)
        r = keep_core_limit(ctx);
    return r ? r : export(ctx, ret);
}

static bool loads_number(const struct sock_filter *i)
{
    return i->code == (BPF_LD | BPF_W | BPF_ABS) && i->k == offsetof(struct seccomp_data, nr);
}

/* The base filter, which every call has to pass as well, looks at the architecture already. The
 * kernel follows a new filter for each of its calls, and this was half of the way. */
static void skip_architecture(struct sock_fprog *p)
{
    unsigned short at = p->len;

    while (at > 0 && !loads_number(&p->filter[at - 1]))
        at--;
    if (at == 0)
        return;
    p->len -= at - 1;
    memmove(p->filter, p->filter + at - 1, p->len * sizeof *p->filter);
}

int filters_build(struct filters *ret, struct err *e)
{
    struct filters f = {0};
    int r = build(STAGE_BASE, &f.base);

    if (r == 0)
        r = build(STAGE_LAST, &f.last);
    if (r == 0)
        skip_architecture(&f.last);
    if (r < 0) {
        filters_done(&f);
        return err_sys(e, r, "compile the system call filter");
    }
    *ret = f;
    return 0;
}

void filters_done(struct filters *f)
{
    free(f->base.filter);
    free(f->last.filter);
    *f = (struct filters){0};
}

/* Calls newer than this file was written for. Programs take ENOSYS as "an older kernel". */
int filter_install_ceiling(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYSCALL_NEWEST, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog p = {.len = ARRAY_LEN(code), .filter = code};

    return filter_install(&p);
}

int filter_install(const struct sock_fprog *p)
{
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, p) < 0 ? -errno : 0;
}
