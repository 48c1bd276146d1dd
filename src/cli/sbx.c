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

static int usage(FILE *out)
{
    const struct command *c;

    (void)fprintf(out, "usage: sbx COMMAND [ARGUMENT...]\n\n");
    for (size_t i = 0; (c = command(i)); i++)
        (void)fprintf(out, "  %-15s %s\n", c->name, c->summary);
    (void)fprintf(out, "\nsbx COMMAND --help tells more; sbx --version tells the version.\n");
    return out == stdout ? EXIT_SUCCESS : CMD_USAGE;
}

/* The first word of commands with two. */
static int usage_group(const char *word)
{
    size_t n = strlen(word);
    const struct command *c;
    bool found = false;

    for (size_t i = 0; (c = command(i)); i++) {
        if (strncmp(c->name, word, n) != 0 || c->name[n] != ' ')
            continue;
        (void)fprintf(stderr, "%s  %-15s %s\n", found ? "" : "usage: sbx one of\n", c->name,
                      c->summary);
        found = true;
    }
    if (found)
        return CMD_USAGE;
    (void)fprintf(stderr, "sbx: there is no command '%s'; sbx --help lists those there are\n",
                  word);
    return CMD_USAGE;
}

static bool is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

static int carry_out(const struct command *c, int argc, char **argv)
{
    cleanup_with(args_done) struct args a = {.command = c, .operand = argv + 1, .n = argc - 1};

    if (c->flags & COMMAND_PASSES) {
        if (argc < 2 || !is_help(argv[1]))
            return c->run(&a);
        command_help(c, stdout);
        return EXIT_SUCCESS;
    }
    switch (args_read(c, argc, argv, &a)) {
    case ARGS_GOOD:
        return c->run(&a);
    case ARGS_HELP:
        return EXIT_SUCCESS;
    case ARGS_WRONG:
        break;
    }
    return CMD_USAGE;
}

static int dispatch(int argc, char **argv)
{
    const struct command *c;
    int words = 0;

    if (argc < 2)
        return usage(stderr);
    if (is_help(argv[1]))
        return usage(stdout);
    if (strcmp(argv[1], "--version") == 0) {
        (void)printf("sbx %s\n", SBX_VERSION);
        return EXIT_SUCCESS;
    }
    c = command_find(argc - 1, argv + 1, &words);
    return c ? carry_out(c, argc - words, argv + words) : usage_group(argv[1]);
}

int main(int argc, char **argv)
{
    return output_end("sbx", dispatch(argc, argv));
}
