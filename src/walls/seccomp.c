/* SPDX-License-Identifier: MIT */
#include "walls/seccomp.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
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

enum { SET_MEMORY_MERGE = 67 }; /* PR_SET_MEMORY_MERGE, newer than some headers */

enum stage { STAGE_BASE, STAGE_LAST };

enum { BY_NAME = -1 };

/* Older calls have a number per architecture, which libseccomp looks up by name. From 424 on the
 * number is the same everywhere; those rows bring it along, so that an older libseccomp, which does
 * not know the name, refuses the call all the same. */
static const struct deny {
    const char *name;
    int nr; /* or BY_NAME */
    int error;
    enum stage stage;
} denied[] = {
#define DENY(name, error, stage)            {#name, BY_NAME, error, stage},
#define DENY_NUMBER(name, nr, error, stage) {#name, nr, error, stage},
#include "walls/seccomp.def"
#undef DENY
#undef DENY_NUMBER
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
    /* modules that the kernel loads for anybody who asks: line disciplines, vlan, bridge */
#define IOCTL(command) {"ioctl", EPERM, STAGE_BASE, {1, SCMP_CMP_MASKED_EQ, 0xffffffff, command}}
    IOCTL(TIOCSETD), IOCTL(SIOCGIFVLAN), IOCTL(SIOCSIFVLAN),
    IOCTL(SIOCGIFBR), IOCTL(SIOCSIFBR), IOCTL(SIOCBRADDBR), IOCTL(SIOCBRDELBR),
#define PRCTL(option) {"prctl", EPERM, STAGE_BASE, {0, SCMP_CMP_MASKED_EQ, 0xffffffff, option}}
    PRCTL(PR_SET_MM),
    PRCTL(PR_SCHED_CORE), /* groups of processes that keep others off the sibling of their core */
    PRCTL(SET_MEMORY_MERGE), /* pages shared with others: when one is copied can be timed */
    {"madvise", EPERM, STAGE_BASE, {2, SCMP_CMP_MASKED_EQ, 0xffffffff, MADV_MERGEABLE}},
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

/* Below 0: this architecture has no such call, which libseccomp tells by a number of its own. */
static int number_of(const char *name, int *ret)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (nr == __NR_SCMP_ERROR) /* a refusal would be missing, and nobody would know */
        return -ENOSYS;
    *ret = nr;
    return 0;
}

static int deny(scmp_filter_ctx ctx, const struct deny *d)
{
    int nr = d->nr, r = nr == BY_NAME ? number_of(d->name, &nr) : 0;

    return r < 0 || nr < 0 ? r : seccomp_rule_add(ctx, SCMP_ACT_ERRNO(d->error), nr, 0);
}

static int deny_arg(scmp_filter_ctx ctx, const struct deny_arg *d)
{
    int nr, r = number_of(d->name, &nr);

    return r < 0 || nr < 0 ? r
                           : seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(d->error), nr, 1, &d->cmp);
}

static int add_denied(scmp_filter_ctx ctx, enum stage stage, const char **ret_name)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(denied) && r == 0; i++)
        if (denied[i].stage == stage) {
            *ret_name = denied[i].name;
            r = deny(ctx, &denied[i]);
        }
    for (size_t i = 0; i < ARRAY_LEN(denied_args) && r == 0; i++)
        if (denied_args[i].stage == stage) {
            *ret_name = denied_args[i].name;
            r = deny_arg(ctx, &denied_args[i]);
        }
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

static int refuse_socket(scmp_filter_ctx ctx, uint64_t family, int error, struct scmp_arg_cmp cmp)
{
    struct scmp_arg_cmp both[] = {
        {0, SCMP_CMP_EQ, family, 0},
        cmp,
    };

    return seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(error),
                                  seccomp_syscall_resolve_name("socket"), 2, both);
}

/*
 * Of the internet families only streams and datagrams. SOCK_PACKET of AF_INET is what AF_PACKET was
 * called once, and the kernel takes it so still; other types load the module of a protocol. The
 * type is the lowest four bits, flags are above.
 */
static int add_types(scmp_filter_ctx ctx, uint64_t family)
{
    static const struct {
        int error;
        struct scmp_arg_cmp cmp;
    } refused[] = {
        {EPERM,           {1, SCMP_CMP_MASKED_EQ, 15, SOCK_RAW}},
        {EPROTONOSUPPORT, {1, SCMP_CMP_MASKED_EQ, 15, 0}       },
        {EPROTONOSUPPORT, {1, SCMP_CMP_MASKED_EQ, 12, 4}       }, /* 4 to 7 */
        {EPROTONOSUPPORT, {1, SCMP_CMP_MASKED_EQ, 8, 8}        }, /* 8 to 15 */
    };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(refused) && r == 0; i++)
        r = refuse_socket(ctx, family, refused[i].error, refused[i].cmp);
    return r;
}

static bool is_protocol(uint64_t p)
{
    return p == IPPROTO_IP || p == IPPROTO_ICMP || p == IPPROTO_TCP || p == IPPROTO_UDP ||
           p == IPPROTO_ICMPV6;
}

static bool has_protocol(uint64_t first, uint64_t n)
{
    for (uint64_t p = first; p < first + n; p++)
        if (is_protocol(p))
            return true;
    return false;
}

/*
 * And of their protocols only TCP, UDP and ICMP: any other would make the kernel load a module, and
 * these modules have a history of holes. What lies between is refused in blocks that are as large
 * as one comparison with a mask can be.
 */
static int add_protocols(scmp_filter_ctx ctx, uint64_t family)
{
    struct scmp_arg_cmp above = {2, SCMP_CMP_GT, IPPROTO_ICMPV6, 0};
    int r = refuse_socket(ctx, family, EPROTONOSUPPORT, above);

    for (uint64_t p = 0, n; p < IPPROTO_ICMPV6 && r == 0; p += n) {
        n = 1;
        if (is_protocol(p))
            continue;
        while (p % (2 * n) == 0 && !has_protocol(p, 2 * n))
            n *= 2;
        r = refuse_socket(ctx, family, EPROTONOSUPPORT,
                          (struct scmp_arg_cmp){2, SCMP_CMP_MASKED_EQ, 0xffffffff & ~(n - 1), p});
    }
    return r;
}

/* A pair of sockets can be had in the unix family alone, but merely asking for another loads that
 * family's module. */
static int add_sockets(scmp_filter_ctx ctx)
{
    static const uint64_t internet[] = {AF_INET, AF_INET6};
    struct scmp_arg_cmp not_unix = {0, SCMP_CMP_NE, AF_UNIX, 0};
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT),
                                   seccomp_syscall_resolve_name("socketpair"), 1, &not_unix);

    for (size_t i = 0; i < ARRAY_LEN(internet) && r == 0; i++) {
        r = add_types(ctx, internet[i]);
        if (r == 0)
            r = add_protocols(ctx, internet[i]);
    }
    return r ? r : add_families(ctx);
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

/* ret_name: the call that could not be refused. */
static int build(enum stage stage, struct sock_fprog *ret, const char **ret_name)
{
    cleanup_with(ctxp) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (!ctx)
        return -ENOMEM;
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* binary tree */
    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0)
        r = add_denied(ctx, stage, ret_name);
    if (r == 0 && stage == STAGE_BASE) {
        *ret_name = "socket";
        r = add_sockets(ctx);
    }
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
    const char *name = "";
    int r = build(STAGE_BASE, &f.base, &name);

    if (r == 0)
        r = build(STAGE_LAST, &f.last, &name);
    if (r == 0)
        skip_architecture(&f.last);
    if (r < 0) {
        filters_done(&f);
        return err_sys(e, r, "compile the system call filter (at '%s')", name);
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
