/* SPDX-License-Identifier: MIT */
/* sbx: the command line. One function and one row per command. */
#pragma once

/* argv[0] is the command's name. Returns the exit status. */
typedef int cmd_fn(int argc, char **argv);
cmd_fn cmd_doctor, cmd_mcp, cmd_run, cmd_selftest;

enum {
    CMD_USAGE = 2,     /* called wrongly */
    CMD_TIMEOUT = 124, /* the execution ran out of time */
    CMD_FAILED = 125,  /* the daemon could not be reached, or could not do it */
};
