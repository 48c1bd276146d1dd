/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "cli/cmds.h"

#ifndef SBX_VERSION
#define SBX_VERSION "0"
#endif

static const struct {
    const char *name;
    cmd_fn *run;
    const char *help;
} cmds[] = {
    {"run",      cmd_run,      "run a file (or - for standard input) in a fresh sandbox" },
    {"mcp",      cmd_mcp,      "tools for a language model, on standard input and output"},
    {"doctor",   cmd_doctor,   "what this host can and cannot isolate, and how to fix it"},
    {"selftest", cmd_selftest, "attack the sandboxes of this host and tell what holds"   },
};

static int usage(FILE *out)
{
    (void)fprintf(out, "usage: sbx COMMAND [ARGUMENT...]\n\n");
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        (void)fprintf(out, "  %-8s %s\n", cmds[i].name, cmds[i].help);
    (void)fprintf(out, "\nsbx COMMAND --help tells more; sbx --version tells the version.\n");
    return out == stdout ? EXIT_SUCCESS : CMD_USAGE;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("sbx %s\n", SBX_VERSION);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++) {
        if (strcmp(argv[1], cmds[i].name) == 0)
            return cmds[i].run(argc - 1, argv + 1);
    }
    (void)fprintf(stderr, "sbx: unknown command '%s'\n", argv[1]);
    return usage(stderr);
}

int main(int argc, char **argv)
{
    return output_end("sbx", dispatch(argc, argv));
}
