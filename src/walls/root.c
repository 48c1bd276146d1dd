/* SPDX-License-Identifier: MIT */
#include "walls/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys.h"
#include "core/plan_parts.h"
#include "init/order.h"
#include "walls/apart.h"

enum { ETC_FILE_MAX = 1 << 20, ETC_DEPTH_MAX = 6, PROGRAM_MAX = 24 << 20 };

/* The template is assembled here before the root is pivoted; any existing directory will do, the
 * mount namespace is private. */
static const char stage[] = "/tmp";

static const char *const directories[] = {
    "usr",
    "proc",
    "dev",
    "dev/pts",
    "dev/shm",
    "tmp",
    "workspace",
    "etc",
    "etc/ssl",
    "var",
    "var/tmp",
    "run",
    "home",
    "opt",
    "srv",
    "mnt",
    "opt/sandbox-executor",
    "opt/sandbox-executor/bin",
    "opt/sandbox-venv", /* PLAN_DEPENDENCIES */
};

/* Programs of ours that a process of a tenant runs, was copied from, or maps. They are copied, so
 * that neither /proc/self/exe nor /proc/self/maps leads to a file of the host. */
static const char *const programs_inside[] = {
    "sandbox-inspect",
    "sandbox-init",
    "sandbox-shell.so",
    "sandbox-zygote-node",
    "sandbox-zygote-node.node",
    "sandbox-zygote-python",
    "cells_python.py",
    "cells_javascript.js",
    "cells_bash.sh",
    "cells_r.R",
    "cells_tools.py",
    "cells_tools.js",
    "cells_acorn.js",
    "cells_amaro.js",
};

/* Top-level names that are links into /usr on merged systems and directories on others. */
static const char *const system_links[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* Of /etc only what programs cannot do without, and nothing that is a secret. */
static const char *const etc_shared[] = {
    "alternatives",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "mime.types",
    "fonts",
    "protocols",
    "services",
    "python3",
    "python3.11",
    "php",
    "matplotlibrc",
    "magic",
    "bash.bashrc",
    "ImageMagick-6",
    "perl",
    "R",
    "java-17-openjdk",
    "ca-certificates.conf",
    "rpc",
    "debian_version",
    "os-release",
    "papersize",
    "inputrc",
    "terminfo",
};

static const struct {
    const char *name, *text;
} etc_made[] = {
    {"passwd",        "root:x:0:0:root:/root:/usr/sbin/nologin\n"
               "sandbox:x:1000:1000:sandbox:/workspace:/bin/bash\n"
               "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"      },
    {"group",         "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"                           },
    {"hosts",         "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"  },
    {"hostname",      "sandbox\n"                                                                },
    {"nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                      "networks: files\nprotocols: files\nservices: files\n"},
    {"resolv.conf",   "# no network\n"                                                           },
    {"host.conf",     "multi on\n"                                                               },
    {"machine-id",    "00000000000000000000000000000001\n"                                       },
};

static const struct {
    const char *name;
    unsigned minor, major;
} devices[] = {
    {"null",    3, 1},
    {"zero",    5, 1},
    {"full",    7, 1},
    {"random",  8, 1},
    {"urandom", 9, 1},
    {"tty",     0, 5},
};

static const struct {
    const char *name, *target;
} device_links[] = {
    {"ptmx",   "pts/ptmx"       },
    {"fd",     "/proc/self/fd"  },
    {"stdin",  "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"},
};

static int path_in(char out[512], const char *dir, const char *name)
{
    return (size_t)snprintf(out, 512, "%s%s%s", stage, dir, name) < 512 ? 0 : -ENAMETOOLONG;
}

/* A read-only view of a host file or directory. Recursive: what is mounted below comes along, and
 * is read-only as well. */
static int bind_read_only(const char *from, const char *to)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};

    if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
        return -errno;
    if (sys_mount_setattr(AT_FDCWD, to, AT_RECURSIVE, &attr) == 0)
        return 0;
    /* KERNEL 5.12: no mount_setattr; flags that the host has set may not be dropped rootless */
    return mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0
               ? -errno
               : 0;
}

static int write_file(const char *path, const char *text)
{
    cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int make_directories(void)
{
    char path[512];

    for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
        int r = path_in(path, "/", directories[i]);

        if (r < 0)
            return r;
        if (mkdir(path, 0755) < 0)
            return -errno;
    }
    return 0;
}

/* Not there, or not ours to read: a host may be like that. Everything else is a failure, or the
 * root would lack something that only a program misses. */
static int unless_missing(int error)
{
    bool missing = error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP;

    return missing ? 0 : -error;
}

static int share_system(void)
{
    char from[64], to[512], target[256];
    int r = path_in(to, "/", "usr");

    if (r == 0)
        r = bind_read_only("/usr", to);
    for (size_t i = 0; i < ARRAY_LEN(system_links) && r == 0; i++) {
        ssize_t n;

        (void)snprintf(from, sizeof from, "/%s", system_links[i]);
        (void)path_in(to, "/", system_links[i]);
        n = readlink(from, target, sizeof target - 1);
        if (n > 0) {
            target[n] = '\0';
            r = symlink(target, to) < 0 ? -errno : 0;
        } else if (errno == EINVAL) { /* a real directory */
            r = mkdir(to, 0755) < 0 ? -errno : bind_read_only(from, to);
        } else {
            r = unless_missing(errno);
        }
    }
    return r;
}

/* Copied, not bound: every mount would be paid for again by each sandbox. */
static int copy_bytes(int from, int to_dir, const char *name, mode_t mode)
{
    cleanup_close int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    char part[16384];
    ssize_t n;

    if (to < 0)
        return -errno;
    while ((n = read(from, part, sizeof part)) > 0)
        if (fd_write_all(to, part, (size_t)n) < 0)
            return -EIO;
    return n < 0 ? -errno : 0;
}

/* What not everybody on the host may read is a secret and stays out. */
static int copy_file(int from_dir, const char *name, int to_dir)
{
    cleanup_close int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (from < 0)
        return unless_missing(errno);
    if (fstat(from, &st) < 0)
        return -errno;
    if (!(st.st_mode & S_IROTH) || st.st_size > ETC_FILE_MAX)
        return 0;
    return copy_bytes(from, to_dir, name, st.st_mode & 0755);
}

static int copy_link(int from_dir, const char *name, int to_dir)
{
    char target[512];
    ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);

    if (n <= 0)
        return n < 0 ? unless_missing(errno) : 0;
    target[n] = '\0';
    return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int copy_entry(int from_dir, const char *name, int to_dir, int depth);

static int copy_directory(int from_dir, const char *name, int to_dir, int depth)
{
    cleanup_close int from =
                          openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
                      to = -1;
    int listed, r = 0;
    DIR *d;

    if (from < 0)
        return unless_missing(errno);
    if (depth == ETC_DEPTH_MAX)
        return 0;
    if (mkdirat(to_dir, name, 0755) < 0)
        return -errno;
    to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    listed = fd_dup(from);
    d = listed < 0 ? NULL : fdopendir(listed);
    if (to < 0 || !d)
        return closep(&listed), -EIO;
    errno = 0;
    for (struct dirent *at; r == 0 && (at = readdir(d)); errno = 0)
        if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
            r = copy_entry(from, at->d_name, to, depth + 1);
    if (r == 0)
        r = -errno;
    (void)closedir(d);
    return r;
}

static int copy_entry(int from_dir, const char *name, int to_dir, int depth)
{
    struct stat st;

    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return unless_missing(errno);
    if (S_ISLNK(st.st_mode))
        return copy_link(from_dir, name, to_dir);
    if (S_ISDIR(st.st_mode))
        return copy_directory(from_dir, name, to_dir, depth);
    return S_ISREG(st.st_mode) ? copy_file(from_dir, name, to_dir) : 0;
}

/* "ssl/certs" is the entry "certs" of the directory "ssl" on both sides. */
static int share_etc_entry(const char *name)
{
    const char *slash = strrchr(name, '/');
    cleanup_close int from = -1, to = -1;
    char path[128], here[512];

    (void)snprintf(path, sizeof path, "/etc/%.*s", slash ? (int)(slash - name) : 0, name);
    (void)snprintf(here, sizeof here, "%s%s", stage, path);
    from = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to = open(here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0 || to < 0)
        return unless_missing(errno);
    return copy_entry(from, slash ? slash + 1 : name, to, 0);
}

static int make_etc(void)
{
    char path[512];
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(etc_made) && r == 0; i++) {
        (void)path_in(path, "/etc/", etc_made[i].name);
        r = write_file(path, etc_made[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(etc_shared) && r == 0; i++)
        r = share_etc_entry(etc_shared[i]);
    (void)path_in(path, "/etc/", "mtab");
    return r ? r : symlink("/proc/self/mounts", path) < 0 ? -errno : 0;
}

/* One that was not built is not there, and the kernel says so to the process that starts it. The
 * modes are ours: a build directory that is closed to others gives working sandboxes all the same.
 */
static int share_program(int from_dir, const char *name, int to_dir)
{
    cleanup_close int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (from < 0)
        return unless_missing(errno);
    if (fstat(from, &st) < 0)
        return -errno;
    if (st.st_size > PROGRAM_MAX)
        return -EFBIG;
    return copy_bytes(from, to_dir, name, 0755);
}

static int share_programs(int from)
{
    cleanup_close int to = -1;
    char path[512];
    int r = 0;

    if (from < 0)
        return 0;
    (void)path_in(path, ROOT_PROGRAMS, "");
    to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_LEN(programs_inside) && r == 0; i++)
        r = share_program(from, programs_inside[i], to);
    return r;
}

/* Without privilege there is no mknod: the host's nodes are bound instead. */
static int bind_device(size_t i)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
    char from[64], path[512];

    (void)path_in(path, "/dev/", devices[i].name);
    (void)snprintf(from, sizeof from, "/dev/%s", devices[i].name);
    if (write_file(path, "") < 0)
        return -EIO;
    if (mount(from, path, NULL, MS_BIND, NULL) < 0)
        return -errno;
    /* KERNEL 5.12: no mount_setattr; a device is no program all the same */
    return sys_mount_setattr(AT_FDCWD, path, 0, &attr) < 0 && errno != ENOSYS ? -errno : 0;
}

static int link_devices(int dir)
{
    for (size_t i = 0; i < ARRAY_LEN(device_links); i++)
        if (symlinkat(device_links[i].target, dir, device_links[i].name) < 0)
            return -errno;
    return 0;
}

int root_make_devices(int dir)
{
    for (size_t i = 0; i < ARRAY_LEN(devices); i++)
        if (mknodat(dir, devices[i].name, S_IFCHR | 0666,
                    makedev(devices[i].major, devices[i].minor)) < 0 ||
            fchmodat(dir, devices[i].name, 0666, 0) < 0)
            return -errno;
    return link_devices(dir);
}

static int make_dev(bool rootless)
{
    cleanup_close int dir = -1;
    char path[512];
    int r = 0;

    (void)path_in(path, "/dev", "");
    dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    if (!rootless)
        return root_make_devices(dir);
    for (size_t i = 0; i < ARRAY_LEN(devices) && r == 0; i++)
        r = bind_device(i);
    return r ? r : link_devices(dir);
}

static int mount_stage(void)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    return mount("root", stage, "tmpfs", MS_NOSUID, "size=64m,nr_inodes=16384,mode=0755") < 0
               ? -errno
               : 0;
}

/* The second layer of the overlays over all this (apart.h). */
static int mount_empty(void)
{
    char path[512];

    (void)path_in(path, APART_EMPTY, "");
    return mount("empty", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "size=4k,nr_inodes=1,mode=0755") < 0
               ? -errno
               : 0;
}

/* A /proc of the launcher's pid namespace stays below the sandboxes' own: without a visible one
 * the kernel lets no user namespace mount another. */
static int mount_proc(void)
{
    char path[512];

    (void)path_in(path, "/", "proc");
    return mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? -errno : 0;
}

static int enter_stage(void)
{
    if (chdir(stage) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return -errno;
    /* last, because mount points had to be made */
    return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0 ? -errno
                                                                                          : 0;
}

static int build(bool rootless, int programs, struct err *e)
{
    int r;

    if (unshare(CLONE_NEWNS) < 0)
        return err_sys(e, -errno, "mount namespace of the template");
    r = mount_stage();
    if (r < 0)
        return err_sys(e, r, "root tmpfs of the template");
    r = make_directories();
    if (r < 0)
        return err_sys(e, r, "directories of the template");
    r = share_system();
    if (r < 0)
        return err_sys(e, r, "/usr of the template");
    r = make_etc();
    if (r < 0)
        return err_sys(e, r, "/etc of the template");
    r = share_programs(programs);
    if (r < 0)
        return err_sys(e, r, "programs of the template");
    r = make_dev(rootless);
    if (r < 0)
        return err_sys(e, r, "/dev of the template");
    r = mount_proc();
    if (r < 0)
        return err_sys(e, r, "/proc of the template");
    r = mount_empty();
    if (r < 0)
        return err_sys(e, r, "empty directory of the template");
    r = enter_stage();
    return r < 0 ? err_sys(e, r, "enter the template") : 0;
}

/* The child that builds: sends the namespace's descriptor, or its error. */
__attribute__((noreturn)) static void builder(bool rootless, int programs, int sock)
{
    struct err e = {0};
    cleanup_close int ns = -1;

    (void)umask(022);
    if (build(rootless, programs, &e) == 0) {
        ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (ns < 0)
            (void)err_sys(&e, -errno, "descriptor of the template");
    }
    (void)!fd_send(sock, &e, sizeof e, &ns, ns >= 0 ? 1 : 0);
    _exit(0);
}

int root_template(bool rootless, int programs, int *ret_mntns, struct err *e)
{
    cleanup_close int here = -1, there = -1, ns = -1;
    cleanup_reap pid_t pid = -1;
    struct err report;
    size_t n = 1;
    int sp[2], r;

    r = fd_message_pair(sp);
    if (r < 0)
        return err_sys(e, r, "template socket");
    here = sp[0], there = sp[1];
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork the template builder");
    if (pid == 0)
        builder(rootless, programs, there);
    (void)close(take_fd(&there));
    if (fd_recv(here, &report, sizeof report, &ns, &n) != sizeof report || n != 1) {
        if (report.kind == ERR_NONE)
            return err_set(e, ERR_BUG, "the template builder died");
        *e = report;
        return -1;
    }
    *ret_mntns = take_fd(&ns);
    return 0;
}

/* ---- in each sandbox ---- */

int root_mount_workspace(const struct root_private *p)
{
    char options[160];

    (void)snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0755",
                   (unsigned long long)p->workspace_max, (unsigned long long)p->workspace_files);
    if (mount("workspace", "/workspace", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    /* not by option: those can be read inside, and the number is the host's */
    return chown("/workspace", p->uid, p->uid) < 0 ? -errno : 0;
}

static int attach_workspace(const struct root_private *p)
{
    if (p->workspace < 0)
        return root_mount_workspace(p);
    return sys_move_mount(p->workspace, "", AT_FDCWD, "/workspace", MOVE_MOUNT_F_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

static int mount_dependencies(const struct root_private *p)
{
    if (p->dependencies < 0)
        return 0;
    return sys_move_mount(p->dependencies, "", AT_FDCWD, PLAN_DEPENDENCIES,
                          MOVE_MOUNT_F_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

int root_mount_private(const struct root_private *p, const char **ret_step)
{
    char options[96];
    int r = attach_workspace(p);

    *ret_step = "workspace";
    if (r < 0)
        return r;
    (void)snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=1777",
                   (unsigned long long)p->tmp_max, (unsigned long long)p->workspace_files);
    *ret_step = "/tmp";
    if (mount("tmp", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    *ret_step = "/dev/shm";
    if (mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
        return -errno;
    *ret_step = "/dev/pts";
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
              "newinstance,ptmxmode=0666,mode=0600,max=64") < 0)
        return -errno;
    *ret_step = "dependencies";
    r = mount_dependencies(p);
    if (r < 0)
        return r;
    *ret_step = "/proc";
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return -errno;
    return 0;
}
