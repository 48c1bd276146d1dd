/* SPDX-License-Identifier: MIT */
#include "wire/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

enum { APART = 64, PATH_LONGEST = 4096, STATUS_NO_FD = 126, STATUS_NO_PROGRAM = 127 };

__attribute__((noreturn)) static void become(const char *path, char *const argv[], int sock)
{
    char *const empty[] = {NULL};
    sigset_t none;
    int there = fcntl(sock, F_DUPFD, APART);

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid(); /* a terminal's interrupt is the daemon's to handle */
    if (there < 0 || dup2(there, START_FD) < 0 || fd_close_from(START_FD + 1) < 0)
        _exit(STATUS_NO_FD);
    (void)execve(path, argv, empty);
    _exit(STATUS_NO_PROGRAM);
}

int program_start(const char *directory, const char *name, char *const argv[], int *ret_sock,
                  pid_t *ret_pid, struct err *e)
{
    cleanup_close int here = -1, there = -1;
    char path[PATH_LONGEST];
    pid_t pid;
    int sp[2], r;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
        return err_set(e, ERR_HOST, "path of %s is too long", name);
    if (access(path, X_OK) < 0)
        return err_sys(e, -errno, "%s", path);
    r = fd_message_pair(sp);
    if (r < 0)
        return err_sys(e, r, "socket of %s", name);
    here = sp[0], there = sp[1];
    pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "fork %s", name);
    if (pid == 0)
        become(path, argv, there);
    *ret_sock = take_fd(&here); /* theirs is closed here, or end of file would never come */
    *ret_pid = pid;
    return 0;
}
