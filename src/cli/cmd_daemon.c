/* SPDX-License-Identifier: MIT */
/*
 * Commands that the daemon itself carries out, for it knows its host best: the one installed beside
 * us is asked, with the same arguments.
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

static bool daemon_path(char path[PATH_MAX])
{
    static const char name[] = "sandbox-executor";
    ssize_t n = os_program(path, PATH_MAX - sizeof name);
    char *slash;

    if (n <= 0)
        return false;
    path[n] = '\0';
    slash = strrchr(path, '/');
    memcpy(slash ? slash + 1 : path, name, sizeof name);
    return true;
}

static int become_daemon(char *args[])
{
    char path[PATH_MAX];

    if (daemon_path(path))
        (void)execv(path, args);
    (void)fprintf(stderr, "sbx: %s: %s\n", path, strerror(errno));
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
    return become_daemon(args);
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
    char *args[DAEMON_ARGS_MAX + 4] = {(char[]){"sandbox-executor"}, (char[]){"--selftest"}};
    int n = 2, status;

    if (is_usage_wanted(argc, argv, usage, &status))
        return status;
    for (int i = 1; i < argc; i++)
        if (!is_of_selftest(argv[i]))
            args[n++] = argv[i];
    args[n++] = (char[]){"--"};
    for (int i = 1; i < argc; i++)
        if (is_of_selftest(argv[i]))
            args[n++] = argv[i];
    return become_daemon(args);
}
