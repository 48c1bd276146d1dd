/* SPDX-License-Identifier: MIT */
#include "init/fence.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/plan.h"

#ifndef LANDLOCK_ACCESS_FS_REFER /* since version 2 */
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* since version 3 */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

enum { ABI_REFER = 2, ABI_TRUNCATE = 3 };

#define ACCESS_MODIFY (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define ACCESS_CREATE                                                                              \
    (LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_SYM |     \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_REFER)
#define ACCESS_DELETE                                                                              \
    (LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REFER)
#define ACCESS_ALL (ACCESS_MODIFY | ACCESS_CREATE | ACCESS_DELETE)

static bool is_directory(const char *path)
{
    return path[0] && path[strlen(path) - 1] == '/';
}

/* What this kernel knows of what we ask for; 0: it has no Landlock. */
static uint64_t known_access(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    uint64_t known = ACCESS_ALL;

    if (abi < 1)
        return 0;
    if (abi < ABI_REFER)
        known &= ~LANDLOCK_ACCESS_FS_REFER;
    if (abi < ABI_TRUNCATE)
        known &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
    return known;
}

static uint64_t access_of(uint32_t rights, bool directory)
{
    uint64_t access = rights & PLAN_MODIFY ? ACCESS_MODIFY : 0;

    if (directory && rights & PLAN_CREATE)
        access |= ACCESS_CREATE;
    if (directory && rights & PLAN_DELETE)
        access |= ACCESS_DELETE;
    return access;
}

static int add_rule(int rules, const char *path, uint64_t access)
{
    cleanup_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct landlock_path_beneath_attr at = {.allowed_access = access, .parent_fd = fd};

    if (fd < 0)
        return -errno;
    return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &at, 0) < 0 ? -errno
                                                                                         : 0;
}

static int lock(char *const *paths, const struct job_file *files, size_t n, uint64_t known)
{
    struct landlock_ruleset_attr handled = {.handled_access_fs = known};
    cleanup_close int rules =
        (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled.handled_access_fs, 0);
    int r = 0;

    if (rules < 0)
        return -errno;
    for (size_t i = 0; i < n && r == 0; i++) {
        uint64_t access = access_of(files[i].rights, is_directory(paths[i])) & known;

        if (access)
            r = add_rule(rules, paths[i], access);
    }
    if (r == 0 && syscall(SYS_landlock_restrict_self, rules, 0) < 0)
        r = -errno;
    return r;
}

static int fence_lock(char *const *paths, const struct job_file *files, size_t n)
{
    uint64_t known = known_access();

    return known ? lock(paths, files, n, known) : 0;
}

/* Directories with every right may be somebody else's: /tmp and the like. */
static int set_modes(char *const *paths, const struct job_file *files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (files[i].rights != PLAN_EVERYTHING && !(files[i].rights & PLAN_THERE) &&
            chmod(paths[i], files[i].mode & 0777) < 0)
            return -errno;
    return 0;
}

int fence_raise(char *const *paths, const struct job_file *files, size_t n)
{
    int r = set_modes(paths, files, n);

    return r == 0 ? fence_lock(paths, files, n) : r;
}
