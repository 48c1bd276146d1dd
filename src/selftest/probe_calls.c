/* SPDX-License-Identifier: MIT */
/*
 * One system call each, with arguments that would work, or get beyond the wall before they fail.
 * Whatever is not a refusal counts as a breach: the call reached the kernel's own code.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "selftest/probe.h"

enum { GIVES_FD = 1, NEEDS_ROOM = 2 };

struct row {
    const char *id;
    long nr;
    long a[6];
    int how;
    int beyond; /* an errno that only comes from behind the wall; 0: none but success counts */
};

/* Newer than the headers of some hosts; the numbers are the same everywhere. */
enum {
    CALL_MEMFD_SECRET = 447,
    CALL_CACHESTAT = 451,
    CALL_STATMOUNT = 457,
    CALL_LISTMOUNT,
    CALL_LSM_GET_SELF_ATTR,
    CALL_LSM_SET_SELF_ATTR,
    CALL_LSM_LIST_MODULES,
};
enum { PRCTL_SCHED_CORE = 62, PRCTL_MEMORY_MERGE = 67, ADVICE_MERGEABLE = 12 };

#ifndef SYS_lookup_dcookie
#define SYS_lookup_dcookie 1000
#endif
#if !defined __x86_64__
enum { SYS_iopl = 1001, SYS_ioperm, SYS_modify_ldt, SYS_sysfs, SYS_ustat, SYS_uselib };
#endif

static int is_here(long nr)
{
    return nr < 1000;
}

/* Addresses cannot stand in a constant table of numbers, so the row is filled in here. */
static int find_mounts(const struct probe *p, struct row *r)
{
    const struct row rows[] = {
  /* clang-format off */
        {"mount-tmpfs", SYS_mount, {ADDRESS(p->mark), ADDRESS("/tmp"), ADDRESS("tmpfs")}, 0, 0},
        {"mount-proc", SYS_mount, {ADDRESS(p->mark), ADDRESS("/tmp"), ADDRESS("proc")}, 0, 0},
        {"mount-bind", SYS_mount, {ADDRESS("/usr"), ADDRESS("/tmp"), 0, 4096}, 0, 0},
        {"mount-overlay", SYS_mount, {ADDRESS(p->mark), ADDRESS("/tmp"), ADDRESS("overlay"), 0, ADDRESS("lowerdir=/usr:/etc")}, 0, 0},
        {"mount-cgroup", SYS_mount, {ADDRESS(p->mark), ADDRESS("/tmp"), ADDRESS("cgroup2")}, 0, EBUSY},
        {"mount-sysfs", SYS_mount, {ADDRESS(p->mark), ADDRESS("/tmp"), ADDRESS("sysfs")}, 0, 0},
        {"remount-rw", SYS_mount, {0, ADDRESS("/proc"), 0, 32 | 4096}, 0, 0},
        {"umount-proc", SYS_umount2, {ADDRESS("/proc"), 2}, 0, 0},
        {"pivot-root", SYS_pivot_root, {ADDRESS("/tmp"), ADDRESS("/tmp")}, 0, EINVAL},
        {"fsopen", SYS_fsopen, {ADDRESS("tmpfs"), 0}, GIVES_FD, 0},
        {"fspick", SYS_fspick, {AT_FDCWD, ADDRESS("/tmp"), 0}, GIVES_FD, EINVAL},
        {"fsconfig", SYS_fsconfig, {0, 6}, 0, EINVAL},
        {"fsmount", SYS_fsmount, {-1, 0, 0}, 0, EBADF},
        {"open-tree", SYS_open_tree, {AT_FDCWD, ADDRESS("/tmp"), 1}, GIVES_FD, EINVAL},
        {"move-mount", SYS_move_mount, {-1, ADDRESS(""), AT_FDCWD, ADDRESS("/tmp"), 4}, 0, EBADF},
        {"mount-setattr", SYS_mount_setattr, {-1, ADDRESS(""), 0x1000, 0, 32}, 0, EFAULT},
        {"mknod-disk", SYS_mknodat, {AT_FDCWD, ADDRESS("node"), S_IFBLK | 0600, 0x800}, 0, 0},
        {"mknod-memory", SYS_mknodat, {AT_FDCWD, ADDRESS("node"), S_IFCHR | 0600, 0x101}, 0, 0},
        {"mknod-kmsg", SYS_mknodat, {AT_FDCWD, ADDRESS("node"), S_IFCHR | 0600, 0x10b}, 0, 0},
        {"mknod-kvm", SYS_mknodat, {AT_FDCWD, ADDRESS("node"), S_IFCHR | 0600, 0xae8}, 0, 0},
        {"mknod-fuse", SYS_mknodat, {AT_FDCWD, ADDRESS("node"), S_IFCHR | 0600, 0xae5}, 0, 0},
  /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_same(rows[i].id, p->id))
            return *r = rows[i], 1;
    return 0;
}

static int find_kernel(const struct probe *p, struct row *r)
{
    /* No such time: the kernel says so before it would set it. */
    static const long no_time[2] = {-1, -1};
    const struct row rows[] = {
  /* clang-format off */
        {"init-module", SYS_init_module, {0, 0, ADDRESS("")}, 0, 0},
        {"finit-module", SYS_finit_module, {0, ADDRESS(""), 0}, 0, 0},
        {"delete-module", SYS_delete_module, {ADDRESS("no-such-module"), 0}, 0, 0},
        {"kexec-load", SYS_kexec_load, {0, 0, 0, 0}, 0, 0},
        {"reboot", SYS_reboot, {0xfee1dead, 672274793, 0, 0}, 0, EINVAL},
        {"swapon", SYS_swapon, {ADDRESS("/no/such/file"), 0}, 0, 0},
        {"swapoff", SYS_swapoff, {ADDRESS("/no/such/file")}, 0, 0},
        {"acct", SYS_acct, {ADDRESS("/no/such/file")}, 0, 0},
        {"quotactl", SYS_quotactl, {0x800007, ADDRESS("/dev/null"), 0, 0}, 0, 0},
        {"settimeofday", SYS_settimeofday, {0, 0}, 0, 0},
        {"clock-settime", SYS_clock_settime, {0, ADDRESS(no_time)}, 0, EINVAL},
        {"iopl", SYS_iopl, {3}, 0, 0},
        {"ioperm", SYS_ioperm, {0x80, 1, 1}, 0, 0},
        {"modify-ldt", SYS_modify_ldt, {0, 0, 0}, NEEDS_ROOM, 0},
        {"sysfs-call", SYS_sysfs, {3}, 0, 0},
        {"ustat", SYS_ustat, {0, 0}, 0, EINVAL},
        {"uselib", SYS_uselib, {ADDRESS("/no/such/file")}, 0, ENOENT},
        {"vhangup", SYS_vhangup, {0}, 0, 0},
        {"syslog", SYS_syslog, {3, 0, 0}, NEEDS_ROOM, 0},
        {"sethostname", SYS_sethostname, {ADDRESS(p->mark), 8}, 0, 0},
        {"setdomainname", SYS_setdomainname, {ADDRESS(p->mark), 8}, 0, 0},
        {"name-to-handle", SYS_name_to_handle_at, {AT_FDCWD, ADDRESS("/tmp"), 0, 0, 0}, 0, EFAULT},
        {"open-by-handle", SYS_open_by_handle_at, {AT_FDCWD, 0, 0}, 0, EFAULT},
        {"vmsplice", SYS_vmsplice, {1, 0, 0, 0}, 0, 0},
        {"adjtimex", SYS_adjtimex, {0}, 0, EFAULT},
        {"lookup-dcookie", SYS_lookup_dcookie, {0, 0, 0}, 0, EINVAL},
        {"add-key", SYS_add_key, {ADDRESS("user"), ADDRESS(p->mark), ADDRESS("x"), 1, -3}, 0, 0},
        {"request-key", SYS_request_key, {ADDRESS("user"), ADDRESS("none"), 0, -3}, 0, ENOKEY},
        {"keyctl", SYS_keyctl, {0, -3, 1}, 0, 0},
        {"kcmp", SYS_kcmp, {1, 1, 1, 0, 0}, 0, 0},
        {"move-pages", SYS_move_pages, {0, 0, 0, 0, 0, 0}, 0, EINVAL},
        {"migrate-pages", SYS_migrate_pages, {0, 8, 0, 0}, 0, EINVAL},
        {"io-setup", SYS_io_setup, {1, 0, 0}, NEEDS_ROOM, 0},
        {"memfd-secret", CALL_MEMFD_SECRET, {0}, 0, 0},
        {"cachestat", CALL_CACHESTAT, {0, 0, 0, 0}, 0, EFAULT},
        {"statmount", CALL_STATMOUNT, {0, 0, 0, 0}, 0, EFAULT},
        {"listmount", CALL_LISTMOUNT, {0, 0, 0, 0}, 0, EFAULT},
        {"lsm-get", CALL_LSM_GET_SELF_ATTR, {100, 0, 0, 0}, 0, EINVAL},
        {"lsm-set", CALL_LSM_SET_SELF_ATTR, {100, 0, 0, 0}, 0, EINVAL},
        {"lsm-list", CALL_LSM_LIST_MODULES, {0, 0, 0}, 0, EFAULT},
        {"sched-core", SYS_prctl, {PRCTL_SCHED_CORE, 1, 0, 0, 0}, 0, ENODEV},
        {"memory-merge", SYS_prctl, {PRCTL_MEMORY_MERGE, 1, 0, 0, 0}, 0, EINVAL},
        {"madvise-merge", SYS_madvise, {ADDRESS(&r->a) & -4096, 4096, ADVICE_MERGEABLE}, 0, EINVAL},
        {"process-madvise", SYS_process_madvise, {-1, 0, 0, 20, 0}, 0, EBADF},
  /* clang-format on */
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_same(rows[i].id, p->id))
            return *r = rows[i], 1;
    return 0;
}

static int find_rich(const struct probe *p, struct row *r, void *room)
{
    static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog *program = room;
    struct perf_event_attr *perf = (void *)((char *)room + 256);
    union bpf_attr *map = (void *)((char *)room + 512);
    const struct row rows[] = {
  /* clang-format off */
        {"io-uring", SYS_io_uring_setup, {4, ADDRESS((char *)room + 1024)}, GIVES_FD, 0},
        {"bpf-map", SYS_bpf, {BPF_MAP_CREATE, ADDRESS(map), 72}, GIVES_FD, 0},
        {"perf-event", SYS_perf_event_open, {ADDRESS(perf), 0, -1, -1, 0}, GIVES_FD, 0},
        {"userfaultfd", SYS_userfaultfd, {1}, GIVES_FD, 0},
        {"fanotify", SYS_fanotify_init, {0x200, 0}, GIVES_FD, 0},
        {"seccomp-listener", SYS_seccomp, {SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, ADDRESS(program)}, GIVES_FD, 0},
        {"no-randomize", SYS_personality, {0x0040000}, 0, 0},
        {"set-mm", SYS_prctl, {PR_SET_MM, 6, 0, 0, 0}, 0, EINVAL},
        {"pidfd-getfd", SYS_pidfd_getfd, {-1, 0, 0}, 0, EBADF},
        {"ptrace-me", SYS_ptrace, {0, 0, 0, 0}, 0, 0},
        {"ptrace-init", SYS_ptrace, {0x4206, 1, 0, 0}, 0, 0},
        {"read-init", SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}, 0, 0},
        {"write-init", SYS_process_vm_writev, {1, 0, 0, 0, 0, 0}, 0, 0},
        {"limit-init", SYS_prlimit64, {1, 15 /* RLIMIT_RTTIME */, ADDRESS("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 0}, 0, 0},
  /* clang-format on */
    };

    *program = (struct sock_fprog){1, (struct sock_filter *)(uintptr_t)&allow};
    perf->type = PERF_TYPE_SOFTWARE, perf->size = sizeof *perf, perf->exclude_kernel = 1;
    map->map_type = BPF_MAP_TYPE_ARRAY, map->key_size = 4, map->value_size = 4;
    map->max_entries = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_same(rows[i].id, p->id))
            return *r = rows[i], 1;
    return 0;
}

static void try_row(const struct probe *p, struct row *r, char room[2048])
{
    char text[24];
    long got;

    if (!is_here(r->nr)) {
        SAY("ABSENT on this architecture");
        leave(0);
    }
    if (r->how == NEEDS_ROOM)
        r->a[1] = ADDRESS(room), r->a[2] = 64;
    if (p->fake)
        fake_success(r->nr);
    got = try_call(p, r->nr, r->a);
    if (got >= 0 && r->how == GIVES_FD && !p->fake)
        was_breached_holding(p, "a descriptor of it", "fd", got);
    if (got >= 0 && r->nr == SYS_mount)
        was_breached_holding(p, "mounted", "mount", 0);
    if (got >= 0 || (r->beyond && got == -r->beyond))
        was_breached(p, say_result(got, text));
    was_held(p, got);
}

void probe_calls(const struct probe *p)
{
    __attribute__((aligned(16))) char room[2048] = {0};
    struct row r;

    if (find_mounts(p, &r) || find_kernel(p, &r))
        try_row(p, &r, room);
    if (find_rich(p, &r, room))
        try_row(p, &r, room);
}
