/* SPDX-License-Identifier: MIT */
/* sbx: the command line. One function and one row of commands.c per command. */
#pragma once

#include "cli/commands.h"

cmd_fn cmd_bench, cmd_call, cmd_config, cmd_console, cmd_cp, cmd_doctor, cmd_exec, cmd_inspect,
    cmd_kill, cmd_logs, cmd_mcp, cmd_node, cmd_port, cmd_ps, cmd_python, cmd_run,
    cmd_sandbox_create, cmd_sandbox_ls, cmd_sandbox_pause, cmd_sandbox_resume, cmd_sandbox_rm,
    cmd_selftest, cmd_sh, cmd_top;

enum {
    CMD_USAGE = 2,     /* called wrongly */
    CMD_TIMEOUT = 124, /* the execution ran out of time */
    CMD_FAILED = 125,  /* the daemon could not be reached, or could not do it */
    CMD_INTERRUPTED = 130,
};
