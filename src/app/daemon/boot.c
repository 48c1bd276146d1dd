/* SPDX-License-Identifier: MIT */
#include "app/daemon/boot.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/lockdown.h"
#include "base/privilege.h"
#include "base/random.h"

enum { SECRET_BYTES = 24, NAME_BUFFER = 16 * 1024, WRITABLE_MAX = 64 };

/* As pid 1 of a container nobody but its neighbours on the container's network can reach us. */
void boot_host(struct config *c)
{
    if (!c->host[0])
        (void)snprintf(c->host, sizeof c->host, "%s", getpid() == 1 ? "*" : "127.0.0.1");
}

int boot_identity(const struct config *c, struct boot_identity *ret, struct err *e)
{
    cleanup_free char *room = malloc(NAME_BUFFER);
    struct passwd pw, *found = NULL;
    int r;

    if (!privilege_is_host_root() || !c->run_as[0] || strcmp(c->run_as, "root") == 0) {
        *ret = (struct boot_identity){.uid = geteuid(), .gid = getegid()};
        return 0;
    }
    if (!room)
        return err_set(e, ERR_HOST, "no memory");
    r = getpwnam_r(c->run_as, &pw, room, NAME_BUFFER, &found);
    if (!found)
        return r != 0 ? err_sys(e, -r, "RUN_AS: user '%.64s'", c->run_as)
                      : err_set(e, ERR_CALLER, "RUN_AS: there is no user '%.64s'", c->run_as);
    *ret = (struct boot_identity){.change = true, .uid = pw.pw_uid, .gid = pw.pw_gid};
    return 0;
}

/* ---- state ---- */

static void state_dir_default(struct config *c)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (c->state_dir[0])
        return;
    if (geteuid() == 0)
        (void)snprintf(c->state_dir, sizeof c->state_dir, "/var/lib/sandbox-executor");
    else if (xdg && xdg[0] == '/')
        (void)snprintf(c->state_dir, sizeof c->state_dir, "%s/sandbox-executor", xdg);
    else
        (void)snprintf(c->state_dir, sizeof c->state_dir, "%s/.local/state/sandbox-executor",
                       home && home[0] == '/' ? home : "/tmp");
}

/* Parents as others would make them, the last one private. */
static int make_dirs(const char *path, struct err *e)
{
    char part[CONFIG_TEXT_MAX];

    for (const char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        (void)snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, *p ? 0755 : 0700) < 0 && errno != EEXIST)
            return err_sys(e, -errno, "make '%.300s'", part);
        if (!*p)
            return 0;
    }
}

int boot_state_dir(struct config *c, const struct boot_identity *who, struct err *e)
{
    cleanup_close int dir = -1;
    struct stat st;

    state_dir_default(c);
    if (make_dirs(c->state_dir, e) < 0)
        return -1;
    dir = open(c->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, -errno, "state directory '%.300s'", c->state_dir);
    if (st.st_uid != who->uid && fchown(dir, who->uid, who->gid) < 0)
        return err_sys(e, -errno, "own the state directory '%.300s'", c->state_dir);
    if ((st.st_mode & 077) != 0 && fchmod(dir, 0700) < 0)
        return err_sys(e, -errno, "close the state directory '%.300s'", c->state_dir);
    return 0;
}

int boot_workspaces(struct config *c, int *ret_dir, struct err *e)
{
    char others[CONFIG_TEXT_MAX];

    if (make_dirs(config_workspaces(c, others), e) < 0)
        return -1;
    *ret_dir = open(others, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (config_has_own_workspace(c))
        return make_dirs(c->workspace_path, e);
    memcpy(c->workspace_path, others, sizeof others);
    return 0;
}

/* The daemon writes there, and the launcher reads. */
int boot_dependencies(struct config *c, const struct boot_identity *who, struct err *e)
{
    cleanup_close int dir = -1;
    struct stat st;

    if (!c->dependencies_path[0] &&
        (size_t)snprintf(c->dependencies_path, sizeof c->dependencies_path, "%.1000s/dependencies",
                         c->state_dir) >= sizeof c->dependencies_path)
        return err_set(e, ERR_CALLER, "STATE_DIR: too long");
    if (make_dirs(c->dependencies_path, e) < 0)
        return -1;
    dir = open(c->dependencies_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_sys(e, -errno, "directory of dependencies '%.300s'", c->dependencies_path);
    if (st.st_uid != who->uid && fchown(dir, who->uid, who->gid) < 0)
        return err_sys(e, -errno, "own the directory of dependencies '%.300s'",
                       c->dependencies_path);
    return fchmod(dir, 0700) < 0
               ? err_sys(e, -errno, "close the directory of dependencies '%.300s'",
                         c->dependencies_path)
               : 0;
}

/* ---- identity ---- */

int boot_become(const struct boot_identity *who, struct err *e)
{
    int r;

    if (who->change && privilege_become(who->uid, who->gid) < 0)
        return err_sys(e, -errno, "become user %u", (unsigned)who->uid);
    r = privilege_give_up();
    if (r < 0)
        return err_sys(e, r, "drop capabilities, and never get any");
    if (who->change && setuid(0) == 0)
        return err_set(e, ERR_BUG, "privileges could be had back");
    return 0;
}

/* ---- walls ---- */

/* Directories between colons; the text is cut to pieces. */
static size_t split(char *text, const char **out, size_t max)
{
    size_t n = 0;

    for (char *at = text; at && *at && n < max;) {
        char *colon = strchr(at, ':');

        if (colon)
            *colon++ = '\0';
        out[n++] = at;
        at = colon;
    }
    return n;
}

int boot_confine(const struct config *c, unsigned *ret_walls, struct err *e)
{
    const char *writable[WRITABLE_MAX] = {c->state_dir, c->workspace_path, c->results_path};
    cleanup_free char *secret = strdup(c->secret_path), *mounts = strdup(c->mount_roots);
    char *slash = secret ? strrchr(secret, '/') : NULL;
    size_t n = 3;

    if (!secret || !mounts)
        return err_set(e, ERR_HOST, "out of memory");
    if (strcmp(c->auth_mode, "pool") == 0) {
        writable[n++] = !slash ? "." : slash == secret ? "/" : secret;
        if (slash)
            *slash = '\0';
    }
    n += split(mounts, writable + n, WRITABLE_MAX - n);
    return lockdown(writable, n, ret_walls, e);
}

/* ---- one daemon ---- */

/* The lock is the process's own: what it forks has none of it, and its end lets go. So the
 * descriptor stays open. */
int boot_lock(const struct config *c, const struct boot_identity *who, struct err *e)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[CONFIG_TEXT_MAX + 8];
    int fd;

    (void)snprintf(path, sizeof path, "%s/lock", c->state_dir);
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || (who->change && fchown(fd, who->uid, who->gid) < 0)) {
        (void)err_sys(e, -errno, "make '%.300s'", path);
        closep(&fd);
        return -1;
    }
    if (fcntl(fd, F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN))
        return 0; /* some file systems have no locks */
    if (fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        lock.l_pid = 0;
    closep(&fd);
    return err_set(e, ERR_CALLER,
                   "another daemon (pid %ld) has the state directory '%.300s': stop it, or give "
                   "this one a directory of its own (STATE_DIR)",
                   (long)lock.l_pid, c->state_dir);
}

/* ---- secret ---- */

/* Without what editors and `echo` leave around it. */
static size_t trim(char *text, size_t n)
{
    size_t from = 0;

    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    while (from < n && isspace((unsigned char)text[from]))
        from++;
    memmove(text, text + from, n - from);
    text[n - from] = '\0';
    return n - from;
}

int boot_secret_read(const char *path, char out[BOOT_SECRET_MAX], struct err *e)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : fd_read_full(fd, out, BOOT_SECRET_MAX);

    if (n < 0)
        return err_sys(e, -errno, "read the secret in '%.300s'", path);
    if (n == BOOT_SECRET_MAX)
        return err_set(e, ERR_CALLER, "the secret in '%.300s' is longer than %d bytes", path,
                       BOOT_SECRET_MAX - 1);
    if (memchr(out, '\0', (size_t)n) || trim(out, (size_t)n) == 0)
        return err_set(e, ERR_CALLER, "there is no secret in '%.300s'", path);
    return 0;
}

static int secret_make(const char *path, char out[BOOT_SECRET_MAX], struct err *e)
{
    cleanup_close int fd = -1;

    random_hex(out, SECRET_BYTES);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, -errno, "make '%.300s'", path);
    if (fd_write_all(fd, out, strlen(out)) < 0 || fd_write_all(fd, "\n", 1) < 0) {
        (void)err_sys(e, -errno, "write '%.300s'", path);
        (void)unlink(path); /* half a secret would be taken for one at the next start */
        return -1;
    }
    return 0;
}

int boot_secret(const struct config *c, char out[BOOT_SECRET_MAX], bool *ret_made, struct err *e)
{
    char path[CONFIG_TEXT_MAX + 8];

    (void)snprintf(path, sizeof path, "%s/secret", c->state_dir);
    if (access(path, F_OK) == 0)
        return boot_secret_read(path, out, e);
    if (secret_make(path, out, e) < 0)
        return -1;
    *ret_made = true;
    return 0;
}
