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

/* Is there something to say instead of becoming the daemon, whose own --help is another? */
static bool is_usage_wanted(int argc, char **argv, const char *usage, int *ret_status)
{
    bool many = argc > DAEMON_ARGS_MAX;
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

    if (!many && !help)
        return false;
    (void)fputs(usage, many ? stderr : stdout);
    *ret_status = many ? CMD_USAGE : EXIT_SUCCESS;
    return true;
}

int cmd_doctor(int argc, char **argv)
{
    static const char usage[] =
        "usage: sbx doctor [OPTION OF sandbox-executor...]\n\n"
        "Says what this host can isolate with these options, and what is in the way of more.\n"
        "sandbox-executor --help lists the options.\n";
    char *args[DAEMON_ARGS_MAX + 3] = {(char[]){"sandbox-executor"}, (char[]){"--check-host"}};
    int status;

    if (is_usage_wanted(argc, argv, usage, &status))
        return status;
    for (int i = 1; i < argc; i++)
        args[i + 1] = argv[i];
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

int cmd_selftest(int argc, char **argv)
{
    static const char usage[] =
        "usage: sbx selftest [--json] [--jail=NAME] [--only=TEXT] [--slow=N] [--witness-check]\n"
        "                    [--list] [OPTION OF sandbox-executor...]\n";
    char *args[DAEMON_ARGS_MAX + 3] = {(char[]){"sandbox-selftest"}};
    int n = 1, status;

    if (is_usage_wanted(argc, argv, usage, &status))
        return status;
    for (int i = 1; i < argc; i++)
        if (!is_of_selftest(argv[i]))
            args[n++] = argv[i];
    args[n++] = (char[]){"--"};
    for (int i = 1; i < argc; i++)
        if (is_of_selftest(argv[i]))
            args[n++] = argv[i];
    return become("sandbox-selftest", args);
}
