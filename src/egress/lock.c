/* SPDX-License-Identifier: MIT */
#include "egress/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/lockdown.h"

static const struct {
    const char *name;
    unsigned roles;
} allowed[] = {
#define ALLOW(name, roles) {#name, roles},
#include "egress/lock.def"
#undef ALLOW
};

static int add(scmp_filter_ctx ctx, const char *name, unsigned n, const struct scmp_arg_cmp *cmp)
{
    int nr = seccomp_syscall_resolve_name(name);

    if (nr < 0) /* another architecture has no such call */
        return nr == __NR_SCMP_ERROR ? -ENOSYS : 0;
    return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, n, cmp);
}

/* Memory is never executable. */
static int add_memory(scmp_filter_ctx ctx)
{
    const struct scmp_arg_cmp no_exec = {2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0};
    int r = add(ctx, "mmap", 1, &no_exec);

    return r < 0 ? r : add(ctx, "mprotect", 1, &no_exec);
}

int lock_calls(enum lock_role role, struct err *e)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int r = ctx ? add_memory(ctx) : -ENOMEM;

    for (size_t i = 0; i < ARRAY_LEN(allowed) && r == 0; i++)
        if (allowed[i].roles & role)
            r = add(ctx, allowed[i].name, 0, NULL);
    if (r == 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    return r < 0 ? err_sys(e, r, "system call filter") : 0;
}

/* ---- the dialler ---- */

/* Name servers, hosts, the order of both, and the libraries that know them. */
static const char *const readable[] = {"/etc", "/run", "/usr/lib", "/usr/share", "/lib", "/lib64"};

static int allow_reading(int rules, const char *path)
{
    cleanup_close int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct landlock_path_beneath_attr below = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE |
                                                                 LANDLOCK_ACCESS_FS_READ_DIR,
                                               .parent_fd = fd};

    return fd < 0
               ? 0
               : (int)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
}

static int lock_reading(struct err *e)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE |
                                                              LANDLOCK_ACCESS_FS_READ_DIR};
    cleanup_close int rules = -1;

    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1)
        return 0; /* the kernel has no such wall */
    rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (rules < 0)
        return err_sys(e, -errno, "file rules");
    for (size_t i = 0; i < ARRAY_LEN(readable); i++)
        if (allow_reading(rules, readable[i]) < 0)
            return err_sys(e, -errno, "file rule for '%s'", readable[i]);
    return syscall(SYS_landlock_restrict_self, rules, 0) < 0 ? err_sys(e, -errno, "file rules") : 0;
}

int lock_dialler(struct err *e)
{
    unsigned walls;

    return lock_reading(e) < 0 ? -1 : lockdown(NULL, 0, &walls, e);
}
