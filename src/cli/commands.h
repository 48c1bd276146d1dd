/* SPDX-License-Identifier: MIT */
/*
 * The commands of sbx: one table (commands.c), from which come the parsing of arguments, --help,
 * the man page and the completions of shells (cli_docs.c).
 *
 * A command is a row and a function. Its name may have two words ("sandbox ls").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"

enum { OPTIONS_MAX = 16, COMMAND_NAME_MAX = 32 };

enum {
    COMMAND_DAEMON = BIT(0),    /* asks the daemon: has --url */
    COMMAND_JSON = BIT(1),      /* has --json */
    COMMAND_SANDBOX = BIT(2),   /* is about one sandbox: has --sandbox */
    COMMAND_STOPS = BIT(3),     /* what follows the first operand is not for us */
    COMMAND_PASSES = BIT(4),    /* another program reads the arguments, all but --help */
    COMMAND_SANDBOXES = BIT(5), /* its operands are names of sandboxes */
    COMMAND_FILES = BIT(6),     /* its operands are files */
    COMMAND_PROCESSES = BIT(7), /* its operands are processes */
};

struct cmd_option {
    char letter; /* 0: it has only a name */
    const char *name;
    const char *value; /* what it takes, in capitals; NULL: nothing */
    const char *help;
};

struct cmd_example {
    const char *line, *about;
};

struct args;
/* The exit status. */
typedef int cmd_fn(const struct args *a);

/* Lists end with a row of zeros; NULL is an empty one. */
struct command {
    const char *name;
    cmd_fn *run;
    const char *operands; /* as the synopsis has them */
    const char *summary;  /* in one line */
    const char *about;    /* paragraphs, at most 78 columns */
    unsigned flags;
    const struct cmd_option *options;
    const struct cmd_example *examples;
};

/* A row; NULL behind the last one. */
const struct command *command(size_t i);
/* The row that these words begin with; *ret_words: how many of them are its name. NULL: none. */
const struct command *command_find(int argc, char **argv, int *ret_words);
/* Its options with those that its flags give it; a row of zeros ends them. */
void command_options(const struct command *c, struct cmd_option out[OPTIONS_MAX + 1]);
void command_help(const struct command *c, FILE *out);

/* ---- arguments of a command ---- */

struct arg_seen;
struct args {
    const struct command *command;
    char **operand; /* borrowed; NULL ends them */
    int n;
    struct arg_seen *seen; /* owned */
    size_t seen_n;
};

enum args_end { ARGS_GOOD, ARGS_HELP, ARGS_WRONG };
/* argv begins with the command. ARGS_HELP: the help was printed; ARGS_WRONG: why not, too. */
must_check enum args_end args_read(const struct command *c, int argc, char **argv,
                                   struct args *ret);
void args_done(struct args *a);
/* The last value of an option; "" of one without a value; NULL: it was not given. */
const char *args_option(const struct args *a, const char *name);
/* All of its values, one after the other: *at begins with 0. NULL: no more. */
const char *args_next(const struct args *a, const char *name, size_t *at);
/* A whole number within these; `otherwise` when it is not given. -1 after saying why. */
must_check int args_number(const struct args *a, const char *name, long least, long most,
                           long otherwise, long *ret);
/* Says how the command is called, after a sentence or NULL. The exit status. */
int args_wrong(const struct args *a, const char *why);
