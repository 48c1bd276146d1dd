/* SPDX-License-Identifier: MIT */
/* The tools there are. */
#include "http/api/mcp/tools.h"

/* clang-format off */
const struct mcp_tool mcp_tools[] = {
    {"run_code",        &tool_run_code_shape,        sizeof(struct tool_run_code),        tool_run_code},
    {"run_command",     &tool_run_command_shape,     sizeof(struct tool_run_command),     tool_run_command},
    {"manage_process",  &tool_manage_process_shape,  sizeof(struct tool_manage_process),  tool_manage_process},
    {"read_file",       &tool_read_file_shape,       sizeof(struct tool_read_file),       tool_read_file},
    {"write_file",      &tool_write_file_shape,      sizeof(struct tool_write_file),      tool_write_file},
    {"edit_file",       &tool_edit_file_shape,       sizeof(struct tool_edit_file),       tool_edit_file},
    {"list_files",      &tool_list_files_shape,      sizeof(struct tool_list_files),      tool_list_files},
    {"create_sandbox",  &tool_create_sandbox_shape,  sizeof(struct tool_create_sandbox),  tool_create_sandbox},
    {"list_sandboxes",  &tool_list_sandboxes_shape,  0,                                   tool_list_sandboxes},
    {"delete_sandbox",  &tool_delete_sandbox_shape,  sizeof(struct tool_delete_sandbox),  tool_delete_sandbox},
    {"define_tools",    &tool_define_tools_shape,    sizeof(struct tool_define_tools),    tool_define_tools},
    {"call_function",   &tool_call_function_shape,   sizeof(struct tool_call_function),   tool_call_function},
    {0},
};
/* clang-format on */
