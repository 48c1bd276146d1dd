/* SPDX-License-Identifier: MIT */
#include "launcher/discard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/privilege.h"
#include "init/remove.h"

/* In a child of its own, which ends as somebody who may do nothing else. */
static int empty_as_owner(const struct kept *k, int dir)
{
    struct stat st;
    int r;

    if (fstat(dir, &st) < 0 || fchdir(dir) < 0 || (chroot(".") < 0 && !k->plain))
        return -errno;
    if (!k->rootless && (st.st_uid == 0 || privilege_become(st.st_uid, st.st_gid) < 0))
        return -EPERM;
    r = privilege_give_up();
    return r < 0 ? r : remove_inside(dir);
}

/* errno, or 0. The directory itself is empty by then, and only its owner can remove it. */
static int discard(const struct kept *k, const char *gone)
{
    cleanup_close int dir =
        openat(k->root.dir, gone, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int status;
    pid_t pid;

    if (dir < 0)
        return errno;
    pid = fork();
    if (pid == 0)
        _exit(-empty_as_owner(k, dir));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return errno;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    return unlinkat(k->root.dir, gone, AT_REMOVEDIR) < 0 ? errno : 0;
}

void discard_start(struct measures *all, struct kept *k, const struct launch_msg *m, int out)
{
    struct launch_measured answer = {.error = EAGAIN};
    char gone[KEPT_GONE_MAX];
    int r = measures_room(all) ? kept_discard(k, m->workspace, sizeof m->workspace, gone) : -EAGAIN;
    pid_t pid = r == 0 ? measures_fork(all) : -1;

    if (pid > 0)
        return;
    answer.gone = r == 0 || r == -ENOENT;
    if (pid == 0)
        answer.error = discard(k, gone);
    else if (r < 0)
        answer.error = -r;
    (void)!fd_write_all(out, &answer, sizeof answer);
    if (pid == 0)
        _exit(0);
}

static void leftovers(const struct kept *k)
{
    int again = openat(k->root.dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again >= 0 ? fdopendir(again) : NULL;

    for (const struct dirent *at; d && (at = readdir(d));)
        if (strncmp(at->d_name, KEPT_GONE, strlen(KEPT_GONE)) == 0)
            (void)discard(k, at->d_name);
}

void discard_leftovers(struct measures *all, const struct kept *k)
{
    pid_t pid = k->root.dir >= 0 ? measures_fork(all) : -1;

    if (pid == 0) {
        leftovers(k);
        _exit(0);
    }
}
