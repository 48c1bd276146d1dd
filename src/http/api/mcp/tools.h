/* SPDX-License-Identifier: MIT */
/* The tools, for their table: of each its arguments and what it does (tool_*.c). */
#pragma once

#include "http/api/mcp/tool.h"

typedef void tool_fn(struct tool_call *t);

struct tool_run_code {
    struct bytes code, sandbox;
    int language;      /* its place in the enum */
    int64_t timeout_s; /* 0: the default */
    bool reset;
    struct shape_strings allowed;
};
struct tool_run_command {
    struct bytes command, sandbox, cwd, input;
    struct shape_strings env;
    int64_t timeout_s; /* 0: the default */
    bool background;
};
extern const struct shape tool_run_code_shape, tool_run_command_shape;
tool_fn tool_run_code, tool_run_command;
/* The same for arguments that came otherwise. */
void tool_run_shell(struct tool_call *t, const struct tool_run_command *a);

struct tool_manage_process {
    int action; /* its place in the enum */
    struct bytes process, sandbox;
    int64_t cursor, wait_s;
};
extern const struct shape tool_manage_process_shape;
tool_fn tool_manage_process;

struct tool_read_file {
    struct bytes path, sandbox;
    int64_t offset, limit; /* 0: the default */
};
struct tool_write_file {
    struct bytes path, content, sandbox;
    int encoding; /* 1: Base64 */
};
struct tool_edit_file {
    struct bytes path, old_text, new_text, sandbox;
    bool replace_all;
};
struct tool_list_files {
    struct bytes path, sandbox, pattern;
    int64_t depth; /* 0: 1 */
};
extern const struct shape tool_read_file_shape, tool_write_file_shape, tool_edit_file_shape;
extern const struct shape tool_list_files_shape;
tool_fn tool_read_file, tool_write_file, tool_edit_file, tool_list_files;

struct tool_create_sandbox {
    struct bytes name;
    struct shape_strings env;
    int64_t memory_mb, idle_minutes; /* 0: the default */
};
struct tool_delete_sandbox {
    struct bytes sandbox;
};
extern const struct shape tool_create_sandbox_shape, tool_list_sandboxes_shape;
extern const struct shape tool_delete_sandbox_shape;
tool_fn tool_create_sandbox, tool_list_sandboxes, tool_delete_sandbox;

struct tool_call_function {
    struct bytes tool, code, function;
    int language; /* its place in the enum */
    struct json_value arguments;
    int64_t timeout_s; /* 0: the default */
};
extern const struct shape tool_call_function_shape;
tool_fn tool_call_function;

struct tool_define_tools {
    struct bytes bundle, code;
    int language; /* its place in the enum */
    bool remove;
};
extern const struct shape tool_define_tools_shape;
tool_fn tool_define_tools;
