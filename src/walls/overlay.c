/* SPDX-License-Identifier: MIT */
#include "walls/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/plan_parts.h"

enum { COPY_DEPTH_MAX = 8, PATH_ROOM = 128 };

/* The tmpfs is filled here and bound from here; the last thing is to put an empty directory of it
 * in its own place. */
#define STAGE    "/mnt"
#define PROGRAMS "/opt/sandbox-executor"

static const struct {
    const char *path; /* below the stage */
    mode_t mode;
} made[] = {
    {"home",      0755 },
    {"home/user", 0755 },
    {"var",       0755 },
    {"var/tmp",   01777},
    {"var/lib",   0755 },
    {"var/log",   0755 },
    {"var/cache", 0755 },
    {"opt",       0755 },
    {"srv",       0755 },
    {"run",       0755 },
    {"mnt",       0755 },
    {".usr",      0755 },
    {".local",    0755 },
    {".slot",     0755 },
    {".merged",   0755 },
};
static const char *const bound[] = {"home", "var", "opt", "srv", "run", "etc"};
static const char *const local_dirs[] = {"bin", "etc", "include", "lib", "sbin", "share", "src"};

/* ---- the tmpfs ---- */

static int mount_stage(const struct root_private *p)
{
    char options[PATH_ROOM];

    (void)snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0755",
                   (unsigned long long)p->workspace_max, (unsigned long long)p->workspace_files);
    return mount("disk", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

static int make_dir(const char *name, mode_t mode, uid_t uid)
{
    char path[PATH_ROOM + sizeof STAGE];

    (void)snprintf(path, sizeof path, STAGE "/%s", name);
    if (mkdir(path, mode) < 0 || chmod(path, mode) < 0)
        return -errno;
    return chown(path, uid, uid) < 0 ? -errno : 0;
}

static int make_dirs(uid_t uid)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(made) && r == 0; i++)
        r = make_dir(made[i].path, made[i].mode, uid);
    return r;
}

/* ---- /etc ---- */

static int copy_dir(int from_dir, const char *name, int to_dir, const char *to_name, int depth);

static int copy_file(int from_dir, const char *name, int to_dir, mode_t mode)
{
    cleanup_close int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to = -1;
    char part[16384];
    ssize_t n;
    int r = 0;

    if (from < 0)
        return -errno;
    to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode & 0777);
    if (to < 0)
        return -errno;
    while (r == 0 && (n = read(from, part, sizeof part)) > 0)
        r = fd_write_all(to, part, (size_t)n);
    return r;
}

static int copy_entry(int from_dir, const char *name, int to_dir, int depth)
{
    char target[512];
    struct stat st;
    ssize_t n;

    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return copy_dir(from_dir, name, to_dir, name, depth + 1);
    if (S_ISREG(st.st_mode))
        return copy_file(from_dir, name, to_dir, st.st_mode);
    n = readlinkat(from_dir, name, target, sizeof target - 1);
    if (n <= 0)
        return 0; /* the template has nothing else */
    target[n] = '\0';
    return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int copy_dir(int from_dir, const char *name, int to_dir, const char *to_name, int depth)
{
    cleanup_close int to = -1;
    int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
    DIR *d = from < 0 ? NULL : fdopendir(from);

    if (!d)
        return closep(&from), -EIO;
    if (mkdirat(to_dir, to_name, 0755) < 0)
        r = -errno;
    to = r < 0 ? -1 : openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0 || depth == COPY_DEPTH_MAX)
        r = -EIO;
    for (struct dirent *at; r == 0 && (at = readdir(d));)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            r = copy_entry(dirfd(d), at->d_name, to, depth);
    (void)closedir(d);
    return r;
}

/* Here people live: the user is `user` and has a home. The name that sandboxes for one run have for
 * it stays, as another name. */
static int name_user(int stage)
{
    static const struct {
        const char *path, *text;
    } files[] = {
        {"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                       "user:x:1000:1000:user:/home/user:/bin/bash\n"
                       "sandbox:x:1000:1000:sandbox:/workspace:/bin/bash\n"
                       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
        {"etc/group",  "root:x:0:\nuser:x:1000:\nsandbox:x:1000:\nnogroup:x:65534:\n"                      },
    };
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(files) && r == 0; i++) {
        cleanup_close int fd =
            openat(stage, files[i].path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);

        r = fd < 0 ? -errno : fd_write_all(fd, files[i].text, strlen(files[i].text));
    }
    return r;
}

/* As the sandbox's user, so that the copies are its own. */
static int copy_etc(uid_t uid)
{
    cleanup_close int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int stage = open(STAGE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uid_t before;
    gid_t group;
    int r;

    if (root < 0 || stage < 0 || fchown(stage, uid, uid) < 0)
        return -errno;
    before = (uid_t)setfsuid(uid);
    group = (gid_t)setfsgid(uid);
    r = copy_dir(root, "etc", stage, "etc", 0);
    if (r == 0)
        r = name_user(stage);
    (void)setfsuid(before);
    (void)setfsgid(group);
    return r;
}

/* ---- /usr ---- */

/* A user namespace in which the host's root is the sandbox's user; -1 when there can be none. */
static int owner_namespace(uid_t uid)
{
    char path[PATH_ROOM], map[48];
    cleanup_reap pid_t pid = sys_clone3(CLONE_NEWUSER, NULL);
    static const char *const files[] = {"uid_map", "gid_map"};

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    if (pid < 0)
        return -1;
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)uid);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        cleanup_close int fd = -1;

        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, map, strlen(map)) < 0)
            return -1;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static int mount_overlay(const char *lower, const char *upper, const char *at)
{
    char options[4 * PATH_ROOM];

    (void)snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", lower,
                   upper, upper);
    return mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV, options) < 0 ? -errno : 0;
}

static int make_layers(const char *name, uid_t uid)
{
    char path[PATH_ROOM];
    int r;

    (void)snprintf(path, sizeof path, "%s/upper", name);
    r = make_dir(path, 0755, uid);
    (void)snprintf(path, sizeof path, "%s/work", name);
    return r ? r : make_dir(path, 0700, 0);
}

/* All of /usr, its files owned by the sandbox's user. */
static int overlay_usr(uid_t uid)
{
    cleanup_close int ns = owner_namespace(uid), tree = -1;
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY};
    int r = make_dir(".lower", 0755, uid);

    if (ns < 0 || r < 0)
        return -ENOSYS;
    tree = sys_open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    attr.userns_fd = (uint64_t)ns;
    if (tree < 0 || sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0)
        return -errno;
    if (sys_move_mount(tree, "", AT_FDCWD, STAGE "/.lower", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -errno;
    r = make_layers(".usr", uid);
    return r ? r : mount_overlay(STAGE "/.lower", STAGE "/.usr", "/usr");
}

/* Directories that are there in the upper layer belong to the sandbox's user: files can be added.
 */
static int overlay_local(uid_t uid)
{
    int r = make_layers(".local", uid);
    char path[PATH_ROOM];

    for (size_t i = 0; i < ARRAY_LEN(local_dirs) && r == 0; i++) {
        (void)snprintf(path, sizeof path, ".local/upper/%s", local_dirs[i]);
        r = make_dir(path, 0755, uid);
    }
    return r ? r : mount_overlay("/usr/local", STAGE "/.local", STAGE "/.merged");
}

/* The slot's overlay (apart.h) is taken off the host's /usr: a file system cannot be shown with
 * other owners through an overlay. False: there was none. */
static bool uncover(void)
{
    if (mount("/usr", STAGE "/.slot", NULL, MS_MOVE, NULL) < 0)
        return false;
    if (access("/usr/bin", F_OK) == 0)
        return true;
    (void)!mount(STAGE "/.slot", "/usr", NULL, MS_MOVE, NULL);
    return false;
}

/* Where /usr cannot be writable, /usr/local is, and the rest is the slot's again. */
static int writable_usr(uid_t uid)
{
    bool uncovered = uncover(), local;

    if (overlay_usr(uid) == 0)
        return 0; /* what was taken off goes with the stage */
    local = overlay_local(uid) == 0;
    if (uncovered && mount(STAGE "/.slot", "/usr", NULL, MS_MOVE, NULL) < 0)
        return -errno;
    if (local && mount(STAGE "/.merged", "/usr/local", NULL, MS_MOVE, NULL) < 0)
        return -errno;
    return 0; /* less, and said so: INIT_READY */
}

/* ---- together ---- */

/* Our own programs stay to be seen below an /opt that is the sandbox's. */
static int bind_programs(int programs)
{
    if (mkdir(PROGRAMS, 0755) < 0)
        return -errno;
    return sys_move_mount(programs, "", AT_FDCWD, PROGRAMS, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
                                                                                         : 0;
}

static int bind_all(void)
{
    cleanup_close int programs =
        sys_open_tree(AT_FDCWD, PROGRAMS, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    char from[PATH_ROOM], to[PATH_ROOM];

    if (programs < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(bound); i++) {
        (void)snprintf(from, sizeof from, STAGE "/%s", bound[i]);
        (void)snprintf(to, sizeof to, "/%s", bound[i]);
        if (mount(from, to, NULL, MS_BIND, NULL) < 0)
            return -errno;
    }
    return bind_programs(programs);
}

/* Packages are mounted below /opt, which is about to be covered: they are put aside, and come back
 * into the directory that is made for them. */
static int put_packages_aside(const struct root_private *p)
{
    int r = p->dependencies < 0 ? 0 : make_dir(".packages", 0755, p->uid);

    if (p->dependencies < 0 || r < 0)
        return r;
    if (mount(PLAN_DEPENDENCIES, STAGE "/.packages", NULL, MS_MOVE, NULL) < 0)
        return -errno;
    return make_dir("opt/sandbox-venv", 0755, p->uid);
}

static int put_packages_back(const struct root_private *p)
{
    if (p->dependencies < 0)
        return 0;
    return mount(STAGE "/.packages", PLAN_DEPENDENCIES, NULL, MS_MOVE, NULL) < 0 ? -errno : 0;
}

/* Layers stay with their overlays; nobody inside can reach them by name. */
static int close_stage(void)
{
    cleanup_close int tree =
        sys_open_tree(AT_FDCWD, STAGE "/mnt", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0 || umount2(STAGE, MNT_DETACH) < 0)
        return -errno;
    return sys_move_mount(tree, "", AT_FDCWD, STAGE, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int overlay_mount(const struct root_private *p)
{
    int r = mount_stage(p);

    if (r == 0)
        r = make_dirs(p->uid);
    if (r == 0)
        r = copy_etc(p->uid);
    if (r == 0)
        r = writable_usr(p->uid);
    if (r == 0)
        r = put_packages_aside(p);
    if (r == 0)
        r = bind_all();
    if (r == 0)
        r = put_packages_back(p);
    return r ? r : close_stage();
}
