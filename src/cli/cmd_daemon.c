/* SPDX-License-Identifier: MIT */
/*
 * Commands that another program installed beside us carries out, with the same arguments: the
 * daemon, and the self-test.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/os.h"
#include "cli/cmds.h"

enum { DAEMON_ARGS_MAX = 64 };

static int become(const char *program, char *args[])
{
    char path[PATH_MAX] = "";
    int r = os_beside(program, path, sizeof path);

    if (r == 0) {
        (void)execv(path, args);
        r = -errno;
    }
    (void)fprintf(stderr, "sbx: %s: %s\n", r == -ENAMETOOLONG ? program : path, strerror(-r));
    return CMD_FAILED;
}

/* The program that carries it out reads what it is given; only so much can be passed on. */
static bool is_too_much(const struct args *a)
{
    if (a->n <= DAEMON_ARGS_MAX)
        return false;
    (void)fprintf(stderr, "sbx: at most %d arguments\n", DAEMON_ARGS_MAX);
    return true;
}

int cmd_doctor(const struct args *a)
{
    char *args[DAEMON_ARGS_MAX + 3] = {(char[]){"sandbox-executor"}, (char[]){"--check-host"}};

    if (is_too_much(a))
        return CMD_USAGE;
    for (int i = 0; i < a->n; i++)
        args[i + 2] = a->operand[i];
    return become("sandbox-executor", args);
}

/* Options of the test itself go behind "--", everything else is the daemon's. */
static bool is_of_selftest(const char *arg)
{
    static const char *const own[] = {
        "--json", "--jail=", "--only=", "--slow=", "--witness-check", "--list"};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strncmp(arg, own[i], strlen(own[i])) == 0)
            return true;
    return false;
}

int cmd_selftest(const struct args *a)
{
    char *args[DAEMON_ARGS_MAX + 3] = {(char[]){"sandbox-selftest"}};
    int n = 1;

    if (is_too_much(a))
        return CMD_USAGE;
    for (int i = 0; i < a->n; i++)
        if (!is_of_selftest(a->operand[i]))
            args[n++] = a->operand[i];
    args[n++] = (char[]){"--"};
    for (int i = 0; i < a->n; i++)
        if (is_of_selftest(a->operand[i]))
            args[n++] = a->operand[i];
    return become("sandbox-selftest", args);
}
