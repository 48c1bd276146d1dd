/* SPDX-License-Identifier: MIT */
/*
 * Walls by bubblewrap, around our init (walls/bwrap.h). Without set-user-id: a host that lets
 * nobody make a user namespace cannot have it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "jail/launched.h"

static const char program[] = "/usr/bin/bwrap";

static const struct jail_ops ops = LAUNCHED_OPS("bwrap");

__attribute__((noreturn)) static void ask(int out)
{
    char *const argv[] = {(char *)(uintptr_t)program, (char *)"--version", NULL};
    char *const empty[] = {NULL};

    if (dup2(out, STDOUT_FILENO) >= 0)
        (void)execve(program, argv, empty);
    _exit(127);
}

/* "bubblewrap 0.8.0" */
static int find_version(char out[JAIL_VERSION_MAX], struct err *e)
{
    cleanup_close int here = -1, there = -1;
    cleanup_reap pid_t pid = -1;
    char said[64] = "";
    int pair[2], r = fd_pipe(pair);

    if (r < 0)
        return err_sys(e, r, "pipe");
    here = pair[0], there = pair[1];
    pid = fork();
    if (pid == 0)
        ask(there);
    (void)close(take_fd(&there));
    if (pid < 0 || fd_read_full(here, said, sizeof said - 1) <= 0 ||
        sscanf(said, "bubblewrap %31[0-9.]", out) != 1)
        return err_set(e, ERR_HOST, "%s does not tell its version", program);
    return 0;
}

int jail_bwrap_open(const struct jail_conf *c, struct jail **ret, struct err *e)
{
    char version[JAIL_VERSION_MAX] = "";

    if (access(program, X_OK) < 0)
        return err_set(e, ERR_HOST, "%s is not there: install bubblewrap 0.8 or newer", program);
    if (find_version(version, e) < 0)
        return -1;
    return launched_open(&(struct launched_kind){&ops, version, true}, c, ret, e);
}
